/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * em_pv(4) on the model: starts, changes of the mode, interrupts with MSI-X,
 * and attach and detach, whose calls fail in turn.
 */

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include <net/paravirt.h>

#include "em_pv_modes.h"
#include "test.h"

void	*em_pv_register(device_t);

TEST(tunable, "Knobs can be set by tunables, which attach reads")
{
	static const struct {
		const char	*name;
		u_int		 value;
	} set[] = {
		{ "sc", 1 }, { "csb", 0 }, { "poll", 500 }, { "itr", 100 }
	};
	struct em_config c = em_adapters[0];
	struct em_guest *g;
	size_t i;

	for (i = 0; i < nitems(set); i++) {
		c.tunable = set[i].name;
		c.value = set[i].value;
		g = em_create(&c);
		ATF_CHECK_EQ(set[i].value, em_get(g, c.tunable));
		em_up(g);
		if (strcmp(c.tunable, "itr") != 0)
			em_traffic(g);
		ATF_CHECK_EQ(c.value, em_get(g, c.tunable));
		em_destroy(g);
	}
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
		g = em_start(&c[i], 1, 0, 0);
		ATF_CHECK_EQ(0, em_get(g, "csb"));
		ATF_CHECK_EQ(EOPNOTSUPP, em_set(g, "csb", 1));
		ATF_CHECK_EQ(0, em_set(g, "csb", 0));
		em_traffic(g);
		ATF_CHECK_EQ(0, em_set(g, "poll", 100));
		em_traffic(g);
		ATF_CHECK_EQ(0, em_wrote(g, E82545_CSBAL));
		em_down(g);
		em_up(g);
		em_traffic(g);
		em_destroy(g);
	}
}

/* Frames come, so that the adapter interrupts. */
static void
interrupted(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < EM_QUEUES; i++) {
		if (em_is_msix(g))
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
	ATF_CHECK(em_is_msix(g) || em_wrote(g, E82574_EITR(0)) == 0);
	if (!em_is_msix(g))
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
	g = em_start(&c, 0, 0, 0);
	ATF_CHECK_EQ(0, em_set(g, "itr", 0));
	itr_is(g, 0);
	em_destroy(g);
	g = em_start(&c, 0, 0, 0);
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

	for (a = 0; a < nitems(em_adapters); a++) {
		itr_adapter(&em_adapters[a], 194);
		itr_adapter(&em_adapters[a], 0);
	}
}

TEST(itr_csb, "Without an interval that is set, it is 0 with the CSB, and "
    "em(4)'s without")
{
	struct em_config c = { .aim = 194, .no_aim = 488 };
	struct em_guest *g = em_start(&c, 0, 1, 0);

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
	ATF_CHECK_EQ(0, em_wrote(g, E82545_ITR));
	ATF_CHECK_EQ(0, em_set(g, "csb", 0));
	itr_is(g, 50);
	em_destroy(g);
}

/* The link is taken away and given back; em(4) looks at it each time. */
static void
link_changes(struct em_guest *g)
{
	const bool csb = em_get(g, "csb") != 0, poll = em_get(g, "poll") != 0;
	unsigned int i, links, updates;
	int up;

	/* While it polls, em_pv reads the state of the link at intervals. */
	em_admin(g);
	for (up = 0; up <= 1; up++) {
		links = g->links;
		e82545_link(g->h->dev, up);
		em_settle(g);
		ATF_CHECK(g->admin_task || poll);
		em_admin(g);
		ATF_CHECK_EQ(links + 1, g->links);
	}
	/*
	 * Without polling and the CSB, this costs nothing.  With the CSB, em(4)
	 * reads its statistics each fourth time.
	 */
	links = g->links;
	updates = g->updates;
	em_mark(g);
	for (i = 0; i < 20; i++)
		em_admin(g);
	ATF_CHECK_EQ(links, g->links);
	ATF_CHECK_EQ(csb ? updates + 5 : updates + 20, g->updates);
	ATF_CHECK_EQ(csb || poll ? 20 : 0, g->accesses);
	ATF_CHECK_EQ(g->accesses, em_read(g, E82545_STATUS));
	em_traffic(g);
}

TEST(link_modes, "In each mode em(4) sees that the link has changed")
{
	em_each(link_changes);
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
	ATF_CHECK(em_is_msix(g) || em_wrote(g, E82574_EIAC) == 0);
	ATF_CHECK(g->callout->func == NULL);
	tasks_are(g, true);
	ATF_CHECK_EQ(0, em_set(g, "sc", sc));
}

TEST(mode_tasks, "A change of the mode, and nothing else, queues all tasks")
{
	em_each(mode_tasks);
}

/* em(4) starts the adapter, and iflib(4) has its old indices until it stops. */
static void
restart(struct em_guest *g)
{
	int media;

	for (media = 0; media <= 1; media++) {
		em_send(g, 3);
		em_settle(g);
		em_check(g);
		em_restart(g, media);
		host_run(g->h);
		em_inject(g, 3);
		em_send(g, 3);
		em_settle(g);
		ATF_CHECK_EQ(0, host_sent(g->h));
		ATF_CHECK_EQ(0, host_rd(g->h, E82545_TDH));
		ATF_CHECK_EQ(0, host_rd(g->h, E82545_RDH));
		em_down(g);
		em_up(g);
		em_traffic(g);
	}
}

TEST(restart, "When the device resumes, and when the media changes, the adapter "
    "gets no old index")
{
	em_each(restart);
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

	for (a = 0; a < nitems(em_adapters) && !em_adapters[a].no_csb; a++) {
		g = em_start(&em_adapters[a], 0, 1, 0);
		em_traffic(g);
		ATF_CHECK_EQ(0, em_set(g, "csb", 0));
		csb_is(g, 0, 0);
		em_traffic(g);
		ATF_CHECK_EQ(0, em_set(g, "csb", 1));
		csb_is(g, 1, 0);
		asked = g->csb->guest_need_rxkick;
		em_settle(g);
		/* Numbers, with an MSI. */
		ATF_CHECK_EQ(em_adapters[a].intr == IFLIB_INTR_MSI, asked > 1);
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
	struct em_guest *g = em_start(&em_adapters[0], 0, 1, 0);
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

TEST(rx_error, "An error of em(4)'s for a frame is passed on")
{
	struct em_guest *g = em_start(&em_adapters[0], 0, 1, 0);
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
	struct em_guest *g = em_start(&em_adapters[0], 0, 1, 0);

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
	struct em_config c = em_adapters[4];
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
	em_traffic(g);
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
		g = em_start(&em_adapters[kinds[i]], 0, 0, 0);
		ATF_CHECK_EQ(0, em_set(g, "rx_share", 20));
		em_settle(g);
		g->runnable = wanted;
		g->frame_ns = 100000;
		em_inject(g, 100);
		em_settle(g);
		em_check(g);
		ATF_CHECK_EQ(!em_is_msix(g), em_get(g, "rx_pauses") != 0);
		em_destroy(g);

		g = em_start(&em_adapters[kinds[i]], 0, 0, 0);
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

	for (a = 0; a < nitems(em_adapters); a++)
		for (attached = n = 0;; n++) {
			c = em_adapters[a];
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
			em_traffic(g);
			em_down(g);
			em_up(g);
			em_traffic(g);
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
	struct em_guest *g = em_start(&em_adapters[0], 0, 0, 0);

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
	em_queues_free(&g->ctx);
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
	struct em_guest *g = em_create(&em_adapters[0]);
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

TEST_PROGRAM
