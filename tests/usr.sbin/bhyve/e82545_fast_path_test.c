/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The fast paths of the model, tx_single_desc() and rx_single_buffer(), have
 * the effect of the general ones.
 *
 * Two adapters get the same input: registers, descriptors of all kinds, frames
 * from the network, rings that run full and wrap, addresses outside of memory.
 * The first one's workers are e82545_tx() and e82545_rx(), the second one's
 * have no fast path.  After each step guest memory with its descriptors, the
 * frames sent, the interrupts and the adapter's complete state with all
 * counters must be equal.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "e82545_general.h"
#include "e82545_host.h"
#include "e82545_packet.h"
#include "fast_path.h"

#define	RAM		0x100000	/* bytes */
#define	TXRING		0x10000
#define	RXRING		0x14000
#define	TXBUFS		0x20000
#define	RXBUFS		0x80000
#define	RING_MAX	2048		/* descriptors */

/* One of the two adapters. */
struct world {
	struct host	*h;
	enum e82545_tx_state (*tx)(struct e82545 *);
	enum e82545_rx_state (*rx)(struct e82545 *);
	void		(*rx_direct)(struct e82545 *, struct frame_source *);
	uint8_t		*snapshot;
	size_t		 size;
};

static struct world worlds[2] = {
	{ .tx = e82545_tx, .rx = e82545_rx, .rx_direct = e82545_rx_direct },
	{ .tx = e82545_general_tx, .rx = e82545_general_rx,
	    .rx_direct = e82545_general_rx_direct },
};

static unsigned int scenario;
static uint32_t ntxd, nrxd, txtail, rxtail;

/* The lengths at which something changes, and one off. */
static uint32_t
frame_length(void)
{
	static const uint16_t edges[] = {
		14, 18, 60, 64, 128, 256 - 4, 256, 1514, 1518, 1522, 2048 - 4,
		2048, 4096, E82545_FRAME_MAX
	};

	if (chance(1, 4))
		return (1 + below(2 * 1518));
	return (edges[below(nitems(edges))] + below(3) - 1);
}

/*
 * The two adapters.
 */

static void
set(uint32_t off, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < nitems(worlds); i++)
		host_wr(worlds[i].h, off, value);
}

static void
put(uint64_t gpa, const void *data, size_t len)
{
	unsigned int i;

	for (i = 0; i < nitems(worlds); i++)
		memcpy(host_mem(worlds[i].h, gpa, len), data, len);
}

#define	REQUIRE_SAME(cond, what)					\
	ATF_REQUIRE_MSG(cond, "seed %" PRIu32 ", scenario %u, step %u: " \
	    "%s differ", seed, scenario, step, what)

static void
take_snapshot(struct world *w)
{
	size_t size;

	e82545_pause(w->h->dev);
	size = e82545_snapshot_size(w->h->dev);
	w->snapshot = realloc(w->snapshot, size);
	ATF_REQUIRE(w->snapshot != NULL);
	w->size = size;
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(w->h->dev, w->snapshot, size));
	e82545_resume(w->h->dev);
}

static void
compare_sent(struct host *a, struct host *b)
{
	const struct host_frame *fa, *fb;
	unsigned int i;

	REQUIRE_SAME(host_sent(a) == host_sent(b), "numbers of frames sent");
	for (i = 0; i < host_sent(a); i++) {
		fa = host_sent_frame(a, i);
		fb = host_sent_frame(b, i);
		REQUIRE_SAME(fa->len == fb->len && fa->nfrags == fb->nfrags &&
		    memcmp(fa->data, fb->data, fa->len) == 0, "frames sent");
	}
	host_sent_clear(a);
	host_sent_clear(b);
}

