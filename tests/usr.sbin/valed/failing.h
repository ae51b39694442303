/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Wrapped calls that fail when the test says so.  The test has `failing', a
 * pointer to a structure of its own with an array for each call: the errors of
 * the next calls, ended by a zero.  If it is NULL, no call fails.
 */

#ifndef _FAILING_H_
#define	_FAILING_H_

#include <errno.h>
#include <stdbool.h>

/* Take the next error.  Returns false if there is none. */
static inline bool
failing_next(int *errors)
{
	const int error = errors[0];

	if (error == 0)
		return (false);
	for (; *errors != 0; errors++)
		errors[0] = errors[1];
	errno = error;
	return (true);
}

/* Whether this call fails, with errno. */
#define	FAILS(name)	(failing != NULL && failing_next(failing->name))

/* The head of a function that is linked in place of `name'. */
#define	WRAP(type, name, ...)						\
	type	__real_##name(__VA_ARGS__);				\
	type	__wrap_##name(__VA_ARGS__);				\
	type	__wrap_##name(__VA_ARGS__)

#endif /* !_FAILING_H_ */
