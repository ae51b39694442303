/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The supervisor: a process without clients that has the store (valed_store.h)
 * and starts valed again.
 */

#ifndef _VALED_SUPERVISOR_H_
#define	_VALED_SUPERVISOR_H_

struct valed_why;

/*
 * Take what an earlier process has left.  The main thread, first, after
 * valed_activation_init().  It may open valed_notify.h.
 */
void	valed_supervisor_begin(char **argv);

/*
 * Handle an option, or a file, that is wrong: if clients are kept, wait until
 * the program can start with these arguments, and execute it again.  A signal
 * that ends valed ends the wait, and the service manager has the clients then.
 */
void	valed_supervisor_mend(const struct valed_why *wrong);

/*
 * Become the supervisor, and return in a child, which is to serve.  argv is
 * that of the program, unchanged.  The caller must have no other thread and no
 * descriptor but those that it inherits, and that of valed_notify.h.  If there
 * can be no child, prints a line and exits.
 */
void	valed_supervise(char **argv);

/*
 * Close what an earlier process has kept: this one has no supervisor.  The main
 * thread, first.
 */
void	valed_unsupervised(void);

#endif /* !_VALED_SUPERVISOR_H_ */
