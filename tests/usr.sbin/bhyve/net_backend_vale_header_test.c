/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * net_backend_vale.c with virtio-net headers: on each frame, or in a slot of
 * their own.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/uio.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <atf-c.h>

#include "backend.h"
#include "frame_vnet.h"
#include "net_backends_priv.h"
#include "port.h"
#include "test.h"
#include "vale_fake.h"

TEST(vnet_header, "Frames with virtio-net headers are copied if the port has "
    "such headers")
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

/* A port that takes offloads. */
static struct frame_port *
offload_port(net_backend_t **bep)
{
	struct frame_port *fp;

	*bep = backend();
	fp = backend_port(*bep);
	frame_port_set_offloads(fp);
	ATF_CHECK(!fp->fp_offloads);
	ATF_CHECK(port.limited);
	port.limited = false;
	port.headers = true;
	frame_port_set_offloads(fp);
	ATF_CHECK(fp->fp_offloads);
	ATF_CHECK_EQ(VALE_HEADER_FRAME, port.header);
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

/* Send a frame and check that it has its slots alone, of memory or copied. */
static void
send_known(struct frame_port *fp, const struct frame *frame, const char *data,
    bool copied)
{
	const struct frame *known = &port.txframe[port.desc.txring->head];
	uint8_t hdr[12];
	unsigned int i;

	port.nsent = 0;
	ATF_REQUIRE_EQ(0, frame_port_send(fp, frame));
	frame_port_flush(fp);
	ATF_REQUIRE(port.nsent > 0);
	ATF_CHECK((port.sent[0].flags & VALE_SLOT_FRAME) != 0);
	frame_vnet_encode(known, hdr, sizeof(hdr));
	ATF_CHECK_EQ(0, memcmp(offload_header, hdr, sizeof(hdr)));
	check_frame(0, data, frame->f_len);
	for (i = 0; i < port.nsent; i++) {
		ATF_CHECK_EQ(copied ? 0 : NS_INDIRECT,
		    port.sent[i].flags & NS_INDIRECT);
		ATF_CHECK(i == 0 ||
		    (port.sent[i].flags & VALE_SLOT_FRAME) == 0);
	}
}

TEST(send_offload, "A frame of which something is known is sent in place, or "
    "copied if it has too many fragments")
{
	static char data[65535];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_port *fp;
	net_backend_t *be;
	int i, n;

	fill(data, sizeof(data));
	fp = offload_port(&be);
	for (n = 1; n <= FRAME_MAXIOV; n++) {
		iov[0].iov_base = data;
		iov[0].iov_len = 54;
		for (i = 1; i < n; i++) {
			iov[i].iov_base = data + 54 + (i - 1) * 1000;
			iov[i].iov_len = 1000;
		}
		offload_frame(&frame, n, 54 + (n - 1) * 1000);
		send_known(fp, &frame, data, false);
	}
	/* The last fragment takes two slots, and that is too many. */
	iov[FRAME_MAXIOV - 1].iov_len = PORT_BUF + 1;
	offload_frame(&frame, FRAME_MAXIOV,
	    54 + (FRAME_MAXIOV - 2) * 1000 + PORT_BUF + 1);
	send_known(fp, &frame, data, true);
	/* The longest, in few fragments. */
	iov[1].iov_len = sizeof(data) - 54;
	offload_frame(&frame, 2, sizeof(data));
	send_known(fp, &frame, data, false);
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

TEST(bad_header, "FreeBSD's switch, which trusts headers, gets no invalid one")
{
	static char data[9012];
	char *frame = data + 12;
	net_backend_t *be;

	port.headers = port.common.single_slot = true;
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

TEST_PROGRAM
