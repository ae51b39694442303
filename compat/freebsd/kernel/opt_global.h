/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/* Stand-in for config(8)'s output: no optional parts but these. */

#define	SMP		1
#define	VIMAGE		1
#define	DEV_NETMAP	1
