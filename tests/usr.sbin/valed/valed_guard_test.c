/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard as a process (valed_guard.c): what it has, how it is replaced, lost
 * and ended, and calls that fail.  valed_changes_test has the changes that it
 * asks for.  The linker's --wrap brings system calls here, to fail where the
 * test says, in whichever process.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <dirent.h>
#include <err.h>
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

#include "adapter_config.h"
#include "failing.h"
#include "open_fds.h"
#include "test.h"
#include "valed_control.h"
#include "valed_guard.h"
#include "valed_guard_calls.h"
#include "valed_options.h"
#include "wait_until.h"

/* Errors of the next calls; a zero ends them.  All processes have it. */
static struct failing {
	int	fork[2], socketpair[2], recv[3], recvmsg[4], send[5],
		calloc[2];
} *failing;

WRAP(pid_t, fork, void)
{
	return (FAILS(fork) ? -1 : __real_fork());
}

WRAP(int, socketpair, int domain, int type, int protocol, int fds[2])
{
	return (FAILS(socketpair) ? -1 : __real_socketpair(domain, type,
	    protocol, fds));
}

WRAP(ssize_t, recv, int s, void *p, size_t len, int flags)
{
	return (FAILS(recv) ? -1 : __real_recv(s, p, len, flags));
}

WRAP(ssize_t, recvmsg, int s, struct msghdr *msg, int flags)
{
	return (FAILS(recvmsg) ? -1 : __real_recvmsg(s, msg, flags));
}

WRAP(ssize_t, send, int s, const void *p, size_t len, int flags)
{
	ATF_CHECK_EQ(MSG_NOSIGNAL, flags);
	return (FAILS(send) ? -1 : __real_send(s, p, len, flags));
}

WRAP(void *, calloc, size_t n, size_t size)
{
	return (FAILS(calloc) ? NULL : __real_calloc(n, size));
}

/* Before the guard is started. */
static void
failing_make(void)
{
	failing = mmap(NULL, sizeof(*failing), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	ATF_REQUIRE(failing != MAP_FAILED);
}

/* The guard, the child of this process. */
static pid_t
guard_pid(void)
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

/* The guard is there, under its own name. */
static bool
guard_named(void)
{
	char name[32] = "", path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", guard_pid());
	f = fopen(path, "r");
	if (f != NULL) {
		(void)fscanf(f, "%31s", name);
		fclose(f);
	}
	return (strcmp(name, "valed-guard") == 0);
}

TEST(process, "The guard has a name and a session, and no signal ends it")
{
	uint64_t blocked = 0;
	char line[128], path[64];
	pid_t pid;
	FILE *f;

	start(A, 5);
	wait_until(guard_named(), "its name");
	pid = guard_pid();
	ATF_CHECK_EQ(pid, getsid(pid));
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "SigBlk: %" SCNx64, &blocked);
	fclose(f);
	ATF_CHECK((blocked & 1 << (SIGTERM - 1)) != 0 &&
	    (blocked & 1 << (SIGHUP - 1)) != 0 &&
	    (blocked & 1 << (SIGPIPE - 1)) != 0);
	ATF_CHECK(exists("ctl"));
	/* It does not have the control socket. */
	ATF_CHECK(opt.vo_control->co_listen != -1);
	close(opt.vo_control->co_listen);
	ATF_CHECK(!listens("ctl", SOCK_SEQPACKET));
	reload(A);
	ends();
	ATF_CHECK(exists("ctl"));
	valed_guard_end(false);
	ATF_CHECK(!exists("ctl") && !exists("a.sock"));
}

/* The number of descriptors of the guard. */
static unsigned int
guard_fds(void)
{
	const struct dirent *d;
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", guard_pid());
	dir = opendir(path);
	ATF_REQUIRE(dir != NULL);
	while ((d = readdir(dir)) != NULL)
		n += d->d_name[0] != '.';
	closedir(dir);
	return (n);
}

TEST(descriptors, "The guard keeps no descriptor of a reload")
{
	unsigned int fds, i;

	start(A, 3);
	/* It has closed what is not its own. */
	wait_until(guard_named(), "its name");
	fds = guard_fds();
	for (i = 0; i < 3; i++) {
		reload(A C);
		reserves(3, "vale0:c", 0);
		adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
		ends();
		close(vc.vc_config.ac_listen);
		wait_until(guard_fds() == fds, "%u descriptors, not %u",
		    guard_fds(), fds);
		reload("x\n");
		ends_why("valed.conf:1: not name=value");
		ATF_CHECK_EQ_MSG(fds, guard_fds(), "%u, not %u", guard_fds(),
		    fds);
		reload(A);
		removes(3);
		ends();
		wait_until(guard_fds() == fds, "%u descriptors, not %u",
		    guard_fds(), fds);
	}
	valed_guard_end(false);
}

TEST(gone, "If the guard has gone, there is no reload, and nothing waits")
{
	start(A, 3);
	kill(guard_pid(), SIGKILL);
	ATF_CHECK(!valed_guard_change(&vc));
	ATF_CHECK(!valed_guard_reload(replace));
	ATF_CHECK_EQ(EPIPE, errno);
	valed_guard_answer(0);
	valed_guard_end(false);
	ATF_CHECK(exists("a.sock"));
}

