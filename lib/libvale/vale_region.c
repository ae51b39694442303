/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A port's memory: one region for each port, so that no user of a port can read
 * another's.
 *
 *	CSB | netmap_if | transmit ring | receive ring | buffer 0 | 1 | ...
 *
 * Then come the buffers of the transmit ring, those of no ring, in a list as
 * netmap has it, and those of the receive ring.  The CSB serves users in other
 * processes (vale_shared.c).
 *
 * Buffers start on a page boundary.  A page that nobody touches uses no memory,
 * so the transmit buffers of a port that sends NS_INDIRECT slots only use none.
 *
 * The user can write to all of the region.  The switch therefore keeps sizes
 * and addresses outside, and reads from the region only the fields that
 * vale_forward.c, vale_deliver.c and vale_rxq.c check.
 */

#include <sys/mman.h>

#include <errno.h>
#include <string.h>

#include "vale_impl.h"

#define	REGION_PAGE	4096

#ifndef MAP_NORESERVE
#define	MAP_NORESERVE	0
#endif

/* Set a field that <net/netmap.h> declares const. */
#define	REGION_SET(type, field, value)					\
	(*(type *)(uintptr_t)&(field) = (value))

static size_t
region_align(size_t size, size_t to)
{
	return ((size + to - 1) & ~(to - 1));
}

static size_t
region_ring_size(uint32_t nslots)
{
	return (region_align(sizeof(struct netmap_ring) +
	    nslots * sizeof(struct netmap_slot), NM_CACHE_ALIGN));
}

static void
region_ring_init(struct vale_region *vr, struct netmap_ring *ring,
    uint16_t dir, uint32_t nslots, uint32_t first_buf)
{
	uint32_t i;

	REGION_SET(int64_t, ring->buf_ofs, vr->vr_bufs - (char *)ring);
	REGION_SET(uint32_t, ring->num_slots, nslots);
	REGION_SET(uint32_t, ring->nr_buf_size, VALE_BUF_SIZE);
	REGION_SET(uint16_t, ring->dir, dir);
	REGION_SET(uint64_t, ring->buf_align, NM_CACHE_ALIGN);
	for (i = 0; i < nslots; i++)
		ring->slot[i].buf_idx = first_buf + i;
}

/* Where everything is, from the beginning. */
struct region_layout {
	size_t		rl_nifp;
	size_t		rl_tx;
	size_t		rl_rx;
	size_t		rl_bufs;
	size_t		rl_size;
	uint32_t	rl_nbufs;
};

static void
region_layout(struct region_layout *rl, const struct vale_params *params,
    uint32_t extra_bufs)
{
	const struct netmap_if *nifp;

	rl->rl_nifp = region_align(sizeof(struct vale_csb), NM_CACHE_ALIGN);
	rl->rl_tx = rl->rl_nifp + region_align(sizeof(*nifp) +
	    2 * sizeof(nifp->ring_ofs[0]), NM_CACHE_ALIGN);
	rl->rl_rx = rl->rl_tx + region_ring_size(params->tx_slots);
	rl->rl_bufs = region_align(rl->rl_rx +
	    region_ring_size(params->rx_slots), REGION_PAGE);
	rl->rl_nbufs = VALE_BUF_FIRST + params->tx_slots +
	    extra_bufs + params->rx_slots;
	rl->rl_size = rl->rl_bufs + (size_t)rl->rl_nbufs * VALE_BUF_SIZE;
}

size_t
vale_region_size(const struct vale_params *params, uint32_t extra_bufs)
{
	struct region_layout rl;

	region_layout(&rl, params, extra_bufs);
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

int
vale_region_create(struct vale_region *vr, const char *name,
    const struct vale_params *params, const struct vale_shared *shared)
{
	const uint32_t extra_bufs = shared != NULL ? shared->extra_bufs : 0;
	const uint32_t tx_slots = params->tx_slots;
	struct region_layout rl;
	struct netmap_if *nifp;
	char *base;

	region_layout(&rl, params, extra_bufs);
	if (shared != NULL)
		base = shared->memory;
	else {
		base = mmap(NULL, rl.rl_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
		if (base == MAP_FAILED)
			return (ENOMEM);
		vr->vr_mapped = true;
	}
	vr->vr_base = base;
	vr->vr_size = rl.rl_size;
	vr->vr_nbufs = rl.rl_nbufs;
	vr->vr_csb = (void *)base;
	nifp = (void *)(base + rl.rl_nifp);
	vr->vr_nifp = nifp;
	vr->vr_txring = (void *)(base + rl.rl_tx);
	vr->vr_rxring = (void *)(base + rl.rl_rx);
	vr->vr_bufs = base + rl.rl_bufs;

	strncpy(nifp->ni_name, name, sizeof(nifp->ni_name) - 1);
	REGION_SET(uint32_t, nifp->ni_version, NETMAP_API);
	REGION_SET(uint32_t, nifp->ni_flags, NI_PRIV_MEM);
	REGION_SET(uint32_t, nifp->ni_tx_rings, 1);
	REGION_SET(uint32_t, nifp->ni_rx_rings, 1);
	REGION_SET(ssize_t, nifp->ring_ofs[0],
	    (ssize_t)(rl.rl_tx - rl.rl_nifp));
	REGION_SET(ssize_t, nifp->ring_ofs[1],
	    (ssize_t)(rl.rl_rx - rl.rl_nifp));
	region_ring_init(vr, vr->vr_txring, 0, tx_slots, VALE_BUF_FIRST);
	region_ring_init(vr, vr->vr_rxring, 1, params->rx_slots,
	    rl.rl_nbufs - params->rx_slots);
	region_list_init(vr, VALE_BUF_FIRST + tx_slots, extra_bufs);
	vr->vr_txring->tail = tx_slots - 1;
	return (0);
}

void
vale_region_destroy(struct vale_region *vr)
{
	if (vr->vr_mapped)
		munmap(vr->vr_base, vr->vr_size);
}
