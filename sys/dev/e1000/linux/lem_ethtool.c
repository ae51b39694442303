/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * ethtool(8), and /sys/class/net/INTERFACE/lem.  The core calls these methods
 * under RTNL.
 */

#include "lem_linux.h"

#include <linux/sysfs.h>

#define	ITR_NS		256	/* unit of ITR */
#define	INTR_TRIES	100	/* of 10 ms */

/* Counters besides those of lem_core. */
static const struct {
	const char	*name;
	size_t		 at;		/* in struct lem_adapter */
} lem_more[] = {
	{ "watchdogs", offsetof(struct lem_adapter, watchdogs) },
	{ "xdp_drop", offsetof(struct lem_adapter, rx_stats.xdp_drop) },
	{ "xdp_tx", offsetof(struct lem_adapter, rx_stats.xdp_tx) },
	{ "xdp_redirect",
	    offsetof(struct lem_adapter, rx_stats.xdp_redirect) },
};

/* The knobs that are private flags. */
static const struct {
	const char	*name;
	size_t		 at;		/* in struct lem_knobs */
} lem_flags[] = {
	{ "sc", offsetof(struct lem_knobs, sc) },
	{ "csb", offsetof(struct lem_knobs, csb) },
	{ "tx_lazy", offsetof(struct lem_knobs, tx_lazy) },
};

enum {
	TEST_REGISTERS,
	TEST_EEPROM,
	TEST_INTERRUPT,
	TEST_LINK,
	NTESTS
};
static const char lem_tests[NTESTS][ETH_GSTRING_LEN] = {
	[TEST_REGISTERS] = "Registers (online)",
	[TEST_EEPROM] = "EEPROM    (offline)",
	[TEST_INTERRUPT] = "Interrupt (online)",
	[TEST_LINK] = "Link      (online)",
};

static unsigned int *
lem_flag(struct lem_knobs *k, unsigned int i)
{
	return ((unsigned int *)((char *)k + lem_flags[i].at));
}

static int
lem_get_sset_count(struct net_device *dev, int set)
{
	switch (set) {
	case ETH_SS_STATS:
		return (LEM_NCOUNTERS + ARRAY_SIZE(lem_more));
	case ETH_SS_PRIV_FLAGS:
		return (ARRAY_SIZE(lem_flags));
	case ETH_SS_TEST:
		return (NTESTS);
	default:
		return (-EOPNOTSUPP);
	}
}

static void
lem_get_strings(struct net_device *dev, u32 set, u8 *data)
{
	unsigned int i;

	if (set == ETH_SS_STATS) {
		for (i = 0; i < LEM_NCOUNTERS; i++)
			ethtool_sprintf(&data, "%s",
			    lem_counter_table[i].cr_name);
		for (i = 0; i < ARRAY_SIZE(lem_more); i++)
			ethtool_sprintf(&data, "%s", lem_more[i].name);
	} else if (set == ETH_SS_PRIV_FLAGS) {
		for (i = 0; i < ARRAY_SIZE(lem_flags); i++)
			ethtool_sprintf(&data, "%s", lem_flags[i].name);
	} else if (set == ETH_SS_TEST)
		memcpy(data, lem_tests, sizeof(lem_tests));
}

static void
lem_get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats,
    u64 *data)
{
	struct lem_adapter *la = netdev_priv(dev);
	unsigned int i;

	for (i = 0; i < LEM_NCOUNTERS; i++)
		*data++ = READ_ONCE(la->core.lc_counter[i]);
	for (i = 0; i < ARRAY_SIZE(lem_more); i++)
		*data++ = READ_ONCE(*(u64 *)((char *)la + lem_more[i].at));
}

static void
lem_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct lem_adapter *la = netdev_priv(dev);

	strscpy(info->driver, KBUILD_MODNAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(la->pdev), sizeof(info->bus_info));
}

