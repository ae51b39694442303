/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The rules of valed's sandbox, one by one, as libseccomp gets them, and each
 * step that can fail.  The linker's --wrap brings the calls here; sandbox_test
 * has the kernel's answers.
 */

#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>

#include <linux/capability.h>

#include <inttypes.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "hostif_ring.h"
#include "test.h"
#include "valed_sandbox.h"
#include "wrap.h"

#define	PASS		0x25		/* a descriptor */
#define	CTX		((void *)7)

struct rule {
	uint32_t	action;
	int		call;
	unsigned int	n;
	struct scmp_arg_cmp arg[6];
};

static struct rule rules[1024];
static unsigned int nrules;
/* Steps so far, and the one that fails, from 1. */
static unsigned int steps, fail_at;
static unsigned int loads, releases, drops;
static char	order[128];

static int
step(const char *what)
{
	if (what != NULL)
		strlcat(order, what, sizeof(order));
	return (++steps == fail_at ? -ENOBUFS : 0);
}

/* The context of requests. */
static uint64_t	context = 0xc0ffee;

uint64_t
peer_signal_context(void)
{
	return (context);
}

/* What is done for calls that no rule names. */
static uint32_t	other = SCMP_ACT_KILL_PROCESS;

WRAP(long, syscall, long number, ...)
{
	struct __user_cap_header_struct *h;
	struct __user_cap_data_struct *d, none[_LINUX_CAPABILITY_U32S_3];
	va_list ap;

	va_start(ap, number);
	h = va_arg(ap, void *);
	d = va_arg(ap, void *);
	va_end(ap);
	memset(none, 0, sizeof(none));
	ATF_REQUIRE_EQ(SYS_capset, number);
	ATF_CHECK_EQ(_LINUX_CAPABILITY_VERSION_3, h->version);
	ATF_CHECK_EQ(0, h->pid);
	ATF_CHECK_EQ(0, memcmp(none, d, sizeof(none)));
	drops++;
	if (step("capset;") == 0)
		return (0);
	errno = ENOBUFS;
	return (-1);
}

WRAP(int, prctl, int option, ...)
{
	unsigned long arg;
	va_list ap;
	int i;

	va_start(ap, option);
	ATF_CHECK_EQ(PR_SET_NO_NEW_PRIVS, option);
	for (i = 0; i < 4; i++) {
		/* They are of type int at the call. */
		arg = va_arg(ap, int);
		ATF_CHECK_EQ(i == 0, arg);
	}
	va_end(ap);
	if (step("prctl;") == 0)
		return (0);
	errno = ENOBUFS;
	return (-1);
}

WRAP(scmp_filter_ctx, seccomp_init, uint32_t action)
{
	ATF_CHECK_EQ(other, action);
	return (step("init;") == 0 ? CTX : NULL);
}

WRAP(int, seccomp_attr_set, scmp_filter_ctx ctx, enum scmp_filter_attr attr,
    uint32_t value)
{
	ATF_CHECK_EQ(CTX, ctx);
	ATF_CHECK_EQ(SCMP_FLTATR_CTL_TSYNC, attr);
	ATF_CHECK_EQ(1, value);
	return (step("tsync;"));
}

WRAP(int, seccomp_rule_add, scmp_filter_ctx ctx, uint32_t action, int call,
    unsigned int n, ...)
{
	struct rule *r = &rules[nrules++];
	unsigned int i;
	va_list ap;

	ATF_CHECK_EQ(CTX, ctx);
	ATF_REQUIRE(nrules < nitems(rules) && n <= nitems(r->arg));
	*r = (struct rule){ .action = action, .call = call, .n = n };
	va_start(ap, n);
	for (i = 0; i < n; i++)
		r->arg[i] = va_arg(ap, struct scmp_arg_cmp);
	va_end(ap);
	return (step(NULL));
}

WRAP(int, seccomp_load, scmp_filter_ctx ctx)
{
	ATF_CHECK_EQ(CTX, ctx);
	loads++;
	return (step("load;"));
}

WRAP(void, seccomp_release, scmp_filter_ctx ctx)
{
	ATF_CHECK_EQ(CTX, ctx);
	strlcat(order, "release;", sizeof(order));
	releases++;
}

static void
reset(void)
{
	nrules = steps = loads = releases = drops = 0;
	order[0] = '\0';
}

static void __printflike(3, 4)
append(char *text, size_t size, const char *fmt, ...)
{
	const size_t at = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + at, size - at, fmt, ap);
	va_end(ap);
}

