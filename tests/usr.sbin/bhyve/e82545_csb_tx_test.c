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

TEST(one_kick, "After one kick the host finds later frames without kicks")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 3, &csb);
	unsigned int i;

	guest_frames(h, 2);
	ATF_CHECK(guest_send(h, csb));
	ATF_CHECK(h->kicked);
	h->kicked = false;
	ATF_CHECK(e82545_tx(h->dev));
	ATF_CHECK_EQ(2, host_sent(h));
	ATF_CHECK_EQ(0, CSB_GET(csb, host_need_txkick));
	for (i = 1; i <= 100; i++) {
		guest_frames(h, 1);
		ATF_CHECK(!guest_send(h, csb));
		ATF_CHECK(e82545_tx(h->dev));
		ATF_CHECK_EQ(2 + i, host_sent(h));
		ATF_CHECK_EQ(h->txtail, host_rd(h, E82545_TDH));
		ATF_CHECK_EQ(h->txtail, host_rd(h, E82545_TDT));
		ATF_CHECK_EQ(h->txtail, CSB_GET(csb, host_tdh));
		ATF_CHECK(host_tx_done(h, (h->txtail + 63) % 64));
	}
	/* host_up() wrote TDT once. */
	ATF_CHECK_EQ(1 + 1, host_counter(h, E82545_C_TX_KICK));
	ATF_CHECK_EQ(100, host_counter(h, E82545_C_TX_KICK_SAVED));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_ON));
	ATF_CHECK(!h->kicked);
	host_destroy(h);
}

TEST(late_kick, "A write of an old value to TDT sends nothing again")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 3, &csb);
	uint32_t old;

	guest_frames(h, 1);
	ATF_CHECK(guest_send(h, csb));
	ATF_CHECK(e82545_tx(h->dev));
	old = h->txtail;
	guest_frames(h, 3);
	ATF_CHECK(!guest_send(h, csb));
	ATF_CHECK(e82545_tx(h->dev));
	ATF_CHECK_EQ(4, host_sent(h));
	host_wr(h, E82545_TDT, old);
	guest_rounds(h);
	ATF_CHECK_EQ(4, host_sent(h));
	ATF_CHECK_EQ(h->txtail, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(h->txtail, host_rd(h, E82545_TDT));
	/* With the CSB off, TDT has its usual meaning. */
	CSB_SET(csb, guest_csb_on, 0);
	guest_frames(h, 1);
	host_tx_go(h);
	guest_rounds(h);
	ATF_CHECK_EQ(5, host_sent(h));
	ATF_CHECK_EQ(h->txtail, host_rd(h, E82545_TDT));
	host_destroy(h);
}

TEST(rounds, "Polling ends after host_txcycles_lim rounds without a frame")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 3, &csb);
	unsigned int lim;

	for (lim = 0; lim < 5; lim++) {
		CSB_SET(csb, host_txcycles_lim, lim);
		guest_frames(h, 1);
		ATF_CHECK(guest_send(h, csb));
		/*
		 * The frame, the empty rounds, and the one that goes to sleep.
		 */
		ATF_CHECK_EQ(lim + 2, guest_rounds(h));
		ATF_CHECK_EQ(1, CSB_GET(csb, host_need_txkick));
		ATF_CHECK_EQ(lim, CSB_GET(csb, host_txcycles));
		/* Asleep, and called without work. */
		ATF_CHECK_EQ(1, guest_rounds(h));
		ATF_CHECK_EQ(1, CSB_GET(csb, host_need_txkick));
	}
	CSB_SET(csb, host_txcycles_lim, 10);
	guest_frames(h, 1);
	guest_send(h, csb);
	ATF_CHECK(e82545_tx(h->dev));
	for (lim = 0; lim < 8; lim++)
		ATF_CHECK(e82545_tx(h->dev));
	guest_frames(h, 1);
	ATF_CHECK(!guest_send(h, csb));
	ATF_CHECK_EQ(12, guest_rounds(h));
	/* The host does not poll for ever. */
	CSB_SET(csb, host_txcycles_lim, UINT32_MAX);
	guest_frames(h, 1);
	guest_send(h, csb);
	ATF_CHECK_EQ(65536 + 2, guest_rounds(h));
	ATF_CHECK_EQ(8, host_sent(h));
	host_destroy(h);
}

