/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard, a second process outside of the sandbox, without clients.
 *
 * The sandbox allows no file operations, so the guard removes the sockets when
 * the serving process ends, however it ends: the end of their connection tells
 * it.  And when the serving process asks for it, after a SIGHUP, the guard
 * reads the configuration again:
 *
 *	serving process			guard		its child
 *	   | <- SIGHUP			  |
 *	   | -- reload ------------------>|
 *	   |				  | fork
 *	   |				  |---------------->| options
 *	   |<----------------------------- change ----------|
 *	   | -- answer ------------------------------------>|
 *	   |	...			  |	...	    |
 *	   |<----------------------------- end -------------|
 *	   |				  |<---- success ---|
 *	   |				_exit()		    | is the guard now
 *
 * The child does what main() does at the start, with the same functions.  So an
 * error is one line, and ends the child before it has asked for any change; the
 * guard then goes on with what it knows, and tells that line with the end
 * (valed_error.c).  If the child succeeds, it takes the guard's place, as it is
 * the one that knows the new sockets.  valed_changes.c has the changes: names
 * are reserved, then sockets made, adapters removed, settings and adapters
 * changed, interfaces attached, and adapters added.
 *
 * The guard passes changes and answers on, and records what has been carried
 * out.  So each connection has one reader, and if the child dies in the midst,
 * the guard knows what the serving process has then.
 */

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_config.h"
#include "peer_fds.h"
#include "valed_changes.h"
#include "valed_control.h"
#include "valed_error.h"
#include "valed_guard.h"
#include "valed_opener.h"
#include "valed_options.h"
#include "valed_socket.h"
#include "valed_store.h"

/* What the serving process asks for, or answers. */
struct guard_order {
	enum {
		GUARD_ANSWER,		/* to a change: go_error */
		GUARD_RELOAD,
		GUARD_ABSENT,		/* of one that is not there */
		GUARD_UNATTACHED,	/* of an interface */
		GUARD_ATTACH,		/* those that are there again */
		GUARD_REMOVE		/* with a store: remove the sockets at
					   the end, which no process takes */
	}	go_what;
	int	go_error;		/* 0, or an errno */
	bool	go_replace;		/* a reload may disconnect clients */
	int	go_bus, go_slot, go_func;
	char	go_port[VALE_NAME_SIZE];	/* GUARD_UNATTACHED */
	char	go_why[VALED_ATTACH_WHY];
};

/* The connection: this process's end. */
static int	guard_fd = -1;

/* The serving process's: an interface of the configuration is not attached. */
static bool	absent;

static int	guard_argc;
static char	**guard_argv;
/* The guard removes the sockets at the end. */
static bool	guard_removes;

static bool	change_receive(int fd, struct valed_change *vc);
static void	change_close(struct valed_change *vc);

/*
 * In the child: read the configuration, and carry out what has changed; or
 * attach interfaces.
 */
static void
reload(const struct guard_order *go)
{
	struct valed_options opt;

	/* For openers, which nobody waits for. */
	signal(SIGCHLD, SIG_IGN);
	valed_sockets_keep();
	if (go->go_what == GUARD_ATTACH) {
		valed_changes_attach();
		return;
	}
	valed_options(guard_argc, guard_argv, &opt);
	valed_changes(&opt, go->go_replace);
}

/*
 * The child has carried it out, and is the guard now: `changes' is its end of
 * the connection to the one before it.
 */
static void
reload_done(int fd, int changes)
{
	char why[VALED_WHY_SIZE];
	ssize_t n;

	strlcpy(why, valed_error(), sizeof(why));
	valed_error_begin(-1);
	valed_changes_to(guard_fd);
	close(changes);
	while ((n = write(fd, "", 1)) == -1 && errno != EPIPE)
		continue;
	close(fd);
	/* The other guard has gone, and perhaps has not passed on the end. */
	if (n == -1)
		valed_changes_end(why);
}

/*
 * Wait for the child, which writes its first error, and, if it is the guard
 * now, a NUL behind that.  Returns whether it is.
 */
