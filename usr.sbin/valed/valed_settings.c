/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings of switches and ports: valed_settings.h.  A setting of an adapter is
 * one of its port.  One thread.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "valed_config.h"
#include "valed_settings.h"
#include "valed_values.h"

bool
valed_settings_room(struct valed_settings *ss, unsigned int n)
{
	struct valed_setting *list;

	if (ss->vss_max - ss->vss_n >= n)
		return (true);
	list = reallocarray(ss->vss_list, ss->vss_n + n, sizeof(*list));
	if (list == NULL)
		return (false);
	ss->vss_list = list;
	ss->vss_max = ss->vss_n + n;
	return (true);
}

/* Add a setting to the configuration that is read, or return NULL. */
static struct valed_setting *
settings_add(struct valed_settings *ss)
{
	if (valed_settings_room(ss, 1))
		return (&ss->vss_list[ss->vss_n++]);
	valed_wrong(EX_OSERR, "%s", strerror(errno));
	return (NULL);
}

static struct valed_setting *
settings_find(const struct valed_settings *ss, const char *name,
    unsigned int setting)
{
	struct valed_setting *st = ss->vss_list;
	unsigned int n;

	for (n = ss->vss_n; n > 0; st++, n--)
		if (st->vst_setting == setting &&
		    strcmp(st->vst_name, name) == 0)
			return (st);
	return (NULL);
}

/*
 * Where a setting was set: only while the settings are made.
 */

/* Find the adapter with this port, or return NULL. */
static const struct adapter_config *
adapter_of(const struct adapter_config *ac, unsigned int n, const char *port)
{
	const struct adapter_config *end = ac + n;

	for (; ac < end; ac++)
		if (strcmp(ac->ac_backend, port) == 0)
			return (ac);
	return (NULL);
}

static struct valed_where
where_node(int place, unsigned int setting)
{
	const struct valed_node *vn = valed_config_find(place >> 8,
	    place >> 3 & VALED_MAXSLOT, place & VALED_MAXFUNC);
	int i;

	for (i = 0; valed_variables[i].var_setting != (int)setting; i++)
		continue;
	return (valed_config_where(vn, i));
}

static struct valed_where
where(const struct valed_setting *st)
{
	const struct valed_line *ln, *lines;
	unsigned int n = valed_config_lines(&lines);

	if (st->vst_place != -1)
		return (where_node(st->vst_place, st->vst_setting));
	for (ln = lines; n > 0; ln++, n--)
		if (ln->ln_of != VALED_OF_ATTACH &&
		    ln->ln_setting == st->vst_setting &&
		    strcmp(ln->ln_name, st->vst_name) == 0)
			return (valed_line_where(ln));
	return ((struct valed_where){ "", "" });
}

static const char *
setting_name(const struct valed_setting *st)
{
	return (vale_setting_table[st->vst_setting].se_name);
}

static void
add_node(struct valed_settings *ss, const struct adapter_config *ac)
{
	const struct valed_node *vn = valed_config_find(ac->ac_bus,
	    ac->ac_slot, ac->ac_func);
	struct vale_setting_value value;
	struct valed_setting *st;
	const char *text;
	int i, setting;

	for (i = 0; i < VALED_NVARIABLES; i++) {
		setting = valed_variables[i].var_setting;
		text = vn->nd_variable[i].nt_value;
		if (setting == -1 || text == NULL || !valed_values_setting(
		    valed_config_where(vn, i), setting, text, &value))
			continue;
		st = settings_add(ss);
		if (st == NULL)
			return;
		strlcpy(st->vst_name, ac->ac_backend, sizeof(st->vst_name));
		st->vst_place = (int)valed_place(ac);
		st->vst_setting = setting;
		st->vst_value = value;
	}
}

/* Find or add the setting of a line, which replaces that of -s. */
static struct valed_setting *
line_setting(struct valed_settings *ss, const struct valed_line *ln)
{
	struct valed_setting *st = settings_find(ss, ln->ln_name,
	    ln->ln_setting);

	if (st == NULL)
		return (settings_add(ss));
	if (where(st).wh_option[0] == '\0')
		valed_bad(valed_line_where(ln), "%s= of the adapter with this "
		    "port: see %s", setting_name(st), where(st).wh_text);
	return (st);
}

static void
add_line(struct valed_settings *ss, const struct valed_line *ln)
{
	struct vale_setting_value value;
	struct valed_setting *st;

	if (!valed_values_setting(valed_line_where(ln), ln->ln_setting,
	    ln->ln_value, &value))
		return;
	st = line_setting(ss, ln);
	if (st == NULL)
		return;
	strlcpy(st->vst_name, ln->ln_name, sizeof(st->vst_name));
	st->vst_place = -1;
	st->vst_setting = ln->ln_setting;
	st->vst_value = value;
}

/* Return whether a port has a setting that is not the default. */
static bool
has(const struct valed_settings *ss, const char *name, unsigned int setting)
{
	const struct valed_setting *st = settings_find(ss, name, setting);
	struct vale_setting_value otherwise;

	vale_setting_default(setting, &otherwise);
	return (st != NULL && (st->vst_value.sv_number != otherwise.sv_number ||
	    strcmp(st->vst_value.sv_text, otherwise.sv_text) != 0));
}