TEST(states, "The host must yield its processor if the guest may need it, and "
    "not if the guest polls")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 4, &csb);

	CSB_SET(csb, guest_need_rxkick, 1);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	guest_frames(h, 1);
	ATF_CHECK(guest_send(h, csb));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_TX_YIELD, e82545_tx(h->dev));
	CSB_SET(csb, guest_need_rxkick, 0);
	ATF_CHECK_EQ(E82545_TX_POLL, e82545_tx(h->dev));
	guest_frames(h, 1);
	ATF_CHECK(!guest_send(h, csb));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_TX_POLL, e82545_tx(h->dev));
	CSB_SET(csb, guest_need_rxkick, 1);
	ATF_CHECK_EQ(E82545_TX_YIELD, e82545_tx(h->dev));
	CSB_SET(csb, guest_csb_on, 0);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	host_destroy(h);
}

TEST(context, "A batch of context descriptors is not an empty round")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 4, &csb);
	struct packet p = { .paylen = 100 };

	guest_frames(h, 1);
	ATF_CHECK(guest_send(h, csb));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_TX_YIELD, e82545_tx(h->dev));
	tx_context(h, &p, 0, 0);
	ATF_CHECK(!guest_send(h, csb));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_TX_YIELD, e82545_tx(h->dev));
	ATF_CHECK_EQ(1, CSB_GET(csb, host_txcycles));
	host_destroy(h);
}

TEST(half_packet, "The host sleeps while it waits for the rest of a packet")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 2, &csb);
	uint64_t gpa = host_alloc(h, 100, 1);

	host_tx_legacy(h, gpa, 50, E82545_TXD_IFCS);
	ATF_CHECK(guest_send(h, csb));
	ATF_CHECK_EQ(3, guest_rounds(h));
	ATF_CHECK_EQ(1, CSB_GET(csb, host_need_txkick));
	ATF_CHECK_EQ(0, host_sent(h));
	host_tx_legacy(h, gpa + 50, 50, TXD_LAST);
	ATF_CHECK(guest_send(h, csb));
	ATF_CHECK_EQ(4, guest_rounds(h));
	ATF_CHECK_EQ(1, host_sent(h));
	host_destroy(h);
}

/* Send a frame.  True if that caused an interrupt, which is then served. */
static bool
interrupts(struct host *h, struct paravirt_csb *csb)
{
	unsigned int before = host_raised(h);

	guest_frames(h, 1);
	guest_send(h, csb);
	host_run(h);
	host_rd(h, E82545_ICR);
	return (host_raised(h) != before);
}

