/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A switch changes only while no sender is in it, and senders wait for the
 * change: without threads, because what the other one does is done where this
 * one waits, in sched_yield(2) and at the gate.
 */

#include <sys/param.h>

#include <pthread.h>
#include <sched.h>

#include <atf-c.h>

#include "test.h"
#include "vale_impl.h"

static struct vale_port *sending, *entering;
static unsigned int	yields, waits;

int	__real_pthread_mutex_lock(pthread_mutex_t *mtx);
int	__wrap_pthread_mutex_lock(pthread_mutex_t *mtx);
int	__real_sched_yield(void);
int	__wrap_sched_yield(void);

/* The sender leaves.  Sanitizers call this, too. */
int
__wrap_sched_yield(void)
{
	if (sending == NULL)
		return (__real_sched_yield());
	ATF_CHECK_EQ(1, atomic_load_32(&sending->vp_switch->vs_changing));
	yields++;
	vale_switch_leave(sending);
	sending = NULL;
	return (0);
}

/* The change ends. */
int
__wrap_pthread_mutex_lock(pthread_mutex_t *mtx)
{
	if (entering != NULL && mtx == &entering->vp_switch->vs_gate) {
		ATF_CHECK_EQ(0, atomic_load_32(&entering->vp_tx.vt_busy));
		waits++;
		atomic_store_32(&entering->vp_switch->vs_changing, 0);
		entering = NULL;
	}
	return (__real_pthread_mutex_lock(mtx));
}

static struct vale_port *
port_open(const char *name)
{
	struct vale_desc *d = vale_open(name, NULL);

	ATF_REQUIRE(d != NULL);
	return (vale_desc_port(d));
}

TEST(change_waits, "A change waits for each port that sends")
{
	struct vale_port *port[3];
	unsigned int i;

	port[0] = port_open("valegate:a");
	port[1] = port_open("valegate:b");
	port[2] = port_open("valegate:c");
	for (i = 0; i < nitems(port); i++) {
		vale_switch_enter(sending = port[i]);
		yields = 0;
		ATF_REQUIRE_EQ(0, vale_set_header((void *)port[0], 10));
		ATF_CHECK_EQ_MSG(1, yields, "port %u", i);
	}
	/* Nobody sends. */
	ATF_REQUIRE_EQ(0, vale_set_header((void *)port[0], 0));
	for (i = 0; i < nitems(port); i++)
		vale_close((void *)port[i]);
}

TEST(sender_waits, "A sender waits at the gate while a change is under way, "
    "and is not sending meanwhile")
{
	struct vale_port *port = port_open("valegate:a");

	atomic_store_32(&port->vp_switch->vs_changing, 1);
	vale_switch_enter(entering = port);
	ATF_CHECK_EQ(1, waits);
	ATF_CHECK_EQ(1, atomic_load_32(&port->vp_tx.vt_busy));
	ATF_CHECK_EQ(0, pthread_mutex_trylock(&port->vp_switch->vs_gate));
	pthread_mutex_unlock(&port->vp_switch->vs_gate);
	vale_switch_leave(port);
	vale_close((void *)port);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, change_waits);
	ATF_TP_ADD_TC(tp, sender_waits);
	return (atf_no_error());
}
