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
#include <sys/un.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <atf-c.h>

#include "ctl_pass.h"
#include "failing.h"
#include "said.h"
#include "send_fds.h"
#include "test.h"
#include "vale_wire.h"
#include "wait_until.h"

static int	conn[2];		/* valed's end, and the client's */

/* Errors of the next calls; a zero ends them.  Both processes have it. */
static struct failing {
	int	sendmsg[4], recv[4], recvmsg[4], socketpair[2], fork[2],
		dup2[2], close_range[2];
	int	to_client[3];		/* sendmsg(2) with MSG_DONTWAIT */
	bool	full;			/* ETOOMANYREFS, each time */
	int	flags;			/* of the last sendmsg(2) */
} *failing;
static bool	entered = true;		/* its sandbox can be entered */

WRAP(ssize_t, sendmsg, int s, const struct msghdr *msg, int flags)
{
	if (failing != NULL)
		failing->flags = flags;
	if (failing != NULL && failing->full && (flags & MSG_DONTWAIT) != 0) {
		errno = ETOOMANYREFS;
		return (-1);
	}
	if ((flags & MSG_DONTWAIT) != 0 && FAILS(to_client))
		return (-1);
	return (FAILS(sendmsg) ? -1 : __real_sendmsg(s, msg, flags));
}

WRAP(ssize_t, recvmsg, int s, struct msghdr *msg, int flags)
{
	return (FAILS(recvmsg) ? -1 : __real_recvmsg(s, msg, flags));
}

WRAP(ssize_t, recv, int s, void *p, size_t len, int flags)
{
	return (FAILS(recv) ? -1 : __real_recv(s, p, len, flags));
}

WRAP(int, socketpair, int domain, int type, int protocol, int fds[2])
{
	return (FAILS(socketpair) ? -1 : __real_socketpair(domain, type,
	    protocol, fds));
}

WRAP(pid_t, fork, void)
{
	return (FAILS(fork) ? -1 : __real_fork());
}

WRAP(int, dup2, int from, int to)
{
	return (FAILS(dup2) ? -1 : __real_dup2(from, to));
}

WRAP(int, close_range, unsigned int first, unsigned int last, int flags)
{
	return (FAILS(close_range) ? -1 : __real_close_range(first, last,
	    flags));
}

static int
enter(void)
{
	return (entered ? 0 : -1);
}

