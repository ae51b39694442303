/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard, a second process outside of the sandbox, without clients.
 *
 *	serving process			guard
 *	   | -- read -------------------->| options
 *	   |<--------- lists, or error ---|
 *	   | -- socket, opener, open ---->|
 *	   |<--------------- descriptor --|
 *	   | -- unlink ------------------>|
 *
 * The sandbox allows no file operations, so the guard does them: it reads the
 * configuration, with the functions of the start; creates the sockets of
 * adapters, starts their openers and opens interfaces, if the configuration
 * that it has read itself has them; and removes sockets that valed has created.
 * A client may have taken over the serving process: nothing else that this
 * sends has an effect.  What is done with all that, and when, the serving
 * process knows alone (valed_reload.c).
 *
 * The guard removes the sockets when the serving process ends, however it ends:
 * the end of their connection tells it.  With a store (valed_store.h) the next
 * process has them, but those that no adapter of the configuration has.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <net/if.h>

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
#include "valed_config.h"
#include "valed_control.h"
#include "valed_guard.h"
#include "valed_opener.h"
#include "valed_options.h"
#include "valed_serve.h"
#include "valed_socket.h"
#include "valed_store.h"
#include "valed_why.h"

/* Between two calls of watch() while the guard works, ms. */
#define	WATCH_MS	10

/* What the serving process asks for. */
struct guard_request {
	enum {
		GUARD_READ,		/* the configuration again */
		GUARD_SOCKET,		/* of the adapter at grq_place */
		GUARD_OPENER,		/* the same */
		GUARD_OPEN,		/* the interface of the port grq_text */
		GUARD_WHERE,		/* of grq_variable at grq_place */
		GUARD_UNLINK,		/* the path grq_text */
		GUARD_REMOVE		/* with a store: remove the sockets at
					   the end; no reply */
	}		grq_what;
	unsigned int	grq_place;	/* valed_place() */
	int		grq_variable;	/* VALED_V_* */
	char		grq_text[VALED_PATH_SIZE];
};
_Static_assert(VALED_PATH_SIZE >= VALE_NAME_SIZE, "a port's name fits");

/* The reply, with descriptors if there is no error. */
struct guard_reply {
	int		grp_error;	/* 0, or an errno, and grp_why */
	struct valed_why grp_why;	/* also a warning, or where */
	struct hostif_fds grp_hostif;	/* GUARD_OPEN */
};

/* Settings of a configuration, at most. */
#define	GUARD_SETTINGS	(VALED_LINES_MAX + VALED_MAXADAPTERS * VALE_NSETTINGS)

/* What GUARD_READ has read: the guard writes it, and reads none of it. */
static struct guard_lists {
	unsigned int	gl_nadapters;
	unsigned int	gl_nhostifs;
	unsigned int	gl_nsettings;
	struct adapter_config gl_adapter[VALED_MAXADAPTERS];
	struct hostif_config gl_hostif[HOSTIF_MAX];
	struct valed_setting gl_setting[GUARD_SETTINGS];
} *guard_lists;			/* memory that both processes have */

/* The connection: this process's end. */
static int	guard_fd = -1;

/*
 * The guard.
 */

static int	guard_argc;
static char	**guard_argv;
/* The configuration that was read last without an error; and whether what was
   read last is that. */
static struct valed_options guard_options;
static bool	guard_read = true;
/* The guard removes the sockets at the end. */
static bool	guard_removes;

/* Find the adapter at a place, or return NULL with errno. */
static const struct adapter_config *
adapter_at(unsigned int place)
{
	const struct adapter_config *ac = guard_options.vo_adapters;
	unsigned int n = guard_options.vo_nadapters;

	for (; n > 0 && guard_read; ac++, n--)
		if (valed_place(ac) == place)
			return (ac);
	errno = ENOENT;
	return (NULL);
}

/* Return whether an adapter of the configuration listens there. */
static bool
is_listening(const char *path)
{
	const struct adapter_config *ac = guard_options.vo_adapters;
	unsigned int n = guard_options.vo_nadapters;

	for (; n > 0; ac++, n--)
		if (strcmp(ac->ac_path, path) == 0)
			return (true);
	return (false);
}