static void
compare(void)
{
	struct host *a = worlds[0].h, *b = worlds[1].h;
	enum e82545_counter c;

	for (c = 0; c < E82545_NCOUNTERS; c++)
		REQUIRE_SAME(host_counter(a, c) == host_counter(b, c),
		    e82545_counter_table[c].cr_name);
	compare_sent(a, b);
	REQUIRE_SAME(memcmp(a->ram + TXRING, b->ram + TXRING,
	    ntxd * sizeof(union e82545_txd)) == 0, "transmit descriptors");
	REQUIRE_SAME(memcmp(a->ram + RXRING, b->ram + RXRING,
	    nrxd * sizeof(struct e82545_rxd)) == 0, "receive descriptors");
	REQUIRE_SAME(memcmp(a->ram, b->ram, RAM) == 0, "bytes of memory");
	REQUIRE_SAME(a->rx_head == b->rx_head, "frames taken");
	REQUIRE_SAME(a->nflush == b->nflush && a->nsync == b->nsync &&
	    a->nready == b->nready && a->nkick == b->nkick,
	    "calls of the host");
	REQUIRE_SAME(a->nedges == b->nedges && a->line == b->line &&
	    a->timer_ns == b->timer_ns && memcmp(a->edges, b->edges,
	    a->nedges * sizeof(a->edges[0])) == 0, "interrupts");
	REQUIRE_SAME(memcmp(a->port.fp_counter, b->port.fp_counter,
	    sizeof(a->port.fp_counter)) == 0, "counters of the port");
	a->nedges = b->nedges = 0;
	take_snapshot(&worlds[0]);
	take_snapshot(&worlds[1]);
	REQUIRE_SAME(worlds[0].size == worlds[1].size &&
	    memcmp(worlds[0].snapshot, worlds[1].snapshot,
	    worlds[0].size) == 0, "states");
}

/*
 * Steps.
 */

/* Receive settings, also while frames are pending. */
static void
step_rctl(void)
{
	uint32_t rctl;

	rctl = chance(15, 16) ? E82545_RCTL_EN : 0;
	rctl |= rnd() & (E82545_RCTL_UPE | E82545_RCTL_MPE | E82545_RCTL_LPE |
	    E82545_RCTL_BAM | E82545_RCTL_SECRC | 3 << 16 | 3 << 8);
	if (chance(1, 4))
		rctl |= E82545_RCTL_BSEX;
	if (chance(1, 8))
		rctl |= E82545_RCTL_VFE;
	if (chance(1, 16))
		rctl |= E82545_RCTL_LBM_MAC;
	set(E82545_RCTL, rctl);
	set(E82545_RXCSUM, rnd() & (E82545_RXCSUM_PCSS |
	    E82545_RXCSUM_IPOFL | E82545_RXCSUM_TUOFL |
	    E82545_RXCSUM_IPV6OFL));
}

static void
step_settings(void)
{
	uint32_t frame_max, room;
	unsigned int i;

	set(E82545_CTRL, E82545_CTRL_SLU |
	    (chance(1, 2) ? E82545_CTRL_VME : 0));
	set(E82545_TCTL, (chance(15, 16) ? E82545_TCTL_EN : 0) |
	    (chance(1, 2) ? E82545_TCTL_PSP : 0));
	frame_max = chance(1, 2) ? UINT32_MAX : frame_length();
	room = chance(3, 4) ? UINT32_MAX : below(64);
	for (i = 0; i < nitems(worlds); i++) {
		worlds[i].h->port.fp_frame_max = frame_max;
		worlds[i].h->tx_space = room;
		e82545_link(worlds[i].h->dev, room != 7);
	}
	step_rctl();
}

static void
begin(void)
{
	unsigned int i;

	for (i = 0; i < nitems(worlds); i++)
		worlds[i].h = host_create(RAM);
	ntxd = 8u << below(6);
	nrxd = chance(1, 4) ? RING_MAX : 8u << below(6);
	txtail = rxtail = 0;
	set(E82545_TDBAL, TXRING);
	set(E82545_TDLEN, ntxd * sizeof(union e82545_txd));
	set(E82545_RDBAL, RXRING);
	set(E82545_RDLEN, nrxd * sizeof(struct e82545_rxd));
	set(E82545_IMS, UINT32_MAX);
	for (i = 0; i < E82545_VFTA_COUNT; i++)
		set(E82545_VFTA + 4 * i, rnd());
	for (i = 0; i < E82545_MTA_COUNT; i++)
		set(E82545_MTA + 4 * i, rnd() & rnd());
	step_settings();
}

