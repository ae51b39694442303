/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The transmit ring: 8254x SDM sections 3.3 to 3.5.  Everything here runs under
 * tx_mtx.
 *
 * A call of e82545_tx() processes one batch, of one queue; an adapter with two
 * has each in turn, and its frames stay in order:
 *
 *	begin	take a snapshot of the registers (TDT may come from the CSB: see
 *		e82545_csb.c), map the ring
 *	run	until the ring is empty or the batch full:
 *		collect	the descriptors of a packet, up to EOP; read each once,
 *			map its buffer
 *		send	it as one frame or, with TSO, as many, each made of
 *			fragments of guest memory; if the port takes offloads,
 *			as one in any case, and TCP's and UDP's checksums are
 *			left to whoever reads the frame next
 *	end	flush the port; write DD back to the descriptors that have RS,
 *		the first one last; then, once, under reg_mtx: TDH, statistics,
 *		interrupt
 *
 * This file has the batch, and the fast path for a packet of one descriptor.
 * All other packets go through e82545_tx_collect.c, then e82545_tx_send.c or
 * e82545_tx_tso.c.
 *
 * Payload is never copied.  If bytes must change (checksum, VLAN tag, TSO
 * header) or be added (padding), the first bytes of the frame up to there are
 * copied into a slot of the header pool, which has one for each frame of a
 * batch; the rest stays in guest memory.
 *
 * A packet is consumed complete: TDH does not pass it, and nothing is written
 * back, before all of its frames are flushed.  If its EOP is not posted yet, or
 * its segments do not fit into the batch, the next batch collects it again from
 * TDH; only the number of payload bytes sent so far is remembered.  A packet
 * that can never be complete (more than TX_PACKET_DESCS descriptors, or than
 * the ring has) is dropped up to its EOP.  Limits on the work of a call:
 * E82545_TX_FRAMES, TX_BATCH_DESCS + TX_PACKET_DESCS; of a packet:
 * E82545_TSO_FRAMES.
 *
 * A driver that leaves out IFCS gives the frame its FCS, says the manual; those
 * that forget IFCS do not.  So the last four bytes are cut off if they are the
 * right FCS of the others, else the frame is complete.
 *
 * TDT equal to the number of descriptors, which is behind the last one, means
 * that all up to there are pending.  When they are sent the model stores 0 in
 * TDT: hardware would not stop.
 *
 * The thresholds in TXDCTL say when hardware fetches and writes back
 * descriptors; the model does so once a batch.  Only LWTHRESH has an effect.
 */

#include <sys/param.h>
#include <sys/endian.h>
#include <sys/fast_path.h>

#include <string.h>

#include "e82545_intr.h"
#include "e82545_loop.h"
#include "e82545_stat.h"
#include "e82545_tx_impl.h"
#include "e82545_type.h"

/* What a batch counts, with E82545_C_LOOPBACK. */
#define	TX_COUNTS	(E82545_C_TX_LINKDOWN - E82545_C_TX_FRAME + 1)

/*
 * The bits that ask for more than sending a frame as it is, and those that a
 * packet of one descriptor has.
 */
#define	TX_OFFLOAD_BITS	(E82545_TXD_IC | E82545_TXD_VLE)
#define	TX_SINGLE_BITS	(E82545_TXD_EOP | E82545_TXD_IFCS)

/*
 * Send a packet of one descriptor that goes to the network as one frame, as it
 * is: the fast path of collect and send.  Returns false, having done nothing,
 * if the packet at the head is another.
 */