TEST(need_kick, "A TX interrupt comes only if guest_need_txkick asks for it")
{
	static const struct {
		uint32_t	need;
		bool		want;
	} t[] = {
		{ 0, false }, { 1, true }, { 2, true }, { 3, true },
		{ 4, true }, { UINT32_MAX, true }, { 0, false }
	};
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 1, &csb);
	unsigned int i, saved;

	saved = 0;
	for (i = 0; i < nitems(t); i++) {
		CSB_SET(csb, guest_need_txkick, t[i].need);
		ATF_CHECK_EQ_MSG(t[i].want, interrupts(h, csb), "%#x",
		    t[i].need);
		saved += !t[i].want;
		ATF_CHECK_EQ(saved, host_counter(h, E82545_C_INTR_SAVED));
		/* Never touched by the host. */
		ATF_CHECK_EQ(t[i].need, CSB_GET(csb, guest_need_txkick));
	}
	/* The guest asks for free descriptors, with or without RS. */
	CSB_SET(csb, guest_need_txkick, 1);
	host_tx_legacy(h, host_alloc(h, 60, 1), 60,
	    E82545_TXD_EOP | E82545_TXD_IFCS);
	guest_send(h, csb);
	host_run(h);
	ATF_CHECK((CSB_GET(csb, host_isr) & E82545_ICR_TXDW) != 0);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_TXDW) != 0);
	host_destroy(h);
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
	struct paravirt_csb *csb;
	struct host *h;
	uint64_t gpa;
	unsigned int i;

	for (i = 0; i < nitems(t); i++) {
		h = guest_up(64, 8, 2048, 1, &csb);
		gpa = host_alloc(h, 60, 1);
		host_tx_legacy(h, gpa, 60, E82545_TXD_EOP | E82545_TXD_IFCS |
		    (t[i].rs ? E82545_TXD_RS : 0));
		if (t[i].rest)
			host_tx_legacy(h, gpa, 60, E82545_TXD_IFCS);
		guest_send(h, csb);
		host_run(h);
		ATF_CHECK_EQ(1, host_sent(h));
		ATF_CHECK_EQ_MSG(t[i].saves, host_counter(h,
		    E82545_C_INTR_SAVED), "%u", i);
		host_destroy(h);
	}
}

TEST(odd_ring, "A ring of 24 descriptors goes round")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(24, 24, 2048, 3, &csb);
	unsigned int i;

	for (i = 1; i <= 100; i++) {
		guest_frames(h, 1);
		guest_send(h, csb);
		ATF_CHECK(e82545_tx(h->dev));
		ATF_REQUIRE_EQ(i, host_sent(h));
	}
	host_destroy(h);
}

TEST(bad_tdt, "A guest_tdt in the ring counts if TDT is outside of it")
{
	static const uint32_t bad[] = { 64, 65, 127, 0xffff };
	struct paravirt_csb *csb;
	struct host *h;
	unsigned int i;

	for (i = 0; i < nitems(bad); i++) {
		h = guest_up(64, 8, 2048, 0, &csb);
		guest_frames(h, 10);
		guest_send(h, csb);
		host_run(h);
		CSB_SET(csb, guest_csb_on, 0);
		ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
		host_wr(h, E82545_TDT, bad[i]);
		host_run(h);
		ATF_CHECK_EQ(10, host_rd(h, E82545_TDT));
		ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_BAD));
		host_clear(h, E82545_TCTL, E82545_TCTL_EN);
		host_wr(h, E82545_TDT, bad[i]);
		ATF_CHECK_EQ(bad[i], host_rd(h, E82545_TDT));
		host_set(h, E82545_TCTL, E82545_TCTL_EN);
		host_run(h);
		CSB_SET(csb, guest_csb_on, 1);
		host_set(h, E82545_TCTL, E82545_TCTL_PSP);
		host_run(h);
		guest_frames(h, 2);
		guest_send(h, csb);
		host_run(h);
		ATF_CHECK_EQ_MSG(12, host_sent(h), "%#x: %u", bad[i],
		    host_sent(h));
		host_destroy(h);
	}
}

TEST(threshold, "guest_txkick_at causes one interrupt, when TDH reaches it")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 1, &csb);
	unsigned int i, n;

	for (i = 1; i <= 200; i++) {
		if (i % 50 == 1)
			CSB_SET(csb, guest_txkick_at, (h->txtail + 20) % 64);
		ATF_CHECK_EQ_MSG(i % 50 == 20, interrupts(h, csb), "%u", i);
	}
	/* Within a batch, at its end, and after it. */
	for (i = 8; i <= 11; i++) {
		CSB_SET(csb, guest_txkick_at, (h->txtail + i) % 64);
		n = host_raised(h);
		guest_frames(h, 10);
		guest_send(h, csb);
		host_run(h);
		host_rd(h, E82545_ICR);
		ATF_CHECK_EQ_MSG(n + (i <= 10), host_raised(h), "%u", i);
	}
	CSB_SET(csb, guest_txkick_at, 64);
	ATF_CHECK(!interrupts(h, csb));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_BAD));
	CSB_SET(csb, guest_txkick_at, NET_PARAVIRT_NONE);
	ATF_CHECK(!interrupts(h, csb));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_BAD));
	host_destroy(h);
}

