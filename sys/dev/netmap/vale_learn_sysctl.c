/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The variables under dev.netmap.vale_learn: the list of managed switches, and
 * for each switch a node with its settings and two listings in the format of
 * valectl(8).  An invalid value changes nothing.
 *
 * A listing is collected under the bridge's lock and printed without it,
 * because printing may fault on the reader's memory.
 */

#include <dev/netmap/vale_learn_os.h>
#include <sys/jail.h>
#include <sys/proc.h>
#include <sys/sbuf.h>

#include <dev/netmap/vale_learn_var.h>

SYSCTL_DECL(_dev_netmap);
static SYSCTL_NODE(_dev_netmap, OID_AUTO, vale_learn,
    CTLFLAG_RD | CTLFLAG_MPSAFE, 0, "VALE switches with vale_learn(4)");

static struct sysctl_ctx_list learn_ctx;

/* The ports of a switch, for a listing. */
struct learn_ports {
	bool	lps_there[VALE_FDB_PORTS];
	struct vale_learn_port_info lps_info[VALE_FDB_PORTS];
};

static int
learn_attach_sysctl(SYSCTL_HANDLER_ARGS)
{
	char *text;
	int error;

	text = malloc(VALE_LEARN_TEXT, M_VALE_LEARN, M_WAITOK | M_ZERO);
	vale_learn_attached(text);
	error = sysctl_handle_string(oidp, text, VALE_LEARN_TEXT, req);
	if (error == 0 && req->newptr != NULL)
		error = vale_learn_attach(text);
	free(text, M_VALE_LEARN);
	return (error);
}

static int
learn_rule_sysctl(SYSCTL_HANDLER_ARGS)
{
	struct vale_learn_switch *sw = arg1;
	char *text;
	int error;

	text = malloc(VALE_LEARN_TEXT, M_VALE_LEARN, M_WAITOK | M_ZERO);
	BDG_RLOCK(sw->sw_bdg);
	memcpy(text, sw->sw_learn.vl_rule[arg2], VALE_LEARN_TEXT);
	BDG_RUNLOCK(sw->sw_bdg);
	error = sysctl_handle_string(oidp, text, VALE_LEARN_TEXT, req);
	if (error == 0 && req->newptr != NULL)
		error = vale_learn_switch_rule(sw, arg2, text);
	free(text, M_VALE_LEARN);
	return (error);
}

static int
learn_ageing_sysctl(SYSCTL_HANDLER_ARGS)
{
	struct vale_fdb *fdb = &((struct vale_learn_switch *)arg1)->
	    sw_learn.vl_fdb;
	unsigned int seconds = atomic_load_32(&fdb->fdb_ageing_s);
	int error;

	error = sysctl_handle_int(oidp, &seconds, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	if (seconds > VALE_FDB_AGEING_MAX_S)
		return (EINVAL);
	vale_fdb_set_ageing(fdb, seconds);
	return (0);
}

static int
learn_reserved_sysctl(SYSCTL_HANDLER_ARGS)
{
	struct vale_learn *vl = &((struct vale_learn_switch *)arg1)->sw_learn;
	unsigned int pass = atomic_load_bool(&vl->vl_reserved);
	int error;

	error = sysctl_handle_int(oidp, &pass, 0, req);
	if (error != 0 || req->newptr == NULL)
		return (error);
	if (pass > 1)
		return (EINVAL);
	vale_learn_set_reserved(vl, pass);
	return (0);
}

/* Return the present ports.  The caller must free the result. */
static struct learn_ports *
learn_collect(struct vale_learn_switch *sw)
{
	struct learn_ports *ports;
	unsigned int i;

	ports = malloc(sizeof(*ports), M_VALE_LEARN, M_WAITOK | M_ZERO);
	BDG_RLOCK(sw->sw_bdg);
	(void)vale_learn_scan(sw);
	for (i = 0; i < VALE_FDB_PORTS; i++) {
		if (sw->sw_learn.vl_port[i] == NULL)
			continue;
		ports->lps_there[i] = true;
		vale_learn_port_info(&sw->sw_learn, i, &ports->lps_info[i]);
	}
	BDG_RUNLOCK(sw->sw_bdg);
	return (ports);
}

static void
learn_print_port(struct sbuf *sb, const struct vale_learn_switch *sw,
    unsigned int index, const struct vale_learn_port_info *info)
{
	unsigned int c;

	sbuf_printf(sb, "\n%s bridge_idx %td port_idx %u private %d mirror %d"
	    " limit %u addresses %u rate %ju%s burst %u vlan %u trunk %u"
	    " native %u source %u ip %u", info->lpi_name,
	    sw->sw_bdg - nm_bridges, index, info->lpi_private,
	    info->lpi_mirror, info->lpi_limit, info->lpi_used,
	    (uintmax_t)info->lpi_rate.rc_rate,
	    info->lpi_rate.rc_frames ? "pkt/s" : "bit/s",
	    info->lpi_rate.rc_burst, info->lpi_vlan, info->lpi_trunk,
	    info->lpi_native, info->lpi_source, info->lpi_ip);
	for (c = 0; c < VALE_LEARN_NCOUNTERS; c++)
		sbuf_printf(sb, " %s %ju", vale_learn_counter_table[c].cr_name,
		    (uintmax_t)info->lpi_counter[c]);
}

static void
learn_print_ports(struct sbuf *sb, const struct vale_learn_switch *sw,
    const struct learn_ports *ports)
{
	unsigned int i;

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		if (ports->lps_there[i])
			learn_print_port(sb, sw, i, &ports->lps_info[i]);
	}
}

