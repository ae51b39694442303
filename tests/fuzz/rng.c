/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Numbers: splitmix64, for reproducible runs. */

#include "ops.h"

uint32_t
rng_next(struct rng *rng)
{
	uint64_t z;

	rng->state += 0x9e3779b97f4a7c15;
	z = rng->state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return ((z ^ (z >> 31)) >> 32);
}

uint32_t
rng_below(struct rng *rng, uint32_t n)
{
	return (rng_next(rng) % n);
}

bool
rng_one_in(struct rng *rng, uint32_t n)
{
	return (rng_below(rng, n) == 0);
}

uint32_t
rng_number(struct rng *rng)
{
	switch (rng_below(rng, 4)) {
	case 0:
		return (rng_below(rng, 16));
	case 1:
		return ((1u << rng_below(rng, 32)) + rng_below(rng, 3) - 1);
	case 2:
		return (rng_below(rng, 2048));
	default:
		return (rng_next(rng));
	}
}
