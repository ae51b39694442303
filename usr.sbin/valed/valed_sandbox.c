/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Dropping privileges: see seccomp(2), capabilities(7), and PR_SET_NO_NEW_PRIVS
 * in prctl(2).  All threads have the same filter.
 *
 * The filter allows the system calls that serving adapters and attached
 * interfaces takes, on open descriptors, memory, locks, threads, time and exit;
 * to send, but not to an address: a packet socket would send on any interface;
 * of an interface's rings, to read where they are and the number of frames that
 * the kernel has dropped, and to have a new receive ring.  Opening a file or
 * looking at one by name fails with EPERM, because libc and the sanitizers try
 * to, and handle the error.  newfstatat() always fails, also as the fstat() of
 * some C libraries: a filter cannot see whether a path is empty.  See
 * peer_fd.h.  Any other system call kills the process; with a store its
 * handler of SIGSYS, which cannot be replaced, notes first whose thread it was.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>

#include <linux/capability.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>

#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "adapter.h"
#include "hostif_ring.h"
#include "peer_signal.h"
#include "valed_sandbox.h"

static const int allowed[] = {
	/* open descriptors */
	SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev),
	SCMP_SYS(fstat), SCMP_SYS(fstatfs),
	SCMP_SYS(accept4), SCMP_SYS(recvmsg), SCMP_SYS(recvfrom),
	SCMP_SYS(shutdown),
	SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl),
	SCMP_SYS(timerfd_settime), SCMP_SYS(poll), SCMP_SYS(ppoll),
	/* memory; mmap and mprotect are below */
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk),
	/* threads, signals, time */
	SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(gettid),
	SCMP_SYS(getpid), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(getrusage), SCMP_SYS(sigaltstack), SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(getrandom),
	SCMP_SYS(restart_syscall), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
	/* exit */
	SCMP_SYS(exit), SCMP_SYS(exit_group),
	/* an adapter that is added: descriptors without a name, and malloc */
	SCMP_SYS(epoll_create1), SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create),
	SCMP_SYS(memfd_create), SCMP_SYS(sched_getaffinity),
};

/* Libraries try these, and handle the error. */
static const int refused[] = {
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(readlink),
	SCMP_SYS(readlinkat), SCMP_SYS(stat), SCMP_SYS(lstat),
	SCMP_SYS(newfstatat), SCMP_SYS(access), SCMP_SYS(faccessat),
	SCMP_SYS(ioctl), SCMP_SYS(prlimit64), SCMP_SYS(sysinfo),
};

static const int fcntl_allowed[] = {
	F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_DUPFD_CLOEXEC, F_GET_SEALS,
};

/* Set when a thread is in the sandbox; those that it creates are, too. */
static bool entered;

int
valed_sandbox_drop(void)
{
	struct __user_cap_header_struct h;
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	if (entered)
		return (0);
	memset(&h, 0, sizeof(h));
	memset(d, 0, sizeof(d));
	h.version = _LINUX_CAPABILITY_VERSION_3;
	return ((int)syscall(SYS_capset, &h, d));
}

/* A filter in the making, and the first error, a negative errno, or 0. */
struct rules {
	scmp_filter_ctx	ctx;
	int		error;
};

/*
 * Add a rule, unless there was an error; what follows is the call, the number
 * of comparisons, and them.
 */
#define	RULE(r, action, ...) do {					\
	if ((r)->error == 0)						\
		(r)->error = seccomp_rule_add((r)->ctx, (action),	\
		    __VA_ARGS__);					\
} while (0)
#define	ALLOW(r, ...)	RULE((r), SCMP_ACT_ALLOW, __VA_ARGS__)

/* Have an action for calls with any arguments. */
static void
rules_calls(struct rules *r, uint32_t action, const int *calls, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		RULE(r, action, calls[i], 0);
}

/* Allow a call whose argument `arg' is one of some values. */
static void
rules_values(struct rules *r, int call, unsigned int arg, const int *values,
    size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		ALLOW(r, call, 1, SCMP_CMP(arg, SCMP_CMP_EQ, values[i],
		    0));
}

