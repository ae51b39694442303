/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * EEPROM and PHY of the 82545EM, as drivers use them: EECD by hand, EERD,
 * MDIC, and the link that comes of it.
 */

#include <sys/param.h>

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "e82545_host.h"
#include "e82545_impl.h"

#define	NWORDS		64

/*
 * Microwire by hand: data is set up, the clock rises, the answer is there.
 */
#define	SK	E82545_EECD_SK
#define	CS	E82545_EECD_CS
#define	DI	E82545_EECD_DI
#define	DO	E82545_EECD_DO

static void
mw_acquire(struct host *h)
{
	host_set(h, E82545_EECD, E82545_EECD_REQ);
	ATF_REQUIRE((host_rd(h, E82545_EECD) & E82545_EECD_GNT) != 0);
	host_clear(h, E82545_EECD, DI | SK | CS);
}

static void
mw_release(struct host *h)
{
	host_clear(h, E82545_EECD, E82545_EECD_REQ);
	ATF_REQUIRE((host_rd(h, E82545_EECD) & E82545_EECD_GNT) == 0);
}

static void
mw_out(struct host *h, uint32_t bits, int n)
{
	while (n-- > 0) {
		host_clear(h, E82545_EECD, DI);
		if ((bits >> n & 1) != 0)
			host_set(h, E82545_EECD, DI);
		host_set(h, E82545_EECD, SK);
		host_clear(h, E82545_EECD, SK);
	}
	host_clear(h, E82545_EECD, DI);
}

static uint32_t
mw_in(struct host *h, int n)
{
	uint32_t v;

	for (v = 0; n > 0; n--) {
		host_set(h, E82545_EECD, SK);
		v = v << 1 | ((host_rd(h, E82545_EECD) & DO) != 0);
		host_clear(h, E82545_EECD, SK);
	}
	return (v);
}

/* Between instructions: deselect, a clock, select while the clock is high. */
static void
mw_standby(struct host *h)
{
	host_clear(h, E82545_EECD, CS | SK);
	host_set(h, E82545_EECD, SK);
	host_set(h, E82545_EECD, CS);
	host_clear(h, E82545_EECD, SK);
}

static uint16_t
mw_read(struct host *h, unsigned int addr)
{
	uint16_t v;

	host_set(h, E82545_EECD, CS);
	mw_out(h, 6, 3);
	mw_out(h, addr, 6);
	ATF_CHECK((host_rd(h, E82545_EECD) & DO) == 0);
	v = mw_in(h, 16);
	mw_standby(h);
	return (v);
}

/* Start bit, opcode and what follows; then carried out. */
static void
mw_command(struct host *h, uint32_t bits, int n)
{
	host_set(h, E82545_EECD, CS);
	mw_out(h, bits, n);
	mw_standby(h);
	/* It says when it is ready. */
	ATF_CHECK((host_rd(h, E82545_EECD) & DO) != 0);
	host_clear(h, E82545_EECD, CS);
}

#define	EWEN(h)		mw_command(h, 0x13 << 4, 9)
#define	EWDS(h)		mw_command(h, 0x10 << 4, 9)
#define	ERAL(h)		mw_command(h, 0x12 << 4, 9)
#define	WRAL(h, v)	mw_command(h, 0x11 << 20 | (v), 25)
#define	WRITE(h, a, v)	mw_command(h, 5 << 22 | (a) << 16 | (v), 25)
#define	ERASE(h, a)	mw_command(h, 7 << 6 | (a), 9)

static uint16_t
eerd(struct host *h, uint32_t addr)
{
	uint32_t v;

	host_wr(h, E82545_EERD, addr << 8 | E82545_EERD_START);
	v = host_rd(h, E82545_EERD);
	ATF_CHECK_EQ(E82545_EERD_DONE, v & 0xff);
	ATF_CHECK_EQ(addr, v >> 8 & 0xff);
	return (v >> 16);
}

