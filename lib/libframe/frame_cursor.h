/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Iterating over the fragments of a frame.  A cursor is a position in an iovec
 * array, which each call advances.  The caller must not advance it beyond the
 * end of the array.  No state, no locks.
 */

#ifndef _FRAME_CURSOR_H_
#define	_FRAME_CURSOR_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct frame_cursor {
	const struct iovec	*iov;	/* the current fragment */
	size_t			 off;	/* bytes into it */
};

static inline void
frame_cursor_init(struct frame_cursor *cur, const struct iovec *iov)
{
	cur->iov = iov;
	cur->off = 0;
}

/*
 * Advance over bytes that are contiguous, up to `len' of them, and return them.
 * Skips empty fragments, so that at least one byte is returned if len > 0.
 */
static inline struct iovec
frame_cursor_run(struct frame_cursor *cur, size_t len)
{
	struct iovec run;
	size_t left;

	while ((left = cur->iov->iov_len - cur->off) == 0) {
		cur->iov++;
		cur->off = 0;
	}
	run.iov_base = (uint8_t *)cur->iov->iov_base + cur->off;
	run.iov_len = left < len ? left : len;
	cur->off += run.iov_len;
	return (run);
}

static inline void
frame_cursor_skip(struct frame_cursor *cur, size_t len)
{
	while (len > 0)
		len -= frame_cursor_run(cur, len).iov_len;
}

static inline void
frame_cursor_copy(struct frame_cursor *cur, void *dst, size_t len)
{
	struct iovec run;
	uint8_t *p = dst;

	while (len > 0) {
		run = frame_cursor_run(cur, len);
		memcpy(p, run.iov_base, run.iov_len);
		p += run.iov_len;
		len -= run.iov_len;
	}
}

/*
 * Describe the next `len' bytes by fragments in `iov', without copying them.
 * Returns the number of fragments, or -1 if it would exceed `max'.
 */
static inline int
frame_cursor_slice(struct frame_cursor *cur, size_t len, struct iovec *iov,
    int max)
{
	int n;

	for (n = 0; len > 0; n++) {
		if (n == max)
			return (-1);
		iov[n] = frame_cursor_run(cur, len);
		len -= iov[n].iov_len;
	}
	return (n);
}

#endif /* !_FRAME_CURSOR_H_ */
