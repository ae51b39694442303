/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Slots: fragments, NS_INDIRECT, frames of all lengths, and everything that a
 * hostile user of a ring may write.
 */

#include <sys/mman.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_test.h"

#define	BUF_SIZE	2048

static struct vale_desc *a, *b;
static uint8_t frame[T_FRAME_MAX];

static void
open_pair(uint32_t tx_slots, uint32_t rx_slots)
{
	a = t_open("valet0:a", tx_slots, rx_slots);
	b = t_open("valet0:b", tx_slots, rx_slots);
}

static void
close_pair(void)
{
	vale_close(a);
	vale_close(b);
}

/* Discard all frames in the ring. */
static void
discard(struct vale_desc *d)
{
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
	d->rxring->head = d->rxring->cur = d->rxring->tail;
	ATF_REQUIRE_EQ(0, vale_rxsync(d));
}

/* Check that no frame arrives, and that `drop' is counted once more. */
static void
expect_drop(enum vale_counter drop)
{
	uint64_t before = t_count(a, drop), copies = t_count(a, VALE_C_TX_COPY);

	ATF_REQUIRE_EQ(0, vale_txsync(a));
	ATF_CHECK_EQ_MSG(before + 1, t_count(a, drop), "%s",
	    vale_counter_table[drop].cr_name);
	ATF_CHECK_EQ(copies, t_count(a, VALE_C_TX_COPY));
	t_expect_none(b);
	/* Check that the ring still works. */
	t_send(a, 60, EVERYBODY, 0, 4711);
	t_expect(b, 60, 0, 4711);
}

TEST(layout, "Rings and buffers are those of netmap(4); no two buffers or "
    "ports share memory")
{
	struct vale_desc *d[2];
	struct netmap_ring *ring;
	unsigned int i, j, r;
	char *buf, *end = NULL;

	open_pair(0, 0);
	d[0] = a;
	d[1] = b;
	for (i = 0; i < 2; i++) {
		ATF_CHECK_EQ(NETMAP_API, d[i]->common->nifp->ni_version);
		ATF_CHECK_EQ(1, d[i]->common->nifp->ni_tx_rings);
		ATF_CHECK_EQ(1, d[i]->common->nifp->ni_rx_rings);
		ATF_CHECK_EQ(NETMAP_TXRING(d[i]->common->nifp, 0),
		    d[i]->txring);
		ATF_CHECK_EQ(NETMAP_RXRING(d[i]->common->nifp, 0),
		    d[i]->rxring);
		end = NULL;
		for (r = 0; r < 2; r++) {
			ring = r == 0 ? d[i]->txring : d[i]->rxring;
			ATF_CHECK_EQ(r, ring->dir);
			ATF_CHECK_EQ(0, ring->ringid);
			ATF_CHECK_EQ(BUF_SIZE, ring->nr_buf_size);
			ATF_CHECK_EQ(1024, ring->num_slots);
			ATF_CHECK_EQ(r == 0 ? 1023 : 0, nm_ring_space(ring));
			for (j = 0; j < ring->num_slots; j++) {
				buf = NETMAP_BUF(ring, ring->slot[j].buf_idx);
				ATF_REQUIRE(ring->slot[j].buf_idx >= 2);
				ATF_REQUIRE(end == NULL || buf == end);
				memset(buf, i + 1, BUF_SIZE);
				end = buf + BUF_SIZE;
			}
		}
	}
	for (j = 0; j < 1024; j++) {
		buf = NETMAP_BUF(a->rxring, a->rxring->slot[j].buf_idx);
		ATF_REQUIRE_EQ(1, buf[0]);
		ATF_REQUIRE_EQ(1, buf[BUF_SIZE - 1]);
	}
	close_pair();
}

