/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A reload: changes, one after the other, until the process has what the
 * configuration says.  valed_plan.c says which they are.
 *
 * An adapter that cannot be started does not keep the others from it, at the
 * start or later: its socket is removed, and the next reload tries again.  One
 * that is left as it was, because another has its new port open, such as a
 * program, is reported (ctl_names.h).  So is one that cannot be moved, because
 * its new port cannot be opened.
 *
 * A change that disconnects a client, because an adapter must be removed and
 * added again, must have been confirmed; otherwise nothing is changed.
 *
 * Settings belong to the name of a port, and an adapter that is moved must
 * never be at one with the settings of another.  So those of a name that one
 * comes to are set when nobody is there, just before it comes; those of a name
 * that one has left, afterwards.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_config.h"
#include "adapter_net.h"
#include "e82545.h"
#include "vale_setting.h"
#include "valed_adapters.h"
#include "valed_config.h"
#include "valed_guard.h"
#include "valed_interfaces.h"
#include "valed_options.h"
#include "valed_plan.h"
#include "valed_reload.h"
#include "valed_settings.h"
#include "valed_values.h"
#include "valed_why.h"

/* The settings that the configuration had. */
static struct valed_settings known_settings;
/* The first error of a reload. */
static struct valed_why	*first;

/* The settings that the configuration has, and what is set now. */
static struct valed_settings *settings_new, settings_now;

/* Say that a setting was changed, or with an error, why not. */
static void
say_setting(const char *name, const struct vale_setting_change *sc,
    const char *error)
{
	const char *setting = vale_setting_table[sc->sc_setting].se_name;
	char text[VALE_SETTING_SIZE];

	vale_setting_print(sc->sc_setting, &sc->sc_value, text, sizeof(text));
	if (error == NULL)
		valed_warnx(NULL, "reloaded: %s: %s=%s", name, setting, text);
	else
		valed_warnx(first, "%s: %s=%s: %s", name, setting, text, error);
}

/*
 * Change settings of a switch or port.  Of those that fail the switch tells the
 * first: those after it, which it has tried, are set once more.
 */
static void
change_settings(const char *name, const struct vale_setting_change *sc,
    unsigned int n)
{
	unsigned int failed, i;
	bool all;

	while (n > 0) {
		all = vale_setting_preset_all(name, sc, n, &failed) == 0;
		if (all)
			failed = n;
		for (i = 0; i < n && (all || failed == n || i <= failed); i++)
			say_setting(name, &sc[i], all || (failed < n &&
			    i != failed) ? NULL : vale_error());
		sc += i;
		n -= i;
	}
}

/* Say that an adapter is left as it is, or not there. */
static void
leave(const struct valed_plan *vp, unsigned int i, const char *why)
{
	const struct adapter_config *ac = &vp->pn_new[i];
	const struct adapter_config *old = valed_plan_old(vp, ac);

	valed_warnx(first, "%s: %s: %s: the adapter %s", ac->ac_where,
	    ac->ac_backend, why, old == NULL ? "is not added" :
	    "stays as it was");
}

/* Add an adapter, or say why not.  What opens its port ends without it. */
static void
add(struct adapter_config *ac)
{
	struct valed_why why = { .wy_status = 0 };
	bool added;

	ac->ac_opener = valed_is_remote(ac) ? valed_guard_opener(ac, &why) : -1;
	added = why.wy_status == 0 && valed_adapters_add(ac);
	if (added) {
		valed_warnx(NULL, "reloaded: %s: the adapter is added",
		    ac->ac_backend);
		return;
	}
	if (why.wy_status != 0)
		valed_warnx(first, "%s", why.wy_text);
	/* A line has said why. */
	valed_why_set(first, EX_UNAVAILABLE, "%s: %s: the adapter cannot be "
	    "started", ac->ac_where, ac->ac_backend);
	(void)valed_guard_unlink(ac->ac_path);
}

/* Remove the socket of an old adapter.  Without the guard, say so once. */
static void
unlink_old(const struct adapter_config *ac)
{
	if (!valed_guard_unlink(ac->ac_path) && first->wy_status == 0)
		valed_warnx(first, "%s is not removed: " VALED_GUARD_GONE,
		    ac->ac_path);
}

