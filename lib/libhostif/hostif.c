/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The thread of an attached interface: hostif.h.
 *
 * A round receives one batch and sends one.  After a round in which nothing
 * moved, and now and then otherwise, the thread looks for events: a frame in
 * the port or in the interface, space in a full ring, a change of the
 * interface, and hostif_stop().  Frames for which the interface has no space
 * wait in the port; the switch drops what does not fit there.  While the
 * interface is down or gone its frames are dropped here, so that none is sent
 * late.
 *
 * An interface belongs to its thread, except the counters, which any thread may
 * read.
 *
 * Who passed an interface's descriptors may take its memory away.  The thread
 * then detaches the interface: hostif_withdrawn().
 */

#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "hostif_impl.h"

/* Rounds between two looks for events while frames move. */
#define	ROUNDS		64
/*
 * Slots of the port's receive ring.  A packet of 64 KB takes 32; TCP sends tens
 * of them before it waits.
 */
#define	PORT_SLOTS	4096
/* A pause before a call that failed is made again, ms. */
#define	AGAIN_MS	1
#define	NS_PER_MS	UINT64_C(1000000)
/* The descriptors of poll(2): hostif_stop(), the port, the link; the kind's. */
#define	POLL_STOP	0
#define	POLL_PORT	1
#define	POLL_LINK	2
#define	POLL_KIND	3
#define	POLL_MAX	(POLL_KIND + HOSTIF_FDS_MAX)

const struct counter_row hostif_counter_table[HOSTIF_NCOUNTERS] = {
	COUNTER_ROWS(HOSTIF_COUNTERS)
};

void
hostif_log(struct hostif *hi, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	peer_log(&hi->log, LOG_NOTICE, hi->port->common->name, fmt, ap);
	va_end(ap);
}

static void
hostif_wake(const struct hostif *hi)
{
	const uint64_t one = 1;

	while (write(hi->stop_fd, &one, sizeof(one)) == -1 && errno == EINTR)
		;
}

void
hostif_withdrawn(void *arg)
{
	struct hostif *hi = arg;

	atomic_store_rel_32(&hi->withdrawn, 1);
	hostif_wake(hi);
}

bool
hostif_is_withdrawn(const struct hostif *hi)
{
	return (atomic_load_acq_32(&hi->withdrawn) != 0);
}

bool
hostif_peek(struct hostif *hi, uint32_t *at, struct frame *frame)
{
	struct netmap_ring *ring = hi->port->rxring;
	const struct netmap_slot *slot;
	const uint32_t first = *at;
	uint32_t i = first, len = 0;
	int n = 0;
	bool more;

	if (i == ring->tail)
		return (false);
	do {
		slot = &ring->slot[i];
		more = (slot->flags & NS_MOREFRAG) != 0;
		frame->f_iov[n].iov_base = NETMAP_BUF(ring, slot->buf_idx);
		frame->f_iov[n++].iov_len = slot->len;
		len += slot->len;
		i = nm_ring_next(ring, i);
	} while (more && i != ring->tail && n < FRAME_MAXIOV);
	*at = i;
	frame_set(frame, n, len);
	if ((ring->slot[first].flags & VALE_SLOT_FRAME) != 0)
		frame_set_known(frame, &hi->port->rxframe[first]);
	return (true);
}

/* Return whether a frame has a VLAN tag, which the MTU does not count. */
static bool
frame_tagged(const struct frame *frame)
{
	const uint8_t *p = frame->f_iov[0].iov_base;

	return (frame->f_iov[0].iov_len >= HOSTIF_ETHER + HOSTIF_TAG &&
	    ((p[12] == 0x81 && p[13] == 0x00) ||
	    (p[12] == 0x88 && p[13] == 0xa8)));
}

bool
hostif_takes(struct hostif *hi, const struct frame *frame)
{
	uint32_t len;

	if (frame->f_len < HOSTIF_ETHER) {
		hostif_count(hi, HOSTIF_C_TX_BAD, 1);
		return (false);
	}
	if (!hi->up) {
		hostif_count(hi, HOSTIF_C_TX_DOWN, 1);
		return (false);
	}
	len = frame_longest(frame);
	if (hi->mtu == 0 || len <= hi->mtu + HOSTIF_ETHER ||
	    (len <= hi->mtu + HOSTIF_ETHER + HOSTIF_TAG &&
	    frame_tagged(frame)))
		return (true);
	hostif_count(hi, HOSTIF_C_TX_MTU, 1);
	return (false);
}

