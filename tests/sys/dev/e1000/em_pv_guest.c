/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See em_pv_guest.h. */

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "em_pv_guest.h"

extern driver_t em_if_driver;
extern struct if_shared_ctx em_sctx_init;
void	*em_pv_register(device_t);
int	em_intr(void *);

struct em_guest *guest;

/*
 * What iflib(4) offers a driver.
 */

int
iflib_dma_alloc_align(if_ctx_t ctx __attribute__((__unused__)), int size,
    int align, struct iflib_dma_info *dma,
    int flags __attribute__((__unused__)))
{
	struct em_guest *g = guest;

	if (g->config.no_memory)
		return (ENOMEM);
	size = roundup2(size, PAGE_SIZE);
	dma->idi_paddr = host_alloc(g->h, size, align);
	dma->idi_vaddr = host_mem(g->h, dma->idi_paddr, size);
	if (g->ndma++ == 0)
		g->csb = (const void *)dma->idi_vaddr;
	return (0);
}

void
iflib_dma_free(struct iflib_dma_info *dma)
{
	REQUIRE(dma->idi_vaddr != NULL && guest->ndma > 0);
	guest->freed = memset(dma->idi_vaddr, 0xa5, PAGE_SIZE);
	dma->idi_vaddr = NULL;
	guest->ndma--;
}

void *
iflib_get_softc(if_ctx_t ctx)
{
	return (ctx->softc);
}

if_softc_ctx_t
iflib_get_softc_ctx(if_ctx_t ctx)
{
	return (&ctx->scctx);
}

struct sx *
iflib_ctx_lock_get(if_ctx_t ctx)
{
	return (&ctx->lock);
}

kobj_class_t
iflib_class(if_ctx_t ctx)
{
	return (ctx->cls);
}

void
iflib_tx_intr_deferred(if_ctx_t ctx __attribute__((__unused__)),
    int q __attribute__((__unused__)))
{
	atomic_store_bool(&guest->tx_task, true);
}

void
iflib_rx_intr_deferred(if_ctx_t ctx __attribute__((__unused__)),
    int q __attribute__((__unused__)))
{
	atomic_store_bool(&guest->rx_task, true);
}

void
iflib_admin_intr_deferred(if_ctx_t ctx __attribute__((__unused__)))
{
	guest->admin_task = true;
}

void
iflib_request_reset(if_ctx_t ctx __attribute__((__unused__)))
{
	guest->resets++;
}

if_t
iflib_get_ifp(if_ctx_t ctx)
{
	return (&ctx->ifnet);
}

/*
 * em(4): the rings.
 */

static int
base_encap(void *arg, if_pkt_info_t pi)
{
	struct e1000_softc *sc = arg;
	struct tx_ring *txr = &sc->tx_queues[0].txr;
	struct e1000_tx_desc *d = &txr->tx_base[pi->ipi_pidx];
	const bool report = (pi->ipi_flags & IPI_TX_INTR) != 0;

	d->buffer_addr = htole64(pi->paddr);
	d->upper.data = 0;
	d->lower.data = htole32(pi->ipi_len | E82545_TXD_EOP |
	    E82545_TXD_IFCS | (report ? E82545_TXD_RS : 0));
	if (report) {
		txr->tx_rsq[txr->tx_rs_pidx] = pi->ipi_pidx;
		txr->tx_rs_pidx = (txr->tx_rs_pidx + 1) % EM_RING;
		REQUIRE(txr->tx_rs_pidx != txr->tx_rs_cidx);
	}
	pi->ipi_new_pidx = (pi->ipi_pidx + 1) % EM_RING;
	return (0);
}

static void
base_txd_flush(void *arg, uint16_t q, qidx_t pidx)
{
	struct e1000_softc *sc = arg;

	E1000_WRITE_REG(&sc->hw, E1000_TDT(q), pidx);
}

static bool
reported(const struct tx_ring *txr)
{
	return (txr->tx_rs_cidx != txr->tx_rs_pidx &&
	    (txr->tx_base[txr->tx_rsq[txr->tx_rs_cidx]].upper.fields.status &
	    E1000_TXD_STAT_DD) != 0);
}