/*
 * The PHY through MDIC.
 */

static uint32_t
mdic(struct host *h, uint32_t op, unsigned int phy, unsigned int reg,
    uint16_t data)
{
	uint32_t v;

	host_wr(h, E82545_MDIC, op | phy << 21 | reg << 16 | data);
	v = host_rd(h, E82545_MDIC);
	ATF_CHECK((v & E82545_MDIC_READY) != 0);
	ATF_CHECK_EQ(reg, E82545_MDIC_REG(v));
	ATF_CHECK_EQ(phy, E82545_MDIC_PHY(v));
	return (v);
}

static uint16_t
phy_rd(struct host *h, unsigned int reg)
{
	uint32_t v;

	v = mdic(h, E82545_MDIC_OP_READ, 1, reg, 0xaaaa);
	ATF_CHECK((v & E82545_MDIC_ERROR) == 0);
	return (v & 0xffff);
}

static void
phy_wr(struct host *h, unsigned int reg, uint16_t data)
{
	ATF_CHECK((mdic(h, E82545_MDIC_OP_WRITE, 1, reg, data) &
	    E82545_MDIC_ERROR) == 0);
}

static bool
mac_link(struct host *h)
{
	return ((host_rd(h, E82545_STATUS) & E82545_STATUS_LU) != 0);
}

ATF_TC(eeprom_contents);
ATF_TC_HEAD(eeprom_contents, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "MAC address, checksum and identity, by hand and by EERD");
}
ATF_TC_BODY(eeprom_contents, tc __unused)
{
	struct host *h;
	uint16_t sum, words[NWORDS];
	int i;

	h = host_create(HOST_RAM);
	ATF_CHECK_EQ(0, host_rd(h, E82545_EECD) & E82545_EECD_SIZE);
	ATF_CHECK((host_rd(h, E82545_EECD) & E82545_EECD_PRES) != 0);
	mw_acquire(h);
	sum = 0;
	for (i = 0; i < NWORDS; i++) {
		words[i] = mw_read(h, i);
		sum += words[i];
		ATF_CHECK_EQ_MSG(words[i], eerd(h, i), "word %#x", i);
	}
	mw_release(h);
	ATF_CHECK_EQ(0xbaba, sum);
	for (i = 0; i < 6; i++)
		ATF_CHECK_EQ(host_mac[i], words[i / 2] >> i % 2 * 8 & 0xff);
	/* Subsystem, device, vendor; the signature of a valid EEPROM. */
	ATF_CHECK_EQ(0x1008, words[0x0b]);
	ATF_CHECK_EQ(0x8086, words[0x0c]);
	ATF_CHECK_EQ(0x100f, words[0x0d]);
	ATF_CHECK_EQ(0x8086, words[0x0e]);
	ATF_CHECK_EQ(0x4000, words[0x0a] & 0xc000);
	/* The LEDs' settings: left to the driver. */
	ATF_CHECK_EQ(0xffff, words[0x04]);
	/* Drivers print a version other than this. */
	ATF_CHECK_EQ(0, words[0x05]);
	/* Does not wake the machine. */
	ATF_CHECK_EQ(0, words[0x24] & 0x0400);
	/* Six bits of address reach the EEPROM. */
	ATF_CHECK_EQ(words[5], eerd(h, 64 + 5));
	ATF_CHECK_EQ(words[63], eerd(h, 255));
	/* Without START nothing is read. */
	host_wr(h, E82545_EERD, 3 << 8);
	ATF_CHECK_EQ(3 << 8, host_rd(h, E82545_EERD));
	host_destroy(h);
}

