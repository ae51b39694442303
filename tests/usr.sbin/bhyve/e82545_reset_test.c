/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Device reset and pause: which state they change, also under load.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <pthread.h>
#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "e82545_regs.h"
#include "test.h"

/* Change every read-write register from its reset value. */
static void
dirty(struct host *h)
{
	unsigned int i, j;
	uint32_t o;

	FOREACH_REG(i, j, o)
		if (regs[i].kind == REG_RW && o != E82545_RCTL &&
		    o != E82545_TCTL)
			host_wr(h, o, ~regs[i].reset);
}

static void
reset_by_ctrl(struct host *h)
{
	host_wr(h, 0x0000, E82545_CTRL_RST | E82545_CTRL_SLU);
}

static void
reset_by_dup(struct host *h)
{
	host_wr(h, 0x0004, E82545_CTRL_RST);
}

/* As FreeBSD and Linux do for this adapter. */
static void
reset_by_io(struct host *h)
{
	reg_io_wr(h, 0x0000, host_rd(h, 0x0000) | E82545_CTRL_RST);
}

static void
reset_by_pci(struct host *h)
{
	e82545_reset(h->dev);
}

TEST(reset, "Each kind of reset gives all registers their reset values")
{
	static void (*const how[])(struct host *) = {
		reset_by_ctrl, reset_by_dup, reset_by_io, reset_by_pci
	};
	struct host *h;
	unsigned int i;

	h = host_create(HOST_RAM);
	for (i = 0; i < nitems(how); i++) {
		dirty(h);
		reg_count(h, E82545_GPRC, 5);
		reg_count64(h, E82545_TOTL, 0x500000005);
		host_rd(h, E82545_TOTL);
		host_wr(h, E82545_CTRL, E82545_CTRL_SLU);
		host_wr(h, E82545_IMS, ALL);
		host_wr(h, E82545_ITR, 0);
		host_wr(h, E82545_ICS, E82545_ICR_RXDMT0);
		ATF_CHECK(host_line(h));
		how[i](h);
		ATF_CHECK(!host_line(h));
		/* The high half latched by the read of TOTL is cleared. */
		ATF_CHECK_EQ(0, host_rd(h, E82545_TOTH));
		check_reset_values(h);
		ATF_CHECK_EQ(i + 1, host_counter(h, E82545_C_RESET));
		/* No timer is armed. */
		ATF_CHECK_EQ(0, h->timer_ns);
	}
	host_destroy(h);
}

TEST(power, "Another guest finds neither what one wrote to the EEPROM nor "
    "frames that were for that one")
{
	const uint32_t word = 5 << 2 | E82574_EERW_START;
	struct host *h = host_create_82574(HOST_RAM);
	uint8_t frame[60];
	unsigned int i;

	host_up(h, 8, 8, 2048);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (i = 0; i < 9; i++)
		host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(7, host_counter(h, E82545_C_RX_FRAME));
	host_wr(h, E82574_EEWR, 0xbeefU << E82574_EERW_DATA_SHIFT |
	    E82574_EERW_START);
	host_wr(h, E82574_EEWR, 0xbeefU << E82574_EERW_DATA_SHIFT | word);
	e82545_reset(h->dev);
	ATF_CHECK_EQ(0xbeef, host_rd(h, E82545_RAL(0)) & 0xffff);
	e82545_power_cycle(h->dev);
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_RX_DISABLED));
	ATF_CHECK_EQ(le32dec(host_mac), host_rd(h, E82545_RAL(0)));
	host_wr(h, E82545_EERD, word);
	ATF_CHECK_EQ(0, host_rd(h, E82545_EERD) >> E82574_EERW_DATA_SHIFT);
	host_up(h, 8, 8, 2048);
	host_run(h);
	ATF_CHECK_EQ(7, host_counter(h, E82545_C_RX_FRAME));
	host_destroy(h);
}

/* Call everything that may access guest memory, which is inaccessible. */
static void
use_without_memory(struct host *h)
{
	uint8_t frame[64];

	ATF_REQUIRE_EQ(0, mprotect(h->ram, h->ram_size, PROT_NONE));
	host_make_frame(frame, sizeof(frame), host_mac, 2);
	host_inject(h, frame, sizeof(frame), 1);
	host_wr(h, E82545_TDT, 1);
	host_wr(h, E82545_RDT, 6);
	host_run(h);
	e82545_rx_direct(h->dev, &h->source);
	host_advance(h, 1000000000);
	host_wr(h, E82545_CSBAL, 0x8000);
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_RCTL, E82545_RCTL_EN);
	host_run(h);
	ATF_CHECK_EQ(1, host_rx_pending(h));
}

