/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * frame_tunnel.c: each segment has all headers of the packet, with lengths and
 * checksums of its own.  The inner packet is one of packet_build(), the outer
 * headers are checked byte by byte.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>

#include <atf-c.h>
#include <string.h>

#include "e82545_packet.h"
#include "frame_host.h"
#include "frame_tunnel.h"
#include "test.h"

#define	BYTES	(200 + PACKET_HDR_MAX + 65535)

static uint32_t ether;	/* bytes of the outer Ethernet header */
static uint8_t data[BYTES], payload[BYTES], inner[BYTES], found[BYTES];

/* Outer headers between IP and the inner frame or packet. */
struct tunnel {
	const char	*what;
	bool		 v6;		/* the outer IP */
	uint8_t		 proto;		/* what follows; 0: by the inner IP */
	uint32_t	 len;		/* bytes of it */
	uint8_t		 bytes[24 + 1];
	bool		 ether;		/* an inner Ethernet header follows */
	bool		 type;		/* the inner type is at 2 */
	bool		 sum;		/* UDP's or GRE's checksum */
	bool		 bad;
};

#define	VXLAN	"\x12\x34\x12\xb5\0\0\0\0\x08\0\0\0\0\0\x07\0"
#define	GENEVE	"\x12\x34\x17\xc1\0\0\0\0\x02\0\x65\x58\0\0\x07\0"	\
		"\x12\x34\0\1\x45\0\0\x45"

static const struct tunnel tunnels[] = {
	{ .what = "IP in IPv4" },
	{ .what = "IP in IPv6", .v6 = true },
	{ .what = "GRE", .proto = 47, .len = 4, .type = true },
	{ .what = "GRE in IPv6", .v6 = true, .proto = 47, .len = 4,
	  .type = true },
	{ .what = "GRE with a key", .proto = 47, .len = 8, .bytes = "\x20",
	  .type = true },
	{ .what = "GRE with a checksum", .proto = 47, .len = 8,
	  .bytes = "\x80", .type = true, .sum = true },
	{ .what = "GRE with both, in IPv6", .v6 = true, .proto = 47, .len = 12,
	  .bytes = "\xa0", .type = true, .sum = true },
	{ .what = "Ethernet in GRE", .proto = 47, .len = 4,
	  .bytes = "\0\0\x65\x58", .ether = true },
	{ .what = "FOU", .proto = 17, .len = 8, .bytes = "\1\1\1\1" },
	{ .what = "VXLAN", .proto = 17, .len = 16, .bytes = VXLAN,
	  .ether = true },
	{ .what = "VXLAN with a checksum", .proto = 17, .len = 16,
	  .bytes = VXLAN, .ether = true, .sum = true },
	{ .what = "VXLAN over IPv6", .v6 = true, .proto = 17, .len = 16,
	  .bytes = VXLAN, .ether = true, .sum = true },
	{ .what = "GENEVE with an option", .proto = 17, .len = 24,
	  .bytes = GENEVE, .ether = true },
	{ .what = "GRE with sequence numbers", .proto = 47, .len = 8,
	  .bytes = "\x10", .type = true, .bad = true },
	{ .what = "GRE of version 1", .proto = 47, .len = 4,
	  .bytes = "\0\1", .type = true, .bad = true },
	{ .what = "GRE of another protocol", .proto = 47, .len = 4,
	  .bytes = "\0\0\x88\x47", .bad = true },
	{ .what = "ESP", .proto = 50, .len = 8, .bad = true },
	{ .what = "four bytes before the inner header", .proto = 41, .len = 4,
	  .bad = true },
};

/* The byte-by-byte sum of UDP's pseudo-header and `len' bytes at `l4'. */
static uint16_t
udp_sum(const struct tunnel *t, const uint8_t *ip, const uint8_t *l4,
    uint32_t len)
{
	static uint8_t all[BYTES + 40];
	const uint32_t addrs = t->v6 ? 32 : 8;

	memcpy(all, ip + (t->v6 ? 8 : 12), addrs);
	be16enc(all + addrs, 17);
	be16enc(all + addrs + 2, len);
	memcpy(all + addrs + 4, l4, len);
	return (packet_sum(all, addrs + 4 + len));
}

