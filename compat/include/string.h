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
 * Copy `src' to `dst', or append it: never more than `size' bytes in all, the
 * result always ended by NUL if size > 0 (strlcat: if there was one).  Return
 * the length it would have with room enough, so that >= size tells truncation.
 */
size_t	strlcpy(char *restrict dst, const char *restrict src, size_t size);
size_t	strlcat(char *restrict dst, const char *restrict src, size_t size);

#endif /* !_COMPAT_STRING_H_ */
