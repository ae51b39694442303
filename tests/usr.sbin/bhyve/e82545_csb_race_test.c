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

/* A driver's transmit side. */
struct sender {
	struct host	*h;
	uint64_t	 gpa;		/* the frame */
	uint32_t	 clean;		/* next descriptor to come back */
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
sender_put(struct sender *s, unsigned int n)
{
	for (; n > 0; n--)
		host_tx_legacy(s->h, s->gpa, 60, TXD_LAST);
	(void)guest_send(s->h);
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
		CSB_SET(h, guest_csb_on, 0);
		CSB_BARRIER();
		host_tx_go(h);
		break;
	case 1:				/* CSBAL cleared, and set again */
		guest_place(h, 0);
		memset(h->csb, 0xa5, NET_PARAVIRT_CSB_SIZE);
		host_tx_go(h);
		wait_sent(s);
		ATF_REQUIRE_EQ(0xa5a5a5a5, CSB_GET(h, host_tdh));
		ATF_REQUIRE_EQ(0xa5a5a5a5, CSB_GET(h, host_need_txkick));
		h->brk = gpa;
		guest_alloc(h);
		CSB_SET(h, guest_tdt, h->txtail);
		CSB_SET(h, guest_rdt, h->rxtail);
		CSB_SET(h, host_txcycles_lim, 50);
		guest_place(h, gpa);
		break;
	case 2:				/* reset, with frames under way */
		host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		ATF_REQUIRE_EQ(1, CSB_GET(h, host_need_txkick));
		s->clean = 0;
		CSB_SET(h, guest_tdt, 0);
		CSB_SET(h, guest_rdt, 7);
		h->brk = brk;
		host_up(h, 64, 8, 2048);
		break;
	case 3:				/* the transmitter off and on */
		host_clear(h, E82545_TCTL, E82545_TCTL_EN);
		host_set(h, E82545_TCTL, E82545_TCTL_EN);
		host_tx_go(h);
		break;
	}
	CSB_SET(h, guest_csb_on, 1);
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
	s.h = guest_up(64, 8, 2048, 50);
	s.h->tx_discard = true;
	gpa = (uint8_t *)s.h->csb - s.h->ram;
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
