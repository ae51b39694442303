/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* FreeBSD's atomic(9), of which <sys/systm.h> has all but this. */

#ifndef _UPSTREAM_CSB_MACHINE_ATOMIC_H_
#define	_UPSTREAM_CSB_MACHINE_ATOMIC_H_

#include <sys/systm.h>

#define	atomic_load_int(p)	__atomic_load_n(p, __ATOMIC_RELAXED)

#endif /* !_UPSTREAM_CSB_MACHINE_ATOMIC_H_ */
