/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's core with a broken or malicious adapter: gone, stuck, or with
 * invalid descriptors and a random CSB.  Errors are counted, no buffer is
 * returned twice, and every call returns.  core_fuzz.c has random ones.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

/* Reads of registers may be changed between driver and adapter. */
static struct {
	uint32_t	reg;		/* this register, all: ALL */
	uint32_t	value;		/* reads as that */
	bool		on;
	bool		deaf;		/* and writes get lost */
} fault;
#define	ALL		UINT32_MAX

static uint32_t
fault_read(void *arg, uint32_t reg)
{
	uint32_t value = host_rd(arg, reg);

	if (fault.on && (fault.reg == ALL || fault.reg == reg))
		return (fault.value);
	return (value);
}

static void
fault_write(void *arg, uint32_t reg, uint32_t value)
{
	if (!fault.on || !fault.deaf)
		host_wr(arg, reg, value);
}

static void
fault_set(struct lem_test *t, uint32_t reg, uint32_t value, bool deaf)
{
	t->g.lc.lc_os.reg_read = fault_read;
	t->g.lc.lc_os.reg_write = fault_write;
	fault.reg = reg;
	fault.value = value;
	fault.deaf = deaf;
	fault.on = true;
}

LEM_TEST(gone_at_attach, test_create_down(2048), "lem_attach() returns ENXIO "
    "if registers read as all ones or the reset does not end")
{
	uint8_t mac[6];

	fault_set(t, ALL, 0xffffffff, true);
	ATF_CHECK_EQ(ENXIO, lem_attach(&t->g.lc, mac));
	ATF_CHECK(t->g.lc.lc_dead);
	ATF_CHECK_EQ(ENXIO, lem_start(&t->g.lc, host_mac, 1500));
	/* Nothing is written if its status says so. */
	fault_set(t, E82545_STATUS, 0xffffffff, false);
	t->g.lc.lc_os.writes = 0;
	ATF_CHECK_EQ(ENXIO, lem_address(&t->g.lc, mac));
	ATF_CHECK_EQ(ENXIO, lem_attach(&t->g.lc, mac));
	ATF_CHECK_EQ(0, t->g.lc.lc_os.writes);
	fault_set(t, E82545_CTRL, E82545_CTRL_RST, false);
	ATF_CHECK_EQ(ENXIO, lem_attach(&t->g.lc, mac));
	fault.on = false;
	ATF_CHECK_EQ(0, lem_attach(&t->g.lc, mac));
	ATF_CHECK(!t->g.lc.lc_dead);
}

TEST(gone, "When the adapter disappears, the driver stops and returns all "
    "packets, until the next start")
{
	static const uint32_t modes[] = {
		0, LEM_MODE_SC, LEM_MODE_LAZY, LEM_MODE_CSB
	};
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct lem_test *t = test_create(modes[i], 2048, 1500);

		test_send(t, 10, 60);
		fault_set(t, ALL, 0xffffffff, true);
		ATF_CHECK(!lem_intr(&t->g.lc));
		ATF_CHECK(t->g.lc.lc_dead);
		ATF_CHECK_EQ(1, t->g.lc.lc_counter[LEM_C_DEAD]);
		ATF_CHECK_EQ(ENXIO, guest_send(&t->g, test_peer, 60));
		(void)test_exits(t);
		lem_tx_flush(&t->g.lc);
		lem_intr_enable(&t->g.lc);
		ATF_CHECK_EQ(0, lem_tx_clean(&t->g.lc));
		ATF_CHECK_EQ(0, lem_rx(&t->g.lc, 8));
		ATF_CHECK(!lem_intr(&t->g.lc));
		ATF_CHECK_EQ(0, lem_set_mode(&t->g.lc, LEM_MODE_POLL));
		ATF_CHECK_EQ(0, test_exits(t));
		lem_stop(&t->g.lc);
		ATF_CHECK_EQ(t->g.sent, t->g.lc.lc_os.tx_done);
		fault.on = false;
		/* The registers of the former adapter must not be used. */
		ATF_REQUIRE_EQ(0, lem_set_mode(&t->g.lc, 0));
		ATF_REQUIRE_EQ(0, lem_start(&t->g.lc, t->g.mac, 1500));
		lem_intr_enable(&t->g.lc);
		test_inject(t, 3, 60);
		test_settle(t);
		ATF_CHECK_EQ(3, t->g.received);
		test_destroy(t);
	}
}

/* Write a descriptor back as an adapter would. */
static void
write_back(struct lem_test *t, uint32_t slot, uint16_t len, uint8_t status,
    uint8_t errors)
{
	__atomic_store_n(&t->g.lc.lc_rxd[slot].rest, len |
	    (uint64_t)status << 32 | (uint64_t)errors << 40,
	    __ATOMIC_RELEASE);
}

