/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports of programs in other processes: the memory, which is as netmap's
 * programs expect it, and the CSB.
 */

#include <sys/param.h>
#include <dev/netmap/vale_fdb.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_shared.h"
#include "vale_test.h"

#define	TX_SLOTS	8
#define	RX_SLOTS	4
#define	EXTRA		3
#define	MORE		2	/* buffers behind the port's */

struct fixture {
	struct vale_params	 params;
	struct vale_shared	 shared;
	size_t			 size;
	struct vale_desc	*d;
	struct netmap_if	*nifp;
	struct vale_csb		*csb;		/* of ring pair 0 */
	unsigned int		 wakes[2];	/* to receive, to transmit */
};

static void
count_wake(void *arg, unsigned int ring, bool tx)
{
	struct fixture *f = arg;

	ATF_CHECK_EQ(0, ring);
	f->wakes[tx]++;
}

/* Open a port, or a monitor of that port, in the fixture's memory. */
static void
open_port(struct fixture *f, const char *name)
{
	f->d = vale_open_shared(name, &f->params, &f->shared);
	ATF_REQUIRE_MSG(f->d != NULL, "%s", strerror(errno));
	f->nifp = f->d->common->nifp;
	f->csb = f->shared.memory;
}

/* The fixture of these parameters, without a port. */
static void
allocate(struct fixture *f, const struct vale_params *params,
    uint32_t extra_bufs)
{
	memset(f, 0, sizeof(*f));
	f->params = *params;
	f->size = vale_shared_size(&f->params, extra_bufs);
	f->shared.extra_bufs = extra_bufs;
	f->shared.more = MORE * VALE_BUF_SIZE;
	ATF_REQUIRE_EQ(0, posix_memalign(&f->shared.memory, VALE_PAGE,
	    f->size + f->shared.more));
	memset(f->shared.memory, 0, f->size + f->shared.more);
	f->shared.wake = count_wake;
	f->shared.arg = f;
}

static void
setup(struct fixture *f, unsigned int rings, uint32_t extra_bufs)
{
	const struct vale_params params = { .rings = rings,
	    .tx_slots = TX_SLOTS, .rx_slots = RX_SLOTS };

	allocate(f, &params, extra_bufs);
	open_port(f, "valet0:a");
}

static void
teardown(struct fixture *f)
{
	vale_close(f->d);
	free(f->shared.memory);
}

/*
 * The extra buffers and those of all slots differ, and are all that there are.
 */
static void
check_buffers(const struct fixture *f)
{
	struct netmap_ring *ring;
	const uint32_t count = f->params.rings * (TX_SLOTS + RX_SLOTS) +
	    f->shared.extra_bufs;
	uint8_t *seen = calloc(VALE_BUF_FIRST + count + MORE, 1);
	struct vale_region_layout rl;
	uint32_t buf, i, n = 0;
	unsigned int r;

	ATF_REQUIRE(seen != NULL);
	vale_shared_layout(&rl, &f->params, 0);
	ATF_CHECK_EQ(f->size, rl.rl_bufs +
	    (VALE_BUF_FIRST + count) * VALE_BUF_SIZE);
	for (r = 0; r < 2 * f->params.rings; r++) {
		ring = r < f->params.rings ? NETMAP_TXRING(f->nifp, r) :
		    NETMAP_RXRING(f->nifp, r - f->params.rings);
		ATF_CHECK(NETMAP_BUF(ring, 0) == (char *)f->shared.memory +
		    rl.rl_bufs);
		for (i = 0; i < ring->num_slots; i++) {
			buf = ring->slot[i].buf_idx;
			ATF_REQUIRE(buf >= VALE_BUF_FIRST &&
			    buf < VALE_BUF_FIRST + count + MORE);
			ATF_CHECK_EQ(0, seen[buf]++);
		}
	}
	for (buf = f->nifp->ni_bufs_head; buf != 0; n++) {
		ATF_REQUIRE(buf >= VALE_BUF_FIRST &&
		    buf < VALE_BUF_FIRST + count);
		ATF_CHECK_EQ(0, seen[buf]++);
		memcpy(&buf, NETMAP_BUF(ring, buf), sizeof(buf));
	}
	ATF_CHECK_EQ(f->shared.extra_bufs, n);
	free(seen);
}

TEST(buffers, "Each slot has a buffer of its own, and the list of extra "
    "buffers has the others")
{
	struct fixture f;

	setup(&f, 1, 0);
	ATF_CHECK_EQ(0, f.nifp->ni_bufs_head);
	check_buffers(&f);
	teardown(&f);
	setup(&f, 1, 1);
	check_buffers(&f);
	teardown(&f);
	setup(&f, 1, EXTRA);
	check_buffers(&f);
	teardown(&f);
	setup(&f, 3, EXTRA);
	check_buffers(&f);
	teardown(&f);
}

