/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A fast path handles the most frequent kind of input with less code than the
 * general path, and has exactly the same effect.  For any other input it
 * returns 0, having done nothing, and the general path takes over:
 *
 *	if (!FAST_PATH(foo_single_slot(foo)))
 *		foo_any(foo);
 *
 * A test that compiles the file with NO_FAST_PATH gets the general path alone,
 * and compares the two.
 */

#ifndef _SYS_FAST_PATH_H_
#define	_SYS_FAST_PATH_H_

#ifdef NO_FAST_PATH
#define	FAST_PATH(call)		(0 && (call))
#else
#define	FAST_PATH(call)		(call)
#endif

#endif /* !_SYS_FAST_PATH_H_ */
