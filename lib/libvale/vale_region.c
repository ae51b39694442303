/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A port's memory: one region for each port, so that no user of a port can read
 * another's.
 *
 *	netmap_if | transmit ring | receive ring | buffer 0 | buffer 1 | ...
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

int
vale_region_create(struct vale_region *vr, const char *name,
    uint32_t tx_slots, uint32_t rx_slots)
{
	struct netmap_if *nifp;
	size_t bufs, rx, tx;

	tx = region_align(sizeof(*nifp) + 2 * sizeof(nifp->ring_ofs[0]),
	    NM_CACHE_ALIGN);
	rx = tx + region_ring_size(tx_slots);
	bufs = region_align(rx + region_ring_size(rx_slots), REGION_PAGE);
	vr->vr_nbufs = VALE_BUF_FIRST + tx_slots + rx_slots;
	vr->vr_size = bufs + (size_t)vr->vr_nbufs * VALE_BUF_SIZE;
	vr->vr_base = mmap(NULL, vr->vr_size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
	if (vr->vr_base == MAP_FAILED)
		return (ENOMEM);

	nifp = vr->vr_base;
	vr->vr_nifp = nifp;
	vr->vr_txring = (void *)((char *)nifp + tx);
	vr->vr_rxring = (void *)((char *)nifp + rx);
	vr->vr_bufs = (char *)nifp + bufs;

	strncpy(nifp->ni_name, name, sizeof(nifp->ni_name) - 1);
	REGION_SET(uint32_t, nifp->ni_version, NETMAP_API);
	REGION_SET(uint32_t, nifp->ni_flags, NI_PRIV_MEM);
	REGION_SET(uint32_t, nifp->ni_tx_rings, 1);
	REGION_SET(uint32_t, nifp->ni_rx_rings, 1);
	REGION_SET(ssize_t, nifp->ring_ofs[0], (ssize_t)tx);
	REGION_SET(ssize_t, nifp->ring_ofs[1], (ssize_t)rx);
	region_ring_init(vr, vr->vr_txring, 0, tx_slots, VALE_BUF_FIRST);
	region_ring_init(vr, vr->vr_rxring, 1, rx_slots,
	    VALE_BUF_FIRST + tx_slots);
	vr->vr_txring->tail = tx_slots - 1;
	return (0);
}

void
vale_region_destroy(struct vale_region *vr)
{
	munmap(vr->vr_base, vr->vr_size);
}
