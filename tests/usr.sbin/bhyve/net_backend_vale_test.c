/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The VALE backend with the user-space switch: frames from backend to backend.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/uio.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "backend.h"
#include "net_backends_priv.h"
#include "libvale.h"
#include "loop.h"
#include "port.h"
#include "test.h"
#include "wait_until.h"

#define	MAXIOV		64
#define	FRAME_MAX	16110

static net_backend_t *
backend(const char *opts, net_be_rxeof_t cb, void *param)
{
	net_backend_t *be;

	be = backend_open(opts, cb, param);
	ATF_REQUIRE(strcmp(be->prefix, "vale") == 0);
	/* Make the port's event ready for the first frame. */
	ATF_REQUIRE_EQ(0, netbe_peek_recvlen(be));
	return (be);
}

/* Build a broadcast frame; the bytes after the header depend on the seed. */
static void
fill(uint8_t *frame, size_t len, uint32_t seed)
{
	size_t i;

	memset(frame, 0xff, 6);
	memset(frame + 6, 2, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	for (i = 14; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		frame[i] = seed >> 24;
	}
}

TEST(exchange, "Frames of all sizes arrive intact and in order")
{
	static const size_t sizes[] = { 15, 60, 63, 64, 65, 1514, 1518, 2047,
	    2048, 2049, 4096, 9018, 16110 };
	static uint8_t frame[FRAME_MAX], got[FRAME_MAX + 1];
	struct iovec in = { got, sizeof(got) }, out[3];
	net_backend_t *a, *b;
	size_t i;

	a = backend("vale0:a", backend_ignore, NULL);
	b = backend("vale0:b", backend_ignore, NULL);
	for (i = 0; i < nitems(sizes); i++) {
		fill(frame, sizes[i], i);
		out[0] = (struct iovec){ frame, 3 };
		out[1] = (struct iovec){ frame + 3, sizes[i] / 2 };
		out[2] = (struct iovec){ frame + 3 + sizes[i] / 2,
		    sizes[i] - 3 - sizes[i] / 2 };
		ATF_CHECK_EQ((ssize_t)sizes[i], netbe_send(a, out, 3));
		wait_until(netbe_peek_recvlen(b) > 0, "no frame");
		ATF_CHECK_EQ((ssize_t)sizes[i], netbe_peek_recvlen(b));
		memset(got, 0, sizeof(got));
		ATF_CHECK_EQ((ssize_t)sizes[i], netbe_recv(b, &in, 1));
		ATF_CHECK_EQ_MSG(0, memcmp(frame, got, sizes[i]), "%zu bytes",
		    sizes[i]);
		ATF_CHECK_EQ(0, netbe_recv(b, &in, 1));
		ATF_CHECK_EQ_MSG(0, netbe_recv(a, &in, 1), "reflected");
	}
	netbe_cleanup(a);
	netbe_cleanup(b);
}

TEST(defer, "The flush reads deferred frames from their own memory, and not "
    "before")
{
	static uint8_t frame[2][3000], got[3000];
	struct iovec in = { got, sizeof(got) };
	struct iovec out;
	struct frame_port *port;
	net_backend_t *a, *b;
	int i;

	a = backend("vale0:a", backend_ignore, NULL);
	b = backend("vale0:b", backend_ignore, NULL);
	port = backend_port(a);
	for (i = 0; i < 2; i++) {
		fill(frame[i], sizeof(frame[i]), i);
		out = (struct iovec){ frame[i], sizeof(frame[i]) };
		ATF_CHECK(port_send(port, &out, 1));
	}
	ATF_CHECK_EQ(0, netbe_recv(b, &in, 1));
	fill(frame[0], sizeof(frame[0]), 7);
	frame_port_flush(port);
	for (i = 0; i < 2; i++) {
		ATF_CHECK_EQ(3000, netbe_recv(b, &in, 1));
		ATF_CHECK_EQ(0, memcmp(frame[i], got, sizeof(got)));
	}
	ATF_CHECK_EQ(0, netbe_recv(b, &in, 1));
	netbe_cleanup(a);
	netbe_cleanup(b);
}

/* The number of frames that the port has sent. */
static uint64_t
frames_sent(const char *name)
{
	uint64_t counters[VALE_NCOUNTERS];

	ATF_REQUIRE_EQ(0, vale_port_counters(name, counters));
	return (counters[VALE_C_TX_FRAME]);
}

TEST(overflow, "A receiver with a full ring loses later frames only, until it "
    "receives")
{
	uint32_t frame[16], got[16], i, n;
	struct iovec in = { got, sizeof(got) }, out = { frame, sizeof(frame) };
	net_backend_t *a, *b;

	a = backend("vale0:a", backend_ignore, NULL);
	b = backend("vale0:b", backend_ignore, NULL);
	fill((uint8_t *)frame, sizeof(frame), 0);
	for (i = 0; i < 3000; i++) {
		frame[15] = i;
		ATF_REQUIRE_EQ(64, netbe_send(a, &out, 1));
	}
	wait_until(frames_sent("vale0:a") == 3000, "not all were sent");
	for (n = 0; netbe_recv(b, &in, 1) > 0; n++)
		ATF_REQUIRE_EQ(n, got[15]);
	ATF_CHECK_EQ(1023, n);
	ATF_REQUIRE_EQ(64, netbe_send(a, &out, 1));
	wait_until(netbe_peek_recvlen(b) > 0, "no frame");
	ATF_CHECK_EQ(64, netbe_recv(b, &in, 1));
	ATF_CHECK_EQ(2999, got[15]);
	netbe_cleanup(a);
	netbe_cleanup(b);
}

TEST(errors, "Invalid names, and a port that is open already")
{
	static const char * const bad[] = { "vale0", "vale0:", "vale0:a/b",
	    "vale0:a", ("vale0:a234567890123456789012345678901"
	    "23456789012345678901234567890") };
	net_backend_t *a, *be;
	size_t i;

	a = backend("vale0:a", backend_ignore, NULL);
	for (i = 0; i < nitems(bad); i++) {
		be = a;
		ATF_CHECK_MSG(backend_try(&be, bad[i]) != 0, "%s", bad[i]);
		ATF_CHECK_EQ(NULL, be);
	}
	ATF_CHECK_EQ(0, netbe_set_cap(a, 0, 0));
	ATF_CHECK_EQ(0, netbe_set_cap(a, 0, 12));
	ATF_CHECK_EQ(-1, netbe_set_cap(a, 0, 11));
	ATF_CHECK_EQ(-1, netbe_set_cap(a, 1, 0));
	netbe_cleanup(a);

	/* After it is closed, it can be opened again. */
	netbe_cleanup(backend("vale0:a", backend_ignore, NULL));
}

/* A receiver in an event loop. */
struct receiver {
	net_backend_t	*be;
	int		 calls;
	uint32_t	 frames;	/* received */
	uint32_t	 bad;
	uint32_t	 stop_after;	/* frames */
	bool		 batches;	/* through the frame port */
	struct frame_port *port;
	struct loop *loop;
	pthread_mutex_t	 mtx;
	pthread_cond_t	 cond;
};

static void
check_frame(struct receiver *r, const uint8_t *frame, size_t len)
{
	uint8_t expect[FRAME_MAX];
	uint32_t size;

	memcpy(&size, frame + 14, sizeof(size));
	if (len < 18 || size != r->frames || len != 64 + size % 4000) {
		r->bad++;
		r->frames++;
		return;
	}
	fill(expect, len, size);
	memcpy(expect + 14, &size, sizeof(size));
	if (memcmp(expect, frame, len) != 0)
		r->bad++;
	r->frames++;
}

static void
receive_batch(struct receiver *r)
{
	struct iovec iov[MAXIOV];
	uint8_t frame[FRAME_MAX];
	size_t len;
	int i, n;

	frame_port_sync(r->port);
	while ((n = port_peek(r->port, iov, MAXIOV)) > 0) {
		for (i = 0, len = 0; i < n; len += iov[i++].iov_len)
			memcpy(frame + len, iov[i].iov_base, iov[i].iov_len);
		check_frame(r, frame, len);
		frame_next(r->port->fp_source);
	}
	frame_port_sync(r->port);
}

static void
receive_event(int fd, enum ev_type type __unused, void *param)
{
	uint8_t frame[FRAME_MAX];
	struct iovec iov = { frame, sizeof(frame) };
	struct receiver *r;
	ssize_t len;

	r = param;
	if (fd != r->be->fd)
		r->bad++;
	r->calls++;
	pthread_mutex_lock(&r->mtx);
	if (r->batches)
		receive_batch(r);
	else
		while ((len = netbe_recv(r->be, &iov, 1)) > 0)
			check_frame(r, frame, len);
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->mtx);
	if (r->frames >= r->stop_after)
		loop_stop(loop_self());
}

