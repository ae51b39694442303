/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Opening an interface: each call, with all its arguments, and each failure.
 */

#include <sys/param.h>

#include <net/if.h>
#include <net/if_arp.h>

#include <errno.h>
#include <limits.h>

#include <linux/genetlink.h>

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_impl.h"
#include "hostif_open_kernel.h"
#include "test.h"

/* Add an attribute to a message. */
static struct nlattr *
put(struct nlmsghdr *nlh, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr *nla = (void *)((uint8_t *)nlh + nlh->nlmsg_len);

	ATF_REQUIRE(nlh->nlmsg_len + NLA_HDRLEN + NLA_ALIGN(len) <=
	    sizeof(answer));
	nla->nla_type = type;
	nla->nla_len = NLA_HDRLEN + len;
	if (len > 0)
		memcpy((uint8_t *)nla + NLA_HDRLEN, data, len);
	nlh->nlmsg_len += NLA_HDRLEN + NLA_ALIGN(len);
	return (nla);
}

static void
end_nested(struct nlmsghdr *nlh, struct nlattr *nest)
{
	nest->nla_len = (uint8_t *)nlh + nlh->nlmsg_len - (uint8_t *)nest;
}

/* Add a multicast group. */
static void
put_group(struct nlmsghdr *nlh, uint16_t n, const char *name, uint32_t id)
{
	struct nlattr *group = put(nlh, n, NULL, 0);

	put(nlh, CTRL_ATTR_MCAST_GRP_ID, &id, sizeof(id));
	put(nlh, CTRL_ATTR_MCAST_GRP_NAME, name, strlen(name) + 1);
	end_nested(nlh, group);
}

/* The kernel's answers. */
static void
make_answers(void)
{
	static const uint32_t version = 1;
	static const uint16_t family = 0x1234;
	struct nlmsghdr *nlh = (void *)answer;
	struct nlattr *groups;
	unsigned int i;

	memset(answer, 0, sizeof(answer));
	nlh->nlmsg_type = GENL_ID_CTRL;
	nlh->nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN;
	put(nlh, CTRL_ATTR_VERSION, &version, sizeof(version));
	put(nlh, CTRL_ATTR_FAMILY_ID, &family, sizeof(family));
	groups = put(nlh, CTRL_ATTR_MCAST_GROUPS, NULL, 0);
	put_group(nlh, 1, "others", 65);
	put_group(nlh, 2, "monitor", 66);
	put_group(nlh, 3, "monitors", 67);
	end_nested(nlh, groups);
	put(nlh, 77, &version, sizeof(version));
	answer_len = nlh->nlmsg_len;
	for (i = 0; i < nitems(acks); i++) {
		nlh = (void *)acks[i];
		memset(nlh, 0, sizeof(acks[i]));
		nlh->nlmsg_type = NLMSG_ERROR;
		ack_len[i] = nlh->nlmsg_len =
		    NLMSG_SPACE(sizeof(struct nlmsgerr));
	}
}

static struct hostif_fds fds;
static char why[HOSTIF_WHY];

/* Open h0 in a new kernel. */
static int
open_interface(enum hostif_kind kind)
{
	const struct hostif_options options = { kind };

	ncalls = nopened = nacks = 0;
	memset(is_open, 0, sizeof(is_open));
	memset(&fds, 0xa5, sizeof(fds));
	strlcpy(why, "none", sizeof(why));
	return (hostif_open("h0", &options, &fds, why));
}

/* It fails with this line, and nothing is left open. */
static void
refused(enum hostif_kind kind, const char *message)
{
	errno = 0;
	ATF_CHECK_EQ(-1, open_interface(kind));
	ATF_CHECK(errno != 0);
	ATF_CHECK_STREQ(message, why);
	ATF_CHECK_EQ(0, left_open());
	ATF_CHECK_EQ(0, fds.hf_nfds);
}

/* A call, and the message if it fails.  Without one, that is no failure. */
struct step {
	const char	*call, *message;
};
#define	IO(s)	"h0: " s ": Input/output error"

