/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The calls that stubs and wrapped functions have received, as text in order.
 * One thread.
 */

#ifndef _TRACE_H_
#define	_TRACE_H_

#include <stdarg.h>

extern char	trace[16384];

/* Append to it, as printf(3) and vprintf(3). */
void	note(const char *fmt, ...)
	    __attribute__((__format__(__printf__, 1, 2)));
void	note_va(const char *fmt, va_list ap)
	    __attribute__((__format__(__printf__, 1, 0)));

/* It is this; forget it.  Needs <atf-c.h>. */
#define	CALLS(expected)							\
	do {								\
		ATF_CHECK_STREQ(expected, trace);			\
		trace[0] = '\0';					\
	} while (0)

#endif /* !_TRACE_H_ */
