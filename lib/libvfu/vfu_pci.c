/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * PCI configuration space: a table of fields with their reset values and
 * writable bits.  The subsystem ID, which may differ from device to device, is
 * not in the table.  See PCI Local Bus Specification 3.0, section 6.
 */

#include <sys/param.h>
#include <linux/pci_regs.h>

#include <string.h>

#include "vfu_pci.h"

/* Return the writable bits of the byte at `off'. */
static uint8_t
pci_writable(const struct vfu_pci *pci, size_t off)
{
	const struct vfu_pci_field *f;

	for (f = pci->field; f < pci->field + pci->nfields; f++) {
		if (off >= f->vpf_off && off < (size_t)f->vpf_off + f->vpf_size)
			return ((uint8_t)(f->vpf_writable >>
			    (8 * (off - f->vpf_off))));
	}
	return (0);
}

void
vfu_pci_reset(struct vfu_pci *pci)
{
	const struct vfu_pci_field *f;
	unsigned int i;

	memset(pci->cfg, 0, sizeof(pci->cfg));
	for (f = pci->field; f < pci->field + pci->nfields; f++) {
		for (i = 0; i < f->vpf_size; i++)
			pci->cfg[f->vpf_off + i] =
			    (uint8_t)(f->vpf_value >> (8 * i));
	}
	vfu_pci_show(pci, pci->shown);
}

void
vfu_pci_show(struct vfu_pci *pci, uint16_t subdevice)
{
	pci->shown = subdevice;
	pci->cfg[PCI_SUBSYSTEM_ID] = subdevice & 0xff;
	pci->cfg[PCI_SUBSYSTEM_ID + 1] = subdevice >> 8;
}

void
vfu_pci_init(struct vfu_pci *pci, const struct vfu_pci_field *field,
    unsigned int nfields, uint16_t subdevice)
{
	pci->field = field;
	pci->nfields = nfields;
	pci->subdevice = pci->shown = subdevice;
	vfu_pci_reset(pci);
}

void
vfu_pci_read(const struct vfu_pci *pci, bool intx, size_t off, void *buf,
    size_t len)
{
	uint8_t *p;

	p = buf;
	memset(p, 0, len);
	if (off < sizeof(pci->cfg))
		memcpy(p, pci->cfg + off, MIN(len, sizeof(pci->cfg) - off));
	if (intx && off <= PCI_STATUS && len > PCI_STATUS - off)
		p[PCI_STATUS - off] |= PCI_STATUS_INTERRUPT;
}

void
vfu_pci_write(struct vfu_pci *pci, size_t off, const void *buf, size_t len)
{
	const uint8_t *p;
	uint8_t mask;
	size_t i;

	p = buf;
	for (i = 0; i < len && off + i < sizeof(pci->cfg); i++) {
		mask = pci_writable(pci, off + i);
		pci->cfg[off + i] = (pci->cfg[off + i] & ~mask) | (p[i] & mask);
	}
}

static uint16_t
pci_command(const struct vfu_pci *pci)
{
	return (pci->cfg[PCI_COMMAND] | pci->cfg[PCI_COMMAND + 1] << 8);
}

bool
vfu_pci_busmaster(const struct vfu_pci *pci)
{
	return ((pci_command(pci) & PCI_COMMAND_MASTER) != 0);
}

bool
vfu_pci_msix(const struct vfu_pci *pci, uint8_t cap)
{
	const uint16_t flags = pci->cfg[cap + PCI_MSIX_FLAGS] |
	    pci->cfg[cap + PCI_MSIX_FLAGS + 1] << 8;

	return ((flags & PCI_MSIX_FLAGS_ENABLE) != 0);
}

bool
vfu_pci_intx_disabled(const struct vfu_pci *pci)
{
	return ((pci_command(pci) & PCI_COMMAND_INTX_DISABLE) != 0);
}