/* Wrap the inner frame of `len' bytes; returns where its IP header went. */
static uint32_t
wrap(const struct tunnel *t, const struct packet *p, uint32_t len)
{
	const uint32_t iplen = t->v6 ? 40 : 20;
	const uint32_t skip = t->ether ? 0 : packet_l3(p);
	const uint32_t at = ether + iplen + t->len;
	uint8_t *ip = data + ether, *l4 = ip + iplen;

	memset(data, 2, 12);
	be32enc(data + 12, 0x81000007);
	be16enc(data + ether - 2, t->v6 ? 0x86dd : 0x0800);
	memset(ip, 0, iplen);
	memset(ip + (t->v6 ? 8 : 12), 0x7b, t->v6 ? 32 : 8);
	len = len - skip + t->len;
	ip[t->v6 ? 6 : 9] = t->proto != 0 ? t->proto : p->v6 ? 41 : 4;
	if (t->v6) {
		ip[0] = 0x60;
		be16enc(ip + 4, len);
	} else {
		ip[0] = 0x45;
		be16enc(ip + 2, iplen + len);
		be16enc(ip + 4, 0xfffe);
		be16enc(ip + 10, packet_sum(ip, 20));
	}
	memcpy(l4, t->bytes, t->len);
	if (t->type)
		be16enc(l4 + 2, p->v6 ? 0x86dd : 0x0800);
	if (t->proto == 17)
		be16enc(l4 + 4, len);
	if (t->sum)
		be16enc(l4 + (t->proto == 17 ? 6 : 4), 0x1111);
	memcpy(data + at, inner + skip, len - t->len);
	return (at + packet_l3(p) - skip);
}

/* The checksum that check_outer() has seen last. */
static uint16_t	last_sum;

/* Check the outer headers of segment `n', of `len' bytes. */
static void
check_outer(const struct tunnel *t, uint32_t n, uint32_t len, uint32_t at)
{
	const uint32_t iplen = t->v6 ? 40 : 20;
	const uint8_t *ip = found + ether, *l4 = ip + iplen;
	const uint32_t l4len = len - ether - iplen;

	last_sum = be16dec(l4 + (t->proto == 17 ? 6 : 4));
	if (t->v6)
		ATF_CHECK_EQ(l4len, be16dec(ip + 4));
	else {
		ATF_CHECK_EQ(len - ether, be16dec(ip + 2));
		ATF_CHECK_EQ((uint16_t)(0xfffe + n), be16dec(ip + 4));
		ATF_CHECK_EQ(0, packet_sum(ip, 20));
	}
	if (t->proto == 17) {
		ATF_CHECK_EQ(l4len, be16dec(l4 + 4));
		if (t->sum)
			ATF_CHECK_EQ(0, udp_sum(t, ip, l4, l4len));
		else
			ATF_CHECK_EQ(0, be16dec(l4 + 6));
	} else if (t->sum)
		ATF_CHECK_EQ(0, packet_sum(l4, l4len));
	/* All else is that of the packet. */
	memcpy(found + ether, data + ether, t->v6 ? 6 : 12);
	if (t->proto == 17)
		memcpy(found + ether + iplen + 4, data + ether + iplen + 4, 4);
	else if (t->sum)
		memcpy(found + ether + iplen + 4, data + ether + iplen + 4, 2);
	ATF_CHECK_EQ_MSG(0, memcmp(data, found, at), "%s", t->what);
}

