/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Sockets in the file system: between its creation and its final group and
 * mode, one gives nobody more than at the end; and each step that fails leaves
 * what was there before, and nothing else.
 */

#include <sys/param.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <atf-c.h>

#include "fail_calls.h"
#include "open_fds.h"
#include "peer_fds.h"
#include "said.h"
#include "test.h"
#include "valed_socket.h"
#include "valed_store.h"
#include "wrap.h"

/* The mode after each step, and its group. */
static mode_t bound_mode, owned_mode, listen_mode;
static gid_t listen_group;
static bool	watched;

/* The lstat(2), or fstat(2), that is told something else. */
static unsigned int lie_lstat, lie_fstat;
static struct stat lie;			/* added to what it finds */
static unsigned int locks;
static bool	lock_lost;		/* another takes the file once */

/* Have a call fail, if it is its turn. */
static bool
fails(const char *call)
{
	if (!fail_call(call, NULL))
		return (false);
	fail_errno(EMLINK);
	return (true);
}

/* Also in a child, where checks are lost. */
static void
require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}
#define	REQUIRE(cond)	require(cond, #cond)

/* One file is told as another. */
static int
told(int status, unsigned int *n, struct stat *st)
{
	if (*n > 0 && --*n == 0) {
		st->st_dev += lie.st_dev;
		st->st_ino += lie.st_ino;
		st->st_uid += lie.st_uid;
		if (lie.st_mode != 0)
			st->st_mode = lie.st_mode;
	}
	return (status);
}

WRAP(int, lstat, const char *path, struct stat *st)
{
	return (fails("lstat") ? -1 : told(__real_lstat(path, st), &lie_lstat,
	    st));
}

WRAP(int, fstat, int fd, struct stat *st)
{
	return (told(__real_fstat(fd, st), &lie_fstat, st));
}

WRAP(int, open, const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (strstr(path, ".lock") != NULL) {
		REQUIRE(flags == (O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
		    O_CLOEXEC));
		REQUIRE(mode == 0600);
	}
	return (__real_open(path, flags, mode));
}

WRAP(int, flock, int fd, int how)
{
	REQUIRE(how == LOCK_EX);
	locks++;
	if (lock_lost) {
		lock_lost = false;
		REQUIRE(rename("s.lock", "taken") == 0);
	}
	return (__real_flock(fd, how));
}

static struct stat
look(void)
{
	struct stat st;

	ATF_REQUIRE_EQ(0, lstat("s", &st));
	st.st_mode &= ALLPERMS;
	return (st);
}

WRAP(int, bind, int s, const struct sockaddr *sa, socklen_t len)
{
	int status = __real_bind(s, sa, len);

	if (status == 0 && watched)
		bound_mode = look().st_mode;
	return (status);
}

WRAP(int, fchownat, int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	int status = __real_fchownat(dir, path, uid, gid, flags);

	REQUIRE(dir == AT_FDCWD && uid == (uid_t)-1);
	REQUIRE(flags == AT_SYMLINK_NOFOLLOW);
	if (watched)
		owned_mode = look().st_mode;
	return (status);
}

WRAP(int, listen, int s, int backlog)
{
	struct stat st;

	REQUIRE(backlog == SOMAXCONN);
	if (watched) {
		st = look();
		listen_mode = st.st_mode;
		listen_group = st.st_gid;
	}
	return (__real_listen(s, backlog));
}

/* What is wrong is printed, and ends the process. */
static int
socket_open(const char *option, const char *path, int type,
    const struct valed_access *access)
{
	struct valed_why why = { .wy_status = 0 };
	const int s = valed_socket_open(option, path, type, access, &why);

	if (s == -1)
		errx(why.wy_status, "%s", why.wy_text);
	return (s);
}

