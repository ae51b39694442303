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
#include <stdlib.h>

/*
 * TEST(name, descr): a test case; its body follows.  TEST_WITH() also sets one
 * of the variables of atf-test-case(4).  TEST_LISTED() is for a case that
 * ATF_TC() has declared.  TEST_PROGRAM, at the end of the file, makes a program
 * of these cases.  All need <atf-c.h>.
 */
#define	TEST(name, descr)						\
	ATF_TC(name);							\
	TEST_LISTED(name)						\
	ATF_TC_HEAD(name, tc)						\
	{								\
		atf_tc_set_md_var(tc, "descr", "%s", descr);		\
	}								\
	ATF_TC_BODY(name, tc)

#define	TEST_WITH(name, var, value, descr)				\
	ATF_TC(name);							\
	TEST_LISTED(name)						\
	ATF_TC_HEAD(name, tc)						\
	{								\
		atf_tc_set_md_var(tc, "descr", "%s", descr);		\
		atf_tc_set_md_var(tc, var, value);			\
	}								\
	ATF_TC_BODY(name, tc)

/* The compiler keeps the constructors of a file in order. */
#define	TEST_LISTED(name)						\
	static struct atf_error *test_add_##name(struct atf_tp *tp)	\
	{								\
		ATF_TP_ADD_TC(tp, name);				\
		return (atf_no_error());				\
	}								\
	static void __attribute__((__constructor__))			\
	test_list_##name(void)						\
	{								\
		test_list(test_add_##name);				\
	}

#define	TEST_PROGRAM							\
	ATF_TP_ADD_TCS(tp)						\
	{								\
		atf_error_t error = atf_no_error();			\
		unsigned int i;						\
									\
		for (i = 0; i < test_ncases && !atf_is_error(error); i++) \
			error = test_cases[i](tp);			\
		return (error);						\
	}

/* This file's cases, and how each is added to the program. */
#define	TEST_CASES_MAX	64
struct atf_tp;
static struct atf_error *(*test_cases[TEST_CASES_MAX])(struct atf_tp *);
static unsigned int test_ncases;

static inline void
test_list(struct atf_error *(*add)(struct atf_tp *))
{
	if (test_ncases == TEST_CASES_MAX)
		abort();
	test_cases[test_ncases++] = add;
}

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
