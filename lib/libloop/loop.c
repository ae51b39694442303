/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Event loops over epoll(7), one a thread; see loop.h.
 *
 * An event is one descriptor in its loop's epoll set.  If a descriptor has two
 * events, one to read and one to write, the second gets a duplicate of it,
 * because epoll accepts each descriptor once.
 *
 * The round in progress may hold a pointer to an event that is deleted:
 * loop_delete() takes the event out of evl_ready.
 *
 * Only the loop's thread uses a loop, but for evl_stopfd, which others write.
 *
 * Polling (loop_poll()).  To wake a thread takes longer than to handle an
 * event, so the loop may look for the next one for a while before it sleeps.
 * Whether that pays it learns from each wait: after one in which an event came
 * within the longest time, it looks for so long; after another, for half as
 * long as before.  It looks only while the processor is idle otherwise: it
 * gives the processor away after each look, and if it has been away for longer
 * than a few looks take, another thread has used it.  Then the loop sleeps, and
 * does not poll for a while, because a thread that sleeps is woken before
 * others that run, and one that polls is not.
 */

#include <sys/cdefs.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

#define	LOOP_BATCH	64	/* events per epoll_wait(2) */
/* The processor has not been away for longer than this, ns. */
#define	LOOP_AWAY_NS	10000
/* If it has, the loop does not poll for so long, ns. */
#define	LOOP_REST_NS	10000000
/* A time to poll that is shorter is none, ns. */
#define	LOOP_POLL_MIN_NS 1000

struct loop_event {
	struct loop		*lev_loop;
	void			(*lev_func)(int fd, void *arg);
	void			*lev_arg;
	enum loop_type		 lev_type;
	int			 lev_fd;	/* as the caller gave it */
	int			 lev_pollfd;	/* as epoll sees it */
	bool			 lev_enabled;
};

struct loop {
	int			 evl_epfd;
	int			 evl_stopfd;	/* eventfd: loop_stop() */
	void			(*evl_round)(void *arg);
	void			*evl_arg;	/* evl_round()'s */
	struct epoll_event	 evl_ready[LOOP_BATCH];
	int			 evl_nready;	/* of the round in progress */
	int			 evl_within;	/* ms of the next wait, or -1 */
	uint64_t		 evl_poll_ns;	/* that of loop_poll() */
	uint64_t		 evl_look_ns;	/* what pays, up to that */
	uint64_t		 evl_rest_ns;	/* no polling before */
};

static _Thread_local struct loop *loop_own;

static void
loop_free(struct loop *loop)
{
	const int error = errno;

	if (loop->evl_epfd != -1)
		close(loop->evl_epfd);
	if (loop->evl_stopfd != -1)
		close(loop->evl_stopfd);
	free(loop);
	errno = error;
}

struct loop *
loop_self(void)
{
	struct epoll_event ee = { .events = EPOLLIN };
	struct loop *loop = loop_own;

	if (loop != NULL)
		return (loop);
	loop = calloc(1, sizeof(*loop));
	if (loop == NULL)
		return (NULL);
	loop->evl_within = -1;
	loop->evl_epfd = epoll_create1(EPOLL_CLOEXEC);
	loop->evl_stopfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->evl_epfd == -1 || loop->evl_stopfd == -1 ||
	    epoll_ctl(loop->evl_epfd, EPOLL_CTL_ADD, loop->evl_stopfd,
	    &ee) == -1) {
		loop_free(loop);
		return (NULL);
	}
	loop_own = loop;
	return (loop);
}

void
loop_end(void)
{
	if (loop_own != NULL)
		loop_free(loop_own);
	loop_own = NULL;
}

/*
 * Add the event to the epoll set, or change it there.  One that is disabled
 * stays in the set, for errors, which are ignored: so it can be enabled without
 * memory.
 */
static int
event_poll(struct loop_event *ev, int op, bool enable)
{
	struct epoll_event ee = { .events = EPOLLET, .data.ptr = ev };

	if (enable)
		ee.events = (ev->lev_type == LOOP_WRITE ? EPOLLOUT : EPOLLIN) |
		    (ev->lev_type == LOOP_READ_NEW ? EPOLLET : 0);
	if (epoll_ctl(ev->lev_loop->evl_epfd, op, ev->lev_pollfd, &ee) == -1)
		return (-1);
	ev->lev_enabled = enable;
	return (0);
}

/* Add the event by a duplicate of its descriptor, which has another event. */
static int
event_poll_copy(struct loop_event *ev, bool enable)
{
	ev->lev_pollfd = fcntl(ev->lev_fd, F_DUPFD_CLOEXEC, 0);
	if (ev->lev_pollfd == -1)
		return (-1);
	if (event_poll(ev, EPOLL_CTL_ADD, enable) == 0)
		return (0);
	close(ev->lev_pollfd);
	return (-1);
}

static struct loop_event *
event_add(int fd, enum loop_type type, void (*func)(int fd, void *arg),
    void *arg, bool enable)
{
	struct loop *loop = loop_self();
	struct loop_event *ev;

	if (loop == NULL)
		return (NULL);
	ev = malloc(sizeof(*ev));
	if (ev == NULL)
		return (NULL);
	*ev = (struct loop_event){ .lev_loop = loop, .lev_func = func,
	    .lev_arg = arg, .lev_type = type, .lev_fd = fd, .lev_pollfd = fd };
	if (event_poll(ev, EPOLL_CTL_ADD, enable) == 0 ||
	    (errno == EEXIST && event_poll_copy(ev, enable) == 0))
		return (ev);
	free(ev);
	return (NULL);
}

