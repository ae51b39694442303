/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Reserved names of ports, step by step; valed_reload_test has a valed. */

#include <sys/param.h>

#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "ctl_names.h"
#include "hostif.h"
#include "test.h"

#define	FIRST	1280			/* the first adapter's place */

/* As many adapters and interfaces as there may be, p0, p1... and e0, e1... */
static void
start(void)
{
	char name[16];
	unsigned int i;

	for (i = 0; i < CTL_NAMES_ADAPTERS; i++) {
		snprintf(name, sizeof(name), "vale0:p%u", i);
		ctl_names_adapter(FIRST + i, name);
	}
	for (i = 0; i < HOSTIF_MAX; i++) {
		snprintf(name, sizeof(name), "vale0:e%u", i);
		ctl_names_hostif(name);
	}
}

TEST(configured, "What the configuration has is reserved, and nothing else")
{
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:p0"));
	start();
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:p0"));
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:p255"));
	ATF_CHECK_EQ(CTL_NAME_HOSTIF, ctl_names_of("vale0:e0"));
	ATF_CHECK_EQ(CTL_NAME_HOSTIF, ctl_names_of("vale0:e63"));
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:p"));
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:p256"));
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale1:p0"));
	/* A reload without changes. */
	ctl_names_end();
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:p0"));
	ATF_CHECK_EQ(CTL_NAME_HOSTIF, ctl_names_of("vale0:e63"));
}

TEST(reload, "A name is reserved before its port is removed or added, and free "
    "when the reload has ended")
{
	char name[16];
	unsigned int i;

	start();
	/* All are replaced by others. */
	for (i = 0; i < CTL_NAMES_ADAPTERS; i++) {
		snprintf(name, sizeof(name), "vale0:q%u", i);
		ctl_names_reserve(FIRST + i, name);
		ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of(name));
	}
	for (i = 0; i < CTL_NAMES_ADAPTERS; i++)
		ctl_names_remove(FIRST + i);
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:p9"));
	/* Of another place there is none. */
	ctl_names_add(FIRST - 1);
	ctl_names_unreserve(FIRST - 1);
	/* But for one. */
	for (i = 1; i < CTL_NAMES_ADAPTERS; i++)
		ctl_names_add(FIRST + i);
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:p9"));
	ctl_names_end();
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:p0"));
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:p255"));
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:q0"));
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:q1"));
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:q255"));
	ATF_CHECK_EQ(CTL_NAME_HOSTIF, ctl_names_of("vale0:e0"));
	/* The same name in another place, and one that was given up. */
	ctl_names_reserve(FIRST, "vale0:q9");
	ctl_names_reserve(FIRST + 1, "vale0:r");
	ctl_names_unreserve(FIRST + 1);
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:r"));
	ctl_names_remove(FIRST + 9);
	ctl_names_add(FIRST);
	ctl_names_end();
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:q9"));
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:q1"));
	ctl_names_remove(FIRST);
	ctl_names_end();
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:q9"));
}

TEST(moves, "The name of an adapter that is moved is that of its new port, and "
    "the other is free when the reload has ended")
{
	ctl_names_adapter(1, "vale0:a");
	ctl_names_adapter(2, "vale0:b");
	ctl_names_reserve(1, "vale1:a");
	/* Another one is not. */
	ctl_names_move(2);
	ctl_names_move(1);
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:a"));
	ctl_names_end();
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:a"));
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale1:a"));
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:b"));
	/* One that could not be. */
	ctl_names_reserve(1, "vale0:a");
	ctl_names_unreserve(1);
	ctl_names_move(1);
	ctl_names_end();
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale1:a"));
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:a"));
	/* Two change places. */
	ctl_names_reserve(1, "vale0:b");
	ctl_names_reserve(2, "vale1:a");
	ctl_names_move(2);
	ctl_names_move(1);
	ctl_names_end();
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale1:a"));
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:b"));
}

TEST_PROGRAM
