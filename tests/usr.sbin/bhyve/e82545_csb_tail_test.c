/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which index becomes the tail: the CSB's, the register's, or one kept aside.
 */

#include <sys/param.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"

#define	HIGH	((3ULL << 32) + HOST_RAM)	/* a gpa above 4 GB */

/* Guest memory is at HIGH, too. */
static void *
high_map(void *arg, uint64_t gpa, size_t len, unsigned int access)
{
	return (host_ops.eo_map(arg, gpa >= HIGH ? gpa - HIGH : gpa, len,
	    access));
}

/* The host polls the transmit ring at HIGH; `n' frames are sent. */
static struct host *
high_up(unsigned int n)
{
	static struct e82545_ops ops;
	struct host *h = guest_up(64, 8, 2048, 1000);

	ops = host_ops;
	ops.eo_map = high_map;
	h->dev->ops = &ops;
	/* Not aligned to more than a descriptor. */
	h->txring = host_alloc(h, 65 * 16, 32) + 16;
	host_wr(h, E82545_TDBAL, HOST_RAM + h->txring);
	host_wr(h, E82545_TDBAH, 3);
	ATF_REQUIRE(guest_post(h, n));
	ATF_REQUIRE_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_REQUIRE_EQ(n, host_sent(h));
	return (h);
}

TEST(high_ring, "DD makes guest_tdt old with the mode off, also in a ring "
    "above 4 GB")
{
	struct host *h = high_up(5);

	/* The guest has not taken this frame, but the one before. */
	ATF_CHECK(host_tx_done(h, 2));
	host_txd(h, 1)->legacy.status = 0;
	CSB_SET(h, guest_csb_on, 0);
	CSB_SET(h, guest_tdt, 3);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(5, host_sent(h));
	host_destroy(h);

	h = high_up(5);
	guest_frames(h, 2);
	CSB_SET(h, guest_csb_on, 0);
	CSB_SET(h, guest_tdt, h->txtail);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(7, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(7, host_sent(h));
	host_destroy(h);
}

HOST_TEST(no_ring, high_up(5), "guest_tdt counts with the mode off if the ring "
    "is outside guest memory, and its frames are sent when it is not")
{
	guest_frames(h, 2);
	host_wr(h, E82545_TDBAH, 4);
	CSB_SET(h, guest_csb_on, 0);
	CSB_SET(h, guest_tdt, h->txtail);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(5, host_sent(h));
	host_wr(h, E82545_TDBAH, 3);
	host_run(h);
	ATF_CHECK_EQ(7, host_sent(h));
}

HOST_TEST(kept_once, guest_awake(1, 1000), "A TDT that was written counts once")
{
	uint64_t saved = host_counter(h, E82545_C_TX_KICK_SAVED);

	guest_store(h, 1);
	host_tx_go(h);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(2, host_sent(h));
	ATF_CHECK_EQ(saved, host_counter(h, E82545_C_TX_KICK_SAVED));
	ATF_CHECK(!guest_post(h, 1));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(3, host_sent(h));
	ATF_CHECK_EQ(saved + 1, host_counter(h, E82545_C_TX_KICK_SAVED));
}

HOST_TEST(first_invalid, guest_awake(1, 1000), "TDT counts if guest_tdt is the "
    "first index outside the ring")
{
	guest_frames(h, 2);
	CSB_SET(h, guest_tdt, 64);
	host_tx_go(h);
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(3, host_sent(h));
	/* It is not looked at again, and does not keep the host awake. */
	CSB_SET(h, host_txcycles_lim, 0);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_BAD));
}

HOST_TEST(bus_off, guest_awake(1, 1000), "A write to CSBAL with the bus off "
    "makes the kept TDT count, and accesses no memory")
{
	guest_frames(h, 2);
	host_tx_go(h);
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDT));
	e82545_bus_master(h->dev, false);
	guest_place(h, 0);
	ATF_CHECK_EQ(3, host_rd(h, E82545_TDT));
	e82545_bus_master(h->dev, true);
	host_run(h);
	ATF_CHECK_EQ(3, host_sent(h));
}


/* The guest posts, turns the mode off, posts more and writes TDT. */
static void
turn_off_and_kick(struct host *h)
{
	h->map_hook = NULL;
	guest_store(h, 1);
	CSB_SET(h, guest_csb_on, 0);
	guest_frames(h, 2);
	host_tx_go(h);
}

