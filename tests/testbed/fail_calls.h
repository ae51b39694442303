/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Calls of the C library that fail by number.  A program is linked with
 * fail_calls.c and FAIL_CALLS of fail_calls.mk; then a test runs a whole
 * scenario once for each call that the scenario makes, with that call failing:
 *
 *	n = 0;
 *	do {
 *		before = fail_held();
 *		fail_calls(NULL, ++n, 1);
 *		...
 *		failed = fail_calls_end();
 *		fail_held_check(&before);
 *	} while (failed > 0);
 *
 * Calls are counted that the program's own objects and its archives make, in
 * all its threads and in the processes that it forks.  Each function fails with
 * an errno of its own, which is in fail_calls.c.  A test that defines one with
 * WRAP() has that in place of the one there.
 */

#ifndef _FAIL_CALLS_H_
#define	_FAIL_CALLS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * From now on count the calls of that function, or of all if the name is NULL.
 * Call number `n' fails, from 1, and the next ones of the function that has
 * failed, until `times' have.  With n = 0 none does.
 */
void	fail_calls(const char *name, uint32_t n, uint32_t times);

/* Have calls fail with this errno; 0: with their own. */
void	fail_calls_error(int error);

/* End what fail_calls() began.  Returns how many calls have failed. */
uint32_t fail_calls_end(void);

/* Return how many calls were counted since fail_calls(). */
uint32_t fail_calls_made(void);

/* Return the function that has failed since fail_calls(), or NULL. */
const char *fail_calls_name(void);

/* Neither count the calls of this thread nor let one fail, or do so again. */
void	fail_calls_spare(bool spare);

/*
 * Count a call of another function, of a call site; return whether the call
 * must fail.
 */
bool	fail_call(const char *name, const void *site);
#define	FAIL_CALL(name)	fail_call((name), __builtin_return_address(0))

/* Set errno for one that fails so, or as fail_calls_error() says. */
void	fail_errno(int error);

/* What the program has of the system. */
struct fail_held {
	int64_t		fhl_allocs;	/* malloc(3) and the like */
	int64_t		fhl_mapped;	/* bytes of mmap(2) */
	int64_t		fhl_mutexes;	/* initialized */
	int64_t		fhl_locks;	/* held mutexes */
	int64_t		fhl_fds;	/* open descriptors, */
	int64_t		fhl_inherited;	/* and those without FD_CLOEXEC */
};
struct fail_held fail_held(void);
/* Return fhl_allocs; a sandbox may forbid the rest. */
int64_t	fail_allocs(void);

/* Bytes and flags of the last mmap(2). */
extern size_t	fail_map_size;
extern int	fail_map_flags;

/* Append a line to the log of a program (fail_calls.c). */
void	fail_report(const char *fmt, ...)
	    __attribute__((__format__(__printf__, 1, 2)));

/* Check that the program has as much as before; for tests with ATF. */
#define	fail_held_check(before) do {					\
	const struct fail_held *was_ = (before), is_ = fail_held();	\
	const char *name_ = fail_calls_name();				\
									\
	if (name_ == NULL)						\
		name_ = "no call";					\
	FAIL_HELD_EQ(fhl_allocs);					\
	FAIL_HELD_EQ(fhl_mapped);					\
	FAIL_HELD_EQ(fhl_mutexes);					\
	FAIL_HELD_EQ(fhl_locks);					\
	FAIL_HELD_EQ(fhl_fds);						\
	FAIL_HELD_EQ(fhl_inherited);					\
} while (0)
#define	FAIL_HELD_EQ(member)						\
	ATF_CHECK_EQ_MSG(was_->member, is_.member, "%s: %s: %jd, not %jd", \
	    name_, #member, (intmax_t)is_.member, (intmax_t)was_->member)

#endif /* !_FAIL_CALLS_H_ */
