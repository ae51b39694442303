/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket's requests about attached interfaces: names, and the
 * descriptors that come with them.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <atf-c.h>

#include "ctl_calls.h"
#include "fail_calls.h"
#include "hostif_impl.h"
#include "test.h"
#include "wrap.h"

static struct peer root;

static bool	attaches = true;
static struct hostif_fds attached;

WRAP(int, hostif_attach, const char *name __unused,
    const struct hostif_fds *fds, char why[HOSTIF_WHY])
{
	attached = *fds;
	snprintf(why, HOSTIF_WHY, "it cannot be attached");
	return (attaches ? 0 : -1);
}

/* Attach it with a descriptor, of `n'. */
static int
attach_with(uint32_t n, int fd)
{
	const struct hostif_fds fds = { .hf_nfds = n };

	return (peer_pass(&root, NETMAP_REQ_VALE_ATTACH, "vale0:x", &fds,
	    sizeof(fds), fd));
}

TEST(attach_fds, "The descriptors are kept if it is attached, and closed if "
    "not")
{
	static const char missing[] =
	    "the descriptors of the interface are missing";
	struct sockaddr_nl snl = { .nl_family = AF_NETLINK,
	    .nl_groups = RTMGRP_LINK };
	struct fail_held before;
	int fd;

	peer_connect(&root, 0, true);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ATF_REQUIRE(fd != -1);
	before = fail_held();
	ATF_CHECK_EQ(EINVAL, attach_with(1, fd));
	ATF_CHECK_STREQ("descriptor 0 is not one of this interface",
	    root.pe_reply.wire.vw_why);
	ATF_REQUIRE_EQ(0, bind(fd, (struct sockaddr *)&snl, sizeof(snl)));
	ATF_CHECK_EQ(EINVAL, attach_with(0, fd));
	ATF_CHECK_STREQ(missing, root.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(EINVAL, attach_with(1, -1));
	ATF_CHECK_STREQ(missing, root.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(EINVAL, attach_with(HOSTIF_FDS_MAX + 1, fd));
	ATF_CHECK_STREQ(missing, root.pe_reply.wire.vw_why);
	peer_copies = HOSTIF_FDS_MAX + 1;
	ATF_CHECK_EQ(EINVAL, attach_with(HOSTIF_FDS_MAX + 1, fd));
	ATF_CHECK_STREQ(missing, root.pe_reply.wire.vw_why);
	peer_copies = HOSTIF_FDS_MAX;
	ATF_CHECK_EQ(EINVAL, attach_with(HOSTIF_FDS_MAX, fd));
	ATF_CHECK_STREQ("descriptor 1 is not one of this interface",
	    root.pe_reply.wire.vw_why);
	peer_copies = 1;
	attaches = false;
	ATF_CHECK_EQ(EIO, attach_with(1, fd));
	fail_held_check(&before);
	attaches = true;
	ATF_CHECK_EQ(0, attach_with(1, fd));
	ATF_CHECK_EQ(1, attached.hf_nfds);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(attached.hf_fd[0], F_GETFD));
	close(attached.hf_fd[0]);
	fail_held_check(&before);
	close(fd);
	peer_end(&root);
}

/* Descriptors of all kinds. */
enum kind {
	LINK, LINK_SILENT, ETHTOOL, NETFILTER, PACKET, PACKET_IP, PACKET_NONE,
	INET_RAW, INET_PACKET, XSK, XSK_BOUND, ANON, MEMORY, MEMORY_SHRINKS,
	PLAIN, NKINDS
};

static int
netlink(int protocol, uint32_t groups)
{
	struct sockaddr_nl snl = { .nl_family = AF_NETLINK,
	    .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, bind(fd, (struct sockaddr *)&snl, sizeof(snl)));
	return (fd);
}

/* Of the loopback interface, or of none. */
static int
packet_socket(int protocol, int index)
{
	struct sockaddr_ll sll = { .sll_family = AF_PACKET,
	    .sll_protocol = htons(protocol), .sll_ifindex = index };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, bind(fd, (struct sockaddr *)&sll, sizeof(sll)));
	return (fd);
}

/* Of another domain, with the number of a protocol of netlink(7). */
static int
inet_raw(void)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	ATF_REQUIRE(fd != -1);
	return (fd);
}

/* With an address that has what packet_socket(ETH_P_ALL, 1) has. */
static int
inet_packet(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
	    .sin_port = htons(ETH_P_ALL), .sin_addr.s_addr = 1 };
	const int on = 1;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on,
	    sizeof(on)));
	ATF_REQUIRE_EQ(0, bind(fd, (struct sockaddr *)&sin, sizeof(sin)));
	return (fd);
}

/* The loopback interface is up. */
static void
loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, ioctl(fd, SIOCSIFFLAGS, &ifr));
	close(fd);
}

