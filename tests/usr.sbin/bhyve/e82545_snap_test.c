/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Snapshots: an adapter is saved in some state, and restored into a new one on
 * another host whose clock differs.  Then the same is done to both, and they
 * must behave the same: registers, counters, guest memory, frames sent,
 * interrupts and their times.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_guest.h"
#include "e82545_regs.h"
#include "e82545_snap.h"
#include "test.h"

#define	CLOCK_AHEAD	123456789012	/* of the second host, ns */
#define	HEADER		20		/* bytes: magic, version, size, CRC */

static uint8_t *
save(struct host *h, size_t *sizep)
{
	uint8_t *buf;

	*sizep = e82545_snapshot_size(h->dev);
	ATF_REQUIRE(*sizep > HEADER);
	buf = malloc(*sizep);
	ATF_REQUIRE(buf != NULL);
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(h->dev, buf, *sizep));
	return (buf);
}

/* Copy the state that is not in a snapshot: guest, network and line. */
static struct host *
twin(const struct host *a, bool csb)
{
	struct host *b;
	struct iovec *iov;
	unsigned int i;

	b = csb ? host_create_csb(a->ram_size) : host_create(a->ram_size);
	b->now_ns = a->now_ns + CLOCK_AHEAD;
	memcpy(b->ram, a->ram, a->brk);
	memcpy(&b->brk, &a->brk, sizeof(*a) - offsetof(struct host, brk));
	for (i = a->rx_head; i != a->rx_tail; i++) {
		ATF_REQUIRE_EQ(1, a->rx[i % HOST_FRAMES].nfrags);
		iov = a->rx_iov[i % HOST_FRAMES];
		host_inject(b, iov->iov_base, iov->iov_len, 1);
	}
	b->kicked = b->ready = false;
	return (b);
}

static struct host *
migrate(struct host *a, bool csb)
{
	struct host *b;
	uint8_t *buf;
	size_t size;

	e82545_pause(a->dev);
	buf = save(a, &size);
	b = twin(a, csb);
	e82545_pause(b->dev);
	ATF_REQUIRE_EQ(0, e82545_snapshot_restore(b->dev, buf, size));
	ATF_CHECK_EQ(host_line(a), host_line(b));
	free(buf);
	e82545_resume(a->dev);
	e82545_resume(b->dev);
	host_sent_clear(a);
	a->nedges = a->nraised = b->nedges = b->nraised = 0;
	return (b);
}

static void
check_same_state(struct host *a, struct host *b)
{
	size_t i, na, nb;
	uint8_t *sa, *sb;

	e82545_pause(a->dev);
	e82545_pause(b->dev);
	sa = save(a, &na);
	sb = save(b, &nb);
	ATF_REQUIRE_EQ(na, nb);
	for (i = HEADER; i < na; i++)
		ATF_REQUIRE_EQ_MSG(sa[i], sb[i], "snapshots differ at %zu", i);
	free(sa);
	free(sb);
	e82545_resume(a->dev);
	e82545_resume(b->dev);
}

static void
check_same(struct host *a, struct host *b)
{
	const struct host_frame *fa, *fb;
	unsigned int i, j;
	uint32_t o;

	ATF_CHECK_EQ(0, memcmp(a->ram, b->ram, a->ram_size));
	ATF_REQUIRE_EQ(host_sent(a), host_sent(b));
	for (i = 0; i < host_sent(a); i++) {
		fa = host_sent_frame(a, i);
		fb = host_sent_frame(b, i);
		ATF_REQUIRE_EQ(fa->len, fb->len);
		ATF_CHECK_EQ(0, memcmp(fa->data, fb->data, fa->len));
	}
	ATF_CHECK_EQ(host_rx_pending(a), host_rx_pending(b));
	ATF_CHECK_EQ(host_line(a), host_line(b));
	ATF_REQUIRE_EQ(a->nedges, b->nedges);
	for (i = 0; i < a->nedges; i++) {
		ATF_CHECK_EQ(a->edges[i].ns + CLOCK_AHEAD, b->edges[i].ns);
		ATF_CHECK_EQ(a->edges[i].asserted, b->edges[i].asserted);
	}
	for (i = 0; i < E82545_NCOUNTERS; i++)
		ATF_CHECK_EQ_MSG(host_counter(a, i), host_counter(b, i), "%s",
		    e82545_counter_table[i].cr_name);
	check_same_state(a, b);
	FOREACH_REG(i, j, o)
		ATF_CHECK_EQ_MSG(host_rd(a, o), host_rd(b, o), "%s[%u]",
		    regs[i].name, j);
	check_same_state(a, b);
}

