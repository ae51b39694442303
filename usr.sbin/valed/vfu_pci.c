/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * PCI configuration space: a table of fields with their reset values and
 * writable bits.
 *
 * The subsystem ID tells drivers whether the device offers a CSB, so it is not
 * in the table.
 *
 * Manual: Intel 317453-006EN ("8254x SDM") section 4.1; PCI Local Bus
 * Specification 3.0, section 6.
 */

#include <sys/param.h>
#include <dev/e1000/e82545_reg.h>
#include <linux/pci_regs.h>

#include <string.h>

#include "e82545.h"
#include "vfu_pci.h"

/* Offsets of the 82545EM's capabilities, without its PCI-X. */
#define	CAP_PM		0xdc
#define	CAP_MSI		0xf0

#define	COMMAND_WRITABLE						\
	(PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |	\
	    PCI_COMMAND_INVALIDATE | PCI_COMMAND_PARITY |		\
	    PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE)
#define	CLASS_ETHERNET	0x02
#define	PM_VERSION_1_1	0x2

static const struct pci_field {
	uint8_t		off;
	uint8_t		size;		/* bytes */
	uint32_t	value;		/* after reset */
	uint32_t	writable;	/* bits */
} pci_fields[] = {
	{ PCI_VENDOR_ID, 2, E82545_PCI_VENDOR, 0 },
	{ PCI_DEVICE_ID, 2, E82545_PCI_DEVICE, 0 },
	{ PCI_COMMAND, 2, 0, COMMAND_WRITABLE },
	{ PCI_STATUS, 2, PCI_STATUS_CAP_LIST | PCI_STATUS_66MHZ |
	    PCI_STATUS_DEVSEL_MEDIUM, 0 },
	{ PCI_REVISION_ID, 1, E82545_PCI_REVISION, 0 },
	{ PCI_CLASS_DEVICE + 1, 1, CLASS_ETHERNET, 0 },
	{ PCI_CACHE_LINE_SIZE, 1, 0, 0xff },
	{ PCI_LATENCY_TIMER, 1, 0, 0xff },
	{ PCI_BASE_ADDRESS_0, 4, PCI_BASE_ADDRESS_SPACE_MEMORY |
	    PCI_BASE_ADDRESS_MEM_TYPE_32, ~(E82545_BAR_MEM_SIZE - 1U) },
	{ PCI_BASE_ADDRESS_2, 4, PCI_BASE_ADDRESS_SPACE_IO,
	    ~(E82545_BAR_IO_SIZE - 1U) },
	{ PCI_SUBSYSTEM_VENDOR_ID, 2, E82545_PCI_VENDOR, 0 },
	{ PCI_CAPABILITY_LIST, 1, CAP_PM, 0 },
	{ PCI_INTERRUPT_LINE, 1, 0, 0xff },
	{ PCI_INTERRUPT_PIN, 1, 1, 0 },			/* INTA# */
	{ PCI_MIN_GNT, 1, 0xff, 0 },

	{ CAP_PM, 1, PCI_CAP_ID_PM, 0 },
	{ CAP_PM + PCI_CAP_LIST_NEXT, 1, CAP_MSI, 0 },
	{ CAP_PM + PCI_PM_PMC, 2, PM_VERSION_1_1, 0 },
	/* A transition to D3 and back changes nothing. */
	{ CAP_PM + PCI_PM_CTRL, 2, PCI_PM_CTRL_NO_SOFT_RESET,
	    PCI_PM_CTRL_STATE_MASK },

	{ CAP_MSI, 1, PCI_CAP_ID_MSI, 0 },
	{ CAP_MSI + PCI_MSI_FLAGS, 2, PCI_MSI_FLAGS_64BIT,
	    PCI_MSI_FLAGS_ENABLE },
	{ CAP_MSI + PCI_MSI_ADDRESS_LO, 4, 0, 0xfffffffc },
	{ CAP_MSI + PCI_MSI_ADDRESS_HI, 4, 0, 0xffffffff },
	{ CAP_MSI + PCI_MSI_DATA_64, 2, 0, 0xffff },
};

/* The writable bits of the byte at `off'. */
static uint8_t
pci_writable(size_t off)
{
	const struct pci_field *f;

	for (f = pci_fields; f < &pci_fields[nitems(pci_fields)]; f++) {
		if (off >= f->off && off < (size_t)f->off + f->size)
			return ((uint8_t)(f->writable >> (8 * (off - f->off))));
	}
	return (0);
}

void
vfu_pci_reset(struct vfu_pci *pci)
{
	const struct pci_field *f;
	unsigned int i;

	memset(pci->cfg, 0, sizeof(pci->cfg));
	for (f = pci_fields; f < &pci_fields[nitems(pci_fields)]; f++) {
		for (i = 0; i < f->size; i++)
			pci->cfg[f->off + i] = (uint8_t)(f->value >> (8 * i));
	}
	pci->cfg[PCI_SUBSYSTEM_ID] = pci->subdevice & 0xff;
	pci->cfg[PCI_SUBSYSTEM_ID + 1] = pci->subdevice >> 8;
}

void
vfu_pci_init(struct vfu_pci *pci, uint16_t subdevice)
{
	pci->subdevice = subdevice;
	vfu_pci_reset(pci);
}

void
vfu_pci_read(const struct vfu_pci *pci, bool intx, size_t off, void *buf,
    size_t len)
{
	uint8_t *p;

	p = buf;
	memcpy(p, pci->cfg + off, len);
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
	for (i = 0; i < len; i++) {
		mask = pci_writable(off + i);
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
vfu_pci_intx_disabled(const struct vfu_pci *pci)
{
	return ((pci_command(pci) & PCI_COMMAND_INTX_DISABLE) != 0);
}
