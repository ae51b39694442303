/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interrupts of the 82545EM: ICR, ICS, IMS, IMC; the host's timer; interrupts
 * of batches of frames.  e82545_moder_test tests their moderation.
 */

#include <sys/param.h>

#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82545_intr.h"

#define	ALL	0xffffffff
#define	TXDW	E82545_ICR_TXDW
#define	LSC	E82545_ICR_LSC
#define	RXT0	E82545_ICR_RXT0

HOST_TEST(icr, host_create(HOST_RAM), "ICR, ICS, IMS and IMC: what sets, "
    "clears, asserts, deasserts")
{
	/* Causes that are masked. */
	host_wr(h, E82545_ICS, RXT0 | LSC);
	ATF_CHECK(!host_line(h));
	ATF_CHECK_EQ(RXT0 | LSC, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	/* Write ones to clear. */
	host_wr(h, E82545_ICS, ALL);
	host_wr(h, E82545_ICR, 0x1fff0);
	ATF_CHECK_EQ(0xf, host_rd(h, E82545_ICR));
	/* Only implemented bits are set. */
	host_wr(h, E82545_ICS, ALL);
	ATF_CHECK_EQ(0x1ffff, host_rd(h, E82545_ICS));
	ATF_CHECK_EQ(0x1ffff, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICS));
	ATF_CHECK_EQ(0, host_rd(h, E82545_IMC));

	/* Masks are set and cleared by ones. */
	host_wr(h, E82545_IMS, RXT0);
	host_wr(h, E82545_IMS, LSC);
	host_wr(h, E82545_IMS, 0);
	ATF_CHECK_EQ(RXT0 | LSC, host_rd(h, E82545_IMS));
	host_wr(h, E82545_IMC, LSC);
	host_wr(h, E82545_IMC, 0);
	ATF_CHECK_EQ(RXT0, host_rd(h, E82545_IMS));
	host_wr(h, E82545_IMS, ALL);
	ATF_CHECK_EQ(0x1ffff, host_rd(h, E82545_IMS));
	host_wr(h, E82545_IMC, ALL);
	ATF_CHECK_EQ(0, host_rd(h, E82545_IMS));
	ATF_CHECK_EQ(0, h->nedges);

	/* The line. */
	host_wr(h, E82545_IMS, RXT0 | LSC);
	host_wr(h, E82545_ICS, TXDW);
	ATF_CHECK(!host_line(h));
	host_wr(h, E82545_ICS, LSC);
	ATF_CHECK(host_line(h));
	/* A new cause while the line is asserted makes no new edge. */
	host_wr(h, E82545_ICS, RXT0);
	ATF_CHECK_EQ(1, host_raised(h));
	/* The line stays asserted until both causes are cleared. */
	host_wr(h, E82545_ICR, LSC);
	ATF_CHECK(host_line(h));
	host_wr(h, E82545_ICR, RXT0);
	ATF_CHECK(!host_line(h));
	ATF_CHECK_EQ(TXDW, host_rd(h, E82545_ICR));

	/* Masking deasserts the line, unmasking asserts it: a new edge. */
	host_wr(h, E82545_ICS, RXT0);
	ATF_CHECK(host_line(h));
	host_wr(h, E82545_IMC, RXT0);
	ATF_CHECK(!host_line(h));
	host_wr(h, E82545_IMS, RXT0);
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(3, host_raised(h));
	/* Reading ICR deasserts. */
	ATF_CHECK_EQ(RXT0, host_rd(h, E82545_ICR));
	ATF_CHECK(!host_line(h));
	ATF_CHECK_EQ(3, host_raised(h));
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_INTR_SENT));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_INTR_HELD));
}

/* The line was withdrawn once since the last time. */
static void
withdrawn(struct host *h)
{
	ATF_CHECK_EQ(1, h->nwithdrawn);
	ATF_CHECK_EQ(0, h->withdrawn);
	h->nwithdrawn = 0;
	h->withdrawn = ALL;
}

