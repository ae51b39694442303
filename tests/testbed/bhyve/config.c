/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See config.h.  The node is a queue of pairs, searched from its head: there
 * are a dozen at most.
 */

#include <sys/cdefs.h>
#include <sys/queue.h>

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "config.h"

struct nvpair {
	STAILQ_ENTRY(nvpair)	 nvp_link;
	char			*nvp_name, *nvp_value;
};

struct nvlist {
	STAILQ_HEAD(, nvpair)	 nl_pairs;
};

static struct nvlist node = { STAILQ_HEAD_INITIALIZER(node.nl_pairs) };

void
init_config(void)
{
	struct nvpair *np;

	while ((np = STAILQ_FIRST(&node.nl_pairs)) != NULL) {
		STAILQ_REMOVE_HEAD(&node.nl_pairs, nvp_link);
		free(np->nvp_name);
		free(np->nvp_value);
		free(np);
	}
}

nvlist_t *
create_config_node(const char *path __unused)
{
	return (&node);
}

static struct nvpair *
config_find(const nvlist_t *nvl, const char *name)
{
	struct nvpair *np;

	STAILQ_FOREACH(np, &nvl->nl_pairs, nvp_link)
		if (strcmp(np->nvp_name, name) == 0)
			break;
	return (np);
}

const char *
get_config_value_node(const nvlist_t *parent, const char *name)
{
	const struct nvpair *np = config_find(parent, name);

	return (np == NULL ? NULL : np->nvp_value);
}

void
set_config_value_node(nvlist_t *parent, const char *name, const char *value)
{
	struct nvpair *np;

	if (*name == '\0' || strchr(name, '.') != NULL)
		errx(EX_USAGE, "bad configuration variable '%s'", name);
	np = config_find(parent, name);
	if (np == NULL) {
		np = calloc(1, sizeof(*np));
		if (np == NULL || (np->nvp_name = strdup(name)) == NULL)
			err(EX_OSERR, "configuration");
		STAILQ_INSERT_TAIL(&parent->nl_pairs, np, nvp_link);
	}
	free(np->nvp_value);
	np->nvp_value = strdup(value);
	if (np->nvp_value == NULL)
		err(EX_OSERR, "configuration");
}

const char *
nvlist_next(const nvlist_t *nvl, int *typep, void **cookiep)
{
	struct nvpair *np = *cookiep;

	np = np == NULL ? STAILQ_FIRST(&nvl->nl_pairs) :
	    STAILQ_NEXT(np, nvp_link);
	*cookiep = np;
	*typep = NV_TYPE_STRING;
	return (np == NULL ? NULL : np->nvp_name);
}
