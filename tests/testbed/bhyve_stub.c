/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * FreeBSD: the functions of bhyve that its network backends call, for programs
 * that link the backends alone.
 */

#include <sys/types.h>
#include <sys/nv.h>

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "debug.h"
#include "pci_emul.h"

/* Messages end in a plain newline. */
extern int raw_stdio;		/* bhyve's debug.h */
int raw_stdio;

/* "a=1,b" is a=1 and b=true. */
int
pci_parse_legacy_config(nvlist_t *nvl, const char *opts)
{
	char *copy, *name, *rest, *value;

	if (opts == NULL)
		return (0);
	rest = copy = strdup(opts);
	if (copy == NULL)
		return (-1);
	while ((name = strsep(&rest, ",")) != NULL) {
		value = strchr(name, '=');
		if (value != NULL)
			*value++ = '\0';
		set_config_value_node(nvl, name,
		    value != NULL ? value : "true");
	}
	free(copy);
	return (0);
}
