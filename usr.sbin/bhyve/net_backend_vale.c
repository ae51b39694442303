/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A bhyve network backend that is a port of a VALE switch.
 *
 * Out: a frame becomes as many transmit slots as it has pieces, each pointing
 * (NS_INDIRECT) at the caller's memory, so that the only copy is the switch's,
 * into the receiver's ring.  Frames pile up in the ring until a sync, which
 * takes them all; a sync comes with every frame, until the frontend promises
 * to ask for it (net_backend_vale_defer()).
 *
 * FreeBSD's switch hands slots on to an adapter or the host's stack, if those
 * are attached to it, as if each were a frame.  There a frame of several pieces
 * is copied into one slot's own buffer if it fits.
 *
 * Frames with a virtio-net header, which a frontend may ask for, go out through
 * the slots' own buffers: a switch that has to carry out what a header asks for
 * works on the frame where it lies, and that has to be the switch's memory.
 *
 * In: frames are looked at where the switch put them.  rx_next runs ahead of
 * ring->head over the frames the frontend is done with; a sync makes it the
 * new head, which gives their slots back.  A frontend may have frames before
 * they are put there, from threads that send (net_backend_vale_direct()), but
 * not while it polls (net_backend_vale_polled()).
 *
 * No locks: the transmit side belongs to the sending thread, the receive side
 * to the receiving one, and the two have no data in common.
 */

#include <sys/types.h>
#include <sys/param.h>
#include <sys/uio.h>

#include <net/ethernet.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug.h"
#include "iov.h"
#include "libvale.h"
#include "mevent.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "net_backend_vale.h"

#define	VALE_SEND_MAX	65535	/* bytes without FCS and headers */

/* The virtio-net headers there are, and what can be asked for in them. */
#define	VALE_HEADER	12
#define	VALE_HEADER_SHORT 10
#define	VALE_FEATURES	(VIRTIO_NET_F_CSUM | VIRTIO_NET_F_HOST_TSO4 |	\
			VIRTIO_NET_F_HOST_TSO6 | VIRTIO_NET_F_HOST_UFO | \
			VIRTIO_NET_F_GUEST_CSUM | VIRTIO_NET_F_GUEST_TSO4 | \
			VIRTIO_NET_F_GUEST_TSO6 | VIRTIO_NET_F_GUEST_UFO)

/*
 * FreeBSD's switch copies a piece so that it keeps its place within 64 bytes,
 * and leaves the first 64 of the buffer free where that is not their
 * beginning.  It drops what does not fit into a buffer that way.  Where the
 * receiver has a virtio-net header and the sender none, it puts one before the
 * first piece, and does not look whether both fit: 64 bytes stay free for that.
 */
#define	VALE_ALIGN	64
#define	VALE_BUF_MIN	512	/* bytes, so that enough is left of one */

struct vale_priv {
	struct vale_desc *port;
	struct mevent	*mevp;

	/* The sending thread's. */
	uint32_t	 piece_max;	/* bytes in a slot, multiple of 64 */
	bool		 defer;
	bool		 tx_failed;	/* and it was said so */

	/* The receiving thread's. */
	uint32_t	 rx_next;	/* first slot not stepped over */
	uint32_t	 rx_end;	/* that after the frame looked at */
	bool		 rx_failed;
};

static ssize_t vale_send(struct net_backend *be, const struct iovec *iov,
    int iovcnt);

bool
net_backend_vale(const struct net_backend *be)
{
	return (be->send == vale_send);
}

static void
vale_cleanup(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	if (priv->mevp != NULL)
		mevent_delete(priv->mevp);
	if (priv->port != NULL)
		vale_close(priv->port);
	be->fd = -1;
}

static const char *
vale_strerror(int error)
{
	switch (error) {
	case EACCES:
	case EPERM:
		return ("no permission to open " NETMAP_DEVICE_NAME);
	case EBUSY:
		return ("the port is open already");
	case EINVAL:
		return ("not the name of a VALE port, valeSWITCH:PORT");
	case ENOENT:
		return ("there is no " NETMAP_DEVICE_NAME
		    ": the kernel has no netmap(4)");
	case ENOSPC:
		return ("the switch has no port left");
	case ENXIO:
		return ("there are no more switches to be had");
	default:
		return (strerror(error));
	}
}

