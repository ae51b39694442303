/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Requests from before NIOCCTRL: each field of them in the new form, and each
 * of the answer in the old one.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "netmap_run.h"
#include "test.h"

/* What run_control() was called with, and is to answer. */
static struct nmreq_header got;
static union {
	struct nmreq_register		reg;
	struct nmreq_port_info_get	info;
	struct nmreq_vale_list		list;
	struct nmreq_port_hdr		hdr;
} body, answer;
static const char *answer_name;
static unsigned int calls;
static int	fail;

int
run_control(struct run_desc *rd, struct nmreq_header *hdr)
{
	ATF_CHECK(rd == NULL);
	calls++;
	got = *hdr;
	memcpy(&body, (const void *)(uintptr_t)hdr->nr_body, sizeof(body));
	if (fail != 0) {
		errno = fail;
		return (-1);
	}
	memcpy((void *)(uintptr_t)hdr->nr_body, &answer, sizeof(answer));
	if (answer_name != NULL)
		strlcpy(hdr->nr_name, answer_name, sizeof(hdr->nr_name));
	return (0);
}

/* A request with each number of its own. */
static struct nmreq
request(const char *name)
{
	struct nmreq nmr = { .nr_version = NETMAP_API, .nr_offset = 1,
	    .nr_memsize = 2, .nr_tx_slots = 3, .nr_rx_slots = 4,
	    .nr_tx_rings = 5, .nr_rx_rings = 6, .nr_arg1 = 7, .nr_arg2 = 8,
	    .nr_arg3 = 9, .nr_flags = NR_REG_ALL_NIC };

	strlcpy(nmr.nr_name, name, sizeof(nmr.nr_name));
	memset(&answer, 0, sizeof(answer));
	return (nmr);
}

TEST(registers, "NIOCREGIF is NETMAP_REQ_REGISTER, both ways")
{
	struct nmreq nmr = request("vale0:x");

	answer.reg = (struct nmreq_register){ .nr_offset = 11,
	    .nr_memsize = 12, .nr_tx_slots = 13, .nr_rx_slots = 14,
	    .nr_tx_rings = 15, .nr_rx_rings = 16, .nr_mem_id = 18,
	    .nr_extra_bufs = 19 };
	ATF_REQUIRE_EQ(0, run_legacy(NULL, NIOCREGIF, &nmr));
	ATF_CHECK_EQ(NETMAP_REQ_REGISTER, got.nr_reqtype);
	ATF_CHECK_EQ(NETMAP_API, got.nr_version);
	ATF_CHECK_STREQ("vale0:x", got.nr_name);
	ATF_CHECK_EQ(3, body.reg.nr_tx_slots);
	ATF_CHECK_EQ(4, body.reg.nr_rx_slots);
	ATF_CHECK_EQ(5, body.reg.nr_tx_rings);
	ATF_CHECK_EQ(6, body.reg.nr_rx_rings);
	ATF_CHECK_EQ(8, body.reg.nr_mem_id);
	ATF_CHECK_EQ(9, body.reg.nr_extra_bufs);
	/* What it does not have. */
	ATF_CHECK_EQ(0, body.reg.nr_offset);
	ATF_CHECK_EQ(0, body.reg.nr_memsize);
	ATF_CHECK_EQ(0, body.reg.nr_host_tx_rings);
	ATF_CHECK_EQ(0, body.reg.nr_host_rx_rings);
	ATF_CHECK_EQ(11, nmr.nr_offset);
	ATF_CHECK_EQ(12, nmr.nr_memsize);
	ATF_CHECK_EQ(13, nmr.nr_tx_slots);
	ATF_CHECK_EQ(14, nmr.nr_rx_slots);
	ATF_CHECK_EQ(15, nmr.nr_tx_rings);
	ATF_CHECK_EQ(16, nmr.nr_rx_rings);
	ATF_CHECK_EQ(7, nmr.nr_arg1);
	ATF_CHECK_EQ(18, nmr.nr_arg2);
	ATF_CHECK_EQ(19, nmr.nr_arg3);
}

