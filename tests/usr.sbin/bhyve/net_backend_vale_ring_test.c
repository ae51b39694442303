/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * net_backend_vale.c slot by slot: this file implements libvale.h, and its
 * syncs check what the backend put into the rings.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/uio.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "backend.h"
#include "libvale.h"
#include "net_backends_priv.h"
#include "port.h"

#define	PORT_SLOTS	128
#define	PORT_BUF	2048		/* bytes */

#define	RING_SIZE	(offsetof(struct netmap_ring, slot) +		\
			    PORT_SLOTS * sizeof(struct netmap_slot))

struct port_ring {
	_Alignas(128) char	 ring[RING_SIZE];	/* struct netmap_ring */
	_Alignas(64) char	 buf[PORT_SLOTS][PORT_BUF];
};

/* The only port. */
static struct {
	struct vale_desc desc;
	struct port_ring tx, rx;
	int		 pipe[2];
	uint32_t	 tx_synced;	/* slots before this were seen */
	struct netmap_slot sent[16 * PORT_SLOTS];
	unsigned int	 nsent;
	int		 txsyncs, rxsyncs;
	int		 error;		/* for the syncs to return */
	bool		 stuck;		/* txsync consumes nothing */
	uint32_t	 buf_size;	/* 0: PORT_BUF */
	bool		 headers;	/* virtio-net's can be had */
	unsigned int	 header;	/* and have so many bytes */
	uint32_t	 rx_filled;	/* slots up to this hold frames */
} port;

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

struct vale_desc *
vale_open(const char *name, const struct vale_params *params)
{
	ATF_CHECK_EQ(NULL, params);
	ATF_REQUIRE_EQ(0, pipe(port.pipe));
	port.desc.fd = port.pipe[0];
	port.desc.txring = port_ring_init(&port.tx, PORT_SLOTS - 1);
	port.desc.rxring = port_ring_init(&port.rx, 0);
	strlcpy(port.desc.name, name, sizeof(port.desc.name));
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
	    len == VALE_HEADER_SLOT);
	if ((len != 0 && !port.headers) ||
	    (len == VALE_HEADER_SLOT && d->single_slot)) {
		errno = EOPNOTSUPP;
		return (-1);
	}
	port.header = len;
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

/* Put a frame, or a part of one, into the ring for the next rxsync. */
static void
port_receive(const char *data, size_t len, uint16_t flags)
{
	struct netmap_slot *slot;

	slot = &port.desc.rxring->slot[port.rx_filled];
	slot->len = len;
	slot->flags = flags;
	memcpy(port.rx.buf[slot->buf_idx], data, len);
	port.rx_filled = (port.rx_filled + 1) % PORT_SLOTS;
}

static net_backend_t *
backend(void)
{
	net_backend_t *be;

	be = backend_open("vale0:a", backend_ignore, NULL);
	return (be);
}

static const char *
slot_data(const struct netmap_slot *slot)
{
	return ((slot->flags & NS_INDIRECT) != 0 ?
	    (const char *)(uintptr_t)slot->ptr : port.tx.buf[slot->buf_idx]);
}

/*
 * Check that slots [first, nsent) are one frame of these bytes: no slot is
 * empty or too long for its buffer, and the first has the Ethernet header.
 */
