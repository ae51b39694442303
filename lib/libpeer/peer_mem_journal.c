/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Ranges that outlive the process; see peer_mem_journal.h. */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/systm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peer_mem_impl.h"
#include "peer_mem_journal.h"

/* What range.mapping is while a journal is read, of one without a file. */
#define	NO_FILE		UINT16_MAX
/* What mapping.file may be, at most. */
#define	FILES_MAX	(4 * PEER_MEM_MAPPINGS)

/*
 * Writing.
 */

static void
journal_record(struct peer_mem_record *rec, const struct peer_mem *dma,
    const struct peer_mem_range *r)
{
	const struct peer_mem_mapping *m;

	*rec = (struct peer_mem_record){ .gpa = r->gpa, .size = r->size,
	    .kind = PEER_MEM_RECORD_MAP, .prot = r->prot };
	if (r->base == NULL)
		return;
	m = &dma->mapping[r->mapping];
	rec->offset = m->offset + (uint64_t)(r->base - m->base);
	rec->file = m->file;
}

/* Write the table to the half that is not in use, and use that. */
static void
journal_rewrite(struct peer_mem *dma)
{
	struct peer_mem_journal *j = dma->journal;
	const unsigned int other = (j->commit & 1) ^ 1;
	struct peer_mem_half *h = &j->half[other];
	const struct peer_mem_leaf *l;
	uint64_t n = 0;
	uint32_t i, k;

	for (i = 0; i < dma->nleaves; i++) {
		l = dma->leaf[i];
		for (k = 0; k < l->n; k++)
			journal_record(&h->record[n++], dma, &l->range[k]);
	}
	h->tag = dma->tagged;
	h->base = n;
	atomic_store_rel_64(&j->commit, n * 2 + other);
}

void
peer_mem_set_journal(struct peer_mem *dma, struct peer_mem_journal *journal)
{
	dma->journal = journal;
	if (journal == NULL)
		return;
	journal->records = PEER_MEM_RECORDS;
	journal_rewrite(dma);
	atomic_store_rel_64(&journal->magic, PEER_MEM_JOURNAL_MAGIC);
}

/* Append a record. */
static void
journal_append(struct peer_mem *dma, const struct peer_mem_record *rec)
{
	struct peer_mem_journal *j = dma->journal;
	uint64_t n = j->commit / 2;

	j->half[j->commit & 1].record[n] = *rec;
	atomic_store_rel_64(&j->commit, j->commit + 2);
	if (++n >= 2 * (uint64_t)dma->n + PEER_MEM_JOURNAL_SLACK)
		journal_rewrite(dma);
}

void
peer_mem_set_tag(struct peer_mem *dma, uint64_t tag)
{
	dma->tag = tag;
}

uint64_t
peer_mem_tagged(const struct peer_mem *dma)
{
	return (dma->tagged);
}

void
peer_mem_journal_map(struct peer_mem *dma, const struct peer_mem_range *r,
    uint64_t offset)
{
	struct peer_mem_record rec;

	dma->tagged = dma->tag;
	if (dma->journal == NULL)
		return;
	journal_record(&rec, dma, r);
	MPASS(r->base == NULL || rec.offset == offset);
	(void)offset;
	rec.tag = dma->tag;
	journal_append(dma, &rec);
}

void
peer_mem_journal_unmap(struct peer_mem *dma, uint64_t gpa, uint64_t size)
{
	const struct peer_mem_record rec = { .gpa = gpa, .size = size,
	    .tag = dma->tag, .kind = PEER_MEM_RECORD_UNMAP };

	dma->tagged = dma->tag;
	if (dma->journal != NULL)
		journal_append(dma, &rec);
}

void
peer_mem_journal_clear(struct peer_mem *dma)
{
	dma->tagged = dma->tag;
	if (dma->journal != NULL)
		journal_rewrite(dma);
}

/*
 * Reading.  The table is made without files first, in a struct of its own whose
 * ranges have the offset as their address, and the file as their mapping: of a
 * file that has gone, only the number is left.
 */

static int
replay_map(struct peer_mem *tab, const struct peer_mem_record *rec)
{
	const struct peer_mem_range new = { .gpa = rec->gpa, .size = rec->size,
	    .base = (uint8_t *)(uintptr_t)rec->offset, .prot = rec->prot,
	    .mapping = rec->file == 0 ? NO_FILE : (uint16_t)rec->file };
	const struct peer_mem_range *r;
	struct peer_mem_pos pos;

	if (rec->size == 0 || rec->gpa + (rec->size - 1) < rec->gpa ||
	    (rec->gpa | rec->size | rec->offset) % PEER_MEM_PAGE != 0 ||
	    rec->prot == 0 || (rec->prot & ~(PROT_READ | PROT_WRITE)) != 0 ||
	    rec->file > FILES_MAX || tab->n == PEER_MEM_MAX)
		return (EINVAL);
	pos = peer_mem_range_find(tab, rec->gpa);
	r = peer_mem_range_at(tab, pos);
	if (r != NULL && r->gpa <= rec->gpa + (rec->size - 1))
		return (EINVAL);
	tab->file_next = MAX(tab->file_next, rec->file);
	return (peer_mem_range_insert(tab, pos, &new));
}

