/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Checksums, segmentation and VLAN tags, from the driver's core to the model
 * and back.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

/*
 * Build a frame with Ethernet, IPv4, TCP or UDP, of `len' bytes; the last two
 * bytes of the payload identify it.
 */
static void
make_ip(uint8_t *p, size_t len, bool tcp, unsigned int seed)
{
	size_t i;

	host_make_frame(p, len, test_peer, seed);
	p[12] = 0x08;
	p[13] = 0x00;
	memset(p + 14, 0, 40);
	p[14] = 0x45;
	p[16] = (len - 14) >> 8;
	p[17] = len - 14;
	p[22] = 64;
	p[23] = tcp ? 6 : 17;
	for (i = 26; i < 34; i++)
		p[i] = i;
	if (tcp)
		p[46] = 0x50;
	else {
		p[38] = (len - 34) >> 8;
		p[39] = len - 34;
	}
}

/*
 * The ones' complement sum of bytes, folded: 0xffff if the checksum is correct.
 */
static uint32_t
sum(const uint8_t *p, size_t len, uint32_t start)
{
	uint32_t s = start;
	size_t i;

	for (i = 0; i < len; i++)
		s += (i & 1) != 0 ? p[i] : (uint32_t)p[i] << 8;
	while (s > 0xffff)
		s = (s & 0xffff) + (s >> 16);
	return (s);
}

/* Send bytes as a packet in three fragments of odd lengths. */
static int
send_ip(struct lem_test *t, uint8_t *frame, size_t len, unsigned int flags,
    uint16_t mss, uint16_t vlan)
{
	struct lem_os *os = &t->g.lc.lc_os;
	struct lem_packet lp;
	struct lem_seg seg[3];
	uint64_t gpa;
	bool tcp = (flags & (LEM_TX_TCPSUM | LEM_TX_TSO4)) != 0;
	int error;

	/* The sum of the pseudo-header, where the hardware starts from. */
	uint32_t s = sum(frame + 26, 8, (tcp ? 6 : 17) +
	    ((flags & LEM_TX_TSO4) != 0 ? 0 : len - 34));
	frame[tcp ? 50 : 40] = s >> 8;
	frame[tcp ? 51 : 41] = s;
	gpa = guest_txbuf(&t->g);
	memcpy(os->ram + gpa, frame, len);
	seg[0] = (struct lem_seg){ gpa, 14 };
	seg[1] = (struct lem_seg){ gpa + 14, 43 };
	seg[2] = (struct lem_seg){ gpa + 57, len - 57 };
	memset(&lp, 0, sizeof(lp));
	lp.lpk_segs = seg;
	lp.lpk_nsegs = 3;
	lp.lpk_flags = flags;
	lp.lpk_l2len = 14;
	lp.lpk_l3len = 20;
	lp.lpk_l4len = tcp ? 20 : 8;
	lp.lpk_mss = mss;
	lp.lpk_vlan = vlan;
	error = guest_tx(&t->g, &lp);
	lem_tx_flush(&t->g.lc);
	return (error);
}

static void
check_sums(const uint8_t *p, size_t len, bool tcp)
{
	ATF_CHECK_EQ(0xffff, sum(p + 14, 20, 0));
	ATF_CHECK_EQ(0xffff, sum(p + 34, len - 34, sum(p + 26, 8,
	    (tcp ? 6 : 17) + (len - 34))));
}

LEM_TEST(tso, test_create(0, 2048, 1500), "TSO sends segments with correct "
    "checksums and VLAN tags")
{
	uint8_t frame[10054];
	const struct host_frame *f;
	unsigned int i;

	lem_set_filter(&t->g.lc, 0, true, NULL);
	make_ip(frame, sizeof(frame), true, 3);
	ATF_REQUIRE_EQ(0, send_ip(t, frame, sizeof(frame),
	    LEM_TX_TSO4 | LEM_TX_VLAN, 1000, 0x0123));
	test_settle(t);
	ATF_REQUIRE_EQ(10, host_sent(t->h));
	for (i = 0; i < 10; i++) {
		f = host_sent_frame(t->h, i);
		ATF_REQUIRE_EQ(1058, f->len);
		ATF_CHECK_EQ(0x81, f->data[12]);
		ATF_CHECK_EQ(0x23, f->data[15]);
		check_sums(f->data + 4, 1054, true);
		ATF_CHECK_EQ(0, memcmp(frame + 54 + 1000 * i, f->data + 58,
		    1000));
	}
	ATF_CHECK_EQ(1, t->g.lc.lc_os.tx_done);
	ATF_CHECK_EQ(1, t->g.lc.lc_counter[LEM_C_TX_PACKET]);
}

