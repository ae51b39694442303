/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the 8254x drivers of other systems do to the adapter, and Linux's and
 * FreeBSD's do not, and neither those that guests run here (tests/guest: iPXE,
 * U-Boot, EDK2, DPDK).  Each case has the name of a driver, and repeats its
 * register accesses in its order: it finds the address and the link, sends and
 * receives, and handles interrupts.  The comment before it tells what is
 * peculiar, and what the adapter must make of it.  The drivers are of small
 * systems: they poll where others take interrupts, and rely on what the hardware
 * happens to do.
 *
 * A case has the driver's own ring sizes and buffers.  Delays, and loops that
 * wait for a bit that the adapter sets at once, are left out.
 */

#include <sys/param.h>
#include <sys/endian.h>


#include "e1000_driver.h"
#include "e82545_check.h"
#include "e82545_regs.h"

/*
 * Minix's e1000.  Writes 32 bits to each of 128 bytes for the multicast table
 * (it means words), and zeros to the statistics.  Has no BAM: broadcasts pass
 * as multicasts, by MPE.  Sends a packet as one descriptor for each part, with
 * commands in the last only.  Reads TDH and TDT, RDH and RDT for each packet,
 * and looks for EOP, not DD.
 */
HOST_TEST(minix, adapter(256, 256, 2048), "Unaligned writes, statistics "
    "written, MPE without BAM, TDH, TDT, RDH, RDT read")
{
	unsigned int i;
	uint32_t n;

	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	host_set(h, E82545_CTRL, E82545_CTRL_ASDE | E82545_CTRL_SLU);
	host_clear(h, E82545_CTRL, E82545_CTRL_LRST);
	host_clear(h, E82545_CTRL, E82545_CTRL_PHY_RST);
	host_clear(h, E82545_CTRL, E82545_CTRL_ILOS);
	host_wr(h, E82545_FCAL, 0);
	host_wr(h, E82545_FCAH, 0);
	host_wr(h, E82545_FCT, 0);
	host_wr(h, E82545_FCTTV, 0);
	host_clear(h, E82545_CTRL, E82545_CTRL_VME);
	host_wr(h, E82545_MTA + 4, ALL);
	host_wr(h, E82545_MTA + 128, ALL);
	for (i = 0; i < 128; i++)
		host_wr(h, E82545_MTA + i, 0);
	ATF_CHECK_EQ(0, host_rd(h, E82545_MTA + 4));
	/* The offset counts bytes: the last write reaches three of these. */
	ATF_CHECK_EQ(0xff000000, host_rd(h, E82545_MTA + 128));
	host_wr(h, E82545_MTA + 128, 0);
	for (i = 0; i < 64; i++)
		host_wr(h, E82545_STAT_FIRST + 4 * i, 0);
	check_eerd(h);
	host_wr(h, E82545_RAL(0), le32dec(host_mac));
	host_wr(h, E82545_RAH(0), le16dec(host_mac + 4));
	host_set(h, E82545_RAH(0), E82545_RAH_AV);
	check_address(h);
	host_set(h, E82545_RCTL, E82545_RCTL_MPE);
	host_place_rx(h);
	host_wr(h, E82545_RDT, 255);
	host_clear(h, E82545_RCTL, E82545_RCTL_BSIZE_256);
	host_set(h, E82545_RCTL, E82545_RCTL_EN);
	host_place_tx(h);
	host_set(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	host_set(h, E82545_IMS, E82545_ICR_LSC | E82545_ICR_RXO |
	    E82545_ICR_RXT0 | E82545_ICR_TXQE | E82545_ICR_TXDW);
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(has_link(h));

	/* 90 bytes in three parts. */
	for (i = 0; i < 200; i++) {
		n = host_rd(h, E82545_TDT);
		ATF_CHECK_EQ(n, host_rd(h, E82545_TDH));
		fill_tx(h, n, 90, 30);
		host_txd(h, n)->lower = 30;
		*host_txd(h, (n + 1) % 256) = *host_txd(h, n);
		host_txd(h, (n + 1) % 256)->addr += 30;
		*host_txd(h, (n + 2) % 256) = *host_txd(h, n);
		host_txd(h, (n + 2) % 256)->addr += 60;
		host_txd(h, (n + 2) % 256)->lower |= TXD_LAST;
		host_wr(h, E82545_TDT, (n + 3) % 256);
		check_tx(h, n, 90);
		ATF_CHECK(host_line(h));
		ATF_CHECK_EQ(E82545_ICR_TXDW | E82545_ICR_TXQE,
		    host_rd(h, E82545_ICR) & ~E82545_ICR_TXD_LOW);
		ATF_CHECK(!host_tx_done(h, n));
		ATF_CHECK(host_tx_done(h, (n + 2) % 256));
	}
	for (i = 0; i < 300; i++) {
		arrive_at(h, BROADCAST, i, 60 + i);
		ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR) &
		    (E82545_ICR_RXT0 | E82545_ICR_RXO));
		ATF_CHECK_EQ((i + 1) % 256, host_rd(h, E82545_RDH));
		n = host_rd(h, E82545_RDT);
		ATF_CHECK((host_rxd(h, (n + 1) % 256)->status &
		    E82545_RXD_PIF) != 0);
		check_rx_at(h, (n + 1) % 256, BROADCAST, i, 60 + i,
		    E82545_ETH_FCS);
		host_wr(h, E82545_RDT, (n + 1) % 256);
	}
	/* The multicast table is not needed for any of these. */
	ATF_CHECK_EQ(300, host_rd(h, E82545_TPR));
	ATF_CHECK_EQ(200, host_rd(h, E82545_TPT));
	ATF_CHECK_EQ(0, host_rd(h, E82545_TPT));
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
}

