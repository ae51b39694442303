/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The module's copy of a ruled frame, and its forms: vale_learn_form.c.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include <dev/netmap/vale_learn_form.h>

#include "test.h"

#define	HEADER	12		/* bytes of a virtio-net header */
#define	ADDRS	12
#define	NONE	0x10000		/* no tag */

static struct vale_learn_frame lf;

/* What a virtio-net header asks for. */
struct vnet {
	uint8_t		flags, gso;
	uint16_t	hdr_len, start, offset;
};

static void
put_vnet(uint8_t *p, const struct vnet *vn)
{
	const uint8_t h[HEADER] = { vn->flags, vn->gso,
	    vn->hdr_len & 0xff, vn->hdr_len >> 8, 0xaa, 0xbb,
	    vn->start & 0xff, vn->start >> 8,
	    vn->offset & 0xff, vn->offset >> 8, 0xcc, 0xdd };

	memcpy(p, h, sizeof(h));
}

/*
 * Write a frame of `len' bytes without its tag, with a tag if `tci' is not
 * NONE.  Returns its bytes.
 */
static uint32_t
write_frame(uint8_t *p, uint32_t len, uint32_t tci)
{
	uint32_t i, n = 0;

	for (i = 0; i < len; i++) {
		if (i == ADDRS && tci != NONE) {
			p[n++] = 0x81;
			p[n++] = 0;
			p[n++] = tci >> 8;
			p[n++] = tci & 0xff;
		}
		p[n++] = i == ADDRS ? 8 : i == ADDRS + 1 ? 0 : (i * 7) & 0xff;
	}
	return (n);
}

/* Begin with it, in pieces of up to `piece' bytes. */
static void
begin(const struct vnet *vn, uint32_t len, uint32_t tci, uint32_t piece)
{
	static uint8_t bytes[HEADER + VALE_LEARN_FRAME_MAX];
	uint32_t done = 0, n, total = vn != NULL ? HEADER : 0;
	uint8_t *to;

	vale_learn_frame_begin(&lf, total);
	if (vn != NULL)
		put_vnet(bytes, vn);
	total += write_frame(bytes + total, len, tci);
	for (; done < total; done += n) {
		n = MIN(piece, total - done);
		to = vale_learn_frame_append(&lf, n);
		ATF_REQUIRE(to != NULL);
		memcpy(to, bytes + done, n);
	}
	ATF_REQUIRE(vale_learn_frame_end(&lf));
}

/* What stands there now. */
static void
check(const struct vnet *vn, uint32_t len, uint32_t tci)
{
	static uint8_t bytes[HEADER + VALE_LEARN_FRAME_MAX + VALE_VLAN_TAG];
	uint32_t n = 0;

	if (vn != NULL) {
		put_vnet(bytes, vn);
		n = HEADER;
	}
	n += write_frame(bytes + n, len, tci);
	ATF_CHECK_EQ(n, lf.lf_header + lf.lf_len);
	ATF_CHECK_EQ(vn != NULL ? HEADER : 0, lf.lf_header);
	ATF_CHECK(memcmp(bytes, lf.lf_start, n) == 0);
	ATF_CHECK(lf.lf_start >= lf.lf_bytes && lf.lf_start + n +
	    VALE_LEARN_BEHIND <= lf.lf_bytes + sizeof(lf.lf_bytes));
	ATF_CHECK_EQ(tci != NONE, vale_learn_frame_tagged(&lf));
}

TEST(forms, "A frame gets a tag, loses it, and gets it again, whatever its "
    "length and its pieces")
{
	static const uint32_t lens[] = { 14, 15, 60, 1514, 9000,
	    VALE_LEARN_FRAME_MAX - VALE_VLAN_TAG };
	unsigned int i, round;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		begin(NULL, lens[i], NONE, 1 + i * 40);
		check(NULL, lens[i], NONE);
		for (round = 0; round < 3; round++) {
			vale_learn_frame_form(&lf, 10, false);
			check(NULL, lens[i], NONE);
			vale_learn_frame_form(&lf, 10, true);
			check(NULL, lens[i], 10);
			vale_learn_frame_form(&lf, 10, true);
			check(NULL, lens[i], 10);
			vale_learn_frame_form(&lf, 10, false);
			check(NULL, lens[i], NONE);
		}
		begin(NULL, lens[i], 0xa00a, 2048);
		vale_learn_frame_form(&lf, 10, true);
		check(NULL, lens[i], 0xa00a);
		vale_learn_frame_form(&lf, 10, false);
		check(NULL, lens[i], NONE);
	}
	/* The longest frame gets a tag, too. */
	begin(NULL, VALE_LEARN_FRAME_MAX, NONE, 2048);
	vale_learn_frame_form(&lf, 4094, true);
	check(NULL, VALE_LEARN_FRAME_MAX, 4094);
}

