/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The reserve of descriptors: peer_accept.h.
 *
 * It is copies of one eventfd.  A connection becomes one of them by dup3(2), so
 * that nobody else can take its descriptor between; that closes the connection,
 * which may take long (peer_close.h).  Between close(2) of one and accept(2),
 * another thread can: then the reserve is one short until peer_accept_watch().
 */

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "peer_accept.h"
#include "peer_close.h"

#define	RESERVE		8

static int	reserve_fd = -1;	/* the eventfd */
static int	reserve[RESERVE];
static unsigned int nreserve;
static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reserve_back;

/* Fill the reserve, with the lock. */
static void
reserve_fill(void)
{
	int fd;

	while (nreserve < RESERVE) {
		fd = fcntl(reserve_fd, F_DUPFD_CLOEXEC, 0);
		if (fd == -1)
			return;
		reserve[nreserve++] = fd;
	}
}

/*
 * Give the reserve the descriptor of a connection that was closed.  Any thread.
 */
static void
reserve_put(int fd)
{
	pthread_mutex_lock(&reserve_lock);
	if (nreserve < RESERVE) {
		reserve[nreserve++] = fd;
		fd = -1;
		pthread_cond_signal(&reserve_back);
	}
	pthread_mutex_unlock(&reserve_lock);
	if (fd != -1)
		close(fd);
}

int
peer_accept_start(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&reserve_back, &attr);
	pthread_condattr_destroy(&attr);
	reserve_fd = eventfd(0, EFD_CLOEXEC);
	if (reserve_fd == -1)
		return (errno);
	reserve_fill();
	return (nreserve == RESERVE ? 0 : errno);
}

int
peer_accept(int listen_fd, int flags, bool *reserved)
{
	int error, fd;

	*reserved = false;
	fd = accept4(listen_fd, NULL, NULL, flags);
	if (fd != -1 || errno != EMFILE)
		return (fd);
	pthread_mutex_lock(&reserve_lock);
	if (nreserve > 0) {
		close(reserve[--nreserve]);
		fd = accept4(listen_fd, NULL, NULL, flags);
		error = errno;
		*reserved = fd != -1;
		if (fd == -1)
			reserve_fill();
		errno = error;
	}
	pthread_mutex_unlock(&reserve_lock);
	return (fd);
}

void
peer_accept_end(int fd)
{
	peer_close_reuse(fd, reserve_fd, reserve_put);
}

bool
peer_accept_fails(int error)
{
	return (error != EAGAIN && error != EINTR && error != ECONNABORTED);
}

void
peer_accept_pause(int error)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_mutex_lock(&reserve_lock);
	/* The reserve may have come back since. */
	if (error != EMFILE || nreserve == 0)
		pthread_cond_timedwait(&reserve_back, &reserve_lock, &until);
	pthread_mutex_unlock(&reserve_lock);
}

void
peer_accept_watch(void)
{
	pthread_mutex_lock(&reserve_lock);
	reserve_fill();
	pthread_mutex_unlock(&reserve_lock);
}
