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

#include <sys/queue.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "hostif_impl.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int table_used;	/* places: HOSTIF_MAX */
static TAILQ_HEAD(, hostif) table = TAILQ_HEAD_INITIALIZER(table);

/* Take a place in the table, if there is one. */
static bool
table_reserve(void)
{
	bool place;

	pthread_mutex_lock(&table_lock);
	place = table_used < HOSTIF_MAX;
	if (place)
		table_used++;
	pthread_mutex_unlock(&table_lock);
	return (place);
}

static void
table_release(void)
{
	pthread_mutex_lock(&table_lock);
	table_used--;
	pthread_mutex_unlock(&table_lock);
}

/* Find what has the port.  table_lock. */
static struct hostif *
table_find(const char *port_name)
{
	struct hostif *hi;

	TAILQ_FOREACH(hi, &table, entry)
		if (strcmp(hostif_port_name(hi), port_name) == 0)
			break;
	return (hi);
}

/* Take what has the port out of the table; its place stays reserved. */
static struct hostif *
table_take(const char *port_name)
{
	struct hostif *hi;

	pthread_mutex_lock(&table_lock);
	hi = table_find(port_name);
	if (hi != NULL)
		TAILQ_REMOVE(&table, hi, entry);
	pthread_mutex_unlock(&table_lock);
	return (hi);
}

/* Put an interface that serves into its reserved place. */
static void
table_insert(struct hostif *hi)
{
	bool withdrawn;

	pthread_mutex_lock(&table_lock);
	/* The interface's thread may have looked here in vain. */
	withdrawn = hostif_is_withdrawn(hi);
	if (!withdrawn)
		TAILQ_INSERT_TAIL(&table, hi, entry);
	pthread_mutex_unlock(&table_lock);
	if (withdrawn) {
		hostif_stop(hi);
		table_release();
	}
}

/* Attach an interface to a port that is not attached. */
static struct hostif *
attach_new(const char *port_name, const struct hostif_fds *fds,
    char why[HOSTIF_WHY])
{
	struct hostif *hi;

	if (!table_reserve()) {
		hostif_fail(why, ENOSPC, "%s: there are %u attached "
		    "interfaces, as many as there may be", port_name,
		    HOSTIF_MAX);
		return (NULL);
	}
	hi = hostif_start(port_name, fds, why);
	if (hi == NULL)
		table_release();
	return (hi);
}

int
hostif_attach(const char *port_name, const struct hostif_fds *fds,
    char why[HOSTIF_WHY])
{
	struct hostif *hi;
	bool there;

	pthread_mutex_lock(&table_lock);
	hi = table_find(port_name);
	there = hi != NULL && !hostif_gone(hi);
	if (hi != NULL && !there)
		TAILQ_REMOVE(&table, hi, entry);
	pthread_mutex_unlock(&table_lock);
	if (there)
		return (hostif_fail(why, EEXIST, "%s is attached to %.*s "
		    "already", fds->hf_name, (int)strcspn(port_name, ":"),
		    port_name));
	if (hi == NULL)
		hi = attach_new(port_name, fds, why);
	else if (hostif_renew(hi, fds, why) == -1) {
		table_release();
		hi = NULL;
	}
	if (hi == NULL)
		return (-1);
	table_insert(hi);
	return (0);
}

int
hostif_detach(const char *port_name)
{
	struct hostif *hi = table_take(port_name);

	if (hi == NULL) {
		errno = ENXIO;
		return (-1);
	}
	hostif_stop(hi);
	table_release();
	return (0);
}

void
hostif_let_go(const char *port_name)
{
	struct hostif *hi = table_take(port_name);

	if (hi == NULL)
		return;
	hostif_release(hi);
	table_insert(hi);
}

bool
hostif_forget(const struct hostif *hi)
{
	struct hostif *there;

	pthread_mutex_lock(&table_lock);
	TAILQ_FOREACH(there, &table, entry)
		if (there == hi)
			break;
	if (there != NULL) {
		TAILQ_REMOVE(&table, there, entry);
		table_used--;
	}
	pthread_mutex_unlock(&table_lock);
	return (there != NULL);
}

void
hostif_each(void (*fn)(struct hostif *hi, void *arg), void *arg)
{
	struct hostif *hi;

	pthread_mutex_lock(&table_lock);
	TAILQ_FOREACH(hi, &table, entry)
		fn(hi, arg);
	pthread_mutex_unlock(&table_lock);
}