TEST(bus_master, "With bus mastering off an adapter does not access guest "
    "memory, also not in a reset; when it is on again the adapter goes on")
{
	uint8_t frame[64];
	struct host *h;
	uint64_t gpa;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		h = host_create_csb(HOST_RAM);
		gpa = guest_alloc(h);
		host_up(h, 8, 8, 2048);
		CSB_SET(h, guest_rdt, h->rxtail);
		CSB_SET(h, host_txcycles_lim, 1000);
		guest_place(h, gpa);
		CSB_SET(h, guest_csb_on, i % 2);
		guest_post(h, 1);
		if (i >= 2) {
			/* The host is awake. */
			ATF_CHECK_EQ(i % 2 ? E82545_TX_MORE : E82545_TX_IDLE,
			    e82545_tx(h->dev));
			e82545_rx(h->dev);
		}
		e82545_bus_master(h->dev, false);
		use_without_memory(h);
		host_wr(h, E82545_RDT, 3);
		host_wr(h, E82545_RDH, 0);
		host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		host_wr(h, E82545_CTRL_DUP, E82545_CTRL_RST);
		e82545_timer(h->dev);
		e82545_reset(h->dev);
		host_run(h);
		ATF_REQUIRE_EQ(0, mprotect(h->ram, h->ram_size,
		    PROT_READ | PROT_WRITE));
		host_destroy(h);
	}

	/* A reset clears the CSB when it can. */
	h = guest_up(8, 8, 2048, 1000);
	guest_post(h, 1);
	ATF_CHECK_EQ(E82545_TX_MORE, e82545_tx(h->dev));
	ATF_CHECK_EQ(0, CSB_GET(h, host_need_txkick));
	e82545_bus_master(h->dev, false);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0, CSB_GET(h, host_need_txkick));
	e82545_bus_master(h->dev, true);
	host_run(h);
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
	host_destroy(h);

	h = host_create(HOST_RAM);
	host_up(h, 8, 8, 2048);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	h->nkick = h->nready = 0;
	e82545_bus_master(h->dev, false);
	ATF_CHECK_EQ(0, h->nkick);
	ATF_CHECK_EQ(0, h->nready);
	host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	host_inject(h, frame, sizeof(frame), 1);
	host_run(h);
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	/* A pause does not turn it on. */
	e82545_pause(h->dev);
	e82545_resume(h->dev);
	host_run(h);
	ATF_CHECK_EQ(0, host_sent(h));
	ATF_CHECK_EQ(1, host_rx_pending(h));
	h->nkick = h->nready = 0;
	e82545_bus_master(h->dev, true);
	ATF_CHECK_EQ(1, h->nkick);
	ATF_CHECK_EQ(1, h->nready);
	host_run(h);
	check_sent(h, 0, frame, sizeof(frame));
	check_taken(h, frame, sizeof(frame));
	host_destroy(h);
}

/*
 * Resets from one thread while batches are in progress in two others: the
 * rings move each time, and a write by an earlier batch is seen in the memory
 * of the former ones.
 */
TEST(reset_under_load, "After a reset no batch writes to guest memory")
{
	const unsigned int nring = 64, rounds = 300;
	uint8_t frame[64], got[2048];
	uint64_t brk;
	struct host *h;
	unsigned int i, r;

	h = host_create(HOST_RAM);
	brk = h->brk;
	host_start_threads(h);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	for (r = 0; r < rounds; r++) {
		h->brk = brk + (r % 2) * (HOST_RAM / 2);
		pthread_mutex_lock(&h->mtx);
		h->tx_discard = true;
		pthread_mutex_unlock(&h->mtx);
		host_up(h, nring, nring, 2048);
		host_wr(h, E82545_IMS, ALL);
		for (i = 0; i < nring - 1; i++) {
			host_tx_frame(h, frame, sizeof(frame), 0);
			if (host_rx_pending(h) < HOST_FRAMES)
				host_inject(h, frame, sizeof(frame), 1);
			if (i % 8 == r % 8)
				host_tx_go(h);
		}
		host_tx_go(h);
		if (r % 3 == 0)
			host_rd(h, E82545_ICR);
		if (r % 2 == 0)
			host_wr(h, E82545_CTRL, E82545_CTRL_RST);
		else
			e82545_reset(h->dev);
		/* The adapter must not write here any more. */
		memset(host_mem(h, h->txring, nring * 16), 0xee, nring * 16);
		memset(host_mem(h, h->rxring, nring * 16), 0xee, nring * 16);
		ATF_REQUIRE_EQ(0, host_rd(h, E82545_TDH));
		ATF_REQUIRE_EQ(0, host_rd(h, E82545_RDH));
		ATF_REQUIRE(!host_line(h));
		for (i = 0; i < nring * 16; i++) {
			ATF_REQUIRE_EQ(0xee,
			    *(uint8_t *)host_mem(h, h->txring + i, 1));
			ATF_REQUIRE_EQ(0xee,
			    *(uint8_t *)host_mem(h, h->rxring + i, 1));
		}
	}
	host_stop_threads(h);
	ATF_CHECK_EQ(rounds, host_counter(h, E82545_C_RESET));

	/* The adapter still works. */
	h->tx_discard = false;
	host_run(h);
	host_sent_clear(h);
	host_up(h, nring, nring, 2048);
	while (host_rx_pending(h) > 0) {
		host_wr(h, E82545_RDT, h->rxtail);
		while (host_rx_take(h, got, sizeof(got), NULL) > 0)
			ATF_CHECK_EQ(0, memcmp(got, frame, sizeof(frame)));
		h->ready = true;
		host_run(h);
	}
	host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(1, host_sent(h));
	ATF_CHECK_EQ(0, memcmp(host_sent_frame(h, 0)->data, frame,
	    sizeof(frame)));
	host_destroy(h);
}

TEST(pause_timer, "A timer that expires in a pause interrupts when the adapter "
    "resumes")
{
	uint8_t frame[60];
	struct host *h;

	h = rx_up(8, 2048);
	host_wr(h, E82545_RDTR, 100);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	rx_receive(h, frame, sizeof(frame));
	e82545_pause(h->dev);
	host_advance(h, 1000000);
	ATF_CHECK(!host_line(h));
	e82545_resume(h->dev);
	ATF_CHECK(host_line(h));
	host_destroy(h);
}

TEST_PROGRAM
