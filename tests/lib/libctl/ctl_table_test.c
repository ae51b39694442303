/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The requests of the control socket, and the table of valed(8) that says who
 * may make them.  What the table promises, who.py tries.
 */

#include <sys/param.h>

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "ctl.c"

#include "test.h"

/* Cells of a line: a port of one's own, of another user, of an adapter. */
struct cells {
	char	own[16];
	char	another[16];
	char	adapter[16];
};

/* Find a request's line.  Returns how many there are. */
static int
documented(FILE *page, const char *name, struct cells *cells)
{
	const size_t len = strlen(name);
	char line[256];
	int lines = 0;

	rewind(page);
	while (fgets(line, sizeof(line), page) != NULL) {
		if (strncmp(line, ".It ", 4) == 0 &&
		    strncmp(line + 4, name, len) == 0 &&
		    sscanf(line + 4 + len, " Ta %15s Ta %15s Ta %15s Ta ",
		    cells->own, cells->another, cells->adapter) == 3)
			lines++;
	}
	return (lines);
}

/* The line of a request must be there once, with these cells. */
static void
check(FILE *page, const char *name, const char *own, const char *another)
{
	struct cells c = { "", "", "" };
	int n = documented(page, name, &c);

	ATF_CHECK_EQ_MSG(1, n, "%s: %d lines", name, n);
	ATF_CHECK_MSG(strcmp(own, c.own) == 0, "%s: own %s", name, c.own);
	ATF_CHECK_MSG(strcmp(another, c.another) == 0, "%s: another %s", name,
	    c.another);
	ATF_CHECK_MSG(strcmp(another, c.adapter) == 0, "%s: adapter %s", name,
	    c.adapter);
}

/* All lines of the table. */
static int
lines_of(FILE *page)
{
	char line[256];
	int lines = 0;

	rewind(page);
	while (fgets(line, sizeof(line), page) != NULL)
		lines += strncmp(line, ".It ", 4) == 0 &&
		    strncmp(line, ".It Sy", 6) != 0 &&
		    strstr(line, " Ta ") != NULL;
	return (lines);
}

TEST(documented, "valed(8) has a line for each request, with who may make it, "
    "and no other")
{
	static const struct {
		const char	*own, *another;
	} cells[] = {
		[NEEDS_SELF] = { "all", "none" },
		[NEEDS_OPEN] = { "all", "none" },
		[NEEDS_SEEN] = { "all", "admin" },
		[NEEDS_PORT] = { "all", "admin" },
		[NEEDS_ANY] = { "all", "all" },
		[NEEDS_ADMIN] = { "admin", "admin" },
	};
	const struct ctl_request *r;
	char path[1024], more[64];
	int lines = 0;
	FILE *page;

	snprintf(path, sizeof(path), "%s/valed.8",
	    atf_tc_get_config_var(tc, "srcdir"));
	page = fopen(path, "r");
	ATF_REQUIRE_MSG(page != NULL, "%s", path);
	for (r = requests; r < requests + nitems(requests); r++) {
		check(page, r->name, cells[r->needs].own,
		    cells[r->needs].another);
		lines++;
		/* A second port that the request names is captured. */
		snprintf(more, sizeof(more), "%s, %s", r->name,
		    r->needs == NEEDS_OPEN ? "monitor" : "mirrored");
		if (r->needs == NEEDS_OPEN || r->fn == ctl_mirror) {
			check(page, more, "all", "admin");
			lines++;
		}
	}
	ATF_CHECK_EQ(lines, lines_of(page));
	fclose(page);
}

TEST(unknown, "A connection is not taken if the kernel does not say whose it "
    "is")
{
	int fd[2];

	ATF_REQUIRE_EQ(0, pipe(fd));
	ATF_CHECK_EQ(ENOTSOCK, ctl_accept(fd[0], false));
	ATF_CHECK_EQ(0, ctl_conns[0].cc_used);
	close(fd[0]);
	close(fd[1]);
}

TEST_PROGRAM
