/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors of /dev/netmap in epoll(7).
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "run_kernel.h"
#include "test.h"

/* epoll_ctl(2).  Returns 0 or an errno. */
static int
ctl(int epfd, int op, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd + 1000 };
	int r;

	errno = 0;
	r = run_epoll_ctl(epfd, op, fd, &ev);
	ATF_CHECK_EQ(0, locked);
	ATF_CHECK(r == 0 || r == -1);
	return (r == 0 ? 0 : errno);
}

/* Which of 20 to 23 have any; `fd' 10 is in each of them. */
static unsigned int
any(void)
{
	unsigned int bits = 0, i;

	for (i = 0; i < 4; i++)
		bits |= run_epoll_any(20 + i) << i;
	ATF_CHECK_EQ(0, locked);
	return (bits);
}

TEST(ctl, "epoll_ctl(2), with the errors of the kernel's")
{
	unsigned int i;

	ATF_CHECK(!run_epoll_used());
	ATF_CHECK(!run_epoll_any(20));
	ATF_CHECK_EQ(0, locks);
	ctl_error = EBADF;
	ATF_CHECK_EQ(EBADF, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN));
	SAID(" c20,2,10");
	ctl_error = EINVAL;
	ATF_CHECK_EQ(EINVAL, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN));
	SAID(" c20,2,10");
	ctl_error = ENOENT;
	ATF_CHECK_EQ(EINVAL, ctl(20, 0, 10, EPOLLIN));
	ATF_CHECK_EQ(EINVAL, ctl(20, 4, 10, EPOLLIN));
	ATF_CHECK_EQ(ENOENT, ctl(20, EPOLL_CTL_MOD, 10, EPOLLIN));
	ATF_CHECK_EQ(ENOENT, ctl(20, EPOLL_CTL_DEL, 10, EPOLLIN));
	errno = 0;
	ATF_CHECK_EQ(-1, run_epoll_ctl(20, EPOLL_CTL_ADD, 10, NULL));
	ATF_CHECK_EQ(EFAULT, errno);
	ATF_CHECK_EQ(-1, run_epoll_ctl(20, EPOLL_CTL_MOD, 10, NULL));
	ATF_CHECK_EQ(EFAULT, errno);
	fails = made;
	ATF_CHECK_EQ(ENOMEM, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN));
	fails = -1;
	ATF_CHECK(!run_epoll_used());
	for (i = 0; i < 4; i++) {
		ATF_CHECK_EQ(0, ctl(20 + i, EPOLL_CTL_ADD, 10, EPOLLIN));
		ATF_CHECK_EQ(0, ctl(20 + i, EPOLL_CTL_ADD, 11, EPOLLIN));
	}
	ATF_CHECK(run_epoll_used());
	ATF_CHECK_EQ(15, any());
	ATF_CHECK(!run_epoll_any(10));
	ATF_CHECK(!run_epoll_any(24));
	/* The kernel had it, of an earlier file. */
	ctl_error = 0;
	ATF_CHECK_EQ(EEXIST, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN));
	ATF_CHECK_EQ(EEXIST, ctl(23, EPOLL_CTL_ADD, 11, EPOLLIN));
	ATF_CHECK_EQ(ENOENT, ctl(24, EPOLL_CTL_MOD, 10, EPOLLIN));
	ATF_CHECK_EQ(ENOENT, ctl(20, EPOLL_CTL_MOD, 12, EPOLLIN));
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_MOD, 10, EPOLLOUT));
	ATF_CHECK_EQ(0, run_epoll_ctl(20, EPOLL_CTL_DEL, 10, NULL));
	ATF_CHECK_EQ(15, any());
	ATF_CHECK_EQ(ENOENT, ctl(20, EPOLL_CTL_DEL, 10, 0));
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_DEL, 11, 0));
	ATF_CHECK_EQ(14, any());
	/* Closed: the descriptor, or that of epoll(7). */
	run_epoll_closed(22);
	ATF_CHECK_EQ(10, any());
	run_epoll_closed(10);
	ATF_CHECK_EQ(10, any());
	ATF_CHECK_EQ(ENOENT, ctl(21, EPOLL_CTL_MOD, 10, 0));
	ATF_CHECK_EQ(ENOENT, ctl(23, EPOLL_CTL_MOD, 10, 0));
	ATF_CHECK_EQ(0, ctl(21, EPOLL_CTL_MOD, 11, 0));
	ATF_CHECK_EQ(0, ctl(23, EPOLL_CTL_MOD, 11, 0));
	run_epoll_closed(11);
	ATF_CHECK_EQ(0, any());
	ATF_CHECK(!run_epoll_used());
}

static struct epoll_event got[4];

/* epoll_wait(2), after which no memory is left. */
static int
waits(int max, const struct timespec *timeout)
{
	int error, r;

	memset(got, 0xee, sizeof(got));
	r = run_epoll_wait(20, got, max, timeout, NULL);
	error = errno;
	ATF_CHECK_EQ(1, blocks);	/* what is in epoll(7) */
	ATF_CHECK_EQ(0, locked);
	ATF_CHECK_EQ(nanswers, asked);
	nanswers = asked = waited = 0;
	errno = error;
	return (r);
}

