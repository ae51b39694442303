/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The second stage of forwarding: vale_lookup.c.
 *
 * The sending thread calls these, with a view (vale_view.h).
 */

#ifndef _VALE_LOOKUP_H_
#define	_VALE_LOOKUP_H_

#include <stdbool.h>
#include <stdint.h>

#include "vale_rules.h"
#include "vale_view.h"

struct vale_pair;

/*
 * Copy the heads of the batch's frames, and count the dropped frames.  Returns
 * as vale_rules_copy() does.
 */
uint32_t vale_lookup_heads(struct vale_pair *pair);

/* Begin with a batch of a port that vi_ruled has. */
void	vale_lookup_begin(struct vale_pair *pair);

/*
 * Make the lists of a part of the batch, which begins with the frame at `i'.
 * All lists must be empty.  Returns the frame after the part.
 */
uint32_t vale_lookup(struct vale_pair *pair, uint32_t i);

/*
 * Return whether a frame in a VLAN that port number `src' floods goes to port
 * number `dst'.
 */
static inline bool
vale_lookup_floods(const struct vale_view *vi, unsigned int src,
    unsigned int dst, unsigned int vlan)
{
	return (dst != src && !(vi->vi_private[src] && vi->vi_private[dst]) &&
	    vale_vlan_member(&vi->vi_rules[dst]->rls_vlan, vlan));
}

#endif /* !_VALE_LOOKUP_H_ */
