/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The settings of the switches in this process: the code of each row of
 * vale_setting.h.  No sender waits for a change.  Most are words that senders
 * read; what a view has (vale_view.c) is published, and the change waits until
 * all senders have it.  The learning table has its own rules.
 */

#include <string.h>

#include "vale_error.h"
#include "vale_mirror.h"
#include "vale_setting.h"
#include "vale_switch.h"
#include "vale_view.h"

/* A change of a port; its value is in range. */
typedef int	port_change(struct vale_port *port,
		    const struct vale_setting_value *value);

_Static_assert(VALE_WEIGHT_MAX == VALE_SHARE_WEIGHT_MAX, "weights");

static void
set_ageing(struct vale_switch *vs, const struct vale_setting_value *value)
{
	vale_fdb_set_ageing(&vs->vs_fdb, value->sv_number);
}

static void
get_ageing(const struct vale_switch *vs, struct vale_setting_value *value)
{
	value->sv_number = vs->vs_fdb.fdb_ageing_s;
}

static void
set_batch(struct vale_switch *vs, const struct vale_setting_value *value)
{
	atomic_store_32(&vs->vs_batch, value->sv_number);
}

static void
get_batch(const struct vale_switch *vs, struct vale_setting_value *value)
{
	value->sv_number = vs->vs_batch;
}

static int
set_limit(struct vale_port *port, const struct vale_setting_value *value)
{
	vale_fdb_set_limit(&port->vp_switch->vs_fdb, port->vp_index,
	    value->sv_number);
	return (0);
}

static void
get_limit(const struct vale_port *port, struct vale_setting_value *value)
{
	value->sv_number = port->vp_switch->vs_fdb.fdb_limit[port->vp_index];
}

static int
set_mirror(struct vale_port *port, const struct vale_setting_value *value)
{
	const size_t len = strlen(port->vp_switch->vs_name);
	const char *of = value->sv_name;

	if (value->sv_number != 0 && (strcmp(of, port->vp_common.name) == 0 ||
	    strncmp(of, port->vp_common.name, len + 1) != 0))
		return (vale_fail(EINVAL));
	return (vale_mirror_set(port, of, value->sv_number));
}

static void
get_mirror(const struct vale_port *port, struct vale_setting_value *value)
{
	value->sv_number = port->vp_mirror_what;
	memcpy(value->sv_name, port->vp_mirror_of, sizeof(value->sv_name));
}

static int
set_private(struct vale_port *port, const struct vale_setting_value *value)
{
	port->vp_private = value->sv_number != 0;
	return (0);
}

static void
get_private(const struct vale_port *port, struct vale_setting_value *value)
{
	value->sv_number = port->vp_private;
}

static int
set_rate(struct vale_port *port, const struct vale_setting_value *value)
{
	const struct vale_rate_conf conf = { .rc_rate = value->sv_number,
	    .rc_burst = value->sv_burst, .rc_frames = value->sv_frames };
	int error;

	pthread_mutex_lock(&port->vp_rate_lock);
	error = vale_rate_set(&port->vp_rate, &conf);
	atomic_store_bool(&port->vp_limited, vale_rate_limited(&port->vp_rate));
	pthread_mutex_unlock(&port->vp_rate_lock);
	return (error == 0 ? 0 : vale_fail(error));
}

static void
get_rate(const struct vale_port *port, struct vale_setting_value *value)
{
	const struct vale_rate_conf *conf = &port->vp_rate.r_conf;

	value->sv_number = conf->rc_rate;
	value->sv_burst = conf->rc_burst;
	value->sv_frames = conf->rc_frames;
}

static int
set_weight(struct vale_port *port, const struct vale_setting_value *value)
{
	atomic_store_8(&port->vp_switch->vs_weight[port->vp_index],
	    value->sv_number);
	return (0);
}

static void
get_weight(const struct vale_port *port, struct vale_setting_value *value)
{
	value->sv_number = port->vp_switch->vs_weight[port->vp_index];
}

static const struct {
	/* Of a switch. */
	void	(*set_switch)(struct vale_switch *vs,
		    const struct vale_setting_value *value);
	void	(*get_switch)(const struct vale_switch *vs,
		    struct vale_setting_value *value);
	/* Of a port. */
	port_change *set_port;
	void	(*get_port)(const struct vale_port *port,
		    struct vale_setting_value *value);
	bool	 view;			/* views have it */
} code[VALE_NSETTINGS] = {
	[VALE_SETTING_AGEING] = { .set_switch = set_ageing,
	    .get_switch = get_ageing },
	[VALE_SETTING_BATCH] = { .set_switch = set_batch,
	    .get_switch = get_batch },
	[VALE_SETTING_LIMIT] = { .set_port = set_limit,
	    .get_port = get_limit },
	[VALE_SETTING_MIRROR] = { .set_port = set_mirror,
	    .get_port = get_mirror, .view = true },
	[VALE_SETTING_PRIVATE] = { .set_port = set_private,
	    .get_port = get_private, .view = true },
	[VALE_SETTING_RATE] = { .set_port = set_rate, .get_port = get_rate },
	[VALE_SETTING_WEIGHT] = { .set_port = set_weight,
	    .get_port = get_weight },
};