static int
base_credits_update(void *arg, uint16_t q, bool clear)
{
	struct e1000_softc *sc = arg;
	struct tx_ring *txr = &sc->tx_queues[q].txr;
	qidx_t last;
	int n = 0;

	if (!clear)
		return (reported(txr));
	while (reported(txr)) {
		last = txr->tx_rsq[txr->tx_rs_cidx];
		n += (last - txr->tx_cidx_processed + EM_RING) % EM_RING;
		txr->tx_cidx_processed = last;
		txr->tx_rs_cidx = (txr->tx_rs_cidx + 1) % EM_RING;
	}
	return (n);
}

static bool
extended(const struct e1000_softc *sc)
{
	return (sc->hw.mac.type >= e1000_82571);
}

static uint32_t
rx_status(const struct e1000_softc *sc, qidx_t i)
{
	const union e1000_rx_desc_extended *d =
	    &sc->rx_queues[0].rxr.rx_base[i];

	return (extended(sc) ? le32toh(d->wb.upper.status_error) :
	    ((const struct e1000_rx_desc *)d)->status);
}

static int
base_rxd_available(void *arg, uint16_t q __attribute__((__unused__)),
    qidx_t cidx, qidx_t budget)
{
	int n;

	for (n = 0; n < EM_RING && n <= budget &&
	    (rx_status(arg, cidx) & E1000_RXD_STAT_DD) != 0; n++)
		cidx = (cidx + 1) % EM_RING;
	return (n);
}

static int
base_rxd_pkt_get(void *arg, if_rxd_info_t ri)
{
	struct e1000_softc *sc = arg;
	union e1000_rx_desc_extended *d;
	qidx_t i = ri->iri_cidx;
	uint16_t len;
	bool eop;

	do {
		d = &sc->rx_queues[0].rxr.rx_base[i];
		eop = (rx_status(sc, i) & E82545_RXD_EOP) != 0;
		i = (i + 1) % EM_RING;
		if (extended(sc)) {
			len = le16toh(d->wb.upper.length);
			d->wb.upper.status_error &= htole32(~0xffu);
		} else {
			len = le16toh(((struct e1000_rx_desc *)d)->length);
			((struct e1000_rx_desc *)d)->status = 0;
		}
		ri->iri_frags[ri->iri_nfrags++].irf_len = len;
		ri->iri_len += len;
	} while (!eop);
	return (0);
}

static void
base_rxd_refill(void *arg, if_rxd_update_t iru)
{
	struct e1000_softc *sc = arg;
	union e1000_rx_desc_extended *d = sc->rx_queues[0].rxr.rx_base;
	unsigned int i;

	for (i = 0; i < iru->iru_count; i++) {
		d[(iru->iru_pidx + i) % EM_RING].read.buffer_addr =
		    htole64(iru->iru_paddrs[i]);
		d[(iru->iru_pidx + i) % EM_RING].read.reserved = 0;
	}
}

static void
base_rxd_flush(void *arg, uint16_t q,
    uint8_t flid __attribute__((__unused__)), qidx_t pidx)
{
	struct e1000_softc *sc = arg;

	E1000_WRITE_REG(&sc->hw, E1000_RDT(q), pidx);
}

int
em_intr(void *arg)
{
	struct e1000_softc *sc = arg;
	const uint32_t icr = E1000_READ_REG(&sc->hw, E1000_ICR);

	if (icr == 0 || (extended(sc) && (icr & E82574_ICR_ASSERTED) == 0))
		return (FILTER_STRAY);
	IFDI_INTR_DISABLE(sc->ctx);
	return (FILTER_SCHEDULE_THREAD);
}

static struct if_txrx base_txrx = {
	base_encap, base_txd_flush, base_credits_update, base_rxd_available,
	base_rxd_pkt_get, base_rxd_refill, base_rxd_flush, em_intr
};

/*
 * em(4): the methods.
 */