ATF_TC(eeprom_access);
ATF_TC_HEAD(eeprom_access, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Wires are dead without access; several words in one read");
}
ATF_TC_BODY(eeprom_access, tc __unused)
{
	struct host *h;
	uint32_t eecd;

	h = host_create(HOST_RAM);
	/* Not asked for access: no answer, and wires read back low. */
	host_wr(h, E82545_EECD, CS | SK | DI);
	eecd = host_rd(h, E82545_EECD);
	ATF_CHECK_EQ(0, eecd & (CS | SK | DI | DO | E82545_EECD_GNT));
	/* Word after word for as long as the clock runs, then around. */
	mw_acquire(h);
	host_set(h, E82545_EECD, CS);
	mw_out(h, 6, 3);
	mw_out(h, 63, 6);
	ATF_CHECK_EQ(eerd(h, 63), mw_in(h, 16));
	ATF_CHECK_EQ(eerd(h, 0), mw_in(h, 16));
	ATF_CHECK_EQ(eerd(h, 1), mw_in(h, 16));
	mw_standby(h);
	/* Zeros before the start bit are no instruction. */
	host_set(h, E82545_EECD, CS);
	mw_out(h, 0, 7);
	mw_out(h, 6, 3);
	mw_out(h, 1, 6);
	ATF_CHECK_EQ(eerd(h, 1), mw_in(h, 16));
	/* Deselected in the middle of an instruction: forgotten. */
	mw_standby(h);
	mw_out(h, 6, 3);
	mw_out(h, 1, 4);
	mw_standby(h);
	ATF_CHECK_EQ(eerd(h, 2), mw_read(h, 2));
	/* Selecting with the clock's rise is no clock. */
	host_clear(h, E82545_EECD, CS | SK | DI);
	host_set(h, E82545_EECD, CS | SK | DI);
	host_clear(h, E82545_EECD, SK | DI);
	ATF_CHECK_EQ(eerd(h, 3), mw_read(h, 3));
	/* An instruction is forgotten when access is given up, too. */
	host_set(h, E82545_EECD, CS);
	mw_out(h, 6, 3);
	mw_release(h);
	mw_acquire(h);
	ATF_CHECK_EQ(eerd(h, 2), mw_read(h, 2));
	host_destroy(h);
}

ATF_TC(eeprom_write);
ATF_TC_HEAD(eeprom_write, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Write, erase, enable and disable; a reset keeps the contents");
}
ATF_TC_BODY(eeprom_write, tc __unused)
{
	struct host *h;
	uint16_t w10, w11;
	int i;

	h = host_create(HOST_RAM);
	w10 = eerd(h, 10);
	w11 = eerd(h, 11);
	mw_acquire(h);

	/* Disabled. */
	WRITE(h, 10, 0x1234);
	ERASE(h, 10);
	ERAL(h);
	WRAL(h, 0x5555);
	ATF_CHECK_EQ(w10, mw_read(h, 10));
	ATF_CHECK_EQ(w11, mw_read(h, 11));

	EWEN(h);
	WRITE(h, 10, 0x1234);
	ATF_CHECK_EQ(0x1234, mw_read(h, 10));
	ATF_CHECK_EQ(w11, mw_read(h, 11));
	/* One bit short: nothing. */
	mw_command(h, (5 << 22 | 10 << 16 | 0x9999) >> 1, 24);
	ATF_CHECK_EQ(0x1234, mw_read(h, 10));
	ERASE(h, 10);
	ATF_CHECK_EQ(0xffff, mw_read(h, 10));
	EWDS(h);
	WRITE(h, 10, 0x1234);
	ATF_CHECK_EQ(0xffff, mw_read(h, 10));

	/* Another address: taken at the reset, which disables writing. */
	EWEN(h);
	WRITE(h, 0, 0x2202);
	WRITE(h, 2, 0x7766);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0x12292202, host_rd(h, E82545_RAL(0)));
	ATF_CHECK_EQ(0x80007766, host_rd(h, E82545_RAH(0)));
	mw_acquire(h);
	ATF_CHECK_EQ(0x7766, mw_read(h, 2));
	WRITE(h, 2, 0);
	ATF_CHECK_EQ(0x7766, mw_read(h, 2));

	EWEN(h);
	WRAL(h, 0xabcd);
	for (i = 0; i < NWORDS; i++)
		ATF_CHECK_EQ(0xabcd, mw_read(h, i));
	ERAL(h);
	for (i = 0; i < NWORDS; i++)
		ATF_CHECK_EQ(0xffff, mw_read(h, i));
	host_destroy(h);
}

