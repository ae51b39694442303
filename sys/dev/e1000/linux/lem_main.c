/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * lem(4) for Linux: PCI and the interface.  lem_core.c drives the adapter,
 * lem_txrx.c handles packets, and lem_linux.h describes the locks.
 *
 * Life cycle.  The probe leaves the adapter reset and stopped.  lem_up() starts
 * it, lem_down() stops it.  Everything that reconfigures the rings (MTU, ring
 * sizes, XDP, a reset, resume) is a lem_down() and a lem_up().
 *
 * Once a second, lem_tick() schedules NAPI: for completions without an
 * interrupt, on which lazy completion depends, and for receive slots for which
 * there was no memory.  With MSI-X, whose causes are not read, lem_tick() looks
 * at the link.  An adapter is reset if packets do not complete, or if lem_core
 * has found it dead.
 *
 * The module has no table of devices for depmod(8): it is loaded only by
 * somebody who wants it, and takes the adapters that no driver has then.
 */

#include "lem_linux.h"

#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/tcp.h>

#ifdef CONFIG_X86
#include <asm/cpufeature.h>
#endif

#define	LEM_ITR_DEFAULT	488	/* 8000 interrupts a second */
#define	LEM_STUCK_MAX	5	/* seconds without a completion */

/* Parameters: the knobs of adapters that are found later. */
struct lem_param {
	unsigned int	 value;
	unsigned int	 max;
};

static int
lem_param_set(const char *text, const struct kernel_param *kp)
{
	struct lem_param *p = kp->arg;
	unsigned int value;

	if (kstrtouint(text, 0, &value) != 0 || value > p->max) {
		pr_err("lem: %s must be 0 to %u\n", kp->name, p->max);
		return (-EINVAL);
	}
	p->value = value;
	return (0);
}

static int
lem_param_get(char *buf, const struct kernel_param *kp)
{
	const struct lem_param *p = kp->arg;

	return (sprintf(buf, "%u\n", p->value));
}

static const struct kernel_param_ops lem_param_ops = {
	.set = lem_param_set,
	.get = lem_param_get,
};

