/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * frame_cut.c: each segment is the packet that packet_build() makes of the same
 * payload, byte by byte and without code of ours.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <atf-c.h>
#include <string.h>

#include "e82545_packet.h"
#include "frame_cut.h"
#include "frame_sum.h"
#include "frame_vnet.h"
#include "test.h"

#define	FRAME_BYTES	(PACKET_HDR_MAX + 65535)

static uint8_t whole[FRAME_BYTES], payload[FRAME_BYTES];

/* The frame in `whole', of `len' bytes, in pieces that `seed' determines. */
static void
split(struct frame *frame, uint32_t len, uint32_t *seed)
{
	uint32_t left, n;
	int i, niov;

	niov = 1 + test_below(seed, FRAME_MAXIOV);
	left = len;
	for (i = 0; i < niov; i++) {
		n = i == niov - 1 ? left : test_below(seed, MIN(left + 1,
		    1 + 2 * len / niov));
		if (test_chance(seed, 1, 8) && i < niov - 1)
			n = 0;
		frame->f_iov[i].iov_base = whole + (len - left);
		frame->f_iov[i].iov_len = n;
		left -= n;
	}
	frame_set(frame, niov, len);
}

/* The packet as a frame with a partial checksum, to be cut if mss is not 0. */
static void
make(struct frame *frame, const struct packet *p, uint16_t mss, uint32_t *seed)
{
	size_t len;

	len = packet_build(p, whole);
	packet_prepare(p, whole, true);
	split(frame, len, seed);
	frame->f_flags = FRAME_CSUM_PARTIAL;
	frame->f_csum_start = packet_l4(p);
	frame->f_csum_offset = p->udp ? 6 : 16;
	frame->f_net_start = 0;
	frame->f_hdr_len = test_chance(seed, 1, 2) ? packet_hdrlen(p) : 0;
	frame->f_gso_size = mss;
	if (mss == 0)
		frame->f_gso_type = FRAME_GSO_NONE;
	else
		frame->f_gso_type = p->udp ? FRAME_GSO_UDP_L4 : p->v6 ?
		    FRAME_GSO_TCPV6 : FRAME_GSO_TCPV4;
	/* The IPv4 header of a frame that is not cut is complete. */
	if (mss == 0 && !p->v6)
		be16enc(whole + packet_l3(p) + 10,
		    packet_sum(whole + packet_l3(p), 20 + 4 * p->ipopts));
}

/* Take the segment: by copies of random lengths, or by slices. */
static void
take(struct frame_cut *cut, uint8_t *space, bool slices, uint32_t *seed)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame_cursor cur;
	uint32_t done, n;
	int niov;

	if (slices) {
		niov = frame_cut_slice(cut, iov, nitems(iov));
		ATF_REQUIRE(niov >= 0);
		frame_cursor_init(&cur, iov);
		frame_cursor_copy(&cur, space + cut->fc_hdrlen,
		    cut->fc_paylen);
	} else {
		for (done = 0; done < cut->fc_paylen; done += n) {
			n = 1 + test_below(seed, cut->fc_paylen - done);
			frame_cut_copy(cut, space + cut->fc_hdrlen + done, n);
		}
	}
	frame_cut_header(cut, space);
}

static void
check(const struct packet *p, uint16_t mss, uint32_t skip, bool slices,
    uint32_t *seed)
{
	static uint8_t expect[FRAME_BYTES], found[FRAME_BYTES];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;
	struct packet q;
	uint32_t off, step = mss != 0 ? mss : MAX(1, p->paylen);
	uint32_t n = MAX(1, howmany(p->paylen, step));
	size_t len;

	make(&frame, p, mss, seed);
	ATF_REQUIRE(frame_cut_begin(&cut, &frame));
	ATF_CHECK_EQ(n, cut.fc_segments);
	ATF_CHECK_EQ(packet_hdrlen(p) + MIN(step, p->paylen), cut.fc_longest);
	off = 0;
	if (skip != 0) {
		frame_cut_seek(&cut, skip);
		off = MIN(skip / step, n - 1) * step;
		n -= off / step;
		ATF_CHECK_EQ(n, cut.fc_segments);
	}
	for (; frame_cut_next(&cut); off += step) {
		ATF_REQUIRE(n > 0);
		n--;
		q = packet_segment(p, off, step);
		len = packet_build(&q, expect);
		ATF_REQUIRE_EQ(len, cut.fc_hdrlen + cut.fc_paylen);
		take(&cut, found, slices, seed);
		ATF_REQUIRE_EQ_MSG(0, memcmp(expect, found, len),
		    "%u of %zu, mss %u", off, p->paylen, mss);
	}
	ATF_CHECK_EQ(0, n);
}

