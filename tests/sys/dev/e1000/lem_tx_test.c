/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's transmit ring and the model, one step at a time: frames sent,
 * register accesses and interrupts in each mode.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

LEM_TEST(packets, test_create(0, 2048, 1500), "Invalid packets are refused")
{
	struct lem_seg seg[LEM_TX_MAXSEGS + 1];
	struct lem_packet lp;
	unsigned int i;

	for (i = 0; i <= LEM_TX_MAXSEGS; i++) {
		seg[i].ls_addr = t->g.txbuf;
		seg[i].ls_len = 60;
	}
	memset(&lp, 0, sizeof(lp));
	lp.lpk_segs = seg;
#define	REFUSED()							\
	ATF_CHECK_EQ(EINVAL, lem_tx(&t->g.lc, &lp))
	REFUSED();
	lp.lpk_nsegs = LEM_TX_MAXSEGS + 1;
	REFUSED();
	lp.lpk_nsegs = 1;
	seg[0].ls_len = 13;
	REFUSED();
	seg[0].ls_len = 16384;
	REFUSED();
	lp.lpk_nsegs = 2;
	seg[0].ls_len = 60;
	seg[1].ls_len = 0;
	REFUSED();
	lp.lpk_nsegs = 1;
	lp.lpk_flags = 0x40;
	REFUSED();
	lp.lpk_flags = LEM_TX_IPSUM;
	REFUSED();
	lp.lpk_l2len = 14;
	lp.lpk_l3len = 20;
	lp.lpk_l4len = 20;
	lp.lpk_flags = LEM_TX_TSO4;
	REFUSED();
	lp.lpk_mss = 100;
	lp.lpk_flags = LEM_TX_TSO4 | LEM_TX_TSO6;
	REFUSED();
	lp.lpk_flags = LEM_TX_TCPSUM | LEM_TX_UDPSUM;
	REFUSED();
	lp.lpk_l3len = 230;
	lp.lpk_flags = LEM_TX_TCPSUM;
	REFUSED();
	ATF_CHECK_EQ(0, t->g.lc.lc_counter[LEM_C_TX_PACKET]);
	ATF_CHECK(lem_tx_idle(&t->g.lc));
}

LEM_TEST(tx_base, test_create(0, 2048, 1500), "Without a mode, each frame "
    "takes a write to TDT, each batch an interrupt")
{
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		test_send(t, 1, 60);
		test_settle(t);
	}
	ATF_CHECK_EQ(1000, test_raised(t));
	ATF_CHECK_EQ(1000 * (1 + INTR_EXITS), test_exits(t));
	ATF_CHECK_EQ(1000, t->g.lc.lc_os.tx_done);
	ATF_CHECK_EQ(1000, t->g.lc.lc_counter[LEM_C_TX_KICK]);
	ATF_CHECK_EQ(1000, t->g.lc.lc_counter[LEM_C_TX_CLEAN]);
	test_send(t, 100, 60);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(100 + INTR_EXITS, test_exits(t));
	test_check_sent(t, 60);
}

LEM_TEST(tx_combining, test_create(LEM_MODE_SC, 2048, 1500), "Send combining: "
    "two writes to TDT for all frames between two interrupts")
{
	unsigned int i;

	for (i = 0; i < 50; i++) {
		test_send(t, 21, 60);
		/*
		 * One is posted; its interrupt posts 20, whose interrupt finds
		 * none.
		 */
		test_settle(t);
	}
	ATF_CHECK_EQ(100, test_raised(t));
	ATF_CHECK_EQ(50 * (2 + 2 * INTR_EXITS), test_exits(t));
	ATF_CHECK_EQ(1000, t->g.lc.lc_counter[LEM_C_TX_COMBINED]);
	ATF_CHECK_EQ(50, t->g.lc.lc_counter[LEM_C_TX_FLUSH]);
	ATF_CHECK_EQ(100, t->g.lc.lc_counter[LEM_C_TX_KICK]);
	ATF_CHECK_EQ(950, t->g.lc.lc_counter[LEM_C_TX_KICK_SAVED]);
	test_check_sent(t, 60);
}

