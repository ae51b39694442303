/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Forwarding: vale_txsync().  The pipeline is that of Rizzo and Lettieri,
 * "VALE, a Switched Ethernet for Virtual Machines", CoNEXT 2012: frames pass
 * through it in batches, stage by stage, so that a batch pays once for memory
 * latency, locks and wakeups.
 *
 * 1. Collect.  Walk the transmit ring up to its head, record the address and
 *    length of each fragment in vt_frag, and prefetch the headers.  The ring's
 *    user may be hostile, and may write to the ring at the same time: this
 *    stage reads each field once and checks it, and later stages never look at
 *    the ring.  Malformed frames are dropped here.  Then read a byte of each
 *    page of the frames that are in memory of others: a page that is not
 *    resident, as a guest's may be, is waited for here, where nobody else
 *    waits.  If pages have been slow (vale_deliver.c), copy the frames.  At
 *    last drop the frames that exceed the port's rate (vale_rate.h).
 *
 * 2. Look up.  For each frame, learn its source, find its destination, and
 *    append the frame to that destination's list.  Flooded frames go to a list
 *    of their own.  vt_dst names the destinations whose list is not empty, so
 *    the next stage need not scan all 254.  Frames to several destinations are
 *    copied if they are in memory of others: a page that goes now holds up this
 *    sender, and none of the many that get the frame.  vale_lookup.c.
 *
 * 3. Deliver.  Pass to each destination its own frames and the flooded ones,
 *    in the order in which they were sent: vale_deliver.c.
 *
 * Mirrors get their copies between stages 1 and 2, and after stage 3:
 * vale_mirror.c.
 *
 * Stages 2 and 3 of a batch use one view of the switch, in which no port comes
 * or goes (vale_view.c).
 */

#include <sys/fast_path.h>

#include <errno.h>
#include <string.h>

#include "vale_clock.h"
#include "vale_deliver.h"
#include "vale_lookup.h"
#include "vale_mirror.h"
#include "vale_offload.h"
#include "vale_pair.h"
#include "vale_probes.h"
#include "vale_rules.h"
#include "vale_slot.h"
#include "vale_switch.h"
#include "vale_user.h"
#include "vale_view.h"

/* Bytes of the smallest pages. */
#define	PAGE		4096

/*
 * Stage 1 represents the reason for a drop by its counter, and 0 is none.
 */
_Static_assert(VALE_C_TX_SYNC == 0, "0 is not a reason to drop");

/*
 * Stage 1.
 */

/* Read one slot.  Returns the reason to drop its frame, or 0. */
static enum vale_counter
collect_slot(struct vale_pair *pair, const struct vale_port *port,
    uint32_t cur, struct vale_frag *frag, uint16_t *flagsp)
{
	const struct netmap_slot *slot = &pair->pa_desc.txring->slot[cur];
	uint16_t flags = atomic_load_16(&slot->flags);

	MPASS(cur < pair->pa_tx.vt_nslots);
	*flagsp = flags;
	frag->fg_len = atomic_load_16(&slot->len);
	if ((flags & NS_INDIRECT) != 0) {
		/* Another process has other addresses. */
		frag->fg_buf = port->vp_shared ? NULL :
		    (const uint8_t *)(uintptr_t)atomic_load_64(&slot->ptr);
		pair->pa_tx.vt_indirect = true;
	} else
		frag->fg_buf = vale_region_buf(&port->vp_region,
		    atomic_load_32(&slot->buf_idx));
	return (frag->fg_buf != NULL ? 0 : VALE_C_TX_DROP_BUF);
}

/* Add the frame whose first fragment is `first' to the batch. */
static void
collect_add(struct vale_txq *vt, struct vale_frag *first, uint32_t len,
    uint32_t nfrags, uint32_t slots, uint16_t offload)
{
	MPASS(nfrags >= 1 && vt->vt_nfrags + nfrags <= nitems(vt->vt_frag));
	__builtin_prefetch(first->fg_buf);
	first->fg_frame_len = len;
	first->fg_nfrags = nfrags;
	first->fg_slots = slots;
	first->fg_offload = offload;
	vt->vt_nfrags += nfrags;
}

/*
 * Take the next frame from the ring, with all its slots up to `head', and add
 * it to the batch if it is well formed.  Returns its bytes, or 0.  Not inlined,
 * for the registers of vale_forward_collect().
 */
