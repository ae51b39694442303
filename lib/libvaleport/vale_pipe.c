/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Pipes: their layout, and the syncs of an end.  vale_pipe.h.
 *
 * Everything in the memory may change at any time, if the other end is wrong.
 * So numbers of slots and addresses are not read there, and an index is read
 * once, checked, and used.
 */

#include <sys/systm.h>

#include <errno.h>
#include <string.h>

#include "vale_error.h"
#include "vale_pipe.h"
#include "vale_slot.h"
#include "vale_window.h"

size_t
vale_pipe_name(const char *name, unsigned int *end)
{
	const char *brace = strrchr(name, '{');

	*end = VALE_PIPE_MASTER;
	if (brace == NULL) {
		brace = strrchr(name, '}');
		*end = VALE_PIPE_SLAVE;
	}
	return (brace != NULL ? brace - name : 0);
}

void
vale_pipe_layout(struct vale_pipe_layout *pl, const uint32_t slots[2])
{
	size_t at = 0;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		pl->pl_slots[i] = slots[i];
		pl->pl_csb[i] = at;
		at += sizeof(struct vale_csb);
	}
	at = vale_layout_align(at + 2 * VALE_NIFP_SIZE(1), NM_CACHE_ALIGN);
	for (i = 0; i < 2; i++) {
		pl->pl_tx[i] = at;
		at += vale_ring_size(slots[i]);
		pl->pl_rx[!i] = at;
		at += vale_ring_size(slots[i]);
	}
	pl->pl_bufs = vale_layout_align(at, VALE_PAGE);
	pl->pl_size = pl->pl_bufs + vale_layout_align((size_t)VALE_BUF_SIZE *
	    (slots[0] + slots[1]), VALE_PAGE);
}

/* Return the first buffer of the direction from `end', from the pipe's. */
static uint32_t
layout_buf(const struct vale_pipe_layout *pl, unsigned int end)
{
	return (end == VALE_PIPE_MASTER ? 0 : pl->pl_slots[VALE_PIPE_MASTER]);
}

static uint32_t
slot_prev(uint32_t i, uint32_t n)
{
	return ((i == 0 ? n : i) - 1);
}

/* Initialize the slots of the direction from `end'; `first' is their buffer. */
static void
init_slots(char *head, const struct vale_pipe_layout *pl, unsigned int end,
    uint32_t first, uint32_t nbufs)
{
	const struct vale_csb *from = (void *)(head + pl->pl_csb[end]);
	const struct vale_csb *to = (void *)(head + pl->pl_csb[!end]);
	struct netmap_ring *tx = (void *)(head + pl->pl_tx[end]);
	struct netmap_ring *rx = (void *)(head + pl->pl_rx[!end]);
	const uint32_t n = pl->pl_slots[end];
	const uint32_t released = to->rx_atok.head;
	const uint32_t published = from->tx_atok.head;
	uint32_t i, idx;
	bool theirs;

	for (i = 0; i < n; i++) {
		theirs = released < n && published < n &&
		    vale_slot_sub(i, released, n) <
		    vale_slot_sub(published, released, n);
		idx = theirs ? rx->slot[i].buf_idx : tx->slot[i].buf_idx;
		if (!vale_buf_valid(idx, nbufs))
			idx = first + i;
		tx->slot[i] = rx->slot[i] =
		    (struct netmap_slot){ .buf_idx = idx };
	}
}

void
vale_pipe_init(void *head, const struct vale_pipe_layout *pl, uint32_t first,
    uint32_t nbufs)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		init_slots(head, pl, i, first + layout_buf(pl, i), nbufs);
	memset(head, 0, pl->pl_tx[VALE_PIPE_MASTER]);
}

static struct netmap_slot *
pipe_slots(char *pipe, size_t at)
{
	return (((struct netmap_ring *)(void *)(pipe + at))->slot);
}

