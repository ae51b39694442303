/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The transmit side wakes up, polls, and goes to sleep: what decides about it
 * besides frames, and when the block is not accessed.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"
#include "test.h"

static unsigned int nmaps;

static void
count_map(struct host *h __unused)
{
	nmaps++;
}

HOST_TEST(kicks, guest_awake(1, 3), "A kick without a frame wakes the host for "
    "host_txcycles_lim rounds, and one while it polls does not add rounds")
{
	unsigned int i;

	ATF_CHECK_EQ(4, guest_rounds(h));
	for (i = 0; i < 3; i++) {
		host_tx_go(h);
		ATF_CHECK_EQ(4, guest_rounds(h));
		ATF_CHECK_EQ(3, CSB_GET(h, host_txcycles));
		ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
	}
	host_tx_go(h);
	for (i = 1; i <= 3; i++) {
		ATF_CHECK(e82545_tx(h->dev) != E82545_TX_IDLE);
		ATF_CHECK_EQ(i, CSB_GET(h, host_txcycles));
		host_tx_go(h);
	}
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
}

TEST(disabled, "With the transmitter off, guest_tdt does nothing, and the "
    "block is not mapped once the host sleeps")
{
	struct host *h = guest_awake(1, 1000);

	host_clear(h, E82545_TCTL, E82545_TCTL_EN);
	ATF_CHECK(!guest_post(h, 1));
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_TX_KICK_SAVED));
	nmaps = 0;
	h->map_hook = count_map;
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(0, nmaps);
	host_destroy(h);

	/* Turned off before a kick is served: TDT is the register. */
	h = guest_awake(1, 1000);
	CSB_SET(h, guest_tdt, 4);
	host_wr(h, E82545_TDT, 6);
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDT));
	host_clear(h, E82545_TCTL, E82545_TCTL_EN);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(6, host_rd(h, E82545_TDT));
	host_destroy(h);
}

/* A host that polls, and whose block is guest memory's last page. */
static struct host *
last_page(void)
{
	struct host *h = host_create_csb(HOST_RAM);
	const uint64_t gpa = HOST_RAM - NET_PARAVIRT_CSB_SIZE;

	h->csb = host_mem(h, gpa, NET_PARAVIRT_CSB_SIZE);
	host_up(h, 64, 8, 2048);
	CSB_SET(h, guest_rdt, h->rxtail);
	CSB_SET(h, host_txcycles_lim, 1000);
	CSB_SET(h, guest_csb_on, 1);
	guest_place(h, gpa);
	host_run(h);
	guest_frames(h, 1);
	host_tx_go(h);
	CSB_SET(h, guest_tdt, 1);
	ATF_REQUIRE_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_REQUIRE_EQ(0, CSB_GET(h, host_need_txkick));
	return (h);
}

TEST(gone, "When the block's page is gone polling ends, and TDT works; when it "
    "is back the next kick wakes the host")
{
	struct host *h = last_page();

	h->ram_size -= NET_PARAVIRT_CSB_SIZE;
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	guest_store(h, 2);
	host_tx_go(h);
	/* The mode is what it was. */
	ATF_CHECK_EQ(1, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(3, host_sent(h));
	ATF_CHECK_EQ(3, host_rd(h, E82545_TDT));
	h->ram_size += NET_PARAVIRT_CSB_SIZE;
	guest_store(h, 2);
	host_tx_go(h);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(5, host_sent(h));
	host_destroy(h);

	/* Without a kick, the host finds frames when it checks again. */
	h = last_page();
	h->ram_size -= NET_PARAVIRT_CSB_SIZE;
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	h->ram_size += NET_PARAVIRT_CSB_SIZE;
	guest_store(h, 1);
	host_advance(h, 10000000);
	host_run(h);
	ATF_CHECK_EQ(2, host_sent(h));
	host_destroy(h);

	/* In a reset. */
	h = last_page();
	h->ram_size -= NET_PARAVIRT_CSB_SIZE;
	host_tx_go(h);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	h->ram_size += NET_PARAVIRT_CSB_SIZE;
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	host_destroy(h);
}

TEST(reset, "A reset ends polling, or a kick that was not served, and leaves "
    "the block alone from then on")
{
	struct host *h;
	uint8_t page[NET_PARAVIRT_CSB_SIZE];
	unsigned int kicked;

	memset(page, 0xa5, sizeof(page));
	for (kicked = 0; kicked < 2; kicked++) {
		h = kicked ? guest_up(64, 8, 2048, 1000) :
		    guest_awake(1, 1000);
		if (kicked) {
			/* As a guest may do itself. */
			CSB_SET(h, host_need_txkick, 0);
			host_tx_go(h);
		}
		host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		ATF_CHECK_EQ_MSG(1, CSB_GET(h, host_need_txkick), "%u",
		    kicked);
		memcpy(h->csb, page, sizeof(page));
		ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
		ATF_CHECK_EQ_MSG(0, memcmp(page, h->csb, sizeof(page)), "%u",
		    kicked);
		host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		ATF_CHECK_EQ_MSG(0, memcmp(page, h->csb, sizeof(page)), "%u",
		    kicked);
		host_destroy(h);
	}

	/* Without a block, no memory is mapped. */
	h = host_create_csb(HOST_RAM);
	nmaps = 0;
	h->map_hook = count_map;
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0, nmaps);
	host_destroy(h);
}

/* A reset with the bus off; then the bus and the transmitter are on again. */
static void
reset_bus_off(struct host *h)
{
	e82545_bus_master(h->dev, false);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	host_wr(h, E82545_TDBAL, h->txring);
	host_wr(h, E82545_TDLEN, h->ntxd * 16);
	host_wr(h, E82545_TCTL, E82545_TCTL_EN);
	e82545_bus_master(h->dev, true);
}

TEST(bus_off, "A reset with the bus off ends polling, and a kick that was not "
    "served, with the first batch after it")
{
	struct host *h;
	unsigned int kicked;

	for (kicked = 0; kicked < 2; kicked++) {
		h = guest_awake(1, 1000);
		if (kicked) {
			CSB_SET(h, host_txcycles_lim, 0);
			guest_rounds(h);
			CSB_SET(h, host_need_txkick, 0);
			host_tx_go(h);
		}
		CSB_SET(h, guest_tdt, 5);
		reset_bus_off(h);
		ATF_CHECK_EQ(0, CSB_GET(h, host_need_txkick));
		ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
		ATF_CHECK_EQ_MSG(1, CSB_GET(h, host_need_txkick), "%u",
		    kicked);
		/* An index of before the reset. */
		ATF_CHECK_EQ_MSG(0, host_rd(h, E82545_TDT), "%u", kicked);
		host_destroy(h);
	}

	/* There is nothing to end while the host sleeps. */
	h = guest_up(64, 8, 2048, 0);
	CSB_SET(h, host_need_txkick, 2);
	reset_bus_off(h);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	ATF_CHECK_EQ(2, CSB_GET(h, host_need_txkick));
	host_destroy(h);

	h = last_page();
	h->ram_size -= NET_PARAVIRT_CSB_SIZE;
	reset_bus_off(h);
	ATF_CHECK_EQ(E82545_TX_IDLE, e82545_tx(h->dev));
	h->ram_size += NET_PARAVIRT_CSB_SIZE;
	host_destroy(h);
}

TEST_PROGRAM
