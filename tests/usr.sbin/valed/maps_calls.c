/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For valed_maps, a valed that says which of its memory may vanish: MAPS_SIGNAL
 * has it look at all of its mappings and print a line,
 *
 *	maps: COVERED in tables, KERNEL of the kernel's, UNKNOWN unknown
 *
 * and the unknown ones before that.  Memory in tables is that of which
 * peer_fault.h knows; the kernel's are rings of sockets and of requests
 * (peer_signal.c), which nobody can take away.  A mapping of a program or
 * library, or of no file, is not counted.
 */

#include <sys/types.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer_mem.h"
#include "peer_fault.h"
#include "wrap.h"

#define	MAPS_SIGNAL	SIGRTMAX

static struct peer_mem	*tables[PEER_FAULT_MAX];
static int		 maps = -1;	/* /proc/self/maps */

WRAP(int, peer_fault_add, struct peer_mem *dma, void (*lost)(void *arg),
    void *arg)
{
	const int error = __real_peer_fault_add(dma, lost, arg);
	unsigned int i;

	for (i = 0; error == 0 && i < PEER_FAULT_MAX; i++)
		if (__sync_bool_compare_and_swap(&tables[i], NULL, dma))
			break;
	return (error);
}

WRAP(void, peer_fault_remove, struct peer_mem *dma)
{
	unsigned int i;

	for (i = 0; i < PEER_FAULT_MAX; i++)
		__sync_bool_compare_and_swap(&tables[i], dma, NULL);
	__real_peer_fault_remove(dma);
}

/* The end of the mapping that has this address; 0: there is none. */
struct look {
	const uint8_t	*at;
	const uint8_t	*end;
};

static void
look_at(const void *arg, uint8_t *map, size_t size)
{
	struct look *l = (void *)(uintptr_t)arg;

	if ((size_t)(l->at - map) < size)
		l->end = map + size;
}

/* Whether all of it is in tables. */
static bool
covered(uintptr_t start, uintptr_t end)
{
	struct look l = { .at = (const uint8_t *)start };
	unsigned int i;

	while (l.at < (const uint8_t *)end) {
		l.end = NULL;
		for (i = 0; i < PEER_FAULT_MAX; i++)
			if (tables[i] != NULL)
				peer_mem_each(tables[i], look_at, &l);
		if (l.end == NULL)
			return (false);
		l.at = l.end;
	}
	return (true);
}

enum kind { IN_TABLES, KERNEL, UNKNOWN, OTHER, NKINDS };

/* What a line of the file is about. */
static enum kind
line_kind(const char *line)
{
	const char *path = strchr(line, '/');
	uintptr_t start, end;
	char *p;

	start = strtoul(line, &p, 16);
	end = strtoul(p + 1, &p, 16);
	/* " rw-s": the fourth is `s' if it is shared. */
	if (p[4] == 'p' && (path == NULL ||
	    strstr(path, " (deleted)") == NULL))
		return (OTHER);
	/* Shared without a file, with the guard: nobody has a descriptor. */
	if (strstr(line, " /dev/zero (deleted)") != NULL)
		return (OTHER);
	if (strstr(line, " socket:[") != NULL || strstr(line,
	    " /[aio]") != NULL)
		return (KERNEL);
	return (covered(start, end) ? IN_TABLES : UNKNOWN);
}

static void
on_signal(int sig __attribute__((__unused__)))
{
	static char all[1 << 20];
	unsigned int n[NKINDS] = { 0 };
	size_t len = 0;
	ssize_t got;
	char *line, *next, out[100];
	enum kind kind;

	while ((got = pread(maps, all + len, sizeof(all) - 1 - len, len)) > 0)
		len += got;
	all[len] = '\0';
	for (line = all; (next = strchr(line, '\n')) != NULL; line = next + 1) {
		*next = '\0';
		kind = line_kind(line);
		n[kind]++;
		*next = '\n';
		if (kind == UNKNOWN && write(STDERR_FILENO, line,
		    next + 1 - line) == -1)
			return;
	}
	snprintf(out, sizeof(out), "maps: %u in tables, %u of the kernel's, "
	    "%u unknown\n", n[IN_TABLES], n[KERNEL], n[UNKNOWN]);
	if (write(STDERR_FILENO, out, strlen(out)) == -1)
		return;
}

static void __attribute__((__constructor__))
maps_init(void)
{
	struct sigaction sa = { .sa_handler = on_signal,
	    .sa_flags = SA_RESTART };

	maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	sigaction(MAPS_SIGNAL, &sa, NULL);
}
