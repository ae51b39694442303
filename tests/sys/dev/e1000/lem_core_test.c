/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * The driver's core against the model, one step at a time: what goes out and
 * comes in, and how many register accesses and interrupts that takes in each
 * mode.
 */

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

/* Both sides' headers say the same of the hardware. */
#define	SAME(name)							\
	_Static_assert((uint64_t)LEM_##name == (uint64_t)E82545_##name, #name)
#define	SAME_AS(name, value)						\
	_Static_assert((uint64_t)LEM_##name == (uint64_t)(value), #name)
SAME(CTRL); SAME(CTRL_ASDE); SAME(CTRL_SLU); SAME(CTRL_FRCSPD);
SAME(CTRL_FRCDPX); SAME(CTRL_RST); SAME(CTRL_VME);
SAME(STATUS); SAME(STATUS_LU);
/* Both rings' registers are in the same places. */
#define	ALIKE(name, rx, tx)						\
	_Static_assert(E82545_##rx - E82545_RDBAL ==			\
	    E82545_##tx - E82545_TDBAL, name)
ALIKE("base", RDBAH, TDBAH); ALIKE("length", RDLEN, TDLEN);
ALIKE("head", RDH, TDH); ALIKE("tail", RDT, TDT);
ALIKE("delay", RDTR, TIDV); ALIKE("absolute", RADV, TADV);
SAME(ICR); SAME(ICR_TXDW); SAME(ICR_LSC); SAME(ICR_RXSEQ);
SAME(ICR_RXDMT0); SAME(ICR_RXO); SAME(ICR_RXT0);
SAME(ITR); SAME_AS(ITR_MAX, E82545_ITR_MASK);
SAME(ICS); SAME(IMS); SAME(IMC);
SAME(RCTL); SAME(RCTL_EN); SAME(RCTL_UPE); SAME(RCTL_MPE);
SAME(RCTL_LPE); SAME(RCTL_BAM); SAME(RCTL_BSEX); SAME(RCTL_SECRC);
_Static_assert(E82545_RCTL_BSIZE(3u << LEM_RCTL_BSIZE_SHIFT) == 3, "BSIZE");
SAME(TCTL); SAME(TCTL_EN); SAME(TCTL_PSP); SAME(TIPG);
SAME(RDBAL); SAME(RDBAH); SAME(RDLEN); SAME(RDH); SAME(RDT);
SAME(RDTR); SAME(RADV); SAME(CSBAL); SAME(CSBAH);
SAME(TDBAL); SAME(TDBAH); SAME(TDLEN); SAME(TDH); SAME(TDT);
SAME(TIDV); SAME(TADV);
SAME(RXCSUM); SAME(RXCSUM_IPOFL); SAME(RXCSUM_TUOFL);
SAME(MTA); SAME_AS(MTA_WORDS, E82545_MTA_COUNT);
SAME(RAL(0)); SAME(RAL(15)); SAME(RAH(0)); SAME(RAH(15)); SAME(RAH_AV);
SAME_AS(SUBDEVICE_CSB, E82545_PCI_SUBDEVICE_CSB);
SAME(TXD_EOP); SAME(TXD_IFCS); SAME(TXD_TSE); SAME(TXD_RS);
SAME(TXD_DEXT); SAME(TXD_VLE); SAME(TXD_DD);
SAME_AS(TXD_DATA, E82545_TXD_DTYP_DATA);
SAME_AS(TXD_CTX_TCP, E82545_TXD_TUCMD_TCP);
SAME_AS(TXD_CTX_IP, E82545_TXD_TUCMD_IP);
SAME_AS(TXD_TSE, E82545_TXD_TUCMD_TSE);
#define	AT(type, member)	(8 * (offsetof(struct type, member) - 8))
#define	UPPER(member)							\
	(8 * (offsetof(struct e82545_txd_data, member) - 12))
SAME_AS(TXD_IXSM, (uint64_t)E82545_TXD_POPTS_IXSM << UPPER(popts));
SAME_AS(TXD_TXSM, (uint64_t)E82545_TXD_POPTS_TXSM << UPPER(popts));
SAME_AS(TXD_VLAN_SHIFT, UPPER(special));
SAME_AS(CTX_TSO(1, 0), 1ULL << AT(e82545_txd_context, hdrlen));
SAME_AS(CTX_TSO(0, 1), 1ULL << AT(e82545_txd_context, mss));
#define	RXD(name)							\
	SAME_AS(RXD_##name,						\
	    (uint64_t)E82545_RXD_##name << AT(e82545_rxd, status))
RXD(DD); RXD(EOP); RXD(IXSM); RXD(VP); RXD(TCPCS); RXD(IPCS);
SAME_AS(RXD_BAD, (uint64_t)(E82545_RXD_ERR_CE | E82545_RXD_ERR_SE |
    E82545_RXD_ERR_SEQ | E82545_RXD_ERR_CXE | E82545_RXD_ERR_RXE) <<
    AT(e82545_rxd, errors));
SAME_AS(RXD_TCPE, (uint64_t)E82545_RXD_ERR_TCPE << AT(e82545_rxd, errors));
SAME_AS(RXD_IPE, (uint64_t)E82545_RXD_ERR_IPE << AT(e82545_rxd, errors));

#define	TC(name, what)							\
	ATF_TC(name);							\
	ATF_TC_HEAD(name, tc)						\
	{								\
		atf_tc_set_md_var(tc, "descr", what);			\
	}								\
	ATF_TC_BODY(name, tc)

/* Accesses for an interrupt: ICR, IMC, IMS; with the CSB ICR alone. */
#define	INTR_EXITS	3
#define	INTR_EXITS_CSB	1

TC(address, "The station address comes from the EEPROM")
{
	struct lem_test *t = test_create(0, 2048, 1500);

	ATF_CHECK_EQ(0, memcmp(host_mac, t->g.mac, 6));
	ATF_CHECK(t->g.lc.lc_link);
	ATF_CHECK(t->g.lc.lc_running);
	test_destroy(t);
}

TC(arguments, "Rings, buffers, MTUs and modes out of range are refused, and "
    "the mode stays")
{
	struct lem_test *t = test_create(LEM_MODE_SC, 2048, 1500);
	struct lem_core *lc = &t->g.lc;

	ATF_CHECK_EQ(EINVAL, lem_set_mode(lc, 0x10));
	lc->lc_has_csb = false;
	ATF_CHECK_EQ(ENOTSUP, lem_set_mode(lc, LEM_MODE_CSB | LEM_MODE_LAZY));
	lc->lc_has_csb = true;
	ATF_CHECK_EQ(LEM_MODE_SC, lc->lc_mode);
	ATF_CHECK_EQ(EINVAL, lem_set_itr(lc, LEM_ITR_MAX + 1));
	ATF_CHECK_EQ(0, lem_set_itr(lc, LEM_ITR_MAX));
	ATF_CHECK_EQ(LEM_ITR_MAX, host_rd(t->h, E82545_ITR));
	lem_stop(lc);
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 67));
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 16111));
	lc->lc_rx_bufsize = 1024;
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 1500));
	lc->lc_rx_bufsize = 2048;
	lc->lc_ntxd = 72;
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 1500));
	lc->lc_ntxd = 84;
	ATF_CHECK_EQ(EINVAL, lem_start(lc, t->g.mac, 1500));
	lc->lc_ntxd = TEST_RING;
	lc->lc_os.nspare = 0;
	memset(lc->lc_os.rx_buf, 0, sizeof(lc->lc_os.rx_buf));
	ATF_CHECK_EQ(ENOBUFS, lem_start(lc, t->g.mac, 1500));
	ATF_CHECK(!lc->lc_running);
	test_destroy(t);
}

