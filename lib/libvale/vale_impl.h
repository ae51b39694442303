/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The switches of this process: private to these files.
 *
 *	vale_switch.c	switches and ports: open, close, lists
 *	vale_view.c	what senders see of a switch, and how that changes
 *	vale_settings.c	their settings
 *	vale_forward.c	vale_txsync(): from a transmit ring to destinations
 *	vale_deliver.c	its last stage: to a port's receive ring, or its sink
 *	vale_offload.c	virtio-net headers: frames that are cut or summed late
 *	vale_mirror.c	copies of what other ports send and get
 *	vale_rxq.c	vale_rxsync(), and the receive ring
 *	vale_region.c	a port's memory
 *	vale_shared.c	ports whose user is another process
 *	vale_inbox.c	frames that wait for such a user
 *	vale_pipe.c	pipes between such users, in the memory of ports
 *	vale_fdb.c	the learning table, in sys/dev/netmap
 *	vale_rate.c	limits of senders, there
 *	vale_share.c	fair shares of a receive ring, there
 *
 * Locks, in the order they are taken:
 *
 *	vs_change	a change of a switch; waits for its senders
 *	vale_lock	the lists of switches, their ports and settings, for a
 *			few instructions
 *	rq_lock		a receive ring, for a few instructions; a thread owns
 *			one at a time
 *	vp_rate_lock	the bucket of a port's limit, for a batch; a thread that
 *			owns it takes no other
 *
 * To read these lists a thread must own vale_lock; to change them, vs_change as
 * well: vale_switch_change().  A sender owns neither, and uses a view.
 */

#ifndef _VALE_IMPL_H_
#define	_VALE_IMPL_H_

#include <sys/param.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/systm.h>
#include <net/if.h>
#include <net/netmap.h>
#include <net/netmap_user.h>
#include <dev/netmap/vale_fdb.h>
#include <dev/netmap/vale_rate.h>
#include <dev/netmap/vale_share.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "frame_cut.h"
#include "libvale.h"
#include "vale_layout.h"

#define	VALE_CACHE_LINE	64
#define	VALE_INDIRECT_MAX UINT16_MAX	/* bytes: what slot.len can hold */
#define	VALE_COPY_SIZE	(4 * VALE_FRAME_MAX)	/* bytes */

/* A port's memory, which its user may write to.  vale_region.c. */
struct vale_region {
	void			*vr_base;
	size_t			 vr_size;
	struct netmap_if	*vr_nifp;
	char			*vr_bufs;	/* buffer 0 */
	uint32_t		 vr_nbufs;	/* including 0 and 1; it may
						   grow: VALE_NBUFS() */
	bool			 vr_mapped;	/* by vale_region_create() */
};

/* Where the rings of a pair are in such memory. */
struct vale_region_rings {
	struct netmap_ring	*rr_txring;
	struct netmap_ring	*rr_rxring;
	struct vale_csb		*rr_csb;
	uint32_t		 rr_rx_buf;	/* first buffer of rr_rxring */
};

/* A ring's user in another process: its part of the CSB.  vale_shared.c. */
struct vale_user {
	struct nm_csb_atok	*vu_atok;
	struct nm_csb_ktoa	*vu_ktoa;
};

/* Slots of a receive ring, at least one, that a sender is filling. */
struct vale_lease {
	uint32_t	vl_end;		/* the slot after them */
	bool		vl_done;	/* they are filled */
};

/*
 * The receive side of a port.  vale_rxq.c.  Constants, what senders share, what
 * senders write for the user, and what the user writes have a cache line each.
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
 * A fragment: one transmit slot of a batch.  In vt_frag a frame is its first
 * fragment, followed by the others.
 */
struct vale_frag {
	const uint8_t	*fg_buf;
	uint32_t	 fg_frame_len;	/* first fragment: bytes of the frame */
	uint16_t	 fg_len;	/* bytes of the fragment */
	uint16_t	 fg_next;	/* first: next frame of the list */
	uint16_t	 fg_nfrags;	/* first: fragments of the frame */
	uint16_t	 fg_slots;	/* first: receive slots it needs, as
					   it is */
	uint16_t	 fg_offload;	/* first, if it has others: which of
					   vo_frame, or VALE_PLAIN */
};

