/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Walking through the pieces of a frame.  A cursor stands before a byte of
 * an iovec array and moves on with each call; whoever moves it makes sure
 * that there is as much left as asked for.  No state, no locks.
 */

#ifndef _E82545_IOV_H_
#define	_E82545_IOV_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct e82545_cursor {
	const struct iovec	*iov;	/* the piece it stands in */
	size_t			 off;	/* bytes of it gone by */
};

static inline void
e82545_cursor_init(struct e82545_cursor *cur, const struct iovec *iov)
{
	cur->iov = iov;
	cur->off = 0;
}

/*
 * The bytes from here on that lie together, `len' at the most, stepped over.
 * At least one for len > 0: empty pieces are passed by.
 */
static inline struct iovec
e82545_cursor_piece(struct e82545_cursor *cur, size_t len)
{
	struct iovec piece;
	size_t left;

	while ((left = cur->iov->iov_len - cur->off) == 0) {
		cur->iov++;
		cur->off = 0;
	}
	piece.iov_base = (uint8_t *)cur->iov->iov_base + cur->off;
	piece.iov_len = left < len ? left : len;
	cur->off += piece.iov_len;
	return (piece);
}

static inline void
e82545_cursor_skip(struct e82545_cursor *cur, size_t len)
{
	while (len > 0)
		len -= e82545_cursor_piece(cur, len).iov_len;
}

static inline void
e82545_cursor_copy(struct e82545_cursor *cur, void *dst, size_t len)
{
	struct iovec piece;
	uint8_t *p = dst;

	while (len > 0) {
		piece = e82545_cursor_piece(cur, len);
		memcpy(p, piece.iov_base, piece.iov_len);
		p += piece.iov_len;
		len -= piece.iov_len;
	}
}

/*
 * The next `len' bytes as pieces in `iov', without copying them.  Returns how
 * many pieces, or -1 where `max' are not enough.
 */
static inline int
e82545_cursor_slice(struct e82545_cursor *cur, size_t len, struct iovec *iov,
    int max)
{
	int n;

	for (n = 0; len > 0; n++) {
		if (n == max)
			return (-1);
		iov[n] = e82545_cursor_piece(cur, len);
		len -= iov[n].iov_len;
	}
	return (n);
}

#endif /* !_E82545_IOV_H_ */