static void
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
		if (port.desc.single_slot && slot->ptr % 64 != 0 &&
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

static void
fill(char *buf, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = i * 31 + i / 256;
}

ATF_TC(in_place);
ATF_TC_HEAD(in_place, tc)
{
	atf_tc_set_md_var(tc, "descr", "A frame of one fragment takes one slot "
	    "with a pointer to it, and one sync");
}
ATF_TC_BODY(in_place, tc)
{
	char frame[1514];
	struct iovec iov = { frame, sizeof(frame) };
	net_backend_t *be;

	fill(frame, sizeof(frame));
	be = backend();
	ATF_CHECK_EQ(1514, netbe_send(be, &iov, 1));
	ATF_CHECK_EQ(1, port.txsyncs);
	ATF_REQUIRE_EQ(1, port.nsent);
	ATF_CHECK_EQ((uintptr_t)frame, port.sent[0].ptr);
	ATF_CHECK_EQ(1514, port.sent[0].len);
	ATF_CHECK_EQ(NS_INDIRECT, port.sent[0].flags);
	netbe_cleanup(be);
}

ATF_TC(pieces);
ATF_TC_HEAD(pieces, tc)
{
	atf_tc_set_md_var(tc, "descr", "Long fragments are split to fit "
	    "buffers at any alignment; empty ones take no slot");
}
ATF_TC_BODY(pieces, tc)
{
	static _Alignas(64) char frame[64 + 16110];
	struct iovec iov[4];
	net_backend_t *be;
	unsigned int first;
	size_t off;

	fill(frame, sizeof(frame));
	port.desc.single_slot = true;
	be = backend();
	for (off = 0; off <= 64; off++) {
		first = port.nsent;
		iov[0].iov_base = frame + off;
		iov[0].iov_len = 16110;
		ATF_CHECK_EQ(16110, netbe_send(be, iov, 1));
		check_frame(first, frame + off, 16110);
		/* 7 full buffers, and some bytes at either end. */
		ATF_CHECK(port.nsent - first <= 9);

		first = port.nsent;
		iov[0].iov_len = 20;
		iov[1].iov_base = NULL;
		iov[1].iov_len = 0;
		iov[2].iov_base = frame + off + 20;
		iov[2].iov_len = 2048;
		iov[3].iov_base = NULL;
		iov[3].iov_len = 0;
		ATF_CHECK_EQ(2068, netbe_send(be, iov, 4));
		check_frame(first, frame + off, 2068);
		ATF_CHECK(port.nsent - first <= 3);
	}
	netbe_cleanup(be);
}

ATF_TC(header);
ATF_TC_HEAD(header, tc)
{
	atf_tc_set_md_var(tc, "descr", "A header in fragments is copied into "
	    "the first slot; the rest is not copied");
}
ATF_TC_BODY(header, tc)
{
	char frame[100];
	struct iovec iov[5];
	net_backend_t *be;
	unsigned int first;
	size_t a, b, c;

	fill(frame, sizeof(frame));
	be = backend();
	for (a = 0; a < 14; a++)
		for (b = 0; b < 16; b += 3) {
			c = 1;
			iov[0] = (struct iovec){ frame, a };
			iov[1] = (struct iovec){ frame + a, b };
			iov[2] = (struct iovec){ frame + a + b, c };
			iov[3] = (struct iovec){ NULL, 0 };
			iov[4] = (struct iovec){ frame + a + b + c,
			    100 - a - b - c };
			first = port.nsent;
			ATF_CHECK_EQ(100, netbe_send(be, iov, 5));
			check_frame(first, frame, 100);
			ATF_CHECK_EQ(14, port.sent[first].len);
			ATF_CHECK_EQ(0, port.sent[first].flags & NS_INDIRECT);
			ATF_CHECK_EQ((uintptr_t)frame + 100,
			    port.sent[port.nsent - 1].ptr +
			    port.sent[port.nsent - 1].len);
			port.nsent = 0;
		}
	netbe_cleanup(be);
}

ATF_TC(whole);
ATF_TC_HEAD(whole, tc)
{
	atf_tc_set_md_var(tc, "descr", "If the switch takes each slot for a "
	    "frame, a frame that fits goes into one slot");
}
ATF_TC_BODY(whole, tc)
{
	static _Alignas(64) char frame[64 + 4096];
	struct iovec iov[3];
	const size_t fits = PORT_BUF - 64;
	net_backend_t *be;
	size_t cut;

	fill(frame, sizeof(frame));
	port.desc.single_slot = true;
	be = backend();
	for (cut = 0; cut <= fits; cut += 32) {
		iov[0] = (struct iovec){ frame, cut };
		iov[1] = (struct iovec){ NULL, 0 };
		iov[2] = (struct iovec){ frame + cut, fits - cut };
		port.nsent = 0;
		ATF_CHECK_EQ((ssize_t)fits, netbe_send(be, iov, 3));
		ATF_REQUIRE_EQ(1, port.nsent);
		check_frame(0, frame, fits);
	}
	/* As one fragment it is not copied, if it fits from there. */
	iov[0] = (struct iovec){ frame + 1, fits - 65 };
	port.nsent = 0;
	ATF_CHECK_EQ((ssize_t)fits - 65, netbe_send(be, iov, 1));
	ATF_REQUIRE_EQ(1, port.nsent);
	ATF_CHECK_EQ(NS_INDIRECT, port.sent[0].flags);
	check_frame(0, frame + 1, fits - 65);
	iov[0].iov_len++;
	port.nsent = 0;
	ATF_CHECK_EQ((ssize_t)fits - 64, netbe_send(be, iov, 1));
	ATF_REQUIRE_EQ(1, port.nsent);
	ATF_CHECK_EQ(0, port.sent[0].flags);
	check_frame(0, frame + 1, fits - 64);
	/* A longer one takes several slots. */
	iov[0] = (struct iovec){ frame, fits + 1 };
	port.nsent = 0;
	ATF_CHECK_EQ((ssize_t)fits + 1, netbe_send(be, iov, 1));
	ATF_CHECK_EQ(2, port.nsent);
	check_frame(0, frame, fits + 1);
	netbe_cleanup(be);
}

ATF_TC(bounds);
ATF_TC_HEAD(bounds, tc)
{
	atf_tc_set_md_var(tc, "descr", "Runts, frames above 64 KB and frames "
	    "of more than 64 fragments are refused, and use no slot");
}
ATF_TC_BODY(bounds, tc)
{
	static char frame[65536];
	struct iovec iov[65];
	net_backend_t *be;
	unsigned int first;
	int i;

	fill(frame, sizeof(frame));
	be = backend();
	iov[0] = (struct iovec){ frame, 14 };
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 0));
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 1));
	iov[0].iov_len = 15;
	ATF_CHECK_EQ(15, netbe_send(be, iov, 1));
	iov[0].iov_len = 65535;
	first = port.nsent;
	ATF_CHECK_EQ(65535, netbe_send(be, iov, 1));
	check_frame(first, frame, 65535);
	first = port.nsent;
	iov[0].iov_len = 65536;
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 1));
	ATF_CHECK_EQ(EMSGSIZE, errno);
	ATF_CHECK_EQ(first, port.nsent);

	for (i = 0; i < 65; i++)
		iov[i] = (struct iovec){ frame + 20 * i, 20 };
	first = port.nsent;
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 65));
	ATF_CHECK_EQ(ENOBUFS, errno);
	ATF_CHECK_EQ(first, port.nsent);
	ATF_CHECK_EQ(1280, netbe_send(be, iov, 64));
	check_frame(first, frame, 1280);
	ATF_CHECK_EQ(64, port.nsent - first);
	netbe_cleanup(be);
}

