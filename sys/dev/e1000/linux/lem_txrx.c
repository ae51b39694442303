/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Packets: sk_buffs to and from the descriptors of lem_core, and NAPI.
 *
 * Receive.  A buffer is a page of the interface's page pool.  A frame of up to
 * LEM_RX_COPY bytes is copied, and the slot keeps its page: a socket is charged
 * for the memory behind a frame, and a page for each datagram fills it long
 * before the program gets its turn.  A longer frame takes its pages with it.
 * The frames of a poll are passed to the stack with no lock held.
 *
 * Transmit.  The stack holds the queue's lock.  Packets that it hands over
 * together (netdev_xmit_more()) are flushed together.  A packet's mappings are
 * in the slots from lem_core's tail on.
 *
 * Completion.  A packet is charged to its socket, and to byte queue limits,
 * until lem_tx_reclaim() finds that it was sent.  With LEM_MODE_CSB and
 * LEM_MODE_LAZY the adapter does not report that unless it is asked to:
 * lem_xmit() reclaims the packets before, lem_poll() does so at each interrupt,
 * and lem_tx_ask() asks if somebody may wait (lem_tx_awaited()).  What nobody
 * waits for is reclaimed within a second, by lem_tick().
 */

#include "lem_linux.h"

#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/virtio_net.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>

#define	LEM_RX_COPY	1536	/* bytes: the longest frame that is copied */
#define	LEM_RX_HEAD	256	/* bytes: headers of a longer one */

/* Whether interrupts report that packets were sent. */
#define	LEM_REPORTS(lc)							\
	(((lc)->lc_mode & (LEM_MODE_CSB | LEM_MODE_LAZY)) == 0)

#ifdef CONFIG_LOCKDEP
void
lem_os_assert_tx(const struct lem_core *lc)
{
	lockdep_assert_held(&LEM_TXQ(LEM_ADAPTER(lc))->_xmit_lock);
}
#endif

/* Buffers. */

int
lem_buffers_alloc(struct lem_adapter *la)
{
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.pool_size = la->nrx,
		.nid = NUMA_NO_NODE,
		.dev = &la->pdev->dev,
		.dma_dir = la->prog != NULL ?
		    DMA_BIDIRECTIONAL : DMA_FROM_DEVICE,
		.max_len = la->core.lc_rx_bufsize,
	};
	int error;

	la->rx_offset = la->prog != NULL ? XDP_PACKET_HEADROOM : 0;
	params.offset = la->rx_offset;
	la->tx_buf = kvcalloc(la->ntx, sizeof(*la->tx_buf), GFP_KERNEL);
	la->rx_buf = kvcalloc(la->nrx, sizeof(*la->rx_buf), GFP_KERNEL);
	if (la->tx_buf == NULL || la->rx_buf == NULL)
		return (-ENOMEM);
	la->pool = page_pool_create(&params);
	if (IS_ERR(la->pool)) {
		error = PTR_ERR(la->pool);
		la->pool = NULL;
		return (error);
	}
	error = xdp_rxq_info_reg(&la->rxq, la->dev, 0, la->napi.napi_id);
	if (error == 0)
		error = xdp_rxq_info_reg_mem_model(&la->rxq,
		    MEM_TYPE_PAGE_POOL, la->pool);
	return (error);
}

void
lem_buffers_free(struct lem_adapter *la)
{
	unsigned int i;

	ASSERT_RTNL();
	kfree_skb(la->rx_frame);
	la->rx_frame = NULL;
	for (i = 0; la->rx_buf != NULL && i < la->nrx; i++)
		if (la->rx_buf[i] != NULL)
			page_pool_put_full_page(la->pool, la->rx_buf[i],
			    false);
	if (xdp_rxq_info_is_reg(&la->rxq))
		xdp_rxq_info_unreg(&la->rxq);
	if (la->pool != NULL)
		page_pool_destroy(la->pool);
	la->pool = NULL;
	kvfree(la->rx_buf);
	kvfree(la->tx_buf);
	la->rx_buf = NULL;
	la->tx_buf = NULL;
}

/* Receive. */

