/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * em(4) for the 8254x that hypervisors emulate: newbus, interface, interrupts,
 * sysctls.  The adapter itself is driven by lem_core.c; packets are in
 * if_lem_txrx.c; locks are told in if_lem.h.
 *
 * Life of an adapter.  Attach leaves it reset and silent; lem_up() starts it,
 * lem_down() brings it back to that state, and all that reconfigures the rings
 * (MTU, netmap, a reset, resume) is a lem_down() and a lem_up().
 *
 * Interrupts.  The filter reads the causes, which masks further ones, and wakes
 * a task; the task works in batches of rx_budget frames and goes to the back of
 * its queue after each, until the ring is empty, and only then lets interrupts
 * in again.  With DEVICE_POLLING the same work is done by the poll handler.
 *
 * Once a second the tick takes completions that no interrupt told of (lazy
 * completion counts on it), and resets the adapter where packets do not come
 * back or the core has given it up.
 *
 * The stock driver of the same name leaves these adapters to this one where
 * both are there, by BUS_PROBE_VENDOR; without a hypervisor this one does not
 * probe at all.
 */

#ifdef HAVE_KERNEL_OPTION_HEADERS
#include "opt_device_polling.h"
#endif

#include <dev/e1000/if_lem.h>

#include <sys/kernel.h>
#include <sys/mbuf.h>
#include <sys/module.h>
#include <sys/priority.h>
#include <sys/sockio.h>
#include <sys/sysctl.h>

#include <net/bpf.h>
#include <net/if_dl.h>
#include <net/if_types.h>
#include <net/if_vlan_var.h>

#include <dev/pci/pcireg.h>
#include <dev/pci/pcivar.h>

#define	LEM_VENDOR_INTEL	0x8086

#define	LEM_ITR_DEFAULT		488	/* 8000 interrupts a second */
#define	LEM_RX_BUDGET_DEFAULT	256
#define	LEM_STUCK_MAX		5	/* seconds without a completion */

#define	LEM_HWASSIST	(CSUM_IP | CSUM_IP_TCP | CSUM_IP_UDP)
#define	LEM_HWASSIST6	(CSUM_IP6_TCP | CSUM_IP6_UDP)

/* hw.em.vm: drive what a hypervisor emulates. */
static int lem_vm = 1;
TUNABLE_INT("hw.em.vm", &lem_vm);

/* Copper adapters that lem_core knows; which of them exist as emulations: */
static const struct {
	uint16_t	 device;
	const char	*desc;
} lem_ids[] = {
	{ 0x1008, "Intel 82544EI, emulated" },
	{ 0x100c, "Intel 82544GC, emulated" },	/* QEMU */
	{ 0x100d, "Intel 82544GC (LOM), emulated" },
	{ 0x100e, "Intel 82540EM, emulated" },	/* QEMU, VirtualBox */
	{ 0x100f, "Intel 82545EM, emulated" },	/* these, bhyve, VMware */
	{ 0x1010, "Intel 82546EB, emulated" },
	{ 0x1015, "Intel 82540EM (LOM), emulated" },
	{ 0x1016, "Intel 82540EP (LOM), emulated" },
	{ 0x1017, "Intel 82540EP, emulated" },
	{ 0x1026, "Intel 82545GM, emulated" },
	{ 0x1079, "Intel 82546GB, emulated" },
};

/* Rings and the filters. */

static u_int
lem_hash_maddr(void *arg, struct sockaddr_dl *sdl, u_int count __unused)
{
	struct lem_softc *sc = arg;
	uint32_t bit = lem_mta_bit((const uint8_t *)LLADDR(sdl));

	sc->mta[bit / 32] |= 1U << (bit % 32);
	return (1);
}

static void
lem_filters(struct lem_softc *sc)
{
	sx_assert(&sc->ctl, SX_XLOCKED);
	memset(sc->mta, 0, sizeof(sc->mta));
	if_foreach_llmaddr(sc->ifp, lem_hash_maddr, sc);
	sc->if_flags = if_getflags(sc->ifp);
	lem_set_filter(&sc->core, (sc->if_flags & IFF_PROMISC) != 0,
	    (sc->if_flags & IFF_ALLMULTI) != 0, sc->mta);
}