struct loop_event *
loop_add(int fd, enum loop_type type, void (*func)(int fd, void *arg),
    void *arg)
{
	return (event_add(fd, type, func, arg, true));
}

struct loop_event *
loop_add_disabled(int fd, enum loop_type type,
    void (*func)(int fd, void *arg), void *arg)
{
	return (event_add(fd, type, func, arg, false));
}

int
loop_enable(struct loop_event *ev)
{
	return (ev->lev_enabled ? 0 : event_poll(ev, EPOLL_CTL_MOD, true));
}

int
loop_disable(struct loop_event *ev)
{
	return (ev->lev_enabled ? event_poll(ev, EPOLL_CTL_MOD, false) : 0);
}

void
loop_delete(struct loop_event *ev)
{
	struct loop *loop = ev->lev_loop;
	int i;

	event_poll(ev, EPOLL_CTL_DEL, false);
	/* So that the caller's close(2) is the file's last. */
	if (ev->lev_pollfd != ev->lev_fd)
		close(ev->lev_pollfd);
	for (i = 0; i < loop->evl_nready; i++)
		if (loop->evl_ready[i].data.ptr == ev)
			loop->evl_ready[i].events = 0;
	free(ev);
}

int
loop_round(void (*func)(void *arg), void *arg)
{
	struct loop *loop = loop_self();

	if (loop == NULL)
		return (-1);
	loop->evl_round = func;
	loop->evl_arg = arg;
	return (0);
}

void
loop_round_within(int ms)
{
	struct loop *loop = loop_self();

	if (loop != NULL && (loop->evl_within == -1 || ms < loop->evl_within))
		loop->evl_within = ms;
}

void
loop_poll(uint64_t ns)
{
	struct loop *loop = loop_self();

	if (loop == NULL)
		return;
	loop->evl_poll_ns = ns;
	loop->evl_look_ns = loop->evl_rest_ns = 0;
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000ULL + ts.tv_nsec);
}

static int
loop_look(struct loop *loop, int ms)
{
	return (epoll_wait(loop->evl_epfd, loop->evl_ready, LOOP_BATCH, ms));
}

/*
 * Look for events as long as it pays, from begun_ns on.  Returns as
 * epoll_wait(2), 0 if none has come.
 */
static int
loop_spin(struct loop *loop, uint64_t begun_ns)
{
	uint64_t last_ns = begun_ns, ns;
	int n;

	if (begun_ns < loop->evl_rest_ns)
		return (0);
	while (last_ns - begun_ns < loop->evl_look_ns) {
		n = loop_look(loop, 0);
		if (n != 0)
			return (n);
		sched_yield();
		ns = now_ns();
		if (ns - last_ns > LOOP_AWAY_NS) {
			loop->evl_rest_ns = ns + LOOP_REST_NS;
			return (0);
		}
		last_ns = ns;
	}
	return (0);
}

/* Wait for events, for `ms' milliseconds at most unless that is -1. */
static int
loop_wait(struct loop *loop, int ms)
{
	uint64_t begun_ns;
	int n;

	if (loop->evl_poll_ns == 0 || ms == 0)
		return (loop_look(loop, ms));
	begun_ns = now_ns();
	n = loop_spin(loop, begun_ns);
	if (n != 0)
		return (n);
	n = loop_look(loop, ms);
	if (n > 0 && now_ns() - begun_ns <= loop->evl_poll_ns)
		loop->evl_look_ns = loop->evl_poll_ns;
	else if (loop->evl_look_ns >= 2 * LOOP_POLL_MIN_NS)
		loop->evl_look_ns /= 2;
	else
		loop->evl_look_ns = 0;
	return (n);
}

void
loop_stop(struct loop *loop)
{
	eventfd_write(loop->evl_stopfd, 1);
}

/* Return whether loop_stop() was called: then no handler is called any more. */
static bool
loop_stopped(const struct loop *loop)
{
	eventfd_t n;
	int i;

	for (i = 0; i < loop->evl_nready; i++)
		if (loop->evl_ready[i].data.ptr == NULL)
			return (eventfd_read(loop->evl_stopfd, &n) == 0);
	return (false);
}

static void
loop_handle(const struct epoll_event *ready)
{
	const struct loop_event *ev = ready->data.ptr;

	if (ready->events != 0 && ev->lev_enabled)
		ev->lev_func(ev->lev_fd, ev->lev_arg);
}

void
loop_run(void)
{
	struct loop *loop = loop_self();
	int i, within;

	if (loop == NULL)
		err(EX_OSERR, "event loop");
	for (;;) {
		within = loop->evl_within;
		loop->evl_within = -1;
		loop->evl_nready = loop_wait(loop, within);
		if (loop->evl_nready == -1 && errno != EINTR)
			err(EX_OSERR, "epoll_wait");
		if (loop_stopped(loop))
			break;
		for (i = 0; i < loop->evl_nready; i++)
			loop_handle(&loop->evl_ready[i]);
		if (loop->evl_round != NULL)
			loop->evl_round(loop->evl_arg);
	}
	loop->evl_nready = 0;
}