ATF_TC(defer);
ATF_TC_HEAD(defer, tc)
{
	atf_tc_set_md_var(tc, "descr", "Deferred frames are sent by one sync, "
	    "or by several if the ring fills, all in order");
}
ATF_TC_BODY(defer, tc)
{
	char frame[300];
	struct iovec iov = { frame, 60 };
	struct frame_port *fp;
	net_backend_t *be;
	int i;

	be = backend();
	fp = backend_port(be);
	frame_port_flush(fp);
	ATF_CHECK_EQ_MSG(0, port.txsyncs, "a sync for nothing");
	ATF_CHECK_EQ(5, frame_port_missed(fp));
	for (i = 0; i < 60; i++) {
		iov.iov_base = frame + i;
		ATF_CHECK(port_send(fp, &iov, 1));
	}
	ATF_CHECK_EQ(0, port.txsyncs);
	frame_port_flush(fp);
	frame_port_flush(fp);
	ATF_CHECK_EQ(1, port.txsyncs);
	ATF_CHECK_EQ(60, port.nsent);

	for (; i < 240; i++) {
		iov.iov_base = frame + i;
		ATF_CHECK(port_send(fp, &iov, 1));
	}
	frame_port_flush(fp);
	ATF_REQUIRE_EQ(240, port.nsent);
	for (i = 0; i < 240; i++)
		ATF_CHECK_EQ((uintptr_t)frame + i, port.sent[i].ptr);
	netbe_cleanup(be);
}

ATF_TC(no_room);
ATF_TC_HEAD(no_room, tc)
{
	atf_tc_set_md_var(tc, "descr", "Sending fails if the switch takes no "
	    "frames or the port is gone");
}
ATF_TC_BODY(no_room, tc)
{
	char frame[60];
	struct iovec iov = { frame, 60 };
	struct frame_port *fp;
	net_backend_t *be;
	int i;

	be = backend();
	fp = backend_port(be);
	port.stuck = true;
	for (i = 0; i < PORT_SLOTS - 1; i++)
		ATF_CHECK(port_send(fp, &iov, 1));
	ATF_CHECK(!port_send(fp, &iov, 1));
	port.error = ENXIO;
	ATF_CHECK(!port_send(fp, &iov, 1));

	port.stuck = false;
	port.error = 0;
	frame_port_flush(fp);
	ATF_CHECK(port_send(fp, &iov, 1));
	frame_port_flush(fp);
	ATF_CHECK_EQ(PORT_SLOTS, port.nsent);
	for (i = 0; i < PORT_SLOTS - 1; i++) {
		ATF_CHECK_EQ_MSG(0, port.sent[i].len + port.sent[i].flags,
		    "slot %d points at a buffer that is in use again", i);
	}
	ATF_CHECK_EQ(60, port.sent[i].len);
	ATF_CHECK((port.sent[i].flags & NS_INDIRECT) != 0);

	port.error = ENXIO;
	frame_port_sync(fp);
	ATF_CHECK_EQ(0, netbe_recv(be, &iov, 1));
	netbe_cleanup(be);
}

ATF_TC(small_buffers);
ATF_TC_HEAD(small_buffers, tc)
{
	atf_tc_set_md_var(tc, "descr", "Buffers that are too small are "
	    "refused, the smallest valid ones are not");
}
ATF_TC_BODY(small_buffers, tc)
{
	static char frame[9000];
	struct iovec iov = { frame + 1, sizeof(frame) - 1 };
	net_backend_t *be;
	unsigned int i;

	port.buf_size = 511;
	ATF_CHECK(backend_try(&be, "vale0:a") != 0);
	port.buf_size = 512;
	port.desc.single_slot = true;
	fill(frame, sizeof(frame));
	be = backend();
	ATF_CHECK_EQ((ssize_t)iov.iov_len, netbe_send(be, &iov, 1));
	check_frame(0, frame + 1, iov.iov_len);
	for (i = 0; i < port.nsent; i++)
		ATF_CHECK(64 + port.sent[i].ptr % 64 + port.sent[i].len <= 512);
	netbe_cleanup(be);
}

