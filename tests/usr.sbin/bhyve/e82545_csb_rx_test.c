/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB and the receive ring: interrupts, buffers posted without a kick, and
 * a ring that runs out of buffers.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"

/*
 * Take frames and post their buffers, one by one.  The n-th takes a kick, and
 * then no frame waits any more.
 */
static void
give_until_kick(struct host *h, struct paravirt_csb *csb, unsigned int n)
{
	unsigned int i;

	for (i = 1; i <= n; i++) {
		ATF_CHECK_EQ(1, guest_take(h, 1));
		ATF_CHECK_EQ(i == n, guest_give(h, csb));
	}
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
}

TEST(need_kick, "An RX interrupt comes only if guest_need_rxkick asks for it")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 64, 2048, 1, &csb);
	unsigned int i;

	guest_inject(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR));
	CSB_SET(csb, guest_need_rxkick, 0);
	for (i = 1; i <= 20; i++) {
		guest_inject(h, 1);
		ATF_CHECK_EQ(i, host_counter(h, E82545_C_INTR_SAVED));
		ATF_CHECK_EQ(1 + i, CSB_GET(csb, host_rdh));
		ATF_CHECK_EQ(1 + i, host_rd(h, E82545_RDH));
	}
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(21, guest_take(h, 100));
	CSB_SET(csb, guest_need_rxkick, 2);
	guest_inject(h, 1);
	ATF_CHECK_EQ(2, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0, CSB_GET(csb, host_isr));
	host_destroy(h);
}

TEST(moderated, "RDTR and ITR delay an RX interrupt")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 64, 2048, 1, &csb);

	host_wr(h, E82545_RDTR, 10);
	guest_inject(h, 1);
	ATF_CHECK_EQ(0, host_raised(h));
	host_advance(h, 10 * 1024);
	ATF_CHECK_EQ(1, host_raised(h));
	host_rd(h, E82545_ICR);
	host_wr(h, E82545_RDTR, 0);
	host_wr(h, E82545_ITR, 1000);
	guest_inject(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_INTR_HELD));
	host_advance(h, 256000);
	ATF_CHECK_EQ(2, host_raised(h));
	host_destroy(h);
}

TEST(lazily, "Buffers posted only by guest_rdt are found when needed")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	unsigned int i;

	CSB_SET(csb, guest_need_rxkick, 0);
	for (i = 0; i < 100; i++) {
		guest_inject(h, 3);
		ATF_CHECK_EQ(3, guest_take(h, 100));
		ATF_CHECK(!guest_give(h, csb));
	}
	ATF_CHECK_EQ(300, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
	/* host_up() wrote RDT once. */
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_KICK));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, CSB_GET(csb, host_rxkick_at));
	/* Nor with every batch, but twice for all descriptors of the ring. */
	ATF_CHECK(host_counter(h, E82545_C_RX_KICK_SAVED) <= 300 / 6);
	ATF_CHECK(host_counter(h, E82545_C_RX_KICK_SAVED) >= 300 / 15);
	host_destroy(h);
}

TEST(late_kick, "A write of an old value to RDT changes nothing")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	unsigned int i;

	for (i = 0; i < 10; i++) {
		guest_inject(h, 3);
		ATF_CHECK_EQ(3, guest_take(h, 100));
		guest_give(h, csb);
	}
	guest_inject(h, 3);
	ATF_CHECK_EQ(1, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(13, h->rxposted);
	host_wr(h, E82545_RDT, 15);
	guest_inject(h, 20);
	ATF_CHECK_EQ(13, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(45, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(15, guest_take(h, 100));
	/* With the CSB off, RDT has its usual meaning. */
	CSB_SET(csb, guest_csb_on, 0);
	host_rx_post(h);
	host_run(h);
	ATF_CHECK_EQ(53, host_counter(h, E82545_C_RX_FRAME));
	host_destroy(h);
}

TEST(low, "RXDMT0 is set only if the ring is low when the CSB is read again")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	unsigned int i;

	for (i = 0; i < 10; i++) {
		guest_inject(h, 3);
		ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR));
		guest_take(h, 100);
		guest_give(h, csb);
	}
	guest_inject(h, 8);
	ATF_CHECK_EQ(E82545_ICR_RXT0 | E82545_ICR_RXDMT0,
	    host_rd(h, E82545_ICR));
	host_destroy(h);
}

