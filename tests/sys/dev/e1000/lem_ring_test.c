/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's rings, descriptor by descriptor, with an adapter that records
 * each register written: what is posted, when and by which write, and what is
 * received.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "lem_fake.h"
#include "test.h"

/* Frames that the driver passed on. */
static unsigned int nframes;
static size_t frame_len;
static uint32_t frame_flags;

static void
count_frame(void *arg __unused, const uint8_t *data __unused, size_t len,
    uint32_t flags, uint16_t vlan __unused)
{
	nframes++;
	frame_len = len;
	frame_flags = flags;
}

#define	DD	E82545_REST_STATUS(E82545_RXD_DD)
#define	LAST	(DD | E82545_REST_STATUS(E82545_RXD_EOP))
#define	ERR(e)	E82545_REST_ERRORS(E82545_RXD_ERR_##e)

TEST(rx_lengths, "Which descriptors make a frame, and what the others count as")
{
	/* The longest frame: full buffers and a rest. */
	enum { FULL = E82545_FRAME_MAX / 2048, REST = E82545_FRAME_MAX % 2048 };
	static const struct {
		unsigned int	full;		/* descriptors before */
		uint64_t	rest;		/* the last one */
		size_t		len;		/* of the frame; 0: none */
		unsigned int	bad, error;
	} t[] = {
		{ 0, LAST | 0, 0, 1, 0 },
		{ 0, LAST | 1, 0, 1, 0 },
		{ 0, LAST | 13, 0, 1, 0 },
		{ 0, LAST | 14, 14, 0, 0 },
		{ 0, LAST | 2048, 2048, 0, 0 },
		{ 0, LAST | 2049, 0, 1, 0 },
		{ 1, LAST | 1, 2049, 0, 0 },
		{ 1, LAST | 0, 0, 1, 0 },
		{ 1, LAST | 13, 2061, 0, 0 },
		{ FULL, LAST | REST, E82545_FRAME_MAX, 0, 0 },
		{ FULL, LAST | (REST + 1), 0, 1, 0 },
		{ 0, LAST | ERR(CE) | 60, 0, 0, 1 },
		{ 0, LAST | ERR(SE) | 60, 0, 0, 1 },
		{ 0, LAST | ERR(SEQ) | 60, 0, 0, 1 },
		{ 0, LAST | ERR(CXE) | 60, 0, 0, 1 },
		{ 0, LAST | ERR(RXE) | 60, 0, 0, 1 },
		{ 0, LAST | ERR(TCPE) | ERR(IPE) | 60, 60, 0, 0 },
	};
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	uint64_t bad, error, packets;
	unsigned int i, j, want;
	uint32_t n;

	lc->lc_mode = LEM_MODE_POLL;
	lc->lc_os.frame = count_frame;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 9000));
	/* Errors in the first descriptor of two mean nothing. */
	n = lc->lc_rx_next;
	lc->lc_rxd[n].rest = DD | ERR(CE) | 2048;
	lc->lc_rxd[n + 1].rest = LAST | 100;
	ATF_CHECK_EQ(1, lem_rx(lc, 64));
	ATF_CHECK_EQ(1, nframes);
	ATF_CHECK_EQ(2148, frame_len);
	/* A buffer that is not full and not the last; the rest is skipped. */
	bad = lc->lc_counter[LEM_C_RX_BAD];
	n = lc->lc_rx_next;
	lc->lc_rxd[n].rest = DD | 2047;
	lc->lc_rxd[n + 1].rest = DD | 2048;
	lc->lc_rxd[n + 2].rest = LAST | 100;
	lc->lc_rxd[n + 3].rest = LAST | 101;
	ATF_CHECK_EQ(4, lem_rx(lc, 64));
	ATF_CHECK_EQ(2, nframes);
	ATF_CHECK_EQ(101, frame_len);
	ATF_CHECK_EQ(bad + 1, lc->lc_counter[LEM_C_RX_BAD]);
	for (i = 0; i < nitems(t); i++) {
		nframes = 0;
		bad = lc->lc_counter[LEM_C_RX_BAD];
		error = lc->lc_counter[LEM_C_RX_ERROR];
		packets = lc->lc_counter[LEM_C_RX_PACKET];
		n = lc->lc_rx_next;
		for (j = 0; j < t[i].full; j++, n = (n + 1) % TEST_RING)
			lc->lc_rxd[n].rest = DD | 2048;
		lc->lc_rxd[n].rest = t[i].rest;
		ATF_CHECK_EQ_MSG(1, lem_rx(lc, 64), "row %u", i);
		want = t[i].len != 0;
		ATF_CHECK_EQ_MSG(want, nframes, "row %u", i);
		if (want)
			ATF_CHECK_EQ_MSG(t[i].len, frame_len, "row %u", i);
		ATF_CHECK_EQ_MSG(packets + want,
		    lc->lc_counter[LEM_C_RX_PACKET], "row %u", i);
		ATF_CHECK_EQ_MSG(bad + t[i].bad,
		    lc->lc_counter[LEM_C_RX_BAD], "row %u", i);
		ATF_CHECK_EQ_MSG(error + t[i].error,
		    lc->lc_counter[LEM_C_RX_ERROR], "row %u", i);
		/* The descriptors are empty again. */
		for (j = 0; j < TEST_RING; j++)
			ATF_CHECK_EQ(0, lc->lc_rxd[j].rest);
	}
	/* One batch for each call that found something. */
	ATF_CHECK_EQ(2 + nitems(t), lc->lc_counter[LEM_C_RX_BATCH]);
	ATF_CHECK_EQ(0, lem_rx(lc, 64));
	ATF_CHECK_EQ(2 + nitems(t), lc->lc_counter[LEM_C_RX_BATCH]);
	ATF_CHECK_EQ(0, lc->lc_os.misuses);
	test_destroy(test);
}

