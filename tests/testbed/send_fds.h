/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _SEND_FDS_H_
#define	_SEND_FDS_H_

#include <sys/socket.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Descriptors that one call sends, at most. */
#define	SEND_FDS_MAX	64

/*
 * Send `len' bytes over a UNIX-domain socket in one sendmsg(2), with
 * descriptors, which stay open.  Returns as sendmsg(2).
 */
static inline ssize_t
send_fds(int s, const void *buf, size_t len, const int *fds, unsigned int nfds,
    int flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(SEND_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (nfds > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	return (sendmsg(s, &msg, MSG_NOSIGNAL | flags));
}

/* The same for a test case, which fails if not all of it is sent. */
#define	SEND_FDS(s, buf, len, fds, nfds)				\
	ATF_REQUIRE_EQ((ssize_t)(len), send_fds(s, buf, len, fds, nfds, 0))

#endif /* !_SEND_FDS_H_ */
