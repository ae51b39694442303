/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Interrupts of the 82574L: ICR and its masks, MSI-X vectors, and EITR.  Bits
 * are numbers, as in the datasheet.
 */

#include <sys/param.h>

#include <string.h>

#include "e82545_guest.h"
#include "e82545_impl.h"
#include "e82545_intr.h"

#define	ALL	0xffffffff
#define	TXDW	0x00000001
#define	TXQE	0x00000002
#define	LSC	0x00000004
#define	RXDMT0	0x00000010
#define	RXO	0x00000040
#define	RXT0	0x00000080
#define	RXQ0	0x00100000
#define	RXQ1	0x00200000
#define	TXQ0	0x00400000
#define	TXQ1	0x00800000
#define	OTHER	0x01000000
#define	QUEUES	(RXQ0 | RXQ1 | TXQ0 | TXQ1)
#define	ASSERTED 0x80000000
#define	EIAC	0xdc
#define	IAM	0xe0
#define	IVAR	0xe4
#define	EITR(n)	(0xe8 + 4 * (n))
#define	EIAME	0x01000000
#define	IAME	0x08000000

/* As Linux: receive has vector 0, transmit 1, all else 2. */
#define	IVAR_LINUX	0x800a0908
#define	OTHER_MASK	(LSC | OTHER)

/* Mask all causes, and clear them. */
static void
mask_all(struct host *h)
{
	host_wr(h, E82545_IMC, ALL);
	host_wr(h, E82545_ICR, ALL);
}

static struct host *
msix_up(void)
{
	struct host *h;

	h = host_create_82574(HOST_RAM);
	host_up(h, 64, 64, 2048);
	/* The link has come up. */
	mask_all(h);
	e82545_msix(h->dev, true);
	host_wr(h, IVAR, IVAR_LINUX);
	host_wr(h, EIAC, RXQ0 | TXQ0);
	host_wr(h, E82545_IMS, RXQ0 | TXQ0 | OTHER_MASK);
	return (h);
}

/* Check how many messages each vector has sent since. */
static void
check_messages(struct host *h, unsigned int v0, unsigned int v1,
    unsigned int v2)
{
	ATF_CHECK_EQ(v0, h->nmessages[0]);
	ATF_CHECK_EQ(v1, h->nmessages[1]);
	ATF_CHECK_EQ(v2, h->nmessages[2]);
	ATF_CHECK_EQ(0, h->nmessages[3] + h->nmessages[4]);
	memset(h->nmessages, 0, sizeof(h->nmessages));
}

static void
send_one(struct host *h)
{
	uint8_t frame[60];

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_tx_frame(h, frame, sizeof(frame), 0);
	host_tx_go(h);
	host_run(h);
}

static void
receive_one(struct host *h)
{
	uint8_t frame[60];

	host_make_frame(frame, sizeof(frame), host_mac, 1);
	rx_receive(h, frame, sizeof(frame));
	check_taken(h, frame, sizeof(frame));
	host_rx_post(h);
}

