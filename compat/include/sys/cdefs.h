/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * FreeBSD's <sys/cdefs.h>: macros that glibc's lacks.  glibc's own headers
 * include this file too, and a definition of __used or __noinline would break
 * them, so these two are missing.
 */

#ifndef _COMPAT_SYS_CDEFS_H_
#define	_COMPAT_SYS_CDEFS_H_

#include_next <sys/cdefs.h>

#define	__unused		__attribute__((__unused__))
#define	__aligned(x)		__attribute__((__aligned__(x)))
#define	__dead2			__attribute__((__noreturn__))
#define	__printflike(fmt, arg)					\
	__attribute__((__format__(__printf__, fmt, arg)))

#define	__predict_true(exp)	__builtin_expect(!!(exp), 1)
#define	__predict_false(exp)	__builtin_expect(!!(exp), 0)

#define	__DECONST(type, var)	((type)(__UINTPTR_TYPE__)(const void *)(var))
#define	__containerof(ptr, type, member)			\
	((type *)(void *)((char *)(ptr) - __builtin_offsetof(type, member)))

#endif /* !_COMPAT_SYS_CDEFS_H_ */
