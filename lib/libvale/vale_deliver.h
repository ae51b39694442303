/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The last stage of forwarding: vale_deliver.c.
 */

#ifndef _VALE_DELIVER_H_
#define	_VALE_DELIVER_H_

struct vale_pair;
struct vale_port;

/*
 * Deliver to `port' the frames of the batch of `pair' in the list of port
 * number `index', and the flooded ones: at least one frame.  The sending
 * thread, which has a view.
 */
void	vale_deliver(struct vale_pair *pair, struct vale_port *port,
	    unsigned int index);

#endif /* !_VALE_DELIVER_H_ */
