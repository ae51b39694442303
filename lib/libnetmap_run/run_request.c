/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Requests about descriptors of /dev/netmap: NIOCCTRL, the syncs, and mmap(2).
 * netmap_run.h.
 *
 * The connection to valed is made with the first request, so that a program
 * that only looks whether there is /dev/netmap finds it.  The library has a
 * copy of it, which becomes the port's.
 *
 * Processes that have one connection take turns: a request and its reply are
 * made under a lock of fcntl(2), which it has of each process.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netmap_run.h"

static pthread_mutex_t say_lock = PTHREAD_MUTEX_INITIALIZER;

void
run_request_leave(void)
{
	pthread_mutex_init(&say_lock, NULL);
}

/*
 * Say what went wrong, which errno does not: why a port is refused, once if the
 * program tries again and again, and of other requests, which may just look
 * what there is, if that is asked for.
 */
static void
desc_say(bool refused, const char *name, const char *why)
{
	static char said[256];
	const int error = errno;
	const bool all = secure_getenv(RUN_DEBUG_ENV) != NULL;
	char line[sizeof(said)];

	snprintf(line, sizeof(line), "%s%s%s", name, *name != '\0' ? ": " : "",
	    *why != '\0' ? why : strerror(error));
	pthread_mutex_lock(&say_lock);
	if (all || (refused && strcmp(line, said) != 0))
		fprintf(stderr, "netmap-run: %s\n", line);
	if (refused)
		memcpy(said, line, sizeof(said));
	pthread_mutex_unlock(&say_lock);
	errno = error;
}

int
run_connect(struct run_desc *rd)
{
	char why[256];

	/* Another process may have connected it. */
	if (!rd->rd_connected && vale_client_join(rd->rd_fd,
	    vale_find_path()) == -1 && errno != EISCONN) {
		if (!vale_find_error(errno, why, sizeof(why)))
			snprintf(why, sizeof(why), "%s: %s", vale_find_path(),
			    strerror(errno));
		desc_say(true, "", why);
		return (-1);
	}
	rd->rd_connected = true;
	return (0);
}

static void
request_lock(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	while (run_calls()->fcntl(fd, F_SETLKW, &lock) == -1 &&
	    errno == EINTR)
		continue;
}

void
run_request_begin(int fd)
{
	request_lock(fd, F_WRLCK);
}

void
run_request_end(int fd)
{
	int error = errno;

	request_lock(fd, F_UNLCK);
	errno = error;
}

/* Put another socket in place of the descriptor's.  The table's lock. */
static void
desc_replace(const struct run_desc *rd, int new)
{
	int fd, flags;

	for (fd = 0; fd < RUN_FDS; fd++) {
		if (run_find(fd) != rd)
			continue;
		flags = run_calls()->fcntl(fd, F_GETFD);
		run_calls()->dup3(new, fd, flags == FD_CLOEXEC ? O_CLOEXEC : 0);
	}
	run_calls()->dup3(new, rd->rd_fd, O_CLOEXEC);
}

/* Close a connection that has failed: the next request makes another. */
static void
desc_disconnect(struct run_desc *rd)
{
	int error = errno, new;

	if (atomic_load(&rd->rd_registered))
		return;
	new = vale_client_socket();
	if (new != -1) {
		run_lock();
		desc_replace(rd, new);
		run_unlock();
		run_calls()->close(new);
		rd->rd_connected = false;
	}
	errno = error;
}

/* Fail with netmap's error for a port that has gone: valed has. */
static int
desc_gone(struct run_desc *rd)
{
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
		errno = ENXIO;
		desc_disconnect(rd);
	}
	return (-1);
}

/* Refuse a port, for a reason that is not valed's. */
static int
desc_refuse(const char *name, const char *why, int error)
{
	errno = error;
	desc_say(true, name, why);
	return (-1);
}

static int
desc_register(struct run_desc *rd, struct nmreq_header *hdr)
{
	struct nmreq_register *reg = (void *)(uintptr_t)hdr->nr_body;
	const uint64_t only = NR_RX_RINGS_ONLY | NR_TX_RINGS_ONLY;
	char why[sizeof(((struct vale_wire *)0)->vw_why)] = "";

	if (atomic_load(&rd->rd_registered))
		return (desc_refuse(hdr->nr_name, "the descriptor has a port",
		    EBUSY));
	if ((reg->nr_flags & only) == only)
		return (desc_refuse(hdr->nr_name, "it asks for receive rings "
		    "only and for transmit rings only", EINVAL));
	if (run_port_open(rd, hdr->nr_name, reg, why) == -1) {
		/* run_connect() has said what is wrong with that. */
		if (rd->rd_connected || *why != '\0')
			desc_say(true, hdr->nr_name, why);
		return (desc_gone(rd));
	}
	atomic_store_explicit(&rd->rd_registered, true, memory_order_release);
	return (0);
}

