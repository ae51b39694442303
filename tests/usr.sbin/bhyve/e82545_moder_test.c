/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Moderation of the 82545EM's interrupts on a virtual clock, against a table
 * that was calculated by hand from the 8254x SDM; and the moderation function
 * alone.
 */

#include <sys/param.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "e82545_check.h"
#include "e82545_impl.h"
#include "e82545_intr.h"

#define	ALL	0xffffffff
#define	TXDW	E82545_ICR_TXDW
#define	TXQE	E82545_ICR_TXQE
#define	LSC	E82545_ICR_LSC
#define	RXDMT0	E82545_ICR_RXDMT0
#define	RXO	E82545_ICR_RXO
#define	RXT0	E82545_ICR_RXT0
#define	MDAC	E82545_ICR_MDAC
#define	TXD_LOW	E82545_ICR_TXD_LOW
#define	SRPD	E82545_ICR_SRPD

/*
 * A case is a list of events at times, and the interrupts that must come of
 * them, when and with what in ICR.  The guest reads ICR at the moment of the
 * interrupt unless the case says otherwise.  All times in ns from its start.
 *
 * Units, by which the times below are reckoned:
 *	ITR			256 ns		section 13.4.18
 *	RDTR, RADV		1024 ns		sections 13.4.30, 13.4.31
 *	TIDV, TADV		1024 ns		sections 13.4.41, 13.4.44
 */
enum what {
	EV_END,
	EV_RX,
	EV_TX,
	EV_TXI,
	EV_RAISE,
	EV_WRITE,
	EV_READ,
};

/*
 * A batch received; a batch sent without IDE, and with IDE in each descriptor.
 */
#define	RX(ns)			{ ns, EV_RX, 0, 0 }
#define	TX(ns)			{ ns, EV_TX, 0, 0 }
#define	TXI(ns)			{ ns, EV_TXI, 0, 0 }
/* Causes that are not delayed. */
#define	RAISE(ns, causes)	{ ns, EV_RAISE, causes, 0 }
/* A register is written. */
#define	WRITE(ns, off, value)	{ ns, EV_WRITE, off, value }
/* The guest reads ICR, in a case that says so. */
#define	READ(ns)		{ ns, EV_READ, 0, 0 }

struct event {
	uint64_t	ns;
	enum what	what;
	uint32_t	arg, value;
};

struct interrupt {
	uint64_t	ns;
	uint32_t	icr;
};

struct mcase {
	const char	*name;
	uint32_t	host_itr;
	uint32_t	itr, rdtr, radv, tidv, tadv;
	uint32_t	ims;
	bool		late;		/* ICR is read by READ only */
	struct event	events[24];
	struct interrupt interrupts[12];	/* up to { 0, 0 } */
	unsigned int	held;		/* interrupts delayed by ITR */
};

