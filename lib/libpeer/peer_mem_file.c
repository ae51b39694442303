/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The mappings of files and rings; see peer_mem.h and peer_mem_impl.h. */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/magic.h>

#include <stdio.h>
#include <string.h>

#include "peer_mem_impl.h"
#include "peer_fd.h"

/*
 * What is mapped of a file, bytes, if the limit does not permit all of it, for
 * ranges of at most FILE_SMALL bytes: of those there may be many.
 */
#define	FILE_PART	(1ULL << 30)
#define	FILE_SMALL	(2ULL << 20)

/* A file that was checked. */
struct dma_file {
	int		fd;
	uint64_t	dev, ino;
	uint64_t	size;
	int		seals;
};

static void
mapping_set(struct peer_mem_mapping *m, uint8_t *base, uint64_t size,
    uint64_t page)
{
	atomic_store_ptr(&m->base, base);
	atomic_store_64(&m->page, page);
	atomic_store_64(&m->size, size);
}

/* Return an entry that is not used, or NULL. */
static struct peer_mem_mapping *
mapping_alloc(struct peer_mem *dma)
{
	uint32_t i;

	for (i = 0; i < dma->nmappings; i++)
		if (dma->mapping[i].size == 0)
			return (&dma->mapping[i]);
	if (i == PEER_MEM_MAPPINGS)
		return (peer_mem_file_drop(dma, true) ? mapping_alloc(dma) :
		    NULL);
	atomic_store_64(&dma->mapping[i].size, 0);
	dma->mapping[i].nranges = dma->mapping[i].file = 0;
	dma->mapping[i].prot = 0;
	atomic_store_32(&dma->nmappings, i + 1);
	return (&dma->mapping[i]);
}

static void
mapping_free(struct peer_mem_mapping *m)
{
	munmap(m->base, m->size);
	mapping_set(m, NULL, 0, 0);
	m->prot = 0;
}

void
peer_mem_file_name(char name[PEER_KEEP_NAME], uint32_t file)
{
	snprintf(name, PEER_KEEP_NAME, "mem.%u", file - 1);
}

/* Return the mapping with this number, or NULL. */
static const struct peer_mem_mapping *
file_number(const struct peer_mem *dma, uint32_t file)
{
	const struct peer_mem_mapping *m;

	for (m = dma->mapping; m < dma->mapping + dma->nmappings; m++)
		if (m->file == file)
			return (m);
	return (NULL);
}

/* Give a mapping of `fd' a number, and keep its file by that. */
static void
file_keep(struct peer_mem *dma, struct peer_mem_mapping *m, int fd)
{
	char name[PEER_KEEP_NAME];
	uint32_t file;

	if (dma->keep == NULL && dma->journal == NULL && dma->file_hint == 0)
		return;
	if (dma->file_hint != 0 && file_number(dma, dma->file_hint) == NULL) {
		/* The file is kept already. */
		m->file = dma->file_hint;
		return;
	}
	for (file = dma->file_next + 1; file_number(dma, file) != NULL;)
		file++;
	m->file = file;
	peer_mem_file_name(name, file);
	peer_keep_put(dma->keep, name, fd);
}

bool
peer_mem_file_drop(struct peer_mem *dma, bool all)
{
	struct peer_mem_mapping *m;
	char name[PEER_KEEP_NAME];
	bool any = false;

	for (m = dma->mapping; m < dma->mapping + dma->nmappings; m++) {
		if (m->prot == 0 || m->nranges > 0)
			continue;
		if (!all && !m->stale) {
			m->stale = true;
			continue;
		}
		any = true;
		MPASS(dma->mapped >= m->size && dma->idle >= m->size);
		dma->mapped -= m->size;
		atomic_store_64(&dma->idle, dma->idle - m->size);
		mapping_free(m);
		peer_mem_file_name(name, m->file);
		m->file = 0;
		peer_keep_remove(dma->keep, name);
	}
	return (any);
}

/*
 * Check that `fd' is memory that cannot shrink, and reaches to offset + size.
 * Only files in memory have seals; fstat(2) then does not wait for anything.
 */
