/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Operations on the model, plausible and not: registers with plausible values,
 * descriptors of all three layouts, the CSB's fields, and phrases: those that
 * set rings up, send and receive, the triggers of faults that other emulations
 * had, and runs of lem(4).
 */

#include <sys/param.h>
#include <dev/e1000/e82574_reg.h>
#include <net/paravirt.h>

#include <string.h>

#include "e1000_faults.h"
#include "model.h"

/* How to generate a value. */
enum value {
	V_ANY, V_FLAGS, V_SMALL, V_LOW, V_HIGH, V_LEN, V_INDEX, V_RCTL, V_TCTL,
	V_CTRL
};

static const struct {
	uint16_t	off;
	uint8_t		value;
	uint8_t		weight;
} registers[] = {
	{ E82545_CTRL, V_CTRL, 2 },	{ E82545_CTRL_DUP, V_CTRL, 1 },
	{ E82545_EECD, V_FLAGS, 1 },	{ E82545_EERD, V_ANY, 1 },
	{ E82545_CTRL_EXT, V_FLAGS, 1 }, { E82545_MDIC, V_ANY, 2 },
	{ E82545_VET, V_ANY, 1 },	{ E82545_ICR, V_FLAGS, 1 },
	{ E82545_ITR, V_SMALL, 2 },	{ E82545_ICS, V_FLAGS, 2 },
	{ E82545_IMS, V_FLAGS, 3 },	{ E82545_IMC, V_FLAGS, 2 },
	{ E82545_RCTL, V_RCTL, 4 },	{ E82545_TCTL, V_TCTL, 3 },
	{ E82545_PBA, V_ANY, 1 },
	{ E82545_RDBAL, V_LOW, 2 },	{ E82545_RDBAH, V_HIGH, 1 },
	{ E82545_RDLEN, V_LEN, 2 },	{ E82545_RDH, V_INDEX, 2 },
	{ E82545_RDT, V_INDEX, 3 },	{ E82545_RDTR, V_SMALL, 2 },
	{ E82545_RADV, V_SMALL, 1 },	{ E82545_RXCSUM, V_FLAGS, 2 },
	{ E82545_CSBAL, V_LOW, 2 },	{ E82545_CSBAH, V_HIGH, 1 },
	{ E82545_TDBAL, V_LOW, 2 },	{ E82545_TDBAH, V_HIGH, 1 },
	{ E82545_TDLEN, V_LEN, 2 },	{ E82545_TDH, V_INDEX, 2 },
	{ E82545_TDT, V_INDEX, 3 },	{ E82545_TIDV, V_SMALL, 2 },
	{ E82545_TXDCTL, V_FLAGS, 1 },	{ E82545_TADV, V_SMALL, 1 },
	{ E82545_MTA, V_ANY, 1 },	{ E82545_VFTA, V_ANY, 1 },
	{ E82545_RAL(0), V_ANY, 1 },	{ E82545_RAH(0), V_FLAGS, 1 },
	{ E82545_RAH(3), V_FLAGS, 1 },
	/* Of an 82574L: others have nothing there. */
	{ E82574_IVAR, V_ANY, 1 },	{ E82574_EIAC, V_FLAGS, 1 },
	{ E82574_IAM, V_FLAGS, 1 },	{ E82574_EITR(0), V_SMALL, 1 },
	{ E82574_RFCTL, V_FLAGS, 1 },	{ E82574_PSRCTL, V_ANY, 1 },
	{ E82574_EEWR, V_ANY, 1 },	{ E82574_TIMINCA, V_ANY, 1 },
	{ E82545_RDBAL + E82574_QUEUE(1), V_LOW, 1 },
	{ E82545_RDBAH + E82574_QUEUE(1), V_HIGH, 1 },
	{ E82545_RDLEN + E82574_QUEUE(1), V_LEN, 1 },
	{ E82545_RDH + E82574_QUEUE(1), V_INDEX, 1 },
	{ E82545_RDT + E82574_QUEUE(1), V_INDEX, 1 },
	{ E82545_TDBAL + E82574_QUEUE(1), V_LOW, 1 },
	{ E82545_TDBAH + E82574_QUEUE(1), V_HIGH, 1 },
	{ E82545_TDLEN + E82574_QUEUE(1), V_LEN, 1 },
	{ E82545_TDH + E82574_QUEUE(1), V_INDEX, 1 },
	{ E82545_TDT + E82574_QUEUE(1), V_INDEX, 1 },
	{ E82574_TXDCTL1, V_FLAGS, 1 },	{ E82574_TARC(0), V_FLAGS, 1 },
	{ E82574_TARC(1), V_FLAGS, 1 },	{ E82574_MRQC, V_FLAGS, 1 },
	{ E82574_RETA, V_ANY, 1 },	{ E82574_RSSRK, V_ANY, 1 },
};