uint64_t
lem_os_rx_buf(struct lem_core *lc, uint32_t slot)
{
	struct lem_adapter *la = LEM_ADAPTER(lc);
	struct page *page = la->rx_buf[slot];

	lem_os_assert_rx(lc);
	if (page == NULL)
		page = la->rx_buf[slot] = page_pool_dev_alloc_pages(la->pool);
	return (page == NULL ? 0 :
	    page_pool_get_dma_addr(page) + la->rx_offset);
}

void
lem_rx_return(struct lem_adapter *la, struct page *page, uint32_t len)
{
	dma_sync_single_range_for_device(&la->pdev->dev,
	    page_pool_get_dma_addr(page), la->rx_offset, len,
	    page_pool_get_dma_dir(la->pool));
}

/*
 * Describe a frame whose sender, on the same host, has left its checksum, and
 * perhaps its segmentation, to us, as all who get the frame see, also from a
 * bridge or a router.  Returns false if the header, which other guests make, is
 * invalid.  Linux 6.1 does not take the type of UDP segments.
 */
static bool
lem_rx_offload(struct lem_adapter *la, struct sk_buff *skb)
{
	const struct lem_offload *lo = &la->core.lc_rx_offload;
	const bool udp = lo->lo_type == LEM_OFFLOAD_UDP;
	const struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = udp ? LEM_OFFLOAD_NONE : lo->lo_type,
		.gso_size = udp ? 0 : lo->lo_mss,
		.csum_start = lo->lo_csum_start,
		.csum_offset = lo->lo_csum_offset,
	};

	if (virtio_net_hdr_to_skb(skb, &hdr, true) != 0)
		return (false);
	if (udp) {
		if (lo->lo_csum_offset != offsetof(struct udphdr, check))
			return (false);
		skb_shinfo(skb)->gso_size = lo->lo_mss;
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4 | SKB_GSO_DODGY;
		skb_shinfo(skb)->gso_segs = 0;
	}
	return (true);
}

void
lem_rx_done(struct lem_adapter *la, struct sk_buff *skb, uint32_t flags,
    uint16_t vlan)
{
	struct net_device *dev = la->dev;

	lem_os_assert_rx(&la->core);
	if ((flags & LEM_RX_OFFLOAD) != 0) {
		if (!lem_rx_offload(la, skb)) {
			la->rx_stats.errors++;
			dev_kfree_skb_any(skb);
			return;
		}
	} else if ((flags & LEM_RX_L4SUM) != 0 &&
	    (dev->features & NETIF_F_RXCSUM) != 0)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	la->rx_stats.packets++;
	la->rx_stats.bytes += skb->len;
	skb->protocol = eth_type_trans(skb, dev);
	la->rx_stats.multicast += skb->pkt_type == PACKET_MULTICAST;
	if ((flags & LEM_RX_VLAN) != 0)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), vlan);
	list_add_tail(&skb->list, &la->rx_list);
}

/*
 * Drop a frame, of which there may be more slots.  The caller counts it in one
 * of them only.
 */
static void
lem_rx_drop(struct lem_adapter *la, uint64_t *counter, bool count)
{
	if (la->rx_frame != NULL)
		dev_kfree_skb_any(la->rx_frame);
	la->rx_frame = NULL;
	*counter += count;
}

/*
 * Begin a frame with `len' bytes at `va', in a page.  Returns NULL if there is
 * no memory.  Unless all were copied, the page is the sk_buff's.
 */
static struct sk_buff *
lem_rx_first(struct lem_adapter *la, struct page *page, void *va,
    uint32_t len, bool whole)
{
	const bool copy = whole && len <= LEM_RX_COPY;
	struct sk_buff *skb;
	uint32_t head;

	skb = napi_alloc_skb(&la->napi, copy ? len : LEM_RX_HEAD);
	if (skb == NULL)
		return (NULL);
	head = copy ? len : eth_get_headlen(la->dev, va,
	    min_t(uint32_t, len, LEM_RX_HEAD));
	skb_put_data(skb, va, head);
	if (head < len) {
		skb_mark_for_recycle(skb);
		skb_add_rx_frag(skb, 0, page, la->rx_offset + head,
		    len - head, PAGE_SIZE);
	}
	return (skb);
}