/* The bodies of requests, as the program and valed have them. */
static const struct run_body {
	uint16_t	type;
	uint16_t	in;		/* bytes that valed takes */
	uint16_t	out;		/* and gives */
} bodies[] = {
	{ NETMAP_REQ_PORT_INFO_GET, sizeof(struct nmreq_port_info_get),
	    sizeof(struct nmreq_port_info_get) },
	{ NETMAP_REQ_VALE_LIST, sizeof(struct nmreq_vale_list),
	    sizeof(struct nmreq_vale_list) },
	{ NETMAP_REQ_PORT_HDR_SET, sizeof(struct nmreq_port_hdr), 0 },
	{ NETMAP_REQ_PORT_HDR_GET, 0, sizeof(struct nmreq_port_hdr) },
};

/* Find a request's form; NULL if the request is not supported. */
static const struct run_body *
body_find(uint16_t type)
{
	unsigned int i;

	for (i = 0; i < nitems(bodies); i++)
		if (bodies[i].type == type)
			return (&bodies[i]);
	return (NULL);
}

static int
desc_call(struct run_desc *rd, struct vale_client_call *call)
{
	int r;

	run_request_begin(rd->rd_fd);
	r = vale_client_call(rd->rd_fd, call);
	run_request_end(rd->rd_fd);
	return (r);
}

/* Make a request other than NETMAP_REQ_REGISTER. */
static int
desc_request(struct run_desc *rd, struct nmreq_header *hdr)
{
	const struct run_body *body = body_find(hdr->nr_reqtype);
	struct nmreq_header copy = *hdr;
	struct vale_client_call call = { .hdr = &copy };
	int r;

	copy.nr_version = NETMAP_API;
	if (copy.nr_reqtype == NETMAP_REQ_PORT_INFO_GET)
		copy.nr_reqtype = VALE_WIRE_INFO;
	call.body = call.reply = (void *)(uintptr_t)hdr->nr_body;
	call.size = body->in;
	call.reply_max = body->out;
	if (call.body == NULL)
		return (run_fail(EINVAL));
	if (atomic_load(&rd->rd_registered)) {
		pthread_mutex_lock(&rd->rd_port->rp_lock);
		r = desc_call(rd, &call);
		pthread_mutex_unlock(&rd->rd_port->rp_lock);
	} else if (run_connect(rd) == 0)
		r = desc_call(rd, &call);
	else
		return (-1);
	if (r == -1) {
		desc_say(false, hdr->nr_name, call.why);
		return (desc_gone(rd));
	}
	memcpy(hdr->nr_name, copy.nr_name, sizeof(hdr->nr_name));
	return (0);
}

/*
 * Return whether a request has no name, that of a VALE port, or that of a pipe.
 * The name of memory without a port may be any.
 */
static bool
name_served(const struct nmreq_header *hdr)
{
	const struct nmreq_register *reg = (void *)(uintptr_t)hdr->nr_body;

	if (hdr->nr_reqtype == NETMAP_REQ_REGISTER && reg != NULL &&
	    reg->nr_mode == NR_REG_NULL)
		return (true);
	return (hdr->nr_name[0] == '\0' ||
	    strpbrk(hdr->nr_name, "{}") != NULL ||
	    strncmp(hdr->nr_name, NM_BDG_NAME, strlen(NM_BDG_NAME)) == 0);
}

/* Check a request.  If it is refused, *why says more than errno, or is "". */
static int
control_check(struct nmreq_header *hdr, const char **why)
{
	const bool reg = hdr->nr_reqtype == NETMAP_REQ_REGISTER;

	*why = "";
	if (hdr->nr_version < NETMAP_API ||
	    hdr->nr_version > NETMAP_API_MAX) {
		*why = "the program has another version of netmap's API";
		hdr->nr_version = NETMAP_API;
		return (run_fail(EINVAL));
	}
	if (memchr(hdr->nr_name, '\0', sizeof(hdr->nr_name)) == NULL)
		return (run_fail(EINVAL));
	if (hdr->nr_options != 0) {
		*why = "it comes with options, and none is supported";
		return (run_options_refuse(hdr));
	}
	if (!reg && body_find(hdr->nr_reqtype) == NULL)
		return (run_fail(EOPNOTSUPP));
	if (!name_served(hdr)) {
		*why = "not the name of a pipe or of a switch's port, which "
		    "begins with " NM_BDG_NAME;
		return (run_fail(ENXIO));
	}
	return (reg && hdr->nr_body == 0 ? run_fail(EINVAL) : 0);
}

