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
#include "peer_signal.h"
#include "vfu_irq.h"

/* Leave no vector a descriptor, or a message to send. */
static void
msix_none(struct vfu_irq *irq)
{
	unsigned int v;

	for (v = 0; v < VFU_IRQ_VECTORS; v++) {
		irq->msix_fd[v] = -1;
		atomic_store_32(&irq->message[v], 0);
	}
	atomic_store_rel_32(&irq->posted, 0);
}

void
vfu_irq_init(struct vfu_irq *irq, unsigned int nvectors)
{
	pthread_mutexattr_t attr;

	MPASS(nvectors <= VFU_IRQ_VECTORS);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&irq->mtx, &attr);
	pthread_mutexattr_destroy(&attr);
	irq->sending = 0;
	irq->nvectors = nvectors;
	msix_none(irq);
	irq->intx_fd = irq->msi_fd = irq->unmask_fd = -1;
	irq->unmask_ev = NULL;
	irq->level = irq->masked = irq->shown = irq->intx_disabled = false;
	irq->rises = 0;
	irq->sent = irq->unmasked = 0;
	irq->unmasking = irq->again = false;
	irq->keep = NULL;
	irq->calls = 0;
}

void
vfu_irq_set_keep(struct vfu_irq *irq, const struct peer_keep *keep)
{
	irq->keep = keep;
}

/* Return the name of a descriptor in the store. */
static const char *
irq_name(const struct vfu_irq *irq, const int *slot)
{
	static const char *const msix[VFU_IRQ_VECTORS] =
	    { "msix.0", "msix.1", "msix.2", "msix.3", "msix.4" };

	if (slot >= irq->msix_fd && slot < irq->msix_fd + VFU_IRQ_VECTORS)
		return (msix[slot - irq->msix_fd]);
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
	else if (n == -1 && errno == EINTR)
		irq_drop(irq, slot);
}

static bool
intx_due(const struct vfu_irq *irq)
{
	return (atomic_load_bool(&irq->level) && !irq->masked &&
	    !irq->intx_disabled && irq->intx_fd != -1);
}

/* Send an INTx event if one is due. */
static void
irq_intx(struct vfu_irq *irq)
{
	if (!intx_due(irq))
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
		atomic_thread_fence_seq_cst();
		atomic_add_rel_32(&irq->rises, 1);
	}
}

void
vfu_irq_message(struct vfu_irq *irq, unsigned int vector)
{
	MPASS(vector < irq->nvectors);
	atomic_add_32(&irq->message[vector], 1);
	atomic_add_rel_32(&irq->posted, 1);
}

bool
vfu_irq_pending(const struct vfu_irq *irq)
{
	return (atomic_load_acq_32(&irq->rises) != 0 ||
	    atomic_load_acq_32(&irq->posted) != 0);
}

/* Send the messages of a vector that has a descriptor. */
static void
msix_send(struct vfu_irq *irq, unsigned int v)
{
	uint32_t n;

	if (irq->msix_fd[v] == -1)
		return;
	n = atomic_swap_32(&irq->message[v], 0);
	if (n != 0)
		irq_signal(irq, &irq->msix_fd[v], n);
}

bool
vfu_irq_asserted(struct vfu_irq *irq)
{
	bool asserted;

	pthread_mutex_lock(&irq->mtx);
	asserted = atomic_load_bool(&irq->level) ||
	    (irq->shown && irq->intx_fd != -1);
	pthread_mutex_unlock(&irq->mtx);
	return (asserted);
}

