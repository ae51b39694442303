/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * em(4) for emulated adapters: send combining, the communication status block
 * (CSB, paravirt_csb(9)) and polling.
 *
 * iflib(4) drives an adapter by a table of functions for the rings (struct
 * if_txrx) and a class of methods for everything else.  Both can be inherited.
 * The class em_pv has em(4)'s class as its base and em(4)'s softc as the first
 * member of its own, and the functions below that stand in either table do what
 * is particular to an emulated adapter and leave the rest to em(4)'s:
 *
 *	ift_txd_flush		holds TDT back, or publishes it in the CSB
 *	ift_txd_credits_update	ends the wait for a report
 *	ift_rxd_available	bounds reception's share of the processor
 *	ift_rxd_pkt_get		notes the next descriptor, reads the header ring
 *	ift_rxd_flush		publishes RDT in the CSB
 *	ift_legacy_intr		with the CSB, suppresses interrupts by flags;
 *				posts what was held back
 *	IFDI_INTR_ENABLE	the last look at the ring that the CSB asks for;
 *				posts what was held back
 *	IFDI_RX_QUEUES_ALLOC	allocates the CSB and the header ring
 *	IFDI_INIT, IFDI_STOP	place and withdraw the CSB
 *	IFDI_UPDATE_ADMIN_STATUS requests a reset if the header ring must be
 *				placed or withdrawn; writes ITR again; looks at
 *				the link
 *
 * em_register() asks em_pv_register() for the class, for each device.  Hardware
 * gets em(4)'s own, in which nothing changes.
 *
 * em_pv.lock protects the tails, the CSB and the modes.  It is a spin lock,
 * because iflib_fast_intr_rxtx() calls IFDI_INTR_ENABLE in a filter.
 * Descriptors belong to iflib's locks of the queues: the functions of if_txrx
 * run with these.
 */

#include "if_em.h"

#include <sys/callout.h>
#include <sys/proc.h>
#include <sys/sched.h>
#include <sys/sdt.h>
#include <sys/smp.h>

#include <machine/atomic.h>

#include <net/paravirt.h>
#include <net/vnet.h>
#include <netinet/ip_var.h>
#include <netinet6/ip6_var.h>

#include "e82545_csb_reg.h"
#include "lem_spin.h"

#define	EM_PV_QUEUES	2		/* of an 82574L */
#define	EM_PV_ROUNDS	1024		/* of a spin, at most */
#define	EM_PV_ITR_MAX	0xffff		/* 8254x SDM 13.4.18, 256 ns */
#define	EM_PV_POLL_MAX	100000		/* a second */
#define	EM_PV_SHARE	20		/* percent: docs/freebsd.md */
/* Between two checks whether the processor is idle. */
#define	EM_PV_PAUSE	(SBT_1MS / 4)

/* Slots from a to b in a ring of n, a power of two. */
#define	DISTANCE(a, b, n)	(((b) - (a)) & ((n) - 1))

extern driver_t em_if_driver;
extern struct if_shared_ctx em_sctx_init;
int	em_intr(void *);
void	*em_pv_register(device_t);

/* The longest frame that iflib(4) takes: struct if_rxd_info's iri_len. */
#define	EM_PV_FRAME_MAX	65535

/* An entry of the header ring, which has one for each receive descriptor. */
struct em_pv_hdr {
	uint8_t		 flags, type;
	uint16_t	 len, mss, csum_start, csum_offset;
};
_Static_assert(sizeof(struct em_pv_hdr) == 10, "paravirt_csb(9)");

/* flags, type. */
#define	HDR_PARTIAL	0x01
#define	HDR_NONE	0
#define	HDR_TCP4	1
#define	HDR_TCP6	4
#define	HDR_ECN		0x80

/* dtrace_lem(4) */
SDT_PROVIDER_DEFINE(lem);
SDT_PROBE_DEFINE2(lem, , , tx__kick, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , tx__kick__saved, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , rx__kick, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , rx__kick__saved, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , combine, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , flush, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , clean, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , interrupt, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , receive, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , poll, "char *", "uint32_t");
#define	EM_PV_PROBE(pv, probe, value)					\
	SDT_PROBE2(lem, , , probe, device_get_nameunit((pv)->sc.dev), value)