TC(packets, "Packets that cannot be are refused")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	struct lem_seg seg[LEM_TX_MAXSEGS + 1];
	struct lem_packet lp;
	uint32_t slot;
	unsigned int i;

	for (i = 0; i <= LEM_TX_MAXSEGS; i++) {
		seg[i].ls_addr = t->g.txbuf;
		seg[i].ls_len = 60;
	}
	memset(&lp, 0, sizeof(lp));
	lp.lp_segs = seg;
#define	REFUSED()							\
	ATF_CHECK_EQ(EINVAL, lem_tx(&t->g.lc, &lp, &slot))
	lp.lp_len = 60;
	REFUSED();
	lp.lp_nsegs = LEM_TX_MAXSEGS + 1;
	lp.lp_len = 60 * lp.lp_nsegs;
	REFUSED();
	lp.lp_nsegs = 1;
	lp.lp_len = 61;
	REFUSED();
	lp.lp_len = seg[0].ls_len = 13;
	REFUSED();
	lp.lp_len = seg[0].ls_len = 16384;
	REFUSED();
	lp.lp_len = 60;
	lp.lp_nsegs = 2;
	seg[0].ls_len = 60;
	seg[1].ls_len = 0;
	REFUSED();
	lp.lp_nsegs = 1;
	lp.lp_flags = 0x40;
	REFUSED();
	lp.lp_flags = LEM_TX_IPSUM;
	REFUSED();
	lp.lp_l2len = 14;
	lp.lp_l3len = 20;
	lp.lp_l4len = 20;
	lp.lp_flags = LEM_TX_TSO4;
	REFUSED();
	lp.lp_mss = 100;
	lp.lp_flags = LEM_TX_TSO4 | LEM_TX_TSO6;
	REFUSED();
	lp.lp_flags = LEM_TX_TCPSUM | LEM_TX_UDPSUM;
	REFUSED();
	lp.lp_l3len = 230;
	lp.lp_flags = LEM_TX_TCPSUM;
	REFUSED();
	ATF_CHECK_EQ(0, t->g.lc.lc_stats.tx_packets);
	ATF_CHECK(lem_tx_idle(&t->g.lc));
	test_destroy(t);
}

TC(tx_base, "Plain: a write to TDT for each frame, and an interrupt for each "
    "batch")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		test_send(t, 1, 60);
		test_settle(t);
	}
	ATF_CHECK_EQ(1000, test_raised(t));
	ATF_CHECK_EQ(1000 * (1 + INTR_EXITS), test_exits(t));
	ATF_CHECK_EQ(1000, t->g.lc.lc_os.tx_done);
	ATF_CHECK_EQ(1000, t->g.lc.lc_stats.tx_kicks);
	ATF_CHECK_EQ(1000, t->g.lc.lc_stats.tx_cleans);
	test_send(t, 100, 60);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(100 + INTR_EXITS, test_exits(t));
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_batch, "Frames flushed together take one write to TDT")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	unsigned int i;

	for (i = 0; i < 40; i++)
		ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	ATF_CHECK_EQ(0, test_exits(t));
	lem_tx_flush(&t->g.lc);
	lem_tx_flush(&t->g.lc);
	ATF_CHECK_EQ(1, test_exits(t));
	ATF_CHECK_EQ(39, t->g.lc.lc_stats.tx_kicks_saved);
	test_settle(t);
	test_check_sent(t, 60);
	ATF_CHECK_EQ(40, t->g.lc.lc_os.tx_done);
	test_destroy(t);
}

