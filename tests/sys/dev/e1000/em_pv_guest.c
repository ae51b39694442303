/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* See em_pv_guest.h. */

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "em_pv_guest.h"

extern struct if_shared_ctx em_sctx_init;
void	*em_pv_register(device_t);

struct em_guest *guest;

/* Whether a call that may fail does. */
bool
em_fails(void)
{
	return (++guest->calls == guest->config.fail);
}

/*
 * What iflib(4) offers a driver.
 */

int
iflib_dma_alloc_align(if_ctx_t ctx __attribute__((__unused__)), int size,
    int align, struct iflib_dma_info *dma, int flags)
{
	struct em_guest *g = guest;

	REQUIRE(align == PAGE_SIZE && flags == BUS_DMA_NOWAIT);
	REQUIRE(size == (g->ndma == 0 ? PAGE_SIZE : EM_RING * 10));
	if (em_fails())
		return (ENOMEM);
	size = roundup2(size, PAGE_SIZE);
	dma->idi_paddr = host_alloc(g->h, size, align);
	dma->idi_vaddr = host_mem(g->h, dma->idi_paddr, size);
	if (g->ndma++ == 0)
		g->csb = (const void *)dma->idi_vaddr;
	return (0);
}

void
iflib_dma_free(struct iflib_dma_info *dma)
{
	REQUIRE(dma->idi_vaddr != NULL && guest->ndma > 0);
	guest->freed = memset(dma->idi_vaddr, 0xa5, PAGE_SIZE);
	dma->idi_vaddr = NULL;
	guest->ndma--;
}

void *
iflib_get_softc(if_ctx_t ctx)
{
	return (ctx->softc);
}

if_softc_ctx_t
iflib_get_softc_ctx(if_ctx_t ctx)
{
	return (&ctx->scctx);
}

struct sx *
iflib_ctx_lock_get(if_ctx_t ctx)
{
	return (&ctx->lock);
}

kobj_class_t
iflib_class(if_ctx_t ctx)
{
	return (ctx->cls);
}

void
iflib_tx_intr_deferred(if_ctx_t ctx __attribute__((__unused__)), int q)
{
	atomic_store_bool(&guest->q[q].tx_task, true);
}

void
iflib_rx_intr_deferred(if_ctx_t ctx __attribute__((__unused__)), int q)
{
	atomic_store_bool(&guest->q[q].rx_task, true);
}

void
iflib_admin_intr_deferred(if_ctx_t ctx __attribute__((__unused__)))
{
	guest->admin_task = true;
}

void
iflib_request_reset(if_ctx_t ctx __attribute__((__unused__)))
{
	guest->resets++;
}

if_t
iflib_get_ifp(if_ctx_t ctx)
{
	return (&ctx->ifnet);
}

/*
 * iflib(4): transmit.
 */

#define	TXRX(g)	((g)->ctx.scctx.isc_txrx)

static unsigned int
avail(const struct em_queue *q)
{
	return (EM_RING - 1 - q->in_use);
}

static uint16_t
number(const struct em_guest *g, const struct em_queue *q)
{
	return (q - g->q);
}

static void
reclaim(struct em_guest *g, struct em_queue *q)
{
	q->in_use -= TXRX(g)->ift_txd_credits_update(g->sc, number(g, q), true);
}

/* Flush, if that was asked for or enough is pending; or if nothing is. */
static void
doorbell(struct em_guest *g, struct em_queue *q, bool ring)
{
	const unsigned int notify = EM_RING / 16 - 1;
	const unsigned int max = q->in_use > EM_RING / 2 ? notify :
	    q->in_use > EM_RING / 4 ? notify / 2 :
	    q->in_use > EM_RING / 8 ? notify / 8 : 0;

	if (!ring && q->db_pending < max && avail(q) > 8)
		return;
	TXRX(g)->ift_txd_flush(g->sc, number(g, q), q->pidx);
	q->db_pending = 0;
}

/*
 * A frame: IPv4, of a protocol that nobody has, with its number, and the rest
 * after that.
 */
