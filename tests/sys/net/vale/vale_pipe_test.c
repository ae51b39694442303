/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The memory of a pipe and the syncs of its ends, in one process without valed.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <net/netmap_user.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_layout.h"
#include "vale_pipe.h"

/* Memory: a page that is of a port, buffers of a port, a pipe. */
#define	BUFS		VALE_PAGE
#define	PORT_BUFS	10
#define	AT		(BUFS + PORT_BUFS * VALE_BUF_SIZE)

struct fixture {
	char			*base;
	size_t			 size;
	struct vale_pipe_layout	 pl;
	struct nmreq_register	 reg[2];
	struct vale_pipe	 end[2];
};

static uint32_t
nbufs(const struct fixture *f)
{
	return ((f->size - BUFS) / VALE_BUF_SIZE);
}

static void
attach(struct fixture *f, unsigned int end)
{
	ATF_REQUIRE(vale_pipe_attach(&f->end[end], f->base, &f->reg[end],
	    end));
}

static void
setup(struct fixture *f, uint32_t master, uint32_t slave)
{
	const uint32_t slots[2] = { master, slave };
	unsigned int i;

	memset(f, 0, sizeof(*f));
	vale_pipe_layout(&f->pl, slots);
	f->size = AT + f->pl.pl_size;
	f->base = aligned_alloc(VALE_PAGE, f->size);
	ATF_REQUIRE(f->base != NULL);
	memset(f->base, 0, f->size);
	vale_pipe_init(f->base + AT, &f->pl, "vale0:x", "1", AT - BUFS,
	    nbufs(f));
	for (i = 0; i < 2; i++) {
		f->reg[i].nr_memsize = f->size;
		f->reg[i].nr_offset = AT + f->pl.pl_nifp[i];
		f->reg[i].nr_tx_slots = slots[i];
		f->reg[i].nr_rx_slots = slots[!i];
		attach(f, i);
	}
}

static int
tx(struct vale_pipe *pp)
{
	bool kick;

	return (vale_pipe_txsync(pp, &kick) == 0 ? 0 : errno);
}

static int
rx(struct vale_pipe *pp)
{
	bool kick;

	return (vale_pipe_rxsync(pp, &kick) == 0 ? 0 : errno);
}

/* Put a frame of 60 bytes in the next slot. */
static void
put(struct vale_pipe *pp, uint32_t seq, uint16_t flags)
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
static struct netmap_slot *
take(struct vale_pipe *pp, uint32_t seq)
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
static void
check_buffers(struct fixture *f)
{
	const uint32_t first = (AT - BUFS + f->pl.pl_bufs) / VALE_BUF_SIZE;
	const uint32_t n = f->pl.pl_slots[0] + f->pl.pl_slots[1];
	uint8_t *seen = calloc(nbufs(f), 1);
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
			ATF_REQUIRE(ring->slot[j].buf_idx < nbufs(f));
			ATF_CHECK_EQ(0, seen[ring->slot[j].buf_idx]++);
		}
	}
	for (i = 0; i < n; i++)
		ATF_CHECK_EQ(1, seen[first + i]);
	free(seen);
}

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
	struct netmap_if *nifp;
	struct fixture f;
	unsigned int i;

	setup(&f, 16, 7);
	for (i = 0; i < 2; i++) {
		nifp = (void *)(f.base + f.reg[i].nr_offset);
		ATF_CHECK_STREQ(i == 0 ? "vale0:x{1" : "vale0:x}1",
		    nifp->ni_name);
		ATF_CHECK(NETMAP_TXRING(nifp, 0) == f.end[i].pp_txring);
		ATF_CHECK(NETMAP_RXRING(nifp, 0) == f.end[i].pp_rxring);
		ATF_CHECK_EQ(i == 0 ? 16 : 7, f.end[i].pp_txring->num_slots);
		ATF_CHECK_EQ(i == 0 ? 7 : 16, f.end[i].pp_rxring->num_slots);
		ATF_CHECK(NETMAP_BUF(f.end[i].pp_txring, 0) == f.base + BUFS);
		ATF_CHECK(NETMAP_BUF(f.end[i].pp_rxring, 0) == f.base + BUFS);
		ATF_CHECK_EQ(nm_ring_space(f.end[i].pp_txring),
		    f.end[i].pp_tx_slots - 1);
		ATF_CHECK(nm_ring_empty(f.end[i].pp_rxring));
	}
	check_buffers(&f);
	free(f.base);
}