ATF_TC(vnet_header);
ATF_TC_HEAD(vnet_header, tc)
{
	atf_tc_set_md_var(tc, "descr", "Frames with virtio-net headers are "
	    "copied if the port has such headers");
}
ATF_TC_BODY(vnet_header, tc)
{
	static const size_t sizes[] = { 15, 60, PORT_BUF - 12, PORT_BUF - 11,
	    9000, 65535 };
	static char frame[12 + 65536];
	struct iovec iov[3];
	net_backend_t *be;
	size_t i, n;

	fill(frame, sizeof(frame));
	be = backend();
	ATF_CHECK_EQ(0, netbe_get_cap(be));
	ATF_CHECK_EQ(-1, netbe_set_cap(be, 0, 12));
	port.headers = true;
	ATF_CHECK((netbe_get_cap(be) & VIRTIO_NET_F_HOST_TSO4) != 0);
	ATF_CHECK_EQ(0, port.header);
	ATF_CHECK_EQ(-1, netbe_set_cap(be, VIRTIO_NET_F_CSUM, 0));
	/* With features of the frontend, as in bhyve. */
	ATF_CHECK_EQ(0, netbe_set_cap(be, VIRTIO_NET_F_CSUM | 1 << 16, 12));
	ATF_CHECK_EQ(12, port.header);
	ATF_CHECK_EQ(12, netbe_get_vnet_hdr_len(be));
	ATF_CHECK(netbe_get_cap(be) != 0);
	ATF_CHECK_EQ(12, port.header);

	for (i = 0; i < nitems(sizes); i++) {
		n = port.nsent;
		iov[0] = (struct iovec){ frame, 12 };
		iov[1] = (struct iovec){ frame + 12, 0 };
		iov[2] = (struct iovec){ frame + 12, sizes[i] };
		ATF_CHECK_EQ((ssize_t)sizes[i] + 12, netbe_send(be, iov, 3));
		check_frame(n, frame, sizes[i] + 12);
		for (; n < port.nsent; n++)
			ATF_CHECK((port.sent[n].flags & NS_INDIRECT) == 0);
	}
	iov[0] = (struct iovec){ frame, 12 + 14 };
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 1));
	iov[0] = (struct iovec){ frame, 12 + 65536 };
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 1));

	port.stuck = true;
	iov[0] = (struct iovec){ frame, 12 + 9000 };
	while (netbe_send(be, iov, 1) == 12 + 9000)
		continue;
	ATF_CHECK_EQ(ENOBUFS, errno);
	ATF_CHECK_EQ(0, netbe_set_cap(be, 0, 0));
	ATF_CHECK_EQ(0, port.header);
	netbe_cleanup(be);
}

ATF_TC(peek);
ATF_TC_HEAD(peek, tc)
{
	atf_tc_set_md_var(tc, "descr", "Frames are received in their slots, "
	    "which the next sync releases");
}
ATF_TC_BODY(peek, tc)
{
	char data[PORT_BUF];
	struct iovec iov[8];
	struct frame_port *fp;
	net_backend_t *be;

	fill(data, sizeof(data));
	be = backend();
	fp = backend_port(be);
	port_receive(data, 100, 0);
	port_receive(data, 2048, NS_MOREFRAG);
	port_receive(data, 200, 0);
	ATF_CHECK_EQ(0, port_peek(fp, iov, 8));
	frame_next(fp->fp_source);
	frame_port_sync(fp);
	ATF_CHECK_EQ(1, port_peek(fp, iov, 8));
	ATF_CHECK_EQ(1, port_peek(fp, iov, 8));
	ATF_CHECK_EQ((void *)port.rx.buf[0], iov[0].iov_base);
	ATF_CHECK_EQ(100, iov[0].iov_len);
	frame_next(fp->fp_source);
	ATF_CHECK_EQ_MSG(0, port.desc.rxring->head, "given back too early");
	ATF_CHECK_EQ(2, port_peek(fp, iov, 8));
	ATF_CHECK_EQ((void *)port.rx.buf[1], iov[0].iov_base);
	ATF_CHECK_EQ(2048, iov[0].iov_len);
	ATF_CHECK_EQ((void *)port.rx.buf[2], iov[1].iov_base);
	ATF_CHECK_EQ(200, iov[1].iov_len);
	frame_port_sync(fp);
	ATF_CHECK_EQ_MSG(1, port.desc.rxring->head, "not stepped over yet");
	ATF_CHECK_EQ(2, port_peek(fp, iov, 8));
	frame_next(fp->fp_source);
	ATF_CHECK_EQ(0, port_peek(fp, iov, 8));
	frame_next(fp->fp_source);
	frame_port_sync(fp);
	ATF_CHECK_EQ(3, port.desc.rxring->head);
	netbe_cleanup(be);
}