HOST_TEST(off_then_kick, guest_awake(1, 1000), "When the mode goes off within "
    "a batch, TDT counts if it is farther than guest_tdt")
{
	h->map_hook = turn_off_and_kick;
	(void)e82545_tx(h->dev);
	host_run(h);
	ATF_CHECK_EQ(NULL, h->map_hook);
	ATF_CHECK_EQ(4, host_sent(h));
	ATF_CHECK_EQ(4, host_rd(h, E82545_TDT));
}

/* Start the transmit ring from 0; no batch comes in between. */
static void
restart(struct host *h)
{
	host_clear(h, E82545_TCTL, E82545_TCTL_EN);
	host_wr(h, E82545_TDH, 0);
	host_wr(h, E82545_TDT, 0);
	host_set(h, E82545_TCTL, E82545_TCTL_EN);
	h->txtail = 0;
}

TEST(restarted, "With a kick the index counts though guest_tdt is what it was "
    "before the ring was restarted, which does not count")
{
	struct host *h = guest_awake(5, 1000);

	restart(h);
	guest_frames(h, 5);
	host_tx_go(h);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(10, host_sent(h));
	host_destroy(h);

	/* The host has seen the mode off; the guest turns it on again. */
	h = guest_awake(5, 1000);
	CSB_SET(h, guest_csb_on, 0);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	restart(h);
	CSB_SET(h, guest_csb_on, 1);
	guest_frames(h, 2);
	host_tx_go(h);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(7, host_sent(h));
	ATF_CHECK_EQ(2, host_rd(h, E82545_TDT));
	host_destroy(h);
}

/*
 * guest_tdt comes round to what the host has seen, after a lap with the mode
 * off, when the host only looks at TDT.
 */

/* The host sleeps, and has seen guest_tdt 5 and then the mode off; TDT is 3. */
static struct host *
lap_asleep(void)
{
	struct host *h = guest_up(64, 16, 2048, 0);
	unsigned int i;

	ATF_REQUIRE(guest_post(h, 5));
	host_run(h);
	CSB_SET(h, guest_csb_on, 0);
	for (i = 0; i < 2; i++) {
		ATF_REQUIRE(guest_post(h, 31));
		host_run(h);
	}
	ATF_REQUIRE_EQ(67, host_sent(h));
	ATF_REQUIRE_EQ(1, CSB_GET(h, host_need_txkick));
	CSB_SET(h, guest_csb_on, 1);
	return (h);
}

HOST_TEST(lap_asleep, lap_asleep(), "A lap later, the same guest_tdt counts "
    "when the host wakes")
{
	ATF_REQUIRE(guest_post(h, 1));
	/* A guest may clear the flag when it kicks. */
	CSB_SET(h, host_need_txkick, 0);
	ATF_REQUIRE(!guest_post(h, 1));
	host_run(h);
	ATF_CHECK_EQ(69, host_sent(h));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
}

HOST_TEST(lap_unseen, lap_asleep(), "A lap later, the same guest_tdt is found "
    "after 10 ms if the guest has left out the kick")
{
	guest_store(h, 2);
	host_advance(h, 10000000);
	host_run(h);
	ATF_CHECK_EQ(69, host_sent(h));
}

static unsigned int lap_frames;

/*
 * When the batch's descriptors are done, the guest turns the mode on again and
 * sends more, without a kick.
 */
static void
turn_on_and_send(struct host *h)
{
	h->intr_hook = NULL;
	CSB_SET(h, guest_tdt, h->txtail);
	CSB_SET(h, guest_csb_on, 1);
	ATF_CHECK_EQ(0, CSB_GET(h, host_need_txkick));
	guest_store(h, lap_frames);
}

/*
 * The host polls, and has seen guest_tdt 5 and the mode off; TDT was 10, and
 * `n' frames are sent after that.
 */
static struct host *
lap_awake(unsigned int n)
{
	struct host *h = guest_awake(5, 1000);

	CSB_SET(h, guest_csb_on, 0);
	guest_frames(h, 5);
	host_tx_go(h);
	host_rd(h, E82545_ICR);
	h->intr_hook = turn_on_and_send;
	lap_frames = n;
	(void)e82545_tx(h->dev);
	ATF_REQUIRE_EQ(NULL, h->intr_hook);
	ATF_REQUIRE_EQ(10, host_sent(h));
	return (h);
}

HOST_TEST(lap_awake, lap_awake(58), "A lap later, the same guest_tdt counts "
    "when the mode goes on and the host still polls")
{
	guest_store(h, 1);
	ATF_REQUIRE_EQ(5, h->txtail);
	host_run(h);
	ATF_CHECK_EQ(69, host_sent(h));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
}

