/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A netmap program that believes its rings, as all do, while another process
 * has its memory and writes anything there, at any time.  It must not be led to
 * touch anything outside of the memory.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/systm.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "netmap_port.h"
#include "wait_until.h"
#include "vale_client.h"
#include "vale_find.h"
#include "vale_layout.h"

#define	TURNS	50
#define	ROUNDS	20

/* Write to the memory until killed: everywhere, and most to where rings are. */
static void __attribute__((__noreturn__))
scribble(int fd, const struct nmreq_register *pipe, size_t size)
{
	const size_t at = VALE_WINDOW_AT(pipe->nr_offset);
	uint32_t *p, seed = 7, where, value;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		_exit(1);
	/* The ports are its parent's only. */
	syscall(SYS_close_range, 3, ~0u, 0);
	for (;;) {
		switch (test_below(&seed, 4)) {
		case 0:		/* CSBs, and rings as the switch sees them */
			where = test_below(&seed, 40 * 1024);
			break;
		case 1:		/* what is under the windows */
			where = at + test_below(&seed, 2 * VALE_WINDOW_ALIGN);
			break;
		case 2:		/* the pipe's indexes and rings */
			where = at + 2 * VALE_WINDOW_ALIGN +
			    test_below(&seed, 64 * 1024);
			break;
		default:
			where = test_below(&seed, size - sizeof(*p));
			break;
		}
		value = test_chance(&seed, 1, 2) ? test_below(&seed, 1200) :
		    test_random(&seed);
		atomic_store_32(&p[where / sizeof(*p)], value);
	}
}

/* Whether a ring is as it was. */
static void
check_ring(const struct port *p, const struct netmap_ring *ring, int64_t bufs)
{
	ATF_REQUIRE_EQ(64, ring->num_slots);
	ATF_REQUIRE_EQ(VALE_BUF_SIZE, ring->nr_buf_size);
	ATF_REQUIRE_EQ(bufs, (char *)ring - p->memory + ring->buf_ofs);
	ATF_REQUIRE(ring->head < 64 && ring->cur < 64 && ring->tail < 64);
}

/* Whether slots that are the program's have buffers of the memory. */
static void
check_slots(const struct port *p, const struct netmap_ring *ring)
{
	const char *buf;
	uint32_t i;

	for (i = ring->head; i != ring->tail; i = (i + 1) % 64) {
		buf = NETMAP_BUF(ring, ring->slot[i].buf_idx);
		ATF_REQUIRE(buf >= p->memory && buf + VALE_BUF_SIZE <=
		    p->memory + p->reg.nr_memsize);
		if (ring == p->rx)
			ATF_REQUIRE(ring->slot[i].len <= VALE_BUF_SIZE);
	}
}

/* Send from every slot that there is, and take all frames. */
static void
use(struct port *p, int64_t bufs, unsigned int *sent, unsigned int *got)
{
	struct netmap_slot *slot;

	check_ring(p, p->tx, bufs);
	check_slots(p, p->tx);
	for (; !nm_ring_empty(p->tx); ++*sent) {
		slot = &p->tx->slot[p->tx->head];
		memset(NETMAP_BUF(p->tx, slot->buf_idx), 0xff, 60);
		slot->len = 60;
		slot->flags = 0;
		p->tx->head = p->tx->cur = nm_ring_next(p->tx, p->tx->head);
	}
	(void)ioctl(p->fd, NIOCTXSYNC, NULL);
	(void)ioctl(p->fd, NIOCRXSYNC, NULL);
	check_ring(p, p->rx, bufs);
	check_slots(p, p->rx);
	for (; !nm_ring_empty(p->rx); ++*got) {
		slot = &p->rx->slot[p->rx->head];
		memset(NETMAP_BUF(p->rx, slot->buf_idx), 0, slot->len);
		p->rx->head = p->rx->cur = nm_ring_next(p->rx, p->rx->head);
	}
	(void)poll_one(p->fd, POLLIN | POLLOUT, 0);
}

static const struct nmreq_register small = { .nr_tx_slots = 64,
    .nr_rx_slots = 64 };

/*
 * What one process does with the port `in', its pipe, and port `s', for a
 * while.
 */
static void
round_trip(struct port *s, unsigned int sent[4], unsigned int got[4])
{
	struct port in = port_open("vale0:in", &small), pipe[2];
	struct netmap_if *nifp;
	unsigned int i, k;
	int64_t bufs;

	pipe[0] = port_open("vale0:in{1", &small);
	pipe[1] = port_open("vale0:in}1", &small);
	ATF_REQUIRE_EQ(in.reg.nr_mem_id, pipe[0].reg.nr_mem_id);
	bufs = (char *)in.tx - in.memory + in.tx->buf_ofs;
	nifp = (void *)(in.memory + pipe[0].reg.nr_offset);
	for (i = 0; i < TURNS; i++) {
		use(s, bufs, &sent[3], &got[3]);
		use(&in, bufs, &sent[0], &got[0]);
		for (k = 0; k < 2; k++)
			use(&pipe[k], bufs, &sent[1 + k], &got[1 + k]);
		ATF_REQUIRE(NETMAP_RXRING(in.nifp, 0) == in.rx);
		/* Through the mapping of another descriptor, too. */
		check_ring(&in, NETMAP_TXRING(nifp, 0), bufs);
		sched_yield();
	}
	for (k = 0; k < 2; k++)
		port_close(&pipe[k]);
	port_close(&in);
	/* valed may be behind. */
	wait_until(ports() == 1, "%u ports", ports());
}

