/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports with several ring pairs.  vale_rate_test has their limit.
 */

#include <sys/param.h>
#include <dev/netmap/vale_fdb.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <atf-c.h>

#include "setting.h"
#include "test.h"
#include "vale_test.h"

/* Open or fail. */
static struct vale_desc *
rings_open(const char *name, unsigned int rings, uint32_t slots)
{
	const struct vale_params params = { .rings = rings,
	    .tx_slots = slots, .rx_slots = slots };
	struct vale_desc *d;

	d = vale_open(name, &params);
	ATF_REQUIRE_MSG(d != NULL, "%s: %s", name, strerror(errno));
	return (d);
}

/* Ring pair `ring' of the port, which there is. */
static struct vale_desc *
ring_of(struct vale_desc *d, unsigned int ring)
{
	struct vale_desc *r = vale_ring(d, ring);

	ATF_REQUIRE(r != NULL);
	return (r);
}

TEST(params, "A port has the rings that were asked for, in one memory, each "
    "with its own buffers; other numbers are refused")
{
	static const struct vale_params bad[] = {
		{ .rings = VALE_RINGS_MAX + 1 },
		{ .rings = UINT32_MAX },
		{ .rings = 2, .tx_slots = VALE_SLOTS_MAX / 2 + 1 },
		{ .rings = 3, .rx_slots = VALE_SLOTS_MAX / 3 + 1 },
		{ .rings = VALE_RINGS_MAX, .tx_slots = 1 },
	};
	static const unsigned int good[] = { 1, 2, 3, VALE_RINGS_MAX };
	struct vale_desc *d, *r;
	struct netmap_if *nifp;
	unsigned int i, j, k, n;
	uint8_t seen[2 * VALE_SLOTS_MAX + 2];

	for (i = 0; i < nitems(bad); i++)
		ATF_CHECK_ERRNO(EINVAL, vale_open("valet0:a", &bad[i]) ==
		    NULL);
	for (i = 0; i < nitems(good); i++) {
		n = good[i];
		d = rings_open("valet0:a", n, 0);
		nifp = d->common->nifp;
		ATF_CHECK_EQ(n, nifp->ni_tx_rings);
		ATF_CHECK_EQ(n, nifp->ni_rx_rings);
		memset(seen, 0, sizeof(seen));
		for (j = 0; j < n; j++) {
			r = ring_of(d, j);
			ATF_CHECK(r->common->nifp == nifp);
			ATF_CHECK(r->txring == NETMAP_TXRING(nifp, j));
			ATF_CHECK(r->rxring == NETMAP_RXRING(nifp, j));
			ATF_CHECK_EQ(j, r->txring->ringid);
			ATF_CHECK_EQ(j, r->rxring->ringid);
			ATF_CHECK_EQ(1, r->rxring->dir);
			ATF_CHECK_EQ(VALE_SLOTS_DEFAULT - 1,
			    nm_ring_space(r->txring));
			for (k = 0; k < VALE_SLOTS_DEFAULT; k++) {
				ATF_CHECK_EQ(0,
				    seen[r->txring->slot[k].buf_idx]++);
				ATF_CHECK_EQ(0,
				    seen[r->rxring->slot[k].buf_idx]++);
			}
			ATF_CHECK_STREQ("valet0:a", r->common->name);
			ATF_CHECK(vale_ring(r, 0) == d);
		}
		ATF_CHECK_ERRNO(EINVAL, vale_ring(d, n) == NULL);
		ATF_CHECK_ERRNO(EINVAL, vale_ring(d, UINT32_MAX) == NULL);
		vale_close(d);
	}
}

static void
sink(void *arg __unused, struct frame_source *frames __unused)
{
	ATF_CHECK(false);
}

