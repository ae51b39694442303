/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's core and the model, one step at a time: start and stop, modes
 * and filters, polling, and the exits of a round trip.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "e82545_impl.h"
#include "lem_test.h"

LEM_TEST(arguments, test_create(LEM_MODE_SC, 2048, 1500), "Rings, buffers, "
    "MTUs and modes out of range are refused; the mode does not change")
{
	struct lem_core *lc = &t->g.lc;
	struct paravirt_csb *csb = lc->lc_csb;

	ATF_CHECK_EQ(EINVAL, lem_set_mode(lc, 0x10));
	lc->lc_csb = NULL;
	ATF_CHECK_EQ(ENOTSUP, lem_set_mode(lc, LEM_MODE_CSB | LEM_MODE_LAZY));
	ATF_CHECK_EQ(0, lem_set_rounds(lc, lc->lc_rounds / 2));
	lc->lc_csb = csb;
	ATF_CHECK_EQ(LEM_MODE_SC, lc->lc_mode);
	ATF_CHECK_EQ(EINVAL, lem_set_itr(lc, E82545_ITR_MAX + 1));
	ATF_CHECK_EQ(0, lem_set_itr(lc, E82545_ITR_MAX));
	ATF_CHECK_EQ(E82545_ITR_MAX, host_rd(t->h, E82545_ITR));
	lem_stop(lc);
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 67));
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 16111));
	lc->lc_rx_bufsize = 1024;
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 1500));
	lc->lc_rx_bufsize = 2048;
	lc->lc_ntxd = 64;
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 1500));
	lc->lc_ntxd = 264;
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 1500));
	lc->lc_ntxd = TEST_RING;
	lc->lc_os.nspare = 0;
	memset(lc->lc_os.rx_buf, 0, sizeof(lc->lc_os.rx_buf));
	ATF_CHECK_EQ(ENOBUFS, lem_start(lc, t->g.mac, 1500));
	ATF_CHECK(!lc->lc_running);
}

static struct lem_test *late_test;

/* Another thread sets LEM_MODE_POLL while the causes are unmasked. */
static void
late_write(void *arg, uint32_t reg, uint32_t value)
{
	struct lem_core *lc = &late_test->g.lc;

	if (reg == E82545_IMS && lc->lc_mode != LEM_MODE_POLL)
		ATF_CHECK_EQ(0, lem_set_mode(lc, LEM_MODE_POLL));
	host_wr(arg, reg, value);
}

