/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Offloads on a switch with VLANs: what is known of a frame, when its headers
 * become longer or shorter.
 */

#include <sys/param.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_test.h"
#include "vale_vnet.h"

/*
 * A packet of several segments (or, if `mss' is 0, with a partial checksum)
 * from an access port or a trunk, to one of each.  The station n is at port n.
 */
static void
offloads(unsigned int from, unsigned int to, uint32_t paylen, uint32_t mss,
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

TEST(offloads, "Offloads survive a tag that is added or taken")
{
	static const uint32_t sizes[][2] = { { 9000, 1460 }, { 9001, 536 },
	    { 500, 0 }, { 501, 0 } };
	unsigned int from, i, to;
	uint32_t seed = 7;

	for (from = 1; from < VN_NKINDS; from++)
		for (to = 0; to < VN_NKINDS; to++)
			for (i = 0; i < 6 * nitems(sizes); i++)
				offloads(vn_kinds[from], vn_kinds[to],
				    sizes[i / 6][0], sizes[i / 6][1],
				    i % 2 != 0, i % 6 / 2 == 0 ? EVERYBODY :
				    i % 6 / 2, &seed);
}

TEST_PROGRAM
