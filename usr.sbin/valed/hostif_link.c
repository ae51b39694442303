/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Whether an interface is up, its MTU, and whether it is there at all:
 * rtnetlink(7).  The kernel sends a message for each change of any interface.
 * If these are too many, some are lost, and it is asked for the state.  Only
 * the interface's thread.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <net/if.h>

#include <errno.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <string.h>

#include "hostif_impl.h"

/* Without IFF_RUNNING the kernel would drop frames, and not say so. */
#define	LINK_UP		(IFF_UP | IFF_RUNNING)
/* A message about an interface with many VLANs or functions is long. */
#define	LINK_BUFSIZE	32768

void
hostif_link_ask(struct hostif *hi)
{
	struct {
		struct nlmsghdr		nlh;
		struct ifinfomsg	ifi;
	} ask;

	memset(&ask, 0, sizeof(ask));
	ask.nlh.nlmsg_len = sizeof(ask);
	ask.nlh.nlmsg_type = RTM_GETLINK;
	ask.nlh.nlmsg_flags = NLM_F_REQUEST;
	ask.ifi.ifi_family = AF_UNSPEC;
	ask.ifi.ifi_index = hi->fds.hf_index;
	(void)sendto(hi->fds.hf_fd[HOSTIF_FD_LINK], &ask, sizeof(ask),
	    MSG_DONTWAIT, NULL, 0);
}

static void
link_state(struct hostif *hi, bool up, bool gone, uint32_t mtu)
{
	if (gone)
		hostif_log(hi, "the interface is gone");
	else if (up != hi->up)
		hostif_log(hi, "the interface is %s", up ? "up" : "down");
	else if (mtu != hi->mtu && hi->mtu != 0)
		hostif_log(hi, "the interface's MTU is %u", mtu);
	if (gone || up != hi->up || (mtu != hi->mtu && hi->mtu != 0))
		hostif_count(hi, HOSTIF_C_LINK, 1);
	hi->up = up;
	hi->gone = gone;
	hi->mtu = mtu;
}

static void
link_message(struct hostif *hi, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
	const struct nlmsgerr *answer = NLMSG_DATA(nlh);
	const struct rtattr *rta;
	uint32_t mtu = hi->mtu;
	int left;

	if (hi->gone)
		return;
	/* The answer about an interface that went before it was asked for. */
	if (nlh->nlmsg_type == NLMSG_ERROR &&
	    nlh->nlmsg_len >= NLMSG_LENGTH(sizeof(*answer)) &&
	    answer->error == -ENODEV)
		link_state(hi, false, true, mtu);
	if ((nlh->nlmsg_type != RTM_NEWLINK &&
	    nlh->nlmsg_type != RTM_DELLINK) ||
	    nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) ||
	    ifi->ifi_family != AF_UNSPEC ||
	    ifi->ifi_index != (int)hi->fds.hf_index)
		return;
	left = IFLA_PAYLOAD(nlh);
	for (rta = IFLA_RTA(ifi); RTA_OK(rta, left);
	    rta = RTA_NEXT(rta, left)) {
		if (rta->rta_type == IFLA_MTU &&
		    RTA_PAYLOAD(rta) == sizeof(mtu))
			memcpy(&mtu, RTA_DATA(rta), sizeof(mtu));
	}
	if (nlh->nlmsg_type == RTM_DELLINK)
		link_state(hi, false, true, mtu);
	else
		link_state(hi, (ifi->ifi_flags & LINK_UP) == LINK_UP, false,
		    mtu);
}

void
hostif_link_event(struct hostif *hi)
{
	_Alignas(NLMSG_ALIGNTO) uint8_t buf[LINK_BUFSIZE];
	const struct nlmsghdr *nlh;
	struct sockaddr_nl from;
	socklen_t fromlen = sizeof(from);
	ssize_t len;

	len = recvfrom(hi->fds.hf_fd[HOSTIF_FD_LINK], buf, sizeof(buf),
	    MSG_DONTWAIT, (struct sockaddr *)&from, &fromlen);
	if (len == -1 && errno == ENOBUFS)
		hostif_link_ask(hi);
	/* Only the kernel is believed. */
	if (len == -1 || fromlen != sizeof(from) || from.nl_pid != 0)
		return;
	for (nlh = (const struct nlmsghdr *)buf; NLMSG_OK(nlh, len);
	    nlh = NLMSG_NEXT(nlh, len))
		link_message(hi, nlh);
}
