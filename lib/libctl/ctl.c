/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: connections and requests.  See ctl.h.
 *
 * The client is not trusted: a packet of the wrong size, kind or version is
 * answered with an error, and a client that does not read its replies is
 * dropped.  What it has not read stays in its queue as long as it likes, and
 * descriptors there count as this user's that are in flight (unix(7),
 * ETOOMANYREFS): so a connection gets no more of them before it has received
 * the last ones, and keeps its slot until then, also if it has ended.
 *
 * Descriptors that come with a request that takes none are closed by
 * a thread that may wait for that (peer_close.h).
 *
 * close(2) of a connection is done before valed has closed its port.  Who asks
 * what there is therefore waits for the connections whose clients have left
 * (ctl_settle()); so does a request that finds no place, or a name that is
 * taken, and is tried once more.
 */

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <linux/sock_diag.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_impl.h"
#include "ctl_pass.h"
#include "hostif.h"
#include "vale_memory.h"
#include "peer_fds.h"
#include "peer_accept.h"
#include "peer_close.h"

/* Space for the library's calls; frames are in the ports. */
#define	CTL_STACK	(256 * 1024)
/* How long ctl_settle() waits, seconds. */
#define	CTL_SETTLE_S	1

/*
 * Who may ask for what: the table in valed(8), CONTROL SOCKET, has a line for
 * each request.
 */
enum ctl_needs {
	NEEDS_SELF,	/* what this connection has: nobody else's is named */
	NEEDS_OPEN,	/* a name: ctl_owner_claim() */
	NEEDS_SEEN,	/* shows a program its user's ports: ctl_owner_sees() */
	NEEDS_PORT,	/* nr_name is a port of the program's user */
	NEEDS_ANY,	/* nothing of anybody */
	NEEDS_ADMIN	/* administrators */
};

static const struct ctl_request {
	uint16_t	type;		/* nr_reqtype */
	uint16_t	size;		/* bytes of the body */
	int		(*fn)(struct ctl_conn *, size_t *);
	enum ctl_needs	needs;
	const char	*name;		/* in valed(8) */
} requests[] = {
	{ NETMAP_REQ_REGISTER, sizeof(struct nmreq_register), ctl_register,
	    NEEDS_OPEN, "REGISTER" },
	{ NETMAP_REQ_PORT_INFO_GET, 0, ctl_info, NEEDS_SEEN, "PORT_INFO_GET" },
	{ NETMAP_REQ_PORT_HDR_SET, sizeof(struct nmreq_port_hdr),
	    ctl_header_set, NEEDS_SELF, "PORT_HDR_SET" },
	{ NETMAP_REQ_PORT_HDR_GET, 0, ctl_header_get, NEEDS_SELF,
	    "PORT_HDR_GET" },
	{ NETMAP_REQ_VALE_LIST, sizeof(struct nmreq_vale_list), ctl_list,
	    NEEDS_SEEN, "VALE_LIST" },
	{ VALE_WIRE_PORTS, sizeof(struct vale_wire_page), ctl_ports, NEEDS_SEEN,
	    "PORTS" },
	{ VALE_WIRE_ADDRS, sizeof(struct vale_wire_page), ctl_addrs, NEEDS_SEEN,
	    "ADDRS" },
	{ VALE_WIRE_DEVICES, sizeof(struct vale_wire_page), ctl_devices,
	    NEEDS_SEEN, "DEVICES" },
	{ VALE_WIRE_SET, sizeof(struct vale_wire_value), ctl_set, NEEDS_ADMIN,
	    "SET" },
	{ VALE_WIRE_MIRROR, sizeof(struct vale_wire_mirror), ctl_mirror,
	    NEEDS_PORT, "MIRROR" },
	{ VALE_WIRE_PORT_SETTINGS, 0, ctl_settings, NEEDS_PORT,
	    "PORT_SETTINGS" },
	{ VALE_WIRE_SWITCH_SETTINGS, 0, ctl_settings, NEEDS_ANY,
	    "SWITCH_SETTINGS" },
	{ VALE_WIRE_FILTER, sizeof(struct vale_wire_filter), ctl_filter,
	    NEEDS_ANY, "FILTER" },
	{ VALE_WIRE_MISSED, 0, ctl_missed, NEEDS_SELF, "MISSED" },
	{ VALE_WIRE_INFO, sizeof(struct nmreq_port_info_get), ctl_info_any,
	    NEEDS_SEEN, "INFO" },
	{ VALE_WIRE_SHARE, 0, ctl_share, NEEDS_SELF, "SHARE" },
	{ NETMAP_REQ_VALE_ATTACH, sizeof(struct hostif_fds), ctl_attach,
	    NEEDS_ADMIN, "VALE_ATTACH" },
	{ NETMAP_REQ_VALE_DETACH, 0, ctl_detach, NEEDS_ADMIN, "VALE_DETACH" },
	{ VALE_WIRE_RELOAD, 0, ctl_reload, NEEDS_ADMIN, "RELOAD" },
	{ VALE_WIRE_REPLACE, 0, ctl_reload, NEEDS_ADMIN, "REPLACE" },
	{ VALE_WIRE_RESTART, 0, ctl_reload, NEEDS_ADMIN, "RESTART" },
};

