/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _PCI_E82545_OPTS_H_
#define	_PCI_E82545_OPTS_H_

#include <sys/nv.h>

#include <stdint.h>

struct e82545_config;
struct pci_devinst;

/*
 * Set in `config' and `*mtup' what the options of a device say: mac, itr,
 * itr_min, csb and mtu, which bhyve-e1000(8) describes; those that are not
 * given stay, except that a station address is made.  Options of backends pass.
 * config->ec_name must be set: messages begin with it.  Returns 0, or -1 after
 * a message if an option is unknown or invalid, or there is no backend.  The
 * main thread.
 */
int	pci_e82545_opts(struct pci_devinst *pi, nvlist_t *nvl,
	    struct e82545_config *config, uint32_t *mtup);

#endif /* !_PCI_E82545_OPTS_H_ */
