/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * if_lem(4): newbus and the interface.  lem_core.c drives the adapter,
 * if_lem_work.c serves its interrupts, if_lem_txrx.c handles packets, and
 * if_lem.h describes the locks.
 *
 * Life cycle.  Attach leaves the adapter reset and stopped.  lem_up() starts
 * it, lem_down() stops it.  Everything that reconfigures the rings (MTU,
 * netmap, a reset, resume) is a lem_down() and a lem_up().
 *
 * Once a second, lem_tick() enqueues the task: for completions without an
 * interrupt, on which lazy completion depends, and for receive slots for which
 * there was no memory.  While the driver polls, and with MSI-X, nothing reports a
 * change of the link, so the tick looks.  It resets the adapter if packets do not complete,
 * or if lem_core has found it dead.  While the interface is down, the link is
 * read at attach and whenever its state is asked for.
 *
 * The probe returns BUS_PROBE_VENDOR, so the stock driver of the same name
 * loses to this one the adapters that have registers and a station address.  It
 * gets the others, and without a hypervisor all.  It keeps those that it has
 * when this module is loaded: lem_identify().
 */

#include <dev/e1000/if_lem.h>

#include <sys/buf_ring.h>
#include <sys/kernel.h>
#include <sys/limits.h>
#include <sys/module.h>
#include <sys/sockio.h>

#include <net/if_dl.h>
#include <net/if_types.h>

#include <dev/pci/pcireg.h>
#include <dev/pci/pcivar.h>

#define	LEM_ITR_DEFAULT		488	/* 8000 interrupts a second */
#define	LEM_RX_BUDGET_DEFAULT	16
#define	LEM_RX_SHARE_DEFAULT	20	/* docs/freebsd.md */
#define	LEM_STUCK_MAX		5	/* seconds without a completion */

/* Bytes of a frame, besides its payload. */
#define	LEM_OVERHEAD	(ETHER_HDR_LEN + ETHER_VLAN_ENCAP_LEN + ETHER_CRC_LEN)

#define	LEM_HWASSIST	(CSUM_IP | CSUM_IP_TCP | CSUM_IP_UDP)
#define	LEM_HWASSIST6	(CSUM_IP6_TCP | CSUM_IP6_UDP)

/* hw.em.vm: attach to adapters that a hypervisor emulates. */
static int lem_vm = 1;
TUNABLE_INT("hw.em.vm", &lem_vm);

/*
 * Copper adapters that lem_core supports.  Hypervisors emulate 0x100c (QEMU),
 * 0x100e (QEMU, VirtualBox) and 0x100f (bhyve, valed, VMware).  An 82574L is
 * em(4)'s, unless it has a CSB: lem_emulated().
 */
static const uint16_t lem_ids[] = {
	0x1008, 0x100c, 0x100d,			/* 82544 */
	0x100e, 0x1015, 0x1016, 0x1017,		/* 82540 */
	0x100f, 0x1026,				/* 82545 */
	0x1010, 0x1079,				/* 82546 */
};

static u_int
lem_hash_maddr(void *arg, struct sockaddr_dl *sdl, u_int count __unused)
{
	uint32_t bit = lem_mta_bit((const uint8_t *)LLADDR(sdl)), *mta = arg;

	mta[bit / 32] |= 1U << (bit % 32);
	return (1);
}

static void
lem_filters(struct lem_softc *sc)
{
	uint32_t mta[E82545_MTA_COUNT] = { 0 };
	int flags = if_getflags(sc->ifp);
	/* A slot of netmap(4) has no place for a tag that was removed. */
	bool vlan = !sc->rx.netmap &&
	    (if_getcapenable(sc->ifp) & IFCAP_VLAN_HWTAGGING) != 0;

	sx_assert(&sc->ctl, SX_XLOCKED);
	if_foreach_llmaddr(sc->ifp, lem_hash_maddr, mta);
	if (sc->core.lc_running)
		lem_set_filter(&sc->core,
		    (flags & IFF_PROMISC ? E82545_RCTL_UPE : 0) |
		    (flags & (IFF_PROMISC | IFF_ALLMULTI) ?
		    E82545_RCTL_MPE : 0), vlan, mta);
}

