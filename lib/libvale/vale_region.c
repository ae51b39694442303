/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A port's memory: one region for each port, so that no user of a port can read
 * another's.
 *
 *	CSBs | netmap_ifs | transmit rings | receive rings
 *	| a place for the window, or a struct frame for each slot
 *	| buffer 0 | 1 | ...
 *
 * Then come the buffers of the transmit rings, those of no ring, in a list as
 * netmap has it, and those of the receive rings.  A slot of any ring may have
 * any of them.  The CSBs serve users in other processes (vale_shared.c).  What
 * these see of the rings is their window (vale_layout.h).
 *
 * Memory that a user in another process has may go on behind that, for pipes
 * (vale_pipe.h).  Buffers are numbered through, and slots may have those that
 * have been given out so far (vale_shared_more()).
 *
 * Buffers start on a page boundary.  A page that nobody touches uses no memory,
 * so the transmit buffers of a port that sends NS_INDIRECT slots only use none.
 *
 * The user can write to all of the region.  The switch therefore keeps sizes
 * and addresses outside, and reads from the region only the fields that
 * vale_forward.c, vale_deliver.c and vale_rxq.c check.
 */

#include <sys/mman.h>

#include <string.h>

#include "frame.h"
#include "vale_error.h"
#include "vale_region.h"

#ifndef MAP_NORESERVE
#define	MAP_NORESERVE	0
#endif

/*
 * A slot keeps its buffer if it has a valid one: in memory that an earlier port
 * was in, the others may be in slots of pipes.
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

size_t
vale_region_bufs(const struct vale_params *params)
{
	struct vale_region_layout rl;

	vale_region_layout(&rl, params, 0, true);
	return (rl.rl_bufs);
}

size_t
vale_region_size(const struct vale_params *params, uint32_t extra_bufs)
{
	struct vale_region_layout rl;

	vale_region_layout(&rl, params, extra_bufs, true);
	return (rl.rl_size);
}

/* Link `n' buffers from `first' on, as netmap does: each names the next. */
static void
region_list_init(struct vale_region *vr, uint32_t first, uint32_t n)
{
	uint32_t i, next;

	for (i = 0; i < n; i++) {
		next = i + 1 < n ? first + i + 1 : 0;
		memcpy(vale_region_buf(vr, first + i), &next, sizeof(next));
	}
	vr->vr_nifp->ni_bufs_head = n > 0 ? first : 0;
}

static uint32_t
region_extra_bufs(const struct vale_shared *shared)
{
	return (shared != NULL ? shared->extra_bufs : 0);
}

static void
region_find(const struct vale_region *vr, const struct vale_region_layout *rl,
    unsigned int pair, const struct vale_params *params,
    struct vale_region_rings *rr)
{
	char *base = vr->vr_base;

	rr->rr_csb = (struct vale_csb *)(void *)base + pair;
	rr->rr_txring = (void *)(base + rl->rl_tx + pair * rl->rl_tx_size);
	rr->rr_rxring = (void *)(base + rl->rl_rx + pair * rl->rl_rx_size);
	rr->rr_rx_buf = rl->rl_rx_buf + pair * params->rx_slots;
	rr->rr_txframe = rr->rr_rxframe = NULL;
	if (vr->vr_mapped) {
		rr->rr_txframe = (void *)(base + rl->rl_window);
		rr->rr_txframe += pair * (params->tx_slots + params->rx_slots);
		rr->rr_rxframe = rr->rr_txframe + params->tx_slots;
	}
}

void
vale_region_find(const struct vale_region *vr, unsigned int pair,
    const struct vale_params *params, const struct vale_shared *shared,
    struct vale_region_rings *rr)
{
	struct vale_region_layout rl;

	MPASS(pair < params->rings);
	vale_region_layout(&rl, params, region_extra_bufs(shared),
	    shared != NULL);
	region_find(vr, &rl, pair, params, rr);
}

/* A netmap_if that has ring pairs `first' to before `end'. */
static void
region_nifp_init(const struct vale_region *vr,
    const struct vale_region_layout *rl, struct netmap_if *nifp,
    const char *name, const struct vale_params *params, uint32_t first,
    uint32_t end)
{
	const uint32_t n = params->rings;
	struct vale_region_rings rr;
	uint32_t i;

	vale_nifp_init(nifp, name, n);
	for (i = first; i < end; i++) {
		region_find(vr, rl, i, params, &rr);
		VALE_LAYOUT_SET(ssize_t, nifp->ring_ofs[i],
		    (char *)rr.rr_txring - (char *)nifp);
		VALE_LAYOUT_SET(ssize_t, nifp->ring_ofs[n + i],
		    (char *)rr.rr_rxring - (char *)nifp);
	}
}

/* Initialize the rings, and what says where they are. */
static void
region_init(struct vale_region *vr, const struct vale_region_layout *rl,
    const char *name, const struct vale_params *params)
{
	const uint32_t n = params->rings;
	char *nifp = (char *)vr->vr_nifp;
	struct vale_region_rings rr;
	uint32_t i;

	region_nifp_init(vr, rl, vr->vr_nifp, name, params, 0, n);
	for (i = 0; n > 1 && i < n; i++)
		region_nifp_init(vr, rl, (void *)(nifp + (1 + i) *
		    VALE_NIFP_SIZE(n)), name, params, i, i + 1);
	for (i = 0; i < n; i++) {
		region_find(vr, rl, i, params, &rr);
		region_ring_init(vr, rr.rr_txring, i, 0, params->tx_slots,
		    VALE_BUF_FIRST + i * params->tx_slots);
		rr.rr_txring->tail = params->tx_slots - 1;
		region_ring_init(vr, rr.rr_rxring, i, 1, params->rx_slots,
		    rr.rr_rx_buf);
	}
}

int
vale_region_create(struct vale_region *vr, const char *name,
    const struct vale_params *params, const struct vale_shared *shared)
{
	const uint32_t extra_bufs = region_extra_bufs(shared);
	struct vale_region_layout rl;
	char *base;

	vale_region_layout(&rl, params, extra_bufs, shared != NULL);
	if (shared != NULL)
		base = shared->memory;
	else {
		base = mmap(NULL, rl.rl_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
		if (base == MAP_FAILED)
			return (vale_fail(ENOMEM));
		vr->vr_mapped = true;
	}
	vr->vr_base = base;
	vr->vr_size = rl.rl_size;
	vr->vr_nbufs = rl.rl_nbufs;
	if (shared != NULL)
		vr->vr_nbufs += shared->more / VALE_BUF_SIZE;
	vr->vr_nifp = (void *)(base + rl.rl_nifp);
	vr->vr_bufs = base + rl.rl_bufs;
	/* What an earlier port has left there. */
	memset(base, 0, rl.rl_tx);
	region_init(vr, &rl, name, params);
	region_list_init(vr, rl.rl_extra_buf, extra_bufs);
	return (0);
}

void
vale_region_destroy(struct vale_region *vr)
{
	if (vr->vr_mapped)
		munmap(vr->vr_base, vr->vr_size);
}
