/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <net/netmap_user.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "pipe_ends.h"

uint32_t
pipe_nbufs(const struct pipe_ends *f)
{
	return ((f->size - PIPE_BUFS) / VALE_BUF_SIZE);
}

void
pipe_attach(struct pipe_ends *f, unsigned int end)
{
	ATF_REQUIRE(vale_pipe_attach(&f->end[end], f->base, &f->reg[end],
	    end, PIPE_BUFS));
}

void
pipe_init(struct pipe_ends *f)
{
	vale_pipe_init(f->base + PIPE_AT, &f->pl, "vale0:x", "1",
	    PIPE_AT - PIPE_BUFS, pipe_nbufs(f));
}

void
pipe_setup(struct pipe_ends *f, uint32_t master, uint32_t slave)
{
	const uint32_t slots[2] = { master, slave };
	unsigned int i;

	memset(f, 0, sizeof(*f));
	vale_pipe_layout(&f->pl, slots);
	f->size = PIPE_AT + f->pl.pl_size;
	f->base = aligned_alloc(VALE_PAGE, f->size);
	ATF_REQUIRE(f->base != NULL);
	memset(f->base, 0, f->size);
	pipe_init(f);
	for (i = 0; i < 2; i++) {
		f->reg[i].nr_memsize = f->size;
		f->reg[i].nr_offset = PIPE_AT + f->pl.pl_nifp[i];
		f->reg[i].nr_tx_slots = slots[i];
		f->reg[i].nr_rx_slots = slots[!i];
		pipe_attach(f, i);
	}
}

int
pipe_tx(struct vale_pipe *pp)
{
	bool kick;

	errno = 0;
	return (vale_pipe_txsync(pp, &kick) == 0 ? 0 : errno);
}

int
pipe_rx(struct vale_pipe *pp)
{
	bool kick;

	errno = 0;
	return (vale_pipe_rxsync(pp, &kick) == 0 ? 0 : errno);
}

/* Put a frame of 60 bytes in the next slot. */
void
pipe_put(struct vale_pipe *pp, uint32_t seq, uint16_t flags)
{
	struct netmap_ring *ring = pp->pp_txring;
	struct netmap_slot *slot = &ring->slot[ring->head];

	ATF_REQUIRE(ring->head != ring->tail);
	memcpy(NETMAP_BUF(ring, slot->buf_idx), &seq, sizeof(seq));
	slot->len = 60;
	slot->flags = flags;
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
}

/* Take the next frame.  Returns its slot. */
struct netmap_slot *
pipe_take(struct vale_pipe *pp, uint32_t seq)
{
	struct netmap_ring *ring = pp->pp_rxring;
	struct netmap_slot *slot = &ring->slot[ring->head];
	uint32_t got;

	ATF_REQUIRE(!nm_ring_empty(ring));
	memcpy(&got, NETMAP_BUF(ring, slot->buf_idx), sizeof(got));
	ATF_CHECK_EQ(seq, got);
	ATF_CHECK_EQ(60, slot->len);
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
	return (slot);
}

/*
 * Each buffer of the pipe is in one slot: of the receiver, if it is between
 * what was released and published, else of the sender.
 */
void
pipe_check_buffers(struct pipe_ends *f)
{
	const uint32_t first = (PIPE_AT - PIPE_BUFS + f->pl.pl_bufs) /
	    VALE_BUF_SIZE;
	const uint32_t n = f->pl.pl_slots[0] + f->pl.pl_slots[1];
	uint8_t *seen = calloc(pipe_nbufs(f), 1);
	const struct netmap_ring *ring;
	uint32_t i, j, count;
	unsigned int end;

	ATF_REQUIRE(seen != NULL);
	for (end = 0; end < 2; end++) {
		const struct vale_pipe *pp = &f->end[end];
		const uint32_t sent = pp->pp_csb->tx_atok.head;
		const uint32_t released = pp->pp_peer->rx_atok.head;

		count = (sent + pp->pp_tx_slots - released) % pp->pp_tx_slots;
		for (i = 0; i < pp->pp_tx_slots; i++) {
			j = (released + i) % pp->pp_tx_slots;
			ring = i < count ? pp->pp_peer_rx : pp->pp_txring;
			ATF_REQUIRE(ring->slot[j].buf_idx < pipe_nbufs(f));
			ATF_CHECK_EQ(0, seen[ring->slot[j].buf_idx]++);
		}
	}
	for (i = 0; i < n; i++)
		ATF_CHECK_EQ(1, seen[first + i]);
	free(seen);
}
