/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A packet sent as one frame: its checksums, its VLAN tag and its padding go to
 * the header slot; the rest stays in guest memory.  All functions need tx_mtx.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_loop.h"
#include "e82545_offload.h"
#include "e82545_stat.h"
#include "e82545_tx_impl.h"
#include "frame_cursor.h"

/* Count what the wire would carry: the frame, or its segments. */
static void
tx_tally(struct tx_batch *b, const uint8_t *dst, const struct frame *frame)
{
	const uint32_t hdrlen = frame->f_hdr_len + E82545_ETH_FCS;
	const uint32_t paylen = frame->f_len - frame->f_hdr_len;
	uint32_t full;

	if (frame->f_gso_type == FRAME_GSO_NONE) {
		e82545_tally(&b->tally, dst, frame->f_len + E82545_ETH_FCS, 1);
		return;
	}
	b->counts[E82545_C_TX_UNCUT]++;
	/* All segments before the last are equally long. */
	full = (paylen - 1) / frame->f_gso_size;
	b->counts[E82545_C_TX_SEGMENT] += full + 1;
	e82545_tally(&b->tally, dst, hdrlen + frame->f_gso_size, full);
	e82545_tally(&b->tally, dst, hdrlen + paylen -
	    full * frame->f_gso_size, 1);
}

void
e82545_tx_out(struct e82545 *dev, struct tx_batch *b, const struct frame *frame)
{
	struct frame_cursor cur;
	uint8_t dst[6];
	const uint8_t *to = dst;

	if (b->loopback) {
		if (e82545_loop_send(dev, frame)) {
			b->looped = true;
			b->counts[E82545_C_LOOPBACK]++;
		} else
			tx_drop(dev, b, E82545_C_TX_NOROOM);
	} else if (b->link) {
		tx_sent(dev, b, frame->f_len,
		    frame_port_send(dev->port, frame));
	} else {
		tx_drop(dev, b, E82545_C_TX_LINKDOWN);
		return;
	}
	if (frame->f_iov[0].iov_len >= sizeof(dst))
		to = frame->f_iov[0].iov_base;
	else {
		frame_cursor_init(&cur, frame->f_iov);
		frame_cursor_copy(&cur, dst, sizeof(dst));
	}
	tx_tally(b, to, frame);
}

static void
tx_sums(struct e82545 *dev, struct tx_batch *b, const struct tx_packet *p,
    const struct iovec *iov, size_t len)
{
	const struct e82545_txctx *ctx = &b->q->now.ctx[0];

	if ((p->flags & E82545_TXD_IC) != 0 &&
	    !e82545_sum_insert(iov, len, &p->legacy, false))
		tx_bad(dev, b, E82545_C_TX_BAD_CTX);
	if ((p->popts & E82545_TXD_POPTS_IXSM) != 0 &&
	    !e82545_sum_insert(iov, len, &ctx->ip, false))
		tx_bad(dev, b, E82545_C_TX_BAD_CTX);
	if ((p->popts & E82545_TXD_POPTS_TXSM) != 0 &&
	    !e82545_sum_insert(iov, len, &ctx->l4,
	    (ctx->cmd & E82545_TXD_TUCMD_TCP) == 0))
		tx_bad(dev, b, E82545_C_TX_BAD_CTX);
}

/*
 * Send the packet as one frame: `hdrlen' bytes in the header slot (0: none) and
 * `paylen' bytes of guest memory at `cur'.
 */
static void
tx_frame(struct e82545 *dev, struct tx_batch *b, const struct tx_packet *p,
    size_t hdrlen, struct frame_cursor *cur, size_t paylen)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	uint8_t *hdr = tx_slot(b);
	size_t len, pad, taglen;
	int n, npay;

	len = hdrlen + paylen;
	taglen = tx_taglen(p);
	pad = tx_padding(b, len + taglen);
	if (pad > 0) {
		frame_cursor_copy(cur, hdr + hdrlen, paylen);
		hdrlen = len;
		paylen = 0;
		memset(hdr + len, 0, pad);
	}
	n = 0;
	if (hdrlen > 0) {
		iov[n].iov_base = hdr;
		iov[n++].iov_len = hdrlen;
	}
	npay = frame_cursor_slice(cur, paylen, iov + n, FRAME_MAXIOV - n);
	b->nframes++;
	if (npay == -1) {
		tx_bad_drop(dev, b, E82545_C_TX_BAD_LEN);
		return;
	}
	n += npay;
	if (p->popts != 0 || (p->flags & E82545_TXD_IC) != 0)
		tx_sums(dev, b, p, iov, len);
	if (taglen != 0) {
		e82545_vlan_insert(hdr, b->vet, p->tag);
		iov[0].iov_base = hdr - taglen;
	}
	iov[0].iov_len += taglen + pad;
	frame_set(&frame, n, len + taglen + pad);
	if (p->late) {
		const struct e82545_sum_where *l4 = &b->q->now.ctx[0].l4;

		b->counts[E82545_C_TX_PARTIAL]++;
		frame.f_flags = FRAME_CSUM_PARTIAL;
		frame.f_csum_start = l4->start + taglen;
		frame.f_csum_offset = l4->field - l4->start;
	}
	e82545_tx_out(dev, b, &frame);
}

