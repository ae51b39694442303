/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings of switches and ports that are not there.  A setting is preset for
 * all of a name that come, or is for the next one only.
 *
 * Settings of a configuration are preset, for switches and ports which come and
 * go.  All are set while the switch is created or the port is added, before any
 * view has the port: so no frame passes that the settings forbid.
 *
 * source=own needs the port's address, which its opener tells afterwards
 * (vale_set_address()), before it sends.
 */

#include <sys/param.h>
#include <sys/queue.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vale_setting.h"
#include "vale_setting_preset.h"
#include "vale_switch.h"

struct preset {
	LIST_ENTRY(preset) pre_link;
	char		pre_name[VALE_NAME_SIZE];
	unsigned int	pre_setting;
	bool		pre_once;		/* vale_setting_once() */
	struct vale_setting_value pre_value;
};

/* vale_lock. */
static LIST_HEAD(, preset) presets = LIST_HEAD_INITIALIZER(presets);

static struct preset *
preset_find(const char *name, unsigned int setting, bool once)
{
	struct preset *pre;

	mtx_assert(&vale_lock, MA_OWNED);
	LIST_FOREACH(pre, &presets, pre_link)
		if (pre->pre_setting == setting && pre->pre_once == once &&
		    strcmp(pre->pre_name, name) == 0)
			break;
	return (pre);
}

/* Return the value to set when a port or switch is made, or NULL. */
static struct preset *
preset_next(const char *name, unsigned int setting)
{
	struct preset *pre = preset_find(name, setting, true);

	return (pre != NULL ? pre : preset_find(name, setting, false));
}

/* Remove a value, unless it is NULL. */
static void
preset_remove(struct preset *pre)
{
	if (pre != NULL)
		LIST_REMOVE(pre, pre_link);
	free(pre);
}

/* Note that a value has been set: remove a value that was to be set once. */
static void
preset_used(struct preset *pre)
{
	if (pre->pre_once)
		preset_remove(pre);
}

static bool
is_own(unsigned int setting, const struct vale_setting_value *value)
{
	return (setting == VALE_SETTING_SOURCE &&
	    strcmp(value->sv_text, "own") == 0);
}

void
vale_preset_switch(struct vale_switch *vs)
{
	struct preset *pre;
	unsigned int i;

	for (i = 0; i < VALE_NSETTINGS; i++) {
		pre = preset_next(vs->vs_name, i);
		if (pre != NULL) {
			vale_setting_begin_switch(vs, i, &pre->pre_value);
			preset_used(pre);
		}
	}
}

/*
 * Set a setting of a new port.  A setting that does not go with the others is
 * left out if any is for once (`*once'): the preset settings may be new ones.
 */
static int
preset_begin(struct vale_port *port, struct preset *pre, bool *once)
{
	const unsigned int setting = pre->pre_setting;
	int r;

	*once |= pre->pre_once;
	r = vale_setting_begin_port(port, setting, &pre->pre_value);
	if (r == -1 && setting != VALE_SETTING_MIRROR &&
	    !(*once && errno == EINVAL))
		return (-1);
	if (pre->pre_once && setting == VALE_SETTING_SOURCE)
		port->vp_sourced = true;
	preset_used(pre);
	return (0);
}

int
vale_preset_port(struct vale_port *port)
{
	struct preset *pre;
	unsigned int i;
	bool once = false;

	for (i = 0; i < VALE_NSETTINGS; i++) {
		pre = preset_next(port->vp_common.name, i);
		if (pre != NULL && !is_own(i, &pre->pre_value) &&
		    preset_begin(port, pre, &once) == -1)
			return (-1);
	}
	return (0);
}

int
vale_preset_address(const char *name)
{
	struct vale_setting_value value;
	const struct vale_port *port;
	struct preset *pre;
	bool own;

	pthread_mutex_lock(&vale_lock);
	port = vale_switch_find_port(name);
	pre = preset_next(name, VALE_SETTING_SOURCE);
	own = pre != NULL && is_own(VALE_SETTING_SOURCE, &pre->pre_value) &&
	    port != NULL && !port->vp_sourced;
	if (own) {
		value = pre->pre_value;
		preset_used(pre);
	}
	pthread_mutex_unlock(&vale_lock);
	return (own ? vale_setting_set(name, VALE_SETTING_SOURCE, &value) : 0);
}

