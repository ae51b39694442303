/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Statistics registers of the 82545EM: 8254x SDM section 13.7.
 *
 * A register stops counting at all ones, and a read clears it.  A byte count
 * has 64 bits, in two registers: the guest reads the low half first, and the
 * read of the high half clears both.
 *
 * Everything here runs under reg_mtx.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_impl.h"
#include "e82545_salvage.h"
#include "e82545_snap.h"
#include "e82545_stat.h"

/* The low halves of byte counts, in the order of stat_latch[]. */
static const uint32_t stat_pairs[] = {
	E82545_GORCL, E82545_GOTCL, E82545_TORL, E82545_TOTL
};

void
e82545_stat_reset(struct e82545 *dev)
{
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	memset(dev->stat_latched, 0, sizeof(dev->stat_latched));
	dev->stat_missed = frame_port_missed(dev->port);
}

void
e82545_stat(struct e82545 *dev, uint32_t off, uint64_t n)
{
	uint32_t old;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	old = e82545_reg(dev, off);
	e82545_reg_set(dev, off, n > UINT32_MAX - old ? UINT32_MAX : old + n);
}

static uint64_t
stat64(const struct e82545 *dev, uint32_t off)
{
	return (e82545_reg(dev, off) |
	    (uint64_t)e82545_reg(dev, off + 4) << 32);
}

static void
stat64_set(struct e82545 *dev, uint32_t off, uint64_t value)
{
	e82545_reg_set(dev, off, value);
	e82545_reg_set(dev, off + 4, value >> 32);
}

void
e82545_stat64(struct e82545 *dev, uint32_t off, uint64_t n)
{
	uint64_t old;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	old = stat64(dev, off);
	stat64_set(dev, off, n > UINT64_MAX - old ? UINT64_MAX : old + n);
}

/*
 * Save or restore what is latched; e82545_reg_snap() has processed the
 * registers themselves.  What is latched is subtracted from the count, and a
 * count only grows until then.
 */
void
e82545_stat_snap(struct e82545 *dev, struct e82545_snap *s)
{
	unsigned int i;

	for (i = 0; i < nitems(stat_pairs); i++) {
		e82545_snap_u64(s, &dev->stat_latch[i], UINT64_MAX);
		e82545_snap_bool(s, &dev->stat_latched[i]);
		e82545_snap_check(s, !dev->stat_latched[i] ||
		    dev->stat_latch[i] <= stat64(dev, stat_pairs[i]));
	}
}

/*
 * Take over what is latched: the halves of a count are stored one after the
 * other.
 */
bool
e82545_stat_salvage(struct e82545 *dev, const struct e82545 *old)
{
	unsigned int i;

	for (i = 0; i < nitems(stat_pairs); i++) {
		dev->stat_latched[i] =
		    e82545_salvage_bool(&old->stat_latched[i]);
		dev->stat_latch[i] = MIN(old->stat_latch[i],
		    stat64(dev, stat_pairs[i]));
	}
	return (true);
}

void
e82545_stat_sizes(struct e82545 *dev, uint32_t first,
    const struct e82545_tally *t)
{
	int i;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	for (i = 0; i < E82545_NSIZES; i++)
		if (t->size[i] != 0)
			e82545_stat(dev, first + 4 * i, t->size[i]);
}

uint32_t
e82545_stat_read(struct e82545 *dev, uint32_t off)
{
	uint32_t value;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	value = e82545_reg(dev, off);
	e82545_reg_set(dev, off, 0);
	return (value);
}

/* Return the index of the pair of registers whose low half is at an offset. */
static unsigned int
stat_pair(uint32_t off)
{
	unsigned int i;

	for (i = 0; stat_pairs[i] != off; i++)
		MPASS(i < nitems(stat_pairs) - 1);
	return (i);
}

/*
 * Count the frames that the network dropped as missed.  Frames wait in the port
 * while the guest has no buffers, so what is dropped there is what an adapter
 * with a FIFO of that size would miss.
 */
void
e82545_stat_missed(struct e82545 *dev)
{
	uint64_t missed = frame_port_missed(dev->port);

	e82545_stat(dev, E82545_MPC, missed - dev->stat_missed);
	dev->stat_missed = missed;
}

uint32_t
e82545_stat_missed_read(struct e82545 *dev, uint32_t off)
{
	e82545_stat_missed(dev);
	return (e82545_stat_read(dev, off));
}

/*
 * Read the low half, which latches all 64 bits.  The read of the high half
 * returns the latched value and subtracts it, so that bytes counted between the
 * two reads are not lost.
 */
uint32_t
e82545_stat_low_read(struct e82545 *dev, uint32_t off)
{
	unsigned int i = stat_pair(off);

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	dev->stat_latch[i] = stat64(dev, off);
	dev->stat_latched[i] = true;
	return (dev->stat_latch[i]);
}

uint32_t
e82545_stat_high_read(struct e82545 *dev, uint32_t off)
{
	uint32_t low = off - 4;
	unsigned int i = stat_pair(low);
	uint64_t now, taken;

	mtx_assert(&dev->reg_mtx, MA_OWNED);
	now = stat64(dev, low);
	taken = dev->stat_latched[i] ? dev->stat_latch[i] : now;
	dev->stat_latched[i] = false;
	stat64_set(dev, low, now - taken);
	return (taken >> 32);
}