static void
failing_start(void)
{
	failing = mmap(NULL, sizeof(*failing), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	ATF_REQUIRE(failing != MAP_FAILED);
}

static void
start(void)
{
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	ATF_REQUIRE_EQ(-1, ctl_pass_fd());
	ATF_REQUIRE_EQ(0, ctl_pass_start(enter));
	ATF_REQUIRE(ctl_pass_fd() != -1);
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
	return (ctl_pass(conn[0], packet, len, fds, n));
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

	int n = 0;

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	ATF_REQUIRE(pass(5, 'a', &fd, 1));
	arrives(5, 'a', &fd, 1);
	/* It does not wait for the client. */
	while (pass(60000, 'x', &fd, 1))
		ATF_REQUIRE(++n < 100000);
	ATF_CHECK(n > 0);
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

TEST(in_flight, "What other processes have in flight is waited for, with the "
    "process and without, but not without end")
{
	const int fd = memfd_create("memory", 0);
	int i;

	failing_start();
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	for (i = 0; i < 2; i++) {
		failing->to_client[0] = failing->to_client[1] = ETOOMANYREFS;
		ATF_REQUIRE(pass(1, 'a', &fd, 1));
		ATF_CHECK_EQ(0, failing->to_client[0]);
		arrives(1, 'a', &fd, 1);
		failing->full = true;
		ATF_CHECK(!pass(1, 'b', &fd, 1));
		failing->full = false;
		if (i == 0)
			start();
	}
}

TEST(ends, "It ends with the process that it serves, whatever that sent; "
    "then nothing is passed")
{
	char c = 1;
	int status;

	start();
	/* A packet without descriptors. */
	ATF_REQUIRE_EQ(1, send(ctl_pass_fd(), &c, 1, 0));
	ATF_REQUIRE_EQ(1, recv(ctl_pass_fd(), &c, 1, 0));
	ATF_REQUIRE_EQ(0, c);
	ATF_REQUIRE_EQ(0, shutdown(ctl_pass_fd(), SHUT_WR));
	ATF_REQUIRE_EQ(0, recv(ctl_pass_fd(), &c, 1, 0));
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ(EX_OK, status);
	ATF_REQUIRE_EQ(-1, wait(NULL));
	/* Which is said once. */
	said_start();
	ATF_CHECK(!pass(1, 'x', conn, 1));
	ATF_CHECK(!pass(1, 'x', conn, 1));
	ATF_CHECK_STREQ("ctl_pass_test: the process that passes descriptors "
	    "has ended: no program can open a port until valed is "
	    "restarted\n", said());
}

/* The passer, the child of this process. */
static pid_t
passer(void)
{
	char path[64];
	pid_t pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	ATF_REQUIRE_EQ(1, fscanf(f, "%d", &pid));
	fclose(f);
	return (pid);
}

/* The number of its descriptors. */
static unsigned int
passer_fds(void)
{
	const struct dirent *d;
	char path[64];
	unsigned int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", passer());
	dir = opendir(path);
	ATF_REQUIRE(dir != NULL);
	while ((d = readdir(dir)) != NULL)
		if (d->d_name[0] != '.') {
			ATF_CHECK_MSG(atoi(d->d_name) <= STDERR_FILENO + 1,
			    "descriptor %s", d->d_name);
			n++;
		}
	closedir(dir);
	return (n);
}

TEST(process, "It has a name and a session, no descriptor but its own, and no "
    "signal ends it")
{
	char line[128], name[32] = "", path[64];
	uint64_t blocked = 0;
	pid_t pid;
	FILE *f;
	int fd;

	/* Some are inherited without close-on-exec, and with numbers around. */
	for (fd = 0; fd < 8; fd++)
		ATF_REQUIRE(dup(STDIN_FILENO) != -1);
	start();
	pid = passer();
	ATF_CHECK_EQ(4, passer_fds());
	ATF_CHECK_EQ(pid, getsid(pid));
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(ctl_pass_fd(), F_GETFD));
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL) {
		(void)sscanf(line, "SigBlk: %" SCNx64, &blocked);
		(void)sscanf(line, "Name: %31s", name);
	}
	fclose(f);
	ATF_CHECK_STREQ("valed-pass", name);
	ATF_CHECK((blocked & 1 << (SIGTERM - 1)) != 0 &&
	    (blocked & 1 << (SIGHUP - 1)) != 0 &&
	    (blocked & 1 << (SIGPIPE - 1)) != 0);
}

/* Send to the passer as it is not sent; the answer is no. */
static void
not_passed(size_t len, const int *fds, unsigned int n)
{
	static char packet[VALE_WIRE_MAX + 1];
	char answer = 1;

	SEND_FDS(ctl_pass_fd(), packet, len, fds, n);
	ATF_REQUIRE_EQ(1, recv(ctl_pass_fd(), &answer, 1, 0));
	ATF_CHECK_EQ(0, answer);
	ATF_CHECK_EQ(4, passer_fds());
	ATF_CHECK_EQ(-1, recv(conn[1], &answer, 1, MSG_DONTWAIT));
}

TEST(cut, "A packet that is too long, or has too many or no descriptors, is "
    "not passed, and no descriptor stays")
{
	int fds[64];
	unsigned int i;

	start();
	fds[0] = conn[0];
	for (i = 1; i < nitems(fds); i++)
		ATF_REQUIRE((fds[i] = memfd_create("memory", 0)) != -1);
	not_passed(1, fds, 1);
	not_passed(VALE_WIRE_MAX + 1, fds, 2);
	not_passed(1, fds, VALE_WIRE_REPLY_FDS + 4);
	not_passed(1, fds, 64);
	ATF_CHECK(pass(VALE_WIRE_MAX, 'x', fds + 1, VALE_WIRE_REPLY_FDS));
	arrives(VALE_WIRE_MAX, 'x', fds + 1, VALE_WIRE_REPLY_FDS);
	ATF_CHECK_EQ(4, passer_fds());
}

