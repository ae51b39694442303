/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An adapter without a CSB, for the commit before the one that adds it.  The
 * guest cannot place a block, so e82545_csb_placed() is always false.
 */

#include <sys/param.h>

#include "e82545_csb.h"
#include "e82545_salvage.h"
#include "e82545_snap.h"

void
e82545_csbal_write(struct e82545 *dev __unused, uint32_t off __unused,
    uint32_t value __unused)
{
}

void
e82545_csbah_write(struct e82545 *dev __unused, uint32_t off __unused,
    uint32_t value __unused)
{
}

void
e82545_csb_reset(struct e82545 *dev __unused)
{
}

void
e82545_csb_snap(struct e82545 *dev __unused, struct e82545_snap *s __unused)
{
}

bool
e82545_csb_salvage(struct e82545 *dev __unused,
    const struct e82545 *old __unused)
{
	return (true);
}

void
e82545_csb_recover(struct e82545 *dev __unused, uint32_t tdt __unused,
    uint32_t rdt __unused)
{
}
