/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Waiting for descriptors of /dev/netmap, among others.  netmap_run.h.
 *
 * A wait syncs the rings first, as netmap's does: the transmit ring for POLLOUT
 * or if it has frames to send, the receive ring for POLLIN.  If nothing is
 * ready, it asks valed for a byte on the ring's socket, and waits for that with
 * poll(2).
 */

#include <sys/param.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netmap_run.h"

#define	WANT_TX		(POLLOUT | POLLWRNORM)
#define	WANT_RX		(POLLIN | POLLRDNORM)

/* Sync ring pair `i', and say what of `events' is true of it. */
static short
ring_events(struct run_desc *rd, unsigned int i, short events)
{
	struct vale_client_port *cp = &rd->rd_port->rp_client;
	const struct vale_client_ring *vcr = &cp->cp_ring[i];
	short revents = 0;

	if (rd->rd_tx && ((events & WANT_TX) != 0 || rd->rd_tx_poll)) {
		if (vale_client_txsync(cp, i) == -1)
			revents = POLLERR;
		else if (vcr->vcr_txring->cur != vcr->vcr_txring->tail)
			revents = events & WANT_TX;
	}
	if (rd->rd_rx && ((events & WANT_RX) != 0 || rd->rd_rx_poll)) {
		if (vale_client_rxsync(cp, i) == -1)
			revents |= POLLERR;
		else if (vcr->vcr_rxring->cur != vcr->vcr_rxring->tail)
			revents |= events & WANT_RX;
	}
	return (revents);
}

/* Any of the descriptor's ring pairs will do. */
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
	if (rd->rd_tx && (events & WANT_TX) != 0) {
		pfd[0].events = POLLIN;
		ready = vale_client_txwait(cp, i);
	}
	if (rd->rd_rx && (events & WANT_RX) != 0) {
		pfd[1].events = POLLIN;
		ready |= vale_client_rxwait(cp, i);
	}
	return (ready);
}

/*
 * The number of these sockets; one that has no port yet may get one meanwhile.
 */
static unsigned int
desc_sockets(struct run_desc *rd)
{
	return (2 * (run_registered(rd) ? rd->rd_end - rd->rd_first :
	    VALE_RINGS_MAX));
}

/* A wait: the descriptors, and behind them the sockets of /dev/netmap's. */
struct run_wait {
	struct pollfd	*rw_fds;	/* the program's */
	nfds_t		 rw_n;
	nfds_t		 rw_netmap;	/* those of /dev/netmap */
	nfds_t		 rw_sockets;	/* space for their sockets */
	struct pollfd	*rw_inner;	/* rw_n + rw_sockets */
};

/* As many as need no memory allocated. */
#define	WAIT_SMALL	48

static void
wait_init(struct run_wait *rw)
{
	nfds_t i;

	for (i = 0; i < rw->rw_n; i++) {
		rw->rw_inner[i] = rw->rw_fds[i];
		rw->rw_inner[i].revents = 0;
		if (run_find(rw->rw_fds[i].fd) != NULL)
			rw->rw_inner[i].fd = -1;
	}
}

/* Whether rw_fds[i] is of /dev/netmap. */
static struct run_desc *
wait_desc(const struct run_wait *rw, nfds_t i)
{
	if (rw->rw_inner[i].fd != -1)
		return (NULL);
	return (run_find(rw->rw_fds[i].fd));
}

/* Returns how many are ready. */
static int
wait_sync(struct run_wait *rw)
{
	struct run_desc *rd;
	nfds_t i;
	int n = 0;

	for (i = 0; i < rw->rw_n; i++) {
		rw->rw_fds[i].revents = 0;
		rd = wait_desc(rw, i);
		if (rd != NULL)
			rw->rw_fds[i].revents = desc_events(rd,
			    rw->rw_fds[i].events);
		if (rw->rw_fds[i].revents != 0)
			n++;
	}
	return (n);
}

/*
 * Have poll(2) wait for the rings' sockets, or leave them out, since something
 * is ready.  Returns whether something has become ready.
 */
