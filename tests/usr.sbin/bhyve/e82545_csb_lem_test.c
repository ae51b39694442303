/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver that the CSB was made for, lem(4) of FreeBSD 10 with NIC_PARAVIRT,
 * as the model sees it: the same accesses to registers, rings and the CSB, in
 * the same order.  It does not follow all rules of paravirt_csb(9):
 *
 *	- It does not clear the block, and never writes guest_txkick_at.
 *	- It stores guest_rdt only for frames that it takes with the CSB on, so
 *	  that field is old after a restart and when the CSB is turned on.
 *	- It enables the receiver before it writes RDH and RDT.
 *	- An interrupt without a frame leaves guest_need_rxkick at 0.
 *	- It reads guest_csb_on once for each run of the receive loop, and
 *	  leaves out the write to RDT if that was set.
 *	- It kicks only if guest_rdt equals host_rxkick_at.
 *	- With send combining it may leave out a kick that host_need_txkick asks
 *	  for, and make up for it on the next interrupt.
 *	- It takes an ICR of 0 for the interrupt of another device.
 *	- With hw.em.use_legacy_irq it processes the rings in the interrupt
 *	  handler, and never masks interrupts.
 *
 * It has a barrier only where a comment asks for one; here they are in place.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "e82545_guest.h"
#include "wait_until.h"

#define	NDESC		64
#define	LOOK_NS		10000000	/* when the host looks again */
#define	RX_LIMIT	100		/* frames that a run of a task takes */
#define	QUEUE		50		/* frames that wait to be sent */
#define	LEM_CAUSES	(E82545_ICR_RXT0 | E82545_ICR_TXDW |		\
			 E82545_ICR_RXDMT0 | E82545_ICR_RXSEQ |		\
			 E82545_ICR_LSC)

struct lem {
	struct host	*h;
	struct paravirt_csb *csb;
	uint64_t	 frame;		/* gpa of the frame to send */
	bool		 legacy_irq;	/* hw.em.use_legacy_irq */
	uint32_t	 running;	/* atomic */

	pthread_mutex_t	 tx_mtx;
	uint32_t	 tx_next, tx_clean;
	bool		 tx_full;	/* OACTIVE */
	uint32_t	 combining;	/* sc_enable; atomic */
	bool		 combined;	/* an interrupt is due: do not kick */
	bool		 tx_pending;	/* a kick was left out */
	uint32_t	 queue;		/* atomic */
	uint32_t	 posted, sent, tx_lost;	/* frames; atomic */

	pthread_mutex_t	 rx_mtx;
	uint32_t	 rx_next;
	uint32_t	 taken, rx_lost;	/* frames; atomic */
	uint32_t	 seq;		/* of the last one */
	/* Called when the receive loop has looked at guest_csb_on. */
	void		(*rx_hook)(struct lem *);
};

static void
add(uint32_t *counter, uint32_t n)
{
	atomic_store_32(counter, atomic_load_32(counter) + n);
}

/*
 * Transmit.
 */

static uint32_t
tx_used(const struct lem *l)
{
	return ((l->tx_next + NDESC - l->tx_clean) % NDESC);
}

static uint32_t
tx_avail(const struct lem *l)
{
	return (NDESC - tx_used(l));
}

static void
lem_txeof(struct lem *l)
{
	struct host *h = l->h;
	uint32_t n;

	if (tx_used(l) == 0)
		return;
	for (n = 0; tx_used(l) > 0 && host_tx_done(h, l->tx_clean); n++)
		l->tx_clean = (l->tx_clean + 1) % NDESC;
	add(&l->sent, n);
	if (l->tx_pending)
		host_wr(h, E82545_TDT, l->tx_next);
	l->combined = l->tx_pending;
	l->tx_pending = false;
	if (tx_avail(l) > NDESC / 8) {
		l->tx_full = false;
		CSB_SET(l->csb, guest_need_txkick, 2);
		CSB_BARRIER();
	}
}

