/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * frame_host.h.  What Linux leaves to a device as a partial checksum is TCP's
 * or UDP's (also in a tunnel), SCTP's, GRE's own, or one of a virtual machine.
 * All but SCTP's are Internet's.  SCTP's is the one at offset 8.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "frame_cut.h"
#include "frame_hdr.h"
#include "frame_host.h"
#include "frame_sum.h"

/* Offsets of checksums: RFC 9293, 768, 3828, 4340, 9260, 2784. */
#define	TCP_SUM		16
#define	UDP_SUM		6
#define	SCTP_SUM	8
#define	GRE_SUM		4
#define	TCP_HDRLEN	20
#define	TCP_OFFSET	12
#define	UDP_HDRLEN	8

/* Castagnoli's polynomial, the lowest bit first. */
#define	CRC32C_POLY	0x82f63b78

static uint32_t
host_crc32c(const uint8_t *p, size_t len)
{
	uint32_t crc = 0xffffffff;
	int bit;

	for (; len > 0; len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? CRC32C_POLY : 0);
	}
	return (~crc);
}

/* Complete SCTP's checksum. */
static enum frame_host
host_sctp(struct frame *frame, uint8_t *p)
{
	uint8_t *sctp = p + frame->f_csum_start;

	memset(sctp + SCTP_SUM, 0, sizeof(uint32_t));
	le32enc(sctp + SCTP_SUM, host_crc32c(sctp,
	    frame->f_len - frame->f_csum_start));
	frame->f_flags = FRAME_CSUM_VERIFIED;
	return (FRAME_HOST_OK);
}

/* Return the IP header directly before the first byte summed, in a tunnel. */
static bool
host_inner(const struct frame *frame, const uint8_t *p, struct frame_hdr *fh)
{
	const uint32_t l4 = frame->f_csum_start;

	return ((l4 >= FRAME_IP4_HDRLEN && frame_hdr_ip(p, frame->f_len,
	    l4 - FRAME_IP4_HDRLEN, fh) && fh->fh_l4 == l4) ||
	    (l4 >= FRAME_IP6_HDRLEN && frame_hdr_ip(p, frame->f_len,
	    l4 - FRAME_IP6_HDRLEN, fh) && fh->fh_l4 == l4));
}

/* Return the checksum's offset in the header of the protocol; 0: any. */
static uint16_t
host_sum_offset(uint8_t proto)
{
	switch (proto) {
	case FRAME_PROTO_TCP:
		return (TCP_SUM);
	case FRAME_PROTO_UDP:
	case FRAME_PROTO_UDPLITE:
	case FRAME_PROTO_DCCP:
		return (UDP_SUM);
	case FRAME_PROTO_SCTP:
		return (SCTP_SUM);
	case FRAME_PROTO_GRE:
		return (GRE_SUM);
	default:
		return (0);
	}
}

/*
 * Check a packet that is one frame, with a partial checksum, and complete
 * SCTP's.
 */
static enum frame_host
host_checksum(struct frame *frame, uint8_t *p)
{
	struct frame_hdr fh;
	uint16_t offset = 0;
	bool sctp = false;

	if ((frame_hdr_find(p, frame->f_len, &fh) &&
	    fh.fh_l4 == frame->f_csum_start) || host_inner(frame, p, &fh)) {
		offset = host_sum_offset(fh.fh_proto);
		sctp = fh.fh_proto == FRAME_PROTO_SCTP;
	}
	if (offset != 0 && offset != frame->f_csum_offset)
		return (FRAME_HOST_BAD);
	if (!sctp)
		return (frame->f_csum_offset == SCTP_SUM ? FRAME_HOST_BAD :
		    FRAME_HOST_OK);
	if (frame->f_csum_start + SCTP_SUM + sizeof(uint32_t) > frame->f_len)
		return (FRAME_HOST_BAD);
	return (host_sctp(frame, p));
}

