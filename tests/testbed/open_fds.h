/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _OPEN_FDS_H_
#define	_OPEN_FDS_H_

#include <fcntl.h>

/* The number of descriptors below 512 that this process has open. */
static inline unsigned int
open_fds(void)
{
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return (n);
}

#endif /* !_OPEN_FDS_H_ */
