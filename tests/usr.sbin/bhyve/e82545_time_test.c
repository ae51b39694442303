/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interrupts when the host's clock does what clocks rarely do: it stands still,
 * jumps by hours because the host was suspended, the timer comes late or never,
 * and values pass 2^32 and 2^63 ns.
 */

#include <sys/param.h>

#include "e82545_check.h"

#define	SECOND_NS	1000000000ULL
#define	START_NS	(2 * SECOND_NS)
#define	HOUR_NS		3600000000000ULL
#define	ITR		1000			/* units of 256 ns */
#define	ITR_NS		(ITR * 256ULL)
#define	RDTR		100			/* units of 1024 ns */
#define	RDTR_NS		(RDTR * 1024ULL)

/* An adapter at a time; no interrupt is pending. */
static struct host *
up(uint64_t now_ns)
{
	struct host *h;

	h = host_create(HOST_RAM);
	h->now_ns = now_ns - SECOND_NS;
	host_up(h, 64, 64, 2048);
	host_wr(h, E82545_IMS, E82545_ICR_ALL);
	host_rd(h, E82545_ICR);
	/* The interrupt of the link does not hold others any more. */
	host_advance(h, SECOND_NS);
	h->nraised = 0;
	return (h);
}

/* Raise a cause, and take the interrupt if there is one. */
static bool
raise_cause(struct host *h)
{
	unsigned int before = host_raised(h);

	host_wr(h, E82545_ICS, E82545_ICR_RXT0);
	if (host_raised(h) == before)
		return (false);
	host_rd(h, E82545_ICR);
	return (true);
}

static void
receive(struct host *h)
{
	uint8_t frame[60];

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	rx_receive(h, frame, sizeof(frame));
}

HOST_TEST(stands_still, up(START_NS), "The clock stands still: one interrupt, "
    "and no busy timer")
{
	unsigned int i, ntimer;

	host_wr(h, E82545_ITR, ITR);
	ATF_CHECK(raise_cause(h));
	ntimer = h->ntimer;
	for (i = 0; i < 1000; i++) {
		ATF_CHECK(!raise_cause(h));
		host_advance(h, 0);
	}
	/* The timer was set once, and is still set. */
	ATF_CHECK_EQ(ntimer + 1, h->ntimer);
	ATF_CHECK_EQ(h->now_ns + ITR_NS, h->timer_ns);
	/* Early calls set it again and do nothing else. */
	for (i = 0; i < 1000; i++)
		e82545_timer(h->dev);
	ATF_CHECK_EQ(1, host_raised(h));
	ATF_CHECK_EQ(h->now_ns + ITR_NS, h->timer_ns);
	host_advance(h, ITR_NS - 1);
	ATF_CHECK_EQ(1, host_raised(h));
	host_advance(h, 1);
	ATF_CHECK_EQ(2, host_raised(h));
}

HOST_TEST(jumps, up(START_NS), "The clock jumps by hours: one interrupt for "
    "what waited, and none delayed after it")
{
	unsigned int i;

	host_wr(h, E82545_ITR, ITR);
	host_wr(h, E82545_RDTR, RDTR);
	for (i = 1; i <= 5; i++) {
		ATF_CHECK(raise_cause(h));
		ATF_CHECK(!raise_cause(h));		/* held */
		receive(h);				/* delayed */
		ATF_CHECK_EQ(2 * i - 1, host_raised(h));
		host_advance(h, i * HOUR_NS);
		ATF_CHECK_EQ(2 * i, host_raised(h));
		host_rd(h, E82545_ICR);
		host_advance(h, HOUR_NS);
		ATF_CHECK_EQ(2 * i, host_raised(h));
		ATF_CHECK_EQ(0, h->timer_ns);
	}
}

HOST_TEST(late, up(START_NS), "A timer that comes hours late, or never")
{
	host_wr(h, E82545_ITR, ITR);
	ATF_CHECK(raise_cause(h));
	host_wr(h, E82545_ICS, E82545_ICR_RXT0);
	ATF_CHECK_EQ(1, host_raised(h));
	/* Hours pass without a call; the next event is not held by it. */
	h->now_ns += 3 * HOUR_NS;
	host_wr(h, E82545_ICS, E82545_ICR_TXDW);
	ATF_CHECK_EQ(2, host_raised(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0 | E82545_ICR_TXDW,
	    host_rd(h, E82545_ICR) & (E82545_ICR_RXT0 | E82545_ICR_TXDW));
	/* The late call itself finds nothing to do. */
	host_advance(h, 0);
	ATF_CHECK_EQ(2, host_raised(h));
	/* The throttle counts from then on, not from before. */
	h->now_ns += ITR_NS;
	ATF_CHECK(raise_cause(h));
	host_wr(h, E82545_ICS, E82545_ICR_RXT0);
	ATF_CHECK_EQ(3, host_raised(h));
	ATF_CHECK_EQ(h->now_ns + ITR_NS, h->timer_ns);
}

/* Throttle and delay across a value of the clock, from each side. */
static void
pass(uint64_t value)
{
	static const uint64_t before[] = { 0, 1, ITR_NS / 2, ITR_NS - 1,
	    ITR_NS, ITR_NS + 1 };
	struct host *h;
	unsigned int i;

	for (i = 0; i < nitems(before); i++) {
		h = up(value - before[i]);
		host_wr(h, E82545_ITR, ITR);
		ATF_CHECK(raise_cause(h));
		host_wr(h, E82545_ICS, E82545_ICR_RXT0);
		host_advance(h, ITR_NS - 1);
		ATF_CHECK_EQ_MSG(1, host_raised(h), "case %u", i);
		host_advance(h, 1);
		ATF_CHECK_EQ_MSG(2, host_raised(h), "case %u", i);
		host_rd(h, E82545_ICR);
		host_wr(h, E82545_ITR, 0);
		host_destroy(h);

		h = up(value - before[i]);
		host_wr(h, E82545_RDTR, RDTR);
		receive(h);
		host_advance(h, RDTR_NS - 1);
		ATF_CHECK_EQ_MSG(0, host_raised(h), "case %u", i);
		host_advance(h, 1);
		ATF_CHECK_EQ_MSG(1, host_raised(h), "case %u", i);
		host_destroy(h);
	}
}

TEST(passes_2_32, "The clock passes 2^32 ns")
{
	pass(1ULL << 32);
}

TEST(passes_2_63, "The clock passes 2^63 ns")
{
	pass(1ULL << 63);
}

TEST_PROGRAM
