/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * em_pv(4) on the model: whatever changes at any time, in random orders, and in
 * threads.
 */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <atf-c.h>

#include <net/paravirt.h>

#include "em_pv_modes.h"
#include "test.h"

/*
 * Anything at any time.
 */

static uint32_t seed;
static bool in_knob;

/* What other processors may do while this one has no lock of em_pv's. */
static void
random_other(struct em_guest *g)
{
	switch (test_below(&seed, 8)) {
	case 0:
		em_inject(g, 1);
		break;
	case 1:
		host_run(g->h);
		break;
	case 2:
		if (g->running)
			IFDI_INTR_ENABLE(&g->ctx);
		break;
	case 3:
		if (in_knob && g->running)
			(void)(em_tx_task(g) || em_rx_task(g));
		break;
	case 4:
		if (in_knob && g->running)
			(void)em_interrupt(g);
		break;
	}
}

/* With the lock, only the adapter does something. */
static void
random_adapter(struct em_guest *g,
    uint32_t reg __attribute__((__unused__)))
{
	if (test_chance(&seed, 1, 4))
		host_run(g->h);
}

static void
random_knob(struct em_guest *g)
{
	const u_int on = test_below(&seed, 2);

	in_knob = true;
	switch (test_below(&seed, 5)) {
	case 0:
		ATF_REQUIRE_EQ(0, em_set(g, "sc", on));
		break;
	case 1:
		ATF_REQUIRE_EQ(on && g->config.no_csb ? EOPNOTSUPP : 0,
		    em_set(g, "csb", on));
		break;
	case 2:
		ATF_REQUIRE_EQ(0, em_set(g, "poll", 1000 * on));
		break;
	case 3:
		ATF_REQUIRE_EQ(0, em_set(g, "rx_share", on ? 1 : 100));
		break;
	case 4:
		/* The clock stands still, so no interval delays anything. */
		ATF_REQUIRE_EQ(0, em_set(g, "itr", 0));
		break;
	}
	in_knob = false;
}

/* The processor is wanted by others now and then. */
static bool
random_runnable(struct em_guest *g __attribute__((__unused__)))
{
	return (test_chance(&seed, 1, 50));
}

static void
random_hooks(struct em_guest *g, bool on)
{
	g->lock_hook = on ? random_other : NULL;
	g->reg_hook = on ? random_adapter : NULL;
	g->runnable = on ? random_runnable : NULL;
	g->frame_ns = 20000;
}

/* Stop, change what only a start looks at, and start. */
static void
random_restart(struct em_guest *g)
{
	int *const caps = &g->ctx.ifnet.capenable;
	const unsigned int bit = test_below(&seed, 8);

	em_down(g);
	if (bit < 6)
		*caps ^= 1 << bit;
	g->netmap = (*caps & IFCAP_NETMAP) != 0;
	if (g->netmap && em_is_msix(g))
		em_rx_queue(g, 0);
	if (bit == 6)
		g->len = EM_LEN + test_below(&seed, EM_LEN_MAX - EM_LEN);
	if (bit == 7) {
		/* What comes meanwhile is lost. */
		em_inject(g, test_below(&seed, 5));
		host_run(g->h);
	}
	em_up(g);
}

/* What a program with netmap does that was told; false if that is nothing. */
static bool
random_program(struct em_guest *g)
{
	struct em_queue *q = &g->q[0];
	const unsigned int before = q->received + g->others + q->posted;

	if (!g->netmap)
		return (false);
	if (q->rx_notified)
		em_netmap_receive(g, test_below(&seed, 50) + 1);
	if (q->queued > 0 && q->tx_notified) {
		q->tx_notified = false;
		em_netmap_send(g, 0);
	}
	return (q->received + g->others + q->posted != before);
}

/* Send and receive one more frame, so that all of the others have passed. */
static void
random_end(struct em_guest *g)
{
	unsigned int i;

	random_hooks(g, false);
	do
		em_settle(g);
	while (random_program(g));
	for (i = 0; i < (unsigned int)g->ctx.scctx.isc_ntxqsets; i++) {
		if (g->netmap && i == 0)
			em_netmap_send(g, 1);
		else if (!g->netmap)
			em_send_q(g, i, 1);
		if (em_is_msix(g) && !g->netmap)
			em_rx_queue(g, i);
		em_inject(g, 1);
		do
			em_settle(g);
		while (random_program(g));
	}
	em_check(g);
}

/* What is rare, and may lose frames, or must find nothing to be done. */
static struct em_guest *
random_event(struct em_guest *g)
{
	const struct em_config c = g->config;

	switch (test_below(&seed, 5)) {
	case 0:
		em_ipforwarding = test_below(&seed, 2);
		em_ip6_forwarding = test_below(&seed, 2);
		em_admin(g);
		break;
	case 1:
		em_inject_partial(g, 200 + test_below(&seed, 9000),
		    1000 * test_below(&seed, 2));
		break;
	case 2:
		random_end(g);
		e82545_link(g->h->dev, false);
		em_settle(g);
		em_admin(g);
		e82545_link(g->h->dev, true);
		break;
	case 3:
		random_restart(g);
		break;
	case 4:
		em_destroy(g);
		g = em_create(&c);
		em_up(g);
		random_hooks(g, true);
		break;
	}
	return (g);
}

