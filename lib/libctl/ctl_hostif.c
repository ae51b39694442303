/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: attached interfaces.
 *
 * valectl(8) opens the interface, with the privileges of who runs it, and
 * passes the descriptors: valed has none, and cannot be asked to use any.  Only
 * administrators may, and the interface stays attached when the connection
 * ends.
 *
 * Each descriptor must be what hostif_open() leaves in its place: a socket of
 * that family and protocol, which is bound to the interface if the kernel tells
 * where it is bound; memory that cannot shrink; or what has no name, such as a
 * program of bpf(2).
 */

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>

#include <arpa/inet.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <string.h>

#include "ctl_impl.h"
#include "hostif_impl.h"
#include "peer_close.h"
#include "peer_fd.h"

static bool
is_netlink(int fd, int protocol)
{
	return (peer_socket_is(fd, SO_DOMAIN, AF_NETLINK) &&
	    peer_socket_is(fd, SO_PROTOCOL, protocol));
}

/* Return whether the socket tells of changes of interfaces. */
static bool
is_link(int fd)
{
	struct sockaddr_nl snl;
	socklen_t len = sizeof(snl);

	return (is_netlink(fd, NETLINK_ROUTE) &&
	    getsockname(fd, (struct sockaddr *)&snl, &len) == 0 &&
	    (snl.nl_groups & RTMGRP_LINK) != 0);
}

static bool
is_packet(int fd, uint32_t index)
{
	struct sockaddr_ll sll;
	socklen_t len = sizeof(sll);

	return (peer_socket_is(fd, SO_DOMAIN, AF_PACKET) &&
	    getsockname(fd, (struct sockaddr *)&sll, &len) == 0 &&
	    (uint32_t)sll.sll_ifindex == index &&
	    sll.sll_protocol == htons(ETH_P_ALL));
}

/* Return whether a socket is of AF_XDP: the kernel does not tell where. */
static bool
is_xdp(int fd)
{
	return (peer_socket_is(fd, SO_DOMAIN, AF_XDP) &&
	    (recv(fd, NULL, 0, MSG_DONTWAIT) != -1 || errno != ENXIO));
}

static bool
is_memory(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	return (seals != -1 && (seals & F_SEAL_SHRINK) != 0);
}

static bool
is_anon(int fd)
{
	return (peer_fd_kind(fd) == PEER_FD_ANON);
}

/* Return whether `fd' may be hf_fd[i]: hostif_open.c and hostif_open_xdp.c. */
static bool
attach_accepts(const struct hostif_fds *fds, unsigned int i, int fd)
{
	if (i == HOSTIF_FD_LINK)
		return (is_link(fd));
	if (fds->hf_kind == HOSTIF_PACKET)
		return (i == HOSTIF_FD_KIND ? is_packet(fd, fds->hf_index) :
		    is_anon(fd) || is_netlink(fd, NETLINK_NETFILTER));
	switch (i) {
	case HOSTIF_FD_ETHTOOL:
		return (is_netlink(fd, NETLINK_GENERIC));
	case HOSTIF_FD_PROMISC:
		return (peer_socket_is(fd, SO_DOMAIN, AF_PACKET));
	case HOSTIF_FD_PROGRAM:
		return (is_anon(fd));
	case HOSTIF_FD_MEMORY:
		return (is_memory(fd));
	default:
		return (is_xdp(fd));
	}
}

bool
ctl_attach_accepts(const struct hostif_fds *fds)
{
	unsigned int i;

	for (i = 0; i < fds->hf_nfds; i++)
		if (!attach_accepts(fds, i, fds->hf_fd[i]))
			return (false);
	return (true);
}

/*
 * Attach an interface, unless the port's name is an adapter's, or a program
 * captures what has it.
 */
static int
attach(struct ctl_conn *cc, const char *name, const struct hostif_fds *fds)
{
	char why[HOSTIF_WHY];
	struct ctl_owner ow = { .ow_capture = false };
	int claim, error = 0;
	bool adapter;

	claim = ctl_owner_claim(&ow, name, &cc->cc_who, false);
	/* An interface of -a that was detached may come again. */
	adapter = ctl_names_of(name) == CTL_NAME_ADAPTER;
	if (claim == 0 && !adapter)
		error = hostif_attach(name, fds, why);
	/* The name is the interface's now, or free. */
	ctl_owner_leave(&ow);
	if (adapter)
		return (ctl_port_reserved(cc, CTL_NAME_ADAPTER));
	if (claim != 0)
		return (ctl_why_owner(cc, claim));
	return (error == 0 ? 0 : ctl_why(cc, EIO, "%s", why));
}

int
ctl_attach(struct ctl_conn *cc, size_t *size __unused)
{
	struct hostif_fds *fds = cc->cc_body;
	const char *name = cc->cc_wire->vw_header.nr_name;
	const char *invalid = vale_name_error(name);
	unsigned int i;
	int error;

	if (invalid != NULL)
		return (ctl_why(cc, EINVAL, "%s", invalid));
	if (fds->hf_nfds > HOSTIF_FDS_MAX ||
	    fds->hf_nfds != cc->cc_grant.gr_npassed)
		return (ctl_why(cc, EINVAL,
		    "the descriptors of the interface are missing"));
	ctl_settle(cc);
	for (i = 0; i < cc->cc_grant.gr_npassed; i++) {
		if (!attach_accepts(fds, i, cc->cc_grant.gr_passed[i]))
			return (ctl_why(cc, EINVAL,
			    "descriptor %u is not one of this interface", i));
		fds->hf_fd[i] = cc->cc_grant.gr_passed[i];
	}
	error = attach(cc, name, fds);
	if (error == 0)
		cc->cc_grant.gr_npassed = 0;
	return (error);
}

int
ctl_detach(struct ctl_conn *cc, size_t *size __unused)
{
	if (hostif_detach(cc->cc_wire->vw_header.nr_name) != 0)
		return (ctl_why(cc, ENXIO, "it is not an attached interface"));
	return (0);
}
