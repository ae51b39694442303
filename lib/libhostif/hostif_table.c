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
#include <stdlib.h>
#include <string.h>

#include "hostif_impl.h"

struct entry {
	TAILQ_ENTRY(entry)	 link;
	struct hostif		*hi;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int table_used;	/* places: HOSTIF_MAX */
static TAILQ_HEAD(, entry) table = TAILQ_HEAD_INITIALIZER(table);

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
static struct entry *
table_find(const char *port_name)
{
	struct entry *e;

	TAILQ_FOREACH(e, &table, link)
		if (strcmp(hostif_port_name(e->hi), port_name) == 0)
			break;
	return (e);
}

/* Take what has the port out of the table; its place stays reserved. */
static struct entry *
table_take(const char *port_name)
{
	struct entry *e;

	pthread_mutex_lock(&table_lock);
	e = table_find(port_name);
	if (e != NULL)
		TAILQ_REMOVE(&table, e, link);
	pthread_mutex_unlock(&table_lock);
	return (e);
}

/* Put an interface that serves into its reserved place. */
static void
table_insert(struct entry *e)
{
	bool withdrawn;

	pthread_mutex_lock(&table_lock);
	/* The interface's thread may have looked here in vain. */
	withdrawn = hostif_is_withdrawn(e->hi);
	if (!withdrawn)
		TAILQ_INSERT_TAIL(&table, e, link);
	pthread_mutex_unlock(&table_lock);
	if (withdrawn) {
		hostif_stop(e->hi);
		free(e);
		table_release();
	}
}

/* Attach an interface to a port that is not attached. */
static struct entry *
attach_new(const char *port_name, const struct hostif_fds *fds,
    char why[HOSTIF_WHY])
{
	struct entry *e;

	if (!table_reserve()) {
		hostif_fail(why, ENOSPC, "%s: there are %u attached "
		    "interfaces, as many as there may be", port_name,
		    HOSTIF_MAX);
		return (NULL);
	}
	e = malloc(sizeof(*e));
	if (e == NULL)
		hostif_fail(why, errno, "%s: %s", port_name, strerror(errno));
	else {
		e->hi = hostif_start(port_name, fds, why);
		if (e->hi != NULL)
			return (e);
		free(e);
	}
	table_release();
	return (NULL);
}

int
hostif_attach(const char *port_name, const struct hostif_fds *fds,
    char why[HOSTIF_WHY])
{
	struct entry *e;
	bool there;

	pthread_mutex_lock(&table_lock);
	e = table_find(port_name);
	there = e != NULL && !hostif_gone(e->hi);
	if (e != NULL && !there)
		TAILQ_REMOVE(&table, e, link);
	pthread_mutex_unlock(&table_lock);
	if (there)
		return (hostif_fail(why, EEXIST, "%s is attached to %.*s "
		    "already", fds->hf_name, (int)strcspn(port_name, ":"),
		    port_name));
	if (e == NULL)
		e = attach_new(port_name, fds, why);
	else if (hostif_renew(e->hi, fds, why) == -1) {
		free(e);
		table_release();
		e = NULL;
	}
	if (e == NULL)
		return (-1);
	table_insert(e);
	return (0);
}

int
hostif_detach(const char *port_name)
{
	struct entry *e = table_take(port_name);

	if (e == NULL) {
		errno = ENXIO;
		return (-1);
	}
	hostif_stop(e->hi);
	free(e);
	table_release();
	return (0);
}

void
hostif_let_go(const char *port_name)
{
	struct entry *e = table_take(port_name);

	if (e == NULL)
		return;
	hostif_release(e->hi);
	table_insert(e);
}

bool
hostif_forget(const struct hostif *hi)
{
	struct entry *e;

	pthread_mutex_lock(&table_lock);
	TAILQ_FOREACH(e, &table, link)
		if (e->hi == hi)
			break;
	if (e != NULL) {
		TAILQ_REMOVE(&table, e, link);
		table_used--;
	}
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