/*
 * A state, and what is done after it is saved.
 */

static uint8_t frame[9000], bulk[65536];

static void
eecd(struct host *h, uint32_t wires)
{
	wires |= E82545_EECD_REQ | E82545_EECD_CS;
	host_wr(h, E82545_EECD, wires);
	host_wr(h, E82545_EECD, wires | E82545_EECD_SK);
}

static void
eecd_bits(struct host *h, uint32_t bits, int n)
{
	while (n-- > 0)
		eecd(h, (bits >> n & 1) != 0 ? E82545_EECD_DI : 0);
}

static void
eecd_done(struct host *h)
{
	host_wr(h, E82545_EECD, E82545_EECD_REQ);
}

/*
 * Each register has another value, the EEPROM was written and is being written
 * in the middle of a word, the PHY is changed.
 */
static void
registers(struct host *h)
{
	uint32_t o, seed;
	unsigned int i, j;

	seed = 99;
	FOREACH_REG(i, j, o)
		if (regs[i].kind == REG_RW)
			host_wr(h, o, test_random(&seed));
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_TCTL, 0);
	host_wr(h, E82545_CTRL, E82545_CTRL_SLU | E82545_CTRL_VME);
	host_wr(h, E82545_PBA, 20);
	reg_count(h, E82545_GPRC, 5);
	reg_count(h, E82545_PTC64, 77);
	reg_count64(h, E82545_TOTL, 0x500000005);
	host_rd(h, E82545_TOTL);
	reg_count64(h, E82545_TOTL, 3);
	host_wr(h, E82545_EERD, 2 << 8 | E82545_EERD_START);
	eecd_bits(h, 4 << 6 | 3 << 4, 9);	/* write enable */
	eecd_done(h);
	eecd_bits(h, 5 << 6 | 9, 9);		/* write word 9: 0x9876 */
	eecd_bits(h, 0x9876, 16);
	eecd_done(h);
	eecd_bits(h, 5 << 6 | 7, 9);		/* write word 7: 0x1234 */
	eecd_bits(h, 0x12, 8);
	reg_phy_wr(h, 29, 5);
	reg_phy_wr(h, 30, 0xabcd);
	reg_phy_wr(h, 4, 0x0021);		/* 10 Mb/s, half duplex */
	reg_phy_wr(h, 9, 0);
	reg_phy_wr(h, 0, 0x1240);
	e82545_link(h->dev, false);
	e82545_write(h->dev, E82545_BAR_IO, 0, 4, E82545_RAH(3));
	host_wr(h, E82545_ITR, 0);
	host_wr(h, E82545_IMS, ALL);
	host_wr(h, E82545_ICS, E82545_ICR_RXDMT0);
}