static bool
reload_wait(int fd, char why[VALED_WHY_SIZE])
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, why + len, VALED_WHY_SIZE - len);
		len += n > 0 ? n : 0;
	} while (n > 0 || (n == -1 && errno == EINTR));
	if (len > 0 && why[len - 1] == '\0')
		return (true);
	if (len == 0)
		len = strlcpy(why, "the process that reads the files has "
		    "ended", VALED_WHY_SIZE);
	why[len] = '\0';
	return (false);
}

/* Receive what the serving process sends.  Returns false if it has ended. */
static bool
order_receive(struct guard_order *go)
{
	ssize_t n;

	do
		n = recv(guard_fd, go, sizeof(*go), 0);
	while (n == -1 && errno == EINTR);
	/* A client may have that process. */
	if (n != (ssize_t)sizeof(*go))
		go->go_what = GUARD_ANSWER;
	return (n > 0);
}

/* Carry out an order that makes no child. */
static void
order_do(const struct guard_order *go)
{
	switch (go->go_what) {
	case GUARD_ABSENT:
		valed_changes_absent(go->go_bus, go->go_slot, go->go_func);
		break;
	case GUARD_UNATTACHED:
		valed_changes_unattached(go->go_port, go->go_why);
		break;
	case GUARD_REMOVE:
		guard_removes = true;
		break;
	default:
		break;
	}
}

/* Wait for the answer to a change.  Returns false if there is none. */
static bool
answer_receive(int *error)
{
	struct guard_order go;

	while (order_receive(&go)) {
		if (go.go_what == GUARD_ANSWER) {
			*error = go.go_error;
			return (true);
		}
		order_do(&go);
	}
	return (false);
}

/* Pass on a change of the child, and the answer.  Returns whether both went. */
static bool
relay(int child, struct valed_change *vc)
{
	int error = 0;
	bool passed = true;

	if (vc->vc_what == VALED_MADE)
		valed_socket_made(vc->vc_config.ac_path);
	else
		passed = valed_changes_send(vc) && (vc->vc_what == VALED_END ||
		    answer_receive(&error));
	change_close(vc);
	if (!passed || vc->vc_what == VALED_END)
		return (passed);
	/* Settings that fail there are kept, unless there was no memory. */
	if (error == 0 || (vc->vc_what == VALED_SET &&
	    (unsigned int)error / VALED_FAILED < vc->vc_nchanges))
		valed_changes_record(vc);
	return (send(child, &error, sizeof(error), MSG_NOSIGNAL) != -1);
}

/*
 * Pass on what the child sends until the child has ended or is the guard, which
 * hears the serving process from the last change on, which sets *over.  Returns
 * false if the serving process has ended.
 */
static bool
relay_all(int child, bool *over)
{
	static struct valed_change vc;
	struct pollfd fds[] = {
		{ .fd = child, .events = POLLIN },
		{ .fd = guard_fd, .events = POLLIN },
	};
	struct guard_order go;

	for (;;) {
		if (poll(fds, nitems(fds), -1) == -1)
			continue;
		if (fds[0].revents != 0) {
			if (!change_receive(child, &vc))
				return (true);
			if (!relay(child, &vc))
				shutdown(child, SHUT_RDWR);
			if (vc.vc_what != VALED_END)
				continue;
			*over = true;
			fds[1].fd = -1;
		} else if (order_receive(&go))
			order_do(&go);
		else
			return (false);
	}
}

/* The parent's part of a reload in a child. */
static void
reload_parent(pid_t pid, int why_fd, int child)
{
	char why[VALED_WHY_SIZE];
	bool over = false;
	const bool serving = relay_all(child, &over);

	if (!serving)
		kill(pid, SIGKILL);
	else if (reload_wait(why_fd, why))
		_exit(EX_OK);
	waitpid(pid, NULL, 0);
	/* Openers may have ended meanwhile. */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	signal(SIGCHLD, SIG_IGN);
	close(why_fd);
	close(child);
	valed_changes_failed();
	if (serving && !over)
		valed_changes_end(why);
}