ATF_TC(peek_skip);
ATF_TC_HEAD(peek_skip, tc)
{
	atf_tc_set_md_var(tc, "descr", "Empty slots, frames with an invalid "
	    "slot, and those of too many fragments are skipped; an incomplete "
	    "frame waits");
}
ATF_TC_BODY(peek_skip, tc)
{
	char data[200];
	struct iovec iov[2];
	struct frame_port *fp;
	net_backend_t *be;
	int i, j;

	fill(data, sizeof(data));
	be = backend();
	fp = backend_port(be);
	for (i = 0; i < PORT_SLOTS; i++) {
		port_receive(data, 0, 0);
		port_receive(data, 60, NS_MOREFRAG);
		port_receive(data, 0, NS_MOREFRAG);
		port_receive(data, 60, 0);
		for (j = 0; j < FRAME_MAXIOV; j++)
			port_receive(data, 60, NS_MOREFRAG);
		port_receive(data, 60, 0);
		port_receive(data, 60 + i, 0);
		port_receive(data, 0, 0);
		frame_port_sync(fp);
		ATF_REQUIRE_EQ(1, port_peek(fp, iov, 2));
		ATF_CHECK_EQ((size_t)60 + i, iov[0].iov_len);
		frame_next(fp->fp_source);
		ATF_CHECK_EQ(0, port_peek(fp, iov, 2));

		port_receive(data, 60, NS_MOREFRAG);
		frame_port_sync(fp);
		ATF_CHECK_EQ(0, port_peek(fp, iov, 2));
		port_receive(data, 100, 0);
		frame_port_sync(fp);
		ATF_CHECK_EQ(2, port_peek(fp, iov, 2));
		frame_next(fp->fp_source);
		frame_port_sync(fp);
		ATF_CHECK_EQ(port.rx_filled, port.desc.rxring->head);
	}
	netbe_cleanup(be);
}

ATF_TC(recv);
ATF_TC_HEAD(recv, tc)
{
	atf_tc_set_md_var(tc, "descr", "A frontend without batches gets "
	    "complete frames, with a sync when there are no more");
}
ATF_TC_BODY(recv, tc)
{
	char data[PORT_BUF], got[4096];
	struct iovec iov[3] = { { got, 7 }, { NULL, 0 },
	    { got + 7, sizeof(got) - 7 } };
	net_backend_t *be;

	fill(data, sizeof(data));
	be = backend();
	ATF_CHECK_EQ(0, netbe_peek_recvlen(be));
	ATF_CHECK_EQ(0, netbe_recv(be, iov, 3));
	port_receive(data, 2048, NS_MOREFRAG);
	port_receive(data, 100, 0);
	port_receive(data, 70, 0);
	port_receive(data, 80, 0);
	port_receive(data, 90, 0);
	ATF_CHECK_EQ(2148, netbe_peek_recvlen(be));
	port.rxsyncs = 0;
	ATF_CHECK_EQ(2148, netbe_recv(be, iov, 3));
	ATF_CHECK_EQ(0, memcmp(data, got, 2048));
	ATF_CHECK_EQ(0, memcmp(data, got + 2048, 100));
	ATF_CHECK_EQ(70, netbe_rx_discard(be));
	ATF_CHECK_EQ_MSG(7, netbe_recv(be, iov, 1), "not cut to the room");
	ATF_CHECK_EQ(90, netbe_recv(be, iov, 3));
	ATF_CHECK_EQ(0, port.rxsyncs);
	ATF_CHECK_EQ(0, netbe_recv(be, iov, 3));
	ATF_CHECK_EQ(1, port.rxsyncs);
	ATF_CHECK_EQ(5, port.desc.rxring->head);
	netbe_cleanup(be);
}

static void
no_sink(void *arg __unused, struct frame_source *frames __unused)
{
	atf_tc_fail("called");
}

ATF_TC(no_direct);
ATF_TC_HEAD(no_direct, tc)
{
	atf_tc_set_md_var(tc, "descr", "The frontend gets an error if the "
	    "switch has no sinks");
}
ATF_TC_BODY(no_direct, tc)
{
	struct frame_port *fp;
	net_backend_t *be;

	be = backend();
	fp = backend_port(be);
	ATF_CHECK(!frame_port_set_sink(fp, no_sink, NULL));
	ATF_CHECK(frame_port_set_sink(fp, NULL, NULL));
	netbe_cleanup(be);
}

/* A port that takes offloads. */
static struct frame_port *
offload_port(net_backend_t **bep)
{
	struct frame_port *fp;

	*bep = backend();
	fp = backend_port(*bep);
	frame_port_set_offloads(fp);
	ATF_CHECK(!fp->fp_offloads);
	port.headers = true;
	frame_port_set_offloads(fp);
	ATF_CHECK(fp->fp_offloads);
	ATF_CHECK_EQ(VALE_HEADER_SLOT, port.header);
	return (fp);
}

/* The header of a frame to be cut, and what it means. */
static const uint8_t offload_header[12] = {
	1, 1, 54, 0, 0xe8, 3, 34, 0, 16, 0, 1, 0
};

static void
offload_frame(struct frame *frame, int niov, uint32_t len)
{
	frame_set(frame, niov, len);
	frame->f_flags = FRAME_CSUM_PARTIAL;
	frame->f_gso_type = FRAME_GSO_TCPV4;
	frame->f_hdr_len = 54;
	frame->f_gso_size = 1000;
	frame->f_csum_start = 34;
	frame->f_csum_offset = 16;
}

