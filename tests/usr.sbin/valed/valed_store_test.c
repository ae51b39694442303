/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The store, and what the supervisor does with what it is sent
 * (valed_supervisor.c, which is included).
 */

#include <sys/param.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>

#include "valed_supervisor.c"

#include <atf-c.h>

#include "open_fds.h"
#include "test.h"

static char	told[512];		/* the service manager */

void
valed_notify(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(told, sizeof(told), fmt, ap);
	va_end(ap);
}

bool
valed_notify_fds(const int *fds __unused, unsigned int n __unused,
    bool wait __unused, const char *fmt __unused, ...)
{
	return (false);
}

void
valed_notify_barrier(void)
{
}

void
valed_notify_open(void)
{
}

bool
valed_notify_wanted(void)
{
	return (false);
}

static bool
inherit(void)
{
	return (valed_store_inherit(&oldest, &newest));
}

static int
file(void)
{
	const int fd = memfd_create("file", MFD_CLOEXEC);

	ATF_REQUIRE(fd != -1);
	return (fd);
}

static ino_t
inode(int fd)
{
	struct stat st;

	ATF_REQUIRE_EQ(0, fstat(fd, &st));
	return (st.st_ino);
}

/* The file that the store has under a name, or 0. */
static ino_t
stored(const char *name)
{
	unsigned int i;
	int fd;

	for (i = 0; i < valed_store_count(); i++)
		if (strcmp(valed_store_entry(i, &fd), name) == 0)
			return (inode(fd));
	return (0);
}

/* This process is the supervisor, and one that serves. */
static void
both(void)
{
	int fds[2];

	inherit();
	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
	    0, fds));
	child_fd = fds[0];
	valed_store_serve(fds[1]);
}

/* Put descriptors of an adapter; returns how many are kept. */
static unsigned int
put_of(unsigned int place, unsigned int n)
{
	const unsigned int before = valed_store_count();
	char name[VALED_STORE_NAME];
	unsigned int i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%04x.%u", place, i);
		valed_store_set(name, 9999);
	}
	return (valed_store_count() - before);
}

TEST(shares, "What some clients have keeps no other from being kept, and who "
    "is not is named")
{
	char name[VALED_STORE_NAME];
	unsigned int i, kept;

	inherit();
	for (i = 0; i < 33; i++)
		put_of(i << 8, 270);
	ATF_CHECK_EQ(33 * 24 + 1500, valed_store_count());
	ATF_REQUIRE(freopen("said", "w", stderr) != NULL);
	setlinebuf(stderr);
	for (; i < 256; i++)
		ATF_CHECK_EQ(24, put_of(i << 8 | 9, i == 99 ? 30 : 24));
	for (i = 0; i < 513; i++) {
		snprintf(name, sizeof(name), "socket/tmp/%u", i);
		kept = valed_store_count();
		valed_store_set(name, 9999);
		ATF_CHECK_EQ(kept + 1, valed_store_count());
	}
	ATF_CHECK(atf_utils_grep_file("slot 99:1:1: too many descriptors: "
	    "the client is disconnected when valed is restarted", "said"));
	/* Those that go leave their places. */
	for (i = 0; i < 270; i++) {
		snprintf(name, sizeof(name), "0000.%u", i);
		valed_store_unset(name);
	}
	ATF_CHECK_EQ(270, put_of(0, 270));
}

/*
 * What is inherited: a name for each, in LISTEN_FDNAMES.  The first
 * `inherited_old' are of the generation before.
 */
static const int *inherited;
static int	inherited_old;

void
valed_activation_each(void (*fn)(const char *name, size_t len, int fd))
{
	const int *fd;

	fn("another", 7, -1);
	for (fd = inherited; fd != NULL && *fd != -1; fd++)
		fn(VALED_STORE_FDNAME ".1:x", strlen(VALED_STORE_FDNAME) +
		    (inherited_old > 0 && fd - inherited >= inherited_old ?
		    2 : 0), *fd);
}

void
valed_activation_until(int fd)
{
	ATF_CHECK_EQ(inherited[0], fd);
}

/* Pack a store of n files with the longest names.  Returns the sockets. */
static unsigned int
pack_all(unsigned int n, int *socks, unsigned int max)
{
	char name[VALED_STORE_NAME];
	unsigned int i, k = 0;

	ATF_CHECK(!inherit());
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%0127u", i);
		valed_store_set(name, file());
	}
	for (i = 0; i < n; k++) {
		ATF_REQUIRE(k < max);
		socks[k] = valed_store_pack(&i, false);
		ATF_REQUIRE(socks[k] != -1);
	}
	ATF_CHECK_EQ(-1, valed_store_pack(&i, false));
	socks[k] = -1;
	return (k);
}

