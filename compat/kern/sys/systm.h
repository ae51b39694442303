/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The kernel's names outside of a kernel: atomic(9), KASSERT(9), MPASS(9),
 * mtx_assert(9), and what <sys/systm.h> includes of libkern.
 *
 * Files that are built in the kernel and in user space (sys/dev/netmap,
 * sys/dev/e1000) include <sys/systm.h>.  In a kernel's build that is the
 * kernel's header; everywhere else the include path has compat/kern first, and
 * it is this one.  All other files of the project use the same names.  Each
 * means what section 9 of the manual says, in terms of C11's memory model, so
 * that ThreadSanitizer and every processor agree.
 *
 * Assertions are on if INVARIANTS is defined, as in the kernel.  Otherwise they
 * cost nothing and their expressions are not evaluated.  An assertion that
 * fails prints the expression with its file and line, and aborts.
 */

#ifndef _COMPAT_KERN_SYS_SYSTM_H_
#define	_COMPAT_KERN_SYS_SYSTM_H_

#ifdef _KERNEL
#error "compat/kern must not be in a kernel's include path"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if __STDC_HOSTED__
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <pthread_np.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#endif

/*
 * atomic(9).  Plain loads, stores and read-modify-write operations are
 * relaxed: they are atomic, and do not order other accesses.  _acq and _rel are
 * C11's acquire and release.
 *
 * FreeBSD's <machine/atomic.h> defines the same names in user space.  If a file
 * has already included that one, this header leaves them alone; if not, it
 * keeps the other one out.
 */
#ifndef _MACHINE_ATOMIC_H_
#define	_MACHINE_ATOMIC_H_

#define	ATOMIC_LOADSTORE(n, type)					\
static inline type							\
atomic_load_##n(const volatile type *p)					\
{									\
	return (__atomic_load_n(p, __ATOMIC_RELAXED));			\
}									\
static inline type							\
atomic_load_acq_##n(const volatile type *p)				\
{									\
	return (__atomic_load_n(p, __ATOMIC_ACQUIRE));			\
}									\
static inline void							\
atomic_store_##n(volatile type *p, type v)				\
{									\
	__atomic_store_n(p, v, __ATOMIC_RELAXED);			\
}									\
static inline void							\
atomic_store_rel_##n(volatile type *p, type v)				\
{									\
	__atomic_store_n(p, v, __ATOMIC_RELEASE);			\
}

/* Add, subtract; fetchadd and swap return the old value. */
#define	ATOMIC_MODIFY(n, type)					\
static inline void							\
atomic_add_##n(volatile type *p, type v)				\
{									\
	(void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED);		\
}									\
static inline void							\
atomic_add_rel_##n(volatile type *p, type v)				\
{									\
	(void)__atomic_fetch_add(p, v, __ATOMIC_RELEASE);		\
}									\
static inline void							\
atomic_subtract_##n(volatile type *p, type v)				\
{									\
	(void)__atomic_fetch_sub(p, v, __ATOMIC_RELAXED);		\
}									\
static inline type							\
atomic_fetchadd_##n(volatile type *p, type v)				\
{									\
	return (__atomic_fetch_add(p, v, __ATOMIC_RELAXED));		\
}									\
static inline type							\
atomic_swap_##n(volatile type *p, type v)				\
{									\
	return (__atomic_exchange_n(p, v, __ATOMIC_RELAXED));		\
}									\
/* Store `new' if *p is `old'.  Returns whether it did. */		\
static inline int							\
atomic_cmpset_acq_##n(volatile type *p, type old, type new)		\
{									\
	return (__atomic_compare_exchange_n(p, &old, new, 0,		\
	    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));			\
}

ATOMIC_LOADSTORE(8, uint8_t)
ATOMIC_LOADSTORE(16, uint16_t)
ATOMIC_LOADSTORE(32, uint32_t)
ATOMIC_LOADSTORE(64, uint64_t)
/* For any pointer: the kernel is built with -fno-strict-aliasing. */
typedef uintptr_t __attribute__((__may_alias__)) kern_uintptr_t;
ATOMIC_LOADSTORE(ptr, kern_uintptr_t)
ATOMIC_MODIFY(32, uint32_t)
ATOMIC_MODIFY(64, uint64_t)

/* These two take a pointer to any pointer type. */
#undef atomic_load_ptr
#undef atomic_store_ptr
#define	atomic_load_ptr(p)	__atomic_load_n((p), __ATOMIC_RELAXED)
#define	atomic_store_ptr(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELAXED)

static inline bool
atomic_load_bool(const volatile bool *p)
{
	return (__atomic_load_n(p, __ATOMIC_RELAXED));
}

static inline void
atomic_store_bool(volatile bool *p, bool v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

static inline void
atomic_thread_fence_acq(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static inline void
atomic_thread_fence_rel(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/*
 * On x86 any locked instruction is such a fence for memory that is cached, and
 * takes half the time of clang's mfence.  ThreadSanitizer knows the other one.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define	SYSTM_TSAN
#endif
#endif

static inline void
atomic_thread_fence_seq_cst(void)
{
#if defined(__x86_64__) && !defined(SYSTM_TSAN)
	__asm __volatile("lock; addl $0, -8(%%rsp)" : : : "memory", "cc");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#undef ATOMIC_LOADSTORE
#undef ATOMIC_MODIFY
#endif /* !_MACHINE_ATOMIC_H_ */

/*
 * KASSERT(9): KASSERT(expression, (format, ...)), MPASS(expression).
 */
#undef KASSERT
#undef MPASS

#ifdef INVARIANTS
#if __STDC_HOSTED__
static inline void __attribute__((__noreturn__, __format__(printf, 1, 2)))
kassert_panic(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}
#else
/* Report a failed assertion, and end.  The program provides this function. */
void	kassert_panic(const char *fmt, ...)
	    __attribute__((__noreturn__, __format__(printf, 1, 2)));
#endif

#define	KASSERT(exp, msg) do {						\
	if (__builtin_expect(!(exp), 0))				\
		kassert_panic msg;					\
} while (0)
#else
#define	KASSERT(exp, msg)	do { } while (0)
#endif

#define	MPASS(exp)							\
	KASSERT((exp), ("Assertion %s failed at %s:%d", #exp, __FILE__,	\
	    __LINE__))

/*
 * mtx_assert(9), for a pthread_mutex_t: MA_OWNED, by the calling thread, or
 * MA_NOTOWNED, by the calling thread; another may own it.
 */
#define	MA_OWNED	1
#define	MA_NOTOWNED	0
#define	mtx_assert(m, what)						\
	KASSERT((pthread_mutex_isowned_np((pthread_mutex_t *)(uintptr_t)(m)) \
	    != 0) == (what), ("mutex %s %s at %s:%d", #m, (what) ==	\
	    MA_OWNED ? "not owned" : "owned", __FILE__, __LINE__))

#endif /* !_COMPAT_KERN_SYS_SYSTM_H_ */
