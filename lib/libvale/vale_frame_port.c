/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A frame port over a VALE port; see vale_frame_port.h.
 *
 * Send.  A frame becomes as many transmit slots as it has fragments, each
 * pointing (NS_INDIRECT) at the caller's memory, so that the only copy is the
 * switch's, into the receiver's ring.  Frames collect in the ring until a sync,
 * which sends them all: frame_port_flush().
 *
 * Receive.  Frames are shown where the switch put them.  vfp_rx_next runs ahead
 * of ring->head over the frames that were taken; frame_port_sync() makes it the
 * new head, which returns their slots.
 *
 * FreeBSD's switch passes the slots on to an adapter or the host's stack, if
 * attached to the switch, as if each slot were a frame.  There a frame of
 * several fragments is copied into one slot's own buffer if it fits.
 *
 * Frames with a virtio-net header go out through the slots' own buffers: a
 * switch that does what the header asks for works on the frame where it lies,
 * and that must be the switch's memory.  FreeBSD's trusts the header, so
 * vfp_valid() checks it.  A port that takes offloads has the header on every
 * frame there.  With the switch in this process the port uses
 * VALE_HEADER_FRAME, and no frame has a header.
 */

#include <sys/param.h>
#include <sys/systm.h>
#include <sys/fast_path.h>
#include <sys/uio.h>

#include <net/ethernet.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "frame_cut.h"
#include "frame_vnet.h"
#include "libvale.h"
#include "vale_frame_port.h"

#define	VALE_SEND_MAX	65535	/* bytes without FCS and headers */

/*
 * FreeBSD's switch copies a fragment with its offset within 64 bytes unchanged;
 * unless that is 0, the switch leaves the first 64 bytes of the buffer free,
 * and drops a fragment that then does not fit.  If the receiver has a
 * virtio-net header and the sender none, the switch puts one before the first
 * fragment and does not check that both fit: 64 bytes stay free for that.
 */
#define	VALE_ALIGN	64

/* Bytes of a frame that FreeBSD's switch cuts: NM_BDG_MFS_DEFAULT. */
#define	VALE_SEGMENT	1514

static struct vale_frame_port *
vfp_of_port(struct frame_port *port)
{
	return (__containerof(port, struct vale_frame_port, vfp_port));
}

static struct vale_frame_port *
vfp_of_source(struct frame_source *source)
{
	return (__containerof(source, struct vale_frame_port, vfp_source));
}

static void __attribute__((__format__(__printf__, 2, 3)))
vfp_log(const struct vale_frame_port *vp, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vp->vfp_vlog(fmt, ap);
	va_end(ap);
}

static bool	vfp_set_offloads(struct frame_port *port);

/* Report the first sync that fails, and the first that works again. */
static void
vfp_report(const struct vale_frame_port *vp, bool *failed, int error,
    const char *what)
{
	if (*failed == (error != 0))
		return;
	*failed = error != 0;
	if (*failed)
		vfp_log(vp, "%s: cannot %s: %s",
		    vp->vfp_desc->common->name, what, strerror(errno));
	else
		vfp_log(vp, "%s: can %s again", vp->vfp_desc->common->name,
		    what);
}

/*
 * The sending thread.
 */

/* Return whether the switch has taken all slots. */
static bool
vfp_sent(struct netmap_ring *ring)
{
	return (nm_ring_space(ring) == ring->num_slots - 1);
}

/*
 * Make the frames that a sync left in the ring empty, which the switch drops:
 * slots cannot be taken back, and their sender may use or unmap its buffers
 * now, so the next sync must not read the buffers.
 */
static void
vfp_withdraw(struct netmap_ring *ring)
{
	uint32_t i;

	for (i = nm_ring_next(ring, ring->tail); i != ring->head;
	    i = nm_ring_next(ring, i)) {
		ring->slot[i].len = 0;
		ring->slot[i].flags = 0;
	}
}

