/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A port's memory: one region for each port, so that no user of a port can read
 * another's.  The region of a port of this process has
 *
 *	netmap_if | transmit rings | receive rings
 *	| a struct frame for each slot | buffer 0 | 1 | ...
 *
 * Then come the buffers of the transmit rings, and those of the receive rings.
 * A slot of any ring may have any buffer.  What lib/libvaleport lays out has
 * other things between these, in the same order.
 *
 * Buffers start on a page boundary.  A page that nobody touches uses no memory,
 * so the transmit buffers of a port that sends NS_INDIRECT slots only use none.
 *
 * The user can write to all of the region.  The switch therefore keeps sizes
 * and addresses outside, and reads from the region only the fields that
 * vale_forward.c, vale_deliver.c and vale_rxq.c check.
 */

#include <sys/mman.h>
#include <sys/systm.h>

#include <string.h>

#include "frame.h"
#include "vale_error.h"
#include "vale_region.h"

#ifndef MAP_NORESERVE
#define	MAP_NORESERVE	0
#endif

/*
 * Initialize a ring.  A slot's buffer stays there if it is valid: in memory
 * that an earlier port was in, the others may be in slots of pipes.
 */
static void
region_ring_init(struct vale_region *vr, struct netmap_ring *ring,
    uint16_t ringid, uint16_t dir, uint32_t nslots, uint32_t first_buf)
{
	uint32_t i, idx;

	vale_ring_init(ring, vr->vr_bufs - (char *)ring, ringid, dir, nslots);
	for (i = 0; i < nslots; i++) {
		idx = atomic_load_32(&ring->slot[i].buf_idx);
		if (!vale_buf_valid(idx, vr->vr_nbufs))
			idx = first_buf + i;
		ring->slot[i] = (struct netmap_slot){ .buf_idx = idx };
	}
}

void
vale_region_find(const struct vale_region *vr,
    const struct vale_region_layout *rl, unsigned int pair,
    const struct vale_params *params, struct vale_region_rings *rr)
{
	char *base = vr->vr_base;

	MPASS(pair < params->rings);
	rr->rr_txring = (void *)(base + rl->rl_tx + pair * rl->rl_tx_size);
	rr->rr_rxring = (void *)(base + rl->rl_rx + pair * rl->rl_rx_size);
	rr->rr_rx_buf = rl->rl_rx_buf + pair * params->rx_slots;
	rr->rr_txframe = rr->rr_rxframe = NULL;
	if (vr->vr_mapped) {
		rr->rr_txframe = (void *)(base + rl->rl_frames);
		rr->rr_txframe += pair * (params->tx_slots + params->rx_slots);
		rr->rr_rxframe = rr->rr_txframe + params->tx_slots;
	}
}

void
vale_region_init(struct vale_region *vr, const struct vale_region_layout *rl,
    const char *name, const struct vale_params *params)
{
	const uint32_t n = params->rings;
	struct vale_region_rings rr;
	char *base = vr->vr_base, *nifp = base + rl->rl_nifp;
	uint32_t i;

	vr->vr_size = rl->rl_size;
	vr->vr_nbufs = rl->rl_nbufs;
	vr->vr_nifp = (void *)nifp;
	vr->vr_bufs = base + rl->rl_bufs;
	vale_nifp_init(vr->vr_nifp, name, n);
	for (i = 0; i < n; i++) {
		vale_region_find(vr, rl, i, params, &rr);
		VALE_LAYOUT_SET(ssize_t, vr->vr_nifp->ring_ofs[i],
		    (char *)rr.rr_txring - nifp);
		VALE_LAYOUT_SET(ssize_t, vr->vr_nifp->ring_ofs[n + i],
		    (char *)rr.rr_rxring - nifp);
		region_ring_init(vr, rr.rr_txring, i, 0, params->tx_slots,
		    VALE_BUF_FIRST + i * params->tx_slots);
		rr.rr_txring->tail = params->tx_slots - 1;
		region_ring_init(vr, rr.rr_rxring, i, 1, params->rx_slots,
		    rr.rr_rx_buf);
	}
}

int
vale_region_map(struct vale_region *vr, struct vale_region_layout *rl,
    const struct vale_params *params)
{
	const uint32_t n = params->rings;
	const size_t slots = params->tx_slots + params->rx_slots;

	*rl = (struct vale_region_layout){
		.rl_nifp_size = VALE_NIFP_SIZE(n),
		.rl_frames_size = vale_layout_align(n * slots *
		    sizeof(struct frame), VALE_PAGE),
		.rl_frames_align = VALE_PAGE,
	};
	vale_region_layout(rl, params);
	vr->vr_base = mmap(NULL, rl->rl_size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
	if (vr->vr_base == MAP_FAILED)
		return (vale_fail(ENOMEM));
	vr->vr_size = rl->rl_size;
	vr->vr_mapped = true;
	return (0);
}

void
vale_region_destroy(struct vale_region *vr)
{
	if (vr->vr_mapped)
		munmap(vr->vr_base, vr->vr_size);
}
