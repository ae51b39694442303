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
 *	serving process			guard
 *	   | <- SIGHUP			  |
 *	   | -- reload ------------------>| options
 *	   |<------------------- change --|
 *	   | -- answer ------------------>|
 *	   |	...			  |	...
 *	   |<---------------------- end --|
 *
 * It does what main() does at the start, with the same functions.  An error of
 * the configuration is one line, before any change is asked for, and comes with
 * the end.  valed_changes.c has the changes: names are reserved, then sockets
 * made, adapters removed, settings and adapters changed, interfaces attached,
 * and adapters added.
 */

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
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
#include "valed_guard.h"
#include "valed_opener.h"
#include "valed_options.h"
#include "valed_socket.h"
#include "valed_store.h"
#include "valed_why.h"

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

static bool
change_send(struct valed_change *vc)
{
	int adapter[2];
	const int *fds = adapter;
	unsigned int n = 0;

	if (vc->vc_what == VALED_ADD && vc->vc_config.ac_listen != -1)
		adapter[n++] = vc->vc_config.ac_listen;
	if (vc->vc_what == VALED_ADD && valed_is_remote(&vc->vc_config) &&
	    vc->vc_config.ac_opener != -1)
		adapter[n++] = vc->vc_config.ac_opener;
	if (vc->vc_what == VALED_ATTACH) {
		fds = vc->vc_hostif.hf_fd;
		n = vc->vc_hostif.hf_nfds;
	}
	return (peer_fds_send(guard_fd, vc, sizeof(*vc), fds, n, 0) ==
	    (ssize_t)sizeof(*vc));
}

/* No more changes: tell the first error, if there is one. */
static void
changes_end(const struct valed_why *why)
{
	static struct valed_change end = { .vc_what = VALED_END };

	end.vc_absent = valed_changes_unattached_any();
	strlcpy(end.vc_why, why->wy_text, sizeof(end.vc_why));
	(void)change_send(&end);
}

/*
 * Receive what the serving process sends; what is no order is an answer.
 * Returns false if that process has ended.
 */
static bool
order_receive(struct guard_order *go)
{
	ssize_t n;

	do
		n = recv(guard_fd, go, sizeof(*go), 0);
	while (n == -1 && errno == EINTR);
	/* A client may have that process. */
	if (n != (ssize_t)sizeof(*go))
		*go = (struct guard_order){ .go_error = EPROTO };
	go->go_port[sizeof(go->go_port) - 1] = '\0';
	go->go_why[sizeof(go->go_why) - 1] = '\0';
	return (n > 0);
}

/* The serving process has ended, perhaps in the midst of a reload. */
static void __dead2
guard_end(void)
{
	if (guard_removes)
		valed_sockets_remove();
	else
		valed_changes_prune();
	_exit(EX_OK);
}

int
valed_guard_carry(struct valed_change *vc)
{
	struct guard_order go;

	if (!change_send(vc))
		guard_end();
	while (order_receive(&go)) {
		if (go.go_what == GUARD_ANSWER)
			return (go.go_error);
		/* No other order comes meanwhile. */
		if (go.go_what == GUARD_REMOVE)
			guard_removes = true;
	}
	guard_end();
}

/* Read the configuration, and carry out what has changed. */
static void
reload(bool replace)
{
	struct valed_why why = { .wy_status = 0 };
	struct valed_options opt;

	if (valed_options(guard_argc, guard_argv, &opt, &why))
		valed_changes(&opt, replace, &why);
	else
		warnx("%s", why.wy_text);
	changes_end(&why);
}

/* Do what the serving process asks for. */
static void
order_do(const struct guard_order *go)
{
	struct valed_why why = { .wy_status = 0 };

	switch (go->go_what) {
	case GUARD_RELOAD:
		reload(go->go_replace);
		break;
	case GUARD_ATTACH:
		valed_changes_attach();
		changes_end(&why);
		break;
	case GUARD_ABSENT:
		valed_changes_absent(go->go_bus, go->go_slot, go->go_func);
		break;
	case GUARD_UNATTACHED:
		valed_changes_unattached(go->go_port, go->go_why);
		break;
	case GUARD_REMOVE:
		guard_removes = true;
		break;
	case GUARD_ANSWER:
		break;
	}
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
		order_do(&go);
	guard_end();
}

/* Create the control socket, unless it is inherited. */
static bool
control_open(struct control_config *co, struct valed_why *why)
{
	co->co_listen = co->co_fd != -1 ? co->co_fd : valed_socket_open("-c ",
	    co->co_path, SOCK_SEQPACKET, &co->co_access, why);
	return (co->co_listen != -1);
}

/* Create the sockets. */
static bool
sockets_open(struct valed_options *opt, struct valed_why *why)
{
	struct adapter_config *ac = opt->vo_adapters;

	for (; ac < opt->vo_adapters + opt->vo_nadapters; ac++) {
		ac->ac_listen = ac->ac_fd != -1 ? ac->ac_fd :
		    valed_changes_socket(ac, why);
		if (ac->ac_listen == -1)
			return (false);
	}
	return (opt->vo_control == NULL || control_open(opt->vo_control, why));
}

/* Start a process for each adapter whose port is another valed's. */
static bool
openers_start(struct valed_options *opt, struct valed_why *why)
{
	struct adapter_config *ac = opt->vo_adapters;

	for (; ac < opt->vo_adapters + opt->vo_nadapters; ac++) {
		if (!valed_is_remote(ac))
			continue;
		ac->ac_opener = valed_opener_start(ac);
		if (ac->ac_opener == -1)
			return (valed_why_set(why, EX_OSERR, "%s: process that "
			    "opens the port: %s", ac->ac_where,
			    strerror(errno)));
	}
	return (true);
}

/* Start the guard's process. */
static bool
guard_fork(const struct control_config *co, struct valed_why *why)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1 ||
	    (pid = fork()) == -1)
		return (valed_why_set(why, EX_OSERR, "guard: %s",
		    strerror(errno)));
	guard_fd = fds[pid == 0];
	close(fds[pid != 0]);
	if (pid == 0) {
		valed_store_forget();
		valed_changes_close();
		if (co != NULL && co->co_fd == -1)
			close(co->co_listen);
		guard();
	}
	return (true);
}

bool
valed_guard_start(int argc, char **argv, struct valed_options *opt,
    struct valed_why *why)
{
	guard_argc = argc;
	guard_argv = argv;
	/* Nobody waits for the guard, or for openers. */
	signal(SIGCHLD, SIG_IGN);
	if (!sockets_open(opt, why) || !openers_start(opt, why) ||
	    !valed_changes_begin(opt, why) ||
	    !guard_fork(opt->vo_control, why)) {
		valed_sockets_remove();
		return (false);
	}
	valed_changes_drop();
	return (true);
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

bool
valed_guard_change(struct valed_change *vc)
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
		n = recvmsg(guard_fd, &msg, MSG_CMSG_CLOEXEC);
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
