/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Messages of ethtool's netlink family: hostif_ethtool.h.  No state.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <stddef.h>
#include <string.h>

#include "hostif_ethtool.h"
#include "hostif_impl.h"

/* The features of an interface, with their names, take 8 KB. */
#define	ETHTOOL_BUFSIZE	32768
/* Messages of one call. */
#define	ETHTOOL_BATCH	64

/* A message with one attribute, in which another may be nested. */
struct ethtool_ask {
	struct nlmsghdr		nlh;
	struct genlmsghdr	genl;
	struct nlattr		nla;
	_Alignas(NLA_ALIGNTO) uint8_t data[32];
};

static bool
ethtool_send(int s, struct ethtool_ask *ask, uint16_t family, uint8_t command,
    uint16_t attr, size_t len)
{
	ask->nla.nla_type = attr;
	ask->nla.nla_len = NLA_HDRLEN + len;
	ask->genl.cmd = command;
	ask->genl.version = 1;
	ask->nlh.nlmsg_type = family;
	ask->nlh.nlmsg_flags = NLM_F_REQUEST;
	ask->nlh.nlmsg_len = offsetof(struct ethtool_ask, data) +
	    NLA_ALIGN(len);
	return (sendto(s, ask, ask->nlh.nlmsg_len, MSG_DONTWAIT, NULL, 0) ==
	    (ssize_t)ask->nlh.nlmsg_len);
}

/* Return the first attribute among `len' bytes at p, or NULL. */
static const struct nlattr *
attr_first(const void *p, size_t len)
{
	const struct nlattr *nla = p;

	if (len < NLA_HDRLEN || nla->nla_len < NLA_HDRLEN || nla->nla_len > len)
		return (NULL);
	return (nla);
}

/* Return the attribute after `nla', of those that end at `end', or NULL. */
static const struct nlattr *
attr_next(const struct nlattr *nla, const uint8_t *end)
{
	const size_t len = NLA_ALIGN(nla->nla_len);

	if (len >= (size_t)(end - (const uint8_t *)nla))
		return (NULL);
	return (attr_first((const uint8_t *)nla + len,
	    end - (const uint8_t *)nla - len));
}

#define	ATTR_DATA(nla)	((const uint8_t *)(nla) + NLA_HDRLEN)
#define	ATTR_END(nla)	((const uint8_t *)(nla) + (nla)->nla_len)
#define	ATTR_TYPE(nla)	((nla)->nla_type & NLA_TYPE_MASK)
#define	ATTR_FOREACH(nla, p, end)					\
	for ((nla) = attr_first((p), (end) - (p)); (nla) != NULL;	\
	    (nla) = attr_next((nla), (end)))
#define	ATTR_NESTED(nla, nest)						\
	ATTR_FOREACH(nla, ATTR_DATA(nest), ATTR_END(nest))

/* Return the nested attribute of this type, or NULL. */
static const struct nlattr *
attr_find(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *nla;

	ATTR_NESTED(nla, nest)
		if (ATTR_TYPE(nla) == type)
			break;
	return (nla);
}

/* Return a number of 32 bits, or 0. */
static uint32_t
attr_number(const struct nlattr *nla)
{
	uint32_t value = 0;

	if (nla != NULL && nla->nla_len == NLA_HDRLEN + sizeof(value))
		memcpy(&value, ATTR_DATA(nla), sizeof(value));
	return (value);
}

static bool
attr_is(const struct nlattr *nla, const char *name)
{
	const size_t len = strlen(name) + 1;

	return (nla != NULL && nla->nla_len == NLA_HDRLEN + len &&
	    memcmp(ATTR_DATA(nla), name, len) == 0);
}

/* Return whether this is one of the active features. */
static bool
ethtool_active(const struct nlattr *active, const char *feature)
{
	const struct nlattr *bits = attr_find(active, ETHTOOL_A_BITSET_BITS);
	const struct nlattr *bit;

	if (bits == NULL)
		return (false);
	ATTR_NESTED(bit, bits)
		if (attr_is(attr_find(bit, ETHTOOL_A_BITSET_BIT_NAME), feature))
			return (true);
	return (false);
}

