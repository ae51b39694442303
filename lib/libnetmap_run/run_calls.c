/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The functions that take the place of the C library's.  netmap_run.h.
 *
 * What has nothing to do with /dev/netmap goes on to the next function of the
 * name as it is.
 *
 * Programs call a function by any of its names: flags of the compiler choose
 * which (_FORTIFY_SOURCE, _FILE_OFFSET_BITS).  All are here.  On the 64-bit
 * systems for which this is, there are none for a 64-bit time.
 */

/* These would give the functions below other names. */
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#undef _FORTIFY_SOURCE

#include <sys/param.h>
#include <sys/mman.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netmap_run.h"

#define	EXPORT	__attribute__((__visibility__("default")))

/* Another name of a function of this file. */
#define	ALIAS(name, of)							\
	EXPORT extern __typeof__(of) name __attribute__((__alias__(#of)))

/* Names of the C library that its headers do not declare. */
ALIAS(__open, open);
ALIAS(__close, close);
ALIAS(__dup2, dup2);
ALIAS(__fcntl, fcntl);
ALIAS(__poll, poll);
ALIAS(__select, select);
int	__open_2(const char *, int);
int	__openat_2(int, const char *, int);
int	__poll_chk(struct pollfd *, nfds_t, int, size_t);
int	__ppoll_chk(struct pollfd *, nfds_t, const struct timespec *,
	    const sigset_t *, size_t);
/* Say that a program has overflowed a buffer, and end the program. */
void	__chk_fail(void) __attribute__((__noreturn__));

/* For offsets of 64 bits, which all others have, too: O_LARGEFILE is 0. */
_Static_assert(O_LARGEFILE == 0 && sizeof(off_t) == sizeof(off64_t), "64 bits");
ALIAS(open64, open);
ALIAS(__open64, open);
ALIAS(__open64_2, __open_2);
ALIAS(openat64, openat);
ALIAS(__openat64_2, __openat_2);
ALIAS(fcntl64, fcntl);
ALIAS(mmap64, mmap);

static struct run_calls next;
static atomic_bool next_known;

static void
next_find(void)
{
	const struct {
		void		*to;
		const char	*name;
	} names[] = {
#define	NAME(name)	{ &next.name, #name }
		{ &next.open_2, "__open_2" }, { &next.openat_2, "__openat_2" },
		NAME(open), NAME(openat), NAME(close), NAME(close_range),
		NAME(closefrom), NAME(dup), NAME(dup2), NAME(dup3),
		NAME(fcntl), NAME(ioctl), NAME(mmap), NAME(poll), NAME(ppoll),
		NAME(select), NAME(pselect), NAME(epoll_ctl),
		NAME(epoll_wait), NAME(epoll_pwait), NAME(epoll_pwait2),
#undef NAME
	};
	int error = errno;
	unsigned int i;
	void *fn;

	for (i = 0; i < nitems(names); i++) {
		fn = dlsym(RTLD_NEXT, names[i].name);
		if (fn == NULL)
			abort();
		memcpy(names[i].to, &fn, sizeof(fn));
	}
	atomic_store_explicit(&next_known, true, memory_order_release);
	errno = error;
}

/* Find the calls when used: other libraries' constructors may come first. */
const struct run_calls *
run_calls(void)
{
	if (!atomic_load_explicit(&next_known, memory_order_acquire))
		next_find();
	return (&next);
}

static bool
is_netmap(const char *path)
{
	return (path != NULL && strcmp(path, NETMAP_DEVICE_NAME) == 0);
}

/* The mode of a file that is created. */
#define	OPEN_MODE(mode, flags)						\
	do {								\
		va_list _ap;						\
									\
		mode = 0;						\
		if (((flags) & O_CREAT) != 0 ||				\
		    ((flags) & O_TMPFILE) == O_TMPFILE) {		\
			va_start(_ap, flags);				\
			mode = va_arg(_ap, mode_t);			\
			va_end(_ap);					\
		}							\
	} while (0)

EXPORT int
open(const char *path, int flags, ...)
{
	mode_t mode;

	if (is_netmap(path))
		return (run_open(flags));
	OPEN_MODE(mode, flags);
	return (run_calls()->open(path, flags, mode));
}

EXPORT int
openat(int dir, const char *path, int flags, ...)
{
	mode_t mode;

	if (is_netmap(path))
		return (run_open(flags));
	OPEN_MODE(mode, flags);
	return (run_calls()->openat(dir, path, flags, mode));
}

/*
 * Without a mode: the C library ends a program that creates a file so.
 */
EXPORT int
__open_2(const char *path, int flags)
{
	if (is_netmap(path))
		return (run_open(flags));
	return (run_calls()->open_2(path, flags));
}

EXPORT int
__openat_2(int dir, const char *path, int flags)
{
	if (is_netmap(path))
		return (run_open(flags));
	return (run_calls()->openat_2(dir, path, flags));
}

EXPORT int
close(int fd)
{
	if (run_is_own(fd))
		return (run_fail(EBADF));
	run_closed(fd);
	return (run_calls()->close(fd));
}

EXPORT int
close_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int fd;
	int r = 0;

	if ((flags & CLOSE_RANGE_CLOEXEC) == 0)
		run_closed_range(first, last);
	/* What is before each of the library's own; then the rest. */
	for (fd = first; r == 0 && run_any() && fd <= last && fd < RUN_FDS;
	    fd++) {
		if (!run_is_own((int)fd))
			continue;
		if (fd > first)
			r = run_calls()->close_range(first, fd - 1, flags);
		if (fd == last)
			return (r);
		first = fd + 1;
	}
	return (r == 0 ? run_calls()->close_range(first, last, flags) : r);
}

EXPORT void
closefrom(int first)
{
	(void)close_range(MAX(first, 0), ~0u, 0);
}

/* Add `copy', a new number or -1, to `rd', which is given back or NULL. */
static int
copied(struct run_desc *rd, int copy)
{
	if (rd == NULL)
		return (copy);
	if (copy != -1)
		copy = run_copied(rd, copy);
	run_put(rd);
	return (copy);
}

EXPORT int
dup(int fd)
{
	struct run_desc *rd = run_get(fd);

	return (copied(rd, run_calls()->dup(fd)));
}

/* Handle dup2(2), where `flags' is -1, and dup3(2). */
static int
dup_to(int from, int to, int flags)
{
	struct run_desc *rd;
	int r;

	if (run_is_own(to))
		return (run_fail(EBUSY));
	rd = run_get(from);
	if (from != to && run_any() &&
	    run_calls()->fcntl(from, F_GETFD) != -1)
		run_closed(to);
	r = flags == -1 ? run_calls()->dup2(from, to) :
	    run_calls()->dup3(from, to, flags);
	if (from != to)
		return (copied(rd, r));
	if (rd != NULL)
		run_put(rd);
	return (r);
}

EXPORT int
dup2(int from, int to)
{
	return (dup_to(from, to, -1));
}

EXPORT int
dup3(int from, int to, int flags)
{
	return (dup_to(from, to, flags));
}

/* As the C library does: an argument is an int or a pointer, in a register. */
#define	LAST_ARG(arg, before)						\
	do {								\
		va_list _ap;						\
									\
		va_start(_ap, before);					\
		arg = va_arg(_ap, void *);				\
		va_end(_ap);						\
	} while (0)

EXPORT int
fcntl(int fd, int cmd, ...)
{
	struct run_desc *rd;
	void *arg;

	LAST_ARG(arg, cmd);
	if (cmd != F_DUPFD && cmd != F_DUPFD_CLOEXEC)
		return (run_calls()->fcntl(fd, cmd, arg));
	rd = run_get(fd);
	return (copied(rd, run_calls()->fcntl(fd, cmd, arg)));
}

static bool
is_request(unsigned long request)
{
	/* Programs that keep it in an int extend its sign. */
	switch ((uint32_t)request) {
	case NIOCCTRL:
	case NIOCREGIF:
	case NIOCGINFO:
	case NIOCTXSYNC:
	case NIOCRXSYNC:
		return (true);
	default:
		return (false);
	}
}

EXPORT int
ioctl(int fd, unsigned long request, ...)
{
	struct run_desc *rd = run_get(fd);
	void *arg;
	int r;

	LAST_ARG(arg, request);
	if (rd == NULL && is_request(request))
		rd = run_share(fd, false);
	if (rd == NULL)
		return (run_calls()->ioctl(fd, request, arg));
	r = run_ioctl(rd, request, arg);
	run_put(rd);
	return (r);
}

EXPORT void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	struct run_desc *rd = NULL;
	void *map;

	if ((flags & MAP_ANONYMOUS) == 0)
		rd = run_get(fd);
	if (rd == NULL) {
		map = run_calls()->mmap(addr, len, prot, flags, fd, offset);
		if (map != MAP_FAILED || errno != ENODEV)
			return (map);
		/* A socket cannot be mapped. */
		rd = run_share(fd, true);
		if (rd == NULL) {
			errno = ENODEV;
			return (MAP_FAILED);
		}
	}
	map = run_mmap(rd, addr, len, prot, flags, offset);
	run_put(rd);
	return (map);
}

static bool
poll_any(const struct pollfd *fds, nfds_t n)
{
	nfds_t i;

	if (!run_any() || fds == NULL)
		return (false);
	for (i = 0; i < n; i++)
		if (run_find(fds[i].fd) != NULL)
			return (true);
	return (false);
}

/* Convert a time limit in milliseconds; a negative one is none. */
static const struct timespec *
limit(struct timespec *ts, int ms)
{
	if (ms < 0)
		return (NULL);
	ts->tv_sec = ms / 1000;
	ts->tv_nsec = ms % 1000 * 1000000L;
	return (ts);
}

EXPORT int
poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec ts;

	if (!poll_any(fds, n))
		return (run_calls()->poll(fds, n, ms));
	return (run_poll(fds, NULL, n, limit(&ts, ms), NULL));
}

