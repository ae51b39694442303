/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * frame_host.c: what Linux gives to a packet socket or a TAP, and what becomes
 * of it.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <atf-c.h>
#include <string.h>

#include "e82545_packet.h"
#include "frame_cut.h"
#include "frame_host.h"
#include "test.h"

#define	BYTES		(PACKET_HDR_MAX + 65535)
#define	TCP4		FRAME_GSO_TCPV4
#define	TCP6		FRAME_GSO_TCPV6
#define	UDP		FRAME_GSO_UDP_L4
#define	PARTIAL		FRAME_CSUM_PARTIAL
#define	VERIFIED	FRAME_CSUM_VERIFIED

static uint8_t data[BYTES], payload[BYTES], expect[BYTES], found[BYTES];

/* The frame of `len' bytes in `data', with a header of these fields. */
static struct frame
host_frame(uint32_t len, uint8_t flags, uint8_t type, uint16_t size,
    uint16_t start, uint16_t offset)
{
	struct frame frame;

	frame_set(&frame, 2, len);
	frame.f_flags = flags;
	frame.f_gso_type = type;
	frame.f_gso_size = size;
	/* A hint, here always a wrong one. */
	frame.f_hdr_len = 12345;
	frame.f_net_start = 0;
	frame.f_csum_start = start;
	frame.f_csum_offset = offset;
	return (frame);
}

/* Cut it, and compare each segment with that of the packet. */
static void
check_segments(struct frame *frame, const struct packet *p, uint32_t mss)
{
	struct iovec iov[2] = { { data, frame->f_len }, { data, 0 } };
	struct frame_cut cut;
	uint32_t off = 0;
	size_t len;

	frame->f_iov = iov;
	ATF_REQUIRE(frame_cut_begin(&cut, frame));
	ATF_CHECK_EQ(howmany(p->paylen, mss), cut.fc_segments);
	for (; frame_cut_next(&cut); off += mss) {
		frame_cut_copy(&cut, found + cut.fc_hdrlen, cut.fc_paylen);
		frame_cut_header(&cut, found);
		len = packet_build_segment(p, off, mss, expect);
		ATF_REQUIRE_EQ(len, cut.fc_hdrlen + cut.fc_paylen);
		ATF_REQUIRE_EQ(0, memcmp(expect, found, len));
	}
}

TEST(segments, "Segments with a partial checksum, and those that GRO has made "
    "without one, are cut into what they were")
{
	struct packet p = { .payload = payload, .seq = 7, .id = 9 };
	struct frame frame;
	uint32_t i, mss, partial, seed = 1;
	size_t len;

	packet_fill(payload, sizeof(payload), 2);
	for (i = 0; i < 400; i++) {
		p.v6 = test_chance(&seed, 1, 2);
		p.udp = test_chance(&seed, 1, 2);
		p.vlan = test_chance(&seed, 1, 4);
		p.ipopts = p.v6 ? 0 : test_below(&seed, 3);
		p.tcpopts = test_below(&seed, 11);
		p.paylen = 2 + test_below(&seed, 20000);
		mss = test_below(&seed, p.paylen);
		mss = MAX(mss, howmany(p.paylen, 1000));
		partial = test_chance(&seed, 1, 2);
		/* Without, the checksum is that of the first segment. */
		len = packet_build(&p, data);
		if (partial)
			packet_prepare(&p, data, true);
		frame = host_frame(len, partial ? PARTIAL : i & VERIFIED,
		    p.udp ? UDP : p.v6 ? TCP6 : TCP4, mss,
		    partial ? packet_l4(&p) : 60000,
		    partial ? (p.udp ? 6 : 16) : 60000);
		ATF_REQUIRE_EQ_MSG(FRAME_HOST_OK,
		    frame_host_prepare(&frame, data), "%u of %zu, %u", mss,
		    p.paylen, partial);
		ATF_CHECK_EQ(PARTIAL, frame.f_flags);
		ATF_CHECK_EQ(0, frame.f_hdr_len);
		ATF_CHECK(frame.f_gso_type != FRAME_GSO_NONE);
		check_segments(&frame, &p, mss);
	}
}

TEST(one_segment, "A segment size that is not less than the payload makes no "
    "segments")
{
	struct packet p = { .payload = payload, .paylen = 500, .tcpopts = 3 };
	struct frame frame;
	uint32_t mss;
	size_t len;

	packet_fill(payload, 500, 3);
	for (mss = 499; mss <= 65535; mss = mss == 501 ? 65535 : mss + 1) {
		len = packet_build_partial(&p, data);
		frame = host_frame(len, PARTIAL, TCP4, mss, 34, 16);
		ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
		ATF_CHECK_EQ(mss == 499 ? TCP4 : FRAME_GSO_NONE,
		    frame.f_gso_type);
		ATF_CHECK_EQ(PARTIAL, frame.f_flags);
	}
	/* Without payload, and with TCP's header beyond the frame. */
	p.paylen = 0;
	len = packet_build_partial(&p, data);
	frame = host_frame(len, PARTIAL, TCP4, 1000, 34, 16);
	ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
	ATF_CHECK_EQ(FRAME_GSO_NONE, frame.f_gso_type);
	frame = host_frame(52, PARTIAL, TCP4, 1000, 34, 16);
	ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
	ATF_CHECK_EQ(FRAME_GSO_NONE, frame.f_gso_type);
	frame = host_frame(51, PARTIAL, TCP4, 1000, 34, 16);
	ATF_CHECK_EQ(FRAME_HOST_BAD, frame_host_prepare(&frame, data));
}