static int
file_check(struct dma_file *f, uint64_t offset, uint64_t size,
    const char **why)
{
	struct stat st;

	f->seals = fcntl(f->fd, F_GET_SEALS);
	if (f->seals == -1 || (f->seals & F_SEAL_SHRINK) == 0) {
		*why = "memory is not a memfd sealed against shrinking";
		return (EPERM);
	}
	if (peer_fstat(f->fd, &st) == -1 || offset > (uint64_t)st.st_size ||
	    size > (uint64_t)st.st_size - offset) {
		*why = "range reaches past the end of its file";
		return (EINVAL);
	}
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->size = st.st_size;
	return (0);
}

/* Return the page size of a file that was checked, or 0 if that is unknown. */
static uint64_t
file_page(const struct dma_file *f)
{
	struct statfs fs;

	if (fstatfs(f->fd, &fs) == -1)
		return (0);
	if (fs.f_type == TMPFS_MAGIC)
		return (PEER_MEM_PAGE);
	return (fs.f_type == HUGETLBFS_MAGIC && fs.f_bsize > PEER_MEM_PAGE &&
	    powerof2(fs.f_bsize) ? fs.f_bsize : 0);
}

/* Return what a new mapping of the file would permit. */
static int
file_prot(const struct dma_file *f)
{
	const int mode = fcntl(f->fd, F_GETFL) & O_ACCMODE;

	if (mode == O_WRONLY)
		return (0);
	return (mode == O_RDWR && (f->seals & F_SEAL_FUTURE_WRITE) == 0 ?
	    PROT_READ | PROT_WRITE : PROT_READ);
}

/*
 * Return the mapping in which a part of the file is accessible, or NULL.  A
 * mapping without ranges may be gone or not, so it must permit what a new one
 * would, and no more.
 */
static struct peer_mem_mapping *
file_find(struct peer_mem *dma, const struct dma_file *f, uint64_t offset,
    uint64_t size, int prot)
{
	struct peer_mem_mapping *m;

	for (m = dma->mapping; m < dma->mapping + dma->nmappings; m++) {
		if (m->ino == f->ino && m->dev == f->dev &&
		    m->size != 0 && (m->prot & prot) == prot &&
		    offset >= m->offset && offset - m->offset < m->size &&
		    size <= m->size - (offset - m->offset) &&
		    (m->nranges > 0 || m->prot == file_prot(f)))
			return (m);
	}
	return (NULL);
}

/*
 * Map [start, end) of the file; for writing, too, if that is possible.  Huge
 * pages are not reserved here: the client reserves what it uses.
 */
static uint8_t *
file_mmap(const struct dma_file *f, uint64_t start, uint64_t end, int *prot)
{
	uint8_t *p;

	p = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_SHARED |
	    MAP_NORESERVE, f->fd, (off_t)start);
	/* Open for reading only, or sealed against writing. */
	if (p == MAP_FAILED && *prot == PROT_READ &&
	    (errno == EACCES || errno == EPERM))
		return (mmap(NULL, end - start, PROT_READ, MAP_SHARED |
		    MAP_NORESERVE, f->fd, (off_t)start));
	if (p != MAP_FAILED)
		*prot = PROT_READ | PROT_WRITE;
	return (p);
}

/*
 * Choose how much of the file to map for [*start, *end): all of it, or a part,
 * or the pages.  Returns whether the limit permits that.
 */
static bool
file_extent(const struct peer_mem *dma, const struct dma_file *f,
    uint64_t page, uint64_t *start, uint64_t *end)
{
	const uint64_t left = dma->limit - (dma->mapped - dma->idle);
	const uint64_t last = roundup2(f->size, page);
	const uint64_t part = MAX(FILE_PART, page);
	uint64_t lo, hi;

	if (last <= left) {
		*start = 0;
		*end = last;
		return (true);
	}
	lo = rounddown2(*start, part);
	hi = MIN(last, roundup2(*end, part));
	if (*end - *start > FILE_SMALL || hi - lo > left) {
		lo = rounddown2(*start, page);
		hi = roundup2(*end, page);
	}
	*start = lo;
	*end = hi;
	return (hi - lo <= left);
}