int
lem_mode_update(struct lem_softc *sc)
{
	const bool polling = (if_getcapenable(sc->ifp) & IFCAP_POLLING) != 0;
	int error;

	sx_assert(&sc->ctl, SX_XLOCKED);
	if (sc->knobs.poll != 0 && polling)
		return (EBUSY);
	mtx_lock(&sc->rx.mtx);
	mtx_lock(&sc->tx.mtx);
	sc->core.lc_rx_share = sc->knobs.rx_share;
	(void)lem_set_rounds(&sc->core, sc->knobs.csb_rounds);
	sc->core.lc_poll_ns = sc->knobs.poll == 0 ? 0 :
	    1000000000 / sc->knobs.poll;
	error = lem_set_mode(&sc->core, (sc->knobs.sc ? LEM_MODE_SC : 0) |
	    (sc->knobs.csb ? LEM_MODE_CSB : 0) |
	    (sc->knobs.tx_lazy ? LEM_MODE_LAZY : 0) |
	    (sc->knobs.poll != 0 || polling ? LEM_MODE_POLL : 0));
	mtx_unlock(&sc->tx.mtx);
	mtx_unlock(&sc->rx.mtx);
	/* Enable interrupts, or poll. */
	taskqueue_enqueue(sc->tq, &sc->intr_task);
	return (error != 0 ? error : lem_set_itr(&sc->core, sc->knobs.itr));
}

/* When the stack forwards packets it cannot: others would get them so. */
bool
lem_takes_offloads(struct lem_softc *sc)
{
	const int caps = if_getcapenable(sc->ifp);

	return ((caps & IFCAP_LRO) != 0 && (caps & IFCAP_RXCSUM) != 0 &&
	    (caps & IFCAP_RXCSUM_IPV6) != 0 && !sc->rx.netmap &&
	    !lem_forwards(sc));
}

int
lem_up(struct lem_softc *sc)
{
	if_t ifp = sc->ifp;
	int error;

	sx_assert(&sc->ctl, SX_XLOCKED);
	if (sc->suspended || sc->core.lc_running ||
	    (if_getflags(ifp) & IFF_UP) == 0)
		return (0);
	mtx_lock(&sc->rx.mtx);
	mtx_lock(&sc->tx.mtx);
	lem_netmap_start(sc);
	sc->rx_forwards = false;
	sc->core.lc_vnet = sc->core.lc_csb != NULL && lem_takes_offloads(sc) ?
	    sc->shared->vnet : NULL;
	/* With a header ring there are packets of 64 KB. */
	sc->core.lc_rx_bufsize = sc->rx.netmap || (sc->core.lc_vnet == NULL &&
	    if_getmtu(ifp) + LEM_OVERHEAD <= MCLBYTES) ? MCLBYTES :
	    MJUMPAGESIZE;
	error = lem_start(&sc->core, if_getlladdr(ifp), if_getmtu(ifp));
	sc->tx_stuck = 0;
	if (error != 0)
		lem_rx_purge(sc);
	mtx_unlock(&sc->tx.mtx);
	mtx_unlock(&sc->rx.mtx);
	if (error != 0) {
		device_printf(sc->dev, "cannot start: error %d\n", error);
		return (error);
	}
	lem_filters(sc);
	if_setdrvflagbits(ifp, IFF_DRV_RUNNING, 0);
	taskqueue_enqueue(sc->tq, &sc->intr_task);
	taskqueue_enqueue_timeout(sc->tq, &sc->tick, hz);
	return (0);
}

void
lem_down(struct lem_softc *sc)
{
	if_t ifp = sc->ifp;

	sx_assert(&sc->ctl, SX_XLOCKED);
	if_setdrvflagbits(ifp, 0, IFF_DRV_RUNNING);
	(void)taskqueue_cancel_timeout(sc->tq, &sc->tick, NULL);
	mtx_lock(&sc->rx.mtx);
	mtx_lock(&sc->tx.mtx);
	lem_stop(&sc->core);
	mtx_unlock(&sc->tx.mtx);
	lem_rx_purge(sc);
	mtx_unlock(&sc->rx.mtx);
	lem_qflush(ifp);
}

/*
 * Read the link and tell the stack, also while the interface is down, as em(4)
 * does: a program may wait for the link before it sets IFF_UP.
 */
static void
lem_link_read(struct lem_softc *sc)
{
	sx_assert(&sc->ctl, SX_XLOCKED);
	if (sc->suspended)
		return;
	lem_link(&sc->core);
	mtx_lock(&sc->rx.mtx);
	lem_link_update(sc);
	mtx_unlock(&sc->rx.mtx);
}

