/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Frames of 60 bytes between an interface and a program:
 *
 *	attach plain IF		have its frames as an adapter's driver has them
 *	attach send IF		send into it by packet(7), until killed
 *	attach redirect IF	the same by XDP: these cost their sender little,
 *				as those that a network adapter has received
 *	attach [-o PEER] tap TAP	receive from a TAP interface; with -o
 *				send to it
 *	attach [-o PEER] port IF [KIND]	the same by a port of a switch to which
 *				the interface is attached
 *
 * The last two run for half a second and print nanoseconds for each frame
 * received, by this program or by the interface PEER.  The addresses are those
 * that switches learn.  What sends has processor 0, and what receives the next
 * one; so has the thread of an attached interface in any case.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <net/if.h>

#include <err.h>
#include <fcntl.h>

#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "hostif.h"
#include "libvale.h"

#define	LEN		60
#define	BATCH		256
#define	WARM_NS		200000000ULL
#define	RUN_NS		500000000ULL
#define	LIVE		2		/* BPF_F_TEST_XDP_LIVE_FRAMES */

#define	THERE		"\x02\0\0\0\0\x09"
#define	HERE		"\x02\0\0\0\0\x08"
static uint8_t to_here[LEN] = HERE THERE "\x88\xb5";
static uint8_t to_there[LEN] = THERE HERE "\x88\xb5";

/* A program's end. */
struct end {
	int		 fd;		/* readable with frames */
	unsigned int	(*send)(void);	/* a batch at most; how many */
	unsigned int	(*receive)(void);
};

static int	tap_fd;
static struct vale_desc *port;

static void
ethtool(const char *ifname, uint32_t cmd, uint32_t data)
{
	struct ethtool_value value = { .cmd = cmd, .data = data };
	struct ifreq ifr;
	int s;

	memset(&ifr, 0, sizeof(ifr));
	strlcpy(ifr.ifr_name, ifname, sizeof(ifr.ifr_name));
	ifr.ifr_data = (char *)&value;
	s = socket(AF_INET, SOCK_DGRAM, 0);
	if (s == -1 || ioctl(s, SIOCETHTOOL, &ifr) == -1)
		err(1, "%s", ifname);
	close(s);
}

/*
 * VLAN tags in their place, and interrupts that poll: with GRO veth(4) has
 * both of what XDP needs of it.
 */
static void
plain(const char *ifname)
{
	ethtool(ifname, ETHTOOL_SFLAGS, 0);
	ethtool(ifname, ETHTOOL_SGRO, 1);
}

static void __dead2
send_all(const char *ifname)
{
	const struct sockaddr_ll sll = { .sll_family = AF_PACKET,
	    .sll_ifindex = if_nametoindex(ifname) };
	struct iovec iov = { to_here, LEN };
	struct mmsghdr msg[BATCH];
	int i, one = 1, s;

	s = socket(AF_PACKET, SOCK_RAW, 0);
	if (s == -1 || setsockopt(s, SOL_PACKET, PACKET_QDISC_BYPASS, &one,
	    sizeof(one)) == -1 || bind(s, (const struct sockaddr *)&sll,
	    sizeof(sll)) == -1)
		err(1, "%s", ifname);
	memset(msg, 0, sizeof(msg));
	for (i = 0; i < BATCH; i++) {
		msg[i].msg_hdr.msg_iov = &iov;
		msg[i].msg_hdr.msg_iovlen = 1;
	}
	/* What the interface does not take is lost, as on a wire. */
	for (;;)
		(void)sendmmsg(s, msg, BATCH, 0);
}

static void __dead2
redirect_all(const char *ifname)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1,
		    .imm = if_nametoindex(ifname) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;
	long prog;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = nitems(insns);
	attr.license = (uintptr_t)"";
	prog = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (prog == -1)
		err(1, "XDP program");
	for (;;) {
		memset(&attr, 0, sizeof(attr));
		attr.test.prog_fd = prog;
		attr.test.data_in = (uintptr_t)to_here;
		attr.test.data_size_in = LEN;
		attr.test.repeat = 1 << 16;
		attr.test.flags = LIVE;
		if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr,
		    sizeof(attr)) == -1)
			err(1, "XDP frames");
	}
}

static unsigned int
tap_send(void)
{
	unsigned int n;

	for (n = 0; n < BATCH; n++)
		if (write(tap_fd, to_there, LEN) != LEN)
			break;
	return (n);
}

static unsigned int
tap_receive(void)
{
	uint8_t buf[2048];
	unsigned int n;

	for (n = 0; n < BATCH; n++)
		if (read(tap_fd, buf, sizeof(buf)) <= 0)
			break;
	return (n);
}

