/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The watchdog; see watch.h. */

#include <sys/param.h>

#include <time.h>

#include "watch.h"

#define	NS_PER_S	1000000000ULL
/* Looks that find the same call, before it is interrupted. */
#define	WATCH_LOOKS	3

bool
watch_look(struct watch *w, uint32_t calls)
{
	if (calls != w->calls || calls % 2 == 0)
		w->looks = 0;
	w->calls = calls;
	if (calls % 2 != 0 && w->looks < WATCH_LOOKS)
		w->looks++;
	return (w->looks == WATCH_LOOKS);
}

static uint64_t
watch_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

uint64_t
watch_start(void)
{
	return (watch_now() + NS_PER_S);
}

bool
watch_due(uint64_t *next_ns)
{
	uint64_t now_ns;

	now_ns = watch_now();
	if (now_ns < *next_ns)
		return (false);
	*next_ns = now_ns + NS_PER_S;
	return (true);
}

bool
watch_wait(struct pollfd *fds, nfds_t nfds, uint64_t *next_ns)
{
	struct timespec ts;
	uint64_t left_ns, now_ns;
	nfds_t i;

	now_ns = watch_now();
	left_ns = *next_ns > now_ns ? *next_ns - now_ns : 0;
	ts.tv_sec = left_ns / NS_PER_S;
	ts.tv_nsec = left_ns % NS_PER_S;
	if (ppoll(fds, nfds, &ts, NULL) == -1) {
		for (i = 0; i < nfds; i++)
			fds[i].revents = 0;
	}
	return (watch_due(next_ns));
}
