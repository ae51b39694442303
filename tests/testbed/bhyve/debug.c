/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <err.h>
#include <stdarg.h>
#include <stdio.h>

#include "debug.h"

static _Thread_local const char *debug_is_at;

void
debug_where(const char *where)
{
	debug_is_at = where;
}

void
debug_error(const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (debug_is_at != NULL)
		warnx("%s: %s", debug_is_at, line);
	else
		fprintf(stderr, "%s\n", line);
}
