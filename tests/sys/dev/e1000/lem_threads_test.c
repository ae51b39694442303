/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Two guests over the switch, with threads (lem_ladder.h): in each mode no
 * frame is lost or duplicated, and exits are counted.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "lem_core.h"
#include "lem_ladder.h"
#include "test.h"

#define	TC(name, what)	TEST_WITH(name, "timeout", "600", what)

#define	FRAMES		20000
/* Less than the slots of any ring on the way. */
#define	WINDOW		200
/* Accesses for an interrupt: ICR, IMC, IMS; with the CSB ICR alone. */
#define	INTR_EXITS	3
#define	INTR_EXITS_CSB	1

static void
run(struct ladder_params *p, struct ladder_result *r)
{
	if (p->batch == 0)
		p->batch = 1;
	if (p->len == 0)
		p->len = 60;
	ATF_REQUIRE_EQ(0, ladder_run(p, r));
	ATF_CHECK_EQ(0, r->wrong);
	ATF_CHECK_EQ(0, r->guest[0].misuses);
	ATF_CHECK_EQ(0, r->guest[1].misuses);
}

/* Check that all frames arrived in order, with `intr_exits' an interrupt. */
static void
deliver(uint32_t mode, uint32_t itr_256ns, unsigned int intr_exits,
    struct ladder_result *r)
{
	struct ladder_params p = {
		.mode = mode, .itr_256ns = itr_256ns, .frames = FRAMES,
		.window = WINDOW
	};
	const struct ladder_side *g;
	int i;

	run(&p, r);
	ATF_CHECK_EQ(FRAMES, r->sent);
	ATF_CHECK_EQ(FRAMES, r->received);
	ATF_CHECK_EQ(0, r->missing);
	/* Each frame was direct or copied. */
	ATF_CHECK_EQ(FRAMES, r->direct + r->copied);
	for (i = 0; i < 2; i++) {
		g = &r->guest[i];
		ATF_CHECK_EQ(g->tx_kicks + g->rx_kicks +
		    intr_exits * g->interrupts, g->exits);
	}
	ATF_CHECK_EQ(0, r->guest[0].rx_kicks);
	ATF_CHECK_EQ(0, r->guest[1].tx_kicks);
}

TC(base, "Without a mode, each frame takes one kick, each interrupt three "
    "exits")
{
	struct ladder_result r;

	deliver(0, 0, INTR_EXITS, &r);
	ATF_CHECK_EQ(FRAMES, r.guest[0].tx_kicks);
	ATF_CHECK(r.guest[1].rx_kicks <= FRAMES);
}

/* The adapter's clock limits the number of interrupts. */
static void
check_moderation(const struct ladder_result *r, uint32_t itr_256ns)
{
	ATF_CHECK_MSG(r->guest[0].raised <= r->ns / (itr_256ns * 256ULL) + 2,
	    "%ju interrupts in %ju ns", (uintmax_t)r->guest[0].raised,
	    (uintmax_t)r->ns);
}

TC(moderation, "At most one interrupt in each moderation interval")
{
	struct ladder_result r;

	deliver(0, 4000, INTR_EXITS, &r);
	ATF_CHECK_EQ(FRAMES, r.guest[0].tx_kicks);
	check_moderation(&r, 4000);
}

TC(combining, "Send combining: one kick for each interrupt, short ring, and "
    "idle ring")
{
	struct ladder_result r;

	deliver(LEM_MODE_SC, 0, INTR_EXITS, &r);
	ATF_CHECK(r.guest[0].tx_kicks <= FRAMES);
}

TC(combining_moderation, "Send combining with moderation: at most two kicks in "
    "an interval, unless the ring is short")
{
	struct ladder_result r;

	deliver(LEM_MODE_SC, 4000, INTR_EXITS, &r);
	check_moderation(&r, 4000);
	/*
	 * With a window below three quarters of the ring, the ring is never
	 * short.
	 */
	ATF_CHECK(r.guest[0].tx_kicks <= 2 * r.guest[0].interrupts + 2);
}

TC(lazy, "Lazy completion: no transmit interrupt while descriptors are free")
{
	struct ladder_result r;

	deliver(LEM_MODE_LAZY, 0, INTR_EXITS, &r);
	ATF_CHECK_EQ(0, r.guest[0].raised);
}

