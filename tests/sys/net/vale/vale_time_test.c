/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The switch when the clock does what clocks rarely do: it stands still, jumps
 * by hours because the process was stopped or the host suspended, and passes
 * 2^32 and 2^63 ns.  The linker's --wrap brings calls of clock_gettime(2) and
 * getrusage(2) here.
 */

#include <sys/cdefs.h>
#include <sys/types.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_shared.h"
#include "vale_test.h"
#include "wrap.h"

#define	SECOND	1000000000ULL
#define	HOUR	(3600 * SECOND)
#define	LEN	60
/* How long a slow delivery has consequences, at most. */
#define	LASTS	(640 * SECOND)

static struct vale_desc *rx, *tx;
static uint8_t	bytes[LEN];		/* the sender's memory */
static uint64_t	now_ns;
static long	sleeps;
static uint64_t	tick_ns;		/* passes with each look at the clock */

/* What happens in the next call of the sink, which takes all frames. */
static uint64_t	stop_ns;
static bool	busy;			/* it does not sleep meanwhile */
static bool	scribble;		/* overwrite `bytes' when the first has
					   got it */
static struct iovec taken;		/* the last frame */
static unsigned int ntaken;

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	ATF_CHECK_EQ(CLOCK_MONOTONIC_COARSE, clock);
	now_ns += tick_ns;
	if (scribble && t_count(rx, VALE_C_RX_FRAME) > 0)
		memset(bytes, 0xff, sizeof(bytes));
	ts->tv_sec = (time_t)(now_ns / SECOND);
	ts->tv_nsec = (long)(now_ns % SECOND);
	return (0);
}

WRAP(int, getrusage, int who, struct rusage *ru)
{
	ATF_CHECK_EQ(RUSAGE_THREAD, who);
	memset(ru, 0, sizeof(*ru));
	sleeps += tick_ns != 0;
	ru->ru_nvcsw = sleeps;
	return (0);
}

static void
take(void *arg __attribute__((__unused__)), struct frame_source *frames)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	while (frame_peek(frames, &frame)) {
		taken = iov[0];
		ntaken++;
		frame_next(frames);
	}
	if (stop_ns != 0) {
		now_ns += stop_ns;
		sleeps += !busy;
		stop_ns = 0;
	}
}

static void
ports_open(uint64_t start_ns)
{
	now_ns = start_ns;
	ntaken = 0;
	rx = t_open("valet0:rx", 512, 64);
	tx = t_open("valet0:tx", 512, 64);
	t_send(rx, LEN, EVERYBODY, 0, 0);
	t_drain(tx);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, take, NULL));
	t_make(bytes, sizeof(bytes), 0, 1, 5);
}

static void
ports_close(void)
{
	vale_close(rx);
	vale_close(tx);
}

/* Send a frame by reference; the process is stopped while the sink takes it. */
static void
send_stopped(uint64_t ns)
{
	stop_ns = ns;
	t_put(tx, bytes, sizeof(bytes), sizeof(bytes), true);
	ATF_REQUIRE_EQ(0, vale_txsync(tx));
}

/* Whether the sink got the last frame, in the sender's memory. */
static bool
direct(void)
{
	return (ntaken > 0 && taken.iov_base == bytes);
}

TEST(stopped, "A process that is stopped for a minute, hours or longer, twice "
    "in deliveries, copies frames for eleven minutes at most")
{
	static const uint64_t stops[] = { SECOND, 60 * SECOND, 12 * HOUR,
	    1ULL << 58, 1ULL << 62 };
	unsigned int i;

	for (i = 0; i < nitems(stops); i++) {
		ports_open(HOUR);
		send_stopped(stops[i]);
		ATF_CHECK(direct());
		T_COUNT(tx, TX_SLOW, 0);
		send_stopped(stops[i]);
		ATF_CHECK(direct());
		T_COUNT(tx, TX_SLOW, 1);
		send_stopped(0);
		ATF_CHECK(!direct());
		T_COUNT(rx, RX_DIRECT, 3);
		/* The same again, which is laid to the receiver's memory. */
		send_stopped(stops[i]);
		T_COUNT(rx, RX_SLOW, 1);
		send_stopped(0);
		T_COUNT(rx, RX_DIRECT, 4);
		t_drain(rx);
		now_ns += LASTS;
		send_stopped(0);
		ATF_CHECK_MSG(direct(), "stop %u", i);
		T_COUNT(tx, TX_SLOW, 1);
		ports_close();
	}
}