static void
lem_xmit(struct lem *l)
{
	struct host *h = l->h;
	union e82545_txd *txd = host_txd(h, l->tx_next);

	memset(txd, 0, sizeof(*txd));
	txd->addr = htole64(l->frame);
	txd->lower = htole32(60 | TXD_LAST);
	l->tx_next = (l->tx_next + 1) % NDESC;
	add(&l->posted, 1);
	CSB_SET(l->csb, guest_tdt, l->tx_next);
	CSB_BARRIER();
	if (CSB_GET(l->csb, guest_csb_on) != 0 &&
	    (CSB_GET(l->csb, host_need_txkick) & 1) == 0) {
		if (tx_avail(l) <= NDESC / 4)
			lem_txeof(l);
		return;
	}
	if (atomic_load_32(&l->combining) != 0) {
		if (l->combined) {
			l->tx_pending = true;
			return;
		}
		l->combined = true;
	}
	host_wr(h, E82545_TDT, l->tx_next);
}

/* tx_mtx held. */
static void
lem_start_locked(struct lem *l)
{
	if (atomic_load_32(&l->running) == 0 || l->tx_full)
		return;
	if (tx_avail(l) <= NDESC / 8) {
		lem_txeof(l);
		if (tx_avail(l) <= NDESC / 32)
			return;
	}
	while (atomic_load_32(&l->queue) > 0) {
		if (tx_avail(l) <= 2) {
			l->tx_full = true;
			break;
		}
		atomic_add_32(&l->queue, -1);
		lem_xmit(l);
	}
	if (tx_avail(l) <= NDESC / 32)
		l->tx_full = true;
	if (l->tx_full && CSB_GET(l->csb, guest_csb_on) != 0 &&
	    (CSB_GET(l->csb, guest_need_txkick) & 1) == 0) {
		CSB_SET(l->csb, guest_need_txkick, 1);
		CSB_BARRIER();
		lem_txeof(l);
	}
}

/* Send `n' frames. */
static void
lem_send(struct lem *l, uint32_t n)
{
	pthread_mutex_lock(&l->tx_mtx);
	atomic_add_32(&l->queue, n);
	lem_start_locked(l);
	pthread_mutex_unlock(&l->tx_mtx);
}

/*
 * Receive.
 */

static bool
rx_done(struct lem *l)
{
	return (host_rx_done(l->h, l->rx_next));
}

/* Frames carry their numbers. */
static void
lem_input(struct lem *l)
{
	struct e82545_rxd *rxd = host_rxd(l->h, l->rx_next);
	const uint8_t *frame = host_mem(l->h, le64toh(rxd->addr), 60);
	uint32_t seq = be32dec(frame + 14);

	ATF_REQUIRE_MSG(seq > l->seq, "frame %u after %u", seq, l->seq);
	l->seq = seq;
	add(&l->taken, 1);
}

/* Returns whether there may be more. */
static bool
lem_rxeof(struct lem *l, int count)
{
	struct host *h = l->h;
	const bool on = CSB_GET(l->csb, guest_csb_on) != 0;

	if (on && CSB_GET(l->csb, guest_need_rxkick) != 0)
		CSB_SET(l->csb, guest_need_rxkick, 0);
	pthread_mutex_lock(&l->rx_mtx);
	if (l->rx_hook != NULL)
		l->rx_hook(l);
	if (!rx_done(l)) {
		pthread_mutex_unlock(&l->rx_mtx);
		return (false);
	}
	while (count != 0 && atomic_load_32(&l->running) != 0) {
		if (!rx_done(l)) {
			if (!on || CSB_GET(l->csb, guest_need_rxkick) != 0)
				break;
			CSB_SET(l->csb, guest_need_rxkick, 1);
			CSB_BARRIER();
			continue;
		}
		if (on)
			CSB_SET(l->csb, guest_need_rxkick, 0);
		lem_input(l);
		count--;
		atomic_store_rel_8(&host_rxd(h, l->rx_next)->status, 0);
		if (on) {
			CSB_SET(l->csb, guest_rdt, l->rx_next);
			CSB_BARRIER();
			if (CSB_GET(l->csb, host_rxkick_at) == l->rx_next)
				host_wr(h, E82545_RDT, l->rx_next);
		}
		l->rx_next = (l->rx_next + 1) % NDESC;
	}
	if (!on)
		host_wr(h, E82545_RDT, (l->rx_next + NDESC - 1) % NDESC);
	pthread_mutex_unlock(&l->rx_mtx);
	return (count == 0);
}

