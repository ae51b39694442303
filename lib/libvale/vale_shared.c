/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports whose user is another process: the CSB's side of the switch.
 * libvale.h has the protocol.
 *
 * The user can write to all of the memory at any time.  The switch keeps its
 * own indexes, stores them into the CSB and never reads them back; what it
 * reads there are the user's head, which it checks, and need_kick, with which
 * the user can only delay or wake itself.
 *
 * Receiving takes no thread here: the sender takes returned slots and publishes
 * (vale_rxq.c).  Transmitting takes one, which the owner of the port provides.
 */

#include "vale_forward.h"
#include "vale_pair.h"
#include "vale_shared.h"
#include "vale_slot.h"
#include "vale_switch.h"

bool
vale_shared_show(const struct vale_user *vu, uint32_t cur, uint32_t tail)
{
	atomic_store_32(&vu->vu_ktoa->hwcur, cur);
	atomic_store_rel_32(&vu->vu_ktoa->hwtail, tail);
	atomic_thread_fence_seq_cst();
	return (atomic_load_32(&vu->vu_atok->appl_need_kick) != 0 &&
	    atomic_swap_32(&vu->vu_atok->appl_need_kick, 0) != 0);
}

/* The user's head of the transmit ring; if it is invalid, what was sent. */
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
	if (vale_shared_show(&pair->pa_tx_user, head,
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
 * Senders, and who serves the port, read the number meanwhile, and may use
 * either value: the buffers are mapped from the beginning, and the caller has
 * charged them before.
 */
void
vale_shared_more(struct vale_desc *d, size_t more)
{
	struct vale_region *vr = &vale_desc_port(d)->vp_region;
	const size_t bufs = vr->vr_bufs - (char *)vr->vr_base;

	atomic_store_32(&vr->vr_nbufs,
	    (vr->vr_size + more - bufs) / VALE_BUF_SIZE);
}

size_t
vale_shared_offset(const struct vale_desc *d)
{
	const struct vale_pair *pair = (const void *)d;
	const struct vale_region *vr = &pair->pa_port->vp_region;

	return ((char *)vr->vr_nifp - (char *)vr->vr_base);
}
