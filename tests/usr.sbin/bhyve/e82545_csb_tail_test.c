/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Which index becomes the tail: the CSB's, the register's, or one kept aside.
 * What holds for both rings is checked for both.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "test.h"

#define	HIGH	((3ULL << 32) + HOST_RAM)	/* a gpa above 4 GB */
#define	NDESC	24				/* not a power of two */

static const struct ring {
	const char	*name;
	uint32_t	 base, head, tail, ctl;	/* registers */
	size_t		 index;			/* in the CSB */
	enum e82545_counter frames, saved;
} rings[] = {
	{ "TX", E82545_TDBAL, E82545_TDH, E82545_TDT, E82545_TCTL,
	  offsetof(struct paravirt_csb, guest_tdt), E82545_C_TX_FRAME,
	  E82545_C_TX_KICK_SAVED },
	{ "RX", E82545_RDBAL, E82545_RDH, E82545_RDT, E82545_RCTL,
	  offsetof(struct paravirt_csb, guest_rdt), E82545_C_RX_FRAME,
	  E82545_C_RX_KICK_SAVED },
};

static bool
is_tx(const struct ring *r)
{
	return (r == &rings[0]);
}

/* Guest memory is at HIGH, too. */
static void *
high_map(void *arg, uint64_t gpa, size_t len, unsigned int access)
{
	return (host_ops.eo_map(arg, gpa >= HIGH ? gpa - HIGH : gpa, len,
	    access));
}

/* Put a ring at HIGH, not aligned to more than a descriptor. */
static uint64_t
put_high(struct host *h, const struct ring *r, uint64_t from)
{
	uint64_t to = host_alloc(h, (NDESC + 1) * 16, 32) + 16;

	memcpy(host_mem(h, to, NDESC * 16), host_mem(h, from, NDESC * 16),
	    NDESC * 16);
	host_wr(h, r->base, HOST_RAM + to);
	host_wr(h, r->base + 4, 3);
	return (to);
}

/* A batch.  The network has more frames than the ring has buffers. */
static void
batch(struct host *h, const struct ring *r)
{
	if (is_tx(r)) {
		(void)e82545_tx(h->dev);
		return;
	}
	if (host_rx_pending(h) < 2 * NDESC)
		guest_offer(h, 2 * NDESC);
	(void)e82545_rx(h->dev);
}

/* The descriptors that batches have used. */
static unsigned int
done(struct host *h, const struct ring *r)
{
	return (host_counter(h, r->frames));
}

static uint32_t *
tail(struct host *h, const struct ring *r)
{
	return (is_tx(r) ? &h->txtail : &h->rxtail);
}

/* Fill `n' descriptors; the adapter is not told. */
static void
fill(struct host *h, const struct ring *r, unsigned int n)
{
	if (is_tx(r)) {
		guest_frames(h, n);
		return;
	}
	for (; n > 0; n--) {
		host_rxd(h, h->rxtail)->status = 0;
		h->rxtail = (h->rxtail + 1) % NDESC;
	}
}

/* Store an index in the CSB. */
static void
store(struct host *h, const struct ring *r, uint32_t index)
{
	atomic_store_rel_32((uint32_t *)(void *)((char *)h->csb + r->index),
	    htole32(index));
}

/* Fill `n' descriptors, and post them by the CSB or by the register. */
static void
post(struct host *h, const struct ring *r, unsigned int n)
{
	fill(h, r, n);
	store(h, r, *tail(h, r));
}

static void
kick(struct host *h, const struct ring *r, unsigned int n)
{
	fill(h, r, n);
	host_wr(h, r->tail, *tail(h, r));
}

/* Start the ring from 0; no batch comes in between. */
static void
restart(struct host *h, const struct ring *r)
{
	unsigned int i;

	host_clear(h, r->ctl, E82545_TCTL_EN);
	host_wr(h, r->head, 0);
	host_wr(h, r->tail, 0);
	host_set(h, r->ctl, E82545_TCTL_EN);
	*tail(h, r) = 0;
	for (i = 0; !is_tx(r) && i < NDESC; i++)
		host_rxd(h, i)->status = 0;
}

/* A ring that is not full; a kick has posted `n', and the host polls. */
static struct host *
up(const struct ring *r, unsigned int n)
{
	static struct e82545_ops ops;
	struct host *h = guest_up(NDESC, NDESC, 2048, 1000);

	ops = host_ops;
	ops.eo_map = high_map;
	h->dev->ops = &ops;
	h->txring = put_high(h, &rings[0], h->txring);
	h->rxring = put_high(h, &rings[1], h->rxring);
	restart(h, r);
	batch(h, r);
	post(h, r, n);
	host_wr(h, r->tail, n);
	batch(h, r);
	ATF_REQUIRE_EQ(n, done(h, r));
	ATF_REQUIRE_EQ(n, host_rd(h, r->tail));
	return (h);
}

