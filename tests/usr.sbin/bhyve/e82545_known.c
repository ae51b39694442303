/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See e82545_known.h.
 */

#include <sys/param.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "e82545_check.h"
#include "e82545_known.h"

uint8_t *
known_bytes(const struct known_line *lines, size_t nlines, size_t size)
{
	uint8_t *buf;
	size_t i, j;

	buf = calloc(1, size);
	ATF_REQUIRE(buf != NULL);
	for (i = 0; i < nlines; i++)
		for (j = 0; lines[i].kl_digits[2 * j] != '\0'; j++) {
			ATF_REQUIRE(lines[i].kl_off + j < size);
			ATF_REQUIRE_EQ(1, sscanf(&lines[i].kl_digits[2 * j],
			    "%2hhx", &buf[lines[i].kl_off + j]));
		}
	return (buf);
}

/* Print bytes as a table has them. */
static void
known_print(const uint8_t *buf, size_t size)
{
	size_t i, last, n;

	printf("#define\tKNOWN_SIZE\t%zu\n", size);
	for (i = 0; i < size; i += n) {
		for (; i < size && buf[i] == 0; i++)
			;
		/* A zero or three go with what is around them. */
		for (last = n = 0; i + n < size && n < 24 && n - last < 4;
		    n++)
			if (buf[i + n] != 0)
				last = n;
		n = last + 1;
		if (i == size)
			break;
		printf("\t{ %zu, \"", i);
		for (last = i; last < i + n; last++)
			printf("%02x", buf[last]);
		printf("\" },\n");
	}
}

uint8_t *
known_save(struct host *h, size_t *sizep)
{
	uint8_t *buf;

	*sizep = e82545_snapshot_size(h->dev);
	buf = malloc(*sizep);
	ATF_REQUIRE(buf != NULL);
	ATF_REQUIRE_EQ(0, e82545_snapshot_save(h->dev, buf, *sizep));
	return (buf);
}

void
known_check(struct host *h, const struct known_line *lines, size_t nlines,
    size_t size)
{
	uint8_t *bytes = known_bytes(lines, nlines, size), *buf;
	size_t saved;

	buf = known_save(h, &saved);
	if (saved != size || memcmp(bytes, buf, size) != 0) {
		known_print(buf, saved);
		atf_tc_fail("the format has changed");
	}
	free(buf);
	free(bytes);
}
