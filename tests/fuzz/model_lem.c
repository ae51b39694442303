/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guest's driver is lem(4), tests/testbed/lem10_guest.h: MODEL_LEM and
 * MODEL_WHEN.  At one of its accesses, or one of the model's, other operations
 * may happen, as if a second CPU ran it.  What must hold is in model_fuzz.c.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>

#include <sanitizer/asan_interface.h>

#include <net/paravirt.h>

#include "lem10_guest.h"
#include "model_impl.h"

/* Interrupts and timers until lem(4) has nothing to do. */
#define	LEM_ROUNDS_MAX	10000

static struct lem10 lem;

/*
 * What happens at an access.
 */

/* The operations of MODEL_WHEN happen. */
static void
when(void)
{
	unsigned int n;

	n = m.nwhen;
	m.nwhen = 0;
	m.happened++;
	m.in_when = true;
	for (; n > 0; n--)
		op_run(m.when++);
	m.in_when = false;
}

static void
lem_hook(struct lem10 *l __unused)
{
	when();
}

/* Another CPU of the guest runs lem(4), which accesses poisoned memory. */
void
race_lem(void)
{
	if (m.when_in == 0 || --m.when_in != 0)
		return;
	ASAN_UNPOISON_MEMORY_REGION(m.h->ram, MODEL_RAM);
	m.in_model = true;
	when();
	m.in_model = false;
}

/*
 * Frames.
 */

/* A frame from lem(4): in order, and not for the second time. */
void
lem_sends(const struct frame *frame)
{
	uint32_t seq;

	INVARIANT(frame->f_niov == 1 && frame->f_len == LEM10_LEN);
	seq = be32dec((uint8_t *)frame->f_iov[0].iov_base + LEM10_SEQ);
	INVARIANT(seq > m.seq && seq <= lem.posted);
	m.seq = seq;
}

void
lem_frame(unsigned int pieces)
{
	uint8_t frame[LEM10_LEN];

	if (host_rx_pending(m.h) >= WAITING_MAX)
		return;
	host_make_frame(frame, sizeof(frame), host_mac, 0);
	be32enc(frame + LEM10_SEQ, ++m.injected);
	host_inject(m.h, frame, sizeof(frame), pieces);
}

/* Whether the CSB is on, and lem(4) wants interrupts for frames sent. */
static bool
lem_wants(bool wanted)
{
	return (lem.csb->guest_csb_on != 0 &&
	    (lem.csb->guest_need_txkick != 0) == wanted);
}

bool
lem_transmit(void)
{
	const bool loud = lem_wants(true) &&
	    (reg_read(E82545_IMS) & E82545_ICR_TXDW) != 0;
	const bool quiet = lem_wants(false) && !m.h->line;
	const unsigned int happened = m.happened;
	const uint64_t accepted = m.accepted;
	bool more;

	call_begin();
	more = m.workers->tx(m.h->dev);
	call_end();
	INVARIANT(m.sent <= E82545_TX_FRAMES);
	if (m.raced || m.happened != happened)
		return (more);
	if (loud && lem_wants(true) && m.accepted > accepted)
		INVARIANT(m.h->line);
	if (quiet && lem_wants(false))
		INVARIANT(!m.h->line);
	return (more);
}

/*
 * With masking, a write to IMS ends each interrupt.  From then on a frame
 * interrupts at once, whatever guest_need_rxkick is.
 */
void
lem_received(void)
{
	if (!lem.legacy_irq && !m.in_when &&
	    (reg_read(E82545_IMS) & E82545_ICR_RXT0) != 0 &&
	    host_rx_done(m.h, lem.rx_next))
		INVARIANT(m.h->line);
}

/*
 * Operations.
 */

/* The guest starts over, with lem(4) as its driver. */
void
lem_start(uint32_t ndesc, bool legacy_irq)
{
	struct host *h = m.h;

	host_pause(false);
	host_bus(true);
	call_begin();
	e82545_reset(h->dev);
	e82545_link(h->dev, true);
	call_end();
	/* Drop what is in the network. */
	receive(UINT32_MAX);
	madvise(h->ram, MODEL_RAM, MADV_DONTNEED);
	h->tx_space = UINT32_MAX;
	h->brk = 0x10000;
	forget();
	m.race_in = 0;
	lem10_up(&lem, h, ndesc);
	lem.legacy_irq = legacy_irq;
	lem.hook = lem_hook;
	/* As after the first frame. */
	lem.csb->guest_need_txkick = 2;
	m.csb = lem.csb_gpa;
	m.lem = true;
	e82545_counters(h->dev, m.before);
}

/* Whether lem(4) has a thread for an operation that waits for its locks. */
static bool
lem_free(void)
{
	bool rx, tx;

	rx = pthread_mutex_trylock(&lem.rx_mtx) == 0;
	if (rx)
		pthread_mutex_unlock(&lem.rx_mtx);
	tx = pthread_mutex_trylock(&lem.tx_mtx) == 0;
	if (tx)
		pthread_mutex_unlock(&lem.tx_mtx);
	return (rx && tx);
}

