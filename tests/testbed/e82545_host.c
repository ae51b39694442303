/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82545_host.h.  The host calls the model only without its mutex, so the
 * model may call it with its own locks.
 *
 * Two rules of struct frame_port are tested: a frame sent is read only at the
 * flush, and a frame received is freed as soon as it is taken.
 */

#include <sys/types.h>
#include <sys/endian.h>
#include <sys/mman.h>

#include <stdlib.h>
#include <string.h>

#include "e82545_host.h"
#include "require.h"

const uint8_t host_mac[6] = { 0x00, 0x0c, 0x29, 0x12, 0x34, 0x56 };

/*
 * The model's operations.
 */

static void *
host_map(void *arg, uint64_t gpa, size_t len,
    unsigned int access __attribute__((__unused__)))
{
	struct host *h = arg;

	REQUIRE(len > 0);
	if (h->map_hook != NULL)
		h->map_hook(h);
	if (gpa >= h->ram_size || len > h->ram_size - gpa)
		return (NULL);
	return (h->ram + gpa);
}

static void
host_intr(void *arg, bool asserted)
{
	struct host *h = arg;

	pthread_mutex_lock(&h->mtx);
	REQUIRE(asserted != h->line);
	h->line = asserted;
	if (h->nedges < HOST_EDGES) {
		h->edges[h->nedges].ns = h->now_ns;
		h->edges[h->nedges++].asserted = asserted;
	}
	if (asserted)
		h->nraised++;
	if (asserted && h->intr_hook != NULL)
		h->intr_hook(h);
	pthread_mutex_unlock(&h->mtx);
}

static void
host_message(void *arg, unsigned int vector)
{
	struct host *h = arg;

	pthread_mutex_lock(&h->mtx);
	REQUIRE(vector < E82574_VECTORS && !h->line);
	h->nmessages[vector]++;
	pthread_mutex_unlock(&h->mtx);
}

static uint64_t
host_now(void *arg)
{
	struct host *h = arg;

	return (atomic_load_64(&h->now_ns));
}

static void
host_timer(void *arg, uint64_t when_ns)
{
	struct host *h = arg;

	pthread_mutex_lock(&h->mtx);
	h->ntimer++;
	h->timer_ns = when_ns;
	pthread_mutex_unlock(&h->mtx);
}

static void
host_tx_kick(void *arg)
{
	struct host *h = arg;

	pthread_mutex_lock(&h->mtx);
	h->nkick++;
	h->kicked = true;
	pthread_cond_signal(&h->tx_cv);
	pthread_mutex_unlock(&h->mtx);
}

static struct host *
host_of_port(struct frame_port *port)
{
	return (__containerof(port, struct host, port));
}

static bool
host_send(struct frame_port *port, const struct frame *frame)
{
	struct host *h = host_of_port(port);
	const struct iovec *iov = frame->f_iov;
	size_t len;
	int i, niov = frame->f_niov;

	REQUIRE(niov > 0 && niov <= FRAME_MAXIOV);
	len = 0;
	for (i = 0; i < niov; i++) {
		REQUIRE(iov[i].iov_len > 0 || frame->f_flags != 0);
		len += iov[i].iov_len;
	}
	REQUIRE(len == frame->f_len);
	REQUIRE(frame_longest(frame) <= E82545_FRAME_MAX);
	if (frame->f_flags != 0)
		REQUIRE(port->fp_offloads);
	else
		REQUIRE(frame->f_gso_type == FRAME_GSO_NONE);
	if (h->tx_hook != NULL)
		h->tx_hook(h);
	pthread_mutex_lock(&h->mtx);
	if (h->tx_space == 0) {
		pthread_mutex_unlock(&h->mtx);
		return (false);
	}
	h->tx_space--;
	REQUIRE(h->ntx < HOST_FRAMES);
	h->tx[h->ntx].len = len;
	h->tx[h->ntx].nfrags = niov;
	h->tx[h->ntx].frame = *frame;
	h->tx_iov[h->ntx] = calloc(niov, sizeof(*iov));
	REQUIRE(h->tx_iov[h->ntx] != NULL);
	memcpy(h->tx_iov[h->ntx], iov, niov * sizeof(*iov));
	h->ntx++;
	REQUIRE(h->ntx - h->ntx_flushed <= E82545_TX_FRAMES);
	pthread_mutex_unlock(&h->mtx);
	return (true);
}

