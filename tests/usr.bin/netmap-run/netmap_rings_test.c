/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Ports with several rings under netmap-run(1), and several descriptors of one
 * port.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "libvale.h"
#include "netmap_port.h"
#include "wait_until.h"

/* A descriptor with one ring pair of a port of `rings'. */
static struct port
one_open(const char *name, unsigned int rings, unsigned int ring)
{
	const struct nmreq_register reg = { .nr_mode = NR_REG_ONE_NIC,
	    .nr_tx_rings = rings, .nr_rx_rings = rings, .nr_ringid = ring };

	return (port_open(name, &reg));
}

/* With all of them. */
static struct port
all_open(const char *name, unsigned int rings)
{
	const struct nmreq_register reg = { .nr_tx_rings = rings };

	return (port_open(name, &reg));
}

/* The errno of a registration, which must not stay. */
static int
registers(const char *name, const struct nmreq_register *reg)
{
	struct nmreq_register r = *reg;
	int error, fd = device();

	error = request(fd, NETMAP_REQ_REGISTER, name, &r);
	close(fd);
	return (error);
}

/* What netmap's libraries look for: the first and the number of the rings. */
static void
check_rings(const struct port *p, unsigned int first, unsigned int n)
{
	const unsigned int all = p->nifp->ni_tx_rings;
	unsigned int i;

	ATF_CHECK_EQ(all, p->nifp->ni_rx_rings);
	for (i = 0; i < all; i++) {
		ATF_CHECK_EQ(i >= first && i < first + n,
		    p->nifp->ring_ofs[i] != 0);
		ATF_CHECK_EQ(i >= first && i < first + n,
		    p->nifp->ring_ofs[all + i] != 0);
	}
	ATF_CHECK_EQ(first, p->tx->ringid);
	ATF_CHECK_EQ(first, p->rx->ringid);
}

PID_TEST(shared, "Descriptors of one port share its rings and memory; each "
    "has what it asked for, and the port is closed with the last")
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ONE_NIC,
	    .nr_tx_rings = 3, .nr_rx_rings = 2, .nr_ringid = 1,
	    .nr_tx_slots = 64, .nr_extra_bufs = 2 };
	struct nmreq_port_info_get info;
	struct nmreq_port_hdr hdr = { .nr_hdr_len = 12 };
	struct port p[4], b;
	uint32_t buf;
	unsigned int i, n;

	p[0] = port_open("vale0:a", &reg);
	/* The larger number, in both directions. */
	ATF_CHECK_EQ(3, p[0].reg.nr_tx_rings);
	ATF_CHECK_EQ(3, p[0].reg.nr_rx_rings);
	ATF_CHECK_EQ(2, p[0].reg.nr_extra_bufs);
	for (n = 0, buf = p[0].nifp->ni_bufs_head; buf != 0; n++)
		buf = *(uint32_t *)(void *)NETMAP_BUF(p[0].tx, buf);
	ATF_CHECK_EQ(2, n);
	/* As nmport_clone() does: with what was granted. */
	reg = p[0].reg;
	reg.nr_ringid = 2;
	p[1] = port_open("vale0:a", &reg);
	p[2] = all_open("vale0:a", 1);
	p[3] = one_open("vale0:a", 0, 1);
	ATF_CHECK_EQ(1, ports());
	for (i = 1; i < 4; i++) {
		ATF_CHECK_EQ(p[0].reg.nr_mem_id, p[i].reg.nr_mem_id);
		ATF_CHECK_EQ(p[0].reg.nr_memsize, p[i].reg.nr_memsize);
		ATF_CHECK_EQ(3, p[i].reg.nr_tx_rings);
		ATF_CHECK_EQ(64, p[i].reg.nr_tx_slots);
		ATF_CHECK_EQ(0, p[i].reg.nr_extra_bufs);
	}
	ATF_CHECK_EQ(0, p[1].nifp->ni_bufs_head);
	ATF_CHECK_EQ(0, p[2].nifp->ni_bufs_head);
	check_rings(&p[0], 1, 1);
	check_rings(&p[1], 2, 1);
	check_rings(&p[2], 0, 3);
	ATF_CHECK_EQ(0, request(p[1].fd, NETMAP_REQ_PORT_INFO_GET, "vale0:a",
	    &info));
	ATF_CHECK_EQ(3, info.nr_tx_rings);
	/* Of the port: through any of them. */
	ATF_CHECK_EQ(0, request(p[1].fd, NETMAP_REQ_PORT_HDR_SET, "vale0:a",
	    &hdr));
	hdr.nr_hdr_len = 0;
	ATF_CHECK_EQ(0, request(p[2].fd, NETMAP_REQ_PORT_HDR_GET, "vale0:a",
	    &hdr));
	ATF_CHECK_EQ(12, hdr.nr_hdr_len);
	hdr.nr_hdr_len = 0;
	ATF_CHECK_EQ(0, request(p[0].fd, NETMAP_REQ_PORT_HDR_SET, "vale0:a",
	    &hdr));
	/* The first leaves, the others stay. */
	b = all_open("vale0:b", 3);
	port_close(&p[0]);
	port_close(&p[3]);
	port_send(&p[1], 60, 1);
	b.rx = NETMAP_RXRING(b.nifp, 2);
	port_expect(&b, 60, 1);
	p[0] = one_open("vale0:a", 0, 0);
	port_close(&p[1]);
	port_close(&p[2]);
	ATF_CHECK_EQ(2, ports());
	port_send(&p[0], 60, 2);
	b.rx = NETMAP_RXRING(b.nifp, 0);
	port_expect(&b, 60, 2);
	port_close(&p[0]);
	wait_until(ports() == 1, "%u", ports());
	/* It is another one now. */
	p[0] = all_open("vale0:a", 2);
	ATF_CHECK_EQ(2, p[0].reg.nr_rx_rings);
	port_close(&p[0]);
	port_close(&b);
}

