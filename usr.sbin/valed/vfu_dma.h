/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guest memory that the client shares: ranges of guest-physical addresses, each
 * a mapping of a file.  A range without a file cannot be accessed.
 *
 * The client is not trusted.  A mapping must stay accessible whatever the
 * client does, so only a memfd with F_SEAL_SHRINK is accepted, as QEMU's
 * memory-backend-memfd creates it.  If the client truncated another file, the
 * next access would raise SIGBUS.
 *
 * Any thread may call vfu_dma_addr(), and only the adapter's thread the other
 * functions.  It must pause the model (e82545_pause()) before it changes the
 * table, so that no thread uses an address that vfu_dma_addr() returned.
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
/* Bytes that a client may map, so that many fit into the address space. */
#define	VFU_DMA_BYTES	(1ULL << 40)
/* The only supported page size. */
#define	VFU_DMA_PAGE	4096

struct vfu_dma_range {
	uint64_t	gpa;
	uint64_t	size;
	uint8_t		*base;		/* NULL: no access */
};

struct vfu_dma {
	unsigned int	n;
	uint32_t	last;		/* index of the last hit; relaxed
					   atomic */
	uint64_t	mapped;		/* bytes */
	struct vfu_dma_range range[VFU_DMA_MAX]; /* sorted by gpa */
};

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

/*
 * The host address of [gpa, gpa + len), with len > 0, or NULL if it is not
 * inside one range with access.
 */
void	*vfu_dma_addr(struct vfu_dma *dma, uint64_t gpa, size_t len);

#endif /* !_VFU_DMA_H_ */