#define	GOT(i, ev, of) do {						\
	ATF_CHECK_EQ(ev, got[i].events);				\
	ATF_CHECK_EQ(of, got[i].data.fd);				\
} while (0)

/* Another thread closes 10, and opens another port as 10. */
static void
reuse(void)
{
	on_unlock = NULL;
	have(1, 10, 1, 2);
}

TEST(reused, "A descriptor that another thread closes, and opens another as "
    "its number, while epoll_wait(2) begins, is looked at until that returns, "
    "and no longer")
{
	have(0, 10, 0, 1);
	ctl_error = ENOENT;
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN | EPOLLONESHOT));
	SAID(" c20,2,10");
	rxring[0].tail = 1;
	on_unlock = reuse;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, waits(1, NULL));
	GOT(0, EPOLLIN, 1010);
	SAID(" R0 P-1/1,20/1+2@0.000000000");
	ATF_CHECK(desc[0].rd_refs == 1 && desc[1].rd_refs == 1);
	ATF_CHECK_EQ(0, run_held);
	/* That the first was reported is nothing to the second. */
	rxring[1].tail = 1;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, waits(1, NULL));
	SAID(" R1 P-1/1,20/1+2@0.000000000");
}

TEST(errors, "epoll_wait(2) that cannot be; no memory; a signal")
{
	struct epoll_event ev;
	int i;

	have(0, 10, 0, 1);
	ctl_error = ENOENT;
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN));
	SAID(" c20,2,10");
	ATF_CHECK_EQ(-1, run_epoll_wait(20, &ev, 0, NULL, NULL));
	ATF_CHECK_EQ(EINVAL, errno);
	ATF_CHECK_EQ(-1, run_epoll_wait(20, &ev, -1, NULL, NULL));
	ATF_CHECK_EQ(EINVAL, errno);
	ATF_CHECK_EQ(-1, run_epoll_wait(20, NULL, 1, NULL, NULL));
	ATF_CHECK_EQ(EFAULT, errno);
	ATF_CHECK_EQ(-1, run_epoll_wait(20, NULL, 0, NULL, NULL));
	ATF_CHECK_EQ(EINVAL, errno);
	SAID("");
	for (i = 0; i < 2; i++) {
		fails = made + i;
		ATF_CHECK_EQ(-1, waits(4, NULL));
		ATF_CHECK_EQ(ENOMEM, errno);
		SAID("");
	}
	fails = -1;
	answer(-1, EINTR, -2, 0, 0);
	ATF_CHECK_EQ(-1, waits(4, NULL));
	ATF_CHECK_EQ(EINTR, errno);
	SAID(" R0 r0 P-1/1,20/1,100/0,101/1+0");
	/* The kernel's fails, when netmap's are not ready. */
	wait_results[0] = -EBADF;
	answer(1, 0, 20, POLLNVAL, 0);
	ATF_CHECK_EQ(-1, waits(4, NULL));
	ATF_CHECK_EQ(EBADF, errno);
	SAID(" R0 r0 P-1/1,20/1,100/0,101/1+0 E20,4");
	/* Or are, and come second, and first. */
	rxring[0].tail = 1;
	answer(1, 0, 20, POLLIN, 0);
	ATF_CHECK_EQ(-1, waits(4, NULL));
	ATF_CHECK_EQ(EBADF, errno);
	answer(1, 0, 20, POLLIN, 0);
	ATF_CHECK_EQ(1, waits(4, NULL));
	GOT(0, EPOLLIN, 1010);
	ATF_CHECK_EQ(0, clocks);
}

TEST(time, "What is left of the limit when another has taken it all")
{
	const struct timespec limit = { 2, 0 };

	have(0, 10, 0, 1);
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN));
	said_text[0] = '\0';
	answer(1, 0, 20, POLLIN, 500);
	answer(1, 0, 20, POLLIN, 500);
	answer(0, 0, -2, 0, 1000);
	ATF_CHECK_EQ(0, waits(4, &limit));
	SAID(" R0 r0 P-1/1,20/1,100/0,101/1+0@2.000000000 E20,4"
	    " R0 r0 P-1/1,20/1,100/0,101/1+0@1.500000000 E20,4"
	    " R0 r0 P-1/1,20/1,100/0,101/1+0@1.000000000");
	answer(1, 0, 20, POLLIN, 500);
	wait_results[0] = 0;
	wait_results[1] = 2;
	answer(1, 0, 20, POLLIN, 500);
	ATF_CHECK_EQ(2, waits(4, NULL));
	SAID(" R0 r0 P-1/1,20/1,100/0,101/1+0 E20,4"
	    " R0 r0 P-1/1,20/1,100/0,101/1+0 E20,4");
	GOT(0, EPOLLPRI, 7);
	GOT(1, EPOLLPRI, 7);
}

