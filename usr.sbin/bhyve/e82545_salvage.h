/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a crash leaves of an adapter: e82545_salvage.c.  Private; only e82545*.c
 * include this.
 */

#ifndef _E82545_SALVAGE_H_
#define	_E82545_SALVAGE_H_

#include <stdbool.h>
#include <stdint.h>

struct e82545;
struct e82545_rxq;
struct e82545_txq;

/* Read a bool in memory that may hold any byte. */
static inline bool
e82545_salvage_bool(const bool *value)
{
	return (*(const uint8_t *)value != 0);
}

/*
 * Copy a part of the state from `old' to `dev', a new adapter, each in the file
 * that owns it.  `old' is a copy of what a process has left, at any
 * instruction, or of what an attacker has: its pointers to the four parts are
 * valid, all else may have any value.  What a process can leave becomes a state
 * that an adapter can have.  Returns false for what it cannot leave, unless
 * restoring the snapshot finds that, too.  All locks of `dev' held.
 */
bool	e82545_stat_salvage(struct e82545 *dev, const struct e82545 *old);
bool	e82545_eeprom_salvage(struct e82545 *dev, const struct e82545 *old);
bool	e82545_phy_salvage(struct e82545 *dev, const struct e82545 *old);
bool	e82545_csb_salvage(struct e82545 *dev, const struct e82545 *old);
/* Call these after the registers are copied. */
bool	e82545_txq_salvage(struct e82545 *dev, const struct e82545 *old);
bool	e82545_rxq_salvage(struct e82545 *dev, const struct e82545 *old);
bool	e82545_intr_salvage(struct e82545 *dev, const struct e82545 *old);

/*
 * Write back what a batch of a queue has left, whose ring's head was `head'.
 * `queues' are not copies, and are changed as the batch would have.  Returns
 * false if that cannot be.  All locks of `dev' held, which may access memory.
 */
bool	e82545_tx_recover(struct e82545 *dev, unsigned int queue,
	    struct e82545_txq *queues, uint32_t head);
bool	e82545_rx_recover(struct e82545 *dev, unsigned int queue,
	    struct e82545_rxq *queues, uint32_t rdh);
/*
 * Use the indices that were taken from the CSB's page, and publish those that
 * the guest may wait for.  All locks held; only if e82545_dma() and with a
 * block.
 */
void	e82545_csb_recover(struct e82545 *dev, uint32_t tdt, uint32_t rdt);

#endif /* !_E82545_SALVAGE_H_ */
