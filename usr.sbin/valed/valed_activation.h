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

/* Whether nothing needs to be inherited: then every name stands for 0. */
void	valed_activation_ignore(bool ignore);

/*
 * The listening socket of a type (SOCK_*) that fd=`name' stands for, a number
 * or a name in LISTEN_FDNAMES.  Sets *fdp, and returns NULL or an error.  Also
 * in a child of the process that inherits it.
 */
const char *valed_activation_fd(const char *name, int type, int *fdp);

/*
 * What the program finds when it is started again (valed_supervisor.h).
 *
 * _each() calls fn() for each descriptor that is inherited, with its name and
 * the length of that; there is no NUL behind it.  _count() and _names() are of
 * those that are not of the store, which come first, and _keep() has execve(2)
 * keep these.  The supervisor.
 */
void	valed_activation_each(void (*fn)(const char *name, size_t len,
	    int fd));
unsigned int valed_activation_count(void);
const char *valed_activation_names(void);
void	valed_activation_keep(void);

#endif /* !_VALED_ACTIVATION_H_ */
