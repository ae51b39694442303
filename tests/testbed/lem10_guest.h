/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver that the CSB was made for, lem(4) of FreeBSD 10 with NIC_PARAVIRT,
 * as the model sees it: the same accesses to registers, rings and the CSB, in
 * the same order.  It does not follow all rules of paravirt_csb(9):
 *
 *	- It does not clear the block, and never writes guest_txkick_at.
 *	- It stores guest_rdt only for frames that it takes with the CSB on, so
 *	  that field is old after a restart and when the CSB is turned on.
 *	- It enables the receiver before it writes RDH and RDT.
 *	- An interrupt without a frame leaves guest_need_rxkick at 0.
 *	- It reads guest_csb_on once for each run of the receive loop, and
 *	  leaves out the write to RDT if that was set.
 *	- It kicks only if guest_rdt equals host_rxkick_at.
 *	- With send combining it may leave out a kick that host_need_txkick asks
 *	  for, and make up for it on the next interrupt.  It waits for one
 *	  even if that kick announces no frame, because the host has sent all
 *	  by guest_tdt; only an interrupt for something else ends that.
 *	- It takes an ICR of 0 for the interrupt of another device.
 *	- With hw.em.use_legacy_irq it processes the rings in the interrupt
 *	  handler, and never masks interrupts.  One with LSC among its causes
 *	  processes none, but ICR has been read.
 *
 * It has a barrier only where a comment asks for one; here they are in place.
 *
 * Frames carry their number from byte LEM10_SEQ on, those that it sends and
 * those that it takes.
 */

#ifndef _LEM10_GUEST_H_
#define	_LEM10_GUEST_H_

#include <net/paravirt.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "e82545_host.h"

#define	LEM10_LEN	60		/* bytes of a frame */
#define	LEM10_SEQ	14		/* be32 */
#define	LEM10_RX_LIMIT	100		/* frames that a run of a task takes */
#define	LEM10_CAUSES	(E82545_ICR_RXT0 | E82545_ICR_TXDW |		\
			 E82545_ICR_RXDMT0 | E82545_ICR_RXSEQ |		\
			 E82545_ICR_LSC)

struct lem10 {
	struct host	*h;
	struct paravirt_csb *csb;
	uint64_t	 csb_gpa;
	uint64_t	 txbuf;		/* gpa of the first slot's frame */
	uint32_t	 ndesc;		/* of each ring */
	bool		 legacy_irq;	/* hw.em.use_legacy_irq */
	uint32_t	 running;	/* atomic */
	bool		 skipped;	/* the last interrupt was LSC */
	bool		 in_task;	/* interrupts are masked */

	pthread_mutex_t	 tx_mtx;
	uint32_t	 tx_next, tx_clean;
	bool		 tx_full;	/* OACTIVE */
	uint32_t	 combining;	/* sc_enable; atomic */
	bool		 combined;	/* an interrupt is due: do not kick */
	bool		 tx_pending;	/* a kick was left out */
	bool		 combined_none;	/* no: the kick was for no frame */
	uint32_t	 queue;		/* atomic */
	uint32_t	 posted, sent, tx_lost;	/* frames; atomic */

	pthread_mutex_t	 rx_mtx;
	uint32_t	 rx_next;
	uint32_t	 rdt;		/* last value of guest_rdt */
	uint32_t	 taken, rx_lost;	/* frames; atomic */
	uint32_t	 seq;		/* of the last one */
	uint32_t	 disorder;	/* frames with a number below that */

	/* Called before the hook_in-th access from now on; 0: never. */
	uint32_t	 hook_in;
	void		(*hook)(struct lem10 *);
};

/*
 * Attach to the adapter of `h', with rings of `ndesc' descriptors (a multiple
 * of 8) and the CSB off, and start.
 */
void	lem10_up(struct lem10 *l, struct host *h, uint32_t ndesc);
void	lem10_down(struct lem10 *l);
/*
 * Restart: reset the adapter and start it.  Frames in the rings are lost.
 * Calls `between', if not NULL, after the receiver is enabled.
 */
void	lem10_init(struct lem10 *l, void (*between)(struct lem10 *));
/* Restart the receive ring, without a reset. */
void	lem10_rx_restart(struct lem10 *l);
/* Store guest_csb_on. */
void	lem10_csb(struct lem10 *l, bool on);
/* Send `n' frames. */
void	lem10_send(struct lem10 *l, uint32_t n);
/* Take frames that are sent.  tx_mtx held. */
void	lem10_txeof(struct lem10 *l);
/* Take at most `count' received frames.  Returns whether there may be more. */
bool	lem10_rxeof(struct lem10 *l, int count);
/* An interrupt, of any device.  Returns false if ICR was 0. */
bool	lem10_handler(struct lem10 *l);
/* The same if the line is asserted; else returns false. */
bool	lem10_intr(struct lem10 *l);
/* Whether all frames given to lem10_send() are sent, or lost. */
bool	lem10_all_sent(const struct lem10 *l);

#endif /* !_LEM10_GUEST_H_ */
