/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The PHY of the 82545EM as drivers use it through MDIC, and the link that the
 * MAC shows.
 */

#include <sys/param.h>

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "e82545_check.h"
#include "e82545_loop.h"

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

TEST(registers, "PHY ID, reset values and writable bits")
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
	/* Reading both clears the latched link failure. */
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
	/* Register 29 selects a page of register 30. */
	phy_wr(h, 29, 5);
	phy_wr(h, 30, 0x1111);
	phy_wr(h, 29, 6);
	ATF_CHECK_EQ(0, phy_rd(h, 30));
	phy_wr(h, 30, 0x2222);
	phy_wr(h, 29, 5);
	ATF_CHECK_EQ(0x1111, phy_rd(h, 30));

	/* CTRL.RST and CTRL.PHY_RST reset the PHY. */
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0, phy_rd(h, 29));
	phy_wr(h, 29, 5);
	ATF_CHECK_EQ(0, phy_rd(h, 30));
	phy_wr(h, 16, 0x0808);
	host_set(h, E82545_CTRL, E82545_CTRL_PHY_RST);
	host_clear(h, E82545_CTRL, E82545_CTRL_PHY_RST);
	ATF_CHECK_EQ(0x0068, phy_rd(h, 16));
	/* A software reset of the PHY keeps the settings. */
	phy_wr(h, 16, 0x0808);
	phy_wr(h, 0, 0x9140);
	ATF_CHECK_EQ(0x1140, phy_rd(h, 0));
	ATF_CHECK_EQ(0x0808, phy_rd(h, 16));
	host_destroy(h);
}

TEST(mdic, "MDIC: ready, error and interrupt bits")
{
	struct host *h;
	unsigned int i;
	uint32_t v;

	h = host_create(HOST_RAM);
	for (i = 0; i < 32; i++) {
		v = mdic(h, E82545_MDIC_OP_READ, i, 2, 0);
		ATF_CHECK_EQ(i != 1, (v & E82545_MDIC_ERROR) != 0);
	}
	/* A write to another address does not reach the PHY. */
	mdic(h, E82545_MDIC_OP_WRITE, 2, 16, 0x1111);
	ATF_CHECK_EQ(0x0068, phy_rd(h, 16));
	/* Neither read nor write. */
	ATF_CHECK((mdic(h, 0, 1, 2, 0) & E82545_MDIC_ERROR) != 0);
	ATF_CHECK((mdic(h, E82545_MDIC_OP, 1, 16, 0x1111) &
	    E82545_MDIC_ERROR) != 0);
	ATF_CHECK_EQ(0x0068, phy_rd(h, 16));
	/* READY and ERROR are read-only. */
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

HOST_TEST(link, host_create(HOST_RAM), "Cable, power, negotiation: PHY status, "
    "STATUS.LU, LSC")
{
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	phy_rd(h, 1);
	phy_rd(h, 19);

	/* The link failure stays latched until PHY status is read. */
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
	phy_rd(h, 1);
	ATF_CHECK_EQ(0x0024, phy_rd(h, 1) & 0x0024);
	e82545_link(h->dev, false);
	e82545_link(h->dev, true);
	ATF_CHECK_EQ(0, phy_rd(h, 1) & 0x0004);
	ATF_CHECK_EQ(0x0024, phy_rd(h, 1) & 0x0024);
	host_rd(h, E82545_ICR);
	/* A reset is one, too. */
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK_EQ(0, phy_rd(h, 1) & 0x0004);
	ATF_CHECK_EQ(0x0024, phy_rd(h, 1) & 0x0024);
	phy_rd(h, 19);
	host_rd(h, E82545_ICR);

	/* Power. */
	phy_wr(h, 0, 0x1940);
	ATF_CHECK(!mac_link(h));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	phy_wr(h, 0, 0x1140);
	ATF_CHECK(mac_link(h));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));

	/* Restarting negotiation takes the link down for a short time. */
	phy_rd(h, 1);
	phy_wr(h, 0, 0x1340);
	ATF_CHECK_EQ(0x1140, phy_rd(h, 0));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(mac_link(h));
	ATF_CHECK_EQ(0x0020, phy_rd(h, 1) & 0x0024);
	ATF_CHECK_EQ(0x0024, phy_rd(h, 1) & 0x0024);
	/* Without a cable the link does not change. */
	e82545_link(h->dev, false);
	host_rd(h, E82545_ICR);
	phy_wr(h, 0, 0x1340);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
}

