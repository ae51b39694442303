/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Events without waiting: each is there once, and a client cannot make one
 * block.
 */

#include <sys/param.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/systm.h>
#include <sys/timerfd.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <atf-c.h>

#include "open_fds.h"
#include "peer_signal.h"
#include "test.h"
#include "wrap.h"

static uint32_t		submits;	/* atomic */
static int		submit_error, setup_error;

WRAP(long, syscall, long number, ...)
{
	long a[3];
	va_list ap;
	int *error = number == SYS_io_setup ? &setup_error : &submit_error;
	unsigned int i;

	va_start(ap, number);
	for (i = 0; i < nitems(a); i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	atomic_add_32(&submits, number == SYS_io_submit);
	if (*error != 0) {
		errno = *error;
		return (-1);
	}
	return (__real_syscall(number, a[0], a[1], a[2]));
}

static int
event(void)
{
	const int fd = eventfd(0, EFD_NONBLOCK);

	ATF_REQUIRE(fd != -1);
	return (fd);
}

static uint64_t
fired(int fd)
{
	uint64_t n;

	return (read(fd, &n, sizeof(n)) == (ssize_t)sizeof(n) ? n : 0);
}

TEST(full, "A counter at its maximum, whose descriptor blocks, does not")
{
	const uint64_t most = UINT64_MAX - 1;
	const int fd = event();

	ATF_REQUIRE_EQ(0, peer_signal_start());
	ATF_REQUIRE_EQ(8, write(fd, &most, sizeof(most)));
	ATF_REQUIRE_EQ(0, fcntl(fd, F_SETFL, 0));
	ATF_CHECK_EQ(1, peer_signal(&fd, 1));
	ATF_CHECK_EQ(1, peer_signal(&fd, 1));
	ATF_CHECK_EQ(UINT64_MAX, fired(fd));
}

TEST(others, "One that is no eventfd ends the call, and those before it are "
    "signalled")
{
	const int a = event(), b = event();
	const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int pipes[2], *bad;
	unsigned int i;

	ATF_REQUIRE_EQ(0, peer_signal_start());
	ATF_REQUIRE_EQ(0, pipe(pipes));
	for (i = 0; i < 3; i++) {
		int fds[] = { a, a, -1, b };

		bad = &fds[2];
		*bad = i == 0 ? timer : i == 1 ? pipes[1] : 9999;
		ATF_CHECK_EQ(2, peer_signal(fds, nitems(fds)));
		ATF_CHECK_EQ(2, fired(a));
		ATF_CHECK_EQ(0, fired(b));
		ATF_CHECK_EQ(0, peer_signal(bad, 1));
	}
	ATF_CHECK_EQ(0, fired(timer));
}

TEST(fails, "Without asynchronous I/O nothing is signalled, and nothing stays "
    "open")
{
	const int fd = event();
	const unsigned int before = open_fds();

	ATF_CHECK_EQ(0, peer_signal(&fd, 1));
	setup_error = ENOSYS;
	ATF_CHECK_EQ(ENOSYS, peer_signal_start());
	ATF_CHECK_EQ(0, peer_signal_context());
	ATF_CHECK_EQ(before, open_fds());
	ATF_CHECK_EQ(0, peer_signal(&fd, 1));
	ATF_CHECK_EQ(0, submits);
	/* Later it fails now and then. */
	setup_error = 0;
	ATF_REQUIRE_EQ(0, peer_signal_start());
	submit_error = EAGAIN;
	ATF_CHECK_EQ(0, peer_signal(&fd, 1));
	ATF_CHECK_EQ(2, submits);
	ATF_CHECK_EQ(0, fired(fd));
	submit_error = 0;
	ATF_CHECK_EQ(1, peer_signal(&fd, 1));
	ATF_CHECK_EQ(1, fired(fd));
}

#define	THREADS	4
#define	TIMES	20000

static int	shared;

static void *
signals(void *arg)
{
	const int fds[] = { shared, *(int *)arg, shared };
	unsigned int i;

	for (i = 0; i < TIMES; i++)
		ATF_REQUIRE_EQ(nitems(fds), peer_signal(fds, nitems(fds)));
	return (NULL);
}

TEST(threads, "Several threads at once lose nothing")
{
	pthread_t thread[THREADS];
	int fd[THREADS];
	unsigned int i;

	ATF_REQUIRE_EQ(0, peer_signal_start());
	shared = event();
	for (i = 0; i < THREADS; i++) {
		fd[i] = event();
		ATF_REQUIRE_EQ(0, pthread_create(&thread[i], NULL, signals,
		    &fd[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		ATF_CHECK_EQ(TIMES, fired(fd[i]));
	}
	ATF_CHECK_EQ(2 * THREADS * TIMES, fired(shared));
}

TEST_PROGRAM
