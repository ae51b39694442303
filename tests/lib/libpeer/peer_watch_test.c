/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed's watchdog: which calls it interrupts, and when it checks, with a clock
 * that stands still, jumps, and passes 2^32 and 2^63 ns.  The linker's --wrap
 * brings calls of clock_gettime(2) and ppoll(2) here.
 */

#include <sys/param.h>

#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include <atf-c.h>

#include "test.h"
#include "peer_watch.h"
#include "wrap.h"

#define	SECOND	1000000000ULL
#define	HOUR	(3600 * SECOND)

static uint64_t	now_ns;
static uint64_t	stop_ns;	/* the next wait takes that much longer */
static uint64_t	asked_ns;	/* the last wait's timeout */
static bool	ready;		/* a descriptor, in the next wait */
static bool	failed;		/* the next wait */
/* Those that are polled, and one behind them. */
#define	NFDS	2
static struct pollfd	fds[NFDS + 1];

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	ATF_REQUIRE_EQ(CLOCK_MONOTONIC, clock);
	ts->tv_sec = now_ns / SECOND;
	ts->tv_nsec = now_ns % SECOND;
	return (0);
}

WRAP(int, ppoll, struct pollfd *polled, nfds_t nfds, const struct timespec *ts,
    const sigset_t *mask)
{
	bool early = ready || failed;
	int n = failed ? -1 : ready;

	ATF_REQUIRE(polled == fds && nfds == NFDS && mask == NULL &&
	    ts->tv_sec >= 0 && ts->tv_nsec < (long)SECOND);
	asked_ns = ts->tv_sec * SECOND + ts->tv_nsec;
	if (!failed)
		fds[0].revents = fds[1].revents = ready ? POLLIN : 0;
	ready = failed = false;
	now_ns += (early ? asked_ns / 3 : asked_ns) + stop_ns;
	stop_ns = 0;
	return (n);
}

TEST(calls, "A call is interrupted at the third check in a row that finds it")
{
	struct peer_watch w = { 0 };
	uint32_t calls;
	int i;

	for (i = 0; i < 10; i++)
		ATF_CHECK(!peer_watch_check(&w, 0));
	/* The same, also where the count wraps. */
	for (calls = UINT32_MAX - 6; calls != 9; calls += 2) {
		ATF_CHECK(!peer_watch_check(&w, calls - 1));
		ATF_CHECK(!peer_watch_check(&w, calls));
		ATF_CHECK(!peer_watch_check(&w, calls));
		for (i = 0; i < 3; i++)
			ATF_CHECK(peer_watch_check(&w, calls));
	}
	/* Another call each time, or none. */
	for (calls = UINT32_MAX - 6; calls != 9; calls += 2) {
		ATF_CHECK(!peer_watch_check(&w, calls));
		ATF_CHECK(!peer_watch_check(&w, calls));
	}
	for (i = 0; i < 10; i++)
		ATF_CHECK(!peer_watch_check(&w, 8));
}

/* Wait for the next check; returns when it is. */
static uint64_t
check(uint64_t *next_ns)
{

	while (!peer_watch_wait(fds, NFDS, next_ns))
		ATF_CHECK_EQ(0, fds[1].revents);
	ATF_CHECK(*next_ns >= now_ns + SECOND);
	return (now_ns);
}

/* From one check to the next is a second, from a time on. */
static void
steady(uint64_t from_ns)
{
	uint64_t last_ns, next_ns;
	int i;

	now_ns = from_ns;
	next_ns = peer_watch_start();
	for (i = 0; i < 10; i++) {
		last_ns = now_ns;
		ATF_CHECK_EQ(last_ns + SECOND, check(&next_ns));
		ATF_CHECK_EQ(SECOND, asked_ns);
	}
}

TEST(steady, "It checks once a second, also when 2^32 and 2^63 ns are passed")
{
	steady(0);
	steady((1ULL << 32) - 1);
	steady((1ULL << 32) - 3 * SECOND);
	steady((1ULL << 63) - 3 * SECOND);
	steady((1ULL << 63) - 1);
}

TEST(stopped, "Checks missed in a minute's stop, or hours, are not made up for")
{
	static const uint64_t stops[] = { SECOND / 2, SECOND, 3 * SECOND / 2,
	    60 * SECOND, 5 * HOUR };
	struct peer_watch w = { 0 };
	uint64_t last_ns, next_ns;
	unsigned int i;

	now_ns = 77 * SECOND;
	next_ns = peer_watch_start();
	for (i = 0; i < nitems(stops); i++) {
		/* A thread enters a call, and the process is stopped. */
		check(&next_ns);
		ATF_CHECK(!peer_watch_check(&w, 2 * i + 1));
		stop_ns = stops[i];
		check(&next_ns);
		ATF_CHECK(!peer_watch_check(&w, 2 * i + 1));
		/* The thread has a second before the next check. */
		last_ns = now_ns;
		ATF_CHECK_EQ(last_ns + SECOND, check(&next_ns));
		ATF_CHECK(!peer_watch_check(&w, 2 * i + 2));
	}
}

TEST(events, "Events do not put off a check, a clock that stands still brings "
    "none, and a wait that fails no event")
{
	uint64_t next_ns, start_ns;
	unsigned int n;
	bool due;

	now_ns = start_ns = 5 * HOUR;
	next_ns = peer_watch_start();
	for (n = 1; ; n++) {
		ready = true;
		due = peer_watch_wait(fds, NFDS, &next_ns);
		ATF_CHECK_EQ(POLLIN, fds[1].revents);
		if (due || n == 100)
			break;
		ATF_CHECK_EQ(start_ns + SECOND, next_ns);
	}
	/* Each wait was a third of what was left. */
	ATF_CHECK(!due && asked_ns < 3);
	for (n = 0; n < 100; n++) {
		ready = true;
		ATF_CHECK(!peer_watch_wait(fds, NFDS, &next_ns));
		ATF_CHECK_EQ(POLLIN, fds[1].revents);
	}
	failed = true;
	fds[NFDS].revents = POLLHUP;
	ATF_CHECK(!peer_watch_wait(fds, NFDS, &next_ns));
	ATF_CHECK_EQ(0, fds[0].revents);
	ATF_CHECK_EQ(0, fds[1].revents);
	ATF_CHECK_EQ(POLLHUP, fds[NFDS].revents);
	/* A check that is overdue does not wait. */
	now_ns = next_ns + 5 * HOUR;
	ATF_CHECK(peer_watch_wait(fds, NFDS, &next_ns));
	ATF_CHECK_EQ(0, asked_ns);
	now_ns = next_ns;
	ready = true;
	ATF_CHECK(peer_watch_wait(fds, NFDS, &next_ns));
	ATF_CHECK_EQ(POLLIN, fds[1].revents);
	ATF_CHECK_EQ(now_ns + SECOND, next_ns);
}

TEST_PROGRAM
