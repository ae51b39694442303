/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What the kernel tells of interfaces of kinds that a kernel may not have:
 * messages of rtnetlink(7) and of ethtool's family.  This file is the kernel.
 * What the real one tells of a veth pair is in hostif_change_test.c.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <net/if.h>
#include <net/if_arp.h>

#include <errno.h>

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_ethtool.h"
#include "hostif_impl.h"
#include "test.h"
#include "wrap.h"

#define	SOCKET	10
#define	INDEX	7
#define	FAMILY	0x1234

static struct hostif	 hi;
static char		 trace[2048];	/* lines of the log, and requests */
static _Alignas(NLMSG_ALIGNTO) uint8_t sent[4096]; /* by the kernel */
static size_t		 sent_len;
static struct nlmsghdr	*nlh;		/* the last message there */
static int		 receive_error;	/* of the next call */
static struct sockaddr_nl from;
static socklen_t	 from_len = sizeof(from);
static unsigned int	 receives, receives_max = 1; /* then there is none */

void
hostif_log(struct hostif *one, const char *fmt, ...)
{
	const size_t len = strlen(trace);
	va_list ap;

	ATF_CHECK_EQ(&hi, one);
	va_start(ap, fmt);
	vsnprintf(trace + len, sizeof(trace) - len, fmt, ap);
	va_end(ap);
	strlcat(trace, "; ", sizeof(trace));
}

WRAP(ssize_t, recvfrom, int s, void *p, size_t len, int flags,
    struct sockaddr *sa, socklen_t *salen)
{
	const int error = receive_error;

	ATF_CHECK_EQ(SOCKET, s);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	receive_error = 0;
	if (error != 0 || receives++ >= receives_max) {
		/* It says nothing. */
		memset(sa, 0xa5, sizeof(from));
		errno = error == 0 ? EAGAIN : error;
		return (-1);
	}
	memset(p, 0, len);
	/* More than the message. */
	memcpy(p, sent, sizeof(sent));
	memcpy(sa, &from, sizeof(from));
	*salen = from_len;
	/* Of an earlier call. */
	errno = ENOBUFS;
	return (sent_len);
}

WRAP(ssize_t, sendto, int s, const void *p, size_t len, int flags,
    const struct sockaddr *to, socklen_t tolen)
{
	size_t i;

	ATF_CHECK_EQ(SOCKET, s);
	ATF_CHECK_EQ(MSG_DONTWAIT, flags);
	ATF_CHECK(to == NULL && tolen == 0);
	for (i = 0; i < len; i++)
		snprintf(trace + strlen(trace), sizeof(trace) - strlen(trace),
		    "%s%02x", i % 4 == 0 && i > 0 ? " " : "",
		    ((const uint8_t *)p)[i]);
	strlcat(trace, "; ", sizeof(trace));
	return (len);
}

/*
 * Messages
 */

/* Another message behind those that are there. */
static void
message(uint16_t type, const void *p, size_t len)
{
	nlh = (void *)(sent + sent_len);
	nlh->nlmsg_type = type;
	nlh->nlmsg_len = NLMSG_LENGTH(len);
	if (len > 0)
		memcpy(NLMSG_DATA(nlh), p, len);
	sent_len += NLMSG_ALIGN(nlh->nlmsg_len);
}

/* Add an attribute to the last one. */
static struct nlattr *
put(uint16_t type, const void *p, size_t len)
{
	struct nlattr *nla = (void *)(sent + sent_len);

	ATF_REQUIRE(sent_len + NLA_HDRLEN + NLA_ALIGN(len) <= sizeof(sent));
	nla->nla_type = type;
	nla->nla_len = NLA_HDRLEN + len;
	if (len > 0)
		memcpy((uint8_t *)nla + NLA_HDRLEN, p, len);
	sent_len += NLA_HDRLEN + NLA_ALIGN(len);
	nlh->nlmsg_len = sent + sent_len - (uint8_t *)nlh;
	return (nla);
}

static struct nlattr *
put_number(uint16_t type, uint32_t value)
{
	return (put(type, &value, sizeof(value)));
}

static struct nlattr *
put_string(uint16_t type, const char *s)
{
	return (put(type, s, strlen(s) + 1));
}