bool
lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len, uint32_t flags,
    uint16_t vlan)
{
	const uint32_t whole = LEM_RX_SOP | LEM_RX_EOP;
	const bool eop = (flags & LEM_RX_EOP) != 0;
	struct lem_adapter *la = LEM_ADAPTER(lc);
	struct page *page = la->rx_buf[slot];
	struct sk_buff *skb;
	bool taken = true;
	void *va;

	lem_os_assert_rx(lc);
	if ((flags & LEM_RX_BAD) != 0) {
		lem_rx_drop(la, &la->rx_stats.errors, eop);
		return (false);
	}
	dma_sync_single_range_for_cpu(&la->pdev->dev,
	    page_pool_get_dma_addr(page), la->rx_offset, len,
	    page_pool_get_dma_dir(la->pool));
	va = page_address(page) + la->rx_offset;
	if (la->prog != NULL) {
		if ((flags & whole) != whole)
			lem_rx_drop(la, &la->rx_stats.dropped, eop);
		taken = (flags & whole) == whole &&
		    lem_xdp_rx(la, page, len, flags, vlan);
	} else if ((flags & LEM_RX_SOP) != 0) {
		skb = lem_rx_first(la, page, va, len, eop);
		la->rx_frame = skb;
		taken = skb != NULL && skb_is_nonlinear(skb);
		if (skb == NULL)
			lem_rx_drop(la, &la->rx_stats.dropped, true);
	} else if ((skb = la->rx_frame) == NULL) {
		taken = false;
	} else if (skb_shinfo(skb)->nr_frags == MAX_SKB_FRAGS) {
		lem_rx_drop(la, &la->rx_stats.errors, true);
		taken = false;
	} else
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page,
		    la->rx_offset, len, PAGE_SIZE);
	if (eop && la->rx_frame != NULL) {
		skb = la->rx_frame;
		la->rx_frame = NULL;
		lem_rx_done(la, skb, flags, vlan);
	}
	if (taken)
		la->rx_buf[slot] = NULL;
	else
		lem_rx_return(la, page, len);
	return (taken);
}

/* Transmit. */

void
lem_os_tx_done(struct lem_core *lc, uint32_t slot)
{
	struct lem_adapter *la = LEM_ADAPTER(lc);
	struct lem_tx_buf *b = &la->tx_buf[slot];

	lem_os_assert_tx(lc);
	if (b->len != 0)
		dma_unmap_page(&la->pdev->dev, b->dma, b->len, DMA_TO_DEVICE);
	b->len = 0;
	if (b->charged != 0) {
		la->tx_done_packets++;
		la->tx_done_bytes += b->charged;
		b->charged = 0;
	}
	la->tx_awaited -= b->awaited;
	b->awaited = false;
	if (b->kind == LEM_TX_SKB)
		napi_consume_skb(b->skb, la->tx_budget);
	else if (b->kind == LEM_TX_PAGE)
		page_pool_put_full_page(la->pool, b->page, false);
	else if (b->kind == LEM_TX_FRAME)
		xdp_return_frame(b->frame);
	la->tx_xdp -= b->kind == LEM_TX_PAGE || b->kind == LEM_TX_FRAME;
	b->kind = LEM_TX_NOTHING;
}

void
lem_tx_stop(struct lem_adapter *la)
{
	lem_stop(&la->core);
	la->tx_done_packets = la->tx_done_bytes = 0;
	netdev_tx_reset_queue(LEM_TXQ(la));
}

/*
 * Report reclaimed packets to byte queue limits, and let the stack send again if
 * it waits for descriptors.
 */
static void
lem_tx_completed(struct lem_adapter *la)
{
	struct lem_core *lc = &la->core;
	struct netdev_queue *txq = LEM_TXQ(la);

	if (la->tx_done_packets != 0) {
		netdev_tx_completed_queue(txq, la->tx_done_packets,
		    la->tx_done_bytes);
		la->tx_done_packets = la->tx_done_bytes = 0;
	}
	if (netif_tx_queue_stopped(txq) && lc->lc_running &&
	    lc->lc_tx_short == 0)
		netif_tx_wake_queue(txq);
}