/* Remove an adapter. */
static void
remove_old(const struct adapter_config *ac)
{
	valed_adapters_remove(ac);
	valed_warnx(NULL, "reloaded: %s: the adapter is removed",
	    ac->ac_backend);
}

static void
say_number(const struct adapter_config *ac, const struct adapter_config *old,
    int variable, uint32_t number)
{
	if (valed_values_changed(ac, old, variable))
		valed_warnx(NULL, "reloaded: %s: %s=%u", ac->ac_backend,
		    valed_variables[variable].var_name, number);
}

static void
say_bool(const struct adapter_config *ac, const struct adapter_config *old,
    int variable, bool on)
{
	if (valed_values_changed(ac, old, variable))
		valed_warnx(NULL, "reloaded: %s: %s=%s", ac->ac_backend,
		    valed_variables[variable].var_name, on ? "on" : "off");
}

/* Say what was changed in place. */
static void
say_changed(const struct adapter_config *ac, const struct adapter_config *old)
{
	say_number(ac, old, VALED_V_ITR, ac->ac_itr_256ns);
	say_number(ac, old, VALED_V_ITR_MIN, ac->ac_itr_min_256ns);
	say_number(ac, old, VALED_V_MTU, ac->ac_mtu != 0 ? ac->ac_mtu :
	    E82545_MTU_MAX);
	say_number(ac, old, VALED_V_POLL, ac->ac_poll_us);
	say_bool(ac, old, VALED_V_DIRECT, ac->ac_direct);
	say_bool(ac, old, VALED_V_ANNOUNCE, ac->ac_announce);
}

/* Change an adapter in place. */
static void
change_new(const struct adapter_config *ac, const struct adapter_config *old)
{
	valed_adapters_change(ac);
	say_changed(ac, old);
}

/*
 * Settings.
 */

static void
settings_to(valed_settings_of *of, const void *arg)
{
	valed_settings_plan(&settings_now, settings_new, of, arg,
	    change_settings);
	valed_settings_take(&settings_now, settings_new, of, arg);
}

/* Keep the settings that the configuration had for an adapter, or none. */
static void
settings_leave(const struct adapter_config *ac)
{
	valed_settings_move(settings_new, &known_settings,
	    (int)valed_place(ac));
}

static void
settings_remove(const struct adapter_config *ac)
{
	static const struct valed_settings none;

	valed_settings_move(settings_new, &none, (int)valed_place(ac));
}

static bool
is_any(const char *name __unused, const void *arg __unused)
{
	return (true);
}

static bool
is_name(const char *name, const void *arg)
{
	return (strcmp(name, arg) == 0);
}

/* Return whether the port is not one that an adapter has left or comes to. */
static bool
is_quiet(const char *name, const void *arg)
{
	const struct valed_plan *vp = arg;
	unsigned int i;

	for (i = 0; i < vp->pn_nactions; i++)
		if (vp->pn_action[i].ax_what == VALED_MOVE_NEW && (is_name(name,
		    vp->pn_result[vp->pn_action[i].ax_index].ac_backend) ||
		    is_name(name, valed_plan_old(vp, &vp->pn_result[
		    vp->pn_action[i].ax_index])->ac_backend)))
			return (false);
	return (true);
}

/* Make room for those of all adapters as they were and will be. */
static bool
settings_room(struct valed_options *opt)
{
	settings_new = &opt->vo_settings;
	settings_now.vss_n = 0;
	return (valed_settings_room(settings_new, known_settings.vss_n) &&
	    valed_settings_room(&settings_now, settings_new->vss_n +
	    2 * known_settings.vss_n));
}

/* Change the settings that can be changed before adapters are moved. */
static void
settings_begin(const struct valed_plan *vp)
{
	unsigned int i;

	valed_settings_take(&settings_now, &known_settings, is_any, NULL);
	for (i = 0; i < vp->pn_nnew; i++)
		if (valed_plan_left(vp, i))
			settings_leave(&vp->pn_new[i]);
	settings_to(is_quiet, vp);
}

/*
 * Adapters that are moved.
 */

/* Where each new adapter is now; ADAPTER_NET_NONE: nowhere, or not there. */
static const char *places[VALED_MAXADAPTERS];

static bool
is_held(const struct valed_plan *vp, const char *port)
{
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++)
		if (strcmp(places[i], port) == 0)
			return (true);
	return (false);
}

