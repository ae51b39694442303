/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * When what an earlier process has left, and nobody has taken, leaves the store
 * (valed_serve.c, which is included).  No scenario has an adapter that takes
 * longer to go on than valed waits for.  The linker leaves out the
 * functions that are not called.
 */

#include "valed_serve.c"

#include <atf-c.h>

#include "test.h"

struct adapter_list valed_adapters = TAILQ_HEAD_INITIALIZER(valed_adapters);
static struct adapter a, b;
static bool b_resumed;
static unsigned int removals;

bool
adapter_resumed(struct adapter *ad)
{
	return (ad == &a || b_resumed);
}

struct adapter_resumed
adapter_keep_resumed(void)
{
	return ((struct adapter_resumed){ .ar_saved = 0 });
}

bool
valed_store_found(void)
{
	return (false);
}

void
valed_store_started(void)
{
	removals++;
}

TEST(all, "It leaves once, when all adapters have gone on")
{
	TAILQ_INSERT_TAIL(&valed_adapters, &a, link);
	TAILQ_INSERT_TAIL(&valed_adapters, &b, link);
	started();
	ATF_CHECK_EQ(0, removals);
	b_resumed = true;
	started();
	started();
	ATF_CHECK_EQ(1, removals);
}

TEST_PROGRAM