void
lem_tx_reclaim(struct lem_adapter *la, int budget)
{
	la->tx_budget = budget;
	lem_tx_clean(&la->core);
	la->tx_budget = 0;
	lem_tx_completed(la);
}

/*
 * Return whether somebody may wait until a packet is sent: TCP, which lets few
 * wait below it and collects what a program writes meanwhile; who gets his
 * memory back then; any other socket, if its buffer is half full.  Nobody waits
 * for TCP's acknowledgements.
 */
static bool
lem_tx_awaited(struct sk_buff *skb)
{
	if (skb_zcopy(skb) != NULL)
		return (true);
	if (skb->destructor == sock_wfree)
		return (!sock_writeable(skb->sk));
	return (skb->destructor != NULL && !skb_is_tcp_pure_ack(skb));
}

/* Have the adapter report what somebody waits for: a socket, or the queue. */
static void
lem_tx_ask(struct lem_adapter *la)
{
	if (la->tx_awaited == 0 && !netif_xmit_stopped(LEM_TXQ(la)))
		return;
	lem_tx_report(&la->core);
	/* What was sent meanwhile has no report. */
	lem_tx_completed(la);
}

/*
 * Prepare TSO.  The adapter needs the sum of the pseudo header without the
 * length in TCP's checksum, and IP's length and checksum must be 0 (8254x SDM
 * section 3.5.6).
 */
static bool
lem_tx_tso(struct sk_buff *skb, struct lem_packet *lp)
{
	if (skb_cow_head(skb, 0) != 0)
		return (false);
	lp->lpk_mss = skb_shinfo(skb)->gso_size;
	lp->lpk_l2len = skb_network_offset(skb);
	lp->lpk_l3len = skb_network_header_len(skb);
	lp->lpk_l4len = tcp_hdrlen(skb);
	if ((skb_shinfo(skb)->gso_type & SKB_GSO_TCPV4) != 0) {
		struct iphdr *ip = ip_hdr(skb);

		ip->tot_len = 0;
		ip->check = 0;
		tcp_hdr(skb)->check = ~csum_tcpudp_magic(ip->saddr, ip->daddr,
		    0, IPPROTO_TCP, 0);
		lp->lpk_flags |= LEM_TX_TSO4 | LEM_TX_IPSUM | LEM_TX_TCPSUM;
	} else if ((skb_shinfo(skb)->gso_type & SKB_GSO_TCPV6) != 0) {
		tcp_v6_gso_csum_prep(skb);
		lp->lpk_flags |= LEM_TX_TSO6 | LEM_TX_TCPSUM;
	} else
		return (false);
	return (true);
}

/*
 * Have the adapter complete TCP's or UDP's checksum; any other is completed
 * here.
 */
static bool
lem_tx_csum(struct sk_buff *skb, struct lem_packet *lp)
{
	const int start = skb_checksum_start_offset(skb);
	const int l2 = skb_network_offset(skb);

	if (l2 <= 0 || l2 >= start || start > UINT8_MAX - 16)
		return (skb_checksum_help(skb) == 0);
	if (skb->csum_offset == offsetof(struct tcphdr, check))
		lp->lpk_flags |= LEM_TX_TCPSUM;
	else if (skb->csum_offset == offsetof(struct udphdr, check))
		lp->lpk_flags |= LEM_TX_UDPSUM;
	else
		return (skb_checksum_help(skb) == 0);
	lp->lpk_l2len = l2;
	lp->lpk_l3len = start - l2;
	return (true);
}

/* Fill in what the adapter must do.  Returns false if it cannot. */
static bool
lem_tx_offloads(struct sk_buff *skb, struct lem_packet *lp)
{
	if (skb_vlan_tag_present(skb)) {
		lp->lpk_flags |= LEM_TX_VLAN;
		lp->lpk_vlan = skb_vlan_tag_get(skb);
	}
	if (skb_is_gso(skb))
		return (lem_tx_tso(skb, lp));
	return (skb->ip_summed != CHECKSUM_PARTIAL || lem_tx_csum(skb, lp));
}

