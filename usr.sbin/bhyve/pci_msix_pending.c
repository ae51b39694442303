/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Messages of MSI-X that wait: pci_msix_pending.h. */

#include "pci_emul.h"
#include "pci_msix_pending.h"

int
pci_msix_pending_init(struct pci_msix_pending *pm, struct pci_devinst *pi)
{
	pm->pm_pi = pi;
	pm->pm_bits = 0;
	pm->pm_paused = false;
	return (pthread_mutex_init(&pm->pm_mtx, NULL));
}

void
pci_msix_pending_destroy(struct pci_msix_pending *pm)
{
	pthread_mutex_destroy(&pm->pm_mtx);
}

/* Return whether messages of a vector have to wait.  pm_mtx held. */
static bool
masked(const struct pci_msix_pending *pm, unsigned int vector)
{
	struct pci_devinst *pi = pm->pm_pi;

	return (pm->pm_paused || !pci_msix_enabled(pi) ||
	    pi->pi_msix.function_mask != 0 ||
	    (pi->pi_msix.table[vector].vector_control &
	    PCIM_MSIX_VCTRL_MASK) != 0);
}

/* Send what is pending and not masked any more.  pm_mtx held. */
static void
send_unmasked(struct pci_msix_pending *pm)
{
	unsigned int v;

	for (v = 0; v < 32 && pm->pm_bits >> v != 0; v++)
		if ((pm->pm_bits & 1U << v) != 0 && !masked(pm, v)) {
			pm->pm_bits &= ~(1U << v);
			pci_generate_msix(pm->pm_pi, v);
		}
}

void
pci_msix_pending_send(struct pci_msix_pending *pm, unsigned int vector)
{
	pthread_mutex_lock(&pm->pm_mtx);
	pm->pm_bits |= 1U << vector;
	send_unmasked(pm);
	pthread_mutex_unlock(&pm->pm_mtx);
}

void
pci_msix_pending_pause(struct pci_msix_pending *pm, bool paused)
{
	pthread_mutex_lock(&pm->pm_mtx);
	pm->pm_paused = paused;
	send_unmasked(pm);
	pthread_mutex_unlock(&pm->pm_mtx);
}

void
pci_msix_pending_write(struct pci_msix_pending *pm, uint64_t offset, int size,
    uint64_t value)
{
	pthread_mutex_lock(&pm->pm_mtx);
	pci_emul_msix_twrite(pm->pm_pi, offset, size, value);
	send_unmasked(pm);
	pthread_mutex_unlock(&pm->pm_mtx);
}

/* Read the BAR of the table, with the pending bits, which bhyve reads as 0. */
uint64_t
pci_msix_pending_read(struct pci_msix_pending *pm, uint64_t offset, int size)
{
	uint64_t value;

	pthread_mutex_lock(&pm->pm_mtx);
	value = pci_emul_msix_tread(pm->pm_pi, offset, size);
	if (offset == pm->pm_pi->pi_msix.pba_offset && value == 0)
		value = pm->pm_bits;
	pthread_mutex_unlock(&pm->pm_mtx);
	return (value);
}

void
pci_msix_pending_capability(struct pci_msix_pending *pm, int offset, int size,
    uint32_t value)
{
	pthread_mutex_lock(&pm->pm_mtx);
	pci_emul_capwrite(pm->pm_pi, offset, size, value, 0, 0);
	send_unmasked(pm);
	pthread_mutex_unlock(&pm->pm_mtx);
}