/* A value of an argument. */
static const char *
value(const struct rule *r, const struct scmp_arg_cmp *a)
{
	static char text[32];
	const uint64_t n = a->datum_a;

	/* It may be any number, also that of another rule. */
	if (r->call == SCMP_SYS(tgkill) && a->arg == 0 &&
	    n == (uint64_t)getpid())
		return ("pid");
	if (n == (uintptr_t)&hostif_ring_none)
		return ("none");
	if (n == (uintptr_t)&hostif_ring_receive)
		return ("receive");
	snprintf(text, sizeof(text), "%" PRIx64, n);
	return (text);
}

/* A rule as text: a call, and what its arguments must be, hexadecimal. */
static const char *
rule_text(const struct rule *r)
{
	static char text[512];
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE,
	    r->call);
	const struct scmp_arg_cmp *a;

	snprintf(text, sizeof(text), "%s%s", r->action == SCMP_ACT_ALLOW ? "" :
	    r->action == SCMP_ACT_ERRNO(EPERM) ? "EPERM " :
	    r->action == SCMP_ACT_ERRNO(ENOSYS) ? "ENOSYS " : "? ",
	    name != NULL ? name : "?");
	free(name);
	for (a = r->arg; a < r->arg + r->n; a++) {
		append(text, sizeof(text), " %u", a->arg);
		if (a->op == SCMP_CMP_MASKED_EQ)
			append(text, sizeof(text), "&%" PRIx64 "=%" PRIx64,
			    a->datum_a, a->datum_b);
		else
			append(text, sizeof(text), "%s%s", a->op ==
			    SCMP_CMP_EQ && a->datum_b == 0 ? "=" : "?",
			    value(r, a));
	}
	return (text);
}

/* Whether it is one of a descriptor's: the same call, with a mask, again. */
static bool
of_descriptor(unsigned int i)
{
	const struct rule *r = &rules[i];

	return (r->n == 1 && r->arg[0].op == SCMP_CMP_MASKED_EQ &&
	    ((i > 0 && r->call == rules[i - 1].call && rules[i - 1].n == 1) ||
	    (i + 1 < nrules && r->call == rules[i + 1].call &&
	    rules[i + 1].n == 1)));
}

/* The rules that are not for descriptors. */
static void
are(const char *const *expected)
{
	unsigned int i;

	for (i = 0; i < nrules; i++) {
		if (of_descriptor(i))
			continue;
		if (*expected == NULL) {
			ATF_CHECK_STREQ("no other rule", rule_text(&rules[i]));
			continue;
		}
		ATF_CHECK_STREQ(*expected, rule_text(&rules[i]));
		expected++;
	}
	ATF_CHECK_MSG(*expected == NULL, "no %s", *expected);
}

static bool
allowed(int call, unsigned int arg, uint64_t fd)
{
	const struct rule *r;

	for (r = rules; r < rules + nrules; r++)
		if (r->call == call && r->action == SCMP_ACT_ALLOW &&
		    r->n == 1 && r->arg[0].arg == arg &&
		    (r->arg[0].op == SCMP_CMP_EQ ? fd == r->arg[0].datum_a :
		    (fd & r->arg[0].datum_a) == r->arg[0].datum_b))
			return (true);
	return (false);
}

/* A call takes any number of 32 bits but `fd', or any above it. */
static void
descriptors(int call, unsigned int arg, uint32_t fd, bool above)
{
	const uint64_t high = UINT64_C(1) << 32;
	unsigned int i;
	uint64_t n;

	for (i = 0; i < 32; i++) {
		n = fd ^ (UINT64_C(1) << i);
		ATF_CHECK_EQ_MSG(!above || n > fd, allowed(call, arg, n),
		    "%d of %jx", call, (uintmax_t)n);
		ATF_CHECK_MSG(!allowed(call, arg, fd | high << i), "%d", call);
		ATF_CHECK_MSG(!allowed(call, arg, n | high << i), "%d", call);
	}
	for (n = 0; n < 4096; n++)
		ATF_CHECK_EQ_MSG(above ? n > fd : n != fd,
		    allowed(call, arg, n), "%d of %ju", call, (uintmax_t)n);
	ATF_CHECK(allowed(call, arg, UINT32_MAX));
}

