/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The device's interrupts: event descriptors from the client, one for the
 * INTx line, one for the MSI message, and one for each vector of MSI-X.
 *
 * INTx is level triggered and an event is an edge, so VFIO masks the line with
 * each event.  When the guest has handled the interrupt, the client unmasks the
 * line, with a command or through an eventfd; if the line is still asserted,
 * the next event follows.
 *
 * The descriptors are set to O_NONBLOCK, which the client may undo at any time.
 * If a system call on one of them blocks, the watchdog (peer_watch.h) ends it,
 * and the descriptor is closed.  Only the device's own thread makes these
 * calls.  Another thread that has raised an interrupt signals the descriptor in
 * a way that cannot block (peer_signal.h), or leaves the event to the device's
 * thread.
 *
 * `mtx' covers the descriptors and the state of INTx.  The device's thread may
 * have it for as long as the client blocks a call; others only try to take it,
 * and have it for one call that cannot block.
 *
 * The client emulates the table of MSI-X.  It passes a descriptor when the
 * guest first unmasks a vector, and keeps what is sent while it is masked.
 * What is sent before is sent then.
 *
 * Only the device's thread may call these functions, except vfu_irq_level(),
 * vfu_irq_message(), vfu_irq_pending() and vfu_irq_signal().
 */

#ifndef _VFU_IRQ_H_
#define	_VFU_IRQ_H_

#include <sys/systm.h>

#include <pthread.h>

#include "vfio_user.h"

struct loop_event;
struct peer_keep;

/* Vectors of MSI-X that a device has, at most. */
#define	VFU_IRQ_VECTORS	5

struct vfu_irq {
	pthread_mutex_t	mtx;		/* see above */
	uint32_t	sending;	/* another thread sends; atomic */
	unsigned int	nvectors;	/* of MSI-X; 0: there is no MSI-X */
	int		intx_fd;	/* -1: none */
	int		msi_fd;		/* -1: none */
	int		msix_fd[VFU_IRQ_VECTORS];	/* -1: none */
	int		unmask_fd;	/* an event unmasks; -1: none */
	struct loop_event *unmask_ev;
	bool		level;		/* of the line, set by the model;
					   relaxed atomic */
	uint32_t	rises;		/* assertions of the line not sent
					   yet; atomic */
	uint32_t	posted;		/* messages of MSI-X since the last
					   flush; atomic */
	uint32_t	message[VFU_IRQ_VECTORS]; /* those of each vector that
					   were not sent; atomic */
	bool		masked;		/* INTx, until the client unmasks it */
	bool		shown;		/* an INTx event was sent, and the
					   client has not unmasked since */
	bool		intx_disabled;	/* by the PCI command register */
	uint32_t	calls;		/* starts and ends of system calls on
					   the client's descriptors: odd during
					   a call; relaxed atomic */
	uint64_t	sent;		/* events written; relaxed atomic */
	uint64_t	unmasked;	/* unmasks seen; relaxed atomic */
	bool		unmasking;	/* an event of unmask_fd may have been
					   read, and not been carried out */
	bool		again;		/* send the INTx event once more:
					   vfu_irq_restore() */
	const struct peer_keep *keep;	/* of "intx", "msi", "msix.N" and
					   "unmask", or NULL */
};

/*
 * Begin without descriptors, and with the line low; with `nvectors' vectors of
 * MSI-X, 0 to VFU_IRQ_VECTORS.  vfu_irq_set_keep() has descriptors that come
 * kept.
 */
void	vfu_irq_init(struct vfu_irq *irq, unsigned int nvectors);
void	vfu_irq_set_keep(struct vfu_irq *irq, const struct peer_keep *keep);

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

/*
 * Send a message of MSI-X; the next vfu_irq_flush() does.  `vector' is less
 * than the device has.  Any thread, one at a time.
 */
void	vfu_irq_message(struct vfu_irq *irq, unsigned int vector);