ATF_TC(hostile);
ATF_TC_HEAD(hostile, tc)
{
	atf_tc_set_md_var(tc, "descr", "Noise on EECD, EERD and MDIC");
}
ATF_TC_BODY(hostile, tc __unused)
{
	static const uint32_t offs[] = {
		E82545_EECD, E82545_EECD, E82545_EECD, E82545_EECD,
		E82545_EERD, E82545_MDIC, E82545_CTRL
	};
	struct host *h;
	uint32_t off, v;
	int i;

	h = host_create(HOST_RAM);
	srandom(1);
	for (i = 0; i < 300000; i++) {
		off = offs[random() % nitems(offs)];
		v = random() ^ (uint32_t)random() << 16;
		if (off == E82545_EECD)
			v |= E82545_EECD_REQ;
		if (off == E82545_MDIC && i % 4 != 0)
			v = (v & ~(0x1fu << 21)) | 1 << 21;
		if (off == E82545_CTRL && i % 64 != 0)
			v &= ~E82545_CTRL_RST;
		host_wr(h, off, v);
		host_rd(h, off);
	}
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	mw_acquire(h);
	for (i = 0; i < NWORDS; i++)
		ATF_CHECK_EQ(eerd(h, i), mw_read(h, i));
	ATF_CHECK_EQ(0x0141, phy_rd(h, 2));
	host_destroy(h);
}

ATF_TC(phy_registers);
ATF_TC_HEAD(phy_registers, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "The PHY's identity, reset values and writable bits");
}
ATF_TC_BODY(phy_registers, tc __unused)
{
	static const struct {
		uint16_t	reset, mask;
	} regs[32] = {
		[0] = { 0x1140, 0x7dc0 },
		[1] = { 0x796d, 0 },	/* link, negotiation complete */
		[2] = { 0x0141, 0 },	/* Marvell 88E1011 */
		[3] = { 0x0c20, 0 },
		[4] = { 0x0de1, 0xbfff },
		[5] = { 0x41e1, 0 },
		[6] = { 0x0005, 0 },
		[7] = { 0x2001, 0xbfff },
		[9] = { 0x0300, 0xff00 },
		[10] = { 0x7c00, 0 },
		[15] = { 0x3000, 0 },
		[16] = { 0x0068, 0xffff },
		[17] = { 0xac00, 0 },	/* 1000 Mb/s, full duplex, link */
		[18] = { 0, 0xffff },
		[20] = { 0x0d60, 0xffff },
		[24] = { 0x4100, 0xffff },
		[26] = { 0, 0xffff },
		[29] = { 0, 0xffff },
		[30] = { 0, 0xffff },
	};
	struct host *h;
	uint16_t v;
	int i;

	h = host_create(HOST_RAM);
	/* The link was down before: both of these forget it when read. */
	phy_rd(h, 1);
	phy_rd(h, 19);
	for (i = 0; i < 32; i++) {
		v = phy_rd(h, i);
		ATF_CHECK_EQ_MSG(regs[i].reset, v, "%d: %#x", i, v);
	}
	for (i = 1; i < 32; i++) {
		phy_wr(h, i, 0x5aa5);
		v = phy_rd(h, i);
		ATF_CHECK_EQ_MSG((regs[i].reset & ~regs[i].mask) |
		    (0x5aa5 & regs[i].mask), v, "%d: %#x", i, v);
		phy_wr(h, i, ~0x5aa5);
		v = phy_rd(h, i);
		ATF_CHECK_EQ_MSG((regs[i].reset & ~regs[i].mask) |
		    (~0x5aa5 & regs[i].mask), v, "%d: %#x", i, v);
		if (i != 29)
			phy_wr(h, i, regs[i].reset);
	}
	/* 30 has a register for each value of 29. */
	phy_wr(h, 29, 5);
	phy_wr(h, 30, 0x1111);
	phy_wr(h, 29, 6);
	ATF_CHECK_EQ(0, phy_rd(h, 30));
	phy_wr(h, 30, 0x2222);
	phy_wr(h, 29, 5);
	ATF_CHECK_EQ(0x1111, phy_rd(h, 30));

	/* A reset of the adapter is one of the PHY, and so is PHY_RST. */
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0, phy_rd(h, 29));
	phy_wr(h, 29, 5);
	ATF_CHECK_EQ(0, phy_rd(h, 30));
	phy_wr(h, 16, 0x0808);
	host_set(h, E82545_CTRL, E82545_CTRL_PHY_RST);
	host_clear(h, E82545_CTRL, E82545_CTRL_PHY_RST);
	ATF_CHECK_EQ(0x0068, phy_rd(h, 16));
	/* A software reset keeps what was set. */
	phy_wr(h, 16, 0x0808);
	phy_wr(h, 0, 0x9140);
	ATF_CHECK_EQ(0x1140, phy_rd(h, 0));
	ATF_CHECK_EQ(0x0808, phy_rd(h, 16));
	host_destroy(h);
}