static bool
tx_single_desc(struct e82545 *dev, struct tx_batch *b)
{
	struct e82545_txq *txq = b->q;
	union e82545_txd txd;
	uint32_t len, lower;
	void *data;

	if (b->head == b->tail || txq->now.skipping || b->loopback || !b->link)
		return (false);
	txd = tx_load(b->ring[b->head]);
	lower = le32toh(txd.lower);
	if ((lower & (TX_OFFLOAD_BITS | TX_SINGLE_BITS)) != TX_SINGLE_BITS)
		return (false);
	len = lower & E82545_TXD_LEN_LEGACY;
	if ((lower & E82545_TXD_DEXT) != 0) {
		if ((lower & E82545_TXD_DTYP) != E82545_TXD_DTYP_DATA ||
		    (txd.upper & htole32((E82545_TXD_POPTS_IXSM |
		    E82545_TXD_POPTS_TXSM) << 8 | E82574_TXD_STAMP)) != 0)
			return (false);
		len = lower & E82545_TXD_LEN;
	}
	if (txd.addr == 0 || len < E82545_ETH_MIN || len > b->single_max)
		return (false);
	data = e82545_map_for(dev, le64toh(txd.addr), len, E82545_MAP_READ);
	if (data == NULL)
		return (false);
	if ((lower & (E82545_TXD_RS | E82545_TXD_RPS)) != 0) {
		txq->report[b->nreports] = b->head;
		txq->delay[b->nreports++] = (lower & E82545_TXD_IDE) != 0;
	}
	b->nframes++;
	b->iov.iov_base = data;
	b->iov.iov_len = len;
	b->frame.f_len = len;
	tx_sent(dev, b, len, frame_port_send_short(dev->port, &b->frame));
	e82545_tally(&b->tally, data, len + E82545_ETH_FCS, 1);
	return (true);
}

static void
tx_step(struct tx_batch *b, unsigned int ndescs)
{
	b->q->now.sent = 0;
	b->ndescs += ndescs;
	b->head += ndescs;
	if (b->head >= b->size)
		b->head -= b->size;
	MPASS(b->head < b->size && b->nframes <= E82545_TX_FRAMES);
	MPASS(b->ndescs <= (b->tail + b->size - b->start) % b->size);
}

/*
 * Take the descriptors up to the end if TDT, which is not in the ring, is just
 * behind that.  All of a ring are two batches, because an index as the tail
 * that is the head means none.
 */
static __attribute__((__noinline__)) bool
tx_to_end(struct tx_batch *b)
{
	if (b->tail != b->size)
		return (false);
	b->to_end = true;
	b->tail = b->head == 0 ? b->size - 1 : 0;
	return (true);
}

/* Begin a batch.  Returns false if nothing is pending. */
static inline __attribute__((__always_inline__)) bool
tx_begin(struct e82545 *dev, struct tx_batch *b, unsigned int queue)
{
	const uint32_t regs = E82574_QUEUE(queue);
	uint32_t ctrl, tctl;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	tctl = e82545_reg(dev, E82545_TCTL);
	if ((tctl & E82545_TCTL_EN) == 0)
		return (false);
	b->tail = e82545_reg_acquire(dev, E82545_TDT + regs);
	b->start = b->head = e82545_reg(dev, E82545_TDH + regs);
	if (b->head == b->tail)
		return (false);
	b->q = &dev->txq[queue];
	b->regs = regs;
	b->size = tx_ring_size(dev, regs);
	b->to_end = b->queued = b->looped = false;
	b->ring = b->head < b->size && (b->tail < b->size || tx_to_end(b)) ?
	    tx_ring_map(dev, regs, b->size) : NULL;
	if (b->ring == NULL) {
		e82545_count(dev, E82545_C_TX_BAD_RING, 1);
		e82545_probe_bad(dev, E82545_C_TX_BAD_RING,
		    b->head);
		return (false);
	}
	ctrl = e82545_reg(dev, E82545_CTRL);
	b->vme = (ctrl & E82545_CTRL_VME) != 0;
	b->vet = e82545_reg(dev, E82545_VET);
	b->psp = (tctl & E82545_TCTL_PSP) != 0;
	b->link = (e82545_reg(dev, E82545_STATUS) & E82545_STATUS_LU) != 0;
	b->loopback = e82545_loopback(dev);
	b->ndescs = b->nreports = b->nframes = 0;
	b->stamp_ns = 0;
	b->single_max = MIN(E82545_FRAME_MAX, dev->port->fp_frame_max);
	b->frame.f_iov = &b->iov;
	frame_set(&b->frame, 1, 0);
	b->ntso = b->ntsofail = 0;
	memset(&b->tally, 0, sizeof(b->tally));
	memset(&b->counts[E82545_C_TX_FRAME], 0, TX_COUNTS *
	    sizeof(b->counts[0]));
	b->counts[E82545_C_LOOPBACK] = 0;
	return (true);
}

enum tx_next {
	TX_NEXT,		/* go on */
	TX_WAIT,		/* there is no complete packet */
	TX_FULL			/* the batch takes no more */
};

