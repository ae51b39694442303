/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The functions that take the place of the C library's: what each of them calls
 * of the library and of the C library, in which order, and what it returns.
 * They are those of the whole process: outside of a test they are as always.
 */

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atf-c.h>

#include "netmap_run.h"
#include "run_said.h"
#include "test.h"

int	__open_2(const char *, int);
int	__open64_2(const char *, int);
int	__openat_2(int, const char *, int);
int	__openat64_2(int, const char *, int);
int	__poll_chk(struct pollfd *, nfds_t, int, size_t);
int	__ppoll_chk(struct pollfd *, nfds_t, const struct timespec *,
	    const sigset_t *, size_t);

/* run_fds, and what is behind it. */
struct {
	_Atomic(struct run_desc *) fds[RUN_FDS];
	struct run_desc	*behind;
} table __asm__("run_fds");
atomic_uint run_count;
atomic_bool run_own[RUN_FDS];

/* Whether the functions below are the test's, and what they return. */
static bool	on;
static int	result;
static int	result_errno;
static int	getfd;			/* fcntl(fd, F_GETFD) */

static struct run_desc desc = { .rd_refs = 1 };
_Thread_local unsigned int run_held;

void
run_desc_free(struct run_desc *rd)
{
	ATF_CHECK(rd == &desc);
	atf_tc_fail("the table has a reference");
}

/* The end of each. */
static int
answer(void)
{
	errno = result_errno;
	return (result);
}

static void
say_time(const struct timespec *ts)
{
	if (ts == NULL)
		say(",none)");
	else
		say(",%jd.%09ld)", (intmax_t)ts->tv_sec, ts->tv_nsec);
}

/* The library's. */

int
run_open(int flags)
{
	say(" run_open(%#x)", flags);
	return (answer());
}

int
run_copied(struct run_desc *rd, int copy)
{
	ATF_CHECK(rd == &desc);
	say(" copied(%d)", copy);
	return (copy + 1000);
}

void
run_closed(int fd)
{
	if (on)
		say(" closed(%d)", fd);
}

void
run_closed_range(unsigned int first, unsigned int last)
{
	say(" closed_range(%u,%u)", first, last);
}

static struct run_desc *shared;

struct run_desc *
run_share(int fd, bool connected)
{
	say(" share(%d,%d)", fd, connected);
	if (shared != NULL) {
		shared->rd_refs++;
		run_held++;
	}
	errno = EXDEV;
	return (shared);
}

int
run_ioctl(struct run_desc *rd, unsigned long request, void *arg)
{
	ATF_CHECK(rd == &desc);
	say(" run_ioctl(%#lx,%p)", request, arg);
	return (answer());
}

void *
run_mmap(struct run_desc *rd, void *addr, size_t len, int prot, int flags,
    off_t offset)
{
	ATF_CHECK(rd == &desc);
	say(" run_mmap(%p,%zu,%d,%#x,%jd)", addr, len, prot, flags,
	    (intmax_t)offset);
	return ((void *)0x77000);
}

int
run_poll(struct pollfd *fds, struct run_desc *const *descs, nfds_t n,
    const struct timespec *timeout, const sigset_t *mask)
{
	ATF_CHECK(descs == NULL);
	say(" run_poll(%p,%zu,%p", (void *)fds, (size_t)n, (const void *)mask);
	say_time(timeout);
	return (answer());
}

static bool	any;			/* in the sets, or in epoll(7) */
static struct timespec now;

int
run_select(int n, fd_set *sets[3], const struct timespec *timeout,
    const sigset_t *mask)
{
	say(" run_select(%d,%p,%p,%p,%p", n, (void *)sets[0], (void *)sets[1],
	    (void *)sets[2], (const void *)mask);
	say_time(timeout);
	now.tv_sec += 1;
	now.tv_nsec += 999001;
	return (answer());
}

bool
run_select_any(int n, fd_set *sets[3])
{
	say(" any(%d,%p,%p,%p)", n, (void *)sets[0], (void *)sets[1],
	    (void *)sets[2]);
	return (any);
}

int
run_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	say(" run_ctl(%d,%d,%d,%p)", epfd, op, fd, (void *)event);
	return (answer());
}

bool
run_epoll_any(int epfd)
{
	say(" epoll_any(%d)", epfd);
	return (any);
}

