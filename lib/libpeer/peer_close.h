/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors that a client passed, of whatever kind.
 *
 * A client needs to pass only memfds and eventfds, and these close at once.
 * Other files may wait in close(2): a lingering socket until its data is
 * acknowledged, a file of FUSE or NFS until its server answers.  A thread of
 * their own closes them, so that no adapter's thread waits.
 */

#ifndef _PEER_CLOSE_H_
#define	_PEER_CLOSE_H_

#include <stdbool.h>

/* Descriptors that wait to be closed, at most. */
#define	PEER_CLOSE_MAX	256

enum peer_fd_kind {
	PEER_FD_MEMORY,		/* a memfd, or another file with seals */
	PEER_FD_ANON,		/* an eventfd, or another anonymous inode */
	PEER_FD_OTHER
};

/*
 * Return the kind of a descriptor.  Does not wait for a file system's server;
 * before Linux 6.11 this may wait.  Any thread.
 */
enum peer_fd_kind peer_fd_kind(int fd);

/*
 * Start the thread, and wait until it has dropped its privileges, which it may
 * not do in a sandbox: drop() does that, on the thread, and returns 0, or -1
 * with errno.  The main thread, before the sandbox.  Returns 0 or an errno.
 */
int	peer_close_start(int (*drop)(void));

/*
 * Have the thread close `fd'.  Returns false, with `fd' open, if the thread has
 * too many to close.  If the thread was not started, closes `fd'.  Any thread.
 */
bool	peer_close(int fd);

/*
 * Have the thread replace `fd' by a copy of `with', which closes it, and then
 * call reused(fd).  If that cannot wait, does it itself.  Any thread.
 */
void	peer_close_reuse(int fd, int with, void (*reused)(int fd));

/*
 * End a connection before its socket is closed, for its duplicates, too: shut
 * the socket down, and read all that is left.  Otherwise the other end's next
 * read(2) fails with ECONNRESET instead of returning 0, and QEMU 11.1 ends
 * then, with its guest ("error_setv: Assertion `*errp == NULL' failed").  Closes
 * descriptors that were passed, which may block.  Any thread.
 */
void	peer_hang_up(int fd);

/*
 * Interrupt a close that blocks, as a check of the watchdog (peer_watch.h).  A
 * socket then stops lingering.  The main thread, once a second.
 */
void	peer_close_watch(void);

#endif /* !_PEER_CLOSE_H_ */
