/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The table of guest memory: which addresses are found, which files are
 * accepted, and that nobody uses the table while it changes.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/magic.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "guest_memory.h"
#include "test.h"
#include "peer_keep.h"
#include "peer_mem.h"
#include "wrap.h"

static struct peer_mem	dma;
static const char	*why;

/* What pause() saw. */
static int		paused, pauses;
static uint8_t		*watch;		/* a mapping to look at */
static bool		mapped_before, mapped_after;

/* What fstatfs(2) says of the next file, if not NULL; and what mmap(2) got. */
static const struct statfs *fake_fs;
static bool		fs_fails;
static int		mmap_prot, mmap_flags;
static size_t		mmap_len;
static void		*mmap_at;
static int		mmap_error, fstat_error; /* an errno; 0: succeed */
static dev_t		file_dev;	/* of the next file; its number is 1 */
static bool		malloc_fails;
static int		mallocs;	/* that were not freed */

WRAP(int, fstatfs, int fd, struct statfs *fs)
{
	if (fake_fs == NULL)
		return (__real_fstatfs(fd, fs));
	*fs = *fake_fs;
	errno = EIO;
	return (fs_fails ? -1 : 0);
}

WRAP(void *, malloc, size_t size)
{
	mallocs += !malloc_fails;
	return (malloc_fails ? NULL : __real_malloc(size));
}

WRAP(void, free, void *p)
{
	mallocs--;
	__real_free(p);
}

/* Without a file, what follows cannot be accessed. */
WRAP(void *, mmap, void *addr, size_t len, int prot, int flags, int fd,
    off_t offset)
{
	mmap_prot = prot;
	mmap_flags = flags;
	mmap_len = len;
	errno = mmap_error;
	mmap_at = mmap_error != 0 ? MAP_FAILED :
	    __real_mmap(addr, len + (fd == -1 ? PAGE : 0), prot, flags, fd,
	    offset);
	return (mmap_at);
}

/* peer_fstat(). */
WRAP(long, syscall, long number, ...)
{
	va_list ap;
	struct stat *st;
	long r;
	int fd;

	va_start(ap, number);
	fd = va_arg(ap, int);
	st = va_arg(ap, struct stat *);
	va_end(ap);
	errno = fstat_error;
	r = fstat_error != 0 ? -1 : __real_syscall(number, fd, st);
	if (file_dev != 0) {
		st->st_dev = file_dev;
		st->st_ino = 1;
	}
	return (r);
}

