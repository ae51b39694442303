/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The guard as a process (valed_guard.c), where the test's process is the one
 * that serves: how the guard ends, what it obeys, and calls that are
 * interrupted.  valed_reload_test has what a reload does.  The linker's --wrap
 * brings system calls here, to fail where the test says, in both processes.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_config.h"
#include "failing.h"
#include "open_fds.h"
#include "test.h"
#include "valed_guard.h"
#include "valed_options.h"
#include "wait_until.h"

/* Errors of the next calls; a zero ends them.  Both processes have it. */
static struct failing {
	int	recv[3], recvmsg[4], send[5];
} *failing;

static struct valed_options opt;
static struct valed_change vc;		/* the last one that came */

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

/* Lines of an adapter, with a socket of its name. */
#define	NODE(slot, name)						\
	"pci.0." #slot ".0.device=e1000\n"				\
	"pci.0." #slot ".0.backend=vale0:" name "\n"			\
	"pci.0." #slot ".0.path=" name ".sock\n"
#define	A	NODE(1, "a")
#define	C	NODE(3, "c")

static void
conf(const char *text)
{
	FILE *f = fopen("valed.conf", "w");

	ATF_REQUIRE(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static char	*argv[] = { (char []){ "valed" }, (char []){ "-k" },
	(char []){ "valed.conf" }, NULL };

static void
start(const char *text)
{
	struct valed_why why = { .wy_status = 0 };

	failing = mmap(NULL, sizeof(*failing), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	ATF_REQUIRE(failing != MAP_FAILED);
	conf(text);
	ATF_REQUIRE(valed_options(3, argv, &opt, &why));
	ATF_REQUIRE(valed_guard_start(3, argv, &opt, &why));
}

static void
reload(const char *text)
{
	conf(text);
	ATF_REQUIRE(valed_guard_reload(true));
}

static void
comes(int what, int slot)
{
	ATF_REQUIRE(valed_guard_change(&vc));
	ATF_REQUIRE_EQ_MSG(what, (int)vc.vc_what, "%d", vc.vc_what);
	ATF_CHECK_EQ(slot, vc.vc_config.ac_slot);
}

static void
ends(const char *why)
{
	comes(VALED_END, 0);
	ATF_CHECK_STREQ(why, vc.vc_why);
}

static void
adds(int slot)
{
	comes(VALED_ADD, slot);
	ATF_CHECK(vc.vc_config.ac_listen != -1);
	close(vc.vc_config.ac_listen);
	valed_guard_answer(0);
}

static bool
exists(const char *path)
{
	return (access(path, F_OK) == 0);
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

TEST(process, "The guard has a session, and no signal ends it")
{
	uint64_t blocked = 0;
	char line[128], path[64];
	pid_t pid;
	FILE *f;

	start(A);
	/* It is ready. */
	reload(A);
	ends("");
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
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock"));
}

TEST(end, "An end in the middle of a reload leaves no socket and no descriptor")
{
	unsigned int fds;

	start(A);
	fds = open_fds();
	reload(A C);
	comes(VALED_RESERVE, 3);
	valed_guard_answer(0);
	/* The next message is there, and is not taken. */
	wait_readable(valed_guard_fd(), "a change");
	ATF_CHECK(exists("c.sock"));
	valed_guard_end(false);
	ATF_CHECK_EQ_MSG(fds, open_fds(), "%u, not %u", open_fds(), fds);
	ATF_CHECK(!exists("a.sock") && !exists("c.sock"));
}

TEST(obeys, "During a reload the guard takes an answer, and no other order")
{
	start(A);
	reload(A C);
	comes(VALED_RESERVE, 3);
	valed_guard_absent(&opt.vo_adapters[0]);
	valed_guard_unattached("vale0:e", "");
	ATF_CHECK(valed_guard_reload(true));
	valed_guard_answer(0);
	adds(3);
	ends("");
	ATF_CHECK(exists("a.sock"));
	/* The adapter is known as before. */
	reload(C);
	comes(VALED_REMOVE, 1);
	valed_guard_answer(0);
	ends("");
	ATF_CHECK(!exists("a.sock") && exists("c.sock"));
	valed_guard_end(false);
}

TEST(lost, "A socket for which there is no descriptor is reported as lost")
{
	struct rlimit limit, none;

	start(A);
	reload(A C);
	comes(VALED_RESERVE, 3);
	valed_guard_answer(0);
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	ATF_REQUIRE(valed_guard_change(&vc));
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ATF_CHECK(vc.vc_lost);
	ATF_CHECK_EQ(-1, vc.vc_config.ac_listen);
	valed_guard_answer(EMFILE);
	ends("valed.conf:5: vale0:c: the adapter cannot be started");
	ATF_CHECK(!exists("c.sock"));
	valed_guard_end(false);
}

TEST(interrupted, "Calls that a signal or a lack of memory interrupts are "
    "repeated")
{
	start(A);
	failing->recv[0] = failing->recv[1] = EINTR;
	failing->recvmsg[0] = EINTR;
	failing->recvmsg[1] = ENOMEM;
	failing->recvmsg[2] = EINTR;
	/* The guard may wait already: the next call meets them. */
	reload(A);
	ends("");
	reload(A C);
	comes(VALED_RESERVE, 3);
	failing->send[0] = EINTR;
	failing->send[1] = ENOBUFS;
	failing->send[2] = ENOMEM;
	failing->send[3] = EINTR;
	valed_guard_answer(0);
	adds(3);
	ends("");
	ATF_CHECK_EQ(0, failing->recv[0] + failing->recvmsg[0] +
	    failing->send[0]);
	/* Other errors are the end. */
	failing->recvmsg[0] = EBADF;
	ATF_CHECK(!valed_guard_change(&vc));
	failing->send[0] = EBADF;
	ATF_CHECK(!valed_guard_reload(true));
	ATF_CHECK_EQ(EBADF, errno);
	valed_guard_end(false);
}

TEST_PROGRAM
