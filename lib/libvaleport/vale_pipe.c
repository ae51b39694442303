/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Pipes: their layout, and the syncs of an end.  vale_pipe.h.
 *
 * Everything in the memory may change at any time, if the other end is wrong.
 * So numbers of slots and addresses are kept outside, and an index is read
 * once, checked, and used.
 */

#include <sys/systm.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vale_layout.h"
#include "vale_pipe.h"
#include "vale_slot.h"

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
	for (i = 0; i < 2; i++) {
		pl->pl_nifp[i] = at;
		at += VALE_NIFP_SIZE(1);
	}
	at = vale_layout_align(at, NM_CACHE_ALIGN);
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
vale_pipe_init(void *memory, const struct vale_pipe_layout *pl,
    const char *name, const char *id, size_t bufs, uint32_t nbufs)
{
	char *head = memory, full[NETMAP_REQ_IFNAMSIZ + 1];
	const uint32_t first = (bufs + pl->pl_bufs) / VALE_BUF_SIZE;
	struct netmap_ring *tx, *rx;
	struct netmap_if *nifp;
	unsigned int i;

	for (i = 0; i < 2; i++)
		init_slots(head, pl, i, first + layout_buf(pl, i), nbufs);
	memset(head, 0, pl->pl_tx[VALE_PIPE_MASTER]);
	for (i = 0; i < 2; i++) {
		tx = (void *)(head + pl->pl_tx[i]);
		rx = (void *)(head + pl->pl_rx[i]);
		vale_ring_init(tx, -(int64_t)(bufs + pl->pl_tx[i]), 0, 0,
		    pl->pl_slots[i]);
		vale_ring_init(rx, -(int64_t)(bufs + pl->pl_rx[i]), 0, 1,
		    pl->pl_slots[!i]);
		nifp = (void *)(head + pl->pl_nifp[i]);
		snprintf(full, sizeof(full), "%s%c%s", name,
		    i == VALE_PIPE_MASTER ? '{' : '}', id);
		vale_nifp_init(nifp, full, 1);
		VALE_LAYOUT_SET(ssize_t, nifp->ring_ofs[0],
		    pl->pl_tx[i] - pl->pl_nifp[i]);
		VALE_LAYOUT_SET(ssize_t, nifp->ring_ofs[1],
		    pl->pl_rx[i] - pl->pl_nifp[i]);
	}
}

/*
 * Give slots whose buffer is not valid the one that they had at first: `count'
 * slots from `i' on.
 */
static void
attach_repair(const struct vale_pipe *pp, struct netmap_ring *ring, uint32_t n,
    uint32_t i, uint32_t count, uint32_t first)
{
	for (; count > 0; count--, i = vale_slot_next(i, n))
		if (!vale_buf_valid(ring->slot[i].buf_idx, pp->pp_nbufs))
			ring->slot[i].buf_idx = first + i;
}

/* Go on where the indexes are.  If they are not valid, no sync will succeed. */
static void
attach_tx(const struct vale_pipe *pp, uint32_t first)
{
	struct netmap_ring *ring = pp->pp_txring;
	const uint32_t n = pp->pp_tx_slots;
	const uint32_t sent = atomic_load_32(&pp->pp_csb->tx_atok.head);
	const uint32_t released =
	    atomic_load_acq_32(&pp->pp_peer->rx_atok.head);

	if (sent >= n || released >= n)
		return;
	attach_repair(pp, ring, n, sent, n - vale_slot_sub(sent, released, n),
	    first);
	ring->head = ring->cur = sent;
	ring->tail = slot_prev(released, n);
}

static void
attach_rx(const struct vale_pipe *pp, uint32_t first)
{
	struct netmap_ring *ring = pp->pp_rxring;
	const uint32_t n = pp->pp_rx_slots;
	const uint32_t released = atomic_load_32(&pp->pp_csb->rx_atok.head);
	const uint32_t published =
	    atomic_load_acq_32(&pp->pp_peer->tx_atok.head);

	if (released >= n || published >= n)
		return;
	attach_repair(pp, ring, n, released,
	    vale_slot_sub(published, released, n), first);
	ring->head = ring->cur = ring->tail = released;
}

/* Find the end, and its first buffer in *first. */
static bool
attach_find(struct vale_pipe *pp, char *base, const struct nmreq_register *reg,
    unsigned int end, size_t bufs, struct vale_pipe_layout *pl,
    uint32_t *first)
{
	uint32_t slots[2];
	char *pipe;

	slots[end] = reg->nr_tx_slots;
	slots[!end] = reg->nr_rx_slots;
	vale_pipe_layout(pl, slots);
	pipe = base + reg->nr_offset - pl->pl_nifp[end];
	pp->pp_csb = (void *)(pipe + pl->pl_csb[end]);
	pp->pp_peer = (void *)(pipe + pl->pl_csb[!end]);
	pp->pp_txring = (void *)(pipe + pl->pl_tx[end]);
	pp->pp_rxring = (void *)(pipe + pl->pl_rx[end]);
	pp->pp_peer_tx = (void *)(pipe + pl->pl_tx[!end]);
	pp->pp_peer_rx = (void *)(pipe + pl->pl_rx[!end]);
	pp->pp_tx_slots = slots[end];
	pp->pp_rx_slots = slots[!end];
	if (bufs % VALE_PAGE != 0 || bufs > reg->nr_offset)
		return (false);
	pp->pp_nbufs = (reg->nr_memsize - bufs) / VALE_BUF_SIZE;
	*first = (pipe + pl->pl_bufs - base - bufs) / VALE_BUF_SIZE;
	return (true);
}

