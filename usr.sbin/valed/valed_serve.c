/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the main thread does when all others have been started (valed.c): a
 * check of them once a second, signals, the reloads and restarts that signals
 * and clients ask for, and the end, which leaves to the next process, if there
 * is one, what that needs.  No lock is held.
 */

#include <sys/param.h>
#include <sys/signalfd.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter.h"
#include "adapter_keep.h"
#include "ctl.h"
#include "ctl_names.h"
#include "hostif.h"
#include "libvale.h"
#include "peer_accept.h"
#include "peer_close.h"
#include "peer_log.h"
#include "peer_watch.h"
#include "vale_clock.h"
#include "valed_adapters.h"
#include "valed_carrier.h"
#include "valed_counters_keep.h"
#include "valed_guard.h"
#include "valed_hostif_keep.h"
#include "valed_interfaces.h"
#include "valed_notify.h"
#include "valed_options.h"
#include "valed_reload.h"
#include "valed_serve.h"
#include "valed_settings_keep.h"
#include "valed_stats.h"
#include "valed_store.h"
#include "valed_watch.h"
#include "valed_why.h"

/* For adapters to quiesce, and again to save their state, ms. */
#define	STEP_MS		2000

/* Of valed_serve(). */
static bool			verbose;
static int			signals_fd = -1;

/* What is asked for; the main thread's. */
static uint64_t			next_ns;	/* of adapter_watch() */
static bool			reloading;	/* the guard reads the files, or
						   changes are carried out */
static enum ctl_wish		reload_wish;	/* which one */
static bool			reload_again;	/* for a signal */
static bool			checking;	/* until the supervisor says
						   whether it can restart */

static bool			signals_read(void);
static void			reload_begin(enum ctl_wish);
static void			end(bool restart) __dead2;

/* Do nothing: PEER_SIGNAL only interrupts a system call. */
static void
signal_nothing(int sig __unused)
{
}