TEST(limits, "50 ms are slow, and 200 ms of a frame that was copied")
{
	const uint64_t ms = SECOND / 1000;
	int i;

	ports_open(HOUR);
	for (i = 0; i < 5; i++)
		send_stopped(50 * ms - 1);
	T_COUNT(tx, TX_SLOW, 0);
	send_stopped(50 * ms);
	T_COUNT(tx, TX_SLOW, 0);
	send_stopped(50 * ms);
	T_COUNT(tx, TX_SLOW, 1);
	/* A head that is no slot is refused while frames are copied, too. */
	tx->txring->head = tx->txring->num_slots;
	ATF_CHECK_EQ(-1, vale_txsync(tx));
	T_COUNT(tx, TX_BAD_RING, 1);
	for (i = 0; i < 5; i++)
		send_stopped(200 * ms - 1);
	T_COUNT(rx, RX_SLOW, 0);
	send_stopped(200 * ms);
	T_COUNT(rx, RX_SLOW, 1);
	T_COUNT(tx, TX_SLOW, 1);
	ports_close();
}

static uint8_t	big[VALE_FRAME_MAX];	/* as `bytes' */

/* Send one slot with a frame; returns whether it was received. */
static bool
send_slot(const void *ptr, uint32_t len, uint32_t buf_idx, uint16_t flags)
{
	struct netmap_ring *ring = tx->txring;
	struct netmap_slot *slot = &ring->slot[ring->head];
	const uint32_t old_idx = slot->buf_idx;
	unsigned int n;

	slot->ptr = (uintptr_t)ptr;
	slot->len = (uint16_t)len;
	slot->flags = flags;
	slot->buf_idx = buf_idx == 0 ? old_idx : buf_idx;
	t_make(flags == 0 ? (void *)NETMAP_BUF(ring, old_idx) : big,
	    MIN(len, flags == 0 ? 2048 : sizeof(big)), EVERYBODY, 1, 7);
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
	ATF_REQUIRE_EQ(0, vale_txsync(tx));
	n = t_drain(rx);
	t_drain(rx);
	/* It is the user's again. */
	slot->buf_idx = old_idx;
	return (n == 1);
}

TEST(ring, "A ring that is slow to fill makes its sender copy, no more")
{
	int i;

	ports_open(HOUR);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, NULL, NULL));
	tick_ns = SECOND / 2;
	for (i = 0; i < 10; i++) {
		send_stopped(0);
		t_drain(rx);
		/* What is too long for a buffer is copied elsewhere. */
		ATF_CHECK(send_slot(big, 65000, 0, NS_INDIRECT));
	}
	tick_ns = 0;
	T_COUNT(tx, TX_SLOW, 1);
	T_COUNT(rx, RX_SLOW, 0);
	T_COUNT(rx, RX_FRAME, 20);
	ports_close();
}

static void
no_wake(void *arg __attribute__((__unused__)),
    unsigned int ring __attribute__((__unused__)),
    bool to_tx __attribute__((__unused__)))
{
}

