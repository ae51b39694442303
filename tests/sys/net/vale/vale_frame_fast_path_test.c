/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The fast paths of vale_frame_port.c, vfp_send_single_slot() and
 * vfp_peek_single_slot(), have the effect of the general ones.
 *
 * Two switches have a frame port each and a peer that uses libvale.  Both get
 * the same frames, in the same order; the second port has no fast path.  The
 * transmit ring, the frames and positions that the source shows, what arrives
 * at the peer and the counters of all ports must be equal.
 */

#include <sys/param.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atf-c.h>

#include "e82545_packet.h"
#include "fast_path.h"
#include "libvale.h"
#include "vale_frame_general.h"

#define	POOL	(256 * 1024)		/* bytes that frames are made of */

/* One of the two switches. */
struct world {
	struct vale_frame_port vp;
	struct frame_port *port;	/* its */
	struct vale_desc *d;
	struct vale_desc *peer;
};

static struct world worlds[2];
static _Alignas(64) uint8_t pool[POOL];

/* The lengths at which something changes, and one off. */
static uint32_t
length(void)
{
	static const uint16_t edges[] = {
		14, 60, 64, 1514, 2048 - 192, 2048 - 128, 2048 - 64, 2048,
		4096, 16110
	};

	if (chance(1, 4))
		return (1 + below(3000));
	return (edges[below(nitems(edges))] + below(3) - 1);
}

#define	REQUIRE_SAME(cond, what)					\
	ATF_REQUIRE_MSG(cond, "seed %" PRIu32 ", step %u: %s differ",	\
	    seed, step, what)

/*
 * All addresses are group addresses, which the switch does not learn: which of
 * many it keeps depends on a random seed of its own.
 */
static void
pool_fill(void)
{
	unsigned int i;

	packet_fill(pool, sizeof(pool), rnd() | 1);
	for (i = 0; i < sizeof(pool); i++)
		pool[i] |= 1;
}

/* The switch's clock stands still: no delivery is slow. */
int
clock_gettime(clockid_t clock __unused, struct timespec *ts)
{
	ts->tv_sec = 1;
	ts->tv_nsec = 0;
	return (0);
}

/* No sync fails. */
static void __attribute__((__format__(__printf__, 1, 0)))
vlog(const char *fmt, va_list ap)
{
	vfprintf(stderr, fmt, ap);
	ATF_REQUIRE(false);
}

static void
worlds_open(void)
{
	bool single_slot = chance(1, 2);
	unsigned int i;

	worlds[0].d = vale_open("valef0:be", NULL);
	worlds[1].d = vale_open("valef1:be", NULL);
	ATF_REQUIRE(worlds[0].d != NULL && worlds[1].d != NULL);
	ATF_REQUIRE_EQ(0, vale_frame_port_init(&worlds[0].vp, worlds[0].d,
	    vlog));
	ATF_REQUIRE_EQ(0, vale_frame_general_init(&worlds[1].vp, worlds[1].d,
	    vlog));
	worlds[0].peer = vale_open("valef0:peer", NULL);
	worlds[1].peer = vale_open("valef1:peer", NULL);
	for (i = 0; i < nitems(worlds); i++) {
		ATF_REQUIRE(worlds[i].peer != NULL);
		worlds[i].port = &worlds[i].vp.vfp_port;
		worlds[i].port->fp_frame_max = UINT32_MAX;
		__DECONST(struct vale_common *,
		    worlds[i].d->common)->single_slot = single_slot;
	}
}

static void
worlds_close(void)
{
	vale_close(worlds[0].d);
	vale_close(worlds[1].d);
	vale_close(worlds[0].peer);
	vale_close(worlds[1].peer);
}