static int
base_attach_pre(if_ctx_t ctx)
{
	struct em_guest *g = guest;
	struct e1000_softc *sc = ctx->softc;

	sc->ctx = ctx;
	sc->shared = &ctx->scctx;
	sc->dev = &g->device;
	sc->hw.mac.type = g->config.kind == E82545_KIND_EM ? e1000_82545 :
	    e1000_82574;
	ctx->scctx.isc_txrx = &base_txrx;
	ctx->scctx.isc_intr = g->config.intr;
	ctx->scctx.isc_ntxd[0] = ctx->scctx.isc_nrxd[0] = EM_RING;
	ctx->scctx.isc_ntxqsets = ctx->scctx.isc_nrxqsets = 1;
	/* iflib allocates these afterwards. */
	host_rings(g->h, EM_RING, EM_RING, EM_BUF);
	g->txbuf = host_alloc(g->h, EM_RING * EM_LEN, 1);
	sc->tx_queues = calloc(1, sizeof(*sc->tx_queues));
	sc->rx_queues = calloc(1, sizeof(*sc->rx_queues));
	sc->tx_queues->txr.tx_rsq = calloc(EM_RING, sizeof(qidx_t));
	sc->tx_queues->txr.tx_base = (void *)host_txd(g->h, 0);
	sc->rx_queues->rxr.rx_base = (void *)host_rxd(g->h, 0);
	return (0);
}

static int
base_attach_post(if_ctx_t ctx __attribute__((__unused__)))
{
	return (0);
}

static void
base_update_admin_status(if_ctx_t ctx __attribute__((__unused__)))
{
}

static int
base_detach(if_ctx_t ctx)
{
	struct e1000_softc *sc = ctx->softc;

	free(sc->tx_queues->txr.tx_rsq);
	free(sc->tx_queues);
	free(sc->rx_queues);
	return (0);
}

/* The registers of both rings, from their low base on. */
static void
place(uint32_t bal, uint64_t gpa)
{
	em_reg_write(bal, gpa);
	em_reg_write(bal + E82545_RING_BAH, gpa >> 32);
	em_reg_write(bal + E82545_RING_LEN, EM_RING * 16);
	em_reg_write(bal + E82545_RING_HEAD, 0);
	em_reg_write(bal + E82545_RING_TAIL, 0);
}