ATF_TC(send_offload);
ATF_TC_HEAD(send_offload, tc)
{
	atf_tc_set_md_var(tc, "descr", "A header has a slot of its own, the "
	    "frame is sent in place, or copied if it has too many fragments");
}
ATF_TC_BODY(send_offload, tc)
{
	static char data[65535];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_port *fp;
	net_backend_t *be;
	unsigned int first;
	int i, n;

	fill(data, sizeof(data));
	fp = offload_port(&be);
	for (n = 2; n <= FRAME_MAXIOV; n++) {
		/* Each takes two slots, but for the first and the last. */
		iov[0].iov_base = data;
		iov[0].iov_len = 54;
		for (i = 1; i < n; i++) {
			iov[i].iov_base = data + 54 + (i - 1) * 1000;
			iov[i].iov_len = 1000;
		}
		offload_frame(&frame, n, 54 + (n - 1) * 1000);
		first = port.nsent;
		ATF_REQUIRE_EQ(0, frame_port_send(fp, &frame));
		frame_port_flush(fp);
		ATF_REQUIRE(first < port.nsent);
		ATF_CHECK_EQ(12, port.sent[first].len);
		ATF_CHECK_EQ(NS_MOREFRAG | VALE_SLOT_HEADER,
		    port.sent[first].flags);
		ATF_CHECK_EQ(0, memcmp(offload_header,
		    slot_data(&port.sent[first]), 12));
		check_frame(first + 1, data, frame.f_len);
		ATF_CHECK_EQ(n < FRAME_MAXIOV ? NS_INDIRECT : 0,
		    port.sent[first + 1].flags & NS_INDIRECT);
		port.nsent = 0;
	}
	/* The longest, in few fragments. */
	iov[1].iov_len = sizeof(data) - 54;
	offload_frame(&frame, 2, sizeof(data));
	ATF_REQUIRE_EQ(0, frame_port_send(fp, &frame));
	frame_port_flush(fp);
	check_frame(1, data, sizeof(data));
	netbe_cleanup(be);
}

ATF_TC(recv_offload);
ATF_TC_HEAD(recv_offload, tc)
{
	atf_tc_set_md_var(tc, "descr", "A frame with a header has two "
	    "fragments at least; one with an invalid header is skipped");
}
ATF_TC_BODY(recv_offload, tc)
{
	static char data[2048];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	uint8_t bad[12];
	struct frame_port *fp;
	net_backend_t *be;
	int i, n;

	fill(data, sizeof(data));
	fp = offload_port(&be);
	memcpy(bad, offload_header, sizeof(bad));
	bad[1] = 2;
	for (n = 1; n <= FRAME_MAXIOV + 1; n++) {
		port_receive((char *)bad, 12, NS_MOREFRAG | VALE_SLOT_HEADER);
		port_receive(data, 2000, 0);
		port_receive((const char *)offload_header, 12,
		    NS_MOREFRAG | VALE_SLOT_HEADER);
		for (i = 0; i < n; i++)
			port_receive(data, 2000, i < n - 1 ? NS_MOREFRAG : 0);
		port_receive(data, 60, 0);
		frame_port_sync(fp);
		ATF_REQUIRE(frame_peek(fp->fp_source, &frame));
		if (n <= FRAME_MAXIOV) {
			ATF_CHECK_EQ(n == 1 ? 2 : n, frame.f_niov);
			ATF_CHECK_EQ((uint32_t)n * 2000, frame.f_len);
			ATF_CHECK_EQ(n == 1 ? 0 : 2000, iov[1].iov_len);
			ATF_CHECK_EQ(FRAME_CSUM_PARTIAL, frame.f_flags);
			ATF_CHECK_EQ(FRAME_GSO_TCPV4, frame.f_gso_type);
			ATF_CHECK_EQ(1000, frame.f_gso_size);
			ATF_CHECK_EQ(34, frame.f_csum_start);
			ATF_CHECK_EQ(16, frame.f_csum_offset);
			frame_next(fp->fp_source);
			ATF_REQUIRE(frame_peek(fp->fp_source, &frame));
		}
		ATF_CHECK_EQ(60, frame.f_len);
		ATF_CHECK_EQ(0, frame.f_flags);
		ATF_CHECK_EQ(FRAME_GSO_NONE, frame.f_gso_type);
		frame_next(fp->fp_source);
		ATF_CHECK(!frame_peek(fp->fp_source, &frame));
		frame_port_sync(fp);
	}
	netbe_cleanup(be);
}

/* A port of FreeBSD's switch that takes offloads. */
static struct frame_port *
header_port(net_backend_t **bep)
{
	struct frame_port *fp;

	port.headers = port.desc.single_slot = true;
	*bep = backend();
	fp = backend_port(*bep);
	frame_port_set_offloads(fp);
	ATF_CHECK(fp->fp_offloads);
	ATF_CHECK_EQ(12, port.header);
	return (fp);
}