static bool
wait_arm(struct run_wait *rw, bool sleep)
{
	struct pollfd *pfd = rw->rw_inner + rw->rw_n;
	struct run_desc *rd;
	bool ready = false;
	unsigned int k;
	nfds_t i;

	for (i = 0; sleep && i < rw->rw_n; i++) {
		rd = wait_desc(rw, i);
		if (rd == NULL)
			continue;
		for (k = rd->rd_first; k < rd->rd_end; k++) {
			ready |= ring_wait(rd, k, rw->rw_fds[i].events, pfd);
			pfd += 2;
		}
	}
	while (pfd < rw->rw_inner + rw->rw_n + rw->rw_sockets)
		*pfd++ = (struct pollfd){ .fd = -1 };
	return (ready);
}

/*
 * Take what poll(2) has found.  A socket whose other end has gone is an error
 * of its port: there is POLLHUP, whether or not there is POLLERR.  Returns how
 * many are ready.
 */
static int
wait_take(struct run_wait *rw)
{
	const struct pollfd *pfd = rw->rw_inner + rw->rw_n;
	struct run_desc *rd;
	unsigned int k;
	nfds_t i;
	int n = 0;

	for (i = 0; i < rw->rw_n; i++) {
		rd = wait_desc(rw, i);
		if (rw->rw_inner[i].fd != -1)
			rw->rw_fds[i].revents = rw->rw_inner[i].revents;
		for (k = rd != NULL ? desc_sockets(rd) : 0; k > 0; k--)
			if ((pfd++->revents & (POLLHUP | POLLNVAL)) != 0)
				rw->rw_fds[i].revents |= POLLERR;
		if (rw->rw_fds[i].revents != 0)
			n++;
	}
	return (n);
}

/* The time until `deadline', at least 0. */
static struct timespec
time_left(const struct timespec *deadline)
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

static struct timespec
time_add(const struct timespec *timeout)
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
wait_loop(struct run_wait *rw, const struct timespec *timeout,
    const sigset_t *mask)
{
	const nfds_t all = rw->rw_n + rw->rw_sockets;
	struct timespec deadline, left = { 0, 0 };
	int n, r;

	if (timeout != NULL && (timeout->tv_sec != 0 || timeout->tv_nsec != 0))
		deadline = time_add(timeout);
	else
		deadline = left;
	for (;;) {
		n = wait_sync(rw);
		if (n > 0 && rw->rw_n == rw->rw_netmap)
			return (n);
		if (wait_arm(rw, n == 0))
			continue;
		if (n == 0 && (deadline.tv_sec != 0 || deadline.tv_nsec != 0))
			left = time_left(&deadline);
		else
			left = (struct timespec){ 0, 0 };
		r = run_calls()->ppoll(rw->rw_inner, all,
		    timeout == NULL && n == 0 ? NULL : &left, mask);
		if (r == -1)
			return (-1);
		n = wait_take(rw);
		if (n > 0 || r == 0)
			return (n);
	}
}

int
run_poll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
    const sigset_t *mask)
{
	struct pollfd small[WAIT_SMALL];
	struct run_wait rw = { .rw_fds = fds, .rw_n = n, .rw_inner = small };
	struct run_desc *rd;
	int error, r;
	nfds_t i;

	if (timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 ||
	    timeout->tv_nsec >= 1000000000)) {
		errno = EINVAL;
		return (-1);
	}
	for (i = 0; i < n; i++) {
		rd = run_find(fds[i].fd);
		if (rd == NULL)
			continue;
		rw.rw_netmap++;
		rw.rw_sockets += desc_sockets(rd);
	}
	if (n + rw.rw_sockets > WAIT_SMALL) {
		rw.rw_inner = calloc(n + rw.rw_sockets, sizeof(*rw.rw_inner));
		if (rw.rw_inner == NULL)
			return (-1);
	}
	wait_init(&rw);
	r = wait_loop(&rw, timeout, mask);
	error = errno;
	if (rw.rw_inner != small)
		free(rw.rw_inner);
	errno = error;
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
	{ WANT_RX, WANT_RX | POLLHUP | POLLERR },
	{ WANT_TX, WANT_TX | POLLERR },
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

