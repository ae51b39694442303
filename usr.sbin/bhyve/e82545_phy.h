/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The PHY: e82545_phy.c.  reg_mtx held throughout.
 */

#ifndef _E82545_PHY_H_
#define	_E82545_PHY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct e82545;

/* PHY registers: IEEE 802.3 clause 22; those from 16 on are Marvell's. */
#define	E82545_PHY_NREGS	32
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
#define	PHY_BM_PAGE	22	/* of all from 16 on */
#define	PHY_M88_EXT_CTRL2	26
#define	PHY_M88_LED		24
#define	PHY_BM_OEM	25
#define	PHY_M88_PAGE	29	/* of the next one */
#define	PHY_M88_PAGED	30
#define	PHY_BM_BIAS1	29
#define	PHY_BM_BIAS2	30

/* A register of an adapter's PHY, without link, speed and partner. */
struct e82545_phy_reg {
	uint16_t	epr_reset;	/* the value after reset */
	uint16_t	epr_mask;	/* bits that software can write */
};

size_t	e82545_phy_size(void);	/* bytes of struct e82545_phy, zeros at first */
/* Reset: every PHY register returns to its default. */
void	e82545_phy_reset(struct e82545 *dev);
/* Write MDIC, for the register table. */
void	e82545_mdic_write(struct e82545 *dev, uint32_t off, uint32_t value);
/*
 * Update STATUS and the PHY registers after a change of the cable (`up') or
 * CTRL, and raise LSC if the link went up or down.  CTRL.PHY_RST holds the PHY
 * in reset.
 */
void	e82545_phy_link(struct e82545 *dev, bool up);

/*
 * Return whether the link is down, or has been since the guest read the status
 * of the PHY: it may not know yet.
 */
bool	e82545_phy_unseen(const struct e82545 *dev);

#endif /* !_E82545_PHY_H_ */
