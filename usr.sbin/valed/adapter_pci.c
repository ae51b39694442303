/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the 82545EM is on the PCI bus.
 *
 * Manual: Intel 317453-006EN ("8254x SDM") section 4.1; PCI Local Bus
 * Specification 3.0, section 6.
 */

#include <sys/param.h>

#include <dev/e1000/e82545_reg.h>
#include <linux/pci_regs.h>

#include "adapter.h"
#include "e82545.h"

/* Offsets of the 82545EM's capabilities, without its PCI-X. */
#define	CAP_PM		0xdc
#define	CAP_MSI		0xf0

#define	COMMAND_WRITABLE						\
	(PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |	\
	    PCI_COMMAND_INVALIDATE | PCI_COMMAND_PARITY |		\
	    PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE)
#define	CLASS_ETHERNET	0x02
#define	PM_VERSION_1_1	0x2

static const struct vfu_pci_field fields[] = {
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

const struct vfu_device_type adapter_pci = {
	.vdt_field = fields,
	.vdt_nfields = nitems(fields),
	.vdt_bar_size = {
		[E82545_BAR_MEM] = E82545_BAR_MEM_SIZE,
		[E82545_BAR_IO] = E82545_BAR_IO_SIZE
	}
};
