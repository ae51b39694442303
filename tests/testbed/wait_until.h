/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How tests wait.  wait_until.subr and wait_until.py do the same in shell and
 * in Python.
 *
 *	wait_until(done(x), "%u of %u frames received", n, total);
 *
 * returns when the expression is true.  The calling thread evaluates it
 * repeatedly, and yields, later sleeps a millisecond, in between.
 *
 *	wait_readable(fd, "event of port %s", name);
 *
 * returns when poll(2) finds the descriptor readable.  The calling thread
 * sleeps meanwhile, so that a lost wakeup makes the test fail.
 *
 * Both give up after WAIT_S seconds, long enough that only a failure takes so
 * long.  The test case then fails with the condition and the message, whose
 * arguments are evaluated at that time: they say what was seen instead.  In a
 * program that has not included <atf-c.h> before this file, the message goes to
 * stderr, and the program aborts.
 */

#ifndef _WAIT_UNTIL_H_
#define	_WAIT_UNTIL_H_

#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define	WAIT_S		180
#define	WAIT_YIELDS	1000	/* before it sleeps */

#define	wait_until(cond, ...)						\
	do {								\
		struct wait_state wait_ = { 0, 0 };			\
									\
		while (!(cond)) {					\
			if (!wait_more(&wait_))				\
				wait_failed(__FILE__, __LINE__, #cond,	\
				    __VA_ARGS__);			\
		}							\
	} while (0)

#define	wait_readable(desc, ...)					\
	do {								\
		struct pollfd wait_ = { (desc), POLLIN, 0 };		\
									\
		if (poll(&wait_, 1, WAIT_S * 1000) != 1)		\
			wait_failed(__FILE__, __LINE__,			\
			    #desc " is readable", __VA_ARGS__);		\
	} while (0)

struct wait_state {
	unsigned int	tries;
	time_t		end;	/* seconds, monotonic; 0: not yet known */
};

/* Pause between two tries.  Returns false if the deadline has passed. */
static inline bool
wait_more(struct wait_state *w)
{
	const struct timespec pause = { 0, 1000000 };
	struct timespec now;

	if (++w->tries < WAIT_YIELDS) {
		sched_yield();
		return (true);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (w->end == 0)
		w->end = now.tv_sec + WAIT_S;
	if (now.tv_sec > w->end)
		return (false);
	nanosleep(&pause, NULL);
	return (true);
}

static inline void __attribute__((noreturn, format(printf, 4, 5)))
wait_failed(const char *file, int line, const char *cond, const char *fmt, ...)
{
	char seen[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(seen, sizeof(seen), fmt, ap);
	va_end(ap);
#ifdef ATF_REQUIRE_MSG
	atf_tc_fail("%s:%d: waited %d s for %s: %s", file, line, WAIT_S, cond,
	    seen);
#else
	fprintf(stderr, "%s:%d: waited %d s for %s: %s\n", file, line, WAIT_S,
	    cond, seen);
	abort();
#endif
}

#endif /* !_WAIT_UNTIL_H_ */
