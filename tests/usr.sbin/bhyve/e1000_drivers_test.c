/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the 8254x drivers of other systems do to the adapter, and Linux's and
 * FreeBSD's do not: those with as many features as these two.
 * e1000_small_drivers_test.c has drivers of small systems.  Each case has the
 * name of a driver, and repeats its register accesses in its order: it finds
 * the address and the link, sends and receives, and handles interrupts.  The
 * comment before it tells what is peculiar, and what the adapter must make of
 * it.
 *
 * A case has the driver's own ring sizes and buffers.  Delays, and loops that
 * wait for a bit that the adapter sets at once, are left out.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e1000_driver.h"
#include "e82545_regs.h"
#include "test.h"

#define	US		1000		/* ns */

/* A register of the PHY at an address; -1 if none answers. */
static int
mdic(struct host *h, unsigned int phy, unsigned int reg)
{
	uint32_t v;

	host_wr(h, E82545_MDIC, E82545_MDIC_OP_READ | phy << 21 | reg << 16);
	v = host_rd(h, E82545_MDIC);
	ATF_CHECK((v & E82545_MDIC_READY) != 0);
	return ((v & E82545_MDIC_ERROR) != 0 ? -1 :
	    (int)(v & E82545_MDIC_DATA));
}

/* Both BSDs' and Plan 9's MII code look for a PHY at all 32 addresses. */
static void
check_mii(struct host *h)
{
	unsigned int i;

	for (i = 0; i < 32; i++)
		ATF_CHECK_EQ(i == 1, mdic(h, i, 1) != -1);
	ATF_CHECK_EQ(0x0141, mdic(h, 1, 2));
	/* The first read may still tell of the time without link. */
	mdic(h, 1, 1);
	ATF_CHECK_EQ(0x24, mdic(h, 1, 1) & 0x24);
	/* The partner offers no pause, so no driver turns flow control on. */
	ATF_CHECK_EQ(0, mdic(h, 1, 5) & 0x0c00);
}

/*
 * iPXE.  Polls ICR with all causes masked, and looks at a ring only if its bit
 * was set.  RXDCTL and TXDCTL get bit 25, which turns a queue on in later
 * adapters: here it is reserved, and the lowest bit of LWTHRESH.  Posts 8 of 16
 * receive descriptors.  Resets once more, with the PHY, if the first reset left
 * no link.
 */
#define	IPXE_ENABLE	0x02000000

static void
ipxe_reset(struct host *h)
{
	uint32_t ctrl;

	ctrl = host_rd(h, E82545_CTRL);
	host_wr(h, E82545_CTRL, ctrl | E82545_CTRL_RST);
	ctrl |= E82545_CTRL_ASDE | E82545_CTRL_SLU;
	ctrl &= ~(E82545_CTRL_LRST | E82545_CTRL_FRCSPD | E82545_CTRL_FRCDPX);
	host_wr(h, E82545_CTRL, ctrl);
	if (has_link(h))
		return;
	host_wr(h, E82545_CTRL, ctrl | E82545_CTRL_RST | E82545_CTRL_PHY_RST);
	host_wr(h, E82545_CTRL, ctrl);
}

static void
ipxe_ring(struct host *h, uint32_t reg, uint64_t ring, uint32_t len,
    uint32_t dctl)
{
	host_wr(h, reg, ring);
	host_wr(h, reg + E82545_RING_BAH, ring >> 32);
	host_wr(h, reg + E82545_RING_LEN, len);
	host_wr(h, reg + E82545_RING_HEAD, 0);
	host_wr(h, reg + E82545_RING_TAIL, 0);
	host_set(h, dctl, IPXE_ENABLE);
}

