/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the 82545EM and the 82574L are on the PCI bus.
 *
 * Manuals: Intel 317453-006EN ("8254x SDM") section 4.1, Intel 82574 datasheet;
 * PCI Local Bus Specification 3.0, section 6.
 *
 * The 82574L has no extended capabilities: neither AER nor a serial number.
 */

#include <sys/param.h>

#include <dev/e1000/e82574_reg.h>
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

/*
 * The capability of the CSB (paravirt_csb(9)), after the one at `last'.  These
 * fields come last in their table, which an adapter without the CSB has
 * without them.
 */
#define	CAP_CSB		0x40
#define	CSB_FIELDS(last)						\
	{ (last) + PCI_CAP_LIST_NEXT, 1, CAP_CSB, 0 },			\
	{ CAP_CSB, 1, PCI_CAP_ID_VNDR, 0 },				\
	{ CAP_CSB + E82545_CSB_CAP_LENGTH, 1, E82545_CSB_CAP_SIZE, 0 },	\
	{ CAP_CSB + E82545_CSB_CAP_SIGNATURE, 4, E82545_CSB_SIGNATURE, 0 }, \
	{ CAP_CSB + E82545_CSB_CAP_VERSION, 4, E82545_CSB_VERSION, 0 }
#define	CSB_NFIELDS	5

static const struct vfu_pci_field e1000[] = {
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

	CSB_FIELDS(CAP_MSI)
};

/* Offsets of the 82574L's capabilities. */
#define	E_CAP_MSIX	0xa0
#define	E_CAP_PM	0xc8
#define	E_CAP_MSI	0xd0
#define	E_CAP_EXP	0xe0

/* The table of MSI-X, which the client has.  The flash has no contents. */
#define	E_BAR_MSIX_SIZE	0x4000
#define	E_MSIX_PBA	0x2000

#define	E_COMMAND_WRITABLE						\
	(PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |	\
	    PCI_COMMAND_PARITY | PCI_COMMAND_SERR |			\
	    PCI_COMMAND_INTX_DISABLE)
#define	PM_VERSION_1_2	0x3
#define	EXP_VERSION_1	0x1
#define	EXP_PAYLOAD_256	0x1

