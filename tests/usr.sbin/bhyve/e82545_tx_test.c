/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The transmit ring: every kind of descriptor, what comes out on the network,
 * what is written back, and what hostile guests can not do.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <atf-c.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_host.h"
#include "e82545_packet.h"

#define	TEST(name, descr)						\
	ATF_TC(name);							\
	ATF_TC_HEAD(name, tc) { atf_tc_set_md_var(tc, "descr", descr); } \
	ATF_TC_BODY(name, tc)

#define	LAST	(E82545_TXD_EOP | E82545_TXD_IFCS | E82545_TXD_RS)
#define	DATA	(E82545_TXD_DEXT | E82545_TXD_DTYP_DATA)
#define	CONTEXT	(E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT)

static struct host *
up(uint32_t ntxd)
{
	struct host *h;

	h = host_create(HOST_RAM);
	host_up(h, ntxd, 64, 2048);
	host_wr(h, E82545_IMS, E82545_ICR_ALL);
	host_rd(h, E82545_ICR);
	return (h);
}

/* Fresh guest memory with these bytes. */
static uint64_t
put(struct host *h, const void *data, size_t len)
{
	uint64_t gpa;

	/* A gap, so that no two buffers are neighbours. */
	gpa = host_alloc(h, len + 1, 1);
	memcpy(host_mem(h, gpa, len), data, len);
	return (gpa);
}

static uint32_t
desc(struct host *h, uint64_t addr, uint32_t lower, uint32_t upper)
{
	union e82545_txd txd;

	txd.addr = addr;
	txd.lower = lower;
	txd.upper = upper;
	return (host_tx_desc(h, &txd));
}

static void
go(struct host *h)
{

	host_tx_go(h);
	host_run(h);
}

static void
check_sent(struct host *h, unsigned int n, const void *data, size_t len)
{
	const struct host_frame *f;

	ATF_REQUIRE_MSG(n < host_sent(h), "frame %u of %u", n, host_sent(h));
	f = host_sent_frame(h, n);
	ATF_REQUIRE_EQ_MSG(len, f->len, "frame %u: %zu bytes, not %zu", n,
	    f->len, len);
	ATF_REQUIRE_EQ_MSG(0, memcmp(data, f->data, len), "frame %u", n);
}

/* That the ring works is what a test of bad input ends with. */
static void
check_alive(struct host *h)
{
	uint8_t frame[100];
	uint32_t n;

	host_sent_clear(h);
	host_make_frame(frame, sizeof(frame), host_mac, 77);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	go(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK_EQ(1, host_sent(h));
	check_sent(h, 0, frame, sizeof(frame));
}

/*
 * Legacy descriptors and the ring.
 */

TEST(legacy, "One frame in one descriptor: contents, write-back, statistics")
{
	struct host *h = up(64);
	union e82545_txd before, after;
	uint8_t frame[100];
	uint32_t n;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	before = *host_txd(h, n);
	go(h);
	check_sent(h, 0, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_sent_frame(h, 0)->npieces);
	/* DD is written, and not a byte more. */
	after = *host_txd(h, n);
	ATF_CHECK_EQ(E82545_TXD_DD, after.legacy.status);
	after.legacy.status = before.legacy.status;
	ATF_CHECK_EQ(0, memcmp(&before, &after, sizeof(after)));
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDH));
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(E82545_ICR_TXDW | E82545_ICR_TXQE | E82545_ICR_TXD_LOW,
	    host_rd(h, E82545_ICR) & (E82545_ICR_TXDW | E82545_ICR_TXQE |
	    E82545_ICR_TXD_LOW));
	ATF_CHECK_EQ(1, host_rd(h, E82545_GPTC));
	ATF_CHECK_EQ(1, host_rd(h, E82545_TPT));
	ATF_CHECK_EQ(104, host_rd(h, E82545_GOTCL));
	ATF_CHECK_EQ(104, host_rd(h, E82545_TOTL));
	ATF_CHECK_EQ(1, host_rd(h, E82545_PTC127));
	ATF_CHECK_EQ(0, host_rd(h, E82545_MPTC));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_FRAME));
	ATF_CHECK_EQ(100, host_counter(h, E82545_C_TX_BYTE));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BATCH));
	host_destroy(h);
}

TEST(statistics, "Frames by size and by kind of address")
{
	static const struct {
		size_t		len;
		uint32_t	reg;
	} t[] = {
		{ 60, E82545_PTC64 }, { 61, E82545_PTC127 },
		{ 123, E82545_PTC127 }, { 124, E82545_PTC255 },
		{ 251, E82545_PTC255 }, { 252, E82545_PTC511 },
		{ 507, E82545_PTC511 }, { 508, E82545_PTC1023 },
		{ 1019, E82545_PTC1023 }, { 1020, E82545_PTC1522 },
		{ 1514, E82545_PTC1522 }, { 9014, E82545_PTC1522 },
	};
	static const uint8_t broadcast[6] =
	    { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t multicast[6] = { 0x01, 0, 0x5e, 0, 0, 1 };
	struct host *h = up(64);
	uint8_t frame[9014];
	unsigned int i;
	uint64_t bytes;

	bytes = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_make_frame(frame, t[i].len, host_mac, i);
		host_tx_frame(h, frame, t[i].len, 0);
		go(h);
		ATF_CHECK_EQ_MSG(1, host_rd(h, t[i].reg), "length %zu",
		    t[i].len);
		bytes += t[i].len + 4;
	}
	ATF_CHECK_EQ(bytes, host_rd(h, E82545_GOTCL));
	ATF_CHECK_EQ(0, host_rd(h, E82545_MPTC));
	host_make_frame(frame, 60, broadcast, 0);
	host_tx_frame(h, frame, 60, 0);
	host_make_frame(frame, 60, multicast, 0);
	host_tx_frame(h, frame, 60, 0);
	host_tx_frame(h, frame, 60, 0);
	go(h);
	ATF_CHECK_EQ(1, host_rd(h, E82545_BPTC));
	ATF_CHECK_EQ(2, host_rd(h, E82545_MPTC));
	ATF_CHECK_EQ(15, host_rd(h, E82545_GPTC));
	host_destroy(h);
}

TEST(report_status, "DD only where RS or RPS asks for it")
{
	struct host *h = up(64);
	uint8_t frame[60];
	uint64_t gpa;
	uint32_t a, b, c, d;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	gpa = put(h, frame, sizeof(frame));
	a = host_tx_legacy(h, gpa, 60, E82545_TXD_EOP | E82545_TXD_IFCS);
	go(h);
	ATF_CHECK(!host_tx_done(h, a));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & E82545_ICR_TXDW);
	b = host_tx_legacy(h, gpa, 60, E82545_TXD_EOP | E82545_TXD_IFCS |
	    E82545_TXD_RPS);
	c = host_tx_legacy(h, gpa, 30, E82545_TXD_RS);
	d = host_tx_legacy(h, gpa + 30, 30, E82545_TXD_EOP | E82545_TXD_IFCS);
	go(h);
	ATF_CHECK(host_tx_done(h, b));
	ATF_CHECK(host_tx_done(h, c));
	ATF_CHECK(!host_tx_done(h, d));
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
	ATF_CHECK_EQ(3, host_sent(h));
	host_destroy(h);
}

TEST(delay, "TXDW waits for TIDV only if all that report have IDE")
{
	struct host *h = up(64);
	uint8_t frame[60];

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_wr(h, E82545_TIDV, 100);
	host_tx_frame(h, frame, sizeof(frame), E82545_TXD_IDE);
	host_tx_frame(h, frame, sizeof(frame), E82545_TXD_IDE);
	go(h);
	ATF_CHECK_EQ(2, host_sent(h));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & E82545_ICR_TXDW);
	host_advance(h, 102400);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
	host_tx_frame(h, frame, sizeof(frame), E82545_TXD_IDE);
	host_tx_frame(h, frame, sizeof(frame), 0);
	go(h);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
	host_destroy(h);
}

