/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Fair shares of a receive ring: senders have more frames than a slow receiver
 * takes.
 */

#include <sys/cdefs.h>
#include <sys/types.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "vale_test.h"
#include "wait_until.h"

#define	FAIR_MAX	10

/* The ports of the senders, and behind them the receiver's. */
static struct vale_desc *fair[FAIR_MAX + 1];
static uint64_t	fair_got[FAIR_MAX];	/* frames of each sender */
static uint32_t	fair_next[FAIR_MAX];	/* and the least number of the next */

static void
fair_open(unsigned int n)
{
	char name[VALE_NAME_SIZE];
	unsigned int i;

	for (i = 0; i <= n; i++) {
		snprintf(name, sizeof(name), "valet0:f%u", i);
		fair[i] = t_open(name, 512, 256);
	}
	/* The switch knows where the receiver is. */
	t_send(fair[n], 60, EVERYBODY, n, 0);
	memset(fair_got, 0, sizeof(fair_got));
	memset(fair_next, 0, sizeof(fair_next));
}

static void
fair_close(unsigned int n)
{
	unsigned int i;

	for (i = 0; i <= n; i++)
		vale_close(fair[i]);
}

/* Send `frames' frames as one batch. */
static void
fair_send(unsigned int i, unsigned int n, unsigned int frames, uint32_t *seq)
{
	while (frames-- > 0)
		t_queue(fair[i], 60, n, i, (*seq)++);
	ATF_REQUIRE_EQ(0, vale_txsync(fair[i]));
}

/* Take up to `max' frames and return their slots.  Frames stay in order. */
static unsigned int
fair_take(unsigned int n, unsigned int max)
{
	struct t_frame f;
	unsigned int taken = 0;

	ATF_REQUIRE_EQ(0, vale_rxsync(fair[n]));
	while (taken < max && t_take(fair[n], &f)) {
		ATF_REQUIRE(f.tf_src < n);
		ATF_REQUIRE(f.tf_seq >= fair_next[f.tf_src]);
		fair_next[f.tf_src] = f.tf_seq + 1;
		fair_got[f.tf_src]++;
		taken++;
	}
	ATF_REQUIRE_EQ(0, vale_rxsync(fair[n]));
	return (taken);
}

/* Each sender got from `min' to `max' percent of an equal share. */
static void
fair_check(unsigned int n, unsigned int min, unsigned int max)
{
	uint64_t copies = 0, total = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		total += fair_got[i];
		copies += t_count(fair[i], VALE_C_TX_COPY);
	}
	for (i = 0; i < n; i++) {
		printf("%ju ", (uintmax_t)fair_got[i]);
		ATF_CHECK_MSG(fair_got[i] * n * 100 >= total * min &&
		    fair_got[i] * n * 100 <= total * max,
		    "sender %u of %u: %ju of %ju frames", i, n,
		    (uintmax_t)fair_got[i], (uintmax_t)total);
	}
	printf("of %ju\n", (uintmax_t)total);
	ATF_CHECK_EQ(copies, t_count(fair[n], VALE_C_RX_FRAME) +
	    t_count(fair[n], VALE_C_RX_DROP_FULL));
}

/*
 * Senders take turns, always in the same order, sender `i' with `batch[i % 2]'
 * frames; after each turn the receiver takes `take' frames.
 */
static void
fair_turns(unsigned int n, const unsigned int batch[2], unsigned int take)
{
	uint32_t seq[FAIR_MAX] = { 0 };
	unsigned int i, taken;

	fair_open(n);
	for (taken = 0; taken < 20 * 256; ) {
		for (i = 0; i < n; i++)
			fair_send(i, n, batch[i % 2], &seq[i]);
		taken += fair_take(n, take);
	}
	fair_check(n, n == 2 ? 80 : 50, n == 2 ? 120 : 200);
	fair_close(n);
}

TEST(two, "Two senders to one slow receiver get 40 to 60 % each, though one is "
    "always first or has large batches")
{
	fair_turns(2, (const unsigned int [2]){ 2, 2 }, 1);
	fair_turns(2, (const unsigned int [2]){ 255, 1 }, 1);
	fair_turns(2, (const unsigned int [2]){ 1, 255 }, 1);
	fair_turns(2, (const unsigned int [2]){ 255, 255 }, 255);
	fair_turns(2, (const unsigned int [2]){ 64, 64 }, 20);
}