static void
registers_on(struct host *h)
{
	unsigned int i;

	eecd_bits(h, 0x34, 8);
	eecd_done(h);
	host_wr(h, E82545_EERD, 7 << 8 | E82545_EERD_START);
	ATF_CHECK_EQ(0x1234, host_rd(h, E82545_EERD) >> 16);
	host_wr(h, E82545_EERD, 9 << 8 | E82545_EERD_START);
	ATF_CHECK_EQ(0x9876, host_rd(h, E82545_EERD) >> 16);
	ATF_CHECK_EQ(0x5, host_rd(h, E82545_TOTH));
	ATF_CHECK_EQ(3, host_rd(h, E82545_TOTL));
	for (i = 0; i < 32; i++)
		host_wr(h, E82545_RDTR, reg_phy_rd(h, i));
	ATF_CHECK_EQ(0xabcd, reg_phy_rd(h, 30));
	host_wr(h, E82545_RADV, e82545_read(h->dev, E82545_BAR_IO, 4, 4));
	e82545_link(h->dev, true);
}

/* A packet of 1000 segments, 256 of which are sent. */
static void
segments(struct host *h)
{
	struct packet p = { .payload = bulk, .paylen = 1000, .seq = 7 };
	struct packet header = p;
	uint8_t big[PACKET_HDR_MAX + 1000];
	size_t hdrlen;

	packet_fill(bulk, sizeof(bulk), 4);
	host_up(h, 64, 64, 2048);
	host_wr(h, E82545_IMS, ALL);
	header.paylen = 0;
	hdrlen = packet_build(&header, big);
	packet_prepare(&header, big, false);
	memcpy(big + hdrlen, bulk, 1000);
	tx_context(h, &p, 1, 0);
	tx_data(h, big, hdrlen + 1000, 300, 200, E82545_TXD_TSE, tx_popts(&p),
	    0);
	host_tx_go(h);
	ATF_CHECK(e82545_tx(h->dev));
	ATF_CHECK_EQ(256, host_sent(h));
}

static void
segments_on(struct host *h)
{
	h->kicked = true;
	host_run(h);
	ATF_CHECK_EQ(1000 - 256, host_sent(h));
	guest_frames(h, 3);
	tx_go(h);
}

/*
 * The EEPROM is being read in the middle of a word, the link is up, and there
 * is a context for a packet that follows.
 */
static void
context(struct host *h)
{
	struct packet p = { .payload = bulk, .paylen = 100 };

	host_up(h, 64, 64, 2048);
	reg_phy_rd(h, 1);
	reg_phy_rd(h, 1);
	eecd_bits(h, 6 << 6, 9);		/* read word 0 */
	eecd_bits(h, 0, 10);
	tx_context(h, &p, 0, 0);
	tx_go(h);
	host_rd(h, E82545_ICR);
}

static void
context_on(struct host *h)
{
	struct packet p = { .payload = bulk, .paylen = 100 };
	uint8_t sent[PACKET_HDR_MAX + 100], want[PACKET_HDR_MAX + 100];
	size_t len;
	int i;

	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	ATF_CHECK((host_rd(h, E82545_ICR) & E82545_ICR_LSC) == 0);
	ATF_CHECK((reg_phy_rd(h, 1) & 4) != 0);
	for (i = 0; i < 6; i++) {
		host_wr(h, E82545_RDTR, host_rd(h, E82545_EECD) |
		    host_rd(h, E82545_RDTR) << 1);
		eecd_bits(h, 0, 1);
	}
	len = packet_build(&p, sent);
	memcpy(want, sent, len);
	packet_prepare(&p, sent, true);
	tx_data(h, sent, len, len, len, 0, tx_popts(&p), 0);
	tx_go(h);
	check_sent(h, 0, want, len);
}

/* A packet with too many descriptors, whose last one follows. */
static void
skipping(struct host *h)
{
	int i;

	host_up(h, 512, 64, 2048);
	for (i = 0; i < 300; i++)
		host_tx_legacy(h, h->txring, 60, E82545_TXD_IFCS);
	tx_go(h);
}

static void
skipping_on(struct host *h)
{
	guest_frames(h, 2);
	tx_go(h);
	ATF_CHECK_EQ(1, host_sent(h));
}