/* Call em(4)'s method. */
#define	BASE(method)							\
	((method##_t *)kobj_lookup_method((kobj_class_t)&em_if_driver,	\
	    NULL, &method##_desc)->func)

struct em_pv_tx {
	qidx_t		 tail;		/* as of the last flush */
	qidx_t		 posted;	/* last value of TDT (or guest_tdt) */
	bool		 rs;		/* the descriptor before it has RS */
	qidx_t		 report;	/* last posted descriptor with RS */
	bool		 waiting;	/* its report is due */
};

struct em_pv_rx {
	qidx_t		 next;		/* next descriptor to be received */
	qidx_t		 seen;		/* the same, of the last look that
					   found a frame there */
	qidx_t		 posted;	/* last value of RDT (or guest_rdt) */
	bool		 kick;		/* the next value goes to RDT */
	uint32_t	 frames;	/* since the last value */
	/* lem_share_turn() */
	uint64_t	 begin_ns;	/* of this turn, or 0 */
	uint64_t	 due_ns;
	uint64_t	 resume_ns;	/* the end of a pause, or 0 */
};

struct em_pv {
	struct e1000_softc sc;		/* em(4)'s; must be first */
	const struct if_txrx *base;	/* em(4)'s functions of the rings */
	struct if_txrx	 txrx;		/* with ours */
	struct mtx	 lock;
	struct em_pv_tx	 tx[EM_PV_QUEUES];
	struct em_pv_rx	 rx;		/* of queue 0 */
	struct paravirt_csb *csb;	/* one page, or NULL */
	struct iflib_dma_info csb_dma;
	struct em_pv_hdr *hdrs;		/* the header ring, or NULL */
	struct iflib_dma_info hdrs_dma;
	bool		 hdrs_on;	/* as of em_pv_init() */
	struct lem_spin	 tx_spin;	/* the host's, for packets */
	struct lem_spin	 rx_spin;	/* for frames */
	uint32_t	 tx_asked;	/* numbers of the last requests for */
	uint32_t	 rx_asked;	/* interrupts */
	bool		 running;	/* between IFDI_INIT and IFDI_STOP */
	bool		 detaching;
	bool		 masked;	/* by IMC */
	bool		 unread;	/* an MSI came, and ICR was not read */
	bool		 csb_on;	/* csb, while running */
	uint32_t	 ims;		/* em(4)'s, with MSI-X */
	struct callout	 poll_callout, rx_callout;
	struct sysctl_ctx_list sysctls;
	uint32_t	 updates;	/* with the CSB, by the admin task */
	bool		 itr_set;	/* somebody has set itr */
	uint32_t	 itr_em;	/* em(4)'s, as of em_pv_init() */
	/* Knobs. */
	u_int		 itr, sc_on, poll, rx_share;
	u_int		 csb_wanted;	/* not without a CSB */
	/* Counters. */
	u_long		 tx_kicks, tx_kicks_saved, tx_combined, tx_flushes;
	u_long		 rx_kicks, rx_kicks_saved, rx_offload, rx_bad;
	u_long		 rx_pauses;
	u_long		 interrupts, icr_reads, polls;
};

/* The value of a need-kick flag of the CSB for a request, as lem_ask(). */
static uint32_t
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

/* The host was awake, or had to be kicked, when a packet came. */
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

/* Post all descriptors before the tail. */
static void
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
 * With the CSB, ask for an interrupt while more than half of the ring is in
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

/* Whether send combining lets packets wait: a report, or a poll, is to come. */
static bool
em_pv_tx_may_wait(struct em_pv *pv, int q)
{
	return (pv->sc_on != 0 && !pv->csb_on &&
	    (pv->tx[q].waiting || pv->poll != 0) &&
	    em_pv_in_use(pv, q) < pv->sc.shared->isc_ntxd[0] / 2);
}

/* iflib(4) flushes with nothing pending, too. */
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

/*
 * Post what was held back, if what it waited for has come: the report of the
 * last posted packet, or, with `poll', a poll.  Returns whether a report is to
 * come now.
 */
static bool
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
 * A reclaimed descriptor may be used again, so its report is looked at now.
 * The interrupt that has led here ended the request for it.
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

/* The clock that the scheduler uses: reading it is no exit. */
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
 * A turn of reception ends; with `more' the next one begins.  Returns whether
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

static bool
em_pv_netmap(struct em_pv *pv)
{
	return ((if_getcapenable(iflib_get_ifp(pv->sc.ctx)) &
	    IFCAP_NETMAP) != 0);
}

static int
em_pv_rxd_available(void *arg, uint16_t q, qidx_t cidx, qidx_t budget)
{
	struct em_pv *pv = arg;

	/* iflib_fast_intr_rxtx() asks, too. */
	if (pv->sc.intr_type != IFLIB_INTR_MSIX && !em_pv_netmap(pv) &&
	    (em_pv_rx_paused(pv) ||
	    (!em_pv_in_filter() && em_pv_rx_turn(pv, true))))
		return (0);
	return (pv->base->ift_rxd_available(arg, q, cidx, budget));
}

/*
 * The receive ring.
 */

/*
 * Whether frames may come as others of this host send them: uncut, with partial
 * checksums.  IFCAP_LRO says that nobody else gets them; who forwards would.
 */
static bool
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

/* The length of a frame; ri->iri_len has 16 bits of it. */
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
 * Shorten a frame that is too long to what iflib(4) takes.  Its IP header still
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

/* Whether a header, which another guest makes, fits a frame of `len' bytes. */
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

/* Whether the value of RDT goes to the register: the host waits for it. */
static bool
em_pv_rx_kick(struct em_pv *pv, qidx_t old)
{
	const qidx_t nrxd = pv->sc.shared->isc_nrxd[0];
	uint32_t at;

	mtx_assert(&pv->lock, MA_OWNED);
	if (!pv->csb_on)
		return (true);
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

/* Whether a frame has come, or begins to: DD, bit 0 of the status. */
static bool
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

/*
 * Interrupts.
 */

/* Read and clear the causes.  Returns those that em(4) handles. */
static uint32_t
em_pv_causes(struct em_pv *pv)
{
	const uint32_t icr = E1000_READ_REG(&pv->sc.hw, E1000_ICR);

	pv->icr_reads++;
	if (icr == 0xffffffff)
		return (0);
	if ((icr & (E1000_ICR_RXSEQ | E1000_ICR_LSC)) != 0) {
		pv->sc.hw.mac.get_link_status = 1;
		iflib_admin_intr_deferred(pv->sc.ctx);
	}
	if ((icr & E1000_ICR_RXO) != 0)
		pv->sc.rx_overruns++;
	return (icr & (IMS_ENABLE_MASK | E1000_ICR_RXO));
}

/*
 * An interrupt while packets are held back.  If it is only for reports, and
 * another one is to come, as that of the packets that are posted now, nothing
 * is masked.  iflib(4)'s task, which looks for what iflib(4) has put off, runs
 * after the last report.  The causes are read first: this clears them.
 */
static int
em_pv_intr_held(struct em_pv *pv)
{
	const uint32_t causes = em_pv_causes(pv);

	if (causes == 0)
		return (FILTER_STRAY);
	if (em_pv_tx_done(pv, 0, false) && causes == E1000_ICR_TXDW)
		return (FILTER_HANDLED);
	IFDI_INTR_DISABLE(pv->sc.ctx);
	return (FILTER_SCHEDULE_THREAD);
}

/* Whether the interrupt is that of the last request: the host knows numbers. */
static bool
em_pv_told(struct em_pv *pv)
{
	struct paravirt_csb *csb = pv->csb;

	return (atomic_load_32(&E82545_CSB_HOST_RXTOLD(csb)) ==
	    atomic_load_32(&pv->rx_asked) ||
	    atomic_load_32(&E82545_CSB_HOST_TXTOLD(csb)) ==
	    atomic_load_32(&pv->tx_asked));
}

/*
 * The filter of a line or an MSI.  With the CSB the causes stay unmasked, and
 * those of an MSI are read only if the host has another reason than a request.
 *
 * While polls are on the causes are masked.  But em(4) unmasks them as it
 * starts and when a VLAN is added, and the line would interrupt for ever.
 */
static int
em_pv_intr(void *arg)
{
	struct em_pv *pv = arg;

	/* A line may be shared, and its next interrupt come after detach. */
	if (atomic_load_bool(&pv->detaching))
		return (FILTER_STRAY);
	if (pv->poll != 0) {
		IFDI_INTR_DISABLE(pv->sc.ctx);
		return (FILTER_STRAY);
	}
	EM_PV_PROBE(pv, interrupt, pv->sc_on | pv->csb_on << 1);
	if (!pv->csb_on) {
		pv->interrupts++;
		return (pv->tx[0].tail != pv->tx[0].posted ?
		    em_pv_intr_held(pv) : em_intr(arg));
	}
	if (pv->sc.intr_type == IFLIB_INTR_MSI) {
		if (!em_pv_told(pv))
			pv->unread = true;
	} else if (em_pv_causes(pv) == 0)
		return (FILTER_STRAY);
	pv->interrupts++;
	atomic_store_rel_32(&pv->csb->guest_need_rxkick, 0);
	/*
	 * The interrupt may be one for received frames alone, or for packets
	 * without RS, which ends a request, but not the wait for a report.
	 */
	mtx_lock_spin(&pv->lock);
	if (pv->base->ift_txd_credits_update(pv, 0, false) != 0)
		atomic_store_rel_32(&pv->csb->guest_need_txkick, 0);
	else if (atomic_load_32(&pv->csb->guest_need_txkick) != 0) {
		atomic_store_rel_32(&pv->csb->guest_need_txkick,
		    em_pv_ask(pv, &pv->tx_asked));
		/* iflib(4)'s filter then looks for reports. */
		atomic_thread_fence_seq_cst();
	}
	mtx_unlock_spin(&pv->lock);
	return (FILTER_SCHEDULE_THREAD);
}

/*
 * Mask interrupts.  While polling, EIAC of MSI-X stays: a cause that is
 * unmasked without it, by a task that ends as polling does, is never cleared,
 * and no message follows.
 */
static void
em_pv_intr_disable(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);

	if (pv->sc.intr_type == IFLIB_INTR_MSIX && pv->poll == 0) {
		BASE(ifdi_intr_disable)(ctx);
		return;
	}
	mtx_lock_spin(&pv->lock);
	pv->masked = true;
	E1000_WRITE_REG(&pv->sc.hw, E1000_IMC, 0xffffffff);
	mtx_unlock_spin(&pv->lock);
}

/*
 * Ask for the next interrupt.  Returns whether a frame has come meanwhile.  A
 * user of netmap may leave frames in the ring, so each is found once.
 */
static bool
em_pv_intr_ask(struct em_pv *pv)
{
	bool ready;

	mtx_assert(&pv->lock, MA_OWNED);
	if (pv->csb_on) {
		atomic_store_rel_32(&pv->csb->guest_need_rxkick,
		    em_pv_ask(pv, &pv->rx_asked));
		atomic_thread_fence_seq_cst();
	}
	ready = em_pv_rx_ready(pv) && pv->rx.seen != pv->rx.next;
	if (ready) {
		pv->rx.seen = pv->rx.next;
		if (pv->csb_on)
			atomic_store_rel_32(&pv->csb->guest_need_rxkick, 0);
	}
	if (pv->masked && (pv->csb_on || !ready)) {
		pv->masked = false;
		E1000_WRITE_REG(&pv->sc.hw, E1000_IMS, IMS_ENABLE_MASK);
	}
	return (ready);
}

/*
 * Spin until a frame has come, while nobody else wants the processor.  A filter
 * does not spin.
 */
static void
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

/*
 * Both tasks of iflib(4) come here at their end, and its filter, if one of the
 * two has nothing to do.
 */
static void
em_pv_intr_enable(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);
	bool ready, unread;
	int q;

	for (q = 0; q < pv->sc.tx_num_queues; q++)
		(void)em_pv_tx_done(pv, q, pv->poll != 0);
	if (pv->sc.intr_type == IFLIB_INTR_MSIX) {
		if (pv->poll == 0)
			BASE(ifdi_intr_enable)(ctx);
		return;
	}
	if (em_pv_rx_paused(pv) ||
	    (!em_pv_in_filter() && em_pv_rx_turn(pv, false)))
		return;
	/* The first of both after an interrupt. */
	if (pv->csb_on && pv->poll == 0 &&
	    atomic_load_32(&pv->csb->guest_need_rxkick) == 0)
		em_pv_rx_spin(pv);
	mtx_lock_spin(&pv->lock);
	if (pv->poll != 0 || !pv->running) {
		mtx_unlock_spin(&pv->lock);
		return;
	}
	ready = em_pv_intr_ask(pv);
	unread = !ready && pv->unread;
	if (unread)
		pv->unread = false;
	mtx_unlock_spin(&pv->lock);
	if (unread && em_pv_causes(pv) != 0) {
		iflib_tx_intr_deferred(ctx, 0);
		ready = true;
	}
	if (ready)
		iflib_rx_intr_deferred(ctx, 0);
}

static int
em_pv_tx_queue_intr_enable(if_ctx_t ctx, uint16_t q)
{
	struct em_pv *pv = iflib_get_softc(ctx);

	(void)em_pv_tx_done(pv, q, pv->poll != 0);
	return (pv->poll != 0 ? 0 : BASE(ifdi_tx_queue_intr_enable)(ctx, q));
}

static int
em_pv_rx_queue_intr_enable(if_ctx_t ctx, uint16_t q)
{
	struct em_pv *pv = iflib_get_softc(ctx);

	return (pv->poll != 0 ? 0 : BASE(ifdi_rx_queue_intr_enable)(ctx, q));
}

static void
em_pv_poll(void *arg)
{
	struct em_pv *pv = arg;
	const u_int poll = atomic_load_int(&pv->poll);
	int q;

	if (poll == 0)
		return;
	pv->polls++;
	EM_PV_PROBE(pv, poll, 0);
	for (q = 0; q < pv->sc.rx_num_queues; q++)
		iflib_rx_intr_deferred(pv->sc.ctx, q);
	for (q = 0; q < pv->sc.tx_num_queues; q++)
		iflib_tx_intr_deferred(pv->sc.ctx, q);
	callout_reset_sbt(&pv->poll_callout, SBT_1S / poll, 0, em_pv_poll, pv,
	    C_DIRECT_EXEC);
}

/*
 * Modes.
 */

/*
 * Fill the guest's part of the CSB; guest_csb_on is last.  The caller then
 * writes a register, which tells the host.
 */
static void
em_pv_csb_fill(struct em_pv *pv)
{
	struct paravirt_csb *csb = pv->csb;
	const bool kicks = pv->poll == 0;

	mtx_assert(&pv->lock, MA_OWNED);
	atomic_store_32(&E82545_CSB_GUEST_NUMBERS(csb),
	    pv->sc.intr_type == IFLIB_INTR_MSI);
	atomic_store_32(&csb->guest_tdt, pv->tx[0].posted);
	atomic_store_32(&csb->guest_rdt, pv->rx.posted);
	atomic_store_32(&csb->guest_need_txkick, kicks ?
	    em_pv_ask(pv, &pv->tx_asked) : 0);
	atomic_store_32(&csb->guest_need_rxkick, kicks ?
	    em_pv_ask(pv, &pv->rx_asked) : 0);
	atomic_store_32(&csb->guest_txkick_at, NET_PARAVIRT_NONE);
	atomic_store_32(&csb->host_txcycles_lim, pv->tx_spin.sp_rounds);
	atomic_store_rel_32(&csb->guest_csb_on, pv->csb_on);
}

/*
 * Write the interval between interrupts: em(4)'s, unless the CSB is on or
 * somebody has set one.
 */
static void
em_pv_itr(struct em_pv *pv)
{
	const uint32_t itr = pv->csb_on || pv->itr_set ? pv->itr : pv->itr_em;
	int i;

	E1000_WRITE_REG(&pv->sc.hw, E1000_ITR, itr);
	if (pv->sc.intr_type == IFLIB_INTR_MSIX)
		for (i = 0; i < pv->sc.rx_num_queues; i++)
			E1000_WRITE_REG(&pv->sc.hw, E1000_EITR_82574(i), itr);
}

/*
 * With MSI-X, em(4)'s filter for the link sets the causes in ims, and comes
 * again if one of them is set.  Those that are masked would be for ever.
 */
static void
em_pv_ims(struct em_pv *pv)
{
	pv->sc.ims = pv->poll != 0 ? 0 : pv->ims;
}

/*
 * Change a mode of a running adapter.  Both sides continue with the same
 * indices.  An interrupt that was due in the old mode may be lost, so both
 * tasks run once, and causes that the old mode left are read: with an MSI they
 * would keep the next message from being sent.
 */
static void
em_pv_mode(struct em_pv *pv)
{
	int q;

	mtx_lock_spin(&pv->lock);
	pv->csb_on = pv->csb_wanted != 0;
	for (q = 0; q < pv->sc.tx_num_queues; q++)
		if (pv->tx[q].tail != pv->tx[q].posted)
			em_pv_tx_post(pv, q);
	if (pv->csb != NULL) {
		em_pv_csb_fill(pv);
		E1000_WRITE_REG(&pv->sc.hw, E1000_TDT(0), pv->tx[0].posted);
		E1000_WRITE_REG(&pv->sc.hw, E1000_RDT(0), pv->rx.posted);
	}
	mtx_unlock_spin(&pv->lock);
	if (pv->csb != NULL)
		em_pv_itr(pv);
	em_pv_ims(pv);
	if (pv->poll != 0) {
		IFDI_INTR_DISABLE(pv->sc.ctx);
		callout_reset_sbt(&pv->poll_callout, SBT_1S / pv->poll, 0,
		    em_pv_poll, pv, C_DIRECT_EXEC);
	} else {
		callout_drain(&pv->poll_callout);
		pv->unread = true;
		/* A cause that remains in ICR causes no other message. */
		if (pv->sc.intr_type == IFLIB_INTR_MSIX) {
			E1000_WRITE_REG(&pv->sc.hw, EM_EIAC, pv->ims);
			(void)em_pv_causes(pv);
		}
		IFDI_INTR_ENABLE(pv->sc.ctx);
	}
	for (q = 0; q < pv->sc.rx_num_queues; q++)
		iflib_rx_intr_deferred(pv->sc.ctx, q);
	for (q = 0; q < pv->sc.tx_num_queues; q++)
		iflib_tx_intr_deferred(pv->sc.ctx, q);
}

/*
 * Have frames of 64 KB in clusters of a page: half as many as of the usual
 * size.  iflib(4) allocates them afterwards.
 */
static void
em_pv_rx_pages(struct em_pv *pv)
{
	pv->sc.shared->isc_rxd_buf_size[0] = 4096;
	E1000_WRITE_REG(&pv->sc.hw, E1000_RCTL, E1000_READ_REG(&pv->sc.hw,
	    E1000_RCTL) | E1000_RCTL_SZ_4096 | E1000_RCTL_BSEX);
}

/* Start, with an empty transmit ring and no buffer in the receive ring. */
static void
em_pv_init(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);
	if_softc_ctx_t scctx = iflib_get_softc_ctx(ctx);

	em_pv_ims(pv);
	BASE(ifdi_init)(ctx);
	memset(pv->tx, 0, sizeof(pv->tx));
	pv->rx = (struct em_pv_rx){ .seen = QIDX_INVALID, .kick = true };
	pv->unread = false;
	pv->csb_on = pv->csb_wanted != 0;
	lem_spin_init(&pv->tx_spin, EM_PV_ROUNDS);
	lem_spin_init(&pv->rx_spin, EM_PV_ROUNDS);
	scctx->isc_rxd_buf_size[0] = 0;
	if (pv->csb != NULL) {
		memset(pv->csb, 0, NET_PARAVIRT_CSB_SIZE);
		pv->csb->host_need_txkick = 1;
		pv->csb->host_rxkick_at = NET_PARAVIRT_NONE;
		pv->hdrs_on = em_pv_takes_partial(pv);
		if (pv->hdrs_on) {
			pv->csb->vnet_ring_high =
			    (uint64_t)pv->hdrs_dma.idi_paddr >> 32;
			pv->csb->vnet_ring_low = pv->hdrs_dma.idi_paddr;
			em_pv_rx_pages(pv);
		}
		mtx_lock_spin(&pv->lock);
		em_pv_csb_fill(pv);
		mtx_unlock_spin(&pv->lock);
		E1000_WRITE_REG(&pv->sc.hw, E82545_CSBAH,
		    pv->csb_dma.idi_paddr >> 32);
		E1000_WRITE_REG(&pv->sc.hw, E82545_CSBAL,
		    (uint32_t)pv->csb_dma.idi_paddr);
	}
	/* A user of netmap gets frames with their tags. */
	if (em_pv_netmap(pv))
		E1000_WRITE_REG(&pv->sc.hw, E1000_CTRL,
		    E1000_READ_REG(&pv->sc.hw, E1000_CTRL) & ~E1000_CTRL_VME);
	if (pv->csb != NULL)
		pv->itr_em = E1000_READ_REG(&pv->sc.hw, E1000_ITR);
	if (pv->csb_on || pv->itr_set)
		em_pv_itr(pv);
	if (pv->sc.intr_type == IFLIB_INTR_MSIX && pv->poll != 0)
		E1000_WRITE_REG(&pv->sc.hw, EM_EIAC, pv->ims);
	pv->running = true;
	if (pv->poll != 0)
		callout_reset_sbt(&pv->poll_callout, SBT_1S / pv->poll, 0,
		    em_pv_poll, pv, C_DIRECT_EXEC);
}

