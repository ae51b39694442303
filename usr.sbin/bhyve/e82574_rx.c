/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Receive descriptors of the 82574L with RFCTL.EXTEN, as the adapter writes
 * them back.  The batch makes the upper halves of the other format, which have
 * all that is known of a frame; here each becomes both halves of this one, when
 * it is stored.  e82574_reg.h has the layout.
 *
 * Both halves are written: a descriptor has no address afterwards, so the lower
 * half must not be written before the batch is known to end: e82545_salvage.c.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/systm.h>

#include "e82545_rx_impl.h"
#include "e82574.h"

/*
 * The upper half last, with release: a guest that sees DD sees the rest.
 * Without `sum' the guest wants a hash of RSS in its place, and gets none.
 */
void
e82574_rx_store_one(uint64_t desc[2], uint64_t done, bool sum)
{
	const uint64_t d = le64toh(done);
	const uint64_t lower = sum ? (d >> 16 & 0xffff) << 48 : 0;
	const uint64_t upper = (d >> 32 & 0xff) | (d >> 40 & 0xff) << 24 |
	    (d & 0xffff) << 32 | (d >> 48) << 48;

	atomic_store_64(&desc[0], htole64(lower));
	atomic_store_rel_64(&desc[1], htole64(upper));
}

void
e82574_rx_store(uint64_t (*ring)[2], uint32_t size, uint32_t start,
    const uint64_t *done, uint32_t n, bool sum)
{
	uint32_t i;

	for (i = n; i-- > 1;)
		e82574_rx_store_one(ring[(start + i) % size], done[i], sum);
}
