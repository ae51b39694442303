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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bare_guest.h"
#include "config.h"
#include "libvale.h"
#include "net_backends.h"
#include "net_port.h"

/*
 * The model's operations.
 */

static void *
vm_map(void *arg, uint64_t gpa, size_t len)
{
	struct vm *vm = arg;

	return (gpa > VM_RAM || len > VM_RAM - gpa ? NULL : vm->ram + gpa);
}

static void
vm_intr(void *arg, bool asserted)
{
	struct vm *vm = arg;

	vm->line = asserted;
}

static uint64_t
vm_now(void *arg __unused)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000ULL + ts.tv_nsec);
}

static void
vm_timer(void *arg __unused, uint64_t when_ns __unused)
{
}

static void
vm_wanted(void *arg __unused)
{
}

static const struct e82545_ops vm_ops = {
	.eo_map = vm_map,
	.eo_intr = vm_intr,
	.eo_now = vm_now,
	.eo_timer = vm_timer,
	.eo_tx_kick = vm_wanted,
	.eo_rx_ready = vm_wanted,
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

/* A frame of more than one buffer. */
static __attribute__((__noinline__)) void
null_peek_long(const struct vm *vm, struct frame *frame)
{
	struct iovec *iov = frame->f_iov;
	const uint32_t len = vm->frame_len;
	uint32_t left, n;

	for (n = 0, left = len; left > VM_BUF; left -= VM_BUF, n++) {
		iov[n].iov_base = vm_frame_buf(vm, n);
		iov[n].iov_len = VM_BUF;
	}
	iov[n].iov_base = vm_frame_buf(vm, n);
	iov[n].iov_len = left;
	frame_set(frame, n + 1, len);
}

static bool
null_peek(struct frame_source *source, struct frame *frame)
{
	const struct vm *vm = __containerof(source, struct vm, null_source);
	struct iovec *iov = frame->f_iov;
	const uint32_t len = vm->frame_len;

	if (vm->waiting == 0)
		return (false);
	if (len > VM_BUF)
		null_peek_long(vm, frame);
	else {
		iov->iov_base = vm_frame_buf(vm, 0);
		iov->iov_len = len;
		frame_set(frame, 1, len);
	}
	return (true);
}

static void
null_next(struct frame_source *source)
{
	struct vm *vm = __containerof(source, struct vm, null_source);

	vm->waiting--;
	vm->frame += howmany(vm->frame_len, VM_BUF);
}

static void
null_port_init(struct vm *vm)
{
	vm->null_source.fs_peek = null_peek;
	vm->null_source.fs_next = null_next;
	vm->null_port.fp_ops = &null_port_ops;
	vm->null_port.fp_source = &vm->null_source;
	vm->null_port.fp_frame_max = UINT32_MAX;
	vm->port = &vm->null_port;
}

static void
vm_sink(void *arg, struct frame_source *frames)
{
	struct vm *vm = arg;

	e82545_rx_direct(vm->dev, frames);
}

void
vm_direct(struct vm *vm)
{
	/* The port's ring must be empty and released. */
	(void)e82545_rx(vm->dev);
	e82545_rx_direct_enable(vm->dev, true);
	if (!frame_port_set_sink(vm->port, vm_sink, vm))
		errx(1, "no way past the ring");
	vm->direct = true;
}

static void
vm_rxeof(int fd __unused, enum ev_type type __unused, void *param __unused)
{
}

/*
 * The guests.
 */

static void
vm_write(struct vm *vm, uint32_t reg, uint32_t value)
{
	e82545_write(vm->dev, E82545_BAR_MEM, reg, 4, value);
}

void
vm_up(struct vm *vm, const struct vm *to, uint32_t len)
{
	struct e82545_rxd *rxd = vm_rxd(vm);
	union e82545_txd *txd = vm_txd(vm);
	uint32_t gpa, i, stride;

	vm->len = len;
	stride = len <= VM_BUF ? VM_BUF : VM_TXBUF;
	for (i = 0; i < VM_RING; i++) {
		gpa = VM_TXBUFS + i * stride;
		memcpy(vm->ram + gpa, to->mac, sizeof(to->mac));
		memcpy(vm->ram + gpa + 6, vm->mac, sizeof(vm->mac));
		txd[i].legacy.addr = gpa;
		txd[i].lower = len | E82545_TXD_EOP | E82545_TXD_IFCS;
		rxd[i].addr = VM_RXBUFS + i * VM_BUF;
	}
	vm_write(vm, E82545_RDBAL, VM_RXRING);
	vm_write(vm, E82545_RDLEN, VM_RING * sizeof(*rxd));
	vm_write(vm, E82545_RDT, VM_RING - 1);
	vm_write(vm, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC | (len > 1518 ? E82545_RCTL_LPE : 0));
	vm_write(vm, E82545_TDBAL, VM_TXRING);
	vm_write(vm, E82545_TDLEN, VM_RING * sizeof(*txd));
	vm_write(vm, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	vm_write(vm, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_FD);
	vm_write(vm, E82545_IMS, E82545_ICR_RXT0 | E82545_ICR_TXDW);
}

void
vm_create(struct vm *vm, int n, bool port)
{
	struct e82545_config config;
	char name[16], portname[32];
	nvlist_t *nvl;

	snprintf(name, sizeof(name), "vm%d", n);
	memcpy(vm->mac, (uint8_t[]){ 0x52, 0x54, 0, 0x82, 0x54, n }, 6);
	vm->ram = aligned_alloc(4096, VM_RAM);
	if (vm->ram == NULL)
		err(1, NULL);
	memset(vm->ram, 0, VM_RAM);
	if (port) {
		snprintf(portname, sizeof(portname), "vale0:%s", name);
		nvl = create_config_node(name);
		if (netbe_legacy_config(nvl, portname) != 0 ||
		    netbe_init(&vm->be, nvl, vm_rxeof, NULL) != 0)
			errx(1, "%s: no backend", portname);
		vm->port = net_port_create(vm->be, UINT32_MAX);
		if (vm->port == NULL)
			err(1, "%s", portname);
	} else
		null_port_init(vm);
	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, vm->mac, sizeof(config.ec_mac));
	config.ec_name = name;
	vm->dev = e82545_create(&config, &vm_ops, vm, vm->port);
	if (vm->dev == NULL)
		err(1, "%s", name);
}

void
vm_frames(struct vm *vm, uint32_t len)
{
	uint32_t i;

	vm->frames = aligned_alloc(4096, VM_RING * VM_BUF);
	if (vm->frames == NULL)
		err(1, NULL);
	memset(vm->frames, 0, VM_RING * VM_BUF);
	for (i = 0; i < VM_RING; i++)
		memcpy(vm->frames + i * VM_BUF, vm->mac, sizeof(vm->mac));
	vm->frame_len = len;
}

/* The guest serves its interrupt. */
static void
vm_serve(struct vm *vm)
{
	if (vm->line)
		(void)e82545_read(vm->dev, E82545_BAR_MEM, E82545_ICR, 4);
}

void
vm_send(struct vm *vm, uint32_t batch)
{
	union e82545_txd *txd = vm_txd(vm);
	uint32_t last;

	last = (vm->tail + batch - 1) % VM_RING;
	txd[last].lower |= E82545_TXD_RS;
	vm->tail = (vm->tail + batch) % VM_RING;
	vm_write(vm, E82545_TDT, vm->tail);
	while (e82545_tx(vm->dev) != E82545_TX_IDLE)
		continue;
	txd[last].lower &= ~E82545_TXD_RS;
	vm_serve(vm);
}

uint32_t
vm_receive(struct vm *vm)
{
	struct e82545_rxd *rxd = vm_rxd(vm);
	uint32_t n;

	while (!vm->direct && e82545_rx(vm->dev) == E82545_RX_MORE)
		continue;
	for (n = 0; (rxd[vm->next].status & E82545_RXD_DD) != 0; n++) {
		rxd[vm->next].status = 0;
		vm->next = (vm->next + 1) % VM_RING;
	}
	vm_serve(vm);
	vm_write(vm, E82545_RDT, (vm->next + VM_RING - 1) % VM_RING);
	return (n);
}
