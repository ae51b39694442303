/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Copying to and from scattered memory.
 */

#ifndef _IOV_H_
#define	_IOV_H_

#include <sys/types.h>
#include <sys/uio.h>

/* The sum of the lengths. */
size_t	count_iov(const struct iovec *iov, int niov);

/*
 * Copy `len' bytes from `buf' to the fragments, starting at offset `seek' of
 * them all.  Copies less if they are shorter.  Returns the number of bytes
 * copied.
 */
ssize_t	buf_to_iov(const void *buf, size_t len, const struct iovec *iov,
	    int niov, size_t seek);

#endif /* !_IOV_H_ */