ATF_TC(mdic);
ATF_TC_HEAD(mdic, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "MDIC: ready, error and interrupt bits");
}
ATF_TC_BODY(mdic, tc __unused)
{
	struct host *h;
	unsigned int i;
	uint32_t v;

	h = host_create(HOST_RAM);
	for (i = 0; i < 32; i++) {
		v = mdic(h, E82545_MDIC_OP_READ, i, 2, 0);
		ATF_CHECK_EQ(i != 1, (v & E82545_MDIC_ERROR) != 0);
	}
	/* Written elsewhere: the PHY does not see it. */
	mdic(h, E82545_MDIC_OP_WRITE, 2, 16, 0x1111);
	ATF_CHECK_EQ(0x0068, phy_rd(h, 16));
	/* Neither read nor write. */
	ATF_CHECK((mdic(h, 0, 1, 2, 0) & E82545_MDIC_ERROR) != 0);
	ATF_CHECK((mdic(h, E82545_MDIC_OP, 1, 16, 0x1111) &
	    E82545_MDIC_ERROR) != 0);
	ATF_CHECK_EQ(0x0068, phy_rd(h, 16));
	/* READY and ERROR cannot be written. */
	host_wr(h, E82545_MDIC, E82545_MDIC_ERROR | E82545_MDIC_OP_READ |
	    1 << 21 | 2 << 16);
	ATF_CHECK_EQ(E82545_MDIC_READY | E82545_MDIC_OP_READ | 1 << 21 |
	    2 << 16 | 0x0141, host_rd(h, E82545_MDIC));

	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	mdic(h, E82545_MDIC_OP_READ | E82545_MDIC_INT, 1, 2, 0);
	ATF_CHECK_EQ(E82545_ICR_MDAC, host_rd(h, E82545_ICR));
	mdic(h, E82545_MDIC_OP_READ | E82545_MDIC_INT, 9, 2, 0);
	ATF_CHECK_EQ(E82545_ICR_MDAC, host_rd(h, E82545_ICR));
	host_destroy(h);
}

