/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Windows over a program's mappings: over which of those that /proc has, and
 * over which part of one that has just been made.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <atf-c.h>

#include "netmap_run.h"
#include "run_memory.h"
#include "run_said.h"
#include "test.h"

/* The memory's descriptor is 5, the window's 6. */
static struct vale_client_port port = { .cp_memory = 5, .cp_window = 6,
    .cp_window_size = 0x10000, .cp_reg = { .nr_offset = 0x20040,
    .nr_memsize = 0x80000 } };
static const struct stat memory = { .st_dev = 0x801 /* 8, 1 */, .st_ino = 77 };

#define	MEMORY	" 08:01 77 /memfd:vale-memory (deleted)\n"
#define	WINDOW	" 00:01 99 /memfd:vale-window (deleted)\n"

/* What there is in /proc/self/maps; what fails. */
static const char *text = "";
static size_t	at;
static size_t	chunk = SIZE_MAX;	/* bytes that a read has */
static int	open_error, read_error, fstat_error, mmap_error;

static void *
the_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	ATF_CHECK_EQ(6, fd);
	say(" %p,%#zx,%d,%#x,%#jx", addr, len, prot, flags, (intmax_t)offset);
	errno = mmap_error;
	return (mmap_error != 0 ? MAP_FAILED : addr);
}

const struct run_calls *
run_calls(void)
{
	static const struct run_calls calls = { .mmap = the_mmap };

	return (&calls);
}

int	__wrap_fstat(int, struct stat *);
FILE	*__wrap_fopen(const char *, const char *);
void	*__wrap_reallocarray(void *, size_t, size_t);

static ssize_t
text_read(void *cookie __unused, char *buf, size_t n)
{
	n = MIN(MIN(n, strlen(text) - at), chunk);
	if (n == 0 && read_error != 0) {
		errno = read_error;
		return (-1);
	}
	memcpy(buf, text + at, n);
	at += n;
	return (n);
}

static int
text_close(void *cookie __unused)
{
	say(" close");
	return (0);
}

FILE *
__wrap_fopen(const char *path, const char *mode)
{
	const cookie_io_functions_t io = { .read = text_read,
	    .close = text_close };

	ATF_CHECK_STREQ("/proc/self/maps", path);
	ATF_CHECK_STREQ("re", mode);
	say(" open");
	at = 0;
	errno = open_error;
	return (open_error != 0 ? NULL : fopencookie(NULL, "r", io));
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return (__wrap_realloc(p, n * size));
}

int
__wrap_fstat(int fd, struct stat *st)
{
	ATF_CHECK_EQ(5, fd);
	if (fstat_error != 0) {
		errno = fstat_error;
		return (-1);
	}
	*st = memory;
	return (0);
}

/* A mapping of the memory, as a program makes it. */
static int
made_mapping(size_t len, int flags, off_t offset)
{
	return (run_maps_memory(&port, &memory, (void *)0x500000, len,
	    PROT_READ, flags, offset));
}