TEST(places, "The rings come behind the places of a netmap_if of all, and of "
    "one for each ring pair if there are several")
{
	struct fixture f;

	setup(&f, 3, 0);
	ATF_CHECK((const char *)NETMAP_TXRING(f.nifp, 0) >=
	    (const char *)f.nifp + 4 * VALE_NIFP_SIZE(3));
	teardown(&f);
	setup(&f, 1, 0);
	ATF_CHECK_EQ((size_t)((const char *)NETMAP_TXRING(f.nifp, 0) -
	    (char *)f.shared.memory), roundup2((char *)f.nifp -
	    (char *)f.shared.memory + VALE_NIFP_SIZE(1), NM_CACHE_ALIGN));
	teardown(&f);
}

TEST(again, "A port in memory that an earlier one was in has empty rings; its "
    "slots keep buffers that there are")
{
	struct netmap_ring *rx, *tx;
	struct fixture f;
	uint32_t was;

	setup(&f, 1, EXTRA);
	tx = NETMAP_TXRING(f.nifp, 0);
	rx = NETMAP_RXRING(f.nifp, 0);
	/* The last one behind, and one beyond that. */
	was = tx->slot[1].buf_idx;
	tx->slot[0].buf_idx = VALE_BUF_FIRST + TX_SLOTS + RX_SLOTS + EXTRA +
	    MORE - 1;
	tx->slot[1].buf_idx = VALE_BUF_FIRST + TX_SLOTS + RX_SLOTS + EXTRA +
	    MORE;
	rx->slot[0].buf_idx = VALE_BUF_FIRST;
	rx->slot[0].len = 60;
	tx->head = tx->cur = rx->head = rx->tail = 3;
	vale_close(f.d);
	/* What it has left before the rings. */
	memset(f.shared.memory, 0xff, sizeof(struct vale_csb));
	open_port(&f, "valet0:a");
	ATF_CHECK_EQ(VALE_BUF_FIRST + TX_SLOTS + RX_SLOTS + EXTRA + MORE - 1,
	    tx->slot[0].buf_idx);
	ATF_CHECK_EQ(was, tx->slot[1].buf_idx);
	ATF_CHECK_EQ(VALE_BUF_FIRST, rx->slot[0].buf_idx);
	ATF_CHECK_EQ(0, rx->slot[0].len);
	ATF_CHECK_EQ(TX_SLOTS - 1, nm_ring_space(tx));
	ATF_CHECK(nm_ring_empty(rx));
	/* Nothing is published, and nobody sleeps. */
	ATF_CHECK(!vale_shared_tx(f.d));
	ATF_CHECK_EQ(0, f.csb->rx_atok.appl_need_kick);
	teardown(&f);
}

/* Put a frame into transmit slot `i', and publish it. */
static void
publish(struct fixture *f, uint32_t i, uint32_t seq)
{
	struct netmap_ring *ring = NETMAP_TXRING(f->nifp, 0);

	t_make((uint8_t *)NETMAP_BUF(ring, ring->slot[i].buf_idx), 60,
	    EVERYBODY, 0, seq);
	ring->slot[i].len = 60;
	f->csb->tx_atok.head = i + 1 == TX_SLOTS ? 0 : i + 1;
}