TEST(runts, "Frames of 0 to 13 bytes are dropped and counted, one of 14 is "
    "sent")
{
	uint32_t len, fraglen;

	open_pair(0, 0);
	t_make(frame, 60, EVERYBODY, 0, 0);
	for (fraglen = 1; fraglen <= BUF_SIZE; fraglen += BUF_SIZE - 1) {
		for (len = 0; len < 14; len++) {
			t_put(a, frame, len, fraglen, false);
			expect_drop(VALE_C_TX_DROP_RUNT);
		}
	}
	t_put(a, frame, 14, BUF_SIZE, false);
	ATF_REQUIRE_EQ(0, vale_txsync(a));
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_REQUIRE_EQ(1, nm_ring_space(b->rxring));
	ATF_CHECK_EQ(14, b->rxring->slot[b->rxring->head].len);
	close_pair();
}

/*
 * Two pages of memory between two that cannot be accessed.  Returns the first
 * byte of the third, which cannot.
 */
static uint8_t *
two_pages(void)
{
	const size_t page = getpagesize();
	uint8_t *p;

	p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE |
	    MAP_ANON, -1, 0);
	ATF_REQUIRE(p != MAP_FAILED);
	ATF_REQUIRE_EQ(0, mprotect(p, page, PROT_NONE));
	ATF_REQUIRE_EQ(0, mprotect(p + 3 * page, page, PROT_NONE));
	return (p + 3 * page);
}

TEST(bounds, "NS_INDIRECT data is read neither before its first byte nor after "
    "its last")
{
	uint8_t *end, *start;
	uint32_t len;

	open_pair(0, 0);
	end = two_pages();
	start = end - 2 * getpagesize();
	for (len = 22; len < 100; len++) {
		/* In one piece, at either end. */
		t_make(start, len, EVERYBODY, 0, len);
		t_put(a, start, len, BUF_SIZE, true);
		ATF_REQUIRE_EQ(0, vale_txsync(a));
		t_expect(b, len, 0, len);
		t_make(end - len, len, EVERYBODY, 0, len);
		t_put(a, end - len, len, BUF_SIZE, true);
		ATF_REQUIRE_EQ(0, vale_txsync(a));
		t_expect(b, len, 0, len);
		/* The addresses in pieces, the first of which is empty. */
		t_make(frame, len, EVERYBODY, 0, len);
		memcpy(end - 5, frame, 5);
		memcpy(start, frame + 5, len - 5);
		t_put(a, start, 0, BUF_SIZE, true);
		a->txring->slot[a->txring->head - 1].flags |= NS_MOREFRAG;
		t_put(a, end - 5, 5, BUF_SIZE, true);
		a->txring->slot[a->txring->head - 1].flags |= NS_MOREFRAG;
		t_put(a, start, len - 5, BUF_SIZE, true);
		ATF_REQUIRE_EQ(0, vale_txsync(a));
		t_expect(b, len, 0, len);
	}
	close_pair();
}

TEST(indirect_long, "A slot with NS_INDIRECT may have more bytes than a "
    "buffer, and none beyond them is read")
{
	static const uint32_t len[] = { BUF_SIZE, BUF_SIZE + 1, 4096, 9018,
	    40000, UINT16_MAX, VALE_FRAME_MAX };
	const size_t size = VALE_FRAME_MAX, page = getpagesize();
	struct t_frame f;
	unsigned int i;
	uint8_t *mem;

	open_pair(16, 0);
	mem = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	ATF_REQUIRE(mem != MAP_FAILED);
	ATF_REQUIRE_EQ(0, mprotect(mem + size, page, PROT_NONE));
	ATF_CHECK_EQ(UINT16_MAX, a->common->indirect_max);
	for (i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
		t_make(mem + size - len[i], len[i], EVERYBODY, 0, i);
		t_put(a, mem + size - len[i], len[i], a->common->indirect_max,
		    true);
		/* One of a single slot of a buffer's length behind it. */
		t_queue(a, 60, EVERYBODY, 0, 100);
		ATF_REQUIRE_EQ(0, vale_txsync(a));
		ATF_REQUIRE_EQ(0, vale_rxsync(b));
		ATF_REQUIRE(t_take(b, &f) && f.tf_seq == i);
		ATF_CHECK_EQ(len[i], f.tf_len);
		ATF_CHECK_EQ((len[i] + BUF_SIZE - 1) / BUF_SIZE, f.tf_slots);
		ATF_REQUIRE(t_take(b, &f) && f.tf_seq == 100);
		ATF_REQUIRE_EQ(0, vale_rxsync(b));
	}
	T_COUNT(a, TX_FRAME, 2 * i);
	munmap(mem, size + page);
	close_pair();
}

