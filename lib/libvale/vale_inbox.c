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
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vale_impl.h"

/* Of a ring pair, at most: its owner takes the frames as they come. */
#define	INBOX_SLOTS	1024

static uint32_t
inbox_slots(uint32_t rx_slots)
{
	return (MIN(rx_slots, INBOX_SLOTS));
}

size_t
vale_inbox_size(const struct vale_params *params)
{
	return ((size_t)params->rings * inbox_slots(params->rx_slots) *
	    VALE_BUF_SIZE);
}

int
vale_inbox_create(struct vale_port *port)
{
	const struct vale_params params = { .tx_slots = VALE_SLOTS_MIN,
	    .rx_slots = inbox_slots(port->vp_rx.rq_nslots), .rings = 1 };
	struct vale_port *in;
	int error;

	in = aligned_alloc(VALE_CACHE_LINE, sizeof(*in));
	if (in == NULL)
		return (ENOMEM);
	memset(in, 0, sizeof(*in));
	memcpy(in->vp_name, port->vp_name, sizeof(in->vp_name));
	in->vp_nrings = 1;
	in->vp_header = VALE_HEADER_SLOT;
	error = vale_region_create(&in->vp_region, in->vp_name, &params, NULL);
	if (error != 0)
		goto fail;
	vale_region_ring(&in->vp_region, 0, &params, NULL);
	in->vp_region.vr_txring = in->vp_region.vr_rxring;
	error = vale_txq_init(&in->vp_tx, params.rx_slots);
	if (error != 0)
		goto fail_txq;
	error = vale_rxq_init(&in->vp_rx, params.rx_slots, NULL);
	if (error != 0)
		goto fail_rxq;
	port->vp_inbox = in;
	return (0);

fail_rxq:
	vale_txq_fini(&in->vp_tx);
fail_txq:
	vale_region_destroy(&in->vp_region);
fail:
	free(in);
	return (error);
}

void
vale_inbox_destroy(struct vale_port *port)
{
	struct vale_port *in = port->vp_inbox;

	if (in == NULL)
		return;
	vale_rxq_fini(&in->vp_rx);
	vale_txq_fini(&in->vp_tx);
	vale_region_destroy(&in->vp_region);
	free(in);
}

void
vale_inbox_attach(struct vale_port *port)
{
	struct vale_port *in = port->vp_inbox;

	if (in == NULL)
		return;
	in->vp_switch = port->vp_switch;
	in->vp_index = port->vp_index;
	in->vp_rx.rq_share.sh_weight = port->vp_rx.rq_share.sh_weight;
}

bool
vale_inbox_empty(struct vale_port *in)
{
	struct vale_rxq *rq = &in->vp_rx;
	bool empty;

	pthread_mutex_lock(&rq->rq_lock);
	empty = vale_rxq_cur(rq) == rq->rq_next;
	pthread_mutex_unlock(&rq->rq_lock);
	return (empty);
}

bool
vale_shared_rx(struct vale_desc *d)
{
	struct vale_port *port = vale_desc_port(d), *in = port->vp_inbox;
	struct netmap_ring *ring = in->vp_region.vr_rxring;
	struct vale_txq *vt = &in->vp_tx;

	if (atomic_load_acq_32(&in->vp_rx.rq_tail) == vt->vt_cur)
		return (false);
	(void)vale_rxsync(&in->vp_desc);
	while (vt->vt_cur != ring->tail) {
		vale_forward_collect(in, ring->tail);
		if (vt->vt_nfrags > 0)
			vale_deliver_inbox(in, port);
	}
	ring->head = ring->cur = vt->vt_cur;
	/* Sleep, unless there is more. */
	(void)vale_rxsync(&in->vp_desc);
	return (true);
}

int
vale_shared_fd(const struct vale_desc *d)
{
	const struct vale_port *port = (const void *)d;

	return (port->vp_inbox->vp_rx.rq_fd);
}
