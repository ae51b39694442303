/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The watchdog for system calls in which a client can block a thread of valed:
 * its time, and its judgement.
 *
 * A thread counts the starts and ends of such calls.  The main thread looks at
 * the counts once a second, and interrupts a call that it has seen at three
 * looks in a row.  If the process was stopped, or the host suspended, the clock
 * has gone on without the threads.  So the looks that were missed are not made
 * up for: from one to the next is always a second.  One stop can void one of
 * the two seconds between three looks, so a call that is interrupted had a
 * second to return, and three at most.
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
	uint32_t	calls;		/* at the last look */
	unsigned int	looks;		/* that found the same call */
};

/*
 * A look at a thread.  `calls' is its count of starts and ends: odd during a
 * call.  Returns true if the call must be interrupted.
 */
bool	peer_watch_check(struct peer_watch *w, uint32_t calls);

/*
 * Return whether it is time to look, and then set *next_ns to the time of the
 * next look.  Start with *next_ns as peer_watch_start() returns it.
 * peer_watch_wait() first waits until one of the descriptors is ready
 * (poll(2)), until *next_ns at the most.
 */
bool	peer_watch_due(uint64_t *next_ns);
bool	peer_watch_wait(struct pollfd *fds, nfds_t nfds, uint64_t *next_ns);
uint64_t peer_watch_start(void);

#endif /* !_PEER_WATCH_H_ */
