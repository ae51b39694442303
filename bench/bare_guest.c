/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See bare_guest.h.
 */

#include <sys/param.h>

#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bare_guest.h"
#include "libvale.h"

/*
 * The model's operations.
 */

static void *
bare_guest_map(void *arg, uint64_t gpa, size_t len,
    unsigned int access __unused)
{
	struct bare_guest *guest = arg;

	return (gpa > GUEST_RAM || len > GUEST_RAM - gpa ? NULL :
	    guest->ram + gpa);
}

static void
bare_guest_intr(void *arg, bool asserted)
{
	struct bare_guest *guest = arg;

	guest->line = asserted;
}

static uint64_t
bare_guest_now(void *arg __unused)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000ULL + ts.tv_nsec);
}

static void
bare_guest_timer(void *arg __unused, uint64_t when_ns __unused)
{
}

static void
bare_guest_kick(void *arg __unused)
{
}

static const struct e82545_ops bare_guest_ops = {
	.eo_map = bare_guest_map,
	.eo_intr = bare_guest_intr,
	.eo_now = bare_guest_now,
	.eo_timer = bare_guest_timer,
	.eo_tx_kick = bare_guest_kick,
	.eo_rx_ready = bare_guest_kick,
};

/*
 * The port without a network.
 */

static bool
null_send(struct frame_port *port __unused,
    const struct frame *frame __unused)
{
	return (true);
}

static void
null_nothing(struct frame_port *port __unused)
{
}

static const struct frame_port_ops null_port_ops = {
	.fpo_send = null_send,
	.fpo_flush = null_nothing,
	.fpo_sync = null_nothing,
};

/* A frame in more than one buffer. */
static __attribute__((__noinline__)) void
null_peek_long(const struct bare_guest *guest, struct frame *frame)
{
	struct iovec *iov = frame->f_iov;
	const uint32_t len = guest->frame_len;
	uint32_t left, n;

	for (n = 0, left = len; left > GUEST_BUF; left -= GUEST_BUF, n++) {
		iov[n].iov_base = bare_guest_frame_buf(guest, n);
		iov[n].iov_len = GUEST_BUF;
	}
	iov[n].iov_base = bare_guest_frame_buf(guest, n);
	iov[n].iov_len = left;
	frame_set(frame, n + 1, len);
}

static bool
null_peek(struct frame_source *source, struct frame *frame)
{
	const struct bare_guest *guest =
	    __containerof(source, struct bare_guest, null_source);
	struct iovec *iov = frame->f_iov;
	const uint32_t len = guest->frame_len;

	if (guest->pending == 0)
		return (false);
	if (len > GUEST_BUF)
		null_peek_long(guest, frame);
	else {
		iov->iov_base = bare_guest_frame_buf(guest, 0);
		iov->iov_len = len;
		frame_set(frame, 1, len);
	}
	return (true);
}

static void
null_next(struct frame_source *source)
{
	struct bare_guest *guest =
	    __containerof(source, struct bare_guest, null_source);

	guest->pending--;
	guest->frame += howmany(guest->frame_len, GUEST_BUF);
}

static void
null_port_init(struct bare_guest *guest)
{
	guest->null_source.fs_peek = null_peek;
	guest->null_source.fs_next = null_next;
	guest->null_port.fp_ops = &null_port_ops;
	guest->null_port.fp_source = &guest->null_source;
	guest->null_port.fp_frame_max = UINT32_MAX;
	guest->port = &guest->null_port;
}

static void
bare_guest_sink(void *arg, struct frame_source *frames)
{
	struct bare_guest *guest = arg;

	e82545_rx_direct(guest->dev, frames);
}

void
bare_guest_direct(struct bare_guest *guest)
{
	/* The port's ring must be empty, and its slots returned. */
	(void)e82545_rx(guest->dev);
	if (!frame_port_set_sink(guest->port, bare_guest_sink, guest))
		errx(1, "the port cannot have a sink");
	guest->direct = true;
}

/* No sync fails. */
static void __attribute__((__format__(__printf__, 1, 0)))
bare_guest_vlog(const char *fmt, va_list ap)
{
	vwarnx(fmt, ap);
	abort();
}

/*
 * The guest.
 */

static void
bare_guest_write(struct bare_guest *guest, uint32_t reg, uint32_t value)
{
	e82545_write(guest->dev, E82545_BAR_MEM, reg, 4, value);
}

