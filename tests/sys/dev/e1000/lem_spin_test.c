/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For how many rounds the adapter spins for packets, and how that follows what
 * it finds: lem_spin.c, with the model as the adapter.
 */

#include <sys/param.h>

#include <errno.h>

#include <atf-c.h>

#include "e82545.h"
#include "lem_impl.h"
#include "lem_test.h"

/* The limit that the adapter reads. */
static uint32_t
limit(struct lem_test *t)
{
	return (t->g.lc.lc_csb->host_txcycles_lim);
}

/* Have the adapter send what was posted, but not sleep. */
static void
send_all(struct lem_test *t)
{
	unsigned int n;

	for (n = host_sent(t->h); n != t->g.sent; n = host_sent(t->h))
		ATF_REQUIRE(e82545_tx(t->h->dev) != E82545_TX_IDLE);
}

/* A packet while the adapter sleeps, which sleeps again afterwards. */
static void
missed(struct lem_test *t)
{
	uint64_t kicks = t->g.lc.lc_counter[LEM_C_TX_KICK];

	test_send(t, 1, 60);
	ATF_REQUIRE_EQ(kicks + 1, t->g.lc.lc_counter[LEM_C_TX_KICK]);
	test_settle(t);
	ATF_REQUIRE_EQ(1, t->g.lc.lc_csb->host_need_txkick);
	(void)lem_tx_clean(&t->g.lc);
}

/* A packet while the adapter spins for one. */
static void
paid(struct lem_test *t)
{
	uint64_t kicks = t->g.lc.lc_counter[LEM_C_TX_KICK];

	test_send(t, 1, 60);
	ATF_REQUIRE_EQ(kicks, t->g.lc.lc_counter[LEM_C_TX_KICK]);
	send_all(t);
	(void)lem_tx_clean(&t->g.lc);
}

/* The adapter is awake, and has sent all. */
static void
wake(struct lem_test *t)
{
	test_send(t, 1, 60);
	send_all(t);
	(void)lem_tx_clean(&t->g.lc);
}

TEST(rounds, "The adapter spins for as many rounds as lem_set_rounds() says, "
    "then sleeps")
{
	static const uint32_t max[] = { 0, 1, 2, 7, 1000, LEM_ROUNDS_MAX };
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);
	struct lem_core *lc = &t->g.lc;
	unsigned int i, n;

	ATF_CHECK_EQ(LEM_ROUNDS_DEFAULT, limit(t));
	ATF_CHECK_EQ(EINVAL, lem_set_rounds(lc, LEM_ROUNDS_MAX + 1));
	ATF_CHECK_EQ(EINVAL, lem_set_rounds(lc, UINT32_MAX));
	ATF_CHECK_EQ(LEM_ROUNDS_DEFAULT, limit(t));
	for (i = 0; i < nitems(max); i++) {
		ATF_REQUIRE_EQ(0, lem_set_rounds(lc, max[i]));
		ATF_CHECK_EQ(max[i], limit(t));
		/* Another wakeup: it has not spun since. */
		test_send(t, 1, 60);
		for (n = 0; e82545_tx(t->h->dev) != E82545_TX_IDLE; n++)
			continue;
		/* The one that sends, and those of the spin. */
		ATF_CHECK_EQ(1 + max[i], n);
		ATF_CHECK_EQ(max[i], lc->lc_csb->host_txcycles);
		ATF_CHECK_EQ(1, lc->lc_csb->host_need_txkick);
		test_settle(t);
	}
	test_check_sent(t, 60);
	test_destroy(t);
}

TEST(down, "Each wakeup but the first halves the rounds, down to one; none "
    "changes a maximum of 0 or 1")
{
	static const uint32_t max[] = { 0, 1 };
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);
	struct lem_core *lc = &t->g.lc;
	unsigned int i, n;
	uint32_t want;

	missed(t);
	ATF_CHECK_EQ(1024, limit(t));
	for (want = 512; want > 0; want /= 2) {
		missed(t);
		ATF_CHECK_EQ(want, limit(t));
		ATF_CHECK_EQ(want, lc->lc_csb->host_txcycles);
	}
	missed(t);
	ATF_CHECK_EQ(1, limit(t));
	/* Not a power of two. */
	ATF_REQUIRE_EQ(0, lem_set_rounds(lc, 13));
	missed(t);
	for (want = 13; want > 1; ) {
		want /= 2;
		missed(t);
		ATF_CHECK_EQ(want, limit(t));
	}
	for (i = 0; i < nitems(max); i++) {
		ATF_REQUIRE_EQ(0, lem_set_rounds(lc, max[i]));
		for (n = 0; n < 50; n++) {
			missed(t);
			ATF_CHECK_EQ(max[i], limit(t));
		}
	}
	test_destroy(t);
}

