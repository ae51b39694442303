/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket of valed, packet by packet: what it refuses, and what a
 * client that does not keep to the protocol gets.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>

#include <arpa/inet.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "hostif.h"
#include "send_fds.h"
#include "test.h"
#include "vale_client.h"
#include "valed_run.h"
#include "wait_until.h"

/* As CTL_MAX of lib/libctl/ctl.h: the test is about the program. */
#define	CONNECTIONS	320

/* The index of lo. */
#define	LOOPBACK	1

struct packet {
	struct vale_wire w;
	union {
		struct nmreq_register	 reg;
		struct nmreq_vale_list	 list;
		struct nmreq_port_hdr	 hdr;
		struct vale_wire_page	 page;
		struct vale_wire_set	 set;
		uint8_t			 bytes[VALE_WIRE_MAX -
		    sizeof(struct vale_wire)];
	} u;
};

static int
dial(void)
{
	int fd = vale_client_connect("control");

	ATF_REQUIRE_MSG(fd != -1, "%s", strerror(errno));
	return (fd);
}

/* A valid request, without a body. */
static void
prepare(struct packet *p, uint16_t type, const char *name)
{
	memset(p, 0, sizeof(*p));
	p->w.vw_magic = VALE_WIRE_MAGIC;
	p->w.vw_header.nr_version = NETMAP_API;
	p->w.vw_header.nr_reqtype = type;
	strlcpy(p->w.vw_header.nr_name, name,
	    sizeof(p->w.vw_header.nr_name));
}

/* Send `len' bytes and receive the reply; returns its length. */
static ssize_t
converse(int fd, struct packet *p, size_t len)
{
	ssize_t n;

	ATF_REQUIRE_EQ((ssize_t)len, send(fd, p, len, MSG_NOSIGNAL));
	n = recv(fd, p, sizeof(*p), 0);
	ATF_REQUIRE_MSG(n == 0 || n >= (ssize_t)sizeof(p->w), "%zd", n);
	return (n);
}

/* valed refuses with this errno and a sentence with these words. */
static void
refused(int fd, struct packet *p, size_t len, int error, const char *why)
{
	ssize_t n = converse(fd, p, len);

	ATF_CHECK_EQ_MSG((ssize_t)sizeof(p->w), n, "%s: %zd", why, n);
	ATF_CHECK_EQ_MSG(error, p->w.vw_error, "%s: errno %d", why,
	    p->w.vw_error);
	ATF_CHECK_MSG(strstr(p->w.vw_why, why) != NULL, "%s: %s", why,
	    p->w.vw_why);
}

VALED_TEST(malformed, "Packets of a wrong form are refused, and the connection "
    "stays usable")
{
	static struct packet p;
	const size_t head = sizeof(p.w);
	int fd = dial();

	memset(&p, 0, sizeof(p));
	refused(fd, &p, 1, EPROTO, "another version");
	prepare(&p, VALE_WIRE_PORTS, "");
	refused(fd, &p, head - 1, EPROTO, "another version");
	prepare(&p, VALE_WIRE_PORTS, "");
	p.w.vw_magic++;
	refused(fd, &p, head + sizeof(p.u.page), EPROTO, "another version");
	prepare(&p, VALE_WIRE_PORTS, "");
	p.w.vw_header.nr_version = 13;
	refused(fd, &p, head + sizeof(p.u.page), EINVAL, "API 13, not 14");
	prepare(&p, VALE_WIRE_PORTS, "");
	memset(p.w.vw_header.nr_name, 'a', sizeof(p.w.vw_header.nr_name));
	refused(fd, &p, head + sizeof(p.u.page), EINVAL, "name does not end");
	prepare(&p, VALE_WIRE_PORTS, "");
	p.w.vw_header.nr_options = 4096;
	refused(fd, &p, head + sizeof(p.u.page), EOPNOTSUPP, "options");
	prepare(&p, 77, "");
	refused(fd, &p, head, EOPNOTSUPP, "request 77 is not supported");
	prepare(&p, VALE_WIRE_PORTS, "");
	refused(fd, &p, head, EINVAL, "wrong length");
	prepare(&p, VALE_WIRE_PORTS, "");
	refused(fd, &p, head + sizeof(p.u.page) + 1, EINVAL, "wrong length");
	prepare(&p, VALE_WIRE_PORTS, "");
	refused(fd, &p, sizeof(p), EINVAL, "wrong length");
	prepare(&p, VALE_WIRE_PORTS, "");
	ATF_CHECK_EQ((ssize_t)(head + sizeof(p.u.page)),
	    converse(fd, &p, head + sizeof(p.u.page)));
	ATF_CHECK_EQ(0, p.w.vw_error);
	ATF_CHECK_EQ(0, p.u.page.wp_count);
	/* A packet of no bytes looks like the end. */
	ATF_CHECK_EQ(0, converse(fd, &p, 0));
	close(fd);
}

