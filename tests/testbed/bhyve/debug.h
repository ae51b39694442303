/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's console output, one line a call.  The terminal is never in raw mode
 * here, so a newline without a carriage return is enough.
 */

#ifndef _DEBUG_H_
#define	_DEBUG_H_

#include <stdio.h>

#define	PRINTLN(fmt, ...)	fprintf(stdout, fmt "\n", ##__VA_ARGS__)
#define	EPRINTLN(fmt, ...)	debug_error(fmt, ##__VA_ARGS__)

/*
 * What this thread prints from now on is about a configuration: it is printed
 * as by warnx(3), behind `where', such as "valed.conf:3".  NULL: it is not.
 */
void	debug_where(const char *where);

/* Print a line to stderr, of 255 characters at most behind `where'. */
void	debug_error(const char *fmt, ...)
	    __attribute__((__format__(__printf__, 1, 2)));

#endif /* !_DEBUG_H_ */