/* Allow to read a socket's option. */
static void
rules_option(struct rules *r, int level, int option)
{
	ALLOW(r, SCMP_SYS(getsockopt), 2, SCMP_A1(SCMP_CMP_EQ, level, 0),
	    SCMP_A2(SCMP_CMP_EQ, option, 0));
}

/* Allow to send a signal to a thread of the process. */
static void
rules_signal(struct rules *r, int sig)
{
	ALLOW(r, SCMP_SYS(tgkill), 2, SCMP_A0(SCMP_CMP_EQ, getpid(), 0),
	    SCMP_A2(SCMP_CMP_EQ, sig, 0));
}

/*
 * Allow to signal clients' eventfds without waiting (peer_signal.c): requests
 * of one context, to descriptors that are open.
 */
static void
rules_request(struct rules *r)
{
	const uint64_t context = peer_signal_context();

	if (context != 0)
		ALLOW(r, SCMP_SYS(io_submit), 1,
		    SCMP_A0(SCMP_CMP_EQ, context, 0));
}

/*
 * Allow what it takes to go on with a client's stream where another process has
 * left it (vfu_stream.h), and to end by a signal.
 */
static void
rules_stream(struct rules *r)
{
	static const int calls[] = { SCMP_SYS(pipe2), SCMP_SYS(splice),
	    SCMP_SYS(recvmmsg) };
	/* With which adapter_keep.c ends the process. */
	static const int signals[] = { SIGSEGV, SIGILL, SIGFPE, SIGABRT,
	    SIGSYS };
	size_t i;

	ALLOW(r, SCMP_SYS(setsockopt), 2,
	    SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET, 0),
	    SCMP_A2(SCMP_CMP_EQ, SO_PEEK_OFF, 0));
	rules_calls(r, SCMP_ACT_ALLOW, calls, nitems(calls));
	for (i = 0; i < nitems(signals); i++)
		rules_signal(r, signals[i]);
}

/*
 * Allow a packet socket to have a new receive ring in place of the old one:
 * hostif_ring.c.  The filter cannot read the structure, which is a constant.
 * Who can write to constants can call mmap(2), too.
 */
static void
rules_ring(struct rules *r, const struct tpacket_req *ring)
{
	ALLOW(r, SCMP_SYS(setsockopt), 4, SCMP_A1(SCMP_CMP_EQ, SOL_PACKET, 0),
	    SCMP_A2(SCMP_CMP_EQ, PACKET_RX_RING, 0),
	    SCMP_A3(SCMP_CMP_EQ, (uintptr_t)ring, 0),
	    SCMP_A4(SCMP_CMP_EQ, sizeof(*ring), 0));
}

/*
 * Allow a thread of this process to be created, and named.  A filter cannot see
 * the flags of clone3(2), so that call does not exist; libc then uses clone(2).
 */
static void
rules_thread(struct rules *r)
{
	const unsigned int shared = CLONE_VM | CLONE_FS | CLONE_FILES |
	    CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	const unsigned int others = CLONE_PTRACE | CLONE_VFORK | CLONE_PARENT |
	    CLONE_UNTRACED | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
	    CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
	    CLONE_IO | CSIGNAL;

	ALLOW(r, SCMP_SYS(clone), 1,
	    SCMP_A0(SCMP_CMP_MASKED_EQ, shared | others, shared));
	RULE(r, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	ALLOW(r, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0));
}

/*
 * Allow a call whose argument `arg', a descriptor or a signal, is any number
 * but n, or any but that and n ^ 1, or a greater one.  A filter compares 64
 * bits of the argument, of which the kernel uses 32: so each rule is for the
 * numbers, of 32 bits, that differ from n in one bit and in none above it.
 */
enum numbers {
	BUT_THIS,
	BUT_PAIR,
	ABOVE
};

static void
rules_number(struct rules *r, int call, unsigned int arg, uint32_t n,
    enum numbers which)
{
	uint64_t bit = which == BUT_PAIR ? 2 : 1;

	for (; bit <= UINT32_MAX; bit <<= 1) {
		if (which != ABOVE || (n & bit) == 0)
			ALLOW(r, call, 1, SCMP_CMP(arg, SCMP_CMP_MASKED_EQ,
			    -bit, (n ^ bit) & -bit));
	}
}