/* Returns the number of bits, or -1 if a descriptor is not open. */
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
	r = run_poll(fds, count, timeout, mask);
	if (r != -1)
		r = select_result(n, sets, fds, count);
	error = errno;
	free(fds);
	errno = error;
	return (r);
}

/*
 * epoll(7).  Descriptors of /dev/netmap in one are kept here.  The kernel's
 * does not have them: it would report that a socket has no other end.
 */
struct run_entry {
	int		 re_epfd;
	int		 re_fd;
	struct epoll_event re_event;
};

static struct run_entry *entries;	/* the table's lock */
static size_t nentries;
static atomic_size_t epoll_count;	/* the same; to look without it */

/* Returns the entry, or NULL.  The table's lock, as all of these. */
static struct run_entry *
entry_find(int epfd, int fd)
{
	size_t i;

	for (i = 0; i < nentries; i++)
		if (entries[i].re_epfd == epfd && entries[i].re_fd == fd)
			return (&entries[i]);
	return (NULL);
}

static int
entry_add(int epfd, int fd, const struct epoll_event *event)
{
	struct run_entry *new;

	new = realloc(entries, (nentries + 1) * sizeof(*new));
	if (new == NULL)
		return (-1);
	entries = new;
	entries[nentries++] = (struct run_entry){ epfd, fd, *event };
	atomic_store(&epoll_count, nentries);
	return (0);
}

static void
entry_delete(struct run_entry *re)
{
	*re = entries[--nentries];
	atomic_store(&epoll_count, nentries);
}

void
run_epoll_closed(int fd)
{
	size_t i = nentries;

	while (i-- > 0)
		if (entries[i].re_epfd == fd || entries[i].re_fd == fd)
			entry_delete(&entries[i]);
}

/* What epoll_ctl(2) finds wrong, or 0. */
static int
epoll_check(int epfd, int op, int fd, const struct epoll_event *event)
{
	/* It is not in the kernel's, so only what `epfd' is can be wrong. */
	if (run_calls()->epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL) == -1 &&
	    errno != ENOENT)
		return (errno);
	if (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return (EINVAL);
	if (op != EPOLL_CTL_DEL && event == NULL)
		return (EFAULT);
	if (op == EPOLL_CTL_ADD)
		return (entry_find(epfd, fd) != NULL ? EEXIST : 0);
	return (entry_find(epfd, fd) == NULL ? ENOENT : 0);
}

static int
epoll_change(int epfd, int op, int fd, const struct epoll_event *event)
{
	switch (op) {
	case EPOLL_CTL_ADD:
		return (entry_add(epfd, fd, event));
	case EPOLL_CTL_MOD:
		entry_find(epfd, fd)->re_event = *event;
		return (0);
	default:
		entry_delete(entry_find(epfd, fd));
		return (0);
	}
}

int
run_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int error, r = -1;

	run_lock();
	error = epoll_check(epfd, op, fd, event);
	if (error == 0)
		r = epoll_change(epfd, op, fd, event);
	else
		errno = error;
	run_unlock();
	return (r);
}

bool
run_epoll_used(void)
{
	return (atomic_load(&epoll_count) != 0);
}

bool
run_epoll_any(int epfd)
{
	bool any = false;
	size_t i;

	if (!run_epoll_used())
		return (false);
	run_lock();
	for (i = 0; i < nentries && !any; i++)
		any = entries[i].re_epfd == epfd;
	run_unlock();
	return (any);
}

/* A wait for an epoll(7) descriptor. */
struct run_epoll {
	int		 rp_epfd;
	size_t		 rp_n;
	struct run_entry *rp_entries;	/* copies */
	struct pollfd	*rp_fds;	/* rp_n, and rp_epfd */
};

static struct pollfd
entry_pollfd(const struct run_entry *re)
{
	struct pollfd pfd = { .fd = re->re_fd };

	if (re->re_event.events == EPOLLONESHOT)
		pfd.fd = -1;
	pfd.events = re->re_event.events & (WANT_TX | WANT_RX);
	return (pfd);
}

