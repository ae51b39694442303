/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * From a transmit ring to destinations: vale_forward.c, which has the stages.
 *
 * The sending thread calls all of these.
 */

#ifndef _VALE_FORWARD_H_
#define	_VALE_FORWARD_H_

#include <stdint.h>

#include "libvale.h"

struct vale_pair;
struct vale_port;

/*
 * Stage 1: collect a batch of the slots before `head', which must be in the
 * ring.
 */
void	vale_forward_collect(struct vale_pair *pair, uint32_t head);

/* All stages, for all slots before `head', which must be in the ring. */
void	vale_forward(struct vale_pair *pair, uint32_t head);

/*
 * Copy the heads of the batch's frames (vale_rules_copy()), and count those
 * that are dropped.  Returns the first fragment of a frame not copied whole.
 */
uint32_t vale_forward_heads(struct vale_pair *pair);

/* Count a head outside the ring (tx_bad_ring). */
void	vale_forward_invalid(struct vale_pair *pair);

/*
 * Count, and show to a tracer, `n' frames of port `from', at least one, that
 * are dropped at `pair' because of `reason'.
 */
void	vale_forward_drop(struct vale_pair *pair, enum vale_counter reason,
	    uint32_t n, const struct vale_port *from);

#endif /* !_VALE_FORWARD_H_ */