TEST(dry, "An empty ring asks for one kick, at three quarters of its buffers")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	unsigned int i, kicks, lap;

	CSB_SET(csb, guest_need_rxkick, 0);
	kicks = host_counter(h, E82545_C_RX_KICK);
	guest_inject(h, 15 + 12 * 10);
	for (lap = 1; lap <= 10; lap++) {
		ATF_CHECK_EQ(lap, host_counter(h, E82545_C_RX_STALL));
		ATF_CHECK_EQ(12 * (11 - lap), host_rx_pending(h));
		ATF_CHECK_EQ((host_rd(h, E82545_RDH) + 12) % 16,
		    CSB_GET(csb, host_rxkick_at));
		for (i = 1; i <= 12; i++) {
			ATF_CHECK_EQ(1, guest_take(h, 1));
			h->ready = false;
			ATF_CHECK_EQ_MSG(i == 12, guest_give(h, csb), "%u", i);
			ATF_CHECK_EQ(i == 12, h->ready);
		}
		ATF_CHECK_EQ(kicks + lap, host_counter(h, E82545_C_RX_KICK));
		host_run(h);
	}
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, CSB_GET(csb, host_rxkick_at));
	ATF_CHECK_EQ(135, host_counter(h, E82545_C_RX_FRAME));
	host_destroy(h);
}

/* The CSB is where guest_up() put it. */
static struct paravirt_csb *hooked;

static void
give_one(struct host *h)
{
	CSB_SET(hooked, guest_rdt, (host_rd(h, E82545_RDT) + 1) % h->nrxd);
}

TEST(not_dry, "A buffer posted while the ring runs empty is found without a "
    "kick")
{
	struct host *h = guest_up(64, 16, 2048, 1, &hooked);

	h->intr_hook = give_one;
	guest_inject(h, 16);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_KICK));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_KICK_SAVED));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, CSB_GET(hooked, host_rxkick_at));
	host_destroy(h);
}

static void
turn_off(struct host *h __unused)
{
	CSB_SET(hooked, guest_csb_on, 0);
}

TEST(off_in_batch, "When the CSB is turned off within a batch, the interrupt "
    "comes")
{
	struct host *h = guest_up(64, 16, 2048, 1, &hooked);

	CSB_SET(hooked, guest_need_rxkick, 0);
	h->rx_hook = turn_off;
	guest_inject(h, 1);
	ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR));
	host_destroy(h);
}

/*
 * Within a batch, at frame `back_at' from now on, the guest turns the CSB off,
 * takes buffers back by the first write to RDT after one to RDH, and posts four
 * of them again by guest_rdt.
 */
static unsigned int back_at;
static uint32_t back_to;

static void
take_back(struct host *h)
{
	if (--back_at != 0)
		return;
	CSB_SET(hooked, guest_csb_on, 0);
	host_tx_go(h);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	host_wr(h, E82545_RDT, back_to);
	ATF_CHECK_EQ(back_to, host_rd(h, E82545_RDT));
	CSB_SET(hooked, guest_rdt, back_to + 4);
}

