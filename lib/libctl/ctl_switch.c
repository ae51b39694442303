/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The control socket: what there is on the switches, what serves their ports,
 * and settings.
 *
 * A list is sent in parts, each of which the library walks from its beginning:
 * entries that come or go between two parts may be missed or be there twice.
 */

#include <sys/param.h>
#include <dev/netmap/vale_fdb.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ctl_impl.h"
#include "vale_pipe.h"
#include "vale_setting.h"

static int
no_switch(struct ctl_conn *cc)
{
	return (ctl_why(cc, ENXIO, "there is no such switch"));
}

static int
no_port(struct ctl_conn *cc)
{
	return (ctl_why(cc, ENXIO, "there is no such port"));
}

/* The place of a port, as NETMAP_REQ_VALE_LIST counts. */
struct place {
	const struct ctl_who *cpl_who;	/* for whom */
	const char	*cpl_name;	/* the port to find, or NULL: */
	uint32_t	 cpl_switch;	/* the first from here on */
	uint32_t	 cpl_port;
	bool		 cpl_found;
	bool		 cpl_hidden;	/* it is there */
	/* The port looked at. */
	struct vale_port_info cpl_info;
	uint32_t	 cpl_at;		/* its switch; wraps to 0 */
};

static int
place_show(const struct vale_port_info *info, void *arg)
{
	struct place *pl = arg;
	size_t len = strcspn(info->vpi_name, ":") + 1;

	if (strncmp(pl->cpl_info.vpi_name, info->vpi_name, len) != 0)
		pl->cpl_at++;
	pl->cpl_info = *info;
	if (pl->cpl_name != NULL ? strcmp(pl->cpl_name, info->vpi_name) != 0 :
	    pl->cpl_at < pl->cpl_switch || (pl->cpl_at == pl->cpl_switch &&
	    info->vpi_index < pl->cpl_port))
		return (0);
	pl->cpl_found = ctl_owner_sees(info->vpi_name, pl->cpl_who);
	pl->cpl_hidden = !pl->cpl_found;
	return (pl->cpl_found);
}

static bool
place_find(struct ctl_conn *cc, struct place *pl)
{
	pl->cpl_who = &cc->cc_who;
	pl->cpl_at = UINT32_MAX;
	vale_list(NULL, place_show, pl);
	return (pl->cpl_found);
}

/* Say that a port was not found, and why.  Returns an errno. */
static int
place_none(struct ctl_conn *cc, const struct place *pl)
{
	return (ctl_why_owner(cc, pl->cpl_hidden ? EPERM : ENXIO));
}

int
ctl_info(struct ctl_conn *cc, size_t *size)
{
	struct nmreq_port_info_get *info = cc->cc_body;
	struct place pl = { .cpl_name = cc->cc_wire->vw_header.nr_name };
	unsigned int end;

	ctl_settle(cc);
	*size = sizeof(*info);
	if (vale_pipe_name(pl.cpl_name, &end) != 0)
		return (vale_grant_pipe_info(&cc->cc_grant, info));
	if (!place_find(cc, &pl))
		return (place_none(cc, &pl));
	memset(info, 0, sizeof(*info));
	vale_grant_port_info(&cc->cc_grant, info);
	info->nr_tx_slots = pl.cpl_info.vpi_tx_slots;
	info->nr_rx_slots = pl.cpl_info.vpi_rx_slots;
	info->nr_tx_rings = info->nr_rx_rings = pl.cpl_info.vpi_rings;
	return (0);
}

int
ctl_info_any(struct ctl_conn *cc, size_t *size)
{
	const char *name = cc->cc_wire->vw_header.nr_name;
	struct nmreq_port_info_get *info = cc->cc_body;
	unsigned int end;
	int error;

	*size = sizeof(*info);
	if (*name == '\0') {
		ctl_settle(cc);
		return (vale_grant_null_info(&cc->cc_grant, info));
	}
	error = ctl_info(cc, size);
	if (error == 0 || error == EPERM)
		return (error);
	memset(cc->cc_wire->vw_why, 0, sizeof(cc->cc_wire->vw_why));
	if (vale_pipe_name(name, &end) != 0)
		return (vale_grant_pipe_plan(&cc->cc_grant, info));
	return (vale_grant_port_plan(&cc->cc_grant, info));
}

int
ctl_list(struct ctl_conn *cc, size_t *size)
{
	struct nmreq_vale_list *list = cc->cc_body;
	char *name = cc->cc_wire->vw_header.nr_name;
	struct place pl = {
		.cpl_name = name[0] != '\0' ? name : NULL,
		.cpl_switch = list->nr_bridge_idx,
		.cpl_port = list->nr_port_idx,
	};

	ctl_settle(cc);
	if (!place_find(cc, &pl))
		return (pl.cpl_name != NULL ? place_none(cc, &pl) :
		    ctl_why(cc, ENOENT, "there is no further port"));
	memcpy(name, pl.cpl_info.vpi_name, sizeof(pl.cpl_info.vpi_name));
	list->nr_bridge_idx = pl.cpl_at;
	list->nr_port_idx = pl.cpl_info.vpi_index;
	*size = sizeof(*list);
	return (0);
}