TEST(low, "TXD_LOW when the ring comes down to LWTHRESH, TXQE when it is empty")
{
	struct host *h = up(512);
	uint8_t frame[60];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_wr(h, E82545_TXDCTL, 8u << 25);
	/* 330 descriptors; after a batch of 256, 74 are left: above 64. */
	for (i = 0; i < 330; i++)
		host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	ATF_CHECK(e82545_tx(h->dev));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) &
	    (E82545_ICR_TXD_LOW | E82545_ICR_TXQE));
	ATF_CHECK(!e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_ICR_TXD_LOW | E82545_ICR_TXQE,
	    host_rd(h, E82545_ICR) & (E82545_ICR_TXD_LOW | E82545_ICR_TXQE));
	/* 320: after a batch, 64 are left. */
	for (i = 0; i < 320; i++)
		host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	ATF_CHECK(e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_ICR_TXD_LOW, host_rd(h, E82545_ICR) &
	    (E82545_ICR_TXD_LOW | E82545_ICR_TXQE));
	/* Below it from the start: no crossing. */
	ATF_CHECK(!e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_ICR_TXQE, host_rd(h, E82545_ICR) &
	    (E82545_ICR_TXD_LOW | E82545_ICR_TXQE));
	host_destroy(h);
}

TEST(batch, "A batch is 256 frames, one flush and one interrupt")
{
	struct host *h = up(1024);
	uint8_t frame[64];
	unsigned int i, raised;

	for (i = 0; i < 600; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_tx_frame(h, frame, sizeof(frame), 0);
	}
	host_tx_go(h);
	raised = host_raised(h);
	for (i = 1; i <= 3; i++) {
		ATF_CHECK_EQ(i < 3, e82545_tx(h->dev));
		ATF_CHECK_EQ(i, h->nflush);
		ATF_CHECK_EQ(MIN(i * 256, 600), host_sent(h));
		ATF_CHECK_EQ(MIN(i * 256, 600), host_rd(h, E82545_TDH));
		ATF_CHECK_EQ(raised + i, host_raised(h));
		host_rd(h, E82545_ICR);
	}
	ATF_CHECK_EQ(3, host_counter(h, E82545_C_TX_BATCH));
	/* Nothing to do: nothing done. */
	ATF_CHECK(!e82545_tx(h->dev));
	ATF_CHECK_EQ(3, h->nflush);
	for (i = 0; i < 600; i++) {
		ATF_CHECK(host_tx_done(h, i));
		host_make_frame(frame, sizeof(frame), host_mac, i);
		check_sent(h, i, frame, sizeof(frame));
	}
	host_destroy(h);
}

TEST(wrap, "The ring goes round, and may have 65536 descriptors")
{
	struct host *h = up(8);
	uint8_t frame[64];
	unsigned int i;
	uint64_t ring, gpa;
	union e82545_txd *txd;

	for (i = 0; i < 50; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_tx_frame(h, frame, sizeof(frame), 0);
		if (i % 7 == 6)
			go(h);
	}
	go(h);
	ATF_CHECK_EQ(50, host_sent(h));
	for (i = 0; i < 50; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		check_sent(h, i, frame, sizeof(frame));
	}
	/* TDLEN's field ends below 1 MB: 65528. */
	host_sent_clear(h);
	ring = host_alloc(h, 1 << 20, 4096);
	host_wr(h, E82545_TDBAL, ring);
	host_wr(h, E82545_TDLEN, 0xfff80);
	host_wr(h, E82545_TDH, 65526);
	gpa = put(h, frame, sizeof(frame));
	for (i = 0; i < 4; i++) {
		txd = host_mem(h, ring + (65526 + i) % 65528 * 16, 16);
		txd->addr = gpa;
		txd->lower = LAST | sizeof(frame);
	}
	host_wr(h, E82545_TDT, 2);
	host_run(h);
	ATF_CHECK_EQ(4, host_sent(h));
	ATF_CHECK_EQ(2, host_rd(h, E82545_TDH));
	host_destroy(h);
}

TEST(gather, "A frame of many descriptors, uncopied; neighbours join")
{
	struct host *h = up(4096);
	uint8_t frame[E82545_MAXIOV * 10];
	unsigned int i, n;
	uint64_t gpa;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (n = 6; n <= E82545_MAXIOV; n++) {
		for (i = 0; i < n; i++)
			host_tx_legacy(h, put(h, frame + i * 10, 10), 10,
			    i == n - 1 ? LAST : 0);
		go(h);
		check_sent(h, 0, frame, n * 10);
		ATF_CHECK_EQ((int)n, host_sent_frame(h, 0)->npieces);
		host_sent_clear(h);
	}
	gpa = put(h, frame, sizeof(frame));
	for (i = 0; i < E82545_MAXIOV; i++)
		host_tx_legacy(h, gpa + i * 10, 10,
		    i == E82545_MAXIOV - 1 ? LAST : 0);
	go(h);
	check_sent(h, 0, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_sent_frame(h, 0)->npieces);
	host_destroy(h);
}

TEST(too_many_pieces, "65 pieces do not fit; the next frame does")
{
	struct host *h = up(512);
	uint8_t byte[2] = { 1, 2 };
	unsigned int i;

	for (i = 0; i < E82545_MAXIOV + 1; i++)
		host_tx_legacy(h, put(h, byte, 2), 2,
		    i == E82545_MAXIOV ? LAST : 0);
	go(h);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	ATF_CHECK(host_tx_done(h, E82545_MAXIOV));
	check_alive(h);
	host_destroy(h);
}

TEST(null, "Null and empty descriptors carry no data but report")
{
	struct host *h = up(64);
	uint8_t frame[64];
	uint32_t a, b;

	host_make_frame(frame, sizeof(frame), host_mac, 3);
	a = host_tx_legacy(h, 0, 100, E82545_TXD_RS);
	host_tx_legacy(h, put(h, frame, 40), 40, 0);
	b = host_tx_legacy(h, 0x1000, 0, E82545_TXD_RS);
	host_tx_legacy(h, put(h, frame + 40, 24), 24, LAST);
	go(h);
	check_sent(h, 0, frame, sizeof(frame));
	ATF_CHECK(host_tx_done(h, a));
	ATF_CHECK(host_tx_done(h, b));
	host_destroy(h);
}

TEST(padding, "TCTL.PSP pads to 60 bytes; without it, frames go as they are")
{
	struct host *h = up(64);
	uint8_t frame[64], padded[64];
	size_t len;

	for (len = 14; len <= 61; len++) {
		host_make_frame(frame, len, host_mac, len);
		memset(padded, 0, sizeof(padded));
		memcpy(padded, frame, len);
		host_tx_frame(h, frame, len, 0);
		go(h);
		check_sent(h, 0, padded, MAX(len, 60));
		ATF_CHECK_EQ(1, host_sent_frame(h, 0)->npieces);
		host_sent_clear(h);
		host_clear(h, E82545_TCTL, E82545_TCTL_PSP);
		host_tx_frame(h, frame, len, 0);
		go(h);
		check_sent(h, 0, frame, len);
		host_sent_clear(h);
		host_set(h, E82545_TCTL, E82545_TCTL_PSP);
	}
	host_destroy(h);
}

TEST(own_fcs, "Without IFCS the last four bytes are the guest's FCS")
{
	struct host *h = up(64);
	uint8_t frame[104];

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_tx_legacy(h, put(h, frame, 102), 102, 0);
	host_tx_legacy(h, put(h, frame + 102, 2), 2,
	    E82545_TXD_EOP | E82545_TXD_RS);
	go(h);
	check_sent(h, 0, frame, 100);
	host_destroy(h);
}