static void
on_pause(void *arg, bool pause)
{
	ATF_REQUIRE_EQ(&dma, arg);
	ATF_REQUIRE_EQ(pause ? 0 : 1, paused);
	paused = pause;
	pauses += pause;
	if (watch == NULL)
		return;
	if (pause)
		mapped_before = is_mapped(watch);
	else
		mapped_after = is_mapped(watch);
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

static void
check_addr(uint64_t gpa, size_t len, const void *expected)
{
	void *p = peer_mem_addr(&dma, gpa, len, RW);

	ATF_CHECK_EQ_MSG(expected, p, "%#jx + %#zx: %p, not %p",
	    (uintmax_t)gpa, len, p, expected);
}

TEST(bounds, "An address is found only with a length that ends in its range")
{
	const uint64_t gpa = 0x100000, size = 4 * PAGE;
	uint8_t *p;
	int fd;

	start(0);
	fd = memory(0, 16 * PAGE, SEALS);
	check_addr(gpa, 1, NULL);
	ATF_REQUIRE_EQ(0, map(fd, PAGE, gpa, size));
	p = peer_mem_addr(&dma, gpa, size, RW);
	ATF_REQUIRE(p != NULL);
	check_addr(gpa - 1, 1, NULL);
	check_addr(gpa - 1, 2, NULL);
	check_addr(0, SIZE_MAX, NULL);
	check_addr(gpa, 1, p);
	check_addr(gpa + 5, size - 5, p + 5);
	check_addr(gpa + size - 1, 1, p + size - 1);
	ATF_CHECK_EQ(gpa, dma.last->gpa);
	/* One byte too many, everywhere and in every way. */
	check_addr(gpa, size + 1, NULL);
	check_addr(gpa + 1, size, NULL);
	check_addr(gpa + size - 1, 2, NULL);
	check_addr(gpa + size - 16, 17, NULL);
	check_addr(gpa + size - 16, 16000, NULL);
	check_addr(gpa + size, 1, NULL);
	check_addr(gpa, SIZE_MAX, NULL);
	check_addr(gpa + 1, SIZE_MAX, NULL);
	/* An adjacent range is another mapping. */
	ATF_REQUIRE_EQ(0, map(fd, 8 * PAGE, gpa + size, PAGE));
	check_addr(gpa + size - 1, 1, p + size - 1);
	check_addr(gpa + size - 1, 2, NULL);
	check_addr(gpa, size + 1, NULL);
	ATF_CHECK(peer_mem_addr(&dma, gpa + size, PAGE, RW) != NULL);
	/* It is the memory of the file, at the offset. */
	ATF_REQUIRE_EQ(2, pwrite(fd, "ab", 2, PAGE));
	ATF_CHECK_EQ('a', p[0]);
	p[2] = 'c';
	ATF_REQUIRE_EQ(1, pread(fd, p + 3, 1, PAGE + 2));
	ATF_CHECK_EQ('c', p[3]);
	peer_mem_clear(&dma);
	check_addr(gpa, 1, NULL);
	ATF_CHECK(!is_mapped(p));
}

/*
 * A model of the table: for each of SLOTS pages of guest memory, the page of
 * the file there, or 0.
 */
#define	SLOTS	64

TEST(random, "Ranges come and go at random; lookups agree with a model")
{
	unsigned int model[SLOTS] = { 0 }, size[SLOTS] = { 0 };
	unsigned int i, j, k, n, off;
	uint32_t seed = 17;
	uint8_t *p;
	int fd, step;

	start(0);
	fd = memory(0, (SLOTS + 1) * PAGE, SEALS);
	for (i = 0; i <= SLOTS; i++)
		ATF_REQUIRE_EQ(sizeof(i), pwrite(fd, &i, sizeof(i), i * PAGE));
	for (step = 0; step < 3000; step++) {
		i = test_below(&seed, SLOTS);
		n = 1 + test_below(&seed, MIN(4, SLOTS - i));
		off = 1 + test_below(&seed, SLOTS - n);
		if (size[i] != 0) {
			/* With what follows, if that is not cut. */
			off = size[i] + test_below(&seed, 6);
			off = MIN(off, SLOTS - i);
			for (k = j = i; j < i + off; j++)
				k = MAX(k, size[j] == 0 ? k : j + size[j]);
			ATF_REQUIRE_EQ(EINVAL, peer_mem_unmap(&dma, i * PAGE +
			    1, size[i] * PAGE));
			ATF_REQUIRE_EQ(k > i + off ? EINVAL : 0,
			    peer_mem_unmap(&dma, i * PAGE, off * PAGE));
			for (j = i; k <= i + off && j < i + off; j++)
				model[j] = size[j] = 0;
		} else {
			for (k = j = 0; j < n; j++)
				k += model[i + j] != 0;
			ATF_REQUIRE_EQ(k == 0 ? 0 : EEXIST, map(fd,
			    off * PAGE, i * PAGE, n * PAGE));
			for (j = 0; k == 0 && j < n; j++)
				model[i + j] = off + j;
			if (k == 0)
				size[i] = n;
		}
		for (k = 0; k < 8; k++) {
			i = test_below(&seed, SLOTS);
			p = peer_mem_addr(&dma, i * PAGE, PAGE, RW);
			ATF_REQUIRE_EQ(model[i] != 0, p != NULL);
			if (p != NULL)
				memcpy(&j, p, sizeof(j));
			if (p != NULL)
				ATF_REQUIRE_EQ(model[i], j);
		}
	}
	peer_mem_clear(&dma);
}

TEST(files, "Only a memfd sealed against shrinking is accepted")
{
	char name[] = "peer_mem_test.XXXXXX";
	int fd, i, p[2];
	const int seals[] = { 0, F_SEAL_GROW, F_SEAL_SEAL };

	start(0);
	for (i = 0; i < (int)nitems(seals); i++) {
		fd = memory(0, PAGE, seals[i]);
		ATF_CHECK_EQ(EPERM, map(fd, 0, 0, PAGE));
		close(fd);
		fd = memory(MFD_HUGETLB, HUGE, seals[i]);
		ATF_CHECK_EQ(EPERM, map(fd, 0, 0, PAGE));
		close(fd);
	}
	fd = mkstemp(name);
	ATF_REQUIRE(fd != -1 && ftruncate(fd, PAGE) == 0);
	ATF_CHECK_EQ(EPERM, map(fd, 0, 0, PAGE));
	fd = open("/dev/zero", O_RDWR);
	ATF_CHECK_EQ(EPERM, map(fd, 0, 0, PAGE));
	ATF_REQUIRE_EQ(0, pipe(p));
	ATF_CHECK_EQ(EPERM, map(p[1], 0, 0, PAGE));
	fd = memory(0, PAGE, F_SEAL_SHRINK);
	ATF_CHECK_EQ(EINVAL, map(fd, 0, 0, 2 * PAGE));
	ATF_CHECK_EQ(EINVAL, map(fd, PAGE, 0, PAGE));
	ATF_CHECK_EQ(EINVAL, map(fd, -(uint64_t)PAGE, 0, 2 * PAGE));
	ATF_CHECK_EQ(0, dma.n);
	ATF_CHECK_EQ(0, map(fd, 0, 0, PAGE));
	peer_mem_clear(&dma);
}

TEST(huge, "A range may start and end inside huge pages")
{
	struct peer_mem_host host;
	uint8_t *p, *q;
	int fd;

	start(0);
	fd = memory(MFD_HUGETLB, 4 * HUGE, SEALS);
	/* QEMU's ranges: RAM below and above the legacy video memory. */
	ATF_REQUIRE_EQ_MSG(0, map(fd, 0, 0, 0xa0000), "%s", why);
	ATF_REQUIRE_EQ(0, map(fd, 0xc0000, 0xc0000, 4 * HUGE - 0xc0000));
	p = peer_mem_addr(&dma, 0, 0xa0000, RW);
	q = peer_mem_addr(&dma, 0xc0000, 4 * HUGE - 0xc0000, RW);
	ATF_REQUIRE(p != NULL && q != NULL);
	ATF_CHECK_EQ(0, (uintptr_t)p % HUGE);
	ATF_CHECK_EQ(0xc0000, (uintptr_t)q % HUGE);
	check_addr(0x9ffff, 2, NULL);
	check_addr(0xbffff, 1, NULL);
	check_addr(4 * HUGE, 1, NULL);
	/* The page size counts; no page is touched. */
	ATF_REQUIRE(peer_mem_host(&dma, q + HUGE, &host));
	ATF_CHECK_EQ(HUGE, host.page_size);
	ATF_CHECK_EQ(q - 0xc0000 + HUGE, host.page);
	ATF_CHECK_EQ(0xc0000 + HUGE, host.gpa);
	ATF_CHECK_EQ(q - 0xc0000, host.map);
	ATF_CHECK_EQ(p, host.map);
	ATF_CHECK_EQ(4 * HUGE, host.map_size);
	ATF_CHECK_EQ(4 * HUGE, dma.mapped);
	ATF_CHECK_EQ(EINVAL, map(fd, 3 * HUGE, 1UL << 32, HUGE + PAGE));
	/* All of it is unmapped, after the last range. */
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0xc0000, 4 * HUGE - 0xc0000));
	drop_idle(&dma);
	ATF_CHECK(is_mapped(q));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0, 0xa0000));
	drop_idle(&dma);
	ATF_CHECK(!is_mapped(q));
	ATF_CHECK(!is_mapped(p));
	ATF_CHECK(!is_mapped(p + 4 * HUGE - PAGE));
	/* Pages of it, if the limit is less than the file. */
	start(2 * HUGE);
	ATF_REQUIRE_EQ(0, map(fd, HUGE - PAGE, 0, 2 * PAGE));
	p = peer_mem_addr(&dma, 0, 2 * PAGE, RW);
	ATF_CHECK_EQ(HUGE - PAGE, (uintptr_t)p % HUGE);
	ATF_CHECK_EQ(2 * HUGE, dma.mapped);
	peer_mem_clear(&dma);
	ATF_CHECK(!is_mapped(p));
}

