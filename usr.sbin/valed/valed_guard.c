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
 *	   |<----------------------------------- reserve ---|
 *	   | -- done -------------------------------------->| sockets
 *	   |<----------------------------------- remove ----|
 *	   | -- done -------------------------------------->|
 *	   |<----------------------------------- add, fd ---|
 *	   | -- done -------------------------------------->|
 *	   |<----------------------------------- end -------|
 *	   |				  |<---- success ---|
 *	   |				_exit()		    | is the guard now
 *
 * The child does what main() does at the start, with the same functions.  So an
 * error is one line, and ends the child before it has asked for any change; the
 * guard then goes on with what it knows, and tells that line with the end
 * (valed_error.c).  If the child succeeds, it takes the guard's place, as it is
 * the one that knows the new sockets.
 *
 * An adapter that cannot be started does not keep the others from it, at the
 * start or later: its socket is removed, and the next reload tries again.
 *
 * An adapter is known by its place (bus, slot, function).  It is left alone if
 * its variables are those that it was started with; otherwise it is removed and
 * added again, with the same socket if the path is the same.  If another has
 * its new port open, such as a program, it is left alone, too (valed_names.h).
 */

#include <sys/param.h>
#include <sys/nv.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "config.h"
#include "peer_fds.h"
#include "valed.h"

/* What the serving process asks for. */
struct guard_order {
	enum {
		GUARD_RELOAD,
		GUARD_ABSENT		/* of one that is not there */
	}	go_what;
	int	go_bus, go_slot, go_func;
};

/* The connection: this process's end. */
static int	guard_fd = -1;

static int	guard_argc;
static char	**guard_argv;
/* The adapters that the serving process has. */
static struct valed_change *known;
static unsigned int	nknown;

_Static_assert(sizeof(((struct valed_change *)0)->vc_values) >
    VALED_NVARIABLES * (sizeof("backend=") + VALED_VALUE_SIZE),
    "space for all variables");

/* Append a variable. */
static void
value_append(struct valed_change *vc, const char *name, const char *value)
{
	size_t at = strlen(vc->vc_values);

	snprintf(vc->vc_values + at, sizeof(vc->vc_values) - at, "%s=%s\n",
	    name, value);
}

/* What it takes to add an adapter. */
static void
describe(struct valed_change *vc, const struct adapter_config *ac)
{
	void *cookie = NULL;
	const char *name;
	int type;

	memset(vc, 0, sizeof(*vc));
	vc->vc_what = VALED_ADD;
	vc->vc_config = *ac;
	strlcpy(vc->vc_name, ac->ac_name, sizeof(vc->vc_name));
	strlcpy(vc->vc_port, ac->ac_backend, sizeof(vc->vc_port));
	strlcpy(vc->vc_where, ac->ac_where, sizeof(vc->vc_where));
	while ((name = nvlist_next(ac->ac_nvl, &type, &cookie)) != NULL)
		value_append(vc, name, nvlist_get_string(ac->ac_nvl, name));
}

/* The adapters of *opt. */
static struct valed_change *
describe_all(const struct valed_options *opt)
{
	struct valed_change *all;
	unsigned int i;

	all = calloc(opt->vo_nadapters + 1, sizeof(*all));
	if (all == NULL) {
		valed_sockets_drop();
		err(EX_OSERR, NULL);
	}
	for (i = 0; i < opt->vo_nadapters; i++)
		describe(&all[i], &opt->vo_adapters[i]);
	return (all);
}

/* The one of `n' adapters that has this place, or NULL. */
static struct valed_change *
find(struct valed_change *vc, unsigned int n,
    const struct adapter_config *place)
{
	struct valed_change *end = vc + n;

	for (; vc < end; vc++) {
		if (vc->vc_config.ac_bus == place->ac_bus &&
		    vc->vc_config.ac_slot == place->ac_slot &&
		    vc->vc_config.ac_func == place->ac_func)
			return (vc);
	}
	return (NULL);
}

/* Whether one of `n' adapters has the same path. */
static bool
has_path(const struct valed_change *vc, unsigned int n,
    const struct adapter_config *ac)
{
	const struct valed_change *end = vc + n;

	for (; vc < end; vc++) {
		if (ac->ac_fd == -1 &&
		    strcmp(vc->vc_config.ac_path, ac->ac_path) == 0)
			return (true);
	}
	return (false);
}