/* Open a socket; the umask is as it was. */
static void
open_with(const struct valed_access *va, mode_t mask)
{
	watched = true;
	umask(mask);
	bound_mode = owned_mode = listen_mode = -1;
	listen_group = VALED_NOGROUP;
	close(socket_open("-c ", "s", SOCK_SEQPACKET, va));
	watched = false;
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

static bool
exists(const char *path)
{
	struct stat st;

	return (__real_lstat(path, &st) == 0);
}

/* A socket on which no process listens. */
static void
stale(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	ATF_REQUIRE_EQ(0, __real_bind(s, (void *)&sun, sizeof(sun)));
	close(s);
}

static int
open_s(void)
{
	const struct valed_access every = { getegid(), 0640 };

	return (socket_open("-c ", "s", SOCK_SEQPACKET, &every));
}

/* A call that fails, or a file that is told as another, when "s" is opened. */
struct trouble {
	const char	*call;
	unsigned int	n, lie_lstat, lie_fstat;
	struct stat	lie;
};

#define	FAIL(name, nth)	{ .call = (name), .n = (nth) }

static void
trouble(const struct trouble *t)
{
	fail_calls_error(EMLINK);
	fail_calls(t->call != NULL ? t->call : "none", t->n, 1);
	lie_lstat = t->lie_lstat;
	lie_fstat = t->lie_fstat;
	lie = t->lie;
}

/* Socket "s" cannot be opened, and another one stays. */
static void
refused(const struct trouble *t, int code, const char *line)
{
	char expected[256];
	int status;

	said_start();
	if (fork() == 0) {
		(void)socket_open("", "kept", SOCK_STREAM, NULL);
		trouble(t);
		(void)open_s();
		_exit(0);
	}
	ATF_REQUIRE(wait(&status) != -1);
	snprintf(expected, sizeof(expected), "valed_socket_test: -c s: %s\n",
	    line);
	ATF_CHECK_STREQ(expected, said());
	ATF_CHECK_EQ_MSG(code, WEXITSTATUS(status), "%s: %#x", line, status);
	ATF_REQUIRE_MSG(exists("kept"), "%s", line);
	ATF_REQUIRE_EQ(0, unlink("kept"));
}

TEST(lock_file, "The lock file is a file of this user's that no other can open")
{
#define	WRONG	"s.lock: not a lock file of this user"
	static const struct trouble wrong[] = {
		{ .lie_fstat = 1, .lie.st_uid = 1 },
		{ .lie_fstat = 1, .lie.st_mode = S_IFIFO | 0600 },
		{ .lie_fstat = 1, .lie.st_mode = S_IFREG | 0640 },
		{ .lie_fstat = 1, .lie.st_mode = S_IFREG | 0620 },
		{ .lie_fstat = 1, .lie.st_mode = S_IFREG | 0610 },
		{ .lie_fstat = 1, .lie.st_mode = S_IFREG | 0604 },
		{ .lie_fstat = 1, .lie.st_mode = S_IFREG | 0602 },
		{ .lie_fstat = 1, .lie.st_mode = S_IFREG | 0601 },
	}, right = { .lie_fstat = 1, .lie.st_mode = S_IFREG | 07700 };
	unsigned int i;

	for (i = 0; i < nitems(wrong); i++) {
		refused(&wrong[i], EX_CANTCREAT, WRONG);
		ATF_CHECK_MSG(exists("s.lock"), "another's was removed");
		ATF_CHECK(!exists("s"));
	}
	trouble(&right);
	close(socket_open("", "s", SOCK_STREAM, NULL));
	ATF_CHECK(!exists("s.lock"));
	valed_sockets_remove();
}

TEST(lock_again, "A lock is of the file that has the name, or is taken again")
{
	static const struct trouble rows[] = {
		{ .lie_lstat = 1, .lie.st_dev = 1 },
		{ .lie_lstat = 1, .lie.st_ino = 1 },
		FAIL("lstat", 1),
		/* The socket's own: nothing is there yet, or it says so. */
		FAIL("lstat", 2),
		{ .call = NULL },
	};
	const unsigned int fds = open_fds();
	unsigned int i;
	int s;

	for (i = 0; i < nitems(rows); i++) {
		trouble(&rows[i]);
		locks = 0;
		lock_lost = i == nitems(rows) - 1;
		s = socket_open("", "s", SOCK_STREAM, NULL);
		ATF_CHECK_EQ_MSG(i == 3 ? 1 : 2, locks, "%u: %u", i, locks);
		ATF_CHECK_EQ(fds + 1, open_fds());
		ATF_CHECK(!exists("s.lock"));
		close(s);
		valed_sockets_remove();
		ATF_CHECK(!exists("s"));
	}
	ATF_CHECK(exists("taken"));
}

/* Whether those of a, b and c are there that are named. */
static void
there(const char *names)
{
	const char *p;
	char name[2] = "";

	for (p = "abc"; *p != '\0'; p++) {
		name[0] = *p;
		ATF_CHECK_EQ_MSG(strchr(names, *p) != NULL, exists(name),
		    "%s of \"%s\"", name, names);
	}
}

static void
open_abc(void)
{
	const char *p;
	char name[2] = "";

	for (p = "abc"; *p != '\0'; p++) {
		name[0] = *p;
		close(socket_open("", name, SOCK_STREAM, NULL));
	}
	there("abc");
}

TEST(removes, "One is removed by its path, or all; but what is another file "
    "now is not")
{
	static const char *const first[] = { "a", "b", "c" };
	static const char *const rest[] = { "bc", "ac", "ab" };
	static const struct trouble lies[] = {
		{ .lie_lstat = 1, .lie.st_dev = 1 },
		{ .lie_lstat = 1, .lie.st_ino = 1 },
		FAIL("lstat", 1),
	};
	unsigned int i;

	for (i = 0; i < nitems(first); i++) {
		open_abc();
		valed_socket_remove("d");
		there("abc");
		valed_socket_remove(first[i]);
		there(rest[i]);
		/* It is not known any more. */
		valed_socket_remove(first[i]);
		there(rest[i]);
		valed_sockets_remove();
		there("");
	}
	for (i = 0; i < nitems(lies); i++) {
		open_abc();
		trouble(&lies[i]);
		valed_socket_remove("b");
		there("abc");
		valed_sockets_remove();
		there("b");
		ATF_REQUIRE_EQ(0, unlink("b"));
	}
	open_abc();
	ATF_REQUIRE_EQ(0, unlink("c"));
	ATF_REQUIRE_EQ(0, mkdir("c", 0700));
	valed_sockets_remove();
	there("c");
}

/* What processes that serve have put into the store, and have not removed. */
static void
store_read(int supervisor)
{
	struct valed_store_message vsm;
	struct iovec iov = { &vsm, sizeof(vsm) };
	char control[PEER_FDS_SPACE(1)];
	struct msghdr msg;
	int fd;

	for (;;) {
		struct peer_fds mf = { .mf_fd = &fd, .mf_max = 1 };

		msg = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1,
		    .msg_control = control, .msg_controllen = sizeof(control) };
		if (recvmsg(supervisor, &msg, MSG_DONTWAIT) <= 0)
			return;
		(void)peer_fds_take(&msg, &mf);
		if (vsm.vsm_what == VALED_STORE_REMOVE)
			valed_store_unset(vsm.vsm_text);
		else if (mf.mf_n == 1)
			valed_store_set(vsm.vsm_text, fd);
	}
}