/* The adapter is done before the write to TDT returns. */
static void
run_at_once(void *arg, uint32_t reg, uint32_t value)
{
	host_wr(arg, reg, value);
	if (reg == E82545_TDT)
		host_run(arg);
}

LEM_TEST(tx_combining_done_at_once, test_create(LEM_MODE_SC, 2048, 1500),
    "Send combining leaves nothing behind when lem_tx() itself finds all "
    "posted packets completed")
{
	unsigned int i;

	t->g.lc.lc_os.reg_write = run_at_once;
	for (i = 0; i < TEST_RING; i++)
		ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	ATF_CHECK_EQ(1, t->g.lc.lc_counter[LEM_C_TX_KICK]);
	/* More than a batch, deferred. */
	test_send(t, TEST_RING / 2, 60);
	ATF_CHECK_EQ(1, t->g.lc.lc_counter[LEM_C_TX_KICK]);
	test_settle(t);
	test_check_sent(t, 60);
}

LEM_TEST(tx_lazy, test_create(LEM_MODE_LAZY, 2048, 1500), "Lazy completion: no "
    "interrupt until the ring is short, then one")
{
	unsigned int i;

	for (i = 0; i < 4 * TEST_RING; i++) {
		test_send(t, 1, 60);
		test_settle(t);
	}
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(4 * TEST_RING, test_exits(t));
	(void)lem_tx_clean(&t->g.lc);
	ATF_CHECK(lem_tx_idle(&t->g.lc));
	/*
	 * While the model does not run, the ring is short, and IMS is written
	 * once.
	 */
	host_sent_clear(t->h);
	t->g.sent = t->g.lc.lc_os.tx_done = 0;
	test_send(t, TEST_RING - 1, 60);
	ATF_CHECK_EQ(TEST_RING - 1, test_exits(t));
	ATF_CHECK_EQ(ENOBUFS, guest_send(&t->g, test_peer, 60));
	ATF_CHECK_EQ(1, test_exits(t));
	ATF_CHECK_EQ(1, t->g.lc.lc_counter[LEM_C_TX_FULL]);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(INTR_EXITS, test_exits(t));
	ATF_CHECK_EQ(TEST_RING - 1, lem_tx_avail(&t->g.lc));
	/* And masked again. */
	test_send(t, 1, 60);
	test_settle(t);
	ATF_CHECK_EQ(0, test_raised(t));
	test_check_sent(t, 60);
}

/* Reports in a mode, whose interrupt has `exits' exits. */
static void
check_reports(struct lem_test *t, uint64_t exits)
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i;

	/* Nobody has asked. */
	test_send(t, 40, 60);
	test_settle(t);
	ATF_CHECK_EQ(0, test_raised(t));
	(void)lem_tx_clean(lc);
	/* A packet raises one interrupt, also if two reports are asked for. */
	for (i = 0; i < 3; i++) {
		test_send(t, 1, 60);
		(void)test_exits(t);
		lem_tx_report(lc);
		lem_tx_report(lc);
		ATF_CHECK_EQ((lc->lc_mode & LEM_MODE_CSB) == 0,
		    test_exits(t));
		test_settle(t);
		ATF_CHECK_EQ(1, test_raised(t));
		ATF_CHECK_EQ(exits, test_exits(t));
		ATF_CHECK(lem_tx_idle(lc));
	}
	/* Of many, too, until somebody asks again. */
	test_send(t, 100, 60);
	lem_tx_report(lc);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK(lem_tx_idle(lc));
	test_send(t, 1, 60);
	test_settle(t);
	ATF_CHECK_EQ(0, test_raised(t));
	(void)lem_tx_clean(lc);
	/* What has been sent before needs none. */
	test_send(t, 5, 60);
	host_run(t->h);
	(void)test_exits(t);
	lem_tx_report(lc);
	ATF_CHECK(lem_tx_idle(lc));
	lem_tx_report(lc);
	test_settle(t);
	ATF_CHECK_EQ((lc->lc_mode & LEM_MODE_CSB) == 0, test_raised(t));
	(void)test_exits(t);
	/* What is not posted does not count. */
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	lem_tx_report(lc);
	ATF_CHECK_EQ(0, test_exits(t));
	lem_tx_flush(lc);
	test_settle(t);
	ATF_CHECK_EQ(0, test_raised(t));
	test_check_sent(t, 60);
}

