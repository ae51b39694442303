/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Slots of a ring by number: positions wrap at the ring's end.
 */

#ifndef _VALE_SLOT_H_
#define	_VALE_SLOT_H_

#include <stdint.h>
#include <string.h>

#include "vale_region.h"

/* Return the slot `n' slots after `i' in a ring of `nslots'; n <= nslots. */
static inline uint32_t
vale_slot_add(uint32_t i, uint32_t n, uint32_t nslots)
{
	i += n;
	return (i >= nslots ? i - nslots : i);
}

/* Return the slot after `i'. */
static inline uint32_t
vale_slot_next(uint32_t i, uint32_t nslots)
{
	return (i + 1 == nslots ? 0 : i + 1);
}

/* Return the number of slots from `from' to before `to'. */
static inline uint32_t
vale_slot_sub(uint32_t to, uint32_t from, uint32_t nslots)
{
	return (to >= from ? to - from : to + nslots - from);
}

/* Return the number of receive slots that a frame of `len' bytes needs. */
static inline uint32_t
vale_frame_slots(uint32_t len)
{
	return ((len + VALE_BUF_SIZE - 1) / VALE_BUF_SIZE);
}

/*
 * Copy a frame of one fragment.  32 to 64 bytes, the most frequent sizes, are
 * copied as two halves of fixed size, which may overlap.
 */
static inline void
vale_slot_copy(uint8_t *dst, const uint8_t *src, uint32_t len)
{
	enum { HALF = 32 };

	if (len >= HALF && len <= 2 * HALF) {
		memcpy(dst, src, HALF);
		memcpy(dst + len - HALF, src + len - HALF, HALF);
	} else
		memcpy(dst, src, len);
}

#endif /* !_VALE_SLOT_H_ */
