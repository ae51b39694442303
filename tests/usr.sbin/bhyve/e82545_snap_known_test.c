/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The format of a snapshot: an adapter in a known state is saved as the bytes
 * below, and these bytes, which may come from another build, restore it.
 *
 * If they differ, the format has changed.  E82545_SNAPSHOT_VERSION must change,
 * too, and these bytes: the test prints them.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/mman.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "e82545_guest.h"
#include "e82545_known.h"
#include "e82545_regs.h"
#include "test.h"

#define	HEADER		20		/* bytes: magic, version, size, CRC */
#define	KNOWN_SIZE	3809

static const struct known_line known[] = {
	{ 0, "3832353435454d0001" },
	{ 12, "e10e0000b9c69b27014102" },
	{ 29, "8102000047010000100234569808020014" },
	{ 49, "21002414a803abb86cea000030d10000b89e000010" },
	{ 73, "8813" },
	{ 81, "ffff01" },
	{ 93, "70ee0000f8bb0040" },
	{ 109, "105f5e01d898" },
	{ 118, "8e870814002c0060730000e8400000101f" },
	{ 149, "30150000100f" },
	{ 169, "3005" },
	{ 174, "a803abc48ee12380750f00104300009810000020de000028" },
	{ 198, "2b2e016c92" },
	{ 206, "0c" },
	{ 211, "10" },
	{ 222, "b89e22c49e7c9b80850a00105300009820000020ee000028" },
	{ 246, "3b09db6ca20000308905cd0040" },
	{ 289, "20400000284000003040" },
	{ 313, "404000004840" },
	{ 373, "8240" },
	{ 385, "80" },
	{ 393, "a040" },
	{ 421, "bc40" },
	{ 433, "85" },
	{ 437, "05" },
	{ 441, "d040000002" },
	{ 449, "02" },
	{ 485, "fc40" },
	{ 494, "b2fac4" },
	{ 1001, "3c2d10bb0014ee3388e1a925" },
	{ 1065, "f81eef5dc4fa03804cc80380" },
	{ 1129, "bc0501800076e1a2" },
	{ 1641, "3cf1f698" },
	{ 1649, "8880" },
	{ 1657, "200ec4d8080001004044b39f" },
	{ 1677, "d8ace67480b0912d" },
	{ 1693, "cc642b98" },
	{ 1845, "18" },
	{ 2357, "08" },
	{ 2362, "1841f0" },
	{ 2869, "780e6cdc7c54" },
	{ 2905, "85" },
	{ 2909, "05" },
	{ 2913, "01000c291234560004ffff0000ffffffff" },
	{ 2934, "0b44011186800f1086800030ffffffffffffffffffffffff" },
	{ 2958, "ffffffffffffffffffffffffffffffffffffffffffffffff" },
	{ 2982, "ffffffff0000ffffffffffffffffffffffffffffffffffff" },
	{ 3006, "ffffffffffffffffffffffffffffffffffffffffffffffff" },
	{ 3030, "ffffffffffffffffffff67ac000104" },
	{ 3048, "07" },
	{ 3060, "01401100004979000041010000200c000021" },
	{ 3083, "cdab04" },
	{ 3089, "0120" },
	{ 3098, "03" },
	{ 3122, "30000068" },
	{ 3138, "040000600d" },
	{ 3158, "41" },
	{ 3177, "05" },
	{ 3189, "03010001000010" },
	{ 3201, "01" },
	{ 3205, "07" },
	{ 3209, "ffffffff0098200000ffffffff009810" },
	{ 3235, "01" },
	{ 3239, "01000020" },
	{ 3248, "08" },
	{ 3252, "ffffffff0e1821002232" },
	{ 3274, "230e1821002232000005" },
	{ 3287, "03003605000027" },
	{ 3299, "e803" },
	{ 3340, "0104" },
	{ 3349, "66" },
	{ 3357, "04" },
	{ 3389, "01" },
	{ 3485, "02" },
	{ 3605, "02" },
	{ 3613, "04" },
	{ 3621, "01" },
	{ 3629, "01" },
	{ 3645, "01" },
	{ 3677, "02" },
	{ 3681, "3c" },
	{ 3686, "0c2912345602" },
	{ 3696, "0188b5646b727980878e959ca3aab1b8bfc6cdd4dbe2e9f0" },
	{ 3720, "f7fe050c131a21282f363d444b525960676e757c838a9198" },
	{ 3744, "9f3c" },
	{ 3750, "0c2912345602" },
	{ 3760, "0188b5656c737a81888f969da4abb2b9c0c7ced5dce3eaf1" },
	{ 3784, "f8ff060d141b222930373e454c535a61686f767d848b9299" },
	{ 3808, "a0" },
};

#define	CSB_GPA		0x100000
#define	VNET_GPA	0x200000

/* Two frames wait in the loopback queue; there are contexts of both kinds. */
#define	FRAMES_FROM	2		/* seed of the first */

static void
known_frames(struct host *h)
{
	struct packet p = { .payload = (const uint8_t *)"known",
	    .paylen = 5 };

	host_up(h, 64, 8, 256);
	host_set(h, E82545_RCTL, E82545_RCTL_UPE | E82545_RCTL_LBM_MAC);
	tx_context(h, &p, 0, 0);
	tx_context(h, &p, 3, 0);
	ATF_REQUIRE_EQ(FRAMES_FROM, h->txtail);
	guest_frames(h, 2);
	host_tx_go(h);
	ATF_REQUIRE(!e82545_tx(h->dev));
}