TEST(pack_full, "All that a store can have finds a place")
{
	struct rlimit rl;
	int socks[PACKS + 1];
	unsigned int n;

#ifdef SANITIZED
	atf_tc_skip("a sanitizer looks at each close(2): it takes a minute");
#endif
	ATF_REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &rl));
	rl.rlim_cur = rl.rlim_max;
	ATF_REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &rl));
	if (rl.rlim_cur < 2 * VALED_STORE_MAX)
		atf_tc_skip("a limit of %ju descriptors",
		    (uintmax_t)rl.rlim_cur);
	n = pack_all(VALED_STORE_MAX, socks, PACKS);
	printf("%u sockets\n", n);
	inherited = socks;
	ATF_CHECK(inherit());
	ATF_CHECK_EQ(VALED_STORE_MAX, valed_store_count());
	inherited = NULL;
}

TEST(pack_invalid, "What is no message of the store is closed")
{
	static const char text[] = "a\0\0bc";
	const unsigned int fds = open_fds();
	int pair[2], socks[] = { -1, -1 };
	struct iovec iov = { (void *)(uintptr_t)text, 5 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int files[4];
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(sizeof(files))];
	} control = { .space = { 0 } };
	struct cmsghdr *c;
	unsigned int i;

	ATF_REQUIRE_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
	    pair));
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control.space);
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(files));
	for (i = 0; i < nitems(files); i++)
		files[i] = file();
	memcpy(CMSG_DATA(c), files, sizeof(files));
	/* Names: "a", none, and one without an end. */
	ATF_REQUIRE_EQ(5, sendmsg(pair[0], &msg, 0));
	for (i = 0; i < nitems(files); i++)
		close(files[i]);
	close(pair[0]);
	socks[0] = pair[1];
	inherited = socks;
	ATF_CHECK(inherit());
	ATF_CHECK_EQ(1, valed_store_count());
	ATF_CHECK(stored("a") != 0);
	ATF_CHECK_EQ(fds + 1, open_fds());
	/* A file is no socket. */
	socks[0] = file();
	ATF_CHECK(inherit());
	ATF_CHECK_EQ(0, valed_store_count());
	inherited = NULL;
}

TEST(put_again, "What the next process has put under a name is not removed")
{
	const int a = file(), b = file();
	const ino_t of_b = inode(b);

	both();
	valed_store_set("1.a", a);
	valed_store_set("1.b", file());
	ATF_CHECK(valed_store_put("1.a", b));
	valed_store_started();
	/* What was there is closed, and not the next process's. */
	ATF_CHECK_EQ(-1, fcntl(a, F_GETFD));
	ATF_CHECK_EQ(-1, valed_store_take("1.a"));
	valed_store_set("1.b", file());
	while (message_read())
		continue;
	ATF_CHECK_EQ(of_b, stored("1.a"));
	ATF_CHECK_EQ(0, stored("1.b"));
	/* The table's entry is as new. */
	valed_store_started();
	while (message_read())
		continue;
	ATF_CHECK_EQ(0, stored("1.a"));
}

