/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What memory with netmap's rings consists of, for ports (vale_region.c) and
 * pipes (vale_pipe.c), and what programs see of it: windows.
 *
 * Memory is shared by all programs that have a port or pipe there, and by
 * valed.  Any of them may write anything to it at any time.  But a netmap
 * program believes what rings say: where buffers are, how large, and which one
 * a slot has.  So what it finds at nr_offset is not in that memory.  It is the
 * window, a file of the connection that opened the port, and nobody else has
 * it:
 *
 *	struct vale_window | netmap_ifs | transmit rings | receive rings
 *	| a struct vale_window_ring for each ring pair
 *
 * It is mapped over a part of the memory that has nothing else, from a multiple
 * of VALE_WINDOW_ALIGN on.  No buffer is there, or a slot that another process
 * has filled in could make a program write to its own window.  A sync
 * (vale_client.c) copies slots from one to the other, and checks those that it
 * takes.
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

#include "libvale.h"

#define	VALE_PAGE	4096
#define	VALE_BUF_SIZE	2048	/* bytes; netmap's default */
#define	VALE_BUF_FIRST	2	/* no slot has buffer 0 or 1, as in netmap */
#define	VALE_WINDOW_ALIGN	65536	/* no kernel's pages are larger */

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

/* Where everything is in a port's memory, from the beginning. */
struct vale_region_layout {
	size_t		rl_nifp;
	size_t		rl_tx;		/* the first of the rings */
	size_t		rl_tx_size;	/* of a ring */
	size_t		rl_rx;
	size_t		rl_rx_size;
	size_t		rl_window;	/* a place for the window or a struct
					   frame for each slot, */
	size_t		rl_bufs;	/* and buffer 0 */
	size_t		rl_size;
	uint32_t	rl_extra_buf;	/* first buffer of no ring */
	uint32_t	rl_rx_buf;	/* and of a receive ring */
	uint32_t	rl_nbufs;
};

/*
 * Fill it in.  `params' must be in range, without defaults.  There is a place
 * for a window if the memory is shared with other processes, or for frames.
 */
void	vale_region_layout(struct vale_region_layout *rl,
	    const struct vale_params *params, uint32_t extra_bufs, bool shared);

/* What a window begins with: valed's part.  Constant. */
struct vale_window {
	uint64_t	vv_bufs;	/* offset of buffer 0 in the memory, */
	uint64_t	vv_end;		/* and of what is behind the last one */
	uint64_t	vv_pipe;	/* offset of the pipe, or 0 */
	uint32_t	vv_extra;	/* the first extra buffer, or 0 */
	_Alignas(NM_CACHE_ALIGN) char vv_nifp[];
};

/* Heads that a program has published, where no other can change them. */
struct vale_window_ring {
	uint32_t	vwr_sent;
	uint32_t	vwr_released;
};

/* Where everything is in the window of `rings' ring pairs. */
struct vale_window_layout {
	size_t		wl_tx;
	size_t		wl_tx_size;
	size_t		wl_rx;
	size_t		wl_rx_size;
	size_t		wl_ring;	/* struct vale_window_ring[] */
	size_t		wl_size;	/* a multiple of VALE_WINDOW_ALIGN */
};

/* Of memory without a port or pipe, `rings' is 0. */
void	vale_window_layout(struct vale_window_layout *wl, uint32_t rings,
	    uint32_t tx_slots, uint32_t rx_slots);

/* nr_offset of a window at `at'; and the reverse. */
#define	VALE_WINDOW_OFFSET(at)	((at) + sizeof(struct vale_window))
#define	VALE_WINDOW_AT(offset)	((offset) & ~((uint64_t)VALE_WINDOW_ALIGN - 1))

#endif /* !_VALE_LAYOUT_H_ */
