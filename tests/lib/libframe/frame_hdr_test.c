/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * frame_hdr.c: headers that end in any byte, whatever is behind, and each field
 * on both sides of what is valid.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "frame_hdr.h"
#include "frame_sum.h"
#include "test.h"

#define	NET	14

static uint8_t	p[256];

/* Two addresses that an IP header could begin with, and a type. */
static void
ether(uint16_t type)
{
	memset(p, 0, sizeof(p));
	memcpy(p, "\x46\x45\0\0\0\0\x40\0\0\0\0\1", 12);
	be16enc(p + 12, type);
}

/* An IPv4 header of `len' bytes at `net', of a packet of `total' bytes. */
static void
ip4(uint32_t net, uint32_t len, uint8_t proto, uint16_t total)
{
	uint8_t *ip = p + net;
	uint16_t sum;

	memset(ip, 0, len);
	ip[0] = 0x40 | len / 4;
	be16enc(ip + 2, total);
	ip[9] = proto;
	memcpy(ip + 12, "\xc0\0\2\1\xc0\0\2\2", 8);
	sum = frame_sum_fold(frame_sum_bytes(ip, len));
	memcpy(ip + 10, &sum, sizeof(sum));
}

/*
 * The function for the first `len' bytes of `p', and for a copy of these alone,
 * so that AddressSanitizer sees what is read behind them.
 */
static bool
find(uint32_t len, struct frame_hdr *fh)
{
	uint8_t *copy = malloc(len);
	struct frame_hdr same;
	bool found;

	ATF_REQUIRE(copy != NULL);
	memcpy(copy, p, len);
	found = frame_hdr_find(p, len, fh);
	ATF_CHECK_EQ(found, frame_hdr_find(copy, len, &same));
	free(copy);
	return (found);
}

/* The same with frame_hdr_inner(). */
static bool
inner(uint32_t len, const struct frame_hdr *outer, uint32_t frame_len,
    uint32_t l4, struct frame_hdr *fh)
{
	uint8_t *copy = malloc(len);
	struct frame_hdr same;
	bool found;

	ATF_REQUIRE(copy != NULL);
	memcpy(copy, p, len);
	found = frame_hdr_inner(p, len, outer, frame_len, l4, fh);
	ATF_CHECK_EQ(found, frame_hdr_inner(copy, len, outer, frame_len, l4,
	    &same));
	free(copy);
	return (found);
}

TEST(ip6, "IPv6's extension headers are skipped, all of each, and a routing "
    "header that is under way is one")
{
	static const struct {
		uint8_t		next[4];	/* up to the protocol */
		uint8_t		len[3];		/* in 8 bytes, without 8 */
		uint8_t		left;
		uint32_t	bytes;		/* of all headers */
		bool		routed;
	} rows[] = {
		{ { 6 }, { 0 }, 0, 40, false },
		{ { 0, 6 }, { 0 }, 0, 48, false },
		{ { 60, 17 }, { 2 }, 0, 64, false },
		{ { 43, 6 }, { 0 }, 0, 48, false },
		{ { 43, 6 }, { 0 }, 1, 48, true },
		{ { 60, 6 }, { 0 }, 1, 48, false },
		{ { 0, 6 }, { 0 }, 1, 48, false },
		{ { 0, 43, 60, 6 }, { 1, 2, 0 }, 3, 40 + 16 + 24 + 8, true },
		{ { 44, 6 }, { 0 }, 0, 40, false },
		{ { 51, 6 }, { 0 }, 0, 40, false },
	};
	struct frame_hdr fh;
	uint32_t at, len;
	unsigned int i, j;

	for (i = 0; i < nitems(rows); i++) {
		ether(0x86dd);
		p[NET] = 0x60;
		p[NET + 6] = rows[i].next[0];
		at = NET + 40;
		for (j = 0; at < NET + rows[i].bytes; j++) {
			p[at] = rows[i].next[j + 1];
			p[at + 1] = rows[i].len[j];
			p[at + 3] = rows[i].left;
			at += (rows[i].len[j] + 1) * 8;
		}
		for (len = NET; len < NET + 120; len++) {
			ATF_CHECK_EQ_MSG(len >= at, find(len, &fh),
			    "row %u: %u", i, len);
			if (len < at)
				continue;
			ATF_CHECK(!fh.fh_ip4);
			ATF_CHECK_EQ(at, fh.fh_l4);
			ATF_CHECK_EQ(rows[i].next[j], fh.fh_proto);
			ATF_CHECK_EQ(rows[i].routed, fh.fh_routed);
		}
	}
}

/* What is between the outer IPv4 header and the inner one. */
struct between {
	const char	*bytes;
	uint32_t	 len;
	uint8_t		 proto;
	bool		 good;
};