int
run_epoll_wait(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	say(" run_wait(%d,%p,%d,%p", epfd, (void *)events, max,
	    (const void *)mask);
	say_time(timeout);
	return (answer());
}

int	__wrap_clock_gettime(clockid_t, struct timespec *);

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	ATF_CHECK_EQ(CLOCK_MONOTONIC, id);
	*ts = now;
	errno = EXDEV;
	return (0);
}

#include "run_libc.h"

/* A call of a function, what it returns, and what it has called. */
#define	CALL(call, r, what) do {					\
	int _r;								\
									\
	/* Of what the program itself has called. */			\
	said_text[0] = '\0';						\
	on = true;							\
	errno = 0;							\
	_r = call;							\
	on = false;							\
	ATF_CHECK_EQ_MSG(r, _r, "%s: %d", #call, _r);			\
	ATF_CHECK_EQ(result_errno, errno);				\
	ATF_CHECK_EQ(1, desc.rd_refs);					\
	SAID(what);							\
} while (0)

/* Whether 10 is of netmap. */
static void
have(bool is)
{
	run_fds[10] = is ? &desc : NULL;
	run_count = is ? 1 : 0;
}

static void
returns(int r, int error)
{
	result = r;
	result_errno = error;
}

/* What is tested for NULL, though the headers say that it must not be. */
static const char *volatile no_path;

TEST(opens, "open(2) of /dev/netmap and of others")
{
	static const char netmap[] = "/dev/netmap";

	returns(77, 5);
	CALL(open(netmap, O_RDWR | O_CLOEXEC), 77, " run_open(0x80002)");
	CALL(open64(netmap, O_RDWR), 77, " run_open(0x2)");
	CALL(openat(9, netmap, O_RDWR), 77, " run_open(0x2)");
	CALL(openat64(9, netmap, O_RDWR), 77, " run_open(0x2)");
	CALL(__open_2(netmap, O_RDWR), 77, " run_open(0x2)");
	CALL(__open64_2(netmap, O_RDWR), 77, " run_open(0x2)");
	CALL(__openat_2(9, netmap, O_RDWR), 77, " run_open(0x2)");
	CALL(__openat64_2(9, netmap, O_RDWR), 77, " run_open(0x2)");
	CALL(open("netmap", O_RDWR), 77, " open(netmap,0x2,0)");
	CALL(open64("/dev/netmap0", O_RDWR), 77, " open(/dev/netmap0,0x2,0)");
	CALL(openat(9, "/dev/netma", O_RDWR), 77,
	    " openat(9,/dev/netma,0x2,0)");
	CALL(openat64(9, "", O_RDWR), 77, " openat(9,,0x2,0)");
	CALL(__open_2("f", O_RDWR), 77, " open(f,0x2,0)");
	CALL(__open64_2("f", O_RDWR), 77, " open(f,0x2,0)");
	CALL(__openat_2(9, "f", O_RDWR), 77, " openat(9,f,0x2,0)");
	CALL(__openat64_2(9, "f", O_RDWR), 77, " openat(9,f,0x2,0)");
	returns(-1, EFAULT);
	CALL(open(no_path, O_RDWR), -1, " open(-,0x2,0)");
	CALL(openat(9, no_path, O_RDWR), -1, " openat(9,-,0x2,0)");
}

TEST(modes, "A file that is created has the mode")
{
	const int tmp = O_TMPFILE | O_RDWR;

	returns(6, 0);
	CALL(open("f", O_CREAT | O_RDWR, 0640), 6, " open(f,0x42,0640)");
	CALL(open64("f", O_CREAT | O_RDWR, 0640), 6, " open(f,0x42,0640)");
	CALL(openat(9, "f", O_CREAT | O_RDWR, 0640), 6,
	    " openat(9,f,0x42,0640)");
	CALL(openat64(9, "f", O_CREAT | O_RDWR, 0640), 6,
	    " openat(9,f,0x42,0640)");
	CALL(open("f", tmp, 0600), 6, " open(f,0x410002,0600)");
	CALL(open64("f", tmp, 0600), 6, " open(f,0x410002,0600)");
	CALL(openat(9, "f", tmp, 0600), 6, " openat(9,f,0x410002,0600)");
	CALL(openat64(9, "f", tmp, 0600), 6, " openat(9,f,0x410002,0600)");
	/* A part of O_TMPFILE. */
	CALL(open("f", O_DIRECTORY), 6, " open(f,0x10000,0)");
}

