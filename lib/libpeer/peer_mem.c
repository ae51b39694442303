/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Guest memory; see peer_mem.h. */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/systm.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "peer_mem_impl.h"

/* The longest ring has 1 MB: RDLEN and TDLEN. */
#define	JOIN_BYTES	((1UL << 20) + PEER_MEM_PAGE)

/* What dma->last is when there was no hit: no address is in it. */
static struct peer_mem_range dma_none;

void
peer_mem_init(struct peer_mem *dma, uint64_t limit,
    void (*pause)(void *arg, bool paused), void *arg)
{
	memset(dma, 0, offsetof(struct peer_mem, mapping));
	dma->last = &dma_none;
	dma->seq = UINT32_MAX - 7;	/* it wraps early, in tests, too */
	dma->limit = limit == 0 ? PEER_MEM_BYTES : MIN(limit, PEER_MEM_BYTES);
	dma->over = "too much memory";
	dma->pause = pause;
	dma->arg = arg;
}

void
peer_mem_set_over(struct peer_mem *dma, const char *over)
{
	dma->over = over;
}

void
peer_mem_set_wanted(struct peer_mem *dma, void (*wanted)(void *arg))
{
	dma->wanted = wanted;
}

void
peer_mem_set_keep(struct peer_mem *dma, const struct peer_keep *keep)
{
	dma->keep = keep;
}

/* Start a change of the table: nobody uses it, and peer_mem_host() skips it. */
static void
dma_change_begin(struct peer_mem *dma)
{
	dma->pause(dma->arg, true);
	MPASS(dma->seq % 2 == 0);
	atomic_store_32(&dma->seq, dma->seq + 1);
	atomic_thread_fence_rel();
	atomic_store_ptr(&dma->last, &dma_none);
}

static void
dma_change_end(struct peer_mem *dma)
{
	atomic_store_rel_32(&dma->seq, dma->seq + 1);
	dma->pause(dma->arg, false);
}

/* Add the range, between the others at its place. */
static int
dma_add(struct peer_mem *dma, struct peer_mem_pos pos,
    struct peer_mem_range *new, int fd, uint64_t offset, const char **why)
{
	int error;

	if (fd != -1) {
		error = peer_mem_file_get(dma, new, fd, offset, why);
		if (error != 0)
			return (error);
	}
	if (peer_mem_range_insert(dma, pos, new) != 0) {
		peer_mem_file_put(dma, new);
		*why = "no memory for the table of ranges";
		return (ENOMEM);
	}
	dma->nfiles += fd != -1;
	return (0);
}

int
peer_mem_map(struct peer_mem *dma, int fd, uint64_t offset, uint64_t gpa,
    uint64_t size, int prot, const char **why)
{
	struct peer_mem_range new = { .gpa = gpa, .size = size,
	    .prot = (uint16_t)prot };
	const struct peer_mem_range *r;
	struct peer_mem_pos pos;
	int error;

	if (size == 0 || gpa + (size - 1) < gpa ||
	    (gpa | size | offset) % PEER_MEM_PAGE != 0) {
		*why = "range is empty, wraps or is not a multiple of pages";
		return (EINVAL);
	}
	pos = peer_mem_range_find(dma, gpa);
	r = peer_mem_range_at(dma, pos);
	if (r != NULL && r->gpa <= gpa + (size - 1)) {
		*why = "range overlaps another";
		return (EEXIST);
	}
	if (dma->n == PEER_MEM_MAX) {
		*why = "too many ranges";
		return (ENOSPC);
	}
	dma_change_begin(dma);
	error = dma_add(dma, pos, &new, fd, offset, why);
	if (error == 0)
		peer_mem_journal_map(dma, &new, offset);
	dma_change_end(dma);
	MPASS(dma->n <= PEER_MEM_MAX && dma->mapped <= dma->limit);
	return (error);
}

int
peer_mem_unmap(struct peer_mem *dma, uint64_t gpa, uint64_t size)
{
	const uint64_t last = gpa + (size - 1);
	const struct peer_mem_range *r;
	struct peer_mem_pos pos;

	if (size == 0 || last < gpa)
		return (EINVAL);
	pos = peer_mem_range_find(dma, last);
	r = peer_mem_range_at(dma, pos);
	if (r != NULL && r->gpa <= last && r->gpa + (r->size - 1) > last)
		return (EINVAL);
	pos = peer_mem_range_find(dma, gpa);
	r = peer_mem_range_at(dma, pos);
	if (r == NULL || r->gpa > last)
		return (ENOENT);
	if (r->gpa < gpa)
		return (EINVAL);
	dma_change_begin(dma);
	peer_mem_file_part(dma, gpa, size);
	do {
		dma->nfiles -= r->base != NULL;
		peer_mem_file_put(dma, r);
		peer_mem_range_remove(dma, pos);
		pos = peer_mem_range_find(dma, gpa);
		r = peer_mem_range_at(dma, pos);
	} while (r != NULL && r->gpa <= last);
	peer_mem_journal_unmap(dma, gpa, size);
	dma_change_end(dma);
	return (0);
}

