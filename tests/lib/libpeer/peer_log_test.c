/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Messages, byte by byte: how long they are, what begins them, and how many
 * there are in a second.  The linker's --wrap brings the system calls here.
 */

#include <sys/param.h>
#include <sys/stat.h>

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "peer_log.h"
#include "wrap.h"

#define	SIZE	256			/* of a line, with its newline */

static bool	catching;
static char	text[64 * SIZE];	/* what was written */
static size_t	text_len;
static unsigned int writes;
static time_t	now;
static struct stat status;		/* of standard error */
static bool	no_status;

WRAP(ssize_t, write, int fd, const void *buf, size_t len)
{
	if (!catching)
		return (__real_write(fd, buf, len));
	ATF_CHECK_EQ(STDERR_FILENO, fd);
	ATF_REQUIRE(text_len + len < sizeof(text));
	memcpy(text + text_len, buf, len);
	text_len += len;
	text[text_len] = '\0';
	writes++;
	return (len);
}

WRAP(int, fstat, int fd, struct stat *st)
{
	ATF_CHECK_EQ(STDERR_FILENO, fd);
	*st = status;
	return (no_status ? -1 : 0);
}

WRAP(int, vsnprintf, char *s, size_t size, const char *fmt, va_list ap)
{
	if (catching)
		ATF_CHECK_MSG(size < SIZE, "%zu bytes", size);
	return (__real_vsnprintf(s, size, fmt, ap));
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *ts)
{
	ATF_CHECK_EQ(CLOCK_MONOTONIC, clock);
	ts->tv_sec = now;
	ts->tv_nsec = 0;
	return (0);
}

static void __printflike(3, 4)
say(struct peer_log_source *ls, int priority, const char *fmt, ...)
{
	va_list ap;

	catching = true;
	va_start(ap, fmt);
	peer_log(ls, priority, "vm1", fmt, ap);
	va_end(ap);
	catching = false;
}

static void
left(struct peer_log_source *ls)
{
	catching = true;
	peer_log_left(ls, "vm1");
	catching = false;
}

/* This was written since the last check, with one call for each line. */
static void
wrote(unsigned int lines, const char *expected)
{
	ATF_CHECK_STREQ(expected, text);
	ATF_CHECK_EQ_MSG(lines, writes, "%u", writes);
	text[0] = '\0';
	text_len = 0;
	writes = 0;
}

/* The program's name is not the one that it was started by. */
static void
name_set(void)
{
	unsetenv("JOURNAL_STREAM");
	peer_log_init("valed");
}

TEST(lengths, "A line has the program's name, 255 characters at most, and "
    "always a newline")
{
	struct peer_log_source ls = { 0 };
	char expected[3 * SIZE], longer[3 * SIZE];
	const size_t head = strlen("valed: vm1: ");
	unsigned int i, n;

	say(&ls, LOG_ERR, "%s %d", "number", 7);
	wrote(1, "peer_log_test: vm1: number 7\n");
	name_set();
	say(&ls, LOG_ERR, "%s", "");
	wrote(1, "valed: vm1: \n");
	for (i = SIZE - 4; i < SIZE + 4; i++) {
		n = i == SIZE + 3 ? 2 * SIZE : i;
		now++;
		memset(longer, 'x', n - head);
		longer[n - head] = '\0';
		snprintf(expected, sizeof(expected), "valed: vm1: %s", longer);
		strcpy(expected + MIN(n, SIZE - 1), "\n");
		say(&ls, LOG_ERR, "%s", longer);
		wrote(1, expected);
	}
}

TEST(control, "A line has no control characters that others have written, nor "
    "another line")
{
	struct peer_log_source ls = { .pls_lines = 0 };

	peer_log_init("x");
	say(&ls, LOG_INFO, "%s", "a\033[2J\n<0>b\t\x7f\xc2\x85\xc3\xa4");
	ATF_CHECK_STREQ("x: vm1: a?[2J?<0>b\t??\x85\xc3\xa4\n", text);
}

