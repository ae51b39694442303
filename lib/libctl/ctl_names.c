/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Names of ports that are reserved: ctl_names.h. */

#include <sys/systm.h>

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "ctl_names.h"
#include "hostif.h"
#include "libvale.h"

/* During a reload there may be old and new ones. */
#define	NAMES_MAX	(2 * CTL_NAMES_ADAPTERS + HOSTIF_MAX)

enum name_state {
	NAME_NEW,
	NAME_CONFIGURED,
	NAME_LEAVING,
	NAME_GONE
};

struct name {
	enum name_state	state;
	enum ctl_name_of of;
	unsigned int	place;		/* the adapter's */
	char		name[VALE_NAME_SIZE];
};

static struct name names[NAMES_MAX];
static unsigned int nnames;
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

/* Append a name.  With the lock. */
static struct name *
name_append(const char *name, enum ctl_name_of of)
{
	struct name *n = &names[nnames++];

	MPASS(nnames <= NAMES_MAX);
	memset(n, 0, sizeof(*n));
	strlcpy(n->name, name, sizeof(n->name));
	n->of = of;
	n->state = NAME_CONFIGURED;
	return (n);
}

void
ctl_names_adapter(unsigned int place, const char *name)
{
	pthread_mutex_lock(&names_lock);
	name_append(name, CTL_NAME_ADAPTER)->place = place;
	pthread_mutex_unlock(&names_lock);
}

/* Find the name of an interface's port. */
static struct name *
name_hostif(const char *name)
{
	struct name *n;

	for (n = names; n < names + nnames; n++)
		if (n->of == CTL_NAME_HOSTIF && strcmp(n->name, name) == 0)
			return (n);
	return (NULL);
}

bool
ctl_names_hostif(const char *name)
{
	bool added;

	pthread_mutex_lock(&names_lock);
	added = name_hostif(name) == NULL;
	if (added)
		(void)name_append(name, CTL_NAME_HOSTIF);
	pthread_mutex_unlock(&names_lock);
	return (added);
}

void
ctl_names_hostif_remove(const char *name)
{
	struct name *n;

	pthread_mutex_lock(&names_lock);
	n = name_hostif(name);
	if (n != NULL)
		*n = names[--nnames];
	pthread_mutex_unlock(&names_lock);
}

void
ctl_names_reserve(unsigned int place, const char *name)
{
	struct name *n;

	pthread_mutex_lock(&names_lock);
	n = name_append(name, CTL_NAME_ADAPTER);
	n->place = place;
	n->state = NAME_NEW;
	pthread_mutex_unlock(&names_lock);
}

/* Bring the name of the adapter at a place from one state into another. */
static void
name_change(unsigned int place, enum name_state from,
    enum name_state to)
{
	struct name *n;

	mtx_assert(&names_lock, MA_OWNED);
	for (n = names; n < names + nnames; n++)
		if (n->of == CTL_NAME_ADAPTER && n->state == from &&
		    n->place == place)
			n->state = to;
}

/* Forget all names in a state. */
static void
names_forget(enum name_state state)
{
	struct name *n;

	mtx_assert(&names_lock, MA_OWNED);
	for (n = names; n < names + nnames;) {
		if (n->state == state)
			*n = names[--nnames];
		else
			n++;
	}
}

void
ctl_names_unreserve(unsigned int place)
{
	pthread_mutex_lock(&names_lock);
	name_change(place, NAME_NEW, NAME_GONE);
	names_forget(NAME_GONE);
	pthread_mutex_unlock(&names_lock);
}

void
ctl_names_add(unsigned int place)
{
	pthread_mutex_lock(&names_lock);
	name_change(place, NAME_NEW, NAME_CONFIGURED);
	pthread_mutex_unlock(&names_lock);
}

void
ctl_names_remove(unsigned int place)
{
	pthread_mutex_lock(&names_lock);
	name_change(place, NAME_CONFIGURED, NAME_LEAVING);
	pthread_mutex_unlock(&names_lock);
}

void
ctl_names_move(unsigned int place)
{
	const struct name *n;

	pthread_mutex_lock(&names_lock);
	for (n = names; n < names + nnames; n++)
		if (n->of == CTL_NAME_ADAPTER && n->state == NAME_NEW &&
		    n->place == place)
			break;
	if (n < names + nnames) {
		name_change(place, NAME_CONFIGURED, NAME_LEAVING);
		name_change(place, NAME_NEW, NAME_CONFIGURED);
	}
	pthread_mutex_unlock(&names_lock);
}

void
ctl_names_end(void)
{
	pthread_mutex_lock(&names_lock);
	names_forget(NAME_NEW);
	names_forget(NAME_LEAVING);
	pthread_mutex_unlock(&names_lock);
}

enum ctl_name_of
ctl_names_of(const char *name)
{
	enum ctl_name_of of = CTL_NAME_FREE;
	const struct name *n;

	pthread_mutex_lock(&names_lock);
	for (n = names; n < names + nnames; n++)
		if (strcmp(n->name, name) == 0)
			of = n->of;
	pthread_mutex_unlock(&names_lock);
	return (of);
}
