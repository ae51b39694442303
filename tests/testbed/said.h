/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* What a test case, or its children, write to standard error. */

#ifndef _SAID_H_
#define	_SAID_H_

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atf-c.h>

static int	said_fd, said_stderr;

/* From now on it goes into a file of the working directory, until said(). */
static inline void
said_start(void)
{
	fflush(stdout);
	said_fd = open("said", O_RDWR | O_CREAT | O_TRUNC | O_APPEND |
	    O_CLOEXEC, 0600);
	said_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	ATF_REQUIRE(said_fd != -1 && said_stderr != -1);
	ATF_REQUIRE(dup2(said_fd, STDERR_FILENO) != -1);
}

/* What was written since said_start(). */
static inline const char *
said(void)
{
	static char text[4096];
	ssize_t n;

	ATF_REQUIRE(dup2(said_stderr, STDERR_FILENO) != -1);
	n = pread(said_fd, text, sizeof(text) - 1, 0);
	ATF_REQUIRE(n >= 0);
	text[n] = '\0';
	close(said_fd);
	close(said_stderr);
	return (text);
}

#endif /* !_SAID_H_ */
