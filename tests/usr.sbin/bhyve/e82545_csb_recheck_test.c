/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB and drivers without barriers: what such a driver stored before it
 * read the block, the host may see only after it has read it.  Then
 * neither wakes the other, and the host must check again.
 *
 * Here the guest's stores become visible late because they are made late.
 */

#include <sys/param.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"

#define	RECHECK_NS		10000000	/* when the host checks again */
#define	HOUR_NS		3600000000000
#define	NRXD		16

static unsigned int nmaps;

/* A guest that wants no interrupts; nothing is left to check. */
static struct host *
up(void)
{
	struct host *h = guest_up(64, NRXD, 2048, 1);

	CSB_SET(h, guest_need_rxkick, 0);
	CSB_SET(h, guest_need_txkick, 0);
	host_advance(h, HOUR_NS);
	host_run(h);
	ATF_REQUIRE_EQ(0, h->timer_ns);
	h->ntimer = h->nkick = h->nready = 0;
	return (h);
}

/* Time passes until the host checks again, and not a nanosecond more. */
static void
recheck(struct host *h)
{
	const uint64_t now_ns = h->now_ns;

	ATF_REQUIRE(h->timer_ns > now_ns);
	ATF_CHECK(h->timer_ns - now_ns <= RECHECK_NS);
	host_advance(h, h->timer_ns - now_ns - 1);
	host_run(h);
	host_advance(h, 1);
	host_run(h);
}

HOST_TEST(tx_numbers, up(), "The same of a request with a number, the first: "
    "one interrupt, whether or not ICR was read")
{
	unsigned int i;

	for (i = 1; i <= 3; i++) {
		CSB_SET(h, pad[0], 0);
		CSB_SET(h, guest_need_txkick, 0);
		guest_transmit(h, 1);
		CSB_SET(h, pad[0], 1);
		CSB_SET(h, guest_need_txkick, 2 * i + 1);
		ATF_CHECK_EQ(i - 1, host_raised(h));
		recheck(h);
		ATF_CHECK_EQ(i, host_raised(h));
		ATF_CHECK_EQ(2 * i + 1, CSB_GET(h, pad[7]));
		guest_transmit(h, 1);
		ATF_CHECK_EQ(i, host_raised(h));
	}
	/* A request after the cause was read is for the next frame. */
	CSB_SET(h, pad[0], 0);
	CSB_SET(h, guest_need_txkick, 0);
	guest_transmit(h, 1);
	CSB_SET(h, pad[0], 1);
	host_wr(h, E82545_ICS, E82545_ICR_LSC);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_LSC) != 0);
	h->nraised = 0;
	CSB_SET(h, guest_need_txkick, 9);
	recheck(h);
	ATF_CHECK_EQ(0, host_raised(h));
	guest_transmit(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(9, CSB_GET(h, pad[7]));
}

HOST_TEST(rx_kick, up(), "A guest_rdt that is seen after the host stalled")
{
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		guest_inject(h, NRXD + 4);
		ATF_CHECK_EQ(5, host_rx_pending(h));
		ATF_CHECK_EQ(i, host_counter(h, E82545_C_RX_STALL));
		ATF_CHECK_EQ(NRXD - 1, guest_take(h, 100));
		/* As guest_give(), without a kick. */
		CSB_SET(h, guest_rdt, h->rxtail);
		host_run(h);
		ATF_CHECK_EQ(5, host_rx_pending(h));
		recheck(h);
		ATF_CHECK_EQ(0, host_rx_pending(h));
		ATF_CHECK_EQ(5, guest_take(h, 100));
		guest_give(h);
		host_advance(h, HOUR_NS);
		host_run(h);
	}
	/* host_up() wrote RDT once. */
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_KICK));
}