static void
ipxe_open(struct host *h)
{
	ipxe_ring(h, E82545_TDBAL, h->txring, 16 * 16, E82545_TXDCTL);
	ipxe_ring(h, E82545_RDBAL, h->rxring, 16 * 16, E82545_RXDCTL);
	host_wr(h, E82545_RAL(0), le32dec(host_mac));
	host_wr(h, E82545_RAH(0), le16dec(host_mac + 4) | E82545_RAH_AV);
	host_set(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP |
	    E82545_TCTL_CT(15) | E82545_TCTL_COLD(64));
	host_set(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_UPE |
	    E82545_RCTL_MPE | E82545_RCTL_BAM | E82545_RCTL_SECRC);
	host_wr(h, E82545_RDT, 8);
}

static void
ipxe_close_ring(struct host *h, uint32_t reg, uint32_t dctl)
{
	host_wr(h, dctl, 0);
	ATF_CHECK_EQ(0, host_rd(h, dctl) & IPXE_ENABLE);
	host_wr(h, reg + E82545_RING_LEN, 0);
	host_wr(h, reg + E82545_RING_BAH, 0);
	host_wr(h, reg, 0);
	host_wr(h, reg + E82545_RING_HEAD, 0);
	host_wr(h, reg + E82545_RING_TAIL, 0);
}

TEST(ipxe, "Polled through ICR; queue-enable bits; 8 of 16 descriptors; "
    "RST with PHY_RST")
{
	struct host *h = adapter(16, 16, 2048);
	unsigned int i, round;

	/* Without a cable the second reset changes nothing. */
	e82545_link(h->dev, false);
	host_wr(h, E82545_RAL(0), 0);
	ipxe_reset(h);
	ATF_CHECK(!has_link(h));
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_RESET));
	check_address(h);
	check_eerd(h);
	e82545_link(h->dev, true);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(has_link(h));

	for (round = 0; round < 2; round++) {
		ipxe_open(h);
		ATF_CHECK(has_link(h));
		host_rd(h, E82545_ICR);
		send_one(h, 0, 342, 0);
		ATF_CHECK_EQ(E82545_ICR_TXDW | E82545_ICR_TXQE,
		    host_rd(h, E82545_ICR));
		send_one(h, 1, 42, 0);
		host_rd(h, E82545_ICR);

		/* Two more than are posted. */
		for (i = 0; i < 10; i++)
			arrive(h, i, 590);
		ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
		for (i = 0; i < 8; i++)
			check_rx(h, i, i, 590, 0);
		ATF_CHECK(!host_rx_done(h, 8));
		host_wr(h, E82545_RDT, 0);
		host_run(h);
		ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
		check_rx(h, 8, 8, 590, 0);
		check_rx(h, 9, 9, 590, 0);
		ATF_CHECK(!host_line(h));

		host_wr(h, E82545_RCTL, 0);
		host_wr(h, E82545_TCTL, 0);
		ipxe_close_ring(h, E82545_RDBAL, E82545_RXDCTL);
		ipxe_close_ring(h, E82545_TDBAL, E82545_TXDCTL);
		arrive(h, 0, 590);
		ATF_CHECK_EQ(0, host_rx_pending(h));
		ipxe_reset(h);
		ATF_CHECK_EQ(3 + round, host_counter(h, E82545_C_RESET));
	}

	/* LWTHRESH 1: TXD_LOW when more than 8 pending become 8 or fewer. */
	ipxe_open(h);
	host_rd(h, E82545_ICR);
	for (i = 0; i < 9; i++)
		fill_tx(h, i, 60, TXD_LAST);
	host_wr(h, E82545_TDT, 9);
	host_run(h);
	ATF_CHECK_EQ(E82545_ICR_TXDW | E82545_ICR_TXQE | E82545_ICR_TXD_LOW,
	    host_rd(h, E82545_ICR));
	host_destroy(h);
}