/* The same, and the guest turns the mode off again. */
static void
turn_on_send_and_off(struct host *h)
{
	turn_on_and_send(h);
	CSB_SET(h, guest_csb_on, 0);
}

HOST_TEST(lap_off, guest_awake(5, 1000), "A lap later, the same guest_tdt "
    "counts if the mode has gone on and off again within a batch, and the "
    "guest has left out the kick")
{
	CSB_SET(h, guest_csb_on, 0);
	guest_frames(h, 5);
	host_tx_go(h);
	host_rd(h, E82545_ICR);
	h->intr_hook = turn_on_send_and_off;
	lap_frames = 59;
	(void)e82545_tx(h->dev);
	ATF_REQUIRE_EQ(NULL, h->intr_hook);
	ATF_REQUIRE_EQ(5, h->txtail);
	host_run(h);
	ATF_CHECK_EQ(69, host_sent(h));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
}

HOST_TEST(behind_off, guest_awake(5, 1000), "With the mode off, TDT behind the "
    "head does not count: one that was posted, or that of an earlier frame")
{
	CSB_SET(h, guest_csb_on, 0);
	(void)e82545_tx(h->dev);
	host_wr(h, E82545_TDT, 3);
	host_run(h);
	ATF_CHECK_EQ(5, host_sent(h));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	guest_frames(h, 2);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(7, host_sent(h));
}

HOST_TEST(cleared_flag, guest_up(64, 16, 2048, 0), "A kick that finds the mode "
    "off sets the flag that the guest has cleared, and sees what was posted "
    "because of it")
{
	/* It clears the flag, kicks, and changes the mode twice. */
	guest_store(h, 1);
	CSB_SET(h, host_need_txkick, 0);
	host_tx_go(h);
	CSB_SET(h, guest_csb_on, 0);
	h->intr_hook = turn_on_and_send;
	lap_frames = 3;
	host_run(h);
	ATF_CHECK_EQ(NULL, h->intr_hook);
	ATF_CHECK_EQ(4, host_sent(h));
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
}

HOST_TEST(lap_falling_asleep, lap_awake(59), "A lap later, the same guest_tdt "
    "keeps the host awake if the mode has gone on")
{
	ATF_REQUIRE_EQ(5, h->txtail);
	host_run(h);
	ATF_CHECK_EQ(69, host_sent(h));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
}

/* Queue `n' frames without RS: DD is never set. */
static void
frames_without_rs(struct host *h, unsigned int n)
{
	const uint64_t gpa = host_alloc(h, 60, 1);

	host_make_frame(host_mem(h, gpa, 60), 60, host_mac, 0);
	for (; n > 0; n--)
		host_tx_legacy(h, gpa, 60, E82545_TXD_EOP | E82545_TXD_IFCS);
}

HOST_TEST(late_without_rs, guest_up(64, 16, 2048, 1000), "With the mode on, "
    "TDT does not count if RS does not tell whether it is old, or if it is "
    "invalid")
{
	frames_without_rs(h, 5);
	ATF_REQUIRE(guest_send(h));
	(void)e82545_tx(h->dev);
	ATF_REQUIRE_EQ(5, host_sent(h));
	host_wr(h, E82545_TDT, 3);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	host_wr(h, E82545_TDT, 64);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(5, host_sent(h));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_BAD));
}