void
hostif_lost(struct hostif *hi, int error)
{
	/* What a queue or filter drops is no error of the frame. */
	const bool queue = error == ENOBUFS || error == EBUSY;
	const unsigned int said = queue ? HOSTIF_SAID_QUEUE :
	    HOSTIF_SAID_REFUSED;

	hostif_count(hi, queue ? HOSTIF_C_TX_QUEUE : HOSTIF_C_TX_REFUSED, 1);
	if ((hi->said & said) != 0)
		return;
	hi->said |= said;
	if (queue)
		hostif_log(hi, "a queue or filter of the interface drops "
		    "frames");
	else
		hostif_log(hi, "the kernel cannot send a frame: %s",
		    strerror(error));
}

/* Do what is due from time to time. */
static void
hostif_tick(struct hostif *hi)
{
	struct timespec ts;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now_ns = ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
	if (now_ns < hi->tick_ns)
		return;
	hi->tick_ns = now_ns + HOSTIF_TICK_MS * NS_PER_MS;
	hi->ops->ho_tick(hi);
}

/*
 * Look for events; without `wait', do not sleep.  Returns false if the thread
 * must end.
 */
static bool
hostif_events(struct hostif *hi, bool wait)
{
	struct pollfd pfd[POLL_MAX];
	unsigned int i, n;
	int timeout_ms;

	if (!hostif_gone(hi))
		hostif_tick(hi);
	peer_log_left(&hi->log, hi->port->common->name);
	pfd[POLL_STOP].fd = hi->stop_fd;
	/* Frames that cannot be sent need not wake the thread. */
	pfd[POLL_PORT].fd = hi->tx_state == HOSTIF_TX_IDLE ? hi->port->fd : -1;
	pfd[POLL_LINK].fd = hi->fds.hf_fd[HOSTIF_FD_LINK];
	for (i = 0; i < POLL_KIND; i++)
		pfd[i].events = POLLIN;
	n = POLL_KIND;
	if (!hostif_gone(hi))
		n += hi->ops->ho_poll(hi, pfd + n, POLL_MAX - n);
	timeout_ms = !wait ? 0 : hi->tx_state == HOSTIF_TX_AGAIN ? AGAIN_MS :
	    hostif_gone(hi) && hi->log.pls_left == 0 ? -1 : HOSTIF_TICK_MS;
	hostif_count(hi, HOSTIF_C_POLL, 1);
	if (poll(pfd, n, timeout_ms) <= 0)
		return (true);
	if (pfd[POLL_STOP].revents != 0)
		return (false);
	if (pfd[POLL_LINK].revents != 0)
		hostif_link_event(hi);
	for (i = POLL_KIND; i < n; i++) {
		if (pfd[i].revents != 0)
			hi->ops->ho_event(hi, &pfd[i]);
	}
	return (true);
}

static unsigned int
hostif_send(struct hostif *hi)
{
	vale_rxsync(hi->port);
	return (hi->ops->ho_send(hi));
}

static void
hostif_serve(struct hostif *hi)
{
	unsigned int moved, rounds = 0;

	hostif_link_ask(hi);
	do {
		moved = hi->ops->ho_receive(hi);
		moved += hostif_send(hi);
	} while (!hostif_is_withdrawn(hi) &&
	    ((moved > 0 && ++rounds % ROUNDS != 0) ||
	    hostif_events(hi, moved == 0)));
}

/* Undo what hostif_begin() has done, except the thread. */
static void
hostif_end(struct hostif *hi)
{
	hi->ops->ho_stop(hi);
	close(hi->stop_fd);
	hostif_close(&hi->fds);
}

/* Undo what hostif_start() has done, except the thread. */
static void
hostif_free(struct hostif *hi)
{
	if (!hi->released)
		hostif_end(hi);
	vale_close(hi->port);
	free(hi->live);
	free(hi);
}

static void *
hostif_main(void *arg)
{
	struct hostif *hi = arg;

	/* For top(1) and taskset(1). */
	prctl(PR_SET_NAME, hi->fds.hf_name);
	hostif_serve(hi);
	if (!hostif_is_withdrawn(hi))
		return (NULL);
	/* The last line is not left out. */
	hi->log.pls_lines = 0;
	hostif_log(hi, "detached: its memory is gone");
	if (hostif_forget(hi)) {
		pthread_detach(pthread_self());
		hostif_free(hi);
	}
	return (NULL);
}

/* Return the functions of an open interface's kind, or NULL if *fds is none. */
static const struct hostif_ops *
hostif_ops(const struct hostif_fds *fds)
{
	static const struct {
		const struct hostif_ops	*ops;
		uint32_t		 nfds;	/* at least */
	} kinds[HOSTIF_NKINDS] = {
		[HOSTIF_PACKET] = { &hostif_packet_ops, HOSTIF_FD_KIND + 1 },
		[HOSTIF_XDP] = { &hostif_xdp_ops, HOSTIF_FD_XSK + 1 },
	};

	if (fds->hf_kind >= HOSTIF_NKINDS ||
	    fds->hf_nfds < kinds[fds->hf_kind].nfds ||
	    fds->hf_nfds > HOSTIF_FDS_MAX ||
	    strnlen(fds->hf_name, HOSTIF_NAME_SIZE) == HOSTIF_NAME_SIZE)
		return (NULL);
	return (kinds[fds->hf_kind].ops);
}

