/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's core with an adapter that records each register written: what
 * it writes to start, to stop and to change the mode, in which order, and what
 * it stores in the CSB.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "lem_fake.h"
#include "test.h"

#define	LINK_UP	{ E82545_CTRL, 0x9 | E82545_CTRL_SLU | E82545_CTRL_ASDE }
#define	RESET								\
	{ E82545_IMC, 0xffffffff }, { E82545_RCTL, 0 },			\
	{ E82545_TCTL, 0x8 }, { E82545_CSBAH, 0 }, { E82545_CSBAL, 0 },	\
	{ E82545_CTRL, FAKE_CTRL | E82545_CTRL_RST },			\
	{ E82545_IMC, 0xffffffff }, LINK_UP
#define	RING(base, dma, n)						\
	{ (base), (uint32_t)(dma) }, { (base) + 4, (dma) >> 32 },	\
	{ (base) + 8, (n) * 16 }, { (base) + 16, 0 }, { (base) + 24, 0 }
#define	START(rctl, tdba, rdba)						\
	{ E82545_RAL(0), 0x35241302 }, { E82545_RAH(0), 0x80009746 },	\
	LINK_UP,							\
	{ E82545_ITR, 77 }, RING(E82545_TDBAL, tdba, TEST_RING),	\
	{ E82545_TIPG, 0x00602008 }, { E82545_TCTL, 0x000400fa },	\
	RING(E82545_RDBAL, rdba, TEST_RING), { E82545_RXCSUM, 0x700 },	\
	{ E82545_RCTL, rctl }, { E82545_RDT, TEST_RING - 1 }

LEM_TEST(start, fake_create(true), "The registers written to start and to "
    "stop, with the CSB")
{
	static const struct access start[] = {
		RESET, START(0x04008002, FAKE_TXRING, FAKE_RXRING),
		{ E82545_CSBAH, FAKE_CSB >> 32 },
		{ E82545_CSBAL, (uint32_t)FAKE_CSB }
	};
	static const struct access stop[] = {
		{ E82545_IMC, 0xffffffff }, { E82545_RCTL, 0 },
		{ E82545_TCTL, 0x8 }, { E82545_CSBAH, 0 },
		{ E82545_CSBAL, 0 },
		{ E82545_CTRL, 0x9 | E82545_CTRL_SLU | E82545_CTRL_ASDE |
		    E82545_CTRL_RST },
		{ E82545_IMC, 0xffffffff }, LINK_UP
	};
	struct lem_core *lc = &t->g.lc;

	lc->lc_itr_256ns = 77;
	memset(lc->lc_csb, 0xa5, sizeof(*lc->lc_csb));
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	check_wrote("start", start, nitems(start));
	ATF_CHECK(fake.nreset > 2);
	ATF_CHECK_EQ(E82545_MTA_COUNT, fake.nmta);
	/* Causes from before are cleared. */
	ATF_CHECK_EQ(1, fake.nicr);
	ATF_CHECK(lc->lc_link);
	/* The CSB is off, as the mode says, and complete. */
	ATF_CHECK_EQ(0, lc->lc_csb->guest_csb_on);
	ATF_CHECK_EQ(0, lc->lc_csb->guest_tdt);
	ATF_CHECK_EQ(TEST_RING - 1, lc->lc_csb->guest_rdt);
	ATF_CHECK_EQ(0, lc->lc_csb->guest_need_txkick);
	ATF_CHECK_EQ(1, lc->lc_csb->guest_need_rxkick);
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, lc->lc_csb->guest_txkick_at);
	ATF_CHECK_EQ(1024, lc->lc_csb->host_txcycles_lim);
	ATF_CHECK_EQ(1, lc->lc_csb->host_need_txkick);
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, lc->lc_csb->host_rxkick_at);

	lc->lc_csb->guest_csb_on = 1;
	lem_stop(lc);
	check_wrote("stop", stop, nitems(stop));
	ATF_CHECK_EQ(0, lc->lc_csb->guest_csb_on);
	ATF_CHECK(!lc->lc_running);
	/* Stopped already. */
	lem_stop(lc);
	check_wrote("stopped", NULL, 0);
}

LEM_TEST(start_plain, fake_create(false), "The registers written without the "
    "CSB, and for long frames in longer buffers; the link is down")
{
	static const struct access start[] = {
		{ E82545_IMC, 0xffffffff }, { E82545_RCTL, 0 },
		{ E82545_TCTL, 0x8 },
		{ E82545_CTRL, FAKE_CTRL | E82545_CTRL_RST },
		{ E82545_IMC, 0xffffffff }, LINK_UP,
		START(0x0603802a & ~0x8, FAKE_TXRING, FAKE_RXRING)
	};
	struct lem_core *lc = &t->g.lc;

	lc->lc_itr_256ns = 77;
	lc->lc_rx_bufsize = 4096;
	fake.status = 0;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 9000));
	check_wrote("start", start, nitems(start));
	ATF_CHECK(!lc->lc_link);
	lem_stop(lc);
	lc->lc_rx_bufsize = 2048;
}