PID_TEST(refuses, "Rings that there are not, that are taken, and ports of "
    "others have an errno")
{
	struct nmreq_register all = { .nr_mode = NR_REG_ALL_NIC };
	struct nmreq_register one = { .nr_mode = NR_REG_ONE_NIC };
	struct port p, q;
	struct vale_desc *d;

	all.nr_rx_rings = VALE_RINGS_MAX + 1;
	ATF_CHECK_EQ(EINVAL, registers("vale0:a", &all));
	all.nr_rx_rings = 4;
	all.nr_tx_slots = VALE_SLOTS_MAX / 4 + 1;
	ATF_CHECK_EQ(EINVAL, registers("vale0:a", &all));
	one.nr_ringid = 1;
	ATF_CHECK_EQ(EINVAL, registers("vale0:a", &one));
	one.nr_tx_rings = 2;
	one.nr_flags = NR_EXCLUSIVE;
	p = port_open("vale0:a", &one);
	all = (struct nmreq_register){ .nr_mode = NR_REG_ALL_NIC };
	ATF_CHECK_EQ(EBUSY, registers("vale0:a", &all));
	one.nr_flags = 0;
	ATF_CHECK_EQ(EBUSY, registers("vale0:a", &one));
	one.nr_ringid = 2;
	ATF_CHECK_EQ(EINVAL, registers("vale0:a", &one));
	one.nr_mode = NR_REG_SW;
	ATF_CHECK_EQ(EOPNOTSUPP, registers("vale0:a", &one));
	/* The other ring is free, and is wanted alone. */
	one.nr_mode = NR_REG_ONE_NIC;
	one.nr_ringid = 0;
	q = port_open("vale0:a", &one);
	one.nr_flags = NR_EXCLUSIVE;
	ATF_CHECK_EQ(EBUSY, registers("vale0:a", &one));
	port_close(&q);
	one.nr_flags = NR_EXCLUSIVE | NR_TX_RINGS_ONLY;
	q = port_open("vale0:a", &one);
	one.nr_flags = NR_EXCLUSIVE | NR_RX_RINGS_ONLY;
	ATF_CHECK_EQ(0, registers("vale0:a", &one));
	port_close(&q);
	port_close(&p);
	wait_until(ports() == 0, "%u", ports());
	/* A port that the process has by other means is as another's. */
	d = vale_open("vale0:a", NULL);
	ATF_REQUIRE(d != NULL);
	ATF_CHECK_EQ(EBUSY, registers("vale0:a", &all));
	vale_close(d);
	wait_until(ports() == 0, "%u", ports());
	ATF_CHECK_EQ(0, registers("vale0:a", &all));
}

