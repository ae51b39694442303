/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * PCI configuration space of the device.  The client (QEMU) emulates the base
 * address registers, and MSI and MSI-X as the guest sees them.  It forwards
 * all writes, and reads of everything else, such as the status register.
 *
 * Only the device's thread uses it.
 */

#ifndef _VFU_PCI_H_
#define	_VFU_PCI_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of configuration space: those of conventional PCI, which have all
 * registers; and those of PCI Express (Base Specification 2.0, section 7.2),
 * where the others are 0 and read-only: no extended capabilities.
 */
#define	VFU_PCI_SIZE	256
#define	VFU_PCIE_SIZE	4096

/*
 * A field of configuration space, little endian.  Of two for the same byte the
 * value is that of the later one, and the writable bits those of the first.
 */
struct vfu_pci_field {
	uint8_t		vpf_off;
	uint8_t		vpf_size;	/* bytes: 1, 2 or 4 */
	uint32_t	vpf_value;	/* after reset */
	uint32_t	vpf_writable;	/* bits */
};

struct vfu_pci {
	const struct vfu_pci_field *field;
	unsigned int	nfields;
	uint8_t		cfg[VFU_PCI_SIZE];
	uint16_t	subdevice;	/* of vfu_pci_init() */
	uint16_t	shown;		/* of vfu_pci_show(), if that is
					   later */
};

/*
 * Initialize as after PCI RST#, with these fields, which must outlive *pci, and
 * this subsystem ID.
 */
void	vfu_pci_init(struct vfu_pci *pci, const struct vfu_pci_field *field,
	    unsigned int nfields, uint16_t subdevice);

/* Reset all registers, as PCI RST# does. */
void	vfu_pci_reset(struct vfu_pci *pci);

/* Show this subsystem ID from now on, also after a reset. */
void	vfu_pci_show(struct vfu_pci *pci, uint16_t subdevice);

/*
 * Read or write `len' bytes at `off'.  The caller must check that they are
 * inside the configuration space, that of PCI Express.  `intx' is whether the
 * interrupt line is asserted: the status register says so, even while the
 * command register disables the line.  Writes do not change read-only bits.
 */
void	vfu_pci_read(const struct vfu_pci *pci, bool intx, size_t off,
	    void *buf, size_t len);
void	vfu_pci_write(struct vfu_pci *pci, size_t off, const void *buf,
	    size_t len);

/*
 * Return what the command register says: whether the device may access memory
 * (bus master), and whether INTx is disabled.
 */
bool	vfu_pci_busmaster(const struct vfu_pci *pci);
bool	vfu_pci_intx_disabled(const struct vfu_pci *pci);

/* Return whether the MSI-X capability at `cap' is enabled. */
bool	vfu_pci_msix(const struct vfu_pci *pci, uint8_t cap);

#endif /* !_VFU_PCI_H_ */
