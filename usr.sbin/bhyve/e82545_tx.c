/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The transmit ring: 8254x SDM sections 3.3 to 3.5.  Everything here runs under
 * tx_mtx.
 *
 * A call of e82545_tx() processes one batch:
 *
 *	begin	take a snapshot of the registers (TDT may come from the CSB: see
 *		e82545_csb.c), map the ring
 *	run	until the ring is empty or the batch full:
 *		collect	the descriptors of a packet, up to EOP; read each once,
 *			map its buffer
 *		send	it as one frame or, with TSO, as many, each made of
 *			fragments of guest memory; if the port takes offloads,
 *			as one in any case, and TCP's and UDP's checksums are
 *			left to whoever reads the frame next
 *	end	flush the port; write DD back to the descriptors that have RS;
 *		then, once, under reg_mtx: TDH, statistics, interrupt
 *
 * Payload is never copied.  If bytes must change (checksum, VLAN tag, TSO
 * header) or be added (padding), the first bytes of the frame up to there are
 * copied into a slot of the header pool, which has one for each frame of a
 * batch; the rest stays in guest memory.
 *
 * A packet is consumed complete: TDH does not pass it, and nothing is written
 * back, before all of its frames are flushed.  If its EOP is not posted yet, or
 * its segments do not fit into the batch, the next batch collects it again from
 * TDH; only the number of payload bytes sent so far is remembered.  A packet
 * that can never be complete (more than TX_PACKET_DESCS descriptors, or than
 * the ring has) is dropped up to its EOP.  Limits on the work of a call:
 * E82545_TX_FRAMES, TX_BATCH_DESCS + TX_PACKET_DESCS; of a packet:
 * E82545_TSO_FRAMES.
 *
 * A driver that leaves out IFCS gives the frame its FCS, says the manual; those
 * that forget IFCS do not.  So the last four bytes are cut off if they are the
 * right FCS of the others, else the frame is complete.
 *
 * TDT equal to the number of descriptors, which is behind the last one, means
 * that all up to there are pending.  When they are sent the model stores 0 in
 * TDT: hardware would not stop.
 *
 * The thresholds in TXDCTL say when hardware fetches and writes back
 * descriptors; the model does so once a batch.  Only LWTHRESH has an effect.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/fast_path.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_impl.h"
#include "e82545_probes.h"
#include "e82545_snap.h"
#include "frame_cursor.h"
#include "frame_cut.h"

/* Descriptors one packet may take. */
#define	TX_PACKET_DESCS		256
/* Descriptors after which a batch takes no further packet. */
#define	TX_BATCH_DESCS		1024
/* The same for pages of buffers that are not contiguous. */
#define	TX_BATCH_PIECES		1024
/* The longest packet, header and PAYLEN, bytes. */
#define	TX_PACKET_MAX		(255 + E82545_TXD_LEN)
/*
 * Fragments of a packet, each in one page: of a buffer, the first and the last
 * may be shorter than that.
 */
#define	TX_PACKET_FRAGS		(2 * TX_PACKET_DESCS +			\
				    howmany(TX_PACKET_MAX, E82545_PIECE))

/*
 * A header slot, bytes: a VLAN tag, then what the farthest checksum (at 255,
 * two bytes) or HDRLEN (255) can reach.
 */
#define	TX_SLOT			264
_Static_assert(E82545_VLAN_LEN + 255 + 2 <= TX_SLOT, "a slot is too short");

struct e82545_txq {
	/* State between batches. */
	struct e82545_txctx	ctx[2];		/* [1]: TSO */
	bool			skipping;	/* up to the next EOP */
	uint32_t		sent;		/* payload bytes sent of the
						   TSO packet at TDH */
	unsigned int		npieces;	/* mapped since a batch ended
						   because of them */
	/* For one batch. */
	uint16_t		report[TX_BATCH_DESCS + TX_PACKET_DESCS];
	bool			delay[TX_BATCH_DESCS + TX_PACKET_DESCS];
	uint8_t			pool[E82545_TX_FRAMES][TX_SLOT];
	/* For one packet. */
	struct iovec		frags[TX_PACKET_FRAGS];
	struct iovec		uncut[1 + TX_PACKET_FRAGS];	/* with TSO */
};

