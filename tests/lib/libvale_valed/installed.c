/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A program of libvale(3), compiled with what is installed and nothing else:
 * sends a frame from one port to another, and prints the switch's ports.
 */

#include <libvale.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
show(const struct vale_port_info *port, void *arg)
{
	++*(unsigned int *)arg;
	printf("%s %s %ju\n", port->vpi_name,
	    vale_counter_table[VALE_C_RX_FRAME].cr_name,
	    (uintmax_t)port->vpi_counter[VALE_C_RX_FRAME]);
	return (0);
}

int
main(void)
{
	struct vale_params params = { .tx_slots = 64, .rx_slots = 64 };
	struct vale_desc *a = vale_open("vale0:a", &params);
	struct vale_desc *b = vale_open("vale0:b", NULL);
	struct netmap_slot *slot;
	struct pollfd pfd = { .events = POLLIN };
	unsigned int n = 0;

	if (a == NULL || b == NULL) {
		perror("vale_open");
		return (1);
	}
	slot = &a->txring->slot[0];
	memset(NETMAP_BUF(a->txring, slot->buf_idx), 0xff, 60);
	slot->len = 60;
	a->txring->head = a->txring->cur = nm_ring_next(a->txring, 0);
	pfd.fd = b->fd;
	if (vale_rxsync(b) != 0 || vale_txsync(a) != 0 ||
	    poll(&pfd, 1, -1) != 1 || vale_rxsync(b) != 0 ||
	    nm_ring_space(b->rxring) != 1)
		return (2);
	if (vale_list("vale0", show, &n) != 0 || n != 2)
		return (3);
	vale_close(a);
	vale_close(b);
	return (0);
}
