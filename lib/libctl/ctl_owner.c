/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* The control socket: whose a port is.  See ctl_owner.h. */

#include <sys/systm.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "ctl_owner.h"

static TAILQ_HEAD(, ctl_owner) owners = TAILQ_HEAD_INITIALIZER(owners);
static uint64_t changes;	/* of open ports */
static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t owners_unpinned = PTHREAD_COND_INITIALIZER;

int
ctl_owner_refuse(const char *name)
{
	uint64_t counters[VALE_NCOUNTERS];

	return (vale_port_counters(name, counters) == 0 ? EPERM : ENXIO);
}

static bool
same_user(const struct ctl_owner *ow, const struct ctl_who *who)
{
	return (ow->ow_who.cw_uid == who->cw_uid);
}

/*
 * Return whether it captures what port `name' has, and is no administrator's.
 */
static bool
captures(const struct ctl_owner *ow, const char *name)
{
	return (!ow->ow_who.cw_admin &&
	    ((ow->ow_capture && strcmp(ow->ow_name, name) == 0) ||
	    strcmp(ow->ow_mirror, name) == 0 ||
	    strcmp(ow->ow_mirror_next, name) == 0));
}

/* Find the open port of a name, or return NULL.  The lock. */
static struct ctl_owner *
find(const char *name)
{
	struct ctl_owner *ow;

	TAILQ_FOREACH(ow, &owners, ow_link)
		if (ow->ow_open && strcmp(ow->ow_name, name) == 0)
			break;
	return (ow);
}

/* Return whether nobody else captures what a port will have.  The lock. */
static int
may_open(const char *name, const struct ctl_who *who)
{
	const struct ctl_owner *ow;

	TAILQ_FOREACH(ow, &owners, ow_link)
		if (captures(ow, name) && !same_user(ow, who))
			return (EBUSY);
	return (0);
}

/* Return whether a port is one's own, and nobody waits to take its place. */
static int
may_capture(const char *name, const struct ctl_who *who)
{
	const struct ctl_owner *ow = find(name);

	if (who->cw_admin)
		return (0);
	if (ow == NULL || !same_user(ow, who))
		return (EPERM);
	TAILQ_FOREACH(ow, &owners, ow_link)
		if (!ow->ow_capture && strcmp(ow->ow_name, name) == 0 &&
		    !same_user(ow, who))
			return (EBUSY);
	return (0);
}

int
ctl_owner_claim(struct ctl_owner *ow, const char *name,
    const struct ctl_who *who, bool capture)
{
	int error;

	pthread_mutex_lock(&owners_lock);
	error = capture ? may_capture(name, who) : may_open(name, who);
	if (error == 0) {
		memset(ow, 0, sizeof(*ow));
		memcpy(ow->ow_name, name, strlen(name));
		ow->ow_who = *who;
		ow->ow_capture = capture;
		TAILQ_INSERT_TAIL(&owners, ow, ow_link);
	}
	pthread_mutex_unlock(&owners_lock);
	return (error == EPERM ? ctl_owner_refuse(name) : error);
}

bool
ctl_owner_taken(const char *name, bool port)
{
	const struct ctl_owner *ow;

	pthread_mutex_lock(&owners_lock);
	TAILQ_FOREACH(ow, &owners, ow_link)
		if (captures(ow, name) || (port && !ow->ow_capture &&
		    strcmp(ow->ow_name, name) == 0))
			break;
	pthread_mutex_unlock(&owners_lock);
	return (ow != NULL);
}

static int
place_of(const struct vale_port_info *info, void *arg)
{
	struct ctl_owner *ow = arg;

	if (strcmp(info->vpi_name, ow->ow_name) != 0)
		return (0);
	ow->ow_index = info->vpi_index;
	return (1);
}

void
ctl_owner_opened(struct ctl_owner *ow)
{
	if (ow->ow_capture)
		return;
	/* Nobody reads it before ow_open is set. */
	vale_list(NULL, place_of, ow);
	pthread_mutex_lock(&owners_lock);
	ow->ow_open = true;
	changes++;
	pthread_mutex_unlock(&owners_lock);
}

