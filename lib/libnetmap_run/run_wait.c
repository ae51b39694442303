/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Waiting for descriptors of /dev/netmap, among others, with poll(2) and
 * select(2).  netmap_run.h.
 *
 * A wait syncs the rings first, as netmap's does: the transmit ring for POLLOUT
 * or if it has frames to send, the receive ring for POLLIN.  If nothing is
 * ready, and all descriptors are of /dev/netmap, it looks again LOOKS times, which
 * takes less than to sleep and to be woken; then it asks valed for a byte on the
 * ring's socket, and waits for that with poll(2).
 *
 * A wait looks up its descriptors of /dev/netmap once, and holds a reference to
 * each until it returns (struct wait_desc).  So the ports, their rings and
 * their sockets stay, whatever other threads open, close or register, and what
 * a number stands for later has no effect.  What was not of /dev/netmap at the
 * beginning is left to ppoll(2), which finds it by number each time that it is
 * called.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netmap_run.h"
#include "vale_clock.h"

/* Syncs before a wait sleeps. */
#define	LOOKS		16
/* As many descriptors and sockets as need no memory allocated. */
#define	WAIT_SMALL	48

/* Sync ring pair `i', and say what of `events' is true of it. */
static short
ring_events(struct run_desc *rd, unsigned int i, short events)
{
	struct run_port *rp = rd->rd_port;
	const struct vale_client_ring *vcr = &rp->rp_client.cp_ring[i];
	short revents = 0;

	if (rd->rd_tx && ((events & RUN_TX_EVENTS) != 0 || rd->rd_tx_poll)) {
		if (run_port_sync(rp, 0, i) == -1)
			revents = POLLERR;
		else if (vcr->vcr_txring->cur != vcr->vcr_txring->tail)
			revents = events & RUN_TX_EVENTS;
	}
	if (rd->rd_rx && ((events & RUN_RX_EVENTS) != 0 || rd->rd_rx_poll)) {
		if (run_port_sync(rp, 1, i) == -1)
			revents |= POLLERR;
		else if (vcr->vcr_rxring->cur != vcr->vcr_rxring->tail)
			revents |= events & RUN_RX_EVENTS;
	}
	return (revents);
}

/* Return the events of any of the descriptor's ring pairs. */
static short
desc_events(struct run_desc *rd, short events)
{
	short revents = 0;
	unsigned int i;

	if (!run_registered(rd))
		return (POLLERR);
	for (i = rd->rd_first; i < rd->rd_end; i++)
		revents |= ring_events(rd, i, events);
	return (revents);
}

/*
 * Ask to be woken, and set what poll(2) waits for: the sockets of both rings.
 * Returns whether something has become ready meanwhile.
 */
static bool
ring_wait(struct run_desc *rd, unsigned int i, short events,
    struct pollfd pfd[2])
{
	struct vale_client_port *cp = &rd->rd_port->rp_client;
	bool ready = false;

	pfd[0] = (struct pollfd){ .fd = cp->cp_ring[i].vcr_tx_kick };
	pfd[1] = (struct pollfd){ .fd = cp->cp_ring[i].vcr_rx_kick };
	if (rd->rd_tx && (events & RUN_TX_EVENTS) != 0) {
		pfd[0].events = POLLIN;
		ready = vale_client_txwait(cp, i);
	}
	if (rd->rd_rx && (events & RUN_RX_EVENTS) != 0) {
		pfd[1].events = POLLIN;
		ready |= vale_client_rxwait(cp, i);
	}
	return (ready);
}

/* Return the number of these sockets; a port may come meanwhile. */
static unsigned int
desc_sockets(struct run_desc *rd)
{
	return (2 * (run_registered(rd) ? rd->rd_end - rd->rd_first :
	    VALE_RINGS_MAX));
}

/* What a wait has of a descriptor of /dev/netmap. */
struct wait_desc {
	struct run_desc	*wd_desc;	/* with a reference; or NULL */
	unsigned int	 wd_sockets;	/* that poll(2) waits for */
};