TEST(own, "What the library has is not closed, nor replaced")
{
	static const int own[] = { 5, 6, 9, RUN_FDS - 1 };
	size_t i;

	for (i = 0; i < nitems(own); i++) {
		run_own_set(own[i], true);
		returns(-1, EBADF);
		CALL(close(own[i]), -1, "");
		returns(-1, EBUSY);
		CALL(dup2(1, own[i]), -1, "");
		CALL(dup3(1, own[i], O_CLOEXEC), -1, "");
	}
	run_own_set(-1, true);
	run_own_set(RUN_FDS, true);
	atomic_store(&run_count, 1);
	result = 0;
	CALL(close_range(4, 9, 0), 0, " closed_range(4,9) close_range(4,4,0) "
	    "close_range(7,8,0)");
	CALL(close_range(5, 7, 0), 0, " closed_range(5,7) close_range(7,7,0)");
	CALL(close_range(6, 7, CLOSE_RANGE_CLOEXEC), 0, " close_range(7,7,4)");
	CALL((closefrom(3), 0), 0, " closed_range(3,4294967295) "
	    "close_range(3,4,0) close_range(7,8,0) close_range(10,65534,0) "
	    "close_range(65536,4294967295,0)");
	result = -1;
	CALL(close_range(4, 9, 0), -1, " closed_range(4,9) close_range(4,4,0)");
	for (i = 0; i < nitems(own); i++)
		run_own_set(own[i], false);
	CALL(close(5), -1, " closed(5) close(5)");
}

TEST(closes, "run_closed() is called before a descriptor is closed")
{
	returns(-1, EBADF);
	CALL(close(5), -1, " closed(5) close(5)");
	CALL(close_range(5, 8, 0), -1,
	    " closed_range(5,8) close_range(5,8,0)");
	CALL(close_range(5, 8, CLOSE_RANGE_UNSHARE), -1,
	    " closed_range(5,8) close_range(5,8,2)");
	CALL(close_range(5, ~0u, CLOSE_RANGE_CLOEXEC), -1,
	    " close_range(5,4294967295,4)");
	returns(0, 0);
	CALL((closefrom(5), 0), 0, " closed_range(5,4294967295) "
	    "close_range(5,4294967295,0)");
	CALL((closefrom(-7), 0), 0, " closed_range(0,4294967295) "
	    "close_range(0,4294967295,0)");
}

TEST(dups, "run_copied() is called for a copy of a descriptor of netmap, and "
    "run_closed() for the one that it replaces")
{
	have(true);
	returns(6, 3);
	CALL(dup(10), 1006, " dup(10) copied(6)");
	CALL(dup(11), 6, " dup(11)");
	CALL(dup2(10, 6), 1006, " closed(6) dup2(10,6) copied(6)");
	CALL(dup2(11, 6), 6, " closed(6) dup2(11,6)");
	CALL(dup2(10, 10), 6, " dup2(10,10)");
	CALL(dup2(11, 11), 6, " dup2(11,11)");
	CALL(dup3(10, 6, O_CLOEXEC), 1006,
	    " closed(6) dup3(10,6,524288) copied(6)");
	CALL(dup3(11, 6, 0), 6, " closed(6) dup3(11,6,0)");
	/* 0 is a descriptor. */
	returns(0, 3);
	CALL(dup(10), 1000, " dup(10) copied(0)");
	CALL(dup2(10, 0), 1000, " closed(0) dup2(10,0) copied(0)");
	/* It fails. */
	returns(-1, EMFILE);
	CALL(dup(10), -1, " dup(10)");
	CALL(dup(11), -1, " dup(11)");
	CALL(dup2(10, 6), -1, " closed(6) dup2(10,6)");
	CALL(dup3(10, 10, 0), -1, " dup3(10,10,0)");
	/* The first is not open: the other stays. */
	getfd = -1;
	CALL(dup2(11, 10), -1, " dup2(11,10)");
	CALL(dup3(11, 10, 0), -1, " dup3(11,10,0)");
	getfd = 1;
	returns(10, 0);
	CALL(dup2(11, 10), 10, " closed(10) dup2(11,10)");
	/* Without one of netmap, nothing is asked. */
	have(false);
	CALL(dup2(11, 10), 10, " dup2(11,10)");
}

