/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What memory with netmap's rings consists of, for ports (vale_region.c) and
 * pipes (vale_pipe.c).
 */

#ifndef _VALE_LAYOUT_H_
#define	_VALE_LAYOUT_H_

#include <sys/types.h>
#include <net/if.h>
#include <net/netmap.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define	VALE_PAGE	4096
#define	VALE_BUF_SIZE	2048	/* bytes; netmap's default */
#define	VALE_BUF_FIRST	2	/* no slot has buffer 0 or 1, as in netmap */

/* Set a field that <net/netmap.h> declares const. */
#define	VALE_LAYOUT_SET(type, field, value)				\
	(*(type *)(uintptr_t)&(field) = (value))

/* `to' is a power of 2. */
static inline size_t
vale_layout_align(size_t size, size_t to)
{
	return ((size + to - 1) & ~(to - 1));
}

/* Bytes of a ring. */
static inline size_t
vale_ring_size(uint32_t nslots)
{
	return (vale_layout_align(sizeof(struct netmap_ring) +
	    nslots * sizeof(struct netmap_slot), NM_CACHE_ALIGN));
}

/* Whether memory with `nbufs' buffers, 0 and 1 included, has buffer `idx'. */
static inline bool
vale_buf_valid(uint32_t idx, uint32_t nbufs)
{
	return (idx >= VALE_BUF_FIRST && idx < nbufs);
}

/* Initialize a ring without its slots.  `dir' is 1 for a receive ring. */
static inline void
vale_ring_init(struct netmap_ring *ring, int64_t buf_ofs, uint16_t ringid,
    uint16_t dir, uint32_t nslots)
{
	memset(ring, 0, sizeof(*ring));
	VALE_LAYOUT_SET(int64_t, ring->buf_ofs, buf_ofs);
	VALE_LAYOUT_SET(uint32_t, ring->num_slots, nslots);
	VALE_LAYOUT_SET(uint32_t, ring->nr_buf_size, VALE_BUF_SIZE);
	VALE_LAYOUT_SET(uint16_t, ring->ringid, ringid);
	VALE_LAYOUT_SET(uint16_t, ring->dir, dir);
	VALE_LAYOUT_SET(uint64_t, ring->buf_align, NM_CACHE_ALIGN);
}

/* Initialize a netmap_if of `n' ring pairs, without ring_ofs[]. */
static inline void
vale_nifp_init(struct netmap_if *nifp, const char *name, uint32_t n)
{
	memset(nifp, 0, sizeof(*nifp));
	strncpy(nifp->ni_name, name, sizeof(nifp->ni_name) - 1);
	VALE_LAYOUT_SET(uint32_t, nifp->ni_version, NETMAP_API);
	VALE_LAYOUT_SET(uint32_t, nifp->ni_flags, NI_PRIV_MEM);
	VALE_LAYOUT_SET(uint32_t, nifp->ni_tx_rings, n);
	VALE_LAYOUT_SET(uint32_t, nifp->ni_rx_rings, n);
}

#endif /* !_VALE_LAYOUT_H_ */