static void
irq_flush(struct vfu_irq *irq)
{
	uint32_t rises;
	unsigned int v;

	if (atomic_load_acq_32(&irq->posted) != 0) {
		(void)atomic_swap_32(&irq->posted, 0);
		atomic_thread_fence_acq();
		for (v = 0; v < irq->nvectors; v++)
			msix_send(irq, v);
	}
	if (atomic_load_acq_32(&irq->rises) == 0)
		return;
	rises = atomic_swap_32(&irq->rises, 0);
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
vfu_irq_flush(struct vfu_irq *irq)
{
	/* No mark and no sender: nothing is pending. */
	if (!vfu_irq_pending(irq) && atomic_load_acq_32(&irq->sending) == 0)
		return;
	pthread_mutex_lock(&irq->mtx);
	irq_flush(irq);
	pthread_mutex_unlock(&irq->mtx);
}

/* Read events back.  Returns false if the client has read them. */
static bool
irq_unsignal(struct vfu_irq *irq, int *slot)
{
	uint64_t events;
	ssize_t n;

	if (*slot == -1)
		return (false);
	irq_call(irq);
	n = read(*slot, &events, sizeof(events));
	irq_call(irq);
	if (n == -1 && errno == EINTR)
		irq_drop(irq, slot);
	return (n == (ssize_t)sizeof(events));
}

void
vfu_irq_withdraw(struct vfu_irq *irq, uint32_t vectors)
{
	unsigned int v;

	pthread_mutex_lock(&irq->mtx);
	for (v = 0; v < irq->nvectors; v++) {
		if ((vectors & 1U << v) == 0)
			continue;
		atomic_store_32(&irq->message[v], 0);
		(void)irq_unsignal(irq, &irq->msix_fd[v]);
	}
	if (vectors == 0) {
		atomic_store_rel_32(&irq->rises, 0);
		(void)irq_unsignal(irq, &irq->msi_fd);
		/* A client that has not seen the event does not unmask. */
		if (irq_unsignal(irq, &irq->intx_fd))
			irq->masked = irq->shown = false;
	}
	pthread_mutex_unlock(&irq->mtx);
}

/*
 * Events to signal, each with the counter that it was taken from, to which one
 * that cannot be signalled goes back.
 */
struct signals {
	unsigned int	 n;
	int		 fd[PEER_SIGNAL_MAX];
	uint32_t	*count[PEER_SIGNAL_MAX];
};

static void
signal_add(struct signals *sg, int fd, uint32_t *count)
{
	sg->fd[sg->n] = fd;
	sg->count[sg->n++] = count;
}

/* Take what there is space for of the events of a descriptor, if any. */
static void
signal_take(struct signals *sg, int fd, uint32_t *count)
{
	uint32_t n = fd == -1 ? 0 : atomic_load_32(count);

	n = MIN(n, nitems(sg->fd) - sg->n);
	atomic_add_32(count, -n);
	for (; n > 0; n--)
		signal_add(sg, fd, count);
}

/*
 * Add an INTx event if one is due.  As with irq_intx(), the line masks itself.
 */
static void
signal_intx(struct vfu_irq *irq, struct signals *sg)
{
	if (irq->again || sg->n == nitems(sg->fd) ||
	    atomic_swap_32(&irq->rises, 0) == 0)
		return;
	atomic_thread_fence_seq_cst();
	if (!intx_due(irq))
		return;
	irq->masked = irq->shown = true;
	signal_add(sg, irq->intx_fd, &irq->rises);
}

/* Give back what could not be signalled. */
static void
signal_back(struct vfu_irq *irq, struct signals *sg, unsigned int first)
{
	unsigned int i;

	for (i = first; i < sg->n; i++) {
		if (sg->count[i] != &irq->rises)
			atomic_store_32(&irq->posted, 1);
		else if (irq->msi_fd == -1)
			irq->masked = irq->shown = false;
		atomic_add_rel_32(sg->count[i], 1);
	}
}

static void
signal_all(struct vfu_irq *irq)
{
	struct signals sg = { .n = 0 };
	unsigned int done, v;

	if (atomic_swap_32(&irq->posted, 0) != 0)
		for (v = 0; v < irq->nvectors; v++)
			signal_take(&sg, irq->msix_fd[v], &irq->message[v]);
	if (irq->msi_fd != -1)
		signal_take(&sg, irq->msi_fd, &irq->rises);
	else
		signal_intx(irq, &sg);
	done = peer_signal(sg.fd, sg.n);
	atomic_add_64(&irq->sent, done);
	signal_back(irq, &sg, done);
	/* There may be more of a vector. */
	if (sg.n == nitems(sg.fd))
		atomic_store_rel_32(&irq->posted, 1);
}

bool
vfu_irq_signal(struct vfu_irq *irq)
{
	if (pthread_mutex_trylock(&irq->mtx) != 0)
		return (false);
	atomic_store_32(&irq->sending, 1);
	atomic_thread_fence_seq_cst();
	signal_all(irq);
	atomic_store_rel_32(&irq->sending, 0);
	pthread_mutex_unlock(&irq->mtx);
	return (!vfu_irq_pending(irq));
}

void
vfu_irq_hold(struct vfu_irq *irq)
{
	pthread_mutex_lock(&irq->mtx);
}

void
vfu_irq_intx_disable(struct vfu_irq *irq, bool disabled)
{
	pthread_mutex_lock(&irq->mtx);
	irq->intx_disabled = disabled;
	if (irq->msi_fd == -1)
		irq_intx(irq);
	pthread_mutex_unlock(&irq->mtx);
}

int
vfu_irq_info(const struct vfu_irq *irq, struct vfio_user_irq_info *info)
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
		info->flags = irq->nvectors > 0 ? VFIO_IRQ_INFO_EVENTFD : 0;
		info->count = irq->nvectors;
		return (0);
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
	if (n == (ssize_t)sizeof(count)) {
		pthread_mutex_lock(&irq->mtx);
		irq_unmask(irq);
		pthread_mutex_unlock(&irq->mtx);
	}
	atomic_thread_fence_rel();
	irq->unmasking = false;
	if (n == (ssize_t)sizeof(count))
		return;
	if (n == -1 && errno == EINTR)
		irq_drop_unmask(irq);
}

