/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's core and a hostile adapter: registers read as anything,
 * descriptors are written back wrong, too early or twice, the CSB is random.
 * Its host (lem_os.h) counts errors of the core: to return a packet twice, or
 * to use a buffer it does not own.  Besides, each call must return; after a
 * stop the guest must have all packets back; and then, with an adapter that
 * works, the driver must start, send and receive.
 */

#include <sys/param.h>

#include <stdlib.h>
#include <string.h>

#include "lem_guest.h"
#include "ops.h"

#define	RING		128		/* descriptors */
#define	BUFFER		2048		/* bytes */
#define	RAM		0x100000
#define	REGS		(0x20000 / 4)
#define	SENT_MAX	4		/* frames in one operation */

/* X(identifier, what it does with the fields) */
#define	CORE_OPS(X)							\
	X(REG,		"register b * 4 reads as c")			\
	X(TXD,		"word a & 3 of TX descriptor b is c")		\
	X(RXD,		"RX descriptor b says d")			\
	X(RX_DONE,	"a descriptors have c bytes, status b, errors "	\
			"d & 255")					\
	X(TX_DONE,	"a descriptors are done")			\
	X(CSB,		"the CSB's word a is c")			\
	X(SEND,		"a & 3 frames of b bytes")			\
	X(FLUSH,	"queued packets are flushed")			\
	X(CLEAN,	"packets done are cleaned")			\
	X(RX,		"up to a frames are received")			\
	X(INTR,		"an interrupt, with causes c")			\
	X(MODE,		"mode c, ITR b; a & 1: messages, not a line")	\
	X(LINK,		"the link is read; filters are set")		\
	X(WAIT,		"the guest waits for b free descriptors")	\
	X(STOP,		"stop")						\
	X(START,	"start with an MTU of b")			\
	X(KEEP,		"the guest keeps buffers: a & 1; for good: a & 2")

enum core_op {
#define	CORE_OP_ENUM(id, what)	CORE_##id,
	CORE_OPS(CORE_OP_ENUM)
#undef CORE_OP_ENUM
	CORE_NOPS
};

static struct guest	*g;
static uint8_t		*ram;
static uint32_t		 regs[REGS];
static const uint8_t	 peer[6] = { 2, 0, 0, 0, 0, 9 };

static const uint32_t registers[] = {
	E82545_CTRL, E82545_STATUS, E82545_ICR, E82545_RAL(0), E82545_RAH(0),
	E82545_RCTL
};

/*
 * Generating operations.
 */

static void
make_op(struct rng *rng, struct op *op, enum core_op kind)
{
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->a = rng_below(rng, 8);
	op->b = rng_below(rng, RING);
	op->c = rng_number(rng);
	switch (kind) {
	case CORE_REG:
		op->b = registers[rng_below(rng, nitems(registers))] / 4;
		op->c = rng_one_in(rng, 4) ? UINT32_MAX : rng_number(rng);
		break;
	case CORE_RXD:
		op->d = (uint64_t)rng_number(rng) << 32 |
		    rng_below(rng, 2200);
		break;
	case CORE_RX_DONE:
		op->b = rng_one_in(rng, 4) ? rng_next(rng) :
		    1 | rng_below(rng, 2) << 1;
		op->c = rng_one_in(rng, 4) ? rng_number(rng) :
		    60 + rng_below(rng, 1989);
		op->d = rng_one_in(rng, 8) ? rng_next(rng) : 0;
		break;
	case CORE_CSB:
		op->a = rng_below(rng, sizeof(struct paravirt_csb) / 4);
		op->c = rng_one_in(rng, 4) ? rng_number(rng) :
		    rng_below(rng, 2 * RING);
		break;
	case CORE_SEND:
		op->b = 60 + rng_below(rng, 1454);
		break;
	case CORE_INTR:
		op->c = rng_one_in(rng, 4) ? rng_number(rng) :
		    1u << rng_below(rng, 8);
		break;
	case CORE_MODE:
		op->c = rng_below(rng, 17);
		break;
	case CORE_START:
		op->b = rng_one_in(rng, 4) ? rng_number(rng) : 1500;
		break;
	default:
		break;
	}
}

void
target_op(struct rng *rng, struct op *op)
{
	make_op(rng, op, rng_below(rng, CORE_NOPS));
}

size_t
target_phrase(struct rng *rng, struct op *ops, size_t max)
{
	static const uint8_t kinds[] = {
		CORE_MODE, CORE_SEND, CORE_FLUSH, CORE_TX_DONE, CORE_CLEAN,
		CORE_RX_DONE, CORE_RX, CORE_INTR
	};
	size_t i;

	for (i = 0; i < nitems(kinds) && i < max; i++)
		make_op(rng, &ops[i], kinds[i]);
	return (i);
}

/*
 * The adapter.
 */

static uint32_t
reg_read(void *arg __unused, uint32_t reg)
{
	INVARIANT(reg / 4 < REGS && reg % 4 == 0);
	return (regs[reg / 4]);
}

static void
reg_write(void *arg __unused, uint32_t reg, uint32_t value __unused)
{
	INVARIANT(reg / 4 < REGS && reg % 4 == 0);
}

static void
regs_good(void)
{
	memset(regs, 0, sizeof(regs));
	regs[E82545_STATUS / 4] = E82545_STATUS_LU;
	regs[E82545_RAL(0) / 4] = 0x00000002;
	regs[E82545_RAH(0) / 4] = 0x80000100;
}

