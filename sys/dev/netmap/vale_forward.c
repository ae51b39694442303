/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Forwarding: what a port's transmit sync does.  The pipeline is that of
 * Rizzo and Lettieri, "VALE, a Switched Ethernet for Virtual Machines",
 * CoNEXT 2012: frames go through in batches, stage by stage, so that what
 * costs much (memory latency, locks, waking somebody) is paid once a batch.
 *
 * 1. Collect.  Walk the transmit ring up to its head and note for each slot
 *    where its data is (vt_piece), starting the fetch of the headers into the
 *    cache.  The ring's user may be hostile, and may write to it meanwhile:
 *    each field is read once, here, and checked; later stages never look at
 *    the ring.  Malformed frames end here.
 *
 * 2. Look up.  For each frame learn its source and find its destination, and
 *    append it to that destination's list.  Frames for everybody go on one
 *    list of their own.  A note is kept of which destinations have a list, so
 *    that nobody ever scans all 254.
 *
 * 3. Deliver.  For each destination, merge its list with that of frames for
 *    everybody in the order they came, and offer them to its sink, if it has
 *    one.  For what that leaves, reserve the slots in one go, copy, and publish
 *    them in one go; vale_rxq.c says how.  Its lock is taken twice a batch,
 *    and never held over a copy or a sink.  Frames that find no room are
 *    dropped, each for itself: a short one may still fit where a long one did
 *    not.
 *
 * Order: a sender goes through its ring in order, the lists and the merge
 * keep it, and leases are published in the order they were made.  A sink may
 * take frames only when the destination's user is done with all that ever was
 * in its ring, and does not poll it: then nothing older of this sender is
 * there, and nobody but this sender, who is here, can add any; what others add
 * meanwhile has no order with these.  So frames of one port arrive at any other
 * in the order they were sent, whether they go to one or to all, past the ring
 * or through it.
 *
 * All of it runs between vale_switch_enter() and vale_switch_leave(), which
 * keep the switch's ports where they are (vale_switch.c).
 */

#include <sys/uio.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include <dev/netmap/vale_impl.h>
#include <dev/netmap/vale_probes.h>

#ifndef CLOCK_MONOTONIC_COARSE
#define	CLOCK_MONOTONIC_COARSE	CLOCK_MONOTONIC
#endif

/* Slots of a receive ring that are fetched before they are written to. */
#define	AHEAD		16

/* The two addresses a header begins with. */
#define	ADDRS_LEN	12
#define	ADDR_LEN	6

/* Why a frame dies in collect; 0 where it does not.  No drop counter is 0. */
_Static_assert(VALE_C_TX_SYNC == 0, "0 is not a reason to drop");

/* A tracer sees only memory that is present: so look at the name first. */
static const char *
drop_reason(enum vale_counter why)
{
	const char *name;

	name = vale_counter_name(why);
	(void)*(const volatile char *)name;
	return (name);
}

/* `n' frames from `from', one at least, are lost at `port'. */
static __attribute__((__noinline__)) void
forward_drop(struct vale_port *port, enum vale_counter why, uint32_t n,
    const struct vale_port *from)
{

	vale_count(port, why, n);
	VALE_PROBE(port, DROP, drop_reason(why), n,
	    (const char *)from->vp_name);
}

/*
 * Stage 1.
 */

/* Read one slot.  Returns why its frame cannot be sent, or 0. */
static enum vale_counter
collect_slot(const struct vale_port *port, uint32_t cur,
    struct vale_piece *piece, bool *more)
{
	const struct netmap_slot *slot = &port->vp_region.vr_txring->slot[cur];
	uint16_t flags = VALE_ONCE(slot->flags);

	*more = (flags & NS_MOREFRAG) != 0;
	piece->pc_len = VALE_ONCE(slot->len);
	if ((flags & NS_INDIRECT) != 0)
		piece->pc_buf = (const uint8_t *)(uintptr_t)
		    VALE_ONCE(slot->ptr);
	else
		piece->pc_buf = vale_region_buf(&port->vp_region,
		    VALE_ONCE(slot->buf_idx));
	if (piece->pc_buf == NULL)
		return (VALE_C_TX_BAD_BUF);
	if (piece->pc_len > VALE_BUF_SIZE)
		return (VALE_C_TX_BAD_LEN);
	return (0);
}

/* Add the frame that begins at `first' to the batch. */
static void
collect_add(struct vale_txq *vt, struct vale_piece *first, uint32_t len,
    uint32_t npieces)
{

	__builtin_prefetch(first->pc_buf);
	first->pc_frame_len = len;
	first->pc_pieces = npieces;
	first->pc_slots = vale_frame_slots(len);
	vt->vt_npieces += npieces;
}

