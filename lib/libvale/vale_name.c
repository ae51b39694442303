/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Names of ports.  <ctype.h> would depend on the locale.
 */

#include <string.h>

#include "libvale.h"

#define	NAME_PREFIX	"vale"
#define	NAME_CHARS	"abcdefghijklmnopqrstuvwxyz"		\
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ"		\
			"0123456789_-."

bool
vale_name_valid(const char *name)
{
	size_t len;

	if (strnlen(name, VALE_NAME_SIZE) == VALE_NAME_SIZE ||
	    strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
		return (false);
	name += strlen(NAME_PREFIX);
	name += strspn(name, NAME_CHARS);
	if (*name++ != ':')
		return (false);
	len = strspn(name, NAME_CHARS);
	return (len > 0 && name[len] == '\0');
}
