/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which index becomes TDT: guest_tdt, the register's, or one kept aside.
 */

#include <sys/param.h>

#include "e82545_guest.h"
#include "e82545_impl.h"

#define	HIGH	((3ULL << 32) + HOST_RAM)	/* a gpa above 4 GB */

/* Guest memory is at HIGH, too, and so is all that a test put below. */
static void *
high_map(void *arg, uint64_t gpa, size_t len)
{
	return (host_ops.eo_map(arg, gpa >= HIGH ? gpa - HIGH : gpa, len));
}

/* The host polls the transmit ring at HIGH; `n' frames are sent. */
static struct host *
high_up(unsigned int n, struct paravirt_csb **csbp)
{
	static struct e82545_ops ops;
	struct host *h = guest_up(64, 8, 2048, 1000, csbp);

	ops = host_ops;
	ops.eo_map = high_map;
	h->dev->ops = &ops;
	/* Not aligned to more than a descriptor. */
	h->txring = host_alloc(h, 65 * 16, 32) + 16;
	host_wr(h, E82545_TDBAL, HOST_RAM + h->txring);
	host_wr(h, E82545_TDBAH, 3);
	guest_frames(h, n);
	ATF_REQUIRE(guest_send(h, *csbp));
	ATF_REQUIRE_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_REQUIRE_EQ(n, host_sent(h));
	return (h);
}

TEST(high_ring, "DD makes guest_tdt old with the mode off, also in a ring above "
    "4 GB")
{
	struct paravirt_csb *csb;
	struct host *h = high_up(5, &csb);

	/* The guest has not taken this frame, but the one before. */
	ATF_CHECK(host_tx_done(h, 2));
	host_txd(h, 1)->legacy.status = 0;
	CSB_SET(csb, guest_csb_on, 0);
	CSB_SET(csb, guest_tdt, 3);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(5, host_sent(h));
	host_destroy(h);

	h = high_up(5, &csb);
	guest_frames(h, 2);
	CSB_SET(csb, guest_csb_on, 0);
	CSB_SET(csb, guest_tdt, h->txtail);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(7, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(7, host_sent(h));
	host_destroy(h);
}

TEST(no_ring, "guest_tdt counts with the mode off if the ring is outside guest "
    "memory, and its frames are sent when it is not")
{
	struct paravirt_csb *csb;
	struct host *h = high_up(5, &csb);

	guest_frames(h, 2);
	host_wr(h, E82545_TDBAH, 4);
	CSB_SET(csb, guest_csb_on, 0);
	CSB_SET(csb, guest_tdt, h->txtail);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(5, host_sent(h));
	host_wr(h, E82545_TDBAH, 3);
	host_run(h);
	ATF_CHECK_EQ(7, host_sent(h));
	host_destroy(h);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, high_ring);
	ATF_TP_ADD_TC(tp, no_ring);

	return (atf_no_error());
}