TEST(interrupted, "Calls that a signal or a lack of memory interrupts are "
    "repeated; other errors are none of those")
{
	const int fd = memfd_create("memory", 0);
	int status;

	failing_start();
	start();
	failing->sendmsg[0] = failing->sendmsg[1] = EINTR;
	failing->recv[0] = failing->recv[1] = EINTR;
	failing->recvmsg[0] = EINTR;
	failing->recvmsg[1] = ENOMEM;
	failing->recvmsg[2] = EINTR;
	/* The passer waits already: the next one meets the last ones. */
	ATF_CHECK(pass(1, 'a', &fd, 1));
	wait_until(failing->recvmsg[0] == 0, "it receives again");
	arrives(1, 'a', &fd, 1);
	ATF_CHECK(pass(1, 'b', &fd, 1));
	arrives(1, 'b', &fd, 1);
	ATF_CHECK_EQ(0, failing->sendmsg[0] + failing->recv[0]);
	/* The passer's answer. */
	ATF_CHECK_EQ(MSG_NOSIGNAL, failing->flags);
	failing->recvmsg[0] = EBADF;
	/* It may wait already: then the next one. */
	(void)pass(1, 'c', &fd, 1);
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ(EX_OK, status);
}

TEST(interrupted_end, "It ends also if the call before was interrupted")
{
	int status;

	failing_start();
	start();
	failing->recvmsg[0] = EINTR;
	/* It waits already, or meets that now. */
	(void)pass(1, 'a', conn, 1);
	wait_until(failing->recvmsg[0] == 0, "an interruption");
	ATF_REQUIRE_EQ(0, shutdown(ctl_pass_fd(), SHUT_WR));
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ(EX_OK, status);
}

TEST(not_sent, "What cannot be sent is not, and the process goes on")
{
	const int fd = memfd_create("memory", 0);

	failing_start();
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	failing->sendmsg[0] = EAGAIN;
	ATF_CHECK(!pass(1, 'a', &fd, 1));
	ATF_CHECK_EQ(MSG_NOSIGNAL | MSG_DONTWAIT, failing->flags);
	failing->sendmsg[0] = EINTR;
	ATF_CHECK(pass(1, 'b', &fd, 1));
	arrives(1, 'b', &fd, 1);
	ATF_REQUIRE_EQ(0, ctl_pass_start(enter));
	failing->recv[0] = EBADF;
	ATF_CHECK(!pass(1, 'c', &fd, 1));
}

TEST(not_started, "If it cannot start, there is none, and the caller is told "
    "why")
{
	int status;

	failing_start();
	failing->socketpair[0] = EMFILE;
	ATF_CHECK_EQ(EMFILE, ctl_pass_start(enter));
	failing->fork[0] = EAGAIN;
	ATF_CHECK_EQ(EAGAIN, ctl_pass_start(enter));
	ATF_CHECK_EQ(-1, wait(NULL));
	failing->dup2[0] = EBADF;
	ATF_CHECK_EQ(ECHILD, ctl_pass_start(enter));
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ(EX_OSERR, WEXITSTATUS(status));
	failing->close_range[0] = EINVAL;
	ATF_CHECK_EQ(ECHILD, ctl_pass_start(enter));
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ(EX_OSERR, WEXITSTATUS(status));
	failing->sendmsg[0] = EPIPE;
	ATF_CHECK_EQ(ECHILD, ctl_pass_start(enter));
	ATF_REQUIRE(wait(&status) != -1);
	entered = false;
	ATF_CHECK_EQ(ECHILD, ctl_pass_start(enter));
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ(EX_OSERR, WEXITSTATUS(status));
	ATF_CHECK_EQ(-1, ctl_pass_fd());
}

TEST_PROGRAM
