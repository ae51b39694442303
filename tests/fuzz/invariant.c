/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "ops.h"

void
invariant_broken(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: invariant does not hold: %s\n", file, line,
	    what);
	abort();
}