#define	VALE_END	UINT16_MAX	/* ends a list of frames */
#define	VALE_PLAIN	UINT16_MAX	/* complete, and not to be cut */

/* The frames of a batch that have virtio-net headers: vale_offload.c. */
#define	VALE_OFFLOADS	256

struct vale_offloads {
	uint32_t	 vo_frames;
	uint32_t	 vo_used;	/* bytes of vo_headers */
	/* What the headers say; no fragments. */
	struct frame	 vo_frame[VALE_OFFLOADS];
	/* Copies of the frames' own headers. */
	uint8_t		 vo_headers[64 * 1024];
};

/* Frames of a batch for one destination, or those to flood. */
struct vale_list {
	uint16_t	ls_first;	/* index of vt_frag */
	uint16_t	ls_last;
	uint32_t	ls_frames;
	uint32_t	ls_slots;
};

/* The transmit side of a port, for the sending thread.  vale_forward.c. */
struct vale_txq {
	uint32_t	 vt_busy;	/* odd: has a view; atomic: vale_view.c */
	const struct vale_view *vt_view; /* meanwhile */
	uint32_t	 vt_nslots;	/* constant */
	uint32_t	 vt_cur;	/* first slot not consumed */
	uint32_t	 vt_nfrags;
	uint32_t	 vt_ndsts;
	bool		 vt_indirect;	/* a fragment is not in a buffer */
	/* Slow memory: vale_deliver.c. */
	uint64_t	 vt_now_ns;	/* when the last delivery ended */
	uint64_t	 vt_copy_ns;	/* copy frames first until then */
	bool		 vt_copied;	/* those of this batch were */
	uint8_t		*vt_copy;	/* VALE_COPY_SIZE bytes: copies of
					   frames */
	uint32_t	 vt_copy_used;	/* bytes of it */
	uint64_t	 vt_watch_ns;	/* look for sleeps until then */
	bool		 vt_watched;	/* in this batch */
	long		 vt_sleeps;	/* of the thread, before the delivery */
	uint8_t		 vt_dst[VALE_FDB_PORTS];	/* with a list */
	struct vale_list vt_list[VALE_FDB_PORTS + 1];	/* and flooded */
	struct vale_offloads vt_offloads;
	/* The last frame may exceed the batch. */
	struct vale_frag vt_frag[VALE_BATCH_MAX + NETMAP_MAX_FRAGS];
};

/*
 * A ring pair of a port, with what its own threads write.  All else is of the
 * port.
 */
struct vale_pair {
	struct vale_desc	 pa_desc;	/* must be first */
	struct vale_port	*pa_port;
	unsigned int		 pa_index;	/* of vp_pair */
	uint32_t		 pa_rx_buf;	/* the first buffer of its
						   receive ring */
	struct vale_user	 pa_tx_user;	/* if vp_shared */
	struct vale_user	 pa_rx_user;
	struct vale_port	*pa_inbox;	/* if vp_shared, or NULL */
	uint64_t		 pa_slow_ns;	/* atomic: the user's memory is
						   slow until then */
	_Alignas(VALE_CACHE_LINE)
	struct vale_txq		 pa_tx;
	_Alignas(VALE_CACHE_LINE)
	struct vale_rxq		 pa_rx;
	/* vale_count() says who writes which. */
	_Alignas(VALE_CACHE_LINE)
	uint64_t		 pa_counter[VALE_NCOUNTERS];
};

/* A port, or a monitor of one. */
struct vale_port {
	struct vale_switch	*vp_switch;
	struct vale_common	 vp_common;
	uint8_t			 vp_index;
	bool			 vp_monitor;	/* only a mirror: not in
						   vs_port */
	struct vale_region	 vp_region;
	/* Written while no view has the port: vale_view.c. */
	uint8_t			 vp_header;	/* vale_set_header() */
	void			(*vp_sink)(void *, struct frame_source *);
	void			*vp_sink_arg;
	/* The locks of a change. */
	bool			 vp_out;	/* leave it out of views */
	bool			 vp_private;
	uint8_t			 vp_mirror_what; /* VALE_MIRROR_TX, _RX */
	char			 vp_mirror_of[VALE_NAME_SIZE];	/* or "" */
	TAILQ_ENTRY(vale_port)	 vp_mirror_link; /* if vp_mirror_of */
	bool			 vp_limited;	/* vp_rate has a limit; atomic,
						   to look without the lock */
	bool			 vp_shared;	/* the user is another process,
						   and is woken so */
	void			(*vp_wake)(void *arg, unsigned int ring,
				    bool tx);
	void			*vp_wake_arg;
	/* What all its rings send.  vp_rate_lock. */
	_Alignas(VALE_CACHE_LINE)
	pthread_mutex_t		 vp_rate_lock;
	struct vale_rate	 vp_rate;
	unsigned int		 vp_npairs;
	struct vale_pair	 vp_pair[];
};