/* A packet of a random kind. */
static struct packet
packet(uint32_t paylen, uint32_t *seed)
{
	struct packet p = {
		.v6 = test_chance(seed, 1, 2), .udp = test_chance(seed, 1, 3),
		.vlan = test_chance(seed, 1, 3), .tag = 0x2064,
		.ipopts = test_chance(seed, 1, 3) ? test_below(seed, 11) : 0,
		.tcpopts = test_below(seed, 11),
		.id = test_random(seed), .seq = test_random(seed),
		.flags = test_random(seed), .payload = payload,
		.paylen = paylen,
	};

	if (p.v6)
		p.ipopts = 0;
	return (p);
}

TEST(segments, "Each segment is a complete packet with its part of the payload")
{
	uint32_t i, mss, paylen, seed = 1;
	struct packet p;

	packet_fill(payload, sizeof(payload), 2);
	for (i = 0; i < 2000; i++) {
		paylen = 1 + test_below(&seed, test_chance(&seed, 1, 16) ?
		    65400 : 5000);
		mss = 1 + test_below(&seed,
		    test_chance(&seed, 1, 2) ? 200 : 9000);
		p = packet(paylen, &seed);
		check(&p, mss, test_chance(&seed, 1, 4) ?
		    test_below(&seed, paylen + 100) : 0,
		    test_chance(&seed, 1, 2), &seed);
	}
}

TEST(checksum, "Without segments the checksum alone is completed")
{
	uint32_t i, seed = 3;
	struct packet p;

	packet_fill(payload, sizeof(payload), 4);
	for (i = 0; i < 2000; i++) {
		p = packet(test_below(&seed, 3000), &seed);
		/* All headers behind the checksum are payload here. */
		check(&p, 0, 0, test_chance(&seed, 1, 2), &seed);
	}
}

TEST(zero, "A checksum of UDP that is 0 becomes ffff, and one of TCP stays 0")
{
	static uint8_t found[FRAME_BYTES];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;
	struct packet p = { .payload = payload, .paylen = 2 };
	uint32_t field, seed = 5, udp;

	for (udp = 0; udp < 2; udp++) {
		p.udp = udp != 0;
		field = packet_l4(&p) + (p.udp ? 6 : 16);
		memset(payload, 0, 2);
		packet_build(&p, whole);
		/* The payload that makes the sum 0. */
		memcpy(payload, whole + field, 2);
		make(&frame, &p, 0, &seed);
		ATF_REQUIRE(frame_cut_begin(&cut, &frame));
		ATF_REQUIRE(frame_cut_next(&cut));
		take(&cut, found, false, &seed);
		ATF_CHECK_EQ(p.udp ? 0xffff : 0, be16dec(found + field));
	}
}

/* What the field of 16 bits at an odd offset adds to the sum: swapped. */
static uint32_t
add(uint32_t a, uint32_t b)
{
	a += b;
	return ((a & 0xffff) + (a >> 16));
}

TEST(odd, "The sum is stored where the header says, also at an odd offset")
{
	static uint8_t found[100];
	struct iovec iov = { whole, sizeof(found) };
	struct frame frame = { .f_iov = &iov };
	struct frame_cut cut;
	uint32_t field, seed = 6, start, sum;

	for (start = 0; start < 20; start++) {
		packet_fill(whole, sizeof(found), 1 + start);
		field = start + 7;
		frame_set(&frame, 1, sizeof(found));
		frame.f_flags = FRAME_CSUM_PARTIAL;
		frame.f_csum_start = start;
		frame.f_csum_offset = 7;
		ATF_REQUIRE(frame_cut_begin(&cut, &frame));
		ATF_REQUIRE(frame_cut_next(&cut));
		take(&cut, found, false, &seed);
		/* The initial value is added as a word of its own. */
		sum = be16dec(whole + field);
		memcpy(whole + field, "\0\0", 2);
		sum = add(sum, (uint16_t)~packet_sum(whole + start,
		    sizeof(found) - start));
		ATF_CHECK_EQ((uint16_t)~sum, be16dec(found + field));
		memcpy(found + field, "\0\0", 2);
		ATF_CHECK_EQ(0, memcmp(whole, found, sizeof(found)));
	}
}