TEST(modes, "The registers written to change the mode")
{
#define	TAILS	{ E82545_TDT, 0 }, { E82545_RDT, TEST_RING - 1 }
#define	MASK	{ E82545_IMC, 0xffffffff }
#define	WAKE	{ E82545_ICS, E82545_ICR_RXT0 | E82545_ICR_TXDW }
#define	RX_LSC	(E82545_ICR_RXT0 | E82545_ICR_RXDMT0 | E82545_ICR_RXO |	\
		E82545_ICR_LSC)
	static const struct {
		uint32_t	mode;
		uint32_t	on;		/* interrupts, before */
		struct access	want[6];
		unsigned int	n;
	} t[] = {
		/* Nothing changes. */
		{ 0, 0, { { 0, 0 } }, 0 },
		{ LEM_MODE_SC, 0, { MASK, WAKE }, 2 },
		{ LEM_MODE_CSB, 0, { TAILS, MASK, WAKE }, 4 },
		{ LEM_MODE_CSB | LEM_MODE_SC, 0, { MASK, WAKE }, 2 },
		{ LEM_MODE_CSB | LEM_MODE_POLL, 0, { TAILS, MASK }, 3 },
		{ LEM_MODE_CSB, 0, { TAILS, MASK, WAKE }, 4 },
		{ LEM_MODE_LAZY, 0, { TAILS, MASK, WAKE }, 4 },
		{ LEM_MODE_POLL, 0, { MASK }, 1 },
		{ LEM_MODE_POLL | LEM_MODE_SC, 0, { MASK }, 1 },
		{ 0, 0, { MASK, WAKE }, 2 },
		{ LEM_MODE_LAZY, 1,
		    { MASK, { E82545_IMS, RX_LSC }, WAKE }, 3 },
		{ LEM_MODE_CSB, 1, { TAILS, MASK,
		    { E82545_IMS, RX_LSC | E82545_ICR_TXDW }, WAKE }, 5 },
		{ LEM_MODE_CSB | LEM_MODE_LAZY, 1, { MASK,
		    { E82545_IMS, RX_LSC | E82545_ICR_TXDW }, WAKE }, 3 },
		{ 0, 1, { TAILS, MASK,
		    { E82545_IMS, RX_LSC | E82545_ICR_TXDW }, WAKE }, 5 },
	};
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	const struct paravirt_csb *csb = lc->lc_csb;
	unsigned int i;
	char when[20];

	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	fake.nwrote = 0;
	for (i = 0; i < nitems(t); i++) {
		lc->lc_intr_on = t[i].on;
		ATF_REQUIRE_EQ(0, lem_set_mode(lc, t[i].mode));
		snprintf(when, sizeof(when), "mode %u", i);
		check_wrote(when, t[i].want, t[i].n);
		ATF_CHECK_EQ(t[i].mode, lc->lc_mode);
		ATF_CHECK_EQ((t[i].mode & LEM_MODE_CSB) != 0,
		    csb->guest_csb_on != 0);
		if ((t[i].mode & LEM_MODE_CSB) != 0) {
			ATF_CHECK_EQ((t[i].mode & LEM_MODE_POLL) == 0,
			    csb->guest_need_rxkick != 0);
			ATF_CHECK_EQ(1024, csb->host_txcycles_lim);
		}
	}
	/* A driver that polls does not ask to be woken for descriptors. */
	lc->lc_tx_short = 1;
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_CSB));
	ATF_CHECK_EQ(1, csb->guest_need_txkick);
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_CSB | LEM_MODE_POLL));
	ATF_CHECK_EQ(0, csb->guest_need_txkick);
	/* Unknown bits, alone and with others. */
	ATF_CHECK_EQ(EINVAL, lem_set_mode(lc, 0x10));
	ATF_CHECK_EQ(EINVAL, lem_set_mode(lc, 0x80000001));
	ATF_CHECK_EQ(LEM_MODE_CSB | LEM_MODE_POLL, lc->lc_mode);
	lc->lc_tx_short = 0;
	/* While stopped the mode is only kept. */
	lem_stop(lc);
	fake.nwrote = 0;
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_LAZY));
	check_wrote("stopped", NULL, 0);
	ATF_CHECK_EQ(LEM_MODE_LAZY, lc->lc_mode);
	/* So is the interval. */
	ATF_REQUIRE_EQ(0, lem_set_itr(lc, 99));
	check_wrote("stopped", NULL, 0);
	ATF_CHECK_EQ(99, lc->lc_itr_256ns);
	test_destroy(test);
}

