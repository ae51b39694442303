/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The communication status block (CSB), host side: paravirt_csb(9).
 *
 * The CSB is a page of guest memory in which guest and host publish their
 * progress.  A side that polls it need not be woken: the guest leaves out its
 * kick, which is a write to TDT or RDT, and the host its interrupt.  Two rules
 * keep wakeups from getting lost:
 *
 *	before leaving one out:		publish, full barrier, read whether the
 *					other side asks for it
 *	before going to sleep:		ask for it, full barrier, read again
 *					what the other side has published
 *
 * The host sends one kind and waits for two:
 *
 *	interrupt	A batch is complete.  Causes that only announce data are
 *			suppressed unless the guest wants them by its flags, or
 *			on receive by a write to IMS; the others go through
 *			moderation as usual.
 *	TDT		The guest has frames: e82545_csb_tx.c.
 *	RDT		The guest has buffers: e82545_csb_rx.c.
 *
 * A driver that breaks these rules may leave frames waiting for ever.  FreeBSD
 * 10's lem(4) has no barriers, and may not ask for interrupts again after one
 * that found no frame.  So CSB_RECHECK_NS after the model has gone to sleep,
 * stalled or suppressed an interrupt, it checks again, on the host's timer,
 * when all that the guest stored before it read the block is visible:
 * csb_tx_recheck(), csb_rx_recheck().  A driver that numbers its requests has
 * the barriers, and needs no check: paravirt_csb(9).
 *
 * The rest of the model only knows TDT and RDT; e82545_csb_tail.c sets them
 * from the CSB.
 *
 * Every batch reads guest_csb_on.  The host keeps its part of the block up to
 * date while that is 0, so that a guest that turns the mode on finds out
 * whether the host sleeps.
 *
 * tx_mtx protects the transmit members, rx_mtx the receive members, reg_mtx
 * what registers and the timer use; the block's address changes with all of
 * them held.  The block is mapped again for each batch.  All fields are little
 * endian; each is loaded once and then checked.  Loads acquire and stores
 * release, so a side that sees an index sees the descriptors before it.
 *
 * This file has what both directions use, the block's registers, and its state
 * in snapshots.
 */

#include <sys/endian.h>
#include <net/paravirt.h>

#include "e82545_csb_impl.h"
#include "e82545_intr.h"
#include "e82545_probes.h"
#include "e82545_salvage.h"
#include "e82545_snap.h"

/* When to check again after an interrupt was left out or a kick asked for. */
#define	CSB_RECHECK_NS	10000000

void
csb_bad(struct e82545 *dev, uint32_t what)
{
	e82545_count_any(dev, E82545_C_CSB_BAD);
	e82545_probe_bad(dev, E82545_C_CSB_BAD, what);
}

void
csb_suppress(struct e82545 *dev, uint32_t causes)
{
	if (causes == 0)
		return;
	dev->csb.held |= causes;
	e82545_count(dev, E82545_C_INTR_SAVED, 1);
	E82545_PROBE(dev, INTR_SAVED, causes);
}

void
csb_tell(struct e82545 *dev, const struct paravirt_csb *page, uint32_t *told,
    uint32_t need)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (!csb_numbers(page) || atomic_load_32(&page->guest_csb_on) == 0)
		return;
	atomic_store_32(told, need);
	dev->csb.held = 0;
	dev->csb.rx_unmasked = false;
	e82545_intr_taken(dev);
}

struct paravirt_csb *
csb_map(struct e82545 *dev)
{
	struct paravirt_csb *page;

	if (dev->csb.gpa == 0)
		return (NULL);
	page = e82545_map(dev, dev->csb.gpa, NET_PARAVIRT_CSB_SIZE);
	if (page == NULL ||
	    (uintptr_t)page % _Alignof(struct paravirt_csb) != 0) {
		csb_bad(dev, dev->csb.gpa);
		return (NULL);
	}
	return (page);
}

