/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/stat.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "event_stub.h"
#include "require.h"

#define	STEPS	100000		/* of events_run(), at most */

struct mevent	events[EVENTS];
unsigned int	events_fail;
unsigned int	events_repeated;

static void	(*round_func)(void *);
static void	*round_arg;

static struct mevent *
event_add(int fd, enum ev_type type, void (*func)(int, enum ev_type, void *),
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
	events[i] = (struct mevent){ fd, type, func, arg, true, on };
	return (&events[i]);
}

struct mevent *
mevent_add(int fd, enum ev_type type, void (*func)(int, enum ev_type, void *),
    void *arg)
{
	return (event_add(fd, type, func, arg, true));
}

struct mevent *
mevent_add_disabled(int fd, enum ev_type type,
    void (*func)(int, enum ev_type, void *), void *arg)
{
	return (event_add(fd, type, func, arg, false));
}

int
mevent_enable(struct mevent *m)
{
	REQUIRE(m->used);
	events_repeated += m->on;
	m->on = true;
	return (0);
}

int
mevent_disable(struct mevent *m)
{
	REQUIRE(m->used);
	events_repeated += !m->on;
	m->on = false;
	return (0);
}

int
mevent_delete(struct mevent *m)
{
	REQUIRE(m->used);
	memset(m, 0, sizeof(*m));
	return (0);
}

int
mevent_delete_close(struct mevent *m)
{
	close(m->fd);
	return (mevent_delete(m));
}

int
mevent_round(void (*func)(void *), void *arg)
{
	round_func = func;
	round_arg = arg;
	return (0);
}

/* There is one loop, which the test runs. */
struct mevent_loop *
mevent_loop(void)
{
	static char loop;

	return ((struct mevent_loop *)&loop);
}

void
mevent_stop(struct mevent_loop *loop)
{
	REQUIRE(loop == mevent_loop());
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
	unsigned int i, n;

	for (i = 0; i < EVENTS; i++) {
		pfd[i].fd = events[i].used && events[i].on ? events[i].fd : -1;
		pfd[i].events = events[i].type == EVF_READ ? POLLIN : POLLOUT;
		pfd[i].revents = 0;
	}
	REQUIRE(poll(pfd, EVENTS, 0) != -1 || errno == EINTR);
	n = 0;
	for (i = 0; i < EVENTS; i++) {
		if (pfd[i].revents == 0 || !events[i].used || !events[i].on ||
		    events[i].fd != pfd[i].fd)
			continue;
		events[i].func(events[i].fd, events[i].type, events[i].arg);
		n++;
	}
	if (n > 0 && round_func != NULL)
		round_func(round_arg);
	return (n);
}

void
events_run(void)
{
	unsigned int i;

	for (i = 0; events_step() != 0; i++)
		REQUIRE(i < STEPS);
}