/* Bytes of a port with `n' ring pairs. */
static inline size_t
vale_port_size(unsigned int n)
{
	return (sizeof(struct vale_port) + n * sizeof(struct vale_pair));
}

/* The ring pair of a descriptor. */
static inline struct vale_pair *
vale_desc_pair(struct vale_desc *d)
{
	return ((struct vale_pair *)(void *)d);
}

_Static_assert(offsetof(struct vale_pair, pa_desc) == 0, "vale_desc_pair()");

/* The port of a descriptor. */
static inline struct vale_port *
vale_desc_port(struct vale_desc *d)
{
	return (vale_desc_pair(d)->pa_port);
}

/* All ring pairs of a port. */
#define	VALE_PAIRS_FOREACH(pair, port)					\
	for ((pair) = (port)->vp_pair;					\
	    (pair) < (port)->vp_pair + (port)->vp_npairs; (pair)++)

/* Mirrors of a switch. */
#define	VALE_MIRRORS	512

/* A port that gets copies of what the port with index vm_of sends or gets. */
struct vale_mirror {
	struct vale_port	*vm_port;
	uint8_t			 vm_of;
	uint8_t			 vm_what;	/* VALE_MIRROR_TX, _RX */
};

/* What senders see of a switch.  vale_view.c. */
struct vale_view {
	unsigned int		 vw_nports;
	unsigned int		 vw_nprivate;
	unsigned int		 vw_nmirrors;
	uint8_t			 vw_active[VALE_FDB_PORTS]; /* indexes in use */
	bool			 vw_private[VALE_FDB_PORTS];
	struct vale_port	*vw_port[VALE_FDB_PORTS];
	struct vale_mirror	 vw_mirror[VALE_MIRRORS];
};

struct vale_switch {
	/* Senders read these two, and the table. */
	uintptr_t		 vs_view;	/* struct vale_view; atomic */
	uint32_t		 vs_batch;	/* vale_set_batch(); atomic */
	/* vale_lock. */
	TAILQ_ENTRY(vale_switch) vs_link;
	char			 vs_name[VALE_NAME_SIZE];
	unsigned int		 vs_refs;	/* ports, monitors, changes */
	/* vale_lock; to write also vs_change. */
	pthread_mutex_t		 vs_change;
	unsigned int		 vs_nports;
	unsigned int		 vs_nmirrors;
	struct vale_port	*vs_port[VALE_FDB_PORTS];
	TAILQ_HEAD(, vale_port)	 vs_mirrors;
	uint8_t			 vs_weight[VALE_FDB_PORTS];	/* atomic */
	struct vale_view	 vs_views[2];	/* vs_view, and a spare */
	struct vale_fdb		 vs_fdb;
};

/* Prefetch a cache line for writing; `p' may be any address. */
#ifdef __x86_64__
#define	VALE_FETCH(p)	__asm__ volatile("prefetchw (%0)" : : "r" (p))
#else
#define	VALE_FETCH(p)	__builtin_prefetch((p), 1)
#endif

/*
 * Add to a counter.  The sending thread writes the pair's transmit counters;
 * any thread may write the receive counters under rq_lock.
 */
static inline void
vale_count(struct vale_pair *pair, enum vale_counter c, uint64_t n)
{
	if (c >= VALE_C_RX_SYNC)
		mtx_assert(&pair->pa_rx.rq_lock, MA_OWNED);
	atomic_store_64(&pair->pa_counter[c], pair->pa_counter[c] + n);
}

