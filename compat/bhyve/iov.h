/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Scattered memory.
 */

#ifndef _IOV_H_
#define	_IOV_H_

#include <sys/types.h>
#include <sys/uio.h>

/* Bytes in all. */
size_t	count_iov(const struct iovec *iov, int niov);

/*
 * Copy `len' bytes from `buf' to the pieces, beginning `seek' bytes into
 * them; what does not fit is left out.  Returns how many were copied.
 */
ssize_t	buf_to_iov(const void *buf, size_t len, const struct iovec *iov,
	    int niov, size_t seek);

#endif /* !_IOV_H_ */