/*
 * ToaruOS's e1000.  Writes to ICR what it has just read from it, and all ones
 * when it turns interrupts off: causes that came in between are cleared with
 * the others, and it relies on polling RDH.  Sets RPS, and SRPD and a cause of
 * later adapters.  RDT is the descriptor that it looks at next, and stays
 * behind RDH by at least one.
 */
TEST(toaruos, "ICR written, RPS, RDT one ahead, SRPD")
{
	static const uint32_t causes = E82545_ICR_LSC | E82545_ICR_RXO |
	    E82545_ICR_RXT0 | E82545_ICR_TXQE | E82545_ICR_TXDW | 1 << 17 |
	    E82545_ICR_RXDMT0 | E82545_ICR_SRPD;
	struct host *h = adapter(512, 512, 4096);
	uint32_t icr, n;
	unsigned int i, next;

	check_eerd(h);
	host_wr(h, E82545_RAL(0), le32dec(host_mac));
	host_wr(h, E82545_RAH(0), le16dec(host_mac + 4) | E82545_RAH_AV);
	host_wr(h, E82545_ICS, ALL);
	host_wr(h, E82545_IMC, ALL);
	host_wr(h, E82545_ICR, ALL);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_TCTL, E82545_TCTL_PSP);
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	host_wr(h, E82545_IMC, ALL);
	host_wr(h, E82545_ICR, ALL);
	check_address(h);
	host_wr(h, E82545_FCAL, 0x002c8001);
	host_wr(h, E82545_FCAH, 0x0100);
	host_wr(h, E82545_FCT, 0x8808);
	host_wr(h, E82545_FCTTV, 0xffff);
	host_wr(h, E82545_CTRL, (host_rd(h, E82545_CTRL) | E82545_CTRL_SLU |
	    E82545_CTRL_SPEED_1000) & ~(E82545_CTRL_LRST |
	    E82545_CTRL_PHY_RST));
	for (i = 0; i < 128; i++)
		host_wr(h, E82545_MTA + 4 * i, 0);
	for (i = 0; i < 64; i++)
		ATF_CHECK_EQ(0, host_rd(h, E82545_STAT_FIRST + 4 * i));
	host_place_rx(h);
	host_wr(h, E82545_RDT, 511);
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_SBP |
	    E82545_RCTL_MPE | E82545_RCTL_BAM | host_rctl_bsize(4096) |
	    E82545_RCTL_SECRC);
	host_place_tx(h);
	host_wr(h, E82545_TCTL, host_rd(h, E82545_TCTL) | E82545_TCTL_CT(15) |
	    E82545_TCTL_EN | E82545_TCTL_PSP | 1 << 24);
	host_wr(h, E82545_RDTR, 0);
	host_wr(h, E82545_ITR, 500);
	ATF_CHECK(has_link(h));
	host_wr(h, E82545_IMS, causes);
	ATF_CHECK(host_line(h));
	icr = host_rd(h, E82545_ICR);
	ATF_CHECK_EQ(E82545_ICR_LSC, icr);
	host_wr(h, E82545_ICR, icr);

	for (i = 0; i < 600; i++) {
		n = host_rd(h, E82545_TDT);
		ATF_CHECK_EQ(i % 512, n);
		send_one(h, n, 60, E82545_TXD_RPS);
		ATF_CHECK_EQ(host_rd(h, E82545_TDT), host_rd(h, E82545_TDH));
	}
	host_wr(h, E82545_ICR, host_rd(h, E82545_ICR));
	host_advance(h, 500 * 256);
	ATF_CHECK(!host_line(h));

	/* Three frames: one that came between read and write of ICR. */
	next = 0;
	for (i = 0; i < 600; i += 3) {
		arrive(h, i, 60);
		arrive(h, i + 1, 60);
		ATF_CHECK(host_line(h));
		icr = host_rd(h, E82545_ICR);
		ATF_CHECK((icr & E82545_ICR_RXT0) != 0);
		arrive(h, i + 2, 1514);
		host_wr(h, E82545_ICR, icr);
		host_advance(h, 500 * 256);
		ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & E82545_ICR_RXT0);
		for (;;) {
			check_rx(h, next % 512, next, next % 3 == 2 ? 1514 :
			    60, 0);
			next++;
			if (next % 512 == host_rd(h, E82545_RDH))
				break;
			host_wr(h, E82545_RDT, next % 512);
		}
		ATF_CHECK_EQ(i + 3, next);
	}
	host_destroy(h);
}

TEST_PROGRAM