TEST(limits, "A client can map its limit of bytes, and PEER_MEM_MAX ranges")
{
	int fd, i;

	fd = memory(0, 1UL << 42, SEALS);
	start(8 * PAGE);
	ATF_CHECK_EQ(ENOSPC, map(fd, 0, 0, 9 * PAGE));
	ATF_CHECK_EQ(0, map(fd, 0, 0, 5 * PAGE));
	ATF_CHECK_EQ(ENOSPC, map(fd, 8 * PAGE, 0x10000, 4 * PAGE));
	ATF_CHECK_EQ(0, map(fd, 8 * PAGE, 0x10000, 3 * PAGE));
	ATF_CHECK_EQ(ENOSPC, map(fd, 16 * PAGE, 0x20000, PAGE));
	ATF_CHECK_EQ(0, map(-1, 0, 0x20000, PAGE));
	/* It counts once. */
	ATF_CHECK_EQ(0, map(fd, PAGE, 0x40000, PAGE));
	ATF_CHECK_EQ(0, peer_mem_unmap(&dma, 0x10000, 3 * PAGE));
	ATF_CHECK_EQ(0, map(fd, 16 * PAGE, 0x30000, 3 * PAGE));
	peer_mem_clear(&dma);
	ATF_CHECK_EQ(0, dma.mapped);
	start(0);
	for (i = 0; i < PEER_MEM_MAX; i++)
		ATF_REQUIRE_EQ(0, map(i % 2 ? fd : -1, 0, i * 0x10000UL,
		    PAGE));
	ATF_CHECK_EQ(ENOSPC, map(fd, 0, 1UL << 40, PAGE));
	ATF_CHECK_EQ(ENOSPC, map(-1, 0, 1UL << 40, PAGE));
	peer_mem_clear(&dma);
}