TC(tx_combining, "Send combining: two writes to TDT for all that is sent "
    "between two interrupts")
{
	struct lem_test *t = test_create(LEM_MODE_SC, 2048, 1500);
	unsigned int i;

	for (i = 0; i < 50; i++) {
		test_send(t, 21, 60);
		/* One told; its interrupt lets 20 go, the next finds none. */
		test_settle(t);
	}
	ATF_CHECK_EQ(100, test_raised(t));
	ATF_CHECK_EQ(50 * (2 + 2 * INTR_EXITS), test_exits(t));
	ATF_CHECK_EQ(1000, t->g.lc.lc_stats.tx_combined);
	ATF_CHECK_EQ(50, t->g.lc.lc_stats.tx_flushes);
	ATF_CHECK_EQ(100, t->g.lc.lc_stats.tx_kicks);
	ATF_CHECK_EQ(950, t->g.lc.lc_stats.tx_kicks_saved);
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_combining_short, "Send combining holds nothing back when the ring runs "
    "short, and never for good")
{
	struct lem_test *t = test_create(LEM_MODE_SC, 2048, 1500);

	/* Until a quarter is left: one told, the others held. */
	test_send(t, TEST_RING - 1 - TEST_RING / 4 - 1, 60);
	ATF_CHECK_EQ(1, test_exits(t));
	test_send(t, 1, 60);
	ATF_CHECK_EQ(1, test_exits(t));
	test_settle(t);
	test_check_sent(t, 60);
	/* Somebody else takes the completions: what is held goes out. */
	test_send(t, 10, 60);
	host_run(t->h);
	ATF_CHECK_EQ(1, lem_tx_clean(&t->g.lc));
	host_run(t->h);
	ATF_CHECK_EQ(9, lem_tx_clean(&t->g.lc));
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_combining_moderation, "With moderation the wait is the interval: one "
    "write to TDT and one interrupt for each")
{
	struct lem_test *t = test_create(LEM_MODE_SC, 2048, 1500);
	unsigned int i;

	ATF_REQUIRE_EQ(0, lem_set_itr(&t->g.lc, 400));
	test_send(t, 1, 60);
	test_settle(t);
	(void)test_raised(t);
	(void)test_exits(t);
	for (i = 0; i < 30; i++) {
		test_send(t, 60, 60);
		test_settle(t);
		host_advance(t->h, 400 * 256);
		test_settle(t);
	}
	/* What an interrupt lets go is done before the next. */
	ATF_CHECK_EQ(30, test_raised(t));
	ATF_CHECK_EQ(30 * (1 + INTR_EXITS), test_exits(t));
	host_advance(t->h, 400 * 256);
	test_settle(t);
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_lazy, "Lazy completion: no interrupt until the ring runs short, then "
    "one")
{
	struct lem_test *t = test_create(LEM_MODE_LAZY, 2048, 1500);
	unsigned int i;

	for (i = 0; i < 4 * TEST_RING; i++) {
		test_send(t, 1, 60);
		test_settle(t);
	}
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(4 * TEST_RING, test_exits(t));
	(void)lem_tx_clean(&t->g.lc);
	ATF_CHECK(lem_tx_idle(&t->g.lc));
	/* The model does nothing meanwhile: short, and IMS written once. */
	host_sent_clear(t->h);
	t->g.sent = t->g.lc.lc_os.tx_done = 0;
	test_send(t, TEST_RING - 1, 60);
	ATF_CHECK_EQ(TEST_RING - 1, test_exits(t));
	ATF_CHECK_EQ(ENOBUFS, guest_send(&t->g, test_peer, 60));
	ATF_CHECK_EQ(1, test_exits(t));
	ATF_CHECK_EQ(1, t->g.lc.lc_stats.tx_full);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(INTR_EXITS, test_exits(t));
	ATF_CHECK_EQ(TEST_RING - 1, lem_tx_room(&t->g.lc));
	/* And masked again. */
	test_send(t, 1, 60);
	test_settle(t);
	ATF_CHECK_EQ(0, test_raised(t));
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_lazy_report, "One report for a quarter of the ring, and for the last "
    "frame told")
{
	struct lem_test *t = test_create(LEM_MODE_LAZY, 2048, 1500);
	unsigned int i, n;

	for (i = 0; i < TEST_RING - 1; i++)
		ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	lem_tx_flush(&t->g.lc);
	for (i = n = 0; i < TEST_RING - 1; i++)
		n += (t->g.lc.lc_txd[i].lower & LEM_TXD_RS) != 0;
	ATF_CHECK_EQ(4, n);
	ATF_CHECK((t->g.lc.lc_txd[TEST_RING / 4 - 1].lower & LEM_TXD_RS) != 0);
	ATF_CHECK((t->g.lc.lc_txd[TEST_RING - 2].lower & LEM_TXD_RS) != 0);
	test_settle(t);
	ATF_CHECK_EQ(TEST_RING - 1, lem_tx_clean(&t->g.lc));
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_poll, "Polling: no interrupt, one access for each flush")
{
	struct lem_test *t = test_create(LEM_MODE_POLL, 2048, 1500);
	unsigned int i, j;

	for (i = 0; i < 20; i++) {
		for (j = 0; j < 50; j++)
			ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
		lem_tx_flush(&t->g.lc);
		host_run(t->h);
		ATF_CHECK_EQ(50, lem_tx_clean(&t->g.lc));
	}
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(20, test_exits(t));
	/* Short: no interrupt is asked for either. */
	for (i = 0; guest_send(&t->g, test_peer, 60) == 0; i++)
		continue;
	ATF_CHECK_EQ(TEST_RING - 1, i);
	host_run(t->h);
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(TEST_RING - 1, lem_tx_clean(&t->g.lc));
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_csb, "CSB: one kick wakes the host, the rest is memory")
{
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);
	unsigned int i;

	test_send(t, 1, 60);
	ATF_CHECK_EQ(1, test_exits(t));
	/* The host looks, and goes on looking. */
	while (host_sent(t->h) < 1)
		(void)e82545_tx(t->h->dev);
	for (i = 0; i < 1000; i++) {
		test_send(t, 1, 60);
		ATF_CHECK(e82545_tx(t->h->dev));
	}
	ATF_CHECK_EQ(0, test_exits(t));
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(1, t->g.lc.lc_stats.tx_kicks);
	ATF_CHECK_EQ(1000, t->g.lc.lc_stats.tx_kicks_saved);
	/* It sleeps at last: a kick again. */
	while (e82545_tx(t->h->dev))
		continue;
	test_send(t, 1, 60);
	ATF_CHECK_EQ(1, test_exits(t));
	test_settle(t);
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_csb_short, "CSB: out of descriptors, one interrupt is asked for, and "
    "brings room")
{
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);
	struct paravirt_csb *csb = t->g.lc.lc_csb;

	test_send(t, TEST_RING - 1, 60);
	ATF_CHECK_EQ(0, csb->guest_need_txkick);
	ATF_CHECK_EQ(ENOBUFS, guest_send(&t->g, test_peer, 60));
	ATF_CHECK_EQ(1, csb->guest_need_txkick);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(0, csb->guest_need_txkick);
	ATF_CHECK_EQ(TEST_RING - 1, lem_tx_room(&t->g.lc));
	test_send(t, 100, 60);
	test_settle(t);
	ATF_CHECK_EQ(0, test_raised(t));
	test_check_sent(t, 60);
	test_destroy(t);
}

