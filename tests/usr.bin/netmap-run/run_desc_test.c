/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors of /dev/netmap: what is opened, connected, locked, synced, closed
 * and freed, and in which order.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <atf-c.h>

#include "run_desc_calls.h"
#include "test.h"

TEST(opens, "A socket, which closes on exec as asked, and a copy of it that "
    "does; or neither")
{
	struct run_desc *rd;

	ATF_CHECK_EQ(5, run_open(O_RDWR | O_CLOEXEC));
	SAID(" socket copy(5,(nil)) lock(table) init unlock(table)"
	    " lock(table) unlock(table)");
	rd = run_find(5);
	ATF_REQUIRE(rd != NULL);
	ATF_CHECK_EQ(6, rd->rd_fd);
	ATF_CHECK_EQ(1, rd->rd_refs);
	ATF_CHECK(!rd->rd_connected && !rd->rd_registered);
	ATF_CHECK_EQ(1, run_count);
	ATF_CHECK_EQ(1, blocks);
	/* The last number, and those around it. */
	fds_next = RUN_FDS - 1;
	ATF_CHECK_EQ(RUN_FDS - 1, run_open(O_RDWR));
	SAID(" socket copy(65535,(nil)) setfd(65535,(nil)) lock(table) init"
	    " unlock(table) lock(table) unlock(table)");
	ATF_CHECK_EQ(2, run_count);
	fds_next = RUN_FDS;
	FAILS(EMFILE, run_open(O_RDWR));
	SAID(" socket copy(65536,(nil)) setfd(65536,(nil)) close(65537)"
	    " close(65536)");
	fds_next = 7;
	fail.socket = ENFILE;
	FAILS(ENFILE, run_open(O_RDWR));
	SAID(" socket");
	fail = (struct failure){ .copy = EMFILE };
	FAILS(EMFILE, run_open(O_CLOEXEC));
	SAID(" socket copy(7,(nil)) close(7)");
	fail = (struct failure){ .calloc = ENOMEM };
	FAILS(ENOMEM, run_open(O_CLOEXEC));
	SAID(" socket copy(7,(nil)) lock(table) unlock(table) close(8)"
	    " close(7)");
	fail = (struct failure){ 0 };
	fds_next = 0;
	ATF_CHECK_EQ(0, run_open(O_CLOEXEC));
	ATF_CHECK_EQ(3, run_count);
}

TEST(copies, "A copy is another number of the same, in the process that has "
    "the table")
{
	const int fd = opened();
	struct run_desc *rd = that;

	ATF_CHECK_EQ(70, run_copied(rd, 70));
	SAID(" lock(table) unlock(table)");
	ATF_CHECK(run_find(70) == rd);
	ATF_CHECK_EQ(RUN_FDS - 1, run_copied(rd, RUN_FDS - 1));
	ATF_CHECK_EQ(3, rd->rd_refs);
	ATF_CHECK_EQ(3, run_count);
	quiet();
	FAILS(EMFILE, run_copied(rd, RUN_FDS));
	SAID(" close(65536)");
	/* A child of vfork(2). */
	pid++;
	ATF_CHECK_EQ(71, run_copied(rd, 71));
	ATF_CHECK(run_find(71) == NULL);
	run_closed(fd);
	ATF_CHECK(run_find(fd) == rd);
	ATF_CHECK_EQ(3, rd->rd_refs);
	SAID("");
}