TEST(frames, "Frames pass both ways in order; a full ring takes no more; nothing "
    "is lost")
{
	struct fixture f;
	uint32_t n, turn, sent[2] = { 0, 0 }, got[2] = { 0, 0 };
	uint32_t seed = 5;
	unsigned int i;

	setup(&f, 8, 5);
	for (turn = 0; turn < 20000; turn++) {
		i = test_below(&seed, 2);
		if (test_chance(&seed, 1, 2)) {
			n = test_below(&seed, 8);
			while (n-- > 0 && !nm_ring_empty(f.end[i].pp_txring))
				put(&f.end[i], sent[i]++, 0);
			ATF_REQUIRE_EQ(0, tx(&f.end[i]));
		} else {
			ATF_REQUIRE_EQ(0, rx(&f.end[i]));
			n = test_below(&seed, 8);
			while (n-- > 0 && !nm_ring_empty(f.end[i].pp_rxring))
				take(&f.end[i], got[i]++);
		}
		ATF_REQUIRE(sent[!i] - got[i] <= f.end[i].pp_rx_slots);
	}
	for (i = 0; i < 2; i++) {
		ATF_REQUIRE_EQ(0, rx(&f.end[i]));
		while (!nm_ring_empty(f.end[i].pp_rxring))
			take(&f.end[i], got[i]++);
		ATF_REQUIRE_EQ(0, rx(&f.end[i]));
		ATF_CHECK_EQ(sent[!i], got[i]);
		ATF_CHECK(got[i] > 1000);
	}
	check_buffers(&f);
	/* All but one slot. */
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	ATF_CHECK_EQ(7, nm_ring_space(f.end[0].pp_txring));
	while (!nm_ring_empty(f.end[0].pp_txring))
		put(&f.end[0], 0, 0);
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	ATF_CHECK(nm_ring_empty(f.end[0].pp_txring));
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	ATF_CHECK_EQ(7, nm_ring_space(f.end[1].pp_rxring));
	free(f.base);
}

TEST(exchanges, "A buffer that an end puts into a slot passes with it, and the "
    "flag that says so is seen once")
{
	const uint16_t own = 3;		/* a buffer of the port */
	struct netmap_slot *slot;
	struct fixture f;
	uint32_t was;

	setup(&f, 4, 4);
	was = f.end[0].pp_txring->slot[0].buf_idx;
	f.end[0].pp_txring->slot[0].buf_idx = own;
	put(&f.end[0], 1, NS_BUF_CHANGED);
	f.end[0].pp_txring->slot[0].ptr = 77;
	put(&f.end[0], 2, 0);
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	ATF_CHECK_EQ(0, f.end[0].pp_txring->slot[0].flags);
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	slot = take(&f.end[1], 1);
	ATF_CHECK_EQ(own, slot->buf_idx);
	ATF_CHECK_EQ(NS_BUF_CHANGED, slot->flags);
	ATF_CHECK_EQ(77, slot->ptr);
	slot->flags = 0;
	slot = take(&f.end[1], 2);
	ATF_CHECK_EQ(0, slot->flags);
	/* And back: what the receiver leaves is the sender's. */
	slot->buf_idx = was;
	slot->flags = NS_BUF_CHANGED;
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	ATF_CHECK_EQ(0, slot->flags);
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	ATF_CHECK_EQ(own, f.end[0].pp_txring->slot[0].buf_idx);
	ATF_CHECK_EQ(0, f.end[0].pp_txring->slot[0].flags);
	ATF_CHECK_EQ(was, f.end[0].pp_txring->slot[1].buf_idx);
	ATF_CHECK_EQ(NS_BUF_CHANGED, f.end[0].pp_txring->slot[1].flags);
	free(f.base);
}

TEST(fragments, "A frame of several slots is shown when it is complete, with its "
    "flags")
{
	struct fixture f;
	unsigned int i;

	setup(&f, 8, 8);
	put(&f.end[0], 1, 0);
	put(&f.end[0], 2, NS_MOREFRAG | NS_BUF_CHANGED);
	for (i = 0; i < 2; i++) {
		ATF_REQUIRE_EQ(0, tx(&f.end[0]));
		ATF_REQUIRE_EQ(0, rx(&f.end[1]));
		ATF_CHECK_EQ(1, nm_ring_space(f.end[1].pp_rxring));
	}
	put(&f.end[0], 3, NS_MOREFRAG);
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	ATF_CHECK_EQ(1, nm_ring_space(f.end[1].pp_rxring));
	put(&f.end[0], 4, 0);
	put(&f.end[0], 5, NS_MOREFRAG);
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	ATF_CHECK_EQ(4, nm_ring_space(f.end[1].pp_rxring));
	take(&f.end[1], 1);
	ATF_CHECK_EQ(NS_MOREFRAG | NS_BUF_CHANGED, take(&f.end[1], 2)->flags);
	ATF_CHECK_EQ(NS_MOREFRAG, take(&f.end[1], 3)->flags);
	ATF_CHECK_EQ(0, take(&f.end[1], 4)->flags);
	free(f.base);
}

