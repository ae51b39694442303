/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Inputs that are sequences of operations, and a mutator for them.
 *
 * libFuzzer's own mutator moves bytes, which would make most sequences of
 * accesses to a state machine useless.  This one inserts, removes, repeats,
 * swaps and changes operations, of 16 bytes each.  The target generates new
 * ones, alone or in phrases (set a ring up and fill it; connect a client and
 * share memory).  Sometimes libFuzzer mutates one: its table of recent
 * comparisons finds magic values.
 *
 * Every input is valid: the target gives a meaning to all values of an
 * operation's fields.  Trailing bytes are ignored.
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
/* A number: small, a power of two, next to one, or any. */
uint32_t rng_number(struct rng *rng);

/* Find the operations of an input; returns their number. */
size_t	ops_read(const uint8_t *data, size_t size, struct op ops[OPS_MAX]);

/*
 * A target's generators.
 */

/* Generate one operation. */
void	target_op(struct rng *rng, struct op *op);
/*
 * Generate up to `max' that belong together; returns their number, at least
 * one.
 */
size_t	target_phrase(struct rng *rng, struct op *ops, size_t max);

/*
 * An invariant that does not hold aborts the program, which libFuzzer reports.
 */
#define	INVARIANT(cond)							\
	do {								\
		if (!(cond))						\
			invariant_broken(__FILE__, __LINE__, #cond);	\
	} while (0)
void	invariant_broken(const char *file, int line, const char *what)
	    __attribute__((__noreturn__));

/* Return how many descriptors below 512 are open. */
int	fds_open(void);

#endif /* !_FUZZ_OPS_H_ */
