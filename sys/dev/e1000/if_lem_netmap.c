/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * netmap(4), native: the rings' descriptors point at netmap's buffers.
 *
 * lem_core keeps the descriptors, and the krings follow it.  A netmap slot is
 * one descriptor, both ways, so that descriptor and slot differ by nkr_hwofs
 * alone.  Transmit: what txsync finds goes to lem_tx(), and the slots up to
 * lem_core's first descriptor not cleaned are the user's again.  Receive:
 * lem_rx() reports each slot that was filled, in order, and asks for the
 * buffers of those that the user has released; one slot always stays out.
 *
 * The syncs hold the lock of their side for as long as they touch the ring or
 * the kring.
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
	bool up;
	int error = 0;

	/* Receive buffers are given to the adapter as MCLBYTES each. */
	if (onoff && NETMAP_BUF_SIZE(na) < MCLBYTES)
		return (EINVAL);
	sx_xlock(&sc->ctl);
	up = (if_getflags(sc->ifp) & IFF_UP) != 0;
	lem_down(sc);
	if (onoff)
		nm_set_native_flags(na);
	else
		nm_clear_native_flags(na);
	if (up) {
		lem_up(sc);
		if (!sc->core.lc_running)
			error = ENXIO;
	}
	sx_xunlock(&sc->ctl);
	return (error);
}

/* The address of a slot's buffer; 0 if it names none. */
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
 * Gather the packet that starts at slot *ip and queue it.  *ip moves past it.
 * EAGAIN: its last slot is still to come.
 */
static int
lem_netmap_packet(struct lem_softc *sc, struct netmap_kring *kring, u_int *ip)
{
	struct lem_packet lp = { .lp_segs = sc->tx_seg };
	struct netmap_adapter *na = kring->na;
	struct netmap_slot *slot;
	struct lem_seg *seg;
	uint32_t last;
	u_int i = *ip;
	int error;
	bool more;

	do {
		if (i == kring->rhead)
			return (EAGAIN);
		if (lp.lp_nsegs == LEM_TX_MAXSEGS)
			return (EINVAL);
		slot = &kring->ring->slot[i];
		seg = &sc->tx_seg[lp.lp_nsegs++];
		seg->ls_len = slot->len;
		seg->ls_addr = lem_netmap_addr(na, slot);
		if (seg->ls_addr == 0 || seg->ls_len > NETMAP_BUF_SIZE(na))
			return (EINVAL);
		lp.lp_len += seg->ls_len;
		more = (slot->flags & NS_MOREFRAG) != 0;
		i = nm_next(i, kring->nkr_num_slots - 1);
	} while (more);
	error = lem_tx(&sc->core, &lp, &last);
	if (error == 0)
		*ip = i;
	return (error);
}

/* Give the user the slots that lem_core is done with. */
static void
lem_netmap_tx_show(struct lem_core *lc, struct netmap_kring *kring)
{
	kring->nr_hwtail = nm_prev(netmap_idx_n2k(kring, lc->lc_tx_head),
	    kring->nkr_num_slots - 1);
}

static int
lem_netmap_txsync(struct netmap_kring *kring, int flags __unused)
{
	struct lem_softc *sc = if_getsoftc(kring->na->ifp);
	struct lem_core *lc = &sc->core;
	int error = 0;
	u_int i;

	mtx_lock(&sc->tx_mtx);
	if (!lc->lc_running || !sc->nm_tx) {
		mtx_unlock(&sc->tx_mtx);
		return (0);
	}
	i = kring->nr_hwcur;
	while (error == 0 && i != kring->rhead)
		error = lem_netmap_packet(sc, kring, &i);
	kring->nr_hwcur = i;
	lem_tx_flush(lc);
	lem_tx_clean(lc);
	lem_netmap_tx_show(lc, kring);
	if (kring->rcur == kring->nr_hwtail) {
		lem_tx_wait(lc);
		lem_netmap_tx_show(lc, kring);
	}
	mtx_unlock(&sc->tx_mtx);
	return (error == EINVAL ? netmap_ring_reinit(kring) : 0);
}

/*
 * Show the user what came in, but for a frame that is not whole yet.  Slots
 * that lem_core passed over, since what came in was bad, go to the user empty;
 * that they hold no buffer any more is lem_core's to know, as the user may
 * change it.  They cannot have been given back yet: the slot before the user's
 * first never is.
 */