/* The opening is these calls, and each of them may fail. */
static void
steps(enum hostif_kind kind, const struct step *step, unsigned int n)
{
	unsigned int i, j;

	ATF_CHECK_EQ(0, open_interface(kind));
	for (i = 0; i < n && i < ncalls; i++)
		ATF_CHECK_STREQ(step[i].call, calls[i]);
	ATF_CHECK_EQ(n, ncalls);
	for (i = 0; i < n; i++) {
		fail_call = i;
		if (step[i].message != NULL)
			refused(kind, step[i].message);
		else {
			ATF_CHECK_EQ_MSG(0, open_interface(kind), "%s",
			    step[i].call);
			ATF_CHECK_EQ(fds.hf_nfds, left_open());
		}
		for (j = 0; j <= i; j++)
			ATF_CHECK_STREQ(step[j].call, calls[j]);
		/* Nothing more is done with what failed. */
		for (; step[i].message != NULL && j < ncalls; j++)
			ATF_CHECK_MSG(strncmp(calls[j], "close ", 6) == 0 ||
			    strncmp(calls[j], "munmap ", 7) == 0, "%s: %s",
			    calls[i], calls[j]);
	}
	fail_call = UINT_MAX;
}

/* What was opened; these are its descriptors. */
static void
result(enum hostif_kind kind, const char *expected)
{
	char all[128] = "";
	uint32_t i;

	for (i = 0; i < fds.hf_nfds; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%d ",
		    fds.hf_fd[i]);
	ATF_CHECK_STREQ(expected, all);
	ATF_CHECK_EQ(fds.hf_nfds, left_open());
	ATF_CHECK_STREQ("h0", fds.hf_name);
	ATF_CHECK_EQ(kind, fds.hf_kind);
	ATF_CHECK_EQ(7, fds.hf_index);
	hostif_close(&fds);
	ATF_CHECK_EQ(0, left_open());
	ATF_CHECK_EQ(0, fds.hf_nfds);
}

/* Until packet(7) has its socket. */
#define	OPEN_BEGIN							\
	{ "socket 16 3 nonblock cloexec 0", IO("rtnetlink") },		\
	{ "bind 100 100000000000000001000000", IO("rtnetlink") },	\
	{ "socket 2 2 cloexec 0", IO("socket") },			\
	{ "ioctl 101 0x8933 h0", "h0: no such interface" },		\
	{ "ioctl 101 0x8927 h0", "h0: Input/output error" }
/* What it sets, bind(2), and promiscuous mode. */
#define	OPEN_PACKET							\
	{ "setsockopt 102 263 10: 1", IO("TPACKET_V2") },		\
	{ "setsockopt 102 263 12: 16", IO("PACKET_RESERVE") },		\
	{ "setsockopt 102 263 15: 1", IO("virtio-net headers") },	\
	{ "setsockopt 102 263 14: 1", IO("PACKET_LOSS") },		\
	{ "setsockopt 102 263 23: 1", IO("PACKET_IGNORE_OUTGOING") },	\
	{ "setsockopt 102 1 32: 67108864", IO("SO_SNDBUFFORCE") },	\
	{ "setsockopt 102 263 5: 000010002200000000100100fe010000",	\
	    IO("receive ring") },					\
	{ "setsockopt 102 263 13: 000010001100000000100100ff000000",	\
	    IO("transmit ring") },					\
	{ "bind 102 1100000307000000000000000000000000000000",		\
	    IO("bind") },						\
	{ "setsockopt 102 263 1: 07000000010000000000000000000000",	\
	    IO("promiscuous mode") },					\
	{ "close 101", NULL }

TEST(packet, "Each call for packet(7), and tcx's program, which returns 2")
{
	static const struct step all[] = {
		OPEN_BEGIN,
		{ "socket 17 3 nonblock cloexec 0", IO("packet socket") },
		{ "program of type 3: b7000000020000009500000000000000",
		    NULL },
		{ "link of 103 to 7: 46", NULL },
		{ "close 103", NULL },
		OPEN_PACKET
	};

	make_answers();
	steps(HOSTIF_PACKET, all, nitems(all));
	ATF_CHECK_EQ(0, open_interface(HOSTIF_PACKET));
	ATF_CHECK_EQ(0, fds.hf_flags);
	ATF_CHECK_EQ(0, fds.hf_family);
	result(HOSTIF_PACKET, "100 102 104 ");
	/* The kind by itself. */
	ATF_CHECK_EQ(0, open_interface(HOSTIF_AUTO));
	result(HOSTIF_PACKET, "100 102 104 ");
	hw_type = ARPHRD_LOOPBACK;
	refused(HOSTIF_PACKET, "h0: not an Ethernet interface");
	refused(HOSTIF_XDP, "h0: not an Ethernet interface");
}

