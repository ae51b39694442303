/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The fast paths of the switch, collect_single_slot() and
 * deliver_single_slot(), have the effect of the general ones.
 *
 * Two switches have the same ports.  Each step does the same to both: slots
 * with random lengths, flags and buffers, syncs with random heads, receivers
 * that are slow or change their slots.  The first switch sends with
 * vale_txsync(), the second with vale_general_txsync(), which has no fast
 * path.  After each step every ring, every buffer, every counter and all that
 * the sinks took must be equal.
 */

#include <sys/param.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atf-c.h>

#include "fast_path.h"
#include "frame.h"
#include "vale_general.h"
#include "vale_slot.h"
#include "vale_switch.h"

#define	PORTS		3
#define	STATIONS	5
#define	POOL		4	/* buffers for indirect slots */
#define	BUF		65536	/* bytes of each */
#define	TAKEN		(1u << 20)

/* One of the two switches. */
struct world {
	struct vale_desc *d[PORTS];
	int		(*txsync)(struct vale_desc *);
	uint8_t		*taken;		/* by sinks, one after the other */
	size_t		 ntaken;
};

/* What the steps of a case are like. */
struct profile {
	unsigned int	good;		/* of 16 frames, a single good slot */
	unsigned int	slow;		/* of 16 steps, no receiver takes any */
	unsigned int	sinks;		/* of 16 scenarios, have sinks */
	uint32_t	slots;		/* most slots of a ring */
};

static struct world worlds[2];
static uint8_t pool[POOL][BUF];
static unsigned int scenario;

/* The lengths at which something changes, and one off. */
static uint32_t
frame_length(void)
{
	static const uint16_t edges[] = {
		0, VALE_FRAME_MIN, 31, 32, 60, 64, 65, 128, 1518,
		VALE_BUF_SIZE, 4096, UINT16_MAX
	};

	if (chance(1, 4))
		return (below(VALE_BUF_SIZE + 1));
	return ((uint16_t)(edges[below(nitems(edges))] + below(3) - 1));
}

static uint32_t
good_length(void)
{
	static const uint16_t edges[] = {
		VALE_FRAME_MIN, 31, 32, 60, 63, 64, 65, 1514, VALE_BUF_SIZE
	};

	if (chance(1, 4))
		return (VALE_FRAME_MIN +
		    below(VALE_BUF_SIZE - VALE_FRAME_MIN + 1));
	return (edges[below(nitems(edges))]);
}

/*
 * The two worlds.
 */

static void
sink(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame f = { .f_iov = iov };
	struct world *w = arg;
	int i;

	/* Leaves a frame of many fragments, and one in 8 others. */
	while (frame_peek(frames, &f)) {
		if (f.f_niov > 4 || (iov[0].iov_len > 20 &&
		    (((uint8_t *)iov[0].iov_base)[20] & 7) == 7))
			return;
		if (w->ntaken + f.f_len > TAKEN)
			w->ntaken = 0;
		for (i = 0; i < f.f_niov; i++) {
			memcpy(w->taken + w->ntaken, iov[i].iov_base,
			    iov[i].iov_len);
			w->ntaken += iov[i].iov_len;
		}
		frame_next(frames);
	}
}

/* The switch's clock stands still: no delivery is slow. */
int
clock_gettime(clockid_t clock __unused, struct timespec *ts)
{
	ts->tv_sec = 1;
	ts->tv_nsec = 0;
	return (0);
}

static void
worlds_open(const struct profile *pf)
{
	struct vale_params params = { 0 };
	char name[VALE_NAME_SIZE];
	unsigned int i, j;
	bool sinks;

	worlds[0].txsync = vale_txsync;
	worlds[1].txsync = vale_general_txsync;
	for (j = 0; j < PORTS; j++) {
		params.tx_slots = VALE_SLOTS_MIN +
		    below(pf->slots - VALE_SLOTS_MIN + 1);
		params.rx_slots = VALE_SLOTS_MIN +
		    below(pf->slots - VALE_SLOTS_MIN + 1);
		sinks = chance(pf->sinks, 16);
		for (i = 0; i < nitems(worlds); i++) {
			snprintf(name, sizeof(name), "valef%u:%u", i, j);
			worlds[i].d[j] = vale_open(name, &params);
			ATF_REQUIRE(worlds[i].d[j] != NULL);
			if (sinks)
				ATF_REQUIRE_EQ(0, vale_set_sink(
				    worlds[i].d[j], sink, &worlds[i]));
		}
	}
	for (i = 0; i < nitems(worlds); i++) {
		worlds[i].taken = malloc(TAKEN);
		ATF_REQUIRE(worlds[i].taken != NULL);
		worlds[i].ntaken = 0;
	}
}

