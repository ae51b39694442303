/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * valed's sandbox: a process enters it as valed does, and makes the system
 * calls of an attacker who controls a thread.  Each one kills the process
 * (SIGSYS), or is refused with EPERM; those that valed needs work.  numbers has
 * all system calls; the cases before it have those that depend on arguments.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/capability.h>
#include <linux/if_xdp.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter.h"
#include "ctl_pass.h"
#include "hostif_ring.h"
#include "peer_fault.h"
#include "peer_fd.h"
#include "peer_mem.h"
#include "peer_signal.h"
#include "test.h"
#include "valed_sandbox.h"

/* How an attempt ended. */
#define	DONE		0		/* exit status: it succeeded */
#define	REFUSED		1		/* EPERM */
#define	OTHERWISE	2		/* another error: it was allowed */
#define	NOT_IN		3		/* the sandbox could not be entered */

static int	pass = -1;	/* of a control socket's sandbox: the passer */
static int	store = -1;	/* and the connection to the store */
static bool	in_passer;	/* the passer's own sandbox */
static bool	in_opener;	/* and that of who opens a port */
static bool	no_signals;	/* whose context takes 30 ms to end */
static int	socket_pair[2];
static char	page[8192];

/* A system call with valid arguments. */
struct attempt {
	const char	*what;
	long		 number;
	long		 arg[6];
};

static int
judge(long result)
{
	if (result != -1)
		return (DONE);
	return (errno == EPERM ? REFUSED : OTHERWISE);
}

/* Run `act' in a process in the sandbox, and return the process's status. */
static int
inside(int (*act)(const void *), const void *arg)
{
	pid_t pid;
	int status;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		if ((!no_signals && peer_signal_start() != 0) ||
		    (in_passer ? valed_sandbox_enter_passer() :
		    in_opener ? valed_sandbox_enter_opener() :
		    valed_sandbox_enter(pass, store)) == -1)
			_exit(NOT_IN);
		_exit(act(arg));
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	return (status);
}

static int
act_attempt(const void *arg)
{
	const struct attempt *a = arg;

	return (judge(syscall(a->number, a->arg[0], a->arg[1], a->arg[2],
	    a->arg[3], a->arg[4], a->arg[5])));
}

/* Check that `act' does all in the sandbox, and returns 0. */
static void
check_works(int (*act)(const void *), const void *arg)
{
	const int status = inside(act, arg);

	ATF_CHECK_EQ_MSG(0, status, "status %#x", status);
}

static void
check_killed(const char *what, int status)
{
	ATF_CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS,
	    "%s: status %#x", what, status);
}

static void
all_killed(const struct attempt *a, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		check_killed(a[i].what, inside(act_attempt, &a[i]));
}

#define	P(p)	((long)(uintptr_t)(p))

TEST(files, "Opening a file, or looking at one by name, is refused; other "
    "system calls with names kill the process")
{
	struct stat st;
	const struct attempt refused[] = {
		{ "open", SYS_open, { P("/etc/passwd"), O_RDONLY } },
		{ "openat", SYS_openat, { AT_FDCWD, P("."), O_RDONLY } },
		{ "stat", SYS_stat, { P("/"), P(&st) } },
		{ "newfstatat by name", SYS_newfstatat,
		    { AT_FDCWD, P("/"), P(&st), 0 } },
		{ "newfstatat by name, AT_EMPTY_PATH", SYS_newfstatat,
		    { AT_FDCWD, P("/"), P(&st), AT_EMPTY_PATH } },
		{ "newfstatat without a name", SYS_newfstatat,
		    { 0, P(""), P(&st), AT_EMPTY_PATH } },
		{ "access", SYS_access, { P("/"), R_OK } },
		{ "readlink", SYS_readlink, { P("/proc/self/exe"), P(page),
		    sizeof(page) } },
		{ "ioctl", SYS_ioctl, { 0, 0x5413 } },
	}, killed[] = {
		{ "statx", SYS_statx, { AT_FDCWD, P("/"), AT_EMPTY_PATH, 0,
		    P(page) } },
		{ "truncate", SYS_ftruncate, { 0, 0 } },
		{ "fcntl F_SETLK", SYS_fcntl, { 0, F_SETLK, P(page) } },
		{ "fcntl F_SETOWN", SYS_fcntl, { 0, F_SETOWN, 1 } },
		{ "fcntl F_ADD_SEALS", SYS_fcntl,
		    { 0, F_ADD_SEALS, F_SEAL_SEAL } },
	};
	size_t i;
	int status;

	for (i = 0; i < nitems(refused); i++) {
		status = inside(act_attempt, &refused[i]);
		ATF_CHECK_MSG(WIFEXITED(status) &&
		    WEXITSTATUS(status) == REFUSED, "%s: status %#x",
		    refused[i].what, status);
	}
	all_killed(killed, nitems(killed));
}

