/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The PHY, as drivers access it through MDIC.
 *
 * It is one of Marvell's, at address 1.  Its link partner is a switch port
 * that supports every speed but not flow control; negotiation takes no time.
 * phy_update() is the one place where the MAC's view of the link (STATUS)
 * follows from the cable, the PHY and CTRL.
 *
 * 8254x SDM sections 13.4.1 and 13.4.2 (CTRL, STATUS), 13.4.7 (MDIC) and
 * 13.4.7.1 (PHY registers).
 *
 * Everything here runs under reg_mtx.
 */

#include <string.h>

#include "e82545_impl.h"
#include "e82545_intr.h"
#include "e82545_phy.h"
#include "e82545_salvage.h"
#include "e82545_snap.h"
#include "e82545_type.h"

#define	PHY_ADDRESS	1

/* The speed that negotiation or software selected. */
enum phy_speed { PHY_NONE, PHY_10, PHY_100, PHY_1000 };

struct e82545_phy {
	uint16_t	regs[E82545_PHY_NREGS];
	uint16_t	paged[E82545_PHY_NREGS];	/* reached through
						   PHY_M88_PAGED */
	enum phy_speed	speed;
	bool		duplex;
	bool		link;		/* as reported, by LSC */
	bool		link_low;	/* down since PHY_STATUS was read */
};

bool
e82545_phy_unseen(const struct e82545 *dev)
{
	return (dev->phy->link_low);
}

size_t
e82545_phy_size(void)
{
	return (sizeof(struct e82545_phy));
}

/* Select the best mode of both ends, or the one that software forces. */
static void
phy_negotiate(struct e82545_phy *phy)
{
	uint16_t adv, ctrl, gctrl;

	ctrl = phy->regs[PHY_CTRL];
	adv = phy->regs[PHY_ADV];
	gctrl = phy->regs[PHY_GCTRL];
	if ((ctrl & PHY_CTRL_AUTONEG) == 0) {
		phy->duplex = (ctrl & PHY_CTRL_FD) != 0;
		if ((ctrl & PHY_CTRL_SPEED_1000) != 0)
			phy->speed = PHY_1000;
		else if ((ctrl & PHY_CTRL_SPEED_100) != 0)
			phy->speed = PHY_100;
		else
			phy->speed = PHY_10;
	} else if ((gctrl & (PHY_GCTRL_FD | PHY_GCTRL_HD)) != 0) {
		phy->speed = PHY_1000;
		phy->duplex = (gctrl & PHY_GCTRL_FD) != 0;
	} else if ((adv & (PHY_ADV_100_FD | PHY_ADV_100_HD)) != 0) {
		phy->speed = PHY_100;
		phy->duplex = (adv & PHY_ADV_100_FD) != 0;
	} else if ((adv & (PHY_ADV_10_FD | PHY_ADV_10_HD)) != 0) {
		phy->speed = PHY_10;
		phy->duplex = (adv & PHY_ADV_10_FD) != 0;
	} else {
		phy->speed = PHY_NONE;
		phy->duplex = false;
	}
}

static void
phy_defaults(const struct e82545 *dev)
{
	struct e82545_phy *phy = dev->phy;
	int i;

	for (i = 0; i < E82545_PHY_NREGS; i++)
		phy->regs[i] = dev->type->et_phy[i].epr_reset;
	memset(phy->paged, 0, sizeof(phy->paged));
	phy_negotiate(phy);
}

/* Return whether the PHY has a link; in loopback it has one to itself. */
static bool
phy_has_link(const struct e82545 *dev)
{
	const struct e82545_phy *phy = dev->phy;

	if ((e82545_reg(dev, E82545_CTRL) & E82545_CTRL_PHY_RST) != 0 ||
	    (phy->regs[PHY_CTRL] & PHY_CTRL_POWERDOWN) != 0)
		return (false);
	if ((phy->regs[PHY_CTRL] & PHY_CTRL_LOOPBACK) != 0)
		return (true);
	return (dev->link_up && phy->speed != PHY_NONE);
}

/* Publish PHY loopback to the workers, which read it without reg_mtx. */
static void
phy_publish_loopback(struct e82545 *dev)
{
	atomic_store_bool(&dev->phy_loopback, (dev->phy->regs[PHY_CTRL] &
	    (PHY_CTRL_LOOPBACK | PHY_CTRL_POWERDOWN)) == PHY_CTRL_LOOPBACK);
}

