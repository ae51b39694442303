/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Messages to the service manager, systemd(1); see sd_notify(3).  The functions
 * of libsystemd connect for each message, which the sandbox prohibits, so the
 * socket is opened here, once, before it.
 *
 * A manager that does not read loses messages, when its socket is full; valed
 * does not wait for it.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "peer_fds.h"
#include "valed_notify.h"
#include "valed_store.h"

/* The main thread checks its adapters once a second. */
#define	WATCHDOG_MIN_US	2000000
/* How long to wait for the manager to read. */
#define	MANAGER_MS	5000

static int	notify_fd = -1;
static bool	notify_watchdog;

/* Return whether the manager's watchdog waits for this process. */
static bool
watchdog(void)
{
	const char *pid, *us;

	us = getenv("WATCHDOG_USEC");
	pid = getenv("WATCHDOG_PID");
	if (us == NULL || (pid != NULL && atoi(pid) != getpid()))
		return (false);
	if (strtoull(us, NULL, 10) < WATCHDOG_MIN_US)
		warnx("WATCHDOG_USEC=%s: valed reports once a second", us);
	return (true);
}

void
valed_notify_open(void)
{
	struct sockaddr_un sun;
	const char *path;
	size_t len;

	path = getenv("NOTIFY_SOCKET");
	if (path == NULL)
		return;
	memset(&sun, 0, sizeof(sun));
	sun.sun_family = AF_UNIX;
	len = strlen(path);
	if ((*path != '/' && *path != '@') || len >= sizeof(sun.sun_path))
		errx(EX_USAGE, "NOTIFY_SOCKET=%s: not the path of a socket",
		    path);
	memcpy(sun.sun_path, path, len);
	if (*path == '@')
		sun.sun_path[0] = '\0';
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (notify_fd == -1 || connect(notify_fd, (struct sockaddr *)&sun,
	    offsetof(struct sockaddr_un, sun_path) + len) == -1)
		err(EX_OSERR, "NOTIFY_SOCKET=%s", path);
	notify_watchdog = watchdog();
}

bool
valed_notify_wanted(void)
{
	return (notify_fd != -1);
}

void
valed_notify(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	if (notify_fd == -1)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* The manager listens to the process that it has started. */
	if (valed_store_active()) {
		valed_store_tell(VALED_STORE_NOTIFY, text);
		return;
	}
	if (send(notify_fd, text, MIN(n, (int)sizeof(text) - 1),
	    MSG_NOSIGNAL) == -1)
		return;
}

bool
valed_notify_fds(const int *fds, unsigned int n, bool wait,
    const char *fmt, ...)
{
	struct pollfd pfd = { .fd = notify_fd, .events = POLLOUT };
	char text[512];
	va_list ap;

	if (notify_fd == -1)
		return (false);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	while (peer_fds_send(notify_fd, text, strlen(text), fds, n,
	    wait ? PEER_FDS_WAIT_LIMIT : PEER_FDS_WAIT_NOT) == -1)
		if (errno != EAGAIN || !wait || poll(&pfd, 1, MANAGER_MS) == 0)
			return (false);
	return (true);
}

void
valed_notify_barrier(void)
{
	struct pollfd pfd = { .events = 0 };
	int fds[2];

	if (notify_fd == -1 || pipe2(fds, O_CLOEXEC) == -1)
		return;
	/* sd_notify_barrier(3): the manager closes it when it reads that. */
	(void)valed_notify_fds(&fds[1], 1, true, "BARRIER=1");
	close(fds[1]);
	pfd.fd = fds[0];
	while (poll(&pfd, 1, MANAGER_MS) == -1 && errno == EINTR)
		continue;
	close(fds[0]);
}

void
valed_notify_reloading(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	valed_notify("RELOADING=1\nMONOTONIC_USEC=%ju",
	    (uintmax_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
}

void
valed_notify_ready(unsigned int nadapters, const char *why)
{
	valed_notify("READY=1\nSTATUS=Serving %u adapter%s.%s%s", nadapters,
	    nadapters == 1 ? "" : "s", why[0] == '\0' ? "" :
	    " The last reload failed: ", why);
}

void
valed_notify_watch(void)
{
	if (notify_watchdog)
		valed_notify("WATCHDOG=1");
}
