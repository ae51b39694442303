/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Guest memory; see vfu_dma.h. */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/systm.h>

#include <errno.h>
#include <string.h>

#include "vfu_dma_impl.h"

/* The longest ring has 1 MB: RDLEN and TDLEN. */
#define	JOIN_BYTES	((1UL << 20) + VFU_DMA_PAGE)

/* What dma->last is when there was no hit: no address is in it. */
static struct vfu_dma_range dma_none;

void
vfu_dma_init(struct vfu_dma *dma, uint64_t limit,
    void (*pause)(void *arg, bool paused), void *arg)
{
	memset(dma, 0, sizeof(*dma));
	dma->last = &dma_none;
	dma->seq = UINT32_MAX - 7;	/* it wraps early, in tests, too */
	dma->limit = limit == 0 ? VFU_DMA_BYTES : MIN(limit, VFU_DMA_BYTES);
	dma->pause = pause;
	dma->arg = arg;
}

void
vfu_dma_set_wanted(struct vfu_dma *dma, void (*wanted)(void *arg))
{
	dma->wanted = wanted;
}

/* Start a change of the table: nobody uses it, and vfu_dma_host() skips it. */
static void
dma_change_begin(struct vfu_dma *dma)
{
	dma->pause(dma->arg, true);
	MPASS(dma->seq % 2 == 0);
	atomic_store_32(&dma->seq, dma->seq + 1);
	atomic_thread_fence_rel();
	atomic_store_ptr(&dma->last, &dma_none);
}

static void
dma_change_end(struct vfu_dma *dma)
{
	atomic_store_rel_32(&dma->seq, dma->seq + 1);
	dma->pause(dma->arg, false);
}

/* Add the range, between the others at its place. */
static int
dma_add(struct vfu_dma *dma, struct vfu_dma_pos pos, struct vfu_dma_range *new,
    int fd, uint64_t offset, const char **why)
{
	int error;

	if (fd != -1) {
		error = vfu_dma_file_get(dma, new, fd, offset, why);
		if (error != 0)
			return (error);
	}
	if (vfu_dma_range_insert(dma, pos, new) != 0) {
		vfu_dma_file_put(dma, new);
		*why = "no memory for the table of ranges";
		return (ENOMEM);
	}
	dma->nfiles += fd != -1;
	return (0);
}

int
vfu_dma_map(struct vfu_dma *dma, int fd, uint64_t offset, uint64_t gpa,
    uint64_t size, int prot, const char **why)
{
	struct vfu_dma_range new = { .gpa = gpa, .size = size,
	    .prot = (uint16_t)prot };
	const struct vfu_dma_range *r;
	struct vfu_dma_pos pos;
	int error;

	if (size == 0 || gpa + (size - 1) < gpa ||
	    (gpa | size | offset) % VFU_DMA_PAGE != 0) {
		*why = "range is empty, wraps or is not a multiple of pages";
		return (EINVAL);
	}
	pos = vfu_dma_range_find(dma, gpa);
	r = vfu_dma_range_at(dma, pos);
	if (r != NULL && r->gpa <= gpa + (size - 1)) {
		*why = "range overlaps another";
		return (EEXIST);
	}
	if (dma->n == VFU_DMA_MAX) {
		*why = "too many ranges";
		return (ENOSPC);
	}
	dma_change_begin(dma);
	error = dma_add(dma, pos, &new, fd, offset, why);
	dma_change_end(dma);
	MPASS(dma->n <= VFU_DMA_MAX && dma->mapped <= dma->limit);
	return (error);
}

int
vfu_dma_unmap(struct vfu_dma *dma, uint64_t gpa, uint64_t size)
{
	const uint64_t last = gpa + (size - 1);
	const struct vfu_dma_range *r;
	struct vfu_dma_pos pos;

	if (size == 0 || last < gpa)
		return (EINVAL);
	pos = vfu_dma_range_find(dma, last);
	r = vfu_dma_range_at(dma, pos);
	if (r != NULL && r->gpa <= last && r->gpa + (r->size - 1) > last)
		return (EINVAL);
	pos = vfu_dma_range_find(dma, gpa);
	r = vfu_dma_range_at(dma, pos);
	if (r == NULL || r->gpa > last)
		return (ENOENT);
	if (r->gpa < gpa)
		return (EINVAL);
	dma_change_begin(dma);
	vfu_dma_file_part(dma, gpa, size);
	do {
		dma->nfiles -= r->base != NULL;
		vfu_dma_file_put(dma, r);
		vfu_dma_range_remove(dma, pos);
		pos = vfu_dma_range_find(dma, gpa);
		r = vfu_dma_range_at(dma, pos);
	} while (r != NULL && r->gpa <= last);
	dma_change_end(dma);
	return (0);
}

void
vfu_dma_clear(struct vfu_dma *dma)
{
	const struct vfu_dma_leaf *l;
	uint32_t i, j;

	dma_change_begin(dma);
	vfu_dma_file_part(dma, 0, UINT64_MAX);
	for (i = 0; i < dma->nleaves; i++) {
		l = dma->leaf[i];
		for (j = 0; j < l->n; j++)
			vfu_dma_file_put(dma, &l->range[j]);
	}
	vfu_dma_range_clear(dma);
	dma->nfiles = 0;
	dma_change_end(dma);
	MPASS(dma->mapped == 0);
}