/*
 * A process serves at "s", and has that inode, or a new one (0); then it leaves
 * all to the next, or ends for good.  What it says is that line.
 */
static void
serves(int fds[2], ino_t ino, bool ends, const char *line)
{
	struct sockaddr_un sun = { AF_UNIX, "s" };
	socklen_t len = sizeof(sun);
	int s, status;

	said_start();
	if (fork() == 0) {
		valed_store_serve(fds[1]);
		s = open_s();
		REQUIRE(getsockname(s, (void *)&sun, &len) == 0);
		REQUIRE(strcmp(sun.sun_path, "s") == 0);
		REQUIRE(ino == 0 || look().st_ino == ino);
		if (ends)
			valed_sockets_remove();
		_exit(0);
	}
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK_EQ(0, status);
	ATF_CHECK_STREQ(line, said());
	store_read(fds[0]);
}

#define	TAKEN	"valed_socket_test: -c s: another file has taken the "	\
		"socket's place: nobody can connect until that is removed " \
		"and valed restarted\n"

TEST(taken, "A socket goes on with its file; another one there stays as it is, "
    "which is said")
{
	struct stat st;
	int fd, fds[2];
	ino_t ino;

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	serves(fds, 0, false, "");
	ATF_CHECK_EQ(2, valed_store_count());
	ino = look().st_ino;
	serves(fds, ino, false, "");
	/* Nothing could be kept of the file. */
	valed_store_unset("inodes");
	serves(fds, ino, false, "");
	ATF_CHECK_EQ(2, valed_store_count());

	/* A socket, and a file, that others have put there. */
	ATF_REQUIRE_EQ(0, rename("s", "ours"));
	stale("s");
	ATF_REQUIRE_EQ(0, chmod("s", 0712));
	st = look();
	serves(fds, st.st_ino, false, TAKEN);
	serves(fds, st.st_ino, true, TAKEN);
	ATF_CHECK_EQ(st.st_ino, look().st_ino);
	ATF_CHECK_EQ(0712, look().st_mode);
	ATF_REQUIRE_EQ(0, unlink("s"));
	fd = __real_open("s", O_CREAT | O_WRONLY | O_CLOEXEC, 0612);
	ATF_REQUIRE(fd != -1 && fchmod(fd, 0612) == 0);
	serves(fds, look().st_ino, true, TAKEN);
	ATF_CHECK_EQ(0612, look().st_mode);

	/* The file is back, or is gone: then there is another socket. */
	ATF_REQUIRE_EQ(0, rename("ours", "s"));
	serves(fds, ino, false, "");
	ATF_REQUIRE_EQ(0, unlink("s"));
	serves(fds, 0, false, "");
	serves(fds, look().st_ino, true, "");
	ATF_CHECK(!exists("s"));
	ATF_CHECK_EQ(0, valed_store_count());
}

TEST_PROGRAM