void
vale_pipe_find(struct vale_pipe *pp, char *pipe,
    const struct vale_pipe_layout *pl, unsigned int end)
{
	pp->pp_csb = (void *)(pipe + pl->pl_csb[end]);
	pp->pp_peer = (void *)(pipe + pl->pl_csb[!end]);
	pp->pp_tx_slots = pipe_slots(pipe, pl->pl_tx[end]);
	pp->pp_rx_slots = pipe_slots(pipe, pl->pl_rx[end]);
	pp->pp_peer_tx = pipe_slots(pipe, pl->pl_tx[!end]);
	pp->pp_peer_rx = pipe_slots(pipe, pl->pl_rx[!end]);
}

/*
 * Go on where the indexes are: `count' slots from `head' on are this end's, as
 * `from' has them; one whose buffer is not valid gets its first there, too.  If
 * an index is not valid, no sync will succeed.
 */
static void
attach_ring(struct netmap_ring *ring, struct netmap_slot *from, uint32_t head,
    uint32_t count, uint32_t first, uint32_t nbufs)
{
	const uint32_t n = ring->num_slots;
	uint32_t i, idx;

	for (i = 0; i < n; i++) {
		idx = first + i;
		if (vale_slot_sub(i, head, n) < count)
			idx = atomic_load_32(&from[i].buf_idx);
		if (!vale_buf_valid(idx, nbufs)) {
			idx = first + i;
			atomic_store_32(&from[i].buf_idx, idx);
		}
		ring->slot[i] = (struct netmap_slot){ .buf_idx = idx };
	}
	ring->head = ring->cur = ring->tail = head;
}

static void
attach_tx(struct vale_pipe *pp, uint32_t first)
{
	struct netmap_ring *ring = pp->pp_txring;
	const uint32_t n = ring->num_slots;
	const uint32_t sent = atomic_load_32(&pp->pp_csb->tx_atok.head);
	const uint32_t released =
	    atomic_load_acq_32(&pp->pp_peer->rx_atok.head);

	if (sent >= n || released >= n)
		return;
	attach_ring(ring, pp->pp_tx_slots, sent,
	    n - vale_slot_sub(sent, released, n), first, pp->pp_nbufs);
	ring->tail = slot_prev(released, n);
	pp->pp_heads->vwr_sent = sent;
}

static void
attach_rx(struct vale_pipe *pp, uint32_t first)
{
	struct netmap_ring *ring = pp->pp_rxring;
	const uint32_t n = ring->num_slots;
	const uint32_t released = atomic_load_32(&pp->pp_csb->rx_atok.head);
	const uint32_t published =
	    atomic_load_acq_32(&pp->pp_peer->tx_atok.head);

	if (released >= n || published >= n)
		return;
	attach_ring(ring, pp->pp_rx_slots, released,
	    vale_slot_sub(published, released, n), first, pp->pp_nbufs);
	pp->pp_heads->vwr_released = released;
}

void
vale_pipe_attach(struct vale_pipe *pp, const struct vale_pipe_layout *pl,
    unsigned int end, uint32_t first)
{
	attach_tx(pp, first + layout_buf(pl, end));
	attach_rx(pp, first + layout_buf(pl, !end));
}

/* Store an index of this end.  Returns whether to wake the other one. */
static bool
pipe_show(uint32_t *index, uint32_t value, struct nm_csb_atok *peer)
{
	atomic_store_rel_32(index, value);
	atomic_thread_fence_seq_cst();
	return (atomic_load_32(&peer->appl_need_kick) != 0 &&
	    atomic_swap_32(&peer->appl_need_kick, 0) != 0);
}

/*
 * Hand over the slots from `i' to before `end' to the other end's, `to'.  They
 * are not its until they are published, so nothing has happened if one is not
 * valid.
 */
static bool
pipe_move(const struct vale_pipe *pp, const struct netmap_ring *ring,
    struct netmap_slot *to, uint32_t i, uint32_t end)
{
	const struct netmap_slot *slot;

	for (; i != end; i = vale_slot_next(i, ring->num_slots)) {
		slot = &ring->slot[i];
		if (!vale_buf_valid(slot->buf_idx, pp->pp_nbufs) ||
		    slot->len > VALE_BUF_SIZE)
			return (false);
		to[i] = *slot;
	}
	return (true);
}

