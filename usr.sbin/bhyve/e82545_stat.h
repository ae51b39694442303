/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Statistics registers: e82545_stat.c.  reg_mtx held throughout, except for
 * e82545_tally() and e82545_tally_frames().
 */

#ifndef _E82545_STAT_H_
#define	_E82545_STAT_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct e82545;

#define	E82545_NSIZES	6		/* that frames are counted by */

/* Frames of a batch, for the statistics registers. */
struct e82545_tally {
	uint32_t	broadcast, multicast;
	uint64_t	bytes;		/* with FCS */
	uint32_t	size[E82545_NSIZES];	/* as PRC64 to PRC1522 */
};

/* Count `n' frames to `dst', `len' bytes with FCS each. */
static inline void
e82545_tally(struct e82545_tally *t, const uint8_t dst[6], size_t len,
    uint32_t n)
{
	static const uint8_t broadcast[6] =
	    { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	unsigned int i;

	t->bytes += n * (uint64_t)len;
	if ((dst[0] & 1) != 0) {
		if (memcmp(dst, broadcast, sizeof(broadcast)) == 0)
			t->broadcast += n;
		else
			t->multicast += n;
	}
	i = len <= 64 ? 0 : 26 - __builtin_clz(len);
	t->size[i < E82545_NSIZES ? i : E82545_NSIZES - 1] += n;
}

/* Return the number of frames that were counted. */
static inline uint32_t
e82545_tally_frames(const struct e82545_tally *t)
{
	uint32_t frames = 0;
	int i;

	for (i = 0; i < E82545_NSIZES; i++)
		frames += t->size[i];
	return (frames);
}

/*
 * Add to a statistics register, which stays at all ones once it gets there; for
 * a 64-bit one, `off' is that of its low half.  8254x SDM section 13.7.
 */
void	e82545_stat(struct e82545 *dev, uint32_t off, uint64_t n);
void	e82545_stat64(struct e82545 *dev, uint32_t off, uint64_t n);

/*
 * Add to the six registers that count frames by size, of which `first' is the
 * first: PRC64 or PTC64.
 */
void	e82545_stat_sizes(struct e82545 *dev, uint32_t first,
	    const struct e82545_tally *t);

/* Clear the statistics registers, at a reset. */
void	e82545_stat_reset(struct e82545 *dev);
/* Read a register, for the register table. */
uint32_t e82545_stat_read(struct e82545 *dev, uint32_t off);
/* Add to MPC what the network has dropped; then read it. */
void	e82545_stat_missed(struct e82545 *dev);
uint32_t e82545_stat_missed_read(struct e82545 *dev, uint32_t off);
uint32_t e82545_stat_low_read(struct e82545 *dev, uint32_t off);
uint32_t e82545_stat_high_read(struct e82545 *dev, uint32_t off);

#endif /* !_E82545_STAT_H_ */
