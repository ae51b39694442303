/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Statistics registers of the 82545EM: how they add up, how they are read, and
 * which frames they count.
 */

#include <sys/param.h>

#include <stdlib.h>

#include "e82545_check.h"
#include "e82545_regs.h"

HOST_TEST(missed, host_create(HOST_RAM), "MPC counts the frames that the "
    "network dropped since the last read or reset")
{
	uint8_t *snap;
	size_t size;

	ATF_CHECK_EQ(0, host_rd(h, E82545_MPC));
	h->missed = 5;
	ATF_CHECK_EQ(5, host_rd(h, E82545_MPC));
	ATF_CHECK_EQ(0, host_rd(h, E82545_MPC));
	h->missed += 2;
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0, host_rd(h, E82545_MPC));
	h->missed += 3;
	ATF_CHECK_EQ(3, host_rd(h, E82545_MPC));
	/* Before a save they count, between save and restore they do not. */
	h->missed += 7;
	e82545_pause(h->dev);
	size = e82545_snapshot_size(h->dev);
	snap = malloc(size);
	ATF_REQUIRE(snap != NULL);
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(h->dev, snap, size));
	h->missed = 100;
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(h->dev, snap, size));
	e82545_resume(h->dev);
	free(snap);
	h->missed++;
	ATF_CHECK_EQ(8, host_rd(h, E82545_MPC));
	/* It saturates. */
	h->missed += UINT64_MAX / 2;
	ATF_CHECK_EQ(ALL, host_rd(h, E82545_MPC));
}

HOST_TEST(moved, host_create(HOST_RAM), "An adapter on another port counts "
    "what the network drops there from then on, and the ports' counters go on")
{
	struct host *other = host_create(HOST_RAM);
	const struct frame longer = { .f_len = 1519 };

	h->missed = 5;
	other->missed = 100;
	h->port.fp_frame_max = 1518;
	other->port.fp_frame_max = 1518;
	ATF_CHECK_EQ(EMSGSIZE, frame_port_send(&h->port, &longer));
	e82545_move(h->dev, &other->port, "other");
	ATF_CHECK_STREQ("other", e82545_name(h->dev));
	h->missed = 50;
	other->missed += 2;
	ATF_CHECK_EQ(7, host_rd(h, E82545_MPC));
	other->missed += 3;
	ATF_CHECK_EQ(3, host_rd(h, E82545_MPC));
	ATF_CHECK_EQ(EMSGSIZE, frame_port_send(&other->port, &longer));
	ATF_CHECK_EQ(2, frame_port_counter(&other->port,
	    FRAME_PORT_C_TX_OVERMTU));
	e82545_move(h->dev, &h->port, "a longer name than that of the other "
	    "one");
	ATF_CHECK_EQ(31, strlen(e82545_name(h->dev)));
	e82545_move(h->dev, &other->port, "b");
	ATF_CHECK_STREQ("b", e82545_name(h->dev));
	e82545_move(h->dev, &h->port, "");
	ATF_CHECK_EQ(0, host_rd(h, E82545_MPC));
	ATF_CHECK_EQ(2, frame_port_counter(&h->port, FRAME_PORT_C_TX_OVERMTU));
	host_destroy(other);
}

/* Lengths without FCS, and which of the six registers counts them. */
static const struct {
	size_t		len;
	unsigned int	n;
} lengths[] = {
	{ 20, 0 }, { 60, 0 }, { 61, 1 }, { 123, 1 }, { 124, 2 }, { 251, 2 },
	{ 252, 3 }, { 507, 3 }, { 508, 4 }, { 1019, 4 }, { 1020, 5 },
	{ 1514, 5 }, { 1518, 5 }, { E82545_FRAME_MAX, 5 },
};

