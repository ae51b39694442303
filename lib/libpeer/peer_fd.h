/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a descriptor is, and memory that is one.  Any thread.
 */

#ifndef _PEER_FD_H_
#define	_PEER_FD_H_

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/*
 * Do what fstat(2) does, in the sandbox, too.  The C library's may make the
 * system call newfstatat() with an empty path, which the sandbox refuses:
 * seccomp(2) cannot see whether a path is empty.
 */
static inline int
peer_fstat(int fd, struct stat *st)
{
	return ((int)syscall(SYS_fstat, fd, st));
}

/* Return whether a socket's option of SOL_SOCKET has this value. */
static inline bool
peer_socket_is(int fd, int option, int value)
{
	socklen_t len = sizeof(int);
	int got;

	return (getsockopt(fd, SOL_SOCKET, option, &got, &len) == 0 &&
	    len == sizeof(got) && got == value);
}

/*
 * Make memory of this size, with zeros, which can never have another size.
 * Returns its descriptor, or -1 with errno.
 */
static inline int
peer_memory_new(const char *name, size_t size)
{
	const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int error;

	if (fd == -1 || (ftruncate(fd, (off_t)size) == 0 && fcntl(fd,
	    F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0))
		return (fd);
	error = errno;
	close(fd);
	errno = error;
	return (-1);
}

#endif /* !_PEER_FD_H_ */