_Static_assert(CTL_MAX <= VALE_MEMORIES, "a connection has a memory at most");

static int ctl_listen = -1;
static int (*ctl_drop)(void);	/* of ctl_start() */
static sem_t ctl_ready;		/* the thread has dropped its privileges, */
static int ctl_error;		/* or this errno */
static sem_t ctl_goes;		/* ctl_go() */
static void (*ctl_changed)(void);	/* of ctl_changes_are() */
static struct ctl_conn ctl_conns[CTL_MAX];
/* cc_open, cc_stuck and cc_serial of all, and cc_fd while it is open. */
static pthread_mutex_t conns_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t conns_left = PTHREAD_COND_INITIALIZER;
/* cc_unread of all.  A thread that has both locks takes this one last. */
static pthread_mutex_t unread_lock = PTHREAD_MUTEX_INITIALIZER;
/* Descriptors that clients have not received: all users, except for
   administrators.  One user has half of them at most. */
static unsigned int unread_max = UINT_MAX;

void
ctl_changes_are(void (*changed)(void))
{
	ctl_changed = changed;
}

int
ctl_why_owner(struct ctl_conn *cc, int error)
{
	switch (error) {
	case EPERM:
		return (ctl_why(cc, error, "the port belongs to another user"));
	case EBUSY:
		return (ctl_why(cc, error, "another user opens the port, or "
		    "captures what has its name"));
	default:
		return (ctl_why(cc, ENXIO, "there is no such port"));
	}
}

/* Carry out a request, if the client may ask for it. */
static int
ctl_do(struct ctl_conn *cc, const struct ctl_request *r, size_t *size)
{
	const char *name = cc->cc_wire->vw_header.nr_name;
	struct ctl_owner *ow;
	int error;

	if (cc->cc_who.cw_admin)
		return (r->fn(cc, size));
	if (r->needs == NEEDS_ADMIN)
		return (ctl_why(cc, EPERM,
		    "only administrators of valed may do that"));
	if (r->needs != NEEDS_PORT)
		return (r->fn(cc, size));
	ow = ctl_owner_pin(name, &cc->cc_who);
	if (ow == NULL)
		return (ctl_why_owner(cc, ctl_owner_refuse(name)));
	error = r->fn(cc, size);
	ctl_owner_unpin(ow);
	return (error);
}

/* Return whether a request changes settings, or attached interfaces. */
static bool
is_change(uint16_t type)
{
	switch (type) {
	case VALE_WIRE_SET:
	case VALE_WIRE_MIRROR:
	case NETMAP_REQ_VALE_ATTACH:
	case NETMAP_REQ_VALE_DETACH:
		return (true);
	default:
		return (false);
	}
}

/* Find the request in a packet of `len' bytes, and carry it out. */
static int
ctl_run(struct ctl_conn *cc, size_t len, size_t *size)
{
	const struct nmreq_header *hdr = &cc->cc_wire->vw_header;
	const struct ctl_request *r;
	int error;

	if (len < sizeof(struct vale_wire) ||
	    cc->cc_wire->vw_magic != VALE_WIRE_MAGIC)
		return (ctl_why(cc, EPROTO,
		    "the request is of another version"));
	if (hdr->nr_version != NETMAP_API)
		return (ctl_why(cc, EINVAL, "netmap API %u, not %u",
		    hdr->nr_version, NETMAP_API));
	if (strnlen(hdr->nr_name, sizeof(hdr->nr_name)) ==
	    sizeof(hdr->nr_name))
		return (ctl_why(cc, EINVAL, "the name does not end"));
	if (hdr->nr_options != 0)
		return (ctl_why(cc, EOPNOTSUPP, "options are not supported"));
	for (r = requests; r < requests + nitems(requests); r++)
		if (r->type == hdr->nr_reqtype)
			break;
	if (r == requests + nitems(requests))
		return (ctl_why(cc, EOPNOTSUPP, "request %u is not supported",
		    hdr->nr_reqtype));
	len -= sizeof(struct vale_wire);
	if (len != r->size && (r->type != VALE_WIRE_SET || len == 0 ||
	    len % r->size != 0))
		return (ctl_why(cc, EINVAL, "request %u has the wrong length",
		    hdr->nr_reqtype));
	cc->cc_size = len;
	error = ctl_do(cc, r, size);
	if (error == 0 && ctl_changed != NULL && cc->cc_who.cw_admin &&
	    is_change(r->type))
		ctl_changed();
	return (error);
}

