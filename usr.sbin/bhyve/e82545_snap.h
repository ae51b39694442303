/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Snapshots of the 82545EM model, inside it; only e82545*.c include this.
 *
 * The same walk over the model's state saves and restores: each call below
 * passes one value on, out of the model or into it.  A value that is greater
 * than `max', or is not there, makes the snapshot bad; from then on a restore
 * stores nothing.  Little endian, without padding.
 */

#ifndef _E82545_SNAP_H_
#define	_E82545_SNAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct e82545;

struct e82545_snap {
	uint8_t		*save;		/* where to; NULL: not */
	const uint8_t	*restore;	/* where from; NULL: not */
	size_t		 size;		/* bytes of it */
	size_t		 done;		/* of them */
	uint64_t	 now_ns;	/* eo_now(), for all of it */
	bool		 bad;
	bool		 nomem;		/* and no memory was the reason */
};

void	e82545_snap_u8(struct e82545_snap *s, uint8_t *value, uint8_t max);
void	e82545_snap_u16(struct e82545_snap *s, uint16_t *value, uint16_t max);
void	e82545_snap_u32(struct e82545_snap *s, uint32_t *value, uint32_t max);
void	e82545_snap_u64(struct e82545_snap *s, uint64_t *value, uint64_t max);
void	e82545_snap_bool(struct e82545_snap *s, bool *value);
void	e82545_snap_bytes(struct e82545_snap *s, void *buf, size_t len);

/* What must hold in every model: the snapshot is bad where it does not. */
void	e82545_snap_check(struct e82545_snap *s, bool holds);

/*
 * The parts, each in the file whose state it is.  All locks held.
 */
void	e82545_regs_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_stat_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_eeprom_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_phy_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_csb_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_txq_snap(struct e82545 *dev, struct e82545_snap *s);
/* The frames in the loopback queue, which must be empty to restore. */
void	e82545_loop_snap(struct e82545 *dev, struct e82545_snap *s);
/* After the registers; times are kept as how long ago, and how long yet. */
void	e82545_intr_snap(struct e82545 *dev, struct e82545_snap *s);

#endif /* !_E82545_SNAP_H_ */