static const struct mcase cases[] = {
	{
		/* All timers 0: every event is an interrupt. */
		.name = "none",
		.ims = ALL,
		.events = {
			RX(0), TX(100), TXI(200), RX(300),
			RX(301),
		},
		.interrupts = {
			{ 0, RXT0 }, { 100, TXDW }, { 200, TXDW },
			{ 300, RXT0 }, { 301, RXT0 },
		},
	},
	{
		/*
		 * 250 * 256 = 64000 ns.  The first interrupt is not delayed;
		 * causes before 64000 wait until 64000, causes before 128000
		 * until 128000.
		 */
		.name = "itr",
		.itr = 250, .ims = ALL,
		.events = {
			RX(0), RX(10000), TX(20000), RX(30000),
			RX(63999), RX(64001), TX(100000),
		},
		.interrupts = {
			{ 0, RXT0 }, { 64000, RXT0 | TXDW },
			{ 128000, RXT0 | TXDW },
		},
		.held = 2,
	},
	{
		/*
		 * After an interval without events the next one is not delayed.
		 */
		.name = "itr_quiet",
		.itr = 250, .ims = ALL,
		.events = {
			RX(0), RX(64000), RX(127999),
			RX(300000), RX(300001),
		},
		.interrupts = {
			{ 0, RXT0 }, { 64000, RXT0 }, { 128000, RXT0 },
			{ 300000, RXT0 }, { 364000, RXT0 },
		},
		.held = 2,
	},
	{
		/*
		 * The interval counts from assertion to assertion, though the
		 * guest takes 50 us to read ICR.  Causes that come while the
		 * line is asserted are read with the others.
		 */
		.name = "itr_slow_guest",
		.itr = 250, .ims = ALL, .late = true,
		.events = {
			RX(0), TX(40000), READ(50000),
			RX(60000), READ(70000), RX(200000),
			RAISE(300000, LSC), READ(300001),
			RX(300002), READ(310000),
		},
		.interrupts = {
			{ 0, RXT0 | TXDW }, { 64000, RXT0 },
			{ 200000, RXT0 | LSC }, { 300002, RXT0 },
		},
		.held = 1,
	},
	{
		/* The longest: 65535 * 256 = 16776960 ns. */
		.name = "itr_max",
		.itr = 65535, .ims = ALL,
		.events = { RX(0), RX(1) },
		.interrupts = { { 0, RXT0 }, { 16776960, RXT0 } },
		.held = 1,
	},
	{
		/* The shortest. */
		.name = "itr_min",
		.itr = 1, .ims = ALL,
		.events = { RX(0), RX(1), RX(257) },
		.interrupts = { { 0, RXT0 }, { 256, RXT0 }, { 512, RXT0 } },
		.held = 2,
	},
	{
		/* ITR is for all causes: section 13.4.18. */
		.name = "itr_all_causes",
		.itr = 250, .ims = ALL,
		.events = {
			RAISE(0, LSC), RAISE(1000, RXO),
			RAISE(2000, MDAC), RAISE(64000, TXD_LOW),
		},
		.interrupts = {
			{ 0, LSC }, { 64000, RXO | MDAC }, { 128000, TXD_LOW },
		},
		.held = 2,
	},
	{
		/*
		 * ICR is read while a cause is delayed: no interrupt follows.
		 */
		.name = "itr_polled",
		.itr = 250, .ims = ALL, .late = true,
		.events = {
			RX(0), READ(10), RX(1000), READ(2000),
			RX(100000), READ(100001),
		},
		.interrupts = { { 0, RXT0 }, { 100000, RXT0 } },
		.held = 1,
	},
	{
		/* A shorter interval applies to a delayed cause. */
		.name = "itr_changed",
		.itr = 250, .ims = ALL,
		.events = {
			RX(0), RX(1000),
			/* 100 * 256 = 25600 from 0 */
			WRITE(2000, E82545_ITR, 100),
			RX(30000),		/* until 51200 */
			WRITE(31000, E82545_ITR, 0),
		},
		.interrupts = {
			{ 0, RXT0 }, { 25600, RXT0 }, { 31000, RXT0 },
		},
		.held = 2,
	},
	{
		/* So does a longer one: 500 * 256 = 128000. */
		.name = "itr_lengthened",
		.itr = 250, .ims = ALL,
		.events = {
			RX(0), RX(1000),
			WRITE(2000, E82545_ITR, 500),
		},
		.interrupts = { { 0, RXT0 }, { 128000, RXT0 } },
		.held = 1,
	},
	{
		/* The host's interval applies to a guest that sets none... */
		.name = "host_itr",
		.host_itr = 500, .ims = ALL,
		.events = {
			RX(0), RX(1000),
			/* ...this one does now: 64000 from 128000. */
			WRITE(128001, E82545_ITR, 250),
			RX(128002),
			/* Not any more: 128000 from 192000. */
			WRITE(192001, E82545_ITR, 0),
			RX(192002),
		},
		.interrupts = {
			{ 0, RXT0 }, { 128000, RXT0 }, { 192000, RXT0 },
			{ 320000, RXT0 },
		},
		.held = 3,
	},
	{
		/* 10 * 1024 = 10240 after the last packet. */
		.name = "rdtr",
		.rdtr = 10, .ims = ALL,
		.events = {
			RX(0),
			RX(20000), RX(25000), RX(35239),
			/* A packet when the timer expires: after it. */
			RX(100000), RX(110240),
		},
		.interrupts = {
			{ 10240, RXT0 }, { 45479, RXT0 }, { 110240, RXT0 },
			{ 120480, RXT0 },
		},
	},
	{
		/* At the latest 20 * 1024 = 20480 after the first packet. */
		.name = "radv",
		.rdtr = 10, .radv = 20, .ims = ALL,
		.events = {
			RX(0), RX(8000), RX(16000), RX(19000),
			/* Both timers start anew; the packet timer wins. */
			RX(25000),
			/* The absolute timer counts from 40000. */
			RX(40000), RX(49000), RX(58000),
		},
		.interrupts = {
			{ 20480, RXT0 }, { 35240, RXT0 }, { 60480, RXT0 },
		},
	},
	{
		/* RADV does nothing without RDTR: section 13.4.30. */
		.name = "radv_alone",
		.radv = 20, .ims = ALL,
		.events = { RX(0), RX(100) },
		.interrupts = { { 0, RXT0 }, { 100, RXT0 } },
	},
	{
		/* RADV shorter than RDTR: 5 * 1024 = 5120. */
		.name = "radv_short",
		.rdtr = 10, .radv = 5, .ims = ALL,
		.events = { RX(0), RX(5000) },
		.interrupts = { { 5120, RXT0 } },
	},
	{
		/*
		 * Another receive interrupt reports the packets and stops the
		 * timers: section 3.2.7.1.  Other interrupts do not.
		 */
		.name = "rdtr_other_causes",
		.rdtr = 10, .radv = 20, .ims = ALL,
		.events = {
			RX(0), RAISE(3000, RXDMT0),
			RX(50000), RAISE(53000, LSC),
			RX(100000), TX(103000),
			RAISE(150000, RXO),
			RX(200000), RAISE(200001, SRPD),
		},
		.interrupts = {
			{ 3000, RXDMT0 | RXT0 },
			{ 53000, LSC }, { 60240, RXT0 },
			{ 103000, TXDW }, { 110240, RXT0 },
			{ 150000, RXO },
			{ 200001, SRPD | RXT0 },
		},
	},
	{
		/* FPD expires the timers: section 13.4.30. */
		.name = "rdtr_fpd",
		.rdtr = 10, .radv = 20, .ims = ALL,
		.events = {
			RX(0),
			WRITE(2000, E82545_RDTR, E82545_RDTR_FPD | 20),
			RX(30000),		/* 20480 from here */
		},
		.interrupts = { { 2000, RXT0 }, { 50480, RXT0 } },
	},
	{
		/* A timer that is turned off while it runs, is announced. */
		.name = "delays_off",
		.rdtr = 10, .radv = 20, .tidv = 10, .tadv = 20, .ims = ALL,
		.events = {
			RX(0), WRITE(1000, E82545_RDTR, 0), RX(2000),
			TXI(50000), WRITE(51000, E82545_TIDV, 0), TXI(52000),
		},
		.interrupts = { { 2000, RXT0 }, { 52000, TXDW } },
	},
	{
		/* 64 * 1024 = 65536 after the last packet with IDE. */
		.name = "tidv",
		.tidv = 64, .ims = ALL,
		.events = {
			TXI(0), TXI(65000),
			/* Without IDE: at once, and the timer stops. */
			TXI(200000), TX(210000),
		},
		.interrupts = { { 130536, TXDW }, { 210000, TXDW } },
	},
	{
		/* At the latest 100 * 1024 = 102400 after the first. */
		.name = "tadv",
		.tidv = 64, .tadv = 100, .ims = ALL,
		.events = {
			TXI(0), TXI(50000), TXI(100000),
			TXI(110000),	/* 65536 from here */
			TXI(200000), TX(210000),
		},
		.interrupts = {
			{ 102400, TXDW }, { 175536, TXDW }, { 210000, TXDW },
		},
	},
	{
		/* TADV does nothing without TIDV. */
		.name = "tadv_alone",
		.tadv = 100, .ims = ALL,
		.events = { TXI(0), TXI(10) },
		.interrupts = { { 0, TXDW }, { 10, TXDW } },
	},
	{
		/* TXD_LOW and TXQE are not delayed and do not stop TIDV. */
		.name = "tidv_other_causes",
		.tidv = 64, .ims = ALL,
		.events = {
			TXI(0), RAISE(1000, TXD_LOW),
			RAISE(2000, TXQE), RAISE(3000, RXDMT0),
		},
		.interrupts = {
			{ 1000, TXD_LOW }, { 2000, TXQE }, { 3000, RXDMT0 },
			{ 65536, TXDW },
		},
	},
	{
		/*
		 * The timers of both directions, each reset by its last packet.
		 */
		.name = "both",
		.rdtr = 10, .radv = 20, .tidv = 12, .tadv = 100, .ims = ALL,
		.events = {
			RX(0), TXI(0), TXI(5000),
		},
		/* RX 0 + 10240; TX 5000 + 12288. */
		.interrupts = { { 10240, RXT0 }, { 17288, TXDW } },
	},
	{
		/*
		 * First the delay, then ITR: RXT0 at 10240 is not delayed by
		 * ITR, RXT0 at 20000 + 10240 waits until 10240 + 64000, and
		 * TXDW of 5000 + 65536 = 70536 comes with it.
		 */
		.name = "rdtr_itr",
		.itr = 250, .rdtr = 10, .tidv = 64, .ims = ALL,
		.events = { RX(0), TXI(5000), RX(20000) },
		.interrupts = { { 10240, RXT0 }, { 74240, RXT0 | TXDW } },
		.held = 1,
	},
	{
		/*
		 * Masked causes stay in ICR, interrupt when unmasked, and are
		 * read with the first one that is not masked.
		 */
		.name = "masked",
		.ims = RXT0,
		.events = {
			TX(0), RAISE(100, LSC), RX(200),
			TX(300), WRITE(400, E82545_IMS, TXDW),
		},
		.interrupts = {
			{ 200, RXT0 | TXDW | LSC }, { 400, TXDW },
		},
	},
	{
		/* ITR applies when they are unmasked, too. */
		.name = "masked_itr",
		.itr = 250, .ims = RXT0,
		.events = {
			RX(0), TX(100),
			WRITE(400, E82545_IMS, TXDW),
		},
		.interrupts = { { 0, RXT0 }, { 64000, TXDW } },
		.held = 1,
	},
	{
		/*
		 * Masking a delayed cause cancels the timer, and keeps the
		 * cause.
		 */
		.name = "itr_masked",
		.itr = 250, .ims = ALL,
		.events = {
			RX(0), RX(100),
			WRITE(200, E82545_IMC, ALL),
			WRITE(100000, E82545_IMS, RXT0),
		},
		.interrupts = { { 0, RXT0 }, { 100000, RXT0 } },
		.held = 1,
	},
};

