/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Memory of ports and pipes in valed: where everything is, which memory a
 * request means, and what is charged.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "ctl_calls.h"
#include "fail_calls.h"
#include "test.h"
#include "vale_pipe.h"
#include "vale_shared.h"

/* What a peer of a connection has. */
#define	GRANT(peer)	((peer).pe_cc->cc_grant)

#define	REG_SIZE	sizeof(struct nmreq_register)
#define	ALL		.nr_mode = NR_REG_ALL_NIC
#define	SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct peer peers[VALE_PIPES + 2];
static struct peer *const one = &peers[0], *const two = &peers[1];
static struct peer *const three = &peers[2];

static void
check_file(int fd, uint64_t size)
{
	struct stat st;

	ATF_CHECK_EQ(SEALS, fcntl(fd, F_GET_SEALS));
	ATF_REQUIRE_EQ(0, fstat(fd, &st));
	ATF_CHECK_EQ(size, (uint64_t)st.st_size);
}

static struct vale_window
window_of(const struct peer *p)
{
	struct vale_window vv;

	ATF_REQUIRE_EQ((ssize_t)sizeof(vv), pread(p->pe_fds[1], &vv,
	    sizeof(vv), 0));
	return (vv);
}

/*
 * Where everything is.
 */

/* Bytes of a pipe. */
static size_t
pipe_size(uint32_t n)
{
	const uint32_t slots[2] = { n, n };
	struct vale_pipe_layout pl;

	vale_pipe_layout(&pl, slots);
	return (pl.pl_size);
}

/* Bytes of the window of an end. */
static size_t
pipe_window(uint32_t tx_slots, uint32_t rx_slots)
{
	struct vale_window_layout wl;

	vale_window_layout(&wl, 1, tx_slots, rx_slots);
	return (wl.wl_size);
}

static void
check_layout(const struct peer *p, const struct nmreq_register *reg,
    uint32_t extra, uint32_t pipe_slots)
{
	const struct vale_memory *mm = GRANT(*p).gr_memory;
	const struct vale_params params = { .rings = reg->nr_tx_rings,
	    .tx_slots = reg->nr_tx_slots, .rx_slots = reg->nr_rx_slots };
	struct vale_region_layout rl;
	struct vale_window_layout wl;
	size_t at;

	ATF_CHECK_EQ(vale_shared_size(&params, extra), mm->mm_port_size);
	vale_shared_layout(&rl, &params, extra);
	ATF_CHECK_EQ(rl.rl_bufs, mm->mm_bufs);
	at = roundup2(mm->mm_port_size, 4096);
	ATF_CHECK_EQ(at, mm->mm_used);
	ATF_CHECK_EQ(at - mm->mm_port_size, vale_memory_more(mm));
	ATF_CHECK_EQ(at - mm->mm_port_size, shared_last.more);
	ATF_CHECK_EQ(extra, shared_last.extra_bufs);
	ATF_CHECK_EQ(pipe_slots, mm->mm_pipe_slots);
	at += 32 * pipe_size(pipe_slots) + 2048 * 4096;
	at = roundup2(at, 65536);
	ATF_CHECK_EQ(at, mm->mm_windows);
	ATF_CHECK_EQ(at, window_of(p).vv_end);
	at += 32 * 2 * pipe_window(pipe_slots, pipe_slots);
	ATF_CHECK_EQ(at + 8 * 65536, mm->mm_size);
	ATF_CHECK_EQ(mm->mm_size, reg->nr_memsize);
	if (extra == 0 && MAX(reg->nr_tx_slots, reg->nr_rx_slots) <=
	    VALE_PIPE_SLOTS_MAX)
		ATF_CHECK_EQ(mm->mm_size, vale_memory_size(&params));
	ATF_CHECK_EQ(VALE_WINDOW_OFFSET(rl.rl_frames), reg->nr_offset);
	check_file(p->pe_fds[0], mm->mm_size);
	vale_window_layout(&wl, reg->nr_tx_rings, reg->nr_tx_slots,
	    reg->nr_rx_slots);
	check_file(p->pe_fds[1], wl.wl_size);
	ATF_CHECK_EQ(mm->mm_bufs, window_of(p).vv_bufs);
	ATF_CHECK_EQ(0, window_of(p).vv_pipe);
	ATF_CHECK_EQ(extra == 0 ? 0 : VALE_BUF_FIRST + reg->nr_tx_rings *
	    reg->nr_tx_slots, window_of(p).vv_extra);
}