/* Record the mode. */
static void
csb_mode(struct e82545 *dev, bool on)
{
	if (atomic_load_32(&dev->csb.on) == on ||
	    atomic_swap_32(&dev->csb.on, on) == on)
		return;
	e82545_count_any(dev, on ? E82545_C_CSB_ON : E82545_C_CSB_OFF);
	if (on)
		E82545_PROBE(dev, CSB_ON, dev->csb.gpa);
	else
		E82545_PROBE(dev, CSB_OFF, dev->csb.gpa);
}

bool
csb_is_on(struct e82545 *dev, const struct paravirt_csb *page)
{
	bool on;

	on = le32toh(atomic_load_acq_32(&page->guest_csb_on)) != 0;
	csb_mode(dev, on);
	return (on);
}

bool
csb_recheck_later(struct e82545 *dev, const struct paravirt_csb *page,
    uint64_t *when_ns)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (*when_ns != 0 || csb_numbers(page))
		return (false);
	*when_ns = dev->ops->eo_now(dev->arg) + CSB_RECHECK_NS;
	e82545_intr_arm(dev, *when_ns);
	return (true);
}

static void
csb_arm(struct e82545 *dev)
{
	const struct e82545_csb *c = &dev->csb;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (c->tx_recheck_ns != 0)
		e82545_intr_arm(dev, c->tx_recheck_ns);
	if (c->rx_recheck_ns != 0)
		e82545_intr_arm(dev, c->rx_recheck_ns);
}

static uint32_t
csb_due(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t due = 0;
	uint64_t now_ns;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (c->tx_recheck_ns == 0 && c->rx_recheck_ns == 0)
		return (0);
	now_ns = dev->ops->eo_now(dev->arg);
	if (c->tx_recheck_ns != 0 && c->tx_recheck_ns <= now_ns) {
		c->tx_recheck_ns = 0;
		due |= E82545_CSB_TX;
	}
	if (c->rx_recheck_ns != 0 && c->rx_recheck_ns <= now_ns) {
		c->rx_recheck_ns = 0;
		due |= E82545_CSB_RX;
	}
	return (due);
}

/*
 * Put the block into its idle state.  Drivers place it once, then reset the
 * adapter each time they start.
 */
static void
csb_idle(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	struct paravirt_csb *page;
	bool kicked;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	/* Guests may clear host_need_txkick when they kick. */
	kicked = atomic_cmpset_acq_32(&c->kicked, 1, 0) != 0;
	page = e82545_dma(dev) ? csb_map(dev) : NULL;
	csb_tx_start(c, page, kicked);
	csb_rx_forget(c, page);
	/* Without a page it is CSB_RX_UNREAD. */
	if (c->rx_state == CSB_RX_WAITS)
		atomic_store_rel_32(&page->host_rxkick_at,
		    htole32(NET_PARAVIRT_NONE));
}

void
csb_release(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;

	e82545_assert_all(dev);
	MPASS(c->tx == NULL && c->rx == NULL);
	csb_mode(dev, false);
	c->gpa = 0;
	atomic_store_32(&c->kicked, 0);
	c->tx_state = CSB_TX_STARTED;
	c->rx_state = CSB_RX_OFF;
	c->tdt.starts = c->rdt.starts = false;
	c->tdt.first = NET_PARAVIRT_NONE;
	c->tx_at_used = c->rx_unmasked = false;
	c->vnet_gpa = 0;
	c->held = 0;
	c->tx_recheck_ns = c->rx_recheck_ns = 0;
}

static const struct e82545_csb_ops csb_ops = {
	.ecb_defer = csb_defer,
	.ecb_restart = csb_restart,
	.ecb_unmask = csb_unmask,
	.ecb_icr_read = csb_icr_read,
	.ecb_tx_begin = csb_tx_begin,
	.ecb_tx_notify = csb_tx_notify,
	.ecb_tx_end = csb_tx_end,
	.ecb_rx_begin = csb_rx_begin,
	.ecb_rx_poll = csb_rx_poll,
	.ecb_rx_wait = csb_rx_wait,
	.ecb_rx_notify = csb_rx_notify,
	.ecb_rx_end = csb_rx_end,
	.ecb_vnet_map = csb_vnet_map,
	.ecb_vnet_takes = csb_vnet_takes,
	.ecb_vnet_clear = csb_vnet_clear,
	.ecb_arm = csb_arm,
	.ecb_due = csb_due,
	.ecb_tx_recheck = csb_tx_recheck,
	.ecb_rx_recheck = csb_rx_recheck,
	.ecb_idle = csb_idle,
	.ecb_release = csb_release
};

