/*-
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Whether this program's vmm(4) is the kernel's.  The versions are those of
 * getosreldate(3), 1501000 for 15.1.
 */

#ifndef _KERNEL_FIT_H_
#define	_KERNEL_FIT_H_

#include <stdbool.h>

bool	kernel_fits(int built, int running);

#endif /* !_KERNEL_FIT_H_ */