static void
worlds_close(void)
{
	unsigned int i, j;

	for (i = 0; i < nitems(worlds); i++) {
		for (j = 0; j < PORTS; j++)
			vale_close(worlds[i].d[j]);
		free(worlds[i].taken);
	}
}

#define	REQUIRE_SAME(cond, what, port)					\
	ATF_REQUIRE_MSG(cond, "seed %" PRIu32 ", scenario %u, step %u: " \
	    "port %u: %s differ", seed, scenario, step, port, what)

static void
compare_ring(const struct netmap_ring *a, const struct netmap_ring *b,
    unsigned int port, const char *what)
{
	REQUIRE_SAME(a->head == b->head && a->cur == b->cur &&
	    a->tail == b->tail && a->flags == b->flags, what, port);
	REQUIRE_SAME(memcmp(a->slot, b->slot,
	    a->num_slots * sizeof(a->slot[0])) == 0, what, port);
}

static void
compare(void)
{
	uint64_t count[nitems(worlds)][VALE_NCOUNTERS];
	const struct vale_pair *a, *b;
	const struct vale_region *ar, *br;
	unsigned int c, i, j;

	for (j = 0; j < PORTS; j++) {
		a = vale_desc_pair(worlds[0].d[j]);
		b = vale_desc_pair(worlds[1].d[j]);
		compare_ring(a->pa_desc.txring, b->pa_desc.txring, j,
		    "transmit rings");
		compare_ring(a->pa_desc.rxring, b->pa_desc.rxring, j,
		    "receive rings");
		ar = &a->pa_port->vp_region;
		br = &b->pa_port->vp_region;
		REQUIRE_SAME(memcmp(ar->vr_bufs, br->vr_bufs,
		    (size_t)ar->vr_nbufs * VALE_BUF_SIZE) == 0, "buffers", j);
		REQUIRE_SAME(a->pa_rx.rq_next == b->pa_rx.rq_next &&
		    a->pa_rx.rq_tail == b->pa_rx.rq_tail &&
		    a->pa_rx.rq_asleep == b->pa_rx.rq_asleep &&
		    a->pa_rx.rq_woken == b->pa_rx.rq_woken &&
		    a->pa_tx.vt_cur == b->pa_tx.vt_cur, "positions", j);
		for (i = 0; i < 2; i++)
			ATF_REQUIRE_EQ(0, vale_port_counters(
			    worlds[i].d[j]->common->name, count[i]));
		for (c = 0; c < VALE_NCOUNTERS; c++)
			REQUIRE_SAME(count[0][c] == count[1][c],
			    vale_counter_table[c].cr_name, j);
	}
	REQUIRE_SAME(worlds[0].ntaken == worlds[1].ntaken &&
	    memcmp(worlds[0].taken, worlds[1].taken, worlds[0].ntaken) == 0,
	    "frames of sinks", 0);
}

/*
 * Steps.
 */

/* A slot's contents, once for both worlds. */
static void
fill_slot(unsigned int port, uint32_t at, uint32_t len, bool more, bool bad)
{
	uint8_t header[VALE_FRAME_MIN + 8];
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	unsigned int dst = below(STATIONS + 1), i, which = below(POOL);
	uint32_t idx;
	bool indirect = chance(1, 4), null = bad && chance(1, 4);

	memset(header, 0, sizeof(header));
	header[0] = header[6] = 2;
	header[5] = dst;
	header[11] = chance(1, 16) ? below(STATIONS) : port;
	if (dst == STATIONS)
		memset(header, 0xff, 6);
	for (i = 12; i < sizeof(header); i++)
		header[i] = rnd();
	idx = bad ? rnd() >> below(32) : 0;
	for (i = 0; i < nitems(worlds); i++) {
		ring = worlds[i].d[port]->txring;
		slot = &ring->slot[at];
		slot->len = len;
		slot->flags = more ? NS_MOREFRAG : 0;
		slot->ptr = 0;
		if (indirect) {
			memcpy(pool[which], header, sizeof(header));
			slot->flags |= NS_INDIRECT;
			slot->ptr = null ? 0 : (uintptr_t)pool[which];
			continue;
		}
		slot->buf_idx = bad ? idx : VALE_BUF_FIRST + at;
		if (!bad)
			memcpy(NETMAP_BUF(ring, slot->buf_idx), header,
			    sizeof(header));
	}
}