ATF_TC(phy_link);
ATF_TC_HEAD(phy_link, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Cable, power, negotiation: PHY status, STATUS.LU, LSC");
}
ATF_TC_BODY(phy_link, tc __unused)
{
	struct host *h;

	h = host_create(HOST_RAM);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	phy_rd(h, 1);
	phy_rd(h, 19);

	/* Out and in: status latches that it was down, until it is read. */
	e82545_link(h->dev, false);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(!mac_link(h));
	ATF_CHECK_EQ(0, phy_rd(h, 1) & 0x0024);
	ATF_CHECK_EQ(0, phy_rd(h, 5));
	ATF_CHECK_EQ(0, phy_rd(h, 10));
	ATF_CHECK_EQ(0, phy_rd(h, 17));
	ATF_CHECK_EQ(0x0004, phy_rd(h, 6));
	ATF_CHECK_EQ(0x0400, phy_rd(h, 19));
	ATF_CHECK_EQ(0, phy_rd(h, 19));
	e82545_link(h->dev, true);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(mac_link(h));
	e82545_link(h->dev, false);
	e82545_link(h->dev, true);
	ATF_CHECK_EQ(0, phy_rd(h, 1) & 0x0004);
	ATF_CHECK_EQ(0x0024, phy_rd(h, 1) & 0x0024);
	host_rd(h, E82545_ICR);

	/* Power. */
	phy_wr(h, 0, 0x1940);
	ATF_CHECK(!mac_link(h));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	phy_wr(h, 0, 0x1140);
	ATF_CHECK(mac_link(h));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));

	/* Negotiating anew takes the link down for a moment. */
	phy_rd(h, 1);
	phy_wr(h, 0, 0x1340);
	ATF_CHECK_EQ(0x1140, phy_rd(h, 0));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(mac_link(h));
	ATF_CHECK_EQ(0x0020, phy_rd(h, 1) & 0x0024);
	ATF_CHECK_EQ(0x0024, phy_rd(h, 1) & 0x0024);
	/* Without a cable there is nothing to report. */
	e82545_link(h->dev, false);
	host_rd(h, E82545_ICR);
	phy_wr(h, 0, 0x1340);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	host_destroy(h);
}

ATF_TC(phy_speed);
ATF_TC_HEAD(phy_speed, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "Speed and duplex, negotiated and forced");
}
ATF_TC_BODY(phy_speed, tc __unused)
{
	static const struct {
		uint16_t	gctrl, adv, ctrl;
		uint16_t	m88;		/* PHY status, 0: no link */
		uint32_t	status;		/* MAC's, speed and duplex */
	} speeds[] = {
		/* Negotiated: the best of what is offered. */
		{ 0x0300, 0x0de1, 0x1340, 0xac00, 0x281 },
		{ 0x0100, 0x0de1, 0x1340, 0x8c00, 0x280 },
		{ 0, 0x01e1, 0x1340, 0x6c00, 0x141 },
		{ 0, 0x00e1, 0x1340, 0x4c00, 0x140 },
		{ 0, 0x0061, 0x1340, 0x2c00, 0x001 },
		{ 0, 0x0021, 0x1340, 0x0c00, 0x000 },
		{ 0, 0x0001, 0x1340, 0, 0x000 },
		/* Forced. */
		{ 0x0300, 0x0de1, 0x0140, 0xac00, 0x281 },
		{ 0x0300, 0x0de1, 0x2100, 0x6c00, 0x141 },
		{ 0x0300, 0x0de1, 0x2000, 0x4c00, 0x140 },
		{ 0x0300, 0x0de1, 0x0100, 0x2c00, 0x001 },
		{ 0x0300, 0x0de1, 0x0000, 0x0c00, 0x000 },
	};
	struct host *h;
	unsigned int i;

	h = host_create(HOST_RAM);
	host_wr(h, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_ASDE);
	for (i = 0; i < nitems(speeds); i++) {
		phy_wr(h, 9, speeds[i].gctrl);
		phy_wr(h, 4, speeds[i].adv);
		phy_wr(h, 0, speeds[i].ctrl);
		ATF_CHECK_EQ_MSG(speeds[i].m88, phy_rd(h, 17), "%u", i);
		ATF_CHECK_EQ_MSG(speeds[i].status |
		    (speeds[i].m88 != 0 ? E82545_STATUS_LU : 0),
		    host_rd(h, E82545_STATUS), "%u: %#x", i,
		    host_rd(h, E82545_STATUS));
	}
	/* An offer counts when negotiation is started over. */
	phy_wr(h, 0, 0x1340);
	phy_wr(h, 9, 0);
	ATF_CHECK_EQ(0xac00, phy_rd(h, 17));
	phy_wr(h, 0, 0x1340);
	ATF_CHECK_EQ(0x6c00, phy_rd(h, 17));
	host_destroy(h);
}

