/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Tests of assertions.
 */

#ifndef _ABORTS_H_
#define	_ABORTS_H_

#include <stdbool.h>

/*
 * Call fn(arg) in a child process.  Returns true if it aborts after it has
 * printed `text', which is part of the assertion's expression.  fn must take
 * the locks that it needs: the child does not own those of its parent.
 */
bool	aborts(void (*fn)(void *), void *arg, const char *text);

#endif /* !_ABORTS_H_ */
