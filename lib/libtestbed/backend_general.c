/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The file once more, under another name, without its fast paths, and in no
 * linker set.
 */

#include <sys/types.h>
#include <sys/linker_set.h>

#include <atf-c.h>

#include "backend.h"
#include "backend_general.h"

#undef DATA_SET
#define	DATA_SET(set, sym)	_Static_assert(sizeof(sym) > 0, #set)
#define	NO_FAST_PATH
#define	net_backend_vale_port	backend_general_vale_port

#include "net_backend_vale.c"

struct net_backend *
backend_general_open(const char *name)
{
	struct net_backend *be;

	be = calloc(1, sizeof(*be) + vale_backend.priv_size);
	ATF_REQUIRE(be != NULL);
	*be = vale_backend;
	ATF_REQUIRE_EQ(0, be->init(be, name, NULL, backend_ignore, NULL));
	backend_general_port(be)->fp_frame_max = UINT32_MAX;
	return (be);
}

void
backend_general_close(struct net_backend *be)
{
	be->cleanup(be);
	free(be);
}

struct frame_port *
backend_general_port(struct net_backend *be)
{
	return (backend_general_vale_port.nbp_port(be));
}

struct vale_desc *
backend_general_desc(struct net_backend *be)
{
	struct vale_priv *priv;

	priv = NET_BE_PRIV(be);
	return (priv->port);
}