static void
compare_ring(struct netmap_ring *a, struct netmap_ring *b, const char *what)
{
	uint32_t i;

	REQUIRE_SAME(a->head == b->head && a->cur == b->cur &&
	    a->tail == b->tail && memcmp(a->slot, b->slot,
	    a->num_slots * sizeof(a->slot[0])) == 0, what);
	for (i = 0; i < a->num_slots; i++)
		REQUIRE_SAME(memcmp(NETMAP_BUF(a, a->slot[i].buf_idx),
		    NETMAP_BUF(b, b->slot[i].buf_idx), a->nr_buf_size) == 0,
		    what);
}

static void
compare_counters(struct vale_desc *a, struct vale_desc *b)
{
	uint64_t ca[VALE_NCOUNTERS], cb[VALE_NCOUNTERS];
	unsigned int c;

	ATF_REQUIRE_EQ(0, vale_port_counters(a->common->name, ca));
	ATF_REQUIRE_EQ(0, vale_port_counters(b->common->name, cb));
	for (c = 0; c < VALE_NCOUNTERS; c++)
		REQUIRE_SAME(ca[c] == cb[c], vale_counter_table[c].cr_name);
}

static void
compare(bool all)
{
	struct world *a = &worlds[0], *b = &worlds[1];

	compare_counters(a->d, b->d);
	compare_counters(a->peer, b->peer);
	if (!all)
		return;
	compare_ring(a->d->txring, b->d->txring, "transmit rings");
	compare_ring(a->d->rxring, b->d->rxring, "receive rings");
	compare_ring(a->peer->rxring, b->peer->rxring, "the peer's rings");
}

/* The peer takes some of what has arrived. */
static void
peer_take(void)
{
	struct netmap_ring *ring;
	uint32_t n = chance(1, 8) ? 0 : below(2048);
	unsigned int i;
	uint32_t left;

	for (i = 0; i < nitems(worlds); i++) {
		ring = worlds[i].peer->rxring;
		ATF_REQUIRE_EQ(0, vale_rxsync(worlds[i].peer));
		for (left = n; left > 0 && !nm_ring_empty(ring); left--)
			ring->head = nm_ring_next(ring, ring->head);
		ring->cur = ring->head;
		ATF_REQUIRE_EQ(0, vale_rxsync(worlds[i].peer));
	}
}

static void
send_one(void)
{
	struct iovec iov[FRAME_MAXIOV];
	int error[nitems(worlds)];
	struct frame frame = { .f_iov = iov };
	unsigned int i, n;
	uint32_t len = 0;

	n = chance(3, 4) ? 1 : chance(1, 8) ? FRAME_MAXIOV : 1 + below(4);
	for (i = 0; i < n; i++) {
		iov[i].iov_len = n > 4 ? below(300) : length();
		if (chance(1, 8))
			iov[i].iov_len = below(16);
		if (n == 1 && iov[i].iov_len == 0)
			iov[i].iov_len = 1;
		iov[i].iov_base = pool + below(POOL - 17000);
		if (chance(1, 2))
			iov[i].iov_base = (void *)roundup2(
			    (uintptr_t)iov[i].iov_base, 64);
		len += iov[i].iov_len;
	}
	frame_set(&frame, n, len);
	for (i = 0; i < nitems(worlds); i++)
		error[i] = frame_port_send(worlds[i].port, &frame);
	REQUIRE_SAME(error[0] == error[1], "results of frame_port_send()");
}

TEST(vfp_send_single_slot,
    "Frames sent, also to a full ring, with "
    "and without the fast path")
{
	unsigned int i, n;

	seed_set(tc);
	pool_fill();
	for (step = 0; step < 600; step++) {
		if (step % 100 == 0)
			worlds_open();
		/* At times more than the ring has space for. */
		for (n = chance(1, 16) ? 1500 : below(100); n > 0; n--)
			send_one();
		compare_ring(worlds[0].d->txring, worlds[1].d->txring,
		    "transmit rings");
		for (i = 0; i < nitems(worlds); i++)
			frame_port_flush(worlds[i].port);
		compare(step % 8 == 0);
		if (chance(7, 8))
			peer_take();
		if (step % 100 == 99)
			worlds_close();
	}
}

