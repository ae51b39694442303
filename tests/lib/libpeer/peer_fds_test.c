/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Control messages in any order and number: not all that a kernel may put
 * together can be had from one of them.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/systm.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "peer_fds.h"
#include "test.h"

/* As the kernel numbers them; SCM_SECURITY has data of any length. */
#define	RIGHTS		1
#define	CREDENTIALS	2
#define	SECURITY	3
#define	PIDFD		4

static union {
	struct cmsghdr	align;
	char		space[1024];
} control;
static struct msghdr msg;
static int dropped[8];
static unsigned int ndropped;

static void
start(void)
{
	memset(&control, 0xff, sizeof(control));
	msg = (struct msghdr){ .msg_control = &control };
	ndropped = 0;
}

/* Append a control message with `len' bytes. */
static void
append(int level, int type, const void *data, size_t len)
{
	struct cmsghdr *c = (void *)(control.space + msg.msg_controllen);

	ATF_REQUIRE(msg.msg_controllen + CMSG_SPACE(len) <= sizeof(control));
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	msg.msg_controllen += CMSG_SPACE(len);
}

static void
drop(void *arg, int fd)
{
	ATF_CHECK(arg == &dropped);
	ATF_REQUIRE(ndropped < nitems(dropped));
	dropped[ndropped++] = fd;
}

TEST(order, "All descriptors are taken, in their order, whatever is between")
{
	static const int a[] = { 70, 71, 72 }, b[] = { 80 };
	static const int ucred[3] = { 10, 11, 12 };
	static const char label[] = "a label of some bytes";
	int fd[8] = { 5, 6 };
	struct peer_fds mf = { .mf_fd = fd, .mf_n = 2, .mf_max = 6,
	    .mf_drop = drop, .mf_arg = &dropped };
	int pidfd[2];

	ATF_REQUIRE_EQ(0, pipe(pidfd));
	start();
	append(SOL_SOCKET, CREDENTIALS, ucred, sizeof(ucred));
	append(SOL_SOCKET, SECURITY, label, sizeof(label));
	append(SOL_SOCKET, RIGHTS, a, sizeof(a));
	append(SOL_SOCKET + 1, RIGHTS, ucred, sizeof(ucred));
	append(SOL_SOCKET, RIGHTS, a, 0);
	append(SOL_SOCKET, PIDFD, pidfd, sizeof(pidfd[0]));
	append(SOL_SOCKET, RIGHTS, b, sizeof(b));
	append(SOL_SOCKET, 29, ucred, sizeof(ucred));
	ATF_CHECK(peer_fds_take(&msg, &mf));
	ATF_CHECK_EQ(6, mf.mf_n);
	ATF_CHECK_EQ(0, memcmp((const int[]){ 5, 6, 70, 71, 72, 80, 0, 0 },
	    fd, sizeof(fd)));
	ATF_CHECK_EQ(0, ndropped);
	/* Only the pidfd is closed. */
	ATF_CHECK_EQ(-1, fcntl(pidfd[0], F_GETFD));
	ATF_CHECK_EQ(0, fcntl(pidfd[1], F_GETFD));
	/* None. */
	start();
	ATF_CHECK(peer_fds_take(&msg, &mf));
	append(SOL_SOCKET, CREDENTIALS, ucred, sizeof(ucred));
	ATF_CHECK(peer_fds_take(&msg, &mf));
	ATF_CHECK_EQ(6, mf.mf_n);
}

TEST(lost, "What does not fit is dropped, and said to be lost; so is what the "
    "kernel had no space for")
{
	static const int a[] = { 70, 71, 72 }, b[] = { 80, 81 };
	int fd[4] = { 0 };
	struct peer_fds mf = { .mf_fd = fd, .mf_max = 2, .mf_drop = drop,
	    .mf_arg = &dropped };

	start();
	append(SOL_SOCKET, RIGHTS, a, sizeof(a));
	append(SOL_SOCKET, RIGHTS, b, sizeof(b));
	ATF_CHECK(!peer_fds_take(&msg, &mf));
	ATF_CHECK_EQ(2, mf.mf_n);
	ATF_CHECK_EQ(0, memcmp((const int[]){ 70, 71, 0, 0 }, fd,
	    sizeof(fd)));
	ATF_REQUIRE_EQ(3, ndropped);
	ATF_CHECK_EQ(0, memcmp((const int[]){ 72, 80, 81 }, dropped,
	    3 * sizeof(int)));
	mf.mf_n = 0;
	start();
	append(SOL_SOCKET, RIGHTS, b, sizeof(b));
	msg.msg_flags = MSG_CTRUNC;
	ATF_CHECK(!peer_fds_take(&msg, &mf));
	ATF_CHECK_EQ(2, mf.mf_n);
	ATF_CHECK_EQ(0, ndropped);
	/* The next message is another one. */
	mf.mf_n = 0;
	msg.msg_flags = MSG_CMSG_CLOEXEC;
	ATF_CHECK(peer_fds_take(&msg, &mf));
	ATF_CHECK_EQ(2, mf.mf_n);
}

TEST_PROGRAM