/* What libc passes to clone() to start a thread, before it sets registers. */
#define	THREAD	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |	\
		CLONE_THREAD | CLONE_SYSVSEM)

static int
act_clone3(const void *arg __attribute__((__unused__)))
{
	return (syscall(SYS_clone3, page, 88) == -1 && errno == ENOSYS ? DONE :
	    OTHERWISE);
}

TEST(processes, "A clone() that creates more than a thread, or a signal for "
    "another, kills the caller; clone3() does not exist")
{
	const struct attempt killed[] = {
		{ "clone", SYS_clone, { SIGCHLD } },
		{ "clone, memory", SYS_clone, { CLONE_VM | SIGCHLD } },
		{ "clone, as vfork", SYS_clone,
		    { CLONE_VM | CLONE_VFORK | SIGCHLD } },
		{ "clone, with a signal", SYS_clone, { THREAD | SIGCHLD } },
		{ "clone, descriptors", SYS_clone, { THREAD & ~CLONE_FILES } },
		{ "clone, directories", SYS_clone, { THREAD & ~CLONE_FS } },
		{ "clone, parent", SYS_clone, { THREAD | CLONE_PARENT } },
		{ "clone, untraced", SYS_clone, { THREAD | CLONE_UNTRACED } },
		{ "clone, users", SYS_clone, { THREAD | CLONE_NEWUSER } },
		{ "clone, mounts", SYS_clone, { THREAD | CLONE_NEWNS } },
		{ "clone, network", SYS_clone, { THREAD | CLONE_NEWNET } },
		{ "tgkill another", SYS_tgkill,
		    { getpid(), getpid(), PEER_SIGNAL } },
		{ "prctl", SYS_prctl, { PR_SET_DUMPABLE, 1 } },
	};

	all_killed(killed, nitems(killed));
	/* libc then uses clone(). */
	check_works(act_clone3, NULL);
}

static void *
thread_nothing(void *arg)
{
	return (arg);
}

static int
act_control(const void *arg)
{
	struct iovec iov = { (char []){ 'y' }, 1 };
	const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	pthread_t thread[20];
	struct ucred peer;
	socklen_t len, none = 0;
	int fd, pair[2];
	size_t i;
	char c;

	for (i = 0; i < nitems(thread); i++)
		if (pthread_create(&thread[i], NULL, thread_nothing, NULL) != 0)
			return (1);
	for (i = 0; i < nitems(thread); i++)
		pthread_join(thread[i], NULL);
	fd = memfd_create("x", MFD_ALLOW_SEALING);
	if (fd == -1 || ftruncate(fd, 4096) == -1 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == -1)
		return (2);
	if (close(fcntl(fd, F_DUPFD_CLOEXEC, 0)) == -1 ||
	    close(fcntl(fd, F_DUPFD_CLOEXEC, 900)) == -1 ||
	    close(-1) != -1 || errno != EBADF)
		return (5);
	if (sendmsg(pass, &msg, MSG_NOSIGNAL) != 1 ||
	    read(socket_pair[1], &c, 1) != 1 || c != 'y')
		return (6);
	if (pwrite(fd, "x", 1, 4095) != 1 || pread(fd, &c, 1, 4095) != 1 ||
	    c != 'x')
		return (3);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1)
		return (4);
	len = sizeof(peer);
	if (getsockname(pair[0], (struct sockaddr *)&peer, &len) == -1)
		return (7);
	len = sizeof(fd);
	if (getsockopt(pair[0], SOL_SOCKET, SO_PROTOCOL, &fd, &len) == -1)
		return (8);
	len = sizeof(peer);
	if (getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1 ||
	    peer.uid != *(const uid_t *)arg)
		return (5);
	return (getsockopt(pair[0], SOL_SOCKET, SO_PEERGROUPS, NULL,
	    &none) == 0 || errno == ERANGE ? 0 : 6);
}

