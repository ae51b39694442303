/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port over any backend; see net_port.h.  A backend with a port of its
 * own does the work itself.  The port of any other has a buffer for one frame,
 * which frame_peek() fills and frame_next() empties.
 *
 * Over tap(4), if it has virtio-net headers for checksums and TCP, frames pass
 * with such a header, both ways, once frame_port_set_offloads() was called.
 * Few hosts have a header for segments of UDP: the sender must cut those.
 *
 * No locks: the sending thread touches the backend, the receiving thread the
 * backend and the rest.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/uio.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frame_port.h"
#include "frame_host.h"
#include "frame_vnet.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "net_port.h"

/* More than the longest frame of any backend: TAP's MTU is 16 bits. */
#define	BOUNCE_SIZE	(65536 + 64)
/* What a backend must offer for headers to be used. */
#define	BOUNCE_OFFLOADS							\
	(VIRTIO_NET_F_CSUM | VIRTIO_NET_F_HOST_TSO4 |			\
	VIRTIO_NET_F_HOST_TSO6 | VIRTIO_NET_F_GUEST_CSUM |		\
	VIRTIO_NET_F_GUEST_TSO4 | VIRTIO_NET_F_GUEST_TSO6)

struct bounce_port {
	struct frame_port	 bp_port;	/* must be first */
	struct frame_source	 bp_source;
	struct net_backend	*bp_be;
	struct frame		 bp_pending;	/* what is in bp_frame; f_len
						   0: nothing */
	uint8_t			 bp_frame[BOUNCE_SIZE];
};

static struct bounce_port *
bounce_of_source(struct frame_source *source)
{
	return (__containerof(source, struct bounce_port, bp_source));
}

/* Send with a header. */
static bool
bounce_send_header(struct bounce_port *bp, const struct frame *frame)
{
	struct iovec iov[1 + FRAME_MAXIOV];
	uint8_t hdr[FRAME_VNET_SHORT];

	frame_vnet_encode(frame, hdr, sizeof(hdr));
	iov[0].iov_base = hdr;
	iov[0].iov_len = sizeof(hdr);
	memcpy(iov + 1, frame->f_iov, frame->f_niov * sizeof(*iov));
	return (netbe_send(bp->bp_be, iov, 1 + frame->f_niov) >= 0);
}

static bool
bounce_send(struct frame_port *port, const struct frame *frame)
{
	struct bounce_port *bp = (struct bounce_port *)port;

	if (!port->fp_offloads)
		return (netbe_send(bp->bp_be, frame->f_iov,
		    frame->f_niov) >= 0);
	return (bounce_send_header(bp, frame));
}

static void
bounce_nothing(struct frame_port *port __unused)
{
}

/* Complete a frame that the host's stack has left incomplete, or drop it. */
static void
bounce_complete(struct bounce_port *bp, const uint8_t *hdr)
{
	struct frame *frame = &bp->bp_pending;

	(void)frame_vnet_decode(frame, hdr);
	if (frame_host_prepare(frame, bp->bp_frame) == FRAME_HOST_OK)
		return;
	frame_port_count(&bp->bp_port, FRAME_PORT_C_RX_BAD_HEADER);
	frame->f_len = 0;
}

/*
 * Receive a frame, if there is one.  Frames that are shorter than a header, or
 * whose header is invalid, are dropped.
 */
static void
bounce_receive(struct bounce_port *bp)
{
	uint8_t hdr[FRAME_VNET_SHORT];
	struct iovec iov[2] = {
		{ hdr, sizeof(hdr) }, { bp->bp_frame, sizeof(bp->bp_frame) }
	};
	struct frame *frame = &bp->bp_pending;
	const bool offloads = bp->bp_port.fp_offloads;
	ssize_t len;

	do {
		len = netbe_recv(bp->bp_be, iov + !offloads, 1 + offloads);
		if (len <= 0)
			return;
		if (offloads)
			len -= sizeof(hdr);
		frame_set(frame, 1, MAX(len, 0));
		if (offloads && len > 0)
			bounce_complete(bp, hdr);
	} while (frame->f_len == 0);
}

static bool
bounce_peek(struct frame_source *source, struct frame *frame)
{
	struct bounce_port *bp = bounce_of_source(source);
	struct iovec *iov = frame->f_iov;

	if (bp->bp_pending.f_len == 0)
		bounce_receive(bp);
	if (bp->bp_pending.f_len == 0)
		return (false);
	*frame = bp->bp_pending;
	frame->f_iov = iov;
	iov[0].iov_base = bp->bp_frame;
	iov[0].iov_len = frame->f_len;
	return (true);
}

static void
bounce_next(struct frame_source *source)
{
	bounce_of_source(source)->bp_pending.f_len = 0;
}

static bool
bounce_set_offloads(struct frame_port *port)
{
	struct bounce_port *bp = (struct bounce_port *)port;

	return ((netbe_get_cap(bp->bp_be) & BOUNCE_OFFLOADS) ==
	    BOUNCE_OFFLOADS && netbe_set_cap(bp->bp_be, BOUNCE_OFFLOADS,
	    FRAME_VNET_SHORT) == 0);
}

static bool
bounce_takes_uncut(const struct frame_port *port __unused,
    const struct frame *frame)
{
	return (frame->f_gso_type != FRAME_GSO_UDP_L4);
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

static const struct frame_port_ops tap_ops = {
	.fpo_send = bounce_send,
	.fpo_flush = bounce_nothing,
	.fpo_sync = bounce_nothing,
	.fpo_set_offloads = bounce_set_offloads,
	.fpo_takes_uncut = bounce_takes_uncut,
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

/*
 * Create a port on a TAP, whose stack takes the headers.  Headers on other
 * backends, as netmap's pipes, may reach a program that expects none.
 */
static struct frame_port *
tap_create(struct net_backend *be)
{
	struct frame_port *port = bounce_create(be);

	if (port != NULL)
		port->fp_ops = &tap_ops;
	return (port);
}

static const struct net_backend_port net_port_tap = {
	.nbp_prefix = "tap",
	.nbp_port = tap_create,
};
DATA_SET(net_backend_port_set, net_port_tap);

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
