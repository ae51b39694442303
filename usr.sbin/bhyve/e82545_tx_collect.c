/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The descriptors of a packet, collected: each is read once, and its buffer is
 * mapped.  What stays between batches is here, too: the contexts, and how much
 * of a packet was skipped or sent.  All functions need tx_mtx.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "e82545_offload.h"
#include "e82545_salvage.h"
#include "e82545_snap.h"
#include "e82545_tx_impl.h"
#include "e82545_type.h"

size_t
e82545_txq_size(void)
{
	return (E82545_QUEUES * sizeof(struct e82545_txq));
}

/* Note that no batch is left: `now' is the state at TDH. */
static void
txq_settle(struct e82545_txq *txq)
{
	txq->settled = txq->now;
	e82545_stored();
	txq->end = TX_END_NONE;
	e82545_stored();
}

void
e82545_txq_moved(struct e82545 *dev, unsigned int queue)
{
	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	txq_settle(&dev->txq[queue]);
}

void
e82545_txq_reset(struct e82545 *dev)
{
	unsigned int i;

	mtx_assert(&dev->tx_mtx.mtx, MA_OWNED);
	mtx_assert(&dev->reg_mtx, MA_OWNED);
	for (i = 0; i < E82545_QUEUES; i++) {
		memset(&dev->txq[i].now, 0, sizeof(dev->txq[i].now));
		txq_settle(&dev->txq[i]);
	}
}

static void
tx_ctx_snap(struct e82545_txctx *ctx, struct e82545_snap *s)
{
	struct e82545_sum_where *w;

	for (w = &ctx->ip; w != NULL; w = w == &ctx->ip ? &ctx->l4 : NULL) {
		e82545_snap_u8(s, &w->start, UINT8_MAX);
		e82545_snap_u8(s, &w->field, UINT8_MAX);
		e82545_snap_u16(s, &w->end, UINT16_MAX);
	}
	e82545_snap_u32(s, &ctx->paylen, E82545_TXD_LEN);
	e82545_snap_u16(s, &ctx->mss, UINT16_MAX);
	e82545_snap_u8(s, &ctx->hdrlen, UINT8_MAX);
	e82545_snap_u32(s, &ctx->cmd, UINT32_MAX);
}

static void
txq_snap(struct e82545_txq *txq, struct e82545_snap *s)
{
	tx_ctx_snap(&txq->now.ctx[0], s);
	tx_ctx_snap(&txq->now.ctx[1], s);
	e82545_snap_bool(s, &txq->now.skipping);
	e82545_snap_u32(s, &txq->now.sent, TX_PACKET_MAX);
	txq_settle(txq);
}

void
e82545_txq_snap(struct e82545 *dev, struct e82545_snap *s)
{
	unsigned int i;

	for (i = 0; i < dev->type->et_queues; i++)
		txq_snap(&dev->txq[i], s);
}

static bool
txq_salvage(struct e82545 *dev, const struct e82545 *old, unsigned int queue)
{
	const uint32_t regs = E82574_QUEUE(queue);
	const struct e82545_txq *from = &old->txq[queue];
	const bool ended = from->end != TX_END_NONE &&
	    from->end != e82545_reg(dev, E82545_TDH + regs);
	const struct tx_state *state = ended ? &from->now : &from->settled;
	const uint32_t size = tx_ring_size(dev, regs);
	struct e82545_txq *txq = &dev->txq[queue];

	txq->now = *state;
	txq->now.skipping = e82545_salvage_bool(&state->skipping);
	if (!ended)
		return (true);
	if (from->end >= size)
		return (false);
	/* As tx_ended(). */
	if (from->end == 0 && e82545_reg(dev, E82545_TDT + regs) == size)
		e82545_reg_set(dev, E82545_TDT + regs, 0);
	e82545_reg_set(dev, E82545_TDH + regs, from->end);
	return (true);
}