/*
 * Add `len' bytes at `dma' to the packet that begins at lem_core's tail, in
 * segments.  Returns false if there are too many; their mapping is undone
 * together with the packet's.
 */
static bool
lem_tx_add(struct lem_adapter *la, struct lem_packet *lp, dma_addr_t dma,
    uint32_t len)
{
	struct lem_core *lc = &la->core;
	struct lem_tx_buf *b;
	uint32_t n;

	if (dma_mapping_error(&la->pdev->dev, dma))
		return (false);
	b = &la->tx_buf[(lc->lc_tx_tail + lp->lpk_nsegs) & (lc->lc_ntxd - 1)];
	b->dma = dma;
	b->len = len;
	for (; len > 0; len -= n, dma += n) {
		n = min_t(uint32_t, len, LEM_SEG_MAX);
		/* The context descriptor is the last one needed. */
		if (lp->lpk_nsegs == LEM_TX_NEED - 1)
			return (false);
		la->tx_seg[lp->lpk_nsegs++] = (struct lem_seg){
			.ls_addr = dma, .ls_len = n };
	}
	return (true);
}

/* Undo the mappings of the packet that begins at lem_core's tail. */
static void
lem_tx_unmap(struct lem_adapter *la)
{
	struct lem_core *lc = &la->core;
	struct lem_tx_buf *b;
	int i;

	for (i = 0; i < LEM_TX_NEED; i++) {
		b = &la->tx_buf[(lc->lc_tx_tail + i) & (lc->lc_ntxd - 1)];
		if (b->len != 0)
			dma_unmap_page(&la->pdev->dev, b->dma, b->len,
			    DMA_TO_DEVICE);
		b->len = 0;
	}
}

static bool
lem_tx_map(struct lem_adapter *la, struct sk_buff *skb, struct lem_packet *lp)
{
	struct device *dev = &la->pdev->dev;
	const skb_frag_t *frag;
	int i;

	if (!lem_tx_add(la, lp, dma_map_single(dev, skb->data,
	    skb_headlen(skb), DMA_TO_DEVICE), skb_headlen(skb)))
		return (false);
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		frag = &skb_shinfo(skb)->frags[i];
		if (skb_frag_size(frag) != 0 && !lem_tx_add(la, lp,
		    skb_frag_dma_map(dev, frag, 0, skb_frag_size(frag),
		    DMA_TO_DEVICE), skb_frag_size(frag)))
			return (false);
	}
	return (true);
}

/* Queue a packet.  There are LEM_TX_NEED descriptors. */
static bool
lem_tx_packet(struct lem_adapter *la, struct sk_buff *skb)
{
	struct lem_core *lc = &la->core;
	struct lem_tx_buf *b = &la->tx_buf[lc->lc_tx_tail];
	struct lem_packet lp = { .lpk_segs = la->tx_seg };

	if (skb->len < ETH_HLEN || !lem_tx_offloads(skb, &lp))
		return (false);
	if (!lem_tx_map(la, skb, &lp) || lem_tx(lc, &lp) != 0) {
		lem_tx_unmap(la);
		return (false);
	}
	b->kind = LEM_TX_SKB;
	b->skb = skb;
	la->tx_stats.packets += skb_is_gso(skb) ?
	    max_t(unsigned int, skb_shinfo(skb)->gso_segs, 1) : 1;
	la->tx_stats.bytes += skb->len;
	skb_tx_timestamp(skb);
	b->charged = skb->len;
	b->awaited = lem_tx_awaited(skb);
	la->tx_awaited += b->awaited;
	return (true);
}

