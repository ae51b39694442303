/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Connections when no descriptors are left.
 *
 * accept(2) then fails, and the socket that listens stays readable.  So there
 * is a reserve of descriptors: a connection is accepted with one of them, and
 * closed, so that the client sees the end.  An administrator's connection of
 * the control socket keeps it.  If the reserve is used up, too, or the kernel
 * lacks something else, the caller must not poll the socket for a while.
 */

#ifndef _PEER_ACCEPT_H_
#define	_PEER_ACCEPT_H_

#include <stdbool.h>

/* Fill the reserve.  The main thread, at the start.  Returns 0 or an errno. */
int	peer_accept_start(void);

/*
 * Call accept4(listen_fd, NULL, NULL, flags).  If *reserved is set, the
 * descriptor is of the reserve, and must go to peer_accept_end(), without delay
 * unless the connection is an administrator's.  Returns -1 with an errno; see
 * peer_accept_fails().  Any thread.
 */
int	peer_accept(int listen_fd, int flags, bool *reserved);

/* Close a connection; the reserve gets its descriptor.  Any thread. */
void	peer_accept_end(int fd);

/*
 * Return whether peer_accept() would fail once more at once, with what it has
 * left in `error': if not, there is no connection any more.
 */
bool	peer_accept_fails(int error);

/*
 * Wait, after such an error, until the reserve has a descriptor again, or for a
 * second.  Any thread but an adapter's.
 */
void	peer_accept_pause(int error);

/* Fill the reserve again.  The main thread, once a second. */
void	peer_accept_watch(void);

#endif /* !_PEER_ACCEPT_H_ */
