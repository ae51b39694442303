/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Attached interfaces.  Most tests run for each kind.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_pair.h"
#include "test.h"
#include "wait_until.h"

#define	FRAMES	500			/* of a port's ring of 1024 */

/* A test case for each kind. */
#define	EACH_KIND(name, descr)						\
	static void name##_run(void);					\
	ROOT_TEST(name, descr)						\
	{								\
		name##_run();						\
	}								\
	ROOT_TEST(xdp_##name, descr ", through AF_XDP")			\
	{								\
		use_xdp();						\
		name##_run();						\
	}								\
	static void							\
	name##_run(void)

EACH_KIND(both_ways, "Every frame passes once, in order, in both directions")
{
	static uint8_t frames[FRAMES][60];
	uint8_t hdr[FRAME_VNET_LONG];
	uint32_t i;

	setup();
	for (i = 0; i < FRAMES; i++) {
		make_frame(frames[i], sizeof(frames[i]), i);
		wire_send(NULL, frames[i], sizeof(frames[i]));
	}
	for (i = 0; i < FRAMES; i++) {
		ATF_REQUIRE_EQ(60, port_receive(hdr));
		ATF_REQUIRE_EQ(i, frame_number(buf));
	}
	nothing_in_port();
	/* The thread counts after the port has got the frames. */
	wait_until(counter(HOSTIF_C_RX_FRAME) == FRAMES, "%ju frames",
	    (uintmax_t)counter(HOSTIF_C_RX_FRAME));
	wait_until(counter(HOSTIF_C_RX_BYTE) == FRAMES * 60, "%ju bytes",
	    (uintmax_t)counter(HOSTIF_C_RX_BYTE));

	for (i = 0; i < FRAMES; i++)
		port_put(NULL, frames[i], sizeof(frames[i]));
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	for (i = 0; i < FRAMES; i++) {
		ATF_REQUIRE_EQ(60, wire_receive(hdr));
		ATF_REQUIRE_EQ(i, frame_number(buf));
	}
	ATF_REQUIRE_EQ(FRAMES, counter(HOSTIF_C_TX_FRAME));
	ATF_REQUIRE_EQ(FRAMES * 60, counter(HOSTIF_C_TX_BYTE));
	/* One call for a batch; the switch makes few of one sync.  AF_XDP sends
	   32 frames in a call before Linux 6.17. */
	ATF_REQUIRE(counter(HOSTIF_C_TX_CALL) * 20 <= FRAMES);
	ATF_REQUIRE(kind == HOSTIF_XDP ||
	    counter(HOSTIF_C_TX_CALL) <= counter(HOSTIF_C_TX_BATCH));
	ATF_REQUIRE_EQ(0, counter(HOSTIF_C_TX_ERROR));
	/* The wire's own frames, and the port's, did not come back. */
	nothing_in_port();
	hostif_stop(hi);
}

ROOT_TEST(segments, "Packets of several segments pass uncut, both ways")
{
	static uint8_t packet[64000];
	uint8_t hdr[FRAME_VNET_LONG], out[FRAME_VNET_LONG];
	struct frame frame = { .f_len = sizeof(packet) };

	setup();
	ATF_REQUIRE_EQ(0, vale_set_header(port, VALE_HEADER_FRAME));
	make_packet(packet, hdr, sizeof(packet), FRAME_GSO_TCPV4, 1400);
	wire_send(hdr, packet, sizeof(packet));
	ATF_REQUIRE_EQ(sizeof(packet), port_receive(out));
	ATF_REQUIRE(frame_vnet_decode(&frame, out));
	ATF_REQUIRE_EQ(FRAME_GSO_TCPV4, frame.f_gso_type);
	ATF_REQUIRE_EQ(1400, frame.f_gso_size);
	ATF_REQUIRE_EQ(L4, frame.f_csum_start);
	ATF_REQUIRE_EQ(0, memcmp(packet, buf, sizeof(packet)));

	port_put(hdr, packet, sizeof(packet));
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	ATF_REQUIRE_EQ(sizeof(packet), wire_receive(out));
	ATF_REQUIRE(frame_vnet_decode(&frame, out));
	ATF_REQUIRE_EQ(FRAME_GSO_TCPV4, frame.f_gso_type);
	ATF_REQUIRE_EQ(1400, frame.f_gso_size);
	ATF_REQUIRE_EQ(0, memcmp(packet, buf, sizeof(packet)));
	ATF_REQUIRE_EQ(1, counter(HOSTIF_C_TX_FRAME));
	hostif_stop(hi);
}

ROOT_TEST(checksum, "A partial checksum is completed for a port without "
    "headers, also behind a VLAN tag")
{
	uint8_t packet[200 + 4], hdr[FRAME_VNET_LONG], out[FRAME_VNET_LONG];
	struct frame frame = { .f_len = sizeof(packet) };

	setup();
	make_packet(packet, hdr, 200, FRAME_GSO_NONE, 0);
	pseudo_sum(packet, 200, L4 + 16);
	ATF_REQUIRE(packet_sum(packet, 200) != 0);
	wire_send(hdr, packet, 200);
	ATF_REQUIRE_EQ(200, port_receive(out));
	ATF_REQUIRE_EQ(0, packet_sum(buf, 200));

	/* The same with a tag, which the kernel takes out. */
	ATF_REQUIRE(frame_vnet_decode(&frame, hdr));
	frame.f_csum_start += 4;
	frame_vnet_encode(&frame, hdr, sizeof(hdr));
	memmove(packet + 16, packet + 12, 188);
	memcpy(packet + 12, "\x81\x00\x60\x07", 4);
	wire_send(hdr, packet, 204);
	ATF_REQUIRE_EQ(204, port_receive(out));
	ATF_REQUIRE_EQ(0, memcmp(packet, buf, 18));
	memmove(buf + 12, buf + 16, 188);
	ATF_REQUIRE_EQ(0, packet_sum(buf, 200));
	hostif_stop(hi);
}

EACH_KIND(tags, "VLAN tags of both kinds pass both ways")
{
	static const uint8_t tag[2][4] = {
		{ 0x81, 0x00, 0x6f, 0xfe }, { 0x88, 0xa8, 0x00, 0x05 }
	};
	uint8_t frame[64], hdr[FRAME_VNET_LONG];
	int i;

	setup();
	for (i = 0; i < 2; i++) {
		make_frame(frame, sizeof(frame), i);
		memcpy(frame + 12, tag[i], 4);
		wire_send(NULL, frame, sizeof(frame));
		ATF_REQUIRE_EQ(sizeof(frame), port_receive(hdr));
		ATF_REQUIRE_EQ(0, memcmp(frame, buf, sizeof(frame)));
		port_put(NULL, frame, sizeof(frame));
		vale_txsync(port);
		/* The wire's socket shows the frame without it. */
		ATF_REQUIRE_EQ(sizeof(frame) - 4, wire_receive(hdr));
		ATF_REQUIRE_EQ(0, memcmp(frame + 16, buf + 12, 48));
	}
	hostif_stop(hi);
}

EACH_KIND(udp_segments, "Segments of UDP are cut for the interface")
{
	static uint8_t packet[UDP_HDR + 5000];
	uint8_t hdr[FRAME_VNET_LONG];
	uint32_t i, len, total = 0;

	setup();
	ATF_REQUIRE_EQ(0, vale_set_header(port, VALE_HEADER_FRAME));
	make_packet(packet, hdr, sizeof(packet), FRAME_GSO_UDP_L4, 1200);
	pseudo_sum(packet, sizeof(packet), L4 + 6);
	port_put(hdr, packet, sizeof(packet));
	vale_txsync(port);
	for (i = 0; i < 5; i++) {
		len = wire_receive(hdr);
		ATF_REQUIRE_EQ(UDP_HDR + (i < 4 ? 1200 : 200), len);
		ATF_REQUIRE_EQ(0, packet_sum(buf, len));
		total += len - UDP_HDR;
	}
	ATF_REQUIRE_EQ(5000, total);
	ATF_REQUIRE_EQ(5, counter(HOSTIF_C_TX_FRAME));
	hostif_stop(hi);
}

ROOT_TEST(mtu, "Frames longer than the MTU are dropped; a new MTU counts")
{
	static uint8_t frame[9000 + 14];
	uint8_t hdr[FRAME_VNET_LONG];

	setup();
	/* The state at the start is known when a frame has passed. */
	run("ip link set h0 mtu 1400 && ip link set w0 mtu 9000");
	wait_until(counter(HOSTIF_C_LINK) == 1, "no change");
	make_frame(frame, sizeof(frame), 1);
	port_put(NULL, frame, 1414);
	port_put(NULL, frame, 1415);
	port_put(NULL, frame, sizeof(frame));
	vale_txsync(port);
	ATF_REQUIRE_EQ(1414, wire_receive(hdr));
	wait_until(counter(HOSTIF_C_TX_MTU) == 2, "%ju dropped",
	    (uintmax_t)counter(HOSTIF_C_TX_MTU));
	run("ip link set h0 mtu 9000");
	wait_until(counter(HOSTIF_C_LINK) == 2, "no change");
	port_put(NULL, frame, sizeof(frame));
	vale_txsync(port);
	ATF_REQUIRE_EQ(sizeof(frame), wire_receive(hdr));
	wire_send(NULL, frame, sizeof(frame));
	ATF_REQUIRE_EQ(sizeof(frame), port_receive(hdr));
	ATF_REQUIRE_EQ(0, memcmp(frame, buf, sizeof(frame)));
	hostif_stop(hi);
}

EACH_KIND(down, "An interface that goes down drops frames until it is up")
{
	uint8_t frame[60], hdr[FRAME_VNET_LONG];

	setup();
	make_frame(frame, sizeof(frame), 1);
	run("ip link set h0 down");
	wait_until(counter(HOSTIF_C_LINK) == 1, "no change");
	port_put(NULL, frame, sizeof(frame));
	vale_txsync(port);
	wait_until(counter(HOSTIF_C_TX_DOWN) == 1, "not dropped");
	thread_sleeps();
	run("ip link set h0 up");
	wait_until(counter(HOSTIF_C_LINK) == 2, "no change");
	/* The other end sends again some time after. */
	run("until ip link show w0 | grep -q 'state UP'; do sleep 0.01; done");
	make_frame(frame, sizeof(frame), 2);
	port_put(NULL, frame, sizeof(frame));
	vale_txsync(port);
	ATF_REQUIRE_EQ(60, wire_receive(hdr));
	ATF_REQUIRE_EQ(2, frame_number(buf));
	wire_send(NULL, frame, sizeof(frame));
	ATF_REQUIRE_EQ(60, port_receive(hdr));
	hostif_stop(hi);
}

/* Whether the host answers an ARP request for h0's address from the wire. */
static bool
host_answers(void)
{
	static const uint8_t request[] =
	    "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x08\x06"
	    "\0\x01\x08\0\x06\x04\0\x01\x02\0\0\0\0\x01\x0a\0\0\x02"
	    "\0\0\0\0\0\0\x0a\0\0\x01";
	struct pollfd pfd = { .fd = wire, .events = POLLIN };
	uint8_t hdr[FRAME_VNET_LONG];

	wire_send(NULL, request, sizeof(request) - 1);
	if (poll(&pfd, 1, 0) == 0)
		return (false);
	(void)wire_receive(hdr);
	return (buf[12] == 0x08 && buf[13] == 0x06 && buf[21] == 2);
}

/* The host answers before and after, and not while it is attached. */
static void
host_excluded(void)
{
	uint8_t hdr[FRAME_VNET_LONG];

	make_pair();
	run("ip addr add 10.0.0.1/24 dev h0");
	open_wire();
	wait_until(host_answers(), "no answer");
	attach();
	port = vale_open("vale0:t", NULL);
	ATF_REQUIRE(port != NULL);
	/* The answer is made before send(2) of the request returns, or, with
	   a busy processor, before the port has got a later one. */
	(void)host_answers();
	ATF_REQUIRE_EQ(42, port_receive(hdr));
	while (recv(wire, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		continue;
	ATF_REQUIRE(!host_answers());
	ATF_REQUIRE_EQ(42, port_receive(hdr));
	ATF_REQUIRE(!host_answers());
	hostif_stop(hi);
	wait_until(host_answers(), "no answer");
}

EACH_KIND(host, "The host's stack gets no frames while it is attached")
{
	host_excluded();
}

ROOT_TEST(host_nft, "On a kernel without tcx, nf_tables keeps the frames from "
    "the host's stack")
{
	no_bpf = true;
	host_excluded();
}

ROOT_TEST(errors, "What cannot be opened or started is one line, and leaves "
    "nothing open")
{
	struct hostif_fds fds, wrong;
	char why[HOSTIF_WHY];
	int before, after;

	make_pair();
	before = dup(0);
	close(before);
	ATF_REQUIRE_EQ(-1, hostif_open("none", HOSTIF_PACKET, &fds, why));
	ATF_REQUIRE_STREQ("none: no such interface", why);
	ATF_REQUIRE_EQ(-1, hostif_open("lo", HOSTIF_PACKET, &fds, why));
	ATF_REQUIRE_STREQ("lo: not an Ethernet interface", why);
	ATF_REQUIRE_EQ(-1, hostif_open("a-name-too-long-for-one", HOSTIF_PACKET,
	    &fds, why));
	ATF_REQUIRE_EQ(0, hostif_open("h0", HOSTIF_PACKET, &fds, why));
	/* A socket that has no rings. */
	wrong = fds;
	wrong.hf_fd[1] = fds.hf_fd[0];
	ATF_REQUIRE(hostif_start("vale0:h0", &wrong, why) ==
	    NULL);
	ATF_REQUIRE(strstr(why, "rings") != NULL);
	/* A file that can be mapped in their place. */
	wrong.hf_fd[1] = memfd_create("rings", 0);
	ATF_REQUIRE_EQ(0, ftruncate(wrong.hf_fd[1], 64 << 20));
	ATF_REQUIRE(hostif_start("vale0:h0", &wrong, why) ==
	    NULL);
	ATF_REQUIRE_STREQ("vale0:h0: rings: Socket operation on non-socket",
	    why);
	close(wrong.hf_fd[1]);
	wrong.hf_nfds = HOSTIF_FDS_MAX + 1;
	ATF_REQUIRE(hostif_start("vale0:h0", &wrong, why) ==
	    NULL);
	port = vale_open("vale0:h0", NULL);
	ATF_REQUIRE(hostif_start("vale0:h0", &fds, why) ==
	    NULL);
	ATF_REQUIRE(strstr(why, "port") != NULL);
	vale_close(port);
	hostif_close(&fds);
	after = dup(0);
	ATF_REQUIRE_EQ(before, after);
	/* The thread was given back each time. */
	attach();
	hostif_stop(hi);
}

ROOT_TEST(xdp_cut, "For AF_XDP the switch cuts packets and completes their "
    "checksums")
{
	static uint8_t packet[TCP_HDR + 10000];
	uint8_t hdr[FRAME_VNET_LONG], out[FRAME_VNET_LONG];
	struct frame frame;
	uint32_t i, len;

	use_xdp();
	setup();
	ATF_REQUIRE_EQ(0, vale_set_header(port, VALE_HEADER_FRAME));
	make_packet(packet, hdr, sizeof(packet), FRAME_GSO_TCPV4, 1000);
	pseudo_sum(packet, sizeof(packet), L4 + 16);
	port_put(hdr, packet, sizeof(packet));
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	for (i = 0; i < 10; i++) {
		len = wire_receive(out);
		ATF_REQUIRE_EQ(TCP_HDR + 1000, len);
		frame.f_len = len;
		ATF_REQUIRE(frame_vnet_decode(&frame, out));
		ATF_REQUIRE_EQ(0, frame.f_flags & FRAME_CSUM_PARTIAL);
		ATF_REQUIRE_EQ(0, packet_sum(buf, len));
	}
	ATF_REQUIRE_EQ(10, counter(HOSTIF_C_TX_FRAME));
	hostif_stop(hi);
}

ROOT_TEST(xdp_wrap, "Each chunk is used again: many times the rings' slots "
    "pass both ways")
{
	static uint8_t frame[1514];
	uint8_t hdr[FRAME_VNET_LONG];
	uint32_t i, n;

	use_xdp();
	setup();
	for (i = 0; i < 20000; i += FRAMES) {
		for (n = 0; n < FRAMES; n++) {
			make_frame(frame, 60 + n, i + n);
			wire_send(NULL, frame, 60 + n);
		}
		for (n = 0; n < FRAMES; n++) {
			ATF_REQUIRE_EQ(60 + n, port_receive(hdr));
			ATF_REQUIRE_EQ(i + n, frame_number(buf));
			ATF_REQUIRE_EQ('x', buf[60 + n - 1]);
		}
		for (n = 0; n < FRAMES; n++) {
			make_frame(frame, sizeof(frame), i + n);
			port_put(NULL, frame, sizeof(frame));
			ATF_REQUIRE_EQ(0, vale_txsync(port));
		}
		for (n = 0; n < FRAMES; n++) {
			ATF_REQUIRE_EQ(sizeof(frame), wire_receive(hdr));
			ATF_REQUIRE_EQ(i + n, frame_number(buf));
		}
	}
	nothing_in_port();
	hostif_stop(hi);
}

ROOT_TEST(xdp_queues, "Frames of all queues arrive")
{
	uint8_t hdr[FRAME_VNET_LONG], packet[100];
	bool seen[200] = { false };
	uint32_t i;

	use_xdp();
	pair = "ip link add h0 numrxqueues 4 numtxqueues 4 type veth "
	    "peer name w0 numrxqueues 4 numtxqueues 4";
	setup();
	make_packet(packet, hdr, sizeof(packet), FRAME_GSO_UDP_L4, 0);
	/* The wire's end takes a queue by what UDP says. */
	for (i = 0; i < nitems(seen); i++) {
		packet[L4 + 1] = (uint8_t)i;
		wire_send(NULL, packet, sizeof(packet));
	}
	for (i = 0; i < nitems(seen); i++) {
		ATF_REQUIRE_EQ(sizeof(packet), port_receive(hdr));
		ATF_REQUIRE(buf[L4 + 1] < nitems(seen));
		ATF_REQUIRE(!seen[buf[L4 + 1]]);
		seen[buf[L4 + 1]] = true;
	}
	wait_until(counter(HOSTIF_C_RX_FRAME) == nitems(seen), "%ju frames",
	    (uintmax_t)counter(HOSTIF_C_RX_FRAME));
	hostif_stop(hi);
}

ROOT_TEST(xdp_mtu, "Frames up to a new MTU pass, and are dropped if they are "
    "longer than a chunk")
{
	static uint8_t frame[9000 + 14];
	const uint32_t len = 3000 + 14;
	uint8_t hdr[FRAME_VNET_LONG];

	use_xdp();
	setup();
	run("ip link set h0 mtu 3000 && ip link set w0 mtu 3000");
	wait_until(counter(HOSTIF_C_LINK) == 1, "no change");
	make_frame(frame, sizeof(frame), 1);
	/* In two slots, as it is in the port. */
	port_put(NULL, frame, 2000);
	port_put(NULL, frame + 2000, len - 2000);
	port->txring->slot[0].flags |= NS_MOREFRAG;
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	ATF_REQUIRE_EQ(len, wire_receive(hdr));
	ATF_REQUIRE_EQ(0, memcmp(frame, buf, len));
	wire_send(NULL, frame, len);
	ATF_REQUIRE_EQ(len, port_receive(hdr));
	ATF_REQUIRE_EQ(0, memcmp(frame, buf, len));

	/* The kernel keeps the other end from sending so much. */
	run("! ip link set w0 mtu 9000 2> /dev/null");
	run("ip link set h0 mtu 9000");
	wait_until(counter(HOSTIF_C_LINK) == 2, "no change");
	port_put(NULL, frame, sizeof(frame));
	port_put(NULL, frame, 60);
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	ATF_REQUIRE_EQ(60, wire_receive(hdr));
	ATF_REQUIRE_EQ(1, counter(HOSTIF_C_TX_MTU));
	hostif_stop(hi);
	run("ip link set w0 mtu 9000");
}

ROOT_TEST(xdp_losses, "Frames that come while the kernel has no chunks are "
    "counted")
{
	uint8_t frame[60], hdr[FRAME_VNET_LONG];
	struct hostif_fds fds;
	char why[HOSTIF_WHY];
	int i;

	use_xdp();
	make_pair();
	open_wire();
	port = vale_open("vale0:t", NULL);
	ATF_REQUIRE(port != NULL);
	ATF_REQUIRE_MSG(hostif_open("h0", HOSTIF_XDP, &fds, why) == 0,
	    "%s", why);
	make_frame(frame, sizeof(frame), 1);
	for (i = 0; i < 100; i++)
		wire_send(NULL, frame, sizeof(frame));
	/* They are lost when the other processor has seen them. */
	run("until [ $(cat /proc/net/dev | "
	    "awk '$1 == \"h0:\" { print $3 }') -ge 100 ]; do sleep 0.01; done");
	hi = hostif_start("vale0:h0", &fds, why);
	ATF_REQUIRE_MSG(hi != NULL, "%s", why);
	make_frame(frame, sizeof(frame), 2);
	wire_send(NULL, frame, sizeof(frame));
	ATF_REQUIRE_EQ(60, port_receive(hdr));
	ATF_REQUIRE_EQ(2, frame_number(buf));
	wait_until(counter(HOSTIF_C_RX_FULL) == 100, "%ju lost",
	    (uintmax_t)counter(HOSTIF_C_RX_FULL));
	hostif_stop(hi);
}

/* hostif_open() fails with this line. */
static void
refused(const char *expected)
{
	struct hostif_fds fds;
	char why[HOSTIF_WHY];

	ATF_REQUIRE_EQ(-1, hostif_open("h0", HOSTIF_XDP, &fds, why));
	ATF_REQUIRE_STREQ(expected, why);
	ATF_REQUIRE_EQ(0, fds.hf_nfds);
}

ROOT_TEST(xdp_errors, "What AF_XDP cannot do is one line, and leaves nothing "
    "open")
{
	struct hostif_fds fds, wrong;
	char why[HOSTIF_WHY];
	int before, i;

	use_xdp();
	make_pair();
	before = dup(0);
	close(before);
	run("ip link set h0 mtu 3823");
	refused("h0: the MTU is 3823, and at most 3822 with kind=xdp");
	/* The driver's own limit, which is for what the other end sends. */
	run("ip link set h0 mtu 3822 && ip link set w0 mtu 3822");
	refused("h0: cannot attach an XDP program: Numerical result out of "
	    "range");
	run("ip link set h0 mtu 1500 && ip link set w0 mtu 1500");
	set_feature("rx-vlan-hw-parse", true);
	refused("h0: VLAN tags would be lost with kind=xdp: ethtool -K h0 "
	    "rxvlan off");
	set_feature("rx-vlan-hw-parse", false);
	run("ip link add q0 numrxqueues 13 numtxqueues 13 type veth peer name "
	    "q1 numrxqueues 13 numtxqueues 13");
	ATF_REQUIRE_EQ(-1, hostif_open("q0", HOSTIF_XDP, &fds, why));
	ATF_REQUIRE_STREQ("q0: 13 receive queues, and at most 12 with "
	    "kind=xdp: see ethtool -L", why);
	no_bpf = true;
	refused("h0: map of sockets: Invalid argument");
	no_bpf = false;
	attach();
	refused("h0: cannot attach an XDP program: Device or resource busy");
	hostif_stop(hi);

	/* A client that passes what it should not. */
	ATF_REQUIRE_EQ(0, hostif_open("h0", HOSTIF_XDP, &fds, why));
	wrong = fds;
	wrong.hf_fd[4] = memfd_create("small", MFD_ALLOW_SEALING);
	ATF_REQUIRE_EQ(0, ftruncate(wrong.hf_fd[4], 4096));
	ATF_REQUIRE(hostif_start("vale0:h0", &wrong, why) ==
	    NULL);
	ATF_REQUIRE_STREQ("vale0:h0: memory: Operation not permitted", why);
	ATF_REQUIRE_EQ(0, fcntl(wrong.hf_fd[4], F_ADD_SEALS, F_SEAL_SHRINK));
	ATF_REQUIRE(hostif_start("vale0:h0", &wrong, why) ==
	    NULL);
	ATF_REQUIRE_STREQ("vale0:h0: memory: Invalid argument", why);
	close(wrong.hf_fd[4]);
	for (i = 0; i < 5; i++) {
		wrong = fds;
		wrong.hf_fd[5] = fds.hf_fd[i];
		ATF_REQUIRE(hostif_start("vale0:h0", &wrong, why) == NULL);
		ATF_REQUIRE(strstr(why, "vale0:h0: rings: ") != NULL);
	}
	wrong = fds;
	wrong.hf_nfds = 5;
	ATF_REQUIRE(hostif_start("vale0:h0", &wrong, why) ==
	    NULL);
	ATF_REQUIRE_STREQ("vale0:h0: not an open interface", why);
	hostif_close(&fds);
	i = dup(0);
	ATF_REQUIRE_EQ(before, i);
	attach();
	hostif_stop(hi);
}

TEST_PROGRAM