/* Take the link's state, and tell the stack of a change. */
static void
lem_link_update(struct lem_softc *sc)
{
	int state;

	mtx_lock(&sc->rx_mtx);
	if (sc->core.lc_running) {
		lem_link(&sc->core);
		state = sc->core.lc_link ? LINK_STATE_UP : LINK_STATE_DOWN;
		if_link_state_change(sc->ifp, state);
	}
	mtx_unlock(&sc->rx_mtx);
}

/* Completions nobody told of, and an adapter that hangs.  tx_mtx held. */
static void
lem_tick(void *arg)
{
	struct lem_softc *sc = arg;

	if (!sc->core.lc_running)
		return;
	lem_txeof_locked(sc);
	if (sc->tx_done != sc->tx_done_seen || !sc->core.lc_link ||
	    lem_tx_idle(&sc->core)) {
		sc->tx_done_seen = sc->tx_done;
		sc->tx_stuck = 0;
	} else
		sc->tx_stuck++;
	if (sc->core.lc_dead || sc->tx_stuck >= LEM_STUCK_MAX) {
		sc->watchdogs++;
		taskqueue_enqueue(sc->tq, &sc->reset_task);
	} else if (sc->core.lc_rx_missing != 0 && !sc->nm_rx)
		taskqueue_enqueue(sc->tq, &sc->intr_task);
	callout_schedule(&sc->tick, hz);
}

static u_int
lem_mode_wanted(struct lem_softc *sc)
{
	u_int mode = sc->mode;

	if (if_getcapenable(sc->ifp) & IFCAP_POLLING)
		mode |= LEM_MODE_POLL;
	return (mode);
}

/* Put the mode in force.  ctl held. */
static int
lem_mode_update(struct lem_softc *sc)
{
	int error;

	mtx_lock(&sc->rx_mtx);
	mtx_lock(&sc->tx_mtx);
	error = lem_set_mode(&sc->core, lem_mode_wanted(sc));
	mtx_unlock(&sc->tx_mtx);
	mtx_unlock(&sc->rx_mtx);
	return (error);
}

void
lem_up(struct lem_softc *sc)
{
	if_t ifp = sc->ifp;
	uint32_t frame;
	int error;

	sx_assert(&sc->ctl, SX_XLOCKED);
	if (sc->detaching || sc->suspended || sc->core.lc_running)
		return;
	memcpy(sc->mac, if_getlladdr(ifp), sizeof(sc->mac));
	frame = if_getmtu(ifp) + ETHER_HDR_LEN + ETHER_VLAN_ENCAP_LEN +
	    ETHER_CRC_LEN;

	mtx_lock(&sc->rx_mtx);
	mtx_lock(&sc->tx_mtx);
	lem_netmap_start(sc);
	sc->core.lc_rx_bufsize = frame <= MCLBYTES || sc->nm_rx ?
	    MCLBYTES : MJUMPAGESIZE;
	error = lem_set_mode(&sc->core, lem_mode_wanted(sc));
	if (error == 0)
		error = lem_start(&sc->core, sc->mac, if_getmtu(ifp));
	sc->tx_stuck = 0;
	sc->tx_done_seen = sc->tx_done;
	if (error == 0)
		callout_reset(&sc->tick, hz, lem_tick, sc);
	mtx_unlock(&sc->tx_mtx);
	if (error != 0)
		lem_rx_purge(sc);
	mtx_unlock(&sc->rx_mtx);
	if (error != 0) {
		device_printf(sc->dev, "cannot start: error %d\n", error);
		return;
	}
	lem_set_vlan(&sc->core,
	    (if_getcapenable(ifp) & IFCAP_VLAN_HWTAGGING) != 0);
	lem_filters(sc);
	if_setdrvflagbits(ifp, IFF_DRV_RUNNING, 0);
	lem_intr_enable(&sc->core);
	lem_link_update(sc);
}

