/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>

#include <poll.h>
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

int
fds_open(void)
{
	struct pollfd pfd[512];
	int i, n = 0;

	for (i = 0; i < (int)nitems(pfd); i++)
		pfd[i] = (struct pollfd){ .fd = i };
	INVARIANT(poll(pfd, nitems(pfd), 0) != -1);
	for (i = 0; i < (int)nitems(pfd); i++)
		n += (pfd[i].revents & POLLNVAL) == 0;
	return (n);
}