TEST(layout, "The memory of a port has space for all that may come, and no "
    "more; neither it nor the window can change its size")
{
	static const struct {
		struct nmreq_register reg;
		uint16_t	rings;
		uint32_t	tx_slots, rx_slots, pipe_slots;
	} rows[] = {
		{ { ALL }, 1, 1024, 1024, 1024 },
		{ { ALL, .nr_tx_slots = 32, .nr_rx_slots = 64 }, 1, 32, 64,
		    1024 },
		{ { ALL, .nr_tx_slots = 2000, .nr_tx_rings = 3 }, 3, 2000, 1024,
		    2000 },
		{ { ALL, .nr_rx_slots = 2000, .nr_rx_rings = 2,
		    .nr_tx_rings = 1 }, 2, 1024, 2000, 2000 },
		{ { ALL, .nr_rx_slots = 5000, .nr_extra_bufs = 7 }, 1, 1024,
		    5000, 4096 },
	};
	struct nmreq_register reg;
	unsigned int i;

	peers_connect(peers, 1);
	for (i = 0; i < nitems(rows); i++) {
		reg = peer_open(one, "vale0:a", rows[i].reg, -1);
		ATF_CHECK_EQ(rows[i].rings, reg.nr_tx_rings);
		ATF_CHECK_EQ(rows[i].rings, reg.nr_rx_rings);
		ATF_CHECK_EQ(rows[i].tx_slots, reg.nr_tx_slots);
		ATF_CHECK_EQ(rows[i].rx_slots, reg.nr_rx_slots);
		ATF_CHECK_EQ(2 + 2 * rows[i].rings, one->pe_nfds);
		ATF_CHECK_EQ(VALE_MEMORY_FIRST, reg.nr_mem_id);
		check_layout(one, &reg, rows[i].reg.nr_extra_bufs,
		    rows[i].pipe_slots);
		peer_renew(one);
	}
	peers_close(peers, 1);
}

/* What is written at one end is what is read at the other. */
static void
check_pair(int from, int to, char c)
{
	char got = 0;

	ATF_CHECK_EQ(1, send(from, &c, 1, MSG_DONTWAIT));
	ATF_CHECK_EQ(1, recv(to, &got, 1, MSG_DONTWAIT));
	ATF_CHECK_EQ(c, got);
	ATF_CHECK_EQ(-1, recv(to, &got, 1, MSG_DONTWAIT));
}

TEST(kicks, "Each ring has its socket, for the user and for valed, also if "
    "they are given again")
{
	const struct vale_grant_kick *kick;
	unsigned int i, k;

	peers_connect(peers, 1);
	OPEN(one, "vale0:a", ALL, .nr_tx_rings = 3);
	kick = GRANT(*one).gr_kick;
	for (k = 0; k < 2; k++) {
		ATF_REQUIRE_EQ(2 + 2 * 3, one->pe_nfds);
		for (i = 0; i < 3; i++) {
			check_pair(one->pe_fds[2 + 2 * i], kick[i].tx, 'a');
			check_pair(one->pe_fds[3 + 2 * i], kick[i].rx, 'b');
			check_pair(kick[i].tx, one->pe_fds[2 + 2 * i], 'c');
			check_pair(kick[i].rx, one->pe_fds[3 + 2 * i], 'd');
			/* What the switch does. */
			shared_last.wake(shared_last.arg, i, true);
			check_pair(kick[i].rx, one->pe_fds[3 + 2 * i], 'e');
			ATF_CHECK_EQ(1, recv(one->pe_fds[2 + 2 * i],
			    &(char){ 0 }, 1, MSG_DONTWAIT));
			shared_last.wake(shared_last.arg, i, false);
			check_pair(kick[i].tx, one->pe_fds[2 + 2 * i], 'f');
			ATF_CHECK_EQ(1, recv(one->pe_fds[3 + 2 * i],
			    &(char){ 0 }, 1, MSG_DONTWAIT));
		}
		GRANTED(REG_SIZE, 2 + 2 * 3, one, VALE_WIRE_SHARE, "", NULL, 0);
	}
	/* A user that takes none ends nothing. */
	ATF_CHECK_EQ(0, shutdown(one->pe_fds[2], SHUT_RDWR));
	shared_last.wake(shared_last.arg, 0, true);
	peers_close(peers, 1);
}

