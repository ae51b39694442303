/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82545_host.h.  The host calls the model only without its mutex, so the
 * model may call it with its own locks.
 */

#include <sys/types.h>
#include <sys/mman.h>

#include <stdlib.h>
#include <string.h>

#include "e82545_host.h"
#include "e82545_host_impl.h"
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

static void
host_withdraw(void *arg, uint32_t vectors)
{
	struct host *h = arg;

	pthread_mutex_lock(&h->mtx);
	h->nwithdrawn++;
	h->withdrawn = vectors;
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
	.eo_withdraw = host_withdraw,
	.eo_now = host_now,
	.eo_timer = host_timer,
	.eo_tx_kick = host_tx_kick,
	.eo_rx_ready = host_rx_ready,
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
	h->brk = 0x10000;
	pthread_mutex_init(&h->mtx, NULL);
	pthread_cond_init(&h->tx_cv, NULL);
	pthread_cond_init(&h->rx_cv, NULL);
	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, host_mac, sizeof(host_mac));
	config.ec_itr_256ns = itr_256ns;
	config.ec_itr_min_256ns = itr_min_256ns;
	config.ec_kind = kind;
	/* So that the EEPROM is that of the known snapshots. */
	config.ec_csb = csb ? E82545_CSB_COMPAT : E82545_CSB_OFF;
	config.ec_name = "test";
	host_net_init(h);
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

struct host *
host_create_82574_csb(size_t ram_size)
{
	return (host_create_config(ram_size, E82545_KIND_82574L, 0, 0, true));
}

/* Pause an adapter, and restore it from a snapshot of itself. */
static void
host_restore(struct host *h)
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
	if (h->threads)
		host_stop_threads(h);
	/* A snapshot, in whatever state it is, must be valid. */
	host_restore(h);
	e82545_destroy(h->dev);
	host_net_destroy(h);
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
