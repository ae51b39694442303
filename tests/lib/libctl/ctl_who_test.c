/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Who is at the other end of a connection: each way to be an administrator, and
 * each call that fails.
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "ctl_who.h"
#include "test.h"
#include "wrap.h"

#define	FD	1000	/* no descriptor: the kernel is asked below */
#define	GROUP	77

/* What the kernel knows of the client. */
static struct ucred peer;
static gid_t	groups[3];
static unsigned int ngroups;
/* What fails: the n-th call, with this error; 0 is none. */
static unsigned int calls, fail_n;
static int	fail_error;
static bool	no_memory;
static size_t	allocated;
static uid_t	self = 500;

WRAP(int, getsockopt, int fd, int level, int name, void *val, socklen_t *len)
{
	const socklen_t has = ngroups * sizeof(groups[0]);

	ATF_REQUIRE_EQ(FD, fd);
	ATF_REQUIRE_EQ(SOL_SOCKET, level);
	if (++calls == fail_n) {
		errno = fail_error;
		return (-1);
	}
	if (name == SO_PEERCRED) {
		ATF_REQUIRE_EQ(sizeof(peer), *len);
		memcpy(val, &peer, sizeof(peer));
		return (0);
	}
	ATF_REQUIRE_EQ(SO_PEERGROUPS, name);
	if (*len < has) {
		*len = has;
		errno = ERANGE;
		return (-1);
	}
	ATF_CHECK(allocated >= has);
	*len = has;
	if (has > 0)
		memcpy(val, groups, has);
	return (0);
}

WRAP(uid_t, geteuid, void)
{
	return (self);
}

WRAP(void *, malloc, size_t size)
{
	allocated = size;
	return (no_memory ? NULL : __real_malloc(size));
}

/* The client, as found; with `want', an error, it is not set. */
static struct ctl_who
who_is(uid_t uid, gid_t gid, int want)
{
	struct ctl_who who = { 123, false };

	peer = (struct ucred){ .pid = 1, .uid = uid, .gid = gid };
	calls = 0;
	ATF_CHECK_EQ(want, ctl_who(FD, &who));
	ATF_CHECK_EQ(want != 0 ? 123 : uid, who.cw_uid);
	ATF_CHECK(want == 0 || !who.cw_admin);
	return (who);
}

static bool
is_admin(uid_t uid, gid_t gid)
{
	return (who_is(uid, gid, 0).cw_admin);
}

TEST(users, "Root and the user of the process are administrators, without a "
    "look at groups")
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ctl_who_init(i == 0 ? CTL_WHO_NOGROUP : GROUP);
		ATF_CHECK(is_admin(0, 1));
		ATF_CHECK_EQ(1, calls);
		ATF_CHECK(is_admin(500, 1));
		ATF_CHECK_EQ(1, calls);
		ATF_CHECK(!is_admin(499, 1));
		ATF_CHECK_EQ(1 + i, calls);
		ATF_CHECK(!is_admin(1, 0));
	}
	/* The group that is none is nobody's. */
	ctl_who_init(CTL_WHO_NOGROUP);
	ATF_CHECK(!is_admin(1, CTL_WHO_NOGROUP));
}

TEST(members, "Who has the group, as the first or as another one, is an "
    "administrator")
{
	unsigned int i;

	ctl_who_init(GROUP);
	ATF_CHECK(is_admin(1, GROUP));
	ATF_CHECK(!is_admin(1, GROUP - 1));
	ngroups = nitems(groups);
	for (i = 0; i < nitems(groups); i++) {
		groups[0] = groups[1] = groups[2] = GROUP + 1;
		ATF_CHECK(!is_admin(1, 1));
		ATF_CHECK_EQ(3, calls);
		ATF_CHECK_EQ(sizeof(groups), allocated);
		ATF_CHECK(is_admin(1, GROUP));
		groups[i] = GROUP;
		ATF_CHECK(is_admin(1, 1));
	}
	ngroups = 2;
	ATF_CHECK(!is_admin(1, 1));
	ngroups = 1;
	groups[0] = GROUP;
	ATF_CHECK(is_admin(1, 1));
}

TEST(fails, "What the kernel or memory refuses is an error, and nobody's "
    "credentials")
{
	ctl_who_init(GROUP);
	ngroups = 3;
	groups[0] = GROUP;
	fail_error = ENOTSOCK;
	for (fail_n = 1; fail_n <= 3; fail_n++)
		who_is(1, 1, ENOTSOCK);
	/* The group of who has it is not looked at either. */
	fail_n = 2;
	who_is(1, GROUP, ENOTSOCK);
	/* More of them since it was asked. */
	fail_n = 3;
	fail_error = ERANGE;
	who_is(1, 1, ERANGE);
	fail_n = 0;
	no_memory = true;
	who_is(1, 1, ENOMEM);
	no_memory = false;
	ATF_CHECK(is_admin(1, 1));
}

TEST_PROGRAM
