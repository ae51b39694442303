/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The values of an adapter's variables: from text to struct adapter_config.
 */

#include <sys/socket.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter_config.h"
#include "e82545.h"
#include "libvale.h"
#include "peer_log.h"
#include "vale_setting.h"
#include "valed_activation.h"
#include "valed_address.h"
#include "valed_config.h"
#include "valed_control.h"
#include "valed_values.h"

#define	TAP_NAMSIZ	16

#define	MEMBER_SIZE(member)	sizeof(((struct adapter_config *)0)->member)
#define	VARIABLE(id, name, kind, member, min, max, otherwise, arg, help)	\
	{ name, VALED_KIND_##kind, offsetof(struct adapter_config, member), \
	    MEMBER_SIZE(member), min, max, otherwise, -1, arg, help },
#define	SETTING(id, number, name, scope, kind, min, max, otherwise, what, \
    unit, arg, help)							\
	SETTING_##scope(id, name, arg, help)
#define	SETTING_SWITCH(...)
#define	SETTING_PORT(id, name, arg, help)				\
	{ name, VALED_KIND_SETTING, offsetof(struct adapter_config,	\
	    ac_backend), MEMBER_SIZE(ac_backend), 0, 0, 0,		\
	    VALE_SETTING_##id, arg, help },
const struct valed_variable valed_variables[VALED_NVARIABLES] = {
	VALED_OPTIONS(VARIABLE)
	VALE_SETTINGS(SETTING)
	VALED_POSITIONAL(VARIABLE)
};

/* An error of a variable. */
#define	BAD(vn, variable, ...)						\
	valed_bad(valed_config_where((vn), (variable)), __VA_ARGS__)

/* Return the value of a variable, or NULL. */
static const char *
value_get(const struct valed_node *vn, int variable)
{
	return (vn->nd_variable[variable].nt_value);
}

static bool
name_ok(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' &&
		    s[i] != '-' && s[i] != '.')
			return (false);
	}
	return (true);
}

bool
valed_backend_check(struct valed_where where, const char *be)
{
	const char *error = NULL;

	if (*be == '\0' || strchr(be, '=') != NULL)
		return (valed_bad(where, "the port's name is missing"));
	if (strncmp(be, "vale", 4) == 0)
		error = vale_name_error(be);
	else if (strncmp(be, "tap", 3) != 0)
		error = "no such backend: a port of a switch "
		    "(valeSWITCH:PORT) or a TAP (tapN)";
	else if (!name_ok(be, strlen(be)) || strlen(be) >= TAP_NAMSIZ)
		error = "not an interface's name";
	return (error == NULL || valed_bad(where, "%s: %s", be, error));
}

static void
parse_number(const struct valed_variable *v, uint32_t *n,
    const struct valed_node *vn, const char *value)
{
	const char *errstr;

	if (value == NULL)
		return;
	*n = strtonum(value, v->var_min, v->var_max, &errstr);
	if (errstr != NULL || !isdigit((unsigned char)*value))
		BAD(vn, v - valed_variables, "%s=%s: not a number from %u to "
		    "%u", v->var_name, value, v->var_min, v->var_max);
}

static void
parse_bool(const struct valed_variable *v, bool *b,
    const struct valed_node *vn, const char *value)
{
	*b = v->var_default != 0;
	if (value == NULL)
		return;
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		BAD(vn, v - valed_variables, "%s=%s: not \"on\" or \"off\"",
		    v->var_name, value);
	*b = strcmp(value, "on") == 0;
}

static void
parse_csb(const struct valed_variable *v, enum e82545_csb_kind *csb,
    const struct valed_node *vn, const char *value)
{
	unsigned int i;

	*csb = v->var_default;
	for (i = 0; value != NULL && i < E82545_NCSBS; i++)
		if (strcmp(value, e82545_csb_names[i]) == 0) {
			*csb = i;
			return;
		}
	if (value != NULL)
		BAD(vn, v - valed_variables, "%s=%s: not \"on\", \"compat\" "
		    "or \"off\"", v->var_name, value);
}