/* Leave others most of the descriptors that this user may have in flight. */
static void
unread_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0)
		unread_max = MIN(MAX(rl.rlim_cur / 4, 2 * VALE_WIRE_REPLY_FDS),
		    UINT_MAX);
}

/* Return how many descriptors a client has to receive yet.  unread_lock. */
static unsigned int
conn_unread(struct ctl_conn *cc)
{
	uint32_t bytes[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(bytes);

	/* What SIOCOUTQ returns, an ioctl(2). */
	if (cc->cc_unread > 0 && getsockopt(cc->cc_fd, SOL_SOCKET, SO_MEMINFO,
	    bytes, &len) == 0 && bytes[SK_MEMINFO_WMEM_ALLOC] == 0)
		cc->cc_unread = 0;
	return (cc->cc_unread);
}

/* Return whether the client may get the reply's descriptors.  unread_lock. */
static bool
unread_allows(struct ctl_conn *self)
{
	unsigned int all = self->cc_grant.gr_nfds, user = all, n;
	struct ctl_conn *cc;

	if (conn_unread(self) > 0)
		return (false);
	if (self->cc_who.cw_admin)
		return (true);
	for (cc = ctl_conns; cc < ctl_conns + CTL_MAX; cc++) {
		n = conn_unread(cc);
		all += n;
		if (n > 0 && cc->cc_who.cw_uid == self->cc_who.cw_uid)
			user += n;
	}
	return (all <= unread_max && user <= unread_max / 2);
}

/* Send the reply and its descriptors, if the client has received others. */
static bool
reply_pass(struct ctl_conn *cc, size_t len)
{
	bool sent = false;

	pthread_mutex_lock(&unread_lock);
	if (unread_allows(cc)) {
		cc->cc_unread = cc->cc_grant.gr_nfds;
		sent = ctl_pass(cc->cc_fd, cc->cc_wire, len,
		    cc->cc_grant.gr_fds, cc->cc_grant.gr_nfds);
	}
	pthread_mutex_unlock(&unread_lock);
	return (sent);
}

/* Send the reply, with the descriptors, and close those. */
static bool
ctl_reply(struct ctl_conn *cc, size_t size)
{
	const size_t len = sizeof(struct vale_wire) + size;
	bool sent;

	if (cc->cc_grant.gr_nfds > 0)
		sent = reply_pass(cc, len);
	else
		do {
			sent = send(cc->cc_fd, cc->cc_wire, len,
			    MSG_NOSIGNAL | MSG_DONTWAIT) != -1;
		} while (!sent && errno == EINTR);
	while (cc->cc_grant.gr_nfds > 0)
		close(cc->cc_grant.gr_fds[--cc->cc_grant.gr_nfds]);
	return (sent);
}

/* Close a descriptor of whatever kind that a client passed. */
static void
passed_close(void *arg __unused, int fd)
{
	if (!peer_close(fd))
		close(fd);
}

/* Close those that the request has not kept. */
static void
ctl_close_passed(struct ctl_conn *cc)
{
	struct vale_grant *gr = &cc->cc_grant;

	while (gr->gr_npassed > 0)
		passed_close(NULL, gr->gr_passed[--gr->gr_npassed]);
}

/* Receive a request and answer it.  False: the client has left. */
static bool
ctl_serve_request(struct ctl_conn *cc)
{
	const struct iovec iov = { cc->cc_wire, VALE_WIRE_MAX };
	struct peer_fds mf = { .mf_fd = cc->cc_grant.gr_passed,
	    .mf_max = nitems(cc->cc_grant.gr_passed), .mf_drop = passed_close };
	size_t size = 0;
	ssize_t n;

	n = peer_fds_recv(cc->cc_fd, &iov, 1, &mf, MSG_DONTWAIT);
	if (n == -1)
		return (errno == EAGAIN);
	cc->cc_grant.gr_npassed = mf.mf_n;
	if (n == 0) {
		ctl_close_passed(cc);
		return (false);
	}
	memset((char *)cc->cc_wire + n, 0, VALE_WIRE_MAX - n);
	memset(cc->cc_wire->vw_why, 0, sizeof(cc->cc_wire->vw_why));
	cc->cc_wire->vw_error = !mf.mf_lost ? ctl_run(cc, n, &size) :
	    ctl_why(cc, EMFILE, "not all descriptors of the request came");
	ctl_close_passed(cc);
	cc->cc_wire->vw_magic = VALE_WIRE_MAGIC;
	return (ctl_reply(cc, cc->cc_wire->vw_error == 0 ? size : 0));
}

/* Return whether the client has closed the connection. */
static bool
conn_left(const struct ctl_conn *cc)
{
	struct pollfd pfd = { .fd = cc->cc_fd };

	return (poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLHUP) != 0);
}