/*
 * Interrupts.
 */

static void
lem_rxtx(struct lem *l)
{
	bool more;

	if (atomic_load_32(&l->running) == 0)
		return;
	do {
		more = lem_rxeof(l, RX_LIMIT);
		pthread_mutex_lock(&l->tx_mtx);
		lem_txeof(l);
		lem_start_locked(l);
		pthread_mutex_unlock(&l->tx_mtx);
	} while (more);
	if (atomic_load_32(&l->running) != 0)
		host_wr(l->h, E82545_IMS, LEM_CAUSES);
}

static void
lem_intr_legacy(struct lem *l, uint32_t icr)
{
	if ((icr & (E82545_ICR_RXSEQ | E82545_ICR_LSC)) != 0 ||
	    atomic_load_32(&l->running) == 0)
		return;
	(void)lem_rxeof(l, -1);
	pthread_mutex_lock(&l->tx_mtx);
	lem_txeof(l);
	lem_start_locked(l);
	pthread_mutex_unlock(&l->tx_mtx);
}

/* Returns false if there was no interrupt. */
static bool
lem_intr(struct lem *l)
{
	uint32_t icr;

	if (!host_line(l->h) || (icr = host_rd(l->h, E82545_ICR)) == 0)
		return (false);
	if (l->legacy_irq) {
		lem_intr_legacy(l, icr);
		return (true);
	}
	host_wr(l->h, E82545_IMC, UINT32_MAX);
	lem_rxtx(l);
	return (true);
}

/*
 * Start, stop.
 */

/* The frames that the rings lose. */
static void
lem_stop(struct lem *l)
{
	struct host *h = l->h;
	uint32_t i;

	atomic_store_32(&l->running, 0);
	host_wr(h, E82545_IMC, UINT32_MAX);
	host_wr(h, E82545_RCTL, 0);
	host_wr(h, E82545_TCTL, E82545_TCTL_PSP);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	host_rd(h, E82545_ICR);
	for (; l->tx_clean != l->tx_next; l->tx_clean = (l->tx_clean + 1) %
	    NDESC)
		add(host_tx_done(h, l->tx_clean) ? &l->sent : &l->tx_lost, 1);
	for (i = 0; i < NDESC; i++) {
		add(&l->rx_lost, host_rx_done(h, i));
		host_rxd(h, i)->status = 0;
	}
}

/* Call `between', if not NULL, after the receiver is enabled. */
static void
lem_init(struct lem *l, void (*between)(struct lem *))
{
	struct host *h = l->h;

	pthread_mutex_lock(&l->tx_mtx);
	pthread_mutex_lock(&l->rx_mtx);
	lem_stop(l);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	host_set(h, E82545_CTRL, E82545_CTRL_SLU);
	l->tx_next = l->tx_clean = l->rx_next = 0;
	l->tx_full = false;
	host_wr(h, E82545_TDLEN, NDESC * 16);
	host_wr(h, E82545_TDBAH, h->txring >> 32);
	host_wr(h, E82545_TDBAL, h->txring);
	host_wr(h, E82545_TDT, 0);
	host_wr(h, E82545_TDH, 0);
	host_wr(h, E82545_TCTL, E82545_TCTL_EN | E82545_TCTL_PSP);
	host_clear(h, E82545_RCTL, E82545_RCTL_EN);
	host_wr(h, E82545_RDLEN, NDESC * 16);
	host_wr(h, E82545_RDBAH, h->rxring >> 32);
	host_wr(h, E82545_RDBAL, h->rxring);
	host_wr(h, E82545_RCTL, E82545_RCTL_EN | E82545_RCTL_BAM |
	    host_rctl_bsize(h->rxbufsize));
	if (between != NULL)
		between(l);
	host_wr(h, E82545_RDH, 0);
	host_wr(h, E82545_RDT, NDESC - 1);
	atomic_store_32(&l->running, 1);
	pthread_mutex_unlock(&l->rx_mtx);
	pthread_mutex_unlock(&l->tx_mtx);
	host_wr(h, E82545_IMS, LEM_CAUSES);
}

