/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Messages of MSI-X that wait.
 *
 * bhyve drops the message of a vector that is masked.  Here it stays pending,
 * which the guest sees in the pending bits behind the table, and is sent when
 * the vector is unmasked: PCI 3.0 section 6.8.3.  So is one that comes while
 * the device is paused.
 *
 * `pm_mtx' protects the bits, and what masks vectors: the table, and the
 * capability.  The lock is taken last, and bhyve's functions are called with
 * it.  Unless a function says otherwise, any thread may call it.
 */

#ifndef _PCI_MSIX_PENDING_H_
#define	_PCI_MSIX_PENDING_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pci_devinst;

struct pci_msix_pending {
	struct pci_devinst *pm_pi;
	pthread_mutex_t	 pm_mtx;
	uint32_t	 pm_bits;	/* vectors that are pending */
	bool		 pm_paused;
};

/*
 * Initialize for a device, with 32 vectors at most, or without MSI-X.  Returns
 * 0 or an errno.
 */
int	pci_msix_pending_init(struct pci_msix_pending *pm,
	    struct pci_devinst *pi);
void	pci_msix_pending_destroy(struct pci_msix_pending *pm);

/* Send the message of a vector that there is, at once or when it can be. */
void	pci_msix_pending_send(struct pci_msix_pending *pm, unsigned int vector);

/*
 * Send no message while the device is paused: then pm_bits may be read and set.
 */
void	pci_msix_pending_pause(struct pci_msix_pending *pm, bool paused);

/*
 * Access, for the guest, the BAR of the table at `offset', of `size' bytes; or
 * writes configuration space where the capabilities are, as
 * pci_emul_capwrite().
 */
void	pci_msix_pending_write(struct pci_msix_pending *pm, uint64_t offset,
	    int size, uint64_t value);
uint64_t pci_msix_pending_read(struct pci_msix_pending *pm, uint64_t offset,
	    int size);
void	pci_msix_pending_capability(struct pci_msix_pending *pm, int offset,
	    int size, uint32_t value);

#endif /* !_PCI_MSIX_PENDING_H_ */