int
valed_serve_signals(void)
{
	struct sigaction sa;
	sigset_t set;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = signal_nothing;
	sigaction(PEER_SIGNAL, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static unsigned int
adapters_count(void)
{
	struct adapter *ad;
	unsigned int n = 0;

	TAILQ_FOREACH(ad, &valed_adapters, link)
		n++;
	return (n);
}

static void
hostif_watch(struct hostif *hi, void *arg)
{
	const char *port = hostif_port_name(hi);

	if (hostif_gone_now(hi))
		valed_interfaces_absent(port, "");
	else if (hostif_outgrown(hi) && ctl_names_of(port) != CTL_NAME_FREE)
		strlcpy(arg, port, VALE_NAME_SIZE);
}

/* Attach interfaces that are there, or there again. */
static void
attach_again(void)
{
	char outgrown[VALE_NAME_SIZE] = "";

	if (reloading)
		return;
	hostif_each(hostif_watch, outgrown);
	/* The guard cannot open it before. */
	if (outgrown[0] != '\0') {
		hostif_let_go(outgrown);
		valed_interfaces_absent(outgrown, "");
	}
	reloading = true;
	valed_interfaces_again();
	reloading = false;
	if (reload_again)
		reload_begin(CTL_RELOAD);
}

/* Tell an adapter of the uplinks of its switch, unless another valed has it. */
static void
tell_uplinks(struct adapter *ad)
{
	bool came = false, up;

	/* The adapter may be on its way to another port. */
	pthread_mutex_lock(&ad->mtx);
	up = valed_has_port(&ad->config) &&
	    valed_carrier_of(ad->config.ac_backend, &came);
	pthread_mutex_unlock(&ad->mtx);
	adapter_uplink(ad, up, came);
}

/* Check all threads, once a second.  `ending' is not in the list. */
static void
watch(struct adapter *ending)
{
	struct adapter *ad;

	peer_accept_watch();
	TAILQ_FOREACH(ad, &valed_adapters, link) {
		adapter_watch(ad);
		adapter_listen(ad);
	}
	if (ending != NULL)
		adapter_watch(ending);
	if (ending == NULL)
		attach_again();
	peer_close_watch();
	valed_carrier_watch();
	TAILQ_FOREACH(ad, &valed_adapters, link)
		tell_uplinks(ad);
	valed_notify_watch();
	if (verbose) {
		valed_stats_live(&valed_adapters);
		hostif_each(valed_stats_hostif_live, NULL);
	}
}

/*
 * Tell the service manager first.  The reply ends valectl(8), and with it the
 * manager's reload.
 */
static void
reload_end(const char *why)
{
	reloading = false;
	valed_notify_ready(adapters_count(), why);
	ctl_reload_end(reload_wish, why);
}

/* Say that there is no reload. */
static void
reload_fails(const char *why)
{
	char line[VALED_WHY_SIZE];

	snprintf(line, sizeof(line), "cannot reload: %s", why);
	warnx("%s", line);
	reload_end(line);
}

/* Begin a reload; nobody has confirmed that a signal may disconnect clients. */
static void
reload_begin(enum ctl_wish wish)
{
	reload_again = reloading;
	if (reload_again)
		return;
	reload_wish = wish;
	ctl_reload_begin(wish);
	reloading = true;
	if (valed_guard_read())
		valed_notify_reloading();
	else
		reload_fails(errno == EPIPE ? VALED_GUARD_GONE :
		    strerror(errno));
}

void
valed_serve_keep(void)
{
	valed_hostif_keep();
	valed_settings_keep();
}

void
valed_serve_watch(struct adapter *ending)
{
	if (signals_fd == -1 || !peer_watch_due(&next_ns))
		return;
	watch(ending);
	if (!signals_read())
		end(false);
}

/*
 * Carry out the configuration that the guard has read.  Returns false if the
 * guard has gone: no process here may start another one, and the supervisor
 * does not know what that must.
 */
static bool
reload(void)
{
	static struct valed_options opt;
	static struct valed_why why;

	if (valed_guard_options(&opt, &why))
		valed_reload(&opt, reload_wish == CTL_REPLACE, &why);
	else if (errno == EPIPE) {
		if (reloading)
			reload_fails(VALED_GUARD_GONE);
		else
			warnx(VALED_GUARD_GONE);
		return (false);
	} else
		warnx("%s", why.wy_text);
	valed_serve_keep();
	reload_end(why.wy_text);
	if (reload_again)
		reload_begin(CTL_RELOAD);
	return (true);
}

/* Have the supervisor see whether it can restart, as a client asks. */
static void
restart_begin(void)
{
	ctl_reload_begin(CTL_RESTART);
	checking = valed_store_active();
	if (checking)
		valed_store_tell(VALED_STORE_CHECK, NULL);
	else
		ctl_reload_end(CTL_RESTART, "valed has no option -R: restart "
		    "it as it was started");
}

/* Tell clients the supervisor's answer.  Returns whether the process ends. */
static bool
restart_checked(void)
{
	char why[VALED_WHY_SIZE];

	checking = false;
	if (!valed_store_reply(why, sizeof(why)) && why[0] == '\0')
		strlcpy(why, "the supervisor has ended", sizeof(why));
	ctl_reload_end(CTL_RESTART, why);
	return (why[0] == '\0');
}

/* Handle signals.  Returns false if one ends the program. */
static bool
signals_read(void)
{
	struct signalfd_siginfo si;

	while (read(signals_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGHUP:
			reload_begin(CTL_RELOAD);
			break;
		case SIGUSR1:
			valed_stats_print(&valed_adapters);
			hostif_each(valed_stats_hostif, NULL);
			break;
		default:
			return (false);
		}
	}
	return (true);
}

/* Begin with what clients ask for. */
static void
wish(void)
{
	const enum ctl_wish which = ctl_reload_wish();

	if (which == CTL_RESTART)
		restart_begin();
	else
		reload_begin(which);
}

/*
 * Call ask() for all adapters, and wait until has(), which may free an adapter,
 * is true for each, STEP_MS at most: one that hangs must not keep the others
 * from going on.
 */
static void
adapters_step(void (*ask)(struct adapter *), bool (*has)(struct adapter *))
{
	const uint64_t end_ms = vale_now_ms() + STEP_MS;
	struct adapter *ad, *next;

	TAILQ_FOREACH(ad, &valed_adapters, link)
		ask(ad);
	TAILQ_FOREACH_SAFE(ad, &valed_adapters, link, next) {
		while (!has(ad) && vale_now_ms() < end_ms)
			poll(NULL, 0, 1);
	}
}

/* Return whether an adapter has saved its state, or hangs: it has not quiesced. */
static bool
saved_or_hangs(struct adapter *ad)
{
	return (adapter_saved(ad) || !adapter_quiesced(ad));
}

static void __printflike(3, 4)
say(int priority, const char *name, const char *fmt, ...)
{
	static struct peer_log_source source;
	va_list ap;

	va_start(ap, fmt);
	peer_log(&source, priority, name, fmt, ap);
	va_end(ap);
}

/*
 * Say whose network ends, unless the service manager starts another process
 * soon: it does not say whether it will.
 */
static void
say_ends(void)
{
	struct adapter *ad;
	unsigned int n = 0;

	TAILQ_FOREACH(ad, &valed_adapters, link)
		n += atomic_load_64(&ad->since_s) != 0;
	if (n > 0 && valed_notify_wanted())
		say(LOG_WARNING, "end", "%u guests have no network until valed "
		    "starts again; unless that is at once, their QEMU may end",
		    n);
}

/* Say that this process is not the first, and what has become of clients. */
static void
say_restarted(void)
{
	const struct adapter_resumed ar = adapter_keep_resumed();

	if (!valed_store_found())
		return;
	say(LOG_NOTICE, "restarted", "%ju clients go on: %ju saved, %ju "
	    "salvaged, %ju reset; %ju lost",
	    (uintmax_t)(ar.ar_saved + ar.ar_salvaged + ar.ar_reset),
	    (uintmax_t)ar.ar_saved, (uintmax_t)ar.ar_salvaged,
	    (uintmax_t)ar.ar_reset, (uintmax_t)ar.ar_lost);
}

/* Tell the store if all adapters have gone on: it needs nothing else. */
static void
started(void)
{
	static bool done;
	struct adapter *ad;

	if (done)
		return;
	TAILQ_FOREACH(ad, &valed_adapters, link)
		if (!adapter_resumed(ad))
			return;
	done = true;
	say_restarted();
	valed_store_started();
}

/* Serve until a signal ends the program, or, with true, a restart. */
static bool
run(void)
{
	struct pollfd fds[] = {
		{ .fd = signals_fd, .events = POLLIN },
		{ .fd = valed_guard_fd(), .events = POLLIN },
		{ .events = POLLIN },
	};
	bool due;

	next_ns = peer_watch_start();
	for (;;) {
		/* Clients that ask during a reload get the next one. */
		fds[2].fd = reloading ? -1 :
		    checking ? valed_store_fd() : ctl_reload_fd();
		due = peer_watch_wait(fds, nitems(fds), &next_ns);
		if (fds[0].revents != 0 && !signals_read())
			return (false);
		if (fds[1].revents != 0 && !reload())
			fds[1].fd = -1;
		if (fds[2].revents != 0 && checking) {
			if (restart_checked())
				return (true);
		} else if (fds[2].revents != 0 && !reloading)
			wish();
		if (due) {
			started();
			watch(NULL);
		}
	}
}

/* End, and let the next process go on if there is one. */
static void __dead2
end(bool restart)
{
	const bool go_on = valed_store_active() &&
	    (restart || valed_notify_wanted());

	if (!restart) {
		valed_notify("STOPPING=1");
		say_ends();
	}
	if (go_on) {
		adapters_step(adapter_quiesce, adapter_quiesced);
		adapters_step(adapter_save, saved_or_hangs);
		valed_serve_keep();
		valed_counters_keep();
	} else		/* Clients see the end: peer_hang_up(). */
		adapters_step(adapter_stop, adapter_ended);
	fflush(stdout);
	/* From now on the supervisor waits for a moment only. */
	valed_store_tell(restart ? VALED_STORE_RESTART : VALED_STORE_END, NULL);
	/* Threads that are busy end with the process. */
	valed_guard_end(go_on);
	_exit(EX_OK);
}

void
valed_serve(bool live, int signal_fd)
{
	verbose = live;
	signals_fd = signal_fd;
	adapters_step(adapter_go, adapter_resumed);
	started();
	valed_serve_keep();
	valed_store_tell(VALED_STORE_SERVES, NULL);
	ctl_go();
	valed_notify_ready(adapters_count(), "");
	end(run());
}