static uint64_t
make_gpa(struct rng *rng)
{
	switch (rng_below(rng, 10)) {
	case 0:
		return (MODEL_FAR + rng_below(rng, MODEL_FAR_SIZE));
	case 1:
		return (MODEL_RAM - rng_below(rng, 4096));
	case 2:
		return ((uint64_t)rng_next(rng) << rng_below(rng, 33));
	case 3:
		return (rng_below(rng, 4096));
	default:
		return (rng_below(rng, MODEL_RAM / 256) * 256);
	}
}

static uint32_t
make_value(struct rng *rng, enum value value)
{
	switch (value) {
	case V_FLAGS:
		return (1u << rng_below(rng, 32) | (rng_one_in(rng, 2) ?
		    rng_next(rng) & rng_next(rng) : 0));
	case V_SMALL:
		return (rng_below(rng, 300));
	case V_LOW:
		return (make_gpa(rng));
	case V_HIGH:
		return (rng_one_in(rng, 8) ? rng_number(rng) :
		    rng_below(rng, 2));
	case V_LEN:
		return (rng_one_in(rng, 4) ? rng_number(rng) :
		    128u << rng_below(rng, 7));
	case V_INDEX:
		return (rng_one_in(rng, 8) ? rng_number(rng) :
		    rng_below(rng, 64));
	case V_RCTL:
		return ((rng_next(rng) & rng_next(rng) & ~E82545_RCTL_LBM) |
		    (rng_one_in(rng, 8) ? 0 : E82545_RCTL_EN) |
		    (rng_one_in(rng, 8) ? E82545_RCTL_LBM_MAC : 0) |
		    (rng_one_in(rng, 2) ? E82545_RCTL_UPE : 0));
	case V_TCTL:
		return ((rng_next(rng) & 0x3fffff8) |
		    (rng_one_in(rng, 8) ? 0 : E82545_TCTL_EN));
	case V_CTRL:
		return (E82545_CTRL_SLU | (rng_one_in(rng, 8) ? rng_next(rng) :
		    rng_next(rng) & E82545_CTRL_VME));
	default:
		return (rng_number(rng));
	}
}

static void
make_write(struct rng *rng, struct op *op)
{
	unsigned int i, total, at;

	total = 0;
	for (i = 0; i < nitems(registers); i++)
		total += registers[i].weight;
	at = rng_below(rng, total);
	for (i = 0; at >= registers[i].weight; i++)
		at -= registers[i].weight;
	op->b = registers[i].off / 4;
	op->c = make_value(rng, registers[i].value);
	if (rng_one_in(rng, 16))
		op->b = rng_next(rng);
}

/* Bytes of a buffer. */
static uint32_t
make_len(struct rng *rng)
{
	switch (rng_below(rng, 8)) {
	case 0:
		return (rng_number(rng) & E82545_TXD_LEN);
	case 1:
		return (0);
	case 2:
		return (14 + rng_below(rng, 16200));
	default:
		return (14 + rng_below(rng, 1600));
	}
}