struct tx_batch {
	uint64_t	(*ring)[2];	/* descriptors */
	uint32_t	size;		/* of them */
	uint32_t	start, head, tail;	/* indices */
	unsigned int	ndescs;		/* taken */
	unsigned int	nreports;	/* of them to write back */
	unsigned int	nframes;	/* made, at most E82545_TX_FRAMES */
	uint16_t	vet;
	bool		vme, psp, link, loopback;
	bool		to_end;		/* TDT is behind the last descriptor */
	bool		queued;		/* the port has frames to flush */
	bool		looped;		/* the receive path has frames */
	/* tx_single_desc()'s. */
	uint32_t	single_max;	/* bytes of a frame */
	struct iovec	iov;
	struct frame	frame;		/* one fragment: iov */
	struct e82545_tally tally;
	unsigned int	ntso, ntsofail;
	uint64_t	counts[E82545_NCOUNTERS];
};

#define	TX_NO_ERROR	E82545_NCOUNTERS

struct tx_packet {
	unsigned int	ndescs;		/* descriptors */
	unsigned int	nfrags;	/* of txq->frags */
	uint32_t	len;		/* bytes */
	bool		begun;		/* a descriptor with data was seen */
	bool		data;		/* data descriptors, not legacy */
	bool		tso;
	uint8_t		popts;		/* E82545_TXD_POPTS_* */
	uint32_t	flags;		/* E82545_TXD_*: VLE, IFCS, IC */
	uint16_t	tag;		/* VLAN */
	bool		late;		/* others sum TCP or UDP */
	struct e82545_sum_where legacy;	/* with IC */
	enum e82545_counter error;	/* why it is invalid, or TX_NO_ERROR */
};

struct e82545_txq *
e82545_txq_create(void)
{
	return (calloc(1, sizeof(struct e82545_txq)));
}

void
e82545_txq_destroy(struct e82545_txq *txq)
{
	free(txq);
}

void
e82545_txq_reset(struct e82545 *dev)
{
	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	memset(dev->txq->ctx, 0, sizeof(dev->txq->ctx));
	dev->txq->skipping = false;
	dev->txq->sent = 0;
}

static void
tx_ctx_snap(struct e82545_txctx *ctx, struct e82545_snap *s)
{
	struct e82545_sum_where *w;

	for (w = &ctx->ip; w != NULL; w = w == &ctx->ip ? &ctx->l4 : NULL) {
		e82545_snap_u8(s, &w->start, UINT8_MAX);
		e82545_snap_u8(s, &w->field, UINT8_MAX);
		e82545_snap_u16(s, &w->end, UINT16_MAX);
	}
	e82545_snap_u32(s, &ctx->paylen, E82545_TXD_LEN);
	e82545_snap_u16(s, &ctx->mss, UINT16_MAX);
	e82545_snap_u8(s, &ctx->hdrlen, UINT8_MAX);
	e82545_snap_u32(s, &ctx->cmd, UINT32_MAX);
}

void
e82545_txq_snap(struct e82545 *dev, struct e82545_snap *s)
{
	struct e82545_txq *txq = dev->txq;

	tx_ctx_snap(&txq->ctx[0], s);
	tx_ctx_snap(&txq->ctx[1], s);
	e82545_snap_bool(s, &txq->skipping);
	e82545_snap_u32(s, &txq->sent, TX_PACKET_MAX);
}

/*
 * Send.
 */

/* The packet at the head is invalid. */
static void
tx_bad(struct e82545 *dev, struct tx_batch *b, enum e82545_counter why)
{
	b->counts[why]++;
	e82545_probe_bad(dev, why, b->head);
}

/* Drop a frame of it. */
static void
tx_drop(struct e82545 *dev, struct tx_batch *b, enum e82545_counter why)
{
	b->counts[why]++;
	e82545_probe_tx_drop(dev, why, b->head);
}

/* Drop it because it is invalid. */
static void
tx_bad_drop(struct e82545 *dev, struct tx_batch *b, enum e82545_counter why)
{
	tx_bad(dev, b, why);
	e82545_probe_tx_drop(dev, why, b->head);
}

