/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Guest memory as it is behind an IOMMU: many ranges of a few files, for one
 * purpose each, whose pages are anywhere.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "guest_memory.h"
#include "test.h"
#include "peer_mem.h"
#include "wrap.h"

/* Calls, and how many mmap() refuses for want of addresses. */
static int		mmaps, munmaps, fcntls, statfses, mmaps_fail;

WRAP(void *, mmap, void *addr, size_t len, int prot, int flags, int fd,
    off_t offset)
{
	mmaps++;
	if (mmaps_fail > 0) {
		mmaps_fail--;
		errno = ENOMEM;
		return (MAP_FAILED);
	}
	return (__real_mmap(addr, len, prot, flags, fd, offset));
}

WRAP(int, munmap, void *addr, size_t len)
{
	munmaps++;
	return (__real_munmap(addr, len));
}

WRAP(int, fcntl, int fd, int cmd, long arg)
{
	fcntls++;
	return (__real_fcntl(fd, cmd, arg));
}

WRAP(int, fstatfs, int fd, struct statfs *fs)
{
	statfses++;
	return (__real_fstatfs(fd, fs));
}

static struct peer_mem	dma;
static const char	*why;
static int		paused, pauses;

static void
on_pause(void *arg, bool pause)
{
	ATF_REQUIRE_EQ(&dma, arg);
	ATF_REQUIRE_EQ(pause ? 0 : 1, paused);
	paused = pause;
	pauses += pause;
}

static void
start(uint64_t limit)
{
	memset(&dma, 0xa5, sizeof(dma));
	peer_mem_init(&dma, limit, on_pause, &dma);
}

static int
map(int fd, uint64_t offset, uint64_t gpa, uint64_t size)
{
	return (peer_mem_map(&dma, fd, offset, gpa, size, RW, &why));
}

static unsigned int	wanted;

static void
on_wanted(void *arg)
{
	ATF_REQUIRE_EQ(&dma, arg);
	wanted++;
}

static void
check_addr(uint64_t gpa, size_t len, const void *expected)
{
	void *p = peer_mem_addr(&dma, gpa, len, RW);

	ATF_CHECK_EQ_MSG(expected, p, "%#jx + %#zx: %p, not %p",
	    (uintmax_t)gpa, len, p, expected);
}

TEST(access, "A range is used for what it permits, and without a file not at "
    "all")
{
	const int prots[] = { PROT_READ, PROT_WRITE, RW };
	uint64_t gpa;
	unsigned int i, j;
	int fd;
	bool found;

	start(0);
	fd = memory(0, 4 * PAGE, SEALS);
	ATF_REQUIRE_EQ(0, map(-1, 0, 0x9000, PAGE));
	ATF_CHECK_EQ(0, dma.nfiles);
	for (i = 0; i < nitems(prots); i++)
		ATF_REQUIRE_EQ(0, peer_mem_map(&dma, fd, i * PAGE, i * PAGE,
		    PAGE, prots[i], &why));
	ATF_CHECK_EQ(3, dma.nfiles);
	for (i = 0; i < nitems(prots); i++)
		for (j = 0; j < nitems(prots); j++) {
			found = peer_mem_addr(&dma, i * PAGE, PAGE, prots[j]) !=
			    NULL;
			ATF_CHECK_EQ((prots[i] & prots[j]) == prots[j], found);
			/* Also the next time, and after another range. */
			ATF_CHECK_EQ(found, peer_mem_addr(&dma, i * PAGE + 1, 1,
			    prots[j]) != NULL);
			(void)peer_mem_addr(&dma, 2 * PAGE, 1, RW);
		}
	/* The first two permit nothing together, the last two PROT_WRITE. */
	for (j = 0; j < nitems(prots); j++) {
		ATF_CHECK_EQ(NULL, peer_mem_addr(&dma, PAGE - 1, 2, prots[j]));
		ATF_CHECK_EQ(prots[j] == PROT_WRITE, peer_mem_addr(&dma,
		    2 * PAGE - 1, 2, prots[j]) != NULL);
	}
	ATF_CHECK(!peer_mem_refused(&dma, &gpa));
	check_addr(0x9000, 1, NULL);
	ATF_CHECK(!peer_mem_refused(&dma, &gpa));
	peer_mem_set_wanted(&dma, on_wanted);
	check_addr(0xa000, 1, NULL);
	ATF_CHECK_EQ(0, wanted);
	check_addr(0x9010, 1, NULL);
	check_addr(0x9020, 1, NULL);
	ATF_CHECK_EQ(1, wanted);
	ATF_REQUIRE(peer_mem_refused(&dma, &gpa));
	ATF_CHECK_EQ(0x9010, gpa);
	ATF_CHECK(!peer_mem_join(&dma));
	peer_mem_reset(&dma);
	ATF_CHECK(!peer_mem_refused(&dma, &gpa));
}

