/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The communication status block (CSB), host side: paravirt_csb(9).
 *
 * The CSB is a page of guest memory in which guest and host publish their
 * progress.  A side that polls it needs no kick: no register write, no
 * interrupt.  Two rules keep kicks from getting lost:
 *
 *	before leaving out a kick:	publish, full barrier, look whether the
 *					other side wants one
 *	before going to sleep:		ask for a kick, full barrier, look again
 *
 * Of the four kicks, the host sends two and waits for two:
 *
 *	tx_notify, rx_notify  A batch is complete.  Interrupt causes that only
 *			announce data are suppressed unless the guest wants
 *			them; the others go through moderation as usual.  The
 *			guest may want them by its flags, or on receive by a
 *			write to IMS: e82545_csb_unmask().
 *	TDT		The guest has frames.  A write to TDT wakes the transmit
 *			side, which then polls guest_tdt, batch after batch:
 *
 *	    asleep ---- TDT written, mode on: host_need_txkick = 0 ---> awake
 *	      ^							       |
 *	      +-- host_txcycles_lim empty rounds, or mode off, or <----+
 *		  TCTL.EN off: host_need_txkick = 1, barrier,
 *		  guest_tdt unchanged
 *
 *	RDT		The guest has buffers.  The receive side reads guest_rdt
 *			when RDT is reached.  If guest_rdt is reached, too, it
 *			sets host_rxkick_at, barrier, and reads guest_rdt again
 *			before it stalls.
 *
 * A driver that breaks these rules may leave frames waiting for ever.  FreeBSD
 * 10's lem(4) has no barriers, and may not ask for interrupts again after one
 * that found no frame.  So CSB_LOOK_NS after the model has gone to sleep,
 * stalled or suppressed an interrupt, it looks once more, on the host's timer:
 * e82545_csb_look_tx(), e82545_csb_look_rx().
 *
 * The rest of the model only knows TDT and RDT; this file sets them from the
 * CSB.  An index in the CSB counts if it is farther from the head than the
 * register's, because guests store it before they write the register; so the
 * registers are right when the mode goes off.
 *
 * With the mode on, a write to TDT is only a kick.  Its index may be behind the
 * head: a host that posts the guest's writes delivers them after the CSB's
 * newer index has been used.  It is kept aside (tdt) until the CSB is read, and
 * counts only if the CSB's index is invalid or the mode is off again.  Until
 * the transmit side has seen the mode off itself, TDT is kept aside, too, so
 * that the head does not pass an index in the CSB that was not looked at.
 *
 * Drivers that exist read the mode once for many buffers, and at the end write
 * RDT, or store guest_rdt, for the mode that was.  So in either mode both are
 * looked at, and the farther counts.  A write to RDT is kept aside (rdt) until
 * the next batch, or until the ring runs dry; only the first after a start is
 * stored as it stands (rx_starts).  guest_rdt is taken: the host replaces it by
 * "none", so whatever it finds there is new, although drivers leave it as it is
 * while the mode is off.  They leave it, too, when they start the ring: what it
 * is when RDH is written or at a reset does not count (rx_old).
 *
 * An index of an earlier lap, which the head has passed, would seem to be
 * almost a ring ahead.  So where it may be old it counts only if DD is clear in
 * the descriptor before it: csb_posted().
 *
 * Every batch reads guest_csb_on.  The host keeps its part of the block up to
 * date while that is 0, so that a guest that turns the mode on finds out
 * whether the host sleeps.
 *
 * tx_mtx protects the transmit members, rx_mtx the receive members, reg_mtx
 * what registers and the timer use; the block's address changes with all of
 * them held.  It is mapped again for each batch.
 * All fields are little endian; each is loaded once and then checked.  Loads
 * acquire and stores release, so a side that sees an index sees the descriptors
 * before it.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <net/paravirt.h>

#include "e82545_impl.h"
#include "e82545_probes.h"
#include "e82545_snap.h"

/* The most empty rounds; limits host_txcycles_lim. */
#define	CSB_ROUNDS_MAX	65536

/* When to look again after a kick was left out or asked for. */
#define	CSB_LOOK_NS	10000000

/* Causes that only announce data. */
#define	TX_DATA_CAUSES	(E82545_ICR_TXDW | E82545_ICR_TXQE)
#define	RX_DATA_CAUSES	(E82545_ICR_RXT0 | E82545_ICR_RXDMT0)

