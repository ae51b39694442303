/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Where things are in shared memory, and in windows: vale_layout.h. */

#include "vale_layout.h"

/* Return the bytes of a port's netmap_ifs: of all rings, and of each. */
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
vale_shared_layout(struct vale_region_layout *rl,
    const struct vale_params *params, uint32_t extra_bufs)
{
	struct vale_window_layout wl;

	vale_window_layout(&wl, params->rings, params->tx_slots,
	    params->rx_slots);
	*rl = (struct vale_region_layout){
		.rl_nifp = vale_layout_align(params->rings *
		    sizeof(struct vale_csb), NM_CACHE_ALIGN),
		.rl_nifp_size = nifps_size(params->rings),
		.rl_frames_size = wl.wl_size,
		.rl_frames_align = VALE_WINDOW_ALIGN,
		.rl_extra_bufs = extra_bufs,
	};
	vale_region_layout(rl, params);
}
