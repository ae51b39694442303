/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which vectors of MSI-X send a message, and what that clears:
 * e82574_moderate() alone.  Bits are numbers, as in the datasheet; an EITR is
 * in units of 256 ns.
 */

#include <sys/param.h>

#include <atf-c.h>

#include "e82545_impl.h"
#include "test.h"

#define	RXQ0	0x00100000
#define	RXQ1	0x00200000
#define	TXQ0	0x00400000
#define	TXQ1	0x00800000
#define	OTHER	0x01000000
#define	QUEUES	(RXQ0 | RXQ1 | TXQ0 | TXQ1)
#define	ALL	0xffffffff
#define	EIAME	0x01000000

/* Each of the five has a vector of its own, in this order. */
#define	IVAR_EACH	0x000cba98

#define	LAST(n0, n1, n2, n3, n4)					\
	{ { .ev_last_ns = n0 }, { .ev_last_ns = n1 },			\
	    { .ev_last_ns = n2 }, { .ev_last_ns = n3 },			\
	    { .ev_last_ns = n4 } }

static const struct moder_case {
	const char	*descr;
	struct e82574	state;
	struct e82574_event event;
	uint32_t	sent, held;	/* in ed_next, the latter as bits */
	struct e82574_verdict want;
} cases[] = {
	{ "No cause: nothing waits, and nothing was sent",
	    { .xs_sent = RXQ0, .xs_vector = { { .ev_held = true } } },
	    { .xe_now_ns = 10000, .xe_ims = ALL, .xe_ivar = IVAR_EACH },
	    0, 0,
	    { .ed_ims = ALL } },
	{ "Masked",
	    { .xs_sent = RXQ0 },
	    { .xe_now_ns = 10000, .xe_icr = ALL, .xe_ivar = IVAR_EACH },
	    0, 0,
	    { .ed_icr = ALL } },
	{ "The first of each vector, at time 0 whatever EITR is",
	    { .xs_sent = 0 },
	    { .xe_icr = ALL, .xe_ims = ALL, .xe_ivar = IVAR_EACH,
	    .xe_itr_256ns = { 1, 2, 3, 4, 5 } },
	    QUEUES | OTHER, 0,
	    { .ed_icr = ALL, .ed_ims = ALL, .ed_messages = 0x1f } },
	{ "The first one soon after time 0",
	    { .xs_sent = 0 },
	    { .xe_now_ns = 255, .xe_icr = RXQ1, .xe_ims = RXQ1,
	    .xe_ivar = IVAR_EACH, .xe_itr_256ns = { 1, 1, 1, 1, 1 } },
	    RXQ1, 0,
	    { .ed_icr = RXQ1, .ed_ims = RXQ1, .ed_messages = 2,
	    .ed_next.xs_vector = LAST(0, 255, 0, 0, 0) } },
	{ "A message at time 1 counts",
	    { .xs_vector = LAST(1, 0, 0, 0, 0) },
	    { .xe_now_ns = 2560, .xe_icr = RXQ0, .xe_ims = RXQ0,
	    .xe_ivar = IVAR_EACH, .xe_itr_256ns = { 10 } },
	    0, 0x1,
	    { .ed_icr = RXQ0, .ed_ims = RXQ0, .ed_put_off = 0x1,
	    .ed_deadline_ns = 2561,
	    .ed_next.xs_vector = LAST(1, 0, 0, 0, 0) } },
	{ "One nanosecond later the interval is over",
	    { .xs_vector = { { .ev_last_ns = 1, .ev_held = true } } },
	    { .xe_now_ns = 2561, .xe_icr = RXQ0, .xe_ims = RXQ0,
	    .xe_ivar = IVAR_EACH, .xe_itr_256ns = { 10 } },
	    RXQ0, 0,
	    { .ed_icr = RXQ0, .ed_ims = RXQ0, .ed_messages = 0x1,
	    .ed_next.xs_vector = LAST(2561, 0, 0, 0, 0) } },
	{ "Several wait, one of them already; the deadline is the earliest",
	    { .xs_vector = { { .ev_last_ns = 6000 },
	    { .ev_last_ns = 5000, .ev_held = true }, { .ev_last_ns = 5500 },
	    { .ev_last_ns = 5000 }, { .ev_last_ns = 1000 } } },
	    { .xe_now_ns = 6000, .xe_icr = ALL, .xe_ims = ALL,
	    .xe_ivar = IVAR_EACH, .xe_itr_256ns = { 10, 10, 10, 11, 10 } },
	    OTHER, 0xf,
	    { .ed_icr = ALL, .ed_ims = ALL, .ed_messages = 0x10,
	    .ed_put_off = 0xd, .ed_deadline_ns = 7560,
	    .ed_next.xs_vector = LAST(6000, 5000, 5500, 5000, 6000) } },
	{ "The first that waits has the earliest deadline",
	    { .xs_vector = LAST(5000, 5500, 0, 0, 0) },
	    { .xe_now_ns = 6000, .xe_icr = RXQ0 | RXQ1, .xe_ims = ALL,
	    .xe_ivar = IVAR_EACH, .xe_itr_256ns = { 10, 10, 10, 10, 10 } },
	    0, 0x3,
	    { .ed_icr = RXQ0 | RXQ1, .ed_ims = ALL, .ed_put_off = 0x3,
	    .ed_deadline_ns = 7560,
	    .ed_next.xs_vector = LAST(5000, 5500, 0, 0, 0) } },
	{ "Not again what was sent and is still there",
	    { .xs_sent = RXQ0 | TXQ1 | OTHER },
	    { .xe_now_ns = 10000, .xe_icr = RXQ0 | RXQ1 | TXQ1,
	    .xe_ims = RXQ0 | RXQ1 | TXQ0 | OTHER, .xe_ivar = IVAR_EACH },
	    RXQ0 | RXQ1, 0,
	    { .ed_icr = RXQ0 | RXQ1 | TXQ1,
	    .ed_ims = RXQ0 | RXQ1 | TXQ0 | OTHER, .ed_messages = 0x2,
	    .ed_next.xs_vector = LAST(0, 10000, 0, 0, 0) } },
	{ "A message clears and masks what EIAC has of its causes",
	    { .xs_sent = 0 },
	    { .xe_now_ns = 10000, .xe_icr = RXQ0 | RXQ1 | 0x80,
	    .xe_ims = RXQ0 | RXQ1 | TXQ0 | 0x80, .xe_iam = ALL,
	    .xe_eiac = RXQ0 | TXQ0, .xe_ivar = IVAR_EACH },
	    RXQ1, 0,
	    { .ed_icr = RXQ1 | 0x80, .ed_ims = RXQ1 | TXQ0 | 0x80,
	    .ed_messages = 0x3,
	    .ed_next.xs_vector = LAST(10000, 10000, 0, 0, 0) } },
	{ "With EIAME it masks what IAM has of them",
	    { .xs_sent = 0 },
	    { .xe_now_ns = 10000, .xe_icr = RXQ0 | RXQ1 | TXQ0,
	    .xe_ims = QUEUES, .xe_iam = RXQ1 | TXQ0 | TXQ1,
	    .xe_eiac = TXQ0, .xe_ivar = IVAR_EACH, .xe_ctrl_ext = EIAME },
	    RXQ0, 0,
	    { .ed_icr = RXQ0 | RXQ1, .ed_ims = RXQ0 | TXQ1,
	    .ed_messages = 0x7,
	    .ed_next.xs_vector = LAST(10000, 10000, 10000, 0, 0) } },
	{ "Two with one vector, two with vectors that there are not, one with "
	    "none; IVAR has no other bits",
	    { .xs_sent = 0 },
	    { .xe_now_ns = 10000, .xe_icr = ALL, .xe_ims = ALL,
	    .xe_eiac = ALL, .xe_ivar = 0x8884fd88 },
	    0, 0,
	    { .ed_icr = ~(RXQ0 | RXQ1), .ed_ims = ~(RXQ0 | RXQ1),
	    .ed_messages = 0x1,
	    .ed_next.xs_vector = LAST(10000, 0, 0, 0, 0) } },
	{ "Bits that have no vector",
	    { .xs_sent = 0 },
	    { .xe_now_ns = 10000, .xe_icr = ALL & ~(QUEUES | OTHER),
	    .xe_ims = ALL, .xe_ivar = 0x88888888 },
	    0, 0,
	    { .ed_icr = ALL & ~(QUEUES | OTHER), .ed_ims = ALL } },
};