/* Create the socket of an adapter, or duplicate the inherited one. */
static int
socket_open(const struct adapter_config *ac, struct valed_why *why)
{
	const struct valed_node *vn = valed_config_find(ac->ac_bus,
	    ac->ac_slot, ac->ac_func);
	const struct valed_where where = valed_config_where(vn, VALED_V_PATH);
	char option[PATH_MAX];

	if (ac->ac_fd != -1)
		return (fcntl(ac->ac_fd, F_DUPFD_CLOEXEC, 0));
	snprintf(option, sizeof(option), "%s%s: path=", where.wh_option,
	    where.wh_text);
	return (valed_socket_open(option, ac->ac_path, SOCK_STREAM, NULL, why));
}

/* Start the process that opens the port of an adapter. */
static int
opener_start(const struct adapter_config *ac, struct valed_why *why)
{
	const int fd = valed_opener_start(ac);

	if (fd == -1)
		valed_why_set(why, EX_OSERR, "%s: process that opens the port: "
		    "%s", ac->ac_where, strerror(errno));
	return (fd);
}

/* Read the configuration.  Returns false with *why. */
static bool
configuration_read(struct valed_why *why)
{
	struct guard_lists *gl = guard_lists;
	struct valed_options opt;

	guard_read = valed_options(guard_argc, guard_argv, &opt, why);
	if (!guard_read)
		return (false);
	valed_options_free(&guard_options);
	guard_options = opt;
	gl->gl_nadapters = opt.vo_nadapters;
	gl->gl_nhostifs = opt.vo_nhostifs;
	gl->gl_nsettings = opt.vo_settings.vss_n;
	memcpy(gl->gl_adapter, opt.vo_adapters,
	    opt.vo_nadapters * sizeof(gl->gl_adapter[0]));
	memcpy(gl->gl_hostif, opt.vo_hostifs,
	    opt.vo_nhostifs * sizeof(gl->gl_hostif[0]));
	if (opt.vo_settings.vss_n > 0)
		memcpy(gl->gl_setting, opt.vo_settings.vss_list,
		    opt.vo_settings.vss_n * sizeof(gl->gl_setting[0]));
	return (true);
}

/* Open the interface that the configuration has for a port. */
static void
interface_open(const char *port, struct guard_reply *gp)
{
	const struct hostif_config *hc = guard_options.vo_hostifs;
	unsigned int n = guard_options.vo_nhostifs;
	char *line = gp->grp_why.wy_text;

	for (; n > 0 && strcmp(hc->hc_port, port) != 0; hc++)
		n--;
	if (n == 0) {
		gp->grp_error = ENOENT;
		valed_why_set(&gp->grp_why, EX_CONFIG, "not in the "
		    "configuration");
	} else if (hostif_open(hostif_config_name(hc), hc->hc_kind,
	    &gp->grp_hostif, line) == -1)
		gp->grp_error = if_nametoindex(hostif_config_name(hc)) == 0 ?
		    ENXIO : EIO;
	else
		(void)hostif_warning(&gp->grp_hostif, line);
}

/* Say where a variable of an adapter was set. */
static void
say_where(const struct guard_request *gr, struct guard_reply *gp)
{
	const struct adapter_config *ac = adapter_at(gr->grq_place);
	const struct valed_node *vn;
	struct valed_where where;

	gp->grp_error = ENOENT;
	if (ac == NULL || gr->grq_variable < 0 ||
	    gr->grq_variable >= VALED_NVARIABLES)
		return;
	vn = valed_config_find(ac->ac_bus, ac->ac_slot, ac->ac_func);
	where = valed_config_where(vn, gr->grq_variable);
	snprintf(gp->grp_why.wy_text, sizeof(gp->grp_why.wy_text), "%s%s",
	    where.wh_option, where.wh_text);
	if (vn->nd_variable[gr->grq_variable].nt_value != NULL)
		gp->grp_error = 0;
}

