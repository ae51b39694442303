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

static uint32_t
pipe_first(const struct pipe_ends *f)
{
	return ((PIPE_AT - PIPE_BUFS + f->pl.pl_bufs) / VALE_BUF_SIZE);
}

void
pipe_attach(struct pipe_ends *f, unsigned int end)
{
	vale_pipe_attach(&f->end[end], &f->pl, end, pipe_first(f));
}

void
pipe_init(struct pipe_ends *f)
{
	vale_pipe_init(f->base + PIPE_AT, &f->pl, pipe_first(f),
	    pipe_nbufs(f));
}

void
pipe_return(struct pipe_ends *f, unsigned int end)
{
	const struct vale_pipe *pp = &f->end[end];

	vale_window_put(pp->pp_txring, pp->pp_tx_slots,
	    pp->pp_heads->vwr_sent, pp->pp_txring->tail);
	vale_window_put(pp->pp_rxring, pp->pp_rx_slots,
	    pp->pp_heads->vwr_released, pp->pp_rxring->tail);
}

/* A ring as it is in a window. */
static struct netmap_ring *
pipe_ring(const struct pipe_ends *f, unsigned int dir, uint32_t slots)
{
	struct netmap_ring *ring = aligned_alloc(NM_CACHE_ALIGN,
	    vale_ring_size(slots));

	ATF_REQUIRE(ring != NULL);
	memset(ring, 0, vale_ring_size(slots));
	vale_ring_init(ring, f->base + PIPE_BUFS - (char *)ring, 0, dir, slots);
	return (ring);
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
		f->end[i] = (struct vale_pipe){
			.pp_txring = pipe_ring(f, 0, slots[i]),
			.pp_rxring = pipe_ring(f, 1, slots[!i]),
			.pp_heads = &f->heads[i],
			.pp_nbufs = pipe_nbufs(f),
		};
		vale_pipe_find(&f->end[i], f->base + PIPE_AT, &f->pl, i);
		pipe_attach(f, i);
	}
}

void
pipe_free(struct pipe_ends *f)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		free(f->end[i].pp_txring);
		free(f->end[i].pp_rxring);
	}
	free(f->base);
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
	const uint32_t first = pipe_first(f);
	const uint32_t n = f->pl.pl_slots[0] + f->pl.pl_slots[1];
	uint8_t *seen = calloc(pipe_nbufs(f), 1);
	uint32_t i, j, idx, slots, shown, taken;
	unsigned int end;

	ATF_REQUIRE(seen != NULL);
	for (end = 0; end < 2; end++) {
		const struct netmap_ring *tx = f->end[end].pp_txring;
		const struct netmap_ring *rx = f->end[!end].pp_rxring;
		const uint32_t sent = f->end[end].pp_csb->tx_atok.head;
		const uint32_t released = f->end[!end].pp_csb->rx_atok.head;

		/* In a window, or on the way to one. */
		slots = tx->num_slots;
		taken = (rx->tail + slots - released) % slots;
		shown = (tx->tail + slots - sent) % slots;
		for (i = 0; i < slots; i++) {
			j = (released + i) % slots;
			if (i < (sent + slots - released) % slots)
				idx = i < taken ? rx->slot[j].buf_idx :
				    f->end[!end].pp_rx_slots[j].buf_idx;
			else
				idx = (j + slots - sent) % slots < shown ?
				    tx->slot[j].buf_idx :
				    f->end[end].pp_tx_slots[j].buf_idx;
			ATF_REQUIRE(idx < pipe_nbufs(f));
			ATF_CHECK_EQ(0, seen[idx]++);
		}
	}
	for (i = 0; i < n; i++)
		ATF_CHECK_EQ(1, seen[first + i]);
	free(seen);
}
