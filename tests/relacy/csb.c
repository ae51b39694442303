/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB: the driver's core and the model, each in a thread or two.  A scenario
 * ends when all frames have arrived; a kick or interrupt that got lost is a
 * deadlock, because then both sides wait.  Descriptors and frames are plain
 * memory, so an index that is seen before what it stands for is a data race.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <net/paravirt.h>

#include "e82545.h"
#include "frame_port.h"
#include "lem_core.h"
#include "lem_impl.h"

#define	NDESCS		8	/* the shortest ring that the model accepts */
#define	LEN		60	/* bytes of a frame */
#define	STRIDE		64

/* Guest memory. */
#define	GPA_TXD		0x1000
#define	GPA_RXD		0x2000
#define	GPA_CSB		0x3000
#define	GPA_TXBUF	0x4000
#define	GPA_RXBUF	0x5000
#define	RAM		0x48000

static uint8_t *ram;
static struct e82545 *dev;
static struct lem_core *lc;
static struct paravirt_csb *csb;

/* What both sides tell each other, besides through the CSB. */
static struct mm_event intr, tx_kick, rx_ready;

/* The network.  Threads own what they write. */
static struct net {
	struct frame_port port;
	struct frame_source source;
	unsigned int	sent;		/* frames that the host has sent */
	unsigned int	tosend;		/* in all */
	unsigned int	offered;	/* frames that came in, */
	unsigned int	taken;		/* of them, taken by the model */
	uint8_t		frame[LEN];
} *net;

/*
 * The host.
 */

static void *
host_map(void *arg __unused, uint64_t gpa, size_t len)
{
	return (gpa < RAM && len <= RAM - gpa ? ram + gpa : NULL);
}

static void
host_intr(void *arg __unused, bool asserted)
{
	if (asserted)
		mm_set(&intr);
}

static uint64_t
host_now(void *arg __unused)
{
	return (1000000);
}

static void
host_timer(void *arg __unused, uint64_t when_ns __unused)
{
}

static void
host_tx_kick(void *arg __unused)
{
	mm_set(&tx_kick);
}

static void
host_rx_ready(void *arg __unused)
{
	mm_set(&rx_ready);
}

static const struct e82545_ops host_ops = {
	host_map, host_intr, host_now, host_timer, host_tx_kick, host_rx_ready
};

/* The frame of number `n' from the guest: is it complete? */
static bool
net_send(struct frame_port *port __unused, const struct frame *frame)
{
	const uint8_t *p = frame->f_iov[0].iov_base;

	MM_CHECK(frame->f_len == LEN && p[20] == net->sent);
	net->sent++;
	return (true);
}

static void
net_nothing(struct frame_port *port __unused)
{
}

static bool
net_peek(struct frame_source *source __unused, struct frame *frame)
{
	if (net->taken == net->offered)
		return (false);
	frame->f_iov[0].iov_base = net->frame;
	frame->f_iov[0].iov_len = LEN;
	frame_set(frame, 1, LEN);
	return (true);
}

static void
net_next(struct frame_source *source __unused)
{
	net->taken++;
	net->frame[20] = net->taken;
}

static const struct frame_port_ops net_ops = {
	.fpo_send = net_send,
	.fpo_flush = net_nothing,
	.fpo_sync = net_nothing
};

/*
 * The guest: lem_os.h.
 */

uint32_t
lem_os_read(struct lem_core *core __unused, uint32_t reg)
{
	return (e82545_read(dev, E82545_BAR_MEM, reg, 4));
}

void
lem_os_write(struct lem_core *core __unused, uint32_t reg, uint32_t value)
{
	e82545_write(dev, E82545_BAR_MEM, reg, 4, value);
}

void
lem_os_tx_done(struct lem_core *core, uint32_t slot __unused)
{
	LEM_OS(core)->tx_done++;
}