TEST(seconds, "Ten lines in a second; one line says how many more there were, "
    "and counts as one")
{
	struct peer_log_source ls = { 0 }, other = { 0 };
	char expected[SIZE];
	unsigned int i, second;

	name_set();
	for (second = 0; second < 3; second++) {
		now = second * 1000;
		for (i = 0; i < 10; i++) {
			/* That there were others has taken one. */
			say(&ls, LOG_ERR, "%u", i);
			if (second > 0 && i == 9) {
				wrote(0, "");
				continue;
			}
			snprintf(expected, sizeof(expected), "%svaled: vm1: "
			    "%u\n", i > 0 || second == 0 ? "" :
			    second == 1 ? "valed: vm1: 2 lines left out\n" :
			    "valed: vm1: 3 lines left out\n", i);
			wrote(second > 0 && i == 0 ? 2 : 1, expected);
		}
		for (i = 0; i < 2; i++) {
			say(&ls, LOG_ERR, "more");
			wrote(0, "");
			left(&ls);
			wrote(0, "");
		}
	}
	ATF_CHECK_EQ(3, ls.pls_left);
	/* Another source has lines of its own. */
	say(&other, LOG_ERR, "other");
	wrote(1, "valed: vm1: other\n");
	left(&other);
	wrote(0, "");
	/* Without another line. */
	now++;
	left(&ls);
	wrote(1, "valed: vm1: 3 lines left out\n");
	left(&ls);
	wrote(0, "");
	for (i = 0; i < 9; i++)
		say(&ls, LOG_ERR, "x");
	ATF_CHECK_EQ(9, writes);
	say(&ls, LOG_ERR, "y");
	ATF_CHECK_EQ(9, writes);
	/* The clock is not the time of day, and may stand at any second. */
	text[0] = '\0';
	text_len = writes = 0;
	now = 5;
	say(&ls, LOG_ERR, "z");
	wrote(2, "valed: vm1: 1 lines left out\nvaled: vm1: z\n");
}

/* JOURNAL_STREAM is, or is not, standard error. */
static void
stream(const char *value, bool is)
{
	const char *name = program_invocation_short_name;
	struct peer_log_source ls = { 0 };

	if (value == NULL)
		unsetenv("JOURNAL_STREAM");
	else
		setenv("JOURNAL_STREAM", value, 1);
	peer_log_init("valed");
	say(&ls, LOG_DEBUG, "x");
	wrote(1, is ? "<7>valed: vm1: x\n" : "valed: vm1: x\n");
	ATF_CHECK_STREQ(is ? "<3>valed" : name, program_invocation_short_name);
	program_invocation_short_name = __DECONST(char *, name);
}

TEST(journal, "In the journal a line has a priority, without a facility, also "
    "one of err(3); elsewhere none")
{
	struct peer_log_source ls = { 0 };
	char longer[SIZE + 1], expected[2 * SIZE];

	status.st_dev = UINT32_MAX;
	status.st_ino = UINT64_MAX;
	stream(NULL, false);
	stream("", false);
	stream("4294967295:1", false);
	stream("4294967295:184467440737095516150", false);
	stream("14294967295:18446744073709551615", false);
	no_status = true;
	stream("4294967295:18446744073709551615", false);
	no_status = false;
	stream("4294967295:18446744073709551615", true);
	say(&ls, LOG_DAEMON | LOG_ERR, "x");
	wrote(1, "<3>valed: vm1: x\n");
	say(&ls, LOG_EMERG, "x");
	wrote(1, "<0>valed: vm1: x\n");
	ls.pls_left = 5;
	left(&ls);
	wrote(1, "<4>valed: vm1: 5 lines left out\n");
	/* The priority is part of the line. */
	memset(longer, 'x', SIZE);
	longer[SIZE] = '\0';
	snprintf(expected, sizeof(expected), "<6>valed: vm1: %s", longer);
	strcpy(expected + SIZE - 1, "\n");
	say(&ls, LOG_INFO, "%s", longer);
	wrote(1, expected);
	stream("1:1", false);
}

TEST_PROGRAM