/*
 * lem_down() does not wait for the tick.  lem_tx_idle() is a hint here and is
 * called without tx.mtx.
 */
static void
lem_tick(void *arg, int pending __unused)
{
	struct lem_softc *sc = arg;
	struct lem_core *lc = &sc->core;
	uint64_t cleans = lc->lc_counter[LEM_C_TX_CLEAN];

	sx_xlock(&sc->ctl);
	if (lc->lc_running && ((lc->lc_mode & LEM_MODE_POLL) != 0 ||
	    lc->lc_irq != LEM_IRQ_LINE))
		lem_link(lc);
	sc->tx_stuck = cleans != sc->tx_cleans || !lc->lc_link ||
	    lem_tx_idle(lc) ? 0 : sc->tx_stuck + 1;
	sc->tx_cleans = cleans;
	if (lc->lc_running && (lc->lc_dead || sc->tx_stuck >= LEM_STUCK_MAX)) {
		sc->watchdogs++;
		if_inc_counter(sc->ifp, IFCOUNTER_OERRORS, 1);
		device_printf(sc->dev, "%s, resetting\n", lc->lc_dead ?
		    "adapter does not respond" : "transmit timeout");
		lem_down(sc);
		(void)lem_up(sc);
	} else if (lc->lc_running && sc->core.lc_csb != NULL &&
	    (lc->lc_vnet != NULL) != lem_takes_offloads(sc)) {
		lem_down(sc);
		(void)lem_up(sc);
	} else if (lc->lc_running) {
		/* Forwarding may have ended before this tick. */
		mtx_lock(&sc->rx.mtx);
		sc->rx_forwards = false;
		mtx_unlock(&sc->rx.mtx);
		taskqueue_enqueue(sc->tq, &sc->intr_task);
		taskqueue_enqueue_timeout(sc->tq, &sc->tick, hz);
	}
	sx_xunlock(&sc->ctl);
}

static void
lem_init(void *arg)
{
	struct lem_softc *sc = arg;

	sx_xlock(&sc->ctl);
	(void)lem_up(sc);
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
	bool up;

	sx_xlock(&sc->ctl);
	lem_link_read(sc);
	up = !sc->suspended && sc->core.lc_link;
	sx_xunlock(&sc->ctl);
	req->ifm_status = IFM_AVALID | (up ? IFM_ACTIVE : 0);
	req->ifm_active = IFM_ETHER | (up ? IFM_1000_T | IFM_FDX : 0);
}

static int
lem_set_caps(struct lem_softc *sc, int wanted)
{
	if_t ifp = sc->ifp;
	int change, enabled, error = 0;

	sx_assert(&sc->ctl, SX_XLOCKED);
	change = (wanted ^ if_getcapenable(ifp)) & if_getcapabilities(ifp);
	if (change & IFCAP_POLLING)
		error = lem_poll_register(sc, (wanted & IFCAP_POLLING) != 0);
	if (error != 0)
		return (error);
	if_togglecapenable(ifp, change);
	enabled = if_getcapenable(ifp);
	if_sethwassist(ifp, (enabled & IFCAP_TXCSUM ? LEM_HWASSIST : 0) |
	    (enabled & IFCAP_TXCSUM_IPV6 ? LEM_HWASSIST6 : 0) |
	    (enabled & IFCAP_TSO4 ? CSUM_IP_TSO : 0) |
	    (enabled & IFCAP_TSO6 ? CSUM_IP6_TSO : 0));
	if ((change & (IFCAP_LRO | IFCAP_RXCSUM | IFCAP_RXCSUM_IPV6)) != 0 &&
	    sc->core.lc_running && sc->core.lc_csb != NULL) {
		/* The adapter is told of the header ring at start. */
		lem_down(sc);
		(void)lem_up(sc);
	}
	lem_filters(sc);
	return (lem_mode_update(sc));
}

