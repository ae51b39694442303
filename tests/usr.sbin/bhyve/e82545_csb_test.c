/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The CSB is turned on and off: registers, resets, invalid addresses.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"

/* EEPROM word `word'. */
static uint16_t
eeprom(struct host *h, unsigned int word)
{
	host_wr(h, E82545_EERD, word << 8 | E82545_EERD_START);
	return (host_rd(h, E82545_EERD) >> E82545_EERD_DATA_SHIFT);
}

HOST_TEST(registers, guest_up(64, 8, 2048, 1), "CSBAL sets the CSB; a reset by "
    "the guest keeps it, a PCI reset clears it")
{
	uint64_t gpa = (uint8_t *)h->csb - h->ram;

	ATF_CHECK_EQ(0x1101, eeprom(h, 0x0b));
	ATF_CHECK_EQ(gpa, host_rd(h, E82545_CSBAL));
	/* CSBAH alone changes nothing. */
	host_wr(h, E82545_CSBAH, 1);
	guest_transmit(h, 1);
	ATF_CHECK_EQ(1, CSB_GET(h, host_tdh));
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(gpa, host_rd(h, E82545_CSBAL));
	ATF_CHECK_EQ(0, host_rd(h, E82545_CSBAH));
	CSB_SET(h, guest_tdt, 0);
	host_up(h, 64, 8, 2048);
	ATF_CHECK(guest_post(h, 2));
	host_run(h);
	ATF_CHECK_EQ(2, CSB_GET(h, host_tdh));
	e82545_reset(h->dev);
	ATF_CHECK_EQ(0, host_rd(h, E82545_CSBAL));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_OFF));
	memset(h->csb, 0xff, NET_PARAVIRT_CSB_SIZE);
	host_up(h, 64, 8, 2048);
	guest_frames(h, 3);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(6, host_sent(h));
	ATF_CHECK_EQ(UINT32_MAX, CSB_GET(h, host_tdh));
}

HOST_TEST(cleared, guest_up(64, 8, 2048, 1), "host_need_txkick, which a guest "
    "may clear when it kicks, is set again, whatever the kick does")
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		guest_frames(h, 1);
		CSB_SET(h, host_need_txkick, 0);
		CSB_SET(h, guest_tdt, h->txtail);
		host_tx_go(h);
		switch (i) {
		case 0:
			CSB_SET(h, guest_csb_on, 0);
			break;
		case 1:
			host_clear(h, E82545_TCTL, E82545_TCTL_EN);
			break;
		case 2:
			host_wr(h, E82545_CTRL, E82545_CTRL_RST);
			break;
		case 3:
			e82545_pause(h->dev);
			host_run(h);
			e82545_resume(h->dev);
			break;
		}
		host_run(h);
		ATF_CHECK_EQ_MSG(1, CSB_GET(h, host_need_txkick), "%u", i);
		CSB_SET(h, guest_csb_on, 1);
		if (i == 2) {
			CSB_SET(h, guest_tdt, 0);
			host_up(h, 64, 8, 2048);
		}
		host_set(h, E82545_TCTL, E82545_TCTL_EN);
		host_run(h);
	}
	/* All except the one that the reset dropped. */
	ATF_CHECK_EQ(3, host_sent(h));
}

HOST_TEST(reset_dry, guest_up(64, 16, 2048, 1), "A reset ends the state of an "
    "empty ring")
{
	guest_inject(h, 16);
	ATF_CHECK(CSB_GET(h, host_rxkick_at) != NET_PARAVIRT_NONE);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, CSB_GET(h, host_rxkick_at));
	CSB_SET(h, guest_rdt, 15);
	host_up(h, 64, 16, 2048);
	host_run(h);
	ATF_CHECK_EQ(1, guest_take(h, 2));
	ATF_CHECK_EQ(0, host_rx_pending(h));
}

HOST_TEST(mode, guest_awake(1, 1000), "e82545_mode() has what the driver has "
    "set")
{
	struct e82545_mode mode;

	e82545_mode(h->dev, &mode);
	ATF_CHECK(mode.em_csb);
	ATF_CHECK(mode.em_link);
	ATF_CHECK_EQ(0, mode.em_itr_256ns);
	host_wr(h, E82545_ITR, 77);
	guest_place(h, 0);
	e82545_link(h->dev, false);
	e82545_mode(h->dev, &mode);
	ATF_CHECK(!mode.em_csb);
	ATF_CHECK(!mode.em_link);
	ATF_CHECK_EQ(77, mode.em_itr_256ns);
}