static void
base_init(if_ctx_t ctx)
{
	struct em_guest *g = guest;
	struct e1000_softc *sc = ctx->softc;
	struct tx_ring *txr = &sc->tx_queues[0].txr;

	em_reg_write(E82545_CTRL, E82545_CTRL_RST);
	host_set(g->h, E82545_CTRL, E82545_CTRL_SLU);
	txr->tx_rs_cidx = txr->tx_rs_pidx;
	txr->tx_cidx_processed = EM_RING - 1;
	place(E82545_TDBAL, g->h->txring);
	em_reg_write(E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	if (extended(sc))
		em_reg_write(E82574_RFCTL, E82574_RFCTL_EXTEN |
		    E82574_RFCTL_ACK_DIS);
	place(E82545_RDBAL, g->h->rxring);
	em_reg_write(E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC);
	(void)em_reg_read(E82545_ICR);
	em_reg_write(E82545_ICS, E82545_ICR_LSC);
}

static void
base_stop(if_ctx_t ctx __attribute__((__unused__)))
{
	em_reg_write(E82545_CTRL, E82545_CTRL_RST);
}

static void
base_intr_enable(if_ctx_t ctx __attribute__((__unused__)))
{
	em_reg_write(E82545_IMS, IMS_ENABLE_MASK);
	(void)em_reg_read(E82545_STATUS);
}

static void
base_intr_disable(if_ctx_t ctx __attribute__((__unused__)))
{
	em_reg_write(E82545_IMC, 0xffffffff);
	(void)em_reg_read(E82545_STATUS);
}

static int
base_queue_intr_enable(if_ctx_t ctx __attribute__((__unused__)),
    uint16_t q __attribute__((__unused__)))
{
	return (0);
}

static device_method_t base_methods[] = {
	DEVMETHOD(ifdi_attach_pre, base_attach_pre),
	DEVMETHOD(ifdi_attach_post, base_attach_post),
	DEVMETHOD(ifdi_detach, base_detach),
	DEVMETHOD(ifdi_init, base_init),
	DEVMETHOD(ifdi_stop, base_stop),
	DEVMETHOD(ifdi_intr_enable, base_intr_enable),
	DEVMETHOD(ifdi_intr_disable, base_intr_disable),
	DEVMETHOD(ifdi_tx_queue_intr_enable, base_queue_intr_enable),
	DEVMETHOD(ifdi_rx_queue_intr_enable, base_queue_intr_enable),
	DEVMETHOD(ifdi_update_admin_status, base_update_admin_status),
	DEVMETHOD_END
};
driver_t em_if_driver = {
	"em_if", base_methods, sizeof(struct e1000_softc), NULL
};
struct if_shared_ctx em_sctx_init = { &em_if_driver };

/*
 * iflib(4): transmit.
 */

#define	TXRX(g)	((g)->ctx.scctx.isc_txrx)

static unsigned int
avail(const struct em_guest *g)
{
	return (EM_RING - 1 - g->in_use);
}

void
em_reclaim(struct em_guest *g)
{
	g->in_use -= TXRX(g)->ift_txd_credits_update(g->sc, 0, true);
}

/* Flush, if that was asked for or enough is pending; or if nothing is. */
static void
doorbell(struct em_guest *g, bool ring)
{
	const unsigned int notify = EM_RING / 16 - 1;
	const unsigned int max = g->in_use > EM_RING / 2 ? notify :
	    g->in_use > EM_RING / 4 ? notify / 2 :
	    g->in_use > EM_RING / 8 ? notify / 8 : 0;

	if (!ring && g->db_pending < max && avail(g) > 8)
		return;
	TXRX(g)->ift_txd_flush(g->sc, 0, g->pidx);
	g->db_pending = 0;
}

/* Put the next packet into the ring. */
static void
encap(struct em_guest *g, bool report)
{
	struct if_pkt_info pi = {
		.paddr = g->txbuf + g->pidx * EM_LEN, .ipi_len = EM_LEN,
		.ipi_flags = report ? IPI_TX_INTR : 0, .ipi_pidx = g->pidx
	};

	host_make_frame(host_mem(g->h, pi.paddr, EM_LEN), EM_LEN,
	    (const uint8_t[6]){ 2, 0, 0, 0, 0, 9 }, 0);
	be32enc((uint8_t *)host_mem(g->h, pi.paddr, EM_LEN) + 14, g->posted++);
	REQUIRE(base_txrx.ift_txd_encap == TXRX(g)->ift_txd_encap);
	REQUIRE(TXRX(g)->ift_txd_encap(g->sc, &pi) == 0);
	g->pidx = pi.ipi_new_pidx;
	g->in_use++;
	g->db_pending++;
}

/* Reports are rare: the fuller the ring, the rarer. */
static bool
report_is_due(struct em_guest *g)
{
	const unsigned int notify = EM_RING / 16 - 1;
	const unsigned int max = g->in_use > EM_RING / 2 ? notify :
	    g->in_use > EM_RING / 4 ? notify / 2 :
	    g->in_use > EM_RING / 8 ? notify / 4 : 2;

	g->rs_pending += 2;
	if (g->rs_pending <= max && avail(g) > 8)
		return (false);
	g->rs_pending = 0;
	return (true);
}

static void
drain(struct em_guest *g)
{
	const unsigned int before = g->in_use;

	em_reclaim(g);
	doorbell(g, g->in_use < before && g->db_pending > 0);
	while (g->queued > 0 && avail(g) >= 8) {
		g->queued--;
		encap(g, report_is_due(g));
		doorbell(g, false);
	}
	doorbell(g, false);
}

void
em_send(struct em_guest *g, unsigned int n)
{
	while (n-- > 0) {
		g->queued++;
		if (g->running && (avail(g) > 8 ||
		    TXRX(g)->ift_txd_credits_update(g->sc, 0, false) != 0))
			drain(g);
	}
}

void
em_netmap_send(struct em_guest *g, unsigned int n)
{
	em_reclaim(g);
	g->queued += n;
	while (g->queued > 0 && avail(g) > 0) {
		g->queued--;
		encap(g, g->pidx % (EM_RING / 2) == 0);
	}
	TXRX(g)->ift_txd_flush(g->sc, 0, g->pidx);
	g->db_pending = 0;
}

/* Whether a task is queued; it is not any longer. */
static bool
run_task(struct em_guest *g, bool *task)
{
	if (!__atomic_exchange_n(task, false, __ATOMIC_SEQ_CST))
		return (false);
	atomic_add_32(&g->ntasks, 1);
	return (true);
}

bool
em_tx_task(struct em_guest *g)
{
	if (!run_task(g, &g->tx_task))
		return (false);
	if (!g->running)
		return (true);
	if (g->netmap)
		g->tx_notified = true;
	else if (g->db_pending > 0 || (g->queued > 0 && (avail(g) > 8 ||
	    TXRX(g)->ift_txd_credits_update(g->sc, 0, false) != 0)))
		drain(g);
	IFDI_INTR_ENABLE(&g->ctx);
	return (true);
}

/*
 * iflib(4): receive.
 */

static void
refill(struct em_guest *g, unsigned int n)
{
	uint64_t paddrs[32];
	struct if_rxd_update iru = { .iru_paddrs = paddrs };

	if (n == 0)
		return;
	g->rx_credits += n;
	while (n > 0) {
		iru.iru_pidx = g->rx_pidx;
		for (iru.iru_count = 0; n > 0 && iru.iru_count < 32; n--) {
			paddrs[iru.iru_count++] = g->h->rxbuf +
			    (uint64_t)g->rx_pidx * EM_BUF;
			g->rx_pidx = (g->rx_pidx + 1) % EM_RING;
		}
		TXRX(g)->ift_rxd_refill(g->sc, &iru);
	}
	TXRX(g)->ift_rxd_flush(g->sc, 0, 0, g->rx_pidx);
}

static void
refill_all(struct em_guest *g)
{
	refill(g, EM_RING - 1 - g->rx_credits);
}

static void
input(struct em_guest *g, uint32_t number)
{
	if (g->rx_resync && number > g->received)
		g->received = number;
	g->rx_resync = false;
	g->wrong += number != g->received;
	g->received++;
	em_clock_ns += g->frame_ns;
}

/* Take at most `n' frames.  Returns whether there are more. */
static bool
take(struct em_guest *g, unsigned int n)
{
	struct if_rxd_frag frags[64];
	struct if_rxd_info ri;
	uint8_t *frame;

	while (n-- > 0 && TXRX(g)->ift_rxd_available(g->sc, 0, g->rx_cidx, 1)) {
		memset(&ri, 0, sizeof(ri));
		ri.iri_cidx = g->rx_cidx;
		ri.iri_frags = frags;
		REQUIRE(TXRX(g)->ift_rxd_pkt_get(g->sc, &ri) == 0);
		frame = host_mem(g->h, g->h->rxbuf + ri.iri_cidx * (uint64_t)EM_BUF,
		    EM_LEN);
		if (ri.iri_len == EM_LEN && ri.iri_csum_flags == 0)
			input(g, be32dec(frame + 14));
		else {
			g->other = ri;
			g->others++;
		}
		g->rx_cidx = (g->rx_cidx + ri.iri_nfrags) % EM_RING;
		g->rx_credits -= ri.iri_nfrags;
	}
	refill_all(g);
	return (TXRX(g)->ift_rxd_available(g->sc, 0, g->rx_cidx, 1) != 0);
}

void
em_netmap_receive(struct em_guest *g, unsigned int n)
{
	g->rx_notified = false;
	(void)take(g, n);
}

void
em_inject_partial(struct em_guest *g, uint32_t len, uint16_t mss)
{
	static uint8_t data[65536];

	memcpy(data, host_mac, sizeof(host_mac));
	host_inject_tcp(g->h, data, len, mss);
}

void
em_admin(struct em_guest *g)
{
	unsigned int resets = g->resets;

	IFDI_CALL(&g->ctx, ifdi_update_admin_status)(&g->ctx);
	if (g->resets != resets) {
		em_down(g);
		em_up(g);
	}
}

bool
em_rx_task(struct em_guest *g)
{
	bool more = false;

	if (!run_task(g, &g->rx_task))
		return (false);
	if (!g->running)
		return (true);
	if (g->netmap)
		g->rx_notified = true;
	else
		more = take(g, EM_BUDGET);
	if (more)
		iflib_rx_intr_deferred(&g->ctx, 0);
	else
		IFDI_INTR_ENABLE(&g->ctx);
	return (true);
}

void
em_inject(struct em_guest *g, unsigned int n)
{
	uint8_t frame[EM_LEN];

	while (n-- > 0) {
		host_make_frame(frame, EM_LEN, host_mac, 0);
		be32enc(frame + 14, g->injected++);
		host_inject(g->h, frame, EM_LEN, 1);
	}
}

/*
 * iflib(4): interrupts, polls.
 */

static bool
interrupt_pending(struct em_guest *g)
{
	unsigned int n;

	if (g->config.intr != IFLIB_INTR_MSI)
		return (host_line(g->h));
	n = host_raised(g->h);
	if (n == g->served)
		return (false);
	g->served = n;
	return (true);
}

static void
filter(struct em_guest *g)
{
	bool enable = false;

	if ((TXRX(g)->ift_legacy_intr(g->sc) & FILTER_SCHEDULE_THREAD) == 0)
		return;
	if (TXRX(g)->ift_txd_credits_update(g->sc, 0, false) != 0)
		iflib_tx_intr_deferred(&g->ctx, 0);
	else
		enable = true;
	if (TXRX(g)->ift_rxd_available(g->sc, 0, g->rx_cidx, 1) != 0)
		iflib_rx_intr_deferred(&g->ctx, 0);
	else
		enable = true;
	if (enable)
		IFDI_INTR_ENABLE(&g->ctx);
}

bool
em_interrupt(struct em_guest *g)
{
	if (!interrupt_pending(g))
		return (false);
	curthread->td_intr_nesting_level++;
	filter(g);
	curthread->td_intr_nesting_level--;
	return (true);
}

static bool
callout_run(struct callout *c)
{
	void (*func)(void *) = c->func;

	if (func == NULL)
		return (false);
	c->func = NULL;
	func(c->arg);
	return (true);
}

bool
em_poll(struct em_guest *g)
{
	return (callout_run(g->callout));
}

bool
em_rx_callout(struct em_guest *g)
{
	if (g->rx_callout->func != NULL)
		em_clock_ns += EM_PAUSE_NS;
	return (callout_run(g->rx_callout));
}

/* Polls that find nothing to do end the wait. */
static bool
poll_useful(struct em_guest *g)
{
	unsigned int i, state;

	for (i = 0; i < 3; i++) {
		state = host_sent(g->h) + g->received + g->queued + g->in_use +
		    g->accesses;
		if (!em_poll(g))
			return (false);
		while (em_tx_task(g) || em_rx_task(g))
			host_run(g->h);
		if (state != host_sent(g->h) + g->received + g->queued +
		    g->in_use + g->accesses)
			return (true);
	}
	return (false);
}

/* iflib_timer() makes up for a flush that was put off, once a second. */
static bool
timer(struct em_guest *g)
{
	if (g->db_pending == 0 || !g->running)
		return (false);
	g->tx_task = true;
	return (true);
}

void
em_settle(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		host_run(g->h);
		if (!em_interrupt(g) && !em_tx_task(g) && !em_rx_task(g) &&
		    !em_rx_callout(g) && !poll_useful(g) && !timer(g))
			return;
	}
	REQUIRE(!"tasks without end");
}

