/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * An interface through AF_XDP: hostif_impl.h, and Linux's
 * Documentation/networking/af_xdp.rst.
 *
 *	memory		chunks of each queue's receive ring, then those of the
 *			transmit ring, shared with the kernel
 *	fill ring	chunks for received frames	ours ---> the kernel's
 *	receive ring	chunks with frames		the kernel's ---> ours
 *	transmit ring	chunks with frames to send	ours ---> the kernel's
 *	completion ring	chunks that were sent		the kernel's ---> ours
 *
 * Each receive queue of the interface has a socket with a fill ring and a
 * receive ring.  All frames leave through the first one.  A frame is in one
 * chunk, as it is on the wire: the port has no virtio-net headers, so the
 * switch cuts and sums what needs it.
 *
 * Receive.  The transmit slots of the port point at the frames where they lie;
 * the switch copies them, and the kernel gets a batch of chunks back after the
 * sync.
 *
 * Transmit.  Frames are copied to chunks.  Where the kernel sends by copying,
 * sendto(2) sends a part of the ring; where the driver reads the chunks itself,
 * it is woken if it says so.
 *
 * Frames whose VLAN tags the interface takes out are dropped: it was not one
 * that does, but somebody may have changed that.  Tags of 802.1ad, which a veth
 * interface takes out unless told otherwise and few use, only cause a line.
 * The sandbox permits no socket for a queue that is added: what arrives there
 * is lost, and a line says so.
 *
 * The rings are the kernel's.  A process with the same descriptors could write
 * to them, so addresses and lengths are read once and checked, and no loop is
 * as long as an index says.  It could punch holes into the memory of the
 * chunks, too; if there is no page to fill one, the interface is detached.
 * Only the interface's thread.
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>

#include <linux/if_xdp.h>

#include <stdlib.h>
#include <string.h>

#include "frame_cursor.h"
#include "hostif_ethtool.h"
#include "hostif_impl.h"
#include "peer_mem.h"
#include "peer_fault.h"

struct xdp_ring {
	uint8_t		*xr_map;
	size_t		 xr_size;
	uint32_t	*xr_producer;
	uint32_t	*xr_consumer;
	uint32_t	*xr_flags;
	void		*xr_entries;	/* struct xdp_desc or uint64_t */
	uint32_t	 xr_next;	/* our end */
};

struct xdp_queue {
	int		 xq_fd;
	struct xdp_ring	 xq_rx;
	struct xdp_ring	 xq_fill;
};

struct xdp {
	struct peer_mem	 xd_dma;	/* the memory, mapped */
	uint8_t		*xd_mem;
	size_t		 xd_size;
	unsigned int	 xd_nqueues;
	unsigned int	 xd_queue;	/* to receive from first */
	struct xdp_queue xd_queues[HOSTIF_XDP_QUEUES];
	struct xdp_ring	 xd_tx;
	struct xdp_ring	 xd_completion;
	uint32_t	 xd_free[HOSTIF_XDP_SLOTS]; /* chunks to transmit */
	uint32_t	 xd_nfree;
	uint64_t	 xd_lost;	/* counted */
	struct hostif_ethtool xd_ethtool; /* as the kernel last told */
};

static const char *
ring_map(struct xdp_ring *xr, int fd, const struct xdp_ring_offset *off,
    uint64_t what, size_t entry)
{
	xr->xr_size = off->desc + HOSTIF_XDP_SLOTS * entry;
	xr->xr_map = mmap(NULL, xr->xr_size, PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, what);
	if (xr->xr_map == MAP_FAILED) {
		xr->xr_map = NULL;
		return ("rings");
	}
	xr->xr_producer = (uint32_t *)(xr->xr_map + off->producer);
	xr->xr_consumer = (uint32_t *)(xr->xr_map + off->consumer);
	xr->xr_flags = (uint32_t *)(xr->xr_map + off->flags);
	xr->xr_entries = xr->xr_map + off->desc;
	return (NULL);
}

static void
ring_unmap(struct xdp_ring *xr)
{
	if (xr->xr_map != NULL)
		munmap(xr->xr_map, xr->xr_size);
}

/* Return the number of entries that the kernel has produced. */
static uint32_t
ring_pending(const struct xdp_ring *xr)
{
	return (atomic_load_acq_32(xr->xr_producer) - xr->xr_next);
}

