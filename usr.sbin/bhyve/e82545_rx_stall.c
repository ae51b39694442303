/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stalls: the receive ring has too few descriptors for a frame, which waits in
 * the port until the guest has posted them.  e82545_rx.c says what that means.
 *
 * e82545_rx_unstall() and e82545_rx_kicked() need reg_mtx only, all else
 * rx_mtx.
 */

#include "e82545_loop.h"
#include "e82545_rx_impl.h"
#include "e82545_stat.h"

size_t
e82545_rxq_size(void)
{
	return (sizeof(struct e82545_rxq));
}

bool
e82545_rx_unstall(struct e82545 *dev)
{
	struct e82545_rxq *rxq = dev->rxq;

	if (!rx_stalled(dev))
		return (e82545_loop_pending(dev));
	/* If RCTL is another, the receiver may be off. */
	if (e82545_reg(dev, E82545_RCTL) == rxq->need_rctl &&
	    rx_ring_posted(dev, e82545_reg(dev, E82545_RDH),
	    rx_ring_size(dev)) < rxq->need)
		return (false);
	rxq->stalled = false;
	return (true);
}

bool
e82545_rx_kicked(struct e82545 *dev)
{
	if (!rx_stalled(dev))
		return (e82545_loop_pending(dev));
	dev->rxq->stalled = false;
	return (true);
}

/*
 * With the CSB on, see whether the guest has posted more.  It may have taken
 * back some meanwhile: with the mode off, RDT is what was written last.  Those
 * that the batch has used stay used.
 */
void
e82545_rx_poll(struct e82545 *dev, struct rx_batch *b)
{
	if (dev->csb.rx_on && dev->csb.ops->ecb_rx_poll(dev)) {
		b->posted = MAX(b->ndone,
		    rx_ring_posted(dev, b->start, b->size));
		if (b->vnet != NULL)
			dev->csb.ops->ecb_vnet_clear(dev, b->vnet, b->size,
			    b->head, rx_room(b));
	}
}

/*
 * Too few descriptors for the frame: stall, unless enough are posted now.
 * Returns whether it stalls.  Without a ring it always does: only a write to
 * RDBAL, RDBAH, RDLEN or RDH can change that, and those wait for the end of the
 * batch.  reg_mtx held.
 */
bool
e82545_rx_stall(struct e82545 *dev, struct rx_batch *b)
{
	struct e82545_rxq *rxq = dev->rxq;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	rxq->stalled = true;
	rxq->need = b->need;
	rxq->need_rctl = b->rctl;
	/* mutants: without a block it does nothing */
	if (e82545_csb_placed(dev))
		dev->csb.ops->ecb_rx_wait(dev, b->need);
	if (b->ring != NULL && e82545_rx_unstall(dev))
		return (false);
	e82545_stat(dev, E82545_RNBC, 1);
	b->counts[E82545_C_RX_STALL]++;
	E82545_PROBE(dev, RX_STALL, b->need);
	return (true);
}