/* Whether the link is not as em(4) has told the stack. */
static bool
em_pv_link_changed(struct em_pv *pv)
{
	const bool up = (E1000_READ_REG(&pv->sc.hw, E1000_STATUS) &
	    E1000_STATUS_LU) != 0;

	return (up !=
	    (if_getlinkstate(iflib_get_ifp(pv->sc.ctx)) == LINK_STATE_UP));
}

/*
 * Called about twice a second, and when the link changes.  em(4) may have
 * written its own interval once more, after its AIM was turned off.
 *
 * While polling nobody says that the link has changed, and with numbers the
 * cause may be left unread.  em(4) reads its statistics each time, some 60
 * registers; with the CSB that is each fourth time.
 */
static void
em_pv_update_admin_status(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);
	bool *const look = &pv->sc.hw.mac.get_link_status;

	if (pv->running && pv->itr_set && !pv->csb_on)
		em_pv_itr(pv);
	if ((pv->poll != 0 || pv->csb_on) && em_pv_link_changed(pv))
		*look = true;
	if (!pv->csb_on || *look || pv->updates++ % 4 == 0)
		BASE(ifdi_update_admin_status)(ctx);
	if (pv->running && pv->hdrs_on != em_pv_takes_partial(pv)) {
		iflib_request_reset(ctx);
		iflib_admin_intr_deferred(ctx);
	}
}

