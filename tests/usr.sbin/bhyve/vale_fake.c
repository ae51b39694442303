/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* vale_fake.h. */

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "vale_fake.h"
#include "vale_name.h"

struct port port;

/* The clock stands still: every frame is synced by its sender. */
int
clock_gettime(clockid_t clock __unused, struct timespec *ts)
{
	ts->tv_sec = 1;
	ts->tv_nsec = 0;
	return (0);
}

static struct netmap_ring *
port_ring_init(struct port_ring *pr, uint32_t tail)
{
	const struct netmap_ring template = {
		.buf_ofs = offsetof(struct port_ring, buf),
		.num_slots = PORT_SLOTS,
		.nr_buf_size = port.buf_size != 0 ? port.buf_size : PORT_BUF,
		.tail = tail,
	};
	struct netmap_ring *ring;
	uint32_t i;

	ring = (struct netmap_ring *)(void *)pr->ring;
	memcpy(ring, &template, sizeof(template));
	for (i = 0; i < PORT_SLOTS; i++)
		ring->slot[i].buf_idx = i;
	return (ring);
}

const char *
vale_name_error(const char *name)
{
	return (vale_name_check(name, &vale_name_kernel));
}

struct vale_desc *
vale_open(const char *name, const struct vale_params *params)
{
	ATF_CHECK_EQ(NULL, params);
	ATF_REQUIRE_EQ(0, pipe(port.pipe));
	port.desc.fd = port.pipe[0];
	port.desc.txring = port_ring_init(&port.tx, PORT_SLOTS - 1);
	port.desc.rxring = port_ring_init(&port.rx, 0);
	port.desc.txframe = port.txframe;
	port.desc.rxframe = port.rxframe;
	port.desc.common = &port.common;
	port.common.indirect_max = port.indirect_max != 0 ?
	    port.indirect_max : port.desc.txring->nr_buf_size;
	strlcpy(port.common.name, name, sizeof(port.common.name));
	return (&port.desc);
}

void
vale_close(struct vale_desc *d)
{
	ATF_CHECK_EQ(&port.desc, d);
	close(port.pipe[0]);
	close(port.pipe[1]);
}

int
vale_set_header(struct vale_desc *d, unsigned int len)
{
	ATF_CHECK_EQ(&port.desc, d);
	ATF_CHECK(len == 0 || len == 10 || len == 12 ||
	    len == VALE_HEADER_FRAME);
	ATF_CHECK(!port.limited);
	if ((len != 0 && !port.headers) ||
	    (len == VALE_HEADER_FRAME && d->common->single_slot)) {
		errno = EOPNOTSUPP;
		return (-1);
	}
	port.header = len;
	return (0);
}

int
vale_limit(struct vale_desc *d)
{
	ATF_CHECK_EQ(&port.desc, d);
	port.limited = true;
	return (0);
}

int
vale_txsync(struct vale_desc *d)
{
	struct netmap_ring *ring;

	ring = d->txring;
	port.txsyncs++;
	if (port.error != 0) {
		errno = port.error;
		return (-1);
	}
	ATF_CHECK_EQ(ring->head, ring->cur);
	if (port.stuck)
		return (0);
	while (port.tx_synced != ring->head) {
		ATF_REQUIRE(port.nsent < nitems(port.sent));
		port.sent[port.nsent++] = ring->slot[port.tx_synced];
		port.tx_synced = nm_ring_next(ring, port.tx_synced);
	}
	ring->tail = ring->head == 0 ? PORT_SLOTS - 1 : ring->head - 1;
	return (0);
}

int
vale_rxsync(struct vale_desc *d)
{
	ATF_CHECK_EQ(d->rxring->head, d->rxring->cur);
	port.rxsyncs++;
	if (port.error != 0) {
		errno = port.error;
		return (-1);
	}
	d->rxring->tail = port.rx_filled;
	return (0);
}

uint64_t
vale_missed(const struct vale_desc *d)
{
	ATF_CHECK_EQ(&port.desc, d);
	return (5);
}

/* As the kernel's. */
int
vale_set_sink(struct vale_desc *d,
    void (*sink)(void *, struct frame_source *), void *arg __unused)
{
	ATF_CHECK_EQ(&port.desc, d);
	if (sink == NULL)
		return (0);
	errno = EOPNOTSUPP;
	return (-1);
}

void
port_receive(const char *data, size_t len, uint16_t flags)
{
	struct netmap_slot *slot;

	slot = &port.desc.rxring->slot[port.rx_filled];
	slot->len = len;
	slot->flags = flags;
	memcpy(port.rx.buf[slot->buf_idx], data, len);
	port.rx_filled = (port.rx_filled + 1) % PORT_SLOTS;
}

net_backend_t *
backend(void)
{
	net_backend_t *be;

	be = backend_open("vale0:a", backend_ignore, NULL);
	return (be);
}

const char *
slot_data(const struct netmap_slot *slot)
{
	return ((slot->flags & NS_INDIRECT) != 0 ?
	    (const char *)(uintptr_t)slot->ptr : port.tx.buf[slot->buf_idx]);
}

void
check_frame(unsigned int first, const char *data, size_t len)
{
	const struct netmap_slot *slot;
	unsigned int i;

	ATF_REQUIRE(first < port.nsent);
	ATF_CHECK(port.sent[first].len >= 14);
	ATF_CHECK(port.nsent - first <= NETMAP_MAX_FRAGS);
	for (i = first; i < port.nsent; i++) {
		slot = &port.sent[i];
		ATF_REQUIRE(slot->len > 0 && slot->len <= len);
		if (port.common.single_slot && slot->ptr % 64 != 0 &&
		    (slot->flags & NS_INDIRECT) != 0)
			ATF_CHECK(64 + slot->ptr % 64 + slot->len <= PORT_BUF);
		ATF_CHECK_EQ(i + 1 < port.nsent ? NS_MOREFRAG : 0,
		    slot->flags & NS_MOREFRAG);
		ATF_CHECK_EQ(0, memcmp(data, slot_data(slot), slot->len));
		data += slot->len;
		len -= slot->len;
	}
	ATF_CHECK_EQ(0, len);
}

void
fill(char *buf, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = i * 31 + i / 256;
}
