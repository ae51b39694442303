/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Instead of compat/kern/sys/systm.h, for the model checker: atomic(9) as calls
 * of checker.h, and assertions that end an execution.  The compiler includes it
 * before each file (-include).  Each operation that orders others is entered in
 * a table, the section mm_sites.
 */

#ifndef _RELACY_SYS_SYSTM_H_
#define	_RELACY_SYS_SYSTM_H_
/* Keep the others out. */
#define	_COMPAT_KERN_SYS_SYSTM_H_
#define	_MACHINE_ATOMIC_H_

#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <pthread_np.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"

#define	MM_SITE(operation, operand)					\
	static struct mm_site mm_site_ = { __func__, operation, operand, \
	    __FILE__, __LINE__, false };				\
	static struct mm_site *const mm_site_p				\
	    __attribute__((__section__("mm_sites"), __used__)) = &mm_site_

#define	MM_LOAD(type, p)						\
	((type)mm_load((p), sizeof(type), NULL))
#define	MM_LOAD_ACQ(type, p, text) ({					\
	MM_SITE("load_acq", text);					\
	(type)mm_load((p), sizeof(type), &mm_site_);			\
})
#define	MM_STORE(type, p, v)						\
	mm_store((p), sizeof(type), (type)(v), NULL)
#define	MM_STORE_REL(type, p, v, text) do {				\
	MM_SITE("store_rel", text);					\
	mm_store((p), sizeof(type), (type)(v), &mm_site_);		\
} while (0)
#define	MM_ADD_REL(type, p, v, text) do {				\
	MM_SITE("add_rel", text);					\
	(void)mm_add((p), sizeof(type), (type)(v), &mm_site_);		\
} while (0)
#define	MM_CMPSET_ACQ(type, p, o, n, text) ({				\
	MM_SITE("cmpset_acq", text);					\
	(int)mm_cmpset((p), sizeof(type), (type)(o), (type)(n),		\
	    &mm_site_);							\
})
#define	MM_FENCE(name, order) do {					\
	MM_SITE("fence_" name, "-");					\
	mm_fence((order), &mm_site_);					\
} while (0)

#define	atomic_load_8(p)	MM_LOAD(uint8_t, p)
#define	atomic_load_16(p)	MM_LOAD(uint16_t, p)
#define	atomic_load_32(p)	MM_LOAD(uint32_t, p)
#define	atomic_load_64(p)	MM_LOAD(uint64_t, p)
#define	atomic_load_bool(p)	MM_LOAD(bool, p)
#define	atomic_load_acq_8(p)	MM_LOAD_ACQ(uint8_t, p, #p)
#define	atomic_load_acq_32(p)	MM_LOAD_ACQ(uint32_t, p, #p)
#define	atomic_load_acq_64(p)	MM_LOAD_ACQ(uint64_t, p, #p)
#define	atomic_load_acq_ptr(p)	MM_LOAD_ACQ(uintptr_t, p, #p)
#define	atomic_store_8(p, v)	MM_STORE(uint8_t, p, v)
#define	atomic_store_32(p, v)	MM_STORE(uint32_t, p, v)
#define	atomic_store_64(p, v)	MM_STORE(uint64_t, p, v)
#define	atomic_store_bool(p, v)	MM_STORE(bool, p, v)
#define	atomic_store_rel_8(p, v)	MM_STORE_REL(uint8_t, p, v, #p)
#define	atomic_store_rel_32(p, v)	MM_STORE_REL(uint32_t, p, v, #p)
#define	atomic_store_rel_64(p, v)	MM_STORE_REL(uint64_t, p, v, #p)
#define	atomic_store_rel_ptr(p, v)	MM_STORE_REL(uintptr_t, p, v, #p)
#define	atomic_add_32(p, v)						\
	((void)mm_add((p), 4, (uint32_t)(v), NULL))
#define	atomic_add_64(p, v)						\
	((void)mm_add((p), 8, (uint64_t)(v), NULL))
#define	atomic_add_rel_32(p, v)	MM_ADD_REL(uint32_t, p, v, #p)
#define	atomic_subtract_32(p, v)					\
	((void)mm_add((p), 4, -(uint32_t)(v), NULL))
#define	atomic_subtract_64(p, v)					\
	((void)mm_add((p), 8, -(uint64_t)(v), NULL))
#define	atomic_fetchadd_32(p, v)					\
	((uint32_t)mm_add((p), 4, (uint32_t)(v), NULL))
#define	atomic_swap_32(p, v)						\
	((uint32_t)mm_swap((p), 4, (uint32_t)(v)))
#define	atomic_cmpset_acq_32(p, o, n)					\
	MM_CMPSET_ACQ(uint32_t, p, o, n, #p)
#define	atomic_thread_fence_acq()	MM_FENCE("acq", __ATOMIC_ACQUIRE)
#define	atomic_thread_fence_rel()	MM_FENCE("rel", __ATOMIC_RELEASE)
#define	atomic_thread_fence_seq_cst()	MM_FENCE("seq_cst", __ATOMIC_SEQ_CST)

#define	KASSERT(exp, msg)	MPASS(exp)
#define	MPASS(exp)		MM_CHECK(exp)

#define	MA_OWNED	1
#define	MA_NOTOWNED	0
#define	mtx_assert(m, what)						\
	MPASS((pthread_mutex_isowned_np((pthread_mutex_t *)(uintptr_t)(m)) \
	    != 0) == (what))

#endif /* !_RELACY_SYS_SYSTM_H_ */