static void
end_nested(struct nlattr *nest)
{
	nest->nla_len = sent + sent_len - (uint8_t *)nest;
}

/* There is nothing to receive. */
static void
clear(void)
{
	memset(sent, 0, sizeof(sent));
	sent_len = receives = 0;
	from.nl_pid = 0;
	from_len = sizeof(from);
	trace[0] = '\0';
}

/*
 * rtnetlink(7)
 */

#define	UP	(IFF_UP | IFF_RUNNING | IFF_BROADCAST)

static struct ifinfomsg	ifi;

/* The interface as it was first told. */
static void
link_start(void)
{
	clear();
	memset(&hi, 0, sizeof(hi));
	hi.fds.hf_fd[HOSTIF_FD_LINK] = SOCKET;
	hi.fds.hf_fd[HOSTIF_FD_KIND] = 99;
	hi.fds.hf_index = INDEX;
	hi.up = hi.link.hl_ether = true;
	hi.mtu = 1500;
	strlcpy(hi.link.hl_name, "h0", sizeof(hi.link.hl_name));
	ifi = (struct ifinfomsg){ .ifi_type = ARPHRD_ETHER,
	    .ifi_index = INDEX, .ifi_flags = UP };
}

/* A message of this type, without attributes. */
static void
link_message(uint16_t type)
{
	clear();
	message(type, &ifi, sizeof(ifi));
}

/* What is there is received: these lines, and so many changes since. */
static void
told(const char *lines, uint64_t changes)
{
	const uint64_t before = hostif_counter(&hi, HOSTIF_C_LINK);

	receives = 0;
	trace[0] = '\0';
	hostif_link_event(&hi);
	ATF_CHECK_STREQ(lines, trace);
	ATF_CHECK_EQ_MSG(before + changes, hostif_counter(&hi, HOSTIF_C_LINK),
	    "%s", lines);
}

uint64_t
hostif_counter(const struct hostif *one, enum hostif_counter counter)
{
	return (one->counters[counter]);
}

#define	ASK								\
	"20000000 12000100 00000000 00000000 00000000 07000000 00000000 " \
	"00000000; "

TEST(ask, "What is asked of rtnetlink(7), also when messages were lost")
{
	link_start();
	hostif_link_ask(&hi);
	ATF_CHECK_STREQ(ASK, trace);
	receive_error = ENOBUFS;
	told(ASK, 0);
	receive_error = EAGAIN;
	told("", 0);
	receive_error = EINTR;
	told("", 0);
	ATF_CHECK(hi.up && !hi.gone);
}

#define	GONE	"the interface is gone; "

TEST(up, "It is up if it is Ethernet, up and running; each change is one line "
    "and one change")
{
	link_start();
	link_message(RTM_NEWLINK);
	told("", 0);
	ifi.ifi_flags = IFF_UP | IFF_BROADCAST;
	link_message(RTM_NEWLINK);
	told("the interface is down; ", 1);
	ATF_CHECK(!hi.up);
	told("", 0);
	ifi.ifi_flags = IFF_RUNNING;
	link_message(RTM_NEWLINK);
	told("", 0);
	ATF_CHECK(!hi.up);
	ifi.ifi_flags = IFF_UP | IFF_RUNNING;
	link_message(RTM_NEWLINK);
	told("the interface is up; ", 1);
	ATF_CHECK(hi.up);
	ifi.ifi_type = ARPHRD_INFINIBAND;
	link_message(RTM_NEWLINK);
	told("the interface is not Ethernet any more; ", 1);
	ATF_CHECK(!hi.up && !hi.link.hl_ether);
	told("", 0);
	ifi.ifi_type = ARPHRD_NETROM;
	link_message(RTM_NEWLINK);
	told("", 0);
	ifi.ifi_type = ARPHRD_ETHER;
	ifi.ifi_flags = 0;
	link_message(RTM_NEWLINK);
	told("the interface is Ethernet again; ", 0);
	ATF_CHECK(!hi.up && hi.link.hl_ether);
	ifi.ifi_type = ARPHRD_EETHER;
	link_message(RTM_NEWLINK);
	told("the interface is not Ethernet any more; ", 0);
}

