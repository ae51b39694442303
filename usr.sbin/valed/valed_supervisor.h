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

/*
 * If clients are kept, and the program could not start with these arguments, say
 * so, and wait until it can: a file may be wrong.  A signal that ends valed ends
 * this, too, and the service manager has the clients then.  The main thread,
 * first, after valed_activation_init(); it may have opened valed_notify.h.
 */
void	valed_supervisor_wait(char **argv);

/*
 * Become the supervisor, and return in a child, which is to serve.  argv is
 * that of the program, unchanged.  The caller must have no other thread and no
 * descriptor but those that it inherits, and that of valed_notify.h.  If there
 * can be no child, prints a line and exits.
 */
void	valed_supervise(char **argv);

/*
 * The process has no supervisor: it closes what an earlier one has kept.  The
 * main thread, first.
 */
void	valed_unsupervised(void);

#endif /* !_VALED_SUPERVISOR_H_ */
