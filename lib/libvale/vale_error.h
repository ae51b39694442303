/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* How functions of the library fail: libvale.h. */

#ifndef _VALE_ERROR_H_
#define	_VALE_ERROR_H_

#include <errno.h>

/* Set errno, and return -1. */
static inline int
vale_fail(int error)
{
	errno = error;
	return (-1);
}

#endif /* !_VALE_ERROR_H_ */