HOST_TEST(rx_numbers, up(), "The same of a request with a number, the first: "
    "one interrupt, whether or not ICR was read")
{
	unsigned int i;

	for (i = 1; i <= 3; i++) {
		CSB_SET(h, pad[0], 0);
		guest_inject(h, 2);
		guest_return(h, 1);
		CSB_SET(h, pad[0], 1);
		CSB_SET(h, guest_need_rxkick, 2 * i + 1);
		host_run(h);
		ATF_CHECK_EQ(i - 1, host_raised(h));
		recheck(h);
		ATF_CHECK_EQ(i, host_raised(h));
		ATF_CHECK_EQ(2 * i + 1, CSB_GET(h, pad[8]));
		guest_inject(h, 1);
		ATF_CHECK_EQ(i, host_raised(h));
		CSB_SET(h, guest_need_rxkick, 0);
		ATF_CHECK_EQ(2, guest_take(h, 100));
		guest_give(h);
		host_advance(h, HOUR_NS);
		ATF_CHECK_EQ(i, host_raised(h));
	}
}

TEST(rx_nowhere, "No frames are left in a ring whose RDH is not in it")
{
	struct host *h;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		h = up();
		guest_inject(h, NRXD - 1);
		host_rxd(h, NRXD - 1)->status = E82545_RXD_DD;
		host_wr(h, E82545_RDH, NRXD - i);
		recheck(h);
		ATF_CHECK_EQ(i, host_raised(h));
		host_destroy(h);
	}
}

HOST_TEST(rx_polled, up(), "No RX interrupt for a guest that polls, however "
    "slowly")
{
	unsigned int i;

	guest_inject(h, NRXD - 1);
	for (i = 1; i < NRXD; i++) {
		guest_return(h, 1);
		recheck(h);
	}
	/* All are taken: no more checks. */
	ATF_CHECK_EQ(0, h->timer_ns);
	ATF_CHECK_EQ(0, host_raised(h));
	/* One that comes just before the host checks is not overdue. */
	guest_inject(h, 1);
	host_advance(h, RECHECK_NS - 1);
	guest_return(h, 1);
	guest_inject(h, 1);
	host_advance(h, RECHECK_NS);
	ATF_CHECK_EQ(0, host_raised(h));
	host_advance(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
}

static void
post_at_second(struct host *h)
{
	if (++nmaps != 2)
		return;
	h->map_hook = NULL;
	ATF_CHECK_EQ(1, guest_take(h, 1));
	CSB_SET(h, guest_rdt, h->rxtail);
}

HOST_TEST(rx_polled_late, up(), "No RX interrupt for a guest that posts while "
    "the host checks")
{
	guest_inject(h, 2);
	/* The first check maps the block, then the last frame's descriptor. */
	nmaps = 0;
	h->map_hook = post_at_second;
	host_advance(h, RECHECK_NS);
	ATF_CHECK_EQ(2, nmaps);
	ATF_CHECK_EQ(0, host_raised(h));
	/* The next check finds that it has not posted more since. */
	recheck(h);
	ATF_CHECK_EQ(1, host_raised(h));
}

HOST_TEST(numbers, up(), "A guest that numbers its requests has the barriers: "
    "no check is due when the host sleeps, stalls or suppresses an interrupt")
{
	unsigned int i;

	CSB_SET(h, pad[0], 1);
	for (i = 0; i < 10; i++) {
		guest_transmit(h, 1);
		ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
		guest_inject(h, NRXD);
		ATF_CHECK_EQ(1, host_rx_pending(h));
		guest_return(h, NRXD - 1);
		host_run(h);
		ATF_CHECK_EQ(0, host_rx_pending(h));
		guest_return(h, 1);
	}
	ATF_CHECK_EQ(10, host_counter(h, E82545_C_RX_STALL));
	ATF_CHECK(host_counter(h, E82545_C_INTR_SAVED) >= 20);
	ATF_CHECK_EQ(0, h->ntimer);
}

static void
count_map(struct host *h __unused)
{
	nmaps++;
}

/* A frame in each direction, and what `change' does before the host checks. */
static struct host *
changed(void (*change)(struct host *))
{
	struct host *h = up();

	guest_post(h, 1);
	guest_inject(h, 1);
	change(h);
	host_run(h);
	nmaps = 0;
	h->map_hook = count_map;
	return (h);
}

static void
bus_off(struct host *h)
{
	e82545_bus_master(h->dev, false);
}

static void
rings_off(struct host *h)
{
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_TCTL, 0);
}

static void
do_reset(struct host *h)
{
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
}

static void
take_block(struct host *h)
{
	guest_place(h, 0);
}

