/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The first error: what is remembered, sent and printed.
 */

#include <sys/param.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "test.h"
#include "valed_error.h"

static int	fds[2];			/* where it is sent */
static int	out;			/* standard error */
static bool	no_memory;

FILE	*__real_fopencookie(void *cookie, const char *mode,
	    cookie_io_functions_t io);
FILE	*__wrap_fopencookie(void *cookie, const char *mode,
	    cookie_io_functions_t io);

FILE *
__wrap_fopencookie(void *cookie, const char *mode, cookie_io_functions_t io)
{
	return (no_memory ? NULL : __real_fopencookie(cookie, mode, io));
}

static void
start(void)
{
	ATF_REQUIRE_EQ(0, pipe2(fds, O_NONBLOCK));
	out = open("err", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
	ATF_REQUIRE(out != -1);
	ATF_REQUIRE(dup2(out, STDERR_FILENO) != -1);
	valed_error_begin(fds[1]);
}

/* What was sent, and what was printed, since the last time. */
static void
sent(const char *expected)
{
	char text[4096];
	ssize_t n = read(fds[0], text, sizeof(text) - 1);

	text[MAX(n, 0)] = '\0';
	ATF_CHECK_STREQ(expected, text);
}

static void
printed(const char *expected)
{
	char text[4096];
	ssize_t n = pread(out, text, sizeof(text) - 1, 0);

	ATF_REQUIRE(n >= 0);
	text[n] = '\0';
	ATF_CHECK_STREQ(expected, text);
	ATF_REQUIRE_EQ(0, ftruncate(out, 0));
}

TEST(first, "The first line is remembered and sent, and all are printed")
{
	start();
	ATF_CHECK_STREQ("", valed_error());
	errno = ENOENT;
	warn("a.conf:%d", 7);
	ATF_CHECK_STREQ("a.conf:7: No such file or directory", valed_error());
	sent("a.conf:7: No such file or directory");
	warnx("second");
	valed_error_set("third");
	ATF_CHECK_STREQ("a.conf:7: No such file or directory", valed_error());
	sent("");
	printed("valed_error_test: a.conf:7: No such file or directory\n"
	    "valed_error_test: second\n");
	/* Again. */
	valed_error_begin(fds[1]);
	ATF_CHECK_STREQ("", valed_error());
	sent("");
	fprintf(stderr, "no program's: name\nnext\n");
	ATF_CHECK_STREQ("no program's: name", valed_error());
	sent("no program's: name");
	printed("no program's: name\nnext\n");
	/* Nowhere. */
	valed_error_begin(-1);
	warnx("x");
	ATF_CHECK_STREQ("x", valed_error());
	sent("");
	printed("valed_error_test: x\n");
}

TEST(set, "An error that others have printed is the first one, too")
{
	start();
	valed_error_set("%s:%d", "a", 1);
	ATF_CHECK_STREQ("a:1", valed_error());
	warnx("second");
	ATF_CHECK_STREQ("a:1", valed_error());
	sent("");
	printed("valed_error_test: second\n");
}

TEST(name, "The program's name is not part of it, as the journal has it, "
    "either")
{
	static char program[] = "<3>valed";

	program_invocation_short_name = program;
	start();
	warnx("x");
	ATF_CHECK_STREQ("x", valed_error());
	printed("<3>valed: x\n");
	valed_error_begin(-1);
	fprintf(stderr, "<3>valedx: y\n");
	ATF_CHECK_STREQ("<3>valedx: y", valed_error());
	valed_error_begin(-1);
	fprintf(stderr, "<3>valed\n");
	ATF_CHECK_STREQ("<3>valed", valed_error());
}

TEST(lengths, "A long error is cut, not what is printed")
{
	static const size_t lengths[] = { 510, 511, 512, 3000 };
	char expected[4096], text[4096];
	unsigned int i;

	start();
	memset(text, 'x', sizeof(text));
	for (i = 0; i < nitems(lengths); i++) {
		text[lengths[i]] = '\0';
		valed_error_begin(fds[1]);
		warnx("%s", text);
		snprintf(expected, sizeof(expected), "%.511s", text);
		ATF_CHECK_STREQ(expected, valed_error());
		sent(expected);
		snprintf(expected, sizeof(expected), "valed_error_test: %s\n",
		    text);
		printed(expected);
		valed_error_begin(fds[1]);
		valed_error_set("%s", text);
		snprintf(expected, sizeof(expected), "%.511s", text);
		ATF_CHECK_STREQ(expected, valed_error());
		text[lengths[i]] = 'x';
	}
}

TEST(control, "A terminal gets no control characters of others; letters, tabs "
    "and ends of lines stay")
{
	char text[9000];

	start();
	warnx("a\033[2Jb\r\x7f\t\xc2\x9b\xc3\xa4\xc2\xa0");
	sent("a?[2Jb??\t?\x9b\xc3\xa4\xc2\xa0");
	printed("valed_error_test: a?[2Jb??\t?\x9b\xc3\xa4\xc2\xa0\n");
	valed_error_note("x\033x");
	printed("valed_error_test: x?x\n");
	/* More than is written at once. */
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	warnx("%s", text);
	ATF_CHECK_EQ(18 + 8999 + 1, lseek(out, 0, SEEK_END));
}

TEST(exits, "What ends the process is sent")
{
	int status;

	start();
	fflush(stdout);
	if (fork() == 0)
		errx(7, "the end");
	ATF_REQUIRE(wait(&status) != -1);
	ATF_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	sent("the end");
	printed("valed_error_test: the end\n");
}

TEST(memory, "Without memory lines are printed, and the next time it is tried "
    "again")
{
	no_memory = true;
	start();
	warnx("x");
	ATF_CHECK_STREQ("", valed_error());
	sent("");
	printed("valed_error_test: x\n");
	no_memory = false;
	valed_error_begin(fds[1]);
	warnx("y");
	sent("y");
	printed("valed_error_test: y\n");
}

TEST_PROGRAM
