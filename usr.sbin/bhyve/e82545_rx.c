/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The receive ring: 8254x SDM section 3.2.  Everything here runs under rx_mtx.
 *
 * A call of e82545_rx() processes one batch, of frames from the port; a call of
 * e82545_rx_direct() one or more, of frames from its caller:
 *
 *	begin	take a snapshot of the registers, map the ring
 *	run	for each frame, where it lies: filter; check its length; copy
 *		it, once, into the guest's buffers, and verify its checksums
 *	end	write the descriptors back, the first one last; then, once,
 *		under reg_mtx: RDH, statistics, interrupt
 *
 * With two queues (e82574_rss.c) a batch has a part for each, struct rx_batch:
 * a frame goes to the one or the other, and each part ends for itself.
 *
 * This file has the batch, and the fast path for a frame that fits into one
 * buffer.  All other frames go through e82545_rx_frame.c, which decides, and
 * e82545_rx_copy.c, which fills buffers.  e82545_rx_stall.c has the stalls.
 *
 * Stalls.  A frame is taken only if enough descriptors for all of it are
 * posted. If not, it stays in the port with all frames behind it, and the
 * switch drops what the port cannot hold.  This counts as RNBC, as when frames
 * wait in the adapter's FIFO, and what the switch drops counts as MPC
 * (e82545_stat_missed()).  RXO is not raised.
 *
 *	 running --- run: too few descriptors ----> (end) read RDT again
 *	    ^                                       |            |
 *	    |<--- now enough: E82545_RX_MORE -------+            | still too few
 *	    |                                                    v
 *	    +--- e82545_rx_unstall(), then eo_rx_ready() --- stalled
 *
 * The batch reads RDT again and sets `stalled' under reg_mtx, and
 * e82545_rx_unstall() runs under it.  So if the guest posts descriptors at that
 * moment, either the batch sees them or the guest's write sees the stall.  A
 * reset does not change `stalled'.  With the CSB on, the batch first reads what
 * the guest posted there: see e82545_csb.c.
 *
 * A direct call never waits for a batch in progress, whose copy may wait for a
 * page of another guest.  Frames that do not fit are left to the caller, which
 * leaves them to the network; e82545_rx() finds them there and stalls.  While
 * the receive side is stalled no frame goes directly, because the guest has
 * been asked to kick.
 *
 * A frame with a partial checksum, or to be cut, is completed by that copy
 * (frame_cut.h): the guest cannot be told of either.  Each segment is a frame
 * of its own then.  If there are too few descriptors for all of them, the frame
 * stays in the port, and rx_cut_off tells how much of it the guest has.  A
 * direct call takes all segments of a frame or none.
 *
 * A guest with a header ring (e82545_csb_vnet.c) gets such a frame uncut, of up
 * to 64 KB, whatever RCTL permits.
 *
 * RDT equal to the number of descriptors or greater: the head never reaches it,
 * so the guest gets frames into all descriptors, round after round, as from
 * hardware.  Some drivers write this once, to post all of the ring; their first
 * write of a smaller index ends it.  A batch takes at most one round.
 *
 * A descriptor with address 0 has no buffer: section 3.2.5.  Such a descriptor
 * is written back with DD set and all else as it was, and the data goes to the
 * next.  If no posted descriptor has a buffer, none is written back, and the
 * frame stays in the port.  For Linux's e1000e, when it suspends the system,
 * clears the ring without turning the receiver off or resetting the adapter.
 * When it resumes, it takes each DD in the ring for a frame, is ahead of RDH
 * then, and posts nothing any more.
 *
 * Frames arrive without FCS; the guest gets four bytes of zeros for it if
 * RCTL.SECRC is off.  Short frames are padded with zeros to the minimum.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/fast_path.h>

#include <string.h>

#include "e82545_filter.h"
#include "e82545_intr.h"
#include "e82545_loop.h"
#include "e82545_offload.h"
#include "e82545_rx_impl.h"
#include "e82545_stat.h"