LEM_TEST(up, test_create(LEM_MODE_CSB, 2048, 1500), "Each packet that the "
    "adapter finds by spinning doubles the rounds, up to the maximum")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i;
	uint32_t want;

	ATF_REQUIRE_EQ(0, lem_set_rounds(lc, 100));
	for (i = 0; i < 8; i++)
		missed(t);
	ATF_CHECK_EQ(1, limit(t));
	wake(t);
	ATF_CHECK_EQ(1, limit(t));
	for (want = 2; want < 100; want *= 2) {
		paid(t);
		ATF_CHECK_EQ(want, limit(t));
	}
	for (i = 0; i < 3; i++) {
		paid(t);
		ATF_CHECK_EQ(100, limit(t));
	}
	/* The adapter has not spun: it has not sent the last one. */
	test_settle(t);
	missed(t);
	ATF_CHECK_EQ(50, limit(t));
	wake(t);
	ATF_CHECK_EQ(25, limit(t));
	test_send(t, 1, 60);
	ATF_CHECK_EQ(50, limit(t));
	for (i = 0; i < 3; i++) {
		test_send(t, 1, 60);
		ATF_CHECK_EQ(50, limit(t));
	}
	test_settle(t);
	test_check_sent(t, 60);
}

/* Wakeups until the next trial. */
static unsigned int
until_trial(struct lem_test *t)
{
	unsigned int n;

	for (n = 0; limit(t) == 1; n++)
		missed(t);
	return (n);
}

LEM_TEST(trial, test_create(LEM_MODE_CSB, 2048, 1500), "After wakeups in a row "
    "one spin has the maximum; if it does not pay, twice as many pass until "
    "the next, up to 1024")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i, pause;

	ATF_REQUIRE_EQ(0, lem_set_rounds(lc, 4));
	for (i = 0; i < 3; i++)
		missed(t);
	ATF_CHECK_EQ(1, limit(t));
	for (i = 0, pause = 16; i < 9; i++) {
		ATF_CHECK_EQ(pause, until_trial(t));
		ATF_CHECK_EQ(4, limit(t));
		missed(t);
		ATF_CHECK_EQ(1, limit(t));
		if (pause < 1024)
			pause *= 2;
	}
	test_check_sent(t, 60);
}

LEM_TEST(in_a_row, test_create(LEM_MODE_CSB, 2048, 1500), "A packet that is "
    "found begins the count of wakeups again")
{
	unsigned int n;

	ATF_REQUIRE_EQ(0, lem_set_rounds(&t->g.lc, 4));
	while (limit(t) > 1)
		missed(t);
	for (n = 0; n < 10; n++)
		missed(t);
	ATF_CHECK_EQ(1, limit(t));
	wake(t);
	paid(t);
	ATF_CHECK_EQ(2, limit(t));
	test_settle(t);
	missed(t);
	ATF_CHECK_EQ(1, limit(t));
	ATF_CHECK_EQ(16, until_trial(t));
	test_check_sent(t, 60);
}

LEM_TEST(trial_paid, test_create(LEM_MODE_CSB, 2048, 1500), "A trial that pays "
    "keeps the maximum, and the next one comes soon")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i, n;

	ATF_REQUIRE_EQ(0, lem_set_rounds(lc, 4));
	for (i = 0; i < 2; i++) {
		while (limit(t) > 1)
			missed(t);
		/* One trial in vain: the next is after 32. */
		ATF_CHECK_EQ(16, until_trial(t));
		missed(t);
		for (n = 0; limit(t) == 1; n++) {
			test_send(t, 1, 60);
			if (limit(t) == 1)
				test_settle(t);
			(void)lem_tx_clean(lc);
		}
		ATF_CHECK_EQ(32, n);
		/* The spin of the trial finds packets. */
		send_all(t);
		for (n = 0; n < 3; n++) {
			paid(t);
			ATF_CHECK_EQ(4, limit(t));
		}
		test_settle(t);
		missed(t);
		ATF_CHECK_EQ(2, limit(t));
	}
	test_settle(t);
	test_check_sent(t, 60);
}