static void
vfp_flush(struct frame_port *port)
{
	struct vale_frame_port *vp = vfp_of_port(port);
	struct netmap_ring *ring = vp->vfp_desc->txring;

	if (vfp_sent(ring))
		return;
	vfp_report(vp, &vp->vfp_tx_failed, vale_txsync(vp->vfp_desc), "send");
	if (!vfp_sent(ring))
		vfp_withdraw(ring);
}

/*
 * Copy the Ethernet header of a frame whose first fragment is shorter into the
 * slot's own buffer: the switch reads the addresses from the first slot.  The
 * frame is longer than a header.
 */
static void
vfp_gather_header(struct netmap_ring *ring, struct netmap_slot *slot,
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

/* Return how many of the bytes at `addr' a slot can point to. */
static size_t
vfp_slot_fit(const struct vale_frame_port *vp, uintptr_t addr)
{
	size_t skew;

	skew = addr & (vp->vfp_align - 1);
	return (vp->vfp_indirect_max - (skew != 0 ? VALE_ALIGN + skew : 0));
}

/*
 * Lay a frame out over the slots from `head', at most `space' of them.  Returns
 * the slot after the last, or ring->head if it takes more.
 */
static uint32_t
vfp_lay_out(const struct vale_frame_port *vp, const struct iovec *iov,
    int iovcnt, uint32_t head, uint32_t space)
{
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	uintptr_t addr;
	size_t left, n, skip;
	int i;

	ring = vp->vfp_desc->txring;
	if (space == 0)
		return (ring->head);
	slot = &ring->slot[head];
	skip = 0;
	if (iov[0].iov_len < ETHER_HDR_LEN) {
		vfp_gather_header(ring, slot, iov);
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
			n = MIN(vfp_slot_fit(vp, addr), left);
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
vfp_copy(void *buf, const struct iovec *iov, size_t off, size_t len)
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

/* Copy a frame into the slots' own buffers.  Returns as vfp_lay_out() does. */
static uint32_t
vfp_copy_out(const struct vale_frame_port *vp, const struct iovec *iov,
    size_t total, uint32_t head, uint32_t space)
{
	struct netmap_ring *ring;
	struct netmap_slot *slot;
	size_t n, off;

	ring = vp->vfp_desc->txring;
	if (howmany(total, vp->vfp_slot_max) > space)
		return (ring->head);
	for (off = 0; off < total; off += n) {
		slot = &ring->slot[head];
		n = vfp_copy(NETMAP_BUF(ring, slot->buf_idx), iov, off,
		    MIN(vp->vfp_slot_max, total - off));
		slot->len = n;
		slot->flags = off + n < total ? NS_MOREFRAG : 0;
		head = nm_ring_next(ring, head);
	}
	return (head);
}

/* Return whether a frame fits into one slot only as a copy. */
static bool
vfp_needs_copy(const struct vale_frame_port *vp, const struct iovec *iov,
    int iovcnt, size_t total)
{
	return (total <= vp->vfp_slot_max && (iovcnt > 1 ||
	    total > vfp_slot_fit(vp, (uintptr_t)iov->iov_base)));
}

/*
 * Put a frame of one fragment that fits into a slot where it lies: the fast
 * path of vale_frame_port_put().  Returns false, having done nothing, if the
 * frame is another or the ring is full.
 */
static bool
vfp_send_single_slot(const struct vale_frame_port *vp, const struct iovec *iov)
{
	struct netmap_ring *ring = vp->vfp_desc->txring;
	struct netmap_slot *slot;
	uint32_t head = ring->head;

	if (head == ring->tail || iov->iov_len <= ETHER_HDR_LEN ||
	    iov->iov_len > vfp_slot_fit(vp, (uintptr_t)iov->iov_base))
		return (false);
	slot = &ring->slot[head];
	slot->ptr = (uintptr_t)iov->iov_base;
	slot->len = iov->iov_len;
	slot->flags = NS_INDIRECT;
	ring->head = ring->cur = nm_ring_next(ring, head);
	return (true);
}

/*
 * Put a frame, or its copy, which may take less space, into the slots from
 * ring->head on.  Returns the next slot, or ring->head if there is no space.
 */
static uint32_t
vfp_put_frame(const struct vale_frame_port *vp, const struct frame *frame,
    bool copy)
{
	struct netmap_ring *ring = vp->vfp_desc->txring;
	const uint32_t head = ring->head;
	const uint32_t space = MIN(NETMAP_MAX_FRAGS, nm_ring_space(ring));
	uint32_t end;

	end = copy ? vfp_copy_out(vp, frame->f_iov, frame->f_len, head, space) :
	    vfp_lay_out(vp, frame->f_iov, frame->f_niov, head, space);
	if (end != head && (frame->f_flags & FRAME_CSUM_PARTIAL) != 0) {
		ring->slot[head].flags |= VALE_SLOT_FRAME;
		frame_set_known(&vp->vfp_desc->txframe[head], frame);
	}
	return (end);
}

/*
 * Return whether the virtio-net header, `hdrlen' bytes, of the frame at
 * ring->head is valid for FreeBSD's switch, which does not check: with a
 * checksum outside the first slot the switch would read beyond that slot, and
 * with VLAN tags longer than a segment write beyond its buffers.
 */
static bool
vfp_valid(struct netmap_ring *ring, size_t hdrlen, size_t len)
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

__attribute__((__noinline__)) int
vale_frame_port_put(struct vale_frame_port *vp, const struct frame *frame,
    size_t hdrlen, bool copy)
{
	struct netmap_ring *ring = vp->vfp_desc->txring;
	uint32_t head;

	if (frame->f_len <= ETHER_HDR_LEN + hdrlen ||
	    frame->f_len > VALE_SEND_MAX + hdrlen)
		return (EMSGSIZE);
	copy |= hdrlen != 0 || (vp->vfp_desc->common->single_slot &&
	    vfp_needs_copy(vp, frame->f_iov, frame->f_niov, frame->f_len));
	head = vfp_put_frame(vp, frame, copy);
	if (head == ring->head && nm_ring_space(ring) < NETMAP_MAX_FRAGS) {
		frame_port_flush(&vp->vfp_port);
		head = vfp_put_frame(vp, frame, copy);
	}
	/* An uncut packet would be sent again and again in the same form. */
	if (head == ring->head && frame->f_flags != 0)
		head = vfp_put_frame(vp, frame, true);
	if (head == ring->head)
		return (ENOBUFS);
	if (hdrlen != 0 && vp->vfp_desc->common->single_slot &&
	    !vfp_valid(ring, hdrlen, frame->f_len))
		return (EINVAL);
	ring->head = ring->cur = head;
	return (0);
}

static bool
vfp_send(struct frame_port *port, const struct frame *frame)
{
	struct vale_frame_port *vp = vfp_of_port(port);

	if (frame_complete(frame) &&
	    FAST_PATH(vfp_send_single_slot(vp, frame->f_iov)))
		return (true);
	return (vale_frame_port_put(vp, frame, 0, false) == 0);
}

bool
vale_frame_port_send_header(struct frame_port *port, const struct frame *frame)
{
	struct iovec iov[1 + FRAME_MAXIOV];
	struct frame whole = { .f_iov = iov };
	uint8_t hdr[VALE_HEADER];

	frame_vnet_encode(frame, hdr, sizeof(hdr));
	iov[0].iov_base = hdr;
	iov[0].iov_len = sizeof(hdr);
	memcpy(iov + 1, frame->f_iov, frame->f_niov * sizeof(*iov));
	frame_set(&whole, 1 + frame->f_niov, sizeof(hdr) + frame->f_len);
	return (vale_frame_port_put(vfp_of_port(port), &whole, sizeof(hdr),
	    true) == 0);
}

/*
 * The receiving thread.
 */

/*
 * Return the slot after the frame that begins at `first', or `first' if the
 * frame is incomplete.  *nslotsp is how many slots the frame has, or 0 to skip
 * the frame: the switch leaves slots empty when a sender's memory cannot be
 * read, and when more slots were reserved than needed.
 */
static uint32_t
vfp_frame_end(struct netmap_ring *ring, uint32_t first, uint32_t *nslotsp)
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
 * Show a frame of one slot, and prefetch the frame behind: the fast path of
 * vfp_peek().  Returns false if no frame is pending, or the next is another.
 */
static bool
vfp_peek_single_slot(struct vale_frame_port *vp, struct frame *frame)
{
	struct netmap_ring *ring = vp->vfp_desc->rxring;
	const struct netmap_slot *slot = &ring->slot[vp->vfp_rx_next];
	uint32_t len;

	if (vp->vfp_rx_next == ring->tail ||
	    (slot->flags & (NS_MOREFRAG | VALE_SLOT_FRAME)) != 0)
		return (false);
	len = slot->len;
	if (len == 0)
		return (false);
	frame->f_iov[0].iov_base = NETMAP_BUF(ring, slot->buf_idx);
	frame->f_iov[0].iov_len = len;
	frame_set(frame, 1, len);
	vp->vfp_rx_end = nm_ring_next(ring, vp->vfp_rx_next);
	slot = &ring->slot[vp->vfp_rx_end];
	__builtin_prefetch(NETMAP_BUF(ring, slot->buf_idx));
	return (true);
}

/*
 * Describe the frame in slots [first, end) by *frame.  If `header' is set, the
 * frame begins with a virtio-net header.  Returns false if there are too many
 * slots or the header is invalid.
 */
static bool
vfp_show(const struct vale_frame_port *vp, uint32_t first, uint32_t end,
    struct frame *frame, bool header)
{
	const struct vale_desc *d = vp->vfp_desc;
	struct netmap_ring *ring = d->rxring;
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
	if (header)
		return (n > 0 && frame_vnet_decode(frame, hdr));
	if ((ring->slot[first].flags & VALE_SLOT_FRAME) != 0 &&
	    d->rxframe != NULL)
		frame_set_known(frame, &d->rxframe[first]);
	return (true);
}

/*
 * Look at the next frame.  If `header' is set, each frame begins with a
 * virtio-net header.  Returns false if no frame is pending.
 */
static bool
vfp_peek_slots(struct vale_frame_port *vp, struct frame *frame, bool header)
{
	struct netmap_ring *ring = vp->vfp_desc->rxring;
	uint32_t end, n;

	for (;; vp->vfp_rx_next = end) {
		end = vfp_frame_end(ring, vp->vfp_rx_next, &n);
		if (end == vp->vfp_rx_next)
			return (false);
		if (n > 0 && vfp_show(vp, vp->vfp_rx_next, end, frame, header))
			break;
	}
	vp->vfp_rx_end = end;
	return (true);
}

static bool
vfp_peek(struct frame_source *source, struct frame *frame)
{
	struct vale_frame_port *vp = vfp_of_source(source);

	return (FAST_PATH(vfp_peek_single_slot(vp, frame)) ||
	    vfp_peek_slots(vp, frame, false));
}

bool
vale_frame_port_peek_header(struct frame_source *source, struct frame *frame)
{
	return (vfp_peek_slots(vfp_of_source(source), frame, true));
}

static void
vfp_next(struct frame_source *source)
{
	struct vale_frame_port *vp = vfp_of_source(source);

	vp->vfp_rx_next = vp->vfp_rx_end;
}

static void
vfp_sync(struct frame_port *port)
{
	struct vale_frame_port *vp = vfp_of_port(port);
	struct netmap_ring *ring = vp->vfp_desc->rxring;

	ring->head = ring->cur = vp->vfp_rx_next;
	vfp_report(vp, &vp->vfp_rx_failed, vale_rxsync(vp->vfp_desc),
	    "receive");
}

static bool
vfp_set_sink(struct frame_port *port,
    void (*sink)(void *, struct frame_source *), void *arg)
{
	return (vale_set_sink(vfp_of_port(port)->vfp_desc, sink, arg) == 0);
}

/*
 * Return whether FreeBSD's switch cuts the packet well: into frames of 1514
 * bytes, whatever segment size the header has, so smaller segments must be cut
 * before; into no datagrams and no fragments.
 */
static bool
vfp_takes_uncut(const struct frame_port *port __unused,
    const struct frame *frame)
{
	const uint8_t type = frame->f_gso_type & ~FRAME_GSO_ECN;

	return ((type == FRAME_GSO_TCPV4 || type == FRAME_GSO_TCPV6) &&
	    frame_longest(frame) >= VALE_SEGMENT);
}

static uint64_t
vfp_missed(const struct frame_port *port)
{
	const struct vale_frame_port *vp;

	vp = __containerof(port, const struct vale_frame_port, vfp_port);
	return (vale_missed(vp->vfp_desc));
}

static const struct frame_port_ops vfp_ops = {
	.fpo_send = vfp_send,
	.fpo_flush = vfp_flush,
	.fpo_sync = vfp_sync,
	.fpo_set_sink = vfp_set_sink,
	.fpo_set_offloads = vfp_set_offloads,
	.fpo_missed = vfp_missed,
};

/* Over FreeBSD's switch, with offloads. */
static const struct frame_port_ops vfp_header_ops = {
	.fpo_send = vale_frame_port_send_header,
	.fpo_flush = vfp_flush,
	.fpo_sync = vfp_sync,
	.fpo_set_sink = vfp_set_sink,
	.fpo_takes_uncut = vfp_takes_uncut,
	.fpo_missed = vfp_missed,
};

static bool
vfp_set_offloads(struct frame_port *port)
{
	struct vale_frame_port *vp = vfp_of_port(port);
	bool headers;

	if (vale_set_header(vp->vfp_desc, VALE_HEADER_FRAME) == 0)
		return (true);
	headers = vale_set_header(vp->vfp_desc, VALE_HEADER) == 0;
	if (headers) {
		port->fp_ops = &vfp_header_ops;
		port->fp_source->fs_peek = vale_frame_port_peek_header;
	}
	/* An adapter needs no other setting. */
	if (vale_limit(vp->vfp_desc) != 0)
		vfp_log(vp, "%s: cannot limit the descriptor: %s",
		    vp->vfp_desc->common->name, strerror(errno));
	return (headers);
}

void
vale_frame_port_begin(struct vale_frame_port *vp, struct vale_desc *d,
    const struct frame_port_ops *ops, void (*vlog)(const char *fmt, va_list ap))
{
	vp->vfp_desc = d;
	vp->vfp_vlog = vlog;
	vp->vfp_slot_max = MIN(d->txring->nr_buf_size, UINT16_MAX);
	vp->vfp_indirect_max = MIN(d->common->indirect_max, UINT16_MAX);
	vp->vfp_align = 1;
	if (d->common->single_slot) {
		vp->vfp_align = VALE_ALIGN;
		vp->vfp_slot_max = (vp->vfp_slot_max & ~(VALE_ALIGN - 1)) -
		    VALE_ALIGN;
		vp->vfp_indirect_max = vp->vfp_slot_max;
	}
	vp->vfp_rx_next = d->rxring->head;
	vp->vfp_port.fp_ops = ops;
	vp->vfp_port.fp_source = &vp->vfp_source;
	vp->vfp_source.fs_peek = vfp_peek;
	vp->vfp_source.fs_next = vfp_next;
}

int
vale_frame_port_init(struct vale_frame_port *vp, struct vale_desc *d,
    void (*vlog)(const char *fmt, va_list ap))
{
	memset(vp, 0, sizeof(*vp));
	if (d->txring->nr_buf_size < VALE_FRAME_PORT_BUF_MIN) {
		errno = EMSGSIZE;
		return (-1);
	}
	/* The last user of a persistent port may have left a header. */
	if (vale_set_header(d, 0) != 0)
		return (-1);
	vale_frame_port_begin(vp, d, &vfp_ops, vlog);
	return (0);
}

const char *
vale_frame_port_why(const char *name, int error)
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