TEST(pipe_kicks, "Each direction of a pipe has its socket")
{
	struct nmreq_register m, s;

	peers_connect(peers, 3);
	m = OPEN(one, "vale0:a{1", ALL, .nr_tx_slots = 8, .nr_rx_slots = 16);
	s = OPEN(two, "vale0:a}1", ALL);
	ATF_REQUIRE(one->pe_nfds == 4 && two->pe_nfds == 4);
	check_pair(one->pe_fds[2], two->pe_fds[3], 'a');
	check_pair(two->pe_fds[3], one->pe_fds[2], 'b');
	check_pair(two->pe_fds[2], one->pe_fds[3], 'c');
	check_pair(one->pe_fds[3], two->pe_fds[2], 'd');
	/* And its place. */
	ATF_CHECK_EQ(m.nr_memsize, s.nr_memsize);
	ATF_CHECK_EQ(m.nr_mem_id, s.nr_mem_id);
	ATF_CHECK_EQ(8, m.nr_tx_slots);
	ATF_CHECK_EQ(16, m.nr_rx_slots);
	ATF_CHECK_EQ(16, s.nr_tx_slots);
	ATF_CHECK_EQ(8, s.nr_rx_slots);
	ATF_CHECK_EQ(1, s.nr_tx_rings);
	ATF_CHECK_EQ(1, s.nr_rx_rings);
	ATF_CHECK_EQ(m.nr_offset + pipe_window(1024, 1024), s.nr_offset);
	ATF_CHECK_EQ(0, VALE_WINDOW_AT(m.nr_offset) % 65536);
	check_file(one->pe_fds[1], pipe_window(8, 16));
	REFUSED(EBUSY, "this end of the pipe is open already", three,
	    REGISTER("vale0:a{1", ALL));
	REFUSED(EBUSY, "this end of the pipe is open already", three,
	    REGISTER("vale0:a}1", ALL));
	peers_close(peers, 3);
}

/*
 * Which memory is meant.
 */

static const char another_2[] = "memory 2 is another user's, and the request "
    "has no descriptor of it";

/* The memory that a pipe gets, by number and by descriptor; or an error. */
static int
memory_for(struct peer *p, uint16_t id, int fd)
{
	const struct nmreq_register reg = { ALL, .nr_mem_id = id };
	int error = peer_pass(p, NETMAP_REQ_REGISTER, "vale9:new{1", &reg,
	    sizeof(reg), fd);

	if (error != 0)
		return (-error);
	id = ((struct nmreq_register *)p->pe_body)->nr_mem_id;
	peer_renew(p);
	return (id);
}