static unsigned int
frame_len(const struct em_guest *g, uint32_t n)
{
	return (EM_LEN + n * 37 % (g->len - EM_LEN + 1));
}

static void
frame_make(uint8_t *frame, unsigned int len, uint32_t n)
{
	static const uint8_t ip[10] = { 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 253 };
	unsigned int i;

	memset(frame, 0, 34);
	memcpy(frame, host_mac, 6);
	frame[6] = 2;
	be16enc(frame + 12, 0x0800);
	memcpy(frame + 14, ip, sizeof(ip));
	be16enc(frame + 16, len - 14);
	be32enc(frame + 34, n);
	for (i = 38; i < len; i++)
		frame[i] = n + i;
}

/* Whether it is the frame of this number, whole. */
static bool
frame_is(const uint8_t *frame, unsigned int len, uint32_t n)
{
	static uint8_t want[EM_LEN_MAX];

	if (len < EM_LEN || len > EM_LEN_MAX || len != be16dec(frame + 16) + 14)
		return (false);
	frame_make(want, len, n);
	return (memcmp(frame, want, len) == 0);
}

/* Put the next packet into the ring. */
static void
encap(struct em_guest *g, struct em_queue *q, bool report)
{
	struct if_pkt_info pi = {
		.paddr = q->txbuf + q->pidx * EM_LEN_MAX,
		.ipi_len = frame_len(g, q->posted), .ipi_qsidx = number(g, q),
		.ipi_flags = report ? IPI_TX_INTR : 0, .ipi_pidx = q->pidx
	};

	frame_make(host_mem(g->h, pi.paddr, pi.ipi_len), pi.ipi_len,
	    q->posted++ | (uint32_t)number(g, q) << 31);
	REQUIRE(TXRX(g)->ift_txd_encap(g->sc, &pi) == 0);
	q->pidx = pi.ipi_new_pidx;
	q->in_use++;
	q->db_pending++;
}

/* Reports are rare: the fuller the ring, the rarer. */
static bool
report_is_due(struct em_queue *q)
{
	const unsigned int notify = EM_RING / 16 - 1;
	const unsigned int max = q->in_use > EM_RING / 2 ? notify :
	    q->in_use > EM_RING / 4 ? notify / 2 :
	    q->in_use > EM_RING / 8 ? notify / 4 : 2;

	q->rs_pending += 2;
	if (q->rs_pending <= max && avail(q) > 8)
		return (false);
	q->rs_pending = 0;
	return (true);
}

static void
drain(struct em_guest *g, struct em_queue *q)
{
	const unsigned int before = q->in_use;

	reclaim(g, q);
	doorbell(g, q, q->in_use < before && q->db_pending > 0);
	while (q->queued > 0 && avail(q) >= 8) {
		q->queued--;
		encap(g, q, report_is_due(q));
		doorbell(g, q, false);
	}
	doorbell(g, q, false);
}

static bool
has_room(struct em_guest *g, struct em_queue *q)
{
	return (avail(q) > 8 || TXRX(g)->ift_txd_credits_update(g->sc,
	    number(g, q), false) != 0);
}

void
em_send_q(struct em_guest *g, unsigned int n, unsigned int count)
{
	struct em_queue *q = &g->q[n];

	while (count-- > 0) {
		q->queued++;
		if (g->running && has_room(g, q))
			drain(g, q);
	}
}

void
em_send(struct em_guest *g, unsigned int n)
{
	em_send_q(g, 0, n);
}

void
em_netmap_send(struct em_guest *g, unsigned int n)
{
	struct em_queue *q = &g->q[0];

	reclaim(g, q);
	q->queued += n;
	while (q->queued > 0 && avail(q) > 0) {
		q->queued--;
		encap(g, q, q->pidx % (EM_RING / 2) == 0);
	}
	TXRX(g)->ift_txd_flush(g->sc, 0, q->pidx);
	q->db_pending = 0;
}

/* Whether a task is queued; it is not any longer. */
static bool
run_task(struct em_guest *g, bool *task)
{
	if (!__atomic_exchange_n(task, false, __ATOMIC_SEQ_CST))
		return (false);
	atomic_add_32(&g->ntasks, 1);
	return (true);
}

