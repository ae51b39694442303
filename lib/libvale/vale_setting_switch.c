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

#include <stdlib.h>
#include <string.h>

#include "vale_error.h"
#include "vale_link.h"
#include "vale_mirror.h"
#include "vale_rules.h"
#include "vale_setting.h"
#include "vale_setting_preset.h"
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

/* By the numbers of vale_link.h. */
static const char *const links[] = {
	[VALE_LINK_UP] = "up",
	[VALE_LINK_DOWN] = "down",
	[VALE_LINK_UPLINK] = "uplink",
};

/* Return the link that the text names, or nitems(links). */
static unsigned int
link_named(const char *text)
{
	unsigned int i;

	for (i = 0; i < nitems(links); i++)
		if (strcmp(text, links[i]) == 0)
			break;
	return (i);
}

static int
set_link(struct vale_port *port, const struct vale_setting_value *value)
{
	const unsigned int i = link_named(value->sv_text);

	if (i == nitems(links))
		return (vale_fail(EINVAL));
	port->vp_link = i;
	return (0);
}

static void
get_link(const struct vale_port *port, struct vale_setting_value *value)
{
	memcpy(value->sv_text, links[port->vp_link],
	    strlen(links[port->vp_link]) + 1);
}

static int
set_mirror(struct vale_port *port, const struct vale_setting_value *value)
{
	const size_t len = strlen(port->vp_switch->vs_name);
	const char *of = value->sv_text;

	if (value->sv_number != 0 && (strcmp(of, port->vp_common.name) == 0 ||
	    strncmp(of, port->vp_common.name, len + 1) != 0))
		return (vale_fail(EINVAL));
	return (vale_mirror_set(port, of, value->sv_number));
}

