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
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/systm.h>

#include <string.h>

#include "frame_cut.h"
#include "frame_sum.h"

#define	ETHER_TYPE	12
#define	ETHER_HDRLEN	14
#define	TYPE_IP4	0x0800	/* RFC 9542, appendix B */
#define	TYPE_IP6	0x86dd
#define	TYPE_VLAN	0x8100	/* IEEE 802.1Q, table 9-1 */
#define	TYPE_QINQ	0x88a8
#define	VLAN_LEN	4
#define	VLAN_TAGS	2	/* that may precede the IP header */

/* Offsets in headers: RFC 791, 8200, 9293, 768. */
#define	IP4_HDRLEN	20
#define	IP4_LENGTH	2
#define	IP4_ID		4
#define	IP4_SUM		10
#define	IP6_HDRLEN	40
#define	IP6_PAYLEN	4
#define	IP_MAX		65535	/* bytes of a packet */

#define	TCP_HDRLEN	20
#define	TCP_SEQ		4
#define	TCP_OFFSET	12
#define	TCP_FLAGS	13
#define	 TCP_FIN	0x01
#define	 TCP_PSH	0x08
#define	 TCP_CWR	0x80
#define	TCP_SUM		16
#define	UDP_HDRLEN	8
#define	UDP_LENGTH	4
#define	UDP_SUM		6

static uint16_t
cut_u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return (v);
}

/* The offset of IP, behind Ethernet's header and VLAN tags; 0: it is not IP. */
static uint16_t
cut_net_start(const uint8_t *hdr)
{
	uint16_t off = ETHER_TYPE, type;
	int i;

	type = be16dec(hdr + off);
	for (i = 0; i < VLAN_TAGS && (type == TYPE_VLAN || type == TYPE_QINQ);
	    i++) {
		off += VLAN_LEN;
		type = be16dec(hdr + off);
	}
	return (type == TYPE_IP4 || type == TYPE_IP6 ? off + 2 : 0);
}

/* Whether the IP header is complete, and of the protocol that is cut. */
static bool
cut_ip_valid(const struct frame_cut *cut)
{
	const uint8_t *ip = cut->fc_hdr + cut->fc_net;
	uint32_t len;

	switch (ip[0] >> 4) {
	case 4:
		len = (ip[0] & 0xf) * 4;
		return (cut->fc_type != FRAME_GSO_TCPV6 && len >= IP4_HDRLEN &&
		    cut->fc_net + len <= cut->fc_l4);
	case 6:
		return (cut->fc_type != FRAME_GSO_TCPV4 &&
		    cut->fc_net + IP6_HDRLEN <= cut->fc_l4);
	default:
		return (false);
	}
}

/* The length of TCP's or UDP's header; 0 if it is invalid. */
static uint32_t
cut_l4len(const struct frame_cut *cut)
{
	uint32_t len;

	switch (cut->fc_type) {
	case FRAME_GSO_TCPV4:
	case FRAME_GSO_TCPV6:
		if (cut->fc_field - cut->fc_l4 != TCP_SUM)
			return (0);
		len = (cut->fc_hdr[cut->fc_l4 + TCP_OFFSET] >> 4) * 4;
		return (len >= TCP_HDRLEN ? len : 0);
	case FRAME_GSO_UDP_L4:
		return (cut->fc_field - cut->fc_l4 == UDP_SUM ? UDP_HDRLEN : 0);
	default:
		return (0);
	}
}

/* Set what frame_cut_header() needs to cut.  Returns false if it is invalid. */
static bool
cut_begin_segments(struct frame_cut *cut, const struct frame *frame,
    uint32_t have)
{
	const uint8_t *l4 = cut->fc_hdr + cut->fc_l4;
	uint32_t l4len;

	if (cut->fc_l4 < ETHER_HDRLEN + IP4_HDRLEN)
		return (false);
	l4len = cut_l4len(cut);
	if (l4len == 0)
		return (false);
	cut->fc_hdrlen = frame->f_hdr_len != 0 ? frame->f_hdr_len :
	    cut->fc_l4 + l4len;
	if (cut->fc_hdrlen < cut->fc_field + 2U || cut->fc_hdrlen > have ||
	    cut->fc_hdrlen == frame->f_len)
		return (false);
	cut->fc_net = frame->f_net_start != 0 ? frame->f_net_start :
	    cut_net_start(cut->fc_hdr);
	if (cut->fc_net == 0 || cut->fc_net + IP4_HDRLEN > cut->fc_l4 ||
	    !cut_ip_valid(cut))
		return (false);
	cut->fc_mss = frame->f_gso_size;
	if (cut->fc_mss == 0 ||
	    cut->fc_hdrlen - cut->fc_net + cut->fc_mss > IP_MAX)
		return (false);
	/* Subtract the length. */
	cut->fc_pseudo = ~frame_sum_fold((uint32_t)cut_u16(cut->fc_hdr +
	    cut->fc_field) + (uint16_t)~htobe16(frame->f_len - cut->fc_l4));
	cut->fc_id = be16dec(cut->fc_hdr + cut->fc_net + IP4_ID);
	if (cut->fc_type != FRAME_GSO_UDP_L4) {
		cut->fc_seq = be32dec(l4 + TCP_SEQ);
		cut->fc_tcp_flags = l4[TCP_FLAGS];
	}
	return (true);
}