#define	MASTER(n)							\
	"the interface belongs to another one, with the index " #n ", "	\
	"which gets nothing from it; "

TEST(master, "Which other interface it belongs to is a line, unless it is a "
    "VRF")
{
	struct nlattr *info;

	link_start();
	link_message(RTM_NEWLINK);
	put_number(IFLA_MASTER, 5);
	told(MASTER(5), 0);
	told("", 0);
	link_message(RTM_NEWLINK);
	put_number(IFLA_MASTER, 6);
	told(MASTER(6), 0);
	link_message(RTM_NEWLINK);
	told("", 0);
	ATF_CHECK_EQ(0, hi.link.hl_master);
	link_message(RTM_NEWLINK);
	put_number(IFLA_MASTER, 6);
	info = put(IFLA_LINKINFO, NULL, 0);
	put_string(IFLA_INFO_SLAVE_KIND, "vrf");
	end_nested(info);
	told("", 0);
	ATF_CHECK_EQ(6, hi.link.hl_master);
	link_message(RTM_NEWLINK);
	put_number(IFLA_MASTER, 7);
	info = put(IFLA_LINKINFO, NULL, 0);
	put_string(IFLA_INFO_KIND, "vrf");
	put_string(IFLA_INFO_SLAVE_KIND, "bridge");
	end_nested(info);
	told(MASTER(7), 0);
}

#define	OWN_ADDRESS							\
	"a macvlan interface gets frames for its own address only, and " \
	"none for guests: mode passthru gets all; "
#define	NOPROMISC							\
	"a macvlan interface with nopromisc may get no frames for guests; "
#define	IPVLAN								\
	"an ipvlan interface gets frames for its own addresses only, "	\
	"and none for guests; "

TEST(hints, "Kinds of interfaces that have no frames for guests are a line, "
    "once")
{
	static const struct {
		const char	*kind;
		size_t		len;		/* of the attribute */
		uint32_t	mode, flags;
		size_t		flags_len;
		const char	*line;
	} cases[] = {
		{ "macvlan", 8, MACVLAN_MODE_PRIVATE, 0, 2, OWN_ADDRESS },
		{ "macvlan", 7, MACVLAN_MODE_VEPA, 0, 2, OWN_ADDRESS },
		{ "macvlanx", 7, MACVLAN_MODE_VEPA, 0, 2, OWN_ADDRESS },
		{ "macvtap", 8, MACVLAN_MODE_BRIDGE, 1, 2, OWN_ADDRESS },
		{ "macvtap", 8, MACVLAN_MODE_SOURCE, 0, 2, OWN_ADDRESS },
		{ "macvlan", 8, MACVLAN_MODE_PASSTHRU, 0, 2, "" },
		{ "macvlan", 8, MACVLAN_MODE_PASSTHRU, 1, 2, NOPROMISC },
		{ "macvtap", 8, MACVLAN_MODE_PASSTHRU, 3, 2, NOPROMISC },
		{ "macvlan", 8, MACVLAN_MODE_PASSTHRU, 2, 2, "" },
		{ "macvlan", 8, MACVLAN_MODE_PASSTHRU, 1, 4, "" },
		{ "ipvlan", 7, MACVLAN_MODE_PRIVATE, 0, 2, IPVLAN },
		{ "ipvtap", 7, MACVLAN_MODE_PRIVATE, 0, 2, IPVLAN },
		{ "ipvtap", 6, MACVLAN_MODE_PASSTHRU, 1, 2, IPVLAN },
		{ "vlan", 5, MACVLAN_MODE_PRIVATE, 1, 2, "" },
		{ "macvlanx", 9, MACVLAN_MODE_PRIVATE, 1, 2, "" },
		{ "macvlan", 6, MACVLAN_MODE_PRIVATE, 1, 2, "" },
		{ "ipvlanx", 8, MACVLAN_MODE_PRIVATE, 1, 2, "" },
		{ "xacvlan", 8, MACVLAN_MODE_PRIVATE, 1, 2, "" },
	};
	struct nlattr *data, *info;
	size_t i, round;

	for (i = 0; i < nitems(cases); i++) {
		link_start();
		for (round = 0; round < 3; round++) {
			/* The second time it is known; the third it was none
			   between. */
			link_message(RTM_NEWLINK);
			info = put(IFLA_LINKINFO, NULL, 0);
			/* What stands behind its end does not count. */
			put(IFLA_INFO_KIND, cases[i].kind,
			    MIN(strlen(cases[i].kind) + 1,
			    NLA_ALIGN(cases[i].len)))->nla_len = NLA_HDRLEN +
			    cases[i].len;
			data = put(IFLA_INFO_DATA, NULL, 0);
			put_number(IFLA_MACVLAN_MODE, cases[i].mode);
			put(IFLA_MACVLAN_FLAGS, &cases[i].flags,
			    cases[i].flags_len);
			put(IFLA_MACVLAN_MACADDR_MODE, "\x09\0", 2);
			end_nested(data);
			put_string(IFLA_INFO_SLAVE_KIND, "bridge");
			end_nested(info);
			told(round == 1 ? "" : cases[i].line, 0);
			if (round == 1) {
				link_message(RTM_NEWLINK);
				told("", 0);
			}
		}
	}
	/* Without a mode it is not passthru; before the kind it is unknown. */
	link_start();
	link_message(RTM_NEWLINK);
	info = put(IFLA_LINKINFO, NULL, 0);
	put_string(IFLA_INFO_KIND, "macvlan");
	put(IFLA_INFO_DATA, NULL, 0);
	end_nested(info);
	told(OWN_ADDRESS, 0);
	link_start();
	link_message(RTM_NEWLINK);
	info = put(IFLA_LINKINFO, NULL, 0);
	put(IFLA_INFO_DATA, NULL, 0);
	put_string(IFLA_INFO_KIND, "macvlan");
	put(IFLA_INFO_XSTATS, NULL, 0);
	end_nested(info);
	put_number(IFLA_MASTER, 9);
	told(MASTER(9), 0);
}

