/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * FreeBSD's <sys/param.h>: macros that glibc's lacks.
 */

#ifndef _COMPAT_SYS_PARAM_H_
#define	_COMPAT_SYS_PARAM_H_

#include_next <sys/param.h>

#include <sys/cdefs.h>

#define	nitems(x)		(sizeof((x)) / sizeof((x)[0]))
/* For powers of two. */
#define	rounddown2(x, y)	((x) & ~((y) - 1))
#define	roundup2(x, y)		(((x) + ((y) - 1)) & ~((y) - 1))

#endif /* !_COMPAT_SYS_PARAM_H_ */
