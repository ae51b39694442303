/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports whose user is another process: the CSB's side of the switch.
 * vale_layout.h has the protocol.
 *
 * The user can write to all of the memory at any time.  The switch keeps its
 * own indexes, stores them into the CSB and never reads them back; what it
 * reads there are the user's head, which it checks, and need_kick, with which
 * the user can only delay or wake itself.
 *
 * Receiving takes no thread here: the sender takes returned slots and publishes
 * (vale_rxq.c).  Transmitting takes one, which the owner of the port provides.
 *
 * Frames that wait for the user are in an inbox of the ring pair, in this
 * process's memory.
 *
 * The user can withdraw pages of its port's memory, and who copies a frame
 * there then waits until they are back.  A sender that has chosen to send to
 * this port does so itself.  Frames that it has not chosen to send there,
 * flooded ones and copies for mirrors, and all frames while the memory is slow,
 * go to the inbox, from which the owner of the port takes them on its own time
 * (vale_deliver.c).  As long as a frame is in the inbox those that follow go
 * there, too, so that none passes another.
 *
 * The inbox is a port in no switch.  Its receive ring is its transmit ring as
 * well: what senders deliver there is collected from there, without a copy, and
 * delivered to the port.  A slot is returned when its frame has been.
 *
 * It has as many slots as the port's ring: a user who asks for a ring that
 * holds a burst gets the burst, also if the owner's thread does not run
 * meanwhile.
 */

#include <errno.h>
#include <string.h>

#include "vale_shared.h"
#include "vale_slot.h"
#include "vale_user.h"

size_t
vale_shared_size(const struct vale_params *params, uint32_t extra_bufs)
{
	struct vale_params p = *params;
	struct vale_region_layout rl;

	if (vale_port_params(&p) == -1 || extra_bufs > VALE_EXTRA_BUFS_MAX)
		return (0);
	vale_shared_layout(&rl, &p, extra_bufs);
	return (rl.rl_size);
}

size_t
vale_shared_private(const struct vale_params *params)
{
	struct vale_params p = *params;

	(void)vale_port_params(&p);
	/* Twice: an inbox is a port, and has as many slots as its ring. */
	return (vale_port_size(p.rings) + p.rings * (vale_port_size(1) +
	    p.rx_slots * (VALE_BUF_SIZE + sizeof(struct frame)) +
	    2 * (p.rx_slots * sizeof(struct vale_lease) +
	    vale_share_size(p.rx_slots - 1))));
}

/* Create the inbox of a ring pair, whose receive ring exists. */
static int
inbox_create(struct vale_pair *pair)
{
	const struct vale_params params = { .tx_slots = VALE_SLOTS_MIN,
	    .rx_slots = pair->pa_rx.rq_nslots, .rings = 1 };
	struct vale_port *in;
	struct vale_desc *d;

	in = vale_port_new(pair->pa_port->vp_common.name, &params, NULL);
	if (in == NULL)
		return (-1);
	in->vp_header = VALE_HEADER_FRAME;
	in->vp_pair->pa_tx.vt_nslots = params.rx_slots;
	d = &in->vp_pair->pa_desc;
	d->txring = d->rxring;
	d->txframe = d->rxframe;
	pair->pa_inbox = in;
	return (0);
}

/* Give ring pair `i' its CSB, and an inbox. */
static int
pair_share(struct vale_port *port, unsigned int i)
{
	struct vale_csb *csb = (struct vale_csb *)port->vp_region.vr_base + i;
	struct vale_pair *pair = &port->vp_pair[i];

	pair->pa_tx_user = (struct vale_user){ &csb->tx_atok, &csb->tx_ktoa };
	pair->pa_rx_user = (struct vale_user){ &csb->rx_atok, &csb->rx_ktoa };
	csb->tx_ktoa.hwtail = pair->pa_tx.vt_nslots - 1;
	csb->tx_ktoa.kern_need_kick = 1;
	return (inbox_create(pair));
}

/* Link the buffers of no ring, as netmap does: each names the next. */
static void
region_list(struct vale_region *vr, const struct vale_region_layout *rl)
{
	const uint32_t first = rl->rl_extra_buf, n = rl->rl_extra_bufs;
	uint32_t i, next;

	for (i = 0; i < n; i++) {
		next = i + 1 < n ? first + i + 1 : 0;
		memcpy(vale_region_buf(vr, first + i), &next, sizeof(next));
	}
	vr->vr_nifp->ni_bufs_head = n > 0 ? first : 0;
}

