/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The driver that the CSB was made for, and its habits: lem10_guest.h.
 */

#include <sys/param.h>
#include <sys/endian.h>

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "e82545_guest.h"
#include "lem10_guest.h"
#include "test.h"
#include "wait_until.h"

#define	NDESC		64
#define	RECHECK_NS		10000000	/* when the host looks again */
#define	RX_LIMIT	LEM10_RX_LIMIT
#define	QUEUE		50		/* frames that wait to be sent */

static void
lem_up(struct lem10 *l)
{
	struct host *h = host_create_csb(HOST_RAM);

	h->tx_discard = true;
	lem10_up(l, h, NDESC);
}

static void
lem_down(struct lem10 *l)
{
	ATF_CHECK_EQ(0, l->disorder);
	lem10_down(l);
	host_destroy(l->h);
}

/* A test case with the driver, `l', started. */
#define	LEM_TEST(name, descr)						\
	static void name##_test(struct lem10 *l);			\
	TEST(name, descr)						\
	{								\
		struct lem10 l;						\
									\
		lem_up(&l);						\
		name##_test(&l);					\
		lem_down(&l);						\
	}								\
	static void							\
	name##_test(struct lem10 *l)

/*
 * The network.
 */

static uint32_t injected;

static void
inject(struct lem10 *l, unsigned int n)
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
settle(struct lem10 *l)
{
	do {
		host_run(l->h);
	} while (lem10_intr(l));
}

/* `n' more frames arrive and are taken, in bursts of at most `burst'. */
static void
receive(struct lem10 *l, unsigned int n, unsigned int burst)
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
transmit(struct lem10 *l, unsigned int n)
{
	const uint64_t before = host_counter(l->h, E82545_C_TX_FRAME);
	unsigned int i;

	for (i = 0; i < n; i++) {
		lem10_send(l, 1);
		settle(l);
	}
	ATF_REQUIRE_EQ(before + n, host_counter(l->h, E82545_C_TX_FRAME));
}

/*
 * Habits.
 */

/* The link goes and comes: an interrupt without a frame. */
static void
relink(struct lem10 *l)
{
	e82545_link(l->h->dev, false);
	e82545_link(l->h->dev, true);
}

/* A frame arrives for which the driver asks no interrupt. */
static void
arrive_quietly(struct lem10 *l)
{
	CSB_SET(l, guest_need_rxkick, 0);
	inject(l, 1);
	host_run(l->h);
}

LEM_TEST(need_rxkick_zero, "An interrupt without a frame, which leaves "
    "guest_need_rxkick at 0, is followed by others")
{
	lem10_csb(l, true);
	receive(l, 10, 3);
	relink(l);
	settle(l);
	ATF_CHECK_EQ(0, CSB_GET(l, guest_need_rxkick));
	receive(l, 10, 1);
}

LEM_TEST(stray, "An interrupt of another device on the same line, which finds "
    "ICR 0, changes nothing")
{
	lem10_csb(l, true);
	receive(l, 5, 1);
	relink(l);
	settle(l);
	ATF_CHECK_EQ(0, CSB_GET(l, guest_need_rxkick));
	ATF_CHECK_EQ(0, host_rd(l->h, E82545_ICR));
	receive(l, 5, 1);
	/* Nor does it drop suppressed causes. */
	relink(l);
	ATF_CHECK(host_rd(l->h, E82545_ICR) != 0);
	host_wr(l->h, E82545_IMC, UINT32_MAX);
	arrive_quietly(l);
	ATF_CHECK_EQ(0, host_rd(l->h, E82545_ICR));
	host_wr(l->h, E82545_IMS, LEM10_CAUSES);
	ATF_CHECK(host_line(l->h));
	settle(l);
	ATF_CHECK_EQ(11, l->taken);
}

/* A transmit interrupt when all frames are taken. */
static void
interrupt_without_frame(struct lem10 *l)
{
	CSB_SET(l, guest_need_txkick, 2);
	transmit(l, 1);
	ATF_CHECK_EQ(0, CSB_GET(l, guest_need_rxkick));
}

/* As receive(), but the guest may need until the host looks again. */
static void
receive_late(struct lem10 *l, unsigned int n)
{
	const uint32_t before = l->taken;

	inject(l, n);
	settle(l);
	host_advance(l->h, RECHECK_NS);
	settle(l);
	ATF_REQUIRE_EQ(before + n, l->taken);
}

LEM_TEST(legacy_irq, "Without masking, too, an interrupt without a frame is "
    "followed by others")
{
	unsigned int i;

	settle(l);
	l->legacy_irq = true;
	lem10_csb(l, true);
	for (i = 0; i < 2 * NDESC; i++) {
		interrupt_without_frame(l);
		receive_late(l, 1 + i % 3);
		/* Now it has asked for more. */
		receive(l, 1, 1);
	}
}

