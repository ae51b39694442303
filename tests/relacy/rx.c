/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Receive: interrupts, buffers, frames looped back.
 */

#include "bed.h"

/* Start, with a ring that the host has nearly used up. */
static void
rx_setup(uint32_t mode, unsigned int offered)
{
	bed_setup(mode);
	net->offered = NDESCS - 2;
	while (e82545_rx(dev) == E82545_RX_MORE)
		continue;
	net->offered = offered;
}

/*
 * Receive interrupts: the guest goes to sleep while frames arrive.
 */

static void
rx_notify_setup(void)
{
	bed_setup(LEM_MODE_CSB);
	net->offered = 2;
}

/* Frames one by one. */
static void
rx_notify_host(void)
{
	unsigned int n;

	for (n = net->offered, net->offered = 1; ; net->offered++) {
		host_rx();
		if (net->offered == n)
			break;
	}
}

static void
guest_rx(unsigned int n)
{
	for (;;) {
		do {
			lem_rx(lc, NDESCS);
			if (lc->lc_os.received == n)
				return;
		} while (lem_intr_enable(lc));
		mm_wait(&intr);
		(void)lem_intr(lc);
	}
}

static void
rx_notify_guest(void)
{
	guest_rx(2);
}

/*
 * Receive buffers: the ring is nearly used up, and the host stalls.
 */

#define	RX_POST		(NDESCS + 2)

static void
rx_post_setup(void)
{
	rx_setup(LEM_MODE_CSB, RX_POST);
}

static void
rx_post_guest(void)
{
	guest_rx(RX_POST);
}

/*
 * Other drivers, which write RDT for each buffer, or look for frames by
 * host_rdh instead of DD.
 */

static bool
other_frame(uint32_t slot, bool by_head)
{
	uint64_t rest;

	if (by_head)
		return (get(&csb->host_rdh) != slot);
	rest = atomic_load_64(&lc->lc_rxd[slot].rest);
	mm_fence(__ATOMIC_ACQUIRE, NULL);
	return ((rest & E82545_REST_STATUS(E82545_RXD_DD)) != 0);
}

static void
other_rx(bool by_head)
{
	unsigned int i;
	uint32_t slot;

	/* Their requests have no numbers. */
	atomic_store_32(&E82545_CSB_GUEST_NUMBERS(csb), 0);
	for (i = 0; i < RX_POST; i++) {
		slot = i % NDESCS;
		while (!other_frame(slot, by_head)) {
			put(&csb->guest_need_rxkick, 1);
			barrier();
			if (other_frame(slot, by_head))
				break;
			mm_wait(&intr);
			(void)lem_os_read(lc, E82545_ICR);
		}
		guest_check(slot, i);
		memset(&lc->lc_rxd[slot].rest, 0,
		    sizeof(lc->lc_rxd[slot].rest));
		lc->lc_rxd[slot].addr = lem_os_rx_buf(lc, slot);
		put(&csb->guest_rdt, slot);
		lem_os_write(lc, E82545_RDT, slot);
	}
}

static void
rx_kicks_guest(void)
{
	other_rx(false);
}

static void
rx_head_guest(void)
{
	other_rx(true);
}

/*
 * Without the CSB.
 */

static void
rx_regs_setup(void)
{
	rx_setup(0, RX_POST);
	mm_set(&intr);
}

static void
rx_regs_guest(void)
{
	while (lc->lc_os.received < RX_POST) {
		mm_wait(&intr);
		(void)lem_intr(lc);
		do {
			lem_rx(lc, NDESCS);
		} while (lem_intr_enable(lc));
	}
}

/*
 * Frames looped back: from the transmit to the receive thread.
 */

static void
loop_setup(void)
{
	bed_setup(LEM_MODE_CSB);
	lem_os_write(lc, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_UPE | E82545_RCTL_SECRC | E82545_RCTL_LBM_MAC);
	while (e82545_rx(dev) == E82545_RX_MORE)
		continue;
	mm_clear(&intr);
	mm_clear(&rx_ready);
}

static void
loop_send(unsigned int number)
{
	MM_CHECK(guest_send(number));
	lem_tx_flush(lc);
	while (e82545_tx(dev) != E82545_TX_IDLE)
		continue;
}

static void
loop_tx(void)
{
	loop_send(0);
	loop_send(1);
}

static void
loop_rx(void)
{
	enum e82545_rx_state state;

	while (lc->lc_os.received < 2) {
		state = e82545_rx(dev);
		lem_rx(lc, NDESCS);
		if (lc->lc_os.received < 2 && state != E82545_RX_MORE)
			mm_wait(&rx_ready);
	}
}

/* The queue is full, and drops frames until the receive thread takes some. */
#define	LOOP_FRAMES	256

static void
loop_full_setup(void)
{
	unsigned int i;

	loop_setup();
	for (i = 0; i < LOOP_FRAMES; i++)
		loop_send(i);
	mm_clear(&rx_ready);
}

static void
loop_full_rx(void)
{
	while (lc->lc_os.received < 2) {
		(void)e82545_rx(dev);
		lem_rx(lc, NDESCS);
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

const struct mm_scenario rx_scenarios[] = {
	{ "rx_notify", "frames arrive, the guest goes to sleep", 2,
	  rx_notify_setup, { rx_notify_guest, rx_notify_host }, NULL },
	{ "rx_post", "the guest returns buffers, the host stalls", 2,
	  rx_post_setup, { rx_post_guest, host_rx }, NULL },
	{ "rx_kicks", "the guest kicks for each buffer", 2,
	  rx_post_setup, { rx_kicks_guest, rx_notify_host }, NULL },
	{ "rx_head", "the guest looks for frames by host_rdh", 2,
	  rx_post_setup, { rx_head_guest, host_rx }, NULL },
	{ "rx_regs", "receive without the CSB", 2,
	  rx_regs_setup, { rx_regs_guest, host_rx }, NULL },
	{ "loop", "frames looped back", 2,
	  loop_setup, { loop_tx, loop_rx }, NULL },
	{ "loop_full", "frames looped back, the queue is full", 2,
	  loop_full_setup, { loop_tx, loop_full_rx }, NULL },
	{ "poll", "polling is turned on in an interrupt", 2,
	  poll_setup, { poll_mode, poll_intr }, poll_check },
	{ NULL, NULL, 0, NULL, { NULL }, NULL }
};
