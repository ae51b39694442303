/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the driver core needs of its host, which is nic.c; lem_core.h says what
 * each of these does.  Memory is mapped one to one and coherent: DMA addresses
 * are addresses, and there is nothing to sync.  Every register access is
 * counted: it is what a VM exit is spent on.
 */

#ifndef _LEM_OS_H_
#define	_LEM_OS_H_

#include <sys/systm.h>

#include <errno.h>

struct lem_os {
	volatile uint8_t *regs;		/* BAR 0 */
	uint64_t	 reg_reads;
	uint64_t	 reg_writes;
};

bool	lem_os_idle(struct lem_core *lc);
void	lem_os_delay(struct lem_core *lc, unsigned int us);
uint64_t lem_os_rx_buf(struct lem_core *lc, uint32_t slot);
bool	lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len,
	    uint32_t flags, uint16_t vlan);

/* One thread, and the interrupt handler only wakes it. */
#define	lem_os_assert_tx(lc)	((void)(lc))
#define	lem_os_assert_rx(lc)	((void)(lc))

static inline uint32_t
lem_os_read(struct lem_core *lc, uint32_t reg)
{
	struct lem_os *os = LEM_OS(lc);

	os->reg_reads++;
	return (*(volatile uint32_t *)(os->regs + reg));
}

static inline void
lem_os_write(struct lem_core *lc, uint32_t reg, uint32_t value)
{
	struct lem_os *os = LEM_OS(lc);

	os->reg_writes++;
	/* Uncached: x86 keeps it behind earlier stores. */
	__asm __volatile("" : : : "memory");
	*(volatile uint32_t *)(os->regs + reg) = value;
}

/* Buffers are used in turn, and there are as many as descriptors. */
static inline void
lem_os_tx_done(struct lem_core *lc __attribute__((unused)),
    uint32_t slot __attribute__((unused)))
{
}

#endif /* !_LEM_OS_H_ */
