/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guest memory as a client has shared it: ranges of guest-physical addresses,
 * each a mapping of a file, or nothing where the client gave no file.
 *
 * A client is not trusted.  What is mapped here must stay readable whatever
 * it does, so only memory that cannot be taken away is accepted: a memfd with
 * F_SEAL_SHRINK, as QEMU's memory-backend-memfd makes it.  Truncating any
 * other file would turn our next access into SIGBUS.
 *
 * Belongs to one thread, but for vfu_dma_addr(), which any may call.  Whoever
 * changes the table sees to it that nobody does then, nor goes on using what it
 * returned: e82545_pause().
 */

#ifndef _VFU_DMA_H_
#define	_VFU_DMA_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Ranges a client may have at a time.  QEMU needs one for each piece of RAM
 * and ROM: about 20 for a PC.
 */
#define	VFU_DMA_MAX	256
/* Bytes a client may have mapped: many clients fit in our address space. */
#define	VFU_DMA_BYTES	(1ULL << 40)
/* The only page size we offer. */
#define	VFU_DMA_PAGE	4096

struct vfu_dma_range {
	uint64_t	gpa;
	uint64_t	size;
	uint8_t		*base;		/* NULL: not reachable */
};

struct vfu_dma {
	unsigned int	n;
	unsigned int	last;		/* where the last lookup hit; relaxed
					   atomic */
	uint64_t	mapped;		/* bytes of address space in use */
	struct vfu_dma_range range[VFU_DMA_MAX]; /* sorted by gpa */
};

/*
 * Add the range [gpa, gpa + size).  `fd' is the memory behind it from file
 * offset `offset' on, or -1 for a range that cannot be reached, as is one
 * that is not `writable'.  The caller keeps fd and may close it.
 * Returns 0 or an errno: EINVAL for a bad range or one outside the file,
 * EEXIST for an overlap, ENOSPC past the limits, EPERM for a file that is
 * not memory of the right kind, or what mmap(2) says; then *why says more.
 */
int	vfu_dma_map(struct vfu_dma *dma, int fd, uint64_t offset, uint64_t gpa,
	    uint64_t size, bool writable, const char **why);

/*
 * Remove the range [gpa, gpa + size), which must be one as it was added.
 * Returns 0 or ENOENT.
 */
int	vfu_dma_unmap(struct vfu_dma *dma, uint64_t gpa, uint64_t size);

/* Remove all ranges. */
void	vfu_dma_clear(struct vfu_dma *dma);

/*
 * Host address of [gpa, gpa + len), len > 0; NULL unless all of it lies in
 * one range that can be reached.
 */
void	*vfu_dma_addr(struct vfu_dma *dma, uint64_t gpa, size_t len);

#endif /* !_VFU_DMA_H_ */
