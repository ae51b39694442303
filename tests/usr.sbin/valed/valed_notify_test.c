/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Messages to the service manager: what sd_notify(3) says of each variable. */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "valed_notify.h"
#include "wrap.h"

static int	manager;
static char	text[1024];
static ssize_t	text_len;		/* of the last message */

static void
manage(void)
{
	const struct sockaddr_un sun = { AF_UNIX, "notify" };

	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	ATF_REQUIRE(manager != -1);
	ATF_REQUIRE_EQ(0, bind(manager, (const void *)&sun, sizeof(sun)));
	/* A relative path would be refused. */
	ATF_REQUIRE(realpath("notify", text) != NULL);
	setenv("NOTIFY_SOCKET", text, 1);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

/* The next message, or "". */
static const char *
heard(void)
{
	text_len = recv(manager, text, sizeof(text) - 1, 0);
	text[MAX(text_len, 0)] = '\0';
	return (text);
}

/* So many messages find too many descriptors in flight. */
static unsigned int crowded;

WRAP(ssize_t, sendmsg, int s, const struct msghdr *msg, int flags)
{
	if (crowded == 0)
		return (__real_sendmsg(s, msg, flags));
	crowded--;
	errno = ETOOMANYREFS;
	return (-1);
}

TEST(watchdog, "Its messages are sent to a watchdog that waits for this \
process, and not without one")
{
	static const struct {
		const char *us, *pid;	/* "own": this process */
		bool sent;
	} rows[] = {
		{ NULL, NULL, false },
		{ NULL, "own", false },
		{ "2000000", NULL, true },
		{ "2000000", "own", true },
		{ "2000000", "1", false },
		{ "2000000", "", false },
		{ "60000000", "own", true },
	};
	char pid[16];
	unsigned int i;
	int status;

	manage();
	for (i = 0; i < nitems(rows); i++) {
		if (fork() == 0) {
			snprintf(pid, sizeof(pid), "%d", getpid());
			if (rows[i].us != NULL)
				setenv("WATCHDOG_USEC", rows[i].us, 1);
			if (rows[i].pid != NULL)
				setenv("WATCHDOG_PID",
				    strcmp(rows[i].pid, "own") == 0 ? pid :
				    rows[i].pid, 1);
			valed_notify_watch();
			valed_notify_open();
			valed_notify_watch();
			_exit(0);
		}
		ATF_REQUIRE(wait(&status) != -1 && status == 0);
		ATF_CHECK_STREQ_MSG(rows[i].sent ? "WATCHDOG=1" : "", heard(),
		    "row %u", i);
		ATF_CHECK_STREQ("", heard());
	}
}

TEST(messages, "Messages are as sd_notify(3) has them, and cut to 511 bytes")
{
	struct timespec before, after;
	char longer[600];
	uintmax_t us;

	manage();
	valed_notify_open();
	valed_notify_ready(1, "");
	ATF_CHECK_STREQ("READY=1\nSTATUS=Serving 1 adapter.", heard());
	valed_notify_ready(0, "");
	ATF_CHECK_STREQ("READY=1\nSTATUS=Serving 0 adapters.", heard());
	valed_notify_ready(2, "a.conf:1: why");
	ATF_CHECK_STREQ("READY=1\nSTATUS=Serving 2 adapters. "
	    "The last reload failed: a.conf:1: why", heard());
	clock_gettime(CLOCK_MONOTONIC, &before);
	valed_notify_reloading();
	clock_gettime(CLOCK_MONOTONIC, &after);
	ATF_REQUIRE_EQ(1, sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%ju",
	    &us));
	ATF_CHECK(us >= (uintmax_t)before.tv_sec * 1000000 +
	    before.tv_nsec / 1000);
	ATF_CHECK(us <= (uintmax_t)after.tv_sec * 1000000 +
	    after.tv_nsec / 1000);
	memset(longer, 'x', sizeof(longer));
	longer[510] = '\0';
	valed_notify("%s", longer);
	ATF_CHECK_EQ(510, strlen(heard()));
	ATF_CHECK_EQ(510, text_len);
	longer[510] = 'x';
	longer[511] = '\0';
	valed_notify("%s", longer);
	ATF_CHECK_EQ(511, strlen(heard()));
	ATF_CHECK_EQ(511, text_len);
	longer[511] = 'x';
	longer[599] = '\0';
	valed_notify("%s", longer);
	ATF_CHECK_EQ(511, strlen(heard()));
	ATF_CHECK_EQ(511, text_len);
}