TC(polling, "Polling: no interrupt, a kick for each flush and for each eighth "
    "of the receive ring")
{
	struct ladder_result r;

	deliver(LEM_MODE_POLL, 0, INTR_EXITS, &r);
	ATF_CHECK_EQ(0, r.guest[0].raised + r.guest[1].raised);
	ATF_CHECK_EQ(FRAMES, r.guest[0].exits);
	ATF_CHECK(r.guest[1].exits <= FRAMES / 128);
	/* With send combining, most frames wait; all arrive. */
	deliver(LEM_MODE_POLL | LEM_MODE_SC, 0, INTR_EXITS, &r);
	ATF_CHECK_EQ(0, r.guest[0].raised + r.guest[1].raised);
	ATF_CHECK(r.guest[0].exits <= FRAMES);
}

TC(csb, "CSB: a kick or interrupt only if the other side sleeps")
{
	struct ladder_result r;

	deliver(LEM_MODE_CSB, 0, INTR_EXITS_CSB, &r);
	ATF_CHECK(r.guest[0].tx_kicks <= FRAMES);
	deliver(LEM_MODE_CSB | LEM_MODE_POLL, 0, INTR_EXITS_CSB, &r);
	ATF_CHECK_EQ(0, r.guest[0].raised + r.guest[1].raised);
}

TC(csb_msi, "CSB, messages: most interrupts take no exit")
{
	struct ladder_params p = {
		.mode = LEM_MODE_CSB, .frames = FRAMES, .window = WINDOW,
		.msi = true
	};
	const struct ladder_side *g;
	struct ladder_result r;
	int i;

	for (i = 0; i < 2; i++) {
		p.split = i != 0;
		run(&p, &r);
		ATF_CHECK_EQ(FRAMES, r.received);
		ATF_CHECK_EQ(0, r.missing);
		/* ICR is read if a message comes after the next request. */
		g = &r.guest[1];
		ATF_CHECK(g->exits - g->tx_kicks - g->rx_kicks <=
		    g->interrupts / 2 + 2);
		printf("interrupts: %ju, sent %ju, exits %ju\n",
		    (uintmax_t)g->interrupts, (uintmax_t)g->raised,
		    (uintmax_t)g->exits);
	}
}

TC(one_copy, "A frame is copied once if the receiver has buffers and is not at "
    "its ring; twice if its ring is polled or direct delivery is off")
{
	struct ladder_params p = { .frames = FRAMES, .window = WINDOW };
	struct ladder_result r;
	bool ring;

	for (p.mode = 0; p.mode < 16; p.mode++) {
		p.own_thread = p.mode % 3 == 0;
		p.len = 60 + 96 * p.mode;
		ring = p.own_thread && (p.mode & LEM_MODE_POLL) != 0;
		run(&p, &r);
		ATF_CHECK_EQ(FRAMES, r.received);
		ATF_CHECK_EQ(FRAMES, r.direct + r.copied);
		if (ring)
			ATF_CHECK_EQ(0, r.direct);
		else
			ATF_CHECK(r.direct > 0);
	}
	p.mode = LEM_MODE_CSB;
	p.by_ring = true;
	run(&p, &r);
	ATF_CHECK_EQ(FRAMES, r.received);
	ATF_CHECK_EQ(0, r.direct);
	ATF_CHECK_EQ(FRAMES, r.copied);
}

TC(both_ways, "With a slow receiver, direct frames and frames through the ring "
    "arrive in order")
{
	struct ladder_params p = { .frames = 4000, .exit_ns = 20000 };
	struct ladder_result r;

	for (p.mode = 0; p.mode < 16; p.mode++) {
		run(&p, &r);
		ATF_CHECK(r.direct > 0);
		ATF_CHECK_EQ(r.direct + r.copied, r.received);
		ATF_CHECK_EQ(r.sent - r.dropped, r.received);
	}
}

