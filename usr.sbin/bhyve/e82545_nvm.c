/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * EEPROM and PHY of the 82545EM: what drivers see through EECD, EERD and MDIC.
 *
 * The EEPROM is a 93C46: 64 words on a Microwire bus of four wires (chip
 * select, clock, data in and out), which software moves by hand through EECD.
 * It lives as long as the adapter: a guest may write it, and a reset keeps it.
 *
 * The PHY is a Marvell 88E1011, at address 1.  Its partner is a switch port
 * that can do every speed, and no flow control; negotiation takes no time.
 * The link as the MAC sees it (STATUS) follows from cable, PHY and CTRL in
 * one place, phy_update().
 *
 * 8254x SDM chapter 5 (EEPROM map), sections 13.4.2 to 13.4.4, and 13.4.7.1
 * (PHY registers).
 *
 * Everything here runs under reg_mtx.
 */

#include <stdlib.h>
#include <string.h>

#include "e82545_impl.h"
#include "e82545_snap.h"

/*
 * EEPROM words: 8254x SDM table 5-2.  Others are 0xffff, as erased.
 */
#define	NVM_WORDS	64
#define	NVM_ADDR_BITS	6

#define	NVM_MAC		0x00	/* to 0x02 */
#define	NVM_COMPAT	0x03
#define	 NVM_COMPAT_SERVER	0x0400
#define	NVM_VERSION	0x05	/* of the image; 0: it has none to tell */
#define	NVM_PBA		0x08	/* and 0x09: part number of the board */
#define	NVM_INIT1	0x0a
#define	 NVM_INIT1_IDS		0x0003	/* the four words below count */
#define	 NVM_INIT1_PM		0x0008	/* power management */
#define	 NVM_INIT1_FD		0x0400	/* full duplex */
#define	 NVM_INIT1_VALID	0x4000	/* signature of a valid EEPROM */
#define	NVM_SUBDEVICE	0x0b
#define	NVM_SUBVENDOR	0x0c
#define	NVM_DEVICE	0x0d
#define	NVM_VENDOR	0x0e
#define	NVM_INIT2	0x0f
#define	 NVM_INIT2_PAUSE	0x3000	/* able to do flow control */
#define	NVM_INIT3	0x24
#define	 NVM_INIT3_NO_APM	0x0000	/* does not wake the machine */
#define	NVM_CHECKSUM	0x3f
#define	 NVM_SUM		0xbaba	/* of all words */

/* Microwire instructions: start bit, two bits of these, address. */
#define	MW_EXTENDED	0	/* the address' two high bits tell: */
#define	 MW_EWDS	0	/*   write disable */
#define	 MW_WRAL	1	/*   write all words */
#define	 MW_ERAL	2	/*   erase all words */
#define	 MW_EWEN	3	/*   write enable */
#define	MW_WRITE	1
#define	MW_READ		2
#define	MW_ERASE	3

enum mw_state {
	MW_IDLE,		/* waiting for the start bit */
	MW_COMMAND,		/* shifting in instruction and address */
	MW_DATA_OUT,		/* shifting out words */
	MW_DATA_IN,		/* shifting in the word to write */
	MW_DONE,		/* done, until chip select falls */
};

