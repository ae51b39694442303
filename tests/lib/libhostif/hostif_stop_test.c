/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Attached interfaces: frames that a driver drops; a ring that is full, and one
 * that has stopped.
 */

#include <sys/param.h>
#include <sys/ioctl.h>

#include <net/if.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/if_tun.h>

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_pair.h"
#include "hostif_ring.h"
#include "test.h"
#include "wait_until.h"

/* More than a call takes before Linux 6.17. */
#define	LOST	100

/* Skip the test if veth does not say that it dropped a frame: Linux 6.5. */
static void
needs_veth_drops(void)
{
	if (system("[ \"$(printf '6.6\\n%s\\n' $(uname -r) | sort -V | "
	    "head -n 1)\" = 6.6 ]") != 0)
		atf_tc_skip("before Linux 6.6 veth does not tell of frames "
		    "that it drops");
}

ROOT_TEST(xdp_lost, "Frames that the driver drops do not hold up others, and "
    "are counted")
{
	static uint8_t frame[1514];
	uint8_t hdr[FRAME_VNET_LONG];
	uint32_t i;

	use_xdp();
	needs_veth_drops();
	setup();
	/* The driver's transmit function drops what its peer does not take. */
	run("ip link set w0 mtu 1000");
	make_frame(frame, sizeof(frame), 1);
	port_put(NULL, frame, 60);
	for (i = 0; i < LOST; i++)
		port_put(NULL, frame, sizeof(frame));
	port_put(NULL, frame, 61);
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	ATF_REQUIRE_EQ(60, wire_receive(hdr));
	ATF_REQUIRE_EQ(61, wire_receive(hdr));
	wait_until(counter(HOSTIF_C_TX_QUEUE) == LOST, "%ju lost",
	    (uintmax_t)counter(HOSTIF_C_TX_QUEUE));
	ATF_REQUIRE_EQ(0, counter(HOSTIF_C_TX_ERROR));
	ATF_REQUIRE_EQ(0, counter(HOSTIF_C_TX_REFUSED));
	/* Nothing is left in the ring. */
	thread_sleeps();
	/* A frame that is the last one is lost, too. */
	port_put(NULL, frame, sizeof(frame));
	ATF_REQUIRE_EQ(0, vale_txsync(port));
	wait_until(counter(HOSTIF_C_TX_QUEUE) == LOST + 1, "%ju lost",
	    (uintmax_t)counter(HOSTIF_C_TX_QUEUE));
	thread_sleeps();
	ATF_REQUIRE_EQ(LOST + 1, counter(HOSTIF_C_TX_QUEUE));
	hostif_stop(hi);
}

/* Slots of the receive ring of packet(7). */
#define	RX_SLOTS	(HOSTIF_RX_BLOCKS * HOSTIF_BLOCK_SLOTS)

ROOT_TEST(full, "Frames that come while the ring is full are counted, and the "
    "ring has not stopped")
{
	const struct vale_params params = { .rx_slots = 1024 };
	uint8_t frame[60], hdr[FRAME_VNET_LONG];
	struct hostif_fds fds;
	char why[HOSTIF_WHY];
	uint32_t i;

	make_pair();
	open_wire();
	port = vale_open("vale0:t", &params);
	ATF_REQUIRE(port != NULL);
	ATF_REQUIRE_MSG(hostif_open("h0", HOSTIF_PACKET, &fds, why) == 0,
	    "%s", why);
	for (i = 0; i < RX_SLOTS + 100; i++) {
		make_frame(frame, sizeof(frame), i);
		wire_send(NULL, frame, sizeof(frame));
	}
	/* They are lost when the other processor has seen them. */
	run("until [ $(cat /proc/net/dev | "
	    "awk '$1 == \"h0:\" { print $3 }') -ge %d ]; do sleep 0.01; done",
	    RX_SLOTS + 100);
	hi = hostif_start("vale0:h0", &fds, why);
	ATF_REQUIRE_MSG(hi != NULL, "%s", why);
	for (i = 0; i < RX_SLOTS; i++) {
		ATF_REQUIRE_EQ(60, port_receive(hdr));
		ATF_REQUIRE_EQ(i, frame_number(buf));
	}
	wait_until(counter(HOSTIF_C_RX_FULL) == 100, "%ju lost",
	    (uintmax_t)counter(HOSTIF_C_RX_FULL));
	/* Two ticks later it is still the same ring. */
	usleep(2 * 250000);
	make_frame(frame, sizeof(frame), i);
	wire_send(NULL, frame, sizeof(frame));
	ATF_REQUIRE_EQ(60, port_receive(hdr));
	ATF_REQUIRE_EQ(i, frame_number(buf));
	nothing_in_port();
	ATF_REQUIRE_EQ(0, counter(HOSTIF_C_RX_STOP));
	ATF_REQUIRE_EQ(100, counter(HOSTIF_C_RX_FULL));
	hostif_stop(hi);
}