static struct paravirt_csb *hooked;

static void
turn_off(struct host *h __unused)
{
	CSB_SET(hooked, guest_csb_on, 0);
}

TEST(off_in_batch, "When the CSB is turned off within a batch, the interrupt "
    "comes")
{
	struct host *h = guest_up(64, 8, 2048, 1, &hooked);

	h->tx_hook = turn_off;
	ATF_CHECK(interrupts(h, hooked));
	ATF_CHECK_EQ(1, CSB_GET(hooked, host_need_txkick));
	host_destroy(h);
}

/*
 * When the batch maps the block, the guest kicks, posts more without a kick,
 * and turns the CSB off.
 */
static void
kick_and_turn_off(struct host *h)
{
	h->map_hook = NULL;
	guest_frames(h, 1);
	CSB_SET(hooked, guest_tdt, h->txtail);
	host_tx_go(h);
	guest_frames(h, 2);
	CSB_SET(hooked, guest_tdt, h->txtail);
	CSB_SET(hooked, guest_csb_on, 0);
}

TEST(kick_in_batch, "When the CSB is turned off within a batch, an index that "
    "the batch has passed does not become TDT")
{
	struct host *h = guest_up(64, 8, 2048, 3, &hooked);

	guest_frames(h, 2);
	ATF_CHECK(guest_send(h, hooked));
	ATF_CHECK(e82545_tx(h->dev));
	h->map_hook = kick_and_turn_off;
	guest_rounds(h);
	ATF_CHECK_EQ(NULL, h->map_hook);
	host_run(h);
	ATF_CHECK_EQ(5, host_sent(h));
	ATF_CHECK_EQ(h->txtail, host_rd(h, E82545_TDH));
	ATF_CHECK_EQ(h->txtail, host_rd(h, E82545_TDT));
	host_destroy(h);
}

TEST(link, "A link change interrupts, whatever the CSB's flags")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 1, &csb);

	CSB_SET(csb, guest_need_rxkick, 0);
	ATF_CHECK(!interrupts(h, csb));
	e82545_link(h->dev, false);
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(h, E82545_ICR) &
	    (E82545_ICR_LSC | E82545_ICR_TXDW | E82545_ICR_TXQE));
	host_destroy(h);
}

TEST(moderated, "ITR delays an interrupt that the CSB asks for")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 1, &csb);

	host_wr(h, E82545_ITR, 1000);
	host_advance(h, 1000000);
	CSB_SET(csb, guest_need_txkick, 1);
	ATF_CHECK(interrupts(h, csb));
	ATF_CHECK(!host_line(h));
	guest_frames(h, 1);
	guest_send(h, csb);
	host_run(h);
	ATF_CHECK(!host_line(h));
	host_advance(h, 255999);
	ATF_CHECK(!host_line(h));
	host_advance(h, 1);
	ATF_CHECK(host_line(h));
	host_destroy(h);
}

TEST(bad_tail, "A guest_tdt outside the ring is counted once and ignored")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 5, &csb);
	static const uint32_t bad[] = { 64, 65536, 0x80000000, UINT32_MAX - 1 };
	unsigned int i;

	for (i = 0; i < nitems(bad); i++) {
		guest_frames(h, 1);
		guest_send(h, csb);
		ATF_CHECK(e82545_tx(h->dev));
		CSB_SET(csb, guest_tdt, bad[i]);
		guest_rounds(h);
		ATF_CHECK_EQ(1, CSB_GET(csb, host_need_txkick));
		ATF_CHECK_EQ(i + 1, host_sent(h));
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_CSB_BAD));
		ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_KICK_SAVED));
	}
	/* A kick with another tail is used, whatever guest_tdt is. */
	guest_frames(h, 1);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(nitems(bad) + 1, host_sent(h));
	host_destroy(h);
}

