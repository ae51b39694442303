/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Mirrors: ports that get a copy of what another port of the switch sends, or
 * of what the switch has for it.  A mirror may be a port like any other
 * (vale_set_mirror()), or a monitor, which gets nothing else and sends nothing.
 *
 * What a port sends is copied before the addresses are looked up, so a mirror
 * gets also what the switch then drops, and is not learned from; but not what
 * is malformed or over the port's rate.  What the switch has for a port is
 * copied after it was delivered, whether or not the port had space.
 *
 * To a mirror the copies are frames of their sender, and of its ring: those for
 * which it has no space are dropped, and nobody waits for it.  It gets no frame
 * that it sent itself, and what it gets as a mirror is not mirrored again.
 *
 * A mirror names its port.  While no port has the name, it gets nothing; a port
 * that is opened again with this name is mirrored again.
 *
 * The list of mirrors changes while all senders of the switch are stopped.
 */

#include <string.h>

#include "vale_impl.h"

void
vale_mirror_find(struct vale_switch *vs)
{
	struct vale_port *mirror;

	vale_switch_assert_stopped(vs);
	vs->vs_mirroring = false;
	TAILQ_FOREACH(mirror, &vs->vs_mirrors, vp_mirror_link) {
		mirror->vp_mirrored = vale_switch_port(vs,
		    mirror->vp_mirror_of);
		if (mirror->vp_mirrored != NULL)
			vs->vs_mirroring = true;
	}
}

void
vale_mirror_set(struct vale_port *port, const char *of, unsigned int what)
{
	struct vale_switch *vs = port->vp_switch;

	vale_switch_assert_stopped(vs);
	if (port->vp_mirror_of[0] != '\0') {
		TAILQ_REMOVE(&vs->vs_mirrors, port, vp_mirror_link);
		memset(port->vp_mirror_of, 0, sizeof(port->vp_mirror_of));
	}
	port->vp_mirror_what = what;
	if (what != 0) {
		memcpy(port->vp_mirror_of, of, strlen(of));
		TAILQ_INSERT_TAIL(&vs->vs_mirrors, port, vp_mirror_link);
	}
	vale_mirror_find(vs);
}

/*
 * Deliver to the mirrors of `of' the frames of its own list and the flooded
 * ones: a batch of `port'.
 */
static void
mirror_deliver(struct vale_port *port, const struct vale_port *of,
    unsigned int what)
{
	const struct vale_list *list = port->vp_tx.vt_list;
	const uint32_t frames = list[of->vp_index].ls_frames +
	    list[VALE_FDB_FLOOD].ls_frames;
	const struct vale_port *sender = vale_port_first(port);
	struct vale_port *mirror;

	TAILQ_FOREACH(mirror, &port->vp_switch->vs_mirrors, vp_mirror_link) {
		if (mirror->vp_mirrored != of || mirror == sender ||
		    (mirror->vp_mirror_what & what) == 0)
			continue;
		vale_count(port, VALE_C_TX_MIRROR, frames);
		vale_deliver(port, mirror, of->vp_index);
	}
}

void
vale_mirror_sent(struct vale_port *port)
{
	struct vale_txq *vt = &port->vp_tx;
	struct vale_list *all = &vt->vt_list[VALE_FDB_FLOOD];
	uint32_t i;

	if (vt->vt_nfrags == 0)
		return;
	for (i = 0; i < vt->vt_nfrags; i += vt->vt_frag[i].fg_nfrags)
		vale_list_append(vt, all, i);
	mirror_deliver(port, vale_port_first(port), VALE_MIRROR_TX);
	vale_list_init(all);
}

void
vale_mirror_received(struct vale_port *port, const struct vale_port *dst)
{
	mirror_deliver(port, dst, VALE_MIRROR_RX);
}