LEM_TEST(combining_left, fake_create(false), "A mode without send combining "
    "posts what was deferred, and defers nothing more")
{
	static const struct access posted[] = {
		{ E82545_TDT, 2 }, { E82545_IMC, 0xffffffff },
		{ E82545_ICS, E82545_ICR_RXT0 | E82545_ICR_TXDW }
	};
	struct lem_core *lc = &t->g.lc;
	struct access next = { E82545_TDT, 0 };
	unsigned int n;

	/* The first packet is posted, the second one deferred. */
	for (n = 1; n <= 2; n++) {
		ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_SC));
		ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
		test_send(t, n, 60);
		ATF_CHECK(lc->lc_tx_waiting);
		fake.nwrote = 0;
		ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_LAZY));
		check_wrote("mode", posted + (n == 1), nitems(posted) -
		    (n == 1));
		test_send(t, 1, 60);
		next.value = n + 1;
		check_wrote("next", &next, 1);
		lem_stop(lc);
	}
}

LEM_TEST(arguments, fake_create(false), "The limits of lem_start(), and a "
    "start while running")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i, n;

	ATF_CHECK_EQ(EINVAL, lem_start(lc, fake_mac, E82545_MTU_MIN - 1));
	ATF_CHECK_EQ(0, lem_start(lc, fake_mac, E82545_MTU_MIN));
	ATF_CHECK_EQ(0, fake.rctl & E82545_RCTL_LPE);
	ATF_CHECK_EQ(0, lem_start(lc, fake_mac, 1501));
	ATF_CHECK(fake.rctl & E82545_RCTL_LPE);
	ATF_CHECK_EQ(0, lem_start(lc, fake_mac, 1500));
	ATF_CHECK_EQ(0, fake.rctl & E82545_RCTL_LPE);
	ATF_CHECK_EQ(0, lem_start(lc, fake_mac, E82545_MTU_MAX));
	ATF_CHECK_EQ(EINVAL, lem_start(lc, fake_mac, E82545_MTU_MAX + 1));
	/* It stops first: two resets. */
	fake.nwrote = 0;
	ATF_CHECK_EQ(0, lem_start(lc, fake_mac, 1500));
	for (i = n = 0; i < fake.nwrote; i++)
		n += fake.wrote[i].reg == E82545_CTRL &&
		    (fake.wrote[i].value & E82545_CTRL_RST) != 0;
	ATF_CHECK_EQ(2, n);
	lem_stop(lc);
	lc->lc_nrxd = 64;
	ATF_CHECK_EQ(EINVAL, lem_start(lc, fake_mac, 1500));
	lc->lc_nrxd = TEST_RING;
	/* Modes without a CSB. */
	ATF_CHECK_EQ(0, lem_set_mode(lc, LEM_MODE_SC));
	ATF_CHECK_EQ(ENOTSUP, lem_set_mode(lc, LEM_MODE_CSB));
	ATF_CHECK_EQ(LEM_MODE_SC, lc->lc_mode);
}

LEM_TEST(intr_enable, fake_create(false), "Interrupts are not enabled while "
    "stopped or polling")
{
	struct lem_core *lc = &t->g.lc;

	fake.nwrote = 0;
	ATF_CHECK(!lem_intr_enable(lc));
	ATF_CHECK(!lem_intr(lc));
	check_wrote("stopped", NULL, 0);
	lc->lc_mode = LEM_MODE_POLL;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	fake.nwrote = 0;
	fake.icr = E82545_ICR_RXT0;
	ATF_CHECK(!lem_intr_enable(lc));
	ATF_CHECK(!lem_intr(lc));
	check_wrote("polling", NULL, 0);
}

TEST(intr, "Which causes are the driver's; with the CSB, an interrupt asks for "
    "no other")
{
	static const uint32_t ours = E82545_ICR_TXDW | E82545_ICR_LSC |
	    E82545_ICR_RXT0 | E82545_ICR_RXDMT0 | E82545_ICR_RXO;
	static const struct access mask[] = { { E82545_IMC, 0xffffffff } };
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	unsigned int bit, i, n;

	for (i = 0; i < 2; i++) {
		lc->lc_mode = i == 0 ? 0 : LEM_MODE_CSB;
		ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
		for (bit = n = 0; bit < 32; bit++) {
			fake.icr = 1u << bit;
			fake.nwrote = 0;
			lc->lc_csb->guest_need_rxkick = 1;
			lc->lc_csb->guest_need_txkick = 1;
			n += (ours & fake.icr) != 0;
			ATF_CHECK_EQ_MSG((ours & fake.icr) != 0, lem_intr(lc),
			    "%#x", fake.icr);
			check_wrote("interrupt", mask, i == 0 &&
			    (ours & fake.icr) != 0);
			ATF_CHECK_EQ(n, lc->lc_counter[LEM_C_INTERRUPT]);
			ATF_CHECK_EQ(i == 0 || (ours & fake.icr) == 0,
			    lc->lc_csb->guest_need_rxkick);
			ATF_CHECK_EQ(i == 0 || (ours & fake.icr) == 0,
			    lc->lc_csb->guest_need_txkick);
		}
		lc->lc_counter[LEM_C_INTERRUPT] = 0;
		fake.icr = 0;
		ATF_CHECK(!lem_intr(lc));
	}
	test_destroy(test);
}