/*
 * Checks.
 */

/* Count the frames that the adapter has sent, and those out of order. */
static void
count_sent(struct em_guest *g)
{
	const unsigned int n = host_sent(g->h);
	unsigned int i;
	uint32_t number;

	for (i = 0; i < n; i++) {
		number = be32dec(host_sent_frame(g->h, i)->data + 14);
		if (g->tx_resync && number > g->sent)
			g->sent = number;
		g->tx_resync = false;
		g->wrong += number != g->sent;
		g->sent++;
	}
	host_sent_clear(g->h);
}

void
em_check(struct em_guest *g)
{
	count_sent(g);
	if (g->wrong != 0 || g->sent != g->posted || g->queued != 0 ||
	    g->received != g->injected)
		fprintf(stderr, "wrong %u, posted %u, sent %u, queued %u, "
		    "injected %u, received %u\n", g->wrong, g->posted,
		    g->sent, g->queued, g->injected, g->received);
	REQUIRE(g->wrong == 0);
	REQUIRE(g->queued == 0 && g->sent == g->posted);
	REQUIRE(g->received == g->injected);
}

void
em_mark(struct em_guest *g)
{
	memset(g->reads, 0, sizeof(g->reads));
	memset(g->writes, 0, sizeof(g->writes));
	g->accesses = 0;
}

