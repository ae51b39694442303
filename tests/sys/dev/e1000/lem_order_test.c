/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The order in which the driver's core accesses what it shares with the host.
 *
 * Each hand-shake with the host, paravirt_csb(9), is a store, a full barrier
 * and a load, on both sides.  A barrier that is missing loses a wakeup, but so
 * seldom, and on x86 next to never, that no test with threads sees it.  So this
 * one compares the accesses themselves, in order, with those that are proved,
 * by spin (csb.pml) and by Relacy (tests/relacy).  Words are
 *
 *	name?acq	load-acquire of a field of the CSB, or of a descriptor
 *	name!rel	store-release; name? and name! are relaxed
 *	NAME=		write to a register, after lem_os.h's rel
 *	rel, acq, mb	fence: release, acquire, sequentially consistent
 */

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#define	ORDER_TEST
#include "lem_order.h"
#include "lem_test.h"

static struct lem_core *traced;
static char trace[4096];

static void
say(const char *name, const char *how)
{
	size_t len = strlen(trace);

	snprintf(trace + len, sizeof(trace) - len, "%s%s%s",
	    len == 0 ? "" : " ", name, how);
	ATF_REQUIRE(strlen(trace) < sizeof(trace) - 1);
}

#define	IN(p, base, n)							\
	((uintptr_t)(p) >= (uintptr_t)(base) &&				\
	(uintptr_t)(p) < (uintptr_t)((base) + (n)))

/* The name of what is shared, NULL for the driver's own. */
static const char *
shared_name(const volatile void *p)
{
	const struct paravirt_csb *csb = traced->lc_csb;

#define	FIELD(f)	if (p == &csb->f) return (#f)
	FIELD(guest_tdt);
	FIELD(guest_rdt);
	FIELD(guest_need_txkick);
	FIELD(guest_need_rxkick);
	FIELD(guest_txkick_at);
	FIELD(guest_csb_on);
	FIELD(host_need_txkick);
	FIELD(host_tdh);
	FIELD(host_rxkick_at);
	FIELD(host_txcycles_lim);
#undef FIELD
	if (p == &traced->lc_intr_on)
		return ("intr_on");
	if (p == &traced->lc_tx_short)
		return ("tx_short");
	if (IN(p, traced->lc_rxd, traced->lc_nrxd))
		return ("rxd");
	if (IN(p, traced->lc_txd, traced->lc_ntxd))
		return ("txd");
	return (NULL);
}

void
order_note(enum order_op op, const volatile void *p)
{
	const char *name;

	if (traced == NULL)
		return;
	if (op == OP_ACQ || op == OP_REL || op == OP_SEQ_CST)
		say(op == OP_ACQ ? "acq" : op == OP_REL ? "rel" : "mb", "");
	else if ((name = shared_name(p)) != NULL)
		say(name, op == OP_LOAD ? "?" : op == OP_LOAD_ACQ ? "?acq" :
		    op == OP_STORE ? "!" : "!rel");
}

static void
order_write(void *arg, uint32_t reg, uint32_t value)
{
	if (traced != NULL)
		say(reg == E82545_TDT ? "TDT" : reg == E82545_RDT ? "RDT" :
		    reg == E82545_IMS ? "IMS" : reg == E82545_IMC ? "IMC" :
		    reg == E82545_ICS ? "ICS" : "register", "=");
	host_wr(arg, reg, value);
}

/* What `call' does, compared with `expect'. */
#define	ORDER(expect, call) do {					\
	trace[0] = '\0';						\
	traced = &t->g.lc;						\
	call;								\
	traced = NULL;							\
	ATF_CHECK_STREQ(expect, trace);					\
} while (0)

static struct lem_test *
order_create(uint32_t mode)
{
	struct lem_test *t = test_create(mode, 2048, 1500);

	t->g.lc.lc_os.reg_write = order_write;
	return (t);
}

LEM_TEST(rx_sleep, order_create(LEM_MODE_CSB), "With the CSB: before the "
    "driver waits for an interrupt it asks for one, and looks at the ring "
    "again after a barrier")
{
	test_inject(t, 1, 60);
	host_run(t->h);
	/* One frame: its slot is emptied before it is posted again. */
	ORDER("rxd?acq rxd!rel rxd?acq guest_rdt!rel mb host_rxkick_at?acq",
	    lem_rx(&t->g.lc, 64));
	ORDER("intr_on?acq guest_need_rxkick? "
	    "guest_need_rxkick!rel mb rxd?acq", lem_intr_enable(&t->g.lc));
	/* A frame has arrived: it needs no interrupt. */
	test_inject(t, 1, 60);
	host_run(t->h);
	ORDER("intr_on?acq guest_need_rxkick? guest_need_rxkick!rel mb "
	    "rxd?acq guest_need_rxkick!rel", lem_intr_enable(&t->g.lc));
}