TEST(numbers, "Descriptors that are not in the table")
{
	have(true);
	table.behind = &desc;
	returns(6, 3);
	CALL(dup(RUN_FDS), 6, " dup(65536)");
	CALL(dup(-1), 6, " dup(-1)");
	run_fds[RUN_FDS - 1] = &desc;
	CALL(dup(RUN_FDS - 1), 1006, " dup(65535) copied(6)");
}

TEST(fcntls, "fcntl(2), which copies descriptors, too")
{
	int (*const fn[])(int, int, ...) = { fcntl, fcntl64 };
	unsigned int i;

	have(true);
	for (i = 0; i < nitems(fn); i++) {
		returns(6, 3);
		CALL(fn[i](10, F_DUPFD, (void *)0x64), 1006,
		    " fcntl(10,0,0x64) copied(6)");
		CALL(fn[i](10, F_DUPFD_CLOEXEC, (void *)0x65), 1006,
		    " fcntl(10,1030,0x65) copied(6)");
		CALL(fn[i](11, F_DUPFD, (void *)0x64), 6,
		    " fcntl(11,0,0x64)");
		CALL(fn[i](10, F_SETFL, (void *)0x123456789a), 6,
		    " fcntl(10,4,0x123456789a)");
		returns(0, 3);
		CALL(fn[i](10, F_DUPFD, (void *)0x64), 1000,
		    " fcntl(10,0,0x64) copied(0)");
		returns(-1, EMFILE);
		CALL(fn[i](10, F_DUPFD, (void *)0x64), -1,
		    " fcntl(10,0,0x64)");
		CALL(fn[i](11, F_SETFL, (void *)0x64), -1,
		    " fcntl(11,4,0x64)");
	}
}

TEST(ioctls, "ioctl(2): requests of netmap may be of a descriptor that comes "
    "from another process")
{
	static const unsigned long requests[] = { NIOCCTRL, NIOCREGIF,
	    NIOCGINFO, NIOCTXSYNC, NIOCRXSYNC };
	char what[128];
	unsigned int i;

	have(true);
	returns(-1, 3);
	CALL(ioctl(10, FIONBIO, (void *)0x123456789a), -1,
	    " run_ioctl(0x5421,0x123456789a)");
	CALL(ioctl(11, FIONBIO, (void *)0x123456789a), -1,
	    " ioctl(11,0x5421,0x123456789a)");
	for (i = 0; i < nitems(requests); i++) {
		shared = NULL;
		snprintf(what, sizeof(what),
		    " share(11,0) ioctl(11,%#lx,0x64)", requests[i]);
		CALL(ioctl(11, requests[i], (void *)0x64), -1, what);
		shared = &desc;
		snprintf(what, sizeof(what),
		    " share(11,0) run_ioctl(%#lx,0x64)", requests[i]);
		CALL(ioctl(11, requests[i], (void *)0x64), -1, what);
		snprintf(what, sizeof(what),
		    " share(11,0) run_ioctl(0xffffffff%08lx,0x64)",
		    requests[i]);
		CALL(ioctl(11, 0xffffffff00000000 | requests[i],
		    (void *)0x64), -1, what);
		snprintf(what, sizeof(what), " run_ioctl(%#lx,0x64)",
		    requests[i]);
		CALL(ioctl(10, requests[i], (void *)0x64), -1, what);
	}
}

/* mmap(2) as a number. */
static int
map(int flags, int fd)
{
	void *p = mmap((void *)0x1000, 8192, PROT_READ, flags, fd, 4096);

	return (p == MAP_FAILED ? -1 : (int)(uintptr_t)p);
}

static int
map64(int flags, int fd)
{
	void *p = mmap64((void *)0x1000, 8192, PROT_READ, flags, fd, 4096);

	return (p == MAP_FAILED ? -1 : (int)(uintptr_t)p);
}