static void
lem_up(struct lem *l)
{
	struct host *h = host_create_csb(HOST_RAM);
	uint64_t gpa;

	memset(l, 0, sizeof(*l));
	l->h = h;
	pthread_mutex_init(&l->tx_mtx, NULL);
	pthread_mutex_init(&l->rx_mtx, NULL);
	h->tx_discard = true;
	host_up(h, NDESC, NDESC, 256);
	l->frame = host_alloc(h, 60, 1);
	gpa = host_alloc(h, NET_PARAVIRT_CSB_SIZE, NET_PARAVIRT_CSB_SIZE);
	l->csb = host_mem(h, gpa, NET_PARAVIRT_CSB_SIZE);
	CSB_SET(l->csb, host_need_txkick, 1);
	CSB_SET(l->csb, guest_need_rxkick, 1);
	CSB_SET(l->csb, host_txcycles_lim, 1);
	CSB_SET(l->csb, host_rxkick_at, NET_PARAVIRT_NONE);
	guest_place(h, gpa);
	lem_init(l, NULL);
}

static void
lem_down(struct lem *l)
{
	host_destroy(l->h);
	pthread_mutex_destroy(&l->tx_mtx);
	pthread_mutex_destroy(&l->rx_mtx);
}

static void
csb_on(struct lem *l, bool on)
{
	CSB_SET(l->csb, guest_csb_on, on);
}

/*
 * The network.
 */

static uint32_t injected;

static void
inject(struct lem *l, unsigned int n)
{
	uint8_t frame[60];

	for (; n > 0; n--) {
		host_make_frame(frame, sizeof(frame), host_mac, 0);
		atomic_store_32(&injected, atomic_load_32(&injected) + 1);
		be32enc(frame + 14, injected);
		host_inject(l->h, frame, sizeof(frame), 1);
	}
}

/* Host and guest in turn, until neither has anything to do. */
static void
settle(struct lem *l)
{
	do {
		host_run(l->h);
	} while (lem_intr(l));
}

/* `n' more frames arrive and are taken, in bursts of at most `burst'. */
static void
receive(struct lem *l, unsigned int n, unsigned int burst)
{
	const uint32_t before = l->taken;
	unsigned int left;

	for (left = n; left > 0; left -= MIN(left, burst)) {
		inject(l, MIN(left, burst));
		settle(l);
	}
	ATF_REQUIRE_EQ(before + n, l->taken);
}

static void
transmit(struct lem *l, unsigned int n)
{
	const uint64_t before = host_counter(l->h, E82545_C_TX_FRAME);
	unsigned int i;

	for (i = 0; i < n; i++) {
		lem_send(l, 1);
		settle(l);
	}
	ATF_REQUIRE_EQ(before + n, host_counter(l->h, E82545_C_TX_FRAME));
}

/*
 * Habits.
 */

/* Send a frame, without asking for an interrupt.  True if there was none. */
static bool
send_quietly(struct lem *l)
{
	lem_txeof(l);
	CSB_SET(l->csb, guest_need_txkick, 0);
	lem_send(l, 1);
	host_run(l->h);
	return (!host_line(l->h));
}

/* The link goes and comes: an interrupt without a frame. */
static void
relink(struct lem *l)
{
	e82545_link(l->h->dev, false);
	e82545_link(l->h->dev, true);
}

/* A frame arrives for which the driver asks no interrupt. */
static void
arrive_quietly(struct lem *l)
{
	CSB_SET(l->csb, guest_need_rxkick, 0);
	inject(l, 1);
	host_run(l->h);
}

TEST(txkick_at_zero, "A guest_txkick_at that was never written is no index")
{
	struct lem l;
	unsigned int i;

	lem_up(&l);
	csb_on(&l, true);
	while (lem_intr(&l))
		continue;
	for (i = 0; i < 3 * NDESC; i++)
		ATF_CHECK_MSG(send_quietly(&l), "frame %u", i);
	/* Once it was another, 0 is an index. */
	CSB_SET(l.csb, guest_txkick_at, NET_PARAVIRT_NONE);
	ATF_CHECK(send_quietly(&l));
	CSB_SET(l.csb, guest_txkick_at, 0);
	while (l.tx_next != NDESC - 1)
		ATF_CHECK(send_quietly(&l));
	ATF_CHECK(!send_quietly(&l));
	ATF_CHECK_EQ(0, host_counter(l.h, E82545_C_CSB_BAD));
	lem_down(&l);
}