TEST(between, "If the guard goes in the middle of a reload, there is no reload "
    "any more")
{
	start(A, 3);
	reload(A C);
	comes(VALED_RESERVE, 3);
	kill(guard_pid(), SIGKILL);
	ATF_CHECK(!valed_guard_change(&vc));
	ATF_CHECK(!valed_guard_reload(replace));
	valed_guard_end(false);
	ATF_CHECK(exists("a.sock") && !exists("c.sock"));
}

TEST(end, "An end in the middle of a reload leaves no socket and no descriptor")
{
	unsigned int fds;

	start(A, 3);
	fds = open_fds();
	reload(A B C);
	reserves(2, "vale0:b", 0);
	reserves(3, "vale0:c", 0);
	/* The next message is there, and is not taken. */
	wait_readable(valed_guard_fd(), "a change");
	valed_guard_end(false);
	ATF_CHECK_EQ_MSG(fds, open_fds(), "%u, not %u", open_fds(), fds);
	ATF_CHECK(!exists("a.sock") && !exists("b.sock") && !exists("c.sock"));
}

TEST(lost, "A socket for which there is no descriptor is reported as lost")
{
	struct rlimit limit, none;

	start(A, 3);
	reload(A C);
	reserves(3, "vale0:c", 0);
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	ATF_REQUIRE(valed_guard_change(&vc));
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ATF_CHECK(vc.vc_lost);
	ATF_CHECK_EQ(-1, vc.vc_config.ac_listen);
	valed_guard_answer(EMFILE);
	ends_why(FAILED(5, "c"));
	ATF_CHECK(!exists("c.sock"));
	valed_guard_end(false);
}

TEST(interrupted, "Calls that a signal or a lack of memory interrupts are "
    "repeated")
{
	failing_make();
	start(A, 3);
	failing->recv[0] = failing->recv[1] = EINTR;
	failing->recvmsg[0] = EINTR;
	failing->recvmsg[1] = ENOMEM;
	failing->recvmsg[2] = EINTR;
	/* The guard may wait already: the next one meets them. */
	reload(A);
	ends();
	reload(A C);
	comes(VALED_RESERVE, 3);
	failing->send[0] = EINTR;
	failing->send[1] = ENOBUFS;
	failing->send[2] = ENOMEM;
	failing->send[3] = EINTR;
	valed_guard_answer(0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	reload(A);
	removes(3);
	ends();
	ATF_CHECK_EQ(0, failing->recv[0] + failing->recvmsg[0] +
	    failing->send[0]);
	/* Other errors are the end. */
	failing->recvmsg[0] = EBADF;
	ATF_CHECK(!valed_guard_change(&vc));
	failing->send[0] = EBADF;
	ATF_CHECK(!valed_guard_reload(replace));
	ATF_CHECK_EQ(EBADF, errno);
	failing->send[0] = EPIPE;
	valed_guard_answer(0);
	ATF_CHECK_EQ(0, failing->send[0]);
	valed_guard_end(false);
	said("");
}

/* Start with a call that fails: a line, an exit status, and no socket. */
static void
start_fails(int *errors, const char *line)
{
	struct valed_why why = { .wy_status = 0 };
	int fds[2], status;
	char text[256];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	ATF_REQUIRE_EQ(0, pipe(fds));
	pid = __real_fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		if (!valed_options(3, argv, &opt, &why))
			_exit(0);
		errors[0] = ENOMEM;
		if (valed_guard_start(3, argv, &opt, &why))
			_exit(0);
		errx(why.wy_status, "%s", why.wy_text);
	}
	close(fds[1]);
	while ((n = read(fds[0], text + len, sizeof(text) - 1 -
	    len)) > 0)
		len += n;
	text[len] = '\0';
	close(fds[0]);
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_CHECK_EQ_MSG(EX_OSERR, WEXITSTATUS(status), "%#x", status);
	ATF_CHECK_STREQ(line, text);
	ATF_CHECK(!exists("a.sock") && !exists("b.sock"));
}

TEST(start_fails, "A guard that cannot start leaves no socket")
{
	failing_make();
	conf(A B);
	argv[3] = NULL;
	start_fails(failing->socketpair, "valed_guard_test: guard: Cannot "
	    "allocate memory\n");
	start_fails(failing->fork, "valed_guard_test: guard: Cannot allocate "
	    "memory\n");
	start_fails(failing->calloc, "valed_guard_test: Cannot allocate "
	    "memory\n");
}

TEST(no_memory, "A reload that runs out of memory changes nothing")
{
	failing_make();
	start(A, 3);
	conf(A C);
	failing->calloc[0] = ENOMEM;
	ATF_REQUIRE(valed_guard_reload(replace));
	ends_why("Cannot allocate memory");
	said("valed_guard_test: Cannot allocate memory\n");
	ATF_CHECK(!exists("c.sock") && exists("a.sock"));
	valed_guard_end(false);
}

TEST_PROGRAM
