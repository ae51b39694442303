/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: who a connection's client is.  See ctl_who.h, and
 * SO_PEERCRED in unix(7).  SO_PEERGROUPS has the supplementary groups, which
 * may be more than fit on a stack.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl_who.h"

static uid_t admin_uid;
static gid_t admin_gid = CTL_WHO_NOGROUP;

void
ctl_who_init(gid_t admin)
{
	admin_uid = geteuid();
	admin_gid = admin;
}

/* Set *found if `gid' is one of the peer's supplementary groups. */
static int
peer_in_group(int fd, gid_t gid, bool *found)
{
	socklen_t i, len = 0;
	gid_t *groups = NULL;
	int error = 0;

	/* With too little space for them, it says how much they take. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == -1) {
		if (errno != ERANGE)
			return (errno);
		groups = malloc(len);
		if (groups == NULL)
			return (ENOMEM);
		if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups,
		    &len) == -1)
			error = errno;
	}
	*found = false;
	for (i = 0; error == 0 && i < len / sizeof(*groups); i++)
		*found |= groups[i] == gid;
	free(groups);
	return (error);
}

int
ctl_who(int fd, struct ctl_who *who)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	bool admin;
	int error;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1)
		return (errno);
	admin = peer.uid == 0 || peer.uid == admin_uid;
	if (!admin && admin_gid != CTL_WHO_NOGROUP) {
		error = peer_in_group(fd, admin_gid, &admin);
		if (error != 0)
			return (error);
		admin |= peer.gid == admin_gid;
	}
	*who = (struct ctl_who){ peer.uid, admin };
	return (0);
}
