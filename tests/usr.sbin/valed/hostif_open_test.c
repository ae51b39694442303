/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Opening an interface: each call, with all its arguments, and each failure.
 * This file is the kernel; its descriptors are 100 and following.
 *
 * In what is expected, integers are decimal and other values are bytes.
 * Families: 2 INET, 16 NETLINK, 17 PACKET, 44 XDP.  Options: 1 SOL_SOCKET,
 * 263 SOL_PACKET, 270 SOL_NETLINK, 283 SOL_XDP.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/netlink.h>
#include <linux/sockios.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "hostif_impl.h"
#include "test.h"

#define	FIRST_FD	100
#define	MEMORY		((void *)0x70000000)	/* that mmap() returns */
#define	CALLS_MAX	6000		/* opening one takes 4,100 */

static char		 calls[CALLS_MAX][640];
static unsigned int	 ncalls;
static unsigned int	 fail_call = UINT_MAX;	/* it fails with EIO */
static bool		 is_open[32];
static unsigned int	 nopened;

/* What the kernel says. */
static int		 hw_type = ARPHRD_ETHER;
static short		 if_flags;
static int		 mtu = 1500;
static struct ethtool_channels channels = { .rx_count = 1,
    .combined_count = 1 };
static uint32_t		 offloads;
static bool		 no_ethtool, no_bpf, no_nft;
static unsigned int	 busy;			/* times that bind() fails so */
static _Alignas(NLMSG_ALIGNTO) uint8_t answer[256]; /* about the family */
static ssize_t		 answer_len;
static struct sockaddr_nl answer_from;
static socklen_t	 answer_fromlen = sizeof(answer_from);
static _Alignas(NLMSG_ALIGNTO) uint8_t acks[2][64]; /* of nf_tables */
static ssize_t		 ack_len[2];
static unsigned int	 nacks;

/* Note a call, and return whether it must fail. */
static bool call(const char *fmt, ...)
    __attribute__((__format__(__printf__, 1, 2)));

static bool
call(const char *fmt, ...)
{
	va_list ap;

	ATF_REQUIRE(ncalls < CALLS_MAX);
	va_start(ap, fmt);
	ATF_REQUIRE(vsnprintf(calls[ncalls], sizeof(calls[0]), fmt, ap) <
	    (int)sizeof(calls[0]));
	va_end(ap);
	errno = EIO;
	return (ncalls++ == fail_call);
}

/* Bytes, for one use. */
static const char *
bytes(const void *p, size_t len)
{
	static char s[2][520];
	static unsigned int n;
	char *out = s[n++ % 2];
	size_t i;

	ATF_REQUIRE(len * 2 < sizeof(s[0]));
	for (i = 0; i < len; i++)
		snprintf(out + 2 * i, 3, "%02x", ((const uint8_t *)p)[i]);
	out[2 * len] = '\0';
	return (out);
}

static bool
zeros(const void *p, size_t len)
{
	const uint8_t *byte = p;

	while (len > 0 && *byte == 0)
		byte++, len--;
	return (len == 0);
}

/* A new descriptor. */
static int
opened(bool fails)
{
	if (fails)
		return (-1);
	ATF_REQUIRE(nopened < nitems(is_open));
	is_open[nopened] = true;
	return (FIRST_FD + nopened++);
}

static unsigned int
left_open(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < nitems(is_open); i++)
		n += is_open[i];
	return (n);
}

/*
 * The system's calls
 */

int	__wrap_bind(int s, const struct sockaddr *sa, socklen_t len);
int	__wrap_close(int fd);
int	__wrap_fcntl(int fd, int command, int arg);
int	__wrap_ftruncate(int fd, off_t size);
int	__wrap_ioctl(int s, unsigned long request, struct ifreq *ifr);
int	__wrap_memfd_create(const char *name, unsigned int flags);
void	*__wrap_mmap(void *p, size_t size, int prot, int flags, int fd,
	    off_t offset);
int	__wrap_munmap(void *p, size_t size);
int	__wrap_nanosleep(const struct timespec *ts, struct timespec *left);
ssize_t	__wrap_recv(int s, void *p, size_t len, int flags);
ssize_t	__wrap_recvfrom(int s, void *p, size_t len, int flags,
	    struct sockaddr *from, socklen_t *fromlen);
ssize_t	__wrap_send(int s, const void *p, size_t len, int flags);
ssize_t	__wrap_sendto(int s, const void *p, size_t len, int flags,
	    const struct sockaddr *to, socklen_t tolen);
int	__wrap_setsockopt(int s, int level, int name, const void *value,
	    socklen_t len);
int	__wrap_socket(int family, int type, int protocol);
long	__wrap_syscall(long number, int command, union bpf_attr *attr,
	    size_t size);