/* An invalid address or index. */
static void
csb_bad(struct e82545 *dev, uint32_t what)
{
	e82545_count_any(dev, E82545_C_CSB_BAD);
	e82545_probe_bad(dev, E82545_C_CSB_BAD, what);
}

static struct paravirt_csb *
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

static bool
csb_is_on(struct e82545 *dev, const struct paravirt_csb *page)
{
	bool on;

	on = le32toh(atomic_load_acq_32(&page->guest_csb_on)) != 0;
	csb_mode(dev, on);
	return (on);
}

/*
 * Tail registers.
 */

static const struct csb_ring {
	uint32_t		base, head, tail, len;	/* registers */
	enum e82545_counter	saved;
} csb_tx_ring = {
	E82545_TDBAL, E82545_TDH, E82545_TDT, E82545_TDLEN,
	E82545_C_TX_KICK_SAVED
}, csb_rx_ring = {
	E82545_RDBAL, E82545_RDH, E82545_RDT, E82545_RDLEN,
	E82545_C_RX_KICK_SAVED
};

static bool
csb_tx_enabled(const struct e82545 *dev)
{
	return ((e82545_reg(dev, E82545_TCTL) & E82545_TCTL_EN) != 0);
}

static bool
csb_rx_enabled(const struct e82545 *dev)
{
	return ((e82545_reg(dev, E82545_RCTL) & E82545_RCTL_EN) != 0);
}

static uint32_t
csb_ring_size(const struct e82545 *dev, const struct csb_ring *r)
{
	return ((e82545_reg(dev, r->len) & E82545_DLEN_MASK) /
	    sizeof(union e82545_txd));
}

/*
 * Whether the guest has posted the last descriptor before index `tail', which
 * is beyond the register's: before it stores the index, it clears DD there.  If
 * DD is set, the guest has not taken that frame or posted another one, and the
 * index is of an earlier lap.  DD has the same place in all descriptors.
 */
static bool
csb_posted(const struct e82545 *dev, const struct csb_ring *r, uint32_t tail,
    uint32_t size)
{
	const struct e82545_rxd *desc;
	uint64_t base;

	base = (uint64_t)e82545_reg(dev, r->base + E82545_RING_BAH) << 32 |
	    (e82545_reg(dev, r->base) & E82545_DBAL_MASK);
	if (!e82545_dma(dev))
		return (true);
	desc = e82545_map(dev, base + (tail == 0 ? size - 1 : tail - 1) *
	    sizeof(*desc), sizeof(*desc));
	/* If it is NULL, no batch uses the ring. */
	return (desc == NULL ||
	    (atomic_load_acq_8(&desc->status) & E82545_RXD_DD) == 0);
}

/* Whether an index is farther from the head than the tail. */
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

/*
 * Set the tail to the guest's if that is farther: true.  With the mode on,
 * guest_tdt is never old.  reg_mtx and the ring's lock held.
 */
static bool
csb_advance(struct e82545 *dev, const struct csb_ring *r, uint32_t value)
{
	uint32_t size;

	size = csb_ring_size(dev, r);
	if (value >= size) {
		csb_bad(dev, value);
		return (false);
	}
	if (!csb_farther(dev, r, value, size))
		return (false);
	if ((r == &csb_rx_ring || !dev->csb.tx_on) &&
	    !csb_posted(dev, r, value, size))
		return (false);
	e82545_reg_set(dev, r->tail, value);
	return (true);
}

/* Count a tail that came without a kick. */
static void
csb_kick_saved(struct e82545 *dev, const struct csb_ring *r, uint32_t tail)
{
	e82545_count(dev, r->saved, 1);
	if (r == &csb_tx_ring)
		E82545_PROBE(dev, TX_KICK_SAVED, tail);
	else
		E82545_PROBE(dev, RX_KICK_SAVED, tail);
}

/* Whether a tail was kept aside.  Any thread. */
static bool
csb_kept(const uint32_t *kept)
{
	return (atomic_load_32(kept) != NET_PARAVIRT_NONE);
}

/*
 * Take what the guest has stored in guest_rdt, or "none".  If it stores another
 * index meanwhile, that is left for the next time.
 */