unsigned int
em_wrote(const struct em_guest *g, uint32_t reg)
{
	return (g->writes[reg / 4]);
}

unsigned int
em_read(const struct em_guest *g, uint32_t reg)
{
	return (g->reads[reg / 4]);
}

/*
 * iflib(4): life.
 */

static struct host *
create_host(const struct em_config *c)
{
	if (c->kind == E82545_KIND_EM)
		return (c->no_csb ? host_create(HOST_RAM) :
		    host_create_csb(HOST_RAM));
	return (c->no_csb ? host_create_82574(HOST_RAM) :
	    host_create_82574_csb(HOST_RAM));
}

struct em_guest *
em_create(const struct em_config *config)
{
	struct em_guest *g = calloc(1, sizeof(*g));
	struct if_shared_ctx *sctx;

	REQUIRE(g != NULL);
	guest = g;
	g->config = *config;
	g->h = create_host(config);
	g->device = config->kind == E82545_KIND_EM ?
	    (struct em_device){ 0x8086, 0x100f, 0x8086, 0x1008 } :
	    (struct em_device){ 0x8086, 0x10d3, 0x8086, 0xa01f };
	if (!config->no_csb)
		g->device.subdevice = E82545_PCI_SUBDEVICE_CSB;
	sctx = em_pv_register(&g->device);
	REQUIRE(sctx != NULL && sctx != &em_sctx_init);
	g->ctx.cls = sctx->isc_driver;
	g->ctx.softc = g->sc = calloc(1, sctx->isc_driver->size);
	REQUIRE(g->sc != NULL);
	g->ctx.ifnet.capenable = IFCAP_LRO | IFCAP_RXCSUM | IFCAP_RXCSUM_IPV6;
	g->h->port.fp_offloads = true;
	/* iflib_device_register() has the lock in both. */
	g->ctx.lock.owned = true;
	REQUIRE(IFDI_CALL(&g->ctx, ifdi_attach_pre)(&g->ctx) == 0);
	REQUIRE(IFDI_CALL(&g->ctx, ifdi_attach_post)(&g->ctx) == 0);
	REQUIRE(g->ctx.lock.owned);
	g->ctx.lock.owned = false;
	return (g);
}

