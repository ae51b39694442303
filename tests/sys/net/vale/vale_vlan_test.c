/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * VLANs of a port: vale_vlan.h.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <dev/netmap/vale_vlan.h>

#include <string.h>

#include <atf-c.h>

#include "test.h"

#define	TYPE_IP		0x0800
#define	TYPE_QINQ	0x88a8

/* Each row: a port's VLANs, a frame, its VLAN. */
static void
check_of(const struct vale_vlan *vn, uint16_t type, uint16_t tci,
    unsigned int vlan)
{
	ATF_CHECK_EQ_MSG(vlan, vale_vlan_of(vn, type, tci),
	    "type %#x tci %#x: %u", type, tci, vale_vlan_of(vn, type, tci));
}

TEST(native, "Frames without a tag are in a trunk's native VLAN")
{
	struct vale_vlan vn = { .vln_mode = VALE_VLAN_ANY };

	ATF_REQUIRE(vale_vlan_trunk(&vn, "10"));
	vn.vln_native = 5;
	check_of(&vn, TYPE_IP, 10, 5);
	check_of(&vn, TYPE_QINQ, 10, 5);
	check_of(&vn, VALE_VLAN_TYPE, 0xe000, 5);
	check_of(&vn, VALE_VLAN_TYPE, 10, 10);
	/* With a tag it must be in the list. */
	check_of(&vn, VALE_VLAN_TYPE, 5, VALE_VLAN_REFUSED);
	ATF_CHECK(vale_vlan_member(&vn, 5));
	ATF_CHECK(!vale_vlan_member(&vn, 0));
	ATF_CHECK(!vale_vlan_tagged(&vn, 5));
	ATF_CHECK(vale_vlan_tagged(&vn, 10));
	/* It stays when the list changes. */
	ATF_REQUIRE(vale_vlan_trunk(&vn, "11"));
	ATF_CHECK_EQ(5, vn.vln_native);
	ATF_CHECK(!vale_vlan_member(&vn, 10));
	/* An access port's VLAN is no native one. */
	vale_vlan_access(&vn, 7);
	ATF_REQUIRE(vale_vlan_trunk(&vn, "11"));
	ATF_CHECK_EQ(0, vn.vln_native);
}

/* Whether the list has just the VLANs from first to last. */
static void
check_list(const char *list, unsigned int first, unsigned int last)
{
	struct vale_vlan vn = { .vln_mode = VALE_VLAN_ANY };
	unsigned int vlan;

	ATF_REQUIRE_MSG(vale_vlan_trunk(&vn, list), "%s", list);
	for (vlan = 0; vlan < 4096; vlan++)
		ATF_CHECK_EQ_MSG(vlan >= first && vlan <= last,
		    vale_vlan_listed(&vn, vlan), "%s: %u", list, vlan);
}

TEST(lists, "Lists have numbers and ranges in any order")
{
	check_list("1", 1, 1);
	check_list("4094", 4094, 4094);
	check_list("3,2,1", 1, 3);
	check_list("5-7,6-9,8-8", 5, 9);
	check_list("63-64", 63, 64);
	check_list("all", 1, 4094);
	check_list("1-4094", 1, 4094);
}

TEST(invalid, "An invalid list changes nothing")
{
	static const char *const lists[] = { "", "0", "4095", "99999999999",
	    "01", "1,", ",1", "1,,2", "1-", "-1", "3-2", "1-4095", "0-5",
	    "1 ", " 1", "1;2", "all,1", "1,all", "ALL", "1--2", "1-2-3",
	    "0x1" };
	struct vale_vlan vn = { .vln_mode = VALE_VLAN_ANY }, before;
	unsigned int i;

	ATF_REQUIRE(vale_vlan_trunk(&vn, "10"));
	vn.vln_native = 5;
	before = vn;
	for (i = 0; i < nitems(lists); i++) {
		ATF_CHECK_MSG(!vale_vlan_trunk(&vn, lists[i]), "\"%s\"",
		    lists[i]);
		ATF_CHECK_EQ(0, memcmp(&vn, &before, sizeof(vn)));
	}
}

TEST_PROGRAM