void
e82545_csbal_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	struct e82545_csb *c = &dev->csb;
	struct paravirt_csb *page;

	if (!dev->config.ec_csb)
		return;
	csb_use(dev, &csb_tx_ring, NULL);
	csb_use(dev, &csb_rx_ring, NULL);
	csb_release(dev);
	e82545_reg_set(dev, off, value);
	c->gpa = (uint64_t)e82545_reg(dev, E82545_CSBAH) << 32 | value;
	c->rx_old = NET_PARAVIRT_NONE;
	if (c->gpa != 0) {
		c->ops = &csb_ops;
		page = e82545_dma(dev) ? csb_map(dev) : NULL;
		c->tx_at_used = page != NULL &&
		    atomic_load_32(&page->guest_txkick_at) != 0;
		csb_vnet_place(dev, page);
		/* So that the receive side sets host_rxkick_at. */
		csb_rx_move(c, CSB_RX_WAITS);
		dev->wake_rx = true;
	}
}

void
e82545_csbah_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	if (dev->config.ec_csb)
		e82545_reg_set(dev, off, value);
}

void
e82545_csb_reset(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	e82545_reg_set(dev, E82545_CSBAL, c->gpa);
	e82545_reg_set(dev, E82545_CSBAH, c->gpa >> 32);
	c->tdt.deferred = c->rdt.deferred = NET_PARAVIRT_NONE;
	c->tdt.taken = c->rdt.taken = NET_PARAVIRT_NONE;
	c->tdt.starts = c->rdt.starts = true;
	c->vnet_clean = UINT32_MAX;
	c->rx_unmasked = false;
	c->held = 0;
	c->tx_recheck_ns = c->rx_recheck_ns = 0;
}

static void
csb_tail_snap(struct e82545_csb_tail *t, struct e82545_snap *s)
{
	e82545_snap_u32(s, &t->deferred, NET_PARAVIRT_NONE);
	e82545_snap_check(s, t->deferred <= E82545_DPTR_MASK ||
	    t->deferred == NET_PARAVIRT_NONE);
	e82545_snap_bool(s, &t->starts);
	e82545_snap_u32(s, &t->first, NET_PARAVIRT_NONE);
}

/* Set the state from the three flags that a snapshot has. */
static void
csb_rx_state_snap(struct e82545_csb *c, bool last_on, bool unread, bool waits)
{
	c->rx_state = unread ? CSB_RX_UNREAD : waits ? CSB_RX_WAITS :
	    last_on ? CSB_RX_ON : CSB_RX_OFF;
}

/*
 * Save or restore the block, between batches.  csb_map() checks the address for
 * each batch.
 */
void
e82545_csb_snap(struct e82545 *dev, struct e82545_snap *s)
{
	struct e82545_csb *c = &dev->csb;
	bool kicked = c->kicked != 0, on = c->on != 0;
	bool awake = csb_tx_awake(c), counts = csb_tx_counts(c);
	bool last_on = c->rx_state == CSB_RX_ON;
	bool unread = c->rx_state == CSB_RX_UNREAD;
	bool waits = c->rx_state == CSB_RX_WAITS;

	e82545_snap_u64(s, &c->gpa, dev->config.ec_csb ? UINT64_MAX : 0);
	e82545_snap_bool(s, &on);
	e82545_snap_bool(s, &kicked);
	c->on = on;
	c->kicked = kicked;
	e82545_snap_bool(s, &last_on);
	e82545_snap_bool(s, &unread);
	e82545_snap_u32(s, &c->rx_old, UINT32_MAX);
	csb_tail_snap(&c->tdt, s);
	csb_tail_snap(&c->rdt, s);
	e82545_snap_bool(s, &c->rx_unmasked);
	e82545_snap_u32(s, &c->held, UINT32_MAX);
	e82545_snap_check(s,
	    (c->held & ~(CSB_TX_CAUSES | CSB_RX_CAUSES)) == 0);
	e82545_snap_bool(s, &c->tx_at_used);
	e82545_snap_bool(s, &awake);
	e82545_snap_bool(s, &counts);
	c->tx_state = awake ? (counts ? CSB_TX_AWAKE : CSB_TX_RESTART) :
	    counts ? CSB_TX_ASLEEP : CSB_TX_STARTED;
	e82545_snap_u32(s, &c->tx_rounds, CSB_ROUNDS_MAX);
	e82545_snap_bool(s, &waits);
	csb_rx_state_snap(c, last_on, unread, waits);
	csb_vnet_snap(c, s);
	if (s->restore != NULL) {
		c->ops = &csb_ops;
		/* Check again as soon as the model is resumed. */
		c->tx_recheck_ns = c->rx_recheck_ns = c->gpa != 0;
		c->rx_polled = true;
	}
	e82545_snap_check(s, c->gpa != 0 || (!c->on && !awake && !waits));
}