HOST_TEST(off, host_create(HOST_RAM), "When no cause is enabled any more, what "
    "was sent is withdrawn")
{
	host_wr(h, E82545_IMS, RXT0 | LSC);
	host_wr(h, E82545_ICS, RXT0);
	/* The other one may have interrupted. */
	host_wr(h, E82545_IMC, RXT0);
	ATF_CHECK_EQ(RXT0, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(0, h->nwithdrawn);
	h->withdrawn = ALL;
	host_wr(h, E82545_IMC, LSC);
	withdrawn(h);
	host_wr(h, E82545_IMS, RXT0);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	withdrawn(h);
	e82545_reset(h->dev);
	withdrawn(h);
}

HOST_TEST(timer, host_create(HOST_RAM), "The host's timer is set seldom; early "
    "calls do no harm")
{
	unsigned int i;

	host_wr(h, E82545_IMS, ALL);
	host_wr(h, E82545_RDTR, 10);
	/*
	 * 1000 packets, 100 ns apart: 100 us.  The timer expires each 10.24 us.
	 */
	for (i = 0; i < 1000; i++) {
		pthread_mutex_lock(&h->dev->reg_mtx);
		e82545_intr_rx(h->dev, 0, true, 0);
		pthread_mutex_unlock(&h->dev->reg_mtx);
		host_advance(h, 100);
	}
	ATF_CHECK_EQ(0, host_raised(h));
	ATF_CHECK_MSG(h->ntimer <= 11, "%u", h->ntimer);
	ATF_CHECK_EQ(1000, host_counter(h, E82545_C_INTR_ASKED));
	/* The last came 100 ns ago. */
	for (i = 0; i < 10; i++) {
		e82545_timer(h->dev);
		host_advance(h, 1013);
		ATF_CHECK_EQ(0, host_raised(h));
	}
	host_advance(h, 9);
	ATF_CHECK_EQ(0, host_raised(h));
	host_advance(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(0, h->timer_ns);
	host_rd(h, E82545_ICR);

	/* A reset stops the timer. */
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_intr_rx(h->dev, 0, true, 0);
	pthread_mutex_unlock(&h->dev->reg_mtx);
	ATF_CHECK(h->timer_ns != 0);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0, h->timer_ns);
	host_wr(h, E82545_IMS, ALL);
	host_advance(h, 1000000000);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	/* Very late, and with nothing to do. */
	e82545_timer(h->dev);
	ATF_CHECK_EQ(1, host_raised(h));

	/* The next delay sets the timer anew; a reset does not unless it is. */
	host_wr(h, E82545_RDTR, 10);
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_intr_rx(h->dev, 0, true, 0);
	pthread_mutex_unlock(&h->dev->reg_mtx);
	ATF_CHECK_EQ(h->now_ns + 10240, h->timer_ns);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	host_wr(h, E82545_RDTR, 20);
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_intr_rx(h->dev, 0, true, 0);
	pthread_mutex_unlock(&h->dev->reg_mtx);
	ATF_CHECK_EQ(h->now_ns + 20480, h->timer_ns);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	i = h->ntimer;
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(i, h->ntimer);
}

static unsigned int clock_reads;

static uint64_t
clock_now(void *arg)
{
	clock_reads++;
	return (host_ops.eo_now(arg));
}

/* Put moderation into a state, without the steps that lead to it. */
static void
set_state(struct host *h, const struct e82545_moderation *m, uint32_t icr)
{
	h->dev->moder = *m;
	h->dev->armed_ns = 0;
	h->line = m->asserted;
	e82545_reg_set(h->dev, E82545_ICR, icr);
}

TEST(clock, "The clock is read only if the result depends on it, and the timer "
    "set only if one runs")
{
	enum call { CALL_RAISE, CALL_RX, CALL_TX };
#define	LATER		(UINT64_C(1) << 50)
#define	RUNS(timer)	{ .timer = LATER }
	static const struct {
		struct e82545_moderation m;
		uint32_t	icr, ims, rdtr, tidv;
		enum call	call;
		bool		done;
		uint32_t	causes;
		unsigned int	reads, timers;
	} t[] = {
		/* Masked. */
		{ .call = CALL_RX, .done = true },
		{ .call = CALL_TX, .done = true },
		{ .call = CALL_RAISE, .causes = LSC },
		{ .ims = TXDW, .call = CALL_RX, .done = true },
		{ .ims = RXT0, .call = CALL_TX, .done = true },
		{ .ims = TXDW | RXT0, .call = CALL_RAISE, .causes = LSC },
		/* Not masked. */
		{ .ims = RXT0, .call = CALL_RX, .done = true, .reads = 1 },
		{ .ims = TXDW, .call = CALL_TX, .done = true, .reads = 1 },
		{ .ims = LSC, .call = CALL_RX, .causes = LSC, .reads = 1 },
		{ .ims = LSC, .call = CALL_TX, .causes = LSC, .reads = 1 },
		{ .ims = LSC, .call = CALL_RAISE, .causes = LSC, .reads = 1 },
		/* The line is asserted. */
		{ .m = { .asserted = true }, .icr = RXT0, .ims = RXT0,
		    .call = CALL_RX, .done = true },
		{ .m = { .asserted = true }, .icr = LSC, .ims = LSC | TXDW,
		    .call = CALL_TX, .done = true },
		/* A timer runs. */
		{ .m = RUNS(rx_packet_ns), .call = CALL_RAISE, .causes = LSC,
		    .reads = 1, .timers = 1 },
		{ .m = RUNS(rx_absolute_ns), .call = CALL_RAISE, .causes = LSC,
		    .reads = 1, .timers = 1 },
		{ .m = RUNS(tx_packet_ns), .call = CALL_RAISE, .causes = LSC,
		    .reads = 1, .timers = 1 },
		{ .m = RUNS(tx_absolute_ns), .call = CALL_RAISE, .causes = LSC,
		    .reads = 1, .timers = 1 },
		/* A timer starts. */
		{ .rdtr = 10, .call = CALL_RX, .done = true, .reads = 1,
		    .timers = 1 },
		{ .tidv = 10, .call = CALL_TX, .done = true, .reads = 1,
		    .timers = 1 },
		{ .rdtr = 10, .call = CALL_TX, .done = true },
		{ .tidv = 10, .call = CALL_RX, .done = true },
		/* Nothing happened, whatever runs. */
		{ .m = RUNS(rx_packet_ns), .call = CALL_RAISE },
		{ .m = RUNS(rx_packet_ns), .call = CALL_RX },
		{ .m = RUNS(tx_packet_ns), .call = CALL_TX },
	};
	static const struct e82545_moderation idle;
	struct e82545_ops ops = host_ops;
	struct host *h = host_create(HOST_RAM);
	uint64_t asked;
	unsigned int i, ntimer;

	ops.eo_now = clock_now;
	h->dev->ops = &ops;
	for (i = 0; i < nitems(t); i++) {
		host_wr(h, E82545_IMC, ALL);
		host_wr(h, E82545_IMS, t[i].ims);
		host_wr(h, E82545_RDTR, t[i].rdtr);
		host_wr(h, E82545_TIDV, t[i].tidv);
		asked = host_counter(h, E82545_C_INTR_ASKED);
		ntimer = h->ntimer;
		clock_reads = 0;
		pthread_mutex_lock(&h->dev->reg_mtx);
		set_state(h, &t[i].m, t[i].icr);
		if (t[i].call == CALL_RAISE)
			e82545_intr_raise(h->dev, t[i].causes);
		else if (t[i].call == CALL_RX)
			e82545_intr_rx(h->dev, 0, t[i].done, t[i].causes);
		else
			e82545_intr_tx(h->dev, 0, t[i].done, true, t[i].causes);
		pthread_mutex_unlock(&h->dev->reg_mtx);
		ATF_CHECK_EQ_MSG(t[i].reads, clock_reads, "%u: read %u times",
		    i, clock_reads);
		ATF_CHECK_EQ_MSG(t[i].timers, h->ntimer - ntimer,
		    "%u: set %u times", i, h->ntimer - ntimer);
		ATF_CHECK_EQ_MSG(asked + (t[i].done || t[i].causes != 0),
		    host_counter(h, E82545_C_INTR_ASKED), "%u", i);
		pthread_mutex_lock(&h->dev->reg_mtx);
		set_state(h, &idle, 0);
		pthread_mutex_unlock(&h->dev->reg_mtx);
	}
	/* ICR is read, with a timer running. */
	for (i = 0; i < 2; i++) {
		pthread_mutex_lock(&h->dev->reg_mtx);
		set_state(h, &t[13].m, i == 0 ? 0 : LSC);
		pthread_mutex_unlock(&h->dev->reg_mtx);
		clock_reads = 0;
		host_rd(h, E82545_ICR);
		ATF_CHECK_EQ(i, clock_reads);
	}
	/* No timer runs so long. */
	pthread_mutex_lock(&h->dev->reg_mtx);
	set_state(h, &idle, 0);
	pthread_mutex_unlock(&h->dev->reg_mtx);
	host_destroy(h);
#undef LATER
#undef RUNS
}

HOST_TEST(restored, host_create(HOST_RAM), "A restore stops the host's timer, "
    "which is set again from then on")
{
	unsigned int ntimer;
	uint8_t *buf;
	size_t size;

	host_wr(h, E82545_RDTR, 20);
	e82545_pause(h->dev);
	size = e82545_snapshot_size(h->dev);
	buf = malloc(size);
	ATF_REQUIRE(buf != NULL);
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(h->dev, buf, size));
	e82545_resume(h->dev);
	/* A timer, which the snapshot does not have. */
	host_wr(h, E82545_RDTR, 10);
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_intr_rx(h->dev, 0, true, 0);
	pthread_mutex_unlock(&h->dev->reg_mtx);
	ATF_CHECK_EQ(h->now_ns + 10240, h->timer_ns);
	e82545_pause(h->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(h->dev, buf, size));
	ATF_CHECK_EQ(0, h->timer_ns);
	/* Without one there is nothing to stop. */
	ntimer = h->ntimer;
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(h->dev, buf, size));
	ATF_CHECK_EQ(ntimer, h->ntimer);
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_intr_rx(h->dev, 0, true, 0);
	pthread_mutex_unlock(&h->dev->reg_mtx);
	ATF_CHECK_EQ(h->now_ns + 20480, h->timer_ns);
	free(buf);
}

