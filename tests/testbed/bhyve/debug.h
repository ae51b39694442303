/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * bhyve's messages, one line a call.  The terminal is never in raw mode here,
 * so a newline without a carriage return is enough.
 */

#ifndef _DEBUG_H_
#define	_DEBUG_H_

#include <stdio.h>

#define	EPRINTLN(fmt, ...)	fprintf(stderr, fmt "\n", ##__VA_ARGS__)

#endif /* !_DEBUG_H_ */