static void
get_mirror(const struct vale_port *port, struct vale_setting_value *value)
{
	value->sv_number = port->vp_mirror_what;
	memcpy(value->sv_text, port->vp_mirror_of, sizeof(port->vp_mirror_of));
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

/*
 * Copy the rules of a port, to change the copy and rules_set() it.  Returns
 * NULL without memory.  port_set() and change_port() free the former rules.
 */
static struct vale_rules *
rules_new(const struct vale_port *port)
{
	struct vale_rules *ru = malloc(sizeof(*ru));

	if (ru != NULL)
		*ru = *port->vp_rules;
	return (ru);
}

static int
rules_set(struct vale_port *port, struct vale_rules *ru)
{
	/* The port's stations are in other VLANs now, and would count twice. */
	if (memcmp(&ru->rls_vlan, &port->vp_rules->rls_vlan,
	    sizeof(ru->rls_vlan)) != 0)
		port->vp_forget = true;
	if (vale_rules_empty(ru)) {
		free(ru);
		port->vp_rules = &vale_rules_none;
	} else
		port->vp_rules = ru;
	return (0);
}

static int
rules_invalid(struct vale_rules *ru)
{
	free(ru);
	return (vale_fail(EINVAL));
}

static int
set_vlan(struct vale_port *port, const struct vale_setting_value *value)
{
	struct vale_rules *ru;

	/* A trunk has no access to end. */
	if (value->sv_number == 0 &&
	    port->vp_rules->rls_vlan.vln_mode == VALE_VLAN_TRUNK)
		return (0);
	ru = rules_new(port);
	if (ru == NULL)
		return (-1);
	memset(&ru->rls_vlan, 0, sizeof(ru->rls_vlan));
	memset(ru->rls_trunk, 0, sizeof(ru->rls_trunk));
	if (value->sv_number != 0)
		vale_vlan_access(&ru->rls_vlan, value->sv_number);
	return (rules_set(port, ru));
}

static void
get_vlan(const struct vale_port *port, struct vale_setting_value *value)
{
	const struct vale_vlan *vn = &port->vp_rules->rls_vlan;

	if (vn->vln_mode == VALE_VLAN_ACCESS)
		value->sv_number = vn->vln_native;
}

static int
set_trunk(struct vale_port *port, const struct vale_setting_value *value)
{
	struct vale_rules *ru = rules_new(port);
	const bool no = strcmp(value->sv_text, "no") == 0;

	if (ru == NULL)
		return (-1);
	if (!no && !vale_vlan_trunk(&ru->rls_vlan, value->sv_text))
		return (rules_invalid(ru));
	/* An access port has no trunk to end. */
	if (no && ru->rls_vlan.vln_mode == VALE_VLAN_TRUNK)
		memset(&ru->rls_vlan, 0, sizeof(ru->rls_vlan));
	memset(ru->rls_trunk, 0, sizeof(ru->rls_trunk));
	if (!no)
		memcpy(ru->rls_trunk, value->sv_text, sizeof(ru->rls_trunk));
	return (rules_set(port, ru));
}

/* Return the text of a rule, or `none' of a port without the rule. */
static void
get_text(const char *text, const char *none, struct vale_setting_value *value)
{
	if (text[0] != '\0')
		memcpy(value->sv_text, text, sizeof(value->sv_text));
	else
		memcpy(value->sv_text, none, strlen(none) + 1);
}

static void
get_trunk(const struct vale_port *port, struct vale_setting_value *value)
{
	get_text(port->vp_rules->rls_trunk, "no", value);
}

static int
set_native(struct vale_port *port, const struct vale_setting_value *value)
{
	struct vale_rules *ru;

	if (port->vp_rules->rls_vlan.vln_mode != VALE_VLAN_TRUNK)
		return (value->sv_number == 0 ? 0 : vale_setting_error(EINVAL,
		    "a native VLAN is that of a trunk"));
	ru = rules_new(port);
	if (ru == NULL)
		return (-1);
	ru->rls_vlan.vln_native = value->sv_number;
	return (rules_set(port, ru));
}

static void
get_native(const struct vale_port *port, struct vale_setting_value *value)
{
	const struct vale_vlan *vn = &port->vp_rules->rls_vlan;

	if (vn->vln_mode == VALE_VLAN_TRUNK)
		value->sv_number = vn->vln_native;
}

static int
set_source(struct vale_port *port, const struct vale_setting_value *value)
{
	static const uint8_t none[sizeof(port->vp_address)];
	struct vale_rules *ru;
	const bool own = strcmp(value->sv_text, "own") == 0;

	if (own && memcmp(port->vp_address, none, sizeof(none)) == 0)
		return (vale_setting_error(EINVAL, "the switch does not know "
		    "the port's own address: source must be a list"));
	ru = rules_new(port);
	if (ru == NULL)
		return (-1);
	if (own) {
		ru->rls_guard.gd_naddrs = 1;
		memcpy(ru->rls_guard.gd_addr[0], port->vp_address,
		    sizeof(port->vp_address));
	} else if (!vale_guard_sources(&ru->rls_guard, value->sv_text))
		return (rules_invalid(ru));
	memcpy(ru->rls_source, value->sv_text, sizeof(ru->rls_source));
	return (rules_set(port, ru));
}

static void
get_source(const struct vale_port *port, struct vale_setting_value *value)
{
	get_text(port->vp_rules->rls_source, "any", value);
}

static int
set_ip(struct vale_port *port, const struct vale_setting_value *value)
{
	struct vale_rules *ru = rules_new(port);

	if (ru == NULL)
		return (-1);
	if (!vale_guard_prefixes(&ru->rls_guard, value->sv_text))
		return (rules_invalid(ru));
	memcpy(ru->rls_ip, value->sv_text, sizeof(ru->rls_ip));
	return (rules_set(port, ru));
}

static void
get_ip(const struct vale_port *port, struct vale_setting_value *value)
{
	get_text(port->vp_rules->rls_ip, "any", value);
}

static void
set_reserved(struct vale_switch *vs, const struct vale_setting_value *value)
{
	atomic_store_bool(&vs->vs_reserved, value->sv_number != 0);
}

static void
get_reserved(const struct vale_switch *vs, struct vale_setting_value *value)
{
	value->sv_number = vs->vs_reserved;
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
	[VALE_SETTING_IP] = { .set_port = set_ip, .get_port = get_ip,
	    .view = true },
	[VALE_SETTING_LIMIT] = { .set_port = set_limit,
	    .get_port = get_limit },
	[VALE_SETTING_LINK] = { .set_port = set_link, .get_port = get_link,
	    .view = true },
	[VALE_SETTING_MIRROR] = { .set_port = set_mirror,
	    .get_port = get_mirror, .view = true },
	[VALE_SETTING_NATIVE] = { .set_port = set_native,
	    .get_port = get_native, .view = true },
	[VALE_SETTING_PRIVATE] = { .set_port = set_private,
	    .get_port = get_private, .view = true },
	[VALE_SETTING_RATE] = { .set_port = set_rate, .get_port = get_rate },
	[VALE_SETTING_RESERVED] = { .set_switch = set_reserved,
	    .get_switch = get_reserved },
	[VALE_SETTING_SOURCE] = { .set_port = set_source,
	    .get_port = get_source, .view = true },
	[VALE_SETTING_TRUNK] = { .set_port = set_trunk,
	    .get_port = get_trunk, .view = true },
	[VALE_SETTING_VLAN] = { .set_port = set_vlan, .get_port = get_vlan,
	    .view = true },
	[VALE_SETTING_WEIGHT] = { .set_port = set_weight,
	    .get_port = get_weight },
};

/* Say that there is no such switch or port. */
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
		return (vale_setting_error(EINVAL, "%s is on or off",
		    se->se_what));
	case VALE_KIND_RATE:
		return (vale_setting_error(EINVAL, "the rate or the burst is "
		    "out of range"));
	case VALE_KIND_MIRROR:
		return (vale_setting_error(EINVAL, "a port can mirror another "
		    "port of the same switch"));
	case VALE_KIND_TEXT:
		return (vale_setting_error(EINVAL, "%s", se->se_what));
	default:
		return (vale_setting_error(EINVAL, "the %s must be %ju to "
		    "%ju%s%s", se->se_what, (uintmax_t)se->se_min,
		    (uintmax_t)se->se_max, se->se_unit[0] != '\0' ? " " : "",
		    se->se_unit));
	}
}