TEST(lengths, "The shortest and the longest frame, and one beyond")
{
	static const struct {
		size_t	len;
		bool	ok;
	} t[] = {
		{ 1, false }, { 13, false }, { 14, true }, { 1514, true },
		{ E82545_FRAME_MAX, true }, { E82545_FRAME_MAX + 1, false },
		{ 65535, false },
	};
	struct host *h = up(64);
	static uint8_t frame[65535];
	unsigned int bad, i;

	bad = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_make_frame(frame, MAX(t[i].len, 14), host_mac, i);
		host_tx_frame(h, frame, t[i].len, 0);
		go(h);
		ATF_CHECK_EQ_MSG(t[i].ok, host_sent(h), "length %zu",
		    t[i].len);
		bad += !t[i].ok;
		ATF_CHECK_EQ(bad, host_counter(h, E82545_C_TX_BAD_LEN));
		if (t[i].ok && t[i].len >= 60)
			check_sent(h, 0, frame, t[i].len);
		host_sent_clear(h);
	}
	check_alive(h);
	host_destroy(h);
}

TEST(jumbo, "A jumbo frame over many descriptors")
{
	struct host *h = up(64);
	uint8_t frame[E82545_FRAME_MAX];
	size_t n, off;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (off = 0; off < sizeof(frame); off += n) {
		n = MIN(2048, sizeof(frame) - off);
		host_tx_legacy(h, put(h, frame + off, n), n,
		    off + n == sizeof(frame) ? LAST : 0);
	}
	go(h);
	check_sent(h, 0, frame, sizeof(frame));
	ATF_CHECK_EQ(8, host_sent_frame(h, 0)->npieces);
	host_destroy(h);
}

TEST(partial, "A frame waits for its last descriptor, also over kicks")
{
	struct host *h = up(16);
	uint8_t frame[90];
	uint32_t a, b;
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 10; i++) {
		a = host_tx_legacy(h, put(h, frame, 30), 30, E82545_TXD_RS);
		go(h);
		ATF_CHECK_EQ(i, host_sent(h));
		ATF_CHECK(!host_tx_done(h, a));
		host_tx_legacy(h, put(h, frame + 30, 30), 30, 0);
		go(h);
		b = host_tx_legacy(h, put(h, frame + 60, 30), 30, LAST);
		go(h);
		check_sent(h, i, frame, sizeof(frame));
		ATF_CHECK(host_tx_done(h, a));
		ATF_CHECK(host_tx_done(h, b));
		host_txd(h, a)->legacy.status = 0;
	}
	ATF_CHECK_EQ(10, h->nflush);
	host_destroy(h);
}

TEST(no_eop, "A ring full of descriptors without EOP is given up")
{
	struct host *h = up(16);
	uint8_t bytes[20] = { 0 };
	unsigned int i;

	for (i = 0; i < 15; i++)
		host_tx_legacy(h, put(h, bytes, 20), 20, E82545_TXD_RS);
	go(h);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(15, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	/* And what follows, up to EOP, is of the same frame. */
	for (i = 0; i < 10; i++)
		host_tx_legacy(h, put(h, bytes, 20), 20, 0);
	host_tx_legacy(h, put(h, bytes, 20), 20, LAST);
	go(h);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	check_alive(h);
	host_destroy(h);
}

TEST(partial_reset, "A reset forgets that the rest of a frame is skipped")
{
	struct host *h = up(16);
	uint8_t bytes[20] = { 0 };
	unsigned int i;

	for (i = 0; i < 15; i++)
		host_tx_legacy(h, put(h, bytes, 20), 20, 0);
	go(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	e82545_reset(h->dev);
	host_up(h, 16, 64, 2048);
	check_alive(h);
	host_destroy(h);
}

TEST(partial_after, "A whole frame goes, the incomplete one behind it waits")
{
	struct host *h = up(16);
	uint8_t frame[90];
	uint32_t a, b, c;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	a = host_tx_frame(h, frame, sizeof(frame), 0);
	b = host_tx_legacy(h, put(h, frame, 30), 30, E82545_TXD_RS);
	go(h);
	ATF_CHECK_EQ(1, host_sent(h));
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDH));
	ATF_CHECK(host_tx_done(h, a));
	ATF_CHECK(!host_tx_done(h, b));
	c = host_tx_legacy(h, put(h, frame + 30, 60), 60, LAST);
	go(h);
	check_sent(h, 1, frame, sizeof(frame));
	ATF_CHECK(host_tx_done(h, b));
	ATF_CHECK(host_tx_done(h, c));
	host_destroy(h);
}

TEST(endless, "A frame of thousands of descriptors is skipped in batches")
{
	struct host *h = up(4096);
	uint8_t bytes[20] = { 0 };
	unsigned int i, n;
	uint64_t gpa;

	gpa = put(h, bytes, 20);
	for (i = 0; i < 4000; i++)
		host_tx_legacy(h, gpa, 1, i == 3999 ? LAST : E82545_TXD_RS);
	host_tx_go(h);
	for (n = 1; e82545_tx(h->dev); n++)
		ATF_REQUIRE(n < 100);
	ATF_CHECK(n > 2);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(4000, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	for (i = 0; i < 4000; i++)
		ATF_REQUIRE(host_tx_done(h, i));
	check_alive(h);
	host_destroy(h);
}

/*
 * Where frames go.
 */

TEST(states, "Transmitter off, paused, no link, no room")
{
	struct host *h = up(64);
	uint8_t frame[60];
	uint32_t n;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_clear(h, E82545_TCTL, E82545_TCTL_EN);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	ATF_CHECK(!e82545_tx(h->dev));
	ATF_CHECK(!host_tx_done(h, n));
	e82545_pause(h->dev);
	host_set(h, E82545_TCTL, E82545_TCTL_EN);
	ATF_CHECK(!e82545_tx(h->dev));
	ATF_CHECK(!host_tx_done(h, n));
	e82545_resume(h->dev);
	host_run(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK_EQ(1, host_sent(h));

	e82545_link(h->dev, false);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	go(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK_EQ(1, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_LINKDOWN));
	ATF_CHECK_EQ(1, host_rd(h, E82545_GPTC));
	e82545_link(h->dev, true);

	h->tx_room = 1;
	host_tx_frame(h, frame, sizeof(frame), 0);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	go(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK_EQ(2, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_NOROOM));
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_TX_FRAME));
	host_destroy(h);
}

/*
 * VLAN.
 */

TEST(vlan, "Tags are inserted with VLE and CTRL.VME, of type VET")
{
	struct host *h = up(64);
	uint8_t frame[100], want[104];
	uint64_t gpa;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	memcpy(want, frame, 12);
	memcpy(want + 16, frame + 12, 88);
	gpa = put(h, frame, sizeof(frame));
	/* VLE without VME, VME without VLE. */
	desc(h, gpa, LAST | E82545_TXD_VLE | 100, 0xa123u << 16);
	go(h);
	check_sent(h, 0, frame, 100);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	desc(h, gpa, LAST | 100, 0xa123u << 16);
	go(h);
	check_sent(h, 1, frame, 100);
	/* Legacy and data descriptors; the last one's tag is the one. */
	be16enc(want + 12, 0x8100);
	be16enc(want + 14, 0xa123);
	desc(h, gpa, E82545_TXD_VLE | 7, 0x7777u << 16);
	desc(h, gpa + 7, LAST | E82545_TXD_VLE | 93, 0xa123u << 16);
	go(h);
	check_sent(h, 2, want, 104);
	desc(h, gpa, DATA | 50, 0x7777u << 16);
	desc(h, gpa + 50, DATA | LAST | E82545_TXD_VLE | 50, 0xa123u << 16);
	go(h);
	check_sent(h, 3, want, 104);
	host_wr(h, E82545_VET, 0x9100);
	be16enc(want + 12, 0x9100);
	desc(h, gpa, LAST | E82545_TXD_VLE | 100, 0xa123u << 16);
	go(h);
	check_sent(h, 4, want, 104);
	/* With padding, to 60 with the tag. */
	memset(want + 36, 0, 24);
	desc(h, gpa, LAST | E82545_TXD_VLE | 32, 0xa123u << 16);
	go(h);
	check_sent(h, 5, want, 60);
	host_destroy(h);
}

/*
 * Checksums.
 */

