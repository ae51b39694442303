/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The 82574L through its BARs: registers, EEPROM, PHY, semaphores, time.  The
 * table has numbers, not names, so that it finds mistakes in e82574_reg.h.
 * What it has in common with the 82545EM is tested there.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82545_regs.h"

static const struct reg lregs[] = {
	{ 0x0000, 1, 4, "CTRL", 0x00100241, 0, REG_FX },
	{ 0x0004, 1, 4, "CTRL_DUP", 0x00100241, 0, REG_FX },
	{ 0x0008, 1, 4, "STATUS", 0x00080283, 0, REG_RO },
	{ 0x0010, 1, 4, "EECD", 0x00008310, 0, REG_FX },
	{ 0x0018, 1, 4, "CTRL_EXT", 0, 0xd9ebcfff, REG_RW },
	{ 0x0028, 1, 4, "FCAL", 0x00c28001, ALL, REG_RW },
	{ 0x002c, 1, 4, "FCAH", 0x0100, 0xffff, REG_RW },
	{ 0x0030, 1, 4, "FCT", 0x8808, 0xffff, REG_RW },
	{ 0x00dc, 1, 4, "EIAC", 0, 0x01f00000, REG_RW },
	{ 0x00e0, 1, 4, "IAM", 0, ALL, REG_RW },
	{ 0x00e4, 1, 4, "IVAR", 0, 0x800fffff, REG_RW },
	{ 0x00e8, 5, 4, "EITR", 0, 0xffff, REG_RW },
	{ 0x0100, 1, 4, "RCTL", 0, 0x06dfbffe, REG_RW },
	{ 0x0400, 1, 4, "TCTL", 0, 0x7ffffffa, REG_RW },
	{ 0x0410, 1, 4, "TIPG", 0x00602008, 0x3fffffff, REG_RW },
	{ 0x0458, 1, 4, "AIT", 0, 0xffff, REG_RW },
	{ 0x0e00, 1, 4, "LEDCTL", 0x00068302, 0x00cfcfef, REG_RW },
	{ 0x0f00, 1, 4, "EXTCNF_CTRL", 0x8, 0x0fff00e7, REG_RW },
	{ 0x0f08, 1, 4, "EXTCNF_SIZE", 0, 0x00ffffff, REG_RW },
	{ 0x0f10, 1, 4, "POEMB", 0x030d, 0xffff, REG_RW },
	{ 0x1000, 1, 4, "PBA", 0x00140014, 0, REG_FX },
	{ 0x1008, 1, 4, "PBS", 0x28, 0xffff, REG_RW },
	{ 0x1010, 1, 4, "EEMNGCTL", 0x80040000, 0, REG_RO },
	{ 0x102c, 1, 4, "EEWR", 0x2, 0, REG_FX },
	{ 0x2170, 1, 4, "PSRCTL", 0x00040402, 0x3f3f3f7f, REG_RW },
	{ 0x2900, 1, 4, "RDBAL1", 0, 0xfffffff0, REG_RW },
	{ 0x2904, 1, 4, "RDBAH1", 0, ALL, REG_RW },
	{ 0x2908, 1, 4, "RDLEN1", 0, 0x000fff80, REG_RW },
	{ 0x2910, 1, 4, "RDH1", 0, 0xffff, REG_RW },
	{ 0x2918, 1, 4, "RDT1", 0, 0xffff, REG_RW },
	{ 0x2928, 1, 4, "RXDCTL1", 0x00010000, 0x013f3f3f, REG_RW },
	{ 0x3410, 4, 8, "TDFH..TDFTS", 0x0600, 0x1fff, REG_RW },
	{ 0x3430, 1, 4, "TDFPC", 0, 0x1fff, REG_RW },
	{ 0x3828, 1, 4, "TXDCTL", 0, 0xff7f3f3f, REG_RW },
	{ 0x3840, 1, 4, "TARC0", 0x403, 0x7fffffff, REG_RW },
	{ 0x3900, 1, 4, "TDBAL1", 0, 0xfffffff0, REG_RW },
	{ 0x3904, 1, 4, "TDBAH1", 0, ALL, REG_RW },
	{ 0x3908, 1, 4, "TDLEN1", 0, 0x000fff80, REG_RW },
	{ 0x3910, 1, 4, "TDH1", 0, 0xffff, REG_RW },
	{ 0x3918, 1, 4, "TDT1", 0, 0xffff, REG_RW },
	{ 0x3928, 1, 4, "TXDCTL1", 0, 0xff7f3f3f, REG_RW },
	{ 0x3940, 1, 4, "TARC1", 0x403, 0x7fffffff, REG_RW },
	{ 0x5000, 1, 4, "RXCSUM", 0x0300, 0x37ff, REG_RW },
	{ 0x5008, 1, 4, "RFCTL", 0, 0x000fffff, REG_RW },
	{ 0x5818, 1, 4, "MRQC", 0, 0xffff0003, REG_RW },
	{ 0x5824, 1, 4, "MFVAL", 0, ALL, REG_RW },
	{ 0x5828, 2, 8, "MFUTP", 0, ALL, REG_RW },
	{ 0x5860, 1, 4, "MANC2H", 0, ALL, REG_RW },
	{ 0x5890, 8, 4, "MDEF", 0, ALL, REG_RW },
	{ 0x5b00, 1, 4, "GCR", 0, ALL, REG_RW },
	{ 0x5b08, 1, 4, "FUNCTAG", 0, ALL, REG_RW },
	{ 0x5b10, 4, 4, "GSCL", 0, ALL, REG_RW },
	{ 0x5b20, 4, 4, "GSCN", 0, ALL, REG_RW },
	{ 0x5b30, 1, 4, "FACTPS", 0x20000003, 0, REG_RO },
	{ 0x5b50, 1, 4, "SWSM", 0, 0, REG_FX },
	{ 0x5b54, 1, 4, "FWSM", 0, 0, REG_RO },
	{ 0x5b58, 1, 4, "SWSM2", 0, 0x3, REG_RW },
	{ 0x5b64, 1, 4, "GCR2", 0, ALL, REG_RW },
	{ 0x5b68, 1, 4, "PBACLR", 0, 0x1f, REG_RW },
	{ 0x5c00, 32, 4, "RETA", 0, ALL, REG_RW },
	{ 0x5c80, 10, 4, "RSSRK", 0, ALL, REG_RW },
	{ 0x5f00, 4, 8, "FFLT", 0, 0x7ff, REG_RW },
	{ 0xb600, 1, 4, "SYSTIML", 0, ALL, REG_RW },
	{ 0xb604, 1, 4, "SYSTIMH", 0, ALL, REG_RW },
	{ 0xb608, 1, 4, "TIMINCA", 0, ALL, REG_RW },
	{ 0xb60c, 1, 4, "TIMADJL", 0, ALL, REG_RW },
	{ 0xb610, 1, 4, "TIMADJH", 0, ALL, REG_RW },
	{ 0xb614, 1, 4, "TSYNCTXCTL", 0, 0x10, REG_RW },
	{ 0xb618, 1, 4, "TXSTMPL", 0, 0, REG_RO },
	{ 0xb61c, 1, 4, "TXSTMPH", 0, 0, REG_RO },
	{ 0xb620, 1, 4, "TSYNCRXCTL", 0, 0x1e, REG_RW },
	{ 0xb624, 1, 4, "RXSTMPL", 0, 0, REG_RO },
	{ 0xb628, 1, 4, "RXSTMPH", 0, 0, REG_RO },
	{ 0xb62c, 1, 4, "RXSATRL", 0, 0, REG_RO },
	{ 0xb630, 1, 4, "RXSATRH", 0, 0, REG_RO },
	{ 0xb634, 1, 4, "RXMTRL", 0x88f7, ALL, REG_RW },
	{ 0xb638, 1, 4, "RXUDP", 0x0319, 0xffff, REG_RW },
	REGS_COMMON
};

