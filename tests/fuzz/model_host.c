/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The host of the model's fuzzer: guest memory, which is poisoned unless the
 * model has asked for it; the network, which counts what a call sends and
 * takes; the digest of the model's effect; registers and the adapter's state.
 * It puts these checks before functions of the host in tests/testbed.
 *
 * There is one thread.  When the model asks for memory or sends or takes a
 * frame, another CPU of the guest may change memory (MODEL_RACE) or run lem(4)
 * (model_lem.c).
 */

#include <sys/param.h>
#include <sys/mman.h>

#include <sanitizer/asan_interface.h>

#include <stdlib.h>
#include <string.h>

#include "model_impl.h"

struct model m;
_Alignas(E82545_MEMORY_ALIGN) uint8_t model_memory[ADAPTER_MEMORY];

/* The host's, of which some are replaced. */
static struct e82545_ops model_ops;
static struct frame_source host_source;

/* FNV-1a, of 8 bytes at a time. */
void
digest(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t word;
	size_t n;

	for (; len > 0; p += n, len -= n) {
		n = MIN(len, sizeof(word));
		word = 0;
		memcpy(&word, p, n);
		m.effect = (m.effect ^ word ^ n) * 0x100000001b3;
		m.effect ^= m.effect >> 32;
	}
}

void
digest_number(uint64_t n)
{
	digest(&n, sizeof(n));
}

/*
 * Guest memory.
 */

uint8_t *
memory(uint64_t gpa, size_t len)
{
	if (gpa < MODEL_RAM && len <= MODEL_RAM - gpa)
		return (m.h->ram + gpa);
	if (gpa >= MODEL_FAR && gpa - MODEL_FAR < MODEL_FAR_SIZE &&
	    len <= MODEL_FAR_SIZE - (gpa - MODEL_FAR))
		return (m.far + (gpa - MODEL_FAR));
	return (NULL);
}

void
put64(uint64_t gpa, uint64_t value)
{
	uint8_t *p = memory(gpa, sizeof(value));

	if (p != NULL)
		memcpy(p, &value, sizeof(value));
}

void
put32(uint64_t gpa, uint32_t value)
{
	uint8_t *p = memory(gpa, sizeof(value));

	if (p != NULL)
		memcpy(p, &value, sizeof(value));
}

/* Another CPU of the guest may access poisoned memory. */
__attribute__((__no_sanitize__("address", "undefined")))
static void
race_memory(void)
{
	uint8_t *p;
	size_t i, n;

	if (m.race_in == 0 || --m.race_in != 0)
		return;
	p = memory(m.race_gpa, sizeof(m.race_value));
	n = m.lem ? sizeof(uint32_t) : sizeof(m.race_value);
	for (i = 0; p != NULL && i < n; i++)
		p[i] = m.race_value >> (8 * i);
	m.raced = true;
}

void
call_begin(void)
{
	if (m.in_model)
		return;
	m.maps = m.sent = m.taken_now = 0;
	ASAN_POISON_MEMORY_REGION(m.h->ram, MODEL_RAM);
	ASAN_POISON_MEMORY_REGION(m.far, MODEL_FAR_SIZE);
}

void
call_end(void)
{
	if (m.in_model)
		return;
	ASAN_UNPOISON_MEMORY_REGION(m.h->ram, MODEL_RAM);
	ASAN_UNPOISON_MEMORY_REGION(m.far, MODEL_FAR_SIZE);
}

/*
 * What the model asks of its host.
 */

static void *
model_map(void *arg __unused, uint64_t gpa, size_t len,
    unsigned int access __unused)
{
	void *p;

	race_memory();
	m.maps++;
	INVARIANT(len > 0);
	INVARIANT(m.bus && !m.paused);
	p = memory(gpa, len);
	if (p != NULL)
		ASAN_UNPOISON_MEMORY_REGION(p, len);
	return (p);
}

static bool
model_send(struct frame_port *port, const struct frame *frame)
{
	bool ok;
	int i;

	INVARIANT(m.bus);
	race_memory();
	race_lem();
	if (m.lem)
		lem_sends(frame);
	m.sent++;
	for (i = 0; i < frame->f_niov; i++)
		digest(frame->f_iov[i].iov_base, frame->f_iov[i].iov_len);
	ok = host_port_ops.fpo_send(port, frame);
	digest_number(ok);
	if (ok)
		m.accepted++;
	else
		m.refused++;
	return (ok);
}