TEST(control, "With a control socket, threads, memory and pairs of local "
    "sockets can be created, and clients known, and no more")
{
	const struct msghdr msg = { .msg_iovlen = 0 };

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socket_pair));

	const unsigned long thread = CLONE_VM | CLONE_FS | CLONE_FILES |
	    CLONE_SIGHAND | CLONE_THREAD;
	const struct attempt killed[] = {
		{ "clone of a process", SYS_clone, { SIGCHLD } },
		{ "clone into namespaces", SYS_clone,
		    { thread | CLONE_NEWUSER } },
		{ "clone with other files", SYS_clone,
		    { thread & ~CLONE_FILES } },
		{ "truncate of a log", SYS_ftruncate, { 2, 0 } },
		{ "pwrite to a log", SYS_pwrite64, { 2, P(page), 1, 0 } },
		/* The kernel uses 32 bits of it. */
		{ "truncate of a log, 64 bits", SYS_ftruncate,
		    { 1L << 32 | 2, 0 } },
		{ "truncate of a log, 64 bits", SYS_ftruncate,
		    { 1L << 40, 0 } },
		{ "pwrite to a log, 64 bits", SYS_pwrite64,
		    { 1L << 32 | 2, P(page), 1, 0 } },
		{ "pwrite to a log, 64 bits", SYS_pwrite64,
		    { 1L << 63 | 1, P(page), 1, 0 } },
		{ "socketpair inet", SYS_socketpair,
		    { AF_INET, SOCK_STREAM, 0, P(page) } },
		{ "getsockopt", SYS_getsockopt, { 0, SOL_SOCKET, SO_PEERSEC, 0,
		    0 } },
		{ "sendmsg elsewhere", SYS_sendmsg,
		    { socket_pair[1], P(&msg), MSG_NOSIGNAL } },
		{ "sendmsg, urgent", SYS_sendmsg,
		    { socket_pair[0], P(&msg), MSG_OOB | MSG_NOSIGNAL } },
		{ "close of the passer's", SYS_close, { socket_pair[0] } },
		{ "close of the passer's, 64 bits", SYS_close,
		    { 1L << 32 | socket_pair[0] } },
		{ "another file in its place", SYS_dup2,
		    { socket_pair[1], socket_pair[0] } },
		{ "the same", SYS_dup3, { socket_pair[1], socket_pair[0] } },
	};
	const uid_t uid = geteuid();

	pass = socket_pair[0];
	check_works(act_control, &uid);
	all_killed(killed, nitems(killed));
}