/* PHY registers: IEEE 802.3 clause 22, from 16 on Marvell's. */
#define	PHY_ADDRESS	1
#define	PHY_NREGS	32
#define	PHY_CTRL	0
#define	 PHY_CTRL_SPEED_1000	0x0040
#define	 PHY_CTRL_FD		0x0100
#define	 PHY_CTRL_RESTART	0x0200	/* self clearing */
#define	 PHY_CTRL_POWERDOWN	0x0800
#define	 PHY_CTRL_AUTONEG	0x1000
#define	 PHY_CTRL_SPEED_100	0x2000
#define	 PHY_CTRL_LOOPBACK	0x4000
#define	 PHY_CTRL_RESET		0x8000	/* self clearing */
#define	PHY_STATUS	1
#define	 PHY_STATUS_LINK	0x0004	/* latches low */
#define	 PHY_STATUS_AUTONEG	0x0020	/* complete */
#define	PHY_ID1		2
#define	PHY_ID2		3
#define	PHY_ADV		4
#define	 PHY_ADV_10_HD		0x0020
#define	 PHY_ADV_10_FD		0x0040
#define	 PHY_ADV_100_HD		0x0080
#define	 PHY_ADV_100_FD		0x0100
#define	PHY_PARTNER	5
#define	PHY_EXPANSION	6
#define	 PHY_EXPANSION_PARTNER	0x0001	/* the partner negotiates */
#define	PHY_NEXT_PAGE	7
#define	PHY_GCTRL	9
#define	 PHY_GCTRL_HD		0x0100
#define	 PHY_GCTRL_FD		0x0200
#define	PHY_GSTATUS	10
#define	PHY_EXT_STATUS	15
#define	PHY_M88_CTRL	16
#define	PHY_M88_STATUS	17
#define	 PHY_M88_1000		0x8000
#define	 PHY_M88_100		0x4000
#define	 PHY_M88_FD		0x2000
#define	 PHY_M88_RESOLVED	0x0800
#define	 PHY_M88_LINK		0x0400
#define	PHY_M88_INT_ENABLE	18
#define	PHY_M88_INT_STATUS	19
#define	 PHY_M88_INT_LINK	0x0400
#define	PHY_M88_EXT_CTRL	20
#define	PHY_M88_EXT_CTRL2	26
#define	PHY_M88_LED		24
#define	PHY_M88_PAGE	29
#define	PHY_M88_PAGED	30

/*
 * What comes out of reset, and which bits stay as written.  Link, speed and
 * partner are added when read.
 */
static const struct {
	uint16_t	reset;
	uint16_t	mask;
} phy_regs[PHY_NREGS] = {
	[PHY_CTRL] =		{ 0x1140, 0x7dc0 },
	[PHY_STATUS] =		{ 0x7949, 0 },
	[PHY_ID1] =		{ 0x0141, 0 },
	[PHY_ID2] =		{ 0x0c20, 0 },
	[PHY_ADV] =		{ 0x0de1, 0xbfff },
	[PHY_EXPANSION] =	{ 0x0004, 0 },
	[PHY_NEXT_PAGE] =	{ 0x2001, 0xbfff },
	[PHY_GCTRL] =		{ 0x0300, 0xff00 },
	[PHY_EXT_STATUS] =	{ 0x3000, 0 },
	[PHY_M88_CTRL] =	{ 0x0068, 0xffff },
	[PHY_M88_INT_ENABLE] =	{ 0x0000, 0xffff },
	[PHY_M88_EXT_CTRL] =	{ 0x0d60, 0xffff },
	[PHY_M88_LED] =		{ 0x4100, 0xffff },
	[PHY_M88_EXT_CTRL2] =	{ 0x0000, 0xffff },
	[PHY_M88_PAGE] =	{ 0x0000, 0xffff },
};

/* A speed the two ends agreed on, or software forced. */
enum phy_speed { PHY_NONE, PHY_10, PHY_100, PHY_1000 };

struct e82545_nvm {
	uint16_t	words[NVM_WORDS];
	bool		write_enabled;

	enum mw_state	state;
	uint32_t	nbits;		/* shifted in this state */
	uint32_t	shift;
	uint32_t	opcode, addr;
	bool		data_out;	/* the level of DO */

	uint16_t	phy[PHY_NREGS];
	uint16_t	paged[PHY_NREGS];	/* behind PHY_M88_PAGED */
	enum phy_speed	speed;
	bool		duplex;
	bool		link;		/* as the MAC was told */
	bool		link_low;	/* it was down since STATUS was read */
};

/*
 * EEPROM contents.
 */

static void
nvm_fill(struct e82545_nvm *nvm, const uint8_t mac[6], uint16_t subdevice)
{
	uint16_t sum;
	int i;

	memset(nvm->words, 0xff, sizeof(nvm->words));
	for (i = 0; i < 3; i++)
		nvm->words[NVM_MAC + i] = mac[2 * i] | mac[2 * i + 1] << 8;
	nvm->words[NVM_COMPAT] = NVM_COMPAT_SERVER;
	nvm->words[NVM_VERSION] = 0;
	nvm->words[NVM_PBA] = 0;
	nvm->words[NVM_PBA + 1] = 0;
	nvm->words[NVM_INIT1] = NVM_INIT1_VALID | NVM_INIT1_FD |
	    NVM_INIT1_PM | NVM_INIT1_IDS;
	nvm->words[NVM_SUBDEVICE] = subdevice;
	nvm->words[NVM_SUBVENDOR] = E82545_PCI_VENDOR;
	nvm->words[NVM_DEVICE] = E82545_PCI_DEVICE;
	nvm->words[NVM_VENDOR] = E82545_PCI_VENDOR;
	nvm->words[NVM_INIT2] = NVM_INIT2_PAUSE;
	nvm->words[NVM_INIT3] = NVM_INIT3_NO_APM;
	sum = 0;
	for (i = 0; i < NVM_CHECKSUM; i++)
		sum += nvm->words[i];
	nvm->words[NVM_CHECKSUM] = NVM_SUM - sum;
}