/* Call `fn', which unmaps `p', and check that the model was paused then. */
static void
check_paused(uint8_t *p, void (*fn)(void))
{
	ATF_REQUIRE(p != NULL && is_mapped(p));
	watch = p;
	pauses = 0;
	mapped_before = mapped_after = false;
	fn();
	watch = NULL;
	ATF_CHECK_EQ(1, pauses);
	ATF_CHECK_EQ(0, paused);
	ATF_CHECK_MSG(mapped_before, "unmapped before the model was paused");
	ATF_CHECK(!is_mapped(p));
}

static void
unmap_idle(void)
{
	peer_mem_drop(&dma);
}

static void
unmap_all(void)
{
	peer_mem_clear(&dma);
}

static void
unmap_reset(void)
{
	peer_mem_reset(&dma);
}

TEST(pause, "The model is paused while the table changes")
{
	void (*const fns[])(void) = { unmap_all, unmap_reset, unmap_idle };
	uint64_t gpa;
	unsigned int i;
	uint8_t *p;
	int fd;

	start(0);
	fd = memory(0, 4 * PAGE, SEALS);
	for (i = 0; i < nitems(fns); i++) {
		pauses = 0;
		ATF_REQUIRE_EQ(0, map(fd, 0, 0x1000, PAGE));
		ATF_CHECK_EQ(1, pauses);
		ATF_CHECK_EQ(EEXIST, map(fd, 0, 0x1000, PAGE));
		ATF_CHECK_EQ(1, pauses);
		p = peer_mem_addr(&dma, 0x1000, PAGE, RW);
		if (fns[i] == unmap_idle) {
			ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x1000, PAGE));
			ATF_CHECK_EQ(2, pauses);
			/* Without a call of peer_mem_idle(), nothing. */
			peer_mem_drop(&dma);
			ATF_CHECK_EQ(2, pauses);
			ATF_CHECK(peer_mem_idle(&dma));
			peer_mem_drop(&dma);
			peer_mem_drop(&dma);
			ATF_CHECK_EQ(3, pauses);
			ATF_CHECK(peer_mem_idle(&dma));
		} else
			ATF_CHECK(!peer_mem_idle(&dma));
		check_paused(p, fns[i]);
		ATF_CHECK(!peer_mem_idle(&dma));
		ATF_CHECK_MSG(!mapped_after, "unmapped after the pause");
	}
	ATF_CHECK_EQ(0, dma.n);

	/* Memory that is gone stays so until peer_mem_reset(). */
	ATF_REQUIRE_EQ(0, map(fd, 0, 0x1000, PAGE));
	ATF_CHECK(!peer_mem_gone(&dma, &gpa));
	peer_mem_lose(&dma, 0x1234);
	check_addr(0x1000, 1, NULL);
	ATF_REQUIRE_EQ(0, map(fd, 0, 0x2000, PAGE));
	check_addr(0x1000, 1, NULL);
	check_addr(0x2000, 1, NULL);
	peer_mem_clear(&dma);
	ATF_REQUIRE_EQ(0, map(fd, 0, 0x1000, PAGE));
	check_addr(0x1000, 1, NULL);
	ATF_CHECK(peer_mem_gone(&dma, &gpa));
	ATF_CHECK_EQ(0x1234, gpa);
	peer_mem_reset(&dma);
	ATF_CHECK(!peer_mem_gone(&dma, &gpa));
	ATF_REQUIRE_EQ(0, map(fd, 0, 0x1000, PAGE));
	ATF_CHECK(peer_mem_addr(&dma, 0x1000, PAGE, RW) != NULL);
	peer_mem_clear(&dma);
}