static void
tap_open(const char *name, struct end *end)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI;
	strlcpy(ifr.ifr_name, name, sizeof(ifr.ifr_name));
	tap_fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (tap_fd == -1 || ioctl(tap_fd, TUNSETIFF, &ifr) == -1)
		err(1, "%s", name);
	end->fd = tap_fd;
	end->send = tap_send;
	end->receive = tap_receive;
}

static unsigned int
port_send(void)
{
	struct netmap_ring *ring = port->txring;
	unsigned int n;

	for (n = 0; n < BATCH; n++) {
		ring->slot[ring->head].ptr = (uintptr_t)to_there;
		ring->slot[ring->head].len = LEN;
		ring->slot[ring->head].flags = NS_INDIRECT;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	}
	vale_txsync(port);
	return (n);
}

static unsigned int
port_receive(void)
{
	struct netmap_ring *ring = port->rxring;
	unsigned int n;

	vale_rxsync(port);
	n = nm_ring_space(ring);
	ring->head = ring->cur = ring->tail;
	return (n);
}

static void
port_open(const char *ifname, const char *kind, struct end *end)
{
	enum hostif_kind how = HOSTIF_AUTO;
	struct hostif_fds fds;
	char name[VALE_NAME_SIZE], why[HOSTIF_WHY];

	if (kind != NULL && hostif_kind(kind, &how) == -1)
		errx(1, "%s: no such kind", kind);
	snprintf(name, sizeof(name), "vale0:%s", ifname);
	if (hostif_open(ifname, how, &fds, why) == -1 ||
	    hostif_start(name, &fds, why) == NULL)
		errx(1, "%s", why);
	port = vale_open("vale0:here", NULL);
	if (port == NULL)
		err(1, "vale0:here");
	end->fd = port->fd;
	end->send = port_send;
	end->receive = port_receive;
}

/* Receive for `ns'; returns nanoseconds for each frame. */
static double
receive(const struct end *end, uint64_t ns)
{
	struct pollfd pfd = { .fd = end->fd, .events = POLLIN };
	const uint64_t begin = bench_now_ns();
	uint64_t now, total = 0;
	unsigned int n;

	while ((now = bench_now_ns()) < begin + ns) {
		n = end->receive();
		total += n;
		if (n == 0)
			(void)poll(&pfd, 1, 10);
	}
	return ((double)(now - begin) / total);
}

/* Send for `ns'; returns nanoseconds for each frame that has arrived. */
static double
send_to(const struct end *end, const char *peer, uint64_t ns)
{
	const uint64_t begin = bench_now_ns();
	const uint32_t before = bench_arrived(peer);
	uint64_t now;

	while ((now = bench_now_ns()) < begin + ns)
		(void)end->send();
	return ((double)(now - begin) /
	    (uint32_t)(bench_arrived(peer) - before));
}

static void __dead2
usage(void)
{
	errx(1, "usage: attach plain | send | redirect interface\n"
	    "       attach [-o peer] tap interface\n"
	    "       attach [-o peer] port interface [kind]");
}

static void
measure(const char *peer, int argc, char **argv)
{
	struct end end;
	cpu_set_t all;
	double ns;

	if (sched_getaffinity(0, sizeof(all), &all) == -1)
		err(1, "processors");
	bench_pin(1);
	if (strcmp(argv[0], "tap") == 0 && argc == 2)
		tap_open(argv[1], &end);
	else if (strcmp(argv[0], "port") == 0)
		port_open(argv[1], argc == 3 ? argv[2] : NULL, &end);
	else
		usage();
	/* The switch learns where this program is. */
	(void)end.send();
	if (peer == NULL) {
		(void)receive(&end, WARM_NS);
		ns = receive(&end, RUN_NS);
	} else {
		/* The interface's thread stays where it is. */
		if (sched_setaffinity(0, sizeof(all), &all) == -1)
			err(1, "processors");
		bench_pin(0);
		(void)send_to(&end, peer, WARM_NS);
		ns = send_to(&end, peer, RUN_NS);
	}
	if (ns > RUN_NS)
		errx(1, "no frame was received");
	printf("%.2f\n", ns);
}

int
main(int argc, char **argv)
{
	const char *peer = NULL;
	int ch;

	while ((ch = getopt(argc, argv, "o:")) != -1) {
		if (ch != 'o')
			usage();
		peer = optarg;
	}
	argv += optind;
	argc -= optind;
	if (argc < 2 || argc > 3)
		usage();
	if (strcmp(argv[0], "plain") == 0)
		plain(argv[1]);
	else if (strcmp(argv[0], "send") == 0) {
		bench_pin(0);
		send_all(argv[1]);
	} else if (strcmp(argv[0], "redirect") == 0) {
		bench_pin(0);
		redirect_all(argv[1]);
	} else
		measure(peer, argc, argv);
	return (0);
}