TEST(priority, "A tag with a priority and no VLAN gets one, and keeps the "
    "priority; in no VLAN a frame stays as it is")
{
	begin(NULL, 60, 0xf000, 2048);
	vale_learn_frame_form(&lf, 0, true);
	check(NULL, 60, 0xf000);
	vale_learn_frame_form(&lf, 0, false);
	check(NULL, 60, 0xf000);
	vale_learn_frame_form(&lf, 20, true);
	check(NULL, 60, 0xf014);
	vale_learn_frame_form(&lf, 20, false);
	check(NULL, 60, NONE);
	vale_learn_frame_form(&lf, 20, true);
	check(NULL, 60, 20);
	begin(NULL, 60, NONE, 2048);
	vale_learn_frame_form(&lf, 0, true);
	check(NULL, 60, NONE);
}

/* Make the frame's headers: IPv4 with `words', or 6 for IPv6, of a protocol. */
static void
ip_header(unsigned int words, uint8_t proto)
{
	uint8_t *p = vale_learn_frame_data(&lf) + ADDRS;

	while (p[0] == 0x81)
		p += VALE_VLAN_TAG;
	memcpy(p, words == 6 ? "\x86\xdd\x60" : "\x08\x00\x40", 3);
	if (words == 6) {
		p[2 + 6] = proto;
		return;
	}
	p[2] |= words;
	memset(p + 2 + 6, 0, 2);
	p[2 + 9] = proto;
}

TEST(header, "A virtio-net header moves with the frame, and what it says of "
    "its headers is changed")
{
	struct vnet gso = { .flags = 1, .gso = 1, .hdr_len = 54, .start = 34,
	    .offset = 16 };
	struct vnet idle = { .hdr_len = 54, .start = 34, .offset = 16 };
	struct vnet odd = { .gso = 3, .hdr_len = 65535 };

	begin(&gso, 9000, NONE, 12);
	vale_learn_frame_form(&lf, 10, true);
	gso.start += 4;
	gso.hdr_len += 4;
	check(&gso, 9000, 10);
	begin(&gso, 9000, 10, 2048);
	vale_learn_frame_form(&lf, 10, false);
	gso.start -= 4;
	gso.hdr_len -= 4;
	check(&gso, 9000, NONE);

	/* Numbers of two bytes. */
	gso.start = gso.hdr_len = 511;
	begin(&gso, 9000, NONE, 2048);
	vale_learn_frame_form(&lf, 10, true);
	gso.start = gso.hdr_len = 515;
	check(&gso, 9000, 10);
	vale_learn_frame_form(&lf, 10, false);
	gso.start = gso.hdr_len = 511;
	check(&gso, 9000, NONE);

	/* It asks for nothing; or its hint is none. */
	begin(&idle, 100, NONE, 2048);
	vale_learn_frame_form(&lf, 10, true);
	check(&idle, 100, 10);
	begin(&odd, 100, NONE, 2048);
	vale_learn_frame_form(&lf, 10, true);
	check(&odd, 100, 10);
	odd.hdr_len = 65532;
	begin(&odd, 100, NONE, 2048);
	vale_learn_frame_form(&lf, 10, true);
	check(&odd, 100, 10);
	odd.hdr_len = 65531;
	begin(&odd, 100, NONE, 2048);
	vale_learn_frame_form(&lf, 10, true);
	odd.hdr_len = 65535;
	check(&odd, 100, 10);
	odd.hdr_len = 17;
	begin(&odd, 100, 10, 2048);
	vale_learn_frame_form(&lf, 10, false);
	check(&odd, 100, NONE);
	odd.hdr_len = 18;
	begin(&odd, 100, 10, 2048);
	vale_learn_frame_form(&lf, 10, false);
	odd.hdr_len = 14;
	check(&odd, 100, NONE);
}

/* The sum of bytes, RFC 1071. */
static uint32_t
sum(const uint8_t *p, uint32_t len)
{
	uint32_t i, n = 0;

	for (i = 0; i < len; i++)
		n += (i & 1) != 0 ? p[i] : p[i] << 8;
	while (n >> 16 != 0)
		n = (n & 0xffff) + (n >> 16);
	return (n);
}

