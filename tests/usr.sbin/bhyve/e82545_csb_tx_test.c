/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB and the transmit ring: kicks, polling, and the interrupt for free
 * descriptors.
 */

#include <sys/param.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"

/* Rounds without a frame; the adapter does not sleep. */
static void
empty_rounds(struct host *h, unsigned int n)
{
	while (n-- > 0)
		ATF_REQUIRE(e82545_tx(h->dev) != E82545_TX_IDLE);
}

HOST_TEST(spin, guest_up(64, 8, 2048, UINT32_MAX), "Polling ends after 200 us "
    "without a frame, whatever host_txcycles_lim; what the host does after "
    "each 16 polls does not count")
{
	const uint64_t spin_ns = 200000;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		/* A frame begins it anew. */
		guest_post(h, 1);
		ATF_REQUIRE_EQ(E82545_TX_MORE, e82545_tx(h->dev));
		empty_rounds(h, 16);
		host_advance(h, 2 * spin_ns);
		empty_rounds(h, 1);
		host_advance(h, spin_ns / 2);
		empty_rounds(h, 15);
		host_advance(h, 2 * spin_ns);
		empty_rounds(h, 15);
		host_advance(h, spin_ns / 2 - 1);
		empty_rounds(h, 17);
		ATF_CHECK_EQ(64, CSB_GET(h, host_txcycles));
		ATF_CHECK_EQ(0, CSB_GET(h, host_need_txkick));
	}
	empty_rounds(h, 15);
	host_advance(h, 1);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(80, CSB_GET(h, host_txcycles));
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
	/* A kick begins it anew. */
	guest_post(h, 1);
	ATF_CHECK_EQ(65536 + 2, guest_rounds(h));
}

/* Return how often the host looks at the ring for a frame that is kicked for. */
static unsigned int
kick_rounds(struct host *h)
{
	ATF_CHECK(guest_post(h, 1));
	return (guest_rounds(h));
}

TEST(away, "A host that was away for 1.5 ms between two rows of polls, with "
    "fewer than 4 frames in both directions, does not poll for 20 ms")
{
	static const struct {
		uint64_t	ns;
		unsigned int	tx, rx, large;	/* a frame of such length */
		bool		rests;
	} t[] = {
		{ 1499999, 0, 0, 0, false }, { 1500000, 0, 0, 0, true },
		{ 1500000, 3, 0, 0, true }, { 1500000, 4, 0, 0, false },
		{ 1500000, 0, 3, 0, true }, { 1500000, 0, 4, 0, false },
		{ 1500000, 1, 2, 0, true }, { 1500000, 2, 2, 0, false },
		/* With the 60 bytes before: 4499 bytes, and 4500. */
		{ 1500000, 0, 0, 4439, true }, { 1500000, 0, 0, 4440, false },
		{ 1500000, 3, 0, 1500, false },
	};
	const uint64_t rest_ns = 20000000;
	struct host *h;
	unsigned int i;

	for (i = 0; i < nitems(t); i++) {
		h = guest_awake(1, 100);
		empty_rounds(h, 16);
		host_advance(h, t[i].ns);
		if (t[i].large > 0)
			host_tx_legacy(h, host_alloc(h, t[i].large, 1),
			    t[i].large, E82545_TXD_EOP | E82545_TXD_IFCS);
		guest_frames(h, t[i].tx);
		if (t[i].large + t[i].tx > 0) {
			ATF_CHECK(!guest_send(h));
			ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
		}
		guest_offer(h, t[i].rx);
		e82545_rx(h->dev);
		ATF_CHECK_EQ_MSG(t[i].rests,
		    e82545_tx(h->dev) == E82545_TX_IDLE, "%u", i);
		ATF_CHECK_EQ(t[i].rests, CSB_GET(h, host_need_txkick));
		if (t[i].rests) {
			ATF_CHECK_EQ(2, kick_rounds(h));
			host_advance(h, rest_ns - 1);
			ATF_CHECK_EQ(2, kick_rounds(h));
			host_advance(h, 1);
			ATF_CHECK_EQ(102, kick_rounds(h));
		}
		host_destroy(h);
	}
}

HOST_TEST(asleep, guest_up(64, 8, 2048, 16), "The time that the host sleeps "
    "does not end its polls")
{
	ATF_CHECK_EQ(18, kick_rounds(h));
	host_advance(h, 2000000);
	ATF_CHECK_EQ(18, kick_rounds(h));
}