TEST(shared, "A port whose memory is slow gets its frames by its owner's "
    "thread, and its senders do not wait")
{
	struct vale_params params = { .tx_slots = 4, .rx_slots = 64 };
	struct vale_shared vs = { .wake = no_wake };
	struct vale_desc *d;
	struct vale_csb *csb;
	struct netmap_if *nifp;
	unsigned int i;

	ports_open(HOUR);
	ATF_REQUIRE_EQ(0, posix_memalign(&vs.memory, 4096,
	    vale_shared_size(&params, 0)));
	memset(vs.memory, 0, vale_shared_size(&params, 0));
	d = vale_open_shared("valet0:shared", &params, &vs);
	ATF_REQUIRE(d != NULL);
	csb = vs.memory;
	ATF_REQUIRE_EQ(0, vale_set("valet0", "ageing", "0"));
	/* It sends, and is known. */
	nifp = d->common->nifp;
	t_make((uint8_t *)NETMAP_BUF(NETMAP_TXRING(nifp, 0), 2), LEN, 1, 2, 0);
	NETMAP_TXRING(nifp, 0)->slot[0].len = LEN;
	csb->tx_atok.head = 1;
	ATF_CHECK(vale_shared_tx(d));
	for (i = 0; i < 2; i++) {
		tick_ns = SECOND / 10;
		t_send(tx, LEN, 2, 1, i);
		T_COUNT(d, RX_SLOW, 0);
	}
	for (i = 2; i < 4; i++) {
		tick_ns = SECOND;
		t_send(tx, LEN, 2, 1, i);
		tick_ns = 0;
		T_COUNT(d, RX_SLOW, 1);
	}
	T_COUNT(tx, TX_SLOW, 0);
	/* The last one waits. */
	ATF_CHECK_EQ(3, csb->rx_ktoa.hwtail);
	ATF_CHECK(vale_shared_rx(d));
	ATF_CHECK_EQ(4, csb->rx_ktoa.hwtail);
	t_send(tx, LEN, 2, 1, i);
	ATF_CHECK_EQ(4, csb->rx_ktoa.hwtail);
	ATF_CHECK(vale_shared_rx(d));
	ATF_CHECK_EQ(5, csb->rx_ktoa.hwtail);
	now_ns += LASTS;
	t_send(tx, LEN, 2, 1, i);
	t_send(tx, LEN, 2, 1, i);
	ATF_CHECK_EQ(7, csb->rx_ktoa.hwtail);
	ATF_CHECK(!vale_shared_rx(d));
	vale_close(d);
	free(vs.memory);
	ports_close();
}

TEST(own_buffers, "A ring is not slow to fill from the sender's buffers")
{
	int i;

	ports_open(HOUR);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, NULL, NULL));
	send_stopped(0);
	tick_ns = SECOND;
	for (i = 0; i < 5; i++)
		t_send(tx, LEN, EVERYBODY, 1, i);
	tick_ns = 0;
	T_COUNT(tx, TX_SLOW, 0);
	T_COUNT(rx, RX_FRAME, 6);
	ports_close();
}

TEST(busy, "A delivery is slow only if the thread sleeps in it")
{
	int i;

	ports_open(HOUR);
	busy = true;
	for (i = 0; i < 5; i++)
		send_stopped(SECOND);
	T_COUNT(tx, TX_SLOW, 0);
	busy = false;
	send_stopped(SECOND);
	T_COUNT(tx, TX_SLOW, 1);
	ports_close();
}

TEST(once, "Two slow deliveries have no consequences if the first is forgotten")
{
	ports_open(HOUR);
	send_stopped(SECOND);
	now_ns += LASTS;
	send_stopped(SECOND);
	T_COUNT(tx, TX_SLOW, 0);
	send_stopped(SECOND);
	T_COUNT(tx, TX_SLOW, 1);
	ports_close();
}

TEST(one_batch, "Two slow deliveries of one batch make its sender copy")
{
	struct vale_desc *rx2;

	ports_open(HOUR);
	rx2 = t_open("valet0:rx2", 512, 64);
	t_send(rx2, LEN, EVERYBODY, 2, 0);
	t_drain(rx);
	t_drain(tx);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx2, take, NULL));
	t_make(big, LEN, 2, 1, 5);
	t_put(tx, big, LEN, LEN, true);
	tick_ns = SECOND;
	send_stopped(0);
	tick_ns = 0;
	ATF_CHECK_EQ(2, ntaken);
	T_COUNT(tx, TX_SLOW, 1);
	vale_close(rx2);
	ports_close();
}

/* Take the next frame, whose number is `seq'. */
static void
expect_seq(uint32_t seq)
{
	struct t_frame f;

	ATF_REQUIRE_MSG(t_take(rx, &f), "frame %u is missing", seq);
	ATF_CHECK_EQ(seq, f.tf_seq);
}

