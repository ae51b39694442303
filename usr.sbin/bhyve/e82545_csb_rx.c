/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB on receive: see e82545_csb.c.
 *
 * The receive side reads guest_rdt when RDT is reached.  If guest_rdt is
 * reached, too, it sets host_rxkick_at, barrier, and reads guest_rdt again
 * before it stalls.  A write to RDT ends that.
 *
 *		     a batch finds the mode changed
 *		OFF <------------------------------> ON
 *		 | ^				    ^ |
 *		 | +-------- next batch, by --------+ |
 *	   stall |	     the mode  |	      | stall
 *		 |		       |	      |
 *		 +-----------------> WAITS <----------+
 *				      ^ ^
 *	       block placed ----------+ +- next batch - UNREAD <- ring started
 *
 * OFF	Each batch begins with RDT and guest_rdt.
 * ON	A batch begins with RDT, and guest_rdt if RDT was written.
 * WAITS	The next batch stores "none" in host_rxkick_at, and begins with
 *	guest_rdt.
 * UNREAD	The ring was started while the adapter could not access memory.
 *	What the next batch finds in guest_rdt does not count (rx_old).
 *
 * e82545_csb_tail.c says which indices count.
 *
 * All functions need rx_mtx, with these exceptions: csb_unmask() and
 * csb_icr_read() need only reg_mtx; csb_rx_recheck() takes the locks
 * itself.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <net/paravirt.h>

#include "e82545_csb_impl.h"
#include "e82545_intr.h"

/* Change the state: what was not read must be read before anything else. */
void
csb_rx_move(struct e82545_csb *c, enum csb_rx_state to)
{
	MPASS(c->rx_state != CSB_RX_UNREAD || to == CSB_RX_UNREAD ||
	    to == CSB_RX_WAITS);
	c->rx_state = to;
}

void
csb_rx_forget(struct e82545_csb *c, const struct paravirt_csb *page)
{
	if (page == NULL) {
		csb_rx_move(c, CSB_RX_UNREAD);
		return;
	}
	c->rx_old = le32toh(atomic_load_32(&page->guest_rdt));
	if (c->rx_state == CSB_RX_UNREAD)
		csb_rx_move(c, CSB_RX_WAITS);
}

uint32_t
csb_rx_taken(struct e82545_csb *c, uint32_t value)
{
	if (value == c->rx_old) {
		value = NET_PARAVIRT_NONE;
		c->rdt.taken = NET_PARAVIRT_NONE;
		e82545_stored();
	}
	c->rx_old = NET_PARAVIRT_NONE;
	if (value == c->rx_recheck_rdt)
		c->rx_recheck_rdt = NET_PARAVIRT_NONE;
	else if (value != NET_PARAVIRT_NONE)
		c->rx_polled = true;
	return (value);
}

/* Do as csb_recheck_later() does, for the receive side. */
static void
csb_rx_recheck_later(struct e82545 *dev, const struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;

	if (!csb_recheck_later(dev, page, &c->rx_recheck_ns))
		return;
	c->rx_recheck_rdt = le32toh(atomic_load_32(&page->guest_rdt));
	c->rx_polled = false;
}

/* Take what the guest has posted.  Returns whether it has posted any. */
static bool
csb_rx_take(struct e82545 *dev, struct paravirt_csb *page)
{
	bool moved;

	if (!csb_stored(page, &csb_rx_ring) && !csb_deferred(&dev->csb.rdt))
		return (false);
	pthread_mutex_lock(&dev->reg_mtx);
	moved = csb_use(dev, &csb_rx_ring, page);
	pthread_mutex_unlock(&dev->reg_mtx);
	return (moved);
}

/* Read the mode, and first what a reset could not read. */
static enum csb_rx_state
csb_rx_mode(struct e82545 *dev, struct paravirt_csb *page)
{
	if (dev->csb.rx_state == CSB_RX_UNREAD)
		csb_rx_forget(&dev->csb, page);
	return (csb_is_on(dev, page) ? CSB_RX_ON : CSB_RX_OFF);
}

void
csb_rx_begin(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	enum csb_rx_state mode;
	bool changed;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	MPASS(e82545_dma(dev) && c->rx == NULL && !c->rx_on);
	if (!csb_enabled(dev, &csb_rx_ring))
		return;
	c->rx = csb_map(dev);
	if (c->rx == NULL) {
		if (csb_deferred(&c->rdt)) {
			pthread_mutex_lock(&dev->reg_mtx);
			csb_use(dev, &csb_rx_ring, NULL);
			pthread_mutex_unlock(&dev->reg_mtx);
		}
		return;
	}
	mode = csb_rx_mode(dev, c->rx);
	changed = c->rx_state != mode;
	if (c->rx_state == CSB_RX_WAITS)
		atomic_store_rel_32(&c->rx->host_rxkick_at,
		    htole32(NET_PARAVIRT_NONE));
	csb_rx_move(c, mode);
	c->rx_on = mode == CSB_RX_ON;
	if (changed || !c->rx_on || c->rx_old != NET_PARAVIRT_NONE ||
	    csb_deferred(&c->rdt))
		csb_rx_take(dev, c->rx);
}

bool
csb_rx_poll(struct e82545 *dev)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	MPASS(dev->csb.rx_on);
	return (csb_rx_take(dev, dev->csb.rx));
}

