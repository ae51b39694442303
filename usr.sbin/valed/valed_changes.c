/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A reload as the guard sees it (valed_guard.c): what the serving process has,
 * and the changes that it is asked to carry out, one after the other, until it
 * has what the configuration says.  valed_plan.c says which they are.
 *
 * The guard has the privileges with which valed was started, and opens
 * interfaces with them: those of new lines, and those that were not there at
 * the start, or are gone, when there is one with the name.  It opens no
 * interface that the configuration does not have.
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

#include <sys/param.h>
#include <sys/socket.h>

#include <net/if.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_config.h"
#include "adapter_net.h"
#include "e82545.h"
#include "valed_changes.h"
#include "valed_config.h"
#include "valed_guard.h"
#include "valed_opener.h"
#include "valed_options.h"
#include "valed_plan.h"
#include "valed_settings.h"
#include "valed_socket.h"
#include "valed_values.h"
#include "valed_why.h"

/* The adapters that the serving process has; without a backend: has not. */
static struct adapter_config *known;
static unsigned int	nknown;
/* The settings that it has, and the attached interfaces. */
static struct valed_settings known_settings;
static struct hostif_config *known_hostifs;
static unsigned int	nknown_hostifs;
/* The first error of a reload. */
static struct valed_why	*first;

/* A copy of the adapters of *opt, or NULL. */
static struct adapter_config *
copy_all(const struct valed_options *opt)
{
	struct adapter_config *all;
	unsigned int i;

	all = calloc(VALED_MAXADAPTERS, sizeof(*all));
	for (i = 0; all != NULL && i < opt->vo_nadapters; i++)
		all[i] = opt->vo_adapters[i];
	return (all);
}

/* The adapter is not there: the next reload adds it. */
static void
absent(struct adapter_config *ac)
{
	*ac = (struct adapter_config){ .ac_bus = ac->ac_bus,
	    .ac_slot = ac->ac_slot, .ac_func = ac->ac_func, .ac_fd = -1,
	    .ac_listen = -1 };
}

bool
valed_changes_unattached_any(void)
{
	const struct hostif_config *hc = known_hostifs;

	while (hc < known_hostifs + nknown_hostifs && !hc->hc_absent)
		hc++;
	return (hc < known_hostifs + nknown_hostifs);
}

/*
 * Carry out a change of an adapter.  Returns false if it failed, which was
 * reported.
 */
static bool
change(int what, const struct adapter_config *ac)
{
	static struct valed_change vc;

	vc.vc_what = what;
	vc.vc_config = *ac;
	return (valed_guard_carry(&vc) == 0);
}

/* The settings that the serving process is to have, and what it has now. */
static struct valed_settings *settings_new, settings_now;

/* Carry out changes of the settings of a switch or port. */
static void
change_settings(const char *name, const struct vale_setting_change *sc,
    unsigned int n)
{
	static struct valed_change vc = { .vc_what = VALED_SET };
	char text[VALE_SETTING_SIZE];
	unsigned int failed, i;
	int error;

	vc.vc_config.ac_listen = -1;
	strlcpy(vc.vc_name, name, sizeof(vc.vc_name));
	memcpy(vc.vc_change, sc, n * sizeof(*sc));
	vc.vc_nchanges = n;
	error = valed_guard_carry(&vc);
	failed = (unsigned int)error / VALED_FAILED;
	for (i = 0; i < n; i++) {
		vale_setting_print(sc[i].sc_setting, &sc[i].sc_value, text,
		    sizeof(text));
		if (error == 0 || (failed < n && i != failed))
			valed_warnx(NULL, "reloaded: %s: %s=%s", name,
			    vale_setting_table[sc[i].sc_setting].se_name, text);
		else
			valed_warnx(first, "%s: %s=%s: %s", name,
			    vale_setting_table[sc[i].sc_setting].se_name, text,
			    strerror(error % VALED_FAILED));
	}
}

/* The interface of `n' that has the same port and kind, or NULL. */
static const struct hostif_config *
hostif_find(const struct hostif_config *all, unsigned int n,
    const struct hostif_config *hc)
{
	const struct hostif_config *end = all + n;

	for (; all < end; all++)
		if (strcmp(all->hc_port, hc->hc_port) == 0 &&
		    all->hc_options.ho_kind == hc->hc_options.ho_kind)
			return (all);
	return (NULL);
}