/* The descriptors on which sendmsg(2) is permitted, or -1. */
struct sandbox_fds {
	int	pass;
	int	store;
};

static void
rules_sendmsg(struct rules *r, int fd)
{
	if (fd != -1)
		ALLOW(r, SCMP_SYS(sendmsg), 2, SCMP_A0(SCMP_CMP_EQ, fd, 0),
		    SCMP_A2(SCMP_CMP_MASKED_EQ, ~(uint64_t)MSG_DONTWAIT,
		    MSG_NOSIGNAL));
}

/*
 * Allow sendmsg(2) on the connections with the passer (ctl_pass.c) and the
 * supervisor (valed_store.c), which must stay the files of these descriptors:
 * they cannot be closed or replaced.
 */
static void
rules_pass(struct rules *r, const struct sandbox_fds *sf)
{
	const enum numbers which = sf->store == -1 ? BUT_THIS : BUT_PAIR;
	const int fd = sf->store == -1 ? sf->pass : sf->store;

	if (fd == -1) {
		ALLOW(r, SCMP_SYS(close), 0);
		ALLOW(r, SCMP_SYS(dup3), 0);
		return;
	}
	rules_number(r, SCMP_SYS(close), 0, fd, which);
	rules_number(r, SCMP_SYS(dup3), 1, fd, which);
	/* -1, which fails. */
	ALLOW(r, SCMP_SYS(close), 1, SCMP_A0(SCMP_CMP_EQ, UINT64_MAX, 0));
	rules_sendmsg(r, sf->pass);
	rules_sendmsg(r, sf->store);
}

/*
 * Allow what ports of other processes take: who they are (ctl_who.c), memory
 * that is sealed, pairs of sockets (vale_grant_port.c), to read and write
 * memory where it is not mapped (vale_grant_pipe.c), and to look what sockets
 * are (ctl_hostif.c).  Standard output and error, which may be files, cannot be
 * truncated.
 */
static void
rules_control(struct rules *r)
{
	static const int options[] = { SO_PEERCRED, SO_PEERGROUPS,
	    SO_PROTOCOL, SO_MEMINFO };
	size_t i;

	rules_number(r, SCMP_SYS(ftruncate), 0, STDERR_FILENO, ABOVE);
	for (i = 0; i < nitems(options); i++)
		rules_option(r, SOL_SOCKET, options[i]);
	ALLOW(r, SCMP_SYS(getsockname), 0);
	ALLOW(r, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_ADD_SEALS, 0));
	ALLOW(r, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	ALLOW(r, SCMP_SYS(pread64), 0);
	rules_number(r, SCMP_SYS(pwrite64), 0, STDERR_FILENO, ABOVE);
}

