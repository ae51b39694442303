/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Mirrors: ports that get a copy of what another port of the switch sends, or
 * of what the switch has for it.  A mirror may be a port like any other
 * (setting "mirror"), or a monitor, which gets nothing else and sends nothing.
 *
 * What a port sends is copied before the addresses are looked up, so a mirror
 * also gets what the switch then drops without learning; but not what is
 * malformed or over the port's rate.  What the switch has for a port is copied
 * after it was delivered, whether or not the port had space.
 *
 * To a mirror the copies are frames of their sender, and of its ring: copies
 * for which the mirror has no space are dropped, and nobody waits.  A mirror
 * gets no frame of its own, and what a mirror gets as such is not mirrored
 * again.
 *
 * A mirror names its port.  While no port has the name, the mirror gets
 * nothing; a port that is opened again with this name is mirrored again.
 *
 * Senders see the mirrors whose port is there: vale_view.c.
 *
 * A monitor's filter (vale_filter.h) is asked before a frame is copied: a frame
 * that does not pass takes no slot.  Like all of the switch the filter sees
 * frames as they were sent, before they are cut and summed.
 */

#include <string.h>

#include "vale_deliver.h"
#include "vale_error.h"
#include "vale_filter.h"
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

/* Restore the links between the frames of a list. */
static void
mirror_relink(struct vale_txq *vt, const struct vale_list *li,
    const uint16_t *next)
{
	uint32_t i;

	for (i = li->li_first; i != VALE_END; i = next[i])
		vt->vt_frag[i].fg_next = next[i];
}

/*
 * Deliver to a monitor with a filter the frames that pass.  Other mirrors get
 * all, so the lists are as before on return; meanwhile frames that pass are in
 * the list of flooded ones (vt_flood), in the order in which they were sent.
 */
static void __attribute__((__noinline__))
mirror_filter(struct vale_pair *pair, struct vale_port *port, unsigned int of)
{
	struct vale_txq *vt = &pair->pa_tx;
	struct vale_list *own = &vt->vt_list[of];
	struct vale_list *flood = vt->vt_flood;
	const struct vale_list own0 = *own, flood0 = *flood;
	uint16_t i_own = own->li_first, i_flood = flood->li_first;
	uint16_t i, next[nitems(vt->vt_frag)];

	vale_list_init(own);
	vale_list_init(flood);
	while ((i = MIN(i_own, i_flood)) != VALE_END) {
		next[i] = vt->vt_frag[i].fg_next;
		if (i == i_own)
			i_own = next[i];
		else
			i_flood = next[i];
		if (vale_filter_run(port->vp_filter, &vt->vt_frag[i]) != 0)
			vale_list_append(vt, flood, i);
	}
	if (flood->li_frames > 0) {
		vale_count(pair, VALE_C_TX_MIRROR, flood->li_frames);
		vale_deliver(pair, port, of);
	}
	*own = own0;
	*flood = flood0;
	mirror_relink(vt, own, next);
	mirror_relink(vt, flood, next);
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
		if (vm->vm_port->vp_filter != NULL) {
			mirror_filter(pair, vm->vm_port, of);
			continue;
		}
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