/*
 * A frame each microsecond for 64 ms, to a guest that serves every interrupt at
 * once, and has `guest' in ITR.
 */
static unsigned int
flood_interrupts(uint32_t itr_256ns, uint32_t itr_min_256ns, uint32_t guest)
{
	uint8_t frame[60], buf[2048];
	unsigned int i, n, received;
	struct host *h;

	h = host_create_itr(HOST_RAM, itr_256ns, itr_min_256ns);
	host_up(h, 64, 256, 2048);
	host_make_frame(frame, sizeof(frame), host_mac, 0);
	host_wr(h, E82545_ITR, guest);
	host_wr(h, E82545_IMS, RXT0);
	received = 0;
	for (i = 0; i < 64000; i++) {
		host_inject(h, frame, sizeof(frame), 1);
		host_run(h);
		host_advance(h, 1000);
		if (!host_line(h))
			continue;
		ATF_REQUIRE((host_rd(h, E82545_ICR) & RXT0) != 0);
		while (host_rx_take(h, buf, sizeof(buf), NULL) != -1)
			received++;
		host_rx_post(h);
	}
	n = host_raised(h);
	ATF_CHECK_EQ(n, host_counter(h, E82545_C_INTR_SENT));
	/* The rest belongs to an interrupt that is not due yet. */
	ATF_CHECK(received > 64000 - 129);
	host_destroy(h);
	return (n);
}