/* Returns ENOIOCTL for commands that the driver does not handle. */
static int
lem_configure(struct lem_softc *sc, u_long cmd, struct ifreq *ifr)
{
	sx_assert(&sc->ctl, SX_XLOCKED);
	switch (cmd) {
	case SIOCSIFMTU:
		if (ifr->ifr_mtu < E82545_MTU_MIN ||
		    ifr->ifr_mtu > E82545_MTU_MAX)
			return (EINVAL);
		if_setmtu(sc->ifp, ifr->ifr_mtu);
		lem_down(sc);
		/* FALLTHROUGH */
	case SIOCSIFFLAGS:
		if ((if_getflags(sc->ifp) & IFF_UP) == 0)
			lem_down(sc);
		(void)lem_up(sc);
		/* FALLTHROUGH */
	case SIOCADDMULTI:
	case SIOCDELMULTI:
		lem_filters(sc);
		return (0);
	case SIOCSIFCAP:
		return (lem_set_caps(sc, ifr->ifr_reqcap));
	default:
		return (ENOIOCTL);
	}
}

static int
lem_ioctl(if_t ifp, u_long cmd, caddr_t data)
{
	struct lem_softc *sc = if_getsoftc(ifp);
	struct ifreq *ifr = (struct ifreq *)data;
	int error;

	if (cmd == SIOCSIFMEDIA || cmd == SIOCGIFMEDIA ||
	    cmd == SIOCGIFXMEDIA)
		return (ifmedia_ioctl(ifp, ifr, &sc->media, cmd));
	sx_xlock(&sc->ctl);
	error = lem_configure(sc, cmd, ifr);
	sx_xunlock(&sc->ctl);
	/*
	 * Takes vlan(4)'s lock, which vlan(4) holds when it calls this
	 * function: not under ctl.
	 */
	if (cmd == SIOCSIFCAP)
		if_vlancap(ifp);
	return (error == ENOIOCTL ? ether_ioctl(ifp, cmd, data) : error);
}

/* Attach and detach. */

static void
lem_shared_addr(void *arg, bus_dma_segment_t *segs, int nsegs __unused,
    int error)
{
	if (error == 0)
		*(bus_addr_t *)arg = segs[0].ds_addr;
}

/* Whether the adapter has a CSB: paravirt_csb(9). */
static bool
lem_has_csb(device_t dev)
{
	int cap;

	return ((pci_find_cap(dev, PCIY_VENDOR, &cap) == 0 &&
	    pci_read_config(dev, cap + E82545_CSB_CAP_SIGNATURE, 4) ==
	    E82545_CSB_SIGNATURE &&
	    pci_read_config(dev, cap + E82545_CSB_CAP_VERSION, 4) ==
	    E82545_CSB_VERSION) ||
	    pci_get_subdevice(dev) == E82545_PCI_SUBDEVICE_CSB);
}

/* Rings and CSB, in one allocation of zeroed memory. */
static int
lem_alloc_shared(struct lem_softc *sc)
{
	const bus_size_t size = sizeof(*sc->shared);
	struct lem_core *lc = &sc->core;
	struct lem_os *os = &lc->lc_os;

	if (bus_dma_tag_create(bus_get_dma_tag(sc->dev), PAGE_SIZE, 0,
	    BUS_SPACE_MAXADDR, BUS_SPACE_MAXADDR, NULL, NULL, size, 1, size,
	    0, NULL, NULL, &os->tag) != 0 ||
	    bus_dmamem_alloc(os->tag, (void **)&sc->shared,
	    BUS_DMA_WAITOK | BUS_DMA_ZERO | BUS_DMA_COHERENT, &os->map) != 0 ||
	    bus_dmamap_load(os->tag, os->map, sc->shared, size,
	    lem_shared_addr, &sc->shared_dma, BUS_DMA_NOWAIT) != 0)
		return (ENOMEM);
	lc->lc_txd = sc->shared->txd;
	lc->lc_txd_dma = sc->shared_dma + offsetof(struct lem_shared, txd);
	lc->lc_rxd = sc->shared->rxd;
	lc->lc_rxd_dma = sc->shared_dma + offsetof(struct lem_shared, rxd);
	lc->lc_ntxd = lc->lc_nrxd = LEM_NDESC;
	if (lem_has_csb(sc->dev))
		lc->lc_csb = (struct paravirt_csb *)sc->shared->csb;
	lc->lc_csb_dma = sc->shared_dma + offsetof(struct lem_shared, csb);
	lc->lc_vnet_dma = sc->shared_dma + offsetof(struct lem_shared, vnet);
	return (0);
}