TEST(nft, "Without bpf(2), the messages to nf_tables; without that, too, the "
    "host's stack gets the frames")
{
	static const struct step all[] = {
		OPEN_BEGIN,
		{ "socket 17 3 nonblock cloexec 0", IO("packet socket") },
		{ "program of type 3: b7000000020000009500000000000000",
		    NULL },
		{ "socket 16 3 cloexec 12", NULL },
		{ "send 103 0; 0x10 0x1 0000000a"
		    "; 0xa00 0x605 05000000 1:76616c65645f683000 2:00000002"
		    "; 0xa03 0x605 05000000 1:76616c65645f683000 "
		    "3:696e677265737300 4:[ 1:00000000 2:80000000 3:683000 ] "
		    "5:00000000 7:66696c74657200"
		    "; 0x11 0x1 0000000a", NULL },
		{ "recv 103 0x40", NULL }, { "recv 103 0x40", NULL },
		OPEN_PACKET
	};
	unsigned int i;

	make_answers();
	no_bpf = true;
	steps(HOSTIF_PACKET, all, nitems(all));
	ATF_CHECK_EQ(0, open_interface(HOSTIF_PACKET));
	ATF_CHECK_EQ(0, fds.hf_flags);
	result(HOSTIF_PACKET, "100 102 103 ");
	/* From the socket on, each call of it fails, or a message is wrong. */
	for (i = 7; i < 11; i++) {
		fail_call = i;
		ATF_CHECK_EQ(0, open_interface(HOSTIF_PACKET));
		ATF_CHECK_EQ(HOSTIF_HOST_GETS, fds.hf_flags);
		result(HOSTIF_PACKET, "100 102 ");
	}
	fail_call = UINT_MAX;
	for (i = 0; i < 6; i++) {
		struct nlmsghdr *nlh;

		make_answers();
		nlh = (void *)acks[i % 2];
		if (i < 2)
			ack_len[i % 2]--;
		else if (i < 4)
			nlh->nlmsg_type = NLMSG_DONE;
		else
			((struct nlmsgerr *)NLMSG_DATA(nlh))->error = -EEXIST;
		ATF_CHECK_EQ(0, open_interface(HOSTIF_PACKET));
		ATF_CHECK_EQ_MSG(HOSTIF_HOST_GETS, fds.hf_flags, "%u", i);
		result(HOSTIF_PACKET, "100 102 ");
	}
}

#define	NO_PROGRAM	IO("cannot attach an XDP program")