/* Without a partial checksum the first segment's is in the packet. */
static void
check(const struct tunnel *t, const struct packet *p, uint32_t mss,
    bool partial)
{
	struct iovec iov[2] = { { data, 0 }, { data, 0 } };
	struct frame frame = { .f_iov = iov };
	struct frame_tunnel ft;
	const uint32_t inner_len = partial ? packet_build_partial(p, inner) :
	    packet_build(p, inner);
	const uint32_t at = wrap(t, p, inner_len), l3 = packet_l3(p);
	uint32_t len, n = 0;

	frame_set(&frame, 2, at + inner_len - l3);
	iov[0].iov_len = frame.f_len;
	frame.f_flags = FRAME_CSUM_PARTIAL;
	frame.f_gso_type = p->udp ? FRAME_GSO_UDP_L4 : p->v6 ?
	    FRAME_GSO_TCPV6 : FRAME_GSO_TCPV4;
	frame.f_gso_size = mss;
	frame.f_hdr_len = 0;
	frame.f_csum_start = at + packet_l4(p) - l3;
	frame.f_csum_offset = p->udp ? 6 : 16;
	if (!partial) {
		frame.f_flags = 0;
		frame.f_csum_start = frame.f_csum_offset = 60000;
		ATF_REQUIRE_EQ_MSG(t->bad ? FRAME_HOST_BAD :
		    p->paylen <= mss ? FRAME_HOST_OK : FRAME_HOST_TUNNEL,
		    frame_host_prepare(&frame, data), "%s", t->what);
		if (t->bad || p->paylen <= mss)
			return;
	}
	ATF_REQUIRE_EQ_MSG(!t->bad, frame_tunnel_begin(&ft, &frame), "%s",
	    t->what);
	if (t->bad)
		return;
	ATF_CHECK_EQ(howmany(p->paylen, mss), ft.ft_cut.fc_segments);
	for (; frame_cut_next(&ft.ft_cut); n++) {
		frame_cut_copy(&ft.ft_cut, found + ft.ft_cut.fc_hdrlen,
		    ft.ft_cut.fc_paylen);
		frame_tunnel_header(&ft, found);
		len = packet_build_segment(p, n * mss, mss, inner);
		ATF_REQUIRE_EQ(at + len - l3,
		    ft.ft_cut.fc_hdrlen + ft.ft_cut.fc_paylen);
		ATF_REQUIRE_EQ_MSG(0, memcmp(inner + l3, found + at, len - l3),
		    "%s, segment %u", t->what, n);
		check_outer(t, n, at + len - l3, at);
	}
	ATF_CHECK_EQ(howmany(p->paylen, mss), n);
}

TEST(segments, "Packets in each kind of tunnel, with a partial checksum, and "
    "those that GRO has made without one")
{
	struct packet p = { .payload = payload, .id = 9, .seq = 77 };
	uint32_t i, j, seed = 1;

	packet_fill(payload, sizeof(payload), 2);
	for (i = 0; i < nitems(tunnels); i++)
		for (j = 0; j < 80; j++) {
			ether = test_chance(&seed, 1, 2) ? 14 : 18;
			p.v6 = test_chance(&seed, 1, 2);
			p.udp = test_chance(&seed, 1, 3);
			p.vlan = tunnels[i].ether && test_chance(&seed, 1, 2);
			p.tcpopts = test_below(&seed, 11);
			p.paylen = 1 + test_below(&seed, 40000);
			check(&tunnels[i], &p,
			    1 + test_below(&seed, 3000) + p.paylen / 1000,
			    test_chance(&seed, 1, 2));
		}
}

TEST(datagrams, "A packet of datagrams that begin as an inner packet does is "
    "cut where its UDP says, unless that is the length of the packet, and all "
    "is right")
{
	static const struct {
		uint32_t	 at;	/* of the inner IP header; 0: none */
		uint8_t		 byte;
		enum frame_host	 verdict;
	} rows[] = {
		{ 0, 0, FRAME_HOST_TUNNEL },
		{ 3, 1, FRAME_HOST_OK },	/* the length */
		{ 8, 1, FRAME_HOST_OK },	/* the checksum */
		{ 25, 1, FRAME_HOST_OK },	/* UDP's length */
	};
	const struct tunnel *fou = &tunnels[8];
	struct packet p = { .payload = payload, .paylen = 3000, .udp = true };
	const uint32_t len = packet_build(&p, inner);
	const uint32_t l4 = 14 + 20;
	struct frame frame;
	uint32_t at;
	size_t i;

	ether = 14;
	for (i = 0; i < nitems(rows); i++) {
		at = wrap(fou, &p, len);
		data[at + rows[i].at] ^= rows[i].byte;
		frame_set(&frame, 1, at + len - 14);
		frame.f_flags = 0;
		frame.f_gso_type = FRAME_GSO_UDP_L4;
		frame.f_gso_size = 1000;
		ATF_CHECK_EQ(rows[i].verdict, frame_host_prepare(&frame, data));
		ATF_CHECK_EQ(rows[i].verdict == FRAME_HOST_OK ? l4 : at + 20,
		    frame.f_csum_start);
	}
}

TEST(zero, "A checksum of UDP that comes out as 0 is 0xffff: RFC 768; GRE's is "
    "0")
{
	static const unsigned int rows[] = { 10, 11, 5 };
	struct packet p = { .payload = payload, .paylen = 500, .id = 9 };
	struct tunnel t;
	uint32_t sum;
	uint8_t *word;
	unsigned int i;

	packet_fill(payload, sizeof(payload), 3);
	ether = 14;
	for (i = 0; i < nitems(rows); i++) {
		t = tunnels[rows[i]];
		check(&t, &p, 1000, true);
		/* Add the checksum to bytes that it covers. */
		word = t.bytes + t.len - (t.proto == 17 ? 4 : 2);
		ATF_REQUIRE(last_sum != 0 && last_sum != 0xffff);
		sum = be16dec(word) + last_sum;
		be16enc(word, sum + (sum >> 16));
		check(&t, &p, 1000, true);
		ATF_CHECK_EQ(t.proto == 17 ? 0xffff : 0, last_sum);
	}
}