TC(tx_wait, "A host may ask for room before it is refused any: one interrupt "
    "in each mode that has some")
{
	static const uint32_t step[] = {
		0, LEM_MODE_SC, LEM_MODE_LAZY, LEM_MODE_CSB,
		LEM_MODE_CSB | LEM_MODE_LAZY, LEM_MODE_POLL
	};
	unsigned int i;

	for (i = 0; i < 6; i++) {
		struct lem_test *t = test_create(step[i], 2048, 1500);

		test_send(t, TEST_RING - 1, 60);
		lem_tx_wait(&t->g.lc);
		ATF_CHECK_EQ(0, lem_tx_room(&t->g.lc));
		test_settle(t);
		ATF_CHECK_EQ(step[i] != LEM_MODE_POLL, test_raised(t));
		if (step[i] == LEM_MODE_POLL)
			(void)lem_tx_clean(&t->g.lc);
		ATF_CHECK_EQ(TEST_RING - 1, lem_tx_room(&t->g.lc));
		test_check_sent(t, 60);
		/* Room there is already: nothing is asked for. */
		lem_tx_wait(&t->g.lc);
		test_settle(t);
		ATF_CHECK_EQ(0, test_raised(t));
		test_destroy(t);
	}
}

TC(csb_left, "A CSB that somebody left behind is taken back before the reset")
{
	struct lem_test *t = test_create_down(2048);
	uint8_t mac[6];

	host_wr(t->h, E82545_CSBAH, 0);
	host_wr(t->h, E82545_CSBAL, 0x100000);
	ATF_CHECK_EQ(0, lem_attach(&t->g.lc, mac));
	ATF_CHECK_EQ(0, host_rd(t->h, E82545_CSBAL));
	ATF_CHECK_EQ(0, lem_start(&t->g.lc, mac, 1500));
	ATF_CHECK_EQ(t->g.lc.lc_csb_dma, host_rd(t->h, E82545_CSBAL));
	lem_stop(&t->g.lc);
	ATF_CHECK_EQ(0, host_rd(t->h, E82545_CSBAL));
	test_destroy(t);
}

static void
check_received(struct lem_test *t)
{

	ATF_CHECK_EQ(t->injected, t->g.received);
	ATF_CHECK_EQ(0, t->g.missing);
	ATF_CHECK_EQ(0, t->g.wrong);
	ATF_CHECK_EQ(t->g.received, t->g.lc.lc_stats.rx_packets);
}

TC(rx_base, "Plain: an interrupt and a write to RDT for each batch")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		test_inject(t, 1, 60);
		test_settle(t);
	}
	ATF_CHECK_EQ(1000, test_raised(t));
	ATF_CHECK_EQ(1000 * (1 + INTR_EXITS), test_exits(t));
	test_inject(t, 50, 60);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(1 + INTR_EXITS, test_exits(t));
	check_received(t);
	test_destroy(t);
}

TC(rx_poll, "Polling: no interrupt, a write to RDT for an eighth of the ring")
{
	struct lem_test *t = test_create(LEM_MODE_POLL, 2048, 1500);
	unsigned int i;

	for (i = 0; i < 4 * TEST_RING; i++) {
		test_inject(t, 1, 60);
		host_run(t->h);
		ATF_CHECK_EQ(1, lem_rx(&t->g.lc, 8));
		ATF_CHECK_EQ(0, lem_rx(&t->g.lc, 8));
	}
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(4 * 8, test_exits(t));
	check_received(t);
	/* Bounded work. */
	test_inject(t, 20, 60);
	host_run(t->h);
	ATF_CHECK_EQ(8, lem_rx(&t->g.lc, 8));
	ATF_CHECK_EQ(8, lem_rx(&t->g.lc, 8));
	ATF_CHECK_EQ(4, lem_rx(&t->g.lc, 8));
	check_received(t);
	test_destroy(t);
}

