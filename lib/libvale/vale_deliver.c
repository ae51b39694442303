/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The last stage of forwarding (vale_forward.c): deliver a batch to one
 * destination.
 *
 * The destination's own list and the list of flooded frames are merged in the
 * order in which the frames were sent.  If the destination has a sink, the sink
 * takes what it wants.  For the rest, the sender leases slots of the receive
 * ring, all at once, fills them, and publishes them, all at once: vale_rxq.c.
 * The sender takes rq_lock twice a batch, and copies and calls sinks without
 * the lock.  A frame that does not fit in the free slots is dropped; a shorter
 * one after it may still fit.  While frames are dropped, each sender gets only
 * its share of the slots: vale_share.h.  A sink needs no shares: it is asked
 * only while the ring is empty, which the ring of a receiver that is too slow
 * for its senders is not.
 *
 * The frames' memory may be a guest's, and a page that the guest's owner
 * withdraws comes back when the owner likes.  The same is true of the receiving
 * guest's memory, to which a sink copies.  A thread that has not chosen to deal
 * with such a guest does not wait for that guest: frames for several
 * destinations are copied before the first of them gets any (vale_forward.c),
 * and go through rings in this process's memory.  So do copies for mirrors.  A
 * user in another process, which can withdraw its ring, has an inbox for such
 * frames (vale_shared.c).
 *
 * For other frames the receiver waits: for the sink, or for frames behind an
 * open lease.  The pages were resident a moment ago, but a page can go at any
 * time, so a delivery that takes SLOW_NS, in which the thread slept, has a
 * consequence that lasts SLOW_TIMES as long:
 *
 *	the frames were in the sender's memory	 vale_txsync() copies them
 *						 before anybody can wait for
 *						 them
 *	they were not, and a sink, or a ring	 the receiver's memory is slow:
 *	in another process's memory, took	 its sink is not called, its
 *	them for SLOW_SINK_NS or more		 frames go to its inbox
 *
 * So such deliveries hold up others for little more than 1/SLOW_TIMES of the
 * time for each cause.  Of a delivery longer than SLOW_MAX_NS only that much
 * counts: the process was stopped, more likely than not.
 *
 * A thread may also have waited for a processor.  To know how often a thread
 * slept in a batch takes a system call, so that is asked only for SLOW_TIMES as
 * long as a delivery took: the first slow one has no other consequence.
 *
 * Frames of ring i of their sender go to ring i modulo the number of rings of
 * the destination, as in netmap.  So one thread may receive what one thread
 * sends, whatever the other rings do.  Flooded frames go there, too, where
 * netmap's go to ring 0: otherwise they could pass others.
 *
 * Frames from one ring to another arrive in the order in which they were sent,
 * single or flooded, through the ring or through the sink:
 *
 * - A sender takes the slots of its ring in order, the lists and the merge keep
 *   that order, and leases are published in the order in which they were made.
 * - A sink is called only while the receive ring is empty, all its slots are
 *   returned, and its user does not poll it.  So no older frame of this sender
 *   is in the ring, and the sender, which is here, adds none.  Frames that
 *   other senders add meanwhile have no order relative to these.
 */

#include <sys/fast_path.h>
#include <sys/uio.h>

#include <string.h>

#include "frame.h"
#include "vale_clock.h"
#include "vale_deliver.h"
#include "vale_offload.h"
#include "vale_pair.h"
#include "vale_probes.h"
#include "vale_slot.h"
#include "vale_switch.h"
#include "vale_user.h"
#include "vale_view.h"

/* Prefetch a cache line for writing; `p' may be any address. */
#ifdef __x86_64__
#define	DELIVER_FETCH(p) __asm__ volatile("prefetchw (%0)" : : "r" (p))
#else
#define	DELIVER_FETCH(p) __builtin_prefetch((p), 1)
#endif

/* The prefetch distance, in slots of a receive ring. */
#define	AHEAD		16

