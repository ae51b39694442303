/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Batches of the model's workers, and what must hold after each: the work is
 * bounded, and every frame is counted once.
 */

#include <sys/param.h>

#include <net/paravirt.h>

#include <stddef.h>
#include <string.h>

#include "model_impl.h"

/* Calls of eo_map() in a batch: rings, CSB, descriptors and packets. */
#define	PIECES		257		/* pages that a packet may reach into */
#define	TX_MAPS_MAX	(1024 + 256 + 8 + 1024 + PIECES + 2 * 256)
#define	RX_MAPS_MAX	((1024 + 8) * 6)
#define	RX_BATCH_MAX	256		/* frames taken in a batch */
#define	TX_RING_MAX	65536		/* descriptors */

/* A reset drops incomplete packets. */
void
forget(void)
{
	m.open = 0;
	m.cut = false;
}

/*
 * Transmit, and the outcome of each packet.
 */

static int64_t
outcomes(void)
{
	static const enum e82545_counter which[] = {
		E82545_C_TX_FRAME, E82545_C_LOOPBACK, E82545_C_TX_NOROOM,
		E82545_C_TX_LINKDOWN, E82545_C_TX_BAD_DESC,
		E82545_C_TX_BAD_ADDR, E82545_C_TX_BAD_LEN
	};
	uint64_t counters[E82545_NCOUNTERS];
	int64_t n;
	size_t i;

	e82545_counters(m.h->dev, counters);
	n = 0;
	for (i = 0; i < nitems(which); i++)
		n += counters[which[i]];
	return (n);
}

/* Copied before the call: the model writes into the ring. */
static uint32_t ring[TX_RING_MAX];

static void
ring_copy(uint32_t size)
{
	uint64_t base = ring_base(E82545_TDBAL);
	uint8_t *p;
	uint32_t i;

	memset(ring, 0, size * sizeof(ring[0]));
	p = memory(base, size * sizeof(union e82545_txd));
	for (i = 0; p != NULL && i < size; i++)
		memcpy(&ring[i], p + i * sizeof(union e82545_txd) +
		    offsetof(union e82545_txd, lower), sizeof(ring[0]));
	if (m.csb < base + size * sizeof(union e82545_txd) &&
	    base < m.csb + NET_PARAVIRT_CSB_SIZE)
		m.raced = true;		/* the model writes there */
}

static bool
is_context(uint32_t lower)
{
	return ((lower & (E82545_TXD_DEXT | E82545_TXD_DTYP)) ==
	    (E82545_TXD_DEXT | E82545_TXD_DTYP_CONTEXT));
}

bool
transmit(void)
{
	uint32_t head, i, size;
	int64_t before;
	bool more;

	if (m.lem)
		return (lem_transmit());

	head = reg_read(E82545_TDH);
	size = MIN(ring_size(E82545_TDLEN), TX_RING_MAX);
	if (!m.raced && !m.cut)
		ring_copy(size);
	before = outcomes();
	call_begin();
	more = m.workers->tx(m.h->dev);
	call_end();
	INVARIANT(m.maps <= TX_MAPS_MAX);
	INVARIANT(m.sent <= E82545_TX_FRAMES);
	if (m.raced || m.cut || head >= size)
		return (more);
	for (i = 0; i < size; i++)
		if ((ring[i] & E82545_TXD_DEXT) != 0 &&
		    (ring[i] & E82545_TXD_TSE) != 0)
			m.cut = true;
	if (m.cut)
		return (more);
	m.open += outcomes() - before;
	for (i = head; i != reg_read(E82545_TDH); i = (i + 1) % size)
		if ((ring[i] & E82545_TXD_EOP) != 0 && !is_context(ring[i]))
			m.open--;
	/* A packet that is too long is counted before its end. */
	INVARIANT(m.open == 0 || m.open == 1);
	return (more);
}

/*
 * Receive.
 */

void
receive(unsigned int calls)
{
	enum e82545_rx_state state;

	do {
		call_begin();
		state = m.workers->rx(m.h->dev);
		call_end();
		INVARIANT(m.maps <= RX_MAPS_MAX);
		INVARIANT(m.taken_now <= RX_BATCH_MAX);
	} while (state == E82545_RX_MORE && --calls > 0);
	if (m.lem)
		lem_received();
}

/* Receive until all frames are taken or one does not fit. */
void
receive_direct(void)
{
	uint64_t stalls;
	unsigned int waiting;

	waiting = host_rx_pending(m.h) - m.injected;
	stalls = host_counter(m.h, E82545_C_RX_STALL);
	call_begin();
	m.workers->rx_direct(m.h->dev, &m.h->source);
	call_end();
	waiting += m.injected;
	INVARIANT(m.taken_now + host_rx_pending(m.h) == waiting);
	INVARIANT(m.maps <= (waiting / RX_BATCH_MAX + 2) * RX_MAPS_MAX);
	INVARIANT(host_counter(m.h, E82545_C_RX_STALL) == stalls);
	if (m.lem)
		lem_received();
}

void
check_counters(void)
{
	uint64_t c[E82545_NCOUNTERS], dropped;

	e82545_counters(m.h->dev, c);
	INVARIANT(c[E82545_C_TX_FRAME] == m.accepted);
	INVARIANT(c[E82545_C_TX_NOROOM] >= m.refused);
	dropped = c[E82545_C_RX_FILTERED] + c[E82545_C_RX_OVERSIZE] +
	    c[E82545_C_RX_DISABLED] + c[E82545_C_RX_BAD_ADDR] +
	    c[E82545_C_RX_BAD_OFFLOAD];
	INVARIANT(c[E82545_C_RX_FRAME] + dropped >= m.taken);
	/* Each segment may have a bad address. */
	INVARIANT(c[E82545_C_RX_FRAME] + dropped <=
	    m.taken + c[E82545_C_LOOPBACK] ||
	    (m.offloads && c[E82545_C_RX_BAD_ADDR] > 0));
}
