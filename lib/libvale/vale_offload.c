/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * virtio-net headers: frames with partial checksums, and packets of several
 * segments.
 *
 * Between two ports with headers such a frame passes as it is.  Towards a port
 * without, the pass that copies the frame cuts it and completes its checksums
 * (frame_cut.h).  How many slots that takes must be known before, when they are
 * leased, and a guest may change its memory at any time.  So the frame's own
 * headers are copied and checked when the frame is collected; what makes a
 * frame invalid drops it there, wherever it goes.
 *
 * A checksum that is completed later must not change what rules, mirrors and
 * filters have seen.  So only TCP's and UDP's stay partial, of an IP packet
 * directly behind Ethernet's header and tags.  All other checksums, as in
 * tunnels, are completed in the copy of the headers at once.
 */

#include <sys/param.h>

#include <string.h>

#include "frame_cut.h"
#include "frame_hdr.h"
#include "frame_vnet.h"
#include "vale_offload.h"
#include "vale_pair.h"
#include "vale_slot.h"
#include "vale_switch.h"

/* Read the virtio-net header, and remove it from the fragments. */
static bool
offload_header(uint32_t hdrlen, struct vale_frag *fg, uint32_t *nfrags,
    uint32_t *len, uint8_t *hdr)
{
	if (fg->fg_len < hdrlen)
		return (false);
	memcpy(hdr, fg->fg_buf, hdrlen);
	fg->fg_buf += hdrlen;
	fg->fg_len -= hdrlen;
	*len -= hdrlen;
	if (fg->fg_len == 0) {
		/* A frame without other fragments is dropped as short. */
		--*nfrags;
		memmove(fg, fg + 1, *nfrags * sizeof(*fg));
	}
	return (true);
}

/* Describe the fragments. */
static void
offload_iov(struct frame *frame, struct iovec *iov, const struct vale_frag *fg,
    uint32_t nfrags)
{
	uint32_t i;

	for (i = 0; i < nfrags; i++) {
		iov[i].iov_base = __DECONST(void *, fg[i].fg_buf);
		iov[i].iov_len = fg[i].fg_len;
	}
	frame->f_iov = iov;
	frame->f_niov = nfrags;
}

/*
 * Replace the first `hdrlen' bytes of the frame by the copy at `hdr', which
 * becomes a fragment of its own.  Returns false if that makes too many.
 */
static bool
offload_replace(struct vale_frag *fg, uint32_t *nfrags, uint8_t *hdr,
    uint32_t hdrlen)
{
	uint32_t i, skip;

	skip = hdrlen;
	for (i = 0; i < *nfrags && fg[i].fg_len <= skip; i++)
		skip -= fg[i].fg_len;
	/* All fragments from `i' on remain, the first without `skip' bytes. */
	if (*nfrags - i + 1 > NETMAP_MAX_FRAGS)
		return (false);
	memmove(fg + 1, fg + i, (*nfrags - i) * sizeof(*fg));
	*nfrags -= i;
	fg->fg_buf = hdr;
	fg->fg_len = hdrlen;
	/* If none is left, neither are bytes to skip. */
	if (skip > 0) {
		fg[1].fg_buf += skip;
		fg[1].fg_len -= skip;
	}
	++*nfrags;
	return (true);
}

/* Set what is known of the frame.  Returns false if that is invalid. */
static bool
offload_known(const struct vale_pair *pair, uint32_t slot, uint16_t flags,
    struct vale_frag *fg, uint32_t *nfrags, uint32_t *len, struct frame *frame)
{
	const unsigned int header = pair->pa_port->vp_header;
	uint8_t hdr[FRAME_VNET_LONG];

	frame->f_flags = 0;
	if (header == VALE_HEADER_FRAME) {
		if ((flags & VALE_SLOT_FRAME) == 0)
			return (true);
		frame_set_known(frame, &pair->pa_desc.txframe[slot]);
		frame->f_net_start = 0;
		frame->f_len = *len;
		return (frame_vnet_valid(frame));
	}
	if (!offload_header(header, fg, nfrags, len, hdr))
		return (false);
	fg->fg_offload = VALE_PLAIN;
	frame->f_len = *len;
	return (frame_vnet_decode(frame, hdr));
}

