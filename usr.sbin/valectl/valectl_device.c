/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Adapters and attached interfaces: what state they are in, and what they have
 * counted.
 */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "valectl.h"

/* Append a device. */
static int
devices_add(const void *entry, void *arg)
{
	struct vc_devices *devices = arg;
	struct vale_wire_device *all, *wd;
	struct vale_wire_counter *wn;
	uint32_t i;

	all = reallocarray(devices->vcd_device, devices->vcd_n + 1,
	    sizeof(*all));
	if (all == NULL)
		return (-1);
	devices->vcd_device = all;
	wd = &all[devices->vcd_n++];
	memcpy(wd, entry, sizeof(*wd));
	if (wd->wdv_ncounters > VALE_DEVICE_COUNTERS) {
		errno = EPROTO;
		return (-1);
	}
	/* Whatever valed this is. */
	vale_client_text(wd->wdv_name, sizeof(wd->wdv_name));
	vale_client_text(wd->wdv_port, sizeof(wd->wdv_port));
	for (i = 0; i < wd->wdv_ncounters; i++) {
		wn = &wd->wdv_counter[i];
		vale_client_text(wn->wn_name, sizeof(wn->wn_name));
		vale_client_text(wn->wn_what, sizeof(wn->wn_what));
	}
	return (0);
}

int
vc_state_get(struct vc_state *st)
{
	memset(st, 0, sizeof(*st));
	if (vc_ports_get(NULL, &st->vcs_ports) == 0 &&
	    vale_client_list("", VALE_WIRE_DEVICES,
	    sizeof(struct vale_wire_device), devices_add, &st->vcs_devices) ==
	    0)
		return (0);
	vc_state_free(st);
	return (-1);
}

void
vc_state_free(struct vc_state *st)
{
	free(st->vcs_ports.vcp_info);
	free(st->vcs_devices.vcd_device);
	memset(st, 0, sizeof(*st));
}

void
vc_address(const uint8_t addr[6], char text[VC_ADDRESS_SIZE])
{
	snprintf(text, VC_ADDRESS_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x",
	    addr[0], addr[1], addr[2], addr[3], addr[4], addr[5]);
}

const char *
vc_device_kind(const struct vale_wire_device *wd)
{
	return (wd->wdv_kind == VALE_DEVICE_INTERFACE ? "interface" :
	    "adapter");
}

/* Return a time as ISO 8601 has it, or "none" for 0. */
static const char *
time_text(uint64_t s)
{
	static char text[32];
	const time_t t = s;
	struct tm tm;

	if (s == 0 || gmtime_r(&t, &tm) == NULL)
		return ("none");
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return (text);
}

static void
print_adapter(const struct vale_wire_device *wd)
{
	char addr[VC_ADDRESS_SIZE];

	vc_address(wd->wdv_addr, addr);
	printf("adapter %s address %s\n", wd->wdv_name, addr);
	printf("adapter %s client_since %s\n", wd->wdv_name,
	    time_text(wd->wdv_since_s));
	printf("adapter %s csb %s\n", wd->wdv_name,
	    (wd->wdv_flags & VALE_DEVICE_CSB) != 0 ? "on" : "off");
	printf("adapter %s itr_ns %u\n", wd->wdv_name, wd->wdv_itr_ns);
	printf("adapter %s link %s\n", wd->wdv_name,
	    (wd->wdv_flags & VALE_DEVICE_LINK) != 0 ? "up" : "down");
}

static void
print_device(const struct vale_wire_device *wd)
{
	const char *kind = vc_device_kind(wd);
	uint32_t i;

	printf("%s %s port %s\n", kind, wd->wdv_name, wd->wdv_port);
	if (wd->wdv_kind == VALE_DEVICE_ADAPTER)
		print_adapter(wd);
	for (i = 0; i < wd->wdv_ncounters; i++)
		printf("%s %s %s %" PRIu64 "\n", kind, wd->wdv_name,
		    wd->wdv_counter[i].wn_name, wd->wdv_counter[i].wn_value);
}

static json_t *
device_json(const struct vale_wire_device *wd)
{
	json_t *counters = json_object(), *object;
	char addr[VC_ADDRESS_SIZE];
	uint32_t i;

	object = json_pack("{s:s, s:s}", "name", wd->wdv_name, "port",
	    wd->wdv_port);
	if (wd->wdv_kind == VALE_DEVICE_ADAPTER) {
		vc_address(wd->wdv_addr, addr);
		json_object_set_new(object, "address", json_string(addr));
		json_object_set_new(object, "client_since",
		    wd->wdv_since_s == 0 ? json_null() :
		    json_integer(wd->wdv_since_s));
		json_object_set_new(object, "csb", json_boolean(
		    (wd->wdv_flags & VALE_DEVICE_CSB) != 0));
		json_object_set_new(object, "itr_ns",
		    json_integer(wd->wdv_itr_ns));
		json_object_set_new(object, "link", json_boolean(
		    (wd->wdv_flags & VALE_DEVICE_LINK) != 0));
	}
	for (i = 0; i < wd->wdv_ncounters; i++)
		json_object_set_new(counters, wd->wdv_counter[i].wn_name,
		    json_integer(wd->wdv_counter[i].wn_value));
	json_object_set_new(object, "counters", counters);
	return (object);
}

void
vc_show_all(bool json)
{
	json_t *adapters = json_array(), *interfaces = json_array();
	const struct vale_wire_device *wd;
	struct vc_state st;
	json_t *counters;
	size_t i;

	if (vc_state_get(&st) == -1)
		vc_fail();
	counters = vc_print_counters(&st.vcs_ports, NULL, json);
	for (i = 0; i < st.vcs_devices.vcd_n; i++) {
		wd = &st.vcs_devices.vcd_device[i];
		if (!json)
			print_device(wd);
		else
			json_array_append_new(
			    wd->wdv_kind == VALE_DEVICE_ADAPTER ? adapters :
			    interfaces, device_json(wd));
	}
	if (json)
		vc_print_json(json_pack("{s:o, s:o, s:o}", "ports", counters,
		    "adapters", adapters, "interfaces", interfaces));
	else {
		json_decref(adapters);
		json_decref(interfaces);
		json_decref(counters);
	}
	vc_state_free(&st);
}
