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

static struct net_backend one_backend = {
	.prefix = "one",
	.init = one_init,
	.cleanup = one_cleanup,
	.send = one_send,
	.recv = one_recv,
};
DATA_SET(net_backend_set, one_backend);

ATF_TC(send_one);
ATF_TC_HEAD(send_one, tc)
{
	atf_tc_set_md_var(tc, "descr", "Over any backend a frame is sent at "
	    "once, as it is, and a refusal is reported");
}
ATF_TC_BODY(send_one, tc)
{
	char frame[60];
	struct iovec iov[2] = { { frame, 20 }, { frame + 20, 40 } };
	struct frame_port *port;
	net_backend_t *be;

	be = backend_open("one0", backend_ignore, NULL);
	port = backend_port(be);
	ATF_CHECK(port_send(port, iov, 2));
	ATF_CHECK_EQ(1, one.sends);
	ATF_CHECK_EQ(iov, one.iov);
	ATF_CHECK_EQ(2, one.niov);
	frame_port_flush(port);
	ATF_CHECK_EQ(1, one.sends);
	one.refuse = true;
	ATF_CHECK(!port_send(port, iov, 2));
	net_port_destroy(port);
	netbe_cleanup(be);
}

ATF_TC(recv_one);
ATF_TC_HEAD(recv_one, tc)
{
	atf_tc_set_md_var(tc, "descr", "Over any backend a frame is received "
	    "once, no matter how often it is looked at; errors are no frame");
}
ATF_TC_BODY(recv_one, tc)
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

ATF_TC(vale);
ATF_TC_HEAD(vale, tc)
{
	atf_tc_set_md_var(tc, "descr", "Over VALE frames wait for the flush, "
	    "and a batch stays in place until the sync");
}
ATF_TC_BODY(vale, tc)
{
	uint8_t frame[3][5000];
	struct iovec iov[3][4], out;
	struct frame_port *a, *b;
	net_backend_t *be[2];
	size_t off;
	int i, j, n[3];

	be[0] = backend_open("vale0:a", backend_ignore, NULL);
	be[1] = backend_open("vale0:b", backend_ignore, NULL);
	a = backend_port(be[0]);
	b = backend_port(be[1]);
	frame_port_sync(b);
	for (i = 0; i < 3; i++) {
		memset(frame[i], i, sizeof(frame[i]));
		memset(frame[i], 0xff, 6);
		memset(frame[i] + 6, 2, 6);
		out = (struct iovec){ frame[i], 60 + 2000 * i };
		ATF_CHECK(port_send(a, &out, 1));
	}
	out.iov_len = 10;
	ATF_CHECK_MSG(!port_send(a, &out, 1), "a runt");
	frame_port_sync(b);
	ATF_CHECK_EQ(0, port_peek(b, iov[0], 4));
	frame_port_flush(a);
	frame_port_sync(b);
	for (i = 0; i < 3; i++) {
		n[i] = port_peek(b, iov[i], 4);
		ATF_REQUIRE(n[i] > 0);
		frame_next(b->fp_source);
	}
	ATF_CHECK_EQ(0, port_peek(b, iov[0], 4));
	for (i = 0; i < 3; i++) {
		for (j = 0, off = 0; j < n[i]; off += iov[i][j++].iov_len)
			ATF_CHECK_EQ(0, memcmp(frame[i] + off,
			    iov[i][j].iov_base, iov[i][j].iov_len));
		ATF_CHECK_EQ((size_t)60 + 2000 * i, off);
	}
	frame_port_sync(b);
	ATF_CHECK_EQ(0, port_peek(b, iov[0], 4));
	net_port_destroy(a);
	net_port_destroy(b);
	netbe_cleanup(be[0]);
	netbe_cleanup(be[1]);
}

/* Takes one frame. */
static void
take_one(void *arg, struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	ATF_REQUIRE(frame_peek(frames, &frame));
	ATF_REQUIRE_EQ(1, frame.f_niov);
	memcpy(arg, iov[0].iov_base, iov[0].iov_len);
	frame_next(frames);
}

ATF_TC(direct);
ATF_TC_HEAD(direct, tc)
{
	atf_tc_set_md_var(tc, "descr", "Over VALE a sink gets frames before "
	    "they are copied, unless the port is polled; other backends "
	    "have no sinks");
}
ATF_TC_BODY(direct, tc)
{
	uint8_t frame[2][60], got[60];
	struct iovec iov[4], out;
	struct frame_port *a, *b;
	net_backend_t *be[2];
	int i;

	be[0] = backend_open("vale0:a", backend_ignore, NULL);
	be[1] = backend_open("vale0:b", backend_ignore, NULL);
	a = backend_port(be[0]);
	b = backend_port(be[1]);
	ATF_CHECK(frame_port_set_sink(b, take_one, got));
	for (i = 0; i < 2; i++) {
		memset(frame[i], i, sizeof(frame[i]));
		memset(frame[i], 0xff, 6);
		out = (struct iovec){ frame[i], sizeof(frame[i]) };
		ATF_CHECK(port_send(a, &out, 1));
	}
	frame_port_flush(a);
	ATF_CHECK_EQ(0, memcmp(frame[0], got, sizeof(got)));
	frame_port_sync(b);
	ATF_REQUIRE_EQ(1, port_peek(b, iov, 4));
	ATF_CHECK_EQ(0, memcmp(frame[1], iov[0].iov_base, sizeof(frame[1])));
	frame_next(b->fp_source);
	ATF_CHECK_EQ(0, port_peek(b, iov, 4));

	frame_port_set_polled(b, true);
	frame_port_sync(b);
	ATF_CHECK(port_send(a, &out, 1));
	frame_port_flush(a);
	frame_port_sync(b);
	ATF_CHECK_EQ(1, port_peek(b, iov, 4));
	frame_next(b->fp_source);
	frame_port_set_polled(b, false);
	frame_port_sync(b);
	ATF_CHECK(port_send(a, &out, 1));
	frame_port_flush(a);
	ATF_CHECK_EQ(0, memcmp(frame[1], got, sizeof(got)));
	frame_port_sync(b);
	ATF_CHECK_EQ(0, port_peek(b, iov, 4));
	ATF_CHECK(frame_port_set_sink(b, NULL, NULL));
	net_port_destroy(a);
	net_port_destroy(b);
	netbe_cleanup(be[0]);
	netbe_cleanup(be[1]);

	be[0] = backend_open("one0", backend_ignore, NULL);
	a = backend_port(be[0]);
	ATF_CHECK(!frame_port_set_sink(a, take_one, got));
	frame_port_set_polled(a, true);
	net_port_destroy(a);
	netbe_cleanup(be[0]);
}

ATF_TC(mtu);
ATF_TC_HEAD(mtu, tc)
{
	atf_tc_set_md_var(tc, "descr", "Frames longer than the limit are "
	    "dropped and counted, in each direction, over any backend");
}
ATF_TC_BODY(mtu, tc)
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

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, send_one);
	ATF_TP_ADD_TC(tp, recv_one);
	ATF_TP_ADD_TC(tp, vale);
	ATF_TP_ADD_TC(tp, direct);
	ATF_TP_ADD_TC(tp, mtu);
	return (atf_no_error());
}
