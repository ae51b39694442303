/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The transmit ring: frames sent, write-back, batches, and frames of several
 * descriptors.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_check.h"
#include "e82545_offload.h"
#include "wait_until.h"

/*
 * Descriptors and the ring.
 */

HOST_TEST(legacy, tx_up(64), "One frame in one descriptor: contents, "
    "write-back, statistics")
{
	union e82545_txd before, after;
	uint8_t frame[100];
	uint32_t n;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	before = *host_txd(h, n);
	tx_go(h);
	check_sent(h, 0, frame, sizeof(frame));
	ATF_CHECK_EQ(1, host_sent_frame(h, 0)->nfrags);
	/* Only the byte with DD is written. */
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
}

HOST_TEST(report, tx_up(64), "DD and TXDW are set if RS or RPS asks for it, in "
    "any descriptor; TIDV delays TXDW only if all that have RS have IDE")
{
	enum { LAST = E82545_TXD_EOP | E82545_TXD_IFCS, RS = E82545_TXD_RS,
	    RPS = E82545_TXD_RPS, IDE = E82545_TXD_IDE };
	static const struct {
		unsigned int	n;		/* descriptors */
		uint32_t	cmd[2];
		bool		done[2];
		bool		now, later;	/* TXDW */
	} t[] = {
		{ 1, { LAST }, { false }, false, false },
		{ 1, { LAST | RPS }, { true }, true, false },
		{ 2, { RS, LAST }, { true, false }, true, false },
		{ 2, { RPS, LAST }, { true, false }, true, false },
		/* A frame, two, and one in two descriptors. */
		{ 1, { LAST | RS | IDE }, { true }, false, true },
		{ 2, { LAST | RS | IDE, LAST | RS | IDE }, { true, true },
		    false, true },
		{ 2, { LAST | RS | IDE, LAST | RS }, { true, true }, true,
		    false },
		{ 2, { LAST | RS, LAST | RS | IDE }, { true, true }, true,
		    false },
		{ 2, { RS | IDE, LAST | RS | IDE }, { true, true }, false,
		    true },
		{ 2, { RS | IDE, LAST | RS }, { true, true }, true, false },
	};
	uint8_t frame[60];
	unsigned int i, j, nframes = 0;
	uint32_t d[2];
	uint64_t gpa;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	gpa = tx_put(h, frame, sizeof(frame));
	host_wr(h, E82545_TIDV, 100);
	for (i = 0; i < nitems(t); i++) {
		for (j = 0; j < t[i].n; j++) {
			d[j] = host_tx_legacy(h, gpa, 60, t[i].cmd[j]);
			nframes += (t[i].cmd[j] & E82545_TXD_EOP) != 0;
		}
		tx_go(h);
		ATF_CHECK_EQ(nframes, host_sent(h));
		for (j = 0; j < t[i].n; j++)
			ATF_CHECK_EQ_MSG(t[i].done[j], host_tx_done(h, d[j]),
			    "row %u", i);
		ATF_CHECK_EQ_MSG(t[i].now, (host_rd(h, E82545_ICR) &
		    E82545_ICR_TXDW) != 0, "row %u", i);
		host_advance(h, 102400);
		ATF_CHECK_EQ_MSG(t[i].later, (host_rd(h, E82545_ICR) &
		    E82545_ICR_TXDW) != 0, "row %u", i);
	}
}

HOST_TEST(low, tx_up(512), "TXD_LOW is set when the ring falls to LWTHRESH, "
    "TXQE when it is empty")
{
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
}

HOST_TEST(batch_descs, tx_up(2048), "A batch is 1024 descriptors, with or "
    "without frames")
{
	struct packet p = { .paylen = 100 };
	unsigned int i;

	for (i = 0; i < 1030; i++)
		tx_context(h, &p, 0, 0);
	host_tx_go(h);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(1024, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(1030, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(0, h->nflush);
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_BATCH));
}

HOST_TEST(tagged_fragments, tx_up(512), "A tag is put in front of 64 "
    "fragments, and not of 65")
{
	uint8_t frame[12 * (FRAME_MAXIOV + 1)], want[sizeof(frame) + 4];
	unsigned int i, n;
	uint32_t lower;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	memcpy(want, frame, 12);
	be32enc(want + 12, 0x81000064);
	memcpy(want + 16, frame + 12, sizeof(frame) - 12);
	host_set(h, E82545_CTRL, E82545_CTRL_VME);
	host_wr(h, E82545_VET, 0x8100);
	for (n = FRAME_MAXIOV; n <= FRAME_MAXIOV + 1; n++) {
		for (i = 0; i < n; i++) {
			lower = i == n - 1 ? TXD_LAST | E82545_TXD_VLE : 0;
			tx_desc(h, tx_put(h, frame + i * 12, 12), lower | 12,
			    0x64u << 16);
		}
		tx_go(h);
	}
	ATF_REQUIRE_EQ(1, host_sent(h));
	check_sent(h, 0, want, 12 * FRAME_MAXIOV + 4);
	ATF_CHECK_EQ(FRAME_MAXIOV, host_sent_frame(h, 0)->nfrags);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
}