TEST(sums, "A checksum anywhere in the frame is completed; TCP's and UDP's own "
    "stay partial")
{
	static const struct {
		unsigned int	words;		/* ip_header(); 0: no IP */
		uint8_t		proto;
		uint32_t	start, offset, len, tci;
		bool		good, late;
	} rows[] = {
		{ 5, 6, 34, 16, 60, NONE, true, true },
		{ 5, 17, 34, 6, 61, NONE, true, true },
		{ 5, 6, 38, 16, 60, 10, true, true },
		{ 15, 6, 74, 16, 92, NONE, true, true },
		{ 6, 17, 54, 6, 100, NONE, true, true },
		{ 6, 6, 54, 16, 72, 0xf000, true, false },
		{ 6, 6, 58, 16, 72, 0xf000, true, true },
		/* What fits a TCP header is left to others. */
		{ 5, 17, 34, 6, 51, NONE, true, false },
		{ 5, 17, 34, 6, 52, NONE, true, true },
		{ 5, 6, 34, 16, 51, NONE, false, false },
		{ 5, 6, 34, 16, 52, NONE, true, true },
		{ 5, 6, 34, 6, 60, NONE, true, false },
		{ 5, 17, 34, 16, 60, NONE, true, false },
		{ 5, 1, 34, 6, 60, NONE, true, false },
		{ 4, 6, 30, 16, 60, NONE, true, false },
		{ 6, 0, 54, 16, 100, NONE, true, false },
		{ 5, 6, 36, 14, 60, NONE, true, false },
		{ 0, 0, 0, 12, 60, NONE, true, false },
		{ 0, 0, 12, 0, 60, 10, true, false },
		{ 0, 0, 13, 0, 61, NONE, true, false },
		{ 0, 0, 0, 58, 60, NONE, true, false },
		{ 0, 0, 1, 58, 60, NONE, false, false },
		{ 0, 0, 65535, 65535, 60, NONE, false, false },
		{ 0, 0, 34, 65535, 60, NONE, false, false },
		{ 0, 0, 20, 40000, VALE_LEARN_FRAME_MAX, NONE, true, false },
	};
	struct vnet vn = { .flags = 3 };
	uint8_t *p, was[2];
	unsigned int i;
	uint32_t n;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		vn.start = rows[i].start;
		vn.offset = rows[i].offset;
		begin(&vn, rows[i].len, rows[i].tci, 2048);
		if (rows[i].words != 0)
			ip_header(rows[i].words, rows[i].proto);
		p = vale_learn_frame_data(&lf);
		memcpy(was, p + (rows[i].good ? vn.start + vn.offset : 0), 2);
		ATF_CHECK_EQ_MSG(rows[i].good, vale_learn_frame_complete(&lf),
		    "row %u", i);
		if (!rows[i].good)
			continue;
		ATF_CHECK_EQ_MSG(rows[i].late ? 3 : 2, lf.lf_start[0],
		    "row %u", i);
		ATF_CHECK_EQ(rows[i].late, memcmp(was, p + vn.start +
		    vn.offset, 2) == 0);
		if (rows[i].late || vn.offset % 2 != 0)
			continue;
		/* With what was there in its place the sum is the other. */
		n = ~(p[vn.start + vn.offset] << 8 |
		    p[vn.start + vn.offset + 1]) & 0xffff;
		memcpy(p + vn.start + vn.offset, was, 2);
		ATF_CHECK_EQ_MSG(n, sum(p + vn.start, lf.lf_len - vn.start),
		    "row %u", i);
	}
}

TEST(random_sums, "The sum is that of all bytes from its begin to the frame's "
    "end, however many")
{
	struct vnet vn = { .flags = 1 };
	uint32_t i, len, seed = 1, want;
	uint8_t *p;

	for (i = 0; i < 2000; i++) {
		len = 60 + test_random(&seed) % (i % 10 == 0 ? 60000 : 200);
		vn.start = test_random(&seed) % 50;
		vn.offset = test_random(&seed) % 9;
		begin(&vn, len, NONE, 2048);
		p = vale_learn_frame_data(&lf) + vn.start;
		want = ~sum(p, len - vn.start) & 0xffff;
		if (want == 0 && vn.offset == 6)
			want = 0xffff;
		ATF_CHECK(vale_learn_frame_complete(&lf));
		ATF_CHECK_EQ(want, (uint32_t)(p[vn.offset] << 8 |
		    p[vn.offset + 1]));
	}
}