TEST(reopened, "An end that is opened again goes on with what was published and "
    "not released")
{
	struct fixture f;
	unsigned int i;

	setup(&f, 8, 8);
	for (i = 1; i <= 4; i++)
		put(&f.end[0], i, 0);
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	put(&f.end[0], 99, 0);		/* never published */
	attach(&f, 0);
	ATF_CHECK_EQ(3, nm_ring_space(f.end[0].pp_txring));
	put(&f.end[0], 5, 0);
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	take(&f.end[1], 1);
	take(&f.end[1], 2);
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	take(&f.end[1], 3);		/* not released */
	attach(&f, 1);
	ATF_CHECK(nm_ring_empty(f.end[1].pp_rxring));
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	for (i = 3; i <= 5; i++)
		take(&f.end[1], i);
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	check_buffers(&f);
	free(f.base);
}

TEST(again, "A pipe that is initialized again is empty, and its slots keep their "
    "buffers, wherever they were")
{
	struct netmap_slot *slot;
	struct fixture f;
	uint32_t seed = 3, spare = 5, was;
	unsigned int i, k, turn;

	setup(&f, 8, 6);
	for (turn = 0; turn < 200; turn++) {
		/* Some are exchanged for those of the port. */
		for (i = 0; i < 2; i++) {
			k = test_below(&seed, 6);
			while (k-- > 0 && !nm_ring_empty(f.end[i].pp_txring)) {
				slot = &f.end[i].pp_txring->slot[
				    f.end[i].pp_txring->head];
				was = slot->buf_idx;
				slot->buf_idx = spare;
				put(&f.end[i], turn, NS_BUF_CHANGED);
				spare = was;
			}
			ATF_REQUIRE_EQ(0, tx(&f.end[i]));
			ATF_REQUIRE_EQ(0, rx(&f.end[!i]));
			k = test_below(&seed, 6);
			while (k-- > 0 && !nm_ring_empty(f.end[!i].pp_rxring))
				f.end[!i].pp_rxring->head =
				    f.end[!i].pp_rxring->cur = nm_ring_next(
				    f.end[!i].pp_rxring,
				    f.end[!i].pp_rxring->head);
			ATF_REQUIRE_EQ(0, rx(&f.end[!i]));
		}
		if (!test_chance(&seed, 1, 4))
			continue;
		vale_pipe_init(f.base + AT, &f.pl, "vale0:x", "1", AT - BUFS,
		    nbufs(&f));
		for (i = 0; i < 2; i++) {
			attach(&f, i);
			ATF_REQUIRE_EQ(0, rx(&f.end[i]));
			ATF_CHECK(nm_ring_empty(f.end[i].pp_rxring));
			ATF_CHECK_EQ(f.end[i].pp_tx_slots - 1,
			    nm_ring_space(f.end[i].pp_txring));
		}
	}
	/* The one that is no longer in the pipe. */
	for (i = 0; i < 2; i++)
		for (k = 0; k < f.pl.pl_slots[i]; k++)
			ATF_CHECK(spare == 5 ||
			    f.end[i].pp_txring->slot[k].buf_idx != spare);
	/* With it back in the place of the port's, all are there. */
	vale_pipe_init(f.base + AT, &f.pl, "vale0:x", "1", AT - BUFS,
	    nbufs(&f));
	for (i = 0; spare != 5 && i < 2; i++)
		for (k = 0; k < f.pl.pl_slots[i]; k++)
			if (f.end[i].pp_txring->slot[k].buf_idx == 5)
				f.end[i].pp_txring->slot[k].buf_idx = spare;
	check_buffers(&f);
	free(f.base);
}

