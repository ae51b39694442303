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

/*
 * The guest's index of a ring, as it writes it to TDT or RDT.  reg_mtx;
 * csb_kept() reads it without.
 */
struct e82545_csb_tail {
	uint32_t	kept;		/* written and kept aside, or "none" */
	bool		starts;		/* not since TDH, RDH or a reset */
	uint32_t	first;		/* TDT: the only value written since,
					   else "none" */
};

/* The state of the CSB: see e82545_csb.c. */
struct e82545_csb {
	uint64_t	gpa;		/* of the block, 0: none; written with
					   all locks held */
	uint32_t	on;		/* the guest's mode when last seen;
					   atomic */
	uint32_t	kicked;		/* TDT was written; atomic */
	struct e82545_csb_tail tdt, rdt;
	/* reg_mtx. */
	bool		rx_unmasked;	/* IMS written, ICR not read since */
	uint32_t	held;		/* causes suppressed since ICR read */
	uint64_t	tx_look_ns, rx_look_ns;	/* when to look again, 0: not */
	uint32_t	rx_look_rdt;	/* guest_rdt then, until taken */
	/* tx_mtx. */
	struct paravirt_csb *tx;	/* in a batch: the block, if any, */
	bool		tx_on;		/* and whether the mode is on */
	bool		tx_awake;	/* the guest need not kick */
	bool		tx_used;	/* guest_tdt counts, since a kick with
					   the mode on */
	uint32_t	tx_rounds;	/* without anything to send */
	bool		tx_at_used;	/* guest_txkick_at was not 0 */
	/* rx_mtx. */
	struct paravirt_csb *rx;	/* as tx, tx_on */
	bool		rx_on;
	bool		rx_armed;	/* host_rxkick_at may be set */
	bool		rx_last_on;	/* the mode as seen by the last batch */
	uint32_t	rx_old;		/* guest_rdt when the ring was started,
					   until looked at, else "none" */
	bool		rx_unread;	/* it could not be read then */
	bool		rx_polled;	/* guest_rdt was taken since the look
					   was decided */
	uint64_t	vnet_gpa;	/* of the header ring, 0: none; written
					   with all locks held */
	uint32_t	vnet_size;	/* its entries */
	uint32_t	vnet_clean;	/* those before it, from RDH on, are
					   zeros; UINT32_MAX: none is */
};

/*
 * Only for an adapter whose guest has placed a block: e82545_csb_placed().
 * A batch then calls begin, which sets TDT or RDT to the index in the block;
 * notify, which publishes the head and interrupts the guest if it wants that;
 * and end.
 */

/*
 * The guest writes TDT or RDT, at `off'.  Returns true if the CSB keeps the
 * index aside, false if it must go into the register.  reg_mtx held.
 */
bool	e82545_csb_keep(struct e82545 *dev, uint32_t off, uint32_t value);
/*
 * The guest writes TDH or RDH, at `off': its index in the CSB is old, and the
 * next write to TDT or RDT is stored as it stands.  The ring's lock held.
 */
void	e82545_csb_restart(struct e82545 *dev, uint32_t off);

/* tx_mtx held; only if e82545_dma(). */
void	e82545_csb_tx_begin(struct e82545 *dev);
/*
 * TDH moved over `ndescs' of a ring's `size' descriptors, from `start' on; then
 * as e82545_intr_tx().  csb.tx_on; tx_mtx and reg_mtx held.
 */
void	e82545_csb_tx_notify(struct e82545 *dev, uint32_t start,
	    uint32_t ndescs, uint32_t size, bool done, bool delayed,
	    uint32_t causes);
/*
 * What e82545_tx() returns: `idle' if it had nothing to do, `more' if frames
 * are still pending.  tx_mtx held.
 */
enum e82545_tx_state e82545_csb_tx_end(struct e82545 *dev, bool idle,
	    bool more);

/* rx_mtx held; only if e82545_dma(). */
void	e82545_csb_rx_begin(struct e82545 *dev);
/*
 * Look whether the guest has posted descriptors; sets RDT and returns true if
 * so.  csb.rx_on; rx_mtx held.
 */
bool	e82545_csb_rx_tail(struct e82545 *dev);
/*
 * The ring is empty: ask the guest to write RDT when at least `need'
 * descriptors are posted, and look again.  rx_mtx and reg_mtx held.
 */
void	e82545_csb_rx_wait(struct e82545 *dev, uint32_t need);
/*
 * Map the header ring, FRAME_VNET_SHORT bytes for each of `size' descriptors,
 * until the end of the batch.  vnet_gpa must be set.  NULL: the guest gets
 * complete frames, as it does with the mode off.  e82545_csb_vnet_clear()
 * clears the entries of `posted' descriptors from `head' on.  rx_mtx held.
 */
uint8_t	*e82545_csb_vnet(struct e82545 *dev, uint32_t size);
void	e82545_csb_vnet_clear(struct e82545 *dev, uint8_t *ring, uint32_t size,
	    uint32_t head, uint32_t posted);
/* RDH moved; then as e82545_intr_rx().  csb.rx_on; rx_mtx, reg_mtx held. */
void	e82545_csb_rx_notify(struct e82545 *dev, uint32_t causes);
/* rx_mtx held. */
void	e82545_csb_rx_end(struct e82545 *dev);
/*
 * The guest writes `causes' to IMS.  Returns suppressed causes to be raised.
 * reg_mtx held.
 */
uint32_t e82545_csb_unmask(struct e82545 *dev, uint32_t causes);
/* The guest reads causes from ICR.  reg_mtx held. */
void	e82545_csb_icr_read(struct e82545 *dev);

/*
 * The host's timer.  e82545_csb_arm() sets it if it is needed;
 * e82545_csb_look_due(), when it has expired, returns where to look again
 * (CSB_LOOK_*); 0: nowhere.  reg_mtx held.
 */
#define	CSB_LOOK_TX	1
#define	CSB_LOOK_RX	2
void	e82545_csb_arm(struct e82545 *dev);
uint32_t e82545_csb_look_due(struct e82545 *dev);
/*
 * Look again whether the guest waits.  Interrupts if it does; returns true if
 * the caller must call eo_tx_kick(), eo_rx_ready().  No locks held.
 */
bool	e82545_csb_look_tx(struct e82545 *dev);
bool	e82545_csb_look_rx(struct e82545 *dev);

/*
 * A reset by the guest: put the block into its idle state; the guest keeps it.
 * tx_mtx and rx_mtx held.
 */
void	e82545_csb_idle(struct e82545 *dev);
/*
 * A reset from outside: release the block without writing to it.  All locks
 * held.
 */
void	e82545_csb_release(struct e82545 *dev);
/* CSBAL and CSBAH, as the register table calls them. */
void	e82545_csbal_write(struct e82545 *dev, uint32_t off, uint32_t value);
void	e82545_csbah_write(struct e82545 *dev, uint32_t off, uint32_t value);
/* A reset sets CSBAL and CSBAH to the block's address.  reg_mtx held. */
void	e82545_csb_reset(struct e82545 *dev);

#endif /* !_E82545_CSB_H_ */
