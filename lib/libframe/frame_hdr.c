/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* frame_hdr.h. */

#include <sys/endian.h>

#include "frame_hdr.h"
#include "frame_sum.h"

#define	ETHER_TYPE	12
#define	TYPE_VLAN	0x8100	/* IEEE 802.1Q, table 9-1 */
#define	TYPE_QINQ	0x88a8
#define	VLAN_LEN	4
#define	VLAN_TAGS	2	/* that may precede the IP header */

#define	IP4_FRAGMENT	6
#define	 IP4_FRAGMENT_MASK 0x3fff	/* more fragments, offset */
#define	IP4_PROTO	9
#define	IP6_NEXT	6
/* Extension headers: RFC 8200, section 4. */
#define	IP6_EXT_NEXT	0
#define	IP6_EXT_LEN	1	/* in 8 bytes, without the first 8 */
#define	IP6_EXT_LEFT	3	/* of a routing header: segments left */
#define	IP6_HOPOPTS	0
#define	IP6_ROUTING	43
#define	IP6_DSTOPTS	60

#define	GRE_TYPE	2
#define	GRE_HDRLEN	4	/* and 4 for each of the flags */
#define	UDP_HDRLEN	8
#define	UDP_LENGTH	4

uint32_t
frame_hdr_ether(const uint8_t *p, uint32_t len, uint32_t off, uint16_t *type)
{
	int tags;

	off += ETHER_TYPE;
	for (tags = 0; off + 2 <= len; tags++) {
		*type = be16dec(p + off);
		if (tags == VLAN_TAGS ||
		    (*type != TYPE_VLAN && *type != TYPE_QINQ))
			return (off + 2);
		off += VLAN_LEN;
	}
	return (0);
}

static bool
hdr_ip4(const uint8_t *p, uint32_t len, struct frame_hdr *fh)
{
	const uint8_t *ip = p + fh->fh_net;
	uint32_t hdrlen;

	hdrlen = (ip[0] & 0xf) * 4;
	if (hdrlen < FRAME_IP4_HDRLEN || fh->fh_net + hdrlen > len ||
	    (be16dec(ip + IP4_FRAGMENT) & IP4_FRAGMENT_MASK) != 0)
		return (false);
	fh->fh_l4 = fh->fh_net + hdrlen;
	fh->fh_proto = ip[IP4_PROTO];
	return (true);
}

static bool
hdr_ip6(const uint8_t *p, uint32_t len, struct frame_hdr *fh)
{
	const uint8_t *ext;

	fh->fh_l4 = fh->fh_net + FRAME_IP6_HDRLEN;
	if (fh->fh_l4 > len)
		return (false);
	fh->fh_proto = p[fh->fh_net + IP6_NEXT];
	while (fh->fh_proto == IP6_HOPOPTS || fh->fh_proto == IP6_ROUTING ||
	    fh->fh_proto == IP6_DSTOPTS) {
		if (fh->fh_l4 + 8 > len)
			return (false);
		ext = p + fh->fh_l4;
		if (fh->fh_proto == IP6_ROUTING && ext[IP6_EXT_LEFT] != 0)
			fh->fh_routed = true;
		fh->fh_proto = ext[IP6_EXT_NEXT];
		fh->fh_l4 += (ext[IP6_EXT_LEN] + 1) * 8;
	}
	return (fh->fh_l4 <= len);
}

bool
frame_hdr_ip(const uint8_t *p, uint32_t len, uint32_t net,
    struct frame_hdr *fh)
{
	if (net >= len)
		return (false);
	fh->fh_net = net;
	fh->fh_routed = false;
	fh->fh_ip4 = p[net] >> 4 == 4;
	if (fh->fh_ip4)
		return (hdr_ip4(p, len, fh));
	return (p[net] >> 4 == 6 && hdr_ip6(p, len, fh));
}

bool
frame_hdr_find(const uint8_t *p, uint32_t len, struct frame_hdr *fh)
{
	uint32_t net;
	uint16_t type;

	net = frame_hdr_ether(p, len, 0, &type);
	return (net != 0 && frame_hdr_ip(p, len, net, fh) &&
	    type == (fh->fh_ip4 ? FRAME_TYPE_IP4 : FRAME_TYPE_IP6));
}