/* Return the number of entries that the kernel has not consumed. */
static uint32_t
ring_unconsumed(const struct xdp_ring *xr)
{
	return (xr->xr_next - atomic_load_acq_32(xr->xr_consumer));
}

/* Return whether the kernel sleeps until it is called. */
static bool
ring_sleeps(const struct xdp_ring *xr)
{
	return ((atomic_load_32(xr->xr_flags) & XDP_RING_NEED_WAKEUP) != 0);
}

static struct xdp_desc *
ring_frame(const struct xdp_ring *xr, uint32_t i)
{
	return ((struct xdp_desc *)xr->xr_entries + i % HOSTIF_XDP_SLOTS);
}

static uint64_t *
ring_chunk(const struct xdp_ring *xr, uint32_t i)
{
	return ((uint64_t *)xr->xr_entries + i % HOSTIF_XDP_SLOTS);
}

/* Give the kernel the entries up to our end. */
static void
ring_produce(struct xdp_ring *xr)
{
	atomic_store_rel_32(xr->xr_producer, xr->xr_next);
}

static void
ring_consume(struct xdp_ring *xr)
{
	atomic_store_rel_32(xr->xr_consumer, xr->xr_next);
}

/* Map the rings of a queue, and give the kernel its chunks. */
static const char *
queue_start(struct xdp *xd, unsigned int n, int fd)
{
	struct xdp_queue *xq = &xd->xd_queues[n];
	struct xdp_mmap_offsets off;
	socklen_t len = sizeof(off);
	const char *failed = NULL;
	uint32_t i;

	if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &len) == -1 ||
	    len != sizeof(off))
		return ("rings");
	xq->xq_fd = fd;
	failed = ring_map(&xq->xq_rx, fd, &off.rx, XDP_PGOFF_RX_RING,
	    sizeof(struct xdp_desc));
	if (failed == NULL)
		failed = ring_map(&xq->xq_fill, fd, &off.fr,
		    XDP_UMEM_PGOFF_FILL_RING, sizeof(uint64_t));
	if (failed == NULL && n == 0)
		failed = ring_map(&xd->xd_tx, fd, &off.tx, XDP_PGOFF_TX_RING,
		    sizeof(struct xdp_desc));
	if (failed == NULL && n == 0)
		failed = ring_map(&xd->xd_completion, fd, &off.cr,
		    XDP_UMEM_PGOFF_COMPLETION_RING, sizeof(uint64_t));
	if (failed != NULL)
		return (failed);
	for (i = 0; i < HOSTIF_XDP_SLOTS; i++)
		*ring_chunk(&xq->xq_fill, i) =
		    (uint64_t)(n * HOSTIF_XDP_SLOTS + i) * HOSTIF_XDP_CHUNK;
	xq->xq_fill.xr_next = HOSTIF_XDP_SLOTS;
	ring_produce(&xq->xq_fill);
	return (NULL);
}

/*
 * Pause nobody: the memory is mapped before the thread runs, until the thread
 * has ended.
 */
static void
memory_pause(void *arg __unused, bool paused __unused)
{
}

/*
 * Map the memory, which who attaches the interface passes, and may take away:
 * as that of a guest (peer_mem.h), at address 0.
 */
static const char *
memory_map(struct hostif *hi, int fd)
{
	struct xdp *xd = hi->data;
	const char *why;

	xd->xd_size = HOSTIF_XDP_MEMORY(xd->xd_nqueues);
	peer_mem_init(&xd->xd_dma, xd->xd_size, memory_pause, NULL);
	errno = peer_fault_add(&xd->xd_dma, hostif_withdrawn, hi);
	if (errno == 0)
		errno = peer_mem_map(&xd->xd_dma, fd, 0, 0, xd->xd_size,
		    PROT_READ | PROT_WRITE, &why);
	if (errno != 0)
		return ("memory");
	xd->xd_mem = peer_mem_addr(&xd->xd_dma, 0, xd->xd_size,
	    PROT_READ | PROT_WRITE);
	return (NULL);
}

