/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Sinks: frames that a port takes directly from the sender's memory.
 */

#include <sys/cdefs.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame.h"
#include "test.h"
#include "vale_test.h"

#define	LEN		60

/* A sink that takes up to `limit' frames a call. */
struct sink {
	unsigned int	calls;
	unsigned int	limit;
	int		maxiov;
	unsigned int	taken;
	int		pieces;		/* of the last frame */
	uint32_t	src, next;	/* sender, and the number after it */
	uint8_t		last[T_FRAME_MAX];
	size_t		last_len;
};

static void
gather(struct sink *s, const struct iovec *iov, int n)
{
	uint32_t src;
	int i;

	s->last_len = 0;
	for (i = 0; i < n; i++) {
		ATF_REQUIRE(s->last_len + iov[i].iov_len <= sizeof(s->last));
		memcpy(s->last + s->last_len, iov[i].iov_base, iov[i].iov_len);
		s->last_len += iov[i].iov_len;
	}
	s->pieces = n;
	memcpy(&src, s->last + 14, sizeof(src));
	memcpy(&s->next, s->last + 18, sizeof(s->next));
	s->src = src;
	s->next++;
}

static void
take_some(void *arg, struct frame_source *frames)
{
	struct sink *s = arg;
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	unsigned int n;

	s->calls++;
	for (n = 0; n < s->limit; n++) {
		if (!frame_peek(frames, &frame) || frame.f_niov > s->maxiov)
			break;
		gather(s, iov, frame.f_niov);
		ATF_REQUIRE_EQ(frame.f_len, s->last_len);
		frame_next(frames);
		s->taken++;
	}
}

/* Two ports, learned by the switch, the first with a sink. */
static struct vale_desc *rx, *tx;
static struct sink sink;

static void
ports_open(unsigned int limit)
{
	rx = t_open("valet0:rx", 512, 64);
	tx = t_open("valet0:tx", 512, 64);
	t_send(rx, LEN, EVERYBODY, 0, 0);
	t_drain(tx);
	memset(&sink, 0, sizeof(sink));
	sink.limit = limit;
	sink.maxiov = NETMAP_MAX_FRAGS;
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, take_some, &sink));
}

static void
ports_close(void)
{
	vale_close(rx);
	vale_close(tx);
}

/* The slot that t_put() has filled last. */
static uint32_t
slot_last(const struct vale_desc *d)
{
	return (d->txring->head == 0 ? d->txring->num_slots - 1 :
	    d->txring->head - 1);
}

/* `n' frames to port rx in one batch, numbered from `seq'. */
static void
burst(unsigned int n, uint32_t seq)
{
	while (n-- > 0)
		t_queue(tx, LEN, 0, 1, seq++);
	ATF_REQUIRE_EQ(0, vale_txsync(tx));
}

/* Take these frames, and no others, from rx's ring, and do not release them. */
static void
ring_has(unsigned int n, uint32_t seq)
{
	struct t_frame f;

	while (n-- > 0) {
		ATF_REQUIRE(t_take(rx, &f));
		ATF_CHECK_EQ(1, f.tf_src);
		ATF_CHECK_EQ_MSG(seq, f.tf_seq, "%u, not %u", f.tf_seq, seq);
		seq++;
	}
	ATF_CHECK(nm_ring_empty(rx->rxring));
}

TEST(part, "Frames that the sink leaves go to the ring; it is called again "
    "once they are released")
{
	ports_open(5);
	burst(12, 0);
	ATF_CHECK_EQ(1, sink.calls);
	ATF_CHECK_EQ(5, sink.next);

	/* It is not called while frames wait, */
	burst(3, 12);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	/* nor before the receiver has taken them, */
	burst(3, 15);
	ring_has(10, 5);
	/* nor before the receiver has released them with a sync, */
	burst(3, 18);
	ATF_CHECK_EQ(1, sink.calls);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	ring_has(6, 15);
	/* only then. */
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	burst(3, 21);
	ATF_CHECK_EQ(2, sink.calls);
	ATF_CHECK_EQ(24, sink.next);
	T_COUNT(rx, RX_FRAME, 24);
	T_COUNT(rx, RX_DIRECT, 8);
	T_COUNT(rx, RX_COPY, 16);

	/* A sink that takes nothing is called once. */
	sink.limit = 0;
	burst(2, 24);
	ATF_CHECK_EQ(3, sink.calls);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	ring_has(2, 24);
	/* Frames that fit neither the sink nor the ring are dropped. */
	sink.limit = 10;
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	burst(80, 26);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	ring_has(63, 36);
	T_COUNT(rx, RX_DROP_FULL, 7);
	T_COUNT(rx, RX_BYTE, (24 + 2 + 73) * LEN);
	ports_close();
}