TEST(settings, "Limit, private and header are of the port, whichever ring "
    "sends; a port with several has no sink")
{
	struct vale_desc *a = rings_open("valet0:a", 2, 0);
	struct vale_desc *b = rings_open("valet0:b", 2, 0);
	struct vale_desc *a1 = ring_of(a, 1), *b1 = ring_of(b, 1);
	uint8_t frame[72] = { 0 };

	ATF_REQUIRE_EQ(0, vale_set("valet0:a", "limit", "2"));
	t_send(a, 60, EVERYBODY, 1, 1);
	t_send(a1, 60, EVERYBODY, 1, 2);
	t_send(a1, 60, EVERYBODY, 11, 3);
	t_send(a, 60, EVERYBODY, 12, 4);
	T_COUNT(a, LEARNED, 2);
	T_COUNT(a, TX_DROP_LIMIT, 1);
	ATF_CHECK_EQ(1, t_drain(b));
	ATF_CHECK_EQ(2, t_drain(b1));
	ATF_REQUIRE_EQ(0, vale_set("valet0:b", "private", "on"));
	ATF_REQUIRE_EQ(0, vale_set("valet0:a", "private", "on"));
	t_send(b1, 60, 1, 2, 1);
	t_send(b, 60, 11, 2, 2);
	T_COUNT(b, TX_DROP_NODEST, 2);
	ATF_REQUIRE_EQ(0, vale_set("valet0:b", "private", "off"));
	t_send(b1, 60, 11, 2, 3);
	t_expect_none(a);
	t_expect(a1, 60, 2, 3);
	/* Through the descriptor of any ring. */
	ATF_REQUIRE_EQ(0, vale_set_header(b1, 12));
	t_make(frame + 12, 60, 1, 2, 4);
	t_put(b, frame, sizeof(frame), sizeof(frame), false);
	ATF_REQUIRE_EQ(0, vale_txsync(b));
	t_expect(a, 60, 2, 4);
	t_send(a1, 60, 2, 1, 5);
	ATF_REQUIRE_EQ(0, vale_rxsync(b1));
	ATF_CHECK_EQ(72, b1->rxring->slot[b1->rxring->head].len);
	ATF_CHECK_ERRNO(EOPNOTSUPP, vale_set_sink(a, sink, NULL) == -1);
	ATF_CHECK_EQ(0, vale_set_sink(a, NULL, NULL));
	vale_close(a);
	vale_close(b);
}

/*
 * Threads: each sends on a ring pair of one port, or receives.
 */
#define	RINGS	3

struct worker {
	struct vale_desc	*d;
	unsigned int		 src;		/* station */
	uint32_t		 frames;	/* to send, or received */
	uint32_t		 next[RINGS];	/* by sender */
	bool			 stop;		/* atomic */
	pthread_t		 thread;
};

static void
start(struct worker *w, void *(*fn)(void *))
{
	ATF_REQUIRE_EQ(0, pthread_create(&w->thread, NULL, fn, w));
}

static void
finish(struct worker *w)
{
	__atomic_store_n(&w->stop, true, __ATOMIC_RELEASE);
	ATF_REQUIRE_EQ(0, pthread_join(w->thread, NULL));
}

static bool
stopped(struct worker *w)
{
	return (__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE));
}

static void *
send_frames(void *arg)
{
	struct worker *w = arg;
	uint32_t seq = 0;

	while (seq < w->frames) {
		do
			t_queue(w->d, 60 + seq % 100, seq % 7 == 0 ? EVERYBODY :
			    99, w->src, seq);
		while (++seq < w->frames && seq % 50 != 0);
		ATF_REQUIRE_EQ(0, vale_txsync(w->d));
		sched_yield();
	}
	return (NULL);
}

/* Frames of each sender must come in the order of their numbers. */
static void *
receive_frames(void *arg)
{
	struct worker *w = arg;
	struct pollfd pfd = { .fd = w->d->fd, .events = POLLIN };
	struct t_frame f;
	bool last;

	do {
		last = stopped(w);
		ATF_REQUIRE_EQ(0, vale_rxsync(w->d));
		while (t_take(w->d, &f)) {
			ATF_REQUIRE(f.tf_src < RINGS);
			ATF_REQUIRE(f.tf_seq >= w->next[f.tf_src]);
			w->next[f.tf_src] = f.tf_seq + 1;
			w->frames++;
		}
		ATF_REQUIRE_EQ(0, vale_rxsync(w->d));
		if (!last && nm_ring_empty(w->d->rxring))
			poll(&pfd, 1, 10);
	} while (!last);
	return (NULL);
}

/* Ports come and go, and settings change. */
static void *
change_switch(void *arg)
{
	struct worker *w = arg;
	struct vale_desc *d, *m;
	const struct vale_params monitor = { .rings = 2, .rx_slots = 16,
	    .monitor = VALE_MIRROR_BOTH };
	unsigned int i;

	for (i = 0; !stopped(w); i++) {
		d = rings_open("valet0:other", 1 + i % 4, 16);
		m = vale_open("valet0:tx", &monitor);
		ATF_REQUIRE(m != NULL);
		ATF_REQUIRE_EQ(0, vale_set_header(d, i % 2 == 0 ? 12 : 0));
		ATF_REQUIRE_EQ(0, setting_to("valet0:tx", "weight", "%u", 1 +
		    i % 5));
		(void)vale_missed(m);
		vale_close(m);
		vale_close(d);
		sched_yield();
	}
	return (NULL);
}

