/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the 8254x drivers of small systems do to the adapter.  They use few of
 * its features, poll where others take interrupts, and rely on what the
 * hardware happens to do.  A case for each, as in e1000_drivers_test.c.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e1000_driver.h"
#include "e82545_regs.h"
#include "test.h"

/*
 * HelenOS's e1k.  Does not reset the adapter when it starts, writes RAH with AV
 * before RAL, turns the rings on before the link.  Keeps the FCS and removes it
 * itself.  Reads RDT to find the next frame, TDT and the descriptor's length or
 * DD to find a free one.  Means to disable interrupts by IMS = 0, which changes
 * nothing; the handler masks all by IMC.
 */
static void
helenos_address(struct host *h, unsigned int i, const uint8_t mac[6],
    uint32_t av)
{
	host_wr(h, E82545_RAH(i), le16dec(mac + 4) | av);
	host_wr(h, E82545_RAL(i), le32dec(mac));
}

static uint32_t
helenos_receive(struct host *h, unsigned int n, size_t len)
{
	uint32_t i;

	i = (host_rd(h, E82545_RDT) + 1) % h->nrxd;
	check_rx(h, i, n, len, E82545_ETH_FCS);
	host_wr(h, E82545_RDT, (host_rd(h, E82545_RDT) + 1) % h->nrxd);
	return (i);
}

TEST(helenos, "RAH before RAL, no reset, rings before the link, IMS = 0")
{
	static const uint8_t other[6] = { 0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee };
	struct host *h = adapter(128, 128, 2048);
	unsigned int i;

	host_wr(h, E82545_ITR, 250 * 4);
	host_wr(h, E82545_FCAH, 0);
	host_wr(h, E82545_FCAL, 0);
	host_wr(h, E82545_FCT, 0);
	host_wr(h, E82545_FCTTV, 0);
	host_wr(h, E82545_VET, 0x8100);
	host_wr(h, E82545_CTRL, E82545_CTRL_ASDE);
	host_wr(h, E82545_TDBAH, 0);
	host_wr(h, E82545_TDBAL, h->txring);
	host_wr(h, E82545_TDLEN, 128 * 16);
	host_wr(h, E82545_TDH, 0);
	host_wr(h, E82545_TDT, 0);
	host_wr(h, E82545_TIPG, 10 | 8 << 10 | 6 << 20);
	host_wr(h, E82545_TCTL, E82545_TCTL_CT(15) | E82545_TCTL_COLD(64) |
	    E82545_TCTL_PSP);
	check_eerd(h);
	helenos_address(h, 0, host_mac, E82545_RAH_AV);
	host_wr(h, E82545_RDBAH, 0);
	host_wr(h, E82545_RDBAL, h->rxring);
	host_wr(h, E82545_RDLEN, 128 * 16);
	host_wr(h, E82545_RDH, 0);
	host_wr(h, E82545_RDT, 127);
	host_wr(h, E82545_RCTL, E82545_RCTL_BAM);
	check_address(h);

	host_wr(h, E82545_IMS, E82545_ICR_RXT0);
	host_set(h, E82545_RCTL, E82545_RCTL_EN);
	host_set(h, E82545_TCTL, E82545_TCTL_EN);
	ATF_CHECK(!has_link(h));
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK(has_link(h));
	ATF_CHECK(!host_line(h));

	for (i = 0; i < 130; i++) {
		ATF_CHECK_EQ(i % 128, host_rd(h, E82545_TDT));
		ATF_CHECK(host_txd(h, i % 128)->legacy.length == 0 ||
		    host_tx_done(h, i % 128));
		send_one(h, i % 128, 64, 0);
		arrive(h, i, 64);
		ATF_CHECK(host_line(h));
		ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
		host_wr(h, E82545_IMC, ALL);
		ATF_CHECK_EQ(i % 128, helenos_receive(h, i, 64));
		host_wr(h, E82545_IMS, E82545_ICR_RXT0);
		ATF_CHECK(!host_line(h));
		host_advance(h, 250 * 4 * 256);
	}

	/* A new address: the old one is not received any more. */
	helenos_address(h, 0, other, host_rd(h, E82545_RAH(0)) &
	    E82545_RAH_AV);
	arrive(h, 0, 64);
	ATF_CHECK(!host_line(h));
	arrive_at(h, other, 0, 64);
	ATF_CHECK(host_line(h));
	check_rx_at(h, 2, other, 0, 64, E82545_ETH_FCS);
	host_wr(h, E82545_RDT, 2);
	host_rd(h, E82545_ICR);
	/* A second address, and none. */
	helenos_address(h, 1, host_mac, E82545_RAH_AV);
	host_clear(h, E82545_RAH(0), E82545_RAH_AV);
	arrive_at(h, other, 0, 64);
	host_wr(h, E82545_IMS, 0);
	host_advance(h, 250 * 4 * 256);
	ATF_CHECK(!host_line(h));
	arrive(h, 0, 64);
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(3, helenos_receive(h, 0, 64));
	host_destroy(h);
}