TC(rx_csb, "CSB: no interrupt while the guest is at it, no write to RDT while "
    "the host has buffers")
{
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);
	struct paravirt_csb *csb = t->g.lc.lc_csb;
	unsigned int i;

	ATF_CHECK_EQ(1, csb->guest_need_rxkick);
	test_inject(t, 1, 60);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(INTR_EXITS_CSB, test_exits(t));
	/* A budget used up: the guest comes again by itself. */
	test_inject(t, 8, 60);
	host_run(t->h);
	ATF_CHECK_EQ(1, test_raised(t));
	ATF_CHECK_EQ(LEM_INTR_RX, lem_intr(&t->g.lc));
	ATF_CHECK_EQ(0, csb->guest_need_rxkick);
	ATF_CHECK_EQ(8, lem_rx(&t->g.lc, 8));
	ATF_CHECK_EQ(0, csb->guest_need_rxkick);
	(void)test_exits(t);
	for (i = 0; i < 1000; i++) {
		test_inject(t, 8, 60);
		host_run(t->h);
		ATF_CHECK_EQ(8, lem_rx(&t->g.lc, 8));
	}
	ATF_CHECK_EQ(0, test_exits(t));
	ATF_CHECK_EQ(0, test_raised(t));
	ATF_CHECK_EQ(0, lem_rx(&t->g.lc, 8));
	lem_intr_enable(&t->g.lc);
	ATF_CHECK_EQ(1, csb->guest_need_rxkick);
	test_inject(t, 1, 60);
	test_settle(t);
	ATF_CHECK_EQ(1, test_raised(t));
	check_received(t);
	test_destroy(t);
}

TC(rx_csb_full, "CSB: a host without buffers is kicked once, when guest_rdt "
    "gets to host_rxkick_at, also past the ring's end")
{
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);
	struct paravirt_csb *csb = t->g.lc.lc_csb;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		test_inject(t, TEST_RING + 100, 60);
		host_run(t->h);
		ATF_CHECK(csb->host_rxkick_at < TEST_RING);
		t->g.lc.lc_stats.rx_kicks = 0;
		while (lem_rx(&t->g.lc, 8) == 8)
			continue;
		ATF_CHECK_EQ(1, t->g.lc.lc_stats.rx_kicks);
		test_settle(t);
		ATF_CHECK_EQ(NET_PARAVIRT_NONE, csb->host_rxkick_at);
		check_received(t);
	}
	test_destroy(t);
}

TC(rx_nobuf, "Slots without a buffer wait for one, and keep those behind "
    "them")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	struct lem_core *lc = &t->g.lc;
	struct lem_os *os = &lc->lc_os;
	unsigned int i, n;

	os->rx_keep = os->rx_hoard = true;
	n = os->nspare;
	/* All spare ones are used up, then the ring's. */
	for (i = 0; i < n + TEST_RING - 1; i++) {
		test_inject(t, 1, 60);
		test_settle(t);
	}
	check_received(t);
	ATF_CHECK_EQ(0, os->nspare);
	ATF_CHECK_EQ(TEST_RING, lc->lc_rx_missing);
	ATF_CHECK(lc->lc_stats.rx_nobuf > 0);
	test_inject(t, 30, 60);
	test_settle(t);
	ATF_CHECK_EQ(30, host_rx_waiting(t->h));
	/* Some come back. */
	for (i = 0; i < 40; i++)
		os->spare[os->nspare++] = t->g.txbuf + i * 2048;
	os->rx_hoard = false;
	ATF_CHECK_EQ(0, lem_rx(lc, 64));
	test_settle(t);
	ATF_CHECK_EQ(0, host_rx_waiting(t->h));
	check_received(t);
	test_destroy(t);
}

TC(rx_csb_nobuf, "CSB: a guest that cannot get to host_rxkick_at for want of "
    "buffers kicks for those that it has")
{
	struct lem_test *t = test_create(LEM_MODE_CSB, 2048, 1500);
	struct lem_os *os = &t->g.lc.lc_os;
	unsigned int i;

	/* A quarter of the ring is all there is. */
	os->nspare = 0;
	os->rx_keep = os->rx_hoard = true;
	test_inject(t, TEST_RING - 1, 60);
	test_settle(t);
	check_received(t);
	for (i = 0; i < TEST_RING / 4; i++)
		os->spare[os->nspare++] = t->g.txbuf + i * 2048;
	os->rx_hoard = false;
	for (i = 0; i < 5; i++) {
		test_inject(t, TEST_RING, 60);
		host_run(t->h);
		(void)lem_rx(&t->g.lc, 8);
		test_settle(t);
		ATF_CHECK_EQ(0, host_rx_waiting(t->h));
		check_received(t);
	}
	test_destroy(t);
}

TC(jumbo, "Frames of the largest MTU, in many slots, both ways")
{
	struct lem_test *t = test_create(0, 2048, 16110);
	struct lem_os *os = &t->g.lc.lc_os;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		test_inject(t, 1, 16124);
		test_settle(t);
		test_send(t, 1, 16124);
		test_settle(t);
	}
	check_received(t);
	ATF_CHECK_EQ(50 * 16124, t->g.bytes);
	ATF_CHECK_EQ(0, os->rx_dropped);
	test_check_sent(t, 16124);
	test_destroy(t);
}