TEST(parts, "Of a file that is too large for the limit, parts are mapped")
{
	const uint64_t gb = 1UL << 30;
	struct peer_mem_host host;
	uint64_t i;
	void *p;
	int fd;

	fd = memory(0, 8 * gb, SEALS);
	start(3 * gb);
	ATF_REQUIRE_EQ(0, map(fd, gb + PAGE, 0, PAGE));
	p = peer_mem_addr(&dma, 0, PAGE, RW);
	ATF_REQUIRE(p != NULL && peer_mem_host(&dma, p, &host));
	ATF_CHECK_EQ(p - PAGE, (void *)host.map);
	ATF_CHECK_EQ(gb, host.map_size);
	/* It has these, too. */
	ATF_REQUIRE_EQ(0, map(fd, 2 * gb - PAGE, 0x4000, PAGE));
	ATF_CHECK_EQ(gb, dma.mapped);
	/* This is in two parts. */
	ATF_REQUIRE_EQ(0, map(fd, 2 * gb - PAGE, 0x8000, 2 * PAGE));
	ATF_CHECK_EQ(3 * gb, dma.mapped);
	ATF_CHECK_EQ(ENOSPC, map(fd, 5 * gb, 0x10000, PAGE));
	/* Without the first two: all of it does not fit, nor does a part. */
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0, 0x8000));
	ATF_CHECK_EQ(3 * gb, dma.mapped);
	ATF_REQUIRE_EQ(0, map(fd, 5 * gb - PAGE, 0x10000, 2 * PAGE));
	ATF_CHECK_EQ(2 * gb + 2 * PAGE, dma.mapped);
	peer_mem_clear(&dma);
	ATF_CHECK_EQ(0, dma.mapped);
	/* A part without ranges stays as long as others fit. */
	for (i = 1; i < 5; i++) {
		ATF_REQUIRE_EQ(0, map(fd, i * gb, 0, PAGE));
		ATF_CHECK_EQ((i < 4 ? i : 1) * gb, dma.mapped);
		ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0, PAGE));
	}
	peer_mem_clear(&dma);
	/* Pages of it, for a range of more than 2 MB. */
	ATF_REQUIRE_EQ(0, map(fd, gb, 0, 2 << 20));
	ATF_CHECK_EQ(gb, dma.mapped);
	ATF_REQUIRE_EQ(0, map(fd, 5 * gb, 4 << 20, (2 << 20) + PAGE));
	ATF_CHECK_EQ(gb + (2 << 20) + PAGE, dma.mapped);
	peer_mem_clear(&dma);
	/* All of one that is as large. */
	start(8 * gb);
	ATF_REQUIRE_EQ(0, map(fd, PAGE, 0, gb));
	ATF_CHECK_EQ(8 * gb, dma.mapped);
	peer_mem_clear(&dma);
}

static int
open_as(int fd, int flags)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	fd = open(name, flags);
	ATF_REQUIRE(fd != -1);
	return (fd);
}

