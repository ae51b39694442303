/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Linked into valed_failing: a valed in which a chosen call of a function
 * fails.  The linker's --wrap sends the calls in valed, the model, the backend
 * and libvale here first; calls inside other libraries are not changed.
 *
 * A call site is named by the function it calls and its offset in the program,
 * which is the same in each run.
 *
 *	FAIL_LOG=file		append a line "function offset" when a site is
 *				called for the first time, "failed function
 *				offset" when it fails, and "live n" at the
 *				end, where n is how many allocations were not
 *				freed
 *	FAIL_SITE=offset	the site to fail, hexadecimal
 *	FAIL_CALL=n		which of its calls fails, from 1
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libvale.h"

#define	SITES_MAX	1024

/* The first address of the program; the linker defines it. */
extern const char __executable_start[];

/* Shared with the process that valed forks. */
static struct sites {
	uint32_t	n;
	uint32_t	calls;		/* of the site to fail */
	int64_t		live;		/* allocations */
	uintptr_t	offset[SITES_MAX];
} *sites;
static uintptr_t fail_site;
static uint32_t fail_call;
static int log_fd = -1;
static pthread_mutex_t sites_mtx = PTHREAD_MUTEX_INITIALIZER;

ssize_t	__real_write(int fd, const void *buf, size_t len);

/* Append a line to the log. */
static void __printflike(1, 2)
report(const char *fmt, ...)
{
	char line[128];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (log_fd != -1 && __real_write(log_fd, line, n) != n)
		abort();
}

static void __attribute__((__constructor__))
failing_init(void)
{
	const char *s;

	sites = mmap(NULL, sizeof(*sites), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sites == MAP_FAILED)
		abort();
	s = getenv("FAIL_LOG");
	if (s != NULL)
		log_fd = open(s, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		    0666);
	s = getenv("FAIL_SITE");
	fail_site = s != NULL ? strtoul(s, NULL, 16) : 0;
	s = getenv("FAIL_CALL");
	fail_call = s != NULL ? (uint32_t)atoi(s) : 1;
}

/* A site is called: whether that call must fail. */
static bool
failing(const char *name, const void *site)
{
	uintptr_t offset = (uintptr_t)site - (uintptr_t)__executable_start;
	uint32_t i;
	bool seen;

	if (fail_site != 0) {
		if (offset != fail_site || __atomic_add_fetch(&sites->calls, 1,
		    __ATOMIC_RELAXED) != fail_call)
			return (false);
		report("failed %s %jx\n", name, (uintmax_t)offset);
		return (true);
	}
	if (log_fd == -1)
		return (false);
	/* A signal handler may be such a site, so do not wait for the mutex. */
	if (pthread_mutex_trylock(&sites_mtx) != 0)
		return (false);
	seen = false;
	for (i = 0; i < sites->n && !seen; i++)
		seen = sites->offset[i] == offset;
	if (!seen) {
		if (sites->n == SITES_MAX)
			abort();
		sites->offset[sites->n++] = offset;
		report("%s %jx\n", name, (uintmax_t)offset);
	}
	pthread_mutex_unlock(&sites_mtx);
	return (false);
}

/*
 * A function, its arguments, and what it returns and leaves in errno if it
 * fails.
 */
#define	WRAP(type, name, params, args, error, result)			\
type	__real_##name params;						\
type	__wrap_##name params;						\
									\
