/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * What the host does for a frame: from one model's TX ring over the switch into
 * another model's RX ring, in one thread, with nothing of a guest but what puts
 * descriptors into rings.  Prints how many frames went through a second.  Does
 * the same work in every run, so that instructions can be compared
 * (probes.sh).
 */

#include <sys/param.h>
#include <err.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "e82545.h"
#include "e82545_reg.h"
#include "net_backends.h"
#include "net_batch.h"

#define	RING		1024		/* descriptors */
#define	BUF		2048		/* bytes */
/* Where they are in a guest's RAM. */
#define	RXRING		0x10000
#define	TXRING		0x20000
#define	RXBUFS		0x100000
#define	TXBUFS		(RXBUFS + RING * BUF)
#define	RAM		(TXBUFS + RING * BUF)

struct vm {
	struct e82545	*dev;
	net_backend_t	*be;
	struct net_batch *nb;
	uint8_t		*ram;
	uint32_t	 tail, next;	/* TX, RX */
	bool		 line;
	uint8_t		 mac[6];
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000000000ULL + ts.tv_nsec);
}

/*
 * What the model asks of its host.
 */

static void *
vm_map(void *arg, uint64_t gpa, size_t len)
{
	struct vm *vm = arg;

	return (gpa > RAM || len > RAM - gpa ? NULL : vm->ram + gpa);
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

	return (now_ns());
}

static void
vm_timer(void *arg __unused, uint64_t when_ns __unused)
{
}

static void
vm_wanted(void *arg __unused)
{
}

static bool
vm_tx_frame(void *arg, const struct iovec *iov, int niov)
{
	struct vm *vm = arg;

	return (net_batch_send(vm->nb, iov, niov));
}

static void
vm_tx_flush(void *arg)
{
	struct vm *vm = arg;

	net_batch_flush(vm->nb);
}

static void
vm_rx_sync(void *arg)
{
	struct vm *vm = arg;

	net_batch_sync(vm->nb);
}

static int
vm_rx_peek(void *arg, struct iovec *iov)
{
	struct vm *vm = arg;

	return (net_batch_peek(vm->nb, iov, E82545_MAXIOV));
}

static void
vm_rx_next(void *arg)
{
	struct vm *vm = arg;

	net_batch_next(vm->nb);
}

static const struct e82545_ops vm_ops = {
	.eo_map = vm_map,
	.eo_intr = vm_intr,
	.eo_now = vm_now,
	.eo_timer = vm_timer,
	.eo_tx_kick = vm_wanted,
	.eo_tx_frame = vm_tx_frame,
	.eo_tx_flush = vm_tx_flush,
	.eo_rx_sync = vm_rx_sync,
	.eo_rx_peek = vm_rx_peek,
	.eo_rx_next = vm_rx_next,
	.eo_rx_ready = vm_wanted,
};

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

/* A frame of `len' bytes to `to' in every buffer. */
static void
vm_up(struct vm *vm, const struct vm *to, uint32_t len)
{
	struct e82545_rxd *rxd;
	union e82545_txd *txd;
	uint8_t *buf;
	uint32_t i;

	rxd = (struct e82545_rxd *)(void *)(vm->ram + RXRING);
	txd = (union e82545_txd *)(void *)(vm->ram + TXRING);
	for (i = 0; i < RING; i++) {
		buf = vm->ram + TXBUFS + i * BUF;
		memcpy(buf, to->mac, sizeof(to->mac));
		memcpy(buf + 6, vm->mac, sizeof(vm->mac));
		rxd[i].addr = RXBUFS + i * BUF;
		txd[i].legacy.addr = TXBUFS + i * BUF;
		txd[i].lower = len | E82545_TXD_EOP | E82545_TXD_IFCS;
	}
	vm_write(vm, E82545_RDBAL, RXRING);
	vm_write(vm, E82545_RDLEN, RING * sizeof(*rxd));
	vm_write(vm, E82545_RDT, RING - 1);
	vm_write(vm, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC);
	vm_write(vm, E82545_TDBAL, TXRING);
	vm_write(vm, E82545_TDLEN, RING * sizeof(*txd));
	vm_write(vm, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	vm_write(vm, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_FD);
	vm_write(vm, E82545_IMS, E82545_ICR_RXT0 | E82545_ICR_TXDW);
}

static void
vm_create(struct vm *vm, int n)
{
	struct e82545_config config;
	char name[16], port[32];
	nvlist_t *nvl;

	snprintf(name, sizeof(name), "vm%d", n);
	snprintf(port, sizeof(port), "vale0:vm%d", n);
	memcpy(vm->mac, (uint8_t[]){ 0x52, 0x54, 0, 0x82, 0x54, n }, 6);
	vm->ram = aligned_alloc(4096, RAM);
	if (vm->ram == NULL)
		err(1, NULL);
	memset(vm->ram, 0, RAM);
	nvl = create_config_node(name);
	if (netbe_legacy_config(nvl, port) != 0 ||
	    netbe_init(&vm->be, nvl, vm_rxeof, NULL) != 0)
		errx(1, "%s: no backend", port);
	vm->nb = net_batch_create(vm->be);
	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, vm->mac, sizeof(config.ec_mac));
	config.ec_name = name;
	vm->dev = e82545_create(&config, &vm_ops, vm);
	if (vm->nb == NULL || vm->dev == NULL)
		err(1, "%s", name);
}