#define	LEM_PARAM(name, init, top, what)				\
	static struct lem_param lem_param_##name = { init, top };	\
	module_param_cb(name, &lem_param_ops, &lem_param_##name, 0644);	\
	MODULE_PARM_DESC(name, what)

LEM_PARAM(itr, LEM_ITR_DEFAULT, E82545_ITR_MAX,
    "Minimum interval between interrupts, in units of 256 ns");
LEM_PARAM(sc, 1, 1, "Send combining");
LEM_PARAM(csb, 1, 1, "Shared-memory notification, if the adapter offers it");
LEM_PARAM(csb_rounds, LEM_ROUNDS_DEFAULT, LEM_ROUNDS_MAX,
    "Maximum number of rounds that the adapter spins for packets");
LEM_PARAM(tx_lazy, 0, 1, "No transmit interrupts unless the ring is short");

/*
 * Copper adapters that lem_core supports.  Hypervisors emulate 0x100c (QEMU),
 * 0x100e (QEMU, VirtualBox) and 0x100f (bhyve, valed, VMware).  An 82574L is
 * for e1000e, unless it has a CSB.
 */
static const struct pci_device_id lem_ids[] = {
	{ PCI_VDEVICE(INTEL, 0x1008) }, { PCI_VDEVICE(INTEL, 0x100c) },
	{ PCI_VDEVICE(INTEL, 0x100d) },			/* 82544 */
	{ PCI_VDEVICE(INTEL, 0x100e) }, { PCI_VDEVICE(INTEL, 0x1015) },
	{ PCI_VDEVICE(INTEL, 0x1016) }, { PCI_VDEVICE(INTEL, 0x1017) },
							/* 82540 */
	{ PCI_VDEVICE(INTEL, 0x100f) }, { PCI_VDEVICE(INTEL, 0x1026) },
							/* 82545 */
	{ PCI_VDEVICE(INTEL, 0x1010) }, { PCI_VDEVICE(INTEL, 0x1079) },
							/* 82546 */
	{ PCI_VDEVICE(INTEL, E82574_PCI_DEVICE) },
	{ }
};

/* Start, stop. */

static irqreturn_t
lem_interrupt(int irq, void *arg)
{
	struct lem_adapter *la = arg;

	if (!lem_intr(&la->core))
		return (IRQ_NONE);
	napi_schedule_irqoff(&la->napi);
	return (IRQ_HANDLED);
}

/* Schedule NAPI from a thread. */
static void
lem_schedule(struct lem_adapter *la)
{
	local_bh_disable();
	napi_schedule(&la->napi);
	local_bh_enable();
}

int
lem_set_knobs(struct lem_adapter *la, const struct lem_knobs *k)
{
	int error;

	ASSERT_RTNL();
	lem_lock_both(la);
	error = lem_set_rounds(&la->core, k->csb_rounds);
	if (error == 0)
		error = lem_set_mode(&la->core,
		    (k->sc != 0 ? LEM_MODE_SC : 0) |
		    (k->csb != 0 ? LEM_MODE_CSB : 0) |
		    (k->tx_lazy != 0 ? LEM_MODE_LAZY : 0));
	lem_unlock_both(la);
	if (error == 0)
		error = lem_set_itr(&la->core, k->itr);
	if (error == 0)
		la->knobs = *k;
	if (la->started)
		lem_schedule(la);
	return (-error);
}

/* Return whether the adapter may leave checksums and segments to us. */
static bool
lem_takes_offloads(struct lem_adapter *la)
{
	return (la->core.lc_csb != NULL && la->prog == NULL &&
	    (la->dev->features & NETIF_F_GRO_HW) != 0 &&
	    (la->dev->features & NETIF_F_RXCSUM) != 0);
}

/* Allocate the rings, as one piece of zeroed memory. */
static int
lem_rings_alloc(struct lem_adapter *la)
{
	const size_t txd = la->ntx * sizeof(struct e82545_desc);
	const size_t rxd = la->nrx * sizeof(struct e82545_desc);
	struct lem_core *lc = &la->core;
	const bool offloads = lem_takes_offloads(la);

	la->rings_size = txd + rxd + la->nrx * sizeof(struct lem_vnet);
	la->rings = dma_alloc_coherent(&la->pdev->dev, la->rings_size,
	    &la->rings_dma, GFP_KERNEL);
	if (la->rings == NULL)
		return (-ENOMEM);
	lc->lc_ntxd = la->ntx;
	lc->lc_txd = la->rings;
	lc->lc_txd_dma = la->rings_dma;
	lc->lc_nrxd = la->nrx;
	lc->lc_rxd = la->rings + txd;
	lc->lc_rxd_dma = la->rings_dma + txd;
	lc->lc_vnet = offloads ? la->rings + txd + rxd : NULL;
	lc->lc_vnet_dma = la->rings_dma + txd + rxd;
	/* A program needs all of a frame in a page that has room for more. */
	lc->lc_rx_bufsize = la->prog != NULL ||
	    (!offloads && la->dev->mtu + LEM_OVERHEAD <= 2048) ? 2048 : 4096;
	return (0);
}

static void
lem_rings_free(struct lem_adapter *la)
{
	lem_buffers_free(la);
	if (la->rings != NULL)
		dma_free_coherent(&la->pdev->dev, la->rings_size, la->rings,
		    la->rings_dma);
	la->rings = NULL;
}

static void
lem_filters(struct net_device *dev)
{
	struct lem_adapter *la = netdev_priv(dev);
	const unsigned int flags = dev->flags;
	uint32_t bit, mta[E82545_MTA_COUNT] = { 0 };
	struct netdev_hw_addr *ha;

	netdev_for_each_mc_addr(ha, dev) {
		bit = lem_mta_bit(ha->addr);
		mta[bit / 32] |= 1U << (bit % 32);
	}
	if (la->core.lc_running)
		lem_set_filter(&la->core,
		    (flags & IFF_PROMISC ? E82545_RCTL_UPE : 0) |
		    (flags & (IFF_PROMISC | IFF_ALLMULTI) ?
		    E82545_RCTL_MPE : 0),
		    (dev->features & NETIF_F_HW_VLAN_CTAG_RX) != 0, mta);
}

static int
lem_start_adapter(struct lem_adapter *la)
{
	struct net_device *dev = la->dev;
	int error;

	error = request_irq(pci_irq_vector(la->pdev, 0), lem_interrupt,
	    la->core.lc_irq == LEM_IRQ_LINE ? IRQF_SHARED : 0, dev->name, la);
	if (error != 0)
		return (error);
	lem_lock_both(la);
	error = -lem_start(&la->core, dev->dev_addr, dev->mtu);
	lem_unlock_both(la);
	if (error != 0)
		free_irq(pci_irq_vector(la->pdev, 0), la);
	return (error);
}

int
lem_up(struct lem_adapter *la)
{
	struct net_device *dev = la->dev;
	int error;

	ASSERT_RTNL();
	if (la->started || la->suspended || !netif_running(dev))
		return (0);
	error = lem_rings_alloc(la);
	if (error == 0)
		error = lem_buffers_alloc(la);
	if (error == 0)
		error = lem_start_adapter(la);
	if (error != 0) {
		lem_rings_free(la);
		if (!la->failed)
			netdev_err(dev, "cannot start: error %d\n", -error);
		/* At once, with what the caller restores. */
		schedule_delayed_work(&la->reset, la->failed ? HZ : 0);
		la->failed = true;
		return (error);
	}
	netif_addr_lock_bh(dev);
	lem_filters(dev);
	netif_addr_unlock_bh(dev);
	la->failed = false;
	la->tx_stuck = 0;
	la->started = true;
	napi_enable(&la->napi);
	netif_start_queue(dev);
	lem_schedule(la);
	schedule_delayed_work(&la->tick, HZ);
	return (0);
}

void
lem_down(struct lem_adapter *la)
{
	struct net_device *dev = la->dev;

	ASSERT_RTNL();
	if (!la->started)
		return;
	la->started = false;
	cancel_delayed_work_sync(&la->tick);
	napi_disable(&la->napi);
	netif_tx_disable(dev);
	lem_lock_both(la);
	lem_tx_stop(la);
	lem_unlock_both(la);
	free_irq(pci_irq_vector(la->pdev, 0), la);
	netif_carrier_off(dev);
	lem_rings_free(la);
}

int
lem_restart(struct lem_adapter *la)
{
	lem_down(la);
	return (lem_up(la));
}

/*
 * Look, once a second, for an adapter that is stuck.  lem_tx_idle() is a hint
 * here and is called without the transmit lock.
 */
static void
lem_tick(struct work_struct *work)
{
	struct lem_adapter *la = container_of(to_delayed_work(work),
	    struct lem_adapter, tick);
	struct lem_core *lc = &la->core;
	const uint64_t cleans = READ_ONCE(lc->lc_counter[LEM_C_TX_CLEAN]);

	if (lc->lc_irq != LEM_IRQ_LINE)
		lem_link(lc);
	la->tx_stuck = cleans != la->tx_cleans || !lc->lc_link ||
	    lem_tx_idle(lc) ? 0 : la->tx_stuck + 1;
	la->tx_cleans = cleans;
	if (lc->lc_dead || la->tx_stuck >= LEM_STUCK_MAX) {
		schedule_delayed_work(&la->reset, 0);
		return;
	}
	lem_schedule(la);
	schedule_delayed_work(&la->tick, HZ);
}

/* Reset the adapter, or try again to start it. */
static void
lem_reset(struct work_struct *work)
{
	struct lem_adapter *la = container_of(to_delayed_work(work),
	    struct lem_adapter, reset);

	rtnl_lock();
	if (la->started &&
	    (la->core.lc_dead || la->tx_stuck >= LEM_STUCK_MAX)) {
		la->watchdogs++;
		netdev_err(la->dev, "%s, resetting\n", la->core.lc_dead ?
		    "adapter does not respond" : "transmit timeout");
		lem_down(la);
	}
	(void)lem_up(la);
	rtnl_unlock();
}

/* Interface. */

static int
lem_open(struct net_device *dev)
{
	struct lem_adapter *la = netdev_priv(dev);

	la->failed = false;
	return (lem_up(la));
}

static int
lem_close(struct net_device *dev)
{
	lem_down(netdev_priv(dev));
	return (0);
}

static int
lem_set_mac_address(struct net_device *dev, void *addr)
{
	uint8_t old[ETH_ALEN];
	int error;

	ether_addr_copy(old, dev->dev_addr);
	error = eth_mac_addr(dev, addr);
	if (error != 0)
		return (error);
	error = lem_restart(netdev_priv(dev));
	if (error != 0)
		eth_hw_addr_set(dev, old);
	return (error);
}

static int
lem_change_mtu(struct net_device *dev, int mtu)
{
	struct lem_adapter *la = netdev_priv(dev);
	const int old = dev->mtu;
	int error;

	if (la->prog != NULL && !lem_xdp_fits(mtu)) {
		netdev_err(dev, "MTU %d is too long for XDP\n", mtu);
		return (-EINVAL);
	}
	WRITE_ONCE(dev->mtu, mtu);
	error = lem_restart(la);
	if (error != 0)
		WRITE_ONCE(dev->mtu, old);
	return (error);
}

static netdev_features_t
lem_fix_features(struct net_device *dev, netdev_features_t features)
{
	struct lem_adapter *la = netdev_priv(dev);

	if (la->prog != NULL)
		features &= ~NETIF_F_GRO_HW;
	/* CTRL.VME is for both directions. */
	if ((features & NETIF_F_HW_VLAN_CTAG_RX) != 0)
		features |= NETIF_F_HW_VLAN_CTAG_TX;
	else
		features &= ~NETIF_F_HW_VLAN_CTAG_TX;
	return (features);
}

static int
lem_set_features(struct net_device *dev, netdev_features_t features)
{
	struct lem_adapter *la = netdev_priv(dev);
	const netdev_features_t old = dev->features;
	int error = 0;

	dev->features = features;
	/* The adapter is told of the header ring at start. */
	if (la->started &&
	    (la->core.lc_vnet != NULL) != lem_takes_offloads(la))
		error = lem_restart(la);
	if (error != 0)
		dev->features = old;
	netif_addr_lock_bh(dev);
	lem_filters(dev);
	netif_addr_unlock_bh(dev);
	return (error);
}

/*
 * Refuse TSO of long headers: HDRLEN has eight bits, 8254x SDM section 3.3.6.
 */
static netdev_features_t
lem_features_check(struct sk_buff *skb, struct net_device *dev,
    netdev_features_t features)
{
	if (skb_is_gso(skb) &&
	    skb_transport_offset(skb) + tcp_hdrlen(skb) > 255)
		features &= ~NETIF_F_GSO_MASK;
	return (vlan_features_check(skb, features));
}

static void
lem_get_stats(struct net_device *dev, struct rtnl_link_stats64 *s)
{
	struct lem_adapter *la = netdev_priv(dev);

	s->rx_packets = READ_ONCE(la->rx_stats.packets);
	s->rx_bytes = READ_ONCE(la->rx_stats.bytes);
	s->rx_dropped = READ_ONCE(la->rx_stats.dropped);
	s->rx_errors = READ_ONCE(la->rx_stats.errors);
	s->multicast = READ_ONCE(la->rx_stats.multicast);
	s->tx_packets = READ_ONCE(la->tx_stats.packets);
	s->tx_bytes = READ_ONCE(la->tx_stats.bytes);
	s->tx_dropped = READ_ONCE(la->tx_stats.dropped);
	s->tx_errors = la->watchdogs;
}

static const struct net_device_ops lem_netdev_ops = {
	.ndo_open = lem_open,
	.ndo_stop = lem_close,
	.ndo_start_xmit = lem_xmit,
	.ndo_features_check = lem_features_check,
	.ndo_set_rx_mode = lem_filters,
	.ndo_set_mac_address = lem_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = lem_change_mtu,
	.ndo_fix_features = lem_fix_features,
	.ndo_set_features = lem_set_features,
	.ndo_get_stats64 = lem_get_stats,
	.ndo_bpf = lem_xdp_bpf,
	.ndo_xdp_xmit = lem_xdp_xmit,
};

/* PCI. */

static bool
lem_in_guest(void)
{
#ifdef CONFIG_X86
	return (boot_cpu_has(X86_FEATURE_HYPERVISOR));
#else
	return (true);
#endif
}

static void
lem_setup_netdev(struct lem_adapter *la)
{
	struct net_device *dev = la->dev;
	const bool csb = la->core.lc_csb != NULL;

	dev->netdev_ops = &lem_netdev_ops;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	dev->ethtool_ops = &lem_ethtool_ops;
	dev->sysfs_groups[0] = &lem_sysfs_group;
	dev->min_mtu = E82545_MTU_MIN;
	dev->max_mtu = E82545_MTU_MAX;
	/* QEMU's e1000 gives IPv6 segments a wrong length. */
	dev->hw_features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_RXCSUM |
	    NETIF_F_TSO | (csb ? NETIF_F_TSO6 | NETIF_F_GRO_HW : 0) |
	    NETIF_F_HW_VLAN_CTAG_TX | NETIF_F_HW_VLAN_CTAG_RX;
	dev->features = dev->hw_features | NETIF_F_HIGHDMA;
	dev->vlan_features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO |
	    (csb ? NETIF_F_TSO6 : 0) | NETIF_F_HIGHDMA;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	dev->xdp_features = NETDEV_XDP_ACT_BASIC | NETDEV_XDP_ACT_REDIRECT |
	    NETDEV_XDP_ACT_NDO_XMIT;
#endif
	netif_napi_add(dev, &la->napi, lem_poll);
	netif_carrier_off(dev);
}

/* Return whether the adapter has a CSB: paravirt_csb(9). */
static bool
lem_has_csb(struct pci_dev *pdev)
{
	const u8 cap = pci_find_capability(pdev, PCI_CAP_ID_VNDR);
	u32 signature = 0, version = 0;

	if (cap != 0) {
		pci_read_config_dword(pdev, cap + E82545_CSB_CAP_SIGNATURE,
		    &signature);
		pci_read_config_dword(pdev, cap + E82545_CSB_CAP_VERSION,
		    &version);
	}
	return ((signature == E82545_CSB_SIGNATURE &&
	    version == E82545_CSB_VERSION) ||
	    pdev->subsystem_device == E82545_PCI_SUBDEVICE_CSB);
}

/*
 * Find the registers, the CSB and the station address, and reset the adapter.
 */
static int
lem_attach_adapter(struct lem_adapter *la)
{
	struct pci_dev *pdev = la->pdev;
	struct lem_core *lc = &la->core;
	dma_addr_t dma;
	int error;

	error = pcim_enable_device(pdev);
	if (error == 0)
		error = pcim_iomap_regions(pdev, BIT(0), KBUILD_MODNAME);
	if (error == 0)
		error = dma_set_mask_and_coherent(&pdev->dev,
		    DMA_BIT_MASK(64));
	if (error != 0)
		return (error);
	lc->lc_os.regs = pcim_iomap_table(pdev)[0];
	if (lem_has_csb(pdev)) {
		lc->lc_csb = dmam_alloc_coherent(&pdev->dev,
		    NET_PARAVIRT_CSB_SIZE, &dma, GFP_KERNEL);
		if (lc->lc_csb == NULL)
			return (-ENOMEM);
		lc->lc_csb_dma = dma;
	}
	/* A kernel before this one may have left it running. */
	error = -lem_attach(lc, la->mac);
	if (lc->lc_eeprom_bad)
		dev_warn(&pdev->dev, "wrong EEPROM checksum\n");
	if (error != 0) {
		dev_err(&pdev->dev, "no usable adapter: error %d\n", -error);
		return (-ENODEV);
	}
	pci_set_master(pdev);
	error = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_ALL_TYPES);
	lc->lc_irq = pdev->msix_enabled ? LEM_IRQ_MSIX :
	    pdev->msi_enabled ? LEM_IRQ_MSI : LEM_IRQ_LINE;
	return (error < 0 ? error : 0);
}