/* Find or make the entry of a setting.  Returns NULL without memory. */
static struct preset *
preset_make(const char *name, unsigned int setting, bool once)
{
	struct preset *pre = preset_find(name, setting, once);

	if (pre != NULL || (pre = calloc(1, sizeof(*pre))) == NULL)
		return (pre);
	strlcpy(pre->pre_name, name, sizeof(pre->pre_name));
	pre->pre_setting = setting;
	pre->pre_once = once;
	LIST_INSERT_HEAD(&presets, pre, pre_link);
	return (pre);
}

int
vale_preset_change(const char *name, const struct vale_setting_change *sc,
    unsigned int n)
{
	struct preset *pre, *made[VALE_NSETTINGS];
	unsigned int i, nmade = 0;

	for (i = 0; i < n; i++) {
		if (!sc[i].sc_preset ||
		    preset_find(name, sc[i].sc_setting, false) != NULL)
			continue;
		pre = preset_make(name, sc[i].sc_setting, false);
		if (pre == NULL)
			goto fail;
		made[nmade++] = pre;
	}
	for (i = 0; i < n; i++) {
		pre = preset_find(name, sc[i].sc_setting, false);
		if (sc[i].sc_preset)
			pre->pre_value = sc[i].sc_value;
		else
			preset_remove(pre);
		/* A value for once is older. */
		preset_remove(preset_find(name, sc[i].sc_setting, true));
	}
	return (0);

fail:
	while (nmade-- > 0)
		preset_remove(made[nmade]);
	return (vale_setting_error(ENOMEM, "%s", strerror(ENOMEM)));
}

int
vale_setting_preset_all(const char *name, const struct vale_setting_change *sc,
    unsigned int n, unsigned int *failed)
{
	struct vale_setting_change all[VALE_NSETTINGS];
	unsigned int i;

	MPASS(n > 0 && n <= nitems(all));
	for (i = 0; i < n; i++) {
		all[i] = sc[i];
		*failed = n;
		if (!sc[i].sc_preset)
			vale_setting_default(sc[i].sc_setting,
			    &all[i].sc_value);
		else if (vale_setting_check(sc[i].sc_setting,
		    &sc[i].sc_value) == -1)
			return (-1);
	}
	return (vale_setting_change(name, all, n, true, failed) == 0 ||
	    errno == ENXIO ? 0 : -1);
}

int
vale_setting_once(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	struct preset *pre;

	if (vale_setting_check(setting, value) == -1)
		return (-1);
	pthread_mutex_lock(&vale_lock);
	pre = preset_make(name, setting, true);
	if (pre != NULL)
		pre->pre_value = *value;
	pthread_mutex_unlock(&vale_lock);
	return (pre != NULL ? 0 :
	    vale_setting_error(ENOMEM, "%s", strerror(ENOMEM)));
}

int
vale_port_count(const char *name, unsigned int counter, uint64_t value)
{
	struct vale_port *port;
	struct vale_pair *pair;

	pthread_mutex_lock(&vale_lock);
	port = vale_switch_find_port(name);
	if (port != NULL) {
		pair = &port->vp_pair[0];
		atomic_store_64(counter == VALE_C_RX_SYNC ?
		    &pair->pa_rx.rq_syncs : &pair->pa_counter[counter], value);
	}
	pthread_mutex_unlock(&vale_lock);
	if (port != NULL)
		return (0);
	errno = ENXIO;
	return (-1);
}

void
vale_preset_get(const char *name, unsigned int setting,
    struct vale_setting_value *value)
{
	const struct preset *pre;

	vale_setting_default(setting, value);
	pthread_mutex_lock(&vale_lock);
	pre = preset_find(name, setting, false);
	if (pre != NULL)
		*value = pre->pre_value;
	pthread_mutex_unlock(&vale_lock);
	if (vale_setting_table[setting].se_kind == VALE_KIND_RATE)
		vale_setting_burst(value);
}
