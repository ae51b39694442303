/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A device that is served by a child process, which may be killed at any time,
 * and another one then goes on.  This process is the client, and the store of
 * descriptors.  Replies are compared with what the client expects, one by one.
 */

#ifndef _VFU_TAKEOVER_H_
#define	_VFU_TAKEOVER_H_

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define	TAKEOVER_PAGES	16		/* of guest memory, mapped apart */
#define	TAKEOVER_LINE	0x8000		/* a write raises the interrupt */

/* Messages. */
enum takeover_kind {
	TAKEOVER_READ, TAKEOVER_READ_PAGE, TAKEOVER_POST, TAKEOVER_WRITE,
	TAKEOVER_MULTI, TAKEOVER_POST_MULTI, TAKEOVER_CONFIG, TAKEOVER_MAP,
	TAKEOVER_MAP_AGAIN, TAKEOVER_UNMAP, TAKEOVER_UNMAP_ALL, TAKEOVER_IRQS,
	TAKEOVER_IRQS_OFF, TAKEOVER_INFO, TAKEOVER_RESET, TAKEOVER_UNKNOWN,
	TAKEOVER_KINDS
};

/* Start the first process, and connect. */
void	takeover_start(void);
extern int takeover_sndbuf;		/* SO_SNDBUF of the client, if not 0 */

/* Start a process that stops (SIGSTOP, traced) before it handles events. */
extern bool takeover_traced;

/*
 * Another client comes, and may find that a process dies, which another one
 * then follows.  Returns whether it is served; otherwise its connection is
 * lost.  It goes; returns whether a process has died since takeover_die_at().
 */
bool	takeover_connect(void);
/*
 * Whether a process has died that had accepted it, but not put it in the store.
 */
bool	takeover_unkept(void);
bool	takeover_disconnect(void);

/* The process that serves the device. */
extern pid_t takeover_pid;

/* Kill the process; and have another one go on, if there is none. */
void	takeover_kill(void);
void	takeover_next(void);
/*
 * Have the process kill itself at the n-th of these points from now on, before
 * it returns to its code: a system call on a stream, a socket or the loop's
 * set is about to be made, or has been; a descriptor is put or removed; the
 * device's functions are called, and return; the table of ranges is about to
 * change, or has.  0: never.
 */
void	takeover_die_at(unsigned int n);
/*
 * Wait for all replies, or until it has died there.  Returns whether it has.
 */
bool	takeover_died(void);

/* The last line of a process. */
const char *takeover_said(void);

/* The number of processes so far. */
extern unsigned int takeover_processes;

/*
 * Send a message: all of it, or the first part, and the rest with the next one
 * or takeover_rest().
 */
void	takeover_send(enum takeover_kind kind, uint32_t *seed, bool split);
void	takeover_rest(void);

/* Read the replies and the messages to the store that have arrived. */
void	takeover_poll(void);
/* Wait for all replies, for as long as it takes. */
void	takeover_wait(void);
/* Replies that are missing. */
unsigned int takeover_missing(void);

/*
 * Check that all writes have been carried out in order, that the store has the
 * descriptors of the client, and that interrupts arrive.
 */
void	takeover_check(void);

/* The client leaves; the store is empty then. */
void	takeover_end(void);

#endif /* !_VFU_TAKEOVER_H_ */