static uint32_t
csb_rdt_take(struct e82545_csb *c, struct paravirt_csb *page)
{
	uint32_t value;

	value = atomic_load_acq_32(&page->guest_rdt);
	atomic_cmpset_acq_32(&page->guest_rdt, value,
	    htole32(NET_PARAVIRT_NONE));
	value = le32toh(value);
	if (value == c->rx_old)
		value = NET_PARAVIRT_NONE;
	c->rx_old = NET_PARAVIRT_NONE;
	if (value == c->rx_look_rdt)
		c->rx_look_rdt = NET_PARAVIRT_NONE;
	else if (value != NET_PARAVIRT_NONE)
		c->rx_polled = true;
	return (value);
}

/*
 * TDT: set it to guest_tdt of `page' (NULL: none).  One kept aside counts if
 * the mode is off, for which it may be the newer one, or the other is invalid;
 * the head could pass it later.  tx_mtx and reg_mtx held.
 */
static void
csb_use_tdt(struct e82545 *dev, const struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t value = NET_PARAVIRT_NONE;
	bool kicked = csb_kept(&c->tdt), on = false;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (page != NULL) {
		on = atomic_load_acq_32(&page->guest_csb_on) != 0;
		value = le32toh(atomic_load_acq_32(&page->guest_tdt));
	}
	if (kicked) {
		if (!on || value >= csb_ring_size(dev, &csb_tx_ring))
			csb_advance(dev, &csb_tx_ring, c->tdt);
		atomic_store_32(&c->tdt, NET_PARAVIRT_NONE);
	}
	if (page == NULL)
		return;
	c->tx_seen = value;
	if (csb_advance(dev, &csb_tx_ring, value) && !kicked)
		csb_kick_saved(dev, &csb_tx_ring, value);
}

/*
 * RDT: set it to the farther of guest_rdt, which is taken from `page' (NULL:
 * none), and the one kept aside.  That comes first: an older guest_rdt must not
 * be left for later.  Returns whether RDT has moved.  rx_mtx and reg_mtx held.
 */
static bool
csb_use_rdt(struct e82545 *dev, struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t value = NET_PARAVIRT_NONE;
	bool kicked = csb_kept(&c->rdt), moved = false;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (kicked) {
		moved = csb_advance(dev, &csb_rx_ring, c->rdt);
		atomic_store_32(&c->rdt, NET_PARAVIRT_NONE);
	}
	if (page != NULL)
		value = csb_rdt_take(c, page);
	if (value == NET_PARAVIRT_NONE)
		return (moved);
	if (csb_advance(dev, &csb_rx_ring, value)) {
		moved = true;
		c->rx_starts = false;
		if (!kicked)
			csb_kick_saved(dev, &csb_rx_ring, value);
	}
	return (moved);
}

/*
 * A tail register is written.  Returns true if the index is kept aside; false
 * if it must be stored, and then discards one kept before.
 */
static bool
csb_keep(uint32_t *kept, bool on, uint32_t value)
{
	atomic_store_32(kept, on ? value : NET_PARAVIRT_NONE);
	return (on);
}

bool
e82545_csb_keep_tdt(struct e82545 *dev, uint32_t value)
{
	struct e82545_csb *c = &dev->csb;

	return (csb_keep(&c->tdt, csb_tx_enabled(dev) &&
	    atomic_load_32(&c->tx_last_on) != 0, value));
}

/* The head may have passed RDT, unless that starts the ring. */
bool
e82545_csb_keep_rdt(struct e82545 *dev, uint32_t value)
{
	struct e82545_csb *c = &dev->csb;
	bool starts = c->rx_starts;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	c->rx_starts = false;
	return (csb_keep(&c->rdt, csb_rx_enabled(dev) && !starts, value));
}

/* Look again later.  Returns false if that was decided before. */
static bool
csb_look_later(struct e82545 *dev, uint64_t *look_ns)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (*look_ns != 0)
		return (false);
	*look_ns = dev->ops->eo_now(dev->arg) + CSB_LOOK_NS;
	e82545_intr_arm(dev, *look_ns);
	return (true);
}

/* As csb_look_later(), for the receive side. */
static void
csb_rx_look_later(struct e82545 *dev, const struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;

	if (!csb_look_later(dev, &c->rx_look_ns))
		return;
	c->rx_look_rdt = le32toh(atomic_load_32(&page->guest_rdt));
	c->rx_polled = false;
}