/* Do what was asked for.  Returns a descriptor for the reply, or -1. */
static int
request_do(const struct guard_request *gr, struct guard_reply *gp)
{
	const struct adapter_config *ac;
	int fd = -1;

	switch (gr->grq_what) {
	case GUARD_READ:
		if (!configuration_read(&gp->grp_why))
			gp->grp_error = EINVAL;
		return (-1);
	case GUARD_SOCKET:
		ac = adapter_at(gr->grq_place);
		if (ac != NULL)
			fd = socket_open(ac, &gp->grp_why);
		break;
	case GUARD_OPENER:
		ac = adapter_at(gr->grq_place);
		if (ac != NULL && valed_is_remote(ac))
			fd = opener_start(ac, &gp->grp_why);
		break;
	case GUARD_OPEN:
		interface_open(gr->grq_text, gp);
		return (-1);
	case GUARD_UNLINK:
		valed_socket_remove(gr->grq_text);
		return (-1);
	default:
		say_where(gr, gp);
		return (-1);
	}
	if (fd != -1)
		return (fd);
	gp->grp_error = EIO;
	valed_why_set(&gp->grp_why, EX_OSERR, "%s", strerror(errno));
	return (-1);
}

/* Answer a request.  The descriptors are the receiver's alone. */
static void
request_answer(const struct guard_request *gr)
{
	static struct guard_reply gp;
	int fd;

	memset(&gp, 0, sizeof(gp));
	fd = request_do(gr, &gp);
	if (fd != -1) {
		gp.grp_hostif.hf_fd[0] = fd;
		gp.grp_hostif.hf_nfds = 1;
	}
	if (peer_fds_send(guard_fd, &gp, sizeof(gp), gp.grp_hostif.hf_fd,
	    gp.grp_hostif.hf_nfds, PEER_FDS_WAIT) != -1) {
		hostif_close(&gp.grp_hostif);
		return;
	}
	/* Others have too many descriptors in flight. */
	gp.grp_error = errno;
	valed_why_set(&gp.grp_why, EX_OSERR, "%s", strerror(gp.grp_error));
	hostif_close(&gp.grp_hostif);
	(void)peer_fds_send(guard_fd, &gp, sizeof(gp), NULL, 0, PEER_FDS_WAIT);
}

/* Receive a request.  Returns false if the serving process has ended. */
static bool
request_receive(struct guard_request *gr)
{
	ssize_t n;

	do
		n = recv(guard_fd, gr, sizeof(*gr), 0);
	while (n == -1 && errno == EINTR);
	gr->grq_text[sizeof(gr->grq_text) - 1] = '\0';
	return (n == (ssize_t)sizeof(*gr));
}

/* Run the guard process. */
static void __dead2
guard(void)
{
	struct guard_request gr;
	sigset_t all;

	guard_removes = !valed_store_active();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	prctl(PR_SET_NAME, "valed-guard");
	while (request_receive(&gr)) {
		if (gr.grq_what == GUARD_REMOVE)
			guard_removes = true;
		else
			request_answer(&gr);
	}
	if (guard_removes)
		valed_sockets_remove();
	else
		valed_sockets_prune(is_listening);
	_exit(EX_OK);
}

/*
 * The start.
 */

/* Create the control socket, unless it is inherited. */
static bool
control_open(struct control_config *co, struct valed_why *why)
{
	co->co_listen = co->co_fd != -1 ? co->co_fd : valed_socket_open("-c ",
	    co->co_path, SOCK_SEQPACKET, &co->co_access, why);
	return (co->co_listen != -1);
}

/* Create the sockets, and start the openers. */
static bool
all_open(struct valed_options *opt, struct valed_why *why)
{
	struct adapter_config *ac = opt->vo_adapters;
	struct adapter_config *end = ac + opt->vo_nadapters;

	for (; ac < end; ac++) {
		ac->ac_listen = ac->ac_fd != -1 ? ac->ac_fd :
		    socket_open(ac, why);
		if (ac->ac_listen == -1)
			return (false);
	}
	if (opt->vo_control != NULL && !control_open(opt->vo_control, why))
		return (false);
	for (ac = opt->vo_adapters; ac < end; ac++) {
		if (!valed_is_remote(ac))
			continue;
		ac->ac_opener = opener_start(ac, why);
		if (ac->ac_opener == -1)
			return (false);
	}
	return (true);
}

