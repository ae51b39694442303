/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Where things are in the memory of ports, and in windows: vale_layout.h. */

#include "frame.h"
#include "vale_layout.h"

/* Bytes of the netmap_ifs of a port: of all rings, and of each. */
static size_t
nifps_size(uint32_t rings)
{
	return ((rings > 1 ? 1 + rings : 1) * VALE_NIFP_SIZE(rings));
}

void
vale_window_layout(struct vale_window_layout *wl, uint32_t rings,
    uint32_t tx_slots, uint32_t rx_slots)
{
	wl->wl_tx = vale_layout_align(sizeof(struct vale_window) +
	    nifps_size(rings), NM_CACHE_ALIGN);
	wl->wl_tx_size = vale_ring_size(tx_slots);
	wl->wl_rx = wl->wl_tx + rings * wl->wl_tx_size;
	wl->wl_rx_size = vale_ring_size(rx_slots);
	wl->wl_ring = wl->wl_rx + rings * wl->wl_rx_size;
	wl->wl_size = vale_layout_align(wl->wl_ring +
	    rings * sizeof(struct vale_window_ring), VALE_WINDOW_ALIGN);
}

void
vale_region_layout(struct vale_region_layout *rl,
    const struct vale_params *params, uint32_t extra_bufs, bool shared)
{
	const uint32_t n = params->rings;
	struct vale_window_layout wl;
	size_t end;

	rl->rl_nifp = vale_layout_align(n * sizeof(struct vale_csb),
	    NM_CACHE_ALIGN);
	rl->rl_tx = vale_layout_align(rl->rl_nifp + nifps_size(n),
	    NM_CACHE_ALIGN);
	rl->rl_tx_size = vale_ring_size(params->tx_slots);
	rl->rl_rx = rl->rl_tx + n * rl->rl_tx_size;
	rl->rl_rx_size = vale_ring_size(params->rx_slots);
	end = rl->rl_rx + n * rl->rl_rx_size;
	if (shared)
		vale_window_layout(&wl, n, params->tx_slots, params->rx_slots);
	else
		wl.wl_size = vale_layout_align(n * (params->tx_slots +
		    params->rx_slots) * sizeof(struct frame), VALE_PAGE);
	rl->rl_window = vale_layout_align(end, shared ? VALE_WINDOW_ALIGN :
	    VALE_PAGE);
	rl->rl_bufs = rl->rl_window + wl.wl_size;
	rl->rl_extra_buf = VALE_BUF_FIRST + n * params->tx_slots;
	rl->rl_rx_buf = rl->rl_extra_buf + extra_bufs;
	rl->rl_nbufs = rl->rl_rx_buf + n * params->rx_slots;
	rl->rl_size = rl->rl_bufs + (size_t)rl->rl_nbufs * VALE_BUF_SIZE;
}