static void
host_tx_flatten(struct host *h, unsigned int n)
{
	struct host_frame *f = &h->tx[n];
	size_t off;
	int i;

	f->data = malloc(f->len);
	REQUIRE(f->data != NULL);
	off = 0;
	for (i = 0; i < f->nfrags; i++) {
		memcpy(f->data + off, h->tx_iov[n][i].iov_base,
		    h->tx_iov[n][i].iov_len);
		off += h->tx_iov[n][i].iov_len;
	}
	free(h->tx_iov[n]);
	h->tx_iov[n] = NULL;
}

static void
host_tx_forget(struct host *h)
{
	unsigned int i;

	for (i = 0; i < h->ntx; i++) {
		free(h->tx[i].data);
		h->tx[i].data = NULL;
	}
	h->ntx = h->ntx_flushed = 0;
}

static void
host_flush(struct frame_port *port)
{
	struct host *h = host_of_port(port);

	pthread_mutex_lock(&h->mtx);
	h->nflush++;
	while (h->ntx_flushed < h->ntx)
		host_tx_flatten(h, h->ntx_flushed++);
	if (h->tx_discard)
		host_tx_forget(h);
	pthread_mutex_unlock(&h->mtx);
}

static struct host *
host_of_source(struct frame_source *source)
{
	return (__containerof(source, struct host, source));
}

static bool
host_peek(struct frame_source *source, struct frame *frame)
{
	struct host *h = host_of_source(source);
	struct host_frame *f;
	bool pending;

	pthread_mutex_lock(&h->mtx);
	pending = h->rx_head != h->rx_tail;
	if (pending) {
		f = &h->rx[h->rx_head % HOST_FRAMES];
		memcpy(frame->f_iov, h->rx_iov[h->rx_head % HOST_FRAMES],
		    f->nfrags * sizeof(*frame->f_iov));
		f->frame.f_iov = frame->f_iov;
		*frame = f->frame;
	}
	pthread_mutex_unlock(&h->mtx);
	return (pending);
}

static void
host_rx_free(struct host *h)
{
	struct host_frame *f = &h->rx[h->rx_head % HOST_FRAMES];
	struct iovec *iov = h->rx_iov[h->rx_head % HOST_FRAMES];
	int i;

	for (i = 0; i < f->nfrags; i++)
		free(iov[i].iov_base);
	free(iov);
	h->rx_head++;
}

static void
host_next(struct frame_source *source)
{
	struct host *h = host_of_source(source);

	if (h->rx_hook != NULL)
		h->rx_hook(h);
	pthread_mutex_lock(&h->mtx);
	REQUIRE(h->rx_head != h->rx_tail);
	host_rx_free(h);
	h->rx_unsynced++;
	pthread_mutex_unlock(&h->mtx);
}

static void
host_sync(struct frame_port *port)
{
	struct host *h = host_of_port(port);

	pthread_mutex_lock(&h->mtx);
	h->nsync++;
	h->rx_unsynced = 0;
	pthread_mutex_unlock(&h->mtx);
}

static void
host_rx_ready(void *arg)
{
	struct host *h = arg;

	pthread_mutex_lock(&h->mtx);
	h->nready++;
	h->ready = true;
	pthread_cond_signal(&h->rx_cv);
	pthread_mutex_unlock(&h->mtx);
}

const struct e82545_ops host_ops = {
	.eo_map = host_map,
	.eo_intr = host_intr,
	.eo_message = host_message,
	.eo_now = host_now,
	.eo_timer = host_timer,
	.eo_tx_kick = host_tx_kick,
	.eo_rx_ready = host_rx_ready,
};

static uint64_t
host_missed(const struct frame_port *port)
{
	return (__containerof(port, const struct host, port)->missed);
}

const struct frame_port_ops host_port_ops = {
	.fpo_send = host_send,
	.fpo_flush = host_flush,
	.fpo_sync = host_sync,
	.fpo_missed = host_missed,
};

/*
 * Life cycle.
 */