/* Take a packet that is not as tx_single_desc() has it. */
static __attribute__((__noinline__)) enum tx_next
tx_packet(struct e82545 *dev, struct tx_batch *b)
{
	struct tx_packet p;
	const unsigned int nreports = b->nreports;

	if (!e82545_tx_collect(dev, b, &p)) {
		b->nreports = nreports;
		return (TX_WAIT);
	}
	if (!b->vme)
		p.flags &= ~E82545_TXD_VLE;
	if (!e82545_tx_send(dev, b, &p)) {
		b->nreports = nreports;
		return (TX_FULL);
	}
	tx_step(b, p.ndescs);
	if (b->q->npieces < TX_BATCH_PIECES)
		return (TX_NEXT);
	b->q->npieces = 0;
	return (TX_FULL);
}

/* Send a batch of a queue.  Returns true if more may be pending. */
static bool
tx_run(struct e82545 *dev, struct tx_batch *b)
{
	enum tx_next next;

	while (b->nframes < E82545_TX_FRAMES && b->ndescs < TX_BATCH_DESCS) {
		if (FAST_PATH(tx_single_desc(dev, b))) {
			tx_step(b, 1);
			continue;
		}
		if (b->head == b->tail)
			return (false);
		next = tx_packet(dev, b);
		if (next != TX_NEXT)
			return (next == TX_FULL);
	}
	return (b->head != b->tail);
}

static void
tx_stats(struct e82545 *dev, const struct tx_batch *b)
{
	const struct e82545_tally *t = &b->tally;
	const uint32_t frames = e82545_tally_frames(t);

	e82545_stat(dev, E82545_GPTC, frames);
	e82545_stat(dev, E82545_TPT, frames);
	e82545_stat64(dev, E82545_GOTCL, t->bytes);
	e82545_stat64(dev, E82545_TOTL, t->bytes);
	if (t->broadcast + t->multicast != 0) {
		e82545_stat(dev, E82545_BPTC, t->broadcast);
		e82545_stat(dev, E82545_MPTC, t->multicast);
	}
	e82545_stat_sizes(dev, E82545_PTC64, t);
	if (b->ntso + b->ntsofail != 0) {
		e82545_stat(dev, E82545_TSCTC, b->ntso);
		e82545_stat(dev, E82545_TSCTFC, b->ntsofail);
	}
}

/*
 * Return the causes of section 13.4.43: TXD_LOW when the pending descriptors
 * fall to LWTHRESH; TXQE when none are pending.
 */
static uint32_t
tx_causes(struct e82545 *dev, const struct tx_batch *b)
{
	uint32_t after, before, causes, low;

	before = (b->tail + b->size - b->start) % b->size;
	after = before - b->ndescs;
	low = E82545_TXDCTL_LWTHRESH(e82545_reg(dev, E82545_TXDCTL +
	    b->regs)) * 8;
	causes = before > low && after <= low ? E82545_ICR_TXD_LOW : 0;
	if (after == 0)
		causes |= E82545_ICR_TXQE;
	return (causes);
}

/* Set TDT to 0 after all up to the end of the ring, unless the guest has. */
static __attribute__((__noinline__)) void
tx_ended(struct e82545 *dev, const struct tx_batch *b)
{
	if (b->head == 0 &&
	    e82545_reg(dev, E82545_TDT + b->regs) == b->size)
		e82545_reg_set(dev, E82545_TDT + b->regs, 0);
}

/*
 * Write back what has RS.  From the last to the first: the guest, which
 * processes them in order, has all of them or none, wherever a crash cuts this
 * off.  e82545_salvage.c completes it.  Returns whether all have IDE.
 */
static bool
tx_write_back(const struct tx_batch *b)
{
	struct e82545_txq *txq = b->q;
	unsigned int i;
	bool delayed = true;

	MPASS(b->nreports <= nitems(txq->report));
	txq->nreports = b->nreports;
	e82545_stored();
	txq->end = b->head;
	e82545_stored();
	txq->settled = txq->now;
	if (b->nreports == 0)
		return (true);
	for (i = b->nreports - 1; i > 0; i--) {
		MPASS(txq->report[i] < b->size);
		tx_report(b->ring, txq->report[i]);
		delayed &= txq->delay[i];
	}
	txq->nreports = b->nreports | E82545_FIRST;
	e82545_stored();
	tx_report(b->ring, txq->report[0]);
	e82545_stored();
	txq->nreports = 0;
	return (delayed & txq->delay[0]);
}

