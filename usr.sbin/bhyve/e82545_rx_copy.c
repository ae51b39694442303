/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Frames into the guest's buffers: each is copied once, with the sum that its
 * checksums are verified by, and its descriptors are completed, which
 * e82545_rx.c writes back.  All functions need rx_mtx.
 */

#include <string.h>

#include "e82545_offload.h"
#include "e82545_rx_impl.h"
#include "e82545_stat.h"
#include "frame_cursor.h"
#include "frame_vnet.h"

/* The buffers of a frame being received. */
struct rx_space {
	struct iovec	 iov[RX_FRAME_PIECES];
	uint32_t	 first;		/* the first one's descriptor */
	size_t		 last;		/* bytes in the last one */
	bool		 ok;		/* all are in guest memory */
};

/*
 * Pass over the descriptor at the head, which has no buffer.  Returns false if
 * only `need' more are posted, which the frame needs, or the batch has no
 * space.
 */
bool
e82545_rx_null(struct e82545 *dev, struct rx_batch *b, size_t need)
{
	uint64_t upper;

	if (rx_room(b) <= need || b->ndone + need >= RX_BATCH_DESCS)
		return (false);
	upper = rx_extended(dev) ? 0 :
	    le64toh(atomic_load_64(&b->ring[b->head][1]));
	if (rx_split(dev))
		b->q->split[b->ndone] = 0;
	b->q->done[b->ndone++] = htole64(upper |
	    (uint64_t)E82545_RXD_DD << 32);
	if (++b->head == b->size)
		b->head = 0;
	return (true);
}

/*
 * Find the `n' bytes of a buffer, and add them to `iov'.  Returns NULL if they
 * are not all in guest memory.
 */
static struct iovec *
rx_pieces(struct e82545 *dev, uint64_t gpa, size_t n, struct iovec *iov)
{
	if (gpa == 0)
		return (NULL);
	iov->iov_len = n;
	iov->iov_base = e82545_map_for(dev, gpa, n, E82545_MAP_WRITE);
	if (iov->iov_base != NULL)
		return (iov + 1);
	if (e82545_piece(gpa, n) == n)
		return (NULL);
	for (; n > 0; iov++) {
		iov->iov_len = e82545_piece(gpa, n);
		iov->iov_base = e82545_map_for(dev, gpa, iov->iov_len,
		    E82545_MAP_WRITE);
		if (iov->iov_base == NULL)
			return (NULL);
		gpa += iov->iov_len;
		n -= iov->iov_len;
	}
	return (iov);
}

/*
 * Do as rx_pieces() does, for the buffers of a descriptor that has several;
 * `first' is one, `split' is what e82574_rx_lens() takes.
 */
static struct iovec *
rx_pieces_split(struct e82545 *dev, const struct rx_batch *b, uint64_t first,
    size_t n, uint16_t split, struct iovec *iov)
{
	const uint64_t *desc = rx_desc(dev, b->ring, b->head);
	uint32_t lens[E82574_SPLIT_BUFFERS];
	int i;

	(void)e82574_rx_lens(dev, n, split, lens);
	for (i = 0; n > 0; i++) {
		MPASS(i < E82574_SPLIT_BUFFERS);
		if (lens[i] == 0)
			continue;
		iov = rx_pieces(dev, i == 0 ? first :
		    le64toh(atomic_load_64(&desc[i])), lens[i], iov);
		if (iov == NULL)
			return (NULL);
		n -= lens[i];
	}
	return (iov);
}

/*
 * Find the buffers of as many descriptors as `len' bytes of the frame, or of a
 * segment of it, take, and complete all of these except the last.
 */