TEST(net_start, "The IP header is behind two VLAN tags, or where the producer "
    "says")
{
	static uint8_t found[FRAME_BYTES];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;
	struct packet p = { .payload = payload, .paylen = 200, .vlan = true };
	uint32_t seed = 7;
	unsigned int i;
	size_t len;

	packet_fill(payload, 200, 8);
	for (i = 0; i < 3; i++) {
		make(&frame, &p, 100, &seed);
		len = frame.f_len;
		if (i == 0) {
			/* Another tag. */
			memmove(whole + 16, whole + 12, len - 12);
			be16enc(whole + 12, 0x88a8);
			split(&frame, len + 4, &seed);
			frame.f_flags = FRAME_CSUM_PARTIAL;
			frame.f_gso_type = FRAME_GSO_TCPV4;
			frame.f_csum_start += 4;
		} else
			be16enc(whole + 12, 0x9100);
		frame.f_net_start = i == 2 ? packet_l3(&p) : 0;
		ATF_CHECK_EQ(i != 1, frame_cut_begin(&cut, &frame));
		if (i == 1)
			continue;
		ATF_REQUIRE(frame_cut_next(&cut));
		take(&cut, found, false, &seed);
		ATF_CHECK_EQ(0, packet_sum(found + packet_l3(&p) +
		    (i == 0 ? 4 : 0), 20));
	}
}

TEST(changed, "A guest that changes its headers meanwhile changes nothing")
{
	static uint8_t expect[FRAME_BYTES], found[FRAME_BYTES];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;
	struct packet p = { .payload = payload, .paylen = 1000 }, q;
	uint32_t off, seed = 9;
	size_t len;

	packet_fill(payload, p.paylen, 10);
	make(&frame, &p, 300, &seed);
	ATF_REQUIRE(frame_cut_begin(&cut, &frame));
	memset(whole, 0xff, packet_hdrlen(&p));
	for (off = 0; frame_cut_next(&cut); off += 300) {
		take(&cut, found, true, &seed);
		q = packet_segment(&p, off, 300);
		len = packet_build(&q, expect);
		ATF_CHECK_EQ(0, memcmp(expect, found, len));
	}
	ATF_CHECK_EQ(1200, off);
}