static int
vale_init(struct net_backend *be, const char *devname, nvlist_t *nvl __unused,
    net_be_rxeof_t cb, void *param)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	priv->port = vale_open(devname, NULL);
	if (priv->port == NULL) {
		EPRINTLN("backend=%s: %s", devname, vale_strerror(errno));
		return (-1);
	}
	if (priv->port->txring->nr_buf_size < VALE_BUF_MIN) {
		EPRINTLN("backend=%s: netmap's buffers have but %u bytes",
		    devname, priv->port->txring->nr_buf_size);
		vale_cleanup(be);
		return (-1);
	}
	/* A port that outlives its users may have one from the last. */
	if (vale_set_header(priv->port, 0) != 0) {
		EPRINTLN("backend=%s: %s", devname, strerror(errno));
		vale_cleanup(be);
		return (-1);
	}
	priv->piece_max = (MIN(priv->port->txring->nr_buf_size, UINT16_MAX) &
	    ~(VALE_ALIGN - 1)) - VALE_ALIGN;
	priv->rx_next = priv->port->rxring->head;
	be->fd = priv->port->fd;

	priv->mevp = mevent_add_disabled(be->fd, EVF_READ, cb, param);
	if (priv->mevp == NULL) {
		EPRINTLN("backend=%s: cannot wait for frames", devname);
		vale_cleanup(be);
		return (-1);
	}
	return (0);
}

/* Say once that a sync fails, and once that it no longer does. */
static void
vale_report(const struct vale_priv *priv, bool *failed, int error,
    const char *what)
{
	if (*failed == (error != 0))
		return;
	*failed = error != 0;
	if (*failed)
		EPRINTLN("%s: cannot %s: %s", priv->port->name, what,
		    strerror(errno));
	else
		EPRINTLN("%s: can %s again", priv->port->name, what);
}

/*
 * The sending thread.
 */

void
net_backend_vale_defer(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	priv->defer = true;
}

void
net_backend_vale_flush(struct net_backend *be)
{
	struct vale_priv *priv;
	struct netmap_ring *ring;

	priv = NET_BE_PRIV(be);
	ring = priv->port->txring;
	if (nm_ring_space(ring) == ring->num_slots - 1)
		return;
	vale_report(priv, &priv->tx_failed, vale_txsync(priv->port), "send");
}

/*
 * The switch finds the addresses in the first slot, so that has to have the
 * whole Ethernet header.  Copy the header of a frame whose first piece is
 * shorter into the slot's own buffer.  The frame is longer than a header.
 */
static void
vale_gather_header(struct netmap_ring *ring, struct netmap_slot *slot,
    const struct iovec *iov)
{
	size_t len, n;
	char *buf;

	buf = NETMAP_BUF(ring, slot->buf_idx);
	for (len = 0; len < ETHER_HDR_LEN; iov++) {
		n = MIN(iov->iov_len, ETHER_HDR_LEN - len);
		if (n == 0)
			continue;
		memcpy(buf + len, iov->iov_base, n);
		len += n;
	}
	slot->len = len;
	slot->flags = NS_MOREFRAG;
}

/* The bytes at `addr' that fit into a slot. */
static size_t
vale_piece(const struct vale_priv *priv, uintptr_t addr)
{
	size_t skew;

	skew = addr % VALE_ALIGN;
	return (priv->piece_max - (skew != 0 ? VALE_ALIGN + skew : 0));
}

/*
 * Lay a frame out over the slots from ring->head, at most `room' of them.
 * Returns the slot after the last, or ring->head where it takes more.
 */
static uint32_t
vale_lay_out(const struct vale_priv *priv, const struct iovec *iov, int iovcnt,
    uint32_t room)
{
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	uint32_t head;
	uintptr_t addr;
	size_t left, n, skip;
	int i;

	ring = priv->port->txring;
	head = ring->head;
	if (room == 0)
		return (head);
	slot = &ring->slot[head];
	skip = 0;
	if (iov[0].iov_len < ETHER_HDR_LEN) {
		vale_gather_header(ring, slot, iov);
		skip = ETHER_HDR_LEN;
		head = nm_ring_next(ring, head);
		room--;
	}
	for (i = 0; i < iovcnt; i++) {
		n = MIN(iov[i].iov_len, skip);
		skip -= n;
		addr = (uintptr_t)iov[i].iov_base + n;
		for (left = iov[i].iov_len - n; left > 0; left -= n) {
			if (room-- == 0)
				return (ring->head);
			n = MIN(vale_piece(priv, addr), left);
			slot = &ring->slot[head];
			slot->ptr = addr;
			slot->len = n;
			slot->flags = NS_INDIRECT | NS_MOREFRAG;
			addr += n;
			head = nm_ring_next(ring, head);
		}
	}
	slot->flags &= ~NS_MOREFRAG;
	return (head);
}

