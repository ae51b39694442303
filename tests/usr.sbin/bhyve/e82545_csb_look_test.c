/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB and drivers without barriers: what such a driver stored before it
 * looked at the block, the host may see only after it looked itself.  Then
 * neither kicks, and the host must look again.
 *
 * Here the guest's stores become visible late because they are made late.
 */

#include <sys/param.h>

#include "e82545_guest.h"

#define	LOOK_NS		10000000	/* when the host looks again */
#define	HOUR_NS		3600000000000
#define	NRXD		16

static void
inject(struct host *h, unsigned int n)
{
	uint8_t frame[60];

	for (; n > 0; n--) {
		host_make_frame(frame, sizeof(frame), host_mac, n);
		host_inject(h, frame, sizeof(frame), 1);
	}
	host_run(h);
}

static unsigned int
take(struct host *h, unsigned int max)
{
	uint8_t buf[2048];
	unsigned int n;

	for (n = 0; n < max && host_rx_take(h, buf, sizeof(buf), NULL) > 0; n++)
		;
	return (n);
}

/* A guest that wants no interrupts; nothing is left to look at. */
static struct host *
up(struct paravirt_csb **csbp)
{
	struct host *h = guest_up(64, NRXD, 2048, 1, csbp);

	CSB_SET(*csbp, guest_need_rxkick, 0);
	CSB_SET(*csbp, guest_need_txkick, 0);
	host_advance(h, HOUR_NS);
	host_run(h);
	ATF_REQUIRE_EQ(0, h->timer_ns);
	h->ntimer = h->nkick = h->nready = 0;
	return (h);
}

/* Time passes until the host looks, and not a nanosecond more. */
static void
look(struct host *h)
{
	const uint64_t now_ns = h->now_ns;

	ATF_REQUIRE(h->timer_ns > now_ns);
	ATF_CHECK(h->timer_ns - now_ns <= LOOK_NS);
	host_advance(h, h->timer_ns - now_ns - 1);
	host_run(h);
	host_advance(h, 1);
	host_run(h);
}

TEST(tx_kick, "A guest_tdt that is seen after the host went to sleep")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);
	unsigned int i;

	for (i = 0; i < 100; i++) {
		guest_frames(h, 1);
		ATF_CHECK(guest_send(h, csb));
		host_run(h);
		ATF_CHECK_EQ(1, CSB_GET(csb, host_need_txkick));
		guest_frames(h, 1);
		CSB_SET(csb, guest_tdt, h->txtail);
		host_run(h);
		ATF_CHECK_EQ(2 * i + 1, host_counter(h, E82545_C_TX_FRAME));
		look(h);
		ATF_CHECK_EQ(2 * i + 2, host_counter(h, E82545_C_TX_FRAME));
		host_advance(h, HOUR_NS);
		host_run(h);
		ATF_CHECK_EQ(1, CSB_GET(csb, host_need_txkick));
	}
	host_destroy(h);
}

TEST(tx_interrupt, "A guest_need_txkick that is seen after the interrupt was "
    "suppressed")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);
	unsigned int i;

	for (i = 1; i <= 3; i++) {
		guest_frames(h, 1);
		guest_send(h, csb);
		host_run(h);
		CSB_SET(csb, guest_need_txkick, i);
		ATF_CHECK_EQ(i - 1, host_raised(h));
		look(h);
		ATF_CHECK_EQ(i, host_raised(h));
		ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
		CSB_SET(csb, guest_need_txkick, 0);
		host_advance(h, HOUR_NS);
		ATF_CHECK_EQ(i, host_raised(h));
	}
	host_destroy(h);
}

TEST(tx_polled, "No TX interrupt for a guest that never asks for one, nor for "
    "one that has read the cause")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);

	guest_frames(h, 1);
	guest_send(h, csb);
	host_run(h);
	look(h);
	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(0, host_raised(h));
	guest_frames(h, 1);
	guest_send(h, csb);
	host_run(h);
	host_wr(h, E82545_ICS, E82545_ICR_LSC);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_LSC) != 0);
	CSB_SET(csb, guest_need_txkick, 1);
	look(h);
	ATF_CHECK_EQ(1, host_raised(h));
	host_destroy(h);
}