ATF_TC(send_each_header);
ATF_TC_HEAD(send_each_header, tc)
{
	atf_tc_set_md_var(tc, "descr", "FreeBSD's switch gets each frame after "
	    "a header, copied; uncut if it cuts it as the sender wants");
}
ATF_TC_BODY(send_each_header, tc)
{
	static const size_t sizes[] = { 60, 1514, 1972, 1973, 9018, 65535 };
	static char data[12 + 65535];
	struct iovec iov[2];
	struct frame frame = { .f_iov = iov };
	struct frame_port *fp;
	net_backend_t *be;
	uint8_t *p = (uint8_t *)data + 12;
	unsigned int first;
	size_t i;

	fp = header_port(&be);
	fill(data, sizeof(data));
	memset(data, 0, 12);
	data[10] = 1;		/* num_buffers */
	for (i = 0; i < nitems(sizes); i++) {
		first = port.nsent;
		iov[0] = (struct iovec){ p, 20 };
		iov[1] = (struct iovec){ p + 20, sizes[i] - 20 };
		frame_set(&frame, 2, sizes[i]);
		ATF_CHECK_EQ(0, frame_port_send(fp, &frame));
		frame_port_flush(fp);
		check_frame(first, data, 12 + sizes[i]);
		ATF_CHECK_EQ(howmany(12 + sizes[i], 1984), port.nsent - first);
		for (; first < port.nsent; first++)
			ATF_CHECK((port.sent[first].flags & NS_INDIRECT) == 0);
	}

	memcpy(data, offload_header, 10);
	memcpy(p + 12, "\x08\x00\x45", 3);
	p[46] = 0x50;
	offload_frame(&frame, 2, 40000);
	iov[1].iov_len = 40000 - 20;
	first = port.nsent;
	ATF_CHECK_EQ(0, frame_port_send(fp, &frame));
	frame_port_flush(fp);
	check_frame(first, data, 12 + 40000);

	ATF_CHECK_MSG(!frame_port_takes_uncut(fp, &frame), "1054 bytes");
	frame.f_gso_size = 1459;
	ATF_CHECK_MSG(!frame_port_takes_uncut(fp, &frame), "1513 bytes");
	frame.f_gso_size = 1460;
	ATF_CHECK(frame_port_takes_uncut(fp, &frame));
	frame.f_gso_size = 8960;
	ATF_CHECK(frame_port_takes_uncut(fp, &frame));
	frame.f_gso_type = FRAME_GSO_TCPV6 | FRAME_GSO_ECN;
	ATF_CHECK(frame_port_takes_uncut(fp, &frame));
	frame.f_gso_type = FRAME_GSO_UDP_L4;
	ATF_CHECK(!frame_port_takes_uncut(fp, &frame));
	frame.f_gso_type = FRAME_GSO_UDP;
	ATF_CHECK(!frame_port_takes_uncut(fp, &frame));
	netbe_cleanup(be);
}

ATF_TC(recv_each_header);
ATF_TC_HEAD(recv_each_header, tc)
{
	atf_tc_set_md_var(tc, "descr", "Each frame of FreeBSD's switch is as "
	    "its header says; one with an invalid header is skipped");
}
ATF_TC_BODY(recv_each_header, tc)
{
	static char data[2048];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_port *fp;
	net_backend_t *be;
	int i;

	fp = header_port(&be);
	fill(data, sizeof(data));
	for (i = 0; i < PORT_SLOTS; i++) {
		memset(data, 0, 12);
		port_receive(data, 12 + 60, 0);
		/* Too short; without a frame; of unknown type. */
		port_receive(data, 11, 0);
		port_receive(data, 11, NS_MOREFRAG);
		port_receive(data, 60, 0);
		port_receive(data, 12, 0);
		data[1] = 2;
		port_receive(data, 12 + 60, 0);
		/* The header may have a slot of its own. */
		data[1] = 0;
		port_receive(data, 12, NS_MOREFRAG);
		port_receive(data, 70, 0);
		data[0] = FRAME_CSUM_VERIFIED;
		port_receive(data, 12 + 80, 0);
		memcpy(data, offload_header, 12);
		port_receive(data, 12 + 1960, NS_MOREFRAG);
		port_receive(data, 1000, 0);
		data[1] = data[4] = data[5] = 0;
		port_receive(data, 12 + 90, 0);
		frame_port_sync(fp);

		ATF_REQUIRE(frame_peek(fp->fp_source, &frame));
		ATF_CHECK_EQ(1, frame.f_niov);
		ATF_CHECK_EQ(60, frame.f_len);
		ATF_CHECK_EQ(60, iov[0].iov_len);
		ATF_CHECK_EQ(0, frame.f_flags);
		ATF_CHECK_EQ(0, memcmp(data + 12, iov[0].iov_base, 60));
		frame_next(fp->fp_source);
		ATF_REQUIRE(frame_peek(fp->fp_source, &frame));
		ATF_CHECK_EQ(1, frame.f_niov);
		ATF_CHECK_EQ(70, frame.f_len);
		frame_next(fp->fp_source);
		ATF_REQUIRE(frame_peek(fp->fp_source, &frame));
		ATF_CHECK_EQ(80, frame.f_len);
		ATF_CHECK_EQ(FRAME_CSUM_VERIFIED, frame.f_flags);
		frame_next(fp->fp_source);
		ATF_REQUIRE(frame_peek(fp->fp_source, &frame));
		ATF_CHECK_EQ(2, frame.f_niov);
		ATF_CHECK_EQ(2960, frame.f_len);
		ATF_CHECK_EQ(1960, iov[0].iov_len);
		ATF_CHECK_EQ(1000, iov[1].iov_len);
		ATF_CHECK_EQ(FRAME_GSO_TCPV4, frame.f_gso_type);
		ATF_CHECK_EQ(1000, frame.f_gso_size);
		frame_next(fp->fp_source);
		ATF_REQUIRE(frame_peek(fp->fp_source, &frame));
		ATF_CHECK_EQ_MSG(2, frame.f_niov, "a partial checksum");
		ATF_CHECK_EQ(90, frame.f_len);
		ATF_CHECK_EQ(0, iov[1].iov_len);
		frame_next(fp->fp_source);
		ATF_CHECK(!frame_peek(fp->fp_source, &frame));
		frame_port_sync(fp);
		ATF_CHECK_EQ(port.rx_filled, port.desc.rxring->head);
	}
	netbe_cleanup(be);
}

