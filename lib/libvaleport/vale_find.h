/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which valed a program means: that of the environment (VALE_WIRE_ENV), or else
 * the one at VALE_WIRE_PATH, or else, if just one instance of the unit
 * valed@.service has a control socket, that one.  Any thread.
 */

#ifndef _VALE_FIND_H_
#define	_VALE_FIND_H_

#include <stdbool.h>
#include <stddef.h>

/*
 * Return the path of the valed's control socket, which need not exist:
 * VALE_WIRE_PATH if no other was found.  Valid until the thread's next call.
 */
const char *vale_find_path(void);

/*
 * Return true if `error' tells that no valed could be reached.  Then `why' has
 * a line about that: there is none there, there are several, and which, or what
 * connect(2) says.
 */
bool	vale_find_error(int error, char *why, size_t size);

#endif /* !_VALE_FIND_H_ */
