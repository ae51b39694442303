/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * net_port.c over a backend that counts, and over VALE.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/endian.h>
#include <sys/uio.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <atf-c.h>

#include "backend.h"
#include "iov.h"
#include "libvale.h"
#include "net_backends_priv.h"
#include "port.h"
#include "net_port.h"
#include "test.h"

/* The backend `one': a frame a call, as most. */
static struct {
	int		 sends, recvs;
	bool		 refuse;
	ssize_t		 next;		/* what recv returns: length or -1 */
	uint8_t		 fill;		/* and what it fills the frame with */
	const struct iovec *iov;
	int		 niov;
} one;

static int
one_init(struct net_backend *be __unused, const char *devname __unused,
    nvlist_t *nvl __unused, net_be_rxeof_t cb __unused, void *param __unused)
{
	return (0);
}

static void
one_cleanup(struct net_backend *be __unused)
{
}

static ssize_t
one_send(struct net_backend *be __unused, const struct iovec *iov, int iovcnt)
{
	one.sends++;
	one.iov = iov;
	one.niov = iovcnt;
	if (one.refuse) {
		errno = EAGAIN;
		return (-1);
	}
	return (count_iov(iov, iovcnt));
}

static ssize_t
one_recv(struct net_backend *be __unused, const struct iovec *iov, int iovcnt)
{
	one.recvs++;
	ATF_REQUIRE_EQ(1, iovcnt);
	if (one.next > 0) {
		ATF_REQUIRE(iov->iov_len >= (size_t)one.next);
		memset(iov->iov_base, one.fill, one.next);
	}
	return (one.next);
}

static uint64_t
one_get_cap(struct net_backend *be __unused)
{
	return (0);
}

static int
one_set_cap(struct net_backend *be __unused, uint64_t features,
    unsigned int vnet_hdr_len)
{
	return (features == 0 && vnet_hdr_len == 0 ? 0 : -1);
}

static struct net_backend one_backend = {
	.prefix = "one",
	.init = one_init,
	.cleanup = one_cleanup,
	.send = one_send,
	.recv = one_recv,
	.get_cap = one_get_cap,
	.set_cap = one_set_cap,
};
DATA_SET(net_backend_set, one_backend);

/* The backend `header': one with virtio-net headers, as tap's. */
#define	HEADER		10
#define	CAPS								\
	(VIRTIO_NET_F_CSUM | VIRTIO_NET_F_HOST_TSO4 |			\
	VIRTIO_NET_F_HOST_TSO6 | VIRTIO_NET_F_GUEST_CSUM |		\
	VIRTIO_NET_F_GUEST_TSO4 | VIRTIO_NET_F_GUEST_TSO6)

static struct {
	uint64_t	 caps;		/* it has */
	bool		 refuse;	/* to set them */
	uint32_t	 space;		/* frames it takes */
	int		 sends;
	size_t		 len;		/* of the last one, in buf */
	uint8_t		 buf[70000];
	const uint8_t	*next;		/* frames to receive: */
	const size_t	*lens;		/* their lengths, 0 at the end */
} header;

static ssize_t
header_send(struct net_backend *be __unused, const struct iovec *iov,
    int iovcnt)
{
	int i;

	if (header.space-- == 0) {
		errno = EAGAIN;
		return (-1);
	}
	header.sends++;
	for (header.len = i = 0; i < iovcnt; i++) {
		ATF_REQUIRE(iov[i].iov_len <= sizeof(header.buf) - header.len);
		memcpy(header.buf + header.len, iov[i].iov_base,
		    iov[i].iov_len);
		header.len += iov[i].iov_len;
	}
	return (header.len);
}

static ssize_t
header_recv(struct net_backend *be __unused, const struct iovec *iov,
    int iovcnt)
{
	const size_t len = *header.lens;

	if (len == 0)
		return (0);
	buf_to_iov(header.next, len, iov, iovcnt, 0);
	header.next += len;
	header.lens++;
	return (len);
}

static uint64_t
header_get_cap(struct net_backend *be __unused)
{
	return (header.caps);
}

static int
header_set_cap(struct net_backend *be __unused, uint64_t features,
    unsigned int vnet_hdr_len)
{
	ATF_CHECK_EQ(CAPS, features);
	ATF_CHECK_EQ(HEADER, vnet_hdr_len);
	return (header.refuse ? -1 : 0);
}

static struct net_backend header_backend = {
	.prefix = "header",
	.init = one_init,
	.cleanup = one_cleanup,
	.send = header_send,
	.recv = header_recv,
	.get_cap = header_get_cap,
	.set_cap = header_set_cap,
};
DATA_SET(net_backend_set, header_backend);