static void
lem_netmap_rx_show(struct lem_softc *sc, struct netmap_kring *kring)
{
	struct lem_core *lc = &sc->core;
	struct netmap_slot *slot;
	uint32_t i;

	for (i = sc->nm_rx_next; i != lc->lc_rx_next;
	    i = nm_next(i, lc->lc_nrxd - 1)) {
		if (lc->lc_rx_empty[i])
			continue;
		lc->lc_rx_empty[i] = true;
		lc->lc_rx_missing++;
		slot = &kring->ring->slot[netmap_idx_n2k(kring, i)];
		slot->len = slot->flags = 0;
	}
	sc->nm_rx_next = i;
	if (lc->lc_rx_len == 0)
		sc->nm_rx_frame = netmap_idx_n2k(kring, i);
	kring->nr_hwtail = sc->nm_rx_frame;
}

static int
lem_netmap_rxsync(struct netmap_kring *kring, int flags __unused)
{
	struct lem_softc *sc = if_getsoftc(kring->na->ifp);
	bool bad = false;

	if (kring->rhead >= kring->nkr_num_slots)
		return (netmap_ring_reinit(kring));
	mtx_lock(&sc->rx_mtx);
	if (sc->core.lc_running && sc->nm_rx) {
		kring->nr_hwcur = sc->nm_rx_head = kring->rhead;
		lem_rx(&sc->core, kring->nkr_num_slots);
		lem_netmap_rx_show(sc, kring);
		kring->nr_kflags &= ~NKR_PENDINTR;
		bad = sc->nm_bad;
		sc->nm_bad = false;
	}
	mtx_unlock(&sc->rx_mtx);
	return (bad ? netmap_ring_reinit(kring) : 0);
}

/* lem_core's hooks, rx_mtx held. */

static struct netmap_kring *
lem_netmap_rx_kring(struct lem_softc *sc)
{
	return (NA(sc->ifp)->rx_rings[0]);
}

uint64_t
lem_netmap_rx_buf(struct lem_softc *sc, uint32_t slot)
{
	struct netmap_kring *kring = lem_netmap_rx_kring(sc);
	u_int i = netmap_idx_n2k(kring, slot);
	uint64_t addr;

	if (i == nm_prev(sc->nm_rx_head, kring->nkr_num_slots - 1))
		return (0);
	addr = lem_netmap_addr(kring->na, &kring->ring->slot[i]);
	if (addr == 0)
		sc->nm_bad = true;
	return (addr);
}

void
lem_netmap_rx(struct lem_softc *sc, uint32_t slot, const struct lem_rx *rx)
{
	struct netmap_kring *kring = lem_netmap_rx_kring(sc);
	u_int i = netmap_idx_n2k(kring, slot);

	kring->ring->slot[i].len = rx->len;
	kring->ring->slot[i].flags = rx->eop ? 0 : NS_MOREFRAG;
	if (rx->eop)
		sc->nm_rx_frame = nm_next(i, kring->nkr_num_slots - 1);
}

/* The slots of a frame that came to nothing go to the user empty. */
void
lem_netmap_rx_drop(struct lem_softc *sc)
{
	struct netmap_kring *kring = lem_netmap_rx_kring(sc);
	uint32_t end = netmap_idx_n2k(kring, sc->core.lc_rx_next);
	struct netmap_slot *slot;

	for (; sc->nm_rx_frame != end; sc->nm_rx_frame =
	    nm_next(sc->nm_rx_frame, kring->nkr_num_slots - 1)) {
		slot = &kring->ring->slot[sc->nm_rx_frame];
		slot->len = slot->flags = 0;
	}
}

void
lem_netmap_start(struct lem_softc *sc)
{
	struct netmap_adapter *na = NA(sc->ifp);
	struct netmap_kring *kring;

	sc->nm_tx = netmap_reset(na, NR_TX, 0, 0) != NULL;
	sc->nm_rx = netmap_reset(na, NR_RX, 0, 0) != NULL;
	sc->nm_bad = false;
	if (sc->nm_rx) {
		kring = na->rx_rings[0];
		sc->nm_rx_head = kring->nr_hwcur;
		sc->nm_rx_frame = kring->nr_hwtail;
		sc->nm_rx_next = 0;
	}
}

bool
lem_netmap_rx_irq(struct lem_softc *sc)
{
	u_int done;

	return (sc->nm_rx &&
	    netmap_rx_irq(sc->ifp, 0, &done) != NM_IRQ_PASS);
}

bool
lem_netmap_tx_irq(struct lem_softc *sc)
{
	if (!sc->nm_tx)
		return (false);
	/* Send combining counts on it, whether or not the user comes. */
	lem_txeof(sc);
	return (netmap_tx_irq(sc->ifp, 0) != NM_IRQ_PASS);
}

bool
lem_netmap_busy(struct lem_softc *sc)
{
	return (nm_netmap_on(NA(sc->ifp)));
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

void
lem_netmap_detach(struct lem_softc *sc)
{
	netmap_detach(sc->ifp);
}