/* Change one thing in a valid frame of 100 bytes of payload. */
static const struct bad {
	const char	*what;
	bool		 v6, udp;
	int		 at;		/* byte of the frame, or -1 */
	uint8_t		 byte;
	uint16_t	 mss;		/* 0: 100 */
	int		 type;		/* 0: as it is */
	uint16_t	 start;		/* 0: as it is */
	uint16_t	 offset;
	uint16_t	 net;
	uint16_t	 hdrlen;
	uint32_t	 len;		/* 0: as it is */
} bads[] = {
	{ .what = "IP of version 5", .at = 14, .byte = 0x55 },
	{ .what = "IPv4 header of 16 bytes", .at = 14, .byte = 0x44 },
	{ .what = "IPv4 header over TCP's", .at = 14, .byte = 0x46 },
	{ .what = "UDP in IPv4, as TCP", .at = 23, .byte = 17 },
	{ .what = "ICMP in IPv4, as TCP", .at = 23, .byte = 1 },
	{ .what = "TCP in IPv4, as UDP", .udp = true, .at = 23, .byte = 6 },
	{ .what = "UDP in IPv6, as TCP", .v6 = true, .at = 20, .byte = 17 },
	{ .what = "TCP in IPv6, as UDP", .v6 = true, .udp = true, .at = 20,
	  .byte = 6 },
	{ .what = "an extension header in place of TCP's", .v6 = true,
	  .at = 20, .byte = 60 },
	{ .what = "no extension header that can be cut", .v6 = true, .at = 20,
	  .byte = 253 },
	{ .what = "more fragments", .at = 20, .byte = 0x20 },
	{ .what = "a fragment that is not the first", .at = 21, .byte = 1 },
	{ .what = "IPv4, and the type of IPv6", .at = 12, .byte = 0x86 },
	{ .what = "IPv6, and the type of IPv4", .v6 = true, .at = 12,
	  .byte = 0x08 },
	{ .what = "IPv4 options that end behind TCP's begin", .at = 14,
	  .byte = 0x47 },
	{ .what = "IPv6 as TCP over IPv4", .v6 = true, .at = -1,
	  .type = FRAME_GSO_TCPV4 },
	{ .what = "IPv4 as TCP over IPv6", .at = -1, .type = FRAME_GSO_TCPV6 },
	{ .what = "another protocol than IP", .at = 13, .byte = 6 },
	{ .what = "TCP header of 16 bytes", .at = 46, .byte = 0x40 },
	{ .what = "TCP header beyond the frame", .at = 46, .byte = 0xf0,
	  .len = 60 },
	{ .what = "fragments of UDP", .udp = true, .at = -1,
	  .type = FRAME_GSO_UDP },
	{ .what = "unknown type 2", .at = -1, .type = 2 },
	{ .what = "unknown type 6", .at = -1, .type = 6 },
	{ .what = "unknown type 127", .at = -1, .type = 127 },
	{ .what = "headers without the checksum", .at = -1, .hdrlen = 51 },
	{ .what = "headers beyond the frame", .at = -1, .hdrlen = 401,
	  .len = 400 },
	{ .what = "headers beyond what fits", .at = -1,
	  .hdrlen = FRAME_CUT_HDRLEN + 1 },
	{ .what = "TCP's checksum elsewhere", .at = -1, .offset = 6 },
	{ .what = "UDP's checksum elsewhere", .udp = true, .at = -1,
	  .offset = 16 },
	{ .what = "TCP's, and the headers' length", .at = -1, .offset = 6,
	  .hdrlen = 54 },
	{ .what = "UDP's, and the headers' length", .udp = true, .at = -1,
	  .offset = 16, .hdrlen = 60 },
	{ .what = "a TCP header of 16 bytes, and the headers' length",
	  .at = 46, .byte = 0x40, .hdrlen = 54 },
	{ .what = "an unknown type, and the headers' length", .at = -1,
	  .type = 6, .hdrlen = 54 },
	{ .what = "the sum's begin beyond the frame", .at = -1,
	  .start = 60000 },
	{ .what = "the checksum beyond the frame", .at = -1, .len = 51 },
	{ .what = "beyond the headers that fit", .at = -1,
	  .start = FRAME_CUT_HDRLEN - 17 },
	{ .what = "offsets whose sum is more than 16 bits", .at = -1,
	  .start = 65535, .offset = 65535 },
	{ .what = "the sum's begin in Ethernet's header", .at = -1,
	  .start = 13 },
	{ .what = "the sum's begin in the IP header", .at = -1, .start = 33 },
	{ .what = "the sum's begin in the IPv6 header", .v6 = true, .at = -1,
	  .start = 53 },
	{ .what = "an IP header behind the sum's begin", .at = -1,
	  .net = 34 },
	{ .what = "an IP header that overlaps TCP's", .at = -1, .net = 15 },
	{ .what = "an IP header beyond the headers", .at = -1,
	  .net = FRAME_CUT_HDRLEN + 16 },
	{ .what = "an IP header that overlaps Ethernet's", .udp = true,
	  .at = 13, .byte = 0x45, .start = 33, .net = 13 },
};

