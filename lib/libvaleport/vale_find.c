/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* vale_find.h. */

#include <sys/param.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vale_find.h"
#include "vale_wire.h"

/* The control sockets of share/systemd/valed@.service. */
#define	FIND_INSTANCES	"/run/valed-*/control"

static bool
find_socket(const char *path)
{
	struct stat st;

	/* EACCES: it exists, in a directory that we may not search. */
	return (stat(path, &st) == 0 ? S_ISSOCK(st.st_mode) :
	    errno == EACCES);
}

/*
 * Find the control sockets of instances: how many there are, the first one, and
 * all of them in `list', separated by commas, as far as there is space.
 */
static unsigned int
find_instances(char *first, size_t first_size, char *list, size_t list_size)
{
	unsigned int n = 0;
	size_t i, len = 0;
	glob_t g;

	*list = '\0';
	if (glob(FIND_INSTANCES, 0, NULL, &g) != 0)
		return (0);
	for (i = 0; i < g.gl_pathc; i++) {
		if (!find_socket(g.gl_pathv[i]))
			continue;
		if (n++ == 0)
			snprintf(first, first_size, "%s", g.gl_pathv[i]);
		len += snprintf(list + len, list_size - len, "%s%s",
		    n == 1 ? "" : ", ", g.gl_pathv[i]);
		len = MIN(len, list_size - 1);
	}
	globfree(&g);
	return (n);
}

const char *
vale_find_path(void)
{
	static _Thread_local char first[sizeof(
	    ((struct sockaddr_un *)0)->sun_path)];
	const char *path = secure_getenv(VALE_WIRE_ENV);
	const int error = errno;
	char list[1];

	if (path == NULL)
		path = find_socket(VALE_WIRE_PATH) || find_instances(first,
		    sizeof(first), list, sizeof(list)) != 1 ? VALE_WIRE_PATH :
		    first;
	errno = error;
	return (path);
}

bool
vale_find_error(int error, char *why, size_t size)
{
	const char *path = vale_find_path();
	char first[1], list[1024];

	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		if (strcmp(path, VALE_WIRE_PATH) == 0 &&
		    !find_socket(path) && find_instances(first, sizeof(first),
		    list, sizeof(list)) > 1)
			snprintf(why, size, "there are several valed, and -c "
			    "or " VALE_WIRE_ENV " must say which: %s", list);
		else
			snprintf(why, size, "no valed at %s", path);
		return (true);
	case EACCES:
	case ENAMETOOLONG:
	case EPROTOTYPE:
		snprintf(why, size, "%s: %s", path, strerror(error));
		return (true);
	default:
		return (false);
	}
}
