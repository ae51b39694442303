/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Messages of threads that serve somebody.  What they serve may cause any
 * number of them, so each source of messages has PEER_LOG_LINES lines a second.
 * Those beyond that are counted, and a line tells how many they were.
 */

#ifndef _PEER_LOG_H_
#define	_PEER_LOG_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define	PEER_LOG_LINES	10

/* A source: zeros at first, and one thread's. */
struct peer_log_source {
	uint64_t	pls_second;	/* the last one with a line, */
	uint32_t	pls_lines;	/* and how many it had */
	uint32_t	pls_left;	/* left out since the last line */
};

/*
 * Set the program's name, of 15 characters at most, which must stay; without it
 * lines begin with the name that the program was started by.  Finds out, too,
 * whether stderr is the journal's.  The main thread, first.
 */
void	peer_log_init(const char *name);

/*
 * Write a line to stderr, with this priority (LOG_ERR and so on, of syslog.h):
 * "program: name: " and the rest, of 255 characters at most.  The source's
 * thread.
 */
void	peer_log(struct peer_log_source *ls, int priority, const char *name,
	    const char *fmt, va_list ap)
	    __attribute__((__format__(__printf__, 4, 0)));

/*
 * Say how many lines were left out, if any were, and there is space for a line
 * again.  For threads that wake up now and then.  The source's thread.
 */
void	peer_log_left(struct peer_log_source *ls, const char *name);

/*
 * Replace control characters, which a terminal would obey, but tabs and, with
 * `lines', ends of lines: of texts that somebody else has written, such as
 * names in files.  Any thread.
 */
void	peer_log_clean(char *text, size_t len, bool lines);

#endif /* !_PEER_LOG_H_ */
