/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Included by each file that mutants.py has rewritten.  MUTANT(n) is true in a
 * process that runs mutant n, which is named by the environment:
 *
 *	MUTANT=n		run mutant n
 *	MUTANT_COVER=file	run none, and set byte n of the file when
 *				MUTANT(n) is first evaluated
 *
 * The table has one byte for each mutant, so that a mutant that is off costs a
 * load and a branch.  The file is mapped, so that child processes and those
 * that abort leave their bytes, too.
 *
 * Tests wrap close(2), ftruncate(2), mmap(2) and open(2), and note each call;
 * those here do the same under other names.  They may be functions with mutants
 * themselves: what they reach is copied.
 *
 * A module of Linux's has a parameter in place of the environment:
 * mutant_linux.c.
 *
 * The definitions are weak: every program has one copy, from whichever object
 * the linker meets first.
 */

#ifndef _MUTANT_H_
#define	_MUTANT_H_

#ifdef __KERNEL__
/* mutant_linux.c */
extern unsigned char mutant_table[];
int mutant_slow(int n);
#else
#include <sys/mman.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define	MUTANT_ON	1
#define	MUTANT_RECORD	2

__attribute__((__weak__)) unsigned char mutant_table[MUTANT_MAX];
__attribute__((__weak__)) unsigned char *mutant_cover;

__attribute__((__weak__, __constructor__)) void
mutant_init(void)
{
	static unsigned char early[MUTANT_MAX];
	unsigned char *map;
	const char *s;
	int fd, i;

	if ((s = getenv("MUTANT")) != NULL) {
		i = atoi(s);
		if (i > 0 && i < MUTANT_MAX)
			mutant_table[i] = MUTANT_ON;
	} else if (mutant_cover == NULL &&
	    (s = getenv("MUTANT_COVER")) != NULL) {
		mutant_cover = early;
		for (i = 0; i < MUTANT_MAX; i++)
			mutant_table[i] = MUTANT_RECORD;
		fd = openat64(AT_FDCWD, s, O_RDWR | O_CLOEXEC);
		if (fd == -1 || ftruncate64(fd, MUTANT_MAX) == -1)
			abort();
		map = (unsigned char *)mmap64(NULL, MUTANT_MAX,
		    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			abort();
		close_range(fd, fd, 0);
		mutant_cover = map;
		for (i = 0; i < MUTANT_MAX; i++)
			map[i] |= early[i];
	}
}

__attribute__((__weak__, __noinline__)) int
mutant_slow(int n)
{
	if (mutant_table[n] == MUTANT_ON)
		return (1);
	mutant_cover[n] = 1;
	mutant_table[n] = 0;
	return (0);
}
#endif /* !__KERNEL__ */

/* The copies without fast paths are what tests compare with: no mutants. */
#ifdef NO_FAST_PATH
#define	MUTANT(n)	0
#else
#define	MUTANT(n)							\
	(__builtin_expect(mutant_table[n], 0) && mutant_slow(n))
#endif

#endif /* !_MUTANT_H_ */