/*
 * DPDK's em.  Sets TDT before TDH, and the thresholds of TXDCTL, but none for
 * write-back.  Asks for status (RS) in each 32nd descriptor only, and fills the
 * ring with descriptors that have DD set: the adapter must set DD where RS is,
 * and nowhere else.  ITR is at its maximum, interrupts tell of the link only.
 * Keeps the FCS on request: a last buffer can hold nothing else.
 */
static void
dpdk_start(struct host *h, uint32_t rctl)
{
	host_wr(h, E82545_TDLEN, h->ntxd * sizeof(union e82545_txd));
	host_wr(h, E82545_TDBAH, 0);
	host_wr(h, E82545_TDBAL, h->txring);
	host_wr(h, E82545_TDT, 0);
	host_wr(h, E82545_TDH, 0);
	host_wr(h, E82545_TXDCTL, (host_rd(h, E82545_TXDCTL) & 0x00400000) |
	    0x01000000);
	host_wr(h, E82545_TCTL, (host_rd(h, E82545_TCTL) & ~0x00000ff0) |
	    E82545_TCTL_EN | E82545_TCTL_PSP | E82545_TCTL_CT(15) |
	    0x01000000);

	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	/* RFCTL, which this adapter does not have. */
	host_wr(h, 0x05008, host_rd(h, 0x05008) & ~0x00008000);
	host_wr(h, E82545_RDLEN, h->nrxd * sizeof(struct e82545_rxd));
	host_wr(h, E82545_RDBAH, 0);
	host_wr(h, E82545_RDBAL, h->rxring);
	host_wr(h, E82545_RDH, 0);
	host_wr(h, E82545_RDT, h->nrxd - 1);
	host_wr(h, E82545_RXDCTL,
	    (host_rd(h, E82545_RXDCTL) & 0xfe000000) | 0x01000000);
	host_wr(h, E82545_RXCSUM, host_rd(h, E82545_RXCSUM) &
	    ~E82545_RXCSUM_IPOFL);
	host_wr(h, E82545_RCTL, rctl | E82545_RCTL_EN | E82545_RCTL_BAM);
	host_wr(h, E82545_ITR, E82545_ITR_MAX);
	host_wr(h, E82545_IMS, E82545_ICR_LSC);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
}

TEST(dpdk_em, "RS by threshold, TDT before TDH, ITR 65535, FCS kept, buffers "
    "of 16 KB")
{
	struct host *h = adapter(256, 128, 16384);
	uint32_t i;

	host_wr(h, E82545_IMC, ALL);
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_TCTL, E82545_TCTL_PSP);
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	host_clear(h, E82545_MANC, 0x2000);
	host_wr(h, E82545_IMC, ALL);
	host_rd(h, E82545_ICR);
	check_eerd(h);
	/* A tail from before must not be sent when the head becomes 0. */
	host_wr(h, E82545_TDT, 77);
	dpdk_start(h, E82545_RCTL_LPE | host_rctl_bsize(16384));

	/* The link comes, and goes within the 16.8 ms of ITR. */
	ATF_CHECK(has_link(h));
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	e82545_link(h->dev, false);
	host_advance(h, E82545_ITR_MAX * 256 - 1);
	ATF_CHECK(!host_line(h));
	host_advance(h, 1);
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	e82545_link(h->dev, true);
	host_advance(h, E82545_ITR_MAX * 256);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));

	ATF_CHECK_EQ(0, host_sent(h));
	for (i = 0; i < 256; i++)
		host_txd(h, i)->legacy.status = E82545_TXD_DD;
	for (i = 0; i < 96; i++)
		fill_tx(h, i, 60, E82545_TXD_IFCS | E82545_TXD_EOP |
		    (i % 32 == 31 ? E82545_TXD_RS : 0));
	host_wr(h, E82545_TDT, 96);
	host_run(h);
	ATF_CHECK_EQ(96, host_sent(h));
	ATF_CHECK_EQ(96, host_rd(h, E82545_TDH));
	for (i = 0; i < 96; i++)
		ATF_CHECK_EQ(i % 32 == 31, host_tx_done(h, i));

	/* 16 KB in one buffer.  RDT follows in steps of 32. */
	for (i = 0; i < 127; i++)
		arrive(h, i, i % 2 == 0 ? 16000 : 60);
	for (i = 0; i < 33; i++)
		check_rx(h, i, i, i % 2 == 0 ? 16000 : 60, E82545_ETH_FCS);
	host_wr(h, E82545_RDT, 32);
	host_run(h);
	arrive(h, 127, 1000);
	check_rx(h, 127, 127, 1000, E82545_ETH_FCS);
	/* Frames come and go without an interrupt. */
	ATF_CHECK(!host_line(h));

	/* Small buffers: the second one has half of the FCS, no data. */
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_sent_clear(h);
	for (i = 0; i < h->nrxd; i++)
		host_rxd(h, i)->status = 0;
	dpdk_start(h, E82545_RCTL_LPE);
	arrive(h, 0, 2046);
	ATF_CHECK_EQ(E82545_RXD_DD, host_rxd(h, 0)->status & RXD_DONE);
	ATF_CHECK_EQ(2048, host_rxd(h, 0)->length);
	ATF_CHECK_EQ(RXD_DONE, host_rxd(h, 1)->status & RXD_DONE);
	ATF_CHECK_EQ(2, host_rxd(h, 1)->length);
	host_destroy(h);
}