/* As the standard says it, bit by bit. */
static uint32_t
fcs(const uint8_t *frame, size_t len)
{
	uint32_t crc = ~0U;
	size_t i;

	for (i = 0; i < 8 * len; i++)
		crc = crc >> 1 ^
		    (((crc ^ frame[i / 8] >> i % 8) & 1) != 0 ? 0xedb88320 : 0);
	return (~crc);
}

/* Send `len' bytes without IFCS, in two descriptors if `split' is not 0. */
static void
send_without_ifcs(struct host *h, const uint8_t *frame, size_t len,
    size_t split)
{
	host_sent_clear(h);
	if (split != 0)
		host_tx_legacy(h, tx_put(h, frame, split), split, 0);
	host_tx_legacy(h, tx_put(h, frame + split, len - split), len - split,
	    E82545_TXD_EOP | E82545_TXD_RS);
	tx_go(h);
}

HOST_TEST(own_fcs, tx_up(64), "Without IFCS the last four bytes are cut off if "
    "they are the FCS of the others; else the frame is complete")
{
	static const size_t lens[] =
	    { 14, 15, 60, 61, 100, 1514, E82545_FRAME_MAX - 4 };
	static uint8_t frame[E82545_FRAME_MAX + 8];
	size_t i, len, bit;

	host_clear(h, E82545_TCTL, E82545_TCTL_PSP);
	for (i = 0; i < nitems(lens); i++) {
		len = lens[i];
		host_make_frame(frame, len, host_mac, 1);
		le32enc(frame + len, fcs(frame, len));
		send_without_ifcs(h, frame, len + 4, 0);
		check_sent(h, 0, frame, len);
		/* The FCS in another fragment, in part. */
		send_without_ifcs(h, frame, len + 4, len + 2);
		check_sent(h, 0, frame, len);
		send_without_ifcs(h, frame, len + 4, 13);
		check_sent(h, 0, frame, len);
		/* Any bit wrong. */
		for (bit = 0; bit < 32; bit++) {
			frame[len + bit / 8] ^= 1 << bit % 8;
			send_without_ifcs(h, frame, len + 4, bit % 18);
			check_sent(h, 0, frame, len + 4);
			frame[len + bit / 8] ^= 1 << bit % 8;
		}
		/* With IFCS they are data. */
		host_sent_clear(h);
		host_tx_legacy(h, tx_put(h, frame, 13), 13, 0);
		host_tx_legacy(h, tx_put(h, frame + 13, len - 9), len - 9,
		    TXD_LAST);
		tx_go(h);
		check_sent(h, 0, frame, len + 4);
		/* The driver forgot IFCS. */
		send_without_ifcs(h, frame, len, 0);
		check_sent(h, 0, frame, len);
	}
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_BAD_LEN));
}

HOST_TEST(own_fcs_lengths, tx_up(64), "What an FCS counts for limits of "
    "length, padding and statistics")
{
	static uint8_t frame[E82545_FRAME_MAX + 8], want[60];
	const size_t max = E82545_FRAME_MAX;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	le32enc(frame + max, fcs(frame, max));
	send_without_ifcs(h, frame, max + 4, 0);
	check_sent(h, 0, frame, max);
	/* One byte more of either kind. */
	frame[max] ^= 1;
	send_without_ifcs(h, frame, max + 1, 0);
	ATF_CHECK_EQ(0, host_sent(h));
	le32enc(frame + max + 1, fcs(frame, max + 1));
	send_without_ifcs(h, frame, max + 5, 0);
	ATF_CHECK_EQ(0, host_sent(h));
	/* With 13 bytes before it, it is part of the frame. */
	le32enc(frame + 13, fcs(frame, 13));
	host_clear(h, E82545_TCTL, E82545_TCTL_PSP);
	send_without_ifcs(h, frame, 17, 0);
	check_sent(h, 0, frame, 17);
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_TX_BAD_LEN));

	host_set(h, E82545_TCTL, E82545_TCTL_PSP);
	host_rd(h, E82545_GOTCL);
	host_rd(h, E82545_GOTCH);
	memcpy(want, frame, 42);
	le32enc(frame + 42, fcs(frame, 42));
	send_without_ifcs(h, frame, 46, 0);
	check_sent(h, 0, want, 60);
	send_without_ifcs(h, frame, 42, 0);
	check_sent(h, 0, want, 60);
	ATF_CHECK_EQ(128, host_rd(h, E82545_GOTCL));
}