static int
lem_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct lem_adapter *la;
	struct lem_knobs knobs;
	struct net_device *dev;
	int error;

	if (!lem_in_guest()) {
		dev_info(&pdev->dev, "not in a virtual machine\n");
		return (-ENODEV);
	}
	/* The kernel offers it to e1000e then. */
	if (pdev->device == E82574_PCI_DEVICE && !lem_has_csb(pdev))
		return (-ENODEV);
	dev = devm_alloc_etherdev(&pdev->dev, sizeof(*la));
	if (dev == NULL)
		return (-ENOMEM);
	SET_NETDEV_DEV(dev, &pdev->dev);
	pci_set_drvdata(pdev, dev);
	la = netdev_priv(dev);
	la->dev = dev;
	la->pdev = pdev;
	la->ntx = la->nrx = LEM_NDESC;
	spin_lock_init(&la->core.lc_os.rx_lock);
	INIT_LIST_HEAD(&la->rx_list);
	INIT_DELAYED_WORK(&la->tick, lem_tick);
	INIT_DELAYED_WORK(&la->reset, lem_reset);
	error = lem_attach_adapter(la);
	if (error != 0)
		return (error);
	eth_hw_addr_set(dev, la->mac);
	knobs = (struct lem_knobs){
		.itr = lem_param_itr.value,
		.sc = lem_param_sc.value,
		.csb = lem_param_csb.value != 0 && la->core.lc_csb != NULL,
		.csb_rounds = lem_param_csb_rounds.value,
		.tx_lazy = lem_param_tx_lazy.value,
	};
	lem_setup_netdev(la);
	rtnl_lock();
	error = lem_set_knobs(la, &knobs);
	rtnl_unlock();
	if (error == 0)
		error = register_netdev(dev);
	if (error != 0)
		return (error);
	netdev_info(dev, "emulated %s, %s, %pM\n",
	    pdev->device == E82574_PCI_DEVICE ? "82574L" : "8254x",
	    la->core.lc_csb != NULL ? "CSB" : "no CSB", dev->dev_addr);
	return (0);
}

