/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The first error of a reload, in a process of one thread.
 */

#ifndef _VALED_ERROR_H_
#define	_VALED_ERROR_H_

#include "ctl.h"

/* Bytes of an error, with its NUL. */
#define	VALED_WHY_SIZE		CTL_RELOAD_WHY_SIZE

/*
 * From now on, remember the first line that err(3) or warn(3) prints, and send
 * it to `fd', unless that is -1, without a newline; and replace control
 * characters of what stdio prints to stderr.  May be called again.
 */
void	valed_error_begin(int fd);

/* That line without the program's name, or "". */
const char *valed_error(void);

/* Print a line that is no error. */
void	valed_error_note(const char *fmt, ...)
	    __attribute__((__format__(__printf__, 1, 2)));

/* An error that others have printed is the first one, unless there is one. */
void	valed_error_set(const char *fmt, ...)
	    __attribute__((__format__(__printf__, 1, 2)));

#endif /* !_VALED_ERROR_H_ */
