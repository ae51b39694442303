/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The communication status block: e82545_csb.c.
 */

#ifndef _E82545_CSB_H_
#define	_E82545_CSB_H_

#include <stdbool.h>
#include <stdint.h>

#include "e82545.h"

struct e82545_csb_ops;
struct frame;
struct paravirt_csb;

/*
 * The guest's index of a ring, as it writes it to TDT or RDT.  reg_mtx;
 * csb_deferred() reads it without.
 */
struct e82545_csb_tail {
	uint32_t	deferred;	/* written and set aside, or "none" */
	uint32_t	taken;		/* from the CSB and not used yet, or
					   "none"; for a crash */
	bool		starts;		/* not since TDH, RDH or a reset */
	uint32_t	first;		/* TDT: the only value written since,
					   else "none" */
};

/* The states of the sides: e82545_csb_tx.c and e82545_csb_rx.c draw them. */
enum csb_tx_state {
	CSB_TX_STARTED,		/* sleeps; guest_tdt does not count */
	CSB_TX_ASLEEP,		/* sleeps; guest_tdt counts */
	CSB_TX_AWAKE,		/* polls guest_tdt: the guest need not kick */
	CSB_TX_RESTART		/* started, but host_need_txkick is old */
};

enum csb_rx_state {
	CSB_RX_OFF,		/* the mode was off */
	CSB_RX_ON,		/* the mode was on */
	CSB_RX_WAITS,		/* host_rxkick_at may be set */
	CSB_RX_UNREAD		/* started, but guest_rdt could not be read */
};

/* The state of the CSB: see e82545_csb.c. */
struct e82545_csb {
	/* Written with all locks held. */
	uint64_t	gpa;		/* of the block; 0: none */
	const struct e82545_csb_ops *ops;	/* valid if there is one */

	uint32_t	on;		/* the guest's mode when last seen;
					   atomic */
	uint32_t	kicked;		/* TDT was written; atomic */
	struct e82545_csb_tail tdt, rdt;
	/* reg_mtx. */
	bool		rx_unmasked;	/* IMS written, ICR not read since */
	uint32_t	held;		/* causes suppressed since ICR read */
	uint64_t	tx_recheck_ns, rx_recheck_ns;	/* when to check again,
					   0: not */
	uint32_t	rx_recheck_rdt;	/* guest_rdt then, until taken */
	/* tx_mtx. */
	struct paravirt_csb *tx;	/* in a batch: the block, if any, */
	bool		tx_on;		/* and whether the mode is on */
	enum csb_tx_state tx_state;
	uint32_t	tx_rounds;	/* empty, since the last frame or
					   kick */
	uint64_t	tx_spin_ns;	/* their time, in full rows */
	uint64_t	tx_row_ns;	/* when the last row began */
	uint64_t	tx_away_ns;	/* when a row ended, 0: none since the
					   side woke up, */
	uint64_t	tx_away_frames;	/* and csb_frames() then */
	uint64_t	tx_rest_ns;	/* until when idle means asleep */
	bool		tx_at_used;	/* guest_txkick_at was not 0 */
	/* rx_mtx. */
	struct paravirt_csb *rx;	/* as tx, tx_on */
	bool		rx_on;
	enum csb_rx_state rx_state;
	uint32_t	rx_old;		/* guest_rdt when the ring was started,
					   until it is taken, else "none" */
	bool		rx_polled;	/* guest_rdt was taken since then */
	uint64_t	vnet_gpa;	/* of the header ring, 0: none; written
					   with all locks held */
	uint32_t	vnet_size;	/* its entries */
	uint32_t	vnet_clean;	/* those before it, from RDH on, are
					   zeros; UINT32_MAX: none is */
};

/*
 * What the model calls of the CSB, for an adapter whose guest has placed a
 * block: e82545_csb_placed().  A batch calls begin, which sets TDT or RDT to
 * the index in the block; notify, which publishes the head and interrupts the
 * guest if it wants that; and end.  Of these functions only ecb_vnet_takes() is
 * called for a frame.
 */
struct e82545_csb_ops {
	/*
	 * Take the index that the guest writes to TDT or RDT, at `off'.
	 * Returns true if it is set aside, false if it must go into the
	 * register.  reg_mtx held.
	 */
	bool	(*ecb_defer)(struct e82545 *dev, uint32_t off, uint32_t value);
	/*
	 * Note that the guest writes TDH or RDH, at `off': its index in the CSB
	 * is old, and the next write to TDT or RDT is stored as it stands.  The
	 * ring's lock held.
	 */
	void	(*ecb_restart)(struct e82545 *dev, uint32_t off);
	/*
	 * Note that the guest writes `causes' to IMS.  Returns suppressed
	 * causes to be raised.  reg_mtx held.
	 */
	uint32_t (*ecb_unmask)(struct e82545 *dev, uint32_t causes);
	/* Note that the guest reads causes from ICR.  reg_mtx held. */
	void	(*ecb_icr_read)(struct e82545 *dev);