TEST(speed, "Speed and duplex, negotiated and forced")
{
	static const struct {
		uint16_t	gctrl, adv, ctrl;
		uint16_t	m88;		/* PHY status, 0: no link */
		uint32_t	status;		/* MAC's, speed and duplex */
	} speeds[] = {
		/* Negotiated: the best mode advertised. */
		{ 0x0300, 0x0de1, 0x1340, 0xac00, 0x281 },
		{ 0x0100, 0x0de1, 0x1340, 0x8c00, 0x280 },
		{ 0, 0x01e1, 0x1340, 0x6c00, 0x141 },
		{ 0, 0x00e1, 0x1340, 0x4c00, 0x140 },
		{ 0x0200, 0x0de1, 0x1340, 0xac00, 0x281 },
		{ 0, 0x0101, 0x1340, 0x6c00, 0x141 },
		{ 0, 0x0041, 0x1340, 0x2c00, 0x001 },
		{ 0, 0x0001, 0x1340, 0, 0x000 },
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
	/* A new advertisement takes effect when negotiation restarts. */
	phy_wr(h, 0, 0x1340);
	phy_wr(h, 9, 0);
	ATF_CHECK_EQ(0xac00, phy_rd(h, 17));
	/* A write that does not restart it changes nothing. */
	phy_wr(h, 0, 0x1140);
	ATF_CHECK_EQ(0xac00, phy_rd(h, 17));
	phy_wr(h, 0, 0x1340);
	ATF_CHECK_EQ(0x6c00, phy_rd(h, 17));
	/* So does a software reset. */
	phy_wr(h, 9, 0x0300);
	phy_wr(h, 0, 0x9140);
	ATF_CHECK_EQ(0xac00, phy_rd(h, 17));

	/* The MAC forces speed, and duplex, and shows what was detected. */
	host_wr(h, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_FRCSPD |
	    1 << 8);
	ATF_CHECK_EQ(0x243, host_rd(h, E82545_STATUS));
	host_wr(h, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_FRCDPX |
	    1 << 8);
	ATF_CHECK_EQ(0x282, host_rd(h, E82545_STATUS));
	host_wr(h, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_FRCDPX |
	    E82545_CTRL_FD);
	ATF_CHECK_EQ(0x283, host_rd(h, E82545_STATUS));
	host_destroy(h);
}

TEST(bounce, "Which writes to the PHY's control register take the link down")
{
	static const struct {
		uint16_t	ctrl;
		bool		lsc;
		uint16_t	status;		/* negotiation complete */
		uint16_t	partner;
	} t[] = {
		{ 0x1140, false, 0x0020, 0x41e1 },	/* as it was */
		{ 0x9140, true, 0x0020, 0x41e1 },	/* reset */
		{ 0x1340, true, 0x0020, 0x41e1 },	/* restart */
		{ 0x0140, true, 0, 0 },		/* no negotiation */
		{ 0x0340, false, 0, 0 },	/* nothing to restart */
		{ 0x2100, false, 0, 0 },	/* speed */
		{ 0x6100, true, 0, 0 },		/* loopback */
		{ 0x7100, true, 0, 0 },		/* both */
		{ 0x7100, false, 0, 0 },
		{ 0x1140, true, 0x0020, 0x41e1 },
	};
	struct host *h;
	unsigned int i;

	h = host_create(HOST_RAM);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	phy_rd(h, 1);
	host_rd(h, E82545_ICR);
	for (i = 0; i < nitems(t); i++) {
		phy_wr(h, 0, t[i].ctrl);
		ATF_CHECK_EQ_MSG(t[i].lsc,
		    (host_rd(h, E82545_ICR) & E82545_ICR_LSC) != 0, "%u", i);
		ATF_CHECK_EQ_MSG(t[i].lsc ? 0 : 4, phy_rd(h, 1) & 4, "%u", i);
		ATF_CHECK_EQ_MSG(4, phy_rd(h, 1) & 4, "%u", i);
		ATF_CHECK_EQ_MSG(t[i].status, phy_rd(h, 1) & 0x20, "%u", i);
		ATF_CHECK_EQ_MSG(t[i].partner, phy_rd(h, 5), "%u", i);
		ATF_CHECK_EQ_MSG(t[i].partner != 0, phy_rd(h, 6) & 1, "%u", i);
		ATF_CHECK_EQ_MSG(t[i].partner != 0 ? 0x7c00 : 0,
		    phy_rd(h, 10), "%u", i);
	}
	/* The cable changes no register. */
	phy_wr(h, 16, 0x0808);
	e82545_link(h->dev, false);
	e82545_link(h->dev, true);
	ATF_CHECK_EQ(0x0808, phy_rd(h, 16));
	host_destroy(h);
}

/* What Linux's e1000 does for `ethtool -t', with and without a cable. */
TEST(loopback, "PHY loopback as Linux's ethtool -t sets it up")
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
	/* Power-down disables loopback, and so does a reset. */
	phy_wr(h, 0, 0x4940);
	ATF_CHECK(!e82545_loopback(h->dev));
	phy_wr(h, 0, 0x4140);
	ATF_CHECK(e82545_loopback(h->dev));
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK(!e82545_loopback(h->dev));
	host_destroy(h);
}

TEST_PROGRAM