void
em_up(struct em_guest *g)
{
	sx_xlock(&g->ctx.lock);
	IFDI_INTR_DISABLE(&g->ctx);
	IFDI_CALL(&g->ctx, ifdi_init)(&g->ctx);
	refill(g, 128);
	g->running = true;
	IFDI_INTR_ENABLE(&g->ctx);
	sx_xunlock(&g->ctx.lock);
}

void
em_down(struct em_guest *g)
{
	sx_xlock(&g->ctx.lock);
	g->running = false;
	IFDI_INTR_DISABLE(&g->ctx);
	IFDI_CALL(&g->ctx, ifdi_stop)(&g->ctx);
	count_sent(g);
	memset(g->sc->tx_queues[0].txr.tx_base, 0, EM_RING * 16);
	memset(g->sc->rx_queues[0].rxr.rx_base, 0, EM_RING * 16);
	g->queued = g->in_use = g->db_pending = g->rs_pending = 0;
	g->pidx = g->rx_cidx = g->rx_pidx = 0;
	g->rx_credits = 0;
	g->tx_resync = g->rx_resync = true;
	sx_xunlock(&g->ctx.lock);
}

void
em_destroy(struct em_guest *g)
{
	size_t i;

	if (g->running)
		em_down(g);
	sx_xlock(&g->ctx.lock);
	REQUIRE(IFDI_CALL(&g->ctx, ifdi_detach)(&g->ctx) == 0);
	sx_xunlock(&g->ctx.lock);
	REQUIRE(g->ndma == 0 && g->callout->func == NULL &&
	    g->rx_callout->func == NULL && !g->mtx->ready);
	/* The adapter does not use the CSB any longer. */
	host_set(g->h, E82545_TCTL, E82545_TCTL_EN);
	host_set(g->h, E82545_RCTL, E82545_RCTL_EN);
	host_advance(g->h, 100000000);
	host_run(g->h);
	for (i = 0; g->freed != NULL && i < PAGE_SIZE; i++)
		REQUIRE(g->freed[i] == 0xa5);
	host_destroy(g->h);
	free(g->sc);
	free(g);
	guest = NULL;
}