TEST(sixty_four_k, "A frame of 64 KB arrives in 32 slots; one byte more is "
    "dropped and counted")
{
	struct t_frame f;

	open_pair(0, 0);
	t_send(a, VALE_FRAME_MAX, EVERYBODY, 0, 3);
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_REQUIRE(t_take(b, &f));
	ATF_CHECK_EQ(65536, f.tf_len);
	ATF_CHECK_EQ(32, f.tf_slots);
	t_expect_none(b);
	T_COUNT(b, RX_BYTE, 65536);

	t_queue(a, VALE_FRAME_MAX + 1, EVERYBODY, 0, 4);
	expect_drop(VALE_C_TX_DROP_OVERSIZE);
	close_pair();
}

TEST(jumbo_room, "A frame that does not fit into a ring is dropped, and "
    "shorter ones behind it go in")
{
	struct t_frame f;

	open_pair(64, 8);
	t_queue(a, 5 * BUF_SIZE, EVERYBODY, 0, 1);	/* 5 of 7 */
	t_queue(a, 3 * BUF_SIZE, EVERYBODY, 0, 2);	/* no */
	t_queue(a, 60, EVERYBODY, 0, 3);		/* 6 */
	t_queue(a, BUF_SIZE + 1, EVERYBODY, 0, 4);	/* no */
	t_queue(a, BUF_SIZE, EVERYBODY, 0, 5);		/* 7 */
	t_queue(a, 60, EVERYBODY, 0, 6);		/* no */
	ATF_REQUIRE_EQ(0, vale_txsync(a));
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_CHECK_EQ(7, nm_ring_space(b->rxring));
	ATF_REQUIRE(t_take(b, &f));
	ATF_CHECK_EQ(1, f.tf_seq);
	ATF_REQUIRE(t_take(b, &f));
	ATF_CHECK_EQ(3, f.tf_seq);
	ATF_REQUIRE(t_take(b, &f));
	ATF_CHECK_EQ(5, f.tf_seq);
	t_expect_none(b);
	T_COUNT(b, RX_DROP_FULL, 3);
	T_COUNT(b, RX_FRAME, 3);
	/* What did not fit is no part of the bytes. */
	T_COUNT(b, RX_BYTE, 6 * BUF_SIZE + 60);
	/* A frame longer than the ring. */
	t_send(a, 8 * BUF_SIZE, EVERYBODY, 0, 7);
	t_expect_none(b);
	T_COUNT(b, RX_DROP_FULL, 4);
	close_pair();
}

TEST(too_many, "A frame of more than 64 slots is dropped and counted once")
{
	open_pair(0, 0);
	t_make(frame, 64, EVERYBODY, 0, 64);
	t_put(a, frame, 64, 1, false);
	ATF_REQUIRE_EQ(0, vale_txsync(a));
	t_expect(b, 64, 0, 64);
	t_make(frame, 65, EVERYBODY, 0, 65);
	t_put(a, frame, 65, 1, false);
	expect_drop(VALE_C_TX_DROP_FRAGS);
	t_make(frame, 1020, EVERYBODY, 0, 66);
	t_put(a, frame, 1020, 1, false);
	expect_drop(VALE_C_TX_DROP_FRAGS);
	T_COUNT(a, TX_DROP_FRAGS, 2);
	close_pair();
}

