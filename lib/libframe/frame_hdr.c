/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* frame_hdr.h. */

#include <sys/param.h>
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

	if (fh->fh_net + FRAME_IP4_HDRLEN > len)
		return (false);
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

uint64_t
frame_hdr_pseudo(const uint8_t *p, const struct frame_hdr *fh, uint32_t len)
{
	const uint8_t *ip = p + fh->fh_net;
	uint64_t sum;

	sum = fh->fh_ip4 ? frame_sum_bytes(ip + FRAME_IP4_ADDRS, 8) :
	    frame_sum_bytes(ip + FRAME_IP6_ADDRS, 32);
	return (sum + htobe16(fh->fh_proto) + htobe16(len >> 16) +
	    htobe16((uint16_t)len));
}
