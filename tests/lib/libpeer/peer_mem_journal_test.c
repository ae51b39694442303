/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Ranges of guest memory that another process has from a journal. */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "open_fds.h"
#include "peer_keep.h"
#include "peer_mem.h"
#include "peer_mem_journal.h"
#include "test.h"

#define	PAGE		PEER_MEM_PAGE
#define	RW		(PROT_READ | PROT_WRITE)
#define	NAMES		300

static struct peer_kept kept[NAMES];
static char	names[NAMES][PEER_KEEP_NAME];
static unsigned int nkept, nputs;
static struct peer_mem_journal *journal;
static const char *why;

static void
on_put(void *arg __unused, const char *name, int fd)
{
	struct peer_kept *k = peer_kept_find(kept, NAMES, name);
	unsigned int i;

	nputs++;
	if (k != NULL)
		close(k->pkt_fd);
	for (i = 0; k == NULL && i < NAMES; i++)
		if (kept[i].pkt_fd == -1) {
			k = &kept[i];
			nkept++;
		}
	ATF_REQUIRE(k != NULL);
	k->pkt_name = strcpy(names[k - kept], name);
	k->pkt_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	ATF_REQUIRE(k->pkt_fd != -1);
}

static void
on_pause(void *arg __unused, bool paused __unused)
{
}

/* A process that ended now would not need the file. */
static void
check_unused(const char *name)
{
	struct peer_mem *dma = malloc(sizeof(*dma));
	struct peer_kept copy[NAMES];
	unsigned int i;

	memcpy(copy, kept, sizeof(copy));
	for (i = 0; i < NAMES; i++)
		copy[i].pkt_used = false;
	ATF_REQUIRE(dma != NULL);
	peer_mem_init(dma, 0, on_pause, NULL);
	ATF_REQUIRE_EQ(0, peer_mem_replay(dma, journal, copy, NAMES, &why));
	ATF_CHECK(!peer_kept_find(copy, NAMES, name)->pkt_used);
	peer_mem_reset(dma);
	free(dma);
}

static void
on_remove(void *arg __unused, const char *name)
{
	struct peer_kept *k = peer_kept_find(kept, NAMES, name);

	ATF_REQUIRE_MSG(k != NULL, "%s", name);
	check_unused(name);
	close(k->pkt_fd);
	k->pkt_fd = -1;
	names[k - kept][0] = '\0';
	nkept--;
}

static const struct peer_keep keep = {
	.pke_put = on_put,
	.pke_remove = on_remove,
};

static int
file(uint64_t pages, char letter)
{
	int fd;

	fd = memfd_create("guest", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, ftruncate(fd, pages * PAGE));
	ATF_REQUIRE_EQ(1, pwrite(fd, &letter, 1, 0));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return (fd);
}

static struct peer_mem *
table(uint64_t limit)
{
	struct peer_mem *dma = malloc(sizeof(*dma));

	ATF_REQUIRE(dma != NULL);
	peer_mem_init(dma, limit, on_pause, NULL);
	peer_mem_set_keep(dma, &keep);
	return (dma);
}

static struct peer_mem *
begin(void)
{
	struct peer_mem *dma = table(0);
	unsigned int i;

	for (i = 0; i < NAMES; i++)
		kept[i] = (struct peer_kept){ names[i], -1, false };
	nkept = nputs = 0;
	journal = calloc(1, sizeof(*journal));
	ATF_REQUIRE(journal != NULL);
	peer_mem_set_journal(dma, journal);
	return (dma);
}