TEST(mmaps, "mmap(2): a socket that cannot be mapped may be netmap's of "
    "another process")
{
	have(true);
	returns(0, 0);
	CALL(map(MAP_SHARED, 10), 0x77000, " run_mmap(0x1000,8192,1,0x1,4096)");
	CALL(map64(MAP_SHARED, 10), 0x77000,
	    " run_mmap(0x1000,8192,1,0x1,4096)");
	CALL(map(MAP_SHARED, 11), 0x66000, " mmap(0x1000,8192,1,0x1,11,4096)");
	/* That has no descriptor, whatever it says. */
	CALL(map(MAP_PRIVATE | MAP_ANONYMOUS, 10), 0x66000,
	    " mmap(0x1000,8192,1,0x22,10,4096)");
	/* One that was mapped; errno is left from before. */
	returns(0, ENODEV);
	CALL(map(MAP_SHARED, 11), 0x66000, " mmap(0x1000,8192,1,0x1,11,4096)");
	returns(-1, EACCES);
	CALL(map(MAP_SHARED, 11), -1, " mmap(0x1000,8192,1,0x1,11,4096)");
	returns(-1, ENODEV);
	CALL(map(MAP_SHARED, 11), -1,
	    " mmap(0x1000,8192,1,0x1,11,4096) share(11,1)");
	shared = &desc;
	result_errno = EXDEV;
	returns(-1, ENODEV);
	on = true;
	ATF_CHECK_EQ(0x77000, map(MAP_SHARED, 11));
	on = false;
	SAID(" mmap(0x1000,8192,1,0x1,11,4096) share(11,1)"
	    " run_mmap(0x1000,8192,1,0x1,4096)");
}

#define	FDS	((struct pollfd *)fds)
#define	MASK	((const sigset_t *)0x5000)

TEST(polls, "poll(2) and ppoll(2), with a descriptor of netmap or without")
{
	static const struct timespec ts = { 3, 4 };
	struct pollfd *none = NULL, pfd[3] = { { 11, 0, 0 }, { 12, 0, 0 },
	    { 10, 0, 0 } };
	char what[128];

#define	SAYS(...)							\
	(snprintf(what, sizeof(what), __VA_ARGS__), what)
	have(true);
	returns(2, 3);
	CALL(poll(pfd, 2, 5), 2, SAYS(" poll(%p,2,5)", (void *)pfd));
	CALL(ppoll(pfd, 2, &ts, MASK), 2, SAYS(" ppoll(%p,2,%p,0x5000)",
	    (void *)pfd, (const void *)&ts));
	CALL(poll(pfd, 3, 1999), 2, SAYS(" run_poll(%p,3,(nil),1.999000000)",
	    (void *)pfd));
	CALL(poll(pfd + 2, 1, -1), 2, SAYS(" run_poll(%p,1,(nil),none)",
	    (void *)&pfd[2]));
	CALL(poll(pfd, 3, -2), 2, SAYS(" run_poll(%p,3,(nil),none)",
	    (void *)pfd));
	CALL(poll(pfd, 3, 0), 2, SAYS(" run_poll(%p,3,(nil),0.000000000)",
	    (void *)pfd));
	CALL(poll(pfd, 3, 1000), 2, SAYS(" run_poll(%p,3,(nil),1.000000000)",
	    (void *)pfd));
	CALL(poll(pfd, 3, 1), 2, SAYS(" run_poll(%p,3,(nil),0.001000000)",
	    (void *)pfd));
	CALL(ppoll(pfd, 3, &ts, MASK), 2,
	    SAYS(" run_poll(%p,3,0x5000,3.000000004)", (void *)pfd));
	CALL(ppoll(pfd, 3, NULL, NULL), 2, SAYS(" run_poll(%p,3,(nil),none)",
	    (void *)pfd));
	CALL(poll(none, 3, 5), 2, " poll((nil),3,5)");
	CALL(__poll_chk(pfd, 3, -1, sizeof(pfd)), 2,
	    SAYS(" run_poll(%p,3,(nil),none)", (void *)pfd));
	CALL(__ppoll_chk(pfd, 3, &ts, MASK, sizeof(pfd)), 2,
	    SAYS(" run_poll(%p,3,0x5000,3.000000004)", (void *)pfd));
	/* Without one, they are not looked at. */
	run_count = 0;
	CALL(poll(pfd, 3, 5), 2, SAYS(" poll(%p,3,5)", (void *)pfd));
}