bool
e82545_txq_salvage(struct e82545 *dev, const struct e82545 *old)
{
	unsigned int i;

	for (i = 0; i < dev->type->et_queues; i++)
		if (!txq_salvage(dev, old, i))
			return (false);
	return (true);
}

/* Return whether a descriptor is written back. */
static bool
tx_reported(uint64_t (*ring)[2], uint32_t i)
{
	return ((tx_load(ring[i]).legacy.status & E82545_TXD_DD) != 0);
}

bool
e82545_tx_recover(struct e82545 *dev, unsigned int queue,
    struct e82545_txq *queues, uint32_t head)
{
	struct e82545_txq *old = &queues[queue];
	const uint32_t regs = E82574_QUEUE(queue);
	const uint32_t size = tx_ring_size(dev, regs);
	const uint32_t end = atomic_load_32(&old->end);
	const uint32_t left = atomic_load_32(&old->nreports);
	const uint32_t n = left & ~E82545_FIRST;
	uint16_t report[nitems(old->report)];
	uint64_t (*ring)[2];
	uint32_t i;

	if (end == TX_END_NONE || end == head || n == 0)
		return (true);
	if (n > nitems(report))
		return (false);
	memcpy(report, old->report, n * sizeof(report[0]));
	for (i = 0; i < n; i++)
		if (report[i] >= size)
			return (false);
	ring = tx_ring_map(dev, regs, size);
	if (ring == NULL)
		return (true);
	for (i = n; i-- > 1;) {
		if (left == n)
			tx_report(ring, report[i]);
		else if (!tx_reported(ring, report[i]))
			return (true);
	}
	atomic_store_32(&old->nreports, n | E82545_FIRST);
	e82545_stored();
	tx_report(ring, report[0]);
	e82545_stored();
	atomic_store_32(&old->nreports, 0);
	return (true);
}

static void
tx_error(struct tx_packet *p, enum e82545_counter error)
{
	if (p->error == TX_NO_ERROR)
		p->error = error;
}

/* Take a context descriptor, section 3.3.6. */
static void
tx_context(struct e82545_txq *txq, const struct e82545_txd_context *txd)
{
	struct e82545_txctx *ctx;
	uint32_t lower;

	lower = le32toh(txd->lower);
	ctx = &txq->now.ctx[(lower & E82545_TXD_TUCMD_TSE) != 0];
	ctx->ip.start = txd->ipcss;
	ctx->ip.field = txd->ipcso;
	ctx->ip.end = le16toh(txd->ipcse);
	ctx->l4.start = txd->tucss;
	ctx->l4.field = txd->tucso;
	ctx->l4.end = le16toh(txd->tucse);
	ctx->paylen = lower & E82545_TXD_LEN;
	ctx->hdrlen = txd->hdrlen;
	ctx->mss = le16toh(txd->mss);
	ctx->cmd = lower;
}

/*
 * Take a descriptor's commands, which count in the last descriptor of a packet;
 * with TSO, and POPTS always, in the first.  Sections 3.3.3.1, 3.3.7, 3.3.7.1.
 */
static void
tx_commands(struct tx_packet *p, const union e82545_txd *txd, uint32_t lower)
{
	if (!p->begun) {
		p->begun = true;
		p->data = (lower & E82545_TXD_DEXT) != 0;
		if (p->data) {
			p->popts = txd->data.popts & (E82545_TXD_POPTS_IXSM |
			    E82545_TXD_POPTS_TXSM);
			p->tso = (lower & E82545_TXD_TSE) != 0;
			p->stamp = (txd->data.status & E82574_TXD_STAMP) != 0;
		}
		if (p->tso) {
			p->flags = lower & E82545_TXD_VLE;
			p->tag = le16toh(txd->data.special);
		}
	}
	if (((lower & E82545_TXD_DEXT) != 0) != p->data ||
	    (p->data && (lower & E82545_TXD_DTYP) != E82545_TXD_DTYP_DATA))
		tx_error(p, E82545_C_TX_BAD_DESC);
	else if ((lower & E82545_TXD_EOP) != 0 && !p->tso) {
		p->flags = lower & (E82545_TXD_VLE | E82545_TXD_IFCS);
		p->tag = le16toh(txd->data.special);
		if (!p->data) {
			p->flags |= lower & E82545_TXD_IC;
			p->legacy.start = txd->legacy.css;
			p->legacy.field = txd->legacy.cso;
		}
	}
}