TEST(rx_flags, "The checksums and the tag of a descriptor, as flags of a frame")
{
#define	SOP_EOP	(LEM_RX_SOP | LEM_RX_EOP)
#define	ST(s)	E82545_REST_STATUS(E82545_RXD_##s)
	static const struct {
		uint64_t	rest;
		uint32_t	flags;
	} t[] = {
		{ 0, SOP_EOP },
		{ ST(IPCS), SOP_EOP | LEM_RX_IPSUM },
		{ ST(TCPCS), SOP_EOP | LEM_RX_L4SUM },
		{ ST(IPCS) | ST(TCPCS), SOP_EOP | LEM_RX_IPSUM | LEM_RX_L4SUM },
		{ ST(IPCS) | ST(TCPCS) | ST(IXSM), SOP_EOP },
		{ ST(IPCS) | ST(TCPCS) | ERR(IPE), SOP_EOP | LEM_RX_L4SUM },
		{ ST(IPCS) | ST(TCPCS) | ERR(TCPE), SOP_EOP | LEM_RX_IPSUM },
		{ ST(VP), SOP_EOP | LEM_RX_VLAN },
	};
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	unsigned int i;

	lc->lc_mode = LEM_MODE_POLL;
	lc->lc_os.frame = count_frame;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	for (i = 0; i < nitems(t); i++) {
		lc->lc_rxd[lc->lc_rx_next].rest = LAST | t[i].rest | 60;
		ATF_CHECK_EQ(1, lem_rx(lc, 64));
		ATF_CHECK_EQ_MSG(t[i].flags, frame_flags, "row %u: %#x", i,
		    frame_flags);
	}
	/* As the second buffer of a frame. */
	for (i = 0; i < nitems(t); i++) {
		lc->lc_rxd[lc->lc_rx_next].rest = DD | 2048;
		lc->lc_rxd[(lc->lc_rx_next + 1) % TEST_RING].rest =
		    LAST | t[i].rest | 60;
		ATF_CHECK_EQ(1, lem_rx(lc, 64));
		ATF_CHECK_EQ_MSG(t[i].flags & ~LEM_RX_SOP, frame_flags,
		    "row %u: %#x", i, frame_flags);
	}
	test_destroy(test);
}

