/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Event loops over epoll(7), one per thread; see mevent.h.
 *
 * An event is one descriptor in its loop's epoll set.  Timers and signals have
 * a timerfd or signalfd.  If a descriptor has two events, one to read and one
 * to write, the second gets a duplicate of it, because epoll accepts each
 * descriptor once.  mevent_disable() removes the event from the set: epoll
 * reports errors and hangups even of descriptors with an empty event mask.
 *
 * The round in progress may hold pointers to an event that is deleted.  So a
 * deleted event stays on ml_dead until the loop's thread is between two rounds
 * and frees it; outside of mevent_dispatch(), that thread frees it at once.  A
 * loop outlives its thread until its last event is deleted.
 *
 * ml_mtx protects all fields of a loop and its events that change, except
 * ml_round and ml_param, which only the loop's thread uses.  It is never held
 * while a handler runs.
 */

#include <sys/cdefs.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "mevent.h"

#define	MEVENT_BATCH	64	/* events per epoll_wait(2) */

struct mevent {
	LIST_ENTRY(mevent)	 me_link;
	struct mevent_loop	*me_loop;
	void			(*me_func)(int, enum ev_type, void *);
	void			*me_param;
	enum ev_type		 me_type;
	int			 me_fd;		/* as the caller gave it */
	int			 me_pollfd;	/* as epoll sees it */
	bool			 me_enabled;
	bool			 me_dead;
	bool			 me_closefd;	/* mevent_free() closes me_fd */
};

LIST_HEAD(mevent_list, mevent);

struct mevent_loop {
	pthread_mutex_t		 ml_mtx;
	pthread_t		 ml_thread;
	int			 ml_epfd;
	int			 ml_wakefd;	/* eventfd, to end a wait */
	bool			 ml_running;	/* in mevent_dispatch() */
	bool			 ml_stop;
	bool			 ml_orphan;	/* ml_thread has ended */
	void			(*ml_round)(void *);
	void			*ml_param;	/* ml_round()'s */
	struct mevent_list	 ml_events;
	struct mevent_list	 ml_dead;
};

static pthread_once_t mevent_once = PTHREAD_ONCE_INIT;
static pthread_key_t mevent_key;
static int mevent_key_error;

static void
mevent_loop_free(struct mevent_loop *loop)
{
	close(loop->ml_epfd);
	close(loop->ml_wakefd);
	pthread_mutex_destroy(&loop->ml_mtx);
	free(loop);
}

static void
mevent_free(struct mevent *evp)
{
	if (evp->me_pollfd != evp->me_fd)
		close(evp->me_pollfd);
	if (evp->me_closefd)
		close(evp->me_fd);
	free(evp);
}

/* Free deleted events.  ml_mtx is held, no round in progress. */
static void
mevent_reap(struct mevent_loop *loop)
{
	struct mevent *evp, *next;

	LIST_FOREACH_SAFE(evp, &loop->ml_dead, me_link, next)
		mevent_free(evp);
	LIST_INIT(&loop->ml_dead);
}

static void
mevent_thread_ends(void *arg)
{
	struct mevent_loop *loop;
	bool last;

	loop = arg;
	pthread_mutex_lock(&loop->ml_mtx);
	mevent_reap(loop);
	loop->ml_orphan = true;
	last = LIST_EMPTY(&loop->ml_events);
	pthread_mutex_unlock(&loop->ml_mtx);
	if (last)
		mevent_loop_free(loop);
}

static void
mevent_init(void)
{
	mevent_key_error = pthread_key_create(&mevent_key, mevent_thread_ends);
}

struct mevent_loop *
mevent_loop(void)
{
	struct epoll_event ev;
	struct mevent_loop *loop;
	int error;

	pthread_once(&mevent_once, mevent_init);
	if (mevent_key_error != 0) {
		errno = mevent_key_error;
		return (NULL);
	}
	loop = pthread_getspecific(mevent_key);
	if (loop != NULL)
		return (loop);

	loop = calloc(1, sizeof(*loop));
	if (loop == NULL)
		goto fail;
	LIST_INIT(&loop->ml_events);
	LIST_INIT(&loop->ml_dead);
	loop->ml_thread = pthread_self();
	loop->ml_epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->ml_epfd == -1)
		goto fail_loop;
	loop->ml_wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->ml_wakefd == -1)
		goto fail_epfd;
	memset(&ev, 0, sizeof(ev));
	ev.events = EPOLLIN;
	if (epoll_ctl(loop->ml_epfd, EPOLL_CTL_ADD, loop->ml_wakefd, &ev) != 0)
		goto fail_wakefd;
	error = pthread_mutex_init(&loop->ml_mtx, NULL);
	if (error != 0) {
		errno = error;
		goto fail_wakefd;
	}
	error = pthread_setspecific(mevent_key, loop);
	if (error != 0) {
		errno = error;
		goto fail_mtx;
	}
	return (loop);

