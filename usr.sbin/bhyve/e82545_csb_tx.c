/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB on transmit: see e82545_csb.c.
 *
 * A write to TDT wakes the transmit side, which then polls guest_tdt, batch
 * after batch, until it is idle.  A reset or a write to TDH starts the ring;
 * then guest_tdt is old, and does not count until a kick finds the mode on.
 *
 *		    TDT written, mode on	     TDT written
 *	 STARTED ---------------------------> AWAKE <------------ ASLEEP
 *	   ^  ^				      | | |		   ^ |
 *	   |  +------- ring started ----------+ | +---- idle ------+ |
 *	   |					|		     |
 *	   |	     ring started, page unknown +---> RESTART	     |
 *	   |						 |	     |
 *	   +---------- next batch -----------------------+	     |
 *	   +---------- ring started ---------------------------------+
 *
 *	idle	host_txcycles_lim empty rounds, or CSB_SPIN_NS of them, or the
 *		mode is off, or TCTL.EN: host_need_txkick = 1, barrier, nothing
 *		stored in guest_tdt; or the page cannot be mapped
 *
 * The page is unknown to a reset while the adapter may not access memory: then
 * the next batch sets host_need_txkick.  STARTED and ASLEEP become RESTART,
 * too, if a kick was not seen yet; and a kick that a batch sees with RESTART
 * leads to AWAKE.
 *
 * While the side is AWAKE with the mode on, host_need_txkick is 0.  A guest may
 * have left out a kick because of that, whatever the mode is now.  So the
 * transmit side always reads guest_tdt once more after it has changed the flag
 * to 1.  e82545_csb_tail.c says which indices count.
 *
 * All functions need tx_mtx; csb_tx_recheck() takes the locks itself.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <net/paravirt.h>

#include "e82545_csb_impl.h"
#include "e82545_intr.h"

/* Set the next state; guest_tdt counts only after a kick. */
static void
csb_tx_move(struct e82545_csb *c, enum csb_tx_state to)
{
	MPASS(to != CSB_TX_ASLEEP || c->tx_state == CSB_TX_AWAKE);
	c->tx_state = to;
}

void
csb_tx_start(struct e82545_csb *c, struct paravirt_csb *page, bool kicked)
{
	const bool awake = csb_tx_awake(c) || kicked;

	if (awake && page != NULL)
		atomic_store_rel_32(&page->host_need_txkick, htole32(1));
	csb_tx_move(c, awake && page == NULL ? CSB_TX_RESTART :
	    CSB_TX_STARTED);
}

/*
 * Wake up.  Guests may clear the flag themselves when they kick, with the mode
 * on.
 */
static void
csb_tx_wake(struct e82545_csb *c, bool kicked)
{
	bool need = atomic_load_32(&c->tx->host_need_txkick) != 0;

	if (!csb_tx_counts(c) && !(kicked && (c->tx_on || !need))) {
		/* The mode is off, or was before a reset with the bus off. */
		csb_tx_start(c, c->tx, true);
		return;
	}
	csb_tx_move(c, CSB_TX_AWAKE);
	if (c->tx_on && need)
		atomic_store_rel_32(&c->tx->host_need_txkick, htole32(0));
}

void
csb_tx_begin(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	bool enabled, kicked;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	MPASS(e82545_dma(dev) && c->tx == NULL && !c->tx_on);
	kicked = atomic_load_32(&c->kicked) != 0 &&
	    atomic_cmpset_acq_32(&c->kicked, 1, 0) != 0;
	enabled = csb_enabled(dev, &csb_tx_ring);
	/* With the ring off, the guest may have reused its page. */
	if (enabled || csb_tx_awake(c) || kicked)
		c->tx = csb_map(dev);
	if (!csb_tx_awake(c))
		c->tx_rounds = c->tx_away_ns = 0;
	if (c->tx != NULL) {
		c->tx_on = csb_is_on(dev, c->tx) && enabled;
		if (csb_tx_awake(c) || kicked)
			csb_tx_wake(c, kicked);
	} else if (csb_tx_awake(c))
		csb_tx_move(c, csb_tx_counts(c) ? CSB_TX_ASLEEP :
		    CSB_TX_STARTED);
	if (csb_deferred(&c->tdt) || (c->tx_state == CSB_TX_AWAKE &&
	    csb_stored(c->tx, &csb_tx_ring))) {
		pthread_mutex_lock(&dev->reg_mtx);
		csb_use(dev, &csb_tx_ring, enabled ? c->tx : NULL);
		pthread_mutex_unlock(&dev->reg_mtx);
	}
}

