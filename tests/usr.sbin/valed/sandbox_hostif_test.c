/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed's sandbox: what an attacker who controls a thread can do with the
 * descriptors of an attached interface.  He sends and receives on h0, and
 * nothing reaches or changes m0, another interface of the host.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <net/if.h>
#include <netinet/in.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_impl.h"
#include "hostif_pair.h"
#include "test.h"
#include "valed_sandbox.h"
#include "wait_until.h"

static struct hostif_fds fds;
static int		 pass[2] = { -1, -1 };	/* of a control socket */
static int		 wire_m = -1;		/* at the other end of m0 */
static int		 index_m;		/* of m0 */
static uint8_t		 frame[FRAME_VNET_SHORT + 60];	/* one to send */

/* Open h0 and m0. */
static void
start(enum hostif_kind k)
{
	struct sockaddr_ll sll = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)
	};
	char why[HOSTIF_WHY];

	if (k == HOSTIF_XDP)
		use_xdp();
	make_pair();
	open_wire();
	run("ip link add m0 type veth peer name m1 && ip link set m0 up && "
	    "ip link set m1 up");
	run("until ip link show m0 | grep -q 'state UP'; do sleep 0.01; done");
	index_m = if_nametoindex("m0");
	wire_m = socket(AF_PACKET, SOCK_RAW, 0);
	sll.sll_ifindex = if_nametoindex("m1");
	ATF_REQUIRE_EQ(0, bind(wire_m, (struct sockaddr *)&sll, sizeof(sll)));
	ATF_REQUIRE_MSG(hostif_open("h0", k, &fds, why) == 0,
	    "%s", why);
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pass));
	make_frame(frame + FRAME_VNET_SHORT, 60, 5);
}

/* Run `act' in the sandbox, and return the process's status. */
static int
inside(int sandbox, int (*act)(int fd), int fd)
{
	pid_t pid = fork();
	int status;

	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		if (valed_sandbox_enter(sandbox, -1) == -1)
			_exit(99);
		_exit(act(fd));
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	return (status);
}

static const struct sockaddr *
other(void)
{
	static struct sockaddr_ll sll = {
		.sll_family = AF_PACKET, .sll_halen = ETH_ALEN,
		.sll_protocol = 0xb588
	};

	sll.sll_ifindex = index_m;
	return ((const struct sockaddr *)&sll);
}

static int
act_sendto(int fd)
{
	return (sendto(fd, frame, sizeof(frame), MSG_DONTWAIT,
	    other(), sizeof(struct sockaddr_ll)) == -1 ? 1 : 0);
}

/* What is in the ring. */
static int
act_sendto_ring(int fd)
{
	return (sendto(fd, NULL, 0, MSG_DONTWAIT, other(),
	    sizeof(struct sockaddr_ll)) == -1 ? 1 : 0);
}

static struct mmsghdr *
message(void)
{
	static struct iovec iov = { frame, sizeof(frame) };
	static struct mmsghdr msg = { .msg_hdr = {
		.msg_namelen = sizeof(struct sockaddr_ll),
		.msg_iov = &iov, .msg_iovlen = 1
	} };

	msg.msg_hdr.msg_name = (void *)(uintptr_t)other();
	return (&msg);
}

static int
act_sendmsg(int fd)
{
	return (sendmsg(fd, &message()->msg_hdr, MSG_NOSIGNAL) == -1 ? 1 :
	    0);
}

static int
act_sendmmsg(int fd)
{
	return (sendmmsg(fd, message(), 1, MSG_NOSIGNAL) == -1 ?
	    1 : 0);
}

/* Have the packet socket take the place of the one that may send messages. */
static int
act_replace(int fd)
{
	(void)close(pass[0]);
	(void)fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return (act_sendmsg(pass[0]));
}

static int
act_bind(int fd)
{
	return (bind(fd, other(), sizeof(struct sockaddr_ll)) ==
	    -1 ? 1 : 0);
}

static int
act_connect(int fd)
{
	return (connect(fd, other(), sizeof(struct sockaddr_ll)) ==
	    -1 ? 1 : 0);
}

static int
option(int fd, int level, int name, const void *value, socklen_t len)
{
	return (setsockopt(fd, level, name, value, len) == -1 ? 1 :
	    0);
}

static int
act_member(int fd)
{
	const struct packet_mreq mr = {
		.mr_ifindex = index_m, .mr_type = PACKET_MR_PROMISC
	};

	return (option(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mr,
	    sizeof(mr)));
}

static int
act_device(int fd)
{
	return (option(fd, SOL_SOCKET, SO_BINDTODEVICE, "m0", 3));
}

