/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An attached interface, and both sides of it: hostif_pair.h.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/systm.h>
#include <sys/syscall.h>

#include <net/if.h>
#include <netinet/in.h>

#include <errno.h>

#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>

#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "frame_vnet.h"
#include "hostif_impl.h"
#include "hostif_pair.h"
#include "wait_until.h"
#include "wrap.h"

struct hostif		*hi;
struct vale_desc	*port;
int			 wire = -1;
enum hostif_kind	 kind = HOSTIF_PACKET;
const char		*pair = "ip link add h0 type veth peer name w0";
bool			 no_bpf;
int			 send_error;
unsigned int		 send_failures;
uint8_t			 buf[BUFSIZE];

WRAP(long, syscall, long number, long a, long b, long c)
{
	if (number == SYS_bpf && no_bpf) {
		errno = EINVAL;
		return (-1);
	}
	return (__real_syscall(number, a, b, c));
}

/* rtnetlink(7) is sent a request, the rings are sent nothing. */
WRAP(ssize_t, sendto, int fd, const void *p, size_t len, int flags,
    const struct sockaddr *to, socklen_t tolen)
{
	const unsigned int n = atomic_load_32(&send_failures);

	if (len == 0 && n > 0) {
		atomic_store_32(&send_failures, n - 1);
		errno = send_error;
		return (-1);
	}
	return (__real_sendto(fd, p, len, flags, to, tolen));
}

void
run(const char *fmt, ...)
{
	char command[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	ATF_REQUIRE_MSG(system(command) == 0, "%s", command);
}

#define	FEATURES	256		/* more than any kernel has */

static void
ethtool(void *value)
{
	struct ifreq ifr = { .ifr_name = "h0" };
	int s;

	ifr.ifr_data = value;
	s = socket(AF_INET, SOCK_DGRAM, 0);
	ATF_REQUIRE(s != -1);
	ATF_REQUIRE_EQ(0, ioctl(s, SIOCETHTOOL, &ifr));
	close(s);
}

void
set_feature(const char *name, bool on)
{
	struct ethtool_gstrings *names;
	struct ethtool_sfeatures *set;
	uint32_t i, n;

	names = calloc(1, sizeof(*names) + FEATURES * ETH_GSTRING_LEN);
	set = calloc(1, sizeof(*set) + FEATURES * sizeof(set->features[0]));
	ATF_REQUIRE(names != NULL && set != NULL);
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_FEATURES;
	ethtool(names);
	n = names->len;
	ATF_REQUIRE(n <= FEATURES);
	for (i = 0; i < n; i++)
		if (strcmp((char *)names->data + i * ETH_GSTRING_LEN,
		    name) == 0)
			break;
	ATF_REQUIRE_MSG(i < n, "no feature %s", name);
	set->cmd = ETHTOOL_SFEATURES;
	set->size = howmany(n, 32);
	set->features[i / 32].valid = 1U << i % 32;
	set->features[i / 32].requested = on ? 1U << i % 32 : 0;
	ethtool(set);
	free(names);
	free(set);
}

void
set_queues(uint32_t n)
{
	struct ethtool_channels channels = {
		.cmd = ETHTOOL_SCHANNELS, .rx_count = n, .tx_count = n
	};

	ethtool(&channels);
}

void
use_xdp(void)
{
	int s;

	s = socket(AF_XDP, SOCK_RAW, 0);
	if (s == -1)
		atf_tc_skip("no AF_XDP: %s", strerror(errno));
	close(s);
	kind = HOSTIF_XDP;
}

void
make_pair(void)
{
	if (unshare(CLONE_NEWNET) == -1)
		atf_tc_skip("no network namespace: %s", strerror(errno));
	if (system(pair) != 0)
		atf_tc_skip("ip(8) or veth(4) is missing");
	run("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
	run("ip link set h0 up && ip link set w0 up");
	run("until ip link show h0 | grep -q 'state UP'; do sleep 0.01; done");
	if (kind == HOSTIF_XDP) {
		set_feature("rx-vlan-hw-parse", false);
		set_feature("rx-vlan-stag-hw-parse", false);
	}
}

void
open_wire(void)
{
	struct sockaddr_ll sll = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)
	};
	const int one = 1, space = 8 << 20;

	wire = socket(AF_PACKET, SOCK_RAW, 0);
	ATF_REQUIRE(wire != -1);
	ATF_REQUIRE_EQ(0, setsockopt(wire, SOL_PACKET, PACKET_VNET_HDR, &one,
	    sizeof(one)));
	ATF_REQUIRE_EQ(0, setsockopt(wire, SOL_PACKET, PACKET_IGNORE_OUTGOING,
	    &one, sizeof(one)));
	/* For all frames of a test. */
	ATF_REQUIRE_EQ(0, setsockopt(wire, SOL_SOCKET, SO_RCVBUFFORCE, &space,
	    sizeof(space)));
	sll.sll_ifindex = if_nametoindex("w0");
	ATF_REQUIRE_EQ(0, bind(wire, (struct sockaddr *)&sll, sizeof(sll)));
}

