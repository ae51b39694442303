/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Options that all network devices have.
 */

#ifndef _NET_UTILS_H_
#define	_NET_UTILS_H_

#include <stdint.h>

#include "pci_emul.h"

/*
 * A unicast address, as "02:00:00:00:00:01".  0, or EINVAL after a message on
 * stderr.
 */
int	net_parsemac(const char *mac_str, uint8_t *mac_addr);

/* A number, in C's notation.  0, or EINVAL or ERANGE, silently. */
int	net_parsemtu(const char *mtu_str, unsigned long *mtu);

/*
 * An address for a device that was given none: the same each time for the
 * same place and VM (the configuration's "name").
 */
void	net_genmac(struct pci_devinst *pi, uint8_t *macaddr);

#endif /* !_NET_UTILS_H_ */
