/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * epoll(7) with descriptors of /dev/netmap.  netmap_run.h.
 *
 * Descriptors of /dev/netmap in one are kept here.  The kernel's does not have
 * them: it would report that a socket has no other end.  So a thread that waits
 * does not see that another one has added a descriptor, or changed what it
 * waits for.  It is woken by an eventfd(2) in the kernel's list, whose event no
 * program gets, and waits anew.
 */

#include <sys/eventfd.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "netmap_run.h"

struct run_entry {
	int		 ee_epfd;
	int		 ee_fd;
	struct epoll_event ee_event;
};

static struct run_entry *entries;	/* the table's lock */
static size_t nentries;
static atomic_size_t epoll_count;	/* the same; to look without it */
static atomic_uint waiters;	/* and those that were cancelled */
static int wake_fd = -1;	/* the table's lock */
static atomic_bool waked;	/* there is one; its address is in the events */

/* Return the entry, or NULL.  The table's lock, as all of these. */
static struct run_entry *
entry_find(int epfd, int fd)
{
	size_t i;

	for (i = 0; i < nentries; i++)
		if (entries[i].ee_epfd == epfd && entries[i].ee_fd == fd)
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
entry_delete(struct run_entry *ee)
{
	*ee = entries[--nentries];
	atomic_store(&epoll_count, nentries);
}

void
run_epoll_closed(int fd)
{
	size_t i = nentries;

	while (i-- > 0)
		if (entries[i].ee_epfd == fd || entries[i].ee_fd == fd)
			entry_delete(&entries[i]);
}

/* Fail as epoll_ctl(2) does. */
static int
epoll_check(int epfd, int op, int fd, const struct epoll_event *event)
{
	/* The kernel's list lacks `fd', so only what `epfd' is can be wrong. */
	if (run_calls()->epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL) == -1 &&
	    errno != ENOENT)
		return (-1);
	if (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD && op != EPOLL_CTL_DEL)
		return (run_fail(EINVAL));
	if (op != EPOLL_CTL_DEL && event == NULL)
		return (run_fail(EFAULT));
	if (op == EPOLL_CTL_ADD)
		return (entry_find(epfd, fd) != NULL ? run_fail(EEXIST) : 0);
	return (entry_find(epfd, fd) == NULL ? run_fail(ENOENT) : 0);
}

static int
epoll_change(int epfd, int op, int fd, const struct epoll_event *event)
{
	switch (op) {
	case EPOLL_CTL_ADD:
		return (entry_add(epfd, fd, event));
	case EPOLL_CTL_MOD:
		entry_find(epfd, fd)->ee_event = *event;
		return (0);
	default:
		entry_delete(entry_find(epfd, fd));
		return (0);
	}
}

/* Have a thread that waits begin anew.  The table's lock. */
static void
epoll_wake(int epfd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT,
	    .data.ptr = &waked };

	if (wake_fd == -1) {
		wake_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
		if (wake_fd == -1)
			return;
		run_own_set(wake_fd, true);
		atomic_store(&waked, true);
	}
	if (run_calls()->epoll_ctl(epfd, EPOLL_CTL_ADD, wake_fd, &ev) == -1)
		(void)run_calls()->epoll_ctl(epfd, EPOLL_CTL_MOD, wake_fd,
		    &ev);
}

int
run_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int r;

	run_lock();
	r = epoll_check(epfd, op, fd, event);
	if (r == 0)
		r = epoll_change(epfd, op, fd, event);
	if (r == 0 && op != EPOLL_CTL_DEL && atomic_load(&waiters) != 0)
		epoll_wake(epfd);
	run_unlock();
	return (r);
}

void
run_epoll_enter(void)
{
	atomic_fetch_add(&waiters, 1);
}

void
run_epoll_leave(void)
{
	atomic_fetch_sub(&waiters, 1);
}

int
run_epoll_own(struct epoll_event *events, int n)
{
	int i, left = 0;

	if (n <= 0 || !atomic_load(&waked))
		return (n);
	for (i = 0; i < n; i++)
		if (events[i].data.ptr != &waked)
			events[left++] = events[i];
	return (left);
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
		any = entries[i].ee_epfd == epfd;
	run_unlock();
	return (any);
}

/* A wait for an epoll(7) descriptor. */
struct run_epoll {
	int		 ew_epfd;
	size_t		 ew_n;
	struct run_entry *ew_entries;	/* copies */
	struct run_desc	**ew_descs;	/* theirs, with references, and NULL */
	struct pollfd	*ew_fds;	/* ew_n, and ew_epfd */
};

static struct pollfd
entry_pollfd(const struct run_entry *ee)
{
	struct pollfd pfd = { .fd = ee->ee_fd };

	if (ee->ee_event.events == EPOLLONESHOT)
		pfd.fd = -1;
	pfd.events = ee->ee_event.events & (RUN_TX_EVENTS | RUN_RX_EVENTS);
	return (pfd);
}

/*
 * Gather what is there now: closing a number takes its entry out with the
 * table's lock, so the number is of the entry's descriptor here, and may be of
 * another later.
 */