static void
make_context(struct rng *rng, struct op *op)
{
	uint32_t hdrlen;

	hdrlen = rng_one_in(rng, 4) ? rng_below(rng, 256) : 54;
	op->d = rng_one_in(rng, 4) ? ((uint64_t)rng_next(rng) << 32 |
	    rng_next(rng)) : (14 | 24 << 8 | 33 << 16 |
	    (uint64_t)(34 | (rng_one_in(rng, 4) ? 40 : 50) << 8) << 32);
	op->c = E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT | make_len(rng) |
	    (rng_next(rng) & (E82545_TXD_TUCMD_TCP | E82545_TXD_TUCMD_IP |
	    E82545_TXD_TUCMD_TSE | E82545_TXD_RS));
	/* MSS over a and the upper byte of b. */
	op->a = rng_one_in(rng, 3) ? 0 : rng_below(rng, 8);
	op->b = hdrlen | rng_below(rng, 256) << 8;
}

static void
make_txd(struct rng *rng, struct op *op)
{
	uint32_t kind;

	op->d = make_gpa(rng);
	op->a = rng_next(rng);
	op->b = rng_next(rng);
	op->c = rng_next(rng) & (E82545_TXD_RS | E82545_TXD_IDE |
	    E82545_TXD_VLE);
	if (!rng_one_in(rng, 4))
		op->c |= E82545_TXD_EOP;
	if (!rng_one_in(rng, 4))
		op->c |= E82545_TXD_IFCS;
	kind = rng_below(rng, 8);
	if (kind == 0)
		op->c |= rng_next(rng);
	else if (kind < 3)
		make_context(rng, op);
	else if (kind < 5)
		op->c |= make_len(rng) & E82545_TXD_LEN_LEGACY;
	else {
		op->c |= make_len(rng) | E82545_TXD_DEXT |
		    E82545_TXD_DTYP_DATA;
		op->b &= 0xff03;
	}
	if (kind >= 3 && rng_one_in(rng, 3))
		op->c |= E82545_TXD_TSE;	/* or IC */
}

static void
make_csb(struct rng *rng, struct op *op)
{
	op->a = rng_below(rng, sizeof(struct paravirt_csb) / 4);
	if (rng_one_in(rng, 2))
		op->a = rng_below(rng, 7);
	op->c = rng_one_in(rng, 4) ? rng_number(rng) : rng_below(rng, 3);
	if (op->a == 0 || op->a == 4 || op->a == 5)
		op->c = make_value(rng, V_INDEX);
}