static const char *const first[] = {
	"mmap 2&4=0", "mprotect 2&4=0",
	"tgkill 0=pid 2=c", "tgkill 0=pid 2=7",
	/* The flags of a thread, and none that makes a process. */
	"clone 0&fe87efff=50f00", "ENOSYS clone3", "prctl 0=f",
	"getsockopt 1=107 2=6", "getsockopt 1=11b 2=7", "getsockopt 1=11b 2=1",
	"getsockopt 1=1 2=27",
	"setsockopt 1=107 2=5 3=none 4=10",
	"setsockopt 1=107 2=5 3=receive 4=10",
	"io_submit 0=c0ffee",
	"sendto 3&ffffbfbf=0 4=0 5&ffffffff=0", "rt_sigaction",
	NULL
};
static const char *const without_control[] = { "close", "dup3", NULL };
static const char *const with_control[] = {
	"close 0=ffffffffffffffff", "sendmsg 0=25 2&ffffffffffffffbf=4000",
	"getsockopt 1=1 2=11", "getsockopt 1=1 2=3b", "getsockopt 1=1 2=26",
	"getsockopt 1=1 2=37",
	"getsockname", "fcntl 1=409", "socketpair 0=1", "pread64",
	NULL
};
static const char *const last[] = {
	"read", "write", "readv", "writev", "fstat", "fstatfs", "accept4",
	"recvmsg", "recvfrom", "shutdown", "epoll_wait", "epoll_pwait",
	"epoll_ctl", "timerfd_settime", "poll", "ppoll", "munmap", "mremap",
	"madvise", "brk", "futex", "sched_yield", "gettid", "getpid",
	"rt_sigprocmask", "rt_sigreturn", "getrusage", "sigaltstack",
	"clock_gettime", "gettimeofday", "clock_nanosleep",
	"nanosleep", "getrandom", "restart_syscall", "set_robust_list", "rseq",
	"exit", "exit_group", "epoll_create1", "eventfd2", "timerfd_create",
	"memfd_create", "sched_getaffinity",
	"EPERM open", "EPERM openat", "EPERM readlink", "EPERM readlinkat",
	"EPERM stat", "EPERM lstat", "EPERM newfstatat", "EPERM access",
	"EPERM faccessat", "EPERM ioctl", "EPERM prlimit64", "EPERM sysinfo",
	"fcntl 1=3", "fcntl 1=4", "fcntl 1=1", "fcntl 1=2", "fcntl 1=406",
	"fcntl 1=40a", "statx 1=0",
	NULL
};
static const char *const passer[] = {
	"fcntl 1=40a", "recvmsg", "sendmsg", "close", "exit_group",
	"clock_nanosleep",
#ifdef SANITIZED
	"nanosleep", "gettimeofday", "sigaltstack", "futex", "mmap", "madvise",
	"munmap", "set_robust_list", "rseq", "rt_sigprocmask", "exit",
#endif
	"getsockopt 1=1 2=27", "getsockopt 1=1 2=3", "getsockopt 1=1 2=1e",
	NULL
};

/* Behind those of the passer. */
static const char *const opener[] = {
	"socket 0=1", "connect", "recvfrom", "poll", "ppoll", "clock_gettime",
	"restart_syscall",
	NULL
};

/* The rules of the serving process. */
static void
are_serving(const char *const *middle)
{
	const char *all[nitems(first) + nitems(with_control) + nitems(last)];
	const char *const *p;
	unsigned int n = 0;

	for (p = first; *p != NULL; p++)
		all[n++] = *p;
	for (p = middle; *p != NULL; p++)
		all[n++] = *p;
	for (p = last; *p != NULL; p++)
		all[n++] = *p;
	all[n] = NULL;
	are(all);
}

#define	ALL	"capset;prctl;init;tsync;load;release;"

TEST(serving, "The serving process has these rules and no others, and drops "
    "its capabilities first")
{
	ATF_CHECK_EQ(0, valed_sandbox_enter(-1, -1));
	ATF_CHECK_STREQ(ALL, order);
	are_serving(without_control);
	/* A thread of this process has none. */
	ATF_CHECK_EQ(0, valed_sandbox_drop());
	ATF_CHECK_EQ(1, drops);
}

TEST(no_context, "Without a context for requests, there are none")
{
	unsigned int i, before;

	ATF_CHECK_EQ(0, valed_sandbox_enter(-1, -1));
	before = nrules;
	reset();
	context = 0;
	ATF_CHECK_EQ(0, valed_sandbox_enter(-1, -1));
	ATF_CHECK_EQ(before - 1, nrules);
	for (i = 0; i < nrules; i++)
		ATF_CHECK(rules[i].call != SCMP_SYS(io_submit));
}

TEST(control, "With a control socket it has some more, for descriptors that "
    "are not the passer's, and not those of logs")
{
	ATF_CHECK_EQ(0, valed_sandbox_enter(PASS, -1));
	ATF_CHECK_STREQ(ALL, order);
	are_serving(with_control);
	descriptors(SCMP_SYS(close), 0, PASS, false);
	descriptors(SCMP_SYS(dup3), 1, PASS, false);
	descriptors(SCMP_SYS(ftruncate), 0, STDERR_FILENO, true);
	descriptors(SCMP_SYS(pwrite64), 0, STDERR_FILENO, true);
	ATF_CHECK(allowed(SCMP_SYS(close), 0, UINT64_MAX));
	/* The first of all, and the last. */
	reset();
	ATF_CHECK_EQ(0, valed_sandbox_enter(0, -1));
	descriptors(SCMP_SYS(close), 0, 0, false);
	reset();
	ATF_CHECK_EQ(0, valed_sandbox_enter(INT_MAX, -1));
	descriptors(SCMP_SYS(close), 0, INT_MAX, false);
}