/* Account for a frame of `len' bytes; frame_port_send() returned `error'. */
static inline void
tx_sent(struct e82545 *dev, struct tx_batch *b, size_t len, int error)
{
	b->queued = true;
	if (error == ENOBUFS) {
		tx_drop(dev, b, E82545_C_TX_NOROOM);
		return;
	}
	b->counts[E82545_C_TX_FRAME]++;
	b->counts[E82545_C_TX_BYTE] += len;
	/* To the guest it was sent, and lost on the wire. */
	if (error == EMSGSIZE)
		e82545_probe_tx_overmtu(dev, b->head);
}

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
	/* Those before the last segment are equally long. */
	full = (paylen - 1) / frame->f_gso_size;
	b->counts[E82545_C_TX_SEGMENT] += full + 1;
	e82545_tally(&b->tally, dst, hdrlen + frame->f_gso_size, full);
	e82545_tally(&b->tally, dst, hdrlen + paylen -
	    full * frame->f_gso_size, 1);
}

static void
tx_out(struct e82545 *dev, struct tx_batch *b, const struct frame *frame)
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
	const struct e82545_txctx *ctx = &dev->txq->ctx[0];

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

static size_t
tx_taglen(const struct tx_packet *p)
{
	return ((p->flags & E82545_TXD_VLE) != 0 ? E82545_VLAN_LEN : 0);
}

static uint8_t *
tx_slot(struct e82545 *dev, const struct tx_batch *b)
{
	return (dev->txq->pool[b->nframes] + E82545_VLAN_LEN);
}

/* How many bytes a frame of `len' lacks, if the guest wants them added. */
static size_t
tx_padding(const struct tx_batch *b, size_t len)
{
	return (b->psp && len < E82545_ETH_MIN ? E82545_ETH_MIN - len : 0);
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
	uint8_t *hdr = tx_slot(dev, b);
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
		const struct e82545_sum_where *l4 = &dev->txq->ctx[0].l4;

		b->counts[E82545_C_TX_PARTIAL]++;
		frame.f_flags = FRAME_CSUM_PARTIAL;
		frame.f_csum_start = l4->start + taglen;
		frame.f_csum_offset = l4->field - l4->start;
		if (n == 1) {
			iov[1] = (struct iovec){ .iov_base = hdr };
			frame.f_niov = 2;
		}
	}
	tx_out(dev, b, &frame);
}

/* How many bytes must be copied to change a frame, without TSO. */
static size_t
tx_changed(const struct e82545 *dev, const struct tx_packet *p)
{
	const struct e82545_txctx *ctx = &dev->txq->ctx[0];
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

/* Whether the network takes what the model need not sum or cut itself. */
static bool
tx_offloads(const struct e82545 *dev, const struct tx_batch *b)
{
	return (dev->port->fp_offloads && !b->loopback);
}

/*
 * Whether the sum of TCP or UDP can be left to who reads the frame next: it
 * goes to the frame's end, as in a virtio-net header, and that of IP does not
 * depend on it.
 */
static bool
tx_late(const struct e82545 *dev, const struct tx_batch *b,
    const struct tx_packet *p, size_t len)
{
	const struct e82545_txctx *ctx = &dev->txq->ctx[0];

	return (tx_offloads(dev, b) &&
	    (p->popts & E82545_TXD_POPTS_TXSM) != 0 &&
	    len >= E82545_ETH_MIN &&
	    ctx->l4.end == 0 && ctx->l4.field >= ctx->l4.start &&
	    ctx->l4.field + sizeof(uint16_t) <= len &&
	    ((p->popts & E82545_TXD_POPTS_IXSM) == 0 ||
	    (ctx->ip.end != 0 && ctx->ip.end < ctx->l4.start)));
}

/* Whether the packet ends with the FCS of the bytes before it. */
static __attribute__((__noinline__)) bool
tx_has_fcs(struct e82545 *dev, const struct tx_packet *p)
{
	const struct iovec *frag = dev->txq->frags;
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
	if ((p->flags & E82545_TXD_IFCS) == 0 && tx_has_fcs(dev, p))
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
	hdrlen = MIN(tx_changed(dev, p), len);
	frame_cursor_init(&cur, dev->txq->frags);
	frame_cursor_copy(&cur, tx_slot(dev, b), hdrlen);
	tx_frame(dev, b, p, hdrlen, &cur, len - hdrlen);
}

/*
 * TSO.
 */

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
	uint8_t *hdr = tx_slot(dev, b) - tx_taglen(p);
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
	tx_out(dev, b, &frame);
}

