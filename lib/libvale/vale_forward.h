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

struct vale_pair;

/*
 * Stage 1: collect a batch of the slots before `head', which must be in the
 * ring.
 */
void	vale_forward_collect(struct vale_pair *pair, uint32_t head);

/* All stages, for all slots before `head', which must be in the ring. */
void	vale_forward(struct vale_pair *pair, uint32_t head);

/* Count a head outside the ring (tx_bad_ring). */
void	vale_forward_invalid(struct vale_pair *pair);

#endif /* !_VALE_FORWARD_H_ */
