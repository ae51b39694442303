/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stand-in for config(8)'s output: the options of GENERIC that these sources
 * depend on.
 */

#define	SMP		1
#define	VIMAGE		1
#define	DEV_NETMAP	1
#define	KDTRACE_HOOKS	1

/* Compile the assertions, too. */
#define	INVARIANTS	1
#define	INVARIANT_SUPPORT 1
