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

size_t	e82545_phy_size(void);	/* bytes of struct e82545_phy, zeros at first */
/* Device reset: every PHY register returns to its default. */
void	e82545_phy_reset(struct e82545 *dev);
/* MDIC, as the register table calls it. */
void	e82545_mdic_write(struct e82545 *dev, uint32_t off, uint32_t value);
/*
 * The cable (`up') or CTRL changed: update STATUS and the PHY registers, and
 * raise LSC if the link went up or down.  CTRL.PHY_RST holds the PHY in reset.
 */
void	e82545_phy_link(struct e82545 *dev, bool up);

/*
 * Whether the link is down, or has been since the guest read the status of the
 * PHY: it may not know yet.
 */
bool	e82545_phy_unseen(const struct e82545 *dev);

#endif /* !_E82545_PHY_H_ */