/* Suppress causes, because the guest polls. */
static void
csb_suppress(struct e82545 *dev, uint32_t causes)
{
	if (causes == 0)
		return;
	dev->csb.held |= causes;
	e82545_count(dev, E82545_C_INTR_SAVED, 1);
	E82545_PROBE(dev, INTR_SAVED, causes);
}

/*
 * Transmit.
 */

/*
 * Whether guest_tdt tells of frames that the host has not seen.  With the mode
 * off TDT is stored and guest_tdt is not looked at, and after a lap it may have
 * come round to what was seen; or the guest has not stored it since.
 */
static bool
csb_tx_new(const struct e82545 *dev, const struct paravirt_csb *page)
{
	const struct e82545_csb *c = &dev->csb;
	uint32_t size;

	if (le32toh(atomic_load_32(&page->guest_tdt)) != c->tx_seen)
		return (true);
	if (c->tx_seen == e82545_reg(dev, E82545_TDT))
		return (false);
	/* Once more, for the descriptor before it. */
	if (le32toh(atomic_load_acq_32(&page->guest_tdt)) != c->tx_seen)
		return (true);
	size = csb_ring_size(dev, &csb_tx_ring);
	return (c->tx_seen < size &&
	    atomic_load_32(&page->guest_csb_on) != 0 &&
	    csb_farther(dev, &csb_tx_ring, c->tx_seen, size) &&
	    csb_posted(dev, &csb_tx_ring, c->tx_seen, size));
}

void
e82545_csb_tx_begin(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	bool enabled, kicked;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	MPASS(e82545_dma(dev) && c->tx == NULL);
	c->tx_on = false;
	kicked = atomic_load_32(&c->kicked) != 0 &&
	    atomic_cmpset_acq_32(&c->kicked, 1, 0) != 0;
	enabled = csb_tx_enabled(dev);
	/* With the ring off, the guest may have reused its page. */
	if (enabled || c->tx_awake || kicked)
		c->tx = csb_map(dev);
	if (c->tx != NULL)
		c->tx_on = csb_is_on(dev, c->tx) && enabled;
	if (c->tx != NULL)
		atomic_store_32(&c->tx_last_on, c->tx_on);
	if (c->tx != NULL && c->tx_awake && c->tx_seen == NET_PARAVIRT_NONE) {
		/* Since before a reset with the bus off: guest_tdt is old. */
		atomic_store_32(&c->tx->host_need_txkick, htole32(1));
		c->tx_awake = false;
	}
	if (kicked && csb_kept(&c->tdt)) {
		pthread_mutex_lock(&dev->reg_mtx);
		csb_use_tdt(dev, c->tx_on ? c->tx : NULL);
		pthread_mutex_unlock(&dev->reg_mtx);
	}
	if (c->tx == NULL) {
		c->tx_awake = false;
		return;
	}
	if (kicked && !c->tx_awake) {
		/* Guests may clear the flag themselves when they kick. */
		atomic_store_rel_32(&c->tx->host_need_txkick,
		    htole32(!c->tx_on));
		c->tx_awake = c->tx_on;
		c->tx_rounds = 0;
	}
	/* The mode may have gone off with frames pending and no kick. */
	if (c->tx_awake && enabled && csb_tx_new(dev, c->tx)) {
		pthread_mutex_lock(&dev->reg_mtx);
		csb_use_tdt(dev, c->tx);
		pthread_mutex_unlock(&dev->reg_mtx);
	}
}

/* Returns false if frames are pending after all. */
static bool
csb_tx_sleep(struct e82545 *dev, struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;

	atomic_store_rel_32(&page->host_need_txkick, htole32(1));
	atomic_thread_fence_seq_cst();
	/* A guest that turns the mode off may have seen it on. */
	if (csb_tx_enabled(dev) && csb_tx_new(dev, page)) {
		atomic_store_rel_32(&page->host_need_txkick, htole32(0));
		c->tx_rounds = 0;
		return (false);
	}
	c->tx_awake = false;
	pthread_mutex_lock(&dev->reg_mtx);
	csb_look_later(dev, &c->tx_look_ns);
	pthread_mutex_unlock(&dev->reg_mtx);
	return (true);
}

