/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of the CSB's host side share: e82545_csb.c, e82545_csb_tail.c,
 * e82545_csb_tx.c, e82545_csb_rx.c, e82545_csb_vnet.c.
 */

#ifndef _E82545_CSB_IMPL_H_
#define	_E82545_CSB_IMPL_H_

#include <net/paravirt.h>

#include "e82545_impl.h"

/*
 * The limits of polling, besides host_txcycles_lim: rounds, and their time.  A
 * round takes longer if the processor is slow or shared, so a number of rounds
 * alone does not limit the time that others lose.
 */
#define	CSB_ROUNDS_MAX	65536
#define	CSB_SPIN_NS	200000

/*
 * Polling costs the guest time where another thread computes: that has the
 * processor for a time slice after each yield, and a frame waits as long; to
 * wake up takes less.  The sign of that is a time between two rows with fewer
 * frames than a stream has.  Then the transmit side sleeps when it is idle,
 * and polls again after a time that a stream does not notice.
 */
#define	CSB_AWAY_NS	1500000
#define	CSB_AWAY_FRAMES	4		/* sent and received: fewer; an uncut
					   packet counts as one, and */
#define	CSB_FRAME_BYTES	1500		/* as one more for so many bytes */
#define	CSB_REST_NS	20000000

/* Causes that only announce data. */
#define	CSB_TX_CAUSES	(E82545_ICR_TXDW | E82545_ICR_TXQE)
#define	CSB_RX_CAUSES	(E82545_ICR_RXT0 | E82545_ICR_RXDMT0)

struct csb_ring {
	uint32_t		base, head, tail, len, ctl;	/* registers */
	enum e82545_counter	saved;
	/*
	 * Note an index that was taken, or "none": decide which counts.  The
	 * ring's lock.
	 */
	uint32_t		(*taken)(struct e82545_csb *c, uint32_t value);
};
extern const struct csb_ring csb_tx_ring, csb_rx_ring;

/*
 * Return whether TCTL or RCTL enables the ring.  The bit is the same in both.
 */
static inline bool
csb_enabled(const struct e82545 *dev, const struct csb_ring *r)
{
	return ((e82545_reg(dev, r->ctl) & E82545_TCTL_EN) != 0);
}
_Static_assert(E82545_TCTL_EN == E82545_RCTL_EN, "13.4.22, 13.4.33");

/* Return what the guest has posted by a register or by the CSB. */
static inline struct e82545_csb_tail *
csb_tail(struct e82545 *dev, const struct csb_ring *r)
{
	return (r == &csb_tx_ring ? &dev->csb.tdt : &dev->csb.rdt);
}

static inline uint32_t *
csb_index(struct paravirt_csb *page, const struct csb_ring *r)
{
	return (r == &csb_tx_ring ? &page->guest_tdt : &page->guest_rdt);
}

static inline uint32_t
csb_ring_size(const struct e82545 *dev, const struct csb_ring *r)
{
	return ((e82545_reg(dev, r->len) & E82545_DLEN_MASK) /
	    sizeof(union e82545_txd));
}

/* Return whether an index was set aside.  Any thread. */
static inline bool
csb_deferred(const struct e82545_csb_tail *t)
{
	return (atomic_load_32(&t->deferred) != NET_PARAVIRT_NONE);
}

/*
 * Return whether the guest has stored an index that was not taken.  Any thread.
 */
static inline bool
csb_stored(struct paravirt_csb *page, const struct csb_ring *r)
{
	return (atomic_load_32(csb_index(page, r)) !=
	    htole32(NET_PARAVIRT_NONE));
}

/* Count an invalid address or index. */
void	csb_bad(struct e82545 *dev, uint32_t what);
/* Suppress causes, because the guest polls.  reg_mtx held. */
void	csb_suppress(struct e82545 *dev, uint32_t causes);
/* Return whether the guest numbers its requests. */
static inline bool
csb_numbers(const struct paravirt_csb *page)
{
	return (atomic_load_32(&E82545_CSB_GUEST_NUMBERS(page)) != 0);
}

/*
 * Return whether the guest requests an interrupt by `need', its need-kick flag.
 * Not if it was interrupted for a request with that number before, which is
 * `told'.
 */
static inline bool
csb_wanted(const struct paravirt_csb *page, uint32_t need, uint32_t told)
{
	return (need != 0 && (need != told || !csb_numbers(page)));
}

/*
 * Store the number of the guest's request, `need', in *told before an
 * interrupt, and let the next cause interrupt the guest, whether or not it has
 * read the earlier ones.  Does nothing with the mode off, or if the requests
 * have no numbers.  reg_mtx held.
 */
void	csb_tell(struct e82545 *dev, const struct paravirt_csb *page,
	    uint32_t *told, uint32_t need);
/*
 * Map the block.  Returns NULL if its address is invalid.  Only if
 * e82545_dma().
 */