/* A call takes any descriptor of 32 bits but these two. */
static void
but_pair(int call, unsigned int arg, uint32_t fd)
{
	uint64_t n;

	for (n = 0; n < 4096; n++)
		ATF_CHECK_EQ_MSG(n != fd && n != (fd ^ 1),
		    allowed(call, arg, n), "%d of %ju", call, (uintmax_t)n);
	ATF_CHECK(!allowed(call, arg, fd | UINT64_C(1) << 32));
	ATF_CHECK(!allowed(call, arg, (fd ^ 1) | UINT64_C(1) << 40));
	ATF_CHECK(allowed(call, arg, UINT32_MAX));
}

TEST(store, "With a store it may send on two descriptors, and can close or "
    "replace neither, nor the handler of what is not permitted")
{
	other = SCMP_ACT_TRAP;
	ATF_CHECK_EQ(0, valed_sandbox_enter(PASS, PASS ^ 1));
	but_pair(SCMP_SYS(close), 0, PASS);
	but_pair(SCMP_SYS(dup3), 1, PASS);
	descriptors(SCMP_SYS(rt_sigaction), 0, SIGSYS, false);
	reset();
	/* Without a control socket. */
	ATF_CHECK_EQ(0, valed_sandbox_enter(-1, 70));
	but_pair(SCMP_SYS(close), 0, 70);
}

TEST(passing, "The passer has these rules, and no others")
{
	ATF_CHECK_EQ(0, valed_sandbox_enter_passer());
	ATF_CHECK_STREQ(ALL, order);
	are(passer);
}

TEST(opening, "The opener has those of the passer, and these, and no others")
{
	const char *all[nitems(passer) + nitems(opener)];
	unsigned int i, n = 0;

	for (i = 0; passer[i] != NULL; i++)
		all[n++] = passer[i];
	for (i = 0; opener[i] != NULL; i++)
		all[n++] = opener[i];
	all[n] = NULL;
	ATF_CHECK_EQ(0, valed_sandbox_enter_opener());
	ATF_CHECK_STREQ(ALL, order);
	are(all);
}

/* Enter it: 0 and 1 are the serving process without and with a socket. */
static int
enter(unsigned int which)
{
	errno = 0;
	return (which == 2 ? valed_sandbox_enter_passer() :
	    which == 3 ? valed_sandbox_enter_opener() :
	    valed_sandbox_enter(which == 0 ? -1 : PASS, -1));
}

/* Each of its steps fails, one after the other, until it succeeds. */
static void
each_fails(unsigned int which)
{
	unsigned int i;

	for (i = 1;; i++) {
		reset();
		fail_at = i;
		if (enter(which) == 0)
			break;
		ATF_CHECK_EQ_MSG(i == 3 ? ENOMEM : ENOBUFS, errno, "%u: %d", i,
		    errno);
		ATF_CHECK_EQ_MSG(i, steps, "%u: %u", i, steps);
		ATF_CHECK_EQ(i > 3, releases);
		ATF_REQUIRE(i < nitems(rules));
		/* It has its capabilities, and may drop them. */
		fail_at = 0;
		ATF_CHECK_EQ(0, valed_sandbox_drop());
		ATF_CHECK_EQ(2, drops);
		ATF_CHECK_EQ(strstr(order, "load") != NULL, loads);
	}
	/* The last step that failed was to load them. */
	ATF_CHECK_EQ_MSG(nrules + 5, i - 1, "%u", i);
	ATF_CHECK_STREQ(ALL, order);
}

TEST(fails_serving, "A step that fails is the last one, and its error is the "
    "caller's")
{
	each_fails(0);
}

TEST(fails_control, "With a control socket, a step that fails is the last one, "
    "and its error is the caller's")
{
	each_fails(1);
}

TEST(fails_passer, "In the passer, a step that fails is the last one, and its "
    "error is the caller's")
{
	each_fails(2);
}

TEST(fails_opener, "In the opener, a step that fails is the last one, and its "
    "error is the caller's")
{
	each_fails(3);
}

TEST(dropping, "That capabilities cannot be dropped is an error")
{
	fail_at = 1;
	errno = 0;
	ATF_CHECK_EQ(-1, valed_sandbox_drop());
	ATF_CHECK_EQ(ENOBUFS, errno);
	reset();
	ATF_CHECK_EQ(-1, valed_sandbox_enter(-1, -1));
	ATF_CHECK_STREQ("capset;", order);
	reset();
	ATF_CHECK_EQ(-1, valed_sandbox_enter_passer());
	ATF_CHECK_STREQ("capset;", order);
}

TEST_PROGRAM
