/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings that a configuration has for switches and ports which come and go.
 * They are set while the switch is created or the port is added, before any
 * view has it: so no frame passes that the settings forbid.
 *
 * source=own needs the port's address, which its opener tells afterwards
 * (vale_set_address()), before it sends.
 */

#include <sys/queue.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vale_setting.h"
#include "vale_setting_kept.h"
#include "vale_switch.h"

struct kept {
	LIST_ENTRY(kept) k_link;
	char		k_name[VALE_NAME_SIZE];
	unsigned int	k_setting;
	struct vale_setting_value k_value;
};

/* vale_lock. */
static LIST_HEAD(, kept) kepts = LIST_HEAD_INITIALIZER(kepts);

static struct kept *
kept_find(const char *name, unsigned int setting)
{
	struct kept *k;

	mtx_assert(&vale_lock, MA_OWNED);
	LIST_FOREACH(k, &kepts, k_link)
		if (k->k_setting == setting && strcmp(k->k_name, name) == 0)
			break;
	return (k);
}

static bool
is_own(unsigned int setting, const struct vale_setting_value *value)
{
	return (setting == VALE_SETTING_SOURCE &&
	    strcmp(value->sv_text, "own") == 0);
}

void
vale_kept_switch(struct vale_switch *vs)
{
	const struct kept *k;

	LIST_FOREACH(k, &kepts, k_link)
		if (strcmp(k->k_name, vs->vs_name) == 0)
			vale_setting_begin_switch(vs, k->k_setting,
			    &k->k_value);
}

int
vale_kept_port(struct vale_port *port)
{
	const struct kept *k;
	unsigned int i;

	for (i = 0; i < VALE_NSETTINGS; i++) {
		k = kept_find(port->vp_common.name, i);
		if (k == NULL || is_own(i, &k->k_value))
			continue;
		if (vale_setting_begin_port(port, i, &k->k_value) == -1 &&
		    i != VALE_SETTING_MIRROR)
			return (-1);
	}
	return (0);
}

int
vale_kept_address(const char *name)
{
	struct vale_setting_value value;
	const struct kept *k;
	bool own;

	pthread_mutex_lock(&vale_lock);
	k = kept_find(name, VALE_SETTING_SOURCE);
	own = k != NULL && is_own(VALE_SETTING_SOURCE, &k->k_value);
	if (own)
		value = k->k_value;
	pthread_mutex_unlock(&vale_lock);
	return (own ? vale_setting_set(name, VALE_SETTING_SOURCE, &value) : 0);
}

/* Keep a value, or none. */
static int
keep(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	struct kept *k;

	pthread_mutex_lock(&vale_lock);
	k = kept_find(name, setting);
	if (k != NULL && value == NULL) {
		LIST_REMOVE(k, k_link);
		free(k);
	} else if (value != NULL) {
		if (k == NULL && (k = calloc(1, sizeof(*k))) != NULL) {
			strlcpy(k->k_name, name, sizeof(k->k_name));
			k->k_setting = setting;
			LIST_INSERT_HEAD(&kepts, k, k_link);
		}
		if (k != NULL)
			k->k_value = *value;
	}
	pthread_mutex_unlock(&vale_lock);
	return (value == NULL || k != NULL ? 0 :
	    vale_setting_error(ENOMEM, "%s", strerror(ENOMEM)));
}

int
vale_setting_keep(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	struct vale_setting_value otherwise;

	if (value != NULL && vale_setting_check(setting, value) == -1)
		return (-1);
	if (keep(name, setting, value) == -1)
		return (-1);
	if (value == NULL) {
		vale_setting_default(setting, &otherwise);
		value = &otherwise;
	}
	if (vale_setting_set(name, setting, value) == -1 && errno != ENXIO)
		return (-1);
	return (0);
}
