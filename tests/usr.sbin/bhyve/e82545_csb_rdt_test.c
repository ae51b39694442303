/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which buffers are posted, if RDT and guest_rdt differ: after the ring was
 * started, with bus mastering on or off, when the CSB was turned on or off, and
 * after a restore.
 *
 * A ring is started by a write to RDH.  Drivers that exist write RDT then and
 * leave guest_rdt as it was.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"

#define	NRXD	24		/* not a power of two */

static struct host *
up(void)
{
	return (guest_up(64, NRXD, 2048, 1));
}

/* How the ring is started. */
static const struct start {
	bool	bus;		/* bus mastering is on then */
	bool	on;		/* as is the CSB; it is on afterwards */
	bool	rdt_first;	/* RDT is written before RDH */
} starts[] = {
	{ true, true, false }, { false, true, false }, { true, false, false },
	{ true, true, true }, { false, true, true }, { true, false, true },
};

/* Start the ring with RDT; guest_rdt is `old', which the host has not read. */
static struct host *
start(const struct start *s, uint32_t old, uint32_t rdt)
{
	struct host *h = up();

	CSB_SET(h, guest_csb_on, s->on);
	guest_inject(h, 1);
	guest_take(h, 1);
	e82545_bus_master(h->dev, s->bus);
	CSB_SET(h, guest_rdt, old);
	if (s->rdt_first)
		host_wr(h, E82545_RDT, rdt);
	host_wr(h, E82545_RDH, 0);
	if (!s->rdt_first)
		host_wr(h, E82545_RDT, rdt);
	ATF_CHECK_EQ(rdt, host_rd(h, E82545_RDT));
	CSB_SET(h, guest_csb_on, 1);
	e82545_bus_master(h->dev, true);
	h->rxnext = 0;
	h->rxtail = rdt;
	return (h);
}

/* Frames received since start(). */
static unsigned int
received(struct host *h)
{
	return (host_counter(h, E82545_C_RX_FRAME) - 1);
}

TEST(unchanged, "A guest_rdt that is unchanged since the start does not post "
    "buffers that RDT does not post")
{
	const struct start *s;
	struct host *h;
	uint32_t old, rdt, used;

	for (s = starts; s < starts + nitems(starts); s++)
		for (old = 2; old < NRXD; old++)
			for (used = 0; used < old; used += MAX(1, old / 4)) {
				/* The guest takes them, and posts none. */
				rdt = used == 0 ? 1 : used;
				h = start(s, old, rdt);
				guest_inject(h, used);
				guest_take(h, used);
				guest_inject(h, 2 * NRXD);
				ATF_CHECK_EQ_MSG(rdt, received(h),
				    "start %td, guest_rdt %u, %u used: %u",
				    s - starts, old, used, received(h));
				ATF_CHECK_EQ(rdt, host_rd(h, E82545_RDT));
				host_destroy(h);
			}
}

TEST(come_round, "A guest_rdt that is unchanged since the start counts when "
    "the guest stores it again, after the host has read the block")
{
	const struct start *s;
	struct host *h;
	uint32_t old, used;

	for (s = starts; s < starts + 3; s++)
		for (used = 1; used < NRXD - 1; used++)
			for (old = 0; old < used; old += MAX(1, used / 4)) {
				h = start(s, old, NRXD - 1);
				guest_receive(h, used);
				CSB_SET(h, guest_rdt, old);
				/* Before the ring runs dry. */
				guest_offer(h, 2 * NRXD);
				e82545_rx(h->dev);
				ATF_CHECK_EQ_MSG(NRXD + old, received(h),
				    "start %td, guest_rdt %u, %u used: %u",
				    s - starts, old, used, received(h));
				host_destroy(h);
			}
}

HOST_TEST(rdt_first_bad, up(), "An RDT that is not in the ring counts at the "
    "start only, and is never reached")
{
	host_wr(h, E82545_RDT, NRXD + 1);
	host_wr(h, E82545_RDH, 5);
	guest_inject(h, 2 * NRXD);
	ATF_CHECK_EQ(NRXD + 1, host_rd(h, E82545_RDT));
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_BAD));
	ATF_CHECK_EQ(5, host_rd(h, E82545_RDH));
	/* The first since RDH was written, and one that is not. */
	host_wr(h, E82545_RDT, NRXD + 1);
	host_wr(h, E82545_RDT, NRXD + 2);
	guest_inject(h, 1);
	ATF_CHECK_EQ(NRXD + 1, host_rd(h, E82545_RDT));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_BAD));
}