/*
 * Ask for a kick at three quarters of the ring: a guest slower than the network
 * then kicks once a ring, and posts most of it before.
 */
void
csb_rx_wait(struct e82545 *dev, uint32_t need)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t at, head, size;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	head = e82545_reg(dev, E82545_RDH);
	size = csb_ring_size(dev, &csb_rx_ring);
	if (c->rx == NULL || head >= size) {
		csb_use(dev, &csb_rx_ring, NULL);
		return;
	}
	at = MAX(size / 4 * 3, need);
	atomic_store_rel_32(&c->rx->host_rxkick_at,
	    htole32((head + at) % size));
	csb_rx_move(c, CSB_RX_WAITS);
	atomic_thread_fence_seq_cst();
	csb_use(dev, &csb_rx_ring, c->rx);
	csb_rx_recheck_later(dev, c->rx);
}

void
csb_rx_notify(struct e82545 *dev, uint32_t causes)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t need, *told;
	bool done = true;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	MPASS(c->rx != NULL);
	/* The guest may have turned the mode on since the batch began. */
	if (!c->rx_on && atomic_load_32(&c->rx->guest_csb_on) == 0) {
		e82545_intr_rx(dev, 0, true, causes);
		return;
	}
	told = &E82545_CSB_HOST_RXTOLD(c->rx);
	atomic_store_rel_32(&c->rx->host_rdh,
	    htole32(e82545_reg(dev, E82545_RDH)));
	atomic_thread_fence_seq_cst();
	need = atomic_load_acq_32(&c->rx->guest_need_rxkick);
	if (!csb_wanted(c->rx, need, atomic_load_32(told)) && !c->rx_unmasked &&
	    atomic_load_acq_32(&c->rx->guest_csb_on) != 0) {
		csb_suppress(dev, (causes & CSB_RX_CAUSES) | E82545_ICR_RXT0);
		csb_rx_recheck_later(dev, c->rx);
		done = false;
		causes &= ~CSB_RX_CAUSES;
	} else
		csb_tell(dev, c->rx, told, need);
	e82545_intr_rx(dev, 0, done, causes);
	atomic_store_rel_32(&c->rx->host_isr,
	    htole32(e82545_reg(dev, E82545_ICR)));
}

/*
 * Handle a write to IMS.  Drivers may mask interrupts from the first one until
 * the ring has been processed, as without the CSB, and need not set
 * guest_need_rxkick again.  So a write to IMS asks for RX interrupts, as does
 * guest_need_rxkick, until causes are read from ICR, or a message of MSI-X
 * clears them (EIAC); and it raises those suppressed since then.  A read of 0
 * is that of a handler called for another device on the same line.
 */
uint32_t
csb_unmask(struct e82545 *dev, uint32_t causes)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t held;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if ((causes & CSB_RX_CAUSES) == 0)
		return (0);
	held = c->held & CSB_RX_CAUSES;
	c->held &= ~CSB_RX_CAUSES;
	c->rx_unmasked = true;
	return (held);
}

void
csb_icr_read(struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	dev->csb.held = 0;
	dev->csb.rx_unmasked = false;
}

void
csb_rx_end(struct e82545 *dev)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	dev->csb.rx = NULL;
	dev->csb.rx_on = false;
}

/* Return whether the guest has left the last frame in the ring. */
static bool
csb_rx_left(const struct e82545 *dev)
{
	uint32_t head, size;

	head = e82545_reg(dev, E82545_RDH);
	size = csb_ring_size(dev, &csb_rx_ring);
	return (head < size && !csb_posted(dev, &csb_rx_ring, head, size,
	    false));
}

/*
 * Return whether the guest polls: it wants no interrupt, and has posted
 * descriptors since one was suppressed.
 */
static bool
csb_rx_polled(const struct e82545_csb *c, const struct paravirt_csb *page)
{
	return (atomic_load_32(&page->guest_csb_on) != 0 &&
	    atomic_load_32(&page->guest_need_rxkick) == 0 &&
	    (c->rx_polled ||
	    le32toh(atomic_load_32(&page->guest_rdt)) != c->rx_recheck_rdt));
}

/* Interrupt a guest that does not poll and has left frames. */
static void
csb_rx_remind(struct e82545 *dev, struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;
	const uint32_t held = c->held & CSB_RX_CAUSES;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (held == 0 || !csb_rx_left(dev))
		return;
	if (csb_rx_polled(c, page)) {
		csb_rx_recheck_later(dev, page);
		return;
	}
	csb_tell(dev, page, &E82545_CSB_HOST_RXTOLD(page),
	    atomic_load_32(&page->guest_need_rxkick));
	e82545_intr_raise(dev, held);
	c->held &= ~CSB_RX_CAUSES;
}

bool
csb_rx_recheck(struct e82545 *dev)
{
	struct paravirt_csb *page;
	bool wake = false;

	e82545_lock(&dev->rx_mtx);
	if (e82545_dma(dev) && csb_enabled(dev, &csb_rx_ring) &&
	    (page = csb_map(dev)) != NULL) {
		(void)csb_rx_mode(dev, page);
		csb_rx_take(dev, page);
		pthread_mutex_lock(&dev->reg_mtx);
		wake = e82545_rx_unstall(dev);
		csb_rx_remind(dev, page);
		pthread_mutex_unlock(&dev->reg_mtx);
	}
	e82545_unlock(&dev->rx_mtx);
	return (wake);
}