TEST(legacy_checksum, "IC, CSO and CSS, in the frame and out of it")
{
	static const struct {
		uint8_t	css, cso;
		bool	ok;
	} t[] = {
		{ 14, 24, true }, { 0, 50, true }, { 99, 98, true },
		{ 33, 20, true }, { 100, 20, false }, { 20, 99, false },
		{ 255, 255, false }, { 20, 255, false },
	};
	struct host *h = up(64);
	uint8_t frame[100], want[100];
	unsigned int bad, i;
	uint64_t gpa;

	bad = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		memcpy(want, frame, sizeof(frame));
		if (t[i].ok)
			be16enc(want + t[i].cso, packet_sum(frame + t[i].css,
			    100 - t[i].css));
		bad += !t[i].ok;
		gpa = put(h, frame, sizeof(frame));
		/* In pieces that cut everything. */
		desc(h, gpa, 25 | 1 << 16, 2 << 8);
		desc(h, gpa + 25, 74, 0);
		desc(h, gpa + 99, LAST | E82545_TXD_IC | t[i].cso << 16 | 1,
		    t[i].css << 8);
		go(h);
		check_sent(h, i, want, sizeof(want));
		ATF_CHECK_EQ(bad, host_counter(h, E82545_C_TX_BAD_CTX));
		ATF_CHECK_EQ(0, memcmp(frame, host_mem(h, gpa, 100), 100));
	}
	host_destroy(h);
}

TEST(legacy_checksum_vlan, "A checksum before the place of the tag")
{
	struct host *h = up(64);
	uint8_t frame[100], want[104];

	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	memcpy(want, frame, 12);
	be16enc(want + 2, packet_sum(frame + 50, 50));
	be16enc(want + 12, 0x8100);
	be16enc(want + 14, 0x0042);
	memcpy(want + 16, frame + 12, 88);
	desc(h, put(h, frame, 100), LAST | E82545_TXD_IC | E82545_TXD_VLE |
	    2 << 16 | 100, 50 << 8 | 0x0042 << 16);
	go(h);
	check_sent(h, 0, want, sizeof(want));
	host_destroy(h);
}

/* A context descriptor for a packet, for TSO if mss is not 0. */
static uint32_t
context(struct host *h, const struct packet *p, uint16_t mss, uint32_t cmd)
{
	union e82545_txd txd;
	size_t l3 = packet_l3(p), l4 = packet_l4(p);

	memset(&txd, 0, sizeof(txd));
	txd.context.ipcss = l3;
	txd.context.ipcso = l3 + 10;
	txd.context.ipcse = l4 - 1;
	txd.context.tucss = l4;
	txd.context.tucso = l4 + (p->udp ? 6 : 16);
	txd.context.lower = CONTEXT | cmd | (mss != 0 ? p->paylen : 0) |
	    (p->udp ? 0 : E82545_TXD_TUCMD_TCP) |
	    (p->v6 ? 0 : E82545_TXD_TUCMD_IP) |
	    (mss != 0 ? E82545_TXD_TUCMD_TSE : 0);
	txd.context.hdrlen = mss != 0 ? packet_hdrlen(p) : 0;
	txd.context.mss = mss;
	return (host_tx_desc(h, &txd));
}

/* A packet as data descriptors, cut after `first' bytes and then each
   `step'. */
static uint32_t
data(struct host *h, const uint8_t *frame, size_t len, size_t first,
    size_t step, uint32_t flags, uint8_t popts, uint16_t tag)
{
	size_t n, off;
	uint32_t d;

	d = 0;
	for (off = 0; off < len; off += n) {
		n = off == 0 ? first : step;
		if (n > len - off)
			n = len - off;
		d = desc(h, put(h, frame + off, n), DATA | n | flags |
		    (off + n == len ? LAST : 0),
		    popts << 8 | (uint32_t)tag << 16);
	}
	return (d);
}

static uint8_t
popts(const struct packet *p)
{

	return (E82545_TXD_POPTS_TXSM | (p->v6 ? 0 : E82545_TXD_POPTS_IXSM));
}

static void
fill(uint8_t *buf, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = packet_random(&seed);
}

TEST(checksum, "IP, TCP and UDP checksums, IPv4 and IPv6, however cut")
{
	struct host *h = up(4096);
	uint8_t frame[1600], payload[1400], want[1600];
	struct packet p;
	uint32_t seed = 11;
	size_t first, len, step;
	unsigned int i;

	fill(payload, sizeof(payload), 1);
	for (i = 0; i < 400; i++) {
		memset(&p, 0, sizeof(p));
		p.v6 = i & 1;
		p.udp = i & 2;
		p.vlan = i & 4;
		p.ipopts = i / 8 % 11;
		p.tcpopts = i / 16 % 11;
		p.flags = PACKET_ACK;
		p.payload = payload;
		p.paylen = packet_random(&seed) % sizeof(payload);
		len = packet_build(&p, want);
		memcpy(frame, want, len);
		packet_prepare(&p, frame, true);
		first = 1 + packet_random(&seed) % len;
		step = 30 + packet_random(&seed) % 1000;
		context(h, &p, 0, 0);
		data(h, frame, len, first, step, 0, popts(&p), 0);
		go(h);
		if (len < 60) {
			memset(want + len, 0, 60 - len);
			len = 60;
		}
		check_sent(h, i, want, len);
	}
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_BAD_CTX));
	host_destroy(h);
}

TEST(checksum_some, "Each sum alone; a context serves many frames")
{
	struct host *h = up(64);
	uint8_t frame[200], payload[100], want[200];
	struct packet p = { .payload = payload, .paylen = 100 };
	size_t len;

	fill(payload, sizeof(payload), 2);
	len = packet_build(&p, frame);
	context(h, &p, 0, 0);
	/* Nothing asked for. */
	packet_prepare(&p, frame, true);
	data(h, frame, len, 40, 100, 0, 0, 0);
	go(h);
	check_sent(h, 0, frame, len);
	packet_build(&p, want);
	memcpy(want + 50, frame + 50, 2);
	data(h, frame, len, 40, 100, 0, E82545_TXD_POPTS_IXSM, 0);
	go(h);
	check_sent(h, 1, want, len);
	packet_build(&p, want);
	memcpy(want + 24, frame + 24, 2);
	data(h, frame, len, 40, 100, 0, E82545_TXD_POPTS_TXSM, 0);
	go(h);
	check_sent(h, 2, want, len);
	/* POPTS counts in the first descriptor only. */
	desc(h, put(h, frame, 50), DATA | 50, 0);
	desc(h, put(h, frame + 50, len - 50), DATA | LAST | (len - 50),
	    popts(&p) << 8);
	go(h);
	check_sent(h, 3, frame, len);
	host_destroy(h);
}

TEST(checksum_vlan, "Offsets are those before a tag is inserted")
{
	struct host *h = up(64);
	uint8_t frame[200], payload[100], want[204];
	struct packet p = { .payload = payload, .paylen = 100 };
	size_t len;

	fill(payload, sizeof(payload), 3);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	p.vlan = true;
	p.tag = 0x0fff;
	packet_build(&p, want);
	p.vlan = false;
	len = packet_build(&p, frame);
	packet_prepare(&p, frame, true);
	context(h, &p, 0, 0);
	data(h, frame, len, 13, 33, E82545_TXD_VLE, popts(&p), 0x0fff);
	go(h);
	check_sent(h, 0, want, len + 4);
	host_destroy(h);
}

TEST(checksum_zero, "A UDP checksum of 0 is sent as ffff, a TCP one as 0")
{
	struct host *h = up(64);
	uint8_t frame[100], payload[2] = { 0, 0 };
	struct packet p = { .udp = true, .payload = payload, .paylen = 2 };
	size_t len;
	uint16_t sum;

	len = packet_build(&p, frame);
	sum = be16dec(frame + 40);
	be16enc(payload, sum);
	packet_build(&p, frame);
	ATF_REQUIRE_EQ(0xffff, be16dec(frame + 40));
	packet_prepare(&p, frame, true);
	context(h, &p, 0, 0);
	data(h, frame, len, 100, 100, 0, popts(&p), 0);
	go(h);
	ATF_CHECK_EQ(0xffff, be16dec(host_sent_frame(h, 0)->data + 40));
	context(h, &p, 0, E82545_TXD_TUCMD_TCP);
	data(h, frame, len, 100, 100, 0, popts(&p), 0);
	go(h);
	ATF_CHECK_EQ(0, be16dec(host_sent_frame(h, 1)->data + 40));
	host_destroy(h);
}