PID_TEST(wakes, "A descriptor with one ring is ready for frames of that "
    "ring only, one with all for any; space is of a ring, too")
{
	struct port a[2] = { one_open("vale0:a", 2, 0),
	    one_open("vale0:a", 2, 1) };
	struct port b[2] = { one_open("vale0:b", 2, 0),
	    one_open("vale0:b", 2, 1) };
	struct port all = all_open("vale0:b", 0);
	struct pollfd pfd[2];
	struct epoll_event ev = { .events = EPOLLIN };
	unsigned int i, k;
	int epfd = epoll_create1(0);
	pthread_t t;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < 2; i++)
			pfd[i] = (struct pollfd){ .fd = b[i].fd,
			    .events = POLLIN };
		ATF_CHECK_EQ(0, poll(pfd, 2, 0));
		t = later(send_later, &a[k]);
		ATF_CHECK_EQ(1, poll(pfd, 2, -1));
		pthread_join(t, NULL);
		ATF_CHECK_EQ(POLLIN, pfd[k].revents);
		ATF_CHECK_EQ(0, pfd[!k].revents);
		ATF_CHECK_EQ(0, poll_one(b[!k].fd, POLLIN, 10));
		ATF_CHECK_EQ(POLLIN, poll_one(all.fd, POLLIN, -1));
		port_expect(&b[k], 60, 9);
		ATF_CHECK_EQ(0, poll_one(all.fd, POLLIN, 0));
		t = later(send_later, &a[k]);
		ATF_CHECK_EQ(POLLIN, poll_one(all.fd, POLLIN, -1));
		pthread_join(t, NULL);
		port_expect(&b[k], 60, 9);
	}
	ATF_REQUIRE_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, all.fd, &ev));
	ATF_CHECK_EQ(0, epoll_wait(epfd, &ev, 1, 0));
	t = later(send_later, &a[1]);
	ATF_CHECK_EQ(1, epoll_wait(epfd, &ev, 1, -1));
	pthread_join(t, NULL);
	port_expect(&b[1], 60, 9);
	close(epfd);
	/* A sync of all rings shows and sends what any has. */
	all.tx = NETMAP_TXRING(all.nifp, 1);
	port_send(&all, 60, 3);
	port_expect(&a[1], 60, 3);
	all.tx = NETMAP_TXRING(all.nifp, 0);
	port_put(&all, 60, 4);
	all.tx = NETMAP_TXRING(all.nifp, 1);
	port_put(&all, 60, 5);
	ATF_CHECK_EQ(POLLOUT, poll_one(all.fd, POLLOUT, -1));
	port_expect(&a[0], 60, 4);
	port_expect(&a[1], 60, 5);
	/* A full ring waits for its own space. */
	for (i = 0; i < 10000; i++) {
		if (nm_ring_empty(a[1].tx))
			ATF_CHECK_EQ(POLLOUT, poll_one(a[1].fd, POLLOUT, -1));
		port_put(&a[1], 60, i);
	}
	ATF_CHECK_EQ(0, ioctl(a[1].fd, NIOCTXSYNC, NULL));
	for (i = 0; i < 2; i++) {
		port_close(&a[i]);
		port_close(&b[i]);
	}
	port_close(&all);
}

PID_TEST(many, "A port with the most rings that there are: each sends, and "
    "each is waited for")
{
	struct port a = all_open("vale0:a", VALE_RINGS_MAX);
	struct port b = all_open("vale0:b", VALE_RINGS_MAX);
	unsigned int i;

	for (i = 0; i < VALE_RINGS_MAX; i++) {
		ATF_CHECK_EQ(0, poll_one(b.fd, POLLIN, 0));
		a.tx = NETMAP_TXRING(a.nifp, i);
		port_send(&a, 60, i);
		ATF_CHECK_EQ(POLLIN, poll_one(b.fd, POLLIN, -1));
		b.rx = NETMAP_RXRING(b.nifp, i);
		port_expect(&b, 60, i);
	}
	port_close(&a);
	port_close(&b);
}

