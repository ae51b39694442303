/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Snapshots whose bytes are known: tables of them, and what tests do with
 * these.  Functions end the test case if that fails.
 */

#ifndef _E82545_KNOWN_H_
#define	_E82545_KNOWN_H_

#include <stddef.h>
#include <stdint.h>

struct host;

/* Hexadecimal digits at an offset in bytes; the bytes between are 0. */
struct known_line {
	size_t		 kl_off;
	const char	*kl_digits;
};

/* A table's bytes, `size' of them; free(3) frees them. */
uint8_t	*known_bytes(const struct known_line *lines, size_t nlines,
	    size_t size);
/* The adapter, which is paused, as a snapshot; as known_bytes(). */
uint8_t	*known_save(struct host *h, size_t *sizep);
/*
 * Check that the adapter, which is paused, is saved as the table says.  If not,
 * print a table that says so, and end the test case.
 */
void	known_check(struct host *h, const struct known_line *lines,
	    size_t nlines, size_t size);

#endif /* !_E82545_KNOWN_H_ */