void
peer_mem_clear(struct peer_mem *dma)
{
	const struct peer_mem_leaf *l;
	uint32_t i, j;

	dma_change_begin(dma);
	peer_mem_file_part(dma, 0, UINT64_MAX);
	for (i = 0; i < dma->nleaves; i++) {
		l = dma->leaf[i];
		for (j = 0; j < l->n; j++)
			peer_mem_file_put(dma, &l->range[j]);
	}
	peer_mem_range_clear(dma);
	dma->nfiles = 0;
	peer_mem_journal_clear(dma);
	peer_mem_file_drop(dma, true);
	dma_change_end(dma);
	MPASS(dma->mapped == 0 && dma->idle == 0);
}

void
peer_mem_reset(struct peer_mem *dma)
{
	peer_mem_clear(dma);
	/* No thread has an address any more that could be gone. */
	atomic_store_32(&dma->gone, 0);
	atomic_store_32(&dma->refused, 0);
	atomic_store_64(&dma->want_size, 0);
}

bool
peer_mem_idle(struct peer_mem *dma)
{
	if (atomic_load_64(&dma->idle) == 0)
		return (false);
	atomic_store_32(&dma->drop, 1);
	return (true);
}

void
peer_mem_drop(struct peer_mem *dma)
{
	if (atomic_load_32(&dma->drop) == 0)
		return;
	atomic_store_32(&dma->drop, 0);
	dma_change_begin(dma);
	peer_mem_file_drop(dma, false);
	dma_change_end(dma);
}

void
peer_mem_lose(struct peer_mem *dma, uint64_t gpa)
{
	if (atomic_load_32(&dma->gone) == 0)
		atomic_store_64(&dma->gone_gpa, gpa);
	atomic_store_rel_32(&dma->gone, 1);
}

bool
peer_mem_gone(const struct peer_mem *dma, uint64_t *gpa)
{
	if (atomic_load_acq_32(&dma->gone) == 0)
		return (false);
	*gpa = atomic_load_64(&dma->gone_gpa);
	return (true);
}

/*
 * Lookup.
 */

/* Note that an address in a range without a file was asked for. */
static void
dma_refuse(struct peer_mem *dma, uint64_t gpa)
{
	if (atomic_load_32(&dma->refused) != 0 || dma->wanted == NULL)
		return;
	atomic_store_64(&dma->refused_gpa, gpa);
	atomic_store_rel_32(&dma->refused, 1);
	dma->wanted(dma->arg);
}

bool
peer_mem_refused(const struct peer_mem *dma, uint64_t *gpa)
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
dma_covered(struct peer_mem *dma, uint64_t gpa, size_t len, int prot,
    uint8_t **addr, bool *adjacent)
{
	struct peer_mem_pos pos = peer_mem_range_find(dma, gpa);
	struct peer_mem_range *r = peer_mem_range_at(dma, pos);
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
		pos = peer_mem_range_next(dma, pos);
		r = peer_mem_range_at(dma, pos);
		if (r == NULL || r->gpa != gpa || r->base == NULL)
			return (false);
		*adjacent = *adjacent && r->base == end;
		end = r->base + r->size;
	}
	return (false);
}

/*
 * Look up an address that is not in the range of the last hit, or not wholly.
 */
static __attribute__((__noinline__)) void *
dma_lookup(struct peer_mem *dma, uint64_t gpa, size_t len, int prot)
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
	addr = peer_mem_file_joined(dma, gpa, len);
	if (addr == NULL) {
		atomic_store_64(&dma->want_gpa, gpa);
		atomic_store_64(&dma->want_size, len);
		dma->wanted(dma->arg);
	}
	return (addr);
}

void *
peer_mem_addr(struct peer_mem *dma, uint64_t gpa, size_t len, int prot)
{
	const struct peer_mem_range *r = atomic_load_ptr(&dma->last);
	const uint64_t at = gpa - r->gpa;

	if (at >= r->size || len > r->size - at || (r->prot & prot) != prot ||
	    atomic_load_32(&dma->gone) != 0)
		return (dma_lookup(dma, gpa, len, prot));
	return (r->base + at);
}

bool
peer_mem_join(struct peer_mem *dma)
{
	const uint64_t gpa = rounddown2(atomic_load_64(&dma->want_gpa),
	    PEER_MEM_PAGE);
	uint64_t size = atomic_load_64(&dma->want_size);
	bool adjacent, joined;
	uint8_t *addr;

	if (size == 0)
		return (false);
	size = roundup2(atomic_load_64(&dma->want_gpa) + size - gpa,
	    PEER_MEM_PAGE);
	atomic_store_64(&dma->want_size, 0);
	if (peer_mem_file_joined(dma, gpa, size) != NULL)
		return (true);
	if (size > JOIN_BYTES || !dma_covered(dma, gpa, size, PROT_READ |
	    PROT_WRITE, &addr, &adjacent) || adjacent)
		return (false);
	dma_change_begin(dma);
	joined = peer_mem_file_join(dma, gpa, size);
	dma_change_end(dma);
	return (joined);
}
