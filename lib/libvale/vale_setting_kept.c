/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings of switches and ports that are not there.  A setting is kept for all
 * of a name that come, or is for the next one only.
 *
 * Settings of a configuration are kept, for switches and ports which come and
 * go.  All are set while the switch is created or the port is added, before any
 * view has the port: so no frame passes that the settings forbid.
 *
 * source=own needs the port's address, which its opener tells afterwards
 * (vale_set_address()), before it sends.
 */

#include <sys/param.h>
#include <sys/queue.h>
#include <dev/netmap/vale_rate.h>

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
	bool		k_once;		/* vale_setting_once() */
	struct vale_setting_value k_value;
};

/* vale_lock. */
static LIST_HEAD(, kept) kepts = LIST_HEAD_INITIALIZER(kepts);

static struct kept *
kept_find(const char *name, unsigned int setting, bool once)
{
	struct kept *k;

	mtx_assert(&vale_lock, MA_OWNED);
	LIST_FOREACH(k, &kepts, k_link)
		if (k->k_setting == setting && k->k_once == once &&
		    strcmp(k->k_name, name) == 0)
			break;
	return (k);
}

/* Return the value to set when a port or switch is made, or NULL. */
static struct kept *
kept_next(const char *name, unsigned int setting)
{
	struct kept *k = kept_find(name, setting, true);

	return (k != NULL ? k : kept_find(name, setting, false));
}

/* Note that a value has been set: remove a value that was to be set once. */
static void
kept_used(struct kept *k)
{
	if (k->k_once) {
		LIST_REMOVE(k, k_link);
		free(k);
	}
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
	struct kept *k;
	unsigned int i;

	for (i = 0; i < VALE_NSETTINGS; i++) {
		k = kept_next(vs->vs_name, i);
		if (k != NULL) {
			vale_setting_begin_switch(vs, i, &k->k_value);
			kept_used(k);
		}
	}
}

/*
 * Set a setting of a new port.  A setting that is for once, and does not go
 * with the settings that are kept now, is left out.
 */
static int
kept_begin(struct vale_port *port, struct kept *k)
{
	const unsigned int setting = k->k_setting;
	int r;

	r = vale_setting_begin_port(port, setting, &k->k_value);
	if (r == -1 && setting != VALE_SETTING_MIRROR &&
	    !(k->k_once && errno == EINVAL))
		return (-1);
	if (k->k_once && setting == VALE_SETTING_SOURCE)
		port->vp_sourced = true;
	kept_used(k);
	return (0);
}

int
vale_kept_port(struct vale_port *port)
{
	struct kept *k;
	unsigned int i;

	for (i = 0; i < VALE_NSETTINGS; i++) {
		k = kept_next(port->vp_common.name, i);
		if (k != NULL && !is_own(i, &k->k_value) &&
		    kept_begin(port, k) == -1)
			return (-1);
	}
	return (0);
}

int
vale_kept_address(const char *name)
{
	struct vale_setting_value value;
	const struct vale_port *port;
	struct kept *k;
	bool own;

	pthread_mutex_lock(&vale_lock);
	port = vale_switch_find_port(name);
	k = kept_next(name, VALE_SETTING_SOURCE);
	own = k != NULL && is_own(VALE_SETTING_SOURCE, &k->k_value) &&
	    port != NULL && !port->vp_sourced;
	if (own) {
		value = k->k_value;
		kept_used(k);
	}
	pthread_mutex_unlock(&vale_lock);
	return (own ? vale_setting_set(name, VALE_SETTING_SOURCE, &value) : 0);
}

/* Find or make the entry of a kept setting.  Returns NULL without memory. */
static struct kept *
kept_make(const char *name, unsigned int setting, bool once)
{
	struct kept *k = kept_find(name, setting, once);

	if (k != NULL || (k = calloc(1, sizeof(*k))) == NULL)
		return (k);
	strlcpy(k->k_name, name, sizeof(k->k_name));
	k->k_setting = setting;
	k->k_once = once;
	LIST_INSERT_HEAD(&kepts, k, k_link);
	return (k);
}

int
vale_kept_change(const char *name, const struct vale_setting_change *sc,
    unsigned int n)
{
	struct kept *k, *made[VALE_NSETTINGS];
	unsigned int i, nmade = 0;

	for (i = 0; i < n; i++) {
		if (!sc[i].sc_keep ||
		    kept_find(name, sc[i].sc_setting, false) != NULL)
			continue;
		k = kept_make(name, sc[i].sc_setting, false);
		if (k == NULL)
			goto fail;
		made[nmade++] = k;
	}
	for (i = 0; i < n; i++) {
		k = kept_find(name, sc[i].sc_setting, false);
		if (sc[i].sc_keep)
			k->k_value = sc[i].sc_value;
		else if (k != NULL) {
			LIST_REMOVE(k, k_link);
			free(k);
		}
	}
	return (0);

fail:
	while (nmade-- > 0) {
		LIST_REMOVE(made[nmade], k_link);
		free(made[nmade]);
	}
	return (vale_setting_error(ENOMEM, "%s", strerror(ENOMEM)));
}

int
vale_setting_keep_all(const char *name, const struct vale_setting_change *sc,
    unsigned int n, unsigned int *failed)
{
	struct vale_setting_change all[VALE_NSETTINGS];
	unsigned int i;

	MPASS(n > 0 && n <= nitems(all));
	for (i = 0; i < n; i++) {
		all[i] = sc[i];
		*failed = n;
		if (!sc[i].sc_keep)
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
vale_setting_keep(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	struct vale_setting_change sc = { .sc_setting = setting,
	    .sc_keep = value != NULL };
	unsigned int failed;

	if (value != NULL)
		sc.sc_value = *value;
	return (vale_setting_keep_all(name, &sc, 1, &failed));
}

int
vale_setting_once(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	struct kept *k;

	if (vale_setting_check(setting, value) == -1)
		return (-1);
	pthread_mutex_lock(&vale_lock);
	k = kept_make(name, setting, true);
	if (k != NULL)
		k->k_value = *value;
	pthread_mutex_unlock(&vale_lock);
	return (k != NULL ? 0 :
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

/* Give a rate without a burst the default burst, as when the rate is set. */
static void
burst_default(struct vale_setting_value *value)
{
	const struct vale_rate_conf conf = { .rc_rate = value->sv_number,
	    .rc_burst = value->sv_burst, .rc_frames = value->sv_frames };
	struct vale_rate rate = { .r_conf = { .rc_rate = 0 } };

	(void)vale_rate_set(&rate, &conf);
	value->sv_number = rate.r_conf.rc_rate;
	value->sv_burst = rate.r_conf.rc_burst;
	value->sv_frames = rate.r_conf.rc_frames;
}

void
vale_setting_kept(const char *name, unsigned int setting,
    struct vale_setting_value *value)
{
	const struct kept *k;

	vale_setting_default(setting, value);
	pthread_mutex_lock(&vale_lock);
	k = kept_find(name, setting, false);
	if (k != NULL)
		*value = k->k_value;
	pthread_mutex_unlock(&vale_lock);
	if (vale_setting_table[setting].se_kind == VALE_KIND_RATE)
		burst_default(value);
}
