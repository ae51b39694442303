/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/* Stand-in for config(8)'s output: compile all there is. */

#define	DEVICE_POLLING	1