HOST_TEST(low_dry, start(&starts[0], NRXD - 2, 5), "RXDMT0 is set after the "
    "ring has run dry, and the host has read a guest_rdt that posts less")
{
	guest_inject(h, 6);
	ATF_CHECK_EQ(5, guest_take(h, 5));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	host_rd(h, E82545_ICR);
	CSB_SET(h, guest_rdt, 10);
	ATF_REQUIRE(h->timer_ns != 0);
	host_advance(h, h->timer_ns - h->now_ns);
	ATF_CHECK_EQ(10, host_rd(h, E82545_RDT));
	CSB_SET(h, guest_rdt, 18);
	e82545_rx(h->dev);
	ATF_CHECK_EQ(0, host_rx_pending(h));
	ATF_CHECK_EQ(E82545_ICR_RXT0 | E82545_ICR_RXDMT0,
	    host_rd(h, E82545_ICR));
}

HOST_TEST(disabled, up(), "With the receiver off, the host does not read the "
    "CSB")
{
	const uint32_t rctl = host_rd(h, E82545_RCTL);

	host_wr(h, E82545_RCTL, 0);
	CSB_SET(h, guest_csb_on, 0);
	guest_inject(h, 1);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_DISABLED));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_OFF));
	host_wr(h, E82545_RCTL, rctl);
	guest_inject(h, 1);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_OFF));
}

/* What the guest does within a batch; the CSB is where start() put it. */

/* At the first frame of a batch, the guest posts what it has taken. */
static void
post_by_rdt(struct host *h)
{
	h->rx_hook = NULL;
	host_rx_post(h);
}

HOST_TEST(not_mapped, up(), "If the CSB's address is invalid, RDT is used "
    "when a batch begins, and if it is written during one, when the ring runs "
    "dry")
{
	guest_place(h, HOST_RAM);
	guest_receive(h, 10);
	host_rx_post(h);
	guest_receive(h, 10);
	ATF_CHECK_EQ(9, host_rd(h, E82545_RDT));
	h->rx_hook = post_by_rdt;
	guest_inject(h, 2 * NRXD);
	ATF_CHECK_EQ(NRXD - 1 + 20, host_counter(h, E82545_C_RX_FRAME));
}

/* The ring is started, and the guest has posted 6 by guest_rdt and a kick. */
static struct host *
kicked(void)
{
	struct host *h = start(&starts[0], NRXD - 2, 5);

	CSB_SET(h, guest_rdt, 6);
	host_wr(h, E82545_RDT, 6);
	guest_inject(h, 1);
	return (h);
}

TEST(placed_again, "What guest_rdt was when the ring was started does not "
    "matter to another CSB")
{
	static const uint32_t rdt[] = { 9, 0 };
	struct host *h;
	uint64_t gpa;
	unsigned int i;

	for (i = 0; i < nitems(rdt); i++) {
		h = start(&starts[0], NRXD - 2, 5);
		guest_receive(h, 3);
		CSB_SET(h, guest_rdt, rdt[i]);
		host_wr(h, E82545_RDH, 3);
		gpa = guest_alloc(h);
		CSB_SET(h, guest_rdt, rdt[i]);
		CSB_SET(h, guest_csb_on, 1);
		guest_place(h, gpa);
		guest_inject(h, 2 * NRXD);
		ATF_CHECK_EQ_MSG(rdt[i] == 0 ? NRXD : rdt[i], received(h),
		    "%u: %u", rdt[i], received(h));
		host_destroy(h);
	}
}

HOST_TEST(look_bus_off, kicked(), "A look with the bus just on does not take "
    "an old guest_rdt for a new one")
{
	host_rd(h, E82545_ICR);
	CSB_SET(h, guest_need_rxkick, 0);
	guest_inject(h, 1);
	ATF_REQUIRE(h->timer_ns != 0);
	e82545_bus_master(h->dev, false);
	CSB_SET(h, guest_rdt, NRXD - 2);
	host_wr(h, E82545_RDH, 0);
	host_wr(h, E82545_RDT, 5);
	e82545_bus_master(h->dev, true);
	host_advance(h, h->timer_ns - h->now_ns);
	ATF_CHECK_EQ(5, host_rd(h, E82545_RDT));
	guest_inject(h, 2 * NRXD);
	ATF_CHECK_EQ(2 + 5, received(h));
}

/*
 * A snapshot: what the restored model finds out by itself.
 */

#define	RECHECK_NS		10000000	/* when the host looks again */
#define	NPOLLED			8		/* buffers */

/* A host whose guest polls, with `n' frames from the network. */
static struct host *
polling(unsigned int n)
{
	struct host *h = guest_up(64, NPOLLED, 2048, 1);

	CSB_SET(h, guest_need_rxkick, 0);
	CSB_SET(h, guest_need_txkick, 0);
	guest_inject(h, n);
	return (h);
}

TEST(restored, "A guest_rdt of 0, too, may be new when a restored model first "
    "looks")
{
	struct host *h = polling(1);

	CSB_SET(h, guest_rdt, 0);
	h = guest_migrate(h);
	e82545_resume(h->dev);
	host_run(h);
	host_advance(h, 0);
	ATF_CHECK_EQ(0, host_raised(h));
	host_advance(h, RECHECK_NS);
	ATF_CHECK_EQ(1, host_raised(h));
	host_destroy(h);
}

TEST_PROGRAM