/* End a batch.  Returns true if the receive path must be woken. */
static bool
tx_end(struct e82545 *dev, struct tx_batch *b)
{
	bool delayed, wake;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	if (b->ndescs == 0 && b->nframes == 0)
		return (false);
	if (b->queued)
		frame_port_flush(dev->port);
	E82545_PROBE(dev, TX_BATCH, (uint32_t)b->counts[E82545_C_TX_FRAME],
	    b->counts[E82545_C_TX_BYTE], b->ndescs);
	delayed = tx_write_back(b);

	pthread_mutex_lock(&dev->reg_mtx);
	/* Before TDH, by which TDT would mean all of the ring once more. */
	if (b->to_end)
		tx_ended(dev, b);
	e82545_reg_set(dev, E82545_TDH + b->regs, b->head);
	tx_stats(dev, b);
	if (b->stamp_ns != 0)
		e82574_tx_stamp(dev, b->stamp_ns);
	if (dev->csb.tx != NULL && b->regs == 0)
		dev->csb.ops->ecb_tx_notify(dev, b->start, b->ndescs, b->size,
		    b->nreports > 0, delayed, tx_causes(dev, b));
	else
		e82545_intr_tx(dev, b->regs != 0, b->nreports > 0, delayed,
		    tx_causes(dev, b));
	wake = b->looped && e82545_rx_unstall(dev);
	pthread_mutex_unlock(&dev->reg_mtx);

	b->counts[E82545_C_TX_BATCH] = b->nframes > 0;
	b->counts[E82545_C_TX_TSO] = b->ntso;
	e82545_count_batch(dev, b->counts, E82545_C_TX_FRAME,
	    E82545_C_TX_LINKDOWN);
	e82545_count_batch(dev, b->counts, E82545_C_LOOPBACK,
	    E82545_C_LOOPBACK);
	return (wake);
}

/*
 * Send a batch of a queue.  Returns false if there was nothing to do; else sets
 * *more if more may be pending, and *wake if the receive path must be woken.
 */
static inline __attribute__((__always_inline__)) bool
tx_queue(struct e82545 *dev, unsigned int queue, bool *more, bool *wake)
{
	struct tx_batch b;

	if (!tx_begin(dev, &b, queue))
		return (false);
	*more = tx_run(dev, &b);
	*wake = tx_end(dev, &b);
	if (b.ndescs == 0 && b.nframes == 0)
		return (false);
	if (b.to_end && b.head != 0)
		*more = true;
	return (true);
}

/* Return whether a queue is enabled, and has descriptors. */
static bool
tx_pending(const struct e82545 *dev, unsigned int queue)
{
	const uint32_t regs = E82574_QUEUE(queue);

	return ((e82545_reg(dev, E82574_TARC(queue)) &
	    E82574_TARC_ENABLE) != 0 && e82545_reg(dev, E82545_TDT + regs) !=
	    e82545_reg(dev, E82545_TDH + regs));
}

/*
 * Send from the queue whose turn it is, or from the next one if that has
 * nothing to do.
 */
static __attribute__((__noinline__)) bool
tx_queues(struct e82545 *dev, bool *more, bool *wake)
{
	unsigned int i, queue;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	for (i = 0; i < E82545_QUEUES; i++) {
		queue = dev->tx_turn++ % E82545_QUEUES;
		if (!tx_pending(dev, queue) ||
		    !tx_queue(dev, queue, more, wake))
			continue;
		/* The descriptors behind have not been looked at. */
		while (++i < E82545_QUEUES)
			*more |= tx_pending(dev, ++queue % E82545_QUEUES);
		return (true);
	}
	return (false);
}

enum e82545_tx_state
e82545_tx(struct e82545 *dev)
{
	enum e82545_tx_state state = E82545_TX_IDLE;
	bool busy, more = false, wake = false;

	e82545_lock(&dev->tx_mtx);
	if (e82545_dma(dev)) {
		E82545_PROBE(dev, TX_BEGIN);
		if (e82545_csb_placed(dev))
			dev->csb.ops->ecb_tx_begin(dev);
		busy = dev->type->et_queues == 1 ?
		    tx_queue(dev, 0, &more, &wake) :
		    tx_queues(dev, &more, &wake);
		if (e82545_csb_placed(dev))
			state = dev->csb.ops->ecb_tx_end(dev, !busy, more);
		else if (more)
			state = E82545_TX_MORE;
	}
	e82545_unlock(&dev->tx_mtx);
	if (wake)
		dev->ops->eo_rx_ready(dev->arg);
	return (state);
}