/* A wait: the descriptors, and behind them the sockets of /dev/netmap's. */
struct run_wait {
	struct pollfd	*wt_fds;	/* the program's */
	struct run_desc	*const *wt_known; /* or NULL: look them up */
	nfds_t		 wt_n;
	struct wait_desc *wt_descs;	/* wt_n */
	nfds_t		 wt_held;	/* of them, looked up */
	nfds_t		 wt_netmap;	/* those of /dev/netmap */
	nfds_t		 wt_sockets;	/* space for their sockets */
	struct pollfd	*wt_inner;	/* wt_n + wt_sockets */
	/* As many as need no memory allocated. */
	struct pollfd	 wt_small[WAIT_SMALL];
	struct wait_desc wt_small_descs[WAIT_SMALL];
};

/* Sync the descriptors.  Returns how many are ready. */
static int
wait_sync(struct run_wait *wt)
{
	struct run_desc *rd;
	nfds_t i;
	int n = 0;

	for (i = 0; i < wt->wt_n; i++) {
		wt->wt_fds[i].revents = 0;
		rd = wt->wt_descs[i].wd_desc;
		if (rd != NULL)
			wt->wt_fds[i].revents = desc_events(rd,
			    wt->wt_fds[i].events);
		if (wt->wt_fds[i].revents != 0)
			n++;
	}
	return (n);
}

/*
 * Sync the descriptors until some are ready, or for a short time; once if others
 * than /dev/netmap's, which only poll(2) can look at, may be ready.
 */
static int
wait_look(struct run_wait *wt)
{
	static __thread uint64_t rest_ns;
	int i, n;

	n = wait_sync(wt);
	if (wt->wt_n != wt->wt_netmap)
		return (n);
	for (i = 0; i < LOOKS && n == 0; i++) {
		if (!vale_yield(&rest_ns))
			break;
		n = wait_sync(wt);
	}
	return (n);
}

/*
 * Have poll(2) wait for the rings' sockets, or leave them out, since something
 * is ready.  Returns whether something has become ready.
 */
static bool
wait_arm(struct run_wait *wt, bool sleep)
{
	struct pollfd *pfd = wt->wt_inner + wt->wt_n;
	struct wait_desc *wd;
	bool ready = false;
	unsigned int k;
	nfds_t i;

	for (i = 0; i < wt->wt_n; i++) {
		wd = &wt->wt_descs[i];
		wd->wd_sockets = 0;
		if (!sleep || wd->wd_desc == NULL ||
		    !run_registered(wd->wd_desc))
			continue;
		for (k = wd->wd_desc->rd_first; k < wd->wd_desc->rd_end; k++) {
			ready |= ring_wait(wd->wd_desc, k,
			    wt->wt_fds[i].events, pfd);
			pfd += 2;
			wd->wd_sockets += 2;
		}
	}
	while (pfd < wt->wt_inner + wt->wt_n + wt->wt_sockets)
		*pfd++ = (struct pollfd){ .fd = -1 };
	return (ready);
}

/*
 * Take what poll(2) has found.  A socket whose other end has gone is an error
 * of its port: there is POLLHUP, whether or not there is POLLERR.  Returns how
 * many are ready.
 */
static int
wait_take(struct run_wait *wt)
{
	const struct pollfd *pfd = wt->wt_inner + wt->wt_n;
	unsigned int k;
	nfds_t i;
	int n = 0;

	for (i = 0; i < wt->wt_n; i++) {
		if (wt->wt_descs[i].wd_desc == NULL)
			wt->wt_fds[i].revents = wt->wt_inner[i].revents;
		for (k = wt->wt_descs[i].wd_sockets; k > 0; k--)
			if ((pfd++->revents & (POLLHUP | POLLNVAL)) != 0)
				wt->wt_fds[i].revents |= POLLERR;
		if (wt->wt_fds[i].revents != 0)
			n++;
	}
	return (n);
}