/* Both have the same ranges, in the same pages of the same files. */
static void
check_same(const struct peer_mem *a, const struct peer_mem *b)
{
	const struct peer_mem_range *r, *s;
	const struct peer_mem_mapping *m, *n;
	uint32_t i, j;

	ATF_REQUIRE_EQ(a->n, b->n);
	ATF_REQUIRE_EQ(a->nfiles, b->nfiles);
	ATF_REQUIRE_EQ(peer_mem_tagged(a), peer_mem_tagged(b));
	for (i = 0; i < a->nleaves; i++) {
		for (j = 0; j < a->leaf[i]->n; j++) {
			r = &a->leaf[i]->range[j];
			/* As they were inserted in order, leaves differ. */
			s = peer_mem_addr((struct peer_mem *)(uintptr_t)b,
			    r->gpa, 1, r->prot) == NULL ? NULL : b->last;
			if (r->base == NULL) {
				ATF_REQUIRE(s == NULL);
				continue;
			}
			ATF_REQUIRE(s != NULL);
			ATF_REQUIRE_EQ(r->size, s->size);
			ATF_REQUIRE_EQ(r->prot, s->prot);
			m = &a->mapping[r->mapping];
			n = &b->mapping[s->mapping];
			ATF_REQUIRE_EQ(m->ino, n->ino);
			ATF_REQUIRE_EQ(m->offset + (r->base - m->base),
			    n->offset + (s->base - n->base));
		}
	}
}

/* Another process goes on; the old one's table is discarded. */
static struct peer_mem *
go_on(struct peer_mem *old)
{
	struct peer_mem *new = table(0);
	const unsigned int puts = nputs, before = nkept;
	unsigned int i, idle = 0;

	for (i = 0; i < old->nmappings; i++)
		idle += old->mapping[i].size != 0 &&
		    old->mapping[i].nranges == 0;
	for (i = 0; i < NAMES; i++)
		kept[i].pkt_used = false;
	ATF_REQUIRE_EQ_MSG(0, peer_mem_replay(new, journal, kept, NAMES, &why),
	    "%s", why);
	check_same(old, new);
	peer_mem_set_journal(new, journal);
	/* Files with ranges have their names; files without have none. */
	ATF_CHECK_EQ(puts, nputs);
	for (i = 0; i < NAMES; i++)
		if (kept[i].pkt_fd != -1 && !kept[i].pkt_used)
			on_remove(NULL, names[i]);
	ATF_CHECK_EQ(before - idle, nkept);
	peer_mem_set_journal(old, NULL);
	peer_mem_set_keep(old, NULL);
	peer_mem_reset(old);
	free(old);
	return (new);
}

static void
end(struct peer_mem *dma)
{
	peer_mem_reset(dma);
	ATF_CHECK_EQ(0, nkept);
	free(dma);
	free(journal);
}

TEST(random, "Ranges come and go, and other processes go on with them")
{
	struct peer_mem *dma = begin();
	uint32_t seed = 1;
	uint64_t gpa;
	int files[4], i, n;

	for (i = 0; i < 4; i++)
		files[i] = file(64, 'a' + i);
	for (i = 0; i < 20000; i++) {
		peer_mem_set_tag(dma, i + 1);
		gpa = test_below(&seed, 64) * 8 * PAGE;
		n = test_below(&seed, 5);
		if (test_chance(&seed, 1, 2))
			(void)peer_mem_map(dma, n == 4 ? -1 : files[n],
			    n == 4 ? 0 : test_below(&seed, 32) * PAGE, gpa,
			    (1 + test_below(&seed, 8)) * PAGE,
			    1 + test_below(&seed, 3), &why);
		else if (test_chance(&seed, 1, 200))
			peer_mem_clear(dma);
		else
			(void)peer_mem_unmap(dma, gpa,
			    (1 + test_below(&seed, 64)) * PAGE);
		if (test_chance(&seed, 1, 50))
			dma = go_on(dma);
	}
	ATF_CHECK(journal->commit / 2 < 2 * 64 + PEER_MEM_JOURNAL_SLACK);
	for (i = 0; i < 4; i++)
		close(files[i]);
	end(dma);
}

TEST_WITH(most, "timeout", "600", "As many ranges as there may be, of one page "
    "each, that come and go")
{
	struct peer_mem *dma = begin();
	uint64_t gpa;
	uint32_t i;
	int fd;

	fd = file(PEER_MEM_MAX, 'a');
	for (i = 0; i < PEER_MEM_MAX; i++)
		ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd, (uint64_t)i * PAGE,
		    2ULL * PAGE * (PEER_MEM_MAX - i), PAGE, RW, &why));
	ATF_CHECK_EQ(1, nkept);
	dma = go_on(dma);
	for (i = 0; i < 2 * PEER_MEM_MAX; i++) {
		gpa = 2ULL * PAGE * (1 + i * 7919ULL % PEER_MEM_MAX);
		ATF_REQUIRE_EQ(0, peer_mem_unmap(dma, gpa, PAGE));
		ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd, 0, gpa, PAGE, RW,
		    &why));
	}
	ATF_CHECK_EQ(PEER_MEM_MAX, dma->n);
	dma = go_on(dma);
	close(fd);
	end(dma);
}

