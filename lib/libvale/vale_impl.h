/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The switches of this process: state shared by vale_*.c and nobody else.
 *
 *	vale_switch.c	switches and ports: opening, closing, settings, lists
 *	vale_forward.c	vale_txsync(): from a transmit ring to destinations
 *	vale_deliver.c	the last stage of that: into a port's ring, or its sink
 *	vale_rxq.c	vale_rxsync(): the receiving end of a port
 *	vale_region.c	a port's memory
 *	vale_fdb.c	addresses, in sys/dev/netmap
 *
 * Locks, in the order they are taken:
 *
 *	vale_lock	which switches and ports there are
 *	vs_gate		one change to a switch at a time; also what senders
 *			wait on while one is going on
 *	rq_lock		a port's receiving side, for a few instructions; no
 *			two at once
 *
 * A switch's list of ports is read under vale_lock, or by a sender between
 * vale_switch_enter() and vale_switch_leave(); it changes under vale_lock
 * while no sender is there.
 */

#ifndef _VALE_IMPL_H_
#define	_VALE_IMPL_H_

#include <sys/param.h>
#include <sys/queue.h>
#include <sys/systm.h>
#include <net/if.h>
#include <net/netmap.h>
#include <net/netmap_user.h>
#include <dev/netmap/vale_fdb.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libvale.h"

#define	VALE_CACHE_LINE	64
#define	VALE_BUF_SIZE	2048	/* bytes; netmap's default */
#define	VALE_BUF_FIRST	2	/* 0 and 1 are never a slot's, as in netmap */
#define	VALE_BATCH	1024	/* slots, and those that end the last frame */

/* A port's memory, as its user sees it.  vale_region.c. */
struct vale_region {
	void			*vr_base;
	size_t			 vr_size;
	struct netmap_if	*vr_nifp;
	struct netmap_ring	*vr_txring;
	struct netmap_ring	*vr_rxring;
	char			*vr_bufs;	/* buffer 0 */
	uint32_t		 vr_nbufs;	/* with 0 and 1 */
};

/* Slots of a receive ring, one at least, that a sender is filling. */
struct vale_lease {
	uint32_t	vl_end;		/* the slot after them */
	bool		vl_done;	/* the sender has ended it */
};

/*
 * The receiving side of a port.  vale_rxq.c.  A cache line each for what is
 * fixed, what senders have between them, what they tell the user, and what the
 * user tells them.
 */
struct vale_rxq {
	uint32_t	 rq_nslots;
	int		 rq_fd;
	struct vale_lease *rq_lease;	/* by their first slot; rq_lock */

	/* rq_lock. */
	_Alignas(VALE_CACHE_LINE)
	pthread_mutex_t	 rq_lock;
	uint32_t	 rq_next;	/* first slot not leased */
	bool		 rq_asleep;
	uint64_t	 rq_woken;	/* writes to rq_fd decided upon */
	uint64_t	 rq_drained;	/* and read back */

	/* First slot not yet the user's: who writes has rq_lock; atomic. */
	_Alignas(VALE_CACHE_LINE)
	uint32_t	 rq_tail;

	/* The user's thread, which reads them without a lock. */
	_Alignas(VALE_CACHE_LINE)
	uint32_t	 rq_cur;	/* first slot the user has; atomic */
	uint32_t	 rq_shown;	/* tail the user knows */
	uint64_t	 rq_syncs;	/* atomic */
	bool		 rq_polled;	/* VALE_RING_POLLED when last looked
					   at; written with rq_lock */
};

/* One source slot of a batch.  The first of a frame speaks for all of it. */
struct vale_piece {
	const uint8_t	*pc_buf;
	uint32_t	 pc_frame_len;
	uint16_t	 pc_len;
	uint16_t	 pc_next;	/* frame for the same destination */
	uint16_t	 pc_pieces;
	uint16_t	 pc_slots;	/* it takes in a receive ring */
};

#define	VALE_END	UINT16_MAX	/* of a list of frames */

/* Frames of a batch that go the same way. */
struct vale_list {
	uint16_t	ls_first;
	uint16_t	ls_last;
	uint32_t	ls_frames;
	uint32_t	ls_slots;
};

/* The sending side of a port: the sending thread's.  vale_forward.c. */
struct vale_txq {
	uint32_t	 vt_busy;	/* atomic: vale_switch.c */
	uint32_t	 vt_nslots;	/* fixed */
	uint32_t	 vt_cur;	/* first slot not consumed */
	uint32_t	 vt_npieces;
	uint32_t	 vt_ndsts;
	uint8_t		 vt_dst[VALE_FDB_PORTS];
	struct vale_list vt_list[VALE_FDB_PORTS + 1];	/* and VALE_FDB_FLOOD */
	struct vale_piece vt_piece[VALE_BATCH + NETMAP_MAX_FRAGS];
};

