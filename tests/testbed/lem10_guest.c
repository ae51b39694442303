/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See lem10_guest.h. */

#include <sys/param.h>
#include <sys/endian.h>

#include <string.h>

#include "lem10_guest.h"

/* Fields of the CSB, which the model may change at any time. */
#define	CSB_GET(l, field)						\
	(lem10_access(l), le32toh(atomic_load_acq_32(&(l)->csb->field)))
#define	CSB_SET(l, field, value)					\
	(lem10_access(l), atomic_store_rel_32(&(l)->csb->field,		\
	    htole32(value)))
#define	CSB_BARRIER()	atomic_thread_fence_seq_cst()

/* Before an access to a register, a ring or the CSB. */
static void
lem10_access(struct lem10 *l)
{
	if (l->hook_in != 0 && --l->hook_in == 0)
		l->hook(l);
}

static uint32_t
lem10_rd(struct lem10 *l, uint32_t off)
{
	lem10_access(l);
	return (host_rd(l->h, off));
}

static void
lem10_wr(struct lem10 *l, uint32_t off, uint32_t value)
{
	lem10_access(l);
	host_wr(l->h, off, value);
}

static void
add(uint32_t *counter, uint32_t n)
{
	atomic_store_32(counter, atomic_load_32(counter) + n);
}

/*
 * Transmit.
 */

static uint32_t
tx_used(const struct lem10 *l)
{
	return ((l->tx_next + l->ndesc - l->tx_clean) % l->ndesc);
}

static uint32_t
tx_avail(const struct lem10 *l)
{
	return (l->ndesc - tx_used(l));
}

static bool
tx_done(struct lem10 *l)
{
	lem10_access(l);
	return (host_tx_done(l->h, l->tx_clean));
}

void
lem10_txeof(struct lem10 *l)
{
	uint32_t n;

	if (tx_used(l) == 0)
		return;
	for (n = 0; tx_used(l) > 0 && tx_done(l); n++)
		l->tx_clean = (l->tx_clean + 1) % l->ndesc;
	add(&l->sent, n);
	if (l->tx_pending)
		lem10_wr(l, E82545_TDT, l->tx_next);
	l->combined = l->tx_pending;
	l->combined_none = l->combined && tx_used(l) == 0;
	l->tx_pending = false;
	if (tx_avail(l) > l->ndesc / 8) {
		l->tx_full = false;
		CSB_SET(l, guest_need_txkick, 2);
		CSB_BARRIER();
	}
}

static void
lem10_xmit(struct lem10 *l)
{
	union e82545_txd *txd = host_txd(l->h, l->tx_next);
	uint64_t gpa = l->txbuf + (uint64_t)l->tx_next * LEM10_LEN;

	add(&l->posted, 1);
	be32enc((uint8_t *)host_mem(l->h, gpa, LEM10_LEN) + LEM10_SEQ,
	    l->posted);
	memset(txd, 0, sizeof(*txd));
	txd->addr = htole64(gpa);
	txd->lower = htole32(LEM10_LEN | E82545_TXD_EOP | E82545_TXD_IFCS |
	    E82545_TXD_RS);
	l->tx_next = (l->tx_next + 1) % l->ndesc;
	CSB_SET(l, guest_tdt, l->tx_next);
	CSB_BARRIER();
	if (CSB_GET(l, guest_csb_on) != 0 &&
	    (CSB_GET(l, host_need_txkick) & 1) == 0) {
		if (tx_avail(l) <= l->ndesc / 4)
			lem10_txeof(l);
		return;
	}
	if (atomic_load_32(&l->combining) != 0) {
		if (l->combined) {
			l->tx_pending = true;
			return;
		}
		l->combined = true;
	}
	lem10_wr(l, E82545_TDT, l->tx_next);
}

/* tx_mtx held. */
static void
lem10_start_locked(struct lem10 *l)
{
	if (atomic_load_32(&l->running) == 0 || l->tx_full)
		return;
	if (tx_avail(l) <= l->ndesc / 8) {
		lem10_txeof(l);
		if (tx_avail(l) <= l->ndesc / 32)
			return;
	}
	while (atomic_load_32(&l->queue) > 0) {
		if (tx_avail(l) <= 2) {
			l->tx_full = true;
			break;
		}
		atomic_add_32(&l->queue, -1);
		lem10_xmit(l);
	}
	if (tx_avail(l) <= l->ndesc / 32)
		l->tx_full = true;
	if (l->tx_full && CSB_GET(l, guest_csb_on) != 0 &&
	    (CSB_GET(l, guest_need_txkick) & 1) == 0) {
		CSB_SET(l, guest_need_txkick, 1);
		CSB_BARRIER();
		lem10_txeof(l);
	}
}