HOST_TEST(registers, host_create_82574(HOST_RAM), "Values after reset, bits "
    "that can be written, and offsets without a register")
{
	check_registers(h, lregs, nitems(lregs));
	/* A reset brings all of them back. */
	host_wr(h, E82574_IVAR, ALL);
	host_wr(h, E82574_SWSM2, ALL);
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	check_reset_rows(h, lregs, nitems(lregs));
}

static uint16_t
nvm_read(struct host *h, unsigned int word)
{
	host_wr(h, 0x14, word << 2 | 1);
	ATF_CHECK_EQ_MSG(word << 2 | 2, host_rd(h, 0x14) & 0xffff, "%u", word);
	return (host_rd(h, 0x14) >> 16);
}

TEST(eeprom, "Words by EERD and EEWR: address, IDs, checksum; beyond the end")
{
	struct host *h;
	uint16_t sum = 0;
	unsigned int i;

	h = host_create_82574(HOST_RAM);
	for (i = 0; i < 3; i++)
		ATF_CHECK_EQ(host_mac[2 * i] | host_mac[2 * i + 1] << 8,
		    nvm_read(h, i));
	ATF_CHECK_EQ(0xa01f, nvm_read(h, 0xb));
	ATF_CHECK_EQ(0x8086, nvm_read(h, 0xc));
	ATF_CHECK_EQ(0x10d3, nvm_read(h, 0xd));
	ATF_CHECK_EQ(0x8086, nvm_read(h, 0xe));
	/* No management, no alternate address. */
	ATF_CHECK_EQ(0, nvm_read(h, 0xf) & 0x6000);
	/* Five vectors of MSI-X: FreeBSD's em(4) would write it. */
	ATF_CHECK_EQ(4, nvm_read(h, 0x1b) >> 7 & 7);
	ATF_CHECK_EQ(0xffff, nvm_read(h, 0x37));
	for (i = 0; i < 64; i++)
		sum += nvm_read(h, i);
	ATF_CHECK_EQ(0xbaba, sum);
	/* There are 64 words: the others never are there. */
	host_wr(h, 0x14, 64 << 2 | 1);
	ATF_CHECK_EQ(64 << 2, host_rd(h, 0x14));
	host_wr(h, 0x14, 0xfffd);
	ATF_CHECK_EQ(0xfffc, host_rd(h, 0x14));
	host_wr(h, 0x14, 5 << 2);
	ATF_CHECK_EQ(5 << 2, host_rd(h, 0x14));

	host_wr(h, 0x102c, 0x12340000 | 0x20 << 2 | 1);
	ATF_CHECK_EQ(0x12340000 | 0x20 << 2 | 2, host_rd(h, 0x102c));
	ATF_CHECK_EQ(0x1234, nvm_read(h, 0x20));
	host_wr(h, 0x102c, 0x56780000 | 64 << 2 | 1);
	ATF_CHECK_EQ(0, host_rd(h, 0x102c) & 2);
	host_wr(h, 0x102c, 0x56780000 | 0x20 << 2);
	ATF_CHECK_EQ(0x1234, nvm_read(h, 0x20));
	/* The address comes from it, after a reset. */
	host_wr(h, 0x102c, 0xabcd0000 | 1 << 2 | 1);
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0xabcd0c00, host_rd(h, E82545_RAL(0)));
	ATF_CHECK_EQ(0x1234, nvm_read(h, 0x20));
	host_destroy(h);
}