/* Set a ring back to the last head. */
static int
pipe_back(struct netmap_ring *ring, uint32_t head, int error)
{
	ring->head = ring->cur = head;
	return (vale_fail(error));
}

/* Find the slot after the last frame before `head' that is complete. */
static uint32_t
pipe_complete(const struct netmap_ring *ring, uint32_t from, uint32_t head)
{
	const uint32_t n = ring->num_slots;

	while (head != from &&
	    (ring->slot[slot_prev(head, n)].flags & NS_MOREFRAG) != 0)
		head = slot_prev(head, n);
	return (head);
}

int
vale_pipe_txsync(struct vale_pipe *pp, bool *kick)
{
	struct netmap_ring *ring = pp->pp_txring;
	const uint32_t n = ring->num_slots, head = ring->head;
	const uint32_t sent = atomic_load_32(&pp->pp_csb->tx_atok.head);
	const uint32_t released =
	    atomic_load_acq_32(&pp->pp_peer->rx_atok.head);
	uint32_t end, tail;

	*kick = false;
	if (sent >= n || released >= n)
		return (pipe_back(ring, 0, EIO));
	tail = slot_prev(released, n);
	if (head >= n || ring->cur >= n ||
	    vale_slot_sub(head, sent, n) > vale_slot_sub(tail, sent, n))
		return (pipe_back(ring, sent, EINVAL));
	end = pipe_complete(ring, sent, head);
	if (end != sent) {
		if (!pipe_move(pp, ring, pp->pp_peer_rx, sent, end))
			return (pipe_back(ring, sent, EINVAL));
		*kick = pipe_show(&pp->pp_csb->tx_atok.head, end,
		    &pp->pp_peer->rx_atok);
		pp->pp_heads->vwr_sent = end;
	}
	return (vale_window_take(ring, pp->pp_tx_slots, tail, pp->pp_nbufs));
}

int
vale_pipe_rxsync(struct vale_pipe *pp, bool *kick)
{
	struct netmap_ring *ring = pp->pp_rxring;
	const uint32_t n = ring->num_slots, head = ring->head, cur = ring->cur;
	const uint32_t released = atomic_load_32(&pp->pp_csb->rx_atok.head);
	const uint32_t published =
	    atomic_load_acq_32(&pp->pp_peer->tx_atok.head);
	uint32_t to_cur;

	*kick = false;
	if (released >= n || published >= n)
		return (pipe_back(ring, 0, EIO));
	if (head >= n || cur >= n)
		return (pipe_back(ring, released, EINVAL));
	to_cur = vale_slot_sub(cur, released, n);
	if (vale_slot_sub(head, released, n) > to_cur ||
	    to_cur > vale_slot_sub(published, released, n))
		return (pipe_back(ring, released, EINVAL));
	if (head != released) {
		if (!pipe_move(pp, ring, pp->pp_peer_tx, released, head))
			return (pipe_back(ring, released, EINVAL));
		*kick = pipe_show(&pp->pp_csb->rx_atok.head, head,
		    &pp->pp_peer->tx_atok);
		pp->pp_heads->vwr_released = head;
	}
	return (vale_window_take(ring, pp->pp_rx_slots, published,
	    pp->pp_nbufs));
}

/*
 * Ask to be woken, and look at the other end's index once more.  A sync
 * acquires what it stands for.
 */
static uint32_t
pipe_sleep(struct nm_csb_atok *atok, const uint32_t *index)
{
	atomic_store_32(&atok->appl_need_kick, 1);
	atomic_thread_fence_seq_cst();
	return (atomic_load_32(index));
}

bool
vale_pipe_txwait(struct vale_pipe *pp)
{
	const uint32_t released = pipe_sleep(&pp->pp_csb->tx_atok,
	    &pp->pp_peer->rx_atok.head);

	return (slot_prev(released, pp->pp_txring->num_slots) !=
	    pp->pp_txring->cur);
}

bool
vale_pipe_rxwait(struct vale_pipe *pp)
{
	const uint32_t published = pipe_sleep(&pp->pp_csb->rx_atok,
	    &pp->pp_peer->tx_atok.head);

	return (published != pp->pp_rxring->cur);
}
