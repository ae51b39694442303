/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Offloads: checksums, the headers of TSO segments, VLAN tags.  Pure functions
 * on the bytes of a frame, without state or locks.  Offsets come from the
 * guest, and are checked against the frame here.  frame_sum.h does the
 * summing.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_offload.h"
#include "frame.h"
#include "frame_cursor.h"

/* Offsets in headers: RFC 791, 8200, 9293, 768. */
#define	IP4_LENGTH	2
#define	IP4_FRAGMENT	6
#define	IP4_PROTO	9
#define	IP4_SUM		10
#define	IP4_ADDRS	12
#define	IP4_HDRLEN	20
#define	IP6_PAYLEN	4
#define	IP6_NEXT	6
#define	IP6_ADDRS	8
#define	IP6_HDRLEN	40
#define	TCP_SUM		16
#define	TCP_HDRLEN	20
#define	UDP_LENGTH	4
#define	UDP_SUM		6
#define	UDP_HDRLEN	8

#define	PROTO_TCP	6
#define	PROTO_UDP	17

uint64_t
e82545_sum(const void *data, size_t len, uint64_t sum, bool odd)
{
	uint64_t s;

	s = frame_sum_bytes(data, len);
	return (sum + (odd ? frame_sum_odd(s) : s));
}

uint64_t
e82545_sum_iov(const struct iovec *iov, size_t off, size_t len, bool odd)
{
	struct frame_cursor cur;
	struct iovec run;
	uint64_t sum;

	frame_cursor_init(&cur, iov);
	frame_cursor_skip(&cur, off);
	for (sum = 0; len > 0; len -= run.iov_len) {
		run = frame_cursor_run(&cur, len);
		sum = e82545_sum(run.iov_base, run.iov_len, sum, odd);
		odd ^= run.iov_len & 1;
	}
	return (sum);
}

bool
e82545_sum_insert(const struct iovec *iov, size_t len,
    const struct e82545_sum_where *where, bool nonzero)
{
	size_t end;
	uint16_t field;

	end = where->end == 0 ? len : (size_t)where->end + 1;
	if (end > len || where->start >= end ||
	    where->field + sizeof(field) > iov[0].iov_len)
		return (false);
	field = frame_sum_fold(e82545_sum_iov(iov, where->start,
	    end - where->start, false));
	if (nonzero && field == 0)
		field = 0xffff;
	memcpy((uint8_t *)iov[0].iov_base + where->field, &field,
	    sizeof(field));
	return (true);
}

/*
 * TSO: 8254x SDM section 3.5.
 */

bool
e82545_tso_valid(const struct e82545_txctx *ctx)
{
	const bool tcp = (ctx->cmd & E82545_TXD_TUCMD_TCP) != 0;
	unsigned int ip;

	ip = (ctx->cmd & E82545_TXD_TUCMD_IP) != 0 ? IP4_HDRLEN : IP6_HDRLEN;
	return (ctx->mss != 0 &&
	    ctx->ip.start + ip <= ctx->l4.start &&
	    ctx->l4.start + (tcp ? TCP_HDRLEN : UDP_HDRLEN) <= ctx->hdrlen &&
	    ctx->l4.field == ctx->l4.start + (tcp ? TCP_SUM : UDP_SUM));
}

uint8_t
e82545_tso_type(const struct e82545_txctx *ctx)
{
	if ((ctx->cmd & E82545_TXD_TUCMD_TCP) == 0)
		return (FRAME_GSO_UDP_L4);
	return ((ctx->cmd & E82545_TXD_TUCMD_IP) != 0 ? FRAME_GSO_TCPV4 :
	    FRAME_GSO_TCPV6);
}

/* Complete the IPv4 header's own checksum, if the header is complete. */
static void
tso_ip_sum(uint8_t *ip, size_t len)
{
	const size_t hdrlen = (ip[0] & 0xf) * 4;
	uint16_t sum = 0;

	if (hdrlen > len)
		return;
	memcpy(ip + IP4_SUM, &sum, sizeof(sum));
	sum = frame_sum_fold(frame_sum_bytes(ip, hdrlen));
	memcpy(ip + IP4_SUM, &sum, sizeof(sum));
}

void
e82545_tso_header(uint8_t *hdr, const struct e82545_txctx *ctx, size_t paylen)
{
	const uint16_t l4len = ctx->hdrlen - ctx->l4.start + paylen;
	uint8_t *ip = hdr + ctx->ip.start, *field = hdr + ctx->l4.field;
	size_t len = ctx->hdrlen - ctx->ip.start + paylen;
	uint16_t sum;

	if ((ctx->cmd & E82545_TXD_TUCMD_IP) != 0) {
		be16enc(ip + IP4_LENGTH, len);
		tso_ip_sum(ip, ctx->l4.start - ctx->ip.start);
	} else
		be16enc(ip + IP6_PAYLEN, len - IP6_HDRLEN);
	if ((ctx->cmd & E82545_TXD_TUCMD_TCP) == 0)
		be16enc(hdr + ctx->l4.start + UDP_LENGTH, l4len);
	/* The guest has left out the length. */
	memcpy(&sum, field, sizeof(sum));
	sum = ~frame_sum_fold((uint32_t)sum + htobe16(l4len));
	memcpy(field, &sum, sizeof(sum));
}

void
e82545_vlan_insert(uint8_t *hdr, uint16_t type, uint16_t tag)
{
	memmove(hdr - E82545_VLAN_LEN, hdr, E82545_VLAN_OFF);
	hdr += E82545_VLAN_OFF - E82545_VLAN_LEN;
	be16enc(hdr, type);
	be16enc(hdr + 2, tag);
}