/* Drop the descriptors of `n' vectors. */
static void
msix_drop(struct vfu_irq *irq, unsigned int first, unsigned int n)
{
	for (; n > 0; first++, n--)
		irq_drop(irq, &irq->msix_fd[first]);
}

void
vfu_irq_clear(struct vfu_irq *irq)
{
	pthread_mutex_lock(&irq->mtx);
	msix_drop(irq, 0, irq->nvectors);
	msix_none(irq);
	irq_drop_unmask(irq);
	irq_drop(irq, &irq->intx_fd);
	irq_drop(irq, &irq->msi_fd);
	irq->masked = irq->shown = irq->intx_disabled = false;
	irq->again = false;
	atomic_store_rel_32(&irq->rises, 0);
	atomic_thread_fence_seq_cst();
	pthread_mutex_unlock(&irq->mtx);
}

/*
 * Reject files, pipes and sockets, on which a call may block in other ways:
 * anonymous inodes have no file type.
 */
bool
vfu_irq_fd(int fd)
{
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
	if (*slot != -1)
		close(*slot);
	*slot = *fd;
	*fd = -1;
	return (0);
}

/* Carry out TRIGGER: set the descriptor for events, or send one event. */
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

/* Carry out UNMASK: now, or on each event of the client. */
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

/*
 * Carry out TRIGGER of vectors of MSI-X: set their descriptors, or send events.
 */
