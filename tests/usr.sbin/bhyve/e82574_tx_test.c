/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The two transmit queues of the 82574L.  Queue 0 has the ring of
 * e82545_host.h, queue 1 the one below.
 */

#include <sys/param.h>
#include <sys/endian.h>


#include "e82545_check.h"
#include "e82545_impl.h"

#define	TARC(n)		(0x3840 + 0x100 * (n))
#define	ENABLE		0x400
#define	TDH1		0x3910
#define	TDT1		0x3918
/* Queue 1. */
static uint64_t ring1;
static uint32_t n1, tail1;

/* Place queue 1, of `ntxd' descriptors. */
static void
place1(struct host *h, uint32_t ntxd)
{
	ring1 = host_alloc(h, ntxd * sizeof(union e82545_txd), 128);
	n1 = ntxd;
	tail1 = 0;
	host_wr(h, 0x3900, ring1);
	host_wr(h, 0x3904, 0);
	host_wr(h, 0x3908, ntxd * sizeof(union e82545_txd));
	host_wr(h, TDH1, 0);
	host_wr(h, TDT1, 0);
}

static struct host *
two_up(uint32_t ntxd)
{
	struct host *h;

	h = host_create_82574(HOST_RAM);
	host_up(h, ntxd, 64, 2048);
	place1(h, ntxd);
	host_rd(h, E82545_ICR);
	return (h);
}

/* Swap the queue that the functions of the host use with the other one. */
static void
swap(struct host *h)
{
	const uint64_t ring = h->txring;
	const uint32_t n = h->ntxd, tail = h->txtail;

	h->txring = ring1;
	h->ntxd = n1;
	h->txtail = tail1;
	ring1 = ring;
	n1 = n;
	tail1 = tail;
}

/* A frame at queue 1's tail, with a seed. */
static void
frame1(struct host *h, size_t len, unsigned int seed, uint32_t cmd)
{
	uint8_t frame[E82545_FRAME_MAX];

	host_make_frame(frame, len, host_mac, seed);
	swap(h);
	host_tx_frame(h, frame, len, cmd);
	swap(h);
}

static void
frame0(struct host *h, size_t len, unsigned int seed, uint32_t cmd)
{
	uint8_t frame[E82545_FRAME_MAX];

	host_make_frame(frame, len, host_mac, seed);
	host_tx_frame(h, frame, len, cmd);
}

static void
go1(struct host *h)
{
	host_wr(h, TDT1, tail1);
}

static void
check_seed(struct host *h, unsigned int n, size_t len, unsigned int seed)
{
	uint8_t frame[E82545_FRAME_MAX];

	host_make_frame(frame, len, host_mac, seed);
	check_sent(h, n, frame, len);
}

HOST_TEST(tarc, two_up(64), "TARC enables each queue, and no other")
{
	unsigned int q;

	ATF_CHECK_EQ(0x403, host_rd(h, TARC(0)));
	for (q = 0; q < 2; q++) {
		host_sent_clear(h);
		host_wr(h, TARC(0), q == 0 ? 3 : ENABLE);
		host_wr(h, TARC(1), q == 1 ? 0x00200003 : ENABLE);
		frame0(h, 60, 1, 0);
		frame1(h, 70, 1, 0);
		host_tx_go(h);
		go1(h);
		host_run(h);
		ATF_CHECK_EQ(1, host_sent(h));
		check_seed(h, 0, q == 0 ? 70 : 60, 1);
		ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
		/* Turned on, it goes on. */
		host_wr(h, TARC(q), ENABLE);
		host_run(h);
		ATF_CHECK_EQ(2, host_sent(h));
		check_seed(h, 1, q == 0 ? 60 : 70, 1);
	}
	/* With both off nothing is sent. */
	host_sent_clear(h);
	host_wr(h, TARC(0), 0);
	host_wr(h, TARC(1), 0);
	frame0(h, 60, 1, 0);
	frame1(h, 70, 1, 0);
	host_tx_go(h);
	go1(h);
	host_run(h);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
}

HOST_TEST(low, two_up(64), "TXD_LOW is by TXDCTL of the queue")
{
	unsigned int i;

	host_wr(h, 0x3928, 1 << 25);	/* LWTHRESH: 8 descriptors */
	for (i = 0; i < 9; i++)
		frame1(h, 60, i, 0);
	/* The last packet is not complete. */
	swap(h);
	host_txd(h, 8)->lower &= ~htole32(E82545_TXD_EOP);
	swap(h);
	go1(h);
	host_run(h);
	ATF_CHECK_EQ(8, host_rd(h, TDH1));
	ATF_CHECK_EQ(0x00008001, host_rd(h, E82545_ICR));
	/* Queue 0 has none: at 0 only. */
	for (i = 0; i < 9; i++)
		frame0(h, 60, i, 0);
	host_txd(h, 8)->lower &= ~htole32(E82545_TXD_EOP);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(8, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(0x00000001, host_rd(h, E82545_ICR));
	/* What is not complete does not keep the other queue waiting. */
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	frame1(h, 60, 9, 0);
	go1(h);
	host_run(h);
	ATF_CHECK_EQ(17, host_sent(h));
}

HOST_TEST(hostile, two_up(64), "A queue that is nowhere, too short, or whose "
    "head or tail is beyond it: counted, and the other one goes on")
{
	static const struct {
		uint32_t	off, value;
	} bad[] = {
		{ 0x3904, 0x80 },		/* TDBAH1: not memory */
		{ 0x3908, 0 },			/* TDLEN1 */
		{ TDH1, 64 },
		{ TDH1, 0xffff },
		{ TDT1, 65 },
		{ TDT1, 0xffff },
	};
	unsigned int i;

	for (i = 0; i < nitems(bad); i++) {
		const uint64_t before =
		    host_counter(h, E82545_C_TX_BAD_RING);

		host_sent_clear(h);
		place1(h, 64);
		frame1(h, 60, i, 0);
		host_wr(h, bad[i].off, bad[i].value);
		if (bad[i].off != TDT1)
			go1(h);
		frame0(h, 60, i, 0);
		host_tx_go(h);
		host_run(h);
		ATF_CHECK_EQ_MSG(1, host_sent(h), "%u", i);
		ATF_CHECK(host_counter(h, E82545_C_TX_BAD_RING) > before);
		ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	}
	/* A queue whose last descriptor is before TDT: all up to there. */
	host_sent_clear(h);
	place1(h, 64);
	for (i = 0; i < 63; i++)
		frame1(h, 60, i, 0);
	host_wr(h, TDT1, 64);
	host_run(h);
	ATF_CHECK_EQ(63, host_sent(h));
	check_tx_alive(h);
}

TEST_PROGRAM