TEST(mapping, "The part of a mapping that is the window's")
{
	static const struct {
		size_t	len;
		off_t	offset;
		const char *said;
	} rows[] = {
		{ 0x80000, 0, " 0x520000,0x10000,1,0x11,0" },
		{ 0x30000, 0, " 0x520000,0x10000,1,0x11,0" },
		{ 0x2f000, 0, " 0x520000,0xf000,1,0x11,0" },
		{ 0x21000, 0, " 0x520000,0x1000,1,0x11,0" },
		{ 0x20000, 0, "" },
		{ 0x1000, 0, "" },
		{ 0x1000, 0x1f000, "" },
		{ 0x2000, 0x1f000, " 0x501000,0x1000,1,0x11,0" },
		{ 0x1000, 0x20000, " 0x500000,0x1000,1,0x11,0" },
		{ 0x1000, 0x21000, " 0x500000,0x1000,1,0x11,0x1000" },
		{ 0x80000, 0x2f000, " 0x500000,0x1000,1,0x11,0xf000" },
		{ 0x80000, 0x30000, "" },
	};
	struct stat other = memory;
	unsigned int i;

	for (i = 0; i < nitems(rows); i++) {
		ATF_CHECK_EQ_MSG(0, made_mapping(rows[i].len, MAP_SHARED,
		    rows[i].offset), "%u", i);
		SAID(rows[i].said);
	}
	/* The second mapping is shared or private as the first one is. */
	ATF_CHECK_EQ(0, made_mapping(0x80000, MAP_PRIVATE | MAP_NORESERVE, 0));
	SAID(" 0x520000,0x10000,1,0x12,0");
	ATF_CHECK_EQ(0, made_mapping(0x80000, MAP_SHARED | MAP_POPULATE |
	    MAP_FIXED_NOREPLACE, 0));
	SAID(" 0x520000,0x10000,1,0x11,0");
	/* Of other memory. */
	other.st_ino++;
	ATF_CHECK_EQ(0, run_maps_memory(&port, &other, (void *)0x500000,
	    0x80000, PROT_READ, MAP_SHARED, 0));
	other = memory;
	other.st_dev++;
	ATF_CHECK_EQ(0, run_maps_memory(&port, &other, (void *)0x500000,
	    0x80000, PROT_READ, MAP_SHARED, 0));
	SAID("");
	mmap_error = ENOMEM;
	ATF_CHECK_EQ(-1, made_mapping(0x80000, MAP_SHARED, 0));
	ATF_CHECK_EQ(ENOMEM, errno);
	SAID(" 0x520000,0x10000,1,0x11,0");
	fstat_error = EBADF;
	ATF_CHECK_EQ(-1, made_mapping(0x80000, MAP_SHARED, 0));
	ATF_CHECK_EQ(EBADF, errno);
	SAID("");
}

/* Let there be a mapping, or nothing is looked for. */
static void
mapped(void)
{
	ATF_REQUIRE_EQ(0, made_mapping(0x1000, MAP_SHARED, 0));
	SAID("");
}

TEST(found, "The window of a new port is mapped where the memory is")
{
	static const struct {
		const char *text;
		const char *said;
	} rows[] = {
		{ "", "" },
		/* Whole, at two places, among others. */
		{ "500000-580000 rw-s 00000000" MEMORY,
		    " 0x520000,0x10000,3,0x11,0" },
		{ "1000-2000 r-xp 00000000 08:01 76 /bin/x\n"
		    "500000-580000 r--s 00000000" MEMORY
		    "600000-601000 rw-p 00000000 00:00 0 \n"
		    "700000-780000 -w-s 00000000" MEMORY
		    "7f000000-7f001000 rw-p 00000000 00:00 0 [stack]\n",
		    " 0x520000,0x10000,1,0x11,0 0x720000,0x10000,2,0x11,0" },
		{ "500000-580000 ---s 00000000" MEMORY,
		    " 0x520000,0x10000,0,0x11,0" },
		/* A part. */
		{ "520000-530000 rw-s 00020000" MEMORY,
		    " 0x520000,0x10000,3,0x11,0" },
		{ "521000-530000 rw-s 00021000" MEMORY, "" },
		{ "520000-52f000 rw-s 00020000" MEMORY, "" },
		{ "500000-520000 rw-s 00000000" MEMORY, "" },
		{ "530000-580000 rw-s 00030000" MEMORY, "" },
		/* Around windows of others, once. */
		{ "500000-510000 rw-s 00000000" MEMORY
		    "510000-520000 rw-s 00000000" WINDOW
		    "520000-580000 rw-s 00020000" MEMORY,
		    " 0x520000,0x10000,3,0x11,0" },
		/* Over a window of a port that has gone; not over others. */
		{ "500000-520000 rw-s 00000000" MEMORY
		    "520000-530000 rw-s 00000000" WINDOW
		    "530000-580000 rw-s 00030000" MEMORY,
		    " 0x520000,0x10000,3,0x11,0" },
		{ "500000-520000 rw-s 00000000" MEMORY
		    "520000-530000 rw-s 00000000 00:01 99 /memfd:vale-windo\n"
		    "530000-580000 rw-s 00030000" MEMORY, "" },
		{ "500000-520000 rw-s 00000000" MEMORY
		    "520000-52f000 rw-s 00000000" WINDOW
		    "530000-580000 rw-s 00030000" MEMORY, "" },
		/* In two pieces, one of which a program has protected. */
		{ "500000-528000 r--s 00000000" MEMORY
		    "528000-580000 rw-s 00028000" MEMORY,
		    " 0x520000,0x10000,1,0x11,0" },
		/* The second of two has it whole. */
		{ "500000-528000 rw-s 00000000" MEMORY
		    "600000-680000 rw-s 00000000" MEMORY,
		    " 0x620000,0x10000,3,0x11,0" },
		/* A copy on write; other memory. */
		{ "500000-580000 rw-p 00000000" MEMORY, "" },
		{ "500000-580000 rw-s 00000000 08:01 78 /x\n", "" },
		{ "500000-580000 rw-s 00000000 08:02 77 /x\n", "" },
		{ "500000-580000 rw-s 00000000 09:01 77 /x\n", "" },
		/* Only windows. */
		{ "500000-580000 rw-s 00000000" WINDOW, "" },
		/* No mapping of the kernel's; that of the first byte at 0. */
		{ "520000-530000 rw-s\n", "" },
		{ "500000-580000 rw-s 00000000 08:01\n", "" },
		{ "20000-30000 rw-s 00020000" MEMORY, "" },
		/* Without an end of line. */
		{ "500000-580000 rw-s 00000000 08:01 77 /x",
		    " 0x520000,0x10000,3,0x11,0" },
	};
	char said[256];
	unsigned int i;

	/* Without any, /proc is not read. */
	fstat_error = EBADF;
	text = rows[1].text;
	ATF_CHECK_EQ(0, run_maps_port(&port));
	SAID("");
	fstat_error = 0;
	mapped();
	for (i = 0; i < nitems(rows); i++) {
		text = rows[i].text;
		chunk = i % 2 == 0 ? SIZE_MAX : 7;
		ATF_CHECK_EQ_MSG(0, run_maps_port(&port), "%u", i);
		snprintf(said, sizeof(said), " open close%s", rows[i].said);
		SAID(said);
		ATF_CHECK_EQ(0, blocks);
	}
}