netdev_tx_t
lem_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct lem_adapter *la = netdev_priv(dev);
	struct lem_core *lc = &la->core;
	struct netdev_queue *txq = LEM_TXQ(la);
	const unsigned int len = skb->len;
	bool flush = !netdev_xmit_more();

	lem_os_assert_tx(lc);
	/* netpoll may not return pages to a page pool. */
	if (unlikely(la->tx_xdp != 0 && irqs_disabled()))
		return (NETDEV_TX_BUSY);
	if (lc->lc_running && !LEM_REPORTS(lc))
		lem_tx_reclaim(la, 0);
	if (!lc->lc_running || lc->lc_dead || !lem_tx_packet(la, skb)) {
		la->tx_stats.dropped++;
		dev_kfree_skb_any(skb);
	} else
		flush = __netdev_tx_sent_queue(txq, len, !flush);
	if (lc->lc_running && lem_tx_avail(lc) < LEM_TX_NEED) {
		/* This flushes, too. */
		netif_tx_stop_queue(txq);
		lem_tx_wait(lc, LEM_TX_NEED);
		if (lem_tx_avail(lc) >= LEM_TX_NEED)
			netif_tx_start_queue(txq);
	}
	if (flush) {
		lem_tx_flush(lc);
		lem_tx_ask(la);
	}
	return (NETDEV_TX_OK);
}

/* NAPI. */

/* Pass the frames to the stack, with no lock held. */
static void
lem_rx_deliver(struct napi_struct *napi, struct list_head *frames)
{
	struct sk_buff *skb, *next;

	list_for_each_entry_safe(skb, next, frames, list) {
		skb_list_del_init(skb);
		napi_gro_receive(napi, skb);
	}
}

static void
lem_link_update(struct lem_adapter *la)
{
	const bool link = la->core.lc_link && !la->core.lc_dead;

	if (link == netif_carrier_ok(la->dev))
		return;
	if (link)
		netif_carrier_on(la->dev);
	else
		netif_carrier_off(la->dev);
}

/*
 * Receive up to `budget' frames.  While a program polls (napi_busy_loop()), or
 * timers of NAPI do, nobody needs interrupts: they are held, and asked for only
 * if NAPI is complete.
 */
static int
lem_poll_rx(struct lem_adapter *la, int budget)
{
	struct lem_core *lc = &la->core;
	bool redirected;
	LIST_HEAD(frames);
	int n;

	spin_lock(&lc->lc_os.rx_lock);
	lem_intr_hold(lc);
	n = lem_rx(lc, budget);
	list_splice_init(&la->rx_list, &frames);
	redirected = la->rx_redirected;
	la->rx_redirected = false;
	lem_link_update(la);
	spin_unlock(&lc->lc_os.rx_lock);
	if (redirected)
		xdp_do_flush();
	lem_rx_deliver(&la->napi, &frames);
	return (n);
}

/*
 * Serve netpoll, which sends a message from any context, also from an interrupt
 * of a thread that holds our locks, and polls with a budget of 0 for
 * descriptors to be reclaimed (Linux's Documentation/networking/napi.rst).
 * Wait for no lock then, receive nothing, and do not touch page pools.
 */
static void
lem_poll_netpoll(struct lem_adapter *la)
{
	struct netdev_queue *txq = LEM_TXQ(la);

	if (!__netif_tx_trylock(txq))
		return;
	if (la->tx_xdp == 0)
		lem_tx_reclaim(la, 0);
	lem_tx_flush(&la->core);
	__netif_tx_unlock(txq);
}

int
lem_poll(struct napi_struct *napi, int budget)
{
	struct lem_adapter *la = container_of(napi, struct lem_adapter, napi);
	struct lem_core *lc = &la->core;
	bool again;
	int n;

	if (budget == 0) {
		lem_poll_netpoll(la);
		return (0);
	}
	n = lem_poll_rx(la, budget);
	__netif_tx_lock(LEM_TXQ(la), smp_processor_id());
	lem_tx_reclaim(la, budget);
	lem_tx_flush(lc);
	lem_tx_ask(la);
	__netif_tx_unlock(LEM_TXQ(la));
	if (n >= budget || !napi_complete_done(napi, n))
		return (n);
	spin_lock(&lc->lc_os.rx_lock);
	again = lem_intr_enable(lc);
	spin_unlock(&lc->lc_os.rx_lock);
	if (again)
		napi_schedule(napi);
	return (n);
}
