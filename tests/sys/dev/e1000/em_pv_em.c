/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* em(4), of which em_pv(4) is a class.  See em_pv_guest.h. */

#include <stdlib.h>

#include "em_pv_guest.h"

int	em_intr(void *);

/*
 * em(4): the rings.
 */

static int
base_encap(void *arg, if_pkt_info_t pi)
{
	struct e1000_softc *sc = arg;
	struct tx_ring *txr = &sc->tx_queues[pi->ipi_qsidx].txr;
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

	guest->q[q].published = true;
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
rx_status(const struct e1000_softc *sc, uint16_t q, qidx_t i)
{
	const union e1000_rx_desc_extended *d =
	    &sc->rx_queues[q].rxr.rx_base[i];

	return (extended(sc) ? le32toh(d->wb.upper.status_error) :
	    ((const struct e1000_rx_desc *)d)->status);
}

static int
base_rxd_available(void *arg, uint16_t q, qidx_t cidx, qidx_t budget)
{
	int n;

	for (n = 0; n < EM_RING && n <= budget &&
	    (rx_status(arg, q, cidx) & E1000_RXD_STAT_DD) != 0; n++)
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
		d = &sc->rx_queues[ri->iri_qsidx].rxr.rx_base[i];
		eop = (rx_status(sc, ri->iri_qsidx, i) & E82545_RXD_EOP) != 0;
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
	ri->iri_csum_flags = guest->rx_flags;
	return (guest->rx_error);
}

static void
base_rxd_refill(void *arg, if_rxd_update_t iru)
{
	struct e1000_softc *sc = arg;
	union e1000_rx_desc_extended *d =
	    sc->rx_queues[iru->iru_qsidx].rxr.rx_base;
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

	guest->q[q].published = true;
	E1000_WRITE_REG(&sc->hw, E1000_RDT(q), pidx);
}

/*
 * Adapt the interval between interrupts, or not.  Like em(4) of 2026, this
 * counts the packets that the functions above have published.
 */
static void
base_newitr(struct em_queue *q, uint32_t reg)
{
	const struct em_config *c = &guest->config;
	const uint32_t itr = !guest->aim_on ? c->no_aim :
	    c->aim ^ (q->itr_setting == c->aim);

	if (c->aim == 0 || itr == q->itr_setting || !q->published)
		return;
	q->published = false;
	q->itr_setting = itr;
	em_reg_write(reg, itr);
}

static void
base_link(struct e1000_softc *sc)
{
	sc->hw.mac.get_link_status = true;
	iflib_admin_intr_deferred(sc->ctx);
}

int
em_intr(void *arg)
{
	struct e1000_softc *sc = arg;
	const uint32_t icr = E1000_READ_REG(&sc->hw, E1000_ICR);

	if (icr == 0 || (extended(sc) && (icr & E82574_ICR_ASSERTED) == 0))
		return (FILTER_STRAY);
	IFDI_INTR_DISABLE(sc->ctx);
	if ((icr & E82545_ICR_LSC) != 0)
		base_link(sc);
	base_newitr(&guest->q[0], E82545_ITR);
	return (FILTER_SCHEDULE_THREAD);
}

/* The filters of MSI-X: of a pair of queues, and of all else. */
void
em_msix_que(unsigned int q)
{
	base_newitr(&guest->q[q], q == 0 ? E82545_ITR : E82574_EITR(q));
}

#define	IMS_QUEUES							\
	(E82574_ICR_RXQ0 | E82574_ICR_RXQ1 | E82574_ICR_TXQ0 |		\
	    E82574_ICR_TXQ1 | E82574_ICR_OTHER)

void
em_msix_intr_assign(struct e1000_softc *sc)
{
	sc->ims = IMS_QUEUES;
}

void
em_msix_link(struct e1000_softc *sc)
{
	const uint32_t icr = E1000_READ_REG(&sc->hw, E1000_ICR);

	if ((icr & E82545_ICR_LSC) != 0)
		base_link(sc);
	em_reg_write(E82545_IMS, E82545_ICR_LSC | E82574_ICR_OTHER);
	/* FreeBSD's comes again for causes that are masked until a frame comes. */
	if ((icr & ~(E82545_ICR_TXQE | E82545_ICR_TXD_LOW)) != 0)
		em_reg_write(E82545_ICS, sc->ims);
}

struct if_txrx em_base_txrx = {
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

	if (em_fails())
		return (ENXIO);
	sc->ctx = ctx;
	sc->shared = &ctx->scctx;
	sc->dev = &g->device;
	sc->hw.mac.type = g->config.kind == E82545_KIND_EM ? e1000_82545 :
	    e1000_82574;
	ctx->scctx.isc_txrx = &em_base_txrx;
	ctx->scctx.isc_intr = g->config.intr;
	ctx->scctx.isc_capabilities = ctx->scctx.isc_capenable = IFCAP_RXCSUM;
	ctx->scctx.isc_ntxd[0] = ctx->scctx.isc_nrxd[0] = EM_RING;
	ctx->scctx.isc_ntxd[1] = ctx->scctx.isc_nrxd[1] = 0;
	ctx->scctx.isc_ntxqsets = ctx->scctx.isc_nrxqsets =
	    g->config.intr == IFLIB_INTR_MSIX ? EM_QUEUES : 1;
	g->aim_on = true;
	return (0);
}

void
em_queues_free(if_ctx_t ctx)
{
	struct e1000_softc *sc = ctx->softc;
	int i;

	for (i = 0; sc->tx_queues != NULL && i < sc->tx_num_queues; i++)
		free(sc->tx_queues[i].txr.tx_rsq);
	free(sc->tx_queues);
	free(sc->rx_queues);
	sc->tx_queues = NULL;
	sc->rx_queues = NULL;
}

int
em_tx_queues_alloc(if_ctx_t ctx)
{
	struct em_guest *g = guest;
	struct e1000_softc *sc = ctx->softc;
	struct tx_ring *txr;
	int i;

	if (em_fails())
		return (ENOMEM);
	sc->tx_queues = calloc(sc->tx_num_queues, sizeof(*sc->tx_queues));
	for (i = 0; i < sc->tx_num_queues; i++) {
		g->q[i].txring = host_alloc(g->h, EM_RING * 16, PAGE_SIZE);
		g->q[i].txbuf = host_alloc(g->h, EM_RING * EM_LEN_MAX, 1);
		txr = &sc->tx_queues[i].txr;
		txr->tx_rsq = calloc(EM_RING, sizeof(qidx_t));
		txr->tx_base = host_mem(g->h, g->q[i].txring, EM_RING * 16);
	}
	return (0);
}

static int
base_rx_queues_alloc(if_ctx_t ctx, caddr_t *vaddrs, uint64_t *paddrs,
    int nrxqs, int nrxqsets)
{
	struct em_guest *g = guest;
	struct e1000_softc *sc = ctx->softc;
	int i;

	REQUIRE(vaddrs == NULL && paddrs == NULL && nrxqs == 1);
	REQUIRE(nrxqsets == sc->rx_num_queues);
	if (em_fails()) {
		em_queues_free(ctx);
		return (ENOMEM);
	}
	sc->rx_queues = calloc(sc->rx_num_queues, sizeof(*sc->rx_queues));
	for (i = 0; i < sc->rx_num_queues; i++) {
		g->q[i].rxring = host_alloc(g->h, EM_RING * 16, PAGE_SIZE);
		g->q[i].rxbuf = host_alloc(g->h, EM_RING * EM_BUF, PAGE_SIZE);
		sc->rx_queues[i].rxr.rx_base = host_mem(g->h, g->q[i].rxring,
		    EM_RING * 16);
	}
	return (0);
}

static int
base_attach_post(if_ctx_t ctx __attribute__((__unused__)))
{
	static const char *const names[] = { "debug", "itr" };
	struct em_guest *g = guest;
	size_t i;

	if (em_fails())
		return (EIO);
	TAILQ_INIT(&g->em_sysctls);
	if (g->config.aim != 0)
		return (0);
	for (i = 0; i < nitems(names); i++) {
		g->em_oid[i].oid_name = names[i];
		g->em_entry[i].entry = &g->em_oid[i];
		TAILQ_INSERT_TAIL(&g->em_sysctls, &g->em_entry[i], link);
	}
	g->sysctls[g->nsysctls++] = (struct em_sysctl){ .name = "itr" };
	return (0);
}

/* Look at the link, if somebody said so. */
static void
base_update_admin_status(if_ctx_t ctx)
{
	struct e1000_softc *sc = ctx->softc;

	guest->updates++;
	if (!sc->hw.mac.get_link_status)
		return;
	sc->hw.mac.get_link_status = false;
	ctx->ifnet.linkstate = (em_reg_read(E82545_STATUS) &
	    E82545_STATUS_LU) != 0 ? LINK_STATE_UP : LINK_STATE_DOWN;
	guest->links++;
}

static int
base_detach(if_ctx_t ctx __attribute__((__unused__)))
{
	return (0);
}

/* The registers of a ring, from their low base on. */
static void
place(uint32_t bal, uint64_t gpa)
{
	em_reg_write(bal, gpa);
	em_reg_write(bal + E82545_RING_BAH, gpa >> 32);
	em_reg_write(bal + E82545_RING_LEN, EM_RING * 16);
	em_reg_write(bal + E82545_RING_HEAD, 0);
	em_reg_write(bal + E82545_RING_TAIL, 0);
}

/* One vector a pair of queues, and one for all else. */
static void
base_intr_enable(if_ctx_t ctx)
{
	const struct e1000_softc *sc = ctx->softc;

	if (sc->intr_type == IFLIB_INTR_MSIX)
		em_reg_write(E82574_EIAC, sc->ims);
	em_reg_write(E82545_IMS, IMS_ENABLE_MASK | sc->ims);
	(void)em_reg_read(E82545_STATUS);
}

static void
base_intr_disable(if_ctx_t ctx __attribute__((__unused__)))
{
	if (guest->config.intr == IFLIB_INTR_MSIX)
		em_reg_write(E82574_EIAC, 0);
	em_reg_write(E82545_IMC, 0xffffffff);
	(void)em_reg_read(E82545_STATUS);
}

static void
base_init_msix(void)
{
	em_reg_write(E82574_IVAR, 0x800a9898);
	em_reg_write(E82545_RXCSUM, E82574_RXCSUM_PCSD);
	em_reg_write(E82574_MRQC, E82574_MRQC_ENABLE_RSS | E82574_MRQC_IP4);
	em_rx_queue(guest, guest->rx_queue);
}

static void
base_init(if_ctx_t ctx)
{
	struct em_guest *g = guest;
	struct e1000_softc *sc = ctx->softc;
	struct tx_ring *txr;
	int i;

	em_reg_write(E82545_CTRL, E82545_CTRL_RST);
	host_set(g->h, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_VME);
	for (i = 0; i < sc->tx_num_queues; i++) {
		txr = &sc->tx_queues[i].txr;
		txr->tx_rs_cidx = txr->tx_rs_pidx;
		txr->tx_cidx_processed = EM_RING - 1;
		place(E82545_TDBAL + E82574_QUEUE(i), g->q[i].txring);
	}
	em_reg_write(E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	if (extended(sc))
		em_reg_write(E82574_RFCTL, E82574_RFCTL_EXTEN |
		    E82574_RFCTL_ACK_DIS);
	for (i = 0; i < sc->rx_num_queues; i++)
		place(E82545_RDBAL + E82574_QUEUE(i), g->q[i].rxring);
	if (g->config.intr == IFLIB_INTR_MSIX)
		base_init_msix();
	em_reg_write(E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC | E82545_RCTL_LPE);
	em_reg_write(E82545_ITR, g->config.no_aim);
	/* The VLAN filter of a lem class is written without interrupts. */
	if (!extended(sc)) {
		base_intr_disable(ctx);
		base_intr_enable(ctx);
	}
	(void)em_reg_read(E82545_ICR);
	em_reg_write(E82545_ICS, E82545_ICR_LSC);
	if (!extended(sc))
		(void)em_interrupt(g);
}

static void
base_stop(if_ctx_t ctx __attribute__((__unused__)))
{
	em_reg_write(E82545_CTRL, E82545_CTRL_RST);
}

/* Start the adapter, by no method that a class could replace. */
static int
base_restart(if_ctx_t ctx)
{
	base_init(ctx);
	return (0);
}

static int
base_tx_queue_intr_enable(if_ctx_t ctx __attribute__((__unused__)), uint16_t q)
{
	em_reg_write(E82545_IMS, E82574_ICR_TXQ0 << q);
	return (0);
}

static int
base_rx_queue_intr_enable(if_ctx_t ctx __attribute__((__unused__)), uint16_t q)
{
	em_reg_write(E82545_IMS, E82574_ICR_RXQ0 << q);
	return (0);
}

static device_method_t base_methods[] = {
	DEVMETHOD(ifdi_attach_pre, base_attach_pre),
	DEVMETHOD(ifdi_attach_post, base_attach_post),
	DEVMETHOD(ifdi_detach, base_detach),
	DEVMETHOD(ifdi_init, base_init),
	DEVMETHOD(ifdi_stop, base_stop),
	DEVMETHOD(ifdi_resume, base_restart),
	DEVMETHOD(ifdi_media_change, base_restart),
	DEVMETHOD(ifdi_intr_enable, base_intr_enable),
	DEVMETHOD(ifdi_intr_disable, base_intr_disable),
	DEVMETHOD(ifdi_rx_queues_alloc, base_rx_queues_alloc),
	DEVMETHOD(ifdi_tx_queue_intr_enable, base_tx_queue_intr_enable),
	DEVMETHOD(ifdi_rx_queue_intr_enable, base_rx_queue_intr_enable),
	DEVMETHOD(ifdi_update_admin_status, base_update_admin_status),
	DEVMETHOD_END
};
driver_t em_if_driver = {
	"em_if", base_methods, sizeof(struct e1000_softc), NULL
};
struct if_shared_ctx em_sctx_init = { &em_if_driver, 0x1f1b };
