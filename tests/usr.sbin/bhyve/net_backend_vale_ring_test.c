/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* net_backend_vale.c slot by slot: what it puts into the rings, and takes. */

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
#include "iov.h"
#include "net_backends_priv.h"
#include "port.h"
#include "test.h"
#include "vale_fake.h"

/* Send a frame through the frame port.  Returns its length, or -1. */
static ssize_t
send_flush(net_backend_t *be, const struct iovec *iov, int niov)
{
	struct frame_port *fp = backend_port(be);

	if (!port_send(fp, iov, niov))
		return (-1);
	frame_port_flush(fp);
	return (count_iov(iov, niov));
}

TEST(long_slots, "A fragment takes one slot if the switch reads so many bytes "
    "elsewhere")
{
	static char frame[65535];
	struct iovec iov[2] = { { frame, 65535 } };
	net_backend_t *be;

	port.indirect_max = 65535;
	fill(frame, sizeof(frame));
	be = backend();
	ATF_CHECK_EQ(65535, send_flush(be, iov, 1));
	check_frame(0, frame, 65535);
	ATF_CHECK_EQ(1, port.nsent);
	iov[0].iov_len = 4097;
	iov[1].iov_base = frame + 4097;
	iov[1].iov_len = 5000;
	ATF_CHECK_EQ(9097, send_flush(be, iov, 2));
	check_frame(1, frame, 9097);
	ATF_CHECK_EQ(3, port.nsent);
	/* No more than a slot can say. */
	netbe_cleanup(be);
	memset(&port, 0, sizeof(port));
	port.indirect_max = 0x10004;
	iov[0].iov_len = 65535;
	be = backend();
	ATF_CHECK_EQ(65535, send_flush(be, iov, 1));
	ATF_CHECK_EQ(1, port.nsent);
	check_frame(0, frame, 65535);
	netbe_cleanup(be);
}

TEST(header, "A header in fragments is copied into the first slot; the rest is "
    "not copied")
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
			ATF_CHECK_EQ(100, send_flush(be, iov, 5));
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

TEST(whole, "If the switch takes each slot for a frame, a frame that fits goes "
    "into one slot")
{
	static _Alignas(64) char frame[64 + 4096];
	struct iovec iov[3];
	const size_t fits = PORT_BUF - 64;
	net_backend_t *be;
	size_t cut;

	fill(frame, sizeof(frame));
	port.common.single_slot = true;
	be = backend();
	for (cut = 0; cut <= fits; cut += 32) {
		iov[0] = (struct iovec){ frame, cut };
		iov[1] = (struct iovec){ NULL, 0 };
		iov[2] = (struct iovec){ frame + cut, fits - cut };
		port.nsent = 0;
		ATF_CHECK_EQ((ssize_t)fits, send_flush(be, iov, 3));
		ATF_REQUIRE_EQ(1, port.nsent);
		check_frame(0, frame, fits);
	}
	/* As one fragment it is not copied, if it fits from there. */
	iov[0] = (struct iovec){ frame + 1, fits - 65 };
	port.nsent = 0;
	ATF_CHECK_EQ((ssize_t)fits - 65, send_flush(be, iov, 1));
	ATF_REQUIRE_EQ(1, port.nsent);
	ATF_CHECK_EQ(NS_INDIRECT, port.sent[0].flags);
	check_frame(0, frame + 1, fits - 65);
	iov[0].iov_len++;
	port.nsent = 0;
	ATF_CHECK_EQ((ssize_t)fits - 64, send_flush(be, iov, 1));
	ATF_REQUIRE_EQ(1, port.nsent);
	ATF_CHECK_EQ(0, port.sent[0].flags);
	check_frame(0, frame + 1, fits - 64);
	/* A longer one takes several slots. */
	iov[0] = (struct iovec){ frame, fits + 1 };
	port.nsent = 0;
	ATF_CHECK_EQ((ssize_t)fits + 1, send_flush(be, iov, 1));
	ATF_CHECK_EQ(2, port.nsent);
	check_frame(0, frame, fits + 1);
	netbe_cleanup(be);
}