/*
 * Whether frames have passed: the port's, those through the pipe, those of s.
 */
static bool
enough(const unsigned int sent[4], const unsigned int got[4])
{
	unsigned int k;

	for (k = 0; k < 4; k++)
		if (sent[k] <= ROUNDS)
			return (false);
	return (got[1] + got[2] > 0 && got[3] > 0);
}

PID_TEST(believes, "Whatever another process with the same memory writes to "
    "it, a program's rings stay where and as they are")
{
	struct port in = port_open("vale0:in", &small);
	struct port pipe = port_open("vale0:in{1", &small);
	struct port s = port_open("vale0:s", &small);
	struct nmreq_register null = { .nr_mode = NR_REG_NULL,
	    .nr_mem_id = in.reg.nr_mem_id };
	unsigned int k, got[4] = { 0 }, sent[4] = { 0 };
	struct vale_client_port other;
	int ready[2], status;
	pid_t pid;
	char c;

	/* A program without the library, of the same user. */
	ATF_REQUIRE_EQ(0, vale_client_open(&other, vale_client_connect(
	    vale_find_path()), "any", &null, -1, NULL));
	ATF_REQUIRE_EQ(0, pipe2(ready, O_CLOEXEC));
	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0)
		scribble(other.cp_memory, &pipe.reg, other.cp_reg.nr_memsize);
	close(ready[1]);
	ATF_REQUIRE_EQ(0, read(ready[0], &c, 1));
	port_close(&pipe);
	port_close(&in);
	wait_until(ports() == 1, "%u ports", ports());
	/* What has come to a standstill goes on when it is opened again. */
	for (k = 0; k < ROUNDS || !enough(sent, got); k++)
		round_trip(&s, sent, got);
	ATF_REQUIRE_EQ(0, waitpid(pid, &status, WNOHANG));
	kill(pid, SIGKILL);
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	vale_client_close(&other);
	port_close(&s);
}

PID_TEST(mapped, "All rings are seen through every mapping of the memory: "
    "one made before, one of a part, one made again")
{
	struct port in = port_open("vale0:in", NULL), m, s;
	struct netmap_if *nifp;
	char *half, *whole;
	uint64_t at;

	whole = mmap(NULL, in.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, in.fd, 0);
	ATF_REQUIRE(whole != MAP_FAILED);
	/* What is not there any more is nobody's. */
	half = mmap(NULL, in.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_SHARED, in.fd, 0);
	ATF_REQUIRE(half != MAP_FAILED);
	ATF_REQUIRE_EQ(0, munmap(half, in.reg.nr_memsize));
	half = mmap(half, in.reg.nr_memsize, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	ATF_REQUIRE(half != MAP_FAILED);
	m = port_open("vale0:in{1", NULL);
	s = port_open("vale0:in}1", NULL);
	nifp = (void *)(whole + m.reg.nr_offset);
	ATF_CHECK_STREQ("vale0:in{1", nifp->ni_name);
	ATF_CHECK_STREQ("vale0:in}1", ((struct netmap_if *)(void *)(in.memory +
	    s.reg.nr_offset))->ni_name);
	ATF_CHECK_EQ(0, half[m.reg.nr_offset]);
	/* One ring, whichever mapping it is used through. */
	m.tx = NETMAP_TXRING(nifp, 0);
	port_send(&m, 60, 1);
	s.rx = NETMAP_RXRING((struct netmap_if *)(void *)(in.memory +
	    s.reg.nr_offset), 0);
	port_expect(&s, 60, 1);
	/* Closed and opened again, the mapping is used as before. */
	port_close(&m);
	m = port_open("vale0:in{1", NULL);
	ATF_CHECK_EQ(0, nifp->ni_bufs_head);
	ATF_CHECK(NETMAP_TXRING(nifp, 0)->head == m.tx->head);
	m.tx = NETMAP_TXRING(nifp, 0);
	port_send(&m, 60, 2);
	port_expect(&s, 60, 2);
	/* From the middle of a window on. */
	at = VALE_WINDOW_AT(m.reg.nr_offset) + VALE_PAGE;
	ATF_REQUIRE_EQ(0, munmap(half, in.reg.nr_memsize));
	half = mmap(NULL, VALE_PAGE, PROT_READ, MAP_SHARED, m.fd, (off_t)at);
	ATF_REQUIRE(half != MAP_FAILED);
	ATF_CHECK_EQ(0, memcmp(half, whole + at, VALE_PAGE));
	ATF_REQUIRE_EQ(0, munmap(half, VALE_PAGE));
	ATF_REQUIRE_EQ(0, munmap(whole, in.reg.nr_memsize));
	port_close(&m);
	port_close(&s);
	port_close(&in);
}

TEST_PROGRAM
