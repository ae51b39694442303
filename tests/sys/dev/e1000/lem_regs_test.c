/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver's core with an adapter that records each register written: what
 * it writes to start, to stop and to change the mode, in which order, and what
 * it stores in the CSB.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "lem_test.h"

#define	ANY		0x5a5a5a5a	/* a value that is not compared */
#define	CTRL_OLD	(E82545_CTRL_FRCSPD | E82545_CTRL_FRCDPX | 0x9)
#define	TXRING		0x123456789000	/* addresses beyond 4 GB */
#define	RXRING		0xabcdef012000
#define	CSB		0x765432109000

struct access {
	uint32_t	reg, value;
};

static struct access wrote[512];
static unsigned int nwrote, ndelay_reads;
static uint32_t ctrl, rctl, status, resetting;
static uint64_t synced[2];
/* Called with each write, if set. */
static void (*write_hook)(uint32_t reg);

static uint32_t
fake_read(void *arg __unused, uint32_t reg)
{
	switch (reg) {
	case E82545_CTRL:
		/* A reset may take a while. */
		if ((ctrl & E82545_CTRL_RST) != 0) {
			ndelay_reads++;
			if (resetting-- == 0)
				ctrl &= ~E82545_CTRL_RST;
		}
		return (ctrl);
	case E82545_RCTL:
		return (rctl);
	case E82545_STATUS:
		return (status);
	default:
		return (0);
	}
}

static void
fake_write(void *arg __unused, uint32_t reg, uint32_t value)
{
	/* The table of multicast addresses must be all zero. */
	if (reg >= E82545_MTA && reg < E82545_MTA + 4 * E82545_MTA_COUNT) {
		ATF_CHECK_EQ(0, value);
		return;
	}
	ATF_REQUIRE(nwrote < nitems(wrote));
	wrote[nwrote++] = (struct access){ reg, value };
	if (reg == E82545_RCTL)
		rctl = value;
	if (write_hook != NULL)
		write_hook(reg);
	if (reg == E82545_CTRL) {
		ctrl = value;
		resetting = 3;
	}
}

/* Check what was written since the last call. */
static void
check_wrote(const char *when, const struct access *want, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && i < nwrote; i++) {
		ATF_CHECK_EQ_MSG(want[i].reg, wrote[i].reg,
		    "%s: write %u is to %#x, not %#x", when, i, wrote[i].reg,
		    want[i].reg);
		if (want[i].value != ANY)
			ATF_CHECK_EQ_MSG(want[i].value, wrote[i].value,
			    "%s: write %u, to %#x, is %#x, not %#x", when, i,
			    wrote[i].reg, wrote[i].value, want[i].value);
	}
	ATF_CHECK_EQ_MSG(n, nwrote, "%s: %u writes, not %u", when, nwrote, n);
	nwrote = 0;
}

static struct lem_test *
fake_create(bool csb)
{
	struct lem_test *t = test_create_down(2048);
	struct lem_core *lc = &t->g.lc;

	lc->lc_os.reg_read = fake_read;
	lc->lc_os.reg_write = fake_write;
	lc->lc_os.synced = synced;
	lc->lc_txd_dma = TXRING;
	lc->lc_rxd_dma = RXRING;
	lc->lc_csb_dma = CSB;
	if (!csb)
		lc->lc_csb = NULL;
	ctrl = CTRL_OLD;
	status = E82545_STATUS_LU;
	nwrote = 0;
	return (t);
}

/* Back to the adapter that test_destroy() expects. */
static void
fake_destroy(struct lem_test *t)
{

	test_destroy(t);
}

static const uint8_t mac[6] = { 0x02, 0x13, 0x24, 0x35, 0x46, 0x97 };

#define	RESET								\
	{ E82545_IMC, 0xffffffff }, { E82545_RCTL, 0 },			\
	{ E82545_TCTL, 0x8 }, { E82545_CSBAH, 0 }, { E82545_CSBAL, 0 },	\
	{ E82545_CTRL, CTRL_OLD | E82545_CTRL_RST },			\
	{ E82545_IMC, 0xffffffff }
#define	RING(base, dma, n)						\
	{ (base), (uint32_t)(dma) }, { (base) + 4, (dma) >> 32 },	\
	{ (base) + 8, (n) * 16 }, { (base) + 16, 0 }, { (base) + 24, 0 }