TEST(taken_back, "Buffers that the guest takes back within a batch are not "
    "used twice")
{
	struct host *h = guest_up(64, 64, 2048, 1, &hooked);
	unsigned int i, done = 0;

	/* The batch has used 15 of 20; then the guest says: 5 are posted. */
	guest_inject(h, 43);
	back_at = 15;
	back_to = 44;
	host_wr(h, E82545_RDH, host_rd(h, E82545_RDH));
	h->rx_hook = take_back;
	guest_offer(h, 200);
	/* RDT is behind RDH now: that posts all but 15. */
	ATF_CHECK_EQ(E82545_RX_MORE, e82545_rx(h->dev));
	ATF_CHECK_EQ(180, host_rx_pending(h));
	ATF_CHECK_EQ(63, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(63, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(48, host_rd(h, E82545_RDT));
	for (i = 0; i < 64; i++)
		done += host_rx_done(h, i);
	ATF_CHECK_EQ(63, done);
	host_destroy(h);
}

TEST(low_taken_back, "RXDMT0 is set if the guest takes back buffers that the "
    "batch has used")
{
	struct host *h = guest_up(64, 64, 2048, 1, &hooked);

	back_at = 30;
	back_to = 1;
	host_wr(h, E82545_RDH, host_rd(h, E82545_RDH));
	h->rx_hook = take_back;
	guest_inject(h, 40);
	ATF_CHECK_EQ(40, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(E82545_ICR_RXT0 | E82545_ICR_RXDMT0,
	    host_rd(h, E82545_ICR) & (E82545_ICR_RXT0 | E82545_ICR_RXDMT0));
	host_destroy(h);
}

/*
 * Within a batch, the guest kicks, posts more without a kick, and turns the CSB
 * off.
 */
static void
post_and_turn_off(struct host *h)
{
	unsigned int i;

	h->rx_hook = NULL;
	for (i = 0; i < 10; i++)
		host_rxd(h, i)->status = 0;
	CSB_SET(hooked, guest_rdt, 5);
	host_wr(h, E82545_RDT, 5);
	CSB_SET(hooked, guest_rdt, 10);
	CSB_SET(hooked, guest_csb_on, 0);
}

TEST(kick_in_batch, "When the CSB is turned off within a batch, an index that "
    "the batch has passed does not become RDT")
{
	struct host *h = guest_up(64, 64, 2048, 1, &hooked);

	guest_inject(h, 43);
	h->rx_hook = post_and_turn_off;
	guest_inject(h, 200);
	ATF_CHECK_EQ(63 + 11, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(10, host_rd(h, E82545_RDH));
	ATF_CHECK_EQ(10, host_rd(h, E82545_RDT));
	host_destroy(h);
}

TEST(long_frame, "An empty ring waits for as many buffers as the frame needs")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 256, 1, &csb);
	uint8_t frame[256 * 14];

	host_set(h, E82545_RCTL, E82545_RCTL_LPE);
	guest_inject(h, 5);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	ATF_CHECK_EQ((5 + 14) % 16, CSB_GET(csb, host_rxkick_at));
	give_until_kick(h, csb, 4);
	ATF_CHECK_EQ(1, guest_take(h, 1));
	check_taken(h, frame, sizeof(frame));
	host_destroy(h);
}

TEST(on_when_dry, "A guest that turns the CSB on while the ring is empty is "
    "asked for a kick")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);

	CSB_SET(csb, guest_csb_on, 0);
	guest_inject(h, 20);
	ATF_CHECK_EQ(5, host_rx_pending(h));
	CSB_SET(csb, guest_csb_on, 1);
	give_until_kick(h, csb, 12);
	host_destroy(h);
}

TEST(placed_when_dry, "So is a guest that sets CSBAL while the ring is empty")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	uint64_t gpa;

	guest_place(h, 0);
	guest_inject(h, 20);
	ATF_CHECK_EQ(5, host_rx_pending(h));
	gpa = guest_alloc(h, &csb);
	CSB_SET(csb, guest_rdt, h->rxtail);
	CSB_SET(csb, guest_csb_on, 1);
	guest_place(h, gpa);
	host_run(h);
	give_until_kick(h, csb, 12);
	host_destroy(h);
}

TEST(off, "With the CSB off RDT is used, and every interrupt comes")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	unsigned int i;

	CSB_SET(csb, guest_need_rxkick, 0);
	for (i = 0; i < 10; i++) {
		CSB_SET(csb, guest_csb_on, i % 2);
		guest_inject(h, 7);
		ATF_CHECK_EQ(7, guest_take(h, 100));
		ATF_CHECK_EQ(i % 2 == 0, guest_give(h, csb));
		ATF_CHECK_EQ(i % 2 == 0, (host_rd(h, E82545_ICR) &
		    E82545_ICR_RXT0) != 0);
	}
	ATF_CHECK_EQ(6, host_counter(h, E82545_C_CSB_ON));
	ATF_CHECK_EQ(5, host_counter(h, E82545_C_CSB_OFF));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
	host_destroy(h);
}

TEST(bad_tail, "A guest_rdt outside the ring is counted and ignored")
{
	static const uint32_t bad[] = { 16, 0x10000, UINT32_MAX - 1 };
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	unsigned int i;

	guest_inject(h, 16);
	for (i = 0; i < nitems(bad); i++) {
		CSB_SET(csb, guest_rdt, bad[i]);
		ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
		ATF_CHECK_EQ(1, host_rx_pending(h));
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_CSB_BAD));
	}
	guest_take(h, 100);
	CSB_SET(csb, guest_rdt, h->rxtail);
	host_rx_post(h);
	host_run(h);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	host_destroy(h);
}

static struct paravirt_csb *hook_csb;
static uint32_t hook_rdt;

/* The guest stores another index whenever the host looks at its memory. */
static void
store_rdt(struct host *h __unused)
{
	CSB_SET(hook_csb, guest_rdt, ++hook_rdt % 16);
}

