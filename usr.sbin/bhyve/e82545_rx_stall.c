/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stalls: the receive ring has too few descriptors for a frame, which waits in
 * the port until the guest has posted them.  e82545_rx.c says what that means.
 * Frames of another queue wait behind it, as in the FIFO of hardware.
 *
 * e82545_rx_unstall() and e82545_rx_kicked() need reg_mtx only, all else
 * rx_mtx.
 */

#include "e82545_loop.h"
#include "e82545_rx_impl.h"
#include "e82545_salvage.h"
#include "e82545_stat.h"
#include "e82545_type.h"

size_t
e82545_rxq_size(void)
{
	return (E82545_QUEUES * sizeof(struct e82545_rxq));
}

void
e82545_rxq_moved(struct e82545 *dev, unsigned int queue)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	dev->rxq[queue].end = RX_END_NONE;
	e82545_stored();
	/* A frame still waits, but no longer for as many descriptors. */
	dev->rx_wait.need = MIN(dev->rx_wait.need, 1);
}

void
e82545_rxq_port(struct e82545 *dev)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	dev->rx_cut_off = 0;
}

/*
 * Take over a queue.  A batch that was writing back is completed by
 * e82545_rx_recover().
 */
static bool
rxq_salvage(struct e82545 *dev, const struct e82545_rxq *from, uint32_t regs)
{
	const bool split = rx_split(dev);
	const uint32_t size = rx_ring_size(dev, regs, split);
	const uint32_t n = from->ndone & ~E82545_FIRST;
	uint32_t head = rx_head(dev, regs, split);

	if (n > 0) {
		if (n > MIN(size, nitems(from->done)) || head >= size)
			return (false);
		head = (head + n) % size;
	} else if (from->end != RX_END_NONE && from->end != head) {
		if (from->end >= size)
			return (false);
		head = from->end;
	}
	e82545_reg_set(dev, E82545_RDH + regs, head << split);
	return (true);
}

bool
e82545_rxq_salvage(struct e82545 *dev, const struct e82545 *old)
{
	unsigned int i;

	for (i = 0; i < dev->type->et_queues; i++)
		if (!rxq_salvage(dev, &old->rxq[i], E82574_QUEUE(i)))
			return (false);
	return (true);
}

/*
 * Return whether the guest has processed `n' descriptors from `head' on, or
 * some: it has cleared DD, whose status byte begins at bit `shift'.  Of the
 * first one alone DD does not tell, but most drivers clear no more than the
 * status, and leave `done'.
 */
static bool
rx_processed(const struct e82545 *dev, uint64_t (*ring)[2], uint32_t size,
    uint32_t head, uint32_t n, uint64_t done, unsigned int shift)
{
	const uint64_t status = (uint64_t)UINT8_MAX << shift;
	const uint64_t dd = (uint64_t)E82545_RXD_DD << shift;
	uint64_t upper;
	uint32_t i;

	for (i = 1; i < n; i++) {
		upper = le64toh(atomic_load_64(rx_desc(dev, ring,
		    (head + i) % size) + 1));
		if ((upper & dd) == 0)
			return (true);
	}
	upper = le64toh(atomic_load_64(rx_desc(dev, ring, head) + 1));
	return ((upper & dd) != 0 ||
	    (n == 1 && ((upper ^ le64toh(done)) & ~status) == 0));
}

bool
e82545_rx_recover(struct e82545 *dev, unsigned int queue,
    struct e82545_rxq *queues, uint32_t rdh)
{
	struct e82545_rxq *old = &queues[queue];
	const uint32_t regs = E82574_QUEUE(queue);
	const bool split = rx_split(dev);
	const uint32_t head = rdh >> split;
	const uint32_t size = rx_ring_size(dev, regs, split);
	const uint32_t left = atomic_load_32(&old->ndone);
	const uint32_t n = left & ~E82545_FIRST;
	const bool extended = rx_extended(dev);
	uint64_t (*ring)[2];

	if (n == 0)
		return (true);
	if (n > MIN(size, nitems(old->done)) || head >= size)
		return (false);
	ring = rx_ring_map(dev, regs);
	if (ring == NULL)
		return (true);
	atomic_store_32(&old->end, (head + n) % size);
	e82545_stored();
	if (left != n) {
		if (rx_processed(dev, ring, size, head, n, extended ?
		    e82574_rx_status(dev, old, 0) : old->done[0],
		    extended ? 0 : 32))
			return (true);
	} else if (extended)
		e82574_rx_store(dev, ring, size, head, old, n);
	else
		rx_store(ring, size, head, old->done, n);
	atomic_store_32(&old->ndone, n | E82545_FIRST);
	e82545_stored();
	if (extended)
		e82574_rx_store_one(dev, ring, head, old, 0);
	else
		atomic_store_rel_64(&ring[head][1], old->done[0]);
	e82545_stored();
	atomic_store_32(&old->ndone, 0);
	return (true);
}

bool
e82545_rx_unstall(struct e82545 *dev)
{
	const bool split = rx_split(dev);
	struct e82545_rx_wait *w = &dev->rx_wait;

	if (!rx_stalled(dev))
		return (e82545_loop_pending(dev));
	/* If RCTL is another, the receiver may be off. */
	if (e82545_reg(dev, E82545_RCTL) == w->rctl &&
	    rx_ring_posted(dev, w->regs, rx_head(dev, w->regs, split),
	    rx_ring_size(dev, w->regs, split), split) < w->need)
		return (false);
	w->stalled = false;
	return (true);
}

bool
e82545_rx_kicked(struct e82545 *dev)
{
	if (!rx_stalled(dev))
		return (e82545_loop_pending(dev));
	dev->rx_wait.stalled = false;
	return (true);
}

/*
 * See, with the CSB on, whether the guest has posted more.  The guest may have
 * taken back some meanwhile: with the mode off, RDT is what was written last.
 * Descriptors that the batch has used stay used.
 */
void
e82545_rx_poll(struct e82545 *dev, struct rx_batch *b)
{
	if (dev->csb.rx_on && b->regs == 0 && dev->csb.ops->ecb_rx_poll(dev)) {
		b->posted = MAX(b->ndone, rx_ring_posted(dev, b->regs, b->start,
		    b->size, rx_split(dev)));
		if (b->vnet != NULL)
			dev->csb.ops->ecb_vnet_clear(dev, b->vnet, b->size,
			    b->head, rx_room(b));
	}
}

/*
 * Stall, as there are too few descriptors for the frame, unless enough are
 * posted now.  Returns whether it stalls.  Without a ring it always does: only
 * a write to RDBAL, RDBAH, RDLEN or RDH can change that, and those wait for the
 * end of the batch.  reg_mtx held.
 */
bool
e82545_rx_stall(struct e82545 *dev, struct rx_batch *b)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	dev->rx_wait = (struct e82545_rx_wait){ .stalled = true,
	    .need = b->need, .rctl = b->rctl, .regs = b->regs };
	if (e82545_csb_placed(dev) && b->regs == 0)
		dev->csb.ops->ecb_rx_wait(dev, b->need);
	if (b->ring != NULL && e82545_rx_unstall(dev))
		return (false);
	e82545_stat(dev, E82545_RNBC, 1);
	b->counts[E82545_C_RX_STALL]++;
	E82545_PROBE(dev, RX_STALL, b->need);
	return (true);
}
