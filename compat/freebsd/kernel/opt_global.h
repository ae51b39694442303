/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stand-in for config(8)'s output: GENERIC's optional parts, of which these
 * matter.
 */

#define	SMP		1
#define	VIMAGE		1
#define	DEV_NETMAP	1
#define	KDTRACE_HOOKS	1

/* Assertions are compiled, too. */
#define	INVARIANTS	1
#define	INVARIANT_SUPPORT 1