EXPORT int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
    const sigset_t *mask)
{
	if (!poll_any(fds, n))
		return (run_calls()->ppoll(fds, n, timeout, mask));
	return (run_poll(fds, NULL, n, timeout, mask));
}

/* End the program, as the C library does, if it has less space than it says. */
static void
check_space(nfds_t n, size_t size)
{
	if (size / sizeof(struct pollfd) < n)
		__chk_fail();
}

EXPORT int
__poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size)
{
	check_space(n, size);
	return (poll(fds, n, ms));
}

EXPORT int
__ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
    const sigset_t *mask, size_t size)
{
	check_space(n, size);
	return (ppoll(fds, n, timeout, mask));
}

/* Leave in the limit the time that is left, as Linux does. */
static void
limit_left(struct timeval *tv, const struct timespec *begin)
{
	struct timespec now;
	int64_t us;

	clock_gettime(CLOCK_MONOTONIC, &now);
	us = (tv->tv_sec - (now.tv_sec - begin->tv_sec)) * 1000000LL +
	    tv->tv_usec - (now.tv_nsec - begin->tv_nsec) / 1000;
	us = MAX(us, 0);
	tv->tv_sec = us / 1000000;
	tv->tv_usec = us % 1000000;
}

EXPORT int
select(int n, fd_set *rd, fd_set *wr, fd_set *ex, struct timeval *tv)
{
	fd_set *sets[3] = { rd, wr, ex };
	struct timespec begin, ts;
	int error, r;

	if (!run_any() || !run_select_any(n, sets))
		return (run_calls()->select(n, rd, wr, ex, tv));
	if (tv == NULL)
		return (run_select(n, sets, NULL, NULL));
	if (tv->tv_sec < 0 || tv->tv_usec < 0) {
		errno = EINVAL;
		return (-1);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	ts.tv_sec = tv->tv_sec + tv->tv_usec / 1000000;
	ts.tv_nsec = tv->tv_usec % 1000000 * 1000;
	r = run_select(n, sets, &ts, NULL);
	error = errno;
	limit_left(tv, &begin);
	errno = error;
	return (r);
}

EXPORT int
pselect(int n, fd_set *rd, fd_set *wr, fd_set *ex,
    const struct timespec *timeout, const sigset_t *mask)
{
	fd_set *sets[3] = { rd, wr, ex };

	if (!run_any() || !run_select_any(n, sets))
		return (run_calls()->pselect(n, rd, wr, ex, timeout, mask));
	return (run_select(n, sets, timeout, mask));
}

EXPORT int
epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (run_find(fd) == NULL)
		return (run_calls()->epoll_ctl(epfd, op, fd, event));
	return (run_epoll_ctl(epfd, op, fd, event));
}