uint64_t
lem_os_rx_buf(struct lem_core *core __unused, uint32_t slot)
{
	return (GPA_RXBUF + slot * 2048);
}

bool
lem_os_rx(struct lem_core *core, uint32_t slot, uint32_t len, uint32_t flags,
    uint16_t vlan __unused)
{
	struct lem_os *os = LEM_OS(core);
	uint8_t *p = ram + lem_os_rx_buf(core, slot);

	MM_CHECK(flags == (LEM_RX_SOP | LEM_RX_EOP));
	MM_CHECK(len == LEN && p[20] == os->received);
	os->received++;
	memset(p, 0, LEN);
	return (false);
}

/* Send a frame.  Returns whether there was space for it. */
static bool
guest_send(unsigned int number)
{
	uint32_t gpa = GPA_TXBUF + lc->lc_tx_tail * STRIDE;
	struct lem_seg seg = { gpa, LEN };
	struct lem_packet lp = { .lp_segs = &seg, .lp_nsegs = 1 };

	if (lem_tx_avail(lc) == 0)
		lem_tx_clean(lc);
	if (lem_tx_avail(lc) == 0)
		lem_tx_wait(lc, 1);
	if (lem_tx_avail(lc) == 0)
		return (false);
	memset(ram + gpa, 2, 12);
	ram[gpa + 20] = number;
	MM_CHECK(lem_tx(lc, &lp) == 0);
	return (true);
}

/* A guest with rings of NDESCS and the CSB on; the host sleeps. */
static void
setup_mode(uint32_t mode)
{
	static const struct e82545_config config = {
		.ec_mac = { 2, 0, 0, 0, 0, 1 }, .ec_csb = true
	};
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };

	ram = mm_alloc(RAM, 4096);
	net = mm_alloc(sizeof(*net), 64);
	net->port.fp_ops = &net_ops;
	net->source.fs_peek = net_peek;
	net->source.fs_next = net_next;
	net->port.fp_source = &net->source;
	net->port.fp_frame_max = E82545_FRAME_MAX;
	memset(net->frame, 0xff, 6);
	mm_words(ram + GPA_TXD, NDESCS * 16);
	mm_words(ram + GPA_RXD, NDESCS * 16);
	dev = e82545_create(&config, &host_ops, NULL, &net->port);
	e82545_bus_master(dev, true);

	lc = mm_alloc(sizeof(*lc), 64);
	lc->lc_txd = (void *)(ram + GPA_TXD);
	lc->lc_txd_dma = GPA_TXD;
	lc->lc_ntxd = LEM_RING_MIN;
	lc->lc_rxd = (void *)(ram + GPA_RXD);
	lc->lc_rxd_dma = GPA_RXD;
	lc->lc_nrxd = LEM_RING_MIN;
	lc->lc_rx_bufsize = 2048;
	lc->lc_csb = csb = (void *)(ram + GPA_CSB);
	lc->lc_csb_dma = GPA_CSB;
	lc->lc_msi = true;
	MM_CHECK(lem_start(lc, mac, 1500) == 0);
	/* Shorten the rings, which the driver does not let us do. */
	lem_os_write(lc, E82545_TCTL, 0);
	lem_os_write(lc, E82545_RCTL, 0);
	lem_os_write(lc, E82545_TDLEN, NDESCS * 16);
	lem_os_write(lc, E82545_RDLEN, NDESCS * 16);
	lc->lc_ntxd = lc->lc_nrxd = NDESCS;
	lc->lc_rx_tail = lc->lc_rx_posted = NDESCS - 1;
	lem_os_write(lc, E82545_RDT, NDESCS - 1);
	lem_os_write(lc, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	lem_os_write(lc, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC);
	MM_CHECK(lem_set_mode(lc, mode) == 0);
	csb->host_txcycles_lim = 0;
	lem_intr_enable(lc);
	while (e82545_tx(dev) != E82545_TX_IDLE)
		continue;
	while (e82545_rx(dev) == E82545_RX_MORE)
		continue;
	(void)lem_intr(lc);
	lem_rx(lc, NDESCS);
	lem_tx_clean(lc);
	(void)lem_intr_enable(lc);
	mm_clear(&intr);
	mm_clear(&tx_kick);
	mm_clear(&rx_ready);
}

