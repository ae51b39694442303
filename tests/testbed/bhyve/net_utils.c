/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "net_utils.h"

void
net_genmac(struct pci_devinst *pi, uint8_t *macaddr)
{
	/* The OUI that FreeBSD has for bhyve. */
	memcpy(macaddr, "\x58\x9c\xfc", 3);
	macaddr[3] = pi->pi_bus;
	macaddr[4] = pi->pi_slot;
	macaddr[5] = pi->pi_func;
}
