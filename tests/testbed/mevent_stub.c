/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * FreeBSD: bhyve's event loop without events, in place of mevent.c, for tests
 * that do not run the loop.  There mevent_delete() only marks an event, and the
 * loop removes it; a test that opens its next port gets the same descriptor,
 * which mevent.c would refuse.
 */

#include <sys/types.h>

#include <stddef.h>

#include "mevent.h"

struct mevent {
	int	 unused;
};

static struct mevent some;

struct mevent *
mevent_add_disabled(int fd __unused, enum ev_type type __unused,
    void (*func)(int, enum ev_type, void *) __unused, void *param __unused)
{
	return (&some);
}

int
mevent_enable(struct mevent *event __unused)
{
	return (0);
}

int
mevent_disable(struct mevent *event __unused)
{
	return (0);
}

int
mevent_delete(struct mevent *event __unused)
{
	return (0);
}
