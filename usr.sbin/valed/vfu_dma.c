/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The table of guest memory; see vfu_dma.h. */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/magic.h>

#include <string.h>

#include "vfu_dma.h"
#include "vfu_fstat.h"

void
vfu_dma_init(struct vfu_dma *dma, uint64_t limit,
    void (*pause)(void *arg, bool paused), void *arg)
{
	memset(dma, 0, sizeof(*dma));
	dma->seq = UINT32_MAX - 7;	/* it wraps early, in tests, too */
	dma->limit = limit == 0 ? VFU_DMA_BYTES : MIN(limit, VFU_DMA_BYTES);
	dma->pause = pause;
	dma->arg = arg;
}

/* Start a change of the table: nobody uses it, and vfu_dma_host() skips it. */
static void
dma_change_begin(struct vfu_dma *dma)
{
	dma->pause(dma->arg, true);
	MPASS(dma->seq % 2 == 0);
	atomic_store_32(&dma->seq, dma->seq + 1);
	atomic_thread_fence_rel();
}

static void
dma_change_end(struct vfu_dma *dma, uint32_t n)
{
	atomic_store_32(&dma->n, n);
	atomic_store_32(&dma->visible, atomic_load_32(&dma->gone) ? 0 : n);
	atomic_store_rel_32(&dma->seq, dma->seq + 1);
	dma->pause(dma->arg, false);
}

static void
range_set(struct vfu_dma_range *r, const struct vfu_dma_range *from)
{
	atomic_store_64(&r->gpa, from->gpa);
	atomic_store_64(&r->size, from->size);
	atomic_store_ptr(&r->base, from->base);
	atomic_store_64(&r->page, from->page);
}

/* The mapping of a range: whole pages of the file. */
static void
range_pages(const struct vfu_dma_range *r, uint8_t **map, size_t *size)
{
	size_t skew;

	skew = (uintptr_t)r->base % r->page;
	*map = r->base - skew;
	*size = roundup2(skew + r->size, r->page);
}

/* The index of the first range that ends after gpa. */
static unsigned int
dma_find(const struct vfu_dma *dma, uint64_t gpa)
{
	unsigned int lo, hi, mid;

	lo = 0;
	hi = dma->n;
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (gpa - dma->range[mid].gpa < dma->range[mid].size ||
		    dma->range[mid].gpa > gpa)
			hi = mid;
		else
			lo = mid + 1;
	}
	return (lo);
}

/*
 * Check that `fd' is memory that cannot shrink, and reaches to offset + size.
 * Only files in memory have seals; fstatfs(2) then does not wait for anything.
 */
static int
dma_check_file(int fd, uint64_t offset, uint64_t size, uint64_t *page,
    const char **why)
{
	struct statfs fs;
	struct stat st;
	int seals;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals == -1 || (seals & F_SEAL_SHRINK) == 0) {
		*why = "memory is not a memfd sealed against shrinking";
		return (EPERM);
	}
	*why = "memory is in pages of unknown size";
	if (fstatfs(fd, &fs) == -1)
		return (EPERM);
	if (fs.f_type == TMPFS_MAGIC)
		*page = VFU_DMA_PAGE;
	else if (fs.f_type == HUGETLBFS_MAGIC && fs.f_bsize > VFU_DMA_PAGE &&
	    powerof2(fs.f_bsize))
		*page = fs.f_bsize;
	else
		return (EPERM);
	if (vfu_fstat(fd, &st) == -1 || offset > (uint64_t)st.st_size ||
	    size > (uint64_t)st.st_size - offset) {
		*why = "range reaches past the end of its file";
		return (EINVAL);
	}
	return (0);
}

/*
 * Map the pages of the file in which the range lies.  Huge pages are not
 * reserved for valed: the client reserves what it uses.
 */
static int
dma_map_file(struct vfu_dma *dma, struct vfu_dma_range *r, int fd,
    uint64_t offset, const char **why)
{
	uint64_t skew;
	uint8_t *p;
	int error;

	error = dma_check_file(fd, offset, r->size, &r->page, why);
	if (error != 0)
		return (error);
	if (r->size > dma->limit - dma->mapped) {
		*why = "too much memory";
		return (ENOSPC);
	}
	skew = offset % r->page;
	p = mmap(NULL, roundup2(skew + r->size, r->page),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
	    (off_t)(offset - skew));
	if (p == MAP_FAILED) {
		*why = "memory cannot be mapped";
		return (errno);
	}
	r->base = p + skew;
	dma->mapped += r->size;
	return (0);
}