TEST(tail_at_end, "TDT equal to the number of descriptors: all up to the end "
    "are sent, once")
{
	static const unsigned int starts[] = { 0, 1, 7, 62, 63 };
	uint8_t frame[60];
	struct host *h;
	unsigned int i, n, pieces;

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < nitems(starts); i++)
		for (pieces = 1; pieces <= 2; pieces++) {
			h = tx_up(64);
			host_wr(h, E82545_TDH, starts[i]);
			h->txtail = starts[i];
			for (n = starts[i]; n < 64; n++)
				if (pieces == 2 && n < 63 && (n & 1) == 0)
					host_tx_legacy(h, tx_put(h, frame, 30),
					    30, E82545_TXD_RS);
				else
					host_tx_legacy(h, tx_put(h, frame, 60),
					    60, TXD_LAST);
			host_wr(h, E82545_TDT, 64);
			host_run(h);
			ATF_CHECK_EQ(0, host_rd(h, E82545_TDH));
			ATF_CHECK_EQ(0, host_rd(h, E82545_TDT));
			for (n = starts[i]; n < 64; n++)
				ATF_CHECK_MSG(host_tx_done(h, n), "%u", n);
			n = host_sent(h);
			ATF_CHECK_EQ(pieces == 1 ? 64 - starts[i] :
			    32 - starts[i] / 2, n);
			ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_BAD_RING));
			/* Nothing is pending. */
			host_wr(h, E82545_TCTL, host_rd(h, E82545_TCTL));
			host_run(h);
			ATF_CHECK_EQ(n, host_sent(h));
			h->txtail = 0;
			check_tx_alive(h);
			host_destroy(h);
		}
}

HOST_TEST(partial_reset, tx_up(16), "After a reset the rest of a frame is not "
    "skipped")
{
	uint8_t bytes[20] = { 0 };
	unsigned int i;

	for (i = 0; i < 15; i++)
		host_tx_legacy(h, tx_put(h, bytes, 20), 20, 0);
	tx_go(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	e82545_reset(h->dev);
	host_up(h, 16, 64, 2048);
	check_tx_alive(h);
}

HOST_TEST(endless, tx_up(4096), "A frame of thousands of descriptors is "
    "skipped in batches")
{
	uint8_t bytes[20] = { 0 };
	unsigned int i, n;
	uint64_t gpa;

	gpa = tx_put(h, bytes, 20);
	for (i = 0; i < 4000; i++)
		host_tx_legacy(h, gpa, 1, i == 3999 ? TXD_LAST : E82545_TXD_RS);
	host_tx_go(h);
	for (n = 1; e82545_tx(h->dev); n++)
		ATF_REQUIRE(n < 100);
	ATF_CHECK(n > 2);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(4000, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_BAD_LEN));
	for (i = 0; i < 4000; i++)
		ATF_REQUIRE(host_tx_done(h, i));
	check_tx_alive(h);
}

/*
 * Frames that are not sent, and threads.
 */

HOST_TEST(states, tx_up(64), "Transmitter off, paused, no link, no room")
{
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
	tx_go(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK_EQ(1, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_LINKDOWN));
	ATF_CHECK_EQ(1, host_rd(h, E82545_GPTC));
	e82545_link(h->dev, true);

	h->tx_space = 1;
	host_tx_frame(h, frame, sizeof(frame), 0);
	n = host_tx_frame(h, frame, sizeof(frame), 0);
	tx_go(h);
	ATF_CHECK(host_tx_done(h, n));
	ATF_CHECK_EQ(2, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_NOROOM));
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_TX_FRAME));
}

HOST_TEST(threads, tx_up(256), "Frames are sent intact and in order while "
    "guest and worker run in threads")
{
	uint8_t frame[80];
	uint64_t buf[256];
	uint32_t n, clean, used;
	unsigned int i;

	for (i = 0; i < 256; i++)
		buf[i] = host_alloc(h, sizeof(frame), 16);
	host_start_threads(h);
	clean = used = 0;
	for (i = 0; i < 4000; i++) {
		if (used == 255)
			wait_until(host_tx_done(h, clean),
			    "descriptor %u not done, %u frames sent", clean,
			    host_sent(h));
		for (; used > 0 && host_tx_done(h, clean); used--)
			clean = (clean + 1) % 256;
		host_make_frame(frame, sizeof(frame), host_mac, i);
		be32enc(frame + 14, i);
		n = h->txtail;
		memcpy(host_mem(h, buf[n], sizeof(frame)), frame,
		    sizeof(frame));
		host_tx_legacy(h, buf[n], sizeof(frame), TXD_LAST);
		used++;
		if (i % 7 == 0)
			host_tx_go(h);
	}
	host_tx_go(h);
	wait_until(host_sent(h) == 4000, "%u frames sent", host_sent(h));
	host_stop_threads(h);
	for (i = 0; i < 4000; i++) {
		host_make_frame(frame, sizeof(frame), host_mac, i);
		be32enc(frame + 14, i);
		check_sent(h, i, frame, sizeof(frame));
	}
}

TEST_PROGRAM
