/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A port's memory, which its user may write to: vale_region.c has what it
 * consists of.
 *
 * All numbers of a struct vale_params must be within their limits, without
 * defaults.
 */

#ifndef _VALE_REGION_H_
#define	_VALE_REGION_H_

#include <sys/systm.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libvale.h"
#include "vale_layout.h"

struct vale_region {
	void			*vr_base;
	size_t			 vr_size;
	struct netmap_if	*vr_nifp;
	char			*vr_bufs;	/* buffer 0 */
	uint32_t		 vr_nbufs;	/* including 0 and 1; it may
						   grow: VALE_NBUFS() */
	bool			 vr_mapped;	/* by vale_region_create() */
};

/* Where the rings of a pair are in such memory. */
struct vale_region_rings {
	struct netmap_ring	*rr_txring;
	struct netmap_ring	*rr_rxring;
	struct frame		*rr_txframe;	/* for each slot; NULL if */
	struct frame		*rr_rxframe;	/* another process has it */
	struct vale_csb		*rr_csb;
	uint32_t		 rr_rx_buf;	/* first buffer of rr_rxring */
};

/*
 * Bytes of the memory of a port with these numbers, `extra_bufs' of whose
 * buffers are of no slot, if another process has it, too.
 */
size_t	vale_region_size(const struct vale_params *params,
	    uint32_t extra_bufs);

/*
 * The offset of buffer 0 in the memory of a port with these numbers, if another
 * process has it, too.
 */
size_t	vale_region_bufs(const struct vale_params *params);

/*
 * Initialize *vr, which must be zero-filled, in the memory of `shared', or in
 * memory of its own if that is NULL; `name' is the port's.  Returns 0 or -1.
 */
int	vale_region_create(struct vale_region *vr, const char *name,
	    const struct vale_params *params, const struct vale_shared *shared);

/* Unmap the region, unless its memory is that of a struct vale_shared. */
void	vale_region_destroy(struct vale_region *vr);

/*
 * Find the rings of ring pair `pair'.  `params' and `shared' are those of
 * vale_region_create().
 */
void	vale_region_find(const struct vale_region *vr, unsigned int pair,
	    const struct vale_params *params, const struct vale_shared *shared,
	    struct vale_region_rings *rr);

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

/* The buffer with index `idx', or NULL if it is not of the port's slots. */
static inline uint8_t *
vale_region_buf(const struct vale_region *vr, uint32_t idx)
{
	/* clang makes fewer instructions of this than of vale_buf_valid(). */
	if (idx < VALE_BUF_FIRST || idx >= VALE_NBUFS(vr))
		return (NULL);
	return ((uint8_t *)vr->vr_bufs + (size_t)idx * VALE_BUF_SIZE);
}

#endif /* !_VALE_REGION_H_ */