/*
 * Take one frame from the ring, all of its slots up to `head', and add it to
 * the batch if it is well formed.
 */
static void
collect_frame(struct vale_port *port, uint32_t head, uint64_t *bytes)
{
	struct vale_txq *vt = &port->vp_tx;
	struct vale_piece *first = &vt->vt_piece[vt->vt_npieces], spare;
	enum vale_counter bad, why = 0;
	uint32_t len = 0, n = 0;
	bool more;

	do {
		bad = collect_slot(port, vt->vt_cur,
		    n < NETMAP_MAX_FRAGS ? &first[n] : &spare, &more);
		if (n == NETMAP_MAX_FRAGS)
			bad = VALE_C_TX_FRAGS;
		else {
			len += first[n].pc_len;
			n++;
		}
		if (why == 0)
			why = bad;
		vt->vt_cur = vale_slot_next(vt->vt_cur, vt->vt_nslots);
	} while (more && vt->vt_cur != head);

	if (why == 0 && more)
		why = VALE_C_TX_CUT;
	if (why == 0 && len < VALE_FRAME_MIN)
		why = VALE_C_TX_RUNT;
	if (why == 0 && len > VALE_FRAME_MAX)
		why = VALE_C_TX_OVERSIZE;
	if (why != 0) {
		forward_drop(port, why, 1, port);
		return;
	}
	collect_add(vt, first, len, n);
	*bytes += len;
}

/*
 * Most frames are one slot: what the above comes down to then.  Returns false,
 * having done nothing, where the next is not, or is not well formed.
 */
static bool
collect_whole(struct vale_port *port, uint64_t *bytes)
{
	struct vale_txq *vt = &port->vp_tx;
	struct vale_piece *first = &vt->vt_piece[vt->vt_npieces];
	bool more;

	if (collect_slot(port, vt->vt_cur, first, &more) != 0 || more ||
	    first->pc_len < VALE_FRAME_MIN)
		return (false);
	collect_add(vt, first, first->pc_len, 1);
	*bytes += first->pc_len;
	vt->vt_cur = vale_slot_next(vt->vt_cur, vt->vt_nslots);
	return (true);
}

static void
collect(struct vale_port *port, uint32_t head)
{
	struct vale_txq *vt = &port->vp_tx;
	uint64_t bytes = 0;
	uint32_t frames;

	vt->vt_npieces = 0;
	for (frames = 0; vt->vt_cur != head && vt->vt_npieces < VALE_BATCH;
	    frames++) {
		if (!collect_whole(port, &bytes))
			collect_frame(port, head, &bytes);
	}
	vale_count(port, VALE_C_TX_FRAME, frames);
	vale_count(port, VALE_C_TX_BYTE, bytes);
	vale_count(port, VALE_C_TX_BATCH, 1);
	VALE_PROBE(port, BATCH_IN, frames, vt->vt_npieces);
}

/*
 * Stage 2.
 */

/* Copy out the addresses, which may be spread over several pieces. */
static void
lookup_addrs(const struct vale_piece *pc, uint8_t *addrs)
{
	uint32_t len, n;

	if (pc->pc_len >= ADDRS_LEN) {
		memcpy(addrs, pc->pc_buf, ADDRS_LEN);
		return;
	}
	for (n = 0; n < ADDRS_LEN; n += len, pc++) {
		len = pc->pc_len < ADDRS_LEN - n ? pc->pc_len : ADDRS_LEN - n;
		memcpy(addrs + n, pc->pc_buf, len);
	}
}

/* VALE_REFUSED: the port may not have that source. */
#define	VALE_REFUSED	(VALE_FDB_FLOOD + 1)

static unsigned int
lookup_dst(struct vale_port *port, const uint8_t *addrs, uint32_t now_s)
{
	struct vale_switch *vs = port->vp_switch;

	switch (vale_fdb_learn(&vs->vs_fdb, addrs + ADDR_LEN, port->vp_index,
	    now_s)) {
	case VALE_FDB_LEARNED:
		vale_count(port, VALE_C_LEARNED, 1);
		VALE_PROBE(port, LEARN, addrs + ADDR_LEN, 0);
		break;
	case VALE_FDB_MOVED:
		vale_count(port, VALE_C_MOVED, 1);
		VALE_PROBE(port, LEARN, addrs + ADDR_LEN, 1);
		break;
	case VALE_FDB_REFUSED:
		return (VALE_REFUSED);
	case VALE_FDB_KNOWN:
	case VALE_FDB_IGNORED:
		break;
	}
	return (vale_fdb_lookup(&vs->vs_fdb, addrs, now_s));
}