/*
 * Send `n' frames and want no interrupt for them, as a driver may that does not
 * wait for one.
 */
static void
lem_quiet(uint32_t n)
{
	lem.csb->guest_need_txkick = 0;
	lem10_send(&lem, n);
	while (transmit())
		;
	lem.csb->guest_need_txkick = 2;
	pthread_mutex_lock(&lem.tx_mtx);
	lem10_txeof(&lem);
	pthread_mutex_unlock(&lem.tx_mtx);
}

/*
 * A paused guest does not run, and one that starts has turned bus mastering on.
 */
void
lem_run(const struct op *op)
{
	if (m.paused)
		return;
	switch (op->b % LEM_NOPS) {
	case LEM_INTR:
		if (!lem.in_task && lem_free())
			lem10_intr(&lem);
		break;
	case LEM_STRAY:
		if (!lem.in_task && lem_free())
			lem10_handler(&lem);
		break;
	case LEM_SEND:
		if (lem_free())
			lem10_send(&lem, 1 + op->c % 16);
		break;
	case LEM_CSB:
		lem10_csb(&lem, op->c & 1);
		break;
	case LEM_COMBINE:
		/* It then waits for interrupts. */
		if (lem.csb->guest_need_txkick != 0)
			lem.combining = op->c & 1;
		break;
	case LEM_QUIET:
		if (lem_free() && !m.in_model && !lem.tx_full &&
		    lem.combining == 0 && !lem.combined && !lem.tx_pending)
			lem_quiet(1 + op->c % 16);
		break;
	case LEM_RESTART:
		if (lem.in_task || m.in_model || !m.bus || !lem_free())
			break;
		lem10_init(&lem, NULL);
		/* Else it could wait for an interrupt of before the reset. */
		lem.combined = lem.tx_pending = lem.combined_none = false;
		break;
	case LEM_RX_RESTART:
		if (!lem.in_task && !m.in_model && m.bus && lem_free())
			lem10_rx_restart(&lem);
		break;
	}
}

void
lem_when(const struct op *op)
{
	if (m.in_model || lem.hook_in != 0 || m.when_in != 0)
		return;
	m.happened = 0;
	if ((op->c & 1) != 0) {
		m.when_in = 1 + op->b % 64;
		m.race = true;
	} else
		lem.hook_in = 1 + op->b % 256;
}

/*
 * Whether an operation can happen with lem(4) as the driver: not one that plays
 * another, nor one that waits for a batch from inside of it.
 */
bool
lem_allows(const struct op *op)
{
	switch (op->kind) {
	case MODEL_LEM:
	case MODEL_FRAME:
	case MODEL_LINK:
	case MODEL_ROOM:
	case MODEL_WHEN:
	case MODEL_RACE:
		return (true);
	case MODEL_TX:
	case MODEL_RX:
	case MODEL_TIME:
	case MODEL_BUS:
		return (!m.in_model);
	case MODEL_PAUSE:
		return (!m.in_when);
	default:
		return (false);
	}
}

/*
 * The end.
 */

static uint64_t
lem_counted(enum e82545_counter counter)
{
	return (host_counter(m.h, counter) - m.before[counter]);
}

/*
 * Whether lem(4) may wait for ever, on any adapter, for an interrupt that only
 * something else brings: it has read ICR and processed no ring, or left out a
 * kick after one for no frame.
 */
static bool
lem_needs_intr(void)
{
	return (lem.skipped || (lem.tx_pending && lem.combined_none));
}

/* Nothing is left to do, and every frame is accounted for. */
void
lem_settle(void)
{
	struct host *h = m.h;
	unsigned int i;

	lem.hook_in = m.when_in = 0;
	h->tx_space = UINT32_MAX;
	call_begin();
	e82545_link(h->dev, true);
	call_end();
	for (i = 0; i < LEM_ROUNDS_MAX; i++) {
		while (transmit())
			;
		receive(UINT32_MAX);
		if (lem10_intr(&lem))
			continue;
		if (lem_needs_intr()) {
			reg_write(E82545_ICS, E82545_ICR_RXT0);
			continue;
		}
		if (h->timer_ns == 0)
			break;
		call_begin();
		host_advance(h, h->timer_ns > h->now_ns ?
		    h->timer_ns - h->now_ns : 0);
		call_end();
	}
	INVARIANT(i < LEM_ROUNDS_MAX);
	/* What is sent, it may take later. */
	lem10_txeof(&lem);
	INVARIANT(lem10_all_sent(&lem));
	INVARIANT(lem.posted - lem.tx_lost == lem_counted(E82545_C_TX_FRAME) +
	    lem_counted(E82545_C_TX_NOROOM) +
	    lem_counted(E82545_C_TX_LINKDOWN));
	INVARIANT(lem.disorder == 0);
	INVARIANT(lem.taken + lem.rx_lost == lem_counted(E82545_C_RX_FRAME));
	INVARIANT(lem.taken + lem.rx_lost + lem_counted(E82545_C_RX_DISABLED) ==
	    m.injected);
	INVARIANT(lem_counted(E82545_C_CSB_BAD) == 0);
	lem10_down(&lem);
	m.lem = false;
}