TEST(cut, "A frame without a last slot is dropped and counted; the next sync "
    "begins a new frame")
{
	open_pair(0, 0);
	t_make(frame, 100, EVERYBODY, 0, 1);
	t_put(a, frame, 100, 50, false);
	a->txring->slot[a->txring->head - 1].flags |= NS_MOREFRAG;
	expect_drop(VALE_C_TX_DROP_CUT);
	T_COUNT(a, TX_FRAME, 2);
	close_pair();
}

TEST(bad_buffer, "Buffer indexes of other ports, and indirect slots without an "
    "address, are not used")
{
	uint32_t bad[] = { 0, 1, 0, UINT32_MAX, 0x80000000 };
	struct netmap_slot *slot;
	uint32_t own;
	unsigned int i;

	open_pair(16, 16);
	bad[2] = 2 + 16 + 16;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		slot = &a->txring->slot[a->txring->head];
		own = slot->buf_idx;
		t_queue(a, 60, EVERYBODY, 0, 1);
		slot->buf_idx = bad[i];
		expect_drop(VALE_C_TX_DROP_BUF);
		slot->buf_idx = own;
	}
	slot = &a->txring->slot[a->txring->head];
	t_queue(a, 60, EVERYBODY, 0, 1);
	slot->flags |= NS_INDIRECT;
	slot->ptr = 0;
	expect_drop(VALE_C_TX_DROP_BUF);
	/* In the middle of a frame. */
	t_make(frame, 60, EVERYBODY, 0, 1);
	slot = &a->txring->slot[nm_ring_next(a->txring, a->txring->head)];
	t_put(a, frame, 60, 20, false);
	slot->buf_idx = UINT32_MAX;
	expect_drop(VALE_C_TX_DROP_BUF);
	T_COUNT(a, TX_DROP_BUF, 7);
	close_pair();
}

TEST(first_reason, "A frame with several faults is counted once, for the one "
    "found first")
{
	struct netmap_slot *slot;
	uint32_t own, n;

	open_pair(1024, 16);
	/* A bad buffer in a frame that is too short, cut, too long. */
	for (n = 0; n < 3; n++) {
		t_make(frame, T_FRAME_MAX, EVERYBODY, 0, 1);
		slot = &a->txring->slot[a->txring->head];
		own = slot->buf_idx;
		t_put(a, frame, n == 0 ? 10 : n == 1 ? 100 : T_FRAME_MAX,
		    n == 0 ? 10 : n == 1 ? 50 : BUF_SIZE, false);
		if (n == 1)
			a->txring->slot[a->txring->head - 1].flags |=
			    NS_MOREFRAG;
		slot->buf_idx = UINT32_MAX;
		expect_drop(VALE_C_TX_DROP_BUF);
		slot->buf_idx = own;
	}
	/* Too short and cut. */
	t_put(a, frame, 10, 10, false);
	a->txring->slot[a->txring->head - 1].flags |= NS_MOREFRAG;
	expect_drop(VALE_C_TX_DROP_CUT);
	/* More fragments than allowed and too long. */
	t_put(a, frame, T_FRAME_MAX, 1024, false);
	expect_drop(VALE_C_TX_DROP_FRAGS);
	T_COUNT(a, TX_DROP_BUF, 3);
	T_COUNT(a, TX_DROP_CUT, 1);
	T_COUNT(a, TX_DROP_FRAGS, 1);
	T_COUNT(a, TX_DROP_RUNT, 0);
	T_COUNT(a, TX_DROP_OVERSIZE, 0);
	/* What expect_drop() sent. */
	T_COUNT(a, TX_BYTE, 5 * 60);
	close_pair();
}

