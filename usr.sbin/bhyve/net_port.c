/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port over any backend; see net_port.h.  A backend with a port of its
 * own does the work itself.  The port of any other has a buffer for one frame,
 * which frame_peek() fills and frame_next() empties.  No locks: the sending
 * thread touches the backend only, the receiving thread the buffer, too.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/uio.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frame_port.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "net_port.h"

/* More than the longest frame of any backend: TAP's MTU is 16 bits. */
#define	BOUNCE_SIZE	(65536 + 64)

struct bounce_port {
	struct frame_port	 bp_port;	/* must be first */
	struct frame_source	 bp_source;
	struct net_backend	*bp_be;
	ssize_t			 bp_len;	/* bytes in bp_frame; 0: none */
	uint8_t			 bp_frame[BOUNCE_SIZE];
};

static struct bounce_port *
bounce_of_source(struct frame_source *source)
{
	return (__containerof(source, struct bounce_port, bp_source));
}

static bool
bounce_send(struct frame_port *port, const struct frame *frame)
{
	struct bounce_port *bp = (struct bounce_port *)port;

	return (netbe_send(bp->bp_be, frame->f_iov, frame->f_niov) >= 0);
}

static void
bounce_nothing(struct frame_port *port __unused)
{
}

static bool
bounce_peek(struct frame_source *source, struct frame *frame)
{
	struct bounce_port *bp = bounce_of_source(source);
	struct iovec iov;

	if (bp->bp_len == 0) {
		iov.iov_base = bp->bp_frame;
		iov.iov_len = sizeof(bp->bp_frame);
		bp->bp_len = netbe_recv(bp->bp_be, &iov, 1);
		if (bp->bp_len < 0)
			bp->bp_len = 0;
	}
	frame->f_iov[0].iov_base = bp->bp_frame;
	frame->f_iov[0].iov_len = bp->bp_len;
	frame_set(frame, 1, bp->bp_len);
	return (bp->bp_len > 0);
}

static void
bounce_next(struct frame_source *source)
{
	bounce_of_source(source)->bp_len = 0;
}

static void
bounce_destroy(struct frame_port *port)
{
	free(port);
}

static const struct frame_port_ops bounce_ops = {
	.fpo_send = bounce_send,
	.fpo_flush = bounce_nothing,
	.fpo_sync = bounce_nothing,
	.fpo_destroy = bounce_destroy,
};

static struct frame_port *
bounce_create(struct net_backend *be)
{
	struct bounce_port *bp;

	bp = calloc(1, sizeof(*bp));
	if (bp == NULL)
		return (NULL);
	bp->bp_port.fp_ops = &bounce_ops;
	bp->bp_port.fp_source = &bp->bp_source;
	bp->bp_source.fs_peek = bounce_peek;
	bp->bp_source.fs_next = bounce_next;
	bp->bp_be = be;
	return (&bp->bp_port);
}

struct frame_port *
net_port_create(struct net_backend *be, uint32_t frame_max)
{
	struct net_backend_port **nbp;
	struct frame_port *port = NULL;

	SET_FOREACH(nbp, net_backend_port_set)
		if (strcmp((*nbp)->nbp_prefix, be->prefix) == 0)
			port = (*nbp)->nbp_port(be);
	if (port == NULL)
		port = bounce_create(be);
	if (port != NULL)
		port->fp_frame_max = frame_max;
	return (port);
}

void
net_port_destroy(struct frame_port *port)
{
	if (port != NULL && port->fp_ops->fpo_destroy != NULL)
		port->fp_ops->fpo_destroy(port);
}
