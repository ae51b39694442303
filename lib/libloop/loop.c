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
 * because epoll accepts each descriptor once.  loop_disable() removes the event
 * from the set: epoll reports errors and hangups even of descriptors with an
 * empty event mask.
 *
 * The round in progress may hold pointers to an event that is deleted.  So a
 * deleted event stays on evl_dead until the loop's thread is between two rounds
 * and frees it; outside of loop_run(), that thread frees it at once.  A loop
 * outlives its thread until its last event is deleted.
 *
 * evl_mtx protects all fields of a loop and its events that change, except
 * evl_round, evl_arg, and those of evl_within on, which only the loop's thread
 * uses.  It is never held while a handler runs.
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
#include <sys/queue.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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
	LIST_ENTRY(loop_event)	 lev_link;
	struct loop		*lev_loop;
	void			(*lev_func)(int fd, void *arg);
	void			*lev_arg;
	enum loop_type		 lev_type;
	int			 lev_fd;	/* as the caller gave it */
	int			 lev_pollfd;	/* as epoll sees it */
	bool			 lev_enabled;
	bool			 lev_dead;
};

LIST_HEAD(loop_event_list, loop_event);

struct loop {
	pthread_mutex_t		 evl_mtx;
	pthread_t		 evl_thread;
	int			 evl_epfd;
	int			 evl_wakefd;	/* eventfd, to end a wait */
	bool			 evl_running;	/* in loop_run() */
	bool			 evl_stop;
	bool			 evl_orphan;	/* evl_thread has ended */
	void			(*evl_round)(void *arg);
	void			*evl_arg;	/* evl_round()'s */
	struct loop_event_list	 evl_events;
	struct loop_event_list	 evl_dead;
	int			 evl_within;	/* ms of the next wait, or -1 */
	uint64_t		 evl_poll_ns;	/* that of loop_poll() */
	uint64_t		 evl_look_ns;	/* what pays, up to that */
	uint64_t		 evl_rest_ns;	/* no polling before */
};

static pthread_once_t loop_once = PTHREAD_ONCE_INIT;
static pthread_key_t loop_key;
static int loop_key_error;

static void
loop_free(struct loop *loop)
{
	close(loop->evl_epfd);
	close(loop->evl_wakefd);
	pthread_mutex_destroy(&loop->evl_mtx);
	free(loop);
}

static void
event_free(struct loop_event *ev)
{
	if (ev->lev_pollfd != ev->lev_fd)
		close(ev->lev_pollfd);
	free(ev);
}

/* Free deleted events.  evl_mtx is held, no round in progress. */
static void
loop_reap(struct loop *loop)
{
	struct loop_event *ev, *next;

	LIST_FOREACH_SAFE(ev, &loop->evl_dead, lev_link, next)
		event_free(ev);
	LIST_INIT(&loop->evl_dead);
}

static void
loop_thread_ends(void *arg)
{
	struct loop *loop;
	bool last;

	loop = arg;
	pthread_mutex_lock(&loop->evl_mtx);
	loop_reap(loop);
	loop->evl_orphan = true;
	last = LIST_EMPTY(&loop->evl_events);
	pthread_mutex_unlock(&loop->evl_mtx);
	if (last)
		loop_free(loop);
}

static void
loop_init(void)
{
	loop_key_error = pthread_key_create(&loop_key, loop_thread_ends);
}

struct loop *
loop_self(void)
{
	struct epoll_event ev;
	struct loop *loop;
	int error;

	pthread_once(&loop_once, loop_init);
	if (loop_key_error != 0) {
		errno = loop_key_error;
		return (NULL);
	}
	loop = pthread_getspecific(loop_key);
	if (loop != NULL)
		return (loop);

	loop = calloc(1, sizeof(*loop));
	if (loop == NULL)
		goto fail;
	LIST_INIT(&loop->evl_events);
	LIST_INIT(&loop->evl_dead);
	loop->evl_thread = pthread_self();
	loop->evl_within = -1;
	loop->evl_epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->evl_epfd == -1)
		goto fail_loop;
	loop->evl_wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->evl_wakefd == -1)
		goto fail_epfd;
	memset(&ev, 0, sizeof(ev));
	ev.events = EPOLLIN;
	if (epoll_ctl(loop->evl_epfd, EPOLL_CTL_ADD, loop->evl_wakefd,
	    &ev) != 0)
		goto fail_wakefd;
	error = pthread_mutex_init(&loop->evl_mtx, NULL);
	if (error != 0) {
		errno = error;
		goto fail_wakefd;
	}
	error = pthread_setspecific(loop_key, loop);
	if (error != 0) {
		errno = error;
		goto fail_mtx;
	}
	return (loop);

