/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Native netmap(4): descriptors point at netmap's buffers.
 *
 * lem_core keeps the rings, and the krings follow it.  In both directions a
 * netmap slot is one descriptor, so their indices differ by nkr_hwofs only.
 *
 * Transmit: txsync passes the new slots to lem_tx().  The slots before
 * lem_core's head belong to the user again.
 *
 * Receive: lem_rx() reports each received slot, in order, and nr_hwtail moves
 * past the last slot of each frame.  lem_rx() refills the slots that the user
 * has released, those before nr_hwcur; one slot always stays empty.
 *
 * A sync holds the lock of its side while it uses the ring and the kring.
 */

#include <dev/e1000/if_lem.h>

#include <sys/selinfo.h>
#include <vm/vm.h>
#include <vm/pmap.h>

#include <net/netmap.h>
#include <dev/netmap/netmap_kern.h>

static int
lem_netmap_register(struct netmap_adapter *na, int onoff)
{
	struct lem_softc *sc = if_getsoftc(na->ifp);
	int error;

	/* The adapter assumes receive buffers of MCLBYTES. */
	if (onoff && NETMAP_BUF_SIZE(na) < MCLBYTES)
		return (EINVAL);
	sx_xlock(&sc->ctl);
	lem_down(sc);
	if (onoff)
		nm_set_native_flags(na);
	else
		nm_clear_native_flags(na);
	error = lem_up(sc);
	sx_xunlock(&sc->ctl);
	return (error);
}

/* The DMA address of a slot's buffer; 0 if the slot's index is invalid. */
static uint64_t
lem_netmap_addr(struct netmap_adapter *na, struct netmap_slot *slot)
{
	uint64_t addr;

	if (PNMB(na, slot, &addr) == NETMAP_BUF_BASE(na))
		return (0);
	slot->flags &= ~NS_BUF_CHANGED;
	return (addr);
}

/*
 * Queue the packet that starts at nr_hwcur, and advance nr_hwcur past it.  One
 * that is too short is not sent: a bridge swaps slots, and those of a dropped
 * frame are empty.  Returns EAGAIN if the user has not written its last slot
 * yet.
 */
static int
lem_netmap_packet(struct lem_softc *sc, struct netmap_kring *kring)
{
	struct lem_packet lp = { .lpk_segs = sc->tx_seg };
	struct netmap_slot *slot;
	struct lem_seg *seg;
	u_int i = kring->nr_hwcur;
	uint32_t len = 0;
	int error;

	mtx_assert(&sc->tx.mtx, MA_OWNED);
	do {
		if (i == kring->rhead)
			return (EAGAIN);
		if (lp.lpk_nsegs == LEM_TX_MAXSEGS)
			return (EINVAL);
		slot = &kring->ring->slot[i];
		seg = &sc->tx_seg[lp.lpk_nsegs++];
		seg->ls_len = slot->len;
		seg->ls_addr = lem_netmap_addr(kring->na, slot);
		if (seg->ls_addr == 0 ||
		    seg->ls_len > NETMAP_BUF_SIZE(kring->na))
			return (EINVAL);
		len += seg->ls_len;
		i = nm_next(i, kring->nkr_num_slots - 1);
	} while (slot->flags & NS_MOREFRAG);
	if (len < ETHER_HDR_LEN) {
		if_inc_counter(sc->ifp, IFCOUNTER_OERRORS, 1);
		error = lem_tx_skip(&sc->core, lp.lpk_nsegs);
	} else
		error = lem_tx(&sc->core, &lp);
	if (error == 0)
		kring->nr_hwcur = i;
	return (error);
}

/* The last slot that lem_core has cleaned. */
static u_int
lem_netmap_tx_tail(struct lem_core *lc, struct netmap_kring *kring)
{
	return (nm_prev(netmap_idx_n2k(kring, lc->lc_tx_head),
	    kring->nkr_num_slots - 1));
}

static int
lem_netmap_txsync(struct netmap_kring *kring, int flags __unused)
{
	struct lem_softc *sc = if_getsoftc(kring->na->ifp);
	struct lem_core *lc = &sc->core;
	int error = 0;

	mtx_lock(&sc->tx.mtx);
	if (lc->lc_running && sc->tx.netmap) {
		while (error == 0 && kring->nr_hwcur != kring->rhead)
			error = lem_netmap_packet(sc, kring);
		lem_tx_flush(lc);
		lem_tx_clean(lc);
		if (kring->rcur == lem_netmap_tx_tail(lc, kring))
			lem_tx_wait(lc, 1);
		kring->nr_hwtail = lem_netmap_tx_tail(lc, kring);
	}
	mtx_unlock(&sc->tx.mtx);
	return (error == EINVAL ? netmap_ring_reinit(kring) : 0);
}