/*
 * Parse a size with the suffix M, G or T.  The default is the memory of the
 * host, of which a guest rarely has more.
 */
static void
parse_size(const struct valed_variable *v, uint64_t *size,
    const struct valed_node *vn, const char *value)
{
	if (value == NULL)
		*size = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		    sysconf(_SC_PAGESIZE);
	else if (!valed_size_parse(value, size))
		BAD(vn, v - valed_variables, "%s=%s: not a size from 1M to "
		    "1T, with M, G or T", v->var_name, value);
}

static void
not_a_port(const struct valed_variable *v, const struct adapter_config *ac,
    const struct valed_node *vn)
{
	const char *value = value_get(vn, v - valed_variables);

	if (value == NULL || v->var_setting == -1 || valed_has_port(ac))
		return;
	if (valed_is_remote(ac))
		BAD(vn, v - valed_variables, "%s=%s: with control= it is for "
		    "the valed that has the port: port.%s.%s", v->var_name,
		    value, ac->ac_backend, v->var_name);
	BAD(vn, v - valed_variables, "%s=%s: %s is not a port of a switch",
	    v->var_name, value, ac->ac_backend);
}

/* Parse six pairs of hexadecimal digits, separated by colons. */
static bool
parse_mac(const char *s, uint8_t mac[6])
{
	int i;

	for (i = 0; i < 6; i++, s += 3) {
		if (!isxdigit((unsigned char)s[0]) ||
		    !isxdigit((unsigned char)s[1]) ||
		    s[2] != (i < 5 ? ':' : '\0'))
			return (false);
		mac[i] = (uint8_t)strtoul(s, NULL, 16);
	}
	return (true);
}

/* Parse the socket: one of path= and fd=. */
static void
parse_socket(struct adapter_config *ac, const struct valed_node *vn)
{
	const char *fd = value_get(vn, VALED_V_FD);
	const char *path = value_get(vn, VALED_V_PATH);
	const char *error;

	if (path == NULL && fd == NULL)
		BAD(vn, VALED_V_PATH, "path= is missing");
	else if (path != NULL && fd != NULL)
		BAD(vn, VALED_V_PATH, "both path= and fd=");
	else if (path != NULL)
		strlcpy(ac->ac_path, path, sizeof(ac->ac_path));
	else {
		error = valed_activation_fd(fd, SOCK_STREAM, &ac->ac_fd);
		if (error != NULL)
			BAD(vn, VALED_V_FD, "fd=%s: %s", fd, error);
	}
}

/* Parse the socket of another valed, whose switch has the port. */
static void
parse_control(struct adapter_config *ac, const struct valed_node *vn,
    const char *value)
{
	if (value == NULL)
		return;
	if (*value != '/')
		BAD(vn, VALED_V_CONTROL, "control=%s: not an absolute path",
		    value);
	if (strncmp(ac->ac_backend, "vale", 4) != 0)
		BAD(vn, VALED_V_CONTROL, "control=%s: %s is not a port of a "
		    "switch", value, ac->ac_backend);
	strlcpy(ac->ac_control, value, sizeof(ac->ac_control));
}

static void
parse_mac_or_default(struct adapter_config *ac, const struct valed_node *vn,
    const char *value)
{
	static const uint8_t none[6];

	if (value == NULL) {
		valed_address(ac);
		return;
	}
	if (!parse_mac(value, ac->ac_mac))
		BAD(vn, VALED_V_MAC, "mac=%s: not six pairs of hexadecimal "
		    "digits with colons between", value);
	if ((ac->ac_mac[0] & 1) != 0 ||
	    memcmp(ac->ac_mac, none, sizeof(none)) == 0)
		BAD(vn, VALED_V_MAC, "mac=%s: not a unicast Ethernet address",
		    value);
}