/* The access, from the interrupt on, after the look at guest_csb_on. */
#define	LOOKED	4

/* The mode changes, and the host looks at it. */
static void
switched_to(struct lem10 *l, bool on)
{
	lem10_csb(l, on);
	host_wr(l->h, E82545_RCTL, host_rd(l->h, E82545_RCTL));
	host_run(l->h);
}

/* The mode changes, and changes again at another place of the loop. */
static struct {
	bool		on;		/* as the loop has seen it */
	uint32_t	after;		/* accesses to the second change */
	unsigned int	changes;
} twice;

static void
switch_twice(struct lem10 *l)
{
	switched_to(l, (twice.changes++ == 0) != twice.on);
	if (twice.changes == 1)
		l->hook_in = twice.after;
	inject(l, 1);
	host_run(l->h);
}

LEM_TEST(switched_twice, "When the CSB is turned off and on again, or on and "
    "off, within a run of the receive loop, no frame is lost or overwritten")
{
	unsigned int frames, n;

	for (n = 0; n < 2 * 2 * NDESC; n++) {
		twice.on = n % 2 == 0;
		twice.after = 1 + n / 2;
		twice.changes = 0;
		lem10_csb(l, twice.on);
		frames = 1 + n % (2 * NDESC);
		inject(l, frames);
		host_run(l->h);
		l->hook = switch_twice;
		l->hook_in = LOOKED;
		settle(l);
		l->hook_in = 0;
		receive(l, NDESC * 3, NDESC);
		ATF_CHECK(twice.changes > 0);
		ATF_REQUIRE_EQ(injected, l->taken);
	}
}

/*
 * All of it at once: the guest's interrupt thread, a sender, the network and
 * the host's threads; and an administrator who turns the CSB and send combining
 * on and off, and restarts the interface.
 */
static struct {
	struct lem10	*l;
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
		if (!lem10_intr(load.l)) {
			nap();
			/* Otherwise time stands still. */
			if (load.l->legacy_irq)
				host_advance(load.l->h, RECHECK_NS / 10);
		}
	return (NULL);
}

static void *
send_main(void *arg __unused)
{
	uint32_t seed = 1;

	while (atomic_load_32(&load.stop_tx) == 0)
		if (atomic_load_32(&load.l->queue) < QUEUE)
			lem10_send(load.l, 1 + test_below(&seed, 8));
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
progress(struct lem10 *l, uint32_t n)
{
	const uint32_t sent = atomic_load_32(&l->sent);
	const uint32_t taken = atomic_load_32(&l->taken);

	wait_until(atomic_load_32(&l->sent) - sent >= n &&
	    atomic_load_32(&l->taken) - taken >= n,
	    "%u sent, %u taken after %u and %u; CSB %u, RDH %u, RDT %u, "
	    "guest_rdt %u, host_rxkick_at %u, guest_need_rxkick %u, ICR %#x; "
	    "TDH %u, TDT %u, guest_tdt %u, host_need_txkick %u, "
	    "guest_need_txkick %u, %u frames in the ring, full %u, pending %u",
	    atomic_load_32(&l->sent), atomic_load_32(&l->taken), sent, taken,
	    CSB_GET(l, guest_csb_on), host_rd(l->h, E82545_RDH),
	    host_rd(l->h, E82545_RDT), CSB_GET(l, guest_rdt),
	    CSB_GET(l, host_rxkick_at),
	    CSB_GET(l, guest_need_rxkick), host_rd(l->h, E82545_ICR),
	    host_rd(l->h, E82545_TDH), host_rd(l->h, E82545_TDT),
	    CSB_GET(l, guest_tdt), CSB_GET(l, host_need_txkick),
	    CSB_GET(l, guest_need_txkick), (l->tx_next + NDESC -
	    l->tx_clean) % NDESC, l->tx_full, l->tx_pending);
}

static bool
all_taken(struct lem10 *l)
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
	struct lem10 l;
	unsigned int i;

	lem_up(&l);
	/* Without masking, its interrupt for LSC processes no ring. */
	settle(&l);
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
			lem10_csb(&l, false);
			break;
		case 1:
		case 2:
			lem10_csb(&l, true);
			break;
		case 3:
			atomic_store_32(&l.combining, test_below(&seed, 2));
			break;
		case 4:
			lem10_init(&l, NULL);
			break;
		}
	}
	atomic_store_32(&load.stop_tx, 1);
	pthread_join(sender, NULL);
	wait_until(lem10_all_sent(&l), "%u posted, %u sent, %u lost",
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

TEST_PROGRAM