TEST(recv_one, "Over any backend a frame is received once, no matter how often "
    "it is looked at; errors are no frame")
{
	struct iovec iov[4];
	struct frame_port *port;
	net_backend_t *be;

	be = backend_open("one0", backend_ignore, NULL);
	port = backend_port(be);
	frame_port_sync(port);
	ATF_CHECK_EQ(0, port_peek(port, iov, 4));
	one.next = -1;
	ATF_CHECK_EQ(0, port_peek(port, iov, 4));
	ATF_CHECK_EQ(2, one.recvs);

	one.next = 100;
	one.fill = 'a';
	ATF_CHECK_EQ(1, port_peek(port, iov, 4));
	one.fill = 'b';
	ATF_CHECK_EQ(1, port_peek(port, iov, 4));
	frame_port_sync(port);
	ATF_CHECK_EQ(1, port_peek(port, iov, 4));
	ATF_CHECK_EQ(3, one.recvs);
	ATF_CHECK_EQ(100, iov[0].iov_len);
	ATF_CHECK_EQ('a', *(char *)iov[0].iov_base);
	frame_next(port->fp_source);
	ATF_CHECK_EQ_MSG('a', *(char *)iov[0].iov_base, "gone before a peek");

	one.next = 65535;
	ATF_CHECK_EQ(1, port_peek(port, iov, 4));
	ATF_CHECK_EQ(65535, iov[0].iov_len);
	ATF_CHECK_EQ('b', ((char *)iov[0].iov_base)[65534]);
	frame_next(port->fp_source);
	one.next = 0;
	ATF_CHECK_EQ(0, port_peek(port, iov, 4));
	frame_next(port->fp_source);
	net_port_destroy(port);
	netbe_cleanup(be);
}

/* A packet of TCP, or UDP, over IPv4 without addresses. */
static struct frame
make_packet(struct iovec *iov, uint8_t *data, bool udp, size_t paylen,
    uint32_t mss)
{
	const uint32_t hdrlen = udp ? 42 : 54;
	struct frame frame = { .f_iov = iov };
	size_t i;

	memset(data, 0, hdrlen);
	for (i = 0; i < paylen; i++)
		data[hdrlen + i] = i * 7;
	be16enc(data + 12, 0x0800);
	data[14] = 0x45;
	data[23] = udp ? 17 : 6;
	data[46] = 0x50;
	be16enc(data + (udp ? 40 : 50), data[23] + hdrlen - 34 + paylen);
	iov[0] = (struct iovec){ data, 40 };
	iov[1] = (struct iovec){ data + 40, hdrlen + paylen - 40 };
	frame_set(&frame, 2, hdrlen + paylen);
	frame.f_flags = FRAME_CSUM_PARTIAL;
	frame.f_csum_start = 34;
	frame.f_csum_offset = udp ? 6 : 16;
	if (mss != 0) {
		frame.f_gso_type = udp ? FRAME_GSO_UDP_L4 : FRAME_GSO_TCPV4;
		frame.f_gso_size = mss;
		frame.f_hdr_len = hdrlen;
	}
	return (frame);
}

TEST(send_header, "A backend that has virtio-net headers gets frames, and TCP "
    "uncut, after a header; not UDP uncut")
{
	static const uint8_t zeros[HEADER];
	static uint8_t data[5000];
	struct iovec iov[2];
	struct frame_port *port;
	struct frame frame;
	net_backend_t *be;

	header.caps = CAPS;
	be = backend_open("header0", backend_ignore, NULL);
	port = backend_port(be);
	frame_port_set_offloads(port);
	ATF_CHECK_MSG(!port->fp_offloads, "not tap");
	net_port_destroy(port);

	header.caps = 0;
	be->prefix = "tap";
	port = backend_port(be);
	frame_port_set_offloads(port);
	ATF_CHECK_MSG(!port->fp_offloads, "without any capability");
	header.caps = CAPS & ~VIRTIO_NET_F_GUEST_TSO6;
	frame_port_set_offloads(port);
	ATF_CHECK_MSG(!port->fp_offloads, "without TCP over IPv6");
	header.caps = CAPS | VIRTIO_NET_F_HOST_UFO;
	header.refuse = true;
	frame_port_set_offloads(port);
	ATF_CHECK_MSG(!port->fp_offloads, "refused");
	header.refuse = false;
	frame_port_set_offloads(port);
	ATF_REQUIRE(port->fp_offloads);

	header.space = UINT32_MAX;
	memset(data, 3, 60);
	iov[0] = (struct iovec){ data, 60 };
	ATF_CHECK(port_send(port, iov, 1));
	ATF_REQUIRE_EQ(HEADER + 60, header.len);
	ATF_CHECK_EQ(0, memcmp(zeros, header.buf, HEADER));
	ATF_CHECK_EQ(0, memcmp(data, header.buf + HEADER, 60));

	frame = make_packet(iov, data, false, 4000, 1460);
	ATF_CHECK_EQ(0, frame_port_send(port, &frame));
	ATF_CHECK_EQ(2, header.sends);
	ATF_REQUIRE_EQ(HEADER + 4054, header.len);
	ATF_CHECK_EQ(0, memcmp("\1\1\66\0\xb4\5\42\0\20\0", header.buf,
	    HEADER));
	ATF_CHECK_EQ(0, memcmp(data, header.buf + HEADER, 4054));

	ATF_CHECK(frame_port_takes_uncut(port, &frame));
	frame = make_packet(iov, data, true, 2500, 1000);
	ATF_CHECK_MSG(!frame_port_takes_uncut(port, &frame), "UDP");

	/* One alone needs no cut. */
	frame = make_packet(iov, data, true, 500, 0);
	ATF_CHECK_EQ(0, frame_port_send(port, &frame));
	ATF_CHECK_EQ(1, header.buf[0]);
	ATF_CHECK_EQ(0, header.buf[1]);

	ATF_CHECK_EQ(3, header.sends);

	header.space = 0;
	ATF_CHECK_EQ(ENOBUFS, frame_port_send(port, &frame));
	net_port_destroy(port);
	netbe_cleanup(be);
}