/* A mistake costs a sender a copy, but a receiver the direct way. */
#define	SLOW_NS		50000000
#define	SLOW_SINK_NS	200000000
#define	SLOW_MAX_NS	10000000000
#define	SLOW_TIMES	64

/* A merge of two lists of frames, for one destination. */
struct vale_merge {
	const struct vale_txq	*mg_txq;
	const struct vale_frag	*mg_frag;
	unsigned int		 mg_header;	/* the port's vp_header */
	uint32_t		 mg_own;	/* next of each list */
	uint32_t		 mg_flood;
	uint32_t		 mg_frames;	/* left */
	uint32_t		 mg_slots;	/* that these need */
	uint64_t		 mg_bytes;	/* of the frames taken */
};

/* Return the next frame, or VALE_END if none is left. */
static uint32_t
merge_first(const struct vale_merge *mg)
{
	return (mg->mg_own < mg->mg_flood ? mg->mg_own : mg->mg_flood);
}

/* Take the next frame; a frame must be left. */
static const struct vale_frag *
merge_take(struct vale_merge *mg)
{
	const struct vale_frag *fg;

	MPASS(mg->mg_frames > 0);
	if (mg->mg_own < mg->mg_flood) {
		fg = &mg->mg_frag[mg->mg_own];
		mg->mg_own = fg->fg_next;
	} else {
		fg = &mg->mg_frag[mg->mg_flood];
		mg->mg_flood = fg->fg_next;
	}
	MPASS(mg->mg_slots >= fg->fg_slots);
	mg->mg_frames--;
	mg->mg_slots -= fg->fg_slots;
	mg->mg_bytes += fg->fg_frame_len;
	return (fg);
}

/* Return how many of `space' free slots the batch will fill. */
static uint32_t
deliver_fit(struct vale_merge mg, uint32_t space)
{
	uint32_t left = space, need;

	while (left > 0 && mg.mg_frames > 0) {
		need = vale_offload_slots(mg.mg_txq, mg.mg_header,
		    merge_take(&mg));
		if (need <= left)
			left -= need;
	}
	return (space - left);
}

/* Return whether a frame may take another number of slots than fg_slots. */
static bool
deliver_offloads(const struct vale_merge *mg)
{
	return (mg->mg_txq->vt_offloads.of_frames > 0 ||
	    mg->mg_header > VALE_HEADER_FRAME);
}

/*
 * Deliver frames of one list, at most `max', up to the first that is not
 * vale_frag_single(), into the slots from `i' on: the fast path of
 * deliver_frame().  Returns their number.
 *
 * These slots and buffers are in the cache of the receiver's processor, so each
 * is prefetched `ahead' slots before its turn, also beyond the end of this
 * batch.
 *
 * Not inlined, and the order of the statements keeps few variables live across
 * a call of memcpy(): bench/count.sh counts the instructions.
 */
static uint32_t __attribute__((__noinline__))
deliver_single_slot(struct vale_pair *pair, struct vale_merge *mg, uint32_t i,
    uint32_t max, uint32_t ahead, uint32_t *badbufs)
{
	struct netmap_slot *const slots = pair->pa_desc.rxring->slot;
	const uint32_t nslots = pair->pa_rx.rq_nslots;
	struct netmap_slot *const end = slots + nslots;
	struct netmap_slot *const last = slots + vale_slot_add(i, max, nslots);
	struct netmap_slot *slot = slots + i;
	struct netmap_slot *fetch = slots + vale_slot_add(i, ahead, nslots);
	const struct vale_region *vr = &pair->pa_port->vp_region;
	const struct vale_frag *const frags = mg->mg_frag;
	const uint32_t first = merge_first(mg);
	const uint32_t other = first == mg->mg_own ? mg->mg_flood : mg->mg_own;
	const struct vale_frag *fg;
	uint32_t frame, len, n;
	uint64_t bytes = 0;

	MPASS(max < nslots);
	for (frame = first; slot != last && frame < other;
	    frame = fg->fg_next) {
		fg = &frags[frame];
		if (!vale_frag_single(fg))
			break;
		len = fg->fg_frame_len;
		slot->len = len;
		slot->flags = 1 << 8;
		bytes += len;
		vale_slot_copy(vale_rx_buf(pair, vr, slot, slot - slots,
		    badbufs), fg->fg_buf, len);
		if (++slot == end)
			slot = slots;
		DELIVER_FETCH(fetch);
		DELIVER_FETCH(vale_region_buf(vr,
		    atomic_load_32(&fetch->buf_idx)));
		if (++fetch == end)
			fetch = slots;
	}
	n = vale_slot_sub(slot - slots, i, nslots);
	if (first == mg->mg_own)
		mg->mg_own = frame;
	else
		mg->mg_flood = frame;
	mg->mg_frames -= n;
	mg->mg_slots -= n;
	mg->mg_bytes += bytes;
	return (n);
}