/* Detach the interfaces that are not in *opt. */
static void
hostifs_detach(const struct valed_options *opt)
{
	static struct valed_change vc = { .vc_what = VALED_DETACH };
	const struct hostif_config *hc;

	for (hc = known_hostifs; hc < known_hostifs + nknown_hostifs; hc++) {
		if (hostif_find(opt->vo_hostifs, opt->vo_nhostifs, hc) != NULL)
			continue;
		strlcpy(vc.vc_config.ac_backend, hc->hc_port,
		    sizeof(vc.vc_config.ac_backend));
		if (valed_guard_carry(&vc) == 0)
			valed_warnx(NULL, "reloaded: %s: the interface is "
			    "detached", hc->hc_port);
	}
}

/* Open an interface and have it attached.  Returns 0, or errno with *why. */
static int
hostif_carry(const struct hostif_config *hc, char why[VALED_ATTACH_WHY])
{
	static struct valed_change vc = { .vc_what = VALED_ATTACH };
	int error;

	if (hostif_open(hostif_config_name(hc), &hc->hc_options,
	    &vc.vc_hostif, why, VALED_ATTACH_WHY) == -1)
		return (EIO);
	if (hostif_warning(&vc.vc_hostif, why, VALED_ATTACH_WHY))
		valed_warnx(first, "%s: %s", hc->hc_where, why);
	strlcpy(vc.vc_config.ac_backend, hc->hc_port,
	    sizeof(vc.vc_config.ac_backend));
	error = valed_guard_carry(&vc);
	hostif_close(&vc.vc_hostif);
	snprintf(why, VALED_ATTACH_WHY, "%s: the interface is not attached: %s",
	    hc->hc_port, strerror(error));
	return (error);
}

/*
 * Attach an interface, or say why not, unless that is what was said last.
 * valectl(8) may have attached it meanwhile.
 */
static void
hostif_attach_absent(struct hostif_config *hc, const char *how)
{
	char why[VALED_ATTACH_WHY];
	const int error = hostif_carry(hc, why);

	hc->hc_absent = error != 0 && error != EEXIST;
	if (error == 0)
		valed_warnx(NULL, "%s%s: the interface is attached", how,
		    hc->hc_port);
	else if (hc->hc_absent && strcmp(why, hc->hc_why) != 0)
		valed_warnx(first, "%s: %s", hc->hc_where, why);
	strlcpy(hc->hc_why, hc->hc_absent ? why : "", sizeof(hc->hc_why));
}

/* Attach the interfaces of *opt that are not attached. */
static void
hostifs_attach(struct valed_options *opt)
{
	const struct hostif_config *old;
	struct hostif_config *hc;

	for (hc = opt->vo_hostifs; hc < opt->vo_hostifs + opt->vo_nhostifs;
	    hc++) {
		old = hostif_find(known_hostifs, nknown_hostifs, hc);
		if (old == NULL || old->hc_absent)
			hostif_attach_absent(hc, "reloaded: ");
	}
}

/* Whether an interface that is not attached is there. */
static bool
hostif_is_back(const struct hostif_config *hc)
{
	return (hc->hc_absent && if_nametoindex(hostif_config_name(hc)) != 0);
}

void
valed_changes_attach(void)
{
	struct hostif_config *hc;

	first = NULL;
	for (hc = known_hostifs; hc < known_hostifs + nknown_hostifs; hc++)
		if (hostif_is_back(hc))
			hostif_attach_absent(hc, "");
}

int
valed_changes_socket(const struct adapter_config *ac, struct valed_why *why)
{
	const struct valed_node *vn = valed_config_find(ac->ac_bus,
	    ac->ac_slot, ac->ac_func);
	const struct valed_where where = valed_config_where(vn, VALED_V_PATH);
	char option[PATH_MAX];

	snprintf(option, sizeof(option), "%s%s: path=", where.wh_option,
	    where.wh_text);
	return (valed_socket_open(option, ac->ac_path, SOCK_STREAM, NULL, why));
}

/* Say that an adapter is left as it is, or not there. */
static void
leave(const struct valed_plan *vp, unsigned int i, const char *why)
{
	const struct adapter_config *ac = &vp->pn_new[i];
	const struct adapter_config *old = valed_plan_old(vp, ac);

	valed_warnx(first, "%s: %s: %s: the adapter %s", ac->ac_where,
	    ac->ac_backend, why, old == NULL || old->ac_backend[0] == '\0' ?
	    "is not added" : "stays as it was");
}

/*
 * Without the guard's sockets, valed's would not look unused when it ends; and
 * openers would not see that it has.
 */
