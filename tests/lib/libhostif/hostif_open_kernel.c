/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The kernel in which an interface is opened: hostif_open_kernel.h.
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

#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "hostif_open_kernel.h"
#include "wrap.h"

#define	FIRST_FD	100
#define	MEMORY		((void *)0x70000000)	/* that mmap() returns */

char			 calls[CALLS_MAX][640];
unsigned int		 ncalls;
unsigned int		 fail_call = UINT_MAX;
unsigned int		 nopened;
bool			 is_open[32];
int			 hw_type = ARPHRD_ETHER;
short			 if_flags;
int			 mtu = 1500;
struct ethtool_channels	 channels = { .rx_count = 1, .combined_count = 1 };
uint32_t		 offloads;
bool			 no_ethtool, no_bpf;
unsigned int		 busy;
unsigned int		 mapped;
unsigned int		 npolls;
_Alignas(NLMSG_ALIGNTO) uint8_t answer[256];
ssize_t			 answer_len;
struct sockaddr_nl	 answer_from;
socklen_t		 answer_fromlen = sizeof(answer_from);
_Alignas(NLMSG_ALIGNTO) uint8_t acks[2][64];
ssize_t			 ack_len[2];
unsigned int		 nacks;

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

unsigned int
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

WRAP(int, bind, int s, const struct sockaddr *sa, socklen_t len)
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

WRAP(int, close, int fd)
{
	const unsigned int i = fd - FIRST_FD;

	ATF_REQUIRE_MSG(i < nitems(is_open) && is_open[i], "close %d", fd);
	is_open[i] = false;
	snprintf(calls[ncalls++], sizeof(calls[0]), "close %d", fd);
	/* POSIX lets it change that. */
	errno = EXDEV;
	return (0);
}

WRAP(int, fcntl, int fd, int command, int arg)
{
	return (call("fcntl %d %d %#x", fd, command, arg) ? -1 : 0);
}

WRAP(int, ftruncate, int fd, off_t size)
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

WRAP(int, ioctl, int s, unsigned long request, struct ifreq *ifr)
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

WRAP(int, memfd_create, const char *name, unsigned int flags)
{
	return (opened(call("memfd %s %#x", name, flags)));
}

WRAP(void *, mmap, void *p, size_t size, int prot, int flags, int fd,
    off_t offset)
{
	ATF_CHECK(p == NULL);
	ATF_CHECK_EQ(0, offset);
	return (call("mmap %zu %#x %#x %d", size, prot, flags, fd) ?
	    MAP_FAILED : MEMORY);
}

WRAP(int, munmap, void *p, size_t size)
{
	ATF_CHECK_EQ(MEMORY, p);
	(void)call("munmap %zu", size);
	return (0);
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	ATF_CHECK(clock == CLOCK_MONOTONIC);
	*ts = (struct timespec){ .tv_nsec = npolls * POLL_MS * 1000000L };
	return (0);
}

WRAP(int, poll, struct pollfd *fds, nfds_t n, int ms)
{
	ATF_CHECK(fds == NULL && n == 0 && ms == 1);
	npolls++;
	return (0);
}

WRAP(int, nanosleep, const struct timespec *ts, struct timespec *left)
{
	ATF_CHECK(left == NULL);
	snprintf(calls[ncalls++], sizeof(calls[0]), "sleep %jd.%09ld",
	    (intmax_t)ts->tv_sec, ts->tv_nsec);
	return (0);
}

WRAP(ssize_t, recv, int s, void *p, size_t len, int flags)
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

WRAP(ssize_t, recvfrom, int s, void *p, size_t len, int flags,
    struct sockaddr *from, socklen_t *fromlen)
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

WRAP(ssize_t, send, int s, const void *p, size_t len, int flags)
{
	const struct nlmsghdr *nlh = p;
	char all[1024] = "";
	size_t left = len;

	/* Messages of nf_tables. */
	while (left > 0) {
		ATF_REQUIRE(left >= NLMSG_HDRLEN + 4);
		ATF_REQUIRE(nlh->nlmsg_len <= left);
		ATF_REQUIRE(nlh->nlmsg_len >= NLMSG_HDRLEN + 4);
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
	if (call("send %d %#x%s", s, flags, all))
		return (-1);
	return (len);
}

WRAP(ssize_t, sendto, int s, const void *p, size_t len, int flags,
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

WRAP(int, setsockopt, int s, int level, int name, const void *value,
    socklen_t len)
{
	struct xdp_umem_reg reg;
	bool fails;

	if (level == SOL_PACKET && name == PACKET_TX_RING && mapped > 0) {
		mapped--;
		errno = EBUSY;
		return (-1);
	}
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

WRAP(int, socket, int family, int type, int protocol)
{
	return (opened(call("socket %d %d%s%s %d", family, type &
	    ~(SOCK_NONBLOCK | SOCK_CLOEXEC),
	    (type & SOCK_NONBLOCK) != 0 ? " nonblock" : "",
	    (type & SOCK_CLOEXEC) != 0 ? " cloexec" : "", protocol)));
}

WRAP(long, syscall, long number, int command, union bpf_attr *attr, size_t size)
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
