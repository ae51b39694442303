/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * PCI configuration space of the adapter.  The client (QEMU) keeps the base
 * address registers and the MSI capability it shows to the guest itself, but
 * reads ours first to learn what the device is, and forwards writes.
 *
 * Belongs to one thread.
 */

#ifndef _VFU_PCI_H_
#define	_VFU_PCI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define	VFU_PCI_SIZE	256	/* bytes: conventional PCI */

struct vfu_pci {
	uint8_t		cfg[VFU_PCI_SIZE];
	uint16_t	subdevice;
};

/* A device with this subsystem ID, after PCI RST#. */
void	vfu_pci_init(struct vfu_pci *pci, uint16_t subdevice);

/* Set all registers to their values after PCI RST#. */
void	vfu_pci_reset(struct vfu_pci *pci);

/*
 * Read or write `len' bytes from `off' on; the caller has checked that they
 * lie inside.  Bits that are read only keep their value.
 */
void	vfu_pci_read(const struct vfu_pci *pci, size_t off, void *buf,
	    size_t len);
void	vfu_pci_write(struct vfu_pci *pci, size_t off, const void *buf,
	    size_t len);

/*
 * Command register: whether the device may access memory by itself, and
 * whether it must keep its interrupt line still.
 */
bool	vfu_pci_busmaster(const struct vfu_pci *pci);
bool	vfu_pci_intx_disabled(const struct vfu_pci *pci);

#endif /* !_VFU_PCI_H_ */
