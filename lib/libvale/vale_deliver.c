/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The last stage of forwarding (vale_forward.c): frames of a batch go to one
 * destination.
 *
 * Its own list and that of frames for everybody are merged in the order they
 * came, and offered to its sink, if it has one.  For what that leaves, the
 * slots are reserved in one go, filled, and published in one go; vale_rxq.c
 * says how.  Its lock is taken twice a batch, and never held over a copy or a
 * sink.  Frames that find no room are dropped, each for itself: a short one may
 * still fit where a long one did not.
 *
 * Order: a sender goes through its ring in order, the lists and the merge
 * keep it, and leases are published in the order they were made.  A sink may
 * take frames only when the destination's user is done with all that ever was
 * in its ring, and does not poll it: then nothing older of this sender is
 * there, and nobody but this sender, who is here, can add any; what others add
 * meanwhile has no order with these.  So frames of one port arrive at any other
 * in the order they were sent, whether they go to one or to all, past the ring
 * or through it.
 */

#include <sys/fast_path.h>
#include <sys/uio.h>

#include <string.h>

#include "frame.h"
#include "vale_impl.h"
#include "vale_probes.h"

/* Slots of a receive ring that are fetched before they are written to. */
#define	AHEAD		16

/* Two lists of frames that a destination merges. */
struct vale_offer {
	const struct vale_piece	*of_piece;
	uint32_t		 of_own;
	uint32_t		 of_flood;
	uint32_t		 of_frames;	/* from here to the end, */
	uint32_t		 of_slots;	/* and what they take */
	uint64_t		 of_bytes;	/* of those gone by */
};

/* The next frame of the two, VALE_END at the end of both. */
static uint32_t
offer_first(const struct vale_offer *of)
{
	return (of->of_own < of->of_flood ? of->of_own : of->of_flood);
}

/* Step over a frame, which there is, and return it. */
static const struct vale_piece *
offer_step(struct vale_offer *of)
{
	const struct vale_piece *pc;

	MPASS(of->of_frames > 0);
	if (of->of_own < of->of_flood) {
		pc = &of->of_piece[of->of_own];
		of->of_own = pc->pc_next;
	} else {
		pc = &of->of_piece[of->of_flood];
		of->of_flood = pc->pc_next;
	}
	MPASS(of->of_slots >= pc->pc_slots);
	of->of_frames--;
	of->of_slots -= pc->pc_slots;
	of->of_bytes += pc->pc_frame_len;
	return (pc);
}

/* How many slots those frames take that fit in `space' slots. */
static uint32_t
deliver_fit(struct vale_offer of, uint32_t space)
{
	const struct vale_piece *pc;
	uint32_t left = space;

	while (left > 0 && of.of_frames > 0) {
		pc = offer_step(&of);
		if (pc->pc_slots <= left)
			left -= pc->pc_slots;
	}
	return (space - left);
}

/*
 * The buffer of a receive slot.  Its index is the user's to change; one that
 * is not of this port is set back to what the slot had in the beginning.
 */
static uint8_t *
deliver_buf(struct vale_port *port, struct netmap_slot *slot, uint32_t i,
    uint32_t *mended)
{
	const struct vale_region *vr = &port->vp_region;
	uint8_t *buf;
	uint32_t idx;

	buf = vale_region_buf(vr, atomic_load_32(&slot->buf_idx));
	if (buf == NULL) {
		idx = vr->vr_nbufs - port->vp_rx.rq_nslots + i;
		slot->buf_idx = idx;
		buf = vale_region_buf(vr, idx);
		++*mended;
	}
	return (buf);
}

/* Short frames, the most frequent size, are two halves that overlap. */
static inline void
deliver_copy(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	enum { HALF = 32 };

	if (len >= HALF && len <= 2 * HALF) {
		memcpy(dst, src, HALF);
		memcpy(dst + len - HALF, src + len - HALF, HALF);
	} else
		memcpy(dst, src, len);
}

/*
 * The fast path of deliver_frame(), for frames that are one fragment and take
 * a single slot.  Copies up to `max' such frames, as long as the offer begins
 * with one, into the slots from `i' on.  Returns how many.
 *
 * The receiver has last read that memory, on another processor, so that it
 * takes long to arrive.  Each slot and buffer is prefetched `ahead' slots
 * before its turn, also beyond the end of this batch.
 */