static struct host *
host_create_config(size_t ram_size, enum e82545_kind kind, uint32_t itr_256ns,
    uint32_t itr_min_256ns, bool csb)
{
	struct e82545_config config;
	struct host *h;

	h = calloc(1, sizeof(*h));
	REQUIRE(h != NULL);
	h->ram = mmap(NULL, ram_size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANON, -1, 0);
	REQUIRE(h->ram != MAP_FAILED);
	h->ram_size = ram_size;
	/* Not 0: as the clock of a host that has run for a while. */
	h->now_ns = 1000000000;
	h->tx_space = UINT32_MAX;
	h->brk = 0x10000;
	pthread_mutex_init(&h->mtx, NULL);
	pthread_cond_init(&h->tx_cv, NULL);
	pthread_cond_init(&h->rx_cv, NULL);
	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, host_mac, sizeof(host_mac));
	config.ec_itr_256ns = itr_256ns;
	config.ec_itr_min_256ns = itr_min_256ns;
	config.ec_kind = kind;
	config.ec_csb = csb;
	config.ec_name = "test";
	h->source.fs_peek = host_peek;
	h->source.fs_next = host_next;
	h->port.fp_ops = &host_port_ops;
	h->port.fp_source = &h->source;
	h->port.fp_frame_max = UINT32_MAX;
	h->dev = e82545_create(&config, &host_ops, h, &h->port);
	REQUIRE(h->dev != NULL);
	e82545_bus_master(h->dev, true);
	h->kicked = h->ready = false;
	h->nkick = h->nready = 0;
	return (h);
}

struct host *
host_create_itr(size_t ram_size, uint32_t itr_256ns, uint32_t itr_min_256ns)
{
	return (host_create_config(ram_size, E82545_KIND_EM, itr_256ns,
	    itr_min_256ns, false));
}

struct host *
host_create(size_t ram_size)
{
	return (host_create_config(ram_size, E82545_KIND_EM, 0, 0, false));
}

struct host *
host_create_82574(size_t ram_size)
{
	return (host_create_config(ram_size, E82545_KIND_82574L, 0, 0, false));
}

struct host *
host_create_csb(size_t ram_size)
{
	return (host_create_config(ram_size, E82545_KIND_EM, 0, 0, true));
}

/* A snapshot of the adapter, in the state that it is in, must be valid. */
static void
host_check_saved(struct host *h)
{
	size_t size;
	void *buf;

	e82545_pause(h->dev);
	size = e82545_snapshot_size(h->dev);
	buf = malloc(size);
	REQUIRE(buf != NULL);
	REQUIRE(e82545_snapshot_save(h->dev, buf, size) == 0);
	REQUIRE(e82545_snapshot_restore(h->dev, buf, size) == 0);
	free(buf);
}

void
host_destroy(struct host *h)
{
	unsigned int i;

	if (h->threads)
		host_stop_threads(h);
	host_check_saved(h);
	e82545_destroy(h->dev);
	for (i = h->ntx_flushed; i < h->ntx; i++)
		free(h->tx_iov[i]);
	host_tx_forget(h);
	while (h->rx_head != h->rx_tail)
		host_rx_free(h);
	pthread_cond_destroy(&h->rx_cv);
	pthread_cond_destroy(&h->tx_cv);
	pthread_mutex_destroy(&h->mtx);
	munmap(h->ram, h->ram_size);
	free(h);
}

/*
 * Registers, counters, time, the interrupt line.
 */

uint32_t
host_rd(struct host *h, uint32_t off)
{
	return (e82545_read(h->dev, E82545_BAR_MEM, off, 4));
}

void
host_wr(struct host *h, uint32_t off, uint32_t value)
{
	e82545_write(h->dev, E82545_BAR_MEM, off, 4, value);
}

void
host_set(struct host *h, uint32_t off, uint32_t bits)
{
	host_wr(h, off, host_rd(h, off) | bits);
}

void
host_clear(struct host *h, uint32_t off, uint32_t bits)
{
	host_wr(h, off, host_rd(h, off) & ~bits);
}

uint64_t
host_counter(struct host *h, enum e82545_counter counter)
{
	uint64_t counters[E82545_NCOUNTERS];

	e82545_counters(h->dev, counters);
	return (counters[counter]);
}

void
host_advance(struct host *h, uint64_t ns)
{
	uint64_t until;

	pthread_mutex_lock(&h->mtx);
	until = h->now_ns + ns;
	while (h->timer_ns != 0 && h->timer_ns <= until) {
		if (h->timer_ns > h->now_ns)
			atomic_store_64(&h->now_ns, h->timer_ns);
		h->timer_ns = 0;
		pthread_mutex_unlock(&h->mtx);
		e82545_timer(h->dev);
		pthread_mutex_lock(&h->mtx);
	}
	atomic_store_64(&h->now_ns, until);
	pthread_mutex_unlock(&h->mtx);
}