LEM_TEST(rx_refill, fake_create(false), "Buffers are posted again for each "
    "quarter of the ring, within a call")
{
	static const struct access want[] = {
		{ E82545_RDT, TEST_RING / 4 - 1 },
		{ E82545_RDT, TEST_RING / 2 - 1 },
		{ E82545_RDT, TEST_RING / 2 + 8 - 1 }
	};
	struct lem_core *lc = &t->g.lc;
	unsigned int i;

	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	fake.nwrote = 0;
	for (i = 0; i < TEST_RING / 2 + 8; i++)
		lc->lc_rxd[i].rest = LAST | 60;
	ATF_CHECK_EQ(i, lem_rx(lc, TEST_RING));
	check_wrote("refill", want, nitems(want));
	ATF_CHECK_EQ(3, lc->lc_counter[LEM_C_RX_KICK]);
	/* The slots had buffers, but the one that is left empty at first. */
	ATF_CHECK_EQ(TEST_RING, lc->lc_os.rx_bufs);
}

TEST(rx_short, "One buffer is missing: those that there are, are posted, "
    "though the host waits for more, or there are few")
{
	static const uint32_t modes[] = { LEM_MODE_CSB, LEM_MODE_POLL };
	static const struct access want[] = { { E82545_RDT, 0 } };
	struct lem_test *test;
	struct lem_core *lc;
	unsigned int i;

	for (i = 0; i < nitems(modes); i++) {
		test = fake_create(true);
		lc = &test->g.lc;
		lc->lc_mode = modes[i];
		lc->lc_os.rx_keep = lc->lc_os.rx_hoard = true;
		ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
		ATF_CHECK_EQ(TEST_RING - 1, lc->lc_rx_posted);
		lc->lc_csb->host_rxkick_at = 50;
		lc->lc_os.nspare = 1;
		lc->lc_rxd[0].rest = lc->lc_rxd[1].rest = LAST | 60;
		fake.nwrote = 0;
		ATF_CHECK_EQ(2, lem_rx(lc, 64));
		check_wrote("short", want, nitems(want));
		/* Each look finds that there is none. */
		ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_RX_NOBUF]);
		test_destroy(test);
	}
}

LEM_TEST(rx_unposted, fake_create(false), "A descriptor that was not posted is "
    "counted as bad, and in the budget")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i;

	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	lc->lc_os.rx_keep = lc->lc_os.rx_hoard = true;
	lc->lc_os.nspare = 0;
	for (i = 0; i < TEST_RING; i++)
		lc->lc_rxd[i].rest = LAST | 60;
	ATF_CHECK_EQ(TEST_RING, lem_rx(lc, 2 * TEST_RING));
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_RX_BAD]);
	ATF_CHECK_EQ(TEST_RING - 1, lc->lc_counter[LEM_C_RX_PACKET]);
	ATF_CHECK_EQ(0, lem_rx(lc, 2 * TEST_RING));
}