/* A test case of each ring, of which a kick has posted `n'. */
#define	RING_TEST(name, n, descr)					\
	static void name##_test(struct host *h, const struct ring *r);	\
	TEST(name, descr)						\
	{								\
		const struct ring *r;					\
		struct host *h;						\
									\
		for (r = rings; r < rings + nitems(rings); r++) {	\
			h = up(r, n);					\
			name##_test(h, r);				\
			host_destroy(h);				\
		}							\
	}								\
	static void							\
	name##_test(struct host *h, const struct ring *r)

/* Check what was used, and that it is all that was posted. */
#define	CHECK_DONE(n)	do {						\
	ATF_CHECK_EQ_MSG(n, done(h, r), "%s: %u", r->name, done(h, r));	\
	ATF_CHECK_EQ_MSG((n) % NDESC, host_rd(h, r->tail), "%s: %u",	\
	    r->name, host_rd(h, r->tail));				\
	ATF_CHECK_EQ((n) % NDESC, host_rd(h, r->head));			\
} while (0)

RING_TEST(old, 5, "With the mode off, DD in the last descriptor makes an index "
    "old, though it is clear in the one before")
{
	uint64_t before = host_counter(h, r->saved);

	host_txd(h, 1)->legacy.status = 0;
	host_rxd(h, 1)->status = 0;
	store(h, r, 3);
	CSB_SET(h, guest_csb_on, 0);
	batch(h, r);
	CHECK_DONE(5);
	ATF_CHECK_EQ(before, host_counter(h, r->saved));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_BAD));
}

RING_TEST(invalid, 1, "An index outside the ring is counted once and ignored; "
    "the register counts if it is in the ring")
{
	static const uint32_t bad[] = { NDESC, NDESC + 1, 65536, 1U << 31,
	    UINT32_MAX - 1 };
	const uint64_t before = host_counter(h, r->saved);
	unsigned int i;

	for (i = 0; i < nitems(bad); i++) {
		store(h, r, bad[i]);
		batch(h, r);
		batch(h, r);
		CHECK_DONE(2 * i + 1);
		ATF_CHECK_EQ(2 * i + 1, host_counter(h, E82545_C_CSB_BAD));
		store(h, r, bad[i]);
		kick(h, r, 2);
		ATF_CHECK_EQ(2 * i + 1, host_rd(h, r->tail));
		batch(h, r);
		CHECK_DONE(2 * i + 3);
		ATF_CHECK_EQ(2 * i + 2, host_counter(h, E82545_C_CSB_BAD));
	}
	ATF_CHECK_EQ(before, host_counter(h, r->saved));
}

RING_TEST(invalid_register, 5, "With the mode off, a register outside the ring "
    "is counted, and does not count unless the ring is off")
{
	CSB_SET(h, guest_csb_on, 0);
	batch(h, r);
	host_wr(h, r->tail, NDESC);
	batch(h, r);
	CHECK_DONE(5);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_CSB_BAD));
	host_clear(h, r->ctl, E82545_TCTL_EN);
	host_wr(h, r->tail, NDESC);
	ATF_CHECK_EQ(NDESC, host_rd(h, r->tail));
	host_set(h, r->ctl, E82545_TCTL_EN);
	batch(h, r);
	/* Any index is farther. */
	post(h, r, 2);
	host_wr(h, r->tail, *tail(h, r));
	batch(h, r);
	ATF_CHECK_EQ(7, host_rd(h, r->tail));
}

RING_TEST(head_outside, 5, "While the head is outside the ring, no index "
    "counts but the first")
{
	uint32_t head;

	for (head = NDESC; head <= NDESC + 1; head++) {
		host_clear(h, r->ctl, E82545_TCTL_EN);
		host_wr(h, r->head, head);
		host_wr(h, r->tail, 3);
		host_set(h, r->ctl, E82545_TCTL_EN);
		host_wr(h, r->tail, 7);
		batch(h, r);
		ATF_CHECK_EQ(3, host_rd(h, r->tail));
		ATF_CHECK_EQ(5, done(h, r));
	}
}

RING_TEST(nowhere, 5, "An index counts if the ring is outside guest memory; "
    "nothing is used until it is not")
{
	host_wr(h, r->base + 4, 4);
	post(h, r, 2);
	CSB_SET(h, guest_csb_on, 0);
	batch(h, r);
	batch(h, r);
	ATF_CHECK_EQ(5, done(h, r));
	host_wr(h, r->base + 4, 3);
	batch(h, r);
	CHECK_DONE(7);
}

RING_TEST(removed, 1, "A write to CSBAL, also with the bus off, makes the kept "
    "index count")
{
	kick(h, r, 2);
	ATF_CHECK_EQ(1, host_rd(h, r->tail));
	e82545_bus_master(h->dev, false);
	guest_place(h, 0);
	ATF_CHECK_EQ(3, host_rd(h, r->tail));
	e82545_bus_master(h->dev, true);
	batch(h, r);
	CHECK_DONE(3);
	/* Then the register is stored at once. */
	kick(h, r, 1);
	ATF_CHECK_EQ(4, host_rd(h, r->tail));
}