/* A TAP interface named h0.  Returns its other end. */
static int
make_tap(void)
{
	struct ifreq ifr = {
		.ifr_name = "h0",
		.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
	};
	int fd;

	if (unshare(CLONE_NEWNET) == -1)
		atf_tc_skip("no network namespace: %s", strerror(errno));
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (fd == -1 || ioctl(fd, TUNSETIFF, &ifr) == -1)
		atf_tc_skip("no TAP interfaces: %s", strerror(errno));
	run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
	run("ip link set h0 up");
	return (fd);
}

/* The host receives a frame there. */
static void
tap_write(int fd, const uint8_t *hdr, const uint8_t *p, uint32_t len)
{
	uint8_t all[BUFSIZE] = { 0 };

	if (hdr != NULL)
		memcpy(all, hdr, FRAME_VNET_SHORT);
	memcpy(all + FRAME_VNET_SHORT, p, len);
	ATF_REQUIRE_EQ((ssize_t)(FRAME_VNET_SHORT + len), write(fd, all,
	    FRAME_VNET_SHORT + len));
}

/*
 * A packet of UDP to be sent in fragments, which the kernel takes from a TAP
 * and for which it makes no virtio-net header.
 */
static void
tap_stop(int fd)
{
	static uint8_t packet[4000];
	uint8_t hdr[FRAME_VNET_LONG];

	make_packet(packet, hdr, sizeof(packet), FRAME_GSO_UDP_L4, 1480);
	hdr[1] = 3;			/* VIRTIO_NET_HDR_GSO_UDP */
	tap_write(fd, hdr, packet, sizeof(packet));
}

/* A frame with this number passes. */
static bool
tap_passes(int fd, uint32_t number)
{
	uint8_t frame[60], hdr[FRAME_VNET_LONG];

	make_frame(frame, sizeof(frame), number);
	tap_write(fd, NULL, frame, sizeof(frame));
	vale_rxsync(port);
	if (nm_ring_empty(port->rxring))
		return (false);
	while (port_receive(hdr) != 60 || frame_number(buf) != number) {
		vale_rxsync(port);
		if (nm_ring_empty(port->rxring))
			return (false);
	}
	return (true);
}

ROOT_TEST(stop, "A receive ring that the kernel has stopped is opened again, "
    "and frames pass both ways")
{
	uint8_t frame[60];
	uint32_t i;
	int fd;

	fd = make_tap();
	attach();
	port = vale_open("vale0:t", NULL);
	ATF_REQUIRE(port != NULL);
	wait_until(tap_passes(fd, 1), "no frame");
	ATF_REQUIRE_EQ(0, counter(HOSTIF_C_RX_STOP));
	for (i = 1; i <= 3; i++) {
		tap_stop(fd);
		wait_until(tap_passes(fd, 10 + i), "no frame");
		if (counter(HOSTIF_C_RX_STOP) == 0)
			atf_tc_skip("this kernel's ring does not stop");
		ATF_REQUIRE_EQ(i, counter(HOSTIF_C_RX_STOP));
	}
	/* The dropped ones are counted. */
	ATF_REQUIRE(counter(HOSTIF_C_RX_FULL) >= 3);
	/* The transmit ring is as before. */
	for (i = 0; i < 2 * HOSTIF_TX_BLOCKS * HOSTIF_BLOCK_SLOTS; i++) {
		make_frame(frame, sizeof(frame), i);
		port_put(NULL, frame, sizeof(frame));
		ATF_REQUIRE_EQ(0, vale_txsync(port));
		wait_readable(fd, "frame");
		ATF_REQUIRE_EQ(FRAME_VNET_SHORT + 60, read(fd, buf, BUFSIZE));
		ATF_REQUIRE_EQ(i, frame_number(buf + FRAME_VNET_SHORT));
	}
	thread_sleeps();
	hostif_stop(hi);
}

TEST_PROGRAM
