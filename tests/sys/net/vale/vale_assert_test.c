/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The assertions of the user-space switch: each case breaks a rule of
 * the switch in a child process, and the child must abort.
 */

#include <atf-c.h>

#include "aborts.h"
#include "test.h"
#include "vale_deliver.h"
#include "vale_pair.h"
#include "vale_switch.h"
#include "vale_view.h"

static struct vale_pair *
pair_open(const char *name)
{
	struct vale_desc *d = vale_open(name, NULL);

	ATF_REQUIRE(d != NULL);
	return (vale_desc_pair(d));
}

static void
space_unlocked(void *arg)
{
	struct vale_pair *pair = arg;

	(void)vale_rxq_space(&pair->pa_rx);
}

static void
count_unlocked(void *arg)
{
	vale_count(arg, VALE_C_RX_FRAME, 1);
}

static void
sleep_then_publish(void *arg)
{
	struct vale_pair *pair = arg;
	uint32_t lease;

	pthread_mutex_lock(&pair->pa_rx.rq_lock);
	lease = vale_rxq_lease(&pair->pa_rx, 1);
	pthread_mutex_unlock(&pair->pa_rx.rq_lock);
	(void)vale_rxq_publish(&pair->pa_rx, lease);
}

TEST(locks, "An assertion fires if a receive ring is read, counted for, or "
    "published to without its lock")
{
	struct vale_pair *pair = pair_open("valeassert:a");

	ATF_CHECK(aborts(space_unlocked, pair, "rq_lock not owned"));
	ATF_CHECK(aborts(count_unlocked, pair, "rq_lock not owned"));
	ATF_CHECK(aborts(sleep_then_publish, pair, "rq_lock not owned"));
	vale_close(&pair->pa_desc);
}

static void
lease_nothing(void *arg)
{
	struct vale_pair *pair = arg;

	pthread_mutex_lock(&pair->pa_rx.rq_lock);
	(void)vale_rxq_lease(&pair->pa_rx, 0);
}

static void
lease_too_much(void *arg)
{
	struct vale_pair *pair = arg;

	pthread_mutex_lock(&pair->pa_rx.rq_lock);
	(void)vale_rxq_lease(&pair->pa_rx, vale_rxq_space(&pair->pa_rx) + 1);
}

static void
end_twice(void *arg)
{
	struct vale_pair *pair = arg;
	uint32_t lease;

	pthread_mutex_lock(&pair->pa_rx.rq_lock);
	(void)vale_rxq_lease(&pair->pa_rx, 1);
	lease = vale_rxq_lease(&pair->pa_rx, 2);
	(void)vale_rxq_publish(&pair->pa_rx, lease);
	(void)vale_rxq_publish(&pair->pa_rx, lease);
}

static void
end_none(void *arg)
{
	struct vale_pair *pair = arg;

	pthread_mutex_lock(&pair->pa_rx.rq_lock);
	(void)vale_rxq_publish(&pair->pa_rx, pair->pa_rx.rq_next);
}

static void
tail_ahead(void *arg)
{
	struct vale_pair *pair = arg;

	pthread_mutex_lock(&pair->pa_rx.rq_lock);
	pair->pa_rx.rq_tail = pair->pa_rx.rq_next + 1;
	(void)vale_rxq_space(&pair->pa_rx);
}

TEST(leases, "An assertion fires for a lease of no slots or too many, one "
    "ended twice or never made, and wrong indexes")
{
	struct vale_pair *pair = pair_open("valeassert:a");

	ATF_CHECK(aborts(lease_nothing, pair, "nslots >= 1"));
	ATF_CHECK(aborts(lease_too_much, pair, "nslots <= vale_rxq_space"));
	ATF_CHECK(aborts(end_twice, pair, "le_done"));
	ATF_CHECK(aborts(end_none, pair, "vale_slot_sub(lease, tail"));
	ATF_CHECK(aborts(tail_ahead, pair, "vale_slot_sub(tail, cur"));
	vale_close(&pair->pa_desc);
}

static void
enter_twice(void *arg)
{
	struct vale_pair *pair = arg;
	const uintptr_t *view = &pair->pa_port->vp_switch->vs_view;

	vale_view_enter(&pair->pa_tx, view);
	vale_view_enter(&pair->pa_tx, view);
}

static void
leave_only(void *arg)
{
	struct vale_pair *pair = arg;

	vale_view_leave(&pair->pa_tx);
}

static void
deliver_outside(void *arg)
{
	struct vale_pair *pair = arg;
	const unsigned int other = !pair->pa_port->vp_index;

	vale_deliver(pair, pair->pa_port->vp_switch->vs_port[other],
	    other);
}

TEST(senders, "An assertion fires if a sender enters its switch twice, or "
    "leaves or delivers without having entered")
{
	struct vale_pair *a = pair_open("valeassert:a");
	struct vale_pair *b = pair_open("valeassert:b");

	ATF_CHECK(aborts(enter_twice, a, "!vale_view_entered(vt)"));
	ATF_CHECK(aborts(leave_only, a, "vale_view_entered(vt)"));
	ATF_CHECK(aborts(deliver_outside, a, "vale_view_entered("));
	vale_close(&b->pa_desc);
	vale_close(&a->pa_desc);
}

TEST_PROGRAM