TEST(polled, "With VALE_RING_POLLED all frames go through the ring, and to the "
    "sink again afterwards")
{
	ports_open(1000);
	burst(3, 0);
	ATF_CHECK_EQ(3, sink.next);
	/* The flag takes effect with the next sync. */
	rx->rxring->flags |= VALE_RING_POLLED;
	burst(3, 3);
	ATF_CHECK_EQ(6, sink.next);
	t_expect_none(rx);
	burst(3, 6);
	ATF_CHECK_EQ(2, sink.calls);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	ring_has(3, 6);
	/* More frames than slots, which are released in parts. */
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	burst(40, 9);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	burst(23, 49);
	ring_has(40, 9);
	burst(1, 999);
	T_COUNT(rx, RX_DROP_FULL, 1);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	ring_has(23, 49);
	ATF_CHECK_EQ(2, sink.calls);

	/* The flag is cleared: frames in the ring go first. */
	burst(2, 72);
	rx->rxring->flags &= ~VALE_RING_POLLED;
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	burst(2, 74);
	ring_has(2, 72);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	ring_has(2, 74);
	ATF_CHECK_EQ(2, sink.calls);
	ATF_REQUIRE_EQ(0, vale_rxsync(rx));
	burst(2, 76);
	ATF_CHECK_EQ(78, sink.next);
	T_COUNT(rx, RX_DIRECT, 8);
	T_COUNT(rx, RX_COPY, 70);
	T_COUNT(rx, RX_SYNC, 8);
	ports_close();
}

/*
 * Slow memory: a sink whose calls take longer than a delivery may, in which it
 * sleeps, or only computes.  It takes all frames and remembers where the last
 * one was.
 */
static uint8_t slow_frame[100];		/* the sender's memory */

static struct {
	unsigned int	calls;
	const void	*where;
	bool		slow, busy;
} slow;

static void
take_slow(void *arg __unused, struct frame_source *frames)
{
	const struct timespec pause = { 0, 250000000 };
	struct timespec now, until;
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	slow.calls++;
	while (frame_peek(frames, &frame)) {
		ATF_REQUIRE_EQ(1, frame.f_niov);
		ATF_REQUIRE_EQ(sizeof(slow_frame), frame.f_len);
		ATF_CHECK_EQ(0, memcmp(iov[0].iov_base, slow_frame,
		    sizeof(slow_frame)));
		slow.where = iov[0].iov_base;
		frame_next(frames);
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 2;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (slow.busy && now.tv_sec < until.tv_sec);
	if (slow.slow)
		nanosleep(&pause, NULL);
}

static void
send_by_reference(void)
{
	t_put(tx, slow_frame, sizeof(slow_frame), sizeof(slow_frame), true);
	ATF_REQUIRE_EQ(0, vale_txsync(tx));
}

TEST(slow, "If a delivery was slow, frames of its sender are copied first; if "
    "that does not help, frames to its receiver go through the ring; both for "
    "a while")
{
	ports_open(0);
	t_make(slow_frame, sizeof(slow_frame), 0, 1, 5);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, take_slow, NULL));
	/* The first time nobody knows whether the thread slept. */
	slow.slow = true;
	send_by_reference();
	T_COUNT(tx, TX_SLOW, 0);
	send_by_reference();
	ATF_CHECK_EQ(slow_frame, slow.where);
	T_COUNT(tx, TX_SLOW, 1);
	T_COUNT(rx, RX_SLOW, 0);

	send_by_reference();
	ATF_CHECK_EQ(3, slow.calls);
	ATF_CHECK(slow.where != slow_frame);
	T_COUNT(tx, TX_SLOW, 1);
	T_COUNT(rx, RX_SLOW, 1);
	/* A slot without an address. */
	t_put(tx, slow_frame, 60, 60, true);
	tx->txring->slot[slot_last(tx)].ptr = 0;
	send_by_reference();
	T_COUNT(tx, TX_DROP_BUF, 1);

	t_expect(rx, sizeof(slow_frame), 1, 5);
	ATF_CHECK_EQ(3, slow.calls);
	ports_close();
}