void
vfu_dma_reset(struct vfu_dma *dma)
{
	vfu_dma_clear(dma);
	/* No thread has an address any more that could be gone. */
	atomic_store_32(&dma->gone, 0);
	atomic_store_32(&dma->refused, 0);
	atomic_store_64(&dma->want_size, 0);
}

void
vfu_dma_lose(struct vfu_dma *dma, uint64_t gpa)
{
	if (atomic_load_32(&dma->gone) == 0)
		atomic_store_64(&dma->gone_gpa, gpa);
	atomic_store_rel_32(&dma->gone, 1);
}

bool
vfu_dma_gone(const struct vfu_dma *dma, uint64_t *gpa)
{
	if (atomic_load_acq_32(&dma->gone) == 0)
		return (false);
	*gpa = atomic_load_64(&dma->gone_gpa);
	return (true);
}

/*
 * Lookup.
 */

/* An address in a range without a file was asked for. */
static void
dma_refuse(struct vfu_dma *dma, uint64_t gpa)
{
	if (atomic_load_32(&dma->refused) != 0 || dma->wanted == NULL)
		return;
	atomic_store_64(&dma->refused_gpa, gpa);
	atomic_store_rel_32(&dma->refused, 1);
	dma->wanted(dma->arg);
}

bool
vfu_dma_refused(const struct vfu_dma *dma, uint64_t *gpa)
{
	if (atomic_load_acq_32(&dma->refused) == 0)
		return (false);
	*gpa = atomic_load_64(&dma->refused_gpa);
	return (true);
}

/*
 * See whether [gpa, gpa + len) is inside adjacent ranges that permit `prot',
 * and if so, whether these are adjacent in the host.
 */
static bool
dma_covered(struct vfu_dma *dma, uint64_t gpa, size_t len, int prot,
    uint8_t **addr, bool *adjacent)
{
	struct vfu_dma_pos pos = vfu_dma_range_find(dma, gpa);
	struct vfu_dma_range *r = vfu_dma_range_at(dma, pos);
	uint8_t *end;
	uint64_t left;

	if (r == NULL || r->gpa > gpa)
		return (false);
	if (r->base == NULL) {
		dma_refuse(dma, gpa);
		return (false);
	}
	atomic_store_ptr(&dma->last, r);
	*addr = r->base + (gpa - r->gpa);
	*adjacent = true;
	left = r->size - (gpa - r->gpa);
	for (end = *addr + left; (r->prot & prot) == prot; left += r->size) {
		if (len <= left)
			return (true);
		gpa = r->gpa + r->size;
		pos = vfu_dma_range_next(dma, pos);
		r = vfu_dma_range_at(dma, pos);
		if (r == NULL || r->gpa != gpa || r->base == NULL)
			return (false);
		*adjacent = *adjacent && r->base == end;
		end = r->base + r->size;
	}
	return (false);
}

/* An address that is not in the range of the last hit, or not wholly. */
static __attribute__((__noinline__)) void *
dma_lookup(struct vfu_dma *dma, uint64_t gpa, size_t len, int prot)
{
	uint8_t *addr;
	bool adjacent;

	if (atomic_load_32(&dma->gone) != 0 ||
	    !dma_covered(dma, gpa, len, prot, &addr, &adjacent))
		return (NULL);
	if (adjacent)
		return (addr);
	if (prot != (PROT_READ | PROT_WRITE) || dma->wanted == NULL)
		return (NULL);
	/* A ring. */
	addr = vfu_dma_file_joined(dma, gpa, len);
	if (addr == NULL) {
		atomic_store_64(&dma->want_gpa, gpa);
		atomic_store_64(&dma->want_size, len);
		dma->wanted(dma->arg);
	}
	return (addr);
}

void *
vfu_dma_addr(struct vfu_dma *dma, uint64_t gpa, size_t len, int prot)
{
	const struct vfu_dma_range *r = atomic_load_ptr(&dma->last);
	const uint64_t at = gpa - r->gpa;

	if (at >= r->size || len > r->size - at || (r->prot & prot) != prot ||
	    atomic_load_32(&dma->gone) != 0)
		return (dma_lookup(dma, gpa, len, prot));
	return (r->base + at);
}

bool
vfu_dma_join(struct vfu_dma *dma)
{
	const uint64_t gpa = rounddown2(atomic_load_64(&dma->want_gpa),
	    VFU_DMA_PAGE);
	uint64_t size = atomic_load_64(&dma->want_size);
	bool adjacent, joined;
	uint8_t *addr;

	if (size == 0)
		return (false);
	size = roundup2(atomic_load_64(&dma->want_gpa) + size - gpa,
	    VFU_DMA_PAGE);
	atomic_store_64(&dma->want_size, 0);
	if (vfu_dma_file_joined(dma, gpa, size) != NULL)
		return (true);
	if (size > JOIN_BYTES || !dma_covered(dma, gpa, size, PROT_READ |
	    PROT_WRITE, &addr, &adjacent) || adjacent)
		return (false);
	dma_change_begin(dma);
	joined = vfu_dma_file_join(dma, gpa, size);
	dma_change_end(dma);
	return (joined);
}
