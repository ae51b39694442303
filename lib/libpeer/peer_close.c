/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The thread that closes descriptors; see peer_close.h.  It reads what to close
 * from a pipe.
 */

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include "peer_close.h"
#include "peer_fd.h"
#include "peer_watch.h"

/* What the pipe has. */
struct closing {
	int		 fd;
	int		 with;		/* of peer_close_reuse(), or -1 */
	void		(*reused)(int);
};

static pthread_t close_thread;
static sem_t	close_ready;		/* the thread has no capabilities */
static int	close_error;		/* or cannot drop them: an errno */
static int	close_pipe[2] = { -1, -1 };
static uint32_t	close_waiting;		/* descriptors; atomic */
static uint32_t	close_calls;		/* odd during a close; atomic */
static struct peer_watch close_watch;		/* of the main thread */

/* Return the type bits of a file's mode: 0 for an anonymous inode. */
static unsigned int
fd_type(int fd)
{
	struct statx stx;
	struct stat st;

	if (syscall(SYS_statx, fd, NULL, AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
	    STATX_TYPE, &stx) == 0)
		return (stx.stx_mode & S_IFMT);
	/* Before Linux 6.11 it needs a path, which the sandbox refuses. */
	return (peer_fstat(fd, &st) == 0 ? st.st_mode & S_IFMT : S_IFMT);
}

enum peer_fd_kind
peer_fd_kind(int fd)
{
	if (fcntl(fd, F_GET_SEALS) != -1)
		return (PEER_FD_MEMORY);
	return (fd_type(fd) == 0 ? PEER_FD_ANON : PEER_FD_OTHER);
}

/* Close it, in whatever time that takes. */
static void
close_now(const struct closing *cl)
{
	if (cl->with == -1) {
		close(cl->fd);
		return;
	}
	while (dup3(cl->with, cl->fd, O_CLOEXEC) == -1 && errno == EINTR)
		continue;
	cl->reused(cl->fd);
}

static void *
close_main(void *arg)
{
	int (**drop)(void) = arg;
	struct closing cl;

	prctl(PR_SET_NAME, "close");
	if ((*drop)() != 0)
		close_error = errno;
	sem_post(&close_ready);
	while (close_error == 0) {
		if (read(close_pipe[0], &cl, sizeof(cl)) != sizeof(cl))
			continue;	/* a signal */
		atomic_add_32(&close_calls, 1);
		close_now(&cl);
		atomic_add_32(&close_calls, 1);
		atomic_subtract_32(&close_waiting, 1);
	}
	return (NULL);
}

int
peer_close_start(int (*drop)(void))
{
	int error;

	if (pipe2(close_pipe, O_CLOEXEC) == -1 ||
	    sem_init(&close_ready, 0, 0) == -1)
		return (errno);
	error = pthread_create(&close_thread, NULL, close_main, &drop);
	if (error != 0)
		return (error);
	while (sem_wait(&close_ready) == -1)
		continue;
	return (close_error);
}

/* Have the thread close it.  False: it has too many, or was not started. */
static bool
close_post(const struct closing *cl)
{
	/* The pipe has space for more than PEER_CLOSE_MAX. */
	if (atomic_fetchadd_32(&close_waiting, 1) < PEER_CLOSE_MAX &&
	    write(close_pipe[1], cl, sizeof(*cl)) == (ssize_t)sizeof(*cl))
		return (true);
	atomic_subtract_32(&close_waiting, 1);
	return (false);
}

bool
peer_close(int fd)
{
	const struct closing cl = { .fd = fd, .with = -1 };

	if (close_pipe[1] == -1) {
		close(fd);
		return (true);
	}
	return (close_post(&cl));
}

void
peer_close_reuse(int fd, int with, void (*reused)(int))
{
	const struct closing cl = { fd, with, reused };

	if (!close_post(&cl))
		close_now(&cl);
}

void
peer_hang_up(int fd)
{
	char discarded[4096];
	ssize_t n;

	(void)shutdown(fd, SHUT_RDWR);
	do {
		n = recv(fd, discarded, sizeof(discarded), MSG_DONTWAIT);
	} while (n > 0 || (n == -1 && errno == EINTR));
}

void
peer_close_watch(void)
{
	if (peer_watch_check(&close_watch, atomic_load_32(&close_calls)))
		pthread_kill(close_thread, PEER_SIGNAL);
}