struct e82545_nvm *
e82545_nvm_create(const uint8_t mac[6], uint16_t subdevice)
{
	struct e82545_nvm *nvm;

	nvm = calloc(1, sizeof(*nvm));
	if (nvm == NULL)
		return (NULL);
	nvm_fill(nvm, mac, subdevice);
	return (nvm);
}

void
e82545_nvm_destroy(struct e82545_nvm *nvm)
{
	free(nvm);
}

uint16_t
e82545_nvm_word(const struct e82545 *dev, unsigned int word)
{
	return (dev->nvm->words[word % NVM_WORDS]);
}

/*
 * The Microwire bus.
 */

/* All of the instruction and address is in. */
static void
mw_decode(struct e82545_nvm *nvm)
{
	nvm->opcode = nvm->shift >> NVM_ADDR_BITS & 3;
	nvm->addr = nvm->shift & (NVM_WORDS - 1);
	nvm->shift = 0;
	nvm->nbits = 0;
	nvm->state = MW_DONE;
	switch (nvm->opcode) {
	case MW_READ:
		/* A 0 comes out first, with the last bit of the address. */
		nvm->data_out = false;
		nvm->state = MW_DATA_OUT;
		break;
	case MW_WRITE:
		nvm->state = MW_DATA_IN;
		break;
	case MW_EXTENDED:
		switch (nvm->addr >> (NVM_ADDR_BITS - 2)) {
		case MW_EWEN:
			nvm->write_enabled = true;
			break;
		case MW_EWDS:
			nvm->write_enabled = false;
			break;
		case MW_WRAL:
			nvm->state = MW_DATA_IN;
			break;
		}
		break;
	}
}

/* A rising edge of the clock with the chip selected. */
static void
mw_clock(struct e82545_nvm *nvm, bool data_in)
{
	switch (nvm->state) {
	case MW_IDLE:
		if (data_in) {
			nvm->state = MW_COMMAND;
			nvm->shift = 0;
			nvm->nbits = 0;
		}
		break;
	case MW_COMMAND:
		nvm->shift = nvm->shift << 1 | data_in;
		if (++nvm->nbits == 2 + NVM_ADDR_BITS)
			mw_decode(nvm);
		break;
	case MW_DATA_OUT:
		nvm->data_out = (nvm->words[nvm->addr] >>
		    (15 - nvm->nbits) & 1) != 0;
		if (++nvm->nbits == 16) {
			nvm->nbits = 0;
			nvm->addr = (nvm->addr + 1) % NVM_WORDS;
		}
		break;
	case MW_DATA_IN:
		nvm->shift = (nvm->shift << 1 | data_in) & 0xffff;
		if (++nvm->nbits == 16)
			nvm->state = MW_DONE;
		break;
	case MW_DONE:
		break;
	}
}

/* Chip select falls: what was shifted in completely is carried out. */
static void
mw_deselect(struct e82545_nvm *nvm)
{
	unsigned int i;

	if (nvm->state == MW_DONE && nvm->write_enabled) {
		if (nvm->opcode == MW_WRITE)
			nvm->words[nvm->addr] = nvm->shift;
		else if (nvm->opcode == MW_ERASE)
			nvm->words[nvm->addr] = 0xffff;
		else if (nvm->opcode == MW_EXTENDED)
			switch (nvm->addr >> (NVM_ADDR_BITS - 2)) {
			case MW_ERAL:
				memset(nvm->words, 0xff, sizeof(nvm->words));
				break;
			case MW_WRAL:
				for (i = 0; i < NVM_WORDS; i++)
					nvm->words[i] = nvm->shift;
				break;
			}
	}
	nvm->state = MW_IDLE;
	/* When selected again it says that it is ready. */
	nvm->data_out = true;
}