TEST(transmit, "What is published is sent; a user that sleeps is woken once; "
    "an invalid head is counted")
{
	struct vale_desc *b;
	struct fixture f;
	uint32_t i;

	setup(&f, 1, 0);
	b = t_open("valet0:b", 8, 8);
	ATF_CHECK_EQ(1, f.csb->tx_ktoa.kern_need_kick);
	ATF_CHECK_EQ(TX_SLOTS - 1, f.csb->tx_ktoa.hwtail);
	f.csb->tx_ktoa.kern_need_kick = 0;
	ATF_CHECK(vale_shared_wait(f.d));
	ATF_CHECK_EQ(1, f.csb->tx_ktoa.kern_need_kick);
	ATF_CHECK(!vale_shared_tx(f.d));
	for (i = 0; i < TX_SLOTS; i++) {
		publish(&f, i, i);
		ATF_CHECK(!vale_shared_wait(f.d));
		f.csb->tx_atok.appl_need_kick = i == 1;
		ATF_CHECK(vale_shared_tx(f.d));
		ATF_CHECK_EQ(i >= 1, f.wakes[true]);
		ATF_CHECK_EQ(0, f.csb->tx_atok.appl_need_kick);
		ATF_CHECK_EQ((i + 1) % TX_SLOTS, f.csb->tx_ktoa.hwcur);
		ATF_CHECK_EQ(i, f.csb->tx_ktoa.hwtail);
		ATF_CHECK(vale_shared_wait(f.d));
		t_expect(b, 60, 0, i);
	}
	/* It stays where it was. */
	publish(&f, 0, 9);
	ATF_CHECK(vale_shared_tx(f.d));
	t_expect(b, 60, 0, 9);
	f.csb->tx_atok.head = TX_SLOTS;
	ATF_CHECK(vale_shared_wait(f.d));
	T_COUNT(f.d, TX_BAD_RING, 0);
	ATF_CHECK(!vale_shared_tx(f.d));
	T_COUNT(f.d, TX_BAD_RING, 1);
	t_expect_none(b);
	ATF_CHECK_EQ(0, f.wakes[false]);
	vale_close(b);
	teardown(&f);
}

TEST(header, "Each frame of another process may have a header; there is no "
    "other way to say what is known of it")
{
	struct fixture f;

	setup(&f, 1, 0);
	ATF_CHECK_EQ(NULL, f.d->txframe);
	ATF_CHECK_EQ(NULL, f.d->rxframe);
	ATF_CHECK_ERRNO(EINVAL,
	    vale_set_header(f.d, VALE_HEADER_FRAME) == -1);
	ATF_CHECK_ERRNO(EINVAL, vale_set_header(f.d, 2) == -1);
	ATF_CHECK_EQ(0, vale_set_header(f.d, 12));
	teardown(&f);
}

TEST(monitor, "What a monitor transmits is dropped")
{
	struct vale_desc *b;
	struct fixture f;

	setup(&f, 1, 0);
	vale_close(f.d);
	b = t_open("valet0:b", 8, 8);
	f.params.monitor = VALE_MIRROR_BOTH;
	open_port(&f, "valet0:b");
	publish(&f, 0, 1);
	ATF_CHECK(vale_shared_tx(f.d));
	ATF_CHECK_EQ(1, f.csb->tx_ktoa.hwcur);
	ATF_CHECK(!vale_shared_tx(f.d));
	t_expect_none(b);
	vale_close(b);
	teardown(&f);
}

/* Whether the owner's thread is woken for frames that wait. */
static bool
woken(const struct vale_desc *d)
{
	struct pollfd pfd = { .fd = vale_shared_fd(d), .events = POLLIN };

	return (poll(&pfd, 1, 0) == 1);
}

/* The user takes the next frame of ring pair 0. */
static void
take(struct fixture *f, uint32_t seq)
{
	struct netmap_ring *ring = NETMAP_RXRING(f->nifp, 0);
	const uint32_t head = f->csb->rx_atok.head;
	uint8_t want[60];

	ATF_REQUIRE(head != f->csb->rx_ktoa.hwtail);
	t_make(want, sizeof(want), 0, 1, seq);
	/* Behind the address, which may be everybody's. */
	ATF_CHECK_EQ_MSG(0, memcmp(want + 6,
	    NETMAP_BUF(ring, ring->slot[head].buf_idx) + 6,
	    sizeof(want) - 6), "frame %u", seq);
	f->csb->rx_atok.head = nm_ring_next(ring, head);
}

TEST(inbox, "A frame to several ports waits until the owner's thread delivers "
    "it, and those behind it, too; one to this port alone does not")
{
	struct vale_desc *b, *c;
	struct fixture f;
	uint32_t seq = 0;

	setup(&f, 1, 0);
	b = t_open("valet0:b", 16, 16);
	/* The only other port has chosen it. */
	t_send(b, 60, EVERYBODY, 1, seq);
	take(&f, seq++);
	c = t_open("valet0:c", 16, 16);
	ATF_CHECK(!vale_shared_rx(f.d));
	ATF_CHECK(!woken(f.d));
	f.csb->rx_atok.appl_need_kick = 1;
	t_send(b, 60, EVERYBODY, 1, seq);
	ATF_CHECK(woken(f.d));
	ATF_CHECK_EQ(f.csb->rx_atok.head, f.csb->rx_ktoa.hwtail);
	ATF_CHECK_EQ(0, f.wakes[false]);
	ATF_CHECK(vale_shared_rx(f.d));
	ATF_CHECK(!woken(f.d));
	ATF_CHECK_EQ(1, f.wakes[false]);
	take(&f, seq++);
	ATF_CHECK(!vale_shared_rx(f.d));
	/* Learned: at once, if none waits. */
	publish(&f, 0, 1);
	ATF_CHECK(vale_shared_tx(f.d));
	t_send(b, 60, 0, 1, seq);
	take(&f, seq++);
	t_send(b, 60, EVERYBODY, 1, seq);
	t_send(b, 60, 0, 1, seq + 1);
	ATF_CHECK_EQ(f.csb->rx_atok.head, f.csb->rx_ktoa.hwtail);
	ATF_CHECK(vale_shared_rx(f.d));
	take(&f, seq++);
	take(&f, seq++);
	t_send(b, 60, 0, 1, seq);
	take(&f, seq++);
	T_COUNT(f.d, RX_FRAME, seq);
	T_COUNT(f.d, RX_COPY, seq);
	vale_close(c);
	vale_close(b);
	teardown(&f);
}

