/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The inbox of a ring pair whose user is another process: frames that wait in
 * this process's memory.
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

#include "vale_inbox.h"
#include "vale_pair.h"
#include "vale_shared.h"
#include "vale_switch.h"
#include "vale_user.h"

size_t
vale_inbox_size(const struct vale_params *params)
{
	return ((size_t)params->rings * params->rx_slots *
	    (VALE_BUF_SIZE + sizeof(struct frame)));
}

int
vale_inbox_create(struct vale_pair *pair)
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

void
vale_inbox_destroy(struct vale_pair *pair)
{
	if (pair->pa_inbox != NULL)
		vale_port_free(pair->pa_inbox);
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
