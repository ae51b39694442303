/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Transmit: kicks, completions, and the interrupts that announce them.
 */

#include "bed.h"

/*
 * Kicks: the guest sends while the host goes to sleep.
 */

static void
tx_kick_setup(void)
{
	bed_setup(LEM_MODE_CSB);
	net->tosend = 2;
}

static void
tx_kick_guest(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		MM_CHECK(guest_send(i));
		lem_tx_flush(lc);
	}
}

/*
 * Completions: the ring is full, and the guest waits for descriptors.
 */

static void
tx_done_setup(void)
{
	bed_setup(LEM_MODE_CSB);
	guest_fill();
	net->tosend = NDESCS;
}

static void
tx_done_guest(void)
{
	guest_send_all(NDESCS - 1, NDESCS - 1);
}

/* The same for a guest that sets guest_txkick_at, as paravirt_csb(9) says. */
static void
tx_at_setup(void)
{
	tx_done_setup();
	net->tosend = NDESCS - 1;
}

static void
tx_at_guest(void)
{
	put(&csb->guest_need_txkick, 0);
	put(&csb->guest_txkick_at, NDESCS - 2);
	barrier();
	while (get(&csb->host_tdh) != NDESCS - 1)
		mm_wait(&intr);
	/* What the head has passed is the guest's again. */
	memset(ram + GPA_TXBUF, 0, LEN);
	memset(&lc->lc_txd[0].addr, 0, sizeof(lc->lc_txd[0].addr));
}

/* The same by the driver: somebody waits until all packets are sent. */
static void
tx_report_guest(void)
{
	lem_tx_report(lc);
	while (!lem_tx_idle(lc)) {
		mm_wait(&intr);
		(void)lem_intr(lc);
		do {
			lem_tx_clean(lc);
			lem_tx_report(lc);
		} while (lem_intr_enable(lc));
	}
}

/*
 * Without the CSB: registers, and the status bytes of descriptors.
 */

static void
tx_regs_setup(void)
{
	bed_setup(0);
	/* Without a block, TDT is not kept aside. */
	lem_os_write(lc, E82545_CSBAL, 0);
	guest_fill();
	net->tosend = NDESCS + 1;
}

static void
tx_regs_guest(void)
{
	guest_send_all(NDESCS - 1, NDESCS);
}

/*
 * Lazy completions: transmit interrupts are unmasked only if the ring is short.
 * One thread of the guest sends, another one handles interrupts.
 */

static pthread_mutex_t tx_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mm_event room;

static void
lazy_setup(void)
{
	bed_setup(LEM_MODE_LAZY);
	guest_fill();
	net->tosend = NDESCS;
	lem_os_write(lc, E82545_ICS, E82545_ICR_RXT0);
}

static void
lazy_send(void)
{
	pthread_mutex_lock(&tx_lock);
	while (!guest_send(NDESCS - 1)) {
		pthread_mutex_unlock(&tx_lock);
		mm_wait(&room);
		pthread_mutex_lock(&tx_lock);
	}
	lem_tx_flush(lc);
	net->offered = 1;
	pthread_mutex_unlock(&tx_lock);
	mm_set(&intr);
}

static void
lazy_intr(void)
{
	bool done;

	do {
		mm_wait(&intr);
		(void)lem_intr(lc);
		do {
			pthread_mutex_lock(&tx_lock);
			if (lem_tx_clean(lc) > 0)
				mm_set(&room);
			done = net->offered == 1;
			pthread_mutex_unlock(&tx_lock);
		} while (lem_intr_enable(lc));
	} while (!done);
}

/* A report: the thread that sends waits until its packet is sent. */

static void
lazy_report_setup(void)
{
	bed_setup(LEM_MODE_LAZY);
	net->tosend = 1;
	lem_os_write(lc, E82545_ICS, E82545_ICR_RXT0);
}

static void
lazy_report_send(void)
{
	pthread_mutex_lock(&tx_lock);
	MM_CHECK(guest_send(0));
	lem_tx_flush(lc);
	lem_tx_report(lc);
	while (!lem_tx_idle(lc)) {
		pthread_mutex_unlock(&tx_lock);
		mm_wait(&room);
		pthread_mutex_lock(&tx_lock);
	}
	net->offered = 1;
	pthread_mutex_unlock(&tx_lock);
	mm_set(&intr);
}

const struct mm_scenario tx_scenarios[] = {
	{ "tx_kick", "the guest sends, the host goes to sleep", 2,
	  tx_kick_setup, { tx_kick_guest, host_tx }, NULL },
	{ "tx_done", "the ring is full; guest_need_txkick", 2,
	  tx_done_setup, { tx_done_guest, host_tx }, NULL },
	{ "tx_at", "the ring is full; guest_txkick_at", 2,
	  tx_at_setup, { tx_at_guest, host_tx }, NULL },
	{ "tx_report", "packets are awaited", 2,
	  tx_at_setup, { tx_report_guest, host_tx }, NULL },
	{ "tx_regs", "transmit without the CSB", 2,
	  tx_regs_setup, { tx_regs_guest, host_tx }, NULL },
	{ "lazy", "the ring is full; LEM_MODE_LAZY", 3,
	  lazy_setup, { lazy_send, lazy_intr, host_tx }, NULL },
	{ "lazy_report", "a packet is awaited; LEM_MODE_LAZY", 3,
	  lazy_report_setup, { lazy_report_send, lazy_intr, host_tx }, NULL },
	{ NULL, NULL, 0, NULL, { NULL }, NULL }
};