TEST(bounds, "Runts, frames above 64 KB and frames of more than 64 fragments "
    "are refused, and use no slot")
{
	static char frame[65536];
	struct iovec iov[65];
	net_backend_t *be;
	unsigned int first;
	int i;

	fill(frame, sizeof(frame));
	be = backend();
	iov[0] = (struct iovec){ frame, 14 };
	ATF_CHECK_EQ(-1, send_flush(be, iov, 0));
	ATF_CHECK_EQ(-1, send_flush(be, iov, 1));
	iov[0].iov_len = 15;
	ATF_CHECK_EQ(15, send_flush(be, iov, 1));
	iov[0].iov_len = 65535;
	first = port.nsent;
	ATF_CHECK_EQ(65535, send_flush(be, iov, 1));
	check_frame(first, frame, 65535);
	first = port.nsent;
	iov[0].iov_len = 65536;
	ATF_CHECK_EQ(-1, send_flush(be, iov, 1));
	ATF_CHECK_EQ(first, port.nsent);

	for (i = 0; i < 65; i++)
		iov[i] = (struct iovec){ frame + 20 * i, 20 };
	first = port.nsent;
	ATF_CHECK_EQ(-1, send_flush(be, iov, 65));
	ATF_CHECK_EQ(first, port.nsent);
	ATF_CHECK_EQ(1280, send_flush(be, iov, 64));
	check_frame(first, frame, 1280);
	ATF_CHECK_EQ(64, port.nsent - first);
	netbe_cleanup(be);
}

TEST(copied, "Of frontends that send a frame a call, short frames are copied; "
    "runts and frames above 64 KB are refused")
{
	static char frame[65536], sent[65536];
	struct iovec iov[16];
	net_backend_t *be;
	unsigned int first;
	int i;

	fill(frame, sizeof(frame));
	memcpy(sent, frame, sizeof(sent));
	be = backend();
	for (i = 0; i < 16; i++)
		iov[i] = (struct iovec){ sent + 100 * i, 100 };
	ATF_CHECK_EQ(1600, netbe_send(be, iov, 16));
	ATF_CHECK_EQ(1, port.txsyncs);
	ATF_CHECK_EQ(1, port.nsent);
	memset(sent, 0xee, sizeof(sent));
	check_frame(0, frame, 1600);
	memcpy(sent, frame, sizeof(sent));
	iov[0].iov_len = 1601;
	ATF_CHECK_EQ(1601, netbe_send(be, iov, 1));
	ATF_CHECK_EQ(2, port.txsyncs);
	ATF_CHECK((port.sent[1].flags & NS_INDIRECT) != 0);

	first = port.nsent;
	iov[0].iov_len = 65535;
	ATF_CHECK_EQ(65535, netbe_send(be, iov, 1));
	check_frame(first, frame, 65535);
	iov[0].iov_len = 15;
	ATF_CHECK_EQ(15, netbe_send(be, iov, 1));
	first = port.nsent;
	iov[0].iov_len = 14;
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 1));
	ATF_CHECK_EQ(EMSGSIZE, errno);
	iov[0].iov_len = 65536;
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 1));
	ATF_CHECK_EQ(EMSGSIZE, errno);
	ATF_CHECK_EQ(-1, netbe_send(be, iov, 0));
	ATF_CHECK_EQ(first, port.nsent);
	netbe_cleanup(be);
}

TEST(defer, "Deferred frames are sent by one sync, or by several if the ring "
    "fills, all in order")
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

TEST(no_room, "Sending fails if the switch takes no frames or the port is gone")
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

TEST(small_buffers, "Buffers that are too small are refused, the smallest "
    "valid ones are not")
{
	static char frame[9000];
	struct iovec iov = { frame + 1, sizeof(frame) - 1 };
	net_backend_t *be;
	unsigned int i;

	port.buf_size = 511;
	ATF_CHECK(backend_try(&be, "vale0:a") != 0);
	port.buf_size = 512;
	port.common.single_slot = true;
	fill(frame, sizeof(frame));
	be = backend();
	ATF_CHECK_EQ((ssize_t)iov.iov_len, send_flush(be, &iov, 1));
	check_frame(0, frame + 1, iov.iov_len);
	for (i = 0; i < port.nsent; i++)
		ATF_CHECK(64 + port.sent[i].ptr % 64 + port.sent[i].len <= 512);
	netbe_cleanup(be);
}

TEST(peek_skip, "Empty slots, frames with an invalid slot, and those of too "
    "many fragments are skipped; an incomplete frame waits")
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

TEST(recv, "A frontend without batches gets complete frames, with a sync when "
    "there are no more")
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

TEST_PROGRAM
