/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A port's memory, which its user may write to: netmap_ifs, rings, buffers.
 * vale_region.c has where they are in the memory of a port of this process;
 * lib/libvaleport says where, if the user is another process.
 *
 * All numbers of a struct vale_params must be within their limits, without
 * defaults.
 */

#ifndef _VALE_REGION_H_
#define	_VALE_REGION_H_

#include <sys/types.h>
#include <sys/systm.h>
#include <net/if.h>
#include <net/netmap.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libvale.h"

#define	VALE_PAGE	4096
#define	VALE_BUF_SIZE	2048	/* bytes; netmap's default */
#define	VALE_BUF_FIRST	2	/* no slot has buffer 0 or 1, as in netmap */

/* Set a field that <net/netmap.h> declares const. */
#define	VALE_LAYOUT_SET(type, field, value)				\
	(*(type *)(uintptr_t)&(field) = (value))

/* Round up to a multiple of `to', a power of 2. */
static inline size_t
vale_layout_align(size_t size, size_t to)
{
	return ((size + to - 1) & ~(to - 1));
}

/* Return a ring's size in bytes. */
static inline size_t
vale_ring_size(uint32_t nslots)
{
	return (vale_layout_align(sizeof(struct netmap_ring) +
	    nslots * sizeof(struct netmap_slot), NM_CACHE_ALIGN));
}

/* Return whether memory with `nbufs' buffers, from 0 on, has buffer `idx'. */
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

/* Bytes of a netmap_if of a port with so many ring pairs. */
#define	VALE_NIFP_SIZE(rings)						\
	((sizeof(struct netmap_if) + 2 * (rings) * sizeof(ssize_t) + 63) & \
	    ~(size_t)63)

/* Where everything is in a port's memory, from the beginning. */
struct vale_region_layout {
	/* Given to vale_region_layout(). */
	size_t		rl_nifp;	/* the netmap_ifs, */
	size_t		rl_nifp_size;	/* and their bytes */
	size_t		rl_frames_size;	/* between the rings and buffer 0: a */
	size_t		rl_frames_align; /* struct frame for each slot, or the
					   window (vale_layout.h) */
	uint32_t	rl_extra_bufs;	/* buffers of no ring */
	/* What vale_region_layout() makes of these. */
	size_t		rl_tx;		/* the first of the rings */
	size_t		rl_tx_size;	/* of a ring */
	size_t		rl_rx;
	size_t		rl_rx_size;
	size_t		rl_frames;
	size_t		rl_bufs;	/* buffer 0 */
	size_t		rl_size;
	uint32_t	rl_extra_buf;	/* first buffer of no ring */
	uint32_t	rl_rx_buf;	/* and of a receive ring */
	uint32_t	rl_nbufs;
};

/* Lay a port's memory out: fill in the second part of *rl. */
static inline void
vale_region_layout(struct vale_region_layout *rl,
    const struct vale_params *params)
{
	const uint32_t n = params->rings;

	rl->rl_tx = vale_layout_align(rl->rl_nifp + rl->rl_nifp_size,
	    NM_CACHE_ALIGN);
	rl->rl_tx_size = vale_ring_size(params->tx_slots);
	rl->rl_rx = rl->rl_tx + n * rl->rl_tx_size;
	rl->rl_rx_size = vale_ring_size(params->rx_slots);
	rl->rl_frames = vale_layout_align(rl->rl_rx + n * rl->rl_rx_size,
	    rl->rl_frames_align);
	rl->rl_bufs = rl->rl_frames + rl->rl_frames_size;
	rl->rl_extra_buf = VALE_BUF_FIRST + n * params->tx_slots;
	rl->rl_rx_buf = rl->rl_extra_buf + rl->rl_extra_bufs;
	rl->rl_nbufs = rl->rl_rx_buf + n * params->rx_slots;
	rl->rl_size = rl->rl_bufs + (size_t)rl->rl_nbufs * VALE_BUF_SIZE;
}

struct vale_region {
	void			*vr_base;
	size_t			 vr_size;
	struct netmap_if	*vr_nifp;
	char			*vr_bufs;	/* buffer 0 */
	uint32_t		 vr_nbufs;	/* including 0 and 1; it may
						   grow: VALE_NBUFS() */
	bool			 vr_mapped;	/* by vale_region_map() */
};

/* Where the rings of a pair are in such memory. */
struct vale_region_rings {
	struct netmap_ring	*rr_txring;
	struct netmap_ring	*rr_rxring;
	struct frame		*rr_txframe;	/* for each slot; NULL if */
	struct frame		*rr_rxframe;	/* another process has it */
	uint32_t		 rr_rx_buf;	/* first buffer of rr_rxring */
};

/*
 * Map memory for a port of this process, and lay it out in *rl.  *vr must be
 * zero-filled.  Return 0, or -1 with ENOMEM.
 */
int	vale_region_map(struct vale_region *vr, struct vale_region_layout *rl,
	    const struct vale_params *params);

/* Unmap the memory, if vale_region_map() has mapped it. */
void	vale_region_destroy(struct vale_region *vr);

/*
 * Initialize the rings and the netmap_if of all rings in the memory `vr_base',
 * which is laid out as *rl says, and what else *vr says of it.  `name' is the
 * port's.  A slot's buffer stays there if it is valid.
 */
void	vale_region_init(struct vale_region *vr,
	    const struct vale_region_layout *rl, const char *name,
	    const struct vale_params *params);

/* Find the rings of ring pair `pair' in such memory. */
void	vale_region_find(const struct vale_region *vr,
	    const struct vale_region_layout *rl, unsigned int pair,
	    const struct vale_params *params, struct vale_region_rings *rr);

/*
 * vr_nbufs, of which either value is right while it grows.  A plain load can be
 * an operand of the comparison: an atomic one costs a frame 3% more.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define	VALE_NBUFS(vr)	atomic_load_32(&(vr)->vr_nbufs)
#endif
#endif
#ifndef VALE_NBUFS
#define	VALE_NBUFS(vr)	((vr)->vr_nbufs)
#endif

/* Return the buffer `idx', or NULL if that is not of the port's slots. */
static inline uint8_t *
vale_region_buf(const struct vale_region *vr, uint32_t idx)
{
	/* clang makes fewer instructions of this than of vale_buf_valid(). */
	if (idx < VALE_BUF_FIRST || idx >= VALE_NBUFS(vr))
		return (NULL);
	return ((uint8_t *)vr->vr_bufs + (size_t)idx * VALE_BUF_SIZE);
}

#endif /* !_VALE_REGION_H_ */