TEST(xdp, "Each call for AF_XDP, the first socket's and another's, and the "
    "program, which redirects a frame to its queue's socket or drops it")
{
	static const struct step all[] = {
		OPEN_BEGIN,
		{ "ethtool h0 60", NULL },
		{ "socket 16 3 nonblock cloexec 16", IO("netlink") },
		{ "sendto 102 0x40; 0x10 0x1 03010000 2:657468746f6f6c00",
		    NULL },
		{ "recvfrom 102 0x40", NULL },
		{ "setsockopt 102 270 1: 66", IO("netlink") },
		{ "ioctl 101 0x8913 h0", NULL },
		{ "ioctl 101 0x8921 h0", "h0: Input/output error" },
		{ "ethtool h0 37", NULL },
		{ "socket 17 3 cloexec 0", IO("packet socket") },
		{ "setsockopt 103 263 1: 07000000010000000000000000000000",
		    IO("promiscuous mode") },
		{ "map of type 17, key 4, value 4, entries 2",
		    IO("map of sockets") },
		{ "program of type 6: 6112100000000000"
		    "18110000680000000000000000000000b703000001000000"
		    "85000000330000009500000000000000", IO("program") },
		{ "link of 105 to 7: 37", NO_PROGRAM },
		{ "memfd hostif 0x3", IO("memory") },
		{ "ftruncate 107 25165824", IO("memory") },
		{ "fcntl 107 1033 0x7", IO("memory") },
		{ "socket 44 3 cloexec 0", IO("AF_XDP") },
		{ "mmap 25165824 0x3 0x1 107", IO("AF_XDP memory") },
		{ "setsockopt 108 umem 0x70000000 25165824 4096",
		    IO("AF_XDP memory") },
		{ "munmap 25165824", NULL },
		{ "setsockopt 108 283 3: 2048", IO("transmit ring") },
		{ "setsockopt 108 283 2: 2048", IO("receive ring") },
		{ "setsockopt 108 283 5: 2048", IO("receive ring") },
		{ "setsockopt 108 283 6: 2048", IO("receive ring") },
		{ "setsockopt 108 283 9: 256", NULL },
		{ "bind 108 2c000800070000000000000000000000", IO("bind") },
		{ "map 104: 0 is 108", IO("map of sockets") },
		{ "socket 44 3 cloexec 0", IO("AF_XDP") },
		{ "setsockopt 109 283 2: 2048", IO("receive ring") },
		{ "setsockopt 109 283 5: 2048", IO("receive ring") },
		{ "setsockopt 109 283 6: 2048", IO("receive ring") },
		{ "setsockopt 109 283 9: 256", NULL },
		{ "bind 109 2c00010007000000010000006c000000", IO("bind") },
		{ "map 104: 1 is 109", IO("map of sockets") },
		{ "close 105", NULL }, { "close 104", NULL },
		{ "close 101", NULL }
	};

	make_answers();
	steps(HOSTIF_XDP, all, nitems(all));
	ATF_CHECK_EQ(0, open_interface(HOSTIF_XDP));
	ATF_CHECK_EQ(0, fds.hf_flags);
	ATF_CHECK_EQ(0x1234, fds.hf_family);
	result(HOSTIF_XDP, "100 102 103 106 107 108 109 ");
}

/* The interface is opened with so many sockets. */
static void
queues(uint32_t rx, uint32_t combined, unsigned int n)
{
	channels.rx_count = rx;
	channels.combined_count = combined;
	ATF_CHECK_EQ_MSG(0, open_interface(HOSTIF_XDP), "%s", why);
	ATF_CHECK_EQ(HOSTIF_FD_XSK + n, fds.hf_nfds);
	hostif_close(&fds);
	ATF_CHECK_EQ(0, left_open());
}

TEST(xdp_fits, "How many queues it has, and what makes it unfit for AF_XDP")
{
	make_answers();
	queues(1, 0, 1);
	queues(0, 0, 1);
	queues(0, 5, 5);
	queues(6, 6, 12);
	channels.rx_count = 7;
	refused(HOSTIF_XDP, "h0: 13 receive queues, and at most 12 with "
	    "kind=xdp: see ethtool -L");
	/* Then it cannot be asked for its offloads either. */
	no_ethtool = true;
	offloads = ETH_FLAG_RXVLAN;
	queues(7, 6, 1);
	no_ethtool = false;
	channels.rx_count = 1;
	channels.combined_count = 0;
	refused(HOSTIF_XDP, "h0: VLAN tags would be lost with kind=xdp: "
	    "ethtool -K h0 rxvlan off");
	offloads = ~ETH_FLAG_RXVLAN;
	if_flags = (short)(IFF_UP | IFF_SLAVE);
	mtu = 3822;
	queues(1, 0, 1);
	mtu = 3823;
	refused(HOSTIF_XDP, "h0: the MTU is 3823, and at most 3822 with "
	    "kind=xdp");
	if_flags = IFF_MASTER;
	refused(HOSTIF_XDP, "h0: a bond receives nothing with kind=xdp: use "
	    "kind=packet");
}

/* Calls that begin with this. */
static unsigned int
called(const char *s)
{
	unsigned int i, n = 0;

	for (i = 0; i < ncalls; i++)
		n += strncmp(s, calls[i], strlen(s)) == 0;
	return (n);
}

