/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Stand-in for the header generated from dev/pci/pci_if.m. */

#ifndef _pci_if_h_
#define	_pci_if_h_

int PCI_ENABLE_BUSMASTER(device_t dev, device_t child);
int PCI_DISABLE_BUSMASTER(device_t dev, device_t child);
int PCI_ALLOC_MSI(device_t dev, device_t child, int *count);
int PCI_ALLOC_MSIX(device_t dev, device_t child, int *count);
int PCI_MSIX_COUNT(device_t dev, device_t child);
int PCI_MSIX_TABLE_BAR(device_t dev, device_t child);
int PCI_RELEASE_MSI(device_t dev, device_t child);
int PCI_FIND_CAP(device_t dev, device_t child, int capability, int *capreg);
uint32_t PCI_READ_CONFIG(device_t dev, device_t child, int reg, int width);

#endif
