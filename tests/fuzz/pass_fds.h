/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors of all kinds, for clients that pass them to valed.
 */

#ifndef _FUZZ_PASS_FDS_H_
#define	_FUZZ_PASS_FDS_H_

#include <stddef.h>
#include <stdint.h>

/*
 * Descriptor `n' modulo the number of kinds: sockets of each family and type,
 * connected or listening, with SO_LINGER; memory with seals and without; files,
 * pipes, devices and what has no name.  A kind for which this process has no
 * right is an eventfd.  It stays the caller's own too, so that to close a copy
 * never waits.  All are opened by the first call.  One thread.
 */
int	pass_fd(unsigned int n);

/* Control messages for pass_send(). */
#define	PASS_RIGHTS	0x1		/* descriptors */
#define	PASS_CREDS	0x2		/* this process's credentials, */
#define	PASS_FIRST	0x4		/* before the descriptors */

/*
 * Send `len' bytes of `data' as a message, with `nfds' descriptors and what
 * `messages' says.  Returns as sendmsg(2).
 */
long	pass_send(int s, const void *data, size_t len, const int *fds,
	    unsigned int nfds, unsigned int messages);

#endif /* !_FUZZ_PASS_FDS_H_ */