static int
replay_unmap(struct peer_mem *tab, const struct peer_mem_record *rec)
{
	const uint64_t last = rec->gpa + (rec->size - 1);
	const struct peer_mem_range *r;
	struct peer_mem_pos pos;
	bool any = false;

	if (rec->size == 0 || last < rec->gpa)
		return (EINVAL);
	for (;;) {
		pos = peer_mem_range_find(tab, rec->gpa);
		r = peer_mem_range_at(tab, pos);
		if (r == NULL || r->gpa > last)
			return (any ? 0 : EINVAL);
		if (r->gpa < rec->gpa || r->gpa + (r->size - 1) > last)
			return (EINVAL);
		peer_mem_range_remove(tab, pos);
		any = true;
	}
}

/* Make the table of a journal. */
static int
replay_read(struct peer_mem *tab, const struct peer_mem_journal *journal)
{
	const uint64_t commit = atomic_load_acq_64(&journal->commit);
	const struct peer_mem_half *h = &journal->half[commit & 1];
	const uint64_t base = h->base;
	struct peer_mem_record rec;
	uint64_t i;
	int error;

	if (journal->magic != PEER_MEM_JOURNAL_MAGIC ||
	    journal->records != PEER_MEM_RECORDS ||
	    commit / 2 > PEER_MEM_RECORDS || base > commit / 2)
		return (EINVAL);
	tab->tagged = h->tag;
	for (i = 0; i < commit / 2; i++) {
		/* Another process may write to it. */
		memcpy(&rec, &h->record[i], sizeof(rec));
		if (rec.kind == PEER_MEM_RECORD_MAP)
			error = replay_map(tab, &rec);
		else if (rec.kind == PEER_MEM_RECORD_UNMAP && i >= base)
			error = replay_unmap(tab, &rec);
		else
			error = EINVAL;
		if (error != 0)
			return (error);
		if (i >= base)
			tab->tagged = rec.tag;
	}
	return (0);
}

/* Map one range of the table. */
static int
replay_range(struct peer_mem *dma, const struct peer_mem_range *r,
    struct peer_kept *kept, size_t nkept, const char **why)
{
	char name[PEER_KEEP_NAME];
	struct peer_kept *k;
	int error;

	if (r->mapping == NO_FILE)
		return (peer_mem_map(dma, -1, (uintptr_t)r->base, r->gpa,
		    r->size, r->prot, why));
	peer_mem_file_name(name, r->mapping);
	k = peer_kept_find(kept, nkept, name);
	if (k == NULL) {
		*why = "a file of the journal is not there";
		return (ENOENT);
	}
	dma->file_hint = r->mapping;
	error = peer_mem_map(dma, k->pkt_fd, (uintptr_t)r->base, r->gpa,
	    r->size, r->prot, why);
	dma->file_hint = 0;
	return (error);
}

/* Mark the files as used that mappings have. */
static void
replay_used(const struct peer_mem *dma, struct peer_kept *kept, size_t nkept)
{
	const struct peer_mem_mapping *m;
	char name[PEER_KEEP_NAME];
	struct peer_kept *k;

	for (m = dma->mapping; m < dma->mapping + dma->nmappings; m++) {
		if (m->size == 0 || m->file == 0)
			continue;
		peer_mem_file_name(name, m->file);
		k = peer_kept_find(kept, nkept, name);
		if (k != NULL)
			k->pkt_used = true;
	}
}

static int
replay_table(struct peer_mem *dma, struct peer_mem *tab,
    struct peer_kept *kept, size_t nkept, const char **why)
{
	const struct peer_mem_leaf *l;
	uint32_t i, k;
	int error;

	/* New numbers, which few need, are none of the journal's. */
	dma->file_next = tab->file_next;
	for (i = 0; i < tab->nleaves; i++) {
		l = tab->leaf[i];
		for (k = 0; k < l->n; k++) {
			error = replay_range(dma, &l->range[k], kept, nkept,
			    why);
			if (error != 0)
				return (error);
		}
	}
	return (0);
}

int
peer_mem_replay(struct peer_mem *dma, const struct peer_mem_journal *journal,
    struct peer_kept *kept, size_t nkept, const char **why)
{
	struct peer_mem_journal *const own = dma->journal;
	const struct peer_keep *const keep = dma->keep;
	struct peer_mem *tab;
	int error;

	MPASS(dma->n == 0);
	*why = "no memory for the table of ranges";
	tab = calloc(1, sizeof(*tab));
	if (tab == NULL)
		return (ENOMEM);
	dma->journal = NULL;
	error = replay_read(tab, journal);
	if (error == EINVAL)
		*why = "the journal is not consistent";
	if (error == 0) {
		error = replay_table(dma, tab, kept, nkept, why);
		if (error != 0) {
			/* The store has its files as before. */
			dma->keep = NULL;
			peer_mem_clear(dma);
			dma->keep = keep;
		} else
			replay_used(dma, kept, nkept);
		dma->file_next = 0;
		dma->tagged = error == 0 ? tab->tagged : 0;
	}
	dma->journal = own;
	if (own != NULL)
		journal_rewrite(dma);
	peer_mem_range_clear(tab);
	free(tab);
	return (error);
}