static int
lem_get_link_ksettings(struct net_device *dev,
    struct ethtool_link_ksettings *ks)
{
	ethtool_link_ksettings_zero_link_mode(ks, supported);
	ethtool_link_ksettings_add_link_mode(ks, supported, 1000baseT_Full);
	ethtool_link_ksettings_add_link_mode(ks, supported, TP);
	ks->base.speed = netif_carrier_ok(dev) ? SPEED_1000 : SPEED_UNKNOWN;
	ks->base.duplex = netif_carrier_ok(dev) ?
	    DUPLEX_FULL : DUPLEX_UNKNOWN;
	ks->base.port = PORT_TP;
	ks->base.autoneg = AUTONEG_DISABLE;
	return (0);
}

static int
lem_get_coalesce(struct net_device *dev, struct ethtool_coalesce *ec,
    struct kernel_ethtool_coalesce *kec, struct netlink_ext_ack *extack)
{
	struct lem_adapter *la = netdev_priv(dev);

	ec->rx_coalesce_usecs =
	    DIV_ROUND_CLOSEST(la->knobs.itr * ITR_NS, 1000);
	return (0);
}

static int
lem_set_coalesce(struct net_device *dev, struct ethtool_coalesce *ec,
    struct kernel_ethtool_coalesce *kec, struct netlink_ext_ack *extack)
{
	struct lem_adapter *la = netdev_priv(dev);
	struct lem_knobs knobs = la->knobs;

	if (ec->rx_coalesce_usecs > E82545_ITR_MAX * ITR_NS / 1000) {
		NL_SET_ERR_MSG_MOD(extack, "rx-usecs must be 0 to 16776");
		return (-ERANGE);
	}
	knobs.itr = DIV_ROUND_CLOSEST(ec->rx_coalesce_usecs * 1000, ITR_NS);
	return (lem_set_knobs(la, &knobs));
}

static void
lem_get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
    struct kernel_ethtool_ringparam *kring, struct netlink_ext_ack *extack)
{
	struct lem_adapter *la = netdev_priv(dev);

	ring->rx_max_pending = ring->tx_max_pending = LEM_RING_MAX;
	ring->rx_pending = la->nrx;
	ring->tx_pending = la->ntx;
}

static bool
lem_ring_valid(unsigned int n)
{
	return (n >= LEM_RING_MIN && n <= LEM_RING_MAX && is_power_of_2(n));
}

static int
lem_set_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
    struct kernel_ethtool_ringparam *kring, struct netlink_ext_ack *extack)
{
	struct lem_adapter *la = netdev_priv(dev);
	const unsigned int nrx = la->nrx, ntx = la->ntx;
	int error;

	if (!lem_ring_valid(ring->rx_pending) ||
	    !lem_ring_valid(ring->tx_pending)) {
		NL_SET_ERR_MSG_MOD(extack,
		    "rings must be a power of two, 128 to 4096");
		return (-EINVAL);
	}
	lem_down(la);
	la->nrx = ring->rx_pending;
	la->ntx = ring->tx_pending;
	error = lem_up(la);
	if (error != 0) {
		la->nrx = nrx;
		la->ntx = ntx;
	}
	return (error);
}

static u32
lem_get_priv_flags(struct net_device *dev)
{
	struct lem_adapter *la = netdev_priv(dev);
	unsigned int i;
	u32 flags = 0;

	for (i = 0; i < ARRAY_SIZE(lem_flags); i++)
		if (*lem_flag(&la->knobs, i) != 0)
			flags |= BIT(i);
	return (flags);
}

static int
lem_set_priv_flags(struct net_device *dev, u32 flags)
{
	struct lem_adapter *la = netdev_priv(dev);
	struct lem_knobs knobs = la->knobs;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lem_flags); i++)
		*lem_flag(&knobs, i) = (flags & BIT(i)) != 0;
	return (lem_set_knobs(la, &knobs));
}

/* Self-test; each returns 0 if it passes. */

static u64
lem_test_registers(struct lem_adapter *la)
{
	uint32_t status = lem_os_read(&la->core, E82545_STATUS);

	return (status == 0xffffffff || (la->core.lc_running &&
	    (lem_os_read(&la->core, E82545_RAH(0)) & E82545_RAH_AV) == 0));
}