/* Derive STATUS from PHY and CTRL.  Returns whether the MAC has a link. */
static bool
phy_status(struct e82545 *dev)
{
	const struct e82545_phy *phy = dev->phy;
	uint32_t ctrl, speed, status;
	bool up;

	ctrl = e82545_reg(dev, E82545_CTRL);
	up = phy_has_link(dev) && (ctrl & E82545_CTRL_SLU) != 0;

	/* CTRL.SPEED, STATUS.SPEED and STATUS.ASDV encode alike: 0, 1, 2. */
	speed = phy->speed == PHY_NONE ? 0 : phy->speed - PHY_10;
	status = speed << 8;
	if ((ctrl & E82545_CTRL_FRCSPD) != 0)
		speed = (ctrl & E82545_CTRL_SPEED) >> 8;
	status |= speed << 6;
	if ((ctrl & E82545_CTRL_FRCDPX) != 0 ?
	    (ctrl & E82545_CTRL_FD) != 0 : phy->duplex)
		status |= E82545_STATUS_FD;
	if (up)
		status |= E82545_STATUS_LU;
	e82545_reg_set(dev, E82545_STATUS, status);
	return (up);
}

/*
 * Update the link after a change of what decides about it.  `bounced' means
 * that the link went down in between, even if it is up again.
 */
static void
phy_update(struct e82545 *dev, bool bounced)
{
	struct e82545_phy *phy = dev->phy;
	bool up, was;

	phy_publish_loopback(dev);
	if (!phy_has_link(dev) || bounced)
		phy->link_low = true;
	was = (e82545_reg(dev, E82545_STATUS) & E82545_STATUS_LU) != 0;
	up = phy_status(dev);
	if (up != was || up != phy->link || (up && bounced)) {
		phy->link = up;
		phy->regs[PHY_M88_INT_STATUS] |= PHY_M88_INT_LINK;
		e82545_intr_raise(dev, E82545_ICR_LSC);
	}
}

void
e82545_phy_link(struct e82545 *dev, bool up)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	dev->link_up = up;
	if ((e82545_reg(dev, E82545_CTRL) & E82545_CTRL_PHY_RST) != 0)
		phy_defaults(dev);
	phy_update(dev, false);
}

/*
 * Reset the PHY.  The register file already has its reset values, of which
 * CTRL.SLU is one: the link is up.  LSC reports that when the driver first
 * writes CTRL or a control register of the PHY, because negotiation takes
 * longer in hardware, and drivers clear ICR before.
 */
void
e82545_phy_reset(struct e82545 *dev)
{
	struct e82545_phy *phy = dev->phy;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	phy_defaults(dev);
	phy->link = false;
	phy->link_low = true;
	phy_publish_loopback(dev);
	phy_status(dev);
}

/* Return whether PHY_M88_PAGED is a window. */
static bool
phy_paged(const struct e82545 *dev, unsigned int reg)
{
	return (dev->type->et_phy_page == PHY_M88_PAGE && reg == PHY_M88_PAGED);
}

/*
 * Return whether a page is selected that has none: of PHY_BM_PAGE there is page
 * 0.
 */
static bool
phy_absent(const struct e82545 *dev, unsigned int reg)
{
	return (dev->type->et_phy_page == PHY_BM_PAGE && reg >= PHY_M88_CTRL &&
	    reg != PHY_BM_PAGE && dev->phy->regs[PHY_BM_PAGE] != 0);
}

static uint16_t
phy_read(struct e82545 *dev, unsigned int reg)
{
	struct e82545_phy *phy = dev->phy;
	uint16_t value;
	bool autoneg, link;

	if (phy_absent(dev, reg))
		return (0);
	if (phy_paged(dev, reg))
		return (phy->paged[phy->regs[PHY_M88_PAGE] %
		    E82545_PHY_NREGS]);
	value = phy->regs[reg];
	link = phy_has_link(dev);
	autoneg = link && (phy->regs[PHY_CTRL] & (PHY_CTRL_AUTONEG |
	    PHY_CTRL_LOOPBACK)) == PHY_CTRL_AUTONEG;
	switch (reg) {
	case PHY_STATUS:
		if (link && !phy->link_low)
			value |= PHY_STATUS_LINK;
		if (autoneg)
			value |= PHY_STATUS_AUTONEG;
		phy->link_low = !link;
		break;
	case PHY_PARTNER:
		/* All modes of 10 and 100 Mb/s, no pause, acknowledged. */
		if (autoneg)
			value = 0x41e1;
		break;
	case PHY_EXPANSION:
		if (autoneg)
			value |= PHY_EXPANSION_PARTNER;
		break;
	case PHY_GSTATUS:
		/* 1000 Mb/s, both receivers good, this end is master. */
		if (autoneg)
			value = 0x7c00;
		break;
	case PHY_M88_STATUS:
		if (link) {
			value |= PHY_M88_LINK | PHY_M88_RESOLVED;
			if (phy->duplex)
				value |= PHY_M88_FD;
			if (phy->speed == PHY_1000)
				value |= PHY_M88_1000;
			else if (phy->speed == PHY_100)
				value |= PHY_M88_100;
		}
		break;
	case PHY_M88_INT_STATUS:
		phy->regs[reg] = 0;
		break;
	}
	return (value);
}

