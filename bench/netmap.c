/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A netmap program, to measure ports of other processes with: run under
 * netmap-run(1), or by FreeBSD's netmap as it is.
 *
 *	netmap [-b batch] [-s bytes] send port		until it is killed
 *	netmap [-t ms] receive port			prints nanoseconds a
 *							frame received, from
 *							the first one on
 */

#include <sys/types.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <net/netmap_user.h>

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* Open the port; returns its interface. */
static struct netmap_if *
port_open(const char *name, struct pollfd *pfd)
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct nmreq_header hdr = { .nr_version = NETMAP_API,
	    .nr_reqtype = NETMAP_REQ_REGISTER, .nr_body = (uintptr_t)&reg };
	char *memory;

	if (strlen(name) >= sizeof(hdr.nr_name))
		errx(1, "%s: too long", name);
	memcpy(hdr.nr_name, name, strlen(name));
	pfd->fd = open(NETMAP_DEVICE_NAME, O_RDWR);
	if (pfd->fd == -1)
		err(1, "%s", NETMAP_DEVICE_NAME);
	if (ioctl(pfd->fd, NIOCCTRL, &hdr) == -1)
		err(1, "%s", name);
	memory = mmap(NULL, reg.nr_memsize, PROT_READ | PROT_WRITE, MAP_SHARED,
	    pfd->fd, 0);
	if (memory == MAP_FAILED)
		err(1, "mmap");
	return ((struct netmap_if *)(void *)(memory + reg.nr_offset));
}

static void
port_wait(struct pollfd *pfd)
{
	if (poll(pfd, 1, -1) == -1)
		err(1, "poll");
	if ((pfd->revents & POLLERR) != 0)
		errx(1, "the port has gone");
}

/* Broadcasts, which no address need be learned for. */
static void
frames_make(struct netmap_ring *ring, uint16_t len)
{
	uint32_t i;

	for (i = 0; i < ring->num_slots; i++) {
		memset(NETMAP_BUF(ring, ring->slot[i].buf_idx), 0xff, len);
		NETMAP_BUF(ring, ring->slot[i].buf_idx)[6] = 2;
		ring->slot[i].len = len;
	}
}

static void
send_all(const char *name, uint32_t batch, uint16_t len)
{
	struct pollfd pfd = { .events = POLLOUT };
	struct netmap_if *nifp = port_open(name, &pfd);
	struct netmap_ring *ring = NETMAP_TXRING(nifp, 0);
	uint32_t n, space;

	frames_make(ring, len);
	for (;;) {
		port_wait(&pfd);
		space = nm_ring_space(ring);
		n = space < batch ? space : batch;
		while (n-- > 0) {
			ring->slot[ring->head].len = len;
			ring->slot[ring->head].flags = 0;
			ring->head = nm_ring_next(ring, ring->head);
		}
		ring->cur = ring->head;
	}
}

static void
receive_all(const char *name, uint64_t ns)
{
	struct pollfd pfd = { .events = POLLIN };
	struct netmap_if *nifp = port_open(name, &pfd);
	struct netmap_ring *ring = NETMAP_RXRING(nifp, 0);
	uint64_t begin = 0, frames = 0, now, sum = 0;

	do {
		port_wait(&pfd);
		now = bench_now_ns();
		if (begin == 0)
			begin = now;
		for (; !nm_ring_empty(ring); frames++) {
			sum += ring->slot[ring->head].len;
			ring->head = ring->cur = nm_ring_next(ring,
			    ring->head);
		}
	} while (now - begin < ns);
	printf("%.2f\n", (double)(now - begin) / frames);
	if (sum < frames * 14)
		errx(1, "frames are too short");
}

static void
usage(void)
{
	fprintf(stderr, "usage: netmap [-b batch] [-s bytes] [-t ms] "
	    "send | receive port\n");
	exit(1);
}

int
main(int argc, char *argv[])
{
	uint32_t batch = 256, bytes = 60, ms = 500;
	int ch;

	while ((ch = getopt(argc, argv, "b:s:t:")) != -1) {
		switch (ch) {
		case 'b':
			batch = bench_number(optarg, 1, 1024);
			break;
		case 's':
			bytes = bench_number(optarg, 14, 2048);
			break;
		case 't':
			ms = bench_number(optarg, 1, 60000);
			break;
		default:
			usage();
		}
	}
	if (optind + 2 != argc)
		usage();
	if (strcmp(argv[optind], "send") == 0)
		send_all(argv[optind + 1], batch, bytes);
	else if (strcmp(argv[optind], "receive") == 0)
		receive_all(argv[optind + 1], ms * UINT64_C(1000000));
	else
		usage();
	return (0);
}