struct paravirt_csb *csb_map(struct e82545 *dev);
/* Read the mode, and record it. */
bool	csb_is_on(struct e82545 *dev, const struct paravirt_csb *page);
/*
 * Return whether the guest has posted the last descriptor before index `tail',
 * which is less than the ring's `size': DD is clear there and, if `rs', RS set.
 * The ring's lock held.
 */
bool	csb_posted(const struct e82545 *dev, const struct csb_ring *r,
	    uint32_t tail, uint32_t size, bool rs);
/*
 * Set TDT or RDT to the farther of the index set aside, and the one that is
 * taken from `page' (NULL: the page is not used).  Returns whether it has
 * moved.  reg_mtx and the ring's lock held.
 */
bool	csb_use(struct e82545 *dev, const struct csb_ring *r,
	    struct paravirt_csb *page);
/*
 * Do as csb_use() does, with an index that was taken before a crash, or "none";
 * `on' for transmit with the mode on.  An index that was used does not count.
 * All locks held.
 */
void	csb_use_taken(struct e82545 *dev, const struct csb_ring *r,
	    uint32_t value, bool on);
/*
 * Check again later, at *when_ns.  Returns false if that was decided before, or
 * the guest, whose block is `page', numbers its requests.  reg_mtx held.
 */
bool	csb_recheck_later(struct e82545 *dev, const struct paravirt_csb *page,
	    uint64_t *when_ns);

/* Return whether guest_tdt counts.  tx_mtx held. */
static inline bool
csb_tx_counts(const struct e82545_csb *c)
{
	return (c->tx_state == CSB_TX_ASLEEP || c->tx_state == CSB_TX_AWAKE);
}

/* Return whether the guest may have left out a kick.  tx_mtx held. */
static inline bool
csb_tx_awake(const struct e82545_csb *c)
{
	return (c->tx_state == CSB_TX_AWAKE || c->tx_state == CSB_TX_RESTART);
}

/*
 * Start the ring: end polling, and ignore guest_tdt until a kick.  If `kicked',
 * the guest may have cleared host_need_txkick.  If `page' is NULL, the next
 * batch does the rest.  tx_mtx held.
 */
void	csb_tx_start(struct e82545_csb *c, struct paravirt_csb *page,
	    bool kicked);
/* Set the next state of the receive side.  rx_mtx held. */
void	csb_rx_move(struct e82545_csb *c, enum csb_rx_state to);
/*
 * Start the ring: ignore the value that guest_rdt of `page' has now, or if
 * `page' is NULL, the value that the next batch finds.  rx_mtx held.
 */
void	csb_rx_forget(struct e82545_csb *c, const struct paravirt_csb *page);
/*
 * Return the value of guest_rdt that csb_rx_ring(), which has read `value', is
 * to use; "none" if guest_rdt must be ignored.  rx_mtx held.
 */
uint32_t csb_rx_taken(struct e82545_csb *c, uint32_t value);

/*
 * Find the header ring that `page' names, as the block is placed, and clear the
 * ring.  NULL: there is none, as with the bus off.  All locks held.
 */
void	csb_vnet_place(struct e82545 *dev, const struct paravirt_csb *page);
struct e82545_snap;
/* Save or restore where the header ring is.  All locks held. */
void	csb_vnet_snap(struct e82545_csb *c, struct e82545_snap *s);

/*
 * The entries of the table: struct e82545_csb_ops documents them.
 */

/* e82545_csb.c */
void	csb_release(struct e82545 *dev);
/* e82545_csb_tail.c */
bool	csb_defer(struct e82545 *dev, uint32_t off, uint32_t value);
void	csb_restart(struct e82545 *dev, uint32_t off);
/* e82545_csb_tx.c */
void	csb_tx_begin(struct e82545 *dev);
void	csb_tx_notify(struct e82545 *dev, uint32_t start, uint32_t ndescs,
	    uint32_t size, bool done, bool delayed, uint32_t causes);
enum e82545_tx_state csb_tx_end(struct e82545 *dev, bool idle, bool more);
bool	csb_tx_recheck(struct e82545 *dev);
/* e82545_csb_rx.c */
void	csb_rx_begin(struct e82545 *dev);
bool	csb_rx_poll(struct e82545 *dev);
void	csb_rx_wait(struct e82545 *dev, uint32_t need);
void	csb_rx_notify(struct e82545 *dev, uint32_t causes);
void	csb_rx_end(struct e82545 *dev);
bool	csb_rx_recheck(struct e82545 *dev);
uint32_t csb_unmask(struct e82545 *dev, uint32_t causes);
void	csb_icr_read(struct e82545 *dev);
/* e82545_csb_vnet.c */
uint8_t	*csb_vnet_map(struct e82545 *dev, uint32_t size, uint32_t head,
	    uint32_t posted);
bool	csb_vnet_takes(const struct e82545 *dev, const struct frame *frame);
void	csb_vnet_clear(struct e82545 *dev, uint8_t *ring, uint32_t size,
	    uint32_t head, uint32_t posted);

#endif /* !_E82545_CSB_IMPL_H_ */
