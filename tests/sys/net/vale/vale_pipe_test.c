/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The memory of a pipe and the syncs of its ends, in one process without valed.
 * vale_pipe_invalid_test has what may be wrong there.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <net/netmap_user.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "pipe_ends.h"
#include "test.h"

TEST(names, "A pipe's name is split at its last brace, as in netmap")
{
	unsigned int end = 7;

	ATF_CHECK_EQ(0, vale_pipe_name("vale0:x", &end));
	ATF_CHECK_EQ(7, vale_pipe_name("vale0:x{1", &end));
	ATF_CHECK_EQ(VALE_PIPE_MASTER, end);
	ATF_CHECK_EQ(7, vale_pipe_name("vale0:x}abc", &end));
	ATF_CHECK_EQ(VALE_PIPE_SLAVE, end);
	ATF_CHECK_EQ(9, vale_pipe_name("vale0:x}1{2", &end));
	ATF_CHECK_EQ(VALE_PIPE_MASTER, end);
	ATF_CHECK_EQ(0, vale_pipe_name("{1", &end));
	ATF_CHECK_EQ(0, vale_pipe_name("", &end));
}

TEST(layout, "Rings of both ends have their slots, and each buffer is in one "
    "slot")
{
	struct pipe_ends f;
	unsigned int i;

	pipe_setup(&f, 16, 7);
	ATF_CHECK_EQ(0, f.pl.pl_csb[0]);
	ATF_CHECK_EQ(sizeof(struct vale_csb), f.pl.pl_csb[1]);
	ATF_CHECK_EQ(vale_layout_align(2 * sizeof(struct vale_csb) +
	    2 * VALE_NIFP_SIZE(1), NM_CACHE_ALIGN), f.pl.pl_tx[0]);
	ATF_CHECK_EQ(vale_ring_size(16), f.pl.pl_rx[1] - f.pl.pl_tx[0]);
	ATF_CHECK_EQ(vale_ring_size(16), f.pl.pl_tx[1] - f.pl.pl_rx[1]);
	ATF_CHECK_EQ(vale_ring_size(7), f.pl.pl_rx[0] - f.pl.pl_tx[1]);
	ATF_CHECK_EQ(0, f.pl.pl_bufs % VALE_PAGE);
	ATF_CHECK_EQ(f.pl.pl_bufs + 23 * VALE_BUF_SIZE +
	    (VALE_PAGE - 23 * VALE_BUF_SIZE % VALE_PAGE) % VALE_PAGE,
	    f.pl.pl_size);
	for (i = 0; i < 2; i++) {
		ATF_CHECK_EQ(nm_ring_space(f.end[i].pp_txring),
		    f.end[i].pp_txring->num_slots - 1);
		ATF_CHECK(nm_ring_empty(f.end[i].pp_rxring));
	}
	pipe_check_buffers(&f);
	pipe_free(&f);
}

TEST(exchanges, "A buffer that an end puts into a slot passes with it, and the "
    "flag that says so")
{
	const uint16_t own = 3;		/* a buffer of the port */
	struct netmap_slot *slot;
	struct pipe_ends f;
	uint32_t was;

	pipe_setup(&f, 4, 4);
	was = f.end[0].pp_txring->slot[0].buf_idx;
	f.end[0].pp_txring->slot[0].buf_idx = own;
	pipe_put(&f.end[0], 1, NS_BUF_CHANGED);
	f.end[0].pp_txring->slot[0].ptr = 77;
	pipe_put(&f.end[0], 2, 0);
	ATF_REQUIRE_EQ(0, pipe_tx(&f.end[0]));
	ATF_REQUIRE_EQ(0, pipe_rx(&f.end[1]));
	slot = pipe_take(&f.end[1], 1);
	ATF_CHECK_EQ(own, slot->buf_idx);
	ATF_CHECK_EQ(NS_BUF_CHANGED, slot->flags);
	ATF_CHECK_EQ(77, slot->ptr);
	slot->flags = 0;
	slot = pipe_take(&f.end[1], 2);
	ATF_CHECK_EQ(0, slot->flags);
	/* And back: what the receiver leaves is the sender's. */
	slot->buf_idx = was;
	slot->flags = NS_BUF_CHANGED;
	ATF_REQUIRE_EQ(0, pipe_rx(&f.end[1]));
	ATF_REQUIRE_EQ(0, pipe_tx(&f.end[0]));
	ATF_CHECK_EQ(own, f.end[0].pp_txring->slot[0].buf_idx);
	ATF_CHECK_EQ(0, f.end[0].pp_txring->slot[0].flags);
	/* Behind the tail, from where a later sync takes it. */
	ATF_CHECK_EQ(was, f.end[0].pp_tx_slots[1].buf_idx);
	ATF_CHECK_EQ(NS_BUF_CHANGED, f.end[0].pp_tx_slots[1].flags);
	pipe_free(&f);
}