bool
host_line(struct host *h)
{
	bool line;

	pthread_mutex_lock(&h->mtx);
	line = h->line;
	pthread_mutex_unlock(&h->mtx);
	return (line);
}

unsigned int
host_raised(struct host *h)
{
	unsigned int n;

	pthread_mutex_lock(&h->mtx);
	n = h->nraised;
	pthread_mutex_unlock(&h->mtx);
	return (n);
}

/*
 * The workers.
 */

static bool
host_take(struct host *h, bool *flag)
{
	bool was;

	pthread_mutex_lock(&h->mtx);
	was = *flag;
	*flag = false;
	pthread_mutex_unlock(&h->mtx);
	return (was);
}

static void
host_rx_all(struct host *h)
{
	while (e82545_rx(h->dev) == E82545_RX_MORE)
		;
}

void
host_run(struct host *h)
{
	bool rx, tx;

	REQUIRE(!h->threads);
	do {
		tx = host_take(h, &h->kicked);
		if (tx) {
			while (e82545_tx(h->dev) != E82545_TX_IDLE)
				;
		}
		rx = host_take(h, &h->ready);
		if (rx)
			host_rx_all(h);
	} while (tx || rx);
}

static void *
host_tx_main(void *arg)
{
	struct host *h = arg;

	pthread_mutex_lock(&h->mtx);
	while (!h->stop) {
		if (!h->kicked) {
			pthread_cond_wait(&h->tx_cv, &h->mtx);
			continue;
		}
		h->kicked = false;
		pthread_mutex_unlock(&h->mtx);
		while (e82545_tx(h->dev) != E82545_TX_IDLE)
			;
		pthread_mutex_lock(&h->mtx);
	}
	pthread_mutex_unlock(&h->mtx);
	return (NULL);
}

static void *
host_rx_main(void *arg)
{
	struct host *h = arg;

	pthread_mutex_lock(&h->mtx);
	while (!h->stop) {
		if (!h->ready) {
			pthread_cond_wait(&h->rx_cv, &h->mtx);
			continue;
		}
		h->ready = false;
		pthread_mutex_unlock(&h->mtx);
		host_rx_all(h);
		pthread_mutex_lock(&h->mtx);
	}
	pthread_mutex_unlock(&h->mtx);
	return (NULL);
}

void
host_start_threads(struct host *h)
{
	REQUIRE(!h->threads);
	h->stop = false;
	h->threads = true;
	REQUIRE(pthread_create(&h->tx_thread, NULL, host_tx_main, h) == 0);
	REQUIRE(pthread_create(&h->rx_thread, NULL, host_rx_main, h) == 0);
}

void
host_stop_threads(struct host *h)
{
	REQUIRE(h->threads);
	pthread_mutex_lock(&h->mtx);
	h->stop = true;
	pthread_cond_signal(&h->tx_cv);
	pthread_cond_signal(&h->rx_cv);
	pthread_mutex_unlock(&h->mtx);
	pthread_join(h->tx_thread, NULL);
	pthread_join(h->rx_thread, NULL);
	h->threads = false;
}

/*
 * The network.
 */

void
host_inject(struct host *h, const void *data, size_t len, int nfrags)
{
	struct frame frame;

	frame_set(&frame, nfrags, len);
	host_inject_offload(h, &frame, data, len, nfrags);
}

void
host_inject_offload(struct host *h, const struct frame *frame,
    const void *data, size_t len, int nfrags)
{
	const uint8_t *p = data;
	struct host_frame *f;
	struct iovec *iov;
	size_t left, n;
	int i;

	REQUIRE(nfrags > 0 && nfrags <= FRAME_MAXIOV);
	REQUIRE(len >= (size_t)nfrags);
	iov = calloc(nfrags, sizeof(*iov));
	REQUIRE(iov != NULL);
	left = len;
	for (i = 0; i < nfrags; i++) {
		n = left / (nfrags - i);
		iov[i].iov_base = malloc(n);
		REQUIRE(iov[i].iov_base != NULL);
		iov[i].iov_len = n;
		memcpy(iov[i].iov_base, p, n);
		p += n;
		left -= n;
	}
	pthread_mutex_lock(&h->mtx);
	REQUIRE(h->rx_tail - h->rx_head < HOST_FRAMES);
	f = &h->rx[h->rx_tail % HOST_FRAMES];
	f->nfrags = nfrags;
	f->frame = *frame;
	f->frame.f_niov = nfrags;
	f->frame.f_len = len;
	h->rx_iov[h->rx_tail % HOST_FRAMES] = iov;
	h->rx_tail++;
	h->ready = true;
	pthread_cond_signal(&h->rx_cv);
	pthread_mutex_unlock(&h->mtx);
}

