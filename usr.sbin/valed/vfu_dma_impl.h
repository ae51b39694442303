/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of vfu_dma.h share.  vfu_dma_range.c has the table of ranges,
 * vfu_dma_file.c the mappings, and vfu_dma.c what uses both.  Only between
 * dma_change_begin() and dma_change_end() of vfu_dma.c may anything change.
 */

#ifndef _VFU_DMA_IMPL_H_
#define	_VFU_DMA_IMPL_H_

#include "vfu_dma.h"

/* A place in the table, for a range that is or may be there. */
struct vfu_dma_pos {
	uint32_t	leaf;		/* nleaves: the end */
	uint32_t	slot;
};

/* Whether a range ends before gpa. */
static inline bool
vfu_dma_range_before(const struct vfu_dma_range *r, uint64_t gpa)
{
	return (r->gpa < gpa && gpa - r->gpa >= r->size);
}

/* The place of the first range that does not end before gpa. */
struct vfu_dma_pos vfu_dma_range_find(const struct vfu_dma *dma, uint64_t gpa);

/* The range at a place, or NULL at the end. */
static inline struct vfu_dma_range *
vfu_dma_range_at(const struct vfu_dma *dma, struct vfu_dma_pos pos)
{
	return (pos.leaf == dma->nleaves ? NULL :
	    &dma->leaf[pos.leaf]->range[pos.slot]);
}

/* The place of the next range. */
static inline struct vfu_dma_pos
vfu_dma_range_next(const struct vfu_dma *dma, struct vfu_dma_pos pos)
{
	if (++pos.slot == dma->leaf[pos.leaf]->n)
		pos = (struct vfu_dma_pos){ .leaf = pos.leaf + 1 };
	return (pos);
}

/*
 * Insert a range at its place, which vfu_dma_range_find() returned.  Returns 0
 * or ENOMEM.
 */
int	vfu_dma_range_insert(struct vfu_dma *dma, struct vfu_dma_pos pos,
	    const struct vfu_dma_range *new);

/* Remove the range at a place. */
void	vfu_dma_range_remove(struct vfu_dma *dma, struct vfu_dma_pos pos);

/* Remove all. */
void	vfu_dma_range_clear(struct vfu_dma *dma);

/*
 * Find or make a mapping for the range *r of the file, and set r->base and
 * r->mapping.  r->prot must be set.  Returns as vfu_dma_map().
 */
int	vfu_dma_file_get(struct vfu_dma *dma, struct vfu_dma_range *r, int fd,
	    uint64_t offset, const char **why);

/* The range is removed: unmap the file if it was the last one there. */
void	vfu_dma_file_put(struct vfu_dma *dma, const struct vfu_dma_range *r);

/*
 * Map [gpa, gpa + size), which is inside adjacent ranges that permit reading
 * and writing, in that order.  Returns false if that is not possible.
 */
bool	vfu_dma_file_join(struct vfu_dma *dma, uint64_t gpa, uint64_t size);

/* The host address of [gpa, gpa + len) in a joined ring, or NULL. */
uint8_t	*vfu_dma_file_joined(const struct vfu_dma *dma, uint64_t gpa,
	    size_t len);

/* Unmap the joined rings of which [gpa, gpa + size) is a part. */
void	vfu_dma_file_part(struct vfu_dma *dma, uint64_t gpa, uint64_t size);

#endif /* !_VFU_DMA_IMPL_H_ */