TEST(ids, "Memories are numbered from 2; a number, or a descriptor, names one: "
    "another user's only by the latter, a monitor's by none")
{
	const int nofd = eventfd(0, EFD_CLOEXEC);
	const int nomem = memfd_create("other", MFD_CLOEXEC |
	    MFD_ALLOW_SEALING);
	struct peer monitor, other, asks;

	peers_connect(peers, 2);
	peer_connect(&monitor, 1001, false);
	peer_connect(&other, 1002, false);
	peer_connect(&asks, 1001, false);
	ATF_CHECK_EQ(2, OPEN(one, "vale0:a", ALL).nr_mem_id);
	ATF_CHECK_EQ(2 + 320 + 1, OPEN(&monitor, "vale0:a", ALL,
	    .nr_flags = NR_MONITOR_TX).nr_mem_id);
	ATF_CHECK_EQ(4, OPEN(two, "vale0:b", ALL).nr_mem_id);
	ATF_CHECK_EQ(2, memory_for(&asks, 2, -1));
	ATF_CHECK_EQ(4, memory_for(&asks, 4, -1));
	ATF_CHECK_EQ(5, memory_for(&asks, 0, -1));
	ATF_CHECK_EQ(-EINVAL, memory_for(&asks, 3, -1));
	ATF_CHECK_EQ(-EINVAL, memory_for(&asks, 5, -1));
	ATF_CHECK_EQ(-EINVAL, memory_for(&asks, 323, -1));
	ATF_CHECK_STREQ("there is no memory 323", asks.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(2, memory_for(&asks, 0, one->pe_fds[0]));
	ATF_CHECK_EQ(4, memory_for(&asks, 0, two->pe_fds[0]));
	/* The number is what counts, if it can be had. */
	ATF_CHECK_EQ(2, memory_for(&asks, 2, two->pe_fds[0]));
	ATF_CHECK_EQ(5, memory_for(&asks, 0, monitor.pe_fds[0]));
	ATF_CHECK_EQ(5, memory_for(&asks, 0, one->pe_fds[1]));
	ATF_CHECK_EQ(5, memory_for(&asks, 0, nofd));
	ATF_CHECK_EQ(5, memory_for(&asks, 0, nomem));
	ATF_CHECK_EQ(2, memory_for(&asks, 2, nomem));
	ATF_CHECK_EQ(-EPERM, memory_for(&other, 2, -1));
	ATF_CHECK_STREQ(another_2, other.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(-EPERM, memory_for(&other, 2, two->pe_fds[0]));
	ATF_CHECK_EQ(-EPERM, memory_for(&other, 2, nomem));
	ATF_CHECK_EQ(2, memory_for(&other, 2, one->pe_fds[0]));
	ATF_CHECK_EQ(2, memory_for(&other, 0, one->pe_fds[0]));
	/* Nor do two. */
	peer_copies = 2;
	ATF_CHECK_EQ(5, memory_for(&asks, 0, one->pe_fds[0]));
	peer_copies = 1;
	/* What cannot be looked at proves nothing. */
	fail_calls("fstat", 1, 1);
	ATF_CHECK_EQ(5, memory_for(&asks, 0, one->pe_fds[0]));
	ATF_CHECK_EQ(1, fail_calls_end());
	/* Nor does a file of this number in another file system. */
	fstat_dev = 1;
	ATF_CHECK_EQ(5, memory_for(&asks, 0, one->pe_fds[0]));
	fstat_dev = 0;
	close(nofd);
	close(nomem);
	peer_end(&monitor);
	peer_end(&other);
	peer_end(&asks);
	peers_close(peers, 2);
}

TEST(named, "A pipe is in the memory of its port; of another user's port only "
    "with that memory; two users' pipes of one name are two")
{
	struct peer other, more;

	peers_connect(peers, 3);
	peer_connect(&other, 1002, false);
	peer_connect(&more, 1002, false);
	OPEN(one, "vale0:a", ALL);
	ATF_CHECK_EQ(2, OPEN(two, "vale0:a{1", ALL).nr_mem_id);
	ATF_CHECK_EQ(2, OPEN(three, "vale0:a}1", ALL).nr_mem_id);
	REFUSED(EPERM, "the port is another user's, and the request has no "
	    "descriptor of its memory", &other, REGISTER("vale0:a{1", ALL));
	peer_renew(three);
	/* It is that pipe's other end. */
	ATF_CHECK_EQ(2, peer_open(&other, "vale0:a}1",
	    (struct nmreq_register){ ALL }, one->pe_fds[0]).nr_mem_id);
	REFUSED(EBUSY, "this end of the pipe is open already", three,
	    REGISTER("vale0:a}1", ALL));
	peer_renew(&other);
	ATF_CHECK_EQ(2, OPEN(three, "vale0:a}1", ALL).nr_mem_id);
	/* Without a port, each has its own; so does a port that comes. */
	peer_renew(three);
	peer_renew(two);
	peer_renew(one);
	ATF_CHECK_EQ(2, OPEN(two, "vale0:a{1", ALL).nr_mem_id);
	ATF_CHECK_EQ(3, OPEN(&other, "vale0:a{1", ALL).nr_mem_id);
	ATF_CHECK_EQ(3, OPEN(&more, "vale0:a}1", ALL).nr_mem_id);
	ATF_CHECK(GRANT(more).gr_pipe == GRANT(other).gr_pipe);
	ATF_CHECK_EQ(2, OPEN(one, "vale0:a", ALL).nr_mem_id);
	ATF_CHECK_EQ(2, OPEN(three, "vale0:a{2", ALL).nr_mem_id);
	peer_end(&other);
	peer_end(&more);
	peers_close(peers, 3);
}

static void
open_pipe(void)
{
	on_open = NULL;
	OPEN(three, "vale0:a{2", ALL);
}

TEST(meanwhile, "A port's slots may have the buffers of a pipe that is made "
    "while the port is opened")
{
	struct vale_memory *mm;

	peers_connect(peers, 3);
	OPEN(two, "vale0:a{1", ALL);
	on_open = open_pipe;
	OPEN(one, "vale0:a", ALL);
	mm = GRANT(*one).gr_memory;
	ATF_CHECK(GRANT(*three).gr_memory == mm);
	ATF_CHECK_EQ(1, more_calls);
	ATF_CHECK(more_desc == GRANT(*one).gr_port);
	ATF_CHECK_EQ(mm->mm_used - mm->mm_port_size, more_last);
	peers_close(peers, 3);
}

TEST(more, "A port's slots may have the buffers of pipes that come later, and "
    "those of pipes that are there, while it is open")
{
	struct vale_memory *mm;
	unsigned int calls;

	peers_connect(peers, 3);
	OPEN(one, "vale0:a", ALL);
	mm = GRANT(*one).gr_memory;
	ATF_CHECK_EQ(0, more_calls);
	OPEN(two, "vale0:a{1", ALL);
	ATF_CHECK_EQ(1, more_calls);
	ATF_CHECK(more_desc == GRANT(*one).gr_port);
	ATF_CHECK_EQ(mm->mm_used - mm->mm_port_size, more_last);
	OPEN(three, "vale0:a{2", ALL, .nr_extra_bufs = 2);
	ATF_CHECK_EQ(3, more_calls);
	ATF_CHECK_EQ(mm->mm_used - mm->mm_port_size, more_last);
	peer_renew(three);
	/* Not when it is closed. */
	peer_renew(one);
	calls = more_calls;
	OPEN(three, "vale0:a{3", ALL, .nr_tx_slots = 7);
	ATF_CHECK_EQ(calls, more_calls);
	OPEN(one, "vale0:a", ALL);
	ATF_CHECK_EQ(mm->mm_used - mm->mm_port_size, shared_last.more);
	ATF_CHECK_EQ(calls, more_calls);
	peers_close(peers, 3);
}

TEST(monitors, "A monitor's memory is not that of the name, whose pipes and "
    "next port are elsewhere")
{
	struct peer other;

	peers_connect(peers, 3);
	peer_connect(&other, 1002, false);
	ATF_CHECK_EQ(2, OPEN(one, "vale0:a", ALL).nr_mem_id);
	ATF_CHECK_EQ(323, OPEN(two, "vale0:a", ALL,
	    .nr_flags = NR_MONITOR_TX | NR_MONITOR_RX).nr_mem_id);
	ATF_CHECK_STREQ("", GRANT(*two).gr_memory->mm_name);
	ATF_CHECK(GRANT(*two).gr_memory->mm_desc == NULL);
	ATF_CHECK_STREQ("vale0:a", GRANT(*one).gr_memory->mm_name);
	ATF_CHECK(GRANT(*one).gr_memory->mm_desc == GRANT(*one).gr_port);
	peer_renew(one);
	ATF_CHECK_EQ(2, OPEN(&other, "vale0:a{1", ALL).nr_mem_id);
	ATF_CHECK_EQ(4, OPEN(three, "vale0:a{1", ALL).nr_mem_id);
	ATF_CHECK_EQ(4, OPEN(one, "vale0:a", ALL).nr_mem_id);
	peer_end(&other);
	peers_close(peers, 3);
}

TEST(fits, "A port that is opened again has the memory of its pipes if it has "
    "the same numbers; any other has its own, and later pipes are there")
{
	static const struct nmreq_register same = { ALL, .nr_tx_slots = 64,
	    .nr_rx_slots = 32, .nr_tx_rings = 2 };
	static const struct nmreq_register others[] = {
		{ ALL, .nr_tx_slots = 65, .nr_rx_slots = 32, .nr_tx_rings = 2 },
		{ ALL, .nr_tx_slots = 64, .nr_rx_slots = 33, .nr_tx_rings = 2 },
		{ ALL, .nr_tx_slots = 64, .nr_rx_slots = 32, .nr_tx_rings = 1 },
		{ ALL, .nr_tx_slots = 64, .nr_rx_slots = 32, .nr_tx_rings = 2,
		    .nr_extra_bufs = 1 },
	};
	unsigned int i;

	peers_connect(peers, 3);
	peer_open(one, "vale0:a", same, -1);
	/* It is not given to who cannot open the port. */
	REFUSED(EBUSY, "the port is open already", two, NETMAP_REQ_REGISTER,
	    "vale0:a", &same, sizeof(same));
	ATF_CHECK(GRANT(*one).gr_memory->mm_port);
	ATF_CHECK_EQ(1, GRANT(*one).gr_memory->mm_refs);
	OPEN(two, "vale0:a{1", ALL);
	for (i = 0; i < nitems(others); i++) {
		peer_renew(one);
		ATF_CHECK_EQ(2, peer_open(one, "vale0:a", same, -1).nr_mem_id);
		ATF_CHECK(GRANT(*one).gr_memory->mm_port);
		peer_renew(one);
		ATF_CHECK_EQ(3, peer_open(one, "vale0:a", others[i],
		    -1).nr_mem_id);
		ATF_CHECK_EQ(3, OPEN(three, "vale0:a{2", ALL).nr_mem_id);
		peer_renew(three);
		/* Its other end is where the first is. */
		ATF_CHECK_EQ(2, OPEN(three, "vale0:a}1", ALL).nr_mem_id);
		peer_renew(three);
	}
	/* That of a port with extra buffers, which may be anywhere. */
	peer_renew(two);
	peer_renew(one);
	ATF_CHECK_EQ(2, OPEN(one, "vale0:a", ALL,
	    .nr_extra_bufs = 1).nr_mem_id);
	OPEN(two, "vale0:a{1", ALL);
	peer_renew(one);
	ATF_CHECK_EQ(3, OPEN(one, "vale0:a", ALL).nr_mem_id);
	peer_renew(one);
	ATF_CHECK_EQ(3, OPEN(one, "vale0:a", ALL,
	    .nr_extra_bufs = 1).nr_mem_id);
	peers_close(peers, 3);
}

/*
 * Places.
 */

TEST(pipes, "A memory has 32 pipes; a place is taken again by one with as many "
    "slots")
{
	char name[VALE_NAME_SIZE];
	uint64_t at;
	unsigned int i;

	peers_connect(peers, VALE_PIPES + 2);
	OPEN(one, "vale0:a", ALL, .nr_tx_slots = 4096);
	at = GRANT(*one).gr_memory->mm_windows;
	for (i = 1; i <= VALE_PIPES; i++) {
		snprintf(name, sizeof(name), "vale0:a{pipe%u", i);
		/* Windows for two ends; no buffer is there. */
		ATF_CHECK_EQ(VALE_WINDOW_OFFSET(at), OPEN(&peers[i], name, ALL,
		    .nr_tx_slots = 4096 - i, .nr_rx_slots = 4096).nr_offset);
		at += 2 * pipe_window(4096, 4096);
		ATF_CHECK(GRANT(peers[i]).gr_pipe->cpi_at + pipe_size(4096) <=
		    GRANT(*one).gr_memory->mm_windows);
	}
	ATF_CHECK_EQ(at, GRANT(*one).gr_memory->mm_size - 8 * 65536);
	REFUSED(ENOSPC, "the memory has no place for another pipe: 32 at most",
	    &peers[i], REGISTER("vale0:a{x", ALL, .nr_tx_slots = 4096,
	    .nr_rx_slots = 4096));
	/* The other end takes none. */
	ATF_CHECK_EQ(4096 - 32, OPEN(&peers[i], "vale0:a}pipe32",
	    ALL).nr_rx_slots);
	peer_renew(&peers[i]);
	at = GRANT(peers[1]).gr_pipe->cpi_at;
	peer_renew(&peers[1]);
	REFUSED(ENOSPC, "the memory has no place for another pipe: 32 at most",
	    &peers[i], REGISTER("vale0:a{x", ALL, .nr_tx_slots = 4095,
	    .nr_rx_slots = 4095));
	REFUSED(ENOSPC, "the memory has no place for another pipe: 32 at most",
	    &peers[i], REGISTER("vale0:a}x", ALL, .nr_tx_slots = 4095,
	    .nr_rx_slots = 4096));
	REFUSED(ENOSPC, "the memory has no place for another pipe: 32 at most",
	    &peers[i], REGISTER("vale0:a{x", ALL, .nr_tx_slots = 4094,
	    .nr_rx_slots = 4096));
	OPEN(&peers[i], "vale0:a}x", ALL, .nr_tx_slots = 4096,
	    .nr_rx_slots = 4095);
	ATF_CHECK_EQ(at, GRANT(peers[i]).gr_pipe->cpi_at);
	/* It has nothing of the former name. */
	OPEN(&peers[1], "vale0:a{x", ALL);
	ATF_CHECK_EQ(at, GRANT(peers[1]).gr_pipe->cpi_at);
	peers_close(peers, VALE_PIPES + 2);
}

TEST(slots, "A pipe has as many slots as its port, unless it says so, and up "
    "to 1024 or the port's")
{
	static const char most[] = "pipes in this memory have up to 1024 slots";
	struct nmreq_register reg;

	peers_connect(peers, 2);
	OPEN(one, "vale0:a", ALL, .nr_tx_slots = 32, .nr_rx_slots = 64);
	reg = OPEN(two, "vale0:a{1", ALL);
	ATF_CHECK_EQ(32, reg.nr_tx_slots);
	ATF_CHECK_EQ(64, reg.nr_rx_slots);
	peer_renew(two);
	reg = OPEN(two, "vale0:a}1", ALL);
	ATF_CHECK_EQ(32, reg.nr_tx_slots);
	ATF_CHECK_EQ(64, reg.nr_rx_slots);
	peer_renew(two);
	reg = OPEN(two, "vale0:a}1", ALL, .nr_rx_slots = 1024);
	ATF_CHECK_EQ(32, reg.nr_tx_slots);
	ATF_CHECK_EQ(1024, reg.nr_rx_slots);
	peer_renew(two);
	REFUSED(EINVAL, most, two, REGISTER("vale0:a{2", ALL,
	    .nr_tx_slots = 1025));
	REFUSED(EINVAL, most, two, REGISTER("vale0:a{2", ALL,
	    .nr_rx_slots = 1025));
	peer_renew(one);
	/* Of no port: the memory is as large as the pipe needs. */
	reg = OPEN(one, "vale0:b}1", ALL, .nr_tx_slots = 3000);
	ATF_CHECK_EQ(3000, reg.nr_tx_slots);
	ATF_CHECK_EQ(1024, reg.nr_rx_slots);
	ATF_CHECK_EQ(3000, GRANT(*one).gr_memory->mm_pipe_slots);
	peer_renew(one);
	OPEN(one, "vale0:b{1", ALL, .nr_rx_slots = 2000, .nr_tx_slots = 20);
	ATF_CHECK_EQ(2000, GRANT(*one).gr_memory->mm_pipe_slots);
	/* A port with more than a pipe can have. */
	peer_renew(one);
	OPEN(one, "vale0:c", ALL, .nr_tx_slots = 5000);
	reg = OPEN(two, "vale0:c{1", ALL);
	ATF_CHECK_EQ(4096, reg.nr_tx_slots);
	ATF_CHECK_EQ(1024, reg.nr_rx_slots);
	peers_close(peers, 2);
}

TEST(nulls, "A memory has eight places for who opens no port, behind all that "
    "else there may be")
{
	struct nmreq_register reg;
	unsigned int i;

	peers_connect(peers, VALE_NULLS + 2);
	reg = OPEN(one, "x", .nr_mode = NR_REG_NULL, .nr_mem_id = 1);
	check_file(one->pe_fds[0], reg.nr_memsize);
	check_file(one->pe_fds[1], 65536);
	ATF_CHECK_EQ(0, window_of(one).vv_extra);
	ATF_CHECK_EQ(0, window_of(one).vv_pipe);
	ATF_CHECK_EQ(GRANT(*one).gr_memory->mm_bufs, window_of(one).vv_bufs);
	for (i = 1; i < VALE_NULLS; i++)
		ATF_CHECK_EQ(reg.nr_memsize - (8 - i) * 65536 +
		    sizeof(struct vale_window), OPEN(&peers[i], "x",
		    .nr_mode = NR_REG_NULL, .nr_mem_id = 2,
		    .nr_extra_bufs = 1).nr_offset);
	ATF_CHECK_EQ(8, GRANT(*one).gr_memory->mm_refs);
	REFUSED(ENOSPC, "the memory has no place", &peers[i], REGISTER("x",
	    .nr_mode = NR_REG_NULL, .nr_mem_id = 2));
	ATF_CHECK_EQ(8, GRANT(*one).gr_memory->mm_refs);
	peer_renew(&peers[3]);
	ATF_CHECK_EQ(reg.nr_memsize - 5 * 65536 + sizeof(struct vale_window),
	    OPEN(&peers[i], "x", .nr_mode = NR_REG_NULL,
	    .nr_mem_id = 2).nr_offset);
	/* By descriptor; and the memory of another one. */
	peer_renew(&peers[i]);
	ATF_CHECK_EQ(reg.nr_memsize, peer_open(&peers[i], "x",
	    (struct nmreq_register){ .nr_mode = NR_REG_NULL },
	    one->pe_fds[0]).nr_memsize);
	ATF_CHECK(GRANT(peers[i]).gr_memory == GRANT(*one).gr_memory);
	OPEN(&peers[3], "x", .nr_mode = NR_REG_NULL, .nr_mem_id = 1);
	ATF_CHECK(GRANT(peers[3]).gr_memory != GRANT(*one).gr_memory);
	peers_close(peers, VALE_NULLS + 2);
}

/*
 * Extra buffers.
 */

/* The list of `n' that begins with `first', and does not go on. */
static void
check_list(const struct peer *p, uint32_t first, uint32_t n)
{
	const size_t bufs = GRANT(*p).gr_memory->mm_bufs;
	uint32_t i, next;

	for (i = 0; i < n; i++) {
		ATF_REQUIRE_EQ((ssize_t)sizeof(next), pread(p->pe_fds[0], &next,
		    sizeof(next), bufs + (size_t)(first + i) * 2048));
		ATF_CHECK_EQ(i + 1 < n ? first + i + 1 : 0, next);
	}
}

TEST(extra, "Extra buffers begin on a page; there are 2048, and then none, "
    "which is no error")
{
	struct nmreq_register reg;
	struct vale_memory *mm;
	size_t used;

	peers_connect(peers, 2);
	OPEN(one, "x", .nr_mode = NR_REG_NULL, .nr_mem_id = 1);
	mm = GRANT(*one).gr_memory;
	used = mm->mm_used;
	/* Three are linked, and the window is written: no more than that. */
	fail_calls("pwrite", 5, 1);
	reg = OPEN(two, "x", .nr_mode = NR_REG_NULL, .nr_mem_id = 2,
	    .nr_extra_bufs = 3);
	ATF_CHECK_EQ(0, fail_calls_end());
	ATF_CHECK_EQ(3, reg.nr_extra_bufs);
	ATF_CHECK_EQ((used - mm->mm_bufs) / 2048, window_of(two).vv_extra);
	check_list(two, window_of(two).vv_extra, 3);
	ATF_CHECK_EQ(used + 2 * 4096, mm->mm_used);
	ATF_CHECK_EQ(3, mm->mm_extra_used);
	/* A pipe begins behind them. */
	peer_renew(two);
	reg = OPEN(two, "vale0:a{1", ALL, .nr_mem_id = 2, .nr_extra_bufs = 1);
	ATF_CHECK_EQ(1, reg.nr_extra_bufs);
	ATF_CHECK_EQ(used + 2 * 4096, GRANT(*two).gr_pipe->cpi_at);
	ATF_CHECK_EQ(used + 2 * 4096, window_of(two).vv_pipe);
	ATF_CHECK_EQ(used + 3 * 4096 + pipe_size(1024), mm->mm_used);
	check_list(two, window_of(two).vv_extra, 1);
	peer_renew(two);
	reg = OPEN(two, "x", .nr_mode = NR_REG_NULL, .nr_mem_id = 2,
	    .nr_extra_bufs = 3000);
	ATF_CHECK_EQ(2044, reg.nr_extra_bufs);
	check_list(two, window_of(two).vv_extra, 2044);
	peer_renew(two);
	used = mm->mm_used;
	reg = OPEN(two, "x", .nr_mode = NR_REG_NULL, .nr_mem_id = 2,
	    .nr_extra_bufs = 1);
	ATF_CHECK_EQ(0, reg.nr_extra_bufs);
	ATF_CHECK_EQ(0, window_of(two).vv_extra);
	ATF_CHECK_EQ(used, mm->mm_used);
	peers_close(peers, 2);
}

/*
 * Limits.
 */

static const char limit_user[] =
    "this user's ports may not have more memory: user_mem= of valed's -c";
static const char limit_all[] =
    "ports may not have more memory: mem= of valed's -c";

TEST(limits, "What is given out is charged to its user and to all; to the byte")
{
	struct peer admin, other;
	const struct vale_params params = { .rings = 1, .tx_slots = 1024,
	    .rx_slots = 1024 };
	const uint64_t port = roundup2(vale_shared_size(&params, 0), 4096) +
	    vale_shared_private(&params);

	peers_connect(peers, 3);
	peer_connect(&other, 1002, false);
	peer_connect(&admin, 1001, true);
	vale_memory_limits(UINT64_MAX, port - 1);
	REFUSED(ENOMEM, limit_user, one, REGISTER("vale0:a", ALL));
	vale_memory_limits(port - 1, UINT64_MAX);
	REFUSED(ENOMEM, limit_all, one, REGISTER("vale0:a", ALL));
	REFUSED(ENOMEM, limit_all, &admin, REGISTER("vale0:a", ALL));
	vale_memory_limits(2 * port, port);
	OPEN(one, "vale0:a", ALL);
	ATF_CHECK_EQ(port, GRANT(*one).gr_memory->mm_charged);
	REFUSED(ENOMEM, limit_user, two, REGISTER("vale0:b", ALL));
	REFUSED(ENOMEM, limit_user, two, REGISTER("x",
	    .nr_mode = NR_REG_NULL, .nr_mem_id = 1));
	OPEN(&other, "vale0:c", ALL);
	REFUSED(ENOMEM, limit_all, &admin, REGISTER("vale0:b", ALL));
	vale_memory_limits(3 * port, port);
	OPEN(&admin, "vale0:b", ALL);
	peer_renew(&admin);
	vale_memory_limits(2 * port, port);
	/* What is closed is not charged. */
	peer_renew(&other);
	OPEN(&admin, "vale0:b", ALL);
	peer_renew(&admin);
	/* A pipe is, and stays, while the memory does. */
	vale_memory_limits(UINT64_MAX, port + pipe_size(1024) - 1);
	errno = 0;
	REFUSED(ENOMEM, limit_user, two, REGISTER("vale0:a{1", ALL));
	ATF_CHECK_EQ(1, GRANT(*one).gr_memory->mm_refs);
	vale_memory_limits(UINT64_MAX, port + pipe_size(1024));
	OPEN(two, "vale0:a{1", ALL);
	ATF_CHECK_EQ(port + pipe_size(1024),
	    GRANT(*one).gr_memory->mm_charged);
	ATF_CHECK_EQ(pipe_size(1024) + shared_last.more,
	    vale_memory_more(GRANT(*one).gr_memory));
	/* Of extra buffers there are none then. */
	ATF_CHECK_EQ(0, OPEN(three, "x", .nr_mode = NR_REG_NULL,
	    .nr_mem_id = 2, .nr_extra_bufs = 1).nr_extra_bufs);
	ATF_CHECK_EQ(0, GRANT(*one).gr_memory->mm_extra_used);
	peer_renew(three);
	vale_memory_limits(UINT64_MAX, port + pipe_size(1024) + 4096);
	ATF_CHECK_EQ(2, OPEN(three, "x", .nr_mode = NR_REG_NULL,
	    .nr_mem_id = 2, .nr_extra_bufs = 2).nr_extra_bufs);
	peer_end(&other);
	peer_end(&admin);
	peers_close(peers, 3);
}

TEST_PROGRAM