TEST(closes, "The last number that is closed closes the socket, or leaves the "
    "port; run_epoll_closed() is called")
{
	struct run_desc *rd;
	int fd = opened();

	ATF_CHECK_EQ(70, run_copied(that, 70));
	quiet();
	run_closed(71);
	run_closed(-1);
	run_closed(RUN_FDS);
	SAID("");
	ATF_CHECK_EQ(0, epoll_closes);
	errno = EILSEQ;
	run_closed(fd);
	ATF_CHECK_EQ(EILSEQ, errno);
	ATF_CHECK(run_find(fd) == NULL);
	ATF_CHECK_EQ(1, that->rd_refs);
	ATF_CHECK_EQ(1, run_count);
	ATF_CHECK_EQ(1, epoll_closes);
	ATF_CHECK_EQ(fd, epoll_last);
	SAID(" lock(table) unlock(table)");
	run_closed(70);
	SAID(" lock(table) unlock(table) lock(table) unlock(table) close(6)"
	    " lock(table) unlock(table)");
	ATF_CHECK_EQ(EILSEQ, errno);
	ATF_CHECK_EQ(0, run_count);
	/* The memory is used again. */
	rd = that;
	fd = opened();
	ATF_CHECK(that == rd);
	ATF_CHECK_EQ(1, blocks);
	that->rd_port = &port;
	that->rd_registered = true;
	run_closed(fd);
	SAID(" lock(table) unlock(table) lock(table) unlock(table) port_close"
	    " lock(table) unlock(table)");
	/* Any may be that of an epoll(7). */
	that = NULL;
	epoll_used = true;
	errno = EILSEQ;
	run_closed(72);
	ATF_CHECK_EQ(72, epoll_last);
	SAID(" lock(table) unlock(table)");
	ATF_CHECK_EQ(EILSEQ, errno);
	ATF_CHECK_EQ(0, run_count);
}

TEST(ranges, "A range is closed from the first to the last, while there are "
    "any")
{
	const int fd = opened();
	unsigned int i;

	for (i = 10; i < 14; i++)
		run_copied(that, i);
	epoll_used = true;
	run_closed_range(11, 12);
	ATF_CHECK_EQ(2, epoll_closes);
	ATF_CHECK_EQ(12, epoll_last);
	ATF_CHECK(run_find(10) != NULL && run_find(13) != NULL);
	run_closed_range(14, 13);
	ATF_CHECK_EQ(2, epoll_closes);
	/* None is behind the table. */
	run_closed_range(13, ~0u);
	ATF_CHECK_EQ(2 + RUN_FDS - 13, epoll_closes);
	ATF_CHECK_EQ(RUN_FDS - 1, epoll_last);
	ATF_CHECK_EQ(2, run_count);
	/* The last one of netmap ends it. */
	epoll_closes = 0;
	run_closed_range(0, ~0u);
	ATF_CHECK_EQ(11, epoll_closes);
	ATF_CHECK_EQ(10, epoll_last);
	ATF_CHECK(run_find(fd) == NULL);
	ATF_CHECK_EQ(0, that->rd_refs);
}

/* A call looks up a number, and others do what they do before it has it. */
TEST(gets, "A call has a reference, and the last one closes")
{
	struct run_desc *rd;
	const int fd = opened();

	ATF_CHECK(run_get(fd + 1) == NULL);
	ATF_CHECK(run_get(-1) == NULL);
	ATF_CHECK(run_get(fd) == that);
	ATF_CHECK_EQ(2, that->rd_refs);
	ATF_CHECK_EQ(1, run_held);
	rd = that;
	run_closed(fd);
	SAID(" lock(table) unlock(table)");
	ATF_CHECK_EQ(1, rd->rd_refs);
	ATF_CHECK(run_get(fd) == NULL);
	/* Another is opened as it: it is not this one. */
	ATF_CHECK_EQ(fd, opened());
	ATF_CHECK(that != rd);
	errno = EILSEQ;
	run_put(rd);
	ATF_CHECK_EQ(EILSEQ, errno);
	SAID(" lock(table) unlock(table) close(6) lock(table) unlock(table)");
	ATF_CHECK_EQ(0, run_held);
	ATF_CHECK_EQ(1, that->rd_refs);
}

