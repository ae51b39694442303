/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * strlcpy(3), strlcat(3).
 */

#include <string.h>

size_t
strlcpy(char *restrict dst, const char *restrict src, size_t size)
{
	size_t len, n;

	len = strlen(src);
	if (size > 0) {
		n = len < size ? len : size - 1;
		memcpy(dst, src, n);
		dst[n] = '\0';
	}
	return (len);
}

size_t
strlcat(char *restrict dst, const char *restrict src, size_t size)
{
	size_t used;

	used = strnlen(dst, size);
	return (used + strlcpy(dst + used, src, size - used));
}