TEST(threads, "Three threads send on one port and others receive on another, "
    "while ports come and go: each frame is received in order, or counted")
{
	struct vale_desc *tx = rings_open("valet0:tx", RINGS, 64);
	struct vale_desc *rx[2] = { rings_open("valet0:rx2", 2, 64),
	    rings_open("valet0:rx1", 1, 64) };
	struct worker send[RINGS], receive[3], change;
	uint64_t c[VALE_NCOUNTERS], got = 0, rxc = 0;
	unsigned int i;

	memset(send, 0, sizeof(send));
	memset(receive, 0, sizeof(receive));
	memset(&change, 0, sizeof(change));
	for (i = 0; i < 3; i++) {
		receive[i].d = i < 2 ? ring_of(rx[0], i) : rx[1];
		start(&receive[i], receive_frames);
		send[i].d = ring_of(tx, i);
		send[i].src = i;
		send[i].frames = 20000;
	}
	start(&change, change_switch);
	for (i = 0; i < RINGS; i++)
		start(&send[i], send_frames);
	for (i = 0; i < RINGS; i++)
		finish(&send[i]);
	finish(&change);
	for (i = 0; i < 3; i++)
		finish(&receive[i]);
	ATF_REQUIRE_EQ(0, vale_port_counters("valet0:tx", c));
	ATF_CHECK_EQ(RINGS * 20000, c[VALE_C_TX_FRAME]);
	/* There were always other ports. */
	ATF_CHECK(c[VALE_C_TX_FLOOD] == c[VALE_C_TX_FRAME]);
	ATF_CHECK(c[VALE_C_TX_COPY] >= 2 * c[VALE_C_TX_FRAME]);
	ATF_CHECK_EQ(RINGS, c[VALE_C_LEARNED]);
	for (i = 0; i < 3; i++)
		got += receive[i].frames;
	for (i = 0; i < 2; i++) {
		ATF_REQUIRE_EQ(0, vale_port_counters(rx[i]->common->name, c));
		ATF_CHECK_EQ(RINGS * 20000, c[VALE_C_RX_FRAME] +
		    c[VALE_C_RX_DROP_FULL]);
		ATF_CHECK_EQ(0, c[VALE_C_RX_BAD_BUF]);
		rxc += c[VALE_C_RX_FRAME];
	}
	ATF_CHECK_EQ(rxc, got);
	vale_close(tx);
	vale_close(rx[0]);
	vale_close(rx[1]);
}

/* A port that is opened, gets what it gets, and is closed. */
static void *
come_and_go(void *arg)
{
	struct worker *w = arg;
	struct vale_desc *d;
	unsigned int k, rings;

	for (w->frames = 0; !stopped(w) || w->frames < 100; w->frames++) {
		rings = 1 + w->frames % RINGS;
		d = rings_open("valet0:guest", rings, 16);
		for (k = 0; k < rings; k++) {
			t_send(ring_of(d, k), 60, EVERYBODY, RINGS, k);
			t_drain(ring_of(d, k));
		}
		vale_close(d);
	}
	return (NULL);
}

TEST(closes, "A port is closed while several threads send to all its rings")
{
	struct vale_desc *tx = rings_open("valet0:tx", RINGS, 64);
	struct vale_desc *other = rings_open("valet0:other", 1, 16);
	struct worker send[RINGS], guest;
	unsigned int i;

	memset(send, 0, sizeof(send));
	memset(&guest, 0, sizeof(guest));
	start(&guest, come_and_go);
	for (i = 0; i < RINGS; i++) {
		send[i].d = ring_of(tx, i);
		send[i].src = i;
		send[i].frames = 20000;
		start(&send[i], send_frames);
	}
	for (i = 0; i < RINGS; i++)
		finish(&send[i]);
	finish(&guest);
	T_COUNT(tx, TX_FRAME, RINGS * 20000);
	T_COUNT(tx, TX_FLOOD, RINGS * 20000);
	vale_close(tx);
	vale_close(other);
}

TEST_PROGRAM
