/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Errors as values: valed_why.h.  Texts of files may have control characters,
 * which must not reach a terminal.
 */

#include <err.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "peer_log.h"
#include "valed_why.h"

bool
valed_why_setv(struct valed_why *why, int status, const char *fmt, va_list ap)
{
	if (why->wy_status != 0)
		return (false);
	why->wy_status = status;
	vsnprintf(why->wy_text, sizeof(why->wy_text), fmt, ap);
	peer_log_clean(why->wy_text, strlen(why->wy_text), false);
	return (false);
}

bool
valed_why_set(struct valed_why *why, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	valed_why_setv(why, status, fmt, ap);
	va_end(ap);
	return (false);
}

void
valed_warnx(struct valed_why *first, const char *fmt, ...)
{
	struct valed_why line = { .wy_status = 0 };
	va_list ap;

	va_start(ap, fmt);
	valed_why_setv(&line, EX_SOFTWARE, fmt, ap);
	va_end(ap);
	warnx("%s", line.wy_text);
	if (first != NULL && first->wy_status == 0)
		*first = line;
}