TEST(waits, "A manager that does not read, or has gone, holds up nothing, and \
no program inherits the socket")
{
	unsigned int i;
	int fd, type;
	socklen_t len = sizeof(type);

	manage();
	/* The number that the socket is to have. */
	fd = open("/dev/null", O_RDONLY);
	close(fd);
	valed_notify_open();
	ATF_REQUIRE_EQ(0, getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len));
	ATF_CHECK_EQ(SOCK_DGRAM, type);
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	ATF_CHECK_EQ(O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);
	for (i = 0; i < 10000; i++)
		valed_notify_ready(i, "");
	ATF_CHECK(strlen(heard()) > 0);
	close(manager);
	valed_notify_ready(1, "");
}

TEST(refused, "What is no path of a socket is wrong usage; nobody there is an \
error of the system")
{
	static const struct {
		const char *path;
		unsigned int len;
		int status;
	} rows[] = {
		{ "relative", 8, EX_USAGE },
		{ "", 0, EX_USAGE },
		{ "/none", 5, EX_OSERR },
		{ "@none", 5, EX_OSERR },
		/* With the NUL, as long as struct sockaddr_un permits. */
		{ "/x", 107, EX_OSERR },
		{ "/x", 108, EX_USAGE },
		{ "@x", 107, EX_OSERR },
		{ "@x", 108, EX_USAGE },
	};
	char path[128];
	unsigned int i;
	int status;

	for (i = 0; i < nitems(rows); i++) {
		memset(path, 'x', sizeof(path));
		memcpy(path, rows[i].path, strlen(rows[i].path));
		path[rows[i].len] = '\0';
		if (fork() == 0) {
			setenv("NOTIFY_SOCKET", path, 1);
			valed_notify_open();
			_exit(0);
		}
		ATF_REQUIRE(wait(&status) != -1 && WIFEXITED(status));
		ATF_CHECK_EQ_MSG(rows[i].status, WEXITSTATUS(status),
		    "%s: %d", path, WEXITSTATUS(status));
	}
}

TEST(abstract, "A name that begins with @ is in the abstract namespace")
{
	struct sockaddr_un sun = { AF_UNIX, "" };
	int n;

	n = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
	    "valed_notify_test-%d", getpid());
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	ATF_REQUIRE_EQ(0, bind(manager, (void *)&sun,
	    offsetof(struct sockaddr_un, sun_path) + 1 + n));
	snprintf(text, sizeof(text), "@%s", sun.sun_path + 1);
	setenv("NOTIFY_SOCKET", text, 1);
	valed_notify_open();
	valed_notify("%s", "x");
	ATF_CHECK_STREQ("x", heard());
}

TEST(none, "Without NOTIFY_SOCKET nothing is opened or sent")
{
	int fd;

	manage();
	unsetenv("NOTIFY_SOCKET");
	setenv("WATCHDOG_USEC", "2000000", 1);
	fd = open("/dev/null", O_RDONLY);
	close(fd);
	valed_notify_open();
	ATF_CHECK_EQ(-1, fcntl(fd, F_GETFD));
	valed_notify_watch();
	valed_notify_ready(1, "");
	ATF_CHECK_STREQ("", heard());
}

TEST(crowded, "At the end the manager's message waits for others of the user "
    "to receive their descriptors, and not before")
{
	const int fd = STDIN_FILENO;

	manage();
	valed_notify_open();
	crowded = 2;
	ATF_CHECK(valed_notify_fds(&fd, 1, true, "X=%d", 1));
	ATF_CHECK_STREQ("X=1", heard());
	crowded = 1;
	ATF_CHECK(!valed_notify_fds(&fd, 1, false, "X=2"));
	ATF_CHECK_STREQ("", heard());
}

TEST_PROGRAM