TEST(bad_ring, "A ring outside guest memory is not used, whatever guest_rdt is")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	unsigned int i;

	host_wr(h, E82545_RDBAH, 1);
	for (i = 0; i < 16; i++) {
		CSB_SET(csb, guest_rdt, i);
		guest_inject(h, 1);
		ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	}
	ATF_CHECK_EQ(16, host_rx_pending(h));
	host_wr(h, E82545_RDH, 99);
	CSB_SET(csb, guest_rdt, 3);
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	ATF_CHECK_EQ(16, host_rx_pending(h));
	host_destroy(h);
}

TEST(bad_ring_looks, "Nor if it changes whenever the host looks")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);

	/* The ring is empty: each index posts one more. */
	guest_inject(h, 15);
	host_wr(h, E82545_RDBAH, 1);
	guest_offer(h, 1);
	hook_csb = csb;
	hook_rdt = 15;
	h->map_hook = store_rdt;
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	ATF_CHECK(hook_rdt > 16);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	host_destroy(h);
}

/* Use all buffers of a ring of 16, and take the frames. */
static void
use_ring(struct host *h)
{
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 15; i++)
		rx_receive(h, frame, sizeof(frame));
	for (i = 0; i < 15; i++)
		check_taken(h, frame, sizeof(frame));
}

/* Use all buffers, post them by guest_rdt, and use them again. */
static void
use_ring_twice(struct host *h, struct paravirt_csb *csb)
{
	use_ring(h);
	guest_give(h, csb);
	host_run(h);
	use_ring(h);
}

/* Post all buffers of a ring that starts again at 0, by RDT, and use them. */
static void
use_from_start(struct host *h)
{
	h->rxnext = 0;
	h->rxtail = 15;
	host_rx_post(h);
	use_ring(h);
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
}

TEST(toggled, "A guest that turns the CSB off, writes RDT, and turns it on "
    "before the next batch has posted its buffers")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);

	use_ring_twice(h, csb);
	CSB_SET(csb, guest_csb_on, 0);
	host_rx_post(h);
	CSB_SET(csb, guest_csb_on, 1);
	use_ring(h);
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
	host_destroy(h);
}

TEST(restarted, "A guest that starts the ring again without a reset has posted "
    "what it writes to RDT, whatever guest_rdt was")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);

	use_ring_twice(h, csb);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_set(h, E82545_RCTL, E82545_RCTL_EN);
	host_wr(h, E82545_RDH, 0);
	use_from_start(h);
	host_destroy(h);
}

TEST(restarted_after, "An RDT that is written just before RDH counts")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);

	use_ring_twice(h, csb);
	host_wr(h, E82545_RDT, 11);
	ATF_CHECK(host_rd(h, E82545_RDT) != 11);
	host_wr(h, E82545_RDH, 0);
	ATF_CHECK_EQ(11, host_rd(h, E82545_RDT));
	guest_inject(h, 20);
	ATF_CHECK_EQ(9, host_rx_pending(h));
	host_destroy(h);
}

TEST(reset, "After a reset RDT counts, though RDH is not written and whatever "
    "guest_rdt was")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	uint32_t rctl = host_rd(h, E82545_RCTL);

	use_ring_twice(h, csb);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	host_wr(h, E82545_CTRL, E82545_CTRL_SLU);
	host_wr(h, E82545_RDBAL, h->rxring);
	host_wr(h, E82545_RDLEN, 16 * sizeof(struct e82545_rxd));
	host_wr(h, E82545_RCTL, rctl);
	use_from_start(h);
	host_destroy(h);
}

TEST(low_saved, "RXDMT0 is suppressed as RXT0 is, and raised when the guest "
    "unmasks it")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);

	CSB_SET(csb, guest_need_rxkick, 0);
	guest_inject(h, 14);
	ATF_CHECK(!host_line(h));
	host_wr(h, E82545_IMS, E82545_ICR_RXDMT0);
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0 | E82545_ICR_RXDMT0,
	    host_rd(h, E82545_ICR));
	host_destroy(h);
}

TEST(lazily_split, "Frames of several fragments do not make the host look for "
    "buffers before it needs them, either")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 16; i++) {
		host_inject(h, frame, sizeof(frame), 2);
		host_run(h);
		check_taken(h, frame, sizeof(frame));
		if (i == 2)
			guest_give(h, csb);
		/* Half of the ring is left after seven frames. */
		ATF_CHECK_EQ(i >= 6, host_counter(h, E82545_C_RX_KICK_SAVED));
	}
	host_destroy(h);
}

