/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * For tests of run_desc.c and run_request.c: stubs of the functions that they
 * call.  Each records its arguments, and fails if the test has set an error for
 * it.  Needs <atf-c.h>.
 */

#ifndef _RUN_DESC_CALLS_H_
#define	_RUN_DESC_CALLS_H_

#include <sys/param.h>
#include <sys/ioctl.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "netmap_run.h"
#include "run_said.h"

/* Every call leaves this errno, if it does not fail. */
#define	OTHER	EXDEV

/* What is called next fails with this. */
struct failure {
	int	socket, copy, join, call, port_open, lockw, calloc;
};
static struct failure fail;

static int
fails(int *error, int r)
{
	errno = *error != 0 ? *error : OTHER;
	return (*error != 0 ? -1 : r);
}

/* The C library's. */

static int	fds_next = 5;		/* of socket() and copies */
static int	getfd;
static unsigned int interrupted;	/* F_SETLKW, so many times */

static int
the_fcntl(int fd, int cmd, ...)
{
	const struct flock *lock;
	va_list ap;
	void *arg;

	if (cmd == F_GETFD) {
		say(" getfd(%d)", fd);
		return (getfd);
	}
	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	switch (cmd) {
	case F_DUPFD_CLOEXEC:
		say(" copy(%d,%p)", fd, arg);
		return (fails(&fail.copy, fds_next + 1));
	case F_SETFD:
		say(" setfd(%d,%p)", fd, arg);
		return (fails(&(int){ 0 }, 0));
	case F_SETLKW:
		lock = arg;
		ATF_CHECK_EQ(SEEK_SET, lock->l_whence);
		ATF_CHECK_EQ(0, lock->l_start);
		ATF_CHECK_EQ(0, lock->l_len);
		say(" %s(%d)", lock->l_type == F_WRLCK ? "wrlck" :
		    lock->l_type == F_UNLCK ? "unlck" : "?", fd);
		if (interrupted > 0) {
			interrupted--;
			errno = EINTR;
			return (-1);
		}
		return (fails(&fail.lockw, 0));
	default:
		say(" fcntl(%d,%d,%p)", fd, cmd, arg);
		return (0);
	}
}

static int
the_close(int fd)
{
	say(" close(%d)", fd);
	errno = OTHER;
	return (0);
}

static int
the_dup3(int from, int to, int flags)
{
	say(" dup3(%d,%d,%#x)", from, to, flags);
	errno = OTHER;
	return (to);
}

const struct run_calls *
run_calls(void)
{
	static const struct run_calls calls = { .fcntl = the_fcntl,
	    .close = the_close, .dup3 = the_dup3 };

	return (&calls);
}

static pid_t	pid = 4000;

pid_t	__wrap_getpid(void);

pid_t
__wrap_getpid(void)
{
	return (pid);
}

static const char *debug;		/* of the environment */

char	*__wrap_secure_getenv(const char *);

char *
__wrap_secure_getenv(const char *name)
{
	ATF_CHECK_STREQ("NETMAP_RUN_DEBUG", name);
	errno = OTHER;
	return ((char *)(uintptr_t)debug);
}

static int	blocks;

void	*__real_calloc(size_t, size_t);
void	*__wrap_calloc(size_t, size_t);

void *
__wrap_calloc(size_t n, size_t size)
{
	if (fails(&fail.calloc, 0) == -1)
		return (NULL);
	ATF_CHECK_EQ(sizeof(struct run_desc), n * size);
	blocks++;
	return (__real_calloc(n, size));
}

/* Locks, of which the table's has no name. */
static struct run_port port;
static struct run_desc *that;

static const char *
lock_name(const pthread_mutex_t *m)
{
	return (that != NULL && m == &that->rd_lock ? "rd" :
	    m == &port.rp_lock ? "rp" : "table");
}

int	__real_pthread_mutex_init(pthread_mutex_t *,
	    const pthread_mutexattr_t *);
int	__wrap_pthread_mutex_init(pthread_mutex_t *,
	    const pthread_mutexattr_t *);
int	__real_pthread_mutex_lock(pthread_mutex_t *);
int	__wrap_pthread_mutex_lock(pthread_mutex_t *);
int	__real_pthread_mutex_unlock(pthread_mutex_t *);
int	__wrap_pthread_mutex_unlock(pthread_mutex_t *);

int
__wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	say(" init");
	return (__real_pthread_mutex_init(m, attr));
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	say(" lock(%s)", lock_name(m));
	return (__real_pthread_mutex_lock(m));
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	say(" unlock(%s)", lock_name(m));
	return (__real_pthread_mutex_unlock(m));
}

static void	(*at_fork[3])(void);

int	__wrap_pthread_atfork(void (*)(void), void (*)(void), void (*)(void));

int
__wrap_pthread_atfork(void (*before)(void), void (*parent)(void),
    void (*child)(void))
{
	at_fork[0] = before;
	at_fork[1] = parent;
	at_fork[2] = child;
	return (0);
}