TEST(packets, "A file whose ranges come and go with each packet is mapped once")
{
	uint8_t *p, *first = NULL;
	int fd, i, other;

	start(0);
	fd = memory(0, 64 * PAGE, SEALS);
	other = memory(0, PAGE, SEALS);
	/* No ring keeps the mapping, or one that has another file. */
	ATF_REQUIRE_EQ(0, map(other, 0, 0, PAGE));
	mmaps = munmaps = fcntls = statfses = 0;
	for (i = 0; i < 1000; i++) {
		ATF_REQUIRE_EQ(0, map(fd, i % 64 * PAGE, 0x10000, PAGE));
		p = peer_mem_addr(&dma, 0x10000, PAGE, RW);
		ATF_REQUIRE(p != NULL);
		p -= i % 64 * PAGE;
		first = i == 0 ? p : first;
		ATF_REQUIRE_EQ(first, p);
		ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x10000, PAGE));
		/* The mapping is there, but nobody may use it. */
		ATF_REQUIRE_EQ(NULL, peer_mem_addr(&dma, 0x10000, 1,
		    PROT_READ));
		ATF_REQUIRE_EQ(NULL, peer_mem_addr(&dma, 0x10000, 1,
		    PROT_WRITE));
		/* A second passes, but not two. */
		if (i % 2 == 0) {
			ATF_REQUIRE(peer_mem_idle(&dma));
			peer_mem_drop(&dma);
		}
	}
	ATF_CHECK_EQ(1, mmaps);
	ATF_CHECK_EQ(0, munmaps);
	ATF_CHECK_EQ(1, statfses);
	/* What it is, and what it permits. */
	ATF_CHECK_EQ(1999, fcntls);
	ATF_CHECK(is_mapped(first));
	drop_idle(&dma);
	ATF_CHECK(!is_mapped(first));
	ATF_CHECK_EQ(PAGE, dma.mapped);
	/* With a ring there, nobody asks what it permits. */
	ATF_REQUIRE_EQ(0, map(fd, 0, PAGE, PAGE));
	fcntls = 0;
	ATF_REQUIRE_EQ(0, map(fd, 0, 0x10000, PAGE));
	ATF_CHECK_EQ(1, fcntls);
	peer_mem_clear(&dma);
	ATF_CHECK(!peer_mem_idle(&dma));
}

TEST(idle_rights, "A mapping without ranges permits what a new one would")
{
	static const struct {
		int first, then;	/* how the file is opened */
		int prot, error, mmaps;
	} cases[] = {
		{ O_RDWR, O_RDWR, RW, 0, 0 },
		{ O_RDWR, O_RDWR, PROT_READ, 0, 0 },
		{ O_RDWR, O_RDONLY, RW, EACCES, 1 },
		{ O_RDWR, O_RDONLY, PROT_WRITE, EACCES, 1 },
		{ O_RDWR, O_RDONLY, PROT_READ, 0, 2 },
		{ O_RDWR, O_WRONLY, PROT_READ, EACCES, 2 },
		{ O_RDONLY, O_RDONLY, PROT_READ, 0, 0 },
		{ O_RDONLY, O_RDWR, PROT_READ, 0, 1 },
		{ O_RDONLY, O_RDWR, RW, 0, 1 },
		{ O_RDONLY, O_WRONLY, PROT_READ, EACCES, 2 },
	}, *c;
	uint8_t *p;
	int fd;

	for (c = cases; c < cases + nitems(cases); c++) {
		start(0);
		fd = memory(0, 2 * PAGE, SEALS);
		ATF_REQUIRE_EQ(0, peer_mem_map(&dma, open_as(fd, c->first), 0,
		    0, PAGE, PROT_READ, &why));
		ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0, PAGE));
		mmaps = 0;
		ATF_CHECK_EQ(c->error, peer_mem_map(&dma, open_as(fd, c->then),
		    PAGE, 0, PAGE, c->prot, &why));
		ATF_CHECK_EQ_MSG(c->mmaps, mmaps, "case %td: %d", c - cases,
		    mmaps);
		p = peer_mem_addr(&dma, 0, PAGE, c->prot);
		ATF_CHECK_EQ(c->error == 0, p != NULL);
		if (p != NULL && (c->prot & PROT_WRITE) != 0)
			*p = 1;
		ATF_CHECK_EQ(c->error == 0 && c->prot == RW,
		    peer_mem_addr(&dma, 0, PAGE, PROT_WRITE) != NULL);
		peer_mem_clear(&dma);
	}
	/* The file was sealed meanwhile. */
	start(0);
	fd = memory(0, PAGE, F_SEAL_SHRINK);
	ATF_REQUIRE_EQ(0, map(fd, 0, 0, PAGE));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0, PAGE));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	ATF_CHECK_EQ(EPERM, map(fd, 0, 0, PAGE));
	ATF_CHECK_EQ(0, peer_mem_map(&dma, fd, 0, 0, PAGE, PROT_READ, &why));
	peer_mem_clear(&dma);
}