fail_mtx:
	pthread_mutex_destroy(&loop->ml_mtx);
fail_wakefd:
	close(loop->ml_wakefd);
fail_epfd:
	close(loop->ml_epfd);
fail_loop:
	free(loop);
fail:
	return (NULL);
}

static void
mevent_wake(struct mevent_loop *loop)
{
	eventfd_write(loop->ml_wakefd, 1);
}

/* Add the event to the epoll set or remove it.  ml_mtx is held. */
static int
mevent_poll(struct mevent *evp, bool enable)
{
	struct epoll_event ev;

	if (evp->me_enabled == enable)
		return (0);
	memset(&ev, 0, sizeof(ev));
	ev.events = evp->me_type == EVF_WRITE ? EPOLLOUT : EPOLLIN;
	ev.data.ptr = evp;
	if (epoll_ctl(evp->me_loop->ml_epfd, enable ? EPOLL_CTL_ADD :
	    EPOLL_CTL_DEL, evp->me_pollfd, &ev) != 0)
		return (-1);
	evp->me_enabled = enable;
	return (0);
}

static int
mevent_timer_set(int timerfd, int msecs)
{
	struct itimerspec its;

	if (msecs <= 0) {
		errno = EINVAL;
		return (-1);
	}
	its.it_interval.tv_sec = msecs / 1000;
	its.it_interval.tv_nsec = (msecs % 1000) * 1000000L;
	its.it_value = its.it_interval;
	return (timerfd_settime(timerfd, 0, &its, NULL));
}

static int
mevent_open_timer(int msecs)
{
	int fd;

	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd == -1)
		return (-1);
	if (mevent_timer_set(fd, msecs) != 0) {
		close(fd);
		return (-1);
	}
	return (fd);
}

