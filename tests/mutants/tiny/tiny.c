/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Functions that are tested well, badly and not at all, each with what
 * mutants.py has to cope with: loops that a mutant makes endless, arguments of
 * macros, assertions, initializers, functions that do not return.
 */

#include <sys/param.h>
#include <sys/systm.h>

#include <stdlib.h>

#include "tiny.h"

#define	TINY_FLAG	0x4
#define	TWICE(x)	(2 * (x))

unsigned int
tiny_steps(unsigned int end, unsigned int step)
{
	static const unsigned int first = 1 - 1;
	unsigned int n;

	MPASS(step > 0);
	for (n = first; end > 0; n++)
		end -= MIN(end, step + 0);
	MPASS(end == 0);
	return (n);
}

bool
tiny_inside(int number, int low, int high)
{
	/* The test does not try `high' itself. */
	return (number >= low && number < high);
}

void
tiny_flag(unsigned int *flags)
{
	*flags |= TINY_FLAG;
}

int
tiny_max(int a, int b)
{

	return (a > b ? TWICE(a - b) - (a - 2 * b) : b);
}

void
tiny_exit(int status)
{
	exit(status);
}
