/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The VALE backend with the user-space switch: its names, and its event.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/uio.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <atf-c.h>

#include "backend.h"
#include "net_backends_priv.h"
#include "libvale.h"
#include "loop.h"
#include "test.h"

#define	FRAME_MAX	100

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
};

static void
check_frame(struct receiver *r, const uint8_t *frame, size_t len)
{
	uint8_t expect[FRAME_MAX];

	fill(expect, len, r->frames);
	if (len != 64 + r->frames || memcmp(expect, frame, len) != 0)
		r->bad++;
	r->frames++;
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
	while ((len = netbe_recv(r->be, &iov, 1)) > 0)
		check_frame(r, frame, len);
	if (r->frames >= r->stop_after)
		loop_stop(loop_self());
}

static void
send_frame(net_backend_t *be, uint8_t *frame, uint32_t n)
{
	struct iovec iov = { frame, 64 + n };

	fill(frame, iov.iov_len, n);
	ATF_REQUIRE_EQ((ssize_t)iov.iov_len, netbe_send(be, &iov, 1));
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
	struct receiver r = { 0 };
	struct mevent *clock;
	net_backend_t *a;
	uint32_t i;

	a = backend("vale0:a", backend_ignore, NULL);
	r.be = backend("vale0:b", receive_event, &r);
	clock = mevent_add(20, EVF_TIMER, on_clock, NULL);
	ATF_REQUIRE(clock != NULL);
	send_frame(a, frame, 0);
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
		send_frame(a, frame, i);
		r.stop_after = i + 1;
		mevent_dispatch();
		ATF_CHECK_EQ(i + 1, r.frames);
	}
	ATF_CHECK_EQ(0, r.bad);
	netbe_cleanup(a);
	netbe_cleanup(r.be);
}

TEST_PROGRAM