/* Return whether a text is valid, whatever the port. */
static bool
text_valid(unsigned int setting, const char *text)
{
	struct vale_rules ru = vale_rules_none;

	switch (setting) {
	case VALE_SETTING_LINK:
		return (link_named(text) < nitems(links));
	case VALE_SETTING_TRUNK:
		return (strcmp(text, "no") == 0 ||
		    vale_vlan_trunk(&ru.rls_vlan, text));
	case VALE_SETTING_SOURCE:
		return (strcmp(text, "own") == 0 ||
		    vale_guard_sources(&ru.rls_guard, text));
	default:
		return (vale_guard_prefixes(&ru.rls_guard, text));
	}
}

/* Return whether a value is valid, whatever the port. */
static bool
value_valid(unsigned int setting, const struct vale_setting_value *value)
{
	const struct vale_setting *se = &vale_setting_table[setting];
	const struct vale_rate_conf conf = { .rc_rate = value->sv_number,
	    .rc_burst = value->sv_burst, .rc_frames = value->sv_frames };
	struct vale_rate rate = { .r_conf = { .rc_rate = 0 } };

	switch (se->se_kind) {
	case VALE_KIND_RATE:
		return (vale_rate_set(&rate, &conf) == 0);
	case VALE_KIND_TEXT:
		return (text_valid(setting, value->sv_text));
	case VALE_KIND_MIRROR:
		if (value->sv_number != 0 &&
		    vale_name_error(value->sv_text) != NULL)
			return (false);
		break;
	default:
		break;
	}
	return (value->sv_number >= se->se_min &&
	    value->sv_number <= se->se_max);
}

int
vale_setting_check(unsigned int setting,
    const struct vale_setting_value *value)
{
	(void)vale_setting_error(0, "%s", "");
	return (value_valid(setting, value) ? 0 :
	    out_of_range(&vale_setting_table[setting]));
}

int
vale_setting_begin_port(struct vale_port *port, unsigned int setting,
    const struct vale_setting_value *value)
{
	const struct vale_rules *rules = port->vp_rules;
	int r;

	mtx_assert(&vale_lock, MA_OWNED);
	r = code[setting].set_port(port, value);
	if (port->vp_rules != rules)
		vale_rules_free(rules);
	return (r);
}

void
vale_setting_begin_switch(struct vale_switch *vs, unsigned int setting,
    const struct vale_setting_value *value)
{
	mtx_assert(&vale_lock, MA_OWNED);
	code[setting].set_switch(vs, value);
}

