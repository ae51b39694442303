/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <ctype.h>
#include <errno.h>

#include <net/ethernet.h>
#include <netinet/ether.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "debug.h"
#include "net_utils.h"

int
net_parsemac(const char *mac_str, uint8_t *mac_addr)
{
	static const uint8_t none[ETHER_ADDR_LEN];
	unsigned int byte[ETHER_ADDR_LEN];
	uint8_t mac[ETHER_ADDR_LEN];
	int end, i;

	if (mac_str == NULL)
		return (EINVAL);
	end = -1;
	if (strspn(mac_str, "0123456789abcdefABCDEF:") != strlen(mac_str) ||
	    sscanf(mac_str, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1],
	    &byte[2], &byte[3], &byte[4], &byte[5], &end) != 6 ||
	    mac_str[end] != '\0')
		goto bad;
	for (i = 0; i < ETHER_ADDR_LEN; i++)
		mac[i] = byte[i];
	if ((mac[0] & 1) != 0 || memcmp(mac, none, sizeof(mac)) == 0)
		goto bad;
	memcpy(mac_addr, mac, sizeof(mac));
	return (0);

bad:
	EPRINTLN("mac=%s: not a unicast Ethernet address", mac_str);
	return (EINVAL);
}

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