TEST(idle_space, "A mapping without ranges makes room for another file")
{
	int fd[PEER_MEM_MAPPINGS + 1], i;

	/* In the limit, */
	start(8 * PAGE);
	mmaps = 0;
	for (i = 0; i < 4; i++) {
		fd[i] = memory(0, 4 * PAGE, SEALS);
		errno = ENOMEM;
		ATF_REQUIRE_EQ(0, map(fd[i], 0, i * PAGE, PAGE));
		ATF_CHECK_EQ((1ULL + i % 2) * 4 * PAGE, dma.mapped);
		ATF_CHECK_EQ(i + 1, mmaps);
		ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, i * PAGE, PAGE));
	}
	peer_mem_clear(&dma);
	/* in the address space, */
	start(0);
	ATF_REQUIRE_EQ(0, map(fd[0], 0, 0, PAGE));
	mmaps_fail = 1;
	ATF_CHECK_EQ(ENOMEM, map(fd[1], 0, PAGE, PAGE));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0, PAGE));
	mmaps_fail = 1;
	ATF_CHECK_EQ(0, peer_mem_map(&dma, open_as(fd[1], O_RDONLY), 0, PAGE,
	    PAGE, PROT_READ, &why));
	ATF_CHECK_EQ(4 * PAGE, dma.mapped);
	peer_mem_clear(&dma);
	/* and in the table, all of them at once. */
	mmaps = munmaps = 0;
	for (i = 0; i <= PEER_MEM_MAPPINGS; i++) {
		fd[i] = memory(0, PAGE, SEALS);
		ATF_REQUIRE_EQ(0, map(fd[i], 0, (uint64_t)i << 20, PAGE));
		ATF_CHECK_EQ(i == PEER_MEM_MAPPINGS ? PEER_MEM_MAPPINGS - 1 : 0,
		    munmaps);
		if (i > 0)
			ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma,
			    (uint64_t)i << 20, PAGE));
	}
	ATF_CHECK_EQ(2 * PAGE, dma.mapped);
	ATF_CHECK_EQ(PAGE, dma.idle);
	peer_mem_clear(&dma);
	ATF_CHECK(!peer_mem_idle(&dma));
}

/*
 * A table that unmaps a file with its last range, and so keeps nothing: the
 * other one must answer as that does.
 */
#define	FILES		6
#define	SLOTS		24
static struct peer_mem	plain;
static int		fds[FILES][2];	/* to write; only to read */

static void
no_pause(void *arg __attribute__((__unused__)),
    bool pause __attribute__((__unused__)))
{
}

/* Give a file so many pages, and each a number. */
static void
file_grow(uint32_t file, uint32_t npages)
{
	uint32_t i, v;

	for (i = 0; i < npages; i++) {
		v = file << 8 | i;
		ATF_REQUIRE_EQ(sizeof(v), pwrite(fds[file][0], &v, sizeof(v),
		    i * PAGE));
	}
}

/* Add a range to both tables, or to none. */
static void
map_both(uint32_t *seed, uint64_t limit)
{
	const uint32_t file = test_below(seed, FILES);
	const bool read_only = test_chance(seed, 1, 3);
	const int prot = read_only ? PROT_READ : 1 + test_below(seed, 3);
	const uint64_t offset = test_below(seed, 16) * PAGE;
	const uint64_t size = (1 + test_below(seed, 4)) * PAGE;
	const uint64_t gpa = test_below(seed, SLOTS) * PAGE;
	const int fd = fds[file][read_only];
	const char *reason;
	int error, expected;

	expected = peer_mem_map(&plain, fd, offset, gpa, size, prot, &reason);
	if (limit == 0 && dma.idle > 0)
		mmaps_fail = test_below(seed, 2);
	error = peer_mem_map(&dma, fd, offset, gpa, size, prot, &why);
	mmaps_fail = 0;
	if (error == expected) {
		if (error != 0)
			ATF_REQUIRE_STREQ(reason, why);
		return;
	}
	/* A part that is there may do where all of a file would not fit. */
	ATF_REQUIRE_MSG(limit != 0, "%d (%s), not %d", error, why, expected);
	ATF_REQUIRE_EQ(ENOSPC, error + expected);
	ATF_REQUIRE_EQ(0, peer_mem_unmap(error == 0 ? &dma : &plain, gpa,
	    size));
}

