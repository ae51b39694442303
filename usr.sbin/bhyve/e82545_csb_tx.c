/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB on transmit: see e82545_csb.c.
 *
 * A write to TDT wakes the transmit side, which then polls guest_tdt, batch
 * after batch:
 *
 *	asleep ------ TDT written, mode on: host_need_txkick = 0 -----> awake
 *	  ^								  |
 *	  +-- host_txcycles_lim empty rounds, or mode off, or TCTL.EN <---+
 *	      off: host_need_txkick = 1, barrier, guest_tdt unchanged
 *
 * With the mode on, a write to TDT is only a kick.  Its index may be behind the
 * head: a host that posts the guest's writes delivers them after the CSB's
 * newer index has been used.  It is kept aside (tdt) until the CSB is read, and
 * counts only if the CSB's index is invalid or the mode is off again.  Until
 * the transmit side has seen the mode off itself, TDT is kept aside, too, so
 * that the head does not pass an index in the CSB that was not looked at.
 *
 * All functions need tx_mtx, with these exceptions: e82545_csb_keep_tdt() needs
 * only reg_mtx; e82545_csb_look_tx() takes the locks itself.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <net/paravirt.h>

#include "e82545_csb_impl.h"

/*
 * With the mode off, the index kept aside may be newer than guest_tdt.  It is
 * used now or discarded, because later the head could have passed it.
 */
void
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

bool
e82545_csb_keep_tdt(struct e82545 *dev, uint32_t value)
{
	struct e82545_csb *c = &dev->csb;

	return (csb_keep(&c->tdt, csb_tx_enabled(dev) &&
	    atomic_load_32(&c->tx_last_on) != 0, value));
}

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
	MPASS(e82545_dma(dev) && c->tx == NULL && !c->tx_on);
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
		csb_suppress(dev, (causes & CSB_TX_CAUSES) |
		    (done ? E82545_ICR_TXDW : 0));
		csb_look_later(dev, &c->tx_look_ns);
		done = false;
		causes &= ~CSB_TX_CAUSES;
	}
	e82545_intr_tx(dev, done, delayed, causes);
	atomic_store_rel_32(&c->tx->host_isr,
	    htole32(e82545_reg(dev, E82545_ICR)));
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
			e82545_intr_raise(dev, c->held & CSB_TX_CAUSES);
			c->held &= ~CSB_TX_CAUSES;
		}
		pthread_mutex_unlock(&dev->reg_mtx);
	}
	e82545_unlock(&dev->tx_mtx);
	return (wake);
}
