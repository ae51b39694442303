/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Where the program has mapped memory.  netmap_run.h.
 *
 * A program maps a memory once, by any descriptor of it, and uses all ports and
 * pipes there through that mapping, also those that it opens later.  So the
 * window of each (vale_layout.h) has to be mapped over every mapping of its
 * memory.  Which there are, the kernel says: a program may have changed or
 * removed any.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netmap_run.h"
#include "vale_layout.h"

#define	WINDOW_NAME	"/memfd:vale-window "	/* valed's vale_memory.c */

/* A line of /proc/self/maps. */
struct map {
	uintptr_t	 start;
	uintptr_t	 end;
	uintptr_t	 bias;		/* of `start', less its offset */
	bool		 memory;	/* of the memory that is looked for, */
	bool		 window;		/* or of a window of any */
	bool		 shared;
	int		 prot;
};

/* Read all of a file that has no size; free(). */
static char *
read_all(const char *path)
{
	size_t len = 0, size = 65536;
	char *buf = malloc(size), *more;
	int fd = run_calls()->open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	while (buf != NULL && fd != -1) {
		n = read(fd, buf + len, size - len - 1);
		if (n <= 0)
			break;
		len += n;
		if (len + 1 < size)
			continue;
		more = realloc(buf, size *= 2);
		if (more == NULL)
			break;
		buf = more;
	}
	if (fd != -1)
		run_calls()->close(fd);
	if (n != 0) {
		free(buf);
		return (NULL);
	}
	buf[len] = '\0';
	return (buf);
}

/* Parse a line.  False if it is of neither kind. */
static bool
map_parse(const char *line, const struct stat *st, struct map *m)
{
	unsigned long start, end, offset, ino;
	unsigned int dev[2];
	char perms[5];
	int at;

	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, perms,
	    &offset, &dev[0], &dev[1], &ino, &at) != 7)
		return (false);
	*m = (struct map){ .start = start, .end = end, .bias = start - offset,
	    .memory = ino == st->st_ino && dev[0] == major(st->st_dev) &&
	    dev[1] == minor(st->st_dev),
	    .window = strncmp(line + at, WINDOW_NAME, strlen(WINDOW_NAME)) == 0,
	    .shared = perms[3] == 's',
	    .prot = (perms[0] == 'r' ? PROT_READ : 0) |
	    (perms[1] == 'w' ? PROT_WRITE : 0) };
	return (m->memory || m->window);
}

static unsigned int
maps_parse(char *text, const struct stat *st, struct map *maps)
{
	unsigned int n = 0;
	char *line, *save;

	for (line = strtok_r(text, "\n", &save); line != NULL;
	    line = strtok_r(NULL, "\n", &save))
		n += map_parse(line, st, &maps[n]);
	return (n);
}

/* Find all mappings, in their order; free().  NULL on an error. */
static struct map *
maps_find(const struct stat *st, unsigned int *n)
{
	char *text = read_all("/proc/self/maps");
	struct map *maps = NULL;
	unsigned int lines = 1;
	const char *p;

	for (p = text; p != NULL && *p != '\0'; p++)
		lines += *p == '\n';
	if (text != NULL)
		maps = calloc(lines, sizeof(*maps));
	if (maps != NULL)
		*n = maps_parse(text, st, maps);
	free(text);
	return (maps);
}

/* Return whether there is nothing else from `start' to before `end'. */
static bool
maps_cover(const struct map *maps, unsigned int n, uintptr_t start,
    uintptr_t end)
{
	unsigned int i;

	for (i = 0; i < n && start < end; i++)
		if (maps[i].start <= start && maps[i].end > start)
			start = maps[i].end;
	return (start >= end);
}

/*
 * Map the window over what there is of its place in a mapping of `len' bytes
 * from `offset' of the memory on.
 */
static int
map_window(const struct vale_client_port *cp, char *addr, size_t len, int prot,
    int flags, uint64_t offset)
{
	const uint64_t at = VALE_WINDOW_AT(cp->cp_reg.nr_offset);
	const uint64_t from = MAX(at, offset);
	const uint64_t to = MIN(at + cp->cp_window_size, offset + len);

	if (from >= to || run_calls()->mmap(addr + (from - offset), to - from,
	    prot, flags | MAP_FIXED, cp->cp_window, (off_t)(from - at)) !=
	    MAP_FAILED)
		return (0);
	return (-1);
}

/* The program has mapped some memory.  The ports' lock. */
static bool mapped;

int
run_maps_port(const struct vale_client_port *cp)
{
	const uint64_t at = VALE_WINDOW_AT(cp->cp_reg.nr_offset);
	uintptr_t done = 0;
	struct map *maps;
	struct stat st;
	unsigned int i, n = 0;
	int r = 0;

	if (!mapped)
		return (0);
	if (fstat(cp->cp_memory, &st) == -1)
		return (-1);
	maps = maps_find(&st, &n);
	if (maps == NULL)
		return (-1);
	for (i = 0; r == 0 && i < n; i++) {
		if (!maps[i].memory || !maps[i].shared || maps[i].bias == done)
			continue;
		done = maps[i].bias;
		if (maps_cover(maps, n, done + at, done + at +
		    cp->cp_window_size))
			r = map_window(cp, (char *)done, cp->cp_reg.nr_memsize,
			    maps[i].prot, MAP_SHARED, 0);
	}
	free(maps);
	return (r);
}

int
run_maps_memory(const struct vale_client_port *cp, const struct stat *memory,
    void *addr, size_t len, int prot, int flags, off_t offset)
{
	const int type = flags & (MAP_SHARED | MAP_PRIVATE);
	struct stat st;

	mapped = true;
	if (fstat(cp->cp_memory, &st) == -1)
		return (-1);
	if (st.st_dev != memory->st_dev || st.st_ino != memory->st_ino)
		return (0);
	return (map_window(cp, addr, len, prot, type, (uint64_t)offset));
}