/* Ethernet, IPv4, TCP or UDP, `len' bytes in all; the last two bytes of the
   payload tell it from others. */
static void
make_ip(uint8_t *p, size_t len, bool tcp, unsigned int seed)
{
	size_t i;

	host_make_frame(p, len, test_peer, seed);
	p[12] = 0x08;
	p[13] = 0x00;
	memset(p + 14, 0, 40);
	p[14] = 0x45;
	p[16] = (len - 14) >> 8;
	p[17] = len - 14;
	p[22] = 64;
	p[23] = tcp ? 6 : 17;
	for (i = 26; i < 34; i++)
		p[i] = i;
	if (tcp)
		p[46] = 0x50;
	else {
		p[38] = (len - 34) >> 8;
		p[39] = len - 34;
	}
}

/* The ones' complement sum of bytes, folded: 0xffff with a right checksum. */
static uint32_t
sum(const uint8_t *p, size_t len, uint32_t start)
{
	uint32_t s = start;
	size_t i;

	for (i = 0; i < len; i++)
		s += (i & 1) != 0 ? p[i] : (uint32_t)p[i] << 8;
	while (s > 0xffff)
		s = (s & 0xffff) + (s >> 16);
	return (s);
}

/* Send bytes as a packet of pieces that end in odd places. */
static int
send_ip(struct lem_test *t, uint8_t *frame, size_t len, unsigned int flags,
    uint16_t mss, uint16_t vlan)
{
	struct lem_os *os = &t->g.lc.lc_os;
	struct lem_packet lp;
	struct lem_seg seg[3];
	uint64_t gpa;
	uint32_t slot;
	bool tcp = (flags & (LEM_TX_TCPSUM | LEM_TX_TSO4)) != 0;
	int error;

	/* What the hardware goes on from: the pseudo-header's sum. */
	uint32_t s = sum(frame + 26, 8, (tcp ? 6 : 17) +
	    ((flags & LEM_TX_TSO4) != 0 ? 0 : len - 34));
	frame[tcp ? 50 : 40] = s >> 8;
	frame[tcp ? 51 : 41] = s;
	gpa = guest_txbuf(&t->g);
	memcpy(os->ram + gpa, frame, len);
	seg[0] = (struct lem_seg){ gpa, 14 };
	seg[1] = (struct lem_seg){ gpa + 14, 43 };
	seg[2] = (struct lem_seg){ gpa + 57, len - 57 };
	memset(&lp, 0, sizeof(lp));
	lp.lp_segs = seg;
	lp.lp_nsegs = 3;
	lp.lp_flags = flags;
	lp.lp_len = len;
	lp.lp_l2len = 14;
	lp.lp_l3len = 20;
	lp.lp_l4len = tcp ? 20 : 8;
	lp.lp_mss = mss;
	lp.lp_vlan = vlan;
	error = lem_tx(&t->g.lc, &lp, &slot);
	if (error == 0) {
		os->tx_owned[slot] = true;
		t->g.sent++;
	}
	lem_tx_flush(&t->g.lc);
	return (error);
}

static void
check_sums(const uint8_t *p, size_t len, bool tcp)
{

	ATF_CHECK_EQ(0xffff, sum(p + 14, 20, 0));
	ATF_CHECK_EQ(0xffff, sum(p + 34, len - 34, sum(p + 26, 8,
	    (tcp ? 6 : 17) + (len - 34))));
}

TC(checksums, "IP, TCP and UDP checksums; a context that stays the same is "
    "sent once")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	const unsigned int tcp = LEM_TX_IPSUM | LEM_TX_TCPSUM;
	const unsigned int udp = LEM_TX_IPSUM | LEM_TX_UDPSUM;
	/* Descriptors: three pieces, and a context at each change. */
	static const struct {
		bool		tcp;
		uint32_t	descs;
	} step[] = {
		{ true, 4 }, { true, 3 }, { true, 3 }, { false, 4 },
		{ false, 3 }, { true, 4 }
	};
	uint8_t frame[1000];
	unsigned int i;
	uint32_t tail;

	for (i = 0; i < 6; i++) {
		make_ip(frame, 101 + i, step[i].tcp, i);
		tail = t->g.lc.lc_tx_tail;
		ATF_REQUIRE_EQ(0, send_ip(t, frame, 101 + i,
		    step[i].tcp ? tcp : udp, 0, 0));
		ATF_CHECK_EQ(step[i].descs, t->g.lc.lc_tx_tail - tail);
		test_settle(t);
		ATF_REQUIRE_EQ(i + 1, host_sent(t->h));
		ATF_CHECK_EQ(101 + i, host_sent_frame(t->h, i)->len);
		check_sums(host_sent_frame(t->h, i)->data, 101 + i,
		    step[i].tcp);
	}
	/* A reset forgets it, and so do we. */
	lem_stop(&t->g.lc);
	ATF_REQUIRE_EQ(0, lem_start(&t->g.lc, t->g.mac, 1500));
	make_ip(frame, 101, true, 0);
	ATF_REQUIRE_EQ(0, send_ip(t, frame, 101, tcp, 0, 0));
	ATF_CHECK_EQ(4, t->g.lc.lc_tx_tail);
	host_run(t->h);
	check_sums(host_sent_frame(t->h, 6)->data, 101, true);
	(void)lem_tx_clean(&t->g.lc);
	test_destroy(t);
}