TEST(network, "A system call that sends elsewhere, or changes a socket, kills "
    "the process")
{
	const struct mmsghdr msg = { .msg_len = 0 };
	struct sockaddr_un sun;
	struct attempt killed[] = {
		{ "socketpair", SYS_socketpair,
		    { AF_UNIX, SOCK_STREAM, 0, P(page) } },
		{ "getsockname", SYS_getsockname, { 0, P(page), P(page) } },
		{ "setsockopt", SYS_setsockopt,
		    { 0, SOL_SOCKET, SO_SNDBUF, P(page), 4 } },
		{ "sendto an address", SYS_sendto,
		    { 0, P(page), 1, 0, P(&sun), sizeof(sun) } },
		{ "sendto an address without a length", SYS_sendto,
		    { 0, P(page), 1, 0, P(&sun), 0 } },
		{ "sendto a length", SYS_sendto,
		    { 0, P(page), 1, 0, 0, sizeof(sun) } },
		{ "send, urgent", SYS_sendto, { 0, P(page), 1, MSG_OOB } },
		{ "send without a copy", SYS_sendto,
		    { 0, P(page), 1, MSG_ZEROCOPY } },
		{ "sendmsg", SYS_sendmsg, { 0, P(&msg), 0 } },
		{ "sendmsg of -1", SYS_sendmsg, { -1, P(&msg), MSG_NOSIGNAL } },
		{ "getsockopt", SYS_getsockopt, { 0, SOL_SOCKET, SO_PEERCRED, 0,
		    0 } },
		{ "getsockopt", SYS_getsockopt, { 0, SOL_XDP, XDP_OPTIONS, 0,
		    0 } },
		{ "setsockopt", SYS_setsockopt, { 0, SOL_SOCKET, SO_MARK, 0,
		    0 } },
		{ "a ring of one's own", SYS_setsockopt, { 0, SOL_PACKET,
		    PACKET_RX_RING, P(page), sizeof(hostif_ring_none) } },
		{ "a transmit ring", SYS_setsockopt, { 0, SOL_PACKET,
		    PACKET_TX_RING, P(&hostif_ring_none),
		    sizeof(hostif_ring_none) } },
		{ "a shorter ring", SYS_setsockopt, { 0, SOL_PACKET,
		    PACKET_RX_RING, P(&hostif_ring_none), 4 } },
	};
	size_t i;

	memset(&sun, 0, sizeof(sun));
	sun.sun_family = AF_UNIX;
	strcpy(sun.sun_path, "x");
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socket_pair));
	for (i = 0; i < nitems(killed); i++)
		if (killed[i].arg[0] == 0)
			killed[i].arg[0] = socket_pair[0];
	all_killed(killed, nitems(killed));
}

TEST(memory, "A system call that makes memory executable kills the process")
{
	void *p;

	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON,
	    -1, 0);
	ATF_REQUIRE(p != MAP_FAILED);
	const struct attempt killed[] = {
		{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANON, -1, 0 } },
		{ "mprotect", SYS_mprotect, { P(p), 4096,
		    PROT_READ | PROT_WRITE | PROT_EXEC } },
	};

	all_killed(killed, nitems(killed));
}

/* getpid() of the x32 ABI, and of i386's. */
static int
act_x32(const void *arg __attribute__((__unused__)))
{
	return (judge(syscall(0x40000000 + SYS_getpid)));
}

static int
act_i386(const void *arg __attribute__((__unused__)))
{
	long result;

	__asm __volatile("int $0x80" : "=a" (result) : "0" (20L) : "memory",
	    "r8", "r9", "r10", "r11");
	return (DONE);
}

TEST(other_abi, "A system call of another ABI kills the process")
{
	check_killed("x32", inside(act_x32, NULL));
	check_killed("i386", inside(act_i386, NULL));
}

/* A thread that exists before the filter is installed. */
static pthread_barrier_t barrier;

static void *
thread_main(void *arg __attribute__((__unused__)))
{
	pthread_barrier_wait(&barrier);
	syscall(SYS_unlink, "x");
	return (NULL);
}

TEST(threads, "The filter also applies to threads that exist already")
{
	pthread_t thread;
	pid_t pid;
	int status;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		pthread_barrier_init(&barrier, NULL, 2);
		if (pthread_create(&thread, NULL, thread_main, NULL) != 0 ||
		    valed_sandbox_enter(-1, -1) == -1)
			_exit(NOT_IN);
		pthread_barrier_wait(&barrier);
		pthread_join(thread, NULL);
		_exit(DONE);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	check_killed("unlink by a thread", status);
}

static volatile sig_atomic_t	signalled;

static void
on_signal(int sig __attribute__((__unused__)))
{
	signalled = 1;
}

/* What an adapter's thread opens.  Returns NULL if all went well. */
static void *
thread_added(void *arg __attribute__((__unused__)))
{
	static char failed;
	void *p;
	bool ok;

	ok = prctl(PR_SET_NAME, "added") == 0 &&
	    eventfd(0, EFD_NONBLOCK) != -1 && epoll_create1(0) != -1 &&
	    timerfd_create(CLOCK_MONOTONIC, 0) != -1 &&
	    memfd_create("added", 0) != -1;
	/* A heap of its own. */
	p = malloc(1 << 12);
	free(p);
	return (ok && p != NULL ? NULL : &failed);
}