static bool
same(const struct valed_change *a, const struct valed_change *b)
{
	return (a != NULL && b != NULL &&
	    strcmp(a->vc_values, b->vc_values) == 0);
}

/* Not there: the next reload adds it. */
static void
absent(struct valed_change *vc)
{
	vc->vc_values[0] = '\0';
	vc->vc_config.ac_path[0] = '\0';
}

/* Whether it is to be added, in place of another or not. */
static bool
added(const struct valed_change *vc)
{
	return (vc->vc_values[0] != '\0' &&
	    !same(find(known, nknown, &vc->vc_config), vc));
}

/* Send a change, with the adapter's socket. */
static bool
change_send(struct valed_change *vc)
{
	union {
		struct cmsghdr	align;
		char		buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { vc, sizeof(*vc) };
	struct cmsghdr *c;
	struct msghdr msg;

	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	if (vc->vc_what == VALED_ADD && vc->vc_config.ac_listen != -1) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &vc->vc_config.ac_listen, sizeof(int));
	}
	return (sendmsg(guard_fd, &msg, MSG_NOSIGNAL) ==
	    (ssize_t)sizeof(*vc));
}

/* No more changes; the first error, or "". */
static void
end_send(const char *why)
{
	static struct valed_change end = { .vc_what = VALED_END };

	strlcpy(end.vc_why, why, sizeof(end.vc_why));
	(void)change_send(&end);
}

/*
 * Have the serving process carry out a change.  If that process has gone, the
 * child ends; the guard sees it, too.  Returns false if the change failed,
 * which was reported.
 */
static bool
change(struct valed_change *vc)
{
	int error;

	if (!change_send(vc) || recv(guard_fd, &error, sizeof(error), 0) !=
	    (ssize_t)sizeof(error)) {
		valed_sockets_drop();
		_exit(EX_UNAVAILABLE);
	}
	return (error == 0);
}

/* The adapter's socket.  If there is none, an error says where it was set. */
static int
socket_open(const struct adapter_config *ac)
{
	const char *where = valed_config_where(ac->ac_nvl, "path");
	char option[PATH_MAX];

	snprintf(option, sizeof(option), "%s: path=", where != NULL ? where :
	    ac->ac_where);
	return (valed_socket_open(option, ac->ac_path, SOCK_STREAM, NULL));
}

/* Open the sockets of new adapters, before anything is changed. */
static void
sockets_open(const struct valed_options *opt, struct valed_change *new)
{
	struct adapter_config *ac;
	unsigned int i;

	for (i = 0; i < opt->vo_nadapters; i++) {
		ac = &new[i].vc_config;
		if (!added(&new[i]))
			continue;
		if (ac->ac_fd != -1)
			ac->ac_listen = ac->ac_fd;
		else if (has_path(known, nknown, ac))
			ac->ac_listen = -1;
		else
			ac->ac_listen = socket_open(&opt->vo_adapters[i]);
	}
}

/* Whether one of them stays where the other would be. */
static bool
clash(const struct valed_change *a, const struct valed_change *b)
{
	const struct adapter_config *ac = &a->vc_config, *bc = &b->vc_config;

	return (strcmp(a->vc_port, b->vc_port) == 0 ||
	    (ac->ac_fd == -1 ? bc->ac_fd == -1 &&
	    strcmp(ac->ac_path, bc->ac_path) == 0 : ac->ac_fd == bc->ac_fd));
}

/* Leave an adapter as it is, or not there. */
static void
leave(struct valed_change *vc, const struct adapter_config *ac,
    const char *why)
{
	const struct valed_change *old = find(known, nknown, &vc->vc_config);

	warnx("%s: %s: %s: the adapter %s", ac->ac_where, ac->ac_backend, why,
	    old == NULL || old->vc_values[0] == '\0' ?
	    "is not added" : "stays as it was");
	if (old != NULL)
		*vc = *old;
	else
		absent(vc);
}

