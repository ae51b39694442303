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

HOST_TEST(need_kick, guest_up(64, 64, 2048, 1), "An RX interrupt comes only if "
    "guest_need_rxkick asks for it")
{
	unsigned int i;

	guest_inject(h, 1);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR));
	CSB_SET(h, guest_need_rxkick, 0);
	for (i = 1; i <= 20; i++) {
		guest_inject(h, 1);
		ATF_CHECK_EQ(i, host_counter(h, E82545_C_INTR_SAVED));
		ATF_CHECK_EQ(1 + i, CSB_GET(h, host_rdh));
		ATF_CHECK_EQ(1 + i, host_rd(h, E82545_RDH));
	}
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(21, guest_take(h, 100));
	CSB_SET(h, guest_need_rxkick, 2);
	guest_inject(h, 1);
	ATF_CHECK_EQ(2, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0, CSB_GET(h, host_isr));
}

HOST_TEST(numbers, guest_up(64, 64, 2048, 1), "A request with a number is "
    "interrupted for once, whether or not ICR was read")
{
	unsigned int i;

	CSB_SET(h, pad[0], 1);
	for (i = 1; i <= 3; i++) {
		CSB_SET(h, guest_need_rxkick, 2 * i + 1);
		guest_inject(h, 1);
		ATF_CHECK_EQ(i, host_raised(h));
		ATF_CHECK_EQ(2 * i + 1, CSB_GET(h, pad[8]));
		ATF_CHECK_EQ(0, CSB_GET(h, pad[7]));
		guest_inject(h, 1);
		CSB_SET(h, guest_need_rxkick, 0);
		guest_inject(h, 1);
		ATF_CHECK_EQ(i, host_raised(h));
		ATF_CHECK_EQ(2 * i, host_counter(h, E82545_C_INTR_SAVED));
	}
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0, CSB_GET(h, host_isr));
	/* Causes of others do not keep it from being sent. */
	host_wr(h, E82545_ICS, E82545_ICR_LSC);
	CSB_SET(h, guest_need_rxkick, 9);
	guest_inject(h, 1);
	ATF_CHECK_EQ(4, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR));
	/* Without numbers, or with the mode off, ICR must be read. */
	for (i = 0; i < 2; i++) {
		CSB_SET(h, pad[0], i);
		CSB_SET(h, guest_csb_on, 1 - i);
		guest_inject(h, 1);
		ATF_CHECK_EQ(5 + i, host_raised(h));
		CSB_SET(h, guest_need_rxkick, 11 + 2 * i);
		guest_inject(h, 1);
		ATF_CHECK_EQ(5 + i, host_raised(h));
		host_rd(h, E82545_ICR);
	}
	ATF_CHECK_EQ(9, CSB_GET(h, pad[8]));
}

HOST_TEST(dry, guest_up(64, 16, 2048, 1), "An empty ring asks for one kick, at "
    "three quarters of its buffers")
{
	unsigned int i, kicks, lap;

	CSB_SET(h, guest_need_rxkick, 0);
	kicks = host_counter(h, E82545_C_RX_KICK);
	guest_inject(h, 15 + 12 * 10);
	for (lap = 1; lap <= 10; lap++) {
		ATF_CHECK_EQ(lap, host_counter(h, E82545_C_RX_STALL));
		ATF_CHECK_EQ(12 * (11 - lap), host_rx_pending(h));
		ATF_CHECK_EQ((host_rd(h, E82545_RDH) + 12) % 16,
		    CSB_GET(h, host_rxkick_at));
		for (i = 1; i <= 12; i++) {
			ATF_CHECK_EQ(1, guest_take(h, 1));
			h->ready = false;
			ATF_CHECK_EQ_MSG(i == 12, guest_give(h), "%u", i);
			ATF_CHECK_EQ(i == 12, h->ready);
		}
		ATF_CHECK_EQ(kicks + lap, host_counter(h, E82545_C_RX_KICK));
		host_run(h);
	}
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, CSB_GET(h, host_rxkick_at));
	ATF_CHECK_EQ(135, host_counter(h, E82545_C_RX_FRAME));
}

/* The CSB is where guest_up() put it. */

static void
give_one(struct host *h)
{
	CSB_SET(h, guest_rdt, (host_rd(h, E82545_RDT) + 1) % h->nrxd);
}

HOST_TEST(not_dry, guest_up(64, 16, 2048, 1), "A buffer posted while the ring "
    "runs empty is found without a kick")
{
	h->intr_hook = give_one;
	guest_inject(h, 16);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_RX_STALL));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_KICK));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_KICK_SAVED));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, CSB_GET(h, host_rxkick_at));
}

static void
turn_off(struct host *h)
{
	CSB_SET(h, guest_csb_on, 0);
}

HOST_TEST(off_in_batch, guest_up(64, 16, 2048, 1), "When the CSB is turned off "
    "within a batch, the interrupt comes")
{
	CSB_SET(h, guest_need_rxkick, 0);
	h->rx_hook = turn_off;
	guest_inject(h, 1);
	ATF_CHECK_EQ(E82545_ICR_RXT0, host_rd(h, E82545_ICR));
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
	CSB_SET(h, guest_csb_on, 0);
	host_tx_go(h);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	host_wr(h, E82545_RDT, back_to);
	ATF_CHECK_EQ(back_to, host_rd(h, E82545_RDT));
	CSB_SET(h, guest_rdt, back_to + 4);
}

HOST_TEST(taken_back, guest_up(64, 64, 2048, 1), "Buffers that the guest takes "
    "back within a batch are not used twice")
{
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
}

HOST_TEST(low_taken_back, guest_up(64, 64, 2048, 1), "RXDMT0 is set if the "
    "guest takes back buffers that the batch has used")
{
	back_at = 30;
	back_to = 1;
	host_wr(h, E82545_RDH, host_rd(h, E82545_RDH));
	h->rx_hook = take_back;
	guest_inject(h, 40);
	ATF_CHECK_EQ(40, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK_EQ(E82545_ICR_RXT0 | E82545_ICR_RXDMT0,
	    host_rd(h, E82545_ICR) & (E82545_ICR_RXT0 | E82545_ICR_RXDMT0));
}

TEST(forgotten, "A reset, and a write to CSBAL, discard suppressed causes and "
    "the wish for an interrupt")
{
	struct host *h;
	int i;

	for (i = 0; i < 4; i++) {
		h = guest_up(64, 16, 2048, 1);
		CSB_SET(h, guest_need_rxkick, 0);
		if (i % 2 == 0)
			guest_inject(h, 1);
		else
			host_wr(h, E82545_IMS, E82545_ICR_RXT0);
		if (i < 2) {
			guest_move(h);
			CSB_SET(h, guest_need_rxkick, 0);
		} else {
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

TEST(no_block, "Without descriptors frames wait though the CSB is outside "
    "guest memory, or the ring has no size")
{
	struct host *h = guest_up(64, 16, 2048, 1);
	uint8_t frame[60];

	host_wr(h, E82545_RDLEN, 0);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	rx_receive(h, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	host_destroy(h);

	h = guest_up(64, 16, 2048, 1);
	guest_place(h, HOST_RAM);
	guest_inject(h, 16);
	ATF_CHECK_EQ(1, host_rx_pending(h));
	host_destroy(h);
}

TEST_PROGRAM
