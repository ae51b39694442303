/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * TSO: a packet is sent uncut if the network takes it so, else cut into
 * segments, each with its own header in a slot.  All functions need tx_mtx.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_offload.h"
#include "e82545_tx_impl.h"
#include "frame_cursor.h"
#include "frame_cut.h"

/* The longest frame that the network takes uncut, bytes. */
#define	TX_UNCUT_MAX	65535

/*
 * Send the next segment; its headers go to the header slot.  Of a packet that
 * is one segment, the end of TCP's header is payload here: it is where
 * tx_tso_frame() has put it, behind them in the same slot.
 */
static void
tx_segment(struct e82545 *dev, struct tx_batch *b, const struct tx_packet *p,
    struct frame_cut *cut)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	uint8_t *hdr = tx_slot(b) - tx_taglen(p);
	size_t len = cut->fc_hdrlen + cut->fc_paylen, pad;
	int npay;

	b->nframes++;
	pad = tx_padding(b, len);
	if (pad > 0) {
		frame_cut_copy(cut, hdr + cut->fc_hdrlen, cut->fc_paylen);
		memset(hdr + len, 0, pad);
		npay = 0;
		iov[0].iov_len = len + pad;
	} else {
		npay = frame_cut_slice(cut, iov + 1, FRAME_MAXIOV - 1);
		if (npay == -1) {
			tx_bad_drop(dev, b, E82545_C_TX_BAD_LEN);
			return;
		}
		iov[0].iov_len = cut->fc_hdrlen;
	}
	frame_cut_header(cut, hdr);
	iov[0].iov_base = hdr;
	frame_set(&frame, 1 + npay, len + pad);
	e82545_tx_out(dev, b, &frame);
}

/*
 * Make the packet one frame: its header, which it copies to `hdr' and which the
 * tag precedes, and its payload in guest memory.
 */
static void
tx_tso_frame(struct tx_batch *b, const struct tx_packet *p, uint8_t *hdr,
    struct frame *frame)
{
	const struct e82545_txctx *ctx = &b->q->now.ctx[1];
	const size_t taglen = tx_taglen(p), paylen = p->len - ctx->hdrlen;
	struct iovec *iov = b->q->uncut;
	struct frame_cursor cur;
	int n;

	frame_cursor_init(&cur, b->q->frags);
	frame_cursor_copy(&cur, hdr, ctx->hdrlen);
	e82545_tso_header(hdr, ctx, paylen);
	if (taglen != 0)
		e82545_vlan_insert(hdr, b->vet, p->tag);
	iov[0].iov_base = hdr - taglen;
	iov[0].iov_len = ctx->hdrlen + taglen;
	/* Without payload it is empty. */
	iov[1] = (struct iovec){ .iov_base = hdr };
	n = frame_cursor_slice(&cur, paylen, iov + 1, TX_PACKET_FRAGS);
	MPASS(n >= 0);
	frame->f_iov = iov;
	frame_set(frame, 1 + MAX(n, 1), p->len + taglen);
	frame->f_flags = FRAME_CSUM_PARTIAL;
	frame->f_csum_start = ctx->l4.start + taglen;
	frame->f_csum_offset = ctx->l4.field - ctx->l4.start;
	if (paylen > ctx->mss) {
		frame->f_gso_type = e82545_tso_type(ctx);
		frame->f_gso_size = ctx->mss;
		frame->f_hdr_len = ctx->hdrlen + taglen;
		frame->f_net_start = ctx->ip.start + taglen;
	}
}

/*
 * Send a packet uncut, or its remaining segments.  Returns false if the batch
 * is full before the last one.
 */
bool
e82545_tx_tso(struct e82545 *dev, struct tx_batch *b, const struct tx_packet *p)
{
	struct e82545_txq *txq = b->q;
	const struct e82545_txctx *ctx = &txq->now.ctx[1];
	struct frame frame;
	struct frame_cut cut;
	uint32_t paylen;
	bool uncut;

	if (!e82545_tso_valid(ctx) || p->len < ctx->hdrlen) {
		tx_bad_drop(dev, b, E82545_C_TX_BAD_CTX);
		return (true);
	}
	paylen = p->len - ctx->hdrlen;
	if (paylen > E82545_TSO_FRAMES * (uint32_t)ctx->mss) {
		tx_bad_drop(dev, b, E82545_C_TX_BAD_CTX);
		return (true);
	}
	if (ctx->hdrlen + MIN(ctx->mss, paylen) >
	    E82545_FRAME_MAX - tx_taglen(p)) {
		tx_bad_drop(dev, b, E82545_C_TX_BAD_LEN);
		return (true);
	}
	uncut = tx_offloads(dev, b) && txq->now.sent == 0 &&
	    p->len <= TX_UNCUT_MAX - E82545_VLAN_LEN &&
	    howmany(p->len, ctx->mss) <= FRAME_SEGMENTS_MAX &&
	    p->nfrags < FRAME_MAXIOV - 1;
	tx_tso_frame(b, p, tx_slot(b), &frame);
	if (!frame_cut_begin(&cut, &frame)) {
		tx_bad_drop(dev, b, E82545_C_TX_BAD_CTX);
		return (true);
	}
	/* Others expect the IP header behind Ethernet's. */
	if (uncut && cut.fc_direct && (frame.f_gso_type == FRAME_GSO_NONE ||
	    frame_port_takes_uncut(dev->port, &frame))) {
		b->nframes++;
		e82545_tx_out(dev, b, &frame);
	} else {
		frame_cut_seek(&cut, txq->now.sent);
		while (b->nframes < E82545_TX_FRAMES && frame_cut_next(&cut)) {
			tx_segment(dev, b, p, &cut);
			txq->now.sent += cut.fc_paylen;
		}
		if (cut.fc_segments > 0)
			return (false);
	}
	b->ntso++;
	if (paylen != ctx->paylen)
		b->ntsofail++;
	return (true);
}
