/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The mode changes while frames are on their way.
 */

#include "bed.h"

/*
 * Transmit: frames before, between and after changes.
 */

static void
mode_on_setup(void)
{
	bed_setup(0);
	net->tosend = 2;
}

static void
mode_off_setup(void)
{
	bed_setup(LEM_MODE_CSB);
	net->tosend = 3;
}

static void
mode_twice_setup(void)
{
	bed_setup(LEM_MODE_CSB);
	net->tosend = 4;
}

static void
mode_set(uint32_t mode)
{
	MM_CHECK(lem_set_mode(lc, mode) == 0);
	atomic_store_32(&csb->host_txcycles_lim, 0);
}

static void
mode_send(unsigned int number)
{
	MM_CHECK(guest_send(number));
	lem_tx_flush(lc);
}

static void
mode_on_guest(void)
{
	mode_send(0);
	mode_set(LEM_MODE_CSB);
	mode_send(1);
}

static void
mode_off_guest(void)
{
	mode_send(0);
	mode_send(1);
	mode_set(0);
	mode_send(2);
}

static void
mode_twice_guest(void)
{
	mode_off_guest();
	mode_set(LEM_MODE_CSB);
	mode_send(3);
}

/*
 * Receive: the guest changes the mode in some of its interrupts.
 */

#define	RX_FRAMES	(2 * NDESCS)

static void
mode_rx_setup(void)
{
	bed_setup(0);
	net->offered = NDESCS - 2;
	while (e82545_rx(dev) == E82545_RX_MORE)
		continue;
	net->offered = RX_FRAMES;
	mm_set(&intr);
}

static void
mode_rx_guest(void)
{
	static const uint32_t mode[3] = { LEM_MODE_CSB, 0, LEM_MODE_CSB };
	unsigned int budget, changes = 0;

	while (lc->lc_os.received < RX_FRAMES) {
		mm_wait(&intr);
		(void)lem_intr(lc);
		do {
			do {
				if (changes < 3 && mm_rand(3) == 0)
					mode_set(mode[changes++]);
				budget = 1 + mm_rand(NDESCS);
			} while (lem_rx(lc, budget) == budget);
		} while (lem_intr_enable(lc));
	}
}

/*
 * Polling is turned on while an interrupt is handled: none must come later.
 */

static void
poll_setup(void)
{
	bed_setup(0);
	lem_os_write(lc, E82545_ICS, E82545_ICR_RXT0);
}

static void
poll_mode(void)
{
	MM_CHECK(lem_set_mode(lc, LEM_MODE_POLL) == 0);
}

static void
poll_intr(void)
{
	mm_wait(&intr);
	(void)lem_intr(lc);
	(void)lem_intr_enable(lc);
}

static void
poll_check(void)
{
	MM_CHECK(e82545_read(dev, E82545_BAR_MEM, E82545_IMS, 4) == 0);
}

const struct mm_scenario mode_scenarios[] = {
	{ "mode_on", "the guest turns the CSB on while it sends", 2,
	  mode_on_setup, { mode_on_guest, host_tx }, NULL },
	{ "mode_off", "the guest turns the CSB off while it sends", 2,
	  mode_off_setup, { mode_off_guest, host_tx }, NULL },
	{ "mode_twice", "the guest turns the CSB off and on while it sends", 2,
	  mode_twice_setup, { mode_twice_guest, host_tx }, NULL },
	{ "mode_rx", "the guest turns the CSB on, off and on while it receives",
	  2, mode_rx_setup, { mode_rx_guest, host_rx }, NULL },
	{ "poll", "polling is turned on in an interrupt", 2,
	  poll_setup, { poll_mode, poll_intr }, poll_check },
	{ NULL, NULL, 0, NULL, { NULL }, NULL }
};