#define	EECD_WIRES	(E82545_EECD_SK | E82545_EECD_CS | E82545_EECD_DI)

/* Access is granted when asked for: nobody else uses the EEPROM. */
uint32_t
e82545_eecd_read(struct e82545 *dev, uint32_t off)
{
	uint32_t eecd;

	eecd = e82545_reg(dev, off);
	if ((eecd & E82545_EECD_REQ) != 0) {
		eecd |= E82545_EECD_GNT;
		if (dev->nvm->data_out)
			eecd |= E82545_EECD_DO;
	}
	return (eecd);
}

void
e82545_eecd_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	struct e82545_nvm *nvm = dev->nvm;
	uint32_t old;

	/* Without access the wires are not driven. */
	if ((value & E82545_EECD_REQ) == 0)
		value &= ~EECD_WIRES;
	old = e82545_reg(dev, off);
	e82545_reg_set(dev, off, value);

	if ((old & E82545_EECD_CS) != 0 && (value & E82545_EECD_CS) == 0)
		mw_deselect(nvm);
	if ((old & value & E82545_EECD_CS) != 0 &&
	    (old & E82545_EECD_SK) == 0 && (value & E82545_EECD_SK) != 0)
		mw_clock(nvm, (value & E82545_EECD_DI) != 0);
}

/* The read is done at once.  Six bits of the address reach the EEPROM. */
void
e82545_eerd_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	uint32_t data;

	if ((value & E82545_EERD_START) == 0) {
		e82545_reg_set(dev, off, value & E82545_EERD_ADDR_MASK);
		return;
	}
	data = e82545_nvm_word(dev, E82545_EERD_ADDR(value));
	e82545_reg_set(dev, off, data << E82545_EERD_DATA_SHIFT |
	    (value & E82545_EERD_ADDR_MASK) | E82545_EERD_DONE);
}

/*
 * The PHY.
 */

/* What both ends can do best, or what software asked for. */
static void
phy_negotiate(struct e82545_nvm *nvm)
{
	uint16_t adv, ctrl, gctrl;

	ctrl = nvm->phy[PHY_CTRL];
	adv = nvm->phy[PHY_ADV];
	gctrl = nvm->phy[PHY_GCTRL];
	if ((ctrl & PHY_CTRL_AUTONEG) == 0) {
		nvm->duplex = (ctrl & PHY_CTRL_FD) != 0;
		if ((ctrl & PHY_CTRL_SPEED_1000) != 0)
			nvm->speed = PHY_1000;
		else if ((ctrl & PHY_CTRL_SPEED_100) != 0)
			nvm->speed = PHY_100;
		else
			nvm->speed = PHY_10;
	} else if ((gctrl & (PHY_GCTRL_FD | PHY_GCTRL_HD)) != 0) {
		nvm->speed = PHY_1000;
		nvm->duplex = (gctrl & PHY_GCTRL_FD) != 0;
	} else if ((adv & (PHY_ADV_100_FD | PHY_ADV_100_HD)) != 0) {
		nvm->speed = PHY_100;
		nvm->duplex = (adv & PHY_ADV_100_FD) != 0;
	} else if ((adv & (PHY_ADV_10_FD | PHY_ADV_10_HD)) != 0) {
		nvm->speed = PHY_10;
		nvm->duplex = (adv & PHY_ADV_10_FD) != 0;
	} else {
		nvm->speed = PHY_NONE;
		nvm->duplex = false;
	}
}

static void
phy_defaults(struct e82545_nvm *nvm)
{
	int i;

	for (i = 0; i < PHY_NREGS; i++)
		nvm->phy[i] = phy_regs[i].reset;
	memset(nvm->paged, 0, sizeof(nvm->paged));
	phy_negotiate(nvm);
}

/* Whether the PHY has a link, be it to itself. */
static bool
phy_has_link(const struct e82545 *dev)
{
	const struct e82545_nvm *nvm = dev->nvm;

	if ((e82545_reg(dev, E82545_CTRL) & E82545_CTRL_PHY_RST) != 0 ||
	    (nvm->phy[PHY_CTRL] & PHY_CTRL_POWERDOWN) != 0)
		return (false);
	if ((nvm->phy[PHY_CTRL] & PHY_CTRL_LOOPBACK) != 0)
		return (true);
	return (dev->link_up && nvm->speed != PHY_NONE);
}