LEM_TEST(rx_base, order_create(0), "Without the CSB: a slot is emptied, then "
    "RDT is written")
{
	test_inject(t, 1, 60);
	host_run(t->h);
	ORDER("rxd?acq rxd!rel rxd?acq rel RDT=", lem_rx(&t->g.lc, 64));
}

LEM_TEST(tx_post, order_create(LEM_MODE_CSB), "With the CSB: a descriptor is "
    "published, then, after a barrier, the driver sees whether the host sleeps")
{
	t->g.lc.lc_csb->host_need_txkick = 1;
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	ORDER("guest_tdt!rel mb host_need_txkick?acq host_need_txkick!rel "
	    "rel TDT=",
	    lem_tx_flush(&t->g.lc));
	t->g.lc.lc_csb->host_need_txkick = 0;
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	ORDER("guest_tdt!rel mb host_need_txkick?acq", lem_tx_flush(&t->g.lc));
	/* What it learns from that comes last. */
	t->g.lc.lc_csb->host_need_txkick = 1;
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	ORDER("guest_tdt!rel mb host_need_txkick?acq host_txcycles_lim! "
	    "host_need_txkick!rel rel TDT=", lem_tx_flush(&t->g.lc));
	t->g.lc.lc_csb->host_need_txkick = 0;
	t->g.lc.lc_csb->host_tdh = t->g.lc.lc_tx_posted;
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	ORDER("guest_tdt!rel mb host_need_txkick?acq host_tdh? "
	    "host_txcycles_lim!", lem_tx_flush(&t->g.lc));
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	ORDER("guest_tdt!rel mb host_need_txkick?acq", lem_tx_flush(&t->g.lc));
	/* Sent: the buffer is the driver's after that. */
	t->g.lc.lc_csb->host_need_txkick = 1;
	host_run(t->h);
	host_wr(t->h, E82545_TDT, t->g.lc.lc_tx_posted);
	host_run(t->h);
	ORDER("txd?acq txd?acq txd?acq txd?acq txd?acq",
	    ATF_CHECK_EQ(5, lem_tx_clean(&t->g.lc)));
}

LEM_TEST(tx_wait, order_create(LEM_MODE_CSB), "With the CSB: before the driver "
    "waits for descriptors it asks for an interrupt, and looks at the ring "
    "again after a barrier")
{
	t->g.lc.lc_csb->host_need_txkick = 0;
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	lem_tx_flush(&t->g.lc);
	ORDER("tx_short!rel guest_need_txkick!rel mb txd?acq",
	    lem_tx_wait(&t->g.lc, TEST_RING));
	/* Woken up, and still short: it asks again, and looks again. */
	ORDER("txd?acq tx_short!rel guest_need_txkick!rel mb txd?acq",
	    lem_tx_clean(&t->g.lc));
}

LEM_TEST(lazy, order_create(LEM_MODE_LAZY), "With lazy completion: intr_on is "
    "stored before tx_short is loaded, and the other way round")
{
	ATF_REQUIRE(t->g.lc.lc_intr_on != 0);
	ATF_REQUIRE_EQ(0, guest_send(&t->g, test_peer, 60));
	lem_tx_flush(&t->g.lc);
	ORDER("tx_short!rel mb intr_on?acq rel IMS= txd?acq",
	    lem_tx_wait(&t->g.lc, TEST_RING));
	t->g.lc.lc_intr_on = 0;
	ORDER("intr_on?acq intr_on!rel mb tx_short?acq rel IMS= mb",
	    lem_intr_enable(&t->g.lc));
}

LEM_TEST(mode, order_create(0), "The CSB is filled in before it is turned on "
    "or off, and the registers get the tails after that")
{
	ORDER("guest_tdt!rel guest_rdt!rel guest_need_txkick!rel "
	    "guest_need_rxkick!rel guest_txkick_at!rel host_txcycles_lim!rel "
	    "guest_csb_on!rel rel TDT= rel RDT= intr_on?acq intr_on!rel rel "
	    "IMC= intr_on!rel mb rel IMS= mb rel ICS=",
	    lem_set_mode(&t->g.lc, LEM_MODE_CSB));
	ATF_CHECK_EQ(1, t->g.lc.lc_csb->guest_csb_on);
	ORDER("guest_tdt!rel guest_rdt!rel guest_need_txkick!rel "
	    "guest_need_rxkick!rel guest_txkick_at!rel host_txcycles_lim!rel "
	    "guest_csb_on!rel rel TDT= rel RDT= intr_on?acq intr_on!rel rel "
	    "IMC= intr_on!rel mb tx_short?acq rel IMS= mb rel ICS=",
	    lem_set_mode(&t->g.lc, LEM_MODE_LAZY));
	ATF_CHECK_EQ(0, t->g.lc.lc_csb->guest_csb_on);
}

TEST_PROGRAM
