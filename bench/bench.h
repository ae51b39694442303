/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Common to the programs that measure.
 *
 * On a machine that does other things too, figures of runs minutes apart cannot
 * be compared.  So a program measures its subject and a bare loop that touches
 * the same bytes in turn, in many runs of a few milliseconds, and prints
 * medians.
 */

#ifndef _BENCH_H_
#define	_BENCH_H_

#include <stdbool.h>
#include <stdint.h>

/* The parameters of a measurement; a line of the CSV. */
struct bench_what {
	const char	*subject;	/* "switch", "tx", ... */
	uint32_t	 bytes;		/* of a frame */
	uint32_t	 batch;		/* frames */
	uint32_t	 destinations;	/* of a sender */
	uint32_t	 senders;
	uint32_t	 idle;		/* unused ports */
};

/* Pass at least `frames' frames, as thread `thread' of several. */
typedef void	bench_run_t(void *arg, unsigned int thread, uint64_t frames);

/* Monotonic, nanoseconds. */
uint64_t bench_now_ns(void);

/* Convert a number of the command line; exits unless it is from min to max. */
uint32_t bench_number(const char *s, uint32_t min, uint32_t max);

/*
 * Give port `name' a VLAN, and a guard that allows one Ethernet source.  Exits
 * on errors.
 */
void	bench_guard(const char *name, const uint8_t source[6]);

/* Frames that an interface of this network namespace has received; it wraps. */
uint32_t bench_arrived(const char *ifname);

/*
 * Make round trips of single frames for `ns', from the first one answered on,
 * and print the median of their times in microseconds.  `trip' sends frame `n'
 * and waits for the answer, up to `ms'; it returns whether that came.  Exits if
 * no answer comes for some seconds.
 */
typedef bool	bench_trip_t(void *arg, uint32_t n, int ms);
void	bench_trips(bench_trip_t *trip, void *arg, uint64_t ns);

/* Bind the calling thread to the n-th of the processors it may use. */
void	bench_pin(unsigned int n);

/*
 * Measure `run' beside `bare' in what->senders threads at once and print a
 * line:
 *
 *	subject,bytes,batch,destinations,senders,idle,ns,bare_ns,ratio
 *
 * Nanoseconds are elapsed time divided by the frames of all senders.  If
 * `frames' is not 0, run only `run', for that many frames, in this thread, and
 * print nothing: for programs that count instructions, which look for
 * bench_counted().
 */
void	bench_measure(const struct bench_what *what, bench_run_t *run,
	    bench_run_t *bare, void *arg, uint64_t frames);
void	bench_counted(bench_run_t *run, void *arg, uint64_t frames);

#endif /* !_BENCH_H_ */