/* The guest serves its interrupt. */
static void
vm_serve(struct vm *vm)
{

	if (vm->line)
		(void)e82545_read(vm->dev, E82545_BAR_MEM, E82545_ICR, 4);
}

static void
vm_send(struct vm *vm, uint32_t batch)
{
	union e82545_txd *txd;
	uint32_t last;

	txd = (union e82545_txd *)(void *)(vm->ram + TXRING);
	last = (vm->tail + batch - 1) % RING;
	txd[last].lower |= E82545_TXD_RS;
	vm->tail = (vm->tail + batch) % RING;
	vm_write(vm, E82545_TDT, vm->tail);
	while (e82545_tx(vm->dev))
		continue;
	txd[last].lower &= ~E82545_TXD_RS;
	vm_serve(vm);
}

/* How many frames came. */
static uint32_t
vm_receive(struct vm *vm)
{
	struct e82545_rxd *rxd;
	uint32_t n;

	while (e82545_rx(vm->dev) == E82545_RX_MORE)
		continue;
	rxd = (struct e82545_rxd *)(void *)(vm->ram + RXRING);
	for (n = 0; (rxd[vm->next].status & E82545_RXD_DD) != 0; n++) {
		rxd[vm->next].status = 0;
		vm->next = (vm->next + 1) % RING;
	}
	vm_serve(vm);
	vm_write(vm, E82545_RDT, (vm->next + RING - 1) % RING);
	return (n);
}

static uint32_t
number(const char *s, uint32_t min, uint32_t max)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno != 0 || end == s || *end != '\0' || n < min || n > max)
		errx(1, "%s: not from %u to %u", s, min, max);
	return (n);
}

int
main(int argc, char **argv)
{
	static struct vm vm[2];
	uint32_t batch = 64, frames = 10000000, len = 60, n;
	uint64_t ns;
	int ch;

	while ((ch = getopt(argc, argv, "b:n:s:")) != -1) {
		switch (ch) {
		case 'b':
			batch = number(optarg, 1, RING / 2);
			break;
		case 'n':
			frames = number(optarg, 1, UINT32_MAX / 2);
			break;
		case 's':
			len = number(optarg, 60, 1514);
			break;
		default:
			fprintf(stderr,
			    "usage: path [-b batch] [-n frames] [-s bytes]\n");
			return (1);
		}
	}
	init_config();
	vm_create(&vm[0], 1);
	vm_create(&vm[1], 2);
	vm_up(&vm[0], &vm[1], len);
	vm_up(&vm[1], &vm[0], len);
	/* The switch learns where the receiver is. */
	vm_send(&vm[1], 1);
	if (vm_receive(&vm[0]) != 1)
		errx(1, "nothing came");
	ns = now_ns();
	for (n = 0; n < frames; n += batch) {
		vm_send(&vm[0], batch);
		if (vm_receive(&vm[1]) != batch)
			errx(1, "frames are missing");
	}
	ns = now_ns() - ns;
	printf("%.1f\n", n * 1e6 / ns);
	return (0);
}