TEST(turns, "Events of netmap and the kernel's take turns to be first, and "
    "netmap's among themselves")
{
	int i, fd, seen[3] = { 0 };

	have(0, 10, 0, 1);
	have(1, 11, 1, 2);
	have(2, 12, 2, 3);
	for (fd = 10; fd < 13; fd++)
		ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_ADD, fd, EPOLLIN |
		    EPOLLOUT));
	ATF_CHECK_EQ(0, ctl(21, EPOLL_CTL_ADD, 12, EPOLLIN));
	for (i = 0; i < 3; i++)
		rxring[i].tail = txring[i].tail = 1;
	wait_results[0] = 1;
	for (i = 0; i < 8; i++) {
		said_text[0] = '\0';
		answer(1, 0, 20, POLLIN, 0);
		ATF_CHECK_EQ(4, waits(4, NULL));
		SAID(i % 2 == 0 ?
		    " T0 R0 T1 R1 T2 R2 P-1/5,-1/5,-1/5,20/1+6@0.000000000"
		    " E20,1" :
		    " T0 R0 T1 R1 T2 R2 P-1/5,-1/5,-1/5,20/1+6@0.000000000"
		    " E20,4");
		fd = i % 2 == 0 ? 0 : 1;
		GOT(3 - 3 * fd, EPOLLPRI, 7);
		GOT(fd, EPOLLIN | EPOLLOUT, 1010 + i / 2 % 3);
		GOT(fd + 1, EPOLLIN | EPOLLOUT, 1010 + (i / 2 + 1) % 3);
		GOT(fd + 2, EPOLLIN | EPOLLOUT, 1010 + (i / 2 + 2) % 3);
	}
	/* With space for one, none is left out. */
	for (i = 0; i < 6; i++) {
		said_text[0] = '\0';
		answer(1, 0, 20, POLLIN, 0);
		ATF_CHECK_EQ(1, waits(1, NULL));
		if (i % 2 == 0) {
			seen[got[0].data.fd - 1010]++;
			ATF_CHECK(strchr(said_text, 'E') == NULL);
		} else
			GOT(0, EPOLLPRI, 7);
		ATF_CHECK_EQ(0xeeeeeeee, got[1].events);
	}
	for (i = 0; i < 3; i++)
		ATF_CHECK_EQ(1, seen[i]);
	/* One less: the memory behind the others has it still. */
	ATF_CHECK_EQ(0, ctl(21, EPOLL_CTL_DEL, 12, 0));
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_DEL, 12, 0));
	for (i = 0; i < 4; i++) {
		said_text[0] = '\0';
		answer(1, 0, 20, POLLIN, 0);
		ATF_CHECK_EQ(i % 2 == 0 ? 2 : 3, waits(i % 2 == 0 ? 2 : 4,
		    NULL));
		GOT(i % 2, EPOLLIN | EPOLLOUT, 1010 + (7 + i / 2) % 2);
	}
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_ADD, 12, EPOLLIN | EPOLLOUT));
	/* The kernel's are not ready, or are alone. */
	said_text[0] = '\0';
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(3, waits(4, NULL));
	ATF_CHECK(strchr(said_text, 'E') == NULL);
	rxring[0].tail = txring[0].tail = rxring[1].tail = txring[1].tail = 0;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, waits(4, NULL));
	GOT(0, EPOLLIN | EPOLLOUT, 1012);
}

static void
closed10(void)
{
	run_epoll_closed(10);
}

TEST(once, "EPOLLONESHOT: once, until epoll_ctl(2)")
{
	const struct timespec *no = &zero;

	have(0, 10, 0, 1);
	rxring[0].tail = 1;
	ATF_CHECK_EQ(0, ctl(21, EPOLL_CTL_ADD, 10, EPOLLIN));
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN | EPOLLONESHOT));
	said_text[0] = '\0';
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, waits(4, no));
	GOT(0, EPOLLIN, 1010);
	SAID(" R0 P-1/1,20/1+2@0.000000000");
	/* Not even an error, nor is a ring synced. */
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(0, waits(4, no));
	SAID(" P-1/0,20/1+0@0.000000000");
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_MOD, 10, EPOLLRDNORM | EPOLLET));
	said_text[0] = '\0';
	answer(0, 0, -2, 0, 0);
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, run_epoll_wait(20, got, 4, no, NULL));
	ATF_CHECK_EQ(1, waits(4, no));
	GOT(0, EPOLLRDNORM, 1010);
	SAID(" R0 P-1/64,20/1+2@0.000000000 R0 P-1/64,20/1+2@0.000000000");
	/* One that is closed meanwhile. */
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_MOD, 10, EPOLLIN | EPOLLONESHOT));
	on_ppoll = closed10;
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, waits(4, no));
	on_ppoll = NULL;
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_ADD, 10, EPOLLIN));
	/* What no one waits for is an error still. */
	rx_result[0] = -1;
	desc[0].rd_registered = false;
	ATF_CHECK_EQ(0, ctl(20, EPOLL_CTL_MOD, 10, 0));
	answer(0, 0, -2, 0, 0);
	ATF_CHECK_EQ(1, waits(4, no));
	GOT(0, EPOLLERR, 1010);
}

TEST_PROGRAM