static void
check_both(void)
{
	const struct peer_mem_mapping *m;
	uint64_t gpa, idle = 0, mapped = 0;
	uint32_t *p, *q;
	int prot;

	for (gpa = 0; gpa < (SLOTS + 4) * PAGE; gpa += PAGE)
		for (prot = PROT_READ; prot <= RW; prot++) {
			p = peer_mem_addr(&dma, gpa, PAGE, prot);
			q = peer_mem_addr(&plain, gpa, PAGE, prot);
			ATF_REQUIRE_EQ(p == NULL, q == NULL);
			if (p != NULL)
				ATF_REQUIRE_EQ(*q, *p);
		}
	for (m = dma.mapping; m < dma.mapping + dma.nmappings; m++) {
		mapped += m->size;
		idle += m->nranges == 0 ? m->size : 0;
	}
	ATF_REQUIRE_EQ(mapped, dma.mapped);
	ATF_REQUIRE_EQ(idle, dma.idle);
	ATF_REQUIRE(mapped <= dma.limit);
}

TEST(random, "Ranges of several files come and go: whether a mapping is kept "
    "makes no difference")
{
	static const uint64_t limits[] = { 0, 40 * PAGE, 12 * PAGE };
	uint64_t gpa, size;
	uint32_t file, i, l, seed = 3;

	for (l = 0; l < nitems(limits); l++) {
		start(limits[l]);
		peer_mem_init(&plain, limits[l], no_pause, NULL);
		for (file = 0; file < FILES; file++) {
			fds[file][0] = memory(0, 0, F_SEAL_SHRINK);
			fds[file][1] = open_as(fds[file][0], O_RDONLY);
			file_grow(file, 4);
		}
		for (i = 0; i < 4000; i++) {
			if (i % 400 == 399) {
				file = test_below(&seed, FILES);
				file_grow(file, 4 + i / 400);
			} else if (test_chance(&seed, 1, 50)) {
				(void)peer_mem_idle(&dma);
				peer_mem_drop(&dma);
			} else if (test_chance(&seed, 1, 2))
				map_both(&seed, limits[l]);
			else {
				gpa = test_below(&seed, SLOTS) * PAGE;
				size = (1 + test_below(&seed, 12)) * PAGE;
				ATF_REQUIRE_EQ(peer_mem_unmap(&plain, gpa,
				    size), peer_mem_unmap(&dma, gpa, size));
				drop_idle(&plain);
			}
			check_both();
		}
		peer_mem_clear(&dma);
		peer_mem_clear(&plain);
		for (file = 0; file < FILES; file++) {
			close(fds[file][0]);
			close(fds[file][1]);
		}
	}
}

static void
count_map(const void *arg, uint8_t *p __attribute__((__unused__)),
    size_t size __attribute__((__unused__)))
{
	++*(int *)(uintptr_t)arg;
}

TEST(mappings, "A client can have PEER_MEM_MAPPINGS mappings")
{
	struct peer_mem_host host;
	int fd[PEER_MEM_MAPPINGS + 1], i, n = 0;

	start(0);
	for (i = 0; i <= PEER_MEM_MAPPINGS; i++) {
		fd[i] = memory(0, 2 * PAGE, SEALS);
		ATF_REQUIRE_EQ(i == PEER_MEM_MAPPINGS ? ENOSPC : 0, map(fd[i],
		    0, (uint64_t)i << 20, PAGE));
	}
	ATF_CHECK_STREQ("too many mappings", why);
	/* Others of a file that is mapped; they cannot be a ring. */
	peer_mem_set_wanted(&dma, on_wanted);
	ATF_CHECK_EQ(0, map(fd[7], PAGE, 1UL << 40, PAGE));
	ATF_CHECK_EQ(0, map(fd[7], 0, (1UL << 40) + PAGE, PAGE));
	check_addr(1UL << 40, 2 * PAGE, NULL);
	ATF_CHECK(!peer_mem_join(&dma));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 9 << 20, PAGE));
	ATF_CHECK_EQ(0, map(fd[PEER_MEM_MAPPINGS], 0, 9 << 20, PAGE));
	ATF_CHECK_EQ(PEER_MEM_MAPPINGS, dma.nmappings);
	/* What follows the table is no mapping. */
	dma.joined[0].size = UINT64_MAX;
	ATF_CHECK(!peer_mem_host(&dma, &dma, &host));
	peer_mem_each(&dma, count_map, &n);
	ATF_CHECK_EQ(PEER_MEM_MAPPINGS, n);
	dma.joined[0].size = 0;
	peer_mem_clear(&dma);
}