static void
setup(void)
{
	setup_mode(LEM_MODE_CSB);
}

/* The transmit thread, until all frames are sent. */
static void
host_tx(void)
{
	enum e82545_tx_state state;

	while (net->sent < net->tosend) {
		state = e82545_tx(dev);
		if (net->sent == net->tosend)
			break;
		if (state == E82545_TX_IDLE)
			mm_wait(&tx_kick);
		else if (state != E82545_TX_MORE)
			mm_yield();
	}
}

/* The receive thread, until the guest has all frames. */
static void
host_rx(void)
{
	while (net->taken < net->offered) {
		if (e82545_rx(dev) == E82545_RX_STALLED)
			mm_wait(&rx_ready);
	}
}

/*
 * Kicks: the guest sends while the host goes to sleep.
 */

static void
tx_kick_setup(void)
{
	setup();
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
	unsigned int i;

	setup();
	for (i = 0; i < NDESCS - 1; i++) {
		MM_CHECK(guest_send(i));
		lem_tx_flush(lc);
	}
	net->tosend = NDESCS;
}

static void
tx_done_guest(void)
{
	unsigned int i = NDESCS - 1;

	for (;;) {
		if (guest_send(i)) {
			lem_tx_flush(lc);
			break;
		}
		mm_wait(&intr);
		(void)lem_intr(lc);
		lem_tx_clean(lc);
		while (lem_intr_enable(lc))
			lem_tx_clean(lc);
	}
}

/* The same for a guest that sets guest_txkick_at, as paravirt_csb(9) says. */
static void
tx_at_guest(void)
{
	atomic_store_rel_32(&csb->guest_need_txkick, 0);
	atomic_store_rel_32(&csb->guest_txkick_at, NDESCS - 2);
	atomic_thread_fence_seq_cst();
	while (atomic_load_acq_32(&csb->host_tdh) != NDESCS - 1)
		mm_wait(&intr);
	/* What the head has passed is the guest's again. */
	memset(ram + GPA_TXBUF, 0, LEN);
	memset(&lc->lc_txd[0].addr, 0, sizeof(lc->lc_txd[0].addr));
}

static void
tx_at_setup(void)
{
	tx_done_setup();
	net->tosend = NDESCS - 1;
}

/*
 * Receive interrupts: the guest goes to sleep while frames arrive.
 */