static void
model_flush(struct frame_port *port)
{
	race_memory();
	race_lem();
	host_port_ops.fpo_flush(port);
}

static void
model_sync(struct frame_port *port)
{
	host_port_ops.fpo_sync(port);
}

static const struct frame_port_ops model_port_ops = {
	.fpo_send = model_send,
	.fpo_flush = model_flush,
	.fpo_sync = model_sync,
};

static bool
model_peek(struct frame_source *source, struct frame *frame)
{
	race_memory();
	race_lem();
	return (host_source.fs_peek(source, frame));
}

static void
model_next(struct frame_source *source)
{
	INVARIANT(m.bus);
	m.taken_now++;
	m.taken++;
	host_source.fs_next(source);
}

/*
 * Registers and the adapter's state.
 */

uint32_t
reg_read(uint32_t off)
{
	return (e82545_read(m.h->dev, E82545_BAR_MEM, off, 4));
}

void
reg_write(uint32_t off, uint32_t value)
{
	call_begin();
	e82545_write(m.h->dev, E82545_BAR_MEM, off, 4, value);
	call_end();
}

uint64_t
ring_base(uint32_t low)
{
	return ((uint64_t)reg_read(low + 4) << 32 | reg_read(low));
}

uint32_t
ring_size(uint32_t len)
{
	return (MAX(reg_read(len) / sizeof(union e82545_txd), 1));
}

void
host_pause(bool pause)
{
	if (pause == m.paused)
		return;
	call_begin();
	if (pause)
		e82545_pause(m.h->dev);
	else
		e82545_resume(m.h->dev);
	call_end();
	m.paused = pause;
}

int
host_recover(void *old)
{
	int error;

	call_begin();
	m.paused = false;
	error = e82545_recover(m.h->dev, old, ADAPTER_MEMORY);
	m.paused = true;
	call_end();
	return (error);
}

void
host_bus(bool on)
{
	call_begin();
	m.bus = on || m.bus;
	e82545_bus_master(m.h->dev, on);
	m.bus = on;
	call_end();
}

/*
 * An input.
 */

void
model_begin(const struct model_workers *workers, enum e82545_kind kind)
{
	struct e82545_config config;
	struct host *h;

	if (m.h == NULL) {
		m.h = host_create(MODEL_RAM);
		e82545_destroy(m.h->dev);
		model_ops = host_ops;
		model_ops.eo_map = model_map;
		m.h->port.fp_ops = &model_port_ops;
		host_source = m.h->source;
		m.h->source.fs_peek = model_peek;
		m.h->source.fs_next = model_next;
	}
	h = m.h;
	memset(&m, 0, sizeof(m));
	m.h = h;
	m.workers = workers;
	m.kind = kind;
	m.far = malloc(MODEL_FAR_SIZE);
	INVARIANT(m.far != NULL);
	memset(m.far, 0, MODEL_FAR_SIZE);
	madvise(h->ram, MODEL_RAM, MADV_DONTNEED);
	h->now_ns = 1000000000;
	h->timer_ns = 0;
	h->line = h->kicked = h->ready = false;
	h->nedges = h->nraised = 0;
	memset(h->nmessages, 0, sizeof(h->nmessages));
	h->tx_space = UINT32_MAX;
	h->tx_discard = true;
	h->port.fp_offloads = false;
	memset(&config, 0, sizeof(config));
	memcpy(config.ec_mac, host_mac, sizeof(host_mac));
	config.ec_kind = kind;
	config.ec_csb = E82545_CSB_ON;
	config.ec_name = "fuzz";
	memset(model_memory, 0, sizeof(model_memory));
	config.ec_memory = model_memory;
	config.ec_memory_size = sizeof(model_memory);
	h->dev = e82545_create(&config, &model_ops, h, &h->port);
	INVARIANT(h->dev != NULL);
	host_bus(true);
}

void
model_end(void)
{
	host_sent_clear(m.h);
	e82545_destroy(m.h->dev);
	m.h->dev = NULL;
	free(m.far);
}
