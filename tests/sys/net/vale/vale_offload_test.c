/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * virtio-net headers: frames that pass the switch as they are, and those that
 * it cuts.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vale_vnet.h"

#define	LONGEST		200		/* frames in a sync */

TEST(longest, "More frames with the longest headers than a batch has space for "
    "arrive in order")
{
	uint8_t buf[600], hdr[VN_LONG];
	struct vale_desc *from, *to;
	uint32_t i;

	vn_make_hdr(hdr, NEEDS_CSUM, GSO_NONE, 0, 0, 490, 20);
	to = vn_port("valet0:to", VN_LONG, 1024, 2);
	from = t_open("valet0:from", 1024, 64);
	ATF_REQUIRE_EQ(0, vale_set_header(from, VALE_HEADER_FRAME));
	vn_drain(to);
	for (i = 0; i < LONGEST; i++) {
		t_make(buf, sizeof(buf), 2, 1, i);
		vn_put(from, VALE_HEADER_FRAME, hdr, buf, sizeof(buf), 2048,
		    false);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(from));
	ATF_REQUIRE_EQ(0, vale_rxsync(to));
	for (i = 0; i < LONGEST; i++) {
		t_make(buf, sizeof(buf), 2, 1, i);
		ATF_REQUIRE_EQ(sizeof(buf), vn_take(to, VN_LONG, vn_hdr,
		    vn_frame));
		/* Its checksum is complete: vale_sums_test.c. */
		memcpy(buf + 510, vn_frame + 510, 2);
		ATF_CHECK_EQ(0, memcmp(buf, vn_frame, sizeof(buf)));
		ATF_CHECK_EQ(0, vn_hdr[0]);
	}
	vn_expect_none(to);
	/* 64 KB of headers. */
	T_COUNT(from, TX_BATCH, 2);
	vale_close(from);
	vale_close(to);
}

TEST(slots, "A frame, or a segment, may have its last byte in a slot of its "
    "own")
{
	static struct vn_sent s;
	struct vale_desc *from, *to;
	struct packet p = { .payload = vn_payload };
	uint32_t len, mss;
	unsigned int b;

	packet_fill(vn_payload, sizeof(vn_payload), 22);
	for (b = 0; b < nitems(vn_kinds); b++) {
		to = vn_port("valet0:to", vn_kinds[b], 64, 2);
		from = vn_port("valet0:from", VALE_HEADER_FRAME, 64, 1);
		vn_drain(to);
		for (len = 4096 - VN_LONG - 1; len <= 4096 + 1; len++)
			for (mss = 0; mss <= len - 54; mss += len - 54) {
				p.paylen = mss == 0 ? len - 54 : 2 * mss;
				vn_make(&s, &p, mss, 2, 1);
				vn_put_sent(from, VALE_HEADER_FRAME, &s, 2048,
				    true);
				ATF_REQUIRE_EQ(0, vale_txsync(from));
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
				vn_expect(to, vn_kinds[b], &s);
				vn_expect_none(to);
				ATF_REQUIRE_EQ(0, vale_rxsync(to));
			}
		vale_close(from);
		vale_close(to);
	}
}

/*
 * A packet of several segments (or, if `mss' is 0, with a partial checksum)
 * from an access port or a trunk, to one of each.  The station n is at port n.
 */
static void
check_tag(unsigned int from, unsigned int to, uint32_t paylen, uint32_t mss,
    bool tagged, unsigned int dst, uint32_t *seed)
{
	static struct vn_sent plain, tag;
	struct packet p = vn_packet(paylen, seed);
	unsigned int i;

	p.vlan = false;
	p.tag = 0x600a;
	vn_make(&plain, &p, mss, dst, 0);
	p.vlan = true;
	/* What the switch tags has no priority. */
	p.tag = tagged ? 0x600a : 10;
	vn_make(&tag, &p, mss, dst, 0);
	for (i = 0; i < 3; i++)
		t_port[i] = vn_port(t_port_name(i), i == 0 ? from : to, 0, i);
	for (i = 1; i < 3; i++)
		vn_drain(t_port[i]);
	t_port_set(0, tagged ? "trunk" : "vlan", "10");
	t_port_set(1, "vlan", "10");
	t_port_set(2, "trunk", "10");
	/* Teach it the stations of VLAN 10. */
	for (i = 1; i < 3 && dst != EVERYBODY; i++) {
		uint8_t hello[64], zero[VN_LONG] = { 0 };
		uint32_t len = t_make_tagged(hello, 60, i == 2 ? 10 : T_NONE,
		    EVERYBODY, i, 0);

		vn_put(t_port[i], to == VALE_HEADER_FRAME ? 0 : to, zero, hello,
		    len, 1000, false);
		ATF_REQUIRE_EQ(0, vale_txsync(t_port[i]));
	}
	for (i = 0; i < 3; i++)
		vn_drain(t_port[i]);
	vn_put_sent(t_port[0], from, tagged ? &tag : &plain, 700,
	    paylen % 2 != 0);
	ATF_REQUIRE_EQ(0, vale_txsync(t_port[0]));
	for (i = 1; i < 3; i++) {
		ATF_REQUIRE_EQ(0, vale_rxsync(t_port[i]));
		if (dst == EVERYBODY || dst == i)
			vn_expect(t_port[i], to, i == 1 ? &plain : &tag);
		vn_expect_none(t_port[i]);
	}
	for (i = 0; i < 3; i++)
		vale_close(t_port[i]);
}

TEST(tags, "Offloads survive a tag that is added or taken")
{
	static const uint32_t sizes[][2] = { { 9000, 1460 }, { 9001, 536 },
	    { 500, 0 }, { 501, 0 } };
	unsigned int from, i, to;
	uint32_t seed = 7;

	for (from = 1; from < VN_NKINDS; from++)
		for (to = 0; to < VN_NKINDS; to++)
			for (i = 0; i < 6 * nitems(sizes); i++)
				check_tag(vn_kinds[from], vn_kinds[to],
				    sizes[i / 6][0], sizes[i / 6][1],
				    i % 2 != 0, i % 6 / 2 == 0 ? EVERYBODY :
				    i % 6 / 2, &seed);
}

TEST_PROGRAM