/*
 * NetBSD's wm.  Resets through the I/O BAR with nothing but RST; reads the
 * EEPROM by EECD; resets the PHY by CTRL.  Writes RDT for each descriptor it
 * fills, to the index of that one.  Clears VET and keeps VLAN mode off: a frame
 * of EtherType 0 then counts as tagged, and must arrive as it is.  Sets RDTR
 * with FPD, and IDE in every transmit descriptor, so that TIDV delays TXDW.
 * RCTL.DPF has no effect while receive flow control is off (section 8.7.4).
 * The handler reads ICR until it has none of its causes.
 */
static void
wm_post(struct host *h, uint32_t i)
{
	host_rxd(h, i)->length = 0;
	host_rxd(h, i)->status = 0;
	host_wr(h, E82545_RDT, i);
}

TEST(netbsd_wm, "Reset by the I/O BAR, EEPROM by EECD, RDT for each "
    "descriptor, VET 0, IDE, DPF")
{
	static const uint32_t causes = E82545_ICR_TXDW | E82545_ICR_LSC |
	    E82545_ICR_RXSEQ | E82545_ICR_RXDMT0 | E82545_ICR_RXO |
	    E82545_ICR_RXT0;
	struct host *h = adapter(256, 256, 2048);
	uint8_t frame[60];
	uint32_t ctrl;
	unsigned int i;

	host_wr(h, E82545_PBA, 48);
	reg_io_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RESET));
	check_microwire(h, false);
	ctrl = host_rd(h, E82545_CTRL) | E82545_CTRL_SLU;
	host_wr(h, E82545_CTRL, ctrl);
	host_wr(h, E82545_CTRL, ctrl | E82545_CTRL_PHY_RST);
	ATF_CHECK(!has_link(h));
	host_wr(h, E82545_CTRL, ctrl);
	check_mii(h);

	host_wr(h, E82545_TCTL, 0);
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_IMC, ALL);
	host_wr(h, E82545_PBA, 48);
	reg_io_wr(h, E82545_CTRL, E82545_CTRL_RST);
	host_wr(h, E82545_TDBAH, 0);
	host_wr(h, E82545_TDBAL, h->txring);
	host_wr(h, E82545_TDLEN, h->ntxd * 16);
	host_wr(h, E82545_TDH, 0);
	host_wr(h, E82545_TDT, 0);
	host_wr(h, E82545_TIDV, 64);
	host_wr(h, E82545_TADV, 128);
	host_wr(h, E82545_TXDCTL, 0);
	host_wr(h, E82545_RXDCTL, 1 << 16);
	host_wr(h, E82545_RDBAH, 0);
	host_wr(h, E82545_RDBAL, h->rxring);
	host_wr(h, E82545_RDLEN, h->nrxd * 16);
	host_wr(h, E82545_RDH, 0);
	host_wr(h, E82545_RDT, 0);
	host_wr(h, E82545_RDTR, 0 | E82545_RDTR_FPD);
	ATF_CHECK_EQ(0, host_rd(h, E82545_RDTR));
	host_wr(h, E82545_RADV, 128);
	for (i = 0; i < h->nrxd; i++)
		wm_post(h, i);
	host_wr(h, E82545_VET, 0);
	for (i = 0; i < E82545_VFTA_COUNT; i++)
		host_wr(h, E82545_VFTA + 4 * i, 0);
	host_wr(h, E82545_FCAL, 0x00c28001);
	host_wr(h, E82545_FCAH, 0x00000100);
	host_wr(h, E82545_FCT, 0x8808);
	host_wr(h, E82545_CTRL, ctrl);
	host_wr(h, E82545_IMC, ALL);
	host_wr(h, E82545_IMS, causes);
	host_wr(h, E82545_ITR, 1000000000 / (7000 * 256));
	host_wr(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP |
	    E82545_TCTL_CT(15) | E82545_TCTL_COLD(64));
	host_wr(h, E82545_RAL(0), le32dec(host_mac));
	host_wr(h, E82545_RAH(0), le16dec(host_mac + 4) | E82545_RAH_AV);
	for (i = 1; i < E82545_RA_COUNT; i++) {
		host_wr(h, E82545_RAL(i), 0);
		host_wr(h, E82545_RAH(i), 0);
	}
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | 1 << 22 | E82545_RCTL_LPE |
	    E82545_RCTL_BAM);

	/* The link's interrupt. */
	ATF_CHECK(host_line(h));
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_LSC) != 0);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & causes);
	ATF_CHECK(has_link(h));
	host_advance(h, 1000 * US);

	/* Two descriptors for a frame; TXDW comes 64 * 1.024 us later. */
	fill_tx(h, 0, 100, E82545_TXD_IDE | E82545_TXD_IFCS);
	host_txd(h, 1)->addr = host_txd(h, 0)->addr + 40;
	host_txd(h, 1)->lower = E82545_TXD_IDE | TXD_LAST | 60;
	host_txd(h, 0)->lower -= 60;
	host_wr(h, E82545_TDT, 2);
	check_tx(h, 0, 100);
	ATF_CHECK(!host_tx_done(h, 0));
	ATF_CHECK(host_tx_done(h, 1));
	host_advance(h, 64 * 1024 - 1);
	ATF_CHECK(!host_line(h));
	host_advance(h, 1);
	ATF_CHECK(host_line(h));
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & causes);

	/* More than a ring; RDTR is 0, so RADV delays nothing. */
	for (i = 0; i < 600; i++) {
		arrive(h, i, 60 + i);
		host_advance(h, 1000 * US);
		ATF_CHECK(host_line(h));
		ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_RXT0) != 0);
		ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & causes);
		check_rx(h, i % 256, i, 60 + i, E82545_ETH_FCS);
		wm_post(h, i % 256);
	}

	/* EtherType 0, the value of VET. */
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	frame[12] = frame[13] = 0;
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(RXD_DONE, host_rxd(h, 600 % 256)->status &
	    (RXD_DONE | E82545_RXD_VP));
	ATF_CHECK(memcmp(frame, host_mem(h, host_rxd(h, 600 % 256)->addr, 60),
	    60) == 0);
	/* PAUSE. */
	frame[12] = 0x88;
	frame[13] = 0x08;
	frame[14] = 0;
	frame[15] = 1;
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(RXD_DONE, host_rxd(h, 601 % 256)->status & RXD_DONE);
	host_destroy(h);
}