bool
vale_pipe_find(struct vale_pipe *pp, char *base,
    const struct nmreq_register *reg, unsigned int end, size_t bufs)
{
	struct vale_pipe_layout pl;
	uint32_t first;

	return (attach_find(pp, base, reg, end, bufs, &pl, &first));
}

bool
vale_pipe_attach(struct vale_pipe *pp, char *base,
    const struct nmreq_register *reg, unsigned int end, size_t bufs)
{
	struct vale_pipe_layout pl;
	uint32_t first;

	if (!attach_find(pp, base, reg, end, bufs, &pl, &first))
		return (false);
	attach_tx(pp, first + layout_buf(&pl, end));
	attach_rx(pp, first + layout_buf(&pl, !end));
	return (true);
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
 * Hand over the slots from `i' to before `end'.  They are not the other end's
 * until they are published, so nothing has happened if one is not valid.
 */
static bool
pipe_move(const struct vale_pipe *pp, struct netmap_slot *from,
    struct netmap_slot *to, uint32_t i, uint32_t end, uint32_t n)
{
	struct netmap_slot slot;

	for (; i != end; i = vale_slot_next(i, n)) {
		slot = from[i];
		if (!vale_buf_valid(slot.buf_idx, pp->pp_nbufs) ||
		    slot.len > VALE_BUF_SIZE)
			return (false);
		to[i] = slot;
		from[i].flags &= ~NS_BUF_CHANGED;
	}
	return (true);
}

/* Set a ring back to the last head. */
static int
pipe_back(struct netmap_ring *ring, uint32_t head, int error)
{
	ring->head = ring->cur = head;
	errno = error;
	return (-1);
}

/* Find the slot after the last frame before `head' that is complete. */
static uint32_t
pipe_complete(const struct netmap_ring *ring, uint32_t from, uint32_t head,
    uint32_t n)
{
	while (head != from &&
	    (ring->slot[slot_prev(head, n)].flags & NS_MOREFRAG) != 0)
		head = slot_prev(head, n);
	return (head);
}

int
vale_pipe_txsync(struct vale_pipe *pp, bool *kick)
{
	struct netmap_ring *ring = pp->pp_txring;
	const uint32_t n = pp->pp_tx_slots;
	const uint32_t head = atomic_load_32(&ring->head);
	const uint32_t sent = atomic_load_32(&pp->pp_csb->tx_atok.head);
	const uint32_t released =
	    atomic_load_acq_32(&pp->pp_peer->rx_atok.head);
	uint32_t end, tail;

	*kick = false;
	if (sent >= n || released >= n)
		return (pipe_back(ring, 0, EIO));
	tail = slot_prev(released, n);
	if (head >= n || atomic_load_32(&ring->cur) >= n ||
	    vale_slot_sub(head, sent, n) > vale_slot_sub(tail, sent, n))
		return (pipe_back(ring, sent, EINVAL));
	end = pipe_complete(ring, sent, head, n);
	if (end != sent) {
		if (!pipe_move(pp, ring->slot, pp->pp_peer_rx->slot, sent, end,
		    n))
			return (pipe_back(ring, sent, EINVAL));
		*kick = pipe_show(&pp->pp_csb->tx_atok.head, end,
		    &pp->pp_peer->rx_atok);
	}
	ring->tail = tail;
	return (0);
}

/* Return whether all slots from `i' to before `end' are valid. */
static bool
pipe_valid(const struct vale_pipe *pp, const struct netmap_ring *ring,
    uint32_t i, uint32_t end)
{
	for (; i != end; i = vale_slot_next(i, pp->pp_rx_slots))
		if (!vale_buf_valid(ring->slot[i].buf_idx, pp->pp_nbufs) ||
		    ring->slot[i].len > VALE_BUF_SIZE)
			return (false);
	return (true);
}

int
vale_pipe_rxsync(struct vale_pipe *pp, bool *kick)
{
	struct netmap_ring *ring = pp->pp_rxring;
	const uint32_t n = pp->pp_rx_slots;
	const uint32_t head = atomic_load_32(&ring->head);
	const uint32_t cur = atomic_load_32(&ring->cur);
	const uint32_t released = atomic_load_32(&pp->pp_csb->rx_atok.head);
	const uint32_t published =
	    atomic_load_acq_32(&pp->pp_peer->tx_atok.head);
	uint32_t shown = atomic_load_32(&ring->tail), to_cur, to_tail;

	*kick = false;
	if (released >= n || published >= n)
		return (pipe_back(ring, 0, EIO));
	to_tail = vale_slot_sub(published, released, n);
	if (head >= n || cur >= n)
		return (pipe_back(ring, released, EINVAL));
	to_cur = vale_slot_sub(cur, released, n);
	if (vale_slot_sub(head, released, n) > to_cur || to_cur > to_tail)
		return (pipe_back(ring, released, EINVAL));
	if (head != released) {
		if (!pipe_move(pp, ring->slot, pp->pp_peer_tx->slot, released,
		    head, n))
			return (pipe_back(ring, released, EINVAL));
		*kick = pipe_show(&pp->pp_csb->rx_atok.head, head,
		    &pp->pp_peer->tx_atok);
	}
	/* What is new. */
	if (shown >= n || vale_slot_sub(shown, released, n) > to_tail)
		shown = cur;
	if (!pipe_valid(pp, ring, shown, published)) {
		errno = EIO;
		return (-1);
	}
	ring->tail = published;
	return (0);
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

	return (slot_prev(released, pp->pp_tx_slots) != pp->pp_txring->cur);
}

bool
vale_pipe_rxwait(struct vale_pipe *pp)
{
	const uint32_t published = pipe_sleep(&pp->pp_csb->rx_atok,
	    &pp->pp_peer->tx_atok.head);

	return (published != pp->pp_rxring->cur);
}
