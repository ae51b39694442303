/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For all tests in C: test cases in a short form, and random numbers.
 */

#ifndef _TEST_H_
#define	_TEST_H_

#include <stdbool.h>
#include <stdint.h>

/* A test case; its body follows.  Needs <atf-c.h>. */
#define	TEST(name, descr)						\
	ATF_TC(name);							\
	ATF_TC_HEAD(name, tc) { atf_tc_set_md_var(tc, "descr", descr); } \
	ATF_TC_BODY(name, tc)

/* The next number of a sequence.  The seed determines it, and is never 0. */
static inline uint32_t
test_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return (*seed);
}

/* A random number from 0 to n - 1. */
static inline uint32_t
test_below(uint32_t *seed, uint32_t n)
{
	return ((uint64_t)test_random(seed) * n >> 32);
}

/* True in n of `of' cases. */
static inline bool
test_chance(uint32_t *seed, uint32_t n, uint32_t of)
{
	return (test_below(seed, of) < n);
}

#endif /* !_TEST_H_ */