TEST(many, "A frame to several ports is copied once, before any of them gets "
    "it, and no sink is asked; one to a single port is not")
{
	static uint8_t all[300][3000];
	struct vale_desc *rx2;
	unsigned int i, n = 0;

	ports_open(HOUR);
	/* Two ports: the other one is alone. */
	t_make(bytes, sizeof(bytes), EVERYBODY, 1, 5);
	send_stopped(0);
	ATF_CHECK(direct());
	rx2 = t_open("valet0:rx2", 512, 4096);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx2, take, NULL));
	vale_close(rx);
	rx = t_open("valet0:rx", 512, 4096);
	i = ntaken;
	scribble = true;
	send_stopped(0);
	scribble = false;
	ATF_CHECK_EQ(0xff, bytes[0]);
	ATF_CHECK_EQ(i, ntaken);
	t_expect(rx, LEN, 1, 5);
	t_expect(rx2, LEN, 1, 5);
	T_COUNT(rx2, RX_DIRECT, 0);
	/* More than there is space for copies, with others between them. */
	for (i = 0; i < nitems(all); i++) {
		t_make(all[i], sizeof(all[i]), i % 3 == 0 ? 9 : EVERYBODY, 1,
		    i);
		t_put(tx, all[i], sizeof(all[i]), sizeof(all[i]), true);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(tx));
	T_COUNT(tx, TX_FLOOD, 2 + nitems(all));
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	for (; n < nitems(all); n++)
		expect_seq(n);
	ATF_CHECK_EQ(nitems(all), t_drain(rx2));
	/* A learned one is not copied: its port waits. */
	t_send(rx2, LEN, EVERYBODY, 9, 1);
	t_make(bytes, sizeof(bytes), 9, 1, 5);
	send_stopped(0);
	ATF_CHECK(direct());
	T_COUNT(rx2, RX_DIRECT, 1);
	vale_close(rx2);
	ports_close();
}

TEST(copied_slots, "Slots of any contents are copied or refused while frames "
    "are copied")
{
	const uint32_t bad = 2 + 512 + 64;	/* the first that is none */
	struct netmap_ring *ring;
	char *next;

	ports_open(HOUR);
	send_stopped(SECOND);
	send_stopped(SECOND);
	T_COUNT(tx, TX_SLOW, 1);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, NULL, NULL));
	t_drain(rx);
	ring = tx->txring;
	ATF_CHECK(send_slot(big, LEN, 0, NS_INDIRECT));
	ATF_CHECK(send_slot(big, 2048, 0, NS_INDIRECT));
	/* Longer ones do not need the slot's buffer, nor change the next. */
	next = NETMAP_BUF(ring, ring->slot[ring->head].buf_idx) + 2048;
	*next = 0x5a;
	ATF_CHECK(send_slot(big, 2049, 0, NS_INDIRECT));
	ATF_CHECK_EQ(0x5a, *next);
	ATF_CHECK(send_slot(big, 65535, bad, NS_INDIRECT));
	/* A frame in the ring's own buffer has no pointer. */
	ATF_CHECK(send_slot(NULL, LEN, 0, 0));
	ATF_CHECK(send_slot((void *)1, LEN, 0, 0));
	/* Nor has one elsewhere a buffer. */
	ATF_CHECK(send_slot(big, LEN, bad, NS_INDIRECT));
	ATF_CHECK(send_slot(big, LEN, UINT32_MAX, NS_INDIRECT));
	T_COUNT(tx, TX_DROP_BUF, 0);
	ATF_CHECK(!send_slot(NULL, LEN, 0, NS_INDIRECT));
	ATF_CHECK(!send_slot(NULL, 2049, 0, NS_INDIRECT));
	T_COUNT(tx, TX_DROP_BUF, 2);
	T_COUNT(tx, TX_DROP_LEN, 0);
	ATF_CHECK(!send_slot(NULL, LEN, bad, 0));
	T_COUNT(tx, TX_DROP_BUF, 3);
	ATF_CHECK(!send_slot(NULL, 2049, 0, 0));
	T_COUNT(tx, TX_DROP_LEN, 1);
	ports_close();
}