/* Initialize what the memory has besides the rings. */
static int
port_share(struct vale_port *port, const struct vale_region_layout *rl,
    uint32_t rings)
{
	uint32_t i;

	region_list(&port->vp_region, rl);
	for (i = 0; i < rings; i++)
		if (pair_share(port, i) == -1)
			return (-1);
	return (0);
}

/* Free the inboxes of a port that is closed. */
static void
port_closed(struct vale_port *port)
{
	struct vale_pair *pair;

	VALE_PAIRS_FOREACH(pair, port)
		if (pair->pa_inbox != NULL)
			vale_port_free(pair->pa_inbox);
}

struct vale_desc *
vale_open_shared(const char *name, const struct vale_params *params,
    const struct vale_shared *shared)
{
	struct vale_user_port up = { .up_memory = shared->memory,
	    .up_wake = shared->wake, .up_arg = shared->arg,
	    .up_closed = port_closed };
	struct vale_params p = *params;
	struct vale_port *port;
	int error;

	if (vale_port_params(&p) == -1 ||
	    shared->extra_bufs > VALE_EXTRA_BUFS_MAX) {
		errno = EINVAL;
		return (NULL);
	}
	vale_shared_layout(&up.up_layout, &p, shared->extra_bufs);
	up.up_layout.rl_nbufs += shared->more / VALE_BUF_SIZE;
	port = vale_port_new(name, &p, &up);
	if (port == NULL)
		return (NULL);
	if (port_share(port, &up.up_layout, p.rings) == 0 &&
	    vale_port_attach(port) == 0)
		return (&port->vp_pair[0].pa_desc);
	error = errno;
	vale_port_free(port);
	errno = error;
	return (NULL);
}

/* Return the head that the user has sent; if that is invalid, the last one. */
static uint32_t
shared_head(struct vale_pair *pair, bool count)
{
	uint32_t head;

	head = atomic_load_acq_32(&pair->pa_tx_user.vu_atok->head);
	if (head < pair->pa_tx.vt_nslots)
		return (head);
	if (count)
		vale_forward_invalid(pair);
	return (pair->pa_tx.vt_cur);
}

bool
vale_shared_tx(struct vale_desc *d)
{
	struct vale_pair *pair = vale_desc_pair(d);
	const struct vale_port *port = pair->pa_port;
	const uint32_t n = pair->pa_tx.vt_nslots;
	uint32_t head = shared_head(pair, true);

	if (head == pair->pa_tx.vt_cur)
		return (false);
	/* What a monitor transmits is dropped. */
	if (port->vp_monitor)
		pair->pa_tx.vt_cur = head;
	else
		vale_forward(pair, head);
	if (vale_user_show(&pair->pa_tx_user, head,
	    vale_slot_add(head, n - 1, n)))
		port->vp_wake(port->vp_wake_arg, pair->pa_index, true);
	return (true);
}

bool
vale_shared_wait(struct vale_desc *d)
{
	struct vale_pair *pair = vale_desc_pair(d);

	atomic_store_32(&pair->pa_tx_user.vu_ktoa->kern_need_kick, 1);
	atomic_thread_fence_seq_cst();
	return (shared_head(pair, false) == pair->pa_tx.vt_cur);
}

/*
 * Add buffers.  Senders, and the thread that serves the port, read the number
 * meanwhile, and may use either value: the buffers are mapped from the
 * beginning, and the caller has charged them before.
 */
void
vale_shared_more(struct vale_desc *d, size_t more)
{
	struct vale_region *vr = &vale_desc_port(d)->vp_region;
	const size_t bufs = vr->vr_bufs - (char *)vr->vr_base;

	atomic_store_32(&vr->vr_nbufs,
	    (vr->vr_size + more - bufs) / VALE_BUF_SIZE);
}

bool
vale_shared_rx(struct vale_desc *d)
{
	struct vale_pair *pair = vale_desc_pair(d);
	struct vale_pair *in = pair->pa_inbox->vp_pair;
	struct netmap_ring *ring = in->pa_desc.rxring;
	struct vale_txq *vt = &in->pa_tx;

	if (atomic_load_acq_32(&in->pa_rx.rq_tail) == vt->vt_cur)
		return (false);
	(void)vale_rxsync(&in->pa_desc);
	while (vt->vt_cur != ring->tail) {
		vale_forward_collect(in, ring->tail);
		if (vt->vt_nfrags > 0)
			vale_deliver_inbox(in, pair);
	}
	ring->head = ring->cur = vt->vt_cur;
	/* Sleep, unless there is more. */
	(void)vale_rxsync(&in->pa_desc);
	return (true);
}

int
vale_shared_fd(const struct vale_desc *d)
{
	const struct vale_pair *pair = (const void *)d;

	return (pair->pa_inbox->vp_pair->pa_rx.rq_fd);
}