TEST(csb_rdt, "With the CSB, RDT is written when the tail reaches the slot the "
    "host waits for, or that is none of the ring's")
{
	static const struct {
		unsigned int	frames;
		uint32_t	ahead;	/* of the tail: host_rxkick_at */
		uint32_t	at;	/* or this */
		bool		kick, bad;
	} t[] = {
		{ 1, 0, NET_PARAVIRT_NONE, false, false },
		{ 1, 0, 0, false, false },
		{ 1, 1, 0, true, false },
		{ 1, 2, 0, false, false },
		{ 1, TEST_RING - 1, 0, false, false },
		{ 3, 1, 0, true, false },
		{ 3, 3, 0, true, false },
		{ 3, 4, 0, false, false },
		{ 1, 0, TEST_RING, true, true },
		{ 2, 0, 0x80000000, true, true },
	};
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	const uint64_t *c = lc->lc_counter;
	uint64_t bad, kicks, saved;
	unsigned int i, j;

	lc->lc_mode = LEM_MODE_CSB;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	for (i = 0; i < nitems(t); i++) {
		lc->lc_csb->host_rxkick_at = t[i].at != 0 ? t[i].at :
		    (lc->lc_rx_posted + t[i].ahead) % TEST_RING;
		for (j = 0; j < t[i].frames; j++)
			lc->lc_rxd[(lc->lc_rx_next + j) % TEST_RING].rest =
			    LAST | 60;
		fake.nwrote = 0;
		bad = c[LEM_C_RX_BAD];
		kicks = c[LEM_C_RX_KICK];
		saved = c[LEM_C_RX_KICK_SAVED];
		ATF_CHECK_EQ(t[i].frames, lem_rx(lc, 64));
		ATF_CHECK_EQ_MSG(t[i].kick, fake.nwrote, "row %u", i);
		if (t[i].kick)
			ATF_CHECK_EQ(E82545_RDT, fake.wrote[0].reg);
		ATF_CHECK_EQ(lc->lc_rx_posted, lc->lc_csb->guest_rdt);
		ATF_CHECK_EQ_MSG(kicks + t[i].kick, c[LEM_C_RX_KICK],
		    "row %u", i);
		ATF_CHECK_EQ_MSG(saved + t[i].frames - t[i].kick,
		    c[LEM_C_RX_KICK_SAVED], "row %u", i);
		ATF_CHECK_EQ_MSG(bad + t[i].bad, c[LEM_C_RX_BAD], "row %u", i);
	}
	test_destroy(test);
}

static struct lem_core *late;
static unsigned int nlate;

/* Frames arrive while the driver posts buffers. */
static void
arrive_late(uint32_t reg)
{
	unsigned int i;

	if (reg != E82545_RDT)
		return;
	for (i = 0; i < nlate; i++)
		late->lc_rxd[(late->lc_rx_next + i) % TEST_RING].rest =
		    LAST | 60;
	nlate = 0;
}

LEM_TEST(csb_late, fake_create(true), "Frames that arrive before the driver "
    "requests an interrupt are seen by its second look")
{
	struct lem_core *lc = &t->g.lc;

	lc->lc_mode = LEM_MODE_CSB;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	late = lc;
	fake.write_hook = arrive_late;
	/* A kick for each buffer posted. */
	lc->lc_csb->host_rxkick_at = TEST_RING;
	nlate = 1;
	lc->lc_rxd[lc->lc_rx_next].rest = LAST | 60;
	ATF_CHECK_EQ(1, lem_rx(lc, 64));
	ATF_CHECK(lem_intr_enable(lc));
	ATF_CHECK_EQ(1, lem_rx(lc, 64));
	ATF_CHECK_EQ(0, lc->lc_csb->guest_need_rxkick);
	ATF_CHECK(!lem_intr_enable(lc));
	ATF_CHECK_EQ(1, lc->lc_csb->guest_need_rxkick);
	fake.write_hook = NULL;
	/* Stopped, it looks at no descriptor. */
	lem_stop(lc);
	lc->lc_rxd[lc->lc_rx_next].rest = LAST | 60;
	ATF_CHECK_EQ(0, lem_rx(lc, 64));
}