/* Return the protocol of the segments. */
static uint8_t
host_segments_proto(const struct frame *frame)
{
	return ((frame->f_gso_type & ~FRAME_GSO_ECN) == FRAME_GSO_UDP_L4 ?
	    FRAME_PROTO_UDP : FRAME_PROTO_TCP);
}

/* Begin the checksum of a packet of segments that has no partial one. */
static enum frame_host
host_begin_checksum(struct frame *frame, uint8_t *p)
{
	const uint8_t proto = host_segments_proto(frame);
	struct frame_hdr fh, inner;
	uint16_t sum;

	if (!frame_hdr_find(p, frame->f_len, &fh))
		return (FRAME_HOST_BAD);
	if (frame_hdr_inner(p, MIN(frame->f_len, FRAME_CUT_HDRLEN), &fh,
	    frame->f_len, 0, &inner) && inner.fh_proto == proto)
		fh = inner;
	if (fh.fh_routed || fh.fh_proto != proto)
		return (FRAME_HOST_BAD);
	frame->f_csum_start = fh.fh_l4;
	frame->f_csum_offset = host_sum_offset(fh.fh_proto);
	if (fh.fh_l4 + frame->f_csum_offset + sizeof(sum) > frame->f_len)
		return (FRAME_HOST_BAD);
	sum = ~frame_sum_fold(frame_hdr_pseudo(p, &fh,
	    frame->f_len - fh.fh_l4));
	memcpy(p + fh.fh_l4 + frame->f_csum_offset, &sum, sizeof(sum));
	frame->f_flags = FRAME_CSUM_PARTIAL;
	return (FRAME_HOST_OK);
}

/*
 * Return the bytes up to the end of TCP's or UDP's header, or of all of the
 * frame.
 */
static uint32_t
host_hdrlen(const struct frame *frame, const uint8_t *p)
{
	uint32_t end = frame->f_csum_start;

	if (host_segments_proto(frame) == FRAME_PROTO_UDP)
		end += UDP_HDRLEN;
	else if (end + TCP_HDRLEN <= frame->f_len)
		end += (p[end + TCP_OFFSET] >> 4) * 4;
	return (MIN(end, frame->f_len));
}

/* Return whether packets of these segments are known, and not too many. */
static bool
host_segments_valid(const struct frame *frame)
{
	switch (frame->f_gso_type & ~FRAME_GSO_ECN) {
	case FRAME_GSO_TCPV4:
	case FRAME_GSO_TCPV6:
	case FRAME_GSO_UDP_L4:
		return (frame->f_gso_size != 0 && howmany(frame->f_len,
		    frame->f_gso_size) <= FRAME_SEGMENTS_MAX);
	default:
		return (false);
	}
}

enum frame_host
frame_host_prepare(struct frame *frame, uint8_t *p)
{
	const bool cut = frame->f_gso_type != FRAME_GSO_NONE;
	struct frame_hdr fh;

	frame->f_hdr_len = 0;
	if (cut && !host_segments_valid(frame))
		return (FRAME_HOST_BAD);
	if ((frame->f_flags & FRAME_CSUM_PARTIAL) == 0) {
		if (!cut)
			return (FRAME_HOST_OK);
		if (host_begin_checksum(frame, p) == FRAME_HOST_BAD)
			return (FRAME_HOST_BAD);
	}
	if ((uint32_t)frame->f_csum_start + frame->f_csum_offset + 2 >
	    frame->f_len)
		return (FRAME_HOST_BAD);
	if (cut && frame->f_len - host_hdrlen(frame, p) <= frame->f_gso_size)
		frame->f_gso_type = FRAME_GSO_NONE;
	if (frame->f_gso_type == FRAME_GSO_NONE)
		return (host_checksum(frame, p));
	return (frame_hdr_find(p, frame->f_len, &fh) &&
	    fh.fh_l4 == frame->f_csum_start ? FRAME_HOST_OK :
	    FRAME_HOST_TUNNEL);
}