static void
sockets_close(struct adapter_config *ac, unsigned int n)
{
	struct adapter_config *end = ac + n;

	for (; ac < end; ac++) {
		if (ac->ac_fd == -1 && ac->ac_listen != -1)
			close(ac->ac_listen);
		if (valed_is_remote(ac) && ac->ac_opener != -1)
			close(ac->ac_opener);
		ac->ac_listen = ac->ac_opener = -1;
	}
}

/* Add an adapter.  What opens its port ends without it. */
static void
add(struct adapter_config *ac)
{
	if (valed_is_remote(ac))
		ac->ac_opener = valed_opener_start(ac);
	if (valed_is_remote(ac) && ac->ac_opener == -1)
		valed_warnx(first, "%s: process that opens the port: %s",
		    ac->ac_where, strerror(errno));
	else if (change(VALED_ADD, ac)) {
		valed_warnx(NULL, "reloaded: %s: the adapter is added",
		    ac->ac_backend);
		return;
	}
	/* The serving process has said why. */
	valed_why_set(first, EX_UNAVAILABLE, "%s: %s: the adapter cannot be "
	    "started", ac->ac_where, ac->ac_backend);
	valed_socket_remove(ac->ac_path);
	sockets_close(ac, 1);
	absent(ac);
}

/* Remove an adapter, if it is there. */
static void
remove_old(const struct adapter_config *ac)
{
	(void)change(VALED_REMOVE, ac);
	if (ac->ac_backend[0] != '\0')
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

/* Say what was changed in place. */
static void
say_changed(const struct adapter_config *ac, const struct adapter_config *old)
{
	say_number(ac, old, VALED_V_ITR, ac->ac_itr_256ns);
	say_number(ac, old, VALED_V_ITR_MIN, ac->ac_itr_min_256ns);
	say_number(ac, old, VALED_V_MTU, ac->ac_mtu != 0 ? ac->ac_mtu :
	    E82545_MTU_MAX);
	say_number(ac, old, VALED_V_POLL, ac->ac_poll_us);
	if (valed_values_changed(ac, old, VALED_V_DIRECT))
		valed_warnx(NULL, "reloaded: %s: direct=%s", ac->ac_backend,
		    ac->ac_direct ? "on" : "off");
}

/* Change an adapter in place. */
static void
change_new(const struct adapter_config *ac, const struct adapter_config *old)
{
	(void)change(VALED_CHANGE, ac);
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

/* Those of an adapter stay as they were; or they are no longer. */
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

/* Whether the port is not one that an adapter has left or comes to. */
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

/* Those that can be set before adapters are moved. */
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

/* An adapter of a circle makes room. */
static void
unplug(const struct valed_plan *vp, unsigned int i)
{
	struct adapter_config ac = *valed_plan_old(vp, &vp->pn_result[i]);

	strlcpy(ac.ac_backend, ADAPTER_NET_NONE, sizeof(ac.ac_backend));
	if (change(VALED_MOVE, &ac))
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
	if (!change(VALED_MOVE, ac))
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
		valed_socket_remove(vp->pn_old[i].ac_path);
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
	const struct valed_node *vn = valed_config_find(ac->ac_bus,
	    ac->ac_slot, ac->ac_func);
	const int bar = valed_values_bars(old, ac);
	/* The default address is that of the port. */
	const bool of_port = bar == VALED_V_MAC &&
	    vn->nd_variable[VALED_V_MAC].nt_value == NULL;
	const struct valed_where where = valed_config_where(vn, of_port ?
	    VALED_V_BACKEND : bar);
	const uint8_t *mac = old->ac_mac;

	if (of_port)
		valed_warnx(first, "%s%s: %s: another address disconnects the "
		    "client: set mac=%02x:%02x:%02x:%02x:%02x:%02x, or see "
		    "reload --replace", where.wh_option, where.wh_text,
		    ac->ac_backend, mac[0], mac[1], mac[2], mac[3], mac[4],
		    mac[5]);
	else
		valed_warnx(first, "%s%s: %s: another %s= disconnects the "
		    "client: see reload --replace", where.wh_option,
		    where.wh_text, ac->ac_backend,
		    valed_variables[bar].var_name);
}

/* Whether no client would be disconnected; otherwise say which. */
static bool
confirmed(const struct valed_plan *vp)
{
	const struct adapter_config *ac;
	bool refused = false;
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++) {
		ac = &vp->pn_result[i];
		if (!valed_plan_replaces(vp, i) || change(VALED_ASK, ac))
			continue;
		say_replaced(ac, valed_plan_old(vp, ac));
		refused = true;
	}
	return (!refused);
}

/* Whether an adapter listens there. */
static bool
is_listening(const char *path)
{
	const struct adapter_config *ac;

	for (ac = known; ac < known + nknown; ac++)
		if (strcmp(ac->ac_path, path) == 0)
			return (true);
	return (false);
}

void
valed_changes_prune(void)
{
	valed_sockets_prune(is_listening);
}

/* Create the sockets of adapters that are added; none, if one cannot be. */
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
		ac->ac_listen = valed_changes_socket(ac, &why);
		if (ac->ac_listen == -1) {
			valed_warnx(first, "%s", why.wy_text);
			valed_changes_prune();
			return (false);
		}
	}
	return (true);
}

