/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * fstat(2) in the sandbox.
 *
 * The C library's fstat() may make the system call newfstatat() with an empty
 * path.  The sandbox refuses that one: seccomp(2) cannot see whether a path is
 * empty.
 */

#ifndef _PEER_FSTAT_H_
#define	_PEER_FSTAT_H_

#include <sys/stat.h>
#include <sys/syscall.h>

#include <unistd.h>

/* Do what fstat(2) does.  Any thread. */
static inline int
peer_fstat(int fd, struct stat *st)
{
	return ((int)syscall(SYS_fstat, fd, st));
}

#endif /* !_PEER_FSTAT_H_ */