/* valed's. */

int
vale_client_socket(void)
{
	say(" socket");
	return (fails(&fail.socket, fds_next));
}

const char *
vale_find_path(void)
{
	return ("/path");
}

bool
vale_find_error(int error, char *why, size_t size)
{
	if (error == ECONNREFUSED)
		snprintf(why, size, "nobody at /path");
	return (error == ECONNREFUSED);
}

int
vale_client_join(int fd, const char *path)
{
	say(" join(%d,%s)", fd, path);
	return (fails(&fail.join, 0));
}

static const char *why = "";

int
vale_client_call(int fd, struct vale_client_call *call)
{
	say(" call(%d,%s,%u,%u,%zu,%zu)", fd, call->hdr->nr_name,
	    call->hdr->nr_reqtype, call->hdr->nr_version, call->size,
	    call->reply_max);
	ATF_CHECK(call->body == call->reply);
	ATF_CHECK_EQ(0, call->nfds);
	strcpy(call->hdr->nr_name, "answer");
	snprintf(call->why, sizeof(call->why), "%s", why);
	return (fails(&fail.call, 0));
}

static bool	alive;

bool
vale_client_alive(int fd)
{
	say(" alive(%d)", fd);
	errno = OTHER;
	return (alive);
}

/* A sync, which sets the ring's tail. */
static int	sync_error[3];
static uint32_t	sync_tail[3];

static int
ring_sync(struct netmap_ring *ring, unsigned int i)
{
	ring->tail = sync_tail[i];
	return (fails(&sync_error[i], 0));
}

int
vale_client_txsync(struct vale_client_port *cp, unsigned int i)
{
	say(" T%u", i);
	return (ring_sync(cp->cp_ring[i].vcr_txring, i));
}

int
vale_client_rxsync(struct vale_client_port *cp, unsigned int i)
{
	say(" R%u", i);
	return (ring_sync(cp->cp_ring[i].vcr_rxring, i));
}

/* The library's. */

int
run_port_open(struct run_desc *rd, const char *name,
    struct nmreq_register *reg, char *text)
{
	ATF_CHECK(rd == that);
	ATF_CHECK_STREQ("", text);
	say(" port_open(%s,%u)", name, reg->nr_mode);
	strcpy(text, why);
	rd->rd_port = &port;
	return (fails(&fail.port_open, 0));
}

void
run_port_close(struct run_desc *rd)
{
	ATF_CHECK(rd->rd_port == &port);
	say(" port_close");
	errno = OTHER;
}

void
run_ports_lock(void)
{
	say(" ports_lock");
}

void
run_ports_unlock(void)
{
	say(" ports_unlock");
}

void *
run_port_mmap(const struct run_port *rp, void *addr, size_t len, int prot,
    int flags, off_t offset)
{
	ATF_CHECK(rp == &port);
	say(" port_mmap(%p,%zu,%d,%d,%jd)", addr, len, prot, flags,
	    (intmax_t)offset);
	return ((void *)0x77000);
}

int
run_legacy(struct run_desc *rd, unsigned long request, struct nmreq *nmr)
{
	ATF_CHECK(rd == that);
	say(" legacy(%#lx,%p)", request, (void *)nmr);
	return (fails(&(int){ 0 }, 8));
}

int
run_options_refuse(const struct nmreq_header *hdr)
{
	return (run_fail((int)hdr->nr_options));
}

static bool	epoll_used;
static unsigned int epoll_closes;
static int	epoll_last;

bool
run_epoll_used(void)
{
	return (epoll_used);
}

void
run_epoll_closed(int fd)
{
	epoll_closes++;
	epoll_last = fd;
	errno = OTHER;
}

/* Forget what was said. */
static void
quiet(void)
{
	said_text[0] = '\0';
}

/* Open one: descriptor 5, of which 6 is the copy. */
static int
opened(void)
{
	int fd = run_open(0);

	ATF_REQUIRE(fd != -1);
	that = run_find(fd);
	ATF_REQUIRE(that != NULL);
	quiet();
	return (fd);
}

#define	FAILS(error, call) do {						\
	errno = 0;							\
	ATF_CHECK_EQ(-1, call);						\
	ATF_CHECK_EQ_MSG(error, errno, "%d", errno);			\
} while (0)

/* What is written to the standard error output by f(). */
static const char *
written(void (*f)(void))
{
	static char line[256];
	int copy = dup(2), file;
	ssize_t n;

	file = open("stderr", O_RDWR | O_CREAT | O_TRUNC, 0600);
	ATF_REQUIRE(file != -1 && copy != -1);
	ATF_REQUIRE_EQ(2, dup2(file, 2));
	f();
	fflush(stderr);
	ATF_REQUIRE_EQ(2, dup2(copy, 2));
	close(copy);
	n = pread(file, line, sizeof(line) - 1, 0);
	ATF_REQUIRE(n >= 0);
	close(file);
	line[n] = '\0';
	return (line);
}

#endif /* !_RUN_DESC_CALLS_H_ */
