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
 * kills the process.  sendmsg(2) is permitted on two descriptors: with a
 * control socket on `pass', and memory and pairs of local sockets can be
 * created; with a store on `store', and pass, if there is one, is store ^ 1.
 * Otherwise they are -1.  0, or -1 with errno.
 */
int	valed_sandbox_enter(int pass, int store);

/*
 * Enter the sandbox of the process that passes descriptors (ctl_pass.h), which
 * has no other thread.  0, or -1 with errno.
 */
int	valed_sandbox_enter_passer(void);

/*
 * Enter the sandbox of a process that opens a port (valed_opener.h), which has
 * no other thread: it connects to local sockets.  0, or -1 with errno.
 */
int	valed_sandbox_enter_opener(void);

#endif /* !_VALED_SANDBOX_H_ */
