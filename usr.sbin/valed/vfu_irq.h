/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The adapter's interrupts: event descriptors from the client, one for the
 * INTx line and one for the MSI message.
 *
 * INTx is level triggered but an event is an edge, so VFIO masks the line by
 * itself with each event; the client unmasks it when the guest has handled
 * the interrupt, with a command or by an event of its own, and if the line is
 * still asserted then, the next event follows.
 *
 * The descriptors are made not to block, but stay the client's, who may change
 * that at any time.  A call that a signal has to end (vm_watch()) is the last
 * one on that descriptor.  So nobody but the client's own thread makes one, and
 * it holds no lock then: the model only says what the line is to be.
 *
 * Belongs to one thread, but for vfu_irq_level() and vfu_irq_pending().
 */

#ifndef _VFU_IRQ_H_
#define	_VFU_IRQ_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vfio_user.h"

struct mevent;

struct vfu_irq {
	int		intx_fd;	/* -1: none */
	int		msi_fd;		/* -1: none */
	int		unmask_fd;	/* unmasks when it fires; -1: none */
	struct mevent	*unmask_ev;
	bool		level;		/* the line, as the model has it;
					   relaxed atomic */
	uint32_t	rises;		/* it was asserted so often, and that
					   has not been sent; atomic */
	bool		masked;		/* INTx waits to be unmasked */
	bool		intx_disabled;	/* by the PCI command register */
	uint32_t	calls;		/* system calls on the client's
					   descriptors, begun and ended: odd
					   while in one; relaxed atomic */
	uint64_t	sent;		/* events written; relaxed atomic */
	uint64_t	unmasked;	/* unmasks seen; relaxed atomic */
};

void	vfu_irq_init(struct vfu_irq *irq);

/* Close all descriptors and forget the mask; the line stays as it is. */
void	vfu_irq_clear(struct vfu_irq *irq);

/*
 * The model asserts or releases the line.  Any thread, one at a time; the next
 * vfu_irq_flush() sends what comes of it.
 */
void	vfu_irq_level(struct vfu_irq *irq, bool level);

/* Whether vfu_irq_flush() has something to send.  Any thread. */
bool	vfu_irq_pending(const struct vfu_irq *irq);

/* Send what is due: an event for a level, a message for each edge. */
void	vfu_irq_flush(struct vfu_irq *irq);

/* The INTx disable bit of the PCI command register has been written. */
void	vfu_irq_intx_disable(struct vfu_irq *irq, bool disabled);

/*
 * Fill in info->flags and count for info->index.  0, or EINVAL for an index
 * that is not there.
 */
int	vfu_irq_info(struct vfio_user_irq_info *info);

/*
 * VFIO_USER_DEVICE_SET_IRQS with `len' bytes of data after the header and
 * `nfds' descriptors.  Descriptors that are kept are replaced by -1 in `fds'.
 * Returns 0 or an errno: EINVAL, ENOTSUP, ENOMEM.
 */
int	vfu_irq_set(struct vfu_irq *irq, const struct vfio_user_irq_set *set,
	    const uint8_t *data, size_t len, int *fds, int nfds);

#endif /* !_VFU_IRQ_H_ */
