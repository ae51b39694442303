/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Memory of ports and pipes in valed: which memory a request means, and what is
 * charged.  valed_memory_test and others have the memory itself.
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <errno.h>
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

static struct peer peers[3];
static struct peer *const one = &peers[0], *const two = &peers[1];
static struct peer *const three = &peers[2];

/* Bytes of a pipe. */
static size_t
pipe_size(uint32_t n)
{
	const uint32_t slots[2] = { n, n };
	struct vale_pipe_layout pl;

	vale_pipe_layout(&pl, slots);
	return (pl.pl_size);
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

TEST(proofs, "One descriptor of a memory names it, and proves to another user "
    "that it can be had; nothing else does")
{
	const int nomem = memfd_create("other", MFD_CLOEXEC |
	    MFD_ALLOW_SEALING);
	struct peer asks, other;

	peers_connect(peers, 2);
	peer_connect(&asks, 1001, false);
	peer_connect(&other, 1002, false);
	ATF_CHECK_EQ(2, OPEN(one, "vale0:a", ALL).nr_mem_id);
	ATF_CHECK_EQ(3, OPEN(two, "vale0:b", ALL).nr_mem_id);
	ATF_CHECK_EQ(4, memory_for(&asks, 0, nomem));
	ATF_CHECK_EQ(3, memory_for(&asks, 0, two->pe_fds[0]));
	/* The number is what counts, if it can be had. */
	ATF_CHECK_EQ(2, memory_for(&asks, 2, two->pe_fds[0]));
	ATF_CHECK_EQ(2, memory_for(&asks, 2, nomem));
	ATF_CHECK_EQ(-EPERM, memory_for(&other, 2, two->pe_fds[0]));
	ATF_CHECK_STREQ(another_2, other.pe_reply.wire.vw_why);
	ATF_CHECK_EQ(-EPERM, memory_for(&other, 2, nomem));
	ATF_CHECK_EQ(2, memory_for(&other, 2, one->pe_fds[0]));
	/* Nor do two. */
	peer_copies = 2;
	ATF_CHECK_EQ(4, memory_for(&asks, 0, one->pe_fds[0]));
	peer_copies = 1;
	/* What cannot be looked at proves nothing. */
	fail_calls("fstat", 1, 1);
	ATF_CHECK_EQ(4, memory_for(&asks, 0, one->pe_fds[0]));
	ATF_CHECK_EQ(1, fail_calls_end());
	/* Nor does a file of this number in another file system. */
	fstat_dev = 1;
	ATF_CHECK_EQ(4, memory_for(&asks, 0, one->pe_fds[0]));
	fstat_dev = 0;
	close(nomem);
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