/*
 * Minix's e1000.  Writes 32 bits to each of 128 bytes for the multicast table
 * (it means words), and zeros to the statistics.  Has no BAM: broadcasts pass
 * as multicasts, by MPE.  Sends a packet as one descriptor for each part, with
 * commands in the last only.  Reads TDH and TDT, RDH and RDT for each packet,
 * and looks for EOP, not DD.
 */
TEST(minix, "Unaligned writes, statistics written, MPE without BAM, TDH, TDT, "
    "RDH, RDT read")
{
	struct host *h = adapter(256, 256, 2048);
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
	place_rx(h);
	host_wr(h, E82545_RDT, 255);
	host_clear(h, E82545_RCTL, E82545_RCTL_BSIZE_256);
	host_set(h, E82545_RCTL, E82545_RCTL_EN);
	place_tx(h);
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
	host_destroy(h);
}

/*
 * Redox's e1000d.  Reads each register after it has written it.  Turns the
 * receiver on before it selects the size of its buffers, one bit at a time.
 * Wants RXSEQ, but neither TXDW nor LSC: it polls DD, and waits for the link at
 * the start only.  It fills all 16 descriptors of a ring that is empty when
 * TDT and TDH are the same; no harm is done while the adapter takes the first
 * before the last is posted.
 */
static void
redox_wr(struct host *h, uint32_t off, uint32_t value)
{
	host_wr(h, off, value);
	host_rd(h, off);
}

static void
redox_flag(struct host *h, uint32_t off, uint32_t bits, bool on)
{
	redox_wr(h, off, on ? host_rd(h, off) | bits :
	    host_rd(h, off) & ~bits);
}

TEST(redox, "Registers read after writing, RCTL.EN first, SECRC, RXSEQ, "
    "buffers of 16 KB")
{
	struct host *h = adapter(16, 16, 16384);
	unsigned int i;

	redox_flag(h, E82545_CTRL, E82545_CTRL_RST, true);
	ATF_CHECK_EQ(0, host_rd(h, E82545_CTRL) & E82545_CTRL_RST);
	redox_flag(h, E82545_CTRL, E82545_CTRL_ASDE | E82545_CTRL_SLU, true);
	redox_flag(h, E82545_CTRL, E82545_CTRL_LRST | E82545_CTRL_PHY_RST |
	    E82545_CTRL_ILOS, false);
	redox_wr(h, E82545_FCAH, 0);
	redox_wr(h, E82545_FCAL, 0);
	redox_wr(h, E82545_FCT, 0);
	redox_wr(h, E82545_FCTTV, 0);
	redox_flag(h, E82545_CTRL, E82545_CTRL_VME, false);
	check_address(h);
	redox_wr(h, E82545_RDBAH, 0);
	redox_wr(h, E82545_RDBAL, h->rxring);
	redox_wr(h, E82545_RDLEN, 16 * 16);
	redox_wr(h, E82545_RDH, 0);
	redox_wr(h, E82545_RDT, 15);
	redox_wr(h, E82545_TDBAH, 0);
	redox_wr(h, E82545_TDBAL, h->txring);
	redox_wr(h, E82545_TDLEN, 16 * 16);
	redox_wr(h, E82545_TDH, 0);
	redox_wr(h, E82545_TDT, 0);
	redox_wr(h, E82545_IMS, E82545_ICR_RXT0 | E82545_ICR_RXO |
	    E82545_ICR_RXDMT0 | E82545_ICR_RXSEQ);
	redox_flag(h, E82545_RCTL, E82545_RCTL_EN, true);
	/* A frame comes before the size is set: with FCS, into 2 KB. */
	arrive(h, 0, 1000);
	check_rx(h, 0, 0, 1000, E82545_ETH_FCS);
	redox_flag(h, E82545_RCTL, E82545_RCTL_UPE, true);
	redox_flag(h, E82545_RCTL, E82545_RCTL_LPE, true);
	redox_flag(h, E82545_RCTL, E82545_RCTL_LBM, false);
	redox_flag(h, E82545_RCTL, E82545_RCTL_BAM, true);
	redox_flag(h, E82545_RCTL, 1 << 16, true);
	redox_flag(h, E82545_RCTL, 1 << 17, false);
	redox_flag(h, E82545_RCTL, E82545_RCTL_BSEX, true);
	redox_flag(h, E82545_RCTL, E82545_RCTL_SECRC, true);
	redox_flag(h, E82545_TCTL, E82545_TCTL_EN, true);
	redox_flag(h, E82545_TCTL, E82545_TCTL_PSP, true);
	ATF_CHECK(has_link(h));
	ATF_CHECK_EQ(E82545_STATUS_SPEED_1000,
	    host_rd(h, E82545_STATUS) & E82545_STATUS_SPEED);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
	redox_wr(h, E82545_RDT, 0);

	for (i = 1; i < 40; i++) {
		arrive(h, i, i % 2 != 0 ? 16000 : 60);
		ATF_CHECK(host_line(h));
		ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & E82545_ICR_RXSEQ);
		check_rx(h, i % 16, i, i % 2 != 0 ? 16000 : 60, 0);
		redox_wr(h, E82545_RDT, i % 16);
	}
	/* 16 in a row, then again; no interrupt. */
	for (i = 0; i < 32; i++) {
		send_one(h, i % 16, i % 2 != 0 ? 9000 : 20, 0);
		ATF_CHECK(!host_line(h));
	}
	/* All causes at once would do nothing but wake it. */
	redox_wr(h, E82545_ICS, E82545_ICR_RXSEQ);
	ATF_CHECK(host_line(h));
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXSEQ) != 0);
	host_destroy(h);
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
	place_rx(h);
	host_wr(h, E82545_RDT, 511);
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_SBP |
	    E82545_RCTL_MPE | E82545_RCTL_BAM | host_rctl_bsize(4096) |
	    E82545_RCTL_SECRC);
	place_tx(h);
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