HOST_TEST(icr, host_create_82574(HOST_RAM), "Without MSI-X: what reading ICR "
    "clears, and when it masks")
{
	/* All masked: a read clears. */
	host_wr(h, E82545_ICS, ALL);
	ATF_CHECK_EQ(0x01f7ffff, host_rd(h, E82545_ICS));
	ATF_CHECK_EQ(0x01f7ffff, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	/* Those not masked have not happened: a read does nothing. */
	host_wr(h, E82545_IMS, RXT0);
	host_wr(h, E82545_ICS, LSC);
	ATF_CHECK_EQ(LSC, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(!host_line(h));
	/* One has: it clears all, and masks none. */
	host_wr(h, E82545_ICS, RXT0);
	ATF_CHECK(host_line(h));
	ATF_CHECK_EQ(ASSERTED | RXT0 | LSC, host_rd(h, E82545_ICS));
	ATF_CHECK_EQ(ASSERTED | RXT0 | LSC, host_rd(h, E82545_ICR));
	ATF_CHECK(!host_line(h));
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(RXT0, host_rd(h, E82545_IMS));
	/* It masks what IAM has, with IAME. */
	host_wr(h, E82545_IMS, ALL);
	host_wr(h, IAM, ~LSC);
	host_set(h, E82545_CTRL_EXT, IAME);
	host_wr(h, E82545_ICS, TXDW);
	ATF_CHECK_EQ(ASSERTED | TXDW, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(LSC, host_rd(h, E82545_IMS));
	host_wr(h, E82545_ICS, TXDW);
	ATF_CHECK(!host_line(h));
	ATF_CHECK_EQ(TXDW, host_rd(h, E82545_ICR));
	host_wr(h, E82545_IMS, TXDW);
	ATF_CHECK(host_line(h));
	/* So does writing it; that of the others clears each of them. */
	host_wr(h, E82545_IMS, LSC | RXO);
	host_wr(h, E82545_ICS, LSC | RXO | OTHER | RXQ1);
	host_wr(h, E82545_ICR, OTHER);
	ATF_CHECK_EQ(LSC, host_rd(h, E82545_IMS));
	ATF_CHECK(!host_line(h));
	ATF_CHECK_EQ(TXDW | RXQ1, host_rd(h, E82545_ICR));
	host_wr(h, E82545_ICR, ALL);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	/* No other bit clears these, and nothing is masked unless asserted. */
	host_wr(h, IAM, ALL);
	host_wr(h, E82545_ICS, TXDW | RXO);
	host_wr(h, E82545_ICR, TXDW | ~(ALL >> 7));
	ATF_CHECK_EQ(RXO, host_rd(h, E82545_ICR));
	ATF_CHECK_EQ(LSC, host_rd(h, E82545_IMS));
	/* A queue has no cause of its own. */
	host_wr(h, E82545_IMC, ALL);
	host_up(h, 64, 64, 2048);
	send_one(h);
	receive_one(h);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR) & 0x01f00000);
	ATF_CHECK_EQ(0, h->nmessages[0]);
}

/* These vectors, or none, were withdrawn since the last time. */
static void
withdrawn(struct host *h, uint32_t vectors)
{
	ATF_CHECK_EQ(vectors != 0, h->nwithdrawn);
	ATF_CHECK_EQ(vectors, h->withdrawn);
	h->nwithdrawn = h->withdrawn = 0;
}

HOST_TEST(off, msix_up(), "A vector of which no cause is enabled any more is "
    "withdrawn, also if EIAC has masked it before")
{
	h->nwithdrawn = h->withdrawn = 0;
	receive_one(h);
	ATF_CHECK_EQ(TXQ0 | OTHER_MASK, host_rd(h, E82545_IMS));
	withdrawn(h, 0);
	/* Vectors 3 and 4 have no cause. */
	host_wr(h, E82545_IMC, RXQ0);
	withdrawn(h, 1 << 0 | 3 << 3);
	host_wr(h, E82545_IMS, RXQ0);
	host_wr(h, E82545_IMC, TXQ0);
	withdrawn(h, 1 << 1 | 3 << 3);
	host_wr(h, E82545_IMC, ALL);
	withdrawn(h, 0x1f);
	host_wr(h, E82545_CTRL, E82545_CTRL_RST);
	withdrawn(h, 0x1f);
}

HOST_TEST(ivar, msix_up(), "Causes without a vector, with one that does not "
    "exist, and several with the same")
{
	host_wr(h, IVAR, 0);
	receive_one(h);
	check_messages(h, 0, 0, 0);
	/* It was not cleared: the vector's message follows. */
	host_wr(h, IVAR, 0x8);
	check_messages(h, 1, 0, 0);
	host_wr(h, IVAR, 0x000ddddf);
	host_wr(h, E82545_IMS, ALL);
	receive_one(h);
	send_one(h);
	host_wr(h, E82545_ICS, ALL);
	check_messages(h, 0, 0, 0);
	host_wr(h, IVAR, 0x00099999);
	check_messages(h, 0, 1, 0);
}

HOST_TEST(eiame, msix_up(), "CTRL_EXT.EIAME: a message masks what IAM has of "
    "its causes")
{
	host_wr(h, EIAC, 0);
	host_wr(h, IAM, RXQ0 | OTHER);
	receive_one(h);
	check_messages(h, 1, 0, 0);
	/* Neither cleared nor masked: it was sent. */
	ATF_CHECK_EQ(RXQ0 | TXQ0 | OTHER_MASK, host_rd(h, E82545_IMS));
	receive_one(h);
	check_messages(h, 0, 0, 0);
	host_wr(h, E82545_ICR, RXQ0);
	receive_one(h);
	check_messages(h, 1, 0, 0);
	host_wr(h, E82545_ICR, RXQ0);
	host_set(h, E82545_CTRL_EXT, EIAME);
	receive_one(h);
	check_messages(h, 1, 0, 0);
	ATF_CHECK_EQ(TXQ0 | OTHER_MASK, host_rd(h, E82545_IMS));
	send_one(h);
	check_messages(h, 0, 1, 0);
	ATF_CHECK_EQ(TXQ0 | OTHER_MASK, host_rd(h, E82545_IMS));
	host_wr(h, E82545_IMS, RXQ0);
	check_messages(h, 1, 0, 0);
	mask_all(h);
	host_wr(h, IAM, TXQ0);
	host_wr(h, E82545_IMS, RXQ0 | TXQ0);
	host_wr(h, E82545_ICS, RXQ0 | TXQ0);
	check_messages(h, 1, 1, 0);
	ATF_CHECK_EQ(RXQ0, host_rd(h, E82545_IMS));
}

TEST(eitr, "The interval of each vector, and the host's")
{
	struct host *h;
	uint64_t held;
	unsigned int i;

	h = msix_up();
	host_wr(h, EITR(0), 100);
	receive_one(h);
	check_messages(h, 1, 0, 0);
	host_wr(h, E82545_IMS, RXQ0);
	receive_one(h);
	check_messages(h, 0, 0, 0);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_INTR_HELD));
	/* It waits already. */
	receive_one(h);
	ATF_CHECK_EQ(1, host_counter(h, E82545_C_INTR_HELD));
	/* Vector 1 has none. */
	for (i = 0; i < 3; i++) {
		send_one(h);
		check_messages(h, 0, 1, 0);
		host_wr(h, E82545_IMS, TXQ0);
	}
	host_advance(h, 100 * 256 - 1);
	check_messages(h, 0, 0, 0);
	host_advance(h, 1);
	check_messages(h, 1, 0, 0);
	/* The interval is shorter now, and over. */
	host_wr(h, E82545_IMS, RXQ0);
	receive_one(h);
	host_advance(h, 30 * 256);
	check_messages(h, 0, 0, 0);
	host_wr(h, EITR(0), 30);
	check_messages(h, 1, 0, 0);
	/* A cause that is cleared while it waits has no message. */
	host_wr(h, E82545_IMS, RXQ0);
	receive_one(h);
	host_wr(h, E82545_ICR, RXQ0);
	host_advance(h, 1000000);
	check_messages(h, 0, 0, 0);
	/* That of the administrator. */
	e82545_change(h->dev, 0, 200, UINT32_MAX);
	receive_one(h);
	check_messages(h, 1, 0, 0);
	host_wr(h, E82545_IMS, RXQ0);
	receive_one(h);
	host_advance(h, 200 * 256 - 1);
	check_messages(h, 0, 0, 0);
	host_advance(h, 1);
	check_messages(h, 1, 0, 0);
	/* His default, for a vector whose guest has none. */
	e82545_change(h->dev, 150, 0, UINT32_MAX);
	host_wr(h, EITR(0), 0);
	host_wr(h, EITR(1), 50);
	host_advance(h, 1000000);
	host_wr(h, E82545_IMS, RXQ0);
	held = host_counter(h, E82545_C_INTR_HELD);
	for (i = 0; i < 2; i++) {
		host_wr(h, E82545_ICS, RXQ0 | TXQ0);
		host_wr(h, E82545_IMS, RXQ0 | TXQ0);
	}
	check_messages(h, 1, 1, 0);
	ATF_CHECK_EQ(held + 2, host_counter(h, E82545_C_INTR_HELD));
	host_advance(h, 50 * 256 - 1);
	check_messages(h, 0, 0, 0);
	host_advance(h, 1);
	check_messages(h, 0, 1, 0);
	host_advance(h, 100 * 256 - 1);
	check_messages(h, 0, 0, 0);
	host_advance(h, 1);
	check_messages(h, 1, 0, 0);
	host_destroy(h);
}