HOST_TEST(unused, guest_up(64, 16, 2048, 0), "With the mode off since the "
    "start, guest_tdt does not count")
{
	CSB_SET(h, guest_csb_on, 0);
	CSB_SET(h, guest_tdt, 9);
	guest_frames(h, 3);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(3, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(9, CSB_GET(h, guest_tdt));
}

HOST_TEST(same_tdt, guest_up(64, 16, 2048, 1000), "The same TDT counts again, "
    "after a lap with the mode on")
{
	CSB_SET(h, guest_csb_on, 0);
	guest_frames(h, 5);
	host_tx_go(h);
	host_run(h);
	CSB_SET(h, guest_csb_on, 1);
	host_tx_go(h);
	(void)e82545_tx(h->dev);
	ATF_REQUIRE(!guest_post(h, 60));
	(void)e82545_tx(h->dev);
	ATF_REQUIRE_EQ(65, host_sent(h));
	CSB_SET(h, guest_csb_on, 0);
	guest_frames(h, 4);
	ATF_REQUIRE_EQ(5, h->txtail);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(69, host_sent(h));
}

HOST_TEST(first_again, guest_up(64, 16, 2048, 1000), "The first TDT, written "
    "again late, posts nothing")
{
	restart(h);
	host_wr(h, E82545_TDT, 0);
	(void)e82545_tx(h->dev);
	ATF_REQUIRE(!guest_post(h, 2));
	(void)e82545_tx(h->dev);
	ATF_REQUIRE_EQ(2, host_sent(h));
	CSB_SET(h, guest_csb_on, 0);
	host_wr(h, E82545_TDT, 0);
	host_run(h);
	ATF_CHECK_EQ(2, host_sent(h));
	ATF_CHECK_EQ(2, host_rd(h, E82545_TDT));
	/* With the transmitter off it is stored. */
	host_clear(h, E82545_TCTL, E82545_TCTL_EN);
	host_wr(h, E82545_TDT, 0);
	ATF_CHECK_EQ(0, host_rd(h, E82545_TDT));
}

HOST_TEST(restarted_without_rs, guest_up(64, 16, 2048, 0), "With a kick the "
    "index counts, too, if it is the same as before the restart, and RS is not "
    "set")
{
	frames_without_rs(h, 5);
	guest_send(h);
	host_run(h);
	restart(h);
	frames_without_rs(h, 5);
	ATF_CHECK(guest_send(h));
	host_run(h);
	ATF_CHECK_EQ(10, host_sent(h));
}

HOST_TEST(unchanged_off, guest_up(64, 16, 2048, 1000), "With the mode off the "
    "same guest_tdt does not count, where DD does not tell whether it is old")
{
	frames_without_rs(h, 5);
	ATF_REQUIRE(guest_send(h));
	ATF_REQUIRE_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	CSB_SET(h, guest_csb_on, 0);
	frames_without_rs(h, 5);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(10, host_sent(h));
	ATF_CHECK_EQ(10, host_rd(h, E82545_TDT));
}

HOST_TEST(unchanged_behind, guest_awake(5, 1000), "With the mode off the "
    "same guest_tdt does not keep the host awake if TDT is farther")
{
	unsigned int i;

	CSB_SET(h, guest_csb_on, 0);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	restart(h);
	CSB_SET(h, guest_csb_on, 1);
	CSB_SET(h, host_txcycles_lim, 0);
	/* A packet without its end. */
	for (i = 0; i < 10; i++)
		host_tx_legacy(h, host_alloc(h, 60, 1), 60, E82545_TXD_RS);
	host_tx_go(h);
	for (i = 0; i < 10 && e82545_tx(h->dev) != E82545_TX_IDLE; i++)
		;
	ATF_CHECK(i < 10);
	ATF_CHECK_EQ(10, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
}

/* The guest starts the receive ring, which is empty. */
static void
start_rx(struct host *h)
{
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_wr(h, E82545_RDT, 0);
	host_wr(h, E82545_RDH, 0);
	host_set(h, E82545_RCTL, E82545_RCTL_EN);
	ATF_REQUIRE_EQ(0, host_rd(h, E82545_RDT));
}

TEST(starts, "The first RDT after a start is stored, whatever guest_tdt does, "
    "unless guest_rdt has changed before")
{
	struct host *h = guest_awake(1, 1000);
	uint8_t frame[60];

	start_rx(h);
	ATF_CHECK(!guest_post(h, 2));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(3, host_sent(h));
	host_wr(h, E82545_RDT, 5);
	ATF_CHECK_EQ(5, host_rd(h, E82545_RDT));
	host_destroy(h);

	h = guest_awake(1, 1000);
	start_rx(h);
	CSB_SET(h, guest_rdt, 5);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(5, host_rd(h, E82545_RDT));
	host_wr(h, E82545_RDT, 3);
	ATF_CHECK_EQ(5, host_rd(h, E82545_RDT));
	host_destroy(h);
}

/* Within a transmit batch, guest_rdt becomes an index of an earlier lap. */
static void
store_old_rdt(struct host *h)
{
	h->tx_hook = NULL;
	CSB_SET(h, guest_rdt, 3);
	host_wr(h, E82545_RDT, 15);
}

HOST_TEST(old_rdt, guest_awake(1, 1000), "DD makes guest_rdt old also while "
    "frames are sent")
{
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 4; i++)
		rx_receive(h, frame, sizeof(frame));
	h->tx_hook = store_old_rdt;
	ATF_CHECK(!guest_post(h, 1));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(NULL, h->tx_hook);
	ATF_CHECK_EQ(15, host_rd(h, E82545_RDT));
}

TEST_PROGRAM
