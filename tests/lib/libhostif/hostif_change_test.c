/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Attached interfaces: what an administrator changes of them later, and what
 * their kind cannot do.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <net/if.h>
#include <net/if_arp.h>

#include <fcntl.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_pair.h"
#include "test.h"
#include "wait_until.h"

/* From now on the log is a file of the test case. */
static void
log_file(void)
{
	int fd;

	fd = open("log", O_RDWR | O_CREAT | O_APPEND, 0600);
	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE(dup2(fd, STDERR_FILENO) != -1);
	close(fd);
}

/* Lines of the log that have this in them. */
static unsigned int
logged(const char *s)
{
	char line[512];
	unsigned int n = 0;
	FILE *f;

	f = fopen("log", "r");
	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, s) != NULL;
	fclose(f);
	return (n);
}

#define	wait_logged(s)	wait_until(logged(s) == 1, "%u", logged(s))

/* A frame from the wire reaches the port. */
static void
passes(uint32_t number)
{
	uint8_t frame[60], hdr[FRAME_VNET_LONG];

	make_frame(frame, sizeof(frame), number);
	wire_send(NULL, frame, sizeof(frame));
	ATF_REQUIRE_EQ(60, port_receive(hdr));
	ATF_REQUIRE_EQ(number, frame_number(buf));
}

/* Skip the test if there is no interface of this kind. */
static void
needs(const char *command)
{
	char all[256];

	snprintf(all, sizeof(all), "%s 2> /dev/null", command);
	if (system(all) != 0)
		atf_tc_skip("the kernel does not: %s", command);
}

ROOT_TEST(xdp_untagged, "What is received while the interface takes VLAN tags "
    "out of frames is dropped")
{
	uint8_t frame[60], hdr[FRAME_VNET_LONG];
	uint32_t i;

	use_xdp();
	log_file();
	setup();
	make_frame(frame, sizeof(frame), 9);
	for (i = 0; i < 2; i++) {
		passes(i);
		set_feature("rx-vlan-hw-parse", true);
		wait_until(logged("is dropped: ethtool -K h0 rxvlan off") ==
		    i + 1, "no line");
		wire_send(NULL, frame, sizeof(frame));
		wait_until(counter(HOSTIF_C_RX_UNTAGGED) == i + 1,
		    "%ju dropped", (uintmax_t)counter(HOSTIF_C_RX_UNTAGGED));
		/* Other changes do not matter. */
		set_feature("tx-gre-segmentation", i == 0);
		port_put(NULL, frame, sizeof(frame));
		ATF_REQUIRE_EQ(0, vale_txsync(port));
		ATF_REQUIRE_EQ(60, wire_receive(hdr));
		set_feature("rx-vlan-hw-parse", false);
		wait_until(logged("h0 leaves VLAN tags in frames") == i + 1,
		    "no line");
		nothing_in_port();
	}
	ATF_REQUIRE_EQ(0, logged("802.1ad"));
	set_feature("rx-vlan-stag-hw-parse", true);
	wait_logged("of 802.1ad are lost: ethtool -K h0 rx-vlan-stag-hw-parse "
	    "off");
	passes(5);
	ATF_REQUIRE_EQ(2, counter(HOSTIF_C_RX_UNTAGGED));
	thread_sleeps();
	hostif_stop(hi);
}

ROOT_TEST(xdp_added, "A line says when there are queues whose frames are lost, "
    "and when there are none")
{
	use_xdp();
	pair = "ip link add h0 numrxqueues 16 numtxqueues 16 type veth "
	    "peer name w0 numrxqueues 2 numtxqueues 2";
	log_file();
	make_pair();
	set_queues(2);
	attach();
	open_wire();
	port = vale_open("vale0:t", NULL);
	ATF_REQUIRE(port != NULL);
	passes(1);
	set_queues(4);
	wait_logged("4 receive queues, and what is received on more than 2 is "
	    "lost");
	ATF_CHECK(hostif_outgrown(hi));
	set_queues(2);
	wait_logged("all receive queues are used");
	ATF_CHECK(!hostif_outgrown(hi));
	passes(2);
	/* More than 12 cannot be attached. */
	set_queues(13);
	wait_logged("13 receive queues, and");
	ATF_CHECK(!hostif_outgrown(hi));
	hostif_stop(hi);
	/* It gets all of them when it is attached again. */
	set_queues(4);
	attach();
	ATF_REQUIRE_EQ(2, logged("receive queues, and"));
	hostif_stop(hi);
}