/*
 * guest_tdt comes round to what the host has seen, after a lap with the mode
 * off, when the host only looks at TDT.
 */

static unsigned int lap_frames;

/*
 * When the batch's descriptors are done, the guest turns the mode on again and
 * sends more, without a kick.
 */
static void
turn_on_and_send(struct host *h)
{
	h->intr_hook = NULL;
	CSB_SET(h, guest_tdt, h->txtail);
	CSB_SET(h, guest_csb_on, 1);
	ATF_CHECK_EQ(0, CSB_GET(h, host_need_txkick));
	guest_store(h, lap_frames);
}

/* The same, and the guest turns the mode off again. */
static void
turn_on_send_and_off(struct host *h)
{
	turn_on_and_send(h);
	CSB_SET(h, guest_csb_on, 0);
}

HOST_TEST(lap_off, guest_awake(5, 1000), "A lap later, the same guest_tdt "
    "counts if the mode has gone on and off again within a batch, and the "
    "guest has left out the kick")
{
	CSB_SET(h, guest_csb_on, 0);
	guest_frames(h, 5);
	host_tx_go(h);
	host_rd(h, E82545_ICR);
	h->intr_hook = turn_on_send_and_off;
	lap_frames = 59;
	(void)e82545_tx(h->dev);
	ATF_REQUIRE_EQ(NULL, h->intr_hook);
	ATF_REQUIRE_EQ(5, h->txtail);
	host_run(h);
	ATF_CHECK_EQ(69, host_sent(h));
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
}

HOST_TEST(cleared_flag, guest_up(64, 16, 2048, 0), "A kick that finds the mode "
    "off sets the flag that the guest has cleared, and sees what was posted "
    "because of it")
{
	/* It clears the flag, kicks, and changes the mode twice. */
	guest_store(h, 1);
	CSB_SET(h, host_need_txkick, 0);
	host_tx_go(h);
	CSB_SET(h, guest_csb_on, 0);
	h->intr_hook = turn_on_and_send;
	lap_frames = 3;
	host_run(h);
	ATF_CHECK_EQ(NULL, h->intr_hook);
	ATF_CHECK_EQ(4, host_sent(h));
	ATF_CHECK_EQ(1, CSB_GET(h, host_need_txkick));
}

/* Queue `n' frames without RS: DD is never set. */
static void
frames_without_rs(struct host *h, unsigned int n)
{
	const uint64_t gpa = host_alloc(h, 60, 1);

	host_make_frame(host_mem(h, gpa, 60), 60, host_mac, 0);
	for (; n > 0; n--)
		host_tx_legacy(h, gpa, 60, E82545_TXD_EOP | E82545_TXD_IFCS);
}

HOST_TEST(late_without_rs, guest_up(64, 16, 2048, 1000), "With the mode on, "
    "TDT does not count if RS does not tell whether it is old, or if it is "
    "invalid")
{
	frames_without_rs(h, 5);
	ATF_REQUIRE(guest_send(h));
	(void)e82545_tx(h->dev);
	ATF_REQUIRE_EQ(5, host_sent(h));
	host_wr(h, E82545_TDT, 3);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	host_wr(h, E82545_TDT, 64);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(5, host_rd(h, E82545_TDT));
	ATF_CHECK_EQ(5, host_sent(h));
	ATF_CHECK_EQ(0, host_counter(h, E82545_C_CSB_BAD));
}

HOST_TEST(first_again, guest_up(64, 16, 2048, 1000), "The first TDT, written "
    "again late, posts nothing")
{
	restart(h, &rings[0]);
	host_wr(h, E82545_TDT, 0);
	(void)e82545_tx(h->dev);
	ATF_REQUIRE(!guest_post(h, 2));
	(void)e82545_tx(h->dev);
	ATF_REQUIRE_EQ(2, host_sent(h));
	CSB_SET(h, guest_csb_on, 0);
	host_wr(h, E82545_TDT, 0);
	host_run(h);
	ATF_CHECK_EQ(2, host_sent(h));
	ATF_CHECK_EQ(2, host_rd(h, E82545_TDT));
	/* With the transmitter off it is stored. */
	host_clear(h, E82545_TCTL, E82545_TCTL_EN);
	host_wr(h, E82545_TDT, 0);
	ATF_CHECK_EQ(0, host_rd(h, E82545_TDT));
}

HOST_TEST(restarted_off, guest_awake(5, 1000), "With the mode off a kick after "
    "a restart does not make guest_tdt count")
{
	CSB_SET(h, guest_csb_on, 0);
	(void)e82545_tx(h->dev);
	restart(h, &rings[0]);
	CSB_SET(h, guest_tdt, 7);
	guest_frames(h, 2);
	host_tx_go(h);
	(void)e82545_tx(h->dev);
	ATF_CHECK_EQ(2, host_rd(h, E82545_TDT));
}

TEST_PROGRAM
