/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * frame_cut.h.  Headers come from a guest: they are copied, checked, and then
 * used from the copy alone.
 *
 * The checksum of a segment.  The field of the frame has the sum of the
 * pseudo-header, with the length of the whole frame.  The sum is linear, so
 * that of a segment's pseudo-header is the same less the one length plus the
 * other: the addresses, which IPv6's routing header may change, are not looked
 * at.
 *
 * The fields that differ from segment to segment are 0 in fc_hdr, so that the
 * headers are summed once and each segment adds its fields to that.  They are
 * written, in pieces, to a copy that is not read at once: a processor cannot
 * forward pieces from its store buffer to a longer read.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/systm.h>

#include <string.h>

#include "frame_cut.h"
#include "frame_hdr.h"
#include "frame_sum.h"

#define	IP_MAX		65535	/* bytes of a packet */

/* Offsets in headers: RFC 9293, 768. */
#define	TCP_HDRLEN	20
#define	TCP_SEQ		4
#define	TCP_OFFSET	12
#define	TCP_FLAGS	13
#define	 TCP_FIN	0x01
#define	 TCP_PSH	0x08
#define	 TCP_CWR	0x80
#define	UDP_HDRLEN	8
#define	UDP_LENGTH	4

/* Clear a field of 16 bits.  Returns what it was, in network order. */
static uint16_t
cut_take(uint8_t *field)
{
	uint16_t v;

	memcpy(&v, field, sizeof(v));
	memset(field, 0, sizeof(v));
	return (v);
}

/* Return a sum of data that begins at offset `off' of the frame. */
static uint64_t
cut_at(uint32_t off, uint64_t sum)
{
	return ((off & 1) != 0 ? frame_sum_odd(sum) : sum);
}

/*
 * Find the IP header, and whether it is followed by what is cut: TCP or UDP, at
 * the first byte summed.
 */
static bool
cut_ip(struct frame_cut *cut, uint16_t net_start, uint32_t have)
{
	struct frame_hdr fh;
	bool direct;

	direct = frame_hdr_find(cut->fc_hdr, have, &fh);
	cut->fc_direct = direct && (net_start == 0 || net_start == fh.fh_net);
	if (!cut->fc_direct && (net_start == 0 ||
	    !frame_hdr_ip(cut->fc_hdr, have, net_start, &fh)))
		return (false);
	cut->fc_net = fh.fh_net;
	cut->fc_ip4 = fh.fh_ip4;
	if (fh.fh_l4 != cut->fc_l4)
		return (false);
	switch (cut->fc_type) {
	case FRAME_GSO_TCPV4:
		return (fh.fh_ip4 && fh.fh_proto == FRAME_PROTO_TCP);
	case FRAME_GSO_TCPV6:
		return (!fh.fh_ip4 && fh.fh_proto == FRAME_PROTO_TCP);
	default:
		return (fh.fh_proto == FRAME_PROTO_UDP);
	}
}

/* Return the length of TCP's or UDP's header; 0 if it is invalid. */
static uint32_t
cut_l4len(const struct frame_cut *cut)
{
	uint32_t len;

	switch (cut->fc_type) {
	case FRAME_GSO_TCPV4:
	case FRAME_GSO_TCPV6:
		if (cut->fc_field - cut->fc_l4 != FRAME_TCP_SUM)
			return (0);
		len = (cut->fc_hdr[cut->fc_l4 + TCP_OFFSET] >> 4) * 4;
		return (len >= TCP_HDRLEN ? len : 0);
	case FRAME_GSO_UDP_L4:
		return (cut->fc_field - cut->fc_l4 == FRAME_UDP_SUM ?
		    UDP_HDRLEN : 0);
	default:
		return (0);
	}
}

/* Check the headers of a frame to be cut; its first `have' bytes are copied. */
static bool
cut_check_segments(struct frame_cut *cut, const struct frame *frame,
    uint32_t have)
{
	uint32_t l4len;

	l4len = cut_l4len(cut);
	if (l4len == 0 || !cut_ip(cut, frame->f_net_start, have))
		return (false);
	cut->fc_hdrlen = frame->f_hdr_len != 0 ? frame->f_hdr_len :
	    cut->fc_l4 + l4len;
	if (cut->fc_hdrlen < cut->fc_field + 2U || cut->fc_hdrlen > have)
		return (false);
	cut->fc_mss = frame->f_gso_size;
	return (cut->fc_mss != 0 && cut->fc_hdrlen - cut->fc_net +
	    MIN(cut->fc_mss, frame->f_len - cut->fc_hdrlen) <= IP_MAX);
}

