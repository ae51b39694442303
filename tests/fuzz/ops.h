/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Inputs that are sequences of operations, and a mutator that knows it.
 *
 * libFuzzer's own mutator moves bytes; of a sequence of accesses to a state
 * machine it would spoil most.  This one inserts, removes, repeats, swaps and
 * changes whole operations, of 16 bytes each, and has the target make new ones
 * that mean something, alone or in phrases (a ring set up and filled, a client
 * that connects and shares memory).  Now and then it lets libFuzzer have its
 * way with one, whose table of recent comparisons finds magic values.
 *
 * Every input is valid: what an operation's fields mean is the target's to
 * say, for all their values.  Trailing bytes are left out.
 */

#ifndef _FUZZ_OPS_H_
#define	_FUZZ_OPS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct op {
	uint8_t		kind;
	uint8_t		a;
	uint16_t	b;
	uint32_t	c;
	uint64_t	d;
};
_Static_assert(sizeof(struct op) == 16, "op");

#define	OPS_MAX		256		/* in an input */

struct rng {
	uint64_t	state;
};

uint32_t rng_next(struct rng *rng);
/* 0 to n - 1; n > 0. */
uint32_t rng_below(struct rng *rng, uint32_t n);
/* True once in n times. */
bool	rng_one_in(struct rng *rng, uint32_t n);
/* Of all sizes: small numbers, powers of two and their neighbours, any. */
uint32_t rng_number(struct rng *rng);

/* The operations of an input; returns how many. */
size_t	ops_read(const uint8_t *data, size_t size, struct op ops[OPS_MAX]);

/*
 * What a target says of its operations.
 */

/* Make one operation. */
void	target_op(struct rng *rng, struct op *op);
/* Make up to `max' that belong together; returns how many, at least one. */
size_t	target_phrase(struct rng *rng, struct op *ops, size_t max);

/*
 * What is not as it should be ends the program, which libFuzzer takes for a
 * finding.
 */
#define	INVARIANT(cond)							\
	do {								\
		if (!(cond))						\
			invariant_broken(__FILE__, __LINE__, #cond);	\
	} while (0)
void	invariant_broken(const char *file, int line, const char *what)
	    __attribute__((__noreturn__));

#endif /* !_FUZZ_OPS_H_ */
