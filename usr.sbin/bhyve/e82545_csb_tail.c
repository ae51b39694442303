/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How far the guest has posted descriptors: by TDT and guest_tdt, or by RDT and
 * guest_rdt.
 *
 * A guest posts by the CSB while the mode is on, and by the register while it
 * is off.  Drivers that exist read the mode once for many descriptors, change
 * it at any time, and write the register as a kick, too, with an index that may
 * be behind the one in the CSB; a host that posts the guest's writes delivers
 * them later.  So in either mode both indices are used at the begin of a batch,
 * together under reg_mtx, and the farther counts:
 *
 *	the register's	Its write is set aside until then.  It may be behind
 *			the head.
 *	the CSB's	It is taken: the host replaces it by "none", so whatever
 *			it finds there was stored since.
 *
 * An index behind the head, of an earlier lap, would seem to be almost a ring
 * ahead.  So it counts only if DD is clear in the descriptor before it: before
 * the guest stores an index it clears DD there.  On transmit DD tells this only
 * if RS was set.  A driver that does not set RS is served as well while it does
 * not change the mode: TDT with the mode off, and guest_tdt with the mode on,
 * are never old.
 *
 * When a ring is started, by a reset or by a write to TDH or RDH, drivers leave
 * the CSB's index as it is.  What guest_rdt is then does not count (rx_old),
 * nor does guest_tdt until a kick finds the mode on (CSB_TX_STARTED).  The next
 * write to the register is stored as it stands.
 */

#include <sys/endian.h>
#include <net/paravirt.h>

#include "e82545_csb_impl.h"
#include "e82545_probes.h"

/* What an index needs to count. */
enum csb_proof { CSB_NONE, CSB_DD, CSB_DD_RS };

static uint32_t
csb_tx_taken(struct e82545_csb *c __unused, uint32_t value)
{
	return (value);
}

const struct csb_ring csb_tx_ring = {
	E82545_TDBAL, E82545_TDH, E82545_TDT, E82545_TDLEN, E82545_TCTL,
	E82545_C_TX_KICK_SAVED, csb_tx_taken
};

const struct csb_ring csb_rx_ring = {
	E82545_RDBAL, E82545_RDH, E82545_RDT, E82545_RDLEN, E82545_RCTL,
	E82545_C_RX_KICK_SAVED, csb_rx_taken
};

/*
 * Return whether the descriptor before `tail' is posted: all kinds have RS and
 * DD in the same place.
 */
bool
csb_posted(const struct e82545 *dev, const struct csb_ring *r, uint32_t tail,
    uint32_t size, bool rs)
{
	const struct e82545_desc *desc;
	uint64_t base, rest;

	base = (uint64_t)e82545_reg(dev, r->base + E82545_RING_BAH) << 32 |
	    (e82545_reg(dev, r->base) & E82545_DBAL_MASK);
	/* With the bus off, nothing tells. */
	if (!e82545_dma(dev))
		return (true);
	desc = e82545_map(dev, base + (tail == 0 ? size - 1 : tail - 1) *
	    sizeof(*desc), sizeof(*desc));
	/* If it is NULL, no batch uses the ring. */
	if (desc == NULL)
		return (true);
	rest = le64toh(atomic_load_acq_64(&desc->rest));
	return ((rest & E82545_REST_STATUS(E82545_TXD_DD)) == 0 &&
	    (!rs || (rest & E82545_TXD_RS) != 0));
}

/* Return whether index `value' is farther from the head than the register's. */
static bool
csb_farther(const struct e82545 *dev, const struct csb_ring *r, uint32_t value,
    uint32_t size)
{
	uint32_t head, tail;

	head = e82545_reg(dev, r->head);
	tail = e82545_reg(dev, r->tail);
	return (head < size && (tail >= size ||
	    (value + size - head) % size > (tail + size - head) % size));
}

/* Set the register to an index if that counts.  Returns whether it does. */
static bool
csb_advance(struct e82545 *dev, const struct csb_ring *r, uint32_t value,
    enum csb_proof proof)
{
	uint32_t size;

	size = csb_ring_size(dev, r);
	if (value >= size) {
		csb_bad(dev, value);
		return (false);
	}
	if (!csb_farther(dev, r, value, size))
		return (false);
	if (proof != CSB_NONE &&
	    !csb_posted(dev, r, value, size, proof == CSB_DD_RS))
		return (false);
	e82545_reg_set(dev, r->tail, value);
	return (true);
}

