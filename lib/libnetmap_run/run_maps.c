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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/*
 * Find all mappings, in their order, and how many; free().  Returns false
 * on an error.  The ports' lock.
 */
static bool
maps_find(const struct stat *st, struct map **maps, unsigned int *n)
{
	/* The longest so far stays for the next time. */
	static size_t size;
	static char *line;
	FILE *f = fopen("/proc/self/maps", "re");
	struct map m, *more;
	bool all = f != NULL;

	while (all && getline(&line, &size, f) != -1) {
		if (!map_parse(line, st, &m))
			continue;
		more = reallocarray(*maps, *n + 1, sizeof(m));
		all = more != NULL;
		if (all) {
			*maps = more;
			more[(*n)++] = m;
		}
	}
	all = all && feof(f);
	if (f != NULL)
		fclose(f);
	return (all);
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
	struct map *maps = NULL;
	struct stat st;
	unsigned int i, n = 0;
	int r;

	if (!mapped)
		return (0);
	if (fstat(cp->cp_memory, &st) == -1)
		return (-1);
	r = maps_find(&st, &maps, &n) ? 0 : -1;
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