/* One message, of MSI-X if the adapter has it.  Returns what there is. */
static enum lem_irq
lem_alloc_messages(struct lem_softc *sc)
{
	int count = 1, rid;

	if (pci_msix_count(sc->dev) > 0) {
		rid = pci_msix_table_bar(sc->dev);
		sc->msix = bus_alloc_resource_any(sc->dev, SYS_RES_MEMORY, &rid,
		    RF_ACTIVE);
		if (sc->msix != NULL && pci_alloc_msix(sc->dev, &count) == 0)
			return (LEM_IRQ_MSIX);
		count = 1;
	}
	return (pci_alloc_msi(sc->dev, &count) == 0 ? LEM_IRQ_MSI :
	    LEM_IRQ_LINE);
}

/* Registers, memory, a reset, the station address, and interrupts. */
static int
lem_attach_hw(struct lem_softc *sc)
{
	struct lem_core *lc = &sc->core;
	int error, rid = PCIR_BAR(0);

	pci_enable_busmaster(sc->dev);
	lc->lc_os.regs = bus_alloc_resource_any(sc->dev, SYS_RES_MEMORY, &rid,
	    RF_ACTIVE);
	lc->lc_irq = lem_alloc_messages(sc);
	rid = lc->lc_irq == LEM_IRQ_LINE ? 0 : 1;
	sc->irq = bus_alloc_resource_any(sc->dev, SYS_RES_IRQ, &rid,
	    RF_ACTIVE | (rid == 0 ? RF_SHAREABLE : 0));
	if (lc->lc_os.regs == NULL || sc->irq == NULL)
		return (ENXIO);
	if (lem_work_start(sc) != 0 || lem_alloc_shared(sc) != 0 ||
	    lem_side_alloc(sc, &sc->rx, MJUMPAGESIZE, 1) != 0 ||
	    lem_side_alloc(sc, &sc->tx, LEM_TSO_MAX + ETHER_VLAN_ENCAP_LEN,
	    LEM_TX_MAXSEGS) != 0 ||
	    tcp_lro_init_args(&sc->rx_lro, sc->ifp, TCP_LRO_ENTRIES,
	    LEM_NDESC) != 0)
		return (ENOMEM);
	error = lem_attach(lc, sc->mac);
	if (lc->lc_eeprom_bad)
		device_printf(sc->dev, "wrong EEPROM checksum\n");
	if (error == 0)
		error = bus_setup_intr(sc->dev, sc->irq,
		    INTR_TYPE_NET | INTR_MPSAFE, lem_filter, NULL, sc,
		    &sc->irq_cookie);
	return (error);
}

static void
lem_setup_ifp(struct lem_softc *sc)
{
	const int caps = IFCAP_HWCSUM | IFCAP_HWCSUM_IPV6 | IFCAP_TSO |
	    IFCAP_JUMBO_MTU | IFCAP_VLAN_MTU | IFCAP_VLAN_HWTAGGING |
	    IFCAP_VLAN_HWCSUM | IFCAP_VLAN_HWTSO | IFCAP_LINKSTATE |
	    IFCAP_LRO;
	if_t ifp = sc->ifp;

	if_initname(ifp, device_get_name(sc->dev), device_get_unit(sc->dev));
	if_setsoftc(ifp, sc);
	if_setflags(ifp, IFF_BROADCAST | IFF_SIMPLEX | IFF_MULTICAST);
	if_setinitfn(ifp, lem_init);
	if_setioctlfn(ifp, lem_ioctl);
	if_settransmitfn(ifp, lem_transmit);
	if_setqflushfn(ifp, lem_qflush);
	if_setbaudrate(ifp, IF_Gbps(1));
	if_sethwtsomax(ifp, LEM_TSO_MAX - ETHER_HDR_LEN - ETHER_VLAN_ENCAP_LEN);
	if_sethwtsomaxsegcount(ifp, LEM_TX_MAXSEGS - 2);
	if_sethwtsomaxsegsize(ifp, PAGE_SIZE);
	if_setcapabilities(ifp, caps);
	if (lem_poll_offered())
		if_setcapabilitiesbit(ifp, IFCAP_POLLING, 0);
	/* QEMU's e1000 gives IPv6 segments a wrong length. */
	sx_xlock(&sc->ctl);
	(void)lem_set_caps(sc, sc->core.lc_csb != NULL ? caps :
	    caps & ~IFCAP_TSO6);
	sx_xunlock(&sc->ctl);
	ifmedia_init(&sc->media, IFM_IMASK, lem_media_change, lem_media_status);
	ifmedia_add(&sc->media, IFM_ETHER | IFM_AUTO, 0, NULL);
	ifmedia_set(&sc->media, IFM_ETHER | IFM_AUTO);
}