static void
xdp_stop(struct hostif *hi)
{
	struct xdp *xd = hi->data;
	unsigned int i;

	for (i = 0; i < xd->xd_nqueues; i++) {
		ring_unmap(&xd->xd_queues[i].xq_rx);
		ring_unmap(&xd->xd_queues[i].xq_fill);
	}
	ring_unmap(&xd->xd_tx);
	ring_unmap(&xd->xd_completion);
	peer_mem_reset(&xd->xd_dma);
	peer_fault_remove(&xd->xd_dma);
	free(xd);
}

static const char *
xdp_start(struct hostif *hi)
{
	const int *fd = hi->fds.hf_fd;
	const char *failed;
	struct xdp *xd;
	unsigned int i;
	int error;

	xd = calloc(1, sizeof(*xd));
	if (xd == NULL)
		return ("memory");
	hi->data = xd;
	xd->xd_nqueues = hi->fds.hf_nfds - HOSTIF_FD_XSK;
	failed = memory_map(hi, fd[HOSTIF_FD_MEMORY]);
	for (i = 0; i < xd->xd_nqueues && failed == NULL; i++)
		failed = queue_start(xd, i, fd[HOSTIF_FD_XSK + i]);
	if (failed != NULL) {
		error = errno;
		xdp_stop(hi);
		errno = error;
		return (failed);
	}
	for (i = 0; i < HOSTIF_XDP_SLOTS; i++)
		xd->xd_free[i] = xd->xd_nqueues * HOSTIF_XDP_SLOTS + i;
	xd->xd_nfree = HOSTIF_XDP_SLOTS;
	xd->xd_ethtool.he_queues = xd->xd_nqueues;
	hostif_ethtool_ask(fd[HOSTIF_FD_ETHTOOL], hi->fds.hf_family,
	    hi->fds.hf_index);
	return (NULL);
}

/* Put a received frame into the port's ring.  Returns its bytes, or 0. */
static uint32_t
xdp_receive_frame(struct hostif *hi, const struct xdp_desc *desc)
{
	const struct xdp *xd = hi->data;
	const uint64_t addr = *(const volatile uint64_t *)&desc->addr;
	const uint32_t len = *(const volatile uint32_t *)&desc->len;

	if (xd->xd_ethtool.he_untags) {
		hostif_count(hi, HOSTIF_C_RX_UNTAGGED, 1);
		return (0);
	}
	if (len < HOSTIF_ETHER || len > HOSTIF_XDP_CHUNK ||
	    addr > xd->xd_size - len) {
		hostif_count(hi, HOSTIF_C_RX_BAD, 1);
		return (0);
	}
	return (hostif_put_frame(hi, xd->xd_mem + addr, len));
}