/* A text of `n' bytes with a mapping at its end. */
static const char *
long_text(size_t n)
{
	static const char last[] = "500000-580000 rw-s 00000000" MEMORY;
	static char buf[300000];

	memset(buf, 'x', n);
	memcpy(buf + n - strlen(last) - 1, "\n", 1);
	strcpy(buf + n - strlen(last), last);
	return (buf);
}

TEST(long_maps, "All of /proc/self/maps is read")
{
	static const size_t sizes[] = { 65534, 65535, 65536, 65537, 131070,
	    131071, 131072, 280000 };
	unsigned int i;

	mapped();
	for (i = 0; i < nitems(sizes); i++) {
		text = long_text(sizes[i]);
		chunk = i % 2 == 0 ? SIZE_MAX : 4096;
		ATF_CHECK_EQ(0, run_maps_port(&port));
		SAID(" open close 0x520000,0x10000,3,0x11,0");
		ATF_CHECK_EQ(0, blocks);
	}
}

TEST(errors, "What fails is an error, and leaves no memory nor descriptor")
{
	int i;

	mapped();
	text = "500000-580000 rw-s 00000000" MEMORY
	    "600000-680000 rw-s 00000000" MEMORY;
	mmap_error = ENOMEM;
	ATF_CHECK_EQ(-1, run_maps_port(&port));
	SAID(" open close 0x520000,0x10000,3,0x11,0");
	ATF_CHECK_EQ(0, blocks);
	fstat_error = EBADF;
	ATF_CHECK_EQ(-1, run_maps_port(&port));
	SAID("");
	fstat_error = 0;
	open_error = EMFILE;
	ATF_CHECK_EQ(-1, run_maps_port(&port));
	SAID(" open");
	ATF_CHECK_EQ(0, blocks);
	open_error = 0;
	read_error = EIO;
	ATF_CHECK_EQ(-1, run_maps_port(&port));
	SAID(" open close");
	ATF_CHECK_EQ(0, blocks);
	/* Space for each mapping. */
	read_error = 0;
	for (i = 0; i < 2; i++) {
		fails = made + i;
		ATF_CHECK_EQ(-1, run_maps_port(&port));
		SAID(" open close");
		ATF_CHECK_EQ(0, blocks);
	}
}

TEST_PROGRAM
