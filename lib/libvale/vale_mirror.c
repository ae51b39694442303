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
 * Senders see the mirrors whose port is there: vale_view.c.
 */

#include <string.h>

#include "vale_deliver.h"
#include "vale_error.h"
#include "vale_mirror.h"
#include "vale_pair.h"
#include "vale_switch.h"
#include "vale_view.h"

int
vale_mirror_set(struct vale_port *port, const char *of, unsigned int what)
{
	struct vale_switch *vs = port->vp_switch;

	mtx_assert(&vs->vs_change, MA_OWNED);
	mtx_assert(&vale_lock, MA_OWNED);
	/* mutants: a name has several characters */
	if (port->vp_mirror_of[0] != '\0') {
		TAILQ_REMOVE(&vs->vs_mirrors, port, vp_mirror_link);
		memset(port->vp_mirror_of, 0, sizeof(port->vp_mirror_of));
		vs->vs_nmirrors--;
	} else if (what != 0 && vs->vs_nmirrors == VALE_MIRRORS)
		return (vale_fail(ENOSPC));
	port->vp_mirror_what = what;
	if (what != 0) {
		memcpy(port->vp_mirror_of, of, strlen(of));
		TAILQ_INSERT_TAIL(&vs->vs_mirrors, port, vp_mirror_link);
		vs->vs_nmirrors++;
	}
	return (0);
}

/*
 * Deliver to the mirrors of the port with index `of' the frames of its own list
 * and the flooded ones: a batch of `pair'.
 */
static void
mirror_deliver(struct vale_pair *pair, unsigned int of, unsigned int what)
{
	const struct vale_view *vi = pair->pa_tx.vt_view;
	const struct vale_list *list = pair->pa_tx.vt_list;
	const uint32_t frames = list[of].li_frames +
	    pair->pa_tx.vt_flood->li_frames;
	const struct vale_mirror *vm;

	for (vm = vi->vi_mirror; vm < vi->vi_mirror + vi->vi_nmirrors; vm++) {
		if (vm->vm_of != of || vm->vm_port == pair->pa_port ||
		    (vm->vm_what & what) == 0)
			continue;
		vale_count(pair, VALE_C_TX_MIRROR, frames);
		vale_deliver(pair, vm->vm_port, of);
	}
}

void
vale_mirror_sent(struct vale_pair *pair)
{
	struct vale_txq *vt = &pair->pa_tx;
	struct vale_list *all = &vt->vt_list[VALE_FDB_FLOOD];
	uint32_t i;

	if (vt->vt_nfrags == 0)
		return;
	for (i = 0; i < vt->vt_nfrags; i += vt->vt_frag[i].fg_nfrags)
		vale_list_append(vt, all, i);
	mirror_deliver(pair, pair->pa_port->vp_index, VALE_MIRROR_TX);
	vale_list_init(all);
}

void
vale_mirror_received(struct vale_pair *pair, const struct vale_port *dst)
{
	mirror_deliver(pair, dst->vp_index, VALE_MIRROR_RX);
}
