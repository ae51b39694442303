/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Shared by lem_core.c (life cycle, interrupts, mode), lem_tx.c, lem_rx.c and
 * lem_spin.c (spinning before sleep).
 *
 * Under a hypervisor each register access and each interrupt is an exit, which
 * costs far more than the work on a packet.  So both rings keep the descriptors
 * that are ready apart from those that were posted, that is, of which the
 * adapter knows:
 *
 *	TX   head           posted           tail
 *	  ----+---------------+---------------+----
 *	      | the adapter's |    pending    | free; at least one slot
 *	  ----+---------------+---------------+----
 *	RX   tail            next           posted (= tail after a refill)
 *	  ----+---------------+---------------+----
 *	      |    missing    | the adapter's |
 *	      |  (to refill)  |		      |
 *
 * Everything that the adapter writes (descriptors, the CSB's host part) is
 * loaded once, with acquire, and then checked; none of it is used as an index,
 * and no assertion depends on it.  The section numbers are those of the 8254x
 * SDM: see e82545_reg.h.
 */

#ifndef _DEV_E1000_LEM_IMPL_H_
#define	_DEV_E1000_LEM_IMPL_H_

#include "lem_core.h"

#define	USABLE(lc)	((lc)->lc_running && !(lc)->lc_dead)
#define	CSB_ON(lc)							\
	((atomic_load_acq_32(&(lc)->lc_mode) & LEM_MODE_CSB) != 0)
#define	POLLING(lc)							\
	((atomic_load_acq_32(&(lc)->lc_mode) & LEM_MODE_POLL) != 0)

/* Send combining until the next poll.  Transmit lock. */
#define	SC_POLLS(lc)							\
	(((lc)->lc_mode & (LEM_MODE_SC | LEM_MODE_POLL | LEM_MODE_CSB)) == \
	(LEM_MODE_SC | LEM_MODE_POLL))

/* The causes of a packet that was sent. */
#define	CAUSES_TX(lc)							\
	((lc)->lc_irq == LEM_IRQ_MSIX ? E82574_ICR_TXQ0 : E82545_ICR_TXDW)

/*
 * Return the value of a need-kick flag of the CSB for a request.  With messages
 * the value is a number, *last being that of the request before; never 0, and
 * bit 0 is set.  The lock of the side.
 */
static inline uint32_t
lem_ask(const struct lem_core *lc, uint32_t *last)
{
	const uint32_t number = lc->lc_irq != LEM_IRQ_MSI ? 1 :
	    (atomic_load_32(last) + 2) | 1;

	atomic_store_32(last, number);
	return (number);
}

/* Slots from `a' to `b', and the slot after `a', in a ring of `n'. */
#define	DISTANCE(a, b, n)	(((b) - (a)) & ((n) - 1))
#define	NEXT(a, n)		(((a) + 1) & ((n) - 1))

/* Reset the transmit ring.  Transmit lock. */
void	lem_tx_init(struct lem_core *lc);

/*
 * Reset the receive ring, and give all buffers to it.  Returns false if the
 * host has no buffer at all.  Receive lock.
 */
bool	lem_rx_init(struct lem_core *lc);

/*
 * Spin, with the CSB, until a frame has come, for lc_rx_spin.sp_rounds at most.
 * Returns whether one has.  Receive lock.
 */
bool	lem_rx_spin(struct lem_core *lc);

/*
 * Request an interrupt, with the CSB, for the next frame.  Returns false if a
 * frame has arrived before.  Receive lock.
 */
bool	lem_rx_wait(struct lem_core *lc);

/* Post all pending packets, even if send combining is on.  Transmit lock. */
void	lem_tx_post(struct lem_core *lc);

/*
 * Return the slots before `end' to the host.  Returns their number.  Transmit
 * lock.
 */
unsigned int lem_tx_drop(struct lem_core *lc, uint32_t end);

/*
 * Assert that the indices of each ring are in the order of the drawing.  The
 * caller must hold the ring's lock.
 */
static inline void
lem_tx_assert(const struct lem_core *lc)
{
	lem_os_assert_tx(lc);
	MPASS(lc->lc_tx_head < lc->lc_ntxd && lc->lc_tx_tail < lc->lc_ntxd);
	MPASS(lc->lc_tx_posted < lc->lc_ntxd && lc->lc_tx_batch < lc->lc_ntxd);
	MPASS(DISTANCE(lc->lc_tx_head, lc->lc_tx_posted, lc->lc_ntxd) <=
	    DISTANCE(lc->lc_tx_head, lc->lc_tx_batch, lc->lc_ntxd));
	MPASS(DISTANCE(lc->lc_tx_head, lc->lc_tx_batch, lc->lc_ntxd) <=
	    DISTANCE(lc->lc_tx_head, lc->lc_tx_tail, lc->lc_ntxd));
	MPASS(lc->lc_tx_deferred <= lc->lc_tx_pending);
}

static inline void
lem_rx_assert(const struct lem_core *lc)
{
	lem_os_assert_rx(lc);
	MPASS(lc->lc_rx_next < lc->lc_nrxd && lc->lc_rx_tail < lc->lc_nrxd);
	MPASS(lc->lc_rx_posted < lc->lc_nrxd);
	MPASS(DISTANCE(lc->lc_rx_next, lc->lc_rx_posted, lc->lc_nrxd) <=
	    DISTANCE(lc->lc_rx_next, lc->lc_rx_tail, lc->lc_nrxd));
	MPASS(lc->lc_rx_len <= LEM_RX_OFFLOAD_MAX);
}

#endif /* !_DEV_E1000_LEM_IMPL_H_ */