/* Go to sleep.  Returns false if frames are pending after all. */
static bool
csb_tx_sleep(struct e82545 *dev, struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;

	/* If it is set, the guest has not left out a kick. */
	if (atomic_load_32(&page->host_need_txkick) != htole32(1)) {
		atomic_store_rel_32(&page->host_need_txkick, htole32(1));
		atomic_thread_fence_seq_cst();
		pthread_mutex_lock(&dev->reg_mtx);
		csb_recheck_later(dev, page, &c->tx_recheck_ns);
		pthread_mutex_unlock(&dev->reg_mtx);
		if (csb_enabled(dev, &csb_tx_ring) &&
		    csb_stored(page, &csb_tx_ring)) {
			c->tx_rounds = 0;
			return (false);
		}
	}
	csb_tx_move(c, CSB_TX_ASLEEP);
	return (true);
}

/*
 * Return how many frames were sent and received, in batches that have ended, as
 * CSB_AWAY_FRAMES counts.
 */
static uint64_t
csb_frames(const struct e82545 *dev)
{
	const uint64_t *n = dev->counters;

	return (atomic_load_64(&n[E82545_C_TX_FRAME]) +
	    atomic_load_64(&n[E82545_C_RX_FRAME]) +
	    (atomic_load_64(&n[E82545_C_TX_BYTE]) +
	    atomic_load_64(&n[E82545_C_RX_BYTE])) / CSB_FRAME_BYTES);
}

/*
 * Begin a row.  Returns false if the side must not poll, because another thread
 * had the processor for long since the last row: see CSB_AWAY_NS.
 */
static bool
csb_tx_row(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;

	c->tx_row_ns = dev->ops->eo_now(dev->arg);
	if (c->tx_away_ns != 0 && c->tx_row_ns - c->tx_away_ns >= CSB_AWAY_NS &&
	    csb_frames(dev) - c->tx_away_frames < CSB_AWAY_FRAMES)
		c->tx_rest_ns = c->tx_row_ns + CSB_REST_NS;
	return (c->tx_row_ns >= c->tx_rest_ns);
}

/*
 * Count an empty round, and the time of each row of E82545_TX_POLLS rounds.
 * Time between two rows is not counted: the host may have yielded the
 * processor.  Returns false if the limit of rounds or of time is reached, or
 * the processor is needed elsewhere.
 */
static bool
csb_tx_spin(struct e82545 *dev, struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t limit;

	limit = le32toh(atomic_load_acq_32(&page->host_txcycles_lim));
	if (c->tx_rounds >= MIN(limit, CSB_ROUNDS_MAX))
		return (false);
	if (c->tx_rounds == 0)
		c->tx_spin_ns = 0;
	if (c->tx_rounds % E82545_TX_POLLS == 0 && !csb_tx_row(dev))
		return (false);
	c->tx_rounds++;
	atomic_store_rel_32(&page->host_txcycles, htole32(c->tx_rounds));
	if (c->tx_rounds % E82545_TX_POLLS == 0) {
		c->tx_away_ns = dev->ops->eo_now(dev->arg);
		c->tx_away_frames = csb_frames(dev);
		/* After restore tx_row_ns is 0, so the limit is reached. */
		c->tx_spin_ns += c->tx_away_ns - c->tx_row_ns;
	}
	return (c->tx_spin_ns < CSB_SPIN_NS);
}

