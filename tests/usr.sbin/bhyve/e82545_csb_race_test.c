/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guest and host run in threads and learn of each other's work only by kicks
 * and interrupts: if one is lost, wait_until() fails.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_guest.h"
#include "test.h"
#include "wait_until.h"

#define	FRAMES	100000

/* A driver's transmit side. */
struct sender {
	struct host	*h;
	struct paravirt_csb *csb;
	uint64_t	 gpa;		/* the frame */
	uint32_t	 clean;		/* next descriptor to come back */
	bool		 threshold;	/* guest_txkick_at, not need_txkick */
	unsigned int	 kicks, waits;
};

static uint32_t
sender_room(struct sender *s)
{
	struct host *h = s->h;

	while (s->clean != h->txtail && host_tx_done(h, s->clean))
		s->clean = (s->clean + 1) % h->ntxd;
	return ((s->clean + h->ntxd - h->txtail - 1) % h->ntxd);
}

static void
wait_interrupt(struct host *h)
{
	wait_until(host_line(h), "no interrupt after %u, TDH %u, RDH %u",
	    host_raised(h), host_rd(h, E82545_TDH), host_rd(h, E82545_RDH));
	host_rd(h, E82545_ICR);
}

/* Wait, by interrupts, for `n' free descriptors. */
static void
sender_wait(struct sender *s, uint32_t n)
{
	struct host *h = s->h;

	while (sender_room(s) < n) {
		if (s->threshold)
			CSB_SET(s->csb, guest_txkick_at,
			    (h->txtail + n + 1) % h->ntxd);
		else
			CSB_SET(s->csb, guest_need_txkick, 1);
		CSB_BARRIER();
		if (sender_room(s) < n) {
			s->waits++;
			wait_interrupt(h);
		}
		CSB_SET(s->csb, guest_txkick_at, NET_PARAVIRT_NONE);
		CSB_SET(s->csb, guest_need_txkick, 2);
	}
}

static void
sender_put(struct sender *s, unsigned int n)
{
	for (; n > 0; n--)
		host_tx_legacy(s->h, s->gpa, 60, TXD_LAST);
	s->kicks += guest_send(s->h, s->csb);
}

static void
transmit(uint32_t rounds, bool threshold)
{
	struct sender s;
	uint32_t seed = 1;
	unsigned int n, sent;

	memset(&s, 0, sizeof(s));
	s.h = guest_up(64, 8, 2048, rounds, &s.csb);
	s.h->tx_discard = true;
	s.gpa = host_alloc(s.h, 60, 1);
	s.threshold = threshold;
	host_start_threads(s.h);
	for (sent = 0; sent < FRAMES; sent += n) {
		n = 1 + test_random(&seed) % 8;
		if (sender_room(&s) < n)
			sender_wait(&s, test_random(&seed) % 2 ? 63 : n);
		sender_put(&s, n);
		/* Now and then the host runs out of frames. */
		if (test_random(&seed) % 16 == 0)
			sender_wait(&s, 63);
	}
	sender_wait(&s, 63);
	host_stop_threads(s.h);
	ATF_CHECK_EQ(sent, host_counter(s.h, E82545_C_TX_FRAME));
	/* host_up() wrote TDT once. */
	ATF_CHECK_EQ(s.kicks + 1, host_counter(s.h, E82545_C_TX_KICK));
	ATF_CHECK(s.waits > 0);
	ATF_CHECK_EQ(0, host_counter(s.h, E82545_C_CSB_BAD));
	host_destroy(s.h);
}

TEST(tx_boolean, "With guest_need_txkick no kick and no interrupt is lost")
{
	transmit(0, false);
	transmit(50, false);
}

TEST(tx_threshold, "With guest_txkick_at no kick and no interrupt is lost")
{
	transmit(0, true);
	transmit(50, true);
}

