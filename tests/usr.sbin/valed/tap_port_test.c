/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Frame ports over TAP interfaces.  These need /dev/net/tun; each test creates
 * them in a network namespace of its own.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <netpacket/packet.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_port.h"
#include "frame_vnet.h"
#include "tap_port.h"
#include "test.h"
#include "wait_until.h"

/* IEEE's EtherType for experiments: no other frame has it. */
#define	TEST_ETHERTYPE	0x88b5

static char	why[256];

static struct frame_port *
port_open(const char *name, uint32_t mtu)
{
	struct frame_port *port;

	port = tap_port_open(name, mtu, why, sizeof(why));
	ATF_REQUIRE_MSG(port != NULL, "%s", why);
	port->fp_frame_max = UINT32_MAX;
	return (port);
}

static void
port_refused(const char *name, uint32_t mtu, const char *expected)
{
	ATF_CHECK_EQ(NULL, tap_port_open(name, mtu, why, sizeof(why)));
	ATF_CHECK_STREQ(expected, why);
}

/* Enter a new network namespace, or skip the test.  Programs that a user runs
   there have privileges if the user is root of a namespace of users, too. */
static void
private_network(void)
{
	const uid_t uid = getuid();
	int fd;

	if (unshare(CLONE_NEWNET) != 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
			atf_tc_skip("no network namespace: %s",
			    strerror(errno));
		fd = open("/proc/self/uid_map", O_WRONLY);
		ATF_REQUIRE(dprintf(fd, "0 %u 1", uid) > 0);
		close(fd);
	}
	fd = open("/dev/net/tun", O_RDWR);
	if (fd == -1)
		atf_tc_skip("/dev/net/tun: %s", strerror(errno));
	close(fd);
}

/* A raw socket at the host's end of an interface, for an EtherType. */
static int
host_end_type(const char *name, uint16_t type)
{
	struct sockaddr_ll sll;
	int s;

	s = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(type));
	ATF_REQUIRE_MSG(s != -1, "AF_PACKET: %s", strerror(errno));
	memset(&sll, 0, sizeof(sll));
	sll.sll_family = AF_PACKET;
	sll.sll_protocol = htons(type);
	sll.sll_ifindex = if_nametoindex(name);
	ATF_REQUIRE(sll.sll_ifindex != 0);
	ATF_REQUIRE_EQ(0, bind(s, (struct sockaddr *)&sll, sizeof(sll)));
	return (s);
}

/* The same for ours. */
static int
host_end(const char *name)
{
	return (host_end_type(name, TEST_ETHERTYPE));
}

static void
fill(uint8_t *frame, size_t len, uint8_t seed)
{
	size_t i;

	memset(frame, 0xff, ETHER_ADDR_LEN);
	memset(frame + ETHER_ADDR_LEN, 2, ETHER_ADDR_LEN);
	frame[12] = TEST_ETHERTYPE >> 8;
	frame[13] = TEST_ETHERTYPE & 0xff;
	for (i = ETHER_HDR_LEN; i < len; i++)
		frame[i] = seed + i * 7;
}

/*
 * Receive the next frame whose EtherType is `type', and skip those of the host.
 * Returns its length, or 0 if none is pending.
 */
static uint32_t
port_recv(struct frame_port *port, uint8_t *buf, uint16_t type,
    struct frame *frame)
{
	struct iovec iov[FRAME_MAXIOV];
	uint32_t len;
	int i;

	frame->f_iov = iov;
	frame_port_sync(port);
	while (frame_peek(port->fp_source, frame)) {
		for (len = i = 0; i < frame->f_niov; i++) {
			memcpy(buf + len, iov[i].iov_base, iov[i].iov_len);
			len += iov[i].iov_len;
		}
		ATF_REQUIRE_EQ(len, frame->f_len);
		frame_next(port->fp_source);
		if (be16dec(buf + 12) == type)
			return (len);
	}
	return (0);
}

static uint32_t
port_wait(struct frame_port *port, uint8_t *buf, uint16_t type,
    struct frame *frame)
{
	uint32_t len;

	while ((len = port_recv(port, buf, type, frame)) == 0)
		wait_readable(tap_port_fd(port), "no frame");
	return (len);
}

static bool
port_send(struct frame_port *port, struct iovec *iov, int niov)
{
	struct frame frame = { .f_iov = iov };
	size_t len = 0;
	int i;

	for (i = 0; i < niov; i++)
		len += iov[i].iov_len;
	frame_set(&frame, niov, len);
	return (frame_port_send(port, &frame) == 0);
}