TEST(host, "peer_mem_host() finds the range of an address, unless it changes")
{
	struct peer_mem_host host;
	uint8_t *p;
	int fd;

	start(0);
	fd = memory(0, 8 * PAGE, SEALS);
	ATF_REQUIRE_EQ(0, map(-1, 0, 1UL << 48, 1UL << 48));
	ATF_REQUIRE_EQ(0, map(fd, 0, 0x4000, 2 * PAGE));
	ATF_REQUIRE_EQ(0, map(fd, 4 * PAGE, 0x8000, 2 * PAGE));
	p = peer_mem_addr(&dma, 0x8000, PAGE, RW);
	ATF_CHECK(!peer_mem_host(&dma, NULL, &host));
	ATF_CHECK(!peer_mem_host(&dma, &dma, &host));
	ATF_CHECK(!peer_mem_host(&dma, p + 4 * PAGE, &host));
	/* In the file, but not in a range. */
	ATF_REQUIRE(peer_mem_host(&dma, p + 2 * PAGE, &host));
	ATF_CHECK_EQ(0, host.gpa);
	ATF_REQUIRE(peer_mem_host(&dma, p + PAGE + 5, &host));
	ATF_CHECK_EQ(0x8000 + PAGE + 5, host.gpa);
	ATF_CHECK_EQ(p + PAGE, host.page);
	ATF_CHECK_EQ(PAGE, host.page_size);
	ATF_CHECK_EQ(p - 4 * PAGE, host.map);
	ATF_CHECK_EQ(8 * PAGE, host.map_size);
	dma.seq++;
	ATF_CHECK(!peer_mem_host(&dma, p, &host));
	dma.seq++;
	/* A ring may end there. */
	dma.joined[0].base = p - PAGE;
	dma.joined[0].size = PAGE;
	ATF_REQUIRE(peer_mem_host(&dma, p, &host));
	ATF_CHECK_EQ(0x8000, host.gpa);
	dma.joined[0].size = 0;
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 1UL << 48, 1UL << 48));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&dma, 0x8000, 2 * PAGE));
	ATF_REQUIRE(peer_mem_host(&dma, p, &host));
	ATF_CHECK_EQ(0, host.gpa);
	peer_mem_clear(&dma);
	ATF_CHECK(!peer_mem_host(&dma, p, &host));
}

static void
refused(int error, const char *reason, int fd, uint64_t offset, uint64_t gpa,
    uint64_t size)
{
	int got;

	why = "";
	got = map(fd, offset, gpa, size);
	ATF_CHECK_EQ_MSG(error, got, "%d, not %d (%s)", got, error, reason);
	ATF_CHECK_STREQ(reason, why);
}

static unsigned int removals;

static void
count_removal(void *arg __attribute__((__unused__)),
    const char *name __attribute__((__unused__)))
{
	removals++;
}

/* Nothing is put there. */
static const struct peer_keep none_kept = { .pke_remove = count_removal };