/* Count an index that came without a kick. */
static void
csb_kick_saved(struct e82545 *dev, const struct csb_ring *r, uint32_t tail)
{
	e82545_count(dev, r->saved, 1);
	if (r == &csb_tx_ring)
		E82545_PROBE(dev, TX_KICK_SAVED, tail);
	else
		E82545_PROBE(dev, RX_KICK_SAVED, tail);
}

/*
 * Take the index that the guest has stored, or "none".  If it stores another
 * one meanwhile, that is left for the next time.
 */
static uint32_t
csb_take(struct e82545_csb_tail *t, uint32_t *index)
{
	uint32_t value;

	value = atomic_load_acq_32(index);
	if (value != htole32(NET_PARAVIRT_NONE)) {
		t->taken = le32toh(value);
		e82545_stored();
		atomic_cmpset_acq_32(index, value, htole32(NET_PARAVIRT_NONE));
	}
	return (le32toh(value));
}

bool
csb_use(struct e82545 *dev, const struct csb_ring *r, struct paravirt_csb *page)
{
	struct e82545_csb_tail *t = csb_tail(dev, r);
	const bool tx = r == &csb_tx_ring, on = tx && dev->csb.tx_on;
	bool kicked = csb_deferred(t), moved = false;
	uint32_t value = t->deferred;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	/* With the mode on, the value of a kick is ignored if it is invalid. */
	if (kicked && (!on || value < csb_ring_size(dev, r)))
		moved = csb_advance(dev, r, value, on ? CSB_DD_RS : CSB_DD);
	atomic_store_32(&t->deferred, NET_PARAVIRT_NONE);
	if (page == NULL || (tx && !csb_tx_counts(&dev->csb)))
		return (moved);
	value = r->taken(&dev->csb, csb_take(t, csb_index(page, r)));
	if (value != NET_PARAVIRT_NONE &&
	    csb_advance(dev, r, value, on ? CSB_NONE : CSB_DD)) {
		moved = true;
		t->starts = false;
		if (!kicked)
			csb_kick_saved(dev, r, value);
	}
	e82545_stored();
	t->taken = NET_PARAVIRT_NONE;
	return (moved);
}

void
csb_use_taken(struct e82545 *dev, const struct csb_ring *r, uint32_t value,
    bool on)
{
	if (value != NET_PARAVIRT_NONE &&
	    csb_advance(dev, r, value, on ? CSB_NONE : CSB_DD))
		csb_tail(dev, r)->starts = false;
}

/*
 * Set an index aside.  The first value may be written again, late, when the
 * head has passed it.
 */
bool
csb_defer(struct e82545 *dev, uint32_t off, uint32_t value)
{
	const struct csb_ring *r =
	    off == csb_tx_ring.tail ? &csb_tx_ring : &csb_rx_ring;
	struct e82545_csb_tail *t = csb_tail(dev, r);
	bool defer = csb_enabled(dev, r) && !t->starts;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	t->starts = false;
	if (defer && r == &csb_tx_ring && value == t->first)
		return (true);
	t->first = defer ? NET_PARAVIRT_NONE : value;
	atomic_store_32(&t->deferred, defer ? value : NET_PARAVIRT_NONE);
	return (defer);
}

void
csb_restart(struct e82545 *dev, uint32_t off)
{
	const struct csb_ring *r =
	    off == csb_tx_ring.head ? &csb_tx_ring : &csb_rx_ring;
	struct e82545_csb_tail *t = csb_tail(dev, r);
	struct paravirt_csb *page = e82545_dma(dev) ? csb_map(dev) : NULL;

	if (r == &csb_tx_ring)
		csb_tx_start(&dev->csb, page, false);
	else {
		csb_rx_forget(&dev->csb, page);
		dev->csb.vnet_clean = UINT32_MAX;
	}
	pthread_mutex_lock(&dev->reg_mtx);
	if (csb_deferred(t))
		e82545_reg_set(dev, r->tail, t->deferred);
	atomic_store_32(&t->deferred, NET_PARAVIRT_NONE);
	t->starts = true;
	pthread_mutex_unlock(&dev->reg_mtx);
}
