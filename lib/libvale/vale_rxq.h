/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive side of a ring pair: vale_rxq.c.
 */

#ifndef _VALE_RXQ_H_
#define	_VALE_RXQ_H_

#include <sys/systm.h>
#include <net/if.h>
#include <net/netmap.h>
#include <dev/netmap/vale_share.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vale_slot.h"

struct vale_pair;

/* A ring whose user is another process: its part of netmap's CSB. */
struct vale_user {
	struct nm_csb_atok	*vu_atok;	/* of the user */
	struct nm_csb_ktoa	*vu_ktoa;	/* of the switch */
};

/*
 * Show the user `cur', the first slot not consumed, and the tail.  Return true
 * if the user sleeps: then the caller must call up_wake().  The caller must
 * have the ring: for a receive ring rq_lock, for a transmit ring its thread.
 */
static inline bool
vale_user_show(const struct vale_user *vu, uint32_t cur, uint32_t tail)
{
	atomic_store_32(&vu->vu_ktoa->hwcur, cur);
	atomic_store_rel_32(&vu->vu_ktoa->hwtail, tail);
	atomic_thread_fence_seq_cst();
	return (atomic_load_32(&vu->vu_atok->appl_need_kick) != 0 &&
	    atomic_swap_32(&vu->vu_atok->appl_need_kick, 0) != 0);
}

#define	VALE_CACHE_LINE	64

/* Slots of a receive ring, at least one, that a sender is filling. */
struct vale_lease {
	uint32_t	le_end;		/* the slot after them */
	bool		le_done;	/* they are filled */
};

/*
 * Constants, what senders share, what senders write for the user, and what the
 * user writes have a cache line each.
 */
struct vale_rxq {
	uint32_t	 rq_nslots;
	int		 rq_fd;		/* or -1, if there is rq_user */
	const struct vale_user *rq_user; /* or NULL */
	struct vale_lease *rq_lease;	/* indexed by first slot; rq_lock */

	/* rq_lock. */
	_Alignas(VALE_CACHE_LINE)
	pthread_mutex_t	 rq_lock;
	uint32_t	 rq_next;	/* first slot not leased */
	bool		 rq_asleep;
	uint64_t	 rq_woken;	/* wakeups: writes to rq_fd, or due */
	uint64_t	 rq_drained;	/* of them, read back */

	/* First slot not published.  Written with rq_lock; atomic. */
	_Alignas(VALE_CACHE_LINE)
	uint32_t	 rq_tail;

	/* Written by the user's thread, which reads them without a lock. */
	_Alignas(VALE_CACHE_LINE)
	uint32_t	 rq_cur;	/* first slot of the user; atomic */
	uint32_t	 rq_shown;	/* rq_tail at the last sync */
	uint64_t	 rq_syncs;	/* atomic */
	bool		 rq_polled;	/* VALE_RING_POLLED at the last sync;
					   written with rq_lock */

	/* rq_lock.  Apart from the above: a line that is rarely written. */
	_Alignas(VALE_CACHE_LINE)
	struct vale_share rq_share;
};

/*
 * Initialize *rq, which must be zero-filled, with `nslots' slots, for a `user'
 * in another process, or NULL.  Returns 0 or -1.
 */
int	vale_rxq_init(struct vale_rxq *rq, uint32_t nslots,
	    const struct vale_user *user);

/* Free what vale_rxq_init() has allocated. */
void	vale_rxq_fini(struct vale_rxq *rq);

/*
 * Return the first slot of the user.  The user may return more slots at any
 * time, and no longer reads slots before this one.
 */
static inline uint32_t
vale_rxq_cur(const struct vale_rxq *rq)
{
	return (atomic_load_acq_32(&rq->rq_cur));
}

/*
 * Return whether the ring is empty, all its slots are returned, and its user
 * does not poll it.  Any thread.
 */
static inline bool
vale_rxq_idle(struct vale_rxq *rq)
{
	bool idle;

	pthread_mutex_lock(&rq->rq_lock);
	idle = !rq->rq_polled && vale_rxq_cur(rq) == rq->rq_next;
	pthread_mutex_unlock(&rq->rq_lock);
	return (idle);
}

/* The caller of the rest but vale_rxq_wake() must own rq_lock. */

/* Assert that, and that the indices are as vale_rxq.c draws them. */
static inline void
vale_rxq_assert(const struct vale_rxq *rq)
{
#ifdef INVARIANTS
	uint32_t cur = vale_rxq_cur(rq), n = rq->rq_nslots;
	uint32_t tail = atomic_load_32(&rq->rq_tail);

	mtx_assert(&rq->rq_lock, MA_OWNED);
	MPASS(cur < n && tail < n && rq->rq_next < n);
	MPASS(vale_slot_sub(tail, cur, n) <=
	    vale_slot_sub(rq->rq_next, cur, n));
#else
	(void)rq;
#endif
}

/*
 * Take the slots that a user in another process (rq_user) has returned.
 * Returns false if the head of that user is invalid; then nothing changes.
 */
bool	vale_rxq_take(struct vale_rxq *rq);

/* Return the number of free slots. */
static inline uint32_t
vale_rxq_space(const struct vale_rxq *rq)
{
	vale_rxq_assert(rq);
	return (rq->rq_nslots - 1 -
	    vale_slot_sub(rq->rq_next, vale_rxq_cur(rq), rq->rq_nslots));
}

/* Lease `nslots' slots, 1 to vale_rxq_space().  Returns the first. */
static inline uint32_t
vale_rxq_lease(struct vale_rxq *rq, uint32_t nslots)
{
	uint32_t lease = rq->rq_next;

	MPASS(nslots >= 1 && nslots <= vale_rxq_space(rq));
	rq->rq_next = vale_slot_add(lease, nslots, rq->rq_nslots);
	rq->rq_lease[lease].le_end = rq->rq_next;
	rq->rq_lease[lease].le_done = false;
	return (lease);
}

/*
 * End a lease, whose slots are filled.  Returns true if the caller must call
 * vale_rxq_wake() after it has released the lock.
 */
bool	vale_rxq_publish(struct vale_rxq *rq, uint32_t lease);

/* Wake the user of the pair's receive ring.  Any thread, without rq_lock. */
void	vale_rxq_wake(struct vale_pair *pair);

#endif /* !_VALE_RXQ_H_ */