static void
lookup_append(struct vale_txq *vt, struct vale_list *ls, uint32_t frame)
{
	if (ls->ls_first == VALE_END)
		ls->ls_first = frame;
	else
		vt->vt_piece[ls->ls_last].pc_next = frame;
	ls->ls_last = frame;
	vt->vt_piece[frame].pc_next = VALE_END;
	ls->ls_frames++;
	ls->ls_slots += vt->vt_piece[frame].pc_slots;
}

/* Put one frame on its list, or drop it.  Returns how many ports get it. */
static unsigned int
lookup_sort(struct vale_port *port, uint32_t frame, unsigned int dst)
{
	struct vale_txq *vt = &port->vp_tx;
	unsigned int nports = port->vp_switch->vs_nports;

	if (dst == VALE_REFUSED)
		forward_drop(port, VALE_C_TX_LIMIT, 1, port);
	else if (nports == 1)
		forward_drop(port, VALE_C_TX_NODEST, 1, port);
	else if (dst == VALE_FDB_FLOOD) {
		lookup_append(vt, &vt->vt_list[dst], frame);
		vale_count(port, VALE_C_TX_FLOOD, 1);
		VALE_PROBE(port, FLOOD, vt->vt_piece[frame].pc_frame_len,
		    nports - 1);
		return (nports - 1);
	} else if (dst == port->vp_index)
		forward_drop(port, VALE_C_TX_SELF, 1, port);
	else {
		if (vt->vt_list[dst].ls_first == VALE_END)
			vt->vt_dst[vt->vt_ndsts++] = dst;
		lookup_append(vt, &vt->vt_list[dst], frame);
		return (1);
	}
	return (0);
}

/*
 * Most of a batch is one station talking to another: a frame with the same
 * addresses as the one before goes the same way, onto `ls' if that is the list
 * of one port.
 */
static void
lookup(struct vale_port *port)
{
	struct vale_txq *vt = &port->vp_tx;
	const struct vale_piece *pc;
	struct vale_list *ls = NULL;
	uint8_t addrs[ADDRS_LEN], last[ADDRS_LEN];
	struct timespec now;
	unsigned int dst = VALE_FDB_FLOOD, n;
	uint64_t copies = 0;
	uint32_t i;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	vt->vt_ndsts = 0;
	for (i = 0; i < vt->vt_npieces; i += pc->pc_pieces) {
		pc = &vt->vt_piece[i];
		lookup_addrs(pc, addrs);
		if (i == 0 || memcmp(addrs, last, sizeof(last)) != 0) {
			dst = lookup_dst(port, addrs, (uint32_t)now.tv_sec);
			memcpy(last, addrs, sizeof(last));
			ls = NULL;
			VALE_PROBE(port, LOOKUP, dst, last);
		}
		if (ls != NULL) {
			lookup_append(vt, ls, i);
			copies++;
			continue;
		}
		n = lookup_sort(port, i, dst);
		if (n != 0 && dst < VALE_FDB_FLOOD)
			ls = &vt->vt_list[dst];
		copies += n;
	}
	vale_count(port, VALE_C_TX_COPY, copies);
}

/*
 * Stage 3.
 */