/* An INIT chunk, and its CRC32c. */
static const uint8_t sctp[] =
    "\x8e\x3c\x8e\x3c\0\0\0\0\xde\xad\xbe\xef\x01\0\0\x14\x11\x22\x33\x44"
    "\0\x01\0\0\0\x0a\0\x0a\x55\x66\x77\x88";
static const uint8_t sctp_crc[] = "\xbe\xb1\x48\xaa";

/* Make a frame of SCTP, behind `before' bytes of outer headers. */
static uint32_t
make_sctp(uint32_t before)
{
	uint8_t *ip = data + before;

	memset(data, 0, before + 20);
	memcpy(data + 12, "\x08\0", 2);
	memcpy(ip, "\x45\0\0\x34\0\0\x40\0\x40\x84", 10);
	memcpy(ip + 20, sctp, 32);
	return (before + 52);
}

TEST(sctp, "SCTP's checksum is a CRC32c, also in a tunnel")
{
	struct frame frame;
	uint32_t before, len;

	for (before = 14; before < 80; before += 36) {
		len = make_sctp(before);
		if (before > 14)
			memcpy(data + 14, "\x45\0\0\x58\0\0\0\0\x40\x11", 10);
		frame = host_frame(len, PARTIAL, FRAME_GSO_NONE, 0, before + 20,
		    8);
		ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
		ATF_CHECK_EQ(VERIFIED, frame.f_flags);
		ATF_CHECK_EQ(0, memcmp(sctp_crc, data + before + 28, 4));
		memcpy(data + before + 28, sctp + 8, 4);
		ATF_CHECK_EQ(0, memcmp(sctp, data + before + 20, 32));
	}
	/* The field ends with the frame, and beyond. */
	make_sctp(14);
	frame = host_frame(46, PARTIAL, FRAME_GSO_NONE, 0, 34, 8);
	ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
	frame = host_frame(45, PARTIAL, FRAME_GSO_NONE, 0, 34, 8);
	ATF_CHECK_EQ(FRAME_HOST_BAD, frame_host_prepare(&frame, data));
	/* Behind IPv6. */
	memset(data, 0, 54);
	memcpy(data + 12, "\x86\xdd\x60\0\0\0\0\x20\x84\x40", 10);
	memcpy(data + 54, sctp, 32);
	frame = host_frame(86, PARTIAL, FRAME_GSO_NONE, 0, 54, 8);
	ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
	ATF_CHECK_EQ(0, memcmp(sctp_crc, data + 62, 4));
}

TEST(checksums, "Which partial checksums are known, by protocol and offset")
{
	static const struct {
		const char	*what;
		uint8_t		 proto;
		uint16_t	 offset;
		enum frame_host	 verdict;
	} rows[] = {
		{ "TCP", 6, 16, FRAME_HOST_OK },
		{ "UDP", 17, 6, FRAME_HOST_OK },
		{ "UDP-Lite", 136, 6, FRAME_HOST_OK },
		{ "DCCP", 33, 6, FRAME_HOST_OK },
		{ "GRE", 47, 4, FRAME_HOST_OK },
		{ "ICMP, of a virtual machine", 1, 2, FRAME_HOST_OK },
		{ "TCP as UDP", 6, 6, FRAME_HOST_BAD },
		{ "TCP as SCTP", 6, 8, FRAME_HOST_BAD },
		{ "UDP as TCP", 17, 16, FRAME_HOST_BAD },
		{ "SCTP as TCP", 132, 16, FRAME_HOST_BAD },
		{ "GRE elsewhere", 47, 6, FRAME_HOST_BAD },
		{ "SCTP's of another protocol", 1, 8, FRAME_HOST_BAD },
	};
	struct frame frame;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		memset(data, 0, 100);
		memcpy(data + 12, "\x08\0\x45\0\0\x56", 6);
		data[23] = rows[i].proto;
		frame = host_frame(100, PARTIAL, FRAME_GSO_NONE, 0, 34,
		    rows[i].offset);
		ATF_CHECK_EQ_MSG(rows[i].verdict,
		    frame_host_prepare(&frame, data), "%s", rows[i].what);
		if (rows[i].verdict == FRAME_HOST_OK)
			ATF_CHECK_EQ(PARTIAL, frame.f_flags);
	}
	/* Where no IP header is found, SCTP's alone is refused. */
	memset(data, 0, 100);
	frame = host_frame(100, PARTIAL, FRAME_GSO_NONE, 0, 40, 6);
	ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
	frame = host_frame(100, PARTIAL, FRAME_GSO_NONE, 0, 40, 8);
	ATF_CHECK_EQ(FRAME_HOST_BAD, frame_host_prepare(&frame, data));
	/* Outside the frame. */
	frame = host_frame(100, PARTIAL, FRAME_GSO_NONE, 0, 93, 6);
	ATF_CHECK_EQ(FRAME_HOST_BAD, frame_host_prepare(&frame, data));
	frame = host_frame(100, PARTIAL, FRAME_GSO_NONE, 0, 65535, 65535);
	ATF_CHECK_EQ(FRAME_HOST_BAD, frame_host_prepare(&frame, data));
	/* Without a checksum, the rest says nothing. */
	frame = host_frame(100, VERIFIED, FRAME_GSO_NONE, 9, 65535, 65535);
	ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
	ATF_CHECK_EQ(VERIFIED, frame.f_flags);
}