TEST(tx_report, "A report is one interrupt when packets are sent for which "
    "somebody waits; a mode with an interrupt for each batch needs none")
{
	struct lem_test *t;

	t = test_create(LEM_MODE_LAZY, 2048, 1500);
	check_reports(t, INTR_EXITS);
	test_destroy(t);
	t = test_create(LEM_MODE_CSB, 2048, 1500);
	check_reports(t, INTR_EXITS_CSB);
	test_destroy(t);
	t = test_create(LEM_MODE_CSB | LEM_MODE_LAZY, 2048, 1500);
	check_reports(t, INTR_EXITS_CSB);
	test_destroy(t);
	t = test_create(0, 2048, 1500);
	test_send(t, 1, 60);
	(void)test_exits(t);
	lem_tx_report(&t->g.lc);
	ATF_CHECK_EQ(0, test_exits(t));
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	test_destroy(t);
}

TEST(tx_report_at, "With the CSB a report is due at the end of a batch, with "
    "three quarters of what is posted; a packet more does not change that")
{
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);
	struct lem_core *lc = &t->g.lc;
	unsigned int i, j;

	/* Over the end of the ring, too: batches of three packets. */
	for (i = 0; i < 20; i++) {
		ATF_REQUIRE(lem_tx_idle(lc));
		for (j = 0; j < 60; j++) {
			ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
			if (j % 3 == 2)
				lem_tx_flush(lc);
		}
		lem_tx_report(lc);
		ATF_CHECK_EQ((lc->lc_tx_head + 45) % TEST_RING,
		    lc->lc_csb->guest_txkick_at);
		test_send(t, 30, 60);
		lem_tx_report(lc);
		ATF_CHECK_EQ((lc->lc_tx_head + 45) % TEST_RING,
		    lc->lc_csb->guest_txkick_at);
		test_settle(t);
		ATF_CHECK_EQ(1, test_raised(t));
		ATF_CHECK_EQ(NET_PARAVIRT_NONE, lc->lc_csb->guest_txkick_at);
	}
	/* Short of descriptors, an interrupt comes anyway. */
	while (guest_send(&t->g, test_peer, 60) == 0)
		continue;
	lem_tx_report(lc);
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, lc->lc_csb->guest_txkick_at);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK(lem_tx_idle(lc));
	test_destroy(t);
}

LEM_TEST(tx_poll, test_create(LEM_MODE_POLL, 2048, 1500), "Polling: no "
    "interrupt, one register access for each flush")
{
	unsigned int i, j;

	for (i = 0; i < 20; i++) {
		for (j = 0; j < 50; j++)
			ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
		lem_tx_flush(&t->g.lc);
		host_run(t->h);
		ATF_CHECK_EQ(50, lem_tx_clean(&t->g.lc));
	}
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(20, test_exits(t));
	/* Short: no interrupt is asked for either. */
	for (i = 0; guest_send(&t->g, test_peer, 60) == 0; i++)
		continue;
	ATF_CHECK_EQ(TEST_RING - 1, i);
	host_run(t->h);
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(TEST_RING - 1, lem_tx_clean(&t->g.lc));
	test_check_sent(t, 60);
}

/* Lazy completion makes no difference to a host that polls. */
static const uint32_t sc_polls[] = {
	LEM_MODE_POLL | LEM_MODE_SC,
	LEM_MODE_POLL | LEM_MODE_SC | LEM_MODE_LAZY
};

