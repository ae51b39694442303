/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Settings as text.  Values are printed as they are parsed, so that what is
 * shown can be set again.
 */

#include <sys/param.h>
#include <dev/netmap/vale_rate.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vale_setting.h"

/* Parse ageing=seconds, and other numbers. */
static int
parse_number(struct vale_setting_value *sv, const char *text)
{
	char *end;

	errno = 0;
	sv->sv_number = strtoull(text, &end, 10);
	/* strtoull(3) takes blanks, signs and nothing. */
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
		return (vale_setting_error(EINVAL,
		    "the value is not a number"));
	return (0);
}

/* Parse private=on|off. */
static int
parse_bool(struct vale_setting_value *sv, const char *text)
{
	sv->sv_number = strcmp(text, "on") == 0;
	if (sv->sv_number == 0 && strcmp(text, "off") != 0)
		return (vale_setting_error(EINVAL, "not on or off"));
	return (0);
}

/* Parse rate=limit[,burst=size]. */
static int
parse_rate(struct vale_setting_value *sv, const char *text)
{
	static const char burst[] = ",burst=";
	struct vale_rate_conf conf = { .rc_rate = 0 };
	const size_t len = strcspn(text, ",");
	char rate[64];

	if (snprintf(rate, sizeof(rate), "%.*s", (int)MIN(len, sizeof(rate)),
	    text) >= (int)sizeof(rate) || !vale_rate_parse(rate, &conf))
		return (vale_setting_error(EINVAL, "not a number up to 1000G, "
		    "with or without K, M or G, and bit/s, Byte/s or pkt/s"));
	if (text[len] != '\0' &&
	    (strncmp(text + len, burst, strlen(burst)) != 0 ||
	    !vale_rate_parse_burst(text + len + strlen(burst), &conf)))
		return (vale_setting_error(EINVAL, "not burst= and a number "
		    "from 1 to 512M, with or without K or M"));
	sv->sv_number = conf.rc_rate;
	sv->sv_burst = conf.rc_burst;
	sv->sv_frames = conf.rc_frames;
	return (0);
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

/* Parse mirror=valeSSS:PPP[/t|/r] or mirror=no. */
static int
parse_mirror(struct vale_setting_value *sv, const char *text)
{
	const size_t len = strcspn(text, "/");
	unsigned int i;

	if (strcmp(text, "no") == 0)
		return (0);
	for (i = 0; i < nitems(ways); i++)
		if (strcmp(text + len, ways[i].suffix) == 0)
			sv->sv_number = ways[i].what;
	if (sv->sv_number == 0 || len >= VALE_NAME_SIZE)
		return (vale_setting_error(EINVAL, "not the name of a port, "
		    "with or without /t or /r, nor no"));
	memcpy(sv->sv_text, text, len);
	return (0);
}

/* Take a text, which the switch's library parses. */
static int
parse_text(struct vale_setting_value *sv, const char *text)
{
	if (strlen(text) >= sizeof(sv->sv_text))
		return (vale_setting_error(EINVAL, "the value has more than "
		    "%zu characters", sizeof(sv->sv_text) - 1));
	memcpy(sv->sv_text, text, strlen(text));
	return (0);
}

static void
print_number(const struct vale_setting_value *sv, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64, sv->sv_number);
}

static void
print_bool(const struct vale_setting_value *sv, char *text, size_t size)
{
	snprintf(text, size, "%s", sv->sv_number != 0 ? "on" : "off");
}

static void
print_rate(const struct vale_setting_value *sv, char *text, size_t size)
{
	if (sv->sv_number == 0)
		snprintf(text, size, "0");
	else if (sv->sv_burst == 0)	/* the default */
		snprintf(text, size, "%" PRIu64 "%s", sv->sv_number,
		    sv->sv_frames ? "pkt/s" : "bit/s");
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
	snprintf(text, size, "%s%s", sv->sv_number == 0 ? "no" : sv->sv_text,
	    suffix);
}