/* Check a setting beside the others. */
static void
check(const struct valed_settings *ss, const struct valed_setting *st,
    const struct adapter_config *adapter)
{
	const char *name = st->vst_name, *text = st->vst_value.sv_text;

	if (adapter != NULL && !valed_has_port(adapter))
		valed_bad(where(st), "%s=: the port of this name is on the "
		    "switch of another valed: see control=%s",
		    setting_name(st), adapter->ac_control);
	if (!has(ss, name, st->vst_setting))
		return;
	switch (st->vst_setting) {
	case VALE_SETTING_TRUNK:
		if (has(ss, name, VALE_SETTING_VLAN))
			valed_bad(where(st), "both vlan= and trunk=");
		break;
	case VALE_SETTING_NATIVE:
		if (!has(ss, name, VALE_SETTING_TRUNK))
			valed_bad(where(st), "native=%ju: without trunk=",
			    (uintmax_t)st->vst_value.sv_number);
		break;
	case VALE_SETTING_SOURCE:
		if (strcmp(text, "own") == 0 && adapter == NULL)
			valed_bad(where(st), "source=own: %s is not the port "
			    "of an adapter", name);
		break;
	case VALE_SETTING_MIRROR:
		if (strcmp(text, name) == 0 || strncmp(text, name,
		    strcspn(name, ":") + 1) != 0)
			valed_bad(where(st), "mirror=%s: a port can mirror "
			    "another port of the same switch", text);
		break;
	default:
		break;
	}
}

void
valed_settings(struct valed_settings *ss,
    const struct adapter_config *adapters, unsigned int nadapters)
{
	const struct adapter_config *ac;
	const struct valed_line *ln, *lines;
	unsigned int i, n = valed_config_lines(&lines);

	*ss = (struct valed_settings){ .vss_n = 0 };
	for (ac = adapters; ac < adapters + nadapters; ac++)
		add_node(ss, ac);
	for (ln = lines; n > 0; ln++, n--)
		if (ln->ln_of != VALED_OF_ATTACH)
			add_line(ss, ln);
	for (i = 0; i < ss->vss_n; i++)
		check(ss, &ss->vss_list[i], adapter_of(adapters, nadapters,
		    ss->vss_list[i].vst_name));
}

void
valed_settings_move(struct valed_settings *ss,
    const struct valed_settings *from, int place)
{
	unsigned int i, n = 0;

	for (i = 0; i < ss->vss_n; i++)
		if (ss->vss_list[i].vst_place != place)
			ss->vss_list[n++] = ss->vss_list[i];
	ss->vss_n = n;
	for (i = 0; i < from->vss_n; i++)
		if (from->vss_list[i].vst_place == place)
			ss->vss_list[ss->vss_n++] = from->vss_list[i];
}

void
valed_settings_take(struct valed_settings *ss,
    const struct valed_settings *from, valed_settings_of *of, const void *arg)
{
	unsigned int i, n = 0;

	for (i = 0; i < ss->vss_n; i++)
		if (!of(ss->vss_list[i].vst_name, arg))
			ss->vss_list[n++] = ss->vss_list[i];
	ss->vss_n = n;
	for (i = 0; i < from->vss_n; i++)
		if (of(from->vss_list[i].vst_name, arg))
			ss->vss_list[ss->vss_n++] = from->vss_list[i];
}

/*
 * Get the settings of one switch or port, by their number, or NULL.  Returns
 * whether there are any.
 */
static bool
settings_of(const struct valed_settings *ss, const char *name,
    const struct valed_setting *of[VALE_NSETTINGS])
{
	const struct valed_setting *st = ss->vss_list;
	unsigned int n;
	bool any = false;

	memset(of, 0, VALE_NSETTINGS * sizeof(of[0]));
	for (n = ss->vss_n; n > 0; st++, n--)
		if (strcmp(st->vst_name, name) == 0) {
			of[st->vst_setting] = st;
			any = true;
		}
	return (any);
}

/*
 * Plan in the order of vale_setting.h.  A port that becomes an access port or a
 * trunk is one before it is no longer the other.
 */
static void
plan_name(const struct valed_settings *old, const struct valed_settings *new,
    const char *name, valed_settings_act *act)
{
	const struct valed_setting *is[VALE_NSETTINGS], *was[VALE_NSETTINGS];
	struct vale_setting_change sc[VALE_NSETTINGS];
	unsigned int i, n = 0;

	settings_of(old, name, was);
	settings_of(new, name, is);
	for (i = 0; i < VALE_NSETTINGS; i++)
		if (is[i] != NULL && (was[i] == NULL || !vale_setting_same(
		    &was[i]->vst_value, &is[i]->vst_value)))
			sc[n++] = (struct vale_setting_change){
			    .sc_setting = i, .sc_preset = true,
			    .sc_value = is[i]->vst_value };
	for (i = 0; i < VALE_NSETTINGS; i++)
		if (is[i] == NULL && was[i] != NULL) {
			sc[n] = (struct vale_setting_change){
			    .sc_setting = i };
			vale_setting_default(i, &sc[n++].sc_value);
		}
	if (n > 0)
		act(name, sc, n);
}

/* Return whether an earlier setting has the name of the one at index `i'. */
static bool
named_before(const struct valed_settings *ss, unsigned int i)
{
	unsigned int j;

	for (j = 0; j < i; j++)
		if (strcmp(ss->vss_list[j].vst_name,
		    ss->vss_list[i].vst_name) == 0)
			return (true);
	return (false);
}

void
valed_settings_plan(const struct valed_settings *old,
    const struct valed_settings *new, valed_settings_of *of, const void *arg,
    valed_settings_act *act)
{
	const struct valed_setting *is[VALE_NSETTINGS];
	const char *name;
	unsigned int i;

	for (i = 0; i < new->vss_n; i++) {
		name = new->vss_list[i].vst_name;
		if (of(name, arg) && !named_before(new, i))
			plan_name(old, new, name, act);
	}
	for (i = 0; i < old->vss_n; i++) {
		name = old->vss_list[i].vst_name;
		if (!of(name, arg) || named_before(old, i))
			continue;
		if (!settings_of(new, name, is))
			plan_name(old, new, name, act);
	}
}
