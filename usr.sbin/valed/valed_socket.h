/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The sockets in the file system.
 *
 * The functions remember the sockets that valed made, to remove them.  The main
 * thread of a process without others.
 */

#ifndef _VALED_SOCKET_H_
#define	_VALED_SOCKET_H_

#include <sys/types.h>

#include <stdbool.h>

#include "adapter_config.h"
#include "valed_why.h"

/* Who can connect to a socket. */
struct valed_access {
	gid_t		va_group;	/* or VALED_NOGROUP: as it is created */
	mode_t		va_mode;	/* or VALED_NOMODE: as umask(2) has
					   it */
};
#define	VALED_NOGROUP	((gid_t)-1)
#define	VALED_NOMODE	((mode_t)-1)

/*
 * Sockets: during a reload there may be old and new ones, and the control
 * socket.
 */
#define	VALED_NAMES		(2 * VALED_MAXADAPTERS + 1)

/*
 * Create a socket of a type (SOCK_*) and listen on it.  Replaces one on which
 * no process listens.  Nobody can connect to it before it has its group and
 * mode of *access, which is NULL for those of bind(2).  On an error, leaves
 * none, and returns -1 with *why, which begins with `option' and the path.
 */
int	valed_socket_open(const char *option, const char *path, int type,
	    const struct valed_access *access, struct valed_why *why);

/* Remove the socket of an adapter; all; those of adapters that are not used. */
void	valed_socket_remove(const char *path);
void	valed_sockets_remove(void);
void	valed_sockets_prune(bool (*used)(const char *path));

#endif /* !_VALED_SOCKET_H_ */
