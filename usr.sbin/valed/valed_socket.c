/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The sockets in the file system.  Only the guard uses their names once it
 * runs (valed_guard.c).
 *
 * valed creates a socket under a lock, so that of two processes that start at
 * once, one finds the other's socket in use.  If no process listens on a
 * socket, the one that did was killed, and valed replaces it.
 *
 * The lock is on a file of its own, the socket's path with ".lock" behind it,
 * that only valed's user can open, and so lock: a lock on the directory could
 * be held by any user.  valed removes the file while it still has the lock, and
 * a process that gets the lock of a file which has been removed tries again.
 * A socket is removed only if it still is the same inode.
 *
 * With a store (valed_store.h) the sockets outlast the process that serves: the
 * next one takes them from there, and gives the control socket the group and
 * mode that it has now in the configuration.  The store has a descriptor of
 * each socket's file, too, which tells it from another file that somebody has
 * put in its place meanwhile: valed leaves that alone, and says that nobody can
 * connect.
 */

#include <sys/param.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/systm.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_config.h"
#include "peer_fd.h"
#include "valed_socket.h"
#include "valed_store.h"
#include "valed_why.h"

#define	SOCKET_LOCK	".lock"

static struct socket_name {
	char		path[sizeof(((struct adapter_config *)0)->ac_path)];
	dev_t		dev;
	ino_t		ino;
	int		type;		/* SOCK_* */
} names[VALED_NAMES];
static unsigned int nnames;
static char lock_path[sizeof(names->path) + sizeof(SOCKET_LOCK)];
static int lock_fd = -1;
static const char *socket_option;	/* of the socket, for messages */
static struct valed_why *socket_why;	/* of valed_socket_open() */

/* Make the name of a socket in the store: false if it can have none. */
static bool
store_name(char name[VALED_STORE_NAME], const char *path)
{
	return (snprintf(name, VALED_STORE_NAME, "socket%s", path) <
	    VALED_STORE_NAME);
}

/* Make the name of its file there, which is no longer. */
static void
file_name(char name[VALED_STORE_NAME], const char *path)
{
	snprintf(name, VALED_STORE_NAME, "inode%s", path);
}

/* Keep a descriptor of the socket's file, which cannot be read. */
static void
file_put(const char *path)
{
	const int fd = valed_store_active() ? open(path, O_PATH | O_NOFOLLOW |
	    O_CLOEXEC) : -1;
	char name[VALED_STORE_NAME];

	if (fd == -1)
		return;
	file_name(name, path);
	(void)valed_store_put(name, fd);
	close(fd);
}

static void
name_remove(const struct socket_name *sn)
{
	char name[VALED_STORE_NAME];
	struct stat st;

	if (store_name(name, sn->path)) {
		valed_store_remove(name);
		file_name(name, sn->path);
		valed_store_remove(name);
	}
	if (lstat(sn->path, &st) == 0 && st.st_dev == sn->dev &&
	    st.st_ino == sn->ino)
		unlink(sn->path);
}

/* Remove the i-th. */
static void
name_forget(unsigned int i)
{
	name_remove(&names[i]);
	names[i] = names[--nnames];
}

void
valed_sockets_remove(void)
{
	while (nnames > 0)
		name_forget(nnames - 1);
}

void
valed_socket_remove(const char *path)
{
	unsigned int i;

	for (i = 0; i < nnames; i++) {
		if (names[i].type == SOCK_STREAM &&
		    strcmp(names[i].path, path) == 0) {
			name_forget(i);
			return;
		}
	}
}

void
valed_sockets_prune(bool (*used)(const char *path))
{
	unsigned int i = nnames;

	while (i-- > 0)
		if (names[i].type == SOCK_STREAM && !used(names[i].path))
			name_forget(i);
}

static void
lock_release(void)
{
	if (lock_fd == -1)
		return;
	unlink(lock_path);
	close(lock_fd);
	lock_fd = -1;
}

/* Say why there is no socket.  Returns false. */
static bool __printflike(3, 4)
fail(int status, const char *path, const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return (valed_why_set(socket_why, status, "%s%s: %s", socket_option,
	    path, why));
}

