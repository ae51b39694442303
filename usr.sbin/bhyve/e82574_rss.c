/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which of two receive queues gets a frame: RSS, receive-side scaling.
 *
 * The addresses of a packet of IP, and the ports if it is TCP's, have a hash by
 * the key in RSSRK, Toeplitz's.  Bit 7 of an entry of RETA, which the low bits
 * of the hash select, is the queue.  Hash and type go into the descriptor.
 * What has no hash, because it is no such packet, or MRQC does not ask for its
 * type, is of type 0, and goes to queue 0.
 *
 * A fragment has no ports.  With extension headers the home address, of an
 * option for the destination, is in place of the source address, and that of a
 * routing header of type 2 in place of the destination: RFC 6275, sections 6.3
 * and 6.4.  RFCTL can say that such packets only have the type that has
 * neither.  Headers behind RSS_HEAD bytes are not looked at: that is no packet
 * of TCP.
 *
 * 82574 datasheet, sections on multiple receive queues, MRQC, RETA and RSSRK.
 *
 * All functions need rx_mtx, with which the registers change that decide, or
 * nothing.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_offload.h"
#include "e82545_rx_impl.h"
#include "e82574.h"
#include "frame_cursor.h"

/* IP: protocols, and options of extension headers. */
#define	PROTO_HOPOPTS		0
#define	PROTO_TCP		6
#define	PROTO_ROUTING		43
#define	PROTO_FRAGMENT		44
#define	PROTO_DSTOPTS		60
#define	OPT_PAD1		0
#define	OPT_HOME_ADDRESS	201
#define	OPT_HOME_LEN		(2 + IP6_ADDRLEN)	/* bytes of that one */
#define	ROUTING_HOME		2	/* type of a routing header */

#define	IP4_HDRLEN		20	/* bytes, without options */
#define	IP4_FRAGMENT		0x3fff	/* MF and offset: not 0 */
#define	IP6_HDRLEN		40
#define	IP6_ADDRLEN		16
#define	TCP_HDRLEN		20
#define	TCP_PORTS		4

uint32_t
e82574_rss_hash(const uint8_t key[E82574_RSSRK_COUNT * 4], const uint8_t *data,
    size_t len)
{
	uint64_t window;
	uint32_t hash = 0;
	unsigned int bit;
	size_t i;

	MPASS(len <= E82574_RSS_INPUT);
	for (i = 0; i < len; i++) {
		/* The key's bits that belong to this byte, and 31 more. */
		window = (uint64_t)be32dec(key + i) << 8 | key[i + 4];
		for (bit = 0; bit < 8; bit++)
			if ((data[i] & 0x80 >> bit) != 0)
				hash ^= window >> (8 - bit);
	}
	return (hash);
}

bool
e82574_rss_on(const struct e82545 *dev)
{
	return ((e82545_reg(dev, E82574_MRQC) & E82574_MRQC_ENABLE) ==
	    E82574_MRQC_ENABLE_RSS &&
	    (e82545_reg(dev, E82545_RXCSUM) & E82574_RXCSUM_PCSD) != 0);
}

void
e82574_rss_begin(const struct e82545 *dev, struct e82574_rss *r)
{
	unsigned int i;

	r->er_mrqc = e82545_reg(dev, E82574_MRQC);
	r->er_rfctl = e82545_reg(dev, E82574_RFCTL);
	r->er_vet = e82545_reg(dev, E82545_VET);
	for (i = 0; i < E82574_RSSRK_COUNT; i++)
		le32enc(r->er_key + 4 * i, e82545_reg(dev, E82574_RSSRK +
		    4 * i));
}

/* What is hashed of a packet, and of which type that is. */
struct input {
	uint8_t		bytes[E82574_RSS_INPUT];
	size_t		len;
	unsigned int	type;
};

static void
input_add(struct input *in, const uint8_t *data, size_t len)
{
	memcpy(in->bytes + in->len, data, len);
	in->len += len;
}

static void
input_ip4(struct input *in, uint32_t mrqc, const uint8_t *ip, size_t len)
{
	size_t hdrlen;
	bool tcp;

	if (len < IP4_HDRLEN || ip[0] >> 4 != 4)
		return;
	hdrlen = (ip[0] & 0xf) * 4;
	if (hdrlen < IP4_HDRLEN || hdrlen > len)
		return;
	tcp = (mrqc & E82574_MRQC_TCPIP4) != 0 && ip[9] == PROTO_TCP &&
	    (be16dec(ip + 6) & IP4_FRAGMENT) == 0 && len - hdrlen >= TCP_HDRLEN;
	if (!tcp && (mrqc & E82574_MRQC_IP4) == 0)
		return;
	in->type = tcp ? E82574_RSS_TCPIP4 : E82574_RSS_IP4;
	input_add(in, ip + 12, 8);
	if (tcp)
		input_add(in, ip + hdrlen, TCP_PORTS);
}