void
lem_down(struct lem_softc *sc)
{
	if_t ifp = sc->ifp;

	sx_assert(&sc->ctl, SX_XLOCKED);
	if_setdrvflagbits(ifp, 0, IFF_DRV_RUNNING);
	mtx_lock(&sc->rx_mtx);
	mtx_lock(&sc->tx_mtx);
	callout_stop(&sc->tick);
	if (sc->core.lc_running)
		lem_stop(&sc->core);
	mtx_unlock(&sc->tx_mtx);
	lem_rx_purge(sc);
	mtx_unlock(&sc->rx_mtx);
	lem_qflush(ifp);
	if ((if_getflags(ifp) & IFF_UP) == 0)
		if_link_state_change(ifp, LINK_STATE_UNKNOWN);
}

static void
lem_restart(struct lem_softc *sc)
{
	if (sc->core.lc_running) {
		lem_down(sc);
		lem_up(sc);
	}
}

static void
lem_init(void *arg)
{
	struct lem_softc *sc = arg;

	sx_xlock(&sc->ctl);
	lem_up(sc);
	sx_xunlock(&sc->ctl);
}

/* Interrupts, polling, the tick. */

static int
lem_filter(void *arg)
{
	struct lem_softc *sc = arg;
	uint32_t causes;

	causes = lem_intr(&sc->core);
	if (causes == 0)
		return (FILTER_STRAY);
	atomic_set_32(&sc->causes, causes);
	taskqueue_enqueue(sc->tq, &sc->intr_task);
	return (FILTER_HANDLED);
}

/* One batch each way; true: there is more to receive. */
static bool
lem_work(struct lem_softc *sc)
{
	u_int budget = sc->rx_budget;
	bool more = false;

	if (!lem_netmap_rx_irq(sc))
		more = lem_rxeof(sc, budget) >= budget;
	if (!lem_netmap_tx_irq(sc))
		lem_txeof(sc);
	return (more);
}

/* Let interrupts in again, unless the adapter was stopped meanwhile. */
static void
lem_rearm(struct lem_softc *sc)
{
	mtx_lock(&sc->rx_mtx);
	if (sc->core.lc_running)
		lem_intr_enable(&sc->core);
	mtx_unlock(&sc->rx_mtx);
}

static void
lem_intr_task(void *arg, int pending __unused)
{
	struct lem_softc *sc = arg;

	if (atomic_readandclear_32(&sc->causes) & LEM_INTR_LINK)
		lem_link_update(sc);
	if (lem_work(sc))
		taskqueue_enqueue(sc->tq, &sc->intr_task);
	else
		lem_rearm(sc);
}

static void
lem_tx_task(void *arg, int pending __unused)
{
	lem_txeof(arg);
}

#ifdef DEVICE_POLLING
static int
lem_poll(if_t ifp, enum poll_cmd cmd, int count)
{
	struct lem_softc *sc = if_getsoftc(ifp);
	int n = 0;

	if (cmd == POLL_AND_CHECK_STATUS)
		lem_link_update(sc);
	if (!lem_netmap_rx_irq(sc))
		n = lem_rxeof(sc, imin(count, sc->rx_budget));
	if (!lem_netmap_tx_irq(sc))
		lem_txeof(sc);
	return (n);
}
#endif

static void
lem_reset_task(void *arg, int pending __unused)
{
	struct lem_softc *sc = arg;

	device_printf(sc->dev, "%s, resetting\n", sc->core.lc_dead ?
	    "adapter out of order" : "transmission stuck");
	sx_xlock(&sc->ctl);
	lem_restart(sc);
	sx_xunlock(&sc->ctl);
}

/* Interface. */

static int
lem_media_change(if_t ifp __unused)
{
	return (0);
}

static void
lem_media_status(if_t ifp, struct ifmediareq *req)
{
	struct lem_softc *sc = if_getsoftc(ifp);

	req->ifm_status = IFM_AVALID;
	req->ifm_active = IFM_ETHER;
	if (sc->core.lc_running && sc->core.lc_link) {
		req->ifm_status |= IFM_ACTIVE;
		req->ifm_active |= IFM_1000_T | IFM_FDX;
	}
}