/* Copy bytes [off, off + len) of a frame, which it has; returns `len'. */
static size_t
vale_copy(void *buf, const struct iovec *iov, size_t off, size_t len)
{
	size_t done, n;

	for (done = 0; done < len; iov++) {
		if (off >= iov->iov_len) {
			off -= iov->iov_len;
			continue;
		}
		n = MIN(iov->iov_len - off, len - done);
		memcpy((char *)buf + done, (char *)iov->iov_base + off, n);
		done += n;
		off = 0;
	}
	return (len);
}

/* The same, of a copy in the slots' own buffers. */
static uint32_t
vale_copy_out(const struct vale_priv *priv, const struct iovec *iov,
    size_t total, uint32_t room)
{
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	uint32_t head;
	size_t n, off;

	ring = priv->port->txring;
	if (howmany(total, priv->piece_max) > room)
		return (ring->head);
	head = ring->head;
	for (off = 0; off < total; off += n) {
		slot = &ring->slot[head];
		n = vale_copy(NETMAP_BUF(ring, slot->buf_idx), iov, off,
		    MIN(priv->piece_max, total - off));
		slot->len = n;
		slot->flags = off + n < total ? NS_MOREFRAG : 0;
		head = nm_ring_next(ring, head);
	}
	return (head);
}

/* Whether a frame fits into a slot, and yet would not be one as it lies. */
static bool
vale_in_pieces(const struct vale_priv *priv, const struct iovec *iov,
    int iovcnt, size_t total)
{
	return (total <= priv->piece_max && (iovcnt > 1 ||
	    total > vale_piece(priv, (uintptr_t)iov->iov_base)));
}

/*
 * Most frames are in one piece that a slot takes as it lies: vale_send_any()
 * comes down to this.  Returns false, having done nothing, where that is not
 * so, or the ring is full.
 */
static bool
vale_send_whole(const struct vale_priv *priv, const struct iovec *iov)
{
	struct netmap_ring *ring = priv->port->txring;
	struct netmap_slot *slot;
	uint32_t head = ring->head;

	if (head == ring->tail || iov->iov_len <= ETHER_HDR_LEN ||
	    iov->iov_len > vale_piece(priv, (uintptr_t)iov->iov_base))
		return (false);
	slot = &ring->slot[head];
	slot->ptr = (uintptr_t)iov->iov_base;
	slot->len = iov->iov_len;
	slot->flags = NS_INDIRECT;
	ring->head = ring->cur = nm_ring_next(ring, head);
	return (true);
}

static __attribute__((__noinline__)) ssize_t
vale_send_any(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	struct vale_priv *priv;
	struct netmap_ring *ring;
	uint32_t head, room;
	ssize_t hdrlen, total;

	priv = NET_BE_PRIV(be);
	ring = priv->port->txring;
	hdrlen = be->be_vnet_hdr_len;
	total = count_iov(iov, iovcnt);
	if (total <= ETHER_HDR_LEN + hdrlen ||
	    total > VALE_SEND_MAX + hdrlen) {
		errno = EMSGSIZE;
		return (-1);
	}
	room = MIN(NETMAP_MAX_FRAGS, ring->num_slots - 1);
	if (nm_ring_space(ring) < room)
		net_backend_vale_flush(be);
	room = MIN(NETMAP_MAX_FRAGS, nm_ring_space(ring));

	if (hdrlen != 0 || (priv->port->single_slot &&
	    vale_in_pieces(priv, iov, iovcnt, total)))
		head = vale_copy_out(priv, iov, total, room);
	else
		head = vale_lay_out(priv, iov, iovcnt, room);
	if (head == ring->head) {
		errno = ENOBUFS;
		return (-1);
	}
	ring->head = ring->cur = head;
	if (!priv->defer)
		net_backend_vale_flush(be);
	return (total);
}

static ssize_t
vale_send(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	if (iovcnt == 1 && be->be_vnet_hdr_len == 0 && priv->defer &&
	    vale_send_whole(priv, iov))
		return (iov->iov_len);
	return (vale_send_any(be, iov, iovcnt));
}

/*
 * The receiving thread.
 */

/*
 * The slot after the frame that begins at `first', or `first' where the frame
 * is not all there.  *npiecesp is how many slots it has, 0 for one to be
 * skipped: the switch leaves empty slots where a sender's memory was not to be
 * read, and where it had reserved more than it needed.
 */
static uint32_t
vale_frame_end(struct netmap_ring *ring, uint32_t first, uint32_t *npiecesp)
{
	const struct netmap_slot *slot;
	uint32_t i, n;
	bool empty;

	empty = false;
	n = 0;
	i = first;
	do {
		if (i == ring->tail)
			return (first);
		slot = &ring->slot[i];
		if (slot->len == 0)
			empty = true;
		n++;
		i = nm_ring_next(ring, i);
	} while ((slot->flags & NS_MOREFRAG) != 0);
	*npiecesp = empty ? 0 : n;
	return (i);
}

