/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Generates operations of the switch's fuzzer: switch.h.
 */

#include <sys/param.h>

#include <string.h>

#include "switch.h"

static void
make_op(struct rng *rng, struct op *op, enum switch_op kind)
{
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->a = rng_below(rng, rng_one_in(rng, 4) ? PORTS * RINGS : PORTS);
	op->c = rng_below(rng, 40);
	switch (kind) {
	case SWITCH_OPEN:
		op->b = rng_below(rng, NAMES);
		op->c = rng_one_in(rng, 4) ? rng_number(rng) :
		    2u << rng_below(rng, 6);
		op->d = rng_one_in(rng, 4) ? rng_number(rng) :
		    2u << rng_below(rng, 6);
		break;
	case SWITCH_TX_SLOT:
	case SWITCH_RX_SLOT:
		op->d = rng_one_in(rng, 4) ? rng_next(rng) :
		    rng_below(rng, 140);
		op->d |= (uint64_t)(rng_one_in(rng, 4) ? rng_number(rng) :
		    rng_below(rng, 2049)) << 32;
		op->d |= (uint64_t)(rng_below(rng, 16) << 4) << 48;
		break;
	case SWITCH_TX_HEAD:
	case SWITCH_RX_HEAD:
		op->d = op->c + rng_below(rng, 3);
		if (rng_one_in(rng, 4)) {
			op->c = rng_number(rng);
			op->d = rng_number(rng);
		}
		break;
	case SWITCH_SEND:
		op->b = rng_one_in(rng, 4) ? rng_number(rng) :
		    14 + rng_below(rng, 3000);
		op->c = rng_one_in(rng, 2) ? 2048 : rng_below(rng, 4097);
		op->d = rng_next(rng);
		break;
	case SWITCH_OFFLOAD:
		op->b = rng_below(rng, 2900);
		op->c = rng_one_in(rng, 4) ? rng_number(rng) :
		    40 + rng_below(rng, 1500);
		op->d = rng_next(rng) & 0xffffff;
		if (rng_one_in(rng, 3))
			op->d |= (uint64_t)rng_below(rng, 256) << 24;
		break;
	case SWITCH_HEADER:
		op->b = rng_below(rng, 4);
		break;
	case SWITCH_RXSYNC:
		op->b = rng_below(rng, 32);
		break;
	case SWITCH_LOOK:
		op->c = rng_number(rng);
		if (rng_one_in(rng, 2))
			op->d = rng_number(rng);
		break;
	case SWITCH_SINK:
		op->b = rng_below(rng, 8);
		break;
	case SWITCH_SET:
		op->b = rng_below(rng, 4);
		op->c = rng_one_in(rng, 8) ? rng_number(rng) :
		    rng_below(rng, 5);
		op->d = rng_below(rng, NAMES);
		break;
	case SWITCH_MONITOR:
		op->b = rng_below(rng, NAMES);
		op->c = rng_below(rng, 4);
		break;
	default:
		break;
	}
}

void
target_op(struct rng *rng, struct op *op)
{
	make_op(rng, op, rng_below(rng, SWITCH_NOPS));
}

/* Two ports, frames from one, and syncs of both. */
size_t
target_phrase(struct rng *rng, struct op *ops, size_t max)
{
	unsigned int a = rng_below(rng, PORTS), b = rng_below(rng, PORTS);
	size_t i, n, frames;

	if (rng_one_in(rng, 4)) {
		a += PORTS * rng_below(rng, RINGS);
		b += PORTS * rng_below(rng, RINGS);
	}
	n = 0;
	make_op(rng, &ops[n], SWITCH_OPEN);
	ops[n++].a = a;
	make_op(rng, &ops[n], SWITCH_OPEN);
	ops[n++].a = b;
	for (i = rng_below(rng, 3); i > 0; i--) {
		make_op(rng, &ops[n], SWITCH_HEADER);
		ops[n++].a = rng_one_in(rng, 2) ? a : b;
	}
	frames = 1 + rng_below(rng, 8);
	for (i = 0; i < frames; i++) {
		make_op(rng, &ops[n], rng_one_in(rng, 2) ? SWITCH_SEND :
		    SWITCH_OFFLOAD);
		ops[n++].a = a;
	}
	make_op(rng, &ops[n], SWITCH_TXSYNC);
	ops[n++].a = a;
	make_op(rng, &ops[n], SWITCH_RXSYNC);
	ops[n++].a = b;
	return (MIN(n, max));
}
