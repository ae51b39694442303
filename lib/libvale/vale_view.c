/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What senders see of their switch: its ports, which of them are private, and
 * the mirrors.
 *
 * A sender may wait for a page of memory in the midst of a batch, for as long
 * as the page's owner likes, so nobody else may wait for a sender.  A view
 * never changes while a sender may have it: a change fills in another view and
 * publishes that.  Senders that enter then have the new view.  Only the change
 * waits, until senders that entered before have left:
 *
 *	sender				change, with vs_change
 *	vt_busy = odd			fill in the view that nobody has
 *	fence				vs_view = that view
 *	vt_view = vs_view		fence
 *	forward a batch			for each ring pair of each port
 *	vt_busy = even				if vt_busy is odd
 *							wait until it differs
 *
 * Each side writes its own word before it reads the other's, with a
 * sequentially consistent fence between.  So either the change finds the sender
 * busy, or the sender has the new view, as has a sender that has left and
 * entered again.  A sender takes no lock, and shares with other senders no word
 * that any of them writes.
 *
 * What a view lacks no sender uses when vale_view_publish() returns: a port
 * that was taken from the switch may then be freed.  The same holds for what
 * senders look at without a view, if that was changed before: no sender still
 * calls a sink that vp_direct forbids.
 */

#include <sched.h>
#include <string.h>
#include <time.h>

#include "vale_link.h"
#include "vale_rules.h"
#include "vale_switch.h"
#include "vale_view.h"

/* How often a change yields before it sleeps, and for how long. */
#define	YIELDS		64
#define	PAUSE_NS	100000

pthread_mutex_t vale_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t
view_busy(const struct vale_pair *pair)
{
	return (atomic_load_acq_32(&pair->pa_tx.vt_busy));
}

/* Wait until a sender that may have an earlier view has left. */
static void
view_wait(const struct vale_pair *pair)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const uint32_t busy = view_busy(pair);
	unsigned int n = 0;

	while (busy % 2 != 0 && view_busy(pair) == busy) {
		if (n++ < YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
}

/* Return whether any uplink has a carrier. */
static bool
view_carrier(const struct vale_switch *vs)
{
	unsigned int i;

	for (i = 0; i < VALE_FDB_PORTS; i++)
		if (vs->vs_port[i] != NULL &&
		    vs->vs_port[i]->vp_carrier == VALE_CARRIER_UP)
			return (true);
	return (false);
}

/*
 * Set which ports of the switch have a link, before its next view, by the
 * setting and the carrier of uplinks.
 */
static void
view_links(struct vale_switch *vs)
{
	const bool carrier = view_carrier(vs);
	struct vale_port *port;
	unsigned int i;
	bool down;

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		port = vs->vs_port[i];
		if (port == NULL)
			continue;
		down = port->vp_link == VALE_LINK_DOWN ||
		    (port->vp_link == VALE_LINK_UPLINK && !carrier);
		if (down == port->vp_down)
			continue;
		port->vp_down = down;
		port->vp_forget |= down;
		port->vp_link_new = true;
	}
}

/*
 * Tell ports whose link has changed, when the view that has the change is
 * published: what a port sends at once must not find an earlier one.
 */
static void
view_tell(struct vale_switch *vs)
{
	struct vale_port *port;
	unsigned int i;

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		port = vs->vs_port[i];
		if (port == NULL || !port->vp_link_new)
			continue;
		port->vp_link_new = false;
		if (port->vp_link_told != NULL)
			port->vp_link_told(port->vp_link_arg, !port->vp_down);
	}
}

/* Fill in a view.  Mirrors of which no port is there are left out. */
static void
view_fill(struct vale_view *vi, const struct vale_switch *vs)
{
	struct vale_port *port;
	unsigned int i;

	memset(vi, 0, sizeof(*vi));
	for (i = 0; i < VALE_FDB_PORTS; i++) {
		port = vs->vs_port[i];
		if (port == NULL)
			continue;
		/* A port without a link sends, too. */
		vi->vi_rules[i] = port->vp_rules;
		vi->vi_nvlans += port->vp_rules->rls_vlan.vln_mode !=
		    VALE_VLAN_ANY;
		vi->vi_down[i] = port->vp_down;
		if (port->vp_down)
			continue;
		vi->vi_port[i] = port;
		vi->vi_private[i] = port->vp_private;
		vi->vi_active[vi->vi_nports++] = i;
		vi->vi_nprivate += port->vp_private;
	}
	for (i = 0; i < VALE_FDB_PORTS; i++)
		vi->vi_ruled[i] = vi->vi_rules[i] != NULL &&
		    (vi->vi_nvlans > 0 || vi->vi_down[i] ||
		    vale_rules_guard(vi->vi_rules[i]));
	TAILQ_FOREACH(port, &vs->vs_mirrors, vp_mirror_link) {
		for (i = 0; i < VALE_FDB_PORTS; i++)
			if (vi->vi_port[i] != NULL && strcmp(port->vp_mirror_of,
			    vi->vi_port[i]->vp_common.name) == 0)
				break;
		if (i == VALE_FDB_PORTS || port->vp_down)
			continue;
		MPASS(vi->vi_nmirrors < VALE_MIRRORS);
		vi->vi_mirror[vi->vi_nmirrors++] = (struct vale_mirror){
		    .vm_port = port, .vm_of = i,
		    .vm_what = port->vp_mirror_what };
	}
}

/* Forget the addresses of ports whose link or VLANs have changed. */
static void
view_forget(struct vale_switch *vs)
{
	struct vale_port *port;
	unsigned int i;

	for (i = 0; i < VALE_FDB_PORTS; i++) {
		port = vs->vs_port[i];
		if (port == NULL || !port->vp_forget)
			continue;
		port->vp_forget = false;
		vale_fdb_forget(&vs->vs_fdb, i);
	}
}

void
vale_view_publish(struct vale_switch *vs)
{
	struct vale_view *vi = &vs->vs_views[vs->vs_view ==
	    (uintptr_t)&vs->vs_views[0]];
	const struct vale_pair *pair;
	struct vale_port *port;
	unsigned int i;

	mtx_assert(&vs->vs_change, MA_OWNED);
	mtx_assert(&vale_lock, MA_OWNED);
	view_links(vs);
	view_fill(vi, vs);
	for (i = 0; i < VALE_FDB_PORTS; i++)
		if (vs->vs_port[i] != NULL)
			atomic_store_bool(&vs->vs_port[i]->vp_ruled,
			    vi->vi_ruled[i]);
	atomic_store_rel_ptr(&vs->vs_view, (uintptr_t)vi);
	atomic_thread_fence_seq_cst();
	view_tell(vs);
	pthread_mutex_unlock(&vale_lock);
	/* With vs_change no port comes or goes. */
	for (i = 0; i < VALE_FDB_PORTS; i++) {
		port = vs->vs_port[i];
		if (port != NULL)
			VALE_PAIRS_FOREACH(pair, port)
				view_wait(pair);
	}
	pthread_mutex_lock(&vale_lock);
	view_forget(vs);
}
