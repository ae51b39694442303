/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A netmap program, to measure ports of other processes with: run under
 * netmap-run(1), or by FreeBSD's netmap as it is.
 *
 *	netmap [-u] [-b batch] [-s bytes] send port
 *			sends broadcasts, until it is killed
 *	netmap [-u] [-b batch] [-t ms] receive port
 *			prints nanoseconds a frame received, from the first on
 *	netmap echo port
 *			sends each frame back, until it is killed
 *	netmap [-s bytes] [-t ms] ping port
 *			prints microseconds a round trip of a single frame, the
 *			median
 *
 * A batch is how many frames it sends, or takes, at most between two calls of
 * poll(2), which is the only call that syncs; receive has no limit without -b.
 * With -u the receiver sends a frame first, from which the switch learns its
 * address, and the sender's frames go to that.
 */

#include <sys/types.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <net/netmap_user.h>

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define	NS_MS		UINT64_C(1000000)

struct port {
	struct pollfd	 pfd;
	struct netmap_ring *tx;
	struct netmap_ring *rx;
	uint32_t	 bytes;		/* of a frame of ours */
	uint32_t	 batch;		/* frames; 0: the command's default */
	uint64_t	 ns;		/* how long to measure */
	bool		 unicast;
};

static void
port_open(struct port *port, const char *name)
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_REGISTER, .nr_body = (uintptr_t)&reg };
	struct netmap_if *nifp;
	char *memory;
	int fd;

	if (strlen(name) >= sizeof(hdr.nr_name))
		errx(1, "%s: too long", name);
	memcpy(hdr.nr_name, name, strlen(name));
	fd = open(NETMAP_DEVICE_NAME, O_RDWR);
	if (fd == -1)
		err(1, "%s", NETMAP_DEVICE_NAME);
	if (ioctl(fd, NIOCCTRL, &hdr) == -1)
		err(1, "%s", name);
	memory = mmap(NULL, reg.nr_memsize, PROT_READ | PROT_WRITE, MAP_SHARED,
	    fd, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	nifp = (struct netmap_if *)(void *)(memory + reg.nr_offset);
	port->tx = NETMAP_TXRING(nifp, 0);
	port->rx = NETMAP_RXRING(nifp, 0);
	port->pfd = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* Sync, and wait.  Returns whether the port is ready. */
static bool
port_wait(struct port *port, int ms)
{
	int n;

	n = poll(&port->pfd, 1, ms);
	if (n == -1)
		err(1, "poll");
	if ((port->pfd.revents & POLLERR) != 0)
		errx(1, "the port has gone");
	return (n > 0);
}

/* The frame of the ring's next slot. */
static uint8_t *
next_frame(const struct netmap_ring *ring)
{
	return ((uint8_t *)NETMAP_BUF(ring, ring->slot[ring->head].buf_idx));
}

static void
advance(struct netmap_ring *ring)
{
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
}

/*
 * The number and the addresses of a frame: of one to the station that receives,
 * or of one from it.
 */
static void
frame_make(uint8_t frame[18], bool to, uint32_t n)
{
	memcpy(frame, (uint8_t[]){ 2, 0, 0, 0, 0, to ? 2 : 1,
	    2, 0, 0, 0, 0, to ? 1 : 2, 0x88, 0xb5 }, 14);
	memcpy(frame + 14, &n, sizeof(n));
}

/* Broadcasts need no address that has been learned. */
static void
frames_make(struct netmap_ring *ring, bool unicast)
{
	uint8_t *frame;
	uint32_t i;

	for (i = 0; i < ring->num_slots; i++) {
		frame = (uint8_t *)NETMAP_BUF(ring, ring->slot[i].buf_idx);
		frame_make(frame, true, 0);
		if (!unicast)
			memset(frame, 0xff, 6);
	}
}

static void
send_all(struct port *port)
{
	struct netmap_ring *ring = port->tx;
	uint32_t batch, n, space;

	batch = port->batch != 0 ? port->batch : 256;
	port->pfd.events = POLLOUT;
	frames_make(ring, port->unicast);
	for (;;) {
		port_wait(port, -1);
		space = nm_ring_space(ring);
		n = space < batch ? space : batch;
		while (n-- > 0) {
			ring->slot[ring->head].len = port->bytes;
			ring->slot[ring->head].flags = 0;
			ring->head = nm_ring_next(ring, ring->head);
		}
		ring->cur = ring->head;
	}
}

/* Have the next wait send a frame. */
static void
frame_send(struct port *port, bool to, uint32_t n)
{
	if (nm_ring_empty(port->tx))
		errx(1, "the transmit ring is full");
	frame_make(next_frame(port->tx), to, n);
	port->tx->slot[port->tx->head].len = port->bytes;
	advance(port->tx);
}

static void
receive_all(struct port *port)
{
	struct netmap_ring *ring = port->rx;
	uint64_t begin = 0, frames = 0, now, sum = 0;
	uint32_t batch, n;

	batch = port->batch != 0 ? port->batch : UINT32_MAX;
	if (port->unicast)
		frame_send(port, false, 0);
	do {
		port_wait(port, -1);
		now = bench_now_ns();
		if (begin == 0)
			begin = now;
		for (n = batch; n > 0 && !nm_ring_empty(ring); n--, frames++) {
			sum += ring->slot[ring->head].len;
			advance(ring);
		}
	} while (now - begin < port->ns);
	printf("%.2f\n", (double)(now - begin) / frames);
	if (sum < frames * 14)
		errx(1, "frames are too short");
}

/* Send the next frame back in its buffer. */
static void
answer(struct netmap_ring *rx, struct netmap_ring *tx)
{
	struct netmap_slot *from = &rx->slot[rx->head];
	struct netmap_slot *to = &tx->slot[tx->head];
	uint8_t *frame = next_frame(rx), source[6];
	uint32_t buf = to->buf_idx;

	memcpy(source, frame + 6, 6);
	memcpy(frame + 6, frame, 6);
	memcpy(frame, source, 6);
	to->buf_idx = from->buf_idx;
	to->len = from->len;
	from->buf_idx = buf;
	to->flags = from->flags = NS_BUF_CHANGED;
	advance(rx);
	advance(tx);
}

static void
echo_all(struct port *port)
{
	for (;;) {
		port_wait(port, -1);
		while (!nm_ring_empty(port->rx) && !nm_ring_empty(port->tx))
			answer(port->rx, port->tx);
	}
}

static bool
ping(void *arg, uint32_t n, int ms)
{
	struct port *port = arg;
	uint8_t answered[18];
	bool found = false;

	frame_make(answered, false, n);
	frame_send(port, true, n);
	while (!found && port_wait(port, ms)) {
		while (!nm_ring_empty(port->rx)) {
			found |= memcmp(next_frame(port->rx), answered,
			    sizeof(answered)) == 0;
			advance(port->rx);
		}
	}
	return (found);
}

static void
usage(void)
{
	fprintf(stderr, "usage: netmap [-u] [-b batch] [-s bytes] [-t ms] "
	    "send | receive | echo | ping port\n");
	exit(1);
}

static void
run(struct port *port, const char *command)
{
	if (strcmp(command, "send") == 0)
		send_all(port);
	else if (strcmp(command, "receive") == 0)
		receive_all(port);
	else if (strcmp(command, "echo") == 0)
		echo_all(port);
	else if (strcmp(command, "ping") == 0)
		bench_trips(ping, port, port->ns);
	else
		usage();
}

int
main(int argc, char *argv[])
{
	struct port port = { .bytes = 60, .ns = 500 * NS_MS };
	int ch;

	while ((ch = getopt(argc, argv, "b:s:t:u")) != -1) {
		switch (ch) {
		case 'b':
			port.batch = bench_number(optarg, 1, 1024);
			break;
		case 's':
			port.bytes = bench_number(optarg, 60, 2048);
			break;
		case 't':
			port.ns = bench_number(optarg, 1, 60000) * NS_MS;
			break;
		case 'u':
			port.unicast = true;
			break;
		default:
			usage();
		}
	}
	if (optind + 2 != argc)
		usage();
	port_open(&port, argv[optind + 1]);
	run(&port, argv[optind]);
	return (0);
}
