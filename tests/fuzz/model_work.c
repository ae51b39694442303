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

#include "e82545_impl.h"
#include "model_impl.h"

/* Calls of eo_map() in a batch: rings, CSB, descriptors and packets. */
#define	PIECES		257		/* pages that a packet may reach into */
#define	TX_MAPS_MAX	(1024 + 256 + 8 + 1024 + PIECES + 2 * 256)
#define	RX_MAPS_MAX	(E82545_QUEUES * (1024 + 8) * 6)
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
static struct {
	uint32_t	lower[TX_RING_MAX];
	uint32_t	head, size;
} rings[E82545_QUEUES];

static void
ring_copy(unsigned int queue)
{
	uint64_t base = ring_base(E82545_TDBAL + E82574_QUEUE(queue));
	uint32_t *ring = rings[queue].lower, size = rings[queue].size;
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

/* Whether the two rings have memory in common. */
static bool
rings_overlap(void)
{
	const uint64_t a = ring_base(E82545_TDBAL);
	const uint64_t b = ring_base(E82545_TDBAL + E82574_QUEUE(1));

	return (a < b + rings[1].size * sizeof(union e82545_txd) &&
	    b < a + rings[0].size * sizeof(union e82545_txd));
}

/* Whether a descriptor of a ring asks for TSO. */
static bool
ring_cuts(unsigned int queue)
{
	uint32_t i, lower;

	for (i = 0; i < rings[queue].size; i++) {
		lower = rings[queue].lower[i];
		if ((lower & E82545_TXD_DEXT) != 0 &&
		    (lower & E82545_TXD_TSE) != 0)
			return (true);
	}
	return (false);
}

/* The packets that TDH has passed. */
static unsigned int
ring_packets(unsigned int queue)
{
	const uint32_t end = reg_read(E82545_TDH + E82574_QUEUE(queue));
	unsigned int n = 0;
	uint32_t i, lower;

	for (i = rings[queue].head; i != end;
	    i = (i + 1) % rings[queue].size) {
		lower = rings[queue].lower[i];
		n += (lower & E82545_TXD_EOP) != 0 && !is_context(lower);
	}
	return (n);
}

bool
transmit(void)
{
	const unsigned int nqueues = m.kind == E82545_KIND_82574L ?
	    E82545_QUEUES : 1;
	unsigned int q;
	int64_t before;
	bool more;

	if (m.lem)
		return (lem_transmit());

	for (q = 0; q < nqueues; q++) {
		rings[q].head = reg_read(E82545_TDH + E82574_QUEUE(q));
		rings[q].size = MIN(ring_size(E82545_TDLEN + E82574_QUEUE(q)),
		    TX_RING_MAX);
		if (!m.raced && !m.cut)
			ring_copy(q);
		/* The model writes into both. */
		if (q > 0 && rings_overlap())
			m.raced = true;
	}
	before = outcomes();
	call_begin();
	more = m.workers->tx(m.h->dev);
	call_end();
	INVARIANT(m.maps <= TX_MAPS_MAX);
	INVARIANT(m.sent <= E82545_TX_FRAMES);
	if (m.raced)
		return (more);
	for (q = 0; q < nqueues; q++)
		m.cut |= ring_cuts(q);
	if (m.cut)
		return (more);
	m.open += outcomes() - before;
	for (q = 0; q < nqueues; q++)
		if (rings[q].head < rings[q].size)
			m.open -= ring_packets(q);
	/* A packet that is too long is counted before its end. */
	INVARIANT(m.open >= 0 && m.open <= nqueues);
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