/* Two lists that a destination merges, from where it is; see vale.h. */
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

	if (of->of_own < of->of_flood) {
		pc = &of->of_piece[of->of_own];
		of->of_own = pc->pc_next;
	} else {
		pc = &of->of_piece[of->of_flood];
		of->of_flood = pc->pc_next;
	}
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

	buf = vale_region_buf(vr, VALE_ONCE(slot->buf_idx));
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
 * Most frames are in one piece and take one slot: copy those that the offer
 * begins with, up to `max', into the slots from `i' on.  Returns how many.
 *
 * The memory they go to was last read by the receiver, on another processor,
 * and takes long to come over from there: it is fetched `ahead' slots before
 * its turn, across the end of this batch.
 */
static uint32_t
deliver_whole(struct vale_port *port, struct vale_offer *of, uint32_t i,
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
		    VALE_ONCE(slot->buf_idx)));
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
		forward_drop(dst, VALE_C_RX_FULL, offered, port);
		pthread_mutex_unlock(&rq->rq_lock);
		return;
	}
	lease = slot = vale_rxq_lease(rq, left);
	pthread_mutex_unlock(&rq->rq_lock);

	/* Not where the user still reads: a ring that is nearly full. */
	ahead = space - left >= AHEAD ? AHEAD : 0;
	for (;;) {
		n = deliver_whole(dst, &of, slot, left, ahead, &mended);
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

	pthread_mutex_lock(&rq->rq_lock);
	wake = vale_rxq_publish(rq, lease);
	vale_count(dst, VALE_C_RX_BATCH, 1);
	vale_count(dst, VALE_C_RX_FRAME, frames);
	vale_count(dst, VALE_C_RX_BYTE, bytes);
	vale_count(dst, VALE_C_RX_COPY, frames);
	vale_count(dst, VALE_C_RX_BAD_BUF, mended);
	if (frames != offered)
		forward_drop(dst, VALE_C_RX_FULL, offered - frames, port);
	vale_count(dst, VALE_C_RX_WAKE, wake);
	VALE_PROBE(dst, DELIVER, (const char *)port->vp_name, frames, bytes,
	    vale_slot_sub(rq->rq_next, vale_rxq_cur(rq), rq->rq_nslots));
	pthread_mutex_unlock(&rq->rq_lock);
	if (wake) {
		VALE_PROBE(dst, WAKE);
		vale_rxq_wake(rq);
	}
}

int
vale_offer_peek(struct vale_offer *of, struct iovec *iov, int maxiov)
{
	const struct vale_piece *pc;
	int i;

	if (of->of_frames == 0)
		return (0);
	pc = &of->of_piece[offer_first(of)];
	if (pc->pc_pieces > maxiov)
		return (0);
	for (i = 0; i < pc->pc_pieces; i++) {
		iov[i].iov_base = (void *)(uintptr_t)pc[i].pc_buf;
		iov[i].iov_len = pc[i].pc_len;
	}
	return (i);
}

void
vale_offer_next(struct vale_offer *of)
{
	offer_step(of);
}

/* Have the sink take what it will.  Above is why the ring has to be empty, and
   not polled. */
static void
deliver_direct(struct vale_port *port, struct vale_port *dst,
    struct vale_offer *of)
{
	struct vale_rxq *rq = &dst->vp_rx;
	uint32_t offered = of->of_frames, taken;
	bool empty;

	pthread_mutex_lock(&rq->rq_lock);
	empty = !rq->rq_polled && vale_rxq_cur(rq) == rq->rq_next;
	pthread_mutex_unlock(&rq->rq_lock);
	if (!empty)
		return;
	dst->vp_sink(dst->vp_sink_arg, of);
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

static void
deliver(struct vale_port *port, struct vale_port *dst)
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

	if (dst->vp_sink != NULL)
		deliver_direct(port, dst, &of);
	if (of.of_frames > 0)
		deliver_ring(port, dst, of);
}

static void
list_init(struct vale_list *ls)
{
	ls->ls_first = ls->ls_last = VALE_END;
	ls->ls_frames = ls->ls_slots = 0;
}

static void
deliver_all(struct vale_port *port)
{
	struct vale_switch *vs = port->vp_switch;
	struct vale_txq *vt = &port->vp_tx;
	unsigned int i;

	if (vt->vt_list[VALE_FDB_FLOOD].ls_first != VALE_END) {
		for (i = 0; i < vs->vs_nports; i++) {
			if (vs->vs_active[i] != port->vp_index)
				deliver(port, vs->vs_port[vs->vs_active[i]]);
		}
		list_init(&vt->vt_list[VALE_FDB_FLOOD]);
	} else {
		for (i = 0; i < vt->vt_ndsts; i++)
			deliver(port, vs->vs_port[vt->vt_dst[i]]);
	}
	for (i = 0; i < vt->vt_ndsts; i++)
		list_init(&vt->vt_list[vt->vt_dst[i]]);
}

void
vale_txq_init(struct vale_txq *vt, uint32_t nslots)
{
	unsigned int i;

	vt->vt_nslots = nslots;
	for (i = 0; i <= VALE_FDB_FLOOD; i++)
		list_init(&vt->vt_list[i]);
}

int
vale_port_txsync(struct vale_port *port)
{
	struct netmap_ring *ring = port->vp_region.vr_txring;
	struct vale_txq *vt = &port->vp_tx;
	uint32_t head;
	int error = 0;

	vale_switch_enter(port);
	vale_count(port, VALE_C_TX_SYNC, 1);
	head = VALE_ONCE(ring->head);
	if (head >= vt->vt_nslots) {
		vale_count(port, VALE_C_TX_BAD_RING, 1);
		ring->head = ring->cur = head = vt->vt_cur;
		error = EINVAL;
	}
	while (vt->vt_cur != head) {
		collect(port, head);
		lookup(port);
		deliver_all(port);
	}
	ring->tail = vale_slot_add(head, vt->vt_nslots - 1, vt->vt_nslots);
	vale_switch_leave(port);
	return (error);
}