unsigned int
host_rx_pending(struct host *h)
{
	unsigned int n;

	pthread_mutex_lock(&h->mtx);
	n = h->rx_tail - h->rx_head;
	pthread_mutex_unlock(&h->mtx);
	return (n);
}

unsigned int
host_sent(struct host *h)
{
	unsigned int n;

	pthread_mutex_lock(&h->mtx);
	n = h->ntx_flushed;
	pthread_mutex_unlock(&h->mtx);
	return (n);
}

const struct host_frame *
host_sent_frame(struct host *h, unsigned int n)
{
	REQUIRE(n < host_sent(h));
	return (&h->tx[n]);
}

void
host_sent_clear(struct host *h)
{
	pthread_mutex_lock(&h->mtx);
	REQUIRE(h->ntx == h->ntx_flushed);
	host_tx_forget(h);
	pthread_mutex_unlock(&h->mtx);
}

/*
 * The driver.
 */

void *
host_mem(struct host *h, uint64_t gpa, size_t len)
{
	REQUIRE(gpa < h->ram_size && len <= h->ram_size - gpa);
	return (h->ram + gpa);
}

uint64_t
host_alloc(struct host *h, size_t len, size_t align)
{
	uint64_t gpa;

	gpa = (h->brk + align - 1) & ~((uint64_t)align - 1);
	memset(host_mem(h, gpa, len), 0, len);
	h->brk = gpa + len;
	return (gpa);
}

uint32_t
host_rctl_bsize(uint32_t rxbufsize)
{
	switch (rxbufsize) {
	case 256:
		return (3 << 16);
	case 512:
		return (2 << 16);
	case 1024:
		return (1 << 16);
	case 2048:
		return (0);
	case 4096:
		return (3 << 16 | E82545_RCTL_BSEX);
	case 8192:
		return (2 << 16 | E82545_RCTL_BSEX);
	case 16384:
		return (1 << 16 | E82545_RCTL_BSEX);
	default:
		REQUIRE(!"buffer size");
		return (0);
	}
}

void
host_rings(struct host *h, uint32_t ntxd, uint32_t nrxd, uint32_t rxbufsize)
{
	uint32_t i;

	h->ntxd = ntxd;
	h->txring = host_alloc(h, ntxd * sizeof(union e82545_txd), 128);
	h->nrxd = nrxd;
	h->rxbufsize = rxbufsize;
	h->rxring = host_alloc(h, nrxd * sizeof(struct e82545_rxd), 128);
	h->rxbuf = host_alloc(h, (size_t)nrxd * rxbufsize, 128);
	for (i = 0; i < nrxd; i++)
		host_rxd(h, i)->addr = h->rxbuf + (uint64_t)i * rxbufsize;
}

void
host_place_tx(struct host *h)
{
	host_wr(h, E82545_TDBAL, h->txring);
	host_wr(h, E82545_TDBAH, h->txring >> 32);
	host_wr(h, E82545_TDLEN, h->ntxd * sizeof(union e82545_txd));
	host_wr(h, E82545_TDH, 0);
	host_wr(h, E82545_TDT, 0);
}

void
host_place_rx(struct host *h)
{
	host_wr(h, E82545_RDBAL, h->rxring);
	host_wr(h, E82545_RDBAH, h->rxring >> 32);
	host_wr(h, E82545_RDLEN, h->nrxd * sizeof(struct e82545_rxd));
	host_wr(h, E82545_RDH, 0);
}

void
host_up(struct host *h, uint32_t ntxd, uint32_t nrxd, uint32_t rxbufsize)
{
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	host_rings(h, ntxd, nrxd, rxbufsize);
	h->txtail = 0;
	host_place_tx(h);
	h->rxnext = 0;
	h->rxtail = h->rxposted = nrxd - 1;
	host_place_rx(h);
	host_wr(h, E82545_RDT, h->rxtail);
	host_wr(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    E82545_RCTL_SECRC | host_rctl_bsize(rxbufsize));
}