/* What happens, as e82545_intr_rx() and e82545_intr_tx() say. */
enum call { CALL_RX, CALL_TX, CALL_NONE };

static void
call(struct host *h, enum call what, unsigned int queue, bool done,
    uint32_t causes)
{
	pthread_mutex_lock(&h->dev->reg_mtx);
	if (what == CALL_RX)
		e82545_intr_rx(h->dev, queue, done, causes);
	else if (what == CALL_TX)
		e82545_intr_tx(h->dev, queue, done, false, causes);
	else
		e82545_intr_again(h->dev);
	pthread_mutex_unlock(&h->dev->reg_mtx);
}

TEST(queues, "A cause is that of its queue, and of both if it is a timer's")
{
	static const struct {
		enum call	what;
		unsigned int	queue;
		bool		done;
		uint32_t	causes, want;
	} t[] = {
		{ CALL_RX, 0, true, 0, RXT0 | RXQ0 },
		{ CALL_RX, 1, true, 0, RXT0 | RXQ1 },
		{ CALL_RX, 0, false, RXDMT0, RXDMT0 | RXQ0 },
		{ CALL_RX, 1, false, RXDMT0, RXDMT0 | RXQ1 },
		{ CALL_RX, 1, false, RXT0, RXT0 | RXQ1 },
		{ CALL_RX, 1, true, RXO, RXT0 | RXQ1 | RXO | OTHER },
		{ CALL_RX, 1, false, RXO, RXO | OTHER },
		{ CALL_TX, 0, true, 0, TXDW | TXQ0 },
		{ CALL_TX, 1, true, 0, TXDW | TXQ1 },
		{ CALL_TX, 0, false, TXDW, TXDW | TXQ0 },
		{ CALL_TX, 1, false, TXDW, TXDW | TXQ1 },
		{ CALL_TX, 1, false, TXQE, TXQE },
	};
	struct host *h;
	uint8_t frame[60];
	unsigned int i;

	h = msix_up();
	mask_all(h);
	for (i = 0; i < nitems(t); i++) {
		call(h, t[i].what, t[i].queue, t[i].done, t[i].causes);
		ATF_CHECK_EQ_MSG(t[i].want, host_rd(h, E82545_ICR), "%u", i);
	}
	/* Timers from before MSI-X was turned on. */
	e82545_msix(h->dev, false);
	host_wr(h, E82545_RDTR, 10);
	host_wr(h, E82545_TIDV, 20);
	host_make_frame(frame, sizeof(frame), host_mac, 1);
	host_tx_frame(h, frame, sizeof(frame), E82545_TXD_IDE);
	host_tx_go(h);
	receive_one(h);
	host_wr(h, E82545_ICR, ALL);
	e82545_msix(h->dev, true);
	host_advance(h, 10 * 1024 - 1);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	host_advance(h, 1);
	ATF_CHECK_EQ(RXT0 | RXQ0 | RXQ1, host_rd(h, E82545_ICR));
	host_advance(h, 10 * 1024 - 1);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	host_advance(h, 1);
	ATF_CHECK_EQ(TXDW | TXQ0 | TXQ1, host_rd(h, E82545_ICR));
	host_destroy(h);
}

