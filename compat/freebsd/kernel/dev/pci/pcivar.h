/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Stand-in for dev/pci/pcivar.h, which is not installed. */

#ifndef _DEV_PCI_PCIVAR_H_
#define	_DEV_PCI_PCIVAR_H_

#include "bus_if.h"
#include "pci_if.h"

enum {
	PCI_IVAR_SUBDEVICE = 1, PCI_IVAR_VENDOR, PCI_IVAR_DEVICE,
	PCI_IVAR_DOMAIN = 11, PCI_IVAR_BUS, PCI_IVAR_SLOT, PCI_IVAR_FUNCTION
};

static inline uint16_t
pci_ivar(device_t dev, int index)
{
	uintptr_t value = 0;

	BUS_READ_IVAR(device_get_parent(dev), dev, index, &value);
	return (value);
}

#define	pci_get_vendor(dev)	pci_ivar(dev, PCI_IVAR_VENDOR)
#define	pci_get_device(dev)	pci_ivar(dev, PCI_IVAR_DEVICE)
#define	pci_get_subdevice(dev)	pci_ivar(dev, PCI_IVAR_SUBDEVICE)
#define	pci_get_domain(dev)	pci_ivar(dev, PCI_IVAR_DOMAIN)
#define	pci_get_bus(dev)	pci_ivar(dev, PCI_IVAR_BUS)
#define	pci_get_slot(dev)	pci_ivar(dev, PCI_IVAR_SLOT)
#define	pci_get_function(dev)	pci_ivar(dev, PCI_IVAR_FUNCTION)

static inline int
pci_enable_busmaster(device_t dev)
{
	return (PCI_ENABLE_BUSMASTER(device_get_parent(dev), dev));
}

static inline int
pci_disable_busmaster(device_t dev)
{
	return (PCI_DISABLE_BUSMASTER(device_get_parent(dev), dev));
}

static inline int
pci_alloc_msi(device_t dev, int *count)
{
	return (PCI_ALLOC_MSI(device_get_parent(dev), dev, count));
}

static inline int
pci_alloc_msix(device_t dev, int *count)
{
	return (PCI_ALLOC_MSIX(device_get_parent(dev), dev, count));
}

static inline int
pci_msix_count(device_t dev)
{
	return (PCI_MSIX_COUNT(device_get_parent(dev), dev));
}

static inline int
pci_msix_table_bar(device_t dev)
{
	return (PCI_MSIX_TABLE_BAR(device_get_parent(dev), dev));
}

static inline int
pci_find_cap(device_t dev, int capability, int *capreg)
{
	return (PCI_FIND_CAP(device_get_parent(dev), dev, capability, capreg));
}

static inline uint32_t
pci_read_config(device_t dev, int reg, int width)
{
	return (PCI_READ_CONFIG(device_get_parent(dev), dev, reg, width));
}

static inline int
pci_release_msi(device_t dev)
{
	return (PCI_RELEASE_MSI(device_get_parent(dev), dev));
}

#endif
