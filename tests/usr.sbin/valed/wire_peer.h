/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The side of valed in a connection, for tests of what speaks to it: replies
 * that wait in the socket before the request is sent, so no thread is needed.
 * A function fails the test case if a call fails that must not.
 */

#ifndef _WIRE_PEER_H_
#define	_WIRE_PEER_H_

#include <stdbool.h>
#include <stddef.h>

#include "vale_wire.h"

/* A request, as it arrived. */
struct wire_request {
	struct vale_wire	wr_wire;
	char			wr_body[5000];
	size_t			wr_size;	/* bytes of the body */
	int			wr_fds[VALE_WIRE_FDS];
	unsigned int		wr_nfds;
};

/* A connection: fd[0] is the user's end, fd[1] this side's. */
void	wire_pair(int fd[2]);

/* Reply with an error, or with 0 and a body. */
void	wire_reply(int fd, int error, const char *why, const void *body,
	    size_t size, const int *fds, unsigned int nfds);

/* Take the next request. */
void	wire_take(int fd, struct wire_request *wr);

/* Whether a packet waits. */
bool	wire_pending(int fd);

#endif /* !_WIRE_PEER_H_ */