TEST(bad_place, "A CSB outside guest memory is counted, and the adapter works "
    "without it")
{
	static const uint64_t bad[] = { HOST_RAM, HOST_RAM - 4092, 1ULL << 32,
	    UINT64_MAX - 4095, UINT64_MAX, 1ULL << 63, 0x100001, 0x2002 };
	struct host *h = host_create_csb(HOST_RAM);
	unsigned int i, n;

	host_up(h, 64, 8, 2048);
	host_wr(h, E82545_IMS, E82545_ICR_ALL);
	for (i = 0; i < nitems(bad); i++) {
		n = host_counter(h, E82545_C_CSB_BAD);
		guest_place(h, bad[i]);
		guest_frames(h, 1);
		host_tx_go(h);
		host_run(h);
		ATF_CHECK_EQ(i + 1, host_sent(h));
		ATF_CHECK(host_counter(h, E82545_C_CSB_BAD) > n);
		host_rd(h, E82545_ICR);
		guest_receive(h, 1);
		ATF_CHECK(host_line(h));
		host_rx_post(h);
	}
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_ON));
	/* A reset keeps the whole address. */
	guest_place(h, 3ULL << 32 | 0x2000);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(3, host_rd(h, E82545_CSBAH));
	ATF_CHECK_EQ(0x2000, host_rd(h, E82545_CSBAL));
	host_destroy(h);
}

HOST_TEST(placed, guest_awake(1, 1000), "A write to CSBAL makes the kept TDT "
    "count, and leaves nothing of the state that belongs to the old CSB")
{
	const struct e82545_csb *c = &h->dev->csb;

	guest_frames(h, 3);
	host_tx_go(h);
	ATF_CHECK(host_rd(h, E82545_TDT) != h->txtail);
	host_wr(h, E82545_RDH, 0);
	host_wr(h, E82545_RDT, 5);
	host_wr(h, E82545_RDH, 0);
	ATF_CHECK(c->kicked);
	ATF_CHECK_EQ(CSB_TX_AWAKE, c->tx_state);
	ATF_CHECK_EQ(CSB_RX_ON, c->rx_state);
	ATF_CHECK(c->rdt.starts);
	guest_place(h, 0);
	ATF_CHECK_EQ(h->txtail, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(0, c->kicked);
	ATF_CHECK_EQ(CSB_TX_STARTED, c->tx_state);
	ATF_CHECK_EQ(CSB_RX_OFF, c->rx_state);
	ATF_CHECK(!c->tdt.starts && !c->rdt.starts);
	ATF_CHECK_EQ(0, c->held);
}

/* A CSB like the one that guest_up() makes, at another address. */
static void
place_another(struct host *h)
{
	const uint64_t gpa = guest_alloc(h);

	CSB_SET(h, guest_tdt, h->txtail);
	CSB_SET(h, guest_rdt, h->rxtail);
	CSB_SET(h, guest_need_rxkick, 0);
	CSB_SET(h, guest_txkick_at, 0);
	CSB_SET(h, guest_csb_on, 1);
	guest_place(h, gpa);
	host_run(h);
}

HOST_TEST(fresh, guest_up(64, 8, 2048, 0), "A guest that places another CSB "
    "uses guest_txkick_at, and asks for RX interrupts by IMS, anew")
{
	/* It uses the index, and has unmasked RX interrupts. */
	CSB_SET(h, guest_need_rxkick, 0);
	CSB_SET(h, guest_txkick_at, 40);
	guest_transmit(h, 60);
	ATF_CHECK_EQ(1, host_raised(h));
	host_rd(h, E82545_ICR);
	host_wr(h, E82545_IMS, E82545_ICR_RXT0);
	place_another(h);
	/* Past index 0. */
	guest_post(h, 10);
	guest_receive(h, 1);
	ATF_CHECK_EQ(70, host_sent(h));
	ATF_CHECK_EQ(1, host_raised(h));
	/* Not 0: now it is used. */
	CSB_SET(h, guest_txkick_at, 15);
	guest_transmit(h, 10);
	ATF_CHECK_EQ(2, host_raised(h));
}

HOST_TEST(first, guest_up(64, 8, 2048, 0), "The TDT that started the ring "
    "counts with the next CSB")
{
	ATF_CHECK_EQ(0, h->txtail);
	host_wr(h, E82545_TDH, 0);
	host_wr(h, E82545_TDT, 0);
	/* Written once more, late: the index in the CSB counts. */
	guest_store(h, 16);
	host_wr(h, E82545_TDT, 0);
	host_run(h);
	ATF_REQUIRE_EQ(16, host_sent(h));
	place_another(h);
	/* The same value, and its frames are not announced in the CSB. */
	guest_frames(h, 48);
	ATF_REQUIRE_EQ(0, h->txtail);
	host_tx_go(h);
	host_run(h);
	ATF_CHECK_EQ(64, host_sent(h));
}

TEST_PROGRAM