TEST(bad_ring, "Polling a ring outside guest memory ends")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 3, &csb);

	host_wr(h, E82545_TDBAH, 1);
	guest_frames(h, 1);
	guest_send(h, csb);
	ATF_CHECK_EQ(4, guest_rounds(h));
	ATF_CHECK_EQ(1, CSB_GET(csb, host_need_txkick));
	host_wr(h, E82545_TDLEN, 0);
	guest_send(h, csb);
	guest_rounds(h);
	ATF_CHECK_EQ(0, host_sent(h));
	host_wr(h, E82545_TDBAH, 0);
	host_wr(h, E82545_TDLEN, 64 * 16);
	host_run(h);
	ATF_CHECK_EQ(1, host_sent(h));
	host_destroy(h);
}

TEST(last_kick, "Of several writes to TDT before a batch the last one counts")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 64, 2048, 1, &csb);

	guest_frames(h, 3);
	/* Invalid: the register's index is used. */
	CSB_SET(csb, guest_tdt, 64);
	host_wr(h, E82545_TDT, 1);
	host_wr(h, E82545_TDT, 3);
	(void)guest_rounds(h);
	ATF_CHECK_EQ(3, host_sent(h));
	ATF_CHECK_EQ(3, host_rd(h, E82545_TDH));
	host_destroy(h);
}

/* Within a batch, guest_tdt becomes invalid. */
static void
post_bad(struct host *h)
{
	h->tx_hook = NULL;
	CSB_SET(hooked, guest_tdt, 64);
}

TEST(late_tail, "A guest_tdt that changes while the host goes to sleep, as "
    "the mode is off, keeps it awake")
{
	struct host *h = guest_up(64, 8, 2048, 2, &hooked);

	guest_frames(h, 1);
	guest_send(h, hooked);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK(e82545_tx(h->dev) != E82545_TX_IDLE);
	ATF_CHECK_EQ(1, CSB_GET(hooked, host_txcycles));
	ATF_CHECK(e82545_tx(h->dev) != E82545_TX_IDLE);
	ATF_CHECK_EQ(2, CSB_GET(hooked, host_txcycles));
	guest_frames(h, 1);
	CSB_SET(hooked, guest_tdt, h->txtail);
	CSB_SET(hooked, guest_csb_on, 0);
	h->tx_hook = post_bad;
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(2, host_sent(h));
	/* It counts empty rounds again. */
	CSB_SET(hooked, guest_csb_on, 1);
	ATF_CHECK(e82545_tx(h->dev) != E82545_TX_IDLE);
	ATF_CHECK_EQ(0, CSB_GET(hooked, host_need_txkick));
	ATF_CHECK_EQ(1, CSB_GET(hooked, host_txcycles));
	host_destroy(h);
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
	struct paravirt_csb *csb;
	struct host *h;
	unsigned int i;

	for (i = 0; i < nitems(t); i++) {
		h = guest_up(64, 8, 2048, 0, &csb);
		host_wr(h, E82545_IMC, E82545_ICR_ALL);
		host_wr(h, E82545_IMS, E82545_ICR_TXDW);
		host_wr(h, E82545_TIDV, 1000);
		CSB_SET(csb, guest_need_txkick, 1);
		host_tx_legacy(h, host_alloc(h, 60, 1), 60, E82545_TXD_EOP |
		    E82545_TXD_IFCS | t[i].cmd);
		guest_send(h, csb);
		host_run(h);
		ATF_CHECK_EQ_MSG(!t[i].delayed, host_raised(h), "%u", i);
		host_destroy(h);
	}
}