VALED_TEST(registers, "A port that cannot be is refused with the reason; each "
    "connection has one")
{
	static struct packet p;
	const size_t len = sizeof(p.w) + sizeof(p.u.reg);
	struct nmreq_register *r = &p.u.reg;
	int fd = dial(), other = dial();

/* With r->nr_mode and another field. */
#define	REFUSED(name, mode, assignment, error, why) do {		\
	prepare(&p, NETMAP_REQ_REGISTER, (name));			\
	r->nr_mode = (mode);						\
	r->assignment;							\
	refused(fd, &p, len, (error), (why));				\
} while (0)
	REFUSED("em0", NR_REG_ALL_NIC, nr_flags = 0, EINVAL, "begin");
	REFUSED("", NR_REG_ALL_NIC, nr_flags = 0, EINVAL, "begin");
	REFUSED("vale0:a/b", NR_REG_ALL_NIC, nr_flags = 0, EINVAL,
	    "only letters");
	REFUSED("vale0:a", NR_REG_ALL_NIC, nr_tx_slots = 1, EINVAL,
	    "slots must be");
	REFUSED("vale0:a", NR_REG_ALL_NIC, nr_rx_slots = 16385, EINVAL,
	    "slots must be");
	REFUSED("vale0:a", NR_REG_ALL_NIC, nr_extra_bufs =
	    VALE_EXTRA_BUFS_MAX + 1, EINVAL, "extra buffers up to");
	REFUSED("vale0:a", NR_REG_ALL_NIC, nr_tx_rings = VALE_RINGS_MAX + 1,
	    EINVAL, "up to 16 rings");
	REFUSED("vale0:a", NR_REG_ALL_NIC, nr_rx_rings = 0xffff, EINVAL,
	    "up to 16 rings");
	REFUSED("vale0:a", NR_REG_ALL_NIC, nr_tx_slots = (r->nr_rx_rings = 3,
	    VALE_SLOTS_MAX / 3 + 1), EINVAL, "for all rings");
	REFUSED("vale0:a", NR_REG_ALL_NIC, nr_host_rx_rings = 1, EOPNOTSUPP,
	    "of the host");
	REFUSED("vale0:a", NR_REG_ONE_NIC, nr_ringid = 1, EINVAL,
	    "ring 1 of 1");
	REFUSED("vale0:a", NR_REG_SW, nr_flags = 0, EOPNOTSUPP,
	    "of the host");
	REFUSED("vale0:a", NR_REG_ALL_NIC, nr_flags = NR_ZCOPY_MON,
	    EOPNOTSUPP, "monitors");
	prepare(&p, NETMAP_REQ_REGISTER, "vale0:a");
	p.u.reg.nr_mode = NR_REG_ALL_NIC;
	p.u.reg.nr_rx_slots = 16;
	p.u.reg.nr_extra_bufs = 3;
	/* The descriptors are discarded. */
	ATF_CHECK_EQ((ssize_t)len, converse(fd, &p, len));
	ATF_CHECK_EQ(0, p.w.vw_error);
	ATF_CHECK_EQ(VALE_SLOTS_DEFAULT, p.u.reg.nr_tx_slots);
	ATF_CHECK_EQ(16, p.u.reg.nr_rx_slots);
	ATF_CHECK_EQ(1, p.u.reg.nr_tx_rings);
	ATF_CHECK(p.u.reg.nr_memsize > (1024 + 16 + 3) * 2048);
	REFUSED("vale0:b", NR_REG_ALL_NIC, nr_flags = 0, EBUSY,
	    "connection has a port");
	prepare(&p, NETMAP_REQ_REGISTER, "vale0:a");
	p.u.reg.nr_mode = NR_REG_ALL_NIC;
	refused(other, &p, len, EBUSY, "open already");
	close(fd);
	close(other);
}