/*
 * Look for a packet in the first `len' bytes of a frame of `total'.  They end
 * at `end', where there is no byte.
 */
static void
check_edge(uint8_t *end, uint32_t len, uint32_t total)
{
	uint8_t *p = end - len;
	struct frame_hdr inner_hdr, outer;
	uint32_t l4;

	memcpy(p, data, len);
	if (!frame_hdr_find(p, len, &outer))
		return;
	for (l4 = 0; l4 <= len; l4++)
		if (frame_hdr_inner(p, len, &outer, total, l4, &inner_hdr))
			ATF_CHECK(inner_hdr.fh_l4 <= len);
}

TEST(edges, "Of a frame of which a part was copied no other byte is looked at")
{
	struct packet p = { .payload = payload, .paylen = 300 };
	uint8_t *page;
	uint32_t at, len, total;
	unsigned int i;

	page = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0);
	ATF_REQUIRE(page != MAP_FAILED);
	ATF_REQUIRE_EQ(0, mprotect(page + 4096, 4096, PROT_NONE));
	ether = 14;
	for (i = 0; i < 4 * nitems(tunnels); i++) {
		p.udp = i % 2 != 0;
		p.v6 = i / 2 % 2 != 0;
		total = packet_build_partial(&p, inner);
		at = wrap(&tunnels[i / 4], &p, total);
		for (len = 14; len < at + 80; len++)
			check_edge(page + 4096, len,
			    at + total - packet_l3(&p));
	}
	munmap(page, 2 * 4096);
}

TEST(invalid, "What is no tunnel, or has its headers cut short")
{
	const struct tunnel *vxlan = &tunnels[9], *gre = &tunnels[2];
	struct packet p = { .payload = payload, .paylen = 3000 };
	struct iovec iov[2] = { { data, 0 }, { data, 0 } };
	struct frame frame = { .f_iov = iov };
	struct frame_tunnel ft;
	const uint32_t len = packet_build_partial(&p, inner);
	uint32_t at;

	ether = 14;
	at = wrap(vxlan, &p, len);
	frame_set(&frame, 2, at + len - 14);
	iov[0].iov_len = frame.f_len;
	frame.f_flags = FRAME_CSUM_PARTIAL;
	frame.f_gso_type = FRAME_GSO_TCPV4;
	frame.f_gso_size = 1000;
	frame.f_hdr_len = 0;
	frame.f_csum_start = at + 20;
	frame.f_csum_offset = 16;
	ATF_CHECK(frame_tunnel_begin(&ft, &frame));
	/* The inner length is not that of the rest. */
	data[at + 3]++;
	ATF_CHECK(!frame_tunnel_begin(&ft, &frame));
	data[at + 3]--;
	/* The inner protocol is another. */
	data[at + 9] = 17;
	ATF_CHECK(!frame_tunnel_begin(&ft, &frame));
	data[at + 9] = 6;
	/* A fragment of the outer packet. */
	data[20] = 0x20;
	ATF_CHECK(!frame_tunnel_begin(&ft, &frame));
	data[20] = 0;
	ATF_CHECK(frame_tunnel_begin(&ft, &frame));
	/* No IP. */
	data[13] = 6;
	ATF_CHECK(!frame_tunnel_begin(&ft, &frame));
	data[13] = 0;
	/* The inner header would overlap UDP's. */
	frame.f_csum_start = 14 + 20 + 8 + 19;
	ATF_CHECK(!frame_tunnel_begin(&ft, &frame));
	frame.f_csum_start = 34;
	ATF_CHECK(!frame_tunnel_begin(&ft, &frame));
	/* GRE's header ends behind the frame. */
	at = wrap(gre, &p, len);
	for (frame.f_len = 52; frame.f_len < at + 40; frame.f_len++) {
		iov[0].iov_len = frame.f_len;
		frame.f_csum_start = 34;
		ATF_CHECK(!frame_tunnel_begin(&ft, &frame));
	}
}

TEST_PROGRAM
