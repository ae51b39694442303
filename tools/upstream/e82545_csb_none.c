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

#include "e82545_impl.h"
#include "e82545_snap.h"

bool
e82545_csb_keep(struct e82545 *dev __unused, uint32_t off __unused,
    uint32_t value __unused)
{
	return (false);
}

void
e82545_csb_restart(struct e82545 *dev __unused, uint32_t off __unused)
{
}

void
e82545_csb_tx_begin(struct e82545 *dev __unused)
{
}

void
e82545_csb_tx_notify(struct e82545 *dev __unused, uint32_t start __unused,
    uint32_t ndescs __unused, uint32_t size __unused, bool done __unused,
    bool delayed __unused, uint32_t causes __unused)
{
}

enum e82545_tx_state
e82545_csb_tx_end(struct e82545 *dev __unused, bool idle __unused, bool more)
{
	return (more ? E82545_TX_MORE : E82545_TX_IDLE);
}

void
e82545_csb_rx_begin(struct e82545 *dev __unused)
{
}

bool
e82545_csb_rx_tail(struct e82545 *dev __unused)
{
	return (false);
}

void
e82545_csb_rx_wait(struct e82545 *dev __unused, uint32_t need __unused)
{
}

uint8_t *
e82545_csb_vnet(struct e82545 *dev __unused, uint32_t size __unused)
{
	return (NULL);
}

void
e82545_csb_vnet_clear(struct e82545 *dev __unused, uint8_t *ring __unused,
    uint32_t size __unused, uint32_t head __unused, uint32_t posted __unused)
{
}

void
e82545_csb_rx_notify(struct e82545 *dev __unused, uint32_t causes __unused)
{
}

void
e82545_csb_rx_end(struct e82545 *dev __unused)
{
}

uint32_t
e82545_csb_unmask(struct e82545 *dev __unused, uint32_t causes __unused)
{
	return (0);
}

void
e82545_csb_icr_read(struct e82545 *dev __unused)
{
}

void
e82545_csb_arm(struct e82545 *dev __unused)
{
}

uint32_t
e82545_csb_look_due(struct e82545 *dev __unused)
{
	return (0);
}

bool
e82545_csb_look_tx(struct e82545 *dev __unused)
{
	return (false);
}

bool
e82545_csb_look_rx(struct e82545 *dev __unused)
{
	return (false);
}

void
e82545_csb_idle(struct e82545 *dev __unused)
{
}

void
e82545_csb_release(struct e82545 *dev __unused)
{
}

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
