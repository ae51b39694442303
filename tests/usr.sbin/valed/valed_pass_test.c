/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The process that passes descriptors: what it passes, to whom, and what it can
 * do besides.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "vale_wire.h"
#include "valed.h"
#include "wait_until.h"

static int	conn[2];		/* valed's end, and the client's */

static void
start(void)
{
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	ATF_REQUIRE_EQ(-1, valed_pass_fd());
	ATF_REQUIRE_EQ(0, valed_pass_start());
	ATF_REQUIRE(valed_pass_fd() != -1);
}

static ino_t
inode(int fd)
{
	struct stat st;

	ATF_REQUIRE_EQ(0, fstat(fd, &st));
	return (st.st_ino);
}

/* Receive a packet of `len' bytes of `c' with these descriptors. */
static void
arrives(size_t len, char c, const int *fds, unsigned int n)
{
	static char packet[VALE_WIRE_MAX + 1], expected[VALE_WIRE_MAX];
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(64 * sizeof(int))];
	} control;
	struct iovec iov = { packet, sizeof(packet) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	const struct cmsghdr *cm;
	int got[64];
	unsigned int i;

	ATF_REQUIRE_EQ((ssize_t)len, recvmsg(conn[1], &msg, 0));
	memset(expected, c, len);
	ATF_REQUIRE_EQ(0, memcmp(expected, packet, len));
	cm = CMSG_FIRSTHDR(&msg);
	ATF_REQUIRE(cm != NULL && cm->cmsg_type == SCM_RIGHTS);
	ATF_REQUIRE_EQ(CMSG_LEN(n * sizeof(int)), cm->cmsg_len);
	memcpy(got, CMSG_DATA(cm), n * sizeof(int));
	for (i = 0; i < n; i++) {
		ATF_REQUIRE_EQ(inode(fds[i]), inode(got[i]));
		close(got[i]);
	}
}

/* Pass a packet of `len' bytes of `c'. */
static bool
pass(size_t len, char c, const int *fds, unsigned int n)
{
	static char packet[VALE_WIRE_MAX];

	memset(packet, c, len);
	return (valed_pass(conn[0], packet, len, fds, n));
}

TEST(passes, "Memory and local sockets are passed, in order, as many as a "
    "reply has, with packets of any length")
{
	int fds[VALE_WIRE_REPLY_FDS];
	unsigned int i;

	start();
	for (i = 0; i < 2; i++) {
		fds[i] = memfd_create("memory", 0);
		ATF_REQUIRE(fds[i] != -1);
	}
	for (i = 2; i + 1 < nitems(fds); i += 2)
		ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0,
		    &fds[i]));
	ATF_REQUIRE_EQ(nitems(fds), i);
	ATF_REQUIRE(pass(1, 'a', fds, 1));
	ATF_REQUIRE(pass(200, 'b', fds + 2, 2));
	ATF_REQUIRE(pass(VALE_WIRE_MAX, 'c', fds, nitems(fds)));
	arrives(1, 'a', fds, 1);
	arrives(200, 'b', fds + 2, 2);
	arrives(VALE_WIRE_MAX, 'c', fds, nitems(fds));
}

TEST(alone, "Without the process the caller passes them itself")
{
	const int fd = memfd_create("memory", 0);

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	ATF_REQUIRE(pass(5, 'a', &fd, 1));
	arrives(5, 'a', &fd, 1);
}

TEST(kinds, "No other descriptor is passed, and none to who is not a client "
    "of the control socket")
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fds[2], good, others[5], seq, stream[2];
	unsigned int i;

	start();
	seq = conn[0];
	good = memfd_create("good", 0);
	others[0] = socket(AF_NETLINK, SOCK_RAW, 0);
	others[1] = socket(AF_INET, SOCK_DGRAM, 0);
	others[2] = open(".", O_RDONLY);
	ATF_REQUIRE_EQ(0, pipe(others + 3));
	for (i = 0; i < nitems(others); i++) {
		ATF_REQUIRE(others[i] != -1);
		fds[0] = good;
		fds[1] = others[i];
		ATF_REQUIRE(!pass(1, 'x', fds, 2));
		ATF_REQUIRE(!pass(1, 'x', fds + 1, 1));
	}
	/* A socket that clients connect to. */
	memcpy(sun.sun_path, "sock", 5);
	fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	ATF_REQUIRE(fds[0] != -1);
	ATF_REQUIRE_EQ(0, bind(fds[0], (struct sockaddr *)&sun, sizeof(sun)));
	ATF_REQUIRE_EQ(0, listen(fds[0], 1));
	ATF_REQUIRE(!pass(1, 'x', fds, 1));
	/* To a client of an adapter, and to who is no socket. */
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	conn[0] = stream[0];
	ATF_REQUIRE(!pass(1, 'x', &good, 1));
	conn[0] = others[0];
	ATF_REQUIRE(!pass(1, 'x', &good, 1));
	conn[0] = good;
	ATF_REQUIRE(!pass(1, 'x', &good, 1));
	conn[0] = seq;
	ATF_REQUIRE(pass(1, 'y', &good, 1));
	arrives(1, 'y', &good, 1);
	ATF_REQUIRE_EQ(-1, recv(stream[1], fds, 1, MSG_DONTWAIT));
	ATF_REQUIRE_EQ(-1, recv(conn[1], fds, 1, MSG_DONTWAIT));
	ATF_REQUIRE_EQ(EAGAIN, errno);
}