TEST(files, "A file is kept while it is mapped, by a name that no other has")
{
	struct peer_mem *dma = begin();
	int fd[PEER_MEM_MAPPINGS], round;
	unsigned int i;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < PEER_MEM_MAPPINGS; i++) {
			fd[i] = file(2, i);
			ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd[i], 0,
			    2ULL * i * PAGE, PAGE, RW, &why));
			ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd[i], PAGE,
			    (2ULL * i + 1) * PAGE, PAGE, RW, &why));
			close(fd[i]);
			ATF_CHECK_EQ(i + 1, nkept);
		}
		/* Every second one goes, in part. */
		for (i = 0; i < PEER_MEM_MAPPINGS; i += 2) {
			ATF_REQUIRE_EQ(0, peer_mem_unmap(dma, 2ULL * i * PAGE,
			    PAGE));
			ATF_CHECK_EQ(i * PAGE, dma->idle);
			ATF_REQUIRE_EQ(0, peer_mem_unmap(dma,
			    (2ULL * i + 1) * PAGE, PAGE));
		}
		ATF_CHECK_EQ(PEER_MEM_MAPPINGS, nkept);
		for (i = 0; round == 1 && i < 2; i++) {
			ATF_REQUIRE(peer_mem_idle(dma));
			peer_mem_drop(dma);
			ATF_CHECK_EQ(PEER_MEM_MAPPINGS >> i, nkept);
		}
		dma = go_on(dma);
		for (i = 1; i < PEER_MEM_MAPPINGS; i += 2)
			ATF_CHECK_EQ(i, *(uint8_t *)peer_mem_addr(dma,
			    2ULL * i * PAGE, PAGE, RW));
		peer_mem_clear(dma);
		ATF_CHECK_EQ(0, nkept);
		dma = go_on(dma);
	}
	end(dma);
}

TEST(parts, "A file that a smaller limit has mapped in parts gets numbers that "
    "none of the journal's has")
{
	struct peer_mem *dma = begin(), *new = table(3 * PAGE);
	const int a = file(16, 'a'), b = file(1, 'b');

	ATF_REQUIRE_EQ(0, peer_mem_map(dma, a, 0, 0, PAGE, RW, &why));
	ATF_REQUIRE_EQ(0, peer_mem_map(dma, b, 0, 100 * PAGE, PAGE, RW, &why));
	ATF_REQUIRE_EQ(0, peer_mem_map(dma, a, 8 * PAGE, 8 * PAGE, PAGE, RW,
	    &why));
	ATF_CHECK_EQ(2, nkept);
	ATF_REQUIRE_EQ_MSG(0, peer_mem_replay(new, journal, kept, NAMES, &why),
	    "%s", why);
	ATF_CHECK_EQ('b', *(uint8_t *)peer_mem_addr(new, 100 * PAGE, PAGE, RW));
	ATF_CHECK_EQ(3, nkept);
	peer_mem_set_journal(new, journal);
	peer_mem_set_journal(dma, NULL);
	peer_mem_set_keep(dma, NULL);
	peer_mem_reset(dma);
	free(dma);
	close(a);
	close(b);
	end(new);
}

/* The journal is an error, and nothing is left of it. */
static void
check_refused(int error)
{
	struct peer_mem *dma = table(0);
	const unsigned int before = open_fds(), names_before = nkept;

	ATF_CHECK_EQ(error, peer_mem_replay(dma, journal, kept, NAMES, &why));
	ATF_CHECK_EQ(0, dma->n);
	ATF_CHECK_EQ(0, dma->mapped);
	ATF_CHECK_EQ(0, peer_mem_tagged(dma));
	ATF_CHECK_EQ(before, open_fds());
	ATF_CHECK_EQ(names_before, nkept);
	free(dma);
}