/* Return whether vfu_irq_flush() has an event to send.  Any thread. */
bool	vfu_irq_pending(const struct vfu_irq *irq);

/*
 * Return whether the guest sees the line asserted, or would if it had not
 * disabled INTx.  From an event until the client unmasks, the client asserts
 * the line of the guest's interrupt controller; the device's own may have been
 * deasserted meanwhile.  A guest that did not find it asserted then would not
 * claim the interrupt, and would get it again at once.
 */
bool	vfu_irq_asserted(struct vfu_irq *irq);

/*
 * Send pending events: INTx by level, MSI by edge, MSI-X.  When this returns,
 * those that another thread was sending are sent, too.
 */
void	vfu_irq_flush(struct vfu_irq *irq);

/*
 * Take back the events that were sent and the client has not read: of the line
 * and MSI, if `vectors' is 0, or of these vectors, as bits.  Their pending
 * events are not sent.  No such event may be added meanwhile.
 */
void	vfu_irq_withdraw(struct vfu_irq *irq, uint32_t vectors);

/*
 * Send pending events, without waiting for the client or for the device's
 * thread.  Returns false if some are left, which vfu_irq_flush() must send
 * then.  Any thread.
 */
bool	vfu_irq_signal(struct vfu_irq *irq);

/*
 * Have no other thread send events from now on: for a device whose state is
 * saved, which then must not be used any more.
 */
void	vfu_irq_hold(struct vfu_irq *irq);

/*
 * Apply the INTx disable bit of the PCI command register, which has been
 * written.
 */
void	vfu_irq_intx_disable(struct vfu_irq *irq, bool disabled);

/*
 * Set info->flags and info->count for info->index.  Returns 0, or EINVAL for an
 * unknown index.
 */
int	vfu_irq_info(const struct vfu_irq *irq,
	    struct vfio_user_irq_info *info);

/*
 * Carry out VFIO_USER_DEVICE_SET_IRQS with `len' bytes of data after the header
 * and `nfds' descriptors.  Sets descriptors in `fds' that it keeps to -1.
 * Returns 0, EINVAL or ENOTSUP.
 */
int	vfu_irq_set(struct vfu_irq *irq, const struct vfio_user_irq_set *set,
	    const uint8_t *data, size_t len, int *fds, int nfds);

/* The state that another process has left: vfu_state.h. */
struct vfu_irq_state {
	bool		vis_masked;
	bool		vis_shown;
	bool		vis_intx_disabled;
	bool		vis_unmasking;
	uint32_t	vis_rises;
	uint64_t	vis_sent;
	uint64_t	vis_unmasked;
};

/*
 * Go on from a state, with these eventfds (-1: none), which must have been
 * checked as vfu_irq_fd() does, and are the device's from now on.
 *
 * The process may have ended between noting an event and writing it.  So the
 * next vfu_irq_flush() sends INTx once more if the line is asserted then and
 * waits to be unmasked, an MSI message, and one of each vector of MSI-X if any
 * vector has a descriptor, that is, if MSI-X is on.  That is one too many if it
 * had been written.  A client asserts a level-triggered line then that it has
 * asserted already, and a guest finds no cause of a message, as it does when it
 * has handled the cause of two with the first.
 *
 * Returns 0; or an errno if the loop has no place for an event, with nothing
 * changed.
 */
int	vfu_irq_restore(struct vfu_irq *irq, const struct vfu_irq_state *state,
	    int intx_fd, int msi_fd, int unmask_fd,
	    const int msix_fd[VFU_IRQ_VECTORS]);

/* Undo vfu_irq_restore(); the descriptors stay open, and in the store. */
void	vfu_irq_unrestore(struct vfu_irq *irq);

/* Return whether `fd' is an eventfd as a client may pass it. */
bool	vfu_irq_fd(int fd);

#endif /* !_VFU_IRQ_H_ */