/* A frame that needs more buffers than are posted, and others behind it. */
static void
stalled(struct host *h)
{
	unsigned int i;

	host_up(h, 64, 8, 256);
	host_set(h, E82545_RCTL, E82545_RCTL_UPE);
	host_wr(h, E82545_IMS, ALL);
	for (i = 0; i < 4; i++) {
		host_make_frame(frame, 700, host_mac, i);
		host_inject(h, frame, 700, 1);
	}
	host_run(h);
	ATF_CHECK_EQ(2, host_rx_pending(h));
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_RX_STALL));
}

static void
stalled_on(struct host *h)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		host_run(h);
		host_make_frame(frame, 700, host_mac, i);
		check_taken(h, frame, 700);
		host_rx_post(h);
	}
}

/* Frames on their way from the transmit ring into the receive ring. */
static void
looped(struct host *h)
{
	host_up(h, 64, 8, 256);
	host_set(h, E82545_RCTL, E82545_RCTL_UPE | E82545_RCTL_LBM_MAC);
	guest_frames(h, 20);
	tx_go(h);
	ATF_CHECK(e82545_rx(h->dev) == E82545_RX_STALLED);
}

static void
looped_on(struct host *h)
{
	uint8_t want[60];
	unsigned int i;

	for (i = 0; i < 20; i++) {
		host_make_frame(want, sizeof(want), host_mac, i);
		check_taken(h, want, sizeof(want));
		host_rx_post(h);
		host_run(h);
	}
	check_none(h);
}

/* All four delay timers are running, and an interrupt waits for ITR. */
static void
moderated(struct host *h)
{
	uint32_t o;

	host_up(h, 64, 64, 2048);
	host_wr(h, E82545_ITR, 5000);		/* 1.28 ms */
	host_wr(h, E82545_RDTR, 1000);
	host_wr(h, E82545_RADV, 1500);
	host_wr(h, E82545_TIDV, 2000);
	host_wr(h, E82545_TADV, 2500);
	host_rd(h, E82545_ICR);
	host_wr(h, E82545_IMS, E82545_ICR_RXT0 | E82545_ICR_TXDW |
	    E82545_ICR_LSC);
	host_wr(h, E82545_ICS, E82545_ICR_LSC);
	host_rd(h, E82545_ICR);
	host_advance(h, 100000);
	host_make_frame(frame, 60, host_mac, 1);
	host_inject(h, frame, 60, 1);
	o = host_tx_frame(h, frame, 60, E82545_TXD_IDE);
	tx_go(h);
	ATF_CHECK(host_tx_done(h, o));
	host_advance(h, 100000);
	host_wr(h, E82545_ICS, E82545_ICR_LSC);
	ATF_CHECK(!host_line(h));
	ATF_CHECK(h->timer_ns != 0);
}

static void
moderated_on(struct host *h)
{
	int i;

	for (i = 0; i < 10; i++) {
		host_advance(h, 700000);
		if (host_line(h))
			host_wr(h, E82545_RSRPD, host_rd(h, E82545_ICR));
	}
	ATF_CHECK_EQ(2, host_raised(h));
}

/* Packets keep coming, so that it is the absolute timers that run out. */
static void
moderated_busy(struct host *h)
{
	int i;

	for (i = 0; i < 6; i++) {
		host_advance(h, 700000);
		host_inject(h, frame, 60, 1);
		host_tx_frame(h, frame, 60, E82545_TXD_IDE);
		tx_go(h);
		if (host_line(h))
			host_wr(h, E82545_RSRPD, host_rd(h, E82545_ICR));
	}
	ATF_CHECK(host_raised(h) >= 2);
}

/* Timers that expired without e82545_timer() being called. */
static void
overdue(struct host *h)
{
	moderated(h);
	h->now_ns += 50000000;
}

static void
overdue_on(struct host *h)
{
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(E82545_ICR_LSC | E82545_ICR_RXT0 | E82545_ICR_TXDW,
	    host_rd(h, E82545_ICR) & host_rd(h, E82545_IMS));
}