static const struct vfu_pci_field e1000e[] = {
	{ PCI_VENDOR_ID, 2, E82545_PCI_VENDOR, 0 },
	{ PCI_DEVICE_ID, 2, E82574_PCI_DEVICE, 0 },
	{ PCI_COMMAND, 2, 0, E_COMMAND_WRITABLE },
	{ PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0 },
	{ PCI_REVISION_ID, 1, E82574_PCI_REVISION, 0 },
	{ PCI_CLASS_DEVICE + 1, 1, CLASS_ETHERNET, 0 },
	{ PCI_CACHE_LINE_SIZE, 1, 0, 0xff },
	{ PCI_BASE_ADDRESS_0, 4, PCI_BASE_ADDRESS_SPACE_MEMORY |
	    PCI_BASE_ADDRESS_MEM_TYPE_32, ~(E82545_BAR_MEM_SIZE - 1U) },
	{ PCI_BASE_ADDRESS_1, 4, PCI_BASE_ADDRESS_SPACE_MEMORY |
	    PCI_BASE_ADDRESS_MEM_TYPE_32, ~(E82574_BAR_FLASH_SIZE - 1U) },
	{ PCI_BASE_ADDRESS_2, 4, PCI_BASE_ADDRESS_SPACE_IO,
	    ~(E82574_BAR_IO_SIZE - 1U) },
	{ PCI_BASE_ADDRESS_3, 4, PCI_BASE_ADDRESS_SPACE_MEMORY |
	    PCI_BASE_ADDRESS_MEM_TYPE_32, ~(E_BAR_MSIX_SIZE - 1U) },
	{ PCI_SUBSYSTEM_VENDOR_ID, 2, E82545_PCI_VENDOR, 0 },
	{ PCI_CAPABILITY_LIST, 1, E_CAP_PM, 0 },
	{ PCI_INTERRUPT_LINE, 1, 0, 0xff },
	{ PCI_INTERRUPT_PIN, 1, 1, 0 },			/* INTA */

	{ E_CAP_PM, 1, PCI_CAP_ID_PM, 0 },
	{ E_CAP_PM + PCI_CAP_LIST_NEXT, 1, E_CAP_MSI, 0 },
	{ E_CAP_PM + PCI_PM_PMC, 2, PM_VERSION_1_2, 0 },
	/* A transition to D3 and back changes nothing. */
	{ E_CAP_PM + PCI_PM_CTRL, 2, PCI_PM_CTRL_NO_SOFT_RESET,
	    PCI_PM_CTRL_STATE_MASK },

	{ E_CAP_MSI, 1, PCI_CAP_ID_MSI, 0 },
	{ E_CAP_MSI + PCI_CAP_LIST_NEXT, 1, E_CAP_EXP, 0 },
	{ E_CAP_MSI + PCI_MSI_FLAGS, 2, PCI_MSI_FLAGS_64BIT,
	    PCI_MSI_FLAGS_ENABLE },
	{ E_CAP_MSI + PCI_MSI_ADDRESS_LO, 4, 0, 0xfffffffc },
	{ E_CAP_MSI + PCI_MSI_ADDRESS_HI, 4, 0, 0xffffffff },
	{ E_CAP_MSI + PCI_MSI_DATA_64, 2, 0, 0xffff },

	/* An endpoint with a lane of 2.5 GT/s. */
	{ E_CAP_EXP, 1, PCI_CAP_ID_EXP, 0 },
	{ E_CAP_EXP + PCI_CAP_LIST_NEXT, 1, E_CAP_MSIX, 0 },
	{ E_CAP_EXP + PCI_EXP_FLAGS, 2, EXP_VERSION_1 |
	    PCI_EXP_TYPE_ENDPOINT << 4, 0 },
	{ E_CAP_EXP + PCI_EXP_DEVCAP, 4, EXP_PAYLOAD_256 |
	    PCI_EXP_DEVCAP_RBER, 0 },
	{ E_CAP_EXP + PCI_EXP_DEVCTL, 2, PCI_EXP_DEVCTL_RELAX_EN |
	    PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B, 0x7fff },
	{ E_CAP_EXP + PCI_EXP_LNKCAP, 4, PCI_EXP_LNKCAP_SLS_2_5GB |
	    PCI_EXP_LNKSTA_NLW_X1, 0 },
	{ E_CAP_EXP + PCI_EXP_LNKCTL, 2, 0, PCI_EXP_LNKCTL_ASPMC |
	    PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES },
	{ E_CAP_EXP + PCI_EXP_LNKSTA, 2, PCI_EXP_LNKSTA_CLS_2_5GB |
	    PCI_EXP_LNKSTA_NLW_X1, 0 },

	{ E_CAP_MSIX, 1, PCI_CAP_ID_MSIX, 0 },
	{ E_CAP_MSIX + PCI_MSIX_FLAGS, 2, E82574_VECTORS - 1,
	    PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL },
	{ E_CAP_MSIX + PCI_MSIX_TABLE, 4, E82574_BAR_MSIX, 0 },
	{ E_CAP_MSIX + PCI_MSIX_PBA, 4, E_MSIX_PBA | E82574_BAR_MSIX, 0 },

	CSB_FIELDS(E_CAP_MSIX)
};

_Static_assert(E82574_VECTORS <= VFU_IRQ_VECTORS, "each has a descriptor");

#define	TYPE_E1000(nfields) {						\
	.vdt_field = e1000,						\
	.vdt_nfields = (nfields),					\
	.vdt_bar_size = {						\
		[E82545_BAR_MEM] = E82545_BAR_MEM_SIZE,			\
		[E82545_BAR_IO] = E82545_BAR_IO_SIZE			\
	}								\
}

#define	TYPE_E1000E(nfields) {						\
	.vdt_field = e1000e,						\
	.vdt_nfields = (nfields),					\
	.vdt_express = true,						\
	.vdt_bar_size = {						\
		[E82545_BAR_MEM] = E82545_BAR_MEM_SIZE,			\
		[E82574_BAR_FLASH] = E82574_BAR_FLASH_SIZE,		\
		[E82545_BAR_IO] = E82574_BAR_IO_SIZE,			\
		[E82574_BAR_MSIX] = E_BAR_MSIX_SIZE			\
	},								\
	.vdt_vectors = E82574_VECTORS,					\
	.vdt_msix = E_CAP_MSIX						\
}

const struct vfu_device_type adapter_pci[ADAPTER_NDEVICES][2] = {
	[ADAPTER_E1000] = {
		TYPE_E1000(nitems(e1000) - CSB_NFIELDS),
		TYPE_E1000(nitems(e1000))
	},
	[ADAPTER_E1000E] = {
		TYPE_E1000E(nitems(e1000e) - CSB_NFIELDS),
		TYPE_E1000E(nitems(e1000e))
	}
};
