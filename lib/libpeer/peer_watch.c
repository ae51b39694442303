/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The watchdog; see peer_watch.h. */

#include <time.h>

#include "peer_watch.h"

#define	NS_PER_S	1000000000ULL
/* Checks that find the same call, before it is interrupted. */
#define	PEER_WATCH_CHECKS	3

bool
peer_watch_check(struct peer_watch *w, uint32_t calls)
{
	if (calls != w->calls || calls % 2 == 0)
		w->checks = 0;
	w->calls = calls;
	if (calls % 2 != 0 && w->checks < PEER_WATCH_CHECKS)
		w->checks++;
	return (w->checks == PEER_WATCH_CHECKS);
}

static uint64_t
peer_watch_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

uint64_t
peer_watch_start(void)
{
	return (peer_watch_now() + NS_PER_S);
}

bool
peer_watch_due(uint64_t *next_ns)
{
	uint64_t now_ns;

	now_ns = peer_watch_now();
	if (now_ns < *next_ns)
		return (false);
	*next_ns = now_ns + NS_PER_S;
	return (true);
}

bool
peer_watch_wait(struct pollfd *fds, nfds_t nfds, uint64_t *next_ns)
{
	struct timespec ts;
	uint64_t left_ns, now_ns;
	nfds_t i;

	now_ns = peer_watch_now();
	left_ns = *next_ns > now_ns ? *next_ns - now_ns : 0;
	ts.tv_sec = left_ns / NS_PER_S;
	ts.tv_nsec = left_ns % NS_PER_S;
	if (ppoll(fds, nfds, &ts, NULL) == -1) {
		for (i = 0; i < nfds; i++)
			fds[i].revents = 0;
	}
	return (peer_watch_due(next_ns));
}