static struct paravirt_csb *
block(struct host *h)
{
	return (host_mem(h, host_rd(h, E82545_CSBAL), NET_PARAVIRT_CSB_SIZE));
}

/* With the CSB: transmit polls, receive waits for a kick. */
static void
polling(struct host *h)
{
	uint64_t gpa;
	int i;

	gpa = guest_alloc(h);
	host_up(h, 64, 8, 2048);
	CSB_SET(h, guest_rdt, h->rxtail);
	CSB_SET(h, host_txcycles_lim, 10);
	guest_place(h, gpa);
	CSB_SET(h, guest_csb_on, 1);
	host_wr(h, E82545_IMS, E82545_ICR_ALL & ~E82545_ICR_TXD_LOW);
	host_run(h);
	ATF_CHECK(guest_post(h, 5));
	for (i = 0; i < 5; i++)
		ATF_CHECK(e82545_tx(h->dev));
	for (i = 0; i < 9; i++) {
		host_make_frame(frame, 60, host_mac, i);
		host_inject(h, frame, 60, 1);
	}
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	h->kicked = h->ready = false;
}

static void
polling_on(struct host *h)
{
	int i;

	h->csb = block(h);
	/* The fifth empty round. */
	ATF_CHECK(e82545_tx(h->dev));
	ATF_CHECK_EQ(5, CSB_GET(h, host_txcycles));
	/* It polls and asks for no kick. */
	ATF_CHECK(!guest_post(h, 3));
	/* Nor for one buffer. */
	host_make_frame(frame, 60, host_mac, 0);
	check_taken(h, frame, 60);
	ATF_CHECK(!guest_give(h));
	host_run(h);
	ATF_CHECK_EQ(3, host_sent(h));
	ATF_CHECK(CSB_GET(h, host_need_txkick) != 0);
	for (i = 1; i < 9; i++) {
		host_make_frame(frame, 60, host_mac, i);
		check_taken(h, frame, 60);
		guest_give(h);
		host_run(h);
	}
}

/* TDT and RDT, written while the CSB is on, show when it is turned off. */
static void
late(struct host *h)
{
	int i;

	polling(h);
	for (i = 0; i < 4; i++) {
		host_make_frame(frame, 60, host_mac, i);
		check_taken(h, frame, 60);
	}
	guest_frames(h, 2);
	host_wr(h, E82545_RDT, 3);
	host_wr(h, E82545_TDT, 7);
}

static void
late_on(struct host *h)
{
	h->csb = block(h);
	CSB_SET(h, guest_csb_on, 0);
	host_run(h);
	ATF_CHECK_EQ(3, host_rd(h, E82545_RDT));
	ATF_CHECK_EQ(7, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(7, host_rd(h, E82545_TDH));
}

static void
hopeless(struct host *h)
{
	polling(h);
	CSB_SET(h, guest_tdt, 999);
	CSB_SET(h, guest_rdt, 998);
	ATF_CHECK(e82545_tx(h->dev));
	ATF_CHECK_EQ(E82545_RX_STALLED, e82545_rx(h->dev));
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_CSB_BAD));
}

static void
hopeless_on(struct host *h)
{
	host_run(h);
	ATF_CHECK_EQ(2, host_counter(h, E82545_C_CSB_BAD));
}

static const struct scenario {
	const char	*name;
	void		(*begin)(struct host *);
	void		(*go_on)(struct host *);
	bool		 csb;
} scenarios[] = {
	{ "registers", registers, registers_on, false },
	{ "segments", segments, segments_on, false },
	{ "context", context, context_on, false },
	{ "skipping", skipping, skipping_on, false },
	{ "stalled", stalled, stalled_on, false },
	{ "looped", looped, looped_on, false },
	{ "moderated", moderated, moderated_on, false },
	{ "busy", moderated, moderated_busy, false },
	{ "overdue", overdue, overdue_on, false },
	{ "polling", polling, polling_on, true },
	{ "late", late, late_on, true },
	{ "hopeless", hopeless, hopeless_on, true },
};

