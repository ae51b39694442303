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

#endif /* !_VALED_ACTIVATION_H_ */