/* A reset keeps the CSB, so its memory is withdrawn before. */
static void
em_pv_stop(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);

	callout_drain(&pv->poll_callout);
	mtx_lock_spin(&pv->lock);
	pv->running = pv->csb_on = false;
	if (pv->csb != NULL) {
		atomic_store_rel_32(&pv->csb->guest_csb_on, 0);
		E1000_WRITE_REG(&pv->sc.hw, E82545_CSBAH, 0);
		E1000_WRITE_REG(&pv->sc.hw, E82545_CSBAL, 0);
	}
	mtx_unlock_spin(&pv->lock);
	callout_drain(&pv->rx_callout);
	BASE(ifdi_stop)(ctx);
}

/*
 * Knobs, counters.
 */

static u_int
em_pv_knob_max(const struct em_pv *pv, const u_int *knob)
{
	return (knob == &pv->itr ? EM_PV_ITR_MAX :
	    knob == &pv->poll ? EM_PV_POLL_MAX :
	    knob == &pv->rx_share ? 100 : 1);
}

/*
 * Set itr.  em(4) adapts the interval no longer: releases that do have a
 * variable for that, and 14.1 does not.
 */
static void
em_pv_set_itr(struct em_pv *pv)
{
	char name[sizeof("dev.em.2147483647.enable_aim")];
	int off = 0;

	snprintf(name, sizeof(name), "dev.em.%d.enable_aim",
	    device_get_unit(pv->sc.dev));
	(void)kernel_sysctlbyname(curthread, name, NULL, NULL, &off,
	    sizeof(off), NULL, 0);
	pv->itr_set = true;
	if (pv->running)
		em_pv_itr(pv);
}