static void
print_text(const struct vale_setting_value *sv, char *text, size_t size)
{
	snprintf(text, size, "%s", sv->sv_text);
}

static const struct {
	int	(*parse)(struct vale_setting_value *sv, const char *text);
	void	(*print)(const struct vale_setting_value *sv, char *text,
		    size_t size);
} kinds[] = {
	[VALE_KIND_NUMBER] = { parse_number, print_number },
	[VALE_KIND_BOOL] = { parse_bool, print_bool },
	[VALE_KIND_RATE] = { parse_rate, print_rate },
	[VALE_KIND_MIRROR] = { parse_mirror, print_mirror },
	[VALE_KIND_TEXT] = { parse_text, print_text },
};

unsigned int
vale_setting_named(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < VALE_NSETTINGS; i++)
		if (strlen(vale_setting_table[i].se_name) == len &&
		    memcmp(vale_setting_table[i].se_name, name, len) == 0)
			break;
	return (i);
}

int
vale_setting_parse(unsigned int setting, const char *text,
    struct vale_setting_value *value)
{
	memset(value, 0, sizeof(*value));
	return (kinds[vale_setting_table[setting].se_kind].parse(value, text));
}

void
vale_setting_print(unsigned int setting,
    const struct vale_setting_value *value, char *text, size_t size)
{
	kinds[vale_setting_table[setting].se_kind].print(value, text, size);
}

void
vale_setting_default(unsigned int setting, struct vale_setting_value *value)
{
	const struct vale_setting *se = &vale_setting_table[setting];

	memset(value, 0, sizeof(*value));
	value->sv_number = se->se_default;
	if (se->se_kind == VALE_KIND_TEXT)
		memcpy(value->sv_text, se->se_unit, strlen(se->se_unit));
}

bool
vale_setting_same(const struct vale_setting_value *a,
    const struct vale_setting_value *b)
{
	return (a->sv_number == b->sv_number && a->sv_burst == b->sv_burst &&
	    a->sv_frames == b->sv_frames && strcmp(a->sv_text, b->sv_text) ==
	    0);
}

void
vale_setting_burst(struct vale_setting_value *value)
{
	const struct vale_rate_conf conf = { .rc_rate = value->sv_number,
	    .rc_burst = value->sv_burst, .rc_frames = value->sv_frames };
	struct vale_rate rate = { .r_conf = { .rc_rate = 0 } };

	(void)vale_rate_set(&rate, &conf);
	value->sv_number = rate.r_conf.rc_rate;
	value->sv_burst = rate.r_conf.rc_burst;
	value->sv_frames = rate.r_conf.rc_frames;
}

static enum vale_setting_scope
name_scope(const char *name)
{
	return (strchr(name, ':') != NULL ? VALE_OF_PORT : VALE_OF_SWITCH);
}

/* Return the setting of a port or switch, or VALE_NSETTINGS. */
static unsigned int
name_setting(const char *name, const char *setting)
{
	const unsigned int i = vale_setting_named(setting, strlen(setting));

	if (i == VALE_NSETTINGS ||
	    vale_setting_table[i].se_scope != name_scope(name)) {
		(void)vale_setting_error(EINVAL, "%s is not a setting of a %s",
		    setting, name_scope(name) == VALE_OF_PORT ? "port" :
		    "switch");
		return (VALE_NSETTINGS);
	}
	return (i);
}

int
vale_set(const char *name, const char *setting, const char *text)
{
	const unsigned int i = name_setting(name, setting);
	struct vale_setting_value value;

	if (i == VALE_NSETTINGS || vale_setting_parse(i, text, &value) == -1)
		return (-1);
	return (vale_setting_set(name, i, &value));
}

int
vale_get(const char *name, const char *setting, char *text, size_t size)
{
	const unsigned int i = name_setting(name, setting);
	struct vale_setting_value value[VALE_NSETTINGS];

	if (i == VALE_NSETTINGS ||
	    vale_setting_get(name, name_scope(name), value) == -1)
		return (-1);
	vale_setting_print(i, &value[i], text, size);
	return (0);
}