int
run_control(struct run_desc *rd, struct nmreq_header *hdr)
{
	const char *why;
	int r;

	if (control_check(hdr, &why) == -1) {
		desc_say(hdr->nr_reqtype == NETMAP_REQ_REGISTER,
		    memchr(hdr->nr_name, '\0', sizeof(hdr->nr_name)) != NULL ?
		    hdr->nr_name : "", why);
		return (-1);
	}
	pthread_mutex_lock(&rd->rd_lock);
	r = hdr->nr_reqtype == NETMAP_REQ_REGISTER ?
	    desc_register(rd, hdr) : desc_request(rd, hdr);
	pthread_mutex_unlock(&rd->rd_lock);
	return (r);
}

static int
desc_ready(struct run_desc *rd)
{
	return (run_registered(rd) ? 0 : run_fail(ENXIO));
}

/* Check after a sync that has moved nothing: valed may have gone. */
static int
desc_idle(struct run_desc *rd)
{
	return (vale_client_alive(rd->rd_fd) ? 0 : run_fail(ENXIO));
}

/* Sync a transmit ring.  Returns whether anything has moved, or -1. */
static int
ring_txsync(struct run_port *rp, unsigned int i)
{
	const struct vale_client_ring *vcr = &rp->rp_client.cp_ring[i];
	struct netmap_ring *ring = vcr->vcr_txring;
	const uint32_t sent = vcr->vcr_heads->vwr_sent;
	const uint32_t tail = ring->tail;

	if (run_port_sync(rp, 0, i) == -1)
		return (-1);
	return (ring->tail != tail ||
	    (ring->head != sent && !nm_ring_empty(ring)));
}

/* Sync a receive ring.  Returns whether it has frames, or -1. */
static int
ring_rxsync(struct run_port *rp, unsigned int i)
{
	const struct netmap_ring *ring = rp->rp_client.cp_ring[i].vcr_rxring;

	if (run_port_sync(rp, 1, i) == -1)
		return (-1);
	return (ring->cur != ring->tail);
}

/* Sync the descriptor's rings of one direction, all even if one fails. */
static int
desc_sync(struct run_desc *rd,
    int (*sync)(struct run_port *, unsigned int))
{
	unsigned int i;
	int error = 0, r;
	bool moved = false;

	for (i = rd->rd_first; i < rd->rd_end; i++) {
		r = sync(rd->rd_port, i);
		if (r == -1)
			error = errno;
		else
			moved |= r != 0;
	}
	if (error != 0)
		return (run_fail(error));
	return (moved ? 0 : desc_idle(rd));
}

static int
desc_txsync(struct run_desc *rd)
{
	if (desc_ready(rd) == -1)
		return (-1);
	return (rd->rd_tx ? desc_sync(rd, ring_txsync) : 0);
}

static int
desc_rxsync(struct run_desc *rd)
{
	if (desc_ready(rd) == -1)
		return (-1);
	return (rd->rd_rx ? desc_sync(rd, ring_rxsync) : 0);
}

int
run_ioctl(struct run_desc *rd, unsigned long request, void *arg)
{
	/* As an int, it may have been extended. */
	request = (uint32_t)request;
	switch (request) {
	case NIOCTXSYNC:
		return (desc_txsync(rd));
	case NIOCRXSYNC:
		return (desc_rxsync(rd));
	case NIOCCTRL:
	case NIOCREGIF:
	case NIOCGINFO:
		if (arg == NULL)
			return (run_fail(EFAULT));
		return (request == NIOCCTRL ? run_control(rd, arg) :
		    run_legacy(rd, request, arg));
	case FIONBIO:
	case FIOASYNC:
		/* Only poll(2) and its relatives wait. */
		return (0);
	default:
		return (run_fail(EOPNOTSUPP));
	}
}

void *
run_mmap(struct run_desc *rd, void *addr, size_t len, int prot, int flags,
    off_t offset)
{
	if (!run_registered(rd)) {
		errno = EINVAL;
		return (MAP_FAILED);
	}
	return (run_port_mmap(rd->rd_port, addr, len, prot, flags, offset));
}
