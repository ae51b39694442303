/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See fail_calls.h.  A program that has no test inside takes from the
 * environment which call fails.  A call site is named by the function that is
 * called and its offset in the program, which is the same in each run.
 *
 *	FAIL_LOG=file		append a line "function offset" when a site is
 *				called for the first time, "failed function
 *				offset" when it fails
 *	FAIL_SITE=offset	the site to fail, hexadecimal
 *	FAIL_CALL=n		which of its calls fails, from 1
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#ifdef __linux__
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail_calls.h"

#define	SITES_MAX	1024
#define	LOG_FD		200

/* The first address of the program; the linker defines it. */
extern const char __executable_start[];

/* Shared with the processes that the program forks. */
static struct state {
	const char	*name;		/* of fail_calls() */
	const char	*failed;	/* fail_calls_name() */
	uint32_t	 n, times;
	uint32_t	 made;		/* calls since fail_calls() */
	uint32_t	 fails;		/* of those */
	bool		 counts;	/* since fail_calls() */
	int		 error;		/* of fail_calls_error(), or 0 */
	uint32_t	 site_calls;	/* of the site to fail */
	struct fail_held held;		/* without descriptors */
	uint32_t	 nsites;
	uintptr_t	 offset[SITES_MAX];
} *state;
static uintptr_t site_fails;		/* FAIL_SITE, */
static uint32_t	site_call;		/* and FAIL_CALL */
static int	log_fd = -1;
static pthread_mutex_t sites_mtx = PTHREAD_MUTEX_INITIALIZER;
static __thread bool spared;

size_t	fail_map_size;
int	fail_map_flags;

ssize_t	__real_write(int fd, const void *buf, size_t len);
int	__real_pthread_mutex_unlock(pthread_mutex_t *m);
void	*__real_mmap(void *p, size_t len, int prot, int flags, int fd,
	    off_t at);
int	__real_open(const char *path, int flags, ...);
int	__real_fcntl(int fd, int cmd, ...);

void
fail_report(const char *fmt, ...)
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
fail_init(void)
{
	const char *s;
	int fd = -1;

	state = __real_mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANON, -1, 0);
	if (state == MAP_FAILED)
		abort();
	s = getenv("FAIL_LOG");
	if (s != NULL)
		fd = __real_open(s, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		    0666);
	if (fd != -1) {
		/* Where the program has no descriptor of its own. */
		log_fd = __real_fcntl(fd, F_DUPFD_CLOEXEC, LOG_FD);
		close(fd);
	}
	s = getenv("FAIL_SITE");
	site_fails = s != NULL ? strtoul(s, NULL, 16) : 0;
	s = getenv("FAIL_CALL");
	site_call = s != NULL ? (uint32_t)atoi(s) : 1;
}

/* Log a site that is called for the first time. */
static void
site_log(const char *name, uintptr_t offset)
{
	uint32_t i;

	/* A signal handler may be such a site, so do not wait for the mutex. */
	if (pthread_mutex_trylock(&sites_mtx) != 0)
		return;
	for (i = 0; i < state->nsites && state->offset[i] != offset; i++)
		continue;
	if (i == state->nsites) {
		if (i == SITES_MAX)
			abort();
		state->offset[state->nsites++] = offset;
		fail_report("%s %jx\n", name, (uintmax_t)offset);
	}
	__real_pthread_mutex_unlock(&sites_mtx);
}