/* Another CSB, with the mode on. */
static struct paravirt_csb *
move_csb(struct host *h)
{
	struct paravirt_csb *csb;
	uint64_t gpa;

	gpa = guest_alloc(h, &csb);
	CSB_SET(csb, guest_rdt, h->rxtail);
	CSB_SET(csb, guest_tdt, h->txtail);
	CSB_SET(csb, guest_need_rxkick, 0);
	guest_place(h, gpa);
	CSB_SET(csb, guest_csb_on, 1);
	host_run(h);
	return (csb);
}

TEST(forgotten, "A reset, and a write to CSBAL, discard suppressed causes and "
    "the wish for an interrupt")
{
	struct paravirt_csb *csb;
	struct host *h;
	int i;

	for (i = 0; i < 4; i++) {
		h = guest_up(64, 16, 2048, 1, &csb);
		CSB_SET(csb, guest_need_rxkick, 0);
		if (i % 2 == 0)
			guest_inject(h, 1);
		else
			host_wr(h, E82545_IMS, E82545_ICR_RXT0);
		if (i < 2)
			move_csb(h);
		else {
			host_wr(h, E82545_CTRL, E82545_CTRL_RST);
			host_up(h, 64, 16, 2048);
		}
		host_run(h);
		if (i % 2 == 0)
			host_wr(h, E82545_IMS, E82545_ICR_RXT0);
		else
			guest_inject(h, 1);
		ATF_CHECK_EQ_MSG(0, host_rd(h, E82545_ICR) & E82545_ICR_RXT0,
		    "%d", i);
		host_destroy(h);
	}
}

TEST(taken_away, "When the CSB is taken away, what was written to TDT and RDT "
    "counts, and the adapter can be saved")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);

	use_ring_twice(h, csb);
	guest_frames(h, 3);
	host_tx_go(h);
	host_rx_post(h);
	guest_place(h, 0);
	host_run(h);
	ATF_CHECK_EQ(3, host_sent(h));
	ATF_CHECK_EQ(h->rxtail, host_rd(h, E82545_RDT));
	use_ring(h);
	e82545_pause(h->dev);
	ATF_CHECK(e82545_snapshot_size(h->dev) != 0);
	e82545_resume(h->dev);
	host_destroy(h);
}

TEST(no_block, "Without descriptors frames wait though the CSB is outside "
    "guest memory, or the ring has no size")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	uint8_t frame[60];

	host_wr(h, E82545_RDLEN, 0);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	host_destroy(h);

	h = guest_up(64, 16, 2048, 1, &csb);
	guest_place(h, HOST_RAM);
	guest_inject(h, 16);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	host_destroy(h);
}

TEST(direct, "RDT is the register if the receiver is off, and a kick if it is "
    "on")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);

	use_ring_twice(h, csb);
	guest_give(h, csb);
	host_run(h);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_wr(h, E82545_RDT, 7);
	ATF_CHECK_EQ(7, host_rd(h, E82545_RDT));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, h->dev->csb.rdt.kept);
	host_destroy(h);
}

TEST(old, "An index of an earlier lap does not count, in a ring of any "
    "address")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 2048, 1, &csb);
	uint64_t ring;

	ring = host_alloc(h, 17 * sizeof(struct e82545_rxd), 128) +
	    sizeof(struct e82545_rxd);
	memcpy(host_mem(h, ring, 16 * sizeof(struct e82545_rxd)),
	    host_rxd(h, 0), 16 * sizeof(struct e82545_rxd));
	h->rxring = ring;
	host_wr(h, E82545_RDBAL, ring);
	guest_inject(h, 5);
	ATF_CHECK(host_rx_done(h, 4));
	host_rxd(h, 0)->status = E82545_RXD_DD;
	CSB_SET(csb, guest_rdt, 1);
	guest_inject(h, 20);
	ATF_CHECK_EQ(15, host_rd(h, E82545_RDT));
	ATF_CHECK_EQ(10, host_rx_pending(h));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_KICK_SAVED));
	/* Without memory at that address, nothing shows that it is old. */
	host_wr(h, E82545_RDBAH, 1);
	CSB_SET(csb, guest_rdt, 2);
	host_run(h);
	host_wr(h, E82545_RDT, 2);
	host_run(h);
	ATF_CHECK_EQ(2, host_rd(h, E82545_RDT));
	host_destroy(h);
}

TEST_PROGRAM