/* Return the offset of the inner IP header behind GRE; 0 if there is none. */
static uint32_t
hdr_gre(const uint8_t *p, uint32_t len, uint32_t off)
{
	uint16_t flags, type;

	if (off + GRE_HDRLEN > len)
		return (0);
	flags = be16dec(p + off + FRAME_GRE_FLAGS);
	type = be16dec(p + off + GRE_TYPE);
	if ((flags & ~(FRAME_GRE_CSUM | FRAME_GRE_KEY)) != 0)
		return (0);
	off += GRE_HDRLEN + ((flags & FRAME_GRE_CSUM) != 0 ? 4 : 0) +
	    ((flags & FRAME_GRE_KEY) != 0 ? 4 : 0);
	if (type == FRAME_TYPE_ETHERNET)
		off = frame_hdr_ether(p, len, off, &type);
	return (type == FRAME_TYPE_IP4 || type == FRAME_TYPE_IP6 ? off : 0);
}

/* Return whether the IP header has the length of the rest of the frame. */
static bool
hdr_length(const uint8_t *p, const struct frame_hdr *fh, uint32_t frame_len)
{
	const uint8_t *ip = p + fh->fh_net;

	return (fh->fh_net + (fh->fh_ip4 ? be16dec(ip + FRAME_IP4_LENGTH) :
	    FRAME_IP6_HDRLEN + be16dec(ip + FRAME_IP6_PAYLEN)) == frame_len);
}

/*
 * Return whether TCP, or UDP of the right length, follows the IP header, whose
 * checksum is right: other data may look like a header without these.
 */
static bool
hdr_sound(const uint8_t *p, uint32_t len, const struct frame_hdr *fh,
    uint32_t frame_len)
{
	if (fh->fh_ip4 && frame_sum_fold(frame_sum_bytes(p + fh->fh_net,
	    fh->fh_l4 - fh->fh_net)) != 0)
		return (false);
	return (fh->fh_proto == FRAME_PROTO_TCP ||
	    (fh->fh_proto == FRAME_PROTO_UDP && fh->fh_l4 + UDP_HDRLEN <= len &&
	    be16dec(p + fh->fh_l4 + UDP_LENGTH) == frame_len - fh->fh_l4));
}

/* Return the offset of the inner IP header behind UDP; 0 if there is none. */
static uint32_t
hdr_udp(const uint8_t *p, uint32_t len, uint32_t begin, uint32_t frame_len,
    uint32_t l4)
{
	const uint32_t end = l4 != 0 ? l4 : len;
	struct frame_hdr fh;
	uint32_t i, net;

	/* The last one before `l4', or the first one. */
	for (i = 0; begin + i <= end; i++) {
		net = l4 != 0 ? end - i : begin + i;
		if (frame_hdr_ip(p, len, net, &fh) &&
		    hdr_length(p, &fh, frame_len) &&
		    (l4 != 0 ? fh.fh_l4 == l4 :
		    hdr_sound(p, len, &fh, frame_len)))
			return (net);
	}
	return (0);
}

bool
frame_hdr_inner(const uint8_t *p, uint32_t len, const struct frame_hdr *outer,
    uint32_t frame_len, uint32_t l4, struct frame_hdr *fh)
{
	uint32_t net = 0;

	if (outer->fh_routed)
		return (false);
	switch (outer->fh_proto) {
	case FRAME_PROTO_IP4:
	case FRAME_PROTO_IP6:
		net = outer->fh_l4;
		break;
	case FRAME_PROTO_GRE:
		net = hdr_gre(p, len, outer->fh_l4);
		break;
	case FRAME_PROTO_UDP:
		net = hdr_udp(p, len, outer->fh_l4 + UDP_HDRLEN, frame_len, l4);
		break;
	}
	return (net != 0 && frame_hdr_ip(p, len, net, fh));
}

uint64_t
frame_hdr_pseudo(const uint8_t *p, const struct frame_hdr *fh, uint16_t len)
{
	const uint8_t *ip = p + fh->fh_net;
	uint64_t sum;

	sum = fh->fh_ip4 ? frame_sum_bytes(ip + FRAME_IP4_ADDRS, 8) :
	    frame_sum_bytes(ip + FRAME_IP6_ADDRS, 32);
	return (sum + htobe16(fh->fh_proto) + htobe16(len));
}