TC(csb_load, "With the CSB at full load, less than 0.02 exits a frame, at both "
    "ends")
{
	struct ladder_params p = {
		.mode = LEM_MODE_CSB, .itr_256ns = 4000, .frames = 200000
	};
	struct ladder_result r;

	run(&p, &r);
	ATF_CHECK_EQ(200000, r.sent);
	ATF_CHECK(r.received > 0);
	ATF_CHECK_MSG(r.guest[0].exits * 50 < r.sent, "%ju exits, %ju sent",
	    (uintmax_t)r.guest[0].exits, (uintmax_t)r.sent);
	ATF_CHECK_MSG(r.guest[1].exits * 50 < r.received,
	    "%ju exits, %ju received", (uintmax_t)r.guest[1].exits,
	    (uintmax_t)r.received);
}

TC(own_thread, "Adapters that run in their guests' threads send to a guest and "
    "to a program on a port")
{
	struct ladder_params p = {
		.frames = FRAMES, .window = WINDOW, .own_thread = true
	};
	struct ladder_result r;

	for (p.mode = 0; p.mode < 16; p.mode++) {
		run(&p, &r);
		ATF_CHECK_MSG(r.received == FRAMES, "mode %#x: %ju of %u",
		    p.mode, (uintmax_t)r.received, FRAMES);
		p.to_host = !p.to_host;
	}
	p.mode = LEM_MODE_POLL;
	for (p.batch = 1; p.batch <= 64; p.batch *= 4) {
		p.to_host = !p.to_host;
		run(&p, &r);
		/* The last batch is complete. */
		ATF_CHECK(r.sent >= FRAMES);
		ATF_CHECK_EQ(r.sent, r.received);
	}
}

static void
change_mode(struct ladder_params *p __unused, int guest, void *arg)
{
	static unsigned int seed[2] = { 1, 2 };
	struct lem_core *lc = arg;
	int error;

	error = lem_set_mode(lc, rand_r(&seed[guest]) % 16);
	if (error == 0)
		error = lem_set_itr(lc, rand_r(&seed[guest]) % 800);
	if (error != 0)
		abort();
	lem_intr_enable(lc);
}

TC(mode_changes, "While both guests change mode and moderation, every frame "
    "arrives in order")
{
	struct ladder_params p = {
		.frames = FRAMES, .window = WINDOW, .hook = change_mode
	};
	struct ladder_result r;

	run(&p, &r);
	ATF_CHECK_EQ(FRAMES, r.sent);
	ATF_CHECK_EQ(FRAMES, r.received);
	ATF_CHECK_EQ(0, r.missing);
}

TC(split, "One thread sends and another serves interrupts, in each mode: every "
    "frame arrives, no wait is endless")
{
	struct ladder_params p = { .frames = FRAMES, .split = true };
	struct ladder_result r;

	for (p.mode = 0; p.mode < 16; p.mode++) {
		/* With a window, and without: then the ring fills up. */
		p.window = WINDOW;
		run(&p, &r);
		ATF_CHECK_EQ(FRAMES, r.sent);
		ATF_CHECK_EQ(FRAMES, r.received);
		p.window = 0;
		run(&p, &r);
		ATF_CHECK_EQ(FRAMES, r.sent);
		ATF_CHECK(r.received > 0);
	}
	p.mode = 0;
	p.window = WINDOW;
	p.hook = change_mode;
	run(&p, &r);
	ATF_CHECK_EQ(FRAMES, r.received);
}

static void
restart(struct ladder_params *p, int guest, void *arg)
{
	static const uint8_t mac[2][6] = {
		{ 0x02, 0, 0, 0, 0, 1 }, { 0x02, 0, 0, 0, 0, 2 }
	};
	static unsigned int count[2];
	struct lem_core *lc = arg;

	if (++count[guest] % 8 != 0)
		return;
	change_mode(p, guest, lc);
	lem_stop(lc);
	if (lem_start(lc, mac[guest], 1500) != 0)
		abort();
	lem_intr_enable(lc);
}

TC(restarts, "While both guests stop and start their adapters, frames may be "
    "lost, never duplicated or reordered")
{
	struct ladder_params p = { .frames = FRAMES, .hook = restart };
	struct ladder_result r;

	run(&p, &r);
	ATF_CHECK_EQ(FRAMES, r.sent);
	ATF_CHECK(r.received > 0);
}

TEST_PROGRAM