TEST(ten, "Of ten senders to one slow receiver none gets less than half of an "
    "equal share")
{
	fair_turns(10, (const unsigned int [2]){ 1, 1 }, 1);
	fair_turns(10, (const unsigned int [2]){ 255, 1 }, 1);
	fair_turns(10, (const unsigned int [2]){ 255, 255 }, 255);
	fair_turns(10, (const unsigned int [2]){ 32, 64 }, 50);
}

TEST(single, "A single sender fills the whole ring of a slow receiver, also "
    "after another one has stopped")
{
	uint32_t seq[2] = { 0 };
	unsigned int i;

	fair_open(2);
	for (i = 0; i < 1000; i++) {
		fair_send(0, 2, 10, &seq[0]);
		fair_take(2, 1);
	}
	fair_send(0, 2, 10, &seq[0]);
	ATF_CHECK_EQ(255, fair_take(2, 1000));
	for (i = 0; i < 1000; i++) {
		fair_send(0, 2, 10, &seq[0]);
		fair_send(1, 2, 10, &seq[1]);
		fair_take(2, 1);
	}
	/* Two rings' worth of slots later the other one no longer counts. */
	for (i = 0; i < 2 * 255; i++) {
		fair_send(0, 2, 10, &seq[0]);
		ATF_REQUIRE_EQ(1, fair_take(2, 1));
	}
	for (i = 0; i < 255; i++)
		fair_send(0, 2, 10, &seq[0]);
	ATF_CHECK_EQ(255, fair_take(2, 1000));
	fair_close(2);
}

/* A thread that sends as fast as it can, for `threads'. */
struct fair_sender {
	unsigned int	index, n, frames;
};
static bool	fair_stop;		/* atomic */
static uint64_t	fair_turn[FAIR_MAX];	/* syncs of each sender; atomic */

static void *
fair_main(void *arg)
{
	const struct fair_sender *fs = arg;
	uint32_t seq = 0;

	while (!__atomic_load_n(&fair_stop, __ATOMIC_ACQUIRE)) {
		fair_send(fs->index, fs->n, fs->frames, &seq);
		__atomic_fetch_add(&fair_turn[fs->index], 1, __ATOMIC_RELAXED);
		sched_yield();
	}
	return (NULL);
}

/* Each sender has sent since the last time, so each wanted slots. */
static void
fair_wait(unsigned int n)
{
	static uint64_t last[FAIR_MAX];
	unsigned int i;

	for (i = 0; i < n; i++) {
		wait_until(__atomic_load_n(&fair_turn[i], __ATOMIC_RELAXED) >
		    last[i] + 1, "sender %u does not send", i);
		last[i] = __atomic_load_n(&fair_turn[i], __ATOMIC_RELAXED);
	}
}

static void
fair_run(unsigned int n)
{
	struct fair_sender fs[FAIR_MAX];
	pthread_t tx[FAIR_MAX];
	unsigned int i, taken;

	fair_open(n);
	__atomic_store_n(&fair_stop, false, __ATOMIC_RELEASE);
	for (i = 0; i < n; i++) {
		/* Unequal batches. */
		fs[i] = (struct fair_sender){ i, n, i % 2 == 0 ? 200 : 20 };
		ATF_REQUIRE_EQ(0, pthread_create(&tx[i], NULL, fair_main,
		    &fs[i]));
	}
	for (taken = 0; taken < 30 * 255; ) {
		fair_wait(n);
		taken += fair_take(n, 51);
	}
	__atomic_store_n(&fair_stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < n; i++)
		ATF_REQUIRE_EQ(0, pthread_join(tx[i], NULL));
	fair_check(n, n == 2 ? 80 : 50, n == 2 ? 120 : 200);
	fair_close(n);
}

TEST_WITH(threads, "timeout", "600", "Senders with a thread each, to one slow "
    "receiver: 40 to 60 % of two, half of an equal share of ten")
{
	fair_run(2);
	fair_run(10);
}

TEST_PROGRAM
