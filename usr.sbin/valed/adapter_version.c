/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Versions of adapters' states; see adapter_version.h. */

#include <stdio.h>
#include <string.h>

#include "adapter_version.h"
#include "e82545.h"
#include "peer_mem_journal.h"
#include "vfu_state.h"

void
adapter_version(char version[ADAPTER_VERSION_SIZE])
{
	snprintf(version, ADAPTER_VERSION_SIZE, "%u.%u.%u.%u",
	    ADAPTER_SAVED_VERSION, VFU_STATE_VERSION, E82545_SNAPSHOT_VERSION,
	    PEER_MEM_JOURNAL_VERSION);
}

/* None before was released: each later one is to take the last two. */
bool
adapter_version_takes(const char *version)
{
	char own[ADAPTER_VERSION_SIZE];

	adapter_version(own);
	return (strcmp(version, own) == 0);
}