/* Open the lock file, or return -1.  No other user may be able to. */
static int
lock_open(const char *path)
{
	struct stat st;
	int fd;

	fd = open(lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
	    O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd == -1 && errno == ENOENT)
		fail(EX_CANTCREAT, path, "its directory does not exist");
	else if (fd == -1 || fstat(fd, &st) == -1)
		fail(EX_CANTCREAT, path, "%s: %s", lock_path, strerror(errno));
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		fail(EX_CANTCREAT, path, "%s: not a lock file of this user",
		    lock_path);
	else
		return (fd);
	if (fd != -1)
		close(fd);
	return (-1);
}

/* Take the lock of a path. */
static bool
lock_take(const char *path)
{
	struct stat st, there;
	int fd;

	snprintf(lock_path, sizeof(lock_path), "%s" SOCKET_LOCK, path);
	for (;;) {
		fd = lock_open(path);
		if (fd == -1)
			return (false);
		if (flock(fd, LOCK_EX) == -1 || fstat(fd, &st) == -1) {
			fail(EX_CANTCREAT, path, "%s: %s", lock_path,
			    strerror(errno));
			close(fd);
			return (false);
		}
		if (lstat(lock_path, &there) == 0 &&
		    there.st_dev == st.st_dev && there.st_ino == st.st_ino)
			break;
		close(fd);
	}
	lock_fd = fd;
	return (true);
}

/* Remove a socket on which no process listens; fail on any other file. */
static bool
clear_stale(const struct sockaddr_un *sun, int type)
{
	struct stat st;
	int s;

	if (lstat(sun->sun_path, &st) == -1)
		return (true);
	if (!S_ISSOCK(st.st_mode))
		return (fail(EX_CANTCREAT, sun->sun_path, "exists and is not a "
		    "socket"));
	s = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s == -1)
		return (fail(EX_OSERR, sun->sun_path, "%s", strerror(errno)));
	if (connect(s, (const struct sockaddr *)sun, sizeof(*sun)) == 0 ||
	    errno != ECONNREFUSED)
		fail(EX_UNAVAILABLE, sun->sun_path, "socket in use");
	else if (unlink(sun->sun_path) == -1)
		fail(EX_CANTCREAT, sun->sun_path, "%s", strerror(errno));
	close(s);
	return (socket_why->wy_status == 0);
}

static mode_t
umask_now(void)
{
	const mode_t mask = umask(ACCESSPERMS);

	umask(mask);
	return (mask);
}

static bool
access_given(const struct valed_access *access)
{
	return (access != NULL && (access->va_group != VALED_NOGROUP ||
	    access->va_mode != VALED_NOMODE));
}

/*
 * Create it, with no more permissions than it gets in the end.  Nobody can
 * connect before listen(2), either.
 */
static bool
bind_access(int s, const struct sockaddr_un *sun,
    const struct valed_access *access)
{
	const mode_t mask = umask_now();
	int status;

	if (access_given(access))
		umask(S_IXUSR | S_IRWXG | S_IRWXO);
	status = bind(s, (const struct sockaddr *)sun, sizeof(*sun));
	umask(mask);
	return (status == 0 || fail(EX_CANTCREAT, sun->sun_path, "%s",
	    strerror(errno)));
}

/* Give it its group and mode.  valed made it, and the name is known. */
static bool
set_access(const char *path, const struct valed_access *access)
{
	const mode_t mode = access->va_mode != VALED_NOMODE ?
	    access->va_mode : ACCESSPERMS & ~umask_now();

	if (access->va_group != VALED_NOGROUP && fchownat(AT_FDCWD, path, -1,
	    access->va_group, AT_SYMLINK_NOFOLLOW) == -1)
		return (fail(EX_CANTCREAT, path, "group %u: %s",
		    access->va_group, strerror(errno)));
	return (fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) == 0 ||
	    fail(EX_CANTCREAT, path, "mode %o: %s", mode, strerror(errno)));
}

/*
 * Return whether `s', from the store, listens at the path, where there is a
 * file.
 */
static bool
stored_ok(int s, const char *path, int type, struct stat *st)
{
	struct sockaddr_un sun;
	socklen_t len = sizeof(sun);

	memset(&sun, 0, sizeof(sun));
	return (peer_socket_is(s, SO_TYPE, type) &&
	    peer_socket_is(s, SO_ACCEPTCONN, 1) &&
	    getsockname(s, (struct sockaddr *)&sun, &len) == 0 &&
	    sun.sun_family == AF_UNIX &&
	    strncmp(sun.sun_path, path, sizeof(sun.sun_path)) == 0 &&
	    lstat(path, st) == 0);
}

