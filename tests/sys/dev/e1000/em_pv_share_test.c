/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * How much of the processor em_pv(4) uses: for how long the driver spins, and
 * what share reception has.  The guest has one processor and an 82545EM with a
 * CSB and an MSI.
 */

#include <stdio.h>

#include <atf-c.h>

#include <net/paravirt.h>

#include "em_pv_guest.h"
#include "test.h"

/* A started guest, with nothing to do. */
static struct em_guest *
create(void)
{
	struct em_guest *g = em_create(&(struct em_config){
	    .kind = E82545_KIND_EM, .intr = IFLIB_INTR_MSI });

	em_up(g);
	em_settle(g);
	em_mark(g);
	return (g);
}

static unsigned int nspins;	/* calls of sched_runnable() */

static bool
spin_count(struct em_guest *g __attribute__((__unused__)))
{
	nspins++;
	return (false);
}

static bool
spin_frame(struct em_guest *g)
{
	if (++nspins == 5) {
		em_inject(g, 1);
		host_run(g->h);
	}
	return (false);
}

static bool
spin_busy(struct em_guest *g __attribute__((__unused__)))
{
	return (++nspins == 3);
}

/* A frame, its interrupt and all that follows. */
static void
spin_receive(struct em_guest *g)
{
	nspins = 0;
	em_inject(g, 1);
	em_settle(g);
}

TEST(spin, "With the CSB, a task spins for frames before the next request")
{
	struct em_guest *g = create();
	const u_long intrs = em_get(g, "intrs");

	g->runnable = spin_frame;
	spin_receive(g);
	/* The frame that came meanwhile needed no interrupt. */
	ATF_CHECK_EQ(intrs + 1, em_get(g, "intrs"));
	ATF_CHECK_EQ(2, g->q[0].received);
	ATF_CHECK(nspins > 5);

	g->runnable = spin_busy;
	spin_receive(g);
	ATF_CHECK_EQ(3, nspins);

	/* With a request, nothing is expected soon. */
	g->runnable = spin_count;
	nspins = 0;
	iflib_rx_intr_deferred(&g->ctx, 0);
	em_settle(g);
	ATF_CHECK_EQ(0, nspins);

	/* Nor is there anything to wait for without the CSB. */
	ATF_REQUIRE_EQ(0, em_set(g, "csb", 0));
	em_settle(g);
	spin_receive(g);
	ATF_CHECK_EQ(0, nspins);
	em_check(g);
	em_destroy(g);
}

TEST(spin_learns, "A task spins for half as long if that finds nothing")
{
	struct em_guest *g = create();
	unsigned int i, last;

	g->runnable = spin_count;
	/* The first request was for no spin. */
	spin_receive(g);
	spin_receive(g);
	for (i = 0; i < 5; i++) {
		last = nspins;
		spin_receive(g);
		ATF_CHECK_EQ(last / 2, nspins);
	}
	/* A frame within the first rounds: twice as long again. */
	last = nspins;
	g->runnable = spin_frame;
	spin_receive(g);
	ATF_CHECK_EQ(5 + last, nspins);
	em_check(g);
	em_destroy(g);
}

/* Send a packet, without putting the adapter to sleep. */
static void
spin_send(struct em_guest *g)
{
	const unsigned int n = host_sent(g->h);

	em_send(g, 1);
	while (host_sent(g->h) == n)
		ATF_REQUIRE(e82545_tx(g->h->dev) != E82545_TX_IDLE);
}

