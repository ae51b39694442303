/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * em_pv(4)'s functions of the rings (struct if_txrx).  em_pv.c says which and
 * why.
 */

#include "em_pv.h"

#include <sys/proc.h>
#include <sys/sched.h>

#include <net/vnet.h>
#include <netinet/ip_var.h>
#include <netinet6/ip6_var.h>

/* Between two checks whether the processor is idle. */
#define	EM_PV_PAUSE	(SBT_1MS / 4)

/* The longest frame that iflib(4) takes: struct if_rxd_info's iri_len. */
#define	EM_PV_FRAME_MAX	65535

/* flags and type of struct em_pv_hdr. */
#define	HDR_PARTIAL	0x01
#define	HDR_NONE	0
#define	HDR_TCP4	1
#define	HDR_TCP6	4
#define	HDR_ECN		0x80

SDT_PROBE_DEFINE2(lem, , , tx__kick, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , tx__kick__saved, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , rx__kick, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , rx__kick__saved, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , combine, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , flush, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , clean, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , receive, "char *", "uint32_t");

uint32_t
em_pv_ask(struct em_pv *pv, uint32_t *last)
{
	mtx_assert(&pv->lock, MA_OWNED);
	*last = pv->sc.intr_type == IFLIB_INTR_MSI ? (*last + 2) | 1 : 1;
	return (*last);
}

/*
 * The transmit rings.
 */

static qidx_t
em_pv_in_use(struct em_pv *pv, int q)
{
	const qidx_t ntxd = pv->sc.shared->isc_ntxd[0];
	const struct tx_ring *txr = &pv->sc.tx_queues[q].txr;

	return (DISTANCE(txr->tx_cidx_processed + 1, pv->tx[q].tail, ntxd));
}

/*
 * Set RS in the last descriptor before pidx, unless em(4) has.  The caller has
 * the queue's lock.  This comes before the tail is stored: from then on anybody
 * may post the descriptor, and what is sent without RS is never reported.
 */
static void
em_pv_report(struct em_pv *pv, int q, qidx_t pidx)
{
	struct tx_ring *txr = &pv->sc.tx_queues[q].txr;
	const qidx_t ntxd = pv->sc.shared->isc_ntxd[0];
	const qidx_t last = (pidx - 1) & (ntxd - 1);

	if ((txr->tx_base[last].lower.data & htole32(E1000_TXD_CMD_RS)) != 0)
		return;
	txr->tx_base[last].lower.data |= htole32(E1000_TXD_CMD_RS);
	txr->tx_rsq[txr->tx_rs_pidx] = last;
	txr->tx_rs_pidx = (txr->tx_rs_pidx + 1) & (ntxd - 1);
	MPASS(txr->tx_rs_pidx != txr->tx_rs_cidx);
}

/* Learn that the host was awake, or had to be kicked, when a packet came. */
static void
em_pv_tx_spun(struct em_pv *pv, bool awake)
{
	struct lem_spin *sp = &pv->tx_spin;
	const uint32_t old = sp->sp_rounds;

	mtx_assert(&pv->lock, MA_OWNED);
	if (awake)
		lem_spin_paid(sp);
	else
		lem_spin_missed(sp);
	if (sp->sp_rounds != old)
		atomic_store_32(&pv->csb->host_txcycles_lim, sp->sp_rounds);
}

void
em_pv_tx_post(struct em_pv *pv, int q)
{
	struct em_pv_tx *tx = &pv->tx[q];
	struct paravirt_csb *csb = pv->csb;
	const qidx_t ntxd = pv->sc.shared->isc_ntxd[0], old = tx->posted;

	mtx_assert(&pv->lock, MA_OWNED);
	EM_PV_PROBE(pv, flush, DISTANCE(old, tx->tail, ntxd));
	tx->posted = tx->tail;
	tx->report = (tx->tail - 1) & (ntxd - 1);
	tx->waiting = tx->rs;
	if (pv->csb_on) {
		atomic_store_rel_32(&csb->guest_tdt, tx->posted);
		atomic_thread_fence_seq_cst();
		if ((atomic_load_acq_32(&csb->host_need_txkick) & 1) == 0) {
			/* Had the host sent all? */
			if (pv->tx_spin.sp_learn &&
			    atomic_load_32(&csb->host_tdh) == old)
				em_pv_tx_spun(pv, true);
			pv->tx_kicks_saved++;
			EM_PV_PROBE(pv, tx__kick__saved, tx->posted);
			return;
		}
		em_pv_tx_spun(pv, false);
		/*
		 * One kick is enough, even if the host takes long to wake up.
		 */
		atomic_store_rel_32(&csb->host_need_txkick, 0);
	}
	pv->tx_kicks++;
	EM_PV_PROBE(pv, tx__kick, tx->posted);
	/* em(4) may count packets for AIM there. */
	pv->base->ift_txd_flush(pv, q, tx->posted);
}

