/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For the test of run_calls.c: a C library whose functions say what they are
 * called with, while `on' is set.  Needs what that file defines before.
 */

#ifndef _RUN_LIBC_H_
#define	_RUN_LIBC_H_

#include <dlfcn.h>

/* The C library's, which are looked for by their names. */

void	*__real_dlsym(void *, const char *);
void	*__wrap_dlsym(void *, const char *);

/* What is called outside of a test; the type of a function is its own. */
#define	REAL(name, ...)	((__typeof__(run_calls()->name))		\
	    __real_dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

static int
the_open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!on)
		return (REAL(open, path, flags, mode));
	say(" open(%s,%#x,%#o)", path != NULL ? path : "-", flags, mode);
	return (answer());
}

static int
the_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!on)
		return (REAL(openat, dir, path, flags, mode));
	say(" openat(%d,%s,%#x,%#o)", dir, path != NULL ? path : "-", flags,
	    mode);
	return (answer());
}

/* Of the checked names, without a mode. */
static int
the_open_2(const char *path, int flags)
{
	return (the_open(path, flags, 0));
}

static int
the_openat_2(int dir, const char *path, int flags)
{
	return (the_openat(dir, path, flags, 0));
}

static int
the_close(int fd)
{
	if (!on)
		return (REAL(close, fd));
	say(" close(%d)", fd);
	return (answer());
}

static int
the_close_range(unsigned int first, unsigned int last, int flags)
{
	say(" close_range(%u,%u,%d)", first, last, flags);
	return (answer());
}

static void
the_closefrom(int first)
{
	say(" closefrom(%d)", first);
}

static int
the_dup(int fd)
{
	if (!on)
		return (REAL(dup, fd));
	say(" dup(%d)", fd);
	return (answer());
}

static int
the_dup2(int from, int to)
{
	if (!on)
		return (REAL(dup2, from, to));
	say(" dup2(%d,%d)", from, to);
	return (answer());
}

static int
the_dup3(int from, int to, int flags)
{
	say(" dup3(%d,%d,%d)", from, to, flags);
	return (answer());
}

static int
the_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = cmd == F_GETFD ? NULL : va_arg(ap, void *);
	va_end(ap);
	if (!on)
		return (REAL(fcntl, fd, cmd, arg));
	if (cmd == F_GETFD) {
		errno = EBADF;
		return (getfd);
	}
	say(" fcntl(%d,%d,%p)", fd, cmd, arg);
	return (answer());
}

static int
the_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!on)
		return (REAL(ioctl, fd, request, arg));
	say(" ioctl(%d,%#lx,%p)", fd, request, arg);
	return (answer());
}

static void *
the_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (!on)
		return (REAL(mmap, addr, len, prot, flags, fd, offset));
	say(" mmap(%p,%zu,%d,%#x,%d,%jd)", addr, len, prot, flags, fd,
	    (intmax_t)offset);
	return (answer() == -1 ? MAP_FAILED : (void *)0x66000);
}

static int
the_poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (!on)
		return (REAL(poll, fds, n, ms));
	say(" poll(%p,%zu,%d)", (void *)fds, (size_t)n, ms);
	return (answer());
}

static int
the_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts,
    const sigset_t *mask)
{
	say(" ppoll(%p,%zu,%p,%p)", (void *)fds, (size_t)n, (const void *)ts,
	    (const void *)mask);
	return (answer());
}

static int
the_select(int n, fd_set *rd, fd_set *wr, fd_set *ex, struct timeval *tv)
{
	if (!on)
		return (REAL(select, n, rd, wr, ex, tv));
	say(" select(%d,%p,%p,%p,%p)", n, (void *)rd, (void *)wr, (void *)ex,
	    (void *)tv);
	return (answer());
}

static int
the_pselect(int n, fd_set *rd, fd_set *wr, fd_set *ex,
    const struct timespec *ts, const sigset_t *mask)
{
	say(" pselect(%d,%p,%p,%p,%p,%p)", n, (void *)rd, (void *)wr,
	    (void *)ex, (const void *)ts, (const void *)mask);
	return (answer());
}

static int
the_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	say(" epoll_ctl(%d,%d,%d,%p)", epfd, op, fd, (void *)event);
	return (answer());
}

static int
the_epoll_wait(int epfd, struct epoll_event *events, int max, int ms)
{
	say(" epoll_wait(%d,%p,%d,%d)", epfd, (void *)events, max, ms);
	return (answer());
}

static int
the_epoll_pwait(int epfd, struct epoll_event *events, int max, int ms,
    const sigset_t *mask)
{
	say(" epoll_pwait(%d,%p,%d,%d,%p)", epfd, (void *)events, max, ms,
	    (const void *)mask);
	return (answer());
}

static int
the_epoll_pwait2(int epfd, struct epoll_event *events, int max,
    const struct timespec *timeout, const sigset_t *mask)
{
	say(" epoll_pwait2(%d,%p,%d,%p,%p)", epfd, (void *)events, max,
	    (const void *)timeout, (const void *)mask);
	return (answer());
}

/* The name that the C library does not have, in another process. */
#define	MISSING	"RUN_TEST_MISSING"

static unsigned int lookups;

void *
__wrap_dlsym(void *handle, const char *name)
{
	static const struct {
		const char *name;
		void	(*fn)(void);
	} names[] = {
#define	NAME(name)	{ #name, (void (*)(void))the_##name }
		NAME(open), NAME(openat), NAME(close), NAME(close_range),
		NAME(closefrom), NAME(dup), NAME(dup2), NAME(dup3),
		NAME(fcntl), NAME(ioctl), NAME(mmap), NAME(poll), NAME(ppoll),
		NAME(select), NAME(pselect), NAME(epoll_ctl),
		NAME(epoll_wait), NAME(epoll_pwait), NAME(epoll_pwait2),
		{ "__open_2", (void (*)(void))the_open_2 },
		{ "__openat_2", (void (*)(void))the_openat_2 },
#undef NAME
	};
	const char *missing = getenv(MISSING);
	unsigned int i;

	lookups++;
	errno = EXDEV;
	if (handle != RTLD_NEXT || (missing != NULL &&
	    strcmp(missing, name) == 0))
		return (NULL);
	for (i = 0; i < nitems(names); i++)
		if (strcmp(names[i].name, name) == 0)
			return ((void *)(uintptr_t)names[i].fn);
	return (NULL);
}

#endif /* !_RUN_LIBC_H_ */
