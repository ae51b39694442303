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
#include <string.h>

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
