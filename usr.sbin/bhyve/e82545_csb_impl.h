/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of the CSB's host side share: e82545_csb.c, e82545_csb_tx.c,
 * e82545_csb_rx.c.
 */

#ifndef _E82545_CSB_IMPL_H_
#define	_E82545_CSB_IMPL_H_

#include "e82545_impl.h"
#include "e82545_probes.h"

/* The most empty rounds; limits host_txcycles_lim. */
#define	CSB_ROUNDS_MAX	65536

/* Causes that only announce data. */
#define	CSB_TX_CAUSES	(E82545_ICR_TXDW | E82545_ICR_TXQE)
#define	CSB_RX_CAUSES	(E82545_ICR_RXT0 | E82545_ICR_RXDMT0)

struct csb_ring {
	uint32_t		base, head, tail, len;	/* registers */
	enum e82545_counter	saved;
};
extern const struct csb_ring csb_tx_ring, csb_rx_ring;

static inline bool
csb_tx_enabled(const struct e82545 *dev)
{
	return ((e82545_reg(dev, E82545_TCTL) & E82545_TCTL_EN) != 0);
}

static inline bool
csb_rx_enabled(const struct e82545 *dev)
{
	return ((e82545_reg(dev, E82545_RCTL) & E82545_RCTL_EN) != 0);
}

static inline uint32_t
csb_ring_size(const struct e82545 *dev, const struct csb_ring *r)
{
	return ((e82545_reg(dev, r->len) & E82545_DLEN_MASK) /
	    sizeof(union e82545_txd));
}

/* Whether a tail was kept aside.  Any thread. */
static inline bool
csb_kept(const uint32_t *kept)
{
	return (atomic_load_32(kept) != NET_PARAVIRT_NONE);
}

/*
 * A tail register is written.  Returns true if the index is kept aside; false
 * if it must be stored, and then discards one kept before.
 */
static inline bool
csb_keep(uint32_t *kept, bool on, uint32_t value)
{
	atomic_store_32(kept, on ? value : NET_PARAVIRT_NONE);
	return (on);
}

/* Suppress causes, because the guest polls. */
static inline void
csb_suppress(struct e82545 *dev, uint32_t causes)
{
	if (causes == 0)
		return;
	dev->csb.held |= causes;
	e82545_count(dev, E82545_C_INTR_SAVED, 1);
	E82545_PROBE(dev, INTR_SAVED, causes);
}

/* Count an invalid address or index. */
void	csb_bad(struct e82545 *dev, uint32_t what);
/* The block, or NULL if its address is invalid.  Only if e82545_dma(). */
struct paravirt_csb *csb_map(struct e82545 *dev);
/* Read the mode, and record it. */
bool	csb_is_on(struct e82545 *dev, const struct paravirt_csb *page);
/*
 * Whether the guest has posted the last descriptor before index `tail', which
 * is less than the ring's `size'.  The ring's lock held.
 */
bool	csb_posted(const struct e82545 *dev, const struct csb_ring *r,
	    uint32_t tail, uint32_t size);
/* Whether index `value' is farther from the head than the tail. */
bool	csb_farther(const struct e82545 *dev, const struct csb_ring *r,
	    uint32_t value, uint32_t size);
/*
 * Set the tail to the guest's if that is farther: true.  reg_mtx and the ring's
 * lock held.
 */
bool	csb_advance(struct e82545 *dev, const struct csb_ring *r,
	    uint32_t value);
/* Count a tail that came without a kick. */
void	csb_kick_saved(struct e82545 *dev, const struct csb_ring *r,
	    uint32_t tail);
/* Look again later.  Returns false if it was decided before.  reg_mtx held. */
bool	csb_look_later(struct e82545 *dev, uint64_t *look_ns);

/*
 * Set TDT to guest_tdt of `page' (NULL: the page is not used), and, if the mode
 * is off or guest_tdt is invalid, to the index kept aside, if that is farther.
 * tx_mtx and reg_mtx held.
 */
void	csb_use_tdt(struct e82545 *dev, const struct paravirt_csb *page);
/*
 * Set RDT to the farther of guest_rdt, which is taken from `page' (NULL: the
 * page is not used), and the index kept aside.  Returns whether RDT has moved.
 * rx_mtx and reg_mtx held.
 */
bool	csb_use_rdt(struct e82545 *dev, struct paravirt_csb *page);
/*
 * The ring is started: ignore the value that guest_rdt of `page' has now, or if
 * `page' is NULL, the value that the next batch finds.  rx_mtx held.
 */
void	csb_rx_forget(struct e82545_csb *c, const struct paravirt_csb *page);

#endif /* !_E82545_CSB_IMPL_H_ */