/*
 * Give a frame of a `type' that passes the filters to the guest.  Returns false,
 * having done nothing, if the next descriptor is without a buffer in guest
 * memory.
 */
static inline __attribute__((__always_inline__)) bool
rx_single_fill(struct e82545 *dev, struct rx_batch *b, const struct iovec *iov,
    uint16_t type, uint8_t status)
{
	const uint8_t *frame = iov->iov_base;
	const size_t len = iov->iov_len;
	size_t full;
	uint64_t gpa, sum;
	uint8_t *dst;

	gpa = rx_buffer(b);
	if (gpa == 0)
		return (false);
	full = len + b->fcs;
	dst = e82545_map_for(dev, gpa, full, E82545_MAP_WRITE);
	if (dst == NULL)
		return (false);
	if (b->fcs != 0)
		memset(dst + len, 0, E82545_ETH_FCS);
	sum = frame_sum_copy(dst, frame, len);
	rx_done(b, full, e82545_rx_sum(iov, len, sum, type, b->rxcsum,
	    false, false), status, 0, 0);
	e82545_tally(&b->tally, frame, len + E82545_ETH_FCS, 1);
	return (true);
}

/* Filter a frame, and do as rx_single_fill() if it passes. */
static __attribute__((__noinline__)) bool
rx_single_filter(struct e82545 *dev, struct rx_batch *b,
    const struct iovec *iov, uint16_t type)
{
	uint8_t status = E82545_RXD_DD | E82545_RXD_EOP;

	switch (e82545_filter(dev, b->rctl, iov->iov_base, false)) {
	case E82545_FILTER_DROP:
		rx_lose(dev, b, iov->iov_len + E82545_ETH_FCS,
		    E82545_C_RX_FILTERED);
		return (true);
	case E82545_FILTER_PASS:
		break;
	case E82545_FILTER_INEXACT:
		status |= E82545_RXD_PIF;
		break;
	}
	return (rx_single_fill(dev, b, iov, type, status));
}

/*
 * Receive an untagged frame of one fragment that fits into one buffer: the fast
 * path of e82545_rx_frame().  Returns false, having done nothing, for another.
 * The guest's own address needs no other filter.
 */
static inline __attribute__((__always_inline__)) bool
rx_single_buffer(struct e82545 *dev, struct rx_batch *b,
    const struct iovec *iov)
{
	const uint8_t *frame = iov->iov_base;
	const size_t len = iov->iov_len;
	uint16_t type;

	if (len < E82545_ETH_MIN || len > b->single_max ||
	    b->ndone >= b->posted)
		return (false);
	type = rx_type(frame, false);
	if (type == b->vet)
		return (false);
	if ((le64dec(frame) & 0xffffffffffff) != b->own)
		return (rx_single_filter(dev, b, iov, type));
	return (rx_single_fill(dev, b, iov, type, E82545_RXD_DD |
	    E82545_RXD_EOP));
}

/*
 * Return the size of buffers, section 13.4.22.  The reserved combination means
 * the default.
 */
static uint32_t
rx_bufsize(uint32_t rctl)
{
	uint32_t size;

	size = 2048 >> E82545_RCTL_BSIZE(rctl);
	if ((rctl & E82545_RCTL_BSEX) != 0 && E82545_RCTL_BSIZE(rctl) != 0)
		size *= 16;
	return (size);
}

static void
rx_bad_ring(struct e82545 *dev, struct rx_batch *b)
{
	b->posted = 0;
	b->counts[E82545_C_RX_BAD_RING]++;
	e82545_probe_bad(dev, E82545_C_RX_BAD_RING, b->head);
}

