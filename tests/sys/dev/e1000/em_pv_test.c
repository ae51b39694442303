/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * em_pv.c on the model, under an em(4) and an iflib(4) of our own
 * (em_pv_guest.h).  The clock stands still, so that nothing is repeated that
 * the adapter repeats after a time: what is lost stays lost.
 */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atf-c.h>

#include <net/paravirt.h>

#include "em_pv_guest.h"
#include "test.h"

extern driver_t em_if_driver;
void	*em_pv_register(device_t);

struct mode {
	const char	*name;
	u_int		 sc, csb, poll;
};

static const struct mode modes[] = {
	{ "off", 0, 0, 0 },	{ "sc", 1, 0, 0 },	{ "csb", 0, 1, 0 },
	{ "sc, csb", 1, 1, 0 },	{ "poll", 0, 0, 1000 },
	{ "sc, poll", 1, 0, 1000 },	{ "csb, poll", 0, 1, 1000 },
};

static const struct em_config adapters[] = {
	{ .kind = E82545_KIND_EM, .intr = IFLIB_INTR_LEGACY },
	{ .kind = E82545_KIND_EM, .intr = IFLIB_INTR_MSI },
	{ .kind = E82545_KIND_82574L, .intr = IFLIB_INTR_LEGACY },
	{ .kind = E82545_KIND_82574L, .intr = IFLIB_INTR_MSI },
	{ .kind = E82545_KIND_82574L, .intr = IFLIB_INTR_MSIX, .no_csb = true },
	{ .kind = E82545_KIND_EM, .intr = IFLIB_INTR_LEGACY, .no_csb = true },
};

static bool
is_msix(const struct em_guest *g)
{
	return (g->config.intr == IFLIB_INTR_MSIX);
}

static void
set_mode(struct em_guest *g, const struct mode *m)
{
	ATF_REQUIRE_EQ(0, em_set(g, "sc", m->sc));
	ATF_REQUIRE_EQ(m->csb != 0 && g->config.no_csb ? EOPNOTSUPP : 0,
	    em_set(g, "csb", m->csb));
	ATF_REQUIRE_EQ(0, em_set(g, "poll", m->poll));
}

/* A started guest in a mode, with nothing to do. */
static struct em_guest *
create(const struct em_config *c, u_int sc, u_int csb, u_int poll)
{
	struct em_guest *g = em_create(c);
	const struct mode m = { "", sc, csb, poll };

	em_up(g);
	set_mode(g, &m);
	em_settle(g);
	em_mark(g);
	return (g);
}

/* Call a function for each mode of each adapter. */
static void
each(void (*test)(struct em_guest *))
{
	struct em_guest *g;
	size_t a, m;

	for (a = 0; a < nitems(adapters); a++)
		for (m = 0; m < nitems(modes); m++) {
			if (modes[m].csb != 0 && adapters[a].no_csb)
				continue;
			printf("adapter %zu, %s\n", a, modes[m].name);
			g = create(&adapters[a], modes[m].sc, modes[m].csb,
			    modes[m].poll);
			test(g);
			em_settle(g);
			em_check(g);
			em_destroy(g);
		}
}

/*
 * Frames and accesses.
 */

static void
traffic(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < 60; i++) {
		em_send(g, i % 23);
		em_inject(g, i % 37);
		if (i % 3 != 0)
			em_settle(g);
		if (i % 6 == 1 && is_msix(g)) {
			em_rx_queue(g, !g->rx_queue);
			em_send_q(g, 1, i % 17);
		}
	}
	em_settle(g);
	em_check(g);
}

TEST(order, "In each mode all frames come and go in order")
{
	each(traffic);
}

/* From each mode to each other one, with traffic in both. */
static void
changes(const struct em_config *c, unsigned int nrx)
{
	struct em_guest *g = create(c, 0, 0, 0);
	size_t from, to;

	for (from = 0; from < nitems(modes); from++)
		for (to = 0; to < nitems(modes); to++) {
			set_mode(g, &modes[from]);
			em_send(g, 33);
			em_inject(g, nrx);
			em_settle(g);
			em_send(g, 33);
			em_inject(g, nrx);
			set_mode(g, &modes[to]);
			em_settle(g);
			em_check(g);
			em_send(g, 33);
			em_inject(g, nrx);
			em_settle(g);
			em_check(g);
		}
	em_destroy(g);
}

TEST(changes, "Each change of the mode loses nothing")
{
	size_t a;

	for (a = 0; a < nitems(adapters); a++) {
		changes(&adapters[a], 33);
		changes(&adapters[a], 0);
	}
}

static unsigned int
posted(const struct em_guest *g)
{
	return (g->q[0].posted + g->q[1].posted);
}

static void
probes(struct em_guest *g)
{
	const u_long reclaimed = posted(g) - g->q[0].in_use - g->q[1].in_use;

	traffic(g);
	ATF_CHECK_EQ(em_get(g, "tx_kicks"), em_fired(g, "tx__kick"));
	ATF_CHECK_EQ(em_get(g, "tx_kicks_saved"),
	    em_fired(g, "tx__kick__saved"));
	ATF_CHECK_EQ(em_get(g, "rx_kicks"), em_fired(g, "rx__kick"));
	ATF_CHECK_EQ(em_get(g, "rx_kicks_saved"),
	    em_fired(g, "rx__kick__saved"));
	ATF_CHECK_EQ(em_get(g, "tx_combined"), em_fired(g, "combine"));
	ATF_CHECK(em_fired_sum(g, "combine") >= em_fired(g, "combine"));
	ATF_CHECK_EQ(posted(g), em_fired_sum(g, "flush"));
	ATF_CHECK_EQ(em_fired(g, "flush"), em_fired(g, "tx__kick") +
	    em_fired(g, "tx__kick__saved"));
	ATF_CHECK_EQ(posted(g) - g->q[0].in_use - g->q[1].in_use - reclaimed,
	    em_fired_sum(g, "clean"));
	ATF_CHECK(em_fired(g, "clean") > 0);
	ATF_CHECK_EQ(em_get(g, "intrs"), em_fired(g, "interrupt"));
	ATF_CHECK_EQ(em_get(g, "polls"), em_fired(g, "poll"));
	ATF_CHECK_EQ(g->q[0].received, em_fired_sum(g, "receive"));
	ATF_CHECK(em_fired(g, "receive") <= em_fired(g, "rx__kick") +
	    em_fired(g, "rx__kick__saved"));
	/* The last interrupt is one of this mode. */
	if (em_get(g, "poll") != 0 || is_msix(g))
		return;
	memset(g->probes, 0, sizeof(g->probes));
	em_inject(g, 1);
	em_settle(g);
	ATF_CHECK_EQ(1, em_fired(g, "interrupt"));
	ATF_CHECK_EQ(em_get(g, "sc") + 2 * em_get(g, "csb"),
	    em_fired_sum(g, "interrupt"));
	/* TDT and RDT, kicked or saved. */
	em_send(g, 1);
	ATF_CHECK_EQ(g->q[0].pidx, em_fired_sum(g, "tx__kick") +
	    em_fired_sum(g, "tx__kick__saved"));
	ATF_CHECK_EQ(g->q[0].rx_pidx, em_fired_sum(g, "rx__kick") +
	    em_fired_sum(g, "rx__kick__saved"));
}

TEST(probes, "The probes of dtrace_lem(4) agree with the counters")
{
	each(probes);
}

/* Accesses for 50 times 20 packets, and for 1000 requests with answers. */
static const struct exits {
	u_int		 sc, csb, poll;
	bool		 msi;
	unsigned int	 send_tdt, send_intr;
	unsigned int	 rr_rdt, rr_icr, rr_mask;
} exits[] = {
	/* A write of TDT a flush.  An interrupt: ICR, IMC, IMS. */
	{ 0, 0, 0, false, 1000, 50, 1000, 1500, 1500 },
	{ 0, 0, 0, true, 1000, 50, 1000, 1500, 1500 },
	/* The first of 20, and the rest after its report. */
	{ 1, 0, 0, false, 100, 100, 1000, 2000, 2000 },
	/* A write of TDT when the host sleeps.  An interrupt: ICR, or none. */
	{ 0, 1, 0, false, 50, 0, 0, 1000, 0 },
	{ 0, 1, 0, true, 50, 0, 0, 0, 0 },
	{ 1, 1, 0, true, 50, 0, 0, 0, 0 },
	{ 0, 0, 1000, false, 1000, 0, 1000, 0, 0 },
	{ 1, 0, 1000, false, 50, 0, 1000, 0, 0 },
	{ 0, 1, 1000, false, 50, 0, 0, 0, 0 },
};