/*
 * Close what the serving process has: without the guard's sockets, that
 * process's would not look unused when it ends, and openers would not see that
 * it has.
 */
static void
all_close(const struct valed_options *opt)
{
	const struct adapter_config *ac = opt->vo_adapters;
	unsigned int n = opt->vo_nadapters;

	for (; n > 0; ac++, n--) {
		if (ac->ac_fd == -1)
			close(ac->ac_listen);
		if (valed_is_remote(ac))
			close(ac->ac_opener);
	}
	if (opt->vo_control != NULL && opt->vo_control->co_fd == -1)
		close(opt->vo_control->co_listen);
}

/* Start the guard's process. */
static bool
guard_fork(const struct valed_options *opt, struct valed_why *why)
{
	int fds[2];
	pid_t pid;

	guard_lists = mmap(NULL, sizeof(*guard_lists), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (guard_lists == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == -1 ||
	    (pid = fork()) == -1)
		return (valed_why_set(why, EX_OSERR, "guard: %s",
		    strerror(errno)));
	guard_fd = fds[pid == 0];
	close(fds[pid != 0]);
	if (pid == 0) {
		guard_options = *opt;
		valed_store_forget();
		all_close(opt);
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
	/* Children are never waited for. */
	signal(SIGCHLD, SIG_IGN);
	if (all_open(opt, why) && guard_fork(opt, why))
		return (true);
	valed_sockets_remove();
	return (false);
}

/*
 * The serving process.
 */

int
valed_guard_fd(void)
{
	return (guard_fd);
}

static bool
request_send(const struct guard_request *gr)
{
	ssize_t n;

	/* The sandbox has no sendmsg(2) here. */
	do
		n = send(guard_fd, gr, sizeof(*gr), MSG_NOSIGNAL);
	while (n == -1 && (errno == EINTR || errno == ENOBUFS ||
	    errno == ENOMEM));
	return (n != -1);
}

/* Receive a reply.  Returns false if there is none, or it is not whole. */
static bool
reply_receive(struct guard_reply *gp)
{
	const struct iovec iov = { gp, sizeof(*gp) };
	int fds[HOSTIF_FDS_MAX];
	struct peer_fds mf = { .mf_fd = fds, .mf_max = HOSTIF_FDS_MAX };
	bool all;

	if (peer_fds_recv(guard_fd, &iov, 1, &mf, 0) !=
	    (ssize_t)sizeof(*gp)) {
		errno = EPIPE;
		return (false);
	}
	all = !mf.mf_lost && mf.mf_n == gp->grp_hostif.hf_nfds;
	memcpy(gp->grp_hostif.hf_fd, fds, mf.mf_n * sizeof(fds[0]));
	gp->grp_hostif.hf_nfds = mf.mf_n;
	if (all)
		return (true);
	hostif_close(&gp->grp_hostif);
	errno = EMFILE;
	return (false);
}

/* Have *gp say why there is no reply.  Returns false. */
static bool
reply_none(struct guard_reply *gp)
{
	const int error = errno;

	memset(gp, 0, sizeof(*gp));
	gp->grp_error = error;
	valed_why_set(&gp->grp_why, EX_OSERR, "%s", error == EPIPE ?
	    VALED_GUARD_GONE : strerror(error));
	return (false);
}

/*
 * Send a request, and wait for its reply.  Returns whether there is one without
 * an error.
 */
static bool
ask(const struct guard_request *gr, struct guard_reply *gp)
{
	struct pollfd pfd = { .fd = guard_fd, .events = POLLIN };
	int n;

	if (!request_send(gr))
		return (reply_none(gp));
	while ((n = poll(&pfd, 1, WATCH_MS)) == 0 ||
	    (n == -1 && errno == EINTR))
		valed_serve_watch(NULL);
	return (reply_receive(gp) ? gp->grp_error == 0 : reply_none(gp));
}

/* Ask for a descriptor.  Returns the descriptor, or -1 with *why. */
static int
ask_fd(int what, const struct adapter_config *ac, struct valed_why *why)
{
	const struct guard_request gr = { .grq_what = what,
	    .grq_place = valed_place(ac) };
	static struct guard_reply gp;

	if (ask(&gr, &gp))
		return (gp.grp_hostif.hf_fd[0]);
	*why = gp.grp_why;
	return (-1);
}

bool
valed_guard_read(void)
{
	const struct guard_request gr = { .grq_what = GUARD_READ };

	return (request_send(&gr));
}

/* Copy a list to memory from malloc(3).  Returns NULL with errno. */
static void *
list_copy(const void *list, unsigned int n, size_t size)
{
	void *copy = calloc(MAX(n, 1), size);

	return (copy == NULL ? NULL : memcpy(copy, list, n * size));
}

bool
valed_guard_options(struct valed_options *opt, struct valed_why *why)
{
	const struct guard_lists *gl = guard_lists;
	static struct guard_reply gp;

	if (!reply_receive(&gp))
		(void)reply_none(&gp);
	*why = gp.grp_why;
	errno = gp.grp_error;
	if (gp.grp_error != 0)
		return (false);
	*opt = (struct valed_options){ .vo_nadapters = gl->gl_nadapters,
	    .vo_nhostifs = gl->gl_nhostifs };
	opt->vo_settings.vss_n = opt->vo_settings.vss_max = gl->gl_nsettings;
	opt->vo_adapters = list_copy(gl->gl_adapter, gl->gl_nadapters,
	    sizeof(gl->gl_adapter[0]));
	opt->vo_hostifs = list_copy(gl->gl_hostif, gl->gl_nhostifs,
	    sizeof(gl->gl_hostif[0]));
	opt->vo_settings.vss_list = list_copy(gl->gl_setting,
	    gl->gl_nsettings, sizeof(gl->gl_setting[0]));
	if (opt->vo_adapters != NULL && opt->vo_hostifs != NULL &&
	    opt->vo_settings.vss_list != NULL)
		return (true);
	valed_why_set(why, EX_OSERR, "%s", strerror(errno));
	valed_options_free(opt);
	return (false);
}

int
valed_guard_socket(const struct adapter_config *ac, struct valed_why *why)
{
	return (ask_fd(GUARD_SOCKET, ac, why));
}

int
valed_guard_opener(const struct adapter_config *ac, struct valed_why *why)
{
	return (ask_fd(GUARD_OPENER, ac, why));
}

bool
valed_guard_open(const char *port, struct hostif_fds *fds,
    char line[HOSTIF_WHY])
{
	struct guard_request gr = { .grq_what = GUARD_OPEN };
	static struct guard_reply gp;
	bool open;

	strlcpy(gr.grq_text, port, sizeof(gr.grq_text));
	open = ask(&gr, &gp);
	strlcpy(line, gp.grp_why.wy_text, HOSTIF_WHY);
	*fds = gp.grp_hostif;
	errno = gp.grp_error;
	return (open);
}

bool
valed_guard_where(const struct adapter_config *ac, int variable,
    char where[VALED_WHERE_SIZE])
{
	const struct guard_request gr = { .grq_what = GUARD_WHERE,
	    .grq_place = valed_place(ac), .grq_variable = variable };
	static struct guard_reply gp;
	const bool set = ask(&gr, &gp);

	strlcpy(where, gp.grp_why.wy_text, VALED_WHERE_SIZE);
	return (set);
}

bool
valed_guard_unlink(const char *path)
{
	struct guard_request gr = { .grq_what = GUARD_UNLINK };
	static struct guard_reply gp;

	strlcpy(gr.grq_text, path, sizeof(gr.grq_text));
	return (ask(&gr, &gp));
}

void
valed_guard_end(bool keep)
{
	const struct guard_request gr = { .grq_what = GUARD_REMOVE };
	static struct guard_reply gp;

	if (!keep && valed_store_active())
		(void)request_send(&gr);
	shutdown(guard_fd, SHUT_WR);
	for (;;) {
		if (reply_receive(&gp))
			hostif_close(&gp.grp_hostif);
		else if (errno == EPIPE)
			return;
	}
}
