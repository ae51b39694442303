/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Copies of what other ports send and get: vale_mirror.c.
 */

#ifndef _VALE_MIRROR_H_
#define	_VALE_MIRROR_H_

struct vale_pair;
struct vale_port;

/*
 * Copy the batch of `pair' to the mirrors of what its port sends.  The sending
 * thread, which has a view, before the lookup.
 */
void	vale_mirror_sent(struct vale_pair *pair);

/*
 * Copy what the batch of `pair' had for `dst' to the mirrors of what `dst'
 * gets.  The sending thread, while the lists are unchanged.
 */
void	vale_mirror_received(struct vale_pair *pair,
	    const struct vale_port *dst);

/*
 * Make the port a mirror of `of', or of none if `what' is 0, in the next view.
 * The caller owns vs_change and vale_lock.  Returns 0, or -1
 * with ENOSPC.
 */
int	vale_mirror_set(struct vale_port *port, const char *of,
	    unsigned int what);

#endif /* !_VALE_MIRROR_H_ */