TEST(zero, "A checksum that comes out as 0 is 0xffff where UDP's is: RFC 768")
{
	static const uint16_t offsets[] = { 0, 4, 6, 8, 16 };
	struct vnet vn = { .flags = 1, .start = 20 };
	unsigned int i, n;
	uint8_t *p;

	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		vn.offset = offsets[i];
		begin(&vn, 60, NONE, 2048);
		p = vale_learn_frame_data(&lf) + vn.start;
		/* Add the checksum to bytes that it covers. */
		memset(p + 18, 0, 2);
		n = ~sum(p, 40) & 0xffff;
		p[18] = n >> 8;
		p[19] = n & 0xff;
		ATF_CHECK(vale_learn_frame_complete(&lf));
		n = p[vn.offset] << 8 | p[vn.offset + 1];
		ATF_CHECK_EQ(vn.offset == 6 ? 0xffff : 0, n);
	}
}

TEST(nothing, "A header that asks for nothing, or is too short to, changes no "
    "byte")
{
	struct vnet vn = { .flags = 2, .start = 20, .offset = 16 };
	uint32_t len;

	begin(&vn, 60, NONE, 2048);
	ATF_CHECK(vale_learn_frame_complete(&lf));
	check(&vn, 60, NONE);
	for (len = 8; len <= 12; len++) {
		vale_learn_frame_begin(&lf, len);
		memset(vale_learn_frame_append(&lf, len + 60), 7, len + 60);
		ATF_REQUIRE(vale_learn_frame_end(&lf));
		lf.lf_start[1] = lf.lf_start[7] = lf.lf_start[9] = 0;
		ATF_CHECK(vale_learn_frame_complete(&lf));
		ATF_CHECK_EQ(len < 10 ? 7 : 6, lf.lf_start[0]);
		lf.lf_start[0] = 7;
		vale_learn_frame_form(&lf, 10, true);
		ATF_CHECK_EQ(len < 10 ? 7 : 11, lf.lf_start[6]);
	}
}

/* Whether a frame to be cut is accepted. */
static bool
cut(uint8_t flags, uint8_t gso, unsigned int words, uint8_t proto,
    uint16_t start, uint16_t offset)
{
	const struct vnet vn = { .flags = flags, .gso = gso, .start = start,
	    .offset = offset };

	begin(&vn, 400, NONE, 2048);
	ip_header(words, proto);
	return (vale_learn_frame_complete(&lf));
}

