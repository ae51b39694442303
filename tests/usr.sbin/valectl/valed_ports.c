/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed_ports port ...: open ports of valed, and do what the lines of stdin
 * say:
 *
 *	i n	send n frames of 60 bytes from port number i to everybody.
 *		Port i has the address 02:00:00:00:00:i.
 *
 * Prints a line after each, and one at the beginning.  Closes the ports at the
 * end of stdin.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libvale.h"

static void
send_frames(struct vale_desc *d, unsigned int i, unsigned int n)
{
	struct netmap_ring *ring = d->txring;
	uint8_t *buf;

	for (; n > 0; n--) {
		buf = (uint8_t *)NETMAP_BUF(ring,
		    ring->slot[ring->head].buf_idx);
		memset(buf, 0, 60);
		memset(buf, 0xff, 6);
		buf[6] = 2;
		buf[11] = i;
		ring->slot[ring->head].len = 60;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
		if (vale_txsync(d) != 0)
			err(1, "%s", d->common->name);
	}
}

int
main(int argc, char **argv)
{
	struct vale_desc **d;
	unsigned int i, n;
	char line[64];

	d = calloc(argc, sizeof(*d));
	for (i = 1; i < (unsigned int)argc; i++) {
		d[i - 1] = vale_open(argv[i], NULL);
		if (d[i - 1] == NULL)
			err(1, "%s", argv[i]);
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (sscanf(line, "%u %u", &i, &n) != 2 ||
		    i + 1 >= (unsigned int)argc)
			errx(1, "%s", line);
		send_frames(d[i], i, n);
		puts("sent");
	}
	for (i = 0; i + 1 < (unsigned int)argc; i++)
		vale_close(d[i]);
	free(d);
	return (0);
}