void
lem10_send(struct lem10 *l, uint32_t n)
{
	pthread_mutex_lock(&l->tx_mtx);
	atomic_add_32(&l->queue, n);
	lem10_start_locked(l);
	pthread_mutex_unlock(&l->tx_mtx);
}

/*
 * Receive.
 */

static bool
rx_done(struct lem10 *l)
{
	lem10_access(l);
	return (host_rx_done(l->h, l->rx_next));
}

static void
lem10_input(struct lem10 *l)
{
	struct e82545_rxd *rxd = host_rxd(l->h, l->rx_next);
	const uint8_t *frame;
	uint32_t seq;

	frame = host_mem(l->h, le64toh(rxd->addr), LEM10_LEN);
	seq = be32dec(frame + LEM10_SEQ);
	l->disorder += seq <= l->seq;
	l->seq = seq;
	add(&l->taken, 1);
}

bool
lem10_rxeof(struct lem10 *l, int count)
{
	const bool on = CSB_GET(l, guest_csb_on) != 0;

	if (on && CSB_GET(l, guest_need_rxkick) != 0)
		CSB_SET(l, guest_need_rxkick, 0);
	pthread_mutex_lock(&l->rx_mtx);
	if (!rx_done(l)) {
		pthread_mutex_unlock(&l->rx_mtx);
		return (false);
	}
	while (count != 0 && atomic_load_32(&l->running) != 0) {
		if (!rx_done(l)) {
			if (!on || CSB_GET(l, guest_need_rxkick) != 0)
				break;
			CSB_SET(l, guest_need_rxkick, 1);
			CSB_BARRIER();
			continue;
		}
		if (on)
			CSB_SET(l, guest_need_rxkick, 0);
		lem10_input(l);
		count--;
		atomic_store_rel_8(&host_rxd(l->h, l->rx_next)->status, 0);
		if (on) {
			l->rdt = l->rx_next;
			CSB_SET(l, guest_rdt, l->rdt);
			CSB_BARRIER();
			if (CSB_GET(l, host_rxkick_at) == l->rx_next)
				lem10_wr(l, E82545_RDT, l->rx_next);
		}
		l->rx_next = (l->rx_next + 1) % l->ndesc;
	}
	if (!on)
		lem10_wr(l, E82545_RDT, (l->rx_next + l->ndesc - 1) % l->ndesc);
	pthread_mutex_unlock(&l->rx_mtx);
	return (count == 0);
}

/*
 * Interrupts.
 */

static void
lem10_rxtx(struct lem10 *l)
{
	bool more;

	if (atomic_load_32(&l->running) == 0)
		return;
	l->in_task = true;
	do {
		more = lem10_rxeof(l, LEM10_RX_LIMIT);
		pthread_mutex_lock(&l->tx_mtx);
		lem10_txeof(l);
		lem10_start_locked(l);
		pthread_mutex_unlock(&l->tx_mtx);
	} while (more);
	l->in_task = false;
	if (atomic_load_32(&l->running) != 0)
		lem10_wr(l, E82545_IMS, LEM10_CAUSES);
}

static void
lem10_intr_legacy(struct lem10 *l, uint32_t icr)
{
	l->skipped = (icr & (E82545_ICR_RXSEQ | E82545_ICR_LSC)) != 0;
	if (l->skipped || atomic_load_32(&l->running) == 0)
		return;
	l->in_task = true;
	(void)lem10_rxeof(l, -1);
	pthread_mutex_lock(&l->tx_mtx);
	lem10_txeof(l);
	lem10_start_locked(l);
	pthread_mutex_unlock(&l->tx_mtx);
	l->in_task = false;
}

bool
lem10_handler(struct lem10 *l)
{
	uint32_t icr;

	if ((icr = lem10_rd(l, E82545_ICR)) == 0)
		return (false);
	if (l->legacy_irq) {
		lem10_intr_legacy(l, icr);
		return (true);
	}
	lem10_wr(l, E82545_IMC, UINT32_MAX);
	lem10_rxtx(l);
	return (true);
}

bool
lem10_intr(struct lem10 *l)
{
	return (host_line(l->h) && lem10_handler(l));
}

/*
 * Start, stop.
 */

/* The frames that the receive ring loses. */
static void
rx_lose(struct lem10 *l)
{
	uint32_t i;

	for (i = 0; i < l->ndesc; i++) {
		add(&l->rx_lost, host_rx_done(l->h, i));
		host_rxd(l->h, i)->status = 0;
	}
	l->rx_next = 0;
}

