/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "event_stub.h"
#include "require.h"

#define	STEPS	100000		/* of events_run(), at most */

struct loop_event	events[EVENTS];
unsigned int	events_fail;
unsigned int	events_repeated;

static void	(*round_func)(void *);
static void	*round_arg;

/* Have epoll(7) tell of what is there, once, and of what comes then. */
static int
event_new(struct loop_event *m, int op)
{
	struct epoll_event ee = { .events = EPOLLIN | EPOLLET };

	return (m->type != LOOP_READ_NEW ? 0 :
	    epoll_ctl(m->epoll, op, m->fd, &ee));
}

static struct loop_event *
event_add(int fd, enum loop_type type, void (*func)(int, void *),
    void *arg, bool on)
{
	struct stat st;
	unsigned int i;

	if (events_fail != 0 && --events_fail == 0) {
		errno = ENOSPC;
		return (NULL);
	}
	if (fstat(fd, &st) == -1)
		return (NULL);
	if (S_ISREG(st.st_mode)) {
		errno = EPERM;
		return (NULL);
	}
	for (i = 0; i < EVENTS && events[i].used; i++)
		REQUIRE(events[i].fd != fd || events[i].type != type);
	REQUIRE(i < EVENTS);
	events[i] = (struct loop_event){ fd, type, func, arg, true, on,
	    type == LOOP_READ_NEW ? epoll_create1(EPOLL_CLOEXEC) : -1 };
	if (event_new(&events[i], EPOLL_CTL_ADD) == -1) {
		loop_delete(&events[i]);
		return (NULL);
	}
	return (&events[i]);
}

struct loop_event *
loop_add(int fd, enum loop_type type, void (*func)(int, void *),
    void *arg)
{
	return (event_add(fd, type, func, arg, true));
}

struct loop_event *
loop_add_disabled(int fd, enum loop_type type,
    void (*func)(int, void *), void *arg)
{
	return (event_add(fd, type, func, arg, false));
}

int
loop_enable(struct loop_event *m)
{
	REQUIRE(m->used);
	events_repeated += m->on;
	m->on = true;
	REQUIRE(event_new(m, EPOLL_CTL_MOD) == 0);
	return (0);
}

int
loop_disable(struct loop_event *m)
{
	REQUIRE(m->used);
	events_repeated += !m->on;
	m->on = false;
	return (0);
}

void
loop_delete(struct loop_event *m)
{
	REQUIRE(m->used);
	if (m->epoll != -1)
		close(m->epoll);
	memset(m, 0, sizeof(*m));
}

int		round_within = -1;

void
loop_round_within(int ms)
{
	if (round_within == -1 || ms < round_within)
		round_within = ms;
}

uint64_t	polls_ns;

void
loop_poll(uint64_t ns)
{
	polls_ns = ns;
}

int
loop_round(void (*func)(void *), void *arg)
{
	round_func = func;
	round_arg = arg;
	return (0);
}

/* There is one loop, which the test runs. */
struct loop *
loop_self(void)
{
	static char loop;

	return ((struct loop *)&loop);
}

void
loop_stop(struct loop *loop)
{
	REQUIRE(loop == loop_self());
}

unsigned int
events_used(void)
{
	unsigned int i, n;

	n = 0;
	for (i = 0; i < EVENTS; i++)
		n += events[i].used;
	return (n);
}

unsigned int
events_on(void)
{
	unsigned int i, n;

	n = 0;
	for (i = 0; i < EVENTS; i++)
		n += events[i].used && events[i].on;
	return (n);
}

unsigned int
events_step(void)
{
	struct pollfd pfd[EVENTS];
	struct epoll_event ee;
	unsigned int i, n;

	for (i = 0; i < EVENTS; i++) {
		pfd[i].fd = !events[i].used || !events[i].on ? -1 :
		    events[i].type == LOOP_READ_NEW ? events[i].epoll :
		    events[i].fd;
		pfd[i].events = events[i].type == LOOP_WRITE ? POLLOUT : POLLIN;
		pfd[i].revents = 0;
	}
	REQUIRE(poll(pfd, EVENTS, 0) != -1 || errno == EINTR);
	n = 0;
	for (i = 0; i < EVENTS; i++) {
		if (pfd[i].revents == 0 || !events[i].used || !events[i].on ||
		    (events[i].fd != pfd[i].fd &&
		    events[i].epoll != pfd[i].fd))
			continue;
		if (events[i].type == LOOP_READ_NEW)
			(void)epoll_wait(events[i].epoll, &ee, 1, 0);
		events[i].func(events[i].fd, events[i].arg);
		n++;
	}
	if (round_func == NULL || (n == 0 && round_within != 0))
		return (n);
	if (round_within == 0)
		round_within = -1;
	round_func(round_arg);
	return (MAX(n, 1));
}

void
events_run(void)
{
	unsigned int i;

	for (i = 0; events_step() != 0; i++)
		REQUIRE(i < STEPS);
}