static void
send_frame(net_backend_t *be, struct frame_port *port, uint8_t *frame,
    uint32_t n)
{
	struct iovec iov = { frame, 64 + n % 4000 };

	fill(frame, iov.iov_len, n);
	memcpy(frame + 14, &n, sizeof(n));
	if (port != NULL)
		ATF_REQUIRE(port_send(port, &iov, 1));
	else
		ATF_REQUIRE_EQ((ssize_t)iov.iov_len,
		    netbe_send(be, &iov, 1));
}

static void
on_clock(int fd __unused, enum ev_type type __unused, void *param __unused)
{
	loop_stop(loop_self());
}

TEST(event, "The callback is called for frames once receiving is enabled, and "
    "not before")
{
	static uint8_t frame[FRAME_MAX];
	struct receiver r = { .mtx = PTHREAD_MUTEX_INITIALIZER,
	    .cond = PTHREAD_COND_INITIALIZER };
	struct mevent *clock;
	net_backend_t *a;
	uint32_t i;

	a = backend("vale0:a", backend_ignore, NULL);
	r.be = backend("vale0:b", receive_event, &r);
	clock = mevent_add(20, EVF_TIMER, on_clock, NULL);
	ATF_REQUIRE(clock != NULL);
	send_frame(a, NULL, frame, 0);
	mevent_dispatch();
	ATF_CHECK_EQ_MSG(0, r.calls, "called while disabled");
	/* The frame ends the loop; the clock is for later calls. */
	ATF_CHECK_EQ(0, mevent_disable(clock));
	netbe_rx_enable(r.be);
	r.stop_after = 1;
	mevent_dispatch();
	ATF_CHECK_EQ(1, r.frames);
	r.stop_after = UINT32_MAX;
	ATF_CHECK_EQ(0, mevent_enable(clock));
	mevent_dispatch();
	ATF_CHECK_EQ(1, r.frames);
	ATF_CHECK_MSG(r.calls <= 2, "%d calls for one frame", r.calls);
	ATF_CHECK_EQ(0, mevent_delete(clock));

	for (i = 1; i < 20; i++) {
		send_frame(a, NULL, frame, i);
		r.stop_after = i + 1;
		mevent_dispatch();
		ATF_CHECK_EQ(i + 1, r.frames);
	}
	ATF_CHECK_EQ(0, r.bad);
	netbe_cleanup(a);
	netbe_cleanup(r.be);
}

