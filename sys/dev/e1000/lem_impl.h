/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What lem_core.c (life cycle, interrupts, mode), lem_tx.c and lem_rx.c have
 * between them.
 *
 * What is dear under a hypervisor is not work but telling: each register
 * access and each interrupt is an exit.  So both rings keep what was done
 * apart from what the adapter was told of:
 *
 *	TX   head            told            tail
 *	  ----+---------------+---------------+----
 *	      | the adapter's | not told yet  |	     free, one slot always
 *	  ----+---------------+---------------+----
 *	RX   tail            next            told (= tail after a refill)
 *	  ----+---------------+---------------+----
 *	      | taken, to be  | the adapter's |
 *	      | given back    |		      |
 *
 * Whatever the adapter writes (descriptors, the CSB's host part) is read once
 * and then checked; it is never an index.  8254x SDM sections: e82545_reg.h.
 */

#ifndef _DEV_E1000_LEM_IMPL_H_
#define	_DEV_E1000_LEM_IMPL_H_

#include "lem_core.h"

/*
 * Memory that the adapter writes, too, and what is read without a lock.  Who
 * sees an index or a status sees what it speaks of: in the order of a device's
 * accesses that is the barriers' to say, in that of another CPU's (the CSB's
 * host) it is said here as well, at no cost on amd64.
 */
#define	SHARED_GET(field)	__atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define	SHARED_SET(field, value)					\
	__atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

#define	USABLE(lc)	((lc)->lc_running && !(lc)->lc_dead)
#define	CSB_ON(lc)	((SHARED_GET((lc)->lc_mode) & LEM_MODE_CSB) != 0)
#define	POLLING(lc)	((SHARED_GET((lc)->lc_mode) & LEM_MODE_POLL) != 0)

/* Slots from `a' on to `b', and the one behind `a', in a ring of `n'. */
#define	DISTANCE(a, b, n)	(((b) - (a)) & ((n) - 1))
#define	NEXT(a, n)		(((a) + 1) & ((n) - 1))

/*
 * For lem_core.c: the rings' state to that of a fresh start (lem_rx_init()
 * gives buffers, and is false where there is none); all packets told, send
 * combining or not; the slots before `end' to the host, returning how many.
 */
void	lem_tx_init(struct lem_core *lc);
bool	lem_rx_init(struct lem_core *lc);
void	lem_tx_tell(struct lem_core *lc);
unsigned int lem_tx_drop(struct lem_core *lc, uint32_t end);

#endif /* !_DEV_E1000_LEM_IMPL_H_ */