bool
frame_cut_check(struct frame_cut *cut, const struct frame *frame)
{
	uint32_t have;

	MPASS((frame->f_flags & FRAME_CSUM_PARTIAL) != 0);
	have = MIN(frame->f_len, sizeof(cut->fc_hdr));
	if ((uint32_t)frame->f_csum_start + frame->f_csum_offset + 2 > have)
		return (false);
	frame_cursor_init(&cut->fc_cur, frame->f_iov);
	frame_cursor_copy(&cut->fc_cur, cut->fc_hdr, have);
	cut->fc_l4 = frame->f_csum_start;
	cut->fc_field = frame->f_csum_start + frame->f_csum_offset;
	cut->fc_type = frame->f_gso_type & ~FRAME_GSO_ECN;
	if (cut->fc_type != FRAME_GSO_NONE)
		return (cut_check_segments(cut, frame, have));
	cut->fc_net = 0;
	cut->fc_direct = true;
	cut->fc_hdrlen = cut->fc_field + 2;
	cut->fc_mss = frame->f_len;
	return (true);
}

/* Take out the fields that differ between segments. */
static void
cut_take_fields(struct frame_cut *cut)
{
	uint8_t *ip = cut->fc_hdr + cut->fc_net;
	uint8_t *l4 = cut->fc_hdr + cut->fc_l4;

	if (cut->fc_ip4) {
		(void)cut_take(ip + FRAME_IP4_LENGTH);
		cut->fc_id = be16toh(cut_take(ip + FRAME_IP4_ID)) - 1;
		(void)cut_take(ip + FRAME_IP4_SUM);
		cut->fc_ip_sum = frame_sum_bytes(ip, (ip[0] & 0xf) * 4);
	} else
		(void)cut_take(ip + FRAME_IP6_PAYLEN);
	if (cut->fc_type == FRAME_GSO_UDP_L4) {
		(void)cut_take(l4 + UDP_LENGTH);
		return;
	}
	cut->fc_seq = be32dec(l4 + TCP_SEQ);
	be32enc(l4 + TCP_SEQ, 0);
	cut->fc_tcp_flags = l4[TCP_FLAGS];
	l4[TCP_FLAGS] = 0;
}

bool
frame_cut_begin(struct frame_cut *cut, const struct frame *frame)
{
	if (!frame_cut_check(cut, frame))
		return (false);
	cut->fc_pseudo = cut_take(cut->fc_hdr + cut->fc_field);
	if (cut->fc_net != 0) {
		/* Subtract the length. */
		cut->fc_pseudo = ~frame_sum_fold((uint32_t)cut->fc_pseudo +
		    (uint16_t)~htobe16(frame->f_len - cut->fc_l4));
		cut_take_fields(cut);
	}
	cut->fc_l4_sum = frame_sum_bytes(cut->fc_hdr + cut->fc_l4,
	    cut->fc_hdrlen - cut->fc_l4);
	cut->fc_hdr_sum = frame_sum_bytes(cut->fc_hdr, cut->fc_hdrlen);
	cut->fc_total = frame->f_len - cut->fc_hdrlen;
	cut->fc_segments = MAX(1, howmany(cut->fc_total, cut->fc_mss));
	cut->fc_longest = cut->fc_hdrlen + MIN(cut->fc_mss, cut->fc_total);
	cut->fc_off = cut->fc_paylen = 0;
	frame_cursor_init(&cut->fc_cur, frame->f_iov);
	frame_cursor_skip(&cut->fc_cur, cut->fc_hdrlen);
	return (true);
}

void
frame_cut_seek(struct frame_cut *cut, uint32_t off)
{
	MPASS(cut->fc_off == 0 && cut->fc_paylen == 0);
	off = MIN(off / cut->fc_mss, cut->fc_segments - 1);
	cut->fc_segments -= off;
	cut->fc_id += off;
	cut->fc_off = off * cut->fc_mss;
	frame_cursor_skip(&cut->fc_cur, cut->fc_off);
}

uint32_t
frame_cut_peek(const struct frame_cut *cut)
{
	const uint32_t off = cut->fc_off + cut->fc_paylen;

	MPASS(cut->fc_segments > 0);
	return (MIN(cut->fc_mss, cut->fc_total - off));
}

bool
frame_cut_next(struct frame_cut *cut)
{
	uint32_t paylen;

	if (cut->fc_segments == 0)
		return (false);
	paylen = frame_cut_peek(cut);
	cut->fc_segments--;
	cut->fc_id++;
	cut->fc_off += cut->fc_paylen;
	cut->fc_paylen = paylen;
	cut->fc_odd = ((cut->fc_hdrlen - cut->fc_l4) & 1) != 0;
	cut->fc_sum = 0;
	return (true);
}