enum e82545_tx_state
e82545_csb_tx_end(struct e82545 *dev, bool idle, bool more)
{
	struct e82545_csb *c = &dev->csb;
	struct paravirt_csb *page = c->tx;
	uint32_t limit;
	bool on = c->tx_on;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	c->tx = NULL;
	c->tx_on = false;
	if (c->tx_awake && on) {
		if (!idle) {
			c->tx_rounds = 0;
			return (E82545_TX_MORE);
		}
		limit = le32toh(atomic_load_acq_32(&page->host_txcycles_lim));
		if (c->tx_rounds < MIN(limit, CSB_ROUNDS_MAX)) {
			c->tx_rounds++;
			atomic_store_rel_32(&page->host_txcycles,
			    htole32(c->tx_rounds));
			return (atomic_load_acq_32(&page->guest_need_rxkick) !=
			    0 ? E82545_TX_YIELD : E82545_TX_POLL);
		}
	}
	if (c->tx_awake && !csb_tx_sleep(dev, page))
		more = true;
	return (more ? E82545_TX_MORE : E82545_TX_IDLE);
}

/*
 * The index of guest_txkick_at.  A driver that does not use it may leave it 0,
 * as it found the page.
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

/* Whether a head that moved over `ndescs' from `start' passed index `at'. */
static bool
csb_passed(uint32_t at, uint32_t start, uint32_t ndescs, uint32_t size)
{
	return (at < size && (at + size - start - 1) % size < ndescs);
}

void
e82545_csb_tx_notify(struct e82545 *dev, uint32_t start, uint32_t ndescs,
    uint32_t size, bool done, bool delayed, uint32_t causes)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t at;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	MPASS(c->tx_on);
	atomic_store_rel_32(&c->tx->host_tdh,
	    htole32(e82545_reg(dev, E82545_TDH)));
	atomic_thread_fence_seq_cst();
	at = csb_txkick_at(c);
	if (at != NET_PARAVIRT_NONE && at >= size)
		csb_bad(dev, at);
	if (atomic_load_acq_32(&c->tx->guest_need_txkick) != 0 ||
	    csb_passed(at, start, ndescs, size)) {
		/* The guest waits for descriptors, with or without RS. */
		delayed = delayed && done;
		done = ndescs > 0;
	} else if (atomic_load_acq_32(&c->tx->guest_csb_on) != 0) {
		csb_suppress(dev, (causes & TX_DATA_CAUSES) |
		    (done ? E82545_ICR_TXDW : 0));
		csb_look_later(dev, &c->tx_look_ns);
		done = false;
		causes &= ~TX_DATA_CAUSES;
	}
	e82545_intr_tx(dev, done, delayed, causes);
	atomic_store_rel_32(&c->tx->host_isr,
	    htole32(e82545_reg(dev, E82545_ICR)));
}

/*
 * Receive.
 */

/* Look whether the guest has posted descriptors.  Returns whether it has. */
static bool
csb_rx_look(struct e82545 *dev, struct paravirt_csb *page)
{
	bool moved;

	if (atomic_load_32(&page->guest_rdt) == htole32(NET_PARAVIRT_NONE) &&
	    !csb_kept(&dev->csb.rdt))
		return (false);
	pthread_mutex_lock(&dev->reg_mtx);
	moved = csb_use_rdt(dev, page);
	pthread_mutex_unlock(&dev->reg_mtx);
	return (moved);
}

/*
 * The ring starts: guest_rdt is old, unless it changes.  If the page cannot be
 * read (NULL), what the next batch finds there is.
 */
static void
csb_rx_forget(struct e82545_csb *c, const struct paravirt_csb *page)
{
	c->rx_unread = page == NULL;
	if (page != NULL)
		c->rx_old = le32toh(atomic_load_32(&page->guest_rdt));
}

/* Read the mode.  Returns whether guest_rdt must be looked at. */
static bool
csb_rx_mode(struct e82545 *dev, struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;
	bool on, was = c->rx_last_on;

	if (c->rx_unread)
		csb_rx_forget(c, page);
	on = csb_is_on(dev, page);
	c->rx_last_on = on;
	return ((on && !was) || c->rx_old != NET_PARAVIRT_NONE);
}

void
e82545_csb_rx_begin(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	bool look;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	MPASS(e82545_dma(dev) && c->rx == NULL);
	c->rx_on = false;
	if (!csb_rx_enabled(dev))
		return;
	c->rx = csb_map(dev);
	if (c->rx == NULL) {
		if (csb_kept(&c->rdt)) {
			pthread_mutex_lock(&dev->reg_mtx);
			csb_use_rdt(dev, NULL);
			pthread_mutex_unlock(&dev->reg_mtx);
		}
		return;
	}
	look = csb_rx_mode(dev, c->rx) || csb_kept(&c->rdt);
	c->rx_on = c->rx_last_on;
	if (c->rx_armed) {
		atomic_store_rel_32(&c->rx->host_rxkick_at,
		    htole32(NET_PARAVIRT_NONE));
		c->rx_armed = false;
		look = true;
	}
	if (look || !c->rx_on)
		csb_rx_look(dev, c->rx);
}