static void
check_ring(uint64_t gpa, const unsigned int *pages, unsigned int n)
{
	unsigned int i, v;
	uint8_t *p;

	p = peer_mem_addr(&dma, gpa, n * PAGE, RW);
	ATF_REQUIRE(p != NULL);
	for (i = 0; i < n; i++) {
		memcpy(&v, p + i * PAGE, sizeof(v));
		ATF_CHECK_EQ(pages[i], v);
	}
}

TEST(join, "A ring whose pages are anywhere is mapped in the guest's order")
{
	static const unsigned int pages[] = { 7, 3, 5, 4 };
	static const unsigned int reverse[] = { 9, 8 }, inside[] = { 9, 2, 3 };
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_WRITE };
	struct peer_mem_host host;
	uint64_t gpa;
	uint8_t *p, *q;
	unsigned int i;
	int fd;

	start(0);
	fd = memory(0, 16 * PAGE, SEALS);
	for (i = 0; i < 16; i++)
		ATF_REQUIRE_EQ(sizeof(i), pwrite(fd, &i, sizeof(i), i * PAGE));
	for (i = 0; i < 4; i++)
		ATF_REQUIRE_EQ(0, map(fd, pages[i] * PAGE, 0x10000 + i * PAGE,
		    PAGE));
	ATF_REQUIRE_EQ(0, peer_mem_map(&dma, fd, 0, 0x14000, PAGE, PROT_READ,
	    &why));
	ATF_REQUIRE_EQ(0, map(fd, 0, 0xf000, PAGE));
	check_addr(0x10000, 4 * PAGE, NULL);
	ATF_CHECK(!peer_mem_join(&dma));
	peer_mem_set_wanted(&dma, on_wanted);
	wanted = 0;
	/* Nobody asks for a buffer, or for what is not all permitted. */
	ATF_CHECK_EQ(NULL, peer_mem_addr(&dma, 0x10000, 4 * PAGE, PROT_WRITE));
	ATF_CHECK_EQ(NULL, peer_mem_addr(&dma, 0x10000, 4 * PAGE, PROT_READ));
	check_addr(0x10000, 4 * PAGE + 1, NULL);
	ATF_CHECK_EQ(0, wanted);
	check_addr(0x10000, 4 * PAGE, NULL);
	ATF_CHECK_EQ(1, wanted);
	pauses = 0;
	ATF_REQUIRE(peer_mem_join(&dma));
	ATF_CHECK_EQ(1, pauses);
	ATF_CHECK(!peer_mem_join(&dma));
	/* Another thread has asked for it before it was there. */
	dma.want_gpa = 0x10000;
	dma.want_size = 4 * PAGE;
	ATF_CHECK(peer_mem_join(&dma));
	ATF_CHECK_EQ(1, pauses);
	check_ring(0x10000, pages, 4);
	check_ring(0x11000, pages + 1, 2);
	ATF_CHECK_EQ(1, wanted);
	p = peer_mem_addr(&dma, 0x10000, 4 * PAGE, RW);
	q = peer_mem_addr(&dma, 0x12000, PAGE, RW);
	/* It is the same memory, of which the handler knows. */
	p[2 * PAGE + 99] = 'j';
	ATF_CHECK_EQ('j', q[99]);
	ATF_REQUIRE(peer_mem_host(&dma, p + PAGE + 1, &host));
	ATF_CHECK_EQ(0x11001, host.gpa);
	ATF_CHECK_EQ(p, host.map);
	ATF_CHECK_EQ(4 * PAGE, host.map_size);
	ATF_CHECK_EQ(PAGE, host.page_size);
	ATF_CHECK_EQ(16 * PAGE, dma.mapped);
	/* A file without ranges goes, but not the ring. */
	ATF_REQUIRE_EQ(0, map(memory(0, PAGE, SEALS), 0, 0x40000, PAGE));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x40000, PAGE));
	drop_idle(&dma);
	ATF_CHECK_EQ(16 * PAGE, dma.mapped);
	ATF_CHECK_EQ(p, peer_mem_addr(&dma, 0x10000, 4 * PAGE, RW));
	ATF_CHECK(is_mapped(p));
	/* It goes with any of its pages. */
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x14000, PAGE));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0xf000, PAGE));
	ATF_CHECK(is_mapped(p));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x13000, PAGE));
	ATF_CHECK(!is_mapped(p));
	check_addr(0x10000, 4 * PAGE, NULL);
	ATF_CHECK(!peer_mem_join(&dma));
	/* Or its last page is not what it was when it was asked for. */
	for (i = 0; i < nitems(prots); i++) {
		ATF_REQUIRE_EQ(0, map(fd, 4 * PAGE, 0x13000, PAGE));
		check_addr(0x10000, 4 * PAGE, NULL);
		ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x13000, PAGE));
		if (prots[i] != PROT_NONE)
			ATF_REQUIRE_EQ(0, peer_mem_map(&dma, fd, 4 * PAGE,
			    0x13000, PAGE, prots[i], &why));
		pauses = 0;
		ATF_CHECK(!peer_mem_join(&dma));
		ATF_CHECK_EQ(0, pauses);
		(void)peer_mem_unmap(&dma, 0x13000, PAGE);
	}
	/* Or all are adjacent now. */
	check_addr(0x10000, 2 * PAGE, NULL);
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x11000, PAGE));
	ATF_REQUIRE_EQ(0, map(fd, 8 * PAGE, 0x11000, PAGE));
	pauses = 0;
	ATF_CHECK(!peer_mem_join(&dma));
	ATF_CHECK_EQ(0, pauses);
	/* It starts inside a range. */
	ATF_REQUIRE_EQ(0, map(fd, 8 * PAGE, 0x20000, 2 * PAGE));
	ATF_REQUIRE_EQ(0, map(fd, 2 * PAGE, 0x22000, 2 * PAGE));
	check_addr(0x21000, 3 * PAGE, NULL);
	ATF_REQUIRE(peer_mem_join(&dma));
	check_ring(0x21000, inside, 3);
	p = peer_mem_addr(&dma, 0x21000, 3 * PAGE, RW);
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x20000, 2 * PAGE));
	ATF_CHECK(!is_mapped(p));
	/* All of it has a file. */
	ATF_REQUIRE_EQ(0, map(-1, 0, 0x24000, PAGE));
	wanted = 0;
	check_addr(0x23000, 2 * PAGE, NULL);
	ATF_CHECK_EQ(0, wanted);
	/* More than there may be at a time. */
	for (i = 0; i < 3 * PEER_MEM_JOINS; i++) {
		gpa = 0x100000 + i % (2 * PEER_MEM_JOINS) * 0x10000;
		if (i < 2 * PEER_MEM_JOINS) {
			ATF_REQUIRE_EQ(0, map(fd, 9 * PAGE, gpa, PAGE));
			ATF_REQUIRE_EQ(0, map(fd, 8 * PAGE, gpa + PAGE, PAGE));
		}
		check_addr(gpa + 8, PAGE, NULL);
		ATF_REQUIRE(peer_mem_join(&dma));
		check_ring(gpa, reverse, 2);
		p = peer_mem_addr(&dma, gpa, 2 * PAGE, RW);
		check_addr(gpa + 8, PAGE, p + 8);
	}
	ATF_CHECK(dma.nmappings <= 1 + PEER_MEM_JOINS);
	check_addr(0x10000, 2 * PAGE + 1, NULL);
	peer_mem_reset(&dma);
	ATF_CHECK_EQ(0, dma.mapped);
	ATF_CHECK(!is_mapped(p));
	/* The next client has not asked for any. */
	for (i = 0; i < 3; i++)
		ATF_REQUIRE_EQ(0, map(fd, pages[i] * PAGE, 0x10000 + i * PAGE,
		    PAGE));
	ATF_CHECK(!peer_mem_join(&dma));
	peer_mem_clear(&dma);
}

