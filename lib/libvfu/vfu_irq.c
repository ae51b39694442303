/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interrupts to the client; see vfu_irq.h.  Linux's VFIO documentation and
 * <linux/vfio.h> define what SET_IRQS means.
 */

#include <sys/param.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "loop.h"
#include "peer_close.h"
#include "peer_keep.h"
#include "vfu_irq.h"

void
vfu_irq_init(struct vfu_irq *irq)
{
	irq->intx_fd = irq->msi_fd = irq->unmask_fd = -1;
	irq->unmask_ev = NULL;
	irq->level = irq->masked = irq->shown = irq->intx_disabled = false;
	irq->rises = 0;
	irq->sent = irq->unmasked = 0;
	irq->unmasking = irq->again = false;
	irq->keep = NULL;
	irq->calls = 0; /* mutants: the number is even already */
}

void
vfu_irq_set_keep(struct vfu_irq *irq, const struct peer_keep *keep)
{
	irq->keep = keep;
}

/* The name of a descriptor in the store. */
static const char *
irq_name(const struct vfu_irq *irq, const int *slot)
{
	return (slot == &irq->intx_fd ? "intx" : slot == &irq->msi_fd ? "msi" :
	    "unmask");
}

static void
irq_drop(struct vfu_irq *irq, int *slot)
{
	const int fd = *slot;

	if (fd == -1)
		return;
	*slot = -1;
	peer_keep_remove(irq->keep, irq_name(irq, slot));
	close(fd);
}

/* Call before and after a system call that the client can make block. */
static void
irq_call(struct vfu_irq *irq)
{
	/* mutants: it is odd during a call, too */
	atomic_store_32(&irq->calls, irq->calls + 1);
}

/*
 * Write events to the client's descriptor.  If the write fails, the client
 * loses them.
 */
static void
irq_signal(struct vfu_irq *irq, int *slot, uint64_t events)
{
	ssize_t n;

	MPASS(irq->calls % 2 == 0);
	irq_call(irq);
	n = write(*slot, &events, sizeof(events));
	irq_call(irq);
	if (n == (ssize_t)sizeof(events))
		atomic_add_64(&irq->sent, events);
	/* mutants: an eventfd transfers 8 bytes or fails */
	else if (n == -1 && errno == EINTR)
		irq_drop(irq, slot);
}

/* Send an INTx event if one is due. */
static void
irq_intx(struct vfu_irq *irq)
{
	if (!atomic_load_bool(&irq->level) || irq->masked ||
	    irq->intx_disabled || irq->intx_fd == -1)
		return;
	irq->masked = irq->shown = true;
	irq_signal(irq, &irq->intx_fd, 1);
}

static void
irq_unmask(struct vfu_irq *irq)
{
	atomic_add_64(&irq->unmasked, 1);
	irq->masked = irq->shown = false;
	irq_intx(irq);
}

void
vfu_irq_level(struct vfu_irq *irq, bool level)
{
	atomic_store_bool(&irq->level, level);
	if (level) {
		/* mutants: on x86 the next operation is a fence */
		atomic_thread_fence_seq_cst();
		atomic_add_rel_32(&irq->rises, 1);
	}
}

bool
vfu_irq_pending(const struct vfu_irq *irq)
{
	return (atomic_load_acq_32(&irq->rises) != 0);
}

bool
vfu_irq_asserted(const struct vfu_irq *irq)
{
	return (atomic_load_bool(&irq->level) ||
	    (irq->shown && irq->intx_fd != -1));
}

void
vfu_irq_flush(struct vfu_irq *irq)
{
	uint32_t rises;

	if (!vfu_irq_pending(irq))
		return;
	rises = atomic_swap_32(&irq->rises, 0);
	/* mutants: on x86 the atomic operation before it is a fence, too */
	atomic_thread_fence_seq_cst();
	if (irq->msi_fd != -1) {
		irq_signal(irq, &irq->msi_fd, rises);
		return;
	}
	/* irq_intx() marks the line once more. */
	if (irq->again && irq->shown && atomic_load_bool(&irq->level))
		irq->masked = false;
	irq->again = false;
	irq_intx(irq);
}

