/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See backend.h.
 */

#include <sys/cdefs.h>

#include <stddef.h>

#include <atf-c.h>

#include "backend.h"
#include "config.h"

void
backend_ignore(int fd __unused, enum ev_type type __unused,
    void *param __unused)
{
}

static nvlist_t *
options(const char *opts)
{
	nvlist_t *nvl;

	init_config();
	nvl = create_config_node("dev");
	ATF_REQUIRE_EQ(0, netbe_legacy_config(nvl, opts));
	return (nvl);
}

int
backend_try(net_backend_t **be, const char *opts)
{
	return (netbe_init(be, options(opts), backend_ignore, NULL));
}

net_backend_t *
backend_open(const char *opts, net_be_rxeof_t cb, void *param)
{
	net_backend_t *be;

	ATF_REQUIRE_EQ(0, netbe_init(&be, options(opts), cb, param));
	return (be);
}