static void
places_begin(const struct valed_plan *vp)
{
	const struct adapter_config *old;
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++) {
		old = valed_plan_old(vp, &vp->pn_new[i]);
		places[i] = old == NULL || valed_plan_replaces(vp, i) ?
		    ADAPTER_NET_NONE : old->ac_backend;
	}
}

/* Unplug an adapter of a circle to make room. */
static void
unplug(const struct valed_plan *vp, unsigned int i)
{
	struct adapter_config ac = *valed_plan_old(vp, &vp->pn_result[i]);

	strlcpy(ac.ac_backend, ADAPTER_NET_NONE, sizeof(ac.ac_backend));
	if (valed_adapters_move(&ac))
		places[i] = ADAPTER_NET_NONE;
}

/* Have an adapter at a port, if it is free. */
static bool
move_to(const struct valed_plan *vp, unsigned int i,
    const struct adapter_config *ac)
{
	if (is_held(vp, ac->ac_backend))
		return (false);
	settings_to(is_name, ac->ac_backend);
	if (!valed_adapters_move(ac))
		return (false);
	places[i] = ac->ac_backend;
	return (true);
}

/*
 * Move an adapter, or leave it where it was; if it has made room, and another
 * is there now, it has no port until the next reload.
 */
static void
move_new(const struct valed_plan *vp, unsigned int i)
{
	struct adapter_config *ac = &vp->pn_result[i];
	const struct adapter_config *old = valed_plan_old(vp, ac);
	char port[VALED_NAME_SIZE];

	if (move_to(vp, i, ac)) {
		valed_warnx(NULL, "reloaded: %s: the adapter has moved from %s",
		    ac->ac_backend, old->ac_backend);
		say_changed(ac, old);
		return;
	}
	strlcpy(port, ac->ac_backend, sizeof(port));
	settings_leave(ac);
	if (!is_held(vp, port))
		settings_to(is_name, port);
	*ac = *old;
	if (strcmp(places[i], ADAPTER_NET_NONE) == 0 && !move_to(vp, i, ac)) {
		strlcpy(ac->ac_backend, ADAPTER_NET_NONE,
		    sizeof(ac->ac_backend));
		settings_remove(ac);
	}
	valed_warnx(first, "%s: %s: the adapter cannot be moved, and %s",
	    vp->pn_new[i].ac_where, port, strcmp(ac->ac_backend,
	    ADAPTER_NET_NONE) == 0 ? "has no port" : "stays as it was");
}

static void
carry_out(struct valed_plan *vp, const struct valed_action *va)
{
	const unsigned int i = va->ax_index;
	struct adapter_config *ac = &vp->pn_result[i];

	switch (va->ax_what) {
	case VALED_TAP:
		leave(vp, i, "takes a new start of valed");
		break;
	case VALED_BUSY:
		leave(vp, i, "the port is open already, or another user "
		    "captures its name");
		break;
	case VALED_CLASH:
		leave(vp, i, "another adapter keeps its port or socket");
		break;
	case VALED_OPEN:		/* sockets_open() */
		break;
	case VALED_REMOVE_OLD:
		remove_old(&vp->pn_old[i]);
		break;
	case VALED_UNPLUG:
		unplug(vp, i);
		break;
	case VALED_MOVE_NEW:
		move_new(vp, i);
		break;
	case VALED_CHANGE_NEW:
		change_new(ac, valed_plan_old(vp, ac));
		break;
	case VALED_ADD_NEW:
		add(ac);
		break;
	case VALED_UNLINK:
		unlink_old(&vp->pn_old[i]);
		break;
	}
}

/*
 * Carry out the next actions, as long as they are of these kinds, up to `last'.
 */
static void
carry_out_to(struct valed_plan *vp, unsigned int *i, int last)
{
	for (; *i < vp->pn_nactions && (int)vp->pn_action[*i].ax_what <= last;
	    ++*i)
		carry_out(vp, &vp->pn_action[*i]);
}