HOST_TEST(phy, host_create_82574(HOST_RAM), "Identity, link, pages")
{
	ATF_CHECK_EQ(0x0141, reg_phy_rd(h, 2));
	ATF_CHECK_EQ(0x0cb1, reg_phy_rd(h, 3));
	reg_phy_rd(h, 1);
	ATF_CHECK_EQ(0x24, reg_phy_rd(h, 1) & 0x24);
	/* A gigabit with both directions, and a link. */
	ATF_CHECK_EQ(0xac00, reg_phy_rd(h, 17));
	reg_phy_wr(h, 16, 0x3b60);
	ATF_CHECK_EQ(0x3b60, reg_phy_rd(h, 16));
	reg_phy_wr(h, 30, 0x1111);
	reg_phy_wr(h, 29, 3);
	ATF_CHECK_EQ(0x1111, reg_phy_rd(h, 30));
	/* No page but 0 has registers from 16 on. */
	reg_phy_wr(h, 22, 2);
	ATF_CHECK_EQ(2, reg_phy_rd(h, 22));
	ATF_CHECK_EQ(0, reg_phy_rd(h, 16));
	ATF_CHECK_EQ(0, reg_phy_rd(h, 17));
	reg_phy_wr(h, 16, 0xffff);
	ATF_CHECK_EQ(0x0141, reg_phy_rd(h, 2));
	ATF_CHECK_EQ(0x0de1, reg_phy_rd(h, 4));
	reg_phy_wr(h, 22, 0);
	ATF_CHECK_EQ(0x3b60, reg_phy_rd(h, 16));
	ATF_CHECK_EQ(0xac00, reg_phy_rd(h, 17));
	/* The cable. */
	e82545_link(h->dev, false);
	ATF_CHECK_EQ(0, reg_phy_rd(h, 17));
	ATF_CHECK_EQ(0, host_rd(h, E82545_STATUS) & E82545_STATUS_LU);
}

