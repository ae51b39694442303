/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Names of ports that are reserved: valed_names.h. */

#include <sys/param.h>
#include <sys/systm.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "libvale.h"
#include "valed.h"
#include "valed_names.h"

/* During a reload there may be old and new ones. */
#define	NAMES_MAX	(2 * VALED_MAXADAPTERS + HOSTIF_MAX)

enum name_state {
	NAME_NEW,
	NAME_CONFIGURED,
	NAME_LEAVING,
	NAME_GONE
};

struct name {
	enum name_state	state;
	enum valed_name_of of;
	int		bus, slot, func;	/* the adapter's */
	char		name[VALE_NAME_SIZE];
};

static struct name names[NAMES_MAX];
static unsigned int nnames;
static LIST_HEAD(, valed_opening) openings = LIST_HEAD_INITIALIZER(openings);
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

/* Append a name.  With the lock. */
static struct name *
name_append(const char *name, enum valed_name_of of)
{
	struct name *n = &names[nnames++];

	MPASS(nnames <= NAMES_MAX);
	memset(n, 0, sizeof(*n));
	strlcpy(n->name, name, sizeof(n->name));
	n->of = of;
	n->state = NAME_CONFIGURED;
	return (n);
}

static void
name_at(struct name *n, const struct adapter_config *place)
{
	n->bus = place->ac_bus;
	n->slot = place->ac_slot;
	n->func = place->ac_func;
}

void
valed_names_start(const struct valed_options *opt)
{
	unsigned int i;

	pthread_mutex_lock(&names_lock);
	for (i = 0; i < opt->vo_nadapters; i++)
		name_at(name_append(opt->vo_adapters[i].ac_backend,
		    VALED_NAME_ADAPTER), &opt->vo_adapters[i]);
	for (i = 0; i < opt->vo_nhostifs; i++)
		(void)name_append(opt->vo_hostifs[i].hc_port,
		    VALED_NAME_HOSTIF);
	pthread_mutex_unlock(&names_lock);
}

int
valed_names_reserve(const struct adapter_config *place, const char *name)
{
	const struct valed_opening *vo;
	struct name *n;

	pthread_mutex_lock(&names_lock);
	LIST_FOREACH(vo, &openings, vo_link)
		if (strcmp(vo->vo_name, name) == 0)
			break;
	if (vo == NULL) {
		n = name_append(name, VALED_NAME_ADAPTER);
		name_at(n, place);
		n->state = NAME_NEW;
	}
	pthread_mutex_unlock(&names_lock);
	return (vo == NULL ? 0 : EBUSY);
}

/* The adapter at a place has a name in one state: now it is in another. */
static void
name_change(const struct adapter_config *place, enum name_state from,
    enum name_state to)
{
	struct name *n;

	mtx_assert(&names_lock, MA_OWNED);
	for (n = names; n < names + nnames; n++)
		if (n->of == VALED_NAME_ADAPTER && n->state == from &&
		    n->bus == place->ac_bus && n->slot == place->ac_slot &&
		    n->func == place->ac_func)
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
valed_names_unreserve(const struct adapter_config *place)
{
	pthread_mutex_lock(&names_lock);
	name_change(place, NAME_NEW, NAME_GONE);
	names_forget(NAME_GONE);
	pthread_mutex_unlock(&names_lock);
}

void
valed_names_add(const struct adapter_config *place)
{
	pthread_mutex_lock(&names_lock);
	name_change(place, NAME_NEW, NAME_CONFIGURED);
	pthread_mutex_unlock(&names_lock);
}

void
valed_names_remove(const struct adapter_config *place)
{
	pthread_mutex_lock(&names_lock);
	name_change(place, NAME_CONFIGURED, NAME_LEAVING);
	pthread_mutex_unlock(&names_lock);
}

void
valed_names_end(void)
{
	pthread_mutex_lock(&names_lock);
	names_forget(NAME_NEW);
	names_forget(NAME_LEAVING);
	pthread_mutex_unlock(&names_lock);
}

enum valed_name_of
valed_names_open(struct valed_opening *vo, const char *name)
{
	enum valed_name_of of = VALED_NAME_FREE;
	const struct name *n;

	pthread_mutex_lock(&names_lock);
	for (n = names; n < names + nnames; n++)
		if (strcmp(n->name, name) == 0)
			of = n->of;
	if (of == VALED_NAME_FREE) {
		vo->vo_name = name;
		LIST_INSERT_HEAD(&openings, vo, vo_link);
	}
	pthread_mutex_unlock(&names_lock);
	return (of);
}

void
valed_names_opened(struct valed_opening *vo)
{
	pthread_mutex_lock(&names_lock);
	LIST_REMOVE(vo, vo_link);
	pthread_mutex_unlock(&names_lock);
}