/*
 * Copy a frame, unchanged, into the slots from `i' on.  Returns the slot after
 * them.
 */
static uint32_t
deliver_frame(struct vale_pair *pair, const struct vale_frag *fg, uint32_t i,
    uint32_t *badbufs)
{
	struct netmap_ring *ring = pair->pa_desc.rxring;
	const struct vale_region *vr = &pair->pa_port->vp_region;
	struct netmap_slot *slot;
	uint8_t *buf;
	uint32_t left = fg->fg_frame_len, nslots = fg->fg_slots;
	uint32_t len, n, off = 0, used;

	while (left > 0) {
		slot = &ring->slot[i];
		buf = vale_rx_buf(pair, vr, slot, i, badbufs);
		len = left < VALE_BUF_SIZE ? left : VALE_BUF_SIZE;
		left -= len;
		for (used = 0; used < len; used += n) {
			if (off == fg->fg_len) {
				fg++;
				off = 0;
			}
			n = fg->fg_len - off;
			if (n > len - used)
				n = len - used;
			memcpy(buf + used, fg->fg_buf + off, n);
			off += n;
		}
		slot->len = len;
		slot->flags = nslots << 8 | (left > 0 ? NS_MOREFRAG : 0);
		i = vale_slot_next(i, pair->pa_rx.rq_nslots);
	}
	return (i);
}

/*
 * Return the number of slots, of `space' free ones, that the batch will fill,
 * if that may be less than the batch needs, or is not just what mg_slots says.
 * While the ring is short of slots the sender gets only its share
 * (vale_share.h), and the slots count.
 */
static uint32_t
deliver_some(const struct vale_port *port, struct vale_rxq *rq,
    struct vale_merge mg, uint32_t space)
{
	struct vale_share *sh = &rq->rq_share;
	uint32_t first, left, max;

	if (!vale_share_on(sh))
		return (deliver_fit(mg, space));
	first = vale_offload_slots(mg.mg_txq, mg.mg_header,
	    &mg.mg_frag[merge_first(&mg)]);
	/* Call vale_share_max() once: weights change meanwhile. */
	max = vale_share_max(sh, port->vp_index, rq->rq_nslots - 1 - space,
	    first);
	left = deliver_fit(mg, MIN(space, max));
	if (left > 0)
		vale_share_take(sh, port->vp_index, left);
	return (left);
}

/*
 * Drop `n' frames that found no slot.  Not inlined, for the registers of
 * deliver_single_slot().
 */
static void __attribute__((__noinline__))
deliver_drop(const struct vale_port *port, struct vale_pair *dst, uint32_t n)
{
	vale_pair_drop(dst, VALE_C_RX_DROP_FULL, n, port);
	vale_share_refused(&dst->pa_rx.rq_share, port->vp_index);
}

/* Deliver through the ring the frames left, at least one. */
static void
deliver_ring(struct vale_pair *pair, struct vale_pair *dst,
    struct vale_merge *mg)
{
	struct vale_rxq *rq = &dst->pa_rx;
	const struct vale_frag *fg;
	const struct vale_txq *vt = mg->mg_txq;
	uint64_t bytes, before = mg->mg_bytes, skipped = 0;
	uint32_t ahead, frames = 0, lease, left, badbufs = 0, n, slot, space;
	uint32_t need, total = mg->mg_frames;
	bool wake;