static void
intr_enable_tx(struct em_guest *g, struct em_queue *q)
{
	if (g->config.intr != IFLIB_INTR_MSIX)
		IFDI_INTR_ENABLE(&g->ctx);
	else
		IFDI_CALL(&g->ctx, ifdi_tx_queue_intr_enable)(&g->ctx,
		    number(g, q));
}

static void
intr_enable_rx(struct em_guest *g, struct em_queue *q)
{
	if (g->config.intr != IFLIB_INTR_MSIX)
		IFDI_INTR_ENABLE(&g->ctx);
	else
		IFDI_CALL(&g->ctx, ifdi_rx_queue_intr_enable)(&g->ctx,
		    number(g, q));
}

static bool
tx_task(struct em_guest *g, struct em_queue *q)
{
	if (!run_task(g, &q->tx_task))
		return (false);
	if (!g->running)
		return (true);
	if (g->netmap)
		q->tx_notified = true;
	else if (q->db_pending > 0 || (q->queued > 0 && has_room(g, q)))
		drain(g, q);
	intr_enable_tx(g, q);
	return (true);
}

bool
em_tx_task(struct em_guest *g)
{
	return (tx_task(g, &g->q[0]) || tx_task(g, &g->q[1]));
}

/*
 * iflib(4): receive.
 */

static void
refill(struct em_guest *g, struct em_queue *q, unsigned int n)
{
	uint64_t paddrs[32];
	struct if_rxd_update iru = {
		.iru_paddrs = paddrs, .iru_qsidx = number(g, q)
	};

	if (n == 0)
		return;
	q->rx_credits += n;
	while (n > 0) {
		iru.iru_pidx = q->rx_pidx;
		for (iru.iru_count = 0; n > 0 && iru.iru_count < 32; n--) {
			paddrs[iru.iru_count++] = q->rxbuf +
			    (uint64_t)q->rx_pidx * EM_BUF;
			q->rx_pidx = (q->rx_pidx + 1) % EM_RING;
		}
		TXRX(g)->ift_rxd_refill(g->sc, &iru);
	}
	TXRX(g)->ift_rxd_flush(g->sc, number(g, q), 0, q->rx_pidx);
}

static void
refill_all(struct em_guest *g, struct em_queue *q)
{
	refill(g, q, EM_RING - 1 - q->rx_credits);
}

/* The bytes of a frame, from its buffers. */
static const uint8_t *
gather(struct em_guest *g, struct em_queue *q, const struct if_rxd_info *ri)
{
	static uint8_t frame[65536];
	unsigned int i, len = 0;

	for (i = 0; i < ri->iri_nfrags; i++) {
		memcpy(frame + len, host_mem(g->h, q->rxbuf + EM_BUF *
		    ((ri->iri_cidx + i) % EM_RING), EM_BUF),
		    ri->iri_frags[i].irf_len);
		len += ri->iri_frags[i].irf_len;
	}
	return (frame);
}

static void
input(struct em_guest *g, struct em_queue *q, const uint8_t *frame,
    unsigned int len)
{
	uint32_t n = be32dec(frame + 34) & 0x7fffffff;

	if (q->rx_resync && n > q->received)
		q->received = n;
	q->rx_resync = false;
	g->wrong += !frame_is(frame, len, q->received |
	    (uint32_t)number(g, q) << 31);
	atomic_store_32(&q->received, q->received + 1);
	em_clock_ns += g->frame_ns;
}