TEST(untouched, "With the bus or the rings off, after a reset, or without a "
    "block, the host does not access guest memory")
{
	static void (*const change[])(struct host *) = {
		bus_off, rings_off, do_reset, take_block
	};
	struct host *h;
	unsigned int i;

	for (i = 0; i < nitems(change); i++) {
		h = changed(change[i]);
		h->nkick = h->nready = 0;
		host_advance(h, HOUR_NS);
		ATF_CHECK_EQ_MSG(0, h->nkick, "%u", i);
		ATF_CHECK_EQ_MSG(0, h->nready, "%u", i);
		ATF_CHECK_EQ_MSG(0, nmaps, "%u", i);
		ATF_CHECK_EQ_MSG(0, h->timer_ns, "%u", i);
		ATF_CHECK_EQ_MSG(0, host_raised(h), "%u", i);
		host_destroy(h);
	}
}

/* One frame, whose interrupt is suppressed. */
static void
send_one(struct host *h)
{
	guest_transmit(h, 1);
}

TEST(tx_missed, "Transmit's check wakes the host only if guest_tdt was stored, "
    "in either mode, since the host went to sleep")
{
	struct host *h = up();
	uint64_t gpa;

	/* Nothing has changed. */
	send_one(h);
	h->nkick = 0;
	host_advance(h, RECHECK_NS);
	ATF_CHECK_EQ(0, h->nkick);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
	/* The mode has gone off. */
	send_one(h);
	guest_store(h, 1);
	CSB_SET(h, guest_csb_on, 0);
	h->nkick = 0;
	host_advance(h, RECHECK_NS);
	ATF_CHECK_EQ(1, h->nkick);
	host_run(h);
	ATF_CHECK_EQ(3, host_sent(h));
	host_destroy(h);

	/* The host polls. */
	h = guest_up(64, NRXD, 2048, 1000);
	host_advance(h, HOUR_NS);
	host_run(h);
	CSB_SET(h, guest_need_txkick, 0);
	guest_post(h, 1);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(h->now_ns + RECHECK_NS, h->timer_ns);
	ATF_CHECK(!guest_post(h, 1));
	h->nkick = 0;
	host_advance(h, RECHECK_NS);
	ATF_CHECK_EQ(0, h->nkick);
	host_destroy(h);

	/* No kick since the block was placed: guest_tdt may be old. */
	h = host_create_csb(HOST_RAM);
	host_up(h, 64, NRXD, 2048);
	gpa = guest_alloc(h);
	guest_frames(h, 3);
	host_tx_go(h);
	CSB_SET(h, guest_tdt, 5);
	CSB_SET(h, guest_csb_on, 1);
	guest_place(h, gpa);
	host_run(h);
	ATF_CHECK_EQ(3, host_sent(h));
	ATF_CHECK(h->timer_ns != 0);
	h->nkick = 0;
	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(0, h->nkick);
	ATF_CHECK_EQ(3, host_sent(h));
	host_destroy(h);
}

TEST(held, "Each check raises its own causes, once, and leaves the others")
{
	struct host *h = up();
	const uint32_t *held = &h->dev->csb.held;

	send_one(h);
	guest_inject(h, 1);
	ATF_CHECK_EQ(E82545_ICR_RXT0, *held & E82545_ICR_RXT0);
	ATF_CHECK_EQ(E82545_ICR_TXDW, *held & E82545_ICR_TXDW);
	recheck(h);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(0, *held & E82545_ICR_RXT0);
	ATF_CHECK_EQ(E82545_ICR_TXDW, *held & E82545_ICR_TXDW);
	ATF_CHECK_EQ(0, *held & ~(E82545_ICR_TXDW | E82545_ICR_TXQE));
	host_rd(h, E82545_ICR);
	ATF_CHECK_EQ(0, *held);
	host_destroy(h);

	h = up();
	held = &h->dev->csb.held;
	send_one(h);
	host_advance(h, RECHECK_NS - 1);
	guest_inject(h, 1);
	CSB_SET(h, guest_need_txkick, 1);
	host_advance(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0, *held);
	host_destroy(h);
}

HOST_TEST(held_rx, up(), "A suppressed RX cause raises no TX interrupt")
{
	CSB_SET(h, guest_need_txkick, 1);
	send_one(h);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
	host_advance(h, 1);
	guest_inject(h, 1);
	guest_return(h, 1);
	/* Transmit's check, then receive's. */
	recheck(h);
	recheck(h);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
}

