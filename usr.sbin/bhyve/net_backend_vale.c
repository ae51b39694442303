/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A bhyve network backend that is a port of a VALE switch.
 *
 * Frontends that know of frame ports (net_port.h) use its frame port, which
 * does the work: vale_frame_port.h.
 *
 * Any other frontend sends and receives a frame a call.  netbe_send() copies a
 * short frame into the slot's own buffer, because the frontend may use its own
 * again at once; those that come fast share a sync (vale_sender.h).  A long
 * frame is synced at once, with those that are pending.  Such a frontend may
 * ask for virtio-net headers.
 *
 * The transmit side belongs to the sending thread, the receive side to the
 * receiving thread, and the two share no data.  With netbe_send() the sender's
 * lock protects the transmit side; there are no others.
 */

#include <sys/systm.h>
#include <sys/uio.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "debug.h"
#include "frame_port.h"
#include "iov.h"
#include "libvale.h"
#include "mevent.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "net_port.h"
#include "vale_frame_port.h"
#include "vale_sender.h"

#define	VALE_SEND_SHORT	1600	/* bytes that netbe_send() copies, at most */

/* What a virtio-net header may ask for. */
#define	VALE_FEATURES	(VIRTIO_NET_F_CSUM | VIRTIO_NET_F_HOST_TSO4 |	\
			VIRTIO_NET_F_HOST_TSO6 | VIRTIO_NET_F_HOST_UFO | \
			VIRTIO_NET_F_GUEST_CSUM | VIRTIO_NET_F_GUEST_TSO4 | \
			VIRTIO_NET_F_GUEST_TSO6 | VIRTIO_NET_F_GUEST_UFO)

struct vale_priv {
	struct vale_frame_port frame;
	struct vale_desc *port;
	struct mevent	*mevp;
	struct vale_sender sender;	/* for netbe_send() */
};

static void
vale_cleanup(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	if (priv->mevp != NULL)
		mevent_delete(priv->mevp);
	if (priv->port != NULL) {
		vale_sender_fini(&priv->sender);
		vale_close(priv->port);
	}
	be->fd = -1;
}

static void
vale_vlog(const char *fmt, va_list ap)
{
	char line[256];

	vsnprintf(line, sizeof(line), fmt, ap);
	EPRINTLN("%s", line);
}

static void
vale_sync_posted(void *arg)
{
	struct vale_priv *priv = arg;

	frame_port_flush(&priv->frame.vfp_port);
}

static int
vale_init(struct net_backend *be, const char *devname, nvlist_t *nvl __unused,
    net_be_rxeof_t cb, void *param)
{
	struct vale_priv *priv;
	int error;

	priv = NET_BE_PRIV(be);
	priv->port = vale_open(devname, NULL);
	if (priv->port == NULL) {
		EPRINTLN("backend=%s: %s", devname,
		    vale_frame_port_why(devname, errno));
		return (-1);
	}
	error = vale_sender_init(&priv->sender, vale_sync_posted, priv);
	if (error != 0) {
		EPRINTLN("backend=%s: %s", devname, strerror(error));
		vale_close(priv->port);
		return (-1);
	}
	if (vale_frame_port_init(&priv->frame, priv->port, vale_vlog) != 0) {
		if (errno == EMSGSIZE)
			EPRINTLN("backend=%s: netmap's buffers have only %u "
			    "bytes", devname, priv->port->txring->nr_buf_size);
		else
			EPRINTLN("backend=%s: %s", devname, strerror(errno));
		vale_cleanup(be);
		return (-1);
	}
	be->fd = priv->port->fd;

	priv->mevp = mevent_add_disabled(be->fd, EVF_READ, cb, param);
	if (priv->mevp == NULL) {
		EPRINTLN("backend=%s: cannot wait for frames", devname);
		vale_cleanup(be);
		return (-1);
	}
	return (0);
}

/*
 * Frontends that send a frame a call.
 */