int
__wrap_bind(int s, const struct sockaddr *sa, socklen_t len)
{
	if (call("bind %d %s", s, bytes(sa, len)))
		return (-1);
	if (sa->sa_family == AF_XDP && busy > 0) {
		busy--;
		errno = EBUSY;
		return (-1);
	}
	return (0);
}

int
__wrap_close(int fd)
{
	const unsigned int i = fd - FIRST_FD;

	ATF_REQUIRE_MSG(i < nitems(is_open) && is_open[i], "close %d", fd);
	is_open[i] = false;
	/* It leaves errno alone. */
	snprintf(calls[ncalls++], sizeof(calls[0]), "close %d", fd);
	return (0);
}

int
__wrap_fcntl(int fd, int command, int arg)
{
	return (call("fcntl %d %d %#x", fd, command, arg) ? -1 : 0);
}

int
__wrap_ftruncate(int fd, off_t size)
{
	return (call("ftruncate %d %jd", fd, (intmax_t)size) ? -1 : 0);
}

static int
ethtool(const struct ifreq *ifr)
{
	uint32_t *cmd = (uint32_t *)(void *)ifr->ifr_data;

	ATF_CHECK(zeros((const uint8_t *)&ifr->ifr_data + sizeof(void *),
	    sizeof(*ifr) - IFNAMSIZ - sizeof(void *)));
	const bool fails = call("ethtool %s %u", ifr->ifr_name, *cmd);

	/* What a call that fails leaves does not count. */
	if (*cmd == ETHTOOL_GCHANNELS) {
		ATF_CHECK(zeros(cmd + 1, sizeof(channels) - sizeof(*cmd)));
		*(struct ethtool_channels *)(void *)cmd = channels;
		if (fails)
			cmd[5] = 13;
	} else if (*cmd == ETHTOOL_GFLAGS) {
		ATF_CHECK_EQ(0, cmd[1]);
		cmd[1] = fails ? ETH_FLAG_RXVLAN : offloads;
	} else
		atf_tc_fail("ethtool %u", *cmd);
	errno = EIO;
	return (fails || no_ethtool ? -1 : 0);
}

int
__wrap_ioctl(int s, unsigned long request, struct ifreq *ifr)
{
	bool fails;

	ATF_CHECK(zeros(ifr->ifr_name + strlen(ifr->ifr_name), IFNAMSIZ -
	    strlen(ifr->ifr_name)));
	/* The first of each struct. */
	if (request == SIOCGIFINDEX || request == SIOCGIFFLAGS)
		ATF_CHECK(zeros(&ifr->ifr_flags, sizeof(*ifr) - IFNAMSIZ));
	if (request == SIOCETHTOOL)
		return (ethtool(ifr));
	fails = call("ioctl %d %#lx %s", s, request, ifr->ifr_name);
	if (request == SIOCGIFINDEX)
		ifr->ifr_ifindex = 7;
	else if (request == SIOCGIFHWADDR)
		ifr->ifr_hwaddr.sa_family = hw_type;
	else if (request == SIOCGIFFLAGS)
		ifr->ifr_flags = fails ? IFF_MASTER : if_flags;
	else if (request == SIOCGIFMTU)
		ifr->ifr_mtu = mtu;
	return (fails ? -1 : 0);
}

int
__wrap_memfd_create(const char *name, unsigned int flags)
{
	return (opened(call("memfd %s %#x", name, flags)));
}

void *
__wrap_mmap(void *p, size_t size, int prot, int flags, int fd, off_t offset)
{
	ATF_CHECK(p == NULL);
	ATF_CHECK_EQ(0, offset);
	return (call("mmap %zu %#x %#x %d", size, prot, flags, fd) ?
	    MAP_FAILED : MEMORY);
}

int
__wrap_munmap(void *p, size_t size)
{
	ATF_CHECK_EQ(MEMORY, p);
	(void)call("munmap %zu", size);
	return (0);
}

int
__wrap_nanosleep(const struct timespec *ts, struct timespec *left)
{
	ATF_CHECK(left == NULL);
	snprintf(calls[ncalls++], sizeof(calls[0]), "sleep %jd.%09ld",
	    (intmax_t)ts->tv_sec, ts->tv_nsec);
	return (0);
}

ssize_t
__wrap_recv(int s, void *p, size_t len, int flags)
{
	const unsigned int i = nacks++;

	ATF_CHECK(len >= 8192);
	if (call("recv %d %#x", s, flags))
		return (-1);
	ATF_REQUIRE(i < nitems(acks));
	memset(p, 0, sizeof(acks[i]));
	memcpy(p, acks[i], sizeof(acks[i]));
	return (ack_len[i]);
}