TEST(again, "A pipe that is initialized again is empty, and its slots keep "
    "their buffers, wherever they were")
{
	struct netmap_slot *slot;
	struct pipe_ends f;
	uint32_t seed = 3, spare = 5, was;
	unsigned int i, k, turn;

	pipe_setup(&f, 8, 6);
	for (turn = 0; turn < 200; turn++) {
		/* Some are exchanged for those of the port. */
		for (i = 0; i < 2; i++) {
			k = test_below(&seed, 6);
			while (k-- > 0 && !nm_ring_empty(f.end[i].pp_txring)) {
				slot = &f.end[i].pp_txring->slot[
				    f.end[i].pp_txring->head];
				was = slot->buf_idx;
				slot->buf_idx = spare;
				pipe_put(&f.end[i], turn, NS_BUF_CHANGED);
				spare = was;
			}
			ATF_REQUIRE_EQ(0, pipe_tx(&f.end[i]));
			ATF_REQUIRE_EQ(0, pipe_rx(&f.end[!i]));
			k = test_below(&seed, 6);
			while (k-- > 0 && !nm_ring_empty(f.end[!i].pp_rxring))
				f.end[!i].pp_rxring->head =
				    f.end[!i].pp_rxring->cur = nm_ring_next(
				    f.end[!i].pp_rxring,
				    f.end[!i].pp_rxring->head);
			ATF_REQUIRE_EQ(0, pipe_rx(&f.end[!i]));
		}
		if (!test_chance(&seed, 1, 4))
			continue;
		for (i = 0; i < 2; i++)
			pipe_return(&f, i);
		pipe_init(&f);
		for (i = 0; i < 2; i++) {
			pipe_attach(&f, i);
			ATF_REQUIRE_EQ(0, pipe_rx(&f.end[i]));
			ATF_CHECK(nm_ring_empty(f.end[i].pp_rxring));
			ATF_CHECK_EQ(f.end[i].pp_txring->num_slots - 1,
			    nm_ring_space(f.end[i].pp_txring));
		}
	}
	/* The one that is no longer in the pipe. */
	for (i = 0; i < 2; i++)
		for (k = 0; k < f.pl.pl_slots[i]; k++)
			ATF_CHECK(spare == 5 ||
			    f.end[i].pp_txring->slot[k].buf_idx != spare);
	/* With it back in the place of the port's, all are there. */
	for (i = 0; i < 2; i++)
		pipe_return(&f, i);
	pipe_init(&f);
	for (i = 0; i < 2; i++)
		pipe_attach(&f, i);
	for (i = 0; spare != 5 && i < 2; i++)
		for (k = 0; k < f.pl.pl_slots[i]; k++)
			if (f.end[i].pp_txring->slot[k].buf_idx == 5)
				f.end[i].pp_txring->slot[k].buf_idx = spare;
	pipe_check_buffers(&f);
	pipe_free(&f);
}

