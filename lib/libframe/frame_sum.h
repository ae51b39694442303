/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Checksums: ones' complement sums of 16-bit words in memory order, kept in 64
 * bits and folded at the very end.  RFC 1071: the sum does not depend on byte
 * order, so only data at an odd offset has to be swapped.  No state, no locks.
 */

#ifndef _FRAME_SUM_H_
#define	_FRAME_SUM_H_

#include <sys/types.h>
#include <sys/endian.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Two words at a time, which is one register of most processors. */
typedef uint64_t frame_pair __attribute__((__vector_size__(16)));

/* Read `size' bytes at p + off; if `copy' is set, write them to dst + off. */
#define	FRAME_SUM_AT(w, size, off) do {					\
	memcpy(&(w), p + (off), size);					\
	if (copy)							\
		memcpy(dst + (off), &(w), size);			\
} while (0)
/*
 * Read sizeof(w) bytes at p; if `copy' is set, write them to dst.  Advance
 * both.
 */
#define	FRAME_SUM_TAKE(w) do {						\
	FRAME_SUM_AT(w, sizeof(w), 0);					\
	p += sizeof(w);							\
	if (copy)							\
		dst += sizeof(w);					\
} while (0)

/* Return the sum of less than 16 bytes. */
static inline uint64_t
frame_sum_short(const uint8_t *p, size_t len, bool copy, uint8_t *dst)
{
	uint64_t sum, w64;
	uint32_t w32;
	uint16_t w16;
	uint8_t w8;

	sum = 0;
	if ((len & sizeof(w64)) != 0) {
		FRAME_SUM_TAKE(w64);
		sum = (w64 & 0xffffffff) + (w64 >> 32);
	}
	if ((len & sizeof(w32)) != 0) {
		FRAME_SUM_TAKE(w32);
		sum += w32;
	}
	if ((len & sizeof(w16)) != 0) {
		FRAME_SUM_TAKE(w16);
		sum += w16;
	}
	if ((len & sizeof(w8)) != 0) {
		FRAME_SUM_TAKE(w8);
		sum += be16toh((uint16_t)w8 << 8);
	}
	return (sum);
}

/*
 * Return the sum of 16 bytes or more, as 32-bit words in 64-bit sums, so that
 * no carry is lost.  `all' is the sum of 64-bit words and may overflow; `high'
 * is the sum of their upper halves.  Subtracting 2^32 times `high' from `all'
 * leaves the sum of the lower halves, whatever overflowed.  If bytes remain
 * after the last complete pair, the last 16 bytes are read once more, and those
 * that were summed before are masked out.
 */
static inline uint64_t
frame_sum_long(const uint8_t *p, size_t len, bool copy, uint8_t *dst)
{
	static const uint8_t tail[2 * sizeof(frame_pair)] = {
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		255, 255, 255, 255, 255, 255, 255, 255,
		255, 255, 255, 255, 255, 255, 255, 255,
	};
	frame_pair all = { 0, 0 }, high = { 0, 0 }, mask, w, w2[2], w4[4];
	ptrdiff_t left;
	uint64_t sum;
	uint8_t last;

	for (; len >= sizeof(w4); len -= sizeof(w4)) {
		FRAME_SUM_TAKE(w4);
		all += (w4[0] + w4[1]) + (w4[2] + w4[3]);
		high += ((w4[0] >> 32) + (w4[1] >> 32)) +
		    ((w4[2] >> 32) + (w4[3] >> 32));
	}
	if ((len & sizeof(w2)) != 0) {
		FRAME_SUM_TAKE(w2);
		all += w2[0] + w2[1];
		high += (w2[0] >> 32) + (w2[1] >> 32);
	}
	if ((len & sizeof(w)) != 0) {
		FRAME_SUM_TAKE(w);
		all += w;
		high += w >> 32;
	}
	left = len & (sizeof(w) - 2);
	if (left != 0) {
		FRAME_SUM_AT(w, sizeof(w), left - (ptrdiff_t)sizeof(w));
		memcpy(&mask, tail + left, sizeof(mask));
		w &= mask;
		all += w;
		high += w >> 32;
	}
	all += high - (high << 32);
	sum = all[0] + all[1];
	if ((len & 1) != 0) {
		FRAME_SUM_AT(last, sizeof(last), left);
		sum += be16toh((uint16_t)last << 8);
	}
	return (sum);
}

#undef FRAME_SUM_AT
#undef FRAME_SUM_TAKE

/* Return the sum of `len' bytes, not folded. */
static inline uint64_t
frame_sum_bytes(const uint8_t *p, size_t len)
{
	return (len < sizeof(frame_pair) ?
	    frame_sum_short(p, len, false, NULL) :
	    frame_sum_long(p, len, false, NULL));
}

/*
 * Copy `len' bytes, and return their sum, not folded.  The source may change at
 * any time: each byte is read once, so that the sum is that of the copy.  The
 * exception is up to 14 bytes near the end, which frame_sum_long() reads twice.
 */
static inline uint64_t
frame_sum_copy(uint8_t *dst, const uint8_t *src, size_t len)
{
	return (len < sizeof(frame_pair) ?
	    frame_sum_short(src, len, true, dst) :
	    frame_sum_long(src, len, true, dst));
}

/* Return the value of the checksum field for a sum, in network order. */
static inline uint16_t
frame_sum_fold(uint64_t sum)
{
	uint32_t s;

	/* Add both halves in the upper one, with the carry of the lower. */
	s = (sum + (sum << 32 | sum >> 32)) >> 32;
	return (~(s + (s << 16 | s >> 16)) >> 16);
}

/* Return the sum of the same bytes, the first of which is at an odd offset. */
static inline uint64_t
frame_sum_odd(uint64_t sum)
{
	uint16_t s = ~frame_sum_fold(sum);

	return ((uint16_t)(s << 8 | s >> 8));
}

#endif /* !_FRAME_SUM_H_ */
