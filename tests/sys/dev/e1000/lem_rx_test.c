/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's receive ring and the model, one step at a time: frames received,
 * register accesses and interrupts in each mode.
 */


#include <atf-c.h>

#include "lem_test.h"

LEM_TEST(rx_base, test_create(0, 2048, 1500), "Without a mode, each batch "
    "takes an interrupt and a write to RDT")
{
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		test_inject(t, 1, 60);
		test_settle(t);
	}
	ATF_CHECK_EQ(1000, test_raised(t));
	ATF_CHECK_EQ(1000 * (1 + INTR_EXITS), test_exits(t));
	test_inject(t, 50, 60);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(1 + INTR_EXITS, test_exits(t));
	test_check_received(t);
}

LEM_TEST(rx_poll, test_create(LEM_MODE_POLL, 2048, 1500), "Polling takes no "
    "interrupt, and a write to RDT for an eighth of the ring")
{
	unsigned int i;

	/* With new buffers, and with the same ones. */
	for (i = 0; i < 4 * TEST_RING; i++) {
		t->g.lc.lc_os.rx_keep = i >= 2 * TEST_RING;
		test_inject(t, 1, 60);
		host_run(t->h);
		ATF_CHECK_EQ(1, lem_rx(&t->g.lc, 8));
		ATF_CHECK_EQ(0, lem_rx(&t->g.lc, 8));
	}
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(4 * 8, test_exits(t));
	test_check_received(t);
	/* Bounded work. */
	test_inject(t, 20, 60);
	host_run(t->h);
	ATF_CHECK_EQ(8, lem_rx(&t->g.lc, 8));
	ATF_CHECK_EQ(8, lem_rx(&t->g.lc, 8));
	ATF_CHECK_EQ(4, lem_rx(&t->g.lc, 8));
	test_check_received(t);
}

TEST_PROGRAM