/*
 * Plan 9's igbe.  Reloads the EEPROM by CTRL_EXT.EE_RST after the reset, and
 * gives up if a bit of ICR stays set, or if the words do not add up to 0xbaba.
 * Clears receive addresses 1 to 15, which ended stock bhyve's process.  Reads
 * of TDH tell it what was sent: RS is only in the descriptor that fills the
 * ring.  RXCSUM.PCSS is 14: each packet has the sum of all after the Ethernet
 * header.  RCTL.MPE is always on, RCTL.EN is set after all else.  A thread, not
 * the handler, unmasks the causes it has seen.
 */
TEST(plan9, "EE_RST, EEPROM's checksum, addresses 1 to 15, TDH, PCSS 14, FPD, "
    "DPF, TXDMAC, MANC")
{
	static const uint32_t rxcauses = E82545_ICR_RXT0 | E82545_ICR_RXO |
	    E82545_ICR_RXDMT0 | E82545_ICR_RXSEQ;
	static const uint8_t group[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct host *h = adapter(64, 256, 2048);
	uint8_t frame[201];
	uint32_t i, v;

	host_wr(h, E82545_RAL(0), 0x11111111);
	host_wr(h, E82545_RAH(0), 0);
	host_wr(h, E82545_IMC, ALL);
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_TCTL, 0);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0, host_rd(h, E82545_CTRL) & E82545_CTRL_RST);
	host_wr(h, E82545_RAL(0), 0x22222222);
	host_set(h, E82545_CTRL_EXT, E82545_CTRL_EXT_EE_RST);
	ATF_CHECK_EQ(0, host_rd(h, E82545_CTRL_EXT) & E82545_CTRL_EXT_EE_RST);
	check_address(h);
	host_clear(h, E82545_MANC, 0x2000);
	host_wr(h, E82545_IMC, ALL);
	host_rd(h, E82545_ICR);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	check_microwire(h, true);
	/* The bits of the port's number. */
	ATF_CHECK_EQ(0, host_rd(h, E82545_STATUS) & 0xc);

	host_wr(h, E82545_RAL(0), le32dec(host_mac));
	host_wr(h, E82545_RAH(0), le16dec(host_mac + 4) | E82545_RAH_AV);
	for (i = 1; i < 16; i++) {
		host_wr(h, E82545_RAL(i), 0);
		host_wr(h, E82545_RAH(i), 0);
	}
	for (i = 0; i < E82545_MTA_COUNT; i++)
		host_wr(h, E82545_MTA + 4 * i, 0);
	host_wr(h, E82545_FCAL, 0x00c28001);
	host_wr(h, E82545_FCAH, 0x00000100);
	host_wr(h, E82545_FCT, 0x8808);
	host_wr(h, E82545_FCTTV, 0x100);
	host_wr(h, E82545_FCRTL, 0);
	host_wr(h, E82545_FCRTH, 0);
	host_wr(h, E82545_CTRL, (host_rd(h, E82545_CTRL) | E82545_CTRL_SLU) &
	    ~(E82545_CTRL_FRCDPX | E82545_CTRL_FRCSPD));
	check_mii(h);
	ATF_CHECK(has_link(h));

	host_wr(h, E82545_TCTL, E82545_TCTL_CT(15) | E82545_TCTL_PSP |
	    E82545_TCTL_COLD(66));
	host_wr(h, E82545_TIPG, E82545_TIPG_COPPER);
	host_wr(h, E82545_AIFS, 0);
	host_wr(h, E82545_TXDMAC, 0);
	place_tx(h);
	host_wr(h, E82545_TIDV, 128);
	host_wr(h, E82545_TADV, 64);
	host_wr(h, E82545_TXDCTL, (host_rd(h, E82545_TXDCTL) & ~0x003f0000) |
	    0x01040000);
	host_set(h, E82545_TCTL, E82545_TCTL_EN);

	host_wr(h, E82545_RCTL, 1 << 22 | E82545_RCTL_BAM | E82545_RCTL_MPE);
	place_rx(h);
	host_wr(h, E82545_RDT, 0);
	host_wr(h, E82545_RDTR, E82545_RDTR_FPD | 0);
	host_wr(h, E82545_RDT, 255);
	host_wr(h, E82545_RADV, 64);
	host_wr(h, E82545_RXDCTL, 8 << 16 | 8 << 8 | 4);
	host_wr(h, E82545_RXCSUM, E82545_ETH_HDRLEN);
	host_set(h, E82545_RCTL, E82545_RCTL_EN);

	/* The link and FPD, which the adapter announces as a frame. */
	host_wr(h, E82545_IMS, E82545_ICR_LSC);
	host_wr(h, E82545_IMS, E82545_ICR_LSC | rxcauses);
	ATF_CHECK(host_line(h));
	host_wr(h, E82545_IMC, ALL);
	ATF_CHECK(!host_line(h));
	ATF_CHECK_EQ(E82545_ICR_LSC | E82545_ICR_RXT0,
	    host_rd(h, E82545_ICR) & (E82545_ICR_LSC | rxcauses));
	host_wr(h, E82545_IMS, rxcauses);
	ATF_CHECK(!host_line(h));

	/* Data descriptors, without RS up to the last one that fits. */
	for (i = 0; i < 63; i++) {
		fill_tx(h, i, 60, TXD_DATA | E82545_TXD_IFCS | E82545_TXD_EOP |
		    (i == 62 ? E82545_TXD_RS : 0));
		host_wr(h, E82545_TDT, i + 1);
		if (i < 62)
			check_tx(h, i, 60);
		else {
			host_wr(h, E82545_IMS, E82545_ICR_TXDW);
			check_tx(h, i, 60);
			ATF_CHECK(host_line(h));
		}
		ATF_CHECK_EQ(i + 1, host_rd(h, E82545_TDH));
		ATF_CHECK_EQ(i == 62, host_tx_done(h, i));
	}
	host_wr(h, E82545_IMC, ALL);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
	host_wr(h, E82545_IMS, rxcauses);

	/* Frames in halves of the ring, each with its sum and its FCS. */
	for (i = 0; i < 128; i++)
		arrive_at(h, i % 2 == 0 ? host_mac : group, i, sizeof(frame));
	ATF_CHECK(host_line(h));
	host_wr(h, E82545_IMC, ALL);
	v = host_rd(h, E82545_ICR);
	ATF_CHECK_EQ(E82545_ICR_RXT0 | E82545_ICR_RXDMT0, v & rxcauses);
	for (i = 0; i < 128; i++) {
		host_make_frame(frame, sizeof(frame),
		    i % 2 == 0 ? host_mac : group, i);
		ATF_CHECK_EQ(packet_sum(frame + 14, sizeof(frame) - 14),
		    host_rxd(h, i)->csum);
		check_rx_at(h, i, i % 2 == 0 ? host_mac : group, i,
		    sizeof(frame), E82545_ETH_FCS);
	}
	host_wr(h, E82545_RDT, 127);
	host_wr(h, E82545_IMS, rxcauses);
	ATF_CHECK(!host_line(h));
	arrive(h, 200, 1514);
	check_rx(h, 128, 200, 1514, E82545_ETH_FCS);

	/* PAUSE, with receive flow control off: as any other frame. */
	host_make_frame(frame, 60, host_mac, 0);
	frame[12] = 0x88;
	frame[13] = 0x08;
	frame[14] = 0;
	frame[15] = 1;
	rx_receive(h, frame, 60);
	ATF_CHECK_EQ(RXD_DONE, host_rxd(h, 129)->status & RXD_DONE);
	host_destroy(h);
}

TEST_PROGRAM