/* Returns which step failed. */
static int
act_serve(const void *arg __attribute__((__unused__)))
{
	pthread_t thread;
	struct __user_cap_header_struct h;
	uint64_t one = 1;
	struct stat st;
	void *p;
	int fd;

	memset(&h, 0, sizeof(h));
	if (send(socket_pair[0], &one, sizeof(one), MSG_DONTWAIT |
	    MSG_NOSIGNAL) != sizeof(one) ||
	    read(socket_pair[1], &one, sizeof(one)) != sizeof(one))
		return (18);
	if (send(socket_pair[0], &one, sizeof(one), 0) != sizeof(one) ||
	    recv(socket_pair[1], &one, sizeof(one), 0) != sizeof(one))
		return (10);
	p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON,
	    -1, 0);
	if (p == MAP_FAILED || munmap(p, 1 << 20) == -1)
		return (11);
	p = malloc(1 << 20);
	if (p == NULL)
		return (12);
	free(p);
	if (fcntl(socket_pair[0], F_SETFL, O_NONBLOCK) == -1)
		return (13);
	if (pthread_kill(pthread_self(), PEER_SIGNAL) != 0 || !signalled)
		return (14);
	if (peer_fstat(socket_pair[0], &st) == -1 || !S_ISSOCK(st.st_mode))
		return (15);
	/* An adapter that is added. */
	if (pthread_create(&thread, NULL, thread_added, NULL) != 0 ||
	    pthread_join(thread, &p) != 0 || p != NULL)
		return (16);
	/* An event without waiting. */
	fd = eventfd(0, EFD_NONBLOCK);
	if (peer_signal(&fd, 1) != 1 || read(fd, &one, sizeof(one)) != 8 ||
	    one != 1)
		return (19);
	/* Its capabilities are those of the thread that created it: none. */
	if (valed_sandbox_drop() != 0)
		return (17);
	return (DONE);
}

/* Requests of another context, which this thread has not made. */
static int
act_context(const void *arg __attribute__((__unused__)))
{
	return (judge(syscall(SYS_io_submit, peer_signal_context() + 1, 0L,
	    NULL)));
}

TEST(context, "Requests of another context than that for events kill the "
    "process")
{
	check_killed("io_submit", inside(act_context, NULL));
}

TEST(serves, "System calls that valed needs work")
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	ATF_REQUIRE_EQ(0, sigaction(PEER_SIGNAL, &sa, NULL));
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socket_pair));
	check_works(act_serve, NULL);
}

static uint8_t	*guest, *elsewhere;	/* pages that are gone */

static void
on_lost(void *arg)
{
	++*(int *)arg;
}

static void
on_pause(void *arg __attribute__((__unused__)),
    bool paused __attribute__((__unused__)))
{
}

static int
act_touch_guest(const void *lost)
{
	*(volatile uint8_t *)guest = 1;
	return (*(const int *)lost == 1 ? DONE : OTHERWISE);
}

static int
act_touch_elsewhere(const void *arg __attribute__((__unused__)))
{
	*(volatile uint8_t *)elsewhere = 1;
	return (DONE);
}

static int
act_raise(const void *arg __attribute__((__unused__)))
{
	return (raise(SIGBUS));
}

/* A page of a file that is truncated, instead of the one at `at'. */
static uint8_t *
gone(void *at)
{
	const int fd = memfd_create("gone", 0);
	void *p;

	ATF_REQUIRE(fd != -1 && ftruncate(fd, PEER_MEM_PAGE) == 0);
	p = mmap(at, PEER_MEM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED |
	    (at != NULL ? MAP_FIXED : 0), fd, 0);
	ATF_REQUIRE(p != MAP_FAILED && ftruncate(fd, 0) == 0);
	return (p);
}