/* Take at most `n' frames.  Returns whether there are more. */
static bool
take(struct em_guest *g, struct em_queue *q, unsigned int n)
{
	struct if_rxd_frag frags[64];
	struct if_rxd_info ri;
	const uint8_t *frame;

	while (n-- > 0 && TXRX(g)->ift_rxd_available(g->sc, number(g, q),
	    q->rx_cidx, 1)) {
		memset(&ri, 0, sizeof(ri));
		ri.iri_qsidx = number(g, q);
		ri.iri_cidx = q->rx_cidx;
		ri.iri_frags = frags;
		REQUIRE(TXRX(g)->ift_rxd_pkt_get(g->sc, &ri) == 0);
		frame = gather(g, q, &ri);
		if (frame[23] == 253 && ri.iri_csum_flags == 0)
			input(g, q, frame, ri.iri_len);
		else {
			g->other = ri;
			g->others++;
			g->other_bytes = 0;
			while (ri.iri_nfrags-- > 0)
				g->other_bytes +=
				    frags[ri.iri_nfrags].irf_len;
			ri = g->other;
		}
		q->rx_cidx = (q->rx_cidx + ri.iri_nfrags) % EM_RING;
		q->rx_credits -= ri.iri_nfrags;
	}
	refill_all(g, q);
	return (TXRX(g)->ift_rxd_available(g->sc, number(g, q), q->rx_cidx,
	    1) != 0);
}

void
em_netmap_receive(struct em_guest *g, unsigned int n)
{
	/* It sees what it leaves. */
	g->q[0].rx_notified = take(g, &g->q[0], n);
}

void
em_inject_partial(struct em_guest *g, uint32_t len, uint16_t mss)
{
	static uint8_t data[65536];

	memcpy(data, host_mac, sizeof(host_mac));
	host_inject_tcp(g->h, data, len, mss);
}

void
em_admin(struct em_guest *g)
{
	unsigned int resets = g->resets;

	g->admin_task = false;
	IFDI_CALL(&g->ctx, ifdi_update_admin_status)(&g->ctx);
	if (g->resets != resets) {
		em_down(g);
		em_up(g);
	}
}

static bool
rx_task(struct em_guest *g, struct em_queue *q)
{
	bool more = false;

	if (!run_task(g, &q->rx_task))
		return (false);
	if (!g->running)
		return (true);
	if (g->netmap)
		q->rx_notified = true;
	else
		more = take(g, q, EM_BUDGET);
	if (more)
		iflib_rx_intr_deferred(&g->ctx, number(g, q));
	else
		intr_enable_rx(g, q);
	return (true);
}

bool
em_rx_task(struct em_guest *g)
{
	return (rx_task(g, &g->q[0]) || rx_task(g, &g->q[1]));
}

void
em_inject(struct em_guest *g, unsigned int n)
{
	struct em_queue *q = &g->q[g->rx_queue];
	uint8_t frame[EM_LEN_MAX];
	unsigned int len;

	while (n-- > 0) {
		len = frame_len(g, q->injected);
		frame_make(frame, len, q->injected++ |
		    (uint32_t)number(g, q) << 31);
		host_inject(g->h, frame, len, 1);
	}
}

void
em_rx_queue(struct em_guest *g, unsigned int q)
{
	unsigned int i;

	g->rx_queue = q;
	for (i = 0; i < E82574_RETA_COUNT; i++)
		em_reg_write(E82574_RETA + 4 * i, q * 0x80808080);
}

/*
 * iflib(4): interrupts, polls.
 */

static bool
interrupt_pending(struct em_guest *g)
{
	unsigned int n;

	if (g->config.intr != IFLIB_INTR_MSI)
		return (host_line(g->h));
	n = host_raised(g->h);
	if (n == g->q[0].served)
		return (false);
	g->q[0].served = n;
	return (true);
}

/* iflib_fast_intr_rxtx(), after the filter. */
static void
intr_rxtx(struct em_guest *g, struct em_queue *q)
{
	const bool msix = g->config.intr == IFLIB_INTR_MSIX;
	bool enable = false;

	if (TXRX(g)->ift_txd_credits_update(g->sc, number(g, q), false) != 0)
		iflib_tx_intr_deferred(&g->ctx, number(g, q));
	else if (msix)
		intr_enable_tx(g, q);
	else
		enable = true;
	if (TXRX(g)->ift_rxd_available(g->sc, number(g, q), q->rx_cidx, 1) != 0)
		iflib_rx_intr_deferred(&g->ctx, number(g, q));
	else if (msix)
		intr_enable_rx(g, q);
	else
		enable = true;
	if (enable)
		IFDI_INTR_ENABLE(&g->ctx);
}

