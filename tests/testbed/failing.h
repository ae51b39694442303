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

#include "wrap.h"

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

#endif /* !_FAILING_H_ */