static ssize_t
vale_send(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	struct frame frame = { .f_iov = __DECONST(struct iovec *, iov) };
	struct vale_priv *priv = NET_BE_PRIV(be);
	ssize_t total;
	bool copy;
	int error;

	total = count_iov(iov, iovcnt);
	frame_set(&frame, iovcnt, total);
	copy = total <= VALE_SEND_SHORT;
	vale_sender_lock(&priv->sender);
	error = vale_frame_port_put(&priv->frame, &frame, be->be_vnet_hdr_len,
	    copy);
	if (error == 0)
		vale_sender_post(&priv->sender, !copy);
	vale_sender_unlock(&priv->sender);
	if (error != 0) {
		errno = error;
		return (-1);
	}
	return (total);
}

/* Look at the next frame for a frontend that does not know of syncs. */
static bool
vale_peek_sync(struct vale_priv *priv, struct frame *frame)
{
	if (frame_peek(&priv->frame.vfp_source, frame))
		return (true);
	frame_port_sync(&priv->frame.vfp_port);
	return (frame_peek(&priv->frame.vfp_source, frame));
}

static ssize_t
vale_peek_recvlen(struct net_backend *be)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	return (vale_peek_sync(NET_BE_PRIV(be), &frame) ? frame.f_len : 0);
}

static ssize_t
vale_recv(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	struct iovec slots[FRAME_MAXIOV];
	struct frame frame = { .f_iov = slots };
	struct vale_priv *priv;
	ssize_t done;
	int i;

	priv = NET_BE_PRIV(be);
	if (!vale_peek_sync(priv, &frame))
		return (0);
	done = 0;
	for (i = 0; i < frame.f_niov; i++)
		done += buf_to_iov(slots[i].iov_base, slots[i].iov_len,
		    iov, iovcnt, done);
	frame_next(&priv->frame.vfp_source);
	return (done);
}

static void
vale_recv_enable(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	mevent_enable(priv->mevp);
}

static void
vale_recv_disable(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	mevent_disable(priv->mevp);
}

/*
 * virtio-net headers: the switch, or the port that the frame goes to, does what
 * they ask for.
 */

/* Call vale_set_header() with no sync in progress. */
static int
vale_set_length(struct vale_priv *priv, unsigned int len)
{
	int error;

	vale_sender_lock(&priv->sender);
	error = vale_set_header(priv->port, len);
	vale_sender_unlock(&priv->sender);
	return (error);
}

static uint64_t
vale_get_cap(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	if (be->be_vnet_hdr_len == 0) {
		if (vale_set_length(priv, VALE_HEADER) != 0)
			return (0);
		vale_set_length(priv, 0);
	}
	return (VALE_FEATURES);
}

/*
 * Set the features.  `features' also has what frontend and guest have among
 * themselves.
 */
static int
vale_set_cap(struct net_backend *be, uint64_t features,
    unsigned int vnet_hdr_len)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	if (((features & VALE_FEATURES) != 0 && vnet_hdr_len == 0) ||
	    (vnet_hdr_len != 0 && vnet_hdr_len != VALE_HEADER_SHORT &&
	    vnet_hdr_len != VALE_HEADER))
		return (-1);
	if (vale_set_length(priv, vnet_hdr_len) != 0)
		return (-1);
	be->be_vnet_hdr_len = vnet_hdr_len;
	return (0);
}

static struct net_backend vale_backend = {
	.prefix = "vale",
	.priv_size = sizeof(struct vale_priv),
	.init = vale_init,
	.cleanup = vale_cleanup,
	.send = vale_send,
	.peek_recvlen = vale_peek_recvlen,
	.recv = vale_recv,
	.recv_enable = vale_recv_enable,
	.recv_disable = vale_recv_disable,
	.get_cap = vale_get_cap,
	.set_cap = vale_set_cap,
};
DATA_SET(net_backend_set, vale_backend);

static struct frame_port *
vale_frame_port(struct net_backend *be)
{
	struct vale_priv *priv;

	/* bhyve's own backend has this name, too: ours must be linked first. */
	MPASS(be->send == vale_send);
	priv = NET_BE_PRIV(be);
	return (&priv->frame.vfp_port);
}

/* Not static: compat/mk has the linker look for it. */
extern const struct net_backend_port net_backend_vale_port;
const struct net_backend_port net_backend_vale_port = {
	.nbp_prefix = "vale",
	.nbp_port = vale_frame_port,
};
DATA_SET(net_backend_port_set, net_backend_vale_port);