TEST(reasons, "A range that is refused has an errno and a reason")
{
	const char *const bad_range =
	    "range is empty, wraps or is not a multiple of pages";
	const char *const past_end = "range reaches past the end of its file";
	int fd, i;

	start(8 * PAGE);
	fd = memory(0, 16 * PAGE, SEALS);
	refused(EINVAL, bad_range, fd, 0, 0, 0);
	refused(EINVAL, bad_range, fd, 0, PAGE, 0);
	refused(EINVAL, bad_range, -1, 0, 0, 0);
	refused(EINVAL, bad_range, fd, 0, 1, PAGE);
	refused(EINVAL, bad_range, fd, 0, 0, PAGE + 1);
	refused(EINVAL, bad_range, fd, 0, 0, PAGE / 2);
	refused(EINVAL, bad_range, fd, 1, 0, PAGE);
	refused(EINVAL, bad_range, -1, PAGE / 2, 0, PAGE);
	refused(EINVAL, bad_range, -1, 0, -(uint64_t)PAGE, 2 * PAGE);
	refused(EINVAL, bad_range, -1, 0, 2 * PAGE, -(uint64_t)PAGE);
	refused(EPERM, "memory is not a memfd sealed against shrinking",
	    memory(0, PAGE, 0), 0, 0, PAGE);
	refused(EINVAL, past_end, fd, 16 * PAGE, 0, PAGE);
	refused(EINVAL, past_end, fd, 17 * PAGE, 0, PAGE);
	refused(EINVAL, past_end, fd, 15 * PAGE, 0, 2 * PAGE);
	refused(ENOSPC, "too much memory", fd, 0, 0, 9 * PAGE);
	fstat_error = EIO;
	refused(EINVAL, past_end, fd, 0, 0, PAGE);
	fstat_error = 0;
	/* The place in the table is free, whatever was in that memory. */
	peer_mem_set_keep(&dma, &none_kept);
	mmap_error = ENOMEM;
	refused(ENOMEM, "memory cannot be mapped", fd, 0, 0, PAGE);
	ATF_CHECK_EQ(ENOMEM, peer_mem_map(&dma, fd, 0, 0, PAGE, PROT_READ,
	    &why));
	ATF_CHECK_EQ(RW, mmap_prot);
	ATF_CHECK_EQ(0, dma.mapping[0].size);
	ATF_CHECK_EQ(0, removals);
	peer_mem_set_keep(&dma, NULL);
	mmap_error = 0;
	malloc_fails = true;
	refused(ENOMEM, "no memory for the table of ranges", fd, 0, 0, PAGE);
	malloc_fails = false;
	drop_idle(&dma);
	ATF_CHECK_EQ(0, dma.mapped);
	ATF_REQUIRE_EQ(0, map(-1, 0, 0x10000, 2 * PAGE));
	refused(EEXIST, "range overlaps another", -1, 0, 0x11000, PAGE);
	refused(EEXIST, "range overlaps another", -1, 0, 0xf000, 2 * PAGE);
	for (i = 1; i < PEER_MEM_MAX; i++) {
		malloc_fails = i == PEER_MEM_LEAF;
		if (malloc_fails)
			refused(ENOMEM, "no memory for the table of ranges", -1,
			    0, (uint64_t)i << 20, PAGE);
		malloc_fails = false;
		ATF_REQUIRE_EQ(0, map(-1, 0, (uint64_t)i << 20, PAGE));
	}
	refused(ENOSPC, "too many ranges", -1, 0, 0, PAGE);
	peer_mem_clear(&dma);
}

static void
no_action(void *arg __attribute__((__unused__)))
{
}

/* Two pages in another order may be a ring; mmap(2) fails with this error. */
static void
check_join(int fd, int error, bool expected)
{
	uint8_t *p;

	peer_mem_set_wanted(&dma, no_action);
	ATF_REQUIRE_EQ(0, map(fd, 4 * PAGE, 0, PAGE));
	ATF_REQUIRE_EQ(0, map(fd, 0, PAGE, 2 * PAGE));
	check_addr(0, 2 * PAGE, NULL);
	mmap_error = error;
	ATF_CHECK_EQ(expected, peer_mem_join(&dma));
	mmap_error = 0;
	p = peer_mem_addr(&dma, 0, 2 * PAGE, RW);
	ATF_CHECK_EQ(expected, p != NULL);
	/* The ring ends there. */
	if (expected)
		ATF_CHECK_EQ(-1, pwrite(fd, p + 2 * PAGE, 1, 0));
	peer_mem_clear(&dma);
}

