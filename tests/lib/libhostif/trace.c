/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trace.h"

char	trace[16384];

void
note_va(const char *fmt, va_list ap)
{
	const size_t len = strlen(trace);

	vsnprintf(trace + len, sizeof(trace) - len, fmt, ap);
}

void
note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note_va(fmt, ap);
	va_end(ap);
}