static void
step_send(const struct profile *pf, unsigned int port)
{
	const uint32_t nslots = worlds[0].d[port]->txring->num_slots;
	uint32_t at, frags, head, n;
	unsigned int i;
	int r[nitems(worlds)];

	at = worlds[0].d[port]->txring->head;
	for (n = below(nslots); n > 0; n -= frags) {
		frags = 1;
		if (chance(pf->good, 16)) {
			fill_slot(port, at, good_length(), false, false);
			at = vale_slot_next(at, nslots);
			continue;
		}
		/* Fragments, and slots of any kind. */
		frags = 1 + below(chance(1, 8) ? NETMAP_MAX_FRAGS + 2 : 4);
		frags = MIN(frags, n);
		for (i = 0; i < frags; i++) {
			fill_slot(port, at, chance(1, 2) ? good_length() :
			    frame_length(), i + 1 < frags || chance(1, 16),
			    chance(1, 16));
			at = vale_slot_next(at, nslots);
		}
	}
	head = chance(1, 64) ? nslots + below(3) : at;
	for (i = 0; i < nitems(worlds); i++) {
		worlds[i].d[port]->txring->head = head;
		worlds[i].d[port]->txring->cur = head;
		r[i] = worlds[i].txsync(worlds[i].d[port]);
	}
	REQUIRE_SAME(r[0] == r[1], "results of vale_txsync()", port);
}

static void
step_receive(unsigned int port)
{
	struct netmap_ring *ring = worlds[0].d[port]->rxring;
	uint32_t cur, head, idx, n, slot;
	unsigned int i;
	int r[nitems(worlds)];
	bool bad, polled;

	n = vale_slot_sub(ring->tail, ring->head, ring->num_slots);
	head = vale_slot_add(ring->head, chance(1, 2) ? n : below(n + 1),
	    ring->num_slots);
	cur = chance(1, 2) ? ring->tail : head;
	if (chance(1, 64))
		head = below(ring->num_slots + 2);
	polled = chance(1, 4);
	bad = chance(1, 8);
	slot = below(ring->num_slots);
	idx = rnd() >> below(32);
	for (i = 0; i < nitems(worlds); i++) {
		ring = worlds[i].d[port]->rxring;
		if (bad)
			ring->slot[slot].buf_idx = idx;
		ring->head = head;
		ring->cur = cur;
		ring->flags = polled ? VALE_RING_POLLED : 0;
		r[i] = vale_rxsync(worlds[i].d[port]);
	}
	REQUIRE_SAME(r[0] == r[1], "results of vale_rxsync()", port);
}

static void
run(const atf_tc_t *tc, const struct profile *pf)
{
	unsigned int i, j;

	seed_set(tc);
	for (i = 0; i < POOL; i++)
		for (j = 0; j < BUF; j++)
			pool[i][j] = rnd();
	for (scenario = 0; scenario < 400; scenario++) {
		worlds_open(pf);
		for (step = 0; step < 60; step++) {
			step_send(pf, below(PORTS));
			compare();
			if (chance(pf->slow, 16))
				continue;
			step_receive(below(PORTS));
			compare();
		}
		worlds_close();
	}
}

TEST(collect_single_slot, "Frames of any kind are forwarded alike with and "
    "without the fast path")
{
	static const struct profile pf = { 8, 2, 4, 80 };

	run(tc, &pf);
}

TEST(deliver_single_slot, "Receive rings that are nearly full are filled alike "
    "with and without the fast path")
{
	static const struct profile pf = { 13, 8, 0, 32 };

	run(tc, &pf);
}

TEST_PROGRAM