bool
e82545_csb_rx_tail(struct e82545 *dev)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	MPASS(dev->csb.rx_on);
	return (csb_rx_look(dev, dev->csb.rx));
}

/*
 * Three quarters of the ring: a guest slower than the network then kicks once a
 * ring, and posts most of it before.
 */
void
e82545_csb_rx_wait(struct e82545 *dev, uint32_t need)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t at, head, size;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	head = e82545_reg(dev, E82545_RDH);
	size = csb_ring_size(dev, &csb_rx_ring);
	if (c->rx == NULL || head >= size) {
		csb_use_rdt(dev, NULL);
		return;
	}
	at = MAX(size / 4 * 3, need);
	atomic_store_rel_32(&c->rx->host_rxkick_at,
	    htole32((head + at) % size));
	c->rx_armed = true;
	atomic_thread_fence_seq_cst();
	csb_use_rdt(dev, c->rx);
	csb_rx_look_later(dev, c->rx);
}

void
e82545_csb_rx_notify(struct e82545 *dev, uint32_t causes)
{
	struct e82545_csb *c = &dev->csb;
	bool done = true;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	MPASS(c->rx_on);
	atomic_store_rel_32(&c->rx->host_rdh,
	    htole32(e82545_reg(dev, E82545_RDH)));
	atomic_thread_fence_seq_cst();
	if (atomic_load_acq_32(&c->rx->guest_need_rxkick) == 0 &&
	    !c->rx_unmasked &&
	    atomic_load_acq_32(&c->rx->guest_csb_on) != 0) {
		csb_suppress(dev, (causes & RX_DATA_CAUSES) | E82545_ICR_RXT0);
		csb_rx_look_later(dev, c->rx);
		done = false;
		causes &= ~RX_DATA_CAUSES;
	}
	e82545_intr_rx(dev, done, causes);
	atomic_store_rel_32(&c->rx->host_isr,
	    htole32(e82545_reg(dev, E82545_ICR)));
}

/*
 * Drivers may mask interrupts from the first one until the ring has been
 * processed, as without the CSB, and need not set guest_need_rxkick again.  So
 * a write to IMS asks for RX interrupts, as does guest_need_rxkick, until
 * causes are read from ICR; and it raises those suppressed since then.  A read
 * of 0 is that of a handler called for another device on the same line.
 */
uint32_t
e82545_csb_unmask(struct e82545 *dev, uint32_t causes)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t held;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if ((causes & RX_DATA_CAUSES) == 0)
		return (0);
	held = c->held & RX_DATA_CAUSES;
	c->held &= ~RX_DATA_CAUSES;
	c->rx_unmasked = true;
	return (held);
}

void
e82545_csb_icr_read(struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	dev->csb.held = 0;
	dev->csb.rx_unmasked = false;
}

void
e82545_csb_rx_restart(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	csb_rx_forget(c, e82545_dma(dev) ? csb_map(dev) : NULL);
	pthread_mutex_lock(&dev->reg_mtx);
	if (csb_kept(&c->rdt))
		e82545_reg_set(dev, E82545_RDT, c->rdt);
	atomic_store_32(&c->rdt, NET_PARAVIRT_NONE);
	c->rx_starts = true;
	pthread_mutex_unlock(&dev->reg_mtx);
}

void
e82545_csb_rx_end(struct e82545 *dev)
{
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	dev->csb.rx = NULL;
	dev->csb.rx_on = false;
}

/*
 * Looking again: what the guest stored before it read the block is visible now,
 * with or without a barrier.
 */

void
e82545_csb_arm(struct e82545 *dev)
{
	const struct e82545_csb *c = &dev->csb;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (c->tx_look_ns != 0)
		e82545_intr_arm(dev, c->tx_look_ns);
	if (c->rx_look_ns != 0)
		e82545_intr_arm(dev, c->rx_look_ns);
}

