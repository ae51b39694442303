/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _KERNEL_FIT_H_
#define	_KERNEL_FIT_H_

#include <stdbool.h>

/*
 * Return whether a bhyve that was built from the sources of one kernel may run
 * on another: the same, or a later one of its branch, as for modules
 * (MODULE_KERNEL_MAXVER).  Both versions as from getosreldate(3), 1501000 for
 * 15.1.  Any thread.
 */
bool	kernel_fits(int built, int running);

#endif /* !_KERNEL_FIT_H_ */
