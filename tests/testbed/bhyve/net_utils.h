/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Options of all network devices.
 */

#ifndef _NET_UTILS_H_
#define	_NET_UTILS_H_

#include <stdint.h>

#include "pci_emul.h"

/*
 * Make an address for a device that has no mac= option.  It depends on the
 * device's bus, slot and function, so it is the same on every start.
 */
void	net_genmac(struct pci_devinst *pi, uint8_t *macaddr);

#endif /* !_NET_UTILS_H_ */