TEST(segments, "A frame to be cut is what its type says, directly behind IP "
    "and at most two tags")
{
	/* Types, first bytes and protocols that do not belong together. */
	static const struct {
		uint16_t	type;
		uint8_t		version, gso, six, nine;
		bool		good;
	} others[] = {
		{ 0x0800, 0x45, 1, 0, 6, true },
		{ 0x86dd, 0x60, 4, 6, 0, true },
		{ 0x0800, 0x55, 1, 0, 6, false },
		{ 0x0800, 0x60, 5, 17, 0, false },
		{ 0x86dd, 0x45, 4, 0, 6, false },
		{ 0x86dd, 0x45, 4, 6, 6, false },
		{ 0x86dd, 0x50, 4, 6, 0, false },
		{ 0x0806, 0x45, 5, 0, 17, false },
		{ 0x0806, 0x60, 5, 17, 0, false },
		{ 0x0800, 0x65, 4, 6, 6, false },
	};
	unsigned int i, n;
	uint8_t *p;

	ATF_CHECK(cut(1, 1, 5, 6, 34, 16));
	ATF_CHECK(cut(1, 0x81, 7, 6, 42, 16));
	ATF_CHECK(cut(1, 4, 6, 6, 54, 16));
	ATF_CHECK(cut(1, 3, 5, 17, 34, 6));
	ATF_CHECK(cut(1, 5, 6, 17, 54, 6));
	ATF_CHECK(cut(0, 1, 5, 6, 0, 0));
	/* Another version, protocol, place, type; a header between. */
	ATF_CHECK(!cut(1, 4, 5, 6, 34, 16));
	ATF_CHECK(!cut(1, 1, 6, 6, 54, 16));
	ATF_CHECK(!cut(1, 1, 5, 17, 34, 6));
	ATF_CHECK(!cut(1, 3, 5, 6, 34, 16));
	ATF_CHECK(!cut(1, 1, 5, 6, 38, 16));
	ATF_CHECK(!cut(1, 1, 5, 6, 34, 6));
	ATF_CHECK(!cut(1, 2, 5, 6, 34, 16));
	ATF_CHECK(!cut(1, 0x80, 5, 6, 34, 16));
	ATF_CHECK(!cut(0, 4, 6, 0, 0, 0));
	ATF_CHECK(!cut(0, 1, 4, 6, 0, 0));
	ATF_CHECK(!cut(1, 1, 5, 0, 0, 0));
	ATF_CHECK(!cut(1, 1, 5, 6, 0, 16));
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		begin(&(struct vnet){ .gso = others[i].gso }, 400, NONE, 2048);
		p = vale_learn_frame_data(&lf) + ADDRS;
		memset(p, 0, 42);
		p[0] = others[i].type >> 8;
		p[1] = others[i].type & 0xff;
		p[2] = others[i].version;
		p[2 + 6] = others[i].six;
		p[2 + 9] = others[i].nine;
		ATF_CHECK_EQ_MSG(others[i].good,
		    vale_learn_frame_complete(&lf), "row %u", i);
	}
	for (i = 0; i < 16; i++) {
		ATF_CHECK(cut(0, 1, 5, 6, 0, 0));
		p = vale_learn_frame_data(&lf) + ADDRS + 2 + 6;
		p[i / 8] = 128 >> i % 8;
		ATF_CHECK_EQ(i < 2, vale_learn_frame_complete(&lf));
	}
	/* ARP; a fragment. */
	ATF_CHECK(cut(0, 1, 5, 6, 0, 0));
	p = vale_learn_frame_data(&lf) + ADDRS;
	p[2 + 6] = 0x20;
	ATF_CHECK(!vale_learn_frame_complete(&lf));
	p[2 + 6] = 0;
	p[1] = 6;
	ATF_CHECK(!vale_learn_frame_complete(&lf));
	for (i = 0; i <= 3; i++) {
		ATF_CHECK(cut(0, 1, 5, 6, 0, 0));
		p = vale_learn_frame_data(&lf) + ADDRS;
		memmove(p + i * VALE_VLAN_TAG, p, 100);
		for (n = 0; n < i; n++, p += VALE_VLAN_TAG)
			memcpy(p, "\x81\x00\x00\x0a", VALE_VLAN_TAG);
		ATF_CHECK_EQ(i <= 2, vale_learn_frame_complete(&lf));
	}
	/* A tag that is cut off, and an IP header. */
	for (i = 14; i < 34; i++) {
		begin(&(struct vnet){ .gso = 1 }, i, NONE, 2048);
		ip_header(5, 6);
		ATF_CHECK(!vale_learn_frame_complete(&lf));
		memcpy(vale_learn_frame_data(&lf) + ADDRS, "\x81\x00", 2);
		ATF_CHECK(!vale_learn_frame_complete(&lf));
	}
	/* The shortest, and one byte less. */
	for (i = 33; i <= 34; i++) {
		begin(&(struct vnet){ .gso = 1 }, i, NONE, 2048);
		ip_header(5, 6);
		ATF_CHECK_EQ(i == 34, vale_learn_frame_complete(&lf));
		begin(&(struct vnet){ .gso = 4 }, i + 20, NONE, 2048);
		ip_header(6, 6);
		ATF_CHECK_EQ(i == 34, vale_learn_frame_complete(&lf));
	}
	/* A header too short to ask for anything. */
	vale_learn_frame_begin(&lf, 8);
	memset(vale_learn_frame_append(&lf, 60), 0xff, 60);
	ATF_CHECK(vale_learn_frame_end(&lf));
	ATF_CHECK(vale_learn_frame_complete(&lf));
}

TEST(limits, "A frame that is too long is not copied, one that is too short is "
    "refused")
{
	uint32_t header;

	for (header = 0; header <= VALE_LEARN_VNET_MAX; header += 16) {
		vale_learn_frame_begin(&lf, header);
		ATF_CHECK(vale_learn_frame_append(&lf, VALE_LEARN_FRAME_MAX +
		    header + 1) == NULL);
		ATF_CHECK(vale_learn_frame_append(&lf, UINT32_MAX) == NULL);
		ATF_CHECK(vale_learn_frame_append(&lf, header + 13) != NULL);
		ATF_CHECK(!vale_learn_frame_end(&lf));
		ATF_CHECK(vale_learn_frame_append(&lf,
		    VALE_LEARN_FRAME_MAX - 12) == NULL);
		ATF_CHECK(vale_learn_frame_append(&lf,
		    VALE_LEARN_FRAME_MAX - 13) != NULL);
		ATF_CHECK(vale_learn_frame_append(&lf, 0) != NULL);
		ATF_CHECK(vale_learn_frame_append(&lf, 1) == NULL);
		ATF_CHECK(vale_learn_frame_end(&lf));
		ATF_CHECK_EQ(VALE_LEARN_FRAME_MAX, lf.lf_len);
		ATF_CHECK(lf.lf_start + header + VALE_LEARN_FRAME_MAX +
		    VALE_LEARN_BEHIND <= lf.lf_bytes + sizeof(lf.lf_bytes));
	}
}

TEST_PROGRAM