/*
 * Make the packet one frame: its header, which it copies to `hdr' and which the
 * tag precedes, and its payload in guest memory.
 */
static void
tx_tso_frame(struct e82545 *dev, struct tx_batch *b, const struct tx_packet *p,
    uint8_t *hdr, struct frame *frame)
{
	const struct e82545_txctx *ctx = &dev->txq->ctx[1];
	const size_t taglen = tx_taglen(p), paylen = p->len - ctx->hdrlen;
	struct iovec *iov = dev->txq->uncut;
	struct frame_cursor cur;
	int n;

	frame_cursor_init(&cur, dev->txq->frags);
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
static bool
tx_tso(struct e82545 *dev, struct tx_batch *b, const struct tx_packet *p)
{
	const struct e82545_txctx *ctx = &dev->txq->ctx[1];
	struct e82545_txq *txq = dev->txq;
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
	uncut = tx_offloads(dev, b) && txq->sent == 0 &&
	    p->len <= TX_UNCUT_MAX - E82545_VLAN_LEN &&
	    howmany(p->len, ctx->mss) <= FRAME_SEGMENTS_MAX &&
	    p->nfrags < FRAME_MAXIOV - 1;
	tx_tso_frame(dev, b, p, tx_slot(dev, b), &frame);
	if (!frame_cut_begin(&cut, &frame)) {
		tx_bad_drop(dev, b, E82545_C_TX_BAD_CTX);
		return (true);
	}
	/* Others look for the IP header behind Ethernet's. */
	if (uncut && cut.fc_direct && (frame.f_gso_type == FRAME_GSO_NONE ||
	    frame_port_takes_uncut(dev->port, &frame))) {
		b->nframes++;
		tx_out(dev, b, &frame);
	} else {
		frame_cut_seek(&cut, txq->sent);
		while (b->nframes < E82545_TX_FRAMES && frame_cut_next(&cut)) {
			tx_segment(dev, b, p, &cut);
			txq->sent += cut.fc_paylen;
		}
		if (cut.fc_segments > 0)
			return (false);
	}
	b->ntso++;
	if (paylen != ctx->paylen)
		b->ntsofail++;
	return (true);
}

/* Returns false if the batch is full before the packet is sent. */
static bool
tx_send(struct e82545 *dev, struct tx_batch *b, struct tx_packet *p)
{
	if (p->error != TX_NO_ERROR) {
		tx_bad_drop(dev, b, p->error);
		return (true);
	}
	if (!p->begun)
		return (true);
	if (p->tso)
		return (tx_tso(dev, b, p));
	tx_plain(dev, b, p);
	return (true);
}

/*
 * Collect.
 */

/* Guest memory may change at any time: a descriptor is read once. */
static union e82545_txd
tx_load(const uint64_t *ring)
{
	union e82545_txd txd;
	uint64_t d[2];

	d[0] = atomic_load_64(&ring[0]);
	d[1] = atomic_load_64(&ring[1]);
	memcpy(&txd, d, sizeof(txd));
	return (txd);
}

static void
tx_error(struct tx_packet *p, enum e82545_counter error)
{
	if (p->error == TX_NO_ERROR)
		p->error = error;
}

/* Section 3.3.6. */
static void
tx_context(struct e82545_txq *txq, const struct e82545_txd_context *txd)
{
	struct e82545_txctx *ctx;
	uint32_t lower;

	lower = le32toh(txd->lower);
	ctx = &txq->ctx[(lower & E82545_TXD_TUCMD_TSE) != 0];
	ctx->ip.start = txd->ipcss;
	ctx->ip.field = txd->ipcso;
	ctx->ip.end = le16toh(txd->ipcse);
	ctx->l4.start = txd->tucss;
	ctx->l4.field = txd->tucso;
	ctx->l4.end = le16toh(txd->tucse);
	ctx->paylen = lower & E82545_TXD_LEN;
	ctx->hdrlen = txd->hdrlen;
	ctx->mss = le16toh(txd->mss);
	ctx->cmd = lower;
}

/*
 * Commands count in the last descriptor of a packet; with TSO, and POPTS
 * always, in the first.  Sections 3.3.3.1, 3.3.7, 3.3.7.1.
 */
static void
tx_commands(struct tx_packet *p, const union e82545_txd *txd, uint32_t lower)
{
	if (!p->begun) {
		p->begun = true;
		p->data = (lower & E82545_TXD_DEXT) != 0;
		if (p->data) {
			p->popts = txd->data.popts & (E82545_TXD_POPTS_IXSM |
			    E82545_TXD_POPTS_TXSM);
			p->tso = (lower & E82545_TXD_TSE) != 0;
		}
		if (p->tso) {
			p->flags = lower & E82545_TXD_VLE;
			p->tag = le16toh(txd->data.special);
		}
	}
	if (((lower & E82545_TXD_DEXT) != 0) != p->data ||
	    (p->data && (lower & E82545_TXD_DTYP) != E82545_TXD_DTYP_DATA))
		tx_error(p, E82545_C_TX_BAD_DESC);
	else if ((lower & E82545_TXD_EOP) != 0 && !p->tso) {
		p->flags = lower & (E82545_TXD_VLE | E82545_TXD_IFCS);
		p->tag = le16toh(txd->data.special);
		if (!p->data) {
			p->flags |= lower & E82545_TXD_IC;
			p->legacy.start = txd->legacy.css;
			p->legacy.field = txd->legacy.cso;
		}
	}
}

/* Add bytes in guest memory to the packet. */
static void
tx_fragment(struct e82545 *dev, struct tx_packet *p, uint8_t *data, size_t len)
{
	struct iovec *frag = dev->txq->frags + p->nfrags;

	if (p->nfrags > 0 && (uint8_t *)frag[-1].iov_base +
	    frag[-1].iov_len == data) {
		frag[-1].iov_len += len;
		return;
	}
	MPASS(p->nfrags < TX_PACKET_FRAGS);
	frag->iov_base = data;
	frag->iov_len = len;
	p->nfrags++;
}

static void
tx_buffer(struct e82545 *dev, struct tx_packet *p, uint64_t gpa, size_t len)
{
	uint8_t *data;
	size_t n;

	/* Such descriptors carry no data: section 3.3.3.1. */
	if (gpa == 0 || len == 0 || p->error != TX_NO_ERROR)
		return;
	p->len += len;
	if (p->len > TX_PACKET_MAX) {
		tx_error(p, E82545_C_TX_BAD_LEN);
		return;
	}
	n = len;
	data = e82545_map_for(dev, gpa, n, E82545_MAP_READ);
	if (data == NULL && (n = e82545_piece(gpa, len)) < len)
		data = e82545_map_for(dev, gpa, n, E82545_MAP_READ);
	while (data != NULL) {
		tx_fragment(dev, p, data, n);
		gpa += n;
		len -= n;
		if (len == 0)
			return;
		n = e82545_piece(gpa, len);
		data = e82545_map_for(dev, gpa, n, E82545_MAP_READ);
		dev->txq->npieces++;
	}
	tx_error(p, E82545_C_TX_BAD_ADDR);
}

/*
 * Collect the descriptors of a packet from b->head on, or a context
 * descriptor before one.  Returns false if EOP is not posted yet.
 */
static bool
tx_collect(struct e82545 *dev, struct tx_batch *b, struct tx_packet *p)
{
	struct e82545_txq *txq = dev->txq;
	union e82545_txd txd;
	uint32_t i, lower;

	memset(p, 0, sizeof(*p));
	p->error = TX_NO_ERROR;
	for (i = b->head; i != b->tail && p->ndescs < TX_PACKET_DESCS;) {
		txd = tx_load(b->ring[i]);
		lower = le32toh(txd.lower);
		if ((lower & (E82545_TXD_RS | E82545_TXD_RPS)) != 0) {
			txq->report[b->nreports] = i;
			txq->delay[b->nreports++] =
			    (lower & E82545_TXD_IDE) != 0;
		}
		p->ndescs++;
		if (++i == b->size)
			i = 0;
		if ((lower & (E82545_TXD_DEXT | E82545_TXD_DTYP)) ==
		    (E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT)) {
			tx_context(txq, &txd.context);
			if (!p->begun && !txq->skipping)
				return (true);
			continue;
		}
		if (!txq->skipping) {
			tx_commands(p, &txd, lower);
			tx_buffer(dev, p, le64toh(txd.addr), lower & (p->data ?
			    E82545_TXD_LEN : E82545_TXD_LEN_LEGACY));
		}
		if ((lower & E82545_TXD_EOP) != 0) {
			txq->skipping = false;
			return (true);
		}
	}
	if (txq->skipping)
		return (p->ndescs > 0);
	if (p->ndescs == TX_PACKET_DESCS || p->ndescs == b->size - 1) {
		p->error = E82545_C_TX_BAD_LEN;
		txq->skipping = true;
		return (true);
	}
	return (false);
}

/*
 * The bits that ask for more than sending a frame as it is, and those that a
 * packet of one descriptor has.
 */
#define	TX_OFFLOAD_BITS	(E82545_TXD_IC | E82545_TXD_VLE)
#define	TX_SINGLE_BITS	(E82545_TXD_EOP | E82545_TXD_IFCS)

/*
 * The fast path of collect and send: a packet of one descriptor that goes to
 * the network as one frame, as it is.  Returns false, having done nothing, if
 * the packet at the head is another.
 */
static bool
tx_single_desc(struct e82545 *dev, struct tx_batch *b)
{
	struct e82545_txq *txq = dev->txq;
	union e82545_txd txd;
	uint32_t len, lower;
	void *data;

	if (b->head == b->tail || txq->skipping || b->loopback || !b->link)
		return (false);
	txd = tx_load(b->ring[b->head]);
	lower = le32toh(txd.lower);
	if ((lower & (TX_OFFLOAD_BITS | TX_SINGLE_BITS)) != TX_SINGLE_BITS)
		return (false);
	len = lower & E82545_TXD_LEN_LEGACY;
	if ((lower & E82545_TXD_DEXT) != 0) {
		if ((lower & E82545_TXD_DTYP) != E82545_TXD_DTYP_DATA ||
		    (txd.data.popts & (E82545_TXD_POPTS_IXSM |
		    E82545_TXD_POPTS_TXSM)) != 0)
			return (false);
		len = lower & E82545_TXD_LEN;
	}
	if (txd.addr == 0 || len < E82545_ETH_MIN || len > b->single_max)
		return (false);
	data = e82545_map_for(dev, le64toh(txd.addr), len, E82545_MAP_READ);
	if (data == NULL)
		return (false);
	if ((lower & (E82545_TXD_RS | E82545_TXD_RPS)) != 0) {
		txq->report[b->nreports] = b->head;
		txq->delay[b->nreports++] = (lower & E82545_TXD_IDE) != 0;
	}
	b->nframes++;
	b->iov.iov_base = data;
	b->iov.iov_len = len;
	b->frame.f_len = len;
	tx_sent(dev, b, len, frame_port_send_short(dev->port, &b->frame));
	e82545_tally(&b->tally, data, len + E82545_ETH_FCS, 1);
	return (true);
}

static void
tx_step(struct e82545 *dev, struct tx_batch *b, unsigned int ndescs)
{
	dev->txq->sent = 0;
	b->ndescs += ndescs;
	b->head += ndescs;
	if (b->head >= b->size)
		b->head -= b->size;
	MPASS(b->head < b->size && b->nframes <= E82545_TX_FRAMES);
	MPASS(b->ndescs <= (b->tail + b->size - b->start) % b->size);
}

/*
 * The batch.
 */

/*
 * TDT is not in the ring: take the descriptors up to the end if it is just
 * behind that.  All of a ring are two batches, because an index as the tail
 * that is the head means none.
 */
static __attribute__((__noinline__)) bool
tx_to_end(struct tx_batch *b)
{
	if (b->tail != b->size)
		return (false);
	b->to_end = true;
	b->tail = b->head == 0 ? b->size - 1 : 0;
	return (true);
}

/* Returns false if nothing is pending. */
static bool
tx_begin(struct e82545 *dev, struct tx_batch *b)
{
	uint64_t base;
	uint32_t ctrl, tctl;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	tctl = e82545_reg(dev, E82545_TCTL);
	if ((tctl & E82545_TCTL_EN) == 0)
		return (false);
	b->tail = e82545_reg_acquire(dev, E82545_TDT);
	b->start = b->head = e82545_reg(dev, E82545_TDH);
	if (b->head == b->tail)
		return (false);
	b->size = (e82545_reg(dev, E82545_TDLEN) & E82545_DLEN_MASK) /
	    sizeof(union e82545_txd);
	base = (uint64_t)e82545_reg(dev, E82545_TDBAH) << 32 |
	    (e82545_reg(dev, E82545_TDBAL) & E82545_DBAL_MASK);
	b->to_end = b->queued = b->looped = false;
	b->ring = b->head < b->size && (b->tail < b->size || tx_to_end(b)) ?
	    e82545_map(dev, base, b->size * sizeof(union e82545_txd)) : NULL;
	if (b->ring == NULL || (uintptr_t)b->ring % sizeof(uint64_t) != 0) {
		e82545_count(dev, E82545_C_TX_BAD_RING, 1);
		e82545_probe_bad(dev, E82545_C_TX_BAD_RING,
		    b->head);
		return (false);
	}
	ctrl = e82545_reg(dev, E82545_CTRL);
	b->vme = (ctrl & E82545_CTRL_VME) != 0;
	b->vet = e82545_reg(dev, E82545_VET);
	b->psp = (tctl & E82545_TCTL_PSP) != 0;
	b->link = (e82545_reg(dev, E82545_STATUS) & E82545_STATUS_LU) != 0;
	b->loopback = e82545_loopback(dev);
	b->ndescs = b->nreports = b->nframes = 0;
	b->single_max = MIN(E82545_FRAME_MAX, dev->port->fp_frame_max);
	b->frame.f_iov = &b->iov;
	frame_set(&b->frame, 1, 0);
	b->ntso = b->ntsofail = 0;
	memset(&b->tally, 0, sizeof(b->tally));
	memset(b->counts, 0, sizeof(b->counts));
	return (true);
}

enum tx_next {
	TX_NEXT,		/* go on */
	TX_WAIT,		/* there is no complete packet */
	TX_FULL			/* the batch takes no more */
};

/* Take a packet that is not as tx_single_desc() has it. */
static __attribute__((__noinline__)) enum tx_next
tx_packet(struct e82545 *dev, struct tx_batch *b)
{
	struct tx_packet p;
	const unsigned int nreports = b->nreports;

	if (!tx_collect(dev, b, &p)) {
		b->nreports = nreports;
		return (TX_WAIT);
	}
	if (!b->vme)
		p.flags &= ~E82545_TXD_VLE;
	if (!tx_send(dev, b, &p)) {
		b->nreports = nreports;
		return (TX_FULL);
	}
	tx_step(dev, b, p.ndescs);
	if (dev->txq->npieces < TX_BATCH_PIECES)
		return (TX_NEXT);
	dev->txq->npieces = 0;
	return (TX_FULL);
}

/* Returns true if more may be pending. */
static bool
tx_run(struct e82545 *dev, struct tx_batch *b)
{
	enum tx_next next;

	while (b->nframes < E82545_TX_FRAMES && b->ndescs < TX_BATCH_DESCS) {
		if (FAST_PATH(tx_single_desc(dev, b))) {
			tx_step(dev, b, 1);
			continue;
		}
		if (b->head == b->tail)
			return (false);
		next = tx_packet(dev, b);
		if (next != TX_NEXT)
			return (next == TX_FULL);
	}
	return (b->head != b->tail);
}

static void
tx_stats(struct e82545 *dev, const struct tx_batch *b)
{
	const struct e82545_tally *t = &b->tally;

	e82545_stat(dev, E82545_GPTC, t->frames);
	e82545_stat(dev, E82545_TPT, t->frames);
	e82545_stat64(dev, E82545_GOTCL, t->bytes);
	e82545_stat64(dev, E82545_TOTL, t->bytes);
	e82545_stat(dev, E82545_BPTC, t->broadcast);
	e82545_stat(dev, E82545_MPTC, t->multicast);
	e82545_stat_sizes(dev, E82545_PTC64, t);
	e82545_stat(dev, E82545_TSCTC, b->ntso);
	e82545_stat(dev, E82545_TSCTFC, b->ntsofail);
}

/*
 * Section 13.4.43: TXD_LOW when the pending descriptors fall to LWTHRESH; TXQE
 * when none are pending.
 */
static uint32_t
tx_causes(struct e82545 *dev, const struct tx_batch *b)
{
	uint32_t after, before, causes, low;

	before = (b->tail + b->size - b->start) % b->size;
	after = before - b->ndescs;
	low = E82545_TXDCTL_LWTHRESH(e82545_reg(dev, E82545_TXDCTL)) * 8;
	causes = before > low && after <= low ? E82545_ICR_TXD_LOW : 0;
	if (after == 0)
		causes |= E82545_ICR_TXQE;
	return (causes);
}

/* All up to the end of the ring are sent, unless the guest wants others now. */
static __attribute__((__noinline__)) void
tx_ended(struct e82545 *dev, const struct tx_batch *b)
{
	if (b->head == 0 && e82545_reg(dev, E82545_TDT) == b->size)
		e82545_reg_set(dev, E82545_TDT, 0);
}

/* Returns true if the receive path must be woken. */
static bool
tx_end(struct e82545 *dev, struct tx_batch *b)
{
	struct e82545_txq *txq = dev->txq;
	unsigned int i;
	bool delayed, wake;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	MPASS(b->nreports <= nitems(txq->report));
	if (b->ndescs == 0 && b->nframes == 0)
		return (false);
	if (b->queued)
		frame_port_flush(dev->port);
	E82545_PROBE(dev, TX_BATCH, (uint32_t)b->counts[E82545_C_TX_FRAME],
	    b->counts[E82545_C_TX_BYTE], b->ndescs);
	delayed = true;
	for (i = 0; i < b->nreports; i++) {
		MPASS(txq->report[i] < b->size);
		atomic_store_rel_8((uint8_t *)b->ring[txq->report[i]] +
		    offsetof(struct e82545_txd_legacy, status), E82545_TXD_DD);
		delayed &= txq->delay[i];
	}

	pthread_mutex_lock(&dev->reg_mtx);
	e82545_reg_set(dev, E82545_TDH, b->head);
	if (b->to_end)
		tx_ended(dev, b);
	tx_stats(dev, b);
	if (dev->csb.tx_on)
		e82545_csb_tx_notify(dev, b->start, b->ndescs, b->size,
		    b->nreports > 0, delayed, tx_causes(dev, b));
	else
		e82545_intr_tx(dev, b->nreports > 0, delayed,
		    tx_causes(dev, b));
	wake = b->looped && e82545_rx_unstall(dev);
	pthread_mutex_unlock(&dev->reg_mtx);

	b->counts[E82545_C_TX_BATCH] = b->nframes > 0;
	b->counts[E82545_C_TX_TSO] = b->ntso;
	e82545_count_all(dev, b->counts);
	return (wake);
}

enum e82545_tx_state
e82545_tx(struct e82545 *dev)
{
	struct tx_batch b;
	enum e82545_tx_state state = E82545_TX_IDLE;
	bool idle = true, more = false, wake = false;

	e82545_lock(&dev->tx_mtx);
	if (e82545_dma(dev)) {
		E82545_PROBE(dev, TX_LOOK);
		if (e82545_csb_placed(dev))
			e82545_csb_tx_begin(dev);
		if (tx_begin(dev, &b)) {
			more = tx_run(dev, &b);
			wake = tx_end(dev, &b);
			idle = b.ndescs == 0 && b.nframes == 0;
			if (b.to_end && b.head != 0 && !idle)
				more = true;
		}
		if (e82545_csb_placed(dev))
			state = e82545_csb_tx_end(dev, idle, more);
		else if (more)
			state = E82545_TX_MORE;
	}
	e82545_unlock(&dev->tx_mtx);
	if (wake)
		dev->ops->eo_rx_ready(dev->arg);
	return (state);
}