static int
em_pv_sysctl(SYSCTL_HANDLER_ARGS)
{
	struct em_pv *pv = arg1;
	u_int *knob = (u_int *)((char *)pv + arg2);
	u_int value = *knob;
	struct sx *ctx_lock = iflib_ctx_lock_get(pv->sc.ctx);
	/* Attach has the lock, and reads tunables. */
	const bool attaching = sx_xlocked(ctx_lock);
	int error;

	error = sysctl_handle_int(oidp, &value, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	if (value > em_pv_knob_max(pv, knob) ||
	    (value == 0 && knob == &pv->rx_share))
		return (EINVAL);
	if (knob == &pv->csb_wanted && value != 0 && pv->csb == NULL)
		return (EOPNOTSUPP);
	/* Detach has the lock, and waits for us to leave. */
	while (!attaching && !sx_try_xlock(ctx_lock)) {
		if (atomic_load_bool(&pv->detaching))
			return (ENXIO);
		pause_sbt("em_pv", SBT_1MS, 0, 0);
	}
	if (*knob != value || knob == &pv->itr) {
		atomic_store_int(knob, value);
		if (knob == &pv->itr)
			em_pv_set_itr(pv);
		else if (pv->running && knob != &pv->rx_share)
			em_pv_mode(pv);
	}
	if (!attaching)
		sx_xunlock(ctx_lock);
	return (0);
}

static const struct em_pv_knob {
	const char	*name, *text;
	size_t		 offset;
} em_pv_knobs[] = {
	{ "itr", "Minimum interval between interrupts, in units of 256 ns",
	    offsetof(struct em_pv, itr) },
	{ "sc", "Send combining", offsetof(struct em_pv, sc_on) },
	{ "csb", "Notification by shared memory, if the adapter has a CSB",
	    offsetof(struct em_pv, csb_wanted) },
	{ "poll", "Polls a second in place of interrupts; 0: interrupts",
	    offsetof(struct em_pv, poll) },
	{ "rx_share", "Percentage of a processor that reception may use while "
	    "other threads want it", offsetof(struct em_pv, rx_share) },
}, em_pv_counters[] = {
	{ "tx_kicks", "writes to TDT", offsetof(struct em_pv, tx_kicks) },
	{ "tx_kicks_saved", "flushes without a write to TDT",
	    offsetof(struct em_pv, tx_kicks_saved) },
	{ "tx_combined", "flushes deferred by send combining",
	    offsetof(struct em_pv, tx_combined) },
	{ "tx_flushes", "writes to TDT of deferred packets",
	    offsetof(struct em_pv, tx_flushes) },
	{ "rx_kicks", "writes to RDT", offsetof(struct em_pv, rx_kicks) },
	{ "rx_kicks_saved", "refills without a write to RDT",
	    offsetof(struct em_pv, rx_kicks_saved) },
	{ "rx_offload", "frames received with a partial checksum",
	    offsetof(struct em_pv, rx_offload) },
	{ "rx_bad", "frames with an invalid header, or too long",
	    offsetof(struct em_pv, rx_bad) },
	{ "rx_pauses", "times that reception let other threads run",
	    offsetof(struct em_pv, rx_pauses) },
	{ "intrs", "interrupts handled",
	    offsetof(struct em_pv, interrupts) },
	{ "icr_reads", "reads of the causes that are not em(4)'s own",
	    offsetof(struct em_pv, icr_reads) },
	{ "polls", "polls", offsetof(struct em_pv, polls) },
};

/* Remove em(4)'s own variable itr, which 14.1 has. */
static void
em_pv_remove_itr(device_t dev)
{
	struct sysctl_ctx_list *list = device_get_sysctl_ctx(dev);
	struct sysctl_ctx_entry *e;
	struct sysctl_oid *oid;

	TAILQ_FOREACH(e, list, link) {
		oid = e->entry;
		if (strcmp(oid->oid_name, "itr") == 0) {
			sysctl_ctx_entry_del(list, oid);
			sysctl_remove_oid(oid, 1, 0);
			return;
		}
	}
}

static int
em_pv_attach_post(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);
	struct sysctl_ctx_list *list = &pv->sysctls;
	struct sysctl_oid_list *child =
	    SYSCTL_CHILDREN(device_get_sysctl_tree(pv->sc.dev));
	const struct em_pv_knob *k;
	int error;

	error = BASE(ifdi_attach_post)(ctx);
	if (error != 0)
		return (error);
	pv->ims = pv->sc.ims;
	em_pv_remove_itr(pv->sc.dev);
	for (k = em_pv_knobs; k < em_pv_knobs + nitems(em_pv_knobs); k++)
		SYSCTL_ADD_PROC(list, child, OID_AUTO, k->name, CTLTYPE_UINT |
		    CTLFLAG_RWTUN | CTLFLAG_MPSAFE, pv, k->offset,
		    em_pv_sysctl, "IU", k->text);
	for (k = em_pv_counters; k < em_pv_counters + nitems(em_pv_counters);
	    k++)
		SYSCTL_ADD_ULONG(list, child, OID_AUTO, k->name, CTLFLAG_RD,
		    (u_long *)((char *)pv + k->offset), k->text);
	return (0);
}