static uint32_t __attribute__((__noinline__))
collect_frame(struct vale_pair *pair, const struct vale_port *port,
    uint32_t head)
{
	struct vale_txq *vt = &pair->pa_tx;
	struct vale_frag *first = &vt->vt_frag[vt->vt_nfrags];
	const uint32_t slot = vt->vt_cur;
	enum vale_counter drop, reason = 0;
	uint32_t len = 0, n = 0;
	uint16_t flags, flags0 = 0;

	do {
		/* There is space for a fragment more than a frame may have. */
		drop = collect_slot(pair, port, vt->vt_cur, &first[n],
		    &flags);
		if (drop == 0 && first[n].fg_len > VALE_BUF_SIZE &&
		    (flags & NS_INDIRECT) == 0)
			drop = VALE_C_TX_DROP_LEN;
		if (n == 0)
			flags0 = flags;
		if (n == NETMAP_MAX_FRAGS)
			drop = VALE_C_TX_DROP_FRAGS;
		else {
			len += first[n].fg_len;
			n++;
		}
		if (reason == 0)
			reason = drop;
		vt->vt_cur = vale_slot_next(vt->vt_cur, vt->vt_nslots);
	} while ((flags & NS_MOREFRAG) != 0 && vt->vt_cur != head);

	first->fg_offload = VALE_PLAIN;
	if (reason == 0 && (flags & NS_MOREFRAG) != 0)
		reason = VALE_C_TX_DROP_CUT;
	if (reason == 0 && port->vp_header != 0)
		reason = vale_offload_collect(pair, slot, flags0, first, &n,
		    &len);
	if (reason == 0 && len < VALE_FRAME_MIN)
		reason = VALE_C_TX_DROP_RUNT;
	if (reason == 0 && len > VALE_FRAME_MAX)
		reason = VALE_C_TX_DROP_OVERSIZE;
	if (reason != 0) {
		vale_pair_drop(pair, reason, 1, port);
		return (0);
	}
	if (vt->vt_copied)
		vale_txq_copy(vt, first, n);
	collect_add(vt, first, len, n, vale_frame_slots(len),
	    first->fg_offload);
	return (len);
}

/*
 * Collect a well-formed frame in a single slot of at least `min' bytes, without
 * a virtio-net header: the fast path of collect_frame().  Returns false and
 * changes nothing if the next frame is of another kind.
 */
static bool
collect_single_slot(struct vale_pair *pair, const struct vale_port *port,
    uint32_t min, uint64_t *bytes)
{
	struct vale_txq *vt = &pair->pa_tx;
	struct vale_frag *first = &vt->vt_frag[vt->vt_nfrags];
	uint16_t flags;

	if (collect_slot(pair, port, vt->vt_cur, first, &flags) != 0 ||
	    (flags & (NS_MOREFRAG | VALE_SLOT_FRAME)) != 0 ||
	    first->fg_len < min || first->fg_len > VALE_BUF_SIZE)
		return (false);
	collect_add(vt, first, first->fg_len, 1, 1, VALE_PLAIN);
	*bytes += first->fg_len;
	vt->vt_cur = vale_slot_next(vt->vt_cur, vt->vt_nslots);
	return (true);
}

/* Fault in all fragments from number `i' on. */
static void
collect_touch(const struct vale_txq *vt, uint32_t i)
{
	const struct vale_frag *fg, *end = vt->vt_frag + vt->vt_nfrags;
	const volatile uint8_t *p;
	uint32_t off;

	for (fg = vt->vt_frag + i; fg < end; fg++)
		if (fg->fg_len > 0) {
			p = fg->fg_buf;
			(void)p[0];
			(void)p[fg->fg_len - 1];
			for (off = PAGE; off < fg->fg_len; off += PAGE)
				(void)p[off];
		}
}

/* Return whether frames must be copied first: vale_deliver.c. */
static bool
collect_copies(struct vale_txq *vt)
{
	if (vale_now_ns() >= vt->vt_copy_ns)
		vt->vt_copy_ns = 0;
	return (vt->vt_copy_ns != 0);
}

/*
 * Drop the frames of the batch that exceed the port's rate.  Not inlined, so
 * that ports without a rate do not pay for this.
 */
