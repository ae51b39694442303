/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The ranges of a table of guest memory (peer_mem.h), in memory that outlives
 * the process.
 *
 * Changes are appended to one half, and counted by one store of `commit'.  When
 * most of the records have no effect any more, or the half is full, the ranges
 * are written to the other half, and one store makes that the one in use.  So a
 * process that ends at any time leaves the table as before or after a change.
 *
 * The layout is that of version 1.
 */

#ifndef _PEER_MEM_JOURNAL_H_
#define	_PEER_MEM_JOURNAL_H_

#include <stdint.h>

#include "peer_mem.h"

#define	PEER_MEM_JOURNAL_MAGIC	0x314c4e4a454d5000ULL
/* The version of struct peer_mem_journal. */
#define	PEER_MEM_JOURNAL_VERSION 1
/* Records beyond twice the ranges before the other half is written. */
#define	PEER_MEM_JOURNAL_SLACK	1024
/* Records in a half. */
#define	PEER_MEM_RECORDS	(2 * PEER_MEM_MAX + PEER_MEM_JOURNAL_SLACK)

enum peer_mem_record_kind {
	PEER_MEM_RECORD_MAP	= 1,
	PEER_MEM_RECORD_UNMAP	= 2	/* the ranges in [gpa, gpa + size) */
};

struct peer_mem_record {
	uint64_t	gpa;
	uint64_t	size;
	uint64_t	offset;		/* in the file */
	uint64_t	tag;		/* peer_mem_set_tag() */
	uint16_t	kind;		/* enum peer_mem_record_kind */
	uint16_t	prot;		/* PROT_READ, PROT_WRITE */
	uint32_t	file;		/* N + 1 of "mem.N"; 0: none */
};
_Static_assert(sizeof(struct peer_mem_record) == 40, "version 1");

struct peer_mem_half {
	uint64_t	tag;		/* of the last change before `base' */
	uint64_t	base;		/* records that are no changes */
	struct peer_mem_record record[PEER_MEM_RECORDS];
};

/*
 * More than 10 MB, of which only what is used gets pages: 41 KB with few
 * ranges, if the memory began as a file's hole.
 */
struct peer_mem_journal {
	uint64_t	magic;
	uint64_t	records;	/* PEER_MEM_RECORDS */
	uint64_t	commit;		/* records * 2 + half; atomic */
	struct peer_mem_half half[2];
};
_Static_assert(PEER_MEM_RECORDS == 132094 &&
    sizeof(struct peer_mem_journal) == 24 + 2 * (16 + 40 * PEER_MEM_RECORDS),
    "version 1");

#endif /* !_PEER_MEM_JOURNAL_H_ */
