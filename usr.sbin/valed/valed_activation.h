/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Sockets that are inherited from a service manager.
 */

#ifndef _VALED_ACTIVATION_H_
#define	_VALED_ACTIVATION_H_

#include <stdbool.h>
#include <stddef.h>

/* The first of the descriptors: sd_listen_fds(3). */
#define	VALED_ACTIVATION_START	3

/* Look what this process inherits.  The main thread, first. */
void	valed_activation_init(void);

/*
 * Return whether nothing needs to be inherited: then every name stands for 0.
 */
void	valed_activation_ignore(bool ignore);

/*
 * Find the listening socket of a type (SOCK_*) that fd=`name' stands for, a
 * number or a name in LISTEN_FDNAMES.  Sets *fdp, and returns NULL or an error.
 * Also in a child of the process that inherits it.
 */
const char *valed_activation_fd(const char *name, int type, int *fdp);

/*
 * Call fn() for each descriptor that is inherited, with its name and the length
 * of that; there is no NUL behind it.
 */
void	valed_activation_each(void (*fn)(const char *name, size_t len,
	    int fd));

/*
 * Note that the descriptor `fd' and those behind have been taken, and are not
 * inherited any more, by programs that this process executes either.  Before
 * there is another thread.
 */
void	valed_activation_until(int fd);

#endif /* !_VALED_ACTIVATION_H_ */
