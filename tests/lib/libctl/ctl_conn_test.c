/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Places for connections of the control socket: who gets one, what it begins
 * with, and who waits for whom.  All calls are this thread's.
 */

#include <sys/param.h>

#include <atf-c.h>

#include "ctl.c"
#include "wrap.h"

#include "test.h"

#define	FD	1000		/* no descriptor: calls are taken below */

/*
 * Calls, and how often they were made.
 */

static unsigned int	starts, waits;
static struct ctl_who	who;
static void		(*on_wait)(void);
static struct ctl_conn *const conns = ctl_conns;
static struct ctl_conn *const last = &ctl_conns[CTL_MAX - 1];

WRAP(int, ctl_who, int fd, struct ctl_who *whop)
{
	ATF_CHECK(fd == FD);
	*whop = who;
	return (0);
}

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
 * Setting up a connection.
 */

static void
check_attr(struct ctl_conn *cc, const pthread_attr_t *attr)
{
	size_t size;
	int state;

	ATF_REQUIRE(attr != NULL);
	ATF_REQUIRE_EQ(0, pthread_attr_getdetachstate(attr, &state));
	ATF_CHECK_EQ(PTHREAD_CREATE_DETACHED, state);
	ATF_REQUIRE_EQ(0, pthread_attr_getstacksize(attr, &size));
	ATF_CHECK_EQ(256 * 1024, size);
	ATF_CHECK_EQ(1, cc->cc_used);
	ATF_CHECK(cc->cc_open);
	ATF_CHECK(!locked());
}

static void *(*created_start)(void *);
static struct ctl_conn *created;

WRAP(int, pthread_create, pthread_t *thread __unused,
    const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	created = arg;
	created_start = start;
	starts++;
	check_attr(arg, attr);
	return (0);
}

/* Slots are taken by connections of a user. */
static void
take(unsigned int from, unsigned int n, uid_t uid, bool admin)
{
	while (n-- > 0)
		conns[from++] = (struct ctl_conn){ .cc_used = 1, .cc_fd = -1,
		    .cc_who = { uid, admin } };
}

static void
is_user(uid_t uid)
{
	who = (struct ctl_who){ uid, false };
}

static void
is_admin(void)
{
	who = (struct ctl_who){ 0, true };
}

TEST(sets, "What a connection begins with does not depend on who had its place")
{
	struct ctl_conn *cc = last - CTL_ADMIN;
	const int serial = 1;

	memset(conns, 0xff, sizeof(ctl_conns));
	take(0, CTL_MAX, 1, true);
	memset(cc, 0xff, sizeof(*cc));
	cc->cc_used = 0;
	cc->cc_grant.gr_npassed = 0;
	is_user(7);
	ATF_REQUIRE_EQ(0, ctl_accept(FD, false));
	ATF_CHECK_EQ(1, starts);
	ATF_CHECK(created == cc && created_start == ctl_conn_thread);
	ATF_CHECK_EQ(7, cc->cc_who.cw_uid);
	ATF_CHECK(!cc->cc_who.cw_admin);
	ATF_CHECK(!cc->cc_reserved);
	ATF_CHECK(cc->cc_body == cc->cc_wire + 1);
	ATF_CHECK_EQ(FD, cc->cc_fd);
	ATF_CHECK(!vale_grant_any(&cc->cc_grant));
	ATF_CHECK_EQ(-1, cc->cc_grant.gr_window);
	ATF_CHECK_EQ(0, cc->cc_grant.gr_nfds);
	ATF_CHECK_EQ(serial, cc->cc_serial);
	/* The next one is another, in whatever place. */
	free(cc->cc_wire);
	take(cc - conns, 1, 7, false);
	cc[1].cc_used = 0;
	is_admin();
	ATF_REQUIRE_EQ(0, ctl_accept(FD, true));
	ATF_CHECK(created == cc + 1);
	ATF_CHECK(cc[1].cc_reserved && cc[1].cc_who.cw_admin);
	ATF_CHECK_EQ(serial + 1, cc[1].cc_serial);
}

TEST(places, "The last places are for administrators; a user has half of the "
    "others, whatever administrators have")
{
	const unsigned int users = CTL_MAX - CTL_ADMIN;

	ATF_CHECK_EQ(156, CTL_USER_MAX);
	is_user(7);
	ATF_CHECK_EQ(EMFILE, ctl_accept(FD, true));
	ATF_CHECK(conn_free(&who) == &conns[users - 1]);
	take(0, CTL_USER_MAX - 1, 7, false);
	ATF_CHECK(conn_free(&who) != NULL);
	take(CTL_USER_MAX - 1, 1, 7, false);
	ATF_CHECK(conn_free(&who) == NULL);
	ATF_CHECK_EQ(EAGAIN, ctl_accept(FD, false));
	is_user(8);
	ATF_CHECK(conn_free(&who) != NULL);
	/* An administrator with that uid is none of its connections. */
	take(CTL_USER_MAX - 1, 1, 7, true);
	is_user(7);
	ATF_CHECK(conn_free(&who) != NULL);
	/* The places of the others: the last, and none. */
	take(0, users - 1, 1, false);
	is_user(8);
	ATF_CHECK(conn_free(&who) == &conns[users - 1]);
	take(users - 1, 1, 1, false);
	ATF_CHECK(conn_free(&who) == NULL);
	is_admin();
	ATF_CHECK(conn_free(&who) == last);
	take(users, CTL_ADMIN - 1, 0, true);
	ATF_CHECK(conn_free(&who) == last);
	take(CTL_MAX - 1, 1, 0, true);
	ATF_CHECK(conn_free(&who) == NULL);
	conns[0].cc_used = 0;
	ATF_CHECK(conn_free(&who) == &conns[0]);
	take(0, CTL_USER_MAX, 0, false);
	conns[CTL_MAX - 2].cc_used = 0;
	ATF_CHECK(conn_free(&who) == &conns[CTL_MAX - 2]);
	/* One has as many as there are. */
	take(0, CTL_MAX, 0, true);
	last->cc_used = 0;
	ATF_CHECK(conn_free(&who) == last);
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

/* Who waited has a place. */
static void
leave_place(void)
{
	conns[3].cc_open = false;
	conns[3].cc_used = 0;
}

TEST(settles_place, "A connection that finds no place waits for those whose "
    "clients have left, and looks again")
{
	ends_open();
	take(0, CTL_MAX, 1, true);
	serve(&conns[3], true, 9);
	on_wait = leave_place;
	is_admin();
	ATF_CHECK_EQ(0, ctl_accept(FD, false));
	ATF_CHECK_EQ(1, waits);
	ATF_CHECK(created == &conns[3]);
	/* If there is one, it does not. */
	serve(&conns[4], true, 10);
	free(conns[3].cc_wire);
	conns[3].cc_used = 0;
	ATF_CHECK_EQ(0, ctl_accept(FD, false));
	ATF_CHECK_EQ(1, waits);
}

TEST_PROGRAM