/* Give the chunks of `n' received frames back. */
static void
xdp_refill(struct xdp_queue *xq, uint32_t n)
{
	struct xdp_ring *fill = &xq->xq_fill, *rx = &xq->xq_rx;

	for (; n > 0; n--)
		*ring_chunk(fill, fill->xr_next++) =
		    ring_frame(rx, rx->xr_next++)->addr;
	ring_consume(rx);
	ring_produce(fill);
	if (ring_sleeps(fill))
		(void)recvfrom(xq->xq_fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

static unsigned int
xdp_receive(struct hostif *hi)
{
	struct xdp *xd = hi->data;
	struct xdp_queue *xq = NULL;
	uint64_t bytes = 0;
	uint32_t i, len, n = 0;
	unsigned int frames = 0, q;

	/* The first queue that has frames, in turn. */
	for (q = 0; q < xd->xd_nqueues && n == 0; q++) {
		xq = &xd->xd_queues[xd->xd_queue];
		n = MIN(ring_pending(&xq->xq_rx), HOSTIF_BATCH);
		if (++xd->xd_queue == xd->xd_nqueues)
			xd->xd_queue = 0;
	}
	if (n == 0)
		return (0);
	for (i = 0; i < n; i++) {
		len = xdp_receive_frame(hi,
		    ring_frame(&xq->xq_rx, xq->xq_rx.xr_next + i));
		bytes += len;
		frames += len != 0;
	}
	vale_txsync(hi->port);
	xdp_refill(xq, n);
	hostif_count(hi, HOSTIF_C_RX_FRAME, frames);
	hostif_count(hi, HOSTIF_C_RX_BYTE, bytes);
	hostif_count(hi, HOSTIF_C_RX_BATCH, 1);
	return (n);
}

/* Take back the chunks that were sent. */
static void
xdp_complete(struct xdp *xd)
{
	const uint32_t first = xd->xd_nqueues * HOSTIF_XDP_SLOTS;
	struct xdp_ring *xr = &xd->xd_completion;
	uint64_t chunk;
	uint32_t n = MIN(ring_pending(xr), HOSTIF_XDP_SLOTS);

	if (n == 0)
		return;
	for (; n > 0 && xd->xd_nfree < HOSTIF_XDP_SLOTS; n--) {
		chunk = *(volatile uint64_t *)ring_chunk(xr, xr->xr_next++) /
		    HOSTIF_XDP_CHUNK;
		if (chunk >= first && chunk < first + HOSTIF_XDP_SLOTS)
			xd->xd_free[xd->xd_nfree++] = (uint32_t)chunk;
	}
	ring_consume(xr);
}

/* Queue a frame; there is a chunk. */
static void
xdp_send_frame(struct hostif *hi, const struct frame *frame)
{
	struct xdp *xd = hi->data;
	struct frame_cursor cur;
	struct xdp_desc *desc;
	uint64_t addr;

	if (!hostif_takes(hi, frame))
		return;
	/* The MTU is not yet known, or was raised. */
	if (frame->f_len > HOSTIF_XDP_CHUNK) {
		hostif_count(hi, HOSTIF_C_TX_MTU, 1);
		return;
	}
	addr = (uint64_t)xd->xd_free[--xd->xd_nfree] * HOSTIF_XDP_CHUNK;
	frame_cursor_init(&cur, frame->f_iov);
	frame_cursor_copy(&cur, xd->xd_mem + addr, frame->f_len);
	desc = ring_frame(&xd->xd_tx, xd->xd_tx.xr_next++);
	desc->addr = addr;
	desc->len = frame->f_len;
	desc->options = 0;
	hostif_count(hi, HOSTIF_C_TX_FRAME, 1);
	hostif_count(hi, HOSTIF_C_TX_BYTE, frame->f_len);
}

/*
 * Have the kernel send frames of the ring.  Returns false if it took none and
 * has to be asked again later: its queue is full (EAGAIN), memory is short
 * (ENOBUFS), or the interface is down or going (ENETDOWN, ENXIO).  None of
 * these is the fault of one frame.  EBUSY is: the driver, or what the frame
 * passes before it, dropped the frame, and the next call is about the next one.
 * The kernel's end of the ring may show that only then.
 */
static bool
xdp_call(struct hostif *hi)
{
	struct xdp *xd = hi->data;
	const uint32_t before = ring_unconsumed(&xd->xd_tx);

	hostif_count(hi, HOSTIF_C_TX_CALL, 1);
	if (sendto(xd->xd_queues[0].xq_fd, NULL, 0, MSG_DONTWAIT, NULL,
	    0) == -1) {
		if (errno == EBUSY) {
			hostif_lost(hi, errno);
			return (true);
		}
		/* EAGAIN: there are more than it sends in a call. */
		if (errno != EAGAIN)
			hostif_count(hi, HOSTIF_C_TX_ERROR, 1);
	}
	return (ring_unconsumed(&xd->xd_tx) != before);
}

/*
 * Have it send all that is in the ring.  Returns false if it has to be asked
 * again later.
 */
static bool
xdp_kick(struct hostif *hi)
{
	struct xdp *xd = hi->data;
	unsigned int calls;

	/* Each takes a frame at least, or is the one after the last. */
	for (calls = 0; calls <= HOSTIF_XDP_SLOTS && hi->up &&
	    ring_unconsumed(&xd->xd_tx) > 0 && ring_sleeps(&xd->xd_tx); calls++)
		if (!xdp_call(hi))
			return (false);
	return (true);
}

static unsigned int
xdp_send(struct hostif *hi)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };
	struct xdp *xd = hi->data;
	struct netmap_ring *ring = hi->port->rxring;
	const bool waited = hi->tx_state != HOSTIF_TX_IDLE;
	bool full = false;
	uint32_t next = ring->head;
	unsigned int n;

	xdp_complete(xd);
	for (n = 0; n < HOSTIF_BATCH; n++) {
		/* While it is down, frames are dropped, not queued. */
		full = xd->xd_nfree == 0 && hi->up && next != ring->tail;
		if (full || !hostif_peek(hi, &next, &frame))
			break;
		xdp_send_frame(hi, &frame);
		ring->head = ring->cur = next;
	}
	if (n > 0) {
		ring_produce(&xd->xd_tx);
		hostif_count(hi, HOSTIF_C_TX_BATCH, 1);
	}
	/* No event tells that chunks were sent. */
	hi->tx_state = xdp_kick(hi) && !full ? HOSTIF_TX_IDLE :
	    HOSTIF_TX_AGAIN;
	if (full && !waited)
		hostif_count(hi, HOSTIF_C_TX_WAIT, 1);
	return (n);
}