HOST_TEST(states, guest_up(64, 8, 2048, 100), "The host must yield its "
    "processor after 16 polls if the guest may need it, and not if the guest "
    "polls")
{
	unsigned int i, on;

	CSB_SET(h, guest_need_rxkick, 1);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK(guest_post(h, 1));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	for (on = 0; on < 3; on++) {
		CSB_SET(h, guest_need_rxkick, on % 2);
		for (i = 0; i < 15; i++)
			ATF_CHECK_EQ(E82545_TX_POLL, e82545_tx(h->dev));
		ATF_CHECK_EQ(on % 2 != 0 ? E82545_TX_YIELD : E82545_TX_POLL,
		    e82545_tx(h->dev));
	}
	/* A frame begins it anew. */
	ATF_CHECK_EQ(E82545_TX_POLL, e82545_tx(h->dev));
	ATF_CHECK(!guest_post(h, 1));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	CSB_SET(h, guest_need_rxkick, 1);
	for (i = 0; i < 15; i++)
		ATF_CHECK_EQ(E82545_TX_POLL, e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_TX_YIELD, e82545_tx(h->dev));
	CSB_SET(h, guest_csb_on, 0);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
}

/* Send a frame.  True if that caused an interrupt, which is then served. */
static bool
interrupts(struct host *h)
{
	unsigned int before = host_raised(h);

	guest_transmit(h, 1);
	host_rd(h, E82545_ICR);
	return (host_raised(h) != before);
}

HOST_TEST(need_kick, guest_up(64, 8, 2048, 1), "A TX interrupt comes only if "
    "guest_need_txkick asks for it")
{
	static const struct {
		uint32_t	need;
		bool		want;
	} t[] = {
		{ 0, false }, { 1, true }, { 2, true }, { 3, true },
		{ 4, true }, { UINT32_MAX, true }, { 0, false }
	};
	unsigned int i, saved;

	saved = 0;
	for (i = 0; i < nitems(t); i++) {
		CSB_SET(h, guest_need_txkick, t[i].need);
		ATF_CHECK_EQ_MSG(t[i].want, interrupts(h), "%#x",
		    t[i].need);
		saved += !t[i].want;
		ATF_CHECK_EQ(saved, host_counter(h, E82545_C_INTR_SAVED));
		/* Never touched by the host. */
		ATF_CHECK_EQ(t[i].need, CSB_GET(h, guest_need_txkick));
	}
	/* The guest asks for free descriptors, with or without RS. */
	CSB_SET(h, guest_need_txkick, 1);
	host_tx_legacy(h, host_alloc(h, 60, 1), 60,
	    E82545_TXD_EOP | E82545_TXD_IFCS);
	guest_send(h);
	host_run(h);
	ATF_CHECK((CSB_GET(h, host_isr) & E82545_ICR_TXDW) != 0);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
}

HOST_TEST(numbers, guest_up(64, 8, 2048, 1), "A request with a number is "
    "interrupted for once, whether or not ICR was read")
{
	unsigned int i;

	CSB_SET(h, pad[0], 1);
	for (i = 1; i <= 3; i++) {
		CSB_SET(h, guest_need_txkick, 2 * i + 1);
		ATF_CHECK(interrupts(h));
		ATF_CHECK_EQ(2 * i + 1, CSB_GET(h, pad[7]));
		ATF_CHECK_EQ(0, CSB_GET(h, pad[8]));
		ATF_CHECK(!interrupts(h));
		CSB_SET(h, guest_need_txkick, 0);
		ATF_CHECK(!interrupts(h));
	}
}

TEST(saved, "A batch saves an interrupt if it completes a descriptor with RS, "
    "or the ring is empty then")
{
	static const struct {
		bool	rs, rest;	/* with RS; half a packet follows */
		bool	saves;
	} t[] = {
		{ false, false, true }, { true, false, true },
		{ true, true, true }, { false, true, false },
	};
	struct host *h;
	uint64_t gpa;
	unsigned int i;

	for (i = 0; i < nitems(t); i++) {
		h = guest_up(64, 8, 2048, 1);
		gpa = host_alloc(h, 60, 1);
		host_tx_legacy(h, gpa, 60, E82545_TXD_EOP | E82545_TXD_IFCS |
		    (t[i].rs ? E82545_TXD_RS : 0));
		if (t[i].rest)
			host_tx_legacy(h, gpa, 60, E82545_TXD_IFCS);
		guest_send(h);
		host_run(h);
		ATF_CHECK_EQ(1, host_sent(h));
		ATF_CHECK_EQ_MSG(t[i].saves, host_counter(h,
		    E82545_C_INTR_SAVED), "%u", i);
		host_destroy(h);
	}
}