static uint64_t
lem_get_counter(if_t ifp, ift_counter which)
{
	struct lem_softc *sc = if_getsoftc(ifp);
	uint64_t n = if_get_counter_default(ifp, which);

	if (which == IFCOUNTER_IERRORS)
		n += sc->core.lc_stats.rx_errors + sc->core.lc_stats.rx_bad;
	else if (which == IFCOUNTER_OERRORS)
		n += sc->watchdogs;
	return (n);
}

static void
lem_hwassist(struct lem_softc *sc)
{
	int assist = 0, enabled = if_getcapenable(sc->ifp);

	if (enabled & IFCAP_TXCSUM)
		assist |= LEM_HWASSIST;
	if (enabled & IFCAP_TXCSUM_IPV6)
		assist |= LEM_HWASSIST6;
	if (enabled & IFCAP_TSO4)
		assist |= CSUM_IP_TSO;
	if (enabled & IFCAP_TSO6)
		assist |= CSUM_IP6_TSO;
	if_sethwassist(sc->ifp, assist);
}

static int
lem_set_caps(struct lem_softc *sc, int wanted)
{
	if_t ifp = sc->ifp;
	int change, error = 0;

	change = (wanted ^ if_getcapenable(ifp)) & if_getcapabilities(ifp);
#ifdef DEVICE_POLLING
	if (change & IFCAP_POLLING) {
		if (wanted & IFCAP_POLLING)
			error = ether_poll_register(lem_poll, ifp);
		else
			error = ether_poll_deregister(ifp);
		if (error != 0)
			return (error);
		if_togglecapenable(ifp, IFCAP_POLLING);
		error = lem_mode_update(sc);
		lem_rearm(sc);
		change &= ~IFCAP_POLLING;
	}
#endif
	if_togglecapenable(ifp, change);
	lem_hwassist(sc);
	if (change & IFCAP_VLAN_HWTAGGING)
		lem_set_vlan(&sc->core,
		    (if_getcapenable(ifp) & IFCAP_VLAN_HWTAGGING) != 0);
	if_vlancap(ifp);
	return (error);
}

static int
lem_set_flags(struct lem_softc *sc)
{
	int flags = if_getflags(sc->ifp);

	if ((flags & IFF_UP) == 0)
		lem_down(sc);
	else if (!sc->core.lc_running)
		lem_up(sc);
	else if ((flags ^ sc->if_flags) & (IFF_PROMISC | IFF_ALLMULTI))
		lem_filters(sc);
	return (0);
}

static int
lem_set_mtu(struct lem_softc *sc, int mtu)
{
	if (mtu < LEM_MTU_MIN || mtu > LEM_MTU_MAX)
		return (EINVAL);
	if_setmtu(sc->ifp, mtu);
	lem_restart(sc);
	return (0);
}

static int
lem_ioctl(if_t ifp, u_long cmd, caddr_t data)
{
	struct lem_softc *sc = if_getsoftc(ifp);
	struct ifreq *ifr = (struct ifreq *)data;
	int error = 0;

	switch (cmd) {
	case SIOCSIFMEDIA:
	case SIOCGIFMEDIA:
		return (ifmedia_ioctl(ifp, ifr, &sc->media, cmd));
	case SIOCSIFFLAGS:
	case SIOCSIFMTU:
	case SIOCSIFCAP:
	case SIOCADDMULTI:
	case SIOCDELMULTI:
		break;
	default:
		return (ether_ioctl(ifp, cmd, data));
	}
	sx_xlock(&sc->ctl);
	if (sc->detaching)
		error = ENXIO;
	else if (cmd == SIOCSIFFLAGS)
		error = lem_set_flags(sc);
	else if (cmd == SIOCSIFMTU)
		error = lem_set_mtu(sc, ifr->ifr_mtu);
	else if (cmd == SIOCSIFCAP)
		error = lem_set_caps(sc, ifr->ifr_reqcap);
	else if (sc->core.lc_running)
		lem_filters(sc);
	sx_xunlock(&sc->ctl);
	return (error);
}

/* Sysctls. */