	pthread_mutex_lock(&rq->rq_lock);
	left = mg->mg_slots;
	if (rq->rq_user != NULL && !vale_rxq_take(rq))
		vale_count(dst, VALE_C_RX_BAD_RING, 1);
	space = vale_rxq_space(rq);
	if (left > space || deliver_offloads(mg) ||
	    vale_share_on(&rq->rq_share))
		left = deliver_some(pair->pa_port, rq, *mg, space);
	if (left == 0) {
		deliver_drop(pair->pa_port, dst, total);
		pthread_mutex_unlock(&rq->rq_lock);
		return;
	}
	lease = slot = vale_rxq_lease(rq, left);
	pthread_mutex_unlock(&rq->rq_lock);

	/* Do not prefetch slots that the user still reads. */
	ahead = space - left >= AHEAD ? AHEAD : 0;
	for (;;) {
		n = 0;
		if (mg->mg_header <= VALE_HEADER_FRAME)
			n = FAST_PATH(deliver_single_slot(dst, mg, slot, left,
			    ahead, &badbufs));
		frames += n;
		left -= n;
		slot = vale_slot_add(slot, n, rq->rq_nslots);
		if (left == 0 || mg->mg_frames == 0)
			break;
		fg = merge_take(mg);
		need = vale_offload_slots(vt, mg->mg_header, fg);
		if (need > left) {
			skipped += fg->fg_frame_len;
			continue;
		}
		left -= need;
		frames++;
		if (vale_offload(vt, fg) != NULL ||
		    mg->mg_header > VALE_HEADER_FRAME)
			slot = vale_offload_deliver(vt, mg->mg_header, dst, fg,
			    slot, &badbufs);
		else
			slot = deliver_frame(dst, fg, slot, &badbufs);
	}
	bytes = mg->mg_bytes - before - skipped;
	/* deliver_fit() chose the same frames. */
	MPASS(left == 0);

	pthread_mutex_lock(&rq->rq_lock);
	MPASS(slot == rq->rq_lease[lease].le_end);
	wake = vale_rxq_publish(rq, lease);
	vale_count(dst, VALE_C_RX_BATCH, 1);
	vale_count(dst, VALE_C_RX_FRAME, frames);
	vale_count(dst, VALE_C_RX_BYTE, bytes);
	vale_count(dst, VALE_C_RX_COPY, frames);
	vale_count(dst, VALE_C_RX_BAD_BUF, badbufs);
	if (frames != total)
		deliver_drop(pair->pa_port, dst, total - frames);
	vale_count(dst, VALE_C_RX_WAKE, wake);
	VALE_PROBE(dst, DELIVER,
	    (const char *)pair->pa_port->vp_common.name, frames, bytes,
	    vale_slot_sub(rq->rq_next, vale_rxq_cur(rq), rq->rq_nslots));
	pthread_mutex_unlock(&rq->rq_lock);
	if (wake) {
		VALE_PROBE(dst, WAKE);
		vale_rxq_wake(dst);
	}
}

/* The frames left, as a frame source for a sink. */
struct merge_source {
	struct frame_source	 ms_source;
	struct vale_merge	*ms_merge;
};

