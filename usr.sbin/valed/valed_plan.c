/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * What a reload does, from the adapters that there are and those that are
 * wanted.  An adapter whose values are the same is left alone; one that differs
 * in what valed can change is changed in place, or moved to another port;
 * another is removed and added again, with the same socket if the path is the
 * same.
 *
 * One is left as it is, or not there, if valed cannot add it, or if another has
 * its port open; and then each that would be where such a one stays.
 *
 * Adapters may be on their way to each other's ports.  One is moved when the
 * one that has its port has been; if they are a circle, one of them has no port
 * meanwhile.
 *
 * Nothing is done here: valed_reload.c does it.
 */

#include <string.h>

#include "adapter_config.h"
#include "valed_plan.h"
#include "valed_values.h"

/* Find the one of `n' adapters that has this place, or return NULL. */
static const struct adapter_config *
find(const struct adapter_config *ac, unsigned int n,
    const struct adapter_config *place)
{
	const struct adapter_config *end = ac + n;

	for (; ac < end; ac++) {
		if (ac->ac_bus == place->ac_bus &&
		    ac->ac_slot == place->ac_slot &&
		    ac->ac_func == place->ac_func)
			return (ac);
	}
	return (NULL);
}

const struct adapter_config *
valed_plan_old(const struct valed_plan *vp, const struct adapter_config *ac)
{
	return (find(vp->pn_old, vp->pn_nold, ac));
}

/* Return whether one of `n' adapters has the same path. */
static bool
has_path(const struct adapter_config *other, unsigned int n,
    const struct adapter_config *ac)
{
	const struct adapter_config *end = other + n;

	for (; other < end; other++) {
		if (ac->ac_fd == -1 &&
		    strcmp(other->ac_path, ac->ac_path) == 0)
			return (true);
	}
	return (false);
}

/* Return whether there is an adapter. */
static bool
is_there(const struct adapter_config *ac)
{
	return (ac != NULL && ac->ac_backend[0] != '\0');
}

/* Return whether an adapter stays, perhaps changed in place. */
static bool
same(const struct adapter_config *old, const struct adapter_config *new)
{
	return (old != NULL && new != NULL && is_there(old) == is_there(new) &&
	    valed_values_in_place(old, new));
}

/* Return whether the reload adds this adapter, alone or in place of another. */
static bool
added(const struct valed_plan *vp, const struct adapter_config *ac)
{
	return (is_there(ac) && !same(valed_plan_old(vp, ac), ac));
}

/* Return whether the reload moves the adapter to another port. */
static bool
moved(const struct valed_plan *vp, const struct adapter_config *ac)
{
	const struct adapter_config *old = valed_plan_old(vp, ac);

	return (is_there(old) && same(old, ac) &&
	    strcmp(old->ac_backend, ac->ac_backend) != 0);
}

/* Return whether the reload opens a port for the adapter. */
static bool
opens(const struct valed_plan *vp, const struct adapter_config *ac)
{
	return (added(vp, ac) || moved(vp, ac));
}

static bool
is_tap(const struct adapter_config *ac)
{
	return (strncmp(ac->ac_backend, "tap", 3) == 0);
}

bool
valed_plan_reserves(const struct valed_plan *vp, unsigned int i)
{
	return (opens(vp, &vp->pn_new[i]) && !is_tap(&vp->pn_new[i]));
}

bool
valed_plan_replaces(const struct valed_plan *vp, unsigned int i)
{
	const struct adapter_config *ac = &vp->pn_result[i];

	return (is_there(valed_plan_old(vp, ac)) && added(vp, ac));
}

bool
valed_plan_left(const struct valed_plan *vp, unsigned int i)
{
	return (!valed_values_same(&vp->pn_new[i], &vp->pn_result[i]));
}

/* Return whether one adapter stays where the other one would be. */
static bool
clash(const struct adapter_config *a, const struct adapter_config *b)
{
	return (strcmp(a->ac_backend, b->ac_backend) == 0 ||
	    (a->ac_fd == -1 ? b->ac_fd == -1 &&
	    strcmp(a->ac_path, b->ac_path) == 0 : a->ac_fd == b->ac_fd));
}

static void
action(struct valed_plan *vp, int what, unsigned int i)
{
	vp->pn_action[vp->pn_nactions].ax_what = what;
	vp->pn_action[vp->pn_nactions++].ax_index = i;
}