struct vale_port {
	struct vale_desc	 vp_desc;	/* must be first */
	struct vale_switch	*vp_switch;
	char			 vp_name[VALE_NAME_SIZE];
	uint8_t			 vp_index;
	struct vale_region	 vp_region;
	/* Changes while no sender is there. */
	void			(*vp_sink)(void *, struct frame_source *);
	void			*vp_sink_arg;
	_Alignas(VALE_CACHE_LINE)
	struct vale_txq		 vp_tx;
	_Alignas(VALE_CACHE_LINE)
	struct vale_rxq		 vp_rx;
	/* The sending thread writes some, whoever has rq_lock the others. */
	_Alignas(VALE_CACHE_LINE)
	uint64_t		 vp_counter[VALE_NCOUNTERS];
};

/* What a vale_desc of this library is part of. */
static inline struct vale_port *
vale_desc_port(struct vale_desc *d)
{
	return ((struct vale_port *)(void *)d);
}

_Static_assert(offsetof(struct vale_port, vp_desc) == 0, "vale_desc_port()");

struct vale_switch {
	TAILQ_ENTRY(vale_switch) vs_link;
	char			 vs_name[VALE_NAME_SIZE];
	pthread_mutex_t		 vs_gate;
	uint32_t		 vs_changing;	/* atomic: vale_switch.c */
	unsigned int		 vs_nports;
	uint8_t			 vs_active[VALE_FDB_PORTS]; /* indexes in use */
	struct vale_port	*vs_port[VALE_FDB_PORTS];
	struct vale_fdb		 vs_fdb;
};

/* Fetch a cache line that is to be written; `p' may be any address. */
#ifdef __x86_64__
#define	VALE_FETCH(p)	__asm__ volatile("prefetchw (%0)" : : "r" (p))
#else
#define	VALE_FETCH(p)	__builtin_prefetch((p), 1)
#endif

/*
 * Add to a counter.  The sending thread writes the port's transmit counters,
 * between vale_switch_enter() and vale_switch_leave(); any thread may write the
 * receive counters under rq_lock.
 */
static inline void
vale_count(struct vale_port *port, enum vale_counter c, uint64_t n)
{
	if (c >= VALE_C_RX_SYNC)
		mtx_assert(&port->vp_rx.rq_lock, MA_OWNED);
	else
		MPASS(atomic_load_32(&port->vp_tx.vt_busy) != 0);
	atomic_store_64(&port->vp_counter[c], port->vp_counter[c] + n);
}

/* The slot `n' after `i' in a ring of `nslots'; n <= nslots. */
static inline uint32_t
vale_slot_add(uint32_t i, uint32_t n, uint32_t nslots)
{
	i += n;
	return (i >= nslots ? i - nslots : i);
}

/* The one after `i'. */
static inline uint32_t
vale_slot_next(uint32_t i, uint32_t nslots)
{
	return (i + 1 == nslots ? 0 : i + 1);
}

/* How many slots from `from' to `to'. */
static inline uint32_t
vale_slot_sub(uint32_t to, uint32_t from, uint32_t nslots)
{
	return (to >= from ? to - from : to + nslots - from);
}

/* Slots a frame takes in a receive ring. */
static inline uint32_t
vale_frame_slots(uint32_t len)
{
	return ((len + VALE_BUF_SIZE - 1) / VALE_BUF_SIZE);
}

/* vale_region.c */
int	vale_region_create(struct vale_region *vr, const char *name,
	    uint32_t tx_slots, uint32_t rx_slots);
void	vale_region_destroy(struct vale_region *vr);
/* The buffer of that index, or NULL where the port has none such. */
static inline uint8_t *
vale_region_buf(const struct vale_region *vr, uint32_t idx)
{
	if (idx < VALE_BUF_FIRST || idx >= vr->vr_nbufs)
		return (NULL);
	return ((uint8_t *)vr->vr_bufs + (size_t)idx * VALE_BUF_SIZE);
}

/* vale_rxq.c */
int	vale_rxq_init(struct vale_rxq *rq, uint32_t nslots);
void	vale_rxq_fini(struct vale_rxq *rq);
/* The user's thread may be ahead of it; what it gave back it is done with. */
static inline uint32_t
vale_rxq_cur(const struct vale_rxq *rq)
{
	return (atomic_load_acq_32(&rq->rq_cur));
}

/* These three with rq_lock held. */
uint32_t vale_rxq_space(const struct vale_rxq *rq);
uint32_t vale_rxq_lease(struct vale_rxq *rq, uint32_t nslots);
bool	vale_rxq_publish(struct vale_rxq *rq, uint32_t lease);
/* If vale_rxq_publish() said so, and without the lock. */
void	vale_rxq_wake(struct vale_rxq *rq);

/* vale_forward.c */
void	vale_txq_init(struct vale_txq *vt, uint32_t nslots);
/* `n' frames from `from', one at least, are lost at `port'. */
void	vale_forward_drop(struct vale_port *port, enum vale_counter why,
	    uint32_t n, const struct vale_port *from);

/* vale_deliver.c: what the batch of `port' has for `dst', at least a frame. */
void	vale_deliver(struct vale_port *port, struct vale_port *dst);

/* vale_switch.c: a sender uses its switch's ports from here to there. */
void	vale_switch_enter(struct vale_port *port);
void	vale_switch_leave(struct vale_port *port);

#endif /* !_VALE_IMPL_H_ */