bool
valed_values_setting(struct valed_where where, unsigned int setting,
    const char *text, struct vale_setting_value *value)
{
	return ((vale_setting_parse(setting, text, value) == 0 &&
	    vale_setting_check(setting, value) == 0) || valed_bad(where,
	    "%s=%s: %s", vale_setting_table[setting].se_name, text,
	    vale_error()));
}

/* Parse the value of a variable, or set the default. */
static void
parse(const struct valed_variable *v, struct adapter_config *ac,
    const struct valed_node *vn)
{
	const char *value = value_get(vn, v - valed_variables);
	void *member = (char *)ac + v->var_offset;

	switch (v->var_kind) {
	case VALED_KIND_PATH:
		parse_socket(ac, vn);
		break;
	case VALED_KIND_CONTROL:
		parse_control(ac, vn, value);
		break;
	case VALED_KIND_CSB:
		parse_csb(v, member, vn, value);
		break;
	case VALED_KIND_MAC:
		parse_mac_or_default(ac, vn, value);
		break;
	case VALED_KIND_NUMBER:
		parse_number(v, member, vn, value);
		break;
	case VALED_KIND_BOOL:
		parse_bool(v, member, vn, value);
		break;
	case VALED_KIND_SIZE:
		parse_size(v, member, vn, value);
		break;
	case VALED_KIND_BACKEND:
	case VALED_KIND_DEVICE:		/* valed_values() */
	case VALED_KIND_FD:		/* parse_socket() */
	case VALED_KIND_SETTING:	/* valed_settings() */
		break;
	}
}

const char *const valed_devices[ADAPTER_NDEVICES] = {
	[ADAPTER_E1000] = "e1000",
	[ADAPTER_E1000E] = "e1000e",
};

int
valed_device(const char *name, size_t len)
{
	int i;

	for (i = 0; i < ADAPTER_NDEVICES; i++)
		if (strlen(valed_devices[i]) == len &&
		    memcmp(valed_devices[i], name, len) == 0)
			return (i);
	return (-1);
}

static void
check_lengths(const struct valed_node *vn)
{
	const char *value;
	size_t size;
	int i;

	for (i = 0; i < VALED_NVARIABLES; i++) {
		value = value_get(vn, i);
		size = valed_variables[i].var_kind == VALED_KIND_SETTING ?
		    VALED_TEXT_SIZE : VALED_VALUE_SIZE;
		if (value != NULL && strlen(value) >= size)
			BAD(vn, i, "%s=%s: longer than %zu bytes",
			    valed_variables[i].var_name, value, size - 1);
	}
}

void
valed_values(struct adapter_config *ac, const struct valed_node *vn)
{
	const struct valed_where where = valed_config_where(vn,
	    VALED_V_BACKEND);
	const struct valed_variable *v;
	const char *device;

	*ac = (struct adapter_config){ .ac_bus = vn->nd_bus,
	    .ac_slot = vn->nd_slot, .ac_func = vn->nd_func, .ac_fd = -1,
	    .ac_opener = -1, .ac_listen = -1 };
	device = value_get(vn, VALED_V_DEVICE);
	ac->ac_device = valed_device(device, strlen(device));
	strlcpy(ac->ac_backend, value_get(vn, VALED_V_BACKEND),
	    sizeof(ac->ac_backend));
	snprintf(ac->ac_where, sizeof(ac->ac_where), "%s%s", where.wh_option,
	    where.wh_text);
	peer_log_clean(ac->ac_where, strlen(ac->ac_where), false);
	check_lengths(vn);
	for (v = valed_variables; v < valed_variables + VALED_NVARIABLES; v++)
		parse(v, ac, vn);
	for (v = valed_variables; v < valed_variables + VALED_NVARIABLES; v++)
		not_a_port(v, ac, vn);
}

