/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Dropping privileges.
 */

#ifndef _VALED_SANDBOX_H_
#define	_VALED_SANDBOX_H_

/* Drop all capabilities of the calling thread.  0, or -1 with errno. */
int	valed_sandbox_drop(void);

/*
 * Enter the sandbox: no thread of the process can open a file, start a program
 * or gain privileges any more, and a system call that the filter does not allow
 * kills the process.  With a control socket, `pass' is the descriptor on which
 * sendmsg(2) is permitted, and memory and pairs of local sockets can be
 * created; without one it is -1.  0, or -1 with errno.
 */
int	valed_sandbox_enter(int pass);

/*
 * Enter the sandbox of the process that passes descriptors (ctl_pass.h), which
 * has no other thread.  0, or -1 with errno.
 */
int	valed_sandbox_enter_passer(void);

#endif /* !_VALED_SANDBOX_H_ */