type									\
__wrap_##name params							\
{									\
	if (failing(#name, __builtin_return_address(0))) {		\
		errno = (error);					\
		return (result);					\
	}								\
	return (__real_##name args);					\
}

/* The same for a function that returns memory. */
#define	WRAP_ALLOC(type, name, params, args)				\
type	__real_##name params;						\
type	__wrap_##name params;						\
									\
type									\
__wrap_##name params							\
{									\
	if (failing(#name, __builtin_return_address(0))) {		\
		errno = ENOMEM;						\
		return (NULL);						\
	}								\
	__atomic_add_fetch(&sites->live, 1, __ATOMIC_RELAXED);		\
	return (__real_##name args);					\
}

WRAP_ALLOC(void *, malloc, (size_t size), (size))
WRAP_ALLOC(void *, calloc, (size_t n, size_t size), (n, size))
WRAP_ALLOC(void *, aligned_alloc, (size_t align, size_t size), (align, size))
WRAP_ALLOC(char *, strdup, (const char *s), (s))
WRAP_ALLOC(char *, strndup, (const char *s, size_t n), (s, n))

void	__real_free(void *p);
void	__wrap_free(void *p);

void
__wrap_free(void *p)
{
	if (p != NULL)
		__atomic_sub_fetch(&sites->live, 1, __ATOMIC_RELAXED);
	__real_free(p);
}

void	__real__exit(int status) __dead2;
void	__wrap__exit(int status) __dead2;

void
__wrap__exit(int status)
{
	report("live %jd\n", (intmax_t)__atomic_load_n(&sites->live,
	    __ATOMIC_RELAXED));
	__real__exit(status);
}

WRAP(void *, mmap, (void *a, size_t n, int prot, int flags, int fd, off_t at),
    (a, n, prot, flags, fd, at), ENOMEM, MAP_FAILED)

WRAP(int, eventfd, (unsigned int n, int flags), (n, flags), EMFILE, -1)
WRAP(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE, -1)
WRAP(int, timerfd_settime, (int fd, int flags, const struct itimerspec *new,
    struct itimerspec *old), (fd, flags, new, old), EINVAL, -1)
WRAP(int, signalfd, (int fd, const sigset_t *set, int flags),
    (fd, set, flags), EMFILE, -1)
WRAP(int, epoll_create1, (int flags), (flags), EMFILE, -1)
WRAP(int, epoll_ctl, (int ep, int op, int fd, struct epoll_event *ev),
    (ep, op, fd, ev), ENOSPC, -1)
WRAP(int, epoll_wait, (int ep, struct epoll_event *ev, int n, int ms),
    (ep, ev, n, ms), EINTR, -1)
WRAP(int, poll, (struct pollfd *fds, nfds_t n, int ms), (fds, n, ms), EINTR,
    -1)
WRAP(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *ts,
    const sigset_t *set), (fds, n, ts, set), EINTR, -1)
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags), EMFILE, -1)
WRAP(pid_t, fork, (void), (), EAGAIN, -1)

WRAP(int, pthread_create, (pthread_t *t, const pthread_attr_t *attr,
    void *(*main)(void *), void *arg), (t, attr, main, arg), 0, EAGAIN)
WRAP(int, pthread_mutex_init, (pthread_mutex_t *mtx,
    const pthread_mutexattr_t *attr), (mtx, attr), 0, ENOMEM)
WRAP(int, pthread_key_create, (pthread_key_t *key, void (*done)(void *)),
    (key, done), 0, EAGAIN)
WRAP(int, sem_init, (sem_t *sem, int shared, unsigned int n),
    (sem, shared, n), ENOSPC, -1)
WRAP(int, sem_wait, (sem_t *sem), (sem), EINTR, -1)

WRAP(int, socket, (int domain, int type, int proto), (domain, type, proto),
    EMFILE, -1)
WRAP(int, socketpair, (int domain, int type, int proto, int fds[2]),
    (domain, type, proto, fds), EMFILE, -1)
WRAP(int, bind, (int s, const struct sockaddr *sa, socklen_t len),
    (s, sa, len), ENOSPC, -1)
WRAP(int, connect, (int s, const struct sockaddr *sa, socklen_t len),
    (s, sa, len), EAGAIN, -1)
WRAP(int, listen, (int s, int n), (s, n), EADDRINUSE, -1)
WRAP(int, accept4, (int s, struct sockaddr *sa, socklen_t *len, int flags),
    (s, sa, len, flags), EMFILE, -1)
WRAP(ssize_t, recvmsg, (int s, struct msghdr *m, int flags), (s, m, flags),
    ENOMEM, -1)
WRAP(ssize_t, send, (int s, const void *buf, size_t len, int flags),
    (s, buf, len, flags), ENOBUFS, -1)

WRAP(ssize_t, read, (int fd, void *buf, size_t len), (fd, buf, len), EINTR,
    -1)
WRAP(ssize_t, write, (int fd, const void *buf, size_t len), (fd, buf, len),
    EAGAIN, -1)
WRAP(int, eventfd_write, (int fd, eventfd_t n), (fd, n), EAGAIN, -1)
WRAP(int, eventfd_read, (int fd, eventfd_t *n), (fd, n), EAGAIN, -1)
WRAP(int, flock, (int fd, int op), (fd, op), ENOLCK, -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), EIO, -1)
WRAP(int, fstatfs, (int fd, struct statfs *st), (fd, st), EIO, -1)
WRAP(int, lstat, (const char *path, struct stat *st), (path, st), EACCES, -1)
WRAP(int, unlink, (const char *path), (path), EACCES, -1)
WRAP(int, getrlimit, (__rlimit_resource_t what, struct rlimit *rl),
    (what, rl), EINVAL, -1)
