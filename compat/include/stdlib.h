/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * BSD's <stdlib.h> functions that glibc lacks.
 */

#ifndef _COMPAT_STDLIB_H_
#define	_COMPAT_STDLIB_H_

#include_next <stdlib.h>

/*
 * The decimal number `s', within [min, max].  *errstr, if wanted, becomes NULL,
 * or "invalid", "too small" or "too large"; errno is EINVAL or ERANGE then and
 * the result 0.
 */
long long strtonum(const char *s, long long min, long long max,
	    const char **errstr);

/* The program's name, without directories. */
const char *getprogname(void);

#endif /* !_COMPAT_STDLIB_H_ */