/* The slot `n' slots after `i' in a ring of `nslots'; n <= nslots. */
static inline uint32_t
vale_slot_add(uint32_t i, uint32_t n, uint32_t nslots)
{
	i += n;
	return (i >= nslots ? i - nslots : i);
}

/* The slot after `i'. */
static inline uint32_t
vale_slot_next(uint32_t i, uint32_t nslots)
{
	return (i + 1 == nslots ? 0 : i + 1);
}

/* The number of slots from `from' to before `to'. */
static inline uint32_t
vale_slot_sub(uint32_t to, uint32_t from, uint32_t nslots)
{
	return (to >= from ? to - from : to + nslots - from);
}

/* The number of receive slots that a frame of `len' bytes needs. */
static inline uint32_t
vale_frame_slots(uint32_t len)
{
	return ((len + VALE_BUF_SIZE - 1) / VALE_BUF_SIZE);
}

/* vale_region.c.  All numbers must be within their limits, without defaults. */
size_t	vale_region_size(const struct vale_params *params,
	    uint32_t extra_bufs);
/* The offset of buffer 0. */
size_t	vale_region_bufs(const struct vale_params *params);
/*
 * In the memory of `shared', or in its own if that is NULL.  *vr must be
 * zero-filled.  0 or ENOMEM.
 */
int	vale_region_create(struct vale_region *vr, const char *name,
	    const struct vale_params *params, const struct vale_shared *shared);
/* Find the rings of pair `pair'.  The arguments of vale_region_create(). */
void	vale_region_find(const struct vale_region *vr, unsigned int pair,
	    const struct vale_params *params, const struct vale_shared *shared,
	    struct vale_region_rings *rr);
void	vale_region_destroy(struct vale_region *vr);
/*
 * vr_nbufs, of which either value is right while it grows.  A plain load can be
 * an operand of the comparison: an atomic one costs a frame 3% more.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define	VALE_NBUFS(vr)	atomic_load_32(&(vr)->vr_nbufs)
#endif
#endif
#ifndef VALE_NBUFS
#define	VALE_NBUFS(vr)	((vr)->vr_nbufs)
#endif
/* The buffer with index `idx', or NULL if it is not of the port's slots. */
static inline uint8_t *
vale_region_buf(const struct vale_region *vr, uint32_t idx)
{
	/* clang makes fewer instructions of this than of vale_buf_valid(). */
	if (idx < VALE_BUF_FIRST || idx >= VALE_NBUFS(vr))
		return (NULL);
	return ((uint8_t *)vr->vr_bufs + (size_t)idx * VALE_BUF_SIZE);
}

/*
 * The buffer of receive slot `i'.  The user may have changed its index; if
 * `vr', the port's memory, has no such buffer, the slot gets back the buffer it
 * was created with, and *badbufs counts it.
 */
static inline uint8_t *
vale_rx_buf(const struct vale_pair *pair, const struct vale_region *vr,
    struct netmap_slot *slot, uint32_t i, uint32_t *badbufs)
{
	uint8_t *buf;
	uint32_t idx;

	buf = vale_region_buf(vr, atomic_load_32(&slot->buf_idx));
	if (buf == NULL) {
		idx = pair->pa_rx_buf + i;
		slot->buf_idx = idx;
		buf = (uint8_t *)vr->vr_bufs + (size_t)idx * VALE_BUF_SIZE;
		++*badbufs;
	}
	return (buf);
}

#ifndef CLOCK_MONOTONIC_COARSE
#define	CLOCK_MONOTONIC_COARSE	CLOCK_MONOTONIC
#endif

/* The time, with the resolution of a clock tick. */
static inline uint64_t
vale_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* How often the calling thread has slept, as far as the kernel counts. */
static inline long
vale_sleeps(void)
{
	struct rusage ru;

	return (getrusage(RUSAGE_THREAD, &ru) == 0 ? ru.ru_nvcsw : 0);
}

/*
 * vale_shared.c: show a user in another process the first slot not consumed
 * and the tail.  Returns true if the caller must call vp_wake().
 */
bool	vale_user_show(const struct vale_user *vu, uint32_t cur, uint32_t tail);

/* vale_rxq.c */
/* With a user in another process, or NULL.  Returns 0 or an errno. */
int	vale_rxq_init(struct vale_rxq *rq, uint32_t nslots,
	    const struct vale_user *user);