static const struct valed_node *
node_of(const struct adapter_config *ac)
{
	return (valed_config_find(ac->ac_bus, ac->ac_slot, ac->ac_func));
}

/*
 * Return whether two adapters inherit one socket.  With -t no descriptor is
 * known.
 */
static bool
same_fd(const struct adapter_config *ac, const struct adapter_config *other,
    bool checking)
{
	if (ac->ac_fd == -1 || ac->ac_fd != other->ac_fd)
		return (false);
	return (!checking || strcmp(value_get(node_of(ac), VALED_V_FD),
	    value_get(node_of(other), VALED_V_FD)) == 0);
}

void
valed_values_twice(const struct adapter_config *ac,
    const struct adapter_config *other, bool checking)
{
	if (strcmp(ac->ac_backend, other->ac_backend) == 0)
		BAD(node_of(ac), VALED_V_BACKEND, "%s: port used twice",
		    ac->ac_backend);
	if (ac->ac_fd == -1 && strcmp(ac->ac_path, other->ac_path) == 0)
		BAD(node_of(ac), VALED_V_PATH, "path=%s: used twice",
		    ac->ac_path);
	if (same_fd(ac, other, checking))
		BAD(node_of(ac), VALED_V_FD, "fd=%s: used twice",
		    value_get(node_of(ac), VALED_V_FD));
	if (memcmp(ac->ac_mac, other->ac_mac, sizeof(ac->ac_mac)) == 0)
		BAD(node_of(ac), VALED_V_MAC,
		    "mac=%02x:%02x:%02x:%02x:%02x:%02x: used twice",
		    ac->ac_mac[0], ac->ac_mac[1], ac->ac_mac[2],
		    ac->ac_mac[3], ac->ac_mac[4], ac->ac_mac[5]);
}

static bool
same(const struct valed_variable *v, const struct adapter_config *a,
    const struct adapter_config *b)
{
	const char *am = (const char *)a + v->var_offset;
	const char *bm = (const char *)b + v->var_offset;

	switch (v->var_kind) {
	case VALED_KIND_BACKEND:
	case VALED_KIND_CONTROL:
	case VALED_KIND_PATH:
		return (strcmp(am, bm) == 0);
	default:
		return (v->var_setting != -1 ||
		    memcmp(am, bm, v->var_size) == 0);
	}
}

/* Return whether valed can change a variable of an adapter that is there. */
static bool
in_place(const struct valed_variable *v, const struct adapter_config *ac)
{
	switch (v - valed_variables) {
	case VALED_V_ANNOUNCE:
	case VALED_V_DIRECT:
	case VALED_V_ITR:
	case VALED_V_ITR_MIN:
	case VALED_V_POLL:
		return (true);
	case VALED_V_BACKEND:		/* a TAP cannot be opened any more */
		return (valed_has_port(ac));
	case VALED_V_MTU:		/* that of a TAP is the kernel's */
		return (strncmp(ac->ac_backend, "vale", 4) == 0);
	default:
		return (false);
	}
}

bool
valed_values_same(const struct adapter_config *ac,
    const struct adapter_config *other)
{
	const struct valed_variable *v;

	for (v = valed_variables; v < valed_variables + VALED_NVARIABLES; v++)
		if (!same(v, ac, other))
			return (false);
	return (true);
}

int
valed_values_bars(const struct adapter_config *ac,
    const struct adapter_config *other)
{
	int i;

	for (i = 0; i < VALED_NVARIABLES; i++)
		if (!same(&valed_variables[i], ac, other) &&
		    !in_place(&valed_variables[i], other))
			return (i);
	return (-1);
}

bool
valed_values_in_place(const struct adapter_config *ac,
    const struct adapter_config *other)
{
	return (valed_values_bars(ac, other) == -1);
}

bool
valed_values_changed(const struct adapter_config *ac,
    const struct adapter_config *other, int variable)
{
	return (!same(&valed_variables[variable], ac, other));
}
