/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A bhyve network backend that is a port of a VALE switch.
 *
 * Frontends that know of frame ports (net_port.h) use it in batches:
 *
 * Send.  A frame becomes as many transmit slots as it has fragments, each
 * pointing (NS_INDIRECT) at the caller's memory, so that the only copy is the
 * switch's, into the receiver's ring.  Frames collect in the ring until a sync,
 * which sends them all: frame_port_flush().
 *
 * Receive.  Frames are shown where the switch put them.  rx_next runs ahead of
 * ring->head over the frames the frontend has processed; frame_port_sync()
 * makes it the new head, which returns their slots.
 *
 * Any other frontend sends and receives a frame a call.  netbe_send() copies a
 * short frame into the slot's own buffer, because the frontend may use its own
 * again at once; those that come fast share a sync (vale_sender.h).  A long
 * frame is synced at once, with those that are pending.
 *
 * FreeBSD's switch passes the slots on to an adapter or the host's stack, if
 * those are attached to it, as if each were a frame.  There a frame of several
 * fragments is copied into one slot's own buffer if it fits.
 *
 * Frames with a virtio-net header, which a frontend may ask for, go out through
 * the slots' own buffers: a switch that does what the header asks for works on
 * the frame where it lies, and that must be the switch's memory.  FreeBSD's
 * trusts the header, so vale_valid() checks it.  A frame port that takes
 * offloads has the header on every frame there.  With the switch in this
 * process it uses VALE_HEADER_SLOT: only the header, which few frames have, is
 * in a slot's own buffer.
 *
 * The transmit side belongs to the sending thread, the receive side to the
 * receiving thread, and the two share no data.  With netbe_send() the sender's
 * lock protects the transmit side; there are no others.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <sys/fast_path.h>
#include <sys/uio.h>

#include <net/ethernet.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug.h"
#include "frame_cut.h"
#include "frame_port.h"
#include "frame_vnet.h"
#include "iov.h"
#include "libvale.h"
#include "mevent.h"
#include "net_backends.h"
#include "net_backends_priv.h"
#include "net_port.h"
#include "vale_sender.h"

#define	VALE_SEND_MAX	65535	/* bytes without FCS and headers */
#define	VALE_SEND_SHORT	1600	/* bytes that netbe_send() copies, at most */

/* The lengths of virtio-net headers, bytes, and what they may ask for. */
#define	VALE_HEADER	12
#define	VALE_HEADER_SHORT 10
#define	VALE_FEATURES	(VIRTIO_NET_F_CSUM | VIRTIO_NET_F_HOST_TSO4 |	\
			VIRTIO_NET_F_HOST_TSO6 | VIRTIO_NET_F_HOST_UFO | \
			VIRTIO_NET_F_GUEST_CSUM | VIRTIO_NET_F_GUEST_TSO4 | \
			VIRTIO_NET_F_GUEST_TSO6 | VIRTIO_NET_F_GUEST_UFO)

/*
 * FreeBSD's switch copies a fragment so that it keeps its offset within 64
 * bytes; unless that is 0, it leaves the first 64 bytes of the buffer free.  It
 * drops a fragment that then does not fit.  If the receiver has a virtio-net
 * header and the sender none, the switch puts one before the first fragment and
 * does not check that both fit: 64 bytes stay free for that.
 */
#define	VALE_ALIGN	64
#define	VALE_BUF_MIN	512	/* bytes; enough remains of each */

/* Bytes of a frame that FreeBSD's switch cuts: NM_BDG_MFS_DEFAULT. */
#define	VALE_SEGMENT	1514

struct vale_priv {
	struct frame_port frame_port;
	struct frame_source frame_source;
	struct vale_desc *port;
	struct mevent	*mevp;

	/* The sending thread's. */
	uint32_t	 slot_max;	/* bytes in a slot's own buffer */
	uint32_t	 indirect_max;	/* and elsewhere, if aligned */
	uint32_t	 align;		/* VALE_ALIGN, or 1 */
	bool		 tx_failed;	/* the last sync failed, reported */
	struct vale_sender sender;	/* for netbe_send() */

	/* The receiving thread's. */
	uint32_t	 rx_next;	/* first slot not taken */
	uint32_t	 rx_end;	/* the one after the frame shown */
	bool		 rx_failed;	/* the last sync failed, reported */
};

