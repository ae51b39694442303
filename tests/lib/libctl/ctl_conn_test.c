/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Connections of the control socket: who waits for whom.  All calls are this
 * thread's.
 */

#include <sys/param.h>

#include <atf-c.h>

#include "ctl.c"
#include "wrap.h"

#include "test.h"

static unsigned int	waits;
static void		(*on_wait)(void);
static struct ctl_conn *const conns = ctl_conns;
static struct ctl_conn *const last = &ctl_conns[CTL_MAX - 1];

static bool
locked(void)
{
	if (pthread_mutex_trylock(&conns_lock) == EBUSY)
		return (true);
	pthread_mutex_unlock(&conns_lock);
	return (false);
}

static bool	late;			/* the time is over */

WRAP(int, pthread_cond_clockwait, pthread_cond_t *cond, pthread_mutex_t *m,
    clockid_t clock, const struct timespec *until)
{
	struct timespec now;

	clock_gettime(clock, &now);
	ATF_CHECK(clock == CLOCK_MONOTONIC &&
	    until->tv_sec <= now.tv_sec + CTL_SETTLE_S);
	ATF_CHECK(cond == &conns_left && m == &conns_lock);
	ATF_CHECK(locked());
	ATF_REQUIRE_MSG(++waits < 1000, "waits for ever");
	if (late)
		return (ETIMEDOUT);
	on_wait();
	return (0);
}

/*
 * Waiting for connections whose clients have left.
 */

static int	ends[2][2];	/* of clients that are there, and have left */

static void
ends_open(void)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0,
		    ends[i]));
	close(ends[1][1]);
}

/* A connection is served. */
static void
serve(struct ctl_conn *cc, bool left, uint64_t serial)
{
	*cc = (struct ctl_conn){ .cc_used = 1, .cc_open = true,
	    .cc_fd = ends[left][0], .cc_serial = serial };
}

static struct ctl_conn *leaving[4];

/* The first of them closes; one place is taken again. */
static void
leave_one(void)
{
	unsigned int i;

	/* Some wake up for others. */
	if (waits % 2 == 1)
		return;
	for (i = 0; i < nitems(leaving); i++)
		if (leaving[i] != NULL) {
			if (leaving[i] == &conns[5])
				serve(leaving[i], true, 1000);
			else
				leaving[i]->cc_open = false;
			leaving[i] = NULL;
			return;
		}
	atf_tc_fail("waits for nobody");
}

TEST(settles, "Who asks waits for all connections whose clients have left, and "
    "for no other")
{
	ends_open();
	on_wait = leave_one;
	ctl_settle(NULL);
	serve(&conns[0], false, 1);
	serve(&conns[1], true, 2);
	conns[1].cc_open = false;
	ctl_settle(NULL);
	ATF_CHECK_EQ(0, waits);
	serve(leaving[0] = &conns[0], true, 2);
	ctl_settle(NULL);
	ATF_CHECK_EQ(2, waits);
	waits = 0;
	serve(leaving[0] = &conns[0], true, 3);
	serve(leaving[1] = &conns[5], true, 4);
	serve(&conns[6], false, 5);
	serve(leaving[2] = last, true, 6);
	ctl_settle(&conns[6]);
	ATF_CHECK_EQ(6, waits);
	ATF_CHECK(!locked());
	/* The one that came since is another: now it is waited for, */
	leaving[0] = &conns[5];
	conns[5].cc_serial = 999;
	ctl_settle(NULL);
	ATF_CHECK_EQ(8, waits);
	/* and not by itself, nor by who has left. */
	serve(&conns[5], true, 7);
	ctl_settle(&conns[5]);
	serve(last, true, 8);
	ctl_settle(&conns[5]);
	ATF_CHECK_EQ(8, waits);
	/* One that has left waits for nobody, one that is there does. */
	serve(&conns[5], false, 7);
	leaving[0] = last;
	ctl_settle(&conns[5]);
	ATF_CHECK_EQ(10, waits);
}

TEST(settles_late, "A connection that does not end is waited for once, and not "
    "for long")
{
	ends_open();
	serve(&conns[0], true, 1);
	serve(&conns[1], true, 2);
	late = true;
	ctl_settle(NULL);
	ATF_CHECK_EQ(1, waits);
	ctl_settle(NULL);
	ATF_CHECK_EQ(1, waits);
	/* Another one is. */
	late = false;
	on_wait = leave_one;
	serve(leaving[0] = &conns[2], true, 3);
	ctl_settle(NULL);
	ATF_CHECK_EQ(2, waits);
	/* So is one that has the place of one that was waited for. */
	conn_open(leaving[0] = &conns[0], true);
	ctl_settle(NULL);
	ATF_CHECK_EQ(4, waits);
	ATF_CHECK(!locked());
}

TEST_PROGRAM
