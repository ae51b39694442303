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
 * The guard has the privileges with which valed was started, and opens the
 * interfaces of lines with them; those of -a are opened once.
 *
 * An adapter that cannot be started does not keep the others from it, at the
 * start or later: its socket is removed, and the next reload tries again.  One
 * that is left as it was, because another has its new port open, such as a
 * program, is reported (ctl_names.h).
 */

#include <sys/param.h>
#include <sys/socket.h>

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "adapter_config.h"
#include "e82545.h"
#include "peer_fds.h"
#include "valed_changes.h"
#include "valed_config.h"
#include "valed_error.h"
#include "valed_guard.h"
#include "valed_options.h"
#include "valed_plan.h"
#include "valed_settings.h"
#include "valed_socket.h"
#include "valed_values.h"

/* To the serving process. */
static int	changes_fd = -1;
/* The adapters that the serving process has; without a backend: has not. */
static struct adapter_config *known;
static unsigned int	nknown;
/* The settings that it has, and the attached interfaces. */
static struct valed_settings known_settings;
static struct hostif_config *known_hostifs;
static unsigned int	nknown_hostifs;

/* A copy of the adapters of *opt. */
static struct adapter_config *
copy_all(const struct valed_options *opt)
{
	struct adapter_config *all;
	unsigned int i;

	all = calloc(opt->vo_nadapters + 1, sizeof(*all));
	if (all == NULL) {
		valed_sockets_drop();
		err(EX_OSERR, NULL);
	}
	for (i = 0; i < opt->vo_nadapters; i++)
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

/* Send a change, with the adapter's socket or the interface's descriptors. */
static bool
change_send(struct valed_change *vc)
{
	const int *fds = &vc->vc_config.ac_listen;
	unsigned int n = 0;

	if (vc->vc_what == VALED_ADD && vc->vc_config.ac_listen != -1)
		n = 1;
	if (vc->vc_what == VALED_ATTACH) {
		fds = vc->vc_hostif.hf_fd;
		n = vc->vc_hostif.hf_nfds;
	}
	return (peer_fds_send(changes_fd, vc, sizeof(*vc), fds, n, 0) ==
	    (ssize_t)sizeof(*vc));
}

void
valed_changes_end(const char *why)
{
	static struct valed_change end = { .vc_what = VALED_END };

	strlcpy(end.vc_why, why, sizeof(end.vc_why));
	(void)change_send(&end);
}

/*
 * Have the serving process carry out a change.  If that process has gone, the
 * child ends; the guard sees it, too.  Returns its error.
 */
static int
change_carry(struct valed_change *vc)
{
	int error;

	if (!change_send(vc) || recv(changes_fd, &error, sizeof(error), 0) !=
	    (ssize_t)sizeof(error)) {
		valed_sockets_drop();
		/* mutants 2: nobody waits for the status */
		_exit(EX_UNAVAILABLE);
	}
	return (error);
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
	return (change_carry(&vc) == 0);
}

/* Carry out a change of a setting. */
static void
change_setting(const struct valed_setting *st, bool keep)
{
	static struct valed_change vc = { .vc_what = VALED_SET };
	struct vale_setting_value value = st->vst_value;
	char text[VALE_SETTING_SIZE];
	int error;

	vc.vc_config.ac_listen = -1;
	vc.vc_setting = *st;
	vc.vc_keep = keep;
	error = change_carry(&vc);
	if (!keep)
		vale_setting_default(st->vst_setting, &value);
	vale_setting_print(st->vst_setting, &value, text, sizeof(text));
	if (error == 0)
		valed_error_note("reloaded: %s: %s=%s", st->vst_name,
		    vale_setting_table[st->vst_setting].se_name, text);
	else
		warnx("%s: %s=%s: %s", st->vst_name,
		    vale_setting_table[st->vst_setting].se_name, text,
		    strerror(error));
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

/* Detach the interfaces of lines that are not in *opt. */
static void
hostifs_detach(const struct valed_options *opt)
{
	static struct valed_change vc = { .vc_what = VALED_DETACH };
	const struct hostif_config *hc;

	for (hc = known_hostifs; hc < known_hostifs + nknown_hostifs; hc++) {
		if (!hc->hc_line || hc->hc_absent || hostif_find(
		    opt->vo_hostifs, opt->vo_nhostifs, hc) != NULL)
			continue;
		strlcpy(vc.vc_config.ac_backend, hc->hc_port,
		    sizeof(vc.vc_config.ac_backend));
		if (change_carry(&vc) == 0)
			valed_error_note("reloaded: %s: the interface is "
			    "detached", hc->hc_port);
	}
}

/* Open an interface and have it attached.  Returns whether it is. */
static bool
hostif_carry(const struct hostif_config *hc)
{
	static struct valed_change vc = { .vc_what = VALED_ATTACH };
	char why[256];
	int error;

	if (hostif_open(hostif_config_name(hc), &hc->hc_options,
	    &vc.vc_hostif, why, sizeof(why)) == -1) {
		warnx("%s: %s", hc->hc_where, why);
		return (false);
	}
	if ((vc.vc_hostif.hf_flags & HOSTIF_HOST_GETS) != 0)
		warnx("%s: the host gets what %s receives, too: remove its "
		    "addresses there", hc->hc_where, hostif_config_name(hc));
	strlcpy(vc.vc_config.ac_backend, hc->hc_port,
	    sizeof(vc.vc_config.ac_backend));
	error = change_carry(&vc);
	hostif_close(&vc.vc_hostif);
	if (error != 0) {
		warnx("%s: %s: the interface is not attached: %s",
		    hc->hc_where, hc->hc_port, strerror(error));
		return (false);
	}
	valed_error_note("reloaded: %s: the interface is attached",
	    hc->hc_port);
	return (true);
}

/* Attach the interfaces of lines of *opt that are not attached. */
static void
hostifs_attach(struct valed_options *opt)
{
	const struct hostif_config *old;
	struct hostif_config *hc;

	for (hc = opt->vo_hostifs; hc < opt->vo_hostifs + opt->vo_nhostifs;
	    hc++) {
		if (!hc->hc_line)
			continue;
		old = hostif_find(known_hostifs, nknown_hostifs, hc);
		if (old == NULL || old->hc_absent)
			hc->hc_absent = !hostif_carry(hc);
	}
}

int
valed_changes_socket(const struct adapter_config *ac)
{
	const struct valed_node *vn = valed_config_find(ac->ac_bus,
	    ac->ac_slot, ac->ac_func);
	const struct valed_where where = valed_config_where(vn, VALED_V_PATH);
	char option[PATH_MAX];

	snprintf(option, sizeof(option), "%s%s: path=", where.wh_option,
	    where.wh_text);
	return (valed_socket_open(option, ac->ac_path, SOCK_STREAM, NULL));
}

/* Say that an adapter is left as it is, or not there. */
static void
leave(const struct valed_plan *vp, unsigned int i, const char *why)
{
	const struct adapter_config *ac = &vp->pn_new[i];
	const struct adapter_config *old = valed_plan_old(vp, ac);

	warnx("%s: %s: %s: the adapter %s", ac->ac_where, ac->ac_backend, why,
	    old == NULL || old->ac_backend[0] == '\0' ?
	    "is not added" : "stays as it was");
}

/* Add an adapter. */
static void
add(struct adapter_config *ac)
{
	if (change(VALED_ADD, ac)) {
		valed_error_note("reloaded: %s: the adapter is added",
		    ac->ac_backend);
		return;
	}
	valed_error_set("%s: %s: the adapter cannot be started", ac->ac_where,
	    ac->ac_backend);
	valed_socket_remove(ac->ac_path);
	absent(ac);
}

/* Remove an adapter, if it is there. */
static void
remove_old(const struct adapter_config *ac)
{
	(void)change(VALED_REMOVE, ac);
	if (ac->ac_backend[0] != '\0')
		valed_error_note("reloaded: %s: the adapter is removed",
		    ac->ac_backend);
}

static void
say_number(const struct adapter_config *ac, const struct adapter_config *old,
    int variable, uint32_t number)
{
	if (valed_values_changed(ac, old, variable))
		valed_error_note("reloaded: %s: %s=%u", ac->ac_backend,
		    valed_variables[variable].var_name, number);
}

/* Change an adapter in place. */
static void
change_new(const struct adapter_config *ac, const struct adapter_config *old)
{
	(void)change(VALED_CHANGE, ac);
	say_number(ac, old, VALED_V_ITR, ac->ac_itr_256ns);
	say_number(ac, old, VALED_V_ITR_MIN, ac->ac_itr_min_256ns);
	say_number(ac, old, VALED_V_MTU, ac->ac_mtu != 0 ? ac->ac_mtu :
	    E82545_MTU_MAX);
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
	case VALED_OPEN:
		ac->ac_listen = valed_changes_socket(ac);
		break;
	case VALED_REMOVE_OLD:
		remove_old(&vp->pn_old[i]);
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
 * Whether an action takes effect on ports that are there when settings change:
 * settings of a port are there before it, and after those of its predecessor.
 */
static bool
is_late(const struct valed_action *va)
{
	return (va->ax_what == VALED_CHANGE_NEW ||
	    va->ax_what == VALED_ADD_NEW || va->ax_what == VALED_UNLINK);
}

/* Have the serving process change settings; those of adapters that are left
   stay. */
static void
changes_settings(struct valed_settings *ss, const struct valed_plan *vp)
{
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++)
		if (valed_plan_left(vp, i))
			valed_settings_move(ss, &known_settings,
			    (int)valed_place(&vp->pn_new[i]));
	valed_settings_plan(&known_settings, ss, change_setting);
}

/* Have the serving process carry out all changes; *new is what it has then. */
static void
changes(struct valed_options *opt, struct adapter_config *new)
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
	for (i = 0; i < vp.pn_nactions && !is_late(&actions[i]); i++)
		carry_out(&vp, &actions[i]);
	hostifs_detach(opt);
	changes_settings(&opt->vo_settings, &vp);
	hostifs_attach(opt);
	for (; i < vp.pn_nactions; i++)
		carry_out(&vp, &actions[i]);
	valed_changes_end(valed_error());
}

/* Without the guard's sockets, valed's would not look unused when it ends. */
static void
sockets_close(struct adapter_config *ac, unsigned int n)
{
	struct adapter_config *end = ac + n;

	for (; ac < end; ac++) {
		if (ac->ac_fd == -1 && ac->ac_listen != -1)
			close(ac->ac_listen);
		ac->ac_listen = -1;
	}
}

void
valed_changes_begin(const struct valed_options *opt)
{
	known = copy_all(opt);
	nknown = opt->vo_nadapters;
	known_settings = opt->vo_settings;
	known_hostifs = opt->vo_hostifs;
	nknown_hostifs = opt->vo_nhostifs;
}

void
valed_changes_to(int fd)
{
	changes_fd = fd;
	sockets_close(known, nknown);
}

void
valed_changes_drop(void)
{
	free(known); /* mutants: only memory, once */
	known = NULL;
}

/* mutants 2: only memory, of a process that the next reload replaces */
void
valed_changes(struct valed_options *opt)
{
	struct adapter_config *new = copy_all(opt);

	changes(opt, new);
	sockets_close(new, opt->vo_nadapters);
	free(known);
	known = new;
	nknown = opt->vo_nadapters;
	free(known_settings.vss_list);
	known_settings = opt->vo_settings;
	free(known_hostifs);
	known_hostifs = opt->vo_hostifs;
	nknown_hostifs = opt->vo_nhostifs;
	free(opt->vo_adapters);
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
valed_changes_unattached(unsigned int i)
{
	if (i < nknown_hostifs)
		known_hostifs[i].hc_absent = true;
}
