/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The table of ranges; see peer_mem.h and peer_mem_impl.h. */

#include <sys/systm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peer_mem_impl.h"

/* If neighbours have no more than this together, they become one. */
#define	LEAF_MERGE	(PEER_MEM_LEAF / 2)

struct peer_mem_pos
peer_mem_range_find(const struct peer_mem *dma, uint64_t gpa)
{
	const struct peer_mem_leaf *l;
	struct peer_mem_pos pos;
	uint32_t hi, mid;

	pos.leaf = pos.slot = 0;
	for (hi = dma->nleaves; pos.leaf < hi;) {
		mid = (pos.leaf + hi) / 2;
		l = dma->leaf[mid];
		if (peer_mem_range_before(&l->range[l->n - 1], gpa))
			pos.leaf = mid + 1;
		else
			hi = mid;
	}
	if (pos.leaf == dma->nleaves)
		return (pos);
	l = dma->leaf[pos.leaf];
	for (hi = l->n - 1; pos.slot < hi;) {
		mid = (pos.slot + hi) / 2;
		if (peer_mem_range_before(&l->range[mid], gpa))
			pos.slot = mid + 1;
		else
			hi = mid;
	}
	return (pos);
}

/* Add an empty leaf at `i'. */
static int
leaf_insert(struct peer_mem *dma, uint32_t i)
{
	struct peer_mem_leaf *l;

	MPASS(dma->nleaves < PEER_MEM_LEAVES);
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
leaf_remove(struct peer_mem *dma, uint32_t i)
{
	free(dma->leaf[i]);
	dma->nleaves--;
	memmove(&dma->leaf[i], &dma->leaf[i + 1], (dma->nleaves - i) *
	    sizeof(dma->leaf[0]));
}

/* Move `n' ranges, from `slot' on, to the end of another leaf. */
static void
leaf_move(struct peer_mem_leaf *to, struct peer_mem_leaf *from, uint32_t slot,
    uint32_t n)
{
	memcpy(&to->range[to->n], &from->range[slot], n * sizeof(to->range[0]));
	to->n += n;
	from->n -= n;
}

/* Make one leaf of `i' and the next, if they are small. */
static void
leaf_merge(struct peer_mem *dma, uint32_t i)
{
	if (i + 1 >= dma->nleaves ||
	    dma->leaf[i]->n + dma->leaf[i + 1]->n > LEAF_MERGE)
		return;
	leaf_move(dma->leaf[i], dma->leaf[i + 1], 0, dma->leaf[i + 1]->n);
	leaf_remove(dma, i + 1);
}

int
peer_mem_range_insert(struct peer_mem *dma, struct peer_mem_pos pos,
    const struct peer_mem_range *new)
{
	struct peer_mem_leaf *l;

	if (dma->nleaves == 0 && leaf_insert(dma, 0) != 0)
		return (ENOMEM);
	if (pos.leaf == dma->nleaves || dma->leaf[pos.leaf]->n == 0) {
		pos.leaf = dma->nleaves - 1;
		pos.slot = dma->leaf[pos.leaf]->n;
	}
	l = dma->leaf[pos.leaf];
	if (l->n == PEER_MEM_LEAF) {
		if (leaf_insert(dma, pos.leaf + 1) != 0)
			return (ENOMEM);
		leaf_move(dma->leaf[pos.leaf + 1], l, PEER_MEM_LEAF / 2,
		    PEER_MEM_LEAF - PEER_MEM_LEAF / 2);
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
peer_mem_range_remove(struct peer_mem *dma, struct peer_mem_pos pos)
{
	struct peer_mem_leaf *l = dma->leaf[pos.leaf];

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
peer_mem_range_clear(struct peer_mem *dma)
{
	while (dma->nleaves > 0)
		free(dma->leaf[--dma->nleaves]);
	dma->n = 0;
}