static inline __attribute__((__always_inline__)) void
rx_begin(struct e82545 *dev, struct rx_batch *b, unsigned int queue)
{
	memset(b, 0, offsetof(struct rx_batch, counts));
	memset(&b->counts[E82545_C_RX_FRAME], 0, RX_COUNTS *
	    sizeof(b->counts[0]));
	b->q = &dev->rxq[queue];
	b->q->stamped = 0;
	b->regs = E82574_QUEUE(queue);
	b->rctl = e82545_reg(dev, E82545_RCTL);
	b->on = (b->rctl & E82545_RCTL_EN) != 0;
	b->link = (e82545_reg(dev, E82545_STATUS) & E82545_STATUS_LU) != 0;
	b->loopback = e82545_loopback(dev);
	b->looped = e82545_loop_pending(dev);
	b->own = e82545_filter_own(dev);
	b->rxcsum = e82545_reg(dev, E82545_RXCSUM);
	if (dev->config.ec_kind == E82545_KIND_82574L)
		b->rxcsum = e82574_rxcsum(dev, b->rxcsum);
	b->vet = e82545_reg(dev, E82545_VET);
	b->vme = (e82545_reg(dev, E82545_CTRL) & E82545_CTRL_VME) != 0;
	b->fcs = (b->rctl & E82545_RCTL_SECRC) != 0 ? 0 : E82545_ETH_FCS;
	/* An 82545EM has no such register: it reads as 0. */
	b->stamp = (e82545_reg(dev, E82574_TSYNCRXCTL) &
	    (E82574_TSYNC_ENABLE | E82574_TSYNC_VALID)) == E82574_TSYNC_ENABLE;
}

/* Begin a batch if a descriptor has one buffer. */
static inline __attribute__((__always_inline__)) void
rx_begin_one(struct e82545 *dev, struct rx_batch *b, unsigned int queue)
{
	const uint32_t regs = E82574_QUEUE(queue);

	rx_begin(dev, b, queue);
	b->bufsize = rx_bufsize(b->rctl);
	b->start = b->head = rx_head(dev, regs, false);
	b->size = rx_ring_size(dev, regs, false);
	b->posted = rx_ring_posted(dev, regs, b->head, b->size, false);
	if (!b->on || b->size == 0)
		return;
	if (b->head < b->size)
		b->ring = rx_ring_map(dev, regs);
	if (b->ring == NULL) {
		rx_bad_ring(dev, b);
		return;
	}
	if (dev->csb.vnet_gpa != 0 && queue == 0)
		b->vnet = dev->csb.ops->ecb_vnet_map(dev, b->size, b->head,
		    b->posted);
	if (b->link && !b->loopback && !b->looped && !b->stamp)
		b->single_max = MIN(dev->port->fp_frame_max,
		    MIN(rx_longest(b), b->bufsize - b->fcs));
	/* Only then: one of a ring is never posted. */
	b->endless = b->posted == b->size;
}

/* Begin a batch if a descriptor has four buffers. */
static __attribute__((__noinline__)) void
rx_begin_split(struct e82545 *dev, struct rx_batch *b, unsigned int queue)
{
	const uint32_t regs = E82574_QUEUE(queue);
	uint32_t lens[E82574_SPLIT_BUFFERS], sum;

	rx_begin(dev, b, queue);
	if (queue == 0)
		dev->csb.vnet_clean = UINT32_MAX;
	sum = e82574_rx_lens(dev, UINT32_MAX, 0, lens);
	b->bufsize = MAX(sum, RX_BUFSIZE_MIN);
	b->payload = sum - lens[0];
	b->start = b->head = rx_head(dev, regs, true);
	b->size = rx_ring_size(dev, regs, true);
	b->posted = rx_ring_posted(dev, regs, b->head, b->size, true);
	if (!b->on || b->size == 0)
		return;
	if (b->head < b->size && sum >= RX_BUFSIZE_MIN)
		b->ring = rx_ring_map(dev, regs);
	if (b->ring == NULL)
		rx_bad_ring(dev, b);
	else
		b->endless = b->posted == b->size;
}

/* Set the lower halves of a frame's descriptors, from `from' on. */
static void
rx_hashed(struct rx_batch *b, uint32_t from, uint64_t lower)
{
	const uint64_t eop = htole64((uint64_t)E82545_RXD_EOP << 32);

	for (; from < b->ndone; from++)
		b->q->lower[from] = (b->q->done[from] & eop) != 0 ? lower : 0;
}

