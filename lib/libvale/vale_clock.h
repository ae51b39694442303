/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The time, how often the calling thread has slept, and a yield of the processor
 * that knows how long it took.
 */

#ifndef _VALE_CLOCK_H_
#define	_VALE_CLOCK_H_

#include <sys/resource.h>

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifndef CLOCK_MONOTONIC_COARSE
#define	CLOCK_MONOTONIC_COARSE	CLOCK_MONOTONIC
#endif

/* Another thread computes on this processor if it keeps that for so long, ns. */
#define	VALE_AWAY_NS	500000
/* The time for which nothing yields the processor then, ns. */
#define	VALE_REST_NS	100000000

/* Return the time, with the resolution of a clock tick. */
static inline uint64_t
vale_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* Return the time, with the clock's own resolution. */
static inline uint64_t
vale_now_exact_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* Return that time in ms. */
static inline uint64_t
vale_now_ms(void)
{
	return (vale_now_exact_ns() / 1000000);
}

/*
 * Yield the processor, between two looks for frames: who sends them may need
 * this one.  Where another thread computes, a yield takes its time slice, and to
 * sleep until there are frames takes less.  Returns false then, and without a
 * yield until *rest_ns, which belongs to the calling thread and is 0 at first.
 */
static inline bool
vale_yield(uint64_t *rest_ns)
{
	const uint64_t begun_ns = vale_now_exact_ns();
	uint64_t now_ns;

	if (begun_ns < *rest_ns)
		return (false);
	sched_yield();
	now_ns = vale_now_exact_ns();
	if (now_ns - begun_ns <= VALE_AWAY_NS)
		return (true);
	*rest_ns = now_ns + VALE_REST_NS;
	return (false);
}

/* Return how often the calling thread has slept, as the kernel counts. */
static inline long
vale_sleeps(void)
{
	struct rusage ru;

	return (getrusage(RUSAGE_THREAD, &ru) == 0 ? ru.ru_nvcsw : 0);
}

#endif /* !_VALE_CLOCK_H_ */