static void __attribute__((__noinline__))
collect_rate(struct vale_pair *pair)
{
	struct vale_port *port = pair->pa_port;
	struct vale_rate *rate = &port->vp_rate;
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_frag *fg;
	uint32_t dropped = 0, end, frames, i;
	uint64_t bytes;

	pthread_mutex_lock(&port->vp_rate_lock);
	vale_rate_refill(rate, vt->vt_now_ns);
	/* The limit may have been removed meanwhile. */
	for (i = vale_rate_limited(rate) ? 0 : vt->vt_nfrags;
	    i < vt->vt_nfrags; i += fg->fg_nfrags) {
		fg = &vt->vt_frag[i];
		frames = vale_offload_makes(vt, fg, &bytes);
		if (!vale_rate_frame(rate, frames, bytes))
			break;
	}
	pthread_mutex_unlock(&port->vp_rate_lock);
	/* The bucket is empty, so no other frame passes, either. */
	for (end = i; i < vt->vt_nfrags; i += vt->vt_frag[i].fg_nfrags)
		dropped++;
	vt->vt_nfrags = end;
	if (dropped > 0)
		vale_pair_drop(pair, VALE_C_TX_DROP_RATE, dropped, port);
}

void
vale_forward_collect(struct vale_pair *pair, uint32_t head)
{
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_port *port = pair->pa_port;
	const uint32_t batch = atomic_load_32(&port->vp_switch->vs_batch);
	uint64_t bytes = 0;
	uint32_t frames, min = VALE_FRAME_MIN;

	vt->vt_nfrags = 0;
	vt->vt_indirect = port->vp_shared;
	vt->vt_offloads.of_frames = vt->vt_offloads.of_used = 0;
	vt->vt_copy_used = 0;
	vt->vt_headed = false;
	vt->vt_copied = vt->vt_copy_ns != 0 && collect_copies(vt);
	/* No slot has so many if each frame begins with a header. */
	if (vt->vt_copied || port->vp_header > VALE_HEADER_FRAME)
		min = UINT32_MAX;
	for (frames = 0; vt->vt_cur != head && vt->vt_nfrags < batch;
	    frames++) {
		if (FAST_PATH(collect_single_slot(pair, port, min, &bytes)))
			continue;
		if (!vale_offload_space(&vt->vt_offloads) ||
		    (vt->vt_copied && vale_txq_full(vt)))
			break;
		bytes += collect_frame(pair, port, head);
	}
	vale_count(pair, VALE_C_TX_FRAME, frames);
	vale_count(pair, VALE_C_TX_BYTE, bytes);
	vale_count(pair, VALE_C_TX_BATCH, 1);
	VALE_PROBE(pair, BATCH_IN, frames, vt->vt_nfrags);
	if (vt->vt_indirect && !vt->vt_copied)
		collect_touch(vt, atomic_load_bool(&port->vp_ruled) ?
		    vale_lookup_heads(pair) : 0);
	vt->vt_now_ns = vale_now_ns();
	if (atomic_load_bool(&port->vp_limited))
		collect_rate(pair);
	vt->vt_checked = vt->vt_now_ns < vt->vt_check_ns;
	if (vt->vt_checked)
		vt->vt_sleeps = vale_sleeps();
}

/*
 * Stage 3.
 */

/*
 * Return whether the flooded frames go to port number `dst', and if so set
 * vt_flood to the list in the form that `dst' wants.
 */
static bool
deliver_floods(struct vale_txq *vt, unsigned int src, unsigned int dst)
{
	const struct vale_view *vi = vt->vt_view;
	const struct vale_vlan *vn;

	if (!vale_lookup_floods(vi, src, dst, vt->vt_vlan))
		return (false);
	vn = &vi->vi_rules[dst]->rls_vlan;
	vt->vt_flood = &vt->vt_list[vale_vlan_tagged(vn, vt->vt_vlan) ?
	    VALE_FLOOD_TAGGED : VALE_FDB_FLOOD];
	return (true);
}

/* Deliver copies of what all ports have got. */
static void
deliver_mirrors(struct vale_pair *pair, bool flood)
{
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_view *vi = vt->vt_view;
	const unsigned int src = pair->pa_port->vp_index;
	unsigned int dst, i;

	for (i = 0; i < vi->vi_nports; i++) {
		dst = vi->vi_active[i];
		if ((flood && deliver_floods(vt, src, dst)) ||
		    vt->vt_list[dst].li_frames > 0)
			vale_mirror_received(pair, vi->vi_port[dst]);
	}
}