/* The serving process can open no TAP interface any more. */
static void
leave_taps(const struct valed_options *opt, struct valed_change *new)
{
	unsigned int i;

	for (i = 0; i < opt->vo_nadapters; i++)
		if (added(&new[i]) && strncmp(opt->vo_adapters[i].ac_backend,
		    "tap", 3) == 0)
			leave(&new[i], &opt->vo_adapters[i],
			    "takes a new start of valed");
}

/* Leave one that would be where another one stays.  False: there is none. */
static bool
leave_clash(const struct valed_options *opt, struct valed_change *new)
{
	unsigned int i, j;

	for (i = 0; i < opt->vo_nadapters; i++)
		for (j = 0; added(&new[i]) && j < opt->vo_nadapters; j++)
			if (!added(&new[j]) && new[j].vc_values[0] != '\0' &&
			    clash(&new[i], &new[j])) {
				leave(&new[i], &opt->vo_adapters[i],
				    "another adapter keeps its port or "
				    "socket");
				return (true);
			}
	return (false);
}

/* Reserve the ports of adapters that are added, before anything is changed. */
static void
ports_reserve(const struct valed_options *opt, struct valed_change *new)
{
	struct valed_change reserve;
	unsigned int i;

	for (i = 0; i < opt->vo_nadapters; i++) {
		if (!added(&new[i]))
			continue;
		reserve = new[i];
		reserve.vc_what = VALED_RESERVE;
		if (!change(&reserve))
			leave(&new[i], &opt->vo_adapters[i],
			    "the port is open already, or another user "
			    "captures its name");
	}
	while (leave_clash(opt, new))
		continue;
}

/* Have the serving process remove and add adapters. */
static void
changes(struct valed_change *new, unsigned int n)
{
	struct valed_change *vc, remove;

	for (vc = known; vc < known + nknown; vc++) {
		if (same(vc, find(new, n, &vc->vc_config)))
			continue;
		remove = *vc;
		remove.vc_what = VALED_REMOVE;
		(void)change(&remove);
	}
	for (vc = new; vc < new + n; vc++) {
		if (added(vc) && !change(vc)) {
			valed_error_set("%s: %s: the adapter cannot be started",
			    vc->vc_where, vc->vc_port);
			valed_socket_remove(vc->vc_config.ac_path);
			absent(vc);
		}
	}
	for (vc = known; vc < known + nknown; vc++) {
		if (!has_path(new, n, &vc->vc_config))
			valed_socket_remove(vc->vc_config.ac_path);
	}
	end_send(valed_error());
}

/* Without the guard's sockets, valed's would not look unused when it ends. */
static void
sockets_close(struct valed_change *vc, unsigned int n)
{
	struct valed_change *end = vc + n;

	for (; vc < end; vc++) {
		if (vc->vc_config.ac_fd == -1 && vc->vc_config.ac_listen != -1)
			close(vc->vc_config.ac_listen);
		vc->vc_config.ac_listen = -1;
	}
}

static void
options_free(struct valed_options *opt)
{
	unsigned int i;

	for (i = 0; i < opt->vo_nadapters; i++)
		free(__DECONST(char *, opt->vo_adapters[i].ac_where));
	for (i = 0; i < opt->vo_nhostifs; i++)
		free(__DECONST(char *, opt->vo_hostifs[i].hc_port));
	free(opt->vo_hostifs);
	free(opt->vo_adapters);
}

/* In the child: read the configuration, and carry out what has changed. */
static void
reload(void)
{
	struct valed_options opt;
	struct valed_change *new;

	valed_sockets_keep();
	valed_options(guard_argc, guard_argv, &opt);
	new = describe_all(&opt);
	leave_taps(&opt, new);
	ports_reserve(&opt, new);
	sockets_open(&opt, new);
	changes(new, opt.vo_nadapters);
	sockets_close(new, opt.vo_nadapters);
	free(known);
	known = new;
	nknown = opt.vo_nadapters;
	options_free(&opt);
}