#define	START(rctl, tdba, rdba)						\
	{ E82545_CTRL, 0x9 | E82545_CTRL_SLU | E82545_CTRL_ASDE },	\
	{ E82545_RAL(0), 0x35241302 }, { E82545_RAH(0), 0x80009746 },	\
	{ E82545_CTRL, 0x9 | E82545_CTRL_SLU | E82545_CTRL_ASDE },	\
	{ E82545_ITR, 77 }, RING(E82545_TDBAL, tdba, TEST_RING),	\
	{ E82545_TIPG, 0x00602008 }, { E82545_TCTL, 0x000400fa },	\
	RING(E82545_RDBAL, rdba, TEST_RING), { E82545_RXCSUM, 0x300 },	\
	{ E82545_RCTL, rctl }, { E82545_RDT, TEST_RING - 1 }

TEST(start, "The registers written to start and to stop, with the CSB")
{
	static const struct access start[] = {
		RESET, START(0x04008002, TXRING, RXRING),
		{ E82545_CSBAH, CSB >> 32 }, { E82545_CSBAL, (uint32_t)CSB }
	};
	static const struct access stop[] = {
		{ E82545_IMC, 0xffffffff }, { E82545_RCTL, 0 },
		{ E82545_TCTL, 0x8 }, { E82545_CSBAH, 0 },
		{ E82545_CSBAL, 0 },
		{ E82545_CTRL, 0x9 | E82545_CTRL_SLU | E82545_CTRL_ASDE |
		    E82545_CTRL_RST },
		{ E82545_IMC, 0xffffffff }
	};
	struct lem_test *t = fake_create(true);
	struct lem_core *lc = &t->g.lc;

	lc->lc_itr_256ns = 77;
	memset(lc->lc_csb, 0xa5, sizeof(*lc->lc_csb));
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	check_wrote("start", start, nitems(start));
	ATF_CHECK(ndelay_reads > 2);
	ATF_CHECK(lc->lc_link);
	/* The CSB is off, as the mode says, and complete. */
	ATF_CHECK_EQ(0, lc->lc_csb->guest_csb_on);
	ATF_CHECK_EQ(0, lc->lc_csb->guest_tdt);
	ATF_CHECK_EQ(TEST_RING - 1, lc->lc_csb->guest_rdt);
	ATF_CHECK_EQ(0, lc->lc_csb->guest_need_txkick);
	ATF_CHECK_EQ(1, lc->lc_csb->guest_need_rxkick);
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, lc->lc_csb->guest_txkick_at);
	ATF_CHECK_EQ(1024, lc->lc_csb->host_txcycles_lim);
	ATF_CHECK_EQ(1, lc->lc_csb->host_need_txkick);
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, lc->lc_csb->host_rxkick_at);

	lc->lc_csb->guest_csb_on = 1;
	lem_stop(lc);
	check_wrote("stop", stop, nitems(stop));
	ATF_CHECK_EQ(0, lc->lc_csb->guest_csb_on);
	ATF_CHECK(!lc->lc_running);
	/* Stopped already. */
	lem_stop(lc);
	check_wrote("stopped", NULL, 0);
	fake_destroy(t);
}

TEST(start_plain, "The registers written without the CSB, and for long "
    "frames in longer buffers; the link is down")
{
	static const struct access start[] = {
		{ E82545_IMC, 0xffffffff }, { E82545_RCTL, 0 },
		{ E82545_TCTL, 0x8 },
		{ E82545_CTRL, CTRL_OLD | E82545_CTRL_RST },
		{ E82545_IMC, 0xffffffff },
		START(0x0603802a & ~0x8, TXRING, RXRING)
	};
	struct lem_test *t = fake_create(false);
	struct lem_core *lc = &t->g.lc;

	lc->lc_itr_256ns = 77;
	lc->lc_rx_bufsize = 4096;
	status = 0;
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 9000));
	check_wrote("start", start, nitems(start));
	ATF_CHECK(!lc->lc_link);
	lem_stop(lc);
	lc->lc_rx_bufsize = 2048;
	fake_destroy(t);
}