LEM_TEST(restart, fake_create(false), "A start leaves nothing of what was "
    "before")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i;

	lc->lc_mode = LEM_MODE_POLL;
	lc->lc_os.frame = count_frame;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	/* In the middle of a frame that is skipped. */
	lc->lc_rxd[lc->lc_rx_next].rest = DD | 2047;
	ATF_CHECK_EQ(1, lem_rx(lc, 64));
	ATF_CHECK(lc->lc_rx_skip);
	/* Packets that are queued, not posted. */
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	lem_stop(lc);
	fake.nwrote = 0;
	lem_tx_flush(lc);
	lem_tx_wait(lc, 1);
	check_wrote("flush when stopped", NULL, 0);
	for (i = 0; i < TEST_RING; i++)
		lc->lc_rxd[i].rest = LAST | 60;
	/* What follows the ring is not the driver's. */
	lc->lc_rxd[TEST_RING].rest = 77;
	lc->lc_unread = 1;
	lc->lc_tx_pending = lc->lc_tx_deferred = 5;
	lc->lc_tx_waiting = true;
	lc->lc_tx_short = 1;
	lc->lc_tx_ctx[0] = lc->lc_tx_ctx[1] = 77;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	ATF_CHECK_EQ(77, lc->lc_rxd[TEST_RING].rest);
	ATF_CHECK_EQ(0, lc->lc_unread);
	ATF_CHECK_EQ(0, lc->lc_tx_pending);
	ATF_CHECK_EQ(0, lc->lc_tx_deferred);
	ATF_CHECK(!lc->lc_tx_waiting);
	ATF_CHECK_EQ(0, lc->lc_tx_short);
	ATF_CHECK_EQ(0, lc->lc_tx_ctx[0]);
	ATF_CHECK_EQ(0, lc->lc_tx_ctx[1]);
	for (i = 0; i < TEST_RING; i++)
		ATF_CHECK_EQ(0, lc->lc_rxd[i].rest);
	nframes = 0;
	lc->lc_rxd[0].rest = LAST | 60;
	ATF_CHECK_EQ(1, lem_rx(lc, 64));
	ATF_CHECK_EQ(1, nframes);
}

TEST(wait, "Which mode asks how for the interrupt of free descriptors")
{
	static const struct {
		uint32_t	mode;
		bool		on;		/* interrupts */
		bool		ims, csb;
	} t[] = {
		{ 0, true, false, false },
		{ LEM_MODE_LAZY, true, true, false },
		{ LEM_MODE_LAZY, false, false, false },
		{ LEM_MODE_LAZY | LEM_MODE_SC, true, true, false },
		{ LEM_MODE_LAZY | LEM_MODE_SC, false, false, false },
		{ LEM_MODE_CSB, true, false, true },
		{ LEM_MODE_CSB | LEM_MODE_LAZY, true, false, true },
		{ LEM_MODE_CSB | LEM_MODE_POLL, true, false, false },
		{ LEM_MODE_POLL, true, false, false },
	};
	static const struct access ims[] = {
		{ E82545_IMS, E82545_ICR_TXDW }
	};
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	unsigned int i, n;

	for (i = 0; i < nitems(t); i++) {
		lem_stop(lc);
		lc->lc_mode = t[i].mode;
		ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
		lc->lc_intr_on = t[i].on;
		lc->lc_csb->guest_need_txkick = 0;
		fake.nwrote = 0;
		/* All are free, and one more is needed. */
		lem_tx_wait(lc, TEST_RING);
		check_wrote("wait", ims, t[i].ims);
		ATF_CHECK_EQ_MSG(1, lc->lc_tx_short, "row %u", i);
		ATF_CHECK_EQ_MSG(t[i].csb, lc->lc_csb->guest_need_txkick,
		    "row %u", i);
		lem_tx_clean(lc);
		ATF_CHECK_EQ_MSG(0, lc->lc_tx_short, "row %u", i);
		ATF_CHECK_EQ(0, lc->lc_csb->guest_need_txkick);
		/* There are enough. */
		lem_tx_wait(lc, TEST_RING - 1);
		ATF_CHECK_EQ_MSG(0, lc->lc_tx_short, "row %u", i);
		ATF_CHECK_EQ(0, lc->lc_csb->guest_need_txkick);
		/* A quarter of the ring ends the wait, less does not. */
		for (n = 0; n < TEST_RING - 1 - TEST_RING / 4; n++)
			ATF_REQUIRE_EQ(0, guest_send(&test->g, test_peer, 60));
		/* Nor does that, if the host waits for more. */
		lem_tx_wait(lc, TEST_RING / 4 + 1);
		lem_tx_clean(lc);
		ATF_CHECK_EQ_MSG(1, lc->lc_tx_short, "row %u", i);
		ATF_CHECK_EQ_MSG(t[i].csb, lc->lc_csb->guest_need_txkick,
		    "row %u", i);
		lem_tx_wait(lc, 1);
		lc->lc_tx_short = 1;
		lem_tx_clean(lc);
		ATF_CHECK_EQ_MSG(0, lc->lc_tx_short, "row %u", i);
		ATF_REQUIRE_EQ(0, guest_send(&test->g, test_peer, 60));
		lc->lc_tx_short = 1;
		lem_tx_clean(lc);
		ATF_CHECK_EQ_MSG(1, lc->lc_tx_short, "row %u", i);
	}
	test_destroy(test);
}