/*
 * Pass frames to the `nqueues' batches at `first': to one, or by RSS.  `*last'
 * is the queue of the last frame.
 */
static inline __attribute__((__always_inline__)) enum e82545_rx_state
rx_run(struct e82545 *dev, struct rx_batch *first, unsigned int nqueues,
    struct frame_source *frames, unsigned int *last)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame_source *source = frames;
	struct rx_batch *b = first;
	struct e82574_rss rss;
	enum rx_verdict verdict;
	struct rx_frame f;
	uint64_t lower;
	uint32_t before, from;
	unsigned int i, n;

	/* Looped frames first; those looped during this batch wait. */
	if (first->looped)
		source = e82545_loop_source(dev);
	if (nqueues > 1)
		e82574_rss_begin(dev, &rss);
	f.f.f_iov = iov;
	for (n = 0; n < RX_BATCH; n++) {
		if (!frame_peek(source, &f.f)) {
			if (first->looped) {
				for (i = 0; i < nqueues; i++)
					first[i].looped = false;
				source = frames;
				continue;
			}
			first->end = true;
			/* rx_more() returns the space of the frames. */
			return (n == 0 ? E82545_RX_IDLE : E82545_RX_MORE);
		}
		if (nqueues > 1) {
			*last = e82574_rss_queue(dev, &rss, &f.f, &lower);
			b = &first[*last];
			from = b->ndone;
		}
		if (frame_complete(&f.f) &&
		    FAST_PATH(rx_single_buffer(dev, b, iov))) {
			if (nqueues > 1)
				rx_hashed(b, from, lower);
			frame_next(source);
			continue;
		}
		before = b->ndone;
		verdict = (f.f.f_flags & FRAME_CSUM_PARTIAL) != 0 ?
		    e82545_rx_offload(dev, b, &f) :
		    e82545_rx_frame(dev, b, &f);
		if (b->stamp && verdict == RX_TAKEN && b->ndone > before &&
		    e82574_rx_stamp(dev, &f.f))
			b->q->stamped = b->ndone;
		if (nqueues > 1)
			rx_hashed(b, from, lower);
		switch (verdict) {
		case RX_TAKEN:
			frame_next(source);
			break;
		case RX_NODESC:
			return (E82545_RX_STALLED);
		case RX_FULL:
			return (E82545_RX_MORE);
		}
	}
	return (E82545_RX_MORE);
}

/*
 * Write the batch back, from the last descriptor to the first: the guest, which
 * processes them in order, has all of them or none, wherever a crash cuts this
 * off.  e82545_salvage.c completes it.
 */
static void
rx_write_back(struct e82545 *dev, const struct rx_batch *b)
{
	struct e82545_rxq *rxq = b->q;
	const bool extended = rx_extended(dev);

	MPASS(b->ndone == 0 ||
	    (b->start + b->ndone) % b->size == b->head);
	if (b->ndone == 0)
		return;
	rxq->ndone = b->ndone;
	e82545_stored();
	rxq->end = b->head;
	e82545_stored();
	if (extended)
		e82574_rx_store(dev, b->ring, b->size, b->start, rxq,
		    b->ndone);
	else
		rx_store(b->ring, b->size, b->start, rxq->done, b->ndone);
	rxq->ndone = b->ndone | E82545_FIRST;
	e82545_stored();
	if (extended)
		e82574_rx_store_one(dev, b->ring, b->start, rxq, 0);
	else
		atomic_store_rel_64(&b->ring[b->start][1], rxq->done[0]);
	e82545_stored();
	rxq->ndone = 0;
}