/* Count frames that the kernel has dropped. */
static void
xdp_tick(struct hostif *hi)
{
	struct xdp *xd = hi->data;
	struct xdp_statistics stats;
	socklen_t len;
	uint64_t lost = 0;
	unsigned int i;

	for (i = 0; i < xd->xd_nqueues; i++) {
		len = sizeof(stats);
		memset(&stats, 0, sizeof(stats));
		if (getsockopt(xd->xd_queues[i].xq_fd, SOL_XDP, XDP_STATISTICS,
		    &stats, &len) == 0)
			lost += stats.rx_dropped + stats.rx_ring_full;
	}
	hostif_count(hi, HOSTIF_C_RX_FULL, lost - xd->xd_lost);
	xd->xd_lost = lost;
}

static unsigned int
xdp_poll(struct hostif *hi, struct pollfd *pfd, unsigned int max)
{
	struct xdp *xd = hi->data;
	unsigned int i;

	for (i = 0; i < xd->xd_nqueues && i + 1 < max; i++) {
		pfd[i].fd = xd->xd_queues[i].xq_fd;
		pfd[i].events = POLLIN;
	}
	pfd[i].fd = hi->fds.hf_fd[HOSTIF_FD_ETHTOOL];
	pfd[i].events = POLLIN;
	return (i + 1);
}

static void
xdp_changed(struct hostif *hi, const struct hostif_ethtool *old)
{
	const struct xdp *xd = hi->data;
	const struct hostif_ethtool *he = &xd->xd_ethtool;

	if (he->he_untags != old->he_untags)
		hostif_log(hi, he->he_untags ? "VLAN tags would be lost, so "
		    "what is received is dropped: ethtool -K %s rxvlan off" :
		    "%s leaves VLAN tags in frames", hi->link.hl_name);
	if (he->he_untags_ad && !old->he_untags_ad)
		hostif_log(hi, "VLAN tags of 802.1ad are lost: ethtool -K %s "
		    "rx-vlan-stag-hw-parse off", hi->link.hl_name);
	if (he->he_queues == old->he_queues)
		return;
	/* Who opens it again knows the name that it had. */
	atomic_store_bool(&hi->outgrown, he->he_queues > xd->xd_nqueues &&
	    he->he_queues <= HOSTIF_XDP_QUEUES &&
	    strcmp(hi->link.hl_name, hi->fds.hf_name) == 0);
	if (he->he_queues > xd->xd_nqueues)
		hostif_log(hi, "%u receive queues, and what is received on "
		    "more than %u is lost: attach the interface again, or see "
		    "ethtool -L", he->he_queues, xd->xd_nqueues);
	else if (old->he_queues > xd->xd_nqueues)
		hostif_log(hi, "all receive queues are used");
}

/* Do nothing: frames are looked for in any case. */
static void
xdp_event(struct hostif *hi, const struct pollfd *pfd)
{
	struct xdp *xd = hi->data;
	const struct hostif_ethtool old = xd->xd_ethtool;

	if (pfd->fd != hi->fds.hf_fd[HOSTIF_FD_ETHTOOL])
		return;
	if (!hostif_ethtool_read(pfd->fd, hi->fds.hf_index, &xd->xd_ethtool))
		hostif_ethtool_ask(pfd->fd, hi->fds.hf_family,
		    hi->fds.hf_index);
	xdp_changed(hi, &old);
}

const struct hostif_ops hostif_xdp_ops = {
	.ho_start = xdp_start,
	.ho_stop = xdp_stop,
	.ho_receive = xdp_receive,
	.ho_send = xdp_send,
	.ho_poll = xdp_poll,
	.ho_event = xdp_event,
	.ho_tick = xdp_tick,
};
