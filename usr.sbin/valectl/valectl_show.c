/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Lists of ports, counters and addresses.
 */

#include <dev/netmap/vale_fdb.h>

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "valectl.h"

static int
ports_add(const struct vale_port_info *info, void *arg)
{
	struct vc_ports *ports = arg;

	if (ports->vcp_n % 64 == 0) {
		ports->vcp_info = reallocarray(ports->vcp_info,
		    ports->vcp_n + 64, sizeof(*ports->vcp_info));
		if (ports->vcp_info == NULL)
			err(EX_OSERR, NULL);
	}
	ports->vcp_info[ports->vcp_n++] = *info;
	return (0);
}

int
vc_ports_get(const char *name, struct vc_ports *ports)
{
	memset(ports, 0, sizeof(*ports));
	return (vale_list(name, ports_add, ports));
}

void
vc_ports_read(const char *name, struct vc_ports *ports)
{
	if (vc_ports_get(name, ports) == -1)
		vc_fail();
	if (name != NULL && ports->vcp_n == 0)
		errx(EX_DATAERR, "%s: there is no such switch", name);
}

const struct vale_port_info *
vc_ports_find(const struct vc_ports *ports, const char *name)
{
	size_t i;

	for (i = 0; i < ports->vcp_n; i++)
		if (strcmp(ports->vcp_info[i].vpi_name, name) == 0)
			return (&ports->vcp_info[i]);
	return (NULL);
}

void
vc_print_json(json_t *value)
{
	if (value == NULL || json_dumpf(value, stdout, JSON_COMPACT) == -1)
		errx(EX_OSERR, "cannot print");
	putchar('\n');
	json_decref(value);
}

void
vc_show_ports(bool json)
{
	json_t *list = json_array();
	struct vc_ports ports;
	const char *name;
	size_t i, len = 0;
	int at = -1;

	vc_ports_read(NULL, &ports);
	for (i = 0; i < ports.vcp_n; i++) {
		name = ports.vcp_info[i].vpi_name;
		if (i == 0 || strncmp(name, ports.vcp_info[i - 1].vpi_name,
		    len) != 0)
			at++;
		len = strcspn(name, ":") + 1;
		if (json)
			json_array_append_new(list, json_pack(
			    "{s:s, s:i, s:i, s:i, s:i, s:i}", "name", name,
			    "bridge_idx", at,
			    "port_idx", (int)ports.vcp_info[i].vpi_index,
			    "tx_slots", (int)ports.vcp_info[i].vpi_tx_slots,
			    "rx_slots", (int)ports.vcp_info[i].vpi_rx_slots,
			    "rings", (int)ports.vcp_info[i].vpi_rings));
		else
			printf("%s bridge_idx %d port_idx %u\n", name, at,
			    ports.vcp_info[i].vpi_index);
	}
	if (json)
		vc_print_json(list);
	else
		json_decref(list);
	free(ports.vcp_info);
}

static json_t *
counters_json(const struct vale_port_info *info)
{
	json_t *object = json_object();
	int i;

	for (i = 0; i < VALE_NCOUNTERS; i++)
		json_object_set_new(object, vale_counter_table[i].cr_name,
		    json_integer(info->vpi_counter[i]));
	return (object);
}

json_t *
vc_print_counters(const struct vc_ports *ports, const char *port, bool json)
{
	json_t *object = json_object();
	const struct vale_port_info *info;
	size_t i;
	int c;

	for (i = 0; i < ports->vcp_n; i++) {
		info = &ports->vcp_info[i];
		if (port != NULL && strcmp(info->vpi_name, port) != 0)
			continue;
		json_object_set_new(object, info->vpi_name,
		    counters_json(info));
		for (c = 0; !json && c < VALE_NCOUNTERS; c++)
			printf("%s %s %" PRIu64 "\n", info->vpi_name,
			    vale_counter_table[c].cr_name,
			    info->vpi_counter[c]);
	}
	return (object);
}

void
vc_show_counters(const char *name, bool json)
{
	struct vc_ports ports;
	json_t *object;
	char *vale;

	vale = strndup(name, strcspn(name, ":"));
	if (vale == NULL)
		err(EX_OSERR, NULL);
	vc_ports_read(vale, &ports);
	object = vc_print_counters(&ports, strchr(name, ':') != NULL ? name :
	    NULL, json);
	if (json_object_size(object) == 0)
		errx(EX_DATAERR, "%s: there is no such port", name);
	if (json)
		vc_print_json(object);
	else
		json_decref(object);
	free(ports.vcp_info);
	free(vale);
}

struct addrs {
	struct vc_ports	 ports;
	json_t		*list;		/* or NULL: print text */
};

static int
addrs_add(const struct vale_fdb_entry *fe, void *arg)
{
	const struct addrs *a = arg;
	const char *port = "-";
	char addr[VC_ADDRESS_SIZE], vlan[16] = "";
	json_t *row;
	size_t i;

	for (i = 0; i < a->ports.vcp_n; i++)
		if (a->ports.vcp_info[i].vpi_index == fe->fe_port)
			port = a->ports.vcp_info[i].vpi_name;
	vc_address(fe->fe_addr, addr);
	if (a->list != NULL) {
		row = json_pack("{s:s, s:s, s:i}", "address", addr, "port",
		    port, "age", (int)fe->fe_age_s);
		if (fe->fe_vlan != 0)
			json_object_set_new(row, "vlan",
			    json_integer(fe->fe_vlan));
		json_array_append_new(a->list, row);
		return (0);
	}
	if (fe->fe_vlan != 0)
		snprintf(vlan, sizeof(vlan), " vlan %u", fe->fe_vlan);
	printf("%s %s%s age %us\n", addr, port, vlan, fe->fe_age_s);
	return (0);
}

void
vc_show_addrs(const char *name, bool json)
{
	struct addrs a = { .list = json ? json_array() : NULL };

	vc_ports_read(name, &a.ports);
	if (vale_fdb_list(name, addrs_add, &a) == -1) {
		if (errno == ENXIO)
			errx(EX_DATAERR, "%s: there is no such switch", name);
		vc_fail();
	}
	if (json)
		vc_print_json(a.list);
	free(a.ports.vcp_info);
}
