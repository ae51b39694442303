/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * -o: settings of switches and ports.  They are shown as they are set, so that
 * what is shown can be given back.
 */

#include <sys/param.h>
#include <dev/netmap/vale_rate.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "valectl.h"

const char *
vc_value(const char *assignment, const char *setting)
{
	const size_t len = strlen(setting);

	return (strncmp(assignment, setting, len) == 0 &&
	    assignment[len] == '=' ? assignment + len + 1 : NULL);
}

static void
set(const char *name, const struct vale_wire_set *ws)
{
	struct vale_client_call call = { .body = ws, .size = sizeof(*ws) };
	struct nmreq_header hdr;

	vc_request(name, VALE_WIRE_SET, &hdr, &call);
}

/* ageing=seconds, and others that are a number. */
static void
set_number(const char *name, const char *assignment, const char *value,
    unsigned int setting)
{
	struct vale_wire_set ws = { .ws_setting = setting };

	if (!vc_number(value, &ws.ws_value))
		errx(EX_USAGE, "%s: the value is not a number", assignment);
	set(name, &ws);
}

/* private=yes|no */
static void
set_private(const char *name, const char *assignment, const char *value,
    unsigned int setting)
{
	struct vale_wire_set ws = { .ws_setting = setting };

	ws.ws_value = strcmp(value, "yes") == 0;
	if (ws.ws_value == 0 && strcmp(value, "no") != 0)
		errx(EX_USAGE, "%s: not yes or no", assignment);
	set(name, &ws);
}

/* rate=limit[,burst=size] */
static void
set_rate(const char *name, const char *assignment, const char *value,
    unsigned int setting __unused)
{
	struct vale_rate_conf conf = { .rc_rate = 0 };
	struct vale_wire_set ws = { .ws_setting = VALE_WIRE_RATE };
	const char *burst, *comma = strchr(value, ',');
	char *rate;

	rate = strndup(value, strcspn(value, ","));
	if (rate == NULL)
		err(EX_OSERR, NULL);
	if (!vale_rate_parse(rate, &conf))
		errx(EX_USAGE, "%s: not a number up to 1000G, with or without "
		    "K, M or G, and bit/s, Byte/s or pkt/s", assignment);
	burst = comma == NULL ? NULL : vc_value(comma + 1, "burst");
	if (comma != NULL && (burst == NULL ||
	    !vale_rate_parse_burst(burst, &conf)))
		errx(EX_USAGE, "%s: not burst= and a number from 1 to 512M, "
		    "with or without K or M", comma + 1);
	if (conf.rc_frames)
		ws.ws_setting = VALE_WIRE_RATE_FRAMES;
	ws.ws_value = conf.rc_rate;
	ws.ws_burst = conf.rc_burst;
	free(rate);
	set(name, &ws);
}

/* What a mirror gets, as netmap names monitors. */
static const struct {
	const char	*suffix;
	unsigned int	 what;
} ways[] = {
	{ "", VALE_MIRROR_BOTH },
	{ "/t", VALE_MIRROR_TX },
	{ "/r", VALE_MIRROR_RX },
};

/* mirror=valeSSS:PPP[/t|/r] or mirror=no */
static void
set_mirror(const char *name, const char *assignment, const char *value,
    unsigned int setting __unused)
{
	struct vale_wire_mirror wm = { .wm_what = 0 };
	struct vale_client_call call = { .body = &wm, .size = sizeof(wm) };
	struct nmreq_header hdr;
	const size_t len = strcspn(value, "/");
	unsigned int i;

	if (strcmp(value, "no") != 0) {
		for (i = 0; i < nitems(ways); i++)
			if (strcmp(value + len, ways[i].suffix) == 0)
				wm.wm_what = ways[i].what;
		if (wm.wm_what == 0 || len >= sizeof(wm.wm_of))
			errx(EX_USAGE, "%s: not the name of a port, with or "
			    "without /t or /r, nor no", assignment);
		memcpy(wm.wm_of, value, len);
	}
	vc_request(name, VALE_WIRE_MIRROR, &hdr, &call);
}

static const struct setting {
	const char	*name;
	void		(*set)(const char *name, const char *assignment,
			    const char *value, unsigned int setting);
	unsigned int	 setting;	/* for ws_setting */
} settings[] = {
	{ "ageing", set_number, VALE_WIRE_AGEING },
	{ "batch", set_number, VALE_WIRE_BATCH },
	{ "limit", set_number, VALE_WIRE_LIMIT },
	{ "mirror", set_mirror, 0 },
	{ "private", set_private, VALE_WIRE_PRIVATE },
	{ "rate", set_rate, 0 },
	{ "weight", set_number, VALE_WIRE_WEIGHT },
};

void
vc_set(const char *name, const char *assignment)
{
	const struct setting *st;
	const char *value;

	for (st = settings; st < settings + nitems(settings); st++) {
		value = vc_value(assignment, st->name);
		if (value != NULL) {
			st->set(name, assignment, value, st->setting);
			return;
		}
	}
	errx(EX_USAGE, "%s: not a setting and its value", assignment);
}

static void
show_switch(const char *name, bool json)
{
	struct vale_switch_settings ss;

	vc_get(name, VALE_WIRE_SWITCH_GET, &ss, sizeof(ss));
	if (json)
		vc_print_json(json_pack("{s:i, s:i}", "ageing",
		    (int)ss.ss_ageing_s, "batch", (int)ss.ss_batch));
	else
		printf("ageing=%u\nbatch=%u\n", ss.ss_ageing_s, ss.ss_batch);
}

/* The limit of what a port sends, as text. */
static void
rate_text(const char *name, char *text, size_t size)
{
	struct vale_wire_set ws;

	vc_get(name, VALE_WIRE_RATE_GET, &ws, sizeof(ws));
	if (ws.ws_value == 0)
		snprintf(text, size, "0");
	else
		snprintf(text, size, "%" PRIu64 "%s,burst=%u", ws.ws_value,
		    ws.ws_setting == VALE_WIRE_RATE_FRAMES ? "pkt/s" : "bit/s",
		    ws.ws_burst);
}

static void
show_port(const char *name, bool json)
{
	struct vale_port_settings ps;
	const char *suffix = "";
	char mirror[VALE_NAME_SIZE + 2], rate[64];
	unsigned int i;

	vc_get(name, VALE_WIRE_PORT_GET, &ps, sizeof(ps));
	rate_text(name, rate, sizeof(rate));
	for (i = 0; i < nitems(ways); i++)
		if (ways[i].what == ps.ps_mirror)
			suffix = ways[i].suffix;
	snprintf(mirror, sizeof(mirror), "%.*s%s", (int)sizeof(ps.ps_mirror_of),
	    ps.ps_mirror == 0 ? "no" : ps.ps_mirror_of, suffix);
	if (json)
		vc_print_json(json_pack("{s:i, s:s, s:b, s:s, s:i}",
		    "limit", (int)ps.ps_limit, "mirror", mirror,
		    "private", (int)ps.ps_private, "rate", rate,
		    "weight", (int)ps.ps_weight));
	else
		printf("limit=%u\nmirror=%s\nprivate=%s\nrate=%s\n"
		    "weight=%u\n", ps.ps_limit, mirror,
		    ps.ps_private ? "yes" : "no", rate, ps.ps_weight);
}

void
vc_show_settings(const char *name, bool json)
{
	if (strchr(name, ':') != NULL)
		show_port(name, json);
	else
		show_switch(name, json);
}