/* Return whether the checksum may stay partial: TCP's or UDP's, in place. */
static bool
offload_late(const struct frame_cut *cut, const struct frame *frame)
{
	struct frame_hdr fh;

	return (frame_hdr_find(cut->fc_hdr, MIN(frame->f_len,
	    sizeof(cut->fc_hdr)), &fh) && fh.fh_l4 == frame->f_csum_start &&
	    ((fh.fh_proto == FRAME_PROTO_TCP &&
	    frame->f_csum_offset == FRAME_TCP_SUM) ||
	    (fh.fh_proto == FRAME_PROTO_UDP &&
	    frame->f_csum_offset == FRAME_UDP_SUM)));
}

/* Copy the headers, up to the checksum, which is completed. */
static void
offload_complete(struct frame_cut *cut, struct frame *frame, uint8_t *copy)
{
	struct iovec iov[NETMAP_MAX_FRAGS];

	(void)frame_cut_begin(cut, frame);
	(void)frame_cut_next(cut);
	(void)frame_cut_slice(cut, iov, nitems(iov));
	frame_cut_header(cut, copy);
	frame->f_flags = 0;
}

enum vale_counter
vale_offload_collect(struct vale_pair *pair, uint32_t slot, uint16_t flags,
    struct vale_frag *fg, uint32_t *nfrags, uint32_t *len)
{
	struct vale_offloads *of = &pair->pa_tx.vt_offloads;
	struct frame *frame = &of->of_frame[of->of_frames];
	struct iovec iov[NETMAP_MAX_FRAGS];
	struct frame_cut cut;
	uint8_t *copy;

	if (!offload_known(pair, slot, flags, fg, nfrags, len, frame))
		return (VALE_C_TX_DROP_HEADER);
	if ((frame->f_flags & FRAME_CSUM_PARTIAL) == 0)
		return (0);
	/* The sender's word is not enough. */
	offload_iov(frame, iov, fg, *nfrags);
	frame->f_hdr_len = 0;
	if (!frame_cut_check(&cut, frame))
		return (VALE_C_TX_DROP_HEADER);
	if (*len - cut.fc_hdrlen <= frame->f_gso_size) {
		/* One segment, complete except for its checksum. */
		frame->f_gso_type = FRAME_GSO_NONE;
		(void)frame_cut_check(&cut, frame);
	}
	copy = of->of_headers + of->of_used;
	if (frame->f_gso_type == FRAME_GSO_NONE && !offload_late(&cut, frame))
		offload_complete(&cut, frame, copy);
	else
		memcpy(copy, cut.fc_hdr, cut.fc_hdrlen);
	if (!offload_replace(fg, nfrags, copy, cut.fc_hdrlen))
		return (VALE_C_TX_DROP_FRAGS);
	of->of_used += roundup2(cut.fc_hdrlen, 64);
	if (frame->f_flags == 0)
		return (0);
	frame->f_hdr_len = cut.fc_hdrlen;
	frame->f_iov = NULL;
	fg->fg_offload = of->of_frames++;
	return (0);
}

/* Return the number of segments, and in *last the payload of the last. */
static uint32_t
offload_segments(const struct frame *frame, uint32_t *last)
{
	const uint32_t total = frame->f_len - frame->f_hdr_len;
	const uint32_t n = howmany(total, frame->f_gso_size);

	*last = total - (n - 1) * frame->f_gso_size;
	return (n);
}

uint32_t
vale_offload_makes(const struct vale_txq *vt, const struct vale_frag *fg,
    uint64_t *bytes)
{
	const struct frame *frame = vale_offload(vt, fg);
	uint32_t last, n;

	*bytes = fg->fg_frame_len;
	if (frame == NULL || frame->f_gso_type == FRAME_GSO_NONE)
		return (1);
	n = offload_segments(frame, &last);
	*bytes += (uint64_t)(n - 1) * frame->f_hdr_len;
	return (n);
}

uint32_t
vale_offload_slots(const struct vale_txq *vt, unsigned int header,
    const struct vale_frag *fg)
{
	const struct frame *frame = vale_offload(vt, fg);
	uint32_t last, n;

	if (header > VALE_HEADER_FRAME)
		return (vale_frame_slots(fg->fg_frame_len + header));
	if (frame == NULL || header == VALE_HEADER_FRAME ||
	    frame->f_gso_type == FRAME_GSO_NONE)
		return (fg->fg_slots);
	n = offload_segments(frame, &last);
	return ((n - 1) * vale_frame_slots(frame->f_hdr_len +
	    frame->f_gso_size) + vale_frame_slots(frame->f_hdr_len + last));
}