static void
rules(struct rules *r, const void *arg)
{
	const struct sandbox_fds *sf = arg;

	/* Memory that is not executable. */
	ALLOW(r, SCMP_SYS(mmap), 1,
	    SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	ALLOW(r, SCMP_SYS(mprotect), 1,
	    SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	/* For adapter_watch(), and with which peer_fault.c ends the process. */
	rules_signal(r, PEER_SIGNAL);
	rules_signal(r, SIGBUS);
	rules_thread(r);
	/* Frames that an interface's socket has lost, and its rings. */
	rules_option(r, SOL_PACKET, PACKET_STATISTICS);
	rules_option(r, SOL_XDP, XDP_STATISTICS);
	rules_option(r, SOL_XDP, XDP_MMAP_OFFSETS);
	rules_option(r, SOL_SOCKET, SO_DOMAIN);
	rules_ring(r, &hostif_ring_none);
	rules_ring(r, &hostif_ring_receive);
	rules_request(r);
	/* To send without an address, with the flags that are used. */
	ALLOW(r, SCMP_SYS(sendto), 3, SCMP_A3(SCMP_CMP_MASKED_EQ,
	    (uint32_t)~(MSG_DONTWAIT | MSG_NOSIGNAL), 0),
	    SCMP_A4(SCMP_CMP_EQ, 0, 0),
	    SCMP_A5(SCMP_CMP_MASKED_EQ, UINT32_MAX, 0));
	/* With a store there is a handler of SIGSYS: adapter_keep.c. */
	if (sf->store != -1)
		rules_number(r, SCMP_SYS(rt_sigaction), 0, SIGSYS, BUT_THIS);
	else
		ALLOW(r, SCMP_SYS(rt_sigaction), 0);
	rules_pass(r, sf);
	if (sf->pass != -1 || sf->store != -1)
		rules_control(r);
	if (sf->store != -1)
		rules_stream(r);
	rules_calls(r, SCMP_ACT_ALLOW, allowed, nitems(allowed));
	rules_calls(r, SCMP_ACT_ERRNO(EPERM), refused, nitems(refused));
	rules_values(r, SCMP_SYS(fcntl), 1, fcntl_allowed,
	    nitems(fcntl_allowed));
	/* Of a descriptor, without a path: peer_close.c. */
	ALLOW(r, SCMP_SYS(statx), 1, SCMP_A1(SCMP_CMP_EQ, 0, 0));
}

/*
 * Allow what a process does that has descriptors which others have passed, and
 * passes them on: to send and receive messages, and to look at descriptors.  So
 * does the passer.
 */
static void
rules_passer(struct rules *r, const void *arg __unused)
{
	static const int calls[] = {
		SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(close),
		SCMP_SYS(exit_group), SCMP_SYS(clock_nanosleep),
#ifdef SANITIZED
		/* A sanitizer's thread, and what it does at exit. */
		SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday),
		SCMP_SYS(sigaltstack), SCMP_SYS(futex), SCMP_SYS(mmap),
		SCMP_SYS(madvise), SCMP_SYS(munmap), SCMP_SYS(set_robust_list),
		SCMP_SYS(rseq), SCMP_SYS(rt_sigprocmask), SCMP_SYS(exit),
#endif
	};

	ALLOW(r, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_GET_SEALS, 0));
	rules_calls(r, SCMP_ACT_ALLOW, calls, nitems(calls));
	rules_option(r, SOL_SOCKET, SO_DOMAIN);
	rules_option(r, SOL_SOCKET, SO_TYPE);
	rules_option(r, SOL_SOCKET, SO_ACCEPTCONN);
}

/* Allow what the opener does: also to connect to local sockets, and to wait. */
static void
rules_opener(struct rules *r, const void *arg)
{
	static const int calls[] = {
		SCMP_SYS(connect), SCMP_SYS(recvfrom), SCMP_SYS(poll),
		SCMP_SYS(ppoll), SCMP_SYS(clock_gettime),
		SCMP_SYS(restart_syscall),
	};

	rules_passer(r, arg);
	ALLOW(r, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	rules_calls(r, SCMP_ACT_ALLOW, calls, nitems(calls));
}

/*
 * Drop privileges, and have this filter, with an action for what it does not
 * name.
 */
static int
enter(uint32_t other, void (*add)(struct rules *r, const void *arg),
    const void *arg)
{
	struct rules r;

	if (valed_sandbox_drop() == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return (-1);
	r.ctx = seccomp_init(other);
	if (r.ctx == NULL) {
		errno = ENOMEM;
		return (-1);
	}
	r.error = seccomp_attr_set(r.ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	add(&r, arg);
	if (r.error == 0)
		r.error = seccomp_load(r.ctx);
	seccomp_release(r.ctx);
	errno = -r.error;
	return (r.error == 0 ? 0 : -1);
}

int
valed_sandbox_enter(int pass, int store)
{
	const struct sandbox_fds sf = { pass, store };
	const int error = enter(store == -1 ? SCMP_ACT_KILL_PROCESS :
	    SCMP_ACT_TRAP, rules, &sf);

	entered = error == 0;
	return (error);
}

int
valed_sandbox_enter_passer(void)
{
	return (enter(SCMP_ACT_KILL_PROCESS, rules_passer, NULL));
}

int
valed_sandbox_enter_opener(void)
{
	return (enter(SCMP_ACT_KILL_PROCESS, rules_opener, NULL));
}
