/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: who a connection's client is, as the kernel saw it when
 * it connected.  A process to which the connection is passed counts as that
 * client.
 */

#ifndef _CTL_WHO_H_
#define	_CTL_WHO_H_

#include <sys/types.h>

#include <stdbool.h>

/* No group: of ctl_who_init(). */
#define	CTL_WHO_NOGROUP	((gid_t)-1)

struct ctl_who {
	uid_t		 cw_uid;	/* effective */
	bool		 cw_admin;
};

/*
 * Say that administrators are root, the effective user of this process as it
 * calls this, and members of group `admin', or nobody else with
 * CTL_WHO_NOGROUP.  The main thread, before the first connection.
 */
void	ctl_who_init(gid_t admin);

/*
 * Find out who is at the other end of `fd', a connected socket of the UNIX
 * domain, and set *who.  Returns 0 or an errno; *who is then unchanged.  Any
 * thread, also in the sandbox.
 */
int	ctl_who(int fd, struct ctl_who *who);

#endif /* !_CTL_WHO_H_ */
