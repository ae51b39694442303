/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The host of the driver's core under the model checker: csb.c.  A register
 * access is an exit: the thread goes on in the model.  Before a write it orders
 * the guest's stores, as lem_os_write() of every kernel does.
 */

#ifndef _LEM_OS_H_
#define	_LEM_OS_H_

#include <sys/cdefs.h>
#include <sys/systm.h>

struct lem_os {
	uint64_t	 rx_buf[LEM_RING_MAX];
	uint64_t	 tx_done;	/* slots */
	unsigned int	 received;	/* frames */
};

#define	lem_os_delay(lc, us)		((void)0)
#define	lem_os_idle(lc)			((void)(lc), true)
#define	lem_os_assert_tx(lc)		((void)(lc))
#define	lem_os_assert_rx(lc)		((void)(lc))

uint32_t lem_os_read(struct lem_core *lc, uint32_t reg);
void	 lem_os_write(struct lem_core *lc, uint32_t reg, uint32_t value);
void	 lem_os_tx_done(struct lem_core *lc, uint32_t slot);
uint64_t lem_os_rx_buf(struct lem_core *lc, uint32_t slot);
bool	 lem_os_rx(struct lem_core *lc, uint32_t slot, uint32_t len,
	    uint32_t flags, uint16_t vlan);

#endif /* !_LEM_OS_H_ */