static unsigned int clock_reads;

static uint64_t
clock_now(void *arg)
{
	clock_reads++;
	return (host_ops.eo_now(arg));
}

TEST(clock, "The clock is read only if a message may be sent, and the timer "
    "set only if a vector waits")
{
	static const struct {
		uint32_t	ims;
		enum call	what;
		unsigned int	queue;
		bool		done;
		uint32_t	causes;
		unsigned int	reads;
	} t[] = {
		/* Its vector is masked. */
		{ 0, CALL_RX, 0, true, 0, 0 },
		{ TXQ0 | TXQ1 | OTHER, CALL_RX, 0, true, 0, 0 },
		{ TXQ0 | TXQ1 | OTHER, CALL_RX, 1, false, RXDMT0, 0 },
		{ RXQ0 | RXQ1 | OTHER, CALL_TX, 0, true, 0, 0 },
		{ RXQ0 | RXQ1 | OTHER, CALL_TX, 1, false, TXDW, 0 },
		{ QUEUES, CALL_RX, 0, false, RXO, 0 },
		{ QUEUES | OTHER, CALL_TX, 0, false, TXQE, 0 },
		{ QUEUES | OTHER, CALL_NONE, 0, false, 0, 0 },
		/* Causes without a vector. */
		{ ~(QUEUES | OTHER), CALL_RX, 0, true, RXO, 0 },
		{ ~(QUEUES | OTHER), CALL_TX, 0, true, TXQE, 0 },
		/* It is not. */
		{ RXQ0, CALL_RX, 0, true, 0, 1 },
		{ RXQ1, CALL_RX, 1, true, 0, 1 },
		{ RXQ1, CALL_RX, 1, false, RXDMT0, 1 },
		{ TXQ0, CALL_TX, 0, true, 0, 1 },
		{ TXQ1, CALL_TX, 1, true, 0, 1 },
		{ TXQ1, CALL_TX, 1, false, TXDW, 1 },
		{ OTHER, CALL_RX, 0, false, RXO, 1 },
	};
	struct e82545_ops ops = host_ops;
	struct host *h;
	unsigned int i, ntimer;

	ops.eo_now = clock_now;
	h = msix_up();
	h->dev->ops = &ops;
	ntimer = h->ntimer;
	for (i = 0; i < nitems(t); i++) {
		mask_all(h);
		host_wr(h, E82545_IMS, t[i].ims);
		clock_reads = 0;
		call(h, t[i].what, t[i].queue, t[i].done, t[i].causes);
		ATF_CHECK_EQ_MSG(t[i].reads, clock_reads, "%u: read %u times",
		    i, clock_reads);
	}
	ATF_CHECK_EQ(ntimer, h->ntimer);
	/* Of what was sent the guest knows. */
	mask_all(h);
	host_wr(h, EIAC, 0);
	host_wr(h, E82545_IMS, RXQ0);
	receive_one(h);
	clock_reads = 0;
	receive_one(h);
	ATF_CHECK_EQ(0, clock_reads);
	h->dev->ops = &host_ops;
	host_destroy(h);
}