static bool
msix(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < EM_QUEUES; i++) {
		if (g->h->nmessages[i] == g->q[i].served)
			continue;
		g->q[i].served = g->h->nmessages[i];
		em_msix_que(i);
		intr_rxtx(g, &g->q[i]);
		return (true);
	}
	if (g->h->nmessages[EM_QUEUES] == g->others_served)
		return (false);
	g->others_served = g->h->nmessages[EM_QUEUES];
	em_msix_link(g->sc);
	return (true);
}

static bool
interrupt(struct em_guest *g)
{
	if (g->config.intr == IFLIB_INTR_MSIX)
		return (msix(g));
	if (!interrupt_pending(g))
		return (false);
	if ((TXRX(g)->ift_legacy_intr(g->sc) & FILTER_SCHEDULE_THREAD) != 0)
		intr_rxtx(g, &g->q[0]);
	return (true);
}

/* A line interrupts again and again until the adapter lowers the line. */
bool
em_interrupt(struct em_guest *g)
{
	unsigned int n = 0;

	curthread->td_intr_nesting_level++;
	while (interrupt(g)) {
		REQUIRE(++n < 10000);
		if (g->config.intr != IFLIB_INTR_LEGACY)
			break;
	}
	curthread->td_intr_nesting_level--;
	return (n > 0);
}

static bool
callout_run(struct callout *c)
{
	void (*func)(void *) = c->func;

	if (func == NULL)
		return (false);
	c->func = NULL;
	func(c->arg);
	return (true);
}

bool
em_poll(struct em_guest *g)
{
	return (callout_run(g->callout));
}

bool
em_rx_callout(struct em_guest *g)
{
	if (g->rx_callout->func != NULL)
		em_clock_ns += EM_PAUSE_NS;
	return (callout_run(g->rx_callout));
}

/* What is done and to be done, in one number that only grows. */
static unsigned int
progress(struct em_guest *g)
{
	unsigned int i, n = host_sent(g->h) + g->accesses;

	for (i = 0; i < EM_QUEUES; i++)
		n += g->q[i].received + g->q[i].queued + g->q[i].in_use;
	return (n);
}

/* Polls that find nothing to do end the wait. */
static bool
poll_useful(struct em_guest *g)
{
	unsigned int i, before;

	for (i = 0; i < 3; i++) {
		before = progress(g);
		if (!em_poll(g))
			return (false);
		while (em_tx_task(g) || em_rx_task(g))
			host_run(g->h);
		if (before != progress(g))
			return (true);
	}
	return (false);
}

/* iflib_timer() makes up for a flush that was put off, once a second. */
static bool
timer(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < EM_QUEUES; i++)
		if (g->q[i].db_pending > 0 && g->running) {
			g->q[i].tx_task = true;
			return (true);
		}
	return (false);
}

/*
 * em(4)'s filter for the link comes again until all tasks have run, and asks
 * for an interrupt of each queue.
 */
static bool
step(struct em_guest *g)
{
	const bool interrupted = em_interrupt(g);
	unsigned int n = 0;

	if (interrupted && g->config.intr != IFLIB_INTR_MSIX)
		return (true);
	while (n < 2 * EM_QUEUES && (em_tx_task(g) || em_rx_task(g)))
		n++;
	return (interrupted || n > 0);
}

void
em_settle(struct em_guest *g)
{
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		host_run(g->h);
		if (!step(g) && !em_rx_callout(g) && !poll_useful(g) &&
		    !timer(g))
			return;
	}
	REQUIRE(!"tasks without end");
}

/*
 * Checks.
 */

/* Count the frames that the adapter has sent, and those out of order. */
static void
count_sent(struct em_guest *g)
{
	const unsigned int total = host_sent(g->h);
	const struct host_frame *f;
	struct em_queue *q;
	unsigned int i;
	uint32_t n;

	for (i = 0; i < total; i++) {
		f = host_sent_frame(g->h, i);
		n = be32dec(f->data + 34);
		q = &g->q[n >> 31];
		n &= 0x7fffffff;
		if (q->tx_resync && n > q->sent)
			q->sent = n;
		q->tx_resync = false;
		g->wrong += !frame_is(f->data, f->len, q->sent |
		    (uint32_t)number(g, q) << 31);
		q->sent++;
	}
	host_sent_clear(g->h);
}