TEST(modes, "The registers written to change the mode")
{
#define	TAILS	{ E82545_TDT, 0 }, { E82545_RDT, TEST_RING - 1 }
#define	MASK	{ E82545_IMC, 0xffffffff }
#define	WAKE	{ E82545_ICS, E82545_ICR_RXT0 | E82545_ICR_TXDW }
#define	RX_LSC	(E82545_ICR_RXT0 | E82545_ICR_RXDMT0 | E82545_ICR_RXO |	\
		E82545_ICR_LSC)
	static const struct {
		uint32_t	mode;
		uint32_t	on;		/* interrupts, before */
		struct access	want[6];
		unsigned int	n;
	} t[] = {
		/* Nothing changes. */
		{ 0, 0, { { 0, 0 } }, 0 },
		{ LEM_MODE_SC, 0, { MASK, WAKE }, 2 },
		{ LEM_MODE_CSB, 0, { TAILS, MASK, WAKE }, 4 },
		{ LEM_MODE_CSB | LEM_MODE_SC, 0, { MASK, WAKE }, 2 },
		{ LEM_MODE_CSB | LEM_MODE_POLL, 0, { TAILS, MASK }, 3 },
		{ LEM_MODE_CSB, 0, { TAILS, MASK, WAKE }, 4 },
		{ LEM_MODE_LAZY, 0, { TAILS, MASK, WAKE }, 4 },
		{ LEM_MODE_POLL, 0, { MASK }, 1 },
		{ LEM_MODE_POLL | LEM_MODE_SC, 0, { MASK }, 1 },
		{ 0, 0, { MASK, WAKE }, 2 },
		{ LEM_MODE_LAZY, 1,
		    { MASK, { E82545_IMS, RX_LSC }, WAKE }, 3 },
		{ LEM_MODE_CSB, 1, { TAILS, MASK,
		    { E82545_IMS, RX_LSC | E82545_ICR_TXDW }, WAKE }, 5 },
		{ LEM_MODE_CSB | LEM_MODE_LAZY, 1, { MASK,
		    { E82545_IMS, RX_LSC | E82545_ICR_TXDW }, WAKE }, 3 },
		{ 0, 1, { TAILS, MASK,
		    { E82545_IMS, RX_LSC | E82545_ICR_TXDW }, WAKE }, 5 },
	};
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	const struct paravirt_csb *csb = lc->lc_csb;
	unsigned int i;
	char when[20];

	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	nwrote = 0;
	for (i = 0; i < nitems(t); i++) {
		lc->lc_intr_on = t[i].on;
		ATF_REQUIRE_EQ(0, lem_set_mode(lc, t[i].mode));
		snprintf(when, sizeof(when), "mode %u", i);
		check_wrote(when, t[i].want, t[i].n);
		ATF_CHECK_EQ(t[i].mode, lc->lc_mode);
		ATF_CHECK_EQ((t[i].mode & LEM_MODE_CSB) != 0,
		    csb->guest_csb_on != 0);
		if ((t[i].mode & LEM_MODE_CSB) != 0) {
			ATF_CHECK_EQ((t[i].mode & LEM_MODE_POLL) == 0,
			    csb->guest_need_rxkick != 0);
			ATF_CHECK_EQ((t[i].mode & LEM_MODE_POLL) != 0 ? 256 :
			    1024, csb->host_txcycles_lim);
		}
	}
	/* A driver that polls does not ask to be woken for descriptors. */
	lc->lc_tx_short = 1;
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_CSB));
	ATF_CHECK_EQ(1, csb->guest_need_txkick);
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_CSB | LEM_MODE_POLL));
	ATF_CHECK_EQ(0, csb->guest_need_txkick);
	/* Unknown bits, alone and with others. */
	ATF_CHECK_EQ(EINVAL, lem_set_mode(lc, 0x10));
	ATF_CHECK_EQ(EINVAL, lem_set_mode(lc, 0x80000001));
	ATF_CHECK_EQ(LEM_MODE_CSB | LEM_MODE_POLL, lc->lc_mode);
	lc->lc_tx_short = 0;
	/* While stopped the mode is only kept. */
	lem_stop(lc);
	nwrote = 0;
	ATF_REQUIRE_EQ(0, lem_set_mode(lc, LEM_MODE_LAZY));
	check_wrote("stopped", NULL, 0);
	ATF_CHECK_EQ(LEM_MODE_LAZY, lc->lc_mode);
	fake_destroy(test);
}

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
	uint64_t bad, error, looks, packets;
	unsigned int i, j, want;
	uint32_t n;

	lc->lc_mode = LEM_MODE_POLL;
	lc->lc_os.frame = count_frame;
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 9000));
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
		looks = synced[false];
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
		/* The ring was synced before it was read. */
		ATF_CHECK(synced[false] > looks);
	}
	/* One batch for each call that found something. */
	ATF_CHECK_EQ(2 + nitems(t), lc->lc_counter[LEM_C_RX_BATCH]);
	ATF_CHECK_EQ(0, lem_rx(lc, 64));
	ATF_CHECK_EQ(2 + nitems(t), lc->lc_counter[LEM_C_RX_BATCH]);
	ATF_CHECK_EQ(0, lc->lc_os.misuses);
	fake_destroy(test);
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
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	for (i = 0; i < nitems(t); i++) {
		lc->lc_rxd[lc->lc_rx_next].rest = LAST | t[i].rest | 60;
		ATF_CHECK_EQ(1, lem_rx(lc, 64));
		ATF_CHECK_EQ_MSG(t[i].flags, frame_flags, "row %u: %#x", i,
		    frame_flags);
	}
	fake_destroy(test);
}