/*
 * Ask for an interrupt, with the CSB, while more than half of the ring is in
 * use.  Returns whether packets were completed before the host saw the request.
 */
static bool
em_pv_tx_ask(struct em_pv *pv, int q)
{
	struct paravirt_csb *csb = pv->csb;
	const bool full = pv->poll == 0 &&
	    em_pv_in_use(pv, q) > pv->sc.shared->isc_ntxd[0] / 2;

	mtx_assert(&pv->lock, MA_OWNED);
	if (!full) {
		if (atomic_load_32(&csb->guest_need_txkick) != 0)
			atomic_store_rel_32(&csb->guest_need_txkick, 0);
		return (false);
	}
	atomic_store_rel_32(&csb->guest_need_txkick,
	    em_pv_ask(pv, &pv->tx_asked));
	atomic_thread_fence_seq_cst();
	return (pv->base->ift_txd_credits_update(pv, q, false) != 0);
}

/*
 * Return whether packets wait: the driver is stopped, or send combining has a
 * report or a poll to come.
 */
static bool
em_pv_tx_may_wait(struct em_pv *pv, int q)
{
	return (!pv->running || (pv->sc_on != 0 && !pv->csb_on &&
	    (pv->tx[q].waiting || pv->poll != 0) &&
	    em_pv_in_use(pv, q) < pv->sc.shared->isc_ntxd[0] / 2));
}

/*
 * Announce descriptors, or hold them back.  iflib(4) flushes with nothing
 * pending, too.
 */
static void
em_pv_txd_flush(void *arg, uint16_t q, qidx_t pidx)
{
	struct em_pv *pv = arg;
	struct em_pv_tx *tx = &pv->tx[q];
	/* The knob may change meanwhile. */
	const bool rs = atomic_load_int(&pv->sc_on) != 0;
	bool done = false;

	if (tx->tail == pidx)
		return;
	if (rs)
		em_pv_report(pv, q, pidx);
	mtx_lock_spin(&pv->lock);
	tx->tail = pidx;
	tx->rs = rs;
	if (em_pv_tx_may_wait(pv, q)) {
		pv->tx_combined++;
		EM_PV_PROBE(pv, combine, DISTANCE(tx->posted, pidx,
		    pv->sc.shared->isc_ntxd[0]));
	} else
		em_pv_tx_post(pv, q);
	if (pv->csb_on)
		done = em_pv_tx_ask(pv, q);
	mtx_unlock_spin(&pv->lock);
	if (done)
		iflib_tx_intr_deferred(pv->sc.ctx, q);
}

bool
em_pv_tx_done(struct em_pv *pv, int q, bool poll)
{
	struct em_pv_tx *tx = &pv->tx[q];
	const struct e1000_tx_desc *base = pv->sc.tx_queues[q].txr.tx_base;
	bool waiting;

	if (!tx->waiting && tx->tail == tx->posted)
		return (false);
	mtx_lock_spin(&pv->lock);
	if (tx->waiting && (base[tx->report].upper.fields.status &
	    E1000_TXD_STAT_DD) != 0)
		tx->waiting = false;
	if (pv->running && tx->tail != tx->posted &&
	    (!tx->waiting || poll)) {
		pv->tx_flushes++;
		em_pv_tx_post(pv, q);
	}
	waiting = tx->waiting;
	mtx_unlock_spin(&pv->lock);
	return (waiting);
}

