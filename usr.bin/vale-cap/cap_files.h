/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The file that a capture is written to, or several, one after the other: the
 * options -w, -C, -G and -W of vale-cap(1), which has their names.  What fails
 * ends the program with a line.
 */

#ifndef _CAP_FILES_H_
#define	_CAP_FILES_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cap_files {
	/* Set by the caller, and zero else. */
	const char	*cf_name;	/* "-": the standard output */
	uint64_t	 cf_bytes;	/* a file's, or 0: any number */
	uint32_t	 cf_seconds;	/* that it is written to, or 0 */
	uint32_t	 cf_max;	/* files, or 0: any number */
	/* For the caller: the file now. */
	FILE		*cf_file;
	/* Private. */
	char		*cf_path;	/* its name */
	uint32_t	 cf_number;	/* 0 for the first */
	uint64_t	 cf_end_ns;	/* if cf_seconds */
	char		**cf_kept;	/* cf_max names, or NULL */
};

/* Open the first file. */
void	cap_files_open(struct cap_files *cf);

/* Return whether the file is full, or old enough, that the next is to begin. */
bool	cap_files_due(const struct cap_files *cf);

/* Return the milliseconds until the file is old enough; -1: it never is. */
int	cap_files_wait(const struct cap_files *cf);

/* Return whether no file follows. */
bool	cap_files_last(const struct cap_files *cf);

/* Close the file, and open the next. */
void	cap_files_next(struct cap_files *cf);

/* Close the last file, which is complete.  The standard output stays open. */
void	cap_files_close(struct cap_files *cf);

/* Write out what is buffered.  If nobody reads the pipe, that is no error. */
void	cap_files_flush(const struct cap_files *cf);

/* Return whether nobody reads the pipe any more. */
bool	cap_files_left(const struct cap_files *cf);

#endif /* !_CAP_FILES_H_ */