LEM_TEST(tx_unposted, fake_create(false), "The completion of a packet that was "
    "not posted is cleared")
{
	struct lem_core *lc = &t->g.lc;
	uint64_t rest;
	unsigned int i;

	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	/* A quarter of the ring: the last one asks for a report. */
	for (i = 0; i < TEST_RING / 4; i++)
		ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	rest = lc->lc_txd[i - 1].rest;
	ATF_CHECK(rest & E82545_TXD_RS);
	lc->lc_txd[i - 1].rest = rest | E82545_REST_STATUS(E82545_TXD_DD);
	ATF_CHECK_EQ(0, lem_tx_clean(lc));
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_TX_BAD]);
	ATF_CHECK_EQ(rest, lc->lc_txd[i - 1].rest);
	/* Posted and completed. */
	lem_tx_flush(lc);
	lc->lc_txd[i - 1].rest = rest | E82545_REST_STATUS(E82545_TXD_DD);
	ATF_CHECK_EQ(i, lem_tx_clean(lc));
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_TX_BAD]);
}

/* A packet of `nsegs' segments, at different addresses. */
static int
send_segs(struct lem_test *test, unsigned int nsegs, uint16_t flags)
{
	struct lem_seg seg[LEM_TX_MAXSEGS];
	struct lem_packet lp;
	unsigned int i;

	for (i = 0; i < nsegs; i++) {
		seg[i].ls_addr = 0x100000000 * (i + 1) + i;
		seg[i].ls_len = 60 + i;
	}
	memset(&lp, 0, sizeof(lp));
	lp.lpk_segs = seg;
	lp.lpk_nsegs = nsegs;
	lp.lpk_flags = flags;
	lp.lpk_l2len = 14;
	lp.lpk_l3len = 20;
	return (guest_tx(&test->g, &lp));
}

static void
complete(struct lem_core *lc, uint32_t slot)
{
	ATF_CHECK(lc->lc_txd[slot].rest & E82545_TXD_RS);
	lc->lc_txd[slot].rest |= E82545_REST_STATUS(E82545_TXD_DD);
}

LEM_TEST(tx_room, fake_create(false), "A packet is queued if there are enough "
    "descriptors; lem_tx() looks for more, and waits for them, only if not")
{
	static const struct access tdt[] = { { E82545_TDT, TEST_RING - 1 } };
	const unsigned int fill = TEST_RING - 1 - LEM_TX_MAXSEGS;
	struct lem_core *lc = &t->g.lc;
	unsigned int i;

	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	ATF_REQUIRE_EQ(0, send_segs(t, LEM_TX_MAXSEGS, 0));
	lem_tx_flush(lc);
	fake.nwrote = 0;
	complete(lc, LEM_TX_MAXSEGS - 1);
	for (i = 0; i < fill; i++)
		ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	/* They fit exactly. */
	ATF_CHECK_EQ(0, lem_tx_avail(lc));
	ATF_CHECK_EQ(0, lc->lc_os.tx_done);
	/* This one does, once the completed one is gone. */
	ATF_REQUIRE_EQ(0, send_segs(t, LEM_TX_MAXSEGS, 0));
	ATF_CHECK_EQ(0, lem_tx_avail(lc));
	ATF_CHECK_EQ(1, lc->lc_os.tx_done);
	check_wrote("enough", NULL, 0);
	ATF_CHECK_EQ(0, lc->lc_tx_short);
	lem_stop(lc);

	/* A checksum may take one more. */
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	for (i = 0; i < TEST_RING - 2; i++)
		ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	ATF_CHECK_EQ(1, lem_tx_avail(lc));
	ATF_CHECK_EQ(ENOBUFS, send_segs(t, 1, LEM_TX_IPSUM));
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_TX_FULL]);
	ATF_CHECK_EQ(1, lc->lc_tx_short);
	fake.nwrote = 0;
	ATF_CHECK_EQ(0, send_segs(t, 1, 0));
	lem_tx_flush(lc);
	check_wrote("last", tdt, nitems(tdt));
}