void	vale_rxq_fini(struct vale_rxq *rq);
/*
 * The first slot of the user.  The user may return more slots at any time; it
 * no longer reads those before this one.
 */
static inline uint32_t
vale_rxq_cur(const struct vale_rxq *rq)
{
	return (atomic_load_acq_32(&rq->rq_cur));
}

/* The caller of these four must own rq_lock. */
/*
 * Take the slots that a user in another process (rq_user) has returned.  False
 * if its head is invalid; then nothing changes.
 */
bool	vale_rxq_take(struct vale_rxq *rq);
/* The number of free slots. */
uint32_t vale_rxq_space(const struct vale_rxq *rq);
/* Lease `nslots' slots, 1 to vale_rxq_space().  Returns the first. */
uint32_t vale_rxq_lease(struct vale_rxq *rq, uint32_t nslots);
/*
 * End a lease, whose slots are filled.  Returns true if the caller must call
 * vale_rxq_wake() after it has released the lock.
 */
bool	vale_rxq_publish(struct vale_rxq *rq, uint32_t lease);
void	vale_rxq_wake(struct vale_pair *pair);

/*
 * vale_offload.c
 */
/*
 * Take the virtio-net header of the frame that has the first `*nfrags' of
 * fragments `fg', `*len' bytes in all; `header' is the port's vp_header.  If it
 * asks for nothing, the frame becomes plain.  If it asks for
 * something, the frame's own headers become a fragment of their own, which no
 * guest can change, and fg[0].fg_offload is set.
 *
 * Returns the reason to drop the frame, or 0.
 */
enum vale_counter vale_offload_collect(struct vale_txq *vt,
	    unsigned int header, struct vale_frag *fg, uint32_t *nfrags,
	    uint32_t *len);
/* Whether the batch has space for one more of these frames. */
static inline bool
vale_offload_space(const struct vale_offloads *vo)
{
	return (vo->vo_frames < nitems(vo->vo_frame) &&
	    sizeof(vo->vo_headers) - vo->vo_used >= FRAME_CUT_HDRLEN);
}

/* What a frame of the batch asks for, or NULL. */
static inline const struct frame *
vale_offload(const struct vale_txq *vt, const struct vale_frag *fg)
{
	if (fg->fg_nfrags == 1 || fg->fg_offload == VALE_PLAIN)
		return (NULL);
	return (&vt->vt_offloads.vo_frame[fg->fg_offload]);
}

/*
 * How many frames it makes where it is cut, and, in *bytes, their length in
 * all.
 */
uint32_t vale_offload_makes(const struct vale_txq *vt,
	    const struct vale_frag *fg, uint64_t *bytes);
/*
 * How many slots a frame of the batch takes in a ring of a port whose vp_header
 * is `header'.
 */
uint32_t vale_offload_slots(const struct vale_txq *vt, unsigned int header,
	    const struct vale_frag *fg);
/*
 * Put it into the slots from `i' on, and count those with invalid buffers in
 * *badbufs.  Returns the slot after them.  It has a virtio-net header, or `dst'
 * wants one for every frame.
 */
uint32_t vale_offload_deliver(const struct vale_txq *vt,
	    struct vale_pair *dst, const struct vale_frag *fg, uint32_t i,
	    uint32_t *badbufs);

/* vale_forward.c */
/* Returns 0 or ENOMEM. */
int	vale_txq_init(struct vale_txq *vt, uint32_t nslots);
/* Stage 1, a batch of the slots before `head', which must be in the ring. */
void	vale_forward_collect(struct vale_pair *pair, uint32_t head);
/* All stages for all of them. */
void	vale_forward(struct vale_pair *pair, uint32_t head);
/* Count a head outside the ring. */
void	vale_forward_invalid(struct vale_pair *pair);
void	vale_txq_fini(struct vale_txq *vt);
/* Count `n' dropped frames, at least one, of sender `from' at `pair'. */
void	vale_forward_drop(struct vale_pair *pair, enum vale_counter reason,
	    uint32_t n, const struct vale_port *from);

/* A list of no frames. */
static inline void
vale_list_init(struct vale_list *ls)
{
	ls->ls_first = ls->ls_last = VALE_END;
	ls->ls_frames = ls->ls_slots = 0;
}