struct timespec
run_left(const struct timespec *deadline)
{
	struct timespec left, now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left.tv_sec = deadline->tv_sec - now.tv_sec;
	left.tv_nsec = deadline->tv_nsec - now.tv_nsec;
	if (left.tv_nsec < 0) {
		left.tv_sec--;
		left.tv_nsec += 1000000000;
	}
	if (left.tv_sec < 0)
		left = (struct timespec){ 0, 0 };
	return (left);
}

struct timespec
run_deadline(const struct timespec *timeout)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	/* A longer one never ends. */
	t.tv_sec += MIN(timeout->tv_sec, INT32_MAX);
	t.tv_nsec += timeout->tv_nsec;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return (t);
}

static int
wait_loop(struct run_wait *wt, const struct timespec *timeout,
    const sigset_t *mask)
{
	const nfds_t all = wt->wt_n + wt->wt_sockets;
	const bool waits = timeout == NULL || timeout->tv_sec != 0 ||
	    timeout->tv_nsec != 0;
	struct timespec deadline, left = { 0, 0 };
	int n, r;

	if (timeout != NULL && waits)
		deadline = run_deadline(timeout);
	else
		deadline = left;
	for (;;) {
		n = waits ? wait_look(wt) : wait_sync(wt);
		if (n > 0 && wt->wt_n == wt->wt_netmap)
			return (n);
		if (wait_arm(wt, n == 0))
			continue;
		if (n == 0 && (deadline.tv_sec != 0 || deadline.tv_nsec != 0))
			left = run_left(&deadline);
		else
			left = (struct timespec){ 0, 0 };
		r = run_calls()->ppoll(wt->wt_inner, all,
		    timeout == NULL && n == 0 ? NULL : &left, mask);
		if (r == -1)
			return (-1);
		n = wait_take(wt);
		if (n > 0 || r == 0)
			return (n);
		/* Bytes woke it, and it is too late to wait for others. */
		if (timeout != NULL && left.tv_sec == 0 && left.tv_nsec == 0)
			return (wait_sync(wt));
	}
}

/* Look up the descriptors.  -1 with ENOMEM; then wait_end() is due as well. */
static int
wait_begin(struct run_wait *wt)
{
	struct run_desc *rd;
	nfds_t i;

	if (wt->wt_n > WAIT_SMALL) {
		wt->wt_descs = calloc(wt->wt_n, sizeof(*wt->wt_descs));
		if (wt->wt_descs == NULL)
			return (-1);
	}
	for (; wt->wt_held < wt->wt_n; wt->wt_held++) {
		rd = wt->wt_known != NULL ? wt->wt_known[wt->wt_held] :
		    run_get(wt->wt_fds[wt->wt_held].fd);
		if (wt->wt_known != NULL && rd != NULL)
			run_ref(rd);
		wt->wt_descs[wt->wt_held].wd_desc = rd;
		if (rd == NULL)
			continue;
		wt->wt_netmap++;
		wt->wt_sockets += desc_sockets(rd);
	}
	if (wt->wt_n + wt->wt_sockets > WAIT_SMALL) {
		wt->wt_inner = calloc(wt->wt_n + wt->wt_sockets,
		    sizeof(*wt->wt_inner));
		if (wt->wt_inner == NULL)
			return (-1);
	}
	for (i = 0; i < wt->wt_n; i++) {
		wt->wt_inner[i] = wt->wt_fds[i];
		wt->wt_inner[i].revents = 0;
		if (wt->wt_descs[i].wd_desc != NULL)
			wt->wt_inner[i].fd = -1;
	}
	return (0);
}

/* Give back what the wait has.  Leaves errno. */
static void
wait_end(void *arg)
{
	struct run_wait *wt = arg;
	int error = errno;

	while (wt->wt_held-- > 0)
		if (wt->wt_descs[wt->wt_held].wd_desc != NULL)
			run_put(wt->wt_descs[wt->wt_held].wd_desc);
	if (wt->wt_descs != wt->wt_small_descs)
		free(wt->wt_descs);
	if (wt->wt_inner != wt->wt_small)
		free(wt->wt_inner);
	errno = error;
}