static int
epoll_init(struct run_epoll *rp, int epfd)
{
	size_t i;

	memset(rp, 0, sizeof(*rp));
	rp->rp_epfd = epfd;
	run_lock();
	rp->rp_entries = calloc(nentries + 1, sizeof(*rp->rp_entries));
	rp->rp_fds = calloc(nentries + 1, sizeof(*rp->rp_fds));
	for (i = 0; rp->rp_entries != NULL && rp->rp_fds != NULL &&
	    i < nentries; i++) {
		if (entries[i].re_epfd != epfd)
			continue;
		rp->rp_entries[rp->rp_n] = entries[i];
		rp->rp_fds[rp->rp_n++] = entry_pollfd(&entries[i]);
	}
	run_unlock();
	if (rp->rp_entries == NULL || rp->rp_fds == NULL)
		return (-1);
	rp->rp_fds[rp->rp_n] = (struct pollfd){ .fd = epfd, .events = POLLIN };
	return (0);
}

/* Report an entry.  With EPOLLONESHOT it then waits for epoll_ctl(2). */
static void
epoll_report(const struct run_entry *re, short revents,
    struct epoll_event *event)
{
	struct run_entry *at;

	event->events = (unsigned short)revents;
	event->data = re->re_event.data;
	if ((re->re_event.events & EPOLLONESHOT) == 0)
		return;
	run_lock();
	at = entry_find(re->re_epfd, re->re_fd);
	if (at != NULL)
		at->re_event.events = EPOLLONESHOT;
	run_unlock();
}

/* Report up to `max' of these descriptors, beginning with number `turn'. */
static int
epoll_take_netmap(struct run_epoll *rp, struct epoll_event *events, int max,
    unsigned int turn)
{
	size_t i, k;
	int n = 0;

	for (k = 0; k < rp->rp_n && n < max; k++) {
		i = (turn + k) % rp->rp_n;
		if (rp->rp_fds[i].revents != 0) {
			epoll_report(&rp->rp_entries[i], rp->rp_fds[i].revents,
			    &events[n]);
			n++;
		}
	}
	return (n);
}

/* Report up to `max' of the others. */
static int
epoll_take_others(struct run_epoll *rp, struct epoll_event *events, int max)
{
	if (rp->rp_fds[rp->rp_n].revents == 0 || max == 0)
		return (0);
	return (run_calls()->epoll_wait(rp->rp_epfd, events, max, 0));
}

/* Both kinds take turns to come first, so that neither takes all the space. */
static int
epoll_take(struct run_epoll *rp, struct epoll_event *events, int max)
{
	static atomic_uint turns;
	const unsigned int turn = atomic_fetch_add(&turns, 1);
	int n = 0, r;

	if (turn % 2 == 0)
		n = epoll_take_netmap(rp, events, max, turn / 2);
	r = epoll_take_others(rp, events + n, max - n);
	if (r == -1)
		return (n > 0 ? n : -1);
	n += r;
	if (turn % 2 != 0)
		n += epoll_take_netmap(rp, events + n, max - n, turn / 2);
	return (n);
}

int
run_epoll_wait(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	struct run_epoll rp;
	struct timespec deadline, left;
	int error, r;

	if (max <= 0 || events == NULL) {
		errno = max <= 0 ? EINVAL : EFAULT;
		return (-1);
	}
	if (timeout != NULL)
		deadline = time_add(timeout);
	do {
		if (timeout != NULL)
			left = time_left(&deadline);
		r = epoll_init(&rp, epfd);
		if (r == 0)
			r = run_poll(rp.rp_fds, rp.rp_n + 1,
			    timeout != NULL ? &left : NULL, mask);
		error = errno;
		if (r > 0) {
			r = epoll_take(&rp, events, max);
			error = errno;
			/* Another thread may have taken what was ready. */
			if (r == 0)
				r = -2;
		}
		free(rp.rp_entries);
		free(rp.rp_fds);
	} while (r == -2);
	errno = error;
	return (r);
}
