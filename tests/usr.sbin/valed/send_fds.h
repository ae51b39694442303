/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _SEND_FDS_H_
#define	_SEND_FDS_H_

#include <stddef.h>

/* Descriptors that one call sends, at most. */
#define	SEND_FDS_MAX	64

/*
 * Send `len' bytes over a UNIX-domain socket in one sendmsg(2), with
 * descriptors, which stay open.  Fails the test case if not all of it is sent.
 */
void	send_fds(int fd, const void *buf, size_t len, const int *fds,
	    unsigned int nfds);

#endif /* !_SEND_FDS_H_ */
