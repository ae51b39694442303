/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Records the atomic operations of the driver's core.  lem_order_test compiles
 * the core once more, with this file before each source: every function of
 * atomic(9) that the core calls becomes one that tells the test first.
 */

#ifndef _LEM_ORDER_H_
#define	_LEM_ORDER_H_

#include <sys/types.h>
#include <sys/systm.h>

enum order_op {
	OP_LOAD, OP_LOAD_ACQ, OP_STORE, OP_STORE_REL, OP_ACQ, OP_REL, OP_SEQ_CST
};

/* An operation at `p'; fences have none. */
void	order_note(enum order_op op, const volatile void *p);

#ifndef ORDER_TEST
#define	atomic_load_32(p)						\
	(order_note(OP_LOAD, p), (atomic_load_32)(p))
#define	atomic_store_32(p, v)						\
	(order_note(OP_STORE, p), (atomic_store_32)(p, v))
#define	atomic_load_acq_8(p)						\
	(order_note(OP_LOAD_ACQ, p), (atomic_load_acq_8)(p))
#define	atomic_load_acq_32(p)						\
	(order_note(OP_LOAD_ACQ, p), (atomic_load_acq_32)(p))
#define	atomic_load_acq_64(p)						\
	(order_note(OP_LOAD_ACQ, p), (atomic_load_acq_64)(p))
#define	atomic_store_rel_32(p, v)					\
	(order_note(OP_STORE_REL, p), (atomic_store_rel_32)(p, v))
#define	atomic_store_rel_64(p, v)					\
	(order_note(OP_STORE_REL, p), (atomic_store_rel_64)(p, v))
#define	atomic_thread_fence_acq()					\
	(order_note(OP_ACQ, NULL), (atomic_thread_fence_acq)())
#define	atomic_thread_fence_rel()					\
	(order_note(OP_REL, NULL), (atomic_thread_fence_rel)())
#define	atomic_thread_fence_seq_cst()					\
	(order_note(OP_SEQ_CST, NULL), (atomic_thread_fence_seq_cst)())
#endif

#endif /* !_LEM_ORDER_H_ */