TEST(need_rxkick_zero, "An interrupt without a frame, which leaves "
    "guest_need_rxkick at 0, is followed by others")
{
	struct lem l;

	lem_up(&l);
	csb_on(&l, true);
	receive(&l, 10, 3);
	relink(&l);
	settle(&l);
	ATF_CHECK_EQ(0, CSB_GET(l.csb, guest_need_rxkick));
	receive(&l, 10, 1);
	lem_down(&l);
}

TEST(unmask, "A cause that was suppressed while interrupts were masked is "
    "raised when they are unmasked")
{
	struct lem l;

	lem_up(&l);
	csb_on(&l, true);
	receive(&l, 5, 1);
	relink(&l);
	host_rd(l.h, E82545_ICR);
	host_wr(l.h, E82545_IMC, UINT32_MAX);
	(void)lem_rxeof(&l, RX_LIMIT);
	/* The frame that it did not see. */
	arrive_quietly(&l);
	ATF_CHECK(!host_line(l.h));
	host_wr(l.h, E82545_IMS, LEM_CAUSES);
	ATF_CHECK(host_line(l.h));
	settle(&l);
	ATF_CHECK_EQ(6, l.taken);
	lem_down(&l);
}

TEST(polling, "Without a write to IMS, suppressed causes stay suppressed")
{
	struct lem l;
	unsigned int i, raised;

	lem_up(&l);
	csb_on(&l, true);
	receive(&l, 5, 1);
	host_wr(l.h, E82545_ICS, E82545_ICR_LSC);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(l.h, E82545_ICR));
	host_wr(l.h, E82545_IMC, UINT32_MAX);
	raised = host_raised(l.h);
	CSB_SET(l.csb, guest_need_rxkick, 0);
	for (i = 0; i < 20; i++) {
		inject(&l, 1);
		host_run(l.h);
		ATF_CHECK(!host_line(l.h));
		ATF_CHECK_EQ(0, host_rd(l.h, E82545_ICR));
	}
	/* An interrupt drops them: the guest will look at its ring. */
	host_wr(l.h, E82545_ICS, E82545_ICR_LSC);
	ATF_CHECK_EQ(E82545_ICR_LSC, host_rd(l.h, E82545_ICR));
	host_wr(l.h, E82545_IMS, LEM_CAUSES);
	ATF_CHECK_EQ(raised, host_raised(l.h));
	lem_down(&l);
}

TEST(stray, "An interrupt of another device on the same line, which finds ICR "
    "0, changes nothing")
{
	struct lem l;

	lem_up(&l);
	csb_on(&l, true);
	receive(&l, 5, 1);
	relink(&l);
	settle(&l);
	ATF_CHECK_EQ(0, CSB_GET(l.csb, guest_need_rxkick));
	ATF_CHECK_EQ(0, host_rd(l.h, E82545_ICR));
	receive(&l, 5, 1);
	/* Nor does it drop suppressed causes. */
	relink(&l);
	ATF_CHECK(host_rd(l.h, E82545_ICR) != 0);
	host_wr(l.h, E82545_IMC, UINT32_MAX);
	arrive_quietly(&l);
	ATF_CHECK_EQ(0, host_rd(l.h, E82545_ICR));
	host_wr(l.h, E82545_IMS, LEM_CAUSES);
	ATF_CHECK(host_line(l.h));
	settle(&l);
	ATF_CHECK_EQ(11, l.taken);
	lem_down(&l);
}

/* A transmit interrupt when all frames are taken. */
static void
interrupt_without_frame(struct lem *l)
{
	CSB_SET(l->csb, guest_need_txkick, 2);
	transmit(l, 1);
	ATF_CHECK_EQ(0, CSB_GET(l->csb, guest_need_rxkick));
}

/* As receive(), but the guest may need until the host looks again. */
static void
receive_late(struct lem *l, unsigned int n)
{
	const uint32_t before = l->taken;

	inject(l, n);
	settle(l);
	host_advance(l->h, LOOK_NS);
	settle(l);
	ATF_REQUIRE_EQ(before + n, l->taken);
}

