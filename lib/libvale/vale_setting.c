/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The table of settings, and the calls that set or get one, which are the same
 * whether the switch is in this process (vale_setting_switch.c) or not
 * (vale_valed.c).
 */

#include <sys/param.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vale_setting.h"

#define	ROW(id, number, name, scope, kind, min, max, otherwise, what, unit) \
	{ number, name, VALE_OF_##scope, VALE_KIND_##kind, min, max, \
	    otherwise, what, unit },
const struct vale_setting vale_setting_table[VALE_NSETTINGS] = {
	VALE_SETTINGS(ROW)
};

static _Thread_local char error_text[128];

const char *
vale_error(void)
{
	return (error_text);
}

int
vale_setting_error(int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error_text, sizeof(error_text), fmt, ap);
	va_end(ap);
	errno = error;
	return (-1);
}

unsigned int
vale_setting_find(unsigned int number)
{
	unsigned int i;

	for (i = 0; i < VALE_NSETTINGS; i++)
		if (vale_setting_table[i].se_number == number)
			break;
	return (i);
}

static int
set_number(const char *name, unsigned int setting, uint64_t number)
{
	const struct vale_setting_value value = { .sv_number = number };

	return (vale_setting_set(name, setting, &value));
}

int
vale_set_ageing(const char *switch_name, uint32_t seconds)
{
	return (set_number(switch_name, VALE_SETTING_AGEING, seconds));
}

int
vale_set_batch(const char *switch_name, uint32_t slots)
{
	return (set_number(switch_name, VALE_SETTING_BATCH, slots));
}

int
vale_set_limit(const char *name, uint32_t limit)
{
	return (set_number(name, VALE_SETTING_LIMIT, limit));
}

int
vale_set_weight(const char *name, uint32_t weight)
{
	return (set_number(name, VALE_SETTING_WEIGHT, weight));
}

int
vale_set_private(const char *name, bool private)
{
	return (set_number(name, VALE_SETTING_PRIVATE, private));
}

int
vale_set_rate(const char *name, const struct vale_rate_conf *conf)
{
	const struct vale_setting_value value = { .sv_number = conf->rc_rate,
	    .sv_burst = conf->rc_burst, .sv_frames = conf->rc_frames };

	return (vale_setting_set(name, VALE_SETTING_RATE, &value));
}

int
vale_set_mirror(const char *name, const char *of, unsigned int what)
{
	struct vale_setting_value value = { .sv_number = what };

	if (what != 0 && (of == NULL || snprintf(value.sv_text,
	    VALE_NAME_SIZE, "%s", of) >= VALE_NAME_SIZE))
		return (vale_setting_error(EINVAL, "not a port's name"));
	return (vale_setting_set(name, VALE_SETTING_MIRROR, &value));
}

int
vale_switch_settings(const char *switch_name, struct vale_switch_settings *ss)
{
	struct vale_setting_value value[VALE_NSETTINGS];

	if (vale_setting_get(switch_name, VALE_OF_SWITCH, value) != 0)
		return (-1);
	ss->ss_ageing_s = value[VALE_SETTING_AGEING].sv_number;
	ss->ss_batch = value[VALE_SETTING_BATCH].sv_number;
	return (0);
}

int
vale_get_rate(const char *name, struct vale_rate_conf *conf)
{
	struct vale_setting_value value[VALE_NSETTINGS];

	if (vale_setting_get(name, VALE_OF_PORT, value) != 0)
		return (-1);
	conf->rc_rate = value[VALE_SETTING_RATE].sv_number;
	conf->rc_burst = value[VALE_SETTING_RATE].sv_burst;
	conf->rc_frames = value[VALE_SETTING_RATE].sv_frames;
	return (0);
}

int
vale_port_settings(const char *name, struct vale_port_settings *ps)
{
	struct vale_setting_value value[VALE_NSETTINGS];

	if (vale_setting_get(name, VALE_OF_PORT, value) != 0)
		return (-1);
	ps->ps_limit = value[VALE_SETTING_LIMIT].sv_number;
	ps->ps_private = value[VALE_SETTING_PRIVATE].sv_number;
	ps->ps_weight = value[VALE_SETTING_WEIGHT].sv_number;
	ps->ps_mirror = value[VALE_SETTING_MIRROR].sv_number;
	memset(ps->ps_mirror_of, 0, sizeof(ps->ps_mirror_of));
	memcpy(ps->ps_mirror_of, value[VALE_SETTING_MIRROR].sv_text,
	    strnlen(value[VALE_SETTING_MIRROR].sv_text,
	    sizeof(ps->ps_mirror_of) - 1));
	return (0);
}