/* Return whether the function has failed, and is to fail once more. */
static bool
fails_again(const char *name)
{
	const char *failed = __atomic_load_n(&state->failed, __ATOMIC_ACQUIRE);
	uint32_t fails = __atomic_load_n(&state->fails, __ATOMIC_RELAXED);

	if (failed == NULL || strcmp(failed, name) != 0)
		return (false);
	while (fails < state->times)
		if (__atomic_compare_exchange_n(&state->fails, &fails,
		    fails + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return (true);
	return (false);
}

/* Count a call by number.  Other processes do so, too. */
static bool
number_fails(const char *name)
{
	uint32_t made;

	if (state->name != NULL && strcmp(state->name, name) != 0)
		return (false);
	made = __atomic_add_fetch(&state->made, 1, __ATOMIC_RELAXED);
	if (made != state->n)
		return (fails_again(name));
	__atomic_store_n(&state->fails, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&state->failed, name, __ATOMIC_RELEASE);
	return (true);
}

bool
fail_call(const char *name, const void *site)
{
	const uintptr_t offset = (uintptr_t)site -
	    (uintptr_t)__executable_start;

	/* Sanitizers call before the constructor. */
	if (state == NULL || spared)
		return (false);
	if (__atomic_load_n(&state->counts, __ATOMIC_ACQUIRE))
		return (number_fails(name));
	if (site_fails == 0) {
		if (log_fd != -1)
			site_log(name, offset);
		return (false);
	}
	if (offset != site_fails || __atomic_add_fetch(&state->site_calls, 1,
	    __ATOMIC_RELAXED) != site_call)
		return (false);
	fail_report("failed %s %jx\n", name, (uintmax_t)offset);
	return (true);
}

void
fail_calls(const char *name, uint32_t n, uint32_t times)
{
	state->name = name;
	state->failed = NULL;
	state->n = n;
	state->times = times;
	state->made = state->fails = 0;
	__atomic_store_n(&state->counts, true, __ATOMIC_RELEASE);
}

void
fail_calls_error(int error)
{
	state->error = error;
}

void
fail_errno(int error)
{
	errno = state->error != 0 ? state->error : error;
}

uint32_t
fail_calls_end(void)
{
	__atomic_store_n(&state->counts, false, __ATOMIC_RELEASE);
	return (state->fails);
}

uint32_t
fail_calls_made(void)
{
	return (state->made);
}

const char *
fail_calls_name(void)
{
	return (state->failed);
}

void
fail_calls_spare(bool spare)
{
	spared = spare;
}

int64_t
fail_allocs(void)
{
	return (__atomic_load_n(&state->held.fhl_allocs, __ATOMIC_RELAXED));
}

struct fail_held
fail_held(void)
{
	struct fail_held held = state->held;
	struct dirent *e;
	DIR *dir = opendir("/dev/fd");

	if (dir == NULL)
		abort();
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		held.fhl_fds++;
		if ((__real_fcntl(atoi(e->d_name), F_GETFD) & FD_CLOEXEC) == 0)
			held.fhl_inherited++;
	}
	closedir(dir);
	return (held);
}

static void
hold(int64_t *what, int64_t n)
{
	if (state != NULL && n != 0)
		__atomic_add_fetch(what, n, __ATOMIC_RELAXED);
}

/* A function in whose place a test may have another one. */
#define	CALL(type, name, params)					\
type	__real_##name params;						\
type	__wrap_##name params;						\
									\
type __attribute__((__weak__))						\
__wrap_##name params

/*
 * A function, its arguments, and what it returns and leaves in errno if it
 * fails.
 */
#define	FAIL(type, name, params, args, error, result)			\
CALL(type, name, params)						\
{									\
	if (FAIL_CALL(#name)) {						\
		fail_errno(error);					\
		return (result);					\
	}								\
	return (__real_##name args);					\
}

/* The same for a function that returns memory. */
#define	FAIL_ALLOC(type, name, params, args)				\
CALL(type, name, params)						\
{									\
	if (FAIL_CALL(#name)) {						\
		errno = ENOMEM;						\
		return (NULL);						\
	}								\
	hold(&state->held.fhl_allocs, 1);				\
	return (__real_##name args);					\
}

FAIL_ALLOC(void *, malloc, (size_t size), (size))
FAIL_ALLOC(void *, calloc, (size_t n, size_t size), (n, size))
FAIL_ALLOC(void *, aligned_alloc, (size_t align, size_t size), (align, size))
FAIL_ALLOC(char *, strdup, (const char *s), (s))
FAIL_ALLOC(char *, strndup, (const char *s, size_t n), (s, n))

CALL(void *, reallocarray, (void *p, size_t n, size_t size))
{
	void *new = NULL;

	if (FAIL_CALL("reallocarray"))
		errno = ENOMEM;
	else
		new = __real_reallocarray(p, n, size);
	hold(&state->held.fhl_allocs, p == NULL && new != NULL);
	return (new);
}

CALL(void, free, (void *p))
{
	hold(&state->held.fhl_allocs, -(p != NULL));
	__real_free(p);
}

/* What the library allocates, the program frees. */
CALL(ssize_t, getline, (char **line, size_t *size, FILE *f))
{
	const bool had = *line != NULL;
	const ssize_t n = __real_getline(line, size, f);

	hold(&state->held.fhl_allocs, !had && *line != NULL);
	return (n);
}

CALL(void *, mmap, (void *p, size_t len, int prot, int flags, int fd,
    off_t at))
{
	void *map;

	if (FAIL_CALL("mmap")) {
		errno = ENOMEM;
		return (MAP_FAILED);
	}
	fail_map_size = len;
	fail_map_flags = flags;
	map = __real_mmap(p, len, prot, flags, fd, at);
	if (map != MAP_FAILED && (flags & MAP_FIXED) == 0)
		hold(&state->held.fhl_mapped, len);
	return (map);
}

CALL(int, munmap, (void *p, size_t len))
{
	hold(&state->held.fhl_mapped, -(int64_t)len);
	return (__real_munmap(p, len));
}

CALL(int, pthread_mutex_init, (pthread_mutex_t *m,
    const pthread_mutexattr_t *attr))
{
	if (FAIL_CALL("pthread_mutex_init"))
		return (EAGAIN);
	hold(&state->held.fhl_mutexes, 1);
	return (__real_pthread_mutex_init(m, attr));
}

CALL(int, pthread_mutex_destroy, (pthread_mutex_t *m))
{
	hold(&state->held.fhl_mutexes, -1);
	return (__real_pthread_mutex_destroy(m));
}

CALL(int, pthread_mutex_lock, (pthread_mutex_t *m))
{
	hold(&state->held.fhl_locks, 1);
	return (__real_pthread_mutex_lock(m));
}

CALL(int, pthread_mutex_unlock, (pthread_mutex_t *m))
{
	hold(&state->held.fhl_locks, -1);
	return (__real_pthread_mutex_unlock(m));
}

FAIL(int, eventfd, (unsigned int n, int flags), (n, flags), EMFILE, -1)
FAIL(int, memfd_create, (const char *name, unsigned int flags), (name, flags),
    EMFILE, -1)
FAIL(int, timerfd_create, (int clock, int flags), (clock, flags), EMFILE, -1)
FAIL(int, timerfd_settime, (int fd, int flags, const struct itimerspec *new,
    struct itimerspec *old), (fd, flags, new, old), EINVAL, -1)
FAIL(int, poll, (struct pollfd *fds, nfds_t n, int ms), (fds, n, ms), EINTR,
    -1)
FAIL(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *ts,
    const sigset_t *set), (fds, n, ts, set), EINTR, -1)
FAIL(int, pipe2, (int fds[2], int flags), (fds, flags), EMFILE, -1)
FAIL(int, dup2, (int from, int to), (from, to), EBUSY, -1)

/* A process that closes the log has a sandbox in which it may not write. */
CALL(int, close_range, (unsigned int first, unsigned int last, int flags))
{
	if (FAIL_CALL("close_range")) {
		fail_errno(EINVAL);
		return (-1);
	}
	if (log_fd != -1 && (unsigned int)log_fd >= first &&
	    (unsigned int)log_fd <= last)
		log_fd = -1;
	return (__real_close_range(first, last, flags));
}

FAIL(pid_t, fork, (void), (), EAGAIN, -1)

FAIL(int, pthread_create, (pthread_t *t, const pthread_attr_t *attr,
    void *(*main)(void *), void *arg), (t, attr, main, arg), 0, EAGAIN)
FAIL(int, pthread_key_create, (pthread_key_t *key, void (*done)(void *)),
    (key, done), 0, EAGAIN)
FAIL(int, sem_init, (sem_t *sem, int shared, unsigned int n),
    (sem, shared, n), ENOSPC, -1)
FAIL(int, sem_wait, (sem_t *sem), (sem), EINTR, -1)

FAIL(int, socket, (int domain, int type, int proto), (domain, type, proto),
    EMFILE, -1)
FAIL(int, socketpair, (int domain, int type, int proto, int fds[2]),
    (domain, type, proto, fds), EMFILE, -1)
FAIL(int, bind, (int s, const struct sockaddr *sa, socklen_t len),
    (s, sa, len), ENOSPC, -1)
FAIL(int, connect, (int s, const struct sockaddr *sa, socklen_t len),
    (s, sa, len), EAGAIN, -1)
FAIL(int, listen, (int s, int n), (s, n), EADDRINUSE, -1)
FAIL(int, accept4, (int s, struct sockaddr *sa, socklen_t *len, int flags),
    (s, sa, len, flags), EMFILE, -1)
FAIL(int, getsockopt, (int s, int level, int name, void *p, socklen_t *len),
    (s, level, name, p, len), ENOBUFS, -1)
FAIL(int, setsockopt, (int s, int level, int name, const void *p,
    socklen_t len), (s, level, name, p, len), ENOBUFS, -1)
FAIL(ssize_t, recv, (int s, void *p, size_t len, int flags),
    (s, p, len, flags), EINTR, -1)
FAIL(ssize_t, recvfrom, (int s, void *p, size_t len, int flags,
    struct sockaddr *sa, socklen_t *salen), (s, p, len, flags, sa, salen),
    ENOBUFS, -1)
FAIL(ssize_t, recvmsg, (int s, struct msghdr *m, int flags), (s, m, flags),
    ENOMEM, -1)
FAIL(ssize_t, send, (int s, const void *buf, size_t len, int flags),
    (s, buf, len, flags), ENOBUFS, -1)
FAIL(ssize_t, sendto, (int s, const void *p, size_t len, int flags,
    const struct sockaddr *sa, socklen_t salen), (s, p, len, flags, sa, salen),
    ENOBUFS, -1)
FAIL(ssize_t, sendmsg, (int s, const struct msghdr *m, int flags),
    (s, m, flags), ENOBUFS, -1)

FAIL(ssize_t, read, (int fd, void *buf, size_t len), (fd, buf, len), EINTR,
    -1)
FAIL(ssize_t, write, (int fd, const void *buf, size_t len), (fd, buf, len),
    EAGAIN, -1)
FAIL(ssize_t, pread, (int fd, void *buf, size_t len, off_t at),
    (fd, buf, len, at), EIO, -1)
FAIL(ssize_t, pwrite, (int fd, const void *buf, size_t len, off_t at),
    (fd, buf, len, at), ENOSPC, -1)
FAIL(int, ftruncate, (int fd, off_t size), (fd, size), ENOSPC, -1)
FAIL(int, flock, (int fd, int op), (fd, op), ENOLCK, -1)
FAIL(int, fstat, (int fd, struct stat *st), (fd, st), EIO, -1)
FAIL(int, lstat, (const char *path, struct stat *st), (path, st), EACCES, -1)
FAIL(int, unlink, (const char *path), (path), EACCES, -1)
FAIL(int, fchmodat, (int dir, const char *path, mode_t mode, int flags),
    (dir, path, mode, flags), EPERM, -1)
FAIL(int, fchownat, (int dir, const char *path, uid_t uid, gid_t gid,
    int flags), (dir, path, uid, gid, flags), EPERM, -1)
FAIL(int, getentropy, (void *buf, size_t len), (buf, len), EIO, -1)

#ifdef __linux__
FAIL(int, signalfd, (int fd, const sigset_t *set, int flags),
    (fd, set, flags), EMFILE, -1)
FAIL(int, epoll_create1, (int flags), (flags), EMFILE, -1)
FAIL(int, epoll_ctl, (int ep, int op, int fd, struct epoll_event *ev),
    (ep, op, fd, ev), ENOSPC, -1)
FAIL(int, epoll_wait, (int ep, struct epoll_event *ev, int n, int ms),
    (ep, ev, n, ms), EINTR, -1)
/* If the counter is full, the descriptor is readable, too. */
CALL(int, eventfd_write, (int fd, eventfd_t n))
{
	const int r = __real_eventfd_write(fd, n);

	if (!FAIL_CALL("eventfd_write"))
		return (r);
	errno = EAGAIN;
	return (-1);
}

FAIL(int, eventfd_read, (int fd, eventfd_t *n), (fd, n), EAGAIN, -1)
FAIL(int, fstatfs, (int fd, struct statfs *st), (fd, st), EIO, -1)
FAIL(int, getrlimit, (__rlimit_resource_t what, struct rlimit *rl),
    (what, rl), EINVAL, -1)
FAIL(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *rl),
    (what, rl), EPERM, -1)
#else
FAIL(int, getrlimit, (int what, struct rlimit *rl), (what, rl), EINVAL, -1)
FAIL(int, setrlimit, (int what, const struct rlimit *rl), (what, rl), EPERM,
    -1)
#endif

/*
 * A function with a variable number of arguments.  As the C library's, it reads
 * `n' of them, whatever the caller passes.
 */
#define	FAIL_OPTIONAL(type, name, params, error, n, last, ...)		\
type	__real_##name params;						\
type	__wrap_##name params;						\
									\
type __attribute__((__weak__, __no_sanitize__("address")))		\
__wrap_##name params							\
{									\
	va_list ap;							\
	long arg[n];							\
	unsigned int i;							\
									\
	va_start(ap, last);						\
	for (i = 0; i < (n); i++)					\
		arg[i] = va_arg(ap, long);				\
	va_end(ap);							\
	if (FAIL_CALL(#name)) {						\
		fail_errno(error);					\
		return (-1);						\
	}								\
	return (__real_##name(__VA_ARGS__));				\
}

FAIL_OPTIONAL(int, open, (const char *path, int flags, ...), ENFILE, 1, flags,
    path, flags, arg[0])
FAIL_OPTIONAL(int, fcntl, (int fd, int cmd, ...), EMFILE, 1, cmd, fd, cmd,
    arg[0])
FAIL_OPTIONAL(int, ioctl, (int fd, unsigned long request, ...), EIO, 1,
    request, fd, request, arg[0])
#ifdef __linux__
FAIL_OPTIONAL(int, prctl, (int option, ...), EPERM, 4, option, option, arg[0],
    arg[1], arg[2], arg[3])
FAIL_OPTIONAL(long, syscall, (long number, ...), EIO, 6, number, number,
    arg[0], arg[1], arg[2], arg[3], arg[4], arg[5])
#endif
