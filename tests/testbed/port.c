/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See port.h.
 */

#include <sys/types.h>
#include <sys/uio.h>

#include <stdint.h>

#include <atf-c.h>

#include "iov.h"
#include "net_port.h"
#include "port.h"

struct frame_port *
backend_port(struct net_backend *be)
{
	struct frame_port *port;

	port = net_port_create(be, UINT32_MAX);
	ATF_REQUIRE(port != NULL);
	return (port);
}

bool
port_send(struct frame_port *port, const struct iovec *iov, int niov)
{
	struct frame frame = { .f_iov = __DECONST(struct iovec *, iov) };

	frame_set(&frame, niov, count_iov(iov, niov));
	return (frame_port_send(port, &frame) == 0);
}

int
port_peek(struct frame_port *port, struct iovec *iov, int max)
{
	struct iovec fragments[FRAME_MAXIOV];
	struct frame frame = { .f_iov = fragments };
	int i;

	if (!frame_peek(port->fp_source, &frame))
		return (0);
	for (i = 0; i < frame.f_niov && i < max; i++)
		iov[i] = fragments[i];
	ATF_CHECK_EQ(frame.f_len, count_iov(fragments, frame.f_niov));
	return (frame.f_niov);
}