TC(tso, "TSO cuts a packet into segments with right checksums, with tag")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	uint8_t frame[10054];
	const struct host_frame *f;
	unsigned int i;

	lem_set_vlan(&t->g.lc, true);
	make_ip(frame, sizeof(frame), true, 3);
	ATF_REQUIRE_EQ(0, send_ip(t, frame, sizeof(frame),
	    LEM_TX_TSO4 | LEM_TX_VLAN, 1000, 0x0123));
	test_settle(t);
	ATF_REQUIRE_EQ(10, host_sent(t->h));
	for (i = 0; i < 10; i++) {
		f = host_sent_frame(t->h, i);
		ATF_REQUIRE_EQ(1058, f->len);
		ATF_CHECK_EQ(0x81, f->data[12]);
		ATF_CHECK_EQ(0x23, f->data[15]);
		check_sums(f->data + 4, 1054, true);
		ATF_CHECK_EQ(0, memcmp(frame + 54 + 1000 * i, f->data + 58,
		    1000));
	}
	ATF_CHECK_EQ(1, t->g.lc.lc_os.tx_done);
	ATF_CHECK_EQ(1, t->g.lc.lc_stats.tx_packets);
	test_destroy(t);
}

/* What the last frame's descriptor said. */
static struct lem_rx last_rx;

static void
keep_rx(void *arg __unused, const uint8_t *data __unused, size_t len __unused,
    const struct lem_rx *rx)
{

	last_rx = *rx;
}

TC(rx_offload, "What the adapter verified, and the tag it took out")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	uint8_t frame[200];
	uint32_t s;

	lem_set_vlan(&t->g.lc, true);
	t->g.lc.lc_os.frame = keep_rx;
	make_ip(frame, 200, true, 1);
	memcpy(frame, t->g.mac, 6);
	s = ~sum(frame + 14, 20, 0);
	frame[24] = s >> 8;
	frame[25] = s;
	s = ~sum(frame + 34, 166, sum(frame + 26, 8, 6 + 166));
	frame[50] = s >> 8;
	frame[51] = s;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK(last_rx.eop && last_rx.ipsum_ok && last_rx.l4sum_ok);
	ATF_CHECK(!last_rx.vlan);
	ATF_CHECK_EQ(200, last_rx.len);
	frame[100]++;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK(last_rx.ipsum_ok && !last_rx.l4sum_ok);
	frame[24]++;
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK(!last_rx.ipsum_ok);
	memcpy(frame + 12, "\x81\x00\x0a\xbc\x88\xb5", 6);
	host_inject(t->h, frame, 200, 1);
	test_settle(t);
	ATF_CHECK(last_rx.vlan);
	ATF_CHECK_EQ(0xabc, last_rx.tag);
	ATF_CHECK_EQ(196, last_rx.len);
	ATF_CHECK(!last_rx.ipsum_ok && !last_rx.l4sum_ok);
	test_destroy(t);
}

TC(round_trip, "A request and its answer: eight exits and two interrupts, with "
    "the CSB two and one")
{
	static const struct {
		uint32_t	mode;
		unsigned int	exits, raised;
	} step[] = {
		{ 0, 2 + 2 * INTR_EXITS, 2 },
		{ LEM_MODE_LAZY, 2 + INTR_EXITS, 1 },
		{ LEM_MODE_CSB, 1 + INTR_EXITS_CSB, 1 }
	};
	unsigned int i, j;

	for (i = 0; i < 3; i++) {
		struct lem_test *t = test_create(step[i].mode, 2048, 1500);

		for (j = 0; j < 100; j++) {
			test_inject(t, 1, 60);
			test_settle(t);
			test_send(t, 1, 60);
			test_settle(t);
		}
		ATF_CHECK_EQ(100 * step[i].exits, test_exits(t));
		ATF_CHECK_EQ(100 * step[i].raised, test_raised(t));
		check_received(t);
		test_check_sent(t, 60);
		test_destroy(t);
	}
}

/* Every mode there is, and a bit that must not stay. */
static const uint32_t modes[] = {
	0, LEM_MODE_CSB, LEM_MODE_SC, LEM_MODE_POLL, LEM_MODE_LAZY,
	LEM_MODE_CSB | LEM_MODE_POLL, LEM_MODE_SC | LEM_MODE_LAZY,
	LEM_MODE_CSB | LEM_MODE_SC | LEM_MODE_LAZY, LEM_MODE_POLL |
	LEM_MODE_LAZY, LEM_MODE_CSB | LEM_MODE_SC, 0x0f
};
#define	NMODES	(sizeof(modes) / sizeof(modes[0]))

TC(mode_changes, "From any mode to any other with frames under way: none is "
    "lost, none waits")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	struct lem_core *lc = &t->g.lc;
	unsigned int i, j, k;

	for (i = 0; i < NMODES; i++) {
		for (j = 0; j < NMODES; j++) {
			ATF_REQUIRE_EQ(0, lem_set_mode(lc, modes[i]));
			lem_intr_enable(lc);
			test_settle(t);
			/* Told, held, done and not looked at. */
			test_send(t, 3, 60);
			test_inject(t, 5, 60);
			host_run(t->h);
			test_send(t, 3, 60);
			ATF_REQUIRE_EQ(0, lem_set_mode(lc, modes[j]));
			lem_intr_enable(lc);
			test_send(t, 2, 60);
			test_inject(t, 5, 60);
			test_settle(t);
			if ((modes[j] & LEM_MODE_POLL) != 0) {
				while (lem_rx(lc, 8) == 8)
					continue;
			}
			check_received(t);
			for (k = 0; k < 3; k++) {
				(void)lem_tx_clean(lc);
				test_settle(t);
			}
			(void)lem_tx_clean(lc);
			ATF_CHECK_MSG(lem_tx_idle(lc), "%#x to %#x",
			    modes[i], modes[j]);
			test_check_sent(t, 60);
		}
	}
	test_destroy(t);
}