TEST(kinds, "Segments that nobody can cut are refused, and those in a tunnel "
    "must be cut")
{
	static const struct {
		const char	*what;
		uint8_t		 flags, type;
		uint16_t	 size, start;
		int		 at;
		uint8_t		 byte;
		enum frame_host	 verdict;
	} rows[] = {
		{ "TCP", PARTIAL, TCP4, 100, 34, -1, 0, FRAME_HOST_OK },
		{ "TCP with ECN", PARTIAL, TCP4 | FRAME_GSO_ECN, 100, 34, -1, 0,
		    FRAME_HOST_OK },
		{ "without a checksum", 0, TCP4, 100, 0, -1, 0, FRAME_HOST_OK },
		{ "segments of 0 bytes", PARTIAL, TCP4, 0, 34, -1, 0,
		    FRAME_HOST_BAD },
		{ "1,365 segments", PARTIAL, TCP4, 2, 34, -1, 0,
		    FRAME_HOST_OK },
		{ "more", PARTIAL, TCP4, 1, 34, -1, 0, FRAME_HOST_BAD },
		{ "fragments of IP", PARTIAL, FRAME_GSO_UDP, 100, 34, -1, 0,
		    FRAME_HOST_BAD },
		{ "type 2", PARTIAL, 2, 100, 34, -1, 0, FRAME_HOST_BAD },
		{ "begins elsewhere", PARTIAL, TCP4, 100, 54, -1, 0,
		    FRAME_HOST_TUNNEL },
		{ "no IP", PARTIAL, TCP4, 100, 34, 13, 6, FRAME_HOST_TUNNEL },
		{ "no IP, no checksum", 0, TCP4, 100, 34, 13, 6,
		    FRAME_HOST_BAD },
		{ "ICMP, no checksum", 0, TCP4, 100, 34, 23, 1,
		    FRAME_HOST_BAD },
		{ "a fragment, no checksum", 0, TCP4, 100, 34, 20, 0x20,
		    FRAME_HOST_BAD },
	};
	struct packet p = { .payload = payload, .paylen = 2730 - 54 };
	struct frame frame;
	size_t i, len;

	for (i = 0; i < nitems(rows); i++) {
		len = packet_build_partial(&p, data);
		if (rows[i].at != -1)
			data[rows[i].at] = rows[i].byte;
		frame = host_frame(len, rows[i].flags, rows[i].type,
		    rows[i].size, rows[i].start, 16);
		ATF_CHECK_EQ_MSG(rows[i].verdict,
		    frame_host_prepare(&frame, data), "%s", rows[i].what);
	}
	/* The pseudo-header has another destination than the header. */
	p.v6 = true;
	len = packet_build(&p, data);
	memmove(data + 62, data + 54, len - 54);
	data[20] = 43;
	memcpy(data + 54, "\6\0\0\1\0\0\0\0", 8);
	frame = host_frame(len + 8, 0, TCP6, 100, 0, 0);
	ATF_CHECK_EQ(FRAME_HOST_BAD, frame_host_prepare(&frame, data));
	data[57] = 0;
	ATF_CHECK_EQ(FRAME_HOST_OK, frame_host_prepare(&frame, data));
	ATF_CHECK_EQ(62, frame.f_csum_start);
}

TEST(longest, "The longest of the frames that one is cut into: it, if shorter")
{
	struct frame frame = { .f_len = 1500, .f_hdr_len = 54,
	    .f_gso_size = 1460 };

	ATF_CHECK_EQ(1500, frame_longest(&frame));
	frame.f_gso_type = FRAME_GSO_TCPV4;
	ATF_CHECK_EQ(1500, frame_longest(&frame));
	frame.f_len = 1515;
	ATF_CHECK_EQ(1514, frame_longest(&frame));
}

TEST_PROGRAM