static uint32_t
deliver_single_slot(struct vale_port *port, struct vale_offer *of, uint32_t i,
    uint32_t max, uint32_t ahead, uint32_t *mended)
{
	struct netmap_ring *ring = port->vp_region.vr_rxring;
	const uint32_t nslots = port->vp_rx.rq_nslots;
	const uint32_t first = offer_first(of);
	const uint32_t other = first == of->of_own ? of->of_flood : of->of_own;
	const struct vale_piece *pc;
	struct netmap_slot *slot;
	uint32_t fetch = vale_slot_add(i, ahead, nslots), frame, n = 0;
	uint64_t bytes = 0;

	for (frame = first; n < max && frame < other; frame = pc->pc_next) {
		pc = &of->of_piece[frame];
		if (pc->pc_pieces != 1 || pc->pc_slots != 1)
			break;
		slot = &ring->slot[fetch];
		VALE_FETCH(slot);
		VALE_FETCH(vale_region_buf(&port->vp_region,
		    atomic_load_32(&slot->buf_idx)));
		fetch = vale_slot_next(fetch, nslots);
		slot = &ring->slot[i];
		deliver_copy(deliver_buf(port, slot, i, mended), pc->pc_buf,
		    pc->pc_frame_len);
		slot->len = pc->pc_frame_len;
		slot->flags = 1 << 8;
		bytes += pc->pc_frame_len;
		i = vale_slot_next(i, nslots);
		n++;
	}
	if (first == of->of_own)
		of->of_own = frame;
	else
		of->of_flood = frame;
	of->of_frames -= n;
	of->of_slots -= n;
	of->of_bytes += bytes;
	return (n);
}

/* Copy a frame into slots `i' and following.  Returns the slot after. */
static uint32_t
deliver_frame(struct vale_port *port, const struct vale_piece *pc, uint32_t i,
    uint32_t *mended)
{
	struct netmap_ring *ring = port->vp_region.vr_rxring;
	struct netmap_slot *slot;
	uint8_t *buf;
	uint32_t left = pc->pc_frame_len, nslots = pc->pc_slots;
	uint32_t len, n, off = 0, used;

	while (left > 0) {
		slot = &ring->slot[i];
		buf = deliver_buf(port, slot, i, mended);
		len = left < VALE_BUF_SIZE ? left : VALE_BUF_SIZE;
		left -= len;
		for (used = 0; used < len; used += n) {
			if (off == pc->pc_len) {
				pc++;
				off = 0;
			}
			n = pc->pc_len - off;
			if (n > len - used)
				n = len - used;
			memcpy(buf + used, pc->pc_buf + off, n);
			off += n;
		}
		slot->len = len;
		slot->flags = nslots << 8 | (left > 0 ? NS_MOREFRAG : 0);
		i = vale_slot_next(i, port->vp_rx.rq_nslots);
	}
	return (i);
}

/* Deliver through the ring what is on offer, at least one frame. */
static void
deliver_ring(struct vale_port *port, struct vale_port *dst,
    struct vale_offer of)
{
	struct vale_rxq *rq = &dst->vp_rx;
	const struct vale_piece *pc;
	uint64_t bytes, before = of.of_bytes, skipped = 0;
	uint32_t ahead, frames = 0, lease, left, mended = 0, n, slot, space;
	uint32_t offered = of.of_frames;
	bool wake;

	pthread_mutex_lock(&rq->rq_lock);
	left = of.of_slots;
	space = vale_rxq_space(rq);
	if (left > space)
		left = deliver_fit(of, space);
	if (left == 0) {
		vale_forward_drop(dst, VALE_C_RX_FULL, offered, port);
		pthread_mutex_unlock(&rq->rq_lock);
		return;
	}
	lease = slot = vale_rxq_lease(rq, left);
	pthread_mutex_unlock(&rq->rq_lock);

	/* Not where the user still reads: a ring that is nearly full. */
	ahead = space - left >= AHEAD ? AHEAD : 0;
	for (;;) {
		n = FAST_PATH(deliver_single_slot(dst, &of, slot, left, ahead,
		    &mended));
		frames += n;
		left -= n;
		slot = vale_slot_add(slot, n, rq->rq_nslots);
		if (left == 0 || of.of_frames == 0)
			break;
		pc = offer_step(&of);
		if (pc->pc_slots <= left) {
			left -= pc->pc_slots;
			slot = deliver_frame(dst, pc, slot, &mended);
			frames++;
		} else
			skipped += pc->pc_frame_len;
	}
	bytes = of.of_bytes - before - skipped;
	/* deliver_fit() chose the same frames. */
	MPASS(left == 0);