/* The CSB is on, with headers of received frames. */
static void
known_csb(struct host *h)
{
	h->csb = host_mem(h, CSB_GPA, NET_PARAVIRT_CSB_SIZE);
	memset(h->csb, 0, NET_PARAVIRT_CSB_SIZE);
	CSB_SET(h, host_txcycles_lim, 3);
	CSB_SET(h, guest_tdt, h->txtail);
	CSB_SET(h, guest_rdt, h->rxtail);
	CSB_SET(h, vnet_ring_low, VNET_GPA);
	guest_place(h, CSB_GPA);
	CSB_SET(h, guest_csb_on, 1);
	host_wr(h, E82545_TDT, h->txtail);
	ATF_REQUIRE(e82545_tx(h->dev));
}

/*
 * Each register that stands alone has another value, and each array's first
 * and last element; the EEPROM is being written, the PHY's link is down, an
 * interrupt waits.
 */
static void
known_registers(struct host *h)
{
	uint32_t o;
	unsigned int i, j;

	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_TCTL, 0);
	FOREACH_REG(i, j, o) {
		if (j != 0 && j + 1 != regs[i].count)
			continue;
		if (regs[i].kind == REG_RW && o != E82545_RCTL &&
		    o != E82545_TCTL)
			host_wr(h, o, 0x9e3779b1 * o);
		else if (regs[i].kind == REG_RC)
			reg_count(h, o, o);
	}
	host_wr(h, E82545_PBA, 20);
	reg_count64(h, E82545_TOTL, 0x500000005);
	host_rd(h, E82545_TOTL);
	host_wr(h, E82545_EERD, 2 << 8 | E82545_EERD_START);
	for (i = 0; i < 5; i++) {
		o = E82545_EECD_REQ | E82545_EECD_CS |
		    (i != 1 ? E82545_EECD_DI : 0);
		host_wr(h, E82545_EECD, o);
		host_wr(h, E82545_EECD, o | E82545_EECD_SK);
	}
	reg_phy_wr(h, 29, 5);
	reg_phy_wr(h, 30, 0xabcd);
	reg_phy_wr(h, 4, 0x0021);
	e82545_link(h->dev, false);
	e82545_write(h->dev, E82545_BAR_IO, 0, 4, E82545_RAH(15));
	host_wr(h, E82545_ITR, 5000);
	host_wr(h, E82545_IMS, E82545_ICR_ALL);
	host_rd(h, E82545_ICR);
	host_advance(h, 1000);
	host_wr(h, E82545_ICS, E82545_ICR_RXDMT0);
}

static struct host *
known_state(void)
{
	struct host *h = host_create_csb(HOST_RAM);

	known_frames(h);
	known_csb(h);
	known_registers(h);
	e82545_pause(h->dev);
	return (h);
}

static uint8_t *
bytes_known(void)
{
	return (known_bytes(known, nitems(known), KNOWN_SIZE));
}

static void
check_known(struct host *h)
{
	known_check(h, known, nitems(known), KNOWN_SIZE);
}

HOST_TEST(saved, known_state(), "An adapter in a known state is saved as the "
    "known bytes")
{
	check_known(h);
}

HOST_TEST(restored, host_create_csb(HOST_RAM), "The known bytes restore an "
    "adapter to that state, and it goes on")
{
	uint8_t *bytes = bytes_known(), frame[60];
	unsigned int i;

	h->now_ns = 123456789;
	e82545_pause(h->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(h->dev, bytes, KNOWN_SIZE));
	free(bytes);
	check_known(h);
	e82545_resume(h->dev);
	ATF_CHECK_EQ((E82545_RAH(15) * 0x9e3779b1) & 0x8003ffff,
	    e82545_read(h->dev, E82545_BAR_IO, 4, 4));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TOTH));
	ATF_CHECK_EQ(E82545_ICR_RXDMT0,
	    host_rd(h, E82545_ICR) & E82545_ICR_RXDMT0);
	e82545_link(h->dev, true);
	host_up(h, 64, 8, 256);
	host_set(h, E82545_RCTL, E82545_RCTL_UPE | E82545_RCTL_LBM_MAC);
	host_run(h);
	for (i = 0; i < 2; i++) {
		host_make_frame(frame, sizeof(frame), host_mac,
		    FRAMES_FROM + i);
		check_taken(h, frame, sizeof(frame));
	}
	check_none(h);
}

HOST_TEST(short_header, known_state(), "Bytes that end within the header are "
    "not read beyond")
{
	const size_t page = getpagesize();
	uint8_t *bytes = bytes_known(), *map;

	map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	    MAP_ANON, -1, 0);
	ATF_REQUIRE(map != MAP_FAILED);
	ATF_REQUIRE_EQ(0, mprotect(map + page, page, PROT_NONE));
	memcpy(map + page - (HEADER - 1), bytes, HEADER - 1);
	ATF_CHECK_EQ(EINVAL, e82545_snapshot_restore(h->dev, map + page -
	    (HEADER - 1), HEADER - 1));
	munmap(map, 2 * page);
	free(bytes);
}

TEST_PROGRAM