void
target_op(struct rng *rng, struct op *op)
{
	/* Work on rings is more frequent than the rest. */
	static const uint8_t kinds[] = {
		MODEL_WRITE, MODEL_WRITE, MODEL_WRITE, MODEL_ACCESS, MODEL_UP,
		MODEL_TXD, MODEL_TXD, MODEL_TXD, MODEL_TX_KICK, MODEL_TX_KICK,
		MODEL_RX_GIVE, MODEL_RX_GIVE, MODEL_CSB, MODEL_CSB, MODEL_PLACE,
		MODEL_MEMORY, MODEL_TX, MODEL_TX, MODEL_RX, MODEL_RX,
		MODEL_FRAME, MODEL_FRAME, MODEL_TIME, MODEL_LINK, MODEL_RESET,
		MODEL_PAUSE, MODEL_ROOM, MODEL_RACE, MODEL_RACE, MODEL_BUS,
		MODEL_LEM, MODEL_WHEN, MODEL_OFFLOADS, MODEL_PACKET,
		MODEL_PACKET, MODEL_MSIX, MODEL_QUEUE
	};

	memset(op, 0, sizeof(*op));
	op->kind = kinds[rng_below(rng, nitems(kinds))];
	op->a = rng_next(rng);
	op->b = rng_number(rng);
	op->c = rng_number(rng);
	op->d = make_gpa(rng);
	switch (op->kind) {
	case MODEL_WRITE:
		make_write(rng, op);
		break;
	case MODEL_ACCESS:
		op->a = rng_one_in(rng, 4) ? rng_below(rng, 8) :
		    rng_below(rng, 2) * 2;
		op->b = (rng_one_in(rng, 4) ? rng_below(rng, 16) : 4) |
		    rng_below(rng, 2) << 4 | rng_one_in(rng, 8) << 5;
		op->c = rng_one_in(rng, 4) ? rng_number(rng) :
		    registers[rng_below(rng, nitems(registers))].off;
		op->d = rng_number(rng);
		break;
	case MODEL_UP:
		op->a = rng_one_in(rng, 4) ? op->a : 1 + rng_below(rng, 8);
		op->b = rng_one_in(rng, 4) ? op->b : 1 + rng_below(rng, 8);
		op->c = make_value(rng, V_RCTL);
		break;
	case MODEL_TXD:
		make_txd(rng, op);
		break;
	case MODEL_TX_KICK:
		op->a = rng_one_in(rng, 8) ? op->a : 0;
		break;
	case MODEL_CSB:
		make_csb(rng, op);
		if (rng_one_in(rng, 8)) {
			op->a = offsetof(struct paravirt_csb, vnet_ring_low) /
			    4;
			op->c = make_gpa(rng);
		}
		break;
	case MODEL_OFFLOADS:
		op->a = !rng_one_in(rng, 4);
		break;
	case MODEL_PACKET:
		op->b = rng_one_in(rng, 4) ? rng_number(rng) :
		    rng_below(rng, 6000);
		op->c = rng_one_in(rng, 4) ? rng_number(rng) :
		    rng_one_in(rng, 4) ? 0 : 1 + rng_below(rng, 1600);
		op->d = rng_one_in(rng, 2) ? 0 : rng_next(rng) & 0x7ffff;
		break;
	case MODEL_MEMORY:
		op->c = make_gpa(rng);
		op->d = (uint64_t)rng_number(rng) << 32 | rng_number(rng);
		break;
	case MODEL_RX:
		op->b = rng_below(rng, 2);
		/* FALLTHROUGH */
	case MODEL_TX:
		op->a = 1 + rng_below(rng, 8);
		break;
	case MODEL_FRAME:
		op->b = rng_one_in(rng, 4) ? rng_below(rng, 16400) :
		    rng_below(rng, 1600);
		break;
	case MODEL_TIME:
		op->c = 1u << rng_below(rng, 30);
		break;
	case MODEL_LEM:
		op->b = 1 + rng_below(rng, LEM_NOPS - 1);
		break;
	case MODEL_RACE:
		op->b = 1 + rng_below(rng, 12);
		op->c = make_gpa(rng);
		op->d = (uint64_t)rng_number(rng) << 32 | rng_number(rng);
		break;
	}
}

static void
put(struct op *op, enum model_op kind, uint8_t a, uint16_t b, uint32_t c,
    uint64_t d)
{
	op->kind = kind;
	op->a = a;
	op->b = b;
	op->c = c;
	op->d = d;
}

/* A step of a fault; returns how many operations it takes, at most `max'. */
static size_t
fault_step(const struct fault_step *s, struct op *ops, size_t max)
{
	size_t n;

	switch (s->kind) {
	case FAULT_WRITE:
		put(ops, MODEL_WRITE, 0, s->addr / 4, s->lower, 0);
		return (1);
	case FAULT_ACCESS:
		put(ops, MODEL_ACCESS, 0, 16 | (s->n == 3 ? 32 : s->n == 1 ? 0 :
		    2 << 2) | (s->addr & 3), s->addr & ~3, s->lower);
		return (1);
	case FAULT_TXD:
		for (n = 0; n < MIN(s->n, max); n++)
			put(&ops[n], MODEL_TXD, s->upper >> 24, s->upper >> 8,
			    s->lower, s->addr);
		return (n);
	case FAULT_KICK:
		put(ops, MODEL_TX_KICK, 0, 0, 0, 0);
		return (1);
	case FAULT_RXD:
		put(ops, MODEL_MEMORY, 0, 0, FAULT_RXRING + s->n * 16, s->addr);
		return (1);
	case FAULT_FRAME:
		put(ops, MODEL_FRAME, 0, s->n, 0, 0);
		return (1);
	default:
		return (0);
	}
}

