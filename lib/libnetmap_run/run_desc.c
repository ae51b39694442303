/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Descriptors of /dev/netmap: the table, and who has which.  netmap_run.h.
 *
 * fork(2): the child has the same port and memory.  As with netmap, the two
 * must not use one ring at the same time.  The port is closed when both have
 * closed it.  Calls of other threads are not in progress in the child, so their
 * references and locks go.  If a handler of a signal forks in the midst of a
 * call, the call goes on in the child, and they stay.  A child of vfork(2)
 * shares the table, and leaves it alone.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "netmap_run.h"

_Atomic(struct run_desc *) run_fds[RUN_FDS];
atomic_uint run_count;
atomic_bool run_own[RUN_FDS];
_Thread_local unsigned int run_held;

static struct run_desc *descs;	/* all, also unused ones; the table's lock */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t table_pid;		/* the process that it is of */

void
run_lock(void)
{
	pthread_mutex_lock(&table_lock);
}

void
run_unlock(void)
{
	pthread_mutex_unlock(&table_lock);
}

static void
fork_before(void)
{
	run_ports_lock();
	run_lock();
}

static void
fork_after(void)
{
	run_unlock();
	run_ports_unlock();
}

/* Leave the references that the table has.  The table's lock. */
static void
table_recount(void)
{
	struct run_desc *rd;
	int fd;

	for (rd = descs; rd != NULL; rd = rd->rd_next)
		atomic_store(&rd->rd_refs, 0);
	for (fd = 0; fd < RUN_FDS; fd++) {
		rd = run_find(fd);
		if (rd != NULL)
			atomic_fetch_add(&rd->rd_refs, 1);
	}
}

/* Release what other threads of the parent had: their requests. */
static void
requests_leave(void)
{
	struct run_desc *rd;

	for (rd = descs; rd != NULL; rd = rd->rd_next)
		pthread_mutex_init(&rd->rd_lock, NULL);
	run_ports_leave();
	run_request_leave();
}

static void
forked(void)
{
	struct run_desc *rd;

	table_pid = getpid();
	if (run_held == 0) {
		table_recount();
		requests_leave();
	}
	fork_after();
	/* There is no other thread yet. */
	for (rd = descs; rd != NULL; rd = rd->rd_next)
		if (rd->rd_used && rd->rd_fd != -1 &&
		    atomic_load(&rd->rd_refs) == 0)
			run_desc_free(rd);
}

static void
table_init(void)
{
	table_pid = getpid();
	pthread_atfork(fork_before, fork_after, forked);
}

/* Set the descriptor of a number.  The table's lock. */
static void
table_set(int fd, struct run_desc *rd)
{
	atomic_fetch_add(&rd->rd_refs, 1);
	atomic_fetch_add(&run_count, 1);
	atomic_store_explicit(&run_fds[fd], rd, memory_order_release);
}

/* Find an unused descriptor, or return NULL.  The table's lock. */
static struct run_desc *
desc_alloc(void)
{
	struct run_desc *rd;

	for (rd = descs; rd != NULL; rd = rd->rd_next)
		if (!rd->rd_used)
			return (rd);
	rd = calloc(1, sizeof(*rd));
	if (rd == NULL)
		return (NULL);
	pthread_mutex_init(&rd->rd_lock, NULL);
	rd->rd_next = descs;
	descs = rd;
	return (rd);
}

struct run_desc *
run_desc_new(int copy)
{
	struct run_desc *rd;

	run_lock();
	rd = desc_alloc();
	if (rd != NULL) {
		rd->rd_used = true;
		rd->rd_fd = copy;
		run_own_set(copy, true);
		rd->rd_connected = false;
		atomic_store(&rd->rd_registered, false);
		rd->rd_port = NULL;
		/* Only now can anybody else have it. */
		atomic_store(&rd->rd_refs, 1);
		run_held++;
	}
	run_unlock();
	return (rd);
}

void
run_desc_add(struct run_desc *rd, int fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, table_init);
	run_lock();
	table_set(fd, rd);
	run_unlock();
}

/* Return a descriptor to be used as one of /dev/netmap: a copy of ours. */
static int
open_socket(int fd, int copy)
{
	struct run_desc *rd;

	if (copy == -1)
		return (-1);
	if (fd >= RUN_FDS)
		return (run_fail(EMFILE));
	rd = run_desc_new(copy);
	if (rd == NULL)
		return (-1);
	run_desc_add(rd, fd);
	run_put(rd);
	return (fd);
}

int
run_open(int flags)
{
	int copy, error, fd = vale_client_socket();

	if (fd == -1)
		return (-1);
	copy = run_calls()->fcntl(fd, F_DUPFD_CLOEXEC, (void *)0);
	if ((flags & O_CLOEXEC) == 0)
		run_calls()->fcntl(fd, F_SETFD, (void *)0);
	if (open_socket(fd, copy) != -1)
		return (fd);
	error = errno;
	if (copy != -1)
		run_calls()->close(copy);
	run_calls()->close(fd);
	errno = error;
	return (-1);
}

int
run_copied(struct run_desc *rd, int copy)
{
	if (copy >= RUN_FDS) {
		run_calls()->close(copy);
		return (run_fail(EMFILE));
	}
	if (getpid() != table_pid)
		return (copy);
	run_lock();
	table_set(copy, rd);
	run_unlock();
	return (copy);
}

void
run_desc_free(struct run_desc *rd)
{
	int error = errno, fd;

	/* A child of fork(2) does not do it once more. */
	run_lock();
	fd = rd->rd_fd;
	rd->rd_fd = -1;
	run_unlock();
	if (atomic_load(&rd->rd_registered))
		run_port_close(rd);
	else {
		run_own_set(fd, false);
		run_calls()->close(fd);
	}
	run_lock();
	rd->rd_used = false;
	run_unlock();
	errno = error;
}

void
run_closed(int fd)
{
	struct run_desc *rd;
	int error = errno;

	if (run_find(fd) == NULL && !run_epoll_used())
		return;
	if (getpid() != table_pid)
		return;
	run_lock();
	run_epoll_closed(fd);
	rd = run_find(fd);
	if (rd != NULL) {
		atomic_store(&run_fds[fd], NULL);
		atomic_fetch_sub(&run_count, 1);
		/* The table's reference is this call's now. */
		run_held++;
	}
	run_unlock();
	if (rd != NULL)
		run_put(rd);
	errno = error;
}

void
run_closed_range(unsigned int first, unsigned int last)
{
	unsigned int fd;

	for (fd = first; run_any() && fd <= last && fd < RUN_FDS; fd++)
		run_closed(fd);
}