TEST(pages, "Memory is in normal pages, or in huge ones of a power of 2")
{
	static const struct {
		unsigned long type;
		long page;		/* f_bsize */
		bool ok;
	} fs[] = {
		{ TMPFS_MAGIC, PAGE, true },
		{ HUGETLBFS_MAGIC, 2 * PAGE, true },
		{ HUGETLBFS_MAGIC, 4 * PAGE, true },
		{ HUGETLBFS_MAGIC, PAGE, false },
		{ HUGETLBFS_MAGIC, PAGE / 2, false },
		{ HUGETLBFS_MAGIC, 3 * PAGE, false },
		{ HUGETLBFS_MAGIC, 0, false },
		{ RAMFS_MAGIC, PAGE, false },
		{ RAMFS_MAGIC, 2 * PAGE, false },
	};
	struct peer_mem_host host;
	struct statfs st;
	unsigned int i;
	void *p;
	int fd;

	start(0);
	fd = memory(0, 16 * PAGE, SEALS);
	memset(&st, 0, sizeof(st));
	fake_fs = &st;
	for (i = 0; i < nitems(fs); i++) {
		st.f_type = fs[i].type;
		st.f_bsize = fs[i].page;
		if (!fs[i].ok) {
			refused(EPERM, "memory is in pages of unknown size",
			    fd, 0, 0, PAGE);
			continue;
		}
		ATF_REQUIRE_EQ(0, map(fd, 0, 0, PAGE));
		p = peer_mem_addr(&dma, 0, PAGE, RW);
		ATF_REQUIRE(p != NULL && peer_mem_host(&dma, p, &host));
		ATF_CHECK_EQ(fs[i].page, (long)host.page_size);
		ATF_CHECK_EQ(PROT_READ | PROT_WRITE, mmap_prot);
		/* Only what the client has allocated is charged. */
		ATF_CHECK_EQ(MAP_SHARED | MAP_NORESERVE, mmap_flags);
		peer_mem_clear(&dma);
	}
	/* Parts of huge pages have no other order. */
	st.f_type = HUGETLBFS_MAGIC;
	st.f_bsize = 2 * PAGE;
	check_join(fd, 0, false);
	ATF_CHECK_EQ(MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, mmap_flags);
	ATF_CHECK(!is_mapped(mmap_at));
	st.f_type = TMPFS_MAGIC;
	check_join(fd, ENOMEM, false);
	check_join(fd, 0, true);
	fs_fails = true;
	refused(EPERM, "memory is in pages of unknown size", fd, 0, 0, PAGE);
	fake_fs = NULL;
	/* A part of a file that can be written, or cannot. */
	for (i = 0; i < 2; i++) {
		start(PAGE);
		fd = memory(0, 4 * PAGE, SEALS | (i == 0 ? 0 :
		    F_SEAL_FUTURE_WRITE));
		ATF_CHECK_EQ(0, peer_mem_map(&dma, fd, 2 * PAGE, 0, PAGE,
		    PROT_READ, &why));
		ATF_CHECK_EQ(i == 0 ? RW : PROT_READ, mmap_prot);
		ATF_CHECK_EQ(MAP_SHARED | MAP_NORESERVE, mmap_flags);
		ATF_CHECK_EQ(PAGE, mmap_len);
		peer_mem_clear(&dma);
	}
	/* Files with the same number, of two devices. */
	start(0);
	for (file_dev = 1; file_dev <= 2; file_dev++)
		ATF_REQUIRE_EQ(0, map(memory(0, PAGE, SEALS), 0,
		    file_dev * PAGE, PAGE));
	ATF_CHECK_EQ(2 * PAGE, dma.mapped);
	file_dev = 0;
	peer_mem_clear(&dma);
}

TEST(unmapped, "A range is unmapped once, and only as it was mapped")
{
	const size_t len = roundup2(sizeof(struct peer_mem), PAGE);
	struct peer_mem *d;
	uint8_t *p;
	int fd, i;

	start(0);
	fd = memory(0, 4 * PAGE, SEALS);
	ATF_REQUIRE_EQ(0, map(fd, 0, 0x10000, 2 * PAGE));
	ATF_REQUIRE_EQ(0, map(fd, 0, 0x20000, 2 * PAGE));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0x10000, PAGE));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0x10000, 2 * PAGE - 1));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0x11000, PAGE));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0x11000, 2 * PAGE));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0x1f000, 2 * PAGE));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0x1f000, PAGE + 1));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0, 0));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0x11000, -0x11000UL));
	ATF_CHECK_EQ(EINVAL, peer_mem_unmap(&dma, 0x30000, -0x20000UL));
	ATF_CHECK_EQ(ENOENT, peer_mem_unmap(&dma, 0x12000, 0x20000 - 0x12000));
	ATF_CHECK_EQ(ENOENT, peer_mem_unmap(&dma, 0x12000, 1));
	ATF_CHECK_EQ(2, dma.n);
	ATF_CHECK_EQ(0, peer_mem_unmap(&dma, 0x20000, 2 * PAGE));
	ATF_CHECK_EQ(ENOENT, peer_mem_unmap(&dma, 0x20000, 2 * PAGE));
	ATF_CHECK_EQ(0, peer_mem_unmap(&dma, 0x10000, 2 * PAGE));
	ATF_CHECK_EQ(ENOENT, peer_mem_unmap(&dma, 0x10000, 2 * PAGE));
	ATF_CHECK_EQ(4 * PAGE, dma.mapped);
	drop_idle(&dma);
	ATF_CHECK_EQ(0, dma.mapped);
	/* QEMU withdraws what it has shared in parts at once. */
	for (i = 0; i < 4; i++)
		ATF_REQUIRE_EQ(0, map(fd, i * PAGE, 0x10000 + i * 2 * PAGE,
		    PAGE));
	ATF_CHECK_EQ(0, peer_mem_unmap(&dma, 0x11000, 4 * PAGE));
	ATF_CHECK_EQ(2, dma.n);
	ATF_CHECK_EQ(2, dma.nfiles);
	ATF_CHECK_EQ(0, peer_mem_unmap(&dma, 0, -(uint64_t)PAGE));
	ATF_CHECK_EQ(0, dma.n);
	drop_idle(&dma);
	ATF_CHECK_EQ(0, dma.mapped);

	/* A full table that ends where the process's memory does. */
	p = mmap(NULL, len + PAGE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	ATF_REQUIRE(p != MAP_FAILED);
	ATF_REQUIRE_EQ(0, mprotect(p + len, PAGE, PROT_NONE));
	d = (void *)(p + len - sizeof(*d));
	peer_mem_init(d, 0, on_pause, &dma);
	for (i = 0; i < PEER_MEM_MAX; i++)
		ATF_REQUIRE_EQ(0, peer_mem_map(d, -1, 0, (uint64_t)i << 20,
		    PAGE, RW, &why));
	ATF_CHECK_EQ(NULL, peer_mem_addr(d, UINT64_MAX, 1, RW));
	ATF_CHECK_EQ(ENOENT, peer_mem_unmap(d, (uint64_t)i << 20, PAGE));
	ATF_CHECK_EQ(0, peer_mem_unmap(d, 0, PAGE));
	for (; i > 1; i--)
		ATF_REQUIRE_EQ(0, peer_mem_unmap(d, ((uint64_t)i - 1) << 20,
		    PAGE));
	ATF_CHECK_EQ(0, d->nleaves);
	ATF_CHECK_EQ(0, mallocs);
}