/* Return whether that file is the socket's, or nothing could be kept of it. */
static bool
stored_file(const char *path, const struct stat *st)
{
	char name[VALED_STORE_NAME];
	struct stat file;
	bool same;
	int fd;

	file_name(name, path);
	fd = valed_store_take(name);
	if (fd == -1) {
		file_put(path);
		return (S_ISSOCK(st->st_mode));
	}
	same = fstat(fd, &file) == 0 && file.st_dev == st->st_dev &&
	    file.st_ino == st->st_ino;
	close(fd);
	return (same);
}

static void
name_add(const char *path, int type, const struct stat *st)
{
	MPASS(nnames < nitems(names));
	names[nnames].type = type;
	strlcpy(names[nnames].path, path, sizeof(names->path));
	names[nnames].dev = st->st_dev;
	names[nnames].ino = st->st_ino;
	nnames++;
}

/* Return the group that a new file would have there; see open(2). */
static gid_t
group_new(const char *path)
{
	char dir[sizeof(names->path)];
	struct stat st;

	strlcpy(dir, path, sizeof(dir));
	return (stat(dirname(dir), &st) == 0 && (st.st_mode & S_ISGID) != 0 ?
	    st.st_gid : getegid());
}

/* Give a socket from the store the group and mode that it would get now. */
static bool
renew_access(const char *path, const struct stat *st,
    const struct valed_access *access)
{
	struct valed_access now = *access;

	if (now.va_group == VALED_NOGROUP)
		now.va_group = group_new(path);
	if (now.va_group == st->st_gid)
		now.va_group = VALED_NOGROUP;
	return (set_access(path, &now));
}

/*
 * Take the socket at this path that is in the store, or return -1.  If there is
 * another file now, valed goes on for the clients that it has.
 */
static int
take_stored(const char *path, int type, const struct valed_access *access)
{
	char name[VALED_STORE_NAME];
	struct stat st;
	int s;

	if (!store_name(name, path))
		return (-1);
	s = valed_store_take(name);
	if (s == -1)
		return (-1);
	if (!stored_ok(s, path, type, &st)) {
		close(s);
		return (-1);
	}
	if (!stored_file(path, &st)) {
		valed_warnx(NULL, "%s%s: another file has taken the socket's "
		    "place: nobody can connect until that is removed and valed "
		    "restarted", socket_option, path);
		return (s);
	}
	name_add(path, type, &st);
	if (access == NULL || renew_access(path, &st, access))
		return (s);
	close(s);
	return (-1);
}

int
valed_socket_open(const char *option, const char *path, int type,
    const struct valed_access *access, struct valed_why *why)
{
	const unsigned int before = nnames;
	char name[VALED_STORE_NAME];
	struct sockaddr_un sun;
	struct stat st;
	int s;

	memset(&sun, 0, sizeof(sun));
	sun.sun_family = AF_UNIX;
	strlcpy(sun.sun_path, path, sizeof(sun.sun_path));
	socket_option = option;
	socket_why = why;
	s = take_stored(path, type, access);
	if (s != -1)
		return (s);
	if (why->wy_status != 0 || !lock_take(path) || !clear_stale(&sun, type))
		goto fail;
	s = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s == -1) {
		fail(EX_OSERR, path, "%s", strerror(errno));
		goto fail;
	}
	if (!bind_access(s, &sun, access))
		goto fail;
	if (lstat(path, &st) == -1) {
		fail(EX_OSERR, path, "%s", strerror(errno));
		unlink(path);
		goto fail;
	}
	name_add(path, type, &st);
	if (access_given(access) && !set_access(path, access))
		goto fail;
	if (listen(s, SOMAXCONN) == -1) {
		fail(EX_OSERR, path, "%s", strerror(errno));
		goto fail;
	}
	lock_release();
	if (store_name(name, path)) {
		(void)valed_store_put(name, s);
		file_put(path);
	}
	return (s);

fail:
	if (s != -1)
		close(s);
	if (nnames > before)
		name_forget(before);
	lock_release();
	return (-1);
}
