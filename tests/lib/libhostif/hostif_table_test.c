/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The table of attached interfaces, with interfaces of the test's own.
 */

#include <sys/param.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_impl.h"
#include "test.h"
#include "wrap.h"

static unsigned int started, stopped, renewed;
static bool withdraws;			/* memory of the next is gone at once */
static struct hostif *last;
static bool fails;			/* hostif_start() */
static bool locked;

WRAP(int, pthread_mutex_lock, pthread_mutex_t *mutex __unused)
{
	ATF_REQUIRE(!locked);
	locked = true;
	return (0);
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *mutex __unused)
{
	ATF_REQUIRE(locked);
	locked = false;
	return (0);
}

struct hostif *
hostif_start(const char *port_name, const struct hostif_fds *fds __unused,
    char why[HOSTIF_WHY])
{
	struct hostif *hi;

	ATF_CHECK(!locked);
	if (fails) {
		hostif_fail(why, EIO, "it fails");
		return (NULL);
	}
	hi = calloc(1, sizeof(*hi));
	ATF_REQUIRE(hi != NULL);
	snprintf(hi->link.hl_name, sizeof(hi->link.hl_name), "%s", port_name);
	started++;
	last = hi;
	return (hi);
}

/* Another interface takes its place. */
int
hostif_renew(struct hostif *hi, const struct hostif_fds *fds __unused,
    char why[HOSTIF_WHY])
{
	ATF_CHECK(!locked);
	renewed++;
	hi->gone = false;
	if (!fails)
		return (0);
	free(hi);
	return (hostif_fail(why, EIO, "it fails"));
}

void
hostif_release(struct hostif *hi)
{
	ATF_CHECK(!locked);
	hi->gone = hi->released = true;
}

bool
hostif_gone(const struct hostif *hi)
{
	ATF_CHECK(locked);
	return (hi->gone);
}

bool
hostif_is_withdrawn(const struct hostif *hi __unused)
{
	ATF_CHECK(locked);
	return (withdraws);
}

void
hostif_stop(struct hostif *hi)
{
	ATF_CHECK(!locked);
	stopped++;
	free(hi);
}

const char *
hostif_port_name(const struct hostif *hi)
{
	return (hi->link.hl_name);
}

static void
count(struct hostif *hi __unused, void *arg)
{
	ATF_CHECK(locked);
	++*(unsigned int *)arg;
}

static unsigned int
attached(void)
{
	unsigned int n = 0;

	hostif_each(count, &n);
	return (n);
}

static bool
attach(unsigned int i, char why[HOSTIF_WHY])
{
	const struct hostif_fds fds = { .hf_name = "i" };
	char name[32];

	snprintf(name, sizeof(name), "vale0:i%u", i);
	return (hostif_attach(name, &fds, why) == 0);
}

TEST(limit, "No more than HOSTIF_MAX interfaces are attached at a time, and "
    "one that fails takes no place")
{
	char name[32], why[HOSTIF_WHY];
	unsigned int i, round;

	for (round = 0; round < 2; round++) {
		fails = true;
		for (i = 0; i < HOSTIF_MAX + 1; i++) {
			ATF_CHECK(!attach(i, why));
			ATF_CHECK_STREQ("it fails", why);
		}
		fails = false;
		for (i = 0; i < HOSTIF_MAX; i++)
			ATF_REQUIRE_MSG(attach(i, why), "%s", why);
		ATF_CHECK_EQ(HOSTIF_MAX, attached());
		ATF_CHECK(!attach(i, why));
		ATF_CHECK_EQ(ENOSPC, errno);
		ATF_CHECK_STREQ("vale0:i64: there are 64 attached interfaces, "
		    "as many as there may be", why);
		for (i = 0; i < HOSTIF_MAX; i++) {
			snprintf(name, sizeof(name), "vale0:i%u", i);
			ATF_CHECK_EQ(0, hostif_detach(name));
			ATF_CHECK_EQ(-1, hostif_detach(name));
			ATF_CHECK_EQ(ENXIO, errno);
			ATF_CHECK_EQ(HOSTIF_MAX - i - 1, attached());
		}
	}
	ATF_CHECK_EQ(2 * HOSTIF_MAX, started);
	ATF_CHECK_EQ(started, stopped);
}

TEST(withdrawn, "An interface whose memory is gone takes no place, before or "
    "after it is in the table")
{
	char why[HOSTIF_WHY];
	unsigned int i;

	withdraws = true;
	for (i = 0; i < HOSTIF_MAX + 1; i++)
		ATF_REQUIRE_MSG(attach(i, why), "%s", why);
	withdraws = false;
	ATF_CHECK_EQ(0, attached());
	ATF_CHECK_EQ(started, stopped);
	for (i = 0; i < HOSTIF_MAX + 1; i++) {
		ATF_REQUIRE_MSG(attach(i, why), "%s", why);
		ATF_CHECK_EQ(1, attached());
		ATF_CHECK(hostif_forget(last));
		ATF_CHECK(!hostif_forget(last));
		ATF_CHECK_EQ(0, attached());
		free(last);
	}
}

TEST(gone, "An interface takes the place of one that is gone, of no other, and "
    "without another place in the table; if that fails, nothing is attached")
{
	char why[HOSTIF_WHY];

	ATF_REQUIRE(attach(1, why));
	ATF_CHECK(!attach(1, why));
	ATF_CHECK_EQ(EEXIST, errno);
	ATF_CHECK_STREQ("i is attached to vale0 already", why);
	last->gone = true;
	ATF_REQUIRE(attach(1, why));
	ATF_CHECK_EQ(1, renewed);
	ATF_CHECK_EQ(1, attached());
	ATF_CHECK(!attach(1, why));
	last->gone = true;
	fails = true;
	ATF_CHECK(!attach(1, why));
	ATF_CHECK_EQ(EIO, errno);
	ATF_CHECK_STREQ("it fails", why);
	fails = false;
	ATF_CHECK_EQ(0, attached());
	ATF_CHECK_EQ(0, stopped);
	ATF_CHECK_EQ(1, started);
	/* One that is let go stays in the table. */
	ATF_REQUIRE(attach(1, why));
	hostif_let_go("vale0:i2");
	hostif_let_go("vale0:i1");
	ATF_CHECK(last->released);
	ATF_CHECK_EQ(1, attached());
}

TEST_PROGRAM
