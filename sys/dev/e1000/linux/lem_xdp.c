/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * XDP.  With a program, a buffer is 2048 bytes in a page that has headroom
 * before it and room for a skb_shared_info behind it, so a frame is never cut.
 * The header ring, whose frames are longer, is off then.
 *
 * What the program sends goes to the transmit ring in the page that it came in,
 * and is posted at the end of the poll.
 */

#include "lem_linux.h"

#include <linux/bpf_trace.h>
#include <linux/filter.h>

bool
lem_xdp_fits(unsigned int mtu)
{
	return (mtu + LEM_OVERHEAD <= 2048);
}

/*
 * Send `len' bytes at `dma', which belong to `b'; they are mapped already if
 * `b->len' is 0.  Returns false if there are no descriptors.
 */
static bool
lem_xdp_send(struct lem_adapter *la, const struct lem_tx_buf *b,
    dma_addr_t dma, uint32_t len)
{
	const struct lem_seg seg = { .ls_addr = dma, .ls_len = len };
	const struct lem_packet lp = { .lpk_segs = &seg, .lpk_nsegs = 1 };
	struct lem_core *lc = &la->core;
	const uint32_t slot = lc->lc_tx_tail;

	lem_os_assert_tx(lc);
	/* What is left belongs to the stack, which may not wait for it. */
	if (!lc->lc_running || lem_tx_avail(lc) <= LEM_TX_NEED ||
	    lem_tx(lc, &lp) != 0)
		return (false);
	la->tx_buf[slot] = *b;
	la->tx_xdp++;
	la->tx_stats.packets++;
	la->tx_stats.bytes += len;
	return (true);
}

static bool
lem_xdp_tx(struct lem_adapter *la, struct page *page,
    const struct xdp_buff *xdp)
{
	const struct lem_tx_buf b = { .kind = LEM_TX_PAGE, .page = page };
	const uint32_t len = xdp->data_end - xdp->data;
	const uint32_t at = (uint8_t *)xdp->data -
	    (uint8_t *)page_address(page);
	struct netdev_queue *txq = LEM_TXQ(la);
	bool sent;

	dma_sync_single_range_for_device(&la->pdev->dev,
	    page_pool_get_dma_addr(page), at, len, DMA_BIDIRECTIONAL);
	__netif_tx_lock(txq, smp_processor_id());
	txq_trans_cond_update(txq);
	sent = lem_xdp_send(la, &b, page_pool_get_dma_addr(page) + at, len);
	__netif_tx_unlock(txq);
	return (sent);
}

/* Pass a frame to the stack, which the program may have changed. */
static void
lem_xdp_pass(struct lem_adapter *la, const struct xdp_buff *xdp,
    uint32_t flags, uint16_t vlan)
{
	const uint32_t meta = xdp->data - xdp->data_meta;
	struct sk_buff *skb;

	skb = napi_alloc_skb(&la->napi, xdp->data_end - xdp->data_meta);
	if (skb == NULL) {
		la->rx_stats.dropped++;
		return;
	}
	skb_put_data(skb, xdp->data_meta, xdp->data_end - xdp->data_meta);
	__skb_pull(skb, meta);
	if (meta != 0)
		skb_metadata_set(skb, meta);
	lem_rx_done(la, skb, flags, vlan);
}

bool
lem_xdp_rx(struct lem_adapter *la, struct page *page, uint32_t len,
    uint32_t flags, uint16_t vlan)
{
	struct bpf_prog *prog = READ_ONCE(la->prog);
	struct xdp_buff xdp;
	uint32_t act;

	lem_os_assert_rx(&la->core);
	xdp_init_buff(&xdp, PAGE_SIZE, &la->rxq);
	xdp_prepare_buff(&xdp, page_address(page), la->rx_offset, len, true);
	act = bpf_prog_run_xdp(prog, &xdp);
	switch (act) {
	case XDP_PASS:
		lem_xdp_pass(la, &xdp, flags, vlan);
		return (false);
	case XDP_TX:
		if (lem_xdp_tx(la, page, &xdp)) {
			la->rx_stats.xdp_tx++;
			return (true);
		}
		break;
	case XDP_REDIRECT:
		if (xdp_do_redirect(la->dev, &xdp, prog) == 0) {
			la->rx_stats.xdp_redirect++;
			la->rx_redirected = true;
			return (true);
		}
		break;
	case XDP_DROP:
		la->rx_stats.xdp_drop++;
		return (false);
	case XDP_ABORTED:
		break;
	default:
		bpf_warn_invalid_xdp_action(la->dev, prog, act);
		break;
	}
	trace_xdp_exception(la->dev, prog, act);
	la->rx_stats.xdp_drop++;
	return (false);
}

/* Send frames that were redirected to this interface. */
int
lem_xdp_xmit(struct net_device *dev, int n, struct xdp_frame **frames,
    u32 flags)
{
	struct lem_adapter *la = netdev_priv(dev);
	struct netdev_queue *txq = LEM_TXQ(la);
	struct lem_tx_buf b = { .kind = LEM_TX_FRAME };
	int sent;

	if ((flags & ~XDP_XMIT_FLAGS_MASK) != 0)
		return (-EINVAL);
	__netif_tx_lock(txq, smp_processor_id());
	txq_trans_cond_update(txq);
	lem_tx_reclaim(la, 0);
	for (sent = 0; sent < n; sent++) {
		b.frame = frames[sent];
		b.len = b.frame->len;
		b.dma = dma_map_single(&la->pdev->dev, b.frame->data, b.len,
		    DMA_TO_DEVICE);
		if (dma_mapping_error(&la->pdev->dev, b.dma))
			break;
		if (!lem_xdp_send(la, &b, b.dma, b.len)) {
			dma_unmap_single(&la->pdev->dev, b.dma, b.len,
			    DMA_TO_DEVICE);
			break;
		}
	}
	if ((flags & XDP_XMIT_FLUSH) != 0)
		lem_tx_flush(&la->core);
	__netif_tx_unlock(txq);
	return (sent);
}

static int
lem_xdp_setup(struct lem_adapter *la, struct bpf_prog *prog,
    struct netlink_ext_ack *extack)
{
	struct bpf_prog *old = la->prog;
	const bool restart = (prog != NULL) != (old != NULL);
	int error = 0;

	ASSERT_RTNL();
	if (prog != NULL && !lem_xdp_fits(la->dev->mtu)) {
		NL_SET_ERR_MSG_MOD(extack, "MTU is too long for XDP");
		return (-EINVAL);
	}
	if (restart)
		lem_down(la);
	WRITE_ONCE(la->prog, prog);
	if (restart)
		error = lem_up(la);
	if (error != 0) {
		/* The caller still owns `prog'. */
		WRITE_ONCE(la->prog, old);
		NL_SET_ERR_MSG_MOD(extack, "the adapter does not start");
		return (error);
	}
	if (old != NULL)
		bpf_prog_put(old);
	netdev_update_features(la->dev);
	return (0);
}

int
lem_xdp_bpf(struct net_device *dev, struct netdev_bpf *bpf)
{
	if (bpf->command != XDP_SETUP_PROG)
		return (-EINVAL);
	return (lem_xdp_setup(netdev_priv(dev), bpf->prog, bpf->extack));
}
