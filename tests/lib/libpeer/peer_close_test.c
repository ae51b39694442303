/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Closing descriptors that clients passed: their kinds, and the thread that
 * closes those whose close(2) may block.  Such a close waits here until the
 * test lets it go on, or until a signal interrupts it.
 */

#include <sys/param.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "peer_watch.h"
#include "test.h"
#include "peer_close.h"
#include "wait_until.h"
#include "wrap.h"

static sem_t	go;
static uint32_t	entered, left, interrupted;	/* closes; atomic */
static uint32_t	signalled;		/* signals handled; atomic */
static uint32_t	dropped;		/* drop_all() calls */
static int	drop_error;
static uint32_t	waits;			/* closes wait; atomic */

WRAP(int, close, int fd)
{
	if (atomic_load_32(&waits) == 0)
		return (__real_close(fd));
	atomic_add_32(&entered, 1);
	if (sem_wait(&go) == -1)
		atomic_add_32(&interrupted, 1);
	atomic_add_32(&left, 1);
	return (__real_close(fd));
}

int
drop_all(void)
{
	dropped++;
	errno = drop_error;
	return (drop_error == 0 ? 0 : -1);
}

static bool	no_statx, no_fstat;/* these fail */
static int	statxs, fstats;		/* calls */
static const char *statx_path = "";
static int	statx_flags, statx_mask;

WRAP(long, syscall, long number, ...)
{
	va_list ap;
	long a[5];
	int i, n;

	n = number == SYS_statx ? 5 : 2;
	va_start(ap, number);
	for (i = 0; i < n; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_statx) {
		statxs++;
		statx_path = (const char *)a[1];
		statx_flags = (int)a[2];
		statx_mask = (int)a[3];
		if (no_statx)
			return (-1);
		return (__real_syscall(number, a[0], a[1], a[2], a[3], a[4]));
	}
	ATF_REQUIRE_EQ(SYS_fstat, number);
	fstats++;
	if (no_fstat) {
		memset((void *)a[1], 0, sizeof(struct stat));
		return (-1);
	}
	return (__real_syscall(number, a[0], a[1]));
}

static bool
is_open(int fd)
{
	return (fcntl(fd, F_GETFD) != -1);
}

static int
a_socket(void)
{
	int fd;

	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ATF_REQUIRE(fd != -1);
	return (fd);
}

static void
check_kinds(bool types)
{
	char name[] = "peer_close_test.XXXXXX";
	const enum peer_fd_kind anon = types ? PEER_FD_ANON : PEER_FD_OTHER;
	int p[2];

	ATF_CHECK_EQ(PEER_FD_MEMORY, peer_fd_kind(memfd_create("m", 0)));
	ATF_CHECK_EQ(PEER_FD_MEMORY, peer_fd_kind(memfd_create("m",
	    MFD_ALLOW_SEALING)));
	ATF_CHECK_EQ(anon, peer_fd_kind(eventfd(0, 0)));
	ATF_CHECK_EQ(anon, peer_fd_kind(epoll_create1(0)));
	ATF_CHECK_EQ(PEER_FD_OTHER, peer_fd_kind(a_socket()));
	ATF_REQUIRE_EQ(0, pipe(p));
	ATF_CHECK_EQ(PEER_FD_OTHER, peer_fd_kind(p[0]));
	ATF_CHECK_EQ(PEER_FD_OTHER, peer_fd_kind(p[1]));
	ATF_CHECK_EQ(PEER_FD_OTHER, peer_fd_kind(mkstemp(name)));
	ATF_CHECK_EQ(PEER_FD_OTHER, peer_fd_kind(open("/dev/null", O_RDWR)));
	ATF_CHECK_EQ(PEER_FD_OTHER, peer_fd_kind(open("/", O_RDONLY)));
	ATF_CHECK_EQ(PEER_FD_OTHER, peer_fd_kind(open("/", O_PATH)));
	ATF_CHECK_EQ(PEER_FD_OTHER, peer_fd_kind(-1));
}

TEST(kinds, "Files with seals are memory, others without a type are anonymous")
{
	check_kinds(true);
	/* Without a question to the file system's server. */
	ATF_CHECK_EQ(1, fstats);	/* of -1 */
	ATF_CHECK(statxs > 0 && statx_path == NULL);
	ATF_CHECK_EQ(AT_EMPTY_PATH | AT_STATX_DONT_SYNC, statx_flags);
	ATF_CHECK_EQ(STATX_TYPE, statx_mask);
	/* A kernel before Linux 6.11. */
	no_statx = true;
	check_kinds(true);
	ATF_CHECK(fstats > 0);
	/* What cannot be found out may be anything. */
	no_fstat = true;
	check_kinds(false);
}

