/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * BSD's <stdlib.h> function that glibc lacks.
 */

#ifndef _COMPAT_STDLIB_H_
#define	_COMPAT_STDLIB_H_

#include_next <stdlib.h>

/*
 * Return the decimal number `s', from min to max, and set *errstr to NULL.  If
 * it is none, return 0 with errno EINVAL or ERANGE and set *errstr to
 * "invalid", "too small" or "too large".  `errstr' may be NULL.
 */
long long strtonum(const char *s, long long min, long long max,
	    const char **errstr);

#endif /* !_COMPAT_STDLIB_H_ */
