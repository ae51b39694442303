/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Pipes under netmap-run(1).  A wait without a time limit ends only if the
 * wakeup comes.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "libvale.h"
#include "netmap_port.h"
#include "vale_client.h"
#include "vale_find.h"
#include "wait_until.h"

/* The errno of a registration. */
static int
refused(const char *name, const struct nmreq_register *ask)
{
	struct nmreq_register reg = *ask;
	int error, fd = device();

	if (reg.nr_mode == NR_REG_DEFAULT)
		reg.nr_mode = NR_REG_ALL_NIC;
	error = request(fd, NETMAP_REQ_REGISTER, name, &reg);
	close(fd);
	return (error);
}

/* That of another program: a fork has what its parent has. */
static int
refused_elsewhere(const char *name)
{
	static const struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct vale_client_port cp;
	int error, fd;

	fd = vale_client_connect(vale_find_path());
	ATF_REQUIRE(fd != -1);
	if (vale_client_open(&cp, fd, name, &reg, -1, NULL) == 0) {
		vale_client_close(&cp);
		return (0);
	}
	error = errno;
	close(fd);
	return (error);
}

PID_TEST(registers, "Both ends have the slots that the first has asked for, "
    "and one memory, which is not that of others")
{
	static const struct nmreq_register ask = { .nr_tx_slots = 32,
	    .nr_rx_slots = 64, .nr_extra_bufs = 3 };
	struct port m = port_open("vale0:x{1", &ask);
	struct port s = port_open("vale0:x}1", NULL);
	struct port other = port_open("vale0:x{abc", NULL);
	struct port y = port_open("vale0:y}1", NULL);
	struct nmreq_port_info_get info;

	ATF_CHECK_EQ(32, m.tx->num_slots);
	ATF_CHECK_EQ(64, m.rx->num_slots);
	ATF_CHECK_EQ(64, s.tx->num_slots);
	ATF_CHECK_EQ(32, s.rx->num_slots);
	ATF_CHECK_EQ(32, s.reg.nr_rx_slots);
	ATF_CHECK_EQ(1024, other.reg.nr_tx_slots);
	ATF_CHECK_EQ(1, m.reg.nr_tx_rings);
	ATF_CHECK_EQ(3, m.reg.nr_extra_bufs);
	ATF_CHECK_EQ(0, s.reg.nr_extra_bufs);
	ATF_CHECK_EQ(0, s.nifp->ni_bufs_head);
	ATF_CHECK_STREQ("vale0:x{1", m.nifp->ni_name);
	ATF_CHECK_STREQ("vale0:x}1", s.nifp->ni_name);
	ATF_CHECK_EQ(m.reg.nr_mem_id, s.reg.nr_mem_id);
	ATF_CHECK_EQ(m.reg.nr_mem_id, other.reg.nr_mem_id);
	ATF_CHECK(m.reg.nr_mem_id != y.reg.nr_mem_id);
	ATF_CHECK_EQ(m.reg.nr_memsize, s.reg.nr_memsize);
	ATF_CHECK_EQ(0, request(y.fd, NETMAP_REQ_PORT_INFO_GET, "vale0:x}1",
	    &info));
	ATF_CHECK_EQ(64, info.nr_tx_slots);
	ATF_CHECK_EQ(32, info.nr_rx_slots);
	ATF_CHECK_EQ(m.reg.nr_mem_id, info.nr_mem_id);
	ATF_CHECK_EQ(m.reg.nr_memsize, info.nr_memsize);
	/* One that is not there. */
	memset(&info, 0, sizeof(info));
	ATF_CHECK_EQ(0, request(y.fd, NETMAP_REQ_PORT_INFO_GET, "vale0:x}2",
	    &info));
	ATF_CHECK_EQ(1024, info.nr_tx_slots);
	ATF_CHECK_EQ(m.reg.nr_mem_id, info.nr_mem_id);
	/* A pipe is no port. */
	ATF_CHECK_EQ(0, ports());
	port_close(&m);
	port_close(&s);
	port_close(&other);
	port_close(&y);
}