/* Queue a packet of one segment, and return lem_tx()'s error. */
static int
queue_one(struct lem_test *t, uint32_t len, unsigned int flags,
    unsigned int l2len, unsigned int l3len, unsigned int l4len,
    unsigned int mss)
{
	struct lem_seg seg[LEM_TX_MAXSEGS];
	struct lem_packet lp;
	uint64_t gpa = guest_txbuf(&t->g);
	unsigned int i;

	/* In as few segments as possible. */
	memset(&lp, 0, sizeof(lp));
	for (i = 0; len > 0; i++) {
		ATF_REQUIRE(i < nitems(seg));
		seg[i].ls_addr = gpa;
		seg[i].ls_len = MIN(len, 16383);
		len -= seg[i].ls_len;
	}
	lp.lpk_segs = seg;
	lp.lpk_nsegs = i;
	lp.lpk_flags = flags;
	lp.lpk_l2len = l2len;
	lp.lpk_l3len = l3len;
	lp.lpk_l4len = l4len;
	lp.lpk_mss = mss;
	lp.lpk_vlan = 0xa123;
	return (guest_tx(&t->g, &lp));
}

TEST(descriptors, "Every bit of the descriptors for each offload")
{
#define	CTX(l2, l3, cso)						\
	((l2) | ((l2) + 10) << 8 | ((l2) + (l3) - 1) << 16 |		\
	    (uint64_t)((l2) + (l3)) << 32 |				\
	    (uint64_t)((l2) + (l3) + (cso)) << 40)
	static const struct {
		unsigned int	flags, l2, l3, l4, mss;
		uint32_t	len;
		/* The context, 0 if none is sent; then the data. */
		uint64_t	ctx_addr, ctx_rest, rest;
	} t[] = {
		{ 0, 0, 0, 0, 0, 60, 0, 0, 0x0300003c },
		{ LEM_TX_VLAN, 0, 0, 0, 0, 60, 0, 0, 0xa12300004300003c },
		{ LEM_TX_IPSUM, 14, 20, 20, 0, 100,
		    CTX(14, 20, 16), 0x23000000, 0x0000010023100064 },
		{ LEM_TX_TCPSUM, 14, 20, 20, 0, 100,
		    0, 0, 0x0000020023100064 },
		{ LEM_TX_IPSUM | LEM_TX_TCPSUM | LEM_TX_VLAN, 14, 20, 20, 0,
		    100, 0, 0, 0xa123030063100064 },
		{ LEM_TX_UDPSUM, 14, 20, 8, 0, 100,
		    CTX(14, 20, 6), 0x22000000, 0x0000020023100064 },
		/* Another length of either header, and the same again. */
		{ LEM_TX_UDPSUM, 18, 20, 8, 0, 100,
		    CTX(18, 20, 6), 0x22000000, 0x0000020023100064 },
		{ LEM_TX_UDPSUM, 18, 40, 8, 0, 100,
		    CTX(18, 40, 6), 0x22000000, 0x0000020023100064 },
		{ LEM_TX_UDPSUM, 18, 40, 8, 0, 101,
		    0, 0, 0x0000020023100065 },
		/* TSO: HDRLEN, MSS and the payload's length. */
		{ LEM_TX_TSO4, 14, 20, 32, 1448, 4066, CTX(14, 20, 16),
		    0x05a8420027000000 | (4066 - 66),
		    0x0000030027100000 | 4066 },
		{ LEM_TX_TSO4, 14, 20, 32, 1448, 4066, CTX(14, 20, 16),
		    0x05a8420027000000 | (4066 - 66),
		    0x0000030027100000 | 4066 },
		{ LEM_TX_TSO6, 14, 40, 20, 1000, 3074, CTX(14, 40, 16),
		    0x03e84a0025000000 | (3074 - 74),
		    0x0000020027100000 | 3074 },
		/* Not TSO: the context has other bits. */
		{ LEM_TX_TCPSUM, 14, 40, 20, 0, 100,
		    CTX(14, 40, 16), 0x23000000, 0x0000020023100064 },
	};
	struct lem_test *test = test_create(LEM_MODE_POLL, 2048, 1500);
	struct lem_core *lc = &test->g.lc;
	const struct e82545_desc *txd;
	unsigned int i;
	uint32_t n;

	for (i = 0; i < nitems(t); i++) {
		n = lc->lc_tx_tail;
		ATF_REQUIRE_EQ(0, queue_one(test, t[i].len, t[i].flags,
		    t[i].l2, t[i].l3, t[i].l4, t[i].mss));
		ATF_REQUIRE_EQ_MSG(t[i].ctx_addr != 0 ? 2 : 1,
		    lc->lc_tx_tail - n, "row %u", i);
		if (t[i].ctx_addr != 0) {
			txd = &lc->lc_txd[n++];
			ATF_CHECK_EQ_MSG(t[i].ctx_addr, txd->addr,
			    "row %u: %jx", i, (uintmax_t)txd->addr);
			ATF_CHECK_EQ_MSG(t[i].ctx_rest, txd->rest,
			    "row %u: %jx", i, (uintmax_t)txd->rest);
		}
		txd = &lc->lc_txd[n];
		ATF_CHECK_EQ_MSG(t[i].rest, txd->rest, "row %u: %jx", i,
		    (uintmax_t)txd->rest);
	}
	test_destroy(test);
}