TEST(rx_refill, "Buffers are posted again for each quarter of the ring, within "
    "a call")
{
	static const struct access want[] = {
		{ E82545_RDT, TEST_RING / 4 - 1 },
		{ E82545_RDT, TEST_RING / 2 - 1 },
		{ E82545_RDT, TEST_RING / 2 + 8 - 1 }
	};
	struct lem_test *test = fake_create(false);
	struct lem_core *lc = &test->g.lc;
	unsigned int i;

	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	nwrote = 0;
	for (i = 0; i < TEST_RING / 2 + 8; i++)
		lc->lc_rxd[i].rest = LAST | 60;
	ATF_CHECK_EQ(i, lem_rx(lc, TEST_RING));
	check_wrote("refill", want, nitems(want));
	ATF_CHECK_EQ(3, lc->lc_counter[LEM_C_RX_KICK]);
	fake_destroy(test);
}

TEST(sync, "Rings are synced before registers are written and descriptors read")
{
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	uint64_t after, before;

	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	ATF_CHECK(synced[true] >= 1);
	before = synced[true];
	after = synced[false];
	ATF_REQUIRE_EQ(0, guest_send(&test->g, test_peer, 60));
	lem_tx_flush(lc);
	ATF_CHECK_EQ(before + 1, synced[true]);
	ATF_CHECK_EQ(after, synced[false]);
	lem_tx_clean(lc);
	ATF_CHECK_EQ(before + 1, synced[true]);
	ATF_CHECK(synced[false] > after);
	/* A frame, and its buffer posted again. */
	after = synced[false];
	lc->lc_rxd[lc->lc_rx_next].rest = LAST | 60;
	ATF_CHECK_EQ(1, lem_rx(lc, 64));
	ATF_CHECK(synced[true] > before + 1);
	ATF_CHECK(synced[false] > after);
	lem_stop(lc);
	fake_destroy(test);
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
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	for (i = 0; i < nitems(t); i++) {
		lc->lc_csb->host_rxkick_at = t[i].at != 0 ? t[i].at :
		    (lc->lc_rx_posted + t[i].ahead) % TEST_RING;
		for (j = 0; j < t[i].frames; j++)
			lc->lc_rxd[(lc->lc_rx_next + j) % TEST_RING].rest =
			    LAST | 60;
		nwrote = 0;
		bad = c[LEM_C_RX_BAD];
		kicks = c[LEM_C_RX_KICK];
		saved = c[LEM_C_RX_KICK_SAVED];
		ATF_CHECK_EQ(t[i].frames, lem_rx(lc, 64));
		ATF_CHECK_EQ_MSG(t[i].kick, nwrote, "row %u", i);
		if (t[i].kick)
			ATF_CHECK_EQ(E82545_RDT, wrote[0].reg);
		ATF_CHECK_EQ(lc->lc_rx_posted, lc->lc_csb->guest_rdt);
		ATF_CHECK_EQ_MSG(kicks + t[i].kick, c[LEM_C_RX_KICK],
		    "row %u", i);
		ATF_CHECK_EQ_MSG(saved + t[i].frames - t[i].kick,
		    c[LEM_C_RX_KICK_SAVED], "row %u", i);
		ATF_CHECK_EQ_MSG(bad + t[i].bad, c[LEM_C_RX_BAD], "row %u", i);
		ATF_CHECK_EQ(1, lc->lc_csb->guest_need_rxkick);
	}
	fake_destroy(test);
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
	ATF_CHECK_EQ(0, late->lc_csb->guest_need_rxkick);
	for (i = 0; i < nlate; i++)
		late->lc_rxd[(late->lc_rx_next + i) % TEST_RING].rest =
		    LAST | 60;
	nlate = 0;
}