TC(restart, "Stopped with frames in the ring: each is the host's again, and "
    "the next start is as the first")
{
	struct lem_test *t = test_create(LEM_MODE_SC, 2048, 1500);
	unsigned int i;

	for (i = 0; i < NMODES; i++) {
		ATF_REQUIRE_EQ(0, lem_set_mode(&t->g.lc, modes[i]));
		test_send(t, 10, 60);
		lem_stop(&t->g.lc);
		ATF_CHECK(lem_tx_idle(&t->g.lc));
		ATF_CHECK_EQ(t->g.sent, t->g.lc.lc_os.tx_done);
		ATF_CHECK_EQ(ENXIO, guest_send(&t->g, test_peer, 60));
		ATF_CHECK_EQ(0, lem_rx(&t->g.lc, 8));
		ATF_CHECK_EQ(0, lem_tx_clean(&t->g.lc));
		ATF_CHECK_EQ(0, lem_intr(&t->g.lc));
		host_run(t->h);
		ATF_CHECK(!host_line(t->h));
		ATF_REQUIRE_EQ(0, lem_start(&t->g.lc, t->g.mac, 1500));
		lem_intr_enable(&t->g.lc);
		test_inject(t, 5, 60);
		test_settle(t);
		while (lem_rx(&t->g.lc, 8) == 8)
			continue;
		check_received(t);
	}
	test_destroy(t);
}

TC(filter, "Promiscuous, multicast and their hash, VLAN tags, the link")
{
	struct lem_test *t = test_create(0, 2048, 1500);
	static const uint8_t group[6] = { 0x01, 0, 0x5e, 0x12, 0x34, 0x56 };
	uint32_t mta[LEM_MTA_WORDS], bit;

	bit = lem_mta_bit(group);
	ATF_CHECK_EQ(0x563, bit);
	memset(mta, 0, sizeof(mta));
	mta[bit / 32] |= 1u << bit % 32;
	lem_set_filter(&t->g.lc, false, false, mta);
	ATF_CHECK_EQ(mta[bit / 32], host_rd(t->h, E82545_MTA + bit / 32 * 4));
	lem_set_filter(&t->g.lc, true, false, NULL);
	ATF_CHECK_EQ(E82545_RCTL_UPE | E82545_RCTL_MPE,
	    host_rd(t->h, E82545_RCTL) & (E82545_RCTL_UPE | E82545_RCTL_MPE));
	lem_set_filter(&t->g.lc, false, true, NULL);
	ATF_CHECK_EQ(E82545_RCTL_MPE,
	    host_rd(t->h, E82545_RCTL) & (E82545_RCTL_UPE | E82545_RCTL_MPE));
	ATF_CHECK_EQ(0, host_rd(t->h, E82545_MTA + bit / 32 * 4));
	lem_set_vlan(&t->g.lc, true);
	ATF_CHECK((host_rd(t->h, E82545_CTRL) & E82545_CTRL_VME) != 0);
	lem_set_vlan(&t->g.lc, false);
	ATF_CHECK((host_rd(t->h, E82545_CTRL) & E82545_CTRL_VME) == 0);
	e82545_link(t->h->dev, false);
	test_settle(t);
	ATF_CHECK(!t->g.lc.lc_link);
	e82545_link(t->h->dev, true);
	test_settle(t);
	ATF_CHECK(t->g.lc.lc_link);
	test_destroy(t);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, address);
	ATF_TP_ADD_TC(tp, arguments);
	ATF_TP_ADD_TC(tp, packets);
	ATF_TP_ADD_TC(tp, tx_base);
	ATF_TP_ADD_TC(tp, tx_batch);
	ATF_TP_ADD_TC(tp, tx_combining);
	ATF_TP_ADD_TC(tp, tx_combining_short);
	ATF_TP_ADD_TC(tp, tx_combining_moderation);
	ATF_TP_ADD_TC(tp, tx_lazy);
	ATF_TP_ADD_TC(tp, tx_lazy_report);
	ATF_TP_ADD_TC(tp, tx_poll);
	ATF_TP_ADD_TC(tp, tx_csb);
	ATF_TP_ADD_TC(tp, tx_csb_short);
	ATF_TP_ADD_TC(tp, tx_wait);
	ATF_TP_ADD_TC(tp, csb_left);
	ATF_TP_ADD_TC(tp, rx_base);
	ATF_TP_ADD_TC(tp, rx_poll);
	ATF_TP_ADD_TC(tp, rx_csb);
	ATF_TP_ADD_TC(tp, rx_csb_full);
	ATF_TP_ADD_TC(tp, rx_nobuf);
	ATF_TP_ADD_TC(tp, rx_csb_nobuf);
	ATF_TP_ADD_TC(tp, jumbo);
	ATF_TP_ADD_TC(tp, round_trip);
	ATF_TP_ADD_TC(tp, checksums);
	ATF_TP_ADD_TC(tp, tso);
	ATF_TP_ADD_TC(tp, rx_offload);
	ATF_TP_ADD_TC(tp, mode_changes);
	ATF_TP_ADD_TC(tp, restart);
	ATF_TP_ADD_TC(tp, filter);
	return (atf_no_error());
}
