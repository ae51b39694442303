/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/systm.h>

#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "send_fds.h"
#include "wire_peer.h"

void
wire_pair(int fd[2])
{
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    fd));
}

void
wire_reply(int fd, int error, const char *why, const void *body, size_t size,
    const int *fds, unsigned int nfds)
{
	struct vale_wire *wire;
	char *buf;

	buf = calloc(1, sizeof(*wire) + size);
	ATF_REQUIRE(buf != NULL);
	wire = (struct vale_wire *)(void *)buf;
	wire->vw_magic = VALE_WIRE_MAGIC;
	wire->vw_error = error;
	strncpy(wire->vw_why, why, sizeof(wire->vw_why) - 1);
	if (size > 0)
		memcpy(wire + 1, body, size);
	SEND_FDS(fd, buf, sizeof(*wire) + size, fds, nfds);
	free(buf);
}

void
wire_take(int fd, struct wire_request *wr)
{
	struct iovec iov[2] = {
		{ &wr->wr_wire, sizeof(wr->wr_wire) },
		{ wr->wr_body, sizeof(wr->wr_body) },
	};
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(sizeof(wr->wr_fds))];
	} control;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = nitems(iov),
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n;

	memset(wr, 0, sizeof(*wr));
	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	ATF_REQUIRE(n >= (ssize_t)sizeof(wr->wr_wire));
	ATF_REQUIRE_EQ(0, msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
	wr->wr_size = n - sizeof(wr->wr_wire);
	c = CMSG_FIRSTHDR(&msg);
	if (c != NULL) {
		wr->wr_nfds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(wr->wr_fds, CMSG_DATA(c), wr->wr_nfds * sizeof(int));
	}
}

bool
wire_pending(int fd)
{
	ssize_t n;
	char c;

	/* A user that has left without the reply is an error first. */
	do {
		n = recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK);
	} while (n == -1 && errno == ECONNRESET);
	return (n > 0);
}