static bool
merge_peek(struct frame_source *source, struct frame *frame)
{
	const struct vale_merge *mg =
	    __containerof(source, struct merge_source, ms_source)->ms_merge;
	const struct frame *offload;
	const struct vale_frag *fg;
	struct iovec *iov = frame->f_iov;
	int i;

	if (mg->mg_frames == 0)
		return (false);
	fg = &mg->mg_frag[merge_first(mg)];
	if (vale_frag_single(fg)) {
		iov->iov_base = __DECONST(void *, fg->fg_buf);
		iov->iov_len = fg->fg_len;
		frame_set(frame, 1, fg->fg_len);
		return (true);
	}
	offload = vale_offload(mg->mg_txq, fg);
	/* The ring has the form that this port's user wants. */
	if (offload != NULL && mg->mg_header != VALE_HEADER_FRAME)
		return (false);
	for (i = 0; i < fg->fg_nfrags; i++) {
		iov[i].iov_base = __DECONST(void *, fg[i].fg_buf);
		iov[i].iov_len = fg[i].fg_len;
	}
	frame_set(frame, i, fg->fg_frame_len);
	if (offload != NULL)
		frame_set_known(frame, offload);
	return (true);
}
_Static_assert(NETMAP_MAX_FRAGS <= FRAME_MAXIOV, "fragments of a frame");

static void
merge_next(struct frame_source *source)
{
	merge_take(__containerof(source, struct merge_source,
	    ms_source)->ms_merge);
}

/* Judge a slow delivery to the user of `dst', or to a ring if that is NULL. */
static void
deliver_slow(struct vale_pair *pair, struct vale_pair *dst, uint64_t took_ns)
{
	struct vale_txq *vt = &pair->pa_tx;
	uint64_t until_ns = vt->vt_now_ns +
	    MIN(took_ns, SLOW_MAX_NS) * SLOW_TIMES;
	long before = vt->vt_sleeps;
	bool checked = vt->vt_checked;

	vt->vt_check_ns = until_ns;
	vt->vt_checked = true;
	vt->vt_sleeps = vale_sleeps();
	if (!checked || vt->vt_sleeps == before)
		return;
	if (vt->vt_indirect && !vt->vt_copied) {
		vt->vt_copy_ns = until_ns;
		vale_count(pair, VALE_C_TX_SLOW, 1);
	} else if (dst != NULL && took_ns >= SLOW_SINK_NS) {
		atomic_store_64(&dst->pa_slow_ns, until_ns);
		pthread_mutex_lock(&dst->pa_rx.rq_lock);
		vale_count(dst, VALE_C_RX_SLOW, 1);
		pthread_mutex_unlock(&dst->pa_rx.rq_lock);
	}
}

/* Note that a delivery has ended, and whether it was slow. */
static void
deliver_timed(struct vale_pair *pair, struct vale_pair *dst)
{
	struct vale_txq *vt = &pair->pa_tx;
	uint64_t now_ns, took_ns;

	now_ns = vale_now_ns();
	took_ns = now_ns - vt->vt_now_ns;
	vt->vt_now_ns = now_ns;
	if (took_ns >= SLOW_NS)
		deliver_slow(pair, dst, took_ns);
}

/*
 * Let the sink take frames, if the ring is empty and not polled: the top of
 * this file says why.  Not inlined, because vale_deliver() would then keep
 * fewer variables in registers.
 */
static void __attribute__((__noinline__))
deliver_direct(struct vale_pair *pair, struct vale_pair *dst,
    struct vale_merge *mg)
{
	const struct vale_port *port = dst->pa_port;
	struct vale_rxq *rq = &dst->pa_rx;
	struct merge_source frames = { { merge_peek, merge_next }, mg };
	uint32_t total = mg->mg_frames, taken;

	if (pair->pa_tx.vt_now_ns < atomic_load_64(&dst->pa_slow_ns))
		return;
	if (!vale_rxq_idle(rq))
		return;
	port->vp_sink(port->vp_sink_arg, &frames.ms_source);
	deliver_timed(pair, dst);
	taken = total - mg->mg_frames;
	if (taken == 0)
		return;
	pthread_mutex_lock(&rq->rq_lock);
	vale_count(dst, VALE_C_RX_FRAME, taken);
	vale_count(dst, VALE_C_RX_BYTE, mg->mg_bytes);
	vale_count(dst, VALE_C_RX_DIRECT, taken);
	pthread_mutex_unlock(&rq->rq_lock);
	VALE_PROBE(dst, DIRECT, (const char *)pair->pa_port->vp_common.name,
	    taken, mg->mg_bytes);
}