/*
 * ethtool
 */

static struct hostif_ethtool he;

/* A message of this command about an interface. */
static void
ethtool_message(uint8_t command, uint32_t index)
{
	const struct genlmsghdr genl = { .cmd = command };
	struct nlattr *header;

	message(FAMILY, &genl, GENL_HDRLEN);
	header = put(ETHTOOL_A_FEATURES_HEADER | NLA_F_NESTED, NULL, 0);
	put_string(ETHTOOL_A_HEADER_DEV_NAME, "h0");
	put_number(ETHTOOL_A_HEADER_DEV_INDEX, index);
	put_number(9, INDEX + 1);
	end_nested(header);
}

/* A set of features, with these names. */
static void
put_features(uint16_t type, const char *a, const char *b)
{
	const char *names[] = { a, b };
	struct nlattr *bit, *bits, *set;
	size_t i;

	set = put(type, NULL, 0);
	put(ETHTOOL_A_BITSET_NOMASK, NULL, 0);
	bits = put(ETHTOOL_A_BITSET_BITS, NULL, 0);
	for (i = 0; i < nitems(names); i++) {
		bit = put(ETHTOOL_A_BITSET_BITS_BIT, NULL, 0);
		put_number(ETHTOOL_A_BITSET_BIT_INDEX, i);
		put_string(ETHTOOL_A_BITSET_BIT_NAME, names[i]);
		end_nested(bit);
	}
	end_nested(bits);
	end_nested(set);
}

/* Whether it says all; there are so many messages to receive. */
static bool
read_messages(unsigned int n)
{
	receives = 0;
	receives_max = n;
	return (hostif_ethtool_read(SOCKET, INDEX, &he));
}