/* Map the file, for the range at `offset'. */
static int
file_map(struct peer_mem *dma, const struct dma_file *f, uint64_t offset,
    uint64_t size, int prot, struct peer_mem_mapping **mp, const char **why)
{
	const uint64_t page = file_page(f);
	struct peer_mem_mapping *m;
	uint64_t start = offset, end = offset + size;
	uint8_t *p;

	if (page == 0) {
		*why = "memory is in pages of unknown size";
		return (EPERM);
	}
	if (!file_extent(dma, f, page, &start, &end)) {
		*why = dma->over;
		return (ENOSPC);
	}
	if (end - start > dma->limit - dma->mapped)
		peer_mem_file_drop(dma, true);
	m = mapping_alloc(dma);
	if (m == NULL) {
		*why = "too many mappings";
		return (ENOSPC);
	}
	p = file_mmap(f, start, end, &prot);
	if (p == MAP_FAILED && errno == ENOMEM && peer_mem_file_drop(dma, true))
		p = file_mmap(f, start, end, &prot);
	if (p == MAP_FAILED) {
		*why = "memory cannot be mapped";
		return (errno);
	}
	m->offset = start;
	m->dev = f->dev;
	m->ino = f->ino;
	m->prot = prot;
	mapping_set(m, p, end - start, page);
	dma->mapped += m->size;
	atomic_store_64(&dma->idle, dma->idle + m->size);
	file_keep(dma, m, f->fd);
	*mp = m;
	return (0);
}

int
peer_mem_file_get(struct peer_mem *dma, struct peer_mem_range *r, int fd,
    uint64_t offset, const char **why)
{
	struct dma_file f = { .fd = fd };
	struct peer_mem_mapping *m;
	int error;

	error = file_check(&f, offset, r->size, why);
	if (error != 0)
		return (error);
	m = file_find(dma, &f, offset, r->size, r->prot);
	if (m == NULL) {
		error = file_map(dma, &f, offset, r->size, r->prot, &m, why);
		if (error != 0)
			return (error);
	}
	if (m->nranges++ == 0)
		atomic_store_64(&dma->idle, dma->idle - m->size);
	r->base = m->base + (offset - m->offset);
	r->mapping = (uint16_t)(m - dma->mapping);
	return (0);
}

void
peer_mem_file_put(struct peer_mem *dma, const struct peer_mem_range *r)
{
	struct peer_mem_mapping *m;

	if (r->base == NULL)
		return;
	m = &dma->mapping[r->mapping];
	MPASS(m->nranges > 0);
	if (--m->nranges > 0)
		return;
	m->stale = false;
	atomic_store_64(&dma->idle, dma->idle + m->size);
}

/*
 * Joined rings.
 */

uint8_t *
peer_mem_file_joined(const struct peer_mem *dma, uint64_t gpa, size_t len)
{
	const struct peer_mem_joined *j;

	for (j = dma->joined; j < dma->joined + PEER_MEM_JOINS; j++) {
		if (gpa - j->gpa < j->size && len <= j->size - (gpa - j->gpa))
			return (j->base + (gpa - j->gpa));
	}
	return (NULL);
}

/*
 * Map the pages of [gpa, gpa + size) at `base', in `max' pieces at most.  The
 * caller must have looked at the ranges: they are all there.  mremap(2) of 0
 * bytes of a shared mapping maps its pages once more.  Returns how many pieces
 * there are, or 0 if that fails.
 */
static unsigned int
join_pieces(const struct peer_mem *dma, uint64_t gpa, uint64_t size,
    uint8_t *base, unsigned int max)
{
	struct peer_mem_pos pos = peer_mem_range_find(dma, gpa);
	const struct peer_mem_range *r;
	uint64_t done, len;
	unsigned int n = 0;

	for (done = 0; done < size; done += len, n++) {
		r = peer_mem_range_at(dma, pos);
		len = MIN(size - done, r->size - (gpa + done - r->gpa));
		if (n == max ||
		    dma->mapping[r->mapping].page != PEER_MEM_PAGE ||
		    mremap(r->base + (gpa + done - r->gpa), 0, len,
		    MREMAP_MAYMOVE | MREMAP_FIXED, base + done) == MAP_FAILED)
			return (0);
		pos = peer_mem_range_next(dma, pos);
	}
	return (n);
}

/*
 * Return a joined ring that is not used, or NULL, and set *max to how many
 * pieces the ring may have.
 */