TEST(pieces, "The pieces of all rings are limited")
{
	struct peer_mem_host host;
	unsigned int i;
	uint8_t *p;
	int fd;

	start(0);
	peer_mem_set_wanted(&dma, on_wanted);
	fd = memory(0, 1024 * PAGE, SEALS);
	for (i = 0; i < 1024; i++)
		ATF_REQUIRE_EQ(0, map(fd, (1023 - i) * PAGE, i * PAGE, PAGE));
	check_addr(0, (PEER_MEM_PIECES + 1) * PAGE, NULL);
	ATF_CHECK(!peer_mem_join(&dma));
	check_addr(0, (PEER_MEM_PIECES - 1) * PAGE, NULL);
	ATF_REQUIRE(peer_mem_join(&dma));
	p = peer_mem_addr(&dma, 0, (PEER_MEM_PIECES - 1) * PAGE, RW);
	ATF_REQUIRE(p != NULL);
	check_addr(512 * PAGE, 2 * PAGE, NULL);
	ATF_CHECK(!peer_mem_join(&dma));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0, PAGE));
	ATF_CHECK(!is_mapped(p));
	check_addr(512 * PAGE, 2 * PAGE, NULL);
	ATF_CHECK(peer_mem_join(&dma));
	/* The ring ends with its last page. */
	check_addr(513 * PAGE, 2 * PAGE, NULL);
	p = peer_mem_addr(&dma, 1000 * PAGE, 1, RW);
	ATF_REQUIRE(p != NULL && peer_mem_host(&dma, p, &host));
	ATF_CHECK_EQ(1000 * PAGE, host.gpa);
	ATF_REQUIRE_EQ(0, map(fd, PAGE, 1UL << 47, PAGE));
	ATF_REQUIRE_EQ(0, map(fd, 0, (1UL << 47) + PAGE, PAGE));
	check_addr(1UL << 47, 2 * PAGE, NULL);
	peer_mem_clear(&dma);
	/* More than a ring can be, or as much. */
	ATF_REQUIRE_EQ(0, map(fd, 512 * PAGE, 0, 128 * PAGE));
	ATF_REQUIRE_EQ(0, map(fd, 0, 128 * PAGE, 130 * PAGE));
	for (i = 258; i >= 257; i--) {
		check_addr(0, i * PAGE, NULL);
		ATF_CHECK_EQ(i == 257, peer_mem_join(&dma));
	}
	peer_mem_clear(&dma);
}

