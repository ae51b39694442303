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

/* Offsets: RFC 2784; RFC 768. */
#define	GRE_SUM		4
#define	UDP_LENGTH	4
#define	UDP_SUM		6

/* Return whether UDP's or GRE's header, which is in `hdr', has a checksum. */
static bool
tunnel_has_sum(const struct frame_hdr *fh, const uint8_t *hdr)
{
	const uint8_t *l4 = hdr + fh->fh_l4;

	switch (fh->fh_proto) {
	case FRAME_PROTO_UDP:
		return (be16dec(l4 + UDP_SUM) != 0);
	case FRAME_PROTO_GRE:
		return ((be16dec(l4 + FRAME_GRE_FLAGS) & FRAME_GRE_CSUM) != 0);
	default:
		return (false);
	}
}

bool
frame_tunnel_begin(struct frame_tunnel *ft, const struct frame *frame)
{
	uint8_t hdr[FRAME_CUT_HDRLEN];
	const uint32_t len = MIN(frame->f_len, sizeof(hdr));
	struct frame_hdr *outer = &ft->ft_outer, fh;
	struct frame_cursor cur;
	struct frame inner = *frame;

	frame_cursor_init(&cur, frame->f_iov);
	frame_cursor_copy(&cur, hdr, len);
	if (!frame_hdr_find(hdr, len, outer) || !frame_hdr_inner(hdr, len,
	    outer, frame->f_len, frame->f_csum_start, &fh))
		return (false);
	inner.f_net_start = fh.fh_net;
	if (!frame_cut_begin(&ft->ft_cut, &inner))
		return (false);
	ft->ft_sum = tunnel_has_sum(outer, hdr);
	ft->ft_id = be16dec(hdr + outer->fh_net + FRAME_IP4_ID);
	return (true);
}

/* Set the fields of the outer IP header. */
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

/* Return the checksum of `len' bytes from GRE's or UDP's header on. */
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