TEST(modes, "The ring's number has the mode, and how poll(2) works; a pipe's \
number becomes a part of its name")
{
	static const struct {
		uint32_t flags;
		uint16_t ringid;
		uint32_t mode;
		uint16_t number;
		uint64_t new_flags;
		const char *name;
	} rows[] = {
		{ NR_REG_DEFAULT, 0, NR_REG_ALL_NIC, 0, 0, "vale0:x" },
		{ NR_REG_DEFAULT, NETMAP_SW_RING | 3, NR_REG_SW, 3, 0,
		    "vale0:x" },
		{ NR_REG_DEFAULT, NETMAP_HW_RING | 0xfff, NR_REG_ONE_NIC,
		    0xfff, 0, "vale0:x" },
		{ NR_REG_DEFAULT, NETMAP_NO_TX_POLL, NR_REG_ALL_NIC, 0,
		    NR_NO_TX_POLL, "vale0:x" },
		{ NR_REG_DEFAULT, NETMAP_DO_RX_POLL, NR_REG_ALL_NIC, 0,
		    NR_DO_RX_POLL, "vale0:x" },
		{ NR_REG_ALL_NIC | NR_MONITOR_TX, NETMAP_NO_TX_POLL |
		    NETMAP_DO_RX_POLL, NR_REG_ALL_NIC, 0, NR_NO_TX_POLL |
		    NR_DO_RX_POLL | NR_MONITOR_TX, "vale0:x" },
		{ NR_REG_ONE_NIC, NETMAP_SW_RING | 2, NR_REG_ONE_NIC, 2, 0,
		    "vale0:x" },
		{ NR_REG_PIPE_MASTER, 12, NR_REG_ALL_NIC, 0, 0,
		    "vale0:x{12" },
		{ NR_REG_PIPE_SLAVE, 4, NR_REG_ALL_NIC, 0, 0, "vale0:x}4" },
		{ 15, 1, 15, 1, 0, "vale0:x" },
	};
	struct nmreq nmr;
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		nmr = request("vale0:x");
		nmr.nr_flags = rows[i].flags;
		nmr.nr_ringid = rows[i].ringid;
		ATF_REQUIRE_EQ(0, run_legacy(NULL, NIOCREGIF, &nmr));
		ATF_CHECK_EQ_MSG(rows[i].mode, body.reg.nr_mode, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].number, body.reg.nr_ringid, "%u", i);
		ATF_CHECK_EQ_MSG(rows[i].new_flags, body.reg.nr_flags, "%u",
		    i);
		ATF_CHECK_STREQ_MSG(rows[i].name, got.nr_name, "%u", i);
	}
}

TEST(infos, "NIOCGINFO is NETMAP_REQ_PORT_INFO_GET, both ways")
{
	struct nmreq nmr = request("vale0:x");

	answer.info = (struct nmreq_port_info_get){ .nr_memsize = 12,
	    .nr_tx_slots = 13, .nr_rx_slots = 14, .nr_tx_rings = 15,
	    .nr_rx_rings = 16, .nr_mem_id = 18 };
	ATF_REQUIRE_EQ(0, run_legacy(NULL, NIOCGINFO, &nmr));
	ATF_CHECK_EQ(NETMAP_REQ_PORT_INFO_GET, got.nr_reqtype);
	ATF_CHECK_EQ(3, body.info.nr_tx_slots);
	ATF_CHECK_EQ(4, body.info.nr_rx_slots);
	ATF_CHECK_EQ(5, body.info.nr_tx_rings);
	ATF_CHECK_EQ(6, body.info.nr_rx_rings);
	ATF_CHECK_EQ(8, body.info.nr_mem_id);
	ATF_CHECK_EQ(1, nmr.nr_offset);
	ATF_CHECK_EQ(12, nmr.nr_memsize);
	ATF_CHECK_EQ(13, nmr.nr_tx_slots);
	ATF_CHECK_EQ(14, nmr.nr_rx_slots);
	ATF_CHECK_EQ(15, nmr.nr_tx_rings);
	ATF_CHECK_EQ(16, nmr.nr_rx_rings);
	ATF_CHECK_EQ(18, nmr.nr_arg2);
	ATF_CHECK_EQ(9, nmr.nr_arg3);
	ATF_CHECK_STREQ("vale0:x", nmr.nr_name);
}

