/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Snapshots of the 82545EM model: private; only e82545*.c include this.
 *
 * Each function both saves and restores, so that the two cannot disagree: each
 * call below copies one value, from the model to the snapshot or back.  If a
 * value is greater than `max', or the snapshot ends before it, the snapshot is
 * bad, and the rest of a restore changes nothing.  Values are little endian,
 * without padding.
 */

#ifndef _E82545_SNAP_H_
#define	_E82545_SNAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct e82545;

struct e82545_snap {
	uint8_t		*save;		/* buffer to save to, or NULL */
	const uint8_t	*restore;	/* buffer to restore from, or NULL */
	size_t		 size;		/* bytes of the buffer */
	size_t		 done;		/* bytes of it processed */
	uint64_t	 now_ns;	/* eo_now(), the same for all values */
	bool		 bad;
	bool		 nomem;		/* bad for lack of memory */
};

/*
 * Save or restore a value of up to `max', or `len' bytes; see above.  All locks
 * held.
 */
void	e82545_snap_u8(struct e82545_snap *s, uint8_t *value, uint8_t max);
void	e82545_snap_u16(struct e82545_snap *s, uint16_t *value, uint16_t max);
void	e82545_snap_u32(struct e82545_snap *s, uint32_t *value, uint32_t max);
void	e82545_snap_u64(struct e82545_snap *s, uint64_t *value, uint64_t max);
void	e82545_snap_bool(struct e82545_snap *s, bool *value);
void	e82545_snap_bytes(struct e82545_snap *s, void *buf, size_t len);

/* Check an invariant of the state: if it does not hold, the snapshot is bad. */
void	e82545_snap_check(struct e82545_snap *s, bool holds);

/*
 * Save or restore a part of the state, each in the file that owns it.  All
 * locks held.
 */
void	e82545_reg_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_stat_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_eeprom_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_phy_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_csb_snap(struct e82545 *dev, struct e82545_snap *s);
void	e82545_txq_snap(struct e82545 *dev, struct e82545_snap *s);
/*
 * Save or restore the frames in the loopback queue; a restore needs the queue
 * to be empty.
 */
void	e82545_loop_snap(struct e82545 *dev, struct e82545_snap *s);
/*
 * Save or restore when an interrupt was sent, as its age; 0 if too old to
 * matter for ITR.
 */
void	e82545_snap_last(struct e82545_snap *s, uint64_t *last_ns);
/* Call after e82545_reg_snap().  Times are saved relative to now_ns. */
void	e82545_intr_snap(struct e82545 *dev, struct e82545_snap *s);

#endif /* !_E82545_SNAP_H_ */