VALED_TEST(headers, "Only its own connection sets a port's header, to a length "
    "that there is")
{
	static struct packet p;
	const size_t len = sizeof(p.w) + sizeof(p.u.hdr);
	int fd = dial(), other = dial();

	prepare(&p, NETMAP_REQ_REGISTER, "vale0:a");
	p.u.reg.nr_mode = NR_REG_ALL_NIC;
	converse(fd, &p, sizeof(p.w) + sizeof(p.u.reg));
	prepare(&p, NETMAP_REQ_PORT_HDR_SET, "vale0:a");
	p.u.hdr.nr_hdr_len = 11;
	refused(fd, &p, len, EINVAL, "0, 10 or 12");
	prepare(&p, NETMAP_REQ_PORT_HDR_SET, "vale0:b");
	refused(fd, &p, len, ENXIO, "does not have this port");
	prepare(&p, NETMAP_REQ_PORT_HDR_SET, "vale0:a");
	refused(other, &p, len, ENXIO, "does not have this port");
	prepare(&p, NETMAP_REQ_PORT_HDR_SET, "vale0:a");
	p.u.hdr.nr_hdr_len = 12;
	converse(fd, &p, len);
	ATF_CHECK_EQ(0, p.w.vw_error);
	prepare(&p, NETMAP_REQ_PORT_HDR_GET, "vale0:a");
	converse(fd, &p, sizeof(p.w));
	ATF_CHECK_EQ(12, p.u.hdr.nr_hdr_len);
	prepare(&p, NETMAP_REQ_PORT_HDR_GET, "vale0:b");
	refused(other, &p, sizeof(p.w), ENXIO, "does not have this port");
	close(fd);
	close(other);
}

VALED_TEST(settings, "A setting that there is not is refused, and a value that "
    "a setting cannot have")
{
	static struct packet p;
	int fd = dial(), other = dial();

	prepare(&p, NETMAP_REQ_REGISTER, "vale0:a");
	p.u.reg.nr_mode = NR_REG_ALL_NIC;
	converse(other, &p, sizeof(p.w) + sizeof(p.u.reg));
	prepare(&p, VALE_WIRE_SET, "vale0:a");
	p.u.set.ws_setting = 6;
	p.u.set.ws_value = 2;
	refused(fd, &p, sizeof(p.w) + sizeof(p.u.set), EINVAL,
	    "private, 1, or not, 0");
	/* Without its upper half this is 1. */
	prepare(&p, VALE_WIRE_SET, "vale0:a");
	p.u.set.ws_setting = 6;
	p.u.set.ws_value = UINT64_C(1) << 32 | 1;
	refused(fd, &p, sizeof(p.w) + sizeof(p.u.set), EINVAL,
	    "private, 1, or not, 0");
	close(other);

	prepare(&p, VALE_WIRE_SET, "vale0");
	p.u.set.ws_setting = 99;
	refused(fd, &p, sizeof(p.w) + sizeof(p.u.set), EOPNOTSUPP,
	    "setting 99");
	prepare(&p, NETMAP_REQ_VALE_LIST, "");
	refused(fd, &p, sizeof(p.w) + sizeof(p.u.list), ENOENT,
	    "no further port");
	close(fd);
}