/*
 * Wait until the connections are closed whose clients have left.  A connection
 * looks at its own client last, so it waits only for clients that left before
 * that one: no two wait for each other.  A connection whose thread does not
 * end, as one that sends from memory that its client has withdrawn, is waited
 * for once, and for CTL_SETTLE_S at most.
 */
void
ctl_settle(const struct ctl_conn *self)
{
	struct timespec until;
	uint64_t left[CTL_MAX];
	unsigned int i, n = 0;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += CTL_SETTLE_S;
	pthread_mutex_lock(&conns_lock);
	for (i = 0; i < CTL_MAX; i++) {
		left[i] = 0;
		if (ctl_conns[i].cc_open && !ctl_conns[i].cc_stuck &&
		    conn_left(&ctl_conns[i])) {
			left[i] = ctl_conns[i].cc_serial;
			n++;
		}
	}
	if (n > 0 && self != NULL && conn_left(self))
		n = 0;
	for (i = 0; n > 0 && i < CTL_MAX; i++) {
		while (left[i] != 0 && ctl_conns[i].cc_open &&
		    ctl_conns[i].cc_serial == left[i] && error == 0)
			error = pthread_cond_clockwait(&conns_left, &conns_lock,
			    CLOCK_MONOTONIC, &until);
		if (left[i] != 0 && ctl_conns[i].cc_open &&
		    ctl_conns[i].cc_serial == left[i])
			ctl_conns[i].cc_stuck = true;
	}
	pthread_mutex_unlock(&conns_lock);
}

/* Close a connection, with requests that were not read, and what they have. */
static void
conn_shut(int fd, bool reserved)
{
	if (reserved)
		peer_accept_end(fd);
	else
		passed_close(NULL, fd);
}

/*
 * Return whether the client of a connection that has ended has not received all
 * descriptors: then the connection keeps its slot.  conns_lock.
 */
static bool
conn_lingers(struct ctl_conn *cc)
{
	pthread_mutex_lock(&unread_lock);
	cc->cc_lingers = !cc->cc_reserved && conn_unread(cc) > 0;
	if (!cc->cc_lingers)
		cc->cc_unread = 0;
	pthread_mutex_unlock(&unread_lock);
	return (cc->cc_lingers);
}

/* End a connection: its slot is free, unless the connection lingers. */
static void
conn_close(struct ctl_conn *cc)
{
	const bool reserved = cc->cc_reserved;
	const int fd = cc->cc_fd;
	bool lingers;

	ctl_port_close(cc);
	pthread_mutex_lock(&conns_lock);
	free(cc->cc_wire);
	cc->cc_open = false;
	lingers = conn_lingers(cc);
	if (lingers)
		shutdown(fd, SHUT_RDWR);
	else
		atomic_store_rel_32(&cc->cc_used, 0);
	pthread_cond_broadcast(&conns_left);
	pthread_mutex_unlock(&conns_lock);
	if (!lingers)
		conn_shut(fd, reserved);
}

/* Free the slots of connections that linger no longer. */
static void
conns_reap(void)
{
	struct ctl_conn *cc;
	bool ended;

	for (cc = ctl_conns; cc < ctl_conns + CTL_MAX; cc++) {
		pthread_mutex_lock(&conns_lock);
		ended = atomic_load_32(&cc->cc_used) != 0 &&
		    cc->cc_lingers && !conn_lingers(cc);
		pthread_mutex_unlock(&conns_lock);
		if (ended) {
			conn_shut(cc->cc_fd, false);
			cc->cc_used = 0;
		}
	}
}

static void *
ctl_conn_thread(void *arg)
{
	struct ctl_conn *cc = arg;
	struct pollfd pfd = { .fd = cc->cc_fd, .events = POLLIN };

	do {
		if (cc->cc_grant.gr_port != NULL)
			vale_grant_serve(&cc->cc_grant);
		else
			poll(&pfd, 1, -1);
	} while (ctl_serve_request(cc));
	conn_close(cc);
	return (NULL);
}

