/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: attached interfaces.
 *
 * valectl(8) opens the interface, with the privileges of who runs it, and
 * passes the descriptors: valed has none, and cannot be asked to use any.  An
 * interface stays attached when the connection ends.
 *
 * Of the descriptors, only those are taken that a client cannot make wait or
 * shrink: sockets of the families that interfaces have, sealed memory, and what
 * has no name, such as programs of bpf(2).
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ctl_impl.h"
#include "hostif.h"
#include "vfu_close.h"

static bool
attach_accepts(int fd)
{
	socklen_t len = sizeof(int);
	int domain, seals;

	switch (vfu_fd_kind(fd)) {
	case VFU_FD_ANON:
		return (true);
	case VFU_FD_MEMORY:
		seals = fcntl(fd, F_GET_SEALS);
		return (seals != -1 && (seals & F_SEAL_SHRINK) != 0);
	default:
		return (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain,
		    &len) == 0 && (domain == AF_PACKET ||
		    domain == AF_NETLINK || domain == AF_XDP));
	}
}

int
ctl_attach(struct ctl_conn *cc, size_t *size __unused)
{
	struct hostif_fds *fds = cc->cc_body;
	const char *name = cc->cc_wire->vw_header.nr_name;
	const char *invalid = vale_name_error(name);
	char error[sizeof(cc->cc_wire->vw_why)];
	struct valed_opening vo;
	enum valed_name_of of;
	unsigned int i;
	bool attached;

	if (invalid != NULL)
		return (ctl_why(cc, EINVAL, "%s", invalid));
	if (fds->hf_nfds > HOSTIF_FDS_MAX || fds->hf_nfds != cc->cc_npassed)
		return (ctl_why(cc, EINVAL,
		    "the descriptors of the interface are missing"));
	ctl_settle(cc);
	for (i = 0; i < cc->cc_npassed; i++) {
		if (!attach_accepts(cc->cc_passed[i]))
			return (ctl_why(cc, EINVAL,
			    "descriptor %u is not one of an interface", i));
		fds->hf_fd[i] = cc->cc_passed[i];
	}
	/* One of -a that was detached may come again. */
	of = valed_names_open(&vo, name);
	if (of == VALED_NAME_ADAPTER)
		return (ctl_port_reserved(cc, of));
	attached = hostif_attach(name, fds, error, sizeof(error));
	if (of == VALED_NAME_FREE)
		valed_names_opened(&vo);
	if (!attached)
		return (ctl_why(cc, EIO, "%s", error));
	cc->cc_npassed = 0;
	return (0);
}

int
ctl_detach(struct ctl_conn *cc, size_t *size __unused)
{
	if (hostif_detach(cc->cc_wire->vw_header.nr_name) != 0)
		return (ctl_why(cc, ENXIO, "it is not an attached interface"));
	return (0);
}