HOST_TEST(threshold, guest_up(64, 8, 2048, 1), "guest_txkick_at causes one "
    "interrupt, when TDH reaches it")
{
	unsigned int i, n;

	for (i = 1; i <= 200; i++) {
		if (i % 50 == 1)
			CSB_SET(h, guest_txkick_at, (h->txtail + 20) % 64);
		ATF_CHECK_EQ_MSG(i % 50 == 20, interrupts(h), "%u", i);
	}
	/* Within a batch, at its end, and after it. */
	for (i = 8; i <= 11; i++) {
		CSB_SET(h, guest_txkick_at, (h->txtail + i) % 64);
		n = host_raised(h);
		guest_transmit(h, 10);
		host_rd(h, E82545_ICR);
		ATF_CHECK_EQ_MSG(n + (i <= 10), host_raised(h), "%u", i);
	}
	CSB_SET(h, guest_txkick_at, 64);
	ATF_CHECK(!interrupts(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_BAD));
	CSB_SET(h, guest_txkick_at, NET_PARAVIRT_NONE);
	ATF_CHECK(!interrupts(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_BAD));
}

static void
turn_off(struct host *h)
{
	CSB_SET(h, guest_csb_on, 0);
}

HOST_TEST(off_in_batch, guest_up(64, 8, 2048, 1), "When the CSB is turned off "
    "within a batch, the interrupt comes")
{
	h->tx_hook = turn_off;
	ATF_CHECK(interrupts(h));
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
}

/* Within a batch, guest_tdt becomes invalid. */
static void
post_bad(struct host *h)
{
	h->tx_hook = NULL;
	CSB_SET(h, guest_tdt, 64);
}

HOST_TEST(late_tail, guest_up(64, 8, 2048, 2), "A guest_tdt that changes while "
    "the host goes to sleep, as the mode is off, keeps it awake")
{
	guest_post(h, 1);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK(e82545_tx(h->dev) != E82545_TX_IDLE);
	ATF_CHECK_EQ(1, CSB_GET(h, host_txcycles));
	ATF_CHECK(e82545_tx(h->dev) != E82545_TX_IDLE);
	ATF_CHECK_EQ(2, CSB_GET(h, host_txcycles));
	guest_store(h, 1);
	CSB_SET(h, guest_csb_on, 0);
	h->tx_hook = post_bad;
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(2, host_sent(h));
	/* It counts empty rounds again. */
	CSB_SET(h, guest_csb_on, 1);
	ATF_CHECK(e82545_tx(h->dev) != E82545_TX_IDLE);
	ATF_CHECK_EQ(0, CSB_GET(h, host_need_txkick));
	ATF_CHECK_EQ(1, CSB_GET(h, host_txcycles));
}

TEST(delay, "An interrupt for free descriptors comes at once, except for a "
    "descriptor with IDE and RS")
{
	static const struct {
		uint32_t	cmd;
		bool		delayed;
	} t[] = {
		{ 0, false }, { E82545_TXD_RS, false },
		{ E82545_TXD_IDE, false },
		{ E82545_TXD_IDE | E82545_TXD_RS, true },
	};
	struct host *h;
	unsigned int i;

	for (i = 0; i < nitems(t); i++) {
		h = guest_up(64, 8, 2048, 0);
		host_wr(h, E82545_IMC, E82545_ICR_ALL);
		host_wr(h, E82545_IMS, E82545_ICR_TXDW);
		host_wr(h, E82545_TIDV, 1000);
		CSB_SET(h, guest_need_txkick, 1);
		host_tx_legacy(h, host_alloc(h, 60, 1), 60, E82545_TXD_EOP |
		    E82545_TXD_IFCS | t[i].cmd);
		guest_send(h);
		host_run(h);
		ATF_CHECK_EQ_MSG(!t[i].delayed, host_raised(h), "%u", i);
		host_destroy(h);
	}
}

HOST_TEST(first_threshold, guest_up(64, 8, 2048, 0), "A guest_txkick_at of 0 "
    "is an index if it was another value when the block was placed")
{
	guest_transmit(h, 63);
	/* No batch has looked at the field. */
	host_wr(h, E82545_CSBAL, 0);
	guest_place(h, (uint8_t *)h->csb - h->ram);
	host_rd(h, E82545_ICR);
	CSB_SET(h, guest_txkick_at, 0);
	guest_transmit(h, 2);
	ATF_CHECK_EQ(E82545_ICR_TXDW, host_rd(h, E82545_ICR) &
	    E82545_ICR_TXDW);
}

TEST_PROGRAM