TEST(flood, "At 1 Mpps, an interrupt a frame without moderation, and with "
    "itr=250 one for 64 frames; with itr_min=250 whatever shorter interval the "
    "guest sets")
{
	ATF_CHECK_EQ(flood_interrupts(0, 0, 0), 64000);
	/* 250 * 256 ns = 64 us: at 0, 64, 128, ... 64000 us. */
	ATF_CHECK_EQ(flood_interrupts(250, 0, 0), 64000 / 64 + 1);
	ATF_CHECK_EQ(flood_interrupts(250, 0, 1), 64000);
	ATF_CHECK_EQ(flood_interrupts(0, 250, 0), 64000 / 64 + 1);
	ATF_CHECK_EQ(flood_interrupts(0, 250, 1), 64000 / 64 + 1);
	ATF_CHECK_EQ(flood_interrupts(500, 250, 249), 64000 / 64 + 1);
	ATF_CHECK_EQ(flood_interrupts(500, 250, 0), 64000 / 128 + 1);
	ATF_CHECK_EQ(flood_interrupts(0, 250, 500), 64000 / 128 + 1);
}

HOST_TEST(changed, host_create(HOST_RAM), "A change of itr=, itr_min= and the "
    "longest frame is in force from the next interrupt and batch on")
{
	host_wr(h, E82545_IMS, ALL);
	host_wr(h, E82545_ICS, E82545_ICR_TXDW);
	ATF_CHECK_EQ(1, host_raised(h));
	host_rd(h, E82545_ICR);
	/* There is no interval, and then there is one since the last. */
	host_wr(h, E82545_ICS, E82545_ICR_TXDW);
	ATF_CHECK_EQ(2, host_raised(h));
	host_rd(h, E82545_ICR);
	e82545_change(h->dev, 250, 0, 1518);
	ATF_CHECK_EQ(1518, h->port.fp_frame_max);
	host_advance(h, 1000);
	host_wr(h, E82545_ICS, E82545_ICR_TXDW);
	host_advance(h, 250 * 256 - 1000 - 1);
	ATF_CHECK_EQ(2, host_raised(h));
	host_advance(h, 1);
	ATF_CHECK_EQ(3, host_raised(h));
	host_rd(h, E82545_ICR);
	/* The driver's counts, unless the other one is longer. */
	host_wr(h, E82545_ITR, 100);
	e82545_change(h->dev, 0, 200, UINT32_MAX);
	ATF_CHECK_EQ(UINT32_MAX, h->port.fp_frame_max);
	host_wr(h, E82545_ICS, E82545_ICR_TXDW);
	host_advance(h, 200 * 256 - 1);
	ATF_CHECK_EQ(3, host_raised(h));
	host_advance(h, 1);
	ATF_CHECK_EQ(4, host_raised(h));
}

TEST_PROGRAM
