/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Reserved names of ports, step by step; valed_reload_test has a valed. */

#include <sys/param.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <atf-c.h>

#include "test.h"
#include "valed.h"
#include "valed_names.h"

#define	BUS	5			/* of all adapters */

/* Whose a name is, for a program that would open it. */
static enum valed_name_of
whose(const char *name)
{
	struct valed_opening vo;
	enum valed_name_of of = valed_names_open(&vo, name);

	if (of == VALED_NAME_FREE)
		valed_names_opened(&vo);
	return (of);
}

/* As many adapters and interfaces as there may be, p0, p1... and e0, e1... */
static void
start(void)
{
	static struct adapter_config adapters[VALED_MAXADAPTERS];
	static struct hostif_config hostifs[HOSTIF_MAX];
	static char name[HOSTIF_MAX][16];
	const struct valed_options opt = { .vo_adapters = adapters,
	    .vo_nadapters = nitems(adapters), .vo_hostifs = hostifs,
	    .vo_nhostifs = nitems(hostifs) };
	unsigned int i;

	for (i = 0; i < nitems(adapters); i++) {
		adapters[i] = (struct adapter_config){ .ac_bus = BUS,
		    .ac_slot = i / 8, .ac_func = i % 8 };
		snprintf(adapters[i].ac_backend,
		    sizeof(adapters[i].ac_backend), "vale0:p%u", i);
	}
	for (i = 0; i < nitems(hostifs); i++) {
		snprintf(name[i], sizeof(name[i]), "vale0:e%u", i);
		hostifs[i].hc_port = name[i];
	}
	valed_names_start(&opt);
}

static struct adapter_config
place(int slot, int func)
{
	return ((struct adapter_config){ .ac_bus = BUS, .ac_slot = slot,
	    .ac_func = func });
}

TEST(configured, "What the configuration has is reserved, and nothing else")
{
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:p0"));
	start();
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:p0"));
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:p255"));
	ATF_CHECK_EQ(VALED_NAME_HOSTIF, whose("vale0:e0"));
	ATF_CHECK_EQ(VALED_NAME_HOSTIF, whose("vale0:e63"));
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:p"));
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:p256"));
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale1:p0"));
	/* A reload without changes. */
	valed_names_end();
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:p0"));
	ATF_CHECK_EQ(VALED_NAME_HOSTIF, whose("vale0:e63"));
}

TEST(reload, "A name is reserved before its port is removed or added, and free "
    "when the reload has ended")
{
	struct adapter_config ac;
	char name[16];
	int i;

	start();
	/* All are replaced by others. */
	for (i = 0; i < VALED_MAXADAPTERS; i++) {
		ac = place(i / 8, i % 8);
		snprintf(name, sizeof(name), "vale0:q%d", i);
		ATF_REQUIRE_EQ(0, valed_names_reserve(&ac, name));
		ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose(name));
	}
	for (i = 0; i < VALED_MAXADAPTERS; i++) {
		ac = place(i / 8, i % 8);
		valed_names_remove(&ac);
	}
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:p9"));
	/* Of another bus there is none. */
	ac.ac_bus = BUS + 1;
	valed_names_add(&ac);
	valed_names_unreserve(&ac);
	/* But for one. */
	for (i = 1; i < VALED_MAXADAPTERS; i++) {
		ac = place(i / 8, i % 8);
		valed_names_add(&ac);
	}
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:p9"));
	valed_names_end();
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:p0"));
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:p255"));
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:q0"));
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:q1"));
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:q255"));
	ATF_CHECK_EQ(VALED_NAME_HOSTIF, whose("vale0:e0"));
	/* The same name in another place, and one that was given up. */
	ac = place(0, 0);
	ATF_REQUIRE_EQ(0, valed_names_reserve(&ac, "vale0:q9"));
	ac = place(0, 1);
	ATF_REQUIRE_EQ(0, valed_names_reserve(&ac, "vale0:r"));
	valed_names_unreserve(&ac);
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:r"));
	ac = place(1, 1);
	valed_names_remove(&ac);
	ac = place(0, 0);
	valed_names_add(&ac);
	valed_names_end();
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:q9"));
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, whose("vale0:q1"));
	valed_names_remove(&ac);
	valed_names_end();
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:q9"));
}

TEST(opening, "A name is not reserved while a program opens a port with it")
{
	const struct adapter_config ac = place(1, 2), other = place(1, 3);
	struct valed_opening a, b;

	ATF_CHECK_EQ(VALED_NAME_FREE, valed_names_open(&a, "vale0:a"));
	ATF_CHECK_EQ(VALED_NAME_FREE, valed_names_open(&b, "vale0:b"));
	ATF_CHECK_EQ(EBUSY, valed_names_reserve(&ac, "vale0:a"));
	ATF_CHECK_EQ(EBUSY, valed_names_reserve(&ac, "vale0:b"));
	ATF_CHECK_EQ(0, valed_names_reserve(&other, "vale0:c"));
	/* What was refused was not reserved. */
	valed_names_add(&ac);
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:a"));
	valed_names_opened(&a);
	ATF_CHECK_EQ(0, valed_names_reserve(&ac, "vale0:a"));
	ATF_CHECK_EQ(EBUSY, valed_names_reserve(&ac, "vale0:b"));
	valed_names_opened(&b);
	ATF_CHECK_EQ(VALED_NAME_ADAPTER, valed_names_open(&a, "vale0:a"));
	ATF_CHECK_EQ(VALED_NAME_FREE, whose("vale0:b"));
}

TEST_PROGRAM