/* Reload in a child, which takes this process's place if it succeeds. */
static void
reload_fork(const struct guard_order *go)
{
	char why[VALED_WHY_SIZE];
	int changes[2], fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) == -1)
		goto fail;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    changes) == -1)
		goto fail_pair;
	/* So that the number is the child's until the parent has waited. */
	signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid == -1)
		goto fail_fork;
	close(fds[pid != 0]);
	close(changes[pid != 0]);
	if (pid != 0) {
		reload_parent(pid, fds[0], changes[0]);
		return;
	}
	valed_error_begin(fds[1]);
	valed_changes_to(changes[1]);
	reload(go);
	reload_done(fds[1], changes[1]);
	return;

fail_fork:
	signal(SIGCHLD, SIG_IGN);
	close(changes[0]);
	close(changes[1]);
fail_pair:
	close(fds[0]);
	close(fds[1]);
fail:
	snprintf(why, sizeof(why), "reload: %s", strerror(errno));
	warnx("%s", why);
	valed_changes_end(why);
}

/* Attach the interfaces that are there again, as a reload does. */
static void
attach(const struct guard_order *go)
{
	if (valed_changes_attachable())
		reload_fork(go);
	else
		valed_changes_end("");
}

/* The guard process. */
static void __dead2
guard(void)
{
	struct guard_order go;
	sigset_t all;

	guard_removes = !valed_store_active();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "valed-guard");
	while (order_receive(&go))
		if (go.go_what == GUARD_RELOAD)
			reload_fork(&go);
		else if (go.go_what == GUARD_ATTACH)
			attach(&go);
		else
			order_do(&go);
	if (guard_removes)
		valed_sockets_remove();
	_exit(EX_OK);
}

/* Create the control socket, unless it is inherited. */
static void
control_open(struct control_config *co)
{
	co->co_listen = co->co_fd != -1 ? co->co_fd : valed_socket_open("-c ",
	    co->co_path, SOCK_SEQPACKET, &co->co_access);
}

/* Start a process for each adapter whose port is another valed's. */
static void
openers_start(struct valed_options *opt)
{
	struct adapter_config *ac = opt->vo_adapters;

	for (; ac < opt->vo_adapters + opt->vo_nadapters; ac++) {
		if (!valed_is_remote(ac))
			continue;
		ac->ac_opener = valed_opener_start(ac);
		if (ac->ac_opener == -1) {
			valed_sockets_drop();
			err(EX_OSERR, "%s: process that opens the port",
			    ac->ac_where);
		}
	}
}

void
valed_guard_start(int argc, char **argv, struct valed_options *opt)
{
	struct adapter_config *ac;
	int fds[2];
	pid_t pid;

	guard_argc = argc;
	guard_argv = argv;
	for (ac = opt->vo_adapters; ac < opt->vo_adapters + opt->vo_nadapters;
	    ac++)
		ac->ac_listen = ac->ac_fd != -1 ? ac->ac_fd :
		    valed_changes_socket(ac);
	if (opt->vo_control != NULL)
		control_open(opt->vo_control);
	/* Nobody waits for the guard, of which each reload makes a new one, or
	   for openers. */
	signal(SIGCHLD, SIG_IGN);
	openers_start(opt);
	valed_changes_begin(opt);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1 ||
	    (pid = fork()) == -1) {
		valed_sockets_drop();
		err(EX_OSERR, "guard");
	}
	guard_fd = fds[pid == 0];
	close(fds[pid != 0]);
	if (pid == 0) {
		valed_store_forget();
		valed_changes_to(guard_fd);
		if (opt->vo_control != NULL && opt->vo_control->co_fd == -1)
			close(opt->vo_control->co_listen);
		guard();
	}
	valed_changes_drop();
}

/*
 * The serving process.
 */

int
valed_guard_fd(void)
{
	return (guard_fd);
}

bool
valed_guard_reload(bool replace)
{
	const struct guard_order go = { .go_what = GUARD_RELOAD,
	    .go_replace = replace };

	return (send(guard_fd, &go, sizeof(go), MSG_NOSIGNAL) ==
	    (ssize_t)sizeof(go));
}

static void
order(const struct guard_order *go)
{
	while (send(guard_fd, go, sizeof(*go), MSG_NOSIGNAL) == -1 &&
	    (errno == EINTR || errno == ENOBUFS || errno == ENOMEM))
		continue;
}