/* Registers and a station address: attach needs no more of the adapter. */
static bool
lem_usable(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);
	struct resource **regs = &sc->core.lc_os.regs;
	int error, rid = PCIR_BAR(0);

	*regs = bus_alloc_resource_any(dev, SYS_RES_MEMORY, &rid, RF_ACTIVE);
	if (*regs == NULL)
		return (false);
	error = lem_address(&sc->core, sc->mac);
	bus_release_resource(dev, SYS_RES_MEMORY, rid, *regs);
	return (error == 0);
}

static bool
lem_emulated(device_t dev)
{
	u_int i;

	if (vm_guest == VM_GUEST_NO || lem_vm == 0 ||
	    pci_get_vendor(dev) != 0x8086)
		return (false);
	for (i = 0; i < nitems(lem_ids); i++)
		if (lem_ids[i] == pci_get_device(dev))
			return (true);
	return (pci_get_device(dev) == E82574_PCI_DEVICE && lem_has_csb(dev));
}

/*
 * newbus does not take an adapter from the driver that has it when another one
 * is loaded, nor offers it to that one when it is detached.  Say how to.
 */
static void
lem_identify(driver_t *driver, device_t bus)
{
	device_t *dev;
	int i, n;

	if (device_get_children(bus, &dev, &n) != 0)
		return;
	for (i = 0; i < n; i++)
		if (device_is_attached(dev[i]) &&
		    device_get_driver(dev[i]) != driver && lem_emulated(dev[i]))
			device_printf(dev[i], "kept by another driver; for "
			    "if_lem: devctl detach %s && "
			    "devctl attach pci%d:%d:%d:%d\n",
			    device_get_nameunit(dev[i]),
			    pci_get_domain(dev[i]), pci_get_bus(dev[i]),
			    pci_get_slot(dev[i]), pci_get_function(dev[i]));
	free(dev, M_TEMP);
}

static int
lem_probe(device_t dev)
{
	if (!lem_emulated(dev) || !lem_usable(dev))
		return (ENXIO);
	device_set_desc(dev, pci_get_device(dev) == E82574_PCI_DEVICE ?
	    "Intel 82574L, emulated" : "Intel 8254x, emulated");
	return (BUS_PROBE_VENDOR);
}

/* Undo attach, as far as it got, before ether_ifattach(). */
static void
lem_release(struct lem_softc *sc)
{
	struct lem_os *os = &sc->core.lc_os;

	if (sc->irq_cookie != NULL)
		bus_teardown_intr(sc->dev, sc->irq, sc->irq_cookie);
	if (sc->irq != NULL)
		bus_release_resource(sc->dev, SYS_RES_IRQ,
		    rman_get_rid(sc->irq), sc->irq);
	pci_release_msi(sc->dev);
	if (sc->msix != NULL)
		bus_release_resource(sc->dev, SYS_RES_MEMORY,
		    rman_get_rid(sc->msix), sc->msix);
	lem_work_free(sc);
	ifmedia_removeall(&sc->media);
	tcp_lro_free(&sc->rx_lro);
	if_free(sc->ifp);
	drbr_free(sc->tx_br, M_DEVBUF);
	lem_side_free(&sc->tx);
	lem_side_free(&sc->rx);
	if (sc->shared_dma != 0)
		bus_dmamap_unload(os->tag, os->map);
	if (sc->shared != NULL)
		bus_dmamem_free(os->tag, sc->shared, os->map);
	if (os->tag != NULL)
		bus_dma_tag_destroy(os->tag);
	if (os->regs != NULL)
		bus_release_resource(sc->dev, SYS_RES_MEMORY,
		    rman_get_rid(os->regs), os->regs);
	pci_disable_busmaster(sc->dev);
	mtx_destroy(&sc->tx.mtx);
	mtx_destroy(&sc->rx.mtx);
	sx_destroy(&sc->ctl);
}