/* Send a request with `n' copies of a descriptor. */
static void
send_with(int fd, struct packet *p, size_t len, int passed, unsigned int n)
{
	int copies[64];
	unsigned int i;

	for (i = 0; i < n; i++)
		copies[i] = passed;
	SEND_FDS(fd, p, len, copies, n);
}

VALED_TEST(descriptors, "Descriptors that no request takes are closed; no "
    "request has more than 18")
{
	static const unsigned int numbers[] = { 1, VALE_WIRE_FDS,
	    VALE_WIRE_FDS + 1, 64 };
	static struct packet p;
	struct pollfd pfd;
	int fd = dial(), fds[2];
	size_t i;

	for (i = 0; i < nitems(numbers); i++) {
		ATF_REQUIRE_EQ(0, pipe(fds));
		prepare(&p, VALE_WIRE_PORTS, "");
		send_with(fd, &p, sizeof(p.w) + sizeof(p.u.page), fds[1],
		    numbers[i]);
		close(fds[1]);
		ATF_CHECK(recv(fd, &p, sizeof(p), 0) > 0);
		ATF_CHECK_EQ(numbers[i] > VALE_WIRE_FDS ? EMFILE : 0,
		    p.w.vw_error);
		/* The end of file comes when all copies are closed. */
		pfd = (struct pollfd){ .fd = fds[0], .events = POLLIN };
		ATF_CHECK_EQ(1, poll(&pfd, 1, WAIT_S * 1000));
		close(fds[0]);
	}
	close(fd);
}

/* Pass `n' descriptors in a request to attach, whose hf_nfds is `of'. */
static void
attach(int fd, struct packet *p, unsigned int kind, uint32_t index,
    const int *passed, unsigned int n, unsigned int of)
{
	struct hostif_fds *fds = (void *)&p->u;

	prepare(p, NETMAP_REQ_VALE_ATTACH, "vale0:eth0");
	fds->hf_kind = kind;
	fds->hf_index = index;
	fds->hf_nfds = of;
	SEND_FDS(fd, p, sizeof(p->w) + sizeof(*fds), passed, n);
	ATF_REQUIRE(recv(fd, p, sizeof(*p), 0) > 0);
}

/* All are right but number `i', which is `wrong'. */
static void
attach_wrong(int fd, unsigned int kind, const int *right, unsigned int n,
    unsigned int i, int wrong)
{
	static struct packet p;
	int passed[HOSTIF_FDS_MAX];
	char why[64];

	memcpy(passed, right, n * sizeof(*right));
	passed[i] = wrong;
	attach(fd, &p, kind, LOOPBACK, passed, n, n);
	ATF_CHECK_EQ_MSG(EINVAL, p.w.vw_error, "kind %u, %u: %d %s", kind, i,
	    p.w.vw_error, p.w.vw_why);
	snprintf(why, sizeof(why), "descriptor %u is not", i);
	ATF_CHECK_MSG(strstr(p.w.vw_why, why) != NULL, "%s", p.w.vw_why);
}

static int
netlink(int protocol, unsigned int groups)
{
	const struct sockaddr_nl snl = { .nl_family = AF_NETLINK,
	    .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW, protocol);

	ATF_REQUIRE(fd != -1);
	ATF_REQUIRE_EQ(0, bind(fd, (const void *)&snl, sizeof(snl)));
	return (fd);
}

static int
packet(int index, int protocol)
{
	const struct sockaddr_ll sll = { .sll_family = AF_PACKET,
	    .sll_ifindex = index, .sll_protocol = htons(protocol) };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	ATF_REQUIRE_MSG(fd != -1, "%s", strerror(errno));
	if (index != 0)
		ATF_REQUIRE_EQ(0, bind(fd, (const void *)&sll, sizeof(sll)));
	return (fd);
}