PID_TEST(refuses, "What is wrong or taken has an errno")
{
	struct nmreq_register reg = { .nr_mode = NR_REG_ALL_NIC };
	struct nmreq_port_hdr hdr = { .nr_hdr_len = 12 };
	struct port p = port_open("vale0:x{1", NULL);

	ATF_CHECK_EQ(EINVAL, refused("vale0:x{", &reg));
	ATF_CHECK_EQ(ENXIO, refused("x", &reg));
	ATF_CHECK_EQ(EBUSY, refused_elsewhere("vale0:x{1"));
	ATF_CHECK_EQ(0, refused_elsewhere("vale0:x}1"));
	reg.nr_mode = NR_REG_PIPE_MASTER;
	ATF_CHECK_EQ(EOPNOTSUPP, refused("vale0:x{2", &reg));
	/* The memory's pipes have up to 1024. */
	reg = (struct nmreq_register){ .nr_tx_slots = 1025 };
	ATF_CHECK_EQ(EINVAL, refused("vale0:x{2", &reg));
	ATF_CHECK_EQ(0, refused("vale0:y{2", &reg));
	ATF_CHECK_EQ(ENXIO, request(p.fd, NETMAP_REQ_PORT_HDR_SET,
	    "vale0:x{1", &hdr));
	ATF_CHECK_EQ(EBUSY, request(p.fd, NETMAP_REQ_REGISTER, "vale0:x}1",
	    &reg));
	/* A head beyond the tail. */
	p.rx->head = p.rx->cur = 3;
	ATF_CHECK_ERRNO(EINVAL, ioctl(p.fd, NIOCRXSYNC, NULL) == -1);
	ATF_CHECK_EQ(0, p.rx->head);
	p.tx->slot[0].buf_idx = UINT32_MAX;
	p.tx->head = p.tx->cur = 1;
	ATF_CHECK_ERRNO(EINVAL, ioctl(p.fd, NIOCTXSYNC, NULL) == -1);
	ATF_CHECK_EQ(0, p.tx->head);
	port_close(&p);
}

PID_TEST(legacy, "NIOCREGIF has the pipe's number in nr_ringid")
{
	struct nmreq nmr = { .nr_name = "vale0:x", .nr_version = NETMAP_API,
	    .nr_flags = NR_REG_PIPE_SLAVE, .nr_ringid = 7 };
	struct port m = port_open("vale0:x{7", NULL), s;

	s.fd = device();
	ATF_REQUIRE_EQ(0, ioctl(s.fd, NIOCREGIF, &nmr));
	ATF_CHECK_EQ(m.reg.nr_mem_id, nmr.nr_arg2);
	ATF_CHECK_STREQ("vale0:x", nmr.nr_name);
	/* In the same memory: a program maps it once. */
	s.nifp = (void *)(m.memory + nmr.nr_offset);
	s.rx = NETMAP_RXRING(s.nifp, 0);
	port_send(&m, 60, 1);
	port_expect(&s, 60, 1);
	close(s.fd);
	port_close(&m);
}

PID_TEST(processes, "Two processes exchange frames both ways, and each sleeps "
    "until the other wakes it")
{
	static const struct nmreq_register small = { .nr_tx_slots = 16,
	    .nr_rx_slots = 8, .nr_flags = NR_NO_TX_POLL };
	struct port p = port_open("vale0:x{1", &small);
	struct port_flow flow = { &p, 100000 };
	pthread_t thread[2];
	int status;
	pid_t pid = fork();

	ATF_REQUIRE(pid != -1);
	if (pid == 0)
		p = port_open("vale0:x}1", &small);
	ATF_REQUIRE_EQ(0, pthread_create(&thread[0], NULL, port_flow_receive,
	    &flow));
	ATF_REQUIRE_EQ(0, pthread_create(&thread[1], NULL, port_flow_send,
	    &flow));
	ATF_REQUIRE_EQ(0, pthread_join(thread[0], NULL));
	ATF_REQUIRE_EQ(0, pthread_join(thread[1], NULL));
	if (pid == 0)
		_exit(0);
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_CHECK_EQ(0, status);
	port_close(&p);
}

/* A process that takes frames, and may be killed at any time. */
static void
receive_until_killed(void)
{
	struct port s = port_open("vale0:x}1", NULL);
	struct pollfd pfd = { .fd = s.fd, .events = POLLIN };
	struct netmap_slot *slot;

	for (;;) {
		(void)poll(&pfd, 1, -1);
		while (!nm_ring_empty(s.rx)) {
			slot = &s.rx->slot[s.rx->head];
			/* Seen by its sender, in the slot that comes back. */
			slot->ptr = slot->ptr + 1;
			s.rx->head = s.rx->cur = nm_ring_next(s.rx,
			    s.rx->head);
		}
	}
}

/* Open an end and close it.  Returns the slots of its transmit ring. */
static uint32_t
slots_now(const char *name)
{
	struct port p = port_open(name, NULL);
	const uint32_t n = p.tx->num_slots;

	port_close(&p);
	return (n);
}

