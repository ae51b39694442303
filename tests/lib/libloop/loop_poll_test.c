/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * When a loop looks for events before it sleeps, and how often.  The clock
 * advances by what the case says: nothing here depends on how long it takes.
 */

#include <sys/param.h>
#include <sys/epoll.h>

#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "loop.h"
#include "test.h"
#include "wrap.h"

#define	POLL_NS		50000
#define	LOOK_NS		1000		/* of a look, with its yield */

/*
 * What happens in each wait, one after the other: an event comes at a look, or
 * (0) in a sleep of so long.  `expected' is how often the loop looks before it
 * has the event.
 */
struct step {
	unsigned int	at;
	uint64_t	sleep_ns;
	unsigned int	expected;
	unsigned int	away_at;	/* the look after which another thread
					   has the processor, or 0 */
	uint64_t	later_ns;	/* the next wait begins */
	int64_t		poll_ns;	/* with this loop_poll(), or -1 */
};

#define	STEP(at, sleep_ns, expected) { at, sleep_ns, expected, 0, 0, -1 }

static const struct step *step;
static unsigned int nsteps;
static uint64_t	clock_ns;
static unsigned int clocks;		/* how often it was read */
static unsigned int looks;		/* waits of no time */
static unsigned int sleeps;		/* others */
static int	slept_ms;		/* the last one with an end */
static int	fds[2];

static void
come(void)
{
	ATF_REQUIRE_EQ(1, write(fds[1], "x", 1));
}

WRAP(int, epoll_wait, int epfd, struct epoll_event *ev, int n, int ms)
{
	ATF_REQUIRE(step != NULL);
	if (ms == 0) {
		if (++looks == step->at)
			come();
	} else {
		sleeps++;
		if (ms != -1)
			slept_ms = ms;
		clock_ns += step->sleep_ns;
		come();
	}
	return (__real_epoll_wait(epfd, ev, n, ms));
}

WRAP(int, sched_yield, void)
{
	if (step == NULL)
		return (__real_sched_yield());
	clock_ns += looks == step->away_at ? 10001 : LOOK_NS;
	return (0);
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	/* A sanitizer's. */
	if (step == NULL || clock != CLOCK_MONOTONIC)
		return (__real_clock_gettime(clock, ts));
	clocks++;
	ts->tv_sec = clock_ns / 1000000000;
	ts->tv_nsec = clock_ns % 1000000000;
	return (0);
}

static void
on_event(int fd, void *arg __unused)
{
	char c;

	ATF_CHECK_EQ(1, read(fd, &c, 1));
	ATF_CHECK_EQ_MSG(step->expected, looks, "%u left: %u looks, not %u",
	    nsteps, looks, step->expected);
	ATF_CHECK_EQ(step->at == 0, sleeps);
	looks = sleeps = 0;
	clock_ns += step->later_ns;
	if (step->poll_ns != -1)
		loop_poll(step->poll_ns);
	if (--nsteps == 0)
		loop_stop(loop_self());
	else
		step++;
}

static void
run(uint64_t poll_ns, const struct step *steps, unsigned int n)
{
	clock_ns = 5000000000;
	step = steps;
	nsteps = n;
	ATF_REQUIRE_EQ(0, pipe(fds));
	ATF_REQUIRE(loop_add(fds[0], LOOP_READ, on_event, NULL) != NULL);
	loop_poll(poll_ns);
	loop_run();
	ATF_CHECK_EQ(0, nsteps);
}

TEST_WITH(off, "timeout", "60", "Without a time the loop sleeps at once, and "
    "does not read the clock")
{
	static const struct step steps[] = { STEP(0, 100, 0),
	    STEP(0, 100, 0) };

	run(0, steps, nitems(steps));
	ATF_CHECK_EQ(0, clocks);
}

TEST_WITH(learns, "timeout", "60", "The loop looks for as long as that has "
    "paid lately")
{
	static const struct step steps[] = {
		/* Not before an event has come soon. */
		STEP(0, POLL_NS + 1, 0), STEP(0, POLL_NS, 0),
		/* It does, and finds the next ones. */
		STEP(1, 0, 1), STEP(50, 0, 50), STEP(7, 0, 7),
		/* Those that come later than that: half as long each time. */
		STEP(0, 1000000, 50), STEP(0, 1000000, 25),
		STEP(0, 1000000, 13),
		/* One that the longest time would have found. */
		STEP(0, POLL_NS - 7 * LOOK_NS, 7), STEP(50, 0, 50),
		STEP(0, 1000000, 50), STEP(0, 1000000, 25),
		STEP(0, 1000000, 13), STEP(0, 1000000, 7), STEP(0, 1000000, 4),
		STEP(0, 1000000, 2), STEP(0, 1000000, 0), STEP(0, 1000000, 0),
		/* A change begins anew. */
		{ 0, 1000, 0, 0, 0, 2 * POLL_NS },
		STEP(0, 2 * POLL_NS, 0), { 99, 0, 99, 0, 0, 0 },
		STEP(0, 1000, 0), STEP(0, 1000, 0),
	};

	run(POLL_NS, steps, nitems(steps));
}

TEST_WITH(away, "timeout", "60", "It sleeps when another thread needs the "
    "processor, and looks for nothing in the next 10 ms")
{
	static const struct step steps[] = {
		STEP(0, 1, 0), { 0, 1000, 3, 3, 0, -1 },
		{ 0, 1000, 0, 0, 9990000, -1 }, { 0, 1000, 0, 0, 10000, -1 },
		STEP(5, 0, 5)
	};

	run(POLL_NS, steps, nitems(steps));
}

static unsigned int	rounds;

static void
on_round(void *arg __unused)
{
	switch (rounds++) {
	case 0:
		loop_round_within(7);
		break;
	case 1:
		loop_round_within(0);
		break;
	}
}

TEST_WITH(rounds, "timeout", "60", "A time to wait is kept; none is not made "
    "longer")
{
	static const struct step steps[] = { STEP(0, 1, 0),
	    STEP(0, 1000000, 50), { 0, 1000000, 26, 0, 0, -1 } };

	ATF_REQUIRE_EQ(0, loop_round(on_round, NULL));
	run(POLL_NS, steps, nitems(steps));
	ATF_CHECK_EQ(7, slept_ms);
	/* The one of no time had no event. */
	ATF_CHECK_EQ(4, rounds);
}

TEST_PROGRAM