ROOT_TEST(xdp_bond, "A bond, whose frames AF_XDP does not get, is refused")
{
	struct hostif_fds fds;
	char why[HOSTIF_WHY];

	use_xdp();
	make_pair();
	needs("ip link add bond0 type bond");
	ATF_REQUIRE_EQ(-1, hostif_open("bond0", HOSTIF_XDP, &fds, why));
	ATF_REQUIRE_STREQ("bond0: a bond receives nothing with kind=xdp: use "
	    "kind=packet", why);
	ATF_REQUIRE_EQ(0, fds.hf_nfds);
}

ROOT_TEST(master, "A line says that an interface belongs to another one, now "
    "or later, and that it has another name; frames pass")
{
	const char *line = "belongs to another one, with the index 77, ";

	log_file();
	setup();
	passes(1);
	needs("ip link add br0 index 77 type bridge");
	run("ip link set h0 master br0");
	wait_logged(line);
	passes(2);
	hostif_stop(hi);
	attach();
	wait_until(logged(line) == 2, "no line");
	run("ip link set h0 nomaster && ip link set h0 name h1");
	wait_logged("vale0:h0: the interface is called h1 now");
	passes(3);
	ATF_REQUIRE_EQ(2, logged(line));
	hostif_stop(hi);
}

ROOT_TEST(moved, "An interface that is moved to another network namespace is "
    "gone")
{
	uint8_t frame[60];

	log_file();
	setup();
	passes(1);
	run("unshare -n sleep 1000 & echo $! > pid; until [ \"$(readlink "
	    "/proc/$(cat pid)/ns/net)\" != \"$(readlink /proc/$$/ns/net)\" ]; "
	    "do sleep 0.01; done; ip link set h0 netns $(cat pid)");
	wait_logged("the interface is gone");
	make_frame(frame, sizeof(frame), 1);
	port_put(NULL, frame, sizeof(frame));
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	wait_until(counter(HOSTIF_C_TX_DOWN) == 1, "not dropped");
	thread_sleeps();
	hostif_stop(hi);
	run("kill $(cat pid)");
}

/* Send a message to `s', a socket of rtnetlink(7), in the kernel's place. */
static void
forge(int s, void *message, uint32_t len)
{
	struct sockaddr_nl to;
	socklen_t tolen = sizeof(to);
	int mine;

	ATF_REQUIRE_EQ(0, getsockname(s, (struct sockaddr *)&to, &tolen));
	mine = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	ATF_REQUIRE(mine != -1);
	ATF_REQUIRE_EQ((ssize_t)len, sendto(mine, message, len, 0,
	    (struct sockaddr *)&to, tolen));
	close(mine);
}

ROOT_TEST(forged, "A message about the interface that is not the kernel's is "
    "not believed")
{
	struct {
		struct nlmsghdr		nlh;
		struct ifinfomsg	ifi;
	} gone = { .nlh = { .nlmsg_len = sizeof(gone),
	    .nlmsg_type = RTM_DELLINK } };
	struct hostif_fds fds;
	char why[HOSTIF_WHY];

	log_file();
	make_pair();
	open_wire();
	port = vale_open("vale0:t", NULL);
	ATF_REQUIRE(port != NULL);
	ATF_REQUIRE_EQ(0, hostif_open("h0", HOSTIF_PACKET, &fds, why));
	hi = hostif_start("vale0:h0", &fds, why);
	ATF_REQUIRE(hi != NULL);
	gone.ifi.ifi_index = fds.hf_index;
	gone.ifi.ifi_type = ARPHRD_ETHER;
	passes(1);
	/* The first change is the one that comes after them. */
	forge(fds.hf_fd[0], &gone, sizeof(gone));
	gone.nlh.nlmsg_type = RTM_NEWLINK;
	forge(fds.hf_fd[0], &gone, sizeof(gone));
	run("ip link set h0 mtu 1400");
	wait_logged("the interface's MTU is 1400");
	ATF_REQUIRE_EQ(1, counter(HOSTIF_C_LINK));
	ATF_REQUIRE_EQ(1, logged("vale0:h0"));
	passes(2);
	hostif_stop(hi);
}