PID_TEST(killed, "An end whose program is killed, again and again, loses no "
    "frame: who opens it next goes on")
{
	static const struct nmreq_register small = { .nr_tx_slots = 64 };
	struct port m = port_open("vale0:x{1", &small), s;
	struct pollfd pfd = { .fd = m.fd, .events = POLLOUT };
	unsigned int i, seq = 0, turn;
	int status;
	pid_t pid;

	for (turn = 0; turn < 30; turn++) {
		pid = fork();
		ATF_REQUIRE(pid != -1);
		if (pid == 0)
			receive_until_killed();
		/* Until it has taken many, and is in the midst of more. */
		for (i = 0; i < 500; i++) {
			while (nm_ring_empty(m.tx))
				ATF_REQUIRE_EQ(1, poll(&pfd, 1, -1));
			port_put(&m, 60, seq++);
			ATF_REQUIRE_EQ(0, ioctl(m.fd, NIOCTXSYNC, NULL));
		}
		ATF_REQUIRE_EQ(0, kill(pid, SIGKILL));
		ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	}
	/* What is left are the last ones, in order. */
	s = port_open("vale0:x}1", NULL);
	ATF_REQUIRE_EQ(0, ioctl(s.fd, NIOCRXSYNC, NULL));
	i = nm_ring_space(s.rx);
	for (seq -= i; i > 0; i--)
		port_expect(&s, 60, seq++);
	ATF_CHECK_EQ(0, port_take(&s));
	ATF_REQUIRE_EQ(0, ioctl(s.fd, NIOCRXSYNC, NULL));
	ATF_REQUIRE_EQ(0, ioctl(m.fd, NIOCTXSYNC, NULL));
	ATF_CHECK_EQ(63, nm_ring_space(m.tx));
	/* And the other end is opened again, too. */
	port_send(&m, 60, 1);
	port_put(&m, 60, 2);
	port_close(&m);
	m = port_open("vale0:x{1", NULL);
	port_send(&m, 60, 3);
	port_expect(&s, 60, 1);
	port_expect(&s, 60, 3);
	port_close(&m);
	port_close(&s);
	/*
	 * When both have gone, which valed sees in any order, nothing is left.
	 */
	wait_until(slots_now("vale0:x{1") == 1024, "a new pipe");
}

/* Move a frame from the port's receive ring into a pipe: exchange buffers. */
static void
forward(struct port *in, struct port *out)
{
	struct netmap_slot *rs = &in->rx->slot[in->rx->head];
	struct netmap_slot *ts = &out->tx->slot[out->tx->head];
	const uint32_t idx = ts->buf_idx;

	ATF_REQUIRE(!nm_ring_empty(out->tx));
	ts->buf_idx = rs->buf_idx;
	ts->len = rs->len;
	ts->flags = rs->flags | NS_BUF_CHANGED;
	rs->buf_idx = idx;
	rs->flags = NS_BUF_CHANGED;
	in->rx->head = in->rx->cur = nm_ring_next(in->rx, in->rx->head);
	out->tx->head = out->tx->cur = nm_ring_next(out->tx, out->tx->head);
}

/* Balance `n' frames of `s' over both pipes, and receive them there. */
static void
balance(struct port *s, struct port *in, struct port pipes[2],
    struct port ends[2], unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		port_send(s, 60 + i % 100, i);
		wait_until(ioctl(in->fd, NIOCRXSYNC, NULL) == 0 &&
		    !nm_ring_empty(in->rx), "frame %u", i);
		forward(in, &pipes[i % 2]);
		ATF_REQUIRE_EQ(0, ioctl(pipes[i % 2].fd, NIOCTXSYNC, NULL));
		port_expect(&ends[i % 2], 60 + i % 100, i);
		ATF_REQUIRE_EQ(0, ioctl(ends[i % 2].fd, NIOCRXSYNC, NULL));
	}
}

static void
see(const struct netmap_ring *ring, uint8_t *seen, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < ring->num_slots; i++) {
		ATF_REQUIRE(ring->slot[i].buf_idx < n);
		ATF_CHECK_EQ(0, seen[ring->slot[i].buf_idx]++);
	}
}

/* No buffer is in two slots: of rings that have none in flight. */
static void
check_buffers(struct port *in, struct port pipes[2])
{
	const uint32_t n = in->reg.nr_memsize / 2048;
	uint8_t *seen = calloc(n, 1);
	unsigned int i;

	ATF_REQUIRE(seen != NULL);
	see(in->tx, seen, n);
	see(in->rx, seen, n);
	for (i = 0; i < 2; i++) {
		ATF_REQUIRE_EQ(0, ioctl(pipes[i].fd, NIOCTXSYNC, NULL));
		see(pipes[i].tx, seen, n);
		/* The other end's, in the same memory. */
		see(pipes[i].rx, seen, n);
	}
	free(seen);
}