/*
 * Find a free slot; NULL if there is none.  The last ones are for
 * administrators; a user has half of the others at most.
 */
static struct ctl_conn *
conn_free(const struct ctl_who *who)
{
	const struct ctl_conn *end = ctl_conns + CTL_MAX;
	struct ctl_conn *cc, *found = NULL;
	unsigned int user = 0;

	conns_reap();
	if (!who->cw_admin)
		end -= CTL_ADMIN;
	for (cc = ctl_conns; cc < end; cc++)
		if (atomic_load_acq_32(&cc->cc_used) == 0)
			found = cc;
		else if (!cc->cc_who.cw_admin)
			user += cc->cc_who.cw_uid == who->cw_uid;
	if (!who->cw_admin && user >= CTL_USER_MAX)
		return (NULL);
	return (found);
}

/* Let ctl_settle() find a connection, or not. */
static void
conn_open(struct ctl_conn *cc, bool open)
{
	static uint64_t serial;

	pthread_mutex_lock(&conns_lock);
	cc->cc_serial = ++serial;
	cc->cc_stuck = false;
	cc->cc_open = open;
	if (!open)
		pthread_cond_broadcast(&conns_left);
	pthread_mutex_unlock(&conns_lock);
}

/*
 * Start the thread of a connection, in a free slot.  A connection of the
 * reserve must be an administrator's.
 */
static int
ctl_accept(int fd, bool reserved)
{
	struct ctl_conn *cc;
	struct ctl_who who;
	pthread_attr_t attr;
	pthread_t thread;
	int error = ctl_who(fd, &who);

	if (error != 0)
		return (error);
	if (reserved && !who.cw_admin)
		return (EMFILE);
	cc = conn_free(&who);
	if (cc == NULL) {
		ctl_settle(NULL);
		cc = conn_free(&who);
	}
	if (cc == NULL)
		return (EAGAIN);
	cc->cc_who = who;
	cc->cc_reserved = reserved;
	cc->cc_wire = malloc(VALE_WIRE_MAX);
	if (cc->cc_wire == NULL)
		return (ENOMEM);
	cc->cc_body = cc->cc_wire + 1;
	cc->cc_fd = fd;
	vale_grant_init(&cc->cc_grant, who.cw_uid, who.cw_admin, fd,
	    cc->cc_wire->vw_header.nr_name, cc->cc_wire->vw_why);
	cc->cc_filter = NULL;
	cc->cc_used = 1;
	conn_open(cc, true);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, CTL_STACK);
	error = pthread_create(&thread, &attr, ctl_conn_thread, cc);
	pthread_attr_destroy(&attr);
	if (error != 0) {
		free(cc->cc_wire);
		cc->cc_used = 0;
		conn_open(cc, false);
	}
	return (error);
}

/* Accept connections.  The client of one that finds no place sees its end. */
static void *
ctl_thread(void *arg __unused)
{
	struct pollfd pfd = { .fd = ctl_listen, .events = POLLIN };
	bool reserved;
	int fd;

	prctl(PR_SET_NAME, "control");
	if (ctl_drop() != 0)
		ctl_error = errno;
	sem_post(&ctl_ready);
	while (ctl_error == 0 && sem_wait(&ctl_goes) == -1)
		continue;
	while (ctl_error == 0) {
		poll(&pfd, 1, -1);
		fd = peer_accept(ctl_listen, SOCK_CLOEXEC, &reserved);
		if (fd == -1 && peer_accept_fails(errno))
			peer_accept_pause(errno);
		else if (fd != -1 && ctl_accept(fd, reserved) != 0)
			conn_shut(fd, reserved);
	}
	return (NULL);
}

int
ctl_start(int fd, const struct ctl_options *options, int (*drop)(void))
{
	pthread_t thread;
	int error;

	ctl_listen = fd;
	ctl_drop = drop;
	ctl_who_init(options->admin);
	vale_memory_limits(options->mem, options->user_mem);
	vale_grant_limit();
	unread_limit();
	error = ctl_reload_start();
	if (error != 0)
		return (error);
	if (sem_init(&ctl_ready, 0, 0) == -1 ||
	    sem_init(&ctl_goes, 0, 0) == -1)
		return (errno);
	error = pthread_create(&thread, NULL, ctl_thread, NULL);
	if (error != 0)
		return (error);
	while (sem_wait(&ctl_ready) == -1)
		continue;
	return (ctl_error);
}

void
ctl_go(void)
{
	sem_post(&ctl_goes);
}