/* What extension headers say. */
struct ip6 {
	const uint8_t	*src, *dst;
	bool		 extended;	/* there are some */
	bool		 home;		/* an address is another one */
	const uint8_t	*tcp;		/* or NULL */
};

/* Return the home address in options of `len' bytes, or NULL. */
static const uint8_t *
home_address(const uint8_t *opt, size_t len)
{
	size_t i, n;

	for (i = 0; i + OPT_HOME_LEN <= len; i += n) {
		n = opt[i] == OPT_PAD1 ? 1 : 2U + opt[i + 1];
		if (opt[i] == OPT_HOME_ADDRESS && n == OPT_HOME_LEN)
			return (opt + i + 2);
	}
	return (NULL);
}

static void
ip6_headers(struct ip6 *p, const uint8_t *ip, size_t len)
{
	const uint8_t *home, *hdr = ip + IP6_HDRLEN;
	size_t left = len - IP6_HDRLEN, n;
	uint8_t next = ip[6];

	for (;; hdr += n, left -= n) {
		if (next == PROTO_TCP && left >= TCP_HDRLEN)
			p->tcp = hdr;
		p->extended |= next == PROTO_FRAGMENT;
		if (next != PROTO_HOPOPTS && next != PROTO_DSTOPTS &&
		    next != PROTO_ROUTING)
			return;
		p->extended = true;
		if (left < 8 || (n = (hdr[1] + 1U) * 8) > left)
			return;
		if (next == PROTO_DSTOPTS &&
		    (home = home_address(hdr + 2, n - 2)) != NULL) {
			p->src = home;
			p->home = true;
		}
		if (next == PROTO_ROUTING && hdr[2] == ROUTING_HOME &&
		    hdr[3] == 1 && n == 8 + IP6_ADDRLEN) {
			p->dst = hdr + 8;
			p->home = true;
		}
		next = hdr[0];
	}
}

static void
input_ip6(struct input *in, uint32_t mrqc, uint32_t rfctl, const uint8_t *ip,
    size_t len)
{
	const uint8_t *src = ip + 8, *dst = ip + 8 + IP6_ADDRLEN;
	struct ip6 p = { .src = src, .dst = dst };
	bool ex;

	if (len < IP6_HDRLEN || ip[0] >> 4 != 6)
		return;
	ip6_headers(&p, ip, len);
	ex = ((rfctl & E82574_RFCTL_IP6_EX_DIS) == 0 || !p.extended) &&
	    ((rfctl & E82574_RFCTL_NEW_IP6_EX_DIS) == 0 || !p.home);
	if (ex && p.tcp != NULL && (mrqc & E82574_MRQC_TCPIP6) != 0)
		in->type = E82574_RSS_TCPIP6;
	else if (ex && (mrqc & E82574_MRQC_IP6EX) != 0)
		in->type = E82574_RSS_IP6EX;
	else if ((mrqc & E82574_MRQC_IP6) != 0)
		in->type = E82574_RSS_IP6;
	input_add(in, in->type == E82574_RSS_IP6 ? src : p.src, IP6_ADDRLEN);
	input_add(in, in->type == E82574_RSS_IP6 ? dst : p.dst, IP6_ADDRLEN);
	if (in->type == E82574_RSS_TCPIP6)
		input_add(in, p.tcp, TCP_PORTS);
}

unsigned int
e82574_rss_queue(const struct e82545 *dev, const struct e82574_rss *r,
    const struct frame *f, uint64_t *lower)
{
	const size_t len = MIN(f->f_len, (uint32_t)RSS_HEAD);
	uint8_t head[RSS_HEAD];
	struct input in = { .len = 0 };
	struct frame_cursor cur;
	unsigned int queue;
	uint32_t hash, reta;
	size_t l3 = E82545_ETH_HDRLEN;
	uint16_t type;

	*lower = 0;
	/* The frame may lie in another guest's memory, and change. */
	frame_cursor_init(&cur, f->f_iov);
	frame_cursor_copy(&cur, head, len);
	if (len < E82545_ETH_HDRLEN + E82545_VLAN_LEN)
		return (0);
	type = rx_type(head, false);
	if (type == r->er_vet) {
		type = rx_type(head, true);
		l3 += E82545_VLAN_LEN;
	}
	if (type == E82545_ETHERTYPE_IP4)
		input_ip4(&in, r->er_mrqc, head + l3, len - l3);
	else if (type == E82545_ETHERTYPE_IP6)
		input_ip6(&in, r->er_mrqc, r->er_rfctl, head + l3, len - l3);
	if (in.type == E82574_RSS_NONE)
		return (0);
	hash = e82574_rss_hash(r->er_key, in.bytes, in.len);
	reta = e82545_reg(dev, E82574_RETA + hash % E82574_RETA_ENTRIES / 4 *
	    4) >> hash % 4 * 8;
	queue = (reta & E82574_RETA_QUEUE) != 0;
	*lower = htole64((uint64_t)hash << 32 | queue << 8 | in.type);
	return (queue);
}
