/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Control messages: peer_fds.h. */

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peer_fds.h"

/* Linux 6.5; C libraries before 2.39 lack the name. */
#define	MSG_PIDFD	4

/* How long, and how often, a call waits for the user's limit, or memory. */
#define	PAUSE_NS	10000000
#define	TRIES		100

/* Return whether to make a call again after its error, and wait before. */
static bool
call_again(enum peer_fds_wait wait, unsigned int *tries)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	if (errno == EINTR)
		return (true);
	if ((errno != ENOMEM && errno != ENOBUFS && (errno != ETOOMANYREFS ||
	    wait == PEER_FDS_WAIT_NOT)) || (*tries)++ == TRIES)
		return (false);
	nanosleep(&pause, NULL);
	return (true);
}

ssize_t
peer_fds_send(int s, const void *p, size_t len, const int *fds, unsigned int n,
    enum peer_fds_wait wait)
{
	const int flags = MSG_NOSIGNAL |
	    (wait == PEER_FDS_WAIT ? 0 : MSG_DONTWAIT);
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(PEER_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { (void *)(uintptr_t)p, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	unsigned int tries = 0;
	struct cmsghdr *c;
	ssize_t sent;

	if (n > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		memset(&control, 0, msg.msg_controllen);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	do {
		sent = sendmsg(s, &msg, flags);
	} while (sent == -1 && call_again(wait, &tries));
	return (sent);
}

/* Call take(arg, fd) for each descriptor of a control message. */
static void
cmsg_each(struct cmsghdr *c, void (*take)(void *, int), void *arg)
{
	const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	size_t i;
	int fd;

	for (i = 0; i < n; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		take(arg, fd);
	}
}

static void
take_close(void *arg __unused, int fd)
{
	close(fd);
}

static void
take_append(void *arg, int fd)
{
	struct peer_fds *mf = arg;

	if (mf->mf_n < mf->mf_max) {
		mf->mf_fd[mf->mf_n++] = fd;
		return;
	}
	mf->mf_lost = true;
	if (mf->mf_drop != NULL)
		mf->mf_drop(mf->mf_arg, fd);
	else
		close(fd);
}

bool
peer_fds_take(struct msghdr *msg, struct peer_fds *mf)
{
	struct cmsghdr *c;

	mf->mf_lost = (msg->msg_flags & MSG_CTRUNC) != 0;
	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			cmsg_each(c, take_append, mf);
		else if (c->cmsg_type == MSG_PIDFD)
			cmsg_each(c, take_close, NULL);
	}
	return (!mf->mf_lost);
}

ssize_t
peer_fds_recv(int s, const struct iovec *iov, size_t niov, struct peer_fds *mf,
    int flags)
{
	union {
		struct cmsghdr	align;
		char		space[PEER_FDS_SPACE(PEER_FDS_MAX)];
	} control;
	unsigned int tries = 0;
	struct msghdr msg;
	ssize_t n;

	do {
		msg = (struct msghdr){ .msg_iov = (struct iovec *)(uintptr_t)
		    iov, .msg_iovlen = niov, .msg_control = &control,
		    .msg_controllen = PEER_FDS_SPACE(mf->mf_max) };
		n = recvmsg(s, &msg, MSG_CMSG_CLOEXEC | flags);
	} while (n == -1 && call_again(PEER_FDS_WAIT_NOT, &tries));
	if (n != -1) {
		(void)peer_fds_take(&msg, mf);
		mf->mf_cut = (msg.msg_flags & MSG_TRUNC) != 0;
	}
	return (n);
}