TEST(lists, "NETMAP_BDG_LIST is NETMAP_REQ_VALE_LIST; names have 15 characters")
{
	struct nmreq nmr = request("");

	nmr.nr_cmd = NETMAP_BDG_LIST;
	answer.list = (struct nmreq_vale_list){ .nr_bridge_idx = 17,
	    .nr_port_idx = 18 };
	answer_name = "vale0:0123456789abc";
	ATF_REQUIRE_EQ(0, run_legacy(NULL, NIOCGINFO, &nmr));
	ATF_CHECK_EQ(NETMAP_REQ_VALE_LIST, got.nr_reqtype);
	ATF_CHECK_STREQ("", got.nr_name);
	ATF_CHECK_EQ(7, body.list.nr_bridge_idx);
	ATF_CHECK_EQ(8, body.list.nr_port_idx);
	ATF_CHECK_EQ(17, nmr.nr_arg1);
	ATF_CHECK_EQ(18, nmr.nr_arg2);
	ATF_CHECK_EQ(2, nmr.nr_memsize);
	ATF_CHECK_STREQ("vale0:012345678", nmr.nr_name);
	ATF_CHECK_EQ(NETMAP_API, nmr.nr_version);
}

TEST(headers, "The length of a port's header is nr_arg1")
{
	struct nmreq nmr = request("vale0:x");

	nmr.nr_cmd = NETMAP_BDG_VNET_HDR;
	answer.hdr.nr_hdr_len = 17;
	ATF_REQUIRE_EQ(0, run_legacy(NULL, NIOCREGIF, &nmr));
	ATF_CHECK_EQ(NETMAP_REQ_PORT_HDR_SET, got.nr_reqtype);
	ATF_CHECK_EQ(7, body.hdr.nr_hdr_len);
	ATF_CHECK_EQ(7, nmr.nr_arg1);
	nmr.nr_cmd = NETMAP_VNET_HDR_GET;
	ATF_REQUIRE_EQ(0, run_legacy(NULL, NIOCREGIF, &nmr));
	ATF_CHECK_EQ(NETMAP_REQ_PORT_HDR_GET, got.nr_reqtype);
	ATF_CHECK_EQ(17, nmr.nr_arg1);
}

TEST(errors, "An old version, a request that there is not, one that fails, and \
a name without an end")
{
	struct nmreq nmr = request("vale0:x"), before;

	nmr.nr_version = NETMAP_API - 1;
	ATF_CHECK_EQ(-1, run_legacy(NULL, NIOCREGIF, &nmr));
	ATF_CHECK_EQ(EINVAL, errno);
	ATF_CHECK_EQ(NETMAP_API, nmr.nr_version);
	nmr.nr_cmd = NETMAP_BDG_ATTACH;
	ATF_CHECK_EQ(-1, run_legacy(NULL, NIOCREGIF, &nmr));
	ATF_CHECK_EQ(EOPNOTSUPP, errno);
	ATF_CHECK_EQ(0, calls);
	nmr.nr_cmd = 0;
	fail = EBUSY;
	before = nmr;
	ATF_CHECK_EQ(-1, run_legacy(NULL, NIOCREGIF, &nmr));
	ATF_CHECK_EQ(EBUSY, errno);
	ATF_CHECK_EQ(0, memcmp(&nmr, &before, sizeof(nmr)));
	/* A later version is as this one. */
	fail = 0;
	nmr.nr_version = NETMAP_API + 1;
	memset(nmr.nr_name, 'x', sizeof(nmr.nr_name));
	ATF_CHECK_EQ(0, run_legacy(NULL, NIOCREGIF, &nmr));
	ATF_CHECK_EQ(NETMAP_API, got.nr_version);
	ATF_CHECK_STREQ("xxxxxxxxxxxxxxx", got.nr_name);
}

TEST_PROGRAM