LEM_TEST(poll_late, test_create(0, 2048, 1500), "When the mode becomes polling "
    "while interrupts are enabled, they are masked in the end")
{
	test_inject(t, 1, 60);
	host_run(t->h);
	ATF_CHECK(lem_intr(&t->g.lc));
	late_test = t;
	t->g.lc.lc_os.reg_write = late_write;
	ATF_CHECK(!lem_intr_enable(&t->g.lc));
	ATF_CHECK_EQ(LEM_MODE_POLL, t->g.lc.lc_mode);
	ATF_CHECK_EQ(0, host_rd(t->h, E82545_IMS));
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

TEST(round_trip, "A request and its response take eight exits and two "
    "interrupts, with the CSB two and one")
{
	static const struct {
		uint32_t	mode;
		unsigned int	exits, raised;
	} step[] = {
		{ 0, 2 + 2 * INTR_EXITS, 2 },
		{ LEM_MODE_LAZY, 2 + INTR_EXITS, 1 },
		{ LEM_MODE_CSB, 1 + INTR_EXITS_CSB, 1 }
	};
	unsigned int i, j;

	for (i = 0; i < 3; i++) {
		struct lem_test *t = test_create(step[i].mode, 2048, 1500);

		for (j = 0; j < 100; j++) {
			test_inject(t, 1, 60);
			test_settle(t);
			test_send(t, 1, 60);
			test_settle(t);
		}
		ATF_CHECK_EQ(100 * step[i].exits, test_exits(t));
		ATF_CHECK_EQ(100 * step[i].raised, test_raised(t));
		test_check_received(t);
		test_check_sent(t, 60);
		test_destroy(t);
	}
}

/* Every mode, and an invalid bit, which must not be set. */
static const uint32_t modes[] = {
	0, LEM_MODE_CSB, LEM_MODE_SC, LEM_MODE_POLL, LEM_MODE_LAZY,
	LEM_MODE_CSB | LEM_MODE_POLL, LEM_MODE_SC | LEM_MODE_LAZY,
	LEM_MODE_CSB | LEM_MODE_SC | LEM_MODE_LAZY, LEM_MODE_POLL |
	LEM_MODE_LAZY, LEM_MODE_CSB | LEM_MODE_SC, 0x0f,
	LEM_MODE_POLL | LEM_MODE_SC,
	LEM_MODE_POLL | LEM_MODE_SC | LEM_MODE_LAZY
};
#define	NMODES	(sizeof(modes) / sizeof(modes[0]))

LEM_TEST(restart, test_create(LEM_MODE_SC, 2048, 1500), "lem_stop() returns "
    "all buffers in the ring, and lem_start() starts again")
{
	unsigned int i;

	for (i = 0; i < NMODES; i++) {
		ATF_REQUIRE_EQ(0, lem_set_mode(&t->g.lc, modes[i]));
		test_send(t, 10, 60);
		lem_stop(&t->g.lc);
		ATF_CHECK(lem_tx_idle(&t->g.lc));
		ATF_CHECK_EQ(t->g.sent, t->g.lc.lc_os.tx_done);
		ATF_CHECK_EQ(ENXIO, guest_send(&t->g, test_peer, 60));
		ATF_CHECK_EQ(0, lem_rx(&t->g.lc, 8));
		ATF_CHECK_EQ(0, lem_tx_clean(&t->g.lc));
		ATF_CHECK(!lem_intr(&t->g.lc));
		host_run(t->h);
		ATF_CHECK(!host_line(t->h));
		ATF_REQUIRE_EQ(0, lem_start(&t->g.lc, t->g.mac, 1500));
		lem_intr_enable(&t->g.lc);
		test_inject(t, 5, 60);
		test_settle(t);
		while (lem_rx(&t->g.lc, 8) == 8)
			continue;
		test_check_received(t);
	}
}

LEM_TEST(filter, test_create(0, 2048, 1500), "Promiscuous mode, the multicast "
    "hash, VLAN tags and the link")
{
	static const uint8_t group[6] = { 0x01, 0, 0x5e, 0x12, 0x34, 0x56 };
	uint32_t mta[E82545_MTA_COUNT], bit;

	bit = lem_mta_bit(group);
	ATF_CHECK_EQ(0x563, bit);
	memset(mta, 0, sizeof(mta));
	mta[bit / 32] |= 1u << bit % 32;
	lem_set_filter(&t->g.lc, 0, false, mta);
	ATF_CHECK_EQ(mta[bit / 32], host_rd(t->h, E82545_MTA + bit / 32 * 4));
	lem_set_filter(&t->g.lc, E82545_RCTL_UPE | E82545_RCTL_MPE, false,
	    NULL);
	ATF_CHECK_EQ(E82545_RCTL_UPE | E82545_RCTL_MPE,
	    host_rd(t->h, E82545_RCTL) & (E82545_RCTL_UPE | E82545_RCTL_MPE));
	lem_set_filter(&t->g.lc, E82545_RCTL_MPE, false, NULL);
	ATF_CHECK_EQ(E82545_RCTL_MPE,
	    host_rd(t->h, E82545_RCTL) & (E82545_RCTL_UPE | E82545_RCTL_MPE));
	ATF_CHECK_EQ(0, host_rd(t->h, E82545_MTA + bit / 32 * 4));
	lem_set_filter(&t->g.lc, 0, true, NULL);
	ATF_CHECK((host_rd(t->h, E82545_CTRL) & E82545_CTRL_VME) != 0);
	lem_set_filter(&t->g.lc, 0, false, NULL);
	ATF_CHECK((host_rd(t->h, E82545_CTRL) & E82545_CTRL_VME) == 0);
	e82545_link(t->h->dev, false);
	test_settle(t);
	ATF_CHECK(!t->g.lc.lc_link);
	e82545_link(t->h->dev, true);
	test_settle(t);
	ATF_CHECK(t->g.lc.lc_link);
}

/* Frames in both directions, in two modes, with a restart between them. */
static void
exchange(struct lem_test *t)
{
	static const uint32_t both[] = { LEM_MODE_SC, LEM_MODE_CSB };
	unsigned int i, mode;

	for (mode = 0; mode < nitems(both); mode++) {
		lem_stop(&t->g.lc);
		ATF_REQUIRE_EQ(0, lem_set_mode(&t->g.lc, both[mode]));
		ATF_REQUIRE_EQ(0, guest_up(&t->g, 1500));
		for (i = 0; i < 10; i++) {
			test_send(t, 10, 60 + 100 * i);
			test_inject(t, 10, 60 + 100 * i);
			test_settle(t);
			host_sent_clear(t->h);
		}
	}
}

/*
 * Check that a counter has moved by the same `n' from each start as from 0, the
 * first one.  True if it has moved.
 */
static bool
check_moved(const char *name, uint64_t start, uint64_t n, uint64_t *from_0)
{
	if (start == 0)
		*from_0 = n;
	ATF_CHECK_EQ_MSG(*from_0, n, "%s from %ju: %ju", name,
	    (uintmax_t)start, (uintmax_t)n);
	return (n > 0);
}

TEST(counters_wrap, "The counters of the driver and of the model go on past "
    "2^32 and 2^64")
{
	static const uint64_t starts[] = { 0, UINT32_MAX, UINT64_MAX };
	uint64_t driver[LEM_NCOUNTERS], model[E82545_NCOUNTERS], n;
	unsigned int i, j, moved;
	struct lem_test *t;

	moved = 0;
	for (i = 0; i < nitems(starts); i++) {
		t = test_create(0, 2048, 1500);
		for (j = 0; j < LEM_NCOUNTERS; j++)
			t->g.lc.lc_counter[j] = starts[i];
		for (j = 0; j < E82545_NCOUNTERS; j++)
			t->h->dev->counters[j] = starts[i];
		exchange(t);
		for (j = 0; j < LEM_NCOUNTERS; j++) {
			n = t->g.lc.lc_counter[j] - starts[i];
			moved += check_moved(lem_counter_table[j].cr_name,
			    starts[i], n, &driver[j]);
		}
		for (j = 0; j < E82545_NCOUNTERS; j++) {
			n = host_counter(t->h, j) - starts[i];
			moved += check_moved(e82545_counter_table[j].cr_name,
			    starts[i], n, &model[j]);
		}
		test_destroy(t);
	}
	/* Kicks, interrupts, frames, batches and bytes among them. */
	ATF_CHECK_MSG(moved >= 3 * 25, "%u", moved);
}

TEST_PROGRAM
