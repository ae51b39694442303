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
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "valed_notify.h"

static int	manager;
static char	text[1024];

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
	const ssize_t n = recv(manager, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = '\0';
	return (text);
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

TEST_PROGRAM