void
attach(void)
{
	struct hostif_fds fds;
	char why[HOSTIF_WHY];

	ATF_REQUIRE_MSG(hostif_open("h0", kind, &fds, why) == 0, "%s", why);
	ATF_REQUIRE_EQ(0, fds.hf_flags);
	hi = hostif_start("vale0:h0", &fds, why);
	ATF_REQUIRE_MSG(hi != NULL, "%s", why);
	ATF_REQUIRE_STREQ("vale0:h0", hostif_port_name(hi));
	ATF_REQUIRE_STREQ("h0", hostif_name(hi));
}

void
setup(void)
{
	make_pair();
	attach();
	open_wire();
	port = vale_open("vale0:t", NULL);
	ATF_REQUIRE(port != NULL);
}

uint64_t
counter(enum hostif_counter c)
{
	return (hostif_counter(hi, c));
}

void
make_frame(uint8_t *p, uint32_t len, uint32_t number)
{
	memset(p, 0xff, 6);
	memcpy(p + 6, "\x02\x00\x00\x00\x00\x01\x88\xb5", 8);
	memset(p + 14, 'x', len - 14);
	memcpy(p + 14, &number, sizeof(number));
}

uint32_t
frame_number(const uint8_t *p)
{
	uint32_t number;

	memcpy(&number, p + 14, sizeof(number));
	return (number);
}

void
wire_send(const uint8_t *hdr, const uint8_t *p, size_t len)
{
	uint8_t all[BUFSIZE] = { 0 };

	if (hdr != NULL)
		memcpy(all, hdr, FRAME_VNET_SHORT);
	memcpy(all + FRAME_VNET_SHORT, p, len);
	ATF_REQUIRE_EQ((ssize_t)(FRAME_VNET_SHORT + len), send(wire, all,
	    FRAME_VNET_SHORT + len, 0));
}

uint32_t
wire_receive(uint8_t *hdr)
{
	uint8_t all[BUFSIZE];
	ssize_t len;

	wait_readable(wire, "frame on the wire");
	len = recv(wire, all, sizeof(all), 0);
	ATF_REQUIRE(len > FRAME_VNET_SHORT);
	memcpy(hdr, all, FRAME_VNET_SHORT);
	memcpy(buf, all + FRAME_VNET_SHORT, len - FRAME_VNET_SHORT);
	return (len - FRAME_VNET_SHORT);
}

void
port_put(const uint8_t *hdr, const uint8_t *p, uint32_t len)
{
	struct netmap_ring *ring = port->txring;
	struct netmap_slot *slot;

	slot = &ring->slot[ring->head];
	slot->ptr = (uintptr_t)p;
	slot->len = len;
	slot->flags = NS_INDIRECT;
	if (hdr != NULL) {
		(void)frame_vnet_decode(&port->txframe[ring->head], hdr);
		slot->flags |= VALE_SLOT_FRAME;
	}
	ring->head = ring->cur = nm_ring_next(ring, ring->head);
}

