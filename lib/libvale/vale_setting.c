/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The table of settings, and vale_error(), which are the same whether the
 * switch is in this process (vale_setting_switch.c) or not (vale_valed.c).
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vale_setting.h"

#define	ROW(id, number, name, scope, kind, min, max, otherwise, what, unit, \
    arg, help)								\
	{ number, name, VALE_OF_##scope, VALE_KIND_##kind, min, max, \
	    otherwise, what, unit, arg, help },
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
