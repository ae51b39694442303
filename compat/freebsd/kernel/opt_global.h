/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stand-in for what config.mk of the kernel's tree writes for a module that is
 * built outside of a kernel's build.  Other options come from the modules' own
 * makefiles.
 */

#define	SMP		1
#define	MAC		1
#define	VIMAGE		1