static void
on_signal(int sig __attribute__((__unused__)))
{
	atomic_add_32(&signalled, 1);
}

static void
start(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	ATF_REQUIRE_EQ(0, sigaction(PEER_SIGNAL, &sa, NULL));
	ATF_REQUIRE_EQ(0, sem_init(&go, 0, 0));
	ATF_REQUIRE_EQ(0, peer_close_start(drop_all));
	ATF_CHECK_EQ(1, dropped);
	atomic_store_32(&waits, 1);
}

TEST(thread, "A close that blocks does not hold up the caller")
{
	int fd, i;

	start();
	for (i = 0; i < 3; i++) {
		fd = a_socket();
		ATF_CHECK(peer_close(fd));
		wait_until(atomic_load_32(&entered) == (uint32_t)i + 1,
		    "%u", atomic_load_32(&entered));
		ATF_CHECK(is_open(fd));
		/* Nobody interrupts it but peer_close_watch(). */
		ATF_CHECK_EQ(0, atomic_load_32(&interrupted));
		ATF_REQUIRE_EQ(0, sem_post(&go));
		wait_until(atomic_load_32(&left) == (uint32_t)i + 1,
		    "%u", atomic_load_32(&left));
		wait_until(!is_open(fd), "%d", fd);
	}
}

TEST(limit, "PEER_CLOSE_MAX descriptors wait at most; the next is the caller's")
{
	int fd, i, more;

	start();
	for (i = 0; i < PEER_CLOSE_MAX; i++)
		ATF_REQUIRE_MSG(peer_close(a_socket()), "%d", i);
	more = a_socket();
	for (i = 0; i < 3; i++) {
		ATF_CHECK(!peer_close(more));
		ATF_CHECK(is_open(more));
	}
	/* One is closed: there is space for one. */
	ATF_REQUIRE_EQ(0, sem_post(&go));
	wait_until(atomic_load_32(&entered) == 2, "%u",
	    atomic_load_32(&entered));
	ATF_CHECK(peer_close(more));
	fd = a_socket();
	ATF_CHECK(!peer_close(fd));
	for (i = 0; i < PEER_CLOSE_MAX; i++)
		ATF_REQUIRE_EQ(0, sem_post(&go));
	wait_until(atomic_load_32(&left) == PEER_CLOSE_MAX + 1, "%u",
	    atomic_load_32(&left));
	wait_until(!is_open(more), "%d", more);
	/* All are closed: there is space for all. */
	atomic_store_32(&waits, 0);
	for (i = 0; i < 3 * PEER_CLOSE_MAX; i++) {
		fd = i == 0 ? fd : a_socket();
		wait_until(peer_close(fd), "%d", i);
	}
	wait_until(!is_open(fd), "%d", fd);
}

TEST(watch, "A close that lasts for three checks is interrupted")
{
	uint32_t i;
	int fd;

	start();
	/* Nothing to interrupt. */
	for (i = 0; i < 4; i++)
		peer_close_watch();
	for (i = 0; i < 3; i++) {
		fd = a_socket();
		ATF_CHECK(peer_close(fd));
		wait_until(atomic_load_32(&entered) == i + 1, "%u",
		    atomic_load_32(&entered));
		/* The first check sees a new one, and does nothing. */
		peer_close_watch();
		ATF_REQUIRE_EQ(0, sem_post(&go));
		wait_until(!is_open(fd), "%d", fd);
		ATF_CHECK_EQ(0, atomic_load_32(&signalled));
	}
	for (i = 0; i < 3; i++) {
		fd = a_socket();
		ATF_CHECK(peer_close(fd));
		wait_until(atomic_load_32(&entered) == i + 4, "%u",
		    atomic_load_32(&entered));
		/* The signal may arrive before the thread waits. */
		wait_until((peer_close_watch(), !is_open(fd)), "%d", fd);
		ATF_CHECK_EQ(i + 1, atomic_load_32(&interrupted));
	}
}

TEST(privileges, "It does not start if its thread cannot drop privileges")
{
	drop_error = EPERM;
	ATF_CHECK_EQ(EPERM, peer_close_start(drop_all));
}

TEST_PROGRAM