int
vfu_dma_map(struct vfu_dma *dma, int fd, uint64_t offset, uint64_t gpa,
    uint64_t size, bool writable, const char **why)
{
	struct vfu_dma_range new = { .gpa = gpa, .size = size };
	struct vfu_dma_range *r;
	unsigned int i, j;
	int error;

	if (size == 0 || gpa + (size - 1) < gpa ||
	    (gpa | size | offset) % VFU_DMA_PAGE != 0) {
		*why = "range is empty, wraps or is not a multiple of pages";
		return (EINVAL);
	}
	i = dma_find(dma, gpa);
	r = &dma->range[i];
	if (i < dma->n && r->gpa <= gpa + (size - 1)) {
		*why = "range overlaps another";
		return (EEXIST);
	}
	if (dma->n == VFU_DMA_MAX) {
		*why = "too many ranges";
		return (ENOSPC);
	}
	if (fd != -1 && writable) {
		error = dma_map_file(dma, &new, fd, offset, why);
		if (error != 0)
			return (error);
	}
	dma_change_begin(dma);
	for (j = dma->n; j > i; j--)
		range_set(&dma->range[j], &dma->range[j - 1]);
	range_set(r, &new);
	dma_change_end(dma, dma->n + 1);
	/* Sorted, and without overlap. */
	MPASS(dma->n <= VFU_DMA_MAX && dma->mapped <= dma->limit);
	MPASS(i == 0 || r[-1].gpa + (r[-1].size - 1) < gpa);
	MPASS(i + 1 == dma->n || gpa + (size - 1) < r[1].gpa);
	return (0);
}

static void
dma_release(struct vfu_dma *dma, const struct vfu_dma_range *r)
{
	uint8_t *map;
	size_t size;

	if (r->base != NULL) {
		MPASS(dma->mapped >= r->size);
		range_pages(r, &map, &size);
		munmap(map, size);
		dma->mapped -= r->size;
	}
}

int
vfu_dma_unmap(struct vfu_dma *dma, uint64_t gpa, uint64_t size)
{
	unsigned int i;

	i = dma_find(dma, gpa);
	if (i == dma->n || dma->range[i].gpa != gpa ||
	    dma->range[i].size != size)
		return (ENOENT);
	dma_change_begin(dma);
	dma_release(dma, &dma->range[i]);
	for (; i < dma->n - 1; i++)
		range_set(&dma->range[i], &dma->range[i + 1]);
	dma_change_end(dma, dma->n - 1);
	return (0);
}

void
vfu_dma_clear(struct vfu_dma *dma)
{
	unsigned int i;

	dma_change_begin(dma);
	for (i = 0; i < dma->n; i++)
		dma_release(dma, &dma->range[i]);
	dma_change_end(dma, 0);
	MPASS(dma->mapped == 0);
}

void
vfu_dma_reset(struct vfu_dma *dma)
{
	vfu_dma_clear(dma);
	/* No thread has an address any more that could be gone. */
	atomic_store_32(&dma->gone, 0);
}

bool
vfu_dma_host(const struct vfu_dma *dma, const void *addr,
    struct vfu_dma_host *host)
{
	const struct vfu_dma_range *p;
	struct vfu_dma_range r;
	uint32_t i, n, seq;
	uint64_t at;

	seq = atomic_load_acq_32(&dma->seq);
	if (seq % 2 != 0)
		return (false);
	n = atomic_load_32(&dma->n);
	for (i = 0; i < n; i++) {
		p = &dma->range[i];
		r.gpa = atomic_load_64(&p->gpa);
		r.size = atomic_load_64(&p->size);
		r.base = atomic_load_ptr(&p->base);
		r.page = atomic_load_64(&p->page);
		at = (uintptr_t)addr - (uintptr_t)r.base;
		if (r.base == NULL || at >= r.size)
			continue;
		atomic_thread_fence_acq();
		if (atomic_load_32(&dma->seq) != seq)
			return (false);
		host->gpa = r.gpa + at;
		host->page_size = r.page;
		host->page = r.base + at - (uintptr_t)addr % r.page;
		range_pages(&r, &host->map, &host->map_size);
		return (true);
	}
	return (false);
}

void
vfu_dma_each(const struct vfu_dma *dma,
    void (*fn)(const void *arg, uint8_t *map, size_t size), const void *arg)
{
	uint8_t *map;
	size_t size;
	uint32_t i;

	for (i = 0; i < atomic_load_32(&dma->n); i++)
		if (dma->range[i].base != NULL) {
			range_pages(&dma->range[i], &map, &size);
			fn(arg, map, size);
		}
}

void
vfu_dma_lose(struct vfu_dma *dma, uint64_t gpa)
{
	atomic_store_64(&dma->gone_gpa, gpa);
	atomic_store_rel_32(&dma->gone, 1);
	atomic_store_32(&dma->visible, 0);
}

bool
vfu_dma_gone(const struct vfu_dma *dma, uint64_t *gpa)
{
	if (atomic_load_acq_32(&dma->gone) == 0)
		return (false);
	*gpa = atomic_load_64(&dma->gone_gpa);
	return (true);
}

void *
vfu_dma_addr(struct vfu_dma *dma, uint64_t gpa, size_t len)
{
	const struct vfu_dma_range *r;
	unsigned int i;

	i = atomic_load_32(&dma->last);
	if (i >= atomic_load_32(&dma->visible) ||
	    gpa - dma->range[i].gpa >= dma->range[i].size) {
		i = dma_find(dma, gpa);
		if (i >= atomic_load_32(&dma->visible) ||
		    gpa < dma->range[i].gpa)
			return (NULL);
		atomic_store_32(&dma->last, i);
	}
	r = &dma->range[i];
	if (r->base == NULL || len > r->size - (gpa - r->gpa))
		return (NULL);
	return (r->base + (gpa - r->gpa));
}
