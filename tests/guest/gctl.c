/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Runs a shell command in a guest, and returns its output and status.
 *
 *	gctl [-w] [-t seconds] socket command
 *	gctl -c [since]
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
 * The guest's console, NAME.log beside the socket NAME.ctl, may say that its
 * kernel has failed.  Then no answer is waited for, except with -w.
 *
 * Seconds of a deadline are those in which the processes of the test, named by
 * the files *.pid, have a processor or do not want one.  On a busy machine they
 * wait for one most of the time, and a fifth of all time counts at least.  With
 * -c gctl prints the time as it counts, or how many seconds have passed since
 * it printed that.
 *
 * Exit status: the command's; 124 if it took longer than the deadline, 60
 * seconds or that of -t; 125 if the guest has ended, or its kernel has failed.
 */

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <linux/sockios.h>

#include <err.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
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
#define	THREADS_MAX	256

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

/*
 * The time, and how long each thread of the test has waited for a processor
 * until then, in ms: schedstat's second number.
 */
struct clock {
	long	ms;
	int	n;
	struct {
		long	tid, ms;
	}	wait[THREADS_MAX];
};

static void
clock_read_pid(struct clock *c, const char *file)
{
	unsigned long long ns;
	char path[128];
	glob_t g;
	FILE *f;
	size_t i;
	int pid;

	f = fopen(file, "r");
	if (f == NULL)
		return;
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/task/*/schedstat", pid);
	if (glob(path, 0, NULL, &g) != 0)
		return;
	for (i = 0; i < g.gl_pathc && c->n < THREADS_MAX; i++) {
		f = fopen(g.gl_pathv[i], "r");
		if (f == NULL)
			continue;
		if (fscanf(f, "%*u %llu", &ns) == 1) {
			c->wait[c->n].tid = atol(strstr(g.gl_pathv[i],
			    "/task/") + 6);
			c->wait[c->n++].ms = (long)(ns / 1000000);
		}
		fclose(f);
	}
	globfree(&g);
}

static void
clock_read(struct clock *c)
{
	glob_t g;
	size_t i;

	c->ms = now_ms();
	c->n = 0;
	if (glob("*.pid", 0, NULL, &g) != 0)
		return;
	for (i = 0; i < g.gl_pathc; i++)
		clock_read_pid(c, g.gl_pathv[i]);
	globfree(&g);
}

/* Returns how many ms that count have passed since then. */
static long
clock_passed(const struct clock *then)
{
	static struct clock c;
	long ms, most = 0;
	int i, j;

	clock_read(&c);
	for (i = 0; i < c.n; i++)
		for (j = 0; j < then->n; j++)
			if (c.wait[i].tid == then->wait[j].tid &&
			    c.wait[i].ms - then->wait[j].ms > most)
				most = c.wait[i].ms - then->wait[j].ms;
	ms = c.ms - then->ms;
	return (ms - most > ms / 5 ? ms - most : ms / 5);
}

/* The time as a word, and back. */
static void
clock_print(const struct clock *c)
{
	int i;

	printf("%ld", c->ms);
	for (i = 0; i < c->n; i++)
		printf(",%ld:%ld", c->wait[i].tid, c->wait[i].ms);
	printf("\n");
}

static void
clock_parse(struct clock *c, const char *text)
{
	char *p;

	c->ms = strtol(text, &p, 10);
	for (c->n = 0; *p == ',' && c->n < THREADS_MAX; c->n++) {
		c->wait[c->n].tid = strtol(p + 1, &p, 10);
		c->wait[c->n].ms = *p == ':' ? strtol(p + 1, &p, 10) : 0;
	}
}

/* Open the console's log, to read what the guest writes from now on. */
static FILE *
console_open(const char *path)
{
	char log[128];
	FILE *f;

	snprintf(log, sizeof(log), "%.*s.log",
	    (int)strcspn(path, "."), path);
	f = fopen(log, "r");
	if (f != NULL)
		fseek(f, 0, SEEK_END);
	return (f);
}

/* Ends the program if the guest's kernel has said that it has failed. */
static void
console_look(FILE *f)
{
	static const char *const failed[] = { "Kernel panic", "Oops: ",
	    "BUG: " };
	char text[256];
	size_t i;

	if (f == NULL)
		return;
	clearerr(f);
	while (fgets(text, sizeof(text), f) != NULL)
		for (i = 0; i < sizeof(failed) / sizeof(failed[0]); i++)
			if (strstr(text, failed[i]) != NULL)
				errx(EXIT_GONE, "guest: %s", text);
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
 * until the deadline: deadline_ms after `start'.  Returns the command's status
 * or EXIT_TIMEOUT.
 */
static int
ask(int s, const char *cmd, long resend_ms, const struct clock *start,
    long deadline_ms, FILE *console)
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
		if (clock_passed(start) >= deadline_ms) {
			warnx("%s: the guest has %s", cmd, begun ? "begun" :
			    unread(s) == 0 ? "been asked" :
			    "not read all of the request");
			return (EXIT_TIMEOUT);
		}
		if (!begun && t >= next) {
			if (next == 0 || unread(s) == 0)
				request(s, tag, cmd);
			next = resend_ms != 0 ? t + resend_ms : LONG_MAX;
		}
		t = begun ? NUDGE_MS : next - t;
		if (poll(&pfd, 1, t < NUDGE_MS ? (int)t + 1 : NUDGE_MS) > 0) {
			status = answer(s, tag, &begun);
			continue;
		}
		console_look(console);
		if ((begun || resend_ms == 0) && unread(s) == 0)
			put(s, "\n", 1);
	}
	return (status);
}

static void
clock_main(const char *since)
{
	static struct clock c;

	if (since == NULL) {
		clock_read(&c);
		clock_print(&c);
	} else {
		clock_parse(&c, since);
		printf("%ld\n", clock_passed(&c) / 1000);
	}
}

int
main(int argc, char **argv)
{
	static struct clock start;
	const char *cmd, *path;
	long deadline;
	int ch, s, status, wait;

	deadline = 60;
	wait = 0;
	while ((ch = getopt(argc, argv, "ct:w")) != -1)
		switch (ch) {
		case 'c':
			clock_main(argv[optind]);
			return (0);
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
	deadline *= 1000;
	clock_read(&start);

	while ((s = dial(path)) < 0) {
		if (!wait)
			err(EXIT_GONE, "%s", path);
		if (clock_passed(&start) >= deadline)
			errx(EXIT_TIMEOUT, "%s: not there", path);
		usleep(50000);
	}
	if (wait && ask(s, "true", 500, &start, deadline, NULL) == EXIT_TIMEOUT)
		errx(EXIT_TIMEOUT, "%s: the guest did not start", path);
	status = ask(s, cmd, 0, &start, deadline,
	    wait ? NULL : console_open(path));
	fflush(stdout);
	if (status == EXIT_TIMEOUT)
		warnx("timed out: %s", cmd);
	return (status);
}