TEST(again_exchanged, "A pipe that is initialized again keeps the buffers that "
    "its ends have put into slots since their last sync, too")
{
	struct netmap_ring *rx_ring, *tx_ring;
	struct pipe_ends f;
	uint32_t at, k, was[4];
	unsigned int end, start;

	for (start = 0; start < 8; start++) {
		end = start / 4;
		pipe_setup(&f, 4, 4);
		tx_ring = f.end[end].pp_txring;
		rx_ring = f.end[!end].pp_rxring;
		for (k = 0; k < start % 4; k++) {
			pipe_put(&f.end[end], k, 0);
			ATF_REQUIRE_EQ(0, pipe_tx(&f.end[end]));
			ATF_REQUIRE_EQ(0, pipe_rx(&f.end[!end]));
			pipe_take(&f.end[!end], k);
			ATF_REQUIRE_EQ(0, pipe_rx(&f.end[!end]));
			ATF_REQUIRE_EQ(0, pipe_tx(&f.end[end]));
		}
		for (k = 0; k < 4; k++)
			was[k] = tx_ring->slot[k].buf_idx;
		/* Two slots are the receiver's. */
		at = tx_ring->head;
		pipe_put(&f.end[end], 1, 0);
		pipe_put(&f.end[end], 2, 0);
		ATF_REQUIRE_EQ(0, pipe_tx(&f.end[end]));
		ATF_REQUIRE_EQ(0, pipe_rx(&f.end[!end]));
		rx_ring->slot[at].buf_idx = 3;
		tx_ring->slot[tx_ring->head].buf_idx = 4;
		pipe_return(&f, 0);
		pipe_return(&f, 1);
		pipe_init(&f);
		for (k = 0; k < 4; k++) {
			const uint32_t expected = k == at ? 3 :
			    k == (at + 2) % 4 ? 4 : was[k];

			ATF_CHECK_EQ(expected,
			    f.end[end].pp_tx_slots[k].buf_idx);
			ATF_CHECK_EQ(expected,
			    f.end[!end].pp_rx_slots[k].buf_idx);
		}
		pipe_free(&f);
	}
}

TEST(kicks, "A sync kicks if the other end sleeps and there is something new "
    "for it: once")
{
	struct pipe_ends f;
	bool kick;

	pipe_setup(&f, 8, 8);
	ATF_CHECK(!vale_pipe_rxwait(&f.end[1]));
	kick = true;
	ATF_REQUIRE_EQ(0, vale_pipe_txsync(&f.end[0], &kick));
	ATF_CHECK(!kick);
	pipe_put(&f.end[0], 1, 0);
	ATF_REQUIRE_EQ(0, vale_pipe_txsync(&f.end[0], &kick));
	ATF_CHECK(kick);
	ATF_CHECK_EQ(0, f.end[1].pp_csb->rx_atok.appl_need_kick);
	pipe_put(&f.end[0], 2, 0);
	ATF_REQUIRE_EQ(0, vale_pipe_txsync(&f.end[0], &kick));
	ATF_CHECK(!kick);
	ATF_CHECK(vale_pipe_rxwait(&f.end[1]));
	/* Back. */
	ATF_CHECK(vale_pipe_txwait(&f.end[0]));
	kick = true;
	ATF_REQUIRE_EQ(0, vale_pipe_rxsync(&f.end[1], &kick));
	ATF_CHECK(!kick);
	pipe_take(&f.end[1], 1);
	ATF_REQUIRE_EQ(0, vale_pipe_rxsync(&f.end[1], &kick));
	ATF_CHECK(kick);
	ATF_CHECK_EQ(0, f.end[0].pp_csb->tx_atok.appl_need_kick);
	pipe_take(&f.end[1], 2);
	ATF_REQUIRE_EQ(0, vale_pipe_rxsync(&f.end[1], &kick));
	ATF_CHECK(!kick);
	/* An error is no kick, and asks for none. */
	ATF_CHECK(!vale_pipe_rxwait(&f.end[1]));
	pipe_put(&f.end[0], 3, 0);
	f.end[0].pp_txring->cur = 8;
	kick = true;
	ATF_CHECK_EQ(-1, vale_pipe_txsync(&f.end[0], &kick));
	ATF_CHECK(!kick);
	f.end[1].pp_rxring->cur = 8;
	kick = true;
	ATF_CHECK_EQ(-1, vale_pipe_rxsync(&f.end[1], &kick));
	ATF_CHECK(!kick);
	pipe_free(&f);
}