static void
random_step(struct em_guest *g)
{
	switch (test_below(&seed, 10)) {
	case 0:
		random_knob(g);
		break;
	case 1:
	case 2:
		if (g->netmap)
			em_netmap_send(g, test_below(&seed, 40));
		else
			em_send_q(g, test_below(&seed,
			    g->ctx.scctx.isc_ntxqsets), test_below(&seed, 40));
		break;
	case 3:
	case 4:
		em_inject(g, test_below(&seed, 40));
		break;
	case 5:
		(void)em_interrupt(g);
		break;
	case 6:
		(void)em_tx_task(g);
		break;
	case 7:
		(void)em_rx_task(g);
		break;
	case 8:
		(void)(em_poll(g) || em_rx_callout(g) || random_program(g));
		break;
	case 9:
		host_run(g->h);
		break;
	}
}

static void
random_run(const struct em_config *c)
{
	struct em_guest *g = em_start(c, 0, 0, 0);
	unsigned int i, j;

	for (i = 0; i < 300; i++) {
		random_hooks(g, true);
		for (j = 0; j < 20; j++)
			random_step(g);
		if (i % 4 == 0)
			g = random_event(g);
		random_hooks(g, true);
		for (j = 0; j < 10; j++)
			random_step(g);
		random_end(g);
	}
	em_destroy(g);
}

TEST(random, "Whatever changes at any time under em_traffic, every frame comes "
    "once, in order (SEED)")
{
	const char *s = getenv("SEED");
	size_t a;

	seed = s != NULL ? strtoul(s, NULL, 0) : (uint32_t)time(NULL) | 1;
	fprintf(stderr, "SEED=%u\n", seed);
	for (a = 0; a < nitems(em_adapters); a++)
		random_run(&em_adapters[a]);
}

/*
 * Threads.
 */

#define	THREAD_FRAMES	3000

static uint32_t threads_stop;

static void *
tx_thread(void *arg)
{
	struct em_guest *g = arg;
	unsigned int n = 0;

	while (atomic_load_32(&threads_stop) == 0) {
		if (n < THREAD_FRAMES && g->q[0].queued < 100) {
			em_send(g, n % 4 + 1);
			n += n % 4 + 1;
		} else if (g->q[0].db_pending > 0)
			/* iflib_timer() */
			iflib_tx_intr_deferred(&g->ctx, 0);
		if (!em_tx_task(g))
			sched_yield();
	}
	return (NULL);
}

static void *
repeat(bool (*step)(struct em_guest *), void *arg)
{
	while (atomic_load_32(&threads_stop) == 0)
		if (!step(arg))
			sched_yield();
	return (NULL);
}

static void *
rx_thread(void *arg)
{
	return (repeat(em_rx_task, arg));
}

static void *
intr_thread(void *arg)
{
	return (repeat(em_interrupt, arg));
}

static void
threads(const struct em_config *c, u_int sc, u_int csb, bool knobs)
{
	void *(*const mains[])(void *) = { tx_thread, rx_thread, intr_thread };
	struct em_guest *g = em_start(c, sc, csb, 0);
	pthread_t t[nitems(mains)];
	size_t i;

	atomic_store_32(&threads_stop, 0);
	host_start_threads(g->h);
	for (i = 0; i < nitems(t); i++)
		ATF_REQUIRE_EQ(0, pthread_create(&t[i], NULL, mains[i], g));
	for (i = 0; i < THREAD_FRAMES; i++) {
		em_inject(g, 1);
		if (i % 16 == 0)
			sched_yield();
		if (knobs && i % 50 == 0) {
			ATF_REQUIRE_EQ(0, em_set(g, "sc", i / 50 % 2));
			ATF_REQUIRE_EQ(0, em_set(g, "csb", i / 100 % 2));
		}
	}
	/* Without end, if something is lost: the clock stands still. */
	while (atomic_load_32(&g->q[0].received) < THREAD_FRAMES ||
	    host_sent(g->h) < THREAD_FRAMES)
		sched_yield();
	atomic_store_32(&threads_stop, 1);
	for (i = 0; i < nitems(t); i++)
		pthread_join(t[i], NULL);
	host_stop_threads(g->h);
	em_settle(g);
	em_check(g);
	em_destroy(g);
}

TEST(threads, "With all parts in threads of their own, nothing is lost")
{
	size_t a;

	for (a = 0; a < nitems(em_adapters); a++) {
		threads(&em_adapters[a], 0, 0, false);
		threads(&em_adapters[a], 1, 0, false);
		if (em_adapters[a].no_csb)
			continue;
		threads(&em_adapters[a], 0, 1, false);
		threads(&em_adapters[a], 0, 0, true);
	}
}

TEST_PROGRAM
