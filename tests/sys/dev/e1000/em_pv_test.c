/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * em_pv(4) on the model, under an em(4) and an iflib(4) of our own
 * (em_pv_guest.h).  The clock stands still, so that nothing is repeated that
 * the adapter repeats after a time: what is lost stays lost.
 */

#include <stdio.h>

#include <atf-c.h>

#include <net/paravirt.h>

#include "em_pv_modes.h"
#include "test.h"

extern driver_t em_if_driver;

/*
 * Frames and accesses.
 */

TEST(order, "In each mode all frames come and go in order")
{
	em_each(em_traffic);
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

	em_traffic(g);
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
	if (em_get(g, "poll") != 0 || em_is_msix(g))
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
	em_each(probes);
}

/* Accesses for 50 times 20 packets, and for 1000 requests with answers. */
static const struct exits {
	u_int		 sc, csb, poll;
	bool		 msi;
	unsigned int	 send_tdt, send_icr, send_mask;
	unsigned int	 rr_rdt, rr_icr, rr_mask;
} exits[] = {
	/* A write of TDT a flush.  An interrupt: ICR, IMC, IMS. */
	{ 0, 0, 0, false, 1000, 50, 50, 1000, 1500, 1500 },
	{ 0, 0, 0, true, 1000, 50, 50, 1000, 1500, 1500 },
	/* The first of 20, and the rest after its report, which masks nothing. */
	{ 1, 0, 0, false, 100, 100, 50, 1000, 2000, 2000 },
	{ 1, 0, 0, true, 100, 100, 50, 1000, 2000, 2000 },
	/* A write of TDT when the host sleeps.  An interrupt: ICR, or none. */
	{ 0, 1, 0, false, 50, 0, 0, 0, 1000, 0 },
	{ 0, 1, 0, true, 50, 0, 0, 0, 0, 0 },
	{ 1, 1, 0, true, 50, 0, 0, 0, 0, 0 },
	{ 0, 0, 1000, false, 1000, 0, 0, 1000, 0, 0 },
	{ 1, 0, 1000, false, 50, 0, 0, 1000, 0, 0 },
	{ 0, 1, 1000, false, 50, 0, 0, 0, 0, 0 },
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
	struct em_guest *g = em_start(&c, e->sc, e->csb, e->poll);
	u_long reads = em_get(g, "icr_reads");
	unsigned int i;

	printf("sc %u, csb %u, poll %u, MSI %d\n", e->sc, e->csb, e->poll,
	    e->msi);
	for (i = 0; i < 50; i++) {
		em_send(g, 20);
		em_settle(g);
	}
	check_accesses(g, e->send_tdt, 0, e->send_icr, e->send_mask);
	/* em(4) reads the causes of interrupts that have them masked. */
	ATF_CHECK_EQ(e->send_icr - e->send_mask, em_get(g, "icr_reads") - reads);
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
	struct em_guest *g = em_start(&em_adapters[4], sc, 0, poll);
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
	struct if_txrx *const txrx = g->ctx.scctx.isc_txrx;

	em_mark(g);
	g->ctx.cls = cls;
	if (cls != ours)
		g->ctx.scctx.isc_txrx = &em_base_txrx;
	if (start)
		em_up(g);
	else
		em_down(g);
	g->ctx.cls = ours;
	g->ctx.scctx.isc_txrx = txrx;
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

	for (a = 0; a < nitems(em_adapters); a++) {
		if (!em_adapters[a].no_csb)
			continue;
		g = em_create(&em_adapters[a]);
		for (i = 0; i < 2; i++) {
			kobj_class_t cls = i == 0 ? g->ctx.cls :
			    (kobj_class_t)&em_if_driver;

			up[i] = start_stop(g, cls, true);
			down[i] = start_stop(g, cls, false);
		}
		if (em_is_msix(g)) {
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
	struct em_guest *g = em_start(&em_adapters[0], 1, 0, 0);

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

/* An interrupt masks the causes, and queues the task, or does neither. */
static void
check_interrupt(struct em_guest *g, unsigned int tdt, bool task)
{
	em_mark(g);
	ATF_CHECK(em_interrupt(g));
	ATF_CHECK_EQ(1, em_read(g, E82545_ICR));
	ATF_CHECK_EQ(tdt, em_wrote(g, E82545_TDT));
	ATF_CHECK_EQ(task, em_wrote(g, E82545_IMC));
	ATF_CHECK_EQ(task, g->q[0].tx_task);
}

/*
 * The report of an earlier packet comes, and then the one that five packets wait
 * for, with another cause.
 */
static void
check_held(struct em_guest *g, uint32_t other)
{
	em_send(g, 1);
	em_send(g, 5);
	em_reg_write(E82545_ICS, E82545_ICR_TXDW);
	check_interrupt(g, 0, false);
	host_run(g->h);
	em_reg_write(E82545_ICS, other);
	check_interrupt(g, 1, other != 0);
	host_run(g->h);
	if (other == 0)
		check_interrupt(g, 0, true);
	em_settle(g);
	em_check(g);
}

TEST(held_interrupt, "The interrupt for the report posts the packets that are "
    "held back, and leaves iflib's task to their report, unless it has other "
    "causes")
{
	struct em_guest *g;
	size_t a;

	for (a = 0; a < nitems(em_adapters); a++) {
		if (em_adapters[a].intr == IFLIB_INTR_MSIX)
			continue;
		g = em_start(&em_adapters[a], 1, 0, 0);
		check_held(g, 0);
		check_held(g, E82545_ICR_RXT0);
		check_held(g, E82545_ICR_LSC);
		em_destroy(g);
	}
}

/* What the filter returns, for this cause alone. */
static int
filter(struct em_guest *g, uint32_t cause)
{
	(void)em_reg_read(E82545_ICR);
	em_reg_write(E82545_ICS, cause);
	return (g->ctx.scctx.isc_txrx->ift_legacy_intr(g->sc));
}

TEST(held_filter, "While packets are held back, an interrupt for nothing is "
    "not ours, one for a report is handled, and another one queues the task")
{
	struct em_guest *g = em_start(&em_adapters[0], 1, 0, 0);

	em_send(g, 1);
	em_send(g, 5);
	em_mark(g);
	ATF_CHECK_EQ(FILTER_STRAY, filter(g, 0));
	ATF_CHECK_EQ(FILTER_HANDLED, filter(g, E82545_ICR_TXDW));
	ATF_CHECK_EQ(0, em_wrote(g, E82545_IMC));
	ATF_CHECK_EQ(FILTER_SCHEDULE_THREAD, filter(g, E82545_ICR_RXT0));
	ATF_CHECK_EQ(1, em_wrote(g, E82545_IMC));
	iflib_rx_intr_deferred(&g->ctx, 0);
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

TEST(held_poll, "With polling, packets are held back until the next poll")
{
	struct em_guest *g = em_start(&em_adapters[0], 1, 0, 1000);

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

/* Send combining begins between a flush's look at the knob and its post. */
static void
combining_begins(struct em_guest *g)
{
	g->lock_hook = NULL;
	ATF_CHECK_EQ(0, em_set(g, "sc", 1));
}

TEST(report_none_held, "Packets that are held back, and that no report is "
    "asked for, do not keep iflib's task waiting for one")
{
	struct em_guest *g = em_start(&em_adapters[0], 1, 0, 0);

	em_send(g, 1);
	ATF_REQUIRE_EQ(0, em_set(g, "sc", 0));
	g->lock_hook = combining_begins;
	em_send(g, 1);
	while (em_tx_task(g) || em_rx_task(g))
		continue;
	ATF_CHECK_EQ(1, em_get(g, "tx_combined"));
	host_run(g->h);
	check_interrupt(g, 1, true);
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
	em_each(last_look);
}

TEST(stray, "With the CSB, an interrupt of another device on the line changes "
    "nothing")
{
	struct em_guest *g = em_start(&em_adapters[0], 0, 1, 0);

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
	struct em_guest *g = em_start(&em_adapters[0], 0, 1, 0);
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

	for (a = 0; a < nitems(em_adapters); a++) {
		g = em_create(&em_adapters[a]);
		csb = !em_adapters[a].no_csb;
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

/* The guest that the hooks of the host are of. */
static struct em_guest *hooked;

/* The mode is turned on, and a request of the other side is served. */
static void
turn_on(struct em_guest *g)
{
	ATF_CHECK_EQ(0, em_set(g, "csb", 1));
	while (em_tx_task(g) || em_rx_task(g))
		continue;
}

static void
turn_on_rx(struct host *h)
{
	h->rx_hook = NULL;
	turn_on(hooked);
	em_send(hooked, 200);
	while (e82545_tx(h->dev) != E82545_TX_IDLE)
		continue;
	(void)em_interrupt(hooked);
	em_tx_task(hooked);
}

static void
turn_on_tx(struct host *h)
{
	h->tx_hook = NULL;
	turn_on(hooked);
	em_inject(hooked, 1);
	(void)e82545_rx(h->dev);
	(void)em_interrupt(hooked);
	em_rx_task(hooked);
	em_send(hooked, 1000);
}

TEST(turned_on, "Frames of a batch that began before the CSB was turned on are "
    "announced, though no causes are read for the other side's")
{
	struct em_guest *g;
	size_t a;

	for (a = 0; a < nitems(em_adapters); a++) {
		if (em_adapters[a].no_csb)
			continue;
		hooked = g = em_start(&em_adapters[a], 0, 0, 0);
		g->h->rx_hook = turn_on_rx;
		em_inject(g, 100);
		em_settle(g);
		ATF_CHECK_EQ(100, g->q[0].received);
		em_check(g);
		ATF_CHECK_EQ(0, em_set(g, "csb", 0));
		em_settle(g);
		g->h->tx_hook = turn_on_tx;
		em_send(g, 200);
		em_settle(g);
		ATF_CHECK_EQ(0, g->q[0].queued);
		em_check(g);
		em_destroy(g);
	}
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
	em_each(fast);
}

/* Nobody waits for room. */
static void
not_asked(struct em_guest *g)
{
	em_send(g, 1);
	em_settle(g);
	em_inject(g, 1);
	host_run(g->h);
	(void)em_interrupt(g);
	if (em_get(g, "csb") != 0)
		ATF_CHECK_EQ(0, g->csb->guest_need_txkick);
	em_settle(g);
}

TEST(not_asked, "With room in the transmit ring, an interrupt for received "
    "frames asks for none of its own")
{
	em_each(not_asked);
}

static void
post_meanwhile(struct host *h)
{
	h->tx_hook = NULL;
	em_netmap_send(hooked, 20);
}

/*
 * More than half of the ring is in use when the adapter has sent packets
 * without RS, and interrupts for these; the report comes later.
 */
static void
reported_later(struct em_guest *g)
{
	g->netmap = true;
	em_netmap_send(g, EM_RING / 2 + 1);
	em_settle(g);
	g->q[0].tx_notified = false;
	em_netmap_send(g, EM_RING / 2 - 8);
	hooked = g;
	g->h->tx_hook = post_meanwhile;
	(void)e82545_tx(g->h->dev);
	(void)em_interrupt(g);
	em_settle(g);
	ATF_CHECK(g->q[0].tx_notified);
	em_netmap_send(g, 0);
	ATF_CHECK_EQ(EM_RING + 13, host_sent(g->h));
	g->netmap = false;
}

TEST(reported_later, "An interrupt for packets without a report does not end "
    "the wait for one")
{
	em_each(reported_later);
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
	em_each(netmap);
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
		if (!em_is_msix(g))
			IFDI_INTR_ENABLE(&g->ctx);
		ATF_CHECK_EQ(0, em_set(g, "sc", 1 - em_get(g, "sc")));
		ATF_CHECK_EQ(0, em_set(g, "sc", 1 - em_get(g, "sc")));
		ATF_CHECK_EQ(0, g->accesses);
		em_up(g);
		ATF_CHECK(em_is_msix(g) || em_wrote(g, E82574_EIAC) == 0);
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
	em_each(restart);
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
	struct em_guest *g = em_start(c, 0, 1, 0);
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

TEST(headers, "With the header ring, frames with partial checksums arrive "
    "uncut, unless somebody else would get them so")
{
	size_t a;

	for (a = 0; a < nitems(em_adapters) && !em_adapters[a].no_csb; a++)
		headers_adapter(&em_adapters[a]);
}

TEST(headers_invalid, "Of an invalid header, which another guest makes, "
    "nothing is believed")
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
	struct em_guest *g = em_start(&em_adapters[0], 0, 1, 0);
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

TEST_PROGRAM