TEST(checksum_bad, "Contexts that reach outside the frame are counted")
{
	static const struct {
		uint32_t	ip, tu;		/* css, cso << 8, cse << 16 */
		unsigned int	bad;
	} t[] = {
		{ 14 | 24 << 8 | 33u << 16, 34 | 40 << 8, 0 },
		{ 100 | 24 << 8, 34 | 40 << 8, 1 },
		{ 14 | 99 << 8, 34 | 40 << 8, 1 },
		{ 14 | 24 << 8 | 100u << 16, 34 | 40 << 8, 1 },
		{ 14 | 24 << 8 | 13u << 16, 34 | 40 << 8, 1 },
		{ 14 | 24 << 8 | 33u << 16, 200 | 40 << 8, 1 },
		{ 14 | 24 << 8 | 33u << 16, 34 | 255 << 8, 1 },
		{ 0xffffffff, 0xffffffff, 2 },
	};
	struct host *h = up(64);
	uint8_t frame[100];
	unsigned int bad, i;
	uint64_t gpa;

	bad = 0;
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	gpa = put(h, frame, sizeof(frame));
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		desc(h, (uint64_t)t[i].tu << 32 | t[i].ip, CONTEXT, 0);
		desc(h, gpa, DATA | LAST | 100, 3 << 8);
		go(h);
		bad += t[i].bad;
		ATF_CHECK_EQ(i + 1, host_sent(h));
		ATF_CHECK_EQ_MSG(bad, host_counter(h, E82545_C_TX_BAD_CTX),
		    "case %u", i);
	}
	check_sent(h, i - 1, frame, sizeof(frame));
	host_destroy(h);
}

TEST(context_report, "A context descriptor reports too")
{
	struct host *h = up(64);
	struct packet p = { .udp = true };
	uint32_t n;

	n = context(h, &p, 0, E82545_TXD_RS);
	go(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDH));
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
	ATF_CHECK_EQ(0, h->nflush);
	host_destroy(h);
}

TEST(context_inside, "A context descriptor in the middle of a frame")
{
	struct host *h = up(64);
	struct packet p = { .udp = true };
	uint8_t frame[100];
	uint32_t n;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	desc(h, put(h, frame, 40), DATA | 40, 0);
	n = context(h, &p, 0, E82545_TXD_RS);
	desc(h, put(h, frame + 40, 60), DATA | LAST | 60, 0);
	go(h);
	check_sent(h, 0, frame, sizeof(frame));
	ATF_CHECK(host_tx_done(h, n));
	check_alive(h);
	host_destroy(h);
}

/*
 * TSO.
 */

/* What segment `i' should be; returns its length, 0 beyond the last. */
static size_t
segment(const struct packet *p, unsigned int i, size_t mss, uint8_t *frame)
{
	struct packet seg = *p;
	size_t len, off;

	off = i * mss;
	if (off >= p->paylen && !(i == 0 && p->paylen == 0))
		return (0);
	seg.payload = p->payload + off;
	seg.paylen = MIN(mss, p->paylen - off);
	seg.id = p->id + i;
	seg.seq = p->seq + off;
	if (off + seg.paylen < p->paylen)
		seg.flags &= ~(PACKET_FIN | PACKET_PSH);
	len = packet_build(&seg, frame);
	if (len < 60) {
		memset(frame + len, 0, 60 - len);
		len = 60;
	}
	return (len);
}

static void
check_tso(struct host *h, const struct packet *p, size_t mss)
{
	uint8_t want[E82545_FRAME_MAX];
	unsigned int i;
	size_t len;

	for (i = 0; (len = segment(p, i, mss, want)) != 0; i++)
		check_sent(h, i, want, len);
	ATF_REQUIRE_EQ(i, host_sent(h));
}

static uint8_t big[PACKET_HDR_MAX + 65536], bulk[65536];

/* Prepare the packet for TSO in `big'. */
static size_t
prepare_tso(const struct packet *p)
{
	struct packet header = *p;
	size_t hdrlen;

	/* The header as of an empty packet, so that 64 KB fit behind it. */
	header.paylen = 0;
	hdrlen = packet_build(&header, big);
	packet_prepare(&header, big, false);
	if (p->paylen > 0)
		memcpy(big + hdrlen, p->payload, p->paylen);
	return (hdrlen + p->paylen);
}

TEST(tso, "TCP and UDP over IPv4 and IPv6, every cut, against built segments")
{
	static const size_t msses[] = { 1, 7, 536, 1448, 1460, 8960, 16000 };
	static const size_t paylens[] = { 0, 1, 100, 1460, 1461, 2920, 9001 };
	struct host *h = up(4096);
	struct packet p;
	uint32_t brk, n, seed = 12;
	size_t hdrlen, first, len, mss;
	unsigned int i, count;

	fill(bulk, sizeof(bulk), 4);
	brk = h->brk;
	count = 0;
	for (i = 0; i < 8 * 7 * 7; i++) {
		h->brk = brk;
		memset(&p, 0, sizeof(p));
		p.v6 = i & 1;
		p.udp = i & 2;
		p.vlan = i & 4;
		mss = msses[i / 8 % 7];
		p.payload = bulk;
		p.paylen = paylens[i / 56];
		if (p.paylen / mss > 2000)
			continue;
		p.ipopts = i % 11;
		p.tcpopts = i % 7;
		p.id = 0xfffe;
		p.seq = 0xfffffff0;
		p.flags = PACKET_ACK | PACKET_PSH | PACKET_FIN;
		hdrlen = packet_hdrlen(&p);
		len = prepare_tso(&p);
		context(h, &p, mss, 0);
		first = i % 3 == 0 ? hdrlen : 1 + packet_random(&seed) % len;
		n = data(h, big, len, first, 100 + packet_random(&seed) % 4000,
		    E82545_TXD_TSE, popts(&p), 0);
		go(h);
		ATF_CHECK(host_tx_done(h, n));
		check_tso(h, &p, mss);
		host_sent_clear(h);
		count++;
		ATF_CHECK_EQ(count, host_counter(h, E82545_C_TX_TSO));
	}
	ATF_CHECK_EQ(count, host_rd(h, E82545_TSCTC));
	ATF_CHECK_EQ(0, host_rd(h, E82545_TSCTFC));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_BAD_CTX));
	host_destroy(h);
}

TEST(tso_payload_in_place, "Payload is sent from where the guest has it")
{
	struct host *h = up(64);
	struct packet p = { .payload = bulk, .paylen = 4344 };
	size_t len;
	unsigned int i;

	fill(bulk, sizeof(bulk), 5);
	len = prepare_tso(&p);
	context(h, &p, 1448, 0);
	data(h, big, len, 54, 4344, E82545_TXD_TSE, popts(&p), 0);
	go(h);
	check_tso(h, &p, 1448);
	for (i = 0; i < 3; i++)
		ATF_CHECK_EQ(2, host_sent_frame(h, i)->npieces);
	ATF_CHECK_EQ(1, h->nflush);
	host_destroy(h);
}

TEST(tso_vlan, "Every segment gets the tag of the first descriptor")
{
	struct host *h = up(64);
	struct packet p = { .payload = bulk, .paylen = 9000 };
	size_t len;

	fill(bulk, sizeof(bulk), 6);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	len = prepare_tso(&p);
	context(h, &p, 1000, 0);
	desc(h, put(h, big, 54), DATA | E82545_TXD_TSE | E82545_TXD_VLE | 54,
	    popts(&p) << 8 | 0x6abcu << 16);
	desc(h, put(h, big + 54, len - 54), DATA | E82545_TXD_TSE | LAST |
	    (len - 54), 0);
	go(h);
	p.vlan = true;
	p.tag = 0x6abc;
	check_tso(h, &p, 1000);
	host_destroy(h);
}