fail_mtx:
	pthread_mutex_destroy(&loop->evl_mtx);
fail_wakefd:
	close(loop->evl_wakefd);
fail_epfd:
	close(loop->evl_epfd);
fail_loop:
	free(loop);
fail:
	return (NULL);
}

static void
loop_wake(struct loop *loop)
{
	eventfd_write(loop->evl_wakefd, 1);
}

/*
 * Add the event to the epoll set, or change it there.  One that is disabled
 * stays in the set, for errors, which are ignored: so it can be enabled without
 * memory.  evl_mtx is held.
 */
static int
event_poll(struct loop_event *ev, int op, bool enable)
{
	struct epoll_event ee;

	memset(&ee, 0, sizeof(ee));
	ee.events = EPOLLET;
	if (enable)
		ee.events = (ev->lev_type == LOOP_WRITE ? EPOLLOUT : EPOLLIN) |
		    (ev->lev_type == LOOP_READ_NEW ? EPOLLET : 0);
	ee.data.ptr = ev;
	if (epoll_ctl(ev->lev_loop->evl_epfd, op, ev->lev_pollfd, &ee) != 0)
		return (-1);
	ev->lev_enabled = enable;
	return (0);
}

/* Return the descriptor for epoll, or -1 with errno.  evl_mtx is held. */
static int
loop_open(struct loop *loop, int fd, enum loop_type type)
{
	const struct loop_event *ev;
	bool shared = false;

	LIST_FOREACH(ev, &loop->evl_events, lev_link) {
		if (ev->lev_fd != fd)
			continue;
		if (ev->lev_type == type) {
			errno = EEXIST;
			return (-1);
		}
		shared = true;
	}
	return (shared ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : fd);
}