static const struct frame_port_ops vale_port_ops;
static bool	vale_port_set_offloads(struct frame_port *port);
static void	vale_sync_posted(void *arg);
static bool	vale_peek(struct frame_source *source, struct frame *frame);
static void	vale_next(struct frame_source *source);

static struct vale_priv *
vale_of_port(struct frame_port *port)
{
	return (__containerof(port, struct vale_priv, frame_port));
}

static struct vale_priv *
vale_of_source(struct frame_source *source)
{
	return (__containerof(source, struct vale_priv, frame_source));
}

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

static const char *
vale_strerror(const char *name, int error)
{
	if (vale_name_error(name) != NULL)
		return (vale_name_error(name));
	switch (error) {
	case EACCES:
	case EPERM:
		return ("no permission to open " NETMAP_DEVICE_NAME);
	case EBUSY:
		return ("the port is open already");
	case ENOENT:
		return ("there is no " NETMAP_DEVICE_NAME
		    ": the kernel has no netmap(4)");
	case ENOSPC:
		return ("the switch has no port left");
	case ENXIO:
		return ("no further switch can be created");
	default:
		return (strerror(error));
	}
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
		    vale_strerror(devname, errno));
		return (-1);
	}
	error = vale_sender_init(&priv->sender, vale_sync_posted, priv);
	if (error != 0) {
		EPRINTLN("backend=%s: %s", devname, strerror(error));
		vale_close(priv->port);
		return (-1);
	}
	if (priv->port->txring->nr_buf_size < VALE_BUF_MIN) {
		EPRINTLN("backend=%s: netmap's buffers have only %u bytes",
		    devname, priv->port->txring->nr_buf_size);
		vale_cleanup(be);
		return (-1);
	}
	/* The last user of a persistent port may have left one. */
	if (vale_set_header(priv->port, 0) != 0) {
		EPRINTLN("backend=%s: %s", devname, strerror(errno));
		vale_cleanup(be);
		return (-1);
	}
	priv->slot_max = MIN(priv->port->txring->nr_buf_size, UINT16_MAX);
	priv->indirect_max = MIN(priv->port->indirect_max, UINT16_MAX);
	priv->align = 1;
	if (priv->port->single_slot) {
		priv->align = VALE_ALIGN;
		priv->slot_max = (priv->slot_max & ~(VALE_ALIGN - 1)) -
		    VALE_ALIGN;
		priv->indirect_max = priv->slot_max;
	}
	priv->rx_next = priv->port->rxring->head;
	priv->frame_port.fp_ops = &vale_port_ops;
	priv->frame_port.fp_source = &priv->frame_source;
	priv->frame_source.fs_peek = vale_peek;
	priv->frame_source.fs_next = vale_next;
	be->fd = priv->port->fd;

	priv->mevp = mevent_add_disabled(be->fd, EVF_READ, cb, param);
	if (priv->mevp == NULL) {
		EPRINTLN("backend=%s: cannot wait for frames", devname);
		vale_cleanup(be);
		return (-1);
	}
	return (0);
}

/* Report the first sync that fails, and the first that works again. */
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

/* Whether the switch has taken all slots. */
static bool
vale_sent(struct netmap_ring *ring)
{
	return (nm_ring_space(ring) == ring->num_slots - 1);
}

/*
 * A sync left frames in the ring.  Their sender may use or unmap its buffers
 * now, so the next sync must not read them.  Slots cannot be taken back; but
 * the switch drops a frame of no bytes.
 */
static void
vale_withdraw(struct netmap_ring *ring)
{
	uint32_t i;

	for (i = nm_ring_next(ring, ring->tail); i != ring->head;
	    i = nm_ring_next(ring, i)) {
		ring->slot[i].len = 0;
		ring->slot[i].flags = 0;
	}
}

static void
vale_flush(struct vale_priv *priv)
{
	struct netmap_ring *ring = priv->port->txring;

	if (vale_sent(ring))
		return;
	vale_report(priv, &priv->tx_failed, vale_txsync(priv->port), "send");
	if (!vale_sent(ring))
		vale_withdraw(ring);
}

/*
 * The switch reads the addresses from the first slot, which must contain the
 * complete Ethernet header.  Copy the header of a frame whose first fragment is
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

/* How many of the bytes at `addr' a slot can point to. */
static size_t
vale_slot_fit(const struct vale_priv *priv, uintptr_t addr)
{
	size_t skew;

	skew = addr & (priv->align - 1);
	return (priv->indirect_max - (skew != 0 ? VALE_ALIGN + skew : 0));
}

