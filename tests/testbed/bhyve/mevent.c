/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's event loop, over loop.h: timers and signals are descriptors.  Only
 * one thread may add, delete and dispatch.
 */

#include <sys/cdefs.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop.h"
#include "mevent.h"

struct mevent {
	struct loop_event *me_event;
	void		(*me_func)(int, enum ev_type, void *);
	void		*me_param;
	enum ev_type	 me_type;
	int		 me_fd;		/* as the caller gave it */
	int		 me_own;	/* a timer's or a signal's, or -1 */
};

static int
open_timer(int msecs)
{
	const struct timespec ts = { msecs / 1000, msecs % 1000 * 1000000L };
	const struct itimerspec its = { ts, ts };
	int fd;

	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd != -1 && timerfd_settime(fd, 0, &its, NULL) != 0) {
		close(fd);
		return (-1);
	}
	return (fd);
}

static int
open_signal(int signo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signo);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
		return (-1);
	return (signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static void
handle(int fd, void *arg)
{
	struct signalfd_siginfo info;
	struct mevent *m = arg;

	if (m->me_own != -1)
		(void)!read(fd, &info, sizeof(info));
	m->me_func(m->me_fd, m->me_type, m->me_param);
}

static void
mevent_free(struct mevent *m)
{
	if (m->me_own != -1)
		close(m->me_own);
	free(m);
}

static struct mevent *
add(int fd, enum ev_type type, void (*func)(int, enum ev_type, void *),
    void *param, bool enable)
{
	struct mevent *m;

	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return (NULL);
	m->me_func = func;
	m->me_param = param;
	m->me_type = type;
	m->me_fd = fd;
	m->me_own = type == EVF_TIMER ? open_timer(fd) :
	    type == EVF_SIGNAL ? open_signal(fd) : -1;
	if (m->me_own != -1)
		fd = m->me_own;
	m->me_event = (enable ? loop_add : loop_add_disabled)(fd,
	    type == EVF_WRITE ? LOOP_WRITE : LOOP_READ, handle, m);
	if (m->me_event == NULL) {
		mevent_free(m);
		return (NULL);
	}
	return (m);
}

struct mevent *
mevent_add(int fd, enum ev_type type,
    void (*func)(int, enum ev_type, void *), void *param)
{
	return (add(fd, type, func, param, true));
}

struct mevent *
mevent_add_disabled(int fd, enum ev_type type,
    void (*func)(int, enum ev_type, void *), void *param)
{
	return (add(fd, type, func, param, false));
}

int
mevent_enable(struct mevent *m)
{
	return (loop_enable(m->me_event));
}

int
mevent_disable(struct mevent *m)
{
	return (loop_disable(m->me_event));
}

int
mevent_delete(struct mevent *m)
{
	loop_delete(m->me_event);
	mevent_free(m);
	return (0);
}

int
mevent_delete_close(struct mevent *m)
{
	const int fd = m->me_fd;

	mevent_delete(m);
	return (close(fd));
}

void
mevent_dispatch(void)
{
	loop_run();
}