TEST(tx_poll_combining, "Polling and send combining: one write to TDT for all "
    "frames between two polls, none without frames")
{
	unsigned int i, j;

	for (i = 0; i < nitems(sc_polls); i++) {
		struct lem_test *t = test_create(sc_polls[i], 2048, 1500);

		for (j = 0; j < 20; j++) {
			test_send(t, 50, 60);
			host_run(t->h);
			ATF_CHECK_EQ(50 * j, host_sent(t->h));
			ATF_CHECK_EQ(0, test_exits(t));
			/* It posts what waits, the next one reclaims that. */
			(void)lem_tx_clean(&t->g.lc);
			ATF_CHECK_EQ(1, test_exits(t));
			host_run(t->h);
			ATF_CHECK_EQ(50, lem_tx_clean(&t->g.lc));
			ATF_CHECK_EQ(0, test_exits(t));
		}
		ATF_CHECK_EQ(20, t->g.lc.lc_counter[LEM_C_TX_KICK]);
		ATF_CHECK_EQ(980, t->g.lc.lc_counter[LEM_C_TX_KICK_SAVED]);
		ATF_CHECK_EQ(1000, t->g.lc.lc_counter[LEM_C_TX_COMBINED]);
		ATF_CHECK_EQ(20, t->g.lc.lc_counter[LEM_C_TX_FLUSH]);
		/* So it does while the adapter is slow. */
		for (j = 0; j < 4; j++) {
			test_send(t, 20, 60);
			ATF_CHECK_EQ(0, lem_tx_clean(&t->g.lc));
			ATF_CHECK_EQ(1, test_exits(t));
		}
		host_run(t->h);
		ATF_CHECK_EQ(80, lem_tx_clean(&t->g.lc));
		ATF_CHECK_EQ(0, test_raised(t));
		test_check_sent(t, 60);
		test_destroy(t);
	}
}

static void
check_short(uint32_t mode)
{
	struct lem_test *t = test_create(mode, 2048, 1500);
	unsigned int i;

	for (i = 1; i <= 3; i++) {
		test_send(t, TEST_RING / 4 - 1, 60);
		ATF_CHECK_EQ(0, test_exits(t));
		test_send(t, 1, 60);
		ATF_CHECK_EQ(1, test_exits(t));
		ATF_CHECK_EQ(i * TEST_RING / 4, t->g.lc.lc_tx_posted);
	}
	/* The rest of the ring, to the last descriptor. */
	test_send(t, TEST_RING / 4 - 1, 60);
	ATF_CHECK_EQ(0, test_exits(t));
	ATF_CHECK_EQ(0, lem_tx_avail(&t->g.lc));
	ATF_CHECK_EQ(ENOBUFS, guest_send(&t->g, test_peer, 60));
	ATF_CHECK_EQ(1, test_exits(t));
	host_run(t->h);
	ATF_CHECK_EQ(TEST_RING - 1, lem_tx_clean(&t->g.lc));
	ATF_CHECK_EQ(0, test_raised(t));
	/* A host that waits for descriptors. */
	test_send(t, 10, 60);
	ATF_CHECK_EQ(0, test_exits(t));
	lem_tx_wait(&t->g.lc, TEST_RING - 1);
	ATF_CHECK_EQ(1, test_exits(t));
	host_run(t->h);
	test_check_sent(t, 60);
	test_destroy(t);
}

TEST(tx_poll_combining_short, "Polling and send combining: frames that fill a "
    "quarter of the ring do not wait; nor do any if the ring is full")
{
	unsigned int i;

	for (i = 0; i < nitems(sc_polls); i++)
		check_short(sc_polls[i]);
}

LEM_TEST(tx_csb, test_create(LEM_MODE_CSB, 2048, 1500), "CSB: one kick wakes "
    "the host, which then finds frames in memory")
{
	unsigned int i;

	test_send(t, 1, 60);
	ATF_CHECK_EQ(1, test_exits(t));
	/* The host sees the frame, and polls. */
	while (host_sent(t->h) < 1)
		(void)e82545_tx(t->h->dev);
	for (i = 0; i < 1000; i++) {
		test_send(t, 1, 60);
		ATF_CHECK(e82545_tx(t->h->dev));
	}
	ATF_CHECK_EQ(0, test_exits(t));
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(1, t->g.lc.lc_counter[LEM_C_TX_KICK]);
	ATF_CHECK_EQ(1000, t->g.lc.lc_counter[LEM_C_TX_KICK_SAVED]);
	/* When the host sleeps, the next frame takes a kick. */
	while (e82545_tx(t->h->dev))
		continue;
	test_send(t, 1, 60);
	ATF_CHECK_EQ(1, test_exits(t));
	test_settle(t);
	test_check_sent(t, 60);
}

TEST_PROGRAM