/*
 * Wait by `call', one of the C library, unless `epfd' has a descriptor of
 * /dev/netmap; or until it has one.
 */
static int
epoll_wait_for(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask,
    int (*call)(int, struct epoll_event *, int, const struct timespec *,
    const sigset_t *))
{
	struct timespec deadline, left;
	int n, r;

	run_epoll_enter();
	if (run_epoll_any(epfd))
		r = run_epoll_wait(epfd, events, max, timeout, mask);
	else {
		if (timeout != NULL)
			deadline = run_deadline(timeout);
		n = call(epfd, events, max, timeout, mask);
		r = run_epoll_own(events, n);
		if (n > 0 && r == 0) {
			if (timeout != NULL)
				left = run_left(&deadline);
			r = run_epoll_wait(epfd, events, max, timeout != NULL ?
			    &left : NULL, mask);
		}
	}
	run_epoll_leave();
	return (r);
}

/* Convert a time limit back, which limit() has made; NULL is none. */
static int
limit_ms(const struct timespec *ts)
{
	return (ts == NULL ? -1 : ts->tv_sec * 1000 + ts->tv_nsec / 1000000);
}

static int
wait_ms(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask __unused)
{
	return (run_calls()->epoll_wait(epfd, events, max, limit_ms(timeout)));
}

static int
wait_mask(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	return (run_calls()->epoll_pwait(epfd, events, max, limit_ms(timeout),
	    mask));
}

static int
wait_ns(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	return (run_calls()->epoll_pwait2(epfd, events, max, timeout, mask));
}

EXPORT int
epoll_wait(int epfd, struct epoll_event *events, int max, int ms)
{
	struct timespec ts;

	return (epoll_wait_for(epfd, events, max, limit(&ts, ms), NULL,
	    wait_ms));
}

EXPORT int
epoll_pwait(int epfd, struct epoll_event *events, int max, int ms,
    const sigset_t *mask)
{
	struct timespec ts;

	return (epoll_wait_for(epfd, events, max, limit(&ts, ms), mask,
	    wait_mask));
}

EXPORT int
epoll_pwait2(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	return (epoll_wait_for(epfd, events, max, timeout, mask, wait_ns));
}