TEST(forks_others, "A child of fork(2) has no references of other threads' "
    "calls")
{
	const int fd = opened();
	struct run_desc *rd = that, *closed;

	/* Two threads wait; of one the descriptor is closed meanwhile. */
	ATF_CHECK(run_get(fd) == rd);
	fds_next = 20;
	closed = run_find(run_open(0));
	ATF_CHECK(run_get(20) == closed);
	run_closed(20);
	run_held = 0;
	quiet();
	pid++;
	at_fork[0]();
	at_fork[2]();
	SAID(" ports_lock lock(table) unlock(table) ports_unlock"
	    " lock(table) unlock(table) close(21) lock(table) unlock(table)");
	ATF_CHECK_EQ(1, rd->rd_refs);
	ATF_CHECK_EQ(0, closed->rd_refs);
	/* One is closed only once. */
	at_fork[0]();
	at_fork[2]();
	SAID(" ports_lock lock(table) unlock(table) ports_unlock");
	/* A handler forks in the midst of a call, which goes on. */
	ATF_CHECK(run_get(fd) == rd);
	at_fork[0]();
	at_fork[2]();
	ATF_CHECK_EQ(2, rd->rd_refs);
	run_put(rd);
}

TEST(forks, "fork(2) has both locks, and the child has the table")
{
	const int fd = opened();

	ATF_REQUIRE(at_fork[0] != NULL);
	at_fork[0]();
	SAID(" ports_lock lock(table)");
	at_fork[1]();
	SAID(" unlock(table) ports_unlock");
	pid++;
	run_closed(fd);
	ATF_CHECK(run_find(fd) != NULL);
	at_fork[0]();
	quiet();
	at_fork[2]();
	SAID(" unlock(table) ports_unlock");
	run_closed(fd);
	ATF_CHECK(run_find(fd) == NULL);
	ATF_CHECK_EQ(0, that->rd_refs);
}

static void
connects(void)
{
	FAILS(fail.join, run_connect(that));
}

TEST(connects, "A connection is made once, or by another process")
{
	opened();
	ATF_CHECK_EQ(0, run_connect(that));
	SAID(" join(6,/path)");
	ATF_CHECK_EQ(0, run_connect(that));
	SAID("");
	that->rd_connected = false;
	fail.join = EISCONN;
	ATF_CHECK_EQ(0, run_connect(that));
	ATF_CHECK(that->rd_connected);
	that->rd_connected = false;
	fail.join = ECONNREFUSED;
	/* It is said once, or each time. */
	ATF_CHECK_STREQ("netmap-run: nobody at /path\n", written(connects));
	ATF_CHECK(!that->rd_connected);
	ATF_CHECK_STREQ("", written(connects));
	debug = "1";
	ATF_CHECK_STREQ("netmap-run: nobody at /path\n", written(connects));
	fail.join = EACCES;
	ATF_CHECK_STREQ("netmap-run: /path: Permission denied\n",
	    written(connects));
}

TEST(request_locks, "Processes take turns, whatever signals there are")
{
	interrupted = 2;
	run_request_begin(6);
	SAID(" wrlck(6) wrlck(6) wrlck(6)");
	errno = EILSEQ;
	run_request_end(6);
	SAID(" unlck(6)");
	ATF_CHECK_EQ(EILSEQ, errno);
	fail.lockw = ENOLCK;
	run_request_begin(6);
	SAID(" wrlck(6)");
}

static struct netmap_ring tx[3], rx[3];
static struct vale_window_ring heads[3];

/* Have a port with three rings, of which 1 and 2 are the descriptor's. */
static void
have_port(void)
{
	unsigned int i;

	opened();
	that->rd_port = &port;
	that->rd_first = 1;
	that->rd_end = 3;
	that->rd_tx = that->rd_rx = true;
	for (i = 0; i < 3; i++) {
		port.rp_client.cp_ring[i].vcr_txring = &tx[i];
		port.rp_client.cp_ring[i].vcr_rxring = &rx[i];
		port.rp_client.cp_ring[i].vcr_heads = &heads[i];
		*(uint32_t *)(uintptr_t)&tx[i].num_slots = 8;
		tx[i].tail = sync_tail[i] = 7;
	}
}