static void
rx_place(struct e82545 *dev, struct rx_batch *b, const struct rx_frame *f,
    size_t len, struct rx_space *space)
{
	const bool several = rx_split(dev);
	const size_t header = rx_header(f, len);
	const size_t most = header != 0 ? b->payload : b->bufsize;
	uint16_t split = header != 0 ? E82574_HEADER_SPLIT | header : 0;
	struct iovec *end, *iov = space->iov;
	size_t n, need = rx_need(b, f, len);
	uint64_t gpa;

	space->ok = true;
	for (;;) {
		n = MIN(len, most + (split & E82574_HEADER_LEN));
		gpa = rx_first_buffer(dev, b);
		if (gpa == 0 && e82545_rx_null(dev, b, need))
			continue;
		if (iov == space->iov)
			space->first = b->head;
		if (several)
			b->q->split[b->ndone] = split;
		end = several ? rx_pieces_split(dev, b, gpa, n, split, iov) :
		    rx_pieces(dev, gpa, n, iov);
		if (end == NULL) {
			iov->iov_base = b->q->dump;
			iov->iov_len = n;
			space->ok = false;
			end = iov + 1;
		}
		iov = end;
		if ((len -= n) == 0)
			break;
		rx_done(b, n, 0, E82545_RXD_DD, 0, 0);
		split &= E82574_HEADER_SPLIT;
		need--;
	}
	space->last = n;
}

/* Copy and sum `len' bytes. */
static uint64_t
rx_copy(struct frame_cursor *to, struct frame_cursor *from, size_t len)
{
	struct iovec dst, src;
	uint64_t s, sum = 0;
	bool odd = false;
	size_t off;

	for (; len > 0; len -= dst.iov_len) {
		dst = frame_cursor_run(to, len);
		for (off = 0; off < dst.iov_len; off += src.iov_len) {
			src = frame_cursor_run(from, dst.iov_len - off);
			s = frame_sum_copy((uint8_t *)dst.iov_base + off,
			    src.iov_base, src.iov_len);
			sum += odd ? frame_sum_odd(s) : s;
			odd ^= src.iov_len & 1;
		}
	}
	return (sum);
}

/* Copy without a sum. */
static void
rx_move(struct frame_cursor *to, struct frame_cursor *from, size_t len)
{
	struct iovec run;

	for (; len > 0; len -= run.iov_len) {
		run = frame_cursor_run(to, len);
		frame_cursor_copy(from, run.iov_base, run.iov_len);
	}
}

static void
rx_put(struct frame_cursor *to, const uint8_t *data, size_t len)
{
	struct iovec run;

	for (; len > 0; len -= run.iov_len) {
		run = frame_cursor_run(to, len);
		memcpy(run.iov_base, data, run.iov_len);
		data += run.iov_len;
	}
}

static void
rx_zero(struct frame_cursor *to, size_t len)
{
	struct iovec run;

	for (; len > 0; len -= run.iov_len) {
		run = frame_cursor_run(to, len);
		memset(run.iov_base, 0, run.iov_len);
	}
}

/*
 * Complete the last descriptor of a frame, or a segment, which is in its
 * buffers.  `wire' is its length there, padded and with FCS; `sums' as from
 * e82545_rx_sum().  Returns whether all of it is in guest memory.
 */
static bool
rx_complete(struct e82545 *dev, struct rx_batch *b, const struct rx_frame *f,
    const struct rx_space *space, size_t wire, size_t padding, uint64_t sums)
{
	uint8_t errors = 0, status = E82545_RXD_DD | E82545_RXD_EOP;
	uint16_t tag = 0;

	if (f->inexact)
		status |= E82545_RXD_PIF;
	if (f->strip) {
		status |= E82545_RXD_VP;
		tag = be16dec(f->head + E82545_VLAN_OFF + 2);
	}
	if (space->ok) {
		b->padding += padding;
		e82545_tally(&b->tally, f->head, wire, 1);
	} else {
		rx_lose(dev, b, wire, E82545_C_RX_BAD_ADDR);
		e82545_probe_bad(dev, E82545_C_RX_BAD_ADDR, b->head);
		errors |= E82545_RXD_ERR_RXE;
	}
	rx_done(b, space->last, sums, status, errors, tag);
	return (space->ok);
}

/* Give the frame to the guest, which gets `len' bytes. */
void
e82545_rx_deliver(struct e82545 *dev, struct rx_batch *b,
    const struct rx_frame *f, size_t len)
{
	struct frame_cursor from, to;
	struct rx_space space;
	size_t skip = 0;
	uint64_t sum = 0;

	rx_place(dev, b, f, len, &space);
	frame_cursor_init(&from, f->f.f_iov);
	frame_cursor_init(&to, space.iov);
	if (f->strip) {
		skip = E82545_VLAN_OFF + E82545_VLAN_LEN;
		rx_put(&to, f->head, E82545_VLAN_OFF);
		sum = frame_sum_bytes(f->head, skip);
		frame_cursor_skip(&from, skip);
		len -= E82545_VLAN_OFF;
	}
	sum += rx_copy(&to, &from, f->f.f_len - skip);
	rx_zero(&to, len - (f->f.f_len - skip));
	rx_complete(dev, b, f, &space, f->wire,
	    f->wire - E82545_ETH_FCS - f->f.f_len,
	    e82545_rx_sum(f->f.f_iov, f->f.f_len, sum, rx_type(f->head,
	    f->tagged), b->rxcsum, f->tagged, f->strip));
}

