/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Pipes whose memory is not valid: an end's own ring, or what the other end
 * wrote.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <net/netmap_user.h>

#include <errno.h>
#include <stdlib.h>

#include <atf-c.h>

#include "pipe_ends.h"
#include "test.h"

TEST(again_nonsense, "If an index is not valid, all slots are the sender's; a "
    "buffer that there is not is replaced by the slot's first")
{
	struct pipe_ends f;
	uint32_t was;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		pipe_setup(&f, 4, 4);
		was = f.end[0].pp_tx_slots[1].buf_idx;
		pipe_put(&f.end[0], 1, 0);
		pipe_put(&f.end[0], 2, 0);
		ATF_REQUIRE_EQ(0, pipe_tx(&f.end[0]));
		f.end[1].pp_rx_slots[1].buf_idx = 3;
		if (i == 0)
			f.end[1].pp_csb->rx_atok.head = 4;
		else
			f.end[0].pp_csb->tx_atok.head = 4;
		pipe_init(&f);
		ATF_CHECK_EQ(was, f.end[0].pp_tx_slots[1].buf_idx);
		ATF_CHECK_EQ(was, f.end[1].pp_rx_slots[1].buf_idx);
		f.end[0].pp_tx_slots[1].buf_idx = pipe_nbufs(&f);
		pipe_init(&f);
		ATF_CHECK_EQ(was, f.end[0].pp_tx_slots[1].buf_idx);
		pipe_free(&f);
	}
}

TEST(repaired, "An end that is opened again gets each slot's first buffer in "
    "place of one that there is not")
{
	struct netmap_slot *rx, *tx;
	struct pipe_ends f;
	uint32_t bad, was[3];
	unsigned int end, k;

	for (end = 0; end < 2; end++) {
		pipe_setup(&f, 8, 5);
		bad = pipe_nbufs(&f);
		tx = f.end[end].pp_tx_slots;
		rx = f.end[!end].pp_rx_slots;
		for (k = 0; k < 3; k++) {
			was[k] = tx[k].buf_idx;
			if (k < 2)
				pipe_put(&f.end[end], k, 0);
		}
		ATF_REQUIRE_EQ(0, pipe_tx(&f.end[end]));
		for (k = 0; k < 3; k++)
			tx[k].buf_idx = rx[k].buf_idx = bad;
		pipe_attach(&f, end);
		pipe_attach(&f, !end);
		/* Two slots are the receiver's, the third is the sender's. */
		for (k = 0; k < 3; k++) {
			ATF_CHECK_EQ(k < 2 ? was[k] : bad, rx[k].buf_idx);
			ATF_CHECK_EQ(k < 2 ? bad : was[k], tx[k].buf_idx);
			ATF_CHECK_EQ(was[k],
			    f.end[end].pp_txring->slot[k].buf_idx);
			ATF_CHECK_EQ(was[k],
			    f.end[!end].pp_rxring->slot[k].buf_idx);
		}
		ATF_REQUIRE_EQ(0, pipe_rx(&f.end[!end]));
		ATF_CHECK_EQ(2, nm_ring_space(f.end[!end].pp_rxring));
		pipe_free(&f);
	}
}