	/* Begin a batch.  tx_mtx held; only if e82545_dma(). */
	void	(*ecb_tx_begin)(struct e82545 *dev);
	/*
	 * Tell the guest that TDH moved over `ndescs' of a ring's `size'
	 * descriptors, from `start' on; then do as e82545_intr_tx() does.
	 * csb.tx must be mapped; tx_mtx and reg_mtx held.
	 */
	void	(*ecb_tx_notify)(struct e82545 *dev, uint32_t start,
		    uint32_t ndescs, uint32_t size, bool done, bool delayed,
		    uint32_t causes);
	/*
	 * End the batch.  Returns what e82545_tx() returns: `idle' if it had
	 * nothing to do, `more' if frames are still pending.  tx_mtx held.
	 */
	enum e82545_tx_state (*ecb_tx_end)(struct e82545 *dev, bool idle,
		    bool more);

	/* Begin a batch.  rx_mtx held; only if e82545_dma(). */
	void	(*ecb_rx_begin)(struct e82545 *dev);
	/*
	 * Set RDT, and return true, if the guest has posted descriptors.
	 * csb.rx_on; rx_mtx held.
	 */
	bool	(*ecb_rx_poll)(struct e82545 *dev);
	/*
	 * Ask the guest, whose ring is empty, to write RDT when at least `need'
	 * descriptors are posted, and see once more whether they are.  rx_mtx
	 * and reg_mtx held.
	 */
	void	(*ecb_rx_wait)(struct e82545 *dev, uint32_t need);
	/*
	 * Tell the guest that RDH moved; then do as e82545_intr_rx() does.
	 * csb.rx must be mapped; rx_mtx and reg_mtx held.
	 */
	void	(*ecb_rx_notify)(struct e82545 *dev, uint32_t causes);
	/* End the batch.  rx_mtx held. */
	void	(*ecb_rx_end)(struct e82545 *dev);
	/*
	 * Map the header ring, FRAME_VNET_SHORT bytes for each of `size'
	 * descriptors, until the end of the batch, and clear the entries of
	 * `posted' descriptors from `head' on.  csb.vnet_gpa must be set.
	 * Returns NULL if the guest gets complete frames, as with the mode off.
	 * rx_mtx held.
	 */
	uint8_t	*(*ecb_vnet_map)(struct e82545 *dev, uint32_t size,
		    uint32_t head, uint32_t posted);
	/*
	 * Return whether the guest takes `frame', whose checksum is partial,
	 * with a header.  csb.rx_on; rx_mtx held.
	 */
	bool	(*ecb_vnet_takes)(const struct e82545 *dev,
		    const struct frame *frame);
	/*
	 * Clear the entries of more descriptors that are posted, `posted' from
	 * `head' on, in `ring', which is ecb_vnet_map()'s.  rx_mtx held.
	 */
	void	(*ecb_vnet_clear)(struct e82545 *dev, uint8_t *ring,
		    uint32_t size, uint32_t head, uint32_t posted);

	/* Set the host's timer if it is needed.  reg_mtx held. */
	void	(*ecb_arm)(struct e82545 *dev);
	/*
	 * Handle the host's timer.  Returns which rings must be checked again,
	 * E82545_CSB_TX and E82545_CSB_RX; 0: none.  reg_mtx held.
	 */
	uint32_t (*ecb_due)(struct e82545 *dev);
	/*
	 * Check again whether the guest waits, and interrupt it if it does.
	 * Returns true if the caller must call eo_tx_kick(), or eo_rx_ready()
	 * for the receive ring.  The block may have been released meanwhile.
	 * No locks held.
	 */
	bool	(*ecb_tx_recheck)(struct e82545 *dev);
	bool	(*ecb_rx_recheck)(struct e82545 *dev);

	/*
	 * Put the block into its idle state, at a reset by the guest, which
	 * keeps the block.  tx_mtx and rx_mtx held.
	 */
	void	(*ecb_idle)(struct e82545 *dev);
	/*
	 * Release the block without writing to it, at a reset from outside.
	 * All locks held.
	 */
	void	(*ecb_release)(struct e82545 *dev);
};

#define	E82545_CSB_TX	1
#define	E82545_CSB_RX	2

/* Write CSBAL and CSBAH, for the register table.  All locks held. */
void	e82545_csbal_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_csbah_write(struct e82545 *dev, uint32_t off, uint32_t value);
/*
 * Set CSBAL and CSBAH to the block's address, for a new adapter or at a reset.
 * reg_mtx held.
 */
void	e82545_csb_reset(struct e82545 *dev);

#endif /* !_E82545_CSB_H_ */
