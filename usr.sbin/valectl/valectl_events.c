/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * --events: what happens, as JSON, one object on each line.  Once a second all
 * ports, adapters and interfaces are read, and compared with those before: so
 * frames that were dropped for one reason are one event a second, with their
 * number.  What comes and goes within a second may not be seen.
 */

#include <err.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "valectl.h"

#define	PERIOD_S	1

static void
state_read(struct vc_state *st)
{
	unsigned int tries = 0;

	while (vc_state_get(st) == -1)
		if (!vc_again(&tries))
			vc_fail();
}

/* Print an event with the members of `object', which is freed. */
static void
event(const char *name, json_t *object)
{
	struct timespec ts;
	json_t *all;

	clock_gettime(CLOCK_REALTIME, &ts);
	all = json_pack("{s:f, s:s}", "time", ts.tv_sec + ts.tv_nsec / 1e9,
	    "event", name);
	if (all == NULL || object == NULL || json_object_update(all, object) ==
	    -1 || json_dumpf(all, stdout, JSON_COMPACT |
	    JSON_REAL_PRECISION(14)) == -1)
		errx(EX_OSERR, "cannot print");
	putchar('\n');
	if (fflush(stdout) != 0)
		err(EX_IOERR, "stdout");
	json_decref(object);
	json_decref(all);
}

static void
port_event(const char *name, const struct vale_port_info *info)
{
	event(name, json_pack("{s:s}", "port", info->vpi_name));
}

/* Say that a counter of a port or device has grown, if it is one of drops. */
static void
dropped(const char *device, const char *name, const char *port,
    const char *counter, unsigned int kind, uint64_t frames)
{
	const bool tx = strncmp(counter, "tx_", 3) == 0;
	json_t *object;

	if (frames == 0 || kind != COUNTER_KIND_DROP ||
	    (!tx && strncmp(counter, "rx_", 3) != 0))
		return;
	counter += 3;
	if (strncmp(counter, "drop_", 5) == 0)
		counter += 5;
	object = json_pack("{s:s, s:s, s:s, s:I}", "port", port, "direction",
	    tx ? "transmit" : "receive", "reason", counter, "frames",
	    (json_int_t)frames);
	if (object != NULL && device != NULL)
		json_object_set_new(object, device, json_string(name));
	event("dropped", object);
}

/* Find the same port, not another one of its name. */
static const struct vale_port_info *
port_same(const struct vc_ports *ports, const struct vale_port_info *info,
    bool later)
{
	const struct vale_port_info *other = vc_ports_find(ports,
	    info->vpi_name);
	int i;

	if (other == NULL)
		return (NULL);
	for (i = 0; i < VALE_NCOUNTERS; i++)
		if (later ? other->vpi_counter[i] < info->vpi_counter[i] :
		    other->vpi_counter[i] > info->vpi_counter[i])
			return (NULL);
	return (other);
}

/* Return how much a counter has grown; a port that is new began with 0. */
static uint64_t
grown(const struct vale_port_info *now, const struct vale_port_info *last,
    int counter)
{
	return (now->vpi_counter[counter] - (last != NULL ?
	    last->vpi_counter[counter] : 0));
}

/* Report changes of a port; `before' is the report before `last', or NULL. */
static void
port_compare(const struct vale_port_info *now,
    const struct vale_port_info *last, const struct vale_port_info *before)
{
	int i;

	if (now->vpi_link != (last == NULL || last->vpi_link))
		event("link", json_pack("{s:s, s:b}", "port", now->vpi_name,
		    "up", (int)now->vpi_link));
	/* Not each second, while it lasts. */
	if (grown(now, last, VALE_C_TX_DROP_LIMIT) > 0 && (last == NULL ||
	    before == NULL || grown(last, before, VALE_C_TX_DROP_LIMIT) == 0))
		port_event("limit_reached", now);
	for (i = 0; i < VALE_NCOUNTERS; i++)
		dropped(NULL, NULL, now->vpi_name,
		    vale_counter_table[i].cr_name,
		    vale_counter_table[i].cr_kind, grown(now, last, i));
}