/* What is not valid in an end's own ring: EINVAL, and nothing passes. */
TEST(invalid, "A head outside the ring, or beyond the tail, a buffer that there "
    "is not, and a slot that is too long are refused")
{
	struct netmap_ring *ring;
	struct fixture f;
	const uint32_t bad[] = { 0, 1, 0, UINT32_MAX };
	unsigned int i;

	setup(&f, 8, 8);
	ring = f.end[0].pp_txring;
	for (i = 0; i < nitems(bad); i++) {
		const uint32_t was = ring->slot[1].buf_idx;

		put(&f.end[0], 1, 0);
		put(&f.end[0], 2, 0);
		ring->slot[1].buf_idx = i == 2 ? nbufs(&f) : bad[i];
		ATF_CHECK_EQ(EINVAL, tx(&f.end[0]));
		ATF_CHECK_EQ(0, ring->head);
		ring->slot[1].buf_idx = was;
	}
	put(&f.end[0], 1, 0);
	ring->slot[0].len = VALE_BUF_SIZE + 1;
	ATF_CHECK_EQ(EINVAL, tx(&f.end[0]));
	ring->head = 8;
	ATF_CHECK_EQ(EINVAL, tx(&f.end[0]));
	ring->cur = 8;
	ATF_CHECK_EQ(EINVAL, tx(&f.end[0]));
	ATF_CHECK_EQ(0, ring->cur);
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	ATF_CHECK(nm_ring_empty(f.end[1].pp_rxring));
	for (i = 0; i < 7; i++)
		put(&f.end[0], i, 0);
	ATF_REQUIRE_EQ(0, tx(&f.end[0]));
	ring->head = ring->cur = 0;	/* beyond the tail, which is 7 */
	ATF_CHECK_EQ(EINVAL, tx(&f.end[0]));
	ATF_CHECK_EQ(7, ring->head);
	/* The receiver's. */
	ring = f.end[1].pp_rxring;
	ATF_REQUIRE_EQ(0, rx(&f.end[1]));
	ring->head = ring->cur = 8;
	ATF_CHECK_EQ(EINVAL, rx(&f.end[1]));
	ATF_CHECK_EQ(0, ring->head);
	ring->head = 2;
	ring->cur = 1;
	ATF_CHECK_EQ(EINVAL, rx(&f.end[1]));
	take(&f.end[1], 0);
	ring->slot[0].buf_idx = nbufs(&f);
	ATF_CHECK_EQ(EINVAL, rx(&f.end[1]));
	ATF_CHECK_EQ(0, f.end[1].pp_csb->rx_atok.head);
	/* Who opens it again finds valid ones. */
	attach(&f, 1);
	ATF_CHECK(ring->slot[0].buf_idx < nbufs(&f));
	free(f.base);
}

TEST(nonsense, "Whatever the other end writes, syncs end, and touch nothing "
    "outside the memory")
{
	struct fixture f;
	uint32_t seed = 9, turn, words, at;
	unsigned int i, k, errors = 0, fine = 0;
	bool kick;

	setup(&f, 8, 5);
	words = f.pl.pl_bufs / sizeof(uint32_t);
	for (turn = 0; turn < 100000; turn++) {
		for (k = test_below(&seed, 3); k > 0; k--) {
			at = test_below(&seed, test_chance(&seed, 1, 2) ?
			    2 * sizeof(struct vale_csb) / sizeof(uint32_t) :
			    words);
			((uint32_t *)(void *)(f.base + AT))[at] =
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
			vale_pipe_init(f.base + AT, &f.pl, "vale0:x", "1",
			    AT - BUFS, nbufs(&f));
			attach(&f, 0);
			attach(&f, 1);
		} else if (test_chance(&seed, 1, 10))
			(void)vale_pipe_attach(&f.end[i], f.base, &f.reg[i],
			    i);
	}
	ATF_CHECK(errors > 1000 && fine > 1000);
	free(f.base);
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
			put(flow->pp, seq++, 0);
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
			take(flow->pp, seq++);
	}
	ATF_REQUIRE_EQ(0, vale_pipe_rxsync(flow->pp, &kick));
	flow_wake(flow, kick);
	return (NULL);
}

TEST(threads, "Two ends that sleep when they have nothing to do wake each other, "
    "both ways at the same time")
{
	struct flow flow[4];
	pthread_t thread[4];
	struct fixture f;
	unsigned int end, i;
	int to_rx[2], to_tx[2];

	setup(&f, 4, 64);
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
	check_buffers(&f);
	/* They slept, and there is no more than a kick for each sync. */
	ATF_CHECK(flow[0].kicks > 0 && flow[1].kicks > 0);
	free(f.base);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, names);
	ATF_TP_ADD_TC(tp, layout);
	ATF_TP_ADD_TC(tp, frames);
	ATF_TP_ADD_TC(tp, exchanges);
	ATF_TP_ADD_TC(tp, fragments);
	ATF_TP_ADD_TC(tp, reopened);
	ATF_TP_ADD_TC(tp, again);
	ATF_TP_ADD_TC(tp, invalid);
	ATF_TP_ADD_TC(tp, nonsense);
	ATF_TP_ADD_TC(tp, threads);
	return (atf_no_error());
}
