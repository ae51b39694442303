/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Receive descriptors of the 82574L with RFCTL.EXTEN, as the adapter writes
 * them back; e82574_reg.h has the layouts.  The batch makes the upper halves of
 * the other format, which have all that is known of a frame.  Here each becomes
 * a descriptor when it is stored: a descriptor has no address afterwards, so
 * nothing may be stored before the batch is known to end (e82545_salvage.c).
 *
 * With RSS the batch makes the lower halves, too: e82574_rss.c.
 *
 * With RCTL.DTYP a descriptor has four buffers, and takes two places of the
 * other formats.  A frame fills one after the other, as the hardware does with
 * those in which it finds no header: the header is never apart.
 *
 * The registers that decide about that change only between two batches.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/systm.h>

#include "e82545_rx_impl.h"
#include "e82574.h"

uint32_t
e82574_rx_lens(const struct e82545 *dev, uint32_t len,
    uint32_t lens[E82574_SPLIT_BUFFERS])
{
	const uint32_t psrctl = e82545_reg(dev, E82574_PSRCTL);
	uint32_t size, sum = 0;
	int i;

	for (i = 0; i < E82574_SPLIT_BUFFERS; i++) {
		size = i == 0 ? E82574_PSRCTL_BSIZE0(psrctl) :
		    E82574_PSRCTL_BSIZE(psrctl, i);
		lens[i] = MIN(size, len - sum);
		sum += lens[i];
	}
	return (sum);
}

uint64_t
e82574_rx_status(const struct e82545 *dev, uint64_t done)
{
	const uint64_t d = le64toh(done);
	uint32_t lens[E82574_SPLIT_BUFFERS] = { d & 0xffff };

	if (rx_split(dev))
		(void)e82574_rx_lens(dev, d & 0xffff, lens);
	return (htole64((d >> 32 & 0xff) | (d >> 40 & 0xff) << 24 |
	    (uint64_t)lens[0] << 32 | (d >> 48) << 48));
}

/*
 * The first word if RSS is off.  With PCSD the guest wants a hash in place of
 * the checksum: there is none.
 */
static uint64_t
rx_unhashed(const struct e82545 *dev, uint64_t d)
{
	return ((e82545_reg(dev, E82545_RXCSUM) & E82574_RXCSUM_PCSD) != 0 ?
	    0 : htole64((d >> 16 & 0xffff) << 48));
}

/* The word with DD last, with release: a guest that sees it sees the rest. */
void
e82574_rx_store_one(const struct e82545 *dev, uint64_t (*ring)[2], uint32_t i,
    uint64_t done, const uint64_t *lower)
{
	const uint64_t d = le64toh(done);
	uint64_t *desc = rx_desc(dev, ring, i);
	uint32_t lens[E82574_SPLIT_BUFFERS];

	atomic_store_64(&desc[0], lower != NULL ? *lower : rx_unhashed(dev, d));
	if (rx_split(dev)) {
		(void)e82574_rx_lens(dev, d & 0xffff, lens);
		atomic_store_64(&desc[2], htole64((uint64_t)lens[1] << 16 |
		    (uint64_t)lens[2] << 32 | (uint64_t)lens[3] << 48));
		atomic_store_64(&desc[3], 0);
	}
	atomic_store_rel_64(&desc[1], e82574_rx_status(dev, done));
}

void
e82574_rx_store(const struct e82545 *dev, uint64_t (*ring)[2], uint32_t size,
    uint32_t start, const uint64_t *done, const uint64_t *lower, uint32_t n)
{
	uint32_t i;

	for (i = n; i-- > 1;)
		e82574_rx_store_one(dev, ring, (start + i) % size, done[i],
		    lower == NULL ? NULL : &lower[i]);
}