static void
end(void)
{
	unsigned int i;

	for (i = 0; i < nitems(worlds); i++)
		host_destroy(worlds[i].h);
}

/* Where `len' bytes are, mostly in memory. */
static uint64_t
address(uint64_t base, uint64_t size, uint32_t len)
{
	switch (below(32)) {
	case 0:
		return (0);
	case 1:
		return (RAM - len + below(3) - 1);
	case 2:
		return (RAM + rnd());
	case 3:
		return ((uint64_t)rnd() << 32 | rnd());
	default:
		return (base + below(size - E82545_FRAME_MAX));
	}
}

static void
put_frame_header(uint64_t gpa)
{
	static const uint8_t dst[4][6] = {
		{ 0x00, 0x0c, 0x29, 0x12, 0x34, 0x56 },	/* host_mac */
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		{ 0x01, 0x00, 0x5e, 0x00, 0x00, 0x01 },
		{ 0x02, 0x00, 0x00, 0x00, 0x00, 0x07 },
	};

	if (gpa >= TXBUFS && gpa < RAM - 64)
		put(gpa, dst[below(nitems(dst))], 6);
}

/* One descriptor at the tail; `single' asks for a packet of one. */
static void
put_txd(bool single)
{
	uint64_t d[2];
	uint32_t len, lower, upper;

	len = frame_length();
	lower = E82545_TXD_EOP | E82545_TXD_IFCS | len;
	upper = rnd();
	if (chance(1, 2)) {
		lower |= E82545_TXD_DEXT | E82545_TXD_DTYP_DATA;
		if (single && chance(7, 8))
			upper &= ~(uint32_t)((E82545_TXD_POPTS_IXSM |
			    E82545_TXD_POPTS_TXSM) << 8);
	}
	if (chance(3, 4))
		lower |= E82545_TXD_RS;
	if (chance(1, 2))
		lower |= E82545_TXD_IDE;
	if (!single) {
		/* Other types and commands, and fragments. */
		if (chance(1, 2))
			lower &= ~E82545_TXD_EOP;
		if (chance(1, 4))
			lower ^= E82545_TXD_IFCS;
		if (chance(1, 4))
			lower ^= E82545_TXD_VLE;
		if (chance(1, 4))
			lower ^= E82545_TXD_IC;
		if (chance(1, 8))
			lower ^= E82545_TXD_DEXT;
		if (chance(1, 8))
			lower ^= E82545_TXD_DTYP & rnd();
		if (chance(1, 8))
			lower ^= rnd();
	}
	d[0] = address(TXBUFS, RXBUFS - TXBUFS, len);
	put_frame_header(d[0]);
	d[0] = htole64(d[0]);
	d[1] = htole64(lower | (uint64_t)upper << 32);
	put(TXRING + txtail * sizeof(d), d, sizeof(d));
	txtail = (txtail + 1) % ntxd;
}

static void
step_send(void)
{
	unsigned int i, n;
	int calls;

	for (n = below(MIN(ntxd, 300)); n > 0; n--)
		put_txd(chance(3, 4));
	set(E82545_TDT, chance(1, 64) ? ntxd + below(3) : txtail);
	for (i = 0; i < nitems(worlds); i++)
		for (calls = 0; calls < 1000 &&
		    worlds[i].tx(worlds[i].h->dev) != E82545_TX_IDLE; calls++)
			;
	compare();
}