bool
frame_cut_begin(struct frame_cut *cut, const struct frame *frame)
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
	if (cut->fc_type == FRAME_GSO_NONE) {
		cut->fc_net = 0;
		cut->fc_hdrlen = cut->fc_field + 2;
		cut->fc_mss = frame->f_len;
		cut->fc_pseudo = cut_u16(cut->fc_hdr + cut->fc_field);
	} else if (!cut_begin_segments(cut, frame, have))
		return (false);
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
	off = MIN(off / cut->fc_mss, cut->fc_segments - 1) * cut->fc_mss;
	frame_cursor_skip(&cut->fc_cur, off);
	cut->fc_off = off;
	cut->fc_segments -= off / cut->fc_mss;
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

/* Set the fields of the headers for this segment, without the checksum. */
static void
cut_segment(struct frame_cut *cut)
{
	uint8_t *ip = cut->fc_hdr + cut->fc_net;
	uint8_t *l4 = cut->fc_hdr + cut->fc_l4;
	uint32_t hdrlen;
	uint16_t sum;

	if (ip[0] >> 4 == 4) {
		hdrlen = (ip[0] & 0xf) * 4;
		be16enc(ip + IP4_LENGTH, cut->fc_hdrlen - cut->fc_net +
		    cut->fc_paylen);
		be16enc(ip + IP4_ID, cut->fc_id + cut->fc_off / cut->fc_mss);
		memset(ip + IP4_SUM, 0, sizeof(sum));
		sum = frame_sum_fold(frame_sum_bytes(ip, hdrlen));
		memcpy(ip + IP4_SUM, &sum, sizeof(sum));
	} else
		be16enc(ip + IP6_PAYLEN, cut->fc_hdrlen - cut->fc_net -
		    IP6_HDRLEN + cut->fc_paylen);
	if (cut->fc_type == FRAME_GSO_UDP_L4) {
		be16enc(l4 + UDP_LENGTH, UDP_HDRLEN + cut->fc_paylen);
		return;
	}
	be32enc(l4 + TCP_SEQ, cut->fc_seq + cut->fc_off);
	l4[TCP_FLAGS] = cut->fc_tcp_flags;
	if (cut->fc_segments > 0)
		l4[TCP_FLAGS] &= ~(TCP_FIN | TCP_PSH);
	if (cut->fc_off > 0)
		l4[TCP_FLAGS] &= ~TCP_CWR;
}

void
frame_cut_header(struct frame_cut *cut, void *dst)
{
	const uint32_t l4len = cut->fc_hdrlen - cut->fc_l4;
	uint64_t sum = cut->fc_sum + cut->fc_pseudo;
	uint16_t field = 0;

	if (cut->fc_net != 0) {
		cut_segment(cut);
		sum += htobe16(l4len + cut->fc_paylen);
	}
	memcpy(cut->fc_hdr + cut->fc_field, &field, sizeof(field));
	sum += frame_sum_bytes(cut->fc_hdr + cut->fc_l4, l4len);
	field = frame_sum_fold(sum);
	/* UDP: 0 means no checksum. */
	if (field == 0 && cut->fc_field - cut->fc_l4 == UDP_SUM)
		field = 0xffff;
	memcpy(cut->fc_hdr + cut->fc_field, &field, sizeof(field));
	memcpy(dst, cut->fc_hdr, cut->fc_hdrlen);
}

uint64_t
frame_cut_sum(const struct frame_cut *cut)
{
	return (frame_sum_bytes(cut->fc_hdr, cut->fc_hdrlen) +
	    ((cut->fc_l4 & 1) != 0 ? frame_sum_odd(cut->fc_sum) :
	    cut->fc_sum));
}