static int
lem_sysctl_itr(SYSCTL_HANDLER_ARGS)
{
	struct lem_softc *sc = arg1;
	u_int itr = sc->core.lc_itr_256ns;
	int error;

	error = sysctl_handle_int(oidp, &itr, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	sx_xlock(&sc->ctl);
	error = lem_set_itr(&sc->core, itr);
	sx_xunlock(&sc->ctl);
	return (error);
}

/* A bit of the mode: arg2. */
static int
lem_sysctl_mode(SYSCTL_HANDLER_ARGS)
{
	struct lem_softc *sc = arg1;
	u_int on = (sc->mode & arg2) != 0, old;
	int error;

	error = sysctl_handle_int(oidp, &on, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	if (on > 1)
		return (EINVAL);
	sx_xlock(&sc->ctl);
	old = sc->mode;
	sc->mode = on ? old | arg2 : old & ~arg2;
	error = lem_mode_update(sc);
	if (error != 0)
		sc->mode = old;
	sx_xunlock(&sc->ctl);
	return (error);
}

static int
lem_sysctl_rx_budget(SYSCTL_HANDLER_ARGS)
{
	struct lem_softc *sc = arg1;
	u_int budget = sc->rx_budget;
	int error;

	error = sysctl_handle_int(oidp, &budget, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	if (budget < 1 || budget > LEM_NDESC)
		return (EINVAL);
	sc->rx_budget = budget;
	return (0);
}

static void
lem_sysctls(struct lem_softc *sc)
{
	struct sysctl_ctx_list *ctx = device_get_sysctl_ctx(sc->dev);
	struct sysctl_oid_list *top, *stats;
	struct sysctl_oid *node;
	struct lem_stats *ls = &sc->core.lc_stats;

	top = SYSCTL_CHILDREN(device_get_sysctl_tree(sc->dev));
#define	LEM_KNOB(name, handler, arg, what)				\
	SYSCTL_ADD_PROC(ctx, top, OID_AUTO, name, CTLTYPE_UINT |	\
	    CTLFLAG_RWTUN | CTLFLAG_MPSAFE, sc, arg, handler, "IU", what)
	LEM_KNOB("itr", lem_sysctl_itr, 0,
	    "Least time between interrupts, units of 256 ns; 0: none");
	LEM_KNOB("sc", lem_sysctl_mode, LEM_MODE_SC, "Send combining");
	LEM_KNOB("csb", lem_sysctl_mode, LEM_MODE_CSB,
	    "Shared-memory notification, where the adapter has it");
	LEM_KNOB("tx_lazy", lem_sysctl_mode, LEM_MODE_LAZY,
	    "No transmit interrupts until the ring runs short");
	LEM_KNOB("rx_budget", lem_sysctl_rx_budget, 0, "Frames a batch");
#undef LEM_KNOB
	node = SYSCTL_ADD_NODE(ctx, top, OID_AUTO, "stats",
	    CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Counters");
	stats = SYSCTL_CHILDREN(node);
#define	LEM_COUNTER(name, what)						\
	SYSCTL_ADD_U64(ctx, stats, OID_AUTO, #name, CTLFLAG_RD,	\
	    &ls->name, 0, what);
	LEM_STATS(LEM_COUNTER)
#undef LEM_COUNTER
	SYSCTL_ADD_U64(ctx, stats, OID_AUTO, "watchdogs", CTLFLAG_RD,
	    &sc->watchdogs, 0, "resets of an adapter that hung");
}

/* Attach and detach: each step with its own undo. */

static void
lem_dma_addr(void *arg, bus_dma_segment_t *segs, int nsegs __unused, int error)
{
	if (error == 0)
		*(bus_addr_t *)arg = segs[0].ds_addr;
}

static void
lem_dma_free(struct lem_dma *d)
{
	if (d->addr != 0)
		bus_dmamap_unload(d->tag, d->map);
	if (d->mem != NULL)
		bus_dmamem_free(d->tag, d->mem, d->map);
	if (d->tag != NULL)
		bus_dma_tag_destroy(d->tag);
	memset(d, 0, sizeof(*d));
}

/* One piece of zeroed memory, on a page of its own. */
static int
lem_dma_alloc(struct lem_dma *d, bus_dma_tag_t parent, bus_size_t size)
{
	int error;

	error = bus_dma_tag_create(parent, PAGE_SIZE, 0, BUS_SPACE_MAXADDR,
	    BUS_SPACE_MAXADDR, NULL, NULL, size, 1, size, 0, NULL, NULL,
	    &d->tag);
	if (error == 0)
		error = bus_dmamem_alloc(d->tag, &d->mem, BUS_DMA_WAITOK |
		    BUS_DMA_ZERO | BUS_DMA_COHERENT, &d->map);
	if (error == 0)
		error = bus_dmamap_load(d->tag, d->map, d->mem, size,
		    lem_dma_addr, &d->addr, BUS_DMA_NOWAIT);
	return (error);
}

static void
lem_free_rings(struct lem_softc *sc)
{
	lem_dma_free(&sc->core.lc_os.csb);
	lem_dma_free(&sc->core.lc_os.rxd);
	lem_dma_free(&sc->core.lc_os.txd);
}

static int
lem_alloc_rings(struct lem_softc *sc, bus_dma_tag_t parent)
{
	struct lem_core *lc = &sc->core;
	struct lem_os *os = &lc->lc_os;
	int error;

	error = lem_dma_alloc(&os->txd, parent,
	    LEM_NDESC * sizeof(*lc->lc_txd));
	if (error == 0)
		error = lem_dma_alloc(&os->rxd, parent,
		    LEM_NDESC * sizeof(*lc->lc_rxd));
	if (error == 0)
		error = lem_dma_alloc(&os->csb, parent,
		    NET_PARAVIRT_CSB_SIZE);
	if (error != 0)
		return (error);
	lc->lc_txd = os->txd.mem;
	lc->lc_txd_dma = os->txd.addr;
	lc->lc_rxd = os->rxd.mem;
	lc->lc_rxd_dma = os->rxd.addr;
	lc->lc_ntxd = lc->lc_nrxd = LEM_NDESC;
	lc->lc_rx_bufsize = MCLBYTES;
	lc->lc_csb = os->csb.mem;
	lc->lc_csb_dma = os->csb.addr;
	lc->lc_has_csb = pci_get_subdevice(sc->dev) == LEM_SUBDEVICE_CSB;
	return (0);
}

static void
lem_teardown_intr(struct lem_softc *sc)
{
	if (sc->irq_cookie != NULL)
		bus_teardown_intr(sc->dev, sc->irq, sc->irq_cookie);
	if (sc->irq != NULL)
		bus_release_resource(sc->dev, SYS_RES_IRQ, sc->irq_rid,
		    sc->irq);
	if (sc->irq_rid != 0)
		pci_release_msi(sc->dev);
	taskqueue_drain_all(sc->tq);
}

static int
lem_setup_intr(struct lem_softc *sc)
{
	int count = 1;

	if (pci_alloc_msi(sc->dev, &count) == 0)
		sc->irq_rid = 1;
	sc->irq = bus_alloc_resource_any(sc->dev, SYS_RES_IRQ, &sc->irq_rid,
	    RF_ACTIVE | (sc->irq_rid == 0 ? RF_SHAREABLE : 0));
	if (sc->irq == NULL)
		return (ENXIO);
	return (bus_setup_intr(sc->dev, sc->irq, INTR_TYPE_NET | INTR_MPSAFE,
	    lem_filter, NULL, sc, &sc->irq_cookie));
}

static void
lem_setup_ifp(struct lem_softc *sc)
{
	if_t ifp = sc->ifp;
	int caps;

	if_initname(ifp, device_get_name(sc->dev), device_get_unit(sc->dev));
	if_setdev(ifp, sc->dev);
	if_setsoftc(ifp, sc);
	if_setflags(ifp, IFF_BROADCAST | IFF_SIMPLEX | IFF_MULTICAST);
	if_setinitfn(ifp, lem_init);
	if_setioctlfn(ifp, lem_ioctl);
	if_settransmitfn(ifp, lem_transmit);
	if_setqflushfn(ifp, lem_qflush);
	if_setgetcounterfn(ifp, lem_get_counter);
	if_setbaudrate(ifp, IF_Gbps(1));
	if_setifheaderlen(ifp, sizeof(struct ether_vlan_header));
	if_sethwtsomax(ifp, LEM_TSO_MAX - ETHER_HDR_LEN -
	    ETHER_VLAN_ENCAP_LEN);
	if_sethwtsomaxsegcount(ifp, LEM_TX_MAXSEGS - 2);
	if_sethwtsomaxsegsize(ifp, PAGE_SIZE);
	caps = IFCAP_HWCSUM | IFCAP_HWCSUM_IPV6 | IFCAP_TSO | IFCAP_JUMBO_MTU |
	    IFCAP_VLAN_MTU | IFCAP_VLAN_HWTAGGING | IFCAP_VLAN_HWCSUM |
	    IFCAP_VLAN_HWTSO | IFCAP_LINKSTATE;
	if_setcapabilities(ifp, caps);
	/* QEMU's e1000 gives IPv6 segments a wrong length. */
	if_setcapenable(ifp, sc->core.lc_has_csb ? caps : caps & ~IFCAP_TSO6);
#ifdef DEVICE_POLLING
	if_setcapabilitiesbit(ifp, IFCAP_POLLING, 0);
#endif
	lem_hwassist(sc);
	ifmedia_init(&sc->media, IFM_IMASK, lem_media_change,
	    lem_media_status);
	ifmedia_add(&sc->media, IFM_ETHER | IFM_AUTO, 0, NULL);
	ifmedia_add(&sc->media, IFM_ETHER | IFM_1000_T | IFM_FDX, 0, NULL);
	ifmedia_set(&sc->media, IFM_ETHER | IFM_AUTO);
}

static int
lem_probe(device_t dev)
{
	u_int i;

	if (vm_guest == VM_GUEST_NO || lem_vm == 0 ||
	    pci_get_vendor(dev) != LEM_VENDOR_INTEL)
		return (ENXIO);
	for (i = 0; i < nitems(lem_ids); i++)
		if (lem_ids[i].device == pci_get_device(dev)) {
			device_set_desc(dev, lem_ids[i].desc);
			return (BUS_PROBE_VENDOR);
		}
	return (ENXIO);
}

/* Undo lem_attach_hw(), whole or in part. */
static void
lem_detach_hw(struct lem_softc *sc)
{
	lem_txrx_free(sc);
	lem_free_rings(sc);
	if (sc->core.lc_os.mem != NULL)
		bus_release_resource(sc->dev, SYS_RES_MEMORY, sc->mem_rid,
		    sc->core.lc_os.mem);
	pci_disable_busmaster(sc->dev);
}

/* Registers, memory, a reset, and the station address. */
static int
lem_attach_hw(struct lem_softc *sc)
{
	bus_dma_tag_t parent = bus_get_dma_tag(sc->dev);
	int error;

	pci_enable_busmaster(sc->dev);
	sc->mem_rid = PCIR_BAR(0);
	sc->core.lc_os.mem = bus_alloc_resource_any(sc->dev, SYS_RES_MEMORY,
	    &sc->mem_rid, RF_ACTIVE);
	if (sc->core.lc_os.mem == NULL)
		return (ENXIO);
	error = lem_alloc_rings(sc, parent);
	if (error == 0)
		error = lem_txrx_alloc(sc, parent);
	if (error != 0)
		return (error);
	mtx_lock(&sc->rx_mtx);
	mtx_lock(&sc->tx_mtx);
	error = lem_attach(&sc->core, sc->mac);
	mtx_unlock(&sc->tx_mtx);
	mtx_unlock(&sc->rx_mtx);
	if (error == EIO)
		device_printf(sc->dev, "no station address\n");
	return (error);
}

static int
lem_attach_dev(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);
	int error;

	sc->dev = dev;
	sx_init(&sc->ctl, "em ctl");
	mtx_init(&sc->rx_mtx, device_get_nameunit(dev), "em rx", MTX_DEF);
	mtx_init(&sc->tx_mtx, device_get_nameunit(dev), "em tx", MTX_DEF);
	callout_init_mtx(&sc->tick, &sc->tx_mtx, 0);
	TASK_INIT(&sc->intr_task, 0, lem_intr_task, sc);
	TASK_INIT(&sc->tx_task, 0, lem_tx_task, sc);
	TASK_INIT(&sc->reset_task, 0, lem_reset_task, sc);
	sc->rx_budget = LEM_RX_BUDGET_DEFAULT;

	sc->tq = taskqueue_create_fast("em", M_WAITOK,
	    taskqueue_thread_enqueue, &sc->tq);
	error = taskqueue_start_threads(&sc->tq, 1, PI_NET, "%s taskq",
	    device_get_nameunit(dev));
	if (error != 0)
		goto no_hw;
	error = lem_attach_hw(sc);
	if (error != 0)
		goto no_hw;
	sc->ifp = if_alloc(IFT_ETHER);
	lem_setup_ifp(sc);
	sc->mode = LEM_MODE_SC | (sc->core.lc_has_csb ? LEM_MODE_CSB : 0);
	(void)lem_set_itr(&sc->core, LEM_ITR_DEFAULT);
	error = lem_setup_intr(sc);
	if (error != 0)
		goto no_intr;
	ether_ifattach(sc->ifp, sc->mac);
	error = lem_netmap_attach(sc);
	if (error != 0)
		goto no_netmap;
	lem_sysctls(sc);
	return (0);

no_netmap:
	ether_ifdetach(sc->ifp);
no_intr:
	lem_teardown_intr(sc);
	ifmedia_removeall(&sc->media);
	if_free(sc->ifp);
no_hw:
	lem_detach_hw(sc);
	taskqueue_free(sc->tq);
	mtx_destroy(&sc->tx_mtx);
	mtx_destroy(&sc->rx_mtx);
	sx_destroy(&sc->ctl);
	return (error);
}

static int
lem_detach_dev(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);

	if (if_vlantrunkinuse(sc->ifp)) {
		device_printf(dev, "vlan(4) uses this interface\n");
		return (EBUSY);
	}
	if (lem_netmap_busy(sc)) {
		device_printf(dev, "netmap(4) uses this interface\n");
		return (EBUSY);
	}
	lem_netmap_detach(sc);
#ifdef DEVICE_POLLING
	if (if_getcapenable(sc->ifp) & IFCAP_POLLING)
		ether_poll_deregister(sc->ifp);
#endif
	sx_xlock(&sc->ctl);
	sc->detaching = true;
	lem_down(sc);
	sx_xunlock(&sc->ctl);
	ether_ifdetach(sc->ifp);
	callout_drain(&sc->tick);
	lem_teardown_intr(sc);
	lem_qflush(sc->ifp);
	ifmedia_removeall(&sc->media);
	if_free(sc->ifp);
	lem_detach_hw(sc);
	taskqueue_free(sc->tq);
	mtx_destroy(&sc->tx_mtx);
	mtx_destroy(&sc->rx_mtx);
	sx_destroy(&sc->ctl);
	return (0);
}

static int
lem_suspend(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);

	sx_xlock(&sc->ctl);
	sc->suspended = true;
	lem_down(sc);
	sx_xunlock(&sc->ctl);
	return (bus_generic_suspend(dev));
}

static int
lem_resume(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);

	sx_xlock(&sc->ctl);
	sc->suspended = false;
	if (if_getflags(sc->ifp) & IFF_UP)
		lem_up(sc);
	sx_xunlock(&sc->ctl);
	return (bus_generic_resume(dev));
}

static device_method_t lem_methods[] = {
	DEVMETHOD(device_probe,		lem_probe),
	DEVMETHOD(device_attach,	lem_attach_dev),
	DEVMETHOD(device_detach,	lem_detach_dev),
	DEVMETHOD(device_shutdown,	lem_suspend),
	DEVMETHOD(device_suspend,	lem_suspend),
	DEVMETHOD(device_resume,	lem_resume),
	DEVMETHOD_END
};

static driver_t lem_driver = {
	"em",
	lem_methods,
	sizeof(struct lem_softc)
};

/* The module's name, unlike the driver's, is not that of the stock driver. */
DRIVER_MODULE(lem, pci, lem_driver, NULL, NULL);
MODULE_DEPEND(lem, pci, 1, 1, 1);
MODULE_DEPEND(lem, ether, 1, 1, 1);
MODULE_DEPEND(lem, netmap, 1, 1, 1);