TEST(rx_kick, "A guest_rdt that is seen after the host stalled")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		inject(h, NRXD + 4);
		ATF_CHECK_EQ(5, host_rx_pending(h));
		ATF_CHECK_EQ(i, host_counter(h, E82545_C_RX_STALL));
		ATF_CHECK_EQ(NRXD - 1, take(h, 100));
		/* As guest_give(), without a kick. */
		CSB_SET(csb, guest_rdt, h->rxtail);
		host_run(h);
		ATF_CHECK_EQ(5, host_rx_pending(h));
		look(h);
		ATF_CHECK_EQ(0, host_rx_pending(h));
		ATF_CHECK_EQ(5, take(h, 100));
		guest_give(h, csb);
		host_advance(h, HOUR_NS);
		host_run(h);
	}
	/* host_up() wrote RDT once. */
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_KICK));
	host_destroy(h);
}

TEST(rx_interrupt, "A guest_need_rxkick that is seen after the interrupt was "
    "suppressed")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		inject(h, 2);
		ATF_CHECK_EQ(1, take(h, 1));
		guest_give(h, csb);
		CSB_SET(csb, guest_need_rxkick, 1);
		host_run(h);
		ATF_CHECK_EQ(i - 1, host_raised(h));
		look(h);
		ATF_CHECK_EQ(i, host_raised(h));
		ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR));
		CSB_SET(csb, guest_need_rxkick, 0);
		ATF_CHECK_EQ(1, take(h, 100));
		guest_give(h, csb);
		host_advance(h, HOUR_NS);
		ATF_CHECK_EQ(i, host_raised(h));
	}
	host_destroy(h);
}

TEST(rx_forgotten, "A guest_need_rxkick that stays 0 while frames are left")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);

	inject(h, 1);
	ATF_CHECK_EQ(0, host_raised(h));
	look(h);
	ATF_CHECK_EQ(1, host_raised(h));
	/* Once. */
	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR));
	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(1, host_raised(h));
	host_destroy(h);
}

TEST(rx_off, "The mode goes off while frames are left")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);

	inject(h, 3);
	ATF_CHECK_EQ(1, take(h, 1));
	guest_give(h, csb);
	CSB_SET(csb, guest_csb_on, 0);
	look(h);
	ATF_CHECK_EQ(1, host_raised(h));
	host_destroy(h);
}

TEST(rx_polled, "No RX interrupt for a guest that polls, however slowly")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);
	unsigned int i;

	inject(h, NRXD - 1);
	for (i = 1; i < NRXD; i++) {
		ATF_CHECK_EQ(1, take(h, 1));
		guest_give(h, csb);
		look(h);
	}
	/* All are taken: no more looks. */
	ATF_CHECK_EQ(0, h->timer_ns);
	ATF_CHECK_EQ(0, host_raised(h));
	/* One that comes just before the host looks is not overdue. */
	inject(h, 1);
	host_advance(h, LOOK_NS - 1);
	ATF_CHECK_EQ(1, take(h, 1));
	guest_give(h, csb);
	inject(h, 1);
	host_advance(h, LOOK_NS);
	ATF_CHECK_EQ(0, host_raised(h));
	host_advance(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
	host_destroy(h);
}

TEST(apart, "Transmit's look does not make receive's early")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);

	guest_frames(h, 1);
	guest_send(h, csb);
	host_run(h);
	host_advance(h, LOOK_NS - 1);
	inject(h, 1);
	host_advance(h, 1);
	ATF_CHECK_EQ(0, host_raised(h));
	look(h);
	ATF_CHECK_EQ(1, host_raised(h));
	host_destroy(h);
}