/*
 * Write the control register.  New settings of speed and advertisement take
 * effect when RESTART or a software reset restarts negotiation, or at once if
 * negotiation is off.
 */
static void
phy_ctrl_write(struct e82545 *dev, uint16_t old, uint16_t value)
{
	struct e82545_phy *phy = dev->phy;
	bool bounced;

	bounced = (value & PHY_CTRL_RESET) != 0 ||
	    (value & (PHY_CTRL_AUTONEG | PHY_CTRL_RESTART)) ==
	    (PHY_CTRL_AUTONEG | PHY_CTRL_RESTART) ||
	    ((old ^ value) & (PHY_CTRL_AUTONEG | PHY_CTRL_LOOPBACK)) != 0;
	if (bounced || (value & PHY_CTRL_AUTONEG) == 0)
		phy_negotiate(phy);
	phy_update(dev, bounced);
}

static void
phy_write(struct e82545 *dev, unsigned int reg, uint16_t value)
{
	const uint16_t mask = dev->type->et_phy[reg].epr_mask;
	struct e82545_phy *phy = dev->phy;
	uint16_t old;

	if (phy_absent(dev, reg))
		return;
	if (phy_paged(dev, reg)) {
		phy->paged[phy->regs[PHY_M88_PAGE] % E82545_PHY_NREGS] = value;
		return;
	}
	old = phy->regs[reg];
	phy->regs[reg] = (old & ~mask) | (value & mask);
	if (reg == PHY_CTRL)
		phy_ctrl_write(dev, old, value);
}

/*
 * Carry out an access, which completes at once.  The access fails with MDIC.E
 * if the address is not the PHY's, or if the opcode is neither read nor write.
 */
void
e82545_mdic_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	uint32_t mdic;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	mdic = value & ~E82545_MDIC_ERROR;
	if (E82545_MDIC_PHY(value) != PHY_ADDRESS)
		mdic |= E82545_MDIC_ERROR;
	else if ((value & E82545_MDIC_OP) == E82545_MDIC_OP_READ)
		mdic = (mdic & ~E82545_MDIC_DATA) |
		    phy_read(dev, E82545_MDIC_REG(value));
	else if ((value & E82545_MDIC_OP) == E82545_MDIC_OP_WRITE)
		phy_write(dev, E82545_MDIC_REG(value),
		    value & E82545_MDIC_DATA);
	else
		mdic |= E82545_MDIC_ERROR;
	e82545_reg_set(dev, off, mdic | E82545_MDIC_READY);
	if ((value & E82545_MDIC_INT) != 0)
		e82545_intr_raise(dev, E82545_ICR_MDAC);
}

void
e82545_phy_snap(struct e82545 *dev, struct e82545_snap *s)
{
	const struct e82545_phy_reg *pr = dev->type->et_phy;
	struct e82545_phy *phy = dev->phy;
	uint16_t own;
	uint8_t speed;
	int i;

	for (i = 0; i < E82545_PHY_NREGS; i++) {
		own = i == PHY_M88_INT_STATUS ? PHY_M88_INT_LINK : 0;
		e82545_snap_u16(s, &phy->regs[i], UINT16_MAX);
		e82545_snap_check(s, ((phy->regs[i] ^ pr[i].epr_reset) &
		    ~(pr[i].epr_mask | own)) == 0);
		e82545_snap_u16(s, &phy->paged[i], UINT16_MAX);
	}
	speed = phy->speed;
	e82545_snap_u8(s, &speed, PHY_1000);
	phy->speed = speed;
	e82545_snap_bool(s, &phy->duplex);
	e82545_snap_bool(s, &phy->link);
	e82545_snap_bool(s, &phy->link_low);
	phy_publish_loopback(dev);
}

bool
e82545_phy_salvage(struct e82545 *dev, const struct e82545 *old)
{
	const struct e82545_phy *from = old->phy;
	struct e82545_phy *phy = dev->phy;

	*phy = *from;
	phy->duplex = e82545_salvage_bool(&from->duplex);
	phy->link = e82545_salvage_bool(&from->link);
	phy->link_low = e82545_salvage_bool(&from->link_low);
	return ((unsigned int)phy->speed <= PHY_1000);
}