TEST(legacy_irq, "Without masking, too, an interrupt without a frame is "
    "followed by others")
{
	struct lem l;
	unsigned int i;

	lem_up(&l);
	settle(&l);
	l.legacy_irq = true;
	csb_on(&l, true);
	for (i = 0; i < 2 * NDESC; i++) {
		interrupt_without_frame(&l);
		receive_late(&l, 1 + i % 3);
		/* Now it has asked for more. */
		receive(&l, 1, 1);
	}
	lem_down(&l);
}

TEST(legacy_irq_switched, "Nor does guest_need_rxkick stay 0 when the CSB is "
    "turned off and on, or the driver restarts")
{
	struct lem l;
	unsigned int i;

	lem_up(&l);
	settle(&l);
	l.legacy_irq = true;
	for (i = 1; i <= NDESC; i++) {
		csb_on(&l, true);
		receive_late(&l, 3);
		interrupt_without_frame(&l);
		csb_on(&l, false);
		receive_late(&l, i);
		csb_on(&l, true);
		receive_late(&l, 2);
		interrupt_without_frame(&l);
		lem_init(&l, NULL);
		/* An interrupt for LSC processes no ring. */
		settle(&l);
		receive_late(&l, 2);
	}
	lem_down(&l);
}

static void
arrive_early(struct lem *l)
{
	inject(l, 10);
	host_run(l->h);
	ATF_CHECK_EQ(0, host_rd(l->h, E82545_RDH));
}

/*
 * Restart with each index that guest_rdt may have from before, with the CSB on
 * and off.  Frames arrive after the receiver is enabled.
 */
TEST(restart, "After a restart all buffers are used, whatever guest_rdt was")
{
	struct lem l;
	unsigned int i;

	lem_up(&l);
	for (i = 0; i < 2 * NDESC; i++) {
		csb_on(&l, i % 2);
		lem_init(&l, arrive_early);
		ATF_CHECK_EQ(NDESC - 1, host_rd(l.h, E82545_RDT));
		settle(&l);
		receive(&l, NDESC * 2 + 1, NDESC);
		transmit(&l, 3);
		csb_on(&l, true);
		receive(&l, i, 7);
	}
	ATF_CHECK_EQ(injected, l.taken);
	ATF_CHECK_EQ(0, host_counter(l.h, E82545_C_CSB_BAD));
	lem_down(&l);
}

TEST(same_index, "After a restart, a guest_rdt that has come round to what it "
    "was is found")
{
	struct lem l;
	unsigned int i;

	lem_up(&l);
	csb_on(&l, true);
	for (i = 0; i < NDESC; i++) {
		receive(&l, i, 7);
		lem_init(&l, NULL);
		settle(&l);
		/* The host does not look until the ring is empty. */
		receive(&l, NDESC - 1, NDESC - 1);
		receive(&l, 2, 1);
	}
	lem_down(&l);
}

TEST(old_index, "An index of an earlier lap does not make unread frames free")
{
	struct lem l;
	uint32_t i, old;

	lem_up(&l);
	csb_on(&l, true);
	/* The last slot is never posted, so an index a lap old is harmless. */
	for (i = 1; i < NDESC - 1; i++) {
		receive(&l, NDESC + i, 5);
		old = CSB_GET(l.csb, guest_rdt);
		receive(&l, i, i);
		/* The ring is full. */
		inject(&l, 2 * NDESC);
		host_run(l.h);
		CSB_SET(l.csb, guest_rdt, old);
		host_wr(l.h, E82545_RDT, old);
		host_run(l.h);
		ATF_CHECK_EQ(l.taken + NDESC - 1,
		    host_counter(l.h, E82545_C_RX_FRAME));
		settle(&l);
		ATF_REQUIRE_EQ(injected, l.taken);
	}
	lem_down(&l);
}