/* For the workers, who do not take reg_mtx for it. */
static void
phy_tell_loopback(struct e82545 *dev)
{
	__atomic_store_n(&dev->phy_loopback, (dev->nvm->phy[PHY_CTRL] &
	    (PHY_CTRL_LOOPBACK | PHY_CTRL_POWERDOWN)) == PHY_CTRL_LOOPBACK,
	    __ATOMIC_RELAXED);
}

/*
 * STATUS from PHY and CTRL: sections 13.4.1, 13.4.2.  `bounced' tells that
 * the link went down on the way, even if it is up again.
 */
static void
phy_update(struct e82545 *dev, bool bounced)
{
	struct e82545_nvm *nvm = dev->nvm;
	uint32_t ctrl, speed, status;
	bool up;

	phy_tell_loopback(dev);
	ctrl = e82545_reg(dev, E82545_CTRL);
	up = phy_has_link(dev);
	if (!up || bounced)
		nvm->link_low = true;
	up = up && (ctrl & E82545_CTRL_SLU) != 0;

	/* CTRL, STATUS and ASDV number the speeds alike: 0, 1, 2. */
	speed = nvm->speed == PHY_NONE ? 0 : nvm->speed - PHY_10;
	status = speed << 8;
	if ((ctrl & E82545_CTRL_FRCSPD) != 0)
		speed = (ctrl & E82545_CTRL_SPEED) >> 8;
	status |= speed << 6;
	if ((ctrl & E82545_CTRL_FRCDPX) != 0 ?
	    (ctrl & E82545_CTRL_FD) != 0 : nvm->duplex)
		status |= E82545_STATUS_FD;
	if (up)
		status |= E82545_STATUS_LU;
	e82545_reg_set(dev, E82545_STATUS, status);

	if (up != nvm->link || (up && bounced)) {
		nvm->link = up;
		nvm->phy[PHY_M88_INT_STATUS] |= PHY_M88_INT_LINK;
		e82545_intr_raise(dev, E82545_ICR_LSC);
	}
}

void
e82545_phy_link(struct e82545 *dev, bool up)
{
	dev->link_up = up;
	if ((e82545_reg(dev, E82545_CTRL) & E82545_CTRL_PHY_RST) != 0)
		phy_defaults(dev->nvm);
	phy_update(dev, false);
}

/*
 * The registers have their reset values already, CTRL.SLU is 0 and so the MAC
 * has no link: that is no change to report.
 */
void
e82545_nvm_reset(struct e82545 *dev)
{
	struct e82545_nvm *nvm = dev->nvm;

	nvm->state = MW_IDLE;
	nvm->write_enabled = false;
	nvm->data_out = true;
	nvm->link = false;
	phy_defaults(nvm);
	phy_update(dev, true);
}

static uint16_t
phy_read(struct e82545 *dev, unsigned int reg)
{
	struct e82545_nvm *nvm = dev->nvm;
	uint16_t value;
	bool autoneg, link;

	value = nvm->phy[reg];
	link = phy_has_link(dev);
	autoneg = link && (nvm->phy[PHY_CTRL] & (PHY_CTRL_AUTONEG |
	    PHY_CTRL_LOOPBACK)) == PHY_CTRL_AUTONEG;
	switch (reg) {
	case PHY_STATUS:
		if (link && !nvm->link_low)
			value |= PHY_STATUS_LINK;
		if (autoneg)
			value |= PHY_STATUS_AUTONEG;
		nvm->link_low = !link;
		break;
	case PHY_PARTNER:
		/* All of 10 and 100 Mb/s, no pause, acknowledged. */
		if (autoneg)
			value = 0x41e1;
		break;
	case PHY_EXPANSION:
		if (autoneg)
			value |= PHY_EXPANSION_PARTNER;
		break;
	case PHY_GSTATUS:
		/* 1000 Mb/s, both receivers fine, this end is master. */
		if (autoneg)
			value = 0x7c00;
		break;
	case PHY_M88_STATUS:
		if (link) {
			value |= PHY_M88_LINK | PHY_M88_RESOLVED;
			if (nvm->duplex)
				value |= PHY_M88_FD;
			if (nvm->speed == PHY_1000)
				value |= PHY_M88_1000;
			else if (nvm->speed == PHY_100)
				value |= PHY_M88_100;
		}
		break;
	case PHY_M88_INT_STATUS:
		nvm->phy[reg] = 0;
		break;
	case PHY_M88_PAGED:
		value = nvm->paged[nvm->phy[PHY_M88_PAGE] % PHY_NREGS];
		break;
	}
	return (value);
}

