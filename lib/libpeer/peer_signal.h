/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Events for eventfds that clients have passed, without waiting for them.
 *
 * A write(2) waits if the client has filled the eventfd's counter and cleared
 * O_NONBLOCK, which it may at any time; no other call that writes one can be
 * told not to wait.  But the kernel itself never waits to signal an eventfd,
 * and does so at the end of a request to io_submit(2), if asked to.  So the
 * request is for nothing: to read no bytes of the eventfd, which fails before
 * the call returns.  Before Linux 5.8 there is no such request.
 *
 * It takes longer than a write(2): it pays where the write would be another
 * thread's, which would have to be woken.
 */

#ifndef _PEER_SIGNAL_H_
#define	_PEER_SIGNAL_H_

#include <stdint.h>

/* Events of one call, at most. */
#define	PEER_SIGNAL_MAX	8

/*
 * Prepare for peer_signal().  Returns 0, or an errno if the kernel has no
 * asynchronous I/O, or does not permit it; then peer_signal() signals nothing.
 * The main thread, before the sandbox.
 */
int	peer_signal_start(void);

/*
 * Return the first argument of all calls of io_submit(2), for the sandbox; 0:
 * none.
 */
uint64_t peer_signal_context(void);

/*
 * Add 1 to the counters of `n' eventfds, 0 to PEER_SIGNAL_MAX; one may be there
 * several times.  Returns for how many that was done: fewer than n if one is no
 * eventfd or peer_signal_start() has failed, and rarely for lack of memory.
 * One whose counter is at its maximum stays so.  Any thread.
 */
unsigned int peer_signal(const int *fds, unsigned int n);

#endif /* !_PEER_SIGNAL_H_ */