/* Frames from a ring, each ring with a thread that sends and one that gets. */
struct flow {
	struct port	 from;
	struct port	 to;
	unsigned int	 frames;
};

static void *
flow_send(void *arg)
{
	struct flow *flow = arg;
	unsigned int i;

	for (i = 0; i < flow->frames; i++) {
		if (nm_ring_empty(flow->from.tx))
			ATF_REQUIRE_EQ(POLLOUT, poll_one(flow->from.fd, POLLOUT,
			    -1));
		port_put(&flow->from, 60, i);
	}
	ATF_REQUIRE_EQ(0, ioctl(flow->from.fd, NIOCTXSYNC, NULL));
	return (NULL);
}

static void *
flow_receive(void *arg)
{
	struct flow *flow = arg;
	struct port *p = &flow->to;
	const struct netmap_slot *slot;
	unsigned int i;

	for (i = 0; i < flow->frames; i++) {
		while (nm_ring_empty(p->rx))
			ATF_REQUIRE_EQ(POLLIN, poll_one(p->fd, POLLIN, -1));
		slot = &p->rx->slot[p->rx->head];
		ATF_REQUIRE_EQ((uint8_t)i,
		    ((uint8_t *)NETMAP_BUF(p->rx, slot->buf_idx))[59]);
		p->rx->head = p->rx->cur = nm_ring_next(p->rx, p->rx->head);
	}
	return (NULL);
}

PID_TEST(threads, "Threads with a ring each use two ports at once, in order "
    "and without loss; descriptors come and go meanwhile")
{
	static const struct nmreq_register reg = { .nr_mode = NR_REG_ONE_NIC,
	    .nr_tx_rings = 3, .nr_rx_slots = 4096, .nr_flags = NR_NO_TX_POLL };
	struct flow flow[3];
	pthread_t thread[6];
	struct nmreq_register r;
	struct port other;
	unsigned int i;

	for (i = 0; i < nitems(flow); i++) {
		r = reg;
		r.nr_ringid = i;
		flow[i].from = port_open("vale0:a", &r);
		flow[i].to = port_open("vale0:b", &r);
		flow[i].frames = 4000;
	}
	for (i = 0; i < nitems(flow); i++) {
		thread[i] = later(flow_receive, &flow[i]);
		thread[3 + i] = later(flow_send, &flow[i]);
	}
	for (i = 0; i < 100; i++) {
		other = one_open("vale0:b", 0, i % 3);
		port_close(&other);
	}
	for (i = 0; i < nitems(thread); i++)
		ATF_REQUIRE_EQ(0, pthread_join(thread[i], NULL));
	for (i = 0; i < nitems(flow); i++) {
		port_close(&flow[i].from);
		port_close(&flow[i].to);
	}
	wait_until(ports() == 0, "%u", ports());
}

PID_TEST(forks, "A child has the ports of its parent, and opens descriptors "
    "of them; what it closes stays open there")
{
	struct port a = one_open("vale0:a", 2, 0), c;
	struct port b = one_open("vale0:b", 2, 1);
	pid_t pid;
	int status;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		c = one_open("vale0:a", 0, 1);
		port_send(&c, 60, 1);
		port_close(&c);
		port_close(&a);
		_exit(0);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_CHECK_EQ(0, status);
	port_expect(&b, 60, 1);
	ATF_CHECK_EQ(2, ports());
	port_send(&b, 60, 2);
	c = one_open("vale0:a", 0, 1);
	port_expect(&c, 60, 2);
	port_close(&a);
	port_send(&c, 60, 3);
	port_expect(&b, 60, 3);
	port_close(&c);
	port_close(&b);
	wait_until(ports() == 0, "%u", ports());
}

TEST_PROGRAM
