/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Descriptors that outlive the process; see peer_keep.h. */

#include <string.h>

#include "peer_keep.h"

struct peer_kept *
peer_kept_find(struct peer_kept *kept, size_t nkept, const char *name)
{
	size_t i;

	for (i = 0; i < nkept; i++)
		if (kept[i].pkt_fd != -1 &&
		    strcmp(kept[i].pkt_name, name) == 0)
			return (&kept[i]);
	return (NULL);
}

void
peer_keep_put(const struct peer_keep *keep, const char *name, int fd)
{
	if (keep != NULL)
		keep->pke_put(keep->pke_arg, name, fd);
}

void
peer_keep_remove(const struct peer_keep *keep, const char *name)
{
	if (keep != NULL)
		keep->pke_remove(keep->pke_arg, name);
}
