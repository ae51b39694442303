/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * BSD's string functions that glibc lacks.
 */

#ifndef _COMPAT_STRING_H_
#define	_COMPAT_STRING_H_

#include_next <string.h>

/*
 * Copy `src' to `dst', or append it.  `size' is that of `dst'; the result has a
 * NUL if size > 0 (strlcat(): if `dst' had one).  Returns the length that the
 * result has without the limit; if that is size or more, the result is
 * truncated.
 */
size_t	strlcpy(char *restrict dst, const char *restrict src, size_t size);
size_t	strlcat(char *restrict dst, const char *restrict src, size_t size);

#endif /* !_COMPAT_STRING_H_ */