/*
 * SerenityOS's e1000.  Does not reset the adapter.  Sets CTRL.SLU again at each
 * LSC, which must not cause another.  Writes all ones to ICR at the end of its
 * handler, which clears what came meanwhile.  It sleeps until DD is set, but
 * enables no transmit cause: a completion that the adapter writes after the
 * driver's only look goes unnoticed until the next frame comes.  Reads TDT and
 * RDT to know where it is; stores bad packets, and has none.
 */
TEST(serenityos, "SLU at each LSC, ICR all ones, no TXDW, no reset, SBP")
{
	struct host *h = adapter(256, 256, 8192);
	unsigned int i, raised;
	uint32_t n;

	ATF_CHECK((host_rd(h, E82545_EECD) & E82545_EECD_PRES) != 0);
	check_eerd(h);
	check_address(h);
	place_rx(h);
	host_wr(h, E82545_RDT, 255);
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_SBP |
	    E82545_RCTL_UPE | E82545_RCTL_MPE | E82545_RCTL_BAM |
	    host_rctl_bsize(8192) | E82545_RCTL_SECRC);
	place_tx(h);
	host_set(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	host_wr(h, E82545_TIPG, 0x0060200a);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	host_wr(h, E82545_ITR, 6000);
	host_wr(h, E82545_IMS, E82545_ICR_LSC | E82545_ICR_RXT0 |
	    E82545_ICR_RXO);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(has_link(h));

	/* The cable is pulled and plugged in; each is one interrupt. */
	for (i = 0; i < 4; i++) {
		host_advance(h, 6000 * 256);
		raised = host_raised(h);
		e82545_link(h->dev, i % 2 != 0);
		ATF_CHECK_EQ(raised + 1, host_raised(h));
		ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
		host_set(h, E82545_CTRL, E82545_CTRL_SLU);
		ATF_CHECK_EQ(i % 2 != 0, has_link(h));
		ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
		host_wr(h, E82545_ICR, ALL);
		host_advance(h, 6000 * 256);
		ATF_CHECK_EQ(raised + 1, host_raised(h));
	}

	raised = host_raised(h);
	for (i = 0; i < 300; i++) {
		n = host_rd(h, E82545_TDT) % 256;
		ATF_CHECK_EQ(i % 256, n);
		send_one(h, n, 20 + i, 0);
	}
	host_advance(h, 6000 * 256);
	ATF_CHECK_EQ(raised, host_raised(h));

	for (i = 0; i < 300; i++) {
		arrive(h, i, 1514);
		host_advance(h, 6000 * 256);
		ATF_CHECK(host_line(h));
		ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
		n = (host_rd(h, E82545_RDT) + 1) % 256;
		check_rx(h, n, i, 1514, 0);
		host_wr(h, E82545_RDT, n);
		host_wr(h, E82545_ICR, ALL);
		ATF_CHECK(!host_line(h));
	}
	ATF_CHECK_EQ(300, host_raised(h) - raised);
	host_destroy(h);
}