TEST(lengths, "Which lengths a packet and its headers may have")
{
	static const struct {
		unsigned int	flags, l2, l3, l4, mss;
		uint32_t	len;
		int		error;
	} t[] = {
		{ 0, 0, 0, 0, 0, 13, EINVAL },
		{ 0, 0, 0, 0, 0, 14, 0 },
		{ 0, 0, 0, 0, 0, E82545_FRAME_MAX, 0 },
		{ 0, 0, 0, 0, 0, E82545_FRAME_MAX + 1, EINVAL },
		{ 0x40, 0, 0, 0, 0, 60, EINVAL },
		/* Headers of no length, and longer than the packet. */
		{ LEM_TX_TCPSUM, 14, 20, 20, 0, 54, 0 },
		{ LEM_TX_TCPSUM, 14, 20, 20, 0, 53, EINVAL },
		{ LEM_TX_TCPSUM, 0, 20, 20, 0, 60, EINVAL },
		{ LEM_TX_TCPSUM, 14, 0, 20, 0, 60, EINVAL },
		{ LEM_TX_TCPSUM, 14, 20, 0, 0, 60, 0 },
		/* The offset of the checksum fits in a byte. */
		{ LEM_TX_TCPSUM, 14, 225, 20, 0, 300, 0 },
		{ LEM_TX_TCPSUM, 14, 226, 20, 0, 300, EINVAL },
		/* UDP and nothing else. */
		{ LEM_TX_UDPSUM | LEM_TX_IPSUM, 14, 20, 8, 0, 60, 0 },
		{ LEM_TX_UDPSUM | LEM_TX_TCPSUM, 14, 20, 8, 0, 60, EINVAL },
		{ LEM_TX_UDPSUM | LEM_TX_TSO4, 14, 20, 8, 1000, 60, EINVAL },
		/* TSO. */
		{ LEM_TX_TSO4, 14, 20, 20, 1000, 55, 0 },
		{ LEM_TX_TSO4, 14, 20, 20, 1000, 54, EINVAL },
		{ LEM_TX_TSO4 | LEM_TX_TSO6, 14, 20, 20, 1000, 100, EINVAL },
		{ LEM_TX_TSO4, 14, 20, 0, 1000, 100, EINVAL },
		{ LEM_TX_TSO4, 14, 20, 20, 0, 100, EINVAL },
		{ LEM_TX_TSO4, 14, 201, 40, 1000, 2000, 0 },
		{ LEM_TX_TSO4, 14, 202, 40, 1000, 2000, EINVAL },
		{ LEM_TX_TSO4, 14, 20, 20, E82545_FRAME_MAX - 54, 20000, 0 },
		{ LEM_TX_TSO4, 14, 20, 20, E82545_FRAME_MAX - 53, 20000,
		    EINVAL },
		{ LEM_TX_TSO4, 14, 20, 20, 1000, LEM_TX_MAXSEGS * 16383, 0 },
	};
	struct lem_test *test = test_create(LEM_MODE_POLL, 2048, 1500);
	struct lem_seg seg[LEM_TX_MAXSEGS + 1];
	struct lem_packet lp = { .lpk_segs = seg };
	unsigned int i;

	for (i = 0; i < nitems(t); i++) {
		/* Nothing is sent; the ring has room for a few. */
		lem_stop(&test->g.lc);
		ATF_REQUIRE_EQ(0, lem_start(&test->g.lc, test->g.mac, 1500));
		ATF_CHECK_EQ_MSG(t[i].error, queue_one(test, t[i].len,
		    t[i].flags, t[i].l2, t[i].l3, t[i].l4, t[i].mss),
		    "row %u", i);
	}

	/* Segments: how many, and how long. */
	for (i = 0; i < nitems(seg); i++)
		seg[i] = (struct lem_seg){ guest_txbuf(&test->g), 1 };
	lem_stop(&test->g.lc);
	ATF_REQUIRE_EQ(0, lem_start(&test->g.lc, test->g.mac, 1500));
	lp.lpk_nsegs = LEM_TX_MAXSEGS;
	ATF_CHECK_EQ(0, guest_tx(&test->g, &lp));
	lp.lpk_nsegs++;
	ATF_CHECK_EQ(EINVAL, guest_tx(&test->g, &lp));
	lp.lpk_nsegs = 2;
	seg[1].ls_len = 16126;
	ATF_CHECK_EQ(0, guest_tx(&test->g, &lp));
	lp.lpk_flags = LEM_TX_TSO4;
	lp.lpk_l2len = 14;
	lp.lpk_l3len = lp.lpk_l4len = 20;
	lp.lpk_mss = 1000;
	seg[1].ls_len = 16383;
	ATF_CHECK_EQ(0, guest_tx(&test->g, &lp));
	seg[1].ls_len = 16384;
	ATF_CHECK_EQ(EINVAL, guest_tx(&test->g, &lp));
	seg[1].ls_len = 0;
	ATF_CHECK_EQ(EINVAL, guest_tx(&test->g, &lp));
	lem_stop(&test->g.lc);
	test_destroy(test);
}