static int
msix_set(struct vfu_irq *irq, const struct vfio_user_irq_set *set,
    const uint8_t *data, size_t len, int *fds, int nfds)
{
	const uint32_t n = set->count;
	uint32_t i;
	int *slot;

	if (set->start > irq->nvectors || n > irq->nvectors - set->start ||
	    (set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK) !=
	    VFIO_IRQ_SET_ACTION_TRIGGER)
		return (EINVAL);
	slot = irq->msix_fd + set->start;
	switch (set->flags & VFIO_IRQ_SET_DATA_TYPE_MASK) {
	case VFIO_IRQ_SET_DATA_NONE:
		if (nfds != 0 || (n == 0 && set->start != 0))
			return (EINVAL);
		if (n == 0) {
			/* The guest has turned MSI-X off. */
			msix_drop(irq, 0, irq->nvectors);
			msix_none(irq);
		}
		for (i = 0; i < n; i++)
			if (slot[i] != -1)
				irq_signal(irq, &slot[i], 1);
		return (0);
	case VFIO_IRQ_SET_DATA_BOOL:
		if (nfds != 0 || len < n)
			return (EINVAL);
		for (i = 0; i < n; i++)
			if (data[i] != 0 && slot[i] != -1)
				irq_signal(irq, &slot[i], 1);
		return (0);
	case VFIO_IRQ_SET_DATA_EVENTFD:
		if (n == 0 || (nfds != 0 && (uint32_t)nfds != n))
			return (EINVAL);
		for (i = 0; i < (uint32_t)nfds; i++)
			if (!vfu_irq_fd(fds[i]))
				return (EINVAL);
		if (nfds == 0)
			msix_drop(irq, set->start, n);
		for (i = 0; i < (uint32_t)nfds; i++) {
			(void)irq_take(irq, &slot[i], &fds[i]);
			msix_send(irq, set->start + i);
		}
		return (0);
	default:
		return (EINVAL);
	}
}

static int
irq_set(struct vfu_irq *irq, const struct vfio_user_irq_set *set,
    const uint8_t *data, size_t len, int *fds, int nfds)
{
	bool act, eventfd, intx;
	uint32_t action;
	int *slot;

	if ((set->flags & ~(VFIO_IRQ_SET_DATA_TYPE_MASK |
	    VFIO_IRQ_SET_ACTION_TYPE_MASK)) != 0)
		return (EINVAL);
	if (set->index == VFIO_PCI_MSIX_IRQ_INDEX && irq->nvectors > 0)
		return (msix_set(irq, set, data, len, fds, nfds));
	intx = set->index == VFIO_PCI_INTX_IRQ_INDEX;
	if ((!intx && set->index != VFIO_PCI_MSI_IRQ_INDEX) || set->start != 0)
		return (EINVAL);
	slot = intx ? &irq->intx_fd : &irq->msi_fd;

	action = set->flags & VFIO_IRQ_SET_ACTION_TYPE_MASK;
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
vfu_irq_set(struct vfu_irq *irq, const struct vfio_user_irq_set *set,
    const uint8_t *data, size_t len, int *fds, int nfds)
{
	int error;

	pthread_mutex_lock(&irq->mtx);
	error = irq_set(irq, set, data, len, fds, nfds);
	pthread_mutex_unlock(&irq->mtx);
	return (error);
}

int
vfu_irq_restore(struct vfu_irq *irq, const struct vfu_irq_state *state,
    int intx_fd, int msi_fd, int unmask_fd,
    const int msix_fd[VFU_IRQ_VECTORS])
{
	bool on = false;
	unsigned int v;

	if (unmask_fd != -1) {
		irq->unmask_ev = loop_add(unmask_fd, LOOP_READ,
		    irq_unmask_event, irq);
		if (irq->unmask_ev == NULL)
			return (errno);
	}
	pthread_mutex_lock(&irq->mtx);
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
	for (v = 0; v < irq->nvectors; v++) {
		irq->msix_fd[v] = msix_fd[v];
		on = on || msix_fd[v] != -1;
	}
	/* With MSI-X off, the guest would get them when it turns it on. */
	for (v = 0; on && v < irq->nvectors; v++)
		vfu_irq_message(irq, v);
	pthread_mutex_unlock(&irq->mtx);
	return (0);
}

void
vfu_irq_unrestore(struct vfu_irq *irq)
{
	if (irq->unmask_ev != NULL)
		loop_delete(irq->unmask_ev);
	irq->unmask_ev = NULL;
	pthread_mutex_lock(&irq->mtx);
	msix_none(irq);
	irq->intx_fd = irq->msi_fd = irq->unmask_fd = -1;
	irq->masked = irq->shown = irq->intx_disabled = irq->again = false;
	atomic_store_64(&irq->sent, 0);
	atomic_store_64(&irq->unmasked, 0);
	atomic_store_rel_32(&irq->rises, 0);
	pthread_mutex_unlock(&irq->mtx);
}
