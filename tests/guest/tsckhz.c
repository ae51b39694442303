/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Prints the frequency of the processor's time stamp counter in kHz.  An
 * emulated guest has the same counter.  On a busy machine it would measure a
 * wrong frequency with its emulated timers, and its clock would run at a wrong
 * speed; so the frequency is passed to its kernel.
 */

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define	NS_PER_S	1000000000LL
#define	MEASURE_NS	(NS_PER_S / 5)
/* Most ns between the reads of the two clocks. */
#define	SLACK_NS	2000

static int64_t
now_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC_RAW, &ts) == -1)
		err(1, "clock_gettime");
	return (ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

/* Read both clocks, again if the reads were too far apart. */
static void
read_both(int64_t *ns, uint64_t *tsc)
{
	int64_t after;

	do {
		*ns = now_ns();
		*tsc = __rdtsc();
		after = now_ns();
	} while (after - *ns > SLACK_NS);
}

int
main(void)
{
	struct timespec pause = { 0, MEASURE_NS };
	int64_t ns0, ns1;
	uint64_t tsc0, tsc1;

	read_both(&ns0, &tsc0);
	nanosleep(&pause, NULL);
	read_both(&ns1, &tsc1);
	printf("%" PRIu64 "\n", (tsc1 - tsc0) * 1000000 /
	    (uint64_t)(ns1 - ns0));
	return (0);
}
