/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Receive filters: 8254x SDM sections 3.2.1 and 13.5.
 *
 * An address passes if it is in the receive address table; a broadcast, if
 * RCTL.BAM is set; a multicast, if its bit is set in the multicast table.
 * RCTL.UPE and RCTL.MPE pass all unicasts and all multicasts.  If RCTL.VFE is
 * set, a frame with a VLAN tag must pass the VLAN table, too.
 *
 * The filters read their tables from the register file, without a lock.  If the
 * guest changes a table while frames arrive, each frame is filtered by either
 * the old or the new entry.
 */

#include <sys/endian.h>

#include "e82545_filter.h"
#include "e82545_impl.h"
#include "e82545_offload.h"

#define	FILTER_BROADCAST	0xffffffffffff

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

/*
 * Return entry `i' of the receive address table, or UINT64_MAX, which no frame
 * has.
 */
static uint64_t
filter_address(const struct e82545 *dev, unsigned int i)
{
	uint32_t rah;

	rah = e82545_reg(dev, E82545_RAH(i));
	if ((rah & (E82545_RAH_AV | E82545_RAH_AS)) != E82545_RAH_AV)
		return (UINT64_MAX);
	return ((uint64_t)(rah & 0xffff) << 32 |
	    e82545_reg(dev, E82545_RAL(i)));
}

static bool
filter_exact(const struct e82545 *dev, uint64_t address)
{
	int i;

	for (i = 0; i < E82545_RA_COUNT; i++)
		if (filter_address(dev, i) == address)
			return (true);
	return (false);
}

/*
 * Return whether an address passes by its hash, section 13.5.1: 12 bits of the
 * last two bytes, selected by RCTL.MO.
 */
static bool
filter_hash(const struct e82545 *dev, uint32_t rctl, uint64_t address)
{
	static const uint8_t shift[4] = { 4, 3, 2, 0 };

	return (filter_table(dev, E82545_MTA,
	    address >> 32 >> shift[E82545_RCTL_MO(rctl)] & 0xfff));
}

uint64_t
e82545_filter_own(const struct e82545 *dev)
{
	return (filter_address(dev, 0));
}

enum e82545_filter_result
e82545_filter(const struct e82545 *dev, uint32_t rctl, const uint8_t *head,
    bool tagged)
{
	uint64_t address;

	if (tagged && (rctl & E82545_RCTL_VFE) != 0 &&
	    !filter_vlan(dev, rctl, be16dec(head + E82545_VLAN_OFF + 2)))
		return (E82545_FILTER_DROP);
	address = le32dec(head) | (uint64_t)le16dec(head + 4) << 32;
	if ((rctl & E82545_RCTL_BAM) != 0 && address == FILTER_BROADCAST)
		return (E82545_FILTER_PASS);
	if (filter_exact(dev, address))
		return (E82545_FILTER_PASS);
	if ((address & 1) == 0)
		return ((rctl & E82545_RCTL_UPE) != 0 ?
		    E82545_FILTER_INEXACT : E82545_FILTER_DROP);
	if ((rctl & E82545_RCTL_MPE) != 0 || filter_hash(dev, rctl, address))
		return (E82545_FILTER_INEXACT);
	return (E82545_FILTER_DROP);
}