/* What is not valid of the other end's: EIO. */
TEST(other_end, "Indices outside the ring, buffers that there are not, and "
    "slots that are too long of the other end end a sync")
{
	struct netmap_ring *ring;
	struct netmap_slot *shared;
	struct pipe_ends f;
	uint32_t was, *at[4];
	unsigned int i;

	pipe_setup(&f, 8, 8);
	ring = f.end[1].pp_rxring;
	at[0] = &f.end[0].pp_csb->tx_atok.head;
	at[1] = &f.end[1].pp_csb->rx_atok.head;
	at[2] = &f.end[1].pp_csb->tx_atok.head;
	at[3] = &f.end[0].pp_csb->rx_atok.head;
	for (i = 0; i < 4; i++) {
		struct netmap_ring *from = f.end[i / 2].pp_txring;
		struct netmap_ring *to = f.end[!(i / 2)].pp_rxring;

		*at[i] = 8;
		from->head = from->cur = to->head = to->cur = 1;
		ATF_CHECK_EQ(EIO, pipe_tx(&f.end[i / 2]));
		ATF_CHECK_EQ(0, from->head);
		ATF_CHECK_EQ(EIO, pipe_rx(&f.end[!(i / 2)]));
		ATF_CHECK_EQ(0, to->head);
		/* Who opens an end then has it as it was. */
		from->tail = to->tail = 5;
		pipe_attach(&f, 0);
		pipe_attach(&f, 1);
		ATF_CHECK_EQ(0, from->head);
		ATF_CHECK_EQ(5, from->tail);
		ATF_CHECK_EQ(0, to->head);
		ATF_CHECK_EQ(5, to->tail);
		ATF_CHECK_EQ(EIO, pipe_tx(&f.end[i / 2]));
		ATF_CHECK_EQ(EIO, pipe_rx(&f.end[!(i / 2)]));
		*at[i] = 0;
		pipe_attach(&f, 0);
		pipe_attach(&f, 1);
	}
	pipe_put(&f.end[0], 1, 0);
	pipe_put(&f.end[0], 2, 0);
	ATF_REQUIRE_EQ(0, pipe_tx(&f.end[0]));
	shared = f.end[1].pp_rx_slots;
	was = shared[1].buf_idx;
	shared[1].buf_idx = pipe_nbufs(&f);
	ATF_CHECK_EQ(EIO, pipe_rx(&f.end[1]));
	ATF_CHECK(nm_ring_empty(ring));
	shared[1].buf_idx = was;
	shared[1].len = VALE_BUF_SIZE + 1;
	ATF_CHECK_EQ(EIO, pipe_rx(&f.end[1]));
	ATF_CHECK(nm_ring_empty(ring));
	shared[1].len = VALE_BUF_SIZE;
	ATF_CHECK_EQ(0, pipe_rx(&f.end[1]));
	ATF_CHECK_EQ(2, nm_ring_space(ring));
	/* What was shown is the receiver's own, until it releases it. */
	shared[0].buf_idx = shared[1].buf_idx = pipe_nbufs(&f);
	ATF_CHECK_EQ(0, pipe_rx(&f.end[1]));
	ATF_CHECK_EQ(was, ring->slot[1].buf_idx);
	/* And back. */
	ring->head = ring->cur = 2;
	ATF_CHECK_EQ(0, pipe_rx(&f.end[1]));
	shared = f.end[0].pp_tx_slots;
	shared[0].buf_idx = pipe_nbufs(&f);
	ATF_CHECK_EQ(EIO, pipe_tx(&f.end[0]));
	ATF_CHECK_EQ(5, nm_ring_space(f.end[0].pp_txring));
	shared[0].buf_idx = 2;
	ATF_CHECK_EQ(0, pipe_tx(&f.end[0]));
	ATF_CHECK_EQ(2, f.end[0].pp_txring->slot[0].buf_idx);
	/* A fragment is not complete, whatever is in the slot before it. */
	f.end[0].pp_txring->slot[1].flags = NS_MOREFRAG;
	pipe_put(&f.end[0], 3, NS_MOREFRAG);
	ATF_CHECK_EQ(0, pipe_tx(&f.end[0]));
	ATF_CHECK_EQ(2, f.end[0].pp_csb->tx_atok.head);
	pipe_free(&f);
}