static int
epoll_init(struct run_epoll *ew, int epfd)
{
	bool memory;
	size_t i;

	memset(ew, 0, sizeof(*ew));
	ew->ew_epfd = epfd;
	run_lock();
	ew->ew_entries = calloc(nentries + 1, sizeof(*ew->ew_entries));
	ew->ew_descs = calloc(nentries + 1, sizeof(*ew->ew_descs));
	ew->ew_fds = calloc(nentries + 1, sizeof(*ew->ew_fds));
	memory = ew->ew_entries != NULL && ew->ew_descs != NULL &&
	    ew->ew_fds != NULL;
	for (i = 0; memory && i < nentries; i++) {
		if (entries[i].ee_epfd != epfd)
			continue;
		ew->ew_entries[ew->ew_n] = entries[i];
		ew->ew_fds[ew->ew_n] = entry_pollfd(&entries[i]);
		/* With EPOLLONESHOT it was reported. */
		if (ew->ew_fds[ew->ew_n].fd != -1)
			ew->ew_descs[ew->ew_n] = run_get(entries[i].ee_fd);
		ew->ew_n++;
	}
	run_unlock();
	if (!memory)
		return (-1);
	ew->ew_fds[ew->ew_n] = (struct pollfd){ .fd = epfd, .events = POLLIN };
	return (0);
}

/* Give back what the wait has.  Leaves errno. */
static void
epoll_end(void *arg)
{
	struct run_epoll *ew = arg;
	const int error = errno;

	while (ew->ew_n-- > 0)
		if (ew->ew_descs[ew->ew_n] != NULL)
			run_put(ew->ew_descs[ew->ew_n]);
	free(ew->ew_entries);
	free(ew->ew_descs);
	free(ew->ew_fds);
	errno = error;
}

/* Report an entry.  With EPOLLONESHOT it then waits for epoll_ctl(2). */
static void
epoll_report(const struct run_entry *ee, const struct run_desc *rd,
    short revents, struct epoll_event *event)
{
	struct run_entry *at;

	event->events = (unsigned short)revents;
	event->data = ee->ee_event.data;
	if ((ee->ee_event.events & EPOLLONESHOT) == 0)
		return;
	run_lock();
	at = entry_find(ee->ee_epfd, ee->ee_fd);
	if (at != NULL && run_find(ee->ee_fd) == rd)
		at->ee_event.events = EPOLLONESHOT;
	run_unlock();
}

/* Report up to `max' of these descriptors, beginning with number `turn'. */
static int
epoll_take_netmap(struct run_epoll *ew, struct epoll_event *events, int max,
    unsigned int turn)
{
	size_t i, k;
	int n = 0;

	for (k = 0; k < ew->ew_n && n < max; k++) {
		i = (turn + k) % ew->ew_n;
		if (ew->ew_fds[i].revents != 0) {
			epoll_report(&ew->ew_entries[i], ew->ew_descs[i],
			    ew->ew_fds[i].revents, &events[n]);
			n++;
		}
	}
	return (n);
}

/* Report up to `max' of the others. */
static int
epoll_take_others(struct run_epoll *ew, struct epoll_event *events, int max)
{
	if (ew->ew_fds[ew->ew_n].revents == 0 || max == 0)
		return (0);
	return (run_epoll_own(events, run_calls()->epoll_wait(ew->ew_epfd,
	    events, max, 0)));
}

/* Take events: both kinds come first in turn, so that neither takes all. */
static int
epoll_take(struct run_epoll *ew, struct epoll_event *events, int max)
{
	static atomic_uint turns;
	const unsigned int turn = atomic_fetch_add(&turns, 1);
	int n = 0, r;

	if (turn % 2 == 0)
		n = epoll_take_netmap(ew, events, max, turn / 2);
	r = epoll_take_others(ew, events + n, max - n);
	if (r == -1)
		return (n > 0 ? n : -1);
	n += r;
	if (turn % 2 != 0)
		n += epoll_take_netmap(ew, events + n, max - n, turn / 2);
	return (n);
}

/* Wait once.  Returns -2 if another thread has taken what was ready. */
static int
epoll_once(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	struct run_epoll ew;
	int r;

	/* The thread may be cancelled while it waits. */
	pthread_cleanup_push(epoll_end, &ew);
	r = epoll_init(&ew, epfd);
	if (r == 0)
		r = run_poll(ew.ew_fds, ew.ew_descs, ew.ew_n + 1, timeout,
		    mask);
	if (r > 0) {
		r = epoll_take(&ew, events, max);
		r = r == 0 ? -2 : r;
	}
	pthread_cleanup_pop(1);
	return (r);
}

int
run_epoll_wait(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec deadline, left;
	int r;

	if (max <= 0 || events == NULL)
		return (run_fail(max <= 0 ? EINVAL : EFAULT));
	if (timeout != NULL)
		deadline = run_deadline(timeout);
	do {
		if (timeout != NULL)
			left = run_left(&deadline);
		r = epoll_once(epfd, events, max, timeout != NULL ? &left :
		    NULL, mask);
	} while (r == -2);
	return (r);
}