/* The registers that count frames of one direction. */
struct bank {
	uint32_t	size;		/* the first of six */
	uint32_t	good, good_bytes, broadcast, multicast;
	uint32_t	total, total_bytes;
};
static const struct bank sent_bank = {
	0x40d8, E82545_GPTC, E82545_GOTCL, E82545_BPTC, E82545_MPTC,
	E82545_TPT, E82545_TOTL
};
static const struct bank received_bank = {
	0x405c, E82545_GPRC, E82545_GORCL, E82545_BPRC, E82545_MPRC,
	E82545_TPR, E82545_TORL
};

/* Have host_run() send, or receive, a frame. */
static void
queue_sent(struct host *h, const uint8_t *frame, size_t len)
{
	host_tx_frame(h, frame, len, 0);
	host_tx_go(h);
}

static void
queue_received(struct host *h, const uint8_t *frame, size_t len)
{
	host_inject(h, frame, len, 1);
}

/*
 * Check that frames are counted by size and kind of address, and `others',
 * earlier ones of 64 bytes, in the totals only.  Bytes include padding and FCS.
 */
static void
check_counts(struct host *h, const struct bank *b,
    void (*queue)(struct host *, const uint8_t *, size_t),
    unsigned int others)
{
	static const uint8_t broadcast[6] =
	    { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t multicast[6] = { 0x01, 0, 0x5e, 0, 0, 1 };
	static uint8_t frame[E82545_FRAME_MAX];
	unsigned int i, j;
	uint64_t bytes;

	bytes = 3 * 64;
	for (i = 0; i < nitems(lengths); i++) {
		host_make_frame(frame, lengths[i].len, host_mac, i);
		queue(h, frame, lengths[i].len);
		queue(h, frame, lengths[i].len);
		host_run(h);
		for (j = 0; j < 6; j++)
			ATF_CHECK_EQ_MSG(j == lengths[i].n ? 2 : 0,
			    host_rd(h, b->size + 4 * j),
			    "length %zu, register %u", lengths[i].len, j);
		bytes += 2 * (MAX(lengths[i].len, 60) + 4);
	}
	host_make_frame(frame, 60, broadcast, 0);
	queue(h, frame, 60);
	host_make_frame(frame, 60, multicast, 0);
	queue(h, frame, 60);
	queue(h, frame, 60);
	host_run(h);
	ATF_CHECK_EQ(1, host_rd(h, b->broadcast));
	ATF_CHECK_EQ(2, host_rd(h, b->multicast));
	ATF_CHECK_EQ(2 * nitems(lengths) + 3, host_rd(h, b->good));
	ATF_CHECK_EQ(bytes, host_rd(h, b->good_bytes));
	ATF_CHECK_EQ(2 * nitems(lengths) + 3 + others,
	    host_rd(h, b->total));
	ATF_CHECK_EQ(bytes + 64 * others, host_rd(h, b->total_bytes));
}

HOST_TEST(sent, tx_up(64), "Frames sent, by size and by kind of address")
{
	check_counts(h, &sent_bank, queue_sent, 0);
}

HOST_TEST(received, rx_up(64, 2048), "Frames received, by size and by kind of "
    "address")
{
	static const uint8_t other[6] = { 2, 2, 2, 2, 2, 2 };
	uint8_t frame[60];

	host_set(h, E82545_RCTL, E82545_RCTL_LPE | E82545_RCTL_MPE);
	/* Frames for other addresses are in the totals only. */
	host_make_frame(frame, sizeof(frame), other, 0);
	rx_receive(h, frame, sizeof(frame));
	check_counts(h, &received_bank, queue_received, 1);
}

/* Preload what counts frames with `n', and what counts bytes with `bytes'. */
static void
preload(struct host *h, const struct bank *b, uint32_t n, uint64_t bytes)
{
	const uint32_t offs[] = { b->good, b->broadcast, b->multicast,
	    b->total };
	unsigned int i;

	for (i = 0; i < nitems(offs); i++)
		reg_count(h, offs[i], n);
	for (i = 0; i < 6; i++)
		reg_count(h, b->size + 4 * i, n);
	reg_count64(h, b->good_bytes, bytes);
	reg_count64(h, b->total_bytes, bytes);
}

/* Three frames of each size in a batch, to one station, to a group, to all. */
static void
queue_each(struct host *h, void (*queue)(struct host *, const uint8_t *,
    size_t))
{
	static const uint8_t group[6] = { 0x01, 0, 0x5e, 0, 0, 1 };
	static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const size_t len[] = { 60, 100, 200, 400, 800, 1500 };
	uint8_t frame[1500];
	unsigned int i;

	for (i = 0; i < 3 * nitems(len); i++) {
		host_make_frame(frame, len[i / 3], i % 3 == 0 ? host_mac :
		    i % 3 == 1 ? group : all, i);
		queue(h, frame, len[i / 3]);
	}
	host_run(h);
	while (host_rx_take(h, frame, sizeof(frame), NULL) > 0)
		;
	host_rx_post(h);
}
#define	EACH_FRAMES	18
#define	EACH_BYTES	(3 * (60 + 100 + 200 + 400 + 800 + 1500 + 6 * 4))

/* Check that the registers stick at all ones until read, then count from 0. */
static void
check_full(struct host *h, const struct bank *b,
    void (*queue)(struct host *, const uint8_t *, size_t))
{
	const uint32_t offs[] = { b->good, b->broadcast, b->multicast,
	    b->total };
	const uint32_t bytes[] = { b->good_bytes, b->total_bytes };
	unsigned int i, past;

	for (past = 0; past < 3; past++) {
		/* They reach the end, pass it, and have been there before. */
		preload(h, b, past == 0 ? ALL - 3 : ALL - 2 + past,
		    UINT64_MAX - (past == 0 ? EACH_BYTES : 2 - past));
		queue_each(h, queue);
		for (i = 0; i < 6; i++) {
			ATF_CHECK_EQ(ALL, host_rd(h, b->size + 4 * i));
			ATF_CHECK_EQ(0, host_rd(h, b->size + 4 * i));
		}
		for (i = 0; i < nitems(offs); i++) {
			ATF_CHECK_EQ_MSG(ALL, host_rd(h, offs[i]), "%#x",
			    offs[i]);
			ATF_CHECK_EQ(0, host_rd(h, offs[i]));
		}
		for (i = 0; i < nitems(bytes); i++) {
			ATF_CHECK_EQ(ALL, host_rd(h, bytes[i]));
			ATF_CHECK_EQ(ALL, host_rd(h, bytes[i] + 4));
			ATF_CHECK_EQ(0, host_rd(h, bytes[i]));
			ATF_CHECK_EQ(0, host_rd(h, bytes[i] + 4));
		}
		/* Bytes pass 2^32. */
		preload(h, b, 0, ALL - 1);
		queue_each(h, queue);
		ATF_CHECK_EQ(EACH_FRAMES, host_rd(h, b->total));
		for (i = 0; i < 6; i++)
			ATF_CHECK_EQ(3, host_rd(h, b->size + 4 * i));
		for (i = 0; i < nitems(bytes); i++) {
			ATF_CHECK_EQ(EACH_BYTES - 2, host_rd(h, bytes[i]));
			ATF_CHECK_EQ(1, host_rd(h, bytes[i] + 4));
		}
		for (i = 0; i < nitems(offs); i++)
			host_rd(h, offs[i]);
	}
}

TEST(full, "Frames sent and received past the end of the registers: 8254x SDM "
    "section 13.7")
{
	struct host *h = tx_up(64);

	check_full(h, &sent_bank, queue_sent);
	host_destroy(h);
	h = rx_up(64, 2048);
	host_set(h, E82545_RCTL, E82545_RCTL_MPE);
	check_full(h, &received_bank, queue_received);
	host_destroy(h);
}

TEST_PROGRAM