/*
 * Set settings of a port.  Rules that a view has are not freed.  Returns how
 * many were set before the first that failed, whose errno and text are left.
 */
static unsigned int
port_set(struct vale_port *port, const struct vale_setting_change *sc,
    unsigned int n)
{
	const struct vale_rules *const viewed = port->vp_rules, *before;
	char text[VALE_SETTING_SIZE] = "";
	unsigned int i, good = n;
	int error = 0;

	for (i = 0; i < n; i++) {
		before = port->vp_rules;
		if (code[sc[i].sc_setting].set_port(port,
		    &sc[i].sc_value) == -1 && good == n) {
			good = i;
			error = errno;
			strlcpy(text, vale_error(), sizeof(text));
		}
		if (before != viewed && before != port->vp_rules)
			vale_rules_free(before);
	}
	(void)vale_setting_error(error, "%s", text);
	return (good);
}

/* Return whether views have one of the settings. */
static bool
is_viewed(const struct vale_setting_change *sc, unsigned int n)
{
	for (; n > 0; sc++, n--)
		if (code[sc->sc_setting].view)
			return (true);
	return (false);
}

/*
 * Change a port that may be there, of a switch that is.  Returns how many
 * settings were set before the first that failed, or UINT_MAX if the settings
 * are not even preset; with errno ENXIO there is no port.
 */
static unsigned int
change_port(struct vale_switch *vs, const char *name,
    const struct vale_setting_change *sc, unsigned int n, bool preset)
{
	const bool viewed = is_viewed(sc, n);
	const struct vale_rules *rules;
	struct vale_port *port;
	unsigned int good = 0;
	int error = ENXIO;

	/* What views do not have waits for nobody. */
	if (viewed)
		vale_switch_change(vs);
	port = vale_switch_port(vs, name);
	if (preset && vale_preset_change(name, sc, n) == -1) {
		good = UINT_MAX;
		error = ENOMEM;
	} else if (port != NULL) {
		rules = port->vp_rules;
		good = port_set(port, sc, n);
		error = errno;
		if (viewed)
			vale_view_publish(vs);
		/* No sender has the former rules now. */
		if (port->vp_rules != rules)
			vale_rules_free(rules);
	}
	if (viewed)
		vale_switch_changed(vs);
	errno = error;
	return (good);
}

/* Say what errno means. */
static int
failed_to(const struct vale_setting *se)
{
	if (vale_error()[0] != '\0')
		return (-1);
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
vale_setting_change(const char *name, const struct vale_setting_change *sc,
    unsigned int n, bool preset, unsigned int *failed)
{
	const struct vale_setting *se = &vale_setting_table[sc->sc_setting];
	struct vale_switch *vs;
	unsigned int good = 0;

	(void)vale_setting_error(0, "%s", "");
	pthread_mutex_lock(&vale_lock);
	vs = vale_switch_find(name, strcspn(name, ":"));
	if (vs != NULL && se->se_scope == VALE_OF_PORT)
		good = change_port(vs, name, sc, n, preset);
	else if (preset && vale_preset_change(name, sc, n) == -1)
		good = UINT_MAX;
	else if (vs == NULL || name[strlen(vs->vs_name)] != '\0')
		errno = ENXIO;
	else
		for (; good < n; good++)
			code[sc[good].sc_setting].set_switch(vs,
			    &sc[good].sc_value);
	pthread_mutex_unlock(&vale_lock);
	*failed = MIN(good, n);
	return (good == n ? 0 : failed_to(&vale_setting_table[
	    sc[good < n ? good : 0].sc_setting]));
}

int
vale_setting_set_all(const char *name, const struct vale_setting_change *sc,
    unsigned int n)
{
	unsigned int failed, i;

	for (i = 0; i < n; i++) {
		if (vale_setting_check(sc[i].sc_setting,
		    &sc[i].sc_value) == -1)
			return (-1);
		if (vale_setting_table[sc[i].sc_setting].se_scope !=
		    vale_setting_table[sc->sc_setting].se_scope)
			return (vale_setting_error(EINVAL,
			    "settings of a switch and of a port"));
	}
	return (vale_setting_change(name, sc, n, false, &failed));
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