/* The slots being filled. */
struct offload_slots {
	struct vale_pair *osl_dst;
	uint32_t	 osl_next;	/* the next one's index */
	uint32_t	*osl_badbufs;
};

/* Fill the next slot with `len' bytes.  Returns its buffer. */
static uint8_t *
offload_slot(struct offload_slots *os, uint32_t len, uint16_t flags)
{
	struct netmap_slot *slot;
	uint32_t i = os->osl_next;

	MPASS(len <= VALE_BUF_SIZE);
	slot = &os->osl_dst->pa_desc.rxring->slot[i];
	slot->len = len;
	slot->flags = flags;
	os->osl_next = vale_slot_next(i, os->osl_dst->pa_rx.rq_nslots);
	return (vale_rx_buf(os->osl_dst, &os->osl_dst->pa_port->vp_region, slot,
	    i, os->osl_badbufs));
}

/* Copy the frame as it is; its first slot has `flags'. */
static void
offload_copy(struct offload_slots *os, const struct iovec *iov, uint32_t len,
    uint16_t flags)
{
	const uint16_t nslots = vale_frame_slots(len) << 8;
	struct frame_cursor cur;
	uint32_t n;

	frame_cursor_init(&cur, iov);
	for (flags |= nslots; len > 0; len -= n, flags = nslots) {
		n = MIN(len, VALE_BUF_SIZE);
		frame_cursor_copy(&cur, offload_slot(os, n, flags |
		    (n < len ? NS_MOREFRAG : 0)), n);
	}
}

/* Copy the next segment. */
static void
offload_segment(struct offload_slots *os, struct frame_cut *cut)
{
	const uint32_t len = cut->fc_hdrlen + cut->fc_paylen;
	const uint16_t nslots = vale_frame_slots(len) << 8;
	uint32_t left, n;
	uint8_t *first;

	n = MIN(len, VALE_BUF_SIZE);
	left = len - n;
	first = offload_slot(os, n, nslots | (left > 0 ? NS_MOREFRAG : 0));
	frame_cut_copy(cut, first + cut->fc_hdrlen, n - cut->fc_hdrlen);
	for (; left > 0; left -= n) {
		n = MIN(left, VALE_BUF_SIZE);
		frame_cut_copy(cut, offload_slot(os, n, nslots |
		    (n < left ? NS_MOREFRAG : 0)), n);
	}
	frame_cut_header(cut, first);
}

/*
 * Fill the frame's `nslots' slots with its segments.  Its headers are a copy,
 * which was valid before; if not, all slots become empty.
 */
static void
offload_cut(struct offload_slots *os, const struct frame *frame,
    uint32_t nslots)
{
	struct frame_cut cut;

	if (!frame_cut_begin(&cut, frame)) {
		for (; nslots > 0; nslots--)
			(void)offload_slot(os, 0, 1 << 8);
		return;
	}
	MPASS(cut.fc_hdrlen == frame->f_hdr_len);
	while (frame_cut_next(&cut))
		offload_segment(os, &cut);
}

uint32_t
vale_offload_deliver(const struct vale_txq *vt, unsigned int header,
    struct vale_pair *dst, const struct vale_frag *fg, uint32_t i,
    uint32_t *badbufs)
{
	const struct frame *offload = vale_offload(vt, fg);
	struct offload_slots os = { dst, i, badbufs };
	struct iovec iov[1 + NETMAP_MAX_FRAGS];
	uint8_t hdr[FRAME_VNET_LONG];
	struct frame frame;

	if (offload != NULL)
		frame = *offload;
	else
		frame_set(&frame, 0, fg->fg_frame_len);
	offload_iov(&frame, iov + 1, fg, fg->fg_nfrags);
	if (header == 0)
		offload_cut(&os, &frame, vale_offload_slots(vt, header, fg));
	else if (header == VALE_HEADER_FRAME) {
		frame_set_known(&dst->pa_desc.rxframe[i], &frame);
		offload_copy(&os, iov + 1, frame.f_len, VALE_SLOT_FRAME);
	} else {
		frame_vnet_encode(&frame, hdr, header);
		iov[0].iov_base = hdr;
		iov[0].iov_len = header;
		offload_copy(&os, iov, header + frame.f_len, 0);
	}
	return (os.osl_next);
}