TEST(copied_long, "Of a sync all frames are copied, though they are longer "
    "than what can be copied at a time")
{
	static uint8_t many[40][65000];
	unsigned int i;

	ports_open(HOUR);
	send_stopped(SECOND);
	send_stopped(SECOND);
	T_COUNT(tx, TX_SLOW, 1);
	/* The sink gets the copy. */
	i = ntaken;
	t_make(many[0], sizeof(many[0]), EVERYBODY, 1, 0);
	t_put(tx, many[0], sizeof(many[0]), sizeof(many[0]), true);
	ATF_REQUIRE_EQ(0, vale_txsync(tx));
	ATF_CHECK_EQ(i + 1, ntaken);
	ATF_CHECK(taken.iov_base != many[0]);
	ATF_CHECK_EQ(sizeof(many[0]), taken.iov_len);
	vale_close(rx);
	rx = t_open("valet0:rx", 512, 2048);
	for (i = 0; i < nitems(many); i++) {
		/* In one slot, in three, and in the ring's own buffer. */
		t_make(many[i], sizeof(many[i]), EVERYBODY, 1, 2 * i);
		t_put(tx, many[i], sizeof(many[i]), i % 2 == 0 ? 65000 : 30000,
		    true);
		t_queue(tx, LEN, EVERYBODY, 1, 2 * i + 1);
	}
	ATF_REQUIRE_EQ(0, vale_txsync(tx));
	T_COUNT(tx, TX_SYNC, 4);
	T_COUNT(tx, TX_FRAME, 3 + 2 * i);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	for (i = 0; i < 2 * nitems(many); i++)
		expect_seq(i);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));

	/* A frame that is too long is dropped, however long, alone. */
	for (i = 2; i < 8; i++) {
		t_put(tx, many[0], i * 65000, 65000, true);
		t_queue(tx, LEN, EVERYBODY, 1, i);
		ATF_REQUIRE_EQ(0, vale_txsync(tx));
		ATF_REQUIRE_EQ(0, vale_rxsync(rx));
		expect_seq(i);
		ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	}
	T_COUNT(tx, TX_DROP_OVERSIZE, 6);
	T_COUNT(tx, TX_DROP_BUF, 0);
	ports_close();
}

TEST(stands_still, "The clock stands still: no delivery is slow, and no "
    "address ages")
{
	int i;

	ports_open(HOUR);
	for (i = 0; i < 1000; i++) {
		sleeps++;
		send_stopped(0);
		ATF_CHECK(direct());
	}
	T_COUNT(tx, TX_SLOW, 0);
	T_COUNT(tx, TX_FLOOD, 0);
	T_COUNT(rx, RX_DIRECT, 1000);
	ports_close();
}

TEST(jumps, "The clock jumps by hours between deliveries: addresses are "
    "learned anew, and no delivery was slow")
{
	unsigned int i;

	ports_open(HOUR);
	for (i = 0; i < 5; i++) {
		now_ns += (i + 1) * HOUR;
		sleeps++;
		send_stopped(0);
		ATF_CHECK(direct());
		T_COUNT(tx, TX_FLOOD, i + 1);
		T_COUNT(tx, LEARNED, i + 1);
		t_send(rx, LEN, EVERYBODY, 0, i);
		T_COUNT(rx, LEARNED, i + 2);
		send_stopped(0);
		T_COUNT(tx, TX_FLOOD, i + 1);
		t_drain(tx);
	}
	T_COUNT(tx, TX_SLOW, 0);
	ports_close();
}

/* A slow delivery and what follows, across a value of the clock. */
static void
pass(uint64_t value)
{
	static const uint64_t before[] = { 1, SECOND / 2, SECOND, 3 * SECOND,
	    60 * SECOND };
	const uint64_t slow = SECOND / 10;
	unsigned int i;

	for (i = 0; i < nitems(before); i++) {
		ports_open(value > before[i] ? value - before[i] : 0);
		send_stopped(slow);
		send_stopped(slow);
		T_COUNT(tx, TX_SLOW, 1);
		send_stopped(0);
		ATF_CHECK_MSG(!direct(), "case %u", i);
		now_ns += 64 * slow - 1;
		send_stopped(0);
		ATF_CHECK_MSG(!direct(), "case %u", i);
		now_ns += 1;
		send_stopped(0);
		ATF_CHECK_MSG(direct(), "case %u", i);
		T_COUNT(tx, TX_FLOOD, 0);
		/* The address expires after 300 s. */
		now_ns += 301 * SECOND;
		send_stopped(0);
		T_COUNT(tx, TX_FLOOD, 1);
		ports_close();
	}
}

TEST(passes_2_32, "The clock passes 2^32 ns, and 2^32 s")
{
	pass(1ULL << 32);
	pass(SECOND << 32);
}

TEST(passes_2_63, "The clock passes 2^63 ns")
{
	pass(1ULL << 63);
}

TEST_PROGRAM
