/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/systm.h>

#include <string.h>

#include <atf-c.h>

#include "send_fds.h"

void
send_fds(int fd, const void *buf, size_t len, const int *fds,
    unsigned int nfds)
{
	struct iovec iov = { __DECONST(void *, buf), len };
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(SEND_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (nfds > 0) {
		ATF_REQUIRE(nfds <= SEND_FDS_MAX);
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	ATF_REQUIRE_EQ((ssize_t)len, sendmsg(fd, &msg, MSG_NOSIGNAL));
}