/* A part of a list, of what the client may see. */
struct part {
	const struct ctl_conn *pt_cc;
	const char	*pt_port;	/* the only one, or NULL */
	struct ctl_owner_set pt_set;
	uint32_t	pt_skip;	/* entries before it */
	uint32_t	pt_count;
	uint32_t	pt_max;		/* entries that fit */
	void		*pt_entry;	/* the next */
};

/* Return what the `show' function is to return; fills in *entry. */
static bool
part_next(struct part *pt, size_t size, void **entry)
{
	if (pt->pt_skip > 0) {
		pt->pt_skip--;
		return (false);
	}
	*entry = pt->pt_entry;
	pt->pt_entry = (char *)pt->pt_entry + size;
	pt->pt_count++;
	return (true);
}

static int
part_port(const struct vale_port_info *info, void *arg)
{
	struct part *pt = arg;
	struct vale_wire_port *wo;
	void *entry;

	if (pt->pt_port != NULL && strcmp(pt->pt_port, info->vpi_name) != 0)
		return (0);
	if (!ctl_owner_sees(info->vpi_name, &pt->pt_cc->cc_who))
		return (0);
	if (part_next(pt, sizeof(*wo), &entry)) {
		wo = entry;
		memcpy(wo->wo_name, info->vpi_name, sizeof(wo->wo_name));
		wo->wo_index = info->vpi_index;
		wo->wo_rings = info->vpi_rings;
		wo->wo_down = !info->vpi_link;
		wo->wo_tx_slots = info->vpi_tx_slots;
		wo->wo_rx_slots = info->vpi_rx_slots;
		wo->wo_ncounters = VALE_NCOUNTERS;
		memcpy(wo->wo_counter, info->vpi_counter,
		    sizeof(wo->wo_counter));
	}
	return (pt->pt_count == pt->pt_max);
}

static int
part_addr(const struct vale_fdb_entry *fe, void *arg)
{
	struct part *pt = arg;
	struct vale_wire_addr *wa;
	void *entry;

	if (!ctl_owner_sees_index(&pt->pt_set,
	    pt->pt_cc->cc_wire->vw_header.nr_name, fe->fe_port,
	    &pt->pt_cc->cc_who))
		return (0);
	if (part_next(pt, sizeof(*wa), &entry)) {
		wa = entry;
		memcpy(wa->wa_addr, fe->fe_addr, sizeof(wa->wa_addr));
		wa->wa_port = fe->fe_port;
		wa->wa_age_s = fe->fe_age_s;
		wa->wa_vlan = fe->fe_vlan;
	}
	return (pt->pt_count == pt->pt_max);
}

static void
part_begin(struct ctl_conn *cc, struct part *pt, size_t size)
{
	struct vale_wire_page *wp = cc->cc_body;

	pt->pt_cc = cc;
	pt->pt_port = NULL;
	pt->pt_set.os_changes = 0;
	pt->pt_skip = wp->wp_first;
	pt->pt_count = 0;
	pt->pt_max = (CTL_BODY_MAX - sizeof(*wp)) / size;
	pt->pt_entry = wp + 1;
}

/* Return the length of the reply's body. */
static size_t
part_end(struct ctl_conn *cc, const struct part *pt)
{
	struct vale_wire_page *wp = cc->cc_body;

	wp->wp_count = pt->pt_count;
	return ((char *)pt->pt_entry - (char *)wp);
}

int
ctl_ports(struct ctl_conn *cc, size_t *size)
{
	const char *name = cc->cc_wire->vw_header.nr_name;
	const size_t len = strcspn(name, ":");
	char of[VALE_NAME_SIZE];
	struct part pt;

	ctl_settle(cc);
	part_begin(cc, &pt, sizeof(struct vale_wire_port));
	if (name[len] != '\0')
		pt.pt_port = name;
	snprintf(of, sizeof(of), "%.*s", (int)len, name);
	vale_list(name[0] != '\0' ? of : NULL, part_port, &pt);
	*size = part_end(cc, &pt);
	return (0);
}

int
ctl_addrs(struct ctl_conn *cc, size_t *size)
{
	struct part pt;

	part_begin(cc, &pt, sizeof(struct vale_wire_addr));
	if (vale_fdb_list(cc->cc_wire->vw_header.nr_name, part_addr, &pt) ==
	    -1)
		return (no_switch(cc));
	*size = part_end(cc, &pt);
	return (0);
}

static void	(*devices_list)(ctl_device_show *show, void *arg);

void
ctl_devices_are(void (*list)(ctl_device_show *show, void *arg))
{
	devices_list = list;
}

/*
 * Return whether `port' is that of the name, or of its switch, or the name is
 * "".
 */
