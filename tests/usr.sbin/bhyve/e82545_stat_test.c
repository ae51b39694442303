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

#include "e82545_check.h"
#include "e82545_regs.h"

TEST(stick, "Statistics add up, saturate, and clear when read")
{
	struct host *h;
	unsigned int i, j;
	uint32_t o;

	h = host_create(HOST_RAM);
	FOREACH_REG(i, j, o) {
		if (regs[i].kind != REG_RC)
			continue;
		reg_count(h, o, 3);
		reg_count(h, o, 4);
		ATF_CHECK_EQ(7, host_rd(h, o));
		ATF_CHECK_EQ(0, host_rd(h, o));
		reg_count(h, o, ALL);
		reg_count(h, o, 1);
		ATF_CHECK_EQ(ALL, host_rd(h, o));
		reg_count(h, o, UINT64_MAX);
		ATF_CHECK_EQ(ALL, host_rd(h, o));
		ATF_CHECK_EQ(0, host_rd(h, o));
		check_reset_values(h);
	}
	host_destroy(h);
}

TEST(bytes,
    "Byte counts are cleared by reading the high half, and lose none")
{
	static const uint32_t offs[] = { 0x4088, 0x4090, 0x40c0, 0x40c8 };
	struct host *h;
	unsigned int i;
	uint32_t o;

	h = host_create(HOST_RAM);
	for (i = 0; i < nitems(offs); i++) {
		o = offs[i];
		reg_count64(h, o, 0x1fffffff0);
		reg_count64(h, o, 0x20);
		/* The low half may be read again. */
		ATF_CHECK_EQ(0x10, host_rd(h, o));
		ATF_CHECK_EQ(0x10, host_rd(h, o));
		/* Counted between the reads of the halves, with a carry. */
		reg_count64(h, o, 0xfffffff5);
		ATF_CHECK_EQ(0x2, host_rd(h, o + 4));
		ATF_CHECK_EQ(0xfffffff5, host_rd(h, o));
		ATF_CHECK_EQ(0, host_rd(h, o + 4));
		/* The high half alone clears both. */
		reg_count64(h, o, 0x300000001);
		ATF_CHECK_EQ(3, host_rd(h, o + 4));
		ATF_CHECK_EQ(0, host_rd(h, o));
		ATF_CHECK_EQ(0, host_rd(h, o + 4));
		reg_count64(h, o, UINT64_MAX);
		reg_count64(h, o, 5);
		ATF_CHECK_EQ(UINT64_MAX, e82545_read(h->dev, 0, o, 8));
		ATF_CHECK_EQ(0, e82545_read(h->dev, 0, o, 8));
	}
	check_reset_values(h);
	host_destroy(h);
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

TEST(sent, "Frames sent, by size and by kind of address")
{
	static const struct bank bank = {
		0x40d8, E82545_GPTC, E82545_GOTCL, E82545_BPTC, E82545_MPTC,
		E82545_TPT, E82545_TOTL
	};
	struct host *h = tx_up(64);

	check_counts(h, &bank, queue_sent, 0);
	host_destroy(h);
}

TEST(received, "Frames received, by size and by kind of address")
{
	static const struct bank bank = {
		0x405c, E82545_GPRC, E82545_GORCL, E82545_BPRC, E82545_MPRC,
		E82545_TPR, E82545_TORL
	};
	static const uint8_t other[6] = { 2, 2, 2, 2, 2, 2 };
	struct host *h = rx_up(64, 2048);
	uint8_t frame[60];

	host_set(h, E82545_RCTL, E82545_RCTL_LPE | E82545_RCTL_MPE);
	/* Frames for other addresses are in the totals only. */
	host_make_frame(frame, sizeof(frame), other, 0);
	rx_receive(h, frame, sizeof(frame));
	check_counts(h, &bank, queue_received, 1);
	host_destroy(h);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, stick);
	ATF_TP_ADD_TC(tp, bytes);
	ATF_TP_ADD_TC(tp, sent);
	ATF_TP_ADD_TC(tp, received);

	return (atf_no_error());
}
