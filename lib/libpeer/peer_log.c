/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Messages: peer_log.h.  They go to stderr.  If that is the journal's, which
 * is what JOURNAL_STREAM says (systemd.exec(5)), each line starts with its
 * priority, as sd-daemon(3) has it.
 */

#include <sys/param.h>
#include <sys/stat.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "peer_log.h"

static bool	journal;
static const char *program;	/* NULL: as it was started */

void
peer_log_init(const char *name)
{
	static char prefixed[sizeof("<3>") + 15];
	const char *stream;
	char expected[64];
	struct stat st;

	_Static_assert(LOG_ERR == 3, "the priority of what err(3) prints");
	program = name;
	stream = getenv("JOURNAL_STREAM");
	if (stream == NULL || fstat(STDERR_FILENO, &st) == -1)
		return;
	snprintf(expected, sizeof(expected), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino);
	journal = strcmp(stream, expected) == 0;
	/* Lines of err(3) and warn(3) start with it. */
	if (!journal)
		return;
	snprintf(prefixed, sizeof(prefixed), "<3>%s", name);
	program_invocation_short_name = prefixed;
}

void
peer_log_clean(char *text, size_t len, bool lines)
{
	unsigned char *p = (unsigned char *)text, *end = p + len;

	for (; p < end; p++)
		if ((*p < ' ' && *p != '\t' && (*p != '\n' || !lines)) ||
		    *p == 0x7f ||
		    /* In UTF-8, U+0080 to U+009F; alone it is no UTF-8. */
		    (*p == 0xc2 && p + 1 < end && p[1] < 0xa0))
			*p = '?';
}

static void
log_write(int priority, const char *name, const char *fmt, va_list ap)
{
	char line[256], prefix[sizeof("<0>")] = "";
	int n;

	if (journal)
		snprintf(prefix, sizeof(prefix), "<%d>", priority & 7);
	n = snprintf(line, sizeof(line), "%s%s: %s: ", prefix,
	    program != NULL ? program : program_invocation_short_name, name);
	n += vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	n = MIN(n, (int)sizeof(line) - 1);
	peer_log_clean(line, (size_t)n, false);
	line[n++] = '\n';
	/* Not through stdio, whose lock all threads share. */
	if (write(STDERR_FILENO, line, n) == -1)
		return;
}

static void
log_line(int priority, const char *name, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_write(priority, name, fmt, ap);
	va_end(ap);
}

/* Return whether a line may be written now. */
static bool
log_space(struct peer_log_source *ls)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	if ((uint64_t)ts.tv_sec != ls->pls_second) {
		ls->pls_second = ts.tv_sec;
		ls->pls_lines = 0;
	}
	return (ls->pls_lines < PEER_LOG_LINES);
}

void
peer_log_left(struct peer_log_source *ls, const char *name)
{
	if (ls->pls_left == 0 || !log_space(ls))
		return;
	ls->pls_lines++;
	log_line(LOG_WARNING, name, "%u lines left out", ls->pls_left);
	ls->pls_left = 0;
}

void
peer_log(struct peer_log_source *ls, int priority, const char *name,
    const char *fmt, va_list ap)
{
	peer_log_left(ls, name);
	if (!log_space(ls)) {
		ls->pls_left++;
		return;
	}
	ls->pls_lines++;
	log_write(priority, name, fmt, ap);
}
