/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Messages.  They go to stderr.  If that is the journal's, which is what
 * JOURNAL_STREAM says (systemd.exec(5)), each line starts with its priority, as
 * sd-daemon(3) has it.
 */

#include <sys/param.h>
#include <sys/stat.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "valed.h"

static bool	journal;

void
valed_log_init(void)
{
	static char name[] = "<3>valed";
	const char *stream;
	char expected[64];
	struct stat st;

	_Static_assert(LOG_ERR == 3, "the priority of what err(3) prints");
	stream = getenv("JOURNAL_STREAM");
	if (stream == NULL || fstat(STDERR_FILENO, &st) == -1)
		return;
	snprintf(expected, sizeof(expected), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	journal = strcmp(stream, expected) == 0;
	/* Lines of err(3) and warn(3) start with it. */
	if (journal)
		program_invocation_short_name = name;
}

void
valed_log(int priority, const char *name, const char *fmt, va_list ap)
{
	char line[256], prefix[sizeof("<0>")] = "";
	int n;

	if (journal)
		snprintf(prefix, sizeof(prefix), "<%d>", priority & 7);
	n = snprintf(line, sizeof(line), "%svaled: %s: ", prefix, name);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	n = MIN(n, (int)sizeof(line) - 1);
	line[n++] = '\n';
	/* Not through stdio, whose lock all threads share. */
	if (write(STDERR_FILENO, line, n) == -1)
		return;
}