/*
 * Return whether the message's attributes, from p to end, are of this
 * interface.
 */
static bool
ethtool_of(const uint8_t *p, const uint8_t *end, uint32_t index)
{
	const struct nlattr *nla;

	_Static_assert(ETHTOOL_A_FEATURES_HEADER == ETHTOOL_A_CHANNELS_HEADER,
	    "header");
	ATTR_FOREACH(nla, p, end)
		if (ATTR_TYPE(nla) == ETHTOOL_A_FEATURES_HEADER)
			return (attr_number(attr_find(nla,
			    ETHTOOL_A_HEADER_DEV_INDEX)) == index);
	return (false);
}

static void
ethtool_features(const uint8_t *p, const uint8_t *end,
    struct hostif_ethtool *he)
{
	const struct nlattr *nla;

	ATTR_FOREACH(nla, p, end) {
		if (ATTR_TYPE(nla) != ETHTOOL_A_FEATURES_ACTIVE)
			continue;
		he->he_untags = ethtool_active(nla, "rx-vlan-hw-parse");
		he->he_untags_ad = ethtool_active(nla,
		    "rx-vlan-stag-hw-parse");
	}
}

static void
ethtool_channels(const uint8_t *p, const uint8_t *end,
    struct hostif_ethtool *he)
{
	const struct nlattr *nla;
	uint32_t queues = 0;

	ATTR_FOREACH(nla, p, end)
		if (ATTR_TYPE(nla) == ETHTOOL_A_CHANNELS_RX_COUNT ||
		    ATTR_TYPE(nla) == ETHTOOL_A_CHANNELS_COMBINED_COUNT)
			queues += attr_number(nla);
	he->he_queues = queues;
}

/*
 * Note what a message says of the interface.  Returns false if the kernel must
 * be asked for more.
 */
static bool
ethtool_message(const struct nlmsghdr *nlh, uint32_t index,
    struct hostif_ethtool *he)
{
	const struct genlmsghdr *genl = NLMSG_DATA(nlh);
	const uint8_t *p = (const uint8_t *)genl + GENL_HDRLEN;
	const uint8_t *end = (const uint8_t *)nlh + nlh->nlmsg_len;

	/* An error is the answer of a driver that cannot tell. */
	if (nlh->nlmsg_type < NLMSG_MIN_TYPE ||
	    nlh->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN) ||
	    !ethtool_of(p, end, index))
		return (true);
	switch (genl->cmd) {
	case ETHTOOL_MSG_FEATURES_NTF:
		/* By numbers, which differ between kernels. */
		return (false);
	case ETHTOOL_MSG_FEATURES_GET_REPLY:
		ethtool_features(p, end, he);
		break;
	case ETHTOOL_MSG_CHANNELS_NTF:
	case ETHTOOL_MSG_CHANNELS_GET_REPLY:
		ethtool_channels(p, end, he);
		break;
	}
	return (true);
}

/* Receive a message of the kernel's.  Its bytes; 0: another's; or -1. */
static ssize_t
ethtool_receive(int s, void *buf, size_t size)
{
	struct sockaddr_nl from;
	socklen_t fromlen = sizeof(from);
	ssize_t len;

	len = recvfrom(s, buf, size, MSG_DONTWAIT, (struct sockaddr *)&from,
	    &fromlen);
	/* Only the kernel is believed. */
	if (len != -1 && (fromlen != sizeof(from) || from.nl_pid != 0))
		return (0);
	return (len);
}