static struct loop_event *
event_add(int fd, enum loop_type type, void (*func)(int fd, void *arg),
    void *arg, bool enable)
{
	struct loop *loop;
	struct loop_event *ev;

	loop = loop_self();
	if (loop == NULL)
		return (NULL);
	ev = calloc(1, sizeof(*ev));
	if (ev == NULL)
		return (NULL);
	ev->lev_loop = loop;
	ev->lev_func = func;
	ev->lev_arg = arg;
	ev->lev_type = type;
	ev->lev_fd = fd;

	pthread_mutex_lock(&loop->evl_mtx);
	ev->lev_pollfd = loop_open(loop, fd, type);
	if (ev->lev_pollfd == -1)
		goto fail;
	if (event_poll(ev, EPOLL_CTL_ADD, enable) != 0)
		goto fail_pollfd;
	LIST_INSERT_HEAD(&loop->evl_events, ev, lev_link);
	pthread_mutex_unlock(&loop->evl_mtx);
	return (ev);

fail_pollfd:
	if (ev->lev_pollfd != fd)
		close(ev->lev_pollfd);
fail:
	pthread_mutex_unlock(&loop->evl_mtx);
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

static int
event_set_enabled(struct loop_event *ev, bool enable)
{
	int error = 0;

	pthread_mutex_lock(&ev->lev_loop->evl_mtx);
	if (ev->lev_enabled != enable)
		error = event_poll(ev, EPOLL_CTL_MOD, enable);
	pthread_mutex_unlock(&ev->lev_loop->evl_mtx);
	return (error);
}

int
loop_enable(struct loop_event *ev)
{
	return (event_set_enabled(ev, true));
}

int
loop_disable(struct loop_event *ev)
{
	return (event_set_enabled(ev, false));
}

void
loop_delete(struct loop_event *ev)
{
	struct loop *loop;
	bool last;

	loop = ev->lev_loop;
	pthread_mutex_lock(&loop->evl_mtx);
	event_poll(ev, EPOLL_CTL_DEL, false);
	if (ev->lev_pollfd != ev->lev_fd) {
		/* So that the caller's close(2) is the file's last. */
		close(ev->lev_pollfd);
		ev->lev_pollfd = ev->lev_fd;
	}
	ev->lev_dead = true;
	LIST_REMOVE(ev, lev_link);
	LIST_INSERT_HEAD(&loop->evl_dead, ev, lev_link);
	if (loop->evl_running)
		loop_wake(loop);
	else if (loop->evl_orphan ||
	    pthread_equal(loop->evl_thread, pthread_self()))
		loop_reap(loop);
	last = loop->evl_orphan && LIST_EMPTY(&loop->evl_events);
	pthread_mutex_unlock(&loop->evl_mtx);
	if (last)
		loop_free(loop);
}

int
loop_round(void (*func)(void *arg), void *arg)
{
	struct loop *loop;

	loop = loop_self();
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
loop_look(const struct loop *loop, struct epoll_event *events, int ms)
{
	return (epoll_wait(loop->evl_epfd, events, LOOP_BATCH, ms));
}

/*
 * Look for events as long as it pays, from begun_ns on.  Returns as
 * epoll_wait(2), 0 if none has come.
 */
static int
loop_spin(struct loop *loop, struct epoll_event *events, uint64_t begun_ns)
{
	uint64_t last_ns = begun_ns, ns;
	int n;

	if (begun_ns < loop->evl_rest_ns)
		return (0);
	while (last_ns - begun_ns < loop->evl_look_ns) {
		n = loop_look(loop, events, 0);
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
loop_wait(struct loop *loop, struct epoll_event *events, int ms)
{
	uint64_t begun_ns;
	int n;

	if (loop->evl_poll_ns == 0 || ms == 0)
		return (loop_look(loop, events, ms));
	begun_ns = now_ns();
	n = loop_spin(loop, events, begun_ns);
	if (n != 0)
		return (n);
	n = loop_look(loop, events, ms);
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
	pthread_mutex_lock(&loop->evl_mtx);
	loop->evl_stop = true;
	loop_wake(loop);
	pthread_mutex_unlock(&loop->evl_mtx);
}

static void
loop_handle(struct loop *loop, struct loop_event *ev)
{
	eventfd_t wakeups;
	bool live;

	if (ev == NULL) {
		eventfd_read(loop->evl_wakefd, &wakeups);
		return;
	}
	pthread_mutex_lock(&loop->evl_mtx);
	live = ev->lev_enabled && !ev->lev_dead && !loop->evl_stop;
	pthread_mutex_unlock(&loop->evl_mtx);
	if (live)
		ev->lev_func(ev->lev_fd, ev->lev_arg);
}

void
loop_run(void)
{
	struct epoll_event events[LOOP_BATCH];
	struct loop *loop;
	int i, n, within;

	loop = loop_self();
	if (loop == NULL)
		err(EX_OSERR, "event loop");
	pthread_mutex_lock(&loop->evl_mtx);
	loop->evl_running = true;
	while (!loop->evl_stop) {
		pthread_mutex_unlock(&loop->evl_mtx);

		within = loop->evl_within;
		loop->evl_within = -1;
		n = loop_wait(loop, events, within);
		if (n == -1 && errno != EINTR)
			err(EX_OSERR, "epoll_wait");
		for (i = 0; i < n; i++)
			loop_handle(loop, events[i].data.ptr);
		if (loop->evl_round != NULL)
			loop->evl_round(loop->evl_arg);

		pthread_mutex_lock(&loop->evl_mtx);
		loop_reap(loop);
	}
	loop->evl_stop = false;
	loop->evl_running = false;
	pthread_mutex_unlock(&loop->evl_mtx);
}
