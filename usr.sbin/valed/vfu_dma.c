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
 * Check that [offset, offset + size) of the file stays accessible.  Only files
 * in memory have seals.  Files in huge pages have them, too, but if a hole is
 * punched into one, the next access may find no page and fault.
 */
static int
dma_check_file(int fd, uint64_t offset, uint64_t size, const char **why)
{
	struct statfs fs;
	struct stat st;
	int seals;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals == -1 || (seals & F_SEAL_SHRINK) == 0) {
		*why = "memory is not a memfd sealed against shrinking";
		return (EPERM);
	}
	if (fstatfs(fd, &fs) == -1 || fs.f_type != TMPFS_MAGIC) {
		*why = "memory is not in normal pages";
		return (EPERM);
	}
	if (vfu_fstat(fd, &st) == -1 || offset > (uint64_t)st.st_size ||
	    size > (uint64_t)st.st_size - offset) {
		*why = "range reaches past the end of its file";
		return (EINVAL);
	}
	return (0);
}

int
vfu_dma_map(struct vfu_dma *dma, int fd, uint64_t offset, uint64_t gpa,
    uint64_t size, bool writable, const char **why)
{
	struct vfu_dma_range *r;
	unsigned int i;
	void *base;
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
	base = NULL;
	if (fd != -1 && writable) {
		error = dma_check_file(fd, offset, size, why);
		if (error != 0)
			return (error);
		if (size > VFU_DMA_BYTES - dma->mapped) {
			*why = "too much memory";
			return (ENOSPC);
		}
		base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    (off_t)offset);
		if (base == MAP_FAILED) {
			*why = "memory cannot be mapped";
			return (errno);
		}
		dma->mapped += size;
	}
	memmove(r + 1, r, (dma->n - i) * sizeof(*r));
	r->gpa = gpa;
	r->size = size;
	r->base = base;
	dma->n++;
	/* Sorted, and without overlap. */
	MPASS(dma->n <= VFU_DMA_MAX && dma->mapped <= VFU_DMA_BYTES);
	MPASS(i == 0 || r[-1].gpa + (r[-1].size - 1) < gpa);
	MPASS(i + 1 == dma->n || gpa + (size - 1) < r[1].gpa);
	return (0);
}

static void
dma_release(struct vfu_dma *dma, const struct vfu_dma_range *r)
{
	if (r->base != NULL) {
		MPASS(dma->mapped >= r->size);
		munmap(r->base, r->size);
		dma->mapped -= r->size;
	}
}

int
vfu_dma_unmap(struct vfu_dma *dma, uint64_t gpa, uint64_t size)
{
	struct vfu_dma_range *r;
	unsigned int i;

	i = dma_find(dma, gpa);
	r = &dma->range[i];
	if (i == dma->n || r->gpa != gpa || r->size != size)
		return (ENOENT);
	dma_release(dma, r);
	dma->n--;
	memmove(r, r + 1, (dma->n - i) * sizeof(*r));
	return (0);
}

void
vfu_dma_clear(struct vfu_dma *dma)
{
	unsigned int i;

	for (i = 0; i < dma->n; i++)
		dma_release(dma, &dma->range[i]);
	dma->n = 0;
	MPASS(dma->mapped == 0);
}

void *
vfu_dma_addr(struct vfu_dma *dma, uint64_t gpa, size_t len)
{
	const struct vfu_dma_range *r;
	unsigned int i;

	i = atomic_load_32(&dma->last);
	if (i >= dma->n || gpa - dma->range[i].gpa >= dma->range[i].size) {
		i = dma_find(dma, gpa);
		if (i == dma->n || gpa < dma->range[i].gpa)
			return (NULL);
		atomic_store_32(&dma->last, i);
	}
	r = &dma->range[i];
	if (r->base == NULL || len > r->size - (gpa - r->gpa))
		return (NULL);
	return (r->base + (gpa - r->gpa));
}