void
em_check(struct em_guest *g)
{
	const struct em_queue *q;

	count_sent(g);
	for (q = g->q; q < g->q + EM_QUEUES; q++) {
		/* What a stop has lost is known when one more has come. */
		if (g->wrong == 0 && q->queued == 0 &&
		    (q->sent == q->posted || q->tx_resync) &&
		    (q->received == q->injected || q->rx_resync))
			continue;
		fprintf(stderr, "queue %d: wrong %u, posted %u, sent %u, "
		    "queued %u, injected %u, received %u\n", number(g, q),
		    g->wrong, q->posted, q->sent, q->queued, q->injected,
		    q->received);
		REQUIRE(!"frames");
	}
}

void
em_mark(struct em_guest *g)
{
	memset(g->reads, 0, sizeof(g->reads));
	memset(g->writes, 0, sizeof(g->writes));
	g->accesses = 0;
}

unsigned int
em_wrote(const struct em_guest *g, uint32_t reg)
{
	return (g->writes[reg / 4]);
}

unsigned int
em_read(const struct em_guest *g, uint32_t reg)
{
	return (g->reads[reg / 4]);
}

/*
 * iflib(4): life.
 */

static struct host *
create_host(const struct em_config *c)
{
	if (c->kind == E82545_KIND_EM)
		return (c->no_csb ? host_create(HOST_RAM) :
		    host_create_csb(HOST_RAM));
	return (c->no_csb ? host_create_82574(HOST_RAM) :
	    host_create_82574_csb(HOST_RAM));
}

/* As iflib_device_register(), which has the lock. */
static bool
attach(struct em_guest *g)
{
	const if_ctx_t ctx = &g->ctx;

	if (IFDI_CALL(ctx, ifdi_attach_pre)(ctx) != 0)
		return (false);
	if (ctx->scctx.isc_disable_msix &&
	    ctx->scctx.isc_intr == IFLIB_INTR_MSIX)
		ctx->scctx.isc_intr = g->config.intr = IFLIB_INTR_MSI;
	if (ctx->scctx.isc_ntxqsets_max != 0)
		ctx->scctx.isc_ntxqsets = ctx->scctx.isc_nrxqsets =
		    ctx->scctx.isc_ntxqsets_max;
	if (em_tx_queues_alloc(ctx) != 0)
		return (false);
	if (IFDI_CALL(ctx, ifdi_rx_queues_alloc)(ctx, NULL, NULL, 1,
	    ctx->scctx.isc_nrxqsets) != 0)
		return (false);
	/* From here on, a failure ends in IFDI_DETACH. */
	g->attached = true;
	/* iflib_qset_structures_setup(), and those for the interrupts. */
	if (em_fails() || em_fails())
		return (false);
	if (g->config.intr == IFLIB_INTR_MSIX)
		em_msix_intr_assign(g->sc);
	if (IFDI_CALL(ctx, ifdi_attach_post)(ctx) != 0)
		return (false);
	/* iflib_netmap_attach() */
	return (!em_fails());
}

struct em_guest *
em_create(const struct em_config *config)
{
	static const uint32_t csb[3] = { 0x000c0009, E82545_CSB_SIGNATURE,
	    E82545_CSB_VERSION };
	struct em_guest *g = calloc(1, sizeof(*g));
	struct if_shared_ctx *sctx;
	bool done;

	REQUIRE(g != NULL);
	guest = g;
	g->config = *config;
	g->len = EM_LEN;
	g->h = create_host(config);
	e82545_msix(g->h->dev, config->intr == IFLIB_INTR_MSIX);
	g->device = config->kind == E82545_KIND_EM ?
	    (struct em_device){ 0x8086, 0x100f, 0x8086, 0x1008, csb } :
	    (struct em_device){ 0x8086, 0x10d3, 0x1af4, 0x1100, csb };
	if (config->no_csb)
		g->device.csb = NULL;
	sctx = em_pv_register(&g->device);
	REQUIRE(sctx != NULL && sctx != &em_sctx_init);
	REQUIRE(sctx->magic == em_sctx_init.magic);
	g->ctx.cls = sctx->isc_driver;
	g->ctx.softc = g->sc = calloc(1, sctx->isc_driver->size);
	REQUIRE(g->sc != NULL);
	g->ctx.ifnet.capenable = IFCAP_LRO | IFCAP_RXCSUM | IFCAP_RXCSUM_IPV6;
	g->h->port.fp_offloads = true;
	g->ctx.lock.owned = true;
	done = attach(g);
	REQUIRE(g->ctx.lock.owned);
	g->ctx.lock.owned = false;
	if (done)
		return (g);
	em_destroy(g);
	return (NULL);
}