ssize_t
__wrap_recvfrom(int s, void *p, size_t len, int flags, struct sockaddr *from,
    socklen_t *fromlen)
{
	ATF_CHECK(len >= 32768);
	ATF_CHECK_EQ(sizeof(answer_from), *fromlen);
	if (call("recvfrom %d %#x", s, flags))
		return (-1);
	memcpy(from, &answer_from, sizeof(answer_from));
	*fromlen = answer_fromlen;
	memcpy(p, answer, sizeof(answer));
	return (answer_len);
}

/* The attributes at p: "type:bytes", or in brackets what is nested. */
static void
attributes(char *out, size_t size, const uint8_t *p, size_t len)
{
	const struct nlattr *nla;

	while (len > 0) {
		nla = (const void *)p;
		ATF_REQUIRE(nla->nla_len >= NLA_HDRLEN && nla->nla_len <= len);
		snprintf(out + strlen(out), size - strlen(out), " %u:",
		    nla->nla_type & NLA_TYPE_MASK);
		if ((nla->nla_type & NLA_F_NESTED) != 0) {
			strlcat(out, "[", size);
			attributes(out, size, p + NLA_HDRLEN,
			    nla->nla_len - NLA_HDRLEN);
			strlcat(out, " ]", size);
		} else
			strlcat(out, bytes(p + NLA_HDRLEN, nla->nla_len -
			    NLA_HDRLEN), size);
		ATF_REQUIRE(NLA_ALIGN(nla->nla_len) <= len);
		ATF_CHECK(zeros(p + nla->nla_len, NLA_ALIGN(nla->nla_len) -
		    nla->nla_len));
		p += NLA_ALIGN(nla->nla_len);
		len -= NLA_ALIGN(nla->nla_len);
	}
}

ssize_t
__wrap_send(int s, const void *p, size_t len, int flags)
{
	const struct nlmsghdr *nlh = p;
	char all[1024] = "";
	size_t left = len;

	/* Messages of nf_tables. */
	while (left > 0) {
		ATF_REQUIRE(left >= NLMSG_HDRLEN + 4 && nlh->nlmsg_len <= left &&
		    nlh->nlmsg_len >= NLMSG_HDRLEN + 4);
		ATF_CHECK_EQ(0, nlh->nlmsg_seq);
		ATF_CHECK_EQ(0, nlh->nlmsg_pid);
		snprintf(all + strlen(all), sizeof(all) - strlen(all),
		    "; %#x %#x %s", nlh->nlmsg_type, nlh->nlmsg_flags,
		    bytes(NLMSG_DATA(nlh), 4));
		attributes(all, sizeof(all), (const uint8_t *)NLMSG_DATA(nlh) +
		    4, nlh->nlmsg_len - NLMSG_HDRLEN - 4);
		left -= nlh->nlmsg_len;
		nlh = (const void *)((const uint8_t *)nlh + nlh->nlmsg_len);
	}
	if (call("send %d %#x%s", s, flags, all) || no_nft)
		return (-1);
	return (len);
}

ssize_t
__wrap_sendto(int s, const void *p, size_t len, int flags,
    const struct sockaddr *to, socklen_t tolen)
{
	const struct nlmsghdr *nlh = p;
	char all[1024] = "";

	ATF_CHECK(to == NULL && tolen == 0);
	ATF_REQUIRE(len >= NLMSG_HDRLEN + GENL_HDRLEN);
	ATF_CHECK_EQ(len, nlh->nlmsg_len);
	ATF_CHECK_EQ(0, nlh->nlmsg_seq);
	ATF_CHECK_EQ(0, nlh->nlmsg_pid);
	attributes(all, sizeof(all), (const uint8_t *)NLMSG_DATA(nlh) +
	    GENL_HDRLEN, len - NLMSG_HDRLEN - GENL_HDRLEN);
	if (call("sendto %d %#x; %#x %#x %s%s", s, flags, nlh->nlmsg_type,
	    nlh->nlmsg_flags, bytes(NLMSG_DATA(nlh), GENL_HDRLEN), all))
		return (-1);
	return (len);
}

int
__wrap_setsockopt(int s, int level, int name, const void *value, socklen_t len)
{
	struct xdp_umem_reg reg;
	bool fails;

	if (level == SOL_XDP && name == XDP_UMEM_REG) {
		memcpy(&reg, value, sizeof(reg));
		fails = call("setsockopt %d umem %#jx %ju %u", s,
		    (uintmax_t)reg.addr, (uintmax_t)reg.len, reg.chunk_size);
		reg.addr = reg.len = reg.chunk_size = 0;
		ATF_CHECK(len == sizeof(reg) && zeros(&reg, len));
	} else if (len == sizeof(int))
		fails = call("setsockopt %d %d %d: %d", s, level, name,
		    *(const int *)value);
	else
		fails = call("setsockopt %d %d %d: %s", s, level, name,
		    bytes(value, len));
	return (fails ? -1 : 0);
}