TEST(xdp_busy, "A queue that is not yet free is waited for, ten seconds")
{
	make_answers();
	channels.combined_count = 0;
	busy = 3;
	ATF_CHECK_EQ(0, open_interface(HOSTIF_XDP));
	ATF_CHECK_EQ(4, called("bind 108"));
	ATF_CHECK_EQ(3, called("sleep 0.005000000"));
	hostif_close(&fds);
	busy = 1999;
	ATF_CHECK_EQ(0, open_interface(HOSTIF_XDP));
	ATF_CHECK_EQ(1999, called("sleep 0.005000000"));
	hostif_close(&fds);
	busy = 9999;
	refused(HOSTIF_XDP, "h0: bind: Device or resource busy");
	ATF_CHECK_EQ(2000, called("bind 108"));
	ATF_CHECK_EQ(2000, called("sleep 0.005000000"));
	ATF_CHECK_EQ(0, called("map 104"));
}

TEST(names, "Names of interfaces and of kinds")
{
	static const char *const none[] = { "auto", "pack", "" };
	const struct hostif_options options = { HOSTIF_PACKET };
	enum hostif_kind kind;
	unsigned int i;

	make_answers();
	ncalls = nopened = 0;
	ATF_CHECK_EQ(0, hostif_open("0123456789abcde", &options, &fds, why));
	hostif_close(&fds);
	ncalls = 0;
	ATF_CHECK_EQ(-1, hostif_open("0123456789abcdef", &options, &fds, why));
	ATF_CHECK_STREQ("0123456789abcdef: not an interface's name", why);
	ATF_CHECK_EQ(0, ncalls);
	ATF_CHECK_EQ(0, hostif_kind("packet", &kind));
	ATF_CHECK_EQ(HOSTIF_PACKET, kind);
	ATF_CHECK_EQ(0, hostif_kind("xdp", &kind));
	ATF_CHECK_EQ(HOSTIF_XDP, kind);
	for (i = 0; i < nitems(none); i++) {
		errno = 0;
		ATF_CHECK_EQ(-1, hostif_kind(none[i], &kind));
		ATF_CHECK_EQ(EINVAL, errno);
	}
	ATF_CHECK_EQ(HOSTIF_XDP, kind);
}

/* With this answer, these are the family and the group; -1: none is joined. */
static void
family(const char *what, uint32_t expected, int group)
{
	char join[64];

	ATF_CHECK_EQ(0, open_interface(HOSTIF_XDP));
	ATF_CHECK_EQ_MSG(expected, fds.hf_family, "%s", what);
	snprintf(join, sizeof(join), "setsockopt 102 270 1: %d", group);
	ATF_CHECK_EQ_MSG(group != -1, called("setsockopt 102 270"), "%s",
	    what);
	if (group != -1)
		ATF_CHECK_EQ_MSG(1, called(join), "%s", what);
	hostif_close(&fds);
	make_answers();
	answer_from.nl_pid = 0;
	answer_fromlen = sizeof(answer_from);
}

/* An attribute of the answer, with this type. */
static struct nlattr *
answered(uint16_t type)
{
	struct nlmsghdr *nlh = (void *)answer;
	struct nlattr *nla = (void *)(answer + NLMSG_HDRLEN + GENL_HDRLEN);

	while (nla->nla_type != type) {
		nla = (void *)((uint8_t *)nla + NLA_ALIGN(nla->nla_len));
		ATF_REQUIRE((uint8_t *)nla < answer + nlh->nlmsg_len);
	}
	return (nla);
}

