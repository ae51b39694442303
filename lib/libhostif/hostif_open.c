/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Open an interface: hostif.h.  No state.  The descriptors of packet(7):
 *
 *	0	rtnetlink(7), which tells its state: hostif_link.c
 *	1	packet(7): the rings, and promiscuous mode
 *	2	what keeps the frames from the host's stack: hostif_drop.c
 */

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <arpa/inet.h>

#include <errno.h>
#include <ifaddrs.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <stdio.h>
#include <string.h>

#include "hostif.h"
#include "hostif_impl.h"
#include "vale_clock.h"

/* Bytes that frames in transmission may have; a ring has less. */
#define	OPEN_SNDBUF	(64 << 20)

int
hostif_kind(const char *name, enum hostif_kind *kind)
{
	static const char *const kinds[HOSTIF_NKINDS] = {
		[HOSTIF_PACKET] = "packet", [HOSTIF_XDP] = "xdp"
	};
	enum hostif_kind k;

	for (k = HOSTIF_PACKET; k < HOSTIF_NKINDS; k++)
		if (strcmp(name, kinds[k]) == 0) {
			*kind = k;
			return (0);
		}
	errno = EINVAL;
	return (-1);
}

static int
open_option(int s, int option, int value)
{
	return (setsockopt(s, SOL_PACKET, option, &value, sizeof(value)));
}

int
hostif_promiscuous(int s, uint32_t index)
{
	const struct packet_mreq mr = {
		.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC
	};

	return (setsockopt(s, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mr,
	    sizeof(mr)));
}

static int
open_transmit(int s, const struct tpacket_req *req)
{
	return (setsockopt(s, SOL_PACKET, PACKET_TX_RING, req, sizeof(*req)));
}

/* Set up the rings.  Returns NULL, or what failed, with errno. */
static const char *
open_rings(int s)
{
	static const struct tpacket_req transmit = {
		.tp_block_size = HOSTIF_BLOCK_SIZE,
		.tp_block_nr = HOSTIF_TX_BLOCKS,
		.tp_frame_size = HOSTIF_SLOT_SIZE,
		.tp_frame_nr = HOSTIF_TX_BLOCKS * HOSTIF_BLOCK_SLOTS
	};

	if (hostif_ring_set(s, &hostif_ring_receive) == -1)
		return ("receive ring");
	if (open_transmit(s, &transmit) == -1)
		return ("transmit ring");
	return (NULL);
}

/* Configure the socket.  Returns NULL, or what failed, with errno. */
static const char *
open_configure(int s, int index)
{
	const struct sockaddr_ll sll = {
		.sll_family = AF_PACKET, .sll_ifindex = index,
		.sll_protocol = htons(ETH_P_ALL)
	};
	const int sndbuf = OPEN_SNDBUF;
	const char *failed;

	/*
	 * PACKET_LOSS: the kernel skips a frame that it cannot send, and does
	 * not stop at it.  No PACKET_QDISC_BYPASS: a queue takes what a busy
	 * adapter does not, and costs little where the host sends nothing.
	 */
	if (open_option(s, PACKET_VERSION, TPACKET_V2) == -1)
		return ("TPACKET_V2");
	if (open_option(s, PACKET_RESERVE, HOSTIF_RESERVE) == -1)
		return ("PACKET_RESERVE");
	if (open_option(s, PACKET_VNET_HDR, 1) == -1)
		return ("virtio-net headers");
	if (open_option(s, PACKET_LOSS, 1) == -1)
		return ("PACKET_LOSS");
	if (open_option(s, PACKET_IGNORE_OUTGOING, 1) == -1)
		return ("PACKET_IGNORE_OUTGOING");
	if (setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf,
	    sizeof(sndbuf)) == -1)
		return ("SO_SNDBUFFORCE");
	failed = open_rings(s);
	if (failed != NULL)
		return (failed);
	if (bind(s, (const struct sockaddr *)&sll, sizeof(sll)) == -1)
		return ("bind");
	if (hostif_promiscuous(s, index) == -1)
		return ("promiscuous mode");
	return (NULL);
}

/* Open a socket that tells changes of all interfaces. */
static int
open_link(void)
{
	const struct sockaddr_nl snl = {
		.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK
	};
	int s;

	s = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    NETLINK_ROUTE);
	if (s != -1 && bind(s, (const struct sockaddr *)&snl,
	    sizeof(snl)) == -1)
		return (hostif_fd_close(s));
	return (s);
}

/* Find the index of an interface of Ethernet's type. */
static int
open_index(int s, const char *ifname, uint32_t *index, char why[HOSTIF_WHY])
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	strlcpy(ifr.ifr_name, ifname, sizeof(ifr.ifr_name));
	if (ioctl(s, SIOCGIFINDEX, &ifr) == -1)
		return (hostif_fail(why, errno, "%s: no such interface",
		    ifname));
	*index = ifr.ifr_ifindex;
	if (ioctl(s, SIOCGIFHWADDR, &ifr) == -1)
		return (hostif_fail(why, errno, "%s: %s", ifname,
		    strerror(errno)));
	if (ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return (hostif_fail(why, EPROTONOSUPPORT,
		    "%s: not an Ethernet interface", ifname));
	return (0);
}