/* Lines of the log, and the sum of those that it says were left out. */
static void
log_count(unsigned int *lines, unsigned int *left)
{
	const char *p;
	char line[512];
	FILE *f = fopen("log", "r");

	ATF_REQUIRE(f != NULL);
	for (*lines = *left = 0; fgets(line, sizeof(line), f) != NULL;
	    ++*lines) {
		p = strstr(line, "lines left out");
		if (p != NULL)
			*left += strtoul(strrchr(line, ':') + 1, NULL, 10);
		*lines -= p != NULL;
	}
	fclose(f);
}

ROOT_TEST(flaps, "An interface that changes without end logs ten lines a "
    "second, and the number of those left out")
{
	enum { TIMES = 2000 };
	struct ifreq ifr = { .ifr_name = "h0" };
	unsigned int i, left, lines;
	const time_t start = time(NULL);
	int s;

	log_file();
	setup();
	passes(1);
	s = socket(AF_INET, SOCK_DGRAM, 0);
	ATF_REQUIRE(s != -1);
	for (i = 0; i < TIMES; i++) {
		ifr.ifr_mtu = 1000 + i % 2;
		ATF_REQUIRE_EQ(0, ioctl(s, SIOCSIFMTU, &ifr));
		/* The kernel drops messages that are not read. */
		wait_until(counter(HOSTIF_C_LINK) == i + 1, "%u", i);
	}
	/* Those that are left are told without another change. */
	wait_until((log_count(&lines, &left), lines + left == TIMES),
	    "%u lines, %u left out", lines, left);
	ATF_REQUIRE_MSG(lines <= 10 * (time(NULL) - start + 2), "%u lines",
	    lines);
	ATF_REQUIRE(lines >= 10);
	close(s);
	hostif_stop(hi);
}

/* The line that says that a macvlan interface of a mode gets nothing. */
#define	MACVLAN	"gets frames for its own address only"

ROOT_TEST(macvlan, "A line says which macvlan interfaces get no frames for "
    "guests; in mode passthru they do")
{
	static const char *const modes[] = { "bridge", "vepa", "private" };
	uint8_t frame[60], hdr[FRAME_VNET_LONG];
	uint32_t i;

	log_file();
	make_pair();
	needs("ip link add m0 link h0 type macvlan mode private && "
	    "ip link del m0");
	run("ip link set h0 name l0");
	open_wire();
	port = vale_open("vale0:t", NULL);
	ATF_REQUIRE(port != NULL);
	for (i = 0; i < nitems(modes); i++) {
		run("ip link add h0 link l0 type macvlan mode %s && "
		    "ip link set h0 up", modes[i]);
		attach();
		wait_until(logged(MACVLAN) == i + 1, "%s: no line", modes[i]);
		hostif_stop(hi);
		run("ip link del h0");
	}
	run("ip link add h0 link l0 type macvlan mode passthru && "
	    "ip link set h0 up");
	attach();
	make_frame(frame, sizeof(frame), 7);
	memcpy(frame, "\x02\x00\x00\x00\x00\x77", 6);
	wait_until((wire_send(NULL, frame, sizeof(frame)),
	    vale_rxsync(port), !nm_ring_empty(port->rxring)), "no frame");
	ATF_REQUIRE_EQ(60, port_receive(hdr));
	ATF_REQUIRE_EQ(7, frame_number(buf));
	ATF_REQUIRE_EQ(i, logged("macvlan"));
	hostif_stop(hi);
}

TEST_PROGRAM