/* Deliver a batch with flooded frames, or on a switch with mirrors. */
static void __attribute__((__noinline__))
deliver_many(struct vale_pair *pair, bool flood)
{
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_view *vi = vt->vt_view;
	const unsigned int src = pair->pa_port->vp_index;
	unsigned int dst, i;

	if (flood) {
		for (i = 0; i < vi->vi_nports; i++) {
			dst = vi->vi_active[i];
			if (deliver_floods(vt, src, dst))
				vale_deliver(pair, vi->vi_port[dst], dst);
		}
	} else {
		for (i = 0; i < vt->vt_ndsts; i++)
			vale_deliver(pair, vi->vi_port[vt->vt_dst[i]],
			    vt->vt_dst[i]);
	}
	if (vi->vi_nmirrors > 0)
		deliver_mirrors(pair, flood);
	vt->vt_flood = &vt->vt_list[VALE_FDB_FLOOD];
	vt->vt_vlan = 0;
	vale_list_init(&vt->vt_list[VALE_FDB_FLOOD]);
	vale_list_init(&vt->vt_list[VALE_FLOOD_TAGGED]);
	for (i = 0; i < vt->vt_ndsts; i++)
		vale_list_init(&vt->vt_list[vt->vt_dst[i]]);
}

static void
deliver_all(struct vale_pair *pair)
{
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_view *vi = vt->vt_view;
	const bool flood = vt->vt_list[VALE_FDB_FLOOD].li_first != VALE_END ||
	    vt->vt_list[VALE_FLOOD_TAGGED].li_first != VALE_END;
	unsigned int dst, i;

	if (flood || vi->vi_nmirrors > 0) {
		deliver_many(pair, flood);
		return;
	}
	for (i = 0; i < vt->vt_ndsts; i++) {
		dst = vt->vt_dst[i];
		vale_deliver(pair, vi->vi_port[dst], dst);
		vale_list_init(&vt->vt_list[dst]);
	}
}

/* Run stages 2 and 3 on a batch, of which vt_copy may hold a part at a time. */
static void
forward_batch(struct vale_pair *pair)
{
	struct vale_txq *vt = &pair->pa_tx;
	const struct vale_port *port = pair->pa_port;
	uint32_t i = 0;

	vale_view_enter(vt, &port->vp_switch->vs_view);
	if (vt->vt_view->vi_nmirrors > 0)
		vale_mirror_sent(pair);
	if (vt->vt_view->vi_ruled[port->vp_index])
		vale_lookup_begin(pair);
	while (i < vt->vt_nfrags) {
		i = vale_lookup(pair, i);
		deliver_all(pair);
		if (!vt->vt_copied)
			vt->vt_copy_used = 0;
	}
	vale_view_leave(vt);
}

void
vale_forward(struct vale_pair *pair, uint32_t head)
{
	struct vale_txq *vt = &pair->pa_tx;

	MPASS(head < vt->vt_nslots && !pair->pa_port->vp_monitor);
	while (vt->vt_cur != head) {
		vale_forward_collect(pair, head);
		if (vt->vt_nfrags > 0)
			forward_batch(pair);
	}
	vale_count(pair, VALE_C_TX_SYNC, 1);
}

void
vale_forward_invalid(struct vale_pair *pair)
{
	vale_count(pair, VALE_C_TX_BAD_RING, 1);
}

/* Drop what a monitor transmits. */
static int __attribute__((__noinline__))
txsync_monitor(struct vale_pair *pair)
{
	struct netmap_ring *ring = pair->pa_desc.txring;
	struct vale_txq *vt = &pair->pa_tx;
	uint32_t head = atomic_load_32(&ring->head);

	if (head == vt->vt_cur)
		return (0);
	errno = EIO;
	if (head >= vt->vt_nslots) {
		ring->head = ring->cur = head = vt->vt_cur;
		errno = EINVAL;
	}
	vt->vt_cur = head;
	ring->tail = vale_slot_add(head, vt->vt_nslots - 1, vt->vt_nslots);
	return (-1);
}

int
vale_txsync(struct vale_desc *d)
{
	struct vale_pair *pair = vale_desc_pair(d);
	struct netmap_ring *ring = d->txring;
	const uint32_t n = pair->pa_tx.vt_nslots;
	uint32_t head;
	int result = 0;

	if (pair->pa_port->vp_monitor)
		return (txsync_monitor(pair));
	head = atomic_load_32(&ring->head);
	if (head >= n) {
		ring->head = ring->cur = head = pair->pa_tx.vt_cur;
		vale_forward_invalid(pair);
		errno = EINVAL;
		result = -1;
	}
	vale_forward(pair, head);
	ring->tail = vale_slot_add(head, n - 1, n);
	return (result);
}