/* Frames of `len' bytes in both directions. */
static void
exchange(struct frame_port *port, int s, size_t len)
{
	static uint8_t sent[65536], got[65536];
	struct iovec iov[2] = { { sent, 20 }, { sent + 20, len - 20 } };
	struct frame frame;

	fill(sent, len, len);
	ATF_REQUIRE(port_send(port, iov, nitems(iov)));
	frame_port_flush(port);
	wait_readable(s, "no frame");
	ATF_REQUIRE_EQ((ssize_t)len, recv(s, got, sizeof(got), 0));
	ATF_CHECK_EQ(0, memcmp(sent, got, len));

	fill(sent, len, len + 1);
	memset(got, 0, sizeof(got));
	ATF_REQUIRE_EQ((ssize_t)len, send(s, sent, len, 0));
	ATF_CHECK_EQ(len, port_wait(port, got, TEST_ETHERTYPE, &frame));
	ATF_CHECK_EQ(0, memcmp(sent, got, len));
	ATF_CHECK_EQ(0, frame.f_flags);
}

TEST(frames, "Frames pass both ways, intact and in order; one that is looked "
    "at stays until it is taken")
{
	static uint8_t sent[1000], got[65536];
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct frame_port *port;
	unsigned int i;
	int s;

	private_network();
	port = port_open("tap0", 0);
	s = host_end("tap0");
	ATF_CHECK_EQ(0, port_recv(port, got, TEST_ETHERTYPE, &frame));
	exchange(port, s, 60);
	exchange(port, s, 61);
	exchange(port, s, 1514);
	ATF_CHECK_EQ(0, port_recv(port, got, TEST_ETHERTYPE, &frame));
	fill(sent, sizeof(sent), 1);
	for (i = 10; i > 6; i--)
		ATF_REQUIRE_EQ(i * 100, send(s, sent, i * 100, 0));
	for (i = 10; i > 6; i--)
		ATF_CHECK_EQ(i * 100, port_wait(port, got, TEST_ETHERTYPE,
		    &frame));
	ATF_REQUIRE_EQ(500, send(s, sent, 500, 0));
	frame.f_iov = iov;
	do {
		if (!frame_peek(port->fp_source, &frame))
			wait_readable(tap_port_fd(port), "no frame");
		else if (frame.f_len != 500)
			frame_next(port->fp_source);
	} while (!frame_peek(port->fp_source, &frame) || frame.f_len != 500);
	ATF_CHECK(frame_peek(port->fp_source, &frame));
	ATF_CHECK_EQ(500, frame.f_len);
	ATF_CHECK_EQ(0, memcmp(sent, iov[0].iov_base, 500));
	ATF_CHECK(!tap_port_gone(port));
	tap_port_close(port);
	ATF_CHECK_EQ_MSG(0, if_nametoindex("tap0"), "left behind");
}

TEST(mtu, "The interface gets an MTU, and frames of that size pass")
{
	struct frame_port *port;
	struct ifreq ifr;
	int s;

	private_network();
	port = port_open("tap0", 9000);
	s = host_end("tap0");
	memset(&ifr, 0, sizeof(ifr));
	strlcpy(ifr.ifr_name, "tap0", sizeof(ifr.ifr_name));
	ATF_REQUIRE_EQ(0, ioctl(s, SIOCGIFMTU, &ifr));
	ATF_CHECK_EQ(9000, ifr.ifr_mtu);
	exchange(port, s, 9014);
	tap_port_close(port);
	port_refused("tap0", 65537, "tap0: mtu=65537: Invalid argument");
	ATF_CHECK_EQ_MSG(0, if_nametoindex("tap0"), "left behind");
}

#define	PACKET_LEN	5054		/* of TCP, with headers */
#define	PACKET_MSS	1000

/* A TCP packet, and its virtio-net header. */
static void
make_packet(uint8_t *hdr, uint8_t *packet)
{
	memset(hdr, 0, FRAME_VNET_SHORT);
	hdr[0] = 1;
	hdr[1] = 1;
	le16enc(hdr + 2, 54);
	le16enc(hdr + 4, PACKET_MSS);
	le16enc(hdr + 6, 34);
	le16enc(hdr + 8, 16);
	fill(packet, PACKET_LEN, 3);
	be16enc(packet + 12, ETHERTYPE_IP);
	memset(packet + 14, 0, 40);
	packet[14] = 0x45;
	be16enc(packet + 16, PACKET_LEN - 14);
	packet[22] = 64;
	packet[23] = IPPROTO_TCP;
	packet[46] = 0x50;
}

