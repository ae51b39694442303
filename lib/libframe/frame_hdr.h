/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Where the headers of a frame are.  All functions read at most `len' bytes
 * from `p' on, also if somebody changes these meanwhile; what they return is
 * then within the frame, and says nothing more of it.  Any thread; no state.
 */

#ifndef _FRAME_HDR_H_
#define	_FRAME_HDR_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stdint.h>

/* Types of Ethernet: RFC 9542, appendix B. */
#define	FRAME_TYPE_IP4		0x0800
#define	FRAME_TYPE_ETHERNET	0x6558	/* as GRE's payload: RFC 1701 */
#define	FRAME_TYPE_IP6		0x86dd

/* Protocols of IP: IANA's "Protocol Numbers". */
#define	FRAME_PROTO_IP4		4
#define	FRAME_PROTO_TCP		6
#define	FRAME_PROTO_UDP		17
#define	FRAME_PROTO_DCCP	33
#define	FRAME_PROTO_IP6		41
#define	FRAME_PROTO_GRE		47
#define	FRAME_PROTO_SCTP	132
#define	FRAME_PROTO_UDPLITE	136

/* Offsets in headers: RFC 791, 8200. */
#define	FRAME_IP4_HDRLEN	20
#define	FRAME_IP4_LENGTH	2
#define	FRAME_IP4_ID		4
#define	FRAME_IP4_SUM		10
#define	FRAME_IP4_ADDRS		12
#define	FRAME_IP6_HDRLEN	40
#define	FRAME_IP6_PAYLEN	4
#define	FRAME_IP6_ADDRS		8

/* Offsets of checksums: RFC 9293, 768. */
#define	FRAME_TCP_SUM		16
#define	FRAME_UDP_SUM		6

/* GRE: RFC 2784, 2890. */
#define	FRAME_GRE_FLAGS		0
#define	 FRAME_GRE_CSUM		0x8000
#define	 FRAME_GRE_KEY		0x2000

/* An IP header and what follows it. */
struct frame_hdr {
	uint32_t	fh_net;		/* offset of the IP header */
	uint32_t	fh_l4;		/* of what follows it and its options or
					   extension headers */
	uint8_t		fh_proto;	/* FRAME_PROTO_*, or another */
	bool		fh_ip4;		/* else IPv6 */
	bool		fh_routed;	/* IPv6: the destination is another than
					   the header says */
};

/*
 * Return the offset of what follows an Ethernet header at offset `off' and up
 * to two VLAN tags, and set *type to its type.  Returns 0 if the frame ends
 * before.
 */
uint32_t frame_hdr_ether(const uint8_t *p, uint32_t len, uint32_t off,
	    uint16_t *type);

/*
 * Find what follows the IP header at offset `net' and its extension headers
 * (hop-by-hop options, routing, destination options: RFC 8200, section 4).
 * Returns false if a header is not complete or not valid, or the packet is a
 * fragment.
 */
bool	frame_hdr_ip(const uint8_t *p, uint32_t len, uint32_t net,
	    struct frame_hdr *fh);

/*
 * Call frame_hdr_ip() for what frame_hdr_ether() finds at offset 0.  Returns
 * false also if Ethernet's type is not that of this IP version.
 */
bool	frame_hdr_find(const uint8_t *p, uint32_t len, struct frame_hdr *fh);

/*
 * Find the inner IP header of a frame of `frame_len' bytes, of which `len' are
 * at `p', that is in a tunnel: IP, which is *outer, then nothing, GRE, or UDP
 * and whatever a tunnel over UDP has.  Behind UDP it has the length of the rest
 * of the frame, and `l4' follows it; if that is 0, TCP or UDP follows, and
 * IPv4's checksum and UDP's length are right.  Returns false if there is none,
 * GRE has sequence numbers, or the destination of *outer is another than it
 * says.
 */
bool	frame_hdr_inner(const uint8_t *p, uint32_t len,
	    const struct frame_hdr *outer, uint32_t frame_len, uint32_t l4,
	    struct frame_hdr *fh);

/*
 * Return the sum of the pseudo-header of TCP or UDP, not folded, for `len'
 * bytes from fh->fh_l4 on: RFC 9293, section 3.1; RFC 8200, section 8.1.
 */
uint64_t frame_hdr_pseudo(const uint8_t *p, const struct frame_hdr *fh,
	    uint16_t len);

#endif /* !_FRAME_HDR_H_ */