void
ctl_owner_leave(struct ctl_owner *ow)
{
	if (ow->ow_name[0] == '\0')
		return;
	pthread_mutex_lock(&owners_lock);
	ow->ow_open = false;
	changes++;
	while (ow->ow_pins > 0)
		pthread_cond_wait(&owners_unpinned, &owners_lock);
	TAILQ_REMOVE(&owners, ow, ow_link);
	ow->ow_name[0] = '\0';
	pthread_mutex_unlock(&owners_lock);
}

struct ctl_owner *
ctl_owner_pin(const char *name, const struct ctl_who *who)
{
	struct ctl_owner *ow;

	pthread_mutex_lock(&owners_lock);
	ow = find(name);
	if (ow != NULL && !who->cw_admin && !same_user(ow, who))
		ow = NULL;
	if (ow != NULL)
		ow->ow_pins++;
	pthread_mutex_unlock(&owners_lock);
	return (ow);
}

void
ctl_owner_unpin(struct ctl_owner *ow)
{
	pthread_mutex_lock(&owners_lock);
	MPASS(ow->ow_pins > 0);
	if (--ow->ow_pins == 0)
		pthread_cond_broadcast(&owners_unpinned);
	pthread_mutex_unlock(&owners_lock);
}

int
ctl_owner_mirror(struct ctl_owner *ow, const char *of,
    const struct ctl_who *who)
{
	int error;

	pthread_mutex_lock(&owners_lock);
	error = of[0] != '\0' ? may_capture(of, who) : 0;
	/* What an administrator sets is not the owner's capture. */
	if (error == 0 && ow != NULL)
		strlcpy(ow->ow_mirror_next, who->cw_admin ? "" : of,
		    sizeof(ow->ow_mirror_next));
	pthread_mutex_unlock(&owners_lock);
	return (error == EPERM ? ctl_owner_refuse(of) : error);
}

void
ctl_owner_mirrored(struct ctl_owner *ow, bool done)
{
	if (ow == NULL)
		return;
	pthread_mutex_lock(&owners_lock);
	if (done)
		memcpy(ow->ow_mirror, ow->ow_mirror_next,
		    sizeof(ow->ow_mirror));
	ow->ow_mirror_next[0] = '\0';
	pthread_mutex_unlock(&owners_lock);
}

bool
ctl_owner_sees(const char *name, const struct ctl_who *who)
{
	const struct ctl_owner *ow;
	bool sees;

	if (who->cw_admin)
		return (true);
	pthread_mutex_lock(&owners_lock);
	ow = find(name);
	sees = ow != NULL && same_user(ow, who);
	pthread_mutex_unlock(&owners_lock);
	return (sees);
}

/* Fill in which ports are open.  The lock. */
static void
set_fill(struct ctl_owner_set *os, const char *switch_name,
    const struct ctl_who *who)
{
	const size_t len = strlen(switch_name);
	const struct ctl_owner *ow;

	memset(os, 0, sizeof(*os));
	/* 0 means never filled. */
	os->os_changes = changes + 1;
	TAILQ_FOREACH(ow, &owners, ow_link)
		if (ow->ow_open && same_user(ow, who) &&
		    strncmp(ow->ow_name, switch_name, len) == 0 &&
		    ow->ow_name[len] == ':')
			os->os_port[ow->ow_index] = true;
}

bool
ctl_owner_sees_index(struct ctl_owner_set *os, const char *switch_name,
    uint8_t index, const struct ctl_who *who)
{
	bool sees;

	if (who->cw_admin)
		return (true);
	pthread_mutex_lock(&owners_lock);
	if (os->os_changes != changes + 1)
		set_fill(os, switch_name, who);
	sees = os->os_port[index];
	pthread_mutex_unlock(&owners_lock);
	return (sees);
}
