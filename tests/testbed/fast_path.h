/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For tests that do the same with and without a fast path, step by step, in a
 * random sequence.  The configuration variable "seed" selects another one.
 */

#ifndef _FAST_PATH_H_
#define	_FAST_PATH_H_

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <atf-c.h>

#include "test.h"

static uint32_t		seed, state;
static unsigned int	step;

/* Begin the sequence. */
static inline void
seed_set(const atf_tc_t *tc)
{
	seed = atf_tc_get_config_var_as_long_wd(tc, "seed", 1);
	printf("seed %" PRIu32 "\n", seed);
	state = seed * 2654435761u | 1;
}

static inline uint32_t
rnd(void)
{
	return (test_random(&state));
}

/* 0 to n - 1. */
static inline uint32_t
below(uint32_t n)
{
	return (test_below(&state, n));
}

/* True n times out of `of'. */
static inline bool
chance(unsigned int n, unsigned int of)
{
	return (test_chance(&state, n, of));
}

#endif /* !_FAST_PATH_H_ */