/* Flags and tag of the last frame. */
static struct {
	size_t		len;
	uint32_t	sums;
	bool		tagged;
	uint16_t	vlan;
} last;
#define	RX_SUMS	(LEM_RX_IPSUM | LEM_RX_L4SUM)

static void
keep_rx(void *arg __unused, const uint8_t *data __unused, size_t len,
    uint32_t flags, uint16_t vlan)
{
	last.len = len;
	last.sums = flags & RX_SUMS;
	last.tagged = (flags & LEM_RX_VLAN) != 0;
	last.vlan = vlan;
}

LEM_TEST(rx_offload, test_create(0, 2048, 1500), "Verified checksums and "
    "stripped VLAN tags are reported")
{
	uint8_t frame[200];
	uint32_t s;

	lem_set_filter(&t->g.lc, 0, true, NULL);
	t->g.lc.lc_os.frame = keep_rx;
	make_ip(frame, 200, true, 1);
	memcpy(frame, t->g.mac, 6);
	s = ~sum(frame + 14, 20, 0);
	frame[24] = s >> 8;
	frame[25] = s;
	s = ~sum(frame + 34, 166, sum(frame + 26, 8, 6 + 166));
	frame[50] = s >> 8;
	frame[51] = s;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK_EQ(RX_SUMS, last.sums);
	ATF_CHECK(!last.tagged);
	ATF_CHECK_EQ(200, last.len);
	frame[100]++;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK_EQ(LEM_RX_IPSUM, last.sums);
	frame[24]++;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK_EQ(0, last.sums & LEM_RX_IPSUM);
	memcpy(frame + 12, "\x81\x00\x0a\xbc\x88\xb5", 6);
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK(last.tagged);
	ATF_CHECK_EQ(0xabc, last.vlan);
	ATF_CHECK_EQ(196, last.len);
	ATF_CHECK_EQ(0, last.sums);
}

TEST_PROGRAM
