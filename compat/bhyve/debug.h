/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's console output, one line a call.  The terminal is never in raw mode
 * here, so a newline without a carriage return is enough.
 */

#ifndef _DEBUG_H_
#define	_DEBUG_H_

#include <stdio.h>

#define	PRINTLN(fmt, ...)	fprintf(stdout, fmt "\n", ##__VA_ARGS__)
#define	EPRINTLN(fmt, ...)	fprintf(stderr, fmt "\n", ##__VA_ARGS__)

#endif /* !_DEBUG_H_ */