/* Return how many bytes must be copied to change a frame, without TSO. */
static size_t
tx_changed(const struct tx_batch *b, const struct tx_packet *p)
{
	const struct e82545_txctx *ctx = &b->q->now.ctx[0];
	size_t n;

	n = (p->flags & E82545_TXD_VLE) != 0 ? E82545_VLAN_OFF : 0;
	if ((p->flags & E82545_TXD_IC) != 0)
		n = MAX(n, p->legacy.field + sizeof(uint16_t));
	if ((p->popts & E82545_TXD_POPTS_IXSM) != 0)
		n = MAX(n, ctx->ip.field + sizeof(uint16_t));
	if ((p->popts & E82545_TXD_POPTS_TXSM) != 0)
		n = MAX(n, ctx->l4.field + sizeof(uint16_t));
	return (n);
}

/*
 * Return whether the sum of TCP or UDP can be left to who reads the frame next:
 * it goes to the frame's end, as in a virtio-net header, and that of IP does
 * not depend on it.
 */
static bool
tx_late(const struct e82545 *dev, const struct tx_batch *b,
    const struct tx_packet *p, size_t len)
{
	const struct e82545_txctx *ctx = &b->q->now.ctx[0];

	return (tx_offloads(dev, b) &&
	    (p->popts & E82545_TXD_POPTS_TXSM) != 0 &&
	    len >= E82545_ETH_MIN &&
	    ctx->l4.end == 0 && ctx->l4.field >= ctx->l4.start &&
	    ctx->l4.field + sizeof(uint16_t) <= len &&
	    ((p->popts & E82545_TXD_POPTS_IXSM) == 0 ||
	    (ctx->ip.end != 0 && ctx->ip.end < ctx->l4.start)));
}

/* Return whether the packet ends with the FCS of the bytes before it. */
static __attribute__((__noinline__)) bool
tx_has_fcs(const struct tx_batch *b, const struct tx_packet *p)
{
	const struct iovec *frag = b->q->frags;
	uint32_t crc = 0;
	unsigned int i;

	if (p->len < E82545_ETH_HDRLEN + E82545_ETH_FCS ||
	    p->len > E82545_FRAME_MAX + E82545_ETH_FCS)
		return (false);
	for (i = 0; i < p->nfrags; i++)
		crc = e82545_crc(frag[i].iov_base, frag[i].iov_len, crc);
	return (crc == E82545_CRC_WITH_FCS);
}

static void
tx_plain(struct e82545 *dev, struct tx_batch *b, struct tx_packet *p)
{
	struct frame_cursor cur;
	size_t hdrlen, len;

	len = p->len;
	/* Frames here have no FCS. */
	if ((p->flags & E82545_TXD_IFCS) == 0 && tx_has_fcs(b, p))
		len -= E82545_ETH_FCS;
	if (len < E82545_ETH_HDRLEN ||
	    len > E82545_FRAME_MAX - tx_taglen(p)) {
		tx_bad_drop(dev, b, E82545_C_TX_BAD_LEN);
		return;
	}
	if (tx_late(dev, b, p, len)) {
		p->late = true;
		p->popts &= ~E82545_TXD_POPTS_TXSM;
	}
	hdrlen = MIN(tx_changed(b, p), len);
	frame_cursor_init(&cur, b->q->frags);
	frame_cursor_copy(&cur, tx_slot(b), hdrlen);
	tx_frame(dev, b, p, hdrlen, &cur, len - hdrlen);
}

/*
 * Send a packet.  Returns false if the batch is full before the packet is sent.
 */
bool
e82545_tx_send(struct e82545 *dev, struct tx_batch *b, struct tx_packet *p)
{
	if (p->error != TX_NO_ERROR) {
		tx_bad_drop(dev, b, p->error);
		return (true);
	}
	if (!p->begun)
		return (true);
	/* Before the frame: whom it is for may get it before the call ends. */
	if (p->stamp && b->link && b->stamp_ns == 0)
		b->stamp_ns = dev->ops->eo_now(dev->arg);
	if (p->tso)
		return (e82545_tx_tso(dev, b, p));
	tx_plain(dev, b, p);
	return (true);
}
