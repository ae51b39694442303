/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * lem_core.h's interface to its host, for Linux's kernel: registers by readl()
 * and writel(), rings in coherent memory, and the part of atomic(9) that the
 * core uses.  The hooks that move packets are in lem_txrx.c.
 */

#ifndef _DEV_E1000_LINUX_LEM_OS_H_
#define	_DEV_E1000_LINUX_LEM_OS_H_

#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/io.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include <asm/barrier.h>

struct lem_os {
	void __iomem	*regs;
	spinlock_t	 rx_lock;	/* lem_core's receive lock */
};

/* Linux's kernel has other names for these. */
#define	ENOTSUP		EOPNOTSUPP
#define	UINT8_MAX	U8_MAX

#ifdef CONFIG_DEBUG_NET
#define	MPASS(cond)	WARN_ON_ONCE(!(cond))
#else
#define	MPASS(cond)	((void)0)
#endif

/*
 * atomic(9).  The other side is a hypervisor, on another processor even if the
 * guest has only one: virt_*() are barriers there, too.
 */
#define	atomic_load_32(p)		READ_ONCE(*(p))
#define	atomic_load_64(p)		READ_ONCE(*(p))
#define	atomic_load_acq_8(p)		virt_load_acquire(p)
#define	atomic_load_acq_32(p)		virt_load_acquire(p)
#define	atomic_load_acq_64(p)		virt_load_acquire(p)
#define	atomic_store_32(p, v)		WRITE_ONCE(*(p), v)
#define	atomic_store_rel_32(p, v)	virt_store_release(p, v)
#define	atomic_store_rel_64(p, v)	virt_store_release(p, v)
#define	atomic_thread_fence_seq_cst()	virt_mb()

#define	lem_os_delay(lc, us)		udelay(us)
#define	lem_os_read(lc, reg)		readl(LEM_OS(lc)->regs + (reg))
#define	lem_os_write(lc, reg, value)	writel(value, LEM_OS(lc)->regs + (reg))

/*
 * Return whether nobody else wants the processor.  NAPI runs on the stack of
 * the thread that it interrupts, which waits then, or in a thread of its own.
 */
static inline bool
lem_os_idle(struct lem_core *lc)
{
	return (!need_resched() && (is_idle_task(current) ||
	    ((current->flags & PF_KTHREAD) != 0 && single_task_running())));
}

#define	lem_os_assert_rx(lc)						\
	lockdep_assert_held(						\
	    &((const struct lem_os *)(const void *)(lc))->rx_lock)
#ifdef CONFIG_LOCKDEP
void	 lem_os_assert_tx(const struct lem_core *lc);
#else
#define	lem_os_assert_tx(lc)		((void)(lc))
#endif

void	 lem_os_tx_done(struct lem_core *lc, uint32_t slot);
uint64_t lem_os_rx_buf(struct lem_core *lc, uint32_t slot);
bool	 lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len,
	    uint32_t flags, uint16_t vlan);

#endif /* !_DEV_E1000_LINUX_LEM_OS_H_ */