void
bare_guest_up(struct bare_guest *guest, const struct bare_guest *to,
    uint32_t len)
{
	struct e82545_rxd *rxd = bare_guest_rxd(guest);
	union e82545_txd *txd = bare_guest_txd(guest);
	uint32_t gpa, i, stride;

	guest->len = len;
	stride = len <= GUEST_BUF ? GUEST_BUF : GUEST_TXBUF;
	for (i = 0; i < GUEST_RING; i++) {
		gpa = GUEST_TXBUFS + i * stride;
		memcpy(guest->ram + gpa, to->mac, sizeof(to->mac));
		memcpy(guest->ram + gpa + 6, guest->mac, sizeof(guest->mac));
		txd[i].legacy.addr = gpa;
		txd[i].lower = len | E82545_TXD_EOP | E82545_TXD_IFCS;
		rxd[i].addr = GUEST_RXBUFS + i * GUEST_BUF;
	}
	bare_guest_write(guest, E82545_RDBAL, GUEST_RXRING);
	bare_guest_write(guest, E82545_RDLEN, GUEST_RING * sizeof(*rxd));
	bare_guest_write(guest, E82545_RDT, GUEST_RING - 1);
	bare_guest_write(guest, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC | (len > 1518 ? E82545_RCTL_LPE : 0));
	bare_guest_write(guest, E82545_TDBAL, GUEST_TXRING);
	bare_guest_write(guest, E82545_TDLEN, GUEST_RING * sizeof(*txd));
	bare_guest_write(guest, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	bare_guest_write(guest, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_FD);
	bare_guest_write(guest, E82545_IMS, E82545_ICR_RXT0 | E82545_ICR_TXDW);
}

void
bare_guest_create(struct bare_guest *guest, int n, bool port)
{
	struct e82545_config config;
	char name[16], portname[32];

	snprintf(name, sizeof(name), "vm%d", n);
	memcpy(guest->mac, (uint8_t[]){ 0x52, 0x54, 0, 0x82, 0x54, n }, 6);
	guest->ram = aligned_alloc(4096, GUEST_RAM);
	if (guest->ram == NULL)
		err(1, NULL);
	memset(guest->ram, 0, GUEST_RAM);
	if (port) {
		snprintf(portname, sizeof(portname), "vale0:%s", name);
		guest->vale = vale_open(portname, NULL);
		if (guest->vale == NULL ||
		    vale_frame_port_init(&guest->vale_port, guest->vale,
		    bare_guest_vlog) != 0)
			err(1, "%s", portname);
		guest->port = &guest->vale_port.vfp_port;
		guest->port->fp_frame_max = UINT32_MAX;
		frame_port_set_offloads(guest->port);
	} else
		null_port_init(guest);
	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, guest->mac, sizeof(config.ec_mac));
	config.ec_csb = E82545_CSB_ON;
	config.ec_name = name;
	guest->dev = e82545_create(&config, &bare_guest_ops, guest,
	    guest->port);
	if (guest->dev == NULL)
		err(1, "%s", name);
	e82545_bus_master(guest->dev, true);
}

void
bare_guest_frames(struct bare_guest *guest, uint32_t len)
{
	uint32_t i;

	guest->frames = aligned_alloc(4096, GUEST_RING * GUEST_BUF);
	if (guest->frames == NULL)
		err(1, NULL);
	memset(guest->frames, 0, GUEST_RING * GUEST_BUF);
	for (i = 0; i < GUEST_RING; i++)
		memcpy(guest->frames + i * GUEST_BUF, guest->mac,
		    sizeof(guest->mac));
	guest->frame_len = len;
}

/* Handle an interrupt: read ICR. */
static void
bare_guest_intr_handle(struct bare_guest *guest)
{
	if (guest->line)
		(void)e82545_read(guest->dev, E82545_BAR_MEM, E82545_ICR, 4);
}

void
bare_guest_send(struct bare_guest *guest, uint32_t batch)
{
	union e82545_txd *txd = bare_guest_txd(guest);
	uint32_t last;

	last = (guest->tail + batch - 1) % GUEST_RING;
	txd[last].lower |= E82545_TXD_RS;
	guest->tail = (guest->tail + batch) % GUEST_RING;
	bare_guest_write(guest, E82545_TDT, guest->tail);
	while (e82545_tx(guest->dev) != E82545_TX_IDLE)
		continue;
	txd[last].lower &= ~E82545_TXD_RS;
	bare_guest_intr_handle(guest);
}

uint32_t
bare_guest_receive(struct bare_guest *guest)
{
	struct e82545_rxd *rxd = bare_guest_rxd(guest);
	uint32_t n;

	while (!guest->direct && e82545_rx(guest->dev) == E82545_RX_MORE)
		continue;
	for (n = 0; (rxd[guest->next].status & E82545_RXD_DD) != 0; n++) {
		rxd[guest->next].status = 0;
		guest->next = (guest->next + 1) % GUEST_RING;
	}
	bare_guest_intr_handle(guest);
	bare_guest_write(guest, E82545_RDT,
	    (guest->next + GUEST_RING - 1) % GUEST_RING);
	return (n);
}