	pthread_mutex_lock(&rq->rq_lock);
	MPASS(slot == rq->rq_lease[lease].vl_end);
	wake = vale_rxq_publish(rq, lease);
	vale_count(dst, VALE_C_RX_BATCH, 1);
	vale_count(dst, VALE_C_RX_FRAME, frames);
	vale_count(dst, VALE_C_RX_BYTE, bytes);
	vale_count(dst, VALE_C_RX_COPY, frames);
	vale_count(dst, VALE_C_RX_BAD_BUF, mended);
	if (frames != offered)
		vale_forward_drop(dst, VALE_C_RX_FULL, offered - frames, port);
	vale_count(dst, VALE_C_RX_WAKE, wake);
	VALE_PROBE(dst, DELIVER, (const char *)port->vp_name, frames, bytes,
	    vale_slot_sub(rq->rq_next, vale_rxq_cur(rq), rq->rq_nslots));
	pthread_mutex_unlock(&rq->rq_lock);
	if (wake) {
		VALE_PROBE(dst, WAKE);
		vale_rxq_wake(rq);
	}
}

/* The frames on offer as a source for a sink. */
struct offer_source {
	struct frame_source	 os_source;
	struct vale_offer	*os_offer;
};

static bool
offer_peek(struct frame_source *source, struct frame *frame)
{
	const struct vale_offer *of =
	    __containerof(source, struct offer_source, os_source)->os_offer;
	const struct vale_piece *pc;
	int i;

	if (of->of_frames == 0)
		return (false);
	pc = &of->of_piece[offer_first(of)];
	for (i = 0; i < pc->pc_pieces; i++) {
		frame->f_iov[i].iov_base = __DECONST(void *, pc[i].pc_buf);
		frame->f_iov[i].iov_len = pc[i].pc_len;
	}
	frame_set(frame, i, pc->pc_frame_len);
	return (true);
}
_Static_assert(NETMAP_MAX_FRAGS <= FRAME_MAXIOV, "a frame may have more");

static void
offer_next(struct frame_source *source)
{
	offer_step(__containerof(source, struct offer_source,
	    os_source)->os_offer);
}

/*
 * Let the sink take what it will.  The ring must be empty and not polled: see
 * the top of this file.  Not inlined: it would cost deliver_ring() registers.
 */
static void __attribute__((__noinline__))
deliver_direct(struct vale_port *port, struct vale_port *dst,
    struct vale_offer *of)
{
	struct vale_rxq *rq = &dst->vp_rx;
	struct offer_source frames = { { offer_peek, offer_next }, of };
	uint32_t offered = of->of_frames, taken;
	bool empty;

	pthread_mutex_lock(&rq->rq_lock);
	empty = !rq->rq_polled && vale_rxq_cur(rq) == rq->rq_next;
	pthread_mutex_unlock(&rq->rq_lock);
	if (!empty)
		return;
	dst->vp_sink(dst->vp_sink_arg, &frames.os_source);
	taken = offered - of->of_frames;
	if (taken == 0)
		return;
	pthread_mutex_lock(&rq->rq_lock);
	vale_count(dst, VALE_C_RX_FRAME, taken);
	vale_count(dst, VALE_C_RX_BYTE, of->of_bytes);
	vale_count(dst, VALE_C_RX_DIRECT, taken);
	pthread_mutex_unlock(&rq->rq_lock);
	VALE_PROBE(dst, DIRECT, (const char *)port->vp_name, taken,
	    of->of_bytes);
}

void
vale_deliver(struct vale_port *port, struct vale_port *dst)
{
	struct vale_txq *vt = &port->vp_tx;
	const struct vale_list *own = &vt->vt_list[dst->vp_index];
	const struct vale_list *flood = &vt->vt_list[VALE_FDB_FLOOD];
	struct vale_offer of = {
		.of_piece = vt->vt_piece,
		.of_own = own->ls_first,
		.of_flood = flood->ls_first,
		.of_frames = own->ls_frames + flood->ls_frames,
		.of_slots = own->ls_slots + flood->ls_slots,
	};

	MPASS(port != dst && atomic_load_32(&vt->vt_busy) != 0);
	if (dst->vp_sink != NULL)
		deliver_direct(port, dst, &of);
	if (of.of_frames > 0)
		deliver_ring(port, dst, of);
}
