/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copyright (c) 2026 The bhyve-vale authors
 */

/*
 * Counters of a VALE switch's ports (NETMAP_REQ_VALE_STATS).
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <net/if.h>
#include <net/netmap.h>
#define	NETMAP_WITH_LIBS
#include <net/netmap_user.h>

#include <atf-c.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define	FRAME_LEN	60

struct port {
	char	name[NETMAP_REQ_IFNAMSIZ];
	int	fd;
	struct netmap_if *nifp;
};

static int
request(int fd, const char *name, uint16_t type, void *body)
{
	struct nmreq_header hdr = {
		.nr_version = NETMAP_API, .nr_reqtype = type,
		.nr_body = (uintptr_t)body,
	};

	strlcpy(hdr.nr_name, name, sizeof(hdr.nr_name));
	return (ioctl(fd, NIOCCTRL, &hdr));
}

/* Open a port of a switch that has the test's process as its name. */
static void
port_open(struct port *p, const char *name)
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	void *mem;

	snprintf(p->name, sizeof(p->name), "vale%d:%s", getpid(), name);
	p->fd = open("/dev/netmap", O_RDWR);
	if (p->fd == -1)
		atf_tc_skip("no netmap(4): %s", strerror(errno));
	ATF_REQUIRE_MSG(request(p->fd, p->name, NETMAP_REQ_REGISTER, &reg) == 0,
	    "%s: %s", p->name, strerror(errno));
	mem = mmap(NULL, reg.nr_memsize, PROT_READ | PROT_WRITE, MAP_SHARED,
	    p->fd, 0);
	ATF_REQUIRE(mem != MAP_FAILED);
	p->nifp = NETMAP_IF(mem, reg.nr_offset);
}

/* Send broadcasts. */
static void
port_send(struct port *p, unsigned int n)
{
	struct netmap_ring *ring = NETMAP_TXRING(p->nifp, 0);
	uint8_t *buf;

	ATF_REQUIRE(nm_ring_space(ring) >= n);
	for (; n > 0; n--) {
		buf = (uint8_t *)NETMAP_BUF(ring,
		    ring->slot[ring->head].buf_idx);
		memset(buf, 0, FRAME_LEN);
		memset(buf, 0xff, 6);
		buf[6] = 2;
		ring->slot[ring->head].len = FRAME_LEN;
		ring->head = ring->cur = nm_ring_next(ring, ring->head);
	}
	ATF_REQUIRE(ioctl(p->fd, NIOCTXSYNC, NULL) == 0);
}

static void
check_stats(struct port *p, uint64_t packets, uint64_t drops)
{
	struct nmreq_vale_stats st;

	ATF_REQUIRE_MSG(request(p->fd, p->name, NETMAP_REQ_VALE_STATS, &st) ==
	    0, "%s: %s", p->name, strerror(errno));
	ATF_CHECK_EQ_MSG(packets, st.nr_rx_packets, "%ju packets",
	    (uintmax_t)st.nr_rx_packets);
	ATF_CHECK_EQ_MSG(drops, st.nr_rx_drops, "%ju drops",
	    (uintmax_t)st.nr_rx_drops);
}

ATF_TC_WITHOUT_HEAD(packets);
ATF_TC_BODY(packets, tc)
{
	struct port a, b;

	port_open(&a, "a");
	port_open(&b, "b");
	check_stats(&a, 0, 0);
	check_stats(&b, 0, 0);
	port_send(&a, 3);
	check_stats(&a, 0, 0);
	check_stats(&b, 3, 0);
	port_send(&b, 1);
	check_stats(&a, 1, 0);
}

ATF_TC_WITHOUT_HEAD(drops);
ATF_TC_BODY(drops, tc)
{
	struct netmap_ring *ring;
	struct port a, b;
	unsigned int room;

	port_open(&a, "a");
	port_open(&b, "b");
	ring = NETMAP_RXRING(b.nifp, 0);
	room = ring->num_slots - 1;
	/* All but one of what has room, then more in one batch, and alone. */
	port_send(&a, room - 1);
	check_stats(&b, room - 1, 0);
	port_send(&a, 5);
	check_stats(&b, room, 4);
	port_send(&a, 1);
	check_stats(&b, room, 5);
	/* Room for two. */
	ATF_REQUIRE(ioctl(b.fd, NIOCRXSYNC, NULL) == 0);
	ring->head = ring->cur = nm_ring_next(ring, nm_ring_next(ring,
	    ring->head));
	ATF_REQUIRE(ioctl(b.fd, NIOCRXSYNC, NULL) == 0);
	port_send(&a, 2);
	check_stats(&b, room + 2, 5);
}

ATF_TC_WITHOUT_HEAD(no_port);
ATF_TC_BODY(no_port, tc)
{
	struct nmreq_vale_stats st;
	struct port a;

	port_open(&a, "a");
	strlcat(a.name, "x", sizeof(a.name));
	ATF_CHECK_ERRNO(ENOENT,
	    request(a.fd, a.name, NETMAP_REQ_VALE_STATS, &st) == -1);
	ATF_CHECK_ERRNO(ENOENT,
	    request(a.fd, "valenone:a", NETMAP_REQ_VALE_STATS, &st) == -1);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, packets);
	ATF_TP_ADD_TC(tp, drops);
	ATF_TP_ADD_TC(tp, no_port);
	return (atf_no_error());
}