static inline void
cut_add(struct frame_cut *cut, uint64_t sum, size_t len)
{
	cut->fc_sum += cut->fc_odd ? frame_sum_odd(sum) : sum;
	cut->fc_odd ^= len & 1;
}

void
frame_cut_copy(struct frame_cut *cut, void *dst, size_t len)
{
	struct iovec run;
	uint8_t *p = dst;

	for (; len > 0; len -= run.iov_len) {
		run = frame_cursor_run(&cut->fc_cur, len);
		cut_add(cut, frame_sum_copy(p, run.iov_base, run.iov_len),
		    run.iov_len);
		p += run.iov_len;
	}
}

int
frame_cut_slice(struct frame_cut *cut, struct iovec *iov, int max)
{
	int i, n;

	n = frame_cursor_slice(&cut->fc_cur, cut->fc_paylen, iov, max);
	for (i = 0; i < n; i++)
		cut_add(cut, frame_sum_bytes(iov[i].iov_base, iov[i].iov_len),
		    iov[i].iov_len);
	return (n);
}

/* Put a field, in network order, into a header.  Returns its sum. */
static uint64_t
cut_put16(uint8_t *dst, uint16_t v)
{
	memcpy(dst, &v, sizeof(v));
	return (v);
}

static uint64_t
cut_put32(uint8_t *dst, uint32_t v)
{
	memcpy(dst, &v, sizeof(v));
	return (v);
}

/* Put the fields of the IP header.  Returns their sum. */
static uint64_t
cut_put_ip(const struct frame_cut *cut, uint8_t *ip)
{
	const uint32_t len = cut->fc_hdrlen - cut->fc_net + cut->fc_paylen;
	uint64_t sum;

	if (!cut->fc_ip4)
		return (cut_put16(ip + FRAME_IP6_PAYLEN,
		    htobe16(len - FRAME_IP6_HDRLEN)));
	sum = cut_put16(ip + FRAME_IP4_LENGTH, htobe16(len));
	sum += cut_put16(ip + FRAME_IP4_ID, htobe16(cut->fc_id));
	return (sum + cut_put16(ip + FRAME_IP4_SUM,
	    frame_sum_fold(cut->fc_ip_sum + sum)));
}

/*
 * Put the fields of TCP's or UDP's header except the checksum.  Returns their
 * sum.
 */
static uint64_t
cut_put_l4(const struct frame_cut *cut, uint8_t *l4)
{
	uint8_t flags = cut->fc_tcp_flags;

	if (cut->fc_type == FRAME_GSO_UDP_L4)
		return (cut_put16(l4 + UDP_LENGTH, htobe16(UDP_HDRLEN +
		    cut->fc_paylen)));
	if (cut->fc_segments > 0)
		flags &= ~(TCP_FIN | TCP_PSH);
	if (cut->fc_off > 0)
		flags &= ~TCP_CWR;
	l4[TCP_FLAGS] = flags;
	return (htobe16(flags) + cut_put32(l4 + TCP_SEQ, htobe32(cut->fc_seq +
	    cut->fc_off)));
}

void
frame_cut_header(struct frame_cut *cut, void *dst)
{
	uint8_t *hdr = dst;
	uint64_t l4 = cut->fc_sum, sum;
	uint16_t field;

	memcpy(hdr, cut->fc_hdr, cut->fc_hdrlen);
	cut->fc_sum = cut->fc_hdr_sum;
	sum = cut->fc_pseudo;
	if (cut->fc_net != 0) {
		cut->fc_sum += cut_at(cut->fc_net,
		    cut_put_ip(cut, hdr + cut->fc_net));
		l4 += cut_put_l4(cut, hdr + cut->fc_l4);
		sum += htobe16(cut->fc_hdrlen - cut->fc_l4 + cut->fc_paylen);
	}
	field = frame_sum_fold(cut->fc_l4_sum + l4 + sum);
	/* UDP: 0 means no checksum. */
	if (field == 0 && cut->fc_field - cut->fc_l4 == FRAME_UDP_SUM)
		field = 0xffff;
	cut->fc_sum += cut_at(cut->fc_l4, l4) + cut_at(cut->fc_field,
	    cut_put16(hdr + cut->fc_field, field));
}

uint64_t
frame_cut_sum(const struct frame_cut *cut)
{
	return (cut->fc_sum);
}