/* Read the address from a stopped adapter's EEPROM. */
static u64
lem_test_eeprom(struct lem_adapter *la)
{
	uint8_t mac[ETH_ALEN];

	return (lem_address(&la->core, mac) != 0 || la->core.lc_eeprom_bad);
}

static u64
lem_test_interrupt(struct lem_adapter *la)
{
	const uint64_t *count = &la->core.lc_counter[LEM_C_INTERRUPT];
	const uint64_t before = READ_ONCE(*count);
	int i;

	if (!la->started)
		return (1);
	for (i = 0; i < INTR_TRIES && READ_ONCE(*count) == before; i++) {
		lem_intr_request(&la->core);
		msleep(10);
	}
	return (READ_ONCE(*count) == before);
}

/* Wait for the link, which after a start may take some time. */
static u64
lem_test_link(struct lem_adapter *la)
{
	int i;

	for (i = 0; i < INTR_TRIES && !netif_carrier_ok(la->dev); i++)
		msleep(10);
	return (!netif_carrier_ok(la->dev));
}

static void
lem_self_test(struct net_device *dev, struct ethtool_test *test, u64 *result)
{
	struct lem_adapter *la = netdev_priv(dev);
	unsigned int i;

	memset(result, 0, NTESTS * sizeof(*result));
	if ((test->flags & ETH_TEST_FL_OFFLINE) != 0) {
		lem_down(la);
		result[TEST_EEPROM] = lem_test_eeprom(la);
		(void)lem_up(la);
	}
	result[TEST_REGISTERS] = lem_test_registers(la);
	if (netif_running(dev)) {
		result[TEST_INTERRUPT] = lem_test_interrupt(la);
		result[TEST_LINK] = lem_test_link(la);
	}
	for (i = 0; i < NTESTS; i++)
		if (result[i] != 0)
			test->flags |= ETH_TEST_FL_FAILED;
}

const struct ethtool_ops lem_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_RX_USECS,
	.get_drvinfo = lem_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = lem_get_link_ksettings,
	.get_coalesce = lem_get_coalesce,
	.set_coalesce = lem_set_coalesce,
	.get_ringparam = lem_get_ringparam,
	.set_ringparam = lem_set_ringparam,
	.get_sset_count = lem_get_sset_count,
	.get_strings = lem_get_strings,
	.get_ethtool_stats = lem_get_ethtool_stats,
	.get_priv_flags = lem_get_priv_flags,
	.set_priv_flags = lem_set_priv_flags,
	.self_test = lem_self_test,
	.get_ts_info = ethtool_op_get_ts_info,
};

/* /sys/class/net/INTERFACE/lem/csb_rounds */

static ssize_t
csb_rounds_show(struct device *device, struct device_attribute *attr,
    char *buf)
{
	struct lem_adapter *la = netdev_priv(to_net_dev(device));

	return (sysfs_emit(buf, "%u\n", la->knobs.csb_rounds));
}

static ssize_t
csb_rounds_store(struct device *device, struct device_attribute *attr,
    const char *text, size_t len)
{
	struct lem_adapter *la = netdev_priv(to_net_dev(device));
	struct lem_knobs knobs;
	unsigned int value;
	int error;

	if (kstrtouint(text, 0, &value) != 0 || value > LEM_ROUNDS_MAX)
		return (-EINVAL);
	/* Removal holds RTNL while it waits for this function. */
	if (!rtnl_trylock())
		return (restart_syscall());
	knobs = la->knobs;
	knobs.csb_rounds = value;
	error = lem_set_knobs(la, &knobs);
	rtnl_unlock();
	return (error != 0 ? error : len);
}
static DEVICE_ATTR_RW(csb_rounds);

static struct attribute *lem_attributes[] = {
	&dev_attr_csb_rounds.attr,
	NULL
};

const struct attribute_group lem_sysfs_group = {
	.name = KBUILD_MODNAME,
	.attrs = lem_attributes,
};