/* The child has carried it out, and is the guard now. */
static void
reload_done(int fd)
{
	valed_error_begin(-1);
	/* If nobody reads it, there is no other guard any more. */
	while (write(fd, "", 1) == -1 && errno != EPIPE)
		continue;
	close(fd);
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

/* Reload in a child, which takes this process's place if it succeeds. */
static void
reload_fork(void)
{
	char why[VALED_WHY_SIZE];
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) == -1 || (pid = fork()) == -1) {
		snprintf(why, sizeof(why), "reload: %s", strerror(errno));
		warnx("%s", why);
		end_send(why);
		return;
	}
	if (pid == 0) {
		close(fds[0]);
		valed_error_begin(fds[1]);
		reload();
		reload_done(fds[1]);
		return;
	}
	close(fds[1]);
	if (reload_wait(fds[0], why))
		_exit(EX_OK);
	close(fds[0]);
	end_send(why);
}

/* An adapter of the start is not there.  A client may have the process. */
static void
order_absent(const struct guard_order *go)
{
	const struct adapter_config place = { .ac_bus = go->go_bus,
	    .ac_slot = go->go_slot, .ac_func = go->go_func };
	struct valed_change *vc = find(known, nknown, &place);

	if (vc == NULL)
		return;
	valed_socket_remove(vc->vc_config.ac_path);
	absent(vc);
}

/* The guard process. */
static void __dead2
guard(void)
{
	struct guard_order go;
	sigset_t all;
	ssize_t n;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "valed-guard");
	do {
		n = recv(guard_fd, &go, sizeof(go), 0);
		if (n == sizeof(go) && go.go_what == GUARD_RELOAD)
			reload_fork();
		else if (n == sizeof(go))
			order_absent(&go);
	} while (n == sizeof(go) || (n == -1 && errno == EINTR));
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
		ac->ac_listen = ac->ac_fd != -1 ? ac->ac_fd : socket_open(ac);
	if (opt->vo_control != NULL)
		control_open(opt->vo_control);
	known = describe_all(opt);
	nknown = opt->vo_nadapters;
	/* Nobody waits for the guard, of which each reload makes a new one. */
	signal(SIGCHLD, SIG_IGN);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1 ||
	    (pid = fork()) == -1) {
		valed_sockets_drop();
		err(EX_OSERR, "guard");
	}
	guard_fd = fds[pid == 0];
	close(fds[pid != 0]);
	if (pid == 0) {
		sockets_close(known, nknown);
		if (opt->vo_control != NULL && opt->vo_control->co_fd == -1)
			close(opt->vo_control->co_listen);
		guard();
	}
	free(known);
	known = NULL;
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
valed_guard_reload(void)
{
	const struct guard_order go = { .go_what = GUARD_RELOAD };

	return (send(guard_fd, &go, sizeof(go), MSG_NOSIGNAL) ==
	    (ssize_t)sizeof(go));
}

void
valed_guard_absent(const struct adapter_config *ac)
{
	const struct guard_order go = { .go_what = GUARD_ABSENT,
	    .go_bus = ac->ac_bus, .go_slot = ac->ac_slot,
	    .go_func = ac->ac_func };

	while (send(guard_fd, &go, sizeof(go), MSG_NOSIGNAL) == -1 &&
	    (errno == EINTR || errno == ENOBUFS || errno == ENOMEM))
		continue;
}

static void
change_drop_fd(void *arg __unused, int fd)
{
	close(fd);
}

bool
valed_guard_change(struct valed_change *vc)
{
	union {
		struct cmsghdr	align;
		char		buf[PEER_FDS_SPACE(1)];
	} control;
	struct iovec iov = { vc, sizeof(*vc) };
	int *fd = &vc->vc_config.ac_listen;
	struct peer_fds mf = { .mf_fd = fd, .mf_max = 1,
	    .mf_drop = change_drop_fd };
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
	*fd = -1;
	vc->vc_lost = !peer_fds_take(&msg, &mf);
	return (true);
}

void
valed_guard_answer(int error)
{
	/* The guard's child waits for it. */
	while (send(guard_fd, &error, sizeof(error), MSG_NOSIGNAL) == -1 &&
	    (errno == EINTR || errno == ENOBUFS || errno == ENOMEM))
		continue;
}

void
valed_guard_end(void)
{
	struct valed_change vc;

	shutdown(guard_fd, SHUT_WR);
	while (valed_guard_change(&vc)) {
		if (vc.vc_config.ac_listen != -1)
			close(vc.vc_config.ac_listen);
	}
}