TEST(tso_batches, "A packet of more segments than a batch, with others about")
{
	struct host *h = up(4096);
	struct packet p = { .payload = bulk, .paylen = 60000 };
	uint8_t frame[64], want[200];
	size_t len;
	uint32_t last, n;
	unsigned int calls, i;

	fill(bulk, sizeof(bulk), 7);
	len = prepare_tso(&p);
	host_make_frame(frame, sizeof(frame), host_mac, 9);
	for (i = 0; i < 10; i++)
		host_tx_frame(h, frame, sizeof(frame), 0);
	context(h, &p, 60, E82545_TXD_RS);
	n = data(h, big, len, 54, 4000, E82545_TXD_TSE | E82545_TXD_RS,
	    popts(&p), 0);
	last = host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	/* 10 + 1000 + 1 frames. */
	for (calls = 1; e82545_tx(h->dev); calls++) {
		ATF_REQUIRE(calls < 10);
		ATF_CHECK_EQ(calls, h->nflush);
		ATF_CHECK_EQ(calls * 256, host_sent(h));
		/* Not a descriptor of it is done before all of it is. */
		ATF_CHECK_EQ(11, host_rd(h, E82545_TDH));
		for (i = 11; i <= n; i++)
			ATF_CHECK(!host_tx_done(h, i));
	}
	ATF_CHECK_EQ(4, calls);
	ATF_CHECK_EQ(1011, host_sent(h));
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK(host_tx_done(h, last));
	for (i = 0; i < 1000; i++) {
		len = segment(&p, i, 60, want);
		check_sent(h, 10 + i, want, len);
	}
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_TSO));
	ATF_CHECK_EQ(4, host_counter(h, E82545_C_TX_BATCH));
	host_destroy(h);
}

TEST(tso_reset, "A reset between the batches of a packet forgets it")
{
	struct host *h = up(64);
	struct packet p = { .payload = bulk, .paylen = 30000 };
	size_t len;

	fill(bulk, sizeof(bulk), 8);
	len = prepare_tso(&p);
	context(h, &p, 60, 0);
	data(h, big, len, 54, 40000, E82545_TXD_TSE, popts(&p), 0);
	host_tx_go(h);
	ATF_CHECK(e82545_tx(h->dev));
	e82545_reset(h->dev);
	ATF_CHECK(!e82545_tx(h->dev));
	host_up(h, 64, 64, 2048);
	host_sent_clear(h);
	p.paylen = 3000;
	len = prepare_tso(&p);
	context(h, &p, 60, 0);
	data(h, big, len, 54, 40000, E82545_TXD_TSE, popts(&p), 0);
	go(h);
	check_tso(h, &p, 60);
	host_destroy(h);
}

TEST(tso_changed, "A guest that shrinks a packet between its batches")
{
	struct host *h = up(64);
	struct packet p = { .payload = bulk, .paylen = 30000 };
	size_t len;
	uint32_t n;

	fill(bulk, sizeof(bulk), 8);
	len = prepare_tso(&p);
	context(h, &p, 60, 0);
	n = data(h, big, len, 54, 40000, E82545_TXD_TSE, popts(&p), 0);
	host_tx_go(h);
	ATF_CHECK(e82545_tx(h->dev));
	host_txd(h, n)->lower -= 29990;
	host_run(h);
	/* A segment without payload ends it. */
	ATF_CHECK_EQ(257, host_sent(h));
	ATF_CHECK_EQ(60, host_sent_frame(h, 256)->len);
	ATF_CHECK(host_tx_done(h, n));
	check_alive(h);
	host_destroy(h);
}

TEST(tso_contexts, "The contexts for TSO and for other frames are two")
{
	struct host *h = up(64);
	struct packet p = { .payload = bulk, .paylen = 3000 };
	struct packet u = { .v6 = true, .udp = true, .payload = bulk,
	    .paylen = 100 };
	uint8_t frame[200], want[200];
	size_t len, ulen;

	fill(bulk, sizeof(bulk), 9);
	ulen = packet_build(&u, want);
	memcpy(frame, want, ulen);
	packet_prepare(&u, frame, true);
	context(h, &p, 1000, 0);
	context(h, &u, 0, 0);
	len = prepare_tso(&p);
	data(h, big, len, 54, 40000, E82545_TXD_TSE, popts(&p), 0);
	go(h);
	check_tso(h, &p, 1000);
	data(h, frame, ulen, 100, 100, 0, popts(&u), 0);
	go(h);
	check_sent(h, 3, want, ulen);
	host_destroy(h);
}

TEST(tso_bad, "TSO contexts that cannot be are counted, the packet dropped")
{
	static const struct {
		uint16_t	mss;
		uint8_t		hdrlen, ipcss, tucss;
		size_t		len;
		enum e82545_counter count;
	} t[] = {
		{ 0, 54, 14, 34, 1000, E82545_C_TX_BAD_CTX },
		{ 500, 0, 14, 34, 1000, E82545_C_TX_BAD_CTX },
		{ 500, 53, 14, 34, 1000, E82545_C_TX_BAD_CTX },
		{ 500, 54, 35, 34, 1000, E82545_C_TX_BAD_CTX },
		{ 500, 54, 14, 35, 1000, E82545_C_TX_BAD_CTX },
		{ 500, 54, 255, 255, 1000, E82545_C_TX_BAD_CTX },
		{ 500, 255, 14, 34, 254, E82545_C_TX_BAD_CTX },
		{ 500, 54, 14, 34, 53, E82545_C_TX_BAD_CTX },
		{ E82545_FRAME_MAX - 53, 54, 14, 34, 40000,
		    E82545_C_TX_BAD_LEN },
		{ 65535, 54, 14, 34, 65535, E82545_C_TX_BAD_LEN },
	};
	struct host *h = up(64);
	union e82545_txd txd;
	unsigned int i;
	uint64_t gpa;
	uint64_t before;

	gpa = host_alloc(h, 65536, 16);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		memset(&txd, 0, sizeof(txd));
		txd.context.ipcss = t[i].ipcss;
		txd.context.tucss = t[i].tucss;
		txd.context.lower = CONTEXT | E82545_TXD_TUCMD_TCP |
		    E82545_TXD_TUCMD_IP | E82545_TXD_TUCMD_TSE |
		    (t[i].len - 54);
		txd.context.hdrlen = t[i].hdrlen;
		txd.context.mss = t[i].mss;
		before = host_counter(h, t[i].count);
		host_tx_desc(h, &txd);
		desc(h, gpa, DATA | LAST | E82545_TXD_TSE | t[i].len, 0);
		go(h);
		ATF_CHECK_EQ_MSG(before + 1, host_counter(h, t[i].count),
		    "case %u", i);
		ATF_CHECK_EQ_MSG(0, host_sent(h), "case %u", i);
	}
	check_alive(h);
	host_destroy(h);
}

TEST(tso_largest, "The longest header, the largest segment, a megabyte")
{
	struct host *h = up(64);
	union e82545_txd txd;
	uint64_t gpa;
	unsigned int i;

	gpa = host_alloc(h, 2 << 20, 16);
	memset(&txd, 0, sizeof(txd));
	txd.context.ipcss = 14;
	txd.context.tucss = 34;
	txd.context.lower = CONTEXT | E82545_TXD_TUCMD_TCP |
	    E82545_TXD_TUCMD_IP | E82545_TXD_TUCMD_TSE | E82545_TXD_LEN;
	txd.context.hdrlen = 255;
	txd.context.mss = E82545_FRAME_MAX - 255;
	host_tx_desc(h, &txd);
	desc(h, gpa, DATA | E82545_TXD_TSE | 255, 0);
	desc(h, gpa + 300, DATA | LAST | E82545_TXD_TSE | E82545_TXD_LEN, 0);
	go(h);
	ATF_CHECK_EQ(howmany(E82545_TXD_LEN, E82545_FRAME_MAX - 255),
	    host_sent(h));
	for (i = 0; i + 1 < host_sent(h); i++)
		ATF_CHECK_EQ(E82545_FRAME_MAX, host_sent_frame(h, i)->len);
	ATF_CHECK_EQ(0, host_rd(h, E82545_TSCTFC));
	/* A byte more than PAYLEN can tell. */
	host_sent_clear(h);
	desc(h, gpa, DATA | E82545_TXD_TSE | 256, 0);
	desc(h, gpa + 300, DATA | LAST | E82545_TXD_TSE | E82545_TXD_LEN, 0);
	go(h);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	/* PAYLEN that is not what comes. */
	desc(h, gpa, DATA | LAST | E82545_TXD_TSE | 1000, 0);
	go(h);
	ATF_CHECK_EQ(1, host_sent(h));
	ATF_CHECK_EQ(1, host_rd(h, E82545_TSCTFC));
	host_destroy(h);
}