TEST(on_under_load, "When the CSB is turned on, an old guest_rdt does not make "
    "unread frames free")
{
	struct lem l;
	unsigned int i;

	lem_up(&l);
	for (i = 1; i <= 2 * NDESC; i++) {
		csb_on(&l, true);
		receive(&l, i, 5);
		csb_on(&l, false);
		receive(&l, 7 * i, 5);
		/* The ring is full and the guest has read nothing. */
		inject(&l, 3 * NDESC);
		host_run(l.h);
		csb_on(&l, true);
		host_wr(l.h, E82545_RCTL, host_rd(l.h, E82545_RCTL));
		inject(&l, 1);
		host_run(l.h);
		settle(&l);
		ATF_REQUIRE_EQ(injected, l.taken);
	}
	lem_down(&l);
}

static void
switch_off(struct lem *l)
{
	csb_on(l, false);
	l->rx_hook = NULL;
	host_wr(l->h, E82545_RCTL, host_rd(l->h, E82545_RCTL));
	host_run(l->h);
}

TEST(off_under_load, "When the CSB is turned off, buffers posted by a loop "
    "that has seen it on are found")
{
	struct lem l;
	unsigned int i;

	lem_up(&l);
	for (i = 1; i < NDESC; i++) {
		csb_on(&l, true);
		receive(&l, i, 5);
		inject(&l, i);
		host_run(l.h);
		l.rx_hook = switch_off;
		settle(&l);
		receive(&l, NDESC * 3, NDESC);
		ATF_REQUIRE_EQ(injected, l.taken);
	}
	lem_down(&l);
}

TEST(combining, "With send combining and the CSB every frame is sent, without "
    "another event")
{
	struct lem l;

	lem_up(&l);
	transmit(&l, 3);
	csb_on(&l, true);
	atomic_store_32(&l.combining, 1);
	transmit(&l, 3 * NDESC);
	atomic_store_32(&l.combining, 0);
	transmit(&l, 3);
	csb_on(&l, false);
	transmit(&l, 3);
	lem_down(&l);
}

/*
 * All of it at once: the guest's interrupt thread, a sender, the network and
 * the host's threads; and an administrator who turns the CSB and send combining
 * on and off, and restarts the interface.
 */
static struct {
	struct lem	*l;
	uint32_t	 stop_rx, stop_tx;	/* atomic */
} load;

static void
nap(void)
{
	const struct timespec t = { 0, 20000 };

	nanosleep(&t, NULL);
}

static void *
interrupt_main(void *arg __unused)
{
	while (atomic_load_32(&load.stop_rx) < 2)
		if (!lem_intr(load.l)) {
			nap();
			/* Otherwise time stands still. */
			if (load.l->legacy_irq)
				host_advance(load.l->h, LOOK_NS / 10);
		}
	return (NULL);
}

static void *
send_main(void *arg __unused)
{
	uint32_t seed = 1;

	while (atomic_load_32(&load.stop_tx) == 0)
		if (atomic_load_32(&load.l->queue) < QUEUE)
			lem_send(load.l, 1 + test_below(&seed, 8));
		else
			nap();
	return (NULL);
}

static void *
network_main(void *arg __unused)
{
	while (atomic_load_32(&load.stop_rx) == 0)
		if (host_rx_pending(load.l->h) < 3 * NDESC)
			inject(load.l, 1);
		else
			nap();
	return (NULL);
}

/* Both directions go on. */
static void
progress(struct lem *l, uint32_t n)
{
	const uint32_t sent = atomic_load_32(&l->sent);
	const uint32_t taken = atomic_load_32(&l->taken);

	wait_until(atomic_load_32(&l->sent) - sent >= n &&
	    atomic_load_32(&l->taken) - taken >= n,
	    "%u sent, %u taken after %u and %u; CSB %u, RDH %u, RDT %u, "
	    "guest_rdt %u, host_rxkick_at %u, guest_need_rxkick %u, ICR %#x",
	    atomic_load_32(&l->sent), atomic_load_32(&l->taken), sent, taken,
	    CSB_GET(l->csb, guest_csb_on), host_rd(l->h, E82545_RDH),
	    host_rd(l->h, E82545_RDT), CSB_GET(l->csb, guest_rdt),
	    CSB_GET(l->csb, host_rxkick_at),
	    CSB_GET(l->csb, guest_need_rxkick), host_rd(l->h, E82545_ICR));
}