void
vfu_irq_intx_disable(struct vfu_irq *irq, bool disabled)
{
	irq->intx_disabled = disabled;
	if (irq->msi_fd == -1)
		irq_intx(irq);
}

int
vfu_irq_info(struct vfio_user_irq_info *info)
{
	switch (info->index) {
	case VFIO_PCI_INTX_IRQ_INDEX:
		info->flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE |
		    VFIO_IRQ_INFO_AUTOMASKED;
		info->count = 1;
		return (0);
	case VFIO_PCI_MSI_IRQ_INDEX:
		info->flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
		info->count = 1;
		return (0);
	case VFIO_PCI_MSIX_IRQ_INDEX:
	case VFIO_PCI_REQ_IRQ_INDEX:
		info->flags = 0;
		info->count = 0;
		return (0);
	default:
		/* And ERR: a conventional PCI device reports no errors. */
		return (EINVAL);
	}
}

static void
irq_drop_unmask(struct vfu_irq *irq)
{
	if (irq->unmask_ev != NULL)
		loop_delete(irq->unmask_ev);
	irq->unmask_ev = NULL;
	irq_drop(irq, &irq->unmask_fd);
}

static void
irq_unmask_event(int fd, void *arg)
{
	struct vfu_irq *irq = arg;
	uint64_t count;
	ssize_t n;

	irq->unmasking = true;
	atomic_thread_fence_rel();
	irq_call(irq);
	n = read(fd, &count, sizeof(count));
	irq_call(irq);
	if (n == (ssize_t)sizeof(count))
		irq_unmask(irq);
	atomic_thread_fence_rel();
	irq->unmasking = false;
	if (n == (ssize_t)sizeof(count))
		return;
	/* mutants: an eventfd transfers 8 bytes or fails */
	if (n == -1 && errno == EINTR)
		irq_drop_unmask(irq);
}

void
vfu_irq_clear(struct vfu_irq *irq)
{
	irq_drop_unmask(irq);
	irq_drop(irq, &irq->intx_fd);
	irq_drop(irq, &irq->msi_fd);
	irq->masked = irq->shown = irq->intx_disabled = false;
	irq->again = false;
	atomic_store_rel_32(&irq->rises, 0);
	/* mutants: on x86 the system calls that follow suffice */
	atomic_thread_fence_seq_cst();
}

/*
 * Anonymous inodes have no file type, so this rejects files, pipes and sockets,
 * on which a call may block in other ways.
 */
bool
vfu_irq_fd(int fd)
{
	/* mutants 2: F_SETFL ignores the bit, and succeeds on an eventfd */
	return (peer_fd_kind(fd) == PEER_FD_ANON &&
	    fcntl(fd, F_SETFL, O_NONBLOCK) != -1);
}

/* Take an eventfd from the client. */
static int
irq_take(struct vfu_irq *irq, int *slot, int *fd)
{
	if (!vfu_irq_fd(*fd))
		return (EINVAL);
	/* Not with irq_drop(): the store never lacks what the slot has. */
	peer_keep_put(irq->keep, irq_name(irq, slot), *fd);
	if (*slot != -1) /* mutants 3: none is -1, 0, 1 or 2 */
		close(*slot);
	*slot = *fd;
	*fd = -1;
	return (0);
}

/* TRIGGER: set the descriptor for events, or send one event. */
static int
irq_set_trigger(struct vfu_irq *irq, int *slot, bool eventfd, bool act,
    int *fds, int nfds)
{
	int error;

	if (!eventfd) {
		if (act && *slot != -1)
			irq_signal(irq, slot, 1);
		return (0);
	}
	if (nfds == 0) {
		irq_drop(irq, slot);
		return (0);
	}
	error = irq_take(irq, slot, &fds[0]);
	if (error != 0)
		return (error);
	if (slot == &irq->intx_fd) {
		irq->masked = irq->shown = false;
		irq_intx(irq);
	}
	return (0);
}

