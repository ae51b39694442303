/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The module's copy of a ruled frame, and its forms: see vale_learn_form.h.
 *
 * The virtio-net header (struct nm_vnet_hdr of netmap) is the sender's word.
 * Where a receiver has no such header, netmap computes checksums and cuts
 * segments by the sender's, and trusts what is checked here.  What netmap
 * changes must not be what a guard has seen: only TCP's and UDP's headers
 * directly behind IP's, and lengths and sums of that.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/systm.h>

#include <dev/netmap/vale_learn_form.h>

#define	ADDRS_LEN	12		/* bytes of a frame's two addresses */
#define	TCI_PRIORITY	0xf000		/* and DEI */

/* A virtio-net header: little-endian numbers of 16 bits. */
#define	VNET_FLAGS	0
#define	VNET_NEEDS_CSUM	1
#define	VNET_GSO	1		/* 0: not to be cut */
#define	 VNET_GSO_TCP4	1
#define	 VNET_GSO_UDP	3
#define	 VNET_GSO_TCP6	4
#define	 VNET_GSO_UDP_L4 5
#define	 VNET_GSO_ECN	0x80
#define	VNET_HDR_LEN	2
#define	VNET_CSUM_START	6		/* from the frame's beginning */
#define	VNET_CSUM_OFFSET 8		/* from there */
#define	VNET_LEN	10

/* RFC 791, 8200, 9293, 768. */
#define	TYPE_IP4	0x0800
#define	TYPE_IP6	0x86dd
#define	IP4_LEN		20		/* without options */
#define	IP4_FRAGMENT	6
#define	IP4_PROTO	9
#define	IP6_LEN		40
#define	IP6_NEXT	6
#define	PROTO_TCP	6
#define	PROTO_UDP	17
#define	TCP_SUM		16
#define	UDP_SUM		6

void
vale_learn_frame_begin(struct vale_learn_frame *lf, uint32_t header)
{
	MPASS(header <= VALE_LEARN_VNET_MAX);
	lf->lf_start = lf->lf_bytes + VALE_VLAN_TAG;
	lf->lf_header = header;
	lf->lf_len = 0;
}

uint8_t *
vale_learn_frame_append(struct vale_learn_frame *lf, uint32_t len)
{
	uint8_t *to = lf->lf_start + lf->lf_len;

	if (len > lf->lf_header + VALE_LEARN_FRAME_MAX - lf->lf_len)
		return (NULL);
	lf->lf_len += len;
	return (to);
}

bool
vale_learn_frame_end(struct vale_learn_frame *lf)
{
	if (lf->lf_len < lf->lf_header + VALE_LEARN_HEADER)
		return (false);
	lf->lf_len -= lf->lf_header;
	return (true);
}

bool
vale_learn_frame_tagged(const struct vale_learn_frame *lf)
{
	return (be16dec(vale_learn_frame_data(lf) + ADDRS_LEN) ==
	    VALE_VLAN_TYPE);
}

/*
 * Return the protocol of what directly follows an IP header behind Ethernet's
 * header and at most two tags, and its offset.  0: nothing follows, or a
 * fragment.
 */
static uint8_t
frame_proto(const struct vale_learn_frame *lf, uint32_t *l4, bool *ip4)
{
	const uint8_t *p = vale_learn_frame_data(lf), *ip;
	uint32_t net = VALE_LEARN_HEADER;
	unsigned int tags = 0;
	uint16_t type;

	while (be16dec(p + net - 2) == VALE_VLAN_TYPE) {
		net += VALE_VLAN_TAG;
		if (tags++ == 2)
			return (0);
	}
	type = be16dec(p + net - 2);
	ip = p + net;
	*ip4 = type == TYPE_IP4;
	if (*ip4 && net + IP4_LEN <= lf->lf_len && ip[0] >> 4 == 4 &&
	    (ip[0] & 0xf) * 4 >= IP4_LEN &&
	    (be16dec(ip + IP4_FRAGMENT) & 0x3fff) == 0) {
		*l4 = net + (ip[0] & 0xf) * 4;
		return (ip[IP4_PROTO]);
	}
	if (type != TYPE_IP6 || net + IP6_LEN > lf->lf_len || ip[0] >> 4 != 6)
		return (0);
	*l4 = net + IP6_LEN;
	return (ip[IP6_NEXT]);
}

/* Return whether the checksum is TCP's or UDP's, whose header is at `l4'. */
static bool
is_l4_sum(const uint8_t *vh, uint32_t l4, uint8_t proto)
{
	const uint32_t offset = le16dec(vh + VNET_CSUM_OFFSET);

	return (le16dec(vh + VNET_CSUM_START) == l4 && ((proto == PROTO_TCP &&
	    offset == TCP_SUM) || (proto == PROTO_UDP && offset == UDP_SUM)));
}