static int
lem_netmap_rxsync(struct netmap_kring *kring, int flags __unused)
{
	struct lem_softc *sc = if_getsoftc(kring->na->ifp);
	bool bad;

	if (kring->rhead >= kring->nkr_num_slots)
		return (netmap_ring_reinit(kring));
	mtx_lock(&sc->rx.mtx);
	sc->rx_bad = false;
	if (sc->core.lc_running && sc->rx.netmap) {
		kring->nr_hwcur = kring->rhead;
		lem_rx(&sc->core, kring->nkr_num_slots);
		kring->nr_kflags &= ~NKR_PENDINTR;
		/* With frames in the ring nobody waits. */
		if (kring->nr_hwtail == kring->rhead &&
		    lem_intr_enable(&sc->core))
			taskqueue_enqueue(sc->tq, &sc->intr_task);
	}
	bad = sc->rx_bad;
	mtx_unlock(&sc->rx.mtx);
	return (bad ? netmap_ring_reinit(kring) : 0);
}

/* lem_core's hooks. */

uint64_t
lem_netmap_rx_buf(struct lem_softc *sc, uint32_t slot)
{
	struct netmap_kring *kring = NA(sc->ifp)->rx_rings[0];
	u_int i = netmap_idx_n2k(kring, slot);
	uint64_t addr;

	mtx_assert(&sc->rx.mtx, MA_OWNED);
	if (i == nm_prev(kring->nr_hwcur, kring->nkr_num_slots - 1))
		return (0);
	addr = lem_netmap_addr(kring->na, &kring->ring->slot[i]);
	if (addr == 0)
		sc->rx_bad = true;
	return (addr);
}

/* The slots of a dropped frame become empty, and go to the user. */
void
lem_netmap_rx(struct lem_softc *sc, uint32_t slot, uint32_t len, uint32_t flags)
{
	struct netmap_kring *kring = NA(sc->ifp)->rx_rings[0];
	struct netmap_slot *slots = kring->ring->slot;
	u_int i, lim = kring->nkr_num_slots - 1;

	mtx_assert(&sc->rx.mtx, MA_OWNED);
	slot = netmap_idx_n2k(kring, slot);
	slots[slot].len = len;
	if ((flags & (LEM_RX_EOP | LEM_RX_BAD)) == 0) {
		slots[slot].flags = NS_MOREFRAG;
		return;
	}
	slots[slot].flags = 0;
	if ((flags & LEM_RX_BAD) != 0)
		for (i = kring->nr_hwtail; i != slot; i = nm_next(i, lim))
			slots[i].len = slots[i].flags = 0;
	kring->nr_hwtail = nm_next(slot, lim);
}

void
lem_netmap_start(struct lem_softc *sc)
{
	sx_assert(&sc->ctl, SX_XLOCKED);
	mtx_assert(&sc->rx.mtx, MA_OWNED);
	mtx_assert(&sc->tx.mtx, MA_OWNED);
	sc->tx.netmap = netmap_reset(NA(sc->ifp), NR_TX, 0, 0) != NULL;
	sc->rx.netmap = netmap_reset(NA(sc->ifp), NR_RX, 0, 0) != NULL;
}

bool
lem_netmap_irq(struct lem_softc *sc)
{
	u_int done;

	(void)netmap_tx_irq(sc->ifp, 0);
	return (netmap_rx_irq(sc->ifp, 0, &done) == NM_IRQ_RESCHED);
}

int
lem_netmap_attach(struct lem_softc *sc)
{
	struct netmap_adapter na = {
		.ifp = sc->ifp,
		.na_flags = NAF_BDG_MAYSLEEP | NAF_MOREFRAG,
		.num_tx_desc = LEM_NDESC,
		.num_rx_desc = LEM_NDESC,
		.num_tx_rings = 1,
		.num_rx_rings = 1,
		.rx_buf_maxsize = MCLBYTES,
		.nm_register = lem_netmap_register,
		.nm_txsync = lem_netmap_txsync,
		.nm_rxsync = lem_netmap_rxsync,
	};

	return (netmap_attach(&na));
}

int
lem_netmap_detach(struct lem_softc *sc)
{
	if (nm_netmap_on(NA(sc->ifp)))
		return (EBUSY);
	netmap_detach(sc->ifp);
	return (0);
}
