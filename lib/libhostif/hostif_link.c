/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Whether an interface is up, its MTU, what kind of interface it is, which
 * other one it belongs to, and whether it is there at all: rtnetlink(7).  The
 * kernel sends a message for each change of any interface.  If these are too
 * many, some are lost, and it is asked for the state.  Only the interface's
 * thread.
 *
 * An interface that is moved to another network namespace is gone.
 */

#include <sys/socket.h>

#include <net/if.h>
#include <net/if_arp.h>

#include <errno.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <stdio.h>
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

/* What a message says of the interface. */
struct link {
	bool		 ether;		/* its frames are Ethernet's */
	bool		 up;
	uint32_t	 mtu;
	uint32_t	 master;	/* the one that it belongs to, or 0 */
	bool		 vrf;		/* which takes no frames from it */
	const char	*hint;		/* link_hint() */
	char		 name[HOSTIF_NAME_SIZE];
};

#define	LINK_FOREACH(rta, first, left)					\
	for ((rta) = (first); RTA_OK((rta), (left));			\
	    (rta) = RTA_NEXT((rta), (left)))

static uint32_t
link_number(const struct rtattr *rta)
{
	uint32_t value = 0;

	if (RTA_PAYLOAD(rta) == sizeof(value))
		memcpy(&value, RTA_DATA(rta), sizeof(value));
	return (value);
}

/* Return whether the attribute is this string; the kernel's has a NUL. */
static bool
link_is(const struct rtattr *rta, const char *s)
{
	const size_t len = strlen(s);

	return (RTA_PAYLOAD(rta) >= len && memcmp(RTA_DATA(rta), s,
	    len) == 0 && (RTA_PAYLOAD(rta) == len ||
	    ((const char *)RTA_DATA(rta))[len] == '\0'));
}

/* Return why a macvlan interface has no frames for guests, or NULL. */
static const char *
link_macvlan(const struct rtattr *data)
{
	const struct rtattr *rta;
	uint32_t flags = 0, mode = 0;
	int left = RTA_PAYLOAD(data);

	LINK_FOREACH(rta, (const struct rtattr *)RTA_DATA(data), left) {
		if (rta->rta_type == IFLA_MACVLAN_MODE)
			mode = link_number(rta);
		else if (rta->rta_type == IFLA_MACVLAN_FLAGS &&
		    RTA_PAYLOAD(rta) == sizeof(uint16_t))
			flags = *(const uint16_t *)RTA_DATA(rta);
	}
	if (mode != MACVLAN_MODE_PASSTHRU)
		return ("a macvlan interface gets frames for its own address "
		    "only, and none for guests: mode passthru gets all");
	if ((flags & MACVLAN_FLAG_NOPROMISC) != 0)
		return ("a macvlan interface with nopromisc may get no frames "
		    "for guests");
	return (NULL);
}

/*
 * Return why an interface has no frames for guests, or NULL; `info' is its
 * IFLA_LINKINFO.  Sets l->vrf.
 */
static const char *
link_hint(const struct rtattr *info, struct link *l)
{
	const struct rtattr *rta;
	int left = RTA_PAYLOAD(info);
	bool macvlan = false;

	/* The kind is before its data. */
	LINK_FOREACH(rta, (const struct rtattr *)RTA_DATA(info), left) {
		if (rta->rta_type == IFLA_INFO_SLAVE_KIND)
			l->vrf = link_is(rta, "vrf");
		else if (rta->rta_type == IFLA_INFO_KIND) {
			macvlan = link_is(rta, "macvlan") ||
			    link_is(rta, "macvtap");
			if (link_is(rta, "ipvlan") || link_is(rta, "ipvtap"))
				l->hint = "an ipvlan interface gets frames "
				    "for its own addresses only, and none for "
				    "guests";
		} else if (rta->rta_type == IFLA_INFO_DATA && macvlan)
			l->hint = link_macvlan(rta);
	}
	return (l->hint);
}

