/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Which frames the guest wants: 8254x SDM section 3.2.1 and 13.5.
 *
 * An address passes if it is in the receive address table, a broadcast with
 * RCTL.BAM, a multicast if its bit is set in the multicast table; RCTL.UPE and
 * MPE pass all unicasts and multicasts.  A frame with a VLAN tag must besides
 * pass the VLAN table if RCTL.VFE is set.  The tables are read where they are,
 * in the register file, without a lock: a guest that changes them while frames
 * come in gets each frame judged by the old or by the new.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include "e82545_impl.h"

static bool
filter_table(const struct e82545 *dev, uint32_t base, unsigned int bit)
{

	return ((e82545_reg(dev, base + bit / 32 * 4) >> (bit % 32) & 1) != 0);
}

static bool
filter_vlan(const struct e82545 *dev, uint32_t rctl, uint16_t tci)
{
	bool cfi;

	cfi = (tci & 0x1000) != 0;
	if ((rctl & E82545_RCTL_CFIEN) != 0 &&
	    cfi != ((rctl & E82545_RCTL_CFI) != 0))
		return (false);
	return (filter_table(dev, E82545_VFTA, tci & 0xfff));
}

static bool
filter_exact(const struct e82545 *dev, uint32_t low, uint32_t high)
{
	uint32_t rah;
	int i;

	for (i = 0; i < E82545_RA_COUNT; i++) {
		if (e82545_reg(dev, E82545_RAL(i)) != low)
			continue;
		rah = e82545_reg(dev, E82545_RAH(i));
		if ((rah & (E82545_RAH_AV | E82545_RAH_AS | 0xffff)) ==
		    (E82545_RAH_AV | high))
			return (true);
	}
	return (false);
}

/* Section 13.5.1: 12 bits of the last two bytes, which ones RCTL.MO tells. */
static bool
filter_hash(const struct e82545 *dev, uint32_t rctl, uint32_t high)
{
	static const uint8_t shift[4] = { 4, 3, 2, 0 };

	return (filter_table(dev, E82545_MTA,
	    high >> shift[E82545_RCTL_MO(rctl)] & 0xfff));
}

enum e82545_filter_result
e82545_filter(const struct e82545 *dev, uint32_t rctl, const uint8_t *head,
    bool tagged)
{
	uint32_t high, low;

	if (tagged && (rctl & E82545_RCTL_VFE) != 0 &&
	    !filter_vlan(dev, rctl, be16dec(head + E82545_VLAN_OFF + 2)))
		return (E82545_FILTER_DROP);
	low = le32dec(head);
	high = le16dec(head + 4);
	if ((rctl & E82545_RCTL_BAM) != 0 && low == 0xffffffff &&
	    high == 0xffff)
		return (E82545_FILTER_PASS);
	if (filter_exact(dev, low, high))
		return (E82545_FILTER_PASS);
	if ((low & 1) == 0)
		return ((rctl & E82545_RCTL_UPE) != 0 ?
		    E82545_FILTER_INEXACT : E82545_FILTER_DROP);
	if ((rctl & E82545_RCTL_MPE) != 0 || filter_hash(dev, rctl, high))
		return (E82545_FILTER_INEXACT);
	return (E82545_FILTER_DROP);
}