bool
hostif_ethtool_read(int s, uint32_t index, struct hostif_ethtool *he)
{
	_Alignas(NLMSG_ALIGNTO) uint8_t buf[ETHTOOL_BUFSIZE];
	const struct nlmsghdr *nlh;
	unsigned int n;
	ssize_t len;
	bool all = true;

	for (n = 0; n < ETHTOOL_BATCH; n++) {
		len = ethtool_receive(s, buf, sizeof(buf));
		if (len == -1 && errno == ENOBUFS)
			all = false;
		else if (len == -1)
			break;
		for (nlh = (const struct nlmsghdr *)buf; NLMSG_OK(nlh, len);
		    nlh = NLMSG_NEXT(nlh, len))
			all &= ethtool_message(nlh, index, he);
	}
	return (all);
}

void
hostif_ethtool_ask(int s, uint16_t family, uint32_t index)
{
	static const uint8_t commands[] = {
		ETHTOOL_MSG_FEATURES_GET, ETHTOOL_MSG_CHANNELS_GET
	};
	const struct nlattr header = {
		.nla_len = NLA_HDRLEN + sizeof(index),
		.nla_type = ETHTOOL_A_HEADER_DEV_INDEX
	};
	struct ethtool_ask ask;
	size_t i;

	for (i = 0; i < nitems(commands) && family != 0; i++) {
		memset(&ask, 0, sizeof(ask));
		memcpy(ask.data, &header, sizeof(header));
		memcpy(ask.data + NLA_HDRLEN, &index, sizeof(index));
		(void)ethtool_send(s, &ask, family, commands[i], NLA_F_NESTED |
		    ETHTOOL_A_FEATURES_HEADER, header.nla_len);
	}
}

/* Return the group's number in an answer about the family, or 0. */
static uint32_t
family_group(const struct nlattr *groups)
{
	const struct nlattr *group;

	ATTR_NESTED(group, groups)
		if (attr_is(attr_find(group, CTRL_ATTR_MCAST_GRP_NAME),
		    ETHTOOL_MCGRP_MONITOR_NAME))
			return (attr_number(attr_find(group,
			    CTRL_ATTR_MCAST_GRP_ID)));
	return (0);
}

/*
 * Find the numbers of ethtool's family and of its group; 0 if there is none.
 * The kernel answers within sendto(2).
 */
static uint16_t
family_find(int s, uint32_t *group)
{
	_Alignas(NLMSG_ALIGNTO) uint8_t buf[ETHTOOL_BUFSIZE];
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;
	struct ethtool_ask ask;
	const struct nlattr *nla;
	uint16_t family = 0;
	ssize_t len;

	memset(&ask, 0, sizeof(ask));
	memcpy(ask.data, ETHTOOL_GENL_NAME, sizeof(ETHTOOL_GENL_NAME));
	*group = 0;
	if (!ethtool_send(s, &ask, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
	    CTRL_ATTR_FAMILY_NAME, sizeof(ETHTOOL_GENL_NAME)))
		return (0);
	len = ethtool_receive(s, buf, sizeof(buf));
	if (!NLMSG_OK(nlh, len) || nlh->nlmsg_type != GENL_ID_CTRL ||
	    nlh->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
		return (0);
	ATTR_FOREACH(nla, (const uint8_t *)NLMSG_DATA(nlh) + GENL_HDRLEN,
	    buf + nlh->nlmsg_len) {
		if (ATTR_TYPE(nla) == CTRL_ATTR_FAMILY_ID &&
		    nla->nla_len == NLA_HDRLEN + sizeof(family))
			memcpy(&family, ATTR_DATA(nla), sizeof(family));
		else if (ATTR_TYPE(nla) == CTRL_ATTR_MCAST_GROUPS)
			*group = family_group(nla);
	}
	return (family);
}

int
hostif_ethtool_open(uint16_t *family)
{
	uint32_t group;
	int s;

	s = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    NETLINK_GENERIC);
	if (s == -1)
		return (-1);
	*family = family_find(s, &group);
	if (*family != 0 && setsockopt(s, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
	    &group, sizeof(group)) == -1)
		return (hostif_fd_close(s));
	return (s);
}