TEST(idle, "The timer is set once for each direction in 10 ms, and an idle "
    "guest causes no work")
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		guest_frames(h, 1);
		guest_send(h, csb);
		inject(h, 1);
		ATF_CHECK_EQ(1, take(h, 1));
		guest_give(h, csb);
		host_advance(h, 1000);
	}
	ATF_CHECK_EQ(1, h->ntimer);
	h->nkick = h->nready = 0;
	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(0, h->timer_ns);
	ATF_CHECK(h->ntimer <= 2);
	ATF_CHECK_EQ(0, h->nkick);
	ATF_CHECK_EQ(0, h->nready);
	ATF_CHECK_EQ(0, host_raised(h));
	host_destroy(h);
}

TEST(without, "Without the CSB no look is due")
{
	struct host *h = host_create(HOST_RAM);

	host_up(h, 64, NRXD, 2048);
	host_wr(h, E82545_IMS, E82545_ICR_ALL);
	guest_frames(h, 3);
	host_tx_go(h);
	inject(h, NRXD + 1);
	ATF_CHECK_EQ(0, h->ntimer);
	host_destroy(h);
}

static unsigned int nmaps;

static void
count_map(struct host *h __unused)
{
	nmaps++;
}

/* A frame in each direction, and what `change' does before the host looks. */
static struct host *
changed(void (*change)(struct host *))
{
	struct paravirt_csb *csb;
	struct host *h = up(&csb);

	guest_frames(h, 1);
	guest_send(h, csb);
	inject(h, 1);
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
    "block, the host does not look at guest memory")
{
	static void (*const change[])(struct host *) = {
		bus_off, rings_off, do_reset, take_block
	};
	struct host *h;
	unsigned int i;

	for (i = 0; i < nitems(change); i++) {
		h = changed(change[i]);
		host_advance(h, HOUR_NS);
		ATF_CHECK_EQ_MSG(0, nmaps, "%u", i);
		ATF_CHECK_EQ_MSG(0, h->timer_ns, "%u", i);
		ATF_CHECK_EQ_MSG(0, host_raised(h), "%u", i);
		host_destroy(h);
	}
}

static void
pause_model(struct host *h)
{
	e82545_pause(h->dev);
}

TEST(paused, "A look that is due in a pause comes after it")
{
	struct host *h = changed(pause_model);

	host_advance(h, HOUR_NS);
	ATF_CHECK_EQ(0, nmaps);
	e82545_resume(h->dev);
	host_advance(h, 0);
	ATF_CHECK(nmaps > 0);
	ATF_CHECK_EQ(1, host_raised(h));
	host_destroy(h);
}

TEST(restored, "A restored model looks")
{
	struct host *h = changed(pause_model), *to = host_create_csb(HOST_RAM);
	uint8_t buf[65536];
	size_t size;

	size = e82545_snapshot_size(h->dev);
	ATF_REQUIRE(size <= sizeof(buf));
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(h->dev, buf, size));
	memcpy(to->ram, h->ram, HOST_RAM);
	to->now_ns = 1;
	e82545_pause(to->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(to->dev, buf, size));
	e82545_resume(to->dev);
	host_run(to);
	/* The first look finds out what the guest has posted. */
	host_advance(to, 0);
	ATF_CHECK_EQ(0, host_raised(to));
	look(to);
	ATF_CHECK_EQ(1, host_raised(to));
	host_destroy(to);
	host_destroy(h);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, tx_kick);
	ATF_TP_ADD_TC(tp, tx_interrupt);
	ATF_TP_ADD_TC(tp, tx_polled);
	ATF_TP_ADD_TC(tp, rx_kick);
	ATF_TP_ADD_TC(tp, rx_interrupt);
	ATF_TP_ADD_TC(tp, rx_forgotten);
	ATF_TP_ADD_TC(tp, rx_off);
	ATF_TP_ADD_TC(tp, rx_polled);
	ATF_TP_ADD_TC(tp, apart);
	ATF_TP_ADD_TC(tp, idle);
	ATF_TP_ADD_TC(tp, without);
	ATF_TP_ADD_TC(tp, untouched);
	ATF_TP_ADD_TC(tp, paused);
	ATF_TP_ADD_TC(tp, restored);

	return (atf_no_error());
}
