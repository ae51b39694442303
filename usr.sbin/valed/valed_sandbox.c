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
 * peer_fstat.h.  Any other system call kills the process; with a store its
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

/* Allow memory that is not executable.  0, or a negative errno. */
static int
rules_memory(scmp_filter_ctx ctx)
{
	const int calls[] = { SCMP_SYS(mmap), SCMP_SYS(mprotect) };
	size_t i;
	int error;

	error = 0;
	for (i = 0; i < nitems(calls) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 1,
		    SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	return (error);
}

/*
 * Allow PEER_SIGNAL between threads, for adapter_watch(), and SIGBUS, with
 * which its handler ends the process (peer_fault.c).  Returns 0 or a negative
 * errno.
 */
static int
rules_signal(scmp_filter_ctx ctx)
{
	const int signals[] = { PEER_SIGNAL, SIGBUS };
	size_t i;
	int error;

	error = 0;
	for (i = 0; i < nitems(signals) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill),
		    2, SCMP_A0(SCMP_CMP_EQ, getpid(), 0),
		    SCMP_A2(SCMP_CMP_EQ, signals[i], 0));
	return (error);
}

/*
 * Allow to read how many frames a packet socket or one of AF_XDP has lost,
 * where the rings of the latter are, and what kind of socket a descriptor is.
 * Returns 0 or a negative errno.
 */
static int
rules_socket(scmp_filter_ctx ctx)
{
	static const int options[][2] = {
		{ SOL_PACKET, PACKET_STATISTICS },
		{ SOL_XDP, XDP_STATISTICS }, { SOL_XDP, XDP_MMAP_OFFSETS },
		{ SOL_SOCKET, SO_DOMAIN }
	};
	size_t i;
	int error;

	error = 0;
	for (i = 0; i < nitems(options) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(getsockopt), 2,
		    SCMP_A1(SCMP_CMP_EQ, options[i][0], 0),
		    SCMP_A2(SCMP_CMP_EQ, options[i][1], 0));
	return (error);
}

/*
 * Allow to signal clients' eventfds without waiting (peer_signal.c): requests
 * of one context, to descriptors that are open.  Returns 0 or a negative errno.
 */
static int
rules_request(scmp_filter_ctx ctx)
{
	const uint64_t context = peer_signal_context();

	return (context == 0 ? 0 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
	    SCMP_SYS(io_submit), 1, SCMP_A0(SCMP_CMP_EQ, context, 0)));
}

/*
 * Allow what it takes to go on with a client's stream where another process has
 * left it (vfu_stream.h), and to end by a signal.  Returns 0 or a negative
 * errno.
 */
static int
rules_stream(scmp_filter_ctx ctx)
{
	const int calls[] = { SCMP_SYS(pipe2), SCMP_SYS(splice),
	    SCMP_SYS(recvmmsg) };
	/* With which adapter_keep.c ends the process. */
	const int signals[] = { SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGSYS };
	size_t i;
	int error;

	error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 2,
	    SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET, 0),
	    SCMP_A2(SCMP_CMP_EQ, SO_PEEK_OFF, 0));
	for (i = 0; i < nitems(calls) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
	for (i = 0; i < nitems(signals) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill),
		    2, SCMP_A0(SCMP_CMP_EQ, getpid(), 0),
		    SCMP_A2(SCMP_CMP_EQ, signals[i], 0));
	return (error);
}

/*
 * Allow a packet socket to have a new receive ring in place of the old one:
 * hostif_ring.c.  The filter cannot read the structures, which are constants.
 * Who can write to constants can call mmap(2), too.  Returns 0 or a negative
 * errno.
 */
static int
rules_ring(scmp_filter_ctx ctx)
{
	static const struct tpacket_req *const rings[] = {
		&hostif_ring_none, &hostif_ring_receive
	};
	size_t i;
	int error;

	error = 0;
	for (i = 0; i < nitems(rings) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(setsockopt), 4,
		    SCMP_A1(SCMP_CMP_EQ, SOL_PACKET, 0),
		    SCMP_A2(SCMP_CMP_EQ, PACKET_RX_RING, 0),
		    SCMP_A3(SCMP_CMP_EQ, (uintptr_t)rings[i], 0),
		    SCMP_A4(SCMP_CMP_EQ, sizeof(*rings[i]), 0));
	return (error);
}

/*
 * Allow a thread of this process to be created, and named.  A filter cannot see
 * the flags of clone3(2), so that call does not exist; libc then uses clone(2).
 * Returns 0 or a negative errno.
 */
