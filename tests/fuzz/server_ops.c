/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Messages that a client might send, and some that none would; see server.h. */

#include <sys/param.h>
#include <dev/e1000/e82545_reg.h>
#include <linux/vfio.h>

#include <string.h>

#include "server.h"

static const uint32_t registers[] = {
	E82545_CTRL, E82545_STATUS, E82545_ICR, E82545_ITR, E82545_ICS,
	E82545_IMS, E82545_IMC, E82545_RCTL, E82545_TCTL, E82545_RDBAL,
	E82545_RDBAH, E82545_RDLEN, E82545_RDH, E82545_RDT, E82545_CSBAL,
	E82545_CSBAH, E82545_TDBAL, E82545_TDLEN, E82545_TDH, E82545_TDT
};

static void
make_irqs(struct rng *rng, struct op *op)
{
	static const uint16_t types[] = {
		VFIO_IRQ_SET_DATA_NONE, VFIO_IRQ_SET_DATA_BOOL,
		VFIO_IRQ_SET_DATA_EVENTFD
	}, actions[] = {
		VFIO_IRQ_SET_ACTION_MASK, VFIO_IRQ_SET_ACTION_UNMASK,
		VFIO_IRQ_SET_ACTION_TRIGGER
	};

	op->a = rng_one_in(rng, 8) ? rng_next(rng) : rng_below(rng, 2);
	op->b = types[rng_below(rng, nitems(types))] |
	    actions[rng_below(rng, nitems(actions))];
	if (rng_one_in(rng, 8))
		op->b = rng_next(rng);
	op->c = rng_one_in(rng, 4) ? rng_below(rng, 4) : 1;
	if ((op->b & VFIO_IRQ_SET_DATA_EVENTFD) != 0 || rng_one_in(rng, 8))
		op->c |= rng_below(rng, 4) << 16;
	op->c |= (rng_one_in(rng, 4) ? rng_next(rng) :
	    FD_EVENT + rng_below(rng, 3)) << 24;
	op->d = rng_next(rng);
}

static void
make_map(struct rng *rng, struct op *op)
{
	op->d = rng_below(rng, 8) * 0x10000;
	op->c = 1 + rng_below(rng, 32);
	op->b = 3;
	op->a = FD_RAM + rng_below(rng, 2);
	if (rng_one_in(rng, 4)) {
		op->a = rng_below(rng, FD_COUNT);
		op->b = rng_next(rng);
	}
	if (rng_one_in(rng, 3))
		op->b |= MAP_PAGES | rng_below(rng, 8) << 4;
	if (rng_one_in(rng, 4))
		op->d = (uint64_t)rng_number(rng) << rng_below(rng, 33);
	if (rng_one_in(rng, 8))
		op->c = rng_number(rng);
}

static void
make_access(struct rng *rng, struct op *op)
{
	uint32_t off;

	op->a = rng_one_in(rng, 8) ? rng_next(rng) :
	    rng_one_in(rng, 3) ? VFIO_PCI_CONFIG_REGION_INDEX :
	    rng_one_in(rng, 8) ? VFIO_PCI_BAR3_REGION_INDEX : 0;
	off = op->a == VFIO_PCI_CONFIG_REGION_INDEX ? rng_below(rng, 260) :
	    registers[rng_below(rng, nitems(registers))];
	if (rng_one_in(rng, 8))
		off = rng_number(rng);
	op->c = off;
	op->d = op->kind == SERVER_READ ? off : rng_number(rng);
	op->b = rng_one_in(rng, 8) ? rng_number(rng) : 4;
	if (rng_one_in(rng, 3))
		op->b |= 16;
}

static void
make_op(struct rng *rng, struct op *op, enum server_op kind)
{
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->a = rng_next(rng);
	op->b = rng_number(rng);
	op->c = rng_number(rng);
	op->d = rng_number(rng);
	switch (kind) {
	case SERVER_VERSION:
		op->a = rng_one_in(rng, 3) ? op->a : 0;
		op->b = rng_one_in(rng, 4) ? rng_below(rng, 64) : 0;
		op->c = rng_one_in(rng, 8) ? op->c : 0;
		break;
	case SERVER_MAP:
	case SERVER_UNMAP:
		make_map(rng, op);
		if (kind == SERVER_UNMAP)
			op->b = rng_below(rng, 3);
		break;
	case SERVER_INFO:
		op->b = rng_one_in(rng, 4) ? op->b : 32;
		op->c = rng_below(rng, 12);
		break;
	case SERVER_IRQS:
		make_irqs(rng, op);
		break;
	case SERVER_READ:
	case SERVER_WRITE:
	case SERVER_MULTI:
		make_access(rng, op);
		if (kind == SERVER_MULTI)
			op->b = rng_below(rng, 210);
		break;
	case SERVER_RAW:
		op->b = rng_below(rng, 20);
		op->c = rng_one_in(rng, 2) ? 24 : rng_number(rng);
		op->a = rng_one_in(rng, 2) ? 0 : rng_next(rng);
		break;
	case SERVER_PIECES:
		op->a = rng_below(rng, 40);
		break;
	case SERVER_DRIVER:
		op->c = E82545_RCTL_EN | E82545_RCTL_UPE |
		    (rng_one_in(rng, 2) ? rng_next(rng) : 0);
		op->d = E82545_TCTL_EN;
		break;
	case SERVER_MEMORY:
		/* Mostly descriptors. */
		op->a = FD_RAM + rng_below(rng, 3);
		op->c = 8 * rng_below(rng, rng_one_in(rng, 2) ? 1024 :
		    SERVER_RAM / 8);
		op->d = (op->c & 8) == 0 ? rng_below(rng, SERVER_RAM) :
		    rng_below(rng, 2000) | (uint64_t)rng_next(rng) << 24;
		break;
	case SERVER_PUNCH:
	case SERVER_SNATCH:
		op->a = FD_RAM + rng_below(rng, 3);
		op->c = rng_below(rng, SERVER_RAM);
		break;
	case SERVER_PEER:
		op->b = 14 + rng_below(rng, 3000);
		break;
	default:
		break;
	}
}

void
target_op(struct rng *rng, struct op *op)
{
	make_op(rng, op, rng_below(rng, SERVER_NOPS));
}

/* A client that negotiates, shares memory, sets interrupts up, and drives. */
size_t
target_phrase(struct rng *rng, struct op *ops, size_t max)
{
	static const uint8_t kinds[] = {
		SERVER_MAP, SERVER_IRQS, SERVER_DRIVER, SERVER_MEMORY,
		SERVER_MEMORY, SERVER_RUN, SERVER_PEER, SERVER_RUN
	};
	const bool change = rng_one_in(rng, 4);
	size_t i, n;

	n = 0;
	memset(&ops[0], 0, sizeof(ops[0]));
	ops[n++].kind = SERVER_VERSION;
	/* Bus mastering. */
	memset(&ops[n], 0, sizeof(ops[0]));
	ops[n].kind = SERVER_WRITE;
	ops[n].a = VFIO_PCI_CONFIG_REGION_INDEX;
	ops[n].b = 2;
	ops[n].c = 4;
	ops[n++].d = 7;
	for (i = 0; i < nitems(kinds) && n < max; i++)
		make_op(rng, &ops[n++], !change || kinds[i] != SERVER_MEMORY ?
		    kinds[i] : i % 2 == 0 ? SERVER_SNATCH : SERVER_SETTING);
	return (n);
}
