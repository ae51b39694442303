/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* Whether an adapter that a reload adds may have the name of a port. */

#include <sys/param.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <atf-c.h>

#include "adapter.h"
#include "ctl_names.h"
#include "ctl_owner.h"
#include "libvale.h"
#include "test.h"
#include "valed_adapters.h"
#include "valed_serve.h"
#include "valed_watch.h"
#include "wrap.h"

struct adapter_list valed_adapters = TAILQ_HEAD_INITIALIZER(valed_adapters);

static bool	there;		/* the port */
static struct ctl_owner ow;	/* who attaches an interface */

/* The interface is attached just after this look. */
WRAP(int, vale_port_counters, const char *name __unused,
    uint64_t counters[VALE_NCOUNTERS] __unused)
{
	const bool was = there;

	if (ow.ow_name[0] != '\0') {
		there = true;
		ctl_owner_leave(&ow);
	}
	errno = ENXIO;
	return (was ? 0 : -1);
}

/* Nothing is started here. */
struct adapter *
adapter_start(const struct adapter_config *ac __unused,
    void (*fn)(struct adapter *) __unused)
{
	return (NULL);
}

void
adapter_go(struct adapter *ad __unused)
{
}

void
adapter_stop(struct adapter *ad __unused)
{
}

bool
adapter_ended(struct adapter *ad __unused)
{
	return (true);
}

int
adapter_move(struct adapter *ad __unused,
    const struct adapter_config *ac __unused,
    void (*fn)(struct adapter *) __unused)
{
	return (-1);
}

void
adapter_change(struct adapter *ad __unused,
    const struct adapter_config *ac __unused)
{
}

void
valed_serve_watch(struct adapter *ad __unused)
{
}

void
valed_watch_add(struct adapter *ad __unused)
{
}

void
valed_watch_remove(struct adapter *ad __unused)
{
}

TEST(reserve, "A name is reserved if no port has it, and none is being opened, "
    "whatever happens between two looks")
{
	const struct ctl_who root = { 0, true };
	const struct adapter_config ac = { .ac_backend = "vale0:x" };

	ATF_CHECK(valed_adapters_reserve(&ac));
	ATF_CHECK_EQ(CTL_NAME_ADAPTER, ctl_names_of("vale0:x"));
	valed_adapters_end();
	ATF_REQUIRE_EQ(0, ctl_owner_claim(&ow, "vale0:x", &root, false));
	ATF_CHECK(!valed_adapters_reserve(&ac));
	ATF_CHECK_EQ(CTL_NAME_FREE, ctl_names_of("vale0:x"));
	/* Does nothing if that look was taken. */
	ctl_owner_leave(&ow);
	there = true;
	ATF_CHECK(!valed_adapters_reserve(&ac));
	there = false;
	ATF_CHECK(valed_adapters_reserve(&ac));
}

TEST_PROGRAM
