/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Settings of switches and ports whose values a test computes. */

#ifndef _SETTING_H_
#define	_SETTING_H_

#include <dev/netmap/vale_rate_conf.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "libvale.h"

/* As vale_set(), of a format. */
static inline int __attribute__((__format__(__printf__, 3, 4)))
setting_to(const char *name, const char *setting, const char *fmt, ...)
{
	char text[VALE_SETTING_SIZE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return (vale_set(name, setting, text));
}

static inline int
setting_mirror(const char *name, const char *of, unsigned int what)
{
	static const char *const ways[] = { "", "/t", "/r", "" };

	return (setting_to(name, "mirror", "%s%s", what == 0 ? "no" : of,
	    ways[what]));
}

static inline int
setting_rate(const char *name, const struct vale_rate_conf *conf)
{
	char burst[24] = "";

	if (conf->rc_burst != 0)
		snprintf(burst, sizeof(burst), ",burst=%" PRIu32,
		    conf->rc_burst);
	return (setting_to(name, "rate", "%" PRIu64 "%s%s", conf->rc_rate,
	    conf->rc_frames ? "pkt/s" : "bit/s", burst));
}

/* As vale_get(); NULL if that fails. */
static inline const char *
setting_of(const char *name, const char *setting)
{
	static _Thread_local char text[VALE_SETTING_SIZE];

	return (vale_get(name, setting, text, sizeof(text)) == 0 ? text : NULL);
}

#endif /* !_SETTING_H_ */
