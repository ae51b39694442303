/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * MSI with the CSB: no interrupt is lost.  If the adapter interrupts for each
 * request once, ICR is not read; else it is, after the rings were served.  The
 * model sends a message when its line is asserted.
 */

#include <atf-c.h>

#include "lem_test.h"

static struct lem_test *
create(void)
{
	struct lem_test *t;

	t = test_create(LEM_MODE_CSB, 2048, 1500);
	/* The adapter does not know that requests have numbers. */
	t->g.lc.lc_irq = LEM_IRQ_MSI;
	return (t);
}

static struct lem_test *
create_numbers(void)
{
	struct lem_test *t;

	t = test_create_down(2048);
	t->g.lc.lc_irq = LEM_IRQ_MSI;
	ATF_REQUIRE_EQ(0, lem_set_mode(&t->g.lc, LEM_MODE_CSB));
	ATF_REQUIRE_EQ(0, guest_up(&t->g, 1500));
	lem_intr_enable(&t->g.lc);
	test_settle(t);
	(void)test_raised(t);
	(void)test_exits(t);
	return (t);
}

static void
inject(struct lem_test *t, unsigned int n)
{
	test_inject(t, n, 60);
	host_run(t->h);
}

/* Frames are received before any register is read; ICR is read last. */
LEM_TEST(causes_last, create(), "If the adapter knows no numbers, the "
    "interrupt's only exit comes after the frames are received")
{
	inject(t, 3);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK(lem_intr(&t->g.lc));
	ATF_CHECK_EQ(3, lem_rx(&t->g.lc, 8));
	ATF_CHECK_EQ(0, test_exits(t));
	ATF_CHECK(lem_intr_enable(&t->g.lc));
	ATF_CHECK_EQ(1, test_exits(t));
	ATF_CHECK_EQ(0, lem_rx(&t->g.lc, 8));
	ATF_CHECK(!lem_intr_enable(&t->g.lc));
	ATF_CHECK_EQ(0, test_exits(t));
	ATF_CHECK_EQ(3, t->g.received);
}

/* Receive until interrupts are enabled. */
static void
serve(struct lem_test *t)
{
	do {
		lem_tx_clean(&t->g.lc);
		while (lem_rx(&t->g.lc, 8) == 8)
			continue;
	} while (lem_intr_enable(&t->g.lc));
}

LEM_TEST(numbers, create_numbers(), "An interrupt for a request takes no exit, "
    "and none is sent for the same request again")
{
	unsigned int i;

	for (i = 1; i <= 5; i++) {
		inject(t, 2);
		ATF_CHECK_EQ(1, test_raised(t));
		inject(t, 1);
		ATF_CHECK_EQ(0, test_raised(t));
		ATF_CHECK(lem_intr(&t->g.lc));
		serve(t);
		ATF_CHECK_EQ(0, test_exits(t));
		ATF_CHECK_EQ(3 * i, t->g.received);
	}
	/* Sent packets. */
	for (i = 0; i < 3; i++) {
		while (guest_send(&t->g, test_peer, 60) == 0)
			continue;
		lem_tx_flush(&t->g.lc);
		host_run(t->h);
		ATF_CHECK_EQ(1, test_raised(t));
		(void)test_exits(t);
		ATF_CHECK(lem_intr(&t->g.lc));
		serve(t);
		ATF_CHECK_EQ(0, test_exits(t));
	}
	ATF_CHECK_EQ(0, t->g.missing + t->g.wrong);
}

LEM_TEST(numbers_link, create_numbers(), "An interrupt for no request has ICR "
    "read; a link change that comes with one for a request is left to "
    "lem_link()")
{
	e82545_link(t->h->dev, false);
	host_run(t->h);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK(lem_intr(&t->g.lc));
	ATF_CHECK(t->g.lc.lc_link);
	serve(t);
	ATF_CHECK(!t->g.lc.lc_link);
	e82545_link(t->h->dev, true);
	inject(t, 1);
	ATF_CHECK(test_raised(t) > 0);
	test_settle(t);
	inject(t, 1);
	ATF_CHECK_EQ(1, test_raised(t));
	e82545_link(t->h->dev, false);
	host_run(t->h);
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK(lem_intr(&t->g.lc));
	serve(t);
	lem_link(&t->g.lc);
	ATF_CHECK(!t->g.lc.lc_link);
}

LEM_TEST(hold, create(), "lem_intr_hold() suppresses the CSB's interrupts "
    "until lem_intr_enable(), without an exit")
{
	(void)test_exits(t);
	lem_intr_hold(&t->g.lc);
	ATF_CHECK_EQ(0, test_exits(t));
	inject(t, 3);
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(3, lem_rx(&t->g.lc, 8));
	/* A frame that comes before interrupts are enabled is not forgotten. */
	inject(t, 1);
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK(lem_intr_enable(&t->g.lc));
	ATF_CHECK_EQ(1, lem_rx(&t->g.lc, 8));
	while (lem_intr_enable(&t->g.lc))
		continue;
	inject(t, 1);
	ATF_CHECK_EQ(1, test_raised(t));
	test_settle(t);
	/* Without the CSB it does nothing. */
	ATF_CHECK_EQ(0, lem_set_mode(&t->g.lc, 0));
	test_settle(t);
	(void)test_raised(t);
	lem_intr_hold(&t->g.lc);
	inject(t, 1);
	ATF_CHECK_EQ(1, test_raised(t));
	test_settle(t);
	ATF_CHECK_EQ(6, t->g.received);
}

TEST(causes_first, "Without MSI or without the CSB, ICR is read before the "
    "frames are received")
{
	struct lem_test *t;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		t = test_create(i == 0 ? LEM_MODE_CSB : 0, 2048, 1500);
		t->g.lc.lc_irq = i == 2 ? LEM_IRQ_MSI : LEM_IRQ_LINE;
		inject(t, 1);
		ATF_CHECK_EQ(1, test_raised(t));
		ATF_CHECK(lem_intr(&t->g.lc));
		/* Without the CSB it masks the causes, too. */
		ATF_CHECK_EQ(i == 0 ? 1 : 2, test_exits(t));
		ATF_CHECK(!host_line(t->h));
		ATF_CHECK_EQ(0, t->g.lc.lc_unread);
		/* Nothing is left to read. */
		ATF_CHECK(!lem_intr(&t->g.lc));
		ATF_CHECK_EQ(1, lem_rx(&t->g.lc, 8));
		ATF_CHECK(!lem_intr_enable(&t->g.lc));
		test_settle(t);
		ATF_CHECK_EQ(1, t->g.received);
		test_destroy(t);
	}
}

TEST_PROGRAM