/* A socket of AF_XDP, which may be bound to it, and receives nothing. */
static int
xsk(bool bound)
{
	static char umem[2 * 4096] __aligned(4096);
	const struct xdp_umem_reg reg = { .addr = (uintptr_t)umem,
	    .len = sizeof(umem), .chunk_size = 4096 };
	const struct sockaddr_xdp sxdp = { .sxdp_family = AF_XDP,
	    .sxdp_ifindex = 1, .sxdp_flags = XDP_COPY };
	const int n = 8;
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd == -1)
		atf_tc_skip("no AF_XDP: %s", strerror(errno));
	if (!bound)
		return (fd);
	ATF_REQUIRE_EQ(0, setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg,
	    sizeof(reg)));
	ATF_REQUIRE_EQ(0, setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &n,
	    sizeof(n)));
	ATF_REQUIRE_EQ(0, setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &n,
	    sizeof(n)));
	ATF_REQUIRE_EQ(0, setsockopt(fd, SOL_XDP, XDP_TX_RING, &n,
	    sizeof(n)));
	ATF_REQUIRE_EQ(0, bind(fd, (const struct sockaddr *)&sxdp,
	    sizeof(sxdp)));
	return (fd);
}

static int
memory(int seals)
{
	int fd = memfd_create("rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, seals));
	return (fd);
}

static void
kinds_open(int fd[NKINDS])
{
	if (unshare(CLONE_NEWNET) == -1)
		atf_tc_skip("no network namespace: %s", strerror(errno));
	loopback_up();
	fd[LINK] = netlink(NETLINK_ROUTE, RTMGRP_LINK);
	fd[LINK_SILENT] = netlink(NETLINK_ROUTE, RTMGRP_NOTIFY);
	fd[ETHTOOL] = netlink(NETLINK_GENERIC, 0);
	fd[NETFILTER] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
	    NETLINK_NETFILTER);
	fd[PACKET] = packet_socket(ETH_P_ALL, 1);
	fd[PACKET_IP] = packet_socket(ETH_P_IP, 1);
	fd[PACKET_NONE] = packet_socket(ETH_P_ALL, 0);
	fd[INET_RAW] = inet_raw();
	fd[INET_PACKET] = inet_packet();
	fd[XSK] = xsk(false);
	fd[XSK_BOUND] = xsk(true);
	fd[ANON] = eventfd(0, EFD_CLOEXEC);
	fd[MEMORY] = memory(F_SEAL_SHRINK);
	fd[MEMORY_SHRINKS] = memory(F_SEAL_GROW);
	fd[PLAIN] = open("plain", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ATF_REQUIRE(fd[ANON] != -1 && fd[PLAIN] != -1);
	if (fd[NETFILTER] == -1)
		atf_tc_skip("no nfnetlink: %s", strerror(errno));
}

/* Attach it with `n' descriptors, of which number `i' is of another kind. */
static int
attach_kinds(enum hostif_kind kind, const enum kind *kinds, uint32_t n,
    const int fd[NKINDS], uint32_t i, enum kind other)
{
	const struct hostif_fds fds = { .hf_kind = kind, .hf_index = 1,
	    .hf_nfds = n };
	int passed[HOSTIF_FDS_MAX], error;
	uint32_t k;

	for (k = 0; k < n; k++)
		passed[k] = fd[k == i ? other : kinds[k]];
	peer_fds = passed;
	peer_copies = n;
	error = peer_ask(&root, NETMAP_REQ_VALE_ATTACH, "vale0:x", &fds,
	    sizeof(fds));
	peer_fds = NULL;
	peer_copies = 1;
	return (error);
}

TEST(attach_accepts, "Each descriptor is one of the interface's that it must "
    "be")
{
	static const enum kind xdp[] = { LINK, ETHTOOL, PACKET_NONE, ANON,
	    MEMORY, XSK_BOUND };
	static const enum kind rings[] = { LINK, PACKET, ANON, NETFILTER };
	/* What else may be in the place of each. */
	static const struct {
		enum hostif_kind kind;
		const enum kind *kinds;
		uint32_t	n;
		uint32_t	accepts[6];
	} rows[] = {
#define	K(kind)		(1U << (kind))
		{ HOSTIF_XDP, xdp, 6, { K(LINK), K(ETHTOOL), K(PACKET) |
		    K(PACKET_IP) | K(PACKET_NONE), K(ANON), K(MEMORY),
		    K(XSK_BOUND) } },
		{ HOSTIF_PACKET, rings, 4, { K(LINK), K(PACKET), K(ANON) |
		    K(NETFILTER), K(ANON) | K(NETFILTER) } },
	};
	char why[64];
	enum kind other;
	int error, fd[NKINDS];
	uint32_t i, r, u;

	peer_connect(&root, 0, true);
	kinds_open(fd);
	for (r = 0; r < nitems(rows); r++)
		for (i = 0; i < rows[r].n; i++)
			for (other = 0; other < NKINDS; other++) {
				error = attach_kinds(rows[r].kind,
				    rows[r].kinds, rows[r].n, fd, i, other);
				if ((rows[r].accepts[i] & K(other)) != 0) {
					ATF_CHECK_EQ_MSG(0, error,
					    "%u %u %u", r, i, other);
					for (u = 0; u < rows[r].n; u++)
						close(attached.hf_fd[u]);
					continue;
				}
				ATF_CHECK_EQ_MSG(EINVAL, error, "%u %u %u", r,
				    i, other);
				snprintf(why, sizeof(why), "descriptor %u is "
				    "not one of this interface", i);
				ATF_CHECK_STREQ(why, root.pe_reply.wire.vw_why);
			}
	for (other = 0; other < NKINDS; other++)
		close(fd[other]);
	peer_end(&root);
}

TEST_PROGRAM
