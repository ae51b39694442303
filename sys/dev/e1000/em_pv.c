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
 *	IFDI_RESUME, IFDI_MEDIA_CHANGE	withdraw the CSB
 *	IFDI_UPDATE_ADMIN_STATUS requests a reset if the header ring must be
 *				placed or withdrawn; writes ITR again; looks at
 *				the link
 *
 *	em_pv.c		the class: its methods, interrupts, modes
 *	em_pv_txrx.c	the functions of the rings, reception's share
 *	em_pv_sysctl.c	knobs and counters
 *
 * em_register() asks em_pv_register() for the class, for each device.  Hardware
 * gets em(4)'s own, in which nothing changes.
 *
 * em_pv.lock protects the tails, the CSB and the modes: a spin lock, because
 * iflib_fast_intr_rxtx() calls IFDI_INTR_ENABLE in a filter.  Descriptors
 * belong to iflib's locks of the queues: the functions of if_txrx run with
 * these.
 */

#include "em_pv.h"

#include "e82545_csb_reg.h"

#define	EM_PV_ROUNDS	1024		/* of a spin, at most */
#define	EM_PV_SHARE	20		/* percent: docs/freebsd.md */

extern driver_t em_if_driver;
extern struct if_shared_ctx em_sctx_init;
int	em_intr(void *);
void	*em_pv_register(device_t);

SDT_PROVIDER_DEFINE(lem);
SDT_PROBE_DEFINE2(lem, , , interrupt, "char *", "uint32_t");
SDT_PROBE_DEFINE2(lem, , , poll, "char *", "uint32_t");

/* Call em(4)'s method. */
#define	BASE(method)							\
	((method##_t *)kobj_lookup_method((kobj_class_t)&em_if_driver,	\
	    NULL, &method##_desc)->func)

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
 * Handle an interrupt while packets are held back.  If it is only for reports,
 * and another report is to come, as that of the packets that are posted now,
 * nothing is masked.  iflib(4)'s task, which looks for what iflib(4) has put
 * off, runs after the last report.  The causes are read first: the read clears
 * them.
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

/*
 * Return whether the interrupt is that of the last request, whose number the
 * host then has.
 */
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
 * Handle a line or an MSI, as a filter.  With the CSB the causes stay unmasked,
 * and those of an MSI are read only if the host has another reason than a
 * request.
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
 * Post what was held back, and ask for the next interrupt.  Both tasks of
 * iflib(4) come here at their end, and iflib(4)'s filter, if one of the two has
 * nothing to do.
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
	if (em_pv_rx_pauses(pv, false))
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

void
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
 * Set the causes that, with MSI-X, em(4)'s filter for the link sets again, and
 * for which it comes again: none while polls are on, or the masked causes would
 * interrupt for ever.
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
void
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

/* Return whether the link is not as em(4) has told the stack. */
static bool
em_pv_link_changed(struct em_pv *pv)
{
	const bool up = (E1000_READ_REG(&pv->sc.hw, E1000_STATUS) &
	    E1000_STATUS_LU) != 0;

	return (up !=
	    (if_getlinkstate(iflib_get_ifp(pv->sc.ctx)) == LINK_STATE_UP));
}

/*
 * Look at the link and the header ring, about twice a second and when the link
 * changes.  em(4) may have written its own interval once more, after its AIM
 * was turned off.
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

/* Withdraw the CSB's memory, as a reset keeps the CSB, and stop. */
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
 * Resume, change the media.  em(4) resets and starts the adapter for both, and
 * iflib(4) stops and starts the driver only afterwards.  In between no flush
 * may announce an old index, by the CSB or a tail: the adapter begins at 0,
 * would send old packets once more, and use buffers that the stack has.
 */
static int
em_pv_resume(if_ctx_t ctx)
{
	em_pv_stop(ctx);
	return (BASE(ifdi_resume)(ctx));
}

static int
em_pv_media_change(if_ctx_t ctx)
{
	em_pv_stop(ctx);
	return (BASE(ifdi_media_change)(ctx));
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
	em_pv_txrx_init(pv);
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
 * Initialize what is ours: this is the last step of attach after which a
 * failure does not end in IFDI_DETACH.
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
em_pv_attach_post(if_ctx_t ctx)
{
	struct em_pv *pv = iflib_get_softc(ctx);
	int error;

	error = BASE(ifdi_attach_post)(ctx);
	if (error != 0)
		return (error);
	pv->ims = pv->sc.ims;
	em_pv_sysctl_attach(pv);
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
	DEVMETHOD(ifdi_resume, em_pv_resume),
	DEVMETHOD(ifdi_media_change, em_pv_media_change),
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
 * Return whether the subsystem is a hypervisor's.  Adapters that have the
 * subsystem of a board (VirtualBox's 82540EM, QEMU's 82574L) cannot be told
 * from hardware that is passed through.
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
