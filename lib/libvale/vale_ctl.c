/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * vale_ctl.h over the switch in this process, <dev/netmap/vale.h>.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "vale_ctl.h"

const char *
vale_counter_desc(enum vale_counter counter)
{
	static const char *const descs[] = {
#define	COUNTER_DESC(id, name, what)	[VALE_C_##id] = what,
		VALE_COUNTERS(COUNTER_DESC)
#undef COUNTER_DESC
	};

	return (descs[counter]);
}

struct ctl_list {
	const char	*switch_name;
	int		(*show)(const struct vale_port_info *, void *);
	void		*arg;
};

static int
ctl_list_port(const struct vale_port_info *info, void *arg)
{
	const struct ctl_list *list = arg;
	size_t len;

	if (list->switch_name != NULL) {
		len = strlen(list->switch_name);
		if (strncmp(info->pi_name, list->switch_name, len) != 0 ||
		    info->pi_name[len] != ':')
			return (0);
	}
	return (list->show(info, list->arg));
}

int
vale_list(const char *switch_name,
    int (*show)(const struct vale_port_info *, void *), void *arg)
{
	struct ctl_list list = { switch_name, show, arg };

	return (vale_walk(ctl_list_port, &list));
}

struct ctl_find {
	const char	*name;
	uint64_t	*counters;
};

static int
ctl_find_port(const struct vale_port_info *info, void *arg)
{
	const struct ctl_find *find = arg;

	if (strcmp(info->pi_name, find->name) != 0)
		return (0);
	memcpy(find->counters, info->pi_counter, sizeof(info->pi_counter));
	return (1);
}

int
vale_port_counters(const char *name, uint64_t counters[VALE_NCOUNTERS])
{
	struct ctl_find find = { name, counters };

	if (vale_walk(ctl_find_port, &find) == 0) {
		errno = ENXIO;
		return (-1);
	}
	return (0);
}

int
vale_fdb_list(const char *switch_name,
    int (*show)(const struct vale_fdb_entry *, void *), void *arg)
{
	int r;

	r = vale_walk_fdb(switch_name, show, arg);
	if (r == -1)
		errno = ENXIO;
	return (r);
}

int
vale_set_ageing(const char *switch_name, uint32_t seconds)
{
	if (seconds > VALE_FDB_AGEING_MAX_S) {
		errno = EINVAL;
		return (-1);
	}
	if (!vale_ageing(switch_name, seconds)) {
		errno = ENXIO;
		return (-1);
	}
	return (0);
}

int
vale_set_limit(const char *name, uint32_t limit)
{
	if (limit > VALE_FDB_ENTRIES) {
		errno = EINVAL;
		return (-1);
	}
	if (!vale_limit(name, limit)) {
		errno = ENXIO;
		return (-1);
	}
	return (0);
}
