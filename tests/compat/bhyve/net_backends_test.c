/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * compat/bhyve/net_backends.c: finding a backend, and TAP interfaces.  These
 * need /dev/net/tun; each test creates them in a network namespace of its own.
 */

#include <sys/cdefs.h>
#include <sys/endian.h>
#include <sys/ioctl.h>
#include <sys/param.h>
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
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "backend.h"
#include "net_backends_priv.h"
#include "test.h"
#include "wait_until.h"

/* IEEE's EtherType for experiments: no other frame has it. */
#define	TEST_ETHERTYPE	0x88b5
/* Shorter frames may be the host's own, of IPv6. */
#define	TEST_LEN_MIN	200

/* A backend that records its calls. */
static struct {
	char		 name[32];
	net_be_rxeof_t	 cb;
	void		*param;
	int		 cleanups;
	bool		 refuse;
} probe;

static int
probe_init(struct net_backend *be, const char *devname, nvlist_t *nvl __unused,
    net_be_rxeof_t cb, void *param)
{
	ATF_CHECK_EQ(-1, be->fd);
	ATF_CHECK_EQ(0, *(char *)NET_BE_PRIV(be));
	strlcpy(probe.name, devname, sizeof(probe.name));
	probe.cb = cb;
	probe.param = param;
	return (probe.refuse ? ENXIO : 0);
}

static void
probe_cleanup(struct net_backend *be __unused)
{
	probe.cleanups++;
}

static int
probe_set_cap(struct net_backend *be, uint64_t features,
    unsigned int vnet_hdr_len)
{
	be->be_vnet_hdr_len = vnet_hdr_len;
	return (features == 1 ? 0 : -1);
}

static struct net_backend probe_backend = {
	.prefix = "probe",
	.priv_size = 64,
	.init = probe_init,
	.cleanup = probe_cleanup,
	.set_cap = probe_set_cap,
};
DATA_SET(net_backend_set, probe_backend);

TEST(find, "A backend is found by the prefix of its name or by type")
{
	net_backend_t *be;

	be = backend_open("probe7", backend_ignore, &be);
	ATF_CHECK_STREQ("probe7", probe.name);
	ATF_CHECK_EQ(backend_ignore, probe.cb);
	ATF_CHECK_EQ(&be, probe.param);
	netbe_cleanup(be);
	ATF_CHECK_EQ(1, probe.cleanups);

	be = backend_open("eth0,type=probe", backend_ignore, NULL);
	ATF_CHECK_STREQ("eth0", probe.name);
	netbe_cleanup(be);
	netbe_cleanup(NULL);
	ATF_CHECK_EQ(2, probe.cleanups);
}

TEST(missing, "No backend, an unknown one, and one that fails to open are "
    "errors")
{
	net_backend_t *be;

	be = (void *)1;
	ATF_CHECK(backend_try(&be, NULL) != 0);
	ATF_CHECK_EQ(NULL, be);
	be = (void *)1;
	ATF_CHECK(backend_try(&be, "nosuch0") != 0);
	ATF_CHECK_EQ(NULL, be);
	ATF_CHECK(backend_try(&be, "") != 0);
	ATF_CHECK(backend_try(&be, "probe0,type=nosuch") != 0);
	probe.refuse = true;
	be = (void *)1;
	ATF_CHECK_EQ(ENXIO, backend_try(&be, "probe0"));
	ATF_CHECK_EQ(NULL, be);
	ATF_CHECK_EQ_MSG(0, probe.cleanups, "what did not open is cleaned up");
}

TEST(caps, "The backend is only asked for valid lengths of a virtio-net header")
{
	net_backend_t *be;

	be = backend_open("probe0", backend_ignore, NULL);
	ATF_CHECK_EQ(0, netbe_set_cap(be, 1, 12));
	ATF_CHECK_EQ(12, netbe_get_vnet_hdr_len(be));
	ATF_CHECK_EQ(0, netbe_set_cap(be, 1, 10));
	ATF_CHECK_EQ(-1, netbe_set_cap(be, 1, 11));
	ATF_CHECK_EQ(10, netbe_get_vnet_hdr_len(be));
	ATF_CHECK_EQ(-1, netbe_set_cap(be, 2, 0));
	netbe_cleanup(be);
}

