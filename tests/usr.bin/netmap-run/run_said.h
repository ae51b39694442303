/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For tests of a file of netmap-run's library: what it calls is the test's own,
 * says what it is called with, and the test compares all of that.
 */

#ifndef _RUN_SAID_H_
#define	_RUN_SAID_H_

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char said_text[8192];

/* What was said since the last time.  Needs <atf-c.h>. */
#define	SAID(s) do {							\
	ATF_CHECK_STREQ(s, said_text);					\
	said_text[0] = '\0';						\
} while (0)

static void __attribute__((__format__(__printf__, 1, 2)))
say(const char *fmt, ...)
{
	const size_t len = strlen(said_text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said_text + len, sizeof(said_text) - len, fmt, ap);
	va_end(ap);
}

#endif /* !_RUN_SAID_H_ */
