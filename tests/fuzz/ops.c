/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See ops.h.  The entry points with long names are libFuzzer's. */

#include <sys/param.h>

#include <string.h>

#include "ops.h"

#define	REPEAT_MAX	24		/* operations */
#define	CHANGES_MAX	4		/* in one mutation */

size_t	LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t	LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
	    unsigned int seed);
size_t	LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1,
	    const uint8_t *data2, size_t size2, uint8_t *out, size_t max,
	    unsigned int seed);

/*
 * Operations.
 */

size_t
ops_read(const uint8_t *data, size_t size, struct op ops[OPS_MAX])
{
	size_t n;

	n = MIN(size / sizeof(*ops), OPS_MAX);
	if (n > 0)
		memcpy(ops, data, n * sizeof(*ops));
	return (n);
}

/* Insert `count' operations at `at'; those at the end may be lost. */
static size_t
ops_insert(struct op *ops, size_t n, size_t max, size_t at,
    const struct op *from, size_t count)
{
	size_t tail;

	count = MIN(count, max - at);
	tail = MIN(n - at, max - at - count);
	memmove(ops + at + count, ops + at, tail * sizeof(*ops));
	memcpy(ops + at, from, count * sizeof(*ops));
	return (at + count + tail);
}

static size_t
ops_remove(struct op *ops, size_t n, size_t at, size_t count)
{
	count = MIN(count, n - at);
	memmove(ops + at, ops + at + count, (n - at - count) * sizeof(*ops));
	return (n - count);
}

/* Replace a field by that of a new operation, or by a similar value. */
static void
op_change(struct rng *rng, struct op *op)
{
	struct op other;

	do
		target_op(rng, &other);
	while (other.kind != op->kind && !rng_one_in(rng, 64));
	switch (rng_below(rng, 8)) {
	case 0:
		op->a = other.a;
		break;
	case 1:
		op->b = other.b;
		break;
	case 2:
		op->c = other.c;
		break;
	case 3:
		op->d = other.d;
		break;
	case 4:
		op->b += rng_below(rng, 3) - 1;
		break;
	case 5:
		op->c += rng_below(rng, 3) - 1;
		break;
	case 6:
		op->d ^= 1ULL << rng_below(rng, 64);
		break;
	default:
		LLVMFuzzerMutate((uint8_t *)op, sizeof(*op), sizeof(*op));
	}
}

static size_t
ops_change(struct rng *rng, struct op *ops, size_t n, size_t max)
{
	struct op phrase[OPS_MAX], swap;
	size_t at, count, to;

	at = n == 0 ? 0 : rng_below(rng, n + 1);
	if (n == 0 || rng_one_in(rng, 3)) {
		count = 1;
		if (n == 0 || rng_one_in(rng, 3))
			count = target_phrase(rng, phrase, OPS_MAX);
		else
			target_op(rng, phrase);
		return (ops_insert(ops, n, max, at, phrase, count));
	}
	at = rng_below(rng, n);
	switch (rng_below(rng, 6)) {
	case 0:
		return (ops_remove(ops, n, at, 1));
	case 1:
		return (ops_remove(ops, n, at, 1 + rng_below(rng, n)));
	case 2:
		count = 1 + rng_below(rng, REPEAT_MAX);
		count = MIN(count, n - at);
		memcpy(phrase, ops + at, count * sizeof(*ops));
		return (ops_insert(ops, n, max, rng_below(rng, n + 1), phrase,
		    count));
	case 3:
		to = rng_below(rng, n);
		swap = ops[at];
		ops[at] = ops[to];
		ops[to] = swap;
		return (n);
	default:
		op_change(rng, &ops[at]);
		return (n);
	}
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
    unsigned int seed)
{
	struct op ops[OPS_MAX];
	struct rng rng = { seed };
	size_t n, i, changes;

	max = MIN(max / sizeof(*ops), OPS_MAX);
	if (max == 0)
		return (0);
	n = ops_read(data, size, ops);
	n = MIN(n, max);
	changes = 1 + rng_below(&rng, CHANGES_MAX);
	for (i = 0; i < changes; i++)
		n = ops_change(&rng, ops, n, max);
	memcpy(data, ops, n * sizeof(*ops));
	return (n * sizeof(*ops));
}

/* The beginning of one and the end of the other. */
size_t
LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1,
    const uint8_t *data2, size_t size2, uint8_t *out, size_t max,
    unsigned int seed)
{
	struct op a[OPS_MAX], b[OPS_MAX];
	struct rng rng = { seed };
	size_t n, m, from;

	max = MIN(max / sizeof(*a), OPS_MAX);
	n = ops_read(data1, size1, a);
	m = ops_read(data2, size2, b);
	n = n == 0 ? 0 : rng_below(&rng, n) + 1;
	n = MIN(n, max);
	from = m == 0 ? 0 : rng_below(&rng, m);
	m = MIN(m - from, max - n);
	memcpy(a + n, b + from, m * sizeof(*a));
	memcpy(out, a, (n + m) * sizeof(*a));
	return ((n + m) * sizeof(*a));
}