TEST(offloads, "With offloads a TCP packet of several segments passes uncut, "
    "both ways; without, the host cuts it")
{
	static uint8_t packet[PACKET_LEN], got[65536], seq;
	uint8_t hdr[FRAME_VNET_SHORT];
	struct iovec iov[2] = { { hdr, sizeof(hdr) },
	    { packet, sizeof(packet) } };
	struct iovec piov[2] = { { packet, 100 },
	    { packet + 100, sizeof(packet) - 100 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	struct frame frame = { .f_iov = piov };
	struct frame_port *port;
	int one = 1, s;

	private_network();
	port = port_open("tap0", 0);
	s = host_end_type("tap0", ETHERTYPE_IP);
	ATF_REQUIRE_EQ(0, setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &one,
	    sizeof(one)));
	make_packet(hdr, packet);
	ATF_REQUIRE_EQ((ssize_t)(sizeof(hdr) + PACKET_LEN), sendmsg(s, &msg,
	    0));
	for (seq = 0; seq < 5; seq++) {
		ATF_REQUIRE_EQ(54 + PACKET_MSS, port_wait(port, got,
		    ETHERTYPE_IP, &frame));
		ATF_CHECK_EQ(0, frame.f_flags);
		ATF_CHECK_EQ(seq * PACKET_MSS, be32dec(got + 38));
		ATF_CHECK_EQ(0, memcmp(packet + 54 + seq * PACKET_MSS,
		    got + 54, PACKET_MSS));
	}

	frame_port_set_offloads(port);
	ATF_REQUIRE(port->fp_offloads);
	frame.f_iov = piov;
	frame_set(&frame, 2, PACKET_LEN);
	ATF_REQUIRE(frame_vnet_decode(&frame, hdr));
	ATF_CHECK(frame_port_takes_uncut(port, &frame));
	ATF_REQUIRE_EQ(0, frame_port_send(port, &frame));
	wait_readable(s, "no packet");
	ATF_REQUIRE_EQ((ssize_t)(sizeof(hdr) + PACKET_LEN),
	    recv(s, got, sizeof(got), 0));
	ATF_CHECK_EQ(0, memcmp(hdr, got, 2));
	/* The length of the headers is a hint. */
	ATF_CHECK_EQ(0, memcmp(hdr + 4, got + 4, 6));
	ATF_CHECK_EQ(0, memcmp(packet, got + sizeof(hdr), PACKET_LEN));
	/* Few hosts cut UDP. */
	frame.f_gso_type = FRAME_GSO_UDP_L4;
	ATF_CHECK(!frame_port_takes_uncut(port, &frame));

	ATF_REQUIRE_EQ((ssize_t)(sizeof(hdr) + PACKET_LEN), sendmsg(s, &msg,
	    0));
	ATF_REQUIRE_EQ(PACKET_LEN, port_wait(port, got, ETHERTYPE_IP, &frame));
	ATF_CHECK((frame.f_flags & FRAME_CSUM_PARTIAL) != 0);
	ATF_CHECK_EQ(FRAME_GSO_TCPV4, frame.f_gso_type);
	ATF_CHECK_EQ(PACKET_MSS, frame.f_gso_size);
	ATF_CHECK_EQ(0, memcmp(packet, got, 50));
	ATF_CHECK_EQ(0, memcmp(packet + 54, got + 54, PACKET_LEN - 54));
	close(s);
	tap_port_close(port);
}

TEST(errors, "An interface in use, a name too long, and an interface that is "
    "not a TAP are errors")
{
	struct frame_port *port;

	private_network();
	port = port_open("tap0", 0);
	port_refused("tap0", 0, "tap0: the interface is in use already");
	port_refused("tap0123456789012", 0,
	    "tap0123456789012: interface name too long");
	port_refused("lo", 0, "lo: not a TAP interface");
	tap_port_close(port);
}

/* Run a command of sh(1). */
static void
run(const char *command)
{
	ATF_REQUIRE_MSG(system(command) == 0, "%s", command);
}

TEST_WITH(multi_queue, "require.progs", "ip", "An interface that was created "
    "with several queues is used through one")
{
	struct frame_port *port;
	int s;

	private_network();
	run("ip tuntap add dev tap0 mode tap multi_queue");
	port = port_open("tap0", 0);
	s = host_end("tap0");
	exchange(port, s, 60);
	exchange(port, s, 1514);
	tap_port_close(port);
	/* It may be opened again. */
	port = port_open("tap0", 0);
	tap_port_close(port);
}

TEST_WITH(gone, "require.progs", "ip", "An interface that is deleted is gone "
    "when no frame is left, and sending fails")
{
	static uint8_t got[65536];
	struct frame frame;
	struct iovec iov = { got, 64 };
	struct frame_port *port;

	private_network();
	port = port_open("tap0", 0);
	(void)host_end("tap0");
	while (port_recv(port, got, TEST_ETHERTYPE, &frame) > 0)
		continue;
	ATF_CHECK(!tap_port_gone(port));
	run("ip link del tap0");
	wait_readable(tap_port_fd(port), "no end");
	while (!tap_port_gone(port))
		ATF_CHECK_EQ(0, port_recv(port, got, TEST_ETHERTYPE, &frame));
	fill(got, 64, 1);
	ATF_CHECK(!port_send(port, &iov, 1));
	tap_port_close(port);
}

TEST_PROGRAM