int
__wrap_socket(int family, int type, int protocol)
{
	return (opened(call("socket %d %d%s%s %d", family, type &
	    ~(SOCK_NONBLOCK | SOCK_CLOEXEC),
	    (type & SOCK_NONBLOCK) != 0 ? " nonblock" : "",
	    (type & SOCK_CLOEXEC) != 0 ? " cloexec" : "", protocol)));
}

long
__wrap_syscall(long number, int command, union bpf_attr *attr, size_t size)
{
	union bpf_attr a = *attr;
	bool fails = false;

	ATF_CHECK_EQ(SYS_bpf, number);
	ATF_CHECK_EQ(sizeof(a), size);
	switch (command) {
	case BPF_MAP_CREATE:
		fails = call("map of type %u, key %u, value %u, entries %u",
		    a.map_type, a.key_size, a.value_size, a.max_entries);
		a.map_type = a.key_size = a.value_size = a.max_entries = 0;
		break;
	case BPF_PROG_LOAD:
		ATF_CHECK_STREQ("", (const char *)(uintptr_t)a.license);
		fails = call("program of type %u: %s", a.prog_type,
		    bytes((const void *)(uintptr_t)a.insns, a.insn_cnt * 8));
		a.prog_type = a.insn_cnt = 0;
		a.license = a.insns = 0;
		break;
	case BPF_LINK_CREATE:
		fails = call("link of %u to %u: %u", a.link_create.prog_fd,
		    a.link_create.target_ifindex, a.link_create.attach_type);
		memset(&a.link_create, 0, 12);
		break;
	case BPF_MAP_UPDATE_ELEM:
		fails = call("map %u: %u is %u", a.map_fd,
		    *(const uint32_t *)(uintptr_t)a.key,
		    *(const uint32_t *)(uintptr_t)a.value);
		a.map_fd = 0;
		a.key = a.value = 0;
		break;
	default:
		atf_tc_fail("bpf %d", command);
	}
	ATF_CHECK(zeros(&a, sizeof(a)));
	if (fails || no_bpf) {
		errno = no_bpf ? EINVAL : EIO;
		return (-1);
	}
	return (command == BPF_MAP_UPDATE_ELEM ? 0 : opened(false));
}

/*
 * Test cases
 */

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
static char error[128];

/* Open h0 in a new kernel. */
static int
open_interface(enum hostif_kind kind)
{
	const struct hostif_options options = { kind };

	ncalls = nopened = nacks = 0;
	memset(is_open, 0, sizeof(is_open));
	memset(&fds, 0xa5, sizeof(fds));
	strlcpy(error, "none", sizeof(error));
	return (hostif_open("h0", &options, &fds, error, sizeof(error)));
}

/* It fails with this line, and nothing is left open. */
static void
refused(enum hostif_kind kind, const char *message)
{
	ATF_CHECK_EQ(-1, open_interface(kind));
	ATF_CHECK_STREQ(message, error);
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
	ATF_CHECK_EQ_MSG(0, open_interface(HOSTIF_XDP), "%s", error);
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
	const struct hostif_options options = { HOSTIF_PACKET };

	make_answers();
	ncalls = nopened = 0;
	ATF_CHECK_EQ(0, hostif_open("0123456789abcde", &options, &fds, error,
	    sizeof(error)));
	hostif_close(&fds);
	ncalls = 0;
	ATF_CHECK_EQ(-1, hostif_open("0123456789abcdef", &options, &fds, error,
	    sizeof(error)));
	ATF_CHECK_STREQ("0123456789abcdef: not an interface's name", error);
	ATF_CHECK_EQ(0, ncalls);
	ATF_CHECK_EQ(HOSTIF_PACKET, hostif_kind("packet"));
	ATF_CHECK_EQ(HOSTIF_XDP, hostif_kind("xdp"));
	ATF_CHECK_EQ(HOSTIF_NKINDS, hostif_kind("auto"));
	ATF_CHECK_EQ(HOSTIF_NKINDS, hostif_kind("pack"));
	ATF_CHECK_EQ(HOSTIF_NKINDS, hostif_kind(""));
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

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, packet);
	ATF_TP_ADD_TC(tp, nft);
	ATF_TP_ADD_TC(tp, xdp);
	ATF_TP_ADD_TC(tp, xdp_fits);
	ATF_TP_ADD_TC(tp, xdp_busy);
	ATF_TP_ADD_TC(tp, names);
	ATF_TP_ADD_TC(tp, answers);
	return (atf_no_error());
}