/*
 * Count what was sent.  A reclaimed descriptor may be used again, so its report
 * is looked at now.  The interrupt that has led here ended the request for a
 * report.
 */
static int
em_pv_txd_credits_update(void *arg, uint16_t q, bool clear)
{
	struct em_pv *pv = arg;
	bool done = false;
	int n;

	n = pv->base->ift_txd_credits_update(arg, q, clear);
	if (!clear || n == 0)
		return (n);
	EM_PV_PROBE(pv, clean, n);
	(void)em_pv_tx_done(pv, q, false);
	mtx_lock_spin(&pv->lock);
	if (pv->csb_on)
		done = em_pv_tx_ask(pv, q);
	mtx_unlock_spin(&pv->lock);
	if (done)
		iflib_tx_intr_deferred(pv->sc.ctx, q);
	return (n);
}

/*
 * The processor's share of reception.
 *
 * iflib(4)'s task takes frames as long as there are some, and a program that
 * uses them does not preempt the task.  So reception pauses, if somebody else
 * wants the processor: the ring seems to be empty, no interrupt is asked for,
 * and a callout queues the task when the pause is over or the processor idle.
 *
 * Not with MSI-X: while the cause of a queue is masked, em(4)'s filter for all
 * other causes interrupts itself without end.
 */

/* Read the scheduler's clock, which is no exit. */
static uint64_t
em_pv_now_ns(void)
{
	const uint64_t hz = cpu_tickrate(), t = cpu_ticks();

	return (t / hz * 1000000000 + t % hz * 1000000000 / hz);
}

static void
em_pv_rx_resume(void *arg)
{
	struct em_pv *pv = arg;
	bool over;

	/* Without the CSB, the interrupt for a report is masked meanwhile. */
	(void)em_pv_tx_done(pv, 0, false);
	mtx_lock_spin(&pv->lock);
	over = em_pv_now_ns() >= pv->rx.resume_ns ||
	    TD_IS_IDLETHREAD(curthread);
	if (over)
		atomic_store_64(&pv->rx.resume_ns, 0);
	mtx_unlock_spin(&pv->lock);
	if (over)
		iflib_rx_intr_deferred(pv->sc.ctx, 0);
	else
		callout_reset_sbt_curcpu(&pv->rx_callout, EM_PV_PAUSE, 0,
		    em_pv_rx_resume, pv, C_DIRECT_EXEC);
}

static bool
em_pv_rx_paused(struct em_pv *pv)
{
	return (atomic_load_64(&pv->rx.resume_ns) != 0);
}

/*
 * End a turn of reception; with `more' begin the next turn.  Returns whether
 * reception pauses now.
 */
static bool
em_pv_rx_turn(struct em_pv *pv, bool more)
{
	struct em_pv_rx *rx = &pv->rx;
	const uint64_t now_ns = em_pv_now_ns();
	uint64_t pause_ns = 0;

	mtx_lock_spin(&pv->lock);
	if (rx->begin_ns != 0 && rx->begin_ns < now_ns)
		pause_ns = lem_share_turn(&rx->due_ns, pv->rx_share,
		    rx->begin_ns, now_ns);
	if (pause_ns != 0 && (!pv->running || !sched_runnable()))
		pause_ns = 0;
	rx->begin_ns = more && pause_ns == 0 ? now_ns : 0;
	if (pause_ns != 0) {
		atomic_store_64(&rx->resume_ns, now_ns + pause_ns);
		pv->rx_pauses++;
	}
	mtx_unlock_spin(&pv->lock);
	if (pause_ns == 0)
		return (false);
	callout_reset_sbt_curcpu(&pv->rx_callout, EM_PV_PAUSE, 0,
	    em_pv_rx_resume, pv, C_DIRECT_EXEC);
	return (true);
}

static bool
em_pv_in_filter(void)
{
	return (curthread->td_intr_nesting_level != 0);
}

bool
em_pv_netmap(struct em_pv *pv)
{
	return ((if_getcapenable(iflib_get_ifp(pv->sc.ctx)) &
	    IFCAP_NETMAP) != 0);
}