TEST(busy, "A delivery that takes long because the thread waits for a "
    "processor has no consequence")
{
	int i;

	ports_open(0);
	t_make(slow_frame, sizeof(slow_frame), 0, 1, 5);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, take_slow, NULL));
	slow.busy = true;
	for (i = 0; i < 3; i++) {
		send_by_reference();
		ATF_CHECK_EQ(slow_frame, slow.where);
	}
	T_COUNT(tx, TX_SLOW, 0);
	T_COUNT(rx, RX_SLOW, 0);
	T_COUNT(rx, RX_DIRECT, 3);
	ports_close();
}

/* A sink that requires that all pages of a frame are resident. */
static void
take_resident(void *arg __unused, struct frame_source *frames)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	uintptr_t at, end;
	size_t len;
	char in;
	int i;

	while (frame_peek(frames, &frame)) {
		slow.calls++;
		for (i = 0, len = 0; i < frame.f_niov; i++) {
			len += iov[i].iov_len;
			at = (uintptr_t)iov[i].iov_base;
			end = at + iov[i].iov_len;
			for (at -= at % page; at < end; at += page) {
				ATF_REQUIRE_EQ(0, mincore((void *)at, page,
				    (void *)&in));
				ATF_CHECK_MSG((in & 1) != 0, "frame %u, "
				    "fragment %d: %zu bytes before its end",
				    slow.calls, i, end - at);
			}
		}
		ATF_CHECK_EQ(frame.f_len, len);
		frame_next(frames);
	}
}

TEST(resident, "All pages of a frame are faulted in before the sink is called")
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t head[22], *mem;

	ports_open(0);
	ATF_REQUIRE_EQ(0, vale_set_sink(rx, take_resident, NULL));
	mem = mmap(NULL, 20 * page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	ATF_REQUIRE(mem != MAP_FAILED);
#ifdef MADV_NOHUGEPAGE
	ATF_REQUIRE_EQ(0, madvise(mem, 20 * page, MADV_NOHUGEPAGE));
#endif
	t_make(head, sizeof(head), 0, 1, 0);
	/* One fragment in two pages: its last byte is in another. */
	memcpy(mem + page - 59, head, sizeof(head));
	t_put(tx, mem + page - 59, 60, 60, true);
	/* Three fragments: one in a page, one whose first byte is. */
	t_put(tx, head, sizeof(head), sizeof(head), true);
	tx->txring->slot[slot_last(tx)].flags |= NS_MOREFRAG;
	t_put(tx, mem + 4 * page, 1, 1, true);
	tx->txring->slot[slot_last(tx)].flags |= NS_MOREFRAG;
	t_put(tx, mem + 9 * page - 1, 2000, 2000, true);
	/* One fragment in five pages, behind one that has the header. */
	t_put(tx, head, sizeof(head), sizeof(head), true);
	tx->txring->slot[slot_last(tx)].flags |= NS_MOREFRAG;
	t_put(tx, mem + 10 * page - 1, 3 * page + 2, 3 * page + 2, true);
	/* One that is the frame. */
	memcpy(mem + 15 * page - 30, head, sizeof(head));
	t_put(tx, mem + 15 * page - 30, page + 31, page + 31, true);
	ATF_REQUIRE_EQ(0, vale_txsync(tx));
	ATF_CHECK_EQ(4, slow.calls);
	munmap(mem, 20 * page);
	ports_close();
}

TEST_PROGRAM
