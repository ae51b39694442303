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

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vale_deliver.h"
#include "vale_error.h"
#include "vale_forward.h"
#include "vale_inbox.h"
#include "vale_pair.h"
#include "vale_region.h"
#include "vale_rxq.h"
#include "vale_switch.h"
#include "vale_txq.h"

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
	struct vale_region_rings rr;
	struct vale_pair *pin;
	struct vale_port *in;
	int error;

	in = aligned_alloc(VALE_CACHE_LINE, vale_port_size(1));
	if (in == NULL)
		return (-1);
	memset(in, 0, vale_port_size(1));
	in->vp_common = pair->pa_port->vp_common;
	in->vp_header = VALE_HEADER_FRAME;
	in->vp_npairs = 1;
	if (vale_region_create(&in->vp_region, in->vp_common.name, &params,
	    NULL) == -1)
		goto fail;
	vale_region_find(&in->vp_region, 0, &params, NULL, &rr);
	pin = in->vp_pair;
	pin->pa_port = in;
	pin->pa_desc.txring = pin->pa_desc.rxring = rr.rr_rxring;
	pin->pa_desc.txframe = pin->pa_desc.rxframe = rr.rr_rxframe;
	pin->pa_rx_buf = rr.rr_rx_buf;
	if (vale_txq_init(&pin->pa_tx, params.rx_slots) == -1)
		goto fail_txq;
	if (vale_rxq_init(&pin->pa_rx, params.rx_slots, NULL) == -1)
		goto fail_rxq;
	pair->pa_inbox = in;
	return (0);

fail_rxq:
	error = errno;
	vale_txq_fini(&pin->pa_tx);
	errno = error;
fail_txq:
	error = errno;
	vale_region_destroy(&in->vp_region);
	errno = error;
fail:
	error = errno;
	free(in);
	return (vale_fail(error));
}

void
vale_inbox_destroy(struct vale_pair *pair)
{
	struct vale_port *in = pair->pa_inbox;

	if (in == NULL)
		return;
	vale_rxq_fini(&in->vp_pair->pa_rx);
	vale_txq_fini(&in->vp_pair->pa_tx);
	vale_region_destroy(&in->vp_region);
	free(in);
}

void
vale_inbox_attach(struct vale_pair *pair)
{
	struct vale_port *in = pair->pa_inbox;

	if (in == NULL)
		return;
	in->vp_switch = pair->pa_port->vp_switch;
	in->vp_index = pair->pa_port->vp_index;
	in->vp_pair->pa_rx.rq_share.sh_weight = in->vp_switch->vs_weight;
}

bool
vale_inbox_empty(struct vale_port *in)
{
	struct vale_rxq *rq = &in->vp_pair->pa_rx;
	bool empty;

	pthread_mutex_lock(&rq->rq_lock);
	empty = vale_rxq_cur(rq) == rq->rq_next;
	pthread_mutex_unlock(&rq->rq_lock);
	return (empty);
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