TEST(recv_header, "Frames after a virtio-net header are as it says; those with "
    "an invalid one are dropped")
{
	static const size_t lens[] = { HEADER + 60, HEADER, 4, HEADER + 60,
	    HEADER + 4054, 0 };
	static uint8_t data[5000], in[5000];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame, packet;
	struct frame_port *port;
	net_backend_t *be;
	uint8_t *p = in;

	be = backend_open("header0", backend_ignore, NULL);
	be->prefix = "tap";
	port = backend_port(be);
	header.caps = CAPS;
	frame_port_set_offloads(port);
	memset(in, 0, HEADER);
	memset(in + HEADER, 5, 60);
	p += lens[0] + lens[1] + lens[2];
	/* A checksum outside the frame. */
	memcpy(p, "\1\0\0\0\0\0\74\0\0\0", HEADER);
	p += lens[3];
	packet = make_packet(iov, data, false, 4000, 1460);
	memcpy(p, "\1\1\66\0\xb4\5\42\0\20\0", HEADER);
	memcpy(p + HEADER, data, 4054);
	header.next = in;
	header.lens = lens;

	frame.f_iov = iov;
	ATF_REQUIRE(frame_peek(port->fp_source, &frame));
	ATF_CHECK_EQ(1, frame.f_niov);
	ATF_CHECK_EQ(60, frame.f_len);
	ATF_CHECK_EQ(60, iov[0].iov_len);
	ATF_CHECK_EQ(0, frame.f_flags);
	ATF_CHECK_EQ(0, memcmp(in + HEADER, iov[0].iov_base, 60));
	frame_next(port->fp_source);

	ATF_REQUIRE(frame_peek(port->fp_source, &frame));
	ATF_REQUIRE(frame_peek(port->fp_source, &frame));
	ATF_CHECK_EQ(1, frame.f_niov);
	ATF_CHECK_EQ(4054, frame.f_len);
	ATF_CHECK_EQ(4054, iov[0].iov_len);
	ATF_CHECK_EQ(0, memcmp(data, iov[0].iov_base, 4054));
	ATF_CHECK_EQ(packet.f_flags, frame.f_flags);
	ATF_CHECK_EQ(packet.f_gso_type, frame.f_gso_type);
	ATF_CHECK_EQ(packet.f_gso_size, frame.f_gso_size);
	ATF_CHECK_EQ(packet.f_csum_start, frame.f_csum_start);
	ATF_CHECK_EQ(packet.f_csum_offset, frame.f_csum_offset);
	frame_next(port->fp_source);
	ATF_CHECK(!frame_peek(port->fp_source, &frame));
	net_port_destroy(port);
	netbe_cleanup(be);
}

TEST(mtu, "Frames longer than the limit are dropped and counted, in each "
    "direction, over any backend")
{
	static const char *const names[] = { "one0", "vale0:a" };
	uint8_t data[101] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct iovec iov = { data, sizeof(data) };
	struct frame frame = { .f_iov = &iov };
	struct frame_port *port;
	net_backend_t *be;
	size_t i;

	for (i = 0; i < nitems(names); i++) {
		be = backend_open(names[i], backend_ignore, NULL);
		port = net_port_create(be, 100);
		ATF_REQUIRE(port != NULL);
		one.sends = 0;
		frame_set(&frame, 1, 101);
		ATF_CHECK_EQ(EMSGSIZE, frame_port_send(port, &frame));
		ATF_CHECK(!frame_port_accepts(port, &frame));
		ATF_CHECK(!frame_port_accepts(port, &frame));
		ATF_CHECK_EQ(0, one.sends);
		iov.iov_len = 100;
		frame_set(&frame, 1, 100);
		ATF_CHECK_EQ(0, frame_port_send(port, &frame));
		ATF_CHECK(frame_port_accepts(port, &frame));
		ATF_CHECK_EQ(i == 0, one.sends);
		ATF_CHECK_EQ(1, frame_port_counter(port,
		    FRAME_PORT_C_TX_OVERMTU));
		ATF_CHECK_EQ(2, frame_port_counter(port,
		    FRAME_PORT_C_RX_OVERMTU));
		net_port_destroy(port);
		netbe_cleanup(be);
	}
}

TEST_PROGRAM