/*
 * Attach, detach.
 */

static bool
em_pv_has_csb(device_t dev)
{
	int cap;

	return ((pci_find_cap(dev, PCIY_VENDOR, &cap) == 0 &&
	    pci_read_config(dev, cap + E82545_CSB_CAP_SIGNATURE, 4) ==
	    E82545_CSB_SIGNATURE &&
	    pci_read_config(dev, cap + E82545_CSB_CAP_VERSION, 4) ==
	    E82545_CSB_VERSION) ||
	    pci_get_subdevice(dev) == E82545_PCI_SUBDEVICE_CSB);
}

static int
em_pv_attach_pre(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);
	if_softc_ctx_t scctx = iflib_get_softc_ctx(ctx);
	int error;

	error = BASE(ifdi_attach_pre)(ctx);
	if (error != 0)
		return (error);
	pv->base = scctx->isc_txrx;
	pv->txrx = *scctx->isc_txrx;
	pv->txrx.ift_txd_flush = em_pv_txd_flush;
	pv->txrx.ift_txd_credits_update = em_pv_txd_credits_update;
	pv->txrx.ift_rxd_available = em_pv_rxd_available;
	pv->txrx.ift_rxd_pkt_get = em_pv_rxd_pkt_get;
	pv->txrx.ift_rxd_flush = em_pv_rxd_flush;
	pv->txrx.ift_legacy_intr = em_pv_intr;
	scctx->isc_txrx = &pv->txrx;
	if (!em_pv_has_csb(pv->sc.dev))
		return (0);
	/* The host cuts no segments for a guest with a header ring. */
	scctx->isc_capabilities |= IFCAP_TSO6;
	scctx->isc_capenable |= IFCAP_TSO;
	/* One queue, one message. */
	scctx->isc_msix_bar = -1;
	scctx->isc_disable_msix = 1;
	scctx->isc_nrxqsets_max = scctx->isc_ntxqsets_max = 1;
	return (0);
}

