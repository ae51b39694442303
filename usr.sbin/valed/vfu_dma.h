/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guest memory that the client shares: ranges of guest-physical addresses, each
 * a mapping of a file.  A range without a file cannot be accessed.
 *
 * The client is not trusted.  Only a memfd with F_SEAL_SHRINK is accepted, as
 * QEMU's memory-backend-memfd creates it, in normal or huge pages.  The client
 * cannot truncate it, but it can punch holes into it.  The next access then
 * needs a new page, and raises SIGBUS if there is none: vfu_fault.h.
 *
 * Any thread may call vfu_dma_addr() and vfu_dma_gone(), and only the adapter's
 * thread the other functions.  Those that change the table pause the model
 * while they do, so that no thread uses an address that vfu_dma_addr()
 * returned.
 *
 * A handler of SIGBUS cannot wait for that.  vfu_dma_host() may run at any time
 * in any thread, so the table has a sequence number, which is odd during a
 * change.  A thread that accesses a range keeps the model from being paused;
 * so the range in which its fault lies is in a table that does not change, and
 * a table that does change is not the one to look for.
 */

#ifndef _VFU_DMA_H_
#define	_VFU_DMA_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Ranges that a client may have at a time.  QEMU needs one for each region of
 * RAM and ROM: about 20 for a PC.
 */
#define	VFU_DMA_MAX	256
/*
 * Bytes that a client may map, whatever its limit is, so that many fit into the
 * address space.
 */
#define	VFU_DMA_BYTES	(1ULL << 40)
/* The unit of ranges, and the size of normal pages. */
#define	VFU_DMA_PAGE	4096

/* The functions that change the table write the fields as relaxed atomics. */
struct vfu_dma_range {
	uint64_t	gpa;
	uint64_t	size;
	uint8_t		*base;		/* NULL: no access */
	uint64_t	page;		/* page size of the file, if any */
};

struct vfu_dma {
	uint32_t	n;		/* ranges */
	uint32_t	visible;	/* n, or 0 if memory is gone; relaxed
					   atomic */
	uint32_t	last;		/* index of the last hit; relaxed
					   atomic */
	uint32_t	seq;		/* odd during a change; atomic */
	uint32_t	gone;		/* 1 after vfu_dma_lose(); atomic */
	uint64_t	gone_gpa;	/* relaxed atomic */
	uint64_t	mapped;		/* bytes */
	uint64_t	limit;		/* of mapped */
	void		(*pause)(void *arg, bool paused);
	void		*arg;
	struct vfu_dma_range range[VFU_DMA_MAX]; /* sorted by gpa */
};

/* Where an address of this process lies in guest memory. */
struct vfu_dma_host {
	uint64_t	gpa;
	uint8_t		*page;		/* the start of its page, */
	size_t		page_size;	/* normal or huge */
	uint8_t		*map;		/* the whole mapping */
	size_t		map_size;
};

/*
 * Initialize an empty table.  The client may map `limit' bytes; 0 stands for
 * VFU_DMA_BYTES, which is also the maximum.  pause(arg, true) must return only
 * when no thread uses an address that vfu_dma_addr() returned, and keep threads
 * from calling it until pause(arg, false).
 */
void	vfu_dma_init(struct vfu_dma *dma, uint64_t limit,
	    void (*pause)(void *arg, bool paused), void *arg);

/*
 * Add the range [gpa, gpa + size), which is memory of `fd' at `offset'.  If
 * `fd' is -1 or the range is not `writable', it cannot be accessed.  The caller
 * keeps `fd' and may close it.  Returns 0, or an errno and a reason in *why:
 * EINVAL for an invalid range or one outside the file, EEXIST for an overlap,
 * ENOSPC beyond the limits, EPERM for a file that is not memory of the required
 * kind, or an error of mmap(2).
 */
int	vfu_dma_map(struct vfu_dma *dma, int fd, uint64_t offset, uint64_t gpa,
	    uint64_t size, bool writable, const char **why);

/*
 * Remove a range that was added with the same `gpa' and `size'.  Returns 0 or
 * ENOENT.
 */
int	vfu_dma_unmap(struct vfu_dma *dma, uint64_t gpa, uint64_t size);

/* Remove all ranges. */
void	vfu_dma_clear(struct vfu_dma *dma);

/* As vfu_dma_clear(), and forget vfu_dma_lose(): for the next client. */
void	vfu_dma_reset(struct vfu_dma *dma);

/*
 * The host address of [gpa, gpa + len), with len > 0, or NULL if it is not
 * inside one range with access.
 */
void	*vfu_dma_addr(struct vfu_dma *dma, uint64_t gpa, size_t len);

/*
 * If addr is inside a mapping of the table, fill in *host and return true.
 * Finds only mappings that no thread can be removing: those that the calling
 * thread was accessing.  Any thread, in a signal handler.
 */
bool	vfu_dma_host(const struct vfu_dma *dma, const void *addr,
	    struct vfu_dma_host *host);

/*
 * Call fn(arg, map, size) for each mapping of the table.  Only while the
 * calling thread accesses one of them, so that none is removed.  Any thread, in
 * a signal handler.
 */
void	vfu_dma_each(const struct vfu_dma *dma,
	    void (*fn)(const void *arg, uint8_t *map, size_t size),
	    const void *arg);

/*
 * Guest memory is gone at gpa: vfu_dma_addr() returns NULL from now on, until
 * vfu_dma_reset().  Any thread, in a signal handler.
 */
void	vfu_dma_lose(struct vfu_dma *dma, uint64_t gpa);

/* Whether vfu_dma_lose() has been called, and the first or a later gpa. */
bool	vfu_dma_gone(const struct vfu_dma *dma, uint64_t *gpa);

#endif /* !_VFU_DMA_H_ */