TEST(inbox_full, "Frames that find no slot in the inbox, or the ring, are "
    "missed and counted; a batch fills the ring as often as it has space")
{
	struct vale_desc *b, *c;
	struct fixture f;
	uint32_t i;

	setup(&f, 1, 0);
	b = t_open("valet0:b", 16, 16);
	c = t_open("valet0:c", 16, 64);
	for (i = 0; i < 2 * RX_SLOTS; i++)
		t_send(b, 60, EVERYBODY, 1, i);
	ATF_CHECK_EQ(RX_SLOTS + 1, vale_missed(f.d));
	T_COUNT(f.d, RX_DROP_FULL, RX_SLOTS + 1);
	ATF_CHECK(vale_shared_rx(f.d));
	/* The ring is full. */
	t_send(b, 60, EVERYBODY, 1, 99);
	ATF_CHECK(vale_shared_rx(f.d));
	ATF_CHECK_EQ(RX_SLOTS + 2, vale_missed(f.d));
	T_COUNT(f.d, RX_FRAME, RX_SLOTS - 1);
	for (i = 0; i < RX_SLOTS - 1; i++)
		take(&f, i);
	for (i = 0; i < 20; i++) {
		t_send(b, 60, EVERYBODY, 1, i);
		t_send(b, 60, EVERYBODY, 1, i);
		ATF_CHECK(vale_shared_rx(f.d));
		take(&f, i);
		take(&f, i);
	}
	ATF_CHECK_EQ(RX_SLOTS + 2, vale_missed(f.d));
	T_COUNT(c, RX_DROP_FULL, 0);
	vale_close(c);
	vale_close(b);
	teardown(&f);
}

TEST(inbox_monitor, "What a monitor gets waits for the owner's thread")
{
	struct vale_desc *b, *c;
	struct fixture f;

	setup(&f, 1, 0);
	vale_close(f.d);
	b = t_open("valet0:b", 8, 8);
	c = t_open("valet0:c", 8, 8);
	t_send(c, 60, EVERYBODY, 0, 7);
	t_drain(b);
	f.params.monitor = VALE_MIRROR_BOTH;
	open_port(&f, "valet0:b");
	t_send(b, 60, 0, 1, 1);
	ATF_CHECK_EQ(0, f.csb->rx_ktoa.hwtail);
	ATF_CHECK(vale_shared_rx(f.d));
	take(&f, 1);
	ATF_CHECK_EQ(1, t_drain(c));
	vale_close(c);
	vale_close(b);
	teardown(&f);
}

TEST(private, "What a port needs besides its memory is known: buffers of its "
    "inboxes, and what the switch knows of each ring and slot")
{
	const struct { uint32_t rx_slots; unsigned int rings; size_t slots; }
	    rows[] = {
		{ 4, 1, 4 }, { 1024, 1, 1024 }, { 16384, 1, 16384 },
		{ 512, 16, 8192 }, { 0, 1, VALE_SLOTS_DEFAULT },
	};
	size_t bytes, bufs;
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		bytes = vale_shared_private(&(struct vale_params){
		    .rings = rows[i].rings, .rx_slots = rows[i].rx_slots });
		bufs = rows[i].slots * (VALE_BUF_SIZE + sizeof(struct frame));
		/* Of a slot eight bytes, twice, and more of a ring. */
		ATF_CHECK_MSG(bytes > bufs + 16 * rows[i].rings *
		    rows[i].rx_slots, "%zu", bytes);
		ATF_CHECK_MSG(bytes < bufs + rows[i].rings *
		    (64 * rows[i].rx_slots + 384 * 1024), "%zu", bytes);
	}
}

TEST_PROGRAM