struct play {
	struct host		*h;
	const struct mcase	*c;
	uint64_t		 start_ns;
	unsigned int		 seen;		/* edges looked at */
	unsigned int		 n;		/* interrupts compared */
};

/* The guest reads ICR, if it was interrupted. */
static void
play_read(struct play *p)
{
	const struct interrupt *want;
	uint64_t ns;
	uint32_t icr;

	if (!host_line(p->h)) {
		host_rd(p->h, E82545_ICR);
		return;
	}
	ns = 0;
	for (; p->seen < p->h->nedges; p->seen++)
		if (p->h->edges[p->seen].asserted)
			ns = p->h->edges[p->seen].ns - p->start_ns;
	icr = host_rd(p->h, E82545_ICR);
	want = &p->c->interrupts[p->n++];
	ATF_CHECK_MSG(ns == want->ns && icr == want->icr,
	    "%s: interrupt %u at %ju with %#x, not at %ju with %#x",
	    p->c->name, p->n - 1, (uintmax_t)ns, icr, (uintmax_t)want->ns,
	    want->icr);
	ATF_CHECK_MSG(!host_line(p->h), "%s: asserted after reading ICR",
	    p->c->name);
}

/* Time passes until `ns' after the start. */
static void
play_until(struct play *p, uint64_t ns)
{
	struct host *h = p->h;
	uint64_t until;

	until = p->start_ns + ns;
	while (h->timer_ns != 0 && h->timer_ns <= until) {
		host_advance(h, h->timer_ns - h->now_ns);
		if (!p->c->late && host_line(h))
			play_read(p);
	}
	host_advance(h, until - h->now_ns);
}

