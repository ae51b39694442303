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
#include "fail_calls.h"
#include "open_fds.h"
#include "said.h"
#include "send_fds.h"
#include "test.h"
#include "vale_wire.h"
#include "wrap.h"

static int	conn[2];		/* valed's end, and the client's */

static bool	entered = true;		/* its sandbox can be entered */
/* So many calls of sendmsg(2) with MSG_DONTWAIT fail with ETOOMANYREFS. */
static unsigned int in_flight;

WRAP(ssize_t, sendmsg, int s, const struct msghdr *msg, int flags)
{
	if ((flags & MSG_DONTWAIT) != 0 && in_flight > 0) {
		in_flight--;
		errno = ETOOMANYREFS;
		return (-1);
	}
	if (FAIL_CALL("sendmsg")) {
		fail_errno(ENOBUFS);
		return (-1);
	}
	return (__real_sendmsg(s, msg, flags));
}

static int
enter(void)
{
	return (entered ? 0 : -1);
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

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	for (i = 0; i < 2; i++) {
		in_flight = 2;
		/* The process has a number of its own. */
		if (i == 1)
			start();
		ATF_REQUIRE(pass(1, 'a', &fd, 1));
		ATF_CHECK_EQ(i == 0 ? 0 : 2, in_flight);
		arrives(1, 'a', &fd, 1);
	}
	ATF_REQUIRE_EQ(0, shutdown(ctl_pass_fd(), SHUT_WR));
	ctl_pass_moved(-1);
	in_flight = UINT_MAX;
	for (i = 0; i < 2; i++) {
		ATF_CHECK(!pass(1, 'b', &fd, 1));
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

/* End the passer, if there is one, and wait for it. */
static void
passer_end(void)
{
	if (ctl_pass_fd() != -1) {
		close(ctl_pass_fd());
		ctl_pass_moved(-1);
	}
	while (wait(NULL) != -1)
		continue;
	ATF_CHECK_EQ(ECHILD, errno);
}

/*
 * Start the process and pass a packet, while call `n' of both processes, or of
 * those of one function, fails with this errno, or its own.  Returns false if
 * there are not so many.
 */
static bool
fails(const char *only, uint32_t n, int error, const int *fd)
{
	const unsigned int fds = open_fds();
	const char *name;
	int started;
	bool failed, passed = false;

	fail_calls_error(error);
	fail_calls(only, n, 1);
	started = ctl_pass_start(enter);
	if (started == 0)
		passed = pass(1, 'a', fd, 1);
	failed = fail_calls_end() > 0;
	name = fail_calls_name();
	ATF_CHECK_EQ_MSG(started == 0, ctl_pass_fd() != -1, "%s", name);
	if (passed)
		arrives(1, 'a', fd, 1);
	else {
		ATF_REQUIRE_MSG(failed, "nothing has failed");
		/* Of what was passed there may have been no answer. */
		(void)recv(conn[1], &(char){ 0 }, 1, MSG_DONTWAIT);
	}
	/* A signal ends no wait, nor does a lack of memory a receive. */
	if (failed && (strncmp(name, "recv", 4) == 0 || (error == EINTR &&
	    strcmp(name, "sendmsg") == 0)))
		ATF_CHECK_MSG(passed, "%s, call %u", name, n);
	/* The process goes on after that, or has ended. */
	if (started == 0 && failed && pass(1, 'b', fd, 1))
		arrives(1, 'b', fd, 1);
	else if (started == 0 && failed)
		ATF_CHECK_EQ_MSG(0, recv(ctl_pass_fd(), &(char){ 0 }, 1, 0),
		    "%s, call %u", name, n);
	passer_end();
	ATF_CHECK_EQ_MSG(fds, open_fds(), "%s, call %u", name, n);
	return (failed);
}

TEST(each, "Each call of the two processes fails, or is interrupted: nothing "
    "waits for ever or is left, and the process goes on or has ended")
{
	static const int errors[] = { 0, EINTR };
	/* Which process is first is not always the same. */
	static const char *const only[] = { NULL, "recv", "recvmsg",
	    "sendmsg" };
	const int fd = memfd_create("memory", 0);
	unsigned int i, k;
	uint32_t n;

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, conn));
	for (i = 0; i < nitems(errors); i++)
		for (k = 0; k < nitems(only); k++) {
			for (n = 1; fails(only[k], n, errors[i], &fd); n++)
				continue;
			ATF_CHECK_MSG(n > (k == 0 ? 10 : 1), "%u", n);
		}
	entered = false;
	ATF_CHECK_EQ(ECHILD, ctl_pass_start(enter));
	ATF_CHECK_EQ(-1, ctl_pass_fd());
}

TEST_PROGRAM