int
run_poll(struct pollfd *fds, struct run_desc *const *descs, nfds_t n,
    const struct timespec *timeout, const sigset_t *mask)
{
	struct run_wait wt;
	int r;

	if (timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 ||
	    timeout->tv_nsec >= 1000000000))
		return (run_fail(EINVAL));
	wt.wt_fds = fds;
	wt.wt_known = descs;
	wt.wt_n = n;
	wt.wt_descs = wt.wt_small_descs;
	wt.wt_inner = wt.wt_small;
	wt.wt_held = wt.wt_netmap = wt.wt_sockets = 0;
	/* The thread may be cancelled while it waits. */
	pthread_cleanup_push(wait_end, &wt);
	r = wait_begin(&wt);
	if (r == 0)
		r = wait_loop(&wt, timeout, mask);
	pthread_cleanup_pop(1);
	return (r);
}

/*
 * select(2).  Sets may be larger than an fd_set: the kernel looks at bits, in
 * words of a long.
 */
#define	WORD_BITS	(8 * (int)sizeof(unsigned long))

static unsigned long *
set_word(fd_set *set, int fd)
{
	return ((unsigned long *)(void *)set + fd / WORD_BITS);
}

static bool
set_has(fd_set *set, int fd)
{
	return (set != NULL &&
	    (*set_word(set, fd) >> (fd % WORD_BITS) & 1) != 0);
}

static void
set_put(fd_set *set, int fd, bool on)
{
	if (set == NULL)
		return;
	*set_word(set, fd) &= ~(1ul << (fd % WORD_BITS));
	*set_word(set, fd) |= (unsigned long)on << (fd % WORD_BITS);
}

/* What select(2) waits for, and what counts as that. */
static const struct {
	short	events;
	short	revents;
} select_events[3] = {
	{ RUN_RX_EVENTS, RUN_RX_EVENTS | POLLHUP | POLLERR },
	{ RUN_TX_EVENTS, RUN_TX_EVENTS | POLLERR },
	{ POLLPRI, POLLPRI },
};

bool
run_select_any(int n, fd_set *sets[3])
{
	int fd;

	for (fd = 0; fd < n; fd++)
		if (run_find(fd) != NULL && (set_has(sets[0], fd) ||
		    set_has(sets[1], fd) || set_has(sets[2], fd)))
			return (true);
	return (false);
}

static nfds_t
select_fds(int n, fd_set *sets[3], struct pollfd *fds)
{
	nfds_t count = 0;
	short events;
	int fd, i;

	for (fd = 0; fd < n; fd++) {
		events = 0;
		for (i = 0; i < 3; i++)
			if (set_has(sets[i], fd))
				events |= select_events[i].events;
		if (events != 0)
			fds[count++] = (struct pollfd){ .fd = fd,
			    .events = events };
	}
	return (count);
}

/* Return the number of bits, or -1 if a descriptor is not open. */
static int
select_result(int n, fd_set *sets[3], const struct pollfd *fds, nfds_t count)
{
	int bits = 0, fd, i;
	nfds_t at;
	bool on;

	for (at = 0; at < count; at++)
		if ((fds[at].revents & POLLNVAL) != 0) {
			errno = EBADF;
			return (-1);
		}
	for (at = 0, fd = 0; fd < n; fd++) {
		if (at == count || fds[at].fd != fd)
			continue;
		for (i = 0; i < 3; i++) {
			on = set_has(sets[i], fd) && (fds[at].revents &
			    select_events[i].revents) != 0;
			set_put(sets[i], fd, on);
			bits += on;
		}
		at++;
	}
	return (bits);
}

int
run_select(int n, fd_set *sets[3], const struct timespec *timeout,
    const sigset_t *mask)
{
	struct pollfd *fds;
	nfds_t count;
	int error, r;

	fds = calloc(n, sizeof(*fds));
	if (fds == NULL)
		return (-1);
	count = select_fds(n, sets, fds);
	r = run_poll(fds, NULL, count, timeout, mask);
	if (r != -1)
		r = select_result(n, sets, fds, count);
	error = errno;
	free(fds);
	errno = error;
	return (r);
}