size_t
model_fault(const struct fault *f, struct op *ops, size_t max)
{
	const struct fault_step *s;
	struct op setup[4];
	size_t n;

	put(&setup[0], MODEL_UP, FAULT_NTXD / 8, FAULT_NRXD / 8, FAULT_RCTL,
	    E82545_TCTL_PSP);
	put(&setup[1], MODEL_RX_GIVE, FAULT_NRXD - 1, 0, 0, FAULT_RXBUF);
	/* An Ethernet header, from and to host_mac, and IPv4. */
	put(&setup[2], MODEL_MEMORY, 0, 0, FAULT_DATA, 0x0c00563412290c00);
	put(&setup[3], MODEL_MEMORY, 0, 0, FAULT_DATA + 8, 0x0045000856341229);
	n = MIN(nitems(setup), max);
	memcpy(ops, setup, n * sizeof(*ops));
	for (s = f->steps; s->kind != FAULT_END && n < max; s++) {
		n += fault_step(s, &ops[n], max - n);
		if ((s->kind == FAULT_KICK || s->kind == FAULT_RUN) && n < max)
			put(&ops[n++], MODEL_TX, UINT8_MAX, 0, 0, 0);
		if ((s->kind == FAULT_KICK || s->kind == FAULT_FRAME) &&
		    n < max)
			put(&ops[n++], MODEL_RX, 4, 0, 0, 0);
	}
	return (n);
}

/* Put an operation at a random place among `n' others. */
static size_t
put_among(struct rng *rng, struct op *ops, size_t n, enum model_op kind,
    uint8_t a)
{
	size_t at = rng_below(rng, n + 1);

	memmove(&ops[at + 1], &ops[at], (n - at) * sizeof(*ops));
	put(&ops[at], kind, a, 0, 0, 0);
	return (n + 1);
}

static size_t
put_lem(struct op *ops, size_t n, enum lem_op what, uint32_t c)
{
	put(&ops[n], MODEL_LEM, 0, what, c, 0);
	return (n + 1);
}

/* `count' frames arrive, and the host runs. */
static size_t
put_frames(struct op *ops, size_t n, unsigned int count)
{
	for (; count > 0; count--)
		put(&ops[n++], MODEL_FRAME, 0, 0, 0, 0);
	put(&ops[n], MODEL_RX, 4, 0, 0, 0);
	return (n + 1);
}

/*
 * Places where a habit of lem(4) shows, with the CSB on.  `n' selects what
 * comes before, and when.
 */