TEST(spin_host, "The host is to spin for as long as that finds packets")
{
	struct em_guest *g = create();
	uint32_t last = 1024;
	unsigned int i;

	/* The first packet wakes a host that did not spin. */
	em_send(g, 1);
	em_settle(g);
	for (i = 0; i < 5; i++, last /= 2) {
		ATF_CHECK_EQ(last, g->csb->host_txcycles_lim);
		em_send(g, 1);
		em_settle(g);
	}
	ATF_CHECK_EQ(32, g->csb->host_txcycles_lim);
	/* One kick; then the host has sent all when the next one comes. */
	spin_send(g);
	ATF_CHECK_EQ(16, g->csb->host_txcycles_lim);
	spin_send(g);
	ATF_CHECK_EQ(32, g->csb->host_txcycles_lim);
	/* While the host has some to send, nothing is learned. */
	em_send(g, 2);
	ATF_CHECK_EQ(64, g->csb->host_txcycles_lim);
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

/*
 * Reception's share.
 */

#define	FRAME_NS	10000		/* the stack's time for a frame */
#define	RUN_NS		200000000

static uint64_t program_ns;	/* the programs' time */

static bool
busy(struct em_guest *g __attribute__((__unused__)))
{
	return (true);
}

/*
 * Frames come without end, and the programs want the processor always: they get
 * it when the tasks have nothing to do.  Returns their part, in percent.
 */
static unsigned int
flood(struct em_guest *g)
{
	const uint64_t begin_ns = em_clock_ns, begin = program_ns;

	while (em_clock_ns - begin_ns < RUN_NS) {
		if (g->q[0].injected - g->q[0].received < 100)
			em_inject(g, 50);
		host_run(g->h);
		if (em_interrupt(g) || em_rx_task(g) || em_tx_task(g))
			continue;
		program_ns += EM_PAUSE_NS;
		if (!em_rx_callout(g))
			em_clock_ns += EM_PAUSE_NS;
		(void)em_poll(g);
	}
	return ((program_ns - begin) * 100 / RUN_NS);
}

static struct em_guest *
create_flood(u_int csb, u_int poll, u_int share)
{
	struct em_guest *g = create();

	g->frame_ns = FRAME_NS;
	g->runnable = busy;
	ATF_REQUIRE_EQ(0, em_set(g, "csb", csb));
	ATF_REQUIRE_EQ(0, em_set(g, "poll", poll));
	ATF_REQUIRE_EQ(0, em_set(g, "rx_share", share));
	return (g);
}

/* Receive until a long pause begins, with no task queued. */
static void
pause_begins(struct em_guest *g)
{
	g->frame_ns = 10 * FRAME_NS;
	while (g->rx_callout->func == NULL) {
		em_inject(g, 50);
		host_run(g->h);
		(void)em_interrupt(g);
		(void)em_rx_task(g);
	}
	while (em_interrupt(g) || em_tx_task(g) || em_rx_task(g))
		;
}

static void
end_flood(struct em_guest *g)
{
	g->runnable = NULL;
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

TEST(share, "While other threads want the processor, reception has its share")
{
	static const u_int shares[] = { 5, 20, 50, 80, 100 };
	struct em_guest *g;
	unsigned int part;
	size_t i, mode;

	for (mode = 0; mode < 3; mode++)
		for (i = 0; i < nitems(shares); i++) {
			g = create_flood(mode != 0, mode == 2 ? 4000 : 0,
			    shares[i]);
			part = flood(g);
			printf("share %u: %u %% for others\n", shares[i], part);
			ATF_CHECK(part + 5 >= 100 - shares[i]);
			if (mode != 2)
				ATF_CHECK(part <= 100 - shares[i] + 10);
			ATF_CHECK_EQ(shares[i] != 100,
			    em_get(g, "rx_pauses") != 0);
			end_flood(g);
		}
}

TEST(share_idle, "A pause ends when the processor is idle")
{
	struct em_guest *g = create_flood(1, 0, 5);

	pause_begins(g);
	ATF_CHECK_EQ(1, em_get(g, "rx_pauses"));
	/* The programs use the processor. */
	ATF_CHECK(em_rx_callout(g));
	ATF_CHECK(!em_rx_task(g));
	ATF_CHECK(g->rx_callout->func != NULL);
	curthread->idle = true;
	ATF_CHECK(em_rx_callout(g));
	curthread->idle = false;
	ATF_CHECK(g->rx_callout->func == NULL);
	ATF_CHECK(em_rx_task(g));
	end_flood(g);
}

TEST(share_quiet, "While nobody else wants the processor, nothing pauses")
{
	struct em_guest *g = create_flood(1, 0, 5);

	g->runnable = NULL;
	(void)flood(g);
	ATF_CHECK_EQ(0, em_get(g, "rx_pauses"));
	end_flood(g);
}

TEST(share_between, "What passes between two turns is not reception's time")
{
	struct em_guest *g = create_flood(1, 0, 5);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		em_inject(g, 1);
		em_settle(g);
		em_clock_ns += 1000000000;
	}
	ATF_CHECK_EQ(3, g->q[0].received);
	ATF_CHECK_EQ(0, em_get(g, "rx_pauses"));
	end_flood(g);
}

TEST(share_held, "During a pause, packets that are held back are posted when "
    "the report of those before them has come")
{
	struct em_guest *g = create_flood(0, 0, 5);

	ATF_REQUIRE_EQ(0, em_set(g, "sc", 1));
	pause_begins(g);
	em_send(g, 3);
	host_run(g->h);
	ATF_CHECK_EQ(1, host_sent(g->h));
	ATF_CHECK(!em_interrupt(g));
	ATF_CHECK(em_rx_callout(g));
	ATF_CHECK(g->rx_callout->func != NULL);
	host_run(g->h);
	ATF_CHECK_EQ(3, host_sent(g->h));
	end_flood(g);
}

TEST(share_stop, "A stop ends a pause, and a start receives")
{
	struct em_guest *g = create_flood(1, 0, 5);

	pause_begins(g);
	em_down(g);
	ATF_CHECK(g->rx_callout->func == NULL);
	em_up(g);
	em_inject(g, 5);
	end_flood(g);
}

TEST(share_values, "rx_share is 1 to 100")
{
	struct em_guest *g = create();

	ATF_CHECK_EQ(20, em_get(g, "rx_share"));
	ATF_CHECK_EQ(EINVAL, em_set(g, "rx_share", 0));
	ATF_CHECK_EQ(EINVAL, em_set(g, "rx_share", 101));
	ATF_CHECK_EQ(20, em_get(g, "rx_share"));
	em_destroy(g);
	g = em_create(&(struct em_config){ .kind = E82545_KIND_EM,
	    .intr = IFLIB_INTR_MSI, .no_csb = true });
	ATF_CHECK_EQ(100, em_get(g, "rx_share"));
	em_destroy(g);
}

TEST_PROGRAM