TEST(refused, "A journal is checked as if a client had sent it")
{
	struct peer_mem *dma = begin();
	struct peer_mem_record *rec, saved;
	struct peer_mem_half *h;
	uint64_t commit;
	int fd, unsealed;

	fd = file(4, 'a');
	ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd, 0, 0, PAGE, RW, &why));
	ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd, PAGE, 4 * PAGE, PAGE, RW,
	    &why));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(dma, 0, PAGE));
	commit = journal->commit;
	h = &journal->half[commit & 1];
#define	REFUSED(error, what) do {					\
		saved = *rec;						\
		what;							\
		check_refused(error);					\
		*rec = saved;						\
	} while (0)
	rec = &h->record[1];
	REFUSED(EINVAL, rec->kind = 0);
	REFUSED(EINVAL, rec->kind = 3);
	REFUSED(EINVAL, rec->size = 0);
	REFUSED(EINVAL, rec->size = PAGE + 1);
	REFUSED(EINVAL, rec->gpa = 1);
	REFUSED(EINVAL, rec->gpa = 0);
	REFUSED(EINVAL, rec->size = -PAGE);
	REFUSED(EINVAL, rec->offset = 1);
	REFUSED(EINVAL, rec->offset = 4 * PAGE);
	REFUSED(EINVAL, rec->offset = -PAGE);
	REFUSED(EINVAL, rec->prot = 0);
	REFUSED(EINVAL, rec->prot = 7);
	REFUSED(ENOENT, rec->file = 9);
	REFUSED(EINVAL, rec->file = -1);
	rec = &h->record[2];
	REFUSED(EINVAL, rec->size = 0);
	REFUSED(EINVAL, rec->size = PAGE / 2);
	REFUSED(EINVAL, rec->gpa = 8 * PAGE);
	REFUSED(EINVAL, rec->gpa = -1);
#undef REFUSED
	h->base = 3;			/* an unmap there */
	check_refused(EINVAL);
	h->base = 4;
	check_refused(EINVAL);
	h->base = 0;
	journal->commit = (PEER_MEM_RECORDS + 1) * 2;
	check_refused(EINVAL);
	journal->commit = UINT64_MAX;
	check_refused(EINVAL);
	journal->commit = commit;
	journal->records--;
	check_refused(EINVAL);
	journal->records++;
	journal->magic ^= 1;
	check_refused(EINVAL);
	journal->magic ^= 1;
	/* Its file is none that a client may share. */
	unsealed = memfd_create("guest", MFD_CLOEXEC);
	ATF_REQUIRE_EQ(0, dup3(unsealed, kept[0].pkt_fd, O_CLOEXEC) !=
	    kept[0].pkt_fd);
	check_refused(EPERM);
	ATF_REQUIRE_EQ(kept[0].pkt_fd, dup3(fd, kept[0].pkt_fd, O_CLOEXEC));
	dma = go_on(dma);
	close(unsealed);
	close(fd);
	end(dma);
}

TEST(junk, "A journal with anything in it is refused or harmless")
{
	struct peer_mem *dma = begin(), *new;
	unsigned int done = 0, i, k;
	struct peer_mem_half *h;
	uint32_t seed = 1;
	uint8_t *p;
	int fd;

	fd = file(64, 'a');
	for (i = 0; i < 2000; i++) {
		peer_mem_clear(dma);
		for (k = 0; k < 8; k++)
			ATF_REQUIRE_EQ(0, peer_mem_map(dma, fd, k * PAGE,
			    2 * k * PAGE, PAGE, RW, &why));
		h = &journal->half[journal->commit & 1];
		p = (uint8_t *)&h->record[test_below(&seed, 8)];
		p[test_below(&seed, sizeof(h->record[0]))] = test_random(&seed);
		if (test_chance(&seed, 1, 4))
			h->base = test_random(&seed) % 10;
		new = table(0);
		if (peer_mem_replay(new, journal, kept, NAMES, &why) == 0)
			done++;
		peer_mem_set_keep(new, NULL);
		peer_mem_reset(new);
		free(new);
	}
	ATF_CHECK(done > 0 && done < 2000);
	close(fd);
	end(dma);
}

TEST_PROGRAM
