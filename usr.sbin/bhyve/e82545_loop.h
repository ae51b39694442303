/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Loopback: e82545_loop.c.
 */

#ifndef _E82545_LOOP_H_
#define	_E82545_LOOP_H_

#include <stdbool.h>

struct e82545;
struct frame;
struct frame_source;

/* Create an empty queue.  Returns NULL with errno if there is no memory. */
struct e82545_loop *e82545_loop_create(void);
void	e82545_loop_destroy(struct e82545_loop *loop);
/* Empty the queue, at a reset.  All locks held. */
void	e82545_loop_reset(struct e82545 *dev);
/* Return whether loopback is on: RCTL.LBM or the PHY.  Any thread. */
bool	e82545_loopback(struct e82545 *dev);
/*
 * Queue a copy of a frame, sent with loopback on, for the receive path.
 * Returns false if the queue is full.  tx_mtx held, not rx_mtx.
 */
bool	e82545_loop_send(struct e82545 *dev, const struct frame *frame);
/* Return whether frames are pending.  Any thread. */
bool	e82545_loop_pending(const struct e82545 *dev);
/*
 * Return the queue as the receive path reads it.  rx_mtx held, also to use it.
 */
struct frame_source *e82545_loop_source(struct e82545 *dev);

#endif /* !_E82545_LOOP_H_ */