uint32_t
e82545_csb_look_due(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	uint32_t due = 0;
	uint64_t now_ns;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if (c->tx_look_ns == 0 && c->rx_look_ns == 0)
		return (0);
	now_ns = dev->ops->eo_now(dev->arg);
	if (c->tx_look_ns != 0 && c->tx_look_ns <= now_ns) {
		c->tx_look_ns = 0;
		due |= CSB_LOOK_TX;
	}
	if (c->rx_look_ns != 0 && c->rx_look_ns <= now_ns) {
		c->rx_look_ns = 0;
		due |= CSB_LOOK_RX;
	}
	return (due);
}

/* Whether guest_tdt has changed since the transmit side went to sleep. */
static bool
csb_tx_missed(const struct e82545 *dev, const struct paravirt_csb *page)
{
	const struct e82545_csb *c = &dev->csb;

	return (!c->tx_awake && c->tx_seen != NET_PARAVIRT_NONE &&
	    atomic_load_32(&page->guest_csb_on) != 0 &&
	    csb_tx_new(dev, page));
}

bool
e82545_csb_look_tx(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	const struct paravirt_csb *page;
	bool wake = false;

	e82545_lock(&dev->tx_mtx);
	if (e82545_dma(dev) && csb_tx_enabled(dev) &&
	    (page = csb_map(dev)) != NULL) {
		wake = csb_tx_missed(dev, page);
		if (wake)
			atomic_store_32(&c->kicked, 1);
		pthread_mutex_lock(&dev->reg_mtx);
		if (atomic_load_32(&page->guest_need_txkick) != 0) {
			e82545_intr_raise(dev, c->held & TX_DATA_CAUSES);
			c->held &= ~TX_DATA_CAUSES;
		}
		pthread_mutex_unlock(&dev->reg_mtx);
	}
	e82545_unlock(&dev->tx_mtx);
	return (wake);
}

/* Whether the guest has left the last frame in the ring. */
static bool
csb_rx_left(const struct e82545 *dev)
{
	uint32_t head, size;

	head = e82545_reg(dev, E82545_RDH);
	size = csb_ring_size(dev, &csb_rx_ring);
	return (head < size && !csb_posted(dev, &csb_rx_ring, head, size));
}

/*
 * Whether the guest polls: it wants no interrupt, and has posted descriptors
 * since one was suppressed.
 */
static bool
csb_rx_polled(const struct e82545_csb *c, const struct paravirt_csb *page)
{
	return (atomic_load_32(&page->guest_csb_on) != 0 &&
	    atomic_load_32(&page->guest_need_rxkick) == 0 &&
	    (c->rx_polled ||
	    le32toh(atomic_load_32(&page->guest_rdt)) != c->rx_look_rdt));
}

/* Interrupt a guest that does not poll and has left frames. */
static void
csb_rx_remind(struct e82545 *dev, const struct paravirt_csb *page)
{
	struct e82545_csb *c = &dev->csb;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	if ((c->held & RX_DATA_CAUSES) == 0 || !csb_rx_left(dev))
		return;
	if (csb_rx_polled(c, page)) {
		csb_rx_look_later(dev, page);
		return;
	}
	e82545_intr_raise(dev, c->held & RX_DATA_CAUSES);
	c->held &= ~RX_DATA_CAUSES;
}

bool
e82545_csb_look_rx(struct e82545 *dev)
{
	struct paravirt_csb *page;
	bool wake = false;

	e82545_lock(&dev->rx_mtx);
	if (e82545_dma(dev) && csb_rx_enabled(dev) &&
	    (page = csb_map(dev)) != NULL) {
		csb_rx_mode(dev, page);
		csb_rx_look(dev, page);
		pthread_mutex_lock(&dev->reg_mtx);
		wake = e82545_rx_unstall(dev);
		csb_rx_remind(dev, page);
		pthread_mutex_unlock(&dev->reg_mtx);
	}
	e82545_unlock(&dev->rx_mtx);
	return (wake);
}

/*
 * Placing and releasing the block.
 */

/* Drivers place it once, then reset the adapter each time they start. */
void
e82545_csb_idle(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;
	struct paravirt_csb *page;
	bool kicked;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	kicked = atomic_cmpset_acq_32(&c->kicked, 1, 0) != 0;
	page = e82545_dma(dev) ? csb_map(dev) : NULL;
	csb_rx_forget(c, page);
	if (!e82545_dma(dev)) {
		/* The first batches with the bus on do the rest. */
		c->tx_awake |= kicked;
		return;
	}
	if (page != NULL && (kicked || c->tx_awake))
		atomic_store_rel_32(&page->host_need_txkick, htole32(1));
	if (page != NULL && c->rx_armed)
		atomic_store_rel_32(&page->host_rxkick_at,
		    htole32(NET_PARAVIRT_NONE));
	c->tx_awake = c->rx_armed = false;
}