TEST(bytes, "Bytes are counted for frames of one and of several slots, by "
    "sender and receiver")
{
	uint32_t len, sum;

	open_pair(1024, 1024);
	sum = 0;
	for (len = 60; len < 3 * BUF_SIZE; len += 517) {
		t_make(frame, len, EVERYBODY, 0, len);
		t_put(a, frame, len, BUF_SIZE, false);
		t_put(a, frame, len, 100, false);
		sum += 2 * len;
	}
	/* The shortest frame, in one slot and in two. */
	t_put(a, frame, VALE_FRAME_MIN, BUF_SIZE, false);
	t_put(a, frame, VALE_FRAME_MIN, 7, false);
	sum += 2 * VALE_FRAME_MIN;
	ATF_REQUIRE_EQ(0, vale_txsync(a));
	T_COUNT(a, TX_BYTE, sum);
	T_COUNT(b, RX_BYTE, sum);
	T_COUNT(a, TX_DROP_RUNT, 0);
	T_COUNT(b, RX_DROP_FULL, 0);
	T_COUNT(a, TX_SYNC, 1);
	T_COUNT(a, TX_BATCH, 1);
	close_pair();
}

TEST(swapped, "A port may swap buffers between its rings")
{
	struct netmap_slot *rx, *tx;
	uint32_t idx;

	open_pair(0, 0);
	t_send(a, 777, EVERYBODY, 0, 1);
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	rx = &b->rxring->slot[b->rxring->head];
	tx = &b->txring->slot[b->txring->head];
	idx = rx->buf_idx;
	rx->buf_idx = tx->buf_idx;
	tx->buf_idx = idx;
	tx->len = rx->len;
	tx->flags = rx->flags = NS_BUF_CHANGED;
	b->rxring->head = b->rxring->cur = nm_ring_next(b->rxring,
	    b->rxring->head);
	b->txring->head = b->txring->cur = nm_ring_next(b->txring,
	    b->txring->head);
	ATF_REQUIRE_EQ(0, vale_txsync(b));
	t_expect_none(b);
	t_expect(a, 777, 0, 1);
	T_COUNT(b, RX_BAD_BUF, 0);
	close_pair();
}

TEST(bad_rx_buffer, "A receive slot with an invalid buffer gets its own one "
    "back, and the frame")
{
	open_pair(16, 16);
	b->rxring->slot[0].buf_idx = UINT32_MAX;
	b->rxring->slot[1].buf_idx = 0;
	b->rxring->slot[2].buf_idx = 2 + 16 + 16;
	t_send(a, 3 * BUF_SIZE, EVERYBODY, 0, 5);
	t_expect(b, 3 * BUF_SIZE, 0, 5);
	T_COUNT(b, RX_BAD_BUF, 3);
	ATF_CHECK_EQ(2 + 16, b->rxring->slot[0].buf_idx);
	ATF_CHECK_EQ(2 + 17, b->rxring->slot[1].buf_idx);
	ATF_CHECK_EQ(2 + 18, b->rxring->slot[2].buf_idx);
	close_pair();
}

TEST(bad_tx_head, "A transmit head outside the ring sends nothing, returns "
    "EINVAL, and is reset")
{
	static const uint32_t bad[] = { 16, 17, 0x80000000, UINT32_MAX };
	unsigned int i;

	open_pair(16, 16);
	t_send(a, 60, EVERYBODY, 0, 1);
	t_expect(b, 60, 0, 1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		a->txring->head = bad[i];
		a->txring->cur = 3;
		a->txring->tail = 5;
		ATF_CHECK_EQ(-1, vale_txsync(a));
		ATF_CHECK_EQ(EINVAL, errno);
		ATF_CHECK_EQ(1, a->txring->head);
		ATF_CHECK_EQ(1, a->txring->cur);
		ATF_CHECK_EQ(0, a->txring->tail);
		t_expect_none(b);
	}
	T_COUNT(a, TX_BAD_RING, 4);
	T_COUNT(a, TX_FRAME, 1);
	t_send(a, 60, EVERYBODY, 0, 2);
	t_expect(b, 60, 0, 2);
	close_pair();
}

