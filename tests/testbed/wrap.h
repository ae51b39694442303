/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Calls that a test takes the place of.  The program is linked with
 * -Wl,--wrap=NAME for each.
 */

#ifndef _WRAP_H_
#define	_WRAP_H_

/*
 * WRAP(type, name, parameters): what is called in place of `name'; its body
 * follows.  __real_NAME() is the function itself.
 */
#define	WRAP(type, name, ...)						\
	type	__real_##name(__VA_ARGS__);				\
	type	__wrap_##name(__VA_ARGS__);				\
	type	__wrap_##name(__VA_ARGS__)

#endif /* !_WRAP_H_ */