/* Say why an adapter must be replaced, and what that costs. */
static void
say_replaced(const struct adapter_config *ac, const struct adapter_config *old)
{
	const int bar = valed_values_bars(old, ac);
	const uint8_t *mac = old->ac_mac;
	char where[VALED_WHERE_SIZE];

	/* The default address is that of the port. */
	if (!valed_guard_where(ac, bar, where) && bar == VALED_V_MAC)
		valed_warnx(first, "%s: %s: another address disconnects the "
		    "client: set mac=%02x:%02x:%02x:%02x:%02x:%02x, or see "
		    "reload --replace", ac->ac_where, ac->ac_backend, mac[0],
		    mac[1], mac[2], mac[3], mac[4], mac[5]);
	else
		valed_warnx(first, "%s: %s: another %s= disconnects the "
		    "client: see reload --replace", where, ac->ac_backend,
		    valed_variables[bar].var_name);
}

/* Return whether no client would be disconnected; otherwise say which. */
static bool
confirmed(const struct valed_plan *vp)
{
	const struct adapter_config *ac;
	bool refused = false;
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++) {
		ac = &vp->pn_result[i];
		if (!valed_plan_replaces(vp, i) || !valed_adapters_client(ac))
			continue;
		say_replaced(ac, valed_plan_old(vp, ac));
		refused = true;
	}
	return (!refused);
}

/* Close and remove the sockets of the first `n' actions. */
static void
sockets_drop(struct valed_plan *vp, unsigned int n)
{
	struct adapter_config *ac;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (vp->pn_action[i].ax_what != VALED_OPEN)
			continue;
		ac = &vp->pn_result[vp->pn_action[i].ax_index];
		if (ac->ac_listen != -1)
			close(ac->ac_listen);
		(void)valed_guard_unlink(ac->ac_path);
	}
}

/* Get the sockets of adapters that are added; none, if there is not each. */
static bool
sockets_open(struct valed_plan *vp)
{
	struct valed_why why = { .wy_status = 0 };
	struct adapter_config *ac;
	unsigned int i;

	for (i = 0; i < vp->pn_nactions; i++) {
		if (vp->pn_action[i].ax_what != VALED_OPEN)
			continue;
		ac = &vp->pn_result[vp->pn_action[i].ax_index];
		ac->ac_listen = valed_guard_socket(ac, &why);
		if (ac->ac_listen == -1) {
			valed_warnx(first, "%s", why.wy_text);
			sockets_drop(vp, i + 1);
			return (false);
		}
	}
	return (true);
}

/*
 * Carry out all changes.  Returns false if nothing has been changed, which was
 * said.
 */
static bool
changes(struct valed_options *opt, struct valed_plan *vp, bool replace)
{
	bool refused[VALED_MAXADAPTERS];
	unsigned int i;

	vp->pn_refused = refused;
	for (i = 0; i < vp->pn_nnew; i++)
		refused[i] = valed_plan_reserves(vp, i) &&
		    !valed_adapters_reserve(&vp->pn_new[i]);
	valed_plan(vp);
	if (!replace && !confirmed(vp))
		return (false);
	i = 0;
	carry_out_to(vp, &i, VALED_OPEN);
	if (!sockets_open(vp))
		return (false);
	carry_out_to(vp, &i, VALED_REMOVE_OLD);
	valed_interfaces_detach(opt);
	places_begin(vp);
	settings_begin(vp);
	carry_out_to(vp, &i, VALED_MOVE_NEW);
	settings_to(is_any, NULL);
	valed_interfaces_attach(opt, first);
	carry_out_to(vp, &i, VALED_UNLINK);
	return (true);
}

void
valed_reload_begin(struct valed_options *opt)
{
	known_settings = opt->vo_settings;
	opt->vo_settings = (struct valed_settings){ .vss_n = 0 };
}

void
valed_reload(struct valed_options *opt, bool replace, struct valed_why *why)
{
	static struct valed_action actions[VALED_ACTIONS(VALED_MAXADAPTERS,
	    VALED_MAXADAPTERS)];
	static struct adapter_config old[VALED_MAXADAPTERS];
	static struct adapter_config new[VALED_MAXADAPTERS];
	struct valed_plan vp = { .pn_old = old,
	    .pn_nold = valed_adapters_copy(old), .pn_new = opt->vo_adapters,
	    .pn_nnew = opt->vo_nadapters, .pn_result = new,
	    .pn_action = actions };

	first = why;
	if (!settings_room(opt))
		valed_warnx(first, "%s", strerror(errno));
	else if (changes(opt, &vp, replace)) {
		free(known_settings.vss_list);
		valed_reload_begin(opt);
	}
	valed_adapters_end();
	valed_options_free(opt);
}