static int
mevent_open_signal(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	if (sigaddset(&set, signo) != 0)
		return (-1);
	errno = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (errno != 0)
		return (-1);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

/* The descriptor for epoll to watch, or -1.  ml_mtx held. */
static int
mevent_open(struct mevent_loop *loop, int fd, enum ev_type type)
{
	const struct mevent *evp;
	bool shared;

	shared = false;
	LIST_FOREACH(evp, &loop->ml_events, me_link) {
		if (evp->me_fd != fd || type == EVF_TIMER ||
		    evp->me_type == EVF_TIMER)
			continue;
		if (evp->me_type == type) {
			errno = EEXIST;
			return (-1);
		}
		if (type != EVF_SIGNAL && evp->me_type != EVF_SIGNAL)
			shared = true;
	}
	switch (type) {
	case EVF_TIMER:
		return (mevent_open_timer(fd));
	case EVF_SIGNAL:
		return (mevent_open_signal(fd));
	default:
		return (shared ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : fd);
	}
}

static struct mevent *
mevent_add_state(int fd, enum ev_type type,
    void (*func)(int, enum ev_type, void *), void *param, bool enable)
{
	struct mevent_loop *loop;
	struct mevent *evp;

	loop = mevent_loop();
	if (loop == NULL)
		return (NULL);
	evp = calloc(1, sizeof(*evp));
	if (evp == NULL)
		return (NULL);
	evp->me_loop = loop;
	evp->me_func = func;
	evp->me_param = param;
	evp->me_type = type;
	evp->me_fd = fd;

	pthread_mutex_lock(&loop->ml_mtx);
	evp->me_pollfd = mevent_open(loop, fd, type);
	if (evp->me_pollfd == -1)
		goto fail;
	/* Try it now, so that the fd does not make mevent_enable() fail. */
	if (mevent_poll(evp, true) != 0)
		goto fail_pollfd;
	if (!enable)
		mevent_poll(evp, false);
	LIST_INSERT_HEAD(&loop->ml_events, evp, me_link);
	pthread_mutex_unlock(&loop->ml_mtx);
	return (evp);

fail_pollfd:
	if (evp->me_pollfd != fd || type == EVF_TIMER || type == EVF_SIGNAL)
		close(evp->me_pollfd);
fail:
	pthread_mutex_unlock(&loop->ml_mtx);
	free(evp);
	return (NULL);
}

struct mevent *
mevent_add(int fd, enum ev_type type,
    void (*func)(int, enum ev_type, void *), void *param)
{
	return (mevent_add_state(fd, type, func, param, true));
}

struct mevent *
mevent_add_disabled(int fd, enum ev_type type,
    void (*func)(int, enum ev_type, void *), void *param)
{
	return (mevent_add_state(fd, type, func, param, false));
}

static int
mevent_set_enabled(struct mevent *evp, bool enable)
{
	int error;

	pthread_mutex_lock(&evp->me_loop->ml_mtx);
	error = mevent_poll(evp, enable);
	pthread_mutex_unlock(&evp->me_loop->ml_mtx);
	return (error);
}

int
mevent_enable(struct mevent *evp)
{
	return (mevent_set_enabled(evp, true));
}

int
mevent_disable(struct mevent *evp)
{
	return (mevent_set_enabled(evp, false));
}

int
mevent_timer_update(struct mevent *evp, int msecs)
{
	if (evp->me_type != EVF_TIMER) {
		errno = EINVAL;
		return (-1);
	}
	return (mevent_timer_set(evp->me_pollfd, msecs));
}

static int
mevent_delete_state(struct mevent *evp, bool closefd)
{
	struct mevent_loop *loop;
	bool last;

	loop = evp->me_loop;
	pthread_mutex_lock(&loop->ml_mtx);
	mevent_poll(evp, false);
	if (evp->me_pollfd != evp->me_fd &&
	    (evp->me_type == EVF_READ || evp->me_type == EVF_WRITE)) {
		/* So that the caller's close(2) is the file's last. */
		close(evp->me_pollfd);
		evp->me_pollfd = evp->me_fd;
	}
	evp->me_dead = true;
	evp->me_closefd = closefd;
	LIST_REMOVE(evp, me_link);
	LIST_INSERT_HEAD(&loop->ml_dead, evp, me_link);
	if (loop->ml_running)
		mevent_wake(loop);
	else if (loop->ml_orphan ||
	    pthread_equal(loop->ml_thread, pthread_self()))
		mevent_reap(loop);
	last = loop->ml_orphan && LIST_EMPTY(&loop->ml_events);
	pthread_mutex_unlock(&loop->ml_mtx);
	if (last)
		mevent_loop_free(loop);
	return (0);
}

int
mevent_delete(struct mevent *evp)
{
	return (mevent_delete_state(evp, false));
}

int
mevent_delete_close(struct mevent *evp)
{
	return (mevent_delete_state(evp, true));
}

int
mevent_round(void (*func)(void *), void *param)
{
	struct mevent_loop *loop;

	loop = mevent_loop();
	if (loop == NULL)
		return (-1);
	loop->ml_round = func;
	loop->ml_param = param;
	return (0);
}

void
mevent_stop(struct mevent_loop *loop)
{
	pthread_mutex_lock(&loop->ml_mtx);
	loop->ml_stop = true;
	mevent_wake(loop);
	pthread_mutex_unlock(&loop->ml_mtx);
}

/* Read what makes a timerfd or signalfd readable. */
static void
mevent_drain(const struct mevent *evp)
{
	struct signalfd_siginfo info[8];

	if (evp->me_type != EVF_TIMER && evp->me_type != EVF_SIGNAL)
		return;
	while (read(evp->me_pollfd, info, sizeof(info)) > 0)
		continue;
}

static void
mevent_handle(struct mevent_loop *loop, struct mevent *evp)
{
	eventfd_t wakeups;
	bool live;

	if (evp == NULL) {
		eventfd_read(loop->ml_wakefd, &wakeups);
		return;
	}
	pthread_mutex_lock(&loop->ml_mtx);
	live = evp->me_enabled && !evp->me_dead && !loop->ml_stop;
	pthread_mutex_unlock(&loop->ml_mtx);
	if (live) {
		mevent_drain(evp);
		evp->me_func(evp->me_fd, evp->me_type, evp->me_param);
	}
}

void
mevent_dispatch(void)
{
	struct epoll_event events[MEVENT_BATCH];
	struct mevent_loop *loop;
	int i, n;

	loop = mevent_loop();
	if (loop == NULL)
		err(EX_OSERR, "event loop");
	pthread_mutex_lock(&loop->ml_mtx);
	loop->ml_running = true;
	while (!loop->ml_stop) {
		pthread_mutex_unlock(&loop->ml_mtx);

		n = epoll_wait(loop->ml_epfd, events, MEVENT_BATCH, -1);
		if (n == -1 && errno != EINTR)
			err(EX_OSERR, "epoll_wait");
		for (i = 0; i < n; i++)
			mevent_handle(loop, events[i].data.ptr);
		if (loop->ml_round != NULL)
			loop->ml_round(loop->ml_param);

		pthread_mutex_lock(&loop->ml_mtx);
		mevent_reap(loop);
	}
	loop->ml_stop = false;
	loop->ml_running = false;
	pthread_mutex_unlock(&loop->ml_mtx);
}
