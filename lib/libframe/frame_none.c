/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* A frame port without a network; see frame_none.h. */

#include "frame_none.h"

static bool
none_send(struct frame_port *port __unused, const struct frame *frame __unused)
{
	return (false);
}

static void
none_nothing(struct frame_port *port __unused)
{
}

static bool
none_set_offloads(struct frame_port *port __unused)
{
	return (true);
}

static bool
none_peek(struct frame_source *source __unused, struct frame *frame __unused)
{
	return (false);
}

static void
none_next(struct frame_source *source __unused)
{
}

static const struct frame_port_ops none_ops = {
	.fpo_send = none_send,
	.fpo_flush = none_nothing,
	.fpo_sync = none_nothing,
	.fpo_set_offloads = none_set_offloads,
};

void
frame_none_init(struct frame_port *port, struct frame_source *source)
{
	port->fp_ops = &none_ops;
	port->fp_source = source;
	source->fs_peek = none_peek;
	source->fs_next = none_next;
}
