/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* What tools/upstream/small.subr exports of bhyve's. */

#ifndef _PCI_EMUL_H_
#define	_PCI_EMUL_H_

#include <sys/types.h>
#include <dev/pci/pcireg.h>

struct pci_devinst;

/* Append a capability of `caplen' bytes.  Returns 0, or -1 without room. */
int	pci_emul_add_capability(struct pci_devinst *pi, u_char *capdata,
	    int caplen);

#endif /* !_PCI_EMUL_H_ */
