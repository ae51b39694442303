/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The table of ranges; see vfu_dma.h and vfu_dma_impl.h. */

#include <sys/param.h>
#include <sys/systm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vfu_dma_impl.h"

/* If neighbours have no more than this together, they become one. */
#define	LEAF_MERGE	(VFU_DMA_LEAF / 2)

struct vfu_dma_pos
vfu_dma_range_find(const struct vfu_dma *dma, uint64_t gpa)
{
	const struct vfu_dma_leaf *l;
	struct vfu_dma_pos pos;
	uint32_t hi, mid;

	pos.leaf = pos.slot = 0;
	for (hi = dma->nleaves; pos.leaf < hi;) {
		mid = (pos.leaf + hi) / 2;
		l = dma->leaf[mid];
		if (vfu_dma_range_before(&l->range[l->n - 1], gpa))
			pos.leaf = mid + 1;
		else
			hi = mid;
	}
	if (pos.leaf == dma->nleaves)
		return (pos);
	l = dma->leaf[pos.leaf];
	for (hi = l->n - 1; pos.slot < hi;) {
		mid = (pos.slot + hi) / 2;
		if (vfu_dma_range_before(&l->range[mid], gpa))
			pos.slot = mid + 1;
		else
			hi = mid;
	}
	return (pos);
}

/* Add an empty leaf at `i'. */
static int
leaf_insert(struct vfu_dma *dma, uint32_t i)
{
	struct vfu_dma_leaf *l;

	MPASS(dma->nleaves < VFU_DMA_LEAVES);
	l = malloc(sizeof(*l));
	if (l == NULL)
		return (ENOMEM);
	l->n = 0;
	memmove(&dma->leaf[i + 1], &dma->leaf[i], (dma->nleaves - i) *
	    sizeof(dma->leaf[0]));
	dma->leaf[i] = l;
	dma->nleaves++;
	return (0);
}

static void
leaf_remove(struct vfu_dma *dma, uint32_t i)
{
	free(dma->leaf[i]);
	dma->nleaves--;
	memmove(&dma->leaf[i], &dma->leaf[i + 1], (dma->nleaves - i) *
	    sizeof(dma->leaf[0]));
}

/* Move `n' ranges, from `slot' on, to the end of another leaf. */
static void
leaf_move(struct vfu_dma_leaf *to, struct vfu_dma_leaf *from, uint32_t slot,
    uint32_t n)
{
	memcpy(&to->range[to->n], &from->range[slot], n * sizeof(to->range[0]));
	to->n += n;
	from->n -= n;
}

/* Make one leaf of `i' and the next, if they are small. */
static void
leaf_merge(struct vfu_dma *dma, uint32_t i)
{
	if (i + 1 >= dma->nleaves ||
	    dma->leaf[i]->n + dma->leaf[i + 1]->n > LEAF_MERGE)
		return;
	leaf_move(dma->leaf[i], dma->leaf[i + 1], 0, dma->leaf[i + 1]->n);
	leaf_remove(dma, i + 1);
}

int
vfu_dma_range_insert(struct vfu_dma *dma, struct vfu_dma_pos pos,
    const struct vfu_dma_range *new)
{
	struct vfu_dma_leaf *l;

	if (dma->nleaves == 0 && leaf_insert(dma, 0) != 0)
		return (ENOMEM);
	if (pos.leaf == dma->nleaves || dma->leaf[pos.leaf]->n == 0) {
		pos.leaf = dma->nleaves - 1;
		pos.slot = dma->leaf[pos.leaf]->n;
	}
	l = dma->leaf[pos.leaf];
	if (l->n == VFU_DMA_LEAF) {
		if (leaf_insert(dma, pos.leaf + 1) != 0)
			return (ENOMEM);
		leaf_move(dma->leaf[pos.leaf + 1], l, VFU_DMA_LEAF / 2,
		    VFU_DMA_LEAF - VFU_DMA_LEAF / 2);
		if (pos.slot > l->n) {
			pos.slot -= l->n;
			l = dma->leaf[pos.leaf + 1];
		}
	}
	memmove(&l->range[pos.slot + 1], &l->range[pos.slot],
	    (l->n - pos.slot) * sizeof(l->range[0]));
	l->range[pos.slot] = *new;
	l->n++;
	dma->n++;
	return (0);
}

void
vfu_dma_range_remove(struct vfu_dma *dma, struct vfu_dma_pos pos)
{
	struct vfu_dma_leaf *l = dma->leaf[pos.leaf];

	dma->n--;
	l->n--;
	memmove(&l->range[pos.slot], &l->range[pos.slot + 1],
	    (l->n - pos.slot) * sizeof(l->range[0]));
	if (l->n == 0)
		leaf_remove(dma, pos.leaf);
	else
		leaf_merge(dma, pos.leaf);
	if (pos.leaf > 0)
		leaf_merge(dma, pos.leaf - 1);
}

void
vfu_dma_range_clear(struct vfu_dma *dma)
{
	while (dma->nleaves > 0)
		free(dma->leaf[--dma->nleaves]);
	dma->n = 0;
}