/* The signal that ends a process that does this, or 0. */
static int
ends(bool pp, nfds_t n, size_t size)
{
	struct pollfd pfd[3] = { { -1, 0, 0 }, { -1, 0, 0 }, { -1, 0, 0 } };
	int status;
	pid_t pid;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		on = true;
		if (pp)
			__ppoll_chk(pfd, n, NULL, NULL, size);
		else
			__poll_chk(pfd, n, 0, size);
		_exit(0);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	return (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

TEST(checked, "A program that has less space than it says ends")
{
	bool pp;

	for (pp = false;; pp = true) {
		ATF_CHECK_EQ(0, ends(pp, 3, 24));
		ATF_CHECK_EQ(SIGABRT, ends(pp, 3, 23));
		ATF_CHECK_EQ(0, ends(pp, 0, 0));
		ATF_CHECK_EQ(SIGABRT, ends(pp, 1, 0));
		if (pp)
			break;
	}
}

#define	SET(n)	((fd_set *)(uintptr_t)(n))

TEST(selects, "select(2) and pselect(2), with a descriptor of netmap or "
    "without; what is left of the limit")
{
	static const struct {
		struct timeval	 given;
		const char	*limit;
		struct timeval	 left;
	} rows[] = {
		{ { 0, 999999 }, "0.999999000", { 0, 0 } },
		{ { 1, 999 }, "1.000999000", { 0, 0 } },
		{ { 1, 1000 }, "1.001000000", { 0, 1 } },
		{ { 7, 999 }, "7.000999000", { 6, 0 } },
		{ { 6, 1000998 }, "7.000998000", { 5, 999999 } },
		{ { 6, 1000000 }, "7.000000000", { 5, 999001 } },
		{ { 0, 0 }, "0.000000000", { 0, 0 } },
	};
	struct timeval tv = { 5, 6 };
	struct timespec ts = { 7, 8 };
	char what[128];
	unsigned int i;

	returns(2, 3);
	CALL(select(12, SET(1), SET(2), SET(3), &tv), 2,
	    SAYS(" select(12,0x1,0x2,0x3,%p)", (void *)&tv));
	CALL(pselect(12, SET(1), SET(2), SET(3), &ts, MASK), 2,
	    SAYS(" pselect(12,0x1,0x2,0x3,%p,0x5000)", (void *)&ts));
	have(true);
	CALL(select(12, SET(1), SET(2), SET(3), &tv), 2,
	    SAYS(" any(12,0x1,0x2,0x3) select(12,0x1,0x2,0x3,%p)",
	    (void *)&tv));
	CALL(pselect(12, SET(1), SET(2), SET(3), &ts, MASK), 2,
	    SAYS(" any(12,0x1,0x2,0x3) pselect(12,0x1,0x2,0x3,%p,0x5000)",
	    (void *)&ts));
	any = true;
	CALL(select(12, SET(1), SET(2), SET(3), NULL), 2,
	    " any(12,0x1,0x2,0x3) run_select(12,0x1,0x2,0x3,(nil),none)");
	CALL(pselect(12, SET(1), SET(2), SET(3), &ts, MASK), 2,
	    " any(12,0x1,0x2,0x3)"
	    " run_select(12,0x1,0x2,0x3,0x5000,7.000000008)");
	CALL(pselect(12, SET(1), SET(2), SET(3), NULL, NULL), 2,
	    " any(12,0x1,0x2,0x3) run_select(12,0x1,0x2,0x3,(nil),none)");
	/* 1.000999001 s pass. */
	now.tv_nsec = 0;
	tv = (struct timeval){ 5, 2500000 };
	CALL(select(12, SET(1), SET(2), SET(3), &tv), 2,
	    " any(12,0x1,0x2,0x3)"
	    " run_select(12,0x1,0x2,0x3,(nil),7.500000000)");
	ATF_CHECK_EQ(6, tv.tv_sec);
	ATF_CHECK_EQ(499001, tv.tv_usec);
	now.tv_nsec = 100000000;
	returns(-1, EINTR);
	for (i = 0; i < nitems(rows); i++) {
		tv = rows[i].given;
		CALL(select(12, SET(1), SET(2), SET(3), &tv), -1,
		    SAYS(" any(12,0x1,0x2,0x3)"
		    " run_select(12,0x1,0x2,0x3,(nil),%s)", rows[i].limit));
		ATF_CHECK_EQ(rows[i].left.tv_sec, tv.tv_sec);
		ATF_CHECK_EQ(rows[i].left.tv_usec, tv.tv_usec);
	}
	/* Not valid. */
	result_errno = EINVAL;
	tv = (struct timeval){ -1, 1 };
	CALL(select(12, SET(1), SET(2), SET(3), &tv), -1,
	    " any(12,0x1,0x2,0x3)");
	tv = (struct timeval){ 1, -1 };
	CALL(select(12, SET(1), SET(2), SET(3), &tv), -1,
	    " any(12,0x1,0x2,0x3)");
	ATF_CHECK_EQ(-1, tv.tv_usec);
}

#define	EVENTS	((struct epoll_event *)0x9000)

TEST(epolls, "epoll(7), with a descriptor of netmap or without")
{
	struct timespec ts = { 7, 8 };
	char what[128];

	have(true);
	returns(2, 3);
	CALL(epoll_ctl(20, EPOLL_CTL_MOD, 10, EVENTS), 2,
	    " run_ctl(20,3,10,0x9000)");
	CALL(epoll_ctl(20, EPOLL_CTL_MOD, 11, EVENTS), 2,
	    " epoll_ctl(20,3,11,0x9000)");
	CALL(epoll_wait(20, EVENTS, 3, 4), 2,
	    " epoll_any(20) epoll_wait(20,0x9000,3,4)");
	CALL(epoll_pwait(20, EVENTS, 3, 4, MASK), 2,
	    " epoll_any(20) epoll_pwait(20,0x9000,3,4,0x5000)");
	CALL(epoll_pwait2(20, EVENTS, 3, &ts, MASK), 2,
	    SAYS(" epoll_any(20) epoll_pwait2(20,0x9000,3,%p,0x5000)",
	    (void *)&ts));
	any = true;
	CALL(epoll_wait(20, EVENTS, 3, 4001), 2,
	    " epoll_any(20) run_wait(20,0x9000,3,(nil),4.001000000)");
	CALL(epoll_wait(20, EVENTS, 3, -1), 2,
	    " epoll_any(20) run_wait(20,0x9000,3,(nil),none)");
	CALL(epoll_pwait(20, EVENTS, 3, 4001, MASK), 2,
	    " epoll_any(20) run_wait(20,0x9000,3,0x5000,4.001000000)");
	CALL(epoll_pwait2(20, EVENTS, 3, &ts, MASK), 2,
	    " epoll_any(20) run_wait(20,0x9000,3,0x5000,7.000000008)");
	CALL(epoll_pwait2(20, EVENTS, 3, NULL, NULL), 2,
	    " epoll_any(20) run_wait(20,0x9000,3,(nil),none)");
}

/* How the program ends if the C library does not have one of the names. */
static int
without(const char *srcdir, const char *name)
{
	int status;
	pid_t pid;

	pid = fork();
	ATF_REQUIRE(pid != -1);
	if (pid == 0) {
		setenv(MISSING, name, 1);
		execl("/proc/self/exe", "run_calls_test", "-s", srcdir,
		    "-r", "/dev/null", "missing", (char *)NULL);
		_exit(127);
	}
	ATF_REQUIRE_EQ(pid, waitpid(pid, &status, 0));
	return (WIFSIGNALED(status) ? WTERMSIG(status) :
	    -WEXITSTATUS(status));
}

TEST(missing, "A C library without one of the functions: the program ends, at "
    "the first call; else errno is left as it is")
{
	const char *srcdir = atf_tc_get_config_var(tc, "srcdir");

	ATF_CHECK_EQ(-3, without(srcdir, "nothing"));
	ATF_CHECK_EQ(SIGABRT, without(srcdir, "open"));
	ATF_CHECK_EQ(SIGABRT, without(srcdir, "epoll_pwait2"));
}

/* In that process: they are looked for once. */
static void __attribute__((__constructor__))
find_twice(void)
{
	unsigned int n;

	if (getenv(MISSING) == NULL)
		return;
	errno = 3;
	run_calls();
	n = lookups;
	run_calls();
	_exit(n == lookups ? errno : 99);
}

TEST_PROGRAM