void
em_up(struct em_guest *g)
{
	int i;

	sx_xlock(&g->ctx.lock);
	IFDI_INTR_DISABLE(&g->ctx);
	IFDI_CALL(&g->ctx, ifdi_init)(&g->ctx);
	for (i = 0; i < g->ctx.scctx.isc_nrxqsets; i++)
		refill(g, &g->q[i], 128);
	g->running = true;
	IFDI_INTR_ENABLE(&g->ctx);
	sx_xunlock(&g->ctx.lock);
}

void
em_down(struct em_guest *g)
{
	struct em_queue *q;
	int i;

	sx_xlock(&g->ctx.lock);
	g->running = false;
	IFDI_INTR_DISABLE(&g->ctx);
	IFDI_CALL(&g->ctx, ifdi_stop)(&g->ctx);
	count_sent(g);
	for (i = 0; i < g->ctx.scctx.isc_ntxqsets; i++) {
		q = &g->q[i];
		memset(g->sc->tx_queues[i].txr.tx_base, 0, EM_RING * 16);
		memset(g->sc->rx_queues[i].rxr.rx_base, 0, EM_RING * 16);
		q->queued = q->in_use = q->db_pending = q->rs_pending = 0;
		q->pidx = q->rx_cidx = q->rx_pidx = 0;
		q->rx_credits = 0;
		q->tx_resync = q->rx_resync = true;
	}
	sx_xunlock(&g->ctx.lock);
}

void
em_restart(struct em_guest *g, bool media)
{
	const if_ctx_t ctx = &g->ctx;

	sx_xlock(&ctx->lock);
	REQUIRE((media ? IFDI_CALL(ctx, ifdi_media_change)(ctx) :
	    IFDI_CALL(ctx, ifdi_resume)(ctx)) == 0);
	sx_xunlock(&ctx->lock);
}

void
em_destroy(struct em_guest *g)
{
	size_t i;

	if (g->running)
		em_down(g);
	if (g->attached) {
		sx_xlock(&g->ctx.lock);
		REQUIRE(IFDI_CALL(&g->ctx, ifdi_detach)(&g->ctx) == 0);
		em_queues_free(&g->ctx);
		sx_xunlock(&g->ctx.lock);
	}
	/* A line that is shared: the filter is there until now. */
	if (g->attached) {
		em_mark(g);
		REQUIRE(TXRX(g)->ift_legacy_intr(g->sc) == FILTER_STRAY);
		REQUIRE(g->accesses == 0);
	}
	REQUIRE(g->ndma == 0 && g->nsysctls == 0);
	REQUIRE(g->callout == NULL || g->callout->func == NULL);
	REQUIRE(g->rx_callout == NULL || g->rx_callout->func == NULL);
	REQUIRE(g->mtx == NULL || !g->mtx->ready);
	/* The adapter does not use the CSB any longer. */
	host_set(g->h, E82545_TCTL, E82545_TCTL_EN);
	host_set(g->h, E82545_RCTL, E82545_RCTL_EN);
	host_advance(g->h, 100000000);
	host_run(g->h);
	for (i = 0; g->freed != NULL && i < PAGE_SIZE; i++)
		REQUIRE(g->freed[i] == 0xa5);
	host_destroy(g->h);
	free(g->sc);
	free(g);
	guest = NULL;
}