/* Neither is e82574_moderate()'s. */
#define	SYSTIM		UINT64_C(0x0123456789abcdef)
#define	SYSTIM_NS	UINT64_C(0xfedcba9876543211)

TEST(moderate, "Which vectors send a message, and when")
{
	const struct moder_case *c;
	struct e82574_verdict r;
	struct e82574 state;
	unsigned int v;

	for (c = cases; c < cases + nitems(cases); c++) {
		state = c->state;
		state.xs_msix = true;
		state.xs_systim = SYSTIM;
		state.xs_systim_ns = SYSTIM_NS;
		r = e82574_moderate(&state, &c->event);
		ATF_CHECK_EQ_MSG(c->want.ed_icr, r.ed_icr, "%s: %#x", c->descr,
		    r.ed_icr);
		ATF_CHECK_EQ_MSG(c->want.ed_ims, r.ed_ims, "%s: %#x", c->descr,
		    r.ed_ims);
		ATF_CHECK_EQ_MSG(c->want.ed_messages, r.ed_messages,
		    "%s: %#x", c->descr, r.ed_messages);
		ATF_CHECK_EQ_MSG(c->want.ed_put_off, r.ed_put_off, "%s: %#x",
		    c->descr, r.ed_put_off);
		ATF_CHECK_EQ_MSG(c->want.ed_deadline_ns, r.ed_deadline_ns,
		    "%s: %ju", c->descr, (uintmax_t)r.ed_deadline_ns);
		ATF_CHECK_EQ_MSG(c->sent, r.ed_next.xs_sent, "%s: %#x",
		    c->descr, r.ed_next.xs_sent);
		for (v = 0; v < E82574_VECTORS; v++) {
			ATF_CHECK_EQ_MSG((c->held & 1U << v) != 0,
			    r.ed_next.xs_vector[v].ev_held, "%s: %u",
			    c->descr, v);
			ATF_CHECK_EQ_MSG(
			    c->want.ed_next.xs_vector[v].ev_last_ns,
			    r.ed_next.xs_vector[v].ev_last_ns, "%s: %u",
			    c->descr, v);
		}
		ATF_CHECK(r.ed_next.xs_msix &&
		    r.ed_next.xs_systim == SYSTIM &&
		    r.ed_next.xs_systim_ns == SYSTIM_NS);
	}
}

TEST_PROGRAM
