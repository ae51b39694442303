/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <ctype.h>
#include <errno.h>

#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "net_utils.h"

int
net_parsemtu(const char *mtu_str, unsigned long *mtu)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*mtu_str))
		return (EINVAL);
	errno = 0;
	n = strtoul(mtu_str, &end, 0);
	if (*end != '\0')
		return (EINVAL);
	if (errno == ERANGE)
		return (ERANGE);
	*mtu = n;
	return (0);
}

void
net_genmac(struct pci_devinst *pi, uint8_t *macaddr)
{
	const char *name, *p;
	char place[80];
	uint64_t hash;

	name = get_config_value("name");
	snprintf(place, sizeof(place), "%d-%d-%d-%s", pi->pi_bus, pi->pi_slot,
	    pi->pi_func, name == NULL ? "" : name);

	/* FNV-1a, 64 bits. */
	hash = 0xcbf29ce484222325;
	for (p = place; *p != '\0'; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;

	/* The OUI that FreeBSD has for bhyve. */
	macaddr[0] = 0x58;
	macaddr[1] = 0x9c;
	macaddr[2] = 0xfc;
	macaddr[3] = hash >> 56;
	macaddr[4] = hash >> 48;
	macaddr[5] = hash >> 40;
}