static void
lem_remove(struct pci_dev *pdev)
{
	struct net_device *dev = pci_get_drvdata(pdev);
	struct lem_adapter *la = netdev_priv(dev);

	unregister_netdev(dev);
	cancel_delayed_work_sync(&la->reset);
	pci_clear_master(pdev);
}

static int
lem_suspend(struct device *device)
{
	struct net_device *dev = dev_get_drvdata(device);
	struct lem_adapter *la = netdev_priv(dev);

	rtnl_lock();
	netif_device_detach(dev);
	lem_down(la);
	la->suspended = true;
	rtnl_unlock();
	return (0);
}

static int
lem_resume(struct device *device)
{
	struct net_device *dev = dev_get_drvdata(device);
	struct lem_adapter *la = netdev_priv(dev);
	int error;

	rtnl_lock();
	la->suspended = false;
	error = lem_up(la);
	netif_device_attach(dev);
	rtnl_unlock();
	return (error);
}

static void
lem_shutdown(struct pci_dev *pdev)
{
	(void)lem_suspend(&pdev->dev);
	pci_clear_master(pdev);
}

static DEFINE_SIMPLE_DEV_PM_OPS(lem_pm_ops, lem_suspend, lem_resume);

static struct pci_driver lem_driver = {
	.name = KBUILD_MODNAME,
	.id_table = lem_ids,
	.probe = lem_probe,
	.remove = lem_remove,
	.shutdown = lem_shutdown,
	.driver.pm = pm_sleep_ptr(&lem_pm_ops),
};
module_pci_driver(lem_driver);

MODULE_DESCRIPTION("Intel 8254x emulated by a hypervisor, with CSB");
MODULE_AUTHOR("The bhyve-vale authors");
MODULE_LICENSE("Dual BSD/GPL");