static void *
receive_main(void *arg)
{
	struct receiver *r;
	net_backend_t *be;

	r = arg;
	be = backend("vale0:b", receive_event, r);
	if (r->batches)
		r->port = backend_port(be);
	pthread_mutex_lock(&r->mtx);
	r->be = be;
	r->loop = loop_self();
	pthread_cond_signal(&r->cond);
	pthread_mutex_unlock(&r->mtx);
	netbe_rx_enable(be);
	mevent_dispatch();
	return (NULL);
}

/*
 * Send in one thread, receive in another.  At most 216 frames are under way, of
 * 4 slots each, so that all fit into the ring.
 */
static void
two_threads(bool batches)
{
	enum { FRAMES = 20000, BATCH = 16 };
	static uint8_t frame[BATCH][FRAME_MAX];
	struct receiver r = { .stop_after = FRAMES, .batches = batches,
	    .mtx = PTHREAD_MUTEX_INITIALIZER,
	    .cond = PTHREAD_COND_INITIALIZER };
	struct frame_port *port;
	net_backend_t *a;
	pthread_t thread;
	uint32_t i;

	a = backend("vale0:a", backend_ignore, NULL);
	port = batches ? backend_port(a) : NULL;
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, receive_main, &r));
	pthread_mutex_lock(&r.mtx);
	while (r.be == NULL)
		pthread_cond_wait(&r.cond, &r.mtx);
	pthread_mutex_unlock(&r.mtx);

	for (i = 0; i < FRAMES; i++) {
		send_frame(a, port, frame[i % BATCH], i);
		if (i % BATCH != BATCH - 1)
			continue;
		if (batches)
			frame_port_flush(port);
		pthread_mutex_lock(&r.mtx);
		while (r.frames + 200 < i)
			pthread_cond_wait(&r.cond, &r.mtx);
		pthread_mutex_unlock(&r.mtx);
	}
	ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
	ATF_CHECK_EQ(FRAMES, r.frames);
	ATF_CHECK_EQ(0, r.bad);
	netbe_cleanup(a);
	netbe_cleanup(r.be);
}

TEST(threads, "Between two threads, frame by frame: no frame is lost, damaged "
    "or reordered")
{
	two_threads(false);
}

TEST(threads_batch, "Between two threads, in batches: no frame is lost, "
    "damaged or reordered")
{
	two_threads(true);
}

TEST_PROGRAM