static void
rx_stats(struct e82545 *dev, const struct rx_batch *b, uint32_t frames)
{
	const struct e82545_tally *t = &b->tally;

	e82545_stat(dev, E82545_TPR, frames + b->lost);
	e82545_stat64(dev, E82545_TORL, t->bytes + b->lost_bytes);
	if (b->counts[E82545_C_RX_OVERSIZE] != 0)
		e82545_stat(dev, E82545_ROC, b->counts[E82545_C_RX_OVERSIZE]);
	e82545_stat(dev, E82545_GPRC, frames);
	e82545_stat64(dev, E82545_GORCL, t->bytes);
	if (t->broadcast + t->multicast != 0) {
		e82545_stat(dev, E82545_BPRC, t->broadcast);
		e82545_stat(dev, E82545_MPRC, t->multicast);
	}
	e82545_stat_sizes(dev, E82545_PRC64, t);
}

/*
 * Return RXDMT0 if the posted descriptors fall to a half, quarter or eighth of
 * the ring: section 13.4.22, RDMTS.  Before the batch is written back.
 * Descriptors up to the ring's end count if RDT is never reached.
 */
static uint32_t
rx_causes(struct e82545 *dev, struct rx_batch *b)
{
	uint32_t left, low;

	low = b->size >> (1 + MIN(E82545_RCTL_RDMTS(b->rctl), 2));
	if (b->endless) {
		left = b->size - b->start;
		return (left > low && b->ndone >= left - low ?
		    E82545_ICR_RXDMT0 : 0);
	}
	if (b->posted <= low || rx_room(b) > low)
		return (0);
	e82545_rx_poll(dev, b);
	return (rx_room(b) <= low ? E82545_ICR_RXDMT0 : 0);
}

static enum e82545_rx_state
rx_end(struct e82545 *dev, struct rx_batch *b, enum e82545_rx_state state)
{
	const uint32_t frames = e82545_tally_frames(&b->tally);
	uint32_t causes;

	if (state == E82545_RX_IDLE)
		return (state);
	causes = rx_causes(dev, b);
	rx_write_back(dev, b);
	b->counts[E82545_C_RX_FRAME] = frames - b->segments + b->cut;
	b->counts[E82545_C_RX_CUT] = b->cut;
	b->counts[E82545_C_RX_SEGMENT] = b->segments;
	b->counts[E82545_C_RX_UNCUT] = b->uncut;
	b->counts[E82545_C_RX_BYTE] = b->tally.bytes - b->padding -
	    (uint64_t)frames * E82545_ETH_FCS;
	E82545_PROBE(dev, RX_BATCH, (uint32_t)b->counts[E82545_C_RX_FRAME],
	    b->counts[E82545_C_RX_BYTE], b->ndone);
	pthread_mutex_lock(&dev->reg_mtx);
	if (b->ndone > 0) {
		e82545_reg_set(dev, E82545_RDH + b->regs,
		    b->head << rx_split(dev));
		if (dev->csb.rx != NULL && b->regs == 0)
			dev->csb.ops->ecb_rx_notify(dev, causes);
		else
			e82545_intr_rx(dev, b->regs != 0, true, causes);
	}
	rx_stats(dev, b, frames);
	dev->rx_wait.stalled = false;
	if (state == E82545_RX_STALLED && !e82545_rx_stall(dev, b))
		state = E82545_RX_MORE;
	pthread_mutex_unlock(&dev->reg_mtx);

	b->counts[E82545_C_RX_BATCH] = b->ndone > 0;
	e82545_count_batch(dev, b->counts, E82545_C_RX_FRAME,
	    E82545_C_RX_BAD_ADDR);
	return (state);
}

/* Run the batches of `nqueues' queues, which have begun; and end them. */
static inline __attribute__((__always_inline__)) enum e82545_rx_state
rx_queues(struct e82545 *dev, struct rx_batch *first, unsigned int nqueues,
    struct frame_source *frames, bool direct)
{
	enum e82545_rx_state state;
	unsigned int i, last = 0;