TEST(bad_rx_head, "A receive head or cur outside the user's slots returns "
    "EINVAL, is reset, and loses no frame")
{
	static const uint32_t bad[][2] = {	/* head, cur */
		{ 16, 2 }, { 2, 16 }, { UINT32_MAX, UINT32_MAX },
		{ 1, 2 }, { 5, 5 }, { 2, 5 }, { 4, 3 }, { 15, 15 }, { 2, 1 },
	};
	struct t_frame f;
	unsigned int i;

	open_pair(16, 16);
	for (i = 0; i < 4; i++)
		t_send(a, 60, EVERYBODY, 0, i);
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	ATF_REQUIRE(t_take(b, &f) && t_take(b, &f));
	ATF_REQUIRE_EQ(0, vale_rxsync(b));
	/* The user owns slots 2 and 3 now; the tail is 4. */
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		b->rxring->head = bad[i][0];
		b->rxring->cur = bad[i][1];
		b->rxring->tail = 9;
		ATF_CHECK_EQ(-1, vale_rxsync(b));
		ATF_CHECK_EQ(EINVAL, errno);
		ATF_CHECK_EQ(2, b->rxring->head);
		ATF_CHECK_EQ(2, b->rxring->cur);
		ATF_CHECK_EQ(4, b->rxring->tail);
	}
	T_COUNT(b, RX_BAD_RING, sizeof(bad) / sizeof(bad[0]));
	ATF_REQUIRE(t_take(b, &f));
	ATF_CHECK_EQ(2, f.tf_seq);
	ATF_REQUIRE(t_take(b, &f));
	ATF_CHECK_EQ(3, f.tf_seq);
	t_expect_none(b);
	close_pair();
}

TEST(scribbled, "Rings with random contents harm no other port, and every "
    "frame is accounted for")
{
	struct vale_desc *c, *d;
	struct netmap_slot *slot;
	uint64_t gone, rnd = 88172645463325252;
	uint32_t i, round;
	enum vale_counter n;

	open_pair(256, 256);
	c = t_open("valet0:c", 0, 0);
	d = t_open("valet0:d", 0, 0);
	for (round = 0; round < 300; round++) {
		for (i = 0; i < 256; i++) {
			rnd ^= rnd << 13;
			rnd ^= rnd >> 7;
			rnd ^= rnd << 17;
			slot = &a->txring->slot[i];
			slot->buf_idx = rnd % 600;
			slot->len = (rnd >> 10) % 2300;
			slot->flags = (rnd >> 22) & 0xffff & ~NS_INDIRECT;
			b->rxring->slot[i].buf_idx = rnd >> 32;
			b->rxring->slot[i].len = rnd >> 16;
		}
		a->txring->head = rnd >> 40 & 255;
		vale_txsync(a);
		discard(b);
		/* Others go on. */
		discard(d);
		t_send(c, 60, 3, 2, round);
		ATF_REQUIRE_EQ(1, t_drain(d));
		if (round == 0)
			t_send(d, 60, 2, 3, 0);
	}
	/* To one port, to all three others, or to none. */
	gone = t_count(a, VALE_C_TX_COPY) - 2 * t_count(a, VALE_C_TX_FLOOD);
	for (n = VALE_C_TX_DROP_RUNT; n <= VALE_C_TX_DROP_LIMIT; n++)
		gone += t_count(a, n);
	T_COUNT(a, TX_FRAME, gone);
	ATF_CHECK(t_count(a, VALE_C_TX_DROP_BUF) > 0);
	ATF_CHECK(t_count(a, VALE_C_TX_DROP_LEN) > 0);
	ATF_CHECK(t_count(b, VALE_C_RX_BAD_BUF) > 0);
	vale_close(c);
	vale_close(d);
	close_pair();
}

TEST_PROGRAM