/*
 * Received frames: 8254x SDM sections 3.2.3 and 3.2.9.
 */

/*
 * The first bytes of a frame: Ethernet, a VLAN tag, IP with all options, and
 * ports, lengths and sum of UDP.
 */
#define	RX_HEAD		96

/*
 * The position of the TCP segment or UDP datagram in a frame, and the sum of
 * its pseudo-header.
 */
struct l4 {
	size_t		off, len;	/* bytes; len 0: nothing to check */
	uint64_t	pseudo;
};

static void
rx_l4(struct l4 *l4, const uint8_t *head, unsigned int proto, size_t off,
    size_t len, uint64_t addrs)
{
	const uint8_t *hdr = head + off;
	size_t udplen;

	switch (proto) {
	case PROTO_TCP:
		if (len < TCP_HDRLEN)
			return;
		break;
	case PROTO_UDP:
		if (len < UDP_HDRLEN || be16dec(hdr + UDP_SUM) == 0)
			return;
		udplen = be16dec(hdr + UDP_LENGTH);
		if (udplen < UDP_HDRLEN || udplen > len)
			return;
		len = udplen;
		break;
	default:
		return;
	}
	l4->off = off;
	l4->len = len;
	l4->pseudo = addrs + htobe16(proto) + htobe16(len);
}

/*
 * Verify the checksums of an IPv4 packet: `off' is the offset of its header,
 * `len' the length of the frame.
 */
static uint16_t
rx_ip4(const uint8_t *head, size_t off, size_t len, uint32_t rxcsum,
    struct l4 *l4)
{
	const uint8_t *ip = head + off;
	size_t hdrlen, iplen;
	uint16_t found;

	hdrlen = (ip[0] & 0xf) * 4;
	iplen = be16dec(ip + IP4_LENGTH);
	if ((ip[0] >> 4) != 4 || hdrlen < IP4_HDRLEN || iplen < hdrlen ||
	    iplen > len - off)
		return (0);
	found = 0;
	if ((rxcsum & E82545_RXCSUM_IPOFL) != 0) {
		found |= E82545_RXD_IPCS;
		if (frame_sum_fold(e82545_sum(ip, hdrlen, 0, false)) != 0)
			found |= E82545_RXD_ERR_IPE << 8;
	}
	/* The checksum covers all fragments of a packet, not one of them. */
	if ((rxcsum & E82545_RXCSUM_TUOFL) != 0 &&
	    (be16dec(ip + IP4_FRAGMENT) & 0x3fff) == 0)
		rx_l4(l4, head, ip[IP4_PROTO], off + hdrlen, iplen - hdrlen,
		    e82545_sum(ip + IP4_ADDRS, 8, 0, false));
	return (found);
}

static void
rx_ip6(const uint8_t *head, size_t off, size_t len, uint32_t rxcsum,
    struct l4 *l4)
{
	const uint8_t *ip = head + off;
	size_t paylen;

	paylen = be16dec(ip + IP6_PAYLEN);
	if ((ip[0] >> 4) != 6 || paylen > len - off - IP6_HDRLEN)
		return;
	/* Extension headers are not followed. */
	if ((rxcsum & E82545_RXCSUM_TUOFL) != 0 &&
	    (rxcsum & E82545_RXCSUM_IPV6OFL) != 0)
		rx_l4(l4, head, ip[IP6_NEXT], off + IP6_HDRLEN, paylen,
		    e82545_sum(ip + IP6_ADDRS, 32, 0, false));
}

/* Return the sum of bytes [from, to) as part of a sum that begins at `base'. */
static uint64_t
rx_range(const struct iovec *iov, size_t from, size_t to, size_t base)
{
	if (from >= to)
		return (0);
	return (e82545_sum_iov(iov, from, to - from, (from ^ base) & 1));
}

uint16_t
e82545_rx_ip(const struct iovec *iov, uint16_t type, size_t off, size_t len,
    uint64_t sum, uint32_t rxcsum)
{
	struct l4 l4 = { 0, 0, 0 };
	struct frame_cursor cur;
	uint8_t head[RX_HEAD];
	size_t end;
	uint16_t found;

	/* Read the headers once: the sender may change them at any time. */
	frame_cursor_init(&cur, iov);
	frame_cursor_copy(&cur, head, MIN(len, sizeof(head)));
	found = 0;
	if (type == E82545_ETHERTYPE_IP4 && len >= off + IP4_HDRLEN)
		found = rx_ip4(head, off, len, rxcsum, &l4);
	else if (len >= off + IP6_HDRLEN)
		rx_ip6(head, off, len, rxcsum, &l4);
	if (l4.len == 0)
		return (found != 0 ? found : E82545_RXD_IXSM);
	/* The sum of the frame, less that of bytes outside the packet. */
	end = l4.off + l4.len;
	sum += frame_sum_fold(rx_range(iov, 0, l4.off, 0) +
	    rx_range(iov, end, len, 0));
	found |= E82545_RXD_TCPCS;
	if (frame_sum_fold(sum + l4.pseudo) != 0)
		found |= E82545_RXD_ERR_TCPE << 8;
	return (found);
}

uint64_t
e82545_rx_seen(const struct iovec *iov, size_t len, size_t from, bool strip)
{
	if (!strip)
		return (rx_range(iov, from, len, from));
	if (from >= E82545_VLAN_OFF)
		return (rx_range(iov, from + E82545_VLAN_LEN, len, from));
	return (rx_range(iov, from, E82545_VLAN_OFF, from) +
	    rx_range(iov, E82545_VLAN_OFF + E82545_VLAN_LEN, len, from));
}