/* As Linux's e1000 sets it up for `ethtool -t', with and without a cable. */
ATF_TC(loopback);
ATF_TC_HEAD(loopback, tc)
{
	atf_tc_set_md_var(tc, "descr",
	    "PHY loopback as Linux's ethtool -t sets it up");
}
ATF_TC_BODY(loopback, tc __unused)
{
	uint8_t frame[1024], got[2048];
	struct host *h;
	unsigned int cable, i;

	h = host_create(HOST_RAM);
	memset(frame, 0xff, sizeof(frame));
	memset(frame + 512, 0xaa, 511);
	for (cable = 0; cable < 2; cable++) {
		host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		e82545_link(h->dev, cable == 1);
		host_up(h, 256, 256, 2048);
		ATF_CHECK(!e82545_loopback(h->dev));

		phy_wr(h, 16, 0x0808);
		phy_wr(h, 0, 0x9140);
		phy_wr(h, 0, 0x8140);
		phy_wr(h, 0, 0x4140);
		host_wr(h, E82545_CTRL, E82545_CTRL_SLU |
		    E82545_CTRL_FRCSPD | E82545_CTRL_FRCDPX |
		    E82545_CTRL_SPEED_1000 | E82545_CTRL_FD |
		    E82545_CTRL_ILOS);
		phy_wr(h, 29, 0x001f);
		phy_wr(h, 30, 0x8ffc);
		phy_wr(h, 29, 0x001a);
		phy_wr(h, 30, 0x8ff0);
		ATF_CHECK_EQ(0x4140, phy_rd(h, 0));
		ATF_CHECK(e82545_loopback(h->dev));
		ATF_CHECK(mac_link(h));

		for (i = 0; i < 64; i++)
			host_tx_frame(h, frame, sizeof(frame), 0);
		host_tx_go(h);
		host_run(h);
		for (i = 0; i < 64; i++) {
			ATF_REQUIRE_EQ((ssize_t)sizeof(frame),
			    host_rx_take(h, got, sizeof(got), NULL));
			ATF_CHECK_EQ(0, memcmp(frame, got, sizeof(frame)));
		}
		ATF_CHECK_EQ(0, host_sent(h));

		/* And back. */
		phy_wr(h, 0, phy_rd(h, 0) & ~0x4000);
		phy_wr(h, 0, phy_rd(h, 0) | 0x8000);
		ATF_CHECK(!e82545_loopback(h->dev));
		ATF_CHECK_EQ(cable == 1, mac_link(h));
	}
	/* Powered down it loops nothing. */
	phy_wr(h, 0, 0x4940);
	ATF_CHECK(!e82545_loopback(h->dev));
	host_destroy(h);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, eeprom_contents);
	ATF_TP_ADD_TC(tp, eeprom_access);
	ATF_TP_ADD_TC(tp, eeprom_write);
	ATF_TP_ADD_TC(tp, hostile);
	ATF_TP_ADD_TC(tp, phy_registers);
	ATF_TP_ADD_TC(tp, mdic);
	ATF_TP_ADD_TC(tp, phy_link);
	ATF_TP_ADD_TC(tp, phy_speed);
	ATF_TP_ADD_TC(tp, loopback);
	return (atf_no_error());
}
