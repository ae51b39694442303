/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* For <net/paravirt.h>: Linux's kernel has none. */

#include <linux/stddef.h>
