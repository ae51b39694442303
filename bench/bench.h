/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the measuring programs have in common.
 *
 * Figures of two runs minutes apart cannot be compared on a machine that does
 * other things too.  So a program measures what it is about and, beside it, a
 * bare loop that touches the same bytes: in turn, in runs of a few
 * milliseconds, many times over, and takes medians.
 */

#ifndef _BENCH_H_
#define	_BENCH_H_

#include <stdbool.h>
#include <stdint.h>

/* What a measurement is about; a line of the CSV. */
struct bench_what {
	const char	*subject;	/* "switch", "tx", ... */
	uint32_t	 bytes;		/* of a frame */
	uint32_t	 batch;		/* frames */
	uint32_t	 destinations;	/* of a sender */
	uint32_t	 senders;
	uint32_t	 idle;		/* ports nobody uses */
};

/* Pass at least `frames' frames, as thread `thread' of several. */
typedef void	bench_run_t(void *arg, unsigned int thread, uint64_t frames);

/* Monotonic, nanoseconds. */
uint64_t bench_now_ns(void);

/* A command line's number; ends the program if it is not from min to max. */
uint32_t bench_number(const char *s, uint32_t min, uint32_t max);

/* Keep the calling thread on the n-th of the processors it may use. */
void	bench_pin(unsigned int n);

/*
 * Measure `run' beside `bare' in what->senders threads at once and print a
 * line:
 *
 *	subject,bytes,batch,destinations,senders,idle,ns,bare_ns,ratio
 *
 * the nanoseconds being of all senders together.  With `frames' not 0, run only
 * `run', for that many frames, in this thread, and print nothing: for programs
 * that count instructions, which find it as bench_counted().
 */
void	bench_measure(const struct bench_what *what, bench_run_t *run,
	    bench_run_t *bare, void *arg, uint64_t frames);
void	bench_counted(bench_run_t *run, void *arg, uint64_t frames);

#endif /* !_BENCH_H_ */