/* Append the frame at index `frame' of vt_frag. */
static inline void
vale_list_append(struct vale_txq *vt, struct vale_list *ls, uint32_t frame)
{
	MPASS(frame < vt->vt_nfrags);
	if (ls->ls_first == VALE_END)
		ls->ls_first = frame;
	else
		vt->vt_frag[ls->ls_last].fg_next = frame;
	ls->ls_last = frame;
	vt->vt_frag[frame].fg_next = VALE_END;
	ls->ls_frames++;
	ls->ls_slots += vt->vt_frag[frame].fg_slots;
}

/*
 * vale_deliver.c: deliver to `port' the frames of the batch of `pair' in
 * the list of port number `index', and the flooded ones; there must be at least
 * one.
 */
void	vale_deliver(struct vale_pair *pair, struct vale_port *port,
	    unsigned int index);
/* Deliver all frames of the batch of an inbox to its ring pair. */
void	vale_deliver_inbox(struct vale_pair *in, struct vale_pair *dst);

/*
 * vale_inbox.c: the inbox of a ring pair, whose receive ring exists.  0 or an
 * errno.
 */
int	vale_inbox_create(struct vale_pair *pair);
/* It may have none. */
void	vale_inbox_destroy(struct vale_pair *pair);
/* The port has its place in the switch. */
void	vale_inbox_attach(struct vale_pair *pair);
/* Bytes of the inboxes of a port.  No number may be a default. */
size_t	vale_inbox_size(const struct vale_params *params);
/* All that was in it is delivered.  Any thread. */
bool	vale_inbox_empty(struct vale_port *in);

/*
 * vale_mirror.c: copies of a batch of `pair' to the mirrors of its port, before
 * lookup; and of what it had for `dst', while the lists are unchanged.
 */
void	vale_mirror_sent(struct vale_pair *pair);
void	vale_mirror_received(struct vale_pair *pair,
	    const struct vale_port *dst);
/*
 * Make the port a mirror of `of', or of none if `what' is 0, in the next view.
 * Returns 0 or ENOSPC.
 */
int	vale_mirror_set(struct vale_port *port, const char *of,
	    unsigned int what);

/*
 * vale_view.c: a sender has a view, vt_view, between the two.  It waits for
 * nobody.
 */
static inline bool
vale_view_entered(const struct vale_pair *pair)
{
	return (atomic_load_32(&pair->pa_tx.vt_busy) % 2 != 0);
}

static inline void
vale_view_enter(struct vale_pair *pair)
{
	struct vale_txq *vt = &pair->pa_tx;
	const uint32_t busy = vt->vt_busy;

	MPASS(!vale_view_entered(pair));
	atomic_store_32(&vt->vt_busy, busy + 1);
	atomic_thread_fence_seq_cst();
	vt->vt_view = (const struct vale_view *)
	    atomic_load_acq_ptr(&pair->pa_port->vp_switch->vs_view);
}

static inline void
vale_view_leave(struct vale_pair *pair)
{
	struct vale_txq *vt = &pair->pa_tx;

	MPASS(vale_view_entered(pair));
	atomic_store_rel_32(&vt->vt_busy, vt->vt_busy + 1);
}

/*
 * Let senders see what a change has changed, and wait until none has an earlier
 * view; vale_lock is released meanwhile.  The locks of a change.
 */
void	vale_view_publish(struct vale_switch *vs);

/*
 * vale_switch.c
 */
extern pthread_mutex_t vale_lock;
/* The caller of these four must own it. */
/* The switch whose name is the first `len' bytes of `name', or NULL. */
struct vale_switch *vale_switch_find(const char *name, size_t len);
/* The port `name' ("vale0:vm1") of a switch, of any switch; or NULL. */
struct vale_port *vale_switch_port(const struct vale_switch *vs,
	    const char *name);
struct vale_port *vale_port_find(const char *name);
/*
 * Begin a change: wait for vs_change.  vale_lock is released meanwhile, so the
 * caller must look again for what it changes.
 */
void	vale_switch_change(struct vale_switch *vs);
/* End it.  The switch is freed if nothing is left of it. */
void	vale_switch_changed(struct vale_switch *vs);

#endif /* !_VALE_IMPL_H_ */