TEST(tx_syncs, "NIOCTXSYNC: all rings; if nothing moves, valed may have gone")
{
	have_port();
	FAILS(ENXIO, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID("");
	that->rd_registered = true;
	FAILS(ENXIO, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2 alive(6)");
	alive = true;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2 alive(6)");
	/* Slots come back. */
	tx[1].tail = 6;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2");
	tx[2].tail = 6;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2");
	/* Frames are published, and there is space still. */
	tx[1].head = tx[1].cur = 1;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2");
	heads[1].vwr_sent = 1;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2 alive(6)");
	/* Or no more. */
	tx[1].head = tx[1].cur = 7;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2 alive(6)");
	/* A ring fails: the others are synced. */
	sync_error[1] = EIO;
	FAILS(EIO, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2");
	sync_error[1] = 0;
	sync_error[2] = EINVAL;
	tx[1].tail = 6;
	FAILS(EINVAL, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID(" T1 T2");
	/* Without transmit rings. */
	that->rd_tx = false;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCTXSYNC, NULL));
	SAID("");
}

TEST(rx_syncs, "NIOCRXSYNC: the same")
{
	have_port();
	FAILS(ENXIO, run_ioctl(that, NIOCRXSYNC, NULL));
	SAID("");
	that->rd_registered = true;
	sync_tail[1] = sync_tail[2] = 0;
	FAILS(ENXIO, run_ioctl(that, NIOCRXSYNC, NULL));
	SAID(" R1 R2 alive(6)");
	alive = true;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCRXSYNC, NULL));
	SAID(" R1 R2 alive(6)");
	sync_tail[1] = 1;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCRXSYNC, NULL));
	SAID(" R1 R2");
	sync_error[2] = EINVAL;
	FAILS(EINVAL, run_ioctl(that, NIOCRXSYNC, NULL));
	SAID(" R1 R2");
	that->rd_rx = false;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCRXSYNC, NULL));
	SAID("");
}

TEST(ioctls, "Requests without what they need, the old ones, those that change "
    "nothing, and others")
{
	static const unsigned long requests[] = { NIOCCTRL, NIOCREGIF,
	    NIOCGINFO };
	unsigned int i;

	opened();
	for (i = 0; i < nitems(requests); i++) {
		FAILS(EFAULT, run_ioctl(that, requests[i], NULL));
		FAILS(EFAULT, run_ioctl(that, 0xffffffff00000000 | requests[i],
		    NULL));
	}
	ATF_CHECK_EQ(0, run_ioctl(that, FIONBIO, NULL));
	ATF_CHECK_EQ(0, run_ioctl(that, FIOASYNC, NULL));
	FAILS(EOPNOTSUPP, run_ioctl(that, FIONREAD, &i));
	SAID("");
	ATF_CHECK_EQ(8, run_ioctl(that, NIOCREGIF, (void *)0x64));
	ATF_CHECK_EQ(8, run_ioctl(that, 0xffffffff00000000 | NIOCGINFO,
	    (void *)0x64));
	SAID(" legacy(0xc03c6992,0x64) legacy(0xc03c6991,0x64)");
}

TEST(maps, "mmap(2) of a descriptor that has a port")
{
	opened();
	errno = 0;
	ATF_CHECK(run_mmap(that, (void *)0x1000, 2, 3, 4, 5) == MAP_FAILED);
	ATF_CHECK_EQ(EINVAL, errno);
	that->rd_port = &port;
	that->rd_registered = true;
	ATF_CHECK(run_mmap(that, (void *)0x1000, 2, 3, 4, 5) ==
	    (void *)0x77000);
	SAID(" port_mmap(0x1000,2,3,4,5)");
}

TEST_PROGRAM