static struct host *
begin(const struct scenario *s)
{
	struct host *h;

	h = s->csb ? host_create_csb(HOST_RAM) : host_create(HOST_RAM);
	s->begin(h);
	return (h);
}

TEST(same, "An adapter restored in any state behaves like the one that was "
    "saved")
{
	const struct scenario *s;
	struct host *a, *b;

	for (s = scenarios; s < scenarios + nitems(scenarios); s++) {
		printf("%s\n", s->name);
		a = begin(s);
		b = migrate(a, s->csb);
		s->go_on(a);
		s->go_on(b);
		check_same(a, b);
		host_destroy(a);
		host_destroy(b);
	}
}

static void
check_refused(struct host *h, int error, const void *buf, size_t size,
    const void *before, size_t nbefore)
{
	uint8_t *after;
	size_t n;

	ATF_REQUIRE_EQ(error, e82545_snapshot_restore(h->dev, buf, size));
	after = save(h, &n);
	ATF_REQUIRE_EQ(nbefore, n);
	ATF_REQUIRE_EQ(0, memcmp(before, after, n));
	free(after);
}

TEST(refused, "A snapshot that is truncated, corrupted, too long or of another "
    "version changes nothing")
{
	struct host *a, *b;
	uint8_t *buf, *copy, *own;
	size_t i, nown, size;

	a = begin(&scenarios[nitems(scenarios) - 1]);
	b = begin(&scenarios[nitems(scenarios) - 1]);
	guest_frames(b, 1);
	e82545_pause(a->dev);
	e82545_pause(b->dev);
	buf = save(a, &size);
	own = save(b, &nown);
	copy = calloc(1, size + 1);
	ATF_REQUIRE(copy != NULL);
	for (i = 0; i < size; i++) {
		/* Memory of its own, so that sanitizers check its bounds. */
		free(copy);
		copy = malloc(i + 1);
		ATF_REQUIRE(copy != NULL);
		memcpy(copy, buf, i);
		check_refused(b, EINVAL, copy, i, own, nown);
	}
	free(copy);
	copy = calloc(1, size + 1);
	ATF_REQUIRE(copy != NULL);
	memcpy(copy, buf, size);
	check_refused(b, EINVAL, copy, size + 1, own, nown);
	for (i = 0; i < size; i++) {
		copy[i] ^= 1 << i % 8;
		check_refused(b, i >= 8 && i < 12 ? ENOTSUP : EINVAL, copy,
		    size, own, nown);
		copy[i] ^= 1 << i % 8;
	}
	e82545_resume(b->dev);
	ATF_CHECK_EQ(EBUSY, e82545_snapshot_restore(b->dev, buf, size));
	ATF_CHECK_EQ(EBUSY, e82545_snapshot_save(b->dev, copy, size));
	e82545_pause(b->dev);
	ATF_REQUIRE_EQ(size, nown);
	for (i = 0; i <= nown + 1; i++) {
		memset(copy, 0xee, size + 1);
		ATF_CHECK_EQ(i == nown ? 0 : EINVAL,
		    e82545_snapshot_save(b->dev, copy, i));
		ATF_CHECK_EQ(0xee, copy[MIN(i, nown)]);
	}
	ATF_CHECK_EQ(EINVAL, e82545_snapshot_save(b->dev, NULL, 0));
	host_destroy(b);

	/* An adapter without the CSB. */
	b = host_create(HOST_RAM);
	e82545_pause(b->dev);
	ATF_CHECK_EQ(EINVAL, e82545_snapshot_restore(b->dev, buf, size));
	host_destroy(b);
	host_destroy(a);
	free(copy);
	free(buf);
	free(own);
}