bool
em_pv_rx_pauses(struct em_pv *pv, bool more)
{
	return (em_pv_rx_paused(pv) ||
	    (!em_pv_in_filter() && em_pv_rx_turn(pv, more)));
}

static int
em_pv_rxd_available(void *arg, uint16_t q, qidx_t cidx, qidx_t budget)
{
	struct em_pv *pv = arg;

	/* iflib_fast_intr_rxtx() asks, too. */
	if (pv->sc.intr_type != IFLIB_INTR_MSIX && !em_pv_netmap(pv) &&
	    em_pv_rx_pauses(pv, true))
		return (0);
	return (pv->base->ift_rxd_available(arg, q, cidx, budget));
}

/*
 * The receive ring.
 */

/*
 * Look at IFCAP_LRO, which says that nobody else gets the frames; if we
 * forward, others do.
 */
bool
em_pv_takes_partial(struct em_pv *pv)
{
	const if_t ifp = iflib_get_ifp(pv->sc.ctx);
	const int caps = if_getcapenable(ifp);
	const int need = IFCAP_LRO | IFCAP_RXCSUM | IFCAP_RXCSUM_IPV6;
	bool forwards = false;

	CURVNET_SET(if_getvnet(ifp));
#ifdef INET
	forwards |= V_ipforwarding != 0;
#endif
#ifdef INET6
	forwards |= V_ip6_forwarding != 0;
#endif
	CURVNET_RESTORE();
	return (pv->hdrs != NULL && (caps & need) == need &&
	    !em_pv_netmap(pv) && !forwards);
}

/* Return the length of a frame, of which ri->iri_len has 16 bits. */
static uint32_t
em_pv_rx_len(const struct if_rxd_info *ri)
{
	uint32_t len = 0;
	int i;

	for (i = 0; i < ri->iri_nfrags; i++)
		len += ri->iri_frags[i].irf_len;
	return (len);
}

/*
 * Shorten a frame that is too long to what iflib(4) takes.  The IP header still
 * has the length, and the stack drops the packet.
 */
static void
em_pv_rx_cut(struct if_rxd_info *ri)
{
	uint32_t len = 0;
	int i;

	for (i = 0; i < ri->iri_nfrags; i++) {
		if (len + ri->iri_frags[i].irf_len > EM_PV_FRAME_MAX)
			ri->iri_frags[i].irf_len = 0;
		len += ri->iri_frags[i].irf_len;
	}
	ri->iri_len = len;
	ri->iri_csum_flags = 0;
}

/*
 * Return whether a header, which another guest makes, fits a frame of `len'
 * bytes.
 */
static bool
em_pv_hdr_valid(const struct em_pv_hdr *hdr, uint32_t len)
{
	const int type = hdr->type & ~HDR_ECN;

	return (hdr->csum_start >= ETHER_HDR_LEN &&
	    (uint32_t)hdr->csum_start + hdr->csum_offset + 2 <= len &&
	    (hdr->type == HDR_NONE || ((type == HDR_TCP4 || type == HDR_TCP6) &&
	    hdr->mss != 0 && hdr->mss < len)));
}

static int
em_pv_rxd_pkt_get(void *arg, if_rxd_info_t ri)
{
	struct em_pv *pv = arg;
	const qidx_t nrxd = pv->sc.shared->isc_nrxd[0];
	const qidx_t first = ri->iri_cidx;
	struct em_pv_hdr hdr = { .flags = 0 };
	uint32_t len;
	int error;

	/* The header was written before the descriptor, and is read once. */
	atomic_thread_fence_acq();
	if (pv->hdrs_on)
		hdr = pv->hdrs[first];
	error = pv->base->ift_rxd_pkt_get(arg, ri);
	if (error != 0 || ri->iri_qsidx != 0)
		return (error);
	pv->rx.next = (first + ri->iri_nfrags) & (nrxd - 1);
	pv->rx.seen = QIDX_INVALID;
	pv->rx.frames++;
	if (!pv->hdrs_on)
		return (0);
	len = em_pv_rx_len(ri);
	if (len > EM_PV_FRAME_MAX) {
		pv->rx_bad++;
		em_pv_rx_cut(ri);
	} else if ((hdr.flags & HDR_PARTIAL) != 0) {
		if (em_pv_hdr_valid(&hdr, len)) {
			pv->rx_offload++;
			ri->iri_csum_flags |= CSUM_DATA_VALID | CSUM_PSEUDO_HDR;
			ri->iri_csum_data = 0xffff;
		} else
			pv->rx_bad++;	/* the stack sees the wrong checksum */
	}
	return (0);
}

