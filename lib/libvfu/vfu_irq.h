/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The device's interrupts: event descriptors from the client, one for the
 * INTx line and one for the MSI message.
 *
 * INTx is level triggered and an event is an edge, so VFIO masks the line with
 * each event.  When the guest has handled the interrupt, the client unmasks the
 * line, with a command or through an eventfd; if the line is still asserted,
 * the next event follows.
 *
 * The descriptors are set to O_NONBLOCK, which the client may undo at any time.
 * If a system call on one of them blocks, the watchdog (peer_watch.h) ends it,
 * and the descriptor is closed.  Only the device's own thread makes these
 * calls, and it holds no lock then: others only set the level of the line.
 *
 * Only the device's thread may call these functions, except vfu_irq_level()
 * and vfu_irq_pending().
 */

#ifndef _VFU_IRQ_H_
#define	_VFU_IRQ_H_

#include <sys/systm.h>

#include "vfio_user.h"

struct loop_event;

struct vfu_irq {
	int		intx_fd;	/* -1: none */
	int		msi_fd;		/* -1: none */
	int		unmask_fd;	/* an event unmasks; -1: none */
	struct loop_event *unmask_ev;
	bool		level;		/* of the line, set by the model;
					   relaxed atomic */
	uint32_t	rises;		/* assertions of the line not sent
					   yet; atomic */
	bool		masked;		/* INTx, until the client unmasks it */
	bool		shown;		/* an INTx event was sent, and the
					   client has not unmasked since */
	bool		intx_disabled;	/* by the PCI command register */
	uint32_t	calls;		/* starts and ends of system calls on
					   the client's descriptors: odd during
					   a call; relaxed atomic */
	uint64_t	sent;		/* events written; relaxed atomic */
	uint64_t	unmasked;	/* unmasks seen; relaxed atomic */
};

/* Begin without descriptors, and with the line low. */
void	vfu_irq_init(struct vfu_irq *irq);

/*
 * Close all descriptors, and discard the mask and pending events.  Does not
 * change the line.
 */
void	vfu_irq_clear(struct vfu_irq *irq);

/*
 * Set the level of the line; the next vfu_irq_flush() sends the event.  Any
 * thread, one at a time.
 */
void	vfu_irq_level(struct vfu_irq *irq, bool level);

/* Whether vfu_irq_flush() has an event to send.  Any thread. */
bool	vfu_irq_pending(const struct vfu_irq *irq);

/*
 * Whether the guest sees the line asserted, or would if it had not disabled
 * INTx.  From an event until the client unmasks, the client asserts the line of
 * the guest's interrupt controller; the device's own may have been deasserted
 * meanwhile.  A guest that did not find it asserted then would not claim the
 * interrupt, and would get it again at once.
 */
bool	vfu_irq_asserted(const struct vfu_irq *irq);

/* Send pending events: INTx by level, MSI by edge. */
void	vfu_irq_flush(struct vfu_irq *irq);

/* The INTx disable bit of the PCI command register has been written. */
void	vfu_irq_intx_disable(struct vfu_irq *irq, bool disabled);

/*
 * Set info->flags and info->count for info->index.  Returns 0, or EINVAL for an
 * unknown index.
 */
int	vfu_irq_info(struct vfio_user_irq_info *info);

/*
 * Carry out VFIO_USER_DEVICE_SET_IRQS with `len' bytes of data after the header
 * and `nfds' descriptors.  Sets descriptors in `fds' that it keeps to -1.
 * Returns 0, EINVAL or ENOTSUP.
 */
int	vfu_irq_set(struct vfu_irq *irq, const struct vfio_user_irq_set *set,
	    const uint8_t *data, size_t len, int *fds, int nfds);

#endif /* !_VFU_IRQ_H_ */