/*
 * Go on as if both sides had slept and the guest had kicked.  But guest_tdt may
 * be old after the ring was started, so there the kick must be known of.
 */
static void
csb_awake(struct e82545_csb *c)
{
	if (c->tx_state == CSB_TX_ASLEEP ||
	    (c->tx_state == CSB_TX_RESTART && !c->tdt.starts) ||
	    (c->tx_state == CSB_TX_STARTED && csb_deferred(&c->tdt)))
		c->kicked = 1;
	if (c->rx_state != CSB_RX_UNREAD)
		c->rx_state = CSB_RX_WAITS;
	/* A batch may have written entries whose frames are lost. */
	c->vnet_clean = UINT32_MAX;
}

bool
e82545_csb_salvage(struct e82545 *dev, const struct e82545 *old)
{
	const struct e82545_csb *from = &old->csb;
	struct e82545_csb *c = &dev->csb;

	*c = *from;
	c->ops = NULL;
	c->tx = c->rx = NULL;
	c->tx_on = c->rx_on = false;
	c->rx_polled = true;
	c->tdt.starts = e82545_salvage_bool(&from->tdt.starts);
	c->rdt.starts = e82545_salvage_bool(&from->rdt.starts);
	c->rx_unmasked = e82545_salvage_bool(&from->rx_unmasked);
	c->tx_at_used = e82545_salvage_bool(&from->tx_at_used);
	if ((unsigned int)c->tx_state > CSB_TX_RESTART ||
	    (unsigned int)c->rx_state > CSB_RX_UNREAD)
		return (false);
	/* The guest was placing it. */
	if (c->gpa == 0)
		csb_release(dev);
	else
		csb_awake(c);
	return (true);
}

void
e82545_csb_recover(struct e82545 *dev, uint32_t tdt, uint32_t rdt)
{
	struct e82545_csb *c = &dev->csb;
	struct paravirt_csb *page;
	bool on;

	e82545_assert_all(dev);
	page = csb_map(dev);
	if (page == NULL)
		return;
	on = csb_is_on(dev, page);
	/* The guest may not have got the last interrupt. */
	csb_tell(dev, page, &E82545_CSB_HOST_TXTOLD(page), 0);
	csb_tell(dev, page, &E82545_CSB_HOST_RXTOLD(page), 0);
	if (csb_enabled(dev, &csb_tx_ring)) {
		if (csb_tx_counts(c))
			csb_use_taken(dev, &csb_tx_ring, tdt, on);
		/* Guests may clear the flag themselves when they kick. */
		if (on && c->tx_state == CSB_TX_STARTED && !c->tdt.starts &&
		    atomic_load_32(&page->host_need_txkick) == 0)
			atomic_store_32(&c->kicked, 1);
		if (on)
			atomic_store_rel_32(&page->host_tdh,
			    htole32(e82545_reg(dev, E82545_TDH)));
	}
	if (csb_enabled(dev, &csb_rx_ring)) {
		if (rdt != c->rx_old)
			csb_use_taken(dev, &csb_rx_ring, rdt, false);
		if (on)
			atomic_store_rel_32(&page->host_rdh,
			    htole32(e82545_reg(dev, E82545_RDH)));
	}
	c->held = 0;
}