TEST(csb_late, "Frames that arrive before the driver asks for a kick are seen "
    "by its second look, within the budget")
{
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;

	lc->lc_mode = LEM_MODE_CSB;
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	late = lc;
	write_hook = arrive_late;
	/* A kick for each buffer posted. */
	lc->lc_csb->host_rxkick_at = TEST_RING;
	nlate = 1;
	lc->lc_rxd[lc->lc_rx_next].rest = LAST | 60;
	ATF_CHECK_EQ(2, lem_rx(lc, 64));
	nlate = 3;
	lc->lc_rxd[lc->lc_rx_next].rest = LAST | 60;
	ATF_CHECK_EQ(2, lem_rx(lc, 2));
	ATF_CHECK_EQ(2, lem_rx(lc, 64));
	ATF_CHECK_EQ(0, lem_rx(lc, 64));
	write_hook = NULL;
	/* Stopped, it looks at no descriptor. */
	lem_stop(lc);
	lc->lc_rxd[lc->lc_rx_next].rest = LAST | 60;
	ATF_CHECK_EQ(0, lem_rx(lc, 64));
	fake_destroy(test);
}

TEST(restart, "A start leaves nothing of what was before")
{
	struct lem_test *test = fake_create(true);
	struct lem_core *lc = &test->g.lc;
	unsigned int i;

	lc->lc_mode = LEM_MODE_POLL;
	lc->lc_os.frame = count_frame;
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	/* In the middle of a frame that is skipped. */
	lc->lc_rxd[lc->lc_rx_next].rest = DD | 2047;
	ATF_CHECK_EQ(1, lem_rx(lc, 64));
	ATF_CHECK(lc->lc_rx_skip);
	/* Packets that are queued, not posted. */
	ATF_REQUIRE_EQ(0, guest_send(&test->g, test_peer, 60));
	lem_stop(lc);
	nwrote = 0;
	lem_tx_flush(lc);
	lem_tx_wait(lc, 1);
	check_wrote("flush when stopped", NULL, 0);
	for (i = 0; i < TEST_RING; i++)
		lc->lc_rxd[i].rest = LAST | 60;
	lc->lc_tx_pending = lc->lc_tx_deferred = 5;
	lc->lc_tx_waiting = true;
	lc->lc_tx_short = 1;
	lc->lc_tx_ctx[0] = lc->lc_tx_ctx[1] = 77;
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
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
	fake_destroy(test);
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
		ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
		lc->lc_intr_on = t[i].on;
		lc->lc_csb->guest_need_txkick = 0;
		nwrote = 0;
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
		lc->lc_tx_short = 1;
		lem_tx_clean(lc);
		ATF_CHECK_EQ_MSG(0, lc->lc_tx_short, "row %u", i);
		ATF_REQUIRE_EQ(0, guest_send(&test->g, test_peer, 60));
		lc->lc_tx_short = 1;
		lem_tx_clean(lc);
		ATF_CHECK_EQ_MSG(1, lc->lc_tx_short, "row %u", i);
	}
	fake_destroy(test);
}

TEST(arguments, "The limits of lem_start(), and a start while running")
{
	struct lem_test *test = fake_create(false);
	struct lem_core *lc = &test->g.lc;
	unsigned int i, n;

	ATF_CHECK_EQ(EINVAL, lem_start(lc, mac, E82545_MTU_MIN - 1));
	ATF_CHECK_EQ(0, lem_start(lc, mac, E82545_MTU_MIN));
	ATF_CHECK_EQ(0, rctl & E82545_RCTL_LPE);
	ATF_CHECK_EQ(0, lem_start(lc, mac, 1501));
	ATF_CHECK(rctl & E82545_RCTL_LPE);
	ATF_CHECK_EQ(0, lem_start(lc, mac, 1500));
	ATF_CHECK_EQ(0, rctl & E82545_RCTL_LPE);
	ATF_CHECK_EQ(0, lem_start(lc, mac, E82545_MTU_MAX));
	ATF_CHECK_EQ(EINVAL, lem_start(lc, mac, E82545_MTU_MAX + 1));
	/* It stops first: two resets. */
	nwrote = 0;
	ATF_CHECK_EQ(0, lem_start(lc, mac, 1500));
	for (i = n = 0; i < nwrote; i++)
		n += wrote[i].reg == E82545_CTRL &&
		    (wrote[i].value & E82545_CTRL_RST) != 0;
	ATF_CHECK_EQ(2, n);
	lem_stop(lc);
	lc->lc_nrxd = 64;
	ATF_CHECK_EQ(EINVAL, lem_start(lc, mac, 1500));
	lc->lc_nrxd = TEST_RING;
	/* Modes without a CSB. */
	ATF_CHECK_EQ(0, lem_set_mode(lc, LEM_MODE_SC));
	ATF_CHECK_EQ(ENOTSUP, lem_set_mode(lc, LEM_MODE_CSB));
	ATF_CHECK_EQ(LEM_MODE_SC, lc->lc_mode);
	fake_destroy(test);
}