static void
rx_done(unsigned int n, uint32_t len, uint8_t status, uint8_t errors)
{
	struct lem_core *lc = &g->lc;
	uint32_t slot = lc->lc_rx_next % RING;

	for (; n > 0; n--) {
		lc->lc_rxd[slot].rest = (len & 0xffff) |
		    (uint64_t)status << 32 | (uint64_t)errors << 40;
		slot = (slot + 1) % RING;
	}
}

static void
tx_done(unsigned int n)
{
	struct lem_core *lc = &g->lc;
	uint32_t slot = lc->lc_tx_head % RING;

	for (; n > 0; n--) {
		lc->lc_txd[slot].rest |=
		    E82545_REST_STATUS(E82545_TXD_DD);
		slot = (slot + 1) % RING;
	}
}

static void
op_run(const struct op *op)
{
	struct lem_core *lc = &g->lc;
	unsigned int i;

	switch (op->kind) {
	case CORE_REG:
		if (op->b < REGS)
			regs[op->b] = op->c;
		break;
	case CORE_TXD:
		((uint32_t *)&lc->lc_txd[op->b % RING])[op->a & 3] = op->c;
		break;
	case CORE_RXD:
		lc->lc_rxd[op->b % RING].rest = op->d;
		break;
	case CORE_RX_DONE:
		rx_done(op->a, op->c, op->b, op->d);
		break;
	case CORE_TX_DONE:
		tx_done(op->a);
		break;
	case CORE_CSB:
		((uint32_t *)lc->lc_csb)[op->a % (NET_PARAVIRT_CSB_SIZE / 4)] =
		    op->c;
		break;
	case CORE_SEND:
		for (i = 0; i < (op->a & (SENT_MAX - 1)); i++)
			(void)guest_send(g, peer, 60 + op->b % 1455);
		break;
	case CORE_FLUSH:
		lem_tx_flush(lc);
		break;
	case CORE_CLEAN:
		(void)lem_tx_clean(lc);
		break;
	case CORE_RX:
		INVARIANT(lem_rx(lc, op->a) <= op->a);
		break;
	case CORE_INTR:
		regs[E82545_ICR / 4] = op->c;
		(void)guest_interrupt(g, 8);
		break;
	case CORE_MODE:
		lc->lc_irq = op->a % 3;
		(void)lem_set_mode(lc, op->c);
		(void)lem_set_itr(lc, op->b);
		(void)lem_intr_enable(lc);
		break;
	case CORE_LINK:
		lem_link(lc);
		lem_set_filter(lc, op->a & (E82545_RCTL_UPE | E82545_RCTL_MPE),
		    (op->a & 1) != 0, NULL);
		break;
	case CORE_WAIT:
		lem_tx_wait(lc, op->b);
		break;
	case CORE_STOP:
		lem_stop(lc);
		INVARIANT(lc->lc_os.tx_done == g->sent);
		break;
	case CORE_START:
		if (!lc->lc_running)
			(void)lem_start(lc, g->mac, op->b);
		break;
	case CORE_KEEP:
		lc->lc_os.rx_keep = (op->a & 1) != 0;
		lc->lc_os.rx_hoard = (op->a & 2) != 0;
		break;
	}
	INVARIANT(lc->lc_os.misuses == 0);
}

static void
works(void)
{
	struct lem_core *lc = &g->lc;
	struct lem_os *os = &lc->lc_os;
	uint64_t packets;

	lem_stop(lc);
	INVARIANT(os->tx_done == g->sent);
	os->rx_keep = false;
	/* The guest may have kept all buffers; lem_start() needs one. */
	if (os->nspare == 0)
		os->spare[os->nspare++] = RAM / 2;
	regs_good();
	INVARIANT(lem_set_mode(lc, 0) == 0);
	INVARIANT(guest_up(g, 1500) == 0);
	INVARIANT(guest_send(g, peer, 60) == 0);
	lem_tx_flush(lc);
	tx_done(RING);
	INVARIANT(lem_tx_clean(lc) == 1);
	packets = lc->lc_counter[LEM_C_RX_PACKET];
	rx_done(1, 60, E82545_RXD_DD | E82545_RXD_EOP, 0);
	INVARIANT(lem_rx(lc, 2) == 1);
	INVARIANT(lc->lc_counter[LEM_C_RX_PACKET] == packets + 1);
	lem_stop(lc);
	INVARIANT(os->tx_done == g->sent);
	INVARIANT(os->misuses == 0);
}

int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct op ops[OPS_MAX];
	size_t i, n;

	if (g == NULL) {
		g = malloc(sizeof(*g));
		ram = aligned_alloc(4096, RAM);
		INVARIANT(g != NULL && ram != NULL);
	}
	n = ops_read(data, size, ops);
	/* Clear rings and CSB; buffers may have any contents. */
	memset(ram, 0, 0x8000);
	INVARIANT(guest_init(g, ram, 4096, RAM, RING, RING, BUFFER, BUFFER,
	    true) != 0);
	g->lc.lc_os.reg_read = reg_read;
	g->lc.lc_os.reg_write = reg_write;
	regs_good();
	INVARIANT(guest_up(g, 1500) == 0);
	for (i = 0; i < n; i++)
		op_run(&ops[i]);
	works();
	return (0);
}