/* An end that sleeps, as vale_client.c does, on a pipe(2). */
struct flow {
	struct vale_pipe	*pp;
	int			 wait;	/* to read from, */
	int			 wake;	/* and to write to for the other end */
	uint32_t		 frames;
	uint32_t		 kicks;
};

static void
flow_wake(struct flow *flow, bool kick)
{
	if (kick) {
		ATF_REQUIRE_EQ(1, write(flow->wake, "", 1));
		flow->kicks++;
	}
}

/* There is no time limit: a kick that is missing is one that was forgotten. */
static void
flow_sleep(struct flow *flow)
{
	char c;

	ATF_REQUIRE_EQ(1, read(flow->wait, &c, 1));
}

static void *
flow_send(void *arg)
{
	struct flow *flow = arg;
	uint32_t seq = 0;
	bool kick;

	while (seq < flow->frames) {
		while (seq < flow->frames &&
		    !nm_ring_empty(flow->pp->pp_txring))
			pipe_put(flow->pp, seq++, 0);
		ATF_REQUIRE_EQ(0, vale_pipe_txsync(flow->pp, &kick));
		flow_wake(flow, kick);
		if (nm_ring_empty(flow->pp->pp_txring) &&
		    !vale_pipe_txwait(flow->pp))
			flow_sleep(flow);
		ATF_REQUIRE_EQ(0, vale_pipe_txsync(flow->pp, &kick));
		flow_wake(flow, kick);
	}
	return (NULL);
}

static void *
flow_receive(void *arg)
{
	struct flow *flow = arg;
	uint32_t seq = 0;
	bool kick;

	while (seq < flow->frames) {
		ATF_REQUIRE_EQ(0, vale_pipe_rxsync(flow->pp, &kick));
		flow_wake(flow, kick);
		if (nm_ring_empty(flow->pp->pp_rxring)) {
			if (!vale_pipe_rxwait(flow->pp))
				flow_sleep(flow);
			continue;
		}
		while (!nm_ring_empty(flow->pp->pp_rxring))
			pipe_take(flow->pp, seq++);
	}
	ATF_REQUIRE_EQ(0, vale_pipe_rxsync(flow->pp, &kick));
	flow_wake(flow, kick);
	return (NULL);
}

TEST(threads, "Two ends that sleep when they have nothing to do wake each "
    "other, both ways at the same time")
{
	struct flow flow[4];
	pthread_t thread[4];
	struct pipe_ends f;
	unsigned int end, i;
	int to_rx[2], to_tx[2];

	pipe_setup(&f, 4, 64);
	memset(flow, 0, sizeof(flow));
	for (end = 0; end < 2; end++) {
		ATF_REQUIRE_EQ(0, pipe(to_rx));
		ATF_REQUIRE_EQ(0, pipe(to_tx));
		flow[2 * end] = (struct flow){ &f.end[end], to_tx[0],
		    to_rx[1], 50000, 0 };
		flow[2 * end + 1] = (struct flow){ &f.end[!end], to_rx[0],
		    to_tx[1], 50000, 0 };
	}
	for (i = 0; i < 4; i++)
		ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL,
		    i % 2 == 0 ? flow_send : flow_receive, &flow[i]));
	for (i = 0; i < 4; i++)
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], NULL));
	pipe_check_buffers(&f);
	/* They slept, and there is no more than a kick for each sync. */
	ATF_CHECK(flow[0].kicks > 0 && flow[1].kicks > 0);
	pipe_free(&f);
}

TEST_PROGRAM