TEST(csb, "A message that clears a cause of receive, or a read of ICR, is the "
    "last one of a guest that polls")
{
	struct host *h;
	uint64_t gpa;

	h = host_create_82574_csb(HOST_RAM);
	gpa = guest_alloc(h);
	host_up(h, 64, 64, 2048);
	CSB_SET(h, guest_rdt, h->rxtail);
	CSB_SET(h, guest_need_rxkick, 0);
	CSB_SET(h, guest_need_txkick, 1);
	guest_place(h, gpa);
	CSB_SET(h, guest_csb_on, 1);
	mask_all(h);
	e82545_msix(h->dev, true);
	host_wr(h, IVAR, IVAR_LINUX);
	host_wr(h, EIAC, RXQ0);
	/* RXT0 in IMS asks for interrupts, RXQ0 alone does not. */
	host_wr(h, E82545_IMS, RXQ0 | RXT0);
	guest_receive(h, 1);
	check_messages(h, 1, 0, 0);
	host_wr(h, E82545_IMS, RXQ0);
	guest_receive(h, 1);
	check_messages(h, 0, 0, 0);
	/* A message that clears nothing, or what is not of receive. */
	host_wr(h, EIAC, TXQ0);
	host_wr(h, E82545_IMS, TXQ0 | RXT0);
	check_messages(h, 1, 0, 0);
	host_wr(h, E82545_ICR, RXQ0);
	guest_receive(h, 1);
	check_messages(h, 1, 0, 0);
	host_wr(h, E82545_ICR, RXQ0);
	guest_transmit(h, 1);
	check_messages(h, 0, 1, 0);
	guest_receive(h, 1);
	check_messages(h, 1, 0, 0);
	/* A read of ICR, unless there was nothing in it. */
	mask_all(h);
	ATF_CHECK_EQ(0, host_rd(h, E82545_ICR));
	host_wr(h, E82545_IMS, RXQ0);
	guest_receive(h, 1);
	check_messages(h, 1, 0, 0);
	mask_all(h);
	host_wr(h, E82545_ICS, LSC);
	ATF_CHECK_EQ(LSC | OTHER, host_rd(h, E82545_ICR));
	host_wr(h, E82545_IMS, RXQ0);
	guest_receive(h, 1);
	check_messages(h, 0, 0, 0);
	host_destroy(h);
}