PID_TEST(balances, "Frames go from a port's ring into its pipes without a "
    "copy; pipes go on without the port, and it finds them again")
{
	static const char *const names[] = { "vale0:in{0", "vale0:in{1",
	    "vale0:in}0", "vale0:in}1" };
	struct port in = port_open("vale0:in", NULL), pipes[2], ends[2];
	struct port s = port_open("vale0:s", NULL);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		pipes[i] = port_open(names[i], NULL);
		ends[i] = port_open(names[2 + i], NULL);
		ATF_CHECK_EQ(in.reg.nr_mem_id, pipes[i].reg.nr_mem_id);
		ATF_CHECK_EQ(in.reg.nr_mem_id, ends[i].reg.nr_mem_id);
		ATF_CHECK_EQ(in.reg.nr_memsize, ends[i].reg.nr_memsize);
	}
	balance(&s, &in, pipes, ends, 5000);
	check_buffers(&in, pipes);
	/* Without the port. */
	port_close(&in);
	wait_until(ports() == 1, "%u", ports());
	port_send(&pipes[0], 60, 1);
	port_expect(&ends[0], 60, 1);
	ATF_REQUIRE_EQ(0, ioctl(ends[0].fd, NIOCRXSYNC, NULL));
	/* One pipe has gone for a while: its buffers are in other slots. */
	port_close(&pipes[1]);
	port_close(&ends[1]);
	in = port_open("vale0:in", NULL);
	ATF_CHECK_EQ(in.reg.nr_mem_id, pipes[0].reg.nr_mem_id);
	pipes[1] = port_open(names[1], NULL);
	ends[1] = port_open(names[3], NULL);
	ATF_CHECK_EQ(in.reg.nr_mem_id, pipes[1].reg.nr_mem_id);
	check_buffers(&in, pipes);
	balance(&s, &in, pipes, ends, 5000);
	check_buffers(&in, pipes);
	for (i = 0; i < 2; i++) {
		port_close(&pipes[i]);
		port_close(&ends[i]);
	}
	port_close(&in);
	port_close(&s);
}

PID_TEST(first, "A pipe that is opened before its port is in the port's "
    "memory; not if the port needs another")
{
	static const struct nmreq_register extra = { .nr_extra_bufs = 1 };
	struct port end = port_open("vale0:in}0", NULL), in, a, z;
	struct nmreq_register reg = { .nr_mem_id = 0 };

	in = port_open("vale0:in", NULL);
	ATF_CHECK_EQ(in.reg.nr_mem_id, end.reg.nr_mem_id);
	a = port_open("vale0:in{0", NULL);
	ATF_CHECK_EQ(in.reg.nr_mem_id, a.reg.nr_mem_id);
	port_send(&a, 60, 1);
	port_expect(&end, 60, 1);
	port_close(&in);
	wait_until(ports() == 0, "%u", ports());
	in = port_open("vale0:in", &extra);
	ATF_CHECK(in.reg.nr_mem_id != end.reg.nr_mem_id);
	/* New pipes are there. */
	z = port_open("vale0:in{1", NULL);
	ATF_CHECK_EQ(in.reg.nr_mem_id, z.reg.nr_mem_id);
	port_close(&z);
	/* Any name, if the memory is named: "lb -p zeek:2". */
	reg.nr_mem_id = in.reg.nr_mem_id;
	z = port_open("zeek{0", &reg);
	ATF_CHECK_EQ(in.reg.nr_mem_id, z.reg.nr_mem_id);
	port_close(&a);
	a = port_open("zeek}0", NULL);
	ATF_CHECK_EQ(in.reg.nr_mem_id, a.reg.nr_mem_id);
	port_send(&z, 60, 1);
	port_expect(&a, 60, 1);
	port_close(&a);
	port_close(&z);
	port_close(&in);
	port_close(&end);
}

PID_TEST(dies, "When valed has died, frames still pass; a sync that moves "
    "nothing fails")
{
	struct port m = port_open("vale0:x{1", NULL);
	struct port s = port_open("vale0:x}1", NULL);
	int status;

	valed_kill(valed, SIGKILL);
	ATF_REQUIRE_EQ(valed, waitpid(valed, &status, 0));
	valed_killed = true;
	/* Its other processes may hold a connection for a moment. */
	wait_until(ioctl(s.fd, NIOCRXSYNC, NULL) == -1, "no error");
	ATF_CHECK_ERRNO(ENXIO, ioctl(s.fd, NIOCRXSYNC, NULL) == -1);
	ATF_CHECK_ERRNO(ENXIO, ioctl(m.fd, NIOCTXSYNC, NULL) == -1);
	port_send(&m, 60, 1);
	port_expect(&s, 60, 1);
	port_close(&m);
	port_close(&s);
}

TEST_PROGRAM
