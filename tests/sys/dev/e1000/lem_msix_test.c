/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver on an 82574L with MSI-X: it reads no register for an interrupt, in
 * any mode, writes one, and loses none.
 */

#include <sys/param.h>

#include <atf-c.h>

#include "lem_fake.h"
#include "lem_test.h"

#define	IMS_RX	0x01100004	/* RXQ0, OTHER, LSC */
#define	IMS_TX	0x00400000	/* TXQ0 */

static const uint32_t modes[] = {
	0, LEM_MODE_SC, LEM_MODE_LAZY, LEM_MODE_CSB,
	LEM_MODE_CSB | LEM_MODE_LAZY
};

static void
inject(struct lem_test *t, unsigned int n)
{
	test_inject(t, n, 60);
	host_run(t->h);
}

static uint64_t
reads(const struct lem_test *t)
{
	return (t->g.lc.lc_os.reads);
}

TEST(access, "An interrupt for frames costs no read and one write, in each "
    "mode")
{
	struct lem_test *t;
	uint64_t nreads;
	unsigned int i;

	for (i = 0; i < nitems(modes); i++) {
		t = test_create_msix(modes[i]);
		nreads = reads(t);
		inject(t, 3);
		ATF_CHECK_EQ(1, test_raised(t));
		(void)test_exits(t);
		ATF_CHECK(lem_intr(&t->g.lc));
		ATF_CHECK_EQ(0, test_exits(t));
		(void)lem_tx_clean(&t->g.lc);
		ATF_CHECK_EQ(3, lem_rx(&t->g.lc, 8));
		/* Those of the ring's tail, without the CSB. */
		(void)test_exits(t);
		ATF_CHECK(!lem_intr_enable(&t->g.lc));
		ATF_CHECK_EQ(1, test_exits(t));
		ATF_CHECK_EQ(nreads, reads(t));
		ATF_CHECK_EQ(0, test_raised(t));
		/* The next one comes as well. */
		inject(t, 1);
		ATF_CHECK_EQ(1, test_raised(t));
		test_settle(t);
		ATF_CHECK_EQ(4, t->g.received);
		test_destroy(t);
	}
}

LEM_TEST(registers, fake_create(false), "The registers of interrupts, with "
    "their values")
{
	static const struct access unmask[] = { { 0xd0, IMS_RX | IMS_TX } };
	static const struct access lazy[] = { { 0xd0, IMS_RX } };
	static const struct access wait[] = { { 0xd0, IMS_TX } };
	static const struct access request[] = { { 0xc8, 0x00500000 } };
	struct lem_core *lc = &t->g.lc;
	unsigned int eiac = 0, eitr = 0, i, ivar = 0;

	lc->lc_irq = LEM_IRQ_MSIX;
	lc->lc_itr_256ns = 77;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	for (i = 0; i < fake.nwrote; i++) {
		ATF_CHECK(fake.wrote[i].reg != E82545_ITR);
		eiac += fake.wrote[i].reg == 0xdc &&
		    fake.wrote[i].value == 0x01500000;
		ivar += fake.wrote[i].reg == 0xe4 &&
		    fake.wrote[i].value == 0x00088888;
		eitr += fake.wrote[i].reg == 0xe8 && fake.wrote[i].value == 77;
	}
	ATF_CHECK_EQ(1, eiac);
	ATF_CHECK_EQ(1, ivar);
	ATF_CHECK_EQ(1, eitr);
	fake.nwrote = 0;
	ATF_CHECK(!lem_intr_enable(lc));
	check_wrote("unmask", unmask, 1);
	ATF_CHECK(!lem_intr_enable(lc));
	check_wrote("unmasked", NULL, 0);
	fake.nicr = 0;
	ATF_CHECK(lem_intr(lc));
	check_wrote("interrupt", NULL, 0);
	ATF_CHECK(!lem_intr_enable(lc));
	check_wrote("unmask again", unmask, 1);
	ATF_CHECK_EQ(0, fake.nicr);
	lem_intr_request(lc);
	check_wrote("request", request, 1);
	lc->lc_mode = LEM_MODE_LAZY;
	ATF_CHECK(lem_intr(lc));
	ATF_CHECK(!lem_intr_enable(lc));
	check_wrote("lazy", lazy, 1);
	lem_tx_wait(lc, TEST_RING);
	check_wrote("wait", wait, 1);
	lem_stop(lc);
}

TEST_PROGRAM
