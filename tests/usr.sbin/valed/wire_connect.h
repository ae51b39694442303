/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Connections for tests of libvale over valed, whose part the test takes: each
 * vale_client_connect() gets the next one that the test has prepared.  The
 * program is linked with --wrap for vale_client_connect, and with
 * fail_calls.c.  A function fails the test case if a call fails that must not.
 */

#ifndef _WIRE_CONNECT_H_
#define	_WIRE_CONNECT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire_peer.h"

/* Prepare a connection.  Returns valed's end. */
int	prepare(void);

/* Prepare one on which this reply is pending: an errno, or 0 and a body. */
int	prepare_reply(int error, const void *body, size_t size);

/*
 * All prepared connections must have been taken and closed by the user, and all
 * memory freed.  Closes valed's ends.
 */
void	finish(void);

/*
 * Take the next request from valed's end, which must have this type, this name
 * and a body of `size' bytes.
 */
struct wire_request	request(int fd, uint16_t type, const char *name,
	    size_t size);

#endif /* !_WIRE_CONNECT_H_ */
