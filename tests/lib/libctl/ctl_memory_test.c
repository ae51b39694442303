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
#include <sys/resource.h>
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
#include "wrap.h"

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

/*
 * Places.
 */

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

/*
 * Extra buffers.
 */

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

/*
 * Ring pairs.
 */

static rlim_t	nofile;
static bool	limit_fails;

/* A sanitizer asks for other limits, before it is ready itself. */
WRAP(int __attribute__((__no_sanitize__("address"))), getrlimit, int what,
    struct rlimit *rl)
{
	if (what != RLIMIT_NOFILE)
		return (__real_getrlimit(what, rl));
	if (limit_fails)
		return (-1);
	*rl = (struct rlimit){ .rlim_cur = nofile, .rlim_max = 1 };
	return (0);
}

static const char many[] = "Too many open files";

TEST(rings, "Ring pairs besides each port's first are an eighth of the "
    "descriptors; what is closed, or was not opened, is free again")
{
	struct peer more;
	unsigned int i;

	peer_connect(one, 1001, false);
	peer_connect(two, 1001, false);
	peer_connect(&more, 1001, false);
	nofile = 5 * 8 + 7;
	vale_grant_limit();
	REFUSED(EMFILE, many, two, REGISTER("vale0:b", ALL,
	    .nr_tx_rings = 7));
	GRANTED(REG_SIZE, 2 + 2 * 6, two, REGISTER("vale0:b", ALL,
	    .nr_tx_rings = 6));
	GRANTED(REG_SIZE, 4, &more, REGISTER("vale0:c", ALL));
	REFUSED(EMFILE, many, one, REGISTER("vale0:a", ALL,
	    .nr_tx_rings = 2));
	for (i = 0; i < 3; i++) {
		peer_end(two);
		peer_connect(two, 1001, false);
		/* Taken back, if it fails later. */
		fail_calls("pwrite", 1, 2);
		REFUSED(ENOMEM, strerror(ENOMEM), two, REGISTER("vale0:b",
		    ALL, .nr_tx_rings = 6));
		ATF_CHECK_EQ(2, fail_calls_end());
		GRANTED(REG_SIZE, 2 + 2 * 4, two, REGISTER("vale0:b", ALL,
		    .nr_tx_rings = 4));
		REFUSED(EMFILE, many, one, REGISTER("vale0:a", ALL,
		    .nr_tx_rings = 4));
	}
	/* As it was, if it is not known. */
	limit_fails = true;
	vale_grant_limit();
	REFUSED(EMFILE, many, one, REGISTER("vale0:a", ALL,
	    .nr_tx_rings = 4));
	limit_fails = false;
	nofile = RLIM_INFINITY;
	vale_grant_limit();
	GRANTED(REG_SIZE, 2 + 2 * 16, one, REGISTER("vale0:a", ALL,
	    .nr_tx_rings = 16));
	peer_end(one);
	peer_end(two);
	peer_end(&more);
}

TEST_PROGRAM