TEST(rx, "On receive no interrupt and no kick is lost")
{
	struct paravirt_csb *csb;
	struct host *h = guest_up(64, 16, 256, 0, &csb);
	uint8_t buf[256], frame[64];
	unsigned int in, out;
	uint32_t seed = 1;

	host_start_threads(h);
	in = out = 0;
	while (out < FRAMES) {
		while (in < FRAMES && in - out < 40) {
			host_make_frame(frame, sizeof(frame), host_mac, in);
			be32enc(frame + 14, in++);
			host_inject(h, frame, sizeof(frame), 1);
		}
		if (host_rx_take(h, buf, sizeof(buf), NULL) == -1) {
			guest_give(h, csb);
			CSB_SET(csb, guest_need_rxkick, 1);
			CSB_BARRIER();
			if (!host_rx_done(h, h->rxnext))
				wait_interrupt(h);
			CSB_SET(csb, guest_need_rxkick, 0);
			continue;
		}
		ATF_REQUIRE_EQ(out, be32dec(buf + 14));
		out++;
		if (test_random(&seed) % 4 == 0)
			guest_give(h, csb);
	}
	host_stop_threads(h);
	ATF_CHECK_EQ(FRAMES, host_counter(h, E82545_C_RX_FRAME));
	ATF_CHECK(host_counter(h, E82545_C_RX_STALL) > 0);
	ATF_CHECK(host_counter(h, E82545_C_RX_KICK) < FRAMES / 4);
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_BAD));
	host_destroy(h);
}

/* Wait until all that was sent is done. */
static void
wait_sent(struct sender *s)
{
	wait_until(sender_room(s) == 63, "%u of 63 descriptors free",
	    sender_room(s));
}

/* What a driver may do between two bursts. */
static void
disturb(struct sender *s, uint64_t gpa, uint64_t brk, unsigned int what)
{
	struct host *h = s->h;

	switch (what) {
	case 0:				/* off and on */
		CSB_SET(s->csb, guest_csb_on, 0);
		CSB_BARRIER();
		host_tx_go(h);
		break;
	case 1:				/* CSBAL cleared, and set again */
		guest_place(h, 0);
		memset(s->csb, 0xa5, NET_PARAVIRT_CSB_SIZE);
		host_tx_go(h);
		wait_sent(s);
		ATF_REQUIRE_EQ(0xa5a5a5a5, CSB_GET(s->csb, host_tdh));
		ATF_REQUIRE_EQ(0xa5a5a5a5, CSB_GET(s->csb, host_need_txkick));
		h->brk = gpa;
		guest_alloc(h, &s->csb);
		CSB_SET(s->csb, guest_tdt, h->txtail);
		CSB_SET(s->csb, guest_rdt, h->rxtail);
		CSB_SET(s->csb, host_txcycles_lim, 50);
		guest_place(h, gpa);
		break;
	case 2:				/* reset, with frames under way */
		host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		ATF_REQUIRE_EQ(1, CSB_GET(s->csb, host_need_txkick));
		s->clean = 0;
		CSB_SET(s->csb, guest_tdt, 0);
		CSB_SET(s->csb, guest_rdt, 7);
		h->brk = brk;
		host_up(h, 64, 8, 2048);
		break;
	case 3:				/* the transmitter off and on */
		host_clear(h, E82545_TCTL, E82545_TCTL_EN);
		host_set(h, E82545_TCTL, E82545_TCTL_EN);
		host_tx_go(h);
		break;
	}
	CSB_SET(s->csb, guest_csb_on, 1);
}

/*
 * Bursts, and one of the above in the middle.  A reset loses frames under way;
 * all others are sent once.
 */
static void
disturbed(bool resets)
{
	struct sender s;
	uint32_t seed = 1, what;
	uint64_t brk, gpa;
	unsigned int i, n, put;

	memset(&s, 0, sizeof(s));
	s.h = guest_up(64, 8, 2048, 50, &s.csb);
	s.h->tx_discard = true;
	gpa = (uint8_t *)s.csb - s.h->ram;
	s.gpa = host_alloc(s.h, 60, 1);
	brk = s.h->brk;
	put = 0;
	host_start_threads(s.h);
	for (i = 0; i < 3000; i++) {
		n = 1 + test_random(&seed) % 20;
		sender_put(&s, n);
		put += n;
		what = test_random(&seed) % 4;
		disturb(&s, gpa, brk, what == 2 && !resets ? 0 : what);
		n = 1 + test_random(&seed) % 20;
		sender_put(&s, n);
		put += n;
		wait_sent(&s);
	}
	host_stop_threads(s.h);
	if (resets)
		ATF_CHECK(host_counter(s.h, E82545_C_TX_FRAME) <= put);
	else
		ATF_CHECK_EQ(put, host_counter(s.h, E82545_C_TX_FRAME));
	ATF_CHECK_EQ(0, host_counter(s.h, E82545_C_CSB_BAD));
	host_destroy(s.h);
}

TEST(disturbed, "After a reset, or when the CSB is turned off or moved, frames "
    "are sent")
{
	disturbed(true);
}

TEST(switched, "When the CSB is turned off or moved, each frame is sent once")
{
	disturbed(false);
}

TEST_PROGRAM