uint32_t
port_receive(uint8_t *hdr)
{
	struct netmap_ring *ring = port->rxring;
	struct netmap_slot *slot;
	uint32_t len = 0;
	bool more;

	memset(hdr, 0, FRAME_VNET_LONG);
	vale_rxsync(port);
	/* The descriptor may be readable for frames that were taken before. */
	while (nm_ring_empty(ring)) {
		wait_readable(port->fd, "frame in the port");
		vale_rxsync(port);
	}
	do {
		ATF_REQUIRE(!nm_ring_empty(ring));
		slot = &ring->slot[ring->head];
		more = (slot->flags & NS_MOREFRAG) != 0;
		if ((slot->flags & VALE_SLOT_FRAME) != 0)
			frame_vnet_encode(&port->rxframe[ring->head], hdr,
			    FRAME_VNET_LONG);
		memcpy(buf + len, NETMAP_BUF(ring, slot->buf_idx), slot->len);
		len += slot->len;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	} while (more);
	return (len);
}

void
nothing_in_port(void)
{
	vale_rxsync(port);
	ATF_REQUIRE(nm_ring_empty(port->rxring));
}

void
make_packet(uint8_t *p, uint8_t *hdr, uint32_t len, uint8_t type,
    uint32_t size)
{
	const bool udp = type == FRAME_GSO_UDP_L4;
	struct frame frame = {
		.f_len = len, .f_flags = FRAME_CSUM_PARTIAL,
		.f_gso_type = type, .f_hdr_len = udp ? UDP_HDR : TCP_HDR,
		.f_gso_size = size, .f_csum_start = L4,
		.f_csum_offset = udp ? 6 : 16
	};

	memset(p, 'x', len);
	memset(p, 0xff, 6);
	memcpy(p + 6, "\x02\x00\x00\x00\x00\x01\x08\x00", 8);
	memset(p + IP, 0, (udp ? UDP_HDR : TCP_HDR) - IP);
	p[IP] = 0x45;
	p[IP + 2] = (len - IP) >> 8;
	p[IP + 3] = (uint8_t)(len - IP);
	p[IP + 8] = 64;
	p[IP + 9] = udp ? IPPROTO_UDP : IPPROTO_TCP;
	memcpy(p + IP + 12, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
	p[L4 + 3] = 9;
	if (udp) {
		p[L4 + 4] = (len - L4) >> 8;
		p[L4 + 5] = (uint8_t)(len - L4);
	} else {
		p[L4 + 12] = 5 << 4;
		p[L4 + 13] = 0x10;
	}
	frame_vnet_encode(&frame, hdr, FRAME_VNET_LONG);
}

uint16_t
packet_sum(const uint8_t *p, uint32_t len)
{
	uint32_t i, sum = p[IP + 9] + len - L4;

	for (i = IP + 12; i < len; i++)
		sum += (i - IP) % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (~sum & 0xffff);
}

void
pseudo_sum(uint8_t *p, uint32_t len, uint32_t field)
{
	uint32_t i, sum = p[IP + 9] + len - L4;

	for (i = IP + 12; i < L4; i += 2)
		sum += p[i] << 8 | p[i + 1];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	p[field] = sum >> 8;
	p[field + 1] = (uint8_t)sum;
}

/* Whether it polls for its tick only, for a while. */
static bool
sleeps(void)
{
	const uint64_t polls = counter(HOSTIF_C_POLL);
	struct timespec end, start;
	uint64_t ms;

	/* On a busy machine it may take longer; then there are more ticks. */
	clock_gettime(CLOCK_MONOTONIC, &start);
	usleep(200000);
	clock_gettime(CLOCK_MONOTONIC, &end);
	ms = (end.tv_sec - start.tv_sec) * 1000 +
	    (end.tv_nsec - start.tv_nsec) / 1000000;
	return (counter(HOSTIF_C_POLL) <= polls + 2 + ms / HOSTIF_TICK_MS);
}

void
thread_sleeps(void)
{
	/* It may not have come yet to what happened before. */
	wait_until(sleeps(), "the thread does not sleep");
}