static int
rules_thread(scmp_filter_ctx ctx)
{
	const unsigned int shared = CLONE_VM | CLONE_FS | CLONE_FILES |
	    CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	const unsigned int others = CLONE_PTRACE | CLONE_VFORK | CLONE_PARENT |
	    CLONE_UNTRACED | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
	    CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |
	    CLONE_IO | CSIGNAL;
	int error;

	error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
	    SCMP_A0(SCMP_CMP_MASKED_EQ, shared | others, shared));
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS),
		    SCMP_SYS(clone3), 0);
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl),
		    1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0));
	return (error);
}

/*
 * Allow to send without an address, with the flags that are used.  Returns 0 or
 * a negative errno.
 */
static int
rules_send(scmp_filter_ctx ctx)
{
	const uint32_t others = ~(MSG_DONTWAIT | MSG_NOSIGNAL);

	return (seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(sendto), 3,
	    SCMP_A3(SCMP_CMP_MASKED_EQ, others, 0),
	    SCMP_A4(SCMP_CMP_EQ, 0, 0),
	    SCMP_A5(SCMP_CMP_MASKED_EQ, UINT32_MAX, 0)));
}

/*
 * Allow a call whose argument `arg', a descriptor or a signal, is any number
 * but n, or any but that and n ^ 1, or a greater one.  A filter compares 64
 * bits of the argument, of which the kernel uses 32: so each rule is for the
 * numbers, of 32 bits, that differ from n in one bit and in none above it.
 * Returns 0 or a negative errno.
 */
enum numbers {
	BUT_THIS,
	BUT_PAIR,
	ABOVE
};

static int
rules_number(scmp_filter_ctx ctx, int call, unsigned int arg, uint32_t n,
    enum numbers which)
{
	uint64_t bit = which == BUT_PAIR ? 2 : 1;
	int error = 0;

	for (; bit <= UINT32_MAX && error == 0; bit <<= 1) {
		if (which == ABOVE && (n & bit) != 0)
			continue;
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, call, 1,
		    SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, -bit,
		    (n ^ bit) & -bit));
	}
	return (error);
}

/*
 * Allow handlers of signals; with a store none of SIGSYS, for which there is
 * one (adapter_keep.c).  Returns 0 or a negative errno.
 */
static int
rules_handler(scmp_filter_ctx ctx, bool store)
{
	return (store ? rules_number(ctx, SCMP_SYS(rt_sigaction), 0, SIGSYS,
	    BUT_THIS) : seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
	    SCMP_SYS(rt_sigaction), 0));
}

/* The descriptors on which sendmsg(2) is permitted, or -1. */
struct sandbox_fds {
	int	pass;
	int	store;
};

static int
rules_sendmsg(scmp_filter_ctx ctx, int fd)
{
	return (fd == -1 ? 0 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
	    SCMP_SYS(sendmsg), 2, SCMP_A0(SCMP_CMP_EQ, fd, 0),
	    SCMP_A2(SCMP_CMP_MASKED_EQ, ~(uint64_t)MSG_DONTWAIT,
	    MSG_NOSIGNAL)));
}

/*
 * Allow sendmsg(2) on the connections with the passer (ctl_pass.c) and the
 * supervisor (valed_store.c), which must stay the files of these descriptors:
 * they cannot be closed or replaced.  Returns 0 or a negative errno.
 */
static int
rules_pass(scmp_filter_ctx ctx, const struct sandbox_fds *sf)
{
	const enum numbers which = sf->store == -1 ? BUT_THIS : BUT_PAIR;
	const int fd = sf->store == -1 ? sf->pass : sf->store;
	int error;

	if (fd == -1) {
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(close),
		    0);
		return (error != 0 ? error : seccomp_rule_add(ctx,
		    SCMP_ACT_ALLOW, SCMP_SYS(dup3), 0));
	}
	error = rules_number(ctx, SCMP_SYS(close), 0, fd, which);
	if (error == 0)
		error = rules_number(ctx, SCMP_SYS(dup3), 1, fd, which);
	/* -1, which fails. */
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(close), 1, SCMP_A0(SCMP_CMP_EQ, UINT64_MAX, 0));
	if (error == 0)
		error = rules_sendmsg(ctx, sf->pass);
	if (error == 0)
		error = rules_sendmsg(ctx, sf->store);
	return (error);
}

/*
 * Allow what ports of other processes take: who they are (ctl_who.c), memory
 * that is sealed, pairs of sockets (vale_grant_port.c), to read and write
 * memory where it is not mapped (vale_grant_pipe.c), and to look what sockets
 * are (ctl_hostif.c).  Standard output and error, which may be files, cannot be
 * truncated.  Returns 0 or a negative errno.
 */