HOST_TEST(semaphores, host_create_82574(HOST_RAM), "SWSM by reading, SWSM2 and "
    "EXTCNF_CTRL by writing")
{
	ATF_CHECK_EQ(0, host_rd(h, 0x5b50));
	ATF_CHECK_EQ(1, host_rd(h, 0x5b50));
	host_wr(h, 0x5b50, 3);
	ATF_CHECK_EQ(3, host_rd(h, 0x5b50));
	host_wr(h, 0x5b50, 0);
	ATF_CHECK_EQ(0, host_rd(h, 0x5b50));
	host_wr(h, 0x5b58, 2);
	ATF_CHECK_EQ(2, host_rd(h, 0x5b58));
	/* As Linux: it sets the bit until it reads that back. */
	host_set(h, 0xf00, 0x20);
	ATF_CHECK_EQ(0x28, host_rd(h, 0xf00));
	host_clear(h, 0xf00, 0x20);
	ATF_CHECK_EQ(0x08, host_rd(h, 0xf00));
}

HOST_TEST(master, host_create_82574(HOST_RAM), "STATUS tells at once that "
    "requests to memory are disabled")
{
	/* Half duplex, forced, and what else is in STATUS. */
	host_clear(h, E82545_CTRL, E82545_CTRL_FD);
	host_set(h, E82545_CTRL, E82545_CTRL_FRCDPX);
	ATF_CHECK_EQ(0x00080282, host_rd(h, E82545_STATUS));
	host_set(h, E82545_CTRL, 4);
	ATF_CHECK_EQ(0x00000282, host_rd(h, E82545_STATUS));
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0x00080000, host_rd(h, E82545_STATUS) & 0x00080000);
}

HOST_TEST(pba, host_create_82574(HOST_RAM), "40 KB of packet buffer: transmit "
    "has what receive has not")
{
	host_wr(h, E82545_PBA, 32);
	ATF_CHECK_EQ(0x00080020, host_rd(h, E82545_PBA));
	host_wr(h, E82545_PBA, 0xffff0000 | 40);
	ATF_CHECK_EQ(0x00000028, host_rd(h, E82545_PBA));
	host_wr(h, E82545_PBA, 41);
	ATF_CHECK_EQ(0x00000028, host_rd(h, E82545_PBA));
}

static uint64_t
systim(struct host *h)
{
	const uint32_t low = host_rd(h, 0xb600);

	return (low | (uint64_t)host_rd(h, 0xb604) << 32);
}

HOST_TEST(systim, host_create_82574(HOST_RAM), "SYSTIM grows by TIMINCA's "
    "increment in each of its periods")
{
	host_advance(h, 1000000);
	ATF_CHECK_EQ(0, systim(h));
	/* As Linux: 40 << 18 each 40 ns. */
	host_wr(h, 0xb608, 1 << 24 | 40 << 18);
	host_advance(h, 39);
	ATF_CHECK_EQ(0, systim(h));
	host_advance(h, 1);
	ATF_CHECK_EQ(40 << 18, systim(h));
	host_advance(h, 1000000000 - 40);
	ATF_CHECK_EQ(1000000000ULL << 18, systim(h));
	/* The high half is that of the low one. */
	host_wr(h, 0xb600, 0xffffffff);
	host_wr(h, 0xb604, 7);
	ATF_CHECK_EQ(0xffffffff, host_rd(h, 0xb600));
	host_advance(h, 40);
	ATF_CHECK_EQ(7, host_rd(h, 0xb604));
	ATF_CHECK_EQ((7ULL << 32 | 0xffffffff) + (40 << 18), systim(h));
	/* Periods of 80 ns. */
	host_wr(h, 0xb608, 2 << 24 | 3);
	host_wr(h, 0xb600, 0);
	host_wr(h, 0xb604, 0);
	host_advance(h, 800);
	ATF_CHECK_EQ(30, systim(h));
	/* A clock that goes back. */
	h->now_ns -= 10000;
	ATF_CHECK_EQ(0, systim(h));
	h->now_ns += 10000;
	ATF_CHECK_EQ(30, systim(h));
}

TEST(other_snapshot, "A snapshot of the other adapter is refused")
{
	static uint8_t buf[1 << 20];
	struct host *em, *l;
	size_t size;

	em = host_create(HOST_RAM);
	l = host_create_82574(HOST_RAM);
	e82545_pause(em->dev);
	e82545_pause(l->dev);
	size = e82545_snapshot_size(em->dev);
	ATF_REQUIRE(size < sizeof(buf));
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(em->dev, buf, size));
	ATF_CHECK_EQ(EINVAL, e82545_snapshot_restore(l->dev, buf, size));
	size = e82545_snapshot_size(l->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(l->dev, buf, size));
	ATF_CHECK_EQ(EINVAL, e82545_snapshot_restore(em->dev, buf, size));
	ATF_CHECK_EQ(0, e82545_snapshot_restore(l->dev, buf, size));
	e82545_resume(em->dev);
	e82545_resume(l->dev);
	host_destroy(em);
	host_destroy(l);
}

TEST_PROGRAM
