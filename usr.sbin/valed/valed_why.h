/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Why something cannot be: an error as a value, which the caller prints.
 */

#ifndef _VALED_WHY_H_
#define	_VALED_WHY_H_

#include <stdarg.h>
#include <stdbool.h>

#include "ctl.h"

/* Bytes of a line, with its NUL. */
#define	VALED_WHY_SIZE		CTL_RELOAD_WHY_SIZE

/* Zeros: there is no error. */
struct valed_why {
	int	wy_status;		/* of sysexits.h */
	char	wy_text[VALED_WHY_SIZE]; /* a line without the program's name,
					   a newline and control characters */
};

/* Set *why, unless there is an error already.  Returns false. */
bool	valed_why_set(struct valed_why *why, int status, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 3, 4)));
bool	valed_why_setv(struct valed_why *why, int status, const char *fmt,
	    va_list ap) __attribute__((__format__(__printf__, 3, 0)));

/* Print a line on stderr, with the program's name, and set *first, or NULL. */
void	valed_warnx(struct valed_why *first, const char *fmt, ...)
	    __attribute__((__format__(__printf__, 2, 3)));

#endif /* !_VALED_WHY_H_ */