TEST(invalid, "Each of these makes a frame invalid, and none of them does not")
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;
	const struct bad *b;
	struct packet p;
	uint32_t seed = 11;

	memset(&cut, 0, sizeof(cut));
	make(&frame, &(struct packet){ .payload = payload, .paylen = 1000 },
	    100, &seed);
	frame.f_gso_size = 0;
	ATF_CHECK_MSG(!frame_cut_begin(&cut, &frame), "segments of 0 bytes");
	frame.f_gso_size = 100;
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	whole[0] = whole[1] = 0x46;
	whole[13] = 1;
	ATF_CHECK_MSG(!frame_cut_begin(&cut, &frame),
	    "not IP, to an address that looks like it");
	for (b = bads; b < bads + nitems(bads); b++) {
		memset(&p, 0, sizeof(p));
		p.v6 = b->v6;
		p.udp = b->udp;
		p.payload = payload;
		p.paylen = 1000;
		make(&frame, &p, b->mss != 0 ? b->mss : 100, &seed);
		if (b->mss == 0)
			ATF_CHECK_MSG(frame_cut_begin(&cut, &frame),
			    "before: %s", b->what);
		if (b->at >= 0)
			whole[b->at] = b->byte;
		if (b->type != 0)
			frame.f_gso_type = b->type;
		if (b->start != 0)
			frame.f_csum_start = b->start;
		if (b->offset != 0)
			frame.f_csum_offset = b->offset;
		frame.f_net_start = b->net;
		frame.f_hdr_len = b->hdrlen;
		if (b->len != 0)
			frame.f_len = b->len;
		ATF_CHECK_MSG(!frame_cut_begin(&cut, &frame), "%s", b->what);
	}
}

TEST(shortest, "The shortest frame and the smallest segments are valid")
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;
	struct packet p = { .payload = payload, .paylen = 65535 - 54 };
	uint32_t seed = 12;

	make(&frame, &p, 1, &seed);
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	ATF_CHECK_EQ(65535 - 54, cut.fc_segments);
	frame.f_gso_size = 65535;
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	ATF_CHECK_EQ(1, cut.fc_segments);
	ATF_CHECK_EQ(65535, cut.fc_longest);
	frame.f_len = 55;
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	/* No payload at all. */
	frame.f_len = 54;
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	ATF_CHECK_EQ(1, cut.fc_segments);
	ATF_CHECK_EQ(54, cut.fc_longest);
	/* An IP packet of 65535 bytes, and one more. */
	frame.f_len = 65535 + 14;
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	frame.f_len++;
	ATF_CHECK(!frame_cut_begin(&cut, &frame));
	/* Headers of any length, as far as they fit. */
	frame.f_len = 1000;
	frame.f_gso_size = 100;
	frame.f_hdr_len = FRAME_CUT_HDRLEN;
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	ATF_CHECK_EQ(5, cut.fc_segments);
	/* What was in the structure does not count. */
	memset(&cut, 0, sizeof(cut));
	/* A checksum, and nothing else. */
	frame_set(&frame, frame.f_niov, 2);
	frame.f_flags = FRAME_CSUM_PARTIAL;
	frame.f_csum_start = frame.f_csum_offset = 0;
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	ATF_CHECK_EQ(1, cut.fc_segments);
	ATF_CHECK_EQ(2, cut.fc_longest);
	/* The last that fits. */
	frame_set(&frame, frame.f_niov, 1000);
	frame.f_flags = FRAME_CSUM_PARTIAL;
	frame.f_csum_start = FRAME_CUT_HDRLEN - 2;
	ATF_CHECK(frame_cut_begin(&cut, &frame));
	frame.f_csum_start++;
	ATF_CHECK(!frame_cut_begin(&cut, &frame));
}

TEST(tags, "An IP header behind three VLAN tags is not found")
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;
	struct packet p = { .payload = payload, .paylen = 200 };
	uint32_t len, n, seed = 16;

	for (n = 0; n < 4; n++) {
		make(&frame, &p, 100, &seed);
		for (len = frame.f_len; len < frame.f_len + 4 * n; len += 4) {
			memmove(whole + 16, whole + 12, len - 12);
			be32enc(whole + 12, 0x81000001);
		}
		split(&frame, len, &seed);
		frame.f_flags = FRAME_CSUM_PARTIAL;
		frame.f_gso_type = FRAME_GSO_TCPV4;
		frame.f_gso_size = 100;
		frame.f_csum_start = 34 + 4 * n;
		frame.f_csum_offset = 16;
		frame.f_net_start = frame.f_hdr_len = 0;
		ATF_CHECK_EQ_MSG(n < 3, frame_cut_begin(&cut, &frame), "%u", n);
	}
}