static void
learn_print_addresses(struct sbuf *sb, const struct vale_learn_switch *sw,
    const struct learn_ports *ports)
{
	struct vale_fdb_entry e;
	const uint8_t *a = e.fe_addr;
	unsigned int cursor = 0;

	while (vale_fdb_next(&sw->sw_learn.vl_fdb, &cursor,
	    (uint32_t)time_uptime, &e)) {
		/* The port was added after learn_collect(). */
		if (!ports->lps_there[e.fe_port])
			continue;
		sbuf_printf(sb, "\n%02x:%02x:%02x:%02x:%02x:%02x"
		    " %s port_idx %u age %u vlan %u", a[0], a[1], a[2], a[3],
		    a[4], a[5], ports->lps_info[e.fe_port].lpi_name, e.fe_port,
		    e.fe_age_s, e.fe_vlan);
	}
}

/* List addresses if arg2 is 1, ports if 0. */
static int
learn_list_sysctl(SYSCTL_HANDLER_ARGS)
{
	struct vale_learn_switch *sw = arg1;
	struct learn_ports *ports;
	struct sbuf sb;
	int error;

	if (jailed(req->td->td_ucred))
		return (EPERM);
	sbuf_new_for_sysctl(&sb, NULL, 512, req);
	ports = learn_collect(sw);
	if (arg2)
		learn_print_addresses(&sb, sw, ports);
	else
		learn_print_ports(&sb, sw, ports);
	free(ports, M_VALE_LEARN);
	error = sbuf_finish(&sb);
	sbuf_delete(&sb);
	return (error);
}

/* Create the list of switches, and apply its tunable. */
int
vale_learn_sysctl_load(void)
{
	sysctl_ctx_init(&learn_ctx);
	if (SYSCTL_ADD_PROC(&learn_ctx, SYSCTL_STATIC_CHILDREN(
	    _dev_netmap_vale_learn), OID_AUTO, "attach",
	    CTLTYPE_STRING | CTLFLAG_RWTUN | CTLFLAG_MPSAFE, NULL, 0,
	    learn_attach_sysctl, "A", "Switches to manage") == NULL)
		return (ENOMEM);
	return (0);
}

void
vale_learn_sysctl_unload(void)
{
	(void)sysctl_ctx_free(&learn_ctx);
}

void
vale_learn_sysctl_add(struct vale_learn_switch *sw)
{
	static const struct {
		enum vale_learn_rule	 rule;
		const char		*name;
		const char		*desc;
	} rule[] = {
		{ VALE_LEARN_PRIVATE, "private",
		    "Ports that exchange no frames with each other" },
		{ VALE_LEARN_MIRROR, "mirror",
		    "Ports that get copies of all frames and may not send" },
		{ VALE_LEARN_LIMIT, "limit",
		    "Maximum of addresses of a port; 0: no limit" },
		{ VALE_LEARN_RATE, "rate",
		    "Maximum that a port sends; 0: no limit" },
		{ VALE_LEARN_VLAN, "vlan",
		    "VLAN of access ports; 0: none" },
		{ VALE_LEARN_TRUNK, "trunk",
		    "VLANs of trunks; no: none" },
		{ VALE_LEARN_NATIVE, "native",
		    "Native VLAN of trunks; 0: none" },
		{ VALE_LEARN_SOURCE, "source",
		    "Ethernet addresses that a port may send from" },
		{ VALE_LEARN_IP, "ip",
		    "IP prefixes that a port may send from" },
	};
	struct sysctl_oid *node;
	struct sysctl_oid_list *list;
	unsigned int i;

	sysctl_ctx_init(&sw->sw_ctx);
	node = SYSCTL_ADD_NODE(&sw->sw_ctx, SYSCTL_STATIC_CHILDREN(
	    _dev_netmap_vale_learn), OID_AUTO, sw->sw_name,
	    CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Switch");
	list = SYSCTL_CHILDREN(node);
	for (i = 0; i < nitems(rule); i++)
		SYSCTL_ADD_PROC(&sw->sw_ctx, list, OID_AUTO, rule[i].name,
		    CTLTYPE_STRING | CTLFLAG_RWTUN | CTLFLAG_MPSAFE, sw,
		    rule[i].rule, learn_rule_sysctl, "A", rule[i].desc);
	SYSCTL_ADD_PROC(&sw->sw_ctx, list, OID_AUTO, "ageing",
	    CTLTYPE_UINT | CTLFLAG_RWTUN | CTLFLAG_MPSAFE, sw, 0,
	    learn_ageing_sysctl, "IU",
	    "Seconds after which an unused address expires; 0: never");
	SYSCTL_ADD_PROC(&sw->sw_ctx, list, OID_AUTO, "reserved",
	    CTLTYPE_UINT | CTLFLAG_RWTUN | CTLFLAG_MPSAFE, sw, 0,
	    learn_reserved_sysctl, "IU",
	    "Whether frames to 01:80:c2:00:00:00 to 0f pass");
	SYSCTL_ADD_PROC(&sw->sw_ctx, list, OID_AUTO, "ports",
	    CTLTYPE_STRING | CTLFLAG_RD | CTLFLAG_MPSAFE, sw, 0,
	    learn_list_sysctl, "A", "Ports and their counters");
	SYSCTL_ADD_PROC(&sw->sw_ctx, list, OID_AUTO, "addresses",
	    CTLTYPE_STRING | CTLFLAG_RD | CTLFLAG_MPSAFE, sw, 1,
	    learn_list_sysctl, "A", "Learned addresses");
	SYSCTL_ADD_COUNTER_U64(&sw->sw_ctx, list, OID_AUTO, "drop_nomem",
	    CTLFLAG_RD, &sw->sw_nomem,
	    "Frames dropped because there was no memory to add their port");
}

void
vale_learn_sysctl_remove(struct vale_learn_switch *sw)
{
	(void)sysctl_ctx_free(&sw->sw_ctx);
}