TEST(deaf, "What a client does not read is not passed; the others' is")
{
	const int fd = memfd_create("memory", 0);
	int n = 0;

	start();
	while (pass(60000, 'x', &fd, 1))
		ATF_REQUIRE(++n < 100000);
	ATF_CHECK(n > 0);
	/* One that has gone. */
	close(conn[1]);
	ATF_REQUIRE(!pass(1, 'x', &fd, 1));
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	ATF_REQUIRE(pass(1, 'y', &fd, 1));
	arrives(1, 'y', &fd, 1);
}

TEST(ends, "It ends with the process that it serves, whatever that sent; "
    "then nothing is passed")
{
	char c = 1;

	start();
	/* A packet without descriptors. */
	ATF_REQUIRE_EQ(1, send(valed_pass_fd(), &c, 1, 0));
	ATF_REQUIRE_EQ(1, recv(valed_pass_fd(), &c, 1, 0));
	ATF_REQUIRE_EQ(0, c);
	ATF_REQUIRE_EQ(0, shutdown(valed_pass_fd(), SHUT_WR));
	ATF_REQUIRE_EQ(0, recv(valed_pass_fd(), &c, 1, 0));
	ATF_REQUIRE(wait(NULL) != -1);
	ATF_REQUIRE_EQ(-1, wait(NULL));
	ATF_REQUIRE(!pass(1, 'x', conn, 1));
}

#define	P(p)	((long)(uintptr_t)(p))

TEST(sandbox, "It can make no other system call")
{
	static char page[4096];
	const struct {
		const char	*what;
		long		 arg[7];
	} killed[] = {
		{ "openat", { SYS_openat, AT_FDCWD, P("."), O_RDONLY } },
		{ "read", { SYS_read, 0, P(page), 1 } },
		{ "write", { SYS_write, 2, P("x"), 1 } },
		{ "sendto", { SYS_sendto, 0, P(page), 1, 0, 0, 0 } },
		{ "sendmmsg", { SYS_sendmmsg, 0, P(page), 1, 0 } },
#ifndef SANITIZED
		{ "mmap", { SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANON,
		    -1, 0 } },
#endif
		{ "socket", { SYS_socket, AF_UNIX, SOCK_STREAM, 0 } },
		{ "connect", { SYS_connect, 0, P(page), 110 } },
		{ "ioctl", { SYS_ioctl, 0, 0x5413 } },
		{ "setsockopt", { SYS_setsockopt, 0, SOL_SOCKET, SO_SNDBUF,
		    P(page), 4 } },
		{ "getsockopt", { SYS_getsockopt, 0, SOL_SOCKET, SO_PEERCRED,
		    0, 0 } },
		{ "fcntl", { SYS_fcntl, 0, F_DUPFD_CLOEXEC, 0 } },
		{ "fork", { SYS_fork } },
		{ "execve", { SYS_execve, P("/bin/true"), 0, 0 } },
		{ "kill", { SYS_kill, getppid(), 0 } },
		{ "shutdown", { SYS_shutdown, 0, SHUT_RDWR } },
	};
	size_t i;
	pid_t pid;
	int status;

	for (i = 0; i < nitems(killed); i++) {
		pid = fork();
		ATF_REQUIRE(pid != -1);
		if (pid == 0) {
			if (valed_sandbox_enter_passer() == -1)
				_exit(1);
			syscall(killed[i].arg[0], killed[i].arg[1],
			    killed[i].arg[2], killed[i].arg[3],
			    killed[i].arg[4], killed[i].arg[5],
			    killed[i].arg[6]);
			_exit(0);
		}
		ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
		ATF_CHECK_MSG(WIFSIGNALED(status) &&
		    WTERMSIG(status) == SIGSYS, "%s: status %#x",
		    killed[i].what, status);
	}
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, passes);
	ATF_TP_ADD_TC(tp, alone);
	ATF_TP_ADD_TC(tp, kinds);
	ATF_TP_ADD_TC(tp, deaf);
	ATF_TP_ADD_TC(tp, ends);
	ATF_TP_ADD_TC(tp, sandbox);
	return (atf_no_error());
}