static bool
all_sent(struct lem *l)
{
	return (atomic_load_32(&l->queue) == 0 &&
	    atomic_load_32(&l->sent) + atomic_load_32(&l->tx_lost) ==
	    atomic_load_32(&l->posted));
}

static bool
all_taken(struct lem *l)
{
	return (atomic_load_32(&l->taken) + atomic_load_32(&l->rx_lost) +
	    host_counter(l->h, E82545_C_RX_DISABLED) ==
	    atomic_load_32(&injected));
}

static void
administer(unsigned int rounds, bool restarts, bool legacy_irq)
{
	pthread_t interrupts, network, sender;
	uint32_t seed = 1;
	struct lem l;
	unsigned int i;

	lem_up(&l);
	l.legacy_irq = legacy_irq;
	memset(&load, 0, sizeof(load));
	load.l = &l;
	host_start_threads(l.h);
	ATF_REQUIRE_EQ(0, pthread_create(&interrupts, NULL, interrupt_main,
	    NULL));
	ATF_REQUIRE_EQ(0, pthread_create(&network, NULL, network_main, NULL));
	ATF_REQUIRE_EQ(0, pthread_create(&sender, NULL, send_main, NULL));
	for (i = 0; i < rounds; i++) {
		/* A run of the receive loop may still use the old value. */
		progress(&l, RX_LIMIT + test_below(&seed, 2 * NDESC));
		switch (test_below(&seed, restarts ? 5 : 4)) {
		case 0:
			csb_on(&l, false);
			break;
		case 1:
		case 2:
			csb_on(&l, true);
			break;
		case 3:
			atomic_store_32(&l.combining, test_below(&seed, 2));
			break;
		case 4:
			lem_init(&l, NULL);
			break;
		}
	}
	atomic_store_32(&load.stop_tx, 1);
	pthread_join(sender, NULL);
	wait_until(all_sent(&l), "%u posted, %u sent, %u lost",
	    l.posted, l.sent, l.tx_lost);
	atomic_store_32(&load.stop_rx, 1);
	pthread_join(network, NULL);
	wait_until(all_taken(&l), "%u arrived, %u taken, %u lost",
	    injected, l.taken, l.rx_lost);
	atomic_store_32(&load.stop_rx, 2);
	pthread_join(interrupts, NULL);
	host_stop_threads(l.h);
	ATF_CHECK_EQ(l.posted - l.tx_lost,
	    host_counter(l.h, E82545_C_TX_FRAME));
	ATF_CHECK_EQ(l.taken + l.rx_lost,
	    host_counter(l.h, E82545_C_RX_FRAME));
	if (!restarts)
		ATF_CHECK_EQ(0, l.tx_lost + l.rx_lost);
	ATF_CHECK(host_counter(l.h, E82545_C_RX_STALL) > 0);
	ATF_CHECK_EQ(0, host_counter(l.h, E82545_C_CSB_BAD));
	lem_down(&l);
}

TEST(switched, "Switched under load, the driver neither hangs nor loses a "
    "frame")
{
	administer(1000, false, false);
}

TEST(restarted, "Switched and restarted under load, it does not hang, and "
    "every frame is accounted for")
{
	administer(1000, true, false);
}

TEST(legacy_irq_load, "Switched under load without masking, it does not hang "
    "for more than 10 ms")
{
	administer(1000, false, true);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, txkick_at_zero);
	ATF_TP_ADD_TC(tp, need_rxkick_zero);
	ATF_TP_ADD_TC(tp, unmask);
	ATF_TP_ADD_TC(tp, polling);
	ATF_TP_ADD_TC(tp, stray);
	ATF_TP_ADD_TC(tp, legacy_irq);
	ATF_TP_ADD_TC(tp, legacy_irq_switched);
	ATF_TP_ADD_TC(tp, restart);
	ATF_TP_ADD_TC(tp, same_index);
	ATF_TP_ADD_TC(tp, old_index);
	ATF_TP_ADD_TC(tp, on_under_load);
	ATF_TP_ADD_TC(tp, off_under_load);
	ATF_TP_ADD_TC(tp, combining);
	ATF_TP_ADD_TC(tp, switched);
	ATF_TP_ADD_TC(tp, restarted);
	ATF_TP_ADD_TC(tp, legacy_irq_load);

	return (atf_no_error());
}
