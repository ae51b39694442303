/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
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
 * 3. Deliver.  Offer each destination what is for it, its own frames and those
 *    for everybody in the order they came: vale_deliver.c.
 *
 * All of it runs between vale_switch_enter() and vale_switch_leave(), which
 * keep the switch's ports where they are (vale_switch.c).
 */

#include <sys/fast_path.h>

#include <errno.h>
#include <string.h>
#include <time.h>

#include "vale_impl.h"
#include "vale_probes.h"

#ifndef CLOCK_MONOTONIC_COARSE
#define	CLOCK_MONOTONIC_COARSE	CLOCK_MONOTONIC
#endif

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

	name = vale_counter_table[why].cr_name;
	(void)*(const volatile char *)name;
	return (name);
}

void
vale_forward_drop(struct vale_port *port, enum vale_counter why, uint32_t n,
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
	uint16_t flags = atomic_load_16(&slot->flags);

	MPASS(cur < port->vp_tx.vt_nslots);
	*more = (flags & NS_MOREFRAG) != 0;
	piece->pc_len = atomic_load_16(&slot->len);
	if ((flags & NS_INDIRECT) != 0)
		piece->pc_buf = (const uint8_t *)(uintptr_t)
		    atomic_load_64(&slot->ptr);
	else
		piece->pc_buf = vale_region_buf(&port->vp_region,
		    atomic_load_32(&slot->buf_idx));
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
	MPASS(npieces >= 1 && vt->vt_npieces + npieces <= nitems(vt->vt_piece));
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
		vale_forward_drop(port, why, 1, port);
		return;
	}
	collect_add(vt, first, len, n);
	*bytes += len;
}

/*
 * The fast path of collect_frame(), for a well-formed frame in a single slot.
 * Returns false, having done nothing, if the next frame is no such frame.
 */
static bool
collect_single_slot(struct vale_port *port, uint64_t *bytes)
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
		if (!FAST_PATH(collect_single_slot(port, &bytes)))
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
	MPASS(frame < vt->vt_npieces);
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
		vale_forward_drop(port, VALE_C_TX_LIMIT, 1, port);
	else if (nports == 1)
		vale_forward_drop(port, VALE_C_TX_NODEST, 1, port);
	else if (dst == VALE_FDB_FLOOD) {
		lookup_append(vt, &vt->vt_list[dst], frame);
		vale_count(port, VALE_C_TX_FLOOD, 1);
		VALE_PROBE(port, FLOOD, vt->vt_piece[frame].pc_frame_len,
		    nports - 1);
		return (nports - 1);
	} else if (dst == port->vp_index)
		vale_forward_drop(port, VALE_C_TX_SELF, 1, port);
	else {
		/* Its addresses are forgotten before a port is removed. */
		MPASS(port->vp_switch->vs_port[dst] != NULL);
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
	struct vale_port *dst;
	unsigned int i;

	if (vt->vt_list[VALE_FDB_FLOOD].ls_first != VALE_END) {
		for (i = 0; i < vs->vs_nports; i++) {
			dst = vs->vs_port[vs->vs_active[i]];
			if (dst != port)
				vale_deliver(port, dst);
		}
		list_init(&vt->vt_list[VALE_FDB_FLOOD]);
	} else {
		for (i = 0; i < vt->vt_ndsts; i++)
			vale_deliver(port, vs->vs_port[vt->vt_dst[i]]);
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
vale_txsync(struct vale_desc *d)
{
	struct vale_port *port = vale_desc_port(d);
	struct netmap_ring *ring = port->vp_region.vr_txring;
	struct vale_txq *vt = &port->vp_tx;
	uint32_t head;
	int result = 0;

	vale_switch_enter(port);
	vale_count(port, VALE_C_TX_SYNC, 1);
	head = atomic_load_32(&ring->head);
	if (head >= vt->vt_nslots) {
		vale_count(port, VALE_C_TX_BAD_RING, 1);
		ring->head = ring->cur = head = vt->vt_cur;
		errno = EINVAL;
		result = -1;
	}
	while (vt->vt_cur != head) {
		collect(port, head);
		lookup(port);
		deliver_all(port);
	}
	ring->tail = vale_slot_add(head, vt->vt_nslots - 1, vt->vt_nslots);
	vale_switch_leave(port);
	return (result);
}