/* Enter a new network namespace, or skip the test. */
static void
private_network(void)
{
	int fd;

	if (unshare(CLONE_NEWNET) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		atf_tc_skip("no network namespace: %s", strerror(errno));
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

/* Receive the next frame of the test, and skip those of the host. */
static ssize_t
recv_ours(net_backend_t *be, uint8_t *buf, size_t size)
{
	struct iovec iov[3] = { { buf, 5 }, { buf + 5, 0 },
	    { buf + 5, size - 5 } };
	ssize_t len;

	do {
		len = netbe_recv(be, iov, nitems(iov));
	} while (len > 0 && (buf[12] != TEST_ETHERTYPE >> 8 ||
	    buf[13] != (TEST_ETHERTYPE & 0xff)));
	return (len);
}

/*
 * The length of the next frame of the test, which is not received yet; shorter
 * frames, of the host, are discarded.
 */
static ssize_t
peek_ours(net_backend_t *be)
{
	ssize_t len;

	while ((len = netbe_peek_recvlen(be)) >= 0 && len < TEST_LEN_MIN) {
		if (len == 0)
			wait_readable(be->fd, "no frame");
		else
			netbe_rx_discard(be);
	}
	return (len);
}

/* Frames of `len' bytes in both directions. */
static void
tap_exchange(net_backend_t *be, int s, size_t len)
{
	static uint8_t frame[65536], got[65536];
	struct iovec iov[2] = { { frame, 20 }, { frame + 20, len - 20 } };
	ssize_t n;

	fill(frame, len, len);
	ATF_REQUIRE_EQ((ssize_t)len, netbe_send(be, iov, nitems(iov)));
	wait_readable(s, "no frame");
	ATF_REQUIRE_EQ((ssize_t)len, recv(s, got, sizeof(got), 0));
	ATF_CHECK_EQ(0, memcmp(frame, got, len));

	fill(frame, len, len + 1);
	memset(got, 0, sizeof(got));
	ATF_REQUIRE_EQ((ssize_t)len, send(s, frame, len, 0));
	while ((n = recv_ours(be, got, sizeof(got))) == 0)
		wait_readable(be->fd, "no frame");
	ATF_REQUIRE_EQ((ssize_t)len, n);
	ATF_CHECK_EQ(0, memcmp(frame, got, len));
}

TEST(tap, "Frames pass a TAP interface both ways, intact and in order")
{
	static uint8_t frame[1000], got[2000];
	struct iovec iov = { got, 100 };
	net_backend_t *be;
	int s;

	private_network();
	be = backend_open("tap0", backend_ignore, NULL);
	s = host_end("tap0");
	ATF_CHECK_EQ(0, recv_ours(be, got, sizeof(got)));
	tap_exchange(be, s, 60);
	tap_exchange(be, s, 61);
	tap_exchange(be, s, 1514);
	ATF_CHECK_EQ(0, recv_ours(be, got, sizeof(got)));

	/* Peek and receive; peek and discard. */
	fill(frame, sizeof(frame), 1);
	ATF_REQUIRE_EQ(1000, send(s, frame, 1000, 0));
	ATF_REQUIRE_EQ(500, send(s, frame, 500, 0));
	ATF_REQUIRE_EQ(300, send(s, frame, 300, 0));
	ATF_REQUIRE_EQ(200, send(s, frame, 200, 0));
	ATF_CHECK_EQ(1000, peek_ours(be));
	ATF_CHECK_EQ(1000, netbe_peek_recvlen(be));
	ATF_CHECK_EQ(1000, recv_ours(be, got, sizeof(got)));
	ATF_CHECK_EQ(0, memcmp(frame, got, 1000));
	ATF_CHECK_EQ(500, peek_ours(be));
	ATF_CHECK_EQ(500, netbe_rx_discard(be));
	ATF_CHECK_EQ(300, peek_ours(be));
	ATF_CHECK_EQ_MSG(100, netbe_recv(be, &iov, 1), "not cut to the room");
	ATF_CHECK_EQ(200, peek_ours(be));
	ATF_CHECK_EQ(200, recv_ours(be, got, sizeof(got)));
	netbe_cleanup(be);
	ATF_CHECK_EQ_MSG(0, if_nametoindex("tap0"), "left behind");
}

struct tap_event {
	net_backend_t	*be;
	uint8_t		 got[2000];
	ssize_t		 len;
	bool		 stalled;
};

static void
on_frames(int fd, enum ev_type type, void *param)
{
	struct tap_event *te;
	ssize_t len;

	te = param;
	ATF_CHECK_EQ(EVF_READ, type);
	ATF_CHECK_EQ(te->be->fd, fd);
	ATF_CHECK(!te->stalled);
	len = recv_ours(te->be, te->got, sizeof(te->got));
	if (len > 0) {
		te->len = len;
		mevent_stop(mevent_loop());
	}
}

static void
on_clock(int fd __unused, enum ev_type type __unused, void *param __unused)
{
	mevent_stop(mevent_loop());
}

TEST(tap_event, "The callback is called for a frame once receiving is enabled, "
    "and not before")
{
	struct tap_event te = { .stalled = true };
	struct mevent *clock;
	uint8_t frame[64];
	int s;

	private_network();
	te.be = backend_open("tap0", on_frames, &te);
	s = host_end("tap0");
	fill(frame, sizeof(frame), 3);
	ATF_REQUIRE_EQ(64, send(s, frame, sizeof(frame), 0));

	clock = mevent_add(20, EVF_TIMER, on_clock, NULL);
	ATF_REQUIRE(clock != NULL);
	mevent_dispatch();
	netbe_rx_enable(te.be);
	netbe_rx_disable(te.be);
	mevent_dispatch();
	ATF_CHECK_EQ(0, mevent_delete(clock));

	te.stalled = false;
	netbe_rx_enable(te.be);
	mevent_dispatch();
	ATF_CHECK_EQ(64, te.len);
	ATF_CHECK_EQ(0, memcmp(frame, te.got, sizeof(frame)));
	netbe_cleanup(te.be);
}

TEST(tap_mtu, "mtu= sets the interface's MTU, and frames of that size pass")
{
	struct ifreq ifr;
	net_backend_t *be;
	int s;

	private_network();
	be = backend_open("tap0,mtu=9000", backend_ignore, NULL);
	s = host_end("tap0");
	memset(&ifr, 0, sizeof(ifr));
	strlcpy(ifr.ifr_name, "tap0", sizeof(ifr.ifr_name));
	ATF_REQUIRE_EQ(0, ioctl(s, SIOCGIFMTU, &ifr));
	ATF_CHECK_EQ(9000, ifr.ifr_mtu);
	tap_exchange(be, s, 9014);
	netbe_cleanup(be);

	ATF_CHECK(backend_try(&be, "tap0,mtu=x") != 0);
	ATF_CHECK(backend_try(&be, "tap0,mtu=1") != 0);
	ATF_CHECK(backend_try(&be, "tap0,mtu=65537") != 0);
	ATF_CHECK_EQ_MSG(0, if_nametoindex("tap0"), "left behind");
}

#define	PACKET_LEN	5054		/* of TCP, with headers */
#define	PACKET_MSS	1000

/* A TCP packet for tap_offloads, and its virtio-net header. */
static void
make_packet(uint8_t *hdr, uint8_t *frame)
{
	memset(hdr, 0, 12);
	hdr[0] = 1;
	hdr[1] = 1;
	le16enc(hdr + 2, 54);
	le16enc(hdr + 4, PACKET_MSS);
	le16enc(hdr + 6, 34);
	le16enc(hdr + 8, 16);
	fill(frame, PACKET_LEN, 3);
	be16enc(frame + 12, ETHERTYPE_IP);
	memset(frame + 14, 0, 40);
	frame[14] = 0x45;
	be16enc(frame + 16, PACKET_LEN - 14);
	frame[22] = 64;
	frame[23] = IPPROTO_TCP;
	frame[46] = 0x50;
}

/* The header of `hdrlen' bytes and the packet at `got' are those sent. */
static void
check_packet(const uint8_t *got, size_t hdrlen, const uint8_t *hdr,
    const uint8_t *frame)
{
	ATF_CHECK_EQ(0, memcmp(hdr, got, 2));
	/* The length of the headers is a hint. */
	ATF_CHECK_EQ(0, memcmp(hdr + 4, got + 4, 6));
	ATF_CHECK_EQ(0, memcmp(frame, got + hdrlen, PACKET_LEN));
}

static bool
is_ours(const uint8_t *frame)
{
	return (be16dec(frame + 12) == ETHERTYPE_IP &&
	    frame[23] == IPPROTO_TCP);
}

/* Receive from the interface until it is a frame of ours. */
static ssize_t
recv_packet(net_backend_t *be, uint8_t *buf, size_t size, size_t hdrlen)
{
	struct iovec iov = { buf, size };
	ssize_t len;

	for (;;) {
		len = netbe_recv(be, &iov, 1);
		if (len < 0 || (len > 0 && is_ours(buf + hdrlen)))
			return (len);
		if (len == 0)
			wait_readable(be->fd, "no packet");
	}
}

TEST(tap_offloads, "With headers of 10 and 12 bytes a TCP packet of several "
    "segments passes a TAP interface uncut, both ways; without, the host cuts "
    "it")
{
	static const unsigned int hdrlens[] = { 10, 12 };
	static uint8_t frame[PACKET_LEN], got[65536], seq;
	uint8_t hdr[12];
	struct iovec iov[2] = { { hdr, 0 }, { frame, sizeof(frame) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	net_backend_t *be;
	uint64_t caps;
	size_t i;
	int one = 1, s;

	private_network();
	be = backend_open("tap0", backend_ignore, NULL);
	s = host_end_type("tap0", ETHERTYPE_IP);
	ATF_REQUIRE_EQ(0, setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &one,
	    sizeof(one)));
	make_packet(hdr, frame);
	caps = netbe_get_cap(be);
	ATF_CHECK((caps & VIRTIO_NET_F_HOST_TSO4) != 0);
	ATF_CHECK((caps & VIRTIO_NET_F_GUEST_TSO4) != 0);
	for (i = 0; i < nitems(hdrlens); i++) {
		ATF_REQUIRE_EQ(0, netbe_set_cap(be, caps, hdrlens[i]));
		ATF_CHECK_EQ(hdrlens[i], netbe_get_vnet_hdr_len(be));
		iov[0].iov_len = hdrlens[i];
		ATF_REQUIRE_EQ((ssize_t)(hdrlens[i] + PACKET_LEN),
		    netbe_send(be, iov, 2));
		do {
			wait_readable(s, "no packet");
			ATF_REQUIRE(recv(s, got, sizeof(got), 0) > 0);
		} while (!is_ours(got + 10));
		check_packet(got, 10, hdr, frame);

		iov[0].iov_len = 10;
		ATF_REQUIRE_EQ(10 + PACKET_LEN, sendmsg(s, &msg, 0));
		ATF_REQUIRE_EQ((ssize_t)(hdrlens[i] + PACKET_LEN),
		    recv_packet(be, got, sizeof(got), hdrlens[i]));
		check_packet(got, hdrlens[i], hdr, frame);
	}
	ATF_REQUIRE_EQ(0, netbe_set_cap(be, 0, 0));
	ATF_REQUIRE_EQ(10 + PACKET_LEN, sendmsg(s, &msg, 0));
	for (seq = 0; seq < 5; seq++) {
		ATF_REQUIRE_EQ(54 + PACKET_MSS,
		    recv_packet(be, got, sizeof(got), 0));
		ATF_CHECK_EQ(seq * PACKET_MSS, be32dec(got + 38));
		ATF_CHECK_EQ(0, memcmp(frame + 54 + seq * PACKET_MSS, got + 54,
		    PACKET_MSS));
	}
	close(s);
	netbe_cleanup(be);
}

TEST(tap_errors, "An interface in use, a name too long, and an interface that "
    "is not a TAP are errors")
{
	net_backend_t *be, *be2;

	private_network();
	be = backend_open("tap0", backend_ignore, NULL);
	ATF_CHECK(backend_try(&be2, "tap0") != 0);
	ATF_CHECK_EQ(NULL, be2);
	ATF_CHECK(backend_try(&be2, "tap0123456789012") != 0);
	ATF_CHECK(backend_try(&be2, "lo,type=tap") != 0);
	ATF_CHECK_EQ(0, netbe_set_cap(be, 0, 0));
	ATF_CHECK_EQ(-1, netbe_set_cap(be, 1, 0));
	ATF_CHECK_EQ(-1, netbe_set_cap(be, VIRTIO_NET_F_GUEST_UFO, 10));
	ATF_CHECK_EQ(0, netbe_get_vnet_hdr_len(be));
	netbe_cleanup(be);
}

/* Run a command of sh(1). */
static void
run(const char *command)
{
	ATF_REQUIRE_MSG(system(command) == 0, "%s", command);
}

TEST_WITH(tap_multi_queue, "require.progs", "ip", "An interface that was "
    "created with several queues is used through one")
{
	net_backend_t *be;
	int s;

	private_network();
	run("ip tuntap add dev tap0 mode tap multi_queue");
	be = backend_open("tap0", backend_ignore, NULL);
	s = host_end("tap0");
	tap_exchange(be, s, 60);
	tap_exchange(be, s, 1514);
	netbe_cleanup(be);
	/* It may be opened again. */
	be = backend_open("tap0", backend_ignore, NULL);
	netbe_cleanup(be);
}

static void
on_gone(int fd __unused, enum ev_type type __unused, void *param)
{
	struct tap_event *te = param;

	ATF_CHECK(!te->stalled);
	te->stalled = true;
	te->len = recv_ours(te->be, te->got, sizeof(te->got));
}

TEST_WITH(tap_gone, "require.progs", "ip", "An interface that is deleted "
    "causes one event at most, and sending fails")
{
	struct tap_event te = { .stalled = false };
	struct mevent *clock;
	uint8_t frame[64];
	struct iovec iov = { frame, sizeof(frame) };

	private_network();
	te.be = backend_open("tap0", on_gone, &te);
	(void)host_end("tap0");
	while (recv_ours(te.be, te.got, sizeof(te.got)) > 0)
		continue;
	netbe_rx_enable(te.be);
	run("ip link del tap0");
	clock = mevent_add(20, EVF_TIMER, on_clock, NULL);
	ATF_REQUIRE(clock != NULL);
	while (!te.stalled)
		mevent_dispatch();
	ATF_CHECK_EQ(-1, te.len);
	/* A frontend that enables it again gets no event, either. */
	mevent_dispatch();
	netbe_rx_disable(te.be);
	netbe_rx_enable(te.be);
	mevent_dispatch();
	fill(frame, sizeof(frame), 1);
	ATF_CHECK_EQ(-1, netbe_send(te.be, &iov, 1));
	netbe_cleanup(te.be);
}

TEST_PROGRAM
