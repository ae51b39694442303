/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Opening the receive ring of packet(7) again: each call, and each failure. */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_ring.h"
#include "test.h"
#include "wrap.h"

#define	SOCKET	123
#define	SIZE	(34U * 1048576)

static char	memory[2];
static unsigned int calls, fail_call;

/* The next call is the n-th.  Whether it must fail. */
static bool
call(unsigned int n)
{
	ATF_CHECK_EQ(n, ++calls);
	errno = ENOBUFS;
	return (calls == fail_call);
}

WRAP(void *, mmap, void *mem, size_t size, int prot, int flags, int fd,
    off_t offset)
{
	const bool last = (flags & MAP_ANONYMOUS) == 0;

	ATF_CHECK_EQ((void *)memory, mem);
	ATF_CHECK_EQ(SIZE, size);
	ATF_CHECK_EQ(PROT_READ | PROT_WRITE, prot);
	ATF_CHECK_EQ(last ? MAP_SHARED | MAP_FIXED : MAP_PRIVATE |
	    MAP_ANONYMOUS | MAP_FIXED, flags);
	ATF_CHECK_EQ(last ? SOCKET : -1, fd);
	ATF_CHECK_EQ(0, offset);
	return (call(last ? 4 : 1) ? MAP_FAILED : mem);
}

WRAP(int, setsockopt, int s, int level, int name, const void *value,
    socklen_t len)
{
	const struct tpacket_req *req = value;
	const bool none = req->tp_block_nr == 0;

	ATF_CHECK_EQ(SOCKET, s);
	ATF_CHECK_EQ(SOL_PACKET, level);
	ATF_CHECK_EQ(PACKET_RX_RING, name);
	ATF_REQUIRE_EQ(sizeof(*req), len);
	if (none)
		ATF_CHECK_EQ(0, memcmp(req, &hostif_ring_none, len));
	else {
		ATF_CHECK_EQ(1048576, req->tp_block_size);
		ATF_CHECK_EQ(34, req->tp_block_nr);
		ATF_CHECK_EQ(69632, req->tp_frame_size);
		ATF_CHECK_EQ(34 * 15, req->tp_frame_nr);
	}
	return (call(none ? 2 : 3) ? -1 : 0);
}

TEST(reopen, "Other memory takes the ring's place, the ring goes and comes, \
and is mapped; what fails ends it")
{
	ATF_CHECK_EQ(0, hostif_ring_reopen(SOCKET, memory, SIZE));
	ATF_CHECK_EQ(4, calls);
	for (fail_call = 1; fail_call <= 4; fail_call++) {
		calls = 0;
		ATF_CHECK_EQ(-1, hostif_ring_reopen(SOCKET, memory, SIZE));
		ATF_CHECK_EQ(fail_call, calls);
		ATF_CHECK_EQ(ENOBUFS, errno);
	}
}

TEST_PROGRAM