/* See that a packet to cut has the IP version and protocol of its type. */
static bool
is_segments(uint8_t gso, uint8_t proto, bool ip4)
{
	switch (gso & ~VNET_GSO_ECN) {
	case VNET_GSO_TCP4:
		return (ip4 && proto == PROTO_TCP);
	case VNET_GSO_TCP6:
		return (!ip4 && proto == PROTO_TCP);
	case VNET_GSO_UDP:
	case VNET_GSO_UDP_L4:
		return (proto == PROTO_UDP);
	default:
		return (false);
	}
}

/* Complete the checksum, and ask for none. */
static bool
frame_sum(struct vale_learn_frame *lf)
{
	uint8_t *vh = lf->lf_start, *p = vale_learn_frame_data(lf);
	const uint32_t start = le16dec(vh + VNET_CSUM_START);
	const uint32_t offset = le16dec(vh + VNET_CSUM_OFFSET);
	uint32_t i, sum = 0;

	if (start + offset + 2 > lf->lf_len)
		return (false);
	for (i = start; i + 1 < lf->lf_len; i += 2)
		sum += be16dec(p + i);
	if (i < lf->lf_len)
		sum += p[i] << 8;
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	/* UDP: 0 means no checksum. */
	if (sum == 0xffff && offset == UDP_SUM)
		sum = 0;
	be16enc(p + start + offset, ~sum);
	vh[VNET_FLAGS] &= ~VNET_NEEDS_CSUM;
	return (true);
}

bool
vale_learn_frame_complete(struct vale_learn_frame *lf)
{
	const uint8_t *vh = lf->lf_start;
	bool ip4 = false, late, sums;
	uint32_t l4 = 0;
	uint8_t proto;

	if (lf->lf_header < VNET_LEN)
		return (true);
	sums = (vh[VNET_FLAGS] & VNET_NEEDS_CSUM) != 0;
	if (!sums && vh[VNET_GSO] == 0)
		return (true);
	proto = frame_proto(lf, &l4, &ip4);
	late = is_l4_sum(vh, l4, proto) && l4 + TCP_SUM + 2 <= lf->lf_len;
	if (vh[VNET_GSO] != 0)
		return ((late || !sums) &&
		    is_segments(vh[VNET_GSO], proto, ip4));
	return (late || frame_sum(lf));
}

/* Make the virtio-net header one for headers that are `more' bytes longer. */
static void
frame_fix(struct vale_learn_frame *lf, int more)
{
	uint8_t *vh = lf->lf_start;
	uint16_t len;

	if (lf->lf_header < VNET_LEN)
		return;
	if ((vh[VNET_FLAGS] & VNET_NEEDS_CSUM) != 0)
		le16enc(vh + VNET_CSUM_START,
		    le16dec(vh + VNET_CSUM_START) + more);
	/* The header's length is a hint, and may be anything. */
	len = le16dec(vh + VNET_HDR_LEN);
	if (vh[VNET_GSO] != 0 && len >= VALE_LEARN_HEADER + VALE_VLAN_TAG &&
	    len <= UINT16_MAX - VALE_VLAN_TAG)
		le16enc(vh + VNET_HDR_LEN, len + more);
}

/* Move the virtio-net header and the addresses; `by': a tag's bytes or less. */
static void
frame_move(struct vale_learn_frame *lf, int by)
{
	MPASS(lf->lf_start + by >= lf->lf_bytes);
	memmove(lf->lf_start + by, lf->lf_start, lf->lf_header + ADDRS_LEN);
	lf->lf_start += by;
	lf->lf_len -= by;
	frame_fix(lf, -by);
}

void
vale_learn_frame_form(struct vale_learn_frame *lf, unsigned int vlan,
    bool tagged)
{
	const bool had = vale_learn_frame_tagged(lf);
	uint8_t *tag;
	uint16_t tci;

	if (vlan == 0 || (!had && !tagged))
		return;
	MPASS(!had || lf->lf_len >= VALE_LEARN_HEADER + VALE_VLAN_TAG);
	if (!tagged) {
		frame_move(lf, VALE_VLAN_TAG);
		return;
	}
	tci = vlan;
	if (had)
		tci |= be16dec(vale_learn_frame_data(lf) + VALE_LEARN_HEADER) &
		    TCI_PRIORITY;
	else
		frame_move(lf, -VALE_VLAN_TAG);
	tag = vale_learn_frame_data(lf) + ADDRS_LEN;
	be16enc(tag, VALE_VLAN_TYPE);
	be16enc(tag + 2, tci);
}