/*
 * Return whether the value of RDT goes to the register: the host waits for it.
 */
static bool
em_pv_rx_kick(struct em_pv *pv, qidx_t old)
{
	const qidx_t nrxd = pv->sc.shared->isc_nrxd[0];
	uint32_t at;

	mtx_assert(&pv->lock, MA_OWNED);
	if (!pv->csb_on)
		return (pv->running);
	atomic_store_rel_32(&pv->csb->guest_rdt, pv->rx.posted);
	atomic_thread_fence_seq_cst();
	at = atomic_load_acq_32(&pv->csb->host_rxkick_at);
	if (pv->rx.kick)
		return (true);
	if (at == NET_PARAVIRT_NONE)
		return (false);
	/* No slot would never be reached. */
	return (at >= nrxd || (at != old && DISTANCE(old, at, nrxd) <=
	    DISTANCE(old, pv->rx.posted, nrxd)));
}

static void
em_pv_rxd_flush(void *arg, uint16_t q, uint8_t flid, qidx_t pidx)
{
	struct em_pv *pv = arg;
	qidx_t old;

	if (q != 0) {
		pv->base->ift_rxd_flush(arg, q, flid, pidx);
		return;
	}
	if (pv->rx.frames != 0)
		EM_PV_PROBE(pv, receive, pv->rx.frames);
	pv->rx.frames = 0;
	mtx_lock_spin(&pv->lock);
	old = pv->rx.posted;
	pv->rx.posted = pidx;
	if (em_pv_rx_kick(pv, old)) {
		pv->rx.kick = false;
		pv->rx_kicks++;
		EM_PV_PROBE(pv, rx__kick, pidx);
		pv->base->ift_rxd_flush(arg, q, flid, pidx);
	} else {
		pv->rx_kicks_saved++;
		EM_PV_PROBE(pv, rx__kick__saved, pidx);
	}
	mtx_unlock_spin(&pv->lock);
}

/* Look at DD, which is bit 0 of the status of both formats. */
bool
em_pv_rx_ready(struct em_pv *pv)
{
	const union e1000_rx_desc_extended *rxd =
	    &pv->sc.rx_queues[0].rxr.rx_base[pv->rx.next];

	if (pv->sc.hw.mac.type < e1000_82571)
		return ((((const struct e1000_rx_desc *)rxd)->status &
		    E1000_RXD_STAT_DD) != 0);
	return ((le32toh(rxd->wb.upper.status_error) &
	    E1000_RXD_STAT_DD) != 0);
}

void
em_pv_rx_spin(struct em_pv *pv)
{
	const uint32_t rounds = atomic_load_32(&pv->rx_spin.sp_rounds);
	bool ready = false;
	uint32_t n;

	if (em_pv_in_filter())
		return;
	for (n = 0; n < rounds && !ready; n++) {
		if (sched_runnable())
			return;
		ready = em_pv_rx_ready(pv);
	}
	mtx_lock_spin(&pv->lock);
	if (ready)
		lem_spin_paid(&pv->rx_spin);
	else
		lem_spin_missed(&pv->rx_spin);
	mtx_unlock_spin(&pv->lock);
}

void
em_pv_txrx_init(struct em_pv *pv)
{
	pv->txrx.ift_txd_flush = em_pv_txd_flush;
	pv->txrx.ift_txd_credits_update = em_pv_txd_credits_update;
	pv->txrx.ift_rxd_available = em_pv_rxd_available;
	pv->txrx.ift_rxd_pkt_get = em_pv_rxd_pkt_get;
	pv->txrx.ift_rxd_flush = em_pv_rxd_flush;
}