TEST(many, "As many ranges as there may be, which come and go at random")
{
	static uint16_t order[PEER_MEM_MAX];
	const uint64_t step = 8 * PAGE;
	uint32_t i, j, seed = 5;
	uint16_t swap;
	uint8_t *base;
	int fd, round;

	start(0);
	fd = memory(0, 4 * PAGE, SEALS);
	for (i = 0; i < PEER_MEM_MAX; i++)
		order[i] = (uint16_t)i;
	for (round = 0; round < 3; round++) {
		/* Those that are there are the first. */
		for (i = PEER_MEM_MAX - 1; i > dma.n; i--) {
			j = dma.n + test_below(&seed, i + 1 - dma.n);
			swap = order[i];
			order[i] = order[j];
			order[j] = swap;
		}
		for (i = dma.n; i < PEER_MEM_MAX; i++)
			ATF_REQUIRE_EQ(0, map(fd, order[i] % 4 * PAGE,
			    order[i] * step, PAGE));
		ATF_REQUIRE_EQ(PEER_MEM_MAX, dma.n);
		ATF_REQUIRE_EQ(4 * PAGE, dma.mapped);
		base = peer_mem_addr(&dma, 0, PAGE, RW);
		ATF_REQUIRE(base != NULL);
		for (i = 0; i < PEER_MEM_MAX; i++) {
			j = order[i];
			ATF_REQUIRE_EQ(base + j % 4 * PAGE + 9,
			    peer_mem_addr(&dma, j * step + 9, 1, RW));
			ATF_REQUIRE_EQ(NULL, peer_mem_addr(&dma, j * step +
			    PAGE, 1, RW));
		}
		/* All but a few go: the table shrinks. */
		for (i = PEER_MEM_MAX - 1; i >= 100; i--)
			ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, order[i] * step,
			    PAGE));
		ATF_REQUIRE_EQ(100, dma.n);
		ATF_REQUIRE(dma.nleaves <= 4);
		for (; i > 0; i--)
			ATF_REQUIRE(peer_mem_addr(&dma, order[i] * step, PAGE,
			    RW) != NULL);
	}
	peer_mem_clear(&dma);
	ATF_CHECK_EQ(0, dma.nleaves);
}

TEST_PROGRAM