static int
memory(bool sealed)
{
	int fd = memfd_create("x", MFD_ALLOW_SEALING);

	ATF_REQUIRE(fd != -1);
	if (sealed)
		ATF_REQUIRE_EQ(0, fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return (fd);
}

VALED_TEST(interfaces, "Only descriptors that an interface has, each in its "
    "place, are attached")
{
	static struct packet p;
	const size_t len = sizeof(p.w) + sizeof(struct hostif_fds);
	int right[HOSTIF_FDS_MAX] = { netlink(NETLINK_ROUTE, RTMGRP_LINK),
	    packet(LOOPBACK, ETH_P_ALL), eventfd(0, 0) };
	const int wrong[] = { open("/dev/zero", O_RDONLY), memory(false),
	    socket(AF_UNIX, SOCK_STREAM, 0), netlink(NETLINK_ROUTE, 0) };
	int fd = dial();
	unsigned int i, j;

	prepare(&p, NETMAP_REQ_VALE_ATTACH, "eth0");
	refused(fd, &p, len, EINVAL, "begin");
	attach(fd, &p, HOSTIF_PACKET, LOOPBACK, right, 0, 3);
	ATF_CHECK(strstr(p.w.vw_why, "are missing") != NULL);
	attach(fd, &p, HOSTIF_PACKET, LOOPBACK, right, 3, UINT32_MAX);
	ATF_CHECK(strstr(p.w.vw_why, "are missing") != NULL);
	/* Fewer are told than are there, and more. */
	attach(fd, &p, HOSTIF_PACKET, LOOPBACK, right, 3, 2);
	ATF_CHECK(strstr(p.w.vw_why, "are missing") != NULL);
	attach(fd, &p, HOSTIF_PACKET, LOOPBACK, right, 2, 3);
	ATF_CHECK(strstr(p.w.vw_why, "are missing") != NULL);

	for (i = 0; i < 3; i++)
		for (j = 0; j < nitems(wrong); j++)
			attach_wrong(fd, HOSTIF_PACKET, right, 3, i, wrong[j]);
	attach_wrong(fd, HOSTIF_PACKET, right, 3, 0, right[1]);
	attach_wrong(fd, HOSTIF_PACKET, right, 3, 0, right[2]);
	attach_wrong(fd, HOSTIF_PACKET, right, 3, 0,
	    netlink(NETLINK_GENERIC, RTMGRP_LINK));
	attach_wrong(fd, HOSTIF_PACKET, right, 3, 1, right[2]);
	attach_wrong(fd, HOSTIF_PACKET, right, 3, 1, packet(0, 0));
	attach_wrong(fd, HOSTIF_PACKET, right, 3, 1,
	    packet(LOOPBACK, ETH_P_IP));
	/* Of another interface than the one named. */
	attach(fd, &p, HOSTIF_PACKET, LOOPBACK + 1, right, 3, 3);
	ATF_CHECK(strstr(p.w.vw_why, "descriptor 1 is not") != NULL);
	attach_wrong(fd, HOSTIF_PACKET, right, 3, 2, right[1]);
	/* It has no rings. */
	attach(fd, &p, HOSTIF_PACKET, LOOPBACK, right, 3, 3);
	ATF_CHECK_EQ_MSG(EIO, p.w.vw_error, "%s", p.w.vw_why);
	right[2] = netlink(NETLINK_NETFILTER, 0);
	attach(fd, &p, HOSTIF_PACKET, LOOPBACK, right, 3, 3);
	ATF_CHECK_EQ_MSG(EIO, p.w.vw_error, "%s", p.w.vw_why);

	prepare(&p, NETMAP_REQ_VALE_DETACH, "vale0:eth0");
	refused(fd, &p, sizeof(p.w), ENXIO, "not an attached interface");
	close(fd);
}

VALED_TEST(xdp, "Only descriptors that AF_XDP has, each in its place, are "
    "attached; its sockets must be bound")
{
	static struct packet p;
	const int right[] = { netlink(NETLINK_ROUTE, RTMGRP_LINK),
	    netlink(NETLINK_GENERIC, 0), packet(0, 0), eventfd(0, 0),
	    memory(true), socket(AF_XDP, SOCK_RAW, 0) };
	const int wrong[] = { open("/dev/zero", O_RDONLY), memory(false),
	    socket(AF_UNIX, SOCK_STREAM, 0), netlink(NETLINK_ROUTE, 0) };
	int fd = dial();
	unsigned int i, j;

	if (right[5] == -1)
		atf_tc_skip("no AF_XDP: %s", strerror(errno));
	for (i = 0; i < nitems(right); i++)
		for (j = 0; j < nitems(wrong); j++)
			attach_wrong(fd, HOSTIF_XDP, right, nitems(right), i,
			    wrong[j]);
	/* All are right but the last. */
	attach_wrong(fd, HOSTIF_XDP, right, nitems(right), 5, right[5]);
	attach(fd, &p, HOSTIF_XDP, LOOPBACK, right, 5, 5);
	ATF_CHECK_EQ_MSG(EIO, p.w.vw_error, "%s", p.w.vw_why);
	close(fd);
}

VALED_TEST(deaf, "A client that does not read its replies is dropped; others "
    "are served")
{
	static struct packet p;
	int fd = dial(), other = dial();
	ssize_t n;

	prepare(&p, NETMAP_REQ_REGISTER, "vale0:a");
	p.u.reg.nr_mode = NR_REG_ALL_NIC;
	converse(fd, &p, sizeof(p.w) + sizeof(p.u.reg));
	do {
		prepare(&p, VALE_WIRE_PORTS, "");
		n = send(fd, &p, sizeof(p.w) + sizeof(p.u.page),
		    MSG_NOSIGNAL);
	} while (n != -1);
	ATF_CHECK(errno == EPIPE || errno == ECONNRESET);
	/* Its port has gone with it. */
	do {
		prepare(&p, NETMAP_REQ_VALE_LIST, "vale0:a");
		ATF_REQUIRE(converse(other, &p, sizeof(p.w) +
		    sizeof(p.u.list)) > 0);
	} while (p.w.vw_error == 0);
	ATF_CHECK_EQ(ENXIO, p.w.vw_error);
	close(fd);
	close(other);
}

VALED_TEST(crowd, "One connection too many is closed; when another ends, there "
    "is a place again")
{
	static struct packet p;
	int fd[CONNECTIONS], i, more;
	ssize_t n;

	for (i = 0; i < CONNECTIONS; i++) {
		fd[i] = dial();
		/* The connection that valed_run() made may not have ended. */
		do {
			prepare(&p, NETMAP_REQ_VALE_LIST, "");
			n = send(fd[i], &p, sizeof(p.w) + sizeof(p.u.list),
			    MSG_NOSIGNAL);
			if (n != -1)
				n = recv(fd[i], &p, sizeof(p), 0);
			if (n <= 0) {
				close(fd[i]);
				fd[i] = dial();
			}
		} while (n <= 0);
	}
	more = dial();
	ATF_CHECK(recv(more, &p, sizeof(p), 0) <= 0);
	close(more);
	close(fd[7]);
	do {
		more = dial();
		prepare(&p, NETMAP_REQ_VALE_LIST, "");
		n = send(more, &p, sizeof(p.w) + sizeof(p.u.list),
		    MSG_NOSIGNAL);
		if (n != -1)
			n = recv(more, &p, sizeof(p), 0);
		close(more);
	} while (n <= 0);
	fd[7] = -1;
	for (i = 0; i < CONNECTIONS; i++)
		if (fd[i] != -1)
			close(fd[i]);
}

TEST_PROGRAM