LEM_TEST(restart, test_create(LEM_MODE_CSB, 2048, 1500), "Learning begins "
    "again with the maximum when the mode changes or the adapter is started, "
    "and if the maximum changes")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i;

	for (i = 0; i < 3; i++)
		missed(t);
	ATF_CHECK_EQ(256, limit(t));
	/* The same maximum is no change. */
	ATF_REQUIRE_EQ(0, lem_set_rounds(lc, LEM_ROUNDS_DEFAULT));
	ATF_CHECK_EQ(256, limit(t));
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, 0));
	test_settle(t);
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_CSB));
	test_settle(t);
	ATF_CHECK_EQ(LEM_ROUNDS_DEFAULT, limit(t));
	ATF_REQUIRE_EQ(0, lem_set_rounds(lc, 10));
	ATF_CHECK_EQ(10, limit(t));
	/* While it is stopped the maximum is only kept. */
	lem_stop(lc);
	ATF_REQUIRE_EQ(0, lem_set_rounds(lc, 11));
	ATF_CHECK_EQ(10, limit(t));
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_CSB));
	ATF_REQUIRE_EQ(0, lem_start(lc, t->g.mac, 1500));
	ATF_CHECK_EQ(11, limit(t));
}

/* The driver's own spin for frames. */
static struct {
	struct lem_test	*t;
	unsigned int	 rounds;
	unsigned int	 frame_at;	/* a frame comes before that round; 0:
					   none */
	unsigned int	 busy_at;	/* another thread wants the processor */
} rx;

static bool
rx_idle(void)
{
	rx.rounds++;
	if (rx.rounds == rx.frame_at) {
		test_inject(rx.t, 1, 60);
		host_run(rx.t->h);
	}
	return (rx.rounds != rx.busy_at);
}

static struct lem_test *
rx_create(void)
{
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);

	test_settle(t);
	t->g.lc.lc_os.idle = rx_idle;
	rx.t = t;
	rx.rounds = rx.frame_at = rx.busy_at = 0;
	(void)test_raised(t);
	return (t);
}

/*
 * An interrupt for a frame, and what the driver does then.  Returns how often
 * it read a descriptor.
 */
static unsigned int
rx_interrupt(struct lem_test *t)
{
	unsigned int raised;

	rx.rounds = 0;
	test_inject(t, 1, 60);
	host_run(t->h);
	raised = test_raised(t);
	ATF_CHECK_EQ(1, raised);
	ATF_CHECK(guest_interrupt(&t->g, 64));
	host_run(t->h);
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(1, t->g.lc.lc_csb->guest_need_rxkick);
	return (rx.rounds);
}

LEM_TEST(rx_found, rx_create(), "A frame that comes while the driver spins "
    "takes no interrupt, and lets it spin twice as long")
{
	unsigned int i;

	ATF_REQUIRE_EQ(0, lem_set_rounds(&t->g.lc, 64));
	for (i = 0; i < 4; i++)
		(void)rx_interrupt(t);
	ATF_CHECK_EQ(8, t->g.lc.lc_rx_spin.sp_rounds);
	/* Five rounds, and when the last finds it, twice as many for more. */
	rx.frame_at = 5;
	ATF_CHECK_EQ(5 + 16, rx_interrupt(t));
	ATF_CHECK_EQ(8, t->g.lc.lc_rx_spin.sp_rounds);
	test_check_received(t);
}

static unsigned int spins;

static bool
spin_once(void)
{
	spins++;
	return (true);
}

LEM_TEST(rx_spin, rx_create(), "A spin says whether a frame has come, and "
    "lasts no longer")
{
	struct lem_core *lc = &t->g.lc;

	ATF_REQUIRE_EQ(0, lem_set_rounds(lc, 8));
	lc->lc_os.idle = spin_once;
	ATF_CHECK(!lem_rx_spin(lc));
	ATF_CHECK_EQ(8, spins);
	test_inject(t, 1, 60);
	host_run(t->h);
	ATF_CHECK(lem_rx_spin(lc));
	ATF_CHECK_EQ(9, spins);
	lc->lc_os.idle = NULL;
	test_settle(t);
	test_check_received(t);
	ATF_CHECK_EQ(0, lc->lc_counter[LEM_C_POLL]);
}

LEM_TEST(rx_others, rx_create(), "The driver stops spinning when another "
    "thread wants the processor, and learns nothing from that")
{
	ATF_REQUIRE_EQ(0, lem_set_rounds(&t->g.lc, 64));
	ATF_CHECK_EQ(64, rx_interrupt(t));
	rx.busy_at = 3;
	ATF_CHECK_EQ(3, rx_interrupt(t));
	rx.busy_at = 1;
	ATF_CHECK_EQ(1, rx_interrupt(t));
	rx.busy_at = 0;
	ATF_CHECK_EQ(64, rx_interrupt(t));
	ATF_CHECK_EQ(32, rx_interrupt(t));
	test_check_received(t);
}

TEST_PROGRAM