static void
inject(uint32_t len)
{
	static uint8_t frame[E82545_FRAME_MAX + 2];
	unsigned int i, pieces;
	size_t at = 12;

	packet_fill(frame, len, rnd() | 1);
	switch (below(8)) {
	case 0:
		memset(frame, 0xff, 6);
		break;
	case 1:
		frame[0] |= 1;
		break;
	case 2:
		frame[0] &= ~1;
		break;
	default:
		memcpy(frame, host_mac, 6);
		break;
	}
	if (chance(1, 4)) {
		be32enc(frame + at, 0x81000000 | (rnd() & 0xffff));
		at += 4;
	}
	be16enc(frame + at, chance(1, 4) ? rnd() : chance(1, 2) ? 0x0800 :
	    0x86dd);
	if (chance(3, 4)) {
		frame[at + 2] = frame[at] == 0x08 ? 0x45 : 0x60;
		be16enc(frame + at + 4, len - at - 2);
		frame[at + 11] = chance(1, 2) ? 6 : 17;
	}
	pieces = chance(3, 4) ? 1 : 1 + below(5);
	for (i = 0; i < nitems(worlds); i++)
		host_inject(worlds[i].h, frame, len, MIN(pieces, len));
}

/* Post buffers; some overlap, some are no memory. */
static void
post(unsigned int n)
{
	uint64_t d;

	for (; n > 0; n--) {
		d = htole64(address(RXBUFS, RAM - RXBUFS, 2048));
		put(RXRING + rxtail * sizeof(struct e82545_rxd), &d,
		    sizeof(d));
		rxtail = (rxtail + 1) % nrxd;
	}
	set(E82545_RDT, chance(1, 64) ? nrxd + below(3) : rxtail);
}

static void
step_receive(void)
{
	unsigned int i, n;
	bool direct = chance(1, 4), full;

	/* A batch that has as many descriptors as it can. */
	full = nrxd == RING_MAX && host_rx_pending(worlds[0].h) < 1000 &&
	    chance(1, 2);
	if (full) {
		set(E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_UPE |
		    E82545_RCTL_MPE | E82545_RCTL_BAM | E82545_RCTL_LPE |
		    E82545_RCTL_SECRC | E82545_RCTL_BSIZE_256);
		for (n = 15 + below(2); n > 0; n--)
			inject(E82545_FRAME_MAX);
		for (n = below(300); n > 0; n--)
			inject(60 + below(196));
	} else if (host_rx_pending(worlds[0].h) < 1000) {
		for (n = below(24); n > 0; n--)
			inject(frame_length());
	}
	if (full || chance(3, 4)) {
		n = (host_rd(worlds[0].h, E82545_RDH) + nrxd - 1 - rxtail) %
		    nrxd;
		host_rd(worlds[1].h, E82545_RDH);
		post(full || chance(1, 2) ? n : below(n + 1));
	}
	for (i = 0; i < nitems(worlds); i++) {
		if (direct) {
			worlds[i].rx_direct(worlds[i].h->dev,
			    &worlds[i].h->source);
			continue;
		}
		for (n = 0; n < 1000 &&
		    worlds[i].rx(worlds[i].h->dev) == E82545_RX_MORE; n++)
			;
	}
	compare();
}

static void
step_time(void)
{
	uint32_t ns = below(2000000);
	unsigned int i;

	for (i = 0; i < nitems(worlds); i++) {
		host_rd(worlds[i].h, E82545_ICR);
		host_advance(worlds[i].h, ns);
	}
}

static void
run(const atf_tc_t *tc, unsigned int send)
{
	seed_set(tc);
	for (scenario = 0; scenario < 60; scenario++) {
		begin();
		for (step = 0; step < 60; step++) {
			if (chance(1, 8))
				step_settings();
			if (chance(1, 8))
				step_rctl();
			if (chance(send, 16))
				step_send();
			else
				step_receive();
			if (chance(1, 2))
				step_time();
		}
		end();
	}
}

TEST(tx_single_desc, "Packets of all kinds are sent alike with and without the "
    "fast path")
{
	run(tc, 13);
}

TEST(rx_single_buffer, "Frames of all kinds are received alike with and "
    "without the fast path")
{
	run(tc, 2);
}

TEST_PROGRAM
