/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* frame_tunnel.h. */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "frame_sum.h"
#include "frame_tunnel.h"

/* GRE: RFC 2784, 2890. */
#define	GRE_FLAGS	0
#define	 GRE_CSUM	0x8000
#define	 GRE_KEY	0x2000
#define	 GRE_KNOWN	(GRE_CSUM | GRE_KEY)
#define	GRE_TYPE	2
#define	GRE_HDRLEN	4	/* and 4 for each of the flags */
#define	GRE_SUM		4
/* UDP: RFC 768. */
#define	UDP_LENGTH	4
#define	UDP_SUM		6
#define	UDP_HDRLEN	8

/* The inner IP header behind GRE; 0 if there is none. */
static uint32_t
tunnel_gre(struct frame_tunnel *ft, const uint8_t *p, uint32_t len)
{
	uint32_t off = ft->ft_outer.fh_l4;
	uint16_t flags, type;

	if (off + GRE_HDRLEN > len)
		return (0);
	flags = be16dec(p + off + GRE_FLAGS);
	type = be16dec(p + off + GRE_TYPE);
	if ((flags & ~GRE_KNOWN) != 0)
		return (0);
	ft->ft_sum = (flags & GRE_CSUM) != 0;
	off += GRE_HDRLEN + ((flags & GRE_CSUM) != 0 ? 4 : 0) +
	    ((flags & GRE_KEY) != 0 ? 4 : 0);
	if (type == FRAME_TYPE_ETHERNET)
		off = frame_hdr_ether(p, len, off, &type);
	return (type == FRAME_TYPE_IP4 || type == FRAME_TYPE_IP6 ? off : 0);
}

/* Whether the IP header has the length of the rest of the frame. */
static bool
tunnel_length(const uint8_t *p, const struct frame_hdr *fh, uint32_t frame_len)
{
	const uint8_t *ip = p + fh->fh_net;

	return (fh->fh_net + (fh->fh_ip4 ? be16dec(ip + FRAME_IP4_LENGTH) :
	    FRAME_IP6_HDRLEN + be16dec(ip + FRAME_IP6_PAYLEN)) == frame_len);
}

/*
 * The inner IP header somewhere behind UDP: it has the length of the rest of
 * the frame, and ends where the inner checksum begins.
 */
static uint32_t
tunnel_udp(struct frame_tunnel *ft, const uint8_t *p, uint32_t len,
    const struct frame *frame)
{
	const uint32_t begin = ft->ft_outer.fh_l4 + UDP_HDRLEN;
	struct frame_hdr fh;
	uint32_t net;

	if (begin > len)
		return (0);
	ft->ft_sum = be16dec(p + ft->ft_outer.fh_l4 + UDP_SUM) != 0;
	for (net = frame->f_csum_start; net >= begin; net--)
		if (frame_hdr_ip(p, len, net, &fh) &&
		    fh.fh_l4 == frame->f_csum_start &&
		    tunnel_length(p, &fh, frame->f_len))
			return (net);
	return (0);
}

/* The offset of the inner IP header; 0: there is none. */
static uint32_t
tunnel_inner(struct frame_tunnel *ft, const uint8_t *p, uint32_t len,
    const struct frame *frame)
{
	struct frame_hdr *fh = &ft->ft_outer;

	ft->ft_sum = false;
	if (!frame_hdr_find(p, len, fh) || fh->fh_routed)
		return (0);
	switch (fh->fh_proto) {
	case FRAME_PROTO_IP4:
	case FRAME_PROTO_IP6:
		return (fh->fh_l4);
	case FRAME_PROTO_GRE:
		return (tunnel_gre(ft, p, len));
	case FRAME_PROTO_UDP:
		return (tunnel_udp(ft, p, len, frame));
	default:
		return (0);
	}
}

bool
frame_tunnel_begin(struct frame_tunnel *ft, const struct frame *frame)
{
	uint8_t hdr[FRAME_CUT_HDRLEN];
	const uint32_t len = MIN(frame->f_len, sizeof(hdr));
	struct frame_cursor cur;
	struct frame inner = *frame;

	frame_cursor_init(&cur, frame->f_iov);
	frame_cursor_copy(&cur, hdr, len);
	inner.f_net_start = tunnel_inner(ft, hdr, len, frame);
	if (inner.f_net_start == 0 || !frame_cut_begin(&ft->ft_cut, &inner))
		return (false);
	if (ft->ft_outer.fh_ip4)
		ft->ft_id = be16dec(hdr + ft->ft_outer.fh_net + FRAME_IP4_ID);
	return (true);
}

/* The fields of the outer IP header. */
static void
tunnel_ip(struct frame_tunnel *ft, uint8_t *ip, uint32_t len)
{
	const uint32_t hdrlen = ft->ft_outer.fh_l4 - ft->ft_outer.fh_net;
	uint16_t sum;

	if (!ft->ft_outer.fh_ip4) {
		be16enc(ip + FRAME_IP6_PAYLEN, len - FRAME_IP6_HDRLEN);
		return;
	}
	be16enc(ip + FRAME_IP4_LENGTH, len);
	be16enc(ip + FRAME_IP4_ID, ft->ft_id++);
	memset(ip + FRAME_IP4_SUM, 0, sizeof(sum));
	sum = frame_sum_fold(frame_sum_bytes(ip, hdrlen));
	memcpy(ip + FRAME_IP4_SUM, &sum, sizeof(sum));
}

/* The checksum of `len' bytes from GRE's or UDP's header on. */
static void
tunnel_sum(struct frame_tunnel *ft, uint8_t *p, uint32_t field, uint64_t pseudo,
    uint32_t len)
{
	uint8_t *l4 = p + ft->ft_outer.fh_l4;
	uint16_t sum;

	memset(l4 + field, 0, sizeof(sum));
	sum = frame_sum_fold(frame_sum_bytes(l4, len) + pseudo);
	/* UDP: 0 means no checksum. */
	if (sum == 0 && field == UDP_SUM)
		sum = 0xffff;
	memcpy(l4 + field, &sum, sizeof(sum));
}

void
frame_tunnel_header(struct frame_tunnel *ft, uint8_t *p)
{
	const struct frame_hdr *fh = &ft->ft_outer;
	const uint32_t len = ft->ft_cut.fc_hdrlen + ft->ft_cut.fc_paylen;
	const uint32_t l4len = len - fh->fh_l4;

	frame_cut_header(&ft->ft_cut, p);
	tunnel_ip(ft, p + fh->fh_net, len - fh->fh_net);
	if (fh->fh_proto == FRAME_PROTO_UDP) {
		be16enc(p + fh->fh_l4 + UDP_LENGTH, l4len);
		if (ft->ft_sum)
			tunnel_sum(ft, p, UDP_SUM,
			    frame_hdr_pseudo(p, fh, l4len), l4len);
	} else if (ft->ft_sum)
		tunnel_sum(ft, p, GRE_SUM, 0, l4len);
}