/* Leave an adapter as it is, or not there. */
static void
leave(struct valed_plan *vp, int why, unsigned int i)
{
	const struct adapter_config *new = &vp->pn_new[i];
	const struct adapter_config *old = valed_plan_old(vp, new);
	const struct adapter_config none = { .ac_bus = new->ac_bus,
	    .ac_slot = new->ac_slot, .ac_func = new->ac_func, .ac_fd = -1,
	    .ac_listen = -1 };

	action(vp, why, i);
	vp->pn_result[i] = old != NULL ? *old : none;
}

/* Leave a new adapter whose place is taken; returns false if none is. */
static bool
leave_clash(struct valed_plan *vp)
{
	const struct adapter_config *ac = vp->pn_result;
	unsigned int i, j;

	for (i = 0; i < vp->pn_nnew; i++)
		for (j = 0; opens(vp, &ac[i]) && j < vp->pn_nnew; j++)
			if (!opens(vp, &ac[j]) && is_there(&ac[j]) &&
			    clash(&ac[i], &ac[j])) {
				leave(vp, VALED_CLASH, i);
				return (true);
			}
	return (false);
}

/* Plan actions for sockets of adapters that are added. */
static void
plan_open(struct valed_plan *vp)
{
	struct adapter_config *ac;
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++) {
		ac = &vp->pn_result[i];
		if (!added(vp, ac))
			continue;
		ac->ac_listen = -1;
		if (!has_path(vp->pn_old, vp->pn_nold, ac))
			action(vp, VALED_OPEN, i);
	}
}

/* Return whether an adapter that is still to be moved is at a port. */
static bool
is_held(const struct valed_plan *vp, const bool *left, const bool *out,
    const char *port)
{
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++)
		if (left[i] && !out[i] && strcmp(valed_plan_old(vp,
		    &vp->pn_result[i])->ac_backend, port) == 0)
			return (true);
	return (false);
}

/* Move those that can be; returns whether there was one. */
static bool
move_some(struct valed_plan *vp, bool *left, const bool *out)
{
	bool some = false;
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++)
		if (left[i] && !is_held(vp, left, out,
		    vp->pn_result[i].ac_backend)) {
			left[i] = false;
			some = true;
			action(vp, VALED_MOVE_NEW, i);
		}
	return (some);
}

static void
plan_moves(struct valed_plan *vp)
{
	bool left[VALED_MAXADAPTERS], out[VALED_MAXADAPTERS] = { false };
	unsigned int i;

	for (i = 0; i < vp->pn_nnew; i++)
		left[i] = moved(vp, &vp->pn_result[i]);
	for (;;) {
		while (move_some(vp, left, out))
			continue;
		for (i = 0; i < vp->pn_nnew && !left[i]; i++)
			continue;
		if (i == vp->pn_nnew)
			return;
		out[i] = true;
		action(vp, VALED_UNPLUG, i);
	}
}

void
valed_plan(struct valed_plan *vp)
{
	const struct adapter_config *ac;
	unsigned int i;

	vp->pn_nactions = 0;
	for (i = 0; i < vp->pn_nnew; i++)
		vp->pn_result[i] = vp->pn_new[i];
	for (i = 0; i < vp->pn_nnew; i++)
		if (added(vp, &vp->pn_new[i]) && is_tap(&vp->pn_new[i]))
			leave(vp, VALED_TAP, i);
	for (i = 0; i < vp->pn_nnew; i++)
		if (vp->pn_refused[i])
			leave(vp, VALED_BUSY, i);
	while (leave_clash(vp))
		continue;
	plan_open(vp);
	for (i = 0; i < vp->pn_nold; i++) {
		ac = &vp->pn_old[i];
		if (!same(ac, find(vp->pn_result, vp->pn_nnew, ac)))
			action(vp, VALED_REMOVE_OLD, i);
	}
	plan_moves(vp);
	for (i = 0; i < vp->pn_nnew; i++) {
		ac = &vp->pn_result[i];
		if (!opens(vp, ac) && valed_plan_old(vp, ac) != NULL &&
		    !valed_values_same(valed_plan_old(vp, ac), ac))
			action(vp, VALED_CHANGE_NEW, i);
	}
	for (i = 0; i < vp->pn_nnew; i++)
		if (added(vp, &vp->pn_result[i]))
			action(vp, VALED_ADD_NEW, i);
	for (i = 0; i < vp->pn_nold; i++) {
		ac = &vp->pn_old[i];
		if (ac->ac_path[0] != '\0' &&
		    !has_path(vp->pn_result, vp->pn_nnew, ac))
			action(vp, VALED_UNLINK, i);
	}
}
