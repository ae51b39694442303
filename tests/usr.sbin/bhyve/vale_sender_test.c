/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * When a ring is synced, by whom, and with how many frames.  The clock is the
 * test's: it moves when the test says so and by took_ns in each sync, and the
 * thread's sleep ends when it has reached the time.
 */

#include <sys/types.h>
#include <sys/param.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atf-c.h>

#include "test.h"
#include "vale_sender.h"
#include "wait_until.h"

#define	TOOK_NS		1000
#define	WINDOW_NS	(8 * TOOK_NS)
#define	BATCH		64

static struct vale_sender sender;
static pthread_t self;
static _Atomic uint64_t now_ns;
static uint64_t	took_ns;		/* by each sync */
static unsigned int nsyncs, nothers;	/* nothers: of them, the thread's */
static unsigned int posted, synced;	/* frames */
static clockid_t cond_clock;
static int	cond_error;

/* FreeBSD's malloc(3) asks for the time, too, before there are threads. */
int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	const uint64_t ns = clock == CLOCK_MONOTONIC ? now_ns : 0;

	ts->tv_sec = (time_t)(ns / 1000000000);
	ts->tv_nsec = (long)(ns % 1000000000);
	return (0);
}

int
pthread_condattr_setclock(pthread_condattr_t *attr __unused, clockid_t clock)
{
	cond_clock = clock;
	return (cond_error);
}

/*
 * The thread sleeps until the last sync is two windows ago.  Then it looks at
 * the clock again.
 */
int
pthread_cond_timedwait(pthread_cond_t *cond __unused, pthread_mutex_t *m,
    const struct timespec *ts)
{
	ATF_REQUIRE(ts->tv_nsec >= 0 && ts->tv_nsec < 1000000000);
	ATF_REQUIRE_EQ(sender.vsn_end_ns + 2 * 8 * sender.vsn_cost_ns,
	    (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec);
	pthread_mutex_unlock(m);
	sched_yield();
	pthread_mutex_lock(m);
	return (ETIMEDOUT);
}

static void
advance(uint64_t ns)
{
	now_ns += ns;
}

static void
sync_ring(void *arg)
{
	ATF_REQUIRE_EQ(&sender, arg);
	nsyncs++;
	nothers += !pthread_equal(self, pthread_self());
	synced = posted;
	advance(took_ns);
}

/* Post a frame. */
static void
post(bool now)
{
	vale_sender_lock(&sender);
	posted++;
	vale_sender_post(&sender, now);
	vale_sender_unlock(&sender);
}

static void
check_counts(unsigned int frames, unsigned int syncs, unsigned int others)
{
	vale_sender_lock(&sender);
	ATF_CHECK_EQ_MSG(frames, synced, "%u of %u frames", synced, posted);
	ATF_CHECK_EQ_MSG(syncs, nsyncs, "%u syncs", nsyncs);
	ATF_CHECK_EQ_MSG(others, nothers, "%u by the thread", nothers);
	vale_sender_unlock(&sender);
}

/* Begin, with a cost of TOOK_NS, as after many frames. */
static void
up(void)
{
	unsigned int i;

	self = pthread_self();
	now_ns = 5999900000;		/* a second ends soon */
	took_ns = TOOK_NS;
	nsyncs = nothers = posted = synced = 0;
	cond_error = 0;
	cond_clock = CLOCK_REALTIME;
	ATF_REQUIRE_EQ(0, vale_sender_init(&sender, sync_ring, &sender));
	ATF_REQUIRE_EQ(CLOCK_MONOTONIC, cond_clock);
	for (i = 0; i < 100; i++) {
		post(false);
		advance(2 * WINDOW_NS);
	}
	check_counts(100, 100, 0);
	ATF_CHECK(sender.vsn_cost_ns > TOOK_NS - 10);
	ATF_CHECK(sender.vsn_cost_ns <= TOOK_NS);
	sender.vsn_cost_ns = TOOK_NS;
	nsyncs = posted = synced = 0;
}

/* Whether the thread watches, or has synced. */
static bool
is_armed(void)
{
	bool armed;

	vale_sender_lock(&sender);
	armed = sender.vsn_armed;
	vale_sender_unlock(&sender);
	return (armed);
}

static bool
all_synced(void)
{
	bool all;

	vale_sender_lock(&sender);
	all = synced == posted;
	vale_sender_unlock(&sender);
	return (all);
}

TEST(batch, "No more than a batch waits")
{
	unsigned int i;

	up();
	for (i = 0; i < 1 + 10 * BATCH; i++)
		post(false);
	check_counts(1 + 10 * BATCH, 11, 0);
	vale_sender_fini(&sender);
}

TEST(at_once, "One that must not wait is synced at once, with those that wait")
{
	up();
	post(false);
	post(false);
	post(true);
	check_counts(3, 2, 0);
	post(true);
	check_counts(4, 3, 0);
	vale_sender_fini(&sender);
}

TEST(last, "If no frame follows, the thread syncs when two windows are over; "
    "after two more it sleeps")
{
	up();
	post(false);
	post(false);
	ATF_CHECK(is_armed());
	advance(2 * WINDOW_NS - 1);
	check_counts(1, 1, 0);
	advance(1);
	wait_until(all_synced(), "not synced");
	check_counts(2, 2, 1);
	ATF_CHECK(is_armed());
	advance(2 * WINDOW_NS);
	wait_until(!is_armed(), "the thread watches");
	/* And again. */
	post(false);
	check_counts(3, 3, 1);
	post(false);
	advance(2 * WINDOW_NS);
	wait_until(all_synced(), "not synced");
	check_counts(4, 4, 2);
	vale_sender_fini(&sender);
}

TEST(ended, "The end syncs what is pending")
{
	up();
	post(false);
	post(false);
	vale_sender_fini(&sender);
	ATF_CHECK_EQ(2, synced);
	ATF_CHECK_EQ(2, nsyncs);
}

TEST(slow, "A sync that was interrupted counts as one of 100 us")
{
	up();
	took_ns = 1000000000;
	post(false);
	took_ns = TOOK_NS;
	ATF_CHECK_EQ((7 * TOOK_NS + 100000) / 8, sender.vsn_cost_ns);
	/* Nor does one of several frames count. */
	advance(2 * WINDOW_NS);
	post(false);
	took_ns = 10 * TOOK_NS;
	post(true);
	ATF_CHECK_EQ((7 * TOOK_NS + 100000) / 8, sender.vsn_cost_ns);
	vale_sender_fini(&sender);
}

TEST(no_clock, "An error of the system is returned")
{
	cond_error = EINVAL;
	ATF_CHECK_EQ(EINVAL, vale_sender_init(&sender, sync_ring, &sender));
}

TEST_PROGRAM
