/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The attached interfaces of this process, by the names of their ports.  A lock
 * covers the list; an interface that is being detached is no longer in it.  Who
 * takes it out of the list ends it, and that may be its own thread.
 */

#include <sys/param.h>
#include <sys/queue.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostif_impl.h"

struct entry {
	TAILQ_ENTRY(entry)	 link;
	struct hostif		*hi;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, entry) table = TAILQ_HEAD_INITIALIZER(table);

bool
hostif_attach(const char *port_name, const struct hostif_fds *fds, char *error,
    size_t size)
{
	struct entry *e;
	bool withdrawn;

	e = malloc(sizeof(*e));
	if (e == NULL) {
		snprintf(error, size, "%s: %s", port_name, strerror(errno));
		return (false);
	}
	e->hi = hostif_start(port_name, fds, error, size);
	if (e->hi == NULL) {
		free(e);
		return (false);
	}
	pthread_mutex_lock(&table_lock);
	/* Its thread may have looked for it here, in vain. */
	withdrawn = hostif_is_withdrawn(e->hi);
	if (!withdrawn)
		TAILQ_INSERT_TAIL(&table, e, link);
	pthread_mutex_unlock(&table_lock);
	if (withdrawn) {
		hostif_stop(e->hi);
		free(e);
	}
	return (true);
}

int
hostif_detach(const char *port_name)
{
	struct entry *e;

	pthread_mutex_lock(&table_lock);
	TAILQ_FOREACH(e, &table, link)
		if (strcmp(hostif_port_name(e->hi), port_name) == 0)
			break;
	if (e != NULL)
		TAILQ_REMOVE(&table, e, link);
	pthread_mutex_unlock(&table_lock);
	if (e == NULL)
		return (ENXIO);
	hostif_stop(e->hi);
	free(e);
	return (0);
}

bool
hostif_forget(const struct hostif *hi)
{
	struct entry *e;

	pthread_mutex_lock(&table_lock);
	TAILQ_FOREACH(e, &table, link)
		if (e->hi == hi)
			break;
	if (e != NULL)
		TAILQ_REMOVE(&table, e, link);
	pthread_mutex_unlock(&table_lock);
	if (e == NULL)
		return (false);
	free(e);
	return (true);
}

void
hostif_each(void (*fn)(struct hostif *hi, void *arg), void *arg)
{
	const struct entry *e;

	pthread_mutex_lock(&table_lock);
	TAILQ_FOREACH(e, &table, link)
		fn(e->hi, arg);
	pthread_mutex_unlock(&table_lock);
}