static uint32_t	stop;
static struct peer_mem shared;

static void
no_pause(void *arg __attribute__((__unused__)),
    bool pause __attribute__((__unused__)))
{
}

/* Map another file, and unmap it, with its mapping. */
static void *
churn(void *arg)
{
	const char *reason;
	int fd;

	fd = memory(0, PAGE, SEALS);
	while (atomic_load_32(&stop) == 0) {
		ATF_REQUIRE_EQ(0, peer_mem_map(&shared, fd, 0, PAGE, PAGE,
		    RW, &reason));
		ATF_REQUIRE_EQ(0, peer_mem_unmap(&shared, PAGE, PAGE));
		drop_idle(&shared);
	}
	return (arg);
}

TEST(tearing, "peer_mem_host() finds a mapping as it is while others come and "
    "go")
{
	const uint64_t gpa = 0x100000;
	struct peer_mem_host host;
	pthread_t thread;
	uint8_t *p;
	uint32_t found, i;
	int fd, first;

	peer_mem_init(&shared, 0, no_pause, NULL);
	/* The other file's mapping is the first. */
	fd = memory(0, 2 * PAGE, SEALS);
	first = memory(0, PAGE, SEALS);
	ATF_REQUIRE_EQ(0, peer_mem_map(&shared, first, 0, 0, PAGE, RW, &why));
	ATF_REQUIRE_EQ(0, peer_mem_map(&shared, fd, 0, gpa, 2 * PAGE, RW,
	    &why));
	ATF_REQUIRE_EQ(0, peer_mem_unmap(&shared, 0, PAGE));
	drop_idle(&shared);
	p = peer_mem_addr(&shared, gpa, PAGE, RW);
	/* It does not look at ranges: no access keeps them as they are. */
	peer_mem_lose(&shared, gpa);
	ATF_REQUIRE_EQ(0, pthread_create(&thread, NULL, churn, NULL));
	for (found = i = 0; i < 3000000 || found < 1000; i++) {
		memset(&host, 0, sizeof(host));
		/* As the main thread does. */
		if (i % 64 == 0)
			(void)peer_mem_idle(&shared);
		if (!peer_mem_host(&shared, p + PAGE, &host))
			continue;
		found++;
		ATF_REQUIRE_EQ(0, host.gpa);
		ATF_REQUIRE_EQ(p, host.map);
		ATF_REQUIRE_EQ(2 * PAGE, host.map_size);
	}
	atomic_store_32(&stop, 1);
	ATF_REQUIRE_EQ(0, pthread_join(thread, NULL));
	peer_mem_clear(&shared);
}

TEST_PROGRAM