HOST_TEST(mode, msix_up(), "MSI-X on and off, with causes pending")
{
	struct e82545_mode mode;

	host_wr(h, EITR(0), 123);
	host_wr(h, E82545_ITR, 45);
	e82545_mode(h->dev, &mode);
	ATF_CHECK_EQ(123, mode.em_itr_256ns);
	/* That of receive's vector; without one, ITR. */
	host_wr(h, EITR(3), 67);
	host_wr(h, IVAR, 0x8000008b);
	e82545_mode(h->dev, &mode);
	ATF_CHECK_EQ(67, mode.em_itr_256ns);
	host_wr(h, IVAR, 0x80000083);
	e82545_mode(h->dev, &mode);
	ATF_CHECK_EQ(45, mode.em_itr_256ns);
	host_wr(h, IVAR, 0x8000000d);
	e82545_mode(h->dev, &mode);
	ATF_CHECK_EQ(45, mode.em_itr_256ns);
	host_wr(h, IVAR, IVAR_LINUX);
	e82545_link(h->dev, false);
	check_messages(h, 0, 0, 1);
	/* INTx has the cause, too. */
	e82545_msix(h->dev, false);
	ATF_CHECK(host_line(h));
	e82545_msix(h->dev, true);
	ATF_CHECK(!host_line(h));
	check_messages(h, 0, 0, 1);
	e82545_msix(h->dev, true);
	check_messages(h, 0, 0, 0);
	/* A reset of the adapter is not one of configuration space. */
	host_wr(h, 0xb608, 1 << 24 | 1);
	host_advance(h, 400);
	host_wr(h, 0xb604, 5);
	ATF_REQUIRE_EQ(OTHER, h->dev->x.xs_sent);
	host_set(h, E82545_CTRL, E82545_CTRL_RST);
	ATF_CHECK_EQ(0, h->dev->x.xs_sent);
	ATF_CHECK_EQ(0, h->dev->x.xs_vector[2].ev_last_ns);
	ATF_CHECK_EQ(0, h->dev->x.xs_systim);
	ATF_CHECK_EQ(0, h->dev->x.xs_systim_ns);
	e82545_mode(h->dev, &mode);
	ATF_CHECK_EQ(0, mode.em_itr_256ns);
	host_wr(h, IVAR, IVAR_LINUX);
	host_wr(h, E82545_IMS, RXQ0);
	host_wr(h, E82545_ICS, RXQ0);
	check_messages(h, 1, 0, 0);
	ATF_CHECK_EQ(1, host_raised(h));
	e82545_msix(h->dev, false);
	ATF_CHECK_EQ(0, h->dev->x.xs_sent);
}

TEST_PROGRAM