/* A frame of the peer's in up to `frags' slots. */
static void
peer_send(void)
{
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	uint32_t at, frags, i, len;
	unsigned int j;

	frags = chance(3, 4) ? 1 : 1 + below(FRAME_MAXIOV);
	for (i = 0; i < frags; i++) {
		len = 14 + length();
		at = below(POOL - 17000);
		for (j = 0; j < nitems(worlds); j++) {
			ring = worlds[j].peer->txring;
			slot = &ring->slot[ring->head];
			slot->ptr = (uintptr_t)pool + at;
			slot->len = len;
			slot->flags = NS_INDIRECT | (i + 1 < frags ?
			    NS_MOREFRAG : 0);
			ring->head = ring->cur = nm_ring_next(ring,
			    ring->head);
		}
	}
}

/*
 * Change received slots as another switch may leave them: empty, or the last
 * of a frame missing.
 */
static void
damage(void)
{
	struct netmap_ring *ring = worlds[0].d->rxring;
	uint32_t n, slot;
	bool empty = chance(1, 2);
	unsigned int i;

	n = (ring->tail + ring->num_slots - ring->head) % ring->num_slots;
	if (n == 0)
		return;
	slot = (ring->head + below(n)) % ring->num_slots;
	for (i = 0; i < nitems(worlds); i++) {
		ring = worlds[i].d->rxring;
		if (empty)
			ring->slot[slot].len = 0;
		else
			ring->slot[slot].flags ^= NS_MOREFRAG;
	}
}

/* Whether both sources show a frame; and then it is the same. */
static bool
peek_both(void)
{
	struct iovec iov[nitems(worlds)][FRAME_MAXIOV];
	struct frame f[nitems(worlds)];
	bool shown[nitems(worlds)];
	unsigned int i;
	int j;

	for (i = 0; i < nitems(worlds); i++) {
		memset(&f[i], 0xa5, sizeof(f[i]));
		f[i].f_iov = iov[i];
		shown[i] = frame_peek(worlds[i].port->fp_source, &f[i]);
	}
	REQUIRE_SAME(shown[0] == shown[1], "results of frame_peek()");
	if (!shown[0])
		return (false);
	REQUIRE_SAME(f[0].f_niov == f[1].f_niov && f[0].f_len == f[1].f_len &&
	    f[0].f_flags == f[1].f_flags && f[0].f_gso_type == f[1].f_gso_type,
	    "frames");
	for (j = 0; j < f[0].f_niov; j++)
		REQUIRE_SAME(iov[0][j].iov_len == iov[1][j].iov_len &&
		    memcmp(iov[0][j].iov_base, iov[1][j].iov_base,
		    iov[0][j].iov_len) == 0, "fragments");
	return (true);
}

TEST(vfp_peek_single_slot,
    "Frames received, also damaged ones, "
    "with and without the fast path")
{
	unsigned int i, n;

	seed_set(tc);
	pool_fill();
	for (step = 0; step < 2000; step++) {
		if (step % 100 == 0)
			worlds_open();
		for (n = below(chance(1, 16) ? 200 : 12); n > 0 &&
		    nm_ring_space(worlds[0].peer->txring) > FRAME_MAXIOV; n--)
			peer_send();
		for (i = 0; i < nitems(worlds); i++) {
			ATF_REQUIRE_EQ(0, vale_txsync(worlds[i].peer));
			frame_port_sync(worlds[i].port);
		}
		if (chance(1, 4))
			damage();
		for (n = below(chance(1, 2) ? 2000 : 12); n > 0 && peek_both();
		    n--)
			for (i = 0; i < nitems(worlds); i++)
				frame_next(worlds[i].port->fp_source);
		for (i = 0; i < nitems(worlds); i++)
			frame_port_sync(worlds[i].port);
		compare(step % 32 == 0);
		if (step % 100 == 99)
			worlds_close();
	}
}

TEST_PROGRAM