/*
 * Have the serving process carry out all changes; *new is what it has then.
 * Returns false if nothing has been changed, which was said.
 */
static bool
changes(struct valed_options *opt, struct adapter_config *new, bool replace)
{
	static struct valed_action actions[VALED_ACTIONS(VALED_MAXADAPTERS,
	    VALED_MAXADAPTERS)];
	bool refused[VALED_MAXADAPTERS];
	struct valed_plan vp = { .pn_old = known, .pn_nold = nknown,
	    .pn_new = opt->vo_adapters, .pn_nnew = opt->vo_nadapters,
	    .pn_refused = refused, .pn_result = new, .pn_action = actions };
	unsigned int i;

	for (i = 0; i < vp.pn_nnew; i++)
		refused[i] = valed_plan_reserves(&vp, i) &&
		    !change(VALED_RESERVE, &vp.pn_new[i]);
	valed_plan(&vp);
	if (!replace && !confirmed(&vp))
		return (false);
	i = 0;
	carry_out_to(&vp, &i, VALED_OPEN);
	if (!sockets_open(&vp))
		return (false);
	/* If the serving process ends now, the next one begins with these. */
	known = new;
	nknown = opt->vo_nadapters;
	carry_out_to(&vp, &i, VALED_REMOVE_OLD);
	hostifs_detach(opt);
	places_begin(&vp);
	settings_begin(&vp);
	carry_out_to(&vp, &i, VALED_MOVE_NEW);
	settings_to(is_any, NULL);
	hostifs_attach(opt);
	carry_out_to(&vp, &i, VALED_UNLINK);
	return (true);
}

bool
valed_changes_begin(const struct valed_options *opt, struct valed_why *why)
{
	known = copy_all(opt);
	if (known == NULL)
		return (valed_why_set(why, EX_OSERR, "%s", strerror(errno)));
	nknown = opt->vo_nadapters;
	known_settings = opt->vo_settings;
	known_hostifs = opt->vo_hostifs;
	nknown_hostifs = opt->vo_nhostifs;
	return (true);
}

void
valed_changes_close(void)
{
	sockets_close(known, nknown);
}

void
valed_changes_drop(void)
{
	free(known);
	known = NULL;
}

void
valed_changes(struct valed_options *opt, bool replace, struct valed_why *why)
{
	struct adapter_config *const old = known;
	struct adapter_config *new;

	first = why;
	new = copy_all(opt);
	if (new == NULL || !settings_room(opt))
		valed_warnx(first, "%s", strerror(errno));
	else if (changes(opt, new, replace)) {
		sockets_close(new, nknown);
		free(old);
		free(opt->vo_adapters);
		free(known_settings.vss_list);
		known_settings = opt->vo_settings;
		free(known_hostifs);
		known_hostifs = opt->vo_hostifs;
		nknown_hostifs = opt->vo_nhostifs;
		return;
	} else
		sockets_close(new, opt->vo_nadapters);
	free(new);
	valed_options_free(opt);
}

void
valed_changes_absent(int bus, int slot, int func)
{
	struct adapter_config *ac;

	for (ac = known; ac < known + nknown; ac++) {
		if (ac->ac_bus == bus && ac->ac_slot == slot &&
		    ac->ac_func == func) {
			valed_socket_remove(ac->ac_path);
			absent(ac);
		}
	}
}

void
valed_changes_unattached(const char *port, const char *why)
{
	struct hostif_config *hc;

	for (hc = known_hostifs; hc < known_hostifs + nknown_hostifs; hc++)
		if (strcmp(hc->hc_port, port) == 0 && !hc->hc_absent) {
			hc->hc_absent = true;
			strlcpy(hc->hc_why, why, sizeof(hc->hc_why));
		}
}
