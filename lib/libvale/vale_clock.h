/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The time, and what the calling thread has done of it.
 */

#ifndef _VALE_CLOCK_H_
#define	_VALE_CLOCK_H_

#include <sys/resource.h>

#include <stdint.h>
#include <time.h>

#ifndef CLOCK_MONOTONIC_COARSE
#define	CLOCK_MONOTONIC_COARSE	CLOCK_MONOTONIC
#endif

/* Return the time, with the resolution of a clock tick. */
static inline uint64_t
vale_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* Return the time in ms, with the clock's own resolution. */
static inline uint64_t
vale_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

/* Return how often the calling thread has slept, as the kernel counts. */
static inline long
vale_sleeps(void)
{
	struct rusage ru;

	return (getrusage(RUSAGE_THREAD, &ru) == 0 ? ru.ru_nvcsw : 0);
}

#endif /* !_VALE_CLOCK_H_ */