TEST(tso_pieces, "A segment of too many pieces is dropped, the others go")
{
	struct host *h = up(512);
	struct packet p = { .payload = bulk, .paylen = 1000 };
	size_t len;

	fill(bulk, sizeof(bulk), 10);
	len = prepare_tso(&p);
	context(h, &p, 900, 0);
	data(h, big, len, 54, 5, E82545_TXD_TSE, popts(&p), 0);
	go(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	ATF_CHECK_EQ(1, host_sent(h));
	check_alive(h);
	host_destroy(h);
}

/*
 * Loopback.
 */

TEST(loopback, "RCTL.LBM and the PHY send frames back, the link up or down")
{
	struct host *h = up(64);
	uint8_t buf[2048], frame[100];
	unsigned int i;

	host_make_frame(frame, sizeof(frame), host_mac, 5);
	for (i = 0; i < 3; i++) {
		if (i == 0)
			host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
		else if (i == 1) {
			host_clear(h, E82545_RCTL, E82545_RCTL_LBM);
			host_wr(h, E82545_MDIC, E82545_MDIC_OP_WRITE |
			    1 << 21 | 0x4140);
		} else
			e82545_link(h->dev, false);
		host_tx_frame(h, frame, sizeof(frame), 0);
		go(h);
		ATF_CHECK_EQ(0, host_sent(h));
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_LOOPBACK));
		ATF_REQUIRE_EQ(100, host_rx_take(h, buf, sizeof(buf), NULL));
		ATF_CHECK_EQ(0, memcmp(frame, buf, 100));
		ATF_CHECK_EQ(i + 1, host_rd(h, E82545_GPTC) + i);
	}
	e82545_link(h->dev, true);
	host_wr(h, E82545_MDIC, E82545_MDIC_OP_WRITE | 1 << 21 | 0x1140);
	check_alive(h);
	host_destroy(h);
}

TEST(loopback_many, "64 frames in one kick all come back; floods are bounded")
{
	struct host *h = up(1024);
	uint8_t buf[2048], frame[1024];
	unsigned int i, back;

	host_set(h, E82545_RCTL, E82545_RCTL_LBM_MAC);
	for (i = 0; i < 63; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		host_tx_frame(h, frame, sizeof(frame), 0);
	}
	go(h);
	for (i = 0; i < 63; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		ATF_REQUIRE_EQ(1024, host_rx_take(h, buf, sizeof(buf), NULL));
		ATF_CHECK_EQ(0, memcmp(frame, buf, 1024));
	}
	/* Nobody takes them now. */
	for (i = 0; i < 900; i++)
		host_tx_frame(h, frame, sizeof(frame), 0);
	go(h);
	ATF_CHECK_EQ(900 + 63, host_counter(h, E82545_C_LOOPBACK) +
	    host_counter(h, E82545_C_TX_NOROOM));
	ATF_CHECK(host_counter(h, E82545_C_TX_NOROOM) > 0);
	for (back = 0;; back++) {
		host_rx_post(h);
		host_run(h);
		if (host_rx_take(h, buf, sizeof(buf), NULL) == -1)
			break;
	}
	ATF_CHECK_EQ(host_counter(h, E82545_C_LOOPBACK), back + 63);
	host_destroy(h);
}

/*
 * Hostile guests.
 */

TEST(bad_ring, "Rings that cannot be are counted and left alone")
{
	static const struct {
		uint64_t	base;
		uint32_t	len, head, tail;
		unsigned int	bad;
	} t[] = {
		{ 0x20000, 1024, 0, 64, 1 },		/* TDT == size */
		{ 0x20000, 1024, 0, 65535, 1 },
		{ 0x20000, 1024, 64, 1, 1 },
		{ 0x20000, 1024, 65535, 65534, 1 },
		{ 0x20000, 1024, 65535, 65535, 0 },	/* "empty" */
		{ 0x20000, 0, 0, 1, 1 },
		{ 0x20000, 0, 0, 0, 0 },
		{ HOST_RAM, 1024, 0, 1, 1 },
		{ HOST_RAM - 1008, 1024, 0, 1, 1 },
		{ 0xfffffffffffffff0, 1024, 0, 1, 1 },
		{ 0xfffffffffffffc00, 1024, 0, 1, 1 },
		{ HOST_RAM - 0x10000, 0xfff80, 0, 1, 1 },
	};
	struct host *h = up(64);
	unsigned int bad, i;

	bad = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_wr(h, E82545_TDBAL, t[i].base);
		host_wr(h, E82545_TDBAH, t[i].base >> 32);
		host_wr(h, E82545_TDLEN, t[i].len);
		host_wr(h, E82545_TDH, t[i].head);
		host_wr(h, E82545_TDT, t[i].tail);
		ATF_CHECK(!e82545_tx(h->dev));
		bad += t[i].bad;
		ATF_CHECK_EQ_MSG(bad, host_counter(h, E82545_C_TX_BAD_RING),
		    "case %u", i);
		ATF_CHECK_EQ(t[i].head, host_rd(h, E82545_TDH));
	}
	ATF_CHECK_EQ(0, h->nflush);
	host_up(h, 64, 64, 2048);
	check_alive(h);
	host_destroy(h);
}

TEST(bad_address, "Buffers outside of guest memory")
{
	static const struct {
		uint64_t	addr;
		uint16_t	len;
		bool		ok;
	} t[] = {
		{ HOST_RAM - 100, 100, true },
		{ HOST_RAM - 99, 100, false },
		{ HOST_RAM, 100, false },
		{ 0xffffffffffffffff, 100, false },
		{ 0xffffffffffffff9c, 100, false },
		{ 0x8000000000000000, 65535, false },
		{ 0x100000000, 100, false },
	};
	struct host *h = up(64);
	unsigned int bad, i;
	uint32_t n;

	bad = 0;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		host_sent_clear(h);
		/* As the only, the first and the last piece of a frame. */
		n = host_tx_legacy(h, t[i].addr, t[i].len, LAST);
		host_tx_legacy(h, t[i].addr, t[i].len, 0);
		host_tx_legacy(h, 0x1000, 100, LAST);
		host_tx_legacy(h, 0x1000, 100, 0);
		host_tx_legacy(h, t[i].addr, t[i].len, LAST);
		go(h);
		ATF_CHECK(host_tx_done(h, n));
		bad += t[i].ok ? 0 : 3;
		ATF_CHECK_EQ_MSG(bad, host_counter(h, E82545_C_TX_BAD_ADDR),
		    "case %u", i);
		ATF_CHECK_EQ(t[i].ok ? 3 : 0, host_sent(h));
	}
	check_alive(h);
	host_destroy(h);
}