static int
lem_suspend(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);

	sx_xlock(&sc->ctl);
	sc->suspended = true;
	lem_down(sc);
	sx_xunlock(&sc->ctl);
	return (0);
}

static int
lem_detach_dev(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);
	const char *user;

	user = if_vlantrunkinuse(sc->ifp) ? "vlan(4)" :
	    lem_netmap_detach(sc) != 0 ? "netmap(4)" : NULL;
	if (user != NULL) {
		device_printf(dev, "%s uses this interface\n", user);
		return (EBUSY);
	}
	lem_suspend(dev);
	ether_ifdetach(sc->ifp);
	sx_xlock(&sc->ctl);
	(void)lem_set_caps(sc, if_getcapenable(sc->ifp) & ~IFCAP_POLLING);
	sx_xunlock(&sc->ctl);
	taskqueue_drain_timeout(sc->tq, &sc->tick);
	lem_release(sc);
	return (0);
}

static int
lem_resume(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);

	sx_xlock(&sc->ctl);
	sc->suspended = false;
	(void)lem_up(sc);
	lem_link_read(sc);
	sx_xunlock(&sc->ctl);
	return (0);
}

/* Suspended to the end: the stack hears of the link when it has the interface. */
static int
lem_attach_dev(device_t dev)
{
	struct lem_softc *sc = device_get_softc(dev);
	const char *name = device_get_nameunit(dev);
	int error;

	sc->dev = dev;
	sc->suspended = true;
	sc->core.lc_os.name = name;
	sx_init(&sc->ctl, "em ctl");
	mtx_init(&sc->rx.mtx, name, "em rx", MTX_DEF);
	mtx_init(&sc->tx.mtx, name, "em tx", MTX_DEF);
	lem_work_init(sc);
	TIMEOUT_TASK_INIT(sc->tq, &sc->tick, 0, lem_tick, sc);
	mbufq_init(&sc->rx_queue, INT_MAX);
	sc->tx_br = buf_ring_alloc(LEM_BR_SLOTS, M_DEVBUF, M_WAITOK,
	    &sc->tx.mtx);
	sc->ifp = if_alloc(IFT_ETHER);
	error = lem_attach_hw(sc);
	if (error != 0) {
		lem_release(sc);
		return (error);
	}
	sc->knobs.itr = LEM_ITR_DEFAULT;
	sc->knobs.rx_budget = LEM_RX_BUDGET_DEFAULT;
	sc->knobs.rx_share = LEM_RX_SHARE_DEFAULT;
	sc->knobs.sc = 1;
	sc->knobs.csb = sc->core.lc_csb != NULL;
	sc->knobs.csb_rounds = LEM_ROUNDS_DEFAULT;
	lem_setup_ifp(sc);
	ether_ifattach(sc->ifp, sc->mac);
	/* FreeBSD 14's ether_ifattach() does not account for VLAN tags. */
	if_setifheaderlen(sc->ifp, sizeof(struct ether_vlan_header));
	lem_sysctls(sc);
	error = lem_netmap_attach(sc);
	if (error != 0) {
		lem_detach_dev(dev);
		return (error);
	}
	return (lem_resume(dev));
}

static device_method_t lem_methods[] = {
	DEVMETHOD(device_identify,	lem_identify),
	DEVMETHOD(device_probe,		lem_probe),
	DEVMETHOD(device_attach,	lem_attach_dev),
	DEVMETHOD(device_detach,	lem_detach_dev),
	DEVMETHOD(device_shutdown,	lem_suspend),
	DEVMETHOD(device_suspend,	lem_suspend),
	DEVMETHOD(device_resume,	lem_resume),
	DEVMETHOD_END
};

DEFINE_CLASS_0(em, lem_driver, lem_methods, sizeof(struct lem_softc));

/* dtrace_lem(4) */
SDT_PROVIDER_DEFINE(lem);
#define	LEM_PROBE_DEFINE(name)						\
	SDT_PROBE_DEFINE2(lem, , , name, "char *", "uint32_t");
LEM_PROBES(LEM_PROBE_DEFINE)

/* The module is "lem", because a kernel may have the stock driver as "em". */
DRIVER_MODULE(lem, pci, lem_driver, NULL, NULL);
MODULE_DEPEND(lem, pci, 1, 1, 1);
MODULE_DEPEND(lem, ether, 1, 1, 1);
MODULE_DEPEND(lem, netmap, 1, 1, 1);
