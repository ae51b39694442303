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
 * peculiar, and what the adapter must make of it.  First come two with as many
 * features as Linux's; the others are of small systems, which poll where others
 * take interrupts, and rely on what the hardware happens to do.
 *
 * A case has the driver's own ring sizes and buffers.  Delays, and loops that
 * wait for a bit that the adapter sets at once, are left out.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e1000_driver.h"
#include "e82545_check.h"
#include "e82545_regs.h"

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
	host_place_tx(h);
	host_wr(h, E82545_TIDV, 128);
	host_wr(h, E82545_TADV, 64);
	host_wr(h, E82545_TXDCTL, (host_rd(h, E82545_TXDCTL) & ~0x003f0000) |
	    0x01040000);
	host_set(h, E82545_TCTL, E82545_TCTL_EN);

	host_wr(h, E82545_RCTL, 1 << 22 | E82545_RCTL_BAM | E82545_RCTL_MPE);
	host_place_rx(h);
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

HOST_TEST(redox, adapter(16, 16, 16384), "Registers read after writing, "
    "RCTL.EN first, SECRC, RXSEQ, buffers of 16 KB")
{
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

/*
 * SerenityOS's e1000.  Does not reset the adapter.  Sets CTRL.SLU again at each
 * LSC, which must not cause another.  Writes all ones to ICR at the end of its
 * handler, which clears what came meanwhile.  It sleeps until DD is set, but
 * enables no transmit cause: a completion that the adapter writes after the
 * driver's only look goes unnoticed until the next frame comes.  Reads TDT and
 * RDT to know where it is; stores bad packets, and has none.
 */
HOST_TEST(serenityos, adapter(256, 256, 8192), "SLU at each LSC, ICR all ones, "
    "no TXDW, no reset, SBP")
{
	unsigned int i, raised;
	uint32_t n;

	ATF_CHECK((host_rd(h, E82545_EECD) & E82545_EECD_PRES) != 0);
	check_eerd(h);
	check_address(h);
	host_place_rx(h);
	host_wr(h, E82545_RDT, 255);
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_SBP |
	    E82545_RCTL_UPE | E82545_RCTL_MPE | E82545_RCTL_BAM |
	    host_rctl_bsize(8192) | E82545_RCTL_SECRC);
	host_place_tx(h);
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
}

TEST_PROGRAM