TEST(features, "Which VLAN tags it takes out of frames, among its active "
    "features")
{
	static const struct {
		const char	*a, *b;
		bool		untags, untags_ad;
	} cases[] = {
		{ "rx-vlan-hw-parse", "rx-gro", true, false },
		{ "rx-gro", "rx-vlan-hw-parse", true, false },
		{ "rx-vlan-stag-hw-parse", "rx-gro", false, true },
		{ "rx-vlan-stag-hw-parse", "rx-vlan-hw-parse", true, true },
		{ "rx-vlan-hw-parsf", "rx-vlan-hw-pars", false, false },
		{ "rx-vlan-hw-parse2", "", false, false },
	};
	size_t i;

	for (i = 0; i < nitems(cases); i++) {
		clear();
		ethtool_message(ETHTOOL_MSG_FEATURES_GET_REPLY, INDEX);
		put_features(ETHTOOL_A_FEATURES_HW, "rx-vlan-hw-parse",
		    "rx-vlan-stag-hw-parse");
		put_features(ETHTOOL_A_FEATURES_ACTIVE, cases[i].a,
		    cases[i].b);
		put_features(ETHTOOL_A_FEATURES_NOCHANGE, "rx-vlan-hw-parse",
		    "rx-vlan-stag-hw-parse");
		he = (struct hostif_ethtool){ 9, !cases[i].untags,
		    !cases[i].untags_ad };
		ATF_CHECK(read_messages(1));
		ATF_CHECK_EQ_MSG(cases[i].untags, he.he_untags, "%zu", i);
		ATF_CHECK_EQ_MSG(cases[i].untags_ad, he.he_untags_ad, "%zu",
		    i);
		ATF_CHECK_EQ(9, he.he_queues);
	}
	/* None are active. */
	clear();
	ethtool_message(ETHTOOL_MSG_FEATURES_GET_REPLY, INDEX);
	put(ETHTOOL_A_FEATURES_ACTIVE, NULL, 0);
	ATF_CHECK(read_messages(1));
	ATF_CHECK(!he.he_untags && !he.he_untags_ad);
	/* It does not tell. */
	he.he_untags = he.he_untags_ad = true;
	clear();
	ethtool_message(ETHTOOL_MSG_FEATURES_GET_REPLY, INDEX);
	ATF_CHECK(read_messages(1));
	ATF_CHECK(he.he_untags && he.he_untags_ad);
}

TEST(channels, "How many receive queues it has, alone and combined")
{
	static const uint8_t commands[] = { ETHTOOL_MSG_CHANNELS_NTF,
	    ETHTOOL_MSG_CHANNELS_GET_REPLY };
	size_t i;

	for (i = 0; i < nitems(commands); i++) {
		he = (struct hostif_ethtool){ 77, true, false };
		clear();
		ethtool_message(commands[i], INDEX);
		put_number(ETHTOOL_A_CHANNELS_RX_MAX, 100);
		put_number(ETHTOOL_A_CHANNELS_COMBINED_MAX, 200);
		put_number(ETHTOOL_A_CHANNELS_RX_COUNT, 3);
		put_number(ETHTOOL_A_CHANNELS_TX_COUNT, 400);
		put_number(ETHTOOL_A_CHANNELS_COMBINED_COUNT, 5);
		ATF_CHECK(read_messages(1));
		ATF_CHECK_EQ(8, he.he_queues);
		ATF_CHECK(he.he_untags && !he.he_untags_ad);
		clear();
		ethtool_message(commands[i], INDEX);
		put(ETHTOOL_A_CHANNELS_RX_COUNT, "\x01\0", 2);
		put(ETHTOOL_A_CHANNELS_COMBINED_COUNT, "\x01\0\0\0\0\0\0", 8);
		ATF_CHECK(read_messages(1));
		ATF_CHECK_EQ(0, he.he_queues);
	}
	he.he_queues = 6;
	clear();
	ethtool_message(ETHTOOL_MSG_CHANNELS_GET, INDEX);
	put_number(ETHTOOL_A_CHANNELS_RX_COUNT, 3);
	ATF_CHECK(read_messages(1));
	ATF_CHECK_EQ(6, he.he_queues);
	/* Of another interface, or not of the kernel. */
	clear();
	ethtool_message(ETHTOOL_MSG_CHANNELS_NTF, INDEX + 1);
	put_number(ETHTOOL_A_CHANNELS_RX_COUNT, 3);
	ATF_CHECK(read_messages(1));
	clear();
	ethtool_message(ETHTOOL_MSG_CHANNELS_NTF, INDEX);
	put_number(ETHTOOL_A_CHANNELS_RX_COUNT, 3);
	from.nl_pid = 1;
	ATF_CHECK(read_messages(1));
	ATF_CHECK_EQ(6, he.he_queues);
	/* Some were lost: it must be asked. */
	receive_error = ENOBUFS;
	ATF_CHECK(!read_messages(0));
}

TEST_PROGRAM