enum e82545_tx_state
csb_tx_end(struct e82545 *dev, bool idle, bool more)
{
	struct e82545_csb *c = &dev->csb;
	struct paravirt_csb *page = c->tx;
	bool on = c->tx_on;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	c->tx = NULL;
	c->tx_on = false;
	/* The batch has mapped the page, or set host_need_txkick. */
	MPASS(c->tx_state != CSB_TX_RESTART);
	if (c->tx_state == CSB_TX_AWAKE && on) {
		if (!idle) {
			c->tx_rounds = 0;
			return (E82545_TX_MORE);
		}
		if (csb_tx_spin(dev, page))
			return (c->tx_rounds % E82545_TX_POLLS == 0 &&
			    atomic_load_acq_32(&page->guest_need_rxkick) != 0 ?
			    E82545_TX_YIELD : E82545_TX_POLL);
	}
	if (c->tx_state == CSB_TX_AWAKE && !csb_tx_sleep(dev, page))
		more = true;
	return (more ? E82545_TX_MORE : E82545_TX_IDLE);
}

/*
 * Return the index of guest_txkick_at.  A driver that does not use
 * guest_txkick_at may leave it 0, as the page was.
 */
static uint32_t
csb_txkick_at(struct e82545_csb *c)
{
	uint32_t at;

	at = le32toh(atomic_load_acq_32(&c->tx->guest_txkick_at));
	if (at != 0)
		c->tx_at_used = true;
	return (c->tx_at_used ? at : NET_PARAVIRT_NONE);
}

/*
 * Return whether a head that moved over `ndescs' from `start' passed index
 * `at'.
 */
static bool
csb_passed(uint32_t at, uint32_t start, uint32_t ndescs, uint32_t size)
{
	return (at < size && (at + size - start - 1) % size < ndescs);
}

void
csb_tx_notify(struct e82545 *dev, uint32_t start, uint32_t ndescs,
    uint32_t size, bool done, bool delayed, uint32_t causes)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t at, need, *told;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	MPASS(c->tx != NULL);
	/* The guest may have turned the mode on since the batch began. */
	if (!c->tx_on && atomic_load_32(&c->tx->guest_csb_on) == 0) {
		e82545_intr_tx(dev, 0, done, delayed, causes);
		return;
	}
	told = &E82545_CSB_HOST_TXTOLD(c->tx);
	atomic_store_rel_32(&c->tx->host_tdh,
	    htole32(e82545_reg(dev, E82545_TDH)));
	atomic_thread_fence_seq_cst();
	at = csb_txkick_at(c);
	if (at != NET_PARAVIRT_NONE && at >= size)
		csb_bad(dev, at);
	need = atomic_load_acq_32(&c->tx->guest_need_txkick);
	if (csb_wanted(c->tx, need, atomic_load_32(told)) ||
	    csb_passed(at, start, ndescs, size)) {
		/* The guest waits for descriptors, with or without RS. */
		delayed = delayed && done;
		done = ndescs > 0;
		if (done)
			csb_tell(dev, c->tx, told, need);
	} else if (atomic_load_acq_32(&c->tx->guest_csb_on) != 0) {
		csb_suppress(dev, (causes & CSB_TX_CAUSES) |
		    (done ? E82545_ICR_TXDW : 0));
		csb_recheck_later(dev, c->tx, &c->tx_recheck_ns);
		done = false;
		causes &= ~CSB_TX_CAUSES;
	}
	e82545_intr_tx(dev, 0, done, delayed, causes);
	atomic_store_rel_32(&c->tx->host_isr,
	    htole32(e82545_reg(dev, E82545_ICR)));
}

bool
csb_tx_recheck(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	struct paravirt_csb *page;
	uint32_t held, need, *told;
	bool wake = false;

	e82545_lock(&dev->tx_mtx);
	if (e82545_dma(dev) && csb_enabled(dev, &csb_tx_ring) &&
	    (page = csb_map(dev)) != NULL) {
		told = &E82545_CSB_HOST_TXTOLD(page);
		wake = c->tx_state == CSB_TX_ASLEEP &&
		    csb_stored(page, &csb_tx_ring);
		if (wake)
			atomic_store_32(&c->kicked, 1);
		pthread_mutex_lock(&dev->reg_mtx);
		need = atomic_load_32(&page->guest_need_txkick);
		held = c->held & CSB_TX_CAUSES;
		if (held != 0 && csb_wanted(page, need, atomic_load_32(told))) {
			csb_tell(dev, page, told, need);
			e82545_intr_raise(dev, held);
			c->held &= ~CSB_TX_CAUSES;
		}
		pthread_mutex_unlock(&dev->reg_mtx);
	}
	e82545_unlock(&dev->tx_mtx);
	return (wake);
}
