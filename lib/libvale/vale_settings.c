/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings of switches and ports.  No sender waits for a change.  Most are
 * words that senders read; what a view has (vale_view.c) is published, and the
 * change waits until all senders have it.  The learning table has its own
 * rules.
 */

#include <string.h>

#include "vale_error.h"
#include "vale_mirror.h"
#include "vale_switch.h"
#include "vale_view.h"

/* A change of a port; its value is valid. */
typedef int	port_change(struct vale_port *port, const void *value);

/* Change what views do not have. */
static int
change_port(const char *name, port_change *change, const void *value)
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
change_view(const char *name, port_change *change, const void *value)
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
change_switch(const char *name, void (*change)(struct vale_switch *, uint32_t),
    uint32_t value)
{
	struct vale_switch *vs;

	pthread_mutex_lock(&vale_lock);
	vs = vale_switch_find(name, strlen(name));
	if (vs != NULL)
		change(vs, value);
	pthread_mutex_unlock(&vale_lock);
	return (vs != NULL ? 0 : vale_fail(ENXIO));
}

_Static_assert(VALE_WEIGHT_MAX == VALE_SHARE_WEIGHT_MAX, "weights");

static void
change_ageing(struct vale_switch *vs, uint32_t seconds)
{
	vale_fdb_set_ageing(&vs->vs_fdb, seconds);
}

int
vale_set_ageing(const char *switch_name, uint32_t seconds)
{
	if (seconds > VALE_FDB_AGEING_MAX_S)
		return (vale_fail(EINVAL));
	return (change_switch(switch_name, change_ageing, seconds));
}

static void
change_batch(struct vale_switch *vs, uint32_t slots)
{
	atomic_store_32(&vs->vs_batch, slots);
}

int
vale_set_batch(const char *switch_name, uint32_t slots)
{
	if (slots < 1 || slots > VALE_BATCH_MAX)
		return (vale_fail(EINVAL));
	return (change_switch(switch_name, change_batch, slots));
}

int
vale_switch_settings(const char *switch_name, struct vale_switch_settings *ss)
{
	const struct vale_switch *vs;

	pthread_mutex_lock(&vale_lock);
	vs = vale_switch_find(switch_name, strlen(switch_name));
	if (vs != NULL) {
		ss->ss_ageing_s = vs->vs_fdb.f_ageing_s;
		ss->ss_batch = vs->vs_batch;
	}
	pthread_mutex_unlock(&vale_lock);
	return (vs != NULL ? 0 : vale_fail(ENXIO));
}

static int
change_limit(struct vale_port *port, const void *value)
{
	const uint32_t *limit = value;

	vale_fdb_set_limit(&port->vp_switch->vs_fdb, port->vp_index, *limit);
	return (0);
}

int
vale_set_limit(const char *name, uint32_t limit)
{
	if (limit > VALE_FDB_ENTRIES)
		return (vale_fail(EINVAL));
	return (change_port(name, change_limit, &limit));
}

static int
change_rate(struct vale_port *port, const void *value)
{
	int error;

	pthread_mutex_lock(&port->vp_rate_lock);
	error = vale_rate_set(&port->vp_rate, value);
	atomic_store_bool(&port->vp_limited, vale_rate_limited(&port->vp_rate));
	pthread_mutex_unlock(&port->vp_rate_lock);
	return (error == 0 ? 0 : vale_fail(error));
}

int
vale_set_rate(const char *name, const struct vale_rate_conf *conf)
{
	return (change_port(name, change_rate, conf));
}

int
vale_get_rate(const char *name, struct vale_rate_conf *conf)
{
	const struct vale_port *port;

	pthread_mutex_lock(&vale_lock);
	port = vale_switch_find_port(name);
	if (port != NULL)
		*conf = port->vp_rate.r_conf;
	pthread_mutex_unlock(&vale_lock);
	return (port != NULL ? 0 : vale_fail(ENXIO));
}

static int
change_weight(struct vale_port *port, const void *value)
{
	const uint32_t *weight = value;

	atomic_store_8(&port->vp_switch->vs_weight[port->vp_index], *weight);
	return (0);
}

int
vale_set_weight(const char *name, uint32_t weight)
{
	if (weight < 1 || weight > VALE_WEIGHT_MAX)
		return (vale_fail(EINVAL));
	return (change_port(name, change_weight, &weight));
}

static int
change_private(struct vale_port *port, const void *value)
{
	const bool *private = value;

	port->vp_private = *private;
	return (0);
}

int
vale_set_private(const char *name, bool private)
{
	return (change_view(name, change_private, &private));
}

struct mirror {
	const char	*of;
	unsigned int	 what;
};

static int
change_mirror(struct vale_port *port, const void *value)
{
	const struct mirror *m = value;
	const size_t len = strlen(port->vp_switch->vs_name);

	if (m->what != 0 && (strcmp(m->of, port->vp_common.name) == 0 ||
	    strncmp(m->of, port->vp_common.name, len + 1) != 0))
		return (vale_fail(EINVAL));
	return (vale_mirror_set(port, m->of, m->what));
}

int
vale_set_mirror(const char *name, const char *of, unsigned int what)
{
	const struct mirror m = { of, what };

	if ((what & ~VALE_MIRROR_BOTH) != 0 ||
	    (what != 0 && (of == NULL || vale_name_error(of) != NULL)))
		return (vale_fail(EINVAL));
	return (change_view(name, change_mirror, &m));
}

int
vale_port_settings(const char *name, struct vale_port_settings *ps)
{
	const struct vale_port *port;
	const struct vale_switch *vs;

	pthread_mutex_lock(&vale_lock);
	port = vale_switch_find_port(name);
	if (port != NULL) {
		vs = port->vp_switch;
		ps->ps_limit = vs->vs_fdb.f_limit[port->vp_index];
		ps->ps_private = port->vp_private;
		ps->ps_weight = vs->vs_weight[port->vp_index];
		ps->ps_mirror = port->vp_mirror_what;
		memcpy(ps->ps_mirror_of, port->vp_mirror_of,
		    sizeof(ps->ps_mirror_of));
	}
	pthread_mutex_unlock(&vale_lock);
	return (port != NULL ? 0 : vale_fail(ENXIO));
}