/* Allocate the CSB and the header ring; the driver does without them. */
static void
em_pv_csb_alloc(struct em_pv *pv)
{
	const size_t size = pv->sc.shared->isc_nrxd[0] * sizeof(*pv->hdrs);

	if (iflib_dma_alloc_align(pv->sc.ctx, NET_PARAVIRT_CSB_SIZE, PAGE_SIZE,
	    &pv->csb_dma, BUS_DMA_NOWAIT) != 0) {
		device_printf(pv->sc.dev, "no memory for the CSB\n");
		return;
	}
	pv->csb = (struct paravirt_csb *)pv->csb_dma.idi_vaddr;
	pv->csb_wanted = 1;
	pv->rx_share = EM_PV_SHARE;
	if (iflib_dma_alloc_align(pv->sc.ctx, size, PAGE_SIZE, &pv->hdrs_dma,
	    BUS_DMA_NOWAIT) == 0)
		pv->hdrs = (struct em_pv_hdr *)pv->hdrs_dma.idi_vaddr;
}

/*
 * The last step of attach after which a failure does not end in IFDI_DETACH:
 * what is ours begins here.
 */
static int
em_pv_rx_queues_alloc(if_ctx_t ctx, caddr_t *vaddrs, uint64_t *paddrs,
    int nrxqs, int nrxqsets)
{
	struct em_pv *pv = iflib_get_softc(ctx);
	int error;

	error = BASE(ifdi_rx_queues_alloc)(ctx, vaddrs, paddrs, nrxqs,
	    nrxqsets);
	if (error != 0)
		return (error);
	mtx_init(&pv->lock, device_get_nameunit(pv->sc.dev), "em_pv", MTX_SPIN);
	callout_init(&pv->poll_callout, 1);
	callout_init(&pv->rx_callout, 1);
	sysctl_ctx_init(&pv->sysctls);
	pv->rx_share = 100;
	if (em_pv_has_csb(pv->sc.dev))
		em_pv_csb_alloc(pv);
	return (0);
}

