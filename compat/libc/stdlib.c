/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * strtonum(3), getprogname(3), pthread_set_name_np(3).
 */

#include <errno.h>
#include <pthread_np.h>
#include <stdlib.h>
#include <string.h>

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

const char *
getprogname(void)
{
	return (program_invocation_short_name);
}

void
pthread_set_name_np(pthread_t thread, const char *name)
{
	char shortname[16];

	strlcpy(shortname, name, sizeof(shortname));
	pthread_setname_np(thread, shortname);
}