TEST(intr_enable, "Interrupts are not enabled while stopped or polling")
{
	struct lem_test *test = fake_create(false);
	struct lem_core *lc = &test->g.lc;

	nwrote = 0;
	ATF_CHECK(!lem_intr_enable(lc));
	ATF_CHECK(!lem_intr(lc));
	check_wrote("stopped", NULL, 0);
	lc->lc_mode = LEM_MODE_POLL;
	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	nwrote = 0;
	ATF_CHECK(!lem_intr_enable(lc));
	ATF_CHECK(!lem_intr(lc));
	check_wrote("polling", NULL, 0);
	fake_destroy(test);
}

TEST(filter, "RCTL is written if the filter changes, and keeps its other bits")
{
	static const struct access on[] = {
		{ E82545_CTRL, ANY },
		{ E82545_RCTL, 0x04008002 | E82545_RCTL_UPE | E82545_RCTL_MPE }
	};
	static const struct access same[] = {
		{ E82545_CTRL, ANY }
	};
	static const struct access off[] = {
		{ E82545_CTRL, ANY }, { E82545_RCTL, 0x04008002 }
	};
	struct lem_test *test = fake_create(false);
	struct lem_core *lc = &test->g.lc;

	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	nwrote = 0;
	lem_set_filter(lc, E82545_RCTL_UPE | E82545_RCTL_MPE, false, NULL);
	check_wrote("on", on, nitems(on));
	lem_set_filter(lc, E82545_RCTL_UPE | E82545_RCTL_MPE, true, NULL);
	check_wrote("same", same, nitems(same));
	ATF_CHECK(ctrl & E82545_CTRL_VME);
	lem_set_filter(lc, 0, false, NULL);
	check_wrote("off", off, nitems(off));
	ATF_CHECK_EQ(0, ctrl & E82545_CTRL_VME);
	fake_destroy(test);
}

TEST(tx_unposted, "The completion of a packet that was not posted is cleared")
{
	struct lem_test *test = fake_create(false);
	struct lem_core *lc = &test->g.lc;
	uint64_t rest;
	unsigned int i;

	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	/* A quarter of the ring: the last one asks for a report. */
	for (i = 0; i < TEST_RING / 4; i++)
		ATF_REQUIRE_EQ(0, guest_send(&test->g, test_peer, 60));
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
	fake_destroy(test);
}

TEST(dead, "An adapter that does not end its reset is given up after ten "
    "tries")
{
	struct lem_test *t = fake_create(true);
	struct lem_core *lc = &t->g.lc;

	ATF_REQUIRE_EQ(0, lem_start(lc, mac, 1500));
	ndelay_reads = 0;
	lem_stop(lc);
	ATF_CHECK_EQ(4, ndelay_reads);
	/* All bits set: it is gone. */
	ctrl = status = 0xffffffff;
	ATF_CHECK_EQ(ENXIO, lem_start(lc, mac, 1500));
	ATF_CHECK(!lc->lc_running);
	fake_destroy(t);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, start);
	ATF_TP_ADD_TC(tp, start_plain);
	ATF_TP_ADD_TC(tp, modes);
	ATF_TP_ADD_TC(tp, rx_lengths);
	ATF_TP_ADD_TC(tp, rx_flags);
	ATF_TP_ADD_TC(tp, rx_refill);
	ATF_TP_ADD_TC(tp, sync);
	ATF_TP_ADD_TC(tp, csb_rdt);
	ATF_TP_ADD_TC(tp, csb_late);
	ATF_TP_ADD_TC(tp, restart);
	ATF_TP_ADD_TC(tp, wait);
	ATF_TP_ADD_TC(tp, arguments);
	ATF_TP_ADD_TC(tp, intr_enable);
	ATF_TP_ADD_TC(tp, filter);
	ATF_TP_ADD_TC(tp, tx_unposted);
	ATF_TP_ADD_TC(tp, dead);
	return (atf_no_error());
}
