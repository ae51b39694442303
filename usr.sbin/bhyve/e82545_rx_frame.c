/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * One frame: whether the guest gets it, in how many segments, and whether its
 * descriptors suffice.  All functions need rx_mtx.
 *
 * These are the frames that the fast path, e82545_rx.c, leaves.
 */

#include <string.h>

#include "e82545_filter.h"
#include "e82545_offload.h"
#include "e82545_rx_impl.h"
#include "e82574.h"
#include "frame_cursor.h"

static void
rx_measure(const struct e82545 *dev, const struct rx_batch *b,
    struct rx_frame *f)
{
	struct frame_cursor cur;

	f->wire = MAX(f->f.f_len, (uint32_t)E82545_ETH_MIN) + E82545_ETH_FCS;
	memset(f->head, 0, sizeof(f->head));
	frame_cursor_init(&cur, f->f.f_iov);
	frame_cursor_copy(&cur, f->head,
	    MIN((size_t)f->f.f_len, sizeof(f->head)));
	f->tagged = rx_type(f->head, false) == b->vet &&
	    f->f.f_len >= E82545_ETH_HDRLEN + E82545_VLAN_LEN;
	f->strip = f->tagged && b->vme;
	f->header = b->payload == 0 ? 0 : e82574_rx_header(dev, &f->f,
	    f->strip ? E82545_VLAN_LEN : 0);
}

/*
 * Return whether the guest gets the frame.  If not, the host's mtu= is less,
 * the receiver is off, or the filters drop it.
 */
static bool
rx_wanted(struct e82545 *dev, struct rx_batch *b, struct rx_frame *f)
{
	enum e82545_filter_result result;

	if (!b->looped && !frame_port_accepts(dev->port, &f->f)) {
		e82545_probe_rx_overmtu(dev, b->head);
		return (false);
	}
	/* Receiver off, no link, or only looped frames are received. */
	if (!b->on || (!b->looped && (!b->link || b->loopback))) {
		rx_drop(dev, b, E82545_C_RX_DISABLED);
		return (false);
	}
	rx_measure(dev, b, f);
	result = e82545_filter(dev, b->rctl, f->head, f->tagged);
	if (result == E82545_FILTER_DROP) {
		rx_lose(dev, b, f->wire, E82545_C_RX_FILTERED);
		return (false);
	}
	f->inexact = result == E82545_FILTER_INEXACT;
	return (true);
}

/*
 * Return whether the guest can ever get a frame, or a segment of it, of `flen'
 * bytes, of which its buffers would have `len': no longer than RCTL accepts,
 * and than the ring.
 */
static bool
rx_fits(const struct rx_batch *b, const struct rx_frame *f, size_t flen,
    size_t len)
{
	return (flen <= rx_longest(b) &&
	    (b->size == 0 || rx_need(b, f, len) < b->size));
}

/* Count the posted descriptors without a buffer before the next buffer. */
static uint32_t
rx_nulls(const struct e82545 *dev, const struct rx_batch *b)
{
	const uint32_t room = rx_room(b);
	uint32_t n;

	for (n = 0; n < room; n++)
		if (atomic_load_64(rx_desc(dev, b->ring,
		    (b->head + n) % b->size)) != 0)
			break;
	return (n);
}

/* See whether a frame of `len' bytes, as the guest gets it, has space now. */
static enum rx_verdict
rx_space(struct e82545 *dev, struct rx_batch *b, const struct rx_frame *f,
    size_t len, bool single)
{
	size_t need = rx_need(b, f, len);
	uint32_t nulls = rx_nulls(dev, b);

	/*
	 * Pass over those before a buffer even if the frame does not fit yet.
	 * If no posted descriptor has a buffer, wait for one that has:
	 * e82545_rx.c.
	 */
	if (nulls == rx_room(b))
		need += nulls;
	else
		for (; nulls > 0; nulls--) {
			if (b->ndone >= RX_BATCH_DESCS)
				return (RX_FULL);
			e82545_rx_null(dev, b, 0);
		}
	if (need > rx_room(b) && b->ring != NULL)
		e82545_rx_poll(dev, b);
	if (need > rx_room(b)) {
		b->need = need;
		return (RX_NODESC);
	}
	if ((need > 1 || !single) && b->ndone + need > RX_BATCH_DESCS)
		return (RX_FULL);
	return (RX_TAKEN);
}

