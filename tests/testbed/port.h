/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Frame ports in tests, one frame a call.
 */

#ifndef _PORT_H_
#define	_PORT_H_

#include <sys/uio.h>

#include <stdbool.h>

#include "frame_port.h"

struct net_backend;

/* The frame port of a backend, without an MTU. */
struct frame_port *backend_port(struct net_backend *be);

/*
 * Send a frame.  Returns whether frame_port_send() accepted it.
 */
bool	port_send(struct frame_port *port, const struct iovec *iov, int niov);
/*
 * Look at the next frame: copies up to `max' fragments to `iov'.  Returns the
 * number of its fragments, 0 if no frame is pending.
 */
int	port_peek(struct frame_port *port, struct iovec *iov, int max);

#endif /* !_PORT_H_ */