TEST(bad_descriptor, "Unknown types, and legacy and data descriptors mixed")
{
	struct host *h = up(64);
	unsigned int bad, dtyp;
	uint32_t n;

	bad = 0;
	for (dtyp = 2; dtyp < 16; dtyp++) {
		n = desc(h, 0x1000, E82545_TXD_DEXT | dtyp << 20 | LAST | 100,
		    0);
		go(h);
		ATF_CHECK(host_tx_done(h, n));
		ATF_CHECK_EQ(++bad, host_counter(h, E82545_C_TX_BAD_DESC));
		/* In the middle of a frame. */
		desc(h, 0x1000, DATA | 100, 0);
		desc(h, 0x1000, E82545_TXD_DEXT | dtyp << 20 | 100, 0);
		desc(h, 0x1000, DATA | LAST | 100, 0);
		go(h);
		ATF_CHECK_EQ(++bad, host_counter(h, E82545_C_TX_BAD_DESC));
	}
	desc(h, 0x1000, DATA | 100, 0);
	desc(h, 0x1000, LAST | 100, 0);
	desc(h, 0x1000, 100, 0);
	desc(h, 0x1000, DATA | LAST | 100, 0);
	go(h);
	ATF_CHECK_EQ(bad + 2, host_counter(h, E82545_C_TX_BAD_DESC));
	ATF_CHECK_EQ(0, host_sent(h));
	check_alive(h);
	host_destroy(h);
}

/* Descriptors of any kind, with a liking for what makes sense. */
static void
random_desc(struct host *h, uint32_t i, uint32_t *seed)
{
	union e82545_txd *txd = host_txd(h, i);
	uint32_t r = packet_random(seed);

	txd->addr = packet_random(seed) % (HOST_RAM + 4096);
	if (r % 64 == 0)
		txd->addr |= (uint64_t)packet_random(seed) << 32;
	txd->lower = packet_random(seed);
	txd->upper = packet_random(seed);
	switch (r / 64 % 8) {
	case 0:
		break;
	case 1:
		txd->lower = CONTEXT | (txd->lower & 0x0f0fffff);
		txd->context.hdrlen = 54 + r % 40;
		break;
	case 2:
		txd->lower = CONTEXT | (txd->lower & 0x0f0fffff);
		txd->context.ipcss = 14;
		txd->context.tucss = 34;
		txd->context.hdrlen = 54 + r % 8;
		txd->context.mss |= 64;
		break;
	case 3:
	case 4:
		txd->lower = (txd->lower & 0xdf0007ff) | E82545_TXD_EOP;
		break;
	default:
		txd->lower = DATA | (txd->lower & 0xc7001fff) |
		    ((r & 0x10000) != 0 ? E82545_TXD_TSE : 0);
		break;
	}
}

TEST(fuzz, "Rings of random descriptors never stop or break the model")
{
	static const uint32_t regs[] = {
		E82545_TDH, E82545_TDLEN, E82545_TDBAL, E82545_CTRL,
		E82545_TCTL, E82545_RCTL, E82545_VET, E82545_TXDCTL
	};
	struct host *h = up(512);
	uint32_t i, reg, seed = 0x82545;
	unsigned int calls, round;

	h->tx_discard = true;
	for (round = 0; round < 300; round++) {
		for (i = 0; i < 512; i++)
			random_desc(h, i, &seed);
		host_wr(h, E82545_TDT, packet_random(&seed) % 520);
		for (calls = 0; calls < 40 && e82545_tx(h->dev); calls++)
			random_desc(h, packet_random(&seed) % 512, &seed);
		if (round % 4 == 0) {
			reg = regs[packet_random(&seed) % 8];
			host_wr(h, reg, packet_random(&seed) &
			    ~(E82545_CTRL_RST | E82545_CTRL_PHY_RST));
		}
		if (round % 16 == 0) {
			e82545_reset(h->dev);
			h->brk = 0x10000;
			host_up(h, 512, 64, 2048);
			host_set(h, E82545_CTRL, E82545_CTRL_VME);
		}
	}
	/* It was not all refused. */
	ATF_CHECK(host_counter(h, E82545_C_TX_FRAME) > 1000);
	ATF_CHECK(host_counter(h, E82545_C_TX_TSO) > 10);
	h->tx_discard = false;
	e82545_reset(h->dev);
	h->brk = 0x10000;
	host_up(h, 512, 64, 2048);
	check_alive(h);
	host_destroy(h);
}

TEST(threads, "Frames of a guest and its worker come out whole and in order")
{
	struct host *h = up(256);
	uint8_t frame[80];
	uint64_t buf[256];
	uint32_t n, clean, used;
	unsigned int i;

	for (i = 0; i < 256; i++)
		buf[i] = host_alloc(h, sizeof(frame), 16);
	host_start_threads(h);
	clean = used = 0;
	for (i = 0; i < 4000; i++) {
		while (used == 255 || (used > 0 && host_tx_done(h, clean))) {
			if (!host_tx_done(h, clean)) {
				sched_yield();
				continue;
			}
			clean = (clean + 1) % 256;
			used--;
		}
		host_make_frame(frame, sizeof(frame), host_mac, i);
		be32enc(frame + 14, i);
		n = h->txtail;
		memcpy(host_mem(h, buf[n], sizeof(frame)), frame,
		    sizeof(frame));
		host_tx_legacy(h, buf[n], sizeof(frame), LAST);
		used++;
		if (i % 7 == 0)
			host_tx_go(h);
	}
	host_tx_go(h);
	while (host_sent(h) < 4000)
		sched_yield();
	host_stop_threads(h);
	for (i = 0; i < 4000; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		be32enc(frame + 14, i);
		check_sent(h, i, frame, sizeof(frame));
	}
	host_destroy(h);
}

ATF_TP_ADD_TCS(tp)
{

	ATF_TP_ADD_TC(tp, legacy);
	ATF_TP_ADD_TC(tp, statistics);
	ATF_TP_ADD_TC(tp, report_status);
	ATF_TP_ADD_TC(tp, delay);
	ATF_TP_ADD_TC(tp, low);
	ATF_TP_ADD_TC(tp, batch);
	ATF_TP_ADD_TC(tp, wrap);
	ATF_TP_ADD_TC(tp, gather);
	ATF_TP_ADD_TC(tp, too_many_pieces);
	ATF_TP_ADD_TC(tp, null);
	ATF_TP_ADD_TC(tp, padding);
	ATF_TP_ADD_TC(tp, own_fcs);
	ATF_TP_ADD_TC(tp, lengths);
	ATF_TP_ADD_TC(tp, jumbo);
	ATF_TP_ADD_TC(tp, partial);
	ATF_TP_ADD_TC(tp, no_eop);
	ATF_TP_ADD_TC(tp, partial_reset);
	ATF_TP_ADD_TC(tp, partial_after);
	ATF_TP_ADD_TC(tp, endless);
	ATF_TP_ADD_TC(tp, states);
	ATF_TP_ADD_TC(tp, vlan);
	ATF_TP_ADD_TC(tp, legacy_checksum);
	ATF_TP_ADD_TC(tp, legacy_checksum_vlan);
	ATF_TP_ADD_TC(tp, checksum);
	ATF_TP_ADD_TC(tp, checksum_some);
	ATF_TP_ADD_TC(tp, checksum_vlan);
	ATF_TP_ADD_TC(tp, checksum_zero);
	ATF_TP_ADD_TC(tp, checksum_bad);
	ATF_TP_ADD_TC(tp, context_report);
	ATF_TP_ADD_TC(tp, context_inside);
	ATF_TP_ADD_TC(tp, tso);
	ATF_TP_ADD_TC(tp, tso_payload_in_place);
	ATF_TP_ADD_TC(tp, tso_vlan);
	ATF_TP_ADD_TC(tp, tso_batches);
	ATF_TP_ADD_TC(tp, tso_reset);
	ATF_TP_ADD_TC(tp, tso_changed);
	ATF_TP_ADD_TC(tp, tso_contexts);
	ATF_TP_ADD_TC(tp, tso_bad);
	ATF_TP_ADD_TC(tp, tso_largest);
	ATF_TP_ADD_TC(tp, tso_pieces);
	ATF_TP_ADD_TC(tp, loopback);
	ATF_TP_ADD_TC(tp, loopback_many);
	ATF_TP_ADD_TC(tp, bad_ring);
	ATF_TP_ADD_TC(tp, bad_address);
	ATF_TP_ADD_TC(tp, bad_descriptor);
	ATF_TP_ADD_TC(tp, fuzz);
	ATF_TP_ADD_TC(tp, threads);

	return (atf_no_error());
}