/* Send with a header, to FreeBSD's switch. */
static void
check_header(net_backend_t *be, const char *data, size_t len, bool valid)
{
	struct iovec iov = { __DECONST(char *, data), len };
	const unsigned int n = port.nsent;

	if (valid) {
		ATF_CHECK_EQ((ssize_t)len, netbe_send(be, &iov, 1));
		check_frame(n, data, len);
		return;
	}
	ATF_CHECK_EQ(-1, netbe_send(be, &iov, 1));
	ATF_CHECK_EQ(EINVAL, errno);
	ATF_CHECK_EQ(n, port.nsent);
}

ATF_TC(bad_header);
ATF_TC_HEAD(bad_header, tc)
{
	atf_tc_set_md_var(tc, "descr", "FreeBSD's switch, which trusts headers, "
	    "gets no invalid one");
}
ATF_TC_BODY(bad_header, tc)
{
	static char data[9012];
	char *frame = data + 12;
	net_backend_t *be;

	port.headers = port.desc.single_slot = true;
	be = backend();
	ATF_REQUIRE_EQ(0, netbe_set_cap(be, VIRTIO_NET_F_CSUM, 12));
	check_header(be, data, 12 + 60, true);
	/* The checksum at the end of the frame, and beyond. */
	data[0] = 1;
	data[6] = 34;
	data[8] = 24;
	check_header(be, data, 12 + 60, true);
	check_header(be, data, 12 + 59, false);
	data[8] = 2;
	data[7] = 0x20;
	check_header(be, data, sizeof(data), false);
	data[7] = 0;
	data[9] = 0x7f;
	check_header(be, data, sizeof(data), false);

	/* TCP, to be cut: 1000 bytes in a segment. */
	memcpy(data, offload_header, 10);
	memcpy(frame + 12, "\x08\x00\x45", 3);
	frame[23] = 6;
	frame[46] = 0x50;
	check_header(be, data, sizeof(data), true);
	data[1] = 0x81 - 256;
	check_header(be, data, sizeof(data), true);
	data[1] = 2;
	check_header(be, data, sizeof(data), false);
	data[1] = 1;
	frame[13] = 6;
	check_header(be, data, sizeof(data), false);

	/* Two tags, and a third. */
	memset(frame + 12, 0, 100);
	memcpy(frame + 12, "\x81\x00\x00\x01\x81\x00\x00\x02\x08\x00\x45",
	    11);
	frame[31] = 6;
	frame[54] = 0x50;
	data[6] = 42;
	check_header(be, data, sizeof(data), true);
	frame[20] = 0x81 - 256;
	check_header(be, data, sizeof(data), false);

	/* UDP. */
	frame[20] = 8;
	frame[31] = 17;
	data[1] = 3;
	data[8] = 6;
	check_header(be, data, sizeof(data), true);
	data[1] = 5;
	check_header(be, data, sizeof(data), true);
	/* What is no header is no matter without them. */
	ATF_REQUIRE_EQ(0, netbe_set_cap(be, 0, 0));
	data[1] = 2;
	check_header(be, data, sizeof(data), true);
	netbe_cleanup(be);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, in_place);
	ATF_TP_ADD_TC(tp, pieces);
	ATF_TP_ADD_TC(tp, header);
	ATF_TP_ADD_TC(tp, whole);
	ATF_TP_ADD_TC(tp, bounds);
	ATF_TP_ADD_TC(tp, defer);
	ATF_TP_ADD_TC(tp, no_room);
	ATF_TP_ADD_TC(tp, small_buffers);
	ATF_TP_ADD_TC(tp, vnet_header);
	ATF_TP_ADD_TC(tp, peek);
	ATF_TP_ADD_TC(tp, peek_skip);
	ATF_TP_ADD_TC(tp, recv);
	ATF_TP_ADD_TC(tp, no_direct);
	ATF_TP_ADD_TC(tp, send_offload);
	ATF_TP_ADD_TC(tp, recv_offload);
	ATF_TP_ADD_TC(tp, send_each_header);
	ATF_TP_ADD_TC(tp, recv_each_header);
	ATF_TP_ADD_TC(tp, bad_header);
	return (atf_no_error());
}