/*
 * Serve an interface at the port.  Returns NULL, or the step that failed, with
 * errno.
 */
static const char *
hostif_begin(struct hostif *hi, const struct hostif_fds *fds)
{
	static uint64_t serials;	/* atomic */
	const char *failed;

	hi->fds = *fds;
	hi->serial = atomic_fetchadd_64(&serials, 1) + 1;
	hi->ops = hostif_ops(fds);
	hi->tx_state = HOSTIF_TX_IDLE;
	atomic_store_rel_32(&hi->withdrawn, 0);
	/* Until the kernel has told. */
	atomic_store_bool(&hi->up, true);
	atomic_store_bool(&hi->gone, false);
	atomic_store_bool(&hi->outgrown, false);
	hi->released = hi->told = false;
	hi->mtu = 0;
	hi->said = 0;
	hi->link = (struct hostif_link){ .hl_ether = true };
	strlcpy(hi->link.hl_name, fds->hf_name, sizeof(hi->link.hl_name));
	hi->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hi->stop_fd == -1)
		return ("eventfd");
	failed = hi->ops->ho_start(hi);
	if (failed != NULL)
		goto fail;
	failed = "thread";
	errno = pthread_create(&hi->thread, NULL, hostif_main, hi);
	if (errno == 0)
		return (NULL);
	hi->ops->ho_stop(hi);
fail:
	close(hi->stop_fd);
	return (failed);
}

struct hostif *
hostif_start(const char *port_name, const struct hostif_fds *fds,
    char why[HOSTIF_WHY])
{
	const struct vale_params params = { .rx_slots = PORT_SLOTS };
	const char *failed = "port";
	struct hostif *hi;
	int error;

	if (hostif_ops(fds) == NULL) {
		hostif_fail(why, EINVAL, "%s: not an open interface",
		    port_name);
		return (NULL);
	}
	hi = calloc(1, sizeof(*hi));
	if (hi == NULL) {
		hostif_fail(why, ENOMEM, "%s: out of memory", port_name);
		return (NULL);
	}
	hi->port = vale_open(port_name, &params);
	if (hi->port != NULL)
		failed = hostif_begin(hi, fds);
	if (failed == NULL)
		return (hi);
	error = errno;
	if (hi->port != NULL)
		vale_close(hi->port);
	free(hi);
	hostif_fail(why, error, "%s: %s: %s", port_name, failed,
	    strerror(error));
	return (NULL);
}

void
hostif_release(struct hostif *hi)
{
	if (hi->released)
		return;
	hostif_wake(hi);
	pthread_join(hi->thread, NULL);
	hostif_end(hi);
	hi->released = true;
	atomic_store_bool(&hi->up, false);
	atomic_store_bool(&hi->gone, true);
}

int
hostif_renew(struct hostif *hi, const struct hostif_fds *fds,
    char why[HOSTIF_WHY])
{
	const char *failed = "not an open interface";
	int error;

	hostif_release(hi);
	errno = EINVAL;
	if (hostif_ops(fds) != NULL)
		failed = hostif_begin(hi, fds);
	if (failed == NULL)
		return (0);
	error = errno;
	hostif_fail(why, error, "%s: %s: %s", hostif_port_name(hi), failed,
	    strerror(error));
	hi->released = true;
	hostif_free(hi);
	errno = error;
	return (-1);
}

void
hostif_stop(struct hostif *hi)
{
	hostif_release(hi);
	hostif_free(hi);
}

uint64_t
hostif_serial(const struct hostif *hi)
{
	return (hi->serial);
}

const struct hostif_fds *
hostif_fds(const struct hostif *hi)
{
	return (&hi->fds);
}

const char *
hostif_port_name(const struct hostif *hi)
{
	return (hi->port->common->name);
}

const char *
hostif_name(const struct hostif *hi)
{
	return (hi->fds.hf_name);
}

bool
hostif_up(const struct hostif *hi)
{
	return (atomic_load_bool(&hi->up));
}

bool
hostif_gone(const struct hostif *hi)
{
	return (atomic_load_bool(&hi->gone));
}

bool
hostif_gone_now(struct hostif *hi)
{
	const bool told = hi->told;

	hi->told = hostif_gone(hi);
	return (hi->told && !told);
}

bool
hostif_outgrown(const struct hostif *hi)
{
	return (atomic_load_bool(&hi->outgrown));
}

uint64_t **
hostif_live(struct hostif *hi)
{
	return (&hi->live);
}

uint64_t
hostif_counter(const struct hostif *hi, enum hostif_counter counter)
{
	return (atomic_load_64(&hi->counters[counter]));
}
