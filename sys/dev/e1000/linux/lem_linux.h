/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * State of an adapter in Linux, shared by lem_main.c (PCI, interface, life
 * cycle), lem_txrx.c (packets, NAPI), lem_ethtool.c and lem_xdp.c.
 *
 * Three locks, taken in this order:
 *
 *   RTNL	held to start, stop or configure the adapter
 *   rx_lock	the receive side of lem_core
 *   the lock of the transmit queue (__netif_tx_lock())
 *		the transmit side of lem_core; the stack holds it when it calls
 *		lem_xmit()
 *
 * A call of lem_core's that requires both locks is made under all three:
 * lem_lock_both().
 */

#ifndef _DEV_E1000_LINUX_LEM_LINUX_H_
#define	_DEV_E1000_LINUX_LEM_LINUX_H_

#include <linux/bpf.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif
#include <net/xdp.h>

#include "lem_core.h"

#ifndef CONFIG_64BIT
#error "lem needs a 64-bit kernel"
#endif

#define	LEM_NDESC	1024	/* default of descriptors in a ring */
/* Descriptors that a packet needs, at most: headers, fragments, a context
 * descriptor, and four more for what is longer than LEM_SEG_MAX.  A ring that
 * is not short has them. */
#define	LEM_TX_NEED	(1 + MAX_SKB_FRAGS + 1 + 4)
#define	LEM_SEG_MAX	16383	/* bytes of a descriptor */
/* Bytes of a frame, besides its payload. */
#define	LEM_OVERHEAD	(ETH_HLEN + VLAN_HLEN + ETH_FCS_LEN)

/* The knobs; their ranges are in lem_main.c. */
struct lem_knobs {
	unsigned int	 itr;		/* minimum between interrupts, 256 ns */
	unsigned int	 sc;		/* LEM_MODE_SC */
	unsigned int	 csb;		/* LEM_MODE_CSB */
	unsigned int	 csb_rounds;	/* lem_set_rounds() */
	unsigned int	 tx_lazy;	/* LEM_MODE_LAZY */
};

/* What a transmit slot has: a mapping, and a packet in its first slot. */
struct lem_tx_buf {
	enum {
		LEM_TX_NOTHING,
		LEM_TX_SKB,
		LEM_TX_PAGE,		/* XDP_TX: of the page pool, unmapped */
		LEM_TX_FRAME		/* an xdp_frame */
	}		 kind;
	union {
		struct sk_buff	*skb;
		struct page	*page;
		struct xdp_frame *frame;
	};
	dma_addr_t	 dma;
	uint32_t	 len;		/* bytes mapped, or 0 */
	uint32_t	 charged;	/* bytes, for netdev_tx_sent_queue() */
	bool		 awaited;	/* somebody waits until it is sent */
};

/* Counters that lem_core does not have.  The lock of their side. */
struct lem_rx_stats {
	uint64_t	 packets, bytes, dropped, errors, multicast;
	uint64_t	 xdp_drop, xdp_tx, xdp_redirect;
};
struct lem_tx_stats {
	uint64_t	 packets, bytes, dropped;
};

struct lem_adapter {
	struct lem_core	 core;
	struct net_device *dev;
	struct pci_dev	*pdev;
	struct napi_struct napi;
	uint8_t		 mac[ETH_ALEN];	/* of the EEPROM */

	/* RTNL. */
	struct lem_knobs knobs;
	unsigned int	 ntx, nrx;	/* descriptors */
	bool		 started;
	bool		 failed;	/* to start, and that was reported */
	bool		 suspended;
	uint64_t	 watchdogs;

	struct delayed_work tick;
	struct delayed_work reset;
	uint64_t	 tx_cleans;	/* as of the last tick */
	unsigned int	 tx_stuck;	/* seconds without a completion */

	/* Allocated by lem_up(). */
	void		*rings;
	dma_addr_t	 rings_dma;
	size_t		 rings_size;
	struct lem_tx_buf *tx_buf;
	struct page	**rx_buf;
	struct page_pool *pool;
	struct xdp_rxq_info rxq;

	/* rx_lock. */
	unsigned int	 rx_offset;	/* of a frame in its page */
	struct sk_buff	*rx_frame;	/* an incomplete frame */
	bool		 rx_redirected;	/* call xdp_do_flush() */
	struct list_head rx_list;	/* frames for the stack */
	struct bpf_prog	*prog;		/* RTNL to change it */
	struct lem_rx_stats rx_stats;