/*
 * Return whether the sender has chosen to send to `dst', which has the list of
 * port number `index': not if others get the same frames, nor if `dst' is a
 * mirror, which gets copies.  If not, the sender must not wait for the user's
 * memory.
 */
static bool
deliver_chosen(const struct vale_pair *pair, const struct vale_port *dst,
    unsigned int index)
{
	return (!dst->vp_monitor && dst->vp_index == index &&
	    (pair->pa_tx.vt_flood->li_first == VALE_END ||
	    pair->pa_tx.vt_view->vi_nports <= 2));
}

/* Return the frames for `dst', which has the list of port number `index'. */
static inline struct vale_merge
merge_begin(const struct vale_pair *pair, const struct vale_port *dst,
    unsigned int index)
{
	const struct vale_txq *vt = &pair->pa_tx;
	const struct vale_list *own = &vt->vt_list[index];
	const struct vale_list *flood = vt->vt_flood;

	return ((struct vale_merge){
		.mg_txq = vt,
		.mg_header = atomic_load_8(&dst->vp_header),
		.mg_frag = vt->vt_frag,
		.mg_own = own->li_first,
		.mg_flood = flood->li_first,
		.mg_frames = own->li_frames + flood->li_frames,
		.mg_slots = own->li_slots + flood->li_slots,
	});
}

/* Deliver to a user in another process. */
static void __attribute__((__noinline__))
deliver_shared(struct vale_pair *pair, struct vale_pair *dst,
    unsigned int index)
{
	struct vale_merge mg = merge_begin(pair, dst->pa_port, index);

	if (deliver_chosen(pair, dst->pa_port, index) &&
	    pair->pa_tx.vt_now_ns >= atomic_load_64(&dst->pa_slow_ns) &&
	    vale_rxq_idle(&dst->pa_inbox->vp_pair->pa_rx)) {
		deliver_ring(pair, dst, &mg);
		deliver_timed(pair, dst);
		return;
	}
	mg.mg_header = dst->pa_inbox->vp_header;
	deliver_ring(pair, dst->pa_inbox->vp_pair, &mg);
	if (pair->pa_tx.vt_indirect)
		deliver_timed(pair, NULL);
}

void
vale_deliver(struct vale_pair *pair, struct vale_port *port,
    unsigned int index)
{
	struct vale_pair *dst = port->vp_pair;
	struct vale_merge mg;

	MPASS(pair->pa_port != port && vale_view_entered(&pair->pa_tx));
	if (pair->pa_index != 0)
		dst += pair->pa_index % port->vp_npairs;
	if (dst->pa_inbox != NULL) {
		deliver_shared(pair, dst, index);
		return;
	}
	mg = merge_begin(pair, port, index);
	if (atomic_load_acq_32(&port->vp_direct) != 0 &&
	    deliver_chosen(pair, port, index))
		deliver_direct(pair, dst, &mg);
	if (mg.mg_frames > 0) {
		deliver_ring(pair, dst, &mg);
		if (pair->pa_tx.vt_indirect)
			deliver_timed(pair, NULL);
	}
}

void
vale_deliver_inbox(struct vale_pair *in, struct vale_pair *dst)
{
	struct vale_txq *vt = &in->pa_tx;
	struct vale_list *all = &vt->vt_list[VALE_FDB_FLOOD];
	struct vale_merge mg = { .mg_txq = vt,
	    .mg_header = dst->pa_port->vp_header, .mg_frag = vt->vt_frag,
	    .mg_own = VALE_END };
	uint32_t i;

	for (i = 0; i < vt->vt_nfrags; i += vt->vt_frag[i].fg_nfrags)
		vale_list_append(vt, all, i);
	mg.mg_flood = all->li_first;
	mg.mg_frames = all->li_frames;
	mg.mg_slots = all->li_slots;
	deliver_ring(in, dst, &mg);
	vale_list_init(all);
}
