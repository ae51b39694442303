/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * see port xx:xx:xx:xx:xx:xx seconds: wait on a VALE port for a frame from a
 * MAC address.  Prints a line about it and exits 0, or exits 1 if none came.
 */

#include <sys/types.h>
#include <net/ethernet.h>

#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libvale.h"

static int
hex(const char *s, uint8_t mac[6])
{
	return (sscanf(s, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1,
	    mac + 2, mac + 3, mac + 4, mac + 5) == 6 ? 0 : -1);
}

/* Whether one of the frames in the ring is from `mac'; releases all. */
static int
look(struct vale_desc *d, const uint8_t mac[6])
{
	struct netmap_ring *ring = d->rxring;
	const struct ether_header *eh;
	uint32_t i;
	int seen;

	seen = 0;
	for (i = ring->head; i != ring->tail && !seen;
	    i = nm_ring_next(ring, i)) {
		eh = (const void *)NETMAP_BUF(ring, ring->slot[i].buf_idx);
		seen = ring->slot[i].len >= sizeof(*eh) &&
		    memcmp(eh->ether_shost, mac, 6) == 0;
		if (seen)
			printf("%u bytes, type %02x%02x\n", ring->slot[i].len,
			    ((const uint8_t *)eh)[12],
			    ((const uint8_t *)eh)[13]);
	}
	ring->head = ring->cur = ring->tail;
	return (seen);
}

int
main(int argc, char **argv)
{
	struct pollfd pfd = { .events = POLLIN };
	struct vale_desc *d;
	uint8_t mac[6];
	time_t until;

	if (argc != 4 || hex(argv[2], mac) != 0)
		errx(2, "usage: see port mac seconds");
	d = vale_open(argv[1], NULL);
	if (d == NULL)
		err(2, "%s", argv[1]);
	pfd.fd = d->fd;
	until = time(NULL) + atoi(argv[3]);
	while (time(NULL) < until) {
		poll(&pfd, 1, 1000);
		if (vale_rxsync(d) != 0)
			err(2, "%s", argv[1]);
		if (look(d, mac)) {
			vale_close(d);
			return (0);
		}
	}
	vale_close(d);
	return (1);
}