/*
 * Lay a frame out over the slots from `head', at most `space' of them.  Returns
 * the slot after the last, or ring->head if it takes more.
 */
static uint32_t
vale_lay_out(const struct vale_priv *priv, const struct iovec *iov, int iovcnt,
    uint32_t head, uint32_t space)
{
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	uintptr_t addr;
	size_t left, n, skip;
	int i;

	ring = priv->port->txring;
	if (space == 0)
		return (ring->head);
	slot = &ring->slot[head];
	skip = 0;
	if (iov[0].iov_len < ETHER_HDR_LEN) {
		vale_gather_header(ring, slot, iov);
		skip = ETHER_HDR_LEN;
		head = nm_ring_next(ring, head);
		space--;
	}
	for (i = 0; i < iovcnt; i++) {
		n = MIN(iov[i].iov_len, skip);
		skip -= n;
		addr = (uintptr_t)iov[i].iov_base + n;
		for (left = iov[i].iov_len - n; left > 0; left -= n) {
			if (space-- == 0)
				return (ring->head);
			n = MIN(vale_slot_fit(priv, addr), left);
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

/* Copy bytes [off, off + len) of a frame, all of which exist.  Returns len. */
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

/* The same for a copy in the slots' own buffers. */
static uint32_t
vale_copy_out(const struct vale_priv *priv, const struct iovec *iov,
    size_t total, uint32_t head, uint32_t space)
{
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	size_t n, off;

	ring = priv->port->txring;
	if (howmany(total, priv->slot_max) > space)
		return (ring->head);
	for (off = 0; off < total; off += n) {
		slot = &ring->slot[head];
		n = vale_copy(NETMAP_BUF(ring, slot->buf_idx), iov, off,
		    MIN(priv->slot_max, total - off));
		slot->len = n;
		slot->flags = off + n < total ? NS_MOREFRAG : 0;
		head = nm_ring_next(ring, head);
	}
	return (head);
}

/* Whether a frame fits into one slot only if it is copied there. */
static bool
vale_needs_copy(const struct vale_priv *priv, const struct iovec *iov,
    int iovcnt, size_t total)
{
	return (total <= priv->slot_max && (iovcnt > 1 ||
	    total > vale_slot_fit(priv, (uintptr_t)iov->iov_base)));
}

/*
 * The fast path of vale_send_frame(): a frame of one fragment that fits into a
 * slot where it lies.  Returns false, having done nothing, if it is another or
 * the ring is full.
 */
static bool
vale_send_single_slot(const struct vale_priv *priv, const struct iovec *iov)
{
	struct netmap_ring *ring = priv->port->txring;
	struct netmap_slot *slot;
	uint32_t head = ring->head;

	if (head == ring->tail || iov->iov_len <= ETHER_HDR_LEN ||
	    iov->iov_len > vale_slot_fit(priv, (uintptr_t)iov->iov_base))
		return (false);
	slot = &ring->slot[head];
	slot->ptr = (uintptr_t)iov->iov_base;
	slot->len = iov->iov_len;
	slot->flags = NS_INDIRECT;
	ring->head = ring->cur = nm_ring_next(ring, head);
	return (true);
}

/*
 * Put the header of a frame into the slot at ring->head.  Returns the next
 * slot.
 */
static uint32_t
vale_put_header(struct netmap_ring *ring, const struct frame *frame)
{
	struct netmap_slot *slot = &ring->slot[ring->head];

	frame_vnet_encode(frame, (uint8_t *)NETMAP_BUF(ring, slot->buf_idx),
	    VALE_HEADER);
	slot->len = VALE_HEADER;
	slot->flags = NS_MOREFRAG | VALE_SLOT_HEADER;
	return (nm_ring_next(ring, ring->head));
}

/*
 * Returns the slot after the frame, or ring->head if it takes more space.  One
 * of many fragments may take less if it is copied (`copy').
 */
static uint32_t
vale_put_frame(const struct vale_priv *priv, const struct frame *frame,
    bool copy)
{
	struct netmap_ring *ring = priv->port->txring;
	uint32_t head = ring->head, space;

	space = MIN(NETMAP_MAX_FRAGS, nm_ring_space(ring));
	if (frame->f_flags != 0 && space > 0) {
		head = vale_put_header(ring, frame);
		space--;
	}
	if (copy)
		return (vale_copy_out(priv, frame->f_iov, frame->f_len, head,
		    space));
	return (vale_lay_out(priv, frame->f_iov, frame->f_niov, head, space));
}

/*
 * Whether the virtio-net header, `hdrlen' bytes, of the frame at ring->head is
 * valid for FreeBSD's switch, which does not check it: a checksum outside the
 * first slot would have it read beyond that slot, and VLAN tags longer than a
 * segment would have it write beyond its buffers.
 */
static bool
vale_valid(struct netmap_ring *ring, size_t hdrlen, size_t len)
{
	struct netmap_slot *slot = &ring->slot[ring->head];
	const uint8_t *hdr = (const uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
	struct iovec iov[2] = {
		{ __DECONST(uint8_t *, hdr + hdrlen), slot->len - hdrlen }
	};
	struct frame frame = { .f_iov = iov };
	struct frame_cut cut;

	if ((slot->flags & NS_MOREFRAG) != 0) {
		slot = &ring->slot[nm_ring_next(ring, ring->head)];
		iov[1].iov_base = NETMAP_BUF(ring, slot->buf_idx);
		iov[1].iov_len = slot->len;
	}
	frame_set(&frame, 2, len - hdrlen);
	if (!frame_vnet_decode(&frame, hdr))
		return (false);
	if ((frame.f_flags & FRAME_CSUM_PARTIAL) == 0)
		return (true);
	frame.f_hdr_len = 0;
	/* The switch cuts both into datagrams. */
	if (frame.f_gso_type == FRAME_GSO_UDP)
		frame.f_gso_type = FRAME_GSO_UDP_L4;
	return (frame_cut_begin(&cut, &frame) &&
	    cut.fc_hdrlen <= iov[0].iov_len);
}

/*
 * Put a frame, whose fragments begin with `hdrlen' bytes of a virtio-net
 * header, into the ring; copied if `copy' is set or it needs that.  Returns 0;
 * or EMSGSIZE, ENOBUFS or, if the header is invalid, EINVAL: it was dropped.
 */
static __attribute__((__noinline__)) int
vale_send_frame(struct vale_priv *priv, const struct frame *frame,
    size_t hdrlen, bool copy)
{
	struct netmap_ring *ring = priv->port->txring;
	uint32_t head;

	if (frame->f_len <= ETHER_HDR_LEN + hdrlen ||
	    frame->f_len > VALE_SEND_MAX + hdrlen)
		return (EMSGSIZE);
	copy |= hdrlen != 0 || (priv->port->single_slot &&
	    vale_needs_copy(priv, frame->f_iov, frame->f_niov, frame->f_len));
	head = vale_put_frame(priv, frame, copy);
	if (head == ring->head && nm_ring_space(ring) < NETMAP_MAX_FRAGS) {
		vale_flush(priv);
		head = vale_put_frame(priv, frame, copy);
	}
	/* An uncut packet would be sent again and again in the same form. */
	if (head == ring->head && frame->f_flags != 0)
		head = vale_put_frame(priv, frame, true);
	if (head == ring->head)
		return (ENOBUFS);
	if (hdrlen != 0 && priv->port->single_slot &&
	    !vale_valid(ring, hdrlen, frame->f_len))
		return (EINVAL);
	ring->head = ring->cur = head;
	return (0);
}

static bool
vale_port_send(struct frame_port *port, const struct frame *frame)
{
	struct vale_priv *priv = vale_of_port(port);

	if (frame->f_niov == 1 &&
	    FAST_PATH(vale_send_single_slot(priv, frame->f_iov)))
		return (true);
	return (vale_send_frame(priv, frame, 0, false) == 0);
}

/* The same if each frame has a header. */
static bool
vale_port_send_header(struct frame_port *port, const struct frame *frame)
{
	struct iovec iov[1 + FRAME_MAXIOV];
	struct frame whole = { .f_iov = iov };
	uint8_t hdr[VALE_HEADER];

	frame_vnet_encode(frame, hdr, sizeof(hdr));
	iov[0].iov_base = hdr;
	iov[0].iov_len = sizeof(hdr);
	memcpy(iov + 1, frame->f_iov, frame->f_niov * sizeof(*iov));
	frame_set(&whole, 1 + frame->f_niov, sizeof(hdr) + frame->f_len);
	return (vale_send_frame(vale_of_port(port), &whole, sizeof(hdr),
	    true) == 0);
}

static void
vale_port_flush(struct frame_port *port)
{
	vale_flush(vale_of_port(port));
}

/*
 * Frontends that send a frame a call.
 */

static void
vale_sync_posted(void *arg)
{
	vale_flush(arg);
}

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
	error = vale_send_frame(priv, &frame, be->be_vnet_hdr_len, copy);
	if (error == 0)
		vale_sender_post(&priv->sender, !copy);
	vale_sender_unlock(&priv->sender);
	if (error != 0) {
		errno = error;
		return (-1);
	}
	return (total);
}

/*
 * The receiving thread.
 */

/*
 * The slot after the frame that begins at `first', or `first' if the frame is
 * incomplete.  *nslotsp is how many slots it has, or 0 if it must be skipped:
 * the switch leaves slots empty when it cannot read a sender's memory, and when
 * it reserved more than it needed.
 */
static uint32_t
vale_frame_end(struct netmap_ring *ring, uint32_t first, uint32_t *nslotsp)
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
	*nslotsp = empty ? 0 : n;
	return (i);
}

/*
 * The fast path of vale_peek(): a frame of one slot.  Also fetches the frame
 * after it.  Returns false if no frame is pending, or the next is another.
 */
static bool
vale_peek_single_slot(struct vale_priv *priv, struct frame *frame)
{
	struct netmap_ring *ring = priv->port->rxring;
	const struct netmap_slot *slot = &ring->slot[priv->rx_next];
	uint32_t len;

	if (priv->rx_next == ring->tail || (slot->flags & NS_MOREFRAG) != 0)
		return (false);
	len = slot->len;
	if (len == 0)
		return (false);
	frame->f_iov[0].iov_base = NETMAP_BUF(ring, slot->buf_idx);
	frame->f_iov[0].iov_len = len;
	frame_set(frame, 1, len);
	priv->rx_end = nm_ring_next(ring, priv->rx_next);
	slot = &ring->slot[priv->rx_end];
	__builtin_prefetch(NETMAP_BUF(ring, slot->buf_idx));
	return (true);
}

/*
 * Describe the frame in slots [first, end) by *frame.  If `header' is set, it
 * begins with a virtio-net header.  Returns false if it has too many slots or
 * an invalid header.
 */
static bool
vale_show(struct netmap_ring *ring, uint32_t first, uint32_t end,
    struct frame *frame, bool header)
{
	struct netmap_slot *slot = &ring->slot[first];
	const uint8_t *hdr = (const uint8_t *)NETMAP_BUF(ring, slot->buf_idx);
	uint32_t i, len, skip, total = 0;
	int n = 0;

	skip = header ? VALE_HEADER : 0;
	if (slot->len < skip)
		return (false);
	for (i = first; i != end; i = nm_ring_next(ring, i), skip = 0) {
		slot = &ring->slot[i];
		len = slot->len - skip;
		if (len == 0)
			continue;
		if (n == FRAME_MAXIOV)
			return (false);
		frame->f_iov[n].iov_base = NETMAP_BUF(ring, slot->buf_idx) +
		    skip;
		frame->f_iov[n++].iov_len = len;
		total += len;
	}
	frame_set(frame, n, total);
	if (!header)
		return (true);
	if (n == 0 || !frame_vnet_decode(frame, hdr))
		return (false);
	if (n == 1 && (frame->f_flags & FRAME_CSUM_PARTIAL) != 0) {
		/* frame.h: two at least. */
		frame->f_iov[1].iov_base = frame->f_iov[0].iov_base;
		frame->f_iov[1].iov_len = 0;
		frame->f_niov = 2;
	}
	return (true);
}

/*
 * Look at the next frame.  If `headers' is set, each begins with a virtio-net
 * header.  Returns false if none is pending.
 */
static bool
vale_peek_slots(struct vale_priv *priv, struct frame *frame, bool headers)
{
	struct netmap_ring *ring = priv->port->rxring;
	uint32_t end, n;

	for (;; priv->rx_next = end) {
		end = vale_frame_end(ring, priv->rx_next, &n);
		if (end == priv->rx_next)
			return (false);
		if (n > 0 && vale_show(ring, priv->rx_next, end, frame,
		    headers || (ring->slot[priv->rx_next].flags &
		    VALE_SLOT_HEADER) != 0))
			break;
	}
	priv->rx_end = end;
	return (true);
}

static bool
vale_peek(struct frame_source *source, struct frame *frame)
{
	struct vale_priv *priv = vale_of_source(source);

	return (FAST_PATH(vale_peek_single_slot(priv, frame)) ||
	    vale_peek_slots(priv, frame, false));
}

/* The same if each frame has a header. */
static bool
vale_peek_header(struct frame_source *source, struct frame *frame)
{
	return (vale_peek_slots(vale_of_source(source), frame, true));
}

static void
vale_next(struct frame_source *source)
{
	struct vale_priv *priv = vale_of_source(source);

	priv->rx_next = priv->rx_end;
}

static void
vale_sync(struct vale_priv *priv)
{
	struct netmap_ring *ring = priv->port->rxring;

	ring->head = ring->cur = priv->rx_next;
	vale_report(priv, &priv->rx_failed, vale_rxsync(priv->port),
	    "receive");
}

static void
vale_port_sync(struct frame_port *port)
{
	vale_sync(vale_of_port(port));
}

static void
vale_port_set_polled(struct frame_port *port, bool on)
{
	struct netmap_ring *ring = vale_of_port(port)->port->rxring;

	if (on)
		ring->flags |= VALE_RING_POLLED;
	else
		ring->flags &= ~VALE_RING_POLLED;
}

static bool
vale_port_set_sink(struct frame_port *port,
    void (*sink)(void *, struct frame_source *), void *arg)
{
	return (vale_set_sink(vale_of_port(port)->port, sink, arg) == 0);
}

/*
 * FreeBSD's switch cuts a packet into frames of 1514 bytes, whatever segment
 * size its header has: smaller segments must be cut before.  It has no type for
 * datagrams, and makes no fragments.
 */
static bool
vale_port_takes_uncut(const struct frame_port *port __unused,
    const struct frame *frame)
{
	const uint8_t type = frame->f_gso_type & ~FRAME_GSO_ECN;

	return ((type == FRAME_GSO_TCPV4 || type == FRAME_GSO_TCPV6) &&
	    frame_longest(frame) >= VALE_SEGMENT);
}

static uint64_t
vale_port_missed(const struct frame_port *port)
{
	const struct vale_priv *priv;

	priv = __containerof(port, const struct vale_priv, frame_port);
	return (vale_missed(priv->port));
}

static const struct frame_port_ops vale_port_ops = {
	.fpo_send = vale_port_send,
	.fpo_flush = vale_port_flush,
	.fpo_sync = vale_port_sync,
	.fpo_set_polled = vale_port_set_polled,
	.fpo_set_sink = vale_port_set_sink,
	.fpo_set_offloads = vale_port_set_offloads,
	.fpo_missed = vale_port_missed,
};

/* Over FreeBSD's switch, with offloads. */
static const struct frame_port_ops vale_header_ops = {
	.fpo_send = vale_port_send_header,
	.fpo_flush = vale_port_flush,
	.fpo_sync = vale_port_sync,
	.fpo_set_polled = vale_port_set_polled,
	.fpo_set_sink = vale_port_set_sink,
	.fpo_takes_uncut = vale_port_takes_uncut,
	.fpo_missed = vale_port_missed,
};

static bool
vale_port_set_offloads(struct frame_port *port)
{
	struct vale_priv *priv = vale_of_port(port);
	bool headers;

	if (vale_set_header(priv->port, VALE_HEADER_SLOT) == 0)
		return (true);
	headers = vale_set_header(priv->port, VALE_HEADER) == 0;
	if (headers) {
		port->fp_ops = &vale_header_ops;
		port->fp_source->fs_peek = vale_peek_header;
	}
	/* An adapter needs no other setting. */
	if (vale_limit(priv->port) != 0)
		EPRINTLN("%s: cannot limit the descriptor: %s",
		    priv->port->name, strerror(errno));
	return (headers);
}

/* Look at the next frame for a frontend that does not know of syncs. */
static bool
vale_peek_sync(struct vale_priv *priv, struct frame *frame)
{
	if (vale_peek(&priv->frame_source, frame))
		return (true);
	vale_sync(priv);
	return (vale_peek(&priv->frame_source, frame));
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
	vale_next(&priv->frame_source);
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

/* vale_set_header() with no sync in progress. */
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

/* `features' also has those that frontend and guest have among themselves. */
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
	return (&priv->frame_port);
}

/* Not static: compat/mk has the linker look for it. */
extern const struct net_backend_port net_backend_vale_port;
const struct net_backend_port net_backend_vale_port = {
	.nbp_prefix = "vale",
	.nbp_port = vale_frame_port,
};
DATA_SET(net_backend_port_set, net_backend_vale_port);
