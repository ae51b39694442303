/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * strtonum(3).
 */

#include <errno.h>
#include <stdlib.h>

long long
strtonum(const char *s, long long min, long long max, const char **errstr)
{
	const char *why;
	char *end;
	long long n;
	int error, saved;

	saved = errno;
	errno = 0;
	n = strtoll(s, &end, 10);
	if (min > max || end == s || *end != '\0') {
		why = "invalid";
		error = EINVAL;
	} else if (n < min || (n == min && errno == ERANGE)) {
		why = "too small";
		error = ERANGE;
	} else if (n > max || errno == ERANGE) {
		why = "too large";
		error = ERANGE;
	} else {
		why = NULL;
		error = saved;
	}
	errno = error;
	if (errstr != NULL)
		*errstr = why;
	return (why == NULL ? n : 0);
}