static void
check_accesses(struct em_guest *g, unsigned int tdt, unsigned int rdt,
    unsigned int icr, unsigned int mask)
{
	ATF_CHECK_EQ(tdt, em_wrote(g, E82545_TDT));
	ATF_CHECK_EQ(rdt, em_wrote(g, E82545_RDT));
	ATF_CHECK_EQ(icr, em_read(g, E82545_ICR));
	ATF_CHECK_EQ(mask, em_wrote(g, E82545_IMC));
	ATF_CHECK_EQ(mask, em_wrote(g, E82545_IMS));
	ATF_CHECK_EQ(tdt + rdt + icr + 2 * mask, g->accesses);
	em_mark(g);
}

static void
check_exits(const struct exits *e)
{
	struct em_config c = { .intr = e->msi ? IFLIB_INTR_MSI :
	    IFLIB_INTR_LEGACY };
	struct em_guest *g = create(&c, e->sc, e->csb, e->poll);
	unsigned int i;

	printf("sc %u, csb %u, poll %u, MSI %d\n", e->sc, e->csb, e->poll,
	    e->msi);
	for (i = 0; i < 50; i++) {
		em_send(g, 20);
		em_settle(g);
	}
	check_accesses(g, e->send_tdt, 0, e->send_intr, e->send_intr);
	for (i = 0; i < 1000; i++) {
		em_inject(g, 1);
		em_settle(g);
		em_send(g, 1);
		em_settle(g);
	}
	check_accesses(g, 1000, e->rr_rdt, e->rr_icr, e->rr_mask);
	em_check(g);
	em_destroy(g);
}

TEST(accesses, "Registers are accessed as often as each mode needs")
{
	size_t i;

	for (i = 0; i < nitems(exits); i++)
		check_exits(&exits[i]);
}

/* Requests with answers in queue `q': TDT, RDT, IMS for each of a vector. */
static void
check_msix(u_int sc, u_int poll, unsigned int q, unsigned int tdt,
    unsigned int ims)
{
	struct em_guest *g = create(&adapters[4], sc, 0, poll);
	unsigned int i;

	printf("sc %u, poll %u, queue %u\n", sc, poll, q);
	em_rx_queue(g, q);
	em_mark(g);
	for (i = 0; i < 100; i++) {
		em_inject(g, 1);
		em_settle(g);
		em_send_q(g, q, 5);
		em_settle(g);
	}
	ATF_CHECK_EQ(tdt, em_wrote(g, E82545_TDT + E82574_QUEUE(q)));
	ATF_CHECK_EQ(100, em_wrote(g, E82545_RDT + E82574_QUEUE(q)));
	ATF_CHECK_EQ(0, em_read(g, E82545_ICR));
	ATF_CHECK_EQ(ims, em_wrote(g, E82545_IMS));
	ATF_CHECK_EQ(tdt + 100 + ims, g->accesses);
	em_check(g);
	em_destroy(g);
}

TEST(accesses_msix, "With MSI-X each queue combines, and is polled")
{
	unsigned int q;

	for (q = 0; q < EM_QUEUES; q++) {
		check_msix(0, 0, q, 500, 400);
		check_msix(1, 0, q, 200, 600);
		check_msix(0, 1000, q, 500, 0);
		check_msix(1, 1000, q, 100, 0);
	}
}

/* Count the accesses of a start, or of a stop, by a class. */
static struct em_guest
start_stop(struct em_guest *g, kobj_class_t cls, bool start)
{
	const kobj_class_t ours = g->ctx.cls;

	em_mark(g);
	g->ctx.cls = cls;
	if (start)
		em_up(g);
	else
		em_down(g);
	g->ctx.cls = ours;
	return (*g);
}

/* Compare accesses.  em(4) alone reads STATUS, and writes IMS, more often. */
static void
compare_accesses(const struct em_guest *ours, const struct em_guest *stock,
    unsigned int status, unsigned int ims)
{
	size_t i;

	for (i = 0; i < nitems(ours->reads); i++) {
		ATF_CHECK_EQ_MSG(ours->reads[i] + (i == E82545_STATUS / 4 ?
		    status : 0), stock->reads[i], "read %#zx", 4 * i);
		ATF_CHECK_EQ_MSG(ours->writes[i] + (i == E82545_IMS / 4 ?
		    ims : 0), stock->writes[i], "write %#zx", 4 * i);
	}
}

TEST(stock, "Without a CSB and with all knobs off, a start and a stop access "
    "the registers as em(4) alone does; with a line STATUS is not read after "
    "IMC and IMS, and IMS is not written while nothing is masked")
{
	static struct em_guest up[2], down[2];
	struct em_guest *g;
	size_t a, i;

	for (a = 0; a < nitems(adapters); a++) {
		if (!adapters[a].no_csb)
			continue;
		g = em_create(&adapters[a]);
		for (i = 0; i < 2; i++) {
			kobj_class_t cls = i == 0 ? g->ctx.cls :
			    (kobj_class_t)&em_if_driver;

			up[i] = start_stop(g, cls, true);
			down[i] = start_stop(g, cls, false);
		}
		if (is_msix(g)) {
			compare_accesses(&up[0], &up[1], 0, 0);
			compare_accesses(&down[0], &down[1], 0, 0);
		} else {
			compare_accesses(&up[0], &up[1], 4, 1);
			compare_accesses(&down[0], &down[1], 1, 0);
		}
		em_destroy(g);
	}
}

/*
 * Send combining.
 */

/* Serve one interrupt with its tasks, but do no work of the adapter's. */
static void
serve(struct em_guest *g)
{
	ATF_CHECK(em_interrupt(g));
	while (em_tx_task(g) || em_rx_task(g))
		continue;
}

