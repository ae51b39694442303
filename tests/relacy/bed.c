/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See bed.h.
 */

#include "bed.h"

/* Guest memory. */
#define	GPA_TXD		0x1000
#define	GPA_RXD		0x2000
#define	GPA_CSB		0x3000
#define	RAM		0x48000

uint8_t *ram;
struct e82545 *dev;
struct lem_core *lc;
struct paravirt_csb *csb;
struct mm_event intr, tx_kick, rx_ready;
struct net *net;

/*
 * The host.
 */

static void *
host_map(void *arg __unused, uint64_t gpa, size_t len,
    unsigned int access __unused)
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
	.eo_map = host_map,
	.eo_intr = host_intr,
	.eo_now = host_now,
	.eo_timer = host_timer,
	.eo_tx_kick = host_tx_kick,
	.eo_rx_ready = host_rx_ready,
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
	return (GPA_RXBUF + slot * RX_STRIDE);
}

void
guest_check(uint32_t slot, unsigned int number)
{
	uint8_t *p = ram + GPA_RXBUF + slot * RX_STRIDE;

	MM_CHECK(p[20] == (uint8_t)number);
	memset(p, 0, LEN);
}

bool
lem_os_rx(struct lem_core *core, uint32_t slot, uint32_t len, uint32_t flags,
    uint16_t vlan __unused)
{
	MM_CHECK(flags == (LEM_RX_SOP | LEM_RX_EOP) && len == LEN);
	guest_check(slot, LEM_OS(core)->received++);
	return (false);
}

bool
guest_send(unsigned int number)
{
	uint32_t gpa = GPA_TXBUF + lc->lc_tx_tail * STRIDE;
	struct lem_seg seg = { gpa, LEN };
	struct lem_packet lp = { .lpk_segs = &seg, .lpk_nsegs = 1 };

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

void
guest_fill(void)
{
	unsigned int i;

	for (i = 0; i < NDESCS - 1; i++) {
		MM_CHECK(guest_send(i));
		lem_tx_flush(lc);
	}
}

void
guest_send_all(unsigned int first, unsigned int last)
{
	unsigned int i;

	for (i = first; i <= last; ) {
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

void
bed_setup(uint32_t mode)
{
	static const struct e82545_config config = {
		.ec_mac = { 2, 0, 0, 0, 0, 1 }, .ec_csb = E82545_CSB_ON
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
	lc->lc_irq = LEM_IRQ_MSI;
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

void
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

void
host_rx(void)
{
	while (net->taken < net->offered) {
		if (e82545_rx(dev) == E82545_RX_STALLED)
			mm_wait(&rx_ready);
	}
}