TEST(inner, "The inner header is behind the outer one, GRE or Ethernet in GRE, "
    "all of which the frame has")
{
#define	B(s)	s, sizeof(s) - 1
	static const struct between rows[] = {
		{ B(""), 4, true }, { B(""), 41, true },
		{ B(""), 6, false }, { B(""), 50, false },
		{ B("\0\0\x08\0"), 47, true }, { B("\0\0\x86\xdd"), 47, true },
		{ B("\x20\0\x08\0\0\0\0\1"), 47, true },
		{ B("\x80\0\x08\0\0\0\0\0"), 47, true },
		{ B("\xa0\0\x08\0\0\0\0\0\0\0\0\1"), 47, true },
		{ B("\x10\0\x08\0\0\0\0\1"), 47, false },
		{ B("\0\1\x08\0"), 47, false },
		{ B("\0\0\x88\x47"), 47, false },
		{ B("\0\0\x65\x58\0\0\0\0\0\0\0\0\0\0\0\0\x08\0"), 47, true },
		{ B("\0\0\x65\x58\0\0\0\0\0\0\0\0\0\0\0\0\x08\6"), 47, false },
	};
#undef B
	struct frame_hdr fh, outer;
	uint32_t at, len;
	unsigned int i;
	bool good;

	for (i = 0; i < nitems(rows); i++) {
		ether(0x0800);
		ip4(NET, 20, rows[i].proto, 100);
		memcpy(p + NET + 20, rows[i].bytes, rows[i].len);
		at = NET + 20 + rows[i].len;
		ip4(at, 20, 6, 60);
		for (len = NET + 20; len < at + 60; len++) {
			ATF_REQUIRE(find(len, &outer));
			good = inner(len, &outer, at + 60, 0, &fh);
			ATF_CHECK_EQ_MSG(rows[i].good && len >= at + 20, good,
			    "row %u: %u", i, len);
			if (good)
				ATF_CHECK_EQ(at, fh.fh_net);
		}
		/* The destination is another one. */
		outer.fh_routed = true;
		ATF_CHECK(!inner(len, &outer, at + 60, 0, &fh));
	}
}

TEST(udp, "Behind UDP the inner header is the last one before its TCP or UDP, "
    "or the first sound one; none overlaps UDP's")
{
	const uint32_t udp = NET + 20, at = udp + 8 + 40, l4 = at + 20;
	const uint32_t frame_len = l4 + 60;
	struct frame_hdr fh, outer;
	unsigned int i;
	uint32_t len;

	for (i = 0; i < 2; i++) {
		ether(0x0800);
		ip4(NET, 20, 17, frame_len - NET);
		/* Options that look like a header, as long as they must be. */
		if (i == 1)
			ip4(at - 40, 60, 6, frame_len - (at - 40));
		ip4(at, 20, 17, frame_len - at);
		be16enc(p + l4 + 4, frame_len - l4);
		ATF_REQUIRE(find(200, &outer));
		ATF_CHECK(inner(200, &outer, frame_len, l4, &fh));
		ATF_CHECK_EQ(at, fh.fh_net);
		ATF_CHECK_EQ(i == 0, inner(200, &outer, frame_len,
		    0, &fh) && fh.fh_net == at);
		ATF_CHECK(!inner(200, &outer, frame_len + 1, l4,
		    &fh));
		ATF_CHECK(!inner(200, &outer, frame_len, l4 + 1,
		    &fh));
	}
	/* UDP's header must be there to tell, TCP's not. */
	ip4(at - 40, 20, 99, 1);
	for (len = at; len < l4 + 12; len++) {
		ip4(at, 20, 17, frame_len - at);
		be16enc(p + l4 + 4, frame_len - l4);
		ATF_CHECK_EQ_MSG(len >= l4 + 8, inner(len, &outer,
		    frame_len, 0, &fh), "%u bytes", len);
		ip4(at, 20, 6, frame_len - at);
		ATF_CHECK_EQ(len >= l4, inner(len, &outer,
		    frame_len, 0, &fh));
		/* Another protocol with UDP's length. */
		ip4(at, 20, 50, frame_len - at);
		ATF_CHECK(!inner(len, &outer, frame_len, 0, &fh));
	}
	/* UDP's length, or IPv4's checksum, is another. */
	for (i = 0; i < 3; i++) {
		ip4(at, 20, 17, frame_len - at);
		be16enc(p + l4 + 4, frame_len - l4 - (i == 1));
		p[at + 10] ^= i == 2;
		ATF_CHECK_EQ(i == 0, inner(200, &outer, frame_len,
		    0, &fh));
	}
	/* From the first byte behind UDP's header on, and no earlier. */
	for (i = 0; i <= 8; i++) {
		memset(p + udp, 0, 200 - udp);
		ip4(udp + i, 20, 6, frame_len - udp - i);
		ATF_CHECK_EQ_MSG(i == 8, inner(200, &outer,
		    frame_len, udp + i + 20, &fh), "%u", i);
		ATF_CHECK_EQ(i == 8, inner(200, &outer, frame_len,
		    0, &fh));
	}
}

TEST_PROGRAM