static struct peer_mem_joined *
join_alloc(struct peer_mem *dma, unsigned int *max)
{
	struct peer_mem_joined *j, *unused = NULL;

	*max = PEER_MEM_PIECES;
	for (j = dma->joined; j < dma->joined + PEER_MEM_JOINS; j++) {
		if (j->size == 0)
			unused = j;
		else
			*max -= j->npieces;
	}
	return (unused);
}

bool
peer_mem_file_join(struct peer_mem *dma, uint64_t gpa, uint64_t size)
{
	struct peer_mem_mapping *m;
	struct peer_mem_joined *j;
	unsigned int max;
	uint8_t *base;

	/* An adapter has few rings; those that moved are still here. */
	j = join_alloc(dma, &max);
	if (j == NULL) {
		peer_mem_file_part(dma, 0, UINT64_MAX);
		j = join_alloc(dma, &max);
	}
	m = mapping_alloc(dma);
	if (m == NULL)
		return (false);
	base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANON |
	    MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return (false);
	j->npieces = join_pieces(dma, gpa, size, base, max);
	if (j->npieces == 0) {
		munmap(base, size);
		return (false);
	}
	mapping_set(m, base, size, PEER_MEM_PAGE);
	j->gpa = gpa;
	j->size = size;
	j->base = base;
	j->mapping = (unsigned int)(m - dma->mapping);
	return (true);
}

void
peer_mem_file_part(struct peer_mem *dma, uint64_t gpa, uint64_t size)
{
	struct peer_mem_joined *j;

	for (j = dma->joined; j < dma->joined + PEER_MEM_JOINS; j++) {
		if (j->size == 0 || (j->gpa - gpa >= size &&
		    gpa - j->gpa >= j->size))
			continue;
		mapping_free(&dma->mapping[j->mapping]);
		j->size = 0;
	}
}

/*
 * The handler's.
 */

/*
 * Return the guest's address of an address in a range or a joined ring, or 0.
 */
static uint64_t
host_gpa(const struct peer_mem *dma, const uint8_t *addr)
{
	const struct peer_mem_joined *j;
	const struct peer_mem_range *r;
	uint32_t i;

	for (j = dma->joined; j < dma->joined + PEER_MEM_JOINS; j++)
		if ((uint64_t)(addr - j->base) < j->size)
			return (j->gpa + (addr - j->base));
	for (i = 0; i < dma->nleaves; i++)
		for (r = dma->leaf[i]->range;
		    r < dma->leaf[i]->range + dma->leaf[i]->n; r++)
			if (r->base != NULL &&
			    (uint64_t)(addr - r->base) < r->size)
				return (r->gpa + (addr - r->base));
	return (0);
}

bool
peer_mem_host(const struct peer_mem *dma, const void *addr,
    struct peer_mem_host *host)
{
	const struct peer_mem_mapping *p;
	struct peer_mem_mapping m;
	uint32_t i, n, seq;
	uint64_t at;

	seq = atomic_load_acq_32(&dma->seq);
	if (seq % 2 != 0)
		return (false);
	n = atomic_load_32(&dma->nmappings);
	for (i = 0; i < n; i++) {
		p = &dma->mapping[i];
		m.base = atomic_load_ptr(&p->base);
		m.size = atomic_load_64(&p->size);
		m.page = atomic_load_64(&p->page);
		at = (uintptr_t)addr - (uintptr_t)m.base;
		if (at >= m.size)
			continue;
		atomic_thread_fence_acq();
		if (atomic_load_32(&dma->seq) != seq)
			return (false);
		/*
		 * From here on the table does not change: this thread was
		 * accessing the mapping.  Ranges are many, so look once.
		 */
		host->gpa = atomic_load_32(&dma->gone) != 0 ? 0 :
		    host_gpa(dma, addr);
		host->page_size = m.page;
		host->page = m.base + at - (uintptr_t)addr % m.page;
		host->map = m.base;
		host->map_size = m.size;
		return (true);
	}
	return (false);
}

void
peer_mem_each(const struct peer_mem *dma,
    void (*fn)(const void *arg, uint8_t *map, size_t size), const void *arg)
{
	const struct peer_mem_mapping *m;
	uint32_t i;

	for (i = 0; i < atomic_load_32(&dma->nmappings); i++) {
		m = &dma->mapping[i];
		if (m->size != 0)
			fn(arg, m->base, m->size);
	}
}