/*
 * Settings of speed and negotiation take effect when negotiation is started
 * over, by RESTART or a software reset, or at once where it is turned off.
 */
static void
phy_ctrl_write(struct e82545 *dev, uint16_t old, uint16_t value)
{
	struct e82545_nvm *nvm = dev->nvm;
	bool bounced;

	bounced = (value & PHY_CTRL_RESET) != 0 ||
	    (value & (PHY_CTRL_AUTONEG | PHY_CTRL_RESTART)) ==
	    (PHY_CTRL_AUTONEG | PHY_CTRL_RESTART) ||
	    ((old ^ value) & (PHY_CTRL_AUTONEG | PHY_CTRL_LOOPBACK)) != 0;
	if (bounced || (value & PHY_CTRL_AUTONEG) == 0)
		phy_negotiate(nvm);
	phy_update(dev, bounced);
}

static void
phy_write(struct e82545 *dev, unsigned int reg, uint16_t value)
{
	struct e82545_nvm *nvm = dev->nvm;
	uint16_t old;

	if (reg == PHY_M88_PAGED) {
		nvm->paged[nvm->phy[PHY_M88_PAGE] % PHY_NREGS] = value;
		return;
	}
	old = nvm->phy[reg];
	nvm->phy[reg] = (old & ~phy_regs[reg].mask) |
	    (value & phy_regs[reg].mask);
	if (reg == PHY_CTRL)
		phy_ctrl_write(dev, old, value);
}

/*
 * An access is complete at once.  One to another address than the PHY's, and
 * one that is neither read nor write, is in error: section 13.4.7.
 */
void
e82545_mdic_write(struct e82545 *dev, uint32_t off, uint32_t value)
{
	uint32_t mdic;

	mdic = value & ~(E82545_MDIC_READY | E82545_MDIC_ERROR);
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

static void
phy_snap(struct e82545_nvm *nvm, struct e82545_snap *s)
{
	uint16_t own;
	uint8_t speed;
	int i;

	for (i = 0; i < PHY_NREGS; i++) {
		own = i == PHY_M88_INT_STATUS ? PHY_M88_INT_LINK : 0;
		e82545_snap_u16(s, &nvm->phy[i], UINT16_MAX);
		e82545_snap_check(s, ((nvm->phy[i] ^ phy_regs[i].reset) &
		    ~(phy_regs[i].mask | own)) == 0);
		e82545_snap_u16(s, &nvm->paged[i], UINT16_MAX);
	}
	speed = nvm->speed;
	e82545_snap_u8(s, &speed, PHY_1000);
	nvm->speed = speed;
	e82545_snap_bool(s, &nvm->duplex);
	e82545_snap_bool(s, &nvm->link);
	e82545_snap_bool(s, &nvm->link_low);
}

/* How far a state shifts before it goes over into the next. */
static unsigned int
mw_bits(enum mw_state state)
{
	switch (state) {
	case MW_COMMAND:
		return (2 + NVM_ADDR_BITS - 1);
	case MW_DATA_OUT:
	case MW_DATA_IN:
		return (15);
	default:
		return (16);
	}
}

void
e82545_nvm_snap(struct e82545 *dev, struct e82545_snap *s)
{
	struct e82545_nvm *nvm = dev->nvm;
	uint8_t state;
	int i;

	for (i = 0; i < NVM_WORDS; i++)
		e82545_snap_u16(s, &nvm->words[i], UINT16_MAX);
	e82545_snap_bool(s, &nvm->write_enabled);
	state = nvm->state;
	e82545_snap_u8(s, &state, MW_DONE);
	nvm->state = state;
	e82545_snap_u32(s, &nvm->nbits, mw_bits(nvm->state));
	e82545_snap_u32(s, &nvm->shift, UINT16_MAX);
	e82545_snap_u32(s, &nvm->opcode, MW_ERASE);
	e82545_snap_u32(s, &nvm->addr, NVM_WORDS - 1);
	e82545_snap_bool(s, &nvm->data_out);
	phy_snap(nvm, s);
	phy_tell_loopback(dev);
}
