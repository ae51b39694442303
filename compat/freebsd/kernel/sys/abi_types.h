/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Stand-in for sys/abi_types.h, which is not installed: types of 32-bit
 * programs, which these sources do not use.
 */

typedef struct {
	__uint32_t	val[2];
} freebsd32_uint64_t;
typedef __int32_t time32_t;