TEST(answers, "What is no answer of the kernel's about ethtool's family tells "
    "nothing, nor does an attribute that is not what it must be")
{
	struct nlmsghdr *nlh = (void *)answer;
	struct nlattr *nla;
	uint32_t number = 0x12345678;

	channels.combined_count = 0;
	make_answers();
	family("it", 0x1234, 66);
	answer_from.nl_pid = 1;
	family("a process's", 0, -1);
	answer_fromlen--;
	family("no address", 0, -1);
	answer_len = 0;
	family("nothing", 0, -1);
	answer_len = -1;
	family("error", 0, -1);
	answer_len--;
	family("cut", 0, -1);
	nlh->nlmsg_type = NLMSG_ERROR;
	family("an error", 0, -1);
	nlh->nlmsg_type = GENL_ID_CTRL + 1;
	family("another type", 0, -1);
	nlh->nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN - 1;
	family("no header", 0, -1);
	nlh->nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN;
	family("no attributes", 0, -1);
	nlh->nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN + 3;
	family("a part of one", 0, -1);
	answered(CTRL_ATTR_FAMILY_ID)->nla_len++;
	family("a longer number", 0, -1);
	answered(CTRL_ATTR_FAMILY_ID)->nla_type = 50;
	family("another number", 0, -1);
	answered(CTRL_ATTR_VERSION)->nla_len = 3;
	family("a short attribute", 0, -1);
	answered(CTRL_ATTR_VERSION)->nla_len = 4;
	nla = answered(CTRL_ATTR_VERSION);
	nla[1] = (struct nlattr){ .nla_len = 4, .nla_type = 99 };
	family("empty attributes", 0x1234, 66);
	nla = answered(CTRL_ATTR_MCAST_GROUPS);
	nla->nla_type = 51;
	family("no groups", 0x1234, 0);
	/* The type without the flags is the type. */
	nla = answered(CTRL_ATTR_MCAST_GROUPS);
	nla->nla_type |= NLA_F_NESTED;
	family("nested", 0x1234, 66);
	nla = answered(CTRL_ATTR_MCAST_GROUPS);
	nla->nla_len = NLA_HDRLEN + ((struct nlattr *)(nla + 1))->nla_len;
	nlh->nlmsg_len = (uint8_t *)nla + nla->nla_len - answer;
	family("one group", 0x1234, 0);
	nla = answered(CTRL_ATTR_MCAST_GROUPS);
	nla->nla_len = 500;
	family("beyond the end", 0x1234, 0);
	/* The group's number has another length, or stands behind its name. */
	nlh->nlmsg_len = (uint8_t *)answered(CTRL_ATTR_MCAST_GROUPS) - answer;
	nla = put(nlh, CTRL_ATTR_MCAST_GROUPS, NULL, 0);
	put_group(nlh, 1, "monitor", number);
	end_nested(nlh, nla);
	(nla + 2)->nla_len--;
	family("a short group", 0x1234, 0);
	nlh->nlmsg_len = (uint8_t *)answered(CTRL_ATTR_MCAST_GROUPS) - answer;
	nla = put(nlh, CTRL_ATTR_MCAST_GROUPS, NULL, 0);
	put_group(nlh, 1, "monitor", number);
	end_nested(nlh, nla);
	answer_len = nlh->nlmsg_len;
	family("another number", 0x1234, 0x12345678);
}

TEST(again, "A ring that is mapped is waited for until a time, however long it "
    "takes to look again")
{
	struct hostif_fds fds = { .hf_kind = HOSTIF_PACKET, .hf_nfds = 2 };

	mapped = 3;
	ATF_CHECK_EQ(0, hostif_again(&fds, 500));
	ATF_CHECK_EQ(3, npolls);
	mapped = UINT_MAX;
	ATF_CHECK_ERRNO(EBUSY, hostif_again(&fds, 500) == -1);
	ATF_CHECK_EQ(500 / POLL_MS, npolls);
	/* The time is that of several interfaces. */
	ATF_CHECK_ERRNO(EBUSY, hostif_again(&fds, 500) == -1);
	ATF_CHECK_EQ(500 / POLL_MS, npolls);
	mapped = 0;
	ATF_CHECK_EQ(0, hostif_again(&fds, 500));
	fds.hf_kind = HOSTIF_XDP;
	ATF_CHECK_ERRNO(EOPNOTSUPP, hostif_again(&fds, 500) == -1);
}

TEST(family, "A family of sockets that the service may not use: what permits "
    "it")
{
	char why[HOSTIF_WHY];

	errno = EAFNOSUPPORT;
	ATF_CHECK_EQ(-1, hostif_fail_step(why, "h0",
	    "rtnetlink"));
	ATF_CHECK_STREQ("h0: rtnetlink: Address family not supported by "
	    "protocol: the kernel has none, or the service may not use it: it "
	    "takes the drop-in attach.conf, and then a restart", why);
}

TEST_PROGRAM