static void
rx_notify_setup(void)
{
	setup();
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
	while (lc->lc_os.received < n) {
		lem_rx(lc, NDESCS);
		if (lc->lc_os.received == n)
			break;
		mm_wait(&intr);
		do {
			(void)lem_intr(lc);
		} while (lem_intr_enable(lc));
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
	setup();
	net->offered = NDESCS - 2;
	while (e82545_rx(dev) == E82545_RX_MORE)
		continue;
	net->offered = RX_POST;
}

static void
rx_post_guest(void)
{
	guest_rx(RX_POST);
}

/*
 * Without the CSB: registers, and the status bytes of descriptors.
 */

static void
tx_regs_setup(void)
{
	unsigned int i;

	setup_mode(0);
	for (i = 0; i < NDESCS - 1; i++) {
		MM_CHECK(guest_send(i));
		lem_tx_flush(lc);
	}
	net->tosend = NDESCS + 1;
}

static void
tx_regs_guest(void)
{
	unsigned int i;

	for (i = NDESCS - 1; i < NDESCS + 1; ) {
		if (guest_send(i)) {
			lem_tx_flush(lc);
			i++;
			continue;
		}
		mm_wait(&intr);
		(void)lem_intr(lc);
		lem_tx_clean(lc);
		while (lem_intr_enable(lc))
			lem_tx_clean(lc);
	}
}

static void
rx_regs_setup(void)
{
	setup_mode(0);
	net->offered = NDESCS - 2;
	while (e82545_rx(dev) == E82545_RX_MORE)
		continue;
	net->offered = RX_POST;
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
 * The mode changes while frames are on their way.
 */

static void
mode_on_setup(void)
{
	setup_mode(0);
	net->tosend = 2;
}

static void
mode_guest(uint32_t mode)
{
	MM_CHECK(guest_send(0));
	lem_tx_flush(lc);
	MM_CHECK(lem_set_mode(lc, mode) == 0);
	atomic_store_32(&csb->host_txcycles_lim, 0);
	MM_CHECK(guest_send(1));
	lem_tx_flush(lc);
}

static void
mode_on_guest(void)
{
	mode_guest(LEM_MODE_CSB);
}

static void
mode_off_guest(void)
{
	mode_guest(0);
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
	unsigned int i;

	setup_mode(LEM_MODE_LAZY);
	for (i = 0; i < NDESCS - 1; i++) {
		MM_CHECK(guest_send(i));
		lem_tx_flush(lc);
	}
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

/* Polling is turned on while an interrupt is handled: none must come later. */
static void
poll_setup(void)
{
	setup_mode(0);
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

/* Frames looped back: from the transmit to the receive thread. */
static void
loop_setup(void)
{
	setup();
	lem_os_write(lc, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_UPE | E82545_RCTL_SECRC | E82545_RCTL_LBM_MAC);
	while (e82545_rx(dev) == E82545_RX_MORE)
		continue;
	mm_clear(&intr);
	mm_clear(&rx_ready);
}

static void
loop_tx(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		MM_CHECK(guest_send(i));
		lem_tx_flush(lc);
		while (e82545_tx(dev) != E82545_TX_IDLE)
			continue;
	}
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

const struct mm_scenario csb_scenarios[] = {
	{ "tx_kick", "the guest sends, the host goes to sleep", 2,
	  tx_kick_setup, { tx_kick_guest, host_tx }, NULL },
	{ "tx_done", "the ring is full; guest_need_txkick", 2,
	  tx_done_setup, { tx_done_guest, host_tx }, NULL },
	{ "tx_at", "the ring is full; guest_txkick_at", 2,
	  tx_at_setup, { tx_at_guest, host_tx }, NULL },
	{ "rx_notify", "frames arrive, the guest goes to sleep", 2,
	  rx_notify_setup, { rx_notify_guest, rx_notify_host }, NULL },
	{ "rx_post", "the guest returns buffers, the host stalls", 2,
	  rx_post_setup, { rx_post_guest, host_rx }, NULL },
	{ "tx_regs", "transmit without the CSB", 2,
	  tx_regs_setup, { tx_regs_guest, host_tx }, NULL },
	{ "rx_regs", "receive without the CSB", 2,
	  rx_regs_setup, { rx_regs_guest, host_rx }, NULL },
	{ "mode_on", "the guest turns the CSB on while it sends", 2,
	  mode_on_setup, { mode_on_guest, host_tx }, NULL },
	{ "mode_off", "the guest turns the CSB off while it sends", 2,
	  tx_kick_setup, { mode_off_guest, host_tx }, NULL },
	{ "lazy", "the ring is full; LEM_MODE_LAZY", 3,
	  lazy_setup, { lazy_send, lazy_intr, host_tx }, NULL },
	{ "poll", "polling is turned on in an interrupt", 2,
	  poll_setup, { poll_mode, poll_intr }, poll_check },
	{ "loop", "frames looped back", 2,
	  loop_setup, { loop_tx, loop_rx }, NULL },
	{ NULL, NULL, 0, NULL, { NULL }, NULL }
};