TEST(direct, "TDT is stored at once if the transmitter is off, else with the "
    "next batch, in either mode")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 0, &csb);

	guest_frames(h, 1);
	guest_send(h, csb);
	host_run(h);
	host_wr(h, E82545_TDT, 5);
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDT));
	host_clear(h, E82545_TCTL, E82545_TCTL_EN);
	host_wr(h, E82545_TDT, 7);
	ATF_CHECK_EQ(7, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, h->dev->csb.tdt.kept);
	host_wr(h, E82545_TDT, 1);
	host_set(h, E82545_TCTL, E82545_TCTL_EN);
	CSB_SET(csb, guest_csb_on, 0);
	host_run(h);
	host_wr(h, E82545_TDT, 1);
	host_run(h);
	host_wr(h, E82545_TDT, 2);
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDT));
	host_run(h);
	ATF_CHECK_EQ(2, host_rd(h, E82545_TDT));
	host_destroy(h);
}

TEST(first_threshold, "A guest_txkick_at of 0 is an index if it was another "
    "value when the block was placed")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 0, &csb);

	guest_frames(h, 63);
	guest_send(h, csb);
	host_run(h);
	/* No batch has looked at the field. */
	host_wr(h, E82545_CSBAL, 0);
	guest_place(h, (uint8_t *)csb - h->ram);
	host_rd(h, E82545_ICR);
	CSB_SET(csb, guest_txkick_at, 0);
	guest_frames(h, 2);
	guest_send(h, csb);
	host_run(h);
	ATF_CHECK_EQ(E82545_ICR_TXDW, host_rd(h, E82545_ICR) &
	    E82545_ICR_TXDW);
	host_destroy(h);
}

TEST(odd_threshold, "guest_txkick_at in a ring of 24, and one behind its end "
    "when the ring goes round")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(24, 8, 2048, 1, &csb);
	unsigned int i;

	for (i = 1; i <= 48; i++) {
		if (i % 12 == 1)
			CSB_SET(csb, guest_txkick_at, (h->txtail + 8) % 24);
		ATF_CHECK_EQ_MSG(i % 12 == 8, interrupts(h, csb), "%u", i);
	}
	CSB_SET(csb, guest_txkick_at, 24);
	for (i = 0; i < 24; i++)
		ATF_CHECK(!interrupts(h, csb));
	host_destroy(h);
}

TEST(odd_batches, "Batches of any size in a ring of 24")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(24, 8, 2048, 0, &csb);
	unsigned int i, n, sent = 0;

	for (n = 1; n < 24; n++)
		for (i = 0; i < 3; i++) {
			guest_frames(h, n);
			guest_send(h, csb);
			host_run(h);
			sent += n;
			ATF_CHECK_EQ_MSG(sent, host_sent(h), "%u", n);
		}
	host_destroy(h);
}

TEST(old_tail, "DD in the last descriptor makes guest_tdt old with the mode "
    "off, and not with the mode on; TDH outside of the ring makes it void")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 8, 2048, 9, &csb);
	unsigned int i;

	guest_frames(h, 1);
	guest_send(h, csb);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	guest_frames(h, 4);
	host_txd(h, 4)->legacy.status = E82545_TXD_DD;
	ATF_CHECK(!guest_send(h, csb));
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(5, host_sent(h));
	for (i = 0; i < 5; i++)
		ATF_CHECK(host_tx_done(h, i));
	CSB_SET(csb, guest_csb_on, 0);
	CSB_SET(csb, guest_tdt, 3);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(5, host_sent(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_TX_KICK_SAVED));
	host_destroy(h);

	h = guest_up(64, 8, 2048, 0, &csb);
	guest_frames(h, 1);
	guest_send(h, csb);
	host_run(h);
	host_wr(h, E82545_TDH, 64);
	guest_frames(h, 1);
	guest_send(h, csb);
	guest_rounds(h);
	/* The first TDT after TDH is stored as it stands, and no other. */
	ATF_CHECK_EQ(2, host_rd(h, E82545_TDT));
	guest_frames(h, 1);
	guest_send(h, csb);
	guest_rounds(h);
	ATF_CHECK_EQ(2, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(1, host_sent(h));
	host_destroy(h);
}

TEST_PROGRAM
