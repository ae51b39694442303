/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Names of ports.  <ctype.h> would depend on the locale.
 *
 * The kernel's rules are those of nm_bdg_name_validate() in FreeBSD's
 * sys/dev/netmap/netmap_bdg.c.  The kernel takes any character in a port's
 * name; these are what names of interfaces and of virtual machines have.
 */

#include <string.h>

#include "libvale.h"
#include "vale_name.h"

#define	NAME_PREFIX	"vale"
#define	NAME_ID		"abcdefghijklmnopqrstuvwxyz"		\
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ"		\
			"0123456789_"
#define	NAME_CHARS	NAME_ID "-."

const struct vale_name_rules vale_name_user = {
	.vn_chars = NAME_CHARS,
	.vn_chars_error = "before the ':' only letters, digits, '_', '-' and "
	    "'.' are valid",
	.vn_switch_max = VALE_NAME_SIZE,
	.vn_port_max = VALE_NAME_SIZE
};

const struct vale_name_rules vale_name_kernel = {
	.vn_chars = NAME_ID,
	.vn_chars_error = "before the ':' only letters, digits and '_' are "
	    "valid",
	.vn_switch_max = 15,
	.vn_switch_error = "before the ':' there are more than 15 characters",
	.vn_port_max = 15,
	.vn_port_error = "after the ':' there are more than 15 characters"
};

const char *
vale_name_check(const char *name, const struct vale_name_rules *rules)
{
	const size_t prefix = strlen(NAME_PREFIX);
	size_t len;

	if (strncmp(name, NAME_PREFIX, prefix) != 0)
		return ("it does not begin with \"" NAME_PREFIX "\"");
	if (strnlen(name, VALE_NAME_SIZE) == VALE_NAME_SIZE)
		return ("it has more than 63 characters");
	len = strcspn(name, ":");
	if (name[len] == '\0')
		return ("the port's name is missing (valeSWITCH:PORT)");
	if (prefix + strspn(name + prefix, rules->vn_chars) != len)
		return (rules->vn_chars_error);
	if (len > rules->vn_switch_max)
		return (rules->vn_switch_error);
	name += len + 1;
	len = strlen(name);
	if (len == 0)
		return ("the port's name is missing (valeSWITCH:PORT)");
	if (strspn(name, NAME_CHARS) != len)
		return ("after the ':' only letters, digits, '_', '-' and '.' "
		    "are valid");
	if (len > rules->vn_port_max)
		return (rules->vn_port_error);
	return (NULL);
}