TEST(held_report, "Packets that are held back are posted when the report of "
    "the last posted one comes")
{
	struct em_guest *g = create(&adapters[0], 1, 0, 0);

	em_send(g, 1);
	ATF_CHECK_EQ(1, em_wrote(g, E82545_TDT));
	em_send(g, 5);
	IFDI_INTR_ENABLE(&g->ctx);
	ATF_CHECK_EQ(1, em_wrote(g, E82545_TDT));
	host_run(g->h);
	ATF_CHECK_EQ(1, host_sent(g->h));
	serve(g);
	ATF_CHECK_EQ(2, em_wrote(g, E82545_TDT));
	ATF_CHECK_EQ(1, em_get(g, "tx_flushes"));
	host_run(g->h);
	ATF_CHECK_EQ(6, host_sent(g->h));
	/* A new packet finds the report, too. */
	em_settle(g);
	em_send(g, 2);
	host_run(g->h);
	em_send(g, 1);
	ATF_CHECK_EQ(4, em_wrote(g, E82545_TDT));
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

TEST(held_poll, "With polling, packets are held back until the next poll")
{
	struct em_guest *g = create(&adapters[0], 1, 0, 1000);

	ATF_CHECK(g->callout->in == SBT_1S / 1000);
	em_send(g, 3);
	ATF_CHECK_EQ(0, em_wrote(g, E82545_TDT));
	ATF_CHECK(em_poll(g));
	ATF_CHECK(em_tx_task(g));
	ATF_CHECK_EQ(1, em_wrote(g, E82545_TDT));
	/* The adapter has not reported the first three. */
	em_send(g, 2);
	ATF_CHECK_EQ(1, em_wrote(g, E82545_TDT));
	ATF_CHECK(em_poll(g));
	ATF_CHECK(em_tx_task(g));
	ATF_CHECK_EQ(2, em_wrote(g, E82545_TDT));
	host_run(g->h);
	ATF_CHECK_EQ(5, host_sent(g->h));
	em_settle(g);
	em_check(g);
	/* From half of the ring on, they are not held back. */
	em_send(g, EM_RING / 2 - 2);
	ATF_CHECK_EQ(2, em_wrote(g, E82545_TDT));
	em_send(g, 20);
	ATF_CHECK(em_wrote(g, E82545_TDT) > 2);
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

/* A task of another processor ends, and the adapter sends, here. */
static void
other_task(struct em_guest *g)
{
	if (!g->running)
		return;
	IFDI_INTR_ENABLE(&g->ctx);
	host_run(g->h);
}

TEST(report_first, "RS is set before another processor can post the packet")
{
	struct em_guest *g = create(&adapters[0], 1, 0, 0);
	unsigned int i;

	g->lock_hook = other_task;
	for (i = 1; i < 40; i++) {
		em_send(g, i % 5 + 1);
		if (i % 7 == 0)
			em_settle(g);
	}
	em_settle(g);
	em_reclaim(g);
	em_reclaim(g);
	ATF_CHECK_EQ(0, g->q[0].in_use);
	em_check(g);
	g->lock_hook = NULL;
	em_destroy(g);
}

/* Send combining begins between a flush's look at the knob and its post. */
static void
combining_begins(struct em_guest *g)
{
	g->lock_hook = NULL;
	ATF_CHECK_EQ(0, em_set(g, "sc", 1));
}

TEST(report_none, "No report is waited for that was not asked for")
{
	struct em_guest *g = create(&adapters[0], 0, 0, 0);

	g->lock_hook = combining_begins;
	em_send(g, 1);
	em_send(g, 1);
	em_send(g, 1);
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

/*
 * Receive.
 */

static unsigned int late;

/* A frame comes at the late-th call. */
static void
frame_comes(struct em_guest *g)
{
	if (late == 0 || --late > 0)
		return;
	em_inject(g, 1);
	host_run(g->h);
}

/*
 * An interrupt has work for both tasks, so that the filter does not ask for the
 * next one.  A frame comes as its task ends.
 */
static void
last_look(struct em_guest *g)
{
	unsigned int i, raised;

	for (i = 1; i < 60; i++) {
		em_send(g, 3);
		host_run(g->h);
		em_inject(g, 1);
		host_run(g->h);
		em_mark(g);
		if (em_interrupt(g) && g->q[0].tx_task && g->q[0].rx_task) {
			ATF_CHECK_EQ(0, em_wrote(g, E82545_IMS));
			raised = host_raised(g->h);
			em_inject(g, 1);
			host_run(g->h);
			ATF_CHECK_EQ(raised, host_raised(g->h));
		}
		late = i % 30;
		g->lock_hook = frame_comes;
		(void)em_rx_task(g);
		em_settle(g);
		g->lock_hook = NULL;
		late = 0;
		/* What comes after a poll waits for the next one. */
		if (em_get(g, "poll") != 0)
			em_settle(g);
		ATF_REQUIRE_EQ(g->q[0].injected, g->q[0].received);
	}
}

TEST(last_look, "A frame that comes between the last look at the ring and the "
    "request for an interrupt is received")
{
	each(last_look);
}

/* Whether interrupts are masked is known to those who have the lock. */
static void
mask_is_locked(struct em_guest *g, uint32_t reg)
{
	if (reg == E82545_IMC || reg == E82545_IMS)
		ATF_CHECK(mtx_owned(g->mtx));
}

TEST(masked, "Without the CSB, interrupts stay masked until the received "
    "frames are taken")
{
	struct em_guest *g = create(&adapters[0], 0, 0, 0);

	g->reg_hook = mask_is_locked;
	em_inject(g, 1);
	host_run(g->h);
	ATF_CHECK(em_interrupt(g));
	ATF_CHECK(g->q[0].rx_task && !g->q[0].tx_task);
	ATF_CHECK_EQ(0, em_wrote(g, E82545_IMS));
	em_inject(g, 1);
	host_run(g->h);
	ATF_CHECK(!em_interrupt(g));
	ATF_CHECK(em_rx_task(g));
	ATF_CHECK_EQ(1, em_wrote(g, E82545_IMS));
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

TEST(stray, "With the CSB, an interrupt of another device on the line changes "
    "nothing")
{
	struct em_guest *g = create(&adapters[0], 0, 1, 0);

	ATF_CHECK_EQ(FILTER_STRAY, g->ctx.scctx.isc_txrx->ift_legacy_intr(
	    g->sc));
	ATF_CHECK_EQ(1, em_read(g, E82545_ICR));
	em_inject(g, 1);
	em_settle(g);
	/*
	 * A poll does what there is to do.  ICR is not read; IMC is written,
	 * for em(4) may have unmasked the causes.
	 */
	ATF_REQUIRE_EQ(0, em_set(g, "poll", 1000));
	em_settle(g);
	em_mark(g);
	em_inject(g, 1);
	host_run(g->h);
	ATF_CHECK_EQ(FILTER_STRAY, g->ctx.scctx.isc_txrx->ift_legacy_intr(
	    g->sc));
	ATF_CHECK_EQ(1, em_wrote(g, E82545_IMC));
	ATF_CHECK_EQ(1, g->accesses);
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

TEST(causes, "With the CSB, causes are an interrupt if they are unmasked; a "
    "device that is gone has none")
{
	struct em_guest *g = create(&adapters[0], 0, 1, 0);
	const uint32_t link = E1000_ICR_RXSEQ | E1000_ICR_LSC;
	const u_long before = em_get(g, "icr_reads");
	unsigned int bit;
	uint32_t icr;

	for (bit = 0; bit < 32; bit++) {
		g->icr = icr = 1u << bit;
		g->admin_task = false;
		g->sc->hw.mac.get_link_status = false;
		g->sc->rx_overruns = 0;
		ATF_CHECK_EQ((icr & (IMS_ENABLE_MASK | E1000_ICR_RXO)) != 0 ?
		    FILTER_SCHEDULE_THREAD : FILTER_STRAY,
		    g->ctx.scctx.isc_txrx->ift_legacy_intr(g->sc));
		ATF_CHECK_EQ((icr & link) != 0, g->admin_task);
		ATF_CHECK_EQ((icr & link) != 0,
		    g->sc->hw.mac.get_link_status);
		ATF_CHECK_EQ(icr == E1000_ICR_RXO, g->sc->rx_overruns);
	}
	ATF_CHECK_EQ(before + 32, em_get(g, "icr_reads"));
	g->icr = 0xffffffff;
	ATF_CHECK_EQ(FILTER_STRAY,
	    g->ctx.scctx.isc_txrx->ift_legacy_intr(g->sc));
	em_destroy(g);
}

TEST(offers, "An adapter with a CSB has TSO, one queue and no MSI-X; all "
    "others have what em(4) gives them")
{
	struct em_guest *g;
	size_t a;
	bool csb;

	for (a = 0; a < nitems(adapters); a++) {
		g = em_create(&adapters[a]);
		csb = !adapters[a].no_csb;
		ATF_CHECK_EQ(IFCAP_RXCSUM | (csb ? IFCAP_TSO6 : 0),
		    g->ctx.scctx.isc_capabilities);
		ATF_CHECK_EQ(IFCAP_RXCSUM | (csb ? IFCAP_TSO : 0),
		    g->ctx.scctx.isc_capenable);
		ATF_CHECK_EQ(csb ? -1 : 0, g->ctx.scctx.isc_msix_bar);
		ATF_CHECK_EQ(csb, g->ctx.scctx.isc_disable_msix);
		ATF_CHECK_EQ(csb, g->ctx.scctx.isc_nrxqsets_max);
		ATF_CHECK_EQ(csb, g->ctx.scctx.isc_ntxqsets_max);
		ATF_CHECK_EQ(csb, em_get(g, "csb"));
		ATF_CHECK_EQ(csb ? 20 : 100, em_get(g, "rx_share"));
		em_destroy(g);
	}
}

TEST(link, "With numbers, an interrupt that is for no request has ICR read: "
    "the link")
{
	struct em_guest *g = create(&adapters[1], 0, 1, 0);

	g->admin_task = false;
	e82545_link(g->h->dev, false);
	em_settle(g);
	ATF_CHECK(g->admin_task);
	ATF_CHECK(g->sc->hw.mac.get_link_status);
	e82545_link(g->h->dev, true);
	em_settle(g);
	em_mark(g);
	em_inject(g, 3);
	em_send(g, 300);
	em_settle(g);
	ATF_CHECK_EQ(0, em_read(g, E82545_ICR));
	em_check(g);
	em_destroy(g);
}

static void
full_rings(struct em_guest *g)
{
	em_send(g, 1000);
	ATF_CHECK(g->q[0].queued > 700);
	em_inject(g, 1000);
	em_settle(g);
	em_check(g);
}

/* The adapter is as fast as a write of TDT. */
static void
fast_adapter(struct em_guest *g, uint32_t reg)
{
	if (reg == E82545_TDT)
		host_run(g->h);
}

static void
fast(struct em_guest *g)
{
	g->reg_hook = fast_adapter;
	em_send(g, 300);
	em_settle(g);
	/* As many as fit, with one flush. */
	g->netmap = true;
	g->q[0].tx_notified = false;
	em_netmap_send(g, 300);
	em_settle(g);
	ATF_CHECK(g->q[0].tx_notified);
	em_netmap_send(g, 0);
	em_settle(g);
	g->netmap = false;
	g->reg_hook = NULL;
}

TEST(fast, "Packets that are sent before the request for an interrupt are "
    "noticed")
{
	each(fast);
}

/* The adapter receives, and interrupts for that, before it sends. */
static void
receives_first(struct em_guest *g)
{
	em_send(g, 1000);
	em_inject(g, 1);
	while (e82545_rx(g->h->dev) == E82545_RX_MORE)
		continue;
	while (em_interrupt(g) || em_rx_task(g) || em_tx_task(g))
		continue;
}

TEST(receives_first, "An interrupt for received frames does not end the wait "
    "for room in the transmit ring")
{
	each(receives_first);
}

TEST(full, "A full ring is no end: the rest is sent when there is room, and "
    "all frames are received")
{
	each(full_rings);
}

/*
 * netmap(4).
 */

static void
netmap(struct em_guest *g)
{
	unsigned int before;

	g->netmap = true;
	em_inject(g, 40);
	before = g->ntasks;
	em_settle(g);
	/* A program takes some of the frames, and leaves the others. */
	ATF_CHECK(g->q[0].rx_notified);
	ATF_CHECK(g->ntasks - before < 40);
	em_netmap_receive(g, 10);
	before = g->ntasks;
	em_settle(g);
	ATF_CHECK(g->ntasks - before < 20);
	em_netmap_receive(g, 100);
	em_settle(g);
	ATF_CHECK_EQ(40, g->q[0].received);
	g->q[0].rx_notified = false;
	em_inject(g, 1);
	em_settle(g);
	ATF_CHECK(g->q[0].rx_notified);
	em_netmap_receive(g, 1);
	em_netmap_send(g, 100);
	em_settle(g);
	em_netmap_send(g, 100);
	em_settle(g);
	ATF_CHECK(host_sent(g->h) == 200);
	g->netmap = false;
}

TEST(netmap, "Frames that a program leaves in the ring are announced, and keep "
    "nobody busy")
{
	each(netmap);
}

/*
 * Start, stop.
 */

static void
restart(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < 5; i++) {
		em_settle(g);
		em_send(g, 10 * i);
		em_inject(g, i);
		if (i % 2 == 0)
			host_run(g->h);
		em_down(g);
		ATF_CHECK_EQ(g->config.no_csb, g->when[E82545_CSBAL / 4] == 0);
		ATF_CHECK(g->when[E82545_CSBAL / 4] <
		    g->when[E82545_CTRL / 4]);
		ATF_CHECK(g->callout->func == NULL);
		ATF_CHECK_EQ(0, host_rd(g->h, E82545_CSBAL));
		em_settle(g);
		/* A late task, and a knob, leave the adapter alone. */
		em_mark(g);
		if (!is_msix(g))
			IFDI_INTR_ENABLE(&g->ctx);
		ATF_CHECK_EQ(0, em_set(g, "sc", 1 - em_get(g, "sc")));
		ATF_CHECK_EQ(0, em_set(g, "sc", 1 - em_get(g, "sc")));
		ATF_CHECK_EQ(0, g->accesses);
		em_up(g);
		ATF_CHECK(is_msix(g) || em_wrote(g, E82574_EIAC) == 0);
		ATF_CHECK(em_get(g, "poll") == 0 ||
		    g->callout->in == SBT_1S / 1000);
		ATF_CHECK(g->config.no_csb ||
		    g->csb->guest_csb_on == em_get(g, "csb"));
		/* em(4)'s own, and the first buffers. */
		ATF_CHECK_EQ(2, em_wrote(g, E82545_RDT));
		em_settle(g);
		last_look(g);
		em_send(g, 300);
		em_inject(g, 300);
		em_settle(g);
		em_check(g);
	}
}

TEST(restart, "A stop withdraws the CSB before the reset, and a start goes on "
    "in the same mode")
{
	each(restart);
}

TEST(tunable, "Knobs can be set by tunables, which attach reads")
{
	static const struct {
		const char	*name;
		u_int		 value;
	} set[] = {
		{ "sc", 1 }, { "csb", 0 }, { "poll", 500 }, { "itr", 100 }
	};
	struct em_config c = adapters[0];
	struct em_guest *g;
	size_t i;

	for (i = 0; i < nitems(set); i++) {
		c.tunable = set[i].name;
		c.value = set[i].value;
		g = em_create(&c);
		ATF_CHECK_EQ(set[i].value, em_get(g, c.tunable));
		em_up(g);
		if (strcmp(c.tunable, "itr") != 0)
			traffic(g);
		ATF_CHECK_EQ(c.value, em_get(g, c.tunable));
		em_destroy(g);
	}
}

/* A partial frame of `len' bytes arrives as `n' frames, partial or not. */
static void
headers_arrive(struct em_guest *g, uint32_t len, uint16_t mss, unsigned int n,
    bool partial)
{
	const unsigned int others = g->others;
	const u_long offload = em_get(g, "rx_offload");

	em_inject_partial(g, len, mss);
	em_settle(g);
	ATF_CHECK_EQ(n, g->others - others);
	ATF_CHECK_EQ(partial, em_get(g, "rx_offload") - offload);
	if (partial) {
		ATF_CHECK_EQ(len, g->other.iri_len);
		ATF_CHECK_EQ(CSUM_DATA_VALID | CSUM_PSEUDO_HDR,
		    g->other.iri_csum_flags);
		ATF_CHECK_EQ(0xffff, g->other.iri_csum_data);
	} else
		ATF_CHECK_EQ(0, g->other.iri_csum_flags);
}

static void
headers_adapter(const struct em_config *c)
{
	struct em_guest *g = create(c, 0, 1, 0);
	int *const caps = &g->ctx.ifnet.capenable;
	const int all = *caps;
	unsigned int i;

	for (i = 0; i < 40; i++) {
		headers_arrive(g, 5000 + i, 1000, 1, true);
		headers_arrive(g, 200, 0, 1, true);
		em_inject(g, 3);
	}
	headers_arrive(g, 65535, 1448, 1, true);
	ATF_CHECK_EQ(65536 / EM_BUF, g->other.iri_nfrags);
	ATF_CHECK_EQ(EM_BUF, g->ctx.scctx.isc_rxd_buf_size[0]);
	ATF_CHECK_EQ(0, em_get(g, "rx_bad"));
	/* The longest frame of the adapter is longer than what iflib(4) takes. */
	headers_arrive(g, 65536, 1448, 1, false);
	ATF_CHECK_EQ(1, em_get(g, "rx_bad"));
	ATF_CHECK_EQ(65536 - EM_BUF, g->other.iri_len);
	ATF_CHECK_EQ(65536 - EM_BUF, g->other_bytes);
	g->rx_flags = CSUM_L3_VALID;
	headers_arrive(g, 65536, 1448, 1, false);
	em_inject_partial(g, 200, 0);
	em_settle(g);
	ATF_CHECK_EQ(CSUM_L3_VALID | CSUM_DATA_VALID | CSUM_PSEUDO_HDR,
	    g->other.iri_csum_flags);
	g->rx_flags = 0;
	/* Without the CSB, and for those who forward, they are cut. */
	ATF_CHECK_EQ(0, em_set(g, "csb", 0));
	headers_arrive(g, 5054, 1000, 5, false);
	ATF_CHECK_EQ(0, em_set(g, "csb", 1));
	headers_arrive(g, 5054, 1000, 1, true);
	em_ipforwarding = 1;
	em_admin(g);
	ATF_CHECK_EQ(1, g->resets);
	em_settle(g);
	ATF_CHECK_EQ(0, g->ctx.scctx.isc_rxd_buf_size[0]);
	headers_arrive(g, 5054, 1000, 5, false);
	em_admin(g);
	ATF_CHECK_EQ(1, g->resets);
	em_ipforwarding = 0;
	em_ip6_forwarding = 1;
	em_admin(g);
	ATF_CHECK_EQ(1, g->resets);
	em_ip6_forwarding = 0;
	for (i = 1; i <= IFCAP_LRO; i *= 2) {
		*caps = all & ~i;
		em_down(g);
		em_up(g);
		headers_arrive(g, 5054, 1000, 5, false);
	}
	*caps = all | IFCAP_NETMAP;
	em_admin(g);
	headers_arrive(g, 5054, 1000, 5, false);
	*caps = all;
	em_admin(g);
	ATF_CHECK_EQ(2, g->resets);
	em_settle(g);
	headers_arrive(g, 5054, 1000, 1, true);
	em_check(g);
	em_destroy(g);
}

TEST(headers, "With the header ring, frames with partial checksums arrive uncut, "
    "unless somebody else would get them so")
{
	size_t a;

	for (a = 0; a < nitems(adapters) && !adapters[a].no_csb; a++)
		headers_adapter(&adapters[a]);
}

TEST(headers_last, "A frame that comes after the last look behind a long frame "
    "is received")
{
	struct em_guest *g = create(&adapters[0], 0, 1, 0);
	unsigned int i;

	for (i = 1; i < 60; i++) {
		em_inject_partial(g, 9000, 1448);
		host_run(g->h);
		ATF_REQUIRE(em_interrupt(g));
		late = i % 30;
		g->lock_hook = frame_comes;
		(void)em_rx_task(g);
		em_settle(g);
		g->lock_hook = NULL;
		late = 0;
		ATF_REQUIRE_EQ(i, g->others);
		ATF_REQUIRE_EQ(g->q[0].injected, g->q[0].received);
	}
	em_destroy(g);
}

TEST(headers_invalid, "Of an invalid header, which another guest makes, nothing "
    "is believed")
{
	/* Flags, type, mss, csum_start, csum_offset; a frame of 200 bytes. */
	static const struct {
		uint8_t	 flags, type;
		uint16_t mss, start, offset;
		bool	 valid;
	} rows[] = {
		{ 1, 0, 0, 34, 16, true },	{ 1, 0, 0, 14, 16, true },
		{ 1, 0, 0, 13, 16, false },	{ 1, 0, 0, 182, 16, true },
		{ 1, 0, 0, 183, 16, false },	{ 1, 0, 0, 34, 65535, false },
		{ 1, 1, 100, 34, 16, true },	{ 1, 0x84, 199, 34, 16, true },
		{ 1, 4, 0, 34, 16, false },	{ 1, 1, 200, 34, 16, false },
		{ 1, 3, 100, 34, 6, false },	{ 1, 5, 100, 34, 6, false },
		{ 1, 0x80, 0, 34, 16, false },	{ 0, 0, 0, 34, 16, false },
	};
	struct em_guest *g = create(&adapters[0], 0, 1, 0);
	const struct paravirt_csb *csb = host_mem(g->h,
	    host_rd(g->h, E82545_CSBAL), sizeof(*csb));
	u_long bad = 0;
	uint8_t *hdr;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		em_inject_partial(g, 200, 0);
		host_run(g->h);
		hdr = host_mem(g->h, csb->vnet_ring_low + g->q[0].rx_cidx * 10, 10);
		hdr[0] = rows[i].flags;
		hdr[1] = rows[i].type;
		le16enc(hdr + 4, rows[i].mss);
		le16enc(hdr + 6, rows[i].start);
		le16enc(hdr + 8, rows[i].offset);
		em_settle(g);
		bad += rows[i].flags != 0 && !rows[i].valid;
		ATF_CHECK_EQ_MSG(bad, em_get(g, "rx_bad"), "row %zu", i);
		ATF_CHECK_EQ_MSG(rows[i].valid, g->other.iri_csum_flags != 0,
		    "row %zu", i);
	}
	em_destroy(g);
}

TEST(no_csb, "Without a CSB, or memory for it, csb=1 is EOPNOTSUPP and all "
    "else works")
{
	struct em_config c[2] = { { .no_csb = true }, { .fail = 4 } };
	struct em_guest *g;
	int i;

	for (i = 0; i < 2; i++) {
		g = em_create(&c[i]);
		ATF_CHECK_EQ(0, em_get(g, "csb"));
		em_destroy(g);
		g = create(&c[i], 1, 0, 0);
		ATF_CHECK_EQ(0, em_get(g, "csb"));
		ATF_CHECK_EQ(EOPNOTSUPP, em_set(g, "csb", 1));
		ATF_CHECK_EQ(0, em_set(g, "csb", 0));
		traffic(g);
		ATF_CHECK_EQ(0, em_set(g, "poll", 100));
		traffic(g);
		ATF_CHECK_EQ(0, em_wrote(g, E82545_CSBAL));
		em_down(g);
		em_up(g);
		traffic(g);
		em_destroy(g);
	}
}

/* Frames come, so that the adapter interrupts. */
static void
interrupted(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < EM_QUEUES; i++) {
		if (is_msix(g))
			em_rx_queue(g, i);
		em_inject(g, 1);
		em_settle(g);
		/* ITR delays the next one. */
		host_advance(g->h, 100000000);
		em_settle(g);
	}
}

/* ITR, or that of each vector. */
static void
itr_is(struct em_guest *g, uint32_t itr)
{
	ATF_CHECK_EQ(itr, host_rd(g->h, E82545_ITR));
	ATF_CHECK(is_msix(g) || em_wrote(g, E82574_EITR(0)) == 0);
	if (!is_msix(g))
		return;
	ATF_CHECK_EQ(itr, host_rd(g->h, E82574_EITR(1)));
	ATF_CHECK_EQ(itr, host_rd(g->h, E82574_EITR(0)));
}

static void
itr_adapter(const struct em_config *adapter, uint32_t aim)
{
	struct em_config c = *adapter;
	struct em_guest *g;

	c.aim = aim;
	c.no_aim = 488;
	g = create(&c, 0, 0, 0);
	ATF_CHECK_EQ(0, em_set(g, "itr", 0));
	itr_is(g, 0);
	em_destroy(g);
	g = create(&c, 0, 0, 0);
	interrupted(g);
	/* em(4)'s, in both ways of it. */
	ATF_CHECK_EQ(aim != 0 ? aim : 488, host_rd(g->h, E82545_ITR) & ~1u);
	if (c.no_csb) {
		em_mark(g);
		ATF_CHECK_EQ(0, em_set(g, "sc", 1));
		ATF_CHECK_EQ(0, em_wrote(g, E82545_ITR));
	}
	ATF_CHECK_EQ(0, em_set(g, "itr", 100));
	itr_is(g, 100);
	/* em(4) writes its own once more, and then no longer. */
	interrupted(g);
	em_admin(g);
	itr_is(g, 100);
	interrupted(g);
	itr_is(g, 100);
	em_down(g);
	em_mark(g);
	ATF_CHECK_EQ(0, em_set(g, "itr", 200));
	em_admin(g);
	ATF_CHECK_EQ(0, g->accesses);
	em_up(g);
	itr_is(g, 200);
	ATF_CHECK_EQ(0, em_set(g, "itr", 0));
	em_down(g);
	em_up(g);
	itr_is(g, 0);
	em_destroy(g);
}

TEST(itr, "An interval that is set stays, whatever em(4) does, and 0 is one")
{
	size_t a;

	for (a = 0; a < nitems(adapters); a++) {
		itr_adapter(&adapters[a], 194);
		itr_adapter(&adapters[a], 0);
	}
}

TEST(itr_csb, "Without an interval that is set, it is 0 with the CSB, and "
    "em(4)'s without")
{
	struct em_config c = { .aim = 194, .no_aim = 488 };
	struct em_guest *g = create(&c, 0, 1, 0);

	itr_is(g, 0);
	ATF_CHECK_EQ(0, em_set(g, "csb", 0));
	itr_is(g, 488);
	interrupted(g);
	ATF_CHECK_EQ(194, host_rd(g->h, E82545_ITR) & ~1u);
	ATF_CHECK_EQ(0, em_set(g, "csb", 1));
	itr_is(g, 0);
	em_admin(g);
	ATF_CHECK_EQ(0, em_set(g, "itr", 50));
	itr_is(g, 50);
	/* em(4) does not write it then. */
	em_mark(g);
	em_admin(g);
	ATF_CHECK_EQ(0, g->accesses);
	ATF_CHECK_EQ(0, em_set(g, "csb", 0));
	itr_is(g, 50);
	em_destroy(g);
}

/* The link is taken away and given back; em(4) looks at it each time. */
static void
link_changes(struct em_guest *g)
{
	unsigned int links;
	int up;

	/* Whoever polls looks at it now and then. */
	em_admin(g);
	for (up = 0; up <= 1; up++) {
		links = g->links;
		e82545_link(g->h->dev, up);
		em_settle(g);
		ATF_CHECK(g->admin_task || em_get(g, "poll") != 0);
		em_admin(g);
		ATF_CHECK_EQ(links + 1, g->links);
	}
	/* Without polling, this costs nothing. */
	links = g->links;
	em_mark(g);
	em_admin(g);
	ATF_CHECK_EQ(em_get(g, "poll") != 0, g->links - links);
	ATF_CHECK_EQ(0, g->accesses);
	traffic(g);
}

TEST(link_modes, "In each mode em(4) sees that the link has changed")
{
	each(link_changes);
}

/* Both tasks of each queue are queued by a change, and are not any longer. */
static void
tasks_are(struct em_guest *g, bool queued)
{
	int i;

	for (i = 0; i < g->ctx.scctx.isc_ntxqsets; i++) {
		ATF_CHECK_EQ(queued, g->q[i].tx_task);
		ATF_CHECK_EQ(queued, g->q[i].rx_task);
		g->q[i].tx_task = g->q[i].rx_task = false;
	}
}

/* A poll begins while polling ends. */
static void
late_poll(struct em_guest *g)
{
	if (em_get(g, "poll") == 0)
		(void)em_poll(g);
}

static void
mode_tasks(struct em_guest *g)
{
	const u_long sc = em_get(g, "sc");

	tasks_are(g, false);
	ATF_CHECK_EQ(0, em_set(g, "sc", 1 - sc));
	tasks_are(g, true);
	ATF_CHECK_EQ(0, em_set(g, "sc", 1 - sc));
	em_mark(g);
	ATF_CHECK_EQ(0, em_set(g, "rx_share", 50));
	ATF_CHECK_EQ(0, g->accesses);
	tasks_are(g, false);
	ATF_CHECK_EQ(0, em_set(g, "poll", 500));
	ATF_CHECK(g->callout->in == SBT_1S / 500);
	ATF_CHECK(em_poll(g));
	ATF_CHECK(g->callout->in == SBT_1S / 500);
	tasks_are(g, true);
	g->lock_hook = late_poll;
	ATF_CHECK_EQ(0, em_set(g, "poll", 0));
	g->lock_hook = NULL;
	ATF_CHECK(is_msix(g) || em_wrote(g, E82574_EIAC) == 0);
	ATF_CHECK(g->callout->func == NULL);
	tasks_are(g, true);
	ATF_CHECK_EQ(0, em_set(g, "sc", sc));
}

TEST(mode_tasks, "A change of the mode, and nothing else, queues all tasks")
{
	each(mode_tasks);
}

/* What the guest's part of the CSB says. */
static void
csb_is(struct em_guest *g, u_int on, u_int poll)
{
	const struct paravirt_csb *csb = g->csb;

	ATF_CHECK_EQ(on, csb->guest_csb_on);
	ATF_CHECK_EQ(g->q[0].pidx, csb->guest_tdt);
	ATF_CHECK_EQ(g->q[0].rx_pidx, csb->guest_rdt);
	ATF_CHECK_EQ(poll == 0, csb->guest_need_txkick & 1);
	ATF_CHECK_EQ(poll == 0, csb->guest_need_rxkick & 1);
	ATF_CHECK(poll == 0 || csb->guest_need_rxkick == 0);
	ATF_CHECK(poll == 0 || csb->guest_need_txkick == 0);
	ATF_CHECK_EQ(NET_PARAVIRT_NONE, csb->guest_txkick_at);
}

TEST(csb_fields, "A change of the mode fills the guest's part of the CSB")
{
	struct em_guest *g;
	uint32_t asked;
	size_t a;

	for (a = 0; a < nitems(adapters) && !adapters[a].no_csb; a++) {
		g = create(&adapters[a], 0, 1, 0);
		traffic(g);
		ATF_CHECK_EQ(0, em_set(g, "csb", 0));
		csb_is(g, 0, 0);
		traffic(g);
		ATF_CHECK_EQ(0, em_set(g, "csb", 1));
		csb_is(g, 1, 0);
		asked = g->csb->guest_need_rxkick;
		em_settle(g);
		/* Numbers, with an MSI. */
		ATF_CHECK_EQ(adapters[a].intr == IFLIB_INTR_MSI, asked > 1);
		ATF_CHECK_EQ(asked > 1, g->csb->guest_need_rxkick > asked);
		ATF_CHECK_EQ(1, g->csb->guest_need_rxkick & 1);
		ATF_CHECK_EQ(0, em_set(g, "poll", 1000));
		csb_is(g, 1, 1000);
		/* No header ring, and nothing is left of before. */
		g->ctx.ifnet.capenable = 0;
		em_down(g);
		em_up(g);
		ATF_CHECK_EQ(0, g->csb->vnet_ring_low);
		em_destroy(g);
	}
}

TEST(rxkick, "RDT is written when the host waits for a slot that is posted")
{
	/* The slots behind the old tail, of which one is posted. */
	static const struct {
		uint32_t	 at;
		unsigned int	 posted, kicks;
	} rows[] = {
		{ 0, 1, 0 }, { 1, 1, 1 }, { 2, 1, 0 }, { 2, 2, 1 },
		{ 1, 2, 1 }, { EM_RING - 1, 3, 0 },
	};
	struct em_guest *g = create(&adapters[0], 0, 1, 0);
	struct paravirt_csb *csb = host_mem(g->h,
	    host_rd(g->h, E82545_CSBAL), sizeof(*csb));
	qidx_t old = 0;
	size_t i;

	ATF_REQUIRE(csb == g->csb);
	for (i = 0; i < nitems(rows) + 3; i++) {
		g->ctx.scctx.isc_txrx->ift_rxd_flush(g->sc, 0, 0, old);
		csb->host_rxkick_at = i < nitems(rows) ?
		    (old + rows[i].at) % EM_RING : i == nitems(rows) ?
		    EM_RING : i == nitems(rows) + 1 ? EM_RING + 7 :
		    NET_PARAVIRT_NONE;
		em_mark(g);
		g->ctx.scctx.isc_txrx->ift_rxd_flush(g->sc, 0, 0,
		    (old + (i < nitems(rows) ? rows[i].posted : 1)) % EM_RING);
		ATF_CHECK_EQ_MSG(i < nitems(rows) ? rows[i].kicks :
		    i < nitems(rows) + 2, em_wrote(g, E82545_RDT), "%zu", i);
		old = (old + 77) % EM_RING;
		csb->host_rxkick_at = NET_PARAVIRT_NONE;
	}
	em_destroy(g);
}

TEST(report_once, "A packet for which em(4) asks for a report is not asked for "
    "once more")
{
	struct em_guest *g = create(&adapters[0], 1, 0, 0);
	const struct tx_ring *txr = &g->sc->tx_queues[0].txr;
	const qidx_t before = txr->tx_rs_pidx;
	unsigned int i, n = 0;

	em_send(g, 60);
	for (i = 0; i < EM_RING; i++)
		n += (txr->tx_base[i].lower.data & E82545_TXD_RS) != 0;
	ATF_CHECK(n > 5);
	ATF_CHECK_EQ(n, (txr->tx_rs_pidx - before + EM_RING) % EM_RING);
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

/* The adapter sends while somebody waits for the lock. */
static void
host_works(struct em_guest *g)
{
	host_run(g->h);
}

static void
fast_lock(struct em_guest *g)
{
	g->lock_hook = host_works;
	em_send(g, 1000);
	em_settle(g);
	em_check(g);
	em_send(g, 1000);
	while (em_tx_task(g) || em_interrupt(g) || em_rx_task(g))
		continue;
	g->lock_hook = NULL;
}

TEST(fast_lock, "Packets that are sent while the lock is waited for are "
    "noticed")
{
	each(fast_lock);
}

TEST(rx_error, "An error of em(4)'s for a frame is passed on")
{
	struct em_guest *g = create(&adapters[0], 0, 1, 0);
	struct if_rxd_frag frags[64];
	struct if_rxd_info ri = { .iri_frags = frags };

	em_inject(g, 1);
	host_run(g->h);
	ri.iri_cidx = g->q[0].rx_cidx;
	g->rx_error = EBADMSG;
	ATF_CHECK_EQ(EBADMSG, g->ctx.scctx.isc_txrx->ift_rxd_pkt_get(g->sc,
	    &ri));
	em_destroy(g);
}

TEST(vlan_netmap, "A program with netmap gets tags, and nobody else does")
{
	struct em_guest *g = create(&adapters[0], 0, 1, 0);

	ATF_CHECK(host_rd(g->h, E82545_CTRL) & E82545_CTRL_VME);
	em_down(g);
	g->ctx.ifnet.capenable |= IFCAP_NETMAP;
	em_up(g);
	ATF_CHECK(!(host_rd(g->h, E82545_CTRL) & E82545_CTRL_VME));
	em_destroy(g);
}

/* IMS, and EIAC, are on or off. */
static void
msix_is(struct em_guest *g, bool ims, bool eiac)
{
	ATF_CHECK_EQ(ims, host_rd(g->h, E82545_IMS) != 0);
	ATF_CHECK_EQ(eiac ? 0x01f00000 : 0, host_rd(g->h, E82574_EIAC));
}

TEST(msix_masks, "With MSI-X, polling masks, and leaves EIAC")
{
	struct em_config c = adapters[4];
	struct em_guest *g;

	c.tunable = "poll";
	c.value = 1000;
	g = em_create(&c);
	em_up(g);
	msix_is(g, false, true);
	ATF_CHECK_EQ(0, g->sc->ims);
	IFDI_INTR_ENABLE(&g->ctx);
	msix_is(g, false, true);
	em_mark(g);
	ATF_CHECK_EQ(0, em_set(g, "poll", 0));
	/* EIAC before the causes are read, and as em(4) unmasks. */
	ATF_CHECK_EQ(2, em_wrote(g, E82574_EIAC));
	ATF_CHECK_EQ(1, em_read(g, E82545_ICR));
	msix_is(g, true, true);
	ATF_CHECK_EQ(0x01f00000, g->sc->ims);
	em_mark(g);
	IFDI_INTR_ENABLE(&g->ctx);
	ATF_CHECK_EQ(1, em_wrote(g, E82545_IMS));
	IFDI_INTR_DISABLE(&g->ctx);
	ATF_CHECK_EQ(1, em_wrote(g, E82545_IMC));
	msix_is(g, false, false);
	IFDI_INTR_ENABLE(&g->ctx);
	em_settle(g);
	traffic(g);
	em_destroy(g);
}

static bool
wanted(struct em_guest *g __attribute__((__unused__)))
{
	return (true);
}

TEST(share_others, "With MSI-X, and for netmap, reception does not pause")
{
	static const unsigned int kinds[] = { 4, 0 };
	struct em_guest *g;
	size_t i;

	for (i = 0; i < nitems(kinds); i++) {
		g = create(&adapters[kinds[i]], 0, 0, 0);
		ATF_CHECK_EQ(0, em_set(g, "rx_share", 20));
		em_settle(g);
		g->runnable = wanted;
		g->frame_ns = 100000;
		em_inject(g, 100);
		em_settle(g);
		em_check(g);
		ATF_CHECK_EQ(!is_msix(g), em_get(g, "rx_pauses") != 0);
		em_destroy(g);

		g = create(&adapters[kinds[i]], 0, 0, 0);
		ATF_CHECK_EQ(0, em_set(g, "rx_share", 20));
		g->ctx.ifnet.capenable |= IFCAP_NETMAP;
		g->netmap = true;
		em_settle(g);
		g->runnable = wanted;
		g->frame_ns = 100000;
		em_inject(g, 100);
		em_settle(g);
		em_netmap_receive(g, 200);
		em_check(g);
		ATF_CHECK_EQ(0, em_get(g, "rx_pauses"));
		g->netmap = false;
		em_destroy(g);
	}
}

/*
 * Attach, detach.
 */

TEST(failures, "Whatever call fails at attach: no adapter, and nothing left, "
    "or one that works without")
{
	struct em_config c;
	struct em_guest *g;
	unsigned int attached, n;
	size_t a;

	for (a = 0; a < nitems(adapters); a++)
		for (attached = n = 0;; n++) {
			c = adapters[a];
			c.fail = n;
			g = em_create(&c);
			if (g == NULL)
				continue;
			attached++;
			if (n != 0 && g->calls < n) {
				/*
				 * None of the calls did.  It works without a
				 * knob or counter, the CSB, the header ring.
				 */
				ATF_CHECK_EQ(g->nsysctls + (c.no_csb ? 2 : 4),
				    attached);
				ATF_CHECK_EQ(attached + 6, n);
				em_destroy(g);
				break;
			}
			em_up(g);
			traffic(g);
			em_down(g);
			em_up(g);
			traffic(g);
			em_destroy(g);
		}
}

static unsigned int waits;

/* Who has the lock lets it go, or detaches. */
static void
let_go(struct em_guest *g)
{
	if (++waits == 3)
		sx_xunlock(&g->ctx.lock);
}

static void
detach_begins(struct em_guest *g)
{
	if (++waits == 3)
		IFDI_CALL(&g->ctx, ifdi_detach)(&g->ctx);
}

TEST(knob_waits, "A knob waits for the lock, and not for detach, which waits "
    "for the knob")
{
	struct em_guest *g = create(&adapters[0], 0, 0, 0);

	g->pause_hook = let_go;
	waits = 0;
	sx_xlock(&g->ctx.lock);
	g->ctx.lock.other = true;
	ATF_CHECK_EQ(0, em_set(g, "sc", 1));
	ATF_CHECK_EQ(3, waits);
	ATF_CHECK_EQ(1, em_get(g, "sc"));
	em_down(g);
	g->pause_hook = detach_begins;
	waits = 0;
	sx_xlock(&g->ctx.lock);
	g->ctx.lock.other = true;
	ATF_CHECK_EQ(ENXIO, em_set(g, "sc", 0));
	ATF_CHECK_EQ(3, waits);
	g->ctx.lock.owned = g->ctx.lock.other = false;
	g->attached = false;
	em_destroy(g);
}

TEST(values, "A value out of range is EINVAL, and ITR is written as it is")
{
	static const struct {
		const char	*name;
		u_int		 max;
	} knobs[] = { { "itr", 0xffff }, { "sc", 1 }, { "csb", 1 },
	    { "poll", 100000 } };
	struct em_guest *g = em_create(&adapters[0]);
	size_t i;

	ATF_CHECK_EQ(1, em_get(g, "csb"));
	ATF_CHECK_EQ(17, g->nsysctls);
	em_up(g);
	g->copy_error = EFAULT;
	ATF_CHECK_EQ(EFAULT, em_set(g, "sc", 1));
	g->copy_error = 0;
	ATF_CHECK_EQ(0, em_get(g, "sc"));
	for (i = 0; i < nitems(knobs); i++) {
		ATF_CHECK_EQ(0, em_set(g, knobs[i].name, knobs[i].max));
		ATF_CHECK_EQ(EINVAL, em_set(g, knobs[i].name,
		    knobs[i].max + 1));
		ATF_CHECK_EQ(EINVAL, em_set(g, knobs[i].name, UINT32_MAX));
		ATF_CHECK_EQ(knobs[i].max, em_get(g, knobs[i].name));
	}
	ATF_CHECK_EQ(0xffff, host_rd(g->h, E82545_ITR));
	em_down(g);
	em_up(g);
	ATF_CHECK_EQ(0xffff, host_rd(g->h, E82545_ITR));
	ATF_CHECK_EQ(0, em_set(g, "itr", 0));
	ATF_CHECK_EQ(0, host_rd(g->h, E82545_ITR));
	/* In both directions, the host hears of the change by both tails. */
	ATF_CHECK_EQ(0, em_set(g, "poll", 0));
	for (i = 0; i < 2; i++) {
		em_mark(g);
		ATF_CHECK_EQ(0, em_set(g, "csb", i));
		ATF_CHECK_EQ(1, em_wrote(g, E82545_TDT));
		ATF_CHECK_EQ(1, em_wrote(g, E82545_RDT));
	}
	em_destroy(g);
}

TEST(devices, "The adapters of hypervisors get the class, and hardware does "
    "not")
{
	/* How many subsystem devices of each vendor get it. */
	static const struct {
		uint16_t	 device, subvendor;
		unsigned int	 n;
	} rows[] = {
		{ 0x100e, 0x1af4, 0x10000 },	{ 0x100f, 0x15ad, 0x10000 },
		{ 0x10d3, 0x15ad, 0x10000 },
		/* bhyve's, and that of the CSB. */
		{ 0x100e, 0x8086, 2 },		{ 0x100f, 0x8086, 2 },
		{ 0x10d3, 0x8086, 2 },
		{ 0x100e, 0x1028, 1 },		{ 0x100f, 0x1028, 1 },
	};
	struct em_device dev;
	unsigned int i, n;
	size_t k;

	for (k = 0; k < nitems(rows); k++) {
		dev = (struct em_device){ 0x8086, rows[k].device,
		    rows[k].subvendor, 0, NULL };
		for (n = i = 0; i <= 0xffff; i++) {
			dev.subdevice = i;
			n += em_pv_register(&dev) != NULL;
		}
		ATF_CHECK_EQ(rows[k].n, n);
		dev.subdevice = E82545_PCI_SUBDEVICE;
		vm_guest = VM_GUEST_NO;
		ATF_CHECK(em_pv_register(&dev) == NULL);
		dev.subdevice = E82545_PCI_SUBDEVICE_CSB;
		ATF_CHECK(em_pv_register(&dev) != NULL);
		vm_guest = VM_GUEST_VM;
		dev.vendor = 0x8087;
		ATF_CHECK(em_pv_register(&dev) == NULL);
	}
	/* Each device of Intel's, with a CSB. */
	for (n = i = 0; i <= 0xffff; i++) {
		dev = (struct em_device){ 0x8086, i, 0x8086,
		    E82545_PCI_SUBDEVICE_CSB, NULL };
		n += em_pv_register(&dev) != NULL;
	}
	ATF_CHECK_EQ(3, n);
}

TEST(capability, "A CSB is announced by a vendor-specific capability with its "
    "signature and version")
{
	static const uint32_t caps[][3] = {
		{ 0x000c0009, 0x42534350, 1 },
		{ 0x000c0009, 0x42534350, 2 },
		{ 0x000c0009, 0x50435342, 1 },
	};
	struct em_device dev = { 0x8086, 0x10d3, 0x8086, 0xa01f, NULL };
	size_t i;

	ATF_CHECK(em_pv_register(&dev) == NULL);
	for (i = 0; i < nitems(caps); i++) {
		dev.csb = caps[i];
		ATF_CHECK_EQ(i == 0, em_pv_register(&dev) != NULL);
	}
}

/*
 * Anything at any time.
 */

static uint32_t seed;
static bool in_knob;

/* What other processors may do while this one has no lock of em_pv's. */
static void
random_other(struct em_guest *g)
{
	switch (test_below(&seed, 8)) {
	case 0:
		em_inject(g, 1);
		break;
	case 1:
		host_run(g->h);
		break;
	case 2:
		if (g->running)
			IFDI_INTR_ENABLE(&g->ctx);
		break;
	case 3:
		if (in_knob && g->running)
			(void)(em_tx_task(g) || em_rx_task(g));
		break;
	case 4:
		if (in_knob && g->running)
			(void)em_interrupt(g);
		break;
	}
}

/* With the lock, only the adapter does something. */
static void
random_adapter(struct em_guest *g,
    uint32_t reg __attribute__((__unused__)))
{
	if (test_chance(&seed, 1, 4))
		host_run(g->h);
}

static void
random_knob(struct em_guest *g)
{
	const u_int on = test_below(&seed, 2);

	in_knob = true;
	switch (test_below(&seed, 5)) {
	case 0:
		ATF_REQUIRE_EQ(0, em_set(g, "sc", on));
		break;
	case 1:
		ATF_REQUIRE_EQ(on && g->config.no_csb ? EOPNOTSUPP : 0,
		    em_set(g, "csb", on));
		break;
	case 2:
		ATF_REQUIRE_EQ(0, em_set(g, "poll", 1000 * on));
		break;
	case 3:
		ATF_REQUIRE_EQ(0, em_set(g, "rx_share", on ? 1 : 100));
		break;
	case 4:
		/* The clock stands still, so no interval delays anything. */
		ATF_REQUIRE_EQ(0, em_set(g, "itr", 0));
		break;
	}
	in_knob = false;
}

/* The processor is wanted by others now and then. */
static bool
random_runnable(struct em_guest *g __attribute__((__unused__)))
{
	return (test_chance(&seed, 1, 50));
}

static void
random_hooks(struct em_guest *g, bool on)
{
	g->lock_hook = on ? random_other : NULL;
	g->reg_hook = on ? random_adapter : NULL;
	g->runnable = on ? random_runnable : NULL;
	g->frame_ns = 20000;
}

/* Stop, change what only a start looks at, and start. */
static void
random_restart(struct em_guest *g)
{
	int *const caps = &g->ctx.ifnet.capenable;
	const unsigned int bit = test_below(&seed, 8);

	em_down(g);
	if (bit < 6)
		*caps ^= 1 << bit;
	g->netmap = (*caps & IFCAP_NETMAP) != 0;
	if (g->netmap && is_msix(g))
		em_rx_queue(g, 0);
	if (bit == 6)
		g->len = EM_LEN + test_below(&seed, EM_LEN_MAX - EM_LEN);
	if (bit == 7) {
		/* What comes meanwhile is lost. */
		em_inject(g, test_below(&seed, 5));
		host_run(g->h);
	}
	em_up(g);
}

/* What a program with netmap does that was told; false if that is nothing. */
static bool
random_program(struct em_guest *g)
{
	struct em_queue *q = &g->q[0];
	const unsigned int before = q->received + g->others + q->posted;

	if (!g->netmap)
		return (false);
	if (q->rx_notified)
		em_netmap_receive(g, test_below(&seed, 50) + 1);
	if (q->queued > 0 && q->tx_notified) {
		q->tx_notified = false;
		em_netmap_send(g, 0);
	}
	return (q->received + g->others + q->posted != before);
}

/* Send and receive one more frame, so that all of the others have passed. */
static void
random_end(struct em_guest *g)
{
	unsigned int i;

	random_hooks(g, false);
	do
		em_settle(g);
	while (random_program(g));
	for (i = 0; i < (unsigned int)g->ctx.scctx.isc_ntxqsets; i++) {
		if (g->netmap && i == 0)
			em_netmap_send(g, 1);
		else if (!g->netmap)
			em_send_q(g, i, 1);
		if (is_msix(g) && !g->netmap)
			em_rx_queue(g, i);
		em_inject(g, 1);
		do
			em_settle(g);
		while (random_program(g));
	}
	em_check(g);
}

/* What is rare, and may lose frames, or must find nothing to be done. */
static struct em_guest *
random_event(struct em_guest *g)
{
	const struct em_config c = g->config;

	switch (test_below(&seed, 5)) {
	case 0:
		em_ipforwarding = test_below(&seed, 2);
		em_ip6_forwarding = test_below(&seed, 2);
		em_admin(g);
		break;
	case 1:
		em_inject_partial(g, 200 + test_below(&seed, 9000),
		    1000 * test_below(&seed, 2));
		break;
	case 2:
		random_end(g);
		e82545_link(g->h->dev, false);
		em_settle(g);
		em_admin(g);
		e82545_link(g->h->dev, true);
		break;
	case 3:
		random_restart(g);
		break;
	case 4:
		em_destroy(g);
		g = em_create(&c);
		em_up(g);
		random_hooks(g, true);
		break;
	}
	return (g);
}

static void
random_step(struct em_guest *g)
{
	switch (test_below(&seed, 10)) {
	case 0:
		random_knob(g);
		break;
	case 1:
	case 2:
		if (g->netmap)
			em_netmap_send(g, test_below(&seed, 40));
		else
			em_send_q(g, test_below(&seed,
			    g->ctx.scctx.isc_ntxqsets), test_below(&seed, 40));
		break;
	case 3:
	case 4:
		em_inject(g, test_below(&seed, 40));
		break;
	case 5:
		(void)em_interrupt(g);
		break;
	case 6:
		(void)em_tx_task(g);
		break;
	case 7:
		(void)em_rx_task(g);
		break;
	case 8:
		(void)(em_poll(g) || em_rx_callout(g) || random_program(g));
		break;
	case 9:
		host_run(g->h);
		break;
	}
}

static void
random_run(const struct em_config *c)
{
	struct em_guest *g = create(c, 0, 0, 0);
	unsigned int i, j;

	for (i = 0; i < 300; i++) {
		random_hooks(g, true);
		for (j = 0; j < 20; j++)
			random_step(g);
		if (i % 4 == 0)
			g = random_event(g);
		random_hooks(g, true);
		for (j = 0; j < 10; j++)
			random_step(g);
		random_end(g);
	}
	em_destroy(g);
}

TEST(random, "Whatever changes at any time under traffic, every frame comes "
    "once, in order (SEED)")
{
	const char *s = getenv("SEED");
	size_t a;

	seed = s != NULL ? strtoul(s, NULL, 0) : (uint32_t)time(NULL) | 1;
	fprintf(stderr, "SEED=%u\n", seed);
	for (a = 0; a < nitems(adapters); a++)
		random_run(&adapters[a]);
}

/*
 * Threads.
 */

#define	THREAD_FRAMES	3000

static uint32_t threads_stop;

static void *
tx_thread(void *arg)
{
	struct em_guest *g = arg;
	unsigned int n = 0;

	while (atomic_load_32(&threads_stop) == 0) {
		if (n < THREAD_FRAMES && g->q[0].queued < 100) {
			em_send(g, n % 4 + 1);
			n += n % 4 + 1;
		} else if (g->q[0].db_pending > 0)
			/* iflib_timer() */
			iflib_tx_intr_deferred(&g->ctx, 0);
		if (!em_tx_task(g))
			sched_yield();
	}
	return (NULL);
}

static void *
repeat(bool (*step)(struct em_guest *), void *arg)
{
	while (atomic_load_32(&threads_stop) == 0)
		if (!step(arg))
			sched_yield();
	return (NULL);
}

static void *
rx_thread(void *arg)
{
	return (repeat(em_rx_task, arg));
}

static void *
intr_thread(void *arg)
{
	return (repeat(em_interrupt, arg));
}

static void
threads(const struct em_config *c, u_int sc, u_int csb, bool knobs)
{
	void *(*const mains[])(void *) = { tx_thread, rx_thread, intr_thread };
	struct em_guest *g = create(c, sc, csb, 0);
	pthread_t t[nitems(mains)];
	size_t i;

	atomic_store_32(&threads_stop, 0);
	host_start_threads(g->h);
	for (i = 0; i < nitems(t); i++)
		ATF_REQUIRE_EQ(0, pthread_create(&t[i], NULL, mains[i], g));
	for (i = 0; i < THREAD_FRAMES; i++) {
		em_inject(g, 1);
		if (i % 16 == 0)
			sched_yield();
		if (knobs && i % 50 == 0) {
			ATF_REQUIRE_EQ(0, em_set(g, "sc", i / 50 % 2));
			ATF_REQUIRE_EQ(0, em_set(g, "csb", i / 100 % 2));
		}
	}
	/* Without end, if something is lost: the clock stands still. */
	while (atomic_load_32(&g->q[0].received) < THREAD_FRAMES ||
	    host_sent(g->h) < THREAD_FRAMES)
		sched_yield();
	atomic_store_32(&threads_stop, 1);
	for (i = 0; i < nitems(t); i++)
		pthread_join(t[i], NULL);
	host_stop_threads(g->h);
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

TEST(threads, "With all parts in threads of their own, nothing is lost")
{
	size_t a;

	for (a = 0; a < nitems(adapters); a++) {
		threads(&adapters[a], 0, 0, false);
		threads(&adapters[a], 1, 0, false);
		if (adapters[a].no_csb)
			continue;
		threads(&adapters[a], 0, 1, false);
		threads(&adapters[a], 0, 0, true);
	}
}

TEST_PROGRAM