static int
act_fanout(int fd)
{
	const int group = 7;

	return (option(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)));
}

static int
act_filter(int fd)
{
	struct sock_filter ret = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog prog = { 1, &ret };

	return (option(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
}

static int
act_umem(int fd)
{
	const int n = 64;

	return (option(fd, SOL_XDP, XDP_RX_RING, &n, sizeof(n)));
}

static const struct {
	const char	*what;
	int		(*act)(int fd);
} attempts[] = {
	{ "sendto", act_sendto }, { "sendto, ring", act_sendto_ring },
	{ "sendmsg", act_sendmsg }, { "sendmmsg", act_sendmmsg },
	{ "another descriptor", act_replace },
	{ "bind", act_bind }, { "connect", act_connect },
	{ "membership", act_member }, { "device", act_device },
	{ "fanout", act_fanout }, { "filter", act_filter },
	{ "a ring of AF_XDP", act_umem },
};

/* Nothing left through the other interface before this frame. */
static void
nothing_on_other(void)
{
	static uint32_t number = 100;
	uint8_t p[2048];
	int s = socket(AF_PACKET, SOCK_RAW, 0);

	make_frame(p, 60, ++number);
	ATF_REQUIRE(s != -1);
	ATF_REQUIRE_EQ(60, sendto(s, p, 60, 0, other(),
	    sizeof(struct sockaddr_ll)));
	close(s);
	wait_readable(wire_m, "frame");
	ATF_REQUIRE_EQ(60, recv(wire_m, p, sizeof(p), 0));
	ATF_REQUIRE_EQ(number, frame_number(p));
}

/* Each attempt, with each descriptor, kills the process. */
static void
all_killed(int sandbox)
{
	unsigned int i, j;
	int status;

	for (i = 0; i < nitems(attempts); i++)
		for (j = 0; j < fds.hf_nfds; j++) {
			status = inside(sandbox, attempts[i].act,
			    fds.hf_fd[j]);
			ATF_CHECK_MSG(WIFSIGNALED(status) &&
			    WTERMSIG(status) == SIGSYS,
			    "%s, descriptor %u: status %#x", attempts[i].what,
			    j, status);
		}
	nothing_on_other();
}

static int
act_write(int fd)
{
	return (write(fd, frame, sizeof(frame)) == -2);
}

/* Written to, no descriptor sends elsewhere. */
static void
writes(void)
{
	unsigned int i;

	for (i = 0; i < fds.hf_nfds; i++)
		ATF_CHECK_EQ(0, inside(-1, act_write, fds.hf_fd[i]));
	nothing_on_other();
}

ROOT_TEST(packet, "With the descriptors of an interface that is attached by "
    "packet(7), nothing is sent on another one, and none is changed")
{
	start(HOSTIF_PACKET);
	all_killed(-1);
	all_killed(pass[0]);
	writes();
	hostif_close(&fds);
}

ROOT_TEST(xdp, "With the descriptors of an interface that is attached by "
    "AF_XDP, a packet socket among them, nothing is sent on another one, and "
    "none is changed")
{
	start(HOSTIF_XDP);
	all_killed(-1);
	all_killed(pass[0]);
	writes();
	hostif_close(&fds);
}

/* Ask rtnetlink(7) to set m0 down; the kernel's answer. */
static int
act_link(int fd)
{
	struct {
		struct nlmsghdr		nlh;
		struct ifinfomsg	ifi;
	} ask = {
		.nlh = { .nlmsg_len = sizeof(ask), .nlmsg_type = RTM_NEWLINK,
		    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.ifi = { .ifi_index = index_m, .ifi_change = IFF_UP }
	};
	_Alignas(NLMSG_ALIGNTO) uint8_t answer[8192];
	const struct nlmsghdr *nlh = (const void *)answer;
	const struct nlmsgerr *e = NLMSG_DATA(nlh);

	if (write(fd, &ask, sizeof(ask)) != sizeof(ask))
		return (98);
	do {
		if (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) == -1)
			return (97);
	} while (nlh->nlmsg_type != NLMSG_ERROR);
	return (-e->error);
}

ROOT_TEST(rtnetlink, "The socket that tells an interface's state cannot change "
    "one")
{
	int status;

	start(HOSTIF_PACKET);
	status = inside(-1, act_link, fds.hf_fd[HOSTIF_FD_LINK]);
	ATF_REQUIRE_MSG(WIFEXITED(status) && WEXITSTATUS(status) == EPERM,
	    "status %#x", status);
	run("ip link show m0 | grep -q 'state UP'");
	hostif_close(&fds);
}

TEST_PROGRAM