HOST_TEST(unmasked, up(), "A write to IMS raises suppressed RX causes once, "
    "and only if it unmasks one")
{
	const uint32_t *held = &h->dev->csb.held;

	host_wr(h, E82545_IMS, E82545_ICR_TXDW);
	send_one(h);
	guest_inject(h, 1);
	ATF_CHECK_EQ(0, host_raised(h));
	host_wr(h, E82545_IMS, E82545_ICR_RXT0);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_TXDW, *held & E82545_ICR_TXDW);
	ATF_CHECK_EQ(0, *held & ~(E82545_ICR_TXDW | E82545_ICR_TXQE));
}

static void
tx_locked(struct host *h)
{
	nmaps++;
	ATF_CHECK(!e82545_trylock(&h->dev->tx_mtx));
}

HOST_TEST(each, up(), "Each direction's check maps the block once, with its "
    "lock, when it is due")
{
	/* Transmit's, without receive's. */
	send_one(h);
	h->map_hook = tx_locked;
	nmaps = 0;
	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(1, nmaps);

	/* Receive's, a nanosecond before transmit's. */
	h->map_hook = NULL;
	guest_inject(h, 1);
	guest_return(h, 1);
	host_advance(h, 1);
	send_one(h);
	CSB_SET(h, guest_need_txkick, 1);
	h->nready = 0;
	host_advance(h, RECHECK_NS - 1);
	ATF_CHECK_EQ(0, host_raised(h));
	ATF_CHECK_EQ(0, h->nready);
	host_advance(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
	host_rd(h, E82545_ICR);
	CSB_SET(h, guest_need_txkick, 0);

	/* Receive's alone: transmit does not check. */
	guest_inject(h, 1);
	guest_return(h, 1);
	CSB_SET(h, guest_tdt, h->txtail + 1);
	h->nkick = 0;
	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(0, h->nkick);
	CSB_SET(h, guest_tdt, h->txtail);

	/* Both at once. */
	send_one(h);
	guest_inject(h, 1);
	host_advance(h, RECHECK_NS - 1);
	guest_store(h, 1);
	h->nkick = 0;
	host_advance(h, 1);
	ATF_CHECK_EQ(1, h->nkick);
	ATF_CHECK_EQ(2, host_raised(h));
}

HOST_TEST(moderation, up(), "A timer that moderates interrupts does not make "
    "the host check")
{
	host_wr(h, E82545_ITR, 1000);
	host_wr(h, E82545_ICS, E82545_ICR_LSC);
	host_rd(h, E82545_ICR);
	host_wr(h, E82545_ICS, E82545_ICR_LSC);
	ATF_REQUIRE(h->timer_ns != 0);
	nmaps = 0;
	h->map_hook = count_map;
	h->ntimer = 0;
	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(0, h->ntimer);
	ATF_CHECK_EQ(0, nmaps);
}

/* The CSB where it is, or at another address; or a reset. */
static void
begin_again(struct host *h, bool reset)
{
	if (reset) {
		host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		CSB_SET(h, guest_tdt, 0);
		host_up(h, 64, NRXD, 2048);
		host_wr(h, E82545_IMS, E82545_ICR_TXDW | E82545_ICR_RXT0);
		host_rd(h, E82545_ICR);
	} else
		guest_move(h);
	CSB_SET(h, guest_need_rxkick, 0);
	host_run(h);
}

TEST(again, "A reset, and a write to CSBAL, end the checks that are due")
{
	struct host *h;
	int reset;

	for (reset = 0; reset < 2; reset++) {
		h = up();
		send_one(h);
		begin_again(h, reset);
		ATF_CHECK_EQ(0, h->dev->csb.held);
		h->nraised = 0;
		host_advance(h, RECHECK_NS / 2);
		send_one(h);
		CSB_SET(h, guest_need_txkick, 1);
		host_advance(h, RECHECK_NS / 2);
		ATF_CHECK_EQ_MSG(0, host_raised(h), "%d", reset);
		host_advance(h, RECHECK_NS / 2);
		ATF_CHECK_EQ_MSG(1, host_raised(h), "%d", reset);
		host_destroy(h);
	}
}

TEST_PROGRAM