static void
link_parse(const struct nlmsghdr *nlh, struct link *l)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
	const struct rtattr *rta;
	int left = IFLA_PAYLOAD(nlh);

	l->ether = ifi->ifi_type == ARPHRD_ETHER;
	l->up = (ifi->ifi_flags & LINK_UP) == LINK_UP;
	LINK_FOREACH(rta, IFLA_RTA(ifi), left) {
		switch (rta->rta_type & NLA_TYPE_MASK) {
		case IFLA_MTU:
			l->mtu = link_number(rta);
			break;
		case IFLA_MASTER:
			l->master = link_number(rta);
			break;
		case IFLA_IFNAME:
			snprintf(l->name, sizeof(l->name), "%.*s",
			    (int)RTA_PAYLOAD(rta), (const char *)RTA_DATA(rta));
			break;
		case IFLA_LINKINFO:
			l->hint = link_hint(rta, l);
			break;
		}
	}
}

static void
link_gone(struct hostif *hi)
{
	hostif_count(hi, HOSTIF_C_LINK, 1);
	hostif_log(hi, "the interface is gone");
	atomic_store_bool(&hi->up, false);
	atomic_store_bool(&hi->gone, true);
}

/* Return whether frames may pass. */
static void
link_up(struct hostif *hi, const struct link *l)
{
	const bool up = l->up && l->ether;

	/* A reader of the line finds the change counted. */
	if (up != hi->up || (l->mtu != hi->mtu && hi->mtu != 0))
		hostif_count(hi, HOSTIF_C_LINK, 1);
	if (l->ether != hi->link.hl_ether)
		hostif_log(hi, l->ether ? "the interface is Ethernet again" :
		    "the interface is not Ethernet any more");
	else if (up != hi->up)
		hostif_log(hi, "the interface is %s", up ? "up" : "down");
	else if (l->mtu != hi->mtu && hi->mtu != 0)
		hostif_log(hi, "the interface's MTU is %u", l->mtu);
	hi->link.hl_ether = l->ether;
	atomic_store_bool(&hi->up, up);
	hi->mtu = l->mtu;
}

/* Log what the administrator may not know. */
static void
link_told(struct hostif *hi, const struct link *l)
{
	struct hostif_link *hl = &hi->link;

	if (l->master != hl->hl_master && l->master != 0 && !l->vrf)
		hostif_log(hi, "the interface belongs to another one, with the "
		    "index %u, which gets nothing from it", l->master);
	if (l->hint != hl->hl_hint && l->hint != NULL)
		hostif_log(hi, "%s", l->hint);
	if (l->name[0] != '\0' && strcmp(l->name, hl->hl_name) != 0) {
		hostif_log(hi, "the interface is called %s now", l->name);
		strlcpy(hl->hl_name, l->name, sizeof(hl->hl_name));
	}
	hl->hl_master = l->master;
	hl->hl_hint = l->hint;
}

static void
link_message(struct hostif *hi, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(nlh);
	const struct nlmsgerr *answer = NLMSG_DATA(nlh);
	struct link l = { .mtu = hi->mtu };

	if (atomic_load_bool(&hi->gone))
		return;
	/* The answer about an interface that went before it was asked for. */
	if (nlh->nlmsg_type == NLMSG_ERROR &&
	    nlh->nlmsg_len >= NLMSG_LENGTH(sizeof(*answer)) &&
	    answer->error == -ENODEV)
		link_gone(hi);
	if ((nlh->nlmsg_type != RTM_NEWLINK &&
	    nlh->nlmsg_type != RTM_DELLINK) ||
	    nlh->nlmsg_len < NLMSG_LENGTH(sizeof(*ifi)) ||
	    ifi->ifi_family != AF_UNSPEC ||
	    ifi->ifi_index != (int)hi->fds.hf_index)
		return;
	if (nlh->nlmsg_type == RTM_DELLINK) {
		link_gone(hi);
		return;
	}
	link_parse(nlh, &l);
	link_up(hi, &l);
	link_told(hi, &l);
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