	for (i = 0; i < nqueues; i++)
		first[i].direct = direct;
	state = rx_run(dev, first, nqueues, frames, &last);
	/* The frame that does not fit is of the last one: it may stall. */
	for (i = 0; i < nqueues; i++)
		if (i != last)
			rx_end(dev, &first[i], state == E82545_RX_IDLE ? state :
			    E82545_RX_MORE);
	if (!direct)
		return (rx_end(dev, &first[last], state));
	/* Nothing stalls, and there is no space to return. */
	rx_end(dev, &first[last], E82545_RX_MORE);
	return (first->end ? E82545_RX_IDLE : state);
}

/*
 * Begin if descriptors are extended: with RSS the batches of two queues, with
 * DTYP of descriptors with four buffers.  Returns how many batches.
 */
static __attribute__((__noinline__)) unsigned int
rx_begin_extended(struct e82545 *dev, struct rx_batch b[E82545_QUEUES])
{
	const unsigned int nqueues = e82574_rss_on(dev) ? E82545_QUEUES : 1;
	unsigned int i;

	for (i = 0; i < nqueues; i++) {
		if (rx_split(dev))
			rx_begin_split(dev, &b[i], i);
		else
			rx_begin_one(dev, &b[i], i);
		b[i].q->hashed = nqueues > 1;
	}
	return (nqueues);
}

static __attribute__((__noinline__)) enum e82545_rx_state
rx_both(struct e82545 *dev, struct rx_batch b[E82545_QUEUES],
    struct frame_source *frames, bool direct)
{
	return (rx_queues(dev, b, E82545_QUEUES, frames, direct));
}

/*
 * Return the space of a batch's frames, which were all, and see whether others
 * have come.  Until then the port's event would come again.
 */
static bool
rx_more(struct e82545 *dev)
{
	struct iovec iov[FRAME_MAXIOV];
	struct frame frame = { .f_iov = iov };

	frame_port_sync(dev->port);
	return (frame_peek(dev->port->fp_source, &frame) ||
	    e82545_loop_pending(dev));
}

/* Receive a batch of the port's frames, or (direct) of a caller's. */
static enum e82545_rx_state
rx_once(struct e82545 *dev, struct frame_source *frames, bool direct)
{
	struct rx_batch b[E82545_QUEUES];
	enum e82545_rx_state state;
	unsigned int nqueues = 1;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	E82545_PROBE(dev, RX_BEGIN);
	if (!direct)
		frame_port_sync(dev->port);
	if (e82545_csb_placed(dev))
		dev->csb.ops->ecb_rx_begin(dev);
	if (rx_extended(dev))
		nqueues = rx_begin_extended(dev, b);
	else
		rx_begin_one(dev, b, 0);
	state = nqueues > 1 ? rx_both(dev, b, frames, direct) :
	    rx_queues(dev, b, 1, frames, direct);
	if (e82545_csb_placed(dev))
		dev->csb.ops->ecb_rx_end(dev);
	if (!direct && state == E82545_RX_MORE && b[0].end && !rx_more(dev))
		state = E82545_RX_IDLE;
	return (state);
}

enum e82545_rx_state
e82545_rx(struct e82545 *dev)
{
	enum e82545_rx_state state;

	state = E82545_RX_STALLED;
	e82545_lock(&dev->rx_mtx);
	if (e82545_dma(dev))
		state = rx_once(dev, dev->port->fp_source, false);
	e82545_unlock(&dev->rx_mtx);
	return (state);
}

static bool
rx_direct_allowed(struct e82545 *dev)
{
	bool stalled;

	mtx_assert(&dev->rx_mtx.mtx, MA_OWNED);
	if (!e82545_dma(dev))
		return (false);
	pthread_mutex_lock(&dev->reg_mtx);
	stalled = rx_stalled(dev);
	pthread_mutex_unlock(&dev->reg_mtx);
	return (!stalled);
}

void
e82545_rx_direct(struct e82545 *dev, struct frame_source *frames)
{
	if (!e82545_trylock(&dev->rx_mtx))
		return;
	if (rx_direct_allowed(dev))
		while (rx_once(dev, frames, true) == E82545_RX_MORE)
			continue;
	e82545_unlock(&dev->rx_mtx);
}