enum rx_verdict
e82545_rx_frame(struct e82545 *dev, struct rx_batch *b, struct rx_frame *f)
{
	enum rx_verdict verdict;
	size_t len;

	if (!rx_wanted(dev, b, f))
		return (RX_TAKEN);
	len = rx_guest_len(b, f, f->wire);
	if (!rx_fits(b, f, f->f.f_len, len)) {
		rx_lose(dev, b, f->wire, E82545_C_RX_OVERSIZE);
		return (RX_TAKEN);
	}
	verdict = rx_space(dev, b, f, len, true);
	if (verdict == RX_TAKEN)
		e82545_rx_deliver(dev, b, f, len);
	return (verdict);
}

/* Return whether a direct call can take all segments. */
static bool
rx_all_fit(const struct rx_batch *b, const struct rx_frame *f,
    const struct frame_cut *cut)
{
	size_t need;

	need = rx_need(b, f, rx_guest_len(b, f, MAX(cut->fc_longest,
	    (uint32_t)E82545_ETH_MIN) + E82545_ETH_FCS));
	need *= cut->fc_segments;
	return (need <= rx_room(b) && b->ndone + need <= RX_BATCH_DESCS);
}

/* Receive a frame with a partial checksum. */
enum rx_verdict
e82545_rx_offload(struct e82545 *dev, struct rx_batch *b, struct rx_frame *f)
{
	enum rx_verdict verdict;
	struct frame_cut cut;
	size_t len, paylen, wire;
	bool several;

	if (!rx_wanted(dev, b, f))
		goto taken;
	len = rx_guest_len(b, f, f->wire);
	if (b->vnet != NULL && dev->csb.rx_on && f->f.f_len <= RX_UNCUT_MAX &&
	    howmany(len, b->bufsize) < b->size && (b->direct ||
	    dev->rx_cut_off == 0) &&
	    dev->csb.ops->ecb_vnet_takes(dev, &f->f)) {
		if (f->f.f_csum_start < E82545_VLAN_OFF + E82545_VLAN_LEN) {
			rx_lose(dev, b, f->wire, E82545_C_RX_BAD_OFFLOAD);
			goto taken;
		}
		verdict = rx_space(dev, b, f, len, false);
		if (verdict == RX_TAKEN)
			e82545_rx_uncut(dev, b, f, len);
		return (verdict);
	}
	if (!frame_cut_begin(&cut, &f->f) ||
	    cut.fc_hdrlen < E82545_VLAN_OFF + E82545_VLAN_LEN) {
		rx_lose(dev, b, f->wire, E82545_C_RX_BAD_OFFLOAD);
		goto taken;
	}
	wire = MAX(cut.fc_longest, (uint32_t)E82545_ETH_MIN) + E82545_ETH_FCS;
	if (!rx_fits(b, f, cut.fc_longest, rx_guest_len(b, f, wire))) {
		rx_lose(dev, b, f->wire, E82545_C_RX_OVERSIZE);
		goto taken;
	}
	several = cut.fc_segments > 1;
	if (!b->direct)
		frame_cut_seek(&cut, dev->rx_cut_off);
	else if (!rx_all_fit(b, f, &cut))
		return (b->ndone > 0 ? RX_FULL : RX_NODESC);
	while (cut.fc_segments > 0) {
		paylen = frame_cut_peek(&cut);
		verdict = rx_space(dev, b, f, rx_guest_len(b, f,
		    e82545_rx_segment_wire(&cut, paylen)), false);
		if (verdict != RX_TAKEN)
			return (verdict);
		frame_cut_next(&cut);
		b->segments += e82545_rx_segment(dev, b, f, &cut) && several;
		if (!b->direct)
			dev->rx_cut_off += paylen;
	}
	b->cut += several;
taken:
	if (!b->direct)
		dev->rx_cut_off = 0;
	return (RX_TAKEN);
}
