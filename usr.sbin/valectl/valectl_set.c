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
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "valectl.h"
#include "vale_setting.h"

const char *
vc_value(const char *assignment, const char *setting)
{
	const size_t len = strlen(setting);

	return (strncmp(assignment, setting, len) == 0 &&
	    assignment[len] == '=' ? assignment + len + 1 : NULL);
}

/* ageing=seconds, and others that are a number. */
static void
parse_number(struct vale_setting_value *sv, const char *assignment,
    const char *value)
{
	if (!vc_number(value, &sv->sv_number))
		errx(EX_USAGE, "%s: the value is not a number", assignment);
}

/* private=yes|no */
static void
parse_bool(struct vale_setting_value *sv, const char *assignment,
    const char *value)
{
	sv->sv_number = strcmp(value, "yes") == 0;
	if (sv->sv_number == 0 && strcmp(value, "no") != 0)
		errx(EX_USAGE, "%s: not yes or no", assignment);
}

/* rate=limit[,burst=size] */
static void
parse_rate(struct vale_setting_value *sv, const char *assignment,
    const char *value)
{
	struct vale_rate_conf conf = { .rc_rate = 0 };
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
	sv->sv_number = conf.rc_rate;
	sv->sv_burst = conf.rc_burst;
	sv->sv_frames = conf.rc_frames;
	free(rate);
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
parse_mirror(struct vale_setting_value *sv, const char *assignment,
    const char *value)
{
	const size_t len = strcspn(value, "/");
	unsigned int i;

	if (strcmp(value, "no") == 0)
		return;
	for (i = 0; i < nitems(ways); i++)
		if (strcmp(value + len, ways[i].suffix) == 0)
			sv->sv_number = ways[i].what;
	if (sv->sv_number == 0 || len >= sizeof(sv->sv_name))
		errx(EX_USAGE, "%s: not the name of a port, with or "
		    "without /t or /r, nor no", assignment);
	memcpy(sv->sv_name, value, len);
}

/* The value as it is set. */
static void
print_number(const struct vale_setting_value *sv, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64, sv->sv_number);
}

static void
print_bool(const struct vale_setting_value *sv, char *text, size_t size)
{
	snprintf(text, size, "%s", sv->sv_number != 0 ? "yes" : "no");
}

static void
print_rate(const struct vale_setting_value *sv, char *text, size_t size)
{
	if (sv->sv_number == 0)
		snprintf(text, size, "0");
	else
		snprintf(text, size, "%" PRIu64 "%s,burst=%u", sv->sv_number,
		    sv->sv_frames ? "pkt/s" : "bit/s", sv->sv_burst);
}

static void
print_mirror(const struct vale_setting_value *sv, char *text, size_t size)
{
	const char *suffix = "";
	unsigned int i;

	for (i = 0; i < nitems(ways); i++)
		if (ways[i].what == sv->sv_number)
			suffix = ways[i].suffix;
	snprintf(text, size, "%s%s", sv->sv_number == 0 ? "no" : sv->sv_name,
	    suffix);
}

static const struct {
	void	(*parse)(struct vale_setting_value *sv, const char *assignment,
		    const char *value);
	void	(*print)(const struct vale_setting_value *sv, char *text,
		    size_t size);
} kinds[] = {
	[VALE_KIND_NUMBER] = { parse_number, print_number },
	[VALE_KIND_BOOL] = { parse_bool, print_bool },
	[VALE_KIND_RATE] = { parse_rate, print_rate },
	[VALE_KIND_MIRROR] = { parse_mirror, print_mirror },
};

/* A call about `name' has failed. */
static void __dead2
fail(const char *name)
{
	const int error = errno;

	if (vale_error()[0] != '\0')
		errx(EX_DATAERR, "%s: %s", name, vale_error());
	if (error == EPROTO || error == EPIPE || error == ECONNRESET)
		err(EX_PROTOCOL, "%s", name);
	vc_fail();
}

static void
check_name(const char *name)
{
	if (strlen(name) >= VALE_NAME_SIZE)
		errx(EX_USAGE, "%s: more than %d characters", name,
		    VALE_NAME_SIZE - 1);
}

void
vc_set(const char *name, const char *assignment)
{
	struct vale_setting_value sv = { .sv_number = 0 };
	const struct vale_setting *se;
	const char *value;
	unsigned int i;

	for (i = 0; i < VALE_NSETTINGS; i++) {
		se = &vale_setting_table[i];
		value = vc_value(assignment, se->se_name);
		if (value == NULL)
			continue;
		kinds[se->se_kind].parse(&sv, assignment, value);
		check_name(name);
		if (vale_setting_set(name, i, &sv) == -1)
			fail(name);
		return;
	}
	errx(EX_USAGE, "%s: not a setting and its value", assignment);
}

static json_t *
value_json(const struct vale_setting *se, const struct vale_setting_value *sv,
    const char *text)
{
	switch (se->se_kind) {
	case VALE_KIND_NUMBER:
		return (json_integer(sv->sv_number));
	case VALE_KIND_BOOL:
		return (json_boolean(sv->sv_number != 0));
	default:
		return (json_string(text));
	}
}

void
vc_show_settings(const char *name, bool json)
{
	const enum vale_setting_scope scope = strchr(name, ':') != NULL ?
	    VALE_OF_PORT : VALE_OF_SWITCH;
	struct vale_setting_value sv[VALE_NSETTINGS];
	const struct vale_setting *se;
	char text[VALE_NAME_SIZE + 64];
	json_t *object = NULL;
	unsigned int i;

	check_name(name);
	if (vale_setting_get(name, scope, sv) == -1)
		fail(name);
	if (json)
		object = json_object();
	for (i = 0; i < VALE_NSETTINGS; i++) {
		se = &vale_setting_table[i];
		if (se->se_scope != scope)
			continue;
		kinds[se->se_kind].print(&sv[i], text, sizeof(text));
		if (json)
			json_object_set_new(object, se->se_name,
			    value_json(se, &sv[i], text));
		else
			printf("%s=%s\n", se->se_name, text);
	}
	if (json)
		vc_print_json(object);
}
