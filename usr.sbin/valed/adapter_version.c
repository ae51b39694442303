/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Versions of adapters' states; see adapter_version.h. */

#include <sys/param.h>

#include <stdio.h>
#include <string.h>

#include "adapter_version.h"
#include "e82545.h"
#include "peer_mem_journal.h"
#include "vfu_state.h"

void
adapter_version(char version[ADAPTER_VERSION_SIZE])
{
	snprintf(version, ADAPTER_VERSION_SIZE, "%u.%u.%u.%u.%u",
	    ADAPTER_SAVED_VERSION, VFU_STATE_VERSION, E82545_SNAPSHOT_VERSION,
	    PEER_MEM_JOURNAL_VERSION, E82574_SNAPSHOT_VERSION);
}

/*
 * Earlier versions that adapter_resume.c goes on from: at least the last two
 * must be here.  The journal's version was added in the second one, and that of
 * an 82574L's snapshot, 1 until then, in the third.
 */
static const char *const earlier[] = { "1.1.6", "2.1.6.1", "2.1.6.1.2" };

bool
adapter_version_takes(const char *version)
{
	char own[ADAPTER_VERSION_SIZE];
	unsigned int i;

	adapter_version(own);
	for (i = 0; i < nitems(earlier); i++)
		if (strcmp(version, earlier[i]) == 0)
			return (true);
	return (strcmp(version, own) == 0);
}