/* UNMASK: now, or on each event of the client. */
static int
irq_set_unmask(struct vfu_irq *irq, bool eventfd, bool act, int *fds,
    int nfds)
{
	int error;

	if (!eventfd) {
		if (act)
			irq_unmask(irq);
		return (0);
	}
	irq_drop_unmask(irq);
	if (nfds == 0)
		return (0);
	error = irq_take(irq, &irq->unmask_fd, &fds[0]);
	/* mutants: mevent_add() refuses -1, and the error is the same */
	if (error != 0)
		return (error);
	irq->unmask_ev = loop_add(irq->unmask_fd, LOOP_READ, irq_unmask_event,
	    irq);
	if (irq->unmask_ev == NULL) {
		irq_drop(irq, &irq->unmask_fd);
		return (EINVAL);
	}
	return (0);
}

int
vfu_irq_set(struct vfu_irq *irq, const struct vfio_user_irq_set *set,
    const uint8_t *data, size_t len, int *fds, int nfds)
{
	bool act, eventfd, intx;
	uint32_t action;
	int *slot;

	intx = set->index == VFIO_PCI_INTX_IRQ_INDEX;
	if (!intx && set->index != VFIO_PCI_MSI_IRQ_INDEX)
		return (EINVAL);
	slot = intx ? &irq->intx_fd : &irq->msi_fd;
	if ((set->flags & ~(VFIO_IRQ_SET_DATA_TYPE_MASK |
	    VFIO_IRQ_SET_ACTION_TYPE_MASK)) != 0 || set->start != 0)
		return (EINVAL);

	action = set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;
	/* mutants: the compiler warns of variables that are not set */
	act = eventfd = false;
	switch (set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_NONE:
		if (set->count == 0 && action == VFIO_IRQ_SET_ACTION_TRIGGER &&
		    nfds == 0) {
			/* Disable the interrupt. */
			if (intx)
				irq_drop_unmask(irq);
			irq_drop(irq, slot);
			return (0);
		}
		act = true;
		break;
	case VFIO_IRQ_SET_DATA_BOOL:
		if (len < 1)
			return (EINVAL);
		act = data[0] != 0;
		break;
	case VFIO_IRQ_SET_DATA_EVENTFD:
		eventfd = true;
		break;
	default:
		return (EINVAL);
	}
	if (set->count != 1 || nfds > (eventfd ? 1 : 0))
		return (EINVAL);

	switch (action) {
	case VFIO_IRQ_SET_ACTION_TRIGGER:
		return (irq_set_trigger(irq, slot, eventfd, act, fds, nfds));
	case VFIO_IRQ_SET_ACTION_UNMASK:
		if (!intx)
			return (EINVAL);
		return (irq_set_unmask(irq, eventfd, act, fds, nfds));
	case VFIO_IRQ_SET_ACTION_MASK:
		if (!intx || eventfd)
			return (ENOTSUP);
		if (act)
			irq->masked = true;
		return (0);
	default:
		return (EINVAL);
	}
}

int
vfu_irq_restore(struct vfu_irq *irq, const struct vfu_irq_state *state,
    int intx_fd, int msi_fd, int unmask_fd)
{
	if (unmask_fd != -1) {
		irq->unmask_ev = loop_add(unmask_fd, LOOP_READ,
		    irq_unmask_event, irq);
		if (irq->unmask_ev == NULL)
			return (errno);
	}
	irq->intx_fd = intx_fd;
	irq->msi_fd = msi_fd;
	irq->unmask_fd = unmask_fd;
	irq->masked = state->vis_masked;
	irq->shown = state->vis_shown;
	irq->intx_disabled = state->vis_intx_disabled;
	atomic_store_64(&irq->sent, state->vis_sent);
	atomic_store_64(&irq->unmasked, state->vis_unmasked);
	/* What was read of unmask_fd cannot be read again. */
	if (state->vis_unmasking)
		irq->masked = irq->shown = false;
	irq->again = true;
	/* The model may have set the line, and counted that. */
	atomic_add_rel_32(&irq->rises, MAX(state->vis_rises, 1));
	return (0);
}

void
vfu_irq_unrestore(struct vfu_irq *irq)
{
	if (irq->unmask_ev != NULL)
		loop_delete(irq->unmask_ev);
	irq->unmask_ev = NULL;
	irq->intx_fd = irq->msi_fd = irq->unmask_fd = -1;
	irq->masked = irq->shown = irq->intx_disabled = irq->again = false;
	atomic_store_64(&irq->sent, 0);
	atomic_store_64(&irq->unmasked, 0);
	atomic_store_rel_32(&irq->rises, 0);
}