/* Send a packet to the supervisor, with a descriptor or -1. */
static void
packet(int what, const char *text, size_t len, int fd)
{
	struct valed_store_message vsm;
	const unsigned int fds = open_fds();
	struct iovec iov = { &vsm,
	    offsetof(struct valed_store_message, vsm_text) + len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union {
		struct cmsghdr	align;
		char		space[CMSG_SPACE(sizeof(int))];
	} control = { .space = { 0 } };
	struct cmsghdr *c;

	memset(&vsm, 'x', sizeof(vsm));
	vsm.vsm_what = what;
	memcpy(vsm.vsm_text, text, len);
	if (fd != -1) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	ATF_REQUIRE(sendmsg(valed_store_fd(), &msg, 0) != -1);
	ATF_CHECK(message_read());
	ATF_CHECK_EQ(fds, open_fds());
}

TEST(hostile, "A process that a client has taken over cannot make the "
    "supervisor keep or tell what is invalid")
{
	char name[VALED_STORE_NAME + 1];
	const int a = file();

	both();
	packet(VALED_STORE_PUT, "", 1, a);
	memset(name, 'n', VALED_STORE_NAME);
	name[VALED_STORE_NAME] = '\0';
	packet(VALED_STORE_PUT, name, sizeof(name), a);
	packet(VALED_STORE_PUT, "", 0, a);
	packet(VALED_STORE_PUT, "a", 2, -1);
	packet(VALED_STORE_REMOVE, "a", 2, a);
	packet(99, "a", 2, a);
	packet(VALED_STORE_SERVES, "", 1, a);
	ATF_CHECK_EQ(0, valed_store_count());
	/* Without its end, the last byte becomes one. */
	packet(VALED_STORE_REMOVE, "abc", 3, -1);
	packet(VALED_STORE_NOTIFY, "READY=1", 8, -1);
	ATF_CHECK_STREQ("READY=1", told);
	told[0] = '\0';
	packet(VALED_STORE_NOTIFY, "MAINPID=1", 10, -1);
	packet(VALED_STORE_NOTIFY, "READY=1\nMAINPID=1", 18, -1);
	packet(VALED_STORE_NOTIFY, "FDSTORE=1", 10, a);
	packet(VALED_STORE_NOTIFY, "READY=1\n", 9, -1);
	ATF_CHECK_STREQ("", told);
	packet(VALED_STORE_NOTIFY, "READY=1\nSTATUS=x: y", 20, -1);
	ATF_CHECK_STREQ("READY=1\nSTATUS=x: y", told);
}

/* A process that calls how() for ever. */
static void
child_make(void (*how)(void))
{
	child = fork();
	ATF_REQUIRE(child != -1);
	while (child == 0)
		how();
}

static void
run_on(void)
{
}

/* The parent waits for the child in the kernel, uninterruptible to see. */
static void
wait_in_kernel(void)
{
	if (vfork() == 0)
		for (;;)
			pause();
}

static void
pause_now(void)
{
	pause();
}

static void
end_now(void)
{
	_exit(0);
}

TEST(threads, "A process that has ended, or waits in the kernel, executes "
    "nothing any more")
{
	char path[64], pid[16];
	FILE *f;

	child_make(run_on);
	ATF_CHECK(!threads_gone());
	kill(child, SIGKILL);
	while (!threads_gone())
		continue;
	ATF_REQUIRE_EQ(child, waitpid(child, NULL, 0));
	/* Who has been waited for is not there. */
	ATF_CHECK(!threads_gone());
	child_make(end_now);
	while (!threads_gone())
		continue;
	ATF_REQUIRE_EQ(child, waitpid(child, NULL, 0));
	child_make(pause_now);
	ATF_CHECK(!threads_gone());
	kill(child, SIGKILL);
	ATF_REQUIRE_EQ(child, waitpid(child, NULL, 0));
	child_make(wait_in_kernel);
	while (!threads_gone())
		continue;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", child, child);
	f = fopen(path, "r");
	ATF_REQUIRE(f != NULL && fscanf(f, "%15s", pid) == 1);
	fclose(f);
	kill(atoi(pid), SIGKILL);
	kill(child, SIGKILL);
	ATF_REQUIRE_EQ(child, waitpid(child, NULL, 0));
}

TEST(lost, "A descriptor that did not arrive is not the one that was there; "
    "what was sent before an end with an unread reply is read")
{
	static const struct valed_store_message without = {
		.vsm_what = VALED_STORE_PUT, .vsm_text = "a" };
	const int a = file();
	int fd;

	both();
	ATF_CHECK(valed_store_put("a", a));
	ATF_CHECK(message_read());
	ATF_CHECK_EQ(inode(a), stored("a"));
	ATF_REQUIRE(send(valed_store_fd(), &without,
	    sizeof(without), 0) != -1);
	ATF_CHECK(message_read());
	ATF_CHECK_EQ(0, stored("a"));
	ATF_CHECK(valed_store_put("b", a));
	reply("unread");
	fd = valed_store_fd();
	close(fd);
	while (message_read())
		continue;
	ATF_CHECK_EQ(inode(a), stored("b"));
}

TEST(pair, "Two connections get numbers that differ in one bit")
{
	const unsigned int fds = open_fds();
	int other, pass, used[4];
	unsigned int i;

	both();
	/* Some of the next numbers are in use, each with the other's kind. */
	for (i = 0; i < nitems(used); i++)
		used[i] = file();
	close(used[0]);
	close(used[3]);
	pass = file();
	other = valed_store_pair(pass);
	ATF_REQUIRE(other != -1);
	ATF_CHECK_EQ(valed_store_fd(), other ^ 1);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(other, F_GETFD));
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(valed_store_fd(), F_GETFD));
	ATF_CHECK_EQ(fds + 5, open_fds());
	/* Without the other one, its number is not free, either. */
	close(other);
	other = valed_store_pair(-1);
	ATF_CHECK_EQ(valed_store_fd(), other ^ 1);
	ATF_CHECK_EQ(inode(valed_store_fd()), inode(other));
	ATF_CHECK(valed_store_put("a", file()));
	ATF_CHECK(message_read());
}

TEST_PROGRAM