	/* The transmit queue's lock. */
	int		 tx_budget;	/* NAPI's; 0 outside of it */
	unsigned int	 tx_xdp;	/* XDP's frames in the ring */
	unsigned int	 tx_awaited;	/* packets for which somebody waits */
	unsigned int	 tx_done_packets; /* to report to BQL */
	unsigned int	 tx_done_bytes;
	struct lem_seg	 tx_seg[LEM_TX_NEED];
	struct lem_tx_stats tx_stats;
};

#define	LEM_ADAPTER(lc)	container_of(lc, struct lem_adapter, core)
#define	LEM_TXQ(la)	netdev_get_tx_queue((la)->dev, 0)

static inline void
lem_lock_both(struct lem_adapter *la)
{
	spin_lock_bh(&la->core.lc_os.rx_lock);
	__netif_tx_lock(LEM_TXQ(la), smp_processor_id());
}

static inline void
lem_unlock_both(struct lem_adapter *la)
{
	__netif_tx_unlock(LEM_TXQ(la));
	spin_unlock_bh(&la->core.lc_os.rx_lock);
}

/*
 * lem_main.c.  The caller must hold RTNL.
 *
 * lem_up() starts the adapter; it does nothing and returns 0 if it is started,
 * suspended, or the interface is down.  lem_restart() stops and starts it.
 * Both return 0 or a negative errno value; then the adapter is stopped, and is
 * started when the caller has restored the setting and released RTNL, or each
 * second until that succeeds.  lem_set_knobs() applies and keeps the knobs, and
 * returns -EOPNOTSUPP, and changes none, if the adapter does not support one.
 */
int	lem_up(struct lem_adapter *la);
void	lem_down(struct lem_adapter *la);
int	lem_restart(struct lem_adapter *la);
int	lem_set_knobs(struct lem_adapter *la, const struct lem_knobs *k);

/*
 * lem_txrx.c
 *
 * lem_poll() and lem_xmit() are methods of NAPI and of the interface.
 * lem_buffers_alloc() makes what the slots of the rings need, before
 * lem_start(); lem_buffers_free() frees it, and all buffers, after lem_stop(),
 * or if lem_buffers_alloc() failed.  lem_buffers_alloc() returns 0 or a
 * negative errno value.
 *
 * lem_rx_done() passes a frame to the stack: rx_lock.  lem_tx_reclaim() takes
 * back packets that were sent, of which no interrupt tells then, and lets the
 * stack go on if it waits for them; `budget' is NAPI's, or 0: the transmit
 * queue's lock.  lem_tx_stop() stops the adapter, and forgets what was charged
 * for the packets in the ring: both locks.
 */
int	lem_poll(struct napi_struct *napi, int budget);
netdev_tx_t lem_xmit(struct sk_buff *skb, struct net_device *dev);
int	lem_buffers_alloc(struct lem_adapter *la);
void	lem_buffers_free(struct lem_adapter *la);
void	lem_tx_reclaim(struct lem_adapter *la, int budget);
void	lem_tx_stop(struct lem_adapter *la);
void	lem_rx_done(struct lem_adapter *la, struct sk_buff *skb,
	    uint32_t flags, uint16_t vlan);
/* Give the buffer of a slot back to the adapter. */
void	lem_rx_return(struct lem_adapter *la, struct page *page, uint32_t len);

/* lem_ethtool.c */
extern const struct ethtool_ops lem_ethtool_ops;
extern const struct attribute_group lem_sysfs_group;

/*
 * lem_xdp.c
 *
 * lem_xdp_rx() runs the program for a frame of `len' bytes in the page of a
 * slot, and returns whether the page was taken: rx_lock.  lem_xdp_fits()
 * returns whether frames of an MTU fit a buffer with a program's headroom.
 */
bool	lem_xdp_rx(struct lem_adapter *la, struct page *page, uint32_t len,
	    uint32_t flags, uint16_t vlan);
bool	lem_xdp_fits(unsigned int mtu);
int	lem_xdp_bpf(struct net_device *dev, struct netdev_bpf *bpf);
int	lem_xdp_xmit(struct net_device *dev, int n, struct xdp_frame **frames,
	    u32 flags);

#endif /* !_DEV_E1000_LINUX_LEM_LINUX_H_ */