static size_t
put_habit(struct op *ops, enum lem_habit habit, uint32_t n)
{
	unsigned int i;
	size_t len;

	len = put_lem(ops, 0, LEM_CSB, 1);
	len = put_frames(ops, len, 1 + n % 24);
	len = put_lem(ops, len, LEM_INTR, 0);
	switch (habit) {
	case HABIT_LATE:
	case HABIT_LATE_TX:
		/* A frame comes during an interrupt that finds none. */
		if (habit == HABIT_LATE) {
			put(&ops[len++], MODEL_LINK, 0, 0, 0, 0);
			put(&ops[len++], MODEL_LINK, 1, 0, 0, 0);
		} else {
			len = put_lem(ops, len, LEM_SEND, 0);
			put(&ops[len++], MODEL_TX, 1, 0, 0, 0);
		}
		put(&ops[len++], MODEL_WHEN, 2, n % HABIT_TIMES, 0, 0);
		len = put_frames(ops, len, 1);
		len = put_lem(ops, len, LEM_INTR, 0);
		break;
	case HABIT_NEXT:
		put(&ops[len++], MODEL_LINK, 0, 0, 0, 0);
		put(&ops[len++], MODEL_LINK, 1, 0, 0, 0);
		len = put_lem(ops, len, LEM_INTR, 0);
		len = put_frames(ops, len, 1);
		break;
	case HABIT_LAP:
		/* Once around the ring, without interrupts. */
		for (i = 0; i < 8; i++, n = n / 16 + 7)
			len = put_lem(ops, len, LEM_QUIET, n % 16);
		break;
	case HABIT_OLD_RDT:
		len = put_lem(ops, len, LEM_RX_RESTART, 0);
		break;
	case HABIT_COMBINE:
		/* Both are sent before the kick for the second. */
		len = put_lem(ops, len, LEM_COMBINE, 1);
		len = put_lem(ops, len, LEM_SEND, 1);
		put(&ops[len++], MODEL_TX, 8, 0, 0, 0);
		len = put_lem(ops, len, LEM_INTR, 0);
		put(&ops[len++], MODEL_TX, 8, 0, 0, 0);
		/* The model may look again meanwhile. */
		put(&ops[len++], MODEL_TIME, 0, 0, n % 2 * (1u << 24), 0);
		len = put_lem(ops, len, LEM_SEND, 0);
		break;
	case HABIT_N:
		break;
	}
	return (len);
}

size_t
model_habit(bool legacy_irq, enum lem_habit habit, uint32_t n, struct op *ops)
{
	put_lem(ops, 0, LEM_START, 0);
	ops[0].a = legacy_irq;
	/* Link up. */
	put_lem(ops, 1, LEM_INTR, 0);
	return (2 + put_habit(&ops[2], habit, n));
}

static size_t
make_habit(struct rng *rng, struct op *ops)
{
	return (put_habit(ops, rng_below(rng, HABIT_N), rng_next(rng)));
}

/*
 * lem(4) runs for a while: it starts, if it does not run; frames arrive and are
 * sent; the host works, and interrupts are handled.  At any access the mode may
 * change, or a few of these happen.
 */
static size_t
make_lem(struct rng *rng, struct op *ops)
{
	static const struct {
		uint8_t		kind, b;
	} steps[] = {
		{ MODEL_TX, 0 }, { MODEL_RX, 0 }, { MODEL_RX, 1 },
		{ MODEL_RX, 0 }, { MODEL_LEM, LEM_INTR },
		{ MODEL_LEM, LEM_INTR }, { MODEL_LEM, LEM_INTR },
		{ MODEL_LEM, LEM_SEND }, { MODEL_LEM, LEM_SEND },
		{ MODEL_LEM, LEM_CSB }, { MODEL_LEM, LEM_CSB },
		{ MODEL_LEM, LEM_COMBINE }, { MODEL_LEM, LEM_QUIET },
		{ MODEL_LEM, LEM_STRAY }, { MODEL_LEM, LEM_RESTART },
		{ MODEL_LEM, LEM_RX_RESTART }, { MODEL_FRAME, 0 },
		{ MODEL_FRAME, 0 }, { MODEL_FRAME, 0 }, { MODEL_LINK, 0 },
		{ MODEL_LINK, 0 }, { MODEL_BUS, 0 }, { MODEL_TIME, 0 },
		{ MODEL_RACE, 0 }, { MODEL_WHEN, 0 }, { MODEL_WHEN, 0 }
	};
	size_t n, count, i;

	count = rng_below(rng, 64);
	n = put_lem(ops, 0, LEM_START, rng_below(rng, 8));
	ops[0].a = rng_one_in(rng, 3);
	if (rng_one_in(rng, 2))
		n += make_habit(rng, &ops[n]);
	for (count += n; n < count; n++) {
		i = rng_below(rng, nitems(steps));
		put(&ops[n], steps[i].kind, 1 + rng_below(rng, 4), steps[i].b,
		    rng_next(rng), rng_next(rng));
		if (ops[n].kind == MODEL_RACE || ops[n].kind == MODEL_WHEN)
			ops[n].b = 1 + rng_below(rng, rng_one_in(rng, 4) ? 256 :
			    16);
		else if (ops[n].kind == MODEL_TIME)
			ops[n].c = 1u << rng_below(rng, 27);
		/* Frames come in bursts. */
		while (ops[n].kind == MODEL_FRAME && n + 1 < count &&
		    !rng_one_in(rng, 8)) {
			ops[n + 1] = ops[n];
			n++;
		}
	}
	return (n + make_habit(rng, &ops[n]));
}

