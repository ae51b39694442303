/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The options of bhyve's e1000 and e1000e: pci_e82545_opts.h. */

#include <sys/param.h>
#include <sys/nv.h>

#include <net/ethernet.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "debug.h"
#include "e82545.h"
#include "net_utils.h"
#include "pci_e82545_opts.h"
#include "pci_emul.h"

/*
 * Read a decimal option; *valuep stays if it is not set.  Returns -1 after a
 * message.
 */
static int
opts_number(nvlist_t *nvl, const char *dev, const char *name, int min,
    int max, uint32_t *valuep)
{
	const char *errstr, *value;
	long long n;

	value = get_config_value_node(nvl, name);
	if (value == NULL)
		return (0);
	n = strtonum(value, min, max, &errstr);
	if (errstr != NULL) {
		EPRINTLN("%s: %s=%s: %s, must be %d to %d", dev, name, value,
		    errstr, min, max);
		return (-1);
	}
	*valuep = n;
	return (0);
}

/* Read csb=; *csbp stays if it is not set. */
static int
opts_csb(nvlist_t *nvl, const char *dev, enum e82545_csb_kind *csbp)
{
	const char *value;
	unsigned int i;

	value = get_config_value_node(nvl, "csb");
	if (value == NULL)
		return (0);
	for (i = 0; i < E82545_NCSBS; i++)
		if (strcmp(value, e82545_csb_names[i]) == 0) {
			*csbp = i;
			return (0);
		}
	EPRINTLN("%s: csb=%s: must be on, compat or off", dev, value);
	return (-1);
}

/*
 * Set mac[] to the address of mac=, or a generated one.  Returns -1 after a
 * message, and mac[] stays.  As with bhyve's net_parsemac(), whose message
 * names no adapter, the first of two digits may be left out.
 */
static int
opts_mac(struct pci_devinst *pi, nvlist_t *nvl, const char *dev,
    uint8_t mac[ETHER_ADDR_LEN])
{
	static const char digits[] = "0123456789abcdefABCDEF:";
	const char *value;
	unsigned int b[ETHER_ADDR_LEN];
	int end, i;

	value = get_config_value_node(nvl, "mac");
	if (value == NULL) {
		net_genmac(pi, mac);
		return (0);
	}
	end = -1;
	if (strspn(value, digits) != strlen(value) ||
	    sscanf(value, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2],
	    &b[3], &b[4], &b[5], &end) != ETHER_ADDR_LEN ||
	    value[end] != '\0' || (b[0] & 1) != 0 ||
	    (b[0] | b[1] | b[2] | b[3] | b[4] | b[5]) == 0) {
		EPRINTLN("%s: mac=%s: not a unicast Ethernet address", dev,
		    value);
		return (-1);
	}
	for (i = 0; i < ETHER_ADDR_LEN; i++)
		mac[i] = b[i];
	return (0);
}

/* Return whether all options are known; if not, after a message. */
static bool
opts_known(nvlist_t *nvl, const char *dev)
{
	static const char *const known[] = {
		"device", "backend", "mac", "mtu", "itr", "itr_min", "csb",
		/* Of net_backend_netgraph.c, net_backend_slirp.c. */
		"type", "path", "hook", "peerhook", "socket",
		"open", "hostfwd"
	};
	const char *name;
	void *cookie = NULL;
	size_t i;
	int type;

	while ((name = nvlist_next(nvl, &type, &cookie)) != NULL) {
		for (i = 0; i < nitems(known); i++)
			if (strcmp(name, known[i]) == 0)
				break;
		/* What is no string is bhyve's. */
		if (i == nitems(known) && type == NV_TYPE_STRING) {
			EPRINTLN("%s: unknown option \"%s\"", dev, name);
			return (false);
		}
	}
	return (true);
}

int
pci_e82545_opts(struct pci_devinst *pi, nvlist_t *nvl,
    struct e82545_config *config, uint32_t *mtup)
{
	if (!opts_known(nvl, config->ec_name) ||
	    opts_mac(pi, nvl, config->ec_name, config->ec_mac) != 0 ||
	    opts_number(nvl, config->ec_name, "itr", 0, E82545_ITR_MAX,
	    &config->ec_itr_256ns) != 0 ||
	    opts_number(nvl, config->ec_name, "itr_min", 0,
	    E82545_ITR_MAX, &config->ec_itr_min_256ns) != 0 ||
	    opts_number(nvl, config->ec_name, "mtu", E82545_MTU_MIN,
	    E82545_MTU_MAX, mtup) != 0 ||
	    opts_csb(nvl, config->ec_name, &config->ec_csb) != 0)
		return (-1);
	if (get_config_value_node(nvl, "backend") == NULL) {
		EPRINTLN("%s: no network backend given", config->ec_name);
		return (-1);
	}
	return (0);
}