LEM_TEST(tx_combining, fake_create(false), "Send combining: deferred packets "
    "are posted when one or more are found completed, or all")
{
	static const struct access tdt[] = {
		{ E82545_TDT, 1 }, { E82545_TDT, 2 }, { E82545_TDT, 3 },
		{ E82545_TDT, 4 }
	};
	struct lem_core *lc = &t->g.lc;

	lc->lc_mode = LEM_MODE_SC;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	fake.nwrote = 0;
	/* Two batches are posted. */
	test_send(t, 1, 60);
	check_wrote("one", tdt, 1);
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	lem_tx_wait(lc, 1);
	check_wrote("two", tdt + 1, 1);
	ATF_CHECK_EQ(0, lc->lc_counter[LEM_C_TX_FLUSH]);
	/* A third one is deferred. */
	test_send(t, 1, 60);
	check_wrote("deferred", NULL, 0);
	ATF_CHECK_EQ(0, lem_tx_clean(lc));
	check_wrote("none completed", NULL, 0);
	complete(lc, 0);
	ATF_CHECK_EQ(1, lem_tx_clean(lc));
	check_wrote("one completed", tdt + 2, 1);
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_TX_FLUSH]);
	ATF_CHECK_EQ(1, lc->lc_counter[LEM_C_TX_COMBINED]);
	/* And a fourth. */
	test_send(t, 1, 60);
	check_wrote("deferred", NULL, 0);
	complete(lc, 1);
	complete(lc, 2);
	ATF_CHECK_EQ(2, lem_tx_clean(lc));
	check_wrote("all completed", tdt + 3, 1);
	ATF_CHECK_EQ(2, lc->lc_counter[LEM_C_TX_FLUSH]);
	/* With none under way, the next one is posted at once. */
	complete(lc, 3);
	ATF_CHECK_EQ(1, lem_tx_clean(lc));
	test_send(t, 1, 60);
	ATF_CHECK_EQ(1, fake.nwrote);
	ATF_CHECK_EQ(2, lc->lc_counter[LEM_C_TX_FLUSH]);
}

static unsigned int late_looks;

/* Complete a batch after the first look, as lem_tx_avail() is called. */
static void
complete_late(void)
{
	if (++late_looks == 3)
		complete(late, TEST_RING / 4 - 1);
}

LEM_TEST(tx_late, fake_create(true), "A batch that is completed before the "
    "driver asks for a kick is seen by its second look")
{
	struct lem_core *lc = &t->g.lc;
	unsigned int i;

	lc->lc_mode = LEM_MODE_CSB;
	ATF_REQUIRE_EQ(0, lem_start(lc, fake_mac, 1500));
	for (i = 0; i < TEST_RING - 1; i++)
		ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	lem_tx_wait(lc, 1);
	ATF_CHECK_EQ(1, lc->lc_tx_short);
	late = lc;
	late_looks = 0;
	lc->lc_os.tx_hook = complete_late;
	ATF_CHECK_EQ(TEST_RING / 4, lem_tx_clean(lc));
	lc->lc_os.tx_hook = NULL;
}

TEST_PROGRAM