void
valed_guard_absent(const struct adapter_config *ac)
{
	const struct guard_order go = { .go_what = GUARD_ABSENT,
	    .go_bus = ac->ac_bus, .go_slot = ac->ac_slot,
	    .go_func = ac->ac_func };

	order(&go);
}

void
valed_guard_unattached(const char *port, const char *why)
{
	struct guard_order go = { .go_what = GUARD_UNATTACHED };

	strlcpy(go.go_port, port, sizeof(go.go_port));
	strlcpy(go.go_why, why, sizeof(go.go_why));
	order(&go);
	absent = true;
}

bool
valed_guard_attach(void)
{
	const struct guard_order go = { .go_what = GUARD_ATTACH };

	return (absent && send(guard_fd, &go, sizeof(go), MSG_NOSIGNAL) ==
	    (ssize_t)sizeof(go));
}

static void
change_drop_fd(void *arg __unused, int fd)
{
	close(fd);
}

/* Put the descriptors that came into their places.  Returns false if some have
   not come. */
static bool
change_fds(struct valed_change *vc, const int *fds, unsigned int n, bool all)
{
	const bool listen = vc->vc_config.ac_listen != -1;
	const bool opener = valed_is_remote(&vc->vc_config);
	unsigned int i;

	vc->vc_config.ac_listen = vc->vc_config.ac_opener = -1;
	if (vc->vc_what == VALED_ATTACH) {
		for (i = 0; i < n; i++)
			vc->vc_hostif.hf_fd[i] = fds[i];
		all = all && n == vc->vc_hostif.hf_nfds;
		vc->vc_hostif.hf_nfds = n;
	} else if (vc->vc_what == VALED_ADD) {
		if (listen && n > 0)
			vc->vc_config.ac_listen = fds[0];
		if (opener && n > listen)
			vc->vc_config.ac_opener = fds[listen];
	}
	return (all);
}

/*
 * Receive a change, with its descriptors, which are the caller's then.  Returns
 * false if the sender has gone.
 */
static bool
change_receive(int fd, struct valed_change *vc)
{
	union {
		struct cmsghdr	align;
		char		buf[PEER_FDS_SPACE(HOSTIF_FDS_MAX)];
	} control;
	struct iovec iov = { vc, sizeof(*vc) };
	int fds[HOSTIF_FDS_MAX];
	struct peer_fds mf = { .mf_fd = fds, .mf_max = HOSTIF_FDS_MAX,
	    .mf_drop = change_drop_fd };
	bool all;
	struct msghdr msg;
	ssize_t n;

	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = control.buf;
	msg.msg_controllen = sizeof(control.buf);
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n == -1 && (errno == EINTR || errno == ENOMEM));
	if (n != (ssize_t)sizeof(*vc))
		return (false);
	if (vc->vc_what == VALED_END)
		absent = vc->vc_absent;
	all = peer_fds_take(&msg, &mf);
	vc->vc_lost |= !change_fds(vc, fds, mf.mf_n, all);
	return (true);
}

/* Close the descriptors of a change. */
static void
change_close(struct valed_change *vc)
{
	if (vc->vc_config.ac_listen != -1)
		close(vc->vc_config.ac_listen);
	if (valed_is_remote(&vc->vc_config) && vc->vc_config.ac_opener != -1)
		close(vc->vc_config.ac_opener);
	if (vc->vc_what == VALED_ATTACH)
		hostif_close(&vc->vc_hostif);
}

bool
valed_guard_change(struct valed_change *vc)
{
	return (change_receive(guard_fd, vc));
}

void
valed_guard_answer(int error)
{
	const struct guard_order go = { .go_what = GUARD_ANSWER,
	    .go_error = error };

	order(&go);
}

void
valed_guard_end(bool keep)
{
	const struct guard_order go = { .go_what = GUARD_REMOVE };
	struct valed_change vc;

	if (!keep && valed_store_active())
		order(&go);
	shutdown(guard_fd, SHUT_WR);
	while (valed_guard_change(&vc))
		change_close(&vc);
}