/*
 * U-Boot's e1000.  Reads the EEPROM by EECD, and takes two semaphores of later
 * adapters before: if SWSM does not keep SWESMBI, or SW_FW_SYNC does not read as
 * 0, it finds no address.  Reads registers of the i210, beyond all others; they
 * must read as 0.  Gives the adapter one receive descriptor at a time, and all
 * of them the same buffer: more frames wait.  Polls DD.
 */
#define	UBOOT_SW_FW_SYNC	0x05b5c
#define	UBOOT_I210_EECD		0x12010

static void
uboot_eeprom(struct host *h)
{
	host_set(h, E82545_SWSM, E82545_SWSM_SWESMBI);
	ATF_REQUIRE((host_rd(h, E82545_SWSM) & E82545_SWSM_SWESMBI) != 0);
	ATF_REQUIRE_EQ(0, host_rd(h, UBOOT_SW_FW_SYNC));
	host_wr(h, UBOOT_SW_FW_SYNC, 1);
	host_clear(h, E82545_SWSM, E82545_SWSM_SWESMBI);
	ATF_REQUIRE_EQ(0, host_rd(h, E82545_SWSM));
	check_microwire(h, false);
	host_set(h, E82545_SWSM, E82545_SWSM_SWESMBI);
	host_clear(h, UBOOT_SW_FW_SYNC, 1);
	host_clear(h, E82545_SWSM, E82545_SWSM_SWESMBI);
}

static void
uboot_post(struct host *h, uint32_t i)
{
	memset(host_rxd(h, i), 0, sizeof(struct e82545_rxd));
	host_rxd(h, i)->addr = h->rxbuf;
	host_wr(h, E82545_RDT, (i + 1) % h->nrxd);
	host_run(h);
}

TEST(uboot, "SWSM keeps what is written; one receive descriptor at a time")
{
	struct host *h = adapter(8, 8, 4096);
	unsigned int i;

	host_wr(h, E82545_IMC, ALL);
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_TCTL, E82545_TCTL_PSP);
	host_set(h, E82545_SWSM, E82545_SWSM_SWESMBI);
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ_MSG(0, host_rd(h, E82545_SWSM), "held after a reset");
	host_wr(h, E82545_MANC, host_rd(h, E82545_MANC) & ~0x2000);
	host_wr(h, E82545_IMC, ALL);
	host_rd(h, E82545_ICR);
	host_wr(h, E82545_PBA, 48);
	uboot_eeprom(h);
	ATF_CHECK_EQ(0, host_rd(h, UBOOT_I210_EECD));

	host_wr(h, E82545_WUC, 0);
	host_wr(h, E82545_VET, 0);
	for (i = 1; i < E82545_RA_COUNT; i++) {
		host_wr(h, E82545_RAL(i), 0);
		host_wr(h, E82545_RAH(i), 0);
	}
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK(has_link(h));
	host_set(h, E82545_TXDCTL, 0x01010000);
	place_tx(h);
	host_wr(h, E82545_TIPG, E82545_TIPG_COPPER);
	host_wr(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP |
	    E82545_TCTL_CT(15) | E82545_TCTL_COLD(64));
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_wr(h, E82545_ITR, 488);
	place_rx(h);
	host_wr(h, E82545_RDT, 0);
	host_set(h, E82545_RCTL, E82545_RCTL_EN);
	uboot_post(h, 0);

	for (i = 0; i < 20; i++)
		send_one(h, i % 8, 20 + 50 * i, 0);
	/* Two frames arrive at once: the second when there is a descriptor. */
	for (i = 0; i < 20; i += 2) {
		arrive(h, i, 1514);
		arrive(h, i + 1, 60);
		check_rx(h, i % 8, i, 1514, E82545_ETH_FCS);
		ATF_CHECK_EQ(1, host_rx_pending(h));
		uboot_post(h, (i + 1) % 8);
		check_rx(h, (i + 1) % 8, i + 1, 60, E82545_ETH_FCS);
		ATF_CHECK_EQ(0, host_rx_pending(h));
		uboot_post(h, (i + 2) % 8);
	}
	ATF_CHECK_EQ(0, host_raised(h));
	host_destroy(h);
}

TEST_PROGRAM
