/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What passes through stdio to stderr: without control characters, which texts
 * of files may have.  And the first error of a reload, for who has asked for
 * it: the functions that read the configuration print one with err(3) or
 * warn(3), and may exit.
 */

#include <sys/param.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peer_log.h"
#include "valed_error.h"

static char	error_first[VALED_WHY_SIZE];
static int	error_fd = -1;		/* where it is sent, too */

/* Remember a line, without the program's name and the newline. */
static void
error_keep(const char *line, size_t len)
{
	const char *program = program_invocation_short_name;
	const size_t prefix = strlen(program);
	const char *newline;

	if (len > prefix + 2 && memcmp(line, program, prefix) == 0 &&
	    memcmp(line + prefix, ": ", 2) == 0) {
		line += prefix + 2;
		len -= prefix + 2;
	}
	newline = memchr(line, '\n', len);
	if (newline != NULL)
		len = newline - line;
	len = MIN(len, sizeof(error_first) - 1);
	memcpy(error_first, line, len);
	error_first[len] = '\0';
	/* If that fails, there is no other guard any more. */
	if (error_fd != -1)
		(void)!write(error_fd, error_first, len);
}

/* Write what is printed; see fopencookie(3). */
static ssize_t
error_write(void *cookie __unused, const char *p, size_t len)
{
	char text[4096];
	size_t done, n;

	for (done = 0; done < len; done += n) {
		n = MIN(len - done, sizeof(text));
		memcpy(text, p + done, n);
		peer_log_clean(text, n, true);
		if (error_first[0] == '\0')
			error_keep(text, n);
		if (write(STDERR_FILENO, text, n) != (ssize_t)n)
			break;
	}
	return ((ssize_t)done);
}

void
valed_error_begin(int fd)
{
	static char buf[4096];
	static FILE *f;

	error_first[0] = '\0';
	error_fd = fd;
	if (f != NULL)
		return;
	f = fopencookie(NULL, "w",
	    (cookie_io_functions_t){ .write = error_write });
	/* Without memory for it, lines are printed all the same. */
	if (f == NULL)
		return;
	/* A line is written at once. */
	setvbuf(f, buf, _IOLBF, sizeof(buf));
	stderr = f;
}

void
valed_error_note(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	peer_log_clean(line, strlen(line), false);
	dprintf(STDERR_FILENO, "%s: %s\n", program_invocation_short_name, line);
}

void
valed_error_set(const char *fmt, ...)
{
	va_list ap;

	if (error_first[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(error_first, sizeof(error_first), fmt, ap);
	va_end(ap);
}

const char *
valed_error(void)
{
	return (error_first);
}
