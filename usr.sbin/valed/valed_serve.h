/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Serving, when all has been started, until the end: valed_serve.c.
 */

#ifndef _VALED_SERVE_H_
#define	_VALED_SERVE_H_

#include <stdbool.h>

/*
 * Block the signals that the main thread reads, and return a descriptor to read
 * them from, or -1 with errno.  From now on SIGPIPE is ignored, and PEER_SIGNAL
 * only interrupts a system call (peer_watch.h).  The main thread, before there
 * are others, which have the same signals blocked then.
 */
int	valed_serve_signals(void);

/*
 * Have the store keep the interfaces and settings that administrators have
 * changed, for the next process.  Any thread, when valed_hostif_keep_start()
 * and valed_settings_keep_start() have returned.
 */
void	valed_serve_keep(void);

struct adapter;

/*
 * Do what the main thread does once a second, if that is due: while it waits
 * for the guard, or for an adapter to start, to move, or to end, `ending'.
 * Does nothing before valed_serve().
 */
void	valed_serve_watch(struct adapter *ending);

/*
 * Let the adapters serve (adapter_go()), which reloads change, until a signal
 * ends the process, or a client has it restarted.  The supervisor and the
 * service manager are told that valed is ready.  `live' is whether each
 * adapter has a line printed once a second (-v).  `signal_fd' is from
 * valed_serve_signals().  The main thread, in the sandbox.
 */
void	valed_serve(bool live, int signal_fd) __attribute__((__noreturn__));

#endif /* !_VALED_SERVE_H_ */