TEST(fault, "Guest memory that is gone is replaced; another fault ends the "
    "process")
{
	int (*const end[])(const void *) = { act_touch_elsewhere, act_raise };
	static struct peer_mem mem;
	const char *why;
	int fd, lost = 0, status;
	size_t i;

	ATF_REQUIRE_EQ(0, peer_fault_init());
	peer_mem_init(&mem, 0, on_pause, NULL);
	ATF_REQUIRE_EQ(0, peer_fault_add(&mem, on_lost, &lost));
	fd = memfd_create("guest", MFD_ALLOW_SEALING);
	ATF_REQUIRE(fd != -1 && ftruncate(fd, PEER_MEM_PAGE) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	ATF_REQUIRE_EQ(0, peer_mem_map(&mem, fd, 0, 0, PEER_MEM_PAGE,
	    PROT_READ | PROT_WRITE, &why));
	guest = gone(peer_mem_addr(&mem, 0, PEER_MEM_PAGE, PROT_WRITE));
	elsewhere = gone(NULL);
	check_works(act_touch_guest, &lost);
	for (i = 0; i < nitems(end); i++) {
		status = inside(end[i], NULL);
		ATF_CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) ==
		    SIGBUS, "%zu: status %#x", i, status);
	}
}

TEST(passer, "The process that passes descriptors does so in its sandbox, and "
    "can make no other system call")
{
	const struct attempt killed[] = {
		{ "getsockopt", SYS_getsockopt, { 0, SOL_SOCKET, SO_PEERCRED,
		    0, 0 } },
		{ "fcntl", SYS_fcntl, { 0, F_DUPFD_CLOEXEC, 0 } },
	};
	int fds[3], i, other[2], status;
	char c;

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socket_pair));
	ATF_REQUIRE_EQ(0, ctl_pass_start(valed_sandbox_enter_passer));
	fds[0] = memfd_create("memory", 0);
	ATF_REQUIRE(fds[0] != -1);
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds + 1));
	ATF_REQUIRE_EQ(0, pipe(other));
	for (i = 0; i < 3; i++) {
		ATF_REQUIRE(ctl_pass(socket_pair[0], "x", 1, fds, 3));
		/* What it refuses. */
		ATF_REQUIRE(!ctl_pass(socket_pair[0], "x", 1, other, 1));
		ATF_REQUIRE(!ctl_pass(fds[1], "x", 1, fds, 1));
	}
	ATF_REQUIRE_EQ(1, recv(socket_pair[1], &c, 1, 0));
	ATF_CHECK_EQ('x', c);
	/* The client has gone, and then valed. */
	close(socket_pair[1]);
	ATF_REQUIRE(!ctl_pass(socket_pair[0], "x", 1, fds, 3));
	ATF_REQUIRE_EQ(0, shutdown(ctl_pass_fd(), SHUT_WR));
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ_MSG(0, status, "status %#x", status);
	in_passer = true;
	all_killed(killed, nitems(killed));
}

/* Connect to a local socket that there is not, and wait. */
static int
act_open_port(const void *arg __attribute__((__unused__)))
{
	const struct sockaddr_un sun = { .sun_family = AF_UNIX,
	    .sun_path = "nobody" };
	struct pollfd pfd = { .fd = -1 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	if (fd == -1 || connect(fd, (const void *)&sun, sizeof(sun)) != -1 ||
	    errno != ENOENT)
		return (10);
	if (poll(&pfd, 1, 1) != 0)
		return (11);
	close(fd);
	return (DONE);
}

TEST(opener, "The process that opens a port connects to local sockets, and has "
    "no other files or networks")
{
	const struct attempt killed[] = {
		{ "socket of the network", SYS_socket, { AF_INET, SOCK_DGRAM,
		    0 } },
		{ "socket of packets", SYS_socket, { AF_PACKET, SOCK_RAW,
		    0 } },
	};

	in_opener = true;
	check_works(act_open_port, NULL);
	all_killed(killed, nitems(killed));
}

static int
act_rights(const void *arg __attribute__((__unused__)))
{
	struct __user_cap_header_struct h;
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	memset(&h, 0, sizeof(h));
	memset(d, 0, sizeof(d));
	h.version = _LINUX_CAPABILITY_VERSION_3;
	if (syscall(SYS_capget, &h, d) == -1)
		return (10);
	return (d[0].effective == 0 && d[0].permitted == 0 &&
	    d[1].effective == 0 && d[1].permitted == 0 ? DONE : 11);
}

TEST(rights, "Capabilities are dropped before the filter is installed")
{
	pid_t pid;
	int status;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0)
		_exit(valed_sandbox_drop() == -1 ? NOT_IN : act_rights(NULL));
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	ATF_CHECK_EQ_MSG(0, status, "status %#x", status);
}