/*
 * Most frames are one slot: what follows comes down to this, and has the time
 * to fetch the one after.  Returns false where there is none, or the next is
 * not of that kind.
 */
static bool
vale_peek_whole(struct vale_priv *priv, struct iovec *iov)
{
	struct netmap_ring *ring = priv->port->rxring;
	const struct netmap_slot *slot = &ring->slot[priv->rx_next];

	if (priv->rx_next == ring->tail || (slot->flags & NS_MOREFRAG) != 0 ||
	    slot->len == 0)
		return (false);
	iov->iov_base = NETMAP_BUF(ring, slot->buf_idx);
	iov->iov_len = slot->len;
	priv->rx_end = nm_ring_next(ring, priv->rx_next);
	slot = &ring->slot[priv->rx_end];
	__builtin_prefetch(NETMAP_BUF(ring, slot->buf_idx));
	return (true);
}

int
net_backend_vale_peek(struct net_backend *be, struct iovec *iov, int maxiov)
{
	struct vale_priv *priv;
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	uint32_t end, i, n;
	int niov;

	priv = NET_BE_PRIV(be);
	ring = priv->port->rxring;
	if (vale_peek_whole(priv, iov))
		return (1);
	for (;; priv->rx_next = end) {
		end = vale_frame_end(ring, priv->rx_next, &n);
		if (end == priv->rx_next)
			return (0);
		if (n > 0 && n <= (uint32_t)maxiov)
			break;
	}
	niov = 0;
	for (i = priv->rx_next; i != end; i = nm_ring_next(ring, i)) {
		slot = &ring->slot[i];
		iov[niov].iov_base = NETMAP_BUF(ring, slot->buf_idx);
		iov[niov].iov_len = slot->len;
		niov++;
	}
	priv->rx_end = end;
	return (niov);
}

void
net_backend_vale_next(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	priv->rx_next = priv->rx_end;
}

void
net_backend_vale_sync(struct net_backend *be)
{
	struct vale_priv *priv;
	struct netmap_ring *ring;

	priv = NET_BE_PRIV(be);
	ring = priv->port->rxring;
	ring->head = ring->cur = priv->rx_next;
	vale_report(priv, &priv->rx_failed, vale_rxsync(priv->port),
	    "receive");
}

void
net_backend_vale_polled(struct net_backend *be, bool on)
{
	struct vale_priv *priv;
	struct netmap_ring *ring;

	priv = NET_BE_PRIV(be);
	ring = priv->port->rxring;
	if (on)
		ring->flags |= VALE_RING_POLLED;
	else
		ring->flags &= ~VALE_RING_POLLED;
}

bool
net_backend_vale_direct(struct net_backend *be,
    void (*sink)(void *, struct vale_offer *), void *arg)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	return (vale_set_sink(priv->port, sink, arg) == 0);
}

/* The next frame for a frontend that does not know of syncs. */
static int
vale_peek_sync(struct net_backend *be, struct iovec *iov, int maxiov)
{
	int niov;

	niov = net_backend_vale_peek(be, iov, maxiov);
	if (niov == 0) {
		net_backend_vale_sync(be);
		niov = net_backend_vale_peek(be, iov, maxiov);
	}
	return (niov);
}

static ssize_t
vale_peek_recvlen(struct net_backend *be)
{
	struct iovec pieces[NETMAP_MAX_FRAGS];
	int n;

	n = vale_peek_sync(be, pieces, nitems(pieces));
	return (count_iov(pieces, n));
}

static ssize_t
vale_recv(struct net_backend *be, const struct iovec *iov, int iovcnt)
{
	struct iovec pieces[NETMAP_MAX_FRAGS];
	ssize_t done;
	int i, n;

	n = vale_peek_sync(be, pieces, nitems(pieces));
	if (n == 0)
		return (0);
	done = 0;
	for (i = 0; i < n; i++)
		done += buf_to_iov(pieces[i].iov_base, pieces[i].iov_len,
		    iov, iovcnt, done);
	net_backend_vale_next(be);
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
 * virtio-net headers: what there is in them is for the switch to do, where it
 * can, or for the port the frame goes to.
 */

static uint64_t
vale_get_cap(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	if (be->be_vnet_hdr_len == 0) {
		if (vale_set_header(priv->port, VALE_HEADER) != 0)
			return (0);
		vale_set_header(priv->port, 0);
	}
	return (VALE_FEATURES);
}

/* `features' are all that frontend and guest agreed on, its own ones too. */
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
	if (vale_set_header(priv->port, vnet_hdr_len) != 0)
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