TEST(ecn, "With ECN's bit in its type, TCP is cut likewise; CWR is set in the "
    "first segment")
{
	static uint8_t found[2000];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;
	struct packet p = { .payload = payload, .paylen = 3,
	    .flags = PACKET_CWR | PACKET_PSH };
	uint32_t i, seed = 13;

	packet_fill(payload, 3, 14);
	make(&frame, &p, 1, &seed);
	frame.f_gso_type |= FRAME_GSO_ECN;
	ATF_REQUIRE(frame_cut_begin(&cut, &frame));
	for (i = 0; frame_cut_next(&cut); i++) {
		take(&cut, found, false, &seed);
		ATF_CHECK_EQ(i == 0 ? PACKET_CWR : i == 1 ? 0 : PACKET_PSH,
		    found[47] & (PACKET_CWR | PACKET_PSH));
	}
	ATF_CHECK_EQ(3, i);
}

TEST(sum, "The sum of the segment, wherever the part begins that is summed")
{
	static uint8_t found[101];
	struct iovec iov = { whole, sizeof(found) };
	struct frame frame = { .f_iov = &iov };
	struct frame_cut cut;
	uint32_t seed = 15, start;

	for (start = 0; start < 20; start++) {
		packet_fill(whole, sizeof(found), 20 + start);
		frame_set(&frame, 1, sizeof(found));
		frame.f_flags = FRAME_CSUM_PARTIAL;
		frame.f_csum_start = start;
		frame.f_csum_offset = 6;
		ATF_REQUIRE(frame_cut_begin(&cut, &frame));
		ATF_REQUIRE(frame_cut_next(&cut));
		take(&cut, found, false, &seed);
		ATF_CHECK_EQ(frame_sum_fold(frame_sum_bytes(found,
		    sizeof(found))), frame_sum_fold(frame_cut_sum(&cut)));
	}
}

TEST(vnet, "Limits of a virtio-net header")
{
	static const struct {
		uint8_t		flags, type;
		uint16_t	hdrlen, size, start, offset;
		bool		valid;
	} headers[] = {
		{ 1, 0, 0, 0, 82, 16, true },
		{ 1, 0, 0, 0, 83, 16, false },
		{ 1, 0, 0, 0, 98, 0, true },
		{ 1, 0, 0, 0, 99, 0, false },
		{ 1, 0, 0, 0, 0, 98, true },
		{ 1, 0, 0, 0, 0, 99, false },
		{ 0, 0, 0, 0, 99, 99, true },
		{ 2, 0, 0, 0, 99, 99, true },
		{ 1, 1, 54, 48, 34, 16, true },
		{ 1, 1, 54, 1, 34, 16, true },
		{ 1, 1, 54, 0, 34, 16, false },
		{ 1, 1, 54, 99, 34, 16, true },
		{ 1, 1, 54, 100, 34, 16, true },
		{ 1, 1, 54, 65535, 34, 16, true },
		{ 1, 1, 0, 48, 34, 16, true },
		{ 1, 1, 100, 48, 34, 16, true },
		{ 1, 1, 65535, 48, 34, 16, true },
		{ 0, 1, 54, 48, 34, 16, false },
		{ 1, 2, 54, 48, 34, 16, false },
	};
	uint8_t hdr[FRAME_VNET_SHORT];
	struct frame frame;
	size_t i;

	for (i = 0; i < nitems(headers); i++) {
		hdr[0] = headers[i].flags;
		hdr[1] = headers[i].type;
		le16enc(hdr + 2, headers[i].hdrlen);
		le16enc(hdr + 4, headers[i].size);
		le16enc(hdr + 6, headers[i].start);
		le16enc(hdr + 8, headers[i].offset);
		memset(&frame, 0x5a, sizeof(frame));
		frame.f_len = 100;
		ATF_CHECK_EQ_MSG(headers[i].valid,
		    frame_vnet_decode(&frame, hdr), "%zu", i);
		ATF_CHECK_EQ(0, frame.f_net_start);
	}
	/* The number of segments. */
	memcpy(hdr, "\1\1\0\0\x30\0\x22\0\x10", 10);
	frame.f_len = FRAME_SEGMENTS_MAX * 48;
	ATF_CHECK(frame_vnet_decode(&frame, hdr));
	frame.f_len++;
	ATF_CHECK(!frame_vnet_decode(&frame, hdr));
}

TEST_PROGRAM