#define	DD	E82545_RXD_DD
#define	EOP	E82545_RXD_EOP

LEM_TEST(rx_descriptors, test_create(LEM_MODE_POLL, 2048, 16110), "Frames with "
    "invalid lengths, errors or no end are dropped and counted; later ones are "
    "received")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i;
	uint32_t slot = 0;

	write_back(t, slot++, 0, DD | EOP, 0);
	write_back(t, slot++, 2049, DD | EOP, 0);
	write_back(t, slot++, 0xffff, DD | EOP, 0);
	ATF_CHECK_EQ(3, lem_rx(lc, 8));
	ATF_CHECK_EQ(3, lc->lc_counter[LEM_C_RX_BAD]);
	ATF_CHECK_EQ(0, lc->lc_os.rx_dropped);
	/*
	 * EOP is missing where the buffer is not full: the rest is dropped,
	 * too.
	 */
	write_back(t, slot++, 2048, DD, 0);
	write_back(t, slot++, 2047, DD, 0);
	write_back(t, slot++, 2048, DD, 0);
	write_back(t, slot++, 60, DD | EOP, 0);
	ATF_CHECK_EQ(3, lem_rx(lc, 8));
	ATF_CHECK_EQ(4, lc->lc_counter[LEM_C_RX_BAD]);
	ATF_CHECK_EQ(1, lc->lc_os.rx_dropped);
	/* A frame with an error. */
	write_back(t, slot++, 2048, DD, 0);
	write_back(t, slot++, 60, DD | EOP, E82545_RXD_ERR_CE);
	ATF_CHECK_EQ(1, lem_rx(lc, 8));
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_RX_ERROR]);
	ATF_CHECK_EQ(2, lc->lc_os.rx_dropped);
	/* No EOP in the whole ring. */
	for (i = 0; i < 100; i++)
		write_back(t, slot++, 2048, DD, 0);
	for (i = 0; i < 100 && lem_rx(lc, 8) > 0; i++)
		continue;
	ATF_CHECK_EQ(3, lc->lc_os.rx_dropped);
	ATF_CHECK_EQ(5, lc->lc_counter[LEM_C_RX_BAD]);
	ATF_CHECK_EQ(0, lc->lc_counter[LEM_C_RX_PACKET]);
	write_back(t, slot++, 60, DD | EOP, 0);
	write_back(t, slot++, 60, DD | EOP, 0);
	ATF_CHECK_EQ(2, lem_rx(lc, 8));
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_RX_PACKET]);
}

LEM_TEST(csb_nonsense, test_create(LEM_MODE_CSB, 2048, 1500), "Random values "
    "in the host's part of the CSB cause wrong numbers of kicks, and no other "
    "harm")
{
	struct paravirt_csb *csb = t->g.lc.lc_csb;
	const uint32_t rounds = csb->host_txcycles_lim;
	uint32_t *word = (uint32_t *)csb;
	unsigned int i, j;

	srand(1);
	for (i = 0; i < 2000; i++) {
		for (j = 16; j < sizeof(*csb) / 4; j++)
			word[j] = i % 2 == 0 ? (uint32_t)rand() :
			    (uint32_t)rand() % (2 * TEST_RING);
		/* This one is the guest's. */
		csb->host_txcycles_lim = rounds;
		(void)guest_send(&t->g, test_peer, 60);
		lem_tx_flush(&t->g.lc);
		test_inject(t, 1, 60);
		test_settle(t);
		/* The guest's part of the CSB does not change. */
		ATF_REQUIRE(csb->guest_tdt == t->g.lc.lc_tx_tail ||
		    csb->guest_tdt == NET_PARAVIRT_NONE);
		ATF_REQUIRE_EQ(csb->guest_rdt, t->g.lc.lc_rx_posted);
		ATF_REQUIRE(csb->guest_rdt < TEST_RING);
	}
	ATF_CHECK(t->g.lc.lc_counter[LEM_C_RX_BAD] > 0);
	ATF_CHECK_EQ(0, t->g.wrong);
	/* The driver works when the CSB is valid again. */
	csb->host_need_txkick = 1;
	csb->host_rxkick_at = NET_PARAVIRT_NONE;
	ATF_REQUIRE_EQ(0, lem_set_mode(&t->g.lc, 0));
	test_settle(t);
	(void)lem_tx_clean(&t->g.lc);
	test_check_sent(t, 60);
	ATF_CHECK_EQ(t->injected, t->g.received);
}

TEST_PROGRAM
