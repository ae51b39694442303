/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The watchdog for system calls in which another process can block a thread.
 *
 * A thread counts the starts and ends of such calls.  The main thread checks
 * the counts once a second, and interrupts a call that three checks in a row
 * have found.  If the process was stopped, or the host suspended, the clock has
 * gone on without the threads.  So checks that were missed are not made up for:
 * from one to the next is always a second.  One stop can void one of the two
 * seconds between three checks, so a call that is interrupted had a second to
 * return, and three at most.
 */

#ifndef _PEER_WATCH_H_
#define	_PEER_WATCH_H_

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Interrupts a call.  Its handler must be set without SA_RESTART. */
#define	PEER_SIGNAL	SIGUSR2

/* What was seen of a thread; starts as zeros. */
struct peer_watch {
	uint32_t	calls;		/* at the last check */
	unsigned int	checks;		/* that found the same call */
};

/*
 * Check a thread.  `calls' is its count of starts and ends: odd during a
 * call.  Returns true if the call must be interrupted.
 */
bool	peer_watch_check(struct peer_watch *w, uint32_t calls);

/*
 * Return whether a check is due, and then set *next_ns to the time of the next
 * one.  Start with *next_ns as peer_watch_start() returns it.
 * peer_watch_wait() first waits until one of the descriptors is ready
 * (poll(2)), until *next_ns at the most.
 */
bool	peer_watch_due(uint64_t *next_ns);
bool	peer_watch_wait(struct pollfd *fds, nfds_t nfds, uint64_t *next_ns);
uint64_t peer_watch_start(void);

#endif /* !_PEER_WATCH_H_ */
