/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Messages to the service manager, if NOTIFY_SOCKET names one.  Only the main
 * thread may call these functions.
 */

#ifndef _VALED_NOTIFY_H_
#define	_VALED_NOTIFY_H_

#include <stdbool.h>

/* Connect, before the sandbox.  If that fails, prints a line and exits. */
void	valed_notify_open(void);

/* Send a message, as sd_notify(3) has it.  Does not wait. */
void	valed_notify(const char *fmt, ...)
	    __attribute__((__format__(__printf__, 1, 2)));

/*
 * Send a message with n descriptors, which the caller keeps.  Returns false if
 * there is no service manager, or it has no space for the message: `wait' is
 * whether to wait for that, for a few seconds at most.  _barrier() waits as
 * long until the manager has received what was sent.  The supervisor.
 */
bool	valed_notify_fds(const int *fds, unsigned int n, bool wait,
	    const char *fmt, ...)
	    __attribute__((__format__(__printf__, 4, 5)));
void	valed_notify_barrier(void);

/* Return whether there is a service manager. */
bool	valed_notify_wanted(void);

/*
 * Say that valed serves so many adapters, after a reload with that error if it
 * is not ""; that it reads its configuration again.
 */
void	valed_notify_ready(unsigned int nadapters, const char *why);
void	valed_notify_reloading(void);

/* Tell the manager's watchdog that valed lives.  Once a second. */
void	valed_notify_watch(void);

#endif /* !_VALED_NOTIFY_H_ */