union e82545_txd *
host_txd(struct host *h, uint32_t n)
{
	REQUIRE(n < h->ntxd);
	return (host_mem(h, h->txring + n * sizeof(union e82545_txd),
	    sizeof(union e82545_txd)));
}

struct e82545_rxd *
host_rxd(struct host *h, uint32_t n)
{
	REQUIRE(n < h->nrxd);
	return (host_mem(h, h->rxring + n * sizeof(struct e82545_rxd),
	    sizeof(struct e82545_rxd)));
}

uint32_t
host_tx_desc(struct host *h, const union e82545_txd *txd)
{
	uint32_t n;

	n = h->txtail;
	*host_txd(h, n) = *txd;
	h->txtail = (n + 1) % h->ntxd;
	return (n);
}

uint32_t
host_tx_legacy(struct host *h, uint64_t gpa, uint16_t len, uint32_t cmd)
{
	union e82545_txd txd;

	memset(&txd, 0, sizeof(txd));
	txd.addr = gpa;
	txd.lower = cmd | len;
	return (host_tx_desc(h, &txd));
}

uint32_t
host_tx_frame(struct host *h, const void *data, uint16_t len, uint32_t cmd)
{
	uint64_t gpa;

	gpa = host_alloc(h, len, 1);
	memcpy(host_mem(h, gpa, len), data, len);
	return (host_tx_legacy(h, gpa, len, cmd | E82545_TXD_EOP |
	    E82545_TXD_IFCS | E82545_TXD_RS));
}

void
host_tx_go(struct host *h)
{
	host_wr(h, E82545_TDT, h->txtail);
}

bool
host_tx_done(struct host *h, uint32_t n)
{
	volatile uint8_t *status = &host_txd(h, n)->legacy.status;

	return ((atomic_load_acq_8(status) & E82545_TXD_DD) != 0);
}

bool
host_rx_done(struct host *h, uint32_t n)
{
	/* Read at once, as it is written. */
	const uint64_t *done = (const void *)&host_rxd(h, n)->length;

	return ((le64toh(atomic_load_acq_64(done)) >> 32 & E82545_RXD_DD) !=
	    0);
}

ssize_t
host_rx_take(struct host *h, void *buf, size_t size, struct e82545_rxd *last)
{
	struct e82545_rxd *rxd;
	uint32_t i, n;
	size_t len;
	bool eop;

	eop = false;
	for (i = 0; i < h->nrxd && !eop; i++) {
		n = (h->rxnext + i) % h->nrxd;
		if (!host_rx_done(h, n))
			return (-1);
		eop = (host_rxd(h, n)->status & E82545_RXD_EOP) != 0;
	}
	REQUIRE(eop);
	len = 0;
	do {
		rxd = host_rxd(h, h->rxnext);
		REQUIRE(rxd->length <= h->rxbufsize);
		REQUIRE(rxd->length <= size - len);
		memcpy((uint8_t *)buf + len,
		    host_mem(h, rxd->addr, rxd->length), rxd->length);
		len += rxd->length;
		eop = (rxd->status & E82545_RXD_EOP) != 0;
		if (last != NULL)
			*last = *rxd;
		rxd->length = rxd->csum = rxd->special = 0;
		rxd->status = rxd->errors = 0;
		h->rxnext = (h->rxnext + 1) % h->nrxd;
		h->rxtail = (h->rxtail + 1) % h->nrxd;
	} while (!eop);
	return (len);
}

void
host_rx_post(struct host *h)
{
	h->rxposted = h->rxtail;
	host_wr(h, E82545_RDT, h->rxtail);
}

void
host_make_frame(uint8_t *frame, size_t len, const uint8_t dst[6],
    unsigned int seed)
{
	static const uint8_t src[6] = { 0x02, 0, 0, 0, 0, 0x01 };
	size_t i;

	REQUIRE(len >= 14);
	memcpy(frame, dst, 6);
	memcpy(frame + 6, src, 6);
	/* An EtherType for experiments, which no filter parses. */
	frame[12] = 0x88;
	frame[13] = 0xb5;
	for (i = 14; i < len; i++)
		frame[i] = seed + i * 7;
}