/* What is not valid in an end's own ring: EINVAL, and nothing passes. */
TEST(invalid, "A head outside the ring, or beyond the tail, a buffer that "
    "there is not, and a slot that is too long are refused")
{
	struct netmap_ring *ring;
	struct pipe_ends f;
	const uint32_t bad[] = { 0, 1, 0, UINT32_MAX };
	unsigned int i;

	pipe_setup(&f, 8, 8);
	ring = f.end[0].pp_txring;
	for (i = 0; i < nitems(bad); i++) {
		const uint32_t was = ring->slot[1].buf_idx;

		pipe_put(&f.end[0], 1, 0);
		pipe_put(&f.end[0], 2, 0);
		ring->slot[1].buf_idx = i == 2 ? pipe_nbufs(&f) : bad[i];
		ATF_CHECK_EQ(EINVAL, pipe_tx(&f.end[0]));
		ATF_CHECK_EQ(0, ring->head);
		ring->slot[1].buf_idx = was;
	}
	pipe_put(&f.end[0], 1, 0);
	ring->slot[0].len = VALE_BUF_SIZE + 1;
	ATF_CHECK_EQ(EINVAL, pipe_tx(&f.end[0]));
	ring->head = 8;
	ATF_CHECK_EQ(EINVAL, pipe_tx(&f.end[0]));
	ring->cur = 8;
	ATF_CHECK_EQ(EINVAL, pipe_tx(&f.end[0]));
	ATF_CHECK_EQ(0, ring->cur);
	ATF_REQUIRE_EQ(0, pipe_rx(&f.end[1]));
	ATF_CHECK(nm_ring_empty(f.end[1].pp_rxring));
	for (i = 0; i < 7; i++)
		pipe_put(&f.end[0], i, 0);
	ring->slot[6].len = VALE_BUF_SIZE;
	ATF_REQUIRE_EQ(0, pipe_tx(&f.end[0]));
	ring->head = ring->cur = 0;	/* beyond the tail, which is 7 */
	ATF_CHECK_EQ(EINVAL, pipe_tx(&f.end[0]));
	ATF_CHECK_EQ(7, ring->head);
	/* The receiver's. */
	ring = f.end[1].pp_rxring;
	ATF_REQUIRE_EQ(0, pipe_rx(&f.end[1]));
	ring->head = ring->cur = 8;
	ATF_CHECK_EQ(EINVAL, pipe_rx(&f.end[1]));
	ATF_CHECK_EQ(0, ring->head);
	ring->head = 2;
	ring->cur = 1;
	ATF_CHECK_EQ(EINVAL, pipe_rx(&f.end[1]));
	pipe_take(&f.end[1], 0);
	ring->slot[0].buf_idx = pipe_nbufs(&f);
	ATF_CHECK_EQ(EINVAL, pipe_rx(&f.end[1]));
	ATF_CHECK_EQ(0, f.end[1].pp_csb->rx_atok.head);
	pipe_free(&f);
	/* Beyond what was published; and from a slot that is not the first. */
	pipe_setup(&f, 8, 8);
	ring = f.end[1].pp_rxring;
	pipe_put(&f.end[0], 0, 0);
	ATF_REQUIRE_EQ(0, pipe_tx(&f.end[0]));
	ATF_REQUIRE_EQ(0, pipe_rx(&f.end[1]));
	ring->head = ring->cur = 2;
	ATF_CHECK_EQ(EINVAL, pipe_rx(&f.end[1]));
	ATF_CHECK_EQ(0, ring->head);
	pipe_take(&f.end[1], 0);
	ATF_REQUIRE_EQ(0, pipe_rx(&f.end[1]));
	f.end[0].pp_txring->head = 8;
	f.end[0].pp_txring->cur = 2;
	ATF_CHECK_EQ(EINVAL, pipe_tx(&f.end[0]));
	ATF_CHECK_EQ(1, f.end[0].pp_txring->head);
	ATF_REQUIRE_EQ(0, pipe_tx(&f.end[0]));
	for (i = 0; i < 7; i++)
		pipe_put(&f.end[0], i, 0);
	ATF_REQUIRE_EQ(0, pipe_tx(&f.end[0]));
	ATF_REQUIRE_EQ(0, pipe_rx(&f.end[1]));
	ring->cur = 8;
	ATF_CHECK_EQ(EINVAL, pipe_rx(&f.end[1]));
	ring->head = ring->cur = 8;
	ATF_CHECK_EQ(EINVAL, pipe_rx(&f.end[1]));
	ATF_CHECK_EQ(1, ring->head);
	pipe_free(&f);
}

TEST(nonsense, "Whatever the other end writes, syncs end, and touch nothing "
    "outside the memory")
{
	struct pipe_ends f;
	uint32_t seed = 9, turn, words, at;
	unsigned int i, k, errors = 0, fine = 0;
	bool kick;

	pipe_setup(&f, 8, 5);
	words = f.pl.pl_bufs / sizeof(uint32_t);
	for (turn = 0; turn < 100000; turn++) {
		for (k = test_below(&seed, 3); k > 0; k--) {
			at = test_below(&seed, test_chance(&seed, 1, 2) ?
			    2 * sizeof(struct vale_csb) / sizeof(uint32_t) :
			    words);
			((uint32_t *)(void *)(f.base + PIPE_AT))[at] =
			    test_chance(&seed, 3, 4) ? test_below(&seed, 10) :
			    test_random(&seed);
		}
		i = test_below(&seed, 2);
		if (vale_pipe_txsync(&f.end[i], &kick) == 0)
			fine++;
		else
			errors++;
		if (vale_pipe_rxsync(&f.end[i], &kick) == 0)
			fine++;
		else
			errors++;
		vale_pipe_txwait(&f.end[i]);
		vale_pipe_rxwait(&f.end[i]);
		if (test_chance(&seed, 1, 10)) {
			pipe_init(&f);
			pipe_attach(&f, 0);
			pipe_attach(&f, 1);
		} else if (test_chance(&seed, 1, 10))
			pipe_attach(&f, i);
	}
	ATF_CHECK(errors > 1000 && fine > 1000);
	pipe_free(&f);
}

TEST_PROGRAM
