/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Between its creation and its final group and mode, a socket gives nobody more
 * than at the end.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "valed.h"

/* The mode after each step, and its group. */
static mode_t bound_mode, owned_mode, listen_mode;
static gid_t listen_group;

int	__real_bind(int s, const struct sockaddr *sa, socklen_t len);
int	__wrap_bind(int s, const struct sockaddr *sa, socklen_t len);
int	__real_listen(int s, int backlog);
int	__wrap_listen(int s, int backlog);
int	__real_fchownat(int dir, const char *path, uid_t uid, gid_t gid,
	    int flags);
int	__wrap_fchownat(int dir, const char *path, uid_t uid, gid_t gid,
	    int flags);

static struct stat
look(void)
{
	struct stat st;

	ATF_REQUIRE_EQ(0, lstat("s", &st));
	st.st_mode &= ALLPERMS;
	return (st);
}

int
__wrap_bind(int s, const struct sockaddr *sa, socklen_t len)
{
	int status = __real_bind(s, sa, len);

	bound_mode = look().st_mode;
	return (status);
}

int
__wrap_fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	int status = __real_fchownat(dir, path, uid, gid, flags);

	ATF_CHECK_EQ(AT_SYMLINK_NOFOLLOW, flags);
	owned_mode = look().st_mode;
	return (status);
}

int
__wrap_listen(int s, int backlog)
{
	struct stat st = look();

	listen_mode = st.st_mode;
	listen_group = st.st_gid;
	return (__real_listen(s, backlog));
}

/* Open a socket; the umask is as it was. */
static void
open_with(const struct valed_access *va, mode_t mask)
{
	umask(mask);
	bound_mode = owned_mode = listen_mode = -1;
	listen_group = VALED_NOGROUP;
	close(valed_socket_open("-c ", "s", SOCK_SEQPACKET, va));
	ATF_CHECK_EQ(mask, umask(mask));
	valed_sockets_remove();
	ATF_CHECK_EQ(-1, access("s", F_OK));
}

TEST(mask, "Without a group and a mode, those of bind(2)")
{
	const struct valed_access none = { VALED_NOGROUP, VALED_NOMODE };

	open_with(NULL, 027);
	ATF_CHECK_EQ(0750, bound_mode);
	ATF_CHECK_EQ(0750, listen_mode);
	open_with(&none, 0);
	ATF_CHECK_EQ(0777, bound_mode);
	ATF_CHECK_EQ(0777, listen_mode);
	ATF_CHECK_EQ((mode_t)-1, owned_mode);
}

TEST(given, "Otherwise its owner's until it has the group, and nobody can "
    "connect before it has the mode")
{
	const struct valed_access group = { getegid(), VALED_NOMODE };
	const struct valed_access mode = { VALED_NOGROUP, 0604 };
	const struct valed_access both = { getegid(), 0770 };

	open_with(&group, 002);
	ATF_CHECK_EQ(0600, bound_mode);
	ATF_CHECK_EQ(0600, owned_mode);
	ATF_CHECK_EQ(0775, listen_mode);
	ATF_CHECK_EQ(getegid(), listen_group);
	open_with(&mode, 0);
	ATF_CHECK_EQ(0600, bound_mode);
	ATF_CHECK_EQ((mode_t)-1, owned_mode);
	ATF_CHECK_EQ(0604, listen_mode);
	open_with(&both, 077);
	ATF_CHECK_EQ(0600, bound_mode);
	ATF_CHECK_EQ(0600, owned_mode);
	ATF_CHECK_EQ(0770, listen_mode);
}

ATF_TP_ADD_TCS(tp)
{
	ATF_TP_ADD_TC(tp, mask);
	ATF_TP_ADD_TC(tp, given);
	return (atf_no_error());
}
