/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the files of peer_mem.h share.  peer_mem_range.c has the table of
 * ranges, peer_mem_file.c the mappings, peer_mem_journal.c the record of both
 * that outlives the process, and peer_mem.c what uses them.  Only between
 * dma_change_begin() and dma_change_end() of peer_mem.c may anything change.
 */

#ifndef _PEER_MEM_IMPL_H_
#define	_PEER_MEM_IMPL_H_

#include "peer_keep.h"
#include "peer_mem.h"

/* A place in the table, for a range that is or may be there. */
struct peer_mem_pos {
	uint32_t	leaf;		/* nleaves: the end */
	uint32_t	slot;
};

/* Return whether a range ends before gpa. */
static inline bool
peer_mem_range_before(const struct peer_mem_range *r, uint64_t gpa)
{
	return (r->gpa < gpa && gpa - r->gpa >= r->size);
}

/* Return the place of the first range that does not end before gpa. */
struct peer_mem_pos peer_mem_range_find(const struct peer_mem *dma,
	    uint64_t gpa);

/* Return the range at a place, or NULL at the end. */
static inline struct peer_mem_range *
peer_mem_range_at(const struct peer_mem *dma, struct peer_mem_pos pos)
{
	return (pos.leaf == dma->nleaves ? NULL :
	    &dma->leaf[pos.leaf]->range[pos.slot]);
}

/* Return the place of the next range. */
static inline struct peer_mem_pos
peer_mem_range_next(const struct peer_mem *dma, struct peer_mem_pos pos)
{
	if (++pos.slot == dma->leaf[pos.leaf]->n)
		pos = (struct peer_mem_pos){ .leaf = pos.leaf + 1 };
	return (pos);
}

/*
 * Insert a range at its place, which peer_mem_range_find() returned.  Returns 0
 * or ENOMEM.
 */
int	peer_mem_range_insert(struct peer_mem *dma, struct peer_mem_pos pos,
	    const struct peer_mem_range *new);

/* Remove the range at a place. */
void	peer_mem_range_remove(struct peer_mem *dma, struct peer_mem_pos pos);

/* Remove all. */
void	peer_mem_range_clear(struct peer_mem *dma);

/*
 * Find or make a mapping for the range *r of the file, and set r->base and
 * r->mapping.  r->prot must be set.  Returns as peer_mem_map().
 */
int	peer_mem_file_get(struct peer_mem *dma, struct peer_mem_range *r,
	    int fd, uint64_t offset, const char **why);

/* Note that a range is removed from its mapping, which stays. */
void	peer_mem_file_put(struct peer_mem *dma, const struct peer_mem_range *r);

/*
 * Map [gpa, gpa + size), which is inside adjacent ranges that permit reading
 * and writing, in that order.  Returns false if that is not possible.
 */
bool	peer_mem_file_join(struct peer_mem *dma, uint64_t gpa, uint64_t size);

/* Return the host address of [gpa, gpa + len) in a joined ring, or NULL. */
uint8_t	*peer_mem_file_joined(const struct peer_mem *dma, uint64_t gpa,
	    size_t len);

/* Unmap the joined rings of which [gpa, gpa + size) is a part. */
void	peer_mem_file_part(struct peer_mem *dma, uint64_t gpa, uint64_t size);

/* Write the name of a file in a store: "mem.N". */
void	peer_mem_file_name(char name[PEER_KEEP_NAME], uint32_t file);

/*
 * Unmap the files in which there is no range: all, or those that had none the
 * last time, either.  The journal must not have any of them.  Returns whether
 * there was one.
 */
bool	peer_mem_file_drop(struct peer_mem *dma, bool all);

/*
 * Record a change, with its tag: a range was added, the ranges in [gpa, gpa +
 * size) were removed, or all.
 */
void	peer_mem_journal_map(struct peer_mem *dma,
	    const struct peer_mem_range *r, uint64_t offset);
void	peer_mem_journal_unmap(struct peer_mem *dma, uint64_t gpa,
	    uint64_t size);
void	peer_mem_journal_clear(struct peer_mem *dma);

#endif /* !_PEER_MEM_IMPL_H_ */