static bool
name_has(const char *name, const char *port)
{
	const size_t len = strlen(name);

	return (len == 0 || strcmp(name, port) == 0 ||
	    (strncmp(name, port, len) == 0 && port[len] == ':'));
}

static int
part_device(const struct vale_wire_device *wd, void *arg)
{
	struct part *pt = arg;
	void *entry;

	if (!name_has(pt->pt_port, wd->wdv_port) ||
	    !ctl_owner_sees(wd->wdv_port, &pt->pt_cc->cc_who))
		return (0);
	if (part_next(pt, sizeof(*wd), &entry))
		memcpy(entry, wd, sizeof(*wd));
	return (pt->pt_count == pt->pt_max);
}

int
ctl_devices(struct ctl_conn *cc, size_t *size)
{
	struct part pt;

	part_begin(cc, &pt, sizeof(struct vale_wire_device));
	pt.pt_port = cc->cc_wire->vw_header.nr_name;
	if (devices_list != NULL)
		devices_list(part_device, &pt);
	*size = part_end(cc, &pt);
	return (0);
}

/* Reply with all settings of a port or a switch. */
int
ctl_settings(struct ctl_conn *cc, size_t *size)
{
	const enum vale_setting_scope scope =
	    cc->cc_wire->vw_header.nr_reqtype == VALE_WIRE_PORT_SETTINGS ?
	    VALE_OF_PORT : VALE_OF_SWITCH;
	struct vale_setting_value value[VALE_NSETTINGS];
	struct vale_wire_value *wv = cc->cc_body;
	unsigned int i;

	if (vale_setting_get(cc->cc_wire->vw_header.nr_name, scope, value) != 0)
		return (ctl_why(cc, errno, "%s", vale_error()));
	for (i = 0; i < VALE_NSETTINGS; i++) {
		if (vale_setting_table[i].se_scope != scope)
			continue;
		vale_wire_put(wv++, i, &value[i]);
	}
	*size = (char *)wv - (char *)cc->cc_body;
	return (0);
}

/* Let a port, whose owner is pinned, mirror another one. */
static int
mirror_set(struct ctl_conn *cc, struct ctl_owner *ow,
    const struct vale_wire_mirror *wm)
{
	struct vale_setting_value value = { .sv_number = wm->wm_what };
	int error;

	if (wm->wm_what != 0)
		strlcpy(value.sv_text, wm->wm_of, sizeof(value.sv_text));
	error = ctl_owner_mirror(ow, value.sv_text, &cc->cc_who);
	if (error != 0)
		return (ctl_why_owner(cc, error));
	if (vale_setting_set(cc->cc_wire->vw_header.nr_name,
	    VALE_SETTING_MIRROR, &value) != 0)
		error = errno;
	ctl_owner_mirrored(ow, error == 0);
	return (error == 0 ? 0 : error == ENXIO ? no_port(cc) : ctl_why(cc,
	    error, "a port can mirror another port of the same switch"));
}

int
ctl_mirror(struct ctl_conn *cc, size_t *size __unused)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct vale_wire_mirror *wm = cc->cc_body;
	struct ctl_owner *ow;
	int error;

	if (strnlen(wm->wm_of, sizeof(wm->wm_of)) == sizeof(wm->wm_of))
		return (ctl_why(cc, EINVAL, "the mirrored name does not end"));
	pthread_mutex_lock(&lock);
	ow = ctl_owner_pin(cc->cc_wire->vw_header.nr_name, &cc->cc_who);
	error = mirror_set(cc, ow, wm);
	if (ow != NULL)
		ctl_owner_unpin(ow);
	pthread_mutex_unlock(&lock);
	return (error);
}

int
ctl_set(struct ctl_conn *cc, size_t *size __unused)
{
	const struct vale_wire_value *wv = cc->cc_body;
	const unsigned int n = cc->cc_size / sizeof(*wv);
	struct vale_setting_change sc[VALE_NSETTINGS];
	unsigned int i;

	if (n > nitems(sc))
		return (ctl_why(cc, E2BIG, "there are %zu settings",
		    nitems(sc)));
	for (i = 0; i < n; i++) {
		sc[i].sc_setting = vale_wire_take(&wv[i], &sc[i].sc_value);
		/* A mirror has a request of its own: ctl_mirror(). */
		if (sc[i].sc_setting == VALE_NSETTINGS ||
		    sc[i].sc_setting == VALE_SETTING_MIRROR)
			return (ctl_why(cc, EOPNOTSUPP, "setting %u is not "
			    "supported", wv[i].wv_set.ws_setting));
		if (memchr(wv[i].wv_text, '\0', sizeof(wv->wv_text)) == NULL)
			return (ctl_why(cc, EINVAL, "the value does not end"));
	}
	if (vale_setting_set_all(cc->cc_wire->vw_header.nr_name, sc, n) == 0)
		return (0);
	return (ctl_why(cc, errno, "%s", vale_error()));
}
