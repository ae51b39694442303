/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * segments PORT MAC N: on the host, sends N packets of segments of UDP from a
 * port of valed's to a guest.
 */

#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libvale.h"

#define	VNET_LEN	10
#define	PAYLOAD		400

/* To port 9 of nobody: the guest's stack drops them. */
static const uint8_t packet[] = {
	/*
	 * The virtio-net header: partial checksum, VIRTIO_NET_HDR_GSO_UDP_L4;
	 * 42 bytes of headers; 100 of payload in a segment; the sum is of what
	 * begins at 34, and is 6 bytes behind that.
	 */
	0x01, 5, 42, 0, 100, 0, 34, 0, 6, 0,
	/* Ethernet. */
	0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0x08, 0x00,
	/* IPv4: 428 bytes. */
	0x45, 0, 0x01, 0xac, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 9, 10, 0, 0, 8,
	/* UDP: 408 bytes. */
	0, 9, 0, 9, 0x01, 0x98, 0, 0
};

static void
packet_put(uint8_t *p, const char *mac)
{
	memcpy(p, packet, sizeof(packet));
	memset(p + sizeof(packet), 0, PAYLOAD);
	if (sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", p + VNET_LEN,
	    p + VNET_LEN + 1, p + VNET_LEN + 2, p + VNET_LEN + 3,
	    p + VNET_LEN + 4, p + VNET_LEN + 5) != 6)
		errx(2, "%s: no address", mac);
}

int
main(int argc, char **argv)
{
	struct netmap_slot *slot;
	struct netmap_ring *ring;
	struct vale_desc *d;
	int n;

	if (argc != 4)
		errx(2, "usage: segments port mac n");
	d = vale_open(argv[1], NULL);
	if (d == NULL || vale_set_header(d, VNET_LEN) != 0)
		err(1, "%s", argv[1]);
	ring = d->txring;
	for (n = atoi(argv[3]); n > 0; n--) {
		slot = &ring->slot[ring->head];
		packet_put((uint8_t *)NETMAP_BUF(ring, slot->buf_idx), argv[2]);
		slot->len = sizeof(packet) + PAYLOAD;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
		if (vale_txsync(d) != 0)
			err(1, "%s", argv[1]);
	}
	vale_close(d);
	return (0);
}