static const struct vale_wire_device *
device_find(const struct vc_devices *devices, const struct vale_wire_device *of)
{
	const struct vale_wire_device *wd;
	size_t i;

	for (i = 0; i < devices->vcd_n; i++) {
		wd = &devices->vcd_device[i];
		if (wd->wdv_kind == of->wdv_kind && strcmp(wd->wdv_name,
		    of->wdv_name) == 0 && strcmp(wd->wdv_port,
		    of->wdv_port) == 0)
			return (wd);
	}
	return (NULL);
}

static uint64_t
device_counter(const struct vale_wire_device *wd, const char *name)
{
	uint32_t i;

	for (i = 0; wd != NULL && i < wd->wdv_ncounters; i++)
		if (strcmp(wd->wdv_counter[i].wn_name, name) == 0)
			return (wd->wdv_counter[i].wn_value);
	return (0);
}

static void
client_event(const char *name, const struct vale_wire_device *wd)
{
	event(name, json_pack("{s:s, s:s}", "adapter", wd->wdv_name, "port",
	    wd->wdv_port));
}

/* Report clients; `last' is NULL of a new device, `now' of a former one. */
static void
client_compare(const struct vale_wire_device *now,
    const struct vale_wire_device *last)
{
	const bool had = last != NULL && last->wdv_since_s != 0;
	const bool has = now != NULL && now->wdv_since_s != 0;
	const bool other = had && has && (now->wdv_since_s !=
	    last->wdv_since_s || device_counter(now, "connects") !=
	    device_counter(last, "connects"));

	if (had && (!has || other))
		client_event("client_went", last);
	if (has && (!had || other))
		client_event("client_came", now);
}

/* Report a device's drops; a new device's are known to be its own if `all'. */
static void
device_compare(const struct vale_wire_device *now,
    const struct vale_wire_device *last, bool all)
{
	const struct vale_wire_counter *wn;
	uint64_t before;

	client_compare(now, last);
	if (last == NULL && !all)
		return;
	for (wn = now->wdv_counter; wn < now->wdv_counter + now->wdv_ncounters;
	    wn++) {
		before = device_counter(last, wn->wn_name);
		if (wn->wn_value > before)
			dropped(vc_device_kind(now), now->wdv_name,
			    now->wdv_port, wn->wn_name, wn->wn_kind,
			    wn->wn_value - before);
	}
}

/* Say what has changed; at `first', what is there. */
static void
compare(const struct vc_state *now, const struct vc_state *last,
    const struct vc_state *before, bool first)
{
	const struct vc_devices *devices = &now->vcs_devices;
	const struct vale_port_info *info, *same;
	const struct vale_wire_device *wd;
	size_t i;

	for (i = 0; i < last->vcs_devices.vcd_n; i++) {
		wd = &last->vcs_devices.vcd_device[i];
		if (device_find(devices, wd) == NULL)
			client_compare(NULL, wd);
	}
	for (i = 0; i < last->vcs_ports.vcp_n; i++) {
		info = &last->vcs_ports.vcp_info[i];
		if (port_same(&now->vcs_ports, info, true) == NULL)
			port_event("port_removed", info);
	}
	for (i = 0; i < now->vcs_ports.vcp_n; i++) {
		info = &now->vcs_ports.vcp_info[i];
		same = port_same(&last->vcs_ports, info, false);
		if (same == NULL)
			port_event("port_added", info);
		/* What was counted before the first report is no event. */
		if (first) {
			if (!info->vpi_link)
				event("link", json_pack("{s:s, s:b}", "port",
				    info->vpi_name, "up", 0));
			continue;
		}
		port_compare(info, same, same == NULL ? NULL :
		    port_same(&before->vcs_ports, same, false));
	}
	for (i = 0; i < devices->vcd_n; i++) {
		wd = &devices->vcd_device[i];
		device_compare(wd, device_find(&last->vcs_devices, wd), !first);
	}
}

void
vc_events(void)
{
	struct vc_state before = { .vcs_ports = { NULL, 0 } }, last = before, now;
	bool first = true;

	for (;;) {
		state_read(&now);
		compare(&now, &last, &before, first);
		vc_state_free(&before);
		before = last;
		last = now;
		first = false;
		sleep(PERIOD_S);
	}
}
