/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Passing descriptors to clients of the control socket. */

#ifndef _CTL_PASS_H_
#define	_CTL_PASS_H_

#include <stdbool.h>
#include <stddef.h>

/*
 * Start the process that does, which calls enter() to enter its sandbox: that
 * returns 0, or -1 with errno.  Before the sandbox, without another thread.
 * Returns 0 or an errno.
 */
int	ctl_pass_start(int (*enter)(void));

/*
 * Return the descriptor on which the sandbox must permit sendmsg(2), or -1 if
 * there is no process.
 */
int	ctl_pass_fd(void);

/* Tell the descriptor's new number.  Call before any thread starts. */
void	ctl_pass_moved(int fd);

/*
 * Send a packet of `len' bytes, VALE_WIRE_MAX at most, with 1 to
 * VALE_WIRE_REPLY_FDS descriptors, which the caller keeps, on the connection
 * `s' with a client.  If ctl_pass_start() was not called, the caller's process
 * sends it.  Returns whether it was sent: not if the client does not read, if a
 * descriptor must not be passed, or if the process has ended.  Any thread;
 * waits for the process, never for a client.
 */
bool	ctl_pass(int s, const void *p, size_t len, const int *fds,
	    unsigned int n);

#endif /* !_CTL_PASS_H_ */
