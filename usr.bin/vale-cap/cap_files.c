/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See cap_files.h.
 */

#include <sys/param.h>
#include <sys/stat.h>

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "cap_files.h"

#define	NS		1000000000ULL
#define	NS_MS		1000000

static uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ts.tv_sec * NS + ts.tv_nsec);
}

/* Return whether files are numbered: not if only the time tells them apart. */
static bool
files_numbered(const struct cap_files *cf)
{
	return (cf->cf_bytes > 0 ||
	    (cf->cf_seconds > 0 && strchr(cf->cf_name, '%') == NULL));
}

/* Return whether the last files stay, instead of the first. */
static bool
files_ring(const struct cap_files *cf)
{
	return (cf->cf_bytes > 0 && cf->cf_max > 0);
}

/* Return how many digits the greatest number has. */
static int
files_digits(const struct cap_files *cf)
{
	uint32_t n;
	int digits = 0;

	if (cf->cf_max > 0)
		for (n = cf->cf_max - 1; n > 0; n /= 10)
			digits++;
	return (digits);
}

/* Return the name of the file that begins now. */
static char *
files_path(const struct cap_files *cf)
{
	char base[PATH_MAX], *path;
	const time_t now = time(NULL);
	const int digits = files_digits(cf);
	uint32_t n = cf->cf_number;
	struct tm tm;
	int r;

	if (strlen(cf->cf_name) >= sizeof(base))
		errx(EX_USAGE, "-w: the name is too long");
	strcpy(base, cf->cf_name);
	if (cf->cf_seconds > 0 && (localtime_r(&now, &tm) == NULL ||
	    strftime(base, sizeof(base), cf->cf_name, &tm) == 0))
		errx(EX_USAGE, "-w %s: no name with a time", cf->cf_name);
	if (cf->cf_max > 0)
		n %= cf->cf_max;
	if (!files_numbered(cf) || (n == 0 && digits == 0))
		r = asprintf(&path, "%s", base);
	else
		r = asprintf(&path, "%s%0*u", base, digits, n);
	if (r == -1)
		errx(EX_OSERR, "out of memory");
	return (path);
}

/* Create a file: only its owner may read what others have sent. */
static FILE *
file_create(const char *path)
{
	FILE *f;
	int fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
	    S_IRUSR | S_IWUSR);
	f = fd != -1 ? fdopen(fd, "w") : NULL;
	if (f == NULL)
		err(EX_CANTCREAT, "%s", path);
	return (f);
}

/* Remove the file that was written cf_max files before. */
static void
files_keep(struct cap_files *cf)
{
	char **kept = &cf->cf_kept[cf->cf_number % cf->cf_max];

	if (*kept != NULL && strcmp(*kept, cf->cf_path) != 0)
		(void)unlink(*kept);
	free(*kept);
	*kept = strdup(cf->cf_path);
	if (*kept == NULL)
		errx(EX_OSERR, "out of memory");
}

static void
files_begin(struct cap_files *cf)
{
	cf->cf_path = files_path(cf);
	cf->cf_file = file_create(cf->cf_path);
	if (cf->cf_kept != NULL)
		files_keep(cf);
	if (cf->cf_seconds > 0)
		cf->cf_end_ns = clock_ns() + cf->cf_seconds * NS;
}

void
cap_files_open(struct cap_files *cf)
{
	if (strcmp(cf->cf_name, "-") == 0) {
		if (isatty(STDOUT_FILENO))
			errx(EX_USAGE, "the standard output is a terminal: "
			    "name a file with -w, or a program behind |");
		cf->cf_file = stdout;
		return;
	}
	if (files_ring(cf)) {
		cf->cf_kept = calloc(cf->cf_max, sizeof(cf->cf_kept[0]));
		if (cf->cf_kept == NULL)
			errx(EX_OSERR, "out of memory");
	}
	files_begin(cf);
}

bool
cap_files_due(const struct cap_files *cf)
{
	off_t written;

	if (cf->cf_bytes > 0) {
		/* A pipe is never full. */
		written = ftello(cf->cf_file);
		if (written != -1 && (uint64_t)written >= cf->cf_bytes)
			return (true);
	}
	return (cf->cf_seconds > 0 && clock_ns() >= cf->cf_end_ns);
}

int
cap_files_wait(const struct cap_files *cf)
{
	uint64_t now_ns = clock_ns();

	if (cf->cf_seconds == 0)
		return (-1);
	if (now_ns >= cf->cf_end_ns)
		return (0);
	/* The time is over when poll(2) returns. */
	return (MIN((cf->cf_end_ns - now_ns) / NS_MS + 1, INT_MAX));
}

bool
cap_files_last(const struct cap_files *cf)
{
	return (cf->cf_max > 0 && !files_ring(cf) &&
	    cf->cf_number + 1 == cf->cf_max);
}

bool
cap_files_left(const struct cap_files *cf)
{
	struct pollfd pfd = { .fd = fileno(cf->cf_file) };

	return (poll(&pfd, 1, 0) == 1);
}

static void
file_close(struct cap_files *cf)
{
	const bool left = cap_files_left(cf);

	if (fclose(cf->cf_file) != 0 && !left)
		err(EX_IOERR, "%s", cf->cf_path);
	free(cf->cf_path);
	cf->cf_path = NULL;
}

void
cap_files_next(struct cap_files *cf)
{
	file_close(cf);
	cf->cf_number++;
	files_begin(cf);
}

void
cap_files_close(struct cap_files *cf)
{
	uint32_t i;

	if (cf->cf_path != NULL)
		file_close(cf);
	if (cf->cf_kept != NULL)
		for (i = 0; i < cf->cf_max; i++)
			free(cf->cf_kept[i]);
	free(cf->cf_kept);
}

void
cap_files_flush(const struct cap_files *cf)
{
	if ((fflush(cf->cf_file) != 0 || ferror(cf->cf_file)) &&
	    !cap_files_left(cf))
		err(EX_IOERR, "%s", cf->cf_path != NULL ? cf->cf_path : "-");
}