LEM_TEST(filter, fake_create(false), "RCTL is written if the filter changes, "
    "and keeps its other bits")
{
	static const struct access on[] = {
		{ E82545_CTRL, FAKE_ANY },
		{ E82545_RCTL, 0x04008002 | E82545_RCTL_UPE | E82545_RCTL_MPE }
	};
	static const struct access same[] = {
		{ E82545_CTRL, FAKE_ANY }
	};
	static const struct access off[] = {
		{ E82545_CTRL, FAKE_ANY }, { E82545_RCTL, 0x04008002 }
	};
	struct lem_core *lc = &t->g.lc;

	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	fake.nwrote = 0;
	lem_set_filter(lc, E82545_RCTL_UPE | E82545_RCTL_MPE, false, NULL);
	check_wrote("on", on, nitems(on));
	lem_set_filter(lc, E82545_RCTL_UPE | E82545_RCTL_MPE, true, NULL);
	check_wrote("same", same, nitems(same));
	ATF_CHECK(fake.ctrl & E82545_CTRL_VME);
	lem_set_filter(lc, 0, false, NULL);
	check_wrote("off", off, nitems(off));
	ATF_CHECK_EQ(0, fake.ctrl & E82545_CTRL_VME);
	ATF_CHECK_EQ(4 * E82545_MTA_COUNT, fake.nmta);
	/* The adapter is gone: nothing is written. */
	fake.rctl = 0xffffffff;
	lem_set_filter(lc, 0, false, NULL);
	check_wrote("gone", NULL, 0);
	ATF_CHECK_EQ(4 * E82545_MTA_COUNT, fake.nmta);
	ATF_CHECK(lc->lc_dead);
}

LEM_TEST(dead, fake_create(true), "An adapter that does not end its reset is "
    "given up after ten milliseconds, one that is gone at once")
{
	static const struct access gone[] = {
		{ E82545_IMC, 0xffffffff }, { E82545_RCTL, 0 },
		{ E82545_TCTL, 0x8 }, { E82545_CSBAH, 0 },
		{ E82545_CSBAL, 0 }, { E82545_IMC, 0xffffffff }
	};
	struct lem_core *lc = &t->g.lc;

	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	ATF_CHECK_EQ(4, fake.nreset);
	ATF_CHECK_EQ(4000, lc->lc_os.delayed_us);
	/* The last try but none, and one more. */
	fake.reset_reads = 9;
	ATF_CHECK_EQ(0, lem_start(lc, fake_mac, 1500));
	lem_stop(lc);
	lc->lc_os.delayed_us = fake.nreset = 0;
	fake.reset_reads = 10;
	ATF_CHECK_EQ(ENXIO, lem_start(lc, fake_mac, 1500));
	ATF_CHECK_EQ(10, fake.nreset);
	ATF_CHECK_EQ(10000, lc->lc_os.delayed_us);
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_DEAD]);
	/* All bits set: it is gone. */
	fake.ctrl = fake.status = 0xffffffff;
	fake.nwrote = 0;
	ATF_CHECK_EQ(ENXIO, lem_start(lc, fake_mac, 1500));
	check_wrote("gone", gone, nitems(gone));
	ATF_CHECK_EQ(10000, lc->lc_os.delayed_us);
	ATF_CHECK(!lc->lc_running);
}

LEM_TEST(dead_late, fake_create(true), "An adapter that goes while it is "
    "started is reset once more, and has no link")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i, n;

	fake.status = 0xffffffff;
	ATF_CHECK_EQ(ENXIO, lem_start(lc, fake_mac, 1500));
	ATF_CHECK(!lc->lc_running);
	ATF_CHECK(!lc->lc_link);
	for (i = n = 0; i < fake.nwrote; i++)
		n += fake.wrote[i].reg == E82545_CTRL &&
		    (fake.wrote[i].value & E82545_CTRL_RST) != 0;
	ATF_CHECK_EQ(2, n);
}

TEST_PROGRAM
