/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a reload does.  The functions read their arguments only.  An adapter is
 * known by its place; one whose ac_backend is "" does not exist.
 */

#ifndef _VALED_PLAN_H_
#define	_VALED_PLAN_H_

#include <stdbool.h>

#include "adapter_config.h"

struct valed_action {
	enum {
		VALED_TAP,		/* leave the adapter as it is: valed can
					   open no TAP interface any more */
		VALED_BUSY,		/* leave it: another has its port */
		VALED_CLASH,		/* leave it: its port or path belongs
					   to an adapter that stays */
		VALED_OPEN,		/* get its socket */
		VALED_REMOVE_OLD,	/* the adapter */
		VALED_UNPLUG,		/* it has no port for a moment */
		VALED_MOVE_NEW,		/* to it, on another port */
		VALED_CHANGE_NEW,	/* to it, in place */
		VALED_ADD_NEW,
		VALED_UNLINK		/* the socket of an old one */
	}		ax_what;
	unsigned int	ax_index;	/* of the old or new adapter */
};

/* As many actions as there may be. */
#define	VALED_ACTIONS(nold, nnew)	(2 * (nold) + 3 * (nnew))

struct valed_plan {
	const struct adapter_config *pn_old;	/* the present adapters */
	unsigned int	 pn_nold;
	const struct adapter_config *pn_new;	/* those that are wanted */
	unsigned int	 pn_nnew;
	const bool	*pn_refused;	/* whose ports cannot be reserved */
	struct adapter_config *pn_result;	/* after the reload */
	struct valed_action *pn_action;		/* VALED_ACTIONS() of them */
	unsigned int	 pn_nactions;
};

/* Find the old adapter with the place of *ac, or return NULL. */
const struct adapter_config *valed_plan_old(const struct valed_plan *vp,
	    const struct adapter_config *ac);

/* Return whether the i-th new adapter is left as it is, or not there. */
bool	valed_plan_left(const struct valed_plan *vp, unsigned int i);

/*
 * Return, after valed_plan(), whether the i-th new adapter takes the place of
 * an old one, whose client is disconnected.
 */
bool	valed_plan_replaces(const struct valed_plan *vp, unsigned int i);

/* Return whether the port of the i-th new adapter must be reserved. */
bool	valed_plan_reserves(const struct valed_plan *vp, unsigned int i);

/*
 * Set pn_result, pn_action and pn_nactions from the others: first what is left,
 * then sockets to open, adapters to remove, to move, to change in place and to
 * add, and sockets to remove.
 */
void	valed_plan(struct valed_plan *vp);

#endif /* !_VALED_PLAN_H_ */