/* Add bytes in guest memory to the packet. */
static void
tx_fragment(struct e82545_txq *txq, struct tx_packet *p, uint8_t *data,
    size_t len)
{
	struct iovec *frag = txq->frags + p->nfrags;

	if (p->nfrags > 0 && (uint8_t *)frag[-1].iov_base +
	    frag[-1].iov_len == data) {
		frag[-1].iov_len += len;
		return;
	}
	MPASS(p->nfrags < TX_PACKET_FRAGS);
	frag->iov_base = data;
	frag->iov_len = len;
	p->nfrags++;
}

static void
tx_buffer(struct e82545 *dev, struct e82545_txq *txq, struct tx_packet *p,
    uint64_t gpa, size_t len)
{
	uint8_t *data;
	size_t n;

	/* Such descriptors carry no data: section 3.3.3.1. */
	if (gpa == 0 || len == 0 || p->error != TX_NO_ERROR)
		return;
	p->len += len;
	if (p->len > TX_PACKET_MAX) {
		tx_error(p, E82545_C_TX_BAD_LEN);
		return;
	}
	n = len;
	data = e82545_map_for(dev, gpa, n, E82545_MAP_READ);
	if (data == NULL && (n = e82545_piece(gpa, len)) < len)
		data = e82545_map_for(dev, gpa, n, E82545_MAP_READ);
	while (data != NULL) {
		tx_fragment(txq, p, data, n);
		gpa += n;
		len -= n;
		if (len == 0)
			return;
		n = e82545_piece(gpa, len);
		data = e82545_map_for(dev, gpa, n, E82545_MAP_READ);
		txq->npieces++;
	}
	tx_error(p, E82545_C_TX_BAD_ADDR);
}

/*
 * Collect the descriptors of a packet from b->head on, or a context
 * descriptor before one.  Returns false if EOP is not posted yet.
 */
bool
e82545_tx_collect(struct e82545 *dev, struct tx_batch *b, struct tx_packet *p)
{
	struct e82545_txq *txq = b->q;
	union e82545_txd txd;
	uint32_t i, lower;

	memset(p, 0, sizeof(*p));
	p->error = TX_NO_ERROR;
	for (i = b->head; i != b->tail && p->ndescs < TX_PACKET_DESCS;) {
		txd = tx_load(b->ring[i]);
		lower = le32toh(txd.lower);
		if ((lower & (E82545_TXD_RS | E82545_TXD_RPS)) != 0) {
			txq->report[b->nreports] = i;
			txq->delay[b->nreports++] =
			    (lower & E82545_TXD_IDE) != 0;
		}
		p->ndescs++;
		if (++i == b->size)
			i = 0;
		if ((lower & (E82545_TXD_DEXT | E82545_TXD_DTYP)) ==
		    (E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT)) {
			tx_context(txq, &txd.context);
			if (!p->begun && !txq->now.skipping)
				return (true);
			continue;
		}
		if (!txq->now.skipping) {
			tx_commands(p, &txd, lower);
			tx_buffer(dev, txq, p, le64toh(txd.addr), lower &
			    (p->data ? E82545_TXD_LEN :
			    E82545_TXD_LEN_LEGACY));
		}
		if ((lower & E82545_TXD_EOP) != 0) {
			txq->now.skipping = false;
			return (true);
		}
	}
	if (txq->now.skipping)
		return (p->ndescs > 0);
	if (p->ndescs == TX_PACKET_DESCS || p->ndescs == b->size - 1) {
		p->error = E82545_C_TX_BAD_LEN;
		txq->now.skipping = true;
		return (true);
	}
	return (false);
}