void
hostif_fds_add(struct hostif_fds *fds, int fd)
{
	fds->hf_fd[fds->hf_nfds++] = fd;
}

static int
open_packet(struct hostif_fds *fds, char why[HOSTIF_WHY])
{
	const char *failed;
	int drop, s;

	/* Without a protocol it gets nothing before it is bound. */
	s = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s == -1)
		return (hostif_fail_step(why, fds->hf_name, "packet socket"));
	hostif_fds_add(fds, s);
	/* First, so that the host never gets what the switch gets. */
	drop = hostif_drop(fds->hf_name, fds->hf_index);
	if (drop != -1)
		hostif_fds_add(fds, drop);
	else
		fds->hf_flags |= HOSTIF_HOST_GETS;
	failed = open_configure(s, fds->hf_index);
	if (failed != NULL)
		return (hostif_fail_step(why, fds->hf_name, failed));
	fds->hf_kind = HOSTIF_PACKET;
	return (0);
}

/* Open what the kind needs; `s' is a socket for ioctl(2). */
static int
open_kind(struct hostif_fds *fds, enum hostif_kind kind, int s,
    char why[HOSTIF_WHY])
{
	if (open_index(s, fds->hf_name, &fds->hf_index, why) == -1)
		return (-1);
	if (kind == HOSTIF_XDP)
		return (hostif_open_xdp(fds, s, why));
	return (open_packet(fds, why));
}

int
hostif_open(const char *ifname, enum hostif_kind kind, struct hostif_fds *fds,
    char why[HOSTIF_WHY])
{
	int s, status;

	memset(fds, 0, sizeof(*fds));
	if (strlcpy(fds->hf_name, ifname, sizeof(fds->hf_name)) >=
	    sizeof(fds->hf_name))
		return (hostif_fail(why, ENAMETOOLONG,
		    "%s: not an interface's name", ifname));
	s = open_link();
	if (s == -1)
		return (hostif_fail_step(why, ifname, "rtnetlink"));
	hostif_fds_add(fds, s);
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s == -1) {
		hostif_close(fds);
		return (hostif_fail(why, errno, "%s: socket: %s", ifname,
		    strerror(errno)));
	}
	status = open_kind(fds, kind, s, why);
	hostif_fd_close(s);
	if (status == -1)
		hostif_close(fds);
	return (status);
}

/* Find an address of the interface that is not only the link's, as text. */
static bool
open_address(const char *ifname, char text[INET6_ADDRSTRLEN])
{
	const struct sockaddr_in6 *sin6;
	struct ifaddrs *all, *ia;
	const void *addr;
	bool found = false;

	if (getifaddrs(&all) == -1)
		return (false);
	for (ia = all; ia != NULL && !found; ia = ia->ifa_next) {
		if (ia->ifa_addr == NULL || strcmp(ia->ifa_name, ifname) != 0)
			continue;
		sin6 = (const void *)ia->ifa_addr;
		addr = &sin6->sin6_addr;
		if (sin6->sin6_family == AF_INET)
			addr = &((const struct sockaddr_in *)(const void *)
			    ia->ifa_addr)->sin_addr;
		else if (sin6->sin6_family != AF_INET6 ||
		    IN6_IS_ADDR_LINKLOCAL(&sin6->sin6_addr))
			continue;
		found = inet_ntop(sin6->sin6_family, addr, text,
		    INET6_ADDRSTRLEN) != NULL;
	}
	freeifaddrs(all);
	return (found);
}

bool
hostif_warning(const struct hostif_fds *fds, char line[HOSTIF_WHY])
{
	char address[INET6_ADDRSTRLEN];

	if ((fds->hf_flags & HOSTIF_HOST_GETS) != 0)
		snprintf(line, HOSTIF_WHY, "the host gets what %s receives, "
		    "too: remove its addresses there", fds->hf_name);
	else if (open_address(fds->hf_name, address))
		snprintf(line, HOSTIF_WHY, "%s has the address %s, at which "
		    "the host is not reached while the interface is attached",
		    fds->hf_name, address);
	else
		return (false);
	return (true);
}

int
hostif_again(const struct hostif_fds *fds, uint64_t end_ms)
{
	const int s = fds->hf_fd[HOSTIF_FD_KIND];

	if (fds->hf_kind != HOSTIF_PACKET || fds->hf_nfds <= HOSTIF_FD_KIND) {
		errno = EOPNOTSUPP;
		return (-1);
	}
	/* EBUSY: it is mapped, or the interface has frames of the ring. */
	while (open_transmit(s, &hostif_ring_none) == -1) {
		if (errno != EBUSY || vale_now_ms() >= end_ms)
			return (-1);
		poll(NULL, 0, 1);
	}
	if (hostif_ring_set(s, &hostif_ring_none) == -1)
		return (-1);
	return (open_rings(s) == NULL ? 0 : -1);
}

void
hostif_close(struct hostif_fds *fds)
{
	while (fds->hf_nfds > 0)
		hostif_fd_close(fds->hf_fd[--fds->hf_nfds]);
}