/* Say that there is none. */
static int
no_such(enum vale_setting_scope scope)
{
	return (vale_setting_error(ENXIO, "there is no such %s",
	    scope == VALE_OF_SWITCH ? "switch" : "port"));
}

/* Say that a value is out of range. */
static int
out_of_range(const struct vale_setting *se)
{
	switch (se->se_kind) {
	case VALE_KIND_BOOL:
		return (vale_setting_error(EINVAL, "a port is %s, 1, or not, "
		    "0", se->se_what));
	case VALE_KIND_RATE:
		return (vale_setting_error(EINVAL, "the rate or the burst is "
		    "out of range"));
	case VALE_KIND_MIRROR:
		return (vale_setting_error(EINVAL, "a port can mirror another "
		    "port of the same switch"));
	default:
		return (vale_setting_error(EINVAL, "the %s must be %ju to "
		    "%ju%s%s", se->se_what, (uintmax_t)se->se_min,
		    (uintmax_t)se->se_max, se->se_unit[0] != '\0' ? " " : "",
		    se->se_unit));
	}
}

/* Change what views do not have. */
static int
change_port(const char *name, port_change *change,
    const struct vale_setting_value *value)
{
	struct vale_port *port;
	int r;

	pthread_mutex_lock(&vale_lock);
	port = vale_switch_find_port(name);
	r = port != NULL ? change(port, value) : vale_fail(ENXIO);
	pthread_mutex_unlock(&vale_lock);
	return (r);
}

/* Change what they have. */
static int
change_view(const char *name, port_change *change,
    const struct vale_setting_value *value)
{
	struct vale_port *port;
	struct vale_switch *vs;
	int error = ENXIO;

	pthread_mutex_lock(&vale_lock);
	vs = vale_switch_find(name, strcspn(name, ":"));
	if (vs != NULL) {
		vale_switch_change(vs);
		port = vale_switch_port(vs, name);
		if (port != NULL)
			error = change(port, value) == -1 ? errno : 0;
		if (error == 0)
			vale_view_publish(vs);
		vale_switch_changed(vs);
	}
	pthread_mutex_unlock(&vale_lock);
	return (error == 0 ? 0 : vale_fail(error));
}

/* Change what views of a switch do not have. */
static int
change_switch(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	struct vale_switch *vs;

	pthread_mutex_lock(&vale_lock);
	vs = vale_switch_find(name, strlen(name));
	if (vs != NULL)
		code[setting].set_switch(vs, value);
	pthread_mutex_unlock(&vale_lock);
	return (vs != NULL ? 0 : vale_fail(ENXIO));
}

int
vale_setting_set(const char *name, unsigned int setting,
    const struct vale_setting_value *value)
{
	const struct vale_setting *se = &vale_setting_table[setting];
	int r;

	/* vale_rate_set() knows what a rate may be. */
	if (se->se_kind != VALE_KIND_RATE &&
	    (value->sv_number < se->se_min || value->sv_number > se->se_max))
		return (out_of_range(se));
	if (se->se_kind == VALE_KIND_MIRROR && value->sv_number != 0 &&
	    vale_name_error(value->sv_name) != NULL)
		return (out_of_range(se));
	if (se->se_scope == VALE_OF_SWITCH)
		r = change_switch(name, setting, value);
	else if (code[setting].view)
		r = change_view(name, code[setting].set_port, value);
	else
		r = change_port(name, code[setting].set_port, value);
	if (r == 0)
		return (0);
	switch (errno) {
	case ENXIO:
		return (no_such(se->se_scope));
	case EINVAL:
		return (out_of_range(se));
	default:
		return (vale_setting_error(errno, "%s", strerror(errno)));
	}
}

int
vale_setting_get(const char *name, enum vale_setting_scope scope,
    struct vale_setting_value value[VALE_NSETTINGS])
{
	const struct vale_port *port = NULL;
	const struct vale_switch *vs = NULL;
	unsigned int i;

	memset(value, 0, VALE_NSETTINGS * sizeof(value[0]));
	pthread_mutex_lock(&vale_lock);
	if (scope == VALE_OF_SWITCH)
		vs = vale_switch_find(name, strlen(name));
	else
		port = vale_switch_find_port(name);
	for (i = 0; i < VALE_NSETTINGS; i++) {
		if (vs != NULL && code[i].get_switch != NULL)
			code[i].get_switch(vs, &value[i]);
		if (port != NULL && code[i].get_port != NULL)
			code[i].get_port(port, &value[i]);
	}
	pthread_mutex_unlock(&vale_lock);
	return (vs != NULL || port != NULL ? 0 : no_such(scope));
}