/* With arguments that no rule permits. */
static int
act_number(const void *arg)
{
	(void)syscall(*(const long *)arg, -1L, -1L, -1L, -1L, -1L, -1L);
	return (DONE);
}

/* Such a call kills the process, unless it is one of these. */
static void
all_but(const long *permitted, size_t n)
{
	long number;
	size_t i;
	int status;

	no_signals = true;
	for (number = 0; number < 500; number++) {
		/* Those of uprobes, which the kernel filters in no process. */
		if (number == 335 || number == 336)
			continue;
		for (i = 0; i < n && permitted[i] != number; i++)
			continue;
		status = inside(act_number, &number);
		ATF_CHECK_EQ_MSG(i == n, WIFSIGNALED(status) &&
		    WTERMSIG(status) == SIGSYS, "call %ld: status %#x", number,
		    status);
	}
}

TEST(numbers, "The serving process, also with a control socket, makes these "
    "system calls, and no others")
{
	static const long permitted[] = {
		SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64,
		SYS_fstat, SYS_fstatfs, SYS_close, SYS_accept4, SYS_recvmsg,
		SYS_recvfrom, SYS_shutdown, SYS_getsockname, SYS_epoll_wait,
		SYS_epoll_pwait, SYS_epoll_ctl, SYS_epoll_create1, SYS_poll,
		SYS_ppoll, SYS_eventfd2, SYS_timerfd_create,
		SYS_timerfd_settime, SYS_memfd_create, SYS_munmap, SYS_mremap,
		SYS_madvise, SYS_brk, SYS_futex, SYS_sched_yield,
		SYS_sched_getaffinity, SYS_gettid, SYS_getpid, SYS_rt_sigaction,
		SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
		SYS_getrusage, SYS_clock_gettime, SYS_gettimeofday,
		SYS_clock_nanosleep, SYS_nanosleep, SYS_getrandom,
		SYS_restart_syscall, SYS_set_robust_list, SYS_rseq, SYS_exit,
		SYS_exit_group,
		/* They fail: files, and clone3() for clone(). */
		SYS_open, SYS_openat, SYS_readlink, SYS_readlinkat, SYS_stat,
		SYS_lstat, SYS_newfstatat, SYS_access, SYS_faccessat, SYS_ioctl,
		SYS_prlimit64, SYS_sysinfo, SYS_clone3,
	};

	pass = 37;
	all_but(permitted, nitems(permitted));
}

TEST(numbers_passer, "The processes that pass descriptors and open ports make "
    "these, and no others")
{
	static const long permitted[] = {
		SYS_recvmsg, SYS_sendmsg, SYS_close, SYS_exit_group,
		SYS_clock_nanosleep,
		/* The opener. */
		SYS_connect, SYS_recvfrom, SYS_poll, SYS_ppoll,
		SYS_clock_gettime, SYS_restart_syscall,
	};

#ifdef SANITIZED
	atf_tc_skip("a sanitizer makes more");
#endif
	in_passer = true;
	all_but(permitted, 5);
	in_passer = false;
	in_opener = true;
	all_but(permitted, nitems(permitted));
}

TEST(store, "With a store its connection, and the passer's, cannot be closed "
    "or replaced")
{
	const struct attempt killed[] = {
		{ "close of the store's", SYS_close, { 36 } },
		{ "close of the passer's", SYS_close, { 37 } },
		{ "another file in its place", SYS_dup3, { 0, 36 } },
		{ "the same, 64 bits", SYS_dup3, { 0, 1L << 32 | 36 } },
	};

	pass = 37;
	store = 36;
	all_killed(killed, nitems(killed));
}

TEST_PROGRAM