static void
lem10_stop(struct lem10 *l)
{
	atomic_store_32(&l->running, 0);
	lem10_wr(l, E82545_IMC, UINT32_MAX);
	lem10_wr(l, E82545_RCTL, 0);
	lem10_wr(l, E82545_TCTL, E82545_TCTL_PSP);
	lem10_wr(l, E82545_CTRL, E82545_CTRL_RST);
	lem10_rd(l, E82545_ICR);
	for (; l->tx_clean != l->tx_next; l->tx_clean = (l->tx_clean + 1) %
	    l->ndesc)
		add(host_tx_done(l->h, l->tx_clean) ? &l->sent : &l->tx_lost,
		    1);
	rx_lose(l);
}

void
lem10_init(struct lem10 *l, void (*between)(struct lem10 *))
{
	struct host *h = l->h;

	pthread_mutex_lock(&l->tx_mtx);
	pthread_mutex_lock(&l->rx_mtx);
	lem10_stop(l);
	lem10_wr(l, E82545_CTRL, E82545_CTRL_RST);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	l->tx_next = l->tx_clean = 0;
	l->tx_full = false;
	lem10_wr(l, E82545_TDLEN, l->ndesc * 16);
	lem10_wr(l, E82545_TDBAH, h->txring >> 32);
	lem10_wr(l, E82545_TDBAL, h->txring);
	lem10_wr(l, E82545_TDT, 0);
	lem10_wr(l, E82545_TDH, 0);
	lem10_wr(l, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	lem10_wr(l, E82545_RDLEN, l->ndesc * 16);
	lem10_wr(l, E82545_RDBAH, h->rxring >> 32);
	lem10_wr(l, E82545_RDBAL, h->rxring);
	lem10_wr(l, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    host_rctl_bsize(h->rxbufsize));
	if (between != NULL)
		between(l);
	lem10_wr(l, E82545_RDH, 0);
	lem10_wr(l, E82545_RDT, l->ndesc - 1);
	atomic_store_32(&l->running, 1);
	pthread_mutex_unlock(&l->rx_mtx);
	pthread_mutex_unlock(&l->tx_mtx);
	lem10_wr(l, E82545_IMS, LEM10_CAUSES);
}

void
lem10_rx_restart(struct lem10 *l)
{
	const uint32_t rctl = lem10_rd(l, E82545_RCTL);

	pthread_mutex_lock(&l->rx_mtx);
	lem10_wr(l, E82545_RCTL, rctl & ~E82545_RCTL_EN);
	rx_lose(l);
	lem10_wr(l, E82545_RDH, 0);
	lem10_wr(l, E82545_RDT, l->ndesc - 1);
	lem10_wr(l, E82545_RCTL, rctl);
	pthread_mutex_unlock(&l->rx_mtx);
}

void
lem10_csb(struct lem10 *l, bool on)
{
	atomic_store_rel_32(&l->csb->guest_csb_on, htole32(on));
}

void
lem10_up(struct lem10 *l, struct host *h, uint32_t ndesc)
{
	memset(l, 0, sizeof(*l));
	l->h = h;
	l->ndesc = ndesc;
	pthread_mutex_init(&l->tx_mtx, NULL);
	pthread_mutex_init(&l->rx_mtx, NULL);
	host_up(h, ndesc, ndesc, 256);
	l->txbuf = host_alloc(h, ndesc * LEM10_LEN, 1);
	l->csb_gpa = host_alloc(h, NET_PARAVIRT_CSB_SIZE,
	    NET_PARAVIRT_CSB_SIZE);
	l->csb = host_mem(h, l->csb_gpa, NET_PARAVIRT_CSB_SIZE);
	CSB_SET(l, host_need_txkick, 1);
	CSB_SET(l, guest_need_rxkick, 1);
	CSB_SET(l, host_txcycles_lim, 1);
	CSB_SET(l, host_rxkick_at, NET_PARAVIRT_NONE);
	lem10_wr(l, E82545_CSBAH, l->csb_gpa >> 32);
	lem10_wr(l, E82545_CSBAL, l->csb_gpa);
	lem10_init(l, NULL);
}

void
lem10_down(struct lem10 *l)
{
	pthread_mutex_destroy(&l->tx_mtx);
	pthread_mutex_destroy(&l->rx_mtx);
}

bool
lem10_all_sent(const struct lem10 *l)
{
	return (atomic_load_32(&l->queue) == 0 &&
	    atomic_load_32(&l->sent) + atomic_load_32(&l->tx_lost) ==
	    atomic_load_32(&l->posted));
}
