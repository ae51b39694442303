/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors that come from another process: inherited when a program is
 * executed, or passed with SCM_RIGHTS.  netmap_run.h.
 *
 * Nothing tells the library that one has come.  It looks at a descriptor that
 * it does not know when the program makes a request of netmap's, or cannot map
 * it: before that, no program can do anything with it.  A connection to the
 * valed that this process would use is a descriptor of /dev/netmap.  valed then
 * says which port the connection has, and gives its memory and sockets again.
 */

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "netmap_run.h"
#include "peer_fd.h"

/* Have who is at the other end of a local socket. */
static bool
socket_peer(int fd, struct ucred *uc)
{
	socklen_t len = sizeof(*uc);

	return (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, uc, &len) == 0 &&
	    len == sizeof(*uc));
}

static bool
socket_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	return (getpeername(fd, (struct sockaddr *)&peer, &len) == 0);
}

/*
 * Return whether the connection is to valed: the process listens at the path to
 * which this one would connect.  Another process's memory could be anything.
 */
static bool
socket_of_valed(int fd)
{
	struct ucred theirs, valed;
	int own = vale_client_connect(vale_find_path());
	bool same;

	if (own == -1)
		return (false);
	same = socket_peer(fd, &theirs) && socket_peer(own, &valed) &&
	    memcmp(&theirs, &valed, sizeof(valed)) == 0;
	run_calls()->close(own);
	return (same);
}

/* Make a descriptor of a passed one.  The ports' lock. */
static struct run_desc *
share_desc(int fd, bool connected)
{
	int copy = run_calls()->fcntl(fd, F_DUPFD_CLOEXEC, (void *)0);
	struct run_desc *rd;

	if (copy == -1)
		return (NULL);
	rd = run_desc_new(copy);
	if (rd == NULL) {
		run_calls()->close(copy);
		return (NULL);
	}
	/* The connection may have no port, as after NIOCGINFO. */
	if (connected && run_port_share(rd) == 0)
		atomic_store_explicit(&rd->rd_registered, true,
		    memory_order_release);
	rd->rd_connected = connected;
	run_desc_add(rd, fd);
	return (rd);
}

struct run_desc *
run_share(int fd, bool connected)
{
	struct run_desc *rd = NULL;
	int error = errno;

	if ((unsigned int)fd < RUN_FDS &&
	    peer_socket_is(fd, SO_DOMAIN, AF_UNIX) &&
	    peer_socket_is(fd, SO_TYPE, SOCK_SEQPACKET)) {
		connected |= socket_connected(fd);
		run_ports_lock();
		rd = run_get(fd);
		if (rd == NULL && (!connected || socket_of_valed(fd)))
			rd = share_desc(fd, connected);
		run_ports_unlock();
	}
	errno = error;
	return (rd);
}
