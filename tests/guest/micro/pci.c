/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * PCI by configuration mechanism 1 (PCI 2.x, section 3.2.2.3.2).  Addresses
 * and the interrupt line are the firmware's: SeaBIOS runs before a PVH image.
 */

#include "e82545_reg.h"
#include "micro.h"

#define	CONFIG_ADDRESS	0xcf8
#define	CONFIG_DATA	0xcfc
#define	CONFIG_ENABLE	0x80000000

#define	PCI_ID		0x00
#define	PCI_COMMAND	0x04
#define	 COMMAND_MEM	0x0002
#define	 COMMAND_MASTER	0x0004
#define	 COMMAND_NOINTX	0x0400
#define	 STATUS_CAPS	0x00100000
#define	PCI_BAR0	0x10
#define	 BAR_IO		0x1
#define	 BAR_TYPE	0x6
#define	 BAR_64		0x4
#define	 BAR_ADDRESS	0xfffffff0
#define	HOLE		0xe0000000	/* for devices, on QEMU's pc */
#define	PCI_SUBSYSTEM	0x2c
#define	PCI_CAPS	0x34

/* The ISA bridge of QEMU's pc, a PIIX3: Intel's 82371SB, PIRQRC[A:D]. */
#define	PIIX3		(CONFIG_ENABLE | 1 << 11)
#define	 PIRQ_ROUTES	0x60
#define	LINE		11

#define	CAP_VENDOR	0x09
#define	CAP_MSI		0x05
#define	 MSI_ENABLE	0x00010000
#define	 MSI_MULTIPLE	0x00700000
#define	 MSI_64		0x00800000
#define	MSI_ADDRESS	0xfee00000	/* local APIC with ID 0 */

#define	VENDOR_INTEL	0x8086
#define	DEVICE_82544GC	0x100c
#define	DEVICE_82540EM	0x100e
#define	DEVICE_82545EM	0x100f

static inline void
outl(uint16_t port, uint32_t v)
{
	__asm __volatile("outl %0, %1" : : "a" (v), "Nd" (port));
}

static inline uint32_t
inl(uint16_t port)
{
	uint32_t v;

	__asm __volatile("inl %1, %0" : "=a" (v) : "Nd" (port));
	return (v);
}

static uint32_t
config_read(uint32_t address, uint32_t off)
{
	outl(CONFIG_ADDRESS, address | off);
	return (inl(CONFIG_DATA));
}

static void
config_write(uint32_t address, uint32_t off, uint32_t v)
{
	outl(CONFIG_ADDRESS, address | off);
	outl(CONFIG_DATA, v);
}

void
pci_find_nic(struct pci_nic *nic)
{
	uint32_t bar, device, id, slot;

	for (slot = 0; slot < 32; slot++) {
		nic->address = CONFIG_ENABLE | slot << 11;
		id = config_read(nic->address, PCI_ID);
		device = id >> 16;
		if ((id & 0xffff) == VENDOR_INTEL &&
		    (device == DEVICE_82544GC || device == DEVICE_82540EM ||
		    device == DEVICE_82545EM))
			break;
	}
	if (slot == 32)
		panic("no 82540EM, 82544GC or 82545EM");
	nic->device = (uint16_t)device;
	nic->subdevice = config_read(nic->address, PCI_SUBSYSTEM) >> 16;

	bar = config_read(nic->address, PCI_BAR0);
	/* qboot gives it none. */
	if ((bar & BAR_ADDRESS) == 0) {
		config_write(nic->address, PCI_BAR0, HOLE);
		bar = config_read(nic->address, PCI_BAR0);
	}
	nic->regs = bar & BAR_ADDRESS;
	if ((bar & BAR_IO) != 0 || nic->regs == 0 ||
	    ((bar & BAR_TYPE) == BAR_64 &&
	    config_read(nic->address, PCI_BAR0 + 4) != 0))
		panic("the adapter's registers are not below 4 GB");
	/* The upper half of this register clears what is written as one. */
	config_write(nic->address, PCI_COMMAND, COMMAND_MASTER | COMMAND_MEM |
	    (config_read(nic->address, PCI_COMMAND) & 0xffff));
}

/* Offset of the first capability with this ID, or 0. */
static uint32_t
find_capability(const struct pci_nic *nic, uint32_t id)
{
	uint32_t cap, header;
	int i;

	if ((config_read(nic->address, PCI_COMMAND) & STATUS_CAPS) == 0)
		return (0);
	cap = config_read(nic->address, PCI_CAPS) & 0xfc;
	for (i = 0; cap != 0 && i < 48; i++) {
		header = config_read(nic->address, cap);
		if ((header & 0xff) == id)
			return (cap);
		cap = header >> 8 & 0xfc;
	}
	return (0);
}

bool
pci_has_msi(const struct pci_nic *nic)
{
	return (find_capability(nic, CAP_MSI) != 0);
}

bool
pci_has_csb(const struct pci_nic *nic)
{
	const uint32_t cap = find_capability(nic, CAP_VENDOR);

	return ((cap != 0 && config_read(nic->address, cap +
	    E82545_CSB_CAP_SIGNATURE) == E82545_CSB_SIGNATURE &&
	    config_read(nic->address, cap + E82545_CSB_CAP_VERSION) ==
	    E82545_CSB_VERSION) || nic->subdevice == E82545_PCI_SUBDEVICE_CSB);
}

void
pci_setup_intr(struct pci_nic *nic, bool msi)
{
	uint32_t cap, header;

	nic->msi = msi;
	if (!msi) {
		config_write(PIIX3, PIRQ_ROUTES, LINE * 0x01010101);
		cpu_route(LINE);
		return;
	}
	cap = find_capability(nic, CAP_MSI);
	if (cap == 0)
		panic("the adapter has no MSI");
	header = config_read(nic->address, cap);
	config_write(nic->address, cap + 4, MSI_ADDRESS);
	if ((header & MSI_64) != 0) {
		config_write(nic->address, cap + 8, 0);
		config_write(nic->address, cap + 12, VECTOR_NIC);
	} else
		config_write(nic->address, cap + 8, VECTOR_NIC);
	config_write(nic->address, PCI_COMMAND, COMMAND_NOINTX |
	    (config_read(nic->address, PCI_COMMAND) & 0xffff));
	config_write(nic->address, cap, (header & ~MSI_MULTIPLE) | MSI_ENABLE);
}