static int
rules_control(scmp_filter_ctx ctx)
{
	static const int options[] = { SO_PEERCRED, SO_PEERGROUPS,
	    SO_PROTOCOL, SO_MEMINFO };
	size_t i;
	int error;

	error = rules_number(ctx, SCMP_SYS(ftruncate), 0, STDERR_FILENO,
	    ABOVE);
	for (i = 0; i < nitems(options) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(getsockopt), 2,
		    SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET, 0),
		    SCMP_A2(SCMP_CMP_EQ, options[i], 0));
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(getsockname), 0);
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl),
		    1, SCMP_A1(SCMP_CMP_EQ, F_ADD_SEALS, 0));
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(socketpair), 1,
		    SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(pread64),
		    0);
	if (error == 0)
		error = rules_number(ctx, SCMP_SYS(pwrite64), 0,
		    STDERR_FILENO, ABOVE);
	return (error);
}

static int
rules(scmp_filter_ctx ctx, const void *arg)
{
	const struct sandbox_fds *sf = arg;
	size_t i;
	int error;

	error = rules_memory(ctx);
	if (error == 0)
		error = rules_signal(ctx);
	if (error == 0)
		error = rules_thread(ctx);
	if (error == 0)
		error = rules_socket(ctx);
	if (error == 0)
		error = rules_ring(ctx);
	if (error == 0)
		error = rules_request(ctx);
	if (error == 0)
		error = rules_send(ctx);
	if (error == 0)
		error = rules_handler(ctx, sf->store != -1);
	if (error == 0)
		error = rules_pass(ctx, sf);
	if (error == 0 && (sf->pass != -1 || sf->store != -1))
		error = rules_control(ctx);
	if (error == 0 && sf->store != -1)
		error = rules_stream(ctx);
	for (i = 0; i < nitems(allowed) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (i = 0; i < nitems(refused) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM),
		    refused[i], 0);
	for (i = 0; i < nitems(fcntl_allowed) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(fcntl), 1,
		    SCMP_A1(SCMP_CMP_EQ, fcntl_allowed[i], 0));
	/* Of a descriptor, without a path: peer_close.c. */
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(statx),
		    1, SCMP_A1(SCMP_CMP_EQ, 0, 0));
	return (error);
}

/*
 * Allow what a process does that has descriptors which others have passed, and
 * passes them on: to send and receive messages, and to look at descriptors.
 */
static int
rules_messages(scmp_filter_ctx ctx)
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
	}, options[] = { SO_DOMAIN, SO_TYPE, SO_ACCEPTCONN };
	size_t i;
	int error;

	error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
	    SCMP_A1(SCMP_CMP_EQ, F_GET_SEALS, 0));
	for (i = 0; i < nitems(calls) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
	for (i = 0; i < nitems(options) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
		    SCMP_SYS(getsockopt), 2,
		    SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET, 0),
		    SCMP_A2(SCMP_CMP_EQ, options[i], 0));
	return (error);
}

/* Allow what the passer does, on descriptors that it was passed. */
static int
rules_passer(scmp_filter_ctx ctx, const void *arg __unused)
{
	return (rules_messages(ctx));
}

/* Allow what the opener does: also to connect to local sockets, and to wait. */
static int
rules_opener(scmp_filter_ctx ctx, const void *arg __unused)
{
	static const int calls[] = {
		SCMP_SYS(connect), SCMP_SYS(recvfrom), SCMP_SYS(poll),
		SCMP_SYS(ppoll), SCMP_SYS(clock_gettime),
		SCMP_SYS(restart_syscall),
	};
	size_t i;
	int error;

	error = rules_messages(ctx);
	if (error == 0)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket),
		    1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	for (i = 0; i < nitems(calls) && error == 0; i++)
		error = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
	return (error);
}

/*
 * Drop privileges, and have this filter, with an action for what it does not
 * name.
 */
static int
enter(uint32_t other, int (*add)(scmp_filter_ctx ctx, const void *arg),
    const void *arg)
{
	scmp_filter_ctx ctx;
	int error;

	if (valed_sandbox_drop() == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return (-1);
	ctx = seccomp_init(other);
	if (ctx == NULL) {
		errno = ENOMEM;
		return (-1);
	}
	error = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (error == 0)
		error = add(ctx, arg);
	if (error == 0)
		error = seccomp_load(ctx);
	seccomp_release(ctx);
	errno = -error;
	return (error == 0 ? 0 : -1);
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