void
e82545_csb_release(struct e82545 *dev)
{
	struct e82545_csb *c = &dev->csb;

	e82545_assert_all(dev);
	MPASS(c->tx == NULL && c->rx == NULL);
	csb_mode(dev, false);
	c->gpa = 0;
	atomic_store_32(&c->kicked, 0);
	c->tx_awake = c->rx_armed = false;
	c->rx_starts = c->rx_unread = c->rx_last_on = false;
	c->tx_last_on = 0;
	c->tx_at_used = c->rx_unmasked = false;
	c->held = 0;
	c->tx_look_ns = c->rx_look_ns = 0;
}

void
e82545_csbal_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	struct e82545_csb *c = &dev->csb;

	if (!dev->config.ec_csb)
		return;
	csb_use_tdt(dev, NULL);
	csb_use_rdt(dev, NULL);
	e82545_csb_release(dev);
	e82545_reg_set(dev, off, value);
	c->gpa = (uint64_t)e82545_reg(dev, E82545_CSBAH) << 32 | value;
	c->tx_seen = NET_PARAVIRT_NONE;
	c->rx_old = NET_PARAVIRT_NONE;
	if (c->gpa != 0) {
		/* So that the receive side sets host_rxkick_at. */
		c->rx_armed = true;
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
	c->tdt = c->rdt = c->tx_seen = NET_PARAVIRT_NONE;
	c->rx_starts = true;
	c->rx_unmasked = false;
	c->held = 0;
	c->tx_look_ns = c->rx_look_ns = 0;
}

/* Between batches.  csb_map() checks the address for each batch. */
void
e82545_csb_snap(struct e82545 *dev, struct e82545_snap *s)
{
	struct e82545_csb *c = &dev->csb;
	bool kicked = c->kicked != 0, on = c->on != 0;
	bool tx_last = c->tx_last_on != 0;

	e82545_snap_u64(s, &c->gpa, dev->config.ec_csb ? UINT64_MAX : 0);
	e82545_snap_bool(s, &on);
	e82545_snap_bool(s, &kicked);
	c->on = on;
	c->kicked = kicked;
	e82545_snap_bool(s, &tx_last);
	c->tx_last_on = tx_last;
	e82545_snap_bool(s, &c->rx_last_on);
	e82545_snap_bool(s, &c->rx_starts);
	e82545_snap_bool(s, &c->rx_unread);
	e82545_snap_u32(s, &c->tdt, NET_PARAVIRT_NONE);
	e82545_snap_u32(s, &c->rdt, NET_PARAVIRT_NONE);
	e82545_snap_check(s, c->tdt <= E82545_DPTR_MASK ||
	    c->tdt == NET_PARAVIRT_NONE);
	e82545_snap_check(s, c->rdt <= E82545_DPTR_MASK ||
	    c->rdt == NET_PARAVIRT_NONE);
	e82545_snap_bool(s, &c->rx_unmasked);
	e82545_snap_u32(s, &c->held, UINT32_MAX);
	e82545_snap_check(s,
	    (c->held & ~(TX_DATA_CAUSES | RX_DATA_CAUSES)) == 0);
	e82545_snap_bool(s, &c->tx_at_used);
	e82545_snap_bool(s, &c->tx_awake);
	e82545_snap_u32(s, &c->tx_seen, UINT32_MAX);
	e82545_snap_u32(s, &c->tx_rounds, CSB_ROUNDS_MAX);
	e82545_snap_bool(s, &c->rx_armed);
	e82545_snap_u32(s, &c->rx_old, UINT32_MAX);
	if (s->restore != NULL) {
		/* Look again as soon as the model is resumed. */
		c->tx_look_ns = c->rx_look_ns = c->gpa != 0;
		c->rx_look_rdt = NET_PARAVIRT_NONE;
		c->rx_polled = true;
	}
	e82545_snap_check(s, c->gpa != 0 || (!c->on && !c->tx_awake &&
	    !c->rx_armed));
}