static void
play_event(struct play *p, const struct event *ev)
{
	struct e82545 *dev = p->h->dev;

	if (ev->what == EV_WRITE) {
		host_wr(p->h, ev->arg, ev->value);
		return;
	}
	if (ev->what == EV_READ) {
		play_read(p);
		return;
	}
	pthread_mutex_lock(&dev->reg_mtx);
	if (ev->what == EV_RX)
		e82545_intr_rx(dev, 0, true, 0);
	else if (ev->what == EV_TX || ev->what == EV_TXI)
		e82545_intr_tx(dev, 0, true, ev->what == EV_TXI, 0);
	else
		e82545_intr_raise(dev, ev->arg);
	pthread_mutex_unlock(&dev->reg_mtx);
}

static void
play(const struct mcase *c)
{
	const struct event *ev;
	struct play p;
	unsigned int n;

	memset(&p, 0, sizeof(p));
	p.c = c;
	p.h = host_create_itr(HOST_RAM, c->host_itr, 0);
	p.start_ns = p.h->now_ns;
	host_wr(p.h, E82545_ITR, c->itr);
	host_wr(p.h, E82545_RDTR, c->rdtr);
	host_wr(p.h, E82545_RADV, c->radv);
	host_wr(p.h, E82545_TIDV, c->tidv);
	host_wr(p.h, E82545_TADV, c->tadv);
	host_wr(p.h, E82545_IMS, c->ims);
	for (ev = c->events; ev->what != EV_END; ev++) {
		play_until(&p, ev->ns);
		play_event(&p, ev);
		if (!c->late && host_line(p.h))
			play_read(&p);
	}
	play_until(&p, 100000000);
	if (host_line(p.h))
		play_read(&p);
	for (n = 0; c->interrupts[n].icr != 0; n++)
		;
	ATF_CHECK_MSG(p.n == n, "%s: %u interrupts, not %u", c->name, p.n, n);
	ATF_CHECK_EQ_MSG(n, host_counter(p.h, E82545_C_INTR_SENT), "%s",
	    c->name);
	ATF_CHECK_EQ_MSG(c->held, host_counter(p.h, E82545_C_INTR_HELD),
	    "%s: %ju held", c->name,
	    (uintmax_t)host_counter(p.h, E82545_C_INTR_HELD));
	host_destroy(p.h);
}