WRAP(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *rl),
    (what, rl), EPERM, -1)
WRAP(int, getentropy, (void *buf, size_t len), (buf, len), EIO, -1)

/* Those with a variable number of arguments take one more at the most. */
#define	WRAP_OPTIONAL(name, type, first, second, error)			\
int	__real_##name(type a, second b, ...);				\
int	__wrap_##name(type a, second b, ...);				\
									\
int									\
__wrap_##name(type a, second b, ...)					\
{									\
	va_list ap;							\
	long c;								\
									\
	va_start(ap, b);						\
	c = va_arg(ap, long);						\
	va_end(ap);							\
	if (failing(#name, __builtin_return_address(0))) {		\
		errno = (error);					\
		return (-1);						\
	}								\
	return (__real_##name(a, b, c));				\
}

WRAP_OPTIONAL(open, const char *, path, int, ENFILE)
WRAP_OPTIONAL(fcntl, int, fd, int, EMFILE)
WRAP_OPTIONAL(ioctl, int, fd, unsigned long, EIO)

int	__real_prctl(int option, ...);
int	__wrap_prctl(int option, ...);

int
__wrap_prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;
	int i;

	va_start(ap, option);
	for (i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (failing("prctl", __builtin_return_address(0))) {
		errno = EPERM;
		return (-1);
	}
	return (__real_prctl(option, arg[0], arg[1], arg[2], arg[3]));
}

long	__real_syscall(long number, ...);
long	__wrap_syscall(long number, ...);

/* As the C library's, it reads six arguments, whatever the caller passes. */
long __attribute__((__no_sanitize__("address")))
__wrap_syscall(long number, ...)
{
	long arg[6];
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (failing("syscall", __builtin_return_address(0))) {
		errno = EIO;
		return (-1);
	}
	return (__real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4],
	    arg[5]));
}

WRAP(scmp_filter_ctx, seccomp_init, (uint32_t action), (action), 0, NULL)
WRAP(int, seccomp_attr_set, (scmp_filter_ctx ctx, enum scmp_filter_attr attr,
    uint32_t value), (ctx, attr, value), 0, -EINVAL)
WRAP(int, seccomp_load, (const scmp_filter_ctx ctx), (ctx), 0, -ENOSYS)

WRAP(json_t *, json_loadb, (const char *buf, size_t len, size_t flags,
    json_error_t *error), (buf, len, flags, error), 0, NULL)
WRAP(json_t *, json_object, (void), (), 0, NULL)
WRAP(json_t *, json_integer, (json_int_t n), (n), 0, NULL)
WRAP(json_t *, json_true, (void), (), 0, NULL)
WRAP(int, json_object_set_new, (json_t *object, const char *key,
    json_t *value), (object, key, value), 0, (json_decref(value), -1))
WRAP(size_t, json_dumpb, (const json_t *json, char *buf, size_t len,
    size_t flags), (json, buf, len, flags), 0, 0)

json_t	*__wrap_json_pack(const char *fmt, ...);

json_t *
__wrap_json_pack(const char *fmt, ...)
{
	json_t *json;
	va_list ap;

	if (failing("json_pack", __builtin_return_address(0)))
		return (NULL);
	va_start(ap, fmt);
	json = json_vpack_ex(NULL, 0, fmt, ap);
	va_end(ap);
	return (json);
}

WRAP(int, vale_txsync, (struct vale_desc *d), (d), EIO, -1)
WRAP(int, vale_rxsync, (struct vale_desc *d), (d), EIO, -1)
