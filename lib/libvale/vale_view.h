/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What senders see of their switch: vale_view.c.
 */

#ifndef _VALE_VIEW_H_
#define	_VALE_VIEW_H_

#include <sys/systm.h>
#include <dev/netmap/vale_fdb.h>

#include <stdbool.h>
#include <stdint.h>

#include "vale_txq.h"

struct vale_port;
struct vale_rules;
struct vale_switch;

/* Mirrors of a switch. */
#define	VALE_MIRRORS	512

/* A port that gets copies of what the port with index vm_of sends or gets. */
struct vale_mirror {
	struct vale_port	*vm_port;
	uint8_t			 vm_of;
	uint8_t			 vm_what;	/* VALE_MIRROR_TX, _RX */
};

struct vale_view {
	unsigned int		 vi_nports;
	unsigned int		 vi_nprivate;
	unsigned int		 vi_nmirrors;
	uint8_t			 vi_active[VALE_FDB_PORTS]; /* indexes in use */
	unsigned int		 vi_nvlans;	/* ports with VLANs */
	bool			 vi_private[VALE_FDB_PORTS];
	bool			 vi_down[VALE_FDB_PORTS];	/* no link */
	/* Ports with a guard or no link; with VLANs on any port, all. */
	bool			 vi_ruled[VALE_FDB_PORTS];
	const struct vale_rules	*vi_rules[VALE_FDB_PORTS];
	struct vale_port	*vi_port[VALE_FDB_PORTS + 1]; /* _FLOOD: none */
	struct vale_mirror	 vi_mirror[VALE_MIRRORS];
};

/*
 * Return whether the sender has a view, vt_view: it is between
 * vale_view_enter() and vale_view_leave().
 */
static inline bool
vale_view_entered(const struct vale_txq *vt)
{
	return (atomic_load_32(&vt->vt_busy) % 2 != 0);
}

/* Take the view of the switch, whose vs_view is `view', waiting for nobody. */
static inline void
vale_view_enter(struct vale_txq *vt, const uintptr_t *view)
{
	MPASS(!vale_view_entered(vt));
	atomic_store_32(&vt->vt_busy, vt->vt_busy + 1);
	atomic_thread_fence_seq_cst();
	vt->vt_view = (const struct vale_view *)atomic_load_acq_ptr(view);
}

static inline void
vale_view_leave(struct vale_txq *vt)
{
	MPASS(vale_view_entered(vt));
	atomic_store_rel_32(&vt->vt_busy, vt->vt_busy + 1);
}

/*
 * Let senders see a change, and wait until no sender has an earlier view;
 * vale_lock is released meanwhile.  The caller owns vs_change and vale_lock.
 */
void	vale_view_publish(struct vale_switch *vs);

#endif /* !_VALE_VIEW_H_ */