static int
em_pv_detach(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);
	int error;

	atomic_store_bool(&pv->detaching, true);
	sysctl_ctx_free(&pv->sysctls);
	error = BASE(ifdi_detach)(ctx);
	callout_drain(&pv->poll_callout);
	callout_drain(&pv->rx_callout);
	if (pv->hdrs != NULL)
		iflib_dma_free(&pv->hdrs_dma);
	if (pv->csb != NULL)
		iflib_dma_free(&pv->csb_dma);
	mtx_destroy(&pv->lock);
	return (error);
}

static device_method_t em_pv_if_methods[] = {
	DEVMETHOD(ifdi_attach_pre, em_pv_attach_pre),
	DEVMETHOD(ifdi_rx_queues_alloc, em_pv_rx_queues_alloc),
	DEVMETHOD(ifdi_attach_post, em_pv_attach_post),
	DEVMETHOD(ifdi_detach, em_pv_detach),
	DEVMETHOD(ifdi_init, em_pv_init),
	DEVMETHOD(ifdi_stop, em_pv_stop),
	DEVMETHOD(ifdi_intr_enable, em_pv_intr_enable),
	DEVMETHOD(ifdi_intr_disable, em_pv_intr_disable),
	DEVMETHOD(ifdi_update_admin_status, em_pv_update_admin_status),
	DEVMETHOD(ifdi_rx_queue_intr_enable, em_pv_rx_queue_intr_enable),
	DEVMETHOD(ifdi_tx_queue_intr_enable, em_pv_tx_queue_intr_enable),
	DEVMETHOD_END
};

static kobj_class_t em_pv_if_bases[] = { (kobj_class_t)&em_if_driver, NULL };

static driver_t em_pv_if_driver = {
	"em_if", em_pv_if_methods, sizeof(struct em_pv), em_pv_if_bases
};

static struct if_shared_ctx em_pv_sctx;

static void
em_pv_sysinit(void *arg __unused)
{
	em_pv_sctx = em_sctx_init;
	em_pv_sctx.isc_driver = &em_pv_if_driver;
}
SYSINIT(em_pv, SI_SUB_DRIVERS, SI_ORDER_FIRST, em_pv_sysinit, NULL);

/* The adapters of hypervisors are of these kinds. */
static const uint16_t em_pv_devices[] = {
	0x100e,		/* 82540EM */
	0x100f,		/* 82545EM */
	0x10d3		/* 82574L */
};

/*
 * Whether the subsystem is a hypervisor's.  Those that have the subsystem of a
 * board (VirtualBox's 82540EM, QEMU's 82574L) cannot be told from hardware that
 * is passed through.
 */
static bool
em_pv_emulated(device_t dev)
{
	switch (pci_get_subvendor(dev)) {
	case 0x15ad:	/* VMware; also VirtualBox's 82545EM */
	case 0x1af4:	/* QEMU */
		return (true);
	case 0x8086:
		return (pci_get_subdevice(dev) == E82545_PCI_SUBDEVICE);
	default:
		return (false);
	}
}

void *
em_pv_register(device_t dev)
{
	size_t i;

	if (pci_get_vendor(dev) != 0x8086 || (!em_pv_has_csb(dev) &&
	    (vm_guest == VM_GUEST_NO || !em_pv_emulated(dev))))
		return (NULL);
	for (i = 0; i < nitems(em_pv_devices); i++)
		if (pci_get_device(dev) == em_pv_devices[i])
			return (&em_pv_sctx);
	return (NULL);
}