/* Return the next segment's length on the wire: padded, with FCS. */
size_t
e82545_rx_segment_wire(const struct frame_cut *cut, size_t paylen)
{
	return (MAX(cut->fc_hdrlen + paylen, (size_t)E82545_ETH_MIN) +
	    E82545_ETH_FCS);
}

/* Give the next segment to the guest.  Returns as rx_complete(). */
bool
e82545_rx_segment(struct e82545 *dev, struct rx_batch *b,
    const struct rx_frame *f, struct frame_cut *cut)
{
	const size_t skip = f->strip ? E82545_VLAN_LEN : 0;
	const size_t flen = cut->fc_hdrlen + cut->fc_paylen;
	const size_t wire = e82545_rx_segment_wire(cut, cut->fc_paylen);
	const size_t len = rx_guest_len(b, f, wire);
	struct iovec iov[1 + RX_FRAME_PIECES], run;
	struct frame_cursor to;
	struct rx_space space;
	uint8_t hdr[FRAME_CUT_HDRLEN];
	uint64_t sums;
	size_t left;
	int n = 1;

	rx_place(dev, b, f, len, &space);
	frame_cursor_init(&to, space.iov);
	frame_cursor_skip(&to, cut->fc_hdrlen - skip);
	for (left = cut->fc_paylen; left > 0; left -= run.iov_len) {
		run = frame_cursor_run(&to, left);
		frame_cut_copy(cut, run.iov_base, run.iov_len);
		iov[n++] = run;
	}
	rx_zero(&to, len - (flen - skip));
	frame_cut_header(cut, hdr);
	iov[0].iov_base = hdr;
	iov[0].iov_len = cut->fc_hdrlen;
	sums = e82545_rx_sum(iov, flen, frame_cut_sum(cut),
	    rx_type(f->head, f->tagged), b->rxcsum, f->tagged, f->strip);
	frame_cursor_init(&to, space.iov);
	if (skip > 0)
		rx_put(&to, hdr, E82545_VLAN_OFF);
	rx_put(&to, hdr + (skip > 0 ? E82545_VLAN_OFF + skip : 0),
	    cut->fc_hdrlen - (skip > 0 ? E82545_VLAN_OFF + skip : 0));
	return (rx_complete(dev, b, f, &space, wire,
	    wire - E82545_ETH_FCS - flen, sums));
}

/* Give the guest the frame as it is, in `len' bytes. */
void
e82545_rx_uncut(struct e82545 *dev, struct rx_batch *b,
    const struct rx_frame *f, size_t len)
{
	struct frame_cursor from, to;
	struct frame told = f->f;
	struct rx_space space;
	size_t skip = 0;

	rx_place(dev, b, f, len, &space);
	frame_cursor_init(&from, f->f.f_iov);
	frame_cursor_init(&to, space.iov);
	if (f->strip) {
		skip = E82545_VLAN_OFF + E82545_VLAN_LEN;
		rx_put(&to, f->head, E82545_VLAN_OFF);
		frame_cursor_skip(&from, skip);
		len -= E82545_VLAN_OFF;
		told.f_csum_start -= E82545_VLAN_LEN;
		told.f_hdr_len -= E82545_VLAN_LEN;
	}
	rx_move(&to, &from, f->f.f_len - skip);
	rx_zero(&to, len - (f->f.f_len - skip));
	frame_vnet_encode(&told, b->vnet + space.first * FRAME_VNET_SHORT,
	    FRAME_VNET_SHORT);
	b->uncut += rx_complete(dev, b, f, &space, f->wire,
	    f->wire - E82545_ETH_FCS - f->f.f_len,
	    (uint64_t)E82545_RXD_IXSM << 32);
}
