/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Runs a shell command in a guest, and returns its output and status.
 *
 *	gctl [-w] [-t seconds] socket command
 *
 * The socket is that of the guest's second serial port, which init reads.  A
 * request is one line, "tag command", with newlines in the command replaced by
 * unit separators (037); the answer is a line "+tag", the command's output, and
 * a line "-tag status".  Every request has a new tag, so that the answer to an
 * earlier one is not taken for this one's.
 *
 * While no answer comes, gctl sends an empty line every second, which init
 * ignores: a guest under load may lose an interrupt of the serial port, and
 * reads the line before with the next one.  Nothing is sent before QEMU has
 * handed all that was sent before to the serial port: what waits would be so
 * many commands more for a guest that starts slowly.
 *
 * With -w the guest may still be booting: gctl first repeats a request that
 * does nothing until it is answered.
 *
 * Exit status: the command's; 124 if it took longer than the deadline, 60
 * seconds or that of -t; 125 if the guest has ended.
 */

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <linux/sockios.h>

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define	EXIT_TIMEOUT	124
#define	EXIT_GONE	125

#define	NUDGE_MS	1000

/* A line of the answer; a longer one is truncated. */
static char line[65536];
static size_t line_len;

static long
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * 1000L + ts.tv_nsec / 1000000L);
}

/* Returns a connected socket, or -1 with errno. */
static int
dial(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int error, s;

	if (strlen(path) >= sizeof(sun.sun_path))
		errx(2, "%s: too long", path);
	strcpy(sun.sun_path, path);
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return (-1);
	if (connect(s, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return (s);
	error = errno;
	close(s);
	errno = error;
	return (-1);
}

static void
put(int s, const char *text, size_t len)
{
	ssize_t n;

	for (; len > 0; text += n, len -= (size_t)n) {
		n = send(s, text, len, MSG_NOSIGNAL);
		if (n < 0)
			err(EXIT_GONE, "guest");
	}
}

/* How much of what was sent QEMU has not yet read. */
static int
unread(int s)
{
	int n;

	if (ioctl(s, SIOCOUTQ, &n) != 0)
		err(1, "SIOCOUTQ");
	return (n);
}

static void
request(int s, const char *tag, const char *cmd)
{
	char *p, *text;
	size_t len;

	/* The first newline ends what is left of an earlier request. */
	len = strlen(tag) + strlen(cmd) + 4;
	text = malloc(len);
	if (text == NULL)
		err(1, "malloc");
	len = (size_t)snprintf(text, len, "\n%s %s\n", tag, cmd);
	for (p = text + 1; p < text + len - 1; p++)
		if (*p == '\n')
			*p = '\037';
	put(s, text, len);
	free(text);
}

/*
 * Reads from the guest and prints the lines of the answer.  Returns the
 * command's status at its end, -1 before.
 */
static int
answer(int s, const char *tag, int *begun)
{
	char buf[4096];
	size_t tag_len;
	ssize_t i, n;
	int status;

	tag_len = strlen(tag);
	n = recv(s, buf, sizeof(buf), 0);
	if (n <= 0)
		errx(EXIT_GONE, "guest is gone");
	for (i = 0; i < n; i++) {
		if (buf[i] != '\n') {
			if (line_len < sizeof(line) - 1)
				line[line_len++] = buf[i];
			continue;
		}
		line[line_len] = '\0';
		line_len = 0;
		if (!*begun) {
			*begun = line[0] == '+' && strcmp(line + 1, tag) == 0;
			continue;
		}
		if (line[0] == '-' && strncmp(line + 1, tag, tag_len) == 0 &&
		    sscanf(line + 1 + tag_len, " %d", &status) == 1)
			return (status);
		if (line[0] != '\0')
			puts(line);
	}
	return (-1);
}

/*
 * Sends a request, every resend_ms unless that is 0, and waits for the answer
 * until the deadline.  Returns the command's status or EXIT_TIMEOUT.
 */
static int
ask(int s, const char *cmd, long resend_ms, long deadline)
{
	static unsigned int count;
	struct pollfd pfd = { .fd = s, .events = POLLIN };
	char tag[48];
	long next, t;
	int begun, status;

	snprintf(tag, sizeof(tag), "%d.%ld.%u", (int)getpid(), now_ms(),
	    count++);
	begun = 0;
	status = -1;
	next = 0;
	while (status < 0) {
		t = now_ms();
		if (t >= deadline) {
			warnx("%s: the guest has %s", cmd, begun ? "begun" :
			    unread(s) == 0 ? "been asked" :
			    "not read all of the request");
			return (EXIT_TIMEOUT);
		}
		if (!begun && t >= next) {
			if (next == 0 || unread(s) == 0)
				request(s, tag, cmd);
			next = resend_ms != 0 ? t + resend_ms : deadline;
		}
		t = (begun || next > deadline ? deadline : next) - t;
		if (poll(&pfd, 1, t < NUDGE_MS ? (int)t + 1 : NUDGE_MS) > 0)
			status = answer(s, tag, &begun);
		else if ((begun || resend_ms == 0) && unread(s) == 0)
			put(s, "\n", 1);
	}
	return (status);
}

int
main(int argc, char **argv)
{
	const char *cmd, *path;
	long deadline;
	int ch, s, status, wait;

	deadline = 60;
	wait = 0;
	while ((ch = getopt(argc, argv, "t:w")) != -1)
		switch (ch) {
		case 't':
			deadline = atol(optarg);
			break;
		case 'w':
			wait = 1;
			break;
		default:
			return (2);
		}
	if (argc - optind != 2 || deadline <= 0)
		errx(2, "usage: gctl [-w] [-t seconds] socket command");
	path = argv[optind];
	cmd = argv[optind + 1];
	deadline = now_ms() + deadline * 1000;

	while ((s = dial(path)) < 0) {
		if (!wait)
			err(EXIT_GONE, "%s", path);
		if (now_ms() >= deadline)
			errx(EXIT_TIMEOUT, "%s: not there", path);
		usleep(50000);
	}
	if (wait && ask(s, "true", 500, deadline) == EXIT_TIMEOUT)
		errx(EXIT_TIMEOUT, "%s: the guest did not start", path);
	status = ask(s, cmd, 0, deadline);
	fflush(stdout);
	if (status == EXIT_TIMEOUT)
		warnx("timed out: %s", cmd);
	return (status);
}