/*
 * Rings are set up, with the CSB or without; some frames are sent and received.
 * Or it is a fault, or lem(4).
 */
size_t
target_phrase(struct rng *rng, struct op *ops, size_t max)
{
	uint64_t csb = 0x1000 * (1 + rng_below(rng, 8));
	uint16_t by_csb = rng_below(rng, 2);
	const bool two = rng_one_in(rng, 4);
	size_t i, n, frames;

	if (rng_one_in(rng, 8))
		return (model_fault(&e1000_faults[rng_below(rng,
		    e1000_nfaults)], ops, max));
	if (rng_one_in(rng, 6))
		return (make_lem(rng, ops));
	n = 0;
	if (two)
		put(&ops[n++], MODEL_MSIX, rng_below(rng, 2), 0, 0, 0);
	if (two || !rng_one_in(rng, 4)) {
		if (by_csb) {
			put(&ops[n++], MODEL_PLACE, 0, 0, 0, csb);
			put(&ops[n++], MODEL_CSB, 18, 0, rng_below(rng, 20), 0);
			put(&ops[n++], MODEL_CSB, 3, 0, 1, 0);
		}
		put(&ops[n++], MODEL_UP, 1 + rng_below(rng, 8),
		    1 + rng_below(rng, 8), make_value(rng, V_RCTL) |
		    E82545_RCTL_EN | E82545_RCTL_UPE, !two ? 0 :
		    0x100 | E82574_RFCTL_EXTEN | (rng_next(rng) &
		    E82574_ICR_MSIX));
	}
	frames = 1 + rng_below(rng, 6);
	for (i = 0; i < frames; i++) {
		ops[n].kind = MODEL_TXD;
		make_txd(rng, &ops[n++]);
	}
	put(&ops[n++], MODEL_TX_KICK, 0, by_csb, 0, 0);
	put(&ops[n++], MODEL_RX_GIVE, 1 + rng_below(rng, 16), by_csb, 0,
	    0x20000);
	if (two) {
		put(&ops[n++], MODEL_QUEUE, rng_below(rng, 4) != 0, 0, 0, 0);
		ops[n].kind = MODEL_TXD;
		make_txd(rng, &ops[n++]);
		put(&ops[n++], MODEL_TX_KICK, 0, 0, 0, 0);
		put(&ops[n++], MODEL_RX_GIVE, 1 + rng_below(rng, 16), 0, 0,
		    0x30000);
	}
	put(&ops[n++], MODEL_TX, 4, 0, 0, 0);
	for (i = 0; i < 2 + 2 * (unsigned int)two; i++)
		put(&ops[n++], MODEL_FRAME, rng_next(rng),
		    rng_below(rng, 4000), rng_next(rng), 0);
	put(&ops[n++], MODEL_RX, 4, 0, 0, 0);
	if (rng_one_in(rng, 4))
		n = put_among(rng, ops, n, MODEL_BUS, 0);
	if (rng_one_in(rng, 4))
		n = put_among(rng, ops, n, MODEL_BUS, 1);
	return (MIN(n, max));
}