/* CRC-32 by its definition, bit by bit. */
static void
seal(uint8_t *buf, size_t size)
{
	uint32_t crc;
	size_t i;

	crc = 0xffffffff;
	for (i = 8 * HEADER; i < 8 * size; i++) {
		crc ^= buf[i / 8] >> i % 8 & 1;
		crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	le32enc(buf + 16, ~crc);
}

/*
 * A guest uses a restored adapter: whatever its state, the host and its memory
 * are safe, and after a reset it works.
 */
static void
use(struct host *h)
{
	unsigned int i, j;
	uint32_t o;

	h->tx_discard = true;
	e82545_resume(h->dev);
	for (i = 0; i < 50; i++) {
		e82545_tx(h->dev);
		e82545_rx(h->dev);
		host_advance(h, 10000000);
	}
	FOREACH_REG(i, j, o)
		host_rd(h, o);
	for (i = 0; i < 40; i++)
		eecd(h, E82545_EECD_DI);
	eecd_done(h);
	for (i = 0; i < 32; i++)
		reg_phy_rd(h, i);
	e82545_reset(h->dev);
	e82545_link(h->dev, true);
	h->kicked = h->ready = false;
	h->brk = 0x10000;
	host_up(h, 64, 64, 2048);
	while (host_rx_pending(h) > 0) {
		h->ready = true;
		host_run(h);
	}
	h->tx_discard = false;
	host_sent_clear(h);
	host_up(h, 64, 64, 2048);
	/* The EEPROM may have another address. */
	host_set(h, E82545_RCTL, E82545_RCTL_UPE);
	check_tx_alive(h);
	check_rx_alive(h);
}

TEST(trailing, "A snapshot with a byte too many or too few is refused, though "
    "its size and CRC are right")
{
	struct host *a, *b;
	uint8_t *buf, *copy, *own;
	size_t nown, size;
	int more;

	for (more = -1; more <= 1; more += 2) {
		a = begin(&scenarios[0]);
		e82545_pause(a->dev);
		buf = save(a, &size);
		copy = calloc(1, size + 1);
		ATF_REQUIRE(copy != NULL);
		memcpy(copy, buf, size);
		size += more;
		le32enc(copy + 12, size);
		seal(copy, size);
		b = twin(a, scenarios[0].csb);
		e82545_pause(b->dev);
		own = save(b, &nown);
		check_refused(b, EINVAL, copy, size, own, nown);
		host_destroy(a);
		host_destroy(b);
		free(buf);
		free(copy);
		free(own);
	}
}

TEST(hostile, "Malicious snapshots with a correct CRC are refused or do no "
    "harm")
{
	const struct scenario *s;
	unsigned int accepted, n, round;
	uint32_t seed;
	struct host *a, *b;
	uint8_t *buf, *copy, *own;
	size_t nown, size;

	seed = 4711;
	accepted = 0;
	for (round = 0; round < 1500; round++) {
		s = &scenarios[round % nitems(scenarios)];
		a = begin(s);
		e82545_pause(a->dev);
		buf = save(a, &size);
		copy = malloc(size);
		ATF_REQUIRE(copy != NULL);
		memcpy(copy, buf, size);
		for (n = 1 + test_random(&seed) % 3; n > 0; n--)
			copy[HEADER + test_random(&seed) %
			    (size - HEADER)] = test_random(&seed) % 3 == 0 ?
			    0xff : test_random(&seed);
		seal(copy, size);
		b = twin(a, s->csb);
		e82545_pause(b->dev);
		own = save(b, &nown);
		if (e82545_snapshot_restore(b->dev, copy, size) == 0) {
			accepted++;
			use(b);
		} else
			check_refused(b, EINVAL, copy, size, own, nown);
		host_destroy(a);
		host_destroy(b);
		free(buf);
		free(copy);
		free(own);
	}
	/* Both have happened. */
	ATF_CHECK_MSG(accepted > 100 && accepted < round - 100, "%u of %u",
	    accepted, round);
}

TEST_PROGRAM
