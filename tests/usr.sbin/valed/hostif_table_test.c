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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atf-c.h>

#include "hostif_impl.h"
#include "test.h"

static unsigned int started, stopped;
static bool withdraws;			/* memory of the next is gone at once */
static struct hostif *last;
static bool fails;			/* hostif_start() */

struct hostif *
hostif_start(const char *port_name, const struct hostif_fds *fds __unused,
    char *error, size_t size)
{
	struct hostif *hi;

	if (fails) {
		snprintf(error, size, "it fails");
		return (NULL);
	}
	hi = calloc(1, sizeof(*hi));
	ATF_REQUIRE(hi != NULL);
	snprintf(hi->link.hl_name, sizeof(hi->link.hl_name), "%s", port_name);
	started++;
	last = hi;
	return (hi);
}

bool
hostif_is_withdrawn(const struct hostif *hi __unused)
{
	return (withdraws);
}

void
hostif_stop(struct hostif *hi)
{
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
attach(unsigned int i, char error[128])
{
	const struct hostif_fds fds = { .hf_nfds = 0 };
	char name[32];

	snprintf(name, sizeof(name), "vale0:i%u", i);
	return (hostif_attach(name, &fds, error, 128));
}

TEST(limit, "No more than HOSTIF_MAX interfaces are attached at a time, and one "
    "that fails takes no place")
{
	char error[128], name[32];
	unsigned int i, round;

	for (round = 0; round < 2; round++) {
		fails = true;
		for (i = 0; i < HOSTIF_MAX + 1; i++) {
			ATF_CHECK(!attach(i, error));
			ATF_CHECK_STREQ("it fails", error);
		}
		fails = false;
		for (i = 0; i < HOSTIF_MAX; i++)
			ATF_REQUIRE_MSG(attach(i, error), "%s", error);
		ATF_CHECK_EQ(HOSTIF_MAX, attached());
		ATF_CHECK(!attach(i, error));
		ATF_CHECK_STREQ("vale0:i64: there are 64 attached interfaces, "
		    "as many as there may be", error);
		for (i = 0; i < HOSTIF_MAX; i++) {
			snprintf(name, sizeof(name), "vale0:i%u", i);
			ATF_CHECK_EQ(0, hostif_detach(name));
			ATF_CHECK_EQ(ENXIO, hostif_detach(name));
			ATF_CHECK_EQ(HOSTIF_MAX - i - 1, attached());
		}
	}
	ATF_CHECK_EQ(2 * HOSTIF_MAX, started);
	ATF_CHECK_EQ(started, stopped);
}

TEST(withdrawn, "An interface whose memory is gone takes no place, before or "
    "after it is in the table")
{
	char error[128];
	unsigned int i;

	withdraws = true;
	for (i = 0; i < HOSTIF_MAX + 1; i++)
		ATF_REQUIRE_MSG(attach(i, error), "%s", error);
	withdraws = false;
	ATF_CHECK_EQ(0, attached());
	ATF_CHECK_EQ(started, stopped);
	for (i = 0; i < HOSTIF_MAX + 1; i++) {
		ATF_REQUIRE_MSG(attach(i, error), "%s", error);
		ATF_CHECK_EQ(1, attached());
		ATF_CHECK(hostif_forget(last));
		ATF_CHECK(!hostif_forget(last));
		ATF_CHECK_EQ(0, attached());
		free(last);
	}
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, withdrawn);
	ATF_TP_ADD_TC(tp, limit);
	return (atf_no_error());
}