TEST(moderation, "ITR, RDTR, RADV, TIDV, TADV, IDE: when interrupts come")
{
	unsigned int i;

	for (i = 0; i < nitems(cases); i++)
		play(&cases[i]);
}

/*
 * The moderation function alone: its answers, and that they are the same for
 * the same arguments.
 */
TEST(verdicts, "The moderation function's answers")
{
	static const struct {
		size_t		off;
		uint32_t	cause;
	} timers[] = {
		{ offsetof(struct e82545_moderation, rx_packet_ns), RXT0 },
		{ offsetof(struct e82545_moderation, rx_absolute_ns), RXT0 },
		{ offsetof(struct e82545_moderation, tx_packet_ns), TXDW },
		{ offsetof(struct e82545_moderation, tx_absolute_ns), TXDW },
	};
	static const uint32_t rx_causes[] = { RXT0, RXDMT0, RXO, SRPD };
	struct e82545_moder_verdict again, v;
	struct e82545_moderation m, was;
	struct e82545_moder_event ev;
	unsigned int i;

	memset(&m, 0, sizeof(m));
	memset(&ev, 0, sizeof(ev));
	ev.now_ns = 5000;
	ev.ims = RXT0 | TXDW;
	ev.itr_256ns = 250;
	ev.rdtr_1024ns = 10;
	ev.radv_1024ns = 15;

#define	EXPECT(f, d, p, arm, causes)	do {				\
	was = m;							\
	v = e82545_moderate(&m, &ev);					\
	again = e82545_moderate(&m, &ev);				\
	ATF_CHECK(memcmp(&m, &was, sizeof(m)) == 0);			\
	ATF_CHECK_EQ(v.fire, again.fire);				\
	ATF_CHECK_EQ(v.arm_ns, again.arm_ns);				\
	ATF_CHECK_EQ(v.icr, again.icr);					\
	ATF_CHECK_EQ(f, v.fire);					\
	ATF_CHECK_EQ(d, v.drop);					\
	ATF_CHECK_EQ(p, v.put_off);					\
	ATF_CHECK_EQ(arm, v.arm_ns);					\
	ATF_CHECK_EQ(causes, v.icr);					\
	m = v.next;							\
	ev.icr = v.icr;							\
	ev.rx = ev.tx = ev.tx_delayed = false;				\
	ev.raise = 0;							\
} while (0)

	/* Nothing. */
	EXPECT(false, false, false, 0, 0);
	/*
	 * A packet: in 10240 ns; 5000 ns later 10240 again, which is before
	 * the absolute timer's 15360; 5000 ns later that one is nearer.
	 */
	ev.rx = true;
	EXPECT(false, false, false, 10240, 0);
	ev.now_ns += 5000;
	ev.rx = true;
	EXPECT(false, false, false, 10240, 0);
	ev.now_ns += 5000;
	ev.rx = true;
	EXPECT(false, false, false, 5360, 0);
	/* Too early, and in time. */
	ev.now_ns += 5359;
	EXPECT(false, false, false, 1, 0);
	ev.now_ns += 1;
	EXPECT(true, false, false, 0, RXT0);
	ATF_CHECK_EQ(20360, m.last_ns);
	/* Asserted: another cause changes nothing but ICR. */
	ev.raise = TXDW;
	EXPECT(false, false, false, 0, RXT0 | TXDW);
	/* ICR is read. */
	ev.now_ns += 1000;
	ev.icr = 0;
	EXPECT(false, true, false, 0, 0);
	/* Delayed, and counted once: 63000 of 64000 ns are left. */
	ev.raise = TXDW;
	EXPECT(false, false, true, 63000, TXDW);
	ev.now_ns += 1000;
	ev.raise = TXDW;
	EXPECT(false, false, false, 62000, TXDW);
	/* A packet's timer is nearer. */
	ev.rx = true;
	EXPECT(false, false, false, 10240, TXDW);
	/* Masked: only that timer is left. */
	ev.ims = RXT0;
	EXPECT(false, false, false, 10240, TXDW);
	ev.now_ns += 10240;
	EXPECT(false, false, true, 51760, TXDW | RXT0);
	ev.now_ns += 51760;
	EXPECT(true, false, false, 0, TXDW | RXT0);
	ATF_CHECK(!m.held);
	/* Masked while asserted. */
	ev.ims = 0;
	EXPECT(false, true, false, 0, TXDW | RXT0);

	/* A late timer expires as ICR is read: the line falls, and rises again. */
	memset(&m, 0, sizeof(m));
	m.asserted = true;
	m.last_ns = ev.now_ns - 64000;
	m.tx_packet_ns = ev.now_ns - 1;
	ev.icr = 0;
	ev.ims = TXDW;
	EXPECT(true, true, false, 0, TXDW);
	m.tx_packet_ns = ev.now_ns + 1;
	ev.now_ns += 1000;
	ev.icr = 0;
	EXPECT(false, true, true, 63000, TXDW);
	ev.ims = 0;

	/* A timer is late: its cause joins that of the event. */
	for (i = 0; i < nitems(timers); i++) {
		memset(&m, 0, sizeof(m));
		*(uint64_t *)(void *)((char *)&m + timers[i].off) =
		    ev.now_ns - 1;
		ev.icr = 0;
		ev.raise = LSC;
		EXPECT(false, false, false, 0, LSC | timers[i].cause);
	}
	/* Packets, and a cause that announces them at once. */
	for (i = 0; i < nitems(rx_causes); i++) {
		memset(&m, 0, sizeof(m));
		ev.icr = 0;
		ev.rx = true;
		ev.raise = rx_causes[i];
		EXPECT(false, false, false, 0, RXT0 | rx_causes[i]);
	}
	/* The clock may be 0: nothing was asserted before. */
	memset(&m, 0, sizeof(m));
	ev.now_ns = 0;
	ev.icr = 0;
	ev.ims = LSC;
	ev.raise = LSC;
	EXPECT(true, false, false, 0, LSC);
#undef EXPECT
}

/*
 * The host's timer is late, and a delay timer expires as the guest reads ICR.
 * With MSI the cause that this sets has no message if the line does not fall.
 */
HOST_TEST(expired, host_create_itr(HOST_RAM, 0, 0), "A cause that a delay "
    "timer sets as ICR is read interrupts again")
{
	host_wr(h, E82545_TIDV, 10);
	host_wr(h, E82545_IMS, RXT0 | TXDW);
	pthread_mutex_lock(&h->dev->reg_mtx);
	e82545_intr_rx(h->dev, 0, true, 0);
	e82545_intr_tx(h->dev, 0, true, true, 0);
	pthread_mutex_unlock(&h->dev->reg_mtx);
	ATF_CHECK_EQ(1, host_raised(h));
	h->now_ns += 10 * 1024;
	ATF_CHECK_EQ(RXT0, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(2, host_raised(h));
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(TXDW, host_rd(h, E82545_ICR));
	ATF_CHECK(!host_line(h));
}

TEST_PROGRAM
